//! A question as a mechanism: rows are summed within their bounds and given noise, part by part. [`Rows`] read them, and are opened after the reservation.

use super::Tables;
use super::frame::{self, Frame};
use super::stored::{Released, ReleasedPart};
use crate::answer::Cell;
use crate::bound::{BoundedSum, BoundedSums};
use crate::engine::{self, Pass};
use crate::error::QueryError;
use crate::noise::StoredLaw;
use crate::plan::aggregate::estimator::NoisyMeasures;
use crate::plan::measure::tree_of;
use crate::plan::{Grain, Kept, Part, Plan, What};
use crate::sanitise::Calibrated;
use crate::source::Stamps;
use whit_core::digits::number_of;
use whit_core::mechanism::range::Bins;
use whit_core::mechanism::{Mechanism, SanitiseError};
use whit_core::release::Reservation;
use whit_core::{Accuracy, Cost, Rung, Sealed};
use whit_noise::Entropy;

/// One question being answered: a mechanism whose exact statistic is whatever the engine finds in its [`Rows`].
///
/// # Neighbours
/// Data sets that differ in one unit of the rung. What the unit contributes is bounded as [`crate::plan::Measure`] says, part by part.
///
/// # Claim
/// All that is released together is at most as easy to tell apart as the series of its parts: for each measure, Gaussian
/// noise over its sensitivity on the rung (or discrete Laplace noise); likewise for the two numbers that tell what caps left out; for keys that
/// are not public, what [`Keys`](whit_core::mechanism::keys::Keys) costs.
///
/// # Why
/// Composition: each measure and each set of keys is a mechanism of its own on the same rows, chosen before any of them
/// is seen, except that bounds which are found first decide how values are put on the lattice; the integers that come of it are bounded
/// alike whatever is found. Noise is added to sums that carry their bounds, and to no others. Values of groups that do not show are dropped afterwards, and the rest is post-processing.
/// Questions that are asked together come to one plan, of which each sum is released once, and are one such question; what each of them makes of the released tables is post-processing too.
///
/// # Tried by
/// `no_neighbour_moves_a_measure_further_than_planned`, `no_neighbour_moves_what_questions_share_further_than_planned`, `audited_queries_never_show_more_than_they_claim`.
pub(super) struct QueryMechanism<'a> {
    tables: &'a Tables,
    plan: &'a Plan,
    noise: Option<&'a Calibrated>,
    confidence: f64,
}

/// A task of the engine that ended early. The words of a panic may hold values of a row, so only its kind is reported.
fn unfinished(error: &tokio::task::JoinError) -> String {
    let kind = if error.is_panic() { "could not finish the question" } else { "was stopped" };
    format!("the engine {kind}")
}

/// How much caps left out, of noisy numbers of rows before and after them, each off by no more than its error. Of one unit no more than
/// so many rows were counted before them, so this is a lower bound, and its lower end is what is known.
fn left_out([before, after]: [i64; 2], [of_before, of_after]: [f64; 2], kept: &Kept, unit: &str) -> String {
    let Kept { caps, most: [counted, _], .. } = kept;
    let counted = number_of(counted, "row");
    let (before, after) = (before as f64, after as f64);
    if before <= 2.0 * of_before {
        return format!("how many rows were left out by {caps} is not known: there are too few for the noise");
    }
    // Both numbers within their errors, the worst of either: no ratio is linearised.
    let share = |after: f64, before: f64| (1.0 - after / before).clamp(0.0, 1.0);
    let (least, most) = (share(after + of_after, before - of_before), share(after - of_after, before + of_before));
    // Rounded down: it is a lower bound in words, too.
    let digits = if most - least < 0.01 { 10.0 } else { 1.0 };
    let percent = (digits * 100.0 * least).floor() / digits;
    if percent == 0.0 {
        let (one, who) = if unit == "element" { ("an element", "which") } else { ("a user", "who") };
        return format!(
            "how many rows were left out by {caps} is not known: the noise hides them, or they are of {one} with more than \
             {counted}, {who} counts for no more"
        );
    }
    format!(
        "at least about {percent} % of rows were left out by {caps}; it may be far more, since no more than {counted} of one \
         {unit} were counted"
    )
}

/// One end of a range for people: bins about zero have tiny ends, which are 0 next to the other one.
fn without_dust(end: f64, other: f64) -> f64 {
    if end.abs() < 1e-9 * other.abs() { 0.0 } else { end }
}

/// The rows of a question, open to be read: what a release makes after its reservation. Several passes go over them, since ranges that are found decide how
/// the next one puts values on the lattice, and noise is drawn in between.
pub(super) struct Rows<'a> {
    tables: &'a Tables,
    /// Which of its own a unit beyond a cap keeps follows from this, so nobody may foresee it.
    seed: u64,
    /// What the files were when they were fingerprinted.
    stamps: Option<&'a Stamps>,
}

impl<'a> Rows<'a> {
    /// Of these files only: where another comes in the place of one, nothing is released.
    pub(super) fn of(tables: &'a Tables, seed: u64, stamps: Option<&'a Stamps>, _: &Reservation) -> Self {
        Self { tables, seed, stamps }
    }

    /// Without a reservation: of questions that read nothing private, and for audits and tests, which nobody else sees.
    pub(super) fn unpaid(tables: &'a Tables, seed: u64) -> Self {
        Self { tables, seed, stamps: None }
    }

    fn sums(&self, part: &Part, pass: Pass, found: &[(f64, f64)]) -> Result<BoundedSums, QueryError> {
        // On a thread of the engine's, so that whatever happens to it there comes back as words.
        let (context, part, found, seed) =
            (self.tables.warehouse.context().clone(), part.clone(), found.to_vec(), self.seed);
        let work = async move { engine::sums(&context, &part, pass, &found, seed).await };
        let done = self.tables.runtime.run(work).ok_or_else(QueryError::interrupted)?;
        done.map_err(|error| QueryError::failed(unfinished(&error)))?
    }

    /// The groups of a part and its exact measures, aligned with them.
    pub(super) fn exact(&self, part: &Part, found: &[(f64, f64)]) -> Result<(Frame, Vec<BoundedSum>), SanitiseError> {
        let plain = self.sums(part, Pass::Plain, found)?;
        let (frame, aligned) = Frame::of(part, &plain)?;
        let mut aligned = aligned.into_iter();
        let missing = || QueryError::failed("a measure without its sum");
        let mut measures = Vec::new();
        for (i, measure) in part.measures.iter().enumerate() {
            match &measure.what {
                What::Rows(_) | What::Parts(_) | What::Sum { .. } => {
                    measures.push(aligned.next().ok_or_else(missing)?);
                }
                What::Users => {
                    // What stands in its own place are rows.
                    aligned.next();
                    measures.push(frame.presence.clone().ok_or_else(missing)?);
                }
                What::Distinct { .. } => {
                    let sums = self.sums(part, Pass::Inner(i), found)?;
                    measures.extend(frame.align(&sums)?);
                }
                What::Tree { tree, .. } => {
                    let sums = self.sums(part, Pass::Inner(i), found)?;
                    let tree = tree_of(tree, found)?;
                    measures.push(frame.trees(&sums, &tree)?);
                }
            }
        }
        Ok((frame, measures))
    }
}

impl<'a> QueryMechanism<'a> {
    pub(super) fn new(tables: &'a Tables, plan: &'a Plan, noise: Option<&'a Calibrated>, confidence: f64) -> Self {
        Self { tables, plan, noise, confidence }
    }

    pub(super) fn everything(&self, rows: &Rows<'_>, entropy: &mut dyn Entropy) -> Result<Released, SanitiseError> {
        let mut released = Released::default();
        for (number, part) in self.plan.parts.iter().enumerate() {
            let noise = self.noise.map(|noise| &noise.parts[number]);
            let mut found = Vec::new();
            for (i, auto) in part.autos.iter().enumerate() {
                let noise =
                    noise.and_then(|noise| noise.ranges.get(i)).ok_or(SanitiseError::Unfit("a range without noise"))?;
                let sums = rows.sums(part, Pass::Range(i), &[])?;
                let bins = Bins::default();
                let counts = sums.over_bins(bins.len())?.with_noise(noise, entropy)?;
                let range = bins.choose(&counts, noise.deviation(), 0.995)?;
                let (low, high) = range.as_ref().map_or((-1.0, 1.0), |range| (range.low, range.high));
                released.notes.push(match &range {
                    Some(range) => format!(
                        "bounds of {} found privately: {} to {}, which leave out about {:.1} % of the values",
                        auto.name,
                        without_dust(low, high),
                        without_dust(high, low),
                        100.0 * range.outside
                    ),
                    None => {
                        format!("no bounds of {} could be found: there are too few values for the noise", auto.name)
                    }
                });
                found.push((low, high));
            }
            let (frame, values) = rows.exact(part, &found)?;
            self.sanitised(number, &frame, values, &found, &mut released, entropy)?;
        }
        Ok(released)
    }

    /// Draws a part's noise, and makes of the noisy integers what was asked for.
    pub(super) fn sanitised(
        &self,
        number: usize,
        frame: &Frame,
        sums: Vec<BoundedSum>,
        found: &[(f64, f64)],
        released: &mut Released,
        entropy: &mut dyn Entropy,
    ) -> Result<(), SanitiseError> {
        let part = &self.plan.parts[number];
        let noise = self.noise.map(|noise| &noise.parts[number]);
        let (values, groups) = match noise {
            Some(noise) => (noise.add(sums, entropy)?, noise.shown(frame.presence.as_ref(), frame.groups, entropy)?),
            None if sums.is_empty() => (Vec::new(), (0..frame.groups).collect()),
            None => return Err(SanitiseError::Unfit("measures without noise")),
        };
        let exact = frame::exact_columns(self.tables, part, frame)?;
        let noises = noise.map_or(&[][..], |noise| &noise.measures);
        let kept = part.measures.iter().zip(&values).map(|(measure, values)| match measure.what {
            What::Tree { .. } => Vec::new(),
            _ => groups.iter().map(|&group| values[group]).collect(),
        });
        let kept = kept.collect();
        let noisy = NoisyMeasures::new(part, noises, values, found, self.confidence);
        let mut cells = Vec::new();
        for (i, statistic) in part.statistics.iter().enumerate() {
            cells.push(match exact.get(&i) {
                Some(exact) => {
                    groups.iter().map(|&g| Cell { value: exact[g].clone(), low: None, high: None }).collect()
                }
                None => noisy.cells(statistic, &groups)?,
            });
        }
        if let (Some(kept), Some(laws)) = (&part.kept, noise.and_then(|noise| noise.kept.as_ref())) {
            let mut rows = [0; 2];
            for (i, law) in laws.iter().enumerate() {
                rows[i] = frame.kept[i].clone().with_noise(law, entropy)?[0];
            }
            let errors = [0, 1].map(|i: usize| laws[i].within(self.confidence));
            let unit = if part.grain == Grain::Element { "element" } else { "user" };
            released.notes.push(left_out(rows, errors, kept, unit));
        }
        let keys = frame.rows(&groups)?;
        let laws = noises.iter().map(StoredLaw::of).collect();
        released.parts.push(ReleasedPart { keys, cells, measures: kept, noise: laws, found: found.to_vec() });
        for (i, law) in noises.iter().enumerate() {
            released.mechanisms.push(format!("{}: {}", part.measures[i].name, law.words(part.step_of(i, found))));
        }
        released.mechanisms.extend(noise.and_then(|noise| noise.keys.as_ref()).map(|keys| {
            let counted = if part.grain == Grain::Row { "rows" } else { "users" };
            format!("keys: a group shows with even chance from {} {counted} on", keys.half())
        }));
        Ok(())
    }
}

impl<'a> Mechanism for QueryMechanism<'a> {
    type Exact = Rows<'a>;
    type Noisy = Released;

    fn cost(&self, rung: &Rung) -> Cost {
        let charge = self.noise.and_then(|noise| noise.charge.iter().find(|(own, _)| own == rung));
        charge.map_or(Cost::Everything, |(_, cost)| cost.clone())
    }

    fn sanitise(&self, rows: &Rows<'a>, entropy: &mut dyn Entropy) -> Result<Sealed<Released>, SanitiseError> {
        let released = self.everything(rows, entropy)?;
        rows.stamps.map_or(Ok(()), super::unchanged)?;
        Ok(Sealed::new(released))
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        let first = self.noise.and_then(|noise| noise.parts.first()).and_then(|part| part.measures.first());
        Accuracy { within: first.map_or(0.0, |noise| noise.within(confidence)), confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user with 5,000 of 5,400 rows, of which 480 were counted: 92.6 % are left out, and no upper end below that is stated.
    #[test]
    fn what_caps_left_out_is_stated_as_a_lower_bound() {
        let kept = Kept { most: [480, 30], moved: [Vec::new(), Vec::new()], caps: "`rows = 30`".to_owned() };
        let note = left_out([880, 430], [40.0, 10.0], &kept, "user");
        assert!(
            note.starts_with("at least about 47 % of rows were left out by `rows = 30`; it may be far more"),
            "{note}"
        );
        assert!(!note.contains("between"), "{note}");
        // Two rows less, of errors of 40 and 10: no number, and none that reads like an upper bound.
        let note = left_out([840, 838], [40.0, 10.0], &kept, "user");
        assert!(note.contains("left out by `rows = 30` is not known") && !note.contains('%'), "{note}");
        assert!(note.ends_with("they are of a user with more than 480 rows, who counts for no more"), "{note}");
        let note = left_out([840, 838], [40.0, 10.0], &kept, "element");
        assert!(note.ends_with("they are of an element with more than 480 rows, which counts for no more"), "{note}");
        let note = left_out([50, 50], [40.0, 10.0], &kept, "user");
        assert!(note.contains("is not known: there are too few for the noise"), "{note}");
    }

    #[test]
    fn an_end_that_is_nothing_next_to_the_other_is_printed_as_zero() {
        assert_eq!((without_dust(-9e-13, 128.0), without_dust(128.0, -9e-13)), (0.0, 128.0));
        assert_eq!((without_dust(-3.0, 128.0), without_dust(-9e-13, 9e-13)), (-3.0, -9e-13));
    }
}
