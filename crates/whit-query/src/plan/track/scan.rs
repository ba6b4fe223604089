//! A table as it is declared: whose its rows are, and what is known of its columns.

use super::{Caps, Lost, Private, Surroundings, Tag, Tracked, built, never, renamed};
use crate::error::planning;
use crate::evaluate::number::number;
use crate::plan::range::Range;
use crate::plan::{ELEMENT, USER};
use crate::source::payer;
use crate::whose::{OWNER, user_column};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use std::collections::BTreeSet;
use whit_core::declare::{Bounds, Dataset, UserKey};
use whit_core::unit::Kind;

pub(super) fn source(plan: &LogicalPlan, scan: &TableScan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let table = scan.table_name.table();
    let Ok(dataset) = around.declaration.dataset(table) else {
        return never(
            format!("`{table}` is not declared, so nobody has said what one whit of it is"),
            "declare it in whit.toml, with a unit or with `public = true`",
        );
    };
    let range_of = |name: &str| match dataset.bounds(name)? {
        Bounds::Declared { low, high } => Some(Range::Known { low, high }),
        Bounds::Days { .. } => None,
        Bounds::Auto => Some(Range::Auto),
    };
    let Some(unit) = dataset.unit.as_ref() else {
        let mut tracked = Tracked::public(plan.clone());
        for (field, tag) in plan.schema().fields().iter().zip(&mut tracked.tags) {
            tag.range = range_of(field.name());
        }
        return Ok(tracked);
    };
    // The one that has users, where they are looked up: the question knows of its other columns alone.
    let plan = around.tables.get(table).filter(|_| looked_up(dataset, around)).unwrap_or(plan);
    let schema = plan.schema();
    let visible = |field: &FieldRef| field.name() != OWNER;
    let plain = |(table, field): (Option<&TableReference>, &FieldRef)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name().clone()));
        if field.data_type().is_floating() {
            return number(column).alias_qualified(table.cloned(), field.name());
        }
        column
    };
    let mut exprs: Vec<Expr> = schema.iter().filter(|(_, field)| visible(field)).map(plain).collect();
    let mut tags: Vec<Tag> = Vec::new();
    let is_public = |column: &str| unit.units().first().is_some_and(|unit| unit.is_public(column));
    let element_column = around.elements.get(table).and_then(|element| match element {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    });
    let user_column = user_column(around.declaration, dataset);
    for field in schema.fields().iter().filter(|field| visible(field)) {
        let name = field.name();
        let range = range_of(name);
        let (user, element) = (user_column == Some(name), element_column.as_ref() == Some(name));
        tags.push(Tag {
            user,
            element,
            public: is_public(name),
            known: user || element || is_public(name),
            observed: unit.public.contains(name),
            origin: Some((table.to_owned(), name.clone())),
            range: range
                .or_else(|| (field.data_type() == &DataType::Boolean).then_some(Range::Known { low: 0.0, high: 1.0 })),
        });
    }
    let grouped = matches!(unit.protect, Kind::Event | Kind::Element | Kind::User) || unit.user.is_some();
    let mut private = Private {
        dataset: table.to_owned(),
        sources: BTreeSet::from([table.to_owned()]),
        caps: Caps::of(unit),
        payer: payer(dataset, around.declaration).name.clone(),
        user: false,
        element: false,
        copies: Some(1),
        rows_of_user: None,
        rows_of_element: None,
        rows_public: matches!(unit.protect, Kind::Feature | Kind::Label),
        unique: keys_of(table, around),
        met: false,
    };
    let mut keep = None;
    if let (Some(user), true) = (user_column, grouped) {
        let column = Expr::Column(Column::new(Some(scan.table_name.clone()), user));
        exprs.push(column.clone().alias(USER));
        tags.push(Tag { user: true, known: true, ..Tag::default() });
        private.user = true;
        // A feature unit's rows stay whatever happens, so there they are kept too.
        if !private.rows_public {
            keep = Some(column.is_not_null());
        }
        if let Some(element) = around.elements.get(table) {
            let own = |column: Column| Column::new(Some(scan.table_name.clone()), column.name);
            let element = renamed(element.clone(), &own).map_err(|error| planning(&error))?.data;
            exprs.push(element.alias(ELEMENT));
            tags.push(Tag { element: true, known: true, ..Tag::default() });
            private.element = true;
        }
    }
    let mut builder = LogicalPlanBuilder::from(plan.clone());
    if let Some(keep) = keep {
        builder = builder.filter(keep).map_err(|error| planning(&error))?;
    }
    let plan = built(builder.project(exprs))?;
    Ok(Tracked { plan, tags, private: Some(private) })
}

/// The columns of a table that keys of others lead to: each of them is meant to name one row.
fn keys_of(table: &str, around: &Surroundings<'_>) -> BTreeSet<(String, String)> {
    let users = around.declaration.datasets.values().filter_map(|dataset| dataset.unit.as_ref()?.user.as_ref());
    let keys = users.filter_map(|user| match user {
        UserKey::Through { other_table, other_column, .. } if other_table == table => {
            Some((other_table.clone(), other_column.clone()))
        }
        _ => None,
    });
    keys.collect()
}

fn looked_up(dataset: &Dataset, around: &Surroundings<'_>) -> bool {
    user_column(around.declaration, dataset) == Some(OWNER)
}
