//! Questions by name: heavy hitters and histograms of a declared data set, answered from the ledger where they were asked before.

mod charged;

pub(crate) use charged::Charged;
pub(super) use charged::{charged_for_histogram, charged_for_hitters};

use super::dictionary::{Dictionary, elements_of, touch};
use super::histogram::{BlockBound, Histogram, NoisyHistogram, Spread};
use super::hitters::{Hitters, PresenceBound};
use super::meaning::Common;
use super::norms::CutOff;
use super::rows::{Gathered, HEAVIEST, Reading};
use super::tokens::{Items, Tokens};
use super::{Calibration, EstimateError, Touch};
use crate::answer::{Answer, Cell, Column, Error, Preview, Role, Statement, Value};
use crate::error::QueryError;
use crate::partition::PartitionFile;
use crate::plan::Asking;
use crate::plan::call::Radius;
pub use crate::plan::call::{HistogramQuestion, HittersQuestion};
use crate::release::{Tables, statement, unchanged, unserved};
use crate::sanitise::short;
use crate::source::line;
use crate::source::spelling::column_called;
use charged::check_payer;
use std::fmt::Write as _;
use std::sync::Arc;
use whit_account::desk::{Coins, Desk, Instead, ReleaseRequest, Start};
use whit_account::ledger::{Question, Register};
use whit_core::declare::{Bounds, Dataset, UnitDeclaration};
use whit_core::digits::number_of;
use whit_core::release::{ReadError, Reservation, charge_of};
use whit_core::{Kind, Ladder, Mechanism, Persist};
use whit_noise::{Entropy as _, Os};

impl From<EstimateError> for QueryError {
    fn from(error: EstimateError) -> Self {
        let hint = match &error {
            EstimateError::Promise { .. } => {
                "give both, such as `asking.epsilon = 0.5` `asking.delta = 1e-8`, or declare them under `query`"
            }
            EstimateError::Unbounded(_) => "declare `unit.user` as the column that says whose a row is",
            EstimateError::Overflow | EstimateError::Item { .. } => "use a coarser unit of weight, or fewer items",
            EstimateError::NoItems | EstimateError::NoCap | EstimateError::Range { .. } => {
                "see `HittersQuestion` and `HistogramQuestion`"
            }
        };
        Self::asked(error.to_string(), hint)
    }
}

/// The parts of a declaration that both questions need.
struct DeclaredUnit<'a> {
    dataset: &'a Dataset,
    unit: &'a UnitDeclaration,
    user: &'a str,
    ladder: Ladder,
    promise: Calibration,
    confidence: f64,
}

impl<'a> DeclaredUnit<'a> {
    fn of(tables: &'a Tables, name: &str, asking: &Asking) -> Result<Self, QueryError> {
        let dataset = tables.warehouse().declaration().dataset(name)?;
        let unit = dataset.unit.as_ref().ok_or_else(|| {
            let hint = format!("ask in SQL: SELECT count(*) FROM {name}");
            QueryError::asked(format!("`{name}` is public, so there is nothing to hide"), hint)
        })?;
        // Before any column is looked for: where users stand in another table, none of this one's holds them.
        check_payer(tables, name)?;
        let user = unit.user.as_ref().ok_or_else(|| {
            let hint = "declare `unit.user`, or count rows in SQL";
            QueryError::asked(format!("`{name}` has no user column, and users are counted here"), hint)
        })?;
        let ladder = unit.ladder().map_err(|error| QueryError::asked(error.to_string(), error.hint()))?;
        let (epsilon, delta) = tables.price_of(name, asking)?;
        let confidence = asking.confidence()?;
        let promise = Calibration { epsilon, delta };
        Ok(Self { dataset, unit, user: user.column(), ladder, promise, confidence })
    }

    fn protected(&self) -> &whit_core::Unit {
        &self.ladder.protected().unit
    }

    /// What the cap on elements comes to, in things of which one element touches at most so many.
    fn cap(&self, asked: Option<u64>, touch: Touch) -> Option<u64> {
        asked.or_else(|| match (self.unit.caps.elements_per_user, touch) {
            (Some(elements), Touch::Most(each)) => elements.checked_mul(each),
            _ => None,
        })
    }

    /// What a mechanism would cost these units, and how wrong it would be.
    fn preview(
        &self,
        sql: &str,
        mechanism: &impl Mechanism,
        error: Error,
        plan: Vec<String>,
        notes: Vec<String>,
    ) -> Preview {
        let charge = charge_of(mechanism, self.ladder.rungs());
        Preview {
            question: sql.to_owned(),
            dataset: self.dataset.name.clone(),
            unit: self.protected().to_string(),
            epsilon: self.promise.epsilon,
            delta: self.promise.delta,
            prices: Statement::prices(&charge, self.promise.delta),
            errors: vec![error],
            confidence: self.confidence,
            plan,
            notes,
        }
    }

    fn reading(&self, item: &'a str, dictionary: &'a Dictionary) -> Reading<'a> {
        let (items, hash) = (dictionary.items(), dictionary.hash());
        Reading { dataset: &self.dataset.name, user: self.user, item, items, hash, weight: None }
    }
}

/// Rows that do not fit what is counted.
fn unread(error: EstimateError) -> ReadError {
    QueryError::from(error).into()
}

/// Looks a question up, or charges the ledger, reads the data and releases; with what the release says of itself. Where it does not fit, the mechanism for another promise might.
fn ask<M: Mechanism>(
    tables: &Tables,
    declared: &DeclaredUnit<'_>,
    books: &mut dyn Register,
    question: &Question,
    (mechanism, instead): (&M, impl Fn(Calibration) -> Result<M, EstimateError>),
    read: impl FnOnce(&Reservation) -> Result<M::Exact, ReadError>,
    decode: impl Fn(&[u8]) -> Option<M::Noisy>,
) -> Result<(M::Noisy, Statement), QueryError>
where
    M::Exact: Sized,
    M::Noisy: Persist,
{
    let rungs = declared.ladder.rungs();
    let Calibration { epsilon, delta } = declared.promise;
    let price =
        |epsilon: f64, _: &mut dyn Register| Some(charge_of(&instead(Calibration { epsilon, delta }).ok()?, rungs));
    let instead = Instead::Search { epsilon, price: &price };
    let coins = Coins::Secret(&mut Os);
    let request = ReleaseRequest { question, rungs, coins, start: Start::Anew, instead };
    let decode = |bytes: &[u8]| decode(bytes).ok_or_else(|| "it is of another form".to_owned());
    let budgets = tables.budgets(&question.dataset)?;
    if tables.runtime().is_stopped() {
        return Err(QueryError::interrupted());
    }
    let served = Desk::new(books, &budgets).once(request, mechanism, read, decode).map_err(unserved)?;
    let unit = declared.protected().to_string();
    let statement = statement::unpaid(&question.dataset, &question.text, unit, declared.confidence);
    let statement = statement::paid(statement, &served, question, delta, (books, &budgets));
    Ok((served.value, statement))
}

/// A column of a data set as it is declared, however the question spells it.
fn spelled(tables: &Tables, dataset: &str, column: &str) -> Result<String, QueryError> {
    Ok(column_called(&tables.warehouse().source(dataset)?.schema, column))
}

fn spelled_histogram(tables: &Tables, question: &HistogramQuestion) -> Result<HistogramQuestion, QueryError> {
    let spelled = |column: &String| spelled(tables, &question.dataset, column);
    let (item, weight) = (spelled(&question.item)?, question.weight.as_ref().map(spelled).transpose()?);
    Ok(HistogramQuestion { item, weight, ..question.clone() })
}

/// Heavy hitters, before anything is read.
struct HittersPlan<'a> {
    declared: DeclaredUnit<'a>,
    dictionary: Dictionary,
    bound: PresenceBound,
    touch: Touch,
    hitters: Hitters,
}

impl<'a> HittersPlan<'a> {
    fn new(tables: &'a Tables, question: &HittersQuestion, asking: &Asking) -> Result<Self, QueryError> {
        let HittersQuestion { dataset, item, .. } = question;
        let declared = DeclaredUnit::of(tables, dataset, asking)?;
        super::rows::column(&tables.warehouse().source(dataset)?.schema, dataset, item)?;
        let dictionary = Dictionary::find(tables, dataset, item, question.items.as_ref())?;
        let elements = elements_of(tables, dataset, item, dictionary.items())?;
        let touch = touch(elements.as_deref(), |at| at as u32);
        let cap = declared.cap(question.items_per_user, touch);
        let bound = PresenceBound::new(dictionary.items().len() as u32, cap, touch, declared.user)?;
        let hitters = Hitters::for_promise(bound.clone(), declared.protected(), declared.promise)?;
        Ok(Self { declared, dictionary, bound, touch, hitters })
    }

    /// The question as the ledger knows it, but for the fingerprint of its data.
    fn question(&self, tables: &Tables, question: &HittersQuestion, analyst: &str) -> Question {
        let HittersQuestion { dataset, item, .. } = question;
        let Self { declared, dictionary, bound, touch, .. } = self;
        let DeclaredUnit { ladder, promise, .. } = declared;
        let common = Common { dataset, item, cap: bound.cap(), touch: *touch, ladder, promise: *promise };
        Question {
            dataset: dataset.clone(),
            analyst: analyst.to_owned(),
            meaning: common.hitters(dictionary.hash()),
            text: format!("hitters of {dataset}.{item}"),
            fingerprint: String::new(),
            partition: tables.partition(dataset).map(str::to_owned),
        }
    }
}

/// How heavy hitters are sanitised, in words.
fn counted(item: &str, hitters: &Hitters) -> String {
    format!("users with each {item}: rounded Gaussian, σ = {}", short(hitters.sigma()))
}

/// What heavy hitters would cost and how wrong they would be.
pub(super) fn preview_hitters(
    tables: &Tables,
    sql: &str,
    question: &HittersQuestion,
    asking: &Asking,
) -> Result<Preview, QueryError> {
    let question = &HittersQuestion { item: spelled(tables, &question.dataset, &question.item)?, ..question.clone() };
    let plan = HittersPlan::new(tables, question, asking)?;
    let confidence = plan.declared.confidence;
    let named = if question.top.is_some() { plan.dictionary.items().len() } else { 1 };
    let error = Error {
        name: "users".to_owned(),
        within: Some(plan.hitters.within(confidence, named)),
        share: None,
        words: format!("users with each {}", question.item),
    };
    let mut notes = vec![left_out(&question.item, plan.dictionary.items().len())];
    notes.push(intervals(question.top.is_some(), confidence));
    Ok(plan.declared.preview(sql, &plan.hitters, error, vec![counted(&question.item, &plan.hitters)], notes))
}

/// Answers how many users have each item.
pub fn hitters(
    tables: &Tables,
    question: &HittersQuestion,
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<Answer, QueryError> {
    let question = &HittersQuestion { item: spelled(tables, &question.dataset, &question.item)?, ..question.clone() };
    let HittersQuestion { dataset, item, .. } = question;
    let plan = HittersPlan::new(tables, question, asking)?;
    let (fingerprint, stamps) = tables.fingerprint_of(std::slice::from_ref(dataset), books)?;
    let asked = Question { fingerprint, ..plan.question(tables, question, analyst) };
    let HittersPlan { declared, dictionary, bound, hitters, .. } = plan;
    let reading = declared.reading(item, &dictionary);
    reading.check(tables)?;
    let exact = |_: &Reservation| {
        let Gathered { tokens, .. } = reading.run(tables, Os.bits(64))?;
        unchanged(&stamps)?;
        let pairs = tokens.into_iter().map(|token| (u64::from(token.user), token.item)).collect();
        bound.gather(pairs).map_err(unread)
    };
    let instead = |promise| Hitters::for_promise(bound.clone(), declared.protected(), promise);
    let (drawn, mut statement) = ask(tables, &declared, books, &asked, (&hitters, instead), exact, Hitters::read)?;
    let hitters = hitters.with_noise_of(&drawn);
    let ranking = hitters.ranking(&drawn.value, question.top, declared.confidence, question.gap);
    statement.mechanisms.push(counted(item, &hitters));
    if let Some(cap) = bound.cap() {
        statement.notes.push(format!(
            "a user with N > {cap} items counts √({cap}/N) for each of them, so counts of items that such users have are too low"
        ));
    }
    if bound.cap().is_none() && declared.protected().kind() == Kind::User {
        statement.notes.push(
            "a user may have every item, and the noise is for that; fewer items per user, or elements_per_user among the caps, needs less"
                .to_owned(),
        );
    }
    statement.notes.push(intervals(ranking.simultaneous, declared.confidence));
    if ranking.pairs > 0 {
        statement.notes.push(format!(
            "about {} of the {} pairs in this order stand the wrong way round, of those whose true counts are {} or more apart (estimated from the noisy counts)",
            short(ranking.wrong.round()),
            ranking.pairs,
            short(ranking.gap),
        ));
    }
    statement.notes.push(left_out(item, dictionary.items().len()));
    let rows = ranking.rows.iter().map(|row| {
        let users = if bound.cap().is_some() { Value::Float(row.users) } else { Value::Int(row.users as i64) };
        vec![
            key(&dictionary.items()[row.item as usize]),
            Cell { value: users, low: Some(row.low), high: Some(row.high) },
        ]
    });
    let users = Column { after_caps: bound.cap().is_some(), ..column("users", Role::Noisy) };
    Ok(Answer { columns: vec![column(item, Role::Key), users], rows: rows.collect(), statement })
}

/// A histogram, before anything is read.
struct HistogramPlan<'a> {
    declared: DeclaredUnit<'a>,
    partition: PartitionFile,
    dictionary: Dictionary,
    items: Arc<Items>,
    touch: Touch,
    cap: Option<u64>,
    weight: Option<(&'a str, f64)>,
    histogram: Histogram,
}

impl<'a> HistogramPlan<'a> {
    fn new(tables: &'a Tables, question: &'a HistogramQuestion, asking: &Asking) -> Result<Self, QueryError> {
        let HistogramQuestion { dataset, item, .. } = question;
        let declared = DeclaredUnit::of(tables, dataset, asking)?;
        super::rows::column(&tables.warehouse().source(dataset)?.schema, dataset, item)?;
        let partition = PartitionFile::load(&question.partition)?;
        if !partition.is_listed() {
            return Err(QueryError::asked(
                format!("`{}` lists no items", question.partition.display()),
                "make one with `PartitionFile::dictionary` or `ClusteringPlan`",
            ));
        }
        let dictionary = Dictionary::new(partition.items().to_vec())?;
        let items = Arc::new(Items::new(partition.element_of())?);
        let elements = elements_of(tables, dataset, item, dictionary.items())?;
        let touch = touch(elements.as_deref(), |at| partition.element_of()[at]);
        let cap = declared.cap(question.clusters_per_user, touch);
        // What costs an element the same costs a user more where clusters have single items.
        let spread = match declared.protected().kind() {
            Kind::Event | Kind::Element => Spread::PerCluster,
            Kind::Feature | Kind::Label | Kind::User => Spread::Even,
        };
        let mut bound = BlockBound::new(Arc::clone(&items), cap, touch, declared.user, spread)?;
        let weight = match question.weight.as_deref() {
            Some(weight) => Some((weight, heaviest(&declared, weight)?)),
            None => None,
        };
        if let Some((_, most)) = weight {
            bound = bound.weighted(most / HEAVIEST as f64, HEAVIEST)?;
        }
        let histogram = Histogram::for_promise(bound, question.radius, declared.protected(), declared.promise)?;
        Ok(Self { declared, partition, dictionary, items, touch, cap, weight, histogram })
    }

    /// The question as the ledger knows it, but for the fingerprint of its data.
    fn question(&self, question: &HistogramQuestion, analyst: &str) -> Question {
        let HistogramQuestion { dataset, item, .. } = question;
        let Self { declared, partition, touch, cap, weight, .. } = self;
        let DeclaredUnit { ladder, promise, .. } = declared;
        let common = Common { dataset, item, cap: *cap, touch: *touch, ladder, promise: *promise };
        Question {
            dataset: dataset.clone(),
            analyst: analyst.to_owned(),
            meaning: common.histogram(*weight, question.radius),
            text: format!("histogram of {dataset}.{item} in {}", partition.name()),
            fingerprint: String::new(),
            partition: Some(partition.hash().to_owned()),
        }
    }
}

/// What a histogram would cost and, where its radius is given, how wrong it would be.
pub(super) fn preview_histogram(
    tables: &Tables,
    sql: &str,
    question: &HistogramQuestion,
    asking: &Asking,
) -> Result<Preview, QueryError> {
    let question = &spelled_histogram(tables, question)?;
    let plan = HistogramPlan::new(tables, question, asking)?;
    let confidence = plan.declared.confidence;
    let items = plan.dictionary.items().len();
    let named = if question.top.is_some() { items } else { 1 };
    let (within, words) = match question.radius {
        Radius::Given(radius) => {
            let worst = (0..items as u32).map(|item| plan.histogram.within(item, radius, confidence, named));
            (Some(worst.fold(0.0, f64::max)), "noise only: what is longer than the radius is cut off".to_owned())
        }
        Radius::TwoStage { .. } | Radius::Split { .. } => {
            (None, "depends on the radius, which is found privately".to_owned())
        }
    };
    let error = Error { name: question.measured().to_owned(), within, share: None, words };
    let line = format!("{} in {}: rounded Gaussian", question.item, number_of(plan.items.clusters(), "cluster"));
    let notes = vec![left_out(&question.item, items), intervals(question.top.is_some(), confidence)];
    Ok(plan.declared.preview(sql, &plan.histogram, error, vec![line], notes))
}

/// Answers how much of each item users have.
pub fn histogram(
    tables: &Tables,
    question: &HistogramQuestion,
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<Answer, QueryError> {
    let question = &spelled_histogram(tables, question)?;
    let HistogramQuestion { dataset, item, .. } = question;
    let plan = HistogramPlan::new(tables, question, asking)?;
    let (fingerprint, stamps) = tables.fingerprint_of(std::slice::from_ref(dataset), books)?;
    let asked = Question { fingerprint, ..plan.question(question, analyst) };
    let HistogramPlan { declared, partition, dictionary, items, cap, weight, histogram: mechanism, .. } = plan;
    let reading = Reading { weight, ..declared.reading(item, &dictionary) };
    reading.check(tables)?;
    let exact = |_: &Reservation| {
        let Gathered { tokens, marks } = reading.run(tables, Os.bits(64))?;
        unchanged(&stamps)?;
        Tokens::gather(Arc::clone(&items), tokens, marks).map_err(unread)
    };
    let instead =
        |promise| Histogram::for_promise(mechanism.bound().clone(), question.radius, declared.protected(), promise);
    let decode = |bytes: &[u8]| mechanism.read(bytes);
    let (drawn, mut statement) = ask(tables, &declared, books, &asked, (&mechanism, instead), exact, decode)?;
    let (mechanism, noisy) = (mechanism.with_noise_of(&drawn), drawn.value);
    describe(&mut statement, &mechanism, &noisy, question, cap);
    statement.notes.push(intervals(question.top.is_some(), declared.confidence));
    statement.notes.push(left_out(item, dictionary.items().len()));
    let scale = if question.shares { Shares::of(&mechanism, &noisy, &mut statement) } else { Shares::NONE };
    let confidence = if question.shares { 1.0 - (1.0 - declared.confidence) / 2.0 } else { declared.confidence };
    let rows = mechanism.bars(&noisy, question.top, confidence).into_iter().map(|bar| {
        let cluster = partition.label(partition.element_of()[bar.item as usize]);
        let noisy = Cell {
            value: Value::Float(bar.value / scale.total),
            low: scale.low.map(|low| bar.low / low),
            high: scale.high.map(|high| bar.high / high),
        };
        vec![key(&dictionary.items()[bar.item as usize]), key(&cluster), noisy]
    });
    // The radius is a cap on every block.
    let measured = Column { after_caps: true, ..column(question.measured(), Role::Noisy) };
    let columns = vec![column(item, Role::Key), column("cluster", Role::Exact), measured];
    Ok(Answer { columns, rows: rows.collect(), statement })
}

/// How the histogram was made, and what it leaves out.
fn describe(
    statement: &mut Statement,
    mechanism: &Histogram,
    noisy: &NoisyHistogram,
    question: &HistogramQuestion,
    cap: Option<u64>,
) {
    let items = mechanism.bound().items();
    let (mut single, mut several) = (None, None);
    for item in 0..items.len() as u32 {
        let place = if items.is_single(item) { &mut single } else { &mut several };
        place.get_or_insert_with(|| mechanism.sigma(item, noisy.radius));
    }
    let mut words = format!(
        "{} in clusters: each user's block scaled to length {}, rounded Gaussian",
        question.item,
        short(noisy.radius)
    );
    for (sigma, which) in [(several, "clusters of several items"), (single, "clusters of one item")] {
        if let Some(sigma) = sigma {
            let _ = write!(words, ", σ = {} for {which}", short(sigma)); // a String takes everything
        }
    }
    statement.mechanisms.push(words);
    let clipping = mechanism.clipping(noisy);
    match question.radius {
        Radius::Given(_) => statement.notes.push(format!(
            "blocks longer than {} are scaled down to it, which makes their items too low; how many these are was not asked",
            short(noisy.radius)
        )),
        Radius::TwoStage { share, quantile } => statement.notes.push(format!(
            "radius {} found privately, with {} % of the budget, to have about {} % of blocks within it{}",
            short(noisy.radius),
            short(100.0 * share),
            short(100.0 * quantile),
            in_noise(clipping)
        )),
        Radius::Split { users, .. } => statement.notes.push(format!(
            "radius {} found privately from {} % of the users, who are set aside: the sums are of the others, times {} to stand for all, and the intervals count that choice too{}",
            short(noisy.radius),
            short(100.0 * users),
            short(1.0 / (1.0 - users)),
            in_noise(clipping)
        )),
    }
    if let Some(clipping) = clipping {
        let whose = match question.radius {
            Radius::Split { .. } => "of the users who were set aside, ",
            Radius::Given(_) | Radius::TwoStage { .. } => "",
        };
        statement.notes.push(cut_off(clipping, whose));
    }
    if let Some(cap) = cap {
        statement
            .notes
            .push(format!("a user with more than {cap} full clusters is scaled down to the length of {cap}"));
    }
}

/// What to know of a radius that was found where there is hardly anything but noise.
fn in_noise(clipping: Option<CutOff>) -> &'static str {
    match clipping {
        Some(clipping) if clipping.is_noise() => {
            "; it was found mostly in noise, so it may be far too short or too long: give a radius by hand, or more ε"
        }
        _ => "",
    }
}

/// How much the radius cuts off, as far as that can be stated.
fn cut_off(clipping: CutOff, whose: &str) -> String {
    let (fewest, most) = (short(100.0 * clipping.blocks.0), short(100.0 * clipping.blocks.1));
    if clipping.is_noise() {
        return format!(
            "how much is cut off cannot be stated at this noise: {whose}between {fewest} and {most} % of blocks may be longer than the radius, and so much and more of all length may be missing"
        );
    }
    let length = if clipping.length > 0.0 {
        format!("at least {} % of all length is cut off", short(100.0 * clipping.length))
    } else {
        "how much of all length is cut off cannot be stated at this noise".to_owned()
    };
    format!(
        "{whose}between {fewest} and {most} % of blocks are longer than the radius, and {length} (by noisy counts): so much the sums are too low, on the whole"
    )
}

/// What sums are divided by to make them shares.
struct Shares {
    total: f64,
    /// What lower ends are divided by, where the total is surely positive.
    low: Option<f64>,
    high: Option<f64>,
}

impl Shares {
    const NONE: Self = Self { total: 1.0, low: Some(1.0), high: Some(1.0) };

    /// Half of the allowed error is the total's, half the item's.
    fn of(mechanism: &Histogram, noisy: &NoisyHistogram, statement: &mut Statement) -> Self {
        let (total, within) = mechanism.total(noisy, 1.0 - (1.0 - statement.confidence) / 2.0);
        statement.notes.push("shares are of the noisy sum of all items; the intervals count its error too".to_owned());
        let sure = total - within > 0.0;
        Self {
            total: if total > 0.0 { total } else { f64::NAN },
            low: sure.then_some(total + within),
            high: sure.then_some(total - within),
        }
    }
}

/// The largest weight, as declared.
fn heaviest(declared: &DeclaredUnit<'_>, weight: &str) -> Result<f64, QueryError> {
    let name = &declared.dataset.name;
    match declared.dataset.bounds(weight) {
        Some(Bounds::Declared { low, high }) if low >= 0.0 && high > 0.0 => Ok(high),
        Some(Bounds::Declared { .. }) => Err(QueryError::asked(
            format!("the bounds of `{name}.{weight}` reach below 0, and a histogram adds up what is not negative"),
            "declare bounds from 0 on; what is below counts as 0",
        )),
        Some(Bounds::Auto | Bounds::Days { .. }) | None => Err(QueryError::asked(
            format!("`{name}.{weight}` has no declared range, so its sum has no finite sensitivity"),
            format!(
                "declare one that you can defend without looking: {}",
                line::with(declared.dataset, weight, ("bounds", "[0, 600]"))
            ),
        )),
    }
}

fn intervals(together: bool, confidence: f64) -> String {
    let percent = short(100.0 * confidence);
    let holds = if together {
        format!(
            "the intervals hold all at once with {percent} %, over the whole list, and so for whatever stands at the top"
        )
    } else {
        format!("each interval holds by itself with {percent} %: of many, some will be wrong")
    };
    holds + "; they are about what caps leave, and do not include what caps leave out"
}

fn left_out(item: &str, items: usize) -> String {
    format!("rows without a user, and those whose `{item}` is none of the {items} listed items, are left out")
}

fn column(name: &str, role: Role) -> Column {
    Column { name: name.to_owned(), role, after_caps: false }
}

fn key(text: &str) -> Cell {
    Cell { value: Value::Text(text.to_owned()), low: None, high: None }
}

#[cfg(test)]
mod tests;
