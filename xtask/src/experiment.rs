//! `cargo xtask experiment`: makes the data of an experiment, and runs it.

use crate::{cargo, finish, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one whose data is simulated, whatever else there is.
const SIMULATED: &str = "element_logistic";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    name: String,
    data: Option<PathBuf>,
    small: bool,
    /// How many seeds, where that was said: simulated data is new for each.
    seeds: Option<String>,
    /// What goes to `whit experiment`.
    rest: Vec<String>,
}

impl Asked {
    fn read(words: &[String], known: &[String]) -> Result<Self, String> {
        let all = known.join(", ");
        let (name, words) = words.split_first().ok_or_else(|| format!("name an experiment: {all}"))?;
        if !known.contains(name) {
            return Err(format!("there is no experiment `{name}`; there are: {all}"));
        }
        let mut asked = Self { name: name.clone(), data: None, small: false, seeds: None, rest: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--data" => {
                    let folder = words.next().ok_or("--data needs a folder")?;
                    asked.data = Some(folder.into());
                }
                "--small" => asked.small = true,
                _ => asked.rest.push(word.clone()),
            }
        }
        let seeds = asked.rest.iter().position(|word| word == "--seeds");
        asked.seeds = seeds.and_then(|at| asked.rest.get(at + 1)).cloned();
        asked.small |= asked.data.is_none() && asked.name != SIMULATED;
        Ok(asked)
    }

    /// Where the data goes, and what comes of it.
    fn folder(&self) -> PathBuf {
        Path::new("out").join(if self.small { format!("{}-small", self.name) } else { self.name.clone() })
    }

    /// The words for the program that makes the data.
    fn prepare(&self) -> Vec<String> {
        let mut words = vec![self.name.clone(), "--to".into(), self.folder().display().to_string()];
        words.extend(self.small.then(|| "--small".to_owned()));
        if let Some(data) = &self.data {
            words.extend(["--data".into(), data.display().to_string()]);
        }
        if let Some(seeds) = self.seeds.as_ref().filter(|_| self.name == SIMULATED) {
            words.extend(["--seeds".into(), seeds.clone()]);
        }
        words
    }

    /// The words for `whit`.
    fn whit(&self) -> Vec<String> {
        let file = if self.small { "small.toml" } else { "experiment.toml" };
        let within = |name: &str| self.folder().join(name).display().to_string();
        let file = Path::new("examples").join(&self.name).join(file).display().to_string();
        let (config, plot) = (within("whit.toml"), within(&format!("{}.svg", self.name)));
        let words = ["experiment".into(), file, "--config".into(), config, "--plot".into(), plot];
        words.into_iter().chain(self.rest.iter().cloned()).collect()
    }
}

/// The examples that are experiments.
fn known() -> Result<Vec<String>, String> {
    let folder = root().join("examples");
    let fail = |error: std::io::Error| format!("`{}` could not be read: {error}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.path().join("experiment.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut asked = Asked::read(words, &known()?)?;
    // All that follows runs in the workspace's folder, wherever we were called.
    if let Some(data) = &mut asked.data {
        *data = data.canonicalize().map_err(|why| format!("`{}` cannot be read: {why}", data.display()))?;
    }
    // With the whole workspace, so that features are those of every other build and nothing is compiled a second time for one of the two.
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--workspace", "--bin", "whit", "--example", "prepare"]);
    finish(build, "building the command and the program that makes data")?;
    let here = std::env::current_exe().map_err(|error| format!("where this program lies is not known: {error}"))?;
    let built = here.parent().and_then(Path::parent).map(|target| target.join("release"));
    let built = built.ok_or("this program does not lie in a target folder")?;
    let mut prepare = Command::new(built.join("examples").join("prepare"));
    prepare.args(asked.prepare()).current_dir(root());
    finish(prepare, "preparing data")?;
    let mut whit = Command::new(built.join("whit"));
    whit.args(asked.whit()).current_dir(root());
    finish(whit, "the experiment")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Asked::read(&words(line), &words("element_logistic mnist"))
    }

    #[test]
    fn data_or_its_absence_says_which_experiment_it_is() {
        let small = asked("mnist --json").unwrap();
        assert_eq!(small.prepare().join(" "), "mnist --to out/mnist-small --small");
        assert_eq!(
            small.whit().join(" "),
            "experiment examples/mnist/small.toml --config out/mnist-small/whit.toml --plot out/mnist-small/mnist.svg --json"
        );
        let real = asked("mnist --data d --only a --seeds 4").unwrap();
        assert_eq!(real.prepare().join(" "), "mnist --to out/mnist --data d");
        assert!(real.whit().join(" ").ends_with("out/mnist/mnist.svg --only a --seeds 4"));
        let simulated = asked("element_logistic --seeds 4").unwrap();
        assert_eq!(simulated.prepare().join(" "), "element_logistic --to out/element_logistic --seeds 4");
        assert!(asked("element_logistic --small").unwrap().whit()[1].ends_with("small.toml"));
    }

    #[test]
    fn what_is_not_there_is_reported_with_what_is() {
        assert_eq!(asked("mnits").unwrap_err(), "there is no experiment `mnits`; there are: element_logistic, mnist");
        assert!(asked("").is_err() && asked("mnist --data").is_err());
        assert_eq!(known().unwrap(), ["cifar", "element_logistic", "mnist", "retail"]);
    }
}
