//! What is known of a ledger outside of its file: how far its chain goes.
//!
//! A file alone cannot know that it is gone, cut, or an older copy of itself. So the [`Head`] is kept next to it, in `whit.ledger.head`, and where the
//! caller names a folder for that, also far away from it, under the ledger's own name. The file must go exactly as far as the head next to it says, and at
//! least as far as the one far away. A head far away names every path at which its ledger was ever seen, so that another ledger at one of them, or none, is
//! an error too.
//!
//! # The order of writing
//! Event n is committed to the ledger's main file and synchronised; then the heads say n; then the caller gets its answer, and only then can anything be released. Whoever
//! writes event n + 1 first sees to it that the heads say n. So after a crash at any moment the heads are right or one event behind, and
//! of that event nothing was answered. Everything else is an error: heads that are ahead (the file was cut or is an older copy), two or more behind (the head is an
//! older copy), another hash, a byte that changed.
//!
//! # Copies of one ledger
//! SQLite's lock is the file's, and two copies are two files. So whoever writes an event first [locks](Witness::lock) the ledger far away, by its own name, then the file, and lets go of the
//! lock far away last, when the heads are written. In this order always, and never two such locks at once: nobody waits for somebody who waits for them.

use super::chain::Head;
use super::entry::EntriesSeen;
use super::error::LedgerError;
use super::format::{hex, unhex};
use super::opening::Opening;
use std::cmp::Ordering;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whit_core::digits::number_of;

/// How a head's file begins.
const TITLE: &str = "whit ledger head 1";
/// What a head takes in its file. It is written in place, and so much at the start of a file is one sector: written as a whole or not at all.
const SECTOR: usize = 512;

/// Where heads are kept.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    /// The ledger's file, as the system knows it: links are followed.
    ledger: PathBuf,
    /// Its path in heads far away; and that of the link by which it was reached, so that a link that goes is missed too.
    names: Vec<String>,
    near: PathBuf,
    away: Option<PathBuf>,
    /// How long to wait for others who write heads far away.
    patience: Duration,
    /// Whether to wait for the disk.
    pub(super) synchronised: bool,
}

/// One head in its file.
#[derive(Debug, Clone, PartialEq)]
struct HeadMark {
    ledger: [u8; 16],
    head: Head,
    /// Where the ledger was ever seen, for a head that is not next to it.
    paths: Vec<String>,
}

/// What the file of a head holds.
enum HeadFile {
    /// There is no such file.
    Nothing,
    Head(HeadMark),
    /// Something that is not as it was written.
    Torn(Vec<u8>),
}

/// How heads stand to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadStanding {
    Exact,
    /// By the event of which nothing was answered.
    Behind,
}

/// No head is as long as this: it has a line for each path at which its ledger was seen.
const LONGEST: u64 = 1 << 20;

/// The bytes of a plain file, and no more of them than a head has. What is none would be waited for, or read without end.
fn read_plain(file: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl HeadMark {
    fn to_text(&self) -> String {
        let paths = self.paths.join("\n");
        let text = format!("{TITLE}\nledger {}\nat {}\n", hex(&self.ledger), self.head);
        let check = blake3::hash(format!("{text}{paths}").as_bytes());
        let text = format!("{text}check {}\n", hex(check.as_bytes()));
        let paths = if paths.is_empty() { String::new() } else { format!("{paths}\n") };
        format!("{text:<width$}\n{paths}", width = SECTOR - 1)
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let ledger = unhex(lines.next()?.strip_prefix("ledger ")?)?.try_into().ok()?;
        let head = lines.next()?.strip_prefix("at ")?.parse().ok()?;
        let paths = text.get(SECTOR..)?.trim_end_matches('\n').split('\n');
        let mark = Self { ledger, head, paths: paths.filter(|path| !path.is_empty()).map(str::to_owned).collect() };
        // The check and the filling too are as they were written, to the last byte.
        (mark.to_text() == text).then_some(mark)
    }

    /// What a file holds.
    fn look(file: &Path) -> Result<HeadFile, LedgerError> {
        let mut attempts = 20;
        loop {
            let bytes = match read_plain(file) {
                Ok(bytes) => bytes,
                Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Ok(HeadFile::Nothing);
                }
                Err(why) => {
                    return Err(LedgerError::Head { path: file.to_owned(), why: why.to_string() });
                }
            };
            if let Some(mark) = std::str::from_utf8(&bytes).ok().and_then(Self::of_text) {
                return Ok(HeadFile::Head(mark));
            }
            // Another process may be writing it at this very moment.
            if attempts == 0 {
                return Ok(HeadFile::Torn(bytes));
            }
            attempts -= 1;
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The head in a file; nothing where there is no file.
    fn read(file: &Path, ledger: &Path) -> Result<Option<Self>, LedgerError> {
        match Self::look(file)? {
            HeadFile::Nothing => Ok(None),
            HeadFile::Head(mark) => Ok(Some(mark)),
            HeadFile::Torn(_) => {
                let what = "it is not as it was written".to_owned();
                Err(LedgerError::Unlike { path: ledger.to_owned(), witness: file.to_owned(), what })
            }
        }
    }

    /// Writes it in place; where the file is not there, or has another size, as a whole next to it, which is then renamed: who reads it never finds a half.
    fn write(&self, file: &Path, synchronised: bool) -> io::Result<()> {
        let text = self.to_text();
        let in_place = std::fs::metadata(file).is_ok_and(|about| about.len() == text.len() as u64);
        let temporary = with_ending(file, "new");
        let mut open = private_file().truncate(!in_place).write(true).open(if in_place { file } else { &temporary })?;
        open.write_all(text.as_bytes())?;
        if synchronised {
            open.sync_data()?;
        }
        if !in_place {
            std::fs::rename(&temporary, file)?;
            if synchronised {
                synchronise_folder(file)?;
            }
        }
        Ok(())
    }
}

impl Witness {
    /// For a ledger in this file, and with heads in a folder far away where there is one.
    pub(super) fn new(ledger: &Path, opening: &Opening) -> Result<Self, LedgerError> {
        if let Some(folder) = opening.witness.as_ref().filter(|folder| !folder.is_absolute()) {
            return Err(LedgerError::Relative(folder.clone()));
        }
        let named = in_folder(ledger);
        let is_link = std::fs::symlink_metadata(ledger).is_ok_and(|about| about.is_symlink());
        let known = match ledger.canonicalize() {
            Ok(known) => known,
            Err(_) if is_link => {
                let target = std::fs::read_link(ledger).unwrap_or_default();
                return Err(LedgerError::Link { path: ledger.to_owned(), target });
            }
            Err(_) => named.clone(),
        };
        // By whichever link it is reached, it has one head next to it.
        let near = with_ending(if is_link { known.as_path() } else { ledger }, "head");
        let mut names = vec![text_of(&known), text_of(&named)];
        names.dedup();
        let (away, patience) = (opening.witness.clone(), opening.patience);
        Ok(Self { ledger: known, names, near, away, patience, synchronised: true })
    }

    fn away_of(&self, ledger: [u8; 16]) -> Option<PathBuf> {
        self.away.as_ref().map(|folder| folder.join(format!("{}.head", hex(&ledger))))
    }

    /// Keeps everybody else from writing heads of this ledger far away, whichever copy of it they have, until what is returned is dropped.
    pub(super) fn lock(&self, ledger: [u8; 16]) -> Result<Option<File>, LedgerError> {
        let Some(folder) = &self.away else { return Ok(None) };
        let file = folder.join(format!("{}.lock", hex(&ledger)));
        let failed = |why: io::Error| LedgerError::Head { path: file.clone(), why: why.to_string() };
        make_private_folder(folder).map_err(failed)?;
        let since = Instant::now();
        loop {
            let open = private_file().write(true).truncate(false).open(&file).map_err(failed)?;
            match open.try_lock() {
                // Where it was removed meanwhile, others lock another one.
                Ok(()) if stands_at(&open, &file) => return Ok(Some(open)),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(why)) => return Err(failed(why)),
            }
            if since.elapsed() > self.patience {
                return Err(LedgerError::Locked { path: self.ledger.clone(), waited: self.patience });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Heads far away that name this very file. One that is not as it was written has no mark; one that does not name this file concerns nobody here.
    fn known(&self) -> Result<Vec<(PathBuf, Option<HeadMark>)>, LedgerError> {
        let Some(folder) = &self.away else { return Ok(Vec::new()) };
        let failed = |why: io::Error| LedgerError::Head { path: folder.clone(), why: why.to_string() };
        let files = match std::fs::read_dir(folder) {
            Ok(files) => files,
            Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(why) => return Err(failed(why)),
        };
        let mut found = Vec::new();
        for file in files {
            let file = file.map_err(failed)?.path();
            if file.extension().is_none_or(|ending| ending != "head") || !file.is_file() {
                continue;
            }
            match HeadMark::look(&file)? {
                HeadFile::Head(mark) if mark.paths.iter().any(|path| self.names.contains(path)) => {
                    found.push((file, Some(mark)));
                }
                HeadFile::Torn(bytes) if self.names.iter().any(|name| holds(&bytes, name)) => found.push((file, None)),
                HeadFile::Nothing | HeadFile::Head(_) | HeadFile::Torn(_) => {}
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// A head that knows of a ledger in this file, if there is one.
    pub(super) fn knows(&self) -> Option<PathBuf> {
        if matches!(HeadMark::look(&self.near), Ok(HeadFile::Head(_))) {
            return Some(self.near.clone());
        }
        self.known().ok()?.into_iter().map(|(file, _)| file).next()
    }

    /// That nothing is known of a ledger in this file of which something would be forgotten: for one that is to be made.
    pub(super) fn check_none(&self) -> Result<(), LedgerError> {
        let near = match HeadMark::look(&self.near)? {
            HeadFile::Nothing => None,
            HeadFile::Head(mark) => Some((self.near.clone(), Some(mark))),
            HeadFile::Torn(_) => Some((self.near.clone(), None)),
        };
        let known = self.known()?.into_iter().chain(near);
        self.check_forgotten(known, |path, witness, events| LedgerError::Gone { path, witness, events })
    }

    /// That no other ledger is known in this file of which something would be forgotten: for one that stands there.
    pub(super) fn check_others(&self, ledger: [u8; 16]) -> Result<(), LedgerError> {
        let others = self.others(ledger)?.into_iter();
        self.check_forgotten(others, |path, witness, events| LedgerError::Foreign { path, witness, events })
    }

    /// That of all these heads none knows of events, or is one that cannot be read.
    fn check_forgotten(
        &self,
        mut heads: impl Iterator<Item = (PathBuf, Option<HeadMark>)>,
        known: impl Fn(PathBuf, PathBuf, u64) -> LedgerError,
    ) -> Result<(), LedgerError> {
        let path = || self.ledger.clone();
        heads.try_for_each(|(witness, mark)| match mark {
            None => Err(LedgerError::Torn { path: path(), witness }),
            Some(mark) if mark.head.events > 0 => Err(known(path(), witness, mark.head.events)),
            Some(_) => Ok(()),
        })
    }

    /// Heads far away that name this file, and are of other ledgers.
    fn others(&self, ledger: [u8; 16]) -> Result<Vec<(PathBuf, Option<HeadMark>)>, LedgerError> {
        let own = self.away_of(ledger);
        let is_other = |file: &Path, mark: Option<&HeadMark>| {
            own.as_deref() != Some(file) && mark.is_none_or(|mark| mark.ledger != ledger)
        };
        let mut known = self.known()?;
        known.retain(|(file, mark)| is_other(file, mark.as_ref()));
        Ok(known)
    }

    /// How the heads stand to a chain that was walked. `at` gives the hash of an earlier event.
    pub(super) fn check(
        &self,
        ledger: [u8; 16],
        seen: &EntriesSeen,
        at: impl FnOnce(u64) -> Result<Option<blake3::Hash>, LedgerError>,
    ) -> Result<HeadStanding, LedgerError> {
        let unlike = |witness: &Path, what: String| LedgerError::Unlike {
            path: self.ledger.clone(),
            witness: witness.to_owned(),
            what,
        };
        let other = |witness: &Path| unlike(witness, "it is the head of another ledger".to_owned());
        let ends = seen.head.events;
        let mut standing = HeadStanding::Exact;
        match HeadMark::read(&self.near, &self.ledger)? {
            None if seen.may_lack_head() => standing = HeadStanding::Behind,
            None => return Err(unlike(&self.near, "there is no head, and a ledger has one".to_owned())),
            Some(mark) if mark.ledger != ledger => return Err(other(&self.near)),
            Some(mark) if mark.head == seen.head => {}
            Some(mark) if mark.head == seen.before && ends > 0 => standing = HeadStanding::Behind,
            Some(mark) => return Err(unlike(&self.near, differing(mark.head, seen.head))),
        }
        let Some(away) = self.away_of(ledger) else { return Ok(standing) };
        match HeadMark::read(&away, &self.ledger)? {
            None => standing = HeadStanding::Behind,
            Some(mark) if mark.ledger != ledger => return Err(other(&away)),
            Some(mark) if mark.head == seen.head => {
                if self.names.iter().any(|name| !mark.paths.contains(name)) {
                    standing = HeadStanding::Behind; // it was moved, or is a copy
                }
            }
            Some(mark) => {
                let known = if mark.head.events < ends { at(mark.head.events)? } else { None };
                if known != Some(mark.head.hash()) {
                    return Err(unlike(&away, differing(mark.head, seen.head)));
                }
                standing = HeadStanding::Behind;
            }
        }
        Ok(standing)
    }

    /// Has all heads say how far the chain goes. The caller holds the ledger's lock, and the one [far away](Self::lock).
    pub(super) fn write(&self, ledger: [u8; 16], head: Head) -> Result<(), LedgerError> {
        let failed = |path: &Path, why: &io::Error| LedgerError::Head { path: path.to_owned(), why: why.to_string() };
        let mark = HeadMark { ledger, head, paths: Vec::new() };
        mark.write(&self.near, self.synchronised).map_err(|why| failed(&self.near, &why))?;
        if let (Some(folder), Some(file)) = (&self.away, self.away_of(ledger)) {
            make_private_folder(folder).map_err(|why| failed(folder, &why))?;
            // Where it was once seen it is missed, wherever else it is seen after that.
            let mut paths = match HeadMark::look(&file) {
                Ok(HeadFile::Head(kept)) if kept.ledger == ledger => kept.paths,
                _ => Vec::new(),
            };
            let new: Vec<&String> = self.names.iter().filter(|name| !paths.contains(name)).collect();
            paths.extend(new.into_iter().cloned());
            let mark = HeadMark { ledger, head, paths };
            mark.write(&file, self.synchronised).map_err(|why| failed(&file, &why))?;
        }
        Ok(())
    }

    /// Has other ledgers not be missed in this file any more: for an owner who has said why. One that is interrupted leaves the old refusal. The caller does
    /// not hold the lock far away.
    pub(super) fn forget_others(&self, ledger: [u8; 16]) -> Result<(), LedgerError> {
        self.others(ledger)?.into_iter().try_for_each(|(file, mark)| self.disown(&file, mark.as_ref()))
    }

    /// Forgets ledgers that stood in this file before, and of which nothing was ever asked.
    pub(super) fn forget(&self) -> Result<(), LedgerError> {
        self.known()?.into_iter().try_for_each(|(file, mark)| self.disown(&file, mark.as_ref()))?;
        remove(&self.near)
    }

    /// Has one head far away not name this file any more. One that names no other is of no more use.
    fn disown(&self, file: &Path, mark: Option<&HeadMark>) -> Result<(), LedgerError> {
        let failed = |why: io::Error| LedgerError::Head { path: file.to_owned(), why: why.to_string() };
        let Some(mark) = mark else {
            // Nobody can say what it knew. It is put aside, under a name that is no head's.
            return std::fs::rename(file, with_ending(file, "torn")).map_err(failed);
        };
        // Whoever has that ledger elsewhere may be writing its head.
        let _held = self.lock(mark.ledger)?;
        let HeadFile::Head(mut mark) = HeadMark::look(file)? else { return Ok(()) };
        mark.paths.retain(|path| !self.names.contains(path));
        if mark.paths.is_empty() { remove(file) } else { mark.write(file, self.synchronised).map_err(failed) }
    }
}

/// A path without links in its folder.
fn in_folder(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    folder.canonicalize().map_or_else(|_| path.to_owned(), |folder| folder.join(name))
}

/// A path as heads have it: on one line.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().replace('\n', " ")
}

/// Whether these bytes, which are of a head that is not as it was written, still name this path.
fn holds(bytes: &[u8], path: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(path)
}

/// Removes a head, if it is there.
fn remove(file: &Path) -> Result<(), LedgerError> {
    match std::fs::remove_file(file) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            Err(LedgerError::Head { path: file.to_owned(), why: why.to_string() })
        }
        _ => Ok(()),
    }
}

/// What is wrong with a ledger that ends elsewhere than its head says.
fn differing(says: Head, ends: Head) -> String {
    let (order, says, ends) = (says.events.cmp(&ends.events), number_of(says.events, "event"), ends.events);
    match order {
        Ordering::Greater => format!("it says {says}, and the file has {ends}: the file was cut, or is an older copy"),
        Ordering::Less => format!(
            "it says {says}, and the file has {ends} that do not follow from them, or the head is an older copy"
        ),
        Ordering::Equal => format!("both have {says}, and the last is another"),
    }
}

/// The path with one more ending.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Which file stands at a path, by its numbers in the file system where there are any.
pub(super) fn file_at(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Whether an open file is the one at this path.
pub(super) fn stands_at(open: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        open.metadata().is_ok_and(|about| file_at(path) == Some((about.dev(), about.ino())))
    }
    #[cfg(not(unix))]
    {
        let _ = (open, path);
        true
    }
}

/// How a file is opened that nobody else may read: made where it is not there, with mode 0600.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Waits until the disk knows that a file was made.
pub(super) fn synchronise_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_names_one_path_is_read_as_it_always_was() {
        let head = Head::of(3, blake3::hash(b"y"));
        let first = format!("{TITLE}\nledger {}\nat {head}\n", "07".repeat(16));
        let check = blake3::hash(format!("{first}/a/whit.ledger").as_bytes());
        let sector = format!("{first}check {}\n", hex(check.as_bytes()));
        let mark = HeadMark::of_text(&format!("{sector:<511}\n/a/whit.ledger\n")).unwrap();
        assert_eq!(mark, HeadMark { ledger: [7; 16], head, paths: vec!["/a/whit.ledger".to_owned()] });
    }

    #[test]
    fn a_head_is_read_back_and_no_byte_of_its_file_may_change() {
        let (one, two) = ("/home/a b/whit.ledger".to_owned(), "/b".to_owned());
        for paths in [Vec::new(), vec![one.clone()], vec![one, two]] {
            let mark = HeadMark { ledger: [7; 16], head: Head::of(12, blake3::hash(b"x")), paths };
            let text = mark.to_text();
            assert_eq!(HeadMark::of_text(&text), Some(mark.clone()));
            assert!(text.len() >= SECTOR && text.as_bytes()[SECTOR - 1] == b'\n');
            for place in 0..text.len() {
                for bit in 0..8 {
                    let mut changed = text.clone().into_bytes();
                    changed[place] ^= 1 << bit;
                    let read = std::str::from_utf8(&changed).ok().and_then(HeadMark::of_text);
                    assert_eq!(read, None, "byte {place}, bit {bit}");
                }
                assert_eq!(HeadMark::of_text(&text[..place]), None, "cut at {place}");
            }
        }
    }
}
