//! What is in the files, as one short text: so that a release can be found again, and changed data be noticed.

use super::files::{shown, unreadable};
use crate::error::QueryError;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

/// Hashes of files that were read before, kept by whoever has a place for them.
///
/// They are a saving of time and nothing else: a file is known by its path, its size, and a stamp of what its folder says of it.
pub trait FileHashes {
    /// The hash of a file, if it was read when it had this size and stamp.
    fn recall(&self, path: &str, size: u64, stamp: i64) -> Option<String>;
    /// Keeps the hash of a file.
    fn remember(&mut self, path: &str, size: u64, stamp: i64, hash: &str);
}

/// Remembers nothing: every file is read every time.
#[cfg(test)]
pub(crate) struct NoHashes;

#[cfg(test)]
impl FileHashes for NoHashes {
    fn recall(&self, _: &str, _: u64, _: i64) -> Option<String> {
        None
    }

    fn remember(&mut self, _: &str, _: u64, _: i64, _: &str) {}
}

/// A file as far as its folder tells.
///
/// The time of change alone is no sign: whoever writes a file can set it back. The system's own time of the last change to a file or its description
/// cannot be set, and another file that takes the place of one has another number; where the system has them, both are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    /// A hash of all times and numbers, as long as what is kept of it.
    marks: i64,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let about = std::fs::metadata(path)?;
        let modified_ns = match about.modified()?.duration_since(UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
        };
        let mut marks = Hasher::new();
        marks.update(b"whit stamp 2\n");
        marks.update(&modified_ns.to_le_bytes());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            marks.update(&about.ctime().to_le_bytes());
            marks.update(&about.ctime_nsec().to_le_bytes());
            marks.update(&about.dev().to_le_bytes());
            marks.update(&about.ino().to_le_bytes());
        }
        let mut first = [0; 8];
        first.copy_from_slice(&marks.finalize().as_bytes()[..8]);
        Ok(Self { size: about.len(), marks: i64::from_le_bytes(first) })
    }
}

/// The files of data sets as they were when their content was fingerprinted.
///
/// A fingerprint is taken before a charge and rows are read after it, so that another file may have come in between. What was read of it is neither released nor
/// stored under the name of the first: whoever has read rows [checks](Self::check) before anything leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps {
    files: Vec<(PathBuf, Stamp)>,
}

impl Stamps {
    pub(super) fn push(&mut self, path: &Path, stamp: Stamp) {
        self.files.push((path.to_owned(), stamp));
    }

    /// Takes those of another data set too.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.files.append(&mut others.files);
    }

    /// Refuses where a file is not the one that it was. That is said to whoever asked: it depends on when files are written, and on nothing that is in them.
    pub fn check(&self) -> Result<(), QueryError> {
        let changed = self.files.iter().find(|(path, stamp)| Stamp::of(path).ok() != Some(*stamp));
        changed.map_or(Ok(()), |(path, _)| Err(changed_meanwhile(&path.to_string_lossy())))
    }
}

/// A file that is written while somebody reads it.
fn changed_meanwhile(name: &str) -> QueryError {
    QueryError::asked(
        format!("`{}` changed while it was read, and nothing of it was released or stored", shown(name)),
        "wait until whoever writes it is done, and ask again",
    )
}

/// BLAKE3 of one file, from memory or by reading it with up to `threads` threads, and what the file was then.
pub(super) fn file(path: &Path, threads: usize, hashes: &mut dyn FileHashes) -> Result<(String, Stamp), QueryError> {
    let name = path.to_string_lossy();
    let wrong = |error: io::Error| unreadable(&name, &error);
    let before = Stamp::of(path).map_err(wrong)?;
    if let Some(hash) = hashes.recall(&name, before.size, before.marks) {
        return Ok((hash, before));
    }
    let hash = hash_of(path, before.size, SEGMENT, threads).map_err(wrong)?.to_hex().to_string();
    if Stamp::of(path).map_err(wrong)? != before {
        return Err(changed_meanwhile(&name));
    }
    hashes.remember(&name, before.size, before.marks, &hash);
    Ok((hash, before))
}

/// Whether a file is remembered as it is now.
pub(super) fn is_known(path: &Path, hashes: &dyn FileHashes) -> bool {
    let stamp = Stamp::of(path).ok();
    stamp.is_some_and(|stamp| hashes.recall(&path.to_string_lossy(), stamp.size, stamp.marks).is_some())
}

/// How much one thread hashes at a time: a power of two of BLAKE3's chunks, so that each is a subtree.
const SEGMENT: u64 = 1 << 25;
/// How much is read at a time.
const BUFFER: usize = 1 << 20;

fn hash_of(path: &Path, size: u64, segment: u64, threads: usize) -> io::Result<Hash> {
    let count = size.div_ceil(segment) as usize;
    if count < 2 || threads < 2 {
        let mut hasher = Hasher::new();
        feed(&mut hasher, path, 0, size)?;
        return Ok(hasher.finalize());
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<ChainingValue>>> = Mutex::new(vec![None; count]);
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let start = number as u64 * segment;
            let mut hasher = Hasher::new();
            hasher.set_input_offset(start);
            feed(&mut hasher, path, start, segment.min(size - start))?;
            let value = hasher.finalize_non_root();
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[number] = Some(value);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread that hashed it stopped")))
        })
    })?;
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let values: Option<Vec<ChainingValue>> = done.into_iter().collect();
    let values = values.ok_or_else(|| io::Error::other("a part of it was not hashed"))?;
    let left = (left_subtree_len(size) / segment) as usize;
    let (left, right) = (subtree(&values[..left], segment), subtree(&values[left..], segment));
    Ok(merge_subtrees_root(&left, &right, Mode::Hash))
}

/// The value of consecutive segments, all full but perhaps the last. Where the tree divides depends on whether there is more than
/// a number of chunks, so a last segment that is not full counts like a full one.
fn subtree(values: &[ChainingValue], segment: u64) -> ChainingValue {
    if let [one] = values {
        return *one;
    }
    let left = (left_subtree_len(values.len() as u64 * segment) / segment) as usize;
    merge_subtrees_non_root(&subtree(&values[..left], segment), &subtree(&values[left..], segment), Mode::Hash)
}

/// Feeds `length` bytes from `start` on, exactly.
fn feed(hasher: &mut Hasher, path: &Path, start: u64, length: u64) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut buffer = vec![0; BUFFER.min(length as usize)];
    let mut left = length;
    while left > 0 {
        let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match file.read(&mut buffer[..want]) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read")),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                left -= read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;
    use std::collections::BTreeMap;

    /// A memory that counts how often it is asked and given.
    #[derive(Default)]
    struct Remembers {
        known: BTreeMap<(String, u64, i64), String>,
        given: usize,
    }

    impl FileHashes for Remembers {
        fn recall(&self, path: &str, size: u64, stamp: i64) -> Option<String> {
            self.known.get(&(path.to_owned(), size, stamp)).cloned()
        }

        fn remember(&mut self, path: &str, size: u64, stamp: i64, hash: &str) {
            self.given += 1;
            self.known.insert((path.to_owned(), size, stamp), hash.to_owned());
        }
    }

    /// Every number of segments up to 17, with a full and a short last one, against the plain hash.
    #[test]
    fn hashing_in_parts_is_hashing() {
        let scratch = Scratch::new("hash_in_parts");
        let segment = 4096;
        let bytes: Vec<u8> = (0..17 * segment + 5).map(|i: u64| (i * 31 % 251) as u8).collect();
        let lengths = (0..=17).flat_map(|n: u64| [n * segment, n * segment + 1, n * segment + 2000]);
        for length in lengths.filter(|&length| length <= bytes.len() as u64) {
            let content = &bytes[..length as usize];
            let path = scratch.write("data", content);
            for threads in [1, 3] {
                let found = hash_of(&path, length, segment, threads).unwrap();
                assert_eq!(found, blake3::hash(content), "{length} bytes, {threads} threads");
            }
        }
    }

    #[test]
    fn a_file_that_did_not_change_is_read_once() {
        let scratch = Scratch::new("hash_once");
        let path = scratch.write("data", "one");
        let mut memory = Remembers::default();
        let (first, _) = file(&path, 2, &mut memory).unwrap();
        assert_eq!(first, blake3::hash(b"one").to_hex().to_string());
        assert_eq!((file(&path, 2, &mut memory).unwrap().0, memory.given), (first.clone(), 1));
        scratch.write("data", "three");
        assert_ne!(file(&path, 2, &mut memory).unwrap().0, first);
        assert_eq!(memory.given, 2);
        assert!(file(&scratch.path().join("gone"), 2, &mut memory).unwrap_err().sentence.contains("cannot be read"));
    }

    /// Writes another content of the same length, and sets the time of change back to what it was.
    #[cfg(unix)]
    fn write_at_the_same_time(path: &Path, content: &str) {
        let about = std::fs::metadata(path).unwrap();
        assert_eq!(about.len(), content.len() as u64);
        // The system's clock goes in steps, and two changes within one have one time.
        std::thread::sleep(std::time::Duration::from_millis(30));
        std::fs::write(path, content).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(about.modified().unwrap()).unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().modified().unwrap(), about.modified().unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_the_same_size_and_time_is_not_taken_for_the_same() {
        let scratch = Scratch::new("hash_same_time");
        let path = scratch.write("data", "one");
        let mut memory = Remembers::default();
        let (first, _) = file(&path, 2, &mut memory).unwrap();
        write_at_the_same_time(&path, "two");
        assert!(!is_known(&path, &memory));
        assert_eq!(file(&path, 2, &mut memory).unwrap().0, blake3::hash(b"two").to_hex().to_string());
        // Nor is another file that takes its place, with all its times.
        let other = scratch.write("other", "one");
        let about = std::fs::metadata(&path).unwrap();
        File::options().write(true).open(&other).unwrap().set_modified(about.modified().unwrap()).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(file(&path, 2, &mut memory).unwrap().0, first);
        assert_eq!(memory.given, 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_changes_after_its_fingerprint_is_named() {
        let scratch = Scratch::new("hash_changed");
        let paths = [scratch.write("kept", "one"), scratch.write("swapped", "two")];
        let mut stamps = Stamps::default();
        for path in &paths {
            let (_, stamp) = file(path, 1, &mut NoHashes).unwrap();
            stamps.push(path, stamp);
        }
        assert_eq!(stamps.check(), Ok(()));
        write_at_the_same_time(&paths[1], "new");
        let error = stamps.check().unwrap_err();
        assert!(error.sentence.contains("swapped` changed while it was read"), "{error:?}");
        std::fs::remove_file(&paths[1]).unwrap();
        assert!(stamps.check().is_err(), "one that is gone is not the same");
        assert_eq!(Stamps::default().check(), Ok(()));
    }
}
