//! `whit ledger show`: what was spent and what is left.

use super::view::{AccountView, ShowView};
use super::{Place, picture};
use crate::command::{Error, write_json};
use crate::output::{Drawing, drawing};
use std::io::Write;
use whit::account::ledger::Books;
use whit_view::number::{brief, brief_down, brief_up};
use whit_view::table::{Side, Table};

/// Show what was spent and what is left, by rung, by analyst and over time.
#[derive(clap::Args)]
pub(super) struct Show {
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

/// So many releases are listed.
const LISTED: usize = 20;

impl Show {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
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

/// Accounts, for people.
pub(super) fn table_of(accounts: &[AccountView]) -> Table {
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
