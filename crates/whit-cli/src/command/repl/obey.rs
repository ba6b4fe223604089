//! A session of a shell, and what it does with an order.

use super::super::preview;
use super::order::ShellOrder;
use super::words::{CompletionWords, SQL};
use crate::error::Error;
use crate::interrupt::stoppable;
use crate::output::{OutputOptions, write_answer};
use std::io::Write;
use std::time::Instant;
use whit::query::plan::{Asking, aggregate};
use whit::session::{Foreseen, Session};
use whit_view::dataset;
use whit_view::ledger::write_budgets;

const HELP: &str = "\
  SELECT …;           ask, and pay ε; Ctrl-C stops it, and asking again goes on
  \\preview SELECT …;  see what it would cost; nothing is charged
  \\epsilon 0.5        what a question may cost from now on
  \\tables             the data sets, and what they protect
  \\schema [TABLE]     columns and their types
  \\budget             what was spent and what is left
  \\timing [on|off]    say how long each question took, or no longer
  \\help, \\quit       all of these also with a point in front: .tables";

/// A session, and what a question may cost in it.
pub(super) struct Talking {
    pub(super) session: Session,
    pub(super) asking: Asking,
    pub(super) timing: bool,
}

impl Talking {
    /// What can be completed.
    pub(super) fn words(&self) -> CompletionWords {
        let mut words: Vec<String> = SQL.into_iter().chain(aggregate::suggested()).map(str::to_owned).collect();
        words.extend(
            ["\\preview", "\\epsilon", "\\tables", "\\schema", "\\budget", "\\timing", "\\help", "\\quit"]
                .map(str::to_owned),
        );
        for source in self.session.tables().warehouse().sources() {
            words.push(source.dataset.name.clone());
            words.extend(source.columns().map(|(name, _)| name.to_owned()));
        }
        CompletionWords { words }
    }

    /// Does what is ordered, and prints what is wrong with it; only an output that cannot be written is an error.
    pub(super) fn obey(
        &mut self,
        order: &ShellOrder<'_>,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        match self.try_obey(order, out, talk) {
            Err(Error::Output(error)) => Err(Error::Output(error)),
            Err(error) => Ok(error.write(talk)?),
            Ok(()) => Ok(()),
        }
    }

    /// The same, where what is wrong is the caller's to print.
    pub(super) fn try_obey(
        &mut self,
        order: &ShellOrder<'_>,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        if let ShellOrder::Ask(text) | ShellOrder::Preview(text) | ShellOrder::Unknown(text) = order {
            crate::hint::typed([*text]);
        }
        match order {
            ShellOrder::Ask(sql) => {
                let begun = Instant::now();
                let answer = stoppable(&mut self.session, |session| session.ask(sql, &self.asking))?;
                write_answer(&answer, &OutputOptions::default(), out, talk)?;
                if self.timing {
                    writeln!(talk, "took {:.3} s", begun.elapsed().as_secs_f64())?;
                }
                Ok(())
            }
            ShellOrder::Preview(sql) => {
                let foreseen = self.session.preview(sql, &self.asking)?;
                let Foreseen { preview, fits } = preview::in_options(foreseen);
                preview::write(&preview, &fits, out)
            }
            ShellOrder::Epsilon(text) => {
                let wrong =
                    |_| Error::asked(format!("ε is `{text}`, and it must be a number above 0"), "write \\epsilon 0.5");
                let epsilon = crate::number::positive_epsilon(text).map_err(wrong)?;
                self.asking.epsilon = Some(epsilon);
                Ok(writeln!(out, "From now on a question costs ε = {epsilon}.")?)
            }
            ShellOrder::Tables => Ok(dataset::write_list(self.session.tables(), out)?),
            ShellOrder::Schema(name) => {
                let tables = self.session.tables();
                let one = if name.is_empty() { None } else { Some(tables.table_called(name)?) };
                Ok(dataset::write_columns(tables, one, out)?)
            }
            ShellOrder::Timing(wanted) => {
                self.timing = wanted.unwrap_or(!self.timing);
                Ok(writeln!(
                    out,
                    "From now on it is {} how long a question took.",
                    if self.timing { "said" } else { "not said" }
                )?)
            }
            ShellOrder::Budget => Ok(write_budgets(&self.session.accounts()?, out)?),
            ShellOrder::Help => Ok(writeln!(out, "{HELP}")?),
            ShellOrder::Quit => Ok(()),
            ShellOrder::Unknown(entry) => {
                Err(Error::asked(format!("`{}` is no order", entry.trim()), "\\help shows what there is"))
            }
        }
    }
}
