//! A session that is awaited, inside of whatever runtime the caller has.

use super::{Foreseen, Options, Session, WorkloadForeseen};
use crate::Error;
use crate::error::Reason;
use crate::train::experiment::{self, Found};
use crate::train::{
    Evaluated, Evaluation, Judged, Outcome, Prediction, Predictions, PrivateEvaluation, Prospect,
    Request as TrainRequest, Step, Training, Watch,
};
use futures::channel::oneshot;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use whit_account::ledger::{Account, Entry, Verified};
use whit_query::estimate::{HistogramQuestion, HittersQuestion};
use whit_query::explain::Within;
use whit_query::plan::Asking;
use whit_query::source::Interrupt;
use whit_query::source::owner::{Owner, OwnerView};
use whit_query::{Answer, Workload, WorkloadAnswer};

/// What is to be done, one thing after the other.
enum SessionOrder {
    /// Some work.
    Do(Box<dyn FnOnce(&mut Session) + Send>),
    /// The last one; whoever waits hears of it when the session is gone.
    Close(oneshot::Sender<()>),
}

/// A [`Session`] whose methods are awaited. It works in any runtime, also in one of a single thread, and needs none of its own kind.
///
/// The session lives on a thread of its own, where the ledger is written and models learn; whoever awaits is never blocked by them. It does one thing at a time,
/// in the order in which futures were first polled. Clones share it. Whoever wants several things at once opens several sessions: they share the ledger, which keeps its own order.
///
/// # What happens to a future that is dropped
///
/// - Before it was polled, or before its turn came: nothing. Nothing is reserved, read or charged.
/// - While its question is answered: that is finished all the same, because a reservation stays spent whatever happens after it. The answer goes into the
///   ledger, and whoever asks the same again gets it from there at no cost.
/// - While a model learns: it stops after the step that it is at and keeps where it stands. The reservation stays spent, and the same training goes on under
///   it when it is asked for again. One that nobody is to finish can be made [`void`](Self::void), if nothing of it has left.
/// - While an experiment runs: it stops after the step that it is at. Nothing was charged.
///
/// So a future that is dropped charges nothing twice, and loses nothing that was paid for. [`settled`](Self::settled) waits for what nobody else waits for, and
/// [`close`](Self::close) until the ledger is closed as well.
///
/// # What happens when the process ends
///
/// In the midst of something it leaves that as one that was killed does. What was reserved stays spent. A training goes on under its reservation when it is asked for again. A
/// question does not: unless it had been answered, asking it again is charged again, because how it ended may have shown something.
///
/// # What waits for ever
///
/// A [`Watch`] that waits for its own session: that is at the training which is being watched, and does nothing else until the watch returns.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("whit-awaited-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let visits: String = (0..300).map(|i| format!("u{},{}\n", i % 100, i % 7)).collect();
/// # std::fs::write(folder.join("visits.csv"), format!("user,page\n{visits}"))?;
/// # let declared = "[dataset.visits]\nsource = 'visits.csv'\nunit.user = 'user'\nunit.protect = 'user'\nunit.caps.rows_per_user = 3\n\
/// #     columns.user = 'text'\ncolumns.page = 'int'\nbudget.user = { epsilon = 1.0 }";
/// # std::fs::write(folder.join("whit.toml"), declared)?;
/// # let config = folder.join("whit.toml");
/// # let options = whit::session::Options { ledger: whit::account::ledger::Opening::default(), ..Default::default() };
/// use whit::query::plan::Asking;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// runtime.block_on(async {
///     let session = whit::AsyncSession::open(&config, options).await?;
///     let asking = Asking { epsilon: Some(0.8), delta: Some(0.0), ..Asking::default() };
///     let answer = session.ask("SELECT COUNT(*) FROM visits", &asking).await?; // such as 303 ± 15
///     let other = session.ask("SELECT COUNT(*) FROM visits WHERE page = 1", &asking).await;
///     assert!(other.unwrap_err().refusal().is_some());
///     assert_eq!(session.history().await?.len(), 1);
///     Ok::<(), whit::Error>(())
/// })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AsyncSession {
    jobs: mpsc::Sender<SessionOrder>,
}

impl AsyncSession {
    /// Opens the data sets that a file declares: see [`Session::open`].
    pub async fn open(config: &Path, options: Options) -> Result<Self, Error> {
        let config = config.to_owned();
        Self::start(move || Session::open(&config, options)).await
    }

    /// The same with a session that is open.
    pub async fn of(session: Session) -> Result<Self, Error> {
        Self::start(move || Ok(session)).await
    }

    async fn start(open: impl FnOnce() -> Result<Session, Error> + Send + 'static) -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel::<SessionOrder>();
        let (opened, waiting) = oneshot::channel();
        let work = move || match open() {
            Ok(mut session) => {
                if opened.send(Ok(())).is_ok()
                    && let Some(closing) = work_off(&queue, &mut session)
                {
                    drop(session);
                    let _ = closing.send(()); // whoever does not wait does not need to know
                }
            }
            Err(error) => drop(opened.send(Err(error))), // whoever does not wait does not need to know
        };
        // Plans of deep expressions recurse deeply.
        let thread = std::thread::Builder::new().name("whit session".to_owned()).stack_size(16 << 20);
        thread.spawn(work).map_err(|error| Error::failed(format!("no thread could be started: {error}")))?;
        waiting.await.unwrap_or_else(|_| Err(closed()))?;
        Ok(Self { jobs })
    }

    /// Does something in its turn, unless nobody waits for it then. What is done may ask whether somebody still does.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Session, &dyn Fn() -> bool) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, waiting) = oneshot::channel();
        let job = move |session: &mut Session| {
            if reply.is_canceled() {
                return;
            }
            let done = work(session, &|| reply.is_canceled());
            drop(reply.send(done)); // the ledger has what nobody waits for
        };
        self.jobs.send(SessionOrder::Do(Box::new(job))).map_err(|_| closed())?;
        waiting.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Waits until all that was begun before is done, also what nobody else waits for.
    pub async fn settled(&self) -> Result<(), Error> {
        self.run(|_, _| Ok(())).await
    }

    /// Closes the session when all that was begun before is done, and returns when its ledger is closed too. Whatever comes after, by clones as well, is told that it
    /// [is closed](Reason::Closed).
    pub async fn close(self) {
        let (reply, waiting) = oneshot::channel();
        // A session that is gone is closed.
        if self.jobs.send(SessionOrder::Close(reply)).is_ok() {
            let _ = waiting.await;
        }
    }

    /// Who asks.
    pub async fn analyst(&self) -> Result<String, Error> {
        self.run(|session, _| Ok(session.analyst().to_owned())).await
    }

    /// What stops the question that is asked: see [`Session::interrupt`]. It is to be had before one is.
    pub async fn interrupt(&self) -> Result<Interrupt, Error> {
        self.run(|session, _| Ok(session.interrupt())).await
    }

    /// What a question in SQL would cost, and how wrong it would be: see [`Session::preview`].
    pub async fn preview(&self, sql: &str, asking: &Asking) -> Result<Foreseen, Error> {
        let (sql, asking) = (sql.to_owned(), asking.clone());
        self.run(move |session, _| session.preview(&sql, &asking)).await
    }

    /// The same with the smallest ε at which every value is off by no more than this: see [`Session::within`].
    pub async fn within(&self, sql: &str, asking: &Asking, within: Within) -> Result<Foreseen, Error> {
        let (sql, asking) = (sql.to_owned(), asking.clone());
        self.run(move |session, _| session.within(&sql, &asking, within)).await
    }

    /// Asks a question in SQL, and pays for it: see [`Session::ask`].
    pub async fn ask(&self, sql: &str, asking: &Asking) -> Result<Answer, Error> {
        let (sql, asking) = (sql.to_owned(), asking.clone());
        self.run(move |session, _| session.ask(&sql, &asking)).await
    }

    /// What questions would cost together, and how wrong each would be: see [`Session::preview_workload`].
    pub async fn preview_workload(&self, workload: &Workload, asking: &Asking) -> Result<WorkloadForeseen, Error> {
        let (workload, asking) = (workload.clone(), asking.clone());
        self.run(move |session, _| session.preview_workload(&workload, &asking)).await
    }

    /// The same with the smallest ε at which every value is off by no more than this: see [`Session::workload_within`].
    pub async fn workload_within(
        &self,
        workload: &Workload,
        asking: &Asking,
        within: Within,
    ) -> Result<WorkloadForeseen, Error> {
        let (workload, asking) = (workload.clone(), asking.clone());
        self.run(move |session, _| session.workload_within(&workload, &asking, within)).await
    }

    /// Asks questions together, and pays for them once: see [`Session::ask_workload`].
    pub async fn ask_workload(&self, workload: &Workload, asking: &Asking) -> Result<WorkloadAnswer, Error> {
        let (workload, asking) = (workload.clone(), asking.clone());
        self.run(move |session, _| session.ask_workload(&workload, &asking)).await
    }

    /// Counts how many users have each item, and ranks the items: see [`Session::hitters`].
    pub async fn hitters(&self, question: &HittersQuestion, asking: &Asking) -> Result<Answer, Error> {
        let (question, asking) = (question.clone(), asking.clone());
        self.run(move |session, _| session.hitters(&question, &asking)).await
    }

    /// Adds up how much of each item users have, in the clusters of a partition: see [`Session::histogram`].
    pub async fn histogram(&self, question: &HistogramQuestion, asking: &Asking) -> Result<Answer, Error> {
        let (question, asking) = (question.clone(), asking.clone());
        self.run(move |session, _| session.histogram(&question, &asking)).await
    }

    /// What a training would promise and whether it fits: see [`Session::preview_training`].
    pub async fn preview_training(
        &self,
        request: &TrainRequest<'_>,
        watch: impl Watch + Send + 'static,
    ) -> Result<Prospect, Error> {
        let request = OwnRequest::of(request);
        self.run(move |session, gone| session.preview_training(&request.get(), &mut Awaited { watch, gone })).await
    }

    /// Learns a model, and pays for it once: see [`Session::train`].
    pub async fn train(
        &self,
        request: &TrainRequest<'_>,
        watch: impl Watch + Send + 'static,
    ) -> Result<Outcome, Error> {
        let request = OwnRequest::of(request);
        self.run(move |session, gone| session.train(&request.get(), &mut Awaited { watch, gone })).await
    }

    /// Tries a model on rows that its owner chose: see [`Session::evaluate`].
    pub async fn evaluate(&self, asked_for: &Evaluation<'_>) -> Result<Evaluated, Error> {
        let Evaluation { training, model, owner, memory } = asked_for.clone();
        let training = training.clone();
        self.run(move |session, _| session.evaluate(&Evaluation { training: &training, model, owner, memory })).await
    }

    /// Releases how well a model does: see [`Session::evaluate_privately`].
    pub async fn evaluate_privately(&self, asked_for: &PrivateEvaluation<'_>) -> Result<Judged, Error> {
        let PrivateEvaluation { training, model, epsilon, delta, memory } = asked_for.clone();
        let training = training.clone();
        self.run(move |session, _| {
            session.evaluate_privately(&PrivateEvaluation { training: &training, model, epsilon, delta, memory })
        })
        .await
    }

    /// Predicts the target of rows with a model: see [`Session::predict`].
    pub async fn predict(&self, asked_for: &Prediction<'_>) -> Result<Predictions, Error> {
        let Prediction { model, dataset, chosen, owner, memory, carried, probabilities, outputs } = asked_for.clone();
        let model = model.to_owned();
        self.run(move |session, _| {
            let model = &model;
            session.predict(&Prediction { model, dataset, chosen, owner, memory, carried, probabilities, outputs })
        })
        .await
    }

    /// Compares trainings over values and seeds, for the owner: see [`Session::experiment`].
    pub async fn experiment(
        &self,
        request: &experiment::ExperimentRequest<'_>,
        watch: impl Watch + Send + 'static,
    ) -> Result<Found, Error> {
        let experiment::ExperimentRequest { file, seeds, only, memory, outputs } = request.clone();
        let file = file.to_owned();
        self.run(move |session, gone| {
            let request = experiment::ExperimentRequest { file: &file, seeds, only, memory, outputs };
            session.experiment(&request, &mut Awaited { watch, gone })
        })
        .await
    }

    /// What was charged, in its order: see [`Session::history`].
    pub async fn history(&self) -> Result<Vec<Entry>, Error> {
        self.run(|session, _| session.history()).await
    }

    /// What was spent of each declared budget, and what is left of it: see [`Session::accounts`].
    pub async fn accounts(&self) -> Result<Vec<Account>, Error> {
        self.run(|session, _| session.accounts()).await
    }

    /// What the owner of the data may see of it: see [`Session::survey`].
    pub async fn survey(&self, owner: Owner) -> Result<Vec<OwnerView>, Error> {
        self.run(move |session, _| session.survey(owner)).await
    }

    /// Recomputes every hash and every total of the ledger, or says what was changed: see [`Session::verify`].
    pub async fn verify(&self) -> Result<Verified, Error> {
        self.run(|session, _| session.verify()).await
    }

    /// Takes back a reservation of which nothing came: see [`Session::void`].
    pub async fn void(&self, entry: u64, reason: &str) -> Result<(), Error> {
        let reason = reason.to_owned();
        self.run(move |session, _| session.void(entry, &reason)).await
    }

    /// Takes the ledger as it stands, whatever its heads say: see [`Session::accept`].
    pub async fn accept(&self, reason: &str) -> Result<Verified, Error> {
        let reason = reason.to_owned();
        self.run(move |session, _| session.accept(&reason)).await
    }

    /// Begins anew where a ledger was and is gone: see [`Session::reset`].
    pub async fn reset(&self, reason: &str) -> Result<(), Error> {
        let reason = reason.to_owned();
        self.run(move |session, _| session.reset(&reason)).await
    }
}

/// Does one thing after the other until nobody can order any more, or somebody closes the session.
fn work_off(queue: &mpsc::Receiver<SessionOrder>, session: &mut Session) -> Option<oneshot::Sender<()>> {
    for order in queue {
        match order {
            SessionOrder::Do(job) => job(session),
            SessionOrder::Close(reply) => return Some(reply),
        }
    }
    None
}

/// Whatever worked is gone: it was closed, it panicked, or the process is ending.
fn closed() -> Error {
    Error::failed("the session ended before it had answered")
        .because(Reason::Closed)
        .with_hint("open another and ask the same: a training goes on under what it reserved; a question that was reserved and not answered stays spent, and is charged again")
}

/// A request that has its training, so that it can go to another thread.
struct OwnRequest {
    training: Training,
    owner: Option<Owner>,
    memory: Option<u64>,
    resume: bool,
    seed_destroys_privacy: bool,
    curve: bool,
    outputs: Vec<PathBuf>,
}

impl OwnRequest {
    fn of(request: &TrainRequest<'_>) -> Self {
        let TrainRequest { training, owner, memory, resume, seed_destroys_privacy, curve, outputs } = request.clone();
        Self { training: training.clone(), owner, memory, resume, seed_destroys_privacy, curve, outputs }
    }

    fn get(&self) -> TrainRequest<'_> {
        let Self { training, owner, memory, resume, seed_destroys_privacy, curve, outputs } = self;
        TrainRequest {
            training,
            owner: *owner,
            memory: *memory,
            resume: *resume,
            seed_destroys_privacy: *seed_destroys_privacy,
            curve: *curve,
            outputs: outputs.clone(),
        }
    }
}

/// Watches for somebody, and stops when nobody waits any more.
struct Awaited<'a, W> {
    watch: W,
    gone: &'a dyn Fn() -> bool,
}

impl<W: Watch> Watch for Awaited<'_, W> {
    fn doing(&mut self, what: &str) {
        self.watch.doing(what);
    }

    fn note(&mut self, note: &str) {
        self.watch.note(note);
    }

    fn wrote(&mut self, file: &Path) {
        self.watch.wrote(file);
    }

    fn step(&mut self, step: &Step<'_>) {
        self.watch.step(step);
    }

    fn run(&mut self, nth: usize, of: usize, arm: &str) {
        self.watch.run(nth, of, arm);
    }

    fn taken(&mut self, steps: u64, of: u64) {
        self.watch.taken(steps, of);
    }

    fn stop(&mut self) -> bool {
        self.watch.stop() || (self.gone)()
    }
}
