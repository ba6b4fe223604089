//! What comes before a session: a declaration is drafted from files, read, and checked against them.

use crate::Error;
use crate::session::{Options, Session};
use std::path::{Component, Path, PathBuf};
use whit_core::declare::{Compression, Declaration, table_name};
use whit_query::source::owner::Owner;
use whit_query::source::{DatasetView, Inspection, Tuning, Warehouse, inspect, runtime};

/// A declaration that was read from its file. No file that it names was looked at.
#[derive(Debug, Clone)]
pub struct Declared {
    file: PathBuf,
    declaration: Declaration,
}

impl Declared {
    /// Reads a `whit.toml`, or says what is wrong with it and in which line.
    pub fn open(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::asked(
                format!("`{}` cannot be read: {error}", file.display()),
                "name the declaration, or let `DeclarationDraft::of` draft one from your data",
            )
        })?;
        let declaration = Declaration::parse(&text)
            .map_err(|error| Error::asked(format!("{}, {error}", file.display()), error.hint()))?;
        Ok(Self { file: file.to_owned(), declaration })
    }

    /// What it says.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Finds every file that it names, and says what it amounts to, data set by data set. No row of a private table is read, and no ledger is looked for.
    pub fn check(&self, tuning: Tuning) -> Result<Vec<DatasetView>, Error> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let opening = Warehouse::open(self.declaration.clone(), folder, tuning);
        Ok(runtime(tuning.threads)?.block_on(opening)?.survey()?)
    }

    /// Opens what it declares.
    pub fn session(&self, options: Options) -> Result<Session, Error> {
        Session::open(&self.file, options)
    }
}

/// The draft of a declaration, for the owner of the data.
#[derive(Debug, Clone)]
pub struct DeclarationDraft {
    /// What the data set is called.
    pub name: String,
    /// What the files say of themselves.
    pub seen: Inspection,
}

impl DeclarationDraft {
    /// Looks at a file, a glob or a folder. The data set is called so, or else like the file or folder. Files without types have their values looked at
    /// to draft some; nothing else of a value is used.
    ///
    /// All of this is the owner's: there is no declaration yet, and so nobody else who may ask.
    pub fn of(path: &Path, name: Option<&str>) -> Result<Self, Error> {
        let name = named(path, name)?;
        let seen = runtime(None)?.block_on(inspect(&Owner::who_may_see_every_row(), path))?;
        Ok(Self { name, seen })
    }

    /// The text of a `whit.toml` in which the data is called `source`.
    pub fn text(&self, source: &str) -> String {
        self.seen.draft(&self.name, source)
    }
}

/// What a data set is called.
fn named(path: &Path, name: Option<&str>) -> Result<String, Error> {
    if let Some(name) = name {
        let plain = table_name(name);
        if plain == name {
            return Ok(plain);
        }
        return Err(Error::asked(
            format!(
                "`draft.name` is {name:?}, but it must be lower-case letters, digits and underscores, since SQL asks for it so"
            ),
            format!("take `draft.name = {plain}`"),
        ));
    }
    // The last part of the path that is no pattern, without its extension.
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    let last = parts.rfind(|part| !part.contains(['*', '?', '['])).unwrap_or_else(|| "data".to_owned());
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let packed = Path::new(&last).extension().and_then(|ending| Compression::of_extension(ending.to_str()?));
    let last = packed.and_then(|_| stem(&last)).unwrap_or(last);
    Ok(table_name(&stem(&last).unwrap_or(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_data_set_is_called_like_its_file_unless_somebody_names_it() {
        for (path, name) in [
            ("data/Visits 2024.csv", "visits_2024"),
            ("data/*.parquet", "data"),
            ("*.csv", "data"),
            ("visits.csv.gz", "visits"),
        ] {
            assert_eq!(named(Path::new(path), None).unwrap(), name);
        }
        assert_eq!(named(Path::new("visits.csv"), Some("pages")).unwrap(), "pages");
        let error = named(Path::new("visits.csv"), Some("Two words")).unwrap_err();
        assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::Asked, Some("take `draft.name = two_words`")));
    }
}
