//! What the lines of a shell ask for.

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Order<'a> {
    Ask(&'a str),
    Preview(&'a str),
    Epsilon(&'a str),
    Tables,
    Budget,
    Help,
    Quit,
    Unknown(&'a str),
}

/// Reads one complete entry; nothing while a question has not come to its semicolon.
pub(super) fn order(entry: &str) -> Option<Order<'_>> {
    let entry = entry.trim();
    if let Some(command) = entry.strip_prefix('\\') {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        return match word.trim_end_matches(';') {
            "preview" => rest.trim().strip_suffix(';').map(|sql| Order::Preview(sql.trim())),
            "epsilon" => Some(Order::Epsilon(rest.trim().trim_end_matches(';'))),
            "tables" | "d" => Some(Order::Tables),
            "budget" => Some(Order::Budget),
            "help" | "h" | "?" => Some(Order::Help),
            "quit" | "q" | "exit" => Some(Order::Quit),
            _ => Some(Order::Unknown(entry)),
        };
    }
    match entry {
        "quit" | "exit" => Some(Order::Quit),
        "help" => Some(Order::Help),
        _ => entry.strip_suffix(';').map(|sql| Order::Ask(sql.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_with_its_semicolon_and_orders_with_their_line() {
        assert_eq!(order("SELECT 1\n"), None);
        assert_eq!(order("SELECT 1;\n"), Some(Order::Ask("SELECT 1")));
        assert_eq!(order("\\preview SELECT 1\n"), None);
        assert_eq!(order("\\preview SELECT\n1;"), Some(Order::Preview("SELECT\n1")));
        assert_eq!(order("\\epsilon 0.5"), Some(Order::Epsilon("0.5")));
        assert_eq!(order("\\quit\n"), Some(Order::Quit));
        assert_eq!(order("\\nonsense"), Some(Order::Unknown("\\nonsense")));
    }
}
