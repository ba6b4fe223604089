//! A session of a shell, and what it does with an order.

use super::super::preview;
use super::order::ShellOrder;
use super::words::{CompletionWords, SQL};
use crate::error::Error;
use crate::output::{OutputOptions, write_answer};
use std::io::Write;
use whit::query::plan::{Asking, aggregate};
use whit::session::{Foreseen, Session};
use whit_view::number::brief_down;
use whit_view::table::{Side, Table};

const HELP: &str = "\
  SELECT …;           ask, and pay ε
  \\preview SELECT …;  see what it would cost; nothing is charged
  \\epsilon 0.5        what a question may cost from now on
  \\tables             the data sets and their columns
  \\budget             what was spent and what is left
  \\help, \\quit";

/// A session, and what a question may cost in it.
pub(super) struct Talking {
    pub(super) session: Session,
    pub(super) asking: Asking,
}

impl Talking {
    /// What can be completed.
    pub(super) fn words(&self) -> CompletionWords {
        let mut words: Vec<String> = SQL.into_iter().chain(aggregate::suggested()).map(str::to_owned).collect();
        words.extend(["\\preview", "\\epsilon", "\\tables", "\\budget", "\\help", "\\quit"].map(str::to_owned));
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
        match order {
            ShellOrder::Ask(sql) => {
                let answer = self.session.ask(sql, &self.asking)?;
                write_answer(&answer, &OutputOptions::default(), out, talk)
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
            ShellOrder::Tables => self.write_tables(out),
            ShellOrder::Budget => self.write_budget(out),
            ShellOrder::Help => Ok(writeln!(out, "{HELP}")?),
            ShellOrder::Quit => Ok(()),
            ShellOrder::Unknown(entry) => {
                Err(Error::asked(format!("`{}` is no order", entry.trim()), "\\help shows what there is"))
            }
        }
    }

    fn write_tables(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut table = Table::new([("table", Side::Left), ("column", Side::Left), ("type", Side::Left)]);
        for source in self.session.tables().warehouse().sources() {
            for (name, kind) in source.columns() {
                table.row([source.dataset.name.clone(), name.to_owned(), kind]);
            }
        }
        Ok(table.write(out)?)
    }

    fn write_budget(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        let mut table = Table::new([
            ("data set", Side::Left),
            ("unit", Side::Left),
            ("budget ε", Side::Right),
            ("left ε", Side::Right),
        ]);
        for account in self.session.accounts()? {
            table.row([
                account.dataset.clone(),
                account.unit.to_string(),
                account.budget.map_or_else(|| "–".to_owned(), |budget| format!("{}", budget.epsilon)),
                account.left.map_or_else(|| "–".to_owned(), brief_down),
            ]);
        }
        Ok(table.write(out)?)
    }
}
