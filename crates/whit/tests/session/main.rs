//! A session as a program uses it: nothing here knows of the command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod awaited;
mod foreseen;
mod hints;
mod ledgers;
mod methods;
mod refusals;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use whit::account::ledger::Opening;
use whit::error::ErrorKind;
use whit::query::explain::Within;
use whit::query::plan::Asking;
use whit::session::{Options, Session};
use whit::train::{Evaluation, Outcome, Owner, Prediction, Request, Step, Training, Watch};

const DECLARED: &str = "[dataset.visits]\nsource = 'visits.csv'\nunit.protect = 'event'\n\
    columns.x = { type = 'float', bounds = [0.0, 1.0] }\ncolumns.y = 'int'\n\
    budget.event = { epsilon = 3.0, delta = 1e-6 }\n";
const TRAINING: &str = "dataset = 'visits'\nfeatures = ['x']\ntarget = 'y'\nclasses = 2\n\
    evaluate_where = 'x < 0.5'\n[privacy]\nnoise = 20.0\nclip = 1.0\nbatch = 10\nunits = 100\nsteps = 9\n\
    [optimiser]\nsize = 1.0\n[output]\nmodel = 'model.safetensors'\n";

fn room(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("whit-session-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let mut rows = "x,y\n".to_owned();
    for i in 0..100 {
        let _ = writeln!(rows, "0.{i:02},{}", i % 2); // a text takes everything
    }
    for (name, text) in [("visits.csv", rows.as_str()), ("whit.toml", DECLARED), ("train.toml", TRAINING)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

/// The same with a budget that adds up ε, at no δ.
fn room_of_sums(name: &str) -> PathBuf {
    let folder = room(name);
    std::fs::write(folder.join("whit.toml"), DECLARED.replace(", delta = 1e-6", "")).unwrap();
    folder
}

/// No head is kept elsewhere.
fn options() -> Options {
    Options { ledger: Opening::default(), ..Options::default() }
}

fn session(folder: &Path) -> Session {
    Session::open(&folder.join("whit.toml"), options()).unwrap()
}

fn asking(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), delta: Some(0.0), ..Asking::default() }
}

/// Counts steps, and stops after some.
#[derive(Default)]
struct Counting {
    steps: u64,
    stop_after: Option<u64>,
    losses: u64,
    wrote: Vec<PathBuf>,
}

impl Watch for Counting {
    fn step(&mut self, step: &Step<'_>) {
        self.steps += 1;
        self.losses += u64::from(step.loss.is_some());
        assert!(step.spent().is_some_and(|spent| spent[0].1.upper.is_finite()));
    }

    fn wrote(&mut self, file: &Path) {
        self.wrote.push(file.to_owned());
    }

    fn stop(&mut self) -> bool {
        self.stop_after == Some(self.steps)
    }
}

#[test]
fn who_only_looks_makes_no_ledger_and_what_is_refused_costs_nothing() {
    let folder = room("looks");
    let mut session = session(&folder);
    let sql = "SELECT COUNT(*) FROM visits";
    let foreseen = session.preview(sql, &asking(2.0)).unwrap();
    assert!(foreseen.fits.budgets.iter().all(|budget| budget.fits));
    assert!(session.within(sql, &asking(1.0), Within::Absolute(50.0)).unwrap().preview.prices[0].epsilon < 1.0);
    // An ε that is asked for is the most that one would pay, and what is suggested in its place does it.
    let more = session.within(sql, &asking(0.01), Within::Absolute(50.0)).map(|_| ()).unwrap_err();
    assert!(more.kind == ErrorKind::Asked && more.sentence.contains("`asking.epsilon` says 0.01 at most"), "{more:?}");
    let needed = more.hint.unwrap().split(['`', '=']).nth(2).unwrap().trim().parse().unwrap();
    assert!(session.within(sql, &asking(needed), Within::Absolute(50.0)).is_ok());
    assert!(session.history().unwrap().is_empty());
    assert_eq!(session.verify().unwrap_err().kind, ErrorKind::Asked);
    assert!(!folder.join("whit.ledger").exists());
    let answer = session.ask(sql, &asking(2.0)).unwrap();
    assert_eq!(session.ask(sql, &asking(2.0)).unwrap().rows, answer.rows);
    let refused = session.ask("SELECT SUM(x) FROM visits", &asking(2.0)).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Refused);
    assert_eq!(session.ask("SELECT nothing", &asking(1.0)).unwrap_err().kind, ErrorKind::Asked);
    assert_eq!((session.history().unwrap().len(), session.verify().unwrap().entries), (1, 1));
    assert!(session.accounts().unwrap()[0].left.unwrap() <= 1.0);
    assert_eq!(session.void(1, "nothing came of it").unwrap_err().kind, ErrorKind::Asked, "it was released");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_that_is_stopped_goes_on_where_it_was_and_pays_once() {
    let folder = room("stops");
    let mut session = session(&folder);
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let request = Request::new(&training);
    let prospect = session.preview_training(&request, &mut ()).unwrap();
    assert!(!prospect.stored && !prospect.free && prospect.denied.is_none());
    let mut first = Counting { stop_after: Some(4), ..Counting::default() };
    let stopped = session.train(&request, &mut first).unwrap();
    assert!(matches!(stopped, Outcome::Stopped { taken: 4, steps: 9 }), "{stopped:?}");
    assert!(first.wrote.is_empty() && !training.model().exists());
    let mut rest = Counting::default();
    let Outcome::Done(learned) = session.train(&request, &mut rest).unwrap() else { panic!("nobody stopped it") };
    assert_eq!((rest.steps, learned.resumed_from, learned.stored), (5, Some(4), false));
    assert_eq!((rest.losses, learned.score.is_none(), learned.curve.len()), (0, true, 0), "they are the owner's");
    assert_eq!(rest.wrote.len(), 3);
    assert_eq!(session.history().unwrap().len(), 1);
    let Outcome::Done(again) = session.train(&request, &mut ()).unwrap() else { panic!("nobody stopped it") };
    assert!(again.stored && again.trained.theta() == learned.trained.theta());
    assert!(session.preview_training(&request, &mut ()).unwrap().free);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_not_sanitised_is_for_the_owner() {
    let folder = room("owner");
    let mut session = session(&folder);
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let curve = Request { curve: true, ..Request::new(&training) };
    assert_eq!(session.train(&curve, &mut ()).unwrap_err().kind, ErrorKind::Asked);
    assert!(!folder.join("whit.ledger").exists(), "it was refused before");
    let owner = Some(Owner::who_may_see_every_row());
    let mut watch = Counting::default();
    let learned = session.train(&Request { owner, ..curve }, &mut watch).unwrap();
    let Outcome::Done(learned) = learned else { panic!("nobody stopped it") };
    assert!(learned.curve.len() == 9 && learned.score.is_some() && watch.losses > 0);
    let evaluation = Evaluation { training: &training, model: None, owner: None, memory: None };
    assert_eq!(session.evaluate(&evaluation).unwrap_err().kind, ErrorKind::Asked);
    assert_eq!(session.evaluate(&Evaluation { owner, ..evaluation }).unwrap().score.rows, 50);
    let model = training.model();
    let mut prediction = Prediction {
        carried: Vec::new(),
        probabilities: false,
        model: &model,
        dataset: None,
        chosen: None,
        owner: None,
        memory: None,
        outputs: Vec::new(),
    };
    assert_eq!(session.predict(&prediction).unwrap_err().kind, ErrorKind::Asked);
    prediction.owner = owner;
    assert_eq!(session.predict(&prediction).unwrap().rows.len(), 100);
    prediction.outputs = vec![folder.join("visits.csv")];
    assert!(session.predict(&prediction).is_err(), "data is never written over");
    std::fs::remove_dir_all(folder).unwrap();
}
