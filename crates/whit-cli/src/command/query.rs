//! `whit query`: one question in SQL, asked and paid for.

use super::asked::QuestionOptions;
use crate::error::Error;
use crate::number;
use crate::output::{OutputOptions, write_answer};
use std::io::{Read, Write};
use whit::query::plan::Asking;

/// Ask a question in SQL, and pay for it.
///
/// The answer protects the unit that is declared for the data set. Its price is reserved in the ledger before anything is read; asking the
/// same again, in whatever words, is answered from the ledger and costs nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit query \"SELECT country, COUNT(*) FROM visits GROUP BY country\" --epsilon 0.5
  whit query \"SELECT AVG(seconds), MEDIAN(seconds) FROM visits WHERE country = 'at'\" --epsilon 0.2 --json")]
pub(super) struct Query {
    /// The question; `-` reads it from standard input.
    sql: String,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    asked: QuestionOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// How much of one unit counts, beyond what is declared.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Limits {
    /// At most so many groups of one unit count.
    #[arg(long, value_name = "N", value_parser = number::count)]
    groups: Option<u64>,
    /// At most so many rows of one unit count in one group.
    #[arg(long, value_name = "N", value_parser = number::count)]
    rows: Option<u64>,
}

impl Limits {
    /// The same question with these limits.
    pub(super) fn with(&self, mut asking: Asking) -> Asking {
        (asking.groups, asking.rows) = (self.groups, self.rows);
        asking
    }
}

/// The question itself, or what stands on standard input.
pub(super) fn question(sql: &str) -> Result<String, Error> {
    if sql != "-" {
        return Ok(sql.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Error::failed(format!("the question could not be read from standard input: {error}")))?;
    Ok(text)
}

impl Query {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let sql = question(&self.sql)?;
        let progress = self.output.progress();
        progress.start("opening the data");
        let mut session = self.asked.session()?;
        self.output.check(&session)?;
        progress.start("asking");
        let answer = session.ask(&sql, &self.limits.with(self.asked.asking()));
        progress.finish();
        write_answer(&answer?, &self.output, out, talk)
    }
}
