//! Errors as programs read them: who refused, how much is left, and what would fit.

use super::{TRAINING, asking, room, room_of_sums, session};
use whit::Refusal;
use whit::core::Kind as UnitKind;
use whit::core::release::ShortOf;
use whit::error::{ErrorKind, Reason};
use whit::train::{Evaluation, Request, Training};

/// What a refusal by the budget of events says: what was asked, and what is left.
fn short(refusal: &Refusal) -> (f64, f64) {
    let shortfall = refusal.shortfall.as_ref().unwrap();
    assert_eq!((shortfall.unit.kind(), shortfall.analyst.as_ref()), (UnitKind::Event, None));
    let ShortOf::Epsilon { asked, left, delta } = shortfall.of else { panic!("{refusal:?}") };
    assert!((0.0..=1e-6).contains(&delta) && asked > left, "{refusal:?}");
    (asked, left)
}

#[test]
fn a_question_that_is_refused_says_in_numbers_what_is_left_and_what_would_fit() {
    let folder = room_of_sums("refused");
    let mut session = session(&folder);
    session.ask("SELECT COUNT(*) FROM visits", &asking(2.0)).unwrap();
    let sql = "SELECT SUM(x) FROM visits";
    let error = session.ask(sql, &asking(2.0)).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!((error.kind, error.to_string()), (ErrorKind::Refused, refusal.to_string()));
    let (asked, left) = short(refusal);
    assert!((1.99..=2.01).contains(&asked) && (0.99..=1.01).contains(&left), "{asked} of {left}");
    let fits = refusal.shortfall.as_ref().unwrap().fits.unwrap();
    assert!(fits <= 1.01 && error.hint.as_ref().unwrap().contains(&format!("`asking.epsilon = {fits}`")), "{error:?}");
    assert_eq!(session.history().unwrap().len(), 1, "nothing was charged for it");
    session.ask(sql, &asking(fits)).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_that_is_refused_says_the_same() {
    let folder = room("refused-training");
    std::fs::write(folder.join("train.toml"), TRAINING.replace("noise = 20.0", "noise = 0.3")).unwrap();
    let mut session = session(&folder);
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let foreseen = session.preview_training(&Request::new(&training), &mut ()).unwrap().denied.unwrap();
    let error = session.train(&Request::new(&training), &mut ()).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!((error.kind, error.to_string()), (ErrorKind::Refused, refusal.to_string()));
    assert_eq!(error, foreseen);
    assert!((2.9..=3.0).contains(&short(refusal).1), "{refusal:?}");
    assert!(session.history().unwrap().is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_program_may_do_something_about_has_a_reason() {
    let folder = room("reasons");
    let mut session = session(&folder);
    let ledger = folder.join("whit.ledger");
    assert_eq!(session.verify().unwrap_err().reason, Some(Reason::NoLedger(ledger.clone())));
    assert_eq!(session.void(1, "there is none").unwrap_err().reason, Some(Reason::NoLedger(ledger)));
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let resumed = Request { resume: true, ..Request::new(&training) };
    assert_eq!(session.train(&resumed, &mut ()).unwrap_err().reason, Some(Reason::NoRun));
    let curve = Request { curve: true, ..Request::new(&training) };
    assert_eq!(session.train(&curve, &mut ()).unwrap_err().reason, Some(Reason::OwnerOnly));
    let evaluation = Evaluation { training: &training, model: None, owner: None, memory: None };
    assert_eq!(session.evaluate(&evaluation).unwrap_err().reason, Some(Reason::OwnerOnly));
    assert_eq!(session.ask("SELECT nothing", &asking(1.0)).unwrap_err().reason, None, "people read why");
    std::fs::remove_dir_all(folder).unwrap();
}
