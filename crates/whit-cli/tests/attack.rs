//! An analyst who sees all that the command lets out gains nothing from refusals, previews and messages: what it says of neighbouring data
//! sets is the same, up to numbers that were released.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[expect(dead_code, reason = "the program attacks an owner's declaration too, and one thing at a time")]
#[path = "../attack/mod.rs"]
mod attack;

use attack::{AttackOutcome, Attacker, ground, known, trainings};
use std::path::PathBuf;

fn attacker(name: &str) -> Attacker {
    let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("attack").join(name);
    let _ = std::fs::remove_dir_all(&room); // it may not be there
    std::fs::create_dir_all(&room).unwrap();
    Attacker { whit: PathBuf::from(env!("CARGO_BIN_EXE_whit")), room }
}

fn grounds() -> Vec<ground::Ground> {
    (0..ground::own()).map(ground::declared).collect()
}

/// Nothing was found, and enough was answered that something could have been.
fn nothing(outcome: &AttackOutcome, answered: usize) {
    let found: Vec<&str> = outcome.found.iter().take(10).map(String::as_str).collect();
    assert!(
        found.is_empty(),
        "{}: {} of {} tries:\n{}",
        outcome.name,
        outcome.found.len(),
        outcome.tries,
        found.join("\n")
    );
    assert!(
        outcome.answered >= answered,
        "{}: only {} of {} were answered",
        outcome.name,
        outcome.answered,
        outcome.tries
    );
}

#[test]
fn two_thousand_questions_and_declarations_tell_nothing_of_a_unit() {
    let attacker = attacker("questions");
    let asked = attack::questions(&attacker, &grounds(), 105);
    let checked = attack::declarations(&attacker, &grounds(), 1);
    assert!(asked.tries + checked.tries >= 1900, "{} and {}", asked.tries, checked.tries);
    nothing(&asked, asked.tries / 3);
    nothing(&checked, checked.tries / 2);
}

#[test]
fn two_hundred_trainings_tell_nothing_of_a_unit_but_their_model() {
    let attacker = attacker("trainings");
    let previews = trainings::previews(&attacker, &grounds(), 6);
    assert!(previews.tries >= 200, "{}", previews.tries);
    nothing(&previews, previews.tries / 3);
    let runs = trainings::runs(&attacker, &grounds());
    nothing(&runs, runs.tries / 4);
}

#[test]
fn no_row_makes_an_expression_fail() {
    let outcome = known::expressions(&attacker("expressions"), &grounds());
    nothing(&outcome, outcome.tries / 2);
}

#[test]
fn no_value_chooses_a_type() {
    let outcome = known::types(&attacker("types"), &grounds());
    nothing(&outcome, outcome.tries / 2);
}

#[test]
fn no_unit_moves_an_answer_further_than_its_noise_covers() {
    let outcome = known::sensitivities(&attacker("sensitivities"));
    nothing(&outcome, outcome.tries / 4);
}

#[test]
fn no_digest_of_private_rows_leaves() {
    let outcome = known::digests(&attacker("digests"));
    nothing(&outcome, outcome.tries / 2);
}

#[test]
fn no_row_is_too_small_or_too_large_to_be_clipped() {
    let outcome = known::underflow(&attacker("underflow"));
    nothing(&outcome, known::EXTREMES.len());
}

/// What the attacks look for, they would find.
#[test]
fn a_unit_that_counts_twice_and_a_gradient_that_is_not_clipped_are_found() {
    // Two-sided geometric noise at ε = 1 errs by at most 3, 6 and 300 in 95 of 100 draws, for sensitivities of 1, 2 and 100.
    for (sensitivity, error) in [(1.0, 3.0), (2.0, 6.0), (100.0, 300.0)] {
        assert!(!known::moves_too_far(sensitivity, error), "{sensitivity}");
        assert!(known::moves_too_far(2.0 * sensitivity, error), "twice {sensitivity}");
    }
    assert!(known::moves_too_far(3.0, 6.0), "one more than two");
    let limit = known::step_allows(100.0, 10.0);
    for (scale, target) in known::EXTREMES {
        let slope: f64 = scale.parse::<f64>().unwrap() * target.parse::<f64>().unwrap();
        assert!(20.0 * slope / 10.0 > limit, "{scale} and {target} would move a step by less than {limit}");
    }
}

#[test]
fn one_charge_pays_for_one_model() {
    let outcome = known::checkpoints(&attacker("checkpoints"));
    nothing(&outcome, 1);
}

#[test]
fn no_changed_byte_makes_the_ledger_forget() {
    let outcome = known::ledger(&attacker("ledger"));
    nothing(&outcome, 0);
    assert!(outcome.tries >= 20, "{}", outcome.tries);
}
