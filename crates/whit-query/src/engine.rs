//! Runs the part of a plan that is ordinary relational algebra, and hands exact integers to [`bound`](crate::bound).
//!
//! DataFusion scans, filters and joins. It adds nothing up and draws no noise. Rows of one user arrive in one stream, so that
//! contributions are cut there without looking elsewhere; rows that stand for themselves come as they are. When what has to
//! be kept in memory does not fit, rows are read several times, each time for a share of the users.

mod again;

use crate::bound::collect::Collector;
use crate::bound::hash::{Role, hashes};
use crate::bound::quantise::QuantiseFunction;
use crate::bound::{Addend, BoundedSums, Inner, Layout, RowCap, Rules, UnitLimit, WEIGHT};
use crate::error::{QueryError, own_words, planning, running};
use crate::evaluate::{guarded, samples};
use crate::plan::measure::{LEAVES, ends_of, quantise_of};
use crate::plan::{ELEMENT, Grain, Groups, Key, Leaves, Part, RowExpr, USER, What, track};
use crate::source::Patience;
use crate::translate::in_our_words;
use crate::whose::{Owners, Whose, engine_plan};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result as Outcome};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use whit_core::mechanism::quantile::Tree;
use whit_core::mechanism::range::Bins;

/// Which sums one run of the engine is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Everything that is a plain sum, and how many users there are.
    Plain,
    /// One measure that looks at values inside of groups.
    Inner(usize),
    /// The bins of a range that is to be found.
    Range(usize),
}

/// Runs one pass of a part.
pub(crate) async fn sums(
    context: &SessionContext,
    part: &Part,
    pass: Pass,
    found: &[(f64, f64)],
    seed: u64,
) -> Result<BoundedSums, QueryError> {
    let job = Job::new(part, pass, found, seed)?;
    let rules = job.rules();
    let mut shares = 1;
    let sums = loop {
        match job.collect(context, &rules, shares).await {
            // Fewer users at a time need less memory, and a further reading of the rows.
            Err(error) if is_exhausted(&error) && job.has_users() && shares < MOST_SHARES => shares *= 4,
            Err(error) if !is_exhausted(&error) && Patience::gained(context) => {}
            other => break other.map_err(|error| running(&error))?,
        }
    };
    match job.worth() {
        Some(worth) => sums.sum_values(worth),
        None if matches!(rules.inner, Inner::Distinct { .. }) => sums.count_values(),
        None => Ok(sums),
    }
}

/// Tries all passes of a part on made-up rows, so that what can never be answered shows before anything is paid. Gives the part over
/// these rows, and its plain sums.
pub(crate) async fn rehearse(context: &SessionContext, part: &Part) -> Result<Option<(Part, BoundedSums)>, QueryError> {
    let rows = samples::in_place_of(&part.rows).map_err(|error| planning(&error))?;
    let part = Part { rows, ..part.clone() };
    let found = vec![(0.0, 1.0); part.autos.len()];
    let inner = |&i: &usize| part.measures[i].what.is_inner();
    let inner = (0..part.measures.len()).filter(inner).map(Pass::Inner);
    let ranges = (0..part.autos.len()).map(Pass::Range);
    let mut plain = None;
    for pass in std::iter::once(Pass::Plain).chain(inner).chain(ranges) {
        let job = Job::new(&part, pass, &found, 0)?;
        let sums = match job.collect(context, &job.rules(), 1).await {
            Ok(sums) => sums,
            Err(error) if is_exhausted(&error) => return Ok(None), // with fewer users at a time it may fit
            Err(error) => {
                return Err(own_words(&error).unwrap_or_else(|| {
                    let sentence =
                        format!("this can never be answered: {}", in_our_words(&error.strip_backtrace()).sentence);
                    QueryError::asked(sentence, "nothing was charged; ask it differently")
                }));
            }
        };
        if pass == Pass::Plain {
            plain = Some(sums);
        }
    }
    Ok(plain.map(|plain| (part, plain)))
}

/// Into at most so many shares users are divided.
const MOST_SHARES: u64 = 1 << 12;

fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// One run of the engine.
struct Job<'a> {
    part: &'a Part,
    pass: Pass,
    /// The measures that it is after.
    measures: Vec<usize>,
    inner: Option<Expr>,
    kind: Inner,
    found: &'a [(f64, f64)],
    seed: u64,
}

impl<'a> Job<'a> {
    fn new(part: &'a Part, pass: Pass, found: &'a [(f64, f64)], seed: u64) -> Result<Self, QueryError> {
        let mut job = Self { part, pass, measures: Vec::new(), inner: None, kind: Inner::None, found, seed };
        match pass {
            Pass::Plain => {
                job.measures = (0..part.measures.len()).filter(|&i| !part.measures[i].what.is_inner()).collect();
            }
            Pass::Inner(i) => {
                job.measures = vec![i];
                match &part.measures[i].what {
                    What::Distinct { value: RowExpr(value), most, worth } => {
                        job.inner = Some(match worth {
                            None => value.clone(),
                            Some(worth) => QuantiseFunction::call(worth.clone(), value.clone()),
                        });
                        job.kind = Inner::Distinct { most: *most };
                    }
                    What::Tree { value: RowExpr(value), tree, .. } => {
                        job.inner = Some(CutFunction::call(Cut::of(tree, found)?, value.clone()));
                        job.kind = Inner::Weights { each: WEIGHT as u32 };
                    }
                    What::Rows(_) | What::Parts(_) | What::Users | What::Sum { .. } => {
                        return Err(QueryError::failed("a plain sum has nothing inside of its groups"));
                    }
                }
            }
            Pass::Range(i) => {
                job.inner = Some(CutFunction::call(Cut::Bins, part.autos[i].value.clone()));
                job.kind = Inner::Weights { each: WEIGHT as u32 };
            }
        }
        Ok(job)
    }

    /// Between which steps one different value is worth something, where they are added up and not counted.
    fn worth(&self) -> Option<UnitLimit> {
        match self.pass {
            Pass::Inner(i) => match &self.part.measures[i].what {
                What::Distinct { worth: Some(worth), .. } => Some(UnitLimit { low: worth.low(), high: worth.high() }),
                _ => None,
            },
            Pass::Plain | Pass::Range(_) => None,
        }
    }

    fn keys(&self) -> usize {
        if matches!(self.pass, Pass::Range(_)) { 0 } else { self.part.keys.len() }
    }

    /// The sums over all users, of whom one share after the other is kept in memory.
    async fn collect(&self, context: &SessionContext, rules: &Rules, shares: u64) -> Outcome<BoundedSums> {
        let state = context.state();
        let threads = state.config().target_partitions();
        let wrong = |error: QueryError| DataFusionError::External(Box::new(error));
        let mut whole: Option<BoundedSums> = None;
        for share in 0..shares {
            let plan = guarded(self.plan(Share { share, shares }).map_err(wrong)?, &state).map_err(wrong)?;
            let fits = |run: &LogicalPlan, whose: &Whose, _: &Owners| self.is_as_planned(&plan, run, whose);
            let plan = engine_plan(&plan, &state, &self.part.owners, fits).await?;
            let plan = if self.has_users() { by_user(plan, threads)? } else { plan };
            let room = Arc::new(Room::of(context));
            let parts = run_all(execute_stream_partitioned(plan, context.task_ctx())?, |stream| {
                let (rules, caps, room) = (rules.clone(), self.row_caps(), Arc::clone(&room));
                async move { gather(stream, rules, &caps, &room).await }
            })
            .await?;
            whole = Some(BoundedSums::merge(whole.into_iter().chain(parts).collect())?);
        }
        whole.ok_or_else(|| DataFusionError::Internal("no share".to_owned()))
    }

    /// Whether users stand first: because they are bounded, or because each of them keeps only so many rows.
    fn has_users(&self) -> bool {
        self.part.grain != Grain::Row || !self.part.row_caps.is_empty()
    }

    /// How many rows are kept where each stands for itself.
    fn row_caps(&self) -> Vec<RowCap> {
        let cap = |(within, most): &(Vec<&str>, u64)| RowCap { of_element: within.contains(&ELEMENT), most: *most };
        self.part.row_caps.iter().map(cap).collect()
    }

    /// Whose rows they are, in which groups they stand and what they add.
    fn plan(&self, share: Share) -> Result<LogicalPlan, QueryError> {
        let part = self.part;
        let mut rows = LogicalPlanBuilder::from(part.rows.clone());
        if let Some(user) = track::hidden(rows.schema(), USER).filter(|_| share.shares > 1) {
            rows = rows.filter(ShareFunction::call(share, user)).map_err(|error| planning(&error))?;
        }
        // Where some are not listed, combinations are as they come.
        let all_listed = part.keys.iter().all(|key| key.listed.is_some());
        let listed = part.keys.iter().filter_map(|key| key.listed.as_ref().map(|values| (key, values)));
        let of_list = |(key, values): (&Key, &Vec<ScalarValue>)| {
            key.expr.clone().in_list(values.iter().cloned().map(lit).collect(), false)
        };
        let mut counts: Vec<Expr> = listed.filter(|_| all_listed).map(of_list).collect();
        counts.extend(self.inner.iter().map(|inner| inner.clone().is_not_null()));
        // What a user keeps is chosen among all rows, also those that do not count.
        let counts = if part.row_caps.is_empty() {
            for counts in counts {
                rows = rows.filter(counts).map_err(|error| planning(&error))?;
            }
            None
        } else {
            Some(conjunction(counts).unwrap_or_else(|| lit(true)).alias(COUNTS))
        };
        let schema = Arc::clone(rows.schema());
        let hidden = |name: &str| {
            track::hidden(&schema, name)
                .ok_or_else(|| QueryError::failed("a row without its unit"))
                .map(|column| column.alias(name))
        };
        let mut groups = Vec::new();
        match part.grain {
            Grain::Row => {
                if let Some(counts) = counts {
                    groups.push(hidden(USER)?);
                    if self.row_caps().iter().any(|cap| cap.of_element) {
                        groups.push(hidden(ELEMENT)?);
                    }
                    // Of all that a row holds. The user is among it, so each user's choice is an own one.
                    let all = schema.iter().map(Expr::from).collect();
                    groups.extend([ChoiceFunction::call(self.seed, all).alias(CHOICE), counts]);
                }
            }
            Grain::Element => groups.extend([hidden(USER)?, hidden(ELEMENT)?]),
            Grain::User => groups.push(hidden(USER)?),
        }
        groups.extend(
            part.keys.iter().take(self.keys()).enumerate().map(|(i, key)| key.expr.clone().alias(format!("k{i}"))),
        );
        groups.extend(self.inner.iter().map(|inner| inner.clone().alias("inner")));
        for &i in &self.measures {
            groups.extend(self.of_row(i)?.map(|value| value.alias(format!("m{i}"))));
        }
        rows.project(groups).and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))
    }

    /// What one row adds to a plain measure; without an expression, one.
    fn of_row(&self, measure: usize) -> Result<Option<Expr>, QueryError> {
        Ok(match &self.part.measures[measure].what {
            What::Rows(Some(RowExpr(value))) | What::Parts(RowExpr(value)) => {
                Some(PresentFunction::call(value.clone()))
            }
            What::Sum { value: RowExpr(value), quantisation } => {
                Some(QuantiseFunction::call(quantise_of(quantisation, self.found)?, value.clone()))
            }
            What::Rows(None) | What::Users | What::Distinct { .. } | What::Tree { .. } => None,
        })
    }

    fn rules(&self) -> Rules {
        let mut columns = 0..;
        let addend = |&i: &usize| {
            let measure = &self.part.measures[i];
            let column = measure.what.has_column().then(|| columns.next()).flatten();
            Addend { column, each: measure.what.each(), limit: self.part.limit_of(i) }
        };
        let addends = if self.pass == Pass::Plain { self.measures.iter().map(addend).collect() } else { Vec::new() };
        // Over the bins of a range one unit has the weight of one row.
        let (rows_per_group, rows_in_all) = match self.pass {
            Pass::Range(_) => (Some(1), None),
            Pass::Plain | Pass::Inner(_) => (self.part.rows_per_group, self.part.rows_in_all),
        };
        Rules {
            layout: Layout {
                user: self.part.grain != Grain::Row,
                element: self.part.grain == Grain::Element,
                keys: self.keys(),
                inner: self.inner.is_some(),
            },
            elements_per_user: self.part.elements_per_user,
            groups_per_unit: self.part.groups_per_unit.filter(|_| self.keys() > 0),
            rows_per_group: rows_per_group.unwrap_or(u64::MAX),
            rows_in_all: rows_in_all.unwrap_or(u64::MAX),
            rows_kept: self.part.kept.as_ref().filter(|_| self.pass == Pass::Plain).map(|kept| kept.most),
            observed: self.part.groups == Groups::Observed,
            inner: self.kind,
            addends,
            seed: self.seed,
        }
    }
}

/// The number by which a row is chosen, where each stands for itself and a user keeps only so many; and whether it counts.
const CHOICE: &str = "__whit_choice";
const COUNTS: &str = "__whit_counts";

fn by_user(input: Arc<dyn ExecutionPlan>, threads: usize) -> Outcome<Arc<dyn ExecutionPlan>> {
    let user = Arc::new(PhysicalColumn::new(USER, 0));
    Ok(Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(vec![user], threads))?))
}

async fn run_all<F>(
    streams: Vec<SendableRecordBatchStream>,
    work: impl Fn(SendableRecordBatchStream) -> F,
) -> Outcome<Vec<BoundedSums>>
where
    F: Future<Output = Outcome<BoundedSums>> + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for stream in streams {
        tasks.spawn(work(stream));
    }
    let mut sums = Vec::new();
    while let Some(done) = tasks.join_next().await {
        sums.push(done.map_err(|error| DataFusionError::Execution(error.to_string()))??);
    }
    Ok(sums)
}

/// What all streams together may keep. It is counted apart from the engine's own memory: were it taken from there, the engine would begin
/// to spill what it hands to these streams, while they wait for it.
struct Room {
    most: usize,
    taken: AtomicUsize,
}

impl Room {
    fn of(context: &SessionContext) -> Self {
        let most = match context.runtime_env().memory_pool.memory_limit() {
            MemoryLimit::Finite(most) => most,
            _ => usize::MAX,
        };
        Self { most, taken: AtomicUsize::new(0) }
    }

    /// Takes more, where there is more.
    fn grow(&self, more: usize) -> Outcome<()> {
        if self.taken.fetch_add(more, Ordering::Relaxed).saturating_add(more) > self.most {
            return Err(DataFusionError::ResourcesExhausted("rows of users".to_owned()));
        }
        Ok(())
    }
}

async fn gather(
    mut stream: SendableRecordBatchStream,
    rules: Rules,
    caps: &[RowCap],
    room: &Room,
) -> Outcome<BoundedSums> {
    let schema = stream.schema();
    let mut collector =
        if caps.is_empty() { Collector::new(rules, &schema)? } else { Collector::keeping(rules, &schema, caps)? };
    let mut size = 0;
    while let Some(batch) = stream.next().await {
        collector.push(&batch?)?;
        let now = collector.size();
        room.grow(now.saturating_sub(size))?;
        size = size.max(now);
    }
    collector.finish()
}

/// Some of the users: those whose hash says so, which is a function of the user alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Share {
    share: u64,
    shares: u64,
}

/// Into which leaf or bin a value falls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Cut {
    /// A leaf of a tree over a range, whose ends are given by their bits.
    Tree { low: u64, high: u64 },
    /// A bin of stage one.
    Bins,
}

impl Cut {
    fn of(leaves: &Leaves, found: &[(f64, f64)]) -> Result<Self, QueryError> {
        let (low, high) = ends_of(leaves, found)?;
        Ok(Self::Tree { low: low.to_bits(), high: high.to_bits() })
    }
}

/// A function of the engine that is made for one plan.
macro_rules! plan_function {
    ($name:ident, $field:ty, $word:literal, $type:expr) => {
        #[derive(Debug, PartialEq, Eq, Hash)]
        struct $name {
            parameter: $field,
            signature: Signature,
        }

        impl ScalarUDFImpl for $name {
            fn name(&self) -> &'static str {
                $word
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn return_type(&self, _: &[DataType]) -> Outcome<DataType> {
                Ok($type)
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Outcome<ColumnarValue> {
                let rows = args.number_rows;
                let columns = args.args.into_iter().map(|value| value.into_array(rows)).collect::<Outcome<Vec<_>>>()?;
                Ok(ColumnarValue::Array(self.column(&columns, rows)?))
            }
        }
    };
}

plan_function!(CutFunction, Cut, "__whit_cut", DataType::Int64);
plan_function!(ChoiceFunction, u64, "__whit_choose", DataType::UInt64);
plan_function!(ShareFunction, Share, "__whit_share", DataType::Boolean);
plan_function!(PresentFunction, (), "__whit_present", DataType::Boolean);

impl CutFunction {
    fn call(cut: Cut, value: Expr) -> Expr {
        ScalarUDF::new_from_impl(Self { parameter: cut, signature: Signature::any(1, Volatility::Immutable) })
            .call(vec![value])
    }

    fn column(&self, columns: &[ArrayRef], _: usize) -> Outcome<ArrayRef> {
        let values = cast(&columns[0], &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        let leaf: Box<dyn Fn(f64) -> Option<usize>> = match &self.parameter {
            Cut::Tree { low, high } => {
                let tree = Tree::new(f64::from_bits(*low), f64::from_bits(*high), LEAVES)
                    .map_err(|error| DataFusionError::Internal(error.to_string()))?;
                Box::new(move |value| tree.leaf(value))
            }
            Cut::Bins => {
                let bins = Bins::default();
                Box::new(move |value| bins.index(value))
            }
        };
        let placed: Int64Array = values.iter().map(|value| value.and_then(&leaf).map(|leaf| leaf as i64)).collect();
        Ok(Arc::new(placed))
    }
}

impl ShareFunction {
    fn call(share: Share, user: Expr) -> Expr {
        ScalarUDF::new_from_impl(Self { parameter: share, signature: Signature::any(1, Volatility::Immutable) })
            .call(vec![user])
    }

    fn column(&self, columns: &[ArrayRef], rows: usize) -> Outcome<ArrayRef> {
        let hashes = hashes(columns, rows, 0, Role::Share)?;
        let Share { share, shares } = self.parameter;
        Ok(Arc::new(hashes.iter().map(|hash| Some(hash % shares == share)).collect::<BooleanArray>()))
    }
}

impl ChoiceFunction {
    fn call(seed: u64, columns: Vec<Expr>) -> Expr {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { parameter: seed, signature }).call(columns)
    }

    fn column(&self, columns: &[ArrayRef], rows: usize) -> Outcome<ArrayRef> {
        Ok(Arc::new(UInt64Array::from(hashes(columns, rows, self.parameter, Role::Row)?)))
    }
}

impl PresentFunction {
    fn call(value: Expr) -> Expr {
        ScalarUDF::new_from_impl(Self { parameter: (), signature: Signature::any(1, Volatility::Immutable) })
            .call(vec![value])
    }

    /// True, or missing where the value is missing or NaN.
    #[expect(clippy::unused_self, reason = "one shape for all functions of a plan")]
    fn column(&self, columns: &[ArrayRef], rows: usize) -> Outcome<ArrayRef> {
        let value = &columns[0];
        let numbers = if value.data_type().is_floating() { Some(cast(value, &DataType::Float64)?) } else { None };
        let finite = numbers.as_ref().map(|numbers| {
            let there = numbers.as_primitive::<Float64Type>().values().iter().map(|number| !number.is_nan());
            NullBuffer::from(there.collect::<Vec<bool>>())
        });
        let there =
            NullBuffer::union(value.logical_nulls().as_ref(), finite.as_ref()).filter(|nulls| nulls.null_count() > 0);
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::new_set(rows), there)))
    }
}
