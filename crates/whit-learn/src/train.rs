//! Learning, step by step: draw, bound, sanitise, step.
//!
//! Long: a learner and the whole way of one of its steps are one thing, and each part of it that stands by itself has a file below.

mod directions;
mod label_gradient;
mod noisy_labels;
mod plain;

pub use crate::reporting::LabelReporting;
pub use label_gradient::{LabelGradients, label_gradients};
pub use plain::Plain;

use crate::augment::Augmenting;
use crate::bound::{Bags, Batch, ClippedSum, Seen, Step, Total, add_plain};
use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::layer::Tape;
use crate::loss::{LossFunction, Share, Targets};
use crate::optimise::{Average, Optimiser};
use crate::params::Layout;
use crate::plan::{NoiseSource, Plan};
pub use crate::plan::{Padding, Way};
use crate::projection::Projection;
use crate::sample::{Pool, Sampler};
use crate::sanitise::Sanitiser;
use crate::scatter::Scatter;
use crate::source::Rows;
use crate::statistics::{Sandwich, Sums, curvature};
use crate::store::Store;
use crate::tensor;
use whit_account::normal;
use whit_core::{Draw, Kind};
use whit_noise::round::norm_up;
use whit_noise::{Entropy, Os, Replay};

/// What can be set without changing what is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// So many rows go through the model at once.
    pub rows_at_once: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { rows_at_once: 1024 }
    }
}

/// Tells the system's allocator to keep the large buffers that each step needs again, instead of giving them back and asking for them page by
/// page: a convolutional network's step takes two thirds of the time then. For the whole process, so it is for commands to say and not for libraries.
pub fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (option, value) in
        [(libc::M_MMAP_THRESHOLD, i32::MAX), (libc::M_TRIM_THRESHOLD, i32::MAX), (libc::M_TOP_PAD, 64 << 20)]
    {
        #[expect(unsafe_code, reason = "a call of the C library")]
        // SAFETY: sets a number that the allocator reads under its own lock; any value is allowed.
        unsafe {
            libc::mallopt(option, value);
        }
    }
}

/// A model being learned under a plan.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the plan's ladder.
///
/// # Claim
/// All iterates together, and so the model, cost what [`Plan::charge`] says.
///
/// # Why
/// A step's clipped sum moves by at most the clip norm when one drawn unit comes or goes ([`Clip`](crate::plan::Clip); norms are taken in arithmetic that no f32 is too
/// small or too large for, and raised by more than rounding can take away; a unit with a number that is none, or infinite, contributes nothing), its float error is below
/// half of [`SUMMATION`](crate::plan::SUMMATION) by the choice of how many rows are multiplied at once and by sums that keep what they round away, and [`Sanitiser`] does the rest. What else a step reads is public: θ, which is post-processing of earlier steps, and for feature and label
/// units the public part of rows that an independent draw chose. Under a plan for noisy labels ([`Plan::has_noisy_labels`]) a step reads nothing else, and is
/// refused before [`Learner::take_noisy_labels`] has put them in the place of all labels.
///
/// What a row's gradient is in floats depends on the row and θ alone. Matrix kernels may differ in the last bit with the number of rows that go through them at
/// once, and rows that somebody made for it would show by that how many there are; so that number is the same for all data sets (or follows from one unit that has more
/// rows), and others are 0. That kernels treat rows alike wherever they stand among equally many is tried, and not proved.
///
/// # Tried by
/// `bag_norms_and_sums_agree_with_gradients_that_are_formed`, `no_row_of_any_size_adds_more_than_the_clip`, `a_unit_that_is_no_number_adds_nothing_and_harms_nobody`,
/// `formed_gradients_of_any_number_of_batches_err_by_one_rounding_each`, `so_few_rows_are_multiplied_at_once_that_the_error_stays_within_its_share`,
/// `everything_without_noise_is_plain_descent`, and the audits in `tests/`.
pub struct Learner<M: Model> {
    model: M,
    layout: Layout,
    theta: Vec<f32>,
    plan: Plan,
    loss: LossFunction,
    rows: Rows,
    projection: Option<Projection>,
    directions_of: Option<Scatter>,
    /// How rows are seen that are images of this shape.
    augmenting: Option<(Augmenting, [usize; 3])>,
    sampler: Sampler,
    public: Option<Sampler>,
    sanitiser: Sanitiser,
    optimiser: Optimiser,
    average: Option<Average>,
    entropy: Box<dyn Entropy + Send>,
    tuning: Tuning,
    /// Whether all labels are noisy ones.
    has_noisy_labels: bool,
    /// How much the loss of a row of each class counts; 1 for all where it is empty.
    class_weights: Vec<f32>,
    sums: ClippedSum,
    mean: Vec<f64>,
}

/// What a learner is made of.
pub struct Parts<M: Model> {
    /// The model, where it starts.
    pub model: M,
    /// What is promised, how a unit contributes, and where coins and noise come from.
    pub plan: Plan,
    /// What outputs are measured by.
    pub loss: LossFunction,
    /// What is learned from.
    pub rows: Rows,
    /// How θ moves.
    pub optimiser: Optimiser,
    /// Which iterates are averaged; the last one counts where none are.
    pub average: Option<Average>,
    /// What promises nothing.
    pub tuning: Tuning,
}

impl<M: Model> Learner<M> {
    /// The same where the loss of a row counts by its class. It does before its unit is clipped, so that no unit contributes more than without, and nothing that is promised changes.
    pub fn weighing(mut self, class_weights: Vec<f32>) -> Result<Self, LearnError> {
        if class_weights.is_empty() {
            return Ok(self);
        }
        if !matches!(self.plan.way(), Way::Mean | Way::Sum) || self.plan.has_noisy_labels() {
            return Err(LearnError::Data(
                "weights of classes are for units whose rows are averaged or summed".to_owned(),
            ));
        }
        let classes = match self.rows.targets() {
            Targets::Classes { classes, .. } => *classes as usize,
            Targets::Numbers { .. } => 2,
        };
        if class_weights.len() != classes || !class_weights.iter().all(|weight| (1e-3..=1e3).contains(weight)) {
            return Err(LearnError::Data(format!("{classes} classes have weights between 0.001 and 1000, one each")));
        }
        self.class_weights = class_weights;
        Ok(self)
    }

    /// Checks that everything fits, and stands at the start.
    pub fn new(parts: Parts<M>) -> Result<Self, LearnError> {
        Self::without(parts, &[])
    }

    /// The same, where the parameters of these names stay as they are: no gradient of them is formed, none counts for a unit's norm, and none gets noise.
    pub fn without(parts: Parts<M>, frozen: &[String]) -> Result<Self, LearnError> {
        let Parts { model, plan, loss, rows, optimiser, average, tuning } = parts;
        loss.check(rows.targets(), model.outputs())?;
        rows.check(plan.ladder())?;
        if let Way::Feature { private, padding, public } = plan.way() {
            check_padding(private, padding, rows.width())?;
            if !(public.is_finite() && *public >= 0.0) {
                return Err(LearnError::Data(format!(
                    "the public part counts {public}: expected a number of at least 0"
                )));
            }
        }
        let (layout, theta) = Layout::without(&model, frozen);
        let pool = match plan.draw() {
            Draw::Unit => Pool::Units(rows.units()),
            Draw::User { .. } => Pool::Users { ends: rows.user_ends() },
        };
        let sampler = Sampler::new(&plan, pool)?;
        let public = matches!(plan.way(), Way::Feature { .. } | Way::Label).then(|| sampler.clone());
        let sanitiser = Sanitiser::new(&plan, layout.len())?;
        let entropy: Box<dyn Entropy + Send> = match plan.step_noise() {
            NoiseSource::Secret { .. } => Box::new(Os),
            NoiseSource::Replay { seed } => Box::new(Replay::new(seed ^ 0xc0_1d)),
            NoiseSource::Off => Box::new(Replay::new(0xc0_1d)),
        };
        let (sums, mean) = (ClippedSum::new(layout.len(), plan.clip()), vec![0.0; layout.len()]);
        Ok(Self {
            model,
            layout,
            theta,
            plan,
            loss,
            rows,
            projection: None,
            directions_of: None,
            augmenting: None,
            sampler,
            public,
            sanitiser,
            optimiser,
            average,
            entropy,
            tuning,
            has_noisy_labels: false,
            class_weights: Vec::new(),
            sums,
            mean,
        })
    }

    /// The Hessians and gradients of all units at parameters that are released already, summed up and bounded as the mechanism has it, for its noise to be
    /// added, and how many of them had to be shortened. As private as the rows until then. For models of one layer and one output.
    pub fn sandwich(&self, sandwich: &Sandwich, theta: &[f32]) -> Result<Sums, LearnError> {
        let width = self.rows.width();
        let shapes: Vec<&[usize]> = self.layout.slots().iter().map(|slot| &slot.shape[..]).collect();
        let constant = match shapes[..] {
            [weight] if *weight == [width, 1] => None,
            [weight, bias] if *weight == [width, 1] && *bias == [1] => Some(1.0),
            _ => return Err(LearnError::Layer("intervals are for models of one layer and one output".to_owned())),
        };
        let model = self.layout.fill(self.model.clone(), theta)?;
        let (mut curvatures, mut gradient) = (Vec::new(), Vec::new());
        let wrong = |error: crate::statistics::Error| LearnError::Data(error.to_string());
        let mut sums = sandwich.start();
        for unit in 0..self.rows.units() as u32 {
            let own = self.rows.of_unit(unit);
            let weight = if *self.plan.way() == Way::Sum { 1.0 } else { 1.0 / own.len().max(1) as f32 };
            let (features, targets) = (self.rows.pick(own)?, self.rows.targets().pick(own));
            let Targets::Numbers { values, .. } = &targets else {
                return Err(LearnError::Layer("intervals are for losses of one output".to_owned()));
            };
            let z = tensor::floats(model.forward(&Inputs::of(features.clone(), width), &mut Tape::open())?);
            let (_, output_gradient) =
                self.loss.loss_and_gradient(Share::Whole, &z, &targets, &vec![weight; own.len()], 1);
            curvatures.clear();
            gradient.clear();
            gradient.resize(self.layout.len(), 0.0);
            for (((row, &z), &y), &output_gradient) in
                features.chunks_exact(width).zip(&z).zip(values).zip(&output_gradient)
            {
                let x: Vec<f64> = row.iter().copied().chain(constant).map(f64::from).collect();
                let second = f64::from(self.loss.second_derivative(z, y).unwrap_or(0.0));
                curvatures.extend(curvature(&x, second * f64::from(weight)));
                gradient.iter_mut().zip(&x).for_each(|(sum, x)| *sum += f64::from(output_gradient) * x);
            }
            sandwich.add(&mut sums, &curvatures, &gradient).map_err(wrong)?;
        }
        Ok(sums)
    }

    /// The same, where each row of a unit is an image of this shape and is seen several times in a step, all in the unit's bag: its gradient is their mean, and is clipped as
    /// one, so what a unit contributes is bounded as before.
    pub fn augmenting(self, how: Augmenting, image: [usize; 3]) -> Result<Self, LearnError> {
        how.check(image)?;
        if image.iter().product::<usize>() != self.rows.width() {
            let sides = image.map(|side| side.to_string()).join(" × ");
            return Err(LearnError::Data(format!("an image of {sides} is not {} numbers", self.rows.width())));
        }
        if !matches!(self.plan.way(), Way::Mean | Way::Truncated | Way::Sum) {
            return Err(LearnError::file(
                "images are seen several times where a unit's rows contribute as a whole, and not where parts of them are public or steps are local",
                "leave `augment` out, or protect events, elements or users with privacy.way = \"mean\"",
            ));
        }
        Ok(Self { augmenting: Some((how, image)), ..self })
    }

    /// Throws the coins of who is drawn by a seed from now on. A learner with secret noise is left as it is: its coins are secret too.
    pub fn draw_by(&mut self, seed: u64) {
        if !self.plan.step_noise().protects() {
            self.entropy = Box::new(Replay::new(seed));
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where each parameter that is learned stands.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        self.plan.steps() - self.sanitiser.left()
    }

    /// θ as it is now. Released under the plan's charge, like all iterates.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }

    /// What was learned: the average of the iterates where one is kept, else the last one.
    pub fn learned(&self) -> Vec<f32> {
        let average = self.average.as_ref().and_then(Average::value);
        average.map_or_else(|| self.theta.clone(), |average| average.iter().map(|&value| value as f32).collect())
    }

    /// The model with what was learned.
    pub fn model(&self) -> Result<M, LearnError> {
        self.layout.fill(self.model.clone(), &self.learned())
    }

    /// State for a checkpoint: θ, the optimiser, the average and how many steps were taken.
    pub fn state(&self) -> (&[f32], &Optimiser, Option<&Average>, u64) {
        (&self.theta, &self.optimiser, self.average.as_ref(), self.taken())
    }

    /// Goes on from a checkpoint.
    pub fn resume(
        &mut self,
        theta: Vec<f32>,
        optimiser: Optimiser,
        average: Option<Average>,
        taken: u64,
    ) -> Result<(), LearnError> {
        if theta.len() != self.layout.len() || taken > self.plan.steps() || optimiser.taken() != taken {
            return Err(LearnError::file(
                "the checkpoint is of another model or plan",
                "remove it, and void its entry if nothing of it has left: then the same training begins anew",
            ));
        }
        self.optimiser = optimiser.validated(theta.len())?;
        (self.theta, self.average) = (theta, average);
        self.model = self.layout.fill(self.model.clone(), &self.theta)?;
        self.sanitiser.resume(taken);
        Ok(())
    }

    /// One step. What it returns was seen on the way and is as private as the rows: it is for the owner's eyes, and no part of the release.
    ///
    /// A step that is refused draws no noise and moves nothing.
    pub fn step(&mut self) -> Result<Seen, LearnError> {
        if self.plan.has_noisy_labels() != self.has_noisy_labels {
            return Err(LearnError::Data(
                "the plan is for noisy labels, or the labels are noisy and it is not".to_owned(),
            ));
        }
        let drawn = self.sampler.draw(&mut *self.entropy);
        self.sums.clear();
        let mut sums = std::mem::replace(&mut self.sums, ClippedSum::new(0, self.plan.clip()));
        let seen = self.add_drawn(&drawn, &mut sums);
        self.sums = sums;
        let seen = seen?;
        let public = self.public_gradient()?;
        self.sanitiser.sanitise(&self.sums, &mut self.mean)?;
        if let Some(public) = public {
            self.mean.iter_mut().zip(&public).for_each(|(mean, public)| *mean += public);
        }
        let deviation = match self.plan.step_noise() {
            NoiseSource::Off => 0.0,
            NoiseSource::Secret { .. } | NoiseSource::Replay { .. } => {
                self.plan.noise() * self.plan.clip().norm / self.plan.divisor()
            }
        };
        self.optimiser.step(&mut self.theta, &self.mean, deviation)?;
        if let Some(average) = &mut self.average {
            average.take(self.optimiser.taken(), &self.theta)?;
        }
        self.model = self.layout.fill(self.model.clone(), &self.theta)?;
        Ok(seen)
    }

    /// The clipped contributions of the units that were drawn.
    fn add_drawn(&mut self, drawn: &[u32], sums: &mut ClippedSum) -> Result<Seen, LearnError> {
        if let Way::Local { steps, size } = *self.plan.way() {
            return self.add_local(drawn, steps, size, sums);
        }
        let coins = self.entropy.bits(64);
        let (mut seen, mut start) = (Seen::default(), 0);
        let block = self.block();
        while start < drawn.len() {
            let (mut end, mut rows) = (start, 0);
            while end < drawn.len() {
                let next = self.rows_of_model(drawn[end]);
                if end > start && rows + next > block {
                    break;
                }
                rows += next;
                end += 1;
            }
            // A unit with more rows than a block has blocks of its own, so that their number follows from it alone.
            let whole = rows.div_ceil(block).max(1) * block;
            let part = self.add_batch(&drawn[start..end], drawn.len(), whole, coins ^ start as u64, sums)?;
            seen.add(&part);
            start = end;
        }
        Ok(seen)
    }

    /// How many rows go through the model for a unit.
    fn rows_of_model(&self, unit: u32) -> usize {
        let padded = if matches!(self.plan.way(), Way::Feature { .. }) { 2 } else { 1 };
        self.rows.of_unit(unit).len() * padded * self.augmenting.map_or(1, |(how, _)| how.copies)
    }

    /// How many rows go through the model at once, always: what comes out for a row may differ in its last bits with that number, and so it must not follow from who
    /// was drawn. As many as one step has, by what was declared, where each unit is one row.
    fn block(&self) -> usize {
        let expected = self.plan.divisor();
        let spread = if self.plan.places().is_some() { 0.0 } else { 3.0 * expected.sqrt() };
        let padded = if matches!(self.plan.way(), Way::Feature { .. }) { 2.0 } else { 1.0 };
        let rows = ((expected + spread) * padded).min(1e9) as usize;
        // How many rows units have is private, where they have several; few blocks are faster than many.
        let least = if matches!(self.rows.kind(), Kind::Element | Kind::User) { 512 } else { 64 };
        rows.next_multiple_of(64).clamp(least, self.tuning.rows_at_once.max(least))
    }

    /// The clipped contributions of some units, of whose rows and others that are 0 so many go through the model in `whole`.
    fn add_batch(
        &mut self,
        units: &[u32],
        all: usize,
        whole: usize,
        coins: u64,
        sums: &mut ClippedSum,
    ) -> Result<Seen, LearnError> {
        let (mut picked, mut weights, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for &unit in units {
            let own = self.rows.of_unit(unit);
            let weight = if *self.plan.way() == Way::Sum { 1.0 } else { 1.0 / own.len() as f32 };
            picked.extend_from_slice(own);
            weights.extend(std::iter::repeat_n(weight, own.len()));
            sizes.push(own.len());
        }
        if !self.class_weights.is_empty() {
            let targets = self.rows.targets();
            weights
                .iter_mut()
                .zip(&picked)
                .for_each(|(weight, &row)| *weight *= self.class_weights[targets.class(row)]);
        }
        let mut features = self.rows.pick(&picked)?;
        if let Some((how, image)) = self.augmenting {
            let (mut seen, copies) = (Vec::with_capacity(features.len() * how.copies), how.copies);
            for row in features.chunks_exact(self.rows.width()) {
                (0..copies).for_each(|_| how.take(image, row, &mut *self.entropy, &mut seen));
            }
            features = seen;
            picked = picked.iter().flat_map(|&row| std::iter::repeat_n(row, copies)).collect();
            let each = |&weight: &f32| std::iter::repeat_n(weight / copies as f32, copies);
            weights = weights.iter().flat_map(each).collect();
            sizes.iter_mut().for_each(|size| *size *= copies);
        }
        let share = if *self.plan.way() == Way::Label { Share::OfLabel } else { Share::Whole };
        if let Way::Feature { private, padding, .. } = self.plan.way() {
            // Each row of a bag is followed by itself with its private features padded, which counts against it.
            let width = self.rows.width();
            let (mut both, mut twice, mut signed) = (Vec::new(), Vec::new(), Vec::new());
            for ((row, &picked), &weight) in features.chunks_exact(width).zip(&picked).zip(&weights) {
                both.extend_from_slice(row);
                both.extend(pad(row, private, padding, &mut *self.entropy));
                twice.extend([picked, picked]);
                signed.extend([weight, -weight]);
            }
            (features, picked, weights) = (both, twice, signed);
            for size in &mut sizes {
                *size *= 2;
            }
        }
        let step = Step {
            share: units.len() as f64 / all as f64,
            truncated: (*self.plan.way() == Way::Truncated).then(|| self.optimiser.next_size()),
        };
        let (rows, empty) = (picked.len(), whole.saturating_sub(picked.len()));
        features.resize((rows + empty) * self.rows.width(), 0.0);
        weights.resize(rows + empty, 0.0);
        sizes.resize(sizes.len() + empty, 1);
        let batch = Batch {
            inputs: Inputs::of(features, self.rows.width()),
            targets: &self.rows.targets().pick(&picked).padded(empty),
            weights: &weights,
            bags: &Bags::of_sizes(sizes),
            share,
            coins: Some(Replay::new(coins)),
        };
        sums.add_bags(&self.model, &self.layout, self.loss, batch, step)
    }

    /// The gradient of what is public, of a draw of its own: on average the public part of the same loss whose private part is clipped, one weight to a unit.
    fn public_gradient(&mut self) -> Result<Option<Vec<f64>>, LearnError> {
        let Some(sampler) = &mut self.public else { return Ok(None) };
        let drawn = sampler.draw(&mut *self.entropy);
        // As in the private part, each unit counts once, and each of its rows for a share of that.
        let (mut rows, mut weights) = (Vec::new(), Vec::new());
        for &unit in &drawn {
            let own = self.rows.of_unit(unit);
            rows.extend_from_slice(own);
            weights.extend(std::iter::repeat_n(1.0 / own.len() as f32, own.len()));
        }
        let mut total = Total::new(self.layout.len());
        if rows.is_empty() {
            return Ok(Some(total.into_values()));
        }
        let mut features = self.rows.pick(&rows)?;
        let (share, counts) = match self.plan.way() {
            Way::Feature { private, padding, public } => {
                let padded = features
                    .chunks_exact(self.rows.width())
                    .flat_map(|row| pad(row, private, padding, &mut *self.entropy));
                features = padded.collect();
                (Share::Whole, *public)
            }
            _ => (Share::WithoutLabel, 1.0),
        };
        let batch = Batch {
            inputs: Inputs::of(features, self.rows.width()),
            targets: &self.rows.targets().pick(&rows),
            weights: &weights,
            bags: &Bags::single(rows.len()),
            share,
            coins: Some(Replay::new(self.entropy.bits(64))),
        };
        add_plain(&self.model, &self.layout, self.loss, batch, &mut total)?;
        let mut sum = total.into_values();
        // Who was drawn here is public, and how many there are, so these may divide. The private part has the declared number for its divisor, and where that is
        // another one, both parts are scaled alike.
        let expected = self.plan.rate().to_f64() * self.rows.units() as f64;
        let scale = counts * expected / self.plan.divisor() / drawn.len() as f64;
        for value in &mut sum {
            *value *= scale;
        }
        Ok(Some(sum))
    }

    /// Local steps on each unit's own rows, one unit after the other.
    fn add_local(&mut self, drawn: &[u32], steps: u32, size: f64, sums: &mut ClippedSum) -> Result<Seen, LearnError> {
        let mut seen = Seen::default();
        for &unit in drawn {
            let rows = self.rows.of_unit(unit).to_vec();
            let (features, targets) = (self.rows.pick(&rows)?, self.rows.targets().pick(&rows));
            let weights = vec![1.0 / rows.len() as f32; rows.len()];
            let mut model = self.model.clone();
            let mut theta = self.theta.clone();
            for _ in 0..steps {
                let mut gradient = Total::new(self.layout.len());
                let batch = Batch {
                    inputs: Inputs::of(features.clone(), self.rows.width()),
                    targets: &targets,
                    weights: &weights,
                    bags: &Bags::of_sizes([rows.len()]),
                    share: Share::Whole,
                    coins: Some(Replay::new(self.entropy.bits(64))),
                };
                let step = add_plain(&model, &self.layout, self.loss, batch, &mut gradient)?;
                seen.add(&Seen { bags: 0, ..step });
                theta
                    .iter_mut()
                    .zip(gradient.values())
                    .for_each(|(theta, gradient)| *theta -= (size * gradient) as f32);
                model = self.layout.fill(model, &theta)?;
            }
            // What was gone, over the size of a step, is what a gradient would be: θ₀ − θ₊ and not the other way round (E10).
            let moved = |(from, to): (&f32, &f32)| (f64::from(*from) - f64::from(*to)) / size;
            let moves: Vec<f64> = self.theta.iter().zip(&theta).map(moved).collect();
            // Who went out of all bounds contributes nothing.
            let counts = sums.add(&moves)?;
            seen.bags += 1;
            seen.emptied += usize::from(!counts);
            seen.clipped += usize::from(counts && norm_up(&moves) > sums.clip().norm);
        }
        Ok(seen)
    }
}

/// A row with its private features padded, by draws of its own.
fn pad(row: &[f32], private: &[usize], padding: &Padding, entropy: &mut dyn Entropy) -> Vec<f32> {
    let mut padded = row.to_vec();
    for (i, &column) in private.iter().enumerate() {
        padded[column] = match padding {
            Padding::Mean(mean) => mean[i],
            Padding::Gaussian { mean, deviation } => {
                let uniform = (entropy.bits(53) as f64 + 0.5) * 2f64.powi(-53);
                mean[i] + deviation[i] * normal::quantile(uniform) as f32
            }
        };
    }
    padded
}

fn check_padding(private: &[usize], padding: &Padding, width: usize) -> Result<(), LearnError> {
    let (mean, deviation) = match padding {
        Padding::Mean(mean) => (mean, mean),
        Padding::Gaussian { mean, deviation } => (mean, deviation),
    };
    // Where nothing could be in their place, every unit would contribute nothing, without a word.
    if mean.iter().chain(deviation).any(|number| !number.is_finite()) {
        return Err(LearnError::Data("padding is of numbers, and one of them is infinite or none".to_owned()));
    }
    let fits = mean.len() == private.len() && deviation.len() == private.len();
    if !fits || private.is_empty() || private.iter().any(|&column| column >= width) {
        let what = format!("{} private features of {width}, and padding for another number of them", private.len());
        return Err(LearnError::Data(what));
    }
    Ok(())
}

/// What a model makes of rows, row by row, projected first where it was learned so.
pub fn predict<M: Model>(
    model: &M,
    rows: &Store,
    projection: Option<&Projection>,
    tuning: Tuning,
) -> Result<Vec<f32>, LearnError> {
    let mut outputs = Vec::with_capacity(rows.len() * model.outputs());
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    for part in all.chunks(tuning.rows_at_once.max(1)) {
        let numbers = rows.pick(part)?;
        let inputs = match projection {
            Some(projection) => Inputs::of(projection.apply(&numbers)?, projection.kept()),
            None => Inputs::of(numbers, rows.width()),
        };
        outputs.extend(tensor::floats(model.forward(&inputs, &mut Tape::open())?));
    }
    Ok(outputs)
}

/// The mean loss of rows and, for classes, the accuracy.
pub fn evaluate(loss: LossFunction, outputs: &[f32], targets: &Targets, width: usize) -> (f64, Option<f64>) {
    let rows = targets.len();
    let (losses, _) = loss.loss_and_gradient(Share::Whole, outputs, targets, &vec![1.0; rows], width);
    let mean = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / rows.max(1) as f64;
    let most = |z: &[f32]| (0..z.len()).fold(0, |best, i| if z[i] > z[best] { i } else { best });
    let right = match targets {
        Targets::Classes { labels, .. } => {
            Some(outputs.chunks_exact(width).zip(labels).filter(|(z, label)| most(z) == **label as usize).count())
        }
        Targets::Numbers { values, .. } if loss == LossFunction::Logistic => {
            Some(outputs.iter().zip(values).filter(|(z, y)| (**z > 0.0) == (**y > 0.5)).count())
        }
        Targets::Numbers { .. } => None,
    };
    (mean, right.map(|right| right as f64 / rows.max(1) as f64))
}
