//! Between which numbers a value lies, from what is declared of its columns.
//!
//! A range need not be right to be safe: every value is clamped into it before it is summed, so a range that is too
//! narrow costs accuracy and never privacy. It must not come from the data, and it does not: it reads the declaration
//! and the question alone.

use crate::evaluate::compares;
use crate::evaluate::number::literal;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Between which numbers a value lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Between these.
    Known {
        /// The least.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// To be found privately.
    Auto,
}

impl Range {
    /// From `low` to `high`, whichever comes first.
    pub(crate) fn between(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite()).then(|| Self::Known { low: low.min(high), high: low.max(high) })
    }

    fn hull(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known { low: a, high: b }, Self::Known { low: c, high: d }) => {
                Self::Known { low: a.min(c), high: b.max(d) }
            }
            (Self::Auto, _) | (_, Self::Auto) => Self::Auto,
        }
    }
}

/// The range of an expression; `None` where nothing is declared that bounds it.
pub(crate) fn of(expr: &Expr, column: &dyn Fn(&Column) -> Option<Range>) -> Option<Range> {
    let range = |expr: &Expr| of(expr, column);
    match expr {
        Expr::Alias(alias) => range(&alias.expr),
        Expr::Column(name) => column(name),
        Expr::Literal(value, _) => literal(value).and_then(|value| Range::between(value, value)),
        Expr::Negative(inner) => map(range(inner)?, |low, high| (-high, -low)),
        Expr::Cast(cast) => range(&cast.expr),
        Expr::TryCast(cast) => range(&cast.expr),
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And | Operator::Or => Range::between(0.0, 1.0),
            op if compares(op) => Range::between(0.0, 1.0),
            Operator::Plus => both(range(&binary.left)?, range(&binary.right)?, |a, b| a + b),
            Operator::Minus => both(range(&binary.left)?, range(&binary.right)?, |a, b| a - b),
            Operator::Multiply => both(range(&binary.left)?, range(&binary.right)?, |a, b| a * b),
            Operator::Divide => match range(&binary.right)? {
                Range::Known { low, high } if low > 0.0 || high < 0.0 => {
                    both(range(&binary.left)?, Range::Known { low, high }, |a, b| a / b)
                }
                Range::Known { .. } => None,
                Range::Auto => Some(Range::Auto),
            },
            Operator::Modulo => match range(&binary.right)? {
                Range::Known { low, high } => Range::between(-low.abs().max(high.abs()), low.abs().max(high.abs())),
                Range::Auto => Some(Range::Auto),
            },
            _ => None,
        },
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
            // A branch that is NULL is no value and bounds nothing.
            let mut ranges = branches.filter(|branch| !is_null(branch)).map(range);
            let first = ranges.next()??;
            ranges.try_fold(first, |hull, next| Some(hull.hull(next?)))
        }
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Not(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_) => Range::between(0.0, 1.0),
        Expr::ScalarFunction(call) => function(call.name(), &call.args, &range),
        _ => None,
    }
}

/// The range of a column of this type in rows that pass a condition: `x BETWEEN 0 AND 60` bounds x as well as a declaration does, and narrows one that is declared.
///
/// Only numbers that are written out say something: what they are computed from, or read as, the engine may see otherwise (5 / 2 is 2, and '5' stands before '40').
pub(crate) fn under(condition: &Expr, column: &Column, kind: &DataType, known: Option<Range>) -> Option<Range> {
    if !kind.is_numeric() {
        return known;
    }
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let own = |expr: &Expr| matches!(expr, Expr::Column(named) if named == column);
    // Whole numbers lie at whole ends.
    let from = |end: f64| if kind.is_integer() { end.ceil() } else { end };
    let to = |end: f64| if kind.is_integer() { end.floor() } else { end };
    for part in split_conjunction(condition) {
        match part {
            Expr::Between(between) if !between.negated && own(&between.expr) => {
                low = written_out(&between.low).map_or(low, |least| low.max(from(least)));
                high = written_out(&between.high).map_or(high, |most| high.min(to(most)));
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (op, constant) = match (own(left), own(right)) {
                    (true, false) => (Some(*op), written_out(right)),
                    (false, true) => (op.swap(), written_out(left)),
                    _ => continue,
                };
                let Some((op, constant)) = op.zip(constant) else { continue };
                if matches!(op, Operator::Gt | Operator::GtEq | Operator::Eq) {
                    low = low.max(from(constant));
                }
                if matches!(op, Operator::Lt | Operator::LtEq | Operator::Eq) {
                    high = high.min(to(constant));
                }
            }
            _ => {}
        }
    }
    if let Some(Range::Known { low: least, high: most }) = known {
        (low, high) = (low.max(least), high.min(most));
    }
    // Where no row can pass, whatever was known stays.
    let narrow = (low <= high).then(|| Range::between(low, high)).flatten();
    narrow.or(known)
}

/// A number that is written out, and so small that a float has it exactly if it is whole.
fn written_out(expr: &Expr) -> Option<f64> {
    const LARGEST: f64 = (1_u64 << 53) as f64;
    let value = match expr {
        Expr::Literal(value, _) if value.data_type().is_numeric() => literal(value)?,
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(value, _) if value.data_type().is_numeric() => -literal(value)?,
            _ => return None,
        },
        _ => return None,
    };
    (value.abs() < LARGEST).then_some(value)
}

fn function(name: &str, args: &[Expr], range: &dyn Fn(&Expr) -> Option<Range>) -> Option<Range> {
    let of = |i: usize| args.get(i).and_then(range);
    match name {
        "clamp" => match (of(1)?, of(2)?) {
            (Range::Known { low, .. }, Range::Known { high, .. }) => Range::between(low, high),
            _ => None,
        },
        "width_bucket" => match of(3)? {
            Range::Known { high, .. } => Range::between(0.0, high + 1.0),
            Range::Auto => None,
        },
        "abs" => match of(0)? {
            Range::Known { low, high } if low >= 0.0 || high <= 0.0 => Range::between(low.abs(), high.abs()),
            Range::Known { low, high } => Range::between(0.0, low.abs().max(high.abs())),
            Range::Auto => Some(Range::Auto),
        },
        "greatest" | "least" | "coalesce" | "nvl" => {
            let mut ranges = args.iter().map(range);
            let first = ranges.next()??;
            ranges.try_fold(first, |hull, next| Some(hull.hull(next?)))
        }
        "nullif" => of(0),
        "round" | "floor" | "ceil" | "trunc" => map(of(0)?, |low, high| (low.floor(), high.ceil())),
        "sqrt" => map(of(0)?, |low, high| (low.max(0.0).sqrt(), high.max(0.0).sqrt())),
        "ln" => monotone(of(0)?, f64::ln),
        "log2" => monotone(of(0)?, f64::log2),
        "log10" => monotone(of(0)?, f64::log10),
        "exp" => monotone(of(0)?, f64::exp),
        "signum" | "sin" | "cos" | "tanh" => Range::between(-1.0, 1.0),
        "isnan" | "iszero" | "starts_with" | "ends_with" | "regexp_like" => Range::between(0.0, 1.0),
        _ => None,
    }
}

fn monotone(range: Range, f: impl Fn(f64) -> f64) -> Option<Range> {
    match range {
        Range::Known { low, high } => Range::between(f(low), f(high)),
        Range::Auto => Some(Range::Auto),
    }
}

fn map(range: Range, f: impl Fn(f64, f64) -> (f64, f64)) -> Option<Range> {
    match range {
        Range::Known { low, high } => {
            let (low, high) = f(low, high);
            Range::between(low, high)
        }
        Range::Auto => Some(Range::Auto),
    }
}

fn both(left: Range, right: Range, f: impl Fn(f64, f64) -> f64) -> Option<Range> {
    match (left, right) {
        (Range::Known { low: a, high: b }, Range::Known { low: c, high: d }) => {
            let ends = [f(a, c), f(a, d), f(b, c), f(b, d)];
            Range::between(
                ends.into_iter().fold(f64::INFINITY, f64::min),
                ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
            )
        }
        (Range::Auto, _) | (_, Range::Auto) => Some(Range::Auto),
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{abs, col, lit, when};

    fn range(expr: &Expr) -> Option<Range> {
        of(expr, &|column| match column.name.as_str() {
            "seconds" => Range::between(0.0, 600.0),
            "change" => Range::between(-3.0, 5.0),
            "found" => Some(Range::Auto),
            _ => None,
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with what may be none")]
    fn known(low: f64, high: f64) -> Option<Range> {
        Some(Range::Known { low, high })
    }

    #[test]
    fn arithmetic_follows_the_ends_of_its_ranges() {
        assert_eq!(range(&(col("seconds") / lit(60))), known(0.0, 10.0));
        assert_eq!(range(&(col("change") * col("change"))), known(-15.0, 25.0)); // safe, if not tight
        assert_eq!(range(&(lit(1) - col("change"))), known(-4.0, 4.0));
        assert_eq!(range(&abs(col("change"))), known(0.0, 5.0));
        assert_eq!(range(&(col("seconds") / col("change"))), None);
        assert_eq!(range(&(col("found") + lit(1))), Some(Range::Auto));
        assert_eq!(range(&col("unknown")), None);
    }

    #[test]
    fn a_case_covers_all_its_branches_and_comparisons_are_zero_or_one() {
        let case = when(col("change").gt(lit(0)), col("seconds")).otherwise(lit(-1)).unwrap();
        assert_eq!(range(&case), known(-1.0, 600.0));
        assert_eq!(range(&col("name").like(lit("a%"))), known(0.0, 1.0));
    }

    #[test]
    fn a_condition_bounds_what_passes_it() {
        let column = Column::new_unqualified("x");
        let under = |condition: Expr, range| under(&condition, &column, &DataType::Float64, range);
        let x = || col("x");
        assert_eq!(under(x().between(lit(0), lit(60)), None), known(0.0, 60.0));
        assert_eq!(under(x().gt(lit(-5)).and(lit(7.5).gt_eq(x())), None), known(-5.0, 7.5));
        assert_eq!(under(x().gt(-lit(5)).and(lit(7.5).gt_eq(x())), None), known(-5.0, 7.5));
        assert_eq!(under(x().eq(lit(3)), None), known(3.0, 3.0));
        assert_eq!(under(x().lt(lit(10)), known(0.0, 600.0)), known(0.0, 10.0));
        assert_eq!(under(x().lt(lit(10)), Some(Range::Auto)), Some(Range::Auto));
        assert_eq!(under(x().between(lit(0), lit(60)), Some(Range::Auto)), known(0.0, 60.0));
        // One end, another column, either of two, or nothing that could pass.
        assert_eq!(under(x().lt(lit(10)), None), None);
        assert_eq!(under(col("y").between(lit(0), lit(60)), None), None);
        assert_eq!(under(x().between(lit(0), lit(1)).or(x().gt(lit(5))), None), None);
        assert_eq!(under(x().not_between(lit(0), lit(60)), None), None);
        assert_eq!(under(x().gt(lit(700)), known(0.0, 600.0)), known(0.0, 600.0));
    }

    #[test]
    fn only_numbers_that_are_written_out_bound_only_numbers() {
        use datafusion::prelude::{cast, try_cast};
        let column = Column::new_unqualified("x");
        let under = |condition: Expr, kind: DataType, range| under(&condition, &column, &kind, range);
        let (x, wide) = (|| col("x"), known(0.0, 600.0));
        // A whole number above 2.5 is 3 at least, and one that is 2.5 there is none.
        let ends = x().gt(lit(2.5)).and(x().lt_eq(lit(7.5)));
        assert_eq!(under(ends.clone(), DataType::Int64, wide), known(3.0, 7.0));
        assert_eq!(under(ends, DataType::Float64, wide), known(2.5, 7.5));
        assert_eq!(under(x().eq(lit(2.5)), DataType::Int64, wide), wide);
        // 7 / 2 is 3 to the engine, CAST(2.7 AS INT) is 2, and '5' is a text.
        for end in [
            lit(7) / lit(2),
            cast(lit(2.7), DataType::Int64),
            try_cast(lit("5"), DataType::Int64),
            lit("5"),
            lit(3) + lit(4),
            lit(i64::MAX),
        ] {
            assert_eq!(under(x().lt(end.clone()), DataType::Float64, wide), wide, "{end}");
            assert_eq!(under(x().between(lit(0), end.clone()), DataType::Int64, None), None, "{end}");
        }
        for kind in [DataType::Utf8, DataType::Utf8View, DataType::Date32, DataType::Boolean] {
            assert_eq!(under(x().between(lit(0), lit(60)), kind, None), None);
        }
    }
}
