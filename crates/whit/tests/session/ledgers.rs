//! A session stands on any ledger: on the one in the declared file, and on one that nobody finds on a disk.

use super::{Counting, asking, options, room, room_of_sums, session};
use whit::Name;
use whit::account::ledger::{HandedOver, LedgerError, Memory, Opening, Which};
use whit::error::{ErrorKind, Reason};
use whit::ledger::Bookkeeper;
use whit::session::{Options, Session};
use whit::train::{Outcome, Request, Step, Training, Watch};

const SQL: &str = "SELECT COUNT(*) FROM visits";
const OTHER: &str = "SELECT COUNT(*) FROM visits WHERE y = 1";

fn in_memory(folder: &std::path::Path) -> Session {
    let ledger = Box::new(HandedOver::new(Memory::new()));
    Session::open_on(&folder.join("whit.toml"), options(), ledger).unwrap()
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn questions_are_asked_refused_and_answered_again_on_a_ledger_in_memory() {
    let folder = room_of_sums("in-memory");
    let mut session = in_memory(&folder);
    let foreseen = session.preview(SQL, &asking(2.0)).unwrap();
    assert!(foreseen.denied().is_none() && session.history().unwrap().is_empty());
    let first = session.ask(SQL, &asking(2.0)).unwrap();
    let again = session.ask("select count(1) from visits", &asking(2.0)).unwrap();
    assert!(again.statement.stored && !first.statement.stored && again.rows == first.rows);
    let foreseen = session.preview(OTHER, &asking(2.0)).unwrap().denied().unwrap();
    let refused = session.ask(OTHER, &asking(2.0)).unwrap_err();
    assert_eq!((refused.kind, &refused), (ErrorKind::Refused, &foreseen));
    assert_eq!(refused.refusal().unwrap().left, "ε = 1");
    let left = session.accounts().unwrap()[0].left.unwrap();
    assert!((left - 1.0).abs() < 1e-9, "{left}");
    let verified = session.verify().unwrap();
    assert_eq!((verified.entries, verified.events), (1, 2));
    assert_eq!(session.history().unwrap().len(), 1);
    let entries = session.books().unwrap().entries(&Which::default()).unwrap();
    assert_eq!(entries[0].question, SQL);
    assert_eq!(files(&folder), ["train.toml", "visits.csv", "whit.toml"], "no file was made for it");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_goes_on_under_its_reservation_on_a_ledger_in_memory() {
    let folder = room("in-memory-training");
    let mut session = in_memory(&folder);
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let request = Request::new(&training);
    let mut watch = Counting { stop_after: Some(4), ..Counting::default() };
    assert!(matches!(session.train(&request, &mut watch).unwrap(), Outcome::Stopped { taken: 4, .. }));
    assert!(session.preview_training(&request, &mut ()).unwrap().free);
    let Outcome::Done(learned) = session.train(&request, &mut ()).unwrap() else { panic!("it was stopped") };
    assert_eq!((learned.resumed_from, learned.stored), (Some(4), false));
    let Outcome::Done(learned) = session.train(&request, &mut ()).unwrap() else { panic!("it was stopped") };
    assert!(learned.stored && session.history().unwrap().len() == 1);
    std::fs::remove_dir_all(folder).unwrap();
}

/// What nothing outside of it knows of, nobody can decide about; and what is in it stays.
#[test]
fn nothing_is_decided_about_a_ledger_that_has_no_heads() {
    let folder = room_of_sums("in-memory-decides");
    let mut session = in_memory(&folder);
    session.ask(SQL, &asking(2.0)).unwrap();
    for error in [session.accept("it is fine").unwrap_err(), session.reset("anew").unwrap_err()] {
        assert_eq!(error.sentence, LedgerError::Undecidable.to_string());
    }
    assert_eq!(session.history().unwrap().len(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_owner_decides_about_a_ledger_that_is_unlike_its_heads() {
    let folder = room_of_sums("decides");
    let heads =
        || Options { ledger: Opening { witness: Some(folder.join("heads")), ..Opening::default() }, ..options() };
    let open = || Session::open(&folder.join("whit.toml"), heads()).unwrap();
    open().ask(SQL, &asking(1.0)).unwrap();
    let (ledger, kept) = (folder.join("whit.ledger"), folder.join("kept"));
    std::fs::copy(&ledger, &kept).unwrap();
    open().ask(OTHER, &asking(1.0)).unwrap();
    // An older copy is put back.
    std::fs::copy(&kept, &ledger).unwrap();
    let mut session = open();
    assert_eq!(session.history().unwrap_err().kind, ErrorKind::Failed);
    assert_eq!(session.accept("it is a backup").unwrap().entries, 1);
    assert_eq!(session.history().unwrap().len(), 1);
    drop(session);
    // And then all of it goes.
    for name in files(&folder).iter().filter(|name| name.starts_with("whit.ledger")) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let mut session = open();
    assert_eq!(session.ask(SQL, &asking(1.0)).unwrap_err().kind, ErrorKind::Failed);
    assert_eq!(session.reset(" ").unwrap_err().kind, ErrorKind::Asked);
    session.reset("the data is new").unwrap();
    assert!(session.history().unwrap().is_empty());
    session.ask(SQL, &asking(1.0)).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_ledger_that_is_not_there_is_named() {
    let folder = room("no-ledger");
    let error = session(&folder).verify().unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Asked, Some(Reason::NoLedger(folder.join("whit.ledger")))));
    std::fs::remove_dir_all(folder).unwrap();
}

/// The data may be gone, and what was spent of it is not: who has the ledger finds all that a session finds, and needs no declaration.
#[test]
fn a_ledger_is_looked_at_and_decided_about_without_its_data() {
    let folder = room_of_sums("keeper");
    let config = folder.join("whit.toml");
    let mut session = session(&folder);
    session.ask(SQL, &asking(1.0)).unwrap();
    let history = session.history().unwrap();
    let written = |keeper: &mut Bookkeeper| {
        let (mut lines, mut table) = (Vec::new(), Vec::new());
        keeper.export(&mut lines).unwrap();
        keeper.export_csv(&mut table).unwrap();
        (lines, table)
    };
    let (verified, exported) = (session.verify().unwrap(), written(session.keeper()));
    let reaccounted = session.keeper().reaccount(Name::Pld).unwrap();
    drop(session);
    std::fs::remove_file(folder.join("visits.csv")).unwrap();
    let keepers = || {
        let declared = Bookkeeper::declared(&config, Opening::default()).unwrap();
        [declared, Bookkeeper::at(folder.join("whit.ledger"), Opening::default())]
    };
    for mut keeper in keepers() {
        assert_eq!(keeper.history(&Which::default()).unwrap(), history);
        assert_eq!(keeper.verify(None).unwrap(), verified);
        assert_eq!(keeper.verify(Some(&verified.head)).unwrap(), verified);
        assert_eq!(
            (written(&mut keeper), keeper.reaccount(Name::Pld).unwrap()),
            (exported.clone(), reaccounted.clone())
        );
        assert_eq!(keeper.look().unwrap().budgets().unwrap().len(), 1);
        assert_eq!(keeper.void(1, "a whim").unwrap_err().kind, ErrorKind::Asked, "it was released");
    }
    // What was changed is said with its place, and a program learns which it is.
    std::fs::remove_file(folder.join("whit.ledger.head")).unwrap();
    for mut keeper in keepers() {
        let error = keeper.verify(None).unwrap_err();
        let Some(Reason::Ledger(fault)) = &error.reason else { panic!("{error:?}") };
        assert!(fault.is_damage() && error.kind == ErrorKind::Failed, "{error:?}");
        assert_eq!(error.place, Some(folder.join("whit.ledger").display().to_string()));
    }
    assert_eq!(keepers()[0].accept("the head was lost").unwrap().entries, 1);
    // A declaration that is there is read: it may name another ledger.
    std::fs::write(&config, "ledger = 'other.ledger'\n[dataset.a]\nsource = 'a.csv'\npublic = true\n").unwrap();
    assert_eq!(keepers()[0].file(), Some(&*folder.join("other.ledger")));
    std::fs::write(&config, "nonsense").unwrap();
    assert_eq!(Bookkeeper::declared(&config, Opening::default()).unwrap_err().kind, ErrorKind::Asked);
    std::fs::remove_file(&config).unwrap();
    assert_eq!(keepers()[0].file(), Some(&*folder.join("whit.ledger")));
    std::fs::create_dir(&config).unwrap();
    assert_eq!(Bookkeeper::declared(&config, Opening::default()).unwrap_err().kind, ErrorKind::Failed);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whoever asks of data and whoever looks into the ledger name the same file, and hear the same of it.
#[test]
fn what_is_no_ledger_is_the_same_error_wherever_it_is_met() {
    let folder = room_of_sums("no-ledger-of-whit");
    std::fs::write(folder.join("whit.ledger"), "some notes of mine, and no ledger at all").unwrap();
    let errors = [
        session(&folder).ask(SQL, &asking(1.0)).unwrap_err(),
        session(&folder).preview(SQL, &asking(1.0)).unwrap_err(),
        session(&folder).verify().unwrap_err(),
        session(&folder).history().unwrap_err(),
        session(&folder).books().map(|_| ()).unwrap_err(),
        session(&folder).accept("it is mine").unwrap_err(),
        Bookkeeper::at(folder.join("whit.ledger"), Opening::default()).look().map(|_| ()).unwrap_err(),
    ];
    for error in &errors {
        assert_eq!((error.kind, error), (ErrorKind::Asked, &errors[0]));
        assert!(error.sentence.contains("is no ledger of whit"), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// What was asked for too much, or wrongly, is over when it was said: the next who asks finds the folder as it was.
#[test]
fn what_is_refused_or_asked_wrongly_leaves_no_ledger_behind() {
    let folder = room("leaves-nothing");
    let before = files(&folder);
    let heads = folder.with_extension("heads");
    let opening = Opening { witness: Some(heads.clone()), ..Opening::default() };
    let mut session = Session::open(&folder.join("whit.toml"), Options { ledger: opening, ..options() }).unwrap();
    let refused = session.ask(SQL, &asking(4.0)).unwrap_err();
    assert!(refused.refusal().is_some_and(|no| no.shortfall.as_ref().unwrap().fits.is_some()), "{refused:?}");
    assert_eq!(session.ask("SELECT nothing", &asking(1.0)).unwrap_err().kind, ErrorKind::Asked);
    assert!(session.ask("SELECT 1", &asking(1.0)).is_ok(), "what reads nothing private needs no ledger");
    assert_eq!(files(&folder), before);

    let training = Training::open(&folder.join("train.toml")).unwrap();
    let text = std::fs::read_to_string(folder.join("train.toml")).unwrap();
    std::fs::write(folder.join("train.toml"), text.replace("noise = 20.0", "noise = 0.3")).unwrap();
    let greedy = Training::open(&folder.join("train.toml")).unwrap();
    assert_eq!(session.train(&Request::new(&greedy), &mut ()).unwrap_err().kind, ErrorKind::Refused);
    assert!(!files(&folder).iter().any(|name| name.starts_with("whit.ledger")) && !heads.exists());

    // What fits makes one, and it knows of the files what was found before.
    session.train(&Request::new(&training), &mut ()).unwrap();
    assert!(session.preview_training(&Request::new(&training), &mut ()).unwrap().stored);
    assert_eq!((session.history().unwrap().len(), session.verify().unwrap().entries), (1, 1));
    for folder in [folder, heads] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Asks for the same training, with its model elsewhere, at the third step of each run.
struct Meanwhile<'a> {
    folder: &'a std::path::Path,
    steps: u64,
    stop_after: Option<u64>,
    found: Vec<whit::Error>,
}

impl Watch for Meanwhile<'_> {
    fn step(&mut self, _: &Step<'_>) {
        self.steps += 1;
        if self.steps == 3 {
            let text = std::fs::read_to_string(self.folder.join("train.toml")).unwrap();
            let elsewhere = self.folder.join("elsewhere.toml");
            std::fs::write(&elsewhere, text.replace("model.safetensors", "elsewhere.safetensors")).unwrap();
            for file in ["elsewhere.toml", "train.toml"] {
                let training = Training::open(&self.folder.join(file)).unwrap();
                self.found.push(session(self.folder).train(&Request::new(&training), &mut ()).unwrap_err());
            }
        }
    }

    fn stop(&mut self) -> bool {
        self.stop_after == Some(self.steps)
    }
}

/// Whoever is told to give another output.model, and then to void the entry that is in the way, would end a good run.
#[test]
fn a_training_that_runs_is_said_to_run_wherever_its_model_goes() {
    let folder = room("runs-already");
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let begun = |stop_after| Meanwhile { folder: &folder, steps: 0, stop_after, found: Vec::new() };
    // One that is begun, and one that goes on.
    for stop_after in [Some(5), None] {
        let mut watch = begun(stop_after);
        let outcome = session(&folder).train(&Request::new(&training), &mut watch).unwrap();
        assert_eq!(matches!(outcome, Outcome::Stopped { taken: 5, .. }), stop_after.is_some());
        assert_eq!(watch.found.len(), 2);
        for error in watch.found {
            let words = error.words();
            assert!(error.kind == ErrorKind::Failed && matches!(error.reason, Some(Reason::Busy(_))), "{words}");
            assert!(
                words.contains("is training this very model since 2") && words.contains("under entry 1"),
                "{words}"
            );
            assert!(words.contains("wait until it is done"), "{words}");
            assert!(!words.contains("void") && !words.contains("output.model"), "{words}");
        }
    }
    assert_eq!(session(&folder).history().unwrap().len(), 1, "and it paid once");
    // It is over, so whoever asked has it from the ledger.
    let elsewhere = Training::open(&folder.join("elsewhere.toml")).unwrap();
    let outcome = session(&folder).train(&Request::new(&elsewhere), &mut ()).unwrap();
    assert!(matches!(outcome, Outcome::Done(learned) if learned.stored));
    std::fs::remove_dir_all(folder).unwrap();
}
