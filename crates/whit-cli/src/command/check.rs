//! `whit check`: what a `whit.toml` amounts to, before anything is asked.

use crate::error::Error;
use crate::output::write_json;
use std::io::Write;
use std::path::{Path, PathBuf};
use whit::Declared;
use whit::query::source::Tuning;
use whit::query::source::owner::Owner;
use whit::session::Options;
use whit_view::dataset;
use whit_view::number::number_of;

/// Check a declaration against its files, and show the ladder.
///
/// Reads `whit.toml`, finds every file that it names, and shows for each data set what one whit is, what a question costs at each
/// rung, and what cannot be asked until more is declared. Reads no row of a private table, spends nothing and leaves the ledger alone.
///
/// With --owner every row is read, and what does not fit is shown: values of another type, lines that are broken, values outside of bounds, what caps cut,
/// whether the data changed. That is exact and private: it is for the owner of the data alone.
#[derive(clap::Args)]
pub(super) struct CheckCommand {
    /// The declaration; `whit.toml` without it.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The declaration, said as other commands want it.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Read every row, and show the owner of the data what does not fit. Not for analysts: nothing of it is noised.
    #[arg(long)]
    owner: bool,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
}

impl CheckCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let file = self.file.as_deref().or(self.config.as_deref()).unwrap_or(Path::new("whit.toml"));
        let declared = Declared::open(file)?;
        if self.owner {
            return self.for_owner(&declared, out, talk);
        }
        let views = declared.check(Tuning::default())?;
        if self.json {
            return write_json(&serde_json::json!({ "datasets": views }), out);
        }
        for view in &views {
            dataset::write(view, out)?;
        }
        Ok(writeln!(talk, "{} is sound: {}", file.display(), number_of(views.len(), "data set"))?)
    }

    /// What only the owner may see.
    fn for_owner(&self, declared: &Declared, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut session = declared.session(Options::default())?;
        crate::hint::about_ledger(session.ledger_file());
        let views = session.survey(Owner::who_may_see_every_row())?;
        writeln!(talk, "for the owner of the data only: these numbers are exact")?;
        if self.json {
            return write_json(&serde_json::json!({ "datasets": views }), out);
        }
        Ok(views.iter().try_for_each(|view| dataset::write_for_owner(view, out))?)
    }
}
