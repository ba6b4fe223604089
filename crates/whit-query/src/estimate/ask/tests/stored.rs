//! What is in the ledger is ranked and described with the noise and the price that it was made with.

use super::*;
use whit_account::ledger::{Budget, Terms};
use whit_core::Charge;

/// Stores a release of another mechanism as the answer to a question: as a version would have that divided prices otherwise. Gives what was booked.
fn store<M: Mechanism<Noisy: Persist>>(
    (books, budgets): (&mut Books, &[Budget]),
    asked: &Question,
    mechanism: &M,
    exact: &M::Exact,
    rungs: &[whit_core::Rung],
) -> Charge {
    let request = ReleaseRequest {
        question: asked,
        rungs,
        coins: Coins::Secret(&mut Os),
        start: Start::Anew,
        instead: Instead::Nothing,
    };
    let nothing = |_: &[u8]| Err("nothing is stored yet".to_owned());
    Desk::new(books, budgets).once(request, mechanism, |_| Ok(exact), nothing).unwrap().charge
}

#[test]
fn hitters_are_ranked_with_the_noise_and_the_price_that_they_were_made_with() {
    let scratch = Scratch::new("ask-stored-hitters");
    talk(&scratch);
    let (tables, mut books) = (declare(&scratch, "'word'", "elements_per_user = 20"), books(&scratch));
    let question = words(&scratch);
    let fingerprint = tables.fingerprint_of(&["talk".to_owned()], &mut books).unwrap().0;
    let plan = |epsilon: f64| HittersPlan::new(&tables, &question, &asking(epsilon)).unwrap();
    let asked = |plan: &HittersPlan<'_>| Question {
        fingerprint: fingerprint.clone(),
        ..plan.question(&tables, &question, "anna")
    };
    let (now, before) = (plan(50.0), plan(0.5).hitters);
    let rungs = now.declared.ladder.rungs();
    let exact = now.bound.gather(vec![(1, 0), (2, 0)]).unwrap();
    let budgets = tables.budgets("talk").unwrap();
    let booked = store((&mut books, &budgets), &asked(&now), &before, &exact, rungs);
    let answer = hitters(&tables, &question, &asking(50.0), &mut books, "anna").unwrap();
    assert!(answer.statement.stored);
    assert_eq!(answer.statement.prices, Statement::prices(&booked, 1e-6), "what was booked");
    assert!(answer.statement.prices[0].epsilon <= 0.5, "{:?}", answer.statement.prices);
    let reach = |answer: &Answer| answer.rows[0][1].high.unwrap() - number(&answer.rows[0][1]);
    assert!(
        (reach(&answer) - before.within(0.95, 50)).abs() < 1e-6
            && before.within(0.95, 50) > 10.0 * now.hitters.within(0.95, 50)
    );
    assert_eq!(answer.statement.mechanisms, [counted("word", &before)]);
    // What was stored before its noise was is still read, with the noise of today.
    let older = plan(60.0);
    let terms = Terms { budgets: &budgets, gives_up: false, again: false };
    let entry = books.reserve_for(&asked(&older), &booked, terms).unwrap();
    let mut counts = vec![0; 50];
    counts[3] = 1 << 28;
    books.commit_entry(entry, None, &super::super::super::hitters::NoisyVector(counts).to_bytes()).unwrap();
    let answer = hitters(&tables, &question, &asking(60.0), &mut books, "anna").unwrap();
    assert!(answer.statement.stored && answer.rows[0][0].value == Value::Text("w3".into()), "{:?}", answer.rows[0]);
    assert!((reach(&answer) - older.hitters.within(0.95, 50)).abs() < 1e-6);
    assert_eq!(answer.statement.prices, Statement::prices(&booked, 1e-6), "what was booked");
}

#[test]
fn both_stages_of_a_histogram_are_read_with_the_noise_that_they_got() {
    let scratch = Scratch::new("ask-stored-histogram");
    talk(&scratch);
    let question = HistogramQuestion { radius: Radius::TwoStage { share: 0.2, quantile: 0.9 }, ..bars(&scratch) };
    let tables = declare(&scratch, "{ column = 'word', file = 'pairs.partition' }", "elements_per_user = 6");
    let mut books = books(&scratch);
    let fingerprint = tables.fingerprint_of(&["talk".to_owned()], &mut books).unwrap().0;
    let now = HistogramPlan::new(&tables, &question, &asking(100.0)).unwrap();
    let asked = Question { fingerprint, ..now.question(&question, "anna") };
    // The same promise, and another share of it for the first stage.
    let radius = Radius::TwoStage { share: 0.9, quantile: 0.9 };
    let promise = Calibration { epsilon: 2.0, ..now.declared.promise };
    let before =
        Histogram::for_promise(now.histogram.bound().clone(), radius, now.declared.protected(), promise).unwrap();
    let tokens = Tokens::gather(Arc::clone(&now.items), Vec::new(), Vec::new()).unwrap();
    let budgets = tables.budgets("talk").unwrap();
    let booked = store((&mut books, &budgets), &asked, &before, &tokens, now.declared.ladder.rungs());
    let answer = histogram(&tables, &question, &asking(100.0), &mut books, "anna").unwrap();
    assert!(answer.statement.stored);
    assert_eq!(answer.statement.prices, Statement::prices(&booked, 1e-6), "what was booked");
    let radius: f64 = {
        let note = answer.statement.notes.iter().find(|note| note.starts_with("radius ")).unwrap();
        note.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let item = answer.rows.iter().find(|row| number(&row[2]) > 0.0).unwrap();
    let reach = item[2].high.unwrap() - number(&item[2]);
    let place = (0..12).find(|i| item[0].value == Value::Text(format!("w{i}"))).unwrap();
    let (stated, today) = (before.within(place, radius, 0.95, 1), now.histogram.within(place, radius, 0.95, 1));
    assert!((reach / stated - 1.0).abs() < 0.01 && stated > 5.0 * today, "{reach}, {stated} and not {today}");
}
