//! `whit query`: one question in SQL, or several together, asked and paid for.

use super::asked::QuestionOptions;
use super::workload::{self, AskedText, QuestionText};
use crate::error::Error;
use crate::interrupt::stoppable;
use crate::number;
use crate::output::{OutputOptions, write_answer};
use std::io::Write;
use whit::query::plan::Asking;

/// Ask a question in SQL, and pay for it.
///
/// The answer protects the unit that is declared for the data set. Its price is reserved in the ledger before anything is read; asking the
/// same again, in whatever words, is answered from the ledger and costs nothing. Ctrl-C stops it: what was charged stays spent, and asking the same again goes on under
/// that charge.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit query \"SELECT country, COUNT(*) FROM visits GROUP BY country\" --epsilon 0.5
  whit query \"SELECT AVG(seconds), MEDIAN(seconds) FROM visits WHERE country = 'at'\" --epsilon 0.2 --json
  whit query --file dashboard.sql --epsilon 0.5 --plot dashboard.html")]
pub(super) struct Query {
    #[command(flatten)]
    text: QuestionText,
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

impl Query {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let text = self.text.read()?;
        let progress = self.output.progress();
        progress.start("opening the data");
        let mut session = self.asked.session()?;
        self.output.check(&session)?;
        let asking = self.limits.with(self.asked.asking());
        progress.start("asking");
        match &text {
            AskedText::One(sql) => {
                let answer = stoppable(&mut session, |session| session.ask(sql, &asking));
                progress.finish();
                write_answer(&answer?, &self.output, out, talk)
            }
            AskedText::Several(workload) => {
                workload::check(workload, &self.output)?;
                let answer = stoppable(&mut session, |session| session.ask_workload(workload, &asking));
                progress.finish();
                workload::write(&answer?, &self.output, out, talk)
            }
        }
    }
}
