//! One value that holds sampler, clip, noise and cost, so that they cannot disagree.
//!
//! A [`Draft`] is what somebody asks for; a [`Plan`] is what was checked. Sampler and sanitiser take their numbers from
//! the plan and from nowhere else, and so does the charge.

mod clip;
#[cfg(test)]
mod errata;
mod error;
mod labels;
mod moves;
#[cfg(test)]
mod tests;
mod way;

pub use clip::{Clip, Clipping};
pub use error::PlanError;
pub(crate) use moves::moves;
pub use way::{NoiseSource, Padding, Way};

use crate::reporting::PlannedLabels;
use whit_account::accountant::pair::dominating;
use whit_account::calibrate::{self, CalibrateError, Target};
use whit_account::{Name, Unsupported, epsilon};
use whit_core::{Change, Charge, Cost, Draw, Kind, Ladder, Loss, Rung, Sampled, Sampling};
use whit_noise::Ratio;
use whit_noise::round::{quotient_down, quotient_up, ratio_up, sum_up};

/// What adding up in floats may move the sum of two neighbours apart, over the clip norm: the clipped sum is within half of
/// it of the exact one, by construction of the clipping.
pub const SUMMATION: f64 = 1.0 / 128.0;

/// What snapping to the lattice may move two neighbours apart, over the clip norm: see [`Grid`](crate::sanitise::Grid).
pub(crate) const SNAPPING: f64 = 1.0 / 1024.0;

/// The most noise, and one over it the least, that a plan may name: what fits into 64 bits of lattice steps.
const MOST_NOISE: f64 = (1_u64 << 30) as f64;

/// The largest clip norm, and one over it the smallest: all arithmetic on lattice steps is exact between them.
const MOST_CLIP: f64 = (1_u128 << 100) as f64;

/// The largest factor that features may be multiplied with, and one over it the smallest: beyond, rows are no numbers any more, or all of them 0.
const MOST_SCALE: f32 = (1_u128 << 100) as f32;

/// Whether features may be multiplied with one number and raised by another, as far as floats go.
///
/// ```
/// use whit_learn::plan::check_scale;
/// assert!(check_scale(1.0 / 255.0, -0.5).is_ok());
/// assert!(check_scale(0.0, 0.0).unwrap_err().hint().contains("2^-100"));
/// ```
pub fn check_scale(scale: f32, offset: f32) -> Result<(), PlanError> {
    let fits = (1.0 / MOST_SCALE..=MOST_SCALE).contains(&scale.abs()) && offset.abs() <= MOST_SCALE;
    if fits { Ok(()) } else { Err(PlanError::Scale { scale, offset }) }
}

/// A coarser rung's ε beyond this promises nothing to speak of, and PLD would take minutes to say how little: hundreds of units that move at once have losses in
/// the thousands. The protected rung is always PLD's, by whom the noise for a target is found: what was asked for is what is stated.
pub(crate) const COARSE: f64 = 60.0;

/// What one coin decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// The protected unit itself: an event, a (user, element) pair, a user whose unit is the user.
    Units,
    /// A whole user, all of whose units come along. It costs what the user's other units give away (erratum E1).
    Users,
}

/// Where the number of units comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Somebody stated it without looking at private rows. It need not be exact.
    Declared(u64),
    /// It was counted from the rows. That is public for feature and label units only, whose rows stay in view; under
    /// every other unit a neighbour may have one unit less with rows, and the divisor would tell.
    Counted(u64),
}

impl Count {
    /// The number.
    pub fn get(self) -> u64 {
        match self {
            Self::Declared(count) | Self::Counted(count) => count,
        }
    }
}

/// What somebody asks for, before it is checked.
///
/// A user unit is one bag and is clipped once, so its noise does not grow with the elements that a user has; that is not
/// the same as clipping elements and reading the price on the user's rung (erratum E17).
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The protected unit and those above it.
    pub ladder: Ladder,
    /// What one coin decides about; units by default.
    pub drawn: Drawn,
    /// How coins are thrown; Poisson by default.
    pub sampling: Sampling,
    /// The probability of being drawn, exactly.
    pub rate: Ratio,
    /// How many units there are. Times the rate it is the divisor of every step.
    pub units: Count,
    /// How many users there are, as declared: for whole users in batches of fixed size.
    pub users: Option<u64>,
    /// What bounds a contribution.
    pub clip: Clip,
    /// How far two neighbours' contributions are apart, in clip norms: 2, and less only where it is proven.
    /// Clipping moves no two gradients further apart (it projects to a convex set), so |g − g′|/C may stand here.
    pub difference: f64,
    /// How many steps are taken.
    pub steps: u64,
    /// What else is released of the same rows, under charges of its own, and is promised together with the steps: directions to project on, for one.
    /// [`Plan::loss`] and the noise for a target include it; [`Plan::charge`], which the steps reserve, does not.
    pub accompanying: Charge,
}

impl Draft {
    /// Units drawn one by one, each with probability `rate`, clipped flat to `norm`, for so many steps.
    ///
    /// ```
    /// use whit_account::calibrate::Target;
    /// use whit_core::{Change, Ladder, Unit, unit::{Caps, Kind}};
    /// use whit_learn::{Count, Draft};
    /// let caps = Caps { elements_per_user: Some(10), rows_per_element: None };
    /// let units = vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)];
    /// let ladder = Ladder::new(units, caps, Kind::Element)?;
    /// let draft = Draft::new(ladder, "1/100".parse()?, Count::Declared(50_000), 1.0, 1000);
    /// let plan = draft.for_target(Target { epsilon: 2.0, delta: 1e-6 })?;
    /// assert_eq!(plan.divisor(), 500.0);
    /// assert!(plan.loss(1e-6)?[0].1.upper <= 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(ladder: Ladder, rate: Ratio, units: Count, norm: f64, steps: u64) -> Self {
        Self {
            ladder,
            drawn: Drawn::Units,
            sampling: Sampling::Poisson,
            rate,
            units,
            users: None,
            clip: Clip { norm, how: Clipping::Flat },
            difference: 2.0,
            steps,
            accompanying: Charge::new(),
        }
    }

    /// The plan with this noise: standard deviation over the clip norm.
    pub fn with_noise(self, noise: f64) -> Result<Plan, PlanError> {
        self.checked(noise, SUMMATION + SNAPPING)
    }

    /// The plan with the least noise that keeps the promise to the protected rung.
    pub fn for_target(self, target: Target) -> Result<Plan, PlanError> {
        self.calibrated(target, SUMMATION + SNAPPING)
    }

    fn calibrated(self, target: Target, slack: f64) -> Result<Plan, PlanError> {
        let mut plan = self.checked(1.0, slack)?;
        let rung = plan.ladder.protected();
        let found = calibrate::noise(&plan.sampled(rung, 1), plan.steps, target, Name::Pld)?;
        // Up to the float whose effective noise is not below what was found; then the promise is checked forwards.
        plan.noise = found.value * (1.0 + slack);
        while plan.effective_noise() < found.value {
            plan.noise = plan.noise.next_up();
        }
        if !plan.accompanying.is_empty() {
            plan.narrow(target)?;
        }
        let mut price = plan.price(target.delta)?;
        // The accountant's own rounding may wobble by a hair between two floats next to each other.
        for nudge in 0..20 {
            if price.upper <= target.epsilon {
                break;
            }
            plan.noise *= 1.0 + 1e-9 * f64::from(1 << nudge);
            price = plan.price(target.delta)?;
        }
        check_noise(plan.noise)?;
        if price.upper <= target.epsilon {
            Ok(plan)
        } else {
            Err(PlanError::AboveTarget { epsilon: price.upper, target: target.epsilon })
        }
    }

    fn checked(self, noise: f64, slack: f64) -> Result<Plan, PlanError> {
        let protected = &self.ladder.protected().unit;
        if self.rate.is_zero() || self.rate > Ratio::ONE {
            return Err(PlanError::Rate { rate: self.rate.to_string() });
        }
        if !(1.0 / MOST_CLIP..=MOST_CLIP).contains(&self.clip.norm) {
            return Err(PlanError::Clip { norm: self.clip.norm });
        }
        if self.clip.how == (Clipping::PerLayer { layers: 0 }) {
            return Err(PlanError::NoLayers);
        }
        check_noise(noise)?;
        if self.steps == 0 {
            return Err(PlanError::NoSteps);
        }
        if self.units.get() == 0 {
            return Err(PlanError::NoUnits);
        }
        let in_view = matches!(protected.kind(), Kind::Feature | Kind::Label);
        if matches!(self.units, Count::Counted(_)) && !in_view {
            return Err(PlanError::CountedUnits { unit: protected.clone() });
        }
        self.check_difference(in_view)?;
        let draw = self.draw()?;
        let places = self.places(draw)?;
        let expected = self.rate.times(&Ratio::from(self.units.get()));
        let divisor = expected.map_or_else(|| self.rate.to_f64() * self.units.get() as f64, |exact| exact.to_f64());
        let Self { ladder, sampling, rate, clip, difference, steps, accompanying, .. } = self;
        let plan = Plan {
            ladder,
            draw,
            sampling,
            rate,
            places,
            divisor,
            clip,
            noise,
            difference,
            steps,
            slack,
            accompanying,
            labels: None,
            way: Way::Mean,
            source: NoiseSource::Secret { threads: 1 },
        };
        for (rung, &held) in plan.ladder.rungs().iter().zip(plan.ladder.held()) {
            dominating(&plan.sampled(rung, held))
                .map_err(|reason| PlanError::Unpriced { unit: rung.unit.to_string(), reason })?;
        }
        Ok(plan)
    }

    fn check_difference(&self, in_view: bool) -> Result<(), PlanError> {
        let difference = self.difference;
        if !(difference > 0.0 && difference <= 2.0) {
            return Err(PlanError::Difference { difference });
        }
        if difference < 2.0 && !in_view {
            return Err(PlanError::DifferenceOf { unit: self.ladder.protected().unit.clone(), difference });
        }
        if difference < 2.0 && self.clip.how == Clipping::Normalising {
            return Err(PlanError::DifferenceNormalised { difference });
        }
        Ok(())
    }

    /// What a coin decides about, with the cap that the ladder links units and users by.
    fn draw(&self) -> Result<Draw, PlanError> {
        let protected = self.ladder.protected();
        let of_user = |rung: &Rung| match rung.unit.kind() {
            Kind::User => true,
            Kind::Feature | Kind::Label => !rung.unit.key().is_empty(),
            Kind::Event | Kind::Element => false,
        };
        if self.drawn == Drawn::Units || of_user(protected) {
            return Ok(Draw::Unit);
        }
        if protected.unit.kind() == Kind::Event && protected.unit.change() == Change::Replace {
            return Err(PlanError::MovedRows { unit: protected.unit.clone() });
        }
        let coarsest = self.ladder.rungs().iter().zip(self.ladder.held()).rfind(|(rung, _)| of_user(rung));
        coarsest
            .map(|(_, &elements)| Draw::User { elements })
            .ok_or(PlanError::NoUserRung { kind: protected.unit.kind() })
    }

    /// How many there are to draw a batch of fixed size from.
    fn places(&self, draw: Draw) -> Result<Option<u64>, PlanError> {
        if self.sampling == Sampling::Poisson {
            return Ok(None);
        }
        let protected = &self.ladder.protected().unit;
        if protected.change() == Change::AddRemove {
            return Err(PlanError::FixedSize { unit: protected.clone() });
        }
        let places = match draw {
            Draw::Unit => self.units.get(),
            Draw::User { .. } => self.users.ok_or(PlanError::NoUsers)?,
        };
        let batch = self.rate.times(&Ratio::from(places));
        if batch.is_some_and(|batch| batch.denominator() == 1 && !batch.is_zero()) {
            Ok(Some(places))
        } else {
            Err(PlanError::NotWhole { rate: self.rate.to_string(), places })
        }
    }
}

fn check_noise(noise: f64) -> Result<(), PlanError> {
    if (1.0 / MOST_NOISE..=MOST_NOISE).contains(&noise) { Ok(()) } else { Err(PlanError::Noise { noise }) }
}

/// All that a guarantee depends on, checked: who is protected, who is drawn, what is clipped, how much noise, how often.
///
/// How a unit contributes and where the noise comes from belong to it, so that whoever prices, learns or releases knows of the same: a plan whose noise is not
/// secret costs everything, and a [`Learner`](crate::Learner) has no noise but its plan's.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    ladder: Ladder,
    draw: Draw,
    sampling: Sampling,
    rate: Ratio,
    places: Option<u64>,
    divisor: f64,
    clip: Clip,
    noise: f64,
    difference: f64,
    steps: u64,
    slack: f64,
    accompanying: Charge,
    /// How labels are made noisy before the first step.
    labels: Option<PlannedLabels>,
    way: Way,
    source: NoiseSource,
}

impl Plan {
    /// The same, where units contribute in this way: their mean, if nothing else is said.
    pub fn stepping(self, way: Way) -> Result<Self, PlanError> {
        way.check(self.protects(), self.has_noisy_labels())?;
        Ok(Self { way, ..self })
    }

    /// The same with noise from here: secret, if nothing else is said. With any other, it costs everything.
    #[must_use]
    pub fn drawing(self, source: NoiseSource) -> Self {
        Self { source, ..self }
    }

    /// How a unit's rows become its contribution.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Where all noise comes from: that of the steps, or of the labels that were released before them.
    pub fn source(&self) -> NoiseSource {
        self.source
    }

    /// Where the noise of steps comes from. Noisy labels are learned from as they are, without more of it.
    pub(crate) fn step_noise(&self) -> NoiseSource {
        if self.has_noisy_labels() { NoiseSource::Off } else { self.source }
    }

    /// The protected unit and those above it.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Which sort of unit is protected.
    pub fn protects(&self) -> Kind {
        self.ladder.protected().unit.kind()
    }

    /// What one coin decides about.
    pub fn draw(&self) -> Draw {
        self.draw
    }

    /// How coins are thrown.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// The probability of being drawn, exactly.
    pub fn rate(&self) -> &Ratio {
        &self.rate
    }

    /// How many units (or users, where whole users are drawn) a batch of fixed size is drawn from, as declared. Those that
    /// are not there hold no rows, and drawing them adds nothing.
    pub fn places(&self) -> Option<u64> {
        self.places
    }

    /// What every noisy sum is divided by: the expected number of bags, from declared numbers alone. Never the number that
    /// was drawn, which is private (errata F3, C10).
    pub fn divisor(&self) -> f64 {
        self.divisor
    }

    /// What bounds a contribution.
    pub fn clip(&self) -> Clip {
        self.clip
    }

    /// Standard deviation of the noise on the sum, over the clip norm.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// How far two neighbours' contributions are apart, in clip norms.
    pub fn difference(&self) -> f64 {
        self.difference
    }

    /// How many steps are taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether a release of this cost is promised to a rung together with the steps.
    pub(crate) fn promises(&self, rung: &Rung, cost: &Cost) -> bool {
        let promised = self.accompanying_cost(rung).leaves();
        let holds = |(leaf, times): &(Cost, u64)| {
            promised.iter().any(|(known, often)| *known == Cost::Everything || known == leaf && often >= times)
        };
        cost.leaves().iter().all(holds)
    }

    /// How much further apart than the exact clipped sums two snapped float sums may be, over the clip norm.
    pub fn slack(&self) -> f64 {
        self.slack
    }

    /// The noise that accounting may count on: σ/(1 + slack), rounded down.
    pub(crate) fn effective_noise(&self) -> f64 {
        let largest = 1.0 + self.slack; // exact: slacks are multiples of 2^-10
        quotient_down(self.noise, largest)
    }

    /// (d + slack)/(1 + slack), rounded up, and never more than 2: the difference in units of the largest contribution.
    fn effective_difference(&self) -> f64 {
        if self.slack == 0.0 {
            return self.difference;
        }
        quotient_up(sum_up(self.difference, self.slack), 1.0 + self.slack).min(2.0)
    }

    /// One step, as the cost language has it, for a rung of which one unit has rows in at most `held` protected units.
    fn sampled(&self, rung: &Rung, held: u64) -> Sampled {
        let (change, held) = moves(&self.ladder, rung, held);
        let (change, held) = match (self.sampling, self.draw) {
            (Sampling::Poisson, _) => (change, held),
            // Places are public: who goes leaves an empty place, which is a replacement.
            (Sampling::Fixed, Draw::Unit) => (Change::Replace, held),
            // A user whose only unit goes may make room for one with all that a user can have.
            (Sampling::Fixed, Draw::User { elements }) => (Change::Replace, held.max(elements)),
        };
        let difference = match change {
            Change::AddRemove => 2.0, // nothing reads it
            Change::Replace => self.effective_difference(),
        };
        Sampled {
            noise: self.effective_noise(),
            rate: ratio_up(&self.rate).min(1.0),
            sampling: self.sampling,
            draw: self.draw,
            change,
            difference,
            holds: held,
        }
    }

    /// What all steps together cost a rung; a unit that is not on the ladder is promised nothing, and noise that is not secret costs everything.
    ///
    /// # Why
    /// The law of a step depends on the bags alone, not on whose they are: coins are independent and equal, so a user
    /// whose k units are replaced by k others is one whose k bags become other bags, coin by coin. Hence
    /// [`Ladder::held`] and not [`Rung::holds`] says how many change at once, whether units are drawn or whole
    /// users (who share one coin: errata E1, E17). Which pair dominates then is
    /// [`dominating`]'s business; what caps do to rows that are units of their own is said at [`Cut`](crate::source::Cut), and what slack does at
    /// [`Sanitiser`](crate::Sanitiser).
    pub fn cost(&self, rung: &Rung) -> Cost {
        if !self.source.protects() {
            return Cost::Everything;
        }
        if self.has_noisy_labels() {
            let known = self.ladder.rungs().iter().any(|known| known.unit == rung.unit);
            return if known && rung.unit.kind() == Kind::Label { Cost::Nothing } else { Cost::Everything };
        }
        let mut rungs = self.ladder.rungs().iter().zip(self.ladder.held());
        rungs
            .find(|(known, _)| known.unit == rung.unit)
            .map_or(Cost::Everything, |(known, &held)| Cost::Sampled(self.sampled(known, held)).repeat(self.steps))
    }

    /// The costs of all rungs: what a ledger is asked to reserve before the first step.
    pub fn charge(&self) -> Charge {
        self.ladder.rungs().iter().map(|rung| (rung.clone(), self.cost(rung))).collect()
    }

    /// What else is released and promised together with the steps costs a rung.
    fn accompanying_cost(&self, rung: &Rung) -> Cost {
        let own = self.accompanying.iter().filter(|(known, _)| known.unit == rung.unit).map(|(_, cost)| cost.clone());
        let mut own: Vec<Cost> = own.collect();
        if own.is_empty() && !self.accompanying.is_empty() {
            return Cost::Everything;
        }
        own.extend(self.labels.as_ref().map(|labels| labels.price.of(rung)));
        Cost::Series(own)
    }

    /// What all steps, and what is promised with them, lose the protected rung at δ.
    fn price(&self, delta: f64) -> Result<Loss, CalibrateError> {
        let protected = self.ladder.protected();
        let whole = Cost::Series(vec![self.accompanying_cost(protected), self.cost(protected)]);
        Ok(epsilon(&whole, delta, Name::Pld)?)
    }

    /// Raises the noise from what the steps alone would need to what they need together with the rest.
    fn narrow(&mut self, target: Target) -> Result<(), PlanError> {
        let alone = epsilon(&self.accompanying_cost(self.ladder.protected()), target.delta, Name::Pld);
        let alone = alone.map_err(CalibrateError::from)?;
        if alone.upper >= target.epsilon {
            return Err(PlanError::Accompanying { epsilon: alone.upper, target: target.epsilon });
        }
        let mut low = self.noise;
        loop {
            if self.price(target.delta)?.upper <= target.epsilon {
                break;
            }
            if self.noise > MOST_NOISE / 2.0 {
                return Err(PlanError::Accompanying { epsilon: alone.upper, target: target.epsilon });
            }
            low = self.noise;
            self.noise *= 1.25;
        }
        let mut high = self.noise;
        while high > low * (1.0 + 2e-5) {
            self.noise = f64::midpoint(low, high);
            if self.price(target.delta)?.upper <= target.epsilon {
                high = self.noise;
            } else {
                low = self.noise;
            }
        }
        self.noise = high;
        Ok(())
    }

    /// What all steps, and what is promised together with them, lose at δ, rung by rung: by PLD, and by Rényi divergences where these say more than 60
    /// of a rung above the protected one.
    pub fn loss(&self, delta: f64) -> Result<Vec<(Rung, Loss)>, Unsupported> {
        self.loss_after(self.steps, delta)
    }

    /// The same for the first so many steps.
    pub fn loss_after(&self, steps: u64, delta: f64) -> Result<Vec<(Rung, Loss)>, Unsupported> {
        if !self.source.protects() {
            let rungs = self.ladder.rungs().iter();
            return rungs.map(|rung| Ok((rung.clone(), epsilon(&Cost::Everything, delta, Name::Basic)?))).collect();
        }
        if self.has_noisy_labels() {
            let cost = |rung: &Rung| Cost::Series(vec![self.accompanying_cost(rung), self.cost(rung)]);
            let rungs = self.ladder.rungs().iter();
            return rungs.map(|rung| Ok((rung.clone(), epsilon(&cost(rung), delta, Name::Basic)?))).collect();
        }
        let protected = &self.ladder.protected().unit;
        let price = |rung: &Rung, cost: &Cost| match epsilon(cost, delta, Name::Rdp) {
            Ok(loss) if loss.upper > COARSE && rung.unit != *protected => Ok(loss),
            _ => epsilon(cost, delta, Name::Pld),
        };
        let rungs = self.ladder.rungs().iter().zip(self.ladder.held());
        let cost = |rung: &Rung, held| {
            Cost::Series(vec![self.accompanying_cost(rung), Cost::Sampled(self.sampled(rung, held)).repeat(steps)])
        };
        rungs.map(|(rung, &held)| Ok((rung.clone(), price(rung, &cost(rung, held))?))).collect()
    }
}
