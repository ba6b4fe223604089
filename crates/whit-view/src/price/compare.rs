//! Every accountant's answer, side by side.

use super::run::{RunView, other};
use crate::number::{Exact, brief, brief_down, brief_up};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::account::Name;
use whit::price::{Opinion, SampledRun};

/// What the accountants say of a run.
#[derive(Serialize)]
pub struct CompareView {
    accountant: Option<Name>,
    epsilon_upper: Option<Exact>,
    epsilon_lower: Exact,
    delta: f64,
    #[serde(flatten)]
    run: RunView,
    accountants: Vec<OpinionRow>,
}

/// What one accountant says.
#[derive(Serialize)]
struct OpinionRow {
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

impl OpinionRow {
    fn of(opinion: &Opinion) -> Self {
        let Opinion { accountant, loss, limit } = opinion;
        let known = loss.as_ref().ok();
        Self {
            accountant: *accountant,
            epsilon_upper: known.map(|(loss, _)| Exact(loss.upper)),
            epsilon_lower: known.map(|(loss, _)| Exact(loss.lower)),
            epsilon_approximate: limit.map(Exact),
            approximation: limit.map(|_| LIMIT),
            upper_by: known.and_then(|(_, by)| other(*by, *accountant)),
            unsupported: loss.as_ref().err().map(ToString::to_string),
        }
    }

    fn upper(&self) -> f64 {
        self.epsilon_upper.map_or(f64::INFINITY, |Exact(upper)| upper)
    }
}

/// The only name under which the limit theorem's figure ever appears.
const LIMIT: &str = "central limit theorem, not a bound";

impl CompareView {
    /// Their opinions at this δ, and the least upper bound of all.
    pub fn of(run: &SampledRun, opinions: &[Opinion], delta: f64) -> Self {
        let accountants: Vec<OpinionRow> = opinions.iter().map(OpinionRow::of).collect();
        let known = |row: &&OpinionRow| row.epsilon_upper.is_some();
        let best = accountants.iter().filter(known).min_by(|a, b| a.upper().total_cmp(&b.upper()));
        let lower =
            accountants.iter().filter_map(|row| row.epsilon_lower).fold(0.0, |most, Exact(lower)| lower.max(most));
        Self {
            accountant: best.map(|row| row.accountant),
            epsilon_upper: best.and_then(|row| row.epsilon_upper),
            epsilon_lower: Exact(lower),
            delta,
            run: RunView::of(run),
            accountants,
        }
    }

    /// A line for each.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
