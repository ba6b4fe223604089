//! Where a run stands, on disk: so that what is killed goes on under the reservation that it has, and pays no second time.
//!
//! One reservation pays for one way of noise, so the ledger notes which checkpoint a run stands at, and it goes on from that one and from no other. A
//! checkpoint is written to a file next to the last one and synchronised; then the ledger notes its hash; then it takes the last one's name. Whenever the process
//! is killed, one of the two files has the hash that was noted. One that was written and not noted yet follows from the last one by its own word, and
//! is gone on with: so nothing of what was ever written is drawn a second time. Steps after the last file were never seen, and are taken anew.
//!
//! Checkpoints hold iterates, which only their owner may see before the model is committed: files have mode 0600.

use crate::error::LearnError;
use crate::optimise::{Average, Optimiser};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The version of the format.
const VERSION: u32 = 2;
/// How every checkpoint begins.
const HEAD: &str = "whit checkpoint ";
/// What to do where one cannot be written.
const GOES_ON: &str = "see to it that there is room and that this user may write there; what was noted is kept";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The version of the format.
    pub version: u32,
    /// The hash of what the run means: configuration and plan. Nothing of the data is in it.
    pub run: String,
    /// The entry in the ledger.
    pub entry: u64,
    /// The hash of the checkpoint before it, as the ledger noted it; nothing for the first.
    pub after: Option<String>,
    /// How many steps were taken.
    pub taken: u64,
    /// θ; as `f64`, of which the text is exact.
    pub theta: Vec<f64>,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The average of iterates, where one is kept.
    pub average: Option<Average>,
}

impl Checkpoint {
    /// Of a run of this hash under this entry, after this checkpoint, with the state of its learner.
    pub fn new(run: &str, entry: u64, after: Option<&str>, state: (&[f32], &Optimiser, Option<&Average>, u64)) -> Self {
        let (theta, optimiser, average, taken) = state;
        Self {
            version: VERSION,
            run: run.to_owned(),
            entry,
            after: after.map(str::to_owned),
            taken,
            theta: theta.iter().copied().map(f64::from).collect(),
            optimiser: optimiser.clone(),
            average: average.cloned(),
        }
    }

    /// The whole file, a line with the hash of the rest and the rest in JSON; and that hash.
    fn to_bytes(&self) -> Result<(Vec<u8>, String), LearnError> {
        let body = serde_json::to_vec(self)
            .map_err(|why| LearnError::file(format!("no checkpoint can be written: {why}"), GOES_ON))?;
        let hash = blake3::hash(&body).to_hex().to_string();
        let mut bytes = format!("{HEAD}{VERSION} {hash}\n").into_bytes();
        bytes.extend(body);
        Ok((bytes, hash))
    }

    fn of_bytes(bytes: &[u8], path: &Path) -> Result<Standing, LearnError> {
        let wrong = |what: String| LearnError::Damaged { path: path.to_owned(), what };
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
        let head = std::str::from_utf8(&bytes[..end]).ok().and_then(|line| line.strip_prefix(HEAD));
        let (version, hash) =
            head.and_then(|head| head.split_once(' ')).ok_or_else(|| wrong("is no checkpoint of whit".to_owned()))?;
        if version != VERSION.to_string() {
            return Err(wrong(format!("has format {version}, and this whit reads format {VERSION}")));
        }
        let body = bytes.get(end + 1..).unwrap_or_default();
        if blake3::hash(body).to_hex().as_str() != hash {
            return Err(wrong("is damaged: its hash is another".to_owned()));
        }
        let checkpoint = serde_json::from_slice(body).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        Ok(Standing { checkpoint, hash: hash.to_owned() })
    }
}

/// A checkpoint that was read, and the hash by which a ledger knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// Its hash.
    pub hash: String,
}

/// The file of one run's checkpoints, and the one that is written next to it, held by one process at a time.
///
/// # Why no two hold it
/// Who holds it has locked the file that stands under the name of the lock, and only who holds it removes that file. So whoever locked a file that was removed meanwhile finds that it stands
/// there no more, and takes the one that does.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    lock: File,
}

impl CheckpointFile {
    /// Takes the file; refused while another process has it. The lock goes with the process, however that ends.
    pub fn take(path: &Path) -> Result<Self, LearnError> {
        let lock_path = with_ending(path, "lock");
        let failed = |why: &io::Error| {
            LearnError::file(
                format!("`{}` cannot be written: {why}", lock_path.display()),
                "see to it that this user may write there, or give the training another output.model",
            )
        };
        // It is taken at once, unless others come and go at the same time.
        for _ in 0..100 {
            let lock = private().write(true).create(true).truncate(false).open(&lock_path);
            let lock = lock.map_err(|why| failed(&why))?;
            match lock.try_lock() {
                Ok(()) if stands_at(&lock, &lock_path) => return Ok(Self { path: path.to_owned(), lock }),
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Err(LearnError::Busy(path.to_owned())),
                Err(std::fs::TryLockError::Error(why)) => return Err(failed(&why)),
            }
        }
        Err(LearnError::Busy(path.to_owned()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn next(&self) -> PathBuf {
        with_ending(&self.path, "next")
    }

    /// The checkpoint that is there, if it is one of this run.
    pub fn find(&self, run: &str) -> Result<Option<Standing>, LearnError> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => {
                let what = format!("`{}` cannot be read: {why}", self.path.display());
                return Err(LearnError::file(what, "see to it that this user may read it"));
            }
        };
        let found = Checkpoint::of_bytes(&bytes, &self.path)?;
        if found.checkpoint.run != run {
            return Err(LearnError::OtherRun(self.path.clone()));
        }
        Ok(Some(found))
    }

    /// The checkpoint that was written last and has not taken its place yet, if it is a whole one of this run.
    pub fn find_next(&self, run: &str) -> Option<Standing> {
        let bytes = std::fs::read(self.next()).ok()?;
        Checkpoint::of_bytes(&bytes, &self.path).ok().filter(|found| found.checkpoint.run == run)
    }

    /// Writes the next checkpoint next to the last one, for good, and returns its hash. It is none to go on from before a ledger has noted it.
    pub fn write(&self, checkpoint: &Checkpoint) -> Result<String, LearnError> {
        let (bytes, hash) = checkpoint.to_bytes()?;
        let next = self.next();
        write_new(&next, &bytes)
            .map_err(|why| LearnError::file(format!("`{}` cannot be written: {why}", next.display()), GOES_ON))?;
        Ok(hash)
    }

    /// Puts the next checkpoint in the place of the last one, at once.
    pub fn advance(&self) -> Result<(), LearnError> {
        let moved = std::fs::rename(self.next(), &self.path).and_then(|()| sync_folder(&self.path));
        moved.map_err(|why| LearnError::file(format!("`{}` cannot be written: {why}", self.path.display()), GOES_ON))
    }

    /// Removes the checkpoints of a run that is over.
    pub fn clear(&self) -> io::Result<()> {
        for path in [self.path.clone(), self.next()] {
            match std::fs::remove_file(path) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What was refused, and what is done, leaves no lock behind. One that goes on later keeps it beside its checkpoint.
impl Drop for CheckpointFile {
    fn drop(&mut self) {
        let lock = with_ending(&self.path, "lock");
        // Where it cannot be seen whether it is the one that stands there, it stays: it is empty, and in nobody's way.
        if cfg!(unix) && !self.path.exists() && !self.next().exists() && stands_at(&self.lock, &lock) {
            let _ = std::fs::remove_file(lock);
        }
    }
}

/// Whether an open file is the one that stands under a name.
#[cfg(unix)]
fn stands_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |there: std::fs::Metadata, own: std::fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
    std::fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|own| same(there, own)))
}

#[cfg(not(unix))]
fn stands_at(_: &File, _: &Path) -> bool {
    true
}

/// A file that only its owner may open, where the system knows of such.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name of a file is durable only when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Writes a new file of mode 0600, in the place of one that may be there, and waits for the disk.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder_of(path))?;
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(path)
}

/// The path with one more ending.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes a file for everybody so that, whatever happens, there is the old one or the new one.
pub fn write_at_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder_of(path))?;
    let part = with_ending(path, "part");
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    sync_folder(path)
}

/// The same for what only its owner may open: mode 0600.
pub fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = with_ending(path, "part");
    write_new(&part, bytes)?;
    std::fs::rename(&part, path)?;
    sync_folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimise::{Rule, Schedule, Weights};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("whit-checkpoint-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn sample() -> Checkpoint {
        let mut optimiser = Optimiser::new(Rule::ADAM, Schedule::Constant { size: 0.1 }, None, 3).unwrap();
        let mut theta = [0.1_f32, -3.0e-41, f32::MAX];
        optimiser.step(&mut theta, &[0.3, 1e-300, -0.7], 0.1).unwrap();
        let mut average = Average::new(Weights::Uniform { from: 1 }, 3).unwrap();
        average.take(1, &theta).unwrap();
        Checkpoint::new("run", 7, Some("before"), (&theta, &optimiser, Some(&average), 1))
    }

    #[test]
    fn a_checkpoint_comes_back_bit_by_bit() {
        let folder = folder("back");
        let file = CheckpointFile::take(&folder.join("model.checkpoint")).unwrap();
        assert_eq!(file.find("run").unwrap(), None);
        let hash = file.write(&sample()).unwrap();
        // It stands next to it until it is noted.
        assert_eq!(file.find("run").unwrap(), None);
        let written = Some(Standing { checkpoint: sample(), hash });
        assert_eq!(file.find_next("run"), written);
        assert_eq!(file.find_next("another"), None);
        file.advance().unwrap();
        assert_eq!((file.find("run").unwrap(), file.find_next("run")), (written, None));
        assert!(file.find("another").unwrap_err().to_string().contains("another run"));
        file.clear().unwrap();
        file.clear().unwrap();
        assert_eq!(file.find("run").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_may_open_what_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("mode");
        let file = CheckpointFile::take(&folder.join("model.checkpoint")).unwrap();
        // One that everybody may read is not written into.
        std::fs::write(folder.join("model.checkpoint.next"), "old").unwrap();
        file.write(&sample()).unwrap();
        file.advance().unwrap();
        file.write(&sample()).unwrap();
        write_privately(&folder.join("curve"), b"1 2\n").unwrap();
        let mut met = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
            met += 1;
        }
        assert_eq!(met, 4, "the last, the next, the lock and the curve");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_cut_or_changed_is_refused() {
        let (bytes, hash) = sample().to_bytes().unwrap();
        let read = |bytes: &[u8]| Checkpoint::of_bytes(bytes, Path::new("c"));
        assert_eq!(read(&bytes).unwrap(), Standing { checkpoint: sample(), hash });
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(read(&changed).unwrap_err().to_string().contains("damaged"));
        let newer = String::from_utf8(bytes).unwrap().replacen("checkpoint 2", "checkpoint 3", 1);
        assert!(read(newer.as_bytes()).unwrap_err().to_string().contains("format 3"));
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = folder("lock");
        let path = folder.join("model.checkpoint");
        let first = CheckpointFile::take(&path).unwrap();
        assert!(CheckpointFile::take(&path).unwrap_err().to_string().contains("another process"));
        drop(first);
        assert!(CheckpointFile::take(&path).is_ok());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_stays_beside_a_checkpoint_and_nowhere_else() {
        let folder = folder("lock_left");
        let (path, lock) = (folder.join("model.checkpoint"), folder.join("model.checkpoint.lock"));
        let held = CheckpointFile::take(&path).unwrap();
        assert!(lock.exists());
        drop(held);
        assert!(!lock.exists(), "nothing was begun");
        let held = CheckpointFile::take(&path).unwrap();
        std::fs::write(&path, "a checkpoint").unwrap();
        drop(held);
        assert!(lock.exists(), "it goes on later");
        // One that was removed by hand is another's by then.
        let held = CheckpointFile::take(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&lock).unwrap();
        let other = CheckpointFile::take(&path).unwrap();
        drop(held);
        assert!(lock.exists());
        drop(other);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
