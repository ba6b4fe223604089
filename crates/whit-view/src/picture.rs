//! From an answer to the picture that fits it: bars, lines where a key is time or goes on and on, or a heat map where two keys have many values.

use crate::measure::Measure;
use crate::number::grouped;
use crate::plain::visible;
use crate::plot::{
    BarChart, BarSeries, ChartAxis, HeatChart, HeatKey, LineChart, PALETTE, Picture, Scale, Trace, time,
};
use crate::text::{measure, one_line, shown};
use std::cmp::Ordering;
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
/// The most values of a key in a heat map.
const CELLS: usize = 60;

/// What an answer is drawn as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// Bars, in the order of the answer.
    Bars,
    /// Lines along a key that has an order.
    Lines,
    /// A cell for each pair of two keys.
    Heat,
}

/// The picture of an answer, as whatever fits it where no kind is named; nothing where the answer has no number to draw.
pub fn of(answer: &Answer, kind: Option<ChartKind>) -> Option<Picture> {
    let panels = panels(answer, kind);
    (!panels.is_empty()).then(|| Picture::stack(&panels))
}

/// The same as one picture for each axis.
pub(crate) fn panels(answer: &Answer, kind: Option<ChartKind>) -> Vec<Picture> {
    DrawingPlan::new(answer, kind).map_or_else(Vec::new, |plan| plan.draw())
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
    /// The two keys of a heat map: from top to bottom, and from left to right.
    heat: Option<(usize, usize)>,
    /// Why it is not drawn as somebody wants it; may be empty.
    unfit: &'static str,
}

impl<'a> DrawingPlan<'a> {
    fn new(answer: &'a Answer, kind: Option<ChartKind>) -> Option<Self> {
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
        let unfit = match kind {
            Some(ChartKind::Heat) if keys.len() != 2 => "Bars or lines were drawn: a heat map has two keys. ",
            Some(ChartKind::Lines) if !keys.iter().any(|&i| ordered(answer, i, 2).is_some()) => {
                "Bars were drawn: lines go along a key of numbers or times. "
            }
            _ => "",
        };
        let kind = kind.filter(|_| unfit.is_empty());
        if let [down, across] = keys[..] {
            let (many, more) = (distinct(answer, down), distinct(answer, across));
            if kind == Some(ChartKind::Heat) || kind.is_none() && many.min(more) > PALETTE.len() {
                // The longer key has the longer side.
                let heat = Some(if more >= many { (down, across) } else { (across, down) });
                return Some(Self { answer, values, along: None, colour: None, groups: keys, heat, unfit });
            }
        }
        let least = if kind == Some(ChartKind::Lines) { 2 } else { PLACES };
        let along = keys.iter().find_map(|&i| {
            let (scale, places) = ordered(answer, i, least)?;
            // Whole numbers are things to compare, in the order that was asked for, as long as there is room for a bar each.
            let bars =
                kind == Some(ChartKind::Bars) || kind.is_none() && is_whole(answer, i) && distinct(answer, i) <= GROUPS;
            (!bars).then_some((i, scale, places))
        });
        let rest = |but: usize| keys.iter().copied().filter(|&i| i != but).collect::<Vec<_>>();
        if let Some((i, ..)) = along {
            let others = rest(i);
            let colour = (!others.is_empty()).then_some(others);
            return Some(Self { answer, values, along, colour, groups: vec![i], heat: None, unfit });
        }
        // Of two keys, the one with a handful of values is distinguished by colour.
        let few =
            keys.iter().map(|&i| (distinct(answer, i), i)).filter(|&(n, _)| (2..=PALETTE.len()).contains(&n)).min();
        let colour = few.filter(|_| keys.len() == 2).map(|(_, i)| i);
        let groups = colour.map_or_else(|| keys.clone(), rest);
        Some(Self { answer, values, along: None, colour: colour.map(|i| vec![i]), groups, heat: None, unfit })
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
        let mut note = format!("{}{more}", self.unfit);
        if let Some(keys) = self.heat {
            return self.heat_map(values[0], keys, subtitle, note);
        }
        let (strands, hidden) = self.strands(values);
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
        // In the order of the answer, which is the one that was asked for; a group of which nothing was released has its place, too.
        let mut groups: Vec<(String, f64)> = Vec::new();
        let mut place: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &names {
            place.entry(name).or_insert_with(|| {
                groups.push((name.clone(), f64::NEG_INFINITY));
                groups.len() - 1
            });
        }
        for (row, measure) in strands.iter().flat_map(|strand| &strand.values) {
            let largest = &mut groups[place[names[*row].as_str()]].1;
            *largest = largest.max(measure.value);
        }
        let all = groups.len();
        if all > GROUPS {
            groups = largest_in_order(groups, GROUPS);
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

    /// Each pair of two keys as a cell, the keys in the order of the answer.
    fn heat_map(&self, value: usize, (down, across): (usize, usize), subtitle: String, mut note: String) -> Picture {
        let role = self.answer.columns[value].role;
        let measured: Vec<(String, String, Option<Measure>)> = self
            .answer
            .rows
            .iter()
            .map(|cells| {
                let measure = cells.get(value).and_then(|cell| measure(cell, role));
                (words(cells, &[down]), words(cells, &[across]), measure)
            })
            .collect();
        let mut key = |column: usize, other: usize, name: &dyn Fn(&(String, String, Option<Measure>)) -> String| {
            let mut sizes: Vec<(String, f64)> = Vec::new();
            let mut place: BTreeMap<String, usize> = BTreeMap::new();
            for row in &measured {
                let at = *place.entry(name(row)).or_insert_with_key(|name| {
                    sizes.push((name.clone(), 0.0));
                    sizes.len() - 1
                });
                sizes[at].1 += row.2.map_or(0.0, |measure| measure.value.abs());
            }
            if let Some(order) = order_of(self.answer, column, other) {
                sizes.sort_by_key(|(name, _)| order.iter().position(|own| own == name));
            }
            let (all, called) = (sizes.len(), self.names(&[column]));
            if all > CELLS {
                sizes = largest_in_order(sizes, CELLS);
                let _ =
                    write!(note, "Drawn are the {CELLS} largest of {} values of {called}. ", grouped(&all.to_string()));
            }
            HeatKey { name: called, values: sizes.into_iter().map(|(name, _)| name).collect() }
        };
        let (down, across) = (key(down, across, &|row| row.0.clone()), key(across, down, &|row| row.1.clone()));
        let places = |key: &HeatKey| -> BTreeMap<String, usize> {
            key.values.iter().cloned().enumerate().map(|(i, name)| (name, i)).collect()
        };
        let (lines, columns) = (places(&down), places(&across));
        let mut cells = vec![vec![None; across.values.len()]; down.values.len()];
        for (one, other, measure) in measured {
            if let (Some(&line), Some(&column)) = (lines.get(&one), columns.get(&other)) {
                cells[line][column] = measure;
            }
        }
        HeatChart { title: self.title(&[value]), subtitle, across, down, cells, note }.draw()
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
            match shares.iter_mut().find(alike).filter(|_| self.colour.is_none() && self.heat.is_none()) {
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

/// The largest of some, in the order in which they stand.
fn largest_in_order(all: Vec<(String, f64)>, most: usize) -> Vec<(String, f64)> {
    let mut sizes: Vec<(usize, f64)> = all.iter().map(|(_, size)| *size).enumerate().collect();
    sizes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut kept: Vec<usize> = sizes.into_iter().take(most).map(|(at, _)| at).collect();
    kept.sort_unstable();
    let mut all: Vec<Option<(String, f64)>> = all.into_iter().map(Some).collect();
    kept.into_iter().filter_map(|at| all[at].take()).collect()
}

/// The names of a key in its own order, up or down, where the answer goes through them so within each value of another: of some pairs nothing may have been released, so that names do not come in
/// that order by themselves. Nothing where it goes another way.
fn order_of(answer: &Answer, key: usize, other: usize) -> Option<Vec<String>> {
    let value = |row: &'_ [Cell], key: usize| row.get(key).map(|cell| cell.value.clone());
    let steps = |same: bool| {
        let rows = answer.rows.windows(2).filter(move |pair| !same || value(&pair[0], other) == value(&pair[1], other));
        let steps = rows.map(|pair| compared(pair[0].get(key), pair[1].get(key)));
        steps.filter(|step| *step != Some(Ordering::Equal)).collect::<Vec<_>>()
    };
    let within = Some(steps(true)).filter(|steps| !steps.is_empty()).unwrap_or_else(|| steps(false));
    let way = *within.first()?;
    if way.is_none() || within.iter().any(|step| *step != way) {
        return None;
    }
    let mut named: Vec<&Vec<Cell>> = answer.rows.iter().collect();
    if named.iter().any(|row| compared(row.get(key), named[0].get(key)).is_none()) {
        return None;
    }
    named.sort_by(|a, b| compared(a.get(key), b.get(key)).unwrap_or(Ordering::Equal));
    if way == Some(Ordering::Greater) {
        named.reverse();
    }
    let mut names: Vec<String> = named.into_iter().map(|row| words(row, &[key])).collect();
    names.dedup();
    Some(names)
}

/// How two keys stand to each other, where both are numbers or both are text.
fn compared(a: Option<&Cell>, b: Option<&Cell>) -> Option<Ordering> {
    match (&a?.value, &b?.value) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => Some(a.total_cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Whether a key has whole numbers alone.
fn is_whole(answer: &Answer, key: usize) -> bool {
    answer.rows.iter().all(|row| matches!(row.get(key).map(|cell| &cell.value), Some(Value::Int(_) | Value::Null)))
}

/// The places on an axis, and between them one more where places that stand at even distances leave some out: no line leads across what was not released.
fn with_gaps(places: &[f64]) -> Vec<f64> {
    let distances: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = distances.clone();
    sorted.sort_by(f64::total_cmp);
    let Some(&usual) = sorted.get(sorted.len() / 2) else { return places.to_vec() };
    // Months have 28 to 31 days, and years 365 or 366.
    let even = distances.iter().filter(|distance| (*distance / usual - 1.0).abs() < 0.15).count();
    let regular = 4 * even >= 3 * distances.len();
    let mut all = Vec::with_capacity(places.len());
    for (i, &place) in places.iter().enumerate() {
        all.push(place);
        if let Some(distance) = distances.get(i).filter(|distance| regular && **distance > 1.5 * usual) {
            all.push(place + distance / 2.0);
        }
    }
    all
}

/// Points from left to right. A place on the axis that other lines have and this one does not is a gap.
fn points(values: &[(usize, Measure)], places: &[Option<f64>]) -> Vec<(f64, Option<Measure>)> {
    let mut all: Vec<f64> = places.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let all = with_gaps(&all);
    let mut points: Vec<(f64, Option<Measure>)> = all.into_iter().map(|x| (x, None)).collect();
    for (row, measure) in values {
        let Some(x) = places[*row] else { continue };
        if let Ok(at) = points.binary_search_by(|(place, _)| place.total_cmp(&x)) {
            points[at].1 = Some(*measure);
        }
    }
    points
}

/// Where each row stands on a key that has an order: all numbers, or all dates and times, and at least so many.
fn ordered(answer: &Answer, key: usize, least: usize) -> Option<(Scale, Vec<Option<f64>>)> {
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
    (seen.len() >= least).then_some((scale, places))
}

/// How many values a key has.
fn distinct(answer: &Answer, key: usize) -> usize {
    let mut words: Vec<String> = answer.rows.iter().map(|row| words(row, &[key])).collect();
    words.sort_unstable();
    words.dedup();
    words.len()
}

#[cfg(test)]
mod tests;
