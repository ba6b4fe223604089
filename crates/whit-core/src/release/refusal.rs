//! A budget's "no": in words for people, in numbers for programs.

use crate::unit::Unit;

/// A budget's "no". Nothing was drawn and nothing was charged.
///
/// ```
/// use whit_core::Refusal;
/// let no = Refusal::new("ε = 2", "ε = 0.5", "user (id), replace");
/// assert_eq!(no.to_string(), "this release needs ε = 2 per user (id), replace, and ε = 0.5 of the budget is left");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("this release needs {asked} per {unit}, and {left} of the budget is left")]
pub struct Refusal {
    /// What the release would have cost, such as "ε = 1.2 at δ = 1e-6".
    pub asked: String,
    /// What the budget has left, in the same words.
    pub left: String,
    /// The unit whose budget ran out first.
    pub unit: String,
    /// The largest ε of this kind of cost that would have fitted, where the ledger can tell.
    pub available: Option<f64>,
    /// The same in numbers, for programs; nothing where there was no budget or no ledger to ask.
    pub shortfall: Option<Box<Shortfall>>,
}

impl Refusal {
    /// A "no" in words alone.
    pub fn new(asked: impl Into<String>, left: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { asked: asked.into(), left: left.into(), unit: unit.into(), available: None, shortfall: None }
    }
}

/// Which budget said no, and how much it is short of. The numbers are as they were computed; those of the sentence are rounded, what is asked up and what is left down.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortfall {
    /// The unit whose budget it is.
    pub unit: Unit,
    /// Whose budget it is, where it is one analyst's own.
    pub analyst: Option<String>,
    /// The slice in which it is short, such as "day = 2024-01-03", where its units lie in slices and not all are.
    pub slice: Option<String>,
    /// What it is short of.
    pub of: ShortOf,
    /// The ε of the whole question or training that was tried and would fit now; nothing where none was found or looked for.
    pub fits: Option<f64>,
}

/// What a budget is short of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShortOf {
    /// ε, at the δ of the budget.
    Epsilon {
        /// What the release would have cost.
        asked: f64,
        /// What is left.
        left: f64,
        /// The δ of both.
        delta: f64,
    },
    /// δ that a release takes for itself, at no ε.
    Delta {
        /// What the release would have cost.
        asked: f64,
        /// What is left.
        left: f64,
    },
    /// Nothing that can be compared: the budget counts in a currency that has no price for this release.
    Uncountable {
        /// The ε that is left.
        left: f64,
        /// Its δ.
        delta: f64,
    },
}
