//! What a question gets: a table whose every value says how far off it may be, and what it cost.

use serde::{Deserialize, Serialize};
use whit_core::{Charge, Cost};

/// One value of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any number.
    Float(f64),
    /// Words, dates and times as text.
    Text(String),
}

/// What a column of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A group key.
    Key,
    /// A sanitised value, or one made of them.
    Noisy,
    /// A value that reads public columns only: exact and free.
    Exact,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, as the question gave it.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Whether caps may have left something out of it. Its interval is about what they leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_caps: bool,
}

/// One value with the interval in which the truth lies with the answer's confidence, where that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The released value.
    pub value: Value,
    /// The lower end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A table that left, with its statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, one cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// What the answer says of itself.
    pub statement: Statement,
}

/// What one rung paid, in symbols and as a loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// The unit with its change, in words: "element (user_id, domain), replace".
    pub unit: String,
    /// The symbolic cost, which a better accountant may read again.
    pub cost: Cost,
    /// ε at the δ next to it; infinite where nothing bounds it.
    #[serde(with = "whit_core::persist::finite_or_word")]
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The accountant that said so.
    pub accountant: String,
}

/// What an answer says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The data set.
    pub dataset: String,
    /// The question as it was asked.
    pub question: String,
    /// The protected unit, in words.
    pub unit: String,
    /// Each rung's price, the protected one first. Empty where nothing private was read.
    pub prices: Vec<Price>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// How each value was sanitised, in words: "count(*): rounded Gaussian, σ = 12.4".
    pub mechanisms: Vec<String>,
    /// What a reader must know: rows without a user left out, bounds found privately, public values taken as known.
    pub notes: Vec<String>,
    /// The hash of the partition, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The number of the entry in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// Whether the answer was read from the ledger and cost nothing this time.
    #[serde(default)]
    pub stored: bool,
    /// How many more at this price the budgets have room for, as far as that is counted; nothing where nothing was charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_like_this: Option<u64>,
}

impl Statement {
    /// The prices of a charge, each at `delta`, by the tightest accountant that knows its costs.
    pub fn prices(charge: &Charge, delta: f64) -> Vec<Price> {
        charge.iter().map(|(rung, cost)| price(rung.unit.to_string(), cost, delta)).collect()
    }
}

/// ε of a cost at δ: by PLD, or by the sum where δ is 0. Where GDP with δ set aside for keys proves less, that is told: noise was
/// found by it, so no more is stated than was asked for, and it has an answer also where ε is so large that PLD has none of its own.
pub(crate) fn price(unit: String, cost: &Cost, delta: f64) -> Price {
    use whit_account::accountant::gdp::epsilon_with_deltas_aside;
    use whit_account::{Name, epsilon_by};
    let names = if delta > 0.0 { vec![Name::Pld, Name::Rdp, Name::Basic] } else { vec![Name::Basic] };
    // Who proved it, and not who was asked: PLD hands on what is beyond its lattice.
    let found =
        names.into_iter().find_map(|name| epsilon_by(cost, delta, name).ok().map(|(loss, by)| (loss.upper, by)));
    let (mut epsilon, mut name) = found.unwrap_or((f64::INFINITY, Name::Basic));
    if let Some(exact) = epsilon_with_deltas_aside(cost, delta).ok().filter(|&exact| exact < epsilon) {
        (epsilon, name) = (exact, Name::Gdp);
    }
    Price { unit, cost: cost.clone(), epsilon, delta, accountant: name.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_account::normal::gaussian_mu_down;
    use whit_core::{Delta, Epsilon};

    /// PLD is asked, and hands on what is no distribution to it.
    #[test]
    fn a_price_names_who_proved_it() {
        let cost = Cost::Concentrated { rho: whit_core::Rho::new(0.1).unwrap() };
        let (loss, by) = whit_account::epsilon_by(&cost, 1e-6, whit_account::Name::Pld).unwrap();
        assert_ne!(by, whit_account::Name::Pld);
        let found = price("user".to_owned(), &cost, 1e-6);
        assert_eq!((found.epsilon, found.accountant), (loss.upper, by.to_string()));
    }

    /// What is calibrated to an ε is stated as that ε and not as more, however large it is.
    #[test]
    fn an_epsilon_of_any_size_is_stated_as_it_was_asked_for() {
        for asked in [0.01, 0.5, 3.0, 20.0, 49.0, 51.0, 100.0, 300.0] {
            let keys = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(2.5e-7).unwrap() };
            let noise = |delta: f64| Cost::Gaussian { noise: 1.0 / (gaussian_mu_down(asked, delta) * (1.0 - 1e-9)) };
            for cost in [noise(1e-6), Cost::Series(vec![noise(7.5e-7), keys])] {
                let stated = price("user".to_owned(), &cost, 1e-6).epsilon;
                assert!(stated <= asked * 1.001 && stated >= asked * 0.99, "{asked} is stated as {stated}: {cost:?}");
            }
        }
    }
}

/// What one column of the answer would be off by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Error {
    /// The column.
    pub name: String,
    /// With the preview's confidence, off by at most this; nothing where it is exact, or where it depends on the data.
    pub within: Option<f64>,
    /// The same as a share of the value, in a group that is made up: the worst where it was tried at several places. Infinite where the value is 0 at one of them; nothing where
    /// no such group was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// In words, what it depends on.
    pub words: String,
}

/// A question that was planned and priced, and not asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preview {
    /// The question.
    pub question: String,
    /// The data set that would pay.
    pub dataset: String,
    /// The protected unit.
    pub unit: String,
    /// ε of the protected rung.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// What each rung would pay.
    pub prices: Vec<Price>,
    /// How wrong each column would be.
    pub errors: Vec<Error>,
    /// The confidence of that.
    pub confidence: f64,
    /// How it would be done, line by line.
    pub plan: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The answers to questions that were asked together, with one statement for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadAnswer {
    /// What they say of themselves together: one price, one entry, and the notes that are about all.
    pub statement: Statement,
    /// One after the other, as they were asked.
    pub answers: Vec<QuestionAnswer>,
}

/// The answer to one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// What the question was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The question.
    pub question: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, one cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// What a reader must know of this one.
    pub notes: Vec<String>,
}

impl WorkloadAnswer {
    /// One of the answers as it would stand by itself. Its price is that of all.
    pub fn answer(&self, place: usize) -> Option<Answer> {
        let QuestionAnswer { question, columns, rows, notes, .. } = self.answers.get(place)?.clone();
        Some(Answer { columns, rows, statement: Statement { question, notes, ..self.statement.clone() } })
    }
}

/// Questions that were planned and priced together, and not asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadPreview {
    /// What all of them would cost, and how it would be done. Errors are told question by question.
    #[serde(flatten)]
    pub whole: Preview,
    /// One after the other.
    pub questions: Vec<QuestionPreview>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuestionPreview {
    /// What it is called.
    pub name: Option<String>,
    /// The question.
    pub question: String,
    /// How wrong each of its columns would be.
    pub errors: Vec<Error>,
    /// What a reader must know of this one.
    pub notes: Vec<String>,
}
