//! Lines with bands over numbers or time, and steps such as what a ledger has spent.

use super::frame::{LegendEntry, Sign, heading, legend, note};
use super::letters::{fit, width};
use super::{Anchor, EDGE, Picture, Svg, WIDTH, tick_labels, ticks, time};
use crate::measure::Measure;
use std::fmt::Write as _;

/// What the horizontal axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Numbers.
    Number,
    /// Seconds since 1970.
    Time,
}

/// The horizontal axis.
pub struct ChartAxis {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub scale: Scale,
}

/// One line.
pub struct Trace {
    /// What the legend calls it.
    pub name: String,
    /// Any SVG colour.
    pub colour: &'static str,
    /// Whether a value holds until the next point, instead of leading there.
    pub steps: bool,
    /// From left to right; nothing where there is no number, which breaks the line.
    pub points: Vec<(f64, Option<Measure>)>,
}

/// A level that lines should stay under, such as a budget.
pub struct LimitLine {
    /// What it is; stands on the line.
    pub name: String,
    /// Any SVG colour.
    pub colour: &'static str,
    /// Where it is.
    pub value: f64,
}

/// A picture of lines.
pub struct LineChart {
    /// The headline.
    pub title: String,
    /// The lines under it.
    pub subtitle: String,
    /// The horizontal axis.
    pub across: ChartAxis,
    /// What the heights measure.
    pub axis: String,
    /// The lines.
    pub traces: Vec<Trace>,
    /// The levels.
    pub limits: Vec<LimitLine>,
    /// What the picture leaves out; may be empty.
    pub note: String,
}

/// The height of the part with the lines.
const TALL: f64 = 320.0;
/// How dark a band is.
const SHADE: f64 = 0.16;
/// The most points of a line that get a dot each.
const DOTS: usize = 120;

/// From the picture's numbers to its pixels.
struct PlotArea {
    left: f64,
    right: f64,
    top: f64,
    across: (f64, f64),
    up: (f64, f64),
}

impl PlotArea {
    fn x(&self, value: f64) -> f64 {
        (self.right - self.left).mul_add((value - self.across.0) / (self.across.1 - self.across.0), self.left)
    }

    /// Values beyond the axis, such as infinite ends, stay at its end.
    fn y(&self, value: f64) -> f64 {
        let inside = value.clamp(self.up.0, self.up.1);
        TALL.mul_add((self.up.1 - inside) / (self.up.1 - self.up.0), self.top)
    }
}

impl LineChart {
    /// Draws the picture.
    pub fn draw(&self) -> Picture {
        let mut svg = Svg::new(&self.title, &self.subtitle);
        let above = heading(&mut svg, &self.title, &self.subtitle);
        let entries = self.traces.iter().map(|trace| LegendEntry {
            sign: Sign::Line(trace.colour, false),
            name: &trace.name,
            note: "",
        });
        let entries: Vec<LegendEntry> = entries.filter(|_| self.traces.len() > 1).collect();
        let top = legend(&mut svg, &entries, above) + 24.0;
        let floor = top + TALL;

        let (up, marks) = self.up();
        let labels = tick_labels(&marks);
        let widest = labels.iter().map(|label| width(label, 12.0)).fold(0.0, f64::max);
        let left = EDGE + 22.0 + widest + 8.0;
        let area = PlotArea { left, right: WIDTH - EDGE - 12.0, top, across: self.across(), up };
        for (&tick, label) in marks.iter().zip(&labels) {
            svg.line("grid", (left, area.y(tick)), (area.right, area.y(tick)));
            svg.text("tick", (left - 8.0, area.y(tick) + 4.0), Anchor::End, label);
        }
        svg.text_upwards("label", (EDGE + 6.0, f64::midpoint(top, floor)), &self.axis);
        let end = self.draw_across(&mut svg, &area, floor);
        for trace in &self.traces {
            band(&mut svg, trace, &area);
        }
        for trace in &self.traces {
            self.draw_line(&mut svg, trace, &area);
        }
        for limit in self.limits.iter().filter(|limit| limit.value.is_finite()) {
            let y = area.y(limit.value);
            let stroke =
                format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"6 5\"", limit.colour);
            svg.path(&format!("M{:.1} {y:.1}H{:.1}", area.left, area.right), &stroke);
            let name = fit(&limit.name, 12.0, area.right - area.left);
            svg.text("tick", (area.left + 6.0, y - 6.0), Anchor::Start, &name);
        }
        svg.line("axis", (left, floor), (area.right, floor));
        svg.line("axis", (left, top), (left, floor));
        let end = note(&mut svg, &self.note, end);
        svg.finish(WIDTH, end + 16.0)
    }

    /// The horizontal axis with its labels; returns how far down they reach.
    fn draw_across(&self, svg: &mut Svg, area: &PlotArea, floor: f64) -> f64 {
        let mut under = 0.0;
        match self.across.scale {
            Scale::Time => {
                for mark in time::marks(area.across.0, area.across.1, 12) {
                    svg.line("axis", (area.x(mark.at), floor), (area.x(mark.at), floor + 5.0));
                    svg.text("tick", (area.x(mark.at), floor + 20.0), Anchor::Middle, &mark.label);
                    if let Some(context) = mark.under {
                        svg.text("tick", (area.x(mark.at), floor + 36.0), Anchor::Middle, &context);
                        under = 16.0;
                    }
                }
            }
            Scale::Number => {
                let marks: Vec<f64> = ticks(area.across.0, area.across.1, 10)
                    .into_iter()
                    .filter(|tick| (area.across.0..=area.across.1).contains(tick))
                    .collect();
                for (tick, label) in marks.iter().zip(tick_labels(&marks)) {
                    svg.line("axis", (area.x(*tick), floor), (area.x(*tick), floor + 5.0));
                    svg.text("tick", (area.x(*tick), floor + 20.0), Anchor::Middle, &label);
                }
            }
        }
        let y = floor + 42.0 + under;
        svg.text("label", (f64::midpoint(area.left, area.right), y), Anchor::Middle, &self.across.name);
        y + 6.0
    }

    /// The line itself, with a dot that tells its value at each point.
    fn draw_line(&self, svg: &mut Svg, trace: &Trace, area: &PlotArea) {
        let runs = runs(trace);
        for (r, run) in runs.iter().enumerate() {
            let mut data = String::new();
            for (i, (x, measure)) in run.iter().enumerate() {
                let (x, y) = (area.x(*x), area.y(measure.value));
                let _ = match (i, trace.steps) {
                    (0, _) => write!(data, "M{x:.1} {y:.1}"),
                    (_, false) => write!(data, "L{x:.1} {y:.1}"),
                    (_, true) => write!(data, "H{x:.1}V{y:.1}"),
                };
            }
            if trace.steps && r + 1 == runs.len() {
                let _ = write!(data, "H{:.1}", area.right); // what was spent stays spent
            }
            let colour = trace.colour;
            let attributes = "class=\"curve\" fill=\"none\" stroke-width=\"2.2\" stroke-linejoin=\"round\"";
            svg.path(&data, &format!("{attributes} stroke=\"{colour}\""));
            for (x, measure) in run.iter().filter(|_| trace.points.len() <= DOTS || run.len() == 1) {
                svg.begin(&self.tip(trace, *x, measure));
                let radius = if trace.points.len() <= DOTS / 3 { 3.2 } else { 2.2 };
                svg.dot((area.x(*x), area.y(measure.value)), radius, colour);
                svg.end();
            }
        }
    }

    /// What one point stands for, in words.
    fn tip(&self, trace: &Trace, x: f64, measure: &Measure) -> String {
        let x = match self.across.scale {
            Scale::Number => Measure::exactly(x).in_full(),
            Scale::Time => time::write(x),
        };
        let name = if self.traces.len() > 1 { format!(", {}", trace.name) } else { String::new() };
        format!("{x}{name}: {}", measure.shown().line())
    }

    fn across(&self) -> (f64, f64) {
        let places = self.traces.iter().flat_map(|trace| trace.points.iter().map(|(x, _)| *x));
        let (low, high) = span(places.filter(|x| x.is_finite())).unwrap_or((0.0, 1.0));
        if low < high { (low, high) } else { (low - 0.5, high + 0.5) }
    }

    /// The vertical range, and the ticks in it. Zero is in it unless the lines stay far away from it.
    fn up(&self) -> ((f64, f64), Vec<f64>) {
        let ends = self.traces.iter().flat_map(|trace| trace.points.iter().filter_map(|(_, measure)| measure.as_ref()));
        let limits = self.limits.iter().map(|limit| limit.value).filter(|value| value.is_finite());
        let (low, high) = span(ends.flat_map(Measure::reach).chain(limits)).unwrap_or((0.0, 1.0));
        let far = low > 0.6 * high || high < 0.6 * low;
        let stepped = self.traces.iter().any(|trace| trace.steps);
        let (low, high) = if far && !stepped && low < high { (low, high) } else { (low.min(0.0), high.max(0.0)) };
        let (low, high) = if low < high { (low, high) } else { (low, low + 1.0) };
        let air = 0.04 * (high - low);
        let range = (if low == 0.0 { 0.0 } else { low - air }, if high == 0.0 { 0.0 } else { high + air });
        let inside = |tick: &f64| (range.0..=range.1).contains(tick);
        (range, ticks(low, high, 8).into_iter().filter(inside).collect())
    }
}

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, v| Some(span.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}

/// The runs of points between gaps.
fn runs(trace: &Trace) -> Vec<Vec<(f64, Measure)>> {
    let mut runs = vec![Vec::new()];
    for (x, measure) in &trace.points {
        match measure.filter(|measure| measure.value.is_finite() && x.is_finite()) {
            Some(measure) => runs.last_mut().expect("there is always one").push((*x, measure)),
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// What lies between the lower and the upper ends.
fn band(svg: &mut Svg, trace: &Trace, area: &PlotArea) {
    for run in runs(trace) {
        let known = |(x, measure): &(f64, Measure)| {
            let (low, high) = (measure.low?, measure.high?);
            (!low.is_nan() && !high.is_nan() && low < high).then_some((area.x(*x), area.y(low), area.y(high)))
        };
        for part in run.iter().map(known).collect::<Vec<_>>().split(Option::is_none) {
            let ends: Vec<(f64, f64, f64)> = part.iter().flatten().copied().collect();
            if let [(x, low, high)] = ends[..] {
                svg.path(&format!("M{x:.1} {low:.1}V{high:.1}"), "class=\"error-bar\"");
                continue;
            }
            let mut data = String::new();
            for (i, (x, _, high)) in ends.iter().enumerate() {
                let _ = write!(data, "{}{x:.1} {high:.1}", if i == 0 { "M" } else { "L" });
            }
            for (x, low, _) in ends.iter().rev() {
                let _ = write!(data, "L{x:.1} {low:.1}");
            }
            if !ends.is_empty() {
                let attributes = format!("class=\"band\" fill=\"{}\" fill-opacity=\"{SHADE}\"", trace.colour);
                svg.path(&(data + "Z"), &attributes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(points: Vec<(f64, Option<Measure>)>, steps: bool, scale: Scale) -> String {
        let trace = Trace { name: "visits".into(), colour: "red", steps, points };
        let limits = vec![LimitLine { name: "budget".into(), colour: "red", value: 30.0 }];
        let lines = LineChart {
            title: "visits by day".into(),
            subtitle: String::new(),
            across: ChartAxis { name: "day".into(), scale },
            axis: "visits".into(),
            traces: vec![trace],
            limits,
            note: String::new(),
        };
        lines.draw().svg
    }

    #[test]
    fn a_gap_breaks_the_line_and_its_band() {
        let at = |x: i32| (f64::from(x), Some(Measure::around(10.0, 2.0)));
        let svg = picture(vec![at(0), at(1), (2.0, None), at(3), at(4)], false, Scale::Number);
        assert_eq!(svg.matches("class=\"curve\"").count(), 2);
        assert_eq!(svg.matches("class=\"band\"").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn steps_hold_to_the_right_edge() {
        let at = |x: i32, y: i32| (f64::from(x), Some(Measure::exactly(f64::from(y))));
        let svg = picture(vec![at(0, 1), at(1, 5), at(2, 9)], true, Scale::Time);
        let curve = svg.split("<path d=\"").find(|path| path.contains("class=\"curve\"")).expect("a curve");
        let data = curve.split('"').next().expect("its data");
        assert_eq!((data.matches('H').count(), data.matches('V').count(), data.matches('L').count()), (3, 2, 0));
        assert!(data.ends_with("H944.0"), "{data}");
    }

    #[test]
    fn odd_points_stay_inside_the_picture() {
        let odd = |value, low, high| Some(Measure { value, low, high, whole: false });
        let points = vec![
            (f64::NAN, odd(1.0, None, None)),
            (0.0, odd(f64::NAN, None, None)),
            (1.0, odd(5.0, Some(f64::NEG_INFINITY), Some(f64::INFINITY))),
            (2.0, odd(5.0, Some(f64::NAN), Some(7.0))),
            (3.0, odd(5.0, Some(4.0), Some(7.0))),
        ];
        for scale in [Scale::Number, Scale::Time] {
            let svg = picture(points.clone(), false, scale);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(picture(Vec::new(), true, scale).ends_with("</svg>\n"));
        }
    }
}
