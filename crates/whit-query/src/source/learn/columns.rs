//! Which columns can be features and targets, and how wide features are: from their types alone, before anything is charged.

use super::open::{opens, width_of};
use super::{Reading, Target};
use crate::error::QueryError;
use crate::source::fit::column;
use crate::source::{Source, line};
use crate::translate::in_words;
use datafusion::arrow::datatypes::DataType;

/// How many numbers a row has in each of the features, or why one of them is none.
pub(super) fn widths(source: &Source, reading: &Reading<'_>) -> Result<Vec<usize>, QueryError> {
    let features = reading.features;
    if features.is_empty() {
        return Err(QueryError::asked("no features are named", "write features = [\"age\", \"income\"]"));
    }
    if let Some(odd) = reading.widths.keys().find(|name| !features.contains(name)) {
        return Err(QueryError::asked(
            format!("`widths` names `{odd}`, which is no feature"),
            format!("features are: {}", features.join(", ")),
        ));
    }
    let width = |name: &String| {
        let kind = column(source, name, "features")?;
        let asked = |what: String, hint: String| {
            QueryError::asked(format!("`{}.{name}` {what}", reading.dataset), hint.replace("{name}", name))
        };
        if !opens(kind) {
            let hint = format!(
                "features are numbers, lists of numbers, or bytes: make it one where it is written{}",
                instead(source, name, kind, opens)
            );
            return Err(asked(format!("is to be a feature, but is {}", in_words(kind)), hint));
        }
        let width = width_of(kind, reading.bits, reading.widths.get(name).copied());
        width.map_err(|(what, hint)| asked(what, hint.to_owned()))
    };
    features.iter().map(width).collect()
}

/// Whether some row could have a target at all. What a training never learns from is not paid for.
pub(super) fn check_target(source: &Source, target: Target<'_>) -> Result<(), QueryError> {
    let Target { column: name, classes, counted, .. } = target;
    let kind = column(source, name, "target")?;
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
