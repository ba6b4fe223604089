//! What the ledger would say to a question, before it is asked.

use crate::answer::Preview;
use crate::error::{Fault, QueryError, of_ledger};
use crate::estimate::sql::{self, Charged};
use crate::plan::Asking;
use crate::release::unserved;
use crate::sanitise::calibrate;
use crate::source::Tables;
use serde::{Serialize, Serializer};
use whit_account::desk::{Desk, DeskError, Instead};
use whit_account::ledger::{Fit, Question, Register};
use whit_core::Refusal;
use whit_core::release::ShortOf;

/// How a question stands to one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetFit {
    /// The unit.
    pub unit: String,
    /// For whom; for everybody together where there is none.
    pub analyst: Option<String>,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// ε left, as `whit ledger` tells it; of the slices that are read, in that with least.
    #[serde(rename = "epsilon_left")]
    pub left: f64,
    /// That slice, such as "day = 2024-01-03", where the budget is kept by slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// Whether the question fits.
    pub fits: bool,
    /// The share of the whole budget that it takes, as the budget counts: of μ², ρ or ε. Infinite where the budget has no price for it.
    #[serde(with = "whit_core::persist::finite_or_word")]
    pub share: f64,
    /// How often it would, one after the other with fresh noise, as far as that is counted.
    pub times: u64,
    /// What it would say, where it does not: the sentence, and next to it the numbers as `shortfall`.
    #[serde(flatten, serialize_with = "in_words_and_numbers")]
    pub refusal: Option<Refusal>,
}

/// How a question stands to all budgets, and what asking it would come to.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fits {
    /// One after the other.
    pub budgets: Vec<BudgetFit>,
    /// The entry that answers it already: asking reads it again from there, and costs nothing.
    #[serde(rename = "stored_entry", skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// The entry under which it was interrupted: asking goes on there, and costs nothing more.
    #[serde(rename = "interrupted_entry", skip_serializing_if = "Option::is_none")]
    pub goes_on: Option<u64>,
    /// The largest ε with which it would fit all of them, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_that_fits: Option<String>,
    /// What asking would say in place of an answer, as far as the ledger has a say in it: a budget's "no", that no budget watches over it, that one cannot be kept.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "denial")]
    pub denied: Option<QueryError>,
}

/// Why something would not be done, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Denial {
    kind: &'static str,
    message: String,
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortfall: Option<ShortfallView>,
}

impl Denial {
    /// Whose move it is (`asked`, `refused` or `failed`), the sentence, the next step, and the budget's "no" that it is.
    pub fn new(kind: &'static str, message: String, hint: Option<String>, refusal: Option<&Refusal>) -> Self {
        Self { kind, message, hint, shortfall: refusal.and_then(ShortfallView::of) }
    }
}

/// A budget's "no" in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct ShortfallView {
    unit: String,
    analyst: Option<String>,
    /// The slice in which it is short, where the budget is kept by slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<String>,
    /// `epsilon` or `delta`; nothing where the budget has no price for this release.
    of: Option<&'static str>,
    #[serde(serialize_with = "number_or_word")]
    asked: Option<f64>,
    left: f64,
    /// The δ of an ε.
    delta: Option<f64>,
    /// The ε of the whole question or training that was tried and would fit.
    fits: Option<f64>,
}

impl ShortfallView {
    fn of(refusal: &Refusal) -> Option<Self> {
        let shortfall = refusal.shortfall.as_ref()?;
        let (of, asked, left, delta) = match shortfall.of {
            ShortOf::Epsilon { asked, left, delta } => (Some("epsilon"), Some(asked), left, Some(delta)),
            ShortOf::Delta { asked, left } => (Some("delta"), Some(asked), left, None),
            ShortOf::Uncountable { left, delta } => (None, None, left, Some(delta)),
        };
        let (unit, analyst, slice) = (shortfall.unit.to_string(), shortfall.analyst.clone(), shortfall.slice.clone());
        Some(Self { unit, analyst, slice, of, asked, left, delta, fits: shortfall.fits })
    }
}

/// An ε may be infinite, which is no number of JSON.
#[expect(clippy::ref_option, reason = "as serde calls it")]
fn number_or_word<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => whit_core::persist::finite_or_word::serialize(number, to),
        None => to.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn in_words_and_numbers<S: Serializer>(refusal: &Option<Refusal>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Both {
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shortfall: Option<ShortfallView>,
    }
    let shortfall = refusal.as_ref().and_then(ShortfallView::of);
    Both { refusal: refusal.as_ref().map(ToString::to_string), shortfall }.serialize(to)
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn denial<S: Serializer>(denied: &Option<QueryError>, to: S) -> Result<S::Ok, S::Error> {
    let view = denied.as_ref().map(|error| {
        let kind = match error.fault {
            Fault::Asked => "asked",
            Fault::Refused => "refused",
            Fault::Failed => "failed",
        };
        Denial::new(kind, error.sentence.clone(), error.hint.clone(), error.refusal.as_deref())
    });
    view.serialize(to)
}

impl Tables {
    /// What the ledger would say to a question that was previewed: whether it is answered there already, how it stands to every budget, and with which ε it would fit where one
    /// says no. What it says is what asking gets; nothing is written and nothing private is read.
    pub fn fits(
        &self,
        sql: &str,
        preview: &Preview,
        asking: &Asking,
        books: &mut dyn Register,
        analyst: &str,
    ) -> Result<Fits, QueryError> {
        if preview.prices.is_empty() {
            return Ok(Fits::default());
        }
        let (epsilon, delta) = (preview.epsilon, preview.delta);
        // As it was previewed: its ε may have been found for an error.
        let asking = Asking { epsilon: Some(epsilon), delta: Some(delta), ..asking.clone() };
        let logical = self.logical(sql)?;
        if let Some((call, _)) = self.call(sql, &logical)? {
            return self.foresee(sql::charged(&call, self, &asking, analyst)?, epsilon, books);
        }
        let plan = self.outlined(sql, &logical, &asking)?;
        let (question, reads) = self.question_of(&plan, sql, &asking, analyst)?;
        let charge = calibrate(&plan, epsilon, delta)?.charge;
        let price = Box::new(|epsilon: f64| Some(calibrate(&plan, epsilon, delta).ok()?.charge));
        self.foresee(Charged { question, reads, charge, price }, epsilon, books)
    }

    pub(super) fn foresee(
        &self,
        charged: Charged<'_>,
        epsilon: f64,
        books: &mut dyn Register,
    ) -> Result<Fits, QueryError> {
        let Charged { question, reads, charge, price } = charged;
        // Of data that is not as the ledger last saw it, nothing is stored.
        let known = self.known_fingerprint_of(&reads, books)?;
        let budgets = self.budgets(&question.dataset)?;
        let (mut stored, mut goes_on) = (None, None);
        if let Some(fingerprint) = known {
            let question = Question { fingerprint, ..question.clone() };
            stored = books.stored(&question).map_err(of_ledger)?.map(|stored| stored.number);
            let open = Desk::new(books, &budgets).goes_on(&question, &charge).map_err(of_ledger)?;
            goes_on = open.map(|entry| entry.number).filter(|_| stored.is_none());
        }
        // Where one of them cannot be kept there is nothing to show of any, and why is said below.
        let mut fits = books.fits((&question.dataset, &question.analyst), &budgets, &charge).unwrap_or_default();
        let mut denied = None;
        let paid = stored.is_some() || goes_on.is_some();
        if !paid {
            let price = |epsilon: f64, _: &mut dyn Register| price(epsilon);
            let instead = Instead::Search { epsilon, price: &price };
            denied = Desk::new(books, &budgets).fits(&question, &charge, instead).err();
        }
        let instead = match &denied {
            Some(DeskError::Refused { fits, .. }) => fits.clone(),
            _ => None,
        };
        for fit in &mut fits {
            // What is read again is charged to nobody.
            fit.refusal = fit.refusal.take().filter(|_| !paid);
            if let Some(shortfall) = fit.refusal.as_mut().and_then(|refusal| refusal.shortfall.as_mut()) {
                shortfall.fits = instead.as_ref().and_then(|epsilon| epsilon.parse().ok());
            }
        }
        let view = |Fit { budget, left, slice, refusal, share, times }: Fit| BudgetFit {
            unit: budget.unit.to_string(),
            analyst: budget.analyst,
            epsilon: budget.epsilon,
            delta: budget.delta,
            left,
            slice,
            fits: refusal.is_none(),
            share,
            times,
            refusal,
        };
        let budgets = fits.into_iter().map(view).collect();
        Ok(Fits { budgets, stored, goes_on, epsilon_that_fits: instead, denied: denied.map(unserved) })
    }
}
