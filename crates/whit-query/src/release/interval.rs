//! Intervals of what is made of released values: an expression is computed again with the noisy measures moved as far as their noise may have
//! moved them ([`Design`]).

use super::after::{Table, evaluated, is_noisy, is_placeholder, table};
use super::{ReleasedPart, Tables};
use crate::answer::{Cell, Value};
use crate::error::QueryError;
use crate::noise::Together;
use crate::plan::What;
use crate::plan::aggregate::estimator::NoisyMeasures;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;

/// A derived value is computed again for no more rows than this altogether.
const MOST_ROWS: usize = 400_000;
/// Nor where more noises than this come together.
const MOST_NOISES: usize = 8;

/// The plan without what leaves rows out or orders them.
pub(super) fn all_rows(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => all_rows(plan.inputs().first()?),
        LogicalPlan::Projection(projection) if is_placeholder(&projection.input) => Some(plan.clone()),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let input = all_rows(plan.inputs().first()?)?;
            plan.with_new_exprs(plan.expressions(), vec![input]).ok()
        }
        _ => None,
    }
}

/// What is moved to see how far an expression follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    /// A measure, whose noise is independent of the others'.
    Measure(usize),
    /// A statistic of which the measures are not kept: its own interval is moved over. It is the only axis then.
    Cell(usize),
}

/// Along which axes values are moved, and to which points: 0 is what was released, and from −1 to 1 each noise stays with such a
/// confidence that all do with that of the answer.
struct Design {
    axes: Vec<Axis>,
    /// Axis by axis, how many steps 1 is worth; of a cell, 1: it is moved to the ends of its interval.
    reach: Vec<f64>,
    /// Measures are moved by whole steps, and so are the points.
    points: Vec<Vec<f64>>,
    /// Point by point, whether it belongs to what holds with the answer's confidence. Noise that is mostly 0 stays there;
    /// it is moved to see its slope alone.
    inside: Vec<bool>,
    /// From here on points stand in lines, `ALONG` of them on each.
    first_line: usize,
}

/// Into so many steps a line through the box is divided.
const LINE: usize = 24;
/// So many points stand on it: the ends of its steps, and one more next to either end.
const ALONG: usize = LINE + 3;
/// What bends by no more than this share of its noise is straight, also if it seems to turn.
const STRAIGHT: f64 = 0.05;

impl Design {
    /// The design for these columns; nothing where there are none, or too many. Nor where something that is known by
    /// its interval alone meets another: that of a percentile, a least or a largest value is for one confidence, and
    /// how much wider it would be for a larger one does not follow from it.
    fn new(part: &Table<'_>, used: &BTreeSet<usize>, confidence: f64) -> Option<Self> {
        let mut axes = BTreeSet::new();
        for statistic in used.iter().filter_map(|&column| column.checked_sub(part.keys)) {
            if part.exact[statistic] {
                continue;
            }
            // Of a tree the thousands of counts are not kept.
            let measures = part.made_of.and_then(|(made_of, _)| {
                let measures = made_of.statistics[statistic].measures();
                let is_tree = |&measure: &usize| matches!(made_of.measures[measure].what, What::Tree { .. });
                (!measures.iter().any(is_tree)).then_some(measures)
            });
            match measures {
                Some(measures) => axes.extend(measures.into_iter().map(Axis::Measure)),
                None => axes.extend([Axis::Cell(statistic)]),
            }
        }
        let axes: Vec<Axis> = axes.into_iter().collect();
        if axes.is_empty() || axes.len() > MOST_NOISES {
            return None;
        }
        if axes.len() > 1 && axes.iter().any(|axis| matches!(axis, Axis::Cell(_))) {
            return None;
        }
        // All hold at once, however they hang together.
        let (wrong, many) = (1.0 - confidence, axes.len() as f64);
        let reach = |axis: &Axis| match (axis, part.made_of) {
            (Axis::Measure(i), Some((_, noise))) => noise[*i].exceeded(wrong / many),
            // A cell is alone, and its interval is for the confidence of the answer.
            _ => 1.0,
        };
        let within: Vec<f64> = axes.iter().map(reach).collect();
        // At least one step: how far an expression follows is to be seen also where the noise is mostly 0.
        let reach: Vec<f64> = within.iter().map(|reach| reach.max(1.0)).collect();
        let mut points: Vec<Vec<f64>> = vec![vec![0.0; axes.len()]];
        for axis in 0..axes.len() {
            for to in [-1.0, -0.5, 0.5, 1.0] {
                let mut point = vec![0.0; axes.len()];
                point[axis] = to;
                points.push(point);
            }
        }
        let corner =
            |signs: usize| (0..axes.len()).map(|axis| if signs >> axis & 1 == 1 { 1.0 } else { -1.0 }).collect();
        points.extend((0..1 << axes.len()).filter(|_| axes.len() > 1).map(corner));
        // Lines through the box, axis by axis and from corner to corner: what turns on the way, such as ABS, is seen to.
        let mut lines: Vec<Vec<f64>> = Vec::new();
        for axis in 0..axes.len() {
            lines.push((0..axes.len()).map(|other| if other == axis { 1.0 } else { 0.0 }).collect());
        }
        // One of two opposite corners stands for both. Of very many noises the axes have to do.
        lines.extend((0..1 << (axes.len() - 1)).filter(|_| (2..=4).contains(&axes.len())).map(corner));
        let first_line = points.len();
        let inset = |(axis, reach): (&Axis, &f64)| match axis {
            // Not beyond the next point, or the line would go back and forth.
            Axis::Measure(_) => reach.recip().min(2.0 / LINE as f64),
            Axis::Cell(_) => 1e-3,
        };
        let insets: Vec<f64> = axes.iter().zip(&reach).map(inset).collect();
        for line in &lines {
            let at = |to: f64| -> Vec<f64> { line.iter().map(|end| to * end).collect() };
            // One step of the coarsest noise from either end: what turns in the last part of a line shows there.
            let insets = line.iter().zip(&insets).filter(|(end, _)| **end != 0.0).map(|(_, inset)| *inset);
            let near = 1.0 - insets.fold(0.0, f64::max);
            points.extend([at(-1.0), at(-near)]);
            points.extend((1..LINE).map(|step| at(2.0 * step as f64 / LINE as f64 - 1.0)));
            points.extend([at(near), at(1.0)]);
        }
        for point in &mut points {
            for ((axis, reach), to) in axes.iter().zip(&reach).zip(point) {
                if matches!(axis, Axis::Measure(_)) {
                    *to = (*to * reach).round() / reach;
                }
            }
        }
        let held = |point: &Vec<f64>| point.iter().zip(&within).all(|(&to, &reach)| to == 0.0 || reach > 0.0);
        let inside = points.iter().map(held).collect();
        Some(Self { axes, reach, points, inside, first_line })
    }

    /// The table with all values moved to one point.
    fn cells(&self, part: &Table<'_>, point: &[f64], confidence: f64) -> Result<Vec<Vec<Cell>>, QueryError> {
        let released = part.released;
        let mut cells = released.cells.clone();
        let mut measures = released.measures.clone();
        for ((axis, reach), &to) in self.axes.iter().zip(&self.reach).zip(point) {
            match axis {
                Axis::Measure(i) => {
                    let by = (to * reach).round() as i64;
                    measures[*i].iter_mut().for_each(|value| *value = value.saturating_add(by));
                }
                Axis::Cell(statistic) => cells[*statistic].iter_mut().for_each(|cell| shift(cell, to * reach)),
            }
        }
        if let Some((made_of, noise)) = part.made_of {
            let noisy = NoisyMeasures::new(made_of, noise, measures, &released.found, confidence);
            for (statistic, column) in made_of.statistics.iter().zip(&mut cells) {
                for (cell, value) in
                    column.iter_mut().zip(noisy.values(statistic, released.keys.len())?.into_iter().flatten())
                {
                    cell.value = value;
                }
            }
        }
        Ok(cells)
    }

    /// The interval of an expression, from its values at all points.
    ///
    /// What is as good as linear in the noises has the interval of their sum, with the confidence of the answer, and as
    /// much on either side as the value bends anywhere among the points. What bends more reaches from the least to the
    /// most that it comes to at the points of the box, in which each of m noises is with a chance of being out of 1/m
    /// of the answer's, so that all are with the answer's confidence; and where it turns along a line, by the largest
    /// step of all lines beyond that, since it may turn between two points. Points stand on whole steps, so that a line
    /// from corner to corner goes in a zigzag: what is less than one step of each noise is no turn there.
    ///
    /// Tried, not proved, in three ways. How much a value bends is seen in the box alone, and the noises of the sum are
    /// in it with the answer's confidence and no more. What happens between the points is not seen. And of what has
    /// poles, a divisor that passes through 0 is found by a value that both rises and falls along an axis, and by no
    /// other line: a quotient rises or falls all along an axis, but from corner to corner it may turn. So a pole that
    /// lies near a corner and meets no axis is found only if a point comes to no finite number.
    fn interval(&self, values: &[f64], together: Option<&Together<'_>>, poles: bool) -> Option<(f64, f64)> {
        let inside = || values.iter().zip(&self.inside).filter(|(_, inside)| **inside).map(|(value, _)| *value);
        if inside().any(|value| !value.is_finite()) {
            return None;
        }
        let (least, most) = inside().fold((values[0], values[0]), |(a, b), value| (a.min(value), b.max(value)));
        // The points −1 and 1 of an axis are the first and the last of its four.
        let slope = |axis: usize| (values[4 + 4 * axis] - values[1 + 4 * axis]) / 2.0;
        let slopes: Vec<f64> = (0..self.axes.len()).map(slope).collect();
        let coefficients: Vec<f64> = slopes.iter().zip(&self.reach).map(|(slope, reach)| slope / reach).collect();
        let hair = 1e-9 * (most - least).abs();
        let zigzag: f64 = coefficients.iter().map(|step| step.abs()).filter(|step| step.is_finite()).sum();
        // Of a line along a noise that is mostly 0, only the middle is inside.
        let lines: Vec<Vec<f64>> = values[self.first_line..]
            .chunks_exact(ALONG)
            .zip(self.inside[self.first_line..].chunks_exact(ALONG))
            .map(|(along, inside)| {
                along.iter().zip(inside).filter(|(_, inside)| **inside).map(|(value, _)| *value).collect()
            })
            .collect();
        let turning = |(line, along): (usize, &Vec<f64>)| {
            let hair = if line < self.axes.len() { hair } else { hair + zigzag };
            let steps = || along.windows(2).map(|pair| pair[1] - pair[0]);
            steps().any(|step| step > hair) && steps().any(|step| step < -hair)
        };
        // A quotient rises or falls all along an axis; from corner to corner it may turn.
        if poles && lines.iter().enumerate().take(self.axes.len()).any(turning) {
            return None;
        }
        let turns = lines.iter().enumerate().any(turning);
        let between = lines.iter().flat_map(|along| along.windows(2)).map(|pair| (pair[1] - pair[0]).abs());
        let between = if turns { between.fold(0.0, f64::max) } else { 0.0 };
        let bent = self.points.iter().zip(values).zip(&self.inside).filter(|(_, inside)| **inside);
        let bent = bent.map(|((point, value), _)| {
            // What a noise that stays at 0 would add is nothing, whatever its slope.
            let moved = point.iter().zip(&slopes).filter(|(to, _)| **to != 0.0);
            let straight: f64 = moved.map(|(to, slope)| to * slope).sum();
            (value - values[0] - straight).abs()
        });
        let bent = bent.fold(0.0, f64::max);
        if let Some(together) = together {
            let alone = together.within(&coefficients);
            let within = alone + bent;
            if (!turns || bent <= STRAIGHT * alone) && 2.0 * within < most - least {
                return Some((values[0] - within, values[0] + within));
            }
        }
        Some((least - between, most + between))
    }
}

/// Moves a value by so many times the reach of its interval.
fn shift(cell: &mut Cell, by: f64) {
    let at = match cell.value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
        Value::Null | Value::Bool(_) | Value::Text(_) => return,
    };
    let end = if by < 0.0 { cell.low } else { cell.high };
    let to = at + by.abs() * (end.unwrap_or(f64::NAN) - at);
    cell.value = match cell.value {
        Value::Int(_) if to.is_finite() => Value::Int(to.round() as i64),
        _ => Value::Float(to),
    };
}

/// Both ends of an interval; nothing where they are not known.
pub(super) type Ends = Option<(f64, f64)>;

/// Intervals for one column that is an expression of noisy values, one a group; nothing where they are not known.
pub(super) fn moved(
    tables: &Tables,
    after: &LogicalPlan,
    part: &Table<'_>,
    confidence: f64,
    (column, used): (usize, &BTreeSet<usize>),
) -> Result<Option<Vec<Ends>>, QueryError> {
    let released = part.released;
    let groups = released.keys.len();
    let leap = leap(after, column, part).unwrap_or(Leap::Pole);
    if leap == Leap::Jump {
        return Ok(None);
    }
    let (Some(everything), Some(design)) = (all_rows(after), Design::new(part, used, confidence)) else {
        return Ok(None);
    };
    if design.points.len() * groups > MOST_ROWS || groups == 0 {
        return Ok(None);
    }
    let empty = vec![Vec::with_capacity(design.points.len() * groups); released.cells.len()];
    let mut all = ReleasedPart { cells: empty, ..ReleasedPart::default() };
    for point in &design.points {
        all.keys.extend(released.keys.iter().cloned());
        for (all, cells) in all.cells.iter_mut().zip(design.cells(part, point, confidence)?) {
            all.extend(cells);
        }
    }
    let batch = table(part, &all)?;
    let Some(values) = evaluated(tables, &everything, &batch, column, design.points.len() * groups)? else {
        return Ok(None);
    };
    let by_group = (0..groups).map(|group| values.iter().skip(group).step_by(groups).copied().collect::<Vec<_>>());
    let noises = design.axes.iter().map(|axis| match (axis, part.made_of) {
        (Axis::Measure(i), Some((_, noise))) => Some(&noise[*i]),
        _ => None,
    });
    let together = noises.collect::<Option<Vec<_>>>().map(|noises| Together::new(noises, confidence));
    let poles = leap == Leap::Pole;
    Ok(Some(by_group.map(|values| design.interval(&values, together.as_ref(), poles)).collect()))
}

/// How an expression of noisy values may leap where they move but little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leap {
    /// Not at all, or only upwards or only downwards, as rounding does.
    None,
    /// To infinity and back, where a divisor passes through 0; and whatever is not known to do less.
    Pole,
    /// Back and forth, as a remainder does: what lies between two points tells nothing of it.
    Jump,
}

/// How one column of a plan may leap, by the expressions that it is made of alone, and so whatever the noise was; nothing where these
/// cannot be followed.
fn leap(plan: &LogicalPlan, column: usize, part: &Table<'_>) -> Option<Leap> {
    match plan {
        LogicalPlan::Projection(projection) if is_placeholder(&projection.input) => Some(Leap::None),
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column)?;
            let mut worst = Leap::None;
            let _ = expr.apply(|node| {
                worst = worst.max(own_leap(node, |inner| is_noisy(inner, &projection.input, part)));
                Ok(TreeNodeRecursion::Continue)
            });
            let inner: BTreeSet<&datafusion::common::Column> = expr.column_refs().into_iter().collect();
            for inner in inner {
                let place = projection.input.schema().maybe_index_of_column(inner)?;
                worst = worst.max(leap(&projection.input, place, part)?);
            }
            Some(worst)
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            leap(plan.inputs().first()?, column, part)
        }
        _ => None,
    }
}

/// How a step of an expression may leap by itself.
fn own_leap(expr: &Expr, is_noisy: impl Fn(&Expr) -> bool) -> Leap {
    match expr {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::Divide if is_noisy(binary.right.as_ref()) => Leap::Pole,
            Operator::Modulo | Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor
                if is_noisy(binary.left.as_ref()) || is_noisy(binary.right.as_ref()) =>
            {
                Leap::Jump
            }
            _ => Leap::None,
        },
        Expr::ScalarFunction(function) if function.args.iter().any(&is_noisy) => match function.name() {
            "abs" | "round" | "floor" | "ceil" | "trunc" | "signum" | "sqrt" | "cbrt" | "exp" | "sin" | "cos"
            | "atan" | "sinh" | "cosh" | "tanh" | "asinh" | "degrees" | "radians" | "greatest" | "least"
            | "coalesce" => Leap::None,
            "power" if function.args.get(1).is_some_and(is_whole_exponent) => Leap::None,
            "gcd" | "lcm" => Leap::Jump,
            _ => Leap::Pole,
        },
        _ => Leap::None,
    }
}

/// Whether an exponent is a constant whole number from 0 on: such a power is a polynomial, which has no pole.
fn is_whole_exponent(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_whole_exponent(&cast.expr),
        Expr::TryCast(cast) => is_whole_exponent(&cast.expr),
        Expr::Literal(value, _) => value.cast_to(&DataType::Float64).is_ok_and(
            |value| matches!(value, ScalarValue::Float64(Some(power)) if power >= 0.0 && power.fract() == 0.0),
        ),
        _ => false,
    }
}
