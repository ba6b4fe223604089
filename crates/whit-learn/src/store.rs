//! Rows of numbers that may outgrow memory: what does not fit lies in a file without a name.
//!
//! A store is as private as the rows in it. Its file is made so that no other process can open it (it has no name, and mode 0600) and so that it is gone when the
//! process is, however that ends. What was written to the disk is not wiped: see SECURITY.md.

use rayon::prelude::*;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why rows were not kept, or not read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Numbers that do not fill rows.
    #[error("{numbers} numbers do not make rows of {width}")]
    Ragged {
        /// How many there are.
        numbers: usize,
        /// How many a row has.
        width: usize,
    },
    /// NaN or infinity, perhaps after scaling.
    #[error("a feature is missing or infinite")]
    NotFinite,
    /// Bytes after floats, or floats after bytes.
    #[error("rows of bytes and rows of floats do not go into one store")]
    Mixed,
    /// A row that is not there.
    #[error("row {row} was asked for, and there are {rows}")]
    Absent {
        /// Its number, from 0.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// No file for what does not fit into memory.
    #[error("no file for rows that do not fit into memory can be made in `{}`: {why}", folder.display())]
    Made {
        /// Where it was to be.
        folder: PathBuf,
        /// What the operating system says.
        why: io::Error,
    },
    /// The file takes no more.
    #[error("rows do not fit into memory, and the file for them in `{}` takes no more: {why}", folder.display())]
    Written {
        /// Where it is.
        folder: PathBuf,
        /// What the operating system says.
        why: io::Error,
    },
    /// The file does not give back what was written.
    #[error("rows that did not fit into memory cannot be read back: {0}")]
    Read(io::Error),
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Ragged { .. } | Self::Mixed | Self::Absent { .. } => "give every row the same columns",
            Self::NotFinite => "leave such rows out, or scale by a smaller number",
            Self::Made { .. } | Self::Written { .. } => {
                "make room there, let TMPDIR name a folder that has it, or let more lie in memory (`request.memory`)"
            }
            Self::Read(_) => "check the disk; nothing of this step was released",
        }
    }

    /// Whether the disk is at fault, and not what was asked for.
    pub fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::Made { .. } | Self::Written { .. } | Self::Read(_))
    }
}

/// How much of a store may lie in memory, and where the rest goes. Changes no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// So many bytes of rows lie in memory.
    pub memory: u64,
    /// The folder for what goes beyond, in a file without a name. Should not itself be in memory, as `/tmp` is on some systems.
    pub folder: PathBuf,
}

impl Default for Keep {
    /// 1 GiB, and the system's folder for temporary files.
    fn default() -> Self {
        Self { memory: 1 << 30, folder: std::env::temp_dir() }
    }
}

impl Keep {
    /// Whether there is a place for what goes beyond memory. Asked before a row is read: that there is none must not depend on how many there are.
    pub fn check(&self) -> Result<(), StoreError> {
        if !cfg!(unix) {
            return Ok(()); // no such files, and so no place for more rows than memory holds
        }
        nameless(&self.folder).map(drop).map_err(|why| StoreError::Made { folder: self.folder.clone(), why })
    }
}

/// Rows that lie in memory, in blocks of equally many, save the last.
enum Held {
    Bytes(Vec<Vec<u8>>),
    Floats(Vec<Vec<f32>>),
}

impl Held {
    /// How many bytes a number takes.
    fn size(&self) -> usize {
        match self {
            Self::Bytes(_) => 1,
            Self::Floats(_) => 4,
        }
    }
}

/// So many bytes make a block, or one row where it is longer; so many are read at once from a file.
const BLOCK: usize = 1 << 20;

fn rows_of_a_block(row_bytes: usize) -> usize {
    (BLOCK / row_bytes.max(1)).max(1)
}

/// Adds numbers to blocks of `each`.
fn fill<T: Copy>(blocks: &mut Vec<Vec<T>>, each: usize, mut values: &[T]) {
    while !values.is_empty() {
        if blocks.last().is_none_or(|last| last.len() == each) {
            blocks.push(Vec::new());
        }
        let Some(last) = blocks.last_mut() else { return };
        let (now, later) = values.split_at(values.len().min(each - last.len()));
        last.extend_from_slice(now);
        values = later;
    }
}

/// Takes rows as they come, and keeps them.
///
/// ```
/// # use whit_learn::store::{Builder, Keep};
/// let mut builder = Builder::new(2, Keep { memory: 16, ..Keep::default() })?.scaled(0.5, 1.0);
/// builder.push_floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// let store = builder.finish(); // two rows in memory, the third in a file
/// assert_eq!(store.pick(&[2, 0])?, [3.0, 3.5, 1.0, 1.5]);
/// # Ok::<(), whit_learn::store::StoreError>(())
/// ```
pub struct Builder {
    width: usize,
    keep: Keep,
    scale: f32,
    offset: f32,
    rows: usize,
    in_memory: usize,
    held: Option<Held>,
    file: Option<File>,
}

impl Builder {
    /// For rows of so many numbers.
    pub fn new(width: usize, keep: Keep) -> Result<Self, StoreError> {
        if width == 0 {
            return Err(StoreError::Ragged { numbers: 0, width });
        }
        Ok(Self { width, keep, scale: 1.0, offset: 0.0, rows: 0, in_memory: 0, held: None, file: None })
    }

    /// Every number becomes `scale · x + offset`, rounded once. Both are public, and said before the first row. Floats are scaled as they come and bytes when
    /// they are picked, which gives the same bits and leaves each as small as it is.
    #[must_use]
    pub fn scaled(self, scale: f32, offset: f32) -> Self {
        Self { scale, offset, ..self }
    }

    /// Further rows, of bytes: each number takes one, and is scaled when it is picked. Where this fails, no row was taken.
    pub fn push_bytes(&mut self, values: &[u8]) -> Result<(), StoreError> {
        let (rows, here) = self.room(values.len(), 1)?;
        // All bytes are between the least and the largest.
        if [0.0, 255_f32].iter().any(|byte| !byte.mul_add(self.scale, self.offset).is_finite()) {
            return Err(StoreError::NotFinite);
        }
        if !matches!(self.held.get_or_insert(Held::Bytes(Vec::new())), Held::Bytes(_)) {
            return Err(StoreError::Mixed);
        }
        let (now, later) = values.split_at(here * self.width);
        self.spill(later.chunks(BLOCK), 1)?;
        if let Some(Held::Bytes(blocks)) = &mut self.held {
            fill(blocks, rows_of_a_block(self.width) * self.width, now);
        }
        (self.rows, self.in_memory) = (self.rows + rows, self.in_memory + here);
        Ok(())
    }

    /// Further rows, of floats. Where this fails, no row was taken.
    pub fn push_floats(&mut self, values: &[f32]) -> Result<(), StoreError> {
        let (rows, here) = self.room(values.len(), 4)?;
        let values = match (self.scale, self.offset) {
            (1.0, 0.0) => Cow::Borrowed(values),
            (scale, offset) => values.iter().map(|value| value.mul_add(scale, offset)).collect(),
        };
        if values.iter().any(|value| !value.is_finite()) {
            return Err(StoreError::NotFinite);
        }
        if !matches!(self.held.get_or_insert(Held::Floats(Vec::new())), Held::Floats(_)) {
            return Err(StoreError::Mixed);
        }
        let (now, later) = values.split_at(here * self.width);
        let bytes = |part: &[f32]| part.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        self.spill(later.chunks(BLOCK / 4).map(bytes), 4)?;
        if let Some(Held::Floats(blocks)) = &mut self.held {
            fill(blocks, rows_of_a_block(4 * self.width) * self.width, now);
        }
        (self.rows, self.in_memory) = (self.rows + rows, self.in_memory + here);
        Ok(())
    }

    /// How many rows so many numbers are, and how many of them go to memory.
    fn room(&self, numbers: usize, size: usize) -> Result<(usize, usize), StoreError> {
        if !numbers.is_multiple_of(self.width) {
            return Err(StoreError::Ragged { numbers, width: self.width });
        }
        let rows = numbers / self.width;
        let most = usize::try_from(self.keep.memory).unwrap_or(usize::MAX) / (self.width * size);
        Ok((rows, rows.min(most.saturating_sub(self.in_memory))))
    }

    /// Writes what goes to the file behind what is there.
    fn spill<B: AsRef<[u8]>>(&mut self, parts: impl Iterator<Item = B>, size: usize) -> Result<(), StoreError> {
        let folder = || self.keep.folder.clone();
        let mut at = (self.rows - self.in_memory) as u64 * (self.width * size) as u64;
        for part in parts {
            let file = match &mut self.file {
                Some(file) => file,
                none => {
                    let made = nameless(&self.keep.folder);
                    none.insert(made.map_err(|why| StoreError::Made { folder: folder(), why })?)
                }
            };
            let part = part.as_ref();
            write_at(file, part, at).map_err(|why| StoreError::Written { folder: folder(), why })?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// How many rows were taken.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows, to be picked from.
    pub fn finish(self) -> Store {
        let held = self.held.unwrap_or(Held::Floats(Vec::new()));
        if let Some(file) = &self.file {
            advise(file, Advice::AtRandom);
        }
        Store {
            width: self.width,
            rows: self.rows,
            in_memory: self.in_memory,
            rows_of_a_block: rows_of_a_block(held.size() * self.width),
            held: Arc::new(held),
            scaled: Arc::new(std::array::from_fn(|byte| (byte as f32).mul_add(self.scale, self.offset))),
            file: self.file.map(Arc::new),
        }
    }
}

/// Rows of equally many numbers, some in memory and the rest in a file. A clone is the same rows.
#[derive(Clone)]
pub struct Store {
    width: usize,
    rows: usize,
    /// So many lie in memory, and those behind them in the file.
    in_memory: usize,
    rows_of_a_block: usize,
    held: Arc<Held>,
    /// What each byte stands for, where rows are bytes.
    scaled: Arc<[f32; 256]>,
    file: Option<Arc<File>>,
}

impl std::fmt::Debug for Store {
    /// Shapes, and no numbers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Store");
        shown.field("width", &self.width).field("rows", &self.rows).field("in_memory", &self.in_memory);
        shown.finish_non_exhaustive()
    }
}

impl Store {
    /// Numbers that are in memory already, and stay there.
    pub fn of(values: Vec<f32>, width: usize) -> Result<Self, StoreError> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(StoreError::Ragged { numbers: values.len(), width });
        }
        if values.iter().any(|value| !value.is_finite()) {
            return Err(StoreError::NotFinite);
        }
        let rows = values.len() / width;
        Ok(Self {
            width,
            rows,
            in_memory: rows,
            rows_of_a_block: rows.max(1),
            held: Arc::new(Held::Floats(vec![values])),
            scaled: Arc::new([0.0; 256]),
            file: None,
        })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many numbers a row has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many bytes of rows lie in memory.
    pub fn memory(&self) -> u64 {
        (self.in_memory * self.row_bytes()) as u64
    }

    fn row_bytes(&self) -> usize {
        self.width * self.held.size()
    }

    /// The numbers of some rows, in this order. No other row is read.
    pub fn pick(&self, rows: &[u32]) -> Result<Vec<f32>, StoreError> {
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= self.rows) {
            return Err(StoreError::Absent { row: row as usize, rows: self.rows });
        }
        let mut picked = vec![0.0; rows.len() * self.width];
        let mut slots: Vec<RowSlot<'_>> =
            rows.iter().map(|&row| row as usize).zip(picked.chunks_exact_mut(self.width)).collect();
        // What lies together in the file is read together.
        slots.sort_unstable_by_key(|(row, _)| *row);
        let share = slots.len().div_ceil(rayon::current_num_threads());
        slots.par_chunks_mut(share.max(rows_of_a_block(16 * self.width))).try_for_each(|slots| self.read(slots))?;
        Ok(picked)
    }

    /// Reads rows to their slots, which are sorted by row.
    fn read(&self, slots: &mut [RowSlot<'_>]) -> Result<(), StoreError> {
        let here = slots.partition_point(|(row, _)| *row < self.in_memory);
        let (here, there) = slots.split_at_mut(here);
        for (row, out) in here {
            let (block, start) = (*row / self.rows_of_a_block, *row % self.rows_of_a_block * self.width);
            let range = start..start + self.width;
            match &*self.held {
                Held::Bytes(blocks) => self.decode(&blocks[block][range], out),
                Held::Floats(blocks) => out.copy_from_slice(&blocks[block][range]),
            }
        }
        let Some(file) = &self.file else { return Ok(()) };
        let bytes = self.row_bytes();
        let at = |row: usize| (row - self.in_memory) as u64 * bytes as u64;
        let is_next = |(row, _): &RowSlot<'_>, (next, _): &RowSlot<'_>| next - row <= 1;
        for run in there.chunk_by(is_next) {
            let (first, last) = (run[0].0, run[run.len() - 1].0);
            advise(file, Advice::Soon { at: at(first), length: ((last - first + 1) * bytes) as u64 });
        }
        let mut read = Vec::new();
        for run in there.chunk_by_mut(is_next) {
            for run in run.chunks_mut(self.rows_of_a_block) {
                let (first, last) = (run[0].0, run[run.len() - 1].0);
                read.resize((last - first + 1) * bytes, 0);
                read_at(file, &mut read, at(first)).map_err(StoreError::Read)?;
                for (row, out) in run {
                    self.decode(&read[(*row - first) * bytes..][..bytes], out);
                }
            }
        }
        Ok(())
    }

    /// Numbers from their bytes.
    fn decode(&self, bytes: &[u8], out: &mut [f32]) {
        match &*self.held {
            Held::Bytes(_) => out.iter_mut().zip(bytes).for_each(|(out, &byte)| *out = self.scaled[usize::from(byte)]),
            Held::Floats(_) => {
                let (floats, _) = bytes.as_chunks::<4>();
                out.iter_mut().zip(floats).for_each(|(out, &float)| *out = f32::from_ne_bytes(float));
            }
        }
    }
}

/// A row, and where its numbers go.
type RowSlot<'a> = (usize, &'a mut [f32]);

/// A file that this process alone can open, and that is gone when no process has it open any more.
#[cfg(unix)]
fn nameless(folder: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // It never has a name, and O_EXCL keeps it from being given one.
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_EXCL);
        match options.open(folder) {
            Ok(file) => return Ok(file),
            // Not every file system can do it.
            Err(why) if matches!(why.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) => {}
            Err(why) => return Err(why),
        }
    }
    unnamed(folder)
}

/// The same with a name for a moment.
#[cfg(unix)]
fn unnamed(folder: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    use whit_noise::{Entropy, Os};
    let path = folder.join(format!(".whit-rows-{:016x}", Os.bits(64)));
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn nameless(_: &Path) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no files without a name"))
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What the system is advised about a file, which it may heed or not.
#[derive(Clone, Copy)]
enum Advice {
    /// Rows are read in no order: it need not read others with them.
    AtRandom,
    /// These bytes are read next: it may fetch them all at once.
    Soon { at: u64, length: u64 },
}

fn advise(file: &File, advice: Advice) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let (at, length, advice) = match advice {
            Advice::AtRandom => (0, 0, libc::POSIX_FADV_RANDOM),
            Advice::Soon { at, length } => (at as i64, length as i64, libc::POSIX_FADV_WILLNEED),
        };
        #[expect(unsafe_code, reason = "a call of the C library")]
        // SAFETY: takes numbers alone, and the descriptor is open.
        unsafe {
            libc::posix_fadvise(file.as_raw_fd(), at, length, advice);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, advice);
}

#[cfg(all(test, unix))]
mod tests;
