//! What makes two questions the same: a versioned JSON of our own, in one spelling.
//!
//! A ledger answers a question from what it has stored where data set, data and meaning are the same. So a meaning may hold nothing that
//! changes when code is renamed or a library is replaced (no `Debug`, no other crate's display), and it must hold everything on which the
//! answer depends. Whoever asks something of a new kind writes it as JSON, under a name and a version of its own, and adds golden files:
//! they fail when a meaning changes by accident, and then stored answers would be paid for again.
//!
//! # The spelling
//! `{"asked":KIND,"version":N,"of":…}`, without spaces; members of an object in the order of their names' bytes; whole numbers in decimal digits;
//! others as the fewest decimal digits that read as the same `f64`, with an exponent (`9.5e-1`); text with `"`, `\` and control characters
//! escaped as JSON asks for, and nothing else.
//!
//! ```
//! use serde_json::json;
//! use whit_account::meaning;
//! let asked = meaning::of("count", 1, &json!({ "where": [], "rows": "visits", "epsilon": 0.5 }));
//! assert_eq!(asked, r#"{"asked":"count","version":1,"of":{"epsilon":5e-1,"rows":"visits","where":[]}}"#);
//! ```

use serde_json::Value;
use std::fmt::Write as _;
use whit_core::Rung;

/// The meaning of a question of this kind, whose format has this version.
pub fn of(kind: &str, version: u32, what: &Value) -> String {
    let mut text = String::from("{\"asked\":");
    write_text(kind, &mut text);
    let _ = write!(text, ",\"version\":{version},\"of\":");
    write(what, &mut text);
    text.push('}');
    text
}

/// A value in the one spelling: two values have the same text if and only if they are the same.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Values in an order of their own, each once: for what is a set.
pub fn set(mut values: Vec<Value>) -> Value {
    values.sort_by_cached_key(text);
    values.dedup();
    Value::Array(values)
}

/// A number that JSON may not have: infinities and NaN are words.
pub fn number(number: f64) -> Value {
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("not a number"),
        None => Value::from(if number > 0.0 { "infinity" } else { "-infinity" }),
    }
}

/// Units and what coarser ones hold of them, as ledgers write them too.
pub fn units(rungs: &[Rung]) -> Value {
    // A rung is made of text, whole numbers and two words: it can be written.
    // Which slices are read follows from the question, and a declaration of slices asks no other one.
    let of = |rung: &Rung| {
        let rung = Rung { slices: None, ..rung.clone() };
        serde_json::to_value(&rung).unwrap_or_else(|_| Value::from(rung.to_string()))
    };
    rungs.iter().map(of).collect()
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => write!(text, "{whole}"),
                (_, Some(whole), _) => write!(text, "{whole}"),
                (_, _, Some(number)) => write!(text, "{number:e}"),
                // There are no other numbers without the feature that keeps their digits; with it, these are digits.
                _ => write!(text, "{number}"),
            };
        }
        Value::String(value) => write_text(value, text),
        Value::Array(values) => {
            text.push('[');
            for (i, value) in values.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                write(value, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            // Sorted here, since a feature of the library lets members keep the order in which they came.
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            text.push('{');
            for (i, (name, value)) in sorted.into_iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                write_text(name, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_text(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            letter if letter < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn there_is_one_spelling() {
        let value = json!({ "b": [1, -2, 0.5, 1e300, true, null], "a": "x\"\\\n\u{1}ε", "A": {} });
        assert_eq!(text(&value), r#"{"A":{},"a":"x\"\\\u000a\u0001ε","b":[1,-2,5e-1,1e300,true,null]}"#);
        assert_eq!(text(&json!([u64::MAX, i64::MIN])), "[18446744073709551615,-9223372036854775808]");
        assert_eq!(text(&set(vec![json!(2), json!("a"), json!(2), json!(1)])), r#"["a",1,2]"#);
        assert_eq!(
            text(&json!([number(f64::INFINITY), number(-0.0), number(f64::NAN)])),
            r#"["infinity",-0e0,"not a number"]"#
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(number),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// It is JSON, and reads as what it was: so two values with one text are one value.
        #[test]
        fn a_text_reads_as_its_value(value in values()) {
            let read: Value = serde_json::from_str(&text(&value)).unwrap();
            prop_assert_eq!(text(&read), text(&value));
            prop_assert_eq!(read, value);
        }
    }
}
