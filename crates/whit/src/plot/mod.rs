//! Pictures, as SVG text: bars with error bars, and curves. No fonts, scripts or files from elsewhere.

mod bars;
mod curve;

pub(crate) use bars::{Bars, Series};
pub(crate) use curve::{Curve, Line};

use std::fmt::Write as _;

/// Colours that people with any colour vision tell apart (Okabe and Ito), and that print well.
pub(crate) const BLUE: &str = "#0072b2";
pub(crate) const ORANGE: &str = "#e69f00";
pub(crate) const GREEN: &str = "#009e73";

const STYLE: &str = "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#222}\
.title{font-size:19px;font-weight:600}.subtitle{font-size:13px;fill:#555}.label{font-size:13px}\
.tick{font-size:12px;fill:#555}.grid{stroke:#e4e4e4;stroke-width:1}.axis{stroke:#555;stroke-width:1.2}\
.error-bar{stroke:#222;stroke-width:1.4;fill:none}.strong{font-size:13px;font-weight:600}.exact{stroke:#222;stroke-width:2.6}";

/// Where text starts from its anchor point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making: white, so that it reads on any page.
struct Svg {
    body: String,
}

impl Svg {
    fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
            escape(title),
            escape(description),
        );
        Self { body }
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, fill: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    /// Any path; `attributes` are ours, never text from outside.
    fn path(&mut self, data: &str, attributes: &str) {
        let _ = writeln!(self.body, "<path d=\"{data}\" {attributes}/>");
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// Text that reads upwards, for the vertical axis.
    fn text_upwards(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(text)
        );
    }

    fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

/// Text that cannot end the element or attribute it stands in.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Round numbers that cover `low..=high`, about `wanted` of them, 1, 2 or 5 times a power of ten apart.
fn ticks(low: f64, high: f64, wanted: u32) -> Vec<f64> {
    let high = if high > low { high } else { low + 1.0 };
    let rough = (high - low) / f64::from(wanted.max(1));
    let power = 10_f64.powf(rough.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|&m| m * power >= rough).unwrap_or(10.0);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]);
        let wide = ticks(-137.0, 912.0, 6);
        assert!(wide[0] <= -137.0 && *wide.last().unwrap() >= 912.0 && wide.len() <= 9);
        assert!(ticks(3.0, 3.0, 4).len() >= 2);
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        let mut svg = Svg::new(10.0, 10.0, "a < b", "");
        svg.text("label", (1.0, 1.0), Anchor::Start, "</svg><script>");
        let picture = svg.finish();
        assert!(!picture.contains("<script>"));
        assert_eq!(picture.matches("</svg>").count(), 1);
    }
}
