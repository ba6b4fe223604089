//! Rows outside of the chain: hashes of source files, to save reading them again, and what data sets were when they were last asked of.
//!
//! Nothing that was charged hangs on them. Each row has a hash of itself under the ledger's secret, so one that was changed is found when it is next used.

use super::error::LedgerError;
use super::sqlite::Books;
use rusqlite::OptionalExtension;

impl Books {
    pub(super) fn last_source(&self, dataset: &str) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT fingerprint, sound FROM sources WHERE dataset = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
        match self.connection.query_row(sql, [dataset], read).optional().map_err(|error| self.explain(&error))? {
            Some((kept, sound)) if self.sound_source(dataset, &kept) == sound => Ok(Some(kept)),
            Some(_) => Err(self.changed_row("sources")),
            None => Ok(None),
        }
    }

    pub(super) fn sound_file(&self, path: &str, size: u64, modified: i64, hash: &str) -> Vec<u8> {
        let fields = [path.as_bytes(), &size.to_le_bytes(), &modified.to_le_bytes(), hash.as_bytes()];
        self.secret.hash("file", &fields).as_bytes().to_vec()
    }

    /// The table of a row outside of the chain that is not as it was written.
    pub(super) fn changed_rows(&self) -> rusqlite::Result<Option<&'static str>> {
        let mut files = self.connection.prepare("SELECT path, size, modified, hash, sound FROM files")?;
        let mut rows = files.query([])?;
        while let Some(row) = rows.next()? {
            let (path, hash): (String, String) = (row.get(0)?, row.get(3)?);
            let (size, modified): (i64, i64) = (row.get(1)?, row.get(2)?);
            if self.sound_file(&path, size as u64, modified, &hash) != row.get::<_, Vec<u8>>(4)? {
                return Ok(Some("files"));
            }
        }
        let mut sources = self.connection.prepare("SELECT dataset, fingerprint, sound FROM sources")?;
        let mut rows = sources.query([])?;
        while let Some(row) = rows.next()? {
            let (dataset, kept): (String, String) = (row.get(0)?, row.get(1)?);
            if self.sound_source(&dataset, &kept) != row.get::<_, Vec<u8>>(2)? {
                return Ok(Some("sources"));
            }
        }
        Ok(None)
    }

    pub(super) fn sound_source(&self, dataset: &str, kept: &str) -> Vec<u8> {
        self.secret.hash("source", &[dataset.as_bytes(), kept.as_bytes()]).as_bytes().to_vec()
    }

    pub(super) fn changed_row(&self, table: &str) -> LedgerError {
        let what = format!("a row of `{table}` was changed after it was written");
        LedgerError::Damaged { path: self.path.clone(), what }
    }
}
