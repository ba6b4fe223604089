//! What a training file says.

use crate::command::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit::core::declare::nearest;
use whit::learn::Projecting;
use whit::learn::loss::Loss;
use whit::learn::model::Named;
use whit::learn::optimise::{Rule, Schedule, Weights};

/// A training file, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    /// The data set, of the `whit.toml` beside it.
    pub(super) dataset: String,
    /// The columns that the model reads.
    pub(super) features: Vec<String>,
    /// How many numbers a row has in columns of lists or bytes whose type does not say so.
    #[serde(default)]
    pub(super) widths: BTreeMap<String, usize>,
    /// How columns of bytes are opened up.
    #[serde(default)]
    pub(super) features_as: Opened,
    /// Every number is multiplied with this,
    #[serde(default = "one")]
    pub(super) scale: f32,
    /// and this is added.
    #[serde(default)]
    pub(super) offset: f32,
    /// What is to be told.
    pub(super) target: String,
    /// How many classes there are, or their names; a number is told without.
    pub(super) classes: Option<Classes>,
    /// Which rows are learned from.
    #[serde(rename = "where")]
    pub(super) learned: Option<String>,
    /// Which rows the model is tried on.
    pub(super) evaluate_where: Option<String>,
    /// Rows are projected on their private principal directions first.
    pub(super) projection: Option<Projecting>,
    #[serde(default = "linear")]
    pub(super) model: Named,
    pub(super) loss: Option<Loss>,
    pub(super) privacy: Privacy,
    /// Intervals are told around the parameters.
    pub(super) intervals: Option<Around>,
    #[serde(default)]
    pub(super) optimiser: Optimising,
    pub(super) output: Output,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Opened {
    #[default]
    Bytes,
    Bits,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "classes are a number of them, or a list of their names")]
pub(super) enum Classes {
    Number(u32),
    Names(Vec<String>),
}

impl Classes {
    /// Their names; numbers from 0 where none are given.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Number(number) => (0..*number).map(|class| class.to_string()).collect(),
            Self::Names(names) => names.clone(),
        }
    }
}

/// What is promised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Privacy {
    /// The ε that the protected unit may lose; or else the noise.
    pub(super) epsilon: Option<f64>,
    /// The δ at which ε holds; the least of the budgets where absent.
    pub(super) delta: Option<f64>,
    /// Standard deviation of the noise, over the clip norm; instead of ε.
    pub(super) noise: Option<f64>,
    /// The largest norm of what one unit adds to a step; nothing where labels are told before.
    pub(super) clip: Option<f64>,
    #[serde(default)]
    pub(super) clipping: Clipped,
    /// How many units a step has, on average.
    pub(super) batch: Option<u64>,
    /// The probability of being drawn, such as "1/100"; instead of the batch.
    pub(super) rate: Option<String>,
    /// About how many units there are, as somebody knows without looking.
    pub(super) units: Option<u64>,
    /// How many users there are: for whole users in batches of fixed size.
    pub(super) users: Option<u64>,
    pub(super) steps: u64,
    #[serde(default)]
    pub(super) draw: Drawn,
    #[serde(default)]
    pub(super) sampling: Sampled,
    pub(super) way: Option<Way>,
    /// What stands in the place of private features.
    pub(super) padding: Option<Padding>,
    /// How much the public part counts, beside 1 for the private one.
    #[serde(default = "whole")]
    pub(super) public: f64,
}

impl Privacy {
    /// The clip norm.
    pub(super) fn clip(&self) -> Result<f64, Error> {
        self.clip.ok_or_else(|| {
            asked("privacy.clip is missing: the largest norm of what one unit adds to a step", "write clip = 1.0")
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Clipped {
    #[default]
    Flat,
    PerLayer,
    Normalising,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Drawn {
    #[default]
    Units,
    Users,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sampled {
    #[default]
    Poisson,
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Way {
    Mean,
    Truncated,
    Sum,
    Local {
        steps: u32,
        size: f64,
    },
    /// Labels are told by randomised response before the first step,
    Response,
    /// or those of some rows first, and of the others with the help of a model of these.
    TwoStages {
        first: f64,
    },
}

impl Way {
    /// The share of rows whose labels are told without a prior, where labels are told before the first step.
    pub(super) fn first(self) -> Option<f64> {
        match self {
            Self::Response => Some(1.0),
            Self::TwoStages { first } => Some(first),
            Self::Mean | Self::Truncated | Self::Sum | Self::Local { .. } => None,
        }
    }

    /// Whether labels are told before the first step.
    pub(super) fn tells(self) -> bool {
        self.first().is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Padding {
    Mean(Vec<f32>),
    Gaussian { mean: Vec<f32>, deviation: Vec<f32> },
}

/// What is released to tell how sure one may be of parameters.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Around {
    /// How often intervals cover what they are about.
    #[serde(default = "usual")]
    pub(super) confidence: f64,
    /// What a unit adds to the curvature is shortened to this, squared: the length of a row, with 1 for the constant, times the root of the largest
    /// second derivative of the loss.
    pub(super) curvature: f64,
    /// Standard deviation of the noise of both matrices, over the squared bounds.
    pub(super) noise: f64,
}

/// How θ moves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Optimising {
    #[serde(default)]
    rule: Ruled,
    momentum: Option<f64>,
    decay: Option<f64>,
    /// The size of every step; or else a schedule.
    size: Option<f64>,
    schedule: Option<Schedule>,
    pub(super) radius: Option<f64>,
    pub(super) average: Option<Weights>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ruled {
    #[default]
    Descent,
    Adam,
}

impl Optimising {
    /// The rule for gradients whose noise has this deviation.
    pub(super) fn rule(&self, noise: f64) -> Result<Rule, Error> {
        let by = self.decay.unwrap_or(0.0);
        match self.rule {
            Ruled::Descent => Ok(Rule::Descent { momentum: self.momentum.unwrap_or(0.0), decay: by }),
            Ruled::Adam if self.momentum.is_some() => {
                Err(asked("optimiser.momentum is for descent, and the rule is adam", "leave one of them out"))
            }
            Ruled::Adam => Ok(match Rule::adam_for(noise) {
                Rule::Adam { first, second, floor, epsilon, .. } => {
                    Rule::Adam { first, second, floor, epsilon, decay: by }
                }
                other @ Rule::Descent { .. } => other,
            }),
        }
    }

    pub(super) fn schedule(&self) -> Result<Schedule, Error> {
        match (self.size, self.schedule) {
            (Some(size), None) => Ok(Schedule::Constant { size }),
            (None, Some(schedule)) => Ok(schedule),
            (None, None) => {
                let size = if self.rule == Ruled::Adam { 0.001 } else { 0.1 };
                Ok(Schedule::Constant { size })
            }
            (Some(_), Some(_)) => {
                Err(asked("optimiser.size and optimiser.schedule both say how long steps are", "leave one of them out"))
            }
        }
    }
}

/// Where things go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    /// The file of the model, relative to the training file.
    pub(super) model: PathBuf,
    /// A checkpoint is written after so many steps each.
    #[serde(default = "often")]
    pub(super) checkpoint_every: u64,
    /// Noise that comes again with this seed: for tests and demonstrations. It protects nobody, and costs everything.
    pub(super) seed: Option<u64>,
}

fn one() -> f32 {
    1.0
}

fn whole() -> f64 {
    1.0
}

fn usual() -> f64 {
    0.95
}

fn often() -> u64 {
    100
}

fn linear() -> Named {
    Named::Linear { bias: true }
}

pub(super) fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Asked { sentence: sentence.into(), hint: hint.into() }
}

/// A rule, a schedule and weights as one text, for the meaning of a run.
#[derive(Serialize)]
pub(super) struct Moves<'a> {
    pub(super) rule: &'a Rule,
    pub(super) schedule: &'a Schedule,
    pub(super) radius: Option<f64>,
    pub(super) average: Option<Weights>,
}

impl Spec {
    /// Reads a training file.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|why| {
            asked(format!("`{}` cannot be read: {why}", path.display()), "docs/learning.md has one to begin with")
        })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| misread(text, &error))
    }

    /// Takes what several files said together.
    pub(super) fn of_table(table: toml::Table) -> Result<Self, Error> {
        table.try_into().map_err(|error: toml::de::Error| misread("", &error))
    }

    /// A file that the training file names.
    pub(super) fn beside(training: &Path, path: &Path) -> PathBuf {
        training.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// What is wrong with a text, and where.
pub(super) fn misread(text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let message = error.message();
    asked(format!("{place}{}", message.lines().next().unwrap_or(message)), hint(message))
}

/// The nearest of what was expected, where the reader lists it in backticks.
fn hint(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown");
    match quoted.split_first() {
        Some((wrong, known)) if unknown && !known.is_empty() => match nearest(wrong, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? Known here: {}", known.join(", ")),
            None => format!("known here: {}", known.join(", ")),
        },
        _ => "docs/learning.md has every key".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        dataset = "visits"
        features = ["a", "b"]
        target = "y"
        classes = 2
        where = "split = 'train'"
        [privacy]
        epsilon = 1.0
        clip = 1.0
        batch = 100
        units = 1000
        steps = 10
        [output]
        model = "m.safetensors"
    "#;

    fn said(text: &str) -> (String, String) {
        match Spec::parse(text).unwrap_err() {
            Error::Asked { sentence, hint } => (sentence, hint),
            other => (other.to_string(), String::new()),
        }
    }

    #[test]
    fn a_short_file_is_enough() {
        let spec = Spec::parse(WHOLE).unwrap();
        assert_eq!(spec.classes.unwrap().names(), ["0", "1"]);
        assert_eq!(spec.optimiser.schedule().unwrap(), Schedule::Constant { size: 0.1 });
        assert_eq!((spec.model, spec.scale), (Named::Linear { bias: true }, 1.0));
    }

    #[test]
    fn everything_can_be_said() {
        let text = WHOLE.replace("[output]", "way = { local = { steps = 5, size = 0.1 } }\npadding = { gaussian = { mean = [0], deviation = [1] } }\nsampling = 'fixed'\n[model]\nname = 'perceptron'\nhidden = [4]\n[optimiser]\nrule = 'adam'\nschedule = { power = { first = 0.5, decay = 0.6 } }\naverage = { uniform = { from = 5 } }\n[output]\nseed = 3");
        let spec = Spec::parse(&text).unwrap();
        assert_eq!(spec.privacy.way, Some(Way::Local { steps: 5, size: 0.1 }));
        assert_eq!(spec.optimiser.average, Some(Weights::Uniform { from: 5 }));
    }

    #[test]
    fn a_way_is_a_word_or_a_table() {
        for (text, way) in [
            ("'response'", Way::Response),
            ("{ two-stages = { first = 0.5 } }", Way::TwoStages { first: 0.5 }),
            ("'truncated'", Way::Truncated),
            ("'sum'", Way::Sum),
            ("'mean'", Way::Mean),
        ] {
            let spec = Spec::parse(&WHOLE.replace("[output]", &format!("way = {text}\n[output]"))).unwrap();
            assert_eq!(spec.privacy.way, Some(way));
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_the_nearest_key() {
        let (sentence, hint) = said(&WHOLE.replace("clip =", "clp ="));
        assert!(sentence.starts_with("line 9: unknown field `clp`"), "{sentence}");
        assert!(hint.starts_with("did you mean `clip`?"), "{hint}");
        let (sentence, hint) = said(&WHOLE.replace("[output]", "[model]\nname = \"perceptorn\"\n[output]"));
        assert!(
            sentence.contains("unknown variant `perceptorn`") && hint.contains("`perceptron`"),
            "{sentence} {hint}"
        );
        assert!(said(&WHOLE.replace("steps = 10", "")).0.contains("missing field `steps`"));
    }
}
