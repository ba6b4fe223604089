//! What was spent of one budget, slice by slice where its units lie in slices.

use super::budget::{Budget, MOST_TIMES, costs_for};
use super::entry::Entry;
use super::error::LedgerError;
use super::refusal;
use super::segments::Segments;
use crate::accountant::Unsupported;
use crate::filter::{Filter, Refused};
use whit_core::unit::{SliceRange, SliceValue, Slices, Slicing};
use whit_core::{Charge, Cost, Refusal, Rung, Unit};

/// One filter for each slice of a budget, of which each sees the charges that may read the slice. A budget without slices has one filter, which sees them all.
///
/// # Neighbours
/// Data sets that differ in one unit of the budget. Where the budget has a [`slicing`](Budget::slicing), all rows in which they differ have one value in its column, the same
/// in both: [`lies_in_one_slice`](whit_core::declare::UnitDeclaration::lies_in_one_slice) says for which units that is so. Rows without a value are one more slice, which only
/// charges without slices may read.
///
/// # Claim
/// Everything that was let through is (ε, δ)-differentially private together, with the budget's ε and δ, also for analysts who choose each question, and the slices that
/// it reads, after all answers so far.
///
/// # Why
/// Fix two neighbours, and let s be the value of the rows in which they differ. A question whose [`Slices`](whit_core::unit::Slices) do not hold s has the same law on both given
/// all answers so far, so its share in the loss of the transcript is 0. Any other question costs at most what its charge says. Which of the two it is follows from its text and the
/// declaration, and so is known before it is answered. So the loss is that of a sequence whose costs are, for this pair, 0 or the stated ones, chosen adaptively, and a
/// filter that adds up these costs bounds it: that is individual accounting with public costs (Feldman and Zrnic 2021, "Individual privacy accounting via a Rényi filter"; for
/// Gaussian noise Koskela, Tobaben and Honkela 2023). The filter for s sees just these costs, and a charge is let through only if it fits into the filter of every
/// slice that it may read; in all others it costs nothing. As s was any value, this holds for all neighbours.
///
/// What was charged under another slicing, or at a coarser unit, counts in every slice: that is more than it costs, and so is safe. Where slicings change, what a charge is
/// added to is, for every pair that it costs something, at least what the pair has lost so far. So the pair's own costs fit whenever one of them is let through.
///
/// It is about data sets that differ in one unit, whatever is asked of them. Data that is written anew is another data set: a row that is corrected into another slice is another unit there, and
/// each of the two has paid for itself alone.
///
/// # Tried by
/// `the_state_of_every_slice_is_the_composition_of_what_touches_it` (against an independent sum for each value, on random sequences), `a_charge_without_slices_or_under_another_slicing_touches_all`
/// and `slices_hold_on_every_ledger` (on each kind of ledger); for questions `a_slice_that_is_not_asked_about_moves_nothing` and `what_only_seems_to_be_sliced_touches_all`.
#[derive(Debug, Clone)]
pub(super) struct Spending {
    slicing: Option<Slicing>,
    /// It knows prices; what it has spent is put into it where it is asked.
    filter: Filter,
    standings: Segments<SliceStanding>,
}

/// What was spent in a slice.
#[derive(Debug, Clone, PartialEq)]
struct SliceStanding {
    spent: (Vec<f64>, f64),
    releases: u64,
}

impl SliceStanding {
    /// Whether at least as much was spent in it as in another, of every currency.
    fn covers(&self, other: &Self) -> bool {
        let ((own, own_aside), (amounts, aside)) = (&self.spent, &other.spent);
        own_aside >= aside && own.iter().zip(amounts).all(|(own, amount)| own >= amount)
    }
}

/// What was spent in a slice, and which costs of a charge touch it, by their places.
#[derive(Debug, Clone)]
struct Touched {
    standing: SliceStanding,
    costs: Vec<usize>,
}

impl Touched {
    /// Whether a charge that fits here fits in another slice, too.
    fn covers(&self, other: &Self) -> bool {
        self.costs == other.costs && self.standing.covers(&other.standing)
    }
}

/// A slice in which a charge is judged, and the costs that it has there.
struct JudgedSlice<'a> {
    values: Option<SliceRange>,
    standing: SliceStanding,
    costs: Vec<&'a Cost>,
}

/// Slices in which the same was spent.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceLevel {
    /// The slices in words, in order: `2024-01-03`, or `2024-01-05 to 2024-01-07`.
    pub slices: Vec<String>,
    /// How many they are, where that is a number.
    pub number: Option<u64>,
    /// How many releases may have read them.
    pub releases: u64,
    /// ε so far, at the budget's δ.
    pub spent: f64,
    /// ε of the largest release that would still fit.
    pub left: f64,
}

/// Which slices a cost at a rung is of, as a budget counts them: all of them where nothing is said.
pub(super) fn ranges_of<'a>(budget: &Budget, rung: &'a Rung) -> Option<&'a [SliceRange]> {
    let slicing = budget.slicing.as_ref()?;
    let own = rung.slices.as_ref().filter(|slices| rung.unit == budget.unit && slices.slicing() == slicing);
    own.map(Slices::ranges)
}

impl Spending {
    /// Of a budget of which nothing was spent yet.
    pub(super) fn of(budget: &Budget) -> Result<Self, LedgerError> {
        let filter = budget.filter().map_err(|why| currency_error(budget, why))?;
        Ok(Self::with(filter, budget.slicing.clone()))
    }

    /// The same by a filter that has not been charged yet.
    pub(super) fn with(filter: Filter, slicing: Option<Slicing>) -> Self {
        let standing = SliceStanding { spent: filter.mark(), releases: 0 };
        Self { slicing, filter, standings: Segments::all(standing) }
    }

    /// Adds what an entry cost, whether or not it fits: it was spent.
    pub(super) fn add(&mut self, budget: &Budget, entry: &Entry) -> Result<(), LedgerError> {
        let costs = costs_for(&budget.unit, &entry.charge);
        if costs.is_empty() {
            return Err(LedgerError::Unknown {
                dataset: budget.dataset.clone(),
                unit: budget.unit.to_string(),
                number: entry.number,
                units: units_of(&entry.charge),
            });
        }
        // All prices first, so that an entry is added as a whole or not at all.
        let prices: Result<Vec<_>, _> = costs.iter().map(|(_, cost)| self.filter.price(cost)).collect();
        let prices = prices.map_err(|why| currency_error(budget, why))?;
        for (place, ((rung, _), price)) in costs.iter().zip(&prices).enumerate() {
            let filter = &mut self.filter;
            self.standings.touch(ranges_of(budget, rung), |standing| {
                filter.restore(standing.spent.clone());
                filter.add(price);
                standing.spent = filter.mark();
                standing.releases += u64::from(place == 0);
            });
        }
        Ok(())
    }

    /// The slices in which a charge costs something, without those in which no more was spent than in another of them.
    fn places<'c>(&self, budget: &Budget, charge: &'c Charge) -> Vec<JudgedSlice<'c>> {
        let costs = costs_for(&budget.unit, charge);
        let mut refined = self.standings.map(|standing| Touched { standing: standing.clone(), costs: Vec::new() });
        for (i, (rung, _)) in costs.iter().enumerate() {
            refined.touch(ranges_of(budget, rung), |touched| touched.costs.push(i));
        }
        let mut worst: Vec<(Option<SliceRange>, &Touched)> = Vec::new();
        for (values, touched) in refined.iter().filter(|(_, touched)| !touched.costs.is_empty()) {
            if !worst.iter().any(|(_, other)| other.covers(touched)) {
                worst.retain(|(_, other)| !touched.covers(other));
                worst.push((values, touched));
            }
        }
        let place = |(values, touched): (_, &Touched)| JudgedSlice {
            values,
            standing: touched.standing.clone(),
            costs: touched.costs.iter().map(|&i| costs[i].1).collect(),
        };
        worst.into_iter().map(place).collect()
    }

    /// The "no" of the slice with least left that says no to a charge, if there is one, as `say` puts it: it sees the filter as it is before the first cost that does not fit.
    pub(super) fn refused<T>(
        &mut self,
        budget: &Budget,
        charge: &Charge,
        say: impl Fn(Refused, &Cost, &Filter, Option<String>) -> T,
    ) -> Option<T> {
        let mut least: Option<(f64, T)> = None;
        for place in self.places(budget, charge) {
            self.filter.restore(place.standing.spent.clone());
            let left = self.filter.left();
            let no = place.costs.iter().find_map(|cost| self.filter.charge(cost).err().map(|refused| (refused, *cost)));
            if let Some((refused, cost)) = no.filter(|_| least.as_ref().is_none_or(|(least, _)| left < *least)) {
                least = Some((left, say(refused, cost, &self.filter, self.name_of(place.values.as_ref(), charge))));
            }
        }
        least.map(|(_, said)| said)
    }

    /// A budget's "no" to a charge, in the words of a release.
    pub(super) fn refusal(&mut self, budget: &Budget, charge: &Charge) -> Option<Refusal> {
        self.refused(budget, charge, |refused, cost, filter, slice| {
            refusal(refused, (&budget.unit, budget.analyst.as_deref(), slice), filter, cost)
        })
    }

    /// What is left where a charge costs something and least is left; and which slice that is, where it is one among others.
    pub(super) fn left_for(&mut self, budget: &Budget, charge: &Charge) -> (f64, Option<String>) {
        let mut least = (f64::INFINITY, None);
        for place in self.places(budget, charge) {
            self.filter.restore(place.standing.spent);
            let left = self.filter.left();
            if left < least.0 {
                least = (left, self.name_of(place.values.as_ref(), charge));
            }
        }
        least
    }

    /// How often a charge fits into what is left, one after the other, up to [`MOST_TIMES`].
    pub(super) fn times(&mut self, budget: &Budget, charge: &Charge) -> u64 {
        let times = self.places(budget, charge).into_iter().map(|place| {
            self.filter.restore(place.standing.spent);
            let mut fits = || place.costs.iter().all(|cost| self.filter.charge(cost).is_ok());
            (0..MOST_TIMES).take_while(|_| fits()).count() as u64
        });
        times.min().unwrap_or(MOST_TIMES)
    }

    /// The share of the whole budget that a charge takes, in the slice in which it takes most: see [`Filter::share`].
    pub(super) fn share(&mut self, budget: &Budget, charge: &Charge) -> f64 {
        let shares = self.places(budget, charge).into_iter();
        shares.map(|place| place.costs.iter().map(|cost| self.filter.share(cost)).sum::<f64>()).fold(0.0, f64::max)
    }

    /// ε so far, in the slice in which most was spent.
    pub(super) fn spent(&mut self) -> f64 {
        self.worst().into_iter().map(|(spent, _)| spent).fold(0.0, f64::max)
    }

    /// ε of the largest release that would fit into every slice.
    pub(super) fn left(&mut self) -> f64 {
        self.worst().into_iter().map(|(_, left)| left).fold(f64::INFINITY, f64::min)
    }

    /// What was spent and what is left in those slices in which no less was spent than in any other.
    fn worst(&mut self) -> Vec<(f64, f64)> {
        let mut worst: Vec<&SliceStanding> = Vec::new();
        for (_, standing) in self.standings.iter() {
            if !worst.iter().any(|other| other.covers(standing)) {
                worst.retain(|other| !standing.covers(other));
                worst.push(standing);
            }
        }
        let filter = &mut self.filter;
        let figures = worst.into_iter().map(|standing| {
            filter.restore(standing.spent.clone());
            (filter.spent(), filter.left())
        });
        figures.collect()
    }

    /// All slices by what was spent in them, most first; none where units do not lie in slices.
    pub(super) fn levels(&mut self) -> Vec<SliceLevel> {
        let Some(slicing) = &self.slicing else { return Vec::new() };
        let mut groups: Vec<(&SliceStanding, Vec<Option<SliceRange>>)> = Vec::new();
        for (values, standing) in self.standings.iter() {
            match groups.iter_mut().find(|(known, _)| *known == standing) {
                Some((_, slices)) => slices.push(values),
                None => groups.push((standing, vec![values])),
            }
        }
        let filter = &mut self.filter;
        let level = |(standing, slices): (&SliceStanding, Vec<Option<SliceRange>>)| {
            filter.restore(standing.spent.clone());
            let number = slices.iter().try_fold(0_u64, |sum, range| sum.checked_add(number_in(range.as_ref()?)?));
            // Those that follow one another are told as one; those between texts have no name, and are told once.
            let named: Vec<SliceRange> = slices.iter().flatten().cloned().collect();
            let others = slices.iter().any(Option::is_none).then(|| in_words(None, slicing));
            let merged = Slices::new(slicing.clone(), named);
            let ranges = merged.iter().flat_map(Slices::ranges);
            let words = ranges.map(|range| in_words(Some(range), slicing)).chain(others).collect();
            SliceLevel {
                slices: words,
                number,
                releases: standing.releases,
                spent: filter.spent(),
                left: filter.left(),
            }
        };
        let mut levels: Vec<SliceLevel> = groups.into_iter().map(level).collect();
        levels.sort_by(|a, b| b.spent.total_cmp(&a.spent));
        levels
    }

    /// What a slice is called in a sentence about a charge, where it is one among several.
    fn name_of(&self, values: Option<&SliceRange>, charge: &Charge) -> Option<String> {
        let slicing = self.slicing.as_ref()?;
        let sliced = charge.iter().any(|(rung, _)| rung.slices.is_some());
        (sliced || self.standings.is_cut()).then(|| format!("{} = {}", slicing.column, in_words(values, slicing)))
    }
}

/// Slices in words; those between two texts are others.
fn in_words(values: Option<&SliceRange>, slicing: &Slicing) -> String {
    values.map_or_else(|| "any other".to_owned(), |range| range.words(slicing.kind))
}

/// How many slices there are in a range, where that is a number.
fn number_in(range: &SliceRange) -> Option<u64> {
    match (&range.from, &range.to) {
        (Some(SliceValue::Whole(from)), Some(SliceValue::Whole(to))) => {
            to.checked_sub(*from)?.checked_add(1)?.try_into().ok()
        }
        (Some(from), Some(to)) => (from == to).then_some(1),
        _ => None,
    }
}

pub(super) fn currency_error(budget: &Budget, why: Unsupported) -> LedgerError {
    LedgerError::Currency { dataset: budget.dataset.clone(), unit: budget.unit.to_string(), why }
}

/// The units of a charge, in words.
pub(super) fn units_of(charge: &Charge) -> String {
    let mut units: Vec<&Unit> = charge.iter().map(|(rung, _)| &rung.unit).collect();
    units.dedup();
    let words: Vec<String> = units.iter().map(ToString::to_string).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" and per ") }
}

#[cfg(test)]
mod tests;
