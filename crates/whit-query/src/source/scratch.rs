//! Files for tests: a folder of one test's own, gone when the test is over.

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;
use std::path::{Path, PathBuf};

pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder. The name must be the test's own.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("whit-query-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders that lead to it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes a Parquet file of named columns.
    pub(crate) fn parquet(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        self.write(name, bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compares with what a golden file holds. `WHIT_GOLDEN=write` writes it anew.
pub(crate) fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("WHIT_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (kept, found) in kept.lines().zip(found.lines()) {
        assert_eq!(kept, found, "{name}");
    }
    assert_eq!(kept.lines().count(), found.lines().count(), "{name}");
}
