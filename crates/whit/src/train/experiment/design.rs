//! What an experiment file says, and the training files that come of it.

use crate::Error;
use crate::train::prepare::UNCLIPPED;
use crate::train::spec::{Spec, asked, merge, misread};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use whit_core::declare::nearest;

/// The noise that a plan names where none is drawn: the least that it may.
const UNHEARD: f64 = 1e-9;

/// An experiment, as its file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The headline.
    pub title: String,
    /// What models are compared by.
    #[serde(default)]
    pub measure: Measured,
    /// How often each training is repeated.
    #[serde(default = "once")]
    pub seeds: u64,
    /// What is varied from row to row of a table.
    pub across: Option<Varied>,
    /// What is varied from table to table.
    pub panels: Option<Varied>,
    /// The parameters that a distance is measured from, beside the declaration.
    pub truth: Option<String>,
    /// What is compared.
    #[serde(rename = "arm", default)]
    pub arms: Vec<Arm>,
}

/// What models are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// The share of rows that is predicted right.
    #[default]
    Accuracy,
    /// The mean loss.
    Loss,
    /// How far the parameters are from the truth.
    Distance,
}

/// A key of the training files, and the values that it takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Varied {
    /// With points between the tables that lead there.
    pub key: Option<String>,
    /// The values.
    pub values: Vec<Value>,
    /// What people call it.
    name: Option<String>,
}

impl Varied {
    /// What people call it.
    pub fn name(&self) -> &str {
        self.name.as_deref().or(self.key.as_deref()).unwrap_or("panel")
    }

    /// A value as people write it.
    pub fn word(&self, place: usize) -> String {
        self.values.get(place).map(word).unwrap_or_default()
    }

    /// The values as numbers, where all of them are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        self.values.iter().map(number).collect()
    }
}

/// One of those that are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Its training file, beside the experiment file.
    file: PathBuf,
    /// What differs from that file.
    #[serde(default)]
    set: Table,
    /// Whether there is noise, and contributions are clipped.
    #[serde(default = "yes")]
    pub private: bool,
}

/// One training.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) panel: Option<usize>,
    pub(crate) arm: usize,
    pub(crate) value: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) spec: Spec,
}

fn once() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// An error with the name of the arm that it is about.
pub(crate) fn of_arm(arm: &str, error: Error) -> Error {
    error.at(format!("arm `{arm}`"))
}

fn text_of(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|why| {
        asked(format!("`{}` cannot be read: {why}", path.display()), "docs/learning.md has one to begin with")
    })
}

/// The error of a file, with its name.
fn in_file(path: &Path, error: Error) -> Error {
    error.at(format!("`{}`", path.display()))
}

impl Design {
    /// Reads an experiment file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = text_of(path)?;
        Self::parse(&text).map_err(|error| in_file(path, error))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let design: Self = toml::from_str(text).map_err(|error| misread(text, &error))?;
        design.check()?;
        Ok(design)
    }

    fn check(&self) -> Result<(), Error> {
        if self.arms.is_empty() {
            return Err(asked("there is nothing to compare", "write an [[arm]] with `name` and `file` for each"));
        }
        for (place, arm) in self.arms.iter().enumerate() {
            if self.arms[..place].iter().any(|other| other.name == arm.name) {
                return Err(asked(format!("two arms are called `{}`", arm.name), "give each a name of its own"));
            }
        }
        if self.seeds == 0 {
            return Err(asked("`seeds` is 0, so nothing would be learned", "3 show roughly how far chance reaches"));
        }
        for (what, values) in [("across", &self.across), ("panels", &self.panels)] {
            if values.as_ref().is_some_and(|values| values.values.is_empty()) {
                return Err(asked(format!("`{what}` has no values"), "write values = [0.5, 1.0, 2.0]"));
            }
        }
        if self.across.as_ref().is_some_and(|across| across.key.is_none()) {
            return Err(asked("`across` names no key", "write key = \"privacy.epsilon\""));
        }
        match (self.measure, &self.truth) {
            (Measured::Distance, None) => Err(asked(
                "a distance is measured from the truth, and nothing says what that is",
                "write truth = \"truth.json\": a list of numbers beside the declaration",
            )),
            (Measured::Accuracy | Measured::Loss, Some(_)) => {
                Err(asked("`truth` is for distances", "write measure = \"distance\", or leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// The places of arms that were asked for by name; all where none are.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        for name in names {
            if !self.arms.iter().any(|arm| arm.name == *name) {
                let known = || self.arms.iter().map(|arm| arm.name.as_str());
                let hint = match nearest(name, known()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", known().collect::<Vec<_>>().join(", ")),
                };
                return Err(asked(format!("there is no arm `{name}`"), hint));
            }
        }
        let all = 0..self.arms.len();
        Ok(all.filter(|&arm| names.is_empty() || names.contains(&self.arms[arm].name)).collect())
    }

    /// Whether an arm is the same whatever is varied from row to row: one without noise has no ε.
    pub fn is_level(&self, arm: usize) -> bool {
        let epsilon = self.across.as_ref().is_some_and(|across| across.key.as_deref() == Some("privacy.epsilon"));
        self.across.is_none() || (epsilon && !self.arms[arm].private)
    }

    /// The name of a place between the tables, for a truth or a title.
    pub(crate) fn panel(&self, panel: Option<usize>) -> Option<String> {
        self.panels.as_ref().zip(panel).map(|(panels, panel)| panels.word(panel))
    }

    /// All trainings of some arms.
    pub(crate) fn jobs(&self, folder: &Path, arms: &[usize], seeds: u64) -> Result<Vec<Job>, Error> {
        let places = |values: &Option<Varied>| match values {
            None => vec![None],
            Some(values) => (0..values.values.len()).map(Some).collect::<Vec<_>>(),
        };
        let mut jobs = Vec::new();
        for &place in arms {
            let arm = &self.arms[place];
            let path = folder.join(&arm.file);
            let text = text_of(&path).map_err(|error| of_arm(&arm.name, error))?;
            let mut table: Table =
                toml::from_str(&text).map_err(|error| of_arm(&arm.name, in_file(&path, misread(&text, &error))))?;
            merge(&mut table, &arm.set);
            for panel in places(&self.panels) {
                for value in if self.is_level(place) { vec![None] } else { places(&self.across) } {
                    for seed in 0..seeds {
                        let spec = self.spec(&table, place, panel, value, seed);
                        let spec = spec.map_err(|error| of_arm(&arm.name, in_file(&path, error)))?.beside(&path);
                        jobs.push(Job { panel, arm: place, value, seed, spec });
                    }
                }
            }
        }
        Ok(jobs)
    }

    /// The training file of one training.
    fn spec(
        &self,
        table: &Table,
        place: usize,
        panel: Option<usize>,
        value: Option<usize>,
        seed: u64,
    ) -> Result<Spec, Error> {
        let (mut table, arm) = (table.clone(), &self.arms[place]);
        for (values, place) in [(&self.panels, panel), (&self.across, value)] {
            if let Some((values, place)) = values.as_ref().zip(place)
                && let Some(key) = &values.key
            {
                put(&mut table, key, values.values[place].clone())?;
            }
        }
        let (panel, value) = (self.panel(panel), self.across.as_ref().zip(value).map(|(across, v)| across.word(v)));
        fill_in(&mut table, panel.as_deref(), seed)?;
        if !arm.private {
            unprotect(&mut table);
        }
        let mut spec = Spec::of_table(table)?;
        if spec.choose.is_some() {
            return Err(asked(
                "`choose` is for one training that is released, and an experiment compares all of its own",
                "give the arm a training file without it",
            ));
        }
        let marks = [Some(arm.name.as_str()), panel.as_deref(), value.as_deref()];
        spec.output.seed = Some(mixed(seed, marks.into_iter().flatten()));
        Ok(spec)
    }
}

/// Sets a value by its key, with points between the tables that lead there.
fn put(table: &mut Table, key: &str, value: Value) -> Result<(), Error> {
    let mut at = table;
    let (way, last) = match key.rsplit_once('.') {
        Some((way, last)) => (way.split('.').collect(), last),
        None => (Vec::new(), key),
    };
    for part in way {
        let next = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(next) = next else {
            return Err(asked(format!("`{key}` leads through `{part}`, which is no table"), "name a key of the file"));
        };
        at = next;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

/// Fills `{panel}` and `{seed}` in, wherever a text has them. A text that is a number then, or a product of numbers, is that number: "{panel} * 30".
fn fill_in(table: &mut Table, panel: Option<&str>, seed: u64) -> Result<(), Error> {
    table.iter_mut().try_for_each(|(_, value)| fill_in_value(value, panel, seed))
}

fn fill_in_value(value: &mut Value, panel: Option<&str>, seed: u64) -> Result<(), Error> {
    match value {
        Value::Table(table) => fill_in(table, panel, seed),
        Value::Array(values) => values.iter_mut().try_for_each(|value| fill_in_value(value, panel, seed)),
        Value::String(text) if text.contains("{panel}") || text.contains("{seed}") => {
            let filled = filled(text, panel, seed)?;
            *value = product(&filled).unwrap_or(Value::String(filled));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The number that a text is, where it is one or a product of some.
fn product(text: &str) -> Option<Value> {
    let factors: Vec<&str> = text.split('*').map(str::trim).collect();
    let whole = factors.iter().try_fold(1_i64, |all, factor| all.checked_mul(factor.parse().ok()?));
    let number = || factors.iter().try_fold(1.0, |all: f64, factor| Some(all * factor.parse::<f64>().ok()?));
    whole.map(Value::Integer).or_else(|| number().filter(|number| number.is_finite()).map(Value::Float))
}

/// A text with `{panel}` and `{seed}` filled in.
pub(crate) fn filled(text: &str, panel: Option<&str>, seed: u64) -> Result<String, Error> {
    let text = text.replace("{seed}", &seed.to_string());
    match panel {
        Some(panel) => Ok(text.replace("{panel}", panel)),
        None if text.contains("{panel}") => {
            Err(asked(format!("`{text}` speaks of a panel, and there are none"), "write panels = { values = […] }"))
        }
        None => Ok(text),
    }
}

/// Takes clipping and calibrated noise out of a training file.
fn unprotect(table: &mut Table) {
    let Some(Value::Table(privacy)) = table.get_mut("privacy") else { return };
    privacy.remove("epsilon");
    privacy.remove("clipping");
    // Labels are learned from as they are.
    privacy.retain(|key, value| key != "way" || !has_noisy_labels(value));
    privacy.insert("noise".to_owned(), Value::Float(UNHEARD));
    let clip = privacy.get("clip").and_then(|clip| clip.as_float().or_else(|| clip.as_integer().map(|c| c as f64)));
    privacy.insert("clip".to_owned(), Value::Float(clip.unwrap_or(UNCLIPPED).max(UNCLIPPED)));
}

/// Whether a way is one of those that tell labels first.
fn has_noisy_labels(way: &Value) -> bool {
    match way {
        Value::String(way) => way == "response",
        Value::Table(way) => way.contains_key("two-stages"),
        _ => false,
    }
}

/// A seed that is another one for every arm, panel and value, and the same whichever of them are run.
fn mixed<'a>(seed: u64, words: impl Iterator<Item = &'a str>) -> u64 {
    // FNV-1a over the words, and the finaliser of SplitMix64.
    let bytes = words.flat_map(|word| word.bytes().chain([0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut z = hash.wrapping_add(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    fn said<T>(result: Result<T, Error>) -> (String, String) {
        let error = result.err().expect("an error");
        (error.to_string(), error.hint.unwrap_or_default())
    }

    #[test]
    fn tables_are_merged_deeply_and_lists_are_replaced() {
        let mut below = table("a = 1\n[privacy]\nclip = 1.0\nsteps = 5\n[model]\nname = 'perceptron'\nhidden = [1, 2]");
        merge(&mut below, &table("privacy = { steps = 9 }\nmodel = { hidden = [3] }\nb = { c = 2 }"));
        let expected =
            "a = 1\n[privacy]\nclip = 1.0\nsteps = 9\n[model]\nname = 'perceptron'\nhidden = [3]\n[b]\nc = 2";
        assert_eq!(below, table(expected));
    }

    #[test]
    fn a_key_with_points_leads_into_tables() {
        let mut into = table("[privacy]\nepsilon = 1.0");
        put(&mut into, "privacy.epsilon", Value::Float(2.0)).unwrap();
        put(&mut into, "optimiser.schedule.power.first", Value::Float(0.5)).unwrap();
        put(&mut into, "dataset", Value::String("a".into())).unwrap();
        let expected = "dataset = 'a'\n[privacy]\nepsilon = 2.0\n[optimiser]\nschedule = { power = { first = 0.5 } }";
        assert_eq!(into, table(expected));
        let (sentence, _) = said(put(&mut into, "dataset.name", Value::Integer(1)));
        assert!(sentence.contains("leads through `dataset`, which is no table"), "{sentence}");
    }

    #[test]
    fn placeholders_are_filled_in_wherever_they_stand() {
        let text = "a = 'k{panel}_s{seed}'\nb = ['{panel}', 'x']\nc = { units = '{panel} * 30', d = '1/{panel}', e = '0.{seed}*2' }\nf = '7'";
        let mut into = table(text);
        fill_in(&mut into, Some("5"), 3).unwrap();
        assert_eq!(into, table("a = 'k5_s3'\nb = [5, 'x']\nc = { units = 150, d = '1/5', e = 0.6 }\nf = '7'"));
        let (sentence, hint) = said(fill_in(&mut table("a = '{panel}'"), None, 0));
        assert!(sentence.contains("there are none") && hint.contains("panels ="), "{sentence} {hint}");
    }

    #[test]
    fn without_privacy_nothing_is_clipped_and_no_noise_is_calibrated() {
        let mut privacy = table("[privacy]\nepsilon = 1.0\nclip = 1\nclipping = 'normalising'\nsteps = 5");
        unprotect(&mut privacy);
        assert_eq!(privacy, table("[privacy]\nclip = 10000.0\nnoise = 1e-9\nsteps = 5"));
    }

    #[test]
    fn seeds_differ_by_arm_panel_and_value() {
        let words = [vec!["a", "b"], vec!["ab"], vec!["a", "b", "1"], vec!["b", "a"]];
        let mut seeds: Vec<u64> =
            words.iter().flat_map(|words| (0..50).map(|seed| mixed(seed, words.iter().copied()))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 200);
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let arm = "[[arm]]\nname = 'a'\nfile = 'a.toml'\n";
        let of = |text: &str| said(Design::parse(text));
        assert!(Design::parse(&format!("title = 't'\n{arm}")).is_ok());
        assert!(of("title = 't'").0.contains("nothing to compare"));
        assert!(of(&format!("title = 't'\n{arm}{arm}")).0.contains("two arms are called `a`"));
        assert!(of(&format!("title = 't'\nseeds = 0\n{arm}")).0.contains("`seeds` is 0"));
        assert!(of(&format!("title = 't'\nacross = {{ values = [1] }}\n{arm}")).0.contains("names no key"));
        assert!(of(&format!("title = 't'\npanels = {{ values = [] }}\n{arm}")).0.contains("no values"));
        assert!(of(&format!("title = 't'\nmeasure = 'distance'\n{arm}")).0.contains("what that is"));
        assert!(of(&format!("title = 't'\ntruth = 'x'\n{arm}")).0.contains("for distances"));
        let (sentence, hint) = of(&format!("title = 't'\nacros = {{ values = [1] }}\n{arm}"));
        assert!(sentence.starts_with("line 2: unknown field `acros`"), "{sentence}");
        assert!(hint.starts_with("did you mean `across`?"), "{hint}");
        let design = Design::parse(&format!("title = 't'\n{arm}[[arm]]\nname = 'users'\nfile = 'b'\n")).unwrap();
        assert_eq!(design.chosen(&["users".to_owned()]).unwrap(), [1]);
        assert_eq!(said(design.chosen(&["user".to_owned()])).1, "did you mean `users`?");
    }
}
