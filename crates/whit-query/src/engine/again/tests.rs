//! Rewrites of the engine that are wrong, each in the place of its last, and what becomes of a question then.

use super::super::{CHOICE, ChoiceFunction, Cut, CutFunction};
use super::function;
use crate::bound::quantise::{Quantise, QuantiseFunction, Shape};
use crate::plan::{Asking, ELEMENT, USER};
use crate::source::scratch::Scratch;
use crate::source::{Tables, Tuning};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result as Outcome;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::prelude::{cast, col, lit, try_cast};
use std::collections::BTreeMap;
use std::sync::Arc;

const CONFIG: &str = "
[dataset.visits]
source = 'visits.parquet'
unit.user = 'id'
unit.element = 'ELEMENT'
unit.protect = 'element'
unit.caps = { rows_per_element = 2, elements_per_user = 3, groups = 2 }
columns.seconds = { bounds = [0, 600] }
columns.day = { bounds = [0, 31] }
budget.element = { epsilon = 1, delta = 1e-6 }

[dataset.shops]
source = 'shops.parquet'
public = true
";

fn tables(name: &str, element: &str) -> (Scratch, Tables) {
    let scratch = Scratch::new(name);
    let ids = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let texts = || Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
    let seconds = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let columns = vec![("id", ids()), ("day", ids()), ("shop", texts()), ("site", texts()), ("seconds", seconds)];
    scratch.parquet("visits.parquet", columns);
    scratch.parquet("shops.parquet", vec![("shop", texts()), ("size", ids())]);
    let config = scratch.write("whit.toml", CONFIG.replace("ELEMENT", element));
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
    (scratch, tables)
}

#[derive(Debug)]
struct Rewrite(fn(LogicalPlan) -> Outcome<LogicalPlan>);

impl OptimizerRule for Rewrite {
    fn name(&self) -> &'static str {
        "rewrite"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Outcome<Transformed<LogicalPlan>> {
        (self.0)(plan).map(Transformed::yes)
    }
}

/// What is said of a question that the engine rewrites so.
fn asked(name: &str, element: &str, sql: &str, rewrite: fn(LogicalPlan) -> Outcome<LogicalPlan>) -> String {
    let (_scratch, tables) = tables(name, element);
    tables.warehouse().context().add_optimizer_rule(Arc::new(Rewrite(rewrite)));
    tables.plan(sql, &Asking::default()).map_or_else(|error| error.sentence, |_| "planned".to_owned())
}

/// The plan with some expressions of the projection that names the unit made others, under the names that they had.
fn remade(plan: LogicalPlan, make: impl Fn(&str, &Expr) -> Option<Expr>) -> Outcome<LogicalPlan> {
    let done = plan.transform_up(|node| match node {
        LogicalPlan::Projection(projection) if projection.schema.has_column_with_unqualified_name(USER) => {
            let exprs = projection.expr.iter().map(|expr| {
                let name = expr.schema_name().to_string();
                let made = make(&name, &expr.clone().unalias_nested().data);
                made.map_or_else(|| expr.clone(), |made| made.alias(name))
            });
            let made = Projection::try_new(exprs.collect(), Arc::clone(&projection.input))?;
            Ok(Transformed::yes(LogicalPlan::Projection(made)))
        }
        other => Ok(Transformed::no(other)),
    });
    done.map(|done| done.data)
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all rewrites")]
fn untouched(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    Ok(plan)
}

fn swapped_user(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == USER).then(|| col("visits.day")))
}

fn swapped_element(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == ELEMENT).then(|| col("visits.id")))
}

fn other_element(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == ELEMENT).then(|| col("visits.shop")))
}

/// With the last bound of each sum ten times as far.
fn widened(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let wide = Quantise::of(0.0, 6000.0, Shape::Plain, false).unwrap();
    remade(plan, |_, expr| match expr {
        Expr::ScalarFunction(call) => {
            function::<QuantiseFunction>(call).map(|_| QuantiseFunction::call(wide.clone(), call.args[0].clone()))
        }
        _ => None,
    })
}

/// With leaves over a range that nobody planned.
fn other_leaves(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let cut = Cut::Tree { low: 0.0_f64.to_bits(), high: 60.0_f64.to_bits() };
    remade(plan, |_, expr| match expr {
        Expr::ScalarFunction(call) => {
            function::<CutFunction>(call).map(|_| CutFunction::call(cut.clone(), call.args[0].clone()))
        }
        _ => None,
    })
}

/// With what is counted no longer asked whether it is there.
fn unbounded(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == "m0").then(|| col("visits.seconds").gt(col("visits.seconds"))))
}

fn ending_early(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let done = plan.transform_up(|node| match node {
        LogicalPlan::TableScan(mut scan) => {
            scan.fetch = Some(1);
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    });
    done.map(|done| done.data)
}

fn limited(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()
}

#[test]
fn a_rewrite_that_changes_whose_rows_are_or_what_bounds_them_is_refused() {
    type Case = (&'static str, fn(LogicalPlan) -> Outcome<LogicalPlan>, &'static str);
    const SUM: &str = "SELECT SUM(seconds), COUNT(*) FROM visits WHERE day > 0";
    let cases: [Case; 11] = [
        (SUM, untouched, "planned"),
        (SUM, swapped_user, "the first column is not the user"),
        (SUM, swapped_element, "the second column is not the element"),
        (SUM, widened, "not bounded as its noise was priced for"),
        (SUM, ending_early, "ends early is not known to keep the unit"),
        (SUM, limited, "is not known to keep the unit"),
        ("SELECT COUNT(seconds) FROM visits", untouched, "planned"),
        ("SELECT COUNT(seconds) FROM visits", unbounded, "not bounded as its noise was priced for"),
        ("SELECT MEDIAN(seconds) FROM visits", untouched, "planned"),
        ("SELECT MEDIAN(seconds) FROM visits", other_leaves, "not bounded as its noise was priced for"),
        ("SELECT MEDIAN(seconds) FROM visits", swapped_user, "the first column is not the user"),
    ];
    for (i, (sql, rewrite, words)) in cases.into_iter().enumerate() {
        let found = asked(&format!("again_{i}"), "day", sql, rewrite);
        assert!(found.contains(words), "{sql}, case {i}: {found}");
    }
}

/// With rows chosen by something that is in them, or by what another seed makes of them.
fn chosen_by_day(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == CHOICE).then(|| cast(col("visits.day"), DataType::UInt64)))
}

fn chosen_foreseeably(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |_, expr| match expr {
        Expr::ScalarFunction(call) => {
            function::<ChoiceFunction>(call).map(|own| ChoiceFunction::call(own.parameter ^ 1, call.args.clone()))
        }
        _ => None,
    })
}

/// With all rows taken for those of one user, of whom only so many are kept, or each for one of a user of its own.
fn of_one_user(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    remade(plan, |name, _| (name == USER).then(|| col("visits.id") * lit(0)))
}

/// Where an event is protected, coarser rungs are priced by caps: rows beyond them must not come back, and what is kept is a function of one user's rows.
#[test]
fn a_rewrite_that_brings_back_rows_beyond_a_cap_is_refused() {
    let events = CONFIG.replace("'element'\nunit.caps", "'event'\nunit.caps").replace("budget.element", "budget.event");
    for (i, (rewrite, words)) in [
        (untouched as fn(LogicalPlan) -> Outcome<LogicalPlan>, "planned"),
        (swapped_user, "the first column is not the user"),
        (of_one_user, "the first column is not the user"),
        (swapped_element, "the second column is not the element"),
        (chosen_by_day, "rows beyond a cap are not chosen by their numbers"),
        (chosen_foreseeably, "rows beyond a cap are not chosen by their numbers"),
        (limited, "is not known to keep the unit"),
    ]
    .into_iter()
    .enumerate()
    {
        for (j, sql) in [
            "SELECT SUM(seconds), COUNT(*) FROM visits WHERE day > 0",
            "SELECT visits.shop, COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop GROUP BY visits.shop",
        ]
        .into_iter()
        .enumerate()
        {
            let (scratch, _) = tables(&format!("again_events_{i}_{j}"), "day");
            let config = scratch.write("whit.toml", events.replace("ELEMENT", "day"));
            let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
            tables.warehouse().context().add_optimizer_rule(Arc::new(Rewrite(rewrite)));
            let asking = Asking { epsilon: Some(0.5), delta: Some(1e-7), groups: Some(2), ..Asking::default() };
            let found = tables.plan(sql, &asking).map_or_else(|error| error.sentence, |_| "planned".to_owned());
            assert!(found.contains(words), "{sql}, case {i}: {found}");
        }
    }
}

#[test]
fn an_element_that_is_computed_is_found_again_in_whatever_form_the_engine_gives_it() {
    let elements =
        ["lower(site)", "CASE WHEN lower(site) = lower(shop) THEN site ELSE lower(site) END", "concat(site, shop)"];
    for (i, element) in elements.into_iter().enumerate() {
        let questions = [
            "SELECT SUM(seconds) FROM visits".to_owned(),
            format!("SELECT {element} AS e, COUNT(*) FROM visits WHERE {element} <> 'x' GROUP BY e"),
            "SELECT AVG(seconds), MEDIAN(seconds) FROM (SELECT * FROM visits WHERE upper(site) = 'A')".to_owned(),
            "SELECT SUM(size) FROM visits JOIN shops ON visits.shop = shops.shop WHERE size < 5 AND clamp(size, 0, 9) > 0"
                .replace("SUM(size)", "SUM(clamp(size, 0, 9))"),
            "SELECT COUNT(*) FROM (SELECT seconds FROM visits UNION ALL SELECT seconds FROM visits)".to_owned(),
            "SELECT COUNT(*) FROM visits WHERE shop IN (SELECT shop FROM shops)".to_owned(),
            "SELECT COUNT(*) FROM visits WHERE 1 = 0".to_owned(),
        ];
        for (j, sql) in questions.iter().enumerate() {
            let name = format!("again_element_{i}_{j}");
            assert_eq!(asked(&name, element, sql, untouched), "planned", "{element}: {sql}");
        }
        let found = asked(
            &format!("again_element_{i}_other"),
            element,
            &questions[0].replace("FROM visits", "FROM visits WHERE shop > ''"),
            other_element,
        );
        assert!(found.contains("the second column is not the element"), "{element}: {found}");
    }
}

#[test]
fn an_estimator_refuses_a_rewrite_too() {
    use crate::estimate::ask::hitters;
    use crate::estimate::{HittersQuestion, ItemList};
    let not_the_user = Some("the column of users is not the user");
    for (rewrite, words) in [
        (untouched as fn(LogicalPlan) -> Outcome<LogicalPlan>, None),
        (ending_early, Some("ends early")),
        (|plan| by_another(plan, "whit_user", &(col("visits.id") + lit(1))), not_the_user),
        (|plan| by_another(plan, "whit_user", &try_cast(col("visits.site"), DataType::Int64)), not_the_user),
        // For all users the same: rows of one would count as those of another.
        (|plan| by_another(plan, "whit_user", &(col("visits.id") * lit(0))), not_the_user),
    ] {
        let (scratch, tables) = tables("again_estimator", "site");
        let list = scratch.write("sites.txt", "a\nb\n");
        tables.warehouse().context().add_optimizer_rule(Arc::new(Rewrite(rewrite)));
        let mut books = whit_account::ledger::Books::open(&scratch.path().join("whit.ledger")).unwrap();
        let question = HittersQuestion {
            dataset: "visits".into(),
            item: "site".into(),
            items: Some(ItemList::File(list)),
            top: None,
            items_per_user: None,
            gap: None,
        };
        let asking = Asking { epsilon: Some(0.5), delta: Some(1e-7), ..Asking::default() };
        let found = hitters(&tables, &question, &asking, &mut books, "tester");
        let found = found.map_or_else(|error| error.sentence, |answer| format!("{} rows", answer.rows.len()));
        assert!(found.contains(words.unwrap_or("2 rows")), "{found}");
    }
}

/// What is done before the engine's own rewrites is no excuse for what is done after: a plan is optimised once, and that form is looked at and run.
#[test]
fn learning_refuses_a_rewrite_too() {
    use crate::source::learn::{Misfits, Reading};
    for (rewrite, words) in [
        (untouched as fn(LogicalPlan) -> Outcome<LogicalPlan>, None),
        (ending_early, Some("ends early")),
        (|plan| by_another(plan, "whit_1", &col("visits.day")), Some("the column of users is not the user")),
        (|plan| by_another(plan, "whit_2", &col("visits.id")), Some("the column of elements is not the element")),
    ] {
        let (_scratch, tables) = tables("again_learning", "day");
        tables.warehouse().context().add_optimizer_rule(Arc::new(Rewrite(rewrite)));
        let features = ["seconds".into()];
        let reading = Reading {
            dataset: "visits",
            features: &features,
            widths: &BTreeMap::new(),
            bits: false,
            scaled: (1.0, 0.0),
            target: None,
            filter: None,
            part: None,
            users: true,
            elements: true,
            contents: false,
            misfits: Misfits::LeftOut,
            carried: &[],
        };
        let read = tables.rows_for_learning(&reading, &mut |_, _| Ok(()));
        let found = read.map_or_else(|error| error.sentence, |read| format!("{} rows", read.users.unwrap().len()));
        assert!(found.contains(words.unwrap_or("2 rows")), "{found}");
    }
}

/// With another expression where rows say whose they are.
fn by_another(plan: LogicalPlan, name: &str, by: &Expr) -> Outcome<LogicalPlan> {
    let done = plan.transform_up(|node| match node {
        LogicalPlan::Projection(projection) if projection.schema.has_column_with_unqualified_name(name) => {
            let exprs = projection
                .expr
                .iter()
                .map(|expr| if expr.schema_name().to_string() == name { by.clone().alias(name) } else { expr.clone() });
            let made = Projection::try_new(exprs.collect(), Arc::clone(&projection.input))?;
            Ok(Transformed::yes(LogicalPlan::Projection(made)))
        }
        other => Ok(Transformed::no(other)),
    });
    done.map(|done| done.data)
}
