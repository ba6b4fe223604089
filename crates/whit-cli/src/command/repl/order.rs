//! What the lines of a shell ask for.

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum ShellOrder<'a> {
    Ask(&'a str),
    Preview(&'a str),
    Epsilon(&'a str),
    Tables,
    Schema(&'a str),
    Budget,
    /// Whether it is to be said from now on how long a question took; nothing asks for the other of the two.
    Timing(Option<bool>),
    Help,
    Quit,
    Unknown(&'a str),
}

/// Reads one complete entry; nothing while a question has not come to its semicolon.
pub(super) fn order(entry: &str) -> Option<ShellOrder<'_>> {
    let entry = entry.trim();
    // Some shells of other engines begin orders with a backslash, some with a point.
    if let Some(command) = entry.strip_prefix(['\\', '.']) {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let name = rest.trim().trim_end_matches(';');
        return match word.trim_end_matches(';') {
            "preview" => rest.trim().strip_suffix(';').map(|sql| ShellOrder::Preview(sql.trim())),
            "epsilon" => Some(ShellOrder::Epsilon(name)),
            "tables" => Some(ShellOrder::Tables),
            "d" if name.is_empty() => Some(ShellOrder::Tables),
            "schema" | "d" => Some(ShellOrder::Schema(name)),
            "budget" => Some(ShellOrder::Budget),
            "timing" | "timer" => Some(match name.to_ascii_lowercase().as_str() {
                "" => ShellOrder::Timing(None),
                "on" => ShellOrder::Timing(Some(true)),
                "off" => ShellOrder::Timing(Some(false)),
                _ => ShellOrder::Unknown(entry),
            }),
            "help" | "h" | "?" => Some(ShellOrder::Help),
            "quit" | "q" | "exit" => Some(ShellOrder::Quit),
            _ => Some(ShellOrder::Unknown(entry)),
        };
    }
    match entry {
        "quit" | "exit" => Some(ShellOrder::Quit),
        "help" => Some(ShellOrder::Help),
        _ => entry.strip_suffix(';').map(|sql| ShellOrder::Ask(sql.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_with_its_semicolon_and_orders_with_their_line() {
        assert_eq!(order("SELECT 1\n"), None);
        assert_eq!(order("SELECT 1;\n"), Some(ShellOrder::Ask("SELECT 1")));
        assert_eq!(order("\\preview SELECT 1\n"), None);
        assert_eq!(order("\\preview SELECT\n1;"), Some(ShellOrder::Preview("SELECT\n1")));
        assert_eq!(order("\\epsilon 0.5"), Some(ShellOrder::Epsilon("0.5")));
        assert_eq!(order("\\quit\n"), Some(ShellOrder::Quit));
        assert_eq!(order(".tables"), Some(ShellOrder::Tables));
        assert_eq!(order("\\d visits"), Some(ShellOrder::Schema("visits")));
        assert_eq!(order(".schema"), Some(ShellOrder::Schema("")));
        assert_eq!(order(".timing"), Some(ShellOrder::Timing(None)));
        assert_eq!(order(".timing off;"), Some(ShellOrder::Timing(Some(false))));
        assert_eq!(order("\\timing ON"), Some(ShellOrder::Timing(Some(true))));
        assert_eq!(order(".timing loud"), Some(ShellOrder::Unknown(".timing loud")));
        assert_eq!(order("\\nonsense"), Some(ShellOrder::Unknown("\\nonsense")));
    }
}
