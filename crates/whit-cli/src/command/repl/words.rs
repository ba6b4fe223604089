//! The words that `whit shell` completes.

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// The session's own words and those of the data sets, for completion.
pub(super) struct CompletionWords {
    pub(super) words: Vec<String>,
}

impl Helper for CompletionWords {}

impl Hinter for CompletionWords {
    type Hint = String;
}

impl Highlighter for CompletionWords {}

impl Validator for CompletionWords {}

/// Words of SQL; which aggregates there are the library says.
pub(super) const SQL: [&str; 18] = [
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "ON", "AND", "OR", "NOT", "CASE",
    "WHEN", "THEN", "ELSE", "END", "DISTINCT",
];

impl CompletionWords {
    fn starting(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let start = line[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\\')).map_or(0, |i| i + 1);
        let typed = line[start..at].to_lowercase();
        if typed.is_empty() {
            return (start, Vec::new());
        }
        let mut found: Vec<String> =
            self.words.iter().filter(|word| word.to_lowercase().starts_with(&typed)).cloned().collect();
        found.sort();
        found.dedup();
        (start, found)
    }
}

impl Completer for CompletionWords {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.starting(line, at);
        Ok((start, found.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_whatever_their_case() {
        let words = CompletionWords { words: vec!["visits".into(), "seconds".into(), "SELECT".into()] };
        assert_eq!(words.starting("sel", 3), (0, vec!["SELECT".to_owned()]));
        assert_eq!(words.starting("SELECT se", 9), (7, vec!["SELECT".to_owned(), "seconds".to_owned()]));
        assert_eq!(words.starting("SELECT ", 7), (7, vec![]));
    }
}
