//! The smallest ε for an error.

use super::EXACT;
use crate::answer::{Error, Preview};
use crate::error::QueryError;
use crate::estimate::sql;
use crate::plan::Asking;
use crate::sanitise::{calibrate, is_private, short};
use crate::source::Tables;
use whit_core::digits::brief_up;

/// How close an answer should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// By so much.
    Absolute(f64),
    /// By such a share of each value, as it is in a group that is made up: a count is the number of its rows, and a sum, a mean or a ratio what their values come to
    /// where these lie evenly within their bounds, at the worst of the places that a preview tries.
    Relative {
        /// The share.
        share: f64,
        /// The size of a value of which no such group is made up, as of heavy hitters.
        of: f64,
    },
}

impl Within {
    fn number(self) -> f64 {
        match self {
            Self::Absolute(number) => number,
            Self::Relative { share, of } => share * of,
        }
    }

    /// Whether a value is so close. An error that is not known is no error that is small enough.
    fn holds(self, error: &Error) -> bool {
        match (self, error.share) {
            (Self::Relative { share, .. }, Some(own)) => own <= share,
            _ => error.within.is_some_and(|within| within <= self.number()),
        }
    }

    fn words(self) -> String {
        match self {
            Self::Absolute(number) => short(number),
            Self::Relative { share, .. } => format!("{} %", short(100.0 * share)),
        }
    }

    /// Finds the smallest ε at which all errors are within, and what is found there.
    pub(super) fn search<T>(
        self,
        at: impl Fn(f64) -> Result<T, QueryError>,
        errors: impl Fn(&T) -> Vec<&Error>,
    ) -> Result<T, QueryError> {
        let goal = self.number();
        if goal.is_nan() || goal <= 0.0 {
            return Err(QueryError::asked("an error of 0 or less cannot be promised", "give a number above 0"));
        }
        let noisy = |found: &T| -> Vec<Error> {
            errors(found).into_iter().filter(|error| error.words != EXACT).cloned().collect()
        };
        let reaches = |found: &T| noisy(found).iter().all(|error| self.holds(error));
        // Less than the least ε that a declaration or a command takes is found for nobody.
        let (mut low, mut high) = (1e-3_f64, 1e4_f64);
        let mut best = at(high)?;
        let errors = noisy(&best);
        if errors.iter().all(|error| error.within.is_none()) {
            return Err(QueryError::asked(
                "how wrong the answer would be depends on the data, so no ε can be found for an error",
                "preview it with a few values of `asking.epsilon`",
            ));
        }
        let of_nothing = errors.iter().find(|error| error.share == Some(f64::INFINITY));
        if let (Self::Relative { .. }, Some(error)) = (self, of_nothing) {
            return Err(QueryError::asked(
                format!(
                    "`{}` is 0 where its values lie evenly within their bounds, and of 0 there is no share",
                    error.name
                ),
                format!(
                    "give a number: with ε = 1 it would be off by {} or so",
                    of_nothing_at(&at(1.0)?, &noisy, error)
                ),
            ));
        }
        if !reaches(&best) {
            return Err(QueryError::asked(
                format!("no ε up to {high} brings every value within {}", self.words()),
                "ask for a larger error, or declare tighter caps and bounds",
            ));
        }
        let least = at(low)?;
        if reaches(&least) {
            return Ok(least);
        }
        while high / low > 1.001 {
            let middle = (low * high).sqrt();
            let found = at(middle)?;
            if reaches(&found) {
                (high, best) = (middle, found);
            } else {
                low = middle;
            }
        }
        Ok(best)
    }

    /// Refuses an ε that is more than one would pay.
    pub(super) fn affordable(self, epsilon: f64, asking: &Asking) -> Result<(), QueryError> {
        let most = asking.epsilon.unwrap_or(f64::INFINITY);
        // What is suggested below is rounded up to a hair.
        if epsilon <= most * (1.0 + 1e-9) {
            return Ok(());
        }
        let needed = brief_up(epsilon);
        Err(QueryError::asked(
            format!(
                "to bring every value within {} needs ε = {needed}, and `asking.epsilon` says {most} at most",
                self.words()
            ),
            format!("say `asking.epsilon = {needed}`, or ask for a larger error"),
        ))
    }
}

/// How far a column is off, in words.
fn of_nothing_at<T>(found: &T, noisy: &impl Fn(&T) -> Vec<Error>, column: &Error) -> String {
    let own = noisy(found).into_iter().find(|error| error.name == column.name);
    own.and_then(|error| error.within).map_or_else(|| "some".to_owned(), short)
}

impl Tables {
    /// The smallest ε with which every value of a question is off by no more than this, as far as its preview can tell. Where an ε is asked for, it is the most that one
    /// would pay.
    pub fn within(&self, sql: &str, asking: &Asking, within: Within) -> Result<Preview, QueryError> {
        let logical = self.logical(sql)?;
        let epsilon = if let Some((call, _)) = self.call(sql, &logical)? {
            let at =
                |epsilon: f64| sql::preview(&call, self, sql, &Asking { epsilon: Some(epsilon), ..asking.clone() });
            within.search(at, |preview| preview.errors.iter().collect())?.epsilon
        } else {
            // A plan does not depend on its price, nor are prices looked for before the noise is found.
            let plan = self.planned(sql, &logical, asking)?;
            if !plan.parts.iter().any(is_private) {
                return self.foreseen(&plan, asking).map(|(preview, _)| preview);
            }
            let delta = self.price_of(&plan.dataset, &Asking { epsilon: Some(1.0), ..asking.clone() })?.1;
            let at = |epsilon: f64| Ok((epsilon, self.errors_of(&plan, &calibrate(&plan, epsilon, delta)?, asking)?.0));
            within.search(at, |(_, errors)| errors.iter().collect())?.0
        };
        within.affordable(epsilon, asking)?;
        let asking = Asking { epsilon: Some(epsilon), ..asking.clone() };
        match self.call(sql, &logical)? {
            Some((call, _)) => sql::preview(&call, self, sql, &asking),
            None => self.foreseen(&self.outlined(sql, &logical, &asking)?, &asking).map(|(preview, _)| preview),
        }
    }
}
