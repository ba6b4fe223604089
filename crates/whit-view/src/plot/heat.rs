//! A heat map: one cell for each pair of two keys, the darker the larger. Where nothing was released there is a gap, and no colour.

use super::frame::{heading, note};
use super::letters::{fit_middle, width};
use super::{Anchor, EDGE, Picture, Svg, WIDTH};
use crate::measure::Measure;
use crate::number::brief;

/// One of the two keys.
pub(crate) struct HeatKey {
    /// What it is called.
    pub(crate) name: String,
    /// Its values, in order.
    pub(crate) values: Vec<String>,
}

/// A picture of cells.
pub(crate) struct HeatChart {
    /// The headline.
    pub(crate) title: String,
    /// The lines under it.
    pub(crate) subtitle: String,
    /// The key from left to right,
    pub(crate) across: HeatKey,
    /// and the one from top to bottom.
    pub(crate) down: HeatKey,
    /// What each cell shows, line by line; nothing where nothing was released.
    pub(crate) cells: Vec<Vec<Option<Measure>>>,
    /// What the picture leaves out; may be empty.
    pub(crate) note: String,
}

/// The most room that names on the left get, and those below.
const NAMES: (f64, f64) = (220.0, 110.0);
/// The steps of the scale in the legend.
const STEPS: u32 = 7;

impl HeatChart {
    /// Draws the picture.
    pub(crate) fn draw(&self) -> Picture {
        let mut svg = Svg::new(&self.title, &self.subtitle);
        let above = heading(&mut svg, &self.title, &self.subtitle);
        let range = self.range();
        let top = self.scale(&mut svg, range, above) + 14.0;

        let widest = |names: &[String]| names.iter().map(|name| width(name, 12.0)).fold(0.0, f64::max);
        let left = EDGE + 22.0 + widest(&self.down.values).min(NAMES.0) + 8.0;
        let wide = ((WIDTH - left - EDGE) / self.across.values.len().max(1) as f64).min(96.0);
        let tall = (0.7 * wide).clamp(18.0, 32.0);
        let floor = tall.mul_add(self.down.values.len() as f64, top);
        let right = wide.mul_add(self.across.values.len() as f64, left);

        for (row, name) in self.down.values.iter().enumerate() {
            let y = tall.mul_add(row as f64, top);
            let name = fit_middle(name, 12.0, NAMES.0);
            svg.text("tick", (left - 8.0, y + tall / 2.0 + 4.0), Anchor::End, &name);
            for column in 0..self.across.values.len() {
                let x = wide.mul_add(column as f64, left);
                self.cell(&mut svg, (row, column), (x, y), (wide, tall), range);
            }
        }
        svg.text_upwards("label", (EDGE + 6.0, f64::midpoint(top, floor)), &self.down.name);
        let below = self.names_below(&mut svg, left, wide, floor);
        svg.text("label", (f64::midpoint(left, right), below + 18.0), Anchor::Middle, &self.across.name);
        let end = note(&mut svg, &self.note, below + 22.0);
        svg.finish(WIDTH, end + 16.0)
    }

    /// The names of columns: upright where all fit, else turned, and where columns are too narrow for that, every so many. Returns how far down they reach.
    fn names_below(&self, svg: &mut Svg, left: f64, wide: f64, floor: f64) -> f64 {
        let names = &self.across.values;
        let longest = names.iter().map(|name| width(name, 12.0)).fold(0.0, f64::max);
        let upright = longest + 6.0 <= wide;
        let each = if upright { 1 } else { (14.0 / wide).ceil() as usize };
        for (column, name) in names.iter().enumerate().step_by(each.max(1)) {
            let x = wide.mul_add(column as f64 + 0.5, left);
            if upright {
                svg.text("tick", (x, floor + 17.0), Anchor::Middle, name);
            } else {
                svg.text_turned("tick", (x + 4.0, floor + 8.0), &fit_middle(name, 12.0, NAMES.1));
            }
        }
        if upright { floor + 20.0 } else { floor + longest.min(NAMES.1) + 12.0 }
    }

    fn cell(&self, svg: &mut Svg, at: (usize, usize), (x, y): (f64, f64), (wide, tall): (f64, f64), range: (f64, f64)) {
        let measure = self.cells.get(at.0).and_then(|row| row.get(at.1)?.as_ref());
        let names = format!("{}, {}", self.down.values[at.0], self.across.values[at.1]);
        let (x, y, wide, tall) = (x + 0.5, y + 0.5, wide - 1.0, tall - 1.0);
        let Some(measure) = measure.filter(|measure| measure.value.is_finite()) else {
            svg.begin(&format!("{names}: nothing was released"));
            gap(svg, (x, y), (wide, tall));
            svg.end();
            return;
        };
        let share = share(measure.value, range);
        svg.begin(&format!("{names}: {}", measure.shown().line()));
        svg.bar((x, y), wide, tall, &colour(share));
        let number = brief(measure.value).replace('-', "−");
        if width(&number, 11.0) + 4.0 <= wide {
            let class = if share > 0.5 { "cell-light" } else { "cell-dark" };
            svg.text(class, (x + wide / 2.0, y + tall / 2.0 + 4.0), Anchor::Middle, &number);
        }
        svg.end();
    }

    /// What colours stand for, and what a gap is where there is one; returns how far down it reaches.
    fn scale(&self, svg: &mut Svg, range: (f64, f64), top: f64) -> f64 {
        let y = top + 12.0;
        let (low, high) = (brief(range.0).replace('-', "−"), brief(range.1).replace('-', "−"));
        svg.text("tick", (EDGE, y + 11.0), Anchor::Start, &low);
        let mut x = EDGE + width(&low, 12.0) + 8.0;
        for step in 0..STEPS {
            svg.bar((x, y), 22.0, 14.0, &colour(f64::from(step) / f64::from(STEPS - 1)));
            x += 22.0;
        }
        svg.text("tick", (x + 8.0, y + 11.0), Anchor::Start, &high);
        let missing = |row: &Vec<Option<Measure>>| row.iter().any(|cell| cell.is_none_or(|own| !own.value.is_finite()));
        if self.cells.iter().any(missing) {
            x += 8.0 + width(&high, 12.0) + 26.0;
            gap(svg, (x, y), (22.0, 14.0));
            svg.text("tick", (x + 30.0, y + 11.0), Anchor::Start, "nothing was released");
        }
        y + 14.0
    }

    /// The least and the largest value, and zero.
    fn range(&self) -> (f64, f64) {
        let values =
            self.cells.iter().flatten().flatten().map(|measure| measure.value).filter(|value| value.is_finite());
        let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        if low == high { (0.0, 1.0) } else { (low, high) }
    }
}

fn gap(svg: &mut Svg, (x, y): (f64, f64), (wide, tall): (f64, f64)) {
    let data = format!("M{x:.1} {y:.1}h{wide:.1}v{tall:.1}h-{wide:.1}z");
    svg.path(&data, "class=\"gap\"");
}

fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    // Halves: the distance of two floats may be too large for one.
    ((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)).clamp(0.0, 1.0)
}

/// From nearly white to a dark blue; the steps between look even.
fn colour(share: f64) -> String {
    let (light, dark) = ([232.0, 241.0, 250.0], [0.0_f64, 62.0, 115.0]);
    let [red, green, blue] = [0, 1, 2].map(|i: usize| (dark[i] - light[i]).mul_add(share, light[i]).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(across: usize, down: usize, cell: impl Fn(usize, usize) -> Option<Measure>) -> String {
        let key = |name: &str, many: usize| HeatKey {
            name: name.to_owned(),
            values: (0..many).map(|i| format!("{name} {i}")).collect(),
        };
        let cells = (0..down).map(|row| (0..across).map(|column| cell(row, column)).collect()).collect();
        let (title, subtitle) = ("visits by hour and day".to_owned(), "s".to_owned());
        let chart = HeatChart {
            title,
            subtitle,
            across: key("hour", across),
            down: key("day", down),
            cells,
            note: String::new(),
        };
        chart.draw().svg().to_owned()
    }

    #[test]
    fn every_pair_has_a_cell_and_what_was_not_released_has_no_colour() {
        let svg =
            chart(24, 7, |row, column| (row != 3 || column != 5).then(|| Measure::around((row * column) as f64, 2.0)));
        assert_eq!(svg.matches("<title>day").count(), 7 * 24);
        assert_eq!(svg.matches(": nothing was released<").count(), 1);
        assert_eq!(svg.matches("class=\"gap\"").count(), 2, "the cell and the legend");
        assert!(svg.contains("<title>day 2, hour 3: 6"), "{svg}");
        assert!(!chart(2, 2, |_, _| Some(Measure::exactly(0.0))).contains("class=\"gap\""));
    }

    #[test]
    fn larger_is_darker_and_odd_values_stay_inside() {
        let green = |share: f64| u8::from_str_radix(&colour(share)[3..5], 16).unwrap();
        assert!((0..10).all(|i| green(f64::from(i) / 10.0) > green(f64::from(i + 1) / 10.0)));
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, -3.0];
        let svg = chart(5, 60, |_, column| Some(Measure::exactly(odd[column])));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        for many in [0, 1, 200] {
            assert!(chart(many, many.min(3), |_, _| None).ends_with("</svg>\n"));
        }
    }
}
