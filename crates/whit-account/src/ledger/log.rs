//! What the operator must see and the analyst must not: rows that do not fit, labels out of range, data that changed.

use super::format::time_text;
use super::witness::private_file;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log next to the ledger, for the owner of the data. It may speak of rows, so nothing of it goes where an analyst looks.
///
/// The file is `whit.ledger.log` for the ledger `whit.ledger`, made with mode 0600 at the first line. The time is the caller's.
///
/// ```
/// use whit_account::ledger::OperatorLog;
/// # let folder = std::env::temp_dir().join(format!("whit-log-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let log = OperatorLog::next_to(&folder.join("whit.ledger"));
/// log.write(1_709_210_096_789, "visits: 3 rows have no number in `age` and count as missing")?;
/// assert_eq!(
///     std::fs::read_to_string(log.path())?,
///     "2024-02-29 12:34:56 visits: 3 rows have no number in `age` and count as missing\n"
/// );
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorLog {
    path: PathBuf,
}

impl OperatorLog {
    /// The log of the ledger in this file.
    pub fn next_to(ledger: &Path) -> Self {
        Self { path: super::witness::with_ending(ledger, "log") }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line: the time, in milliseconds since 1970, and what there is to say. Ends of lines within it become spaces.
    ///
    /// Whether it failed is for the operator too: a caller that answers an analyst goes on as if it had not.
    pub fn write(&self, time: i64, line: &str) -> io::Result<()> {
        let line: Vec<&str> = line.lines().collect();
        // One call, so that the lines of several processes do not mix.
        private_file()
            .append(true)
            .open(&self.path)?
            .write_all(format!("{} {}\n", time_text(time), line.join(" ")).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_appended_to_a_file_that_others_cannot_read() {
        let folder = std::env::temp_dir().join(format!("whit-operator-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let log = OperatorLog::next_to(&folder.join("whit.ledger"));
        log.write(0, "one\ntwo").unwrap();
        log.write(1000, "three").unwrap();
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(text, "1970-01-01 00:00:00 one two\n1970-01-01 00:00:01 three\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(log.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
