//! Turns: of several processes that ask the very same question at once, one works and the others wait for it.
//!
//! A turn is an empty file next to the ledger, named after the question, that its holder has locked. The lock goes with the process, whatever ends it; the file
//! does not, so whoever takes a turn also removes those that were left.
//!
//! # Why no two have the same turn
//! The file is only ever removed by somebody who holds its lock and has seen, while holding it, that it still stands under its name: a holder who lets go, or a
//! sweep. So between that look and the removal nobody else can have put another file there. A holder has the lock of the file that stands under the name;
//! for a second holder another file would have to stand there, so the first one's would have to be gone; only who holds its lock removes it, and that is the first holder,
//! who then has the turn no more. A sweep never waits for a lock, so it passes over turns that somebody has; and whoever waited for a file that was swept finds, once it
//! is locked, that it stands there no more, and takes the one that does.

use super::witness::{private_file, stands_at};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// While it is there, nobody else is at work on the very same question: see [`Register::turn`](super::Register::turn).
#[derive(Debug, Default)]
#[must_use = "who drops a turn lets the next one in"]
pub struct Turn(Option<(File, PathBuf)>);

impl Turn {
    /// The turn of a question, by its key, at the ledger of this path. Turns that dead processes left are removed on the way.
    pub(super) fn at(ledger: &Path, key: &str) -> Self {
        /// So often the file may be another one when it is locked, because somebody let go of it.
        const TRIES: usize = 10_000;
        let Some(name) = ledger.file_name() else { return Self::default() };
        let mut prefix = name.to_owned();
        prefix.push(".turn-");
        sweep(ledger, &prefix);
        let mut name = prefix;
        name.push(key);
        let path = ledger.with_file_name(name);
        for _ in 0..TRIES {
            let Ok(file) = private_file().write(true).truncate(false).open(&path) else { break };
            if file.lock().is_err() {
                break;
            }
            // Whoever had it removed it before letting go, and others may be at a new one by now.
            if stands_at(&file, &path) {
                return Self(Some((file, path)));
            }
        }
        Self::default()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((file, path)) = self.0.take() {
            let _ = std::fs::remove_file(path); // one that stays is swept by whoever asks next
            drop(file);
        }
    }
}

/// Removes the turns of a ledger that nobody has. What cannot be removed stays: it is empty, and in nobody's way.
fn sweep(ledger: &Path, prefix: &OsStr) {
    // Where it cannot be seen whether an open file still stands under its name, none is removed but by its holder.
    if cfg!(not(unix)) {
        return;
    }
    let folder = ledger.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(listed) = std::fs::read_dir(folder) else { return };
    let starts = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes());
    for path in listed.flatten().filter(|file| starts(&file.file_name())).map(|file| file.path()) {
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() && stands_at(&file, &path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}
