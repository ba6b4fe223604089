//! The two matrices around which an interval is built, released.

use super::Error;
use crate::scatter::{Scatter, Sum};
use whit_core::mechanism::SanitiseError;
use whit_core::{Accuracy, Cost, Ladder, Mechanism, Rung, Sealed};
use whit_noise::round::norm_up;
use whit_noise::{Entropy, Ratio};

/// What an interval needs to know of the loss near its optimum. All of it must be private or known already.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// The Hessian H of the mean loss over bags, rows one after the other.
    pub hessian: Vec<f64>,
    /// The covariance Σ of one independent unit's gradient G, scaled so that the mean loss has the mean of the G for
    /// its gradient. Where a unit is one bag, that is the bag's gradient; where n users hold N bags, it is n/N times
    /// the sum of the user's.
    pub gradient: Vec<f64>,
    /// The second moment S of a drawn bag's gradient, where that is not Σ.
    pub drawn: Option<Vec<f64>>,
    /// The spectral norm of the noise in H; 0 where H is known.
    pub hessian_noise: f64,
    /// The deviation of the noise in an entry of Σ on its diagonal; 0 where Σ is known.
    pub gradient_noise: f64,
    /// The share of units whose gradient or curvature is beyond its bound and was shortened.
    pub shortened: f64,
    /// The deviation of the noise in that share; 0 where it is known.
    pub shortened_noise: f64,
}

impl Moments {
    /// Moments that somebody knows without looking at the data, or has released elsewhere with noise that does not
    /// matter.
    pub fn known(hessian: Vec<f64>, gradient: Vec<f64>) -> Self {
        let (hessian_noise, gradient_noise, shortened, shortened_noise) = (0.0, 0.0, 0.0, 0.0);
        Self { hessian, gradient, drawn: None, hessian_noise, gradient_noise, shortened, shortened_noise }
    }

    /// Whether more units were shortened than the noise in their number explains: two deviations of it. Parameters are then about another point than where the loss is
    /// least.
    pub fn bitten(&self) -> bool {
        self.shortened > 2.0 * self.shortened_noise
    }
}

/// The rows whose outer product is `weight·x·xᵀ`, the Hessian of a generalised linear model on one row: `√weight·x`.
///
/// The weight is the variance function at the row's mean: 1 for linear, p(1 − p) for logistic, the mean for Poisson
/// models, times the row's weight in its bag. What is negative or none counts as 0. A bag's Hessian is that of all
/// such rows together. A softmax model has one row a class, `√p_c·(e_c − p) ⊗ x`; any other positive matrix has
/// [`Eigen::factor`](crate::symmetric::Eigen::factor).
///
/// ```
/// use whit_learn::statistics::curvature;
/// assert_eq!(curvature(&[2.0, -4.0], 0.25), [1.0, -2.0]);
/// ```
pub fn curvature(x: &[f64], weight: f64) -> Vec<f64> {
    let root = weight.max(0.0).sqrt(); // `max` turns NaN into 0
    x.iter().map(|x| root * x).collect()
}

/// Releases the Hessian and the second moment of gradients at parameters that are released already, and how many units were beyond one of the two bounds.
///
/// # Neighbours
/// Data sets that differ in one unit of the rung. A unit gives rows F with `FᵀF` its Hessian, and its gradient g.
/// With `tr FᵀF ≤ R²` and `|g| ≤ C`, both enforced, it moves the one sum by at most R² and the other by C² under
/// add-remove, and by √2 as much under replace, each in the triangle with off-diagonal entries times √2. The count of units that had to be shortened for it moves by
/// at most 1.
///
/// # Claim
/// That of three runs of [`Scatter`], one after the other: `Cost::Series` of three `Cost::Gaussian`, of which the count's has twice the noise. Together they are no
/// dearer than one Gaussian vector of both triangles and the count, each over its own bound.
///
/// # Why
/// Both sums are of outer products, so both are `Scatter`s, and so is the count: the sum of the squares of numbers that are 0 or 1. The parameters at which they are computed are
/// released before. Gaussian costs compose exactly: distances add in squares, as they do in one long vector.
///
/// # Tried by
/// `scatter`'s tests; here `intervals_cover_as_often_as_they_say`, which uses what this releases,
/// `a_sandwich_restores_what_went_in`, `a_sandwich_is_its_three_parts` and `a_clip_that_bites_leaves_no_intervals`.
#[derive(Debug, Clone)]
pub struct Sandwich {
    /// Sums Hessians.
    pub hessian: Scatter,
    /// Sums outer products of gradients.
    pub gradient: Scatter,
    /// Counts the units that are beyond one of the bounds.
    pub shortened: Scatter,
    /// The bounds: of the root of a Hessian's trace, and of a gradient's length.
    bounds: [f64; 2],
}

/// What units give, summed up. As private as they are.
#[derive(Clone)]
pub struct Sums {
    /// Of Hessians.
    pub hessian: Sum,
    /// Of gradients.
    pub gradient: Sum,
    /// Of ones for units that were shortened.
    pub shortened: Sum,
}

impl Sandwich {
    /// For `dimension` parameters, a unit's Hessian of trace at most `curvature²` and gradient of length at most
    /// `clip`, and noise of `noise` times these squares in each; twice as much in the count of those beyond.
    ///
    /// The clip should be the one of the training: then it bites here exactly where it bit there.
    pub fn new(dimension: usize, curvature: f64, clip: f64, noise: Ratio) -> Result<Self, Error> {
        let hessian = Scatter::new(dimension, curvature, noise)?;
        let twice = noise.times(&Ratio::from(2_u64)).map_or_else(|| Ratio::from_f64_up(2.0 * noise.to_f64_up()), Ok);
        let shortened = Scatter::new(1, 1.0, twice.map_err(crate::scatter::Error::from)?)?;
        Ok(Self { hessian, gradient: Scatter::new(dimension, clip, noise)?, shortened, bounds: [curvature, clip] })
    }

    /// The clip norm of gradients.
    pub fn clip(&self) -> f64 {
        self.bounds[1]
    }

    /// Sums of nothing yet.
    pub fn start(&self) -> Sums {
        let Self { hessian, gradient, shortened, .. } = self;
        Sums { hessian: hessian.start(), gradient: gradient.start(), shortened: shortened.start() }
    }

    /// Adds one unit, as the rows of its Hessian and its gradient.
    pub fn add(&self, sums: &mut Sums, rows: &[f64], slope: &[f64]) -> Result<(), Error> {
        if slope.len() != self.gradient.dimension() {
            let expected = self.gradient.dimension();
            return Err(Error::Length { what: "gradients of a unit", given: slope.len(), expected });
        }
        sums.hessian.add(rows)?;
        sums.gradient.add(slope)?;
        // A hair is nothing; what is infinite or no number is beyond every bound.
        let beyond = |values: &[f64], bound: f64| norm_up(values) > bound * (1.0 + 1e-9);
        let shortened = beyond(rows, self.bounds[0]) || beyond(slope, self.bounds[1]);
        sums.shortened.add(&[f64::from(u8::from(shortened))])?;
        Ok(())
    }

    /// The sums of what units give, each as the rows of its Hessian and its gradient.
    pub fn sums<'a>(&self, units: impl IntoIterator<Item = (&'a [f64], &'a [f64])>) -> Result<Sums, Error> {
        let mut sums = self.start();
        for (rows, slope) in units {
            self.add(&mut sums, rows, slope)?;
        }
        Ok(sums)
    }

    /// The same, with what a ladder knows of its rungs: see [`Scatter::on`].
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        let Self { hessian, gradient, shortened, bounds } = self;
        Self { hessian: hessian.on(ladder), gradient: gradient.on(ladder), shortened: shortened.on(ladder), bounds }
    }

    /// The moments, from what was released and the number of units, which must be known or released too.
    ///
    /// The second moment of gradients stands for their covariance: at the optimum their mean is 0, and elsewhere this
    /// errs on the wide side.
    pub fn moments(&self, released: &[i64], units: f64) -> Result<Moments, Error> {
        if !(units.is_finite() && units >= 1.0) {
            return Err(Error::Parameter { name: "number of units", value: units, range: "at least 1" });
        }
        let d = self.hessian.dimension();
        let triangle = d * (d + 1) / 2;
        let (given, expected) = (released.len(), 2 * triangle + 1);
        if given != expected {
            return Err(Error::Length { what: "released numbers", given, expected });
        }
        let (hessian, rest) = released.split_at(triangle);
        let (gradient, shortened) = rest.split_at(triangle);
        let mean = |matrix: Vec<f64>| matrix.into_iter().map(|entry| entry / units).collect();
        Ok(Moments {
            hessian: mean(self.hessian.matrix(hessian)?),
            gradient: mean(self.gradient.matrix(gradient)?),
            drawn: None,
            hessian_noise: self.hessian.norm_at(0.95) / units,
            gradient_noise: self.gradient.deviation() / units,
            shortened: self.shortened.matrix(shortened)?[0] / units,
            shortened_noise: self.shortened.deviation() / units,
        })
    }
}

impl Mechanism for Sandwich {
    type Exact = Sums;
    /// Both triangles, the Hessian's first, which are equally long, and the count.
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        Cost::Series(vec![self.hessian.cost(rung), self.gradient.cost(rung), self.shortened.cost(rung)])
    }

    fn sanitise(&self, exact: &Sums, entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        let mut all = self.hessian.noisy(&exact.hessian, entropy)?;
        all.extend(self.gradient.noisy(&exact.gradient, entropy)?);
        all.extend(self.shortened.noisy(&exact.shortened, entropy)?);
        Ok(Sealed::new(all))
    }

    /// The error of the worst entry of all parts, in lattice steps of its own.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let part = 1.0 - (1.0 - confidence) / 3.0; // each part errs with a third of what is left
        let within = [&self.hessian, &self.gradient, &self.shortened].map(|part_of| part_of.accuracy(part).within);
        Accuracy { within: within.into_iter().fold(0.0, f64::max), confidence }
    }
}
