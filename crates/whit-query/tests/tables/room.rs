//! A folder of a test's own, with tables, a declaration and a ledger.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use whit_account::ledger::Books;
use whit_core::declare::Declaration;
use whit_query::plan::Asking;
use whit_query::source::Tuning;
use whit_query::{Answer, QueryError, Tables};

pub(crate) struct Room {
    folder: PathBuf,
}

impl Room {
    /// An empty folder.
    pub(crate) fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    pub(crate) fn tables(&self, declaration: &str) -> Tables {
        let declaration = Declaration::parse(declaration).unwrap_or_else(|error| panic!("{error}: {}", error.hint()));
        Tables::of(declaration, &self.folder, Tuning { memory: None, threads: Some(2) })
            .unwrap_or_else(|error| panic!("{error:?}"))
    }

    pub(crate) fn books(&self) -> Books {
        Books::open(&self.folder.join("whit.ledger")).unwrap()
    }
}

/// 300 users, each with rows in some of 4 shops on some of 10 days; seconds in 0..600.
pub(crate) fn visits() -> String {
    let mut text = String::from("user_id,shop,day,seconds,country\n");
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for user in 0..300 {
        for _ in 0..=next(8) {
            let shop = ["north", "south", "east", "west"][next(4) as usize];
            let country = ["at", "de", "ch"][user % 3];
            let _ = writeln!(text, "{user},{shop},{},{},{country}", next(10), next(600));
        }
    }
    text
}

pub(crate) fn asking(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), delta: Some(1e-6), ..Asking::default() }
}

pub(crate) fn ask(tables: &Tables, room: &Room, sql: &str, asking: &Asking) -> Result<Answer, QueryError> {
    whit_query::ask(tables, sql, asking, &mut room.books(), "tester")
}
