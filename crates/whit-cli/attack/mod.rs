//! Attacks on a declaration, by somebody who chooses questions, trainings and declarations and sees all that the command lets out.
//!
//! Each attack works on two neighbouring data sets that it makes up, for the declared unit: what is said before a charge must be the same to
//! the letter, what is said after it may differ in released numbers only. Nobody's rows are read.

pub(crate) mod dice;
pub(crate) mod ground;
pub(crate) mod known;
pub(crate) mod owner;
pub(crate) mod printed;
pub(crate) mod questions;
pub(crate) mod trainings;

use dice::Dice;
use ground::{Ground, GroundRow};
use printed::Printed;
use questions::Pen;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What attacks came to.
#[derive(Debug)]
pub(crate) struct AttackOutcome {
    pub(crate) name: &'static str,
    pub(crate) tries: usize,
    /// How many of them had an answer, and were not refused for what they are.
    pub(crate) answered: usize,
    pub(crate) found: Vec<String>,
}

impl AttackOutcome {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, tries: 0, answered: 0, found: Vec::new() }
    }

    /// Compares two outputs of one thing.
    pub(crate) fn compare(&mut self, what: &str, one: &Printed, other: &Printed) {
        self.tries += 1;
        self.answered += usize::from(one.code == Some(0));
        if let Some(difference) = one.apart(other) {
            self.found.push(format!("{what}\n    {difference}"));
        }
        for printed in [one, other] {
            if printed.talk.contains("panicked") {
                self.found.push(format!("{what}\n    it panicked: {}", printed.talk));
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
    pub(crate) fn ask(&self, folder: &Path, words: &[&str], input: &str) -> Printed {
        let mut command = Command::new(&self.whit);
        command.args(words).current_dir(folder).env("NO_COLOR", "1").env("COLUMNS", "200");
        // What a ledger leaves elsewhere, to know that it existed, goes with the folder.
        command.env("WHIT_STATE", folder.join(".state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let run = || -> std::io::Result<Printed> {
            let mut child = command.spawn()?;
            if let Some(mut pipe) = child.stdin.take() {
                let _ = pipe.write_all(input.as_bytes()); // it may have ended before it read everything
            }
            let output = child.wait_with_output()?;
            Ok(Printed { code: output.status.code(), out: text(output.stdout), talk: text(output.stderr) })
        };
        let mut run = run;
        run().unwrap_or_else(|error| Printed { code: None, out: String::new(), talk: format!("not started: {error}") })
    }

    /// Lays two data sets of one declaration into folders of their own.
    pub(crate) fn lay(&self, name: &str, ground: &Ground, one: &[GroundRow], other: &[GroundRow]) -> [PathBuf; 2] {
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
fn transcripts(
    attacker: &Attacker,
    folders: &[PathBuf; 2],
    orders: &[String],
    exact: bool,
    outcome: &mut AttackOutcome,
) {
    // A preview looks for caps that would help where a question would tell nothing, which takes long.
    let words = ["shell", "--keep-going", "--epsilon", if exact { "5" } else { "0.001" }, "--delta", "1e-9"];
    let script = orders.iter().fold(String::new(), |script, order| script + order + ";\n");
    let ask = |folder: &Path| {
        let printed = attacker.ask(folder, &words, &script);
        if exact { printed } else { printed.masked() }
    };
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| ask(&folders[1]));
        [ask(&folders[0]), other.join().unwrap_or_else(|_| panic!("an attacker gave up"))]
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
            let printed = attacker.ask(folder, &words, &format!("{order};\n"));
            if exact { printed } else { printed.masked() }
        });
        let mut single = AttackOutcome::new("");
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
pub(crate) fn questions(attacker: &Attacker, grounds: &[Ground], each: usize) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("generated questions");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(1000 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        let folders = attacker.lay(&format!("questions-{number}"), ground, &rows, &other);
        let asked: Vec<String> = (0..each).map(|_| Pen { ground, dice: &mut dice }.question()).collect();
        let before = outcome.found.len();
        let (previewed, paid) = asked.split_at(each * 2 / 5);
        let previews: Vec<String> = previewed.iter().map(|sql| format!("\\preview {sql}")).collect();
        transcripts(attacker, &folders, &previews, true, &mut outcome);
        transcripts(attacker, &folders, paid, false, &mut outcome);
        for finding in &mut outcome.found[before..] {
            *finding = format!("{}: {finding}", ground.title);
        }
    }
    outcome
}

/// Declarations, each checked and shown on two neighbours.
pub(crate) fn declarations(attacker: &Attacker, grounds: &[Ground], each: usize) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("declarations");
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

/// What there is to try, in the order in which a reader would want to know.
type Attack = fn(&Attacker, &[Ground], usize) -> AttackOutcome;
pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("expressions", |attacker, grounds, _| known::expressions(attacker, grounds)),
    ("questions", |attacker, grounds, laps| questions(attacker, grounds, 6 * laps)),
    ("declarations", |attacker, grounds, _| declarations(attacker, grounds, 1)),
    ("previews", trainings::previews),
    ("runs", |attacker, grounds, _| trainings::runs(attacker, grounds)),
    ("types", |attacker, grounds, _| known::types(attacker, grounds)),
    ("sensitivities", |attacker, _, _| known::sensitivities(attacker)),
    ("digests", |attacker, _, _| known::digests(attacker)),
    ("clip", |attacker, _, _| known::underflow(attacker)),
    ("checkpoints", |attacker, _, _| known::checkpoints(attacker)),
    ("ledger", |attacker, _, _| known::ledger(attacker)),
];
