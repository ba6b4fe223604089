//! What a run of noisy sums costs, and what a run may be for a cost: from parameters alone, before anything is run.
//!
//! ```
//! use whit::Name;
//! use whit::price::{DrawKind, RunDraft, SampledRun};
//!
//! // Users are drawn, and what is protected is one of the 30 elements that each has at most.
//! let draft = RunDraft { draw: DrawKind::User, elements_per_user: Some(30), ..RunDraft::new(4.0, 0.01, 100) };
//! let run = SampledRun::of(&draft)?;
//! let price = run.epsilon(1e-5, Name::Pld)?;
//! assert!(price.loss.lower <= price.loss.upper);
//! assert_eq!(price.rungs.iter().map(|rung| rung.unit).collect::<Vec<_>>(), ["element", "user"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::Error;
use crate::explain::Promise;
use whit_account::accountant::{DeltaLoss, gdp};
use whit_account::calibrate::{self, CalibrateError, Calibrated, Target};
use whit_account::{Name, Unsupported, delta, delta_by, epsilon, epsilon_by};
use whit_core::digits::{brief_down, brief_up};
use whit_core::{Change, Cost, Draw, Loss, Sampled, Sampling};

/// How many points of ε and δ stand for a run's own curve.
const POINTS: u32 = 24;

/// Steps that each draw units, add up what they contribute, and add Gaussian noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledRun {
    /// One step, as it is for the unit that is protected.
    pub step: Sampled,
    /// How many steps are made.
    pub steps: u64,
    /// The most elements that one user has, where that is known: then a whole user is priced too.
    pub elements_per_user: Option<u64>,
}

/// What one coin decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawKind {
    /// The unit itself: an event, a row, a (user, element) pair.
    Unit,
    /// A whole user, with all elements at once.
    User,
}

/// A run as somebody describes it, of which [`SampledRun::of`] makes one that has a price, or says what is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunDraft {
    /// Standard deviation of the noise on the sum, over the largest norm that one drawn unit can contribute.
    pub noise: f64,
    /// The probability with which a unit is drawn in one step.
    pub rate: f64,
    /// How many steps are made.
    pub steps: u64,
    /// How neighbours differ.
    pub change: Change,
    /// What one coin decides about.
    pub draw: DrawKind,
    /// How a step chooses what it sees.
    pub sampling: Sampling,
    /// The most elements that one user has, where that is known.
    pub elements_per_user: Option<u64>,
    /// How far apart two neighbours' contributions are at most, in clip norms, where more is known than that each has a norm of one.
    pub difference: Option<f64>,
}

impl RunDraft {
    /// Units drawn each on its own, of which one is replaced: what holds then holds also where one is added or removed.
    pub fn new(noise: f64, rate: f64, steps: u64) -> Self {
        let (change, draw, sampling) = (Change::Replace, DrawKind::Unit, Sampling::Poisson);
        Self { noise, rate, steps, change, draw, sampling, elements_per_user: None, difference: None }
    }
}

/// How far apart two contributions of norm one are at most, of which nothing else is known.
const OPPOSITE: f64 = 2.0;

/// What a run loses at one rung.
#[derive(Debug, Clone, PartialEq)]
pub struct RungPrice {
    /// "unit", "element" or "user".
    pub unit: &'static str,
    /// How neighbours differ.
    pub change: Change,
    /// The loss, and whose bound the upper one is; or why there is none.
    pub loss: Result<(Loss, Name), Unsupported>,
}

/// The ε of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EpsilonPrice {
    /// From above and from below.
    pub loss: Loss,
    /// Whose bound the upper one is.
    pub by: Name,
    /// The same at every rung.
    pub rungs: Vec<RungPrice>,
}

/// The δ of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaPrice {
    /// From above and from below.
    pub loss: DeltaLoss,
    /// Whose bound the upper one is.
    pub by: Name,
    /// What is known from below of ε at this δ.
    pub epsilon_lower: f64,
    /// ε at this δ, at every rung; empty where δ is none that can be asked about.
    pub rungs: Vec<RungPrice>,
}

/// A run that keeps a promise.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPromise {
    /// The run, with the value that was looked for.
    pub run: SampledRun,
    /// What it loses.
    pub price: EpsilonPrice,
    /// Whether the search ended there, and more would do as well: at a rate of 1, or at the most steps that are looked at.
    pub is_end: bool,
}

/// What one accountant says of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Opinion {
    /// Which.
    pub accountant: Name,
    /// The loss, and whose bound the upper one is; or why there is none.
    pub loss: Result<(Loss, Name), Unsupported>,
    /// What the central limit theorem makes of a run that draws, where that is below the bound. It is no bound.
    pub limit: Option<f64>,
}

impl SampledRun {
    /// The run that is described, with one step as it is for the unit that is protected. Where the description leaves something open that a price hangs on, it is
    /// refused, or the worst is taken.
    pub fn of(draft: &RunDraft) -> Result<Self, Error> {
        let &RunDraft { noise, rate, steps, change, sampling, elements_per_user, .. } = draft;
        let draw = match (draft.draw, elements_per_user) {
            (DrawKind::Unit, _) => Draw::Unit,
            (DrawKind::User, Some(elements)) => Draw::User { elements },
            (DrawKind::User, None) => {
                return Err(Error::asked(
                    "`run.draw` is user, but `run.elements_per_user` is missing: a user's other elements are drawn with the same coin and give the draw away",
                    "add `run.elements_per_user = K` with the cap that you enforce, or draw (user, element) pairs with `run.draw = unit`",
                ));
            }
        };
        if let (Change::AddRemove, Some(difference)) = (change, draft.difference) {
            return Err(Error::asked(
                format!(
                    "`run.difference` is {difference}, but it must be left out unless `run.change` is replace: a unit that is added or removed has no second \
                     contribution to differ from"
                ),
                "drop `run.difference`, or ask with `run.change = replace`",
            ));
        }
        let difference = draft.difference.unwrap_or(OPPOSITE);
        let step = Sampled { noise, rate, sampling, draw, change, difference, holds: 1 };
        Ok(Self { step, steps, elements_per_user })
    }

    /// What all steps cost the unit that is protected.
    pub fn cost(&self) -> Cost {
        Cost::Sampled(self.step).repeat(self.steps)
    }

    /// The ε at a δ.
    pub fn epsilon(&self, delta: f64, accountant: Name) -> Result<EpsilonPrice, Unsupported> {
        let (loss, by) = epsilon_by(&self.cost(), delta, accountant)?;
        Ok(EpsilonPrice { loss, by, rungs: self.rungs((loss, by), accountant) })
    }

    /// The δ at an ε.
    pub fn delta(&self, epsilon: f64, accountant: Name) -> Result<DeltaPrice, Unsupported> {
        let cost = self.cost();
        let (loss, by) = delta_by(&cost, epsilon, accountant)?;
        let can_be_asked = loss.upper > 0.0 && loss.upper < 1.0;
        let back = if can_be_asked { epsilon_by(&cost, loss.upper, accountant).ok() } else { None };
        let epsilon_lower = back.map_or(0.0, |known| known.0.lower).min(epsilon);
        let rungs = back.map_or(Vec::new(), |known| self.rungs(known, accountant));
        Ok(DeltaPrice { loss, by, epsilon_lower, rungs })
    }

    /// The same run with the least noise that keeps a promise.
    pub fn with_least_noise(self, target: Target, accountant: Name) -> Result<KeptPromise, CalibrateError> {
        let with = |noise: f64| Self { step: Sampled { noise, ..self.step }, ..self };
        let found = calibrate::noise(&with(1.0).step, self.steps, target, accountant)?;
        Ok(kept(found, target, accountant, brief_up, 1.0 + 1e-5, with))
    }

    /// The same run with the most steps that keep a promise.
    pub fn with_most_steps(self, target: Target, accountant: Name) -> Result<KeptPromise, CalibrateError> {
        let Calibrated { value, loss, by, is_end } = calibrate::steps(&self.step, target, accountant)?;
        let run = Self { steps: value as u64, ..self };
        Ok(KeptPromise { run, price: EpsilonPrice { loss, by, rungs: run.rungs((loss, by), accountant) }, is_end })
    }

    /// The same run with the highest rate that keeps a promise.
    pub fn with_highest_rate(self, target: Target, accountant: Name) -> Result<KeptPromise, CalibrateError> {
        let with = |rate: f64| Self { step: Sampled { rate, ..self.step }, ..self };
        let found = calibrate::rate(&with(1.0).step, self.steps, target, accountant)?;
        Ok(kept(found, target, accountant, brief_down, 1.0 - 1e-5, with))
    }

    /// Every accountant's answer.
    pub fn opinions(&self, delta: f64) -> Vec<Opinion> {
        let cost = self.cost();
        let opinion = |accountant: Name| {
            let loss = epsilon_by(&cost, delta, accountant);
            let bound = loss.as_ref().map_or(f64::INFINITY, |(loss, _)| loss.upper);
            // Without drawing the accountant itself is exact. A limit that lies above the bound says only that the run is far from it.
            let of_limit = accountant == Name::Gdp && self.step.rate < 1.0;
            let limit = if of_limit { gdp::clt(&cost) } else { None };
            let limit = limit.map(|limit| limit.approximate_epsilon(delta));
            Opinion { accountant, loss, limit: limit.filter(|&limit| limit.is_finite() && limit < bound) }
        };
        Name::ALL.into_iter().map(opinion).collect()
    }

    /// What the run costs at this δ, and the promises that it keeps, by their ε: that one, and others with a larger δ.
    pub fn promises(&self, at: f64, accountant: Name) -> Result<(EpsilonPrice, Vec<Promise>), Unsupported> {
        let cost = self.cost();
        let price = self.epsilon(at, accountant)?;
        let upper = price.loss.upper;
        let most = delta(&cost, 0.0, accountant)?.upper;
        let mut promises = vec![Promise::new(0.0, most), Promise::new(upper, at)];
        for i in 1..POINTS {
            // Evenly in ln δ, but dense near the largest δ, where the curve bends.
            let share = (f64::from(i) / f64::from(POINTS)).powi(2);
            let between = most * (at / most).powf(share);
            if between > at && between < most {
                promises.push(Promise::new(epsilon(&cost, between, accountant)?.upper, between));
            }
        }
        let mut promises: Vec<Promise> = promises.into_iter().flatten().collect();
        promises.sort_by(|a, b| a.epsilon().total_cmp(&b.epsilon()));
        Ok((price, promises))
    }

    /// What the run loses at every rung, as far as the accountant can say; at the rung that is protected it is known.
    fn rungs(&self, known: (Loss, Name), accountant: Name) -> Vec<RungPrice> {
        let (change, delta) = (self.step.change, known.0.delta);
        let unit = match (self.elements_per_user, change) {
            (Some(_), Change::Replace) => "element",
            (None, _) | (_, Change::AddRemove) => "unit",
        };
        let own = RungPrice { unit, change, loss: Ok(known) };
        let user = self.elements_per_user.map(|holds| {
            let step = Sampled { holds, ..self.step };
            let loss = if step == self.step {
                Ok(known)
            } else {
                epsilon_by(&Cost::Sampled(step).repeat(self.steps), delta, accountant)
            };
            RungPrice { unit: "user", change, loss }
        });
        [Some(own), user].into_iter().flatten().collect()
    }
}

/// The value in the digits that people see, on its safe side, so that who prices it again finds the same ε. Two lattices may
/// differ in the fourth digit of ε, so that it is priced anew, and moved on by `onwards`, and ever further, until the promise is kept.
fn kept(
    found: Calibrated,
    target: Target,
    accountant: Name,
    brief: fn(f64) -> String,
    onwards: f64,
    with: impl Fn(f64) -> SampledRun,
) -> KeptPromise {
    let mut value = found.value;
    let priced = |value: f64, loss: Loss, by: Name| {
        let run = with(value);
        let price = EpsilonPrice { loss, by, rungs: run.rungs((loss, by), accountant) };
        KeptPromise { run, price, is_end: found.is_end }
    };
    if found.is_end {
        return priced(found.value, found.loss, found.by);
    }
    for turn in 0..10 {
        let Ok(shown) = brief(value).parse::<f64>() else { break };
        match epsilon_by(&with(shown).cost(), target.delta, accountant) {
            Ok((loss, by)) if loss.upper <= target.epsilon => return priced(shown, loss, by),
            Ok(_) => value = shown * onwards.powi(1 << turn),
            Err(_) => break,
        }
    }
    priced(found.value, found.loss, found.by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn run() -> SampledRun {
        SampledRun::of(&RunDraft::new(2.0, 0.1, 10)).unwrap()
    }

    #[test]
    fn what_nobody_said_of_a_run_is_taken_at_its_worst() {
        let step = run().step;
        assert_eq!((step.difference, step.holds, step.draw, step.change), (2.0, 1, Draw::Unit, Change::Replace));
        let known = SampledRun::of(&RunDraft { difference: Some(1.5), ..RunDraft::new(2.0, 0.1, 10) }).unwrap();
        let upper = |run: SampledRun| run.epsilon(1e-5, Name::Pld).unwrap().loss.upper;
        assert!(upper(known) < upper(run()), "who knows more pays less, and nobody else");
        let added = SampledRun::of(&RunDraft { change: Change::AddRemove, ..RunDraft::new(2.0, 0.1, 10) }).unwrap();
        assert!(upper(added) <= upper(run()));
    }

    /// A user's other elements are drawn with the same coin, so that without their number there is no price; and one that is added has nothing to differ from.
    #[test]
    fn a_run_without_what_its_price_hangs_on_is_refused() {
        let users = RunDraft { draw: DrawKind::User, ..RunDraft::new(2.0, 0.1, 10) };
        let error = SampledRun::of(&users).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Asked);
        assert!(error.sentence.starts_with("`run.draw` is user, but `run.elements_per_user` is missing"), "{error}");
        let capped = SampledRun::of(&RunDraft { elements_per_user: Some(3), ..users }).unwrap();
        assert_eq!(capped.step.draw, Draw::User { elements: 3 });
        let added = RunDraft { change: Change::AddRemove, difference: Some(1.0), ..RunDraft::new(2.0, 0.1, 10) };
        let error = SampledRun::of(&added).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Asked);
        assert!(error.sentence.starts_with("`run.difference` is 1, but it must be left out"), "{error}");
    }

    /// What is found is priced as people would price it who read the digits that are shown.
    #[test]
    fn a_value_that_was_found_keeps_its_promise_in_the_digits_that_are_shown() {
        let target = Target { epsilon: 1.0, delta: 1e-5 };
        let noise = run().with_least_noise(target, Name::Pld).unwrap();
        let rate = run().with_highest_rate(target, Name::Pld).unwrap();
        let steps = run().with_most_steps(target, Name::Pld).unwrap();
        assert_eq!(brief_up(noise.run.step.noise).parse(), Ok(noise.run.step.noise));
        assert_eq!(brief_down(rate.run.step.rate).parse(), Ok(rate.run.step.rate));
        for found in [noise, rate, steps] {
            let again = found.run.epsilon(target.delta, Name::Pld).unwrap();
            assert!(found.price.loss.upper <= target.epsilon && again.loss.upper <= target.epsilon, "{found:?}");
            assert!(again.loss.upper > 0.9 * target.epsilon || found.run.steps > 10, "not far below: {found:?}");
        }
    }

    #[test]
    fn a_whole_user_is_priced_where_it_is_known_how_many_elements_one_has() {
        let units = |run: SampledRun| -> Vec<&str> {
            run.epsilon(1e-5, Name::Pld).unwrap().rungs.iter().map(|rung| rung.unit).collect()
        };
        let with_users = SampledRun { elements_per_user: Some(3), ..run() };
        let added = Sampled { change: Change::AddRemove, ..run().step };
        assert_eq!(units(run()), ["unit"]);
        assert_eq!(units(with_users), ["element", "user"]);
        assert_eq!(units(SampledRun { step: added, ..with_users }), ["unit", "user"]);
        let rungs = with_users.epsilon(1e-5, Name::Pld).unwrap().rungs;
        let upper = |rung: &RungPrice| rung.loss.as_ref().unwrap().0.upper;
        assert!(upper(&rungs[1]) > upper(&rungs[0]), "a coarser rung never costs less");
    }

    /// The figure of the limit theorem is never given as a bound.
    #[test]
    fn only_gdp_has_a_limit_and_only_below_its_bound() {
        for opinion in run().opinions(1e-5) {
            let bound = opinion.loss.as_ref().map_or(f64::INFINITY, |(loss, _)| loss.upper);
            assert!(opinion.limit.is_none_or(|limit| opinion.accountant == Name::Gdp && limit < bound), "{opinion:?}");
        }
        let all = SampledRun { step: Sampled { rate: 1.0, ..run().step }, ..run() };
        assert!(all.opinions(1e-5).iter().all(|opinion| opinion.limit.is_none()), "without drawing gdp is exact");
    }

    #[test]
    fn a_promise_with_a_larger_delta_has_a_smaller_epsilon() {
        let (price, promises) = run().promises(1e-5, Name::Pld).unwrap();
        assert_eq!(promises.last().map(Promise::epsilon), Some(price.loss.upper));
        assert!(promises.len() > 10 && promises.windows(2).all(|pair| pair[0].delta() >= pair[1].delta()));
    }
}
