//! Turns: of several processes that ask the very same question at once, one works and the others wait for it.
//!
//! A turn is an empty file next to the ledger, named after the question, that its holder has locked. The lock goes with the process, whatever ends it; the file
//! does not, so whoever takes a turn also removes those that were left. Only an empty file with the name of a turn is taken for one: whatever else stands there
//! is somebody's own, and stays.
//!
//! # Why no two have the same turn
//! The file is only ever removed by somebody who holds its lock and has seen, while holding it, that it still stands under its name: a holder who lets go, or a
//! sweep. So between that look and the removal nobody else can have put another file there, as long as all remove in this way. A holder has the lock of the file that
//! stands under the name; for a second holder another file would have to stand there, so the first one's would have to be gone; only who holds its lock removes it, and
//! that is the first holder, who then has the turn no more. A sweep never waits for a lock, so it passes over turns that somebody has; and whoever waited for a file that
//! was swept finds, once it is locked, that it stands there no more, and takes the one that does.
//!
//! Whoever removes the file of another by hand breaks this: two may then work on one question and pay twice. Nothing that is promised hangs on it.

use super::LedgerError;
use super::witness::{private_file, stands_at};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the hexadecimal key of a question is, which ends the name of its turn.
pub(super) const KEY: usize = 16;

/// While it is there, nobody else is at work on the very same question: see [`Register::turn`](super::Register::turn).
#[derive(Debug, Default)]
#[must_use = "who drops a turn lets the next one in"]
pub struct Turn(Option<(File, PathBuf)>);

impl Turn {
    /// The turn of a question, by its key, at the ledger of this path. Turns that dead processes left are removed on the way. Whoever has it may be at work for long, or be
    /// stopped: after `patience` that is said instead of waited for.
    pub(super) fn at(ledger: &Path, key: &str, patience: Duration) -> Result<Self, LedgerError> {
        /// Between two looks.
        const PAUSE: Duration = Duration::from_millis(10);
        let Some((ledger, prefix)) = place(ledger) else { return Ok(Self::default()) };
        sweep(&ledger, &prefix);
        let path = named(&ledger, prefix, key);
        let since = Instant::now();
        loop {
            let Some(file) = open(private_file().write(true).truncate(false), &path) else { break };
            match file.try_lock() {
                // Whoever had it removed it before letting go, and others may be at a new one by now.
                Ok(()) if stands_at(&file, &path) => return Ok(Self(Some((file, path)))),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => break, // a file system without locks
            }
            if since.elapsed() > patience {
                return Err(LedgerError::Working { waited: patience });
            }
        }
        Ok(Self::default())
    }

    /// Whether somebody has the turn of this key. Nothing is made or removed.
    pub(super) fn is_taken(ledger: &Path, key: &str) -> bool {
        let Some((ledger, prefix)) = place(ledger) else { return false };
        let file = open(OpenOptions::new().write(true), &named(&ledger, prefix, key));
        file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

/// However it is reached, by a link or by another, the ledger has one place for its turns: that is, and how their names begin.
fn place(ledger: &Path) -> Option<(PathBuf, OsString)> {
    let ledger = ledger.canonicalize().unwrap_or_else(|_| ledger.to_owned());
    let mut prefix = ledger.file_name()?.to_owned();
    prefix.push(".turn-");
    Some((ledger, prefix))
}

/// The file of a turn.
fn named(ledger: &Path, mut prefix: OsString, key: &str) -> PathBuf {
    prefix.push(key);
    ledger.with_file_name(prefix)
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((file, path)) = self.0.take() {
            // Where it was removed by hand, another's may stand there by now. One that stays is swept by whoever asks next.
            if stands_at(&file, &path) {
                let _ = std::fs::remove_file(path);
            }
            drop(file);
        }
    }
}

/// Opens a file if it is an empty one. A link is not followed, and a pipe not waited for.
fn open(options: &mut OpenOptions, path: &Path) -> Option<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let about = file.metadata().ok()?;
    (about.is_file() && about.len() == 0).then_some(file)
}

/// Whether a file bears the name of a turn.
fn is_turn(name: &OsStr, prefix: &OsStr) -> bool {
    let key = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    key.is_some_and(|key| key.len() == KEY && key.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

/// Removes the turns of a ledger that nobody has. What cannot be removed stays: it is empty, and in nobody's way.
fn sweep(ledger: &Path, prefix: &OsStr) {
    // Where it cannot be seen whether an open file still stands under its name, none is removed but by its holder.
    if cfg!(not(unix)) {
        return;
    }
    let folder = ledger.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(listed) = std::fs::read_dir(folder) else { return };
    for path in listed.flatten().filter(|file| is_turn(&file.file_name(), prefix)).map(|file| file.path()) {
        let Some(file) = open(OpenOptions::new().write(true), &path) else { continue };
        if file.try_lock().is_ok() && stands_at(&file, &path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}
