//! Attacks on a declaration, by somebody who chooses questions, trainings and declarations and sees all that the command lets out.
//!
//! Each attack works on two neighbouring data sets that it makes up, for the declared unit: what is said before a charge must be the same to
//! the letter, what is said after it may differ in released numbers only. Nobody's rows are read.

pub(crate) mod dice;
pub(crate) mod ground;
pub(crate) mod known;
pub(crate) mod owner;
pub(crate) mod questions;
pub(crate) mod told;
pub(crate) mod trainings;

use dice::Dice;
use ground::{Ground, Row};
use questions::Pen;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use told::Told;

/// What attacks came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) tries: usize,
    /// How many of them had an answer, and were not refused for what they are.
    pub(crate) answered: usize,
    pub(crate) found: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, tries: 0, answered: 0, found: Vec::new() }
    }

    /// Compares two tellings of one thing.
    pub(crate) fn compare(&mut self, what: &str, one: &Told, other: &Told) {
        self.tries += 1;
        self.answered += usize::from(one.code == Some(0));
        if let Some(difference) = one.apart(other) {
            self.found.push(format!("{what}\n    {difference}"));
        }
        for told in [one, other] {
            if told.talk.contains("panicked") {
                self.found.push(format!("{what}\n    it panicked: {}", told.talk));
            }
        }
    }
}

/// The command, and a folder to work in.
pub(crate) struct Attacker {
    pub(crate) whit: PathBuf,
    pub(crate) room: PathBuf,
}

impl Attacker {
    /// Runs one command in a folder.
    pub(crate) fn ask(&self, folder: &Path, words: &[&str], input: &str) -> Told {
        let mut command = Command::new(&self.whit);
        command.args(words).current_dir(folder).env("NO_COLOR", "1").env("COLUMNS", "200");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let run = || -> std::io::Result<Told> {
            let mut child = command.spawn()?;
            if let Some(mut pipe) = child.stdin.take() {
                let _ = pipe.write_all(input.as_bytes()); // it may have ended before it read everything
            }
            let output = child.wait_with_output()?;
            Ok(Told { code: output.status.code(), out: text(output.stdout), talk: text(output.stderr) })
        };
        let mut run = run;
        run().unwrap_or_else(|error| Told { code: None, out: String::new(), talk: format!("not started: {error}") })
    }

    /// Lays two data sets of one declaration into folders of their own.
    pub(crate) fn lay(&self, name: &str, ground: &Ground, one: &[Row], other: &[Row]) -> [PathBuf; 2] {
        let folders = ["one", "other"].map(|side| self.room.join(name).join(side));
        for (folder, rows) in folders.iter().zip([one, other]) {
            if let Err(error) = ground.lay(folder, rows) {
                panic!("`{}` cannot be written: {error}", folder.display());
            }
        }
        folders
    }
}

/// Runs all questions in one go on both sides; those that differ are asked again one by one, to say which.
fn transcripts(attacker: &Attacker, folders: &[PathBuf; 2], orders: &[String], exact: bool, outcome: &mut Outcome) {
    let words = ["shell", "--keep-going", "--epsilon", "0.001", "--delta", "1e-9"];
    let script = orders.iter().fold(String::new(), |script, order| script + order + ";\n");
    let both = folders.each_ref().map(|folder| {
        let told = attacker.ask(folder, &words, &script);
        if exact { told } else { told.masked() }
    });
    outcome.tries += orders.len();
    let refused = both[0].talk.lines().filter(|line| line.starts_with("error:")).count();
    // A session that cannot even be opened answers nothing.
    outcome.answered += if both[0].code == Some(0) { orders.len().saturating_sub(refused) } else { 0 };
    if both[0] == both[1] && !both[0].talk.contains("panicked") {
        return;
    }
    let before = outcome.found.len();
    for order in orders {
        let [one, other] = folders.each_ref().map(|folder| {
            let told = attacker.ask(folder, &words, &format!("{order};\n"));
            if exact { told } else { told.masked() }
        });
        let mut single = Outcome::new("");
        single.compare(order, &one, &other);
        outcome.found.append(&mut single.found);
    }
    if outcome.found.len() == before {
        // Together they differ and alone they do not: that is a difference too.
        let difference = both[0].apart(&both[1]).unwrap_or_else(|| "it panicked".to_owned());
        outcome.found.push(format!("{} orders together\n    {difference}", orders.len()));
    }
}

/// Generated questions, on neighbours of every declaration: previews to the letter, answers up to their numbers.
pub(crate) fn questions(attacker: &Attacker, grounds: &[Ground], each: usize) -> Outcome {
    let mut outcome = Outcome::new("generated questions");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(1000 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        let folders = attacker.lay(&format!("questions-{number}"), ground, &rows, &other);
        let asked: Vec<String> = (0..each).map(|_| Pen { ground, dice: &mut dice }.question()).collect();
        let previews: Vec<String> = asked.iter().map(|sql| format!("\\preview {sql}")).collect();
        let before = outcome.found.len();
        transcripts(attacker, &folders, &previews, true, &mut outcome);
        let some: Vec<String> = asked.into_iter().enumerate().filter(|(i, _)| i % 3 == 0).map(|(_, sql)| sql).collect();
        transcripts(attacker, &folders, &some, false, &mut outcome);
        for finding in &mut outcome.found[before..] {
            *finding = format!("{}: {finding}", ground.title);
        }
    }
    outcome
}

/// Declarations, each checked and shown on two neighbours.
pub(crate) fn declarations(attacker: &Attacker, grounds: &[Ground], each: usize) -> Outcome {
    let mut outcome = Outcome::new("declarations");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(7000 + number as u64);
        for lap in 0..each {
            let rows = ground.rows(12, &mut dice);
            let other = ground.neighbour(&rows, &mut dice);
            let folders = attacker.lay("declarations", ground, &rows, &other);
            for words in [&["check"][..], &["check", "--json"], &["ledger", "--json"]] {
                let [one, other] = folders.each_ref().map(|folder| attacker.ask(folder, words, ""));
                outcome.compare(&format!("{}, lap {lap}: whit {}", ground.title, words.join(" ")), &one, &other);
            }
        }
    }
    outcome
}

/// Everything, in the order in which a reader would want to know.
pub(crate) fn all(
    attacker: &Attacker,
    grounds: &[Ground],
    lap: usize,
    watch: &mut dyn FnMut(&Outcome),
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut done = |outcome: Outcome| {
        watch(&outcome);
        outcomes.push(outcome);
    };
    done(known::expressions(attacker, grounds));
    done(questions(attacker, grounds, 6 * lap));
    done(declarations(attacker, grounds, 1));
    done(trainings::previews(attacker, grounds, lap));
    done(trainings::runs(attacker, grounds));
    done(known::types(attacker, grounds));
    done(known::sensitivities(attacker));
    done(known::digests(attacker));
    done(known::underflow(attacker));
    done(known::checkpoints(attacker));
    done(known::ledger(attacker));
    outcomes
}
