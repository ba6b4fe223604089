//! What a caller says of the way in which a ledger is opened.

use std::path::PathBuf;
use std::time::Duration;

/// How a ledger is opened.
///
/// ```
/// use whit_account::ledger::Opening;
/// let opening = Opening { witness: Some("/var/lib/whit".into()), ..Opening::default() };
/// assert_eq!(opening.patience.as_secs(), 30);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// How long to wait whenever another process holds it.
    pub patience: Duration,
    /// A folder, away from the ledger and named by its absolute path, in which its head is kept too: so that a ledger that goes together with the head next to it is missed, and an
    /// older copy of both is known.
    pub witness: Option<PathBuf>,
}

impl Default for Opening {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), witness: None }
    }
}
