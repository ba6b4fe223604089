//! An answer as flat columns, for formats in which a value cannot carry its interval with it.

use crate::answer::{Answer, Cell, Column, Role, Value};
use std::collections::BTreeSet;

/// Which part of its cells a flat column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellPart {
    /// The value.
    Value,
    /// The lower end of the interval.
    Low,
    /// The upper end of the interval.
    High,
}

/// One flat column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flat {
    /// Its name; no two columns of an answer share one.
    pub name: String,
    /// The answer's column that it is taken from.
    pub column: usize,
    /// What it holds of it.
    pub part: CellPart,
}

impl Flat {
    /// What the column holds of a row.
    pub fn of(&self, row: &[Cell]) -> Value {
        let Some(cell) = row.get(self.column) else { return Value::Null };
        match self.part {
            CellPart::Value => cell.value.clone(),
            CellPart::Low => cell.low.map_or(Value::Null, Value::Float),
            CellPart::High => cell.high.map_or(Value::Null, Value::Float),
        }
    }
}

/// The flat columns of an answer: each column under its name, and each noisy one also with `_low` and `_high` behind it.
///
/// A name that is taken gets a number, so that a reader never meets two columns of one name. Names that the question
/// gave come before names that are made here.
///
/// ```
/// use whit_query::export::flat;
/// use whit_query::{Column, Role};
/// let columns = [("shop", Role::Key), ("n", Role::Noisy), ("n_low", Role::Noisy)]
///     .map(|(name, role)| Column { name: name.into(), role, after_caps: false });
/// let names: Vec<String> = flat(&columns).into_iter().map(|flat| flat.name).collect();
/// assert_eq!(names, ["shop", "n", "n_low_2", "n_high", "n_low", "n_low_low", "n_low_high"]);
/// ```
pub fn flat(columns: &[Column]) -> Vec<Flat> {
    let mut taken = BTreeSet::new();
    let mut free = |name: String| {
        let numbered = (2..).map(|n: u64| format!("{name}_{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
        taken.insert(free.clone());
        free
    };
    let given: Vec<String> = columns.iter().map(|column| free(column.name.clone())).collect();
    let mut flat = Vec::new();
    for (column, name) in given.into_iter().enumerate() {
        flat.push(Flat { name, column, part: CellPart::Value });
        if columns[column].role == Role::Noisy {
            for (part, end) in [(CellPart::Low, "low"), (CellPart::High, "high")] {
                flat.push(Flat { name: free(format!("{}_{end}", columns[column].name)), column, part });
            }
        }
    }
    flat
}

/// The type that all values of a flat column fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Bool,
    Int,
    Float,
    Text,
}

impl Sort {
    /// Whole numbers among others become floats, and anything among words becomes words.
    pub(super) fn of(flat: &Flat, answer: &Answer) -> Self {
        if flat.part != CellPart::Value {
            return Self::Float;
        }
        let sort = |row: &Vec<Cell>| match row.get(flat.column).map(|cell| &cell.value) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(_)) => Some(Self::Bool),
            Some(Value::Int(_)) => Some(Self::Int),
            Some(Value::Float(_)) => Some(Self::Float),
            Some(Value::Text(_)) => Some(Self::Text),
        };
        let both = |a, b| match (a, b) {
            (a, b) if a == b => a,
            (Self::Int, Self::Float) | (Self::Float, Self::Int) => Self::Float,
            (_, _) => Self::Text,
        };
        // A column of nothing is taken for what most columns are.
        let empty = if answer.columns[flat.column].role == Role::Key { Self::Text } else { Self::Float };
        answer.rows.iter().filter_map(sort).reduce(both).unwrap_or(empty)
    }
}

/// A value as text, with every digit; nothing for nothing.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        // Debug writes the shortest digits that read back as the same float, and an exponent where they are many.
        Value::Float(value) => Some(format!("{value:?}")),
        Value::Text(value) => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_columns_of_one_name_are_told_apart() {
        let columns = ["n", "n", "n_2"].map(|name| Column { name: name.into(), role: Role::Exact, after_caps: false });
        let names: Vec<String> = flat(&columns).into_iter().map(|flat| flat.name).collect();
        assert_eq!(names, ["n", "n_2", "n_2_2"]);
    }

    #[test]
    fn text_keeps_every_digit() {
        for number in [0.1, 1.0 / 3.0, 1e300, -5e-324, 12.0] {
            let text = text(&Value::Float(number)).expect("a number");
            assert_eq!(text.parse::<f64>().expect("a number"), number);
        }
        assert_eq!((text(&Value::Null), text(&Value::Int(i64::MIN))), (None, Some(i64::MIN.to_string())));
    }
}
