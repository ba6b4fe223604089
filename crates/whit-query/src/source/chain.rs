//! Rows whose user stands in another table: `lines.order_id -> orders.id`, where an order names its customer.
//!
//! Such a table is read together with whose its rows are, as one more column: each row once for every user to whom its key leads. Whatever is planned above sees a table
//! with a column of users, and needs to know nothing of chains.
//!
//! **Neighbours**: data sets that differ in all rows of one user, in all tables of the chain; what belongs to a user is found by following keys. **Why** that is enough:
//! which rows carry the mark of another user depends on that user's rows of the other table and on the rows here that have their keys. Keys of the other table are taken
//! once per user, so that a second row there, or somebody else's row of the same key, makes no second copy of a row under one mark. A key that leads to two users gives
//! each of them a copy, and taking away the one leaves the other's as it is. A row whose chain breaks belongs to nobody, and is left out. **Tried by**
//! `chains::a_user_moves_only_rows_of_their_own` (`tests/tables/chains.rs`).

use super::text::Scanned;
use crate::error::{QueryError, planning};
use crate::whose::{OWNER, user_column};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, JoinType, Result as Outcome};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType};
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_core::declare::{Dataset, Declaration, Owning};

/// The data sets that say whose the rows of one are, nearest first.
pub(crate) fn links<'a>(declaration: &'a Declaration, dataset: &'a Dataset) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut at = dataset;
    while let Some(Owning::LookedUp { table, .. }) = declaration.owning(at) {
        found.push(table);
        match declaration.datasets.get(table) {
            Some(next) if found.len() <= declaration.datasets.len() => at = next,
            _ => break,
        }
    }
    found
}

/// The scan of a table whose users are looked up, with one column more; nothing where they stand in its own rows.
pub(super) fn looked_up(
    declaration: &Declaration,
    dataset: &Dataset,
    tables: &BTreeMap<String, Arc<dyn TableProvider>>,
) -> Result<Option<LogicalPlan>, QueryError> {
    let Some(provider) = owned(declaration, dataset, tables).map_err(|error| planning(&error))? else {
        return Ok(None);
    };
    let scan = LogicalPlanBuilder::scan(dataset.name.as_str(), provider_as_source(provider), None);
    scan.and_then(LogicalPlanBuilder::build).map(Some).map_err(|error| planning(&error))
}

fn owned(
    declaration: &Declaration,
    dataset: &Dataset,
    tables: &BTreeMap<String, Arc<dyn TableProvider>>,
) -> Outcome<Option<Arc<dyn TableProvider>>> {
    let Some(Owning::LookedUp { column, table, key }) = declaration.owning(dataset) else { return Ok(None) };
    let missing = |name: &str| datafusion::common::plan_datafusion_err!("`{name}` was not opened");
    let rows = Arc::clone(tables.get(&dataset.name).ok_or_else(|| missing(&dataset.name))?);
    let other = declaration.datasets.get(table).ok_or_else(|| missing(table))?;
    let owners = match owned(declaration, other, tables)? {
        Some(owners) => owners,
        None => Arc::clone(tables.get(table).ok_or_else(|| missing(table))?),
    };
    let user = user_column(declaration, other).ok_or_else(|| missing(table))?.to_owned();
    let kind = owners.schema().field_with_name(&user)?.data_type().clone();
    let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(OWNER, kind, true)));
    let schema = Arc::new(Schema::new(fields));
    let (column, key) = (column.to_owned(), key.to_owned());
    Ok(Some(Arc::new(Owned { rows, column, owners, key, user, schema })))
}

/// Rows of one table with the users that another gives their keys.
#[derive(Debug)]
struct Owned {
    rows: Arc<dyn TableProvider>,
    /// The key, in the rows.
    column: String,
    owners: Arc<dyn TableProvider>,
    /// The key, where users are.
    key: String,
    user: String,
    schema: SchemaRef,
}

impl Owned {
    const ROWS: &str = "rows";
    const OWNERS: &str = "owners";
    const KEY: &str = "__whit_key";

    fn plan(&self, wanted: Vec<Expr>, filters: &[Expr]) -> Outcome<LogicalPlan> {
        let theirs = |name: &str| Expr::Column(Column::new(Some(Self::OWNERS), name));
        let known = theirs(&self.key).is_not_null().and(theirs(&self.user).is_not_null());
        let owners = LogicalPlanBuilder::scan(Self::OWNERS, provider_as_source(Arc::clone(&self.owners)), None)?
            .filter(known)?
            .project([theirs(&self.key).alias(Self::KEY), theirs(&self.user).alias(OWNER)])?
            .distinct()?
            .build()?;
        let on = (vec![Column::new(Some(Self::ROWS), &self.column)], vec![Column::new_unqualified(Self::KEY)]);
        let mut plan = LogicalPlanBuilder::scan(Self::ROWS, provider_as_source(Arc::clone(&self.rows)), None)?.join(
            owners,
            JoinType::Inner,
            on,
            None,
        )?;
        if let Some(condition) = conjunction(filters.iter().cloned()) {
            let own = |column: Column| self.own(&column.name);
            plan = plan.filter(crate::evaluate::words::renamed(condition, &own)?.data)?;
        }
        plan.project(wanted)?.build()
    }

    /// A column of this table, where it stands inside.
    fn own(&self, name: &str) -> Column {
        if name == OWNER { Column::new_unqualified(OWNER) } else { Column::new(Some(Self::ROWS), name) }
    }
}

impl TableProvider for Owned {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Outcome<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    fn scan<'s, 'a, 'b, 'c, 'all>(
        &'s self,
        state: &'a dyn Session,
        projection: Option<&'b Vec<usize>>,
        filters: &'c [Expr],
        _: Option<usize>,
    ) -> Scanned<'all>
    where
        's: 'all,
        'a: 'all,
        'b: 'all,
        'c: 'all,
    {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all).iter().map(|place| {
            let name = self.schema.field(*place).name();
            Expr::Column(self.own(name)).alias(name)
        });
        let plan = self.plan(wanted.collect(), filters);
        Box::pin(async move { state.create_physical_plan(&plan?).await })
    }
}
