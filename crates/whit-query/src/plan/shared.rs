//! What several questions share. Those that group the same rows in the same way become one part: what they sum alike is summed once, has one noise, and is paid for once.
//!
//! Nothing here bounds or prices anything. The aggregates of such questions are put next to one another over the rows of one of them, and that is planned like any other
//! aggregate, so that all that is known of its parts is known from tracking these very rows. That two questions mean the same rows decides only who shares, never how far a
//! unit moves what is shared.

use super::outline::divided;
use super::track::track;
use super::{Asking, Part, Plan, aggregate, clock, meaning};
use crate::error::QueryError;
use crate::source::{Tables, Warehouse};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;
use whit_account::meaning::text;

/// Questions that were planned together.
#[derive(Debug, Clone)]
pub(crate) struct PlannedWorkload {
    /// All that is released for them, as one question: what is charged, run and stored. What is done with it each of them says.
    pub(crate) whole: Plan,
    /// The questions, as they were asked.
    pub(crate) questions: Vec<SharingPlan>,
}

/// One of the questions.
#[derive(Debug, Clone)]
pub(crate) struct SharingPlan {
    /// Its own keys and statistics over the measures of the whole.
    pub(crate) plan: Plan,
    /// Where its parts stand in the whole.
    pub(crate) places: Vec<PartPlace>,
}

/// Where one part of a question stands in the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartPlace {
    /// The part of the whole.
    pub(crate) part: usize,
    /// For each key of its own, which one it is there.
    pub(crate) keys: Vec<usize>,
    /// For each statistic of its own, which one it is there.
    pub(crate) statistics: Vec<usize>,
}

/// A question that was planned by itself, and what its parts were planned from.
pub(crate) type Divided = (Plan, Vec<Aggregate>);

impl Tables {
    /// Plans questions by themselves, all at one time of asking; what is wrong comes with the number of the question.
    pub(crate) fn divided_at_once(
        &self,
        questions: &[(String, LogicalPlan)],
        asking: &Asking,
    ) -> Result<Vec<Divided>, (usize, QueryError)> {
        let seconds = clock::now();
        let divide = |(place, (sql, logical)): (usize, &(String, LogicalPlan))| {
            asking
                .check_limits()
                .and_then(|()| self.surrounded(|around| divided(sql, logical, asking, around, seconds)))
                .map_err(|error| (place, error))
        };
        questions.iter().enumerate().map(divide).collect()
    }

    /// Plans them as one.
    ///
    /// Each sum has the weight of the question that gives it most.
    pub(crate) fn shared(
        &self,
        questions: Vec<Divided>,
        weights: &[f64],
        asking: &Asking,
    ) -> Result<PlannedWorkload, QueryError> {
        let (mut parts, found) = self.merged(&questions, asking)?;
        weigh(&mut parts, &found, weights);
        let mut whole = Plan {
            question: String::new(),
            dataset: String::new(),
            rungs: Vec::new(),
            parts: Vec::new(),
            tables: Vec::new(),
            after: nothing()?,
            notes: Vec::new(),
        };
        // In the order of their meanings: which question stands first is not what is asked.
        let mut order = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            order.push((text(&meaning::of_part(part, &self.warehouse)?), number));
        }
        order.sort();
        let place = |number: usize| order.iter().position(|(_, own)| *own == number).unwrap_or(number);
        whole.parts = order.iter().map(|(_, number)| parts[*number].clone()).collect();
        let payer = questions.iter().find(|(plan, _)| !plan.rungs.is_empty()).or(questions.first());
        if let Some((plan, _)) = payer {
            (whole.dataset, whole.rungs) = (plan.dataset.clone(), plan.rungs.clone());
        }
        // What all of them say is said once.
        let all = |note: &String| questions.iter().all(|(plan, _)| plan.notes.contains(note));
        whole.notes = questions.first().map_or_else(Vec::new, |(plan, _)| plan.notes.clone());
        whole.notes.retain(all);
        let mut members = Vec::new();
        for ((mut plan, _), mut places) in questions.into_iter().zip(found) {
            whole.tables.append(&mut plan.tables.clone());
            plan.notes.retain(|note| !whole.notes.contains(note));
            for (own, found) in plan.parts.iter_mut().zip(&mut places) {
                *own = picked(&parts[found.part], own, found);
                found.part = place(found.part);
            }
            members.push(SharingPlan { plan, places });
        }
        // Charged to all slices that one of them reads.
        Ok(PlannedWorkload { whole: self.sliced(whole), questions: members })
    }

    /// The parts that questions come to when they share, and where in them each stands.
    fn merged(&self, questions: &[Divided], asking: &Asking) -> Result<(Vec<Part>, Vec<Vec<PartPlace>>), QueryError> {
        let mut asked = Vec::new();
        for (question, (plan, aggregates)) in questions.iter().enumerate() {
            for (number, (part, aggregate)) in plan.parts.iter().zip(aggregates).enumerate() {
                let frame = meaning::of_frame(part, &self.warehouse)?;
                let text = LogicalPlan::Aggregate(aggregate.clone()).display_indent().to_string();
                asked.push(AskedPart { question, number, part, aggregate, frame, text });
            }
        }
        // By what they mean and then by how it is written, so that their order in the file decides nothing.
        asked.sort_by(|one, other| (&one.frame, &one.text).cmp(&(&other.frame, &other.text)));
        let mut groups: Vec<Sharing<'_>> = Vec::new();
        for item in &asked {
            let joined = groups.iter_mut().any(|group| group.takes(item, &self.warehouse));
            if !joined {
                groups.push(Sharing::new(item));
            }
        }
        let mut parts = Vec::new();
        let mut places: Vec<Vec<Option<PartPlace>>> =
            questions.iter().map(|(plan, _)| vec![None; plan.parts.len()]).collect();
        for group in groups {
            if let Some(part) = self.part_of(&group, asking) {
                for member in &group.members {
                    let place = Some(member.place(&part, parts.len()));
                    places[member.of.question][member.of.number] = place;
                }
                parts.push(part);
                continue;
            }
            // What cannot be planned together stays apart.
            for AskedPart { question, number, part, .. } in group.members.iter().map(|member| member.of) {
                let (keys, statistics) = (0..part.keys.len(), 0..part.statistics.len());
                let (keys, statistics) = (keys.collect(), statistics.collect());
                places[*question][*number] = Some(PartPlace { part: parts.len(), keys, statistics });
                parts.push((*part).clone());
            }
        }
        let lost = || QueryError::failed("a part of a question that stands nowhere");
        let places = places.into_iter().map(|places| places.into_iter().collect::<Option<_>>().ok_or_else(lost));
        Ok((parts, places.collect::<Result<_, _>>()?))
    }

    /// The one part of aggregates that share; nothing where these come to another frame together than each by itself.
    fn part_of(&self, group: &Sharing<'_>, asking: &Asking) -> Option<Part> {
        let base = group.members.first()?.of;
        if group.calls.len() == base.aggregate.aggr_expr.len() {
            return Some(base.part.clone());
        }
        let together = Aggregate::try_new(
            Arc::clone(&base.aggregate.input),
            base.aggregate.group_expr.clone(),
            group.calls.clone(),
        );
        let together = together.ok()?;
        let part = self.surrounded(|around| {
            let input = track(&together.input, around).ok()?;
            let private = input.private.clone()?;
            aggregate::plan(&input, &private, &together, asking, around).ok()
        });
        let (part, _, _) = part?;
        let same = meaning::of_frame(&part, &self.warehouse).is_ok_and(|frame| frame == base.frame);
        same.then_some(part)
    }
}

/// One part of one question.
struct AskedPart<'a> {
    question: usize,
    number: usize,
    part: &'a Part,
    aggregate: &'a Aggregate,
    /// What it is of, whatever is summed there.
    frame: String,
    /// How it is written.
    text: String,
}

/// Parts of one frame, over the rows of the first.
struct Sharing<'a> {
    members: Vec<Sharer<'a>>,
    /// All that is asked of them, each once.
    calls: Vec<Expr>,
}

/// One of them.
struct Sharer<'a> {
    of: &'a AskedPart<'a>,
    /// For each of its keys, which one it is of the first's.
    keys: Vec<usize>,
    /// For each of its calls, which one it is of all.
    calls: Vec<usize>,
}

impl Sharer<'_> {
    /// Where it stands in the part that all come to.
    fn place(&self, part: &Part, number: usize) -> PartPlace {
        let (own, first) = (&self.of.part.places, part.keys.len());
        let mut keys = vec![0; self.keys.len()];
        for (key, &there) in self.keys.iter().enumerate() {
            keys[own[key]] = part.places[there];
        }
        let mut statistics = vec![0; self.of.part.statistics.len()];
        for (call, &there) in self.calls.iter().enumerate() {
            statistics[own[first + call] - first] = part.places[first + there] - first;
        }
        PartPlace { part: number, keys, statistics }
    }
}

impl<'a> Sharing<'a> {
    fn new(of: &'a AskedPart<'a>) -> Self {
        let calls: Vec<Expr> = of.aggregate.aggr_expr.iter().map(|call| call.clone().unalias()).collect();
        let (keys, own) = ((0..of.aggregate.group_expr.len()).collect(), (0..calls.len()).collect());
        Self { members: vec![Sharer { of, keys, calls: own }], calls }
    }

    /// Takes another part in, if it is of the same frame and all that it asks for can be said of the rows of the first.
    fn takes(&mut self, of: &'a AskedPart<'a>, warehouse: &Warehouse) -> bool {
        let Some(first) = self.members.first().map(|member| member.of) else { return false };
        if first.frame != of.frame {
            return false;
        }
        let Some(spelled) = Respelled::of(&of.aggregate.input, &first.aggregate.input, warehouse) else { return false };
        let said = |exprs: &[Expr]| exprs.iter().map(|expr| spelled.expr(expr)).collect::<Option<Vec<_>>>();
        let (Some(keys), Some(asked)) = (said(&of.aggregate.group_expr), said(&of.aggregate.aggr_expr)) else {
            return false;
        };
        let own: Vec<Expr> = first.aggregate.group_expr.iter().map(|key| key.clone().unalias()).collect();
        let keys: Option<Vec<usize>> = keys.iter().map(|key| own.iter().position(|own| own == key)).collect();
        // All of them, and each once.
        let each_once = |keys: &Vec<usize>| keys.len() == own.len() && (0..own.len()).all(|key| keys.contains(&key));
        let Some(keys) = keys.filter(each_once) else { return false };
        let mut calls = Vec::new();
        for call in asked {
            let place = self.calls.iter().position(|own| *own == call).unwrap_or(self.calls.len());
            if place == self.calls.len() {
                self.calls.push(call);
            }
            calls.push(place);
        }
        self.members.push(Sharer { of, keys, calls });
        true
    }
}

/// How columns of some rows are called in the same rows of another spelling.
struct Respelled<'a> {
    rows: &'a LogicalPlan,
    /// For each column, what it is called there; nothing where it is not among them. Nothing at all where the spelling is one.
    names: Option<Vec<Option<Expr>>>,
}

impl<'a> Respelled<'a> {
    /// Nothing where the rows are others.
    fn of(rows: &'a LogicalPlan, there: &LogicalPlan, warehouse: &Warehouse) -> Option<Self> {
        if rows == there {
            return Some(Self { rows, names: None });
        }
        let (own, columns) = meaning::of_columns(rows, warehouse).ok()?;
        let (other, others) = meaning::of_columns(there, warehouse).ok()?;
        if own != other {
            return None;
        }
        let called: Vec<Expr> = there.schema().iter().map(Expr::from).collect();
        let find =
            |column: &serde_json::Value| Some(called.get(others.iter().position(|other| other == column)?)?.clone());
        Some(Self { rows, names: Some(columns.iter().map(find).collect()) })
    }

    /// An expression in the other spelling, without a name of its own.
    fn expr(&self, expr: &Expr) -> Option<Expr> {
        let expr = expr.clone().unalias();
        let Some(names) = &self.names else { return Some(expr) };
        let mut found = true;
        let _ = expr.apply(|part| {
            // What a sub-query reads of the rows around it would have to be respelled inside of it.
            found &= !matches!(
                part,
                Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::OuterReferenceColumn(..)
            );
            Ok(TreeNodeRecursion::Continue)
        });
        let respelled = expr.transform_up(|part| {
            let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            let place = self.rows.schema().maybe_index_of_column(column);
            if let Some(there) = place.and_then(|place| names.get(place)?.clone()) {
                return Ok(Transformed::yes(there));
            }
            found = false;
            Ok(Transformed::no(part))
        });
        respelled.ok().map(|respelled| respelled.data).filter(|_| found)
    }
}

/// Gives each measure the most that a question which needs it has to give. Weights are relative to one another: the least is 1.
fn weigh(parts: &mut [Part], places: &[Vec<PartPlace>], weights: &[f64]) {
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let weights: Vec<f64> = weights.iter().map(|weight| weight / least).collect();
    if weights.iter().all(|weight| *weight == 1.0) {
        return;
    }
    for (number, part) in parts.iter_mut().enumerate() {
        let mut most = vec![0.0_f64; part.measures.len()];
        for (places, &weight) in places.iter().zip(&weights) {
            for place in places.iter().filter(|place| place.part == number) {
                for measure in place.statistics.iter().flat_map(|&statistic| part.statistics[statistic].measures()) {
                    most[measure] = most[measure].max(weight);
                }
            }
        }
        // What nobody needs by itself is there for all.
        part.weights = most.into_iter().map(|weight| if weight == 0.0 { 1.0 } else { weight }).collect();
    }
}

/// A question's own view of a part that it shares: its keys, its columns and its statistics, of all measures that there are.
fn picked(shared: &Part, own: &Part, place: &PartPlace) -> Part {
    Part {
        keys: own.keys.clone(),
        output: own.output.clone(),
        places: own.places.clone(),
        statistics: place.statistics.iter().map(|&i| shared.statistics[i].clone()).collect(),
        after_caps: place.statistics.iter().map(|&i| shared.after_caps[i]).collect(),
        ..shared.clone()
    }
}

/// A plan that does nothing.
fn nothing() -> Result<LogicalPlan, QueryError> {
    LogicalPlanBuilder::empty(false).build().map_err(|error| crate::error::planning(&error))
}
