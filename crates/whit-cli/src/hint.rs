//! The library names its own settings; whoever types a command wants its options.

/// What the library calls a setting, between backticks and with or without a value, and the option that sets it.
const OPTIONS: &[(&str, &str)] = &[
    ("asking.epsilon", "--epsilon"),
    ("asking.delta", "--delta"),
    ("asking.groups", "--groups"),
    ("asking.rows", "--rows"),
    ("asking.confidence", "--confidence"),
    ("asking.about", "--about"),
    ("question.items", "--items"),
    ("draft.name", "--name"),
    ("run.change", "--change"),
    ("run.difference", "--difference"),
    ("run.draw", "--draw"),
    ("run.elements_per_user", "--elements-per-user"),
    ("request.owner", "--owner"),
    ("request.resume", "--resume"),
    ("request.memory", "--memory"),
];

/// What the library calls a method that takes a reason, between backticks and with or without the entry that it is for, and the command that does the same.
const METHODS: &[(&str, &str)] = &[
    ("Books::accept", "whit ledger accept"),
    ("Books::reset", "whit ledger reset"),
    ("Session::void", "whit ledger void"),
];

/// What the library calls other methods, between backticks, and the command that does the same.
const COMMANDS: &[(&str, &str)] = &[
    ("ClusteringPlan", "whit help partition kmeans"),
    ("DeclarationDraft::of", "whit init PATH"),
    ("Register::entries", "whit ledger"),
    ("Register::verify", "whit ledger verify"),
    ("Session::accounts", "whit ledger"),
    ("Session::train", "whit train"),
];

/// A text of the library, with the options and commands that do what it speaks of.
pub(crate) fn for_command(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once('`') {
        words.push_str(before);
        rest = if let Some((option, after)) = option(quoted) {
            words.push_str(&option);
            after
        } else {
            words.push('`');
            quoted
        };
    }
    words + rest
}

/// The option for a quoted setting, and what stands after the quote.
fn option(quoted: &str) -> Option<(String, &str)> {
    for (name, option) in OPTIONS {
        let Some(rest) = quoted.strip_prefix(name) else { continue };
        if let Some(after) = rest.strip_prefix('`') {
            return Some(((*option).to_owned(), after));
        }
        if let Some((value, after)) = rest.strip_prefix(" = ").and_then(|rest| rest.split_once('`')) {
            return Some((format!("{option} {value}"), after));
        }
    }
    for (name, command) in COMMANDS {
        if let Some(after) = quoted.strip_prefix(name).and_then(|rest| rest.strip_prefix('`')) {
            return Some((format!("`{command}`"), after));
        }
    }
    METHODS.iter().find_map(|(name, command)| {
        let rest = quoted.strip_prefix(name)?;
        if let Some(after) = rest.strip_prefix('`') {
            return Some((format!("`{command} --reason …`"), after));
        }
        let (entry, after) = rest.strip_prefix('(')?.split_once(")`")?;
        Some((format!("`{command} {entry} --reason …`"), after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_options_and_other_quotes_stay() {
        for (library, command) in [
            ("nothing was charged; `asking.epsilon = 0.25` would fit", "nothing was charged; --epsilon 0.25 would fit"),
            ("say `request.owner`; `visits.owner` is a column", "say --owner; `visits.owner` is a column"),
            ("`asking.groups = 2` `asking.rows = 1` would do", "--groups 2 --rows 1 would do"),
            ("a column ` of `asking.rows`", "a column ` of --rows"),
            ("`asking.rowsome` and `asking.rows = ", "`asking.rowsome` and `asking.rows = "),
            ("says so: `Books::reset`", "says so: `whit ledger reset --reason …`"),
            ("`Session::void(7)` ends it", "`whit ledger void 7 --reason …` ends it"),
            ("`Session::accounts` says what was spent", "`whit ledger` says what was spent"),
            ("`Register::verify` says how far", "`whit ledger verify` says how far"),
            ("`Session::trainer` stays", "`Session::trainer` stays"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(for_command(library), command);
        }
    }
}
