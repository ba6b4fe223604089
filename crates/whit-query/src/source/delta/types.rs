//! The columns of a Delta table, as its log writes them: JSON of names and types.

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// The columns, and what they add to a fingerprint: names and types, without comments and defaults.
pub(super) struct LoggedColumns {
    pub(super) schema: SchemaRef,
    pub(super) mark: String,
}

/// The columns that a log says a table has; or why these are none.
pub(super) fn columns(text: &str, partitions: &[String]) -> Result<LoggedColumns, String> {
    let odd = || "its log does not say what its columns are".to_owned();
    let json: Value = serde_json::from_str(text).map_err(|_| odd())?;
    let listed = json.get("fields").and_then(Value::as_array).ok_or_else(odd)?;
    let (mut fields, mut mark, mut seen) = (Vec::new(), String::from("columns\n"), BTreeSet::new());
    for field in listed {
        let (name, own) = named(field).ok_or_else(odd)?;
        if !seen.insert(name) {
            return Err(format!("it has two columns called `{name}`"));
        }
        let kind = kind(own, true).ok_or_else(|| format!("its column `{name}` is of a type that is not known here"))?;
        if partitions.iter().any(|own| own == name) && (kind.is_nested() || kind == DataType::BinaryView) {
            return Err(format!("it is partitioned by `{name}`, whose values have no plain text"));
        }
        let _ = writeln!(mark, "{name:?} {own}"); // writing to a text never fails
        fields.push(Field::new(name, kind, true));
    }
    if let Some(missing) = partitions.iter().find(|name| !seen.contains(name.as_str())) {
        return Err(format!("it is partitioned by `{missing}`, which is none of its columns"));
    }
    let _ = writeln!(mark, "by {partitions:?}");
    Ok(LoggedColumns { schema: Arc::new(Schema::new(fields)), mark })
}

fn named(field: &Value) -> Option<(&str, &Value)> {
    Some((field.get("name")?.as_str()?, field.get("type")?))
}

/// A type of the log in the engine's words. That nothing is missing may follow from rows, so anything may be.
fn kind(value: &Value, top: bool) -> Option<DataType> {
    if let Some(word) = value.as_str() {
        return Some(match word {
            // The engine reads text as views, which copy nothing, where it is a column by itself.
            "string" if top => DataType::Utf8View,
            "string" => DataType::Utf8,
            "binary" if top => DataType::BinaryView,
            "binary" => DataType::Binary,
            "long" => DataType::Int64,
            "integer" => DataType::Int32,
            "short" => DataType::Int16,
            "byte" => DataType::Int8,
            "float" => DataType::Float32,
            "double" => DataType::Float64,
            "boolean" => DataType::Boolean,
            "date" => DataType::Date32,
            "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
            decimal => return self::decimal(decimal),
        });
    }
    let part = |name: &str| kind(value.get(name)?, false);
    match value.get("type")?.as_str()? {
        "struct" => {
            let field = |field: &Value| {
                let (name, own) = named(field)?;
                Some(Field::new(name, kind(own, false)?, true))
            };
            let fields: Option<Vec<Field>> = value.get("fields")?.as_array()?.iter().map(field).collect();
            Some(DataType::Struct(Fields::from(fields?)))
        }
        "array" => Some(DataType::List(Arc::new(Field::new("element", part("elementType")?, true)))),
        "map" => {
            let both = [Field::new("key", part("keyType")?, false), Field::new("value", part("valueType")?, true)];
            let entries = Field::new("key_value", DataType::Struct(Fields::from(both.to_vec())), false);
            Some(DataType::Map(Arc::new(entries), false))
        }
        _ => None,
    }
}

/// `decimal(10,2)`, or `decimal` for the widest without digits behind the point.
fn decimal(word: &str) -> Option<DataType> {
    let inner = word.strip_prefix("decimal")?;
    if inner.is_empty() {
        return Some(DataType::Decimal128(10, 0));
    }
    let (precision, scale) = inner.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale): (u8, i8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    (1..=38).contains(&precision).then_some(())?;
    (0..=i8::try_from(precision).ok()?).contains(&scale).then_some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str) -> Result<DataType, String> {
        let text =
            format!(r#"{{"type":"struct","fields":[{{"name":"c","type":{kind},"nullable":false,"metadata":{{}}}}]}}"#);
        columns(&text, &[]).map(|columns| columns.schema.field(0).data_type().clone())
    }

    #[test]
    fn types_of_the_log_are_types() {
        for (text, expected) in [
            ("\"long\"", DataType::Int64),
            ("\"string\"", DataType::Utf8View),
            ("\"decimal(10, 2)\"", DataType::Decimal128(10, 2)),
            ("\"timestamp_ntz\"", DataType::Timestamp(TimeUnit::Microsecond, None)),
            (
                r#"{"type":"array","elementType":"string","containsNull":true}"#,
                DataType::List(Arc::new(Field::new("element", DataType::Utf8, true))),
            ),
            (
                r#"{"type":"struct","fields":[{"name":"city","type":"string","nullable":true,"metadata":{}}]}"#,
                DataType::Struct(Fields::from(vec![Field::new("city", DataType::Utf8, true)])),
            ),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
        assert!(matches!(of(r#"{"type":"map","keyType":"string","valueType":"long"}"#), Ok(DataType::Map(..))));
        for text in ["\"variant\"", "\"decimal(40,2)\"", "\"decimal(4,5)\"", "\"decimal(x)\"", "7"] {
            assert!(of(text).unwrap_err().contains("`c` is of a type that is not known"), "{text}");
        }
    }

    #[test]
    fn comments_change_no_mark_and_types_do() {
        let text = |kind: &str, comment: &str| {
            format!(
                r#"{{"fields":[{{"name":"c","type":"{kind}","nullable":true,"metadata":{{"comment":"{comment}"}}}}]}}"#
            )
        };
        let mark = |text: String| columns(&text, &[]).unwrap_or_else(|why| panic!("{why}")).mark;
        assert_eq!(mark(text("long", "a")), mark(text("long", "b")));
        assert_ne!(mark(text("long", "a")), mark(text("integer", "a")));
        assert!(columns(&text("long", ""), &["d".to_owned()]).is_err_and(|why| why.contains("none of its columns")));
        assert!(columns(&text("binary", ""), &["c".to_owned()]).is_err_and(|why| why.contains("no plain text")));
        assert!(columns("[]", &[]).is_err() && columns("{", &[]).is_err());
    }
}
