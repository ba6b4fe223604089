//! Curves over the unit square.

use super::{Anchor, Svg, ticks};
use std::fmt::Write as _;

/// One curve and what it is.
pub struct CurveLine {
    /// What the legend calls it.
    pub name: String,
    /// Any SVG colour.
    pub colour: &'static str,
    /// Whether it is drawn with dashes.
    pub dashed: bool,
    /// From left to right, both coordinates in [0, 1].
    pub points: Vec<(f64, f64)>,
}

/// A picture of curves, of which the first bounds from below what can happen.
pub struct CurveChart {
    /// The headline.
    pub title: String,
    /// The line under it.
    pub subtitle: String,
    /// The names of the two axes.
    pub axes: (String, String),
    /// The curves; what lies under the first is shaded.
    pub lines: Vec<CurveLine>,
    /// What the shaded part is.
    pub shaded: String,
}

const SIDE: f64 = 480.0;
/// How dark the shaded part is.
const SHADE: f64 = 0.13;
const LEFT: f64 = 78.0;
const TOP: f64 = 84.0;
const WIDTH: f64 = LEFT + SIDE + 24.0;
const HEIGHT: f64 = TOP + SIDE + 66.0;

impl CurveChart {
    /// Draws the picture.
    pub fn draw(&self) -> String {
        let place = |(x, y): (f64, f64)| (SIDE.mul_add(x, LEFT), SIDE.mul_add(1.0 - y, TOP));
        let mut svg = Svg::new(&self.title, &self.subtitle);
        svg.text("title", (24.0, 34.0), Anchor::Start, &self.title);
        svg.text("subtitle", (24.0, 56.0), Anchor::Start, &self.subtitle);
        let trace = |points: &[(f64, f64)]| {
            let mut data = String::new();
            for (i, &point) in points.iter().enumerate() {
                let (x, y) = place(point);
                let _ = write!(data, "{}{x:.2} {y:.2}", if i == 0 { "M" } else { "L" });
            }
            data
        };
        if let Some(first) = self.lines.first() {
            let (x, y) = place((0.0, 0.0));
            let data = format!("{}L{:.2} {y:.2}L{x:.2} {y:.2}Z", trace(&first.points), x + SIDE);
            svg.path(&data, &format!("fill=\"{}\" fill-opacity=\"{SHADE}\"", first.colour));
        }
        for tick in ticks(0.0, 1.0, 5) {
            let label = format!("{tick:.1}");
            svg.line("grid", place((0.0, tick)), place((1.0, tick)));
            svg.line("grid", place((tick, 0.0)), place((tick, 1.0)));
            let ((x, _), (_, y)) = (place((tick, 0.0)), place((0.0, tick)));
            svg.text("tick", (x, TOP + SIDE + 18.0), Anchor::Middle, &label);
            svg.text("tick", (LEFT - 8.0, y + 4.0), Anchor::End, &label);
        }
        svg.line("axis", place((0.0, 0.0)), place((1.0, 0.0)));
        svg.line("axis", place((0.0, 0.0)), place((0.0, 1.0)));
        svg.text("label", (LEFT + SIDE / 2.0, TOP + SIDE + 46.0), Anchor::Middle, &self.axes.0);
        svg.text_upwards("label", (26.0, TOP + SIDE / 2.0), &self.axes.1);
        for line in &self.lines {
            let dashes = if line.dashed { " stroke-dasharray=\"6 5\"" } else { "" };
            let attributes =
                format!("class=\"curve\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"{dashes}", line.colour);
            svg.path(&trace(&line.points), &attributes);
        }
        self.legend(&mut svg);
        svg.finish(WIDTH, HEIGHT).svg
    }

    /// In the upper right corner, where a test would do worse than a coin.
    fn legend(&self, svg: &mut Svg) {
        let letters =
            self.lines.iter().map(|line| &line.name).chain([&self.shaded]).map(|name| name.chars().count()).max();
        let wide = 7.6_f64.mul_add(letters.unwrap_or(0) as f64, 56.0);
        let (x, mut y) = (LEFT + SIDE - wide, TOP + 24.0);
        svg.bar((x - 12.0, TOP + 1.0), wide + 11.0, 26.0_f64.mul_add(self.lines.len() as f64, 36.0), "#fff");
        for line in &self.lines {
            let dashes = if line.dashed { " stroke-dasharray=\"6 5\"" } else { "" };
            let attributes = format!("fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"{dashes}", line.colour);
            svg.path(&format!("M{x:.1} {:.1}h26", y - 4.0), &attributes);
            svg.text("label", (x + 36.0, y), Anchor::Start, &line.name);
            y += 26.0;
        }
        if let Some(first) = self.lines.first() {
            let attributes = format!("fill=\"{}\" fill-opacity=\"{SHADE}\"", first.colour);
            svg.path(&format!("M{x:.1} {:.1}h26v16h-26Z", y - 13.0), &attributes);
            svg.text("label", (x + 36.0, y), Anchor::Start, &self.shaded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_drawn_from_corner_to_corner() {
        let picture = CurveChart {
            title: "t".into(),
            subtitle: "s".into(),
            axes: ("x".into(), "y".into()),
            lines: vec![CurveLine {
                name: "blind".into(),
                colour: "blue",
                dashed: false,
                points: vec![(0.0, 1.0), (1.0, 0.0)],
            }],
            shaded: "never".into(),
        }
        .draw();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        assert!(picture.contains("M78.00 84.00L558.00 564.00\" class=\"curve\""));
    }
}
