//! How labels are reported by randomised response and what that costs, from parameters and what is public of rows: what a plan says of noisy labels.

use std::collections::BTreeMap;
use whit_core::mechanism::BadParameter;
use whit_core::mechanism::response::Response;
use whit_core::{Charge, Cost, Kind, Ladder, Mechanism, Rung, Unit};
use whit_noise::Ratio;

/// What noisy labels cannot be made of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer than two classes hide nothing.
    #[error("there are {0} classes: expected 2 or more")]
    Classes(u32),
    /// An ε that no coin can be made for.
    #[error(transparent)]
    Epsilon(#[from] BadParameter),
    /// Numbers that are no whole priors, or not one for each row.
    #[error("{given} {what} were given: expected {expected}")]
    Shape {
        /// Of what.
        what: &'static str,
        /// How many came.
        given: usize,
        /// What would do.
        expected: String,
    },
    /// Weights that no label can be ranked by.
    #[error("a prior has a weight that is negative or no number, or none above 0")]
    Prior,
    /// Labels of rows that move together under another unit.
    #[error("{0} is no unit of several labels")]
    Unit(Unit),
    /// No rows, so that there is nothing to report and nothing to pay for.
    #[error("labels of no rows are reported: that hides none, and would be free")]
    NoRows,
    /// Several labels of one user move at once, and whose they are is not known.
    #[error("the labels of a user need a column of users")]
    NoUsers,
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Classes(_) => "say how many classes there are, as you know without looking at the labels",
            Self::Epsilon(_) => "give ε as a fraction or decimal number of more than 0 and at most 80",
            Self::Shape { .. } => "give one number for each class, row by row",
            Self::Prior => {
                "give weights of 0 or more, such as a model's probabilities; equal ones where nothing is known"
            }
            Self::Unit(_) => "name a label unit with a key, such as all labels of one user",
            Self::NoRows => "say of how many rows the labels are, and whose: that is public under a label unit",
            Self::NoUsers => "give the user of each row, or leave that rung out of the ladder",
        }
    }
}

/// What answers cost: each label is asked for once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelPrice {
    /// An answer among two, whose odds are those of every answer.
    answer: Response,
    /// The units that several labels move with, and the most that move with one.
    grouped: Vec<(Unit, u64)>,
}

impl LabelPrice {
    /// Of an answer among two, where no unit has several labels.
    pub(crate) fn of_answer(answer: Response) -> Self {
        Self { answer, grouped: Vec::new() }
    }

    /// The same where one unit has all labels of rows with one owner.
    pub(crate) fn group(&mut self, unit: Unit, owners: &[u64], rows: usize) -> Result<(), Error> {
        if unit.kind() != Kind::Label || unit.key().is_empty() {
            return Err(Error::Unit(unit));
        }
        if owners.len() != rows {
            return Err(Error::Shape { what: "owners", given: owners.len(), expected: format!("{rows}, one a row") });
        }
        let mut counts = BTreeMap::new();
        for owner in owners {
            *counts.entry(owner).or_insert(0_u64) += 1;
        }
        self.grouped.push((unit, counts.into_values().max().unwrap_or(0)));
        Ok(())
    }

    /// What all answers together cost a rung.
    pub(crate) fn of(&self, rung: &Rung) -> Cost {
        if rung.unit.kind() != Kind::Label {
            return Cost::Everything;
        }
        if rung.unit.key().is_empty() {
            return self.answer.cost(rung);
        }
        match self.grouped.iter().find(|(unit, _)| *unit == rung.unit) {
            None => Cost::Everything,
            Some((_, 0)) => Cost::Nothing,
            Some((_, most)) => self.answer.cost(&Rung { holds: *most, ..rung.clone() }),
        }
    }

    /// Whether no rung loses more by another than by this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.answer == other.answer
            && other
                .grouped
                .iter()
                .all(|(unit, most)| self.grouped.iter().any(|(own, own_most)| own == unit && own_most >= most))
    }
}

/// Randomised response among two, three and so on up to all classes.
pub(crate) fn responses(classes: u32, epsilon: Ratio) -> Result<Vec<Response>, Error> {
    if classes < 2 {
        return Err(Error::Classes(classes));
    }
    Ok((2..=u64::from(classes)).map(|k| Response::for_epsilon(k, epsilon)).collect::<Result<Vec<_>, _>>()?)
}

/// How labels are reported by randomised response.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelReporting {
    /// What all answers together cost one label.
    pub epsilon: Ratio,
    /// How many classes there are.
    pub classes: u32,
    /// The share of rows whose labels are reported without a prior. Where it is less than 1, a model that is learned from these says what is likely of the others.
    pub first: f64,
}

impl LabelReporting {
    /// What it costs to report the labels of so many rows of these users, rung by rung. Whose they are, and how many, is public under a label unit.
    pub fn charge(&self, rows: usize, users: Option<&[u64]>, ladder: &Ladder) -> Result<Charge, Error> {
        let price = self.price(rows, users, ladder)?;
        Ok(ladder.rungs().iter().map(|rung| (rung.clone(), price.of(rung))).collect())
    }

    pub(crate) fn price(&self, rows: usize, users: Option<&[u64]>, ladder: &Ladder) -> Result<LabelPrice, Error> {
        if rows == 0 {
            return Err(Error::NoRows);
        }
        let mut price = LabelPrice::of_answer(responses(self.classes, self.epsilon)?[0]);
        for rung in ladder.rungs().iter().filter(|rung| !rung.unit.key().is_empty()) {
            price.group(rung.unit.clone(), users.ok_or(Error::NoUsers)?, rows)?;
        }
        Ok(price)
    }

    pub(crate) fn first_rows(&self, rows: usize) -> usize {
        (self.first.clamp(0.0, 1.0) * rows as f64).ceil() as usize
    }
}

/// What a plan knows of the labels that are reported before its first step: how, and at which price.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedLabels {
    pub(crate) reporting: LabelReporting,
    pub(crate) price: LabelPrice,
}
