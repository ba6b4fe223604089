//! Rows whose user stands in another table: `lines.order_id -> orders.id`, where an order names its customer.
//!
//! Such a table is read together with whose its rows are, as one more column. Whatever is planned above sees a table with a column of users, and needs to know nothing of
//! chains.
//!
//! A row *leads to* a user where some chain of keys does: to all users of all rows of the other table that have its key, and so on from there. It *belongs to* a user where it
//! leads to that user and to nobody else, and to nobody otherwise.
//!
//! **Neighbours**: data sets that differ in one user, that is in all rows that lead to the user, in all tables of the chain. **Why** then no row of anybody else changes: take away
//! all rows that lead to a user. A row that is left has a key for which no row that went away stood in the other table (it would have led to the user itself), so it leads to
//! whom it led before and belongs to whom it belonged before. A row that went away belonged to the user or, where it led to others too, to nobody. So what other users have is the
//! same in both, whatever the data. (Where each user of a shared key had the row, a row of 61 users would count 61 times and go with each of them; where one of them had it, it
//! would go with another.) That a row leads to several is carried along the whole chain, or a row behind it would be taken for that of one.
//!
//! A key is meant to have one user: then nothing else could be meant by a user's rows. Where several have it, a data set without the *orders* of one of them, but with the lines
//! that led to several, is no neighbour: there the lines would belong to whoever is left. `whit check --owner` counts such keys. **Tried by**
//! `chains::a_user_moves_only_rows_of_their_own` and `chain_brute::chains_without_any_one_user_leave_the_rows_of_all_others` (`tests/tables`).

mod lookup;

use self::lookup::{LookUpExec, is_whole};
use super::text::Scanned;
use crate::error::{QueryError, planning};
use crate::whose::{OWNER, user_column};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, DataFusionError, JoinType, Result as Outcome};
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType, lit, when,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::prelude::ident;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
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

/// The chain of keys by which the users of a table are found, as questions mean it; nothing where they stand in its own rows. Whatever is changed about it gives rows to others.
pub(crate) fn meaning(declaration: &Declaration, dataset: &Dataset) -> Option<Value> {
    let (mut steps, mut at) = (Vec::new(), dataset);
    while let Some(Owning::LookedUp { column, table, key }) = declaration.owning(at) {
        steps.push(json!({ "key": column, "in": table, "as": key }));
        at = declaration.datasets.get(table).filter(|_| steps.len() <= declaration.datasets.len())?;
    }
    let user = user_column(declaration, at)?;
    (!steps.is_empty()).then(|| json!({ "keys": steps, "user": user, "of several": "nobody" }))
}

/// A table whose users are looked up.
#[derive(Debug)]
pub(super) struct LookedUp {
    /// Its scan, with one column more.
    pub(super) scan: LogicalPlan,
    /// How many keys lead to several users.
    pub(super) shared: LogicalPlan,
}

type Providers = BTreeMap<String, Arc<dyn TableProvider>>;

/// The scan of a table whose users are looked up; nothing where they stand in its own rows.
pub(super) fn looked_up(
    declaration: &Declaration,
    dataset: &Dataset,
    tables: &Providers,
) -> Result<Option<LookedUp>, QueryError> {
    let made = || {
        let Some(table) = owned(declaration, dataset, tables, Says::Owner)? else { return Ok(None) };
        let shared = table.shared()?;
        let source = provider_as_source(Arc::new(table));
        let scan = LogicalPlanBuilder::scan(dataset.name.as_str(), source, None)?.build()?;
        Ok(Some(LookedUp { scan, shared }))
    };
    made().map_err(|error: DataFusionError| planning(&error))
}

/// What a table says of the users to whom its rows lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// To whom a row belongs.
    Owner,
    /// The least and the largest of all to whom it leads, for tables whose rows lead to these.
    Ends,
}

/// The least and the largest of all users to whom a row leads.
const ENDS: [&str; 2] = ["__whit_least", "__whit_most"];

fn owned(declaration: &Declaration, dataset: &Dataset, tables: &Providers, says: Says) -> Outcome<Option<Owned>> {
    let Some(Owning::LookedUp { column, table, key }) = declaration.owning(dataset) else { return Ok(None) };
    let missing = |name: &str| datafusion::common::plan_datafusion_err!("`{name}` was not opened");
    let rows = Arc::clone(tables.get(&dataset.name).ok_or_else(|| missing(&dataset.name))?);
    let other = declaration.datasets.get(table).ok_or_else(|| missing(table))?;
    let found = owned(declaration, other, tables, Says::Ends)?;
    let (owners, users): (Arc<dyn TableProvider>, _) = if let Some(owners) = found {
        (Arc::new(owners), ENDS.map(str::to_owned))
    } else {
        let user = user_column(declaration, other).ok_or_else(|| missing(table))?;
        (Arc::clone(tables.get(table).ok_or_else(|| missing(table))?), [user.to_owned(), user.to_owned()])
    };
    let kind = owners.schema().field_with_name(&users[0])?.data_type().clone();
    let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
    let more: &[&str] = if says == Says::Ends { &ENDS } else { &[OWNER] };
    fields.extend(more.iter().map(|name| Arc::new(Field::new(*name, kind.clone(), true))));
    let schema = Arc::new(Schema::new(fields));
    let (column, key) = (column.to_owned(), key.to_owned());
    Ok(Some(Owned { rows, column, owners, key, users, schema, says }))
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
    /// The columns there that hold the least and the largest user to whom a row leads: one column, where it is the user's own.
    users: [String; 2],
    schema: SchemaRef,
    says: Says,
}

impl Owned {
    const ROWS: &str = "rows";
    const OWNERS: &str = "owners";
    const KEY: &str = "__whit_key";

    /// Each key once, with the least and the largest of all users to whom it leads; keys that lead to nobody are not among them.
    fn keys(&self) -> Outcome<LogicalPlanBuilder> {
        self.owners_with_keys()?
            .aggregate([ident(Self::KEY)], [min(ident(ENDS[0])).alias(ENDS[0]), max(ident(ENDS[1])).alias(ENDS[1])])
    }

    /// The rows that have a key and lead to somebody, with the least and the largest of them.
    fn owners_with_keys(&self) -> Outcome<LogicalPlanBuilder> {
        let theirs = |name: &str| Expr::Column(Column::new(Some(Self::OWNERS), name));
        let [least, most] = self.users.each_ref().map(|user| theirs(user));
        let known = theirs(&self.key).is_not_null().and(least.clone().is_not_null());
        LogicalPlanBuilder::scan(Self::OWNERS, provider_as_source(Arc::clone(&self.owners)), None)?
            .filter(known)?
            .project([theirs(&self.key).alias(Self::KEY), least.alias(ENDS[0]), most.alias(ENDS[1])])
    }

    /// How many keys lead to several users.
    fn shared(&self) -> Outcome<LogicalPlan> {
        self.keys()?
            .filter(ident(ENDS[0]).not_eq(ident(ENDS[1])))?
            .aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias("keys")])?
            .build()
    }

    /// Whether keys and users are whole numbers, which are looked up.
    fn is_whole(&self) -> bool {
        let of =
            |schema: SchemaRef, name: &str| schema.field_with_name(name).is_ok_and(|field| is_whole(field.data_type()));
        let theirs = [self.key.as_str(), &self.users[0], &self.users[1]];
        of(self.rows.schema(), &self.column) && theirs.iter().all(|name| of(self.owners.schema(), name))
    }

    /// The same as [`plan`](Self::plan), of whole numbers.
    async fn looked_up(
        &self,
        state: &dyn Session,
        wanted: &[usize],
        filters: &[Expr],
    ) -> Outcome<Arc<dyn ExecutionPlan>> {
        let schema = self.rows.schema();
        let own = |column: &Column| schema.index_of(&column.name).is_ok();
        let (below, above): (Vec<Expr>, Vec<Expr>) =
            filters.iter().cloned().partition(|filter| filter.column_refs().into_iter().all(own));
        let asked = above.iter().flat_map(Expr::column_refs).filter_map(|column| schema.index_of(&column.name).ok());
        let mut read: BTreeSet<usize> = wanted.iter().copied().filter(|place| *place < schema.fields().len()).collect();
        read.extend(asked);
        let key = schema.index_of(&self.column)?;
        read.insert(key);
        let mut rows = LogicalPlanBuilder::scan(Self::ROWS, provider_as_source(Arc::clone(&self.rows)), None)?;
        if let Some(condition) = conjunction(below) {
            let own = |column: Column| Self::own(&column.name);
            rows = rows.filter(crate::evaluate::words::renamed(condition, &own)?.data)?;
        }
        let names = read.iter().map(|place| Expr::Column(Self::own(schema.field(*place).name())));
        let rows = state.create_physical_plan(&rows.project(names)?.build()?).await?;
        let owners = state.create_physical_plan(&self.owners_with_keys()?.build()?).await?;
        let added = self.schema.fields().iter().skip(schema.fields().len()).cloned();
        let fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().chain(added).collect();
        let made = Arc::new(Schema::new(fields));
        let place = read.range(..key).count();
        let mut found: Arc<dyn ExecutionPlan> =
            Arc::new(LookUpExec::new(rows, owners, place, (self.says, Arc::clone(&made))));
        if let Some(condition) = conjunction(above) {
            let unqualified = |column: Column| Column::new_unqualified(column.name);
            let condition = crate::evaluate::words::renamed(condition, &unqualified)?.data;
            let condition = state.create_physical_expr(condition, &DFSchema::try_from(Arc::clone(&made))?)?;
            found = Arc::new(FilterExec::try_new(condition, found)?);
        }
        let wanted = wanted.iter().map(|place| {
            let name = self.schema.field(*place).name();
            let column: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new(name, made.index_of(name)?));
            Ok((column, name.clone()))
        });
        Ok(Arc::new(ProjectionExec::try_new(wanted.collect::<Outcome<Vec<_>>>()?, found)?))
    }

    fn plan(&self, wanted: Vec<Expr>, filters: &[Expr]) -> Outcome<LogicalPlan> {
        let keys = self.keys()?.build()?;
        let on = (vec![Column::new(Some(Self::ROWS), &self.column)], vec![Column::new_unqualified(Self::KEY)]);
        let rows = LogicalPlanBuilder::scan(Self::ROWS, provider_as_source(Arc::clone(&self.rows)), None)?;
        let [least, most] = ENDS.map(ident);
        let mut columns: Vec<Expr> = rows.schema().iter().map(Expr::from).collect();
        match self.says {
            Says::Ends => columns.extend([least, most]),
            Says::Owner => columns.push(when(least.clone().eq(most), least).end()?.alias(OWNER)),
        }
        let mut plan = rows.join(keys, JoinType::Inner, on, None)?.project(columns)?;
        if let Some(condition) = conjunction(filters.iter().cloned()) {
            let own = |column: Column| Self::own(&column.name);
            plan = plan.filter(crate::evaluate::words::renamed(condition, &own)?.data)?;
        }
        plan.project(wanted)?.build()
    }

    /// A column of this table, where it stands inside.
    fn own(name: &str) -> Column {
        let added = name == OWNER || ENDS.contains(&name);
        if added { Column::new_unqualified(name) } else { Column::new(Some(Self::ROWS), name) }
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
        if self.is_whole() {
            let wanted = projection.cloned().unwrap_or(all);
            return Box::pin(async move { self.looked_up(state, &wanted, filters).await });
        }
        let wanted = projection.unwrap_or(&all).iter().map(|place| {
            let name = self.schema.field(*place).name();
            Expr::Column(Self::own(name)).alias(name)
        });
        let plan = self.plan(wanted.collect(), filters);
        Box::pin(async move { state.create_physical_plan(&plan?).await })
    }
}
