//! `whit shell`: one question after the other.

mod order;
mod words;

use super::asked::Asked;
use super::query::Limits;
use super::{Error, preview};
use crate::output::{OutputOptions, write_answer};
use order::{Order, order};
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use std::io::{BufRead, IsTerminal, Write};
use whit::query::plan::Asking;
use whit::session::{Foreseen, Session};
use whit_view::table::{Side, Table};
use words::{SQL, Words};

/// Ask and preview, one question after the other, with history and completion.
///
/// A question ends with a semicolon, and costs what --epsilon says, what is declared for questions, or what `\epsilon 0.5` said last.
#[derive(clap::Args)]
pub(super) struct Shell {
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    asked: Asked,
    /// Go on after a question that is refused or fails, where questions come from a file or a pipe.
    #[arg(long)]
    keep_going: bool,
}

const HELP: &str = "\
  SELECT …;           ask, and pay ε
  \\preview SELECT …;  see what it would cost; nothing is charged
  \\epsilon 0.5        what a question may cost from now on
  \\tables             the data sets and their columns
  \\budget             what was spent and what is left
  \\help, \\quit";

impl Shell {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut session = self.asked.session()?;
        session.books()?; // a ledger that does not do is said before the first question
        let mut talking = Talking { session, asking: self.limits.with(self.asked.asking()) };
        if std::io::stdin().is_terminal() {
            talking.at_terminal(out, talk)
        } else {
            talking.piped(self.keep_going, out, talk)
        }
    }
}

/// A session, and what a question may cost in it.
struct Talking {
    session: Session,
    asking: Asking,
}

impl Talking {
    fn words(&self) -> Words {
        let mut words: Vec<String> = SQL.iter().map(|&word| word.to_owned()).collect();
        words.extend(["\\preview", "\\epsilon", "\\tables", "\\budget", "\\help", "\\quit"].map(str::to_owned));
        for source in self.session.tables().warehouse().sources() {
            words.push(source.dataset.name.clone());
            words.extend(source.columns().map(|(name, _)| name.to_owned()));
        }
        Words { words }
    }

    fn at_terminal(&mut self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let failed = |error: ReadlineError| Error::failed(format!("the terminal could not be read: {error}"));
        let mut editor: Editor<Words, DefaultHistory> = Editor::new().map_err(failed)?;
        editor.set_helper(Some(self.words()));
        let history = self.session.tables().warehouse().folder().join(".whit_history");
        let _ = editor.load_history(&history); // there is none the first time
        writeln!(out, "whit shell: questions end with a semicolon; \\help shows what else there is.")?;
        let mut entry = String::new();
        loop {
            out.flush()?;
            match editor.readline(if entry.is_empty() { "whit> " } else { "    > " }) {
                Ok(line) => {
                    entry.push_str(&line);
                    entry.push('\n');
                }
                Err(ReadlineError::Interrupted) => {
                    entry.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(failed(error)),
            }
            if entry.trim().is_empty() {
                entry.clear();
                continue;
            }
            let Some(order) = order(&entry) else { continue };
            let _ = editor.add_history_entry(entry.trim());
            if order == Order::Quit {
                break;
            }
            self.obey(&order, out, talk)?;
            entry.clear();
        }
        let _ = editor.save_history(&history); // a folder that cannot be written to costs the history only
        Ok(())
    }

    /// The same where a program types: the first fault ends it, unless it is to go on.
    fn piped(&mut self, keep_going: bool, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut entry = String::new();
        for line in std::io::stdin().lock().lines() {
            entry.push_str(&line.map_err(|error| Error::failed(format!("standard input could not be read: {error}")))?);
            entry.push('\n');
            match order(&entry) {
                None => continue,
                Some(Order::Quit) => return Ok(()),
                Some(order) if keep_going => self.obey(&order, out, talk)?,
                Some(order) => self.try_obey(&order, out, talk)?,
            }
            entry.clear();
        }
        if entry.trim().is_empty() {
            return Ok(());
        }
        Err(Error::asked("the last question has no end", "end it with a semicolon"))
    }

    fn obey(&mut self, order: &Order<'_>, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match self.try_obey(order, out, talk) {
            Err(Error::Output(error)) => Err(Error::Output(error)),
            Err(error) => Ok(error.tell(talk)?),
            Ok(()) => Ok(()),
        }
    }

    fn try_obey(&mut self, order: &Order<'_>, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match order {
            Order::Ask(sql) => {
                let answer = self.session.ask(sql, &self.asking)?;
                write_answer(&answer, &OutputOptions::default(), out, talk)
            }
            Order::Preview(sql) => {
                let Foreseen { preview, fits } = self.session.preview(sql, &self.asking)?;
                preview::write(&preview, out)?;
                preview::write_fits(&fits, out)
            }
            Order::Epsilon(text) => {
                let wrong =
                    |_| Error::asked(format!("ε is `{text}`, and it must be a number above 0"), "write \\epsilon 0.5");
                let epsilon = crate::number::positive_epsilon(text).map_err(wrong)?;
                self.asking.epsilon = Some(epsilon);
                Ok(writeln!(out, "From now on a question costs ε = {epsilon}.")?)
            }
            Order::Tables => self.write_tables(out),
            Order::Budget => self.write_budget(out),
            Order::Help => Ok(writeln!(out, "{HELP}")?),
            Order::Quit => Ok(()),
            Order::Unknown(entry) => {
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
                account.left.map_or_else(|| "–".to_owned(), whit_view::number::brief_down),
            ]);
        }
        Ok(table.write(out)?)
    }
}
