//! The form of a session that is awaited, in runtimes of both kinds.

use super::{Counting, asking, options, room, room_of_sums};
use futures::FutureExt as _;
use std::path::Path;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use whit::account::ledger::State;
use whit::error::{ErrorKind, Reason};
use whit::query::Workload;
use whit::query::explain::Within;
use whit::train::{Evaluation, Outcome, Owner, Prediction, Request, Step, Training, Watch};
use whit::{AsyncSession, Session};

/// Longer than anything here takes, so that what waits in vain fails instead of hanging.
const PATIENCE: Duration = Duration::from_mins(2);

fn runtimes() -> [(&'static str, Runtime); 2] {
    [("one", Builder::new_current_thread().build().unwrap()), ("many", Builder::new_multi_thread().build().unwrap())]
}

async fn open(folder: &Path) -> AsyncSession {
    AsyncSession::open(&folder.join("whit.toml"), options()).await.unwrap()
}

/// Says after each step how many were taken, and waits for a word before the next.
struct StepByStep {
    taken: Sender<u64>,
    go_on: Receiver<()>,
}

impl Watch for StepByStep {
    fn step(&mut self, step: &Step<'_>) {
        let _ = self.taken.send(step.taken); // whoever does not listen does not want to know
        self.go_on.recv_timeout(PATIENCE).expect("the executor of the caller runs while a model learns");
    }
}

fn step_by_step() -> (StepByStep, Receiver<u64>, Sender<()>) {
    let ((taken, hear), (say, go_on)) = (channel(), channel());
    (StepByStep { taken, go_on }, hear, say)
}

#[test]
fn everything_can_be_awaited_in_somebodys_runtime() {
    for (name, runtime) in runtimes() {
        let folder = room(&format!("awaited-{name}"));
        runtime.block_on(async {
            let session = open(&folder).await;
            let sql = "SELECT COUNT(*) FROM visits";
            assert_eq!(session.analyst().await.unwrap(), "anyone");
            assert!(session.preview(sql, &asking(1.0)).await.unwrap().fits.budgets.iter().all(|budget| budget.fits));
            assert!(session.within(sql, &asking(1.0), Within::Absolute(50.0)).await.is_ok());
            let workload = Workload::read("SELECT SUM(x) FROM visits; SELECT SUM(x) / 2 FROM visits").unwrap();
            let foreseen = session.preview_workload(&workload, &asking(1.0)).await.unwrap();
            assert!(foreseen.denied().is_none() && foreseen.preview.questions.len() == 2);
            assert!(session.workload_within(&workload, &asking(1.0), Within::Absolute(50.0)).await.is_ok());
            assert!(session.history().await.unwrap().is_empty() && !folder.join("whit.ledger").exists());
            let answer = session.ask(sql, &asking(0.3)).await.unwrap();
            let clone = session.clone();
            assert_eq!(clone.ask(sql, &asking(0.3)).await.unwrap().rows, answer.rows);
            let refused = session.ask("SELECT SUM(x) FROM visits", &asking(50.0)).await.unwrap_err();
            assert_eq!((refused.kind, refused.refusal().is_some()), (ErrorKind::Refused, true));
            let training = Training::open(&folder.join("train.toml")).unwrap();
            let (request, owner) = (Request::new(&training), Some(Owner::who_may_see_every_row()));
            assert!(!session.preview_training(&request, ()).await.unwrap().stored);
            let outcome = session.train(&request, ()).await.unwrap();
            assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
            let evaluation = Evaluation { training: &training, model: None, owner, memory: None };
            assert_eq!(session.evaluate(&evaluation).await.unwrap().score.rows, 50);
            let (model, outputs) = (training.model(), Vec::new());
            let prediction = Prediction {
                carried: Vec::new(),
                probabilities: false,
                model: &model,
                dataset: None,
                chosen: None,
                owner,
                memory: None,
                outputs,
            };
            assert_eq!(session.predict(&prediction).await.unwrap().rows.len(), 100);
            assert_eq!(session.survey(Owner::who_may_see_every_row()).await.unwrap()[0].rows, 100);
            assert_eq!((session.history().await.unwrap().len(), session.verify().await.unwrap().entries), (2, 2));
            assert!(session.accounts().await.unwrap()[0].left.unwrap() < 3.0);
            assert_eq!(session.void(1, "it was released").await.unwrap_err().kind, ErrorKind::Asked);
            assert!(AsyncSession::open(&folder.join("gone.toml"), options()).await.is_err());
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// A future of a session can be given to whichever thread of a runtime is free.
#[test]
fn questions_that_were_spawned_are_answered_one_after_the_other() {
    let folder = room("spawned");
    let runtime = Builder::new_multi_thread().worker_threads(3).build().unwrap();
    runtime.block_on(async {
        let session = open(&folder).await;
        let tasks: Vec<_> = (0..8)
            .map(|i| {
                let session = session.clone();
                let sql = format!("SELECT COUNT(*) FROM visits WHERE y = {}", i % 2);
                tokio::spawn(async move { session.ask(&sql, &asking(0.5)).await.unwrap().rows })
            })
            .collect();
        let mut rows = Vec::new();
        for task in tasks {
            rows.push(task.await.unwrap());
        }
        assert!((2..8).all(|i| rows[i] == rows[i - 2]), "the same question has one answer");
        assert_eq!(session.history().await.unwrap().len(), 2);
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_model_that_learns_does_not_hold_up_the_executor() {
    let folder = room("ticks");
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let session = open(&folder).await;
        let training = Training::open(&folder.join("train.toml")).unwrap();
        let (watch, taken, go_on) = step_by_step();
        // On the one thread that also polls the training: each step waits for it.
        let ticking = tokio::spawn(async move {
            let mut steps = 0;
            while steps < 9 {
                if let Ok(step) = taken.try_recv() {
                    steps = step;
                    go_on.send(()).unwrap();
                }
                tokio::task::yield_now().await;
            }
        });
        let outcome = session.train(&Request::new(&training), watch).await.unwrap();
        assert!(matches!(outcome, Outcome::Done(_)));
        ticking.await.unwrap();
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_question_whose_turn_never_came_costs_nothing() {
    let folder = room("queued");
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let session = open(&folder).await;
        let training = Training::open(&folder.join("train.toml")).unwrap();
        let request = Request::new(&training);
        let (watch, taken, go_on) = step_by_step();
        let mut learning = pin!(session.train(&request, watch));
        assert!(learning.as_mut().now_or_never().is_none());
        assert_eq!(taken.recv_timeout(PATIENCE), Ok(1));
        {
            let asking = asking(0.5);
            let mut asked = pin!(session.ask("SELECT COUNT(*) FROM visits", &asking));
            assert!(asked.as_mut().now_or_never().is_none(), "the session is at the training");
            let never_polled = session.ask("SELECT SUM(x) FROM visits", &asking);
            drop(never_polled);
        }
        (0..9).for_each(|_| go_on.send(()).unwrap());
        assert!(matches!(learning.await.unwrap(), Outcome::Done(_)));
        session.settled().await.unwrap();
        assert_eq!(session.history().await.unwrap().len(), 1, "the training, and no question");
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// Futures are dropped at many moments: while planning, reserving, reading, committing, or when all is done.
#[test]
fn a_question_that_was_dropped_is_charged_at_most_once_and_its_answer_is_kept() {
    let folder = room_of_sums("dropped");
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let session = open(&folder).await;
        let questions: Vec<String> =
            (0..20).map(|i| format!("SELECT COUNT(*) FROM visits WHERE x < 0.{:02}", i + 1)).collect();
        for (i, sql) in questions.iter().enumerate() {
            let asking = asking(0.1);
            let mut asked = Box::pin(session.ask(sql, &asking));
            assert!(asked.as_mut().now_or_never().is_none());
            std::thread::sleep(Duration::from_millis(3 * i as u64));
            // Nobody waits from here on; the next one is asked when this one is done.
            drop(asked);
            session.settled().await.unwrap();
        }
        let before = session.history().await.unwrap();
        assert!(before.iter().all(|entry| matches!(entry.state, State::Committed { .. })), "nothing is left half done");
        let mut stored = 0;
        for sql in &questions {
            stored += usize::from(session.ask(sql, &asking(0.1)).await.unwrap().statement.stored);
        }
        assert_eq!(stored, before.len(), "what was charged is answered from the ledger");
        assert_eq!(session.history().await.unwrap().len(), questions.len(), "each was charged once");
        let left = session.accounts().await.unwrap()[0].left.unwrap();
        assert!((0.999..=1.001).contains(&left), "20 questions of ε = 0.1 of a budget of 3 leave 1, and not {left}");
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_training_that_was_dropped_stops_and_goes_on_under_the_same_reservation() {
    for (name, runtime) in runtimes() {
        let folder = room(&format!("dropped-training-{name}"));
        runtime.block_on(async {
            let session = open(&folder).await;
            let training = Training::open(&folder.join("train.toml")).unwrap();
            let request = Request::new(&training);
            let (watch, taken, go_on) = step_by_step();
            {
                let mut learning = pin!(session.train(&request, watch));
                assert!(learning.as_mut().now_or_never().is_none());
                for step in 1..=4 {
                    assert_eq!(taken.recv_timeout(PATIENCE), Ok(step));
                    if step < 4 {
                        go_on.send(()).unwrap();
                    }
                }
            }
            go_on.send(()).unwrap();
            session.settled().await.unwrap();
            assert!(taken.try_recv().is_err(), "no step after nobody waits");
            let history = session.history().await.unwrap();
            assert_eq!((history.len(), &history[0].state), (1, &State::Reserved), "it stays spent");
            let Outcome::Done(learned) = session.train(&request, ()).await.unwrap() else {
                panic!("nobody stopped it")
            };
            assert_eq!((learned.resumed_from, learned.stored), (Some(4), false));
            let history = session.history().await.unwrap();
            assert!(history.len() == 1 && matches!(history[0].state, State::Committed { .. }), "it was paid for once");
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// What was begun is done first, and nothing holds the ledger any more when it returns.
#[test]
fn a_session_that_was_closed_has_let_go_of_its_ledger() {
    for (name, runtime) in runtimes() {
        let folder = room(&format!("closed-{name}"));
        runtime.block_on(async {
            let session = open(&folder).await;
            let clone = session.clone();
            let asking = asking(0.5);
            {
                let mut asked = pin!(session.ask("SELECT COUNT(*) FROM visits", &asking));
                assert!(asked.as_mut().now_or_never().is_none());
                // It is begun when the session has taken it up.
                while !folder.join("whit.ledger").exists() {
                    tokio::task::yield_now().await;
                }
            }
            session.close().await;
            let ledger = folder.join("whit.ledger");
            let held = std::fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
            let held = held.filter(|file| std::fs::read_link(file.path()).is_ok_and(|path| path == ledger)).count();
            assert_eq!(held, 0, "{}", ledger.display());
            let error = clone.history().await.unwrap_err();
            assert_eq!((error.kind, error.reason), (ErrorKind::Failed, Some(Reason::Closed)));
            clone.close().await; // what is closed is closed
            let history = open(&folder).await.history().await.unwrap();
            assert!(history.len() == 1 && matches!(history[0].state, State::Committed { .. }));
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Panics where somebody's code may.
struct Broken;

impl Watch for Broken {
    fn doing(&mut self, _: &str) {
        panic!("whoever watches is at fault");
    }
}

#[test]
fn a_session_that_panicked_is_closed_in_words() {
    let folder = room("panicked");
    Builder::new_current_thread().build().unwrap().block_on(async {
        let session = open(&folder).await;
        let training = Training::open(&folder.join("train.toml")).unwrap();
        let error = session.train(&Request::new(&training), Broken).await.unwrap_err();
        assert_eq!((error.kind, error.reason), (ErrorKind::Failed, Some(Reason::Closed)));
        assert_eq!(session.history().await.unwrap_err().reason, Some(Reason::Closed));
        assert!(open(&folder).await.ask("SELECT COUNT(*) FROM visits", &asking(1.0)).await.is_ok());
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// The blocking form holds up the thread that calls it, and does not panic there: neither at work nor when it is dropped.
#[test]
fn the_blocking_form_works_inside_of_a_runtime_too() {
    for (name, runtime) in runtimes() {
        let folder = room(&format!("blocking-{name}"));
        let ask = |folder: std::path::PathBuf| {
            let mut session = Session::open(&folder.join("whit.toml"), options()).unwrap();
            session.preview("SELECT SUM(x) FROM visits", &asking(0.5)).unwrap();
            session.ask("SELECT COUNT(*), SUM(x) FROM visits WHERE y = 1", &asking(0.5)).unwrap().rows
        };
        let inside = runtime.block_on(async { ask(folder.clone()) });
        let (one, other) = (folder.clone(), folder.clone());
        assert_eq!(runtime.block_on(runtime.spawn(async move { ask(one) })).unwrap(), inside);
        assert_eq!(runtime.block_on(runtime.spawn_blocking(move || ask(other))).unwrap(), inside);
        runtime.block_on(async {
            let mut session = Session::open(&folder.join("whit.toml"), options()).unwrap();
            let training = Training::open(&folder.join("train.toml")).unwrap();
            let outcome = session.train(&Request::new(&training), &mut Counting::default()).unwrap();
            assert!(matches!(outcome, Outcome::Done(_)));
            // An open session goes over to the other form.
            let session = AsyncSession::of(session).await.unwrap();
            assert_eq!(session.history().await.unwrap().len(), 2);
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}
