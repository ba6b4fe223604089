//! What a ledger says, as tables for people.

use super::{AccountView, ChangeView, ReaccountView, ShowView, VerifyView};
use crate::number::{brief, brief_down, brief_up, number_of};
use crate::plain::{PlainText, visible};
use crate::table::{Side, Table, fit};
use std::io::{self, Write};
use whit::account::Name;
use whit::account::ledger::Account;
use whit::core::Kind;

/// So many releases are listed, unless all are asked for.
const LISTED: usize = 20;
/// So many letters of a question are shown.
const LETTERS: usize = 60;

/// What is left of each budget.
pub fn write_budgets(accounts: &[Account], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new([
        ("data set", Side::Left),
        ("unit", Side::Left),
        ("budget ε", Side::Right),
        ("left ε", Side::Right),
    ]);
    for account in accounts {
        table.row([
            account.dataset.clone(),
            account.unit.to_string(),
            account.budget.as_ref().map_or_else(|| "–".to_owned(), |budget| budget.epsilon.to_string()),
            account.left.map_or_else(|| "–".to_owned(), brief_down),
        ]);
    }
    table.write(out)
}

/// What was spent, by rung and by analyst, and the last releases, or all of them.
pub fn write_releases(view: &ShowView, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let from = if all { 0 } else { view.releases.len().saturating_sub(LISTED) };
    writeln!(out, "{}: {}", view.ledger, view.count())?;
    if view.accounts.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    accounts(&view.accounts).write(out)?;
    write_slices(&view.accounts, all, out)?;
    if view.by_analyst.len() > view.accounts.len() {
        writeln!(out, "\nby analyst")?;
        accounts(&view.by_analyst).write(out)?;
    }
    writeln!(out, "\nreleases{}", if from > 0 { format!(", the last {LISTED}") } else { String::new() })?;
    let columns = [
        ("entry", Side::Right),
        ("time (UTC)", Side::Left),
        ("data set", Side::Left),
        ("analyst", Side::Left),
        ("state", Side::Left),
        ("question", Side::Left),
    ];
    let mut table = Table::new(columns);
    for release in &view.releases[from..] {
        let question: String = release.question.split_whitespace().collect::<Vec<_>>().join(" ");
        let question = fit(&question, LETTERS);
        let entry = release.entry.to_string();
        let (dataset, analyst) = (release.dataset.clone(), release.analyst.clone());
        table.row([entry, release.time.clone(), dataset, analyst, release.state.to_owned(), question]);
    }
    table.write(out)
}

/// What to know about the figures: why ε left is what it is, which budgets changed, what the owner decided, and what is still reserved.
pub fn write_notes(view: &ShowView, talk: &mut dyn Write) -> io::Result<()> {
    let talk = &mut PlainText::onto(talk);
    if view.accounts.is_empty() {
        return Ok(());
    }
    write_left(&view.accounts, talk)?;
    if let Some(account) = view.accounts.iter().find(|account| account.slices.len() > 1) {
        let column = account.slice_column.as_deref().unwrap_or_default();
        writeln!(
            talk,
            "note: a budget that is kept by `{column}` is spent where most of it is: other slices have more left"
        )?;
    }
    write_coarser(&view.accounts, talk)?;
    for change in &view.changes {
        let ChangeView { entry, dataset, unit, .. } = change;
        writeln!(talk, "note: from entry {entry} on the budget of `{dataset}` per {unit} is {}", changed(change))?;
    }
    for decision in &view.decisions {
        // On one line: what looks like a note of ours is one.
        writeln!(talk, "note: {} UTC, {}", decision.time, visible(&decision.reason))?;
    }
    if view.open > 0 {
        let verb = if view.open == 1 { "has no result and stays" } else { "have no result and stay" };
        writeln!(
            talk,
            "note: {} {verb} spent; if nothing left, `whit ledger void N --reason …` takes one back",
            number_of(view.open, "reservation")
        )?;
    }
    Ok(())
}

/// Says why what is spent and what is left do not make up the budget, where they do not.
fn write_left(accounts: &[AccountView], talk: &mut dyn Write) -> io::Result<()> {
    let off = |account: &AccountView| match (account.budget, account.left) {
        (Some(budget), Some(left)) => (account.spent.0 + left.0 - budget.epsilon).abs() > 1e-4 * budget.epsilon,
        _ => false,
    };
    if accounts.iter().any(off) {
        writeln!(
            talk,
            "note: ε left is that of the largest release with Gaussian noise that would still fit, at the budget's δ; ε of several releases does not add up, and half of δ is kept for private keys, so that spent and left need not make up the budget"
        )?;
    }
    Ok(())
}

/// What a budget is now and what it was, as far as that is another.
fn changed(change: &ChangeView) -> String {
    let mut words = Vec::new();
    if change.epsilon != change.epsilon_before {
        words.push(format!("ε = {}, where it was {}", change.epsilon, change.epsilon_before));
    }
    if change.delta != change.delta_before {
        words.push(format!("δ = {}, where it was {}", brief(change.delta), brief(change.delta_before)));
    }
    if change.currency != change.currency_before {
        words.push(format!("kept in {}, where it was in {}", change.currency, change.currency_before));
    }
    if change.slice != change.slice_before {
        let by = |slice: &Option<String>| {
            slice.as_ref().map_or_else(|| "as a whole".to_owned(), |slice| format!("by {slice}"))
        };
        let (now, before) = (by(&change.slice), by(&change.slice_before));
        words.push(format!(
            "kept {now}, where it was kept {before}: what was charged to slices before counts in all of them"
        ));
    }
    words.join("; and ")
}

/// Says why a user's ε may be below that of what is only a part of a user, where it is: each is a bound, and how close it comes depends on how it is added up.
fn write_coarser(accounts: &[AccountView], talk: &mut dyn Write) -> io::Result<()> {
    let way = |account: &AccountView| {
        let delta = brief(account.delta);
        match account.budget {
            Some(budget) => format!("in {}, its budget's currency, at δ = {delta}", budget.currency),
            None => format!("in whichever currency says least, for want of a budget, at δ = {delta}"),
        }
    };
    for user in accounts.iter().filter(|account| account.kind == Kind::User) {
        let within = |part: &&AccountView| {
            part.kind != Kind::User
                && (&part.dataset, &part.analyst) == (&user.dataset, &user.analyst)
                && user.spent.0 < part.spent.0 * (1.0 - 1e-9)
        };
        for part in accounts.iter().filter(within) {
            let (dataset, finer) = (&user.dataset, part.kind);
            writeln!(
                talk,
                "note: of `{dataset}` ε per user is below ε per {finer}, though that is a part of a user: both are upper bounds, and each is added up in its own way; per user {}, per {finer} {}",
                way(user),
                way(part)
            )?;
        }
    }
    Ok(())
}

/// That the books are as they were written, and what they add up to.
pub fn write_verified(view: &VerifyView, ledger: &str, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let (releases, events) = (number_of(view.entries, "release"), number_of(view.events, "event"));
    writeln!(out, "{ledger}: as it was written; {releases}, {events}")?;
    if !view.accounts.is_empty() {
        writeln!(out, "\nadded up anew from the stored costs")?;
        accounts(&view.accounts).write(out)?;
    }
    writeln!(out, "\nhead {}", view.head)
}

/// What one accountant makes of the stored costs, next to what the filter says.
pub fn write_reaccounted(lines: &[ReaccountView], accountant: Name, out: &mut dyn Write) -> io::Result<()> {
    let word = accountant.word();
    let (upper, lower) = (format!("ε at most, {word}"), format!("ε at least, {word}"));
    let columns = [
        ("data set", Side::Left),
        ("unit", Side::Left),
        ("analyst", Side::Left),
        ("releases", Side::Right),
        ("δ", Side::Right),
        ("ε, filter", Side::Right),
        (&upper, Side::Right),
        (&lower, Side::Right),
        ("note", Side::Left),
    ];
    let mut table = Table::new(columns);
    for line in lines {
        let stated = |number: Option<f64>, brief: fn(f64) -> String| number.map_or_else(|| "–".to_owned(), brief);
        table.row([
            line.dataset.clone(),
            line.unit.clone(),
            line.analyst.clone().unwrap_or_else(|| "all".to_owned()),
            line.releases.to_string(),
            brief(line.delta),
            brief_up(line.epsilon_filter.0),
            stated(line.epsilon_upper.map(|upper| upper.0), brief_up),
            stated(line.epsilon_lower.map(|lower| lower.0).filter(|&lower| lower > 0.0), brief_down),
            line.unsupported.clone().unwrap_or_default(),
        ]);
    }
    table.write(out)
}

/// What was spent by slice, most first; or the worst of the slices alone.
fn write_slices(accounts: &[AccountView], all: bool, out: &mut dyn Write) -> io::Result<()> {
    for account in accounts.iter().filter(|account| account.slices.len() > 1) {
        let (column, unit) = (account.slice_column.as_deref().unwrap_or_default(), &account.unit);
        let whose = account.analyst.as_ref().map_or_else(String::new, |analyst| format!(", for {analyst}"));
        let shown = if all { account.slices.len() } else { account.slices.len().min(LISTED) };
        writeln!(out, "\n{}, {unit}{whose}, by {column}", account.dataset)?;
        let columns = [
            (column, Side::Left),
            ("slices", Side::Right),
            ("releases", Side::Right),
            ("ε spent", Side::Right),
            ("ε left", Side::Right),
        ];
        let mut table = Table::new(columns);
        for level in &account.slices[..shown] {
            table.row([
                fit(&level.slices.join(", "), LETTERS),
                level.number.map_or_else(|| "–".to_owned(), |number| number.to_string()),
                level.releases.to_string(),
                brief_up(level.spent.0),
                brief_down(level.left.0),
            ]);
        }
        table.write(out)?;
        if shown < account.slices.len() {
            writeln!(out, "and {} more with less spent", number_of(account.slices.len() - shown, "level"))?;
        }
    }
    Ok(())
}

/// What each unit has lost, and what is left of its budget.
fn accounts(accounts: &[AccountView]) -> Table {
    let columns = [
        ("data set", Side::Left),
        ("unit", Side::Left),
        ("analyst", Side::Left),
        ("releases", Side::Right),
        ("ε spent", Side::Right),
        ("ε left", Side::Right),
        ("budget", Side::Left),
    ];
    let mut table = Table::new(columns);
    for account in accounts {
        let budget = match account.budget {
            Some(budget) => {
                format!("ε = {} at δ = {}, {}", brief(budget.epsilon), brief(budget.delta), budget.currency)
            }
            None => format!("none; stated at δ = {}", brief(account.delta)),
        };
        table.row([
            account.dataset.clone(),
            account.unit.clone(),
            account.analyst.clone().unwrap_or_else(|| "all".to_owned()),
            account.releases.to_string(),
            brief_up(account.spent.0),
            account.left.map_or_else(|| "–".to_owned(), |left| brief_down(left.0)),
            budget,
        ]);
    }
    table
}
