//! What else a session does: estimators, experiments, and the ledger's own affairs.

use super::{Counting, asking, options, room, session};
use std::fmt::Write as _;
use whit::account::ledger::State;
use whit::error::ErrorKind;
use whit::query::Value;
use whit::query::estimate::histogram::Radius;
use whit::query::estimate::{HistogramQuestion, HittersQuestion, ItemList};
use whit::query::partition::{PartitionFile, PartitionKind};
use whit::query::plan::Asking;
use whit::train::experiment;
use whit::train::{Outcome, Request, Training};
use whit::{DeclarationDraft, Declared, Session};

const MARKET: &str = "[dataset.baskets]\nsource = 'baskets.csv'\nunit.user = 'user'\nunit.protect = 'user'\n\
    unit.caps.rows_per_user = 2\ncolumns.user = 'int'\ncolumns.item = 'text'\nbudget.user = { epsilon = 90.0, delta = 1e-6 }\n";

#[test]
fn hitters_and_histograms_are_asked_for_paid_for_and_answered_again_for_nothing() {
    let folder = room("market");
    let mut rows = "user,item\n".to_owned();
    for user in 0..200 {
        let _ = writeln!(rows, "{user},w0\n{user},w{}", 1 + user % 4); // a text takes everything
    }
    for (name, text) in [("baskets.csv", rows.as_str()), ("whit.toml", MARKET)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let items: Vec<String> = (0..6).map(|i| format!("w{i}")).collect();
    let kind = PartitionKind::Kmeans { dimension: 2, seed: 1, iterations: 1 };
    let partition = folder.join("pairs.partition");
    PartitionFile::listed("pairs", kind, items.clone(), vec![0, 0, 1, 1, 2, 2], 4, 3)
        .unwrap()
        .save(&partition)
        .unwrap();
    let mut session = session(&folder);
    let asking = Asking { epsilon: Some(20.0), ..Asking::default() };
    let hitters = HittersQuestion {
        dataset: "baskets".into(),
        item: "item".into(),
        items: Some(ItemList::Listed(items)),
        top: Some(1),
        items_per_user: Some(2),
        gap: None,
    };
    let first = session.hitters(&hitters, &asking).unwrap();
    assert_eq!(first.rows[0][0].value, Value::Text("w0".into()));
    let again = session.hitters(&hitters, &asking).unwrap();
    assert!(again.statement.stored && again.rows == first.rows);
    let bars = HistogramQuestion {
        dataset: "baskets".into(),
        item: "item".into(),
        partition,
        weight: None,
        radius: Radius::Given(2.0),
        top: None,
        clusters_per_user: Some(2),
        shares: false,
    };
    let counted = session.histogram(&bars, &asking).unwrap();
    assert_eq!(counted.rows.len(), 6);
    assert!(session.histogram(&bars, &asking).unwrap().statement.stored);
    assert_eq!((session.history().unwrap().len(), session.verify().unwrap().entries), (2, 2));
    // What is private is no list of items: its lines would be printed.
    let own = HittersQuestion { items: Some(ItemList::File(folder.join("./baskets.csv"))), ..hitters.clone() };
    let refused = session.hitters(&own, &asking).unwrap_err();
    assert!(refused.sentence.contains("holds rows of `baskets`, which is private"), "{}", refused.sentence);
    let dear = Asking { epsilon: Some(80.0), ..asking };
    let refused = session.hitters(&HittersQuestion { items_per_user: Some(1), ..hitters }, &dear).unwrap_err();
    assert_eq!((refused.kind, refused.refusal().is_some()), (ErrorKind::Refused, true));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_experiment_compares_trainings_and_opens_no_ledger() {
    let folder = room("experiment");
    let design = "title = 'x and y'\nmeasure = 'accuracy'\nseeds = 2\n\
        [[arm]]\nname = 'noisy'\nfile = 'train.toml'\n[[arm]]\nname = 'plain'\nfile = 'train.toml'\nprivate = false\n";
    let file = folder.join("experiment.toml");
    std::fs::write(&file, design).unwrap();
    let request =
        experiment::ExperimentRequest { file: &file, seeds: None, only: Vec::new(), memory: None, outputs: Vec::new() };
    let found = session(&folder).experiment(&request, &mut ()).unwrap();
    assert_eq!((found.seeds, found.arms.len(), found.outcomes.len()), (2, 2, 4));
    let one = experiment::ExperimentRequest { seeds: Some(1), only: vec!["plain".into()], ..request };
    assert_eq!(session(&folder).experiment(&one, &mut ()).unwrap().outcomes.len(), 1);
    assert!(!folder.join("whit.ledger").exists() && !folder.join("model.safetensors").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_reservation_of_which_nothing_came_can_be_made_void() {
    let folder = room("void");
    let mut session = session(&folder);
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let mut watch = Counting { stop_after: Some(2), ..Counting::default() };
    let stopped = session.train(&Request::new(&training), &mut watch).unwrap();
    assert!(matches!(stopped, Outcome::Stopped { taken: 2, .. }), "{stopped:?}");
    let left = |session: &mut Session| session.accounts().unwrap()[0].left.unwrap();
    let before = left(&mut session);
    assert_eq!(session.void(1, "").unwrap_err().kind, ErrorKind::Asked, "a reason is kept with it");
    session.void(1, "it was a test").unwrap();
    assert!(matches!(session.history().unwrap()[0].state, State::Void { .. }));
    assert!(left(&mut session) > before, "it is spent no more");
    assert_eq!(session.verify().unwrap().entries, 1);
    session.ask("SELECT COUNT(*) FROM visits", &asking(1.0)).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_declaration_is_drafted_and_checked_before_anything_is_asked() {
    let folder = room("drafted");
    let drafted = DeclarationDraft::of(&folder.join("visits.csv"), None).unwrap();
    assert_eq!((drafted.name.as_str(), drafted.seen.looked), ("visits", true));
    let text = drafted.text("visits.csv");
    assert!(text.contains("[dataset.visits]") && text.contains("source = "), "{text}");
    let named = DeclarationDraft::of(&folder.join("visits.csv"), Some("Two words")).unwrap_err();
    assert!(named.kind == ErrorKind::Asked && named.hint.as_ref().unwrap().contains("two_words"), "{named:?}");
    let views = Declared::open(&folder.join("whit.toml")).unwrap().check(options().tuning).unwrap();
    assert_eq!((views.len(), views[0].name.as_str()), (1, "visits"));
    std::fs::write(folder.join("wrong.toml"), "[dataset.visits]\nsource = 'gone.csv'\nunit.protect = 'event'\n")
        .unwrap();
    assert_eq!(
        Declared::open(&folder.join("wrong.toml")).unwrap().check(options().tuning).unwrap_err().kind,
        ErrorKind::Asked
    );
    assert!(!folder.join("whit.ledger").exists());
    std::fs::remove_dir_all(folder).unwrap();
}
