//! Declaration, data, ledger and analyst in one hand: all that can be asked, and paid for.

mod awaited;

pub use awaited::AsyncSession;

use crate::Error;
use crate::error::of_ledger;
use crate::ledger::{Bookkeeper, heads};
use crate::state::{SessionState, ledger_of};
use crate::train::experiment::{self, Found};
use crate::train::{
    self, Evaluated, Evaluation, Judged, Outcome, Prediction, Predictions, PrivateEvaluation, Prospect,
    Request as TrainRequest, Watch,
};
use std::path::Path;
use whit_account::ledger::{Account, BooksFile, Entry, Memory, Opener, Opening, Register, Verified, Which};
use whit_query::estimate::{HistogramQuestion, HittersQuestion, ask};
use whit_query::explain::{Fits, Preview, Within, WorkloadPreview};
use whit_query::plan::Asking;
use whit_query::source::owner::{Owner, OwnerView};
use whit_query::source::{Inputs, Interrupt, Tuning};
use whit_query::{Answer, QueryError, Tables, Workload, WorkloadAnswer};

/// How a session is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who asks, for budgets of single analysts.
    pub analyst: String,
    /// How many threads work, and in how much memory.
    pub tuning: Tuning,
    /// How the ledger in its file is opened.
    pub ledger: Opening,
}

impl Default for Options {
    fn default() -> Self {
        Self { analyst: "anyone".to_owned(), tuning: Tuning::default(), ledger: heads() }
    }
}

/// What a question would cost, how wrong it would be, and whether it fits.
#[derive(Debug, Clone)]
pub struct Foreseen {
    /// Prices and errors, which follow from declaration and question.
    pub preview: Preview,
    /// Which budgets it fits, and what else asking would come to: see [`denied`](Self::denied).
    pub fits: Fits,
}

impl Foreseen {
    /// What [`Session::ask`] would say now in place of an answer, word for word: a budget's "no", or why the ledger cannot charge it. Nothing where it would be answered.
    pub fn denied(&self) -> Option<Error> {
        self.fits.denied.clone().map(Error::from)
    }
}

/// The same of questions that are asked together.
#[derive(Debug, Clone)]
pub struct WorkloadForeseen {
    /// One price, and errors question by question.
    pub preview: WorkloadPreview,
    /// Which budgets they fit together, and what else asking would come to: see [`denied`](Self::denied).
    pub fits: Fits,
}

impl WorkloadForeseen {
    /// What [`Session::ask_workload`] would say now in place of answers: see [`Foreseen::denied`].
    pub fn denied(&self) -> Option<Error> {
        self.fits.denied.clone().map(Error::from)
    }
}

/// Data sets that were declared, the ledger beside them, and who asks.
///
/// The ledger is made, where there is none, by the first thing that is paid for. What only looks makes none, and neither does what is asked wrongly or refused.
///
/// Its methods block until they are done, also where the calling thread belongs to a runtime: nothing panics, and nothing else of that runtime runs on the
/// thread in the meantime. Inside of a runtime, [`AsyncSession`] is what one wants.
///
/// ```
/// use whit::query::plan::Asking;
/// use whit::session::{Options, Session};
/// # let folder = std::env::temp_dir().join(format!("whit-session-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let at = |name: &str| folder.join(name);
/// # let visits: String = (0..300).map(|i| format!("u{},{}\n", i % 100, i % 7)).collect();
/// # std::fs::write(at("visits.csv"), format!("user,page\n{visits}"))?;
/// std::fs::write(
///     at("whit.toml"),
///     "[dataset.visits]
///      source = 'visits.csv'
///      unit.user = 'user'
///      unit.protect = 'user'
///      unit.caps.rows_per_user = 3
///      columns.user = 'text'
///      columns.page = 'int'
///      budget.user = { epsilon = 1.0 }",
/// )?;
/// let nowhere_else = whit::account::ledger::Opening::default(); // where its head would be kept too
/// let options = Options { ledger: nowhere_else, ..Options::default() };
/// let mut session = Session::open(&at("whit.toml"), options)?;
/// let question = "SELECT COUNT(*) FROM visits";
/// let asking = Asking { epsilon: Some(0.8), delta: Some(0.0), ..Asking::default() };
///
/// let foreseen = session.preview(question, &asking)?; // charges nothing
/// assert!(foreseen.preview.prices[0].epsilon <= 0.8);
/// let answer = session.ask(question, &asking)?; // such as 303 ± 15
/// assert_eq!(session.ask(question, &asking)?.rows, answer.rows); // the same again is free
///
/// let other = session.ask("SELECT COUNT(*) FROM visits WHERE page = 1", &asking);
/// assert_eq!(other.unwrap_err().kind, whit::error::ErrorKind::Refused);
/// assert_eq!(session.history()?.len(), 1);
/// session.verify()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    state: SessionState,
}

impl Session {
    /// Opens the data sets that a file declares.
    pub fn open(config: &Path, options: Options) -> Result<Self, Error> {
        check_clock()?;
        Ok(Self::of(Tables::open(config, options.tuning)?, options))
    }

    /// The same on another ledger than the one in the declared file, such as one in memory: it is opened by this, in place of `options.ledger`.
    ///
    /// ```no_run
    /// use whit::account::ledger::{HandedOver, Memory};
    /// use whit::session::{Options, Session};
    /// let ledger = Box::new(HandedOver::new(Memory::new())); // ends with the process
    /// let mut session = Session::open_on("whit.toml".as_ref(), Options::default(), ledger)?;
    /// # Ok::<(), whit::Error>(())
    /// ```
    pub fn open_on(config: &Path, options: Options, ledger: Box<dyn Opener>) -> Result<Self, Error> {
        check_clock()?;
        let tables = Tables::open(config, options.tuning)?;
        Ok(Self::on(tables, ledger, options.analyst))
    }

    /// The same with data sets that are open, on the ledger in the declared file.
    pub fn of(tables: Tables, options: Options) -> Self {
        let opener = Box::new(BooksFile::new(ledger_of(&tables), options.ledger));
        Self::on(tables, opener, options.analyst)
    }

    fn on(tables: Tables, opener: Box<dyn Opener>, analyst: String) -> Self {
        Self { state: SessionState { tables, keeper: Bookkeeper::on(opener), none: Memory::new(), analyst } }
    }

    /// The data sets.
    pub fn tables(&self) -> &Tables {
        &self.state.tables
    }

    /// Who asks.
    pub fn analyst(&self) -> &str {
        &self.state.analyst
    }

    /// What no output may replace: what the data sets were declared with, the ledger, and heads that are kept elsewhere.
    pub fn inputs(&self) -> Inputs {
        self.state.inputs()
    }

    /// The file that the ledger is, or will be; nothing where it is kept elsewhere.
    pub fn ledger_file(&self) -> Option<&Path> {
        self.state.keeper.file()
    }

    /// Who has the ledger, and looks into it or decides about it: what [`Bookkeeper`] does beyond the methods here.
    pub fn keeper(&mut self) -> &mut Bookkeeper {
        &mut self.state.keeper
    }

    /// The ledger, opened where it is not yet, and made where there is none.
    pub fn books(&mut self) -> Result<&mut dyn Register, Error> {
        self.state.made()
    }

    /// What stops the question that is asked, from another thread. What was charged for it stays spent, nothing of it is released, and asking the same again goes on under that charge:
    /// the error says so, and its [reason](crate::error::Reason::Interrupted) too.
    pub fn interrupt(&self) -> Interrupt {
        self.state.tables.runtime().interrupt().clone()
    }

    /// What a question in SQL would cost, how wrong it would be, and what asking it would come to. Nothing is charged and nothing private is read.
    pub fn preview(&mut self, sql: &str, asking: &Asking) -> Result<Foreseen, Error> {
        let preview = self.state.tables.preview(sql, asking)?;
        self.foreseen(sql, asking, preview)
    }

    /// The same with the smallest ε at which every value is off by no more than this.
    pub fn within(&mut self, sql: &str, asking: &Asking, within: Within) -> Result<Foreseen, Error> {
        let preview = self.state.tables.within(sql, asking, within)?;
        self.foreseen(sql, asking, preview)
    }

    fn foreseen(&mut self, sql: &str, asking: &Asking, preview: Preview) -> Result<Foreseen, Error> {
        let analyst = self.state.analyst.clone();
        let (tables, books) = self.state.looking()?;
        let fits = tables.fits(sql, &preview, asking, books, &analyst)?;
        Ok(Foreseen { preview, fits })
    }

    /// Asks a question in SQL, and pays for it. The same again, in whatever words, is answered from the ledger and costs nothing.
    pub fn ask(&mut self, sql: &str, asking: &Asking) -> Result<Answer, Error> {
        self.paid(|tables, books, analyst| whit_query::ask(tables, sql, asking, books, analyst))
    }

    /// What questions would cost together, how wrong each would be, and what asking them would come to. Nothing is charged and nothing private is read.
    pub fn preview_workload(&mut self, workload: &Workload, asking: &Asking) -> Result<WorkloadForeseen, Error> {
        let preview = self.state.tables.preview_workload(workload, asking)?;
        self.workload_foreseen(workload, asking, preview)
    }

    /// The same with the smallest ε for all together at which every value of each is off by no more than this.
    pub fn workload_within(
        &mut self,
        workload: &Workload,
        asking: &Asking,
        within: Within,
    ) -> Result<WorkloadForeseen, Error> {
        let preview = self.state.tables.workload_within(workload, asking, within)?;
        self.workload_foreseen(workload, asking, preview)
    }

    fn workload_foreseen(
        &mut self,
        workload: &Workload,
        asking: &Asking,
        preview: WorkloadPreview,
    ) -> Result<WorkloadForeseen, Error> {
        let analyst = self.state.analyst.clone();
        let (tables, books) = self.state.looking()?;
        let fits = tables.workload_fits(workload, &preview, asking, books, &analyst)?;
        Ok(WorkloadForeseen { preview, fits })
    }

    /// Asks questions together, and pays for them once: what several of them need is released once, and has the same noise in each. The same again, in whatever order and
    /// under whatever names, is answered from the ledger and costs nothing.
    pub fn ask_workload(&mut self, workload: &Workload, asking: &Asking) -> Result<WorkloadAnswer, Error> {
        self.paid(|tables, books, analyst| whit_query::ask_workload(tables, workload, asking, books, analyst))
    }

    /// Counts how many users have each item, and ranks the items.
    pub fn hitters(&mut self, question: &HittersQuestion, asking: &Asking) -> Result<Answer, Error> {
        self.paid(|tables, books, analyst| ask::hitters(tables, question, asking, books, analyst))
    }

    /// Adds up how much of each item users have, in the clusters of a partition.
    pub fn histogram(&mut self, question: &HistogramQuestion, asking: &Asking) -> Result<Answer, Error> {
        self.paid(|tables, books, analyst| ask::histogram(tables, question, asking, books, analyst))
    }

    fn paid<T>(
        &mut self,
        ask: impl FnOnce(&Tables, &mut dyn Register, &str) -> Result<T, QueryError>,
    ) -> Result<T, Error> {
        let analyst = self.state.analyst.clone();
        let (tables, mut books) = self.state.charging()?;
        let answer = ask(tables, &mut books, &analyst);
        self.state.log_change();
        Ok(answer?)
    }

    /// What a training would promise, and what asking for it would come to. Nothing is charged, and nothing private is read.
    pub fn preview_training(&mut self, request: &TrainRequest<'_>, watch: &mut dyn Watch) -> Result<Prospect, Error> {
        train::preview(&mut self.state, request, watch)
    }

    /// Learns a model, and pays for it once. One that was interrupted goes on under the same reservation; the same again is answered from the ledger.
    pub fn train(&mut self, request: &TrainRequest<'_>, watch: &mut dyn Watch) -> Result<Outcome, Error> {
        train::train(&mut self.state, request, watch)
    }

    /// Tries a model on rows that its owner chose. What comes out is not sanitised, and nothing is charged for it.
    pub fn evaluate(&self, asked_for: &Evaluation<'_>) -> Result<Evaluated, Error> {
        train::evaluate(&self.state.tables, asked_for)
    }

    /// Releases how well a model does on rows that were set aside: which classes it takes for which, counted with noise, and paid for once.
    pub fn evaluate_privately(&mut self, asked_for: &PrivateEvaluation<'_>) -> Result<Judged, Error> {
        train::judge(&mut self.state, asked_for)
    }

    /// Predicts the target of rows with a model. Where these are private, that is for their owner.
    pub fn predict(&self, asked_for: &Prediction<'_>) -> Result<Predictions, Error> {
        train::predict(&self.state.tables, self.inputs(), asked_for)
    }

    /// Compares trainings over values and seeds, for the owner. Nothing is charged, no ledger is opened, and what is found is non-private.
    pub fn experiment(
        &self,
        request: &experiment::ExperimentRequest<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Found, Error> {
        experiment::run(&self.state.tables, &self.inputs(), request, watch)
    }

    /// What was charged, in its order; nothing where there is no ledger yet.
    pub fn history(&mut self) -> Result<Vec<Entry>, Error> {
        match self.state.books_if_any()? {
            Some(_) => self.state.keeper.history(&Which::default()),
            None => Ok(Vec::new()),
        }
    }

    /// What was spent of each declared budget, and what is left of it: all of it where there is no ledger yet.
    pub fn accounts(&mut self) -> Result<Vec<Account>, Error> {
        let (tables, books) = self.state.looking()?;
        let mut accounts = Vec::new();
        for name in tables.warehouse().declaration().datasets.keys() {
            for budget in tables.budgets(name)? {
                accounts.push(books.spent(&budget).map_err(of_ledger)?);
            }
        }
        Ok(accounts)
    }

    /// What the owner of the data may see of it: every number is exact, and nothing is charged. No ledger is made; one that is known and gone is an error.
    pub fn survey(&mut self, owner: Owner) -> Result<Vec<OwnerView>, Error> {
        self.state.books_if_any()?;
        let (tables, books) = (&self.state.tables, &mut self.state.keeper.books);
        Ok(tables.survey_for(&owner, |name| match books {
            Some(books) => tables.changed_since(&owner, name, &mut **books).map(Some),
            None => Ok(None),
        })?)
    }

    /// Recomputes every hash and every total of the ledger, or says what was changed.
    pub fn verify(&mut self) -> Result<Verified, Error> {
        self.state.keeper.verify(None)
    }

    /// Takes back a reservation of which nothing came. The reason is kept.
    pub fn void(&mut self, entry: u64, reason: &str) -> Result<(), Error> {
        self.state.keeper.void(entry, reason)
    }

    /// Takes the ledger as it stands, whatever its heads say: for an owner who knows why they differ, such as a backup that was put back. What the heads knew and
    /// the ledger does not is forgotten; that, and the reason, are kept.
    pub fn accept(&mut self, reason: &str) -> Result<Verified, Error> {
        self.state.keeper.accept(reason)
    }

    /// Begins anew where a ledger was and is gone: for an owner who knows why. The reason is the first thing in it.
    pub fn reset(&mut self, reason: &str) -> Result<(), Error> {
        self.state.keeper.reset(reason)
    }
}

/// That the clock tells a time that the engine can, which panics otherwise.
#[expect(clippy::disallowed_methods, reason = "what is no time is refused; no mechanism and no accountant reads it")]
pub fn check_clock() -> Result<(), Error> {
    check_time(std::time::SystemTime::now())
}

fn check_time(now: std::time::SystemTime) -> Result<(), Error> {
    /// The last second of the year 9999.
    const LAST: u64 = 253_402_300_799;
    match now.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) if since.as_secs() <= LAST => Ok(()),
        _ => Err(Error::failed("the clock of this machine tells a time before 1970 or after 9999")
            .with_hint("set it, and ask again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_clock_that_nobody_can_tell_is_refused_in_words() {
        let first_of_10000 = Duration::from_hours(70_389_528);
        assert!(check_time(UNIX_EPOCH).is_ok() && check_clock().is_ok());
        for never in [UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH + first_of_10000] {
            let error = check_time(never).unwrap_err();
            assert!(error.to_string().starts_with("the clock of this machine tells"), "{error}");
        }
    }
}
