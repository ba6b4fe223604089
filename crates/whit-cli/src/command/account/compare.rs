//! Every accountant's answer, side by side.

use super::super::{Error, write_json};
use super::run::{DeltaOption, NoiseOption, RateOption, Relation, RunView, StepsOption, other};
use serde::Serialize;
use std::io::{self, Write};
use whit::Cost;
use whit::account::accountant::gdp;
use whit::account::{Name, epsilon_by};
use whit_view::number::{Exact, brief, brief_down, brief_up};
use whit_view::table::{Side, Table};

/// Every accountant's answer, side by side.
#[derive(clap::Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    delta: DeltaOption,
    #[command(flatten)]
    relation: Relation,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CompareView {
    accountant: Option<Name>,
    epsilon_upper: Option<Exact>,
    epsilon_lower: Exact,
    delta: f64,
    #[serde(flatten)]
    run: RunView,
    accountants: Vec<Row>,
}

/// What one accountant says.
#[derive(Serialize)]
struct Row {
    accountant: Name,
    epsilon_upper: Option<Exact>,
    epsilon_lower: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_approximate: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approximation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<String>,
}

impl Row {
    fn upper(&self) -> f64 {
        self.epsilon_upper.map_or(f64::INFINITY, |Exact(upper)| upper)
    }
}

/// The only name under which the limit theorem's figure ever appears.
const LIMIT: &str = "central limit theorem, not a bound";

/// What the central limit theorem makes of a run that draws; without drawing the accountant itself is exact.
fn limit(cost: &Cost, rate: f64, delta: f64) -> Option<f64> {
    let limit = gdp::clt(cost).filter(|_| rate < 1.0)?;
    Some(limit.approximate_epsilon(delta)).filter(|epsilon| epsilon.is_finite())
}

impl Compare {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (noise, rate, steps, delta) = (self.noise.noise, self.rate.rate, self.steps.steps, self.delta.delta);
        let step = self.relation.step(noise, rate)?;
        let cost = Cost::Sampled(step).repeat(steps);
        let accountants: Vec<Row> = Name::ALL
            .into_iter()
            .map(|accountant| {
                let told = epsilon_by(&cost, delta, accountant);
                let by = told.as_ref().ok().and_then(|told| other(told.1, accountant));
                let told = told.map(|told| told.0);
                let bound = told.as_ref().map_or(f64::INFINITY, |loss| loss.upper);
                // A limit that lies above the bound says only that the run is far from it.
                let limit = if accountant == Name::Gdp { limit(&cost, rate, delta) } else { None };
                let approximate = limit.filter(|&limit| limit < bound);
                Row {
                    accountant,
                    epsilon_upper: told.as_ref().ok().map(|loss| Exact(loss.upper)),
                    epsilon_lower: told.as_ref().ok().map(|loss| Exact(loss.lower)),
                    epsilon_approximate: approximate.map(Exact),
                    approximation: approximate.map(|_| LIMIT),
                    upper_by: by,
                    unsupported: told.err().map(|why| why.to_string()),
                }
            })
            .collect();
        let known = |row: &&Row| row.epsilon_upper.is_some();
        let best = accountants.iter().filter(known).min_by(|a, b| a.upper().total_cmp(&b.upper()));
        let lower =
            accountants.iter().filter_map(|row| row.epsilon_lower).fold(0.0, |most, Exact(lower)| lower.max(most));
        let view = CompareView {
            accountant: best.map(|row| row.accountant),
            epsilon_upper: best.and_then(|row| row.epsilon_upper),
            epsilon_lower: Exact(lower),
            delta,
            run: self.relation.view(noise, rate, steps),
            accountants,
        };
        if self.json { write_json(&view, out) } else { Ok(view.write_table(out)?) }
    }
}

impl CompareView {
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "ε at δ = {}, as each accountant sees it", brief(self.delta))?;
        self.run.write(out)?;
        writeln!(out)?;
        let columns = [
            ("accountant", Side::Left),
            ("ε at most", Side::Right),
            ("ε at least", Side::Right),
            ("kind", Side::Left),
            ("note", Side::Left),
        ];
        let mut table = Table::new(columns);
        for row in &self.accountants {
            let bound = (row.epsilon_upper, row.epsilon_lower);
            let (upper, lower, kind) = match bound {
                (Some(Exact(upper)), Some(Exact(lower))) if lower > 0.0 => {
                    (brief_up(upper), brief_down(lower), "bound, both sides")
                }
                (Some(Exact(upper)), _) => (brief_up(upper), "–".into(), "bound"),
                (None, _) => ("–".into(), "–".into(), "no answer"),
            };
            table.row([
                row.accountant.word().to_owned(),
                upper,
                lower,
                kind.to_owned(),
                match row.upper_by {
                    Some(by) => format!("the upper bound is {by}'s"),
                    None => row.unsupported.clone().unwrap_or_default(),
                },
            ]);
            if let (Some(Exact(value)), Some(what)) = (row.epsilon_approximate, row.approximation) {
                let name = format!("({})", row.accountant);
                table.row([name, format!("≈ {}", brief(value)), "–".into(), "approximation".into(), what.to_owned()]);
            }
        }
        table.write(out)
    }
}
