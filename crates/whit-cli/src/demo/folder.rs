//! The demo's working folder: data, declarations and ledgers, as somebody would lay them out by hand.

use crate::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use whit::account::ledger::{HandedOver, Memory};
use whit::core::unit::Kind;
use whit::query::QueryError;
use whit::query::partition::PartitionFile;
use whit::session::{Options, Session};

/// Who visited what: see `assets/demo/README.md` for where it comes from.
const VISITS: &[u8] = include_bytes!("../../assets/demo/msweb_visits.parquet");
/// Which subject each area of the site is about. It is public: it was made from the titles alone.
const AREAS: &str = include_str!("../../assets/demo/areas.csv");

/// The most subjects of one user that count, and the most visits of one user within one subject. Both are enforced.
pub(super) const SUBJECTS_PER_USER: u64 = 10;
pub(super) const VISITS_PER_SUBJECT: u64 = 4;
/// The δ of every promise: well below one in 32,711 users.
pub(super) const DELTA: f64 = 1e-6;

/// One way to protect the data: a declaration, and who asks of what it declares.
pub(super) struct Level {
    pub(super) kind: Kind,
    pub(super) config: PathBuf,
    pub(super) ledger: PathBuf,
    pub(super) session: Session,
}

/// Everything that the demo works with.
pub(crate) struct DemoFolder {
    pub(crate) folder: PathBuf,
    /// From fine to coarse.
    pub(super) levels: Vec<Level>,
    /// The same data declared public, which they are: so that the demo can say how far off an answer is.
    pub(super) truth: Session,
}

/// The three protections, and what each of them hides.
pub(super) const LEVELS: [(Kind, &str); 3] = [
    (Kind::Event, "one visit"),
    (Kind::Element, "all that one user did within one subject"),
    (Kind::User, "all that one user did"),
];

impl DemoFolder {
    /// Lays out the folder, with fresh ledgers, and opens it.
    pub(crate) fn furnish(folder: &Path, epsilon: f64) -> Result<Self, Error> {
        let put = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, content).map_err(|error| Error::file(&path, &error)).map(|()| path)
        };
        if let Some(name) = not_ours(folder) {
            return Err(Error::asked(
                format!("`{}` is of no demonstration, and is not replaced", folder.join(name).display()),
                "name another folder with --out; nothing was written",
            ));
        }
        std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
        put("msweb_visits.parquet", VISITS)?;
        put("areas.csv", AREAS.as_bytes())?;
        // The same list as `whit partition dictionary` reads it: without a heading.
        let list: Vec<(&str, &str)> = AREAS.lines().skip(1).filter_map(|line| line.rsplit_once(',')).collect();
        let lines = list.iter().fold(String::new(), |text, (title, subject)| text + title + "\t" + subject + "\n");
        put("subjects.txt", lines.as_bytes())?;
        let partition = PartitionFile::dictionary("subjects", list, "other").map_err(QueryError::from)?;
        partition.save(&folder.join("subjects.partition")).map_err(QueryError::from)?;

        let mut levels = Vec::new();
        for (kind, _) in LEVELS {
            let name = name_of(kind);
            let config = put(&format!("{name}.toml"), declaration(kind, epsilon).as_bytes())?;
            let ledger = folder.join(format!("{name}.ledger"));
            for part in ["", "-journal", ".head", ".log"] {
                // A ledger that is not there need not be taken away.
                let _ = std::fs::remove_file(folder.join(format!("{name}.ledger{part}")));
            }
            let mut session = Session::open(&config, Options::default())?;
            // Begun at once, so that commands find it, and anew, with a reason: of an earlier demonstration's something may be known elsewhere, also where its folder is gone.
            session.reset("a demonstration begins with ledgers of its own")?;
            levels.push(Level { kind, config, ledger, session });
        }
        // What is asked of public data is charged nothing, so its ledger need not last.
        let truth = put("truth.toml", TRUTH.as_bytes())?;
        let truth = Session::open_on(&truth, Options::default(), Box::new(HandedOver::new(Memory::new())))?;
        Ok(Self { folder: folder.to_owned(), levels, truth })
    }

    /// The level that the story is about.
    pub(super) fn main(&mut self) -> &mut Level {
        let at = self.levels.iter().position(|level| level.kind == Kind::Element).unwrap_or(0);
        &mut self.levels[at]
    }
}

/// Something that would be replaced and that no demonstration has put there: what somebody declared by hand, a ledger whose declaration is none of ours, another list of areas.
fn not_ours(folder: &Path) -> Option<String> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let there = |name: &str| std::fs::symlink_metadata(folder.join(name)).is_ok();
    let declared = |name: &str| text(name).is_some_and(|text| text.starts_with(FIRST));
    for (kind, _) in LEVELS {
        let (config, ledger) = (format!("{}.toml", name_of(kind)), format!("{}.ledger", name_of(kind)));
        if there(&config) && !declared(&config) {
            return Some(config);
        }
        if there(&ledger) && !declared(&config) {
            return Some(ledger);
        }
    }
    let kept = [("areas.csv", AREAS), ("truth.toml", TRUTH)];
    let other = kept.into_iter().find(|(name, ours)| there(name) && text(name).as_deref() != Some(*ours));
    let made =
        ["msweb_visits.parquet", "subjects.txt", "subjects.partition", "ledger.svg", "hitters.svg", "report.html"];
    let made = made.into_iter().find(|name| there(name) && !there("areas.csv"));
    other.map(|(name, _)| name).or(made).map(str::to_owned)
}

/// How every declaration of the demonstration begins.
const FIRST: &str = "# Protects ";

/// The element level is what the story is about, so it has the plain name.
fn name_of(kind: Kind) -> String {
    if kind == Kind::Element { "whit".to_owned() } else { kind.to_string() }
}

/// The same data, public.
const TRUTH: &str = "# The same data, declared public: what is asked of them is exact and free.\n\
[dataset.visits]\nsource = \"msweb_visits.parquet\"\npublic = true\n\n\
[dataset.areas]\nsource = \"areas.csv\"\npublic = true\n";

/// The declaration of one level: what it protects differs, and so how many groups one unit needs; price and other caps do not.
pub(super) fn declaration(kind: Kind, epsilon: f64) -> String {
    // Rows of one element have one subject, so one group is all that an element needs.
    let groups = if kind == Kind::User { SUBJECTS_PER_USER } else { 1 };
    let protects = LEVELS.iter().find(|(own, _)| *own == kind).map_or("", |(_, words)| words);
    let mut text = format!("{FIRST}{protects}.\n");
    if kind != Kind::Element {
        let _ = writeln!(text, "ledger = \"{}.ledger\"\n", name_of(kind));
    }
    // Three questions at element level cost a whole user about 15 ε; this leaves room, for large ε too.
    let user = match kind {
        Kind::Element => {
            format!("budget.user = {{ epsilon = {:?}, delta = {DELTA:e} }}\n", 40.0 * epsilon * epsilon.max(1.0))
        }
        _ => String::new(),
    };
    let _ = write!(
        text,
        "[dataset.visits]
source = \"msweb_visits.parquet\"
unit.user = \"user_id\"
unit.element = {{ column = \"title\", file = \"subjects.partition\" }}
unit.protect = \"{kind}\"
unit.caps = {{ elements_per_user = {SUBJECTS_PER_USER}, rows_per_element = {VISITS_PER_SUBJECT}, \
         rows_per_group = {VISITS_PER_SUBJECT}, groups = {groups} }}
query = {{ epsilon = {epsilon:?}, delta = {DELTA:e} }}
budget.{kind} = {{ epsilon = {:?}, delta = {DELTA:e} }}
{user}
[dataset.areas]
source = \"areas.csv\"
public = true
",
        3.0 * epsilon
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use whit::core::declare::Declaration;

    #[test]
    fn every_declaration_protects_what_it_says_with_the_same_caps_and_price() {
        let read = |kind| Declaration::parse(&declaration(kind, 1.0)).unwrap();
        for (kind, _) in LEVELS {
            let declared = read(kind);
            let visits = declared.dataset("visits").unwrap();
            let unit = visits.unit.as_ref().unwrap();
            assert_eq!((unit.protect, unit.caps.elements_per_user), (kind, Some(SUBJECTS_PER_USER)));
            assert_eq!(visits.query.unwrap().epsilon, Some(1.0));
            assert!(unit.ladder().is_ok());
        }
    }

    #[test]
    fn every_area_has_one_subject_and_the_list_has_no_commas_inside() {
        let mut titles = BTreeSet::new();
        let mut subjects = BTreeSet::new();
        for line in AREAS.lines().skip(1) {
            assert_eq!(line.matches(',').count(), 1, "{line}");
            let (title, subject) = line.split_once(',').unwrap();
            assert!(titles.insert(title) && title.trim() == title && !subject.is_empty(), "{line}");
            subjects.insert(subject);
        }
        assert_eq!((titles.len(), subjects.len()), (284, 23));
    }
}
