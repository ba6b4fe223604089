//! From a planned question to an answer: tried, priced, reserved, run, sanitised, committed, opened, and only then finished.
//!
//! [`ask()`](crate::ask()) is the front door of this crate. What it releases goes through [`whit_core::release()`], like every value in whit.

pub(crate) mod after;
pub(crate) mod finish;
mod frame;
mod interval;
mod mechanism;
mod rehearse;
pub(crate) mod statement;
mod stored;
mod united;
mod workload;

pub use crate::source::Tables;

use crate::answer::{Answer, Statement, Value};
use crate::bound::{BoundedSum, SumNoise};
use crate::error::{QueryError, of_ledger};
use crate::plan::{Asking, Plan};
use crate::sanitise::{Calibrated, calibrate, is_private};
use crate::source::Stamps;
use datafusion::logical_expr::LogicalPlan;
use mechanism::{QueryMechanism, Rows};
use stored::Released;
pub(crate) use stored::ReleasedPart;
use whit_account::desk::{Coins, Desk, DeskError, Instead, ReleaseRequest, Start};
use whit_account::ledger::Register;
use whit_core::mechanism::SanitiseError;
use whit_core::release::{ReadError, ReleaseError, Reservation, ShortOf};
use whit_noise::{Entropy, Os};
pub use workload::ask_workload;

/// The exact, bounded integers of one part: what noise is added to. For tests and audits, never for people.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct ExactPart {
    /// One row of keys a group.
    pub keys: Vec<Vec<Value>>,
    /// One vector a measure.
    pub measures: Vec<Vec<i64>>,
    /// How many users (or rows) have each group.
    pub presence: Vec<i64>,
    /// How many rows there were, and how many count after caps, where that is released.
    pub kept: [i64; 2],
}

/// Many runs of one question. For audits, never for people.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Audited {
    /// What one run costs, rung by rung.
    pub prices: Vec<crate::answer::Price>,
    /// Run by run, the keys and the values of each row.
    pub runs: Vec<Vec<(Vec<Value>, Vec<Value>)>>,
    /// Run by run, the whole answer, where these were asked for.
    pub answers: Vec<Answer>,
}

impl Tables {
    /// Answers a question that is planned into parts: charges the ledger, or finds the answer in it.
    pub(crate) fn answer_planned(
        &self,
        sql: &str,
        logical: &LogicalPlan,
        asking: &Asking,
        books: &mut dyn Register,
        analyst: &str,
    ) -> Result<Answer, QueryError> {
        let plan = self.planned(sql, logical, asking)?;
        let (released, calibrated, statement) = self.released(&plan, sql, asking, books, analyst)?;
        self.finish(&plan, calibrated.as_ref(), &released, statement)
    }

    /// Releases what a plan asks for, or finds it in the ledger: with the noise that it would get today, and what is said of it as a whole.
    fn released(
        &self,
        plan: &Plan,
        sql: &str,
        asking: &Asking,
        books: &mut dyn Register,
        analyst: &str,
    ) -> Result<(Released, Option<Calibrated>, Statement), QueryError> {
        let confidence = asking.confidence()?;
        if !plan.parts.iter().any(is_private) {
            let mechanism = QueryMechanism::new(self, plan, None, confidence);
            let released = mechanism.everything(&Rows::unpaid(self, 0), &mut Os).map_err(|error| match error {
                SanitiseError::Read(error) if error.interrupted => QueryError::interrupted(),
                error => QueryError::failed(error.to_string()),
            })?;
            let statement = Self::statement(plan, confidence, &released);
            return Ok((released, None, statement));
        }
        let (epsilon, delta) = self.price_of(&plan.dataset, asking)?;
        let calibrated = calibrate(plan, epsilon, delta)?;
        let (mut question, reads) = self.question_of(plan, sql, asking, analyst)?;
        let (fingerprint, stamps) = self.fingerprint_of(&reads, books)?;
        question.fingerprint = fingerprint;
        let mechanism = QueryMechanism::new(self, plan, Some(&calibrated), confidence);
        let price = |epsilon: f64, _: &mut dyn Register| Some(calibrate(plan, epsilon, delta).ok()?.charge);
        let instead = Instead::Search { epsilon, price: &price };
        let request = ReleaseRequest {
            question: &question,
            rungs: &plan.rungs,
            coins: Coins::Secret(&mut Os),
            start: Start::Anew,
            instead,
        };
        if self.runtime.is_stopped() {
            return Err(QueryError::interrupted());
        }
        let read = |reservation: &Reservation| Ok(Rows::of(self, Os.bits(64), Some(&stamps), reservation));
        let budgets = self.budgets(&plan.dataset)?;
        let served = Desk::new(books, &budgets).once(request, &mechanism, read, Released::read).map_err(unserved)?;
        let statement = Self::statement(plan, confidence, &served.value);
        let statement = statement::paid(statement, &served, &question, delta, (books, &budgets));
        Ok((served.value, Some(calibrated), statement))
    }

    /// What a question makes of the tables that were released for it. Each was stored with its noise; the noise that it would get today is for those that were
    /// stored before that was so.
    fn finish(
        &self,
        plan: &Plan,
        noise: Option<&Calibrated>,
        released: &Released,
        statement: Statement,
    ) -> Result<Answer, QueryError> {
        let today = |number: usize| noise.map_or_else(Vec::new, |noise| noise.parts[number].measures.clone());
        let noise_of = |(number, part): (usize, &ReleasedPart)| part.drawn().unwrap_or_else(|| today(number));
        let noises: Vec<Vec<SumNoise>> = released.parts.iter().enumerate().map(noise_of).collect();
        let tables = plan.parts.iter().zip(&noises).zip(&released.parts);
        let parts: Vec<_> = tables.map(|((part, noise), released)| after::Table::of(part, noise, released)).collect();
        finish::answer(self, &plan.after, &parts, statement)
    }

    fn statement(plan: &Plan, confidence: f64, released: &Released) -> Statement {
        let unit =
            plan.rungs.first().map_or_else(|| "nothing private is read".to_owned(), |rung| rung.unit.to_string());
        let mut statement = statement::unpaid(&plan.dataset, &plan.question, unit, confidence);
        statement.mechanisms.clone_from(&released.mechanisms);
        statement.notes = plan.notes.iter().chain(&released.notes).cloned().collect();
        statement
    }

    /// The exact, bounded integers that noise would be added to. Never for people: tests compare them between neighbours.
    #[doc(hidden)]
    pub fn exact_for_tests(&self, sql: &str, asking: &Asking) -> Result<(Plan, Vec<ExactPart>), QueryError> {
        let plan = self.outlined(sql, &self.logical(sql)?, asking)?;
        let parts = self.exact_parts(&plan)?;
        Ok((plan, parts))
    }

    fn exact_parts(&self, plan: &Plan) -> Result<Vec<ExactPart>, QueryError> {
        let rows = Rows::unpaid(self, 1);
        let ranges: Vec<(f64, f64)> = Vec::new();
        let mut parts = Vec::new();
        for part in &plan.parts {
            let (frame, measures) = rows.exact(part, &ranges).map_err(|error| QueryError::failed(error.to_string()))?;
            parts.push(ExactPart {
                keys: frame.rows(&(0..frame.groups).collect::<Vec<_>>())?,
                measures: measures.iter().map(BoundedSum::exact_for_tests).collect(),
                presence: frame.presence.as_ref().map_or_else(Vec::new, BoundedSum::exact_for_tests),
                kept: [0, 1].map(|i: usize| frame.kept[i].exact_for_tests()[0]),
            });
        }
        Ok(parts)
    }

    /// Sanitises one question many times over without charging anything: for audits, which need thousands of runs. Never for people.
    ///
    /// The engine runs once, unless bounds are found privately, since what it finds is the same each time.
    #[doc(hidden)]
    pub fn release_many_for_audit(&self, sql: &str, asking: &Asking, times: usize) -> Result<Audited, QueryError> {
        self.audited(sql, asking, times, false)
    }

    /// The same with what the question makes of each release, intervals and all. Never for people.
    #[doc(hidden)]
    pub fn answer_many_for_audit(&self, sql: &str, asking: &Asking, times: usize) -> Result<Audited, QueryError> {
        self.audited(sql, asking, times, true)
    }

    fn audited(&self, sql: &str, asking: &Asking, times: usize, whole: bool) -> Result<Audited, QueryError> {
        let plan = self.plan(sql, asking)?;
        let (mut runs, mut answers) = (Vec::with_capacity(times), Vec::new());
        let calibrated = self.sanitised_often(&plan, asking, times, |released, calibrated| {
            if whole {
                let statement = Self::statement(&plan, asking.confidence()?, &released);
                answers.push(self.finish(&plan, Some(calibrated), &released, statement)?);
            }
            let rows = released.parts.into_iter().flat_map(|part| {
                let cells = part.cells;
                let row = move |(i, keys): (usize, Vec<Value>)| {
                    (keys, cells.iter().map(|column| column[i].value.clone()).collect())
                };
                part.keys.into_iter().enumerate().map(row).collect::<Vec<_>>()
            });
            runs.push(rows.collect());
            Ok(())
        })?;
        Ok(Audited { prices: Statement::prices(&calibrated.charge, calibrated.delta), runs, answers })
    }

    /// Sanitises a plan so many times, and hands on what comes of it.
    fn sanitised_often(
        &self,
        plan: &Plan,
        asking: &Asking,
        times: usize,
        mut each: impl FnMut(Released, &Calibrated) -> Result<(), QueryError>,
    ) -> Result<Calibrated, QueryError> {
        let failed = |error: SanitiseError| QueryError::failed(error.to_string());
        let (epsilon, delta) = self.price_of(&plan.dataset, asking)?;
        let calibrated = calibrate(plan, epsilon, delta)?;
        let mechanism = QueryMechanism::new(self, plan, Some(&calibrated), asking.confidence()?);
        let rows = Rows::unpaid(self, 1);
        let finds = plan.parts.iter().any(|part| !part.autos.is_empty());
        let exact = if finds {
            Vec::new()
        } else {
            plan.parts.iter().map(|part| rows.exact(part, &[])).collect::<Result<Vec<_>, _>>().map_err(failed)?
        };
        for _ in 0..times {
            let released = if finds {
                mechanism.everything(&rows, &mut Os).map_err(failed)?
            } else {
                let mut released = Released::default();
                for (number, (frame, sums)) in exact.iter().enumerate() {
                    mechanism.sanitised(number, frame, sums.clone(), &[], &mut released, &mut Os).map_err(failed)?;
                }
                released
            };
            each(released, &calibrated)?;
        }
        Ok(calibrated)
    }
}

/// That files are those of the fingerprint still, when all was read: what was read of another file must not be stored as an answer about this one.
pub(crate) fn unchanged(stamps: &Stamps) -> Result<(), ReadError> {
    Ok(stamps.check()?)
}

/// Why nothing was released, and what to do.
pub(crate) fn unserved(error: DeskError) -> QueryError {
    let (sentence, hint) = (error.to_string(), error.hint());
    match error {
        DeskError::Refused { refusal, fits: Some(fits) } => {
            QueryError::refused(refusal, Some(format!("nothing was charged; `asking.epsilon = {fits}` would fit")))
        }
        DeskError::Refused { refusal, fits: None } => {
            let adds_up = "nothing was charged; a budget with `currency = \"sum\"` adds up ε alone: ask with `asking.delta = 0`, or leave the currency out of the budget";
            let short = refusal.shortfall.as_ref().map(|short| short.of);
            let uncountable = matches!(short, Some(ShortOf::Uncountable { .. }));
            QueryError::refused(refusal, if uncountable { Some(adds_up.to_owned()) } else { hint })
        }
        DeskError::Release(ReleaseError::Ledger(failure)) => {
            QueryError { hint, ..QueryError::failed(failure.to_string()) }
        }
        DeskError::Release(_) => QueryError::failed(sentence),
        DeskError::Interrupted(interruption) => {
            QueryError { hint, interrupted: Some(interruption), ..QueryError::failed(sentence) }
        }
        DeskError::Void { entry } => QueryError { hint, voided: Some(entry), ..QueryError::failed(sentence) },
        DeskError::Ledger(error) => of_ledger(error),
        DeskError::Unreadable { .. } => QueryError { hint, ..QueryError::failed(sentence) },
    }
}

#[cfg(test)]
mod tests;
