//! `whit shell`: one question after the other.

mod obey;
mod order;
mod pager;
mod words;

use super::asked::QuestionOptions;
use super::query::Limits;
use crate::error::Error;
use obey::Talking;
use order::{ShellOrder, order};
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use std::io::{BufRead, IsTerminal, Write};
use words::CompletionWords;

/// Ask and preview, one question after the other, with history and completion.
///
/// A question ends with a semicolon, and costs what --epsilon says, what is declared for questions, or what `\epsilon 0.5` said last.
#[derive(clap::Args)]
pub(super) struct Shell {
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    asked: QuestionOptions,
    /// Go on after a question that is refused or fails, where questions come from a file or a pipe.
    #[arg(long)]
    keep_going: bool,
}

impl Shell {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut session = self.asked.session()?;
        session.history()?; // a ledger that does not do is said before the first question, and to look makes none
        let mut talking = Talking { session, asking: self.limits.with(self.asked.asking()), timing: false };
        if std::io::stdin().is_terminal() {
            talking.at_terminal(out, talk)
        } else {
            talking.piped(self.keep_going, out, talk)
        }
    }
}

impl Talking {
    fn at_terminal(&mut self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let failed = |error: ReadlineError| Error::failed(format!("the terminal could not be read: {error}"));
        let mut editor: Editor<CompletionWords, DefaultHistory> = Editor::new().map_err(failed)?;
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
            if order == ShellOrder::Quit {
                break;
            }
            let mut shown = Vec::new();
            self.obey(&order, &mut shown, talk)?;
            let rows = editor.dimensions().map(|(_, rows)| usize::from(rows));
            pager::print(&shown, rows, out)?;
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
                Some(ShellOrder::Quit) => return Ok(()),
                Some(order) => match self.try_obey(&order, out, talk) {
                    // Whoever stops a question that a program asked means all of them.
                    Err(error) if keep_going && !error.is_interruption() && !matches!(error, Error::Output(_)) => {
                        error.write(talk)?;
                    }
                    done => done?,
                },
            }
            entry.clear();
        }
        if entry.trim().is_empty() {
            return Ok(());
        }
        Err(Error::asked("the last question has no end", "end it with a semicolon"))
    }
}
