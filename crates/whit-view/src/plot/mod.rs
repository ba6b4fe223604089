//! Pictures, as SVG text: bars with error bars, lines with bands, steps, curves and heat maps.
//! No fonts, scripts or files from elsewhere; what a mark stands for is its tooltip.

mod bars;
mod curve;
mod frame;
mod heat;
pub(crate) mod letters;
mod lines;
pub(crate) mod time;

pub use bars::{BarChart, BarSeries, ExactMarks};
pub use curve::{CurveChart, CurveLine};
pub(crate) use heat::{HeatChart, HeatKey};
pub use lines::{ChartAxis, LimitLine, LineChart, Scale, Trace};

use crate::number::grouped;
use std::fmt::Write as _;

/// Colours that people with any colour vision tell apart (Okabe and Ito), and that print well.
pub const BLUE: &str = "#0072b2";
/// The second of them.
pub const ORANGE: &str = "#e69f00";
/// The third of them.
pub const GREEN: &str = "#009e73";
/// All of them that stand out from white, in the order in which they are used.
pub(crate) const PALETTE: [&str; 6] = [BLUE, ORANGE, GREEN, "#d55e00", "#56b4e9", "#cc79a7"];

/// The width of every picture but the square ones.
const WIDTH: f64 = 980.0;
/// The margins on the left and on the right.
const EDGE: f64 = 24.0;

const STYLE: &str = "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#222}\
.title{font-size:19px;font-weight:600}.subtitle{font-size:13px;fill:#555}.label{font-size:13px}\
.tick{font-size:12px;fill:#555}.grid{stroke:#e4e4e4;stroke-width:1}.axis{stroke:#555;stroke-width:1.2}\
.error-bar{stroke:#222;stroke-width:1.4;fill:none}.halo{stroke:#fff;stroke-width:4;stroke-opacity:.45;fill:none}.strong{font-size:13px;font-weight:600}.exact{stroke:#222;stroke-width:2.6}\
.cell-dark{font-size:11px;fill:#222}.cell-light{font-size:11px;fill:#fff}.gap{fill:none;stroke:#999;stroke-width:1;stroke-dasharray:2 3}";

/// A picture is never wider than the screen that shows it; inside of another it has its own size.
const FITTING: &str = " style=\"max-width:100%;height:auto\"";

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Picture {
    width: f64,
    height: f64,
    svg: String,
}

impl Picture {
    /// The picture as the text of an SVG file.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Pictures under one another, as one.
    pub fn stack(pictures: &[Self]) -> Self {
        let [one] = pictures else {
            let mut svg = Svg::new(&format!("{} pictures", pictures.len()), "");
            let (mut width, mut height) = (0_f64, 0.0);
            for picture in pictures {
                let inner = picture.svg.replacen("<svg ", &format!("<svg y=\"{height}\" "), 1);
                svg.body.push_str(&inner.replacen(FITTING, "", 1));
                (width, height) = (width.max(picture.width), height + picture.height);
            }
            return svg.finish(width, height);
        };
        one.clone()
    }
}

impl AsRef<str> for Picture {
    fn as_ref(&self) -> &str {
        &self.svg
    }
}

/// Where text starts from its anchor point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making: white, so that it reads on any page.
struct Svg {
    title: String,
    description: String,
    body: String,
}

impl Svg {
    fn new(title: &str, description: &str) -> Self {
        Self { title: title.to_owned(), description: description.to_owned(), body: String::new() }
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

    fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: &str) {
        let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{fill}\"/>");
    }

    /// Any path; `attributes` are ours, never text from outside.
    fn path(&mut self, data: &str, attributes: &str) {
        let _ = writeln!(self.body, "<path d=\"{data}\" {attributes}/>");
    }

    /// An error bar, set off from the bar on which it stands.
    fn error_bar(&mut self, data: &str) {
        self.path(data, "class=\"halo\"");
        self.path(data, "class=\"error-bar\"");
    }

    /// Starts a group of marks that tells what it stands for when one points at it.
    fn begin(&mut self, tip: &str) {
        let _ = writeln!(self.body, "<g class=\"hit\"><title>{}</title>", escape(tip));
    }

    fn end(&mut self) {
        self.body.push_str("</g>\n");
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

    /// Text that reads upwards and ends at its point, for names under narrow columns.
    fn text_turned(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"end\">{}</text>",
            escape(text)
        );
    }

    fn finish(self, width: f64, height: f64) -> Picture {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"{FITTING} role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{}</svg>\n",
            escape(&self.title),
            escape(&self.description),
            self.body,
        );
        Picture { width, height, svg }
    }
}

/// Text that cannot end the element or attribute it stands in, without characters that XML forbids.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' | '\r' => safe.push(c),
            '\u{FFFE}' | '\u{FFFF}' => safe.push('\u{FFFD}'),
            c if c.is_control() => safe.push('\u{FFFD}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Round numbers that cover `low..=high`, about `wanted` of them, 1, 2 or 5 times a power of ten apart.
fn ticks(low: f64, high: f64, wanted: u32) -> Vec<f64> {
    let high = if high > low { high } else { low + 1.0 };
    let rough = (high - low) / f64::from(wanted.max(1));
    let power = 10_f64.powf(rough.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|&m| m * power >= rough).unwrap_or(10.0);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    // More than this many are left only where the numbers are closer to each other than floats are.
    (first..=last.min(first.saturating_add(100))).map(|i| i as f64 * step).collect()
}

/// The ticks as people read them, all with the same number of digits behind the point.
fn tick_labels(ticks: &[f64]) -> Vec<String> {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let most = ticks.iter().fold(0.0_f64, |most, tick| most.max(tick.abs()));
    let label = |&tick: &f64| {
        let text = if tick == 0.0 {
            "0".to_owned()
        } else if most >= 1e7 || step < 1e-4 {
            let text = format!("{tick:.6e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}×10{}", exponent.chars().map(raised).collect::<String>())
        } else {
            let places = (-(step * 1.001).log10().floor()).clamp(0.0, 6.0) as usize;
            grouped(&format!("{tick:.places$}"))
        };
        text.replace('-', "−")
    };
    ticks.iter().map(label).collect()
}

/// A digit or a sign of an exponent.
fn raised(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => digit.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    }
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
        assert!(ticks(1e15, 1e15 + 0.5, 4).len() <= 101);
    }

    #[test]
    fn ticks_read_as_people_write_numbers() {
        assert_eq!(tick_labels(&ticks(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(tick_labels(&ticks(-1000.0, 2000.0, 3)), ["−1,000", "0", "1,000", "2,000"]);
        assert_eq!(tick_labels(&[0.0, 2.5e9, 5e9]), ["0", "2.5×10⁹", "5×10⁹"]);
        assert_eq!(tick_labels(&[-1e-7, 0.0, 1e-7]), ["−1×10⁻⁷", "0", "1×10⁻⁷"]);
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        let mut svg = Svg::new("a < b", "");
        svg.text("label", (1.0, 1.0), Anchor::Start, "</svg><script>");
        svg.begin("it's \"quoted\"\u{1b}[31m\u{0}\u{FFFF}");
        svg.end();
        let picture = svg.finish(10.0, 10.0).svg;
        assert!(!picture.contains("<script>") && !picture.contains('\u{1b}') && !picture.contains('\u{0}'));
        assert_eq!(picture.matches("</svg>").count(), 1);
    }

    #[test]
    fn stacked_pictures_keep_their_sizes() {
        let picture = |height| Svg::new("t", "").finish(980.0, height);
        let stacked = Picture::stack(&[picture(300.0), picture(200.0)]);
        assert_eq!((stacked.width, stacked.height), (980.0, 500.0));
        assert!(stacked.svg().contains("<svg y=\"300\" xmlns"));
        assert_eq!(stacked.svg().matches(FITTING).count(), 1, "the whole fits a screen, and its parts the whole");
        assert_eq!(Picture::stack(&[picture(300.0)]).svg(), picture(300.0).svg());
    }
}
