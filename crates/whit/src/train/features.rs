//! What a training file says of features, of rows that are set aside, of what is missing and of classes: as it is written.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use whit_core::feature::{Feature, FeatureEncoding};
use whit_query::source::learn::SplitPart;

/// A feature: a column or SQL over one row, and how it becomes numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedFeature {
    pub(crate) feature: Feature,
    /// What is done where it is missing; as for all features where it says nothing.
    pub(super) missing: Option<Missing>,
}

/// What is done where a feature is missing or does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Missing {
    /// The row is left out; or read as 0, where rows stay in view.
    #[default]
    Drop,
    /// It is 0, and one more feature is 1.
    Indicator,
}

/// What numbers are multiplied with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ScaleSpec {
    By(f64),
    /// Declared bounds become −1 to 1.
    Bounds,
}

impl Default for ScaleSpec {
    fn default() -> Self {
        Self::By(1.0)
    }
}

/// Rows that are set aside.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitSpec {
    pub(super) by: SplitOwner,
    /// The share that is set aside.
    pub(super) test: f64,
    /// Another one sets others aside.
    #[serde(default)]
    pub(super) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SplitOwner {
    User,
    Row,
}

/// How much the loss of a row counts, by its class.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "weights are a number for each class, such as { yes = 3.0, no = 1.0 }")]
pub(crate) enum ClassWeights {
    /// A word for what would be found in rows.
    Word(String),
    Each(BTreeMap<String, f64>),
}

/// Which rows: those of a condition, and of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ChosenRows<'a> {
    pub(crate) filter: Option<&'a str>,
    pub(crate) part: Option<SplitPart>,
}

/// A feature that is more than a name, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureTable {
    column: String,
    #[serde(rename = "as", default)]
    how: EncodingName,
    keys: Option<Vec<KeyText>>,
    other: Option<bool>,
    width: Option<usize>,
    scale: Option<ScaleSpec>,
    offset: Option<f64>,
    bounds: Option<[f64; 2]>,
    missing: Option<Missing>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EncodingName {
    #[default]
    Number,
    OneHot,
    Hashed,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "keys are texts, whole numbers, or true and false")]
enum KeyText {
    Text(String),
    Whole(i64),
    Truth(bool),
}

impl KeyText {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }
}

impl FeatureTable {
    /// What it says, or what of it contradicts itself.
    fn asked(self) -> Result<AskedFeature, String> {
        let Self { column, how, keys, other, width, scale, offset, bounds, missing } = self;
        let only = |key: &str, there: bool, of: &str| {
            if there { Err(format!("the feature `{column}` has `{key}`, which is for {of}")) } else { Ok(()) }
        };
        if how != EncodingName::OneHot {
            only("keys", keys.is_some(), "as = \"one-hot\"")?;
            only("other", other.is_some(), "as = \"one-hot\"")?;
        }
        only("width", width.is_some() && how != EncodingName::Hashed, "as = \"hashed\"")?;
        if how != EncodingName::Number {
            only("scale", scale.is_some(), "numbers")?;
            only("offset", offset.is_some(), "numbers")?;
        }
        only("bounds", bounds.is_some() && scale != Some(ScaleSpec::Bounds), "scale = \"bounds\"")?;
        only("offset", offset.is_some() && scale == Some(ScaleSpec::Bounds), "a scale that is a number")?;
        let encoding = match (how, scale, offset) {
            (EncodingName::OneHot, ..) => {
                let keys = keys.map(|keys| keys.into_iter().map(KeyText::text).collect());
                FeatureEncoding::OneHot { keys, other: other.unwrap_or(false) }
            }
            (EncodingName::Hashed, ..) => {
                let width = width.ok_or_else(|| {
                    format!("the feature `{column}` is hashed, and `width` says not into how many places")
                })?;
                FeatureEncoding::Hashed { width }
            }
            (EncodingName::Number, Some(ScaleSpec::Bounds), _) => FeatureEncoding::Bounded { range: bounds },
            (EncodingName::Number, None, None) => FeatureEncoding::Plain,
            (EncodingName::Number, Some(ScaleSpec::By(scale)), offset) => {
                FeatureEncoding::Scaled { scale, offset: offset.unwrap_or(0.0) }
            }
            (EncodingName::Number, None, Some(offset)) => FeatureEncoding::Scaled { scale: 1.0, offset },
        };
        Ok(AskedFeature { feature: Feature { of: column, encoding, indicator: false }, missing })
    }
}

impl<'de> Deserialize<'de> for AskedFeature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReadsList;
        impl<'de> Visitor<'de> for ReadsList {
            type Value = AskedFeature;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a column, SQL over one row, or a table with `column`")
            }

            fn visit_str<E>(self, text: &str) -> Result<AskedFeature, E> {
                Ok(AskedFeature { feature: Feature::from(text), missing: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AskedFeature, A::Error> {
                FeatureTable::deserialize(MapAccessDeserializer::new(map))?.asked().map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(ReadsList)
    }
}

impl<'de> Deserialize<'de> for ScaleSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads;
        impl Visitor<'_> for Reads {
            type Value = ScaleSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or \"bounds\"")
            }

            fn visit_f64<E>(self, scale: f64) -> Result<ScaleSpec, E> {
                Ok(ScaleSpec::By(scale))
            }

            fn visit_i64<E>(self, scale: i64) -> Result<ScaleSpec, E> {
                Ok(ScaleSpec::By(scale as f64))
            }

            fn visit_u64<E>(self, scale: u64) -> Result<ScaleSpec, E> {
                Ok(ScaleSpec::By(scale as f64))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ScaleSpec, E> {
                if text == "bounds" {
                    return Ok(ScaleSpec::Bounds);
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reads)
    }
}
