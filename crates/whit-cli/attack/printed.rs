//! What a command printed, and whether two outputs differ in more than noise.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is said under an answer that was not paid for.
const FREE: &str = "Nothing private was read";

/// Everything that one call of the command let out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) talk: String,
}

impl Printed {
    /// The first line in which two outputs differ.
    pub(crate) fn apart(&self, other: &Self) -> Option<String> {
        if self.code != other.code {
            return Some(format!(
                "exit codes {:?} and {:?}: {} / {}",
                self.code,
                other.code,
                last(&self.talk),
                last(&other.talk)
            ));
        }
        differ(&self.out, &other.out).or_else(|| differ(&self.talk, &other.talk))
    }

    /// The same with numbers left out: what was released may differ. What was free has no noise, and stays to the letter.
    pub(crate) fn masked(&self) -> Self {
        let (mut out, mut answer) = (String::new(), String::new());
        for line in self.out.lines() {
            answer += line;
            answer.push('\n');
            if line.starts_with(FREE) {
                out += &std::mem::take(&mut answer);
            } else if line.starts_with("  ledger ") {
                out += &mask(&std::mem::take(&mut answer));
                out.push('\n');
            }
        }
        Self { code: self.code, out: out + &mask(&answer), talk: mask(&self.talk) }
    }
}

fn last(text: &str) -> &str {
    text.lines().next_back().unwrap_or("")
}

fn differ(one: &str, other: &str) -> Option<String> {
    if one == other {
        return None;
    }
    let mut others = other.lines();
    for line in one.lines() {
        match others.next() {
            Some(twin) if twin == line => {}
            twin => return Some(format!("`{line}` and `{}`", twin.unwrap_or("nothing"))),
        }
    }
    Some(format!("nothing and `{}`", others.next().unwrap_or("")))
}

/// Numbers become `#`, and room that follows from their length goes. What is missing or without end is a number that noise may give too.
fn mask(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        // How much caps left out is released, and said in words that follow from it.
        if line.contains("left out by") {
            lines.push("caps left out so much".to_owned());
            continue;
        }
        let words: Vec<String> = line
            .split(|c: char| c.is_whitespace() || "─┄═│|…".contains(c))
            .filter(|word| !word.is_empty())
            .map(|word| {
                let bare =
                    word.trim_matches(|c: char| ",;()[]%~≈".contains(c)).trim_start_matches(['+', '-', '−', '±']);
                let number = bare.starts_with(|c: char| c.is_ascii_digit())
                    || ["∞", "NULL", "null", "–", "NaN", "inf"].contains(&bare);
                if number { "#".to_owned() } else { word.to_owned() }
            })
            .collect();
        // Bars and blocks that draw a number say no more than it does.
        let mut words: Vec<String> =
            words.into_iter().filter(|word| !word.chars().all(|c| "▏▎▍▌▋▊▉█░▒▓·±".contains(c))).collect();
        // An interval is written around its value, or with both ends, as its numbers are.
        words.dedup_by(|next, before| next == "#" && before == "#");
        if !words.is_empty() {
            lines.push(words.join(" "));
        }
    }
    lines.join("\n")
}

/// What kinds of values stand at each place of an answer in JSON: a whole number or a fraction tells of types.
pub(crate) fn kinds(value: &Value) -> BTreeMap<String, BTreeSet<&'static str>> {
    fn walk(value: &Value, at: &str, kinds: &mut BTreeMap<String, BTreeSet<&'static str>>) {
        let kind = match value {
            Value::Null => return,
            Value::Bool(_) => "truth",
            Value::Number(number) if number.is_f64() => "fraction",
            Value::Number(_) => "whole",
            Value::String(_) => "text",
            Value::Array(items) => return items.iter().for_each(|item| walk(item, &format!("{at}[]"), kinds)),
            Value::Object(fields) => {
                return fields.iter().for_each(|(name, item)| walk(item, &format!("{at}.{name}"), kinds));
            }
        };
        kinds.entry(at.to_owned()).or_default().insert(kind);
    }
    let mut found = BTreeMap::new();
    walk(value, "", &mut found);
    found
}

/// Hexadecimal words of 32 letters and more, wherever they stand in these bytes.
pub(crate) fn digests(bytes: &[u8]) -> BTreeSet<String> {
    let hex = |byte: &u8| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase();
    bytes
        .split(|byte| !hex(byte))
        .filter(|word| word.len() >= 32 && word.len() <= 128)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_masked_and_words_are_not() {
        assert_eq!(mask("a  12.5 ± 3\n──────\nb  -7"), mask("a 9 ± 1,000\n───\nb      NULL"));
        assert_ne!(mask("12 rows were dropped"), mask("nothing was dropped"));
        let at = |text: &str| kinds(&serde_json::from_str(text).unwrap());
        assert_eq!(at("[{\"v\": 1}, {\"v\": null}]"), at("[{\"v\": 7}]"));
        assert_ne!(at("[{\"v\": 1}]"), at("[{\"v\": 1.5}]"));
        assert_eq!(digests(b"x 0123456789abcdef0123456789abcdef y").len(), 1);
    }

    #[test]
    fn what_was_free_is_compared_to_the_letter() {
        let free = "Nothing private was read: this answer is exact and free.";
        let printed = |paid: u32, exact: u32| Printed {
            code: Some(0),
            out: format!("n\n{paid}\n  ledger     entry 1\nm\n{exact}\n{free}\nn\n{paid}\n  ledger     entry 2\n"),
            talk: String::new(),
        };
        assert_eq!(printed(12, 5).masked(), printed(13, 5).masked());
        assert_ne!(printed(12, 5).masked(), printed(12, 6).masked());
    }
}
