//! Upright bars.

use super::{BarChart, scale};
use crate::measure::Measure;
use crate::plot::frame::{LegendEntry, Sign, heading, legend, note};
use crate::plot::letters::width;
use crate::plot::{Anchor, EDGE, Picture, Svg, WIDTH, tick_labels};
use std::fmt::Write as _;

/// The share of a group's room that its bars take.
const FILLED: f64 = 0.8;
/// The height of the part with the bars.
const TALL: f64 = 320.0;

/// Draws the picture.
pub(super) fn draw(chart: &BarChart) -> Picture {
    let mut svg = Svg::new(&chart.title, &chart.subtitle);
    let above = heading(&mut svg, &chart.title, &chart.subtitle);
    let above = legend(&mut svg, &entries(chart, Sign::Level), above);
    let (top, floor) = (above + 24.0, above + 24.0 + TALL);
    let (start, end, ticks) = scale(chart.range(), 8);
    let y = |value: f64| TALL.mul_add((end - value) / (end - start), top);

    let labels = tick_labels(&ticks);
    let widest = labels.iter().map(|label| width(label, 12.0)).fold(0.0, f64::max);
    let left = EDGE + 22.0 + widest + 8.0;
    for (&tick, label) in ticks.iter().zip(&labels) {
        svg.line("grid", (left, y(tick)), (WIDTH - EDGE, y(tick)));
        svg.text("tick", (left - 8.0, y(tick) + 4.0), Anchor::End, label);
    }
    svg.text_upwards("label", (EDGE + 6.0, f64::midpoint(top, floor)), &chart.axis);

    let room = (WIDTH - left - EDGE) / chart.groups.len().max(1) as f64;
    // A few groups do not fill a page with three enormous bars.
    let taken = (room * FILLED).min(110.0 * chart.series.len() as f64);
    let wide = taken / chart.series.len().max(1) as f64;
    for (g, group) in chart.groups.iter().enumerate() {
        let from = left + room * g as f64 + (room - taken) / 2.0;
        let measured = chart.series.iter().enumerate();
        let measured = measured.filter_map(|(s, series)| Some((s, series, series.values.get(g)?.as_ref()?)));
        for (s, series) in chart.series.iter().enumerate() {
            if chart.is_gap(g, series) {
                let middle = wide.mul_add(s as f64 + 0.5, from);
                svg.text("tick", (middle, y(0.0) - 5.0), Anchor::Middle, "–");
            }
        }
        for (s, series, measure) in measured.filter(|(_, _, measure)| measure.value.is_finite()) {
            let x = wide.mul_add(s as f64, from);
            svg.begin(&chart.tip(g, series, measure));
            let (high, low) = (y(measure.value.max(0.0)), y(measure.value.min(0.0)));
            svg.bar((x + 1.0, high), (wide - 2.0).max(1.0), low - high, series.colour);
            error_bar(&mut svg, measure, x + wide / 2.0, wide.mul_add(0.2, 1.0).min(10.0), (start, end), y);
            svg.end();
        }
        if let Some(&mark) = chart.exact.as_ref().and_then(|exact| exact.values.get(g)).filter(|mark| mark.is_finite())
        {
            svg.line("exact", (from - 9.0, y(mark)), (from - 1.0, y(mark)));
            svg.line("exact", (from + taken + 1.0, y(mark)), (from + taken + 9.0, y(mark)));
        }
        svg.text("label", (from + taken / 2.0, floor + 22.0), Anchor::Middle, group);
    }
    svg.line("axis", (left, y(0.0)), (WIDTH - EDGE, y(0.0)));
    let end = note(&mut svg, &chart.note, floor + 28.0);
    svg.finish(WIDTH, end + 16.0)
}

/// The legend of a chart of bars; one series without marks needs none.
pub(super) fn entries(chart: &BarChart, exact: Sign) -> Vec<LegendEntry<'_>> {
    if chart.series.len() < 2 && chart.exact.is_none() && chart.series.iter().all(|series| series.note.is_empty()) {
        return Vec::new();
    }
    let series = chart.series.iter().map(|series| LegendEntry {
        sign: Sign::Bar(series.colour),
        name: &series.name,
        note: &series.note,
    });
    let marks = chart.exact.iter().map(|marks| LegendEntry { sign: exact, name: &marks.name, note: &marks.note });
    series.chain(marks).collect()
}

/// From end to end of the interval; an end that is not finite leaves the picture without a cap.
fn error_bar(svg: &mut Svg, measure: &Measure, x: f64, cap: f64, (start, end): (f64, f64), y: impl Fn(f64) -> f64) {
    let (Some(low), Some(high)) = (measure.low, measure.high) else { return };
    if low.is_nan() || high.is_nan() || low == high {
        return;
    }
    let (above, below) = (y(high.min(end)), y(low.max(start)));
    let mut data = format!("M{x:.1} {above:.1}V{below:.1}");
    for (value, at) in [(high, above), (low, below)] {
        if value.is_finite() {
            let _ = write!(data, "M{:.1} {at:.1}H{:.1}", x - cap, x + cap);
        }
    }
    svg.error_bar(&data);
}
