//! What is known of a ledger outside of its file: how far its chain goes.
//!
//! A file alone cannot know that it is gone, cut, or an older copy of itself. So the [`Head`] is kept beside it, in `whit.ledger.head`, and where the
//! caller names a folder for that, also far away from it, under the ledger's own name. The file must go exactly as far as the head beside it says, and at
//! least as far as the one far away.
//!
//! # The order of writing
//! Event n is committed to the ledger's main file and synchronised; then the heads say n; then the caller is told, and only then can anything be released. Whoever
//! writes event n + 1 first sees to it that the heads say n. So after a crash at any moment the heads are right or one event behind, and
//! of that event nobody was told. Everything else is an error: heads that are ahead (the file was cut or is an older copy), two or more behind (the head is an
//! older copy), another hash, a byte that changed.

use super::chain::Head;
use super::entry::Seen;
use super::error::LedgerError;
use super::format::{hex, unhex};
use std::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a head's file begins.
const TITLE: &str = "whit ledger head 1";
/// What a head takes in its file. It is written in place, and so much at the start of a file is one sector: written as a whole or not at all.
const SECTOR: usize = 512;

/// Where heads are kept.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    /// The ledger's file, as the system knows it.
    ledger: PathBuf,
    pub(super) beside: PathBuf,
    away: Option<PathBuf>,
    /// Whether to wait for the disk.
    pub(super) synchronised: bool,
}

/// One head in its file.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    ledger: [u8; 16],
    head: Head,
    /// Where the ledger is, for a head that is not beside it.
    path: Option<String>,
}

/// How heads stand to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Exact,
    /// By the event of which nobody was told.
    Behind,
}

impl Mark {
    fn to_text(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        let text = format!("{TITLE}\nledger {}\nat {}\n", hex(&self.ledger), self.head);
        let check = blake3::hash(format!("{text}{path}").as_bytes());
        let text = format!("{text}check {}\n", hex(check.as_bytes()));
        let path = if path.is_empty() { String::new() } else { format!("{path}\n") };
        format!("{text:<width$}\n{path}", width = SECTOR - 1)
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let ledger = unhex(lines.next()?.strip_prefix("ledger ")?)?.try_into().ok()?;
        let head = lines.next()?.strip_prefix("at ")?.parse().ok()?;
        let path = text.get(SECTOR..)?.trim_end_matches('\n');
        let mark = Self { ledger, head, path: Some(path.to_owned()).filter(|path| !path.is_empty()) };
        // The check and the filling too are as they were written, to the last byte.
        (mark.to_text() == text).then_some(mark)
    }

    /// The head in a file; nothing where there is no file.
    fn read(file: &Path, ledger: &Path) -> Result<Option<Self>, LedgerError> {
        for attempt in 0.. {
            let bytes = match std::fs::read(file) {
                Ok(bytes) => bytes,
                Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Ok(None);
                }
                Err(why) => {
                    return Err(LedgerError::Head { path: file.to_owned(), why: why.to_string() });
                }
            };
            if let Some(mark) = std::str::from_utf8(&bytes).ok().and_then(Self::of_text) {
                return Ok(Some(mark));
            }
            // Another process may be writing it at this very moment.
            if attempt == 20 {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let what = "it is not as it was written".to_owned();
        Err(LedgerError::Unlike { path: ledger.to_owned(), witness: file.to_owned(), what })
    }

    /// Writes it in place; where the file is not there, or has another size, as a whole beside it, which is then renamed: who reads it never finds a half.
    fn write(&self, file: &Path, synchronised: bool) -> io::Result<()> {
        let text = self.to_text();
        let in_place = std::fs::metadata(file).is_ok_and(|about| about.len() == text.len() as u64);
        let beside = with_ending(file, "new");
        let mut open = private_file().truncate(!in_place).write(true).open(if in_place { file } else { &beside })?;
        open.write_all(text.as_bytes())?;
        if synchronised {
            open.sync_data()?;
        }
        if !in_place {
            std::fs::rename(&beside, file)?;
            if synchronised {
                synchronise_folder(file)?;
            }
        }
        Ok(())
    }
}

impl Witness {
    /// For a ledger in this file, and with heads in a folder far away where there is one.
    pub(super) fn new(ledger: &Path, away: Option<&Path>) -> Self {
        let folder = ledger.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = ledger.file_name().unwrap_or_default();
        let known = folder.canonicalize().map_or_else(|_| ledger.to_owned(), |folder| folder.join(name));
        Self { ledger: known, beside: with_ending(ledger, "head"), away: away.map(Path::to_owned), synchronised: true }
    }

    fn away_of(&self, ledger: [u8; 16]) -> Option<PathBuf> {
        self.away.as_ref().map(|folder| folder.join(format!("{}.head", hex(&ledger))))
    }

    fn path_text(&self) -> String {
        self.ledger.to_string_lossy().replace('\n', " ")
    }

    /// Heads far away of ledgers that stood in this very file. One that cannot be read is an error, or left out.
    fn earlier(&self, strict: bool) -> Result<Vec<(PathBuf, Mark)>, LedgerError> {
        let Some(folder) = &self.away else { return Ok(Vec::new()) };
        let failed = |why: io::Error| LedgerError::Head { path: folder.clone(), why: why.to_string() };
        let files = match std::fs::read_dir(folder) {
            Ok(files) => files,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => return Err(failed(why)),
        };
        let mut found = Vec::new();
        for file in files {
            let file = file.map_err(failed)?.path();
            if file.extension().is_none_or(|ending| ending != "head") {
                continue;
            }
            let mark = Mark::read(&file, &self.ledger);
            if let Some(mark) = if strict { mark? } else { mark.unwrap_or_default() }
                && mark.path.as_deref() == Some(&self.path_text())
            {
                found.push((file, mark));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// That nothing is known of a ledger in this file of which something would be forgotten: for one that is to be made.
    pub(super) fn check_none(&self) -> Result<(), LedgerError> {
        let beside = Mark::read(&self.beside, &self.ledger)?.map(|mark| (self.beside.clone(), mark));
        let mut known = self.earlier(true)?.into_iter().chain(beside);
        match known.find(|(_, mark)| mark.head.events > 0) {
            Some((witness, mark)) => {
                Err(LedgerError::Gone { path: self.ledger.clone(), witness, events: mark.head.events })
            }
            None => Ok(()),
        }
    }

    /// How the heads stand to a chain that was walked. `at` gives the hash of an earlier event.
    pub(super) fn check(
        &self,
        ledger: [u8; 16],
        seen: &Seen,
        at: impl FnOnce(u64) -> Result<Option<blake3::Hash>, LedgerError>,
    ) -> Result<Standing, LedgerError> {
        let unlike = |witness: &Path, what: String| LedgerError::Unlike {
            path: self.ledger.clone(),
            witness: witness.to_owned(),
            what,
        };
        let other = |witness: &Path| unlike(witness, "it is the head of another ledger".to_owned());
        let ends = seen.head.events;
        let mut standing = Standing::Exact;
        match Mark::read(&self.beside, &self.ledger)? {
            None if seen.may_lack_head() => standing = Standing::Behind,
            None => return Err(unlike(&self.beside, "there is no head, and a ledger has one".to_owned())),
            Some(mark) if mark.ledger != ledger => return Err(other(&self.beside)),
            Some(mark) if mark.head == seen.head => {}
            Some(mark) if mark.head == seen.before && ends > 0 => standing = Standing::Behind,
            Some(mark) => return Err(unlike(&self.beside, differing(mark.head, seen.head))),
        }
        let Some(away) = self.away_of(ledger) else { return Ok(standing) };
        match Mark::read(&away, &self.ledger)? {
            None => standing = Standing::Behind,
            Some(mark) if mark.ledger != ledger => return Err(other(&away)),
            Some(mark) if mark.head == seen.head => {
                if mark.path.as_deref() != Some(&self.path_text()) {
                    standing = Standing::Behind; // it was moved
                }
            }
            Some(mark) => {
                let known = if mark.head.events < ends { at(mark.head.events)? } else { None };
                if known != Some(mark.head.hash()) {
                    return Err(unlike(&away, differing(mark.head, seen.head)));
                }
                standing = Standing::Behind;
            }
        }
        Ok(standing)
    }

    /// Has all heads say how far the chain goes.
    pub(super) fn write(&self, ledger: [u8; 16], head: Head) -> Result<(), LedgerError> {
        let failed = |path: &Path, why: &io::Error| LedgerError::Head { path: path.to_owned(), why: why.to_string() };
        let mark = Mark { ledger, head, path: None };
        mark.write(&self.beside, self.synchronised).map_err(|why| failed(&self.beside, &why))?;
        if let (Some(folder), Some(file)) = (&self.away, self.away_of(ledger)) {
            make_private_folder(folder).map_err(|why| failed(folder, &why))?;
            let mark = Mark { path: Some(self.path_text()), ..mark };
            mark.write(&file, self.synchronised).map_err(|why| failed(&file, &why))?;
        }
        Ok(())
    }

    /// Has all heads say how far the chain goes, and then forgets other ledgers that stood in this file: for an owner who has said why. One that is interrupted
    /// leaves the old refusal, or heads that are right and some that are of no more use.
    pub(super) fn replace(&self, ledger: [u8; 16], head: Head) -> Result<(), LedgerError> {
        self.write(ledger, head)?;
        let own = self.away_of(ledger);
        // One that cannot be read stays: it may be another ledger's.
        let mut others = self.earlier(false)?.into_iter().filter(|(file, _)| Some(file) != own.as_ref());
        others.try_for_each(|(file, _)| remove(&file))
    }

    /// Forgets ledgers that stood in this file before, and of which nothing was ever asked.
    pub(super) fn forget(&self) -> Result<(), LedgerError> {
        self.earlier(false)?.into_iter().try_for_each(|(file, _)| remove(&file))?;
        remove(&self.beside)
    }
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
    let (says, ends) = (says.events, ends.events);
    match says.cmp(&ends) {
        Ordering::Greater => {
            format!("it says {says} events, and the file has {ends}: the file was cut, or is an older copy")
        }
        Ordering::Less => format!(
            "it says {says} events, and the file has {ends} that do not follow from them, or the head is an older copy"
        ),
        Ordering::Equal => format!("both have {ends} events, and the last is another"),
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
    fn a_head_is_read_back_and_no_byte_of_its_file_may_change() {
        for path in [None, Some("/home/a b/whit.ledger".to_owned())] {
            let mark = Mark { ledger: [7; 16], head: Head::of(12, blake3::hash(b"x")), path };
            let text = mark.to_text();
            assert_eq!(Mark::of_text(&text), Some(mark.clone()));
            assert!(text.len() >= SECTOR && text.as_bytes()[SECTOR - 1] == b'\n');
            for place in 0..text.len() {
                for bit in 0..8 {
                    let mut changed = text.clone().into_bytes();
                    changed[place] ^= 1 << bit;
                    let read = std::str::from_utf8(&changed).ok().and_then(Mark::of_text);
                    assert_eq!(read, None, "byte {place}, bit {bit}");
                }
                assert_eq!(Mark::of_text(&text[..place]), None, "cut at {place}");
            }
        }
    }
}
