//! Walking the whole chain again, and adding everything up anew.

use super::chain::{ChainFault, EventKind, Head, Stop, check_head, read_head, walk};
use super::entry::{EntriesSeen, Entry};
use super::report::Account;
use super::secret::LedgerSecret;
use super::watch::Watches;
use rusqlite::Connection;

/// What a ledger that is as it was written says.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// How many events the chain has.
    pub events: u64,
    /// How many entries there are.
    pub entries: u64,
    /// How far the chain goes: a short text to keep elsewhere.
    pub head: Head,
    /// What was spent, recomputed from the stored costs.
    pub accounts: Vec<Account>,
}

/// Walks the chain of a file from its start, and looks at each entry whether it fitted.
pub(super) fn replay(connection: &Connection, kept: Option<&Head>, secret: &LedgerSecret) -> Result<EntriesSeen, Stop> {
    let (mut seen, mut watches) = (EntriesSeen::default(), Watches::default());
    let mut through =
        kept.is_none_or(|kept| kept.events == 0 && (*kept == Head::start() || *kept == secret.shown(Head::start())));
    let head = walk(connection, Head::start(), true, |event| {
        if let Some(kept) = kept.filter(|kept| kept.events == event.head.events) {
            // Heads that a ledger of format 1 showed were the chain's own.
            if *kept != secret.shown(event.head) && *kept != event.head {
                let what = format!("is not the one that was kept, {kept}: something up to here was written anew");
                let (event, entry) = (Some(kept.events), Some(event.entry));
                return Err(ChainFault { event, entry, field: "hash".to_owned(), what }.into());
            }
            through = true;
        }
        let reserved = event.kind == EventKind::Reserve;
        let before = seen.entries.len();
        seen.take(event)?;
        if reserved {
            check_fit(&mut watches, &seen.entries[before], &seen.entries[..before], &seen)?;
        }
        Ok(())
    })?;
    let says = read_head(connection)?.ok_or_else(|| ChainFault::file("has no head".to_owned()))?;
    check_head(head, says)?;
    if let (Some(kept), false) = (kept, through) {
        let what = format!("ends at event {}, before the one that was kept, {}", head.events, kept.events);
        return Err(ChainFault { event: Some(head.events), entry: None, field: "head".to_owned(), what }.into());
    }
    Ok(seen)
}

/// Whether an entry fitted into what the entries before it had left.
fn check_fit(watches: &mut Watches, entry: &Entry, before: &[Entry], seen: &EntriesSeen) -> Result<(), ChainFault> {
    let fault = |field: &str, what: String| ChainFault {
        event: Some(seen.head.events),
        entry: Some(entry.number),
        field: field.to_owned(),
        what,
    };
    for budget in entry.budgets.iter() {
        let spending = watches
            .spending(budget, before, seen.voids)
            .map_err(|error| fault("budgets", format!("cannot be kept: {error}")))?;
        let no = spending.refused(budget, &entry.charge, |refused, _, _, slice| (refused, slice));
        if let Some((refused, slice)) = no {
            let place = slice.map_or_else(String::new, |slice| format!(", where {slice},"));
            let what = format!("does not fit into the budget per {}{place} that was in force: {refused}", budget.unit);
            return Err(fault("charge", what));
        }
    }
    Ok(())
}

/// Rows that no event speaks of.
pub(super) fn strays(connection: &Connection) -> rusqlite::Result<Option<ChainFault>> {
    let questions = [
        (
            "number",
            "entry",
            "SELECT min(number) FROM entries WHERE number NOT IN (SELECT entry FROM events WHERE kind = 'reserve')",
        ),
        (
            "value",
            "result",
            "SELECT min(entry) FROM results WHERE entry NOT IN (SELECT entry FROM events WHERE kind = 'commit')",
        ),
    ];
    for (field, what, sql) in questions {
        let stray: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
        if let Some(number) = stray {
            let what = format!("belongs to an {what} that no event speaks of").replace("an result", "a result");
            return Ok(Some(ChainFault { event: None, entry: Some(number as u64), field: field.to_owned(), what }));
        }
    }
    Ok(None)
}
