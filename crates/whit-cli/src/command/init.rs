//! `whit init`: the draft of a `whit.toml`.

use crate::error::Error;
use crate::output::{Readers, inputs, write_for};
use std::io::Write;
use std::path::{Path, PathBuf};
use whit::DeclarationDraft;
use whit::query::source::Input;

/// Look at the names and types of some data, and write the draft of a declaration.
///
/// It is for the owner of the data. CSV and NDJSON files have no types, so their values are looked at to draft some; the draft says so. Nothing
/// else of a value is used: bounds that were taken from the data would tell of its largest value, and that belongs to somebody.
#[derive(clap::Args)]
pub(super) struct Init {
    /// A Parquet, CSV or NDJSON file, a glob in quotes, or a folder of such files.
    path: PathBuf,
    /// What the data set is called; without it, like the file or folder.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the draft is written.
    #[arg(long, value_name = "FILE", default_value = "whit.toml")]
    output: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(super) fn run(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let drafted = DeclarationDraft::of(&self.path, self.name.as_deref())?;
        if self.output.exists() && !self.force {
            return Err(Error::asked(
                format!("`{}` is there already", self.output.display()),
                "write somewhere else with --output, or over it with --force",
            ));
        }
        let (draft, seen) = (drafted.text(&self.source()), &drafted.seen);
        let data = inputs().may_replace(Input::Declaration).and(Input::Data, &self.path);
        let written = write_for(Readers::Everybody, &data, self.output.clone(), &draft, talk)?;
        if seen.looked {
            writeln!(talk, "  {} files have no types: values were looked at to draft some; confirm each", seen.format)?;
        }
        for (column, kind, odd, values) in &seen.odd {
            writeln!(
                talk,
                "  {column} is drafted as {kind}: {odd} of {values} values that were looked at are not, and count as missing"
            )?;
        }
        if seen.newlines {
            writeln!(talk, "  values in quotes hold line breaks: newlines_in_values = true was drafted")?;
        }
        match &seen.user {
            Some(user) => writeln!(talk, "  {user} was taken for the user: check that, and unit.protect")?,
            None => writeln!(talk, "  say whose a row is: uncomment unit.user, and name its column")?,
        }
        if !seen.numbers.is_empty() {
            writeln!(talk, "  give bounds to what you want to add up: {}", few(&seen.numbers))?;
        }
        writeln!(talk, "  decide on the budget, then look at what you have: whit check {}", written.display())?;
        Ok(())
    }

    /// The path as it stands in the draft: relative to the draft where it lies below it, else in full.
    fn source(&self) -> String {
        let folder = self.output.parent().unwrap_or(Path::new(""));
        let here = folder.as_os_str().is_empty() || folder == Path::new(".");
        let path = match (std::path::absolute(&self.path), std::path::absolute(folder)) {
            _ if here || self.path.is_absolute() => self.path.clone(),
            (Ok(path), Ok(folder)) => path.strip_prefix(&folder).map_or(path.clone(), Path::to_owned),
            _ => self.path.clone(),
        };
        path.to_string_lossy().into_owned()
    }
}

/// The first names of a list.
fn few(names: &[String]) -> String {
    match names {
        names if names.len() <= 6 => names.join(", "),
        names => format!("{} and {} more", names[..5].join(", "), names.len() - 5),
    }
}
