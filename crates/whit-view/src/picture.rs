//! From an answer to the picture that fits it: bars, or lines where a key has an order.

use crate::measure::Measure;
use crate::number::grouped;
use crate::plain::visible;
use crate::plot::{BarChart, BarSeries, ChartAxis, LineChart, PALETTE, Picture, Scale, Trace, time};
use crate::text::{measure, one_line, shown};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whit_query::{Answer, Cell, Role, Value};

/// The most groups of bars in one picture.
const GROUPS: usize = 40;
/// The most pictures under one another.
const PANELS: usize = 4;
/// Values share an axis if the largest of each are within this factor of each other.
const COMPARABLE: f64 = 8.0;
/// The fewest places on an axis that make a line worth drawing.
const PLACES: usize = 3;

/// The picture of an answer, or nothing where the answer has no number to draw.
pub fn of(answer: &Answer) -> Option<Picture> {
    let panels = panels(answer);
    (!panels.is_empty()).then(|| Picture::stack(&panels))
}

/// The same as one picture for each axis.
pub(crate) fn panels(answer: &Answer) -> Vec<Picture> {
    DrawingPlan::new(answer).map_or_else(Vec::new, |plan| plan.draw())
}

/// One line or one colour of bars: its name and what it has in each row.
struct Strand {
    name: String,
    /// Row numbers and their measures.
    values: Vec<(usize, Measure)>,
}

/// What goes where.
struct DrawingPlan<'a> {
    answer: &'a Answer,
    /// The columns with numbers.
    values: Vec<usize>,
    /// The key that has an order, where each row stands on it, and what its numbers are.
    along: Option<(usize, Scale, Vec<Option<f64>>)>,
    /// The key whose values are distinguished by colour.
    colour: Option<Vec<usize>>,
    /// The keys that name the groups.
    groups: Vec<usize>,
}

impl<'a> DrawingPlan<'a> {
    fn new(answer: &'a Answer) -> Option<Self> {
        let all = 0..answer.columns.len();
        let number = |row: &Vec<Cell>, i: usize| {
            row.get(i).and_then(|cell| measure(cell, Role::Noisy)).is_some_and(|measure| measure.value.is_finite())
        };
        let values: Vec<usize> = all
            .clone()
            .filter(|&i| answer.columns[i].role != Role::Key && answer.rows.iter().any(|row| number(row, i)))
            .collect();
        if values.is_empty() {
            return None;
        }
        let keys: Vec<usize> = all.filter(|&i| answer.columns[i].role == Role::Key).collect();
        let along = keys.iter().find_map(|&i| {
            let (scale, places) = ordered(answer, i)?;
            Some((i, scale, places))
        });
        let rest = |but: usize| keys.iter().copied().filter(|&i| i != but).collect::<Vec<_>>();
        if let Some((i, ..)) = along {
            let others = rest(i);
            let colour = (!others.is_empty()).then_some(others);
            return Some(Self { answer, values, along, colour, groups: vec![i] });
        }
        // Of two keys, the one with a handful of values is distinguished by colour.
        let few =
            keys.iter().map(|&i| (distinct(answer, i), i)).filter(|&(n, _)| (2..=PALETTE.len()).contains(&n)).min();
        let colour = few.filter(|_| keys.len() == 2).map(|(_, i)| i);
        let groups = colour.map_or_else(|| keys.clone(), rest);
        Some(Self { answer, values, along: None, colour: colour.map(|i| vec![i]), groups })
    }

    fn draw(&self) -> Vec<Picture> {
        let panels = self.shares();
        let left = panels.len().saturating_sub(PANELS);
        let names = |panels: &[Vec<usize>]| self.names(&panels.concat());
        let more = if left > 0 { format!("Not drawn: {}. ", names(&panels[PANELS..])) } else { String::new() };
        let drawn = panels.len().min(PANELS);
        let panel = |(i, panel): (usize, &Vec<usize>)| {
            let subtitle = if i == 0 { one_line(&self.answer.statement) } else { String::new() };
            self.panel(panel, subtitle, if i + 1 == drawn { &more } else { "" })
        };
        panels.iter().take(PANELS).enumerate().map(panel).collect()
    }

    /// One picture, of one value or of several that share an axis.
    fn panel(&self, values: &[usize], subtitle: String, more: &str) -> Picture {
        let (strands, hidden) = self.strands(values);
        let mut note = more.to_owned();
        if hidden > 0 {
            let (drawn, all) = (strands.len(), strands.len() + hidden);
            let _ = write!(note, "Drawn are the {drawn} largest of {all} lines or colours. ");
        }
        let title = self.title(values);
        let axis = if let [_] = values { self.names(values) } else { String::new() };
        let axis = if axis == title { String::new() } else { axis };
        match &self.along {
            Some((key, scale, places)) => {
                let across = ChartAxis { name: self.answer.columns[*key].name.clone(), scale: *scale };
                let traces = strands.into_iter().zip(PALETTE).map(|(strand, colour)| Trace {
                    name: strand.name,
                    colour,
                    steps: false,
                    points: points(&strand.values, places),
                });
                LineChart { title, subtitle, across, axis, traces: traces.collect(), limits: Vec::new(), note }.draw()
            }
            None => self.bars(strands, title, subtitle, axis, note),
        }
    }

    fn bars(&self, strands: Vec<Strand>, title: String, subtitle: String, axis: String, mut note: String) -> Picture {
        let names: Vec<String> = (0..self.answer.rows.len()).map(|row| self.group(row)).collect();
        let mut groups: Vec<(String, f64)> = Vec::new();
        let mut place: BTreeMap<&str, usize> = BTreeMap::new();
        for strand in &strands {
            for (row, measure) in &strand.values {
                let at = *place.entry(&names[*row]).or_insert_with(|| {
                    groups.push((names[*row].clone(), f64::NEG_INFINITY));
                    groups.len() - 1
                });
                groups[at].1 = groups[at].1.max(measure.value);
            }
        }
        let all = groups.len();
        if all > GROUPS {
            groups.sort_by(|a, b| b.1.total_cmp(&a.1));
            groups.truncate(GROUPS);
            let _ = write!(note, "Drawn are the {GROUPS} largest of {} groups.", grouped(&all.to_string()));
        }
        let place: BTreeMap<&str, usize> = groups.iter().enumerate().map(|(i, (name, _))| (name.as_str(), i)).collect();
        let series = strands.into_iter().zip(PALETTE).map(|(strand, colour)| {
            let mut values = vec![None; groups.len()];
            for (row, measure) in strand.values {
                if let Some(&at) = place.get(names[row].as_str()) {
                    values[at] = Some(measure);
                }
            }
            BarSeries { name: strand.name, note: String::new(), colour, values }
        });
        let series = series.collect();
        let groups = groups.into_iter().map(|(name, _)| name).collect();
        BarChart { title, subtitle, axis, groups, series, exact: None, note }.draw()
    }

    /// The name of a row's group: its keys, or the row's number where the question left the keys out.
    fn group(&self, row: usize) -> String {
        let cells = &self.answer.rows[row];
        match (self.groups.as_slice(), self.answer.rows.len()) {
            ([], 1) => String::new(),
            ([], _) => format!("row {}", grouped(&(row + 1).to_string())),
            (keys, _) => words(cells, keys),
        }
    }

    /// The values apart by colour, the largest first to stay, and how many had to go.
    fn strands(&self, values: &[usize]) -> (Vec<Strand>, usize) {
        let mut strands: Vec<Strand> = Vec::new();
        let mut place: BTreeMap<String, usize> = BTreeMap::new();
        for (row, cells) in self.answer.rows.iter().enumerate() {
            for &value in values {
                let column = &self.answer.columns[value];
                let Some(measure) = cells.get(value).and_then(|cell| measure(cell, column.role)) else { continue };
                let name = self.colour.as_ref().map_or_else(|| column.name.clone(), |keys| words(cells, keys));
                let at = *place.entry(name.clone()).or_insert_with(|| {
                    strands.push(Strand { name, values: Vec::new() });
                    strands.len() - 1
                });
                strands[at].values.push((row, measure));
            }
        }
        let hidden = strands.len().saturating_sub(PALETTE.len());
        if hidden > 0 {
            let size = |strand: &Strand| strand.values.iter().map(|(_, measure)| measure.value.abs()).sum::<f64>();
            strands.sort_by(|a, b| size(b).total_cmp(&size(a)));
            strands.truncate(PALETTE.len());
        }
        (strands, hidden)
    }

    /// The values apart by axis: those of about one size share one, so that none hides another.
    fn shares(&self) -> Vec<Vec<usize>> {
        let largest = |value: usize| {
            let cells = self.answer.rows.iter().filter_map(|row| measure(row.get(value)?, Role::Noisy));
            cells.map(|measure| measure.value.abs()).filter(|size| size.is_finite()).fold(0.0, f64::max)
        };
        let mut shares: Vec<(Vec<usize>, f64, f64)> = Vec::new();
        for &value in &self.values {
            let size = largest(value);
            let alike = |(values, least, most): &&mut (Vec<usize>, f64, f64)| {
                values.len() < PALETTE.len() && most.max(size) <= COMPARABLE * least.min(size)
            };
            match shares.iter_mut().find(alike).filter(|_| self.colour.is_none()) {
                Some((values, least, most)) => {
                    values.push(value);
                    (*least, *most) = (least.min(size), most.max(size));
                }
                None => shares.push((vec![value], size, size)),
            }
        }
        shares.into_iter().map(|(values, ..)| values).collect()
    }

    fn title(&self, values: &[usize]) -> String {
        let keys: Vec<usize> = self.groups.iter().chain(self.colour.iter().flatten()).copied().collect();
        let values = self.names(values);
        if keys.is_empty() { values } else { format!("{values} by {}", self.names(&keys)) }
    }

    /// Names of columns: a, b and c.
    fn names(&self, columns: &[usize]) -> String {
        let name = |&i: &usize| {
            let column = &self.answer.columns[i];
            let exact = if column.role == Role::Exact { " (exact)" } else { "" };
            format!("{}{exact}", visible(&column.name))
        };
        let names: Vec<String> = columns.iter().map(name).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }
}

/// The keys of a row as one name.
fn words(cells: &[Cell], keys: &[usize]) -> String {
    let word = |&key: &usize| cells.get(key).map(|cell| visible(&shown(cell, Role::Key, usize::MAX).line()));
    keys.iter().filter_map(word).collect::<Vec<_>>().join(" · ")
}

/// Points from left to right. A place on the axis that other lines have and this one does not is a gap.
fn points(values: &[(usize, Measure)], places: &[Option<f64>]) -> Vec<(f64, Option<Measure>)> {
    let mut all: Vec<f64> = places.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let mut points: Vec<(f64, Option<Measure>)> = all.into_iter().map(|x| (x, None)).collect();
    for (row, measure) in values {
        let Some(x) = places[*row] else { continue };
        if let Ok(at) = points.binary_search_by(|(place, _)| place.total_cmp(&x)) {
            points[at].1 = Some(*measure);
        }
    }
    points
}

/// Where each row stands on a key that has an order: all numbers, or all dates and times.
fn ordered(answer: &Answer, key: usize) -> Option<(Scale, Vec<Option<f64>>)> {
    let mut places = Vec::new();
    let mut scales = [false, false];
    for row in &answer.rows {
        let place = match &row.get(key)?.value {
            Value::Null => None,
            Value::Int(value) => Some((Scale::Number, *value as f64)),
            Value::Float(value) if value.is_finite() => Some((Scale::Number, *value)),
            Value::Text(text) => Some((Scale::Time, time::read(text)?)),
            Value::Float(_) | Value::Bool(_) => return None,
        };
        if let Some((scale, _)) = place {
            scales[usize::from(scale == Scale::Time)] = true;
        }
        places.push(place.map(|(_, x)| x));
    }
    let scale = match scales {
        [true, false] => Scale::Number,
        [false, true] => Scale::Time,
        [false, false] | [true, true] => return None,
    };
    let mut seen: Vec<f64> = places.iter().flatten().copied().collect();
    seen.sort_by(f64::total_cmp);
    seen.dedup();
    (seen.len() >= PLACES).then_some((scale, places))
}

/// How many values a key has.
fn distinct(answer: &Answer, key: usize) -> usize {
    let mut words: Vec<String> = answer.rows.iter().map(|row| words(row, &[key])).collect();
    words.sort_unstable();
    words.dedup();
    words.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answer, cell, key, priced};

    fn count(value: i64) -> Cell {
        cell(Value::Int(value), value as f64 - 10.0, value as f64 + 12.0)
    }

    fn drawn(answer: &Answer) -> String {
        of(answer).expect("something to draw").svg().to_owned()
    }

    #[test]
    fn words_make_bars_and_order_makes_lines() {
        let columns = [("site", Role::Key), ("visits", Role::Noisy)];
        let rows = |keys: [Cell; 3]| keys.map(|key| vec![key, count(50)]).to_vec();
        let number = |n: i64| Cell { value: Value::Int(n), low: None, high: None };
        let words = drawn(&answer(&columns, rows(["a", "b", "c"].map(key))));
        assert_eq!((words.matches("class=\"error-bar\"").count(), words.matches("class=\"curve\"").count()), (3, 0));
        for keys in [[1, 2, 3].map(number), ["2024-01-01", "2024-01-02", "2024-01-03"].map(key)] {
            let lines = drawn(&answer(&columns, rows(keys)));
            assert_eq!((lines.matches("class=\"band\"").count(), lines.matches("class=\"curve\"").count()), (1, 1));
        }
        let two = drawn(&answer(&columns, vec![vec![number(1), count(5)], vec![number(2), count(5)]]));
        assert!(!two.contains("class=\"curve\""), "two places make no line");
    }

    #[test]
    fn of_many_groups_the_largest_are_drawn_and_the_rest_told() {
        let rows = (0..100).map(|i| vec![key(&format!("site {i}")), count(i)]).collect();
        let svg = drawn(&answer(&[("site", Role::Key), ("visits", Role::Noisy)], rows));
        assert_eq!(svg.matches("class=\"error-bar\"").count(), GROUPS);
        assert!(svg.contains("Drawn are the 40 largest of 100 groups."));
        assert!(svg.contains(">site 99<") && svg.contains(">site 60<") && !svg.contains(">site 59<"));
    }

    #[test]
    fn a_second_key_is_told_apart_by_colour() {
        let rows = ["a", "b", "c", "d", "e", "f", "g"]
            .iter()
            .flat_map(|site| ["mobile", "desktop"].map(|device| vec![key(site), key(device), count(50)]));
        let columns = [("site", Role::Key), ("device", Role::Key), ("visits", Role::Noisy)];
        let svg = drawn(&answer(&columns, rows.collect()));
        assert!(svg.contains("visits by site and device"));
        assert!(svg.contains(">mobile<") && svg.contains(">desktop<"));
        assert_eq!(svg.matches(&format!("fill=\"{}\"", PALETTE[1])).count(), 8, "seven bars and the legend");
    }

    #[test]
    fn values_of_different_size_get_a_picture_each() {
        let row = |name: &str, n: i64| vec![key(name), count(n), cell(Value::Float(0.5), 0.4, 0.6)];
        let columns = [("site", Role::Key), ("visits", Role::Noisy), ("share", Role::Noisy)];
        let apart = drawn(&priced(answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)])));
        assert_eq!(apart.matches("<svg").count(), 3);
        assert_eq!(apart.matches("for each element").count(), 2, "in the description and under the first title");
        let row = |name: &str, n: i64| vec![key(name), count(n), cell(Value::Float(0.5), 0.4, 0.6), count(2 * n)];
        let columns = [("site", Role::Key), ("a", Role::Noisy), ("share", Role::Noisy), ("b", Role::Noisy)];
        let mixed = drawn(&answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)]));
        assert!(mixed.contains(">a and b by site<") && mixed.contains(">share by site<"), "{mixed}");
        let row = |name: &str, n: i64| vec![key(name), count(n), count(2 * n)];
        let together = drawn(&answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)]));
        assert_eq!(together.matches("<svg").count(), 1);
    }

    #[test]
    fn keys_that_the_question_left_out_do_not_merge_rows() {
        let rows = vec![vec![count(5)], vec![count(6)], vec![count(7)]];
        let svg = drawn(&answer(&[("visits", Role::Noisy)], rows));
        assert_eq!(svg.matches("class=\"error-bar\"").count(), 3);
        assert!(svg.contains("row 3"));
    }

    #[test]
    fn one_number_is_one_bar() {
        let svg = drawn(&priced(answer(&[("visits", Role::Noisy)], vec![vec![count(1234)]])));
        assert!(svg.contains("ε ≤ 1 for each element (user_id, domain), replace."));
        assert!(svg.contains("1,234 [1,224 … 1,246]"));
    }

    #[test]
    fn no_numbers_are_no_picture() {
        assert!(of(&answer(&[("site", Role::Key)], vec![vec![key("a")]])).is_none());
        assert!(of(&answer(&[("site", Role::Key), ("n", Role::Noisy)], Vec::new())).is_none());
        let nothing = Cell { value: Value::Float(f64::NAN), low: None, high: None };
        assert!(of(&answer(&[("n", Role::Noisy)], vec![vec![nothing]])).is_none());
    }

    #[test]
    fn keys_cannot_break_out_of_the_picture() {
        let rows = ["<script>alert(1)</script>", "\"><svg onload=x>", "&amp;"].map(|name| vec![key(name), count(5)]);
        let svg = drawn(&answer(&[("<i>", Role::Key), ("</svg>", Role::Noisy)], rows.to_vec()));
        assert!(
            drawn(&answer(&[("k", Role::Key), ("n", Role::Noisy)], vec![vec![key("\u{202e}rtl"), count(5)]]))
                .contains("\\u{202e}rtl")
        );
        assert!(!svg.contains("<script") && !svg.contains("<svg onload") && !svg.contains("<i>"));
        assert_eq!(svg.matches("</svg>").count(), 1);
    }
}
