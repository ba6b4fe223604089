//! Copies of objects on this machine, so that they are read like files: as private as the data, for this user alone.

use super::list::Object;
use crate::error::QueryError;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of parts and views are their process's own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The copies of one source.
pub(super) struct ObjectCache {
    folder: PathBuf,
}

impl ObjectCache {
    /// The place for what a source names, which is made if it is not there.
    pub(super) fn of(source: &[u8], variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, QueryError> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let home = || set("HOME").map(|home| home.join(".cache"));
        let root = set("WHIT_CACHE").or_else(|| set("XDG_CACHE_HOME").or_else(home).map(|folder| folder.join("whit")));
        let Some(root) = root.filter(|root| root.is_absolute()) else {
            return Err(QueryError::asked(
                "there is no folder for copies of what is read from S3",
                "name one in WHIT_CACHE: an absolute path, on a disk that others may not read",
            ));
        };
        let folder = root.join("objects").join(blake3::hash(source).to_hex().as_str());
        private_folder(&folder).map_err(|error| no_room(&error))?;
        Ok(Self { folder })
    }

    /// Where the copy of an object lies, or is to lie. Another content has another place.
    pub(super) fn place(&self, object: &Object) -> PathBuf {
        let Object { key, etag, size } = object;
        self.folder.join(blake3::hash(format!("{} {key} {etag} {size}", key.len()).as_bytes()).to_hex().as_str())
    }

    /// A file that nobody else writes.
    pub(super) fn part(&self) -> io::Result<PathBuf> {
        let path = self.own("part");
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path)?;
        Ok(path)
    }

    /// A folder that is gone when it is dropped.
    pub(super) fn view(&self) -> io::Result<BucketView> {
        let path = self.own("view");
        private_folder(&path)?;
        Ok(BucketView(path.canonicalize()?))
    }

    fn own(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{kind}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Takes away copies of what the source has no longer.
    pub(super) fn keep(&self, wanted: &BTreeSet<PathBuf>) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let copy = path.file_name().is_some_and(|name| name.len() == 64);
            if copy && !wanted.contains(&path) {
                // What cannot be taken away now is taken away later.
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// A folder as a bucket would be one, for a while.
pub(super) struct BucketView(PathBuf);

impl BucketView {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for BucketView {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is said where copies cannot be written. The system's words name no object.
pub(super) fn no_room(error: &io::Error) -> QueryError {
    QueryError::asked(
        format!("copies of what is read from S3 cannot be written: {}", error.kind()),
        "see that the folder in WHIT_CACHE (~/.cache/whit without it) may be written and has room",
    )
}

fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}
