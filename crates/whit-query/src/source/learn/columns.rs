//! Which columns can be features and targets, and how wide features are: from their types alone, before anything is charged.

use super::made::Made;
use super::open::{opens, width_of};
use super::{Reading, Target};
use crate::error::QueryError;
use crate::source::fit::column;
use crate::source::{Source, Tables, line};
use crate::translate::in_words;
use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::DataType;
use std::collections::BTreeSet;
use whit_core::declare::{Bounds, Keys};
use whit_core::feature::{Feature, FeatureEncoding};

/// The most places of a value that is hashed.
const MOST_PLACES: usize = 1 << 20;

impl Tables {
    /// The features with what is declared of them, and how many numbers a row has in each; or why one of them is none.
    pub(super) fn as_declared(
        &self,
        source: &Source,
        reading: &Reading<'_>,
        made: &[Made],
    ) -> Result<(Vec<Feature>, Vec<usize>), QueryError> {
        let features = reading.features;
        if features.is_empty() {
            return Err(QueryError::asked("no features are named", "write features = [\"age\", \"income\"]"));
        }
        if let Some(odd) = reading.widths.keys().find(|name| !features.iter().any(|feature| feature.of == **name)) {
            let names: Vec<&str> = features.iter().map(|feature| feature.of.as_str()).collect();
            return Err(QueryError::asked(
                format!("`widths` names `{odd}`, which is no feature"),
                format!("features are: {}", names.join(", ")),
            ));
        }
        let one = |(feature, made): (&Feature, &Made)| {
            let encoding = self.encoding(source, feature, &made.kind)?;
            let width = match &encoding {
                FeatureEncoding::OneHot { keys, other } => keys.as_ref().map_or(0, Vec::len) + usize::from(*other),
                FeatureEncoding::Hashed { width } => *width,
                _ => numbers(source, &feature.of, &made.kind, reading)?,
            };
            Ok((Feature { encoding, ..feature.clone() }, width + usize::from(feature.indicator)))
        };
        let found: Result<Vec<_>, QueryError> = features.iter().zip(made).map(one).collect();
        Ok(found?.into_iter().unzip())
    }

    /// How a feature becomes numbers, with the keys or the range that are declared of it.
    fn encoding(&self, source: &Source, feature: &Feature, kind: &DataType) -> Result<FeatureEncoding, QueryError> {
        let (name, dataset) = (&feature.of, &source.dataset);
        let asked = |what: &str, hint: String| QueryError::asked(format!("`{}.{name}` {what}", dataset.name), hint);
        let declared = match dataset.columns.get(name).and_then(|declared| declared.bounds) {
            Some(Bounds::Declared { low, high }) if kind.is_numeric() => Some([low, high]),
            _ => None,
        };
        Ok(match &feature.encoding {
            FeatureEncoding::Plain => FeatureEncoding::Plain,
            FeatureEncoding::Scaled { scale, offset } => {
                let fits = (1e-30..=1e30).contains(&scale.abs()) && offset.abs() <= 1e30;
                if !fits {
                    let what = "is scaled by what is 0, infinite, or out of reach of single precision";
                    return Err(asked(what, "write scale = 0.1 and offset = 0".to_owned()));
                }
                FeatureEncoding::Scaled { scale: *scale, offset: *offset }
            }
            FeatureEncoding::BoundedWhereDeclared => {
                declared.map_or(FeatureEncoding::Plain, |range| FeatureEncoding::Bounded { range: Some(range) })
            }
            FeatureEncoding::Bounded { range } => {
                let range = range.or(declared).ok_or_else(|| {
                    let hint = format!(
                        "state a range that you can defend without looking: bounds = [0, 600] beside scale = \"bounds\", or columns.{}.bounds = [0, 600] in whit.toml",
                        line::key(name)
                    );
                    asked("is to be scaled by its bounds, and none are declared", hint)
                })?;
                if !(range[0] < range[1] && (range[1] - range[0]).is_finite()) {
                    return Err(asked(
                        "has bounds that are no range",
                        "write the least and the largest value: bounds = [0, 600]".to_owned(),
                    ));
                }
                FeatureEncoding::Bounded { range: Some(range) }
            }
            FeatureEncoding::Hashed { width } => {
                category(source, name, kind)?;
                if !(1..=MOST_PLACES).contains(width) {
                    return Err(asked(
                        &format!("is hashed into {width} places, and there may be 1 to {MOST_PLACES}"),
                        "write width = 64: more places let fewer values share one".to_owned(),
                    ));
                }
                FeatureEncoding::Hashed { width: *width }
            }
            FeatureEncoding::OneHot { keys, other } => {
                category(source, name, kind)?;
                let keys = match (keys, dataset.keys(name)) {
                    (Some(keys), _) | (None, Some(Keys::Listed(keys))) => keys.clone(),
                    (None, Some(Keys::FromTable { table, column })) => self.public_keys(table, column)?,
                    (None, None) => {
                        let hint = format!(
                            "list them: keys = [\"at\", \"de\"] beside as = \"one-hot\", or columns.{}.keys in whit.toml; or take as = \"hashed\"",
                            line::key(name)
                        );
                        return Err(asked(
                            "is to be one-hot, and nothing says which values there are: those of rows are private",
                            hint,
                        ));
                    }
                };
                check_keys(source, name, kind, &keys)?;
                FeatureEncoding::OneHot { keys: Some(keys), other: *other }
            }
        })
    }
}

/// Whether a value of this type is the same thing twice, so that it can be a category.
fn category(source: &Source, name: &str, kind: &DataType) -> Result<(), QueryError> {
    let plain = match kind {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    if plain.is_string() || plain.is_integer() || matches!(plain, DataType::Boolean | DataType::Date32) {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{}.{name}` is to be a category, but is {}", source.dataset.name, in_words(kind)),
        "categories are texts, whole numbers, dates, and true or false; write SQL that makes it one, such as CAST(floor(x) AS INT)",
    ))
}

/// Whether a row could have each of the keys, and each is there once.
fn check_keys(source: &Source, name: &str, kind: &DataType, keys: &[String]) -> Result<(), QueryError> {
    let asked = |what: String, hint: &str| {
        Err(QueryError::asked(format!("the keys of `{}.{name}` {what}", source.dataset.name), hint))
    };
    if keys.is_empty() {
        return asked("are none".to_owned(), "list at least one");
    }
    let mut met = BTreeSet::new();
    if let Some(again) = keys.iter().find(|key| !met.insert(key.as_str())) {
        return asked(format!("have `{again}` twice"), "list each once");
    }
    let never = |key: &&String| match kind {
        kind if kind.is_integer() => key.parse::<i128>().map_or(true, |number| number.to_string() != **key),
        DataType::Boolean => !matches!(key.as_str(), "true" | "false"),
        _ => false,
    };
    match keys.iter().find(never) {
        Some(key) => asked(
            format!("have `{key}`, which no row can: it is {}", in_words(kind)),
            "write keys as the column has them: 7, true, \"at\"",
        ),
        None => Ok(()),
    }
}

/// How many numbers a row has in a column or an expression, as they are.
fn numbers(source: &Source, name: &str, kind: &DataType, reading: &Reading<'_>) -> Result<usize, QueryError> {
    let asked = |what: String, hint: String| {
        QueryError::asked(format!("`{}.{name}` {what}", reading.dataset), hint.replace("{name}", name))
    };
    if !opens(kind) {
        let category = if kind.is_string() {
            format!(
                "; or make it a category: {{ column = \"{name}\", as = \"one-hot\", keys = […] }}, or as = \"hashed\""
            )
        } else {
            String::new()
        };
        let hint = format!(
            "features are numbers, lists of numbers, or bytes: make it one where it is written{}{category}",
            instead(source, name, kind, opens)
        );
        return Err(asked(format!("is to be a feature, but is {}", in_words(kind)), hint));
    }
    let width = width_of(kind, reading.bits, reading.widths.get(name).copied());
    width.map_err(|(what, hint)| asked(what, hint.to_owned()))
}

/// Whether a column is there and can be written as text.
pub(super) fn check_carried(source: &Source, name: &str) -> Result<(), QueryError> {
    let kind = column(source, name, "id")?;
    if can_cast_types(kind, &DataType::Utf8) && !kind.is_nested() {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{}.{name}` is to be carried along as text, but is {}", source.dataset.name, in_words(kind)),
        "name a column of texts, numbers or dates",
    ))
}

/// Whether some row could have a target at all. What a training never learns from is not paid for.
pub(super) fn check_target(source: &Source, target: Target<'_>, kind: &DataType) -> Result<(), QueryError> {
    let Target { column: name, classes, counted, .. } = target;
    let asked =
        |what: String, hint: String| QueryError::asked(format!("`{}.{name}` {what}", source.dataset.name), hint);
    let number = |kind: &DataType| kind.is_numeric() || *kind == DataType::Boolean;
    let instead = || instead(source, name, kind, number);
    if kind.is_string() {
        return match classes {
            None => Err(asked(
                "is text, and nothing says which classes there are".to_owned(),
                format!("name them: classes = [\"no\", \"yes\"]{}", instead()),
            )),
            Some(classes) if counted => Err(asked(
                format!("is text, and `classes = {}` are numbers from 0, which no text is", classes.len()),
                format!("name them: classes = [\"no\", \"yes\"]{}", instead()),
            )),
            Some(_) => Ok(()),
        };
    }
    if !number(kind) {
        return Err(asked(
            format!("is to be predicted, but is {}", in_words(kind)),
            format!("a target is a number, true or false, or one of some texts{}", instead()),
        ));
    }
    let classes = classes.unwrap_or_default();
    let named = |word: &str| classes.iter().any(|class| class == word);
    if *kind == DataType::Boolean {
        let half = named("true") != named("false");
        return if half {
            Err(asked(
                "is true or false, and `classes` names one of them alone".to_owned(),
                "name both: classes = [\"false\", \"true\"]".to_owned(),
            ))
        } else {
            Ok(())
        };
    }
    // Of numbers the first class is 0, whatever it is called.
    let moved = classes
        .iter()
        .enumerate()
        .find(|(place, class)| class.parse::<f64>().is_ok_and(|number| !number.is_nan() && number != *place as f64));
    match moved {
        None => Ok(()),
        Some((place, class)) => Err(asked(
            format!("is a number, and classes of numbers are counted from 0: what is called \"{class}\" would be {place}"),
            "write how many there are, with room for the largest: classes = 10; or names that are no numbers, of 0, of 1 and so on"
                .to_owned(),
        )),
    }
}

/// Which columns would do, and that a text may be declared as a number.
fn instead(source: &Source, name: &str, kind: &DataType, does: impl Fn(&DataType) -> bool) -> String {
    let fields = source.schema.fields().iter().filter(|field| does(field.data_type()));
    let names: Vec<&str> = fields.map(|field| field.name().as_str()).take(20).collect();
    let there = if names.is_empty() { String::new() } else { format!("; columns that are: {}", names.join(", ")) };
    let declared = if kind.is_string() {
        format!("; where its texts are numbers, declare columns.{} = \"float\" in whit.toml", line::key(name))
    } else {
        String::new()
    };
    there + &declared
}
