//! `cargo xtask attack`: attacks on whit's own declarations, or on an owner's.
//!
//! With `--config whit.toml` the owner's unit, columns, caps and keys are attacked on rows that are made up; none of the owner's rows is read.

#[path = "mod.rs"]
mod attack;

use attack::{ATTACKS, Attacker, ground, owner};
use std::path::PathBuf;
use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "it is a program, and this is what it says")]
fn main() -> ExitCode {
    let (mut config, mut laps, mut only) = (None, 8_usize, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--config", Some(file)) => config = Some(PathBuf::from(file)),
            ("--laps", Some(number)) if number.parse::<usize>().is_ok_and(|n| n > 0) => {
                laps = number.parse().unwrap_or(laps);
            }
            ("--only", Some(name)) if ATTACKS.iter().any(|(known, _)| *known == name) => only = Some(name),
            _ => {
                let names: Vec<&str> = ATTACKS.iter().map(|(name, _)| *name).collect();
                eprintln!(
                    "error: `{word}` is no option here, or has no value that makes sense\n  hint: --config FILE names a declaration, --laps N says how long to try (8), --only NAME is one of {}",
                    names.join(", ")
                );
                return ExitCode::from(2);
            }
        }
    }
    let program = std::env::current_exe().ok();
    let command = program.as_deref().and_then(|path| path.parent()?.parent()).map(|folder| folder.join("whit"));
    let Some(whit) = command.filter(|path| path.is_file()) else {
        eprintln!("error: the command `whit` is not built\n  hint: `cargo xtask attack` builds it first");
        return ExitCode::FAILURE;
    };
    let attacker = Attacker { whit, room: std::env::temp_dir().join(format!("whit-attack-{}", std::process::id())) };
    let grounds = match &config {
        None => Ok((0..ground::own()).map(ground::declared).collect()),
        Some(file) => owner::declared(&attacker, file),
    };
    let grounds: Vec<ground::Ground> = match grounds {
        Ok(grounds) => grounds,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            return ExitCode::from(2);
        }
    };
    println!("{:<42} {:>7} {:>9} {:>6}", "attack", "tries", "answered", "found");
    let mut outcomes = Vec::new();
    for (name, attack) in ATTACKS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let outcome = attack(&attacker, &grounds, laps);
        println!("{:<42} {:>7} {:>9} {:>6}", outcome.name, outcome.tries, outcome.answered, outcome.found.len());
        outcome.found.iter().take(6).for_each(|finding| println!("  {name}: {finding}"));
        outcomes.push(outcome);
    }
    let _ = std::fs::remove_dir_all(&attacker.room); // nothing of it is worth keeping
    let found: usize = outcomes.iter().map(|outcome| outcome.found.len()).sum();
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
