//! Users looked up by keys, where both are whole numbers: a table from key to users in memory, through which rows stream.
//!
//! Said as an aggregate and a join, keys would be hashed and rows moved between threads twice over, which takes longer than the questions themselves. Here keys that lie close together, as
//! keys do, are looked up by where they lie, and a row is left where it is.

use super::Says;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, HashMap, Result as Outcome, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, execute_stream_partitioned,
};
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Whether values of a type are whole numbers of at most 64 bits with a sign.
pub(super) fn is_whole(kind: &DataType) -> bool {
    kind.is_integer() && kind != &DataType::UInt64
}

/// Rows with the users to whom their keys lead; rows whose keys lead to nobody are not among them.
#[derive(Debug)]
pub(super) struct LookUpExec {
    rows: Arc<dyn ExecutionPlan>,
    /// A key, and the least and the largest user to whom a row with it leads.
    owners: Arc<dyn ExecutionPlan>,
    /// Which column of the rows is the key.
    column: usize,
    says: Says,
    /// What was read of the owners, by whichever stream of rows came first.
    keys: Arc<OnceCell<Arc<OwnerKeys>>>,
    properties: Arc<PlanProperties>,
}

impl LookUpExec {
    /// With the columns of the rows, and then what is said of users.
    pub(super) fn new(
        rows: Arc<dyn ExecutionPlan>,
        owners: Arc<dyn ExecutionPlan>,
        column: usize,
        (says, schema): (Says, SchemaRef),
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(rows.output_partitioning().partition_count()),
            rows.pipeline_behavior(),
            rows.boundedness(),
        );
        Self { rows, owners, column, says, keys: Arc::default(), properties: Arc::new(properties) }
    }
}

impl DisplayAs for LookUpExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LookUpExec: key = {}", self.rows.schema().field(self.column).name())
    }
}

impl ExecutionPlan for LookUpExec {
    fn name(&self) -> &'static str {
        "LookUpExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows, &self.owners]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Outcome<TreeNodeRecursion>,
    ) -> Outcome<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Outcome<Arc<dyn ExecutionPlan>> {
        let Ok([rows, owners]) = <[_; 2]>::try_from(children) else {
            return Err(DataFusionError::Internal("rows and their owners are two".to_owned()));
        };
        Ok(Arc::new(Self::new(rows, owners, self.column, (self.says, self.schema()))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Outcome<SendableRecordBatchStream> {
        let rows = self.rows.execute(partition, Arc::clone(&context))?;
        let (cell, owners) = (Arc::clone(&self.keys), Arc::clone(&self.owners));
        let (column, says, schema) = (self.column, self.says, self.schema());
        let made = Arc::clone(&schema);
        let found = futures::stream::once(async move {
            let keys = cell.get_or_try_init(|| OwnerKeys::read(owners, context)).await?;
            let keys = Arc::clone(keys);
            Ok::<_, DataFusionError>(rows.map(move |batch| keys.look_up(&batch?, column, says, &made)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, found.try_flatten())))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    /// About as many as the rows are: nearly every key leads to somebody.
    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Outcome<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(rows) = inputs.first() {
            (statistics.num_rows, statistics.total_byte_size) =
                (rows.num_rows.to_inexact(), rows.total_byte_size.to_inexact());
            let columns = rows.column_statistics.iter().cloned().map(datafusion::common::ColumnStatistics::to_inexact);
            statistics.column_statistics.iter_mut().zip(columns).for_each(|(own, column)| *own = column);
        }
        if statistics.num_rows == Precision::Absent {
            statistics.total_byte_size = Precision::Absent;
        }
        Ok(Arc::new(statistics))
    }
}

/// Each key once, with the least and the largest of all users to whom it leads.
#[derive(Debug)]
struct OwnerKeys {
    places: KeyPlaces,
    ends: Vec<[i64; 2]>,
    /// The memory that all of it takes.
    _taken: MemoryReservation,
}

/// Where a key's users stand.
#[derive(Debug)]
enum KeyPlaces {
    /// By how far the key is from the least one.
    Near { least: i64, places: Vec<u32> },
    /// Where keys lie far apart.
    Far(HashMap<i64, u32>),
}

/// No place.
const NONE: u32 = u32::MAX;

impl KeyPlaces {
    /// Room for keys from the least to the largest of so many, unless most of it would be empty.
    fn for_keys(keys: &[[i64; 3]], taken: &MemoryReservation) -> Outcome<Self> {
        let ends = keys.iter().fold(None, |ends: Option<(i64, i64)>, &[key, ..]| {
            Some(ends.map_or((key, key), |(least, most)| (least.min(key), most.max(key))))
        });
        let Some((least, most)) = ends else { return Ok(Self::Far(HashMap::new())) };
        let room = i128::from(most) - i128::from(least) + 1;
        if room <= 16 * keys.len() as i128 + (1 << 16) {
            taken.try_grow(4 * room as usize)?;
            return Ok(Self::Near { least, places: vec![NONE; room as usize] });
        }
        taken.try_grow(32 * keys.len())?;
        Ok(Self::Far(HashMap::with_capacity(keys.len())))
    }

    fn of(&self, key: i64) -> Option<usize> {
        let place = match self {
            Self::Near { least, places } => places.get(usize::try_from(key.checked_sub(*least)?).ok()?).copied(),
            Self::Far(places) => places.get(&key).copied(),
        };
        place.filter(|&place| place != NONE).map(|place| place as usize)
    }

    fn set(&mut self, key: i64, place: u32) {
        match self {
            Self::Near { least, places } => {
                let at = key.checked_sub(*least).and_then(|at| usize::try_from(at).ok());
                if let Some(own) = at.and_then(|at| places.get_mut(at)) {
                    *own = place;
                }
            }
            Self::Far(places) => {
                places.insert(key, place);
            }
        }
    }
}

impl OwnerKeys {
    /// Reads all owners.
    async fn read(owners: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Outcome<Arc<Self>> {
        let taken = Arc::new(MemoryConsumer::new("keys of users").register(context.memory_pool()));
        let mut tasks = tokio::task::JoinSet::new();
        for mut stream in execute_stream_partitioned(owners, context)? {
            let taken = Arc::clone(&taken);
            tasks.spawn(async move {
                let mut keys = Vec::new();
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    taken.try_grow(24 * batch.num_rows())?;
                    append(&mut keys, batch.columns())?;
                }
                Ok::<_, DataFusionError>(keys)
            });
        }
        let mut all: Vec<[i64; 3]> = Vec::new();
        while let Some(done) = tasks.join_next().await {
            let mut keys = done.map_err(|error| DataFusionError::Execution(error.to_string()))??;
            if all.is_empty() { all = keys } else { all.append(&mut keys) }
        }
        if all.len() >= NONE as usize {
            return Err(DataFusionError::ResourcesExhausted("more than 2^32 keys".to_owned()));
        }
        Ok(Arc::new(Self::of(all, taken.new_empty())?))
    }

    fn of(all: Vec<[i64; 3]>, taken: MemoryReservation) -> Outcome<Self> {
        let (mut places, mut ends) = (KeyPlaces::for_keys(&all, &taken)?, Vec::<[i64; 2]>::new());
        taken.try_grow(16 * all.len())?;
        for [key, least, most] in all {
            if let Some(place) = places.of(key) {
                ends[place] = [ends[place][0].min(least), ends[place][1].max(most)];
            } else {
                places.set(key, ends.len() as u32);
                ends.push([least, most]);
            }
        }
        Ok(Self { places, ends, _taken: taken })
    }

    /// The rows whose keys lead to somebody, and to whom.
    fn look_up(&self, batch: &RecordBatch, column: usize, says: Says, schema: &SchemaRef) -> Outcome<RecordBatch> {
        let keys = whole(batch.column(column))?;
        let keys = keys.as_primitive::<Int64Type>();
        let mut found = Vec::with_capacity(keys.len());
        let mut ends = Vec::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            if let Some(place) = key.and_then(|key| self.places.of(key)) {
                found.push(row as u32);
                ends.push(self.ends[place]);
            }
        }
        let mut columns = batch.columns().to_vec();
        if found.len() < batch.num_rows() {
            let found = UInt32Array::from(found);
            columns = columns.iter().map(|column| take(column, &found, None)).collect::<Result<_, _>>()?;
        }
        let kind = schema.field(columns.len()).data_type().clone();
        let mut say = |of: fn(&[i64; 2]) -> Option<i64>| -> Outcome<()> {
            let users: ArrayRef = Arc::new(ends.iter().map(of).collect::<Int64Array>());
            columns.push(if kind == DataType::Int64 { users } else { cast(&users, &kind)? });
            Ok(())
        };
        match says {
            Says::Owner => say(|[least, most]| (least == most).then_some(*least))?,
            Says::Ends => {
                say(|[least, _]| Some(*least))?;
                say(|[_, most]| Some(*most))?;
            }
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// A column of whole numbers as such of 64 bits.
fn whole(column: &ArrayRef) -> Outcome<ArrayRef> {
    Ok(if column.data_type() == &DataType::Int64 { Arc::clone(column) } else { cast(column, &DataType::Int64)? })
}

/// Adds keys with their users, where there are such.
fn append(keys: &mut Vec<[i64; 3]>, columns: &[ArrayRef]) -> Outcome<()> {
    let [key, least, most] = columns else {
        return Err(DataFusionError::Internal("a key, and two ends".to_owned()));
    };
    let [key, least, most] = [whole(key)?, whole(least)?, whole(most)?];
    let [key, least, most] = [&key, &least, &most].map(|column| column.as_primitive::<Int64Type>());
    let there = key.iter().zip(least).zip(most);
    keys.extend(there.filter_map(|((key, least), most)| Some([key?, least?, most?])));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Near or far, given once or several times: each key has the least and the largest of its users, and others have none.
        #[test]
        fn keys_lead_to_all_their_users_and_others_to_nobody(
            keys in proptest::collection::vec((prop_oneof![-40..40_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)], -5..5_i64), 0..60),
            near in any::<bool>(), asked in proptest::collection::vec(any::<i64>(), 0..20),
        ) {
            let keys: Vec<(i64, i64)> = keys.into_iter().map(|(key, user)| (if near { key % 50 } else { key }, user)).collect();
            let mut expected = BTreeMap::<i64, [i64; 2]>::new();
            for &(key, user) in &keys {
                let ends = expected.entry(key).or_insert([user, user]);
                *ends = [ends[0].min(user), ends[1].max(user)];
            }
            let column = |of: fn(&(i64, i64)) -> i64| Arc::new(keys.iter().map(|key| Some(of(key))).collect::<Int64Array>()) as ArrayRef;
            let columns = [column(|key| key.0), column(|key| key.1), column(|key| key.1)];
            let mut all = Vec::new();
            append(&mut all, &columns).unwrap();
            let pool: Arc<dyn datafusion::execution::memory_pool::MemoryPool> =
                Arc::new(datafusion::execution::memory_pool::UnboundedMemoryPool::default());
            let made = OwnerKeys::of(all, MemoryConsumer::new("keys").register(&pool)).unwrap();
            for key in keys.iter().map(|key| key.0).chain(asked).chain([i64::MIN, 0, i64::MAX]) {
                prop_assert_eq!(made.places.of(key).map(|place| made.ends[place]), expected.get(&key).copied());
            }
        }
    }
}
