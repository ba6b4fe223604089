//! What a training file says.

use super::features::{AskedFeature, ClassWeights, Missing, ScaleSpec, SplitSpec};
use super::network::ModelSpec;
use crate::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_core::declare::nearest;
use whit_learn::Projecting;
use whit_learn::augment::Augmenting;
use whit_learn::loss::LossFunction;
use whit_learn::model::Named;
use whit_learn::optimise::{Rule, Schedule, Weights};
use whit_learn::release::Arrangement;

/// A training file, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    /// The data set, of the `whit.toml` beside it.
    pub(crate) dataset: String,
    /// The columns that the model reads, and what is made of them.
    pub(crate) features: Vec<AskedFeature>,
    /// How many numbers a row has in columns of lists or bytes whose type does not say so.
    #[serde(default)]
    pub(crate) widths: BTreeMap<String, usize>,
    /// How columns of bytes are opened up.
    #[serde(default)]
    pub(crate) features_as: Opened,
    /// Every number is multiplied with this,
    #[serde(default)]
    pub(crate) scale: ScaleSpec,
    /// and this is added.
    #[serde(default)]
    pub(crate) offset: f32,
    /// What is done where a feature is missing.
    #[serde(default)]
    pub(crate) missing: Missing,
    /// What is to be predicted.
    pub(crate) target: String,
    /// How many classes there are, or their names; a number is predicted without.
    pub(crate) classes: Option<Classes>,
    /// How much the loss of a row counts, by its class.
    pub(crate) weights: Option<ClassWeights>,
    /// Which rows are learned from.
    #[serde(rename = "where")]
    pub(crate) learned: Option<String>,
    /// Which rows the model is tried on.
    pub(crate) evaluate_where: Option<String>,
    /// Or how rows are set aside for that.
    pub(crate) split: Option<SplitSpec>,
    /// Images are seen several times in a step.
    pub(crate) augment: Option<Augmenting>,
    /// Rows are projected on their private principal directions first.
    pub(crate) projection: Option<Projecting>,
    #[serde(default = "linear")]
    pub(crate) model: ModelSpec,
    pub(crate) loss: Option<LossFunction>,
    pub(crate) privacy: Privacy,
    /// Intervals are released around the parameters.
    pub(crate) intervals: Option<Around>,
    #[serde(default)]
    pub(crate) optimiser: Optimising,
    /// The best of several trainings is released, in the place of one.
    pub(crate) choose: Option<Choosing>,
    pub(crate) output: Output,
    /// All of it as it was read, for what is written over it.
    #[serde(skip)]
    pub(crate) raw: toml::Table,
}

/// Among which trainings the best is chosen, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choosing {
    /// How many trainings there are on average. How many there are is drawn, and nobody is told.
    pub(crate) runs: f64,
    #[serde(default)]
    pub(crate) law: RunsLaw,
    /// Standard deviation of the noise on each score, in units.
    pub(crate) noise: f64,
    /// The loss from which on a row counts nothing in a score, where a number is predicted.
    pub(crate) limit: Option<f64>,
    /// What each candidate sets, written over the file.
    pub(crate) among: Vec<toml::Table>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunsLaw {
    #[default]
    Logarithmic,
    Geometric,
}

impl RunsLaw {
    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Logarithmic => "logarithmic",
            Self::Geometric => "geometric",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Opened {
    #[default]
    Bytes,
    Bits,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "classes are a number of them, or a list of their names")]
pub(crate) enum Classes {
    Number(u32),
    Names(Vec<String>),
}

impl Classes {
    /// Their names; numbers from 0 where none are given.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Number(number) => (0..*number).map(|class| class.to_string()).collect(),
            Self::Names(names) => names.clone(),
        }
    }
}

/// What is promised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Privacy {
    /// The ε that the protected unit may lose; or else the noise.
    pub(crate) epsilon: Option<f64>,
    /// The δ at which ε holds; the least of the budgets where absent.
    pub(crate) delta: Option<f64>,
    /// Standard deviation of the noise, over the clip norm; instead of ε.
    pub(crate) noise: Option<f64>,
    /// The largest norm of what one unit adds to a step; nothing where labels are noisy.
    pub(crate) clip: Option<f64>,
    #[serde(default)]
    pub(crate) clipping: Clipped,
    /// How many units a step has, on average.
    pub(crate) batch: Option<u64>,
    /// The probability of being drawn, such as "1/100"; instead of the batch.
    pub(crate) rate: Option<String>,
    /// About how many units there are, as somebody knows without looking.
    pub(crate) units: Option<u64>,
    /// How many users there are: for whole users in batches of fixed size.
    pub(crate) users: Option<u64>,
    pub(crate) steps: u64,
    #[serde(default)]
    pub(crate) draw: Drawn,
    #[serde(default)]
    pub(crate) sampling: Sampled,
    pub(crate) way: Option<WaySpec>,
    /// What stands in the place of private features.
    pub(crate) padding: Option<Padding>,
    /// How much the public part counts, beside 1 for the private one.
    #[serde(default = "whole")]
    pub(crate) public: f64,
}

impl Privacy {
    /// The clip norm.
    pub(crate) fn clip(&self) -> Result<f64, Error> {
        self.clip.ok_or_else(|| {
            asked("privacy.clip is missing: the largest norm of what one unit adds to a step", "write clip = 1.0")
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Clipped {
    #[default]
    Flat,
    PerLayer,
    Normalising,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Drawn {
    #[default]
    Units,
    Users,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sampled {
    #[default]
    Poisson,
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum WaySpec {
    Mean,
    Truncated,
    Sum,
    Local {
        steps: u32,
        size: f64,
    },
    /// Noisy labels, by randomised response before the first step,
    Response,
    /// or those of some rows first, and of the others with the help of a model of these.
    TwoStages {
        first: f64,
    },
}

impl WaySpec {
    /// The share of rows whose noisy labels are made without a prior, where labels are noisy.
    pub(crate) fn first(self) -> Option<f64> {
        match self {
            Self::Response => Some(1.0),
            Self::TwoStages { first } => Some(first),
            Self::Mean | Self::Truncated | Self::Sum | Self::Local { .. } => None,
        }
    }

    /// Whether it learns from noisy labels.
    pub(crate) fn tells(self) -> bool {
        self.first().is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Padding {
    Mean(Vec<f32>),
    Gaussian { mean: Vec<f32>, deviation: Vec<f32> },
}

/// What is released to tell how sure one may be of parameters.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    /// How often intervals cover what they are about.
    #[serde(default = "usual")]
    pub(crate) confidence: f64,
    /// What a unit adds to the curvature is shortened to this, squared: the length of a row, with 1 for the constant, times the root of the largest
    /// second derivative of the loss.
    pub(crate) curvature: f64,
    /// Standard deviation of the noise of both matrices, over the squared bounds.
    pub(crate) noise: f64,
}

/// How θ moves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Optimising {
    #[serde(default)]
    rule: Ruled,
    momentum: Option<f64>,
    decay: Option<f64>,
    /// The size of every step; or else a schedule.
    size: Option<f64>,
    schedule: Option<Schedule>,
    pub(crate) radius: Option<f64>,
    pub(crate) average: Option<Weights>,
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
    pub(crate) fn rule(&self, noise: f64) -> Result<Rule, Error> {
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

    pub(crate) fn schedule(&self) -> Result<Schedule, Error> {
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
pub(crate) struct Output {
    /// The file of the model, relative to the training file.
    pub(crate) model: PathBuf,
    /// How the tensors of that file are named and laid out.
    #[serde(default)]
    pub(crate) layout: Arrangement,
    /// Where the model goes once more, as a graph that other runtimes read.
    pub(crate) onnx: Option<PathBuf>,
    /// A checkpoint is written after so many steps each.
    #[serde(default = "often")]
    pub(crate) checkpoint_every: u64,
    /// Noise that comes again with this seed: for tests and demonstrations. It is non-private, and costs everything.
    pub(crate) seed: Option<u64>,
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

fn linear() -> ModelSpec {
    ModelSpec::of(Named::Linear { bias: true })
}

pub(crate) fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::asked(sentence, hint)
}

/// A rule, a schedule and weights as one text, for the meaning of a run.
pub(crate) struct Moves<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) schedule: &'a Schedule,
    pub(crate) radius: Option<f64>,
    pub(crate) average: Option<Weights>,
}

impl Spec {
    /// Reads a training file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|why| {
            asked(format!("`{}` cannot be read: {why}", path.display()), "docs/learning.md has one to begin with")
        })?;
        let spec = Self::parse(&text).map_err(|error| error.at(format!("`{}`", path.display())))?;
        Ok(spec.beside(path))
    }

    /// The same, where files that it reads are found from the folder of the training file.
    pub(crate) fn beside(mut self, training: &Path) -> Self {
        self.model.start = self.model.start.map(|file| Self::next_to(training, &file));
        self
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |error: toml::de::Error| misread(text, &error);
        let spec: Self = toml::from_str(text).map_err(wrong)?;
        Ok(Self { raw: text.parse().map_err(wrong)?, ..spec })
    }

    /// Takes what several files said together.
    pub(crate) fn of_table(table: toml::Table) -> Result<Self, Error> {
        table.try_into().map_err(|error: toml::de::Error| misread("", &error))
    }

    /// A file that the training file names.
    pub(crate) fn next_to(training: &Path, path: &Path) -> PathBuf {
        training.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Writes one table over another: tables go into tables, and everything else takes the place of what was there.
pub(crate) fn merge(below: &mut toml::Table, above: &toml::Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// What is wrong with a text, and where.
pub(crate) fn misread(text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message();
    let key = error.span().and_then(|span| key_before(text, span.start));
    let wrong = asked(in_words(message.lines().next().unwrap_or(message), key), hint(message));
    match line {
        Some(line) => wrong.at(format!("line {line}")),
        None => wrong,
    }
}

/// The key whose value begins at a place of a text, where both stand on one line.
fn key_before(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    let (key, value) = line.rsplit_once('=')?;
    let key = key.rsplit(['{', ',']).next().unwrap_or(key).trim();
    (value.trim().is_empty() && !key.is_empty()).then_some(key)
}

/// What the reader of TOML says, in words of those who write it.
fn in_words(message: &str, key: Option<&str>) -> String {
    let kind = |kind: &str| match kind.trim() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, from 0 on".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" | "path string" | "a borrowed string" => "text in quotes".to_owned(),
        "a sequence" => "a list, in square brackets".to_owned(),
        "a map" => "a table".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("enum ") => {
            "a table, or one of the words of this key".to_owned()
        }
        other => other.to_owned(),
    };
    let found = |found: &str| {
        let (what, value) = found.split_once(' ').unwrap_or((found, ""));
        let what = match what {
            "string" => "text",
            "integer" | "floating" => "the number",
            "sequence" => "a list",
            "map" => "a table",
            "boolean" => "the word",
            other => other,
        };
        format!("{what} {}", value.trim_start_matches("point ").replace('`', "")).trim_end().to_owned()
    };
    let subject = key.map_or_else(|| "this".to_owned(), |key| format!("`{key}`"));
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((is, wanted)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        return format!("{subject} has to be {}, and is {}", kind(wanted), found(is));
    }
    if let Some((keys, known)) =
        message.strip_prefix("unexpected keys in table: ").and_then(|keys| keys.split_once(", available keys: "))
    {
        return format!("unknown field `{keys}`: there are {known}");
    }
    match message {
        "duplicate key" => "this key stands there twice".to_owned(),
        message if message.starts_with("string values must be quoted") => format!("{subject} has to be text in quotes"),
        message => message.to_owned(),
    }
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
        let error = Spec::parse(text).unwrap_err();
        (error.to_string(), error.hint.unwrap_or_default())
    }

    #[test]
    fn a_short_file_is_enough() {
        let spec = Spec::parse(WHOLE).unwrap();
        assert_eq!(spec.classes.unwrap().names(), ["0", "1"]);
        assert_eq!(spec.optimiser.schedule().unwrap(), Schedule::Constant { size: 0.1 });
        assert_eq!((spec.model.named, spec.scale), (Named::Linear { bias: true }, ScaleSpec::By(1.0)));
    }

    #[test]
    fn everything_can_be_said() {
        let text = WHOLE.replace("[output]", "way = { local = { steps = 5, size = 0.1 } }\npadding = { gaussian = { mean = [0], deviation = [1] } }\nsampling = 'fixed'\n[model]\nname = 'perceptron'\nhidden = [4]\n[optimiser]\nrule = 'adam'\nschedule = { power = { first = 0.5, decay = 0.6 } }\naverage = { uniform = { from = 5 } }\n[output]\nseed = 3");
        let spec = Spec::parse(&text).unwrap();
        assert_eq!(spec.privacy.way, Some(WaySpec::Local { steps: 5, size: 0.1 }));
        assert_eq!(spec.optimiser.average, Some(Weights::Uniform { from: 5 }));
    }

    #[test]
    fn a_way_is_a_word_or_a_table() {
        for (text, way) in [
            ("'response'", WaySpec::Response),
            ("{ two-stages = { first = 0.5 } }", WaySpec::TwoStages { first: 0.5 }),
            ("'truncated'", WaySpec::Truncated),
            ("'sum'", WaySpec::Sum),
            ("'mean'", WaySpec::Mean),
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

    #[test]
    fn no_type_of_the_reader_is_named() {
        for (old, new, sentence) in [
            ("batch = 100", "batch = \"a\"", "line 10: `batch` has to be a whole number, from 0 on, and is text \"a\""),
            ("steps = 10", "steps = -1", "line 12: `steps` has to be a whole number, from 0 on, and is the number -1"),
            ("epsilon = 1.0", "epsilon = \"a\"", "`epsilon` has to be a number, and is text \"a\""),
            ("[\"a\", \"b\"]", "\"a\"", "`features` has to be a list, in square brackets, and is text \"a\""),
            ("\"m.safetensors\"", "3", "`model` has to be text in quotes, and is the number 3"),
            ("\"visits\"", "visits", "`dataset` has to be text in quotes"),
            ("clip = 1.0", "clip = 1.0\nclip = 2.0", "this key stands there twice"),
            ("steps = 10", "steps = 10\nway = { local = { step = 1 } }", "unknown field `step`: there are steps, size"),
            ("classes = 2", "classes = { a = 1 }", "classes are a number of them, or a list of their names"),
        ] {
            assert!(WHOLE.contains(old), "{old}");
            let (found, _) = said(&WHOLE.replace(old, new));
            assert!(found.contains(sentence), "{found}");
        }
    }
}
