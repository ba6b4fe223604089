//! `whit init`: the draft of a `whit.toml`.

use crate::error::Error;
use crate::output::{Readers, inputs, write_for};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use whit::DeclarationDraft;
use whit::query::source::Input;
use whit::query::source::Inspection;

/// Look at the names and types of some data, and write the draft of a declaration.
///
/// It is for the owner of the data. CSV and NDJSON files have no types, so their values are looked at to draft some; the draft says so. Nothing
/// else of a value is used: bounds that were taken from the data would tell of its largest value, and that belongs to somebody.
#[derive(clap::Args)]
pub(super) struct Init {
    /// A Parquet, CSV or NDJSON file, a glob in quotes, a folder of such files, or a Delta table; also on S3, as in s3://bucket/visits/.
    path: PathBuf,
    /// What the data set is called; without it, like the file or folder.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The column that says whose a row is; asked for on a terminal, else guessed by its name.
    #[arg(long, value_name = "COLUMN")]
    user: Option<String>,
    /// The most rows of one user that count. Say it without looking at the data: it is asked for on a terminal, and never drafted from rows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows_per_user: Option<u64>,
    /// The most groups of a question to which one user contributes; like --rows-per-user.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    groups: Option<u64>,
    /// Where the draft is written.
    #[arg(long, value_name = "FILE", default_value = "whit.toml")]
    output: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(super) fn run(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let mut drafted = DeclarationDraft::of(&self.path, self.name.as_deref())?;
        if self.output.exists() && !self.force {
            return Err(Error::asked(
                format!("`{}` is there already", self.output.display()),
                "write somewhere else with --output, or over it with --force",
            ));
        }
        let said = std::io::stdin();
        self.settle(&mut drafted.seen, said.is_terminal().then(|| said.lock()), talk)?;
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
        for noticed in seen.noticed() {
            writeln!(talk, "  {noticed}")?;
        }
        if seen.newlines {
            writeln!(talk, "  values in quotes hold line breaks: newlines_in_values = true was drafted")?;
        }
        match &seen.user {
            Some(_) if seen.user_said => {}
            Some(user) => writeln!(talk, "  {user} was taken for the user: check that, and unit.protect")?,
            None => writeln!(talk, "  say whose a row is: uncomment unit.user, and name its column")?,
        }
        if !seen.numbers.is_empty() {
            writeln!(talk, "  give bounds to what you want to add up: {}", few(&seen.numbers))?;
        }
        writeln!(talk, "  decide on the budget, then look at what you have: whit check {}", written.display())?;
        Ok(())
    }

    /// What nobody can know but the owner: taken from the options, or asked where somebody sits at a terminal.
    fn settle(&self, seen: &mut Inspection, mut said: Option<impl BufRead>, talk: &mut dyn Write) -> Result<(), Error> {
        let mut ask = |question: &str, talk: &mut dyn Write| -> std::io::Result<Option<String>> {
            let Some(said) = &mut said else { return Ok(None) };
            write!(talk, "{question}: ")?;
            talk.flush()?;
            let mut line = String::new();
            said.read_line(&mut line)?;
            Ok(Some(line.trim().to_owned()).filter(|line| !line.is_empty()))
        };
        let guess = seen.user.as_ref().map(|user| format!(" [{user}]")).unwrap_or_default();
        let user = match &self.user {
            Some(user) => Some(user.clone()),
            None => ask(&format!("whose is a row? Name the column{guess}"), talk)?,
        };
        if let Some(user) = user {
            if !seen.columns().any(|column| column == user) {
                let columns: Vec<String> = seen.columns().map(str::to_owned).collect();
                let hint = format!("its columns are: {}", few(&columns));
                return Err(Error::asked(format!("`{}` has no column `{user}`", self.path.display()), hint));
            }
            (seen.user, seen.user_said) = (Some(user), true);
        }
        let caps = [
            (self.rows_per_user, "at most how many rows of one user count? Known without looking, or leave it empty"),
            (self.groups, "to at most how many groups of an answer does one user contribute? Or leave it empty"),
        ];
        let mut found = [None; 2];
        for (found, (option, question)) in found.iter_mut().zip(caps) {
            let answer = if option.is_some() { None } else { ask(question, talk)? };
            let whole = |answer: String| {
                let wrong = |_| {
                    Error::asked(
                        format!("`{answer}` is no whole number"),
                        "a cap is one, at least 1, or nothing for none",
                    )
                };
                answer.parse::<std::num::NonZeroU64>().map(std::num::NonZeroU64::get).map_err(wrong)
            };
            *found = option.or(answer.map(whole).transpose()?);
        }
        [seen.rows_per_user, seen.groups] = found;
        Ok(())
    }

    /// The path as it stands in the draft: relative to the draft where it lies below it, else in full.
    fn source(&self) -> String {
        let folder = self.output.parent().unwrap_or(Path::new(""));
        let here = folder.as_os_str().is_empty() || folder == Path::new(".");
        let path = match (std::path::absolute(&self.path), std::path::absolute(folder)) {
            _ if here || self.path.is_absolute() || self.path.starts_with("s3:") => self.path.clone(),
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
