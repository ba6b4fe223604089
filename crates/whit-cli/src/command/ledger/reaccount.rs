//! `whit ledger reaccount`: what another accountant says of the stored costs.

use super::Place;
use super::view::ReaccountView;
use crate::command::{Error, write_json};
use std::io::Write;
use whit::Name;
use whit_view::number::{brief, brief_down, brief_up};
use whit_view::table::{Side, Table};

/// Let another accountant read the stored costs again.
#[derive(clap::Args)]
pub(super) struct Reaccount {
    #[command(flatten)]
    place: Place,
    /// Which: pld, rdp, gdp, zcdp, advanced or basic.
    #[arg(long, value_name = "NAME", default_value = "pld")]
    accountant: Name,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

impl Reaccount {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
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
