//! What is foreseen is what comes: a preview says of a question or a training what asking for it says then.

use super::{Counting, DECLARED, TRAINING, asking, options, room, room_of_sums, session};
use std::fmt::Write as _;
use std::path::Path;
use whit::account::ledger::{Books, HandedOver, Register, Step};
use whit::core::release::ShortOf;
use whit::error::{ErrorKind, Reason};
use whit::query::Workload;
use whit::query::plan::Asking;
use whit::session::Session;
use whit::train::{Outcome, Request, Training};

const SQL: &str = "SELECT COUNT(*) FROM visits";

fn training(folder: &Path) -> Training {
    Training::open(&folder.join("train.toml")).unwrap()
}

/// That question and training fail alike, foreseen or asked, with this sentence.
fn fails(folder: &Path, asking: &Asking, sentence: &str) {
    let (mut session, training) = (session(folder), training(folder));
    let foreseen = session.preview(SQL, asking).unwrap();
    assert!(!foreseen.preview.prices.is_empty(), "its price is known all the same");
    let denied = foreseen.denied().unwrap();
    assert_eq!((denied.kind, denied.refusal()), (ErrorKind::Failed, None), "no budget said no");
    assert!(denied.sentence.contains(sentence), "{denied}");
    assert_eq!(session.ask(SQL, asking).unwrap_err(), denied);
    let prospect = session.preview_training(&Request::new(&training), &mut ()).unwrap();
    let denied = prospect.denied.unwrap();
    assert_eq!((denied.kind, denied.refusal(), prospect.free), (ErrorKind::Failed, None, false));
    assert!(denied.sentence.contains(sentence), "{denied}");
    assert_eq!(session.train(&Request::new(&training), &mut ()).unwrap_err(), denied);
}

#[test]
fn a_preview_of_several_questions_says_what_asking_them_does() {
    let folder = room("workload_foreseen");
    let mut session = session(&folder);
    let workload = Workload::read("SELECT COUNT(*) FROM visits;\nSELECT SUM(x), COUNT(*) FROM visits").unwrap();
    let fits = session.preview_workload(&workload, &asking(0.5)).unwrap();
    assert!(fits.denied().is_none());
    let answer = session.ask_workload(&workload, &asking(0.5)).unwrap();
    assert_eq!(answer.statement.prices, fits.preview.whole.prices);
    assert_eq!(answer.answers[0].rows[0][0], answer.answers[1].rows[0][1], "one noise");
    let again = session.preview_workload(&workload, &asking(0.5)).unwrap();
    assert_eq!(again.fits.stored, answer.statement.entry);
    let denied = session.preview_workload(&workload, &asking(1e4)).unwrap().denied().unwrap();
    assert_eq!(denied.kind, ErrorKind::Refused);
    assert_eq!(session.ask_workload(&workload, &asking(1e4)).unwrap_err(), denied);
    assert_eq!(session.history().unwrap().len(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_preview_says_that_no_budget_watches_over_it_as_asking_does() {
    let folder = room("unwatched");
    let declared: String =
        DECLARED.lines().filter(|line| !line.starts_with("budget")).fold(String::new(), |all, line| all + line + "\n");
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    // No budget says at which δ either.
    std::fs::write(folder.join("train.toml"), TRAINING.replace("[privacy]", "[privacy]\ndelta = 1e-6")).unwrap();
    fails(&folder, &asking(0.5), "no budget of `visits` watches over this release");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_preview_says_that_a_budget_cannot_be_kept_as_asking_does() {
    const BY_ELEMENT: &str = "[dataset.visits]\nsource = 'visits.csv'\nunit.user = 'user'\nunit.element = 'topic'\n\
        unit.protect = 'element'\ncolumns.user = 'int'\ncolumns.topic = 'text'\n\
        columns.x = { type = 'float', bounds = [0.0, 1.0] }\ncolumns.y = 'int'\n\
        budget.element = { epsilon = 90.0, delta = 1e-6 }\nunit.caps.rows_per_element = 2\n";
    let folder = room("unkept");
    let mut rows = "user,topic,x,y\n".to_owned();
    for i in 0..100 {
        let _ = writeln!(rows, "{},t{},0.{i:02},{}", i % 10, i / 10 % 5, i % 2); // a text takes everything
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    std::fs::write(folder.join("whit.toml"), BY_ELEMENT).unwrap();
    session(&folder).ask("SELECT SUM(x) FROM visits", &asking(0.5)).unwrap();
    let by_user =
        format!("{BY_ELEMENT}unit.caps.elements_per_user = 5\nbudget.user = {{ epsilon = 90.0, delta = 1e-6 }}\n");
    std::fs::write(folder.join("whit.toml"), by_user).unwrap();
    fails(&folder, &asking(0.5), "can be kept for `visits`: entry 1 was charged per element");
    assert_eq!(session(&folder).history().unwrap().len(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_refusal_is_foreseen_with_its_numbers_and_with_what_would_fit() {
    let folder = room_of_sums("foreseen-refusal");
    let mut session = session(&folder);
    session.ask("SELECT SUM(x) FROM visits", &asking(2.0)).unwrap();
    let foreseen = session.preview(SQL, &asking(2.0)).unwrap();
    let error = session.ask(SQL, &asking(2.0)).unwrap_err();
    assert_eq!((error.kind, foreseen.denied().as_ref()), (ErrorKind::Refused, Some(&error)));
    let refusal = foreseen.fits.budgets[0].refusal.as_ref().unwrap();
    assert_eq!(Some(refusal), error.refusal());
    let shortfall = refusal.shortfall.as_ref().unwrap();
    let ShortOf::Epsilon { asked, left, .. } = shortfall.of else { panic!("{refusal:?}") };
    assert!(asked > 1.99 && left < 1.01 && shortfall.fits.is_some_and(|fits| fits <= left), "{refusal:?}");
    // The same for programs of another language.
    let json = serde_json::to_value(&foreseen.fits).unwrap();
    let (of_budget, denied) = (&json["budgets"][0], &json["denied"]);
    assert_eq!((&of_budget["refusal"], &of_budget["fits"]), (&refusal.to_string().into(), &false.into()), "{json}");
    assert_eq!((&denied["kind"], &denied["message"]), (&"refused".into(), &refusal.to_string().into()), "{json}");
    for numbers in [&of_budget["shortfall"], &denied["shortfall"]] {
        assert_eq!((&numbers["of"], &numbers["asked"]), (&"epsilon".into(), &asked.into()), "{json}");
        assert_eq!((&numbers["left"], &numbers["fits"]), (&left.into(), &shortfall.fits.into()), "{json}");
        assert_eq!(numbers["unit"], shortfall.unit.to_string(), "{json}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_question_that_is_answered_is_foreseen_as_free() {
    let folder = room_of_sums("foreseen-stored");
    let mut session = session(&folder);
    session.ask(SQL, &asking(2.0)).unwrap();
    // There is no room for it once more, and none is needed; words do not matter.
    for sql in [SQL, "select count(*) from visits"] {
        let foreseen = session.preview(sql, &asking(2.0)).unwrap();
        assert_eq!((foreseen.fits.stored, foreseen.denied()), (Some(1), None), "{sql}");
        assert!(foreseen.fits.budgets.iter().all(|budget| budget.fits && budget.left < 1.01), "{:?}", foreseen.fits);
        assert!(session.ask(sql, &asking(2.0)).unwrap().statement.stored);
    }
    assert_eq!(session.preview(SQL, &asking(1.9)).unwrap().fits.stored, None, "at another ε it is another question");
    // Of other data nothing is stored.
    std::fs::write(folder.join("visits.csv"), "x,y\n0.5,1\n").unwrap();
    let foreseen = session.preview(SQL, &asking(2.0)).unwrap();
    assert_eq!((foreseen.fits.stored, foreseen.denied()), (None, Some(session.ask(SQL, &asking(2.0)).unwrap_err())));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_estimator_is_foreseen_as_it_is_asked() {
    let folder = room("foreseen-hitters");
    let mut rows = "user,item\n".to_owned();
    (0..200).for_each(|user| {
        let _ = writeln!(rows, "{user},w{}", user % 4); // a text takes everything
    });
    let declared = "[dataset.baskets]\nsource = 'baskets.csv'\nunit.user = 'user'\nunit.protect = 'user'\n\
        unit.caps.rows_per_user = 2\ncolumns.user = 'int'\n\
        columns.item = { type = 'text', keys = ['w0', 'w1', 'w2', 'w3'] }\nbudget.user = { epsilon = 30.0, delta = 1e-6 }\n";
    for (name, text) in [("baskets.csv", rows.as_str()), ("whit.toml", declared)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut session = session(&folder);
    let sql = |cap: u32| format!("SELECT * FROM hitters('baskets', 'item', 'items_per_user={cap}')");
    let asking = Asking { epsilon: Some(20.0), ..Asking::default() };
    assert_eq!(session.preview(&sql(1), &asking).unwrap().denied(), None);
    session.ask(&sql(1), &asking).unwrap();
    assert_eq!(session.preview(&sql(1), &asking).unwrap().fits.stored, Some(1));
    let foreseen = session.preview(&sql(2), &asking).unwrap();
    let error = session.ask(&sql(2), &asking).unwrap_err();
    assert_eq!((error.kind, foreseen.denied().as_ref()), (ErrorKind::Refused, Some(&error)));
    let fits: f64 = foreseen.fits.epsilon_that_fits.unwrap().parse().unwrap();
    session.ask(&sql(2), &Asking { epsilon: Some(fits), ..asking }).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_that_gives_privacy_up_is_foreseen_as_it_comes() {
    let folder = room("foreseen-seed");
    std::fs::write(folder.join("train.toml"), TRAINING.replace("[output]", "[output]\nseed = 5")).unwrap();
    let (mut session, training) = (session(&folder), training(&folder));
    let careful = Request::new(&training);
    let denied = session.preview_training(&careful, &mut ()).unwrap().denied.unwrap();
    assert_eq!(session.train(&careful, &mut ()).unwrap_err(), denied);
    assert_eq!(denied.kind, ErrorKind::Refused);
    let careless = Request { seed_destroys_privacy: true, ..careful };
    let prospect = session.preview_training(&careless, &mut ()).unwrap();
    assert!(prospect.gives_up && !prospect.free && prospect.denied.is_none(), "{prospect:?}");
    let outcome = session.train(&careless, &mut ()).unwrap();
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert!(session.preview_training(&careless, &mut ()).unwrap().free);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_that_was_begun_is_foreseen_as_paid_for() {
    let folder = room("foreseen-begun");
    // What one costs fits, and what two cost does not.
    std::fs::write(folder.join("train.toml"), TRAINING.replace("noise = 20.0", "noise = 12.0")).unwrap();
    let (mut session, training) = (session(&folder), training(&folder));
    let second = TRAINING.replace("noise = 20.0", "noise = 12.0").replace("size = 1.0", "size = 2.0");
    std::fs::write(folder.join("second.toml"), second).unwrap();
    let second = Training::open(&folder.join("second.toml")).unwrap();
    let request = Request::new(&training);
    let mut first = Counting { stop_after: Some(4), ..Counting::default() };
    assert!(matches!(session.train(&request, &mut first).unwrap(), Outcome::Stopped { .. }));
    let other = Request { training: &second, ..request.clone() };
    assert_eq!(session.preview_training(&other, &mut ()).unwrap().denied.unwrap().kind, ErrorKind::Refused);
    let prospect = session.preview_training(&request, &mut ()).unwrap();
    assert!(prospect.free && !prospect.stored && prospect.denied.is_none(), "{prospect:?}");
    assert!(matches!(session.train(&request, &mut ()).unwrap(), Outcome::Done(_)));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_look_makes_no_ledger() {
    let folder = room("foreseen-looks");
    let (mut session, training) = (session(&folder), training(&folder));
    let request = Request::new(&training);
    let prospect = session.preview_training(&request, &mut ()).unwrap();
    assert!(!prospect.stored && !prospect.free && prospect.denied.is_none());
    let left = session.accounts().unwrap()[0].left.unwrap();
    assert!((2.9..=3.0).contains(&left), "{left} is left of all of it");
    std::fs::write(folder.join("train.toml"), TRAINING.replace("['x']", "['z']")).unwrap();
    let wrong = Training::open(&folder.join("train.toml")).unwrap();
    assert_eq!(session.preview_training(&Request::new(&wrong), &mut ()).unwrap_err().kind, ErrorKind::Asked);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["train.toml", "visits.csv", "whit.toml"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_question_whose_entry_is_made_void_meanwhile_says_so() {
    let folder = room("voided-question");
    let ledger = folder.join("whit.ledger");
    let mut books = Books::open(&ledger).unwrap();
    books.watch_steps(move |step| {
        if step == Step::AfterReserve {
            Register::void(&mut Books::open(&ledger).unwrap(), 1, "it is not wanted").unwrap();
        }
    });
    let ledger = Box::new(HandedOver::new(books));
    let mut session = Session::open_on(&folder.join("whit.toml"), options(), ledger).unwrap();
    let error = session.ask(SQL, &asking(1.0)).unwrap_err();
    assert_eq!((error.kind, &error.reason), (ErrorKind::Failed, &Some(Reason::Voided { entry: 1 })), "{error:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
