//! `whit demo`: the ladder on a small table. One histogram, one ε, protected at event, element and user level.

mod visits;

use super::{Error, write_file, write_json};
use crate::number::{self, Exact, brief, brief_up};
use crate::plot::{BLUE, Bars, GREEN, ORANGE, Series};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use whit::account::filter::{Currency, Filter};
use whit::account::ledger::Memory;
use whit::account::{Name, epsilon};
use whit::core::mechanism::laplace::{Laplace, LaplaceVector};
use whit::core::release::ReleaseError;
use whit::core::unit::{Caps, Kind};
use whit::{Bound, Change, Charge, Ladder, Mechanism, Os, Ratio, Rung, Support, Unit, release};

/// Show the ladder: one histogram protected at event, element and user level.
///
/// The table is made up and built in: which of 300 users visited which of eight sites how often. The same histogram of
/// visits is released three times with the same ε, protecting one visit, then all visits of one user to one site, then
/// all that one user did; the error bars show what each protection costs.
#[derive(clap::Args)]
pub(super) struct Demo {
    /// The ε of each release, for the unit that it protects.
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = number::positive_epsilon)]
    epsilon: f64,
    /// The folder for the picture, `demo.svg`.
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    out: PathBuf,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
}

/// The most visits of one user to one site that are counted. It is enforced, whatever is protected.
const VISITS_PER_ELEMENT: u64 = 6;
/// The confidence of the error bars, each by itself.
const CONFIDENCE: f64 = 0.95;

/// What is protected, and what one unit may contribute.
struct Level {
    kind: Kind,
    colour: &'static str,
    protects: &'static str,
    bound: Bound,
}

/// One release of the histogram.
#[derive(Serialize)]
struct LevelView {
    protects: &'static str,
    unit: String,
    scale: f64,
    error: f64,
    confidence: f64,
    values: Vec<i64>,
    costs: Vec<CostView>,
    #[serde(skip)]
    colour: &'static str,
}

/// What a release costs at one rung.
#[derive(Serialize)]
struct CostView {
    unit: String,
    change: Change,
    epsilon_upper: Exact,
}

#[derive(Serialize)]
struct DemoView {
    epsilon: f64,
    users: u64,
    visits_per_element: u64,
    sites: Vec<String>,
    exact: Vec<u64>,
    kept: Vec<u64>,
    releases: Vec<LevelView>,
    picture: PathBuf,
}

impl Demo {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let (sites, rows) = (visits::sites(), visits::visits());
        let total = |cap: u64| (0..sites.len()).map(|site| rows.iter().map(|row| row[site].min(cap)).sum()).collect();
        let (exact, kept): (Vec<u64>, Vec<u64>) = (total(u64::MAX), total(VISITS_PER_ELEMENT));
        let mut releases = Vec::new();
        for level in levels(sites.len() as u64) {
            releases.push(level.release(&kept, self.epsilon)?);
        }
        let view = DemoView {
            epsilon: self.epsilon,
            users: visits::USERS,
            visits_per_element: VISITS_PER_ELEMENT,
            sites,
            exact,
            kept,
            releases,
            picture: self.out.join("demo.svg"),
        };
        write_file(view.picture.clone(), &view.picture().draw(), talk)?;
        if self.json { write_json(&view, out) } else { Ok(view.write_table(out)?) }
    }
}

/// The three protections. Every user may visit every site, so a user has at most as many elements as there are sites.
fn levels(sites: u64) -> [Level; 3] {
    let most = VISITS_PER_ELEMENT as i64;
    let within = |groups, high, support| Bound::Coordinates { groups, low: 0, high, support };
    [
        // A visit that becomes another leaves one bar and joins one.
        Level { kind: Kind::Event, colour: BLUE, protects: "one visit", bound: within(1, 1, Support::NonNegative) },
        // The element is the bar, so it stays at its bar whatever its rows become.
        Level {
            kind: Kind::Element,
            colour: ORANGE,
            protects: "one user's visits to one site",
            bound: within(1, most, Support::Single),
        },
        // A user is in all bars or fewer, and stays in them.
        Level {
            kind: Kind::User,
            colour: GREEN,
            protects: "all visits of one user",
            bound: within(sites, most, Support::Fixed { may_be_empty: true }),
        },
    ]
}

impl Level {
    fn unit(&self) -> Unit {
        match self.kind {
            Kind::Event => Unit::event(Change::Replace),
            Kind::Element | Kind::Feature | Kind::Label => Unit::element("user", "site"),
            Kind::User => Unit::user("user", Change::Replace),
        }
    }

    fn release(&self, kept: &[u64], asked: f64) -> Result<LevelView, Error> {
        let failed = |why: &dyn std::error::Error| Error::Failed(format!("the {} release failed: {why}", self.kind));
        let units =
            vec![Unit::event(Change::Replace), Unit::element("user", "site"), Unit::user("user", Change::Replace)];
        let caps = Caps { elements_per_user: Some(kept.len() as u64), rows_per_element: Some(VISITS_PER_ELEMENT) };
        let ladder = Ladder::new(units, caps, self.kind).map_err(|why| failed(&why))?;
        // The three releases are alternatives, so each has a budget of its own; charges round up, hence the hair.
        let budget = Filter::new(asked * (1.0 + 1e-9), 0.0, Currency::Sum).map_err(|why| failed(&why))?;
        let mut ledger = Memory::new().with_budget(self.unit(), budget);
        // Rounded down, so that no release costs more than was asked for.
        let exactly = Ratio::from_f64_down(asked).map_err(|why| failed(&why))?;
        let mechanism =
            LaplaceVector::for_epsilon(self.bound, kept.len(), Change::Replace, exactly).map_err(|why| failed(&why))?;
        let one_bar = Laplace::new(self.bound, *mechanism.scale()).map_err(|why| failed(&why))?;
        let exact: Vec<i64> = kept.iter().map(|&count| count as i64).collect();
        let mut rungs = ladder.rungs().to_vec();
        if self.kind == Kind::Element {
            // A ladder counts the elements that a replaced user leaves and those that come instead. Here the elements
            // are the sites of a public list, so there are no more of them than that.
            for rung in &mut rungs {
                rung.holds = rung.holds.min(kept.len() as u64);
            }
        }
        let released = release(&mechanism, &exact, &rungs, &mut ledger, &mut Os).map_err(|why| match why {
            ReleaseError::Refused(refusal) => Error::Refused(refusal.to_string()),
            ReleaseError::NoRung
            | ReleaseError::Sanitise(_)
            | ReleaseError::Ledger(_)
            | ReleaseError::Commit(_) => failed(&why),
        })?;
        let mut charge: Charge = Vec::new();
        for finer in levels(kept.len() as u64).iter().take_while(|finer| finer.kind != self.kind) {
            // A finer unit is in no ledger here, but what it contributes is bounded too, so its cost is known.
            let rung = Rung { unit: finer.unit(), holds: 1, disjoint: false };
            let same_noise =
                LaplaceVector::new(finer.bound, kept.len(), *mechanism.scale()).map_err(|why| failed(&why))?;
            let cost = same_noise.cost(&rung);
            charge.push((rung, cost));
        }
        charge.extend(released.charge);
        let mut costs = Vec::new();
        for (rung, cost) in &charge {
            let loss = epsilon(cost, 0.0, Name::Basic).map_err(|why| failed(&why))?;
            costs.push(CostView {
                unit: rung.unit.to_string(),
                change: rung.unit.change(),
                epsilon_upper: Exact(loss.upper),
            });
        }
        Ok(LevelView {
            protects: self.protects,
            unit: self.kind.to_string(),
            scale: mechanism.scale().to_f64(),
            error: one_bar.accuracy(CONFIDENCE).within,
            confidence: CONFIDENCE,
            values: released.value,
            costs,
            colour: self.colour,
        })
    }
}

impl DemoView {
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "One histogram, one ε = {}, three things to protect\n", brief(self.epsilon))?;
        writeln!(
            out,
            "{} made-up users visited {} sites. Of one user's visits to one site",
            self.users,
            self.sites.len()
        )?;
        let (all, kept): (u64, u64) = (self.exact.iter().sum(), self.kept.iter().sum());
        writeln!(out, "at most {} are counted, so {} of {all} visits are.\n", self.visits_per_element, kept)?;
        let fixed =
            [("site".to_owned(), Side::Left), ("visits".to_owned(), Side::Right), ("counted".to_owned(), Side::Right)];
        let levels = self.releases.iter().map(|level| (format!("{} level", level.unit), Side::Right));
        let mut table = Table::new(fixed.into_iter().chain(levels));
        for (i, site) in self.sites.iter().enumerate() {
            let fixed = [site.clone(), self.exact[i].to_string(), self.kept[i].to_string()];
            let noisy = self.releases.iter().map(|level| format!("{} ± {}", level.values[i], level.error));
            table.row(fixed.into_iter().chain(noisy));
        }
        table.write(out)?;
        writeln!(
            out,
            "\n± holds for each bar with {} % probability, around the counted visits. The exact columns are",
            CONFIDENCE * 100.0
        )?;
        writeln!(out, "shown only because the data are made up. The noise is discrete Laplace, drawn exactly.\n")?;
        self.write_ladder(out)
    }

    /// What each release costs, rung by rung.
    fn write_ladder(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "What each release costs, rung by rung (ε, under replace)\n")?;
        let heading = [("release".to_owned(), Side::Left), ("protects".to_owned(), Side::Left)];
        let units = self.releases.iter().map(|level| (format!("one {}", level.unit), Side::Right));
        let mut table = Table::new(heading.into_iter().chain(units));
        for level in &self.releases {
            let cells = [format!("{} level", level.unit), level.protects.to_owned()];
            table.row(cells.into_iter().chain(level.costs.iter().map(|cost| brief_up(cost.epsilon_upper.0))));
        }
        table.write(out)
    }

    fn picture(&self) -> Bars {
        let series = self.releases.iter().map(|level| Series {
            name: format!("{} level, ± {}", level.unit, level.error),
            note: level.protects.to_owned(),
            colour: level.colour,
            values: level.values.iter().map(|&value| value as f64).collect(),
            error: level.error,
        });
        Bars {
            title: format!("One histogram, one ε = {}, three things to protect", brief(self.epsilon)),
            subtitle: format!(
                "Visits of {} made-up users to {} sites. Error bars hold with {} % each.",
                self.users,
                self.sites.len(),
                CONFIDENCE * 100.0
            ),
            axis: "visits".into(),
            groups: self.sites.iter().map(|site| site.trim_end_matches(".example").to_owned()).collect(),
            series: series.collect(),
            marks: self.kept.iter().map(|&count| count as f64).collect(),
            marked: ("exact count".into(), "known only because it is made up".into()),
        }
    }
}
