//! Groups of bars with error bars, upright where their names fit and lying where they do not.

mod columns;
mod rows;

use super::letters::width;
use super::{EDGE, Picture, WIDTH, ticks};
use crate::measure::Measure;

/// One bar a group, all in one colour.
pub struct BarSeries {
    /// What the legend calls it.
    pub name: String,
    /// The second line of the legend; may be empty.
    pub note: String,
    /// Any SVG colour.
    pub colour: &'static str,
    /// What each bar shows, in the order of the groups; nothing where there is no number.
    pub values: Vec<Option<Measure>>,
}

/// Marks next to the groups for values that are known exactly.
pub struct ExactMarks {
    /// What the legend calls them.
    pub name: String,
    /// The second line of the legend; may be empty.
    pub note: String,
    /// Where each stands, in the order of the groups.
    pub values: Vec<f64>,
}

/// A picture of groups of bars.
pub struct BarChart {
    /// The headline.
    pub title: String,
    /// The lines under it.
    pub subtitle: String,
    /// What the bars measure.
    pub axis: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The bars, in the order in which they stand inside each group.
    pub series: Vec<BarSeries>,
    /// The exact values, where they may be shown.
    pub exact: Option<ExactMarks>,
    /// What the picture leaves out; may be empty.
    pub note: String,
}

/// The most groups of bars that stand upright.
const UPRIGHT: usize = 16;

impl BarChart {
    /// Draws the picture.
    pub fn draw(&self) -> Picture {
        let room = (WIDTH - 110.0 - EDGE) / self.groups.len().max(1) as f64;
        let fits = self.groups.iter().all(|name| width(name, 13.0) + 8.0 <= room);
        let thick = room / self.series.len().max(1) as f64 >= 12.0;
        let enough = self.groups.len() > 2 || self.series.len() > 1; // one or two bars look lost when they stand
        if fits && thick && enough && self.groups.len() <= UPRIGHT { columns::draw(self) } else { rows::draw(self) }
    }

    /// The range that the axis has to cover: all ends of intervals, all marks, and zero.
    fn range(&self) -> (f64, f64) {
        let ends = self.series.iter().flat_map(|series| series.values.iter().flatten()).flat_map(Measure::reach);
        let marks = self.exact.iter().flat_map(|exact| exact.values.iter().copied());
        let finite = ends.chain(marks).filter(|value| value.is_finite());
        let (low, high) = finite.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        if low == high { (0.0, 1.0) } else { (low, high) }
    }

    /// Whether nothing was released of a bar: that is no 0, and no bar of no height.
    fn is_gap(&self, group: usize, series: &BarSeries) -> bool {
        series.values.get(group).is_none_or(Option::is_none)
    }

    /// What one bar stands for, in words.
    fn tip(&self, group: usize, series: &BarSeries, measure: &Measure) -> String {
        let shown = measure.shown().line();
        let name = if self.series.len() > 1 { format!(", {}", series.name) } else { String::new() };
        match self.groups[group].as_str() {
            "" => format!("{}: {shown}", series.name),
            group => format!("{group}{name}: {shown}"),
        }
    }
}

/// Where an axis starts and ends, with a little air, and its ticks inside.
fn scale((low, high): (f64, f64), wanted: u32) -> (f64, f64, Vec<f64>) {
    let air = 0.03 * (high - low);
    let (start, end) = (if low < 0.0 { low - air } else { 0.0 }, if high > 0.0 { high + air } else { 0.0 });
    let inside = |tick: &f64| *tick >= start && *tick <= end;
    (start, end, ticks(low, high, wanted).into_iter().filter(inside).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bar_and_an_error_bar_inside_the_picture() {
        let series = |name: &str, colour, values: [f64; 2], error| BarSeries {
            name: name.into(),
            note: "n".into(),
            colour,
            values: values.map(|value| Some(Measure::around(value, error))).to_vec(),
        };
        let bars = BarChart {
            title: "t".into(),
            subtitle: "s".into(),
            axis: "visits".into(),
            groups: vec!["a".into(), "b".into()],
            series: vec![series("event", "red", [10.0, 20.0], 1.0), series("user", "blue", [-3.0, 25.0], 9.0)],
            exact: Some(ExactMarks { name: "exact".into(), note: "m".into(), values: vec![11.0, 19.0] }),
            note: String::new(),
        };
        let picture = bars.draw().svg;
        assert_eq!(picture.matches("class=\"error-bar\"").count(), 4);
        assert_eq!(picture.matches("fill=\"red\"").count(), 3, "two bars and the legend");
        for number in picture.split("y1=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let y: f64 = number.parse().unwrap();
            assert!((0.0..=600.0).contains(&y));
        }
        assert!(!picture.contains("NaN") && !picture.contains("height=\"-"));
    }

    fn chart(groups: Vec<String>, value: Measure) -> BarChart {
        let values = vec![Some(value); groups.len()];
        BarChart {
            title: "visits by site".into(),
            subtitle: "s".into(),
            axis: "visits".into(),
            groups,
            series: vec![BarSeries { name: "visits".into(), note: String::new(), colour: "red", values }],
            exact: None,
            note: String::new(),
        }
    }

    #[test]
    fn bars_lie_down_where_names_are_long_or_many() {
        let upright = |groups: Vec<String>| chart(groups, Measure::around(5.0, 1.0)).draw().svg.contains("rotate(-90)");
        assert!(upright(vec!["a".into(), "b".into(), "c".into()]));
        assert!(!upright(vec!["a".into(); 17]));
        assert!(!upright(vec!["a".into(), "b".into(), "long ".repeat(20)]));
    }

    #[test]
    fn what_was_not_released_is_no_bar_and_no_zero() {
        for many in [3, 20] {
            let mut chart = chart((0..many).map(|i| format!("g{i}")).collect(), Measure::around(5.0, 1.0));
            chart.series[0].values[1] = None;
            let svg = chart.draw().svg;
            assert_eq!(svg.matches("fill=\"red\"").count(), many - 1);
            assert_eq!(svg.matches(">–<").count(), 1, "{svg}");
        }
    }

    #[test]
    fn odd_values_stay_inside_the_picture() {
        let odd = |value, low, high| Measure { value, low, high, whole: false };
        let measures = [
            odd(5.0, Some(f64::NEG_INFINITY), Some(f64::INFINITY)),
            odd(f64::NAN, Some(1.0), Some(2.0)),
            odd(f64::INFINITY, None, None),
            odd(-5.0, Some(-9.0), None),
            odd(0.0, Some(0.0), Some(0.0)),
            odd(1e300, Some(-1e300), Some(1.5e300)),
            odd(3.0, Some(f64::NAN), Some(4.0)),
        ];
        for measure in measures {
            for count in [3, 20] {
                let names = (0..count).map(|i| format!("g{i}")).collect();
                let svg = chart(names, measure).draw().svg;
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{measure:?}\n{svg}");
                assert!(!svg.contains("height=\"-") && !svg.contains("width=\"-"), "{measure:?}");
            }
        }
    }

    #[test]
    fn no_groups_at_all_is_an_empty_picture() {
        assert!(chart(Vec::new(), Measure::exactly(1.0)).draw().svg.ends_with("</svg>\n"));
    }
}
