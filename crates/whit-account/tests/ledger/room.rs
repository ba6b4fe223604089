//! A room with a ledger in it: what is done to its files, and everything that it says after that.

use crate::{budgets, charge, folder, question};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_account::ledger::{Books, LedgerError, Opening, Register as _};
use whit_core::Ledger;

pub(crate) const PAID: f64 = 1.0 / 64.0;

/// A room with a ledger, and a folder far away in which its head is kept too.
pub(crate) struct Room {
    pub(crate) folder: PathBuf,
    pub(crate) opening: Opening,
}

/// All files of a ledger, with what is in them.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Room {
    pub(crate) fn new(name: &str) -> Self {
        let folder = folder(name);
        let opening = Opening { witness: Some(folder.join("away")), ..Opening::default() };
        std::fs::create_dir_all(folder.join("here")).unwrap();
        Self { folder, opening }
    }

    /// The same without a head far away.
    pub(crate) fn near(name: &str) -> Self {
        Self { opening: Opening::default(), ..Self::new(name) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("here/whit.ledger")
    }

    pub(crate) fn open(&self) -> Result<Books, LedgerError> {
        Books::open_as(&self.path(), &self.opening)
    }

    /// Asks so many questions more, and gets their answers.
    pub(crate) fn ask(&self, questions: std::ops::Range<u32>) {
        let mut books = self.open().unwrap();
        let budget = budgets(1.0);
        for k in questions {
            let mut booking = books.booking(question(&format!("{k}")), &budget);
            let reservation = booking.reserve(&charge(PAID)).unwrap();
            booking.commit(reservation, format!("answer {k}").as_bytes()).unwrap();
        }
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        let listed = ["here", "away"].into_iter().filter_map(|folder| std::fs::read_dir(self.folder.join(folder)).ok());
        let files = listed.flatten().map(|file| file.unwrap().path());
        // A lock holds nothing, and stays.
        files.filter(|file| file.extension().is_none_or(|ending| ending != "lock")).collect()
    }

    /// The same ledger, or what stands in for it, in another folder; the folder far away is the same.
    pub(crate) fn elsewhere(&self, name: &str) -> Self {
        Self { folder: folder(name), opening: self.opening.clone() }.with_folder()
    }

    pub(crate) fn with_folder(self) -> Self {
        std::fs::create_dir_all(self.folder.join("here")).unwrap();
        self
    }

    pub(crate) fn head(&self) -> PathBuf {
        self.folder.join("here/whit.ledger.head")
    }

    /// Heads and locks far away.
    pub(crate) fn away(&self, ending: &str) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.opening.witness.as_ref().unwrap()).unwrap();
        let files = listed.map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|found| found == ending)).collect()
    }

    /// Copies the ledger and its head.
    pub(crate) fn copy_to(&self, other: &Self) {
        std::fs::copy(self.path(), other.path()).unwrap();
        std::fs::copy(self.head(), other.head()).unwrap();
    }

    /// Removes the ledger and everything in its folder.
    pub(crate) fn clear(&self) {
        for file in std::fs::read_dir(self.folder.join("here")).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    pub(crate) fn files(&self) -> Files {
        self.names().into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
    }

    /// Makes the files exactly these.
    pub(crate) fn put(&self, files: &Files) {
        for file in self.names().iter().filter(|file| !files.contains_key(*file)) {
            std::fs::remove_file(file).unwrap();
        }
        for (file, bytes) in files {
            std::fs::write(file, bytes).unwrap();
        }
    }

    /// Everything that the ledger says when it is opened, asked for each answer, verified, and charged once more; or the first error, in words.
    pub(crate) fn says(&self, questions: u32) -> Result<Vec<String>, String> {
        let mut books = self.open().map_err(|error| error.to_string())?;
        let mut said = Vec::new();
        for k in 0..questions {
            let stored = books.stored(&question(&format!("{k}"))).map_err(|error| error.to_string())?;
            said.push(String::from_utf8(stored.ok_or(format!("answer {k} is forgotten"))?.value).unwrap());
        }
        assert!(books.recall_file("a.csv", 1, 2).map_err(|error| error.to_string())?.is_none_or(|hash| hash == "b"));
        let verified = books.verify().map_err(|fault| format!("{}: {fault}", self.path().display()))?;
        said.push(format!("{} events, {:?}", verified.events, verified.accounts));
        let budget = budgets(1.0);
        let mut booking = books.booking(question("one more"), &budget);
        let left = booking.reserve(&charge(1.0)).unwrap_err().left;
        if let Some(failure) = booking.failure() {
            return Err(failure.sentence);
        }
        said.push(left);
        let mut text = Vec::new();
        books.export(&mut text).map_err(|error| error.to_string())?;
        said.push(String::from_utf8(text).unwrap());
        Ok(said)
    }
}

/// Whether a file of this name is a head.
pub(crate) fn is_head(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "head")
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}
