//! Groups of bars with error bars.

use super::{Anchor, Svg, ticks};

/// One bar a group, all in one colour and with one error.
pub(crate) struct Series {
    /// What the legend calls it, and what it says under the name.
    pub(crate) name: String,
    /// The second line of the legend.
    pub(crate) note: String,
    /// Any SVG colour.
    pub(crate) colour: &'static str,
    /// The height of each bar, in the order of the groups.
    pub(crate) values: Vec<f64>,
    /// Half the length of the error bars.
    pub(crate) error: f64,
}

/// A picture of groups of bars.
pub(crate) struct Bars {
    /// The headline.
    pub(crate) title: String,
    /// The line under it.
    pub(crate) subtitle: String,
    /// What the heights count.
    pub(crate) axis: String,
    /// The names under the groups.
    pub(crate) groups: Vec<String>,
    /// The bars, from left to right inside each group.
    pub(crate) series: Vec<Series>,
    /// The height of the marks on both sides of each group.
    pub(crate) marks: Vec<f64>,
    /// What the legend says of the marks, in two lines.
    pub(crate) marked: (String, String),
}

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 500.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 136.0;
const BOTTOM: f64 = 44.0;
/// The share of a group's room that its bars take.
const FILLED: f64 = 0.8;

impl Bars {
    /// Draws the picture.
    pub(crate) fn draw(&self) -> String {
        let reach =
            |series: &Series, side: f64| series.values.iter().map(|v| v + side * series.error).collect::<Vec<_>>();
        let ends = self.series.iter().flat_map(|s| [reach(s, 1.0), reach(s, -1.0)]).flatten();
        let (low, high) = ends
            .chain(self.marks.iter().copied())
            .fold((0.0, 1.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        let ticks = ticks(low, high, 8);
        let air = 0.03 * (high - low);
        let (bottom, top) = (if low < 0.0 { low - air } else { 0.0 }, high + air);
        let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (top - value) / (top - bottom);

        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title, &self.subtitle);
        svg.text("title", (LEFT - 54.0, 34.0), Anchor::Start, &self.title);
        svg.text("subtitle", (LEFT - 54.0, 56.0), Anchor::Start, &self.subtitle);
        self.legend(&mut svg);
        for &tick in ticks.iter().filter(|&&tick| tick >= bottom && tick <= top) {
            svg.line("grid", (LEFT, y(tick)), (WIDTH - RIGHT, y(tick)));
            svg.text("tick", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &tick.to_string().replace('-', "−"));
        }
        svg.text_upwards("label", (24.0, f64::midpoint(TOP, HEIGHT - BOTTOM)), &self.axis);

        let room = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let wide = room * FILLED / self.series.len().max(1) as f64;
        for (g, group) in self.groups.iter().enumerate() {
            let start = LEFT + room * (g as f64 + (1.0 - FILLED) / 2.0);
            for (s, series) in self.series.iter().enumerate() {
                let x = start + wide * s as f64;
                let (from, to) = (y(series.values[g].max(0.0)), y(series.values[g].min(0.0)));
                svg.bar((x + 1.0, from), wide - 2.0, to - from, series.colour);
            }
            let (mark, end) = (y(self.marks[g]), start + room * FILLED);
            svg.line("exact", (start - 9.0, mark), (start - 1.0, mark));
            svg.line("exact", (end + 1.0, mark), (end + 9.0, mark));
            for (s, series) in self.series.iter().enumerate() {
                let x = start + wide * (s as f64 + 0.5);
                let (above, below) = (y(series.values[g] + series.error), y(series.values[g] - series.error));
                let cap = wide.mul_add(0.2, 1.0);
                let data = format!(
                    "M{:.1} {above:.1}H{:.1}M{x:.1} {above:.1}V{below:.1}M{:.1} {below:.1}H{:.1}",
                    x - cap,
                    x + cap,
                    x - cap,
                    x + cap
                );
                svg.path(&data, "class=\"error-bar\"");
            }
            svg.text("label", (start + room * FILLED / 2.0, HEIGHT - BOTTOM + 24.0), Anchor::Middle, group);
        }
        svg.line("axis", (LEFT, y(0.0)), (WIDTH - RIGHT, y(0.0)));
        svg.finish()
    }

    fn legend(&self, svg: &mut Svg) {
        let start = LEFT - 54.0;
        let room = (WIDTH - start - RIGHT) / (self.series.len() + 1) as f64;
        for (i, series) in self.series.iter().enumerate() {
            let x = room.mul_add(i as f64, start);
            svg.bar((x, 79.0), 14.0, 30.0, series.colour);
            svg.text("strong", (x + 23.0, 91.0), Anchor::Start, &series.name);
            svg.text("tick", (x + 23.0, 108.0), Anchor::Start, &series.note);
        }
        let x = room.mul_add(self.series.len() as f64, start);
        svg.line("exact", (x, 87.0), (x + 14.0, 87.0));
        svg.text("strong", (x + 23.0, 91.0), Anchor::Start, &self.marked.0);
        svg.text("tick", (x + 23.0, 108.0), Anchor::Start, &self.marked.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bar_and_an_error_bar_inside_the_picture() {
        let bars = Bars {
            title: "t".into(),
            subtitle: "s".into(),
            axis: "visits".into(),
            groups: vec!["a".into(), "b".into()],
            series: vec![
                Series { name: "event".into(), note: "n".into(), colour: "red", values: vec![10.0, 20.0], error: 1.0 },
                Series { name: "user".into(), note: "n".into(), colour: "blue", values: vec![-3.0, 25.0], error: 9.0 },
            ],
            marks: vec![11.0, 19.0],
            marked: ("exact".into(), "m".into()),
        };
        let picture = bars.draw();
        assert_eq!(picture.matches("class=\"error-bar\"").count(), 4);
        assert_eq!(picture.matches("fill=\"red\"").count(), 3, "two bars and the legend");
        for number in picture.split("y1=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let y: f64 = number.parse().unwrap();
            assert!((0.0..=HEIGHT).contains(&y));
        }
        assert!(!picture.contains("NaN") && !picture.contains("height=\"-"));
    }
}
