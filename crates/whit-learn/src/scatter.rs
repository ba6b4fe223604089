//! Sums of outer products `Σ x·xᵀ`, with noise: what covariances, Hessians and principal components are made from.

use crate::plan::moves;
use whit_core::mechanism::additive::{Additive, Coordinates, Law, Reach};
use whit_core::mechanism::{BadParameter, SanitiseError};
use whit_core::{Accuracy, Bound, Cost, Ladder, Mechanism, Rung, Sealed, Support};
use whit_noise::round::{product_up, quotient_up, ratio_product_up};
use whit_noise::{BadRatio, Entropy, Ratio};

/// What cannot be summed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// No columns.
    #[error("a row of 0 numbers has no outer product")]
    NoColumns,
    /// Not a length.
    #[error("the radius is {0}: expected a length between 2^-100 and 2^100")]
    Radius(f64),
    /// A lattice that is too coarse to be of use, or too fine to be summed exactly.
    #[error("a lattice of 2^{0} steps to the radius: expected 2^8 to 2^26")]
    Resolution(u32),
    /// Noise that cannot be drawn.
    #[error(transparent)]
    Noise(#[from] BadRatio),
    /// The same.
    #[error(transparent)]
    Law(#[from] BadParameter),
    /// Numbers that are no whole rows, or a matrix of another shape.
    #[error("{given} {what} were given: expected {expected}")]
    Shape {
        /// Of what.
        what: &'static str,
        /// How many came.
        given: usize,
        /// What would do.
        expected: String,
    },
    /// Two sums that were bounded differently.
    #[error("sums of different dimension, radius or resolution cannot be merged")]
    Different,
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoColumns | Self::Shape { .. } => "give whole rows, one after the other",
            Self::Radius(_) => "declare a length that you can defend without looking; longer rows are shortened to it",
            Self::Resolution(_) => "leave it at the default of 2^18, at which sums of 2^26 units have room",
            Self::Noise(_) | Self::Law(_) => "give the noise as a fraction or decimal number of more than 0",
            Self::Different => "make both sums with the same mechanism",
        }
    }
}

/// `RATIO.0/RATIO.1` is a hair above 1/√2 (2·5741² = 8119² + 1): the off-diagonal noise over the diagonal one.
const RATIO: (u128, u128) = (5741, 8119);

/// Sums outer products of rows, each unit's rows shortened together, and adds noise to the upper triangle.
///
/// A unit's rows make a matrix F, of which `‖F‖² = Σ x_ij²` is held to `radius²`; it adds `Fᵀ·F`. One row a unit
/// makes the covariance of Analyze Gauss (Dwork, Talwar, Thakurta, Zhang 2014); several rows make a user's, or a
/// Hessian. The noise is drawn for the upper triangle and mirrored: `σ = noise·radius²` on the diagonal, and `σ/√2`
/// off it.
///
/// # Neighbours
/// Sums of data sets that differ in one unit of the rung. Take the triangle with off-diagonal entries times √2, so that
/// its length is the Frobenius norm of the matrix. With R for the radius, one unit moves it by at most
///
/// | change | distance | attained by |
/// |---|---|---|
/// | add-remove | `R²` | any row of length R |
/// | replace | `√2·R²` | two rows of length R at a right angle |
///
/// and a unit that holds k such units by k times as much.
///
/// # Claim
/// Every pair of neighbours is at most as easy to tell apart as `N(0, σ²)` and `N(Δ, σ²)`, where Δ is that distance:
/// `noise`, or `noise/√2`, or these over k.
///
/// # Why
/// *Distance.* `‖FᵀF‖² = tr(FᵀF·FᵀF) ≤ (tr FᵀF)² = ‖F‖⁴ ≤ R⁴`. For two units `⟨FᵀF, GᵀG⟩ = tr(FᵀF·GᵀG) = ‖F·Gᵀ‖² ≥
/// 0`, so `‖FᵀF − GᵀG‖² = ‖FᵀF‖² + ‖GᵀG‖² − 2‖FGᵀ‖² ≤ 2·R⁴`; one row each gives `|x|⁴ + |y|⁴ − 2⟨x, y⟩²`. Sums of k
/// such matrices are at most k·R² long and have products ≥ 0 as well, so the same two lines hold with k·R². This is
/// the √2 that add-remove figures lack under replacement (T4).
///
/// *Noise.* Dividing each coordinate by its own deviation, neighbours are `(Σ δ_ii² + 2·Σ_{i<j} δ_ij²)^½/σ = ‖δ‖/σ`
/// apart, and the noise is a standard Gaussian: only that distance matters. Without the √2 (all deviations σ, as it
/// is usually printed) the worst case is the same, since rows along two axes touch the diagonal alone; so the smaller
/// noise off the diagonal is free, and the noise's spectral norm falls by √2. In place of 1/√2 stands 5741/8119,
/// which is a hair more.
///
/// *Exactly.* A unit's rows become integers whose squares sum to at most `steps²`, checked in integers; products and
/// sums of integers are exact, so these distances hold to the last bit, and rounded noise on integers is
/// post-processing of real noise (see [`Gaussian`](whit_core::mechanism::gaussian::Gaussian)). An entry beyond 2⁶² steps
/// stays there, which lengthens no distance.
///
/// # Tried by
/// `no_pair_of_units_is_farther_apart_than_claimed`, `the_claim_is_attained`, `both_noises_are_priced_for_what_units_move`,
/// `noise_off_the_diagonal_has_half_the_variance`, `rows_of_any_size_land_in_the_ball`.
///
/// ```
/// use whit_core::{Change, Cost, Mechanism, Rung, Unit};
/// use whit_learn::scatter::Scatter;
/// let scatter = Scatter::new(2, 1.0, "3".parse()?)?;
/// let row = |change| Rung { unit: Unit::event(change), holds: 1, disjoint: false, slices: None };
/// assert_eq!(scatter.cost(&row(Change::AddRemove)), Cost::Gaussian { noise: 3.0 });
/// let Cost::Gaussian { noise } = scatter.cost(&row(Change::Replace)) else { panic!("Gaussian") };
/// assert!(noise <= 3.0 / 2_f64.sqrt() && noise > 2.1213);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scatter {
    dimension: usize,
    radius: f64,
    bits: u32,
    /// The deviation on the diagonal, in lattice steps.
    sigma: Ratio,
    /// The noise of the diagonal, priced for the distance of whole matrices.
    diagonal: Additive,
    /// The noise off the diagonal, of which the squared distance is at most half of that.
    off_diagonal: Additive,
}

impl Scatter {
    /// For rows of `dimension` numbers, a unit's rows together no longer than `radius`, and noise of deviation
    /// `noise·radius²`.
    pub fn new(dimension: usize, radius: f64, noise: Ratio) -> Result<Self, Error> {
        Self::with_resolution(dimension, radius, noise, 18)
    }

    /// The same on a lattice of `2^bits` steps to the radius.
    fn with_resolution(dimension: usize, radius: f64, noise: Ratio, bits: u32) -> Result<Self, Error> {
        if dimension == 0 {
            return Err(Error::NoColumns);
        }
        // Beyond, its square times a lattice step would vanish or overflow.
        if !(2_f64.powi(-100)..=2_f64.powi(100)).contains(&radius) {
            return Err(Error::Radius(radius));
        }
        if !(8..=26).contains(&bits) {
            return Err(Error::Resolution(bits));
        }
        let sigma = ratio_product_up(&noise, &Ratio::from(1_u64 << (2 * bits)))?;
        let smaller = ratio_product_up(&sigma, &Ratio::new(RATIO.0, RATIO.1)?)?;
        let (diagonal, off_diagonal) = Self::bounds(bits);
        let noise = |sigma: Ratio, bound: Bound| {
            Law::rounded(sigma).map(|law| Additive::new(law, Reach::new(bound), Coordinates::Any))
        };
        let (diagonal, off_diagonal) = (noise(sigma, diagonal)?, noise(smaller, off_diagonal)?);
        Ok(Self { dimension, radius, bits, sigma, diagonal, off_diagonal })
    }

    /// How far one unit moves the matrix, and how far what is above its diagonal, in lattice steps. Products of what units add are not negative, which is all that
    /// a replacement's √2 asks of coordinates that are not.
    fn bounds(bits: u32) -> (Bound, Bound) {
        let radius = 4_f64.powi(bits as i32); // exact: the square of the steps to the radius
        let share = quotient_up(RATIO.0 as f64, RATIO.1 as f64); // above 1/√2
        let ball = |radius| Bound::Ball { radius, support: Support::NonNegative };
        (ball(radius), ball(product_up(radius, share)))
    }

    /// Units of a coarser rung share coordinates here, so that [`Rung::disjoint`] saves nothing.
    fn shared(rung: &Rung) -> Rung {
        Rung { disjoint: false, ..rung.clone() }
    }

    /// The same, with what a ladder knows of its rungs: a user whose k units make room for k others moves k pairs,
    /// not 2k units; and rows that are cut to caps make room for others ([`Cut`](crate::source::Cut)).
    #[must_use]
    pub fn on(mut self, ladder: &Ladder) -> Self {
        let on = |noise: &Additive, bound: Bound| {
            let known = |(rung, &held): (&Rung, &u64)| {
                let (change, holds) = moves(ladder, rung, held);
                let rung = Self::shared(rung);
                let moved = bound.sensitivity(change).at(&Rung { holds, ..rung.clone() });
                (rung, moved)
            };
            let known = ladder.rungs().iter().zip(ladder.held()).map(known).collect();
            Additive::new(noise.law().clone(), Reach::new(bound).knowing(known), Coordinates::Any)
        };
        let (diagonal, off_diagonal) = Self::bounds(self.bits);
        (self.diagonal, self.off_diagonal) = (on(&self.diagonal, diagonal), on(&self.off_diagonal, off_diagonal));
        self
    }

    /// How many numbers a row has.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// An empty sum.
    pub fn start(&self) -> Sum {
        let size = self.dimension * (self.dimension + 1) / 2;
        Sum {
            dimension: self.dimension,
            radius: self.radius,
            bits: self.bits,
            recent: 0,
            waiting: Vec::new(),
            partial: vec![0.0; size],
            total: vec![0; size],
        }
    }

    /// One lattice step of a sum, in the rows' own squared unit.
    fn step(&self) -> f64 {
        let row = self.radius / f64::from(1_u32 << self.bits);
        row * row
    }

    /// The released triangle as a symmetric matrix, rows one after the other, in the rows' own squared unit.
    pub fn matrix(&self, noisy: &[i64]) -> Result<Vec<f64>, Error> {
        let d = self.dimension;
        if noisy.len() != d * (d + 1) / 2 {
            let expected = format!("{} for {d} columns", d * (d + 1) / 2);
            return Err(Error::Shape { what: "entries of a triangle", given: noisy.len(), expected });
        }
        let (mut matrix, mut entries) = (vec![0.0; d * d], noisy.iter());
        for i in 0..d {
            for (j, &entry) in (i..d).zip(&mut entries) {
                let value = entry as f64 * self.step();
                matrix[i * d + j] = value;
                matrix[j * d + i] = value;
            }
        }
        Ok(matrix)
    }

    /// A released triangle, from the bytes that a ledger keeps of it.
    pub fn read(bytes: &[u8]) -> Result<Vec<i64>, Error> {
        // Their number, and then the length and the bytes of each (see `Persist`).
        let wrong =
            || Error::Shape { what: "bytes", given: bytes.len(), expected: "those of a released triangle".to_owned() };
        let (words, rest) = bytes.as_chunks::<8>();
        let (count, entries) = words.split_first().ok_or_else(wrong)?;
        let (entries, odd) = entries.as_chunks::<2>();
        if !rest.is_empty() || !odd.is_empty() || u64::from_le_bytes(*count) != entries.len() as u64 {
            return Err(wrong());
        }
        let entry = |[length, value]: &[[u8; 8]; 2]| {
            if u64::from_le_bytes(*length) == 8 { Ok(i64::from_le_bytes(*value)) } else { Err(wrong()) }
        };
        entries.iter().map(entry).collect()
    }

    /// The deviation of the noise on the diagonal, in the rows' own squared unit.
    pub fn deviation(&self) -> f64 {
        self.sigma.to_f64_up() * self.step()
    }

    /// The mean spectral norm of the noise is at most this: `σ·√(2d)`, to which it tends as d grows.
    ///
    /// With noise of variance σ² on the diagonal and σ²/2 off it, `u ↦ uᵀZu` has increments `2σ²(1 − ⟨u,v⟩²) ≤
    /// 2σ²·|u − v|²`, so its largest value on the sphere is on average at most that of `√2·σ·⟨g, u⟩` (Sudakov,
    /// Fernique), which is `√2·σ·E|g|`. That is about one end of the spectrum; [`norm_at`](Self::norm_at) is about
    /// both. (With deviation σ everywhere it would be 2σ√d.)
    pub(crate) fn mean_norm(&self) -> f64 {
        // Rounding adds entries of at most half a step, so at most d/2 steps to the norm.
        self.deviation() * (2.0 * self.dimension as f64).sqrt() + 0.5 * self.dimension as f64 * self.step()
    }

    /// With at least this probability, the spectral norm of the noise is at most this: `σ·(√(2d) + t)` for
    /// `2·e^(−t²/2) = 1 − confidence`.
    ///
    /// The largest eigenvalue moves no faster than the matrix in Frobenius norm, in which the noise is σ times a
    /// standard Gaussian: so it exceeds its mean by σt with probability at most `e^(−t²/2)`, and so does the smallest
    /// one.
    pub(crate) fn norm_at(&self, confidence: f64) -> f64 {
        let t = (2.0 * (2.0 / (1.0 - confidence)).ln()).sqrt();
        self.mean_norm() + self.deviation() * t
    }

    /// The sum with its noise.
    pub(crate) fn noisy(&self, exact: &Sum, entropy: &mut dyn Entropy) -> Result<Vec<i64>, SanitiseError> {
        if exact.dimension != self.dimension {
            return Err(SanitiseError::Length { given: exact.dimension, expected: self.dimension });
        }
        if exact.bits != self.bits || exact.radius != self.radius {
            return Err(SanitiseError::Unfit("the sum was bounded by another radius than the noise is made for"));
        }
        let (mut noisy, mut at) = (exact.clone().finished(), 0);
        for length in (1..=self.dimension).rev() {
            self.diagonal.add(&mut noisy[at..=at], entropy)?;
            self.off_diagonal.add(&mut noisy[at + 1..at + length], entropy)?;
            at += length;
        }
        Ok(noisy)
    }
}

impl Mechanism for Scatter {
    type Exact = Sum;
    type Noisy = Vec<i64>;

    /// The triangle, each entry over its deviation, is a vector with noise of one deviation: what it costs all together is what noise on the diagonal costs that
    /// moves as far as the whole matrix does.
    fn cost(&self, rung: &Rung) -> Cost {
        self.diagonal.cost(&Self::shared(rung))
    }

    fn sanitise(&self, exact: &Sum, entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        self.noisy(exact, entropy).map(Sealed::new)
    }

    /// The error of the worst entry, in lattice steps.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        // Noise off the diagonal is smaller.
        let entries = self.dimension * (self.dimension + 1) / 2;
        Accuracy { within: self.diagonal.law().all_within(confidence, entries), confidence }
    }
}

/// A sum of outer products to which no unit added more than `radius²`. [`Scatter::start`] and [`Sum::add`] are the
/// one way in and noise the one way out.
#[derive(Clone)]
pub struct Sum {
    dimension: usize,
    radius: f64,
    bits: u32,
    /// Units in `partial` and `waiting`.
    recent: u64,
    /// Rows of integers that are not yet multiplied.
    waiting: Vec<f64>,
    /// Integers below 2⁵³, so that sums of them are exact in any order.
    partial: Vec<f64>,
    total: Vec<i128>,
}

/// Rows that wait for one another, so that an entry of the triangle is loaded once for all of them.
const ROWS: usize = 64;

impl Sum {
    /// Adds one unit: all its rows, one after the other. Where they are longer than the radius together, they are
    /// shortened by one factor.
    ///
    /// A unit with an infinite number or one that is none adds nothing.
    pub fn add<T: Copy + Into<f64>>(&mut self, rows: &[T]) -> Result<(), Error> {
        if !rows.len().is_multiple_of(self.dimension) {
            let expected = format!("whole rows of {}", self.dimension);
            return Err(Error::Shape { what: "numbers", given: rows.len(), expected });
        }
        self.recent += 1;
        self.quantise(rows);
        if self.waiting.len() >= ROWS * self.dimension {
            self.multiply();
        }
        // One unit adds at most steps² to an entry in absolute value, so 2^53 is never passed.
        if self.recent == 1 << (53 - 2 * self.bits) {
            self.carry();
        }
        Ok(())
    }

    /// Adds what another sum holds: of other units.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        if !self.agrees(&other) {
            return Err(Error::Different);
        }
        let mut other = other;
        other.carry();
        for (total, other) in self.total.iter_mut().zip(other.total) {
            *total += other; // below 2^52 for each unit, of which there are fewer than 2^64
        }
        Ok(())
    }

    fn agrees(&self, other: &Self) -> bool {
        (self.dimension, self.bits) == (other.dimension, other.bits) && self.radius == other.radius
    }

    /// Pushes the unit's rows as integers whose squares sum to at most steps²: a function of this unit alone.
    fn quantise<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let largest = rows.iter().fold(0.0_f64, |most, &x| if most.is_nan() { most } else { nan_max(most, x.into()) });
        if !largest.is_finite() || largest == 0.0 {
            return;
        }
        let squares: f64 = rows.iter().map(|&x| (x.into() / largest).powi(2)).sum();
        let steps = f64::from(1_u32 << self.bits);
        // The largest number in steps; no number is beyond the radius after this, whatever it was.
        let reach = steps * (largest / self.radius).min(1.0 / squares.sqrt());
        let from = self.waiting.len();
        for attempt in 0..=27 {
            // To the nearest integer, which may lengthen a little; then towards 0, and shorter and shorter until it
            // fits.
            let shrink = if attempt == 0 { reach } else { reach * (1.0 - 2_f64.powi(2 * attempt - 54)) };
            let whole = |x: f64| if attempt == 0 { x.round() } else { x.trunc() };
            self.waiting.truncate(from);
            self.waiting.extend(rows.iter().map(|&x| whole(x.into() / largest * shrink)));
            let length: u128 = self.waiting[from..].iter().map(|&x| u128::from((x.abs() as u64).pow(2))).sum();
            if length <= 1 << (2 * self.bits) {
                return;
            }
        }
        self.waiting.truncate(from); // unreachable: the last attempt is all zeros
    }

    fn multiply(&mut self) {
        let (d, mut at) = (self.dimension, 0);
        for i in 0..d {
            let out = &mut self.partial[at..at + d - i];
            let mut fours = self.waiting.chunks_exact(4 * d);
            for four in &mut fours {
                let [a, b, c, e] = [four[i], four[d + i], four[2 * d + i], four[3 * d + i]];
                if [a, b, c, e] == [0.0; 4] {
                    continue;
                }
                let rows = four[i..d].iter().zip(&four[d + i..2 * d]);
                let rows = rows.zip(four[2 * d + i..3 * d].iter().zip(&four[3 * d + i..]));
                for (out, ((w, x), (y, z))) in out.iter_mut().zip(rows) {
                    *out += a * w + b * x + c * y + e * z;
                }
            }
            for row in fours.remainder().chunks_exact(d) {
                for (out, x) in out.iter_mut().zip(&row[i..]) {
                    *out += row[i] * x;
                }
            }
            at += d - i;
        }
        self.waiting.clear();
    }

    fn carry(&mut self) {
        self.multiply();
        for (total, partial) in self.total.iter_mut().zip(&mut self.partial) {
            *total += *partial as i128;
            *partial = 0.0;
        }
        self.recent = 0;
    }

    /// What is beyond 2^62 steps stays there, as in a projection: no two sums come further apart, and how many units there are makes nothing fail.
    fn finished(mut self) -> Vec<i64> {
        self.carry();
        self.total.into_iter().map(|total| total.clamp(-(1 << 62), 1 << 62) as i64).collect()
    }
}

/// The larger magnitude, or NaN.
fn nan_max(most: f64, x: f64) -> f64 {
    if x.is_nan() { x } else { most.max(x.abs()) }
}

#[cfg(test)]
mod tests;
