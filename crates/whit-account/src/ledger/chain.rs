//! The chain of events: what is appended to it, and how it is walked.

use super::format::{digest, genesis, hex, link, unhex};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// How far a chain goes, and the hash of its last event. Kept elsewhere, it shows later that nothing before it was changed.
///
/// ```
/// use whit_account::ledger::Head;
/// let head: Head = format!("12:{}", "ab".repeat(32)).parse()?;
/// assert_eq!((head.events, head.to_string().len()), (12, 67));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many events there are.
    pub events: u64,
    hash: blake3::Hash,
}

impl Head {
    pub(super) fn start() -> Self {
        Self { events: 0, hash: genesis() }
    }

    /// A head of so many events.
    pub(super) fn of(events: u64, hash: blake3::Hash) -> Self {
        Self { events, hash }
    }

    pub(super) fn hash(&self) -> blake3::Hash {
        self.hash
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.events, hex(self.hash.as_bytes()))
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(events, hash)| {
            let hash: [u8; 32] = unhex(hash)?.try_into().ok()?;
            Some(Self { events: events.parse().ok()?, hash: hash.into() })
        });
        parts.ok_or_else(|| {
            format!("`{text}` is no head of a ledger, which looks like 12:ab…, with 64 digits after the colon")
        })
    }
}

/// The first thing in a ledger that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}`{field}` {what}", entry.map(|number| format!("entry {number}, ")).unwrap_or_default(), event.map(|sequence| format!("event {sequence}: ")).unwrap_or_default())]
pub struct ChainFault {
    /// The event at which it shows, where there is one.
    pub event: Option<u64>,
    /// The entry that the event is about.
    pub entry: Option<u64>,
    /// The field, or "file" where the file itself cannot be read.
    pub field: String,
    /// What is wrong with it.
    pub what: String,
}

/// How a fault begins of which the system is the cause.
const UNREAD: &str = "cannot be looked at: ";

impl ChainFault {
    pub(super) fn file(what: String) -> Self {
        Self { event: None, entry: None, field: "file".to_owned(), what }
    }

    /// The system does not let us look, so nothing is known to be wrong.
    pub(super) fn unread(why: &dyn fmt::Display) -> Self {
        Self::file(format!("{UNREAD}{why}"))
    }

    /// Whether something is not as it was written; else the system did not let us look.
    pub fn is_damage(&self) -> bool {
        !(self.field == "file" && self.what.starts_with(UNREAD))
    }
}

/// What happens to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Reserve,
    Commit,
    Void,
    /// How far the work of an open entry has come.
    Progress,
    /// What the owner decided about the ledger as a whole; about no entry.
    Note,
}

impl EventKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Commit => "commit",
            Self::Void => "void",
            Self::Progress => "progress",
            Self::Note => "note",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::Reserve, Self::Commit, Self::Void, Self::Progress, Self::Note]
            .into_iter()
            .find(|kind| kind.word() == word)
    }

    /// The fields that an event of this kind vouches for, after `kind`, `entry` and `time`.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Reserve => &RESERVED,
            Self::Commit => &["value"],
            Self::Void | Self::Progress | Self::Note => &["reason"],
        }
    }
}

pub(super) const RESERVED: [&str; 8] =
    ["dataset", "analyst", "question", "meaning", "fingerprint", "partition_hash", "charge", "budgets"];

/// An event to be appended: its kind, its entry, its time, and the values of [`EventKind::fields`].
pub(super) struct New<'a> {
    pub(super) kind: EventKind,
    pub(super) entry: i64,
    pub(super) time: i64,
    pub(super) values: &'a [Value],
}

impl New<'_> {
    fn digests(&self) -> Vec<u8> {
        let word = self.kind.word();
        let common = [
            ("kind", ValueRef::Text(word.as_bytes())),
            ("entry", ValueRef::Integer(self.entry)),
            ("time", ValueRef::Integer(self.time)),
        ];
        let own = self.kind.fields().iter().copied().zip(self.values.iter().map(ValueRef::from));
        common.into_iter().chain(own).flat_map(|(name, value)| *digest(name, value).as_bytes()).collect()
    }

    /// How far a chain goes after it, and the digests of its fields.
    pub(super) fn after(&self, head: Head) -> (Head, Vec<u8>) {
        let (events, digests) = (head.events + 1, self.digests());
        (Head { events, hash: link(&head.hash, events as i64, &digests) }, digests)
    }
}

/// Appends an event after `head`, with the rows that it is about. The caller holds the transaction.
pub(super) fn append(connection: &Connection, head: Head, new: &New<'_>) -> rusqlite::Result<Head> {
    let (Head { events, hash }, digests) = new.after(head);
    let sequence = events as i64;
    let mut reason = None;
    match new.kind {
        EventKind::Reserve => {
            let sql = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            let number = ToSqlOutput::from(new.entry);
            let all = std::iter::once(&number as &dyn ToSql).chain(new.values.iter().map(|value| value as &dyn ToSql));
            connection.execute(sql, rusqlite::params_from_iter(all))?;
        }
        EventKind::Commit => {
            connection.execute("INSERT INTO results VALUES (?1, ?2)", params![new.entry, new.values[0]])?;
        }
        EventKind::Void | EventKind::Progress | EventKind::Note => reason = Some(&new.values[0]),
    }
    connection.execute(
        "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![sequence, new.kind.word(), new.entry, new.time, reason, digests, hash.as_bytes().as_slice()],
    )?;
    connection.execute("UPDATE head SET events = ?1, hash = ?2", params![sequence, hash.as_bytes().as_slice()])?;
    Ok(Head { events, hash })
}

/// The head as the file says it; nothing where it says none that can be meant.
pub(super) fn read_head(connection: &Connection) -> rusqlite::Result<Option<Head>> {
    let found: Option<(i64, Vec<u8>)> =
        connection.query_row("SELECT events, hash FROM head", [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.and_then(|(events, hash)| {
        let hash: [u8; 32] = hash.try_into().ok()?;
        Some(Head { events: events.try_into().ok()?, hash: hash.into() })
    }))
}

/// One event as it was found and checked.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) head: Head,
    pub(super) kind: EventKind,
    pub(super) entry: u64,
    pub(super) time: i64,
    pub(super) values: Vec<Value>,
}

/// Why a walk ended before the end of the chain.
pub(super) enum Stop {
    ChainFault(ChainFault),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ChainFault> for Stop {
    fn from(fault: ChainFault) -> Self {
        Self::ChainFault(fault)
    }
}

/// Walks the events after `from`, checks each, and shows it. Results, which may be large, are read where they are asked for.
pub(super) fn walk(
    connection: &Connection,
    from: Head,
    results: bool,
    mut see: impl FnMut(Event) -> Result<(), Stop>,
) -> Result<Head, Stop> {
    let value = if results {
        "(SELECT value FROM results WHERE e.kind = 'commit' AND results.entry = e.entry)"
    } else {
        "NULL"
    };
    let mut statement = connection.prepare(&format!(
        "SELECT e.sequence, e.kind, e.entry, e.time, e.digests, e.hash, e.reason, {value},
                n.dataset, n.analyst, n.question, n.meaning, n.fingerprint, n.partition_hash, n.charge, n.budgets
         FROM events e LEFT JOIN entries n ON e.kind = 'reserve' AND n.number = e.entry
         WHERE e.sequence > ?1 ORDER BY e.sequence"
    ))?;
    let mut rows = statement.query([from.events as i64])?;
    let mut head = from;
    while let Some(row) = rows.next()? {
        let event = read(row, head, results)?;
        head = event.head;
        see(event)?;
    }
    Ok(head)
}

/// One row, checked against its digests and the chain.
fn read(row: &Row<'_>, before: Head, results: bool) -> Result<Event, Stop> {
    let sequence = before.events as i64 + 1;
    let entry = match row.get_ref(2)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let fault = |field: &str, what: &str| ChainFault {
        event: Some(sequence as u64),
        entry,
        field: field.to_owned(),
        what: what.to_owned(),
    };
    let found: i64 = row.get(0)?;
    if found != sequence {
        return Err(fault("sequence", &format!("jumps to {found}: a record is missing")).into());
    }
    // Which fields there are hangs on the kind, which has a digest of its own.
    let (ValueRef::Blob(digests), ValueRef::Blob(hash)) = (row.get_ref(4)?, row.get_ref(5)?) else {
        return Err(fault("digests", "is not what it was").into());
    };
    let kind = row.get_ref(1)?;
    let changed = "was changed after it was written";
    let check = |place: usize, name: &str, value: ValueRef<'_>| {
        let kept = digests.get(32 * place..32 * place + 32);
        if kept == Some(digest(name, value).as_bytes()) { Ok(()) } else { Err(fault(name, changed)) }
    };
    check(0, "kind", kind)?;
    let Some(kind) = kind.as_str().ok().and_then(EventKind::of) else {
        return Err(fault("kind", "is one that this whit does not know").into());
    };
    check(1, "entry", row.get_ref(2)?)?;
    check(2, "time", row.get_ref(3)?)?;
    let columns = match kind {
        EventKind::Reserve => 8..16,
        EventKind::Commit => 7..8,
        EventKind::Void | EventKind::Progress | EventKind::Note => 6..7,
    };
    let mut values = Vec::with_capacity(columns.len());
    for (i, (name, column)) in kind.fields().iter().zip(columns).enumerate() {
        let value = row.get_ref(column)?;
        if kind != EventKind::Commit || results {
            check(3 + i, name, value)?;
        }
        values.push(value.try_into().map_err(|_| fault(name, changed))?);
    }
    if digests.len() != 32 * (3 + kind.fields().len()) {
        return Err(fault("digests", changed).into());
    }
    let linked = link(&before.hash, sequence, digests);
    if linked.as_bytes().as_slice() != hash {
        return Err(fault("hash", "does not follow from the record and the one before it").into());
    }
    let entry = entry.ok_or_else(|| fault("entry", "is no number of an entry"))?;
    Ok(Event { head: Head { events: sequence as u64, hash: linked }, kind, entry, time: row.get(3)?, values })
}

/// Whether the chain ends where the file says that it does.
pub(super) fn check_head(walked: Head, says: Head) -> Result<(), ChainFault> {
    if walked == says {
        return Ok(());
    }
    let (events, what) = match walked.events.cmp(&says.events) {
        Ordering::Less => {
            let missing = says.events - walked.events;
            (walked.events + 1, format!("is cut off: the last {missing} of {} records are missing", says.events))
        }
        Ordering::Greater => (says.events + 1, format!("is at record {}, and more follow", says.events)),
        Ordering::Equal => (says.events, "has another hash than the last record".to_owned()),
    };
    Err(ChainFault { event: Some(events), entry: None, field: "head".to_owned(), what })
}
