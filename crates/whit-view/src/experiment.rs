//! What came out of an experiment: tables and pictures for people, all runs for programs.

use crate::measure::{Measure, Shown, column};
use crate::number::{brief, brief_up, number_of};
use crate::page::Report;
use crate::plain::PlainText;
use crate::plot::{BarChart, BarSeries, ChartAxis, LimitLine, LineChart, PALETTE, Picture, Scale, Trace};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::learn::release::RungLoss;
use whit::train::experiment::{Found, Measured, Outcome, Varied};

/// An interval reaches so many standard errors either way, as in the papers: nine of ten times, where scores are about normal.
const REACH: f64 = 1.64;
/// What is said with every figure.
const PROTECTS: &str = "For data that is public or whose owner only looks: noise came from seeds, scores were not sanitised and nothing was charged. \
                        These figures and models are non-private; ε is what the same training would promise with secret noise.";

/// What was found, as it is shown.
pub struct Figures<'a>(&'a Found);

impl<'a> Figures<'a> {
    /// What there is to show of this.
    pub fn of(found: &'a Found) -> Self {
        Self(found)
    }
}

impl std::ops::Deref for Figures<'_> {
    type Target = Found;

    fn deref(&self) -> &Found {
        self.0
    }
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SeedMean {
    value: f64,
    /// How far the interval reaches; nothing is known from one seed.
    reach: Option<f64>,
}

impl SeedMean {
    fn of(scores: &[f64]) -> Option<Self> {
        let n = scores.len() as f64;
        let value = scores.iter().sum::<f64>() / n;
        match scores.len() {
            0 => None,
            1 => Some(Self { value, reach: None }),
            _ => {
                let variance = scores.iter().map(|score| (score - value).powi(2)).sum::<f64>() / (n - 1.0);
                Some(Self { value, reach: Some(REACH * (variance / n).sqrt()) })
            }
        }
    }

    fn measure(self, scale: f64) -> Measure {
        let end = |sign: f64| self.reach.map(|reach| scale * sign.mul_add(reach, self.value));
        Measure { value: scale * self.value, low: end(-1.0), high: end(1.0), whole: false }
    }

    fn shown(self, scale: f64) -> Shown {
        match self.reach {
            None => Shown::plain(brief(scale * self.value)),
            Some(_) => self.measure(scale).shown(),
        }
    }
}

#[derive(Serialize)]
struct FoundView<'a> {
    title: &'a str,
    measure: Measured,
    protects: &'static str,
    seeds: u64,
    across: Option<AxisView<'a>>,
    panels: Option<AxisView<'a>>,
    cells: Vec<CellView<'a>>,
    runs: Vec<OutcomeView<'a>>,
    seconds: f64,
}

#[derive(Serialize)]
struct AxisView<'a> {
    name: &'a str,
    key: Option<&'a str>,
    values: &'a [toml::Value],
}

/// One cell of a table.
#[derive(Serialize)]
struct CellView<'a> {
    panel: Option<&'a toml::Value>,
    arm: &'a str,
    value: Option<&'a toml::Value>,
    mean: f64,
    /// 1.64 standard errors.
    reach: Option<f64>,
}

#[derive(Serialize)]
struct OutcomeView<'a> {
    panel: Option<&'a toml::Value>,
    arm: &'a str,
    private: bool,
    value: Option<&'a toml::Value>,
    seed: u64,
    score: f64,
    seconds: f64,
    steps: u64,
    noise: f64,
    delta: f64,
    /// ε at δ, at most; nothing for what is not private.
    rungs: &'a [RungLoss],
}

fn axis(values: Option<&Varied>) -> Option<AxisView<'_>> {
    values.map(|values| AxisView { name: values.name(), key: values.key.as_deref(), values: &values.values })
}

fn at(values: Option<&Varied>, place: Option<usize>) -> Option<&toml::Value> {
    values.zip(place).and_then(|(values, place)| values.values.get(place))
}

fn places(values: Option<&Varied>) -> Vec<Option<usize>> {
    values.map_or_else(|| vec![None], |values| (0..values.values.len()).map(Some).collect())
}

impl Figures<'_> {
    fn across(&self) -> Option<&Varied> {
        self.design.across.as_ref()
    }

    fn panels(&self) -> Option<&Varied> {
        self.design.panels.as_ref()
    }

    fn name(&self, arm: usize) -> &str {
        &self.design.arms[arm].name
    }

    /// The mean of one cell. Arms that nothing moves have the same one in every row.
    fn mean(&self, panel: Option<usize>, arm: usize, value: Option<usize>) -> Option<SeedMean> {
        let value = value.filter(|_| !self.design.is_level(arm));
        let of = |one: &&Outcome| (one.panel, one.arm, one.value) == (panel, arm, value);
        SeedMean::of(&self.outcomes.iter().filter(of).map(|one| one.score).collect::<Vec<f64>>())
    }

    /// Shares are shown as parts of a hundred.
    fn scale(&self) -> f64 {
        if self.design.measure == Measured::Accuracy { 100.0 } else { 1.0 }
    }

    fn quantity(&self) -> &'static str {
        match self.design.measure {
            Measured::Accuracy => "accuracy, in %",
            Measured::Loss => "mean loss",
            Measured::Distance => "distance to the truth",
        }
    }

    /// What cells are.
    fn caption(&self) -> String {
        match self.seeds {
            1 => format!("{}, of one seed", self.quantity()),
            seeds => format!("{}: mean of {seeds} seeds ± {REACH} standard errors", self.quantity()),
        }
    }

    fn panel_title(&self, panel: Option<usize>) -> Option<String> {
        let panels = self.panels()?;
        Some(format!("{} = {}", panels.name(), panels.word(panel?)))
    }

    /// The table of one panel.
    fn table(&self, panel: Option<usize>) -> Table {
        let mut heads: Vec<(&str, Side)> =
            self.across().map(|across| (across.name(), Side::Right)).into_iter().collect();
        heads.extend(self.arms.iter().map(|&arm| (self.name(arm), Side::Right)));
        let rows = places(self.across());
        let columns = self.arms.iter().map(|&arm| {
            let cell = |&value: &Option<usize>| {
                self.mean(panel, arm, value).map_or_else(|| Shown::plain("–"), |mean| mean.shown(self.scale()))
            };
            column(&rows.iter().map(cell).collect::<Vec<_>>())
        });
        let columns: Vec<Vec<String>> = columns.collect();
        let mut table = Table::new(heads);
        for (row, value) in rows.iter().enumerate() {
            let first = self.across().zip(*value).map(|(across, value)| across.word(value));
            table.row(first.into_iter().chain(columns.iter().map(|column| column[row].clone())));
        }
        table
    }

    /// What each arm would promise: an ε is stated with its unit, its change and its δ.
    fn promises(&self) -> Option<Table> {
        let mut table =
            Table::new([("arm", Side::Left), ("unit", Side::Left), ("ε at most", Side::Right), ("δ", Side::Right)]);
        for &arm in self.arms.iter().filter(|&&arm| self.design.arms[arm].private) {
            let runs: Vec<&Outcome> = self.outcomes.iter().filter(|one| one.arm == arm).collect();
            let mut units: Vec<&str> = Vec::new();
            for rung in runs.iter().flat_map(|one| &one.lost) {
                if !units.contains(&rung.unit.as_str()) {
                    units.push(&rung.unit);
                }
            }
            for (place, unit) in units.into_iter().enumerate() {
                let of_unit = |one: &&Outcome| one.lost.iter().find(|rung| rung.unit == unit).map(|rung| rung.epsilon);
                let epsilons = runs.iter().filter_map(of_unit);
                let deltas = runs.iter().map(|one| one.delta);
                let name = if place == 0 { self.name(arm) } else { "" };
                table.row([name, unit, &range(epsilons, brief_up), &range(deltas, brief)]);
            }
        }
        (!table.rows().is_empty()).then_some(table)
    }

    /// Tables for people.
    pub fn write_tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut PlainText::onto(out);
        writeln!(out, "{}\n{}", self.design.title, self.caption())?;
        for panel in places(self.panels()) {
            writeln!(out)?;
            if let Some(title) = self.panel_title(panel) {
                writeln!(out, "{title}\n")?;
            }
            self.table(panel).write(out)?;
        }
        if let Some(promises) = self.promises() {
            writeln!(out)?;
            promises.write(out)?;
        }
        writeln!(out, "\n{PROTECTS}")
    }

    /// All runs, for programs.
    pub fn for_programs(&self) -> impl Serialize {
        let (across, panels) = (self.across(), self.panels());
        let mut cells = Vec::new();
        for panel in places(panels) {
            for &arm in &self.arms {
                let values = if self.design.is_level(arm) { vec![None] } else { places(across) };
                cells.extend(values.into_iter().filter_map(|value| {
                    let mean = self.mean(panel, arm, value)?;
                    let (panel, value) = (at(panels, panel), at(across, value));
                    Some(CellView { panel, arm: self.name(arm), value, mean: mean.value, reach: mean.reach })
                }));
            }
        }
        let runs = self.outcomes.iter().map(|one| OutcomeView {
            panel: at(panels, one.panel),
            arm: self.name(one.arm),
            private: self.design.arms[one.arm].private,
            value: at(across, one.value),
            seed: one.seed,
            score: one.score,
            seconds: one.seconds,
            steps: one.steps,
            noise: one.noise,
            delta: one.delta,
            rungs: &one.lost,
        });
        FoundView {
            title: &self.design.title,
            measure: self.design.measure,
            protects: PROTECTS,
            seeds: self.seeds,
            across: axis(across),
            panels: axis(panels),
            cells,
            runs: runs.collect(),
            seconds: self.seconds,
        }
    }

    /// How long all of it took, in words.
    pub fn lasted(&self) -> String {
        let runs = number_of(self.outcomes.len(), "run");
        match self.seconds {
            few if few < 120.0 => format!("{runs} in {few:.1} s"),
            many => format!("{runs} in {} min {:.0} s", (many / 60.0).floor(), many % 60.0),
        }
    }

    /// One picture: panels under one another.
    pub fn picture(&self) -> Picture {
        match self.across() {
            None => self.bars(),
            Some(across) => {
                let panels = places(self.panels());
                Picture::stack(&panels.into_iter().map(|panel| self.lines(across, panel)).collect::<Vec<_>>())
            }
        }
    }

    fn colour(&self, arm: usize) -> &'static str {
        let place = self.arms.iter().position(|&other| other == arm).unwrap_or(0);
        PALETTE[place % PALETTE.len()]
    }

    fn lines(&self, across: &Varied, panel: Option<usize>) -> Picture {
        let numbers = across.numbers();
        let along = |place: usize| numbers.as_ref().map_or(place as f64 + 1.0, |numbers| numbers[place]);
        let mut order: Vec<usize> = (0..across.values.len()).collect();
        order.sort_by(|&a, &b| along(a).total_cmp(&along(b)));
        let name = if numbers.is_some() {
            across.name().to_owned()
        } else {
            let words = order.iter().map(|&place| format!("{} {}", place + 1, across.word(place)));
            format!("{}: {}", across.name(), words.collect::<Vec<_>>().join(", "))
        };
        let (level, moved): (Vec<usize>, Vec<usize>) = self.arms.iter().partition(|&&arm| self.design.is_level(arm));
        let traces = moved.into_iter().map(|arm| Trace {
            name: self.name(arm).to_owned(),
            colour: self.colour(arm),
            steps: false,
            points: order
                .iter()
                .map(|&place| (along(place), self.mean(panel, arm, Some(place)).map(|mean| mean.measure(self.scale()))))
                .collect(),
        });
        let limits = level.into_iter().filter_map(|arm| {
            let mean = self.mean(panel, arm, None)?;
            let name = format!("{}: {}", self.name(arm), mean.shown(self.scale()).line());
            Some(LimitLine { name, colour: self.colour(arm), value: mean.value * self.scale() })
        });
        let title = match self.panel_title(panel) {
            Some(panel) => format!("{}: {panel}", self.design.title),
            None => self.design.title.clone(),
        };
        LineChart {
            title,
            subtitle: format!("{}. Not sanitised: it is non-private", self.caption()),
            across: ChartAxis { name, scale: Scale::Number },
            axis: self.quantity().to_owned(),
            traces: traces.collect(),
            limits: limits.collect(),
            note: String::new(),
        }
        .draw()
    }

    /// Where nothing is varied from row to row: a bar for each arm, and a group for each panel.
    fn bars(&self) -> Picture {
        let panels = places(self.panels());
        let series = self.arms.iter().map(|&arm| BarSeries {
            name: self.name(arm).to_owned(),
            note: String::new(),
            colour: self.colour(arm),
            values: panels.iter().map(|&panel| Some(self.mean(panel, arm, None)?.measure(self.scale()))).collect(),
        });
        BarChart {
            title: self.design.title.clone(),
            subtitle: format!("{}. Not sanitised: it is non-private", self.caption()),
            axis: self.quantity().to_owned(),
            groups: panels.iter().map(|&panel| self.panel_title(panel).unwrap_or_default()).collect(),
            series: series.collect(),
            exact: None,
            note: String::new(),
        }
        .draw()
    }

    /// The whole of it as a page.
    pub fn page(&self) -> String {
        let mut page = Report::new(self.design.title.clone()).lead(&self.caption()).picture(self.picture());
        for panel in places(self.panels()) {
            if let Some(title) = self.panel_title(panel) {
                page = page.section(&title, "");
            }
            page = page.table(&self.table(panel));
        }
        if let Some(promises) = self.promises() {
            page = page.section("What each would promise", "").table(&promises);
        }
        page.note(PROTECTS).finish()
    }
}

/// The least and the largest of some numbers, as people read them; one where they are the same.
fn range(numbers: impl Iterator<Item = f64>, written: fn(f64) -> String) -> String {
    let ends = numbers.fold(None, |ends: Option<(f64, f64)>, number| {
        Some(ends.map_or((number, number), |(low, high)| (low.min(number), high.max(number))))
    });
    match ends.map(|(low, high)| (written(low), written(high))) {
        None => "–".to_owned(),
        Some((low, high)) if low == high => low,
        Some((low, high)) => format!("{low} … {high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_wide_as_seeds_differ() {
        assert_eq!(SeedMean::of(&[]), None);
        assert_eq!(SeedMean::of(&[0.5]), Some(SeedMean { value: 0.5, reach: None }));
        // The sample deviation of 1, 2, 3 is 1.
        let mean = SeedMean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((mean.value - 2.0).abs() < 1e-12 && (mean.reach.unwrap() - 1.64 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean.shown(1.0).line(), "2.00 ± 0.95");
        assert_eq!(SeedMean { value: 0.9531, reach: None }.shown(100.0).line(), "95.31");
    }

    #[test]
    fn a_range_of_one_number_is_that_number() {
        assert_eq!(range([0.5, 2.0, 1.0].into_iter(), brief), "0.5 … 2");
        assert_eq!(range([2.0, 2.0].into_iter(), brief), "2");
        assert_eq!(range(std::iter::empty(), brief), "–");
    }
}
