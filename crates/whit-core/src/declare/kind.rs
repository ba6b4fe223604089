//! The types that a column may be declared to have.

use serde::{Serialize, Serializer};
use std::fmt;

/// What the values of a column are. It is declared and never taken from values: a type that follows from rows tells of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers of 64 bits.
    Int,
    /// Numbers with a point, of 64 bits.
    Float,
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// A day.
    Date,
    /// A moment, to the nanosecond; without a zone.
    Timestamp,
    /// Exact decimals: so many digits in all, and so many of them behind the point.
    Decimal {
        /// The most digits, at most 38.
        precision: u8,
        /// Those behind the point.
        scale: u8,
    },
    /// Lists of one of the others.
    List(Box<ColumnType>),
}

impl ColumnType {
    /// The types that are one word.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("int", Self::Int),
        ("float", Self::Float),
        ("text", Self::Text),
        ("bool", Self::Bool),
        ("date", Self::Date),
        ("timestamp", Self::Timestamp),
    ];

    /// Every type, as a sentence lists them.
    pub const KNOWN: &'static str = "int, float, text, bool, date, timestamp, decimal(p, s), list(TYPE)";

    /// The type that a text names.
    ///
    /// ```
    /// use whit_core::declare::ColumnType;
    /// assert_eq!(ColumnType::parse("decimal(10, 2)"), Some(ColumnType::Decimal { precision: 10, scale: 2 }));
    /// assert_eq!(ColumnType::parse("list(float)").unwrap().to_string(), "list(float)");
    /// assert_eq!(ColumnType::parse("number"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((_, kind)) = Self::WORDS.iter().find(|(word, _)| *word == text) {
            return Some(kind.clone());
        }
        let (word, inside) = text.strip_suffix(')')?.split_once('(')?;
        match word.trim() {
            "list" => Self::parse(inside).filter(|item| !matches!(item, Self::List(_))).map(|i| Self::List(i.into())),
            "decimal" => {
                let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
                let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
                ((1..=38).contains(&precision) && scale <= precision).then_some(Self::Decimal { precision, scale })
            }
            _ => None,
        }
    }

    /// Whether its values are numbers, and so may have bounds.
    pub fn is_number(&self) -> bool {
        match self {
            Self::Int | Self::Float | Self::Decimal { .. } => true,
            Self::Text | Self::Bool | Self::Date | Self::Timestamp | Self::List(_) => false,
        }
    }
}

impl fmt::Display for ColumnType {
    /// As it is written in `whit.toml`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Text => f.write_str("text"),
            Self::Bool => f.write_str("bool"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision}, {scale})"),
            Self::List(item) => write!(f, "list({item})"),
        }
    }
}

impl Serialize for ColumnType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        for text in
            ["int", "float", "text", "bool", "date", "timestamp", "decimal(10, 2)", "list(int)", "list(decimal(5, 5))"]
        {
            assert_eq!(ColumnType::parse(text).map(|kind| kind.to_string()).as_deref(), Some(text));
        }
        assert_eq!(ColumnType::parse(" decimal( 9 ) "), Some(ColumnType::Decimal { precision: 9, scale: 0 }));
        for wrong in [
            "",
            "Int",
            "decimal(39, 2)",
            "decimal(3, 4)",
            "decimal(0)",
            "decimal(-1)",
            "list(list(int))",
            "list()",
            "int(",
        ] {
            assert_eq!(ColumnType::parse(wrong), None, "{wrong}");
        }
    }
}
