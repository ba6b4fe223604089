//! Where a run begins: anew, or where the ledger says that it stands.

use super::spec::asked;
use crate::Error;
use whit_account::ledger::Entry;
use whit_core::Progress;
use whit_learn::LearnError;
use whit_learn::checkpoint::{CheckpointFile, Standing};

/// How a run begins.
pub(crate) struct Begin {
    /// The entry that it goes on under; nothing where one is to be reserved.
    pub(crate) entry: Option<u64>,
    /// What the ledger noted last.
    pub(crate) at: Option<Progress>,
    /// The checkpoint to go on from; the start where there is none.
    pub(crate) from: Option<Standing>,
    /// Whether that one was written and is not noted yet.
    pub(crate) unnoted: bool,
}

impl Begin {
    const NEW: Self = Self { entry: None, at: None, from: None, unnoted: false };

    /// How many steps were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.from.as_ref().map_or(0, |from| from.checkpoint.taken)
    }

    /// Finds where to begin, from the open entry of the same training and the checkpoints of this place. Whatever does not follow from what the ledger noted last is refused.
    pub(crate) fn find(place: &CheckpointFile, run: &str, open: Option<&Entry>) -> Result<Self, Error> {
        let last = place.find(run).map_err(|error| unfit(error, open))?;
        let next = place.find_next(run);
        let path = place.path().display();
        let Some(entry) = open else {
            // One that was written and never noted is of no use any more, and is written over.
            return match last {
                None => Ok(Self::NEW),
                Some(left) => Err(asked(
                    format!(
                        "`{path}` belongs to entry {} of the ledger, which is not open for this training any more",
                        left.checkpoint.entry
                    ),
                    "put the data or the ledger back that it was begun with, or remove it to begin anew, with a charge of its own",
                )),
            };
        };
        let number = entry.number;
        let Some(at) = entry.progress.clone() else {
            if named(&entry.question) {
                return Err(asked(
                    format!("entry {number} of the ledger was begun by an earlier version, which noted no checkpoints"),
                    format!("`Session::void({number})` ends it, if nothing of it has left"),
                ));
            }
            // Reserved, and ended before the first checkpoint was noted: nothing of it can have been seen.
            return Ok(Self { entry: Some(number), ..Self::NEW });
        };
        let noted = |standing: &Standing| standing.hash == at.checkpoint;
        let begin = |from: Standing, unnoted: bool| Self {
            entry: Some(number),
            at: Some(at.clone()),
            from: Some(from),
            unnoted,
        };
        match (last.filter(noted), next) {
            // Written after the last one that was noted, and not noted itself: it is gone on with, and not drawn again.
            (Some(last), Some(next))
                if next.checkpoint.after.as_ref() == Some(&last.hash)
                    && next.checkpoint.taken > last.checkpoint.taken =>
            {
                Ok(begin(next, true))
            }
            (Some(last), _) => Ok(begin(last, false)),
            (None, Some(next)) if noted(&next) => {
                place.advance()?;
                Ok(begin(next, false))
            }
            (None, _) => Err(asked(
                format!(
                    "entry {number} of the ledger is open for the same training and has gone on to step {}, and `{path}` is not its checkpoint of that step",
                    at.step
                ),
                format!(
                    "one charge pays for one run: put that checkpoint back to go on; `Session::void({number})` ends it, if it runs nowhere and nothing of it has left"
                ),
            )),
        }
    }
}

/// A checkpoint that nobody can go on from. What helps depends on what the ledger has of the training: to void an entry alone would leave the file.
fn unfit(error: LearnError, open: Option<&Entry>) -> Error {
    let LearnError::Damaged { path, .. } = &error else { return error.into() };
    let path = path.display();
    let hint = match open {
        None => format!(
            "remove `{path}`: no entry is open for this training, and the same `Session::train` begins anew, with a charge of its own"
        ),
        Some(Entry { number, progress: None, .. }) => {
            format!(
                "remove `{path}`: no step of entry {number} was noted, and the same `Session::train` goes on under it"
            )
        }
        Some(Entry { number, progress: Some(at), .. }) => format!(
            "put the checkpoint of step {} back to go on; or remove `{path}` and say `Session::void({number})`, if nothing of it has left: the same `Session::train` then begins anew",
            at.step
        ),
    };
    Error::failed(error.to_string()).with_hint(hint)
}

/// Whether an entry has the name of its run in its text, as entries had before the ledger noted checkpoints.
fn named(question: &str) -> bool {
    let name = question.rsplit_once(", run ").map(|(_, name)| name);
    name.is_some_and(|name| name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit()))
}
