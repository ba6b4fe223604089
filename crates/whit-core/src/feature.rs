//! How a value of a row becomes numbers that a model reads: the same for all rows, and known before one is read.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the things that a model reads of a row.
///
/// What it becomes follows from this and from types alone. A category is never found in rows: its keys are listed or declared, or it is hashed.
///
/// ```
/// use whit_core::feature::{FeatureEncoding, Feature};
/// let minutes = Feature::from("minutes");
/// assert!(minutes.is_plain());
/// let keys = Some(vec!["at".to_owned(), "de".to_owned()]);
/// let country = Feature { encoding: FeatureEncoding::OneHot { keys, other: true }, ..Feature::from("country") };
/// assert_eq!(country.names(3), ["country = at", "country = de", "country: other"]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "FeatureText", into = "FeatureText")]
pub struct Feature {
    /// A column, or an expression in SQL over one row.
    pub of: String,
    /// How its values become numbers.
    pub encoding: FeatureEncoding,
    /// Whether one more number says that there is none: 1 where nothing fits, and its other numbers are 0 then.
    pub indicator: bool,
}

/// How values become numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureEncoding {
    /// Numbers, lists of them, or bytes, as they are; what holds for all features is done to them.
    Plain,
    /// Numbers of their own scale: `scale · x + offset`.
    Scaled {
        /// What they are multiplied with.
        scale: f64,
        /// What is added then.
        offset: f64,
    },
    /// Clamped into a range, which becomes −1 to 1.
    Bounded {
        /// The range; that which is declared of the column where it is not said.
        range: Option<[f64; 2]>,
    },
    /// The same where a range is declared of the column, and else numbers as they are.
    BoundedWhereDeclared,
    /// A place for each key, with a 1 in that of the value; in none where it is no key.
    OneHot {
        /// The keys; those that are declared of the column where they are not said.
        keys: Option<Vec<String>>,
        /// Whether what is no key has a place of its own, the last.
        other: bool,
    },
    /// So many places, with a 1 in that to which a published hash sends the value. Several values share one.
    Hashed {
        /// How many.
        width: usize,
    },
}

impl Feature {
    /// Whether it is a column or an expression as it is.
    pub fn is_plain(&self) -> bool {
        self.encoding == FeatureEncoding::Plain && !self.indicator
    }

    /// What its numbers are called, of which a row has so many.
    pub fn names(&self, width: usize) -> Vec<String> {
        let of = &self.of;
        let own = width - usize::from(self.indicator && width > 0);
        let mut names: Vec<String> = match &self.encoding {
            FeatureEncoding::OneHot { keys, other } => {
                let keys = keys.iter().flatten().map(|key| format!("{of} = {key}"));
                keys.chain(other.then(|| format!("{of}: other"))).collect()
            }
            _ if own == 1 => vec![of.clone()],
            _ => (0..own).map(|at| format!("{of}[{at}]")).collect(),
        };
        names.extend(self.indicator.then(|| format!("{of}: missing")));
        names
    }
}

impl From<&str> for Feature {
    fn from(of: &str) -> Self {
        Self { of: of.to_owned(), encoding: FeatureEncoding::Plain, indicator: false }
    }
}

impl From<String> for Feature {
    fn from(of: String) -> Self {
        Self { of, encoding: FeatureEncoding::Plain, indicator: false }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.encoding {
            FeatureEncoding::Plain
            | FeatureEncoding::Scaled { .. }
            | FeatureEncoding::Bounded { .. }
            | FeatureEncoding::BoundedWhereDeclared => "",
            FeatureEncoding::OneHot { .. } => " (one-hot)",
            FeatureEncoding::Hashed { .. } => " (hashed)",
        };
        write!(f, "{}{how}", self.of)
    }
}

/// A feature in a file: its name alone where there is nothing more to say, as it was before there was.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum FeatureText {
    Name(String),
    Made {
        of: String,
        encoding: FeatureEncoding,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        indicator: bool,
    },
}

impl From<FeatureText> for Feature {
    fn from(written: FeatureText) -> Self {
        match written {
            FeatureText::Name(of) => Self::from(of),
            FeatureText::Made { of, encoding, indicator } => Self { of, encoding, indicator },
        }
    }
}

impl From<Feature> for FeatureText {
    fn from(feature: Feature) -> Self {
        if feature.is_plain() {
            return Self::Name(feature.of);
        }
        let Feature { of, encoding, indicator } = feature;
        Self::Made { of, encoding, indicator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Models have stored what these say.
    #[test]
    fn a_plain_feature_is_its_name_and_every_other_comes_back_as_it_was() {
        let keys = Some(vec!["at".to_owned()]);
        let all = [
            (Feature::from("x"), r#""x""#),
            (Feature { indicator: true, ..Feature::from("x") }, r#"{"of":"x","encoding":"plain","indicator":true}"#),
            (
                Feature { encoding: FeatureEncoding::OneHot { keys, other: false }, ..Feature::from("c") },
                r#"{"of":"c","encoding":{"one-hot":{"keys":["at"],"other":false}}}"#,
            ),
            (
                Feature { encoding: FeatureEncoding::Hashed { width: 8 }, ..Feature::from("u") },
                r#"{"of":"u","encoding":{"hashed":{"width":8}}}"#,
            ),
            (
                Feature { encoding: FeatureEncoding::Bounded { range: Some([0.0, 0.1]) }, ..Feature::from("b") },
                r#"{"of":"b","encoding":{"bounded":{"range":[0.0,0.1]}}}"#,
            ),
        ];
        for (feature, text) in all {
            assert_eq!(serde_json::to_string(&feature).unwrap(), text);
            assert_eq!(serde_json::from_str::<Feature>(text).unwrap(), feature);
        }
    }

    #[test]
    fn numbers_are_called_after_their_keys_and_what_is_missing() {
        let keys = Some(vec!["at".to_owned(), "de".to_owned()]);
        let encoding = FeatureEncoding::OneHot { keys, other: false };
        let country = Feature { encoding, indicator: true, ..Feature::from("country") };
        assert_eq!(country.names(3), ["country = at", "country = de", "country: missing"]);
        assert_eq!(Feature::from("pixels").names(2), ["pixels[0]", "pixels[1]"]);
        assert_eq!(Feature { indicator: true, ..Feature::from("x") }.names(2), ["x", "x: missing"]);
    }
}
