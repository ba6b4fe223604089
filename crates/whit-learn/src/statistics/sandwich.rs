//! The two matrices around which an interval is built, released.

use super::Error;
use crate::scatter::{Scatter, Sum};
use whit_core::mechanism::SanitiseError;
use whit_core::{Accuracy, Cost, Ladder, Mechanism, Rung, Sealed};
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
}

impl Moments {
    /// Moments that somebody knows without looking at the data, or has released elsewhere with noise that does not
    /// matter.
    pub fn known(hessian: Vec<f64>, gradient: Vec<f64>) -> Self {
        Self { hessian, gradient, drawn: None, hessian_noise: 0.0, gradient_noise: 0.0 }
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

/// Releases the Hessian and the second moment of gradients at parameters that are released already.
///
/// # Neighbours
/// Data sets that differ in one unit of the rung. A unit gives rows F with `FᵀF` its Hessian, and its gradient g.
/// With `tr FᵀF ≤ R²` and `|g| ≤ C`, both enforced, it moves the one sum by at most R² and the other by C² under
/// add-remove, and by √2 as much under replace, each in the triangle with off-diagonal entries times √2.
///
/// # Claim
/// That of two runs of [`Scatter`], one after the other: `Cost::Series` of two `Cost::Gaussian`. Together they are no
/// dearer than one Gaussian vector of both triangles, each over its own bound.
///
/// # Why
/// Both sums are of outer products, so both are `Scatter`s, and the parameters at which they are computed are
/// released before. Gaussian costs compose exactly: distances add in squares, as they do in one long vector.
///
/// # Tried by
/// `scatter`'s tests; here `intervals_cover_as_often_as_they_say`, which uses what this releases,
/// `a_sandwich_restores_what_went_in` and `a_sandwich_is_its_two_halves`.
#[derive(Debug, Clone)]
pub struct Sandwich {
    /// Sums Hessians.
    pub hessian: Scatter,
    /// Sums outer products of gradients.
    pub gradient: Scatter,
}

impl Sandwich {
    /// For `dimension` parameters, a unit's Hessian of trace at most `curvature²` and gradient of length at most
    /// `clip`, and noise of `noise` times these squares in each.
    ///
    /// The clip should be the one of the training: then it bites here exactly where it bit there.
    pub fn new(dimension: usize, curvature: f64, clip: f64, noise: Ratio) -> Result<Self, Error> {
        let hessian = Scatter::new(dimension, curvature, noise)?;
        Ok(Self { hessian, gradient: Scatter::new(dimension, clip, noise)? })
    }

    /// Both sums of what units give, each as the rows of its Hessian and its gradient.
    pub fn sums<'a>(&self, units: impl IntoIterator<Item = (&'a [f64], &'a [f64])>) -> Result<(Sum, Sum), Error> {
        let (mut hessian, mut gradient) = (self.hessian.start(), self.gradient.start());
        for (rows, slope) in units {
            if slope.len() != self.gradient.dimension() {
                let expected = self.gradient.dimension();
                return Err(Error::Length { what: "gradients of a unit", given: slope.len(), expected });
            }
            hessian.add(rows)?;
            gradient.add(slope)?;
        }
        Ok((hessian, gradient))
    }

    /// The same, with what a ladder knows of its rungs: see [`Scatter::on`].
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        Self { hessian: self.hessian.on(ladder), gradient: self.gradient.on(ladder) }
    }

    /// The moments, from both released triangles and the number of units, which must be known or released too.
    ///
    /// The second moment of gradients stands for their covariance: at the optimum their mean is 0, and elsewhere this
    /// errs on the wide side.
    pub fn moments(&self, hessian: &[i64], gradient: &[i64], units: f64) -> Result<Moments, Error> {
        if !(units.is_finite() && units >= 1.0) {
            return Err(Error::Parameter { name: "number of units", value: units, range: "at least 1" });
        }
        let mean = |matrix: Vec<f64>| matrix.into_iter().map(|entry| entry / units).collect();
        Ok(Moments {
            hessian: mean(self.hessian.matrix(hessian)?),
            gradient: mean(self.gradient.matrix(gradient)?),
            drawn: None,
            hessian_noise: self.hessian.norm_at(0.95) / units,
            gradient_noise: self.gradient.deviation() / units,
        })
    }
}

impl Mechanism for Sandwich {
    type Exact = (Sum, Sum);
    /// Both triangles, the Hessian's first. They are equally long.
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        Cost::Series(vec![self.hessian.cost(rung), self.gradient.cost(rung)])
    }

    fn sanitise(
        &self,
        (hessian, gradient): &(Sum, Sum),
        entropy: &mut dyn Entropy,
    ) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        let mut both = self.hessian.noisy(hessian, entropy)?;
        both.extend(self.gradient.noisy(gradient, entropy)?);
        Ok(Sealed::new(both))
    }

    /// The error of the worst entry of both triangles, in lattice steps of its own.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let half = f64::midpoint(1.0, confidence); // each half errs with half of what is left
        let (a, b) = (self.hessian.accuracy(half), self.gradient.accuracy(half));
        Accuracy { within: a.within.max(b.within), confidence }
    }
}
