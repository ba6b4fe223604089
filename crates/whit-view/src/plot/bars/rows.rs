//! Lying bars: names may be long, and there may be many.

use super::columns::entries;
use super::{BarChart, scale};
use crate::measure::Measure;
use crate::plot::frame::{Sign, heading, legend, note};
use crate::plot::letters::{fit_middle, width};
use crate::plot::{Anchor, EDGE, Picture, Svg, WIDTH, tick_labels};
use std::fmt::Write as _;

/// The most room that names get.
const NAMES: f64 = 320.0;
/// The thickness of a bar that is alone in its group, and of one among several.
const THICK: (f64, f64) = (15.0, 11.0);

/// Draws the picture.
pub(super) fn draw(chart: &BarChart) -> Picture {
    let mut svg = Svg::new(&chart.title, &chart.subtitle);
    let above = heading(&mut svg, &chart.title, &chart.subtitle);
    let top = legend(&mut svg, &entries(chart, Sign::Upright), above) + 18.0;
    let alone = chart.series.len() == 1;
    let thick = if alone { THICK.0 } else { THICK.1 };
    let pitch = thick * chart.series.len().max(1) as f64 + 9.0;
    let floor = top + pitch * chart.groups.len() as f64 + 4.0;

    // With one series there is room to write each number next to its bar.
    let shown = |g: usize| chart.series.first()?.values.get(g)?.as_ref().map(|measure| measure.shown().line());
    let numbers: Vec<String> = if alone {
        (0..chart.groups.len()).map(|g| shown(g).unwrap_or_else(|| "–".to_owned())).collect()
    } else {
        Vec::new()
    };
    let widest = |texts: &[String], size| texts.iter().map(|text| width(text, size)).fold(0.0, f64::max);
    let named = widest(&chart.groups, 13.0).min(NAMES);
    let left = EDGE + if named > 0.0 { named + 8.0 } else { 0.0 };
    let numbers_width = widest(&numbers, 12.0).min(260.0);
    let right = WIDTH - EDGE - if numbers_width > 0.0 { numbers_width + 14.0 } else { 0.0 };

    let (start, end, ticks) = scale(chart.range(), ((right - left) / 75.0) as u32);
    let x = |value: f64| (right - left).mul_add((value - start) / (end - start), left);
    let labels = tick_labels(&ticks);
    for (&tick, label) in ticks.iter().zip(&labels) {
        svg.line("grid", (x(tick), top - 2.0), (x(tick), floor));
        svg.text("tick", (x(tick), floor + 17.0), Anchor::Middle, label);
    }
    let below = if chart.axis.is_empty() { 22.0 } else { 44.0 };
    svg.text("label", (f64::midpoint(left, right), floor + 38.0), Anchor::Middle, &chart.axis);

    for (g, group) in chart.groups.iter().enumerate() {
        let from = pitch.mul_add(g as f64, top) + 4.0;
        let middle = from + (pitch - 9.0) / 2.0;
        let name = fit_middle(group, 13.0, NAMES);
        svg.text("label", (left - 8.0, middle + 4.5), Anchor::End, &name);
        let measured = chart.series.iter().enumerate();
        let measured = measured.filter_map(|(s, series)| Some((s, series, series.values.get(g)?.as_ref()?)));
        for (s, series) in chart.series.iter().enumerate() {
            if !alone && chart.is_gap(g, series) {
                let middle = thick.mul_add(s as f64 + 0.5, from);
                svg.text("tick", (x(0.0) + 4.0, middle + 4.0), Anchor::Start, "–");
            }
        }
        for (s, series, measure) in measured.filter(|(_, _, measure)| measure.value.is_finite()) {
            let y = thick.mul_add(s as f64, from);
            svg.begin(&chart.tip(g, series, measure));
            let (near, far) = (x(measure.value.min(0.0)), x(measure.value.max(0.0)));
            svg.bar((near, y + 0.5), far - near, thick - 1.0, series.colour);
            error_bar(&mut svg, measure, y + thick / 2.0, (start, end), x);
            svg.end();
        }
        if let Some(&mark) = chart.exact.as_ref().and_then(|exact| exact.values.get(g)).filter(|mark| mark.is_finite())
        {
            svg.line("exact", (x(mark), from - 3.0), (x(mark), from + pitch - 6.0));
        }
        if let Some(number) = numbers.get(g) {
            svg.text("tick", (WIDTH - EDGE, middle + 4.0), Anchor::End, &number.replace('-', "−"));
        }
    }
    svg.line("axis", (x(0.0), top - 2.0), (x(0.0), floor));
    let end = note(&mut svg, &chart.note, floor + below);
    svg.finish(WIDTH, end + 16.0)
}

/// From end to end of the interval; an end that is not finite leaves the picture without a cap.
fn error_bar(svg: &mut Svg, measure: &Measure, y: f64, (start, end): (f64, f64), x: impl Fn(f64) -> f64) {
    let (Some(low), Some(high)) = (measure.low, measure.high) else { return };
    if low.is_nan() || high.is_nan() || low == high {
        return;
    }
    let (from, to) = (x(low.max(start)), x(high.min(end)));
    let mut data = format!("M{from:.1} {y:.1}H{to:.1}");
    for (value, at) in [(low, from), (high, to)] {
        if value.is_finite() {
            let _ = write!(data, "M{at:.1} {:.1}V{:.1}", y - 3.5, y + 3.5);
        }
    }
    svg.error_bar(&data);
}
