//! What the lines of a shell ask for.

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum ShellOrder<'a> {
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
pub(super) fn order(entry: &str) -> Option<ShellOrder<'_>> {
    let entry = entry.trim();
    if let Some(command) = entry.strip_prefix('\\') {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        return match word.trim_end_matches(';') {
            "preview" => rest.trim().strip_suffix(';').map(|sql| ShellOrder::Preview(sql.trim())),
            "epsilon" => Some(ShellOrder::Epsilon(rest.trim().trim_end_matches(';'))),
            "tables" | "d" => Some(ShellOrder::Tables),
            "budget" => Some(ShellOrder::Budget),
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
        assert_eq!(order("\\nonsense"), Some(ShellOrder::Unknown("\\nonsense")));
    }
}
