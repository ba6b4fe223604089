//! Where a run stands, on disk: so that what is killed goes on under the reservation that it has, and pays no second time.
//!
//! A checkpoint is written before anything is reserved, and then every so many steps, each time whole: to a file beside it, which is synchronised
//! and renamed. So there is always one, and it is always on the way that the run has gone. Steps after the last one were seen by nobody, and are
//! taken anew with noise of their own.

use crate::error::LearnError;
use crate::optimise::{Average, Optimiser};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The version of the format.
const VERSION: u32 = 1;
/// How every checkpoint begins.
const HEAD: &str = "whit checkpoint ";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The version of the format.
    pub version: u32,
    /// The hash of what the run means: configuration, plan and data.
    pub run: String,
    /// A name that no other run has. The ledger's entry has it too, so that no other run goes on under it.
    pub name: String,
    /// The entry in the ledger; nothing before it was reserved.
    pub entry: Option<u64>,
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
    /// Of a run of this hash and name, with the state of its learner.
    pub fn new(run: &str, name: &str, entry: Option<u64>, state: (&[f32], &Optimiser, Option<&Average>, u64)) -> Self {
        let (theta, optimiser, average, taken) = state;
        Self {
            version: VERSION,
            run: run.to_owned(),
            name: name.to_owned(),
            entry,
            taken,
            theta: theta.iter().copied().map(f64::from).collect(),
            optimiser: optimiser.clone(),
            average: average.cloned(),
        }
    }

    /// The whole file: a line with the hash of the rest, and the rest in JSON.
    fn to_bytes(&self) -> Result<Vec<u8>, LearnError> {
        let body =
            serde_json::to_vec(self).map_err(|why| LearnError::File(format!("no checkpoint can be written: {why}")))?;
        let mut bytes = format!("{HEAD}{VERSION} {}\n", blake3::hash(&body).to_hex()).into_bytes();
        bytes.extend(body);
        Ok(bytes)
    }

    fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, LearnError> {
        let wrong = |what: String| LearnError::File(format!("`{}` {what}", path.display()));
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
        serde_json::from_slice(body).map_err(|why| wrong(format!("cannot be read: {why}")))
    }
}

/// The place of one run's checkpoints, held by one process at a time.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    _lock: File,
}

impl Place {
    /// Takes the place; refused while another process has it. The lock goes with the process, however that ends.
    pub fn take(path: &Path) -> Result<Self, LearnError> {
        let beside = with_ending(path, "lock");
        let failed = |why: &io::Error| LearnError::File(format!("`{}` cannot be written: {why}", beside.display()));
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&beside);
        let lock = lock.map_err(|why| failed(&why))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(LearnError::File(format!("another process is training with `{}`", path.display())))
            }
            Err(std::fs::TryLockError::Error(why)) => Err(failed(&why)),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint that is there, if it is one of this run.
    pub fn find(&self, run: &str) -> Result<Option<Checkpoint>, LearnError> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(LearnError::File(format!("`{}` cannot be read: {why}", self.path.display()))),
        };
        let found = Checkpoint::of_bytes(&bytes, &self.path)?;
        if found.run != run {
            let what = "is the checkpoint of another run: the training file, the declaration or the data is another";
            return Err(LearnError::File(format!("`{}` {what}", self.path.display())));
        }
        Ok(Some(found))
    }

    /// Puts a checkpoint in the place of the one before, at once and for good.
    pub fn keep(&self, checkpoint: &Checkpoint) -> Result<(), LearnError> {
        write_at_once(&self.path, &checkpoint.to_bytes()?)
            .map_err(|why| LearnError::File(format!("`{}` cannot be written: {why}", self.path.display())))
    }

    /// Removes the checkpoint of a run that is over.
    pub fn clear(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        }
    }
}

/// The path with one more ending.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes a file so that, whatever happens, there is the old one or the new one.
pub fn write_at_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let beside = with_ending(path, "part");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    // The name is durable only when the folder is.
    File::open(folder)?.sync_all()
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
        Checkpoint::new("run", "name", Some(7), (&theta, &optimiser, Some(&average), 1))
    }

    #[test]
    fn a_checkpoint_comes_back_bit_by_bit() {
        let folder = folder("back");
        let place = Place::take(&folder.join("model.checkpoint")).unwrap();
        assert_eq!(place.find("run").unwrap(), None);
        place.keep(&sample()).unwrap();
        assert_eq!(place.find("run").unwrap(), Some(sample()));
        assert!(place.find("another").unwrap_err().to_string().contains("another run"));
        place.clear().unwrap();
        place.clear().unwrap();
        assert_eq!(place.find("run").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_cut_or_changed_is_refused() {
        let bytes = sample().to_bytes().unwrap();
        let read = |bytes: &[u8]| Checkpoint::of_bytes(bytes, Path::new("c"));
        assert_eq!(read(&bytes).unwrap(), sample());
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(read(&changed).unwrap_err().to_string().contains("damaged"));
        let newer = String::from_utf8(bytes).unwrap().replacen("checkpoint 1", "checkpoint 2", 1);
        assert!(read(newer.as_bytes()).unwrap_err().to_string().contains("format 2"));
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = folder("lock");
        let path = folder.join("model.checkpoint");
        let first = Place::take(&path).unwrap();
        assert!(Place::take(&path).unwrap_err().to_string().contains("another process"));
        drop(first);
        assert!(Place::take(&path).is_ok());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
