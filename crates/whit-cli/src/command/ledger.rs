//! `whit ledger …`: what was spent and what is left, and whether the books are as they were written.

mod picture;
mod view;

use super::{Error, write_json};
use crate::number::Wrong;
use crate::output::{Drawing, drawing};
use std::io::Write;
use std::path::PathBuf;
use view::{AccountView, FaultView, ReaccountView, ShowView, VerifyView};
use whit::Name;
use whit::account::ledger::{Books, ExportError, Fault, Head, LedgerError, Which};
use whit::core::declare::Declaration;
use whit::session::heads;
use whit_view::number::{brief, brief_down, brief_up};
use whit_view::table::{Side, Table};

/// Show what was spent and what is left, by rung, by analyst and over time.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Ledger {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    show: Show,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what was spent and what is left, by rung, by analyst and over time.
    Show(Show),
    /// Recompute every hash and every total, and name the first thing that was changed.
    Verify(Verify),
    /// Let another accountant read the stored costs again.
    Reaccount(Reaccount),
    /// Write the whole ledger as lines of JSON.
    Export(Export),
    /// Take back a reservation of which nothing came; the reason is kept.
    Void(Void),
    /// Go on with the ledger as it stands, where its head says otherwise: after a backup was put back. The reason is kept.
    Accept(Decide),
    /// Begin anew where a ledger was and is gone. The reason is kept.
    Reset(Decide),
}

/// What the owner decides about the ledger as a whole.
#[derive(clap::Args)]
struct Decide {
    #[command(flatten)]
    place: Place,
    /// Why. Whatever was charged and is not in the file is forgotten: who asked may have seen more than the budget allows.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Which ledger.
#[derive(clap::Args)]
struct Place {
    /// The ledger's file; without it the one that `whit.toml` names, or `whit.ledger`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// Show what was spent and what is left, by rung, by analyst and over time.
#[derive(clap::Args)]
struct Show {
    #[command(flatten)]
    place: Place,
    /// Only this data set.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// List every release, not only the last ones.
    #[arg(long)]
    all: bool,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
    /// Draw ε over time into a file that ends in .svg, .png or .html.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

/// Recompute every hash and every total, and name the first thing that was changed.
#[derive(clap::Args)]
struct Verify {
    #[command(flatten)]
    place: Place,
    /// A head that an earlier `verify` printed: then nothing up to it may have been written anew either.
    #[arg(long, value_name = "HEAD", value_parser = head)]
    head: Option<Head>,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

/// Let another accountant read the stored costs again.
#[derive(clap::Args)]
struct Reaccount {
    #[command(flatten)]
    place: Place,
    /// Which: pld, rdp, gdp, zcdp, advanced or basic.
    #[arg(long, value_name = "NAME", default_value = "pld")]
    accountant: Name,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

/// Write the whole ledger as lines of JSON.
#[derive(clap::Args)]
struct Export {
    #[command(flatten)]
    place: Place,
    /// One line for each rung of each release, for spreadsheets; not enough to build the ledger again.
    #[arg(long)]
    csv: bool,
}

/// Take back a reservation of which nothing came; the reason is kept.
#[derive(clap::Args)]
struct Void {
    #[command(flatten)]
    place: Place,
    /// The number of the entry.
    entry: u64,
    /// Why nothing can have left.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// So many releases are listed.
const LISTED: usize = 20;

fn head(text: &str) -> Result<Head, Wrong> {
    text.parse().map_err(|_| Wrong {
        range: "a number, a colon and 64 hexadecimal digits",
        hint: "`whit ledger verify` prints the head of a ledger: keep it elsewhere, and give it here later",
    })
}

impl Place {
    fn path(&self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.ledger {
            return Ok(path.clone());
        }
        let declared = match std::fs::read_to_string("whit.toml") {
            Ok(text) => {
                Declaration::parse(&text)
                    .map_err(|error| Error::asked(format!("whit.toml: {error}"), error.hint()))?
                    .ledger
            }
            Err(_) => None, // there need be none to look at a ledger
        };
        Ok(declared.unwrap_or_else(|| "whit.ledger".to_owned()).into())
    }

    fn open(&self) -> Result<Books, Error> {
        Ok(Books::open_existing(&self.path()?, &heads())?)
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        Self::Whit(error.into())
    }
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Ledger(error) => error.into(),
            ExportError::Output(error) => Self::Output(error),
        }
    }
}

impl Ledger {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match self.action.as_ref() {
            None => self.show.run(out, talk),
            Some(Action::Show(command)) => command.run(out, talk),
            Some(Action::Verify(command)) => command.run(out, talk),
            Some(Action::Reaccount(command)) => command.run(out, talk),
            Some(Action::Export(command)) => command.run(out),
            Some(Action::Void(command)) => command.run(talk),
            Some(Action::Accept(command)) => command.accept(talk),
            Some(Action::Reset(command)) => command.reset(talk),
        }
    }
}

impl Show {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let books = self.place.open()?;
        let view = ShowView::of(&books, self.dataset.as_deref())?;
        if self.json {
            write_json(&view, out)?;
        } else {
            self.write(&books, &view, out, talk)?;
        }
        if !self.plot.is_empty() {
            let picture = picture::of(&view.histories);
            for drawing in &self.plot {
                let page =
                    || format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Ledger</title>\n{}\n", picture.svg());
                drawing.write(picture.svg(), page, talk)?;
            }
        }
        Ok(())
    }

    fn write(&self, books: &Books, view: &ShowView, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let shown = if self.all { 0 } else { view.releases.len().saturating_sub(LISTED) };
        writeln!(out, "{}: {}", books.path().display(), view.count())?;
        if view.accounts.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        table_of(&view.accounts).write(out)?;
        if view.by_analyst.len() > view.accounts.len() {
            writeln!(out, "\nby analyst")?;
            table_of(&view.by_analyst).write(out)?;
        }
        writeln!(out, "\nreleases{}", if shown > 0 { format!(", the last {LISTED}") } else { String::new() })?;
        let columns = [
            ("entry", Side::Right),
            ("time (UTC)", Side::Left),
            ("data set", Side::Left),
            ("analyst", Side::Left),
            ("state", Side::Left),
            ("question", Side::Left),
        ];
        let mut table = Table::new(columns);
        for release in &view.releases[shown..] {
            let question: String = release.question.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut = question.chars().count() > 60;
            let question = if cut { question.chars().take(59).chain(['…']).collect() } else { question };
            let entry = release.entry.to_string();
            let (dataset, analyst) = (release.dataset.clone(), release.analyst.clone());
            table.row([entry, release.time.clone(), dataset, analyst, release.state.to_owned(), question]);
        }
        table.write(out)?;
        explain_left(&view.accounts, talk)?;
        for change in &view.changes {
            writeln!(
                talk,
                "note: from entry {} on the budget of `{}` per {} is ε = {}, where it was {}",
                change.entry, change.dataset, change.unit, change.epsilon, change.epsilon_before
            )?;
        }
        for decision in &view.decisions {
            writeln!(talk, "note: {} UTC, {}", decision.time, decision.reason)?;
        }
        if view.open > 0 {
            let verb = if view.open == 1 {
                "reservation has no result and stays"
            } else {
                "reservations have no result and stay"
            };
            writeln!(
                talk,
                "note: {} {verb} spent; if nothing left, `whit ledger void N --reason …` takes one back",
                view.open
            )?;
        }
        Ok(())
    }
}

/// Says why what is spent and what is left do not make up the budget, where they do not.
fn explain_left(accounts: &[AccountView], talk: &mut dyn Write) -> Result<(), Error> {
    let off = |account: &AccountView| match (account.budget, account.left) {
        (Some(budget), Some(left)) => (account.spent.0 + left.0 - budget.epsilon).abs() > 1e-4 * budget.epsilon,
        _ => false,
    };
    if accounts.iter().any(off) {
        writeln!(
            talk,
            "note: ε left is that of the largest release with Gaussian noise that would still fit, at the budget's δ; ε of several releases does not add up, and half of δ is kept for private keys, so that spent and left need not make up the budget"
        )?;
    }
    Ok(())
}

fn table_of(accounts: &[AccountView]) -> Table {
    let columns = [
        ("data set", Side::Left),
        ("unit", Side::Left),
        ("analyst", Side::Left),
        ("releases", Side::Right),
        ("ε spent", Side::Right),
        ("ε left", Side::Right),
        ("budget", Side::Left),
    ];
    let mut table = Table::new(columns);
    for account in accounts {
        let budget = match account.budget {
            Some(budget) => {
                format!("ε = {} at δ = {}, {}", brief(budget.epsilon), brief(budget.delta), budget.currency)
            }
            None => format!("none; told at δ = {}", brief(account.delta)),
        };
        table.row([
            account.dataset.clone(),
            account.unit.clone(),
            account.analyst.clone().unwrap_or_else(|| "all".to_owned()),
            account.releases.to_string(),
            brief_up(account.spent.0),
            account.left.map_or_else(|| "–".to_owned(), |left| brief_down(left.0)),
            budget,
        ]);
    }
    table
}

/// Whether it says nothing about what the ledger holds.
fn is_elsewhere(error: &LedgerError) -> bool {
    error.is_of_the_system()
        || matches!(
            error,
            LedgerError::Missing(_)
                | LedgerError::NotALedger { .. }
                | LedgerError::Newer { .. }
                | LedgerError::Link { .. }
                | LedgerError::Relative(_)
        )
}

impl Verify {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let path = self.place.path()?;
        // What cannot even be opened is told as what was found, where it can be something that was changed.
        let opened = match Books::open_existing(&path, &heads()) {
            Err(error) if is_elsewhere(&error) => return Err(error.into()),
            opened => opened,
        };
        let verified = opened.map_err(Fault::from).and_then(|books| match &self.head {
            None => books.verify(),
            Some(head) => books.verify_after(head),
        });
        match verified {
            Ok(verified) => {
                let view = VerifyView::of(&verified);
                if self.json {
                    return write_json(&view, out);
                }
                writeln!(
                    out,
                    "{}: as it was written; {} releases, {} events",
                    path.display(),
                    view.entries,
                    view.events
                )?;
                if !view.accounts.is_empty() {
                    writeln!(out, "\nadded up anew from the stored costs")?;
                    table_of(&view.accounts).write(out)?;
                }
                writeln!(out, "\nhead {}", view.head)?;
                writeln!(
                    talk,
                    "note: keep the head elsewhere; `whit ledger verify --head …` then finds what was written anew"
                )?;
                Ok(())
            }
            Err(fault) if !fault.is_damage() => Err(Error::failed(format!(
                "{}: {fault}\n  hint: nothing is known to be wrong with it; see to it that its files can be read, and ask again",
                path.display()
            ))),
            Err(fault) => {
                if self.json {
                    write_json(&FaultView::of(&fault), out)?;
                }
                Err(Error::failed(format!(
                    "{}: {fault}\n  hint: nothing after this can be trusted; put the files back as they were, from a backup",
                    path.display()
                )))
            }
        }
    }
}

impl Reaccount {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let books = self.place.open()?;
        let lines = books.reaccount(self.accountant, &books.budgets()?)?;
        let view: Vec<ReaccountView> = lines.iter().map(ReaccountView::of).collect();
        if self.json {
            return write_json(&view, out);
        }
        let word = self.accountant.word();
        let (upper, lower) = (format!("ε at most, {word}"), format!("ε at least, {word}"));
        let columns = [
            ("data set", Side::Left),
            ("unit", Side::Left),
            ("analyst", Side::Left),
            ("releases", Side::Right),
            ("δ", Side::Right),
            ("ε, filter", Side::Right),
            (&upper, Side::Right),
            (&lower, Side::Right),
            ("note", Side::Left),
        ];
        let mut table = Table::new(columns);
        for line in &view {
            let told = |number: Option<f64>, brief: fn(f64) -> String| number.map_or_else(|| "–".to_owned(), brief);
            table.row([
                line.dataset.clone(),
                line.unit.clone(),
                line.analyst.clone().unwrap_or_else(|| "all".to_owned()),
                line.releases.to_string(),
                brief(line.delta),
                brief_up(line.epsilon_filter.0),
                told(line.epsilon_upper.map(|upper| upper.0), brief_up),
                told(line.epsilon_lower.map(|lower| lower.0).filter(|&lower| lower > 0.0), brief_down),
                line.unsupported.clone().unwrap_or_default(),
            ]);
        }
        table.write(out)?;
        writeln!(
            talk,
            "note: the filter's figure holds whatever was asked after seeing what; an accountant's is for questions that were fixed beforehand"
        )?;
        Ok(())
    }
}

impl Export {
    fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let books = self.place.open()?;
        let written = if self.csv { books.export_csv(out) } else { books.export(out) };
        Ok(written?)
    }
}

impl Decide {
    fn accept(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let books = Books::accept(&self.place.path()?, &heads(), &self.reason)?;
        let events = books.verify().map_err(LedgerError::Changed)?.events;
        Ok(writeln!(talk, "{}: taken as it stands, with {events} events", books.path().display())?)
    }

    fn reset(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let books = Books::reset(&self.place.path()?, &heads(), &self.reason)?;
        Ok(writeln!(talk, "{}: begun anew; nothing is spent", books.path().display())?)
    }
}

impl Void {
    fn run(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let mut books = self.place.open()?;
        books.void(self.entry, &self.reason)?;
        Ok(writeln!(talk, "entry {} is void; what it had reserved is there again", self.entry)?)
    }
}
