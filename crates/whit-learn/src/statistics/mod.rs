//! How sure one may be of a generalised linear model's parameters: standard errors and intervals for averaged descent.
//!
//! The averaged iterate θ̄ errs for three reasons, which add up in variance:
//!
//! | share | whence | variance |
//! |---|---|---|
//! | data | the n units are a sample of a population | `H⁻¹·Σ·H⁻¹ / n` |
//! | sampling | each step draws m of the bags on average, each with probability q | `(1 − q)/(m·K) · H⁻¹·S·H⁻¹` |
//! | noise | each step's mean gradient has noise of deviation s | `s²/K · H⁻²` |
//!
//! with H the Hessian of the mean loss, Σ the covariance of a unit's gradient, S the second moment of a drawn bag's
//! gradient (Σ itself where the bag is the unit), and K the number of averaged steps. This is Theorem 1 and
//! Proposition 3 of Element-Level DP with `γ = K/n` and `s = ρσ/m`, and two things set right: the bracket in
//! Proposition 3 closes before the second `H⁻¹`, and q need not vanish: what is drawn with probability q has variance
//! q(1 − q), so that full batches (q = 1) have no sampling share at all.
//!
//! For a finite number of steps the last two are computed and not taken to the limit: see [`Spread::of`].
//!
//! **Everything that enters an interval must be private, since the interval is released.** θ̄, s, K, q and the
//! schedule are. H and Σ are not, unless they are known, or released: [`Sandwich`] does that. The number of units is
//! known under replacement, and under add-remove a noisy count serves.
//!
//! What must hold for an interval to mean what it says:
//! - the optimiser is [`Rule::PLAIN`](crate::optimise::Rule::PLAIN), and θ̄ the uniform average of its iterates;
//! - near the optimum no gradient is clipped and no iterate is projected. Clipping must stay on (E11); where it still
//!   bites at the end, the interval is about the point where the mean *clipped* gradient vanishes, and H must be the
//!   derivative of that. [`Sandwich`] counts the units that it shortens, and [`Spread::check`] refuses where they are too many. How far that point is from where the loss is
//!   least, no count shows: [`Moments::bitten`] says where it may be another one at all;
//! - step sizes are `α0·k^-β` with 1/2 < β < 1. Others leave a bias of the order of α, in a model that is no
//!   parabola: [`Spread::asymptotic`] says no;
//! - the start is forgotten: [`Spread::start`] says how much of it is left, and [`Spread::check`] refuses where that is more than a standard error;
//! - H and Σ are near enough: their own noise vanishes as n grows, but is not in the interval. Where H's noise is not
//!   small, it is refused; where Σ's is not, [`Spread::unsure`] says so, and [`Spread::intervals`] are wider for it.

mod sandwich;

pub use sandwich::{Moments, Sandwich, Sums, curvature};

use crate::optimise::Schedule;
use crate::symmetric::{self, Eigen};
use whit_account::normal::upper_quantile;

/// What has no interval.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A number outside of its range.
    #[error("the {name} is {value}: expected {range}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What would do.
        range: &'static str,
    },
    /// Vectors or matrices that do not fit together.
    #[error("{given} {what} were given: expected {expected}")]
    Length {
        /// Of what.
        what: &'static str,
        /// How many came.
        given: usize,
        /// How many should have come.
        expected: usize,
    },
    /// A Hessian that is not clearly curved in every direction, so that its inverse would be noise.
    #[error(
        "the Hessian's least curvature is {least:.3e}, and the noise in it is of norm {noise:.3e}: some parameters are open"
    )]
    Flat {
        /// The least eigenvalue.
        least: f64,
        /// The norm of the noise in the Hessian.
        noise: f64,
    },
    /// Step sizes with which the iteration leaves the optimum.
    #[error("with these step sizes and the largest curvature of {most:.3e} the iteration does not settle")]
    Unstable {
        /// The largest eigenvalue.
        most: f64,
    },
    /// So many units were shortened that parameters are about something else.
    #[error(
        "about {:.1} % of units (± {:.1}) are beyond the clip norm or the curvature's bound and were shortened, so the parameters are not those that the loss is least at",
        100.0 * share.max(0.0), 200.0 * noise
    )]
    Clipped {
        /// The share of units, as it was released.
        share: f64,
        /// The deviation of the noise in it.
        noise: f64,
    },
    /// Parameters that are still far from where the steps lead.
    #[error("{moving} of {parameters} parameters are more than one standard error from where their steps lead")]
    Moving {
        /// How many of them are.
        moving: usize,
        /// How many there are.
        parameters: usize,
    },
    /// A matrix that does not come apart.
    #[error(transparent)]
    Symmetric(#[from] symmetric::Error),
    /// A released sum that does not fit.
    #[error(transparent)]
    Scatter(#[from] crate::scatter::Error),
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Parameter { .. } | Self::Length { .. } => {
                "describe the run as it was: these numbers come from its plan"
            }
            Self::Flat { .. } => {
                "spend more on the Hessian, drop columns that say the same, or add a ridge that the model knows of"
            }
            Self::Clipped { .. } => {
                "clip at a larger norm, give intervals.curvature room for the longest row, or scale the features"
            }
            Self::Moving { .. } => "take more or longer steps, or let the average begin later",
            Self::Unstable { .. } => "use a smaller first step size, below 2 over the largest curvature",
            Self::Symmetric(error) => error.hint(),
            Self::Scatter(error) => error.hint(),
        }
    }
}

/// A training run, as its plan states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AveragedDescent {
    /// The steps altogether.
    pub steps: u64,
    /// The first step after which the iterate counts in the average.
    pub from: u64,
    /// The step sizes.
    pub schedule: Schedule,
    /// The probability with which a bag is drawn: q.
    pub rate: f64,
    /// The expected number of bags in a step, by which sums are divided: m.
    pub expected: f64,
    /// The deviation of the noise in each coordinate of the mean gradient: s.
    pub noise: f64,
}

impl AveragedDescent {
    fn validated(&self) -> Result<(), Error> {
        let check = |name, value: f64, usable: bool, range| {
            if usable && value.is_finite() { Ok(()) } else { Err(Error::Parameter { name, value, range }) }
        };
        let averaged = (1..=self.steps).contains(&self.from);
        check("first averaged step", self.from as f64, averaged, "1 to the number of steps")?;
        check("rate", self.rate, self.rate > 0.0 && self.rate <= 1.0, "more than 0, at most 1")?;
        check("expected number of bags", self.expected, self.expected > 0.0, "more than 0")?;
        check("noise", self.noise, self.noise >= 0.0, "at least 0")
    }

    /// What becomes of one unit of steady noise, and of the start, along a direction of this curvature.
    ///
    /// Along an eigenvector of the Hessian `e_j = (1 − α_j·λ)·e_{j−1} − α_j·z_j`. So z_i enters the average of
    /// e_from, …, e_K with the factor `α_i·T_i/(K − from + 1)`, where `T_i = Σ_{j ≥ max(i, from)} Π_{i<l≤j} (1 −
    /// α_l·λ)`, and e_0 with `T_0` for `α_i·T_i`. From behind, `T_i = [i ≥ from] + (1 − α_{i+1}·λ)·T_{i+1}`. As K
    /// grows the sum of squares tends to `1/(λ²·K)`.
    fn gain(&self, curvature: f64) -> (f64, f64) {
        let (mut squares, mut tail) = (0.0, 0.0);
        for i in (1..=self.steps).rev() {
            // `tail` is (1 − α_{i+1}·λ)·T_{i+1} here, and 0 after the last step.
            let weight = tail + f64::from(u8::from(i >= self.from));
            let alpha = self.schedule.at(i);
            squares += (alpha * weight).powi(2);
            tail = (1.0 - alpha * curvature) * weight;
        }
        let averaged = (self.steps - self.from + 1) as f64;
        (squares / (averaged * averaged), tail / averaged)
    }
}

/// The standard error of one parameter, by share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardError {
    /// From the units being a sample.
    pub data: f64,
    /// From the bags drawn in each step.
    pub sampling: f64,
    /// From the noise that protects.
    pub noise: f64,
}

impl StandardError {
    /// All shares together.
    pub fn total(&self) -> f64 {
        self.data.hypot(self.sampling).hypot(self.noise)
    }
}

/// A range of values for one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How far an averaged iterate may be from the population's parameters.
///
/// ```
/// use whit_learn::optimise::Schedule;
/// use whit_learn::statistics::{Moments, AveragedDescent, Spread};
/// let schedule = Schedule::Power { first: 1.0, decay: 0.6 };
/// let run = AveragedDescent { steps: 100_000, from: 1000, schedule, rate: 0.01, expected: 100.0, noise: 0.5 };
/// let known = Moments::known(vec![2.0], vec![4.0]);
/// let spread = Spread::of(&known, 10_000.0, &run)?;
/// assert!((spread.errors[0].data - 0.01).abs() < 1e-12); // √4 / 2 / √10,000
/// assert!((spread.errors[0].noise / (0.5 / 2.0 / 99_000_f64.sqrt()) - 1.0).abs() < 0.01);
/// assert!(spread.asymptotic && spread.start < 1e-6);
/// # Ok::<(), whit_learn::statistics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The standard error of each parameter.
    pub errors: Vec<StandardError>,
    /// How much of the distance to the start is still in the average, along the flattest direction: should be far
    /// below the standard errors.
    pub start: f64,
    /// The deviation of each parameter's variance by the noise in Σ, over that variance: an interval of one that is far below 1 is as wide as it should be.
    pub unsure: Vec<f64>,
    /// Whether the step sizes are those of Theorem 1.
    pub asymptotic: bool,
    basis: Eigen,
    left: Vec<f64>,
    /// |H⁻¹ⱼ| for each parameter: how far a mean gradient of length 1 moves it, at most.
    reach: Vec<f64>,
}

/// A clipped share beyond this is refused, whatever the standard errors are: of gradients that are so often too long it is not known how much too long they are.
const MATERIAL: f64 = 0.05;

impl Spread {
    /// The standard errors of a run over `units` independent units, from private or known moments.
    ///
    /// The sampling and noise shares follow the linear recursion along each eigenvector of H step by step, in place
    /// of its limit `1/(λ²K)`: flat directions that are still on their way have less noise than the limit and more of
    /// the start. Between eigenvectors the sampling share takes the geometric mean of the two gains.
    pub fn of(moments: &Moments, units: f64, run: &AveragedDescent) -> Result<Self, Error> {
        run.validated()?;
        let schedule = run.schedule.validated();
        schedule.map_err(|_| Error::Parameter {
            name: "step size",
            value: run.schedule.at(1),
            range: "a usable schedule",
        })?;
        if !(units.is_finite() && units >= 1.0) {
            return Err(Error::Parameter { name: "number of units", value: units, range: "at least 1" });
        }
        let d = moments.hessian.len().isqrt();
        let hessian = Eigen::of(&moments.hessian, d)?;
        let (most, least) = (hessian.values[0], hessian.values[d - 1]);
        // Beyond half of the least eigenvalue, the noise in H could double a standard error or worse.
        if least <= 2.0 * moments.hessian_noise.max(0.0) || least <= most * 1e-12 {
            return Err(Error::Flat { least, noise: moments.hessian_noise });
        }
        let (gains, left): (Vec<f64>, Vec<f64>) = hessian.values.iter().map(|&value| run.gain(value)).unzip();
        if !gains.iter().chain(&left).all(|gain| gain.is_finite()) || left.iter().any(|left| left.abs() >= 1.0) {
            return Err(Error::Unstable { most });
        }
        let inverse: Vec<f64> = hessian.values.iter().map(|value| 1.0 / value).collect();
        let roots: Vec<f64> = gains.iter().map(|gain| gain.sqrt()).collect();
        let per_step = (1.0 - run.rate) / run.expected;
        let drawn = moments.drawn.as_ref().unwrap_or(&moments.gradient);
        let data = shares(&hessian, &inverse, &positive(&moments.gradient, d)?, 1.0 / units);
        let sampling = shares(&hessian, &roots, &positive(drawn, d)?, per_step);
        let identity: Vec<f64> = (0..d * d).map(|at| f64::from(u8::from(at / d == at % d))).collect();
        let noise = shares(&hessian, &roots, &identity, run.noise * run.noise);
        let errors = data.into_iter().zip(sampling).zip(noise);
        let errors: Vec<StandardError> =
            errors.map(|((data, sampling), noise)| StandardError { data, sampling, noise }).collect();
        // For v a row of H⁻¹, vᵀZv has deviation |v|²·deviation: Z in Frobenius norm is Gaussian, and vvᵀ has norm |v|².
        let rows = shares(&hessian, &inverse, &identity, 1.0);
        let unsure = |(row, error): (f64, &StandardError)| {
            moments.gradient_noise * row * row / units / error.total().powi(2).max(f64::MIN_POSITIVE)
        };
        let unsure = rows.iter().copied().zip(&errors).map(unsure).collect();
        let start = left.iter().fold(0.0_f64, |most, left| most.max(left.abs()));
        let asymptotic = matches!(run.schedule, Schedule::Power { decay, .. } if decay > 0.5 && decay < 1.0);
        Ok(Self { errors, start, unsure, asymptotic, basis: hessian, left, reach: rows })
    }

    /// Ranges around the average that cover the population's parameters with this probability each, not all at once.
    ///
    /// A variance that is known up to a relative deviation u, by the noise in Σ, is one of 2/u² degrees of freedom, so that Student's quantile stands for the normal one: with
    /// u = 0.4 the normal one would cover 92 % instead of 95 %. What the noise in H does to widths is not in it.
    pub fn intervals(&self, average: &[f64], confidence: f64) -> Result<Vec<Interval>, Error> {
        self.fits(average)?;
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::Parameter { name: "confidence", value: confidence, range: "between 0 and 1" });
        }
        let z = upper_quantile((1.0 - confidence) / 2.0);
        let around = |((theta, error), &unsure): ((&f64, &StandardError), &f64)| {
            let half = student(z, unsure.min(1.0)) * error.total();
            Interval { low: theta - half, high: theta + half }
        };
        Ok(average.iter().zip(&self.errors).zip(&self.unsure).map(around).collect())
    }

    /// Refuses where the theorem is about something else than this run: where units were shortened in numbers that matter, or parameters are still on their way.
    ///
    /// Taken that a share s of units has gradients beyond the clip norm C by half of C on average, the mean gradient is off by at most s·C/2, and parameter j by at most
    /// s·C/2·|H⁻¹ⱼ|. That is an assumption, which heavy tails do not keep; the interval is of the point where the mean clipped gradient vanishes whether it holds or not. Half a standard error of that lets a 95 % interval cover 92 %, which is where it is refused; and so is every share of more than 5 %, of
    /// which it is not known by how much they are beyond. As the share is known up to noise, it is refused where it is too large though three deviations are taken off
    /// it, so that a clip which never bites costs an interval once in 700 runs. Otherwise what is returned is how many parameters may be off by so much, if the share is
    /// two deviations from nothing at all.
    pub fn check(&self, moments: &Moments, clip: f64, start: &[f64], average: &[f64]) -> Result<usize, Error> {
        let Moments { shortened: share, shortened_noise: noise, .. } = *moments;
        let off = |share: f64| {
            let moved = self.reach.iter().zip(&self.errors);
            moved.filter(|(reach, error)| share * clip / 2.0 * **reach > error.total() / 2.0).count()
        };
        let least = share - 3.0 * noise;
        if least > MATERIAL || off(least) > 0 {
            return Err(Error::Clipped { share, noise });
        }
        let pull = self.pull(start, average)?;
        let moving = pull.iter().zip(&self.errors).filter(|(pull, error)| pull.abs() > error.total()).count();
        if moving > 0 {
            return Err(Error::Moving { moving, parameters: average.len() });
        }
        Ok(if moments.bitten() { off(share) } else { 0 })
    }

    /// How far the start still pulls each parameter, to first order: subtract it, or run longer where it is not far
    /// below the standard errors.
    pub fn pull(&self, start: &[f64], average: &[f64]) -> Result<Vec<f64>, Error> {
        self.fits(start)?;
        self.fits(average)?;
        let mut pull = vec![0.0; average.len()];
        for (k, left) in self.left.iter().enumerate() {
            let vector = self.basis.vector(k);
            // average = optimum + left·(start − optimum), so start − average is 1 − left of the way.
            let along: f64 = vector.iter().zip(start.iter().zip(average)).map(|(v, (a, b))| v * (a - b)).sum();
            for (pull, v) in pull.iter_mut().zip(vector) {
                *pull += v * along * left / (1.0 - left);
            }
        }
        Ok(pull)
    }

    fn fits(&self, parameters: &[f64]) -> Result<(), Error> {
        let (given, expected) = (parameters.len(), self.errors.len());
        if given == expected { Ok(()) } else { Err(Error::Length { what: "parameters", given, expected }) }
    }
}

/// Student's quantile for the normal one, `z`, and a variance of relative deviation `unsure`: with ν = 2/unsure² degrees of freedom, to the second order in 1/ν. (Cornish and
/// Fisher 1937; Satterthwaite 1946.)
fn student(z: f64, unsure: f64) -> f64 {
    let per_degree = unsure * unsure / 2.0;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first * per_degree + second * per_degree * per_degree
}

/// The matrix less its negative part: noise can make a covariance negative, and a variance is not.
fn positive(matrix: &[f64], d: usize) -> Result<Vec<f64>, Error> {
    Ok(Eigen::of(matrix, d)?.map(|value| value.max(0.0)))
}

/// The roots of the diagonal of `Q·D·Qᵀ·inner·Q·D·Qᵀ·scale`, for the eigenvectors Q and the given diagonal D.
fn shares(basis: &Eigen, diagonal: &[f64], inner: &[f64], scale: f64) -> Vec<f64> {
    let d = diagonal.len();
    let outer = Eigen { values: diagonal.to_vec(), vectors: basis.vectors.clone() }.map(|value| value);
    let variance = |row: &[f64]| {
        let through = |(x, inner): (&f64, &[f64])| x * inner.iter().zip(row).map(|(m, y)| m * y).sum::<f64>();
        row.iter().zip(inner.chunks_exact(d)).map(through).sum::<f64>()
    };
    outer.chunks_exact(d).map(|row| (variance(row).max(0.0) * scale).sqrt()).collect()
}

#[cfg(test)]
mod tests;
