//! The rows of a run, read when something that is paid for needs them, and not before.

use super::rows::{self, Read};
use super::spec::Spec;
use crate::Error;
use crate::error::ErrorKind;
use std::cell::RefCell;
use whit_core::release::Reservation;
use whit_learn::model::Network;
use whit_learn::train::Learner;
use whit_learn::{Keep, LearnError, Plan};
use whit_query::Tables;
use whit_query::source::Stamps;

/// A learner that stands at its start, of rows that were read.
pub(crate) type Starting<'a> = dyn Fn(Read) -> Result<Learner<Network>, Error> + 'a;

/// Makes a learner of the rows the first time that somebody asks. All who ask are mechanisms, which run after their charge is reserved.
pub(crate) struct Reader<'a> {
    spec: &'a Spec,
    tables: &'a Tables,
    /// What is promised for the steps, and where all noise comes from.
    pub(crate) plan: &'a Plan,
    start: &'a Starting<'a>,
    keep: Keep,
    /// What the files were when the question was fingerprinted.
    stamps: Stamps,
    learner: RefCell<Option<Learner<Network>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        (spec, tables): (&'a Spec, &'a Tables),
        plan: &'a Plan,
        start: &'a Starting<'a>,
        (keep, stamps): (Keep, Stamps),
    ) -> Self {
        Self { spec, tables, plan, start, keep, stamps, learner: RefCell::new(None) }
    }

    /// Takes the learner; reads the rows where none is there, for what was reserved.
    pub(crate) fn take(&self, _: &Reservation) -> Result<Learner<Network>, LearnError> {
        if let Some(learner) = self.learner.take() {
            return Ok(learner);
        }
        self.read().map_err(|error| match (error.kind, &error.hint) {
            (ErrorKind::Asked, Some(hint)) => LearnError::file(error.to_string(), hint),
            _ => LearnError::file(error.words(), "nothing of the rows was released"),
        })
    }

    fn read(&self) -> Result<Learner<Network>, Error> {
        let read = rows::read(self.spec, self.tables, self.keep.clone())?;
        // Rows of other files than those of the fingerprint would be learned from in their name: no step is taken then.
        self.stamps.check()?;
        (self.start)(read)
    }

    /// Gives it back, for whoever asks next.
    pub(crate) fn put(&self, learner: Learner<Network>) {
        self.learner.replace(Some(learner));
    }

    /// Looks at the learner.
    pub(crate) fn with<T>(
        &self,
        reservation: &Reservation,
        look: impl FnOnce(&Learner<Network>) -> Result<T, LearnError>,
    ) -> Result<T, LearnError> {
        let learner = self.take(reservation)?;
        let seen = look(&learner);
        self.put(learner);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::prepare;
    use std::fmt::Write as _;
    use whit_account::ledger::Books;
    use whit_query::source::Tuning;

    const DECLARED: &str = "[dataset.visits]\nsource = 'visits.csv'\nunit.protect = 'event'\n\
        columns.x = 'float'\ncolumns.y = 'int'\nbudget.event = { epsilon = 3.0, delta = 1e-6 }\n";
    const TRAINING: &str = "dataset = 'visits'\nfeatures = ['x']\ntarget = 'y'\nclasses = 2\n\
        [privacy]\nnoise = 5.0\nclip = 1.0\nbatch = 10\nunits = 100\nsteps = 3\n\
        [optimiser]\nsize = 1.0\n[output]\nmodel = 'model.safetensors'\n";

    fn rows(first: u8) -> String {
        let mut rows = format!("x,y\n{first},0\n");
        for i in 0..100 {
            let _ = writeln!(rows, "0.{i:02},{}", i % 2); // a text takes everything
        }
        rows
    }

    #[test]
    fn rows_of_a_file_that_changed_after_its_fingerprint_are_not_learned_from() {
        let folder = std::env::temp_dir().join(format!("whit-reader-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        for (name, text) in [("visits.csv", rows(1).as_str()), ("whit.toml", DECLARED), ("train.toml", TRAINING)] {
            std::fs::write(at(name), text).unwrap();
        }
        let spec = Spec::open(&at("train.toml")).unwrap();
        let tables = Tables::open(&at("whit.toml"), Tuning::default()).unwrap();
        let keep = Keep { memory: 1 << 20, folder: folder.clone() };
        let planned = prepare::plan(&spec, &tables, &keep).unwrap();
        let mut books = Books::open(&at("whit.ledger")).unwrap();
        let (_, stamps) = tables.fingerprint_for_learning("visits", &mut books).unwrap();
        let start = |read| planned.learner(read);
        let reader = || Reader::new((&spec, &tables), planned.steps(), &start, (keep.clone(), stamps.clone()));
        assert!(reader().take(&Reservation::new(0)).is_ok());
        std::thread::sleep(std::time::Duration::from_millis(30)); // the system's clock goes in steps
        std::fs::write(at("visits.csv"), rows(2)).unwrap();
        let error = reader().take(&Reservation::new(0)).err().unwrap();
        assert!(error.to_string().contains("visits.csv` changed while it was read"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
