//! The line of a column in `whit.toml`.

use std::fmt::Write as _;
use whit_core::declare::{Bounds, Dataset, Keys};

/// A TOML text.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A TOML key, in quotes where it needs them.
pub(crate) fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// What `whit.toml` would have to say of a column, with one setting more than it says now, and where: a key stands in a file once.
pub(crate) fn with(dataset: &Dataset, column: &str, setting: (&str, &str)) -> String {
    let declared = dataset.columns.get(column);
    let mut settings: Vec<(&str, String)> = Vec::new();
    if let Some(declared) = declared {
        settings.extend(declared.kind.as_ref().map(|kind| ("type", quoted(&kind.to_string()))));
        settings.extend(declared.bounds.map(|bounds| match bounds {
            Bounds::Declared { low, high } => ("bounds", format!("[{low}, {high}]")),
            Bounds::Days { first, last } => ("bounds", format!("[\"{first}\", \"{last}\"]")),
            Bounds::Auto => ("bounds", quoted("auto")),
        }));
        settings.extend(declared.keys.as_ref().map(|keys| match keys {
            Keys::Listed(texts) => {
                ("keys", format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")))
            }
            Keys::FromTable { table, column } => ("keys", quoted(&format!("{table}.{column}"))),
        }));
        settings.retain(|(name, _)| *name != setting.0);
    }
    settings.push((setting.0, setting.1.to_owned()));
    let settings: Vec<String> = settings.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let line = format!("`columns.{} = {{ {} }}`", key(column), settings.join(", "));
    match declared {
        Some(_) => format!("{line} in place of what whit.toml says of it now"),
        None => format!("{line} in whit.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::declare::Declaration;

    /// What is suggested, put where it is said to go, is read, and says all that was said before.
    #[test]
    fn a_line_with_one_setting_more_can_be_written_where_it_is_said_to_go() {
        const HEAD: &str = "[dataset.t]\nsource = \"t.csv\"\npublic = true\n";
        for (before, column) in [
            ("", "pages"),
            ("columns.pages = \"int\"", "pages"),
            ("columns.\"page count\" = \"int\"", "page count"),
            ("columns.\"a.b\" = { type = \"float\", bounds = \"auto\" }", "a.b"),
            ("columns.Pages = { type = \"int\", keys = [\"1\", \"2\"] }", "Pages"),
            ("columns.\"say \\\"x\\\"\" = { keys = [\"1\"] }", "say \"x\""),
        ] {
            let read = |line: &str| Declaration::parse(&format!("{HEAD}{line}\n")).unwrap().datasets["t"].clone();
            let words = with(&read(before), column, ("bounds", "[0, 9]"));
            let (line, place) = words.trim_start_matches('`').split_once('`').unwrap();
            assert_eq!(place.contains("in place of"), !before.is_empty(), "{words}");
            let (now, then) =
                (read(line).columns[column].clone(), read(before).columns.get(column).cloned().unwrap_or_default());
            assert_eq!(now.bounds, Some(Bounds::Declared { low: 0.0, high: 9.0 }), "{words}");
            assert_eq!((now.kind, now.keys), (then.kind, then.keys), "{words}");
        }
    }
}
