//! Many steps at once: lattice laws convolved by a tilted Fourier transform, with a proven bound on every error.
//!
//! Convolving T-fold and reading a tail of size δ by a plain Fourier transform drowns δ in rounding noise of size
//! 10^-16. So every law is first *tilted*: multiplied by e^(θ·loss) and normalised, with θ such that the composed tilted
//! law has its bulk where ε is. There the noise is small *relative to δ*, however small δ is; and a window a few
//! deviations wide around ε suffices, whatever the range of the loss.
//!
//! What a window of N points cannot hold comes back at the other end (the transform is circular). By Chernoff's
//! inequality both ends are bounded: mass from the left lands e^(−θNh) times smaller than it was; mass from the right is
//! bounded by e^(K(s) − (s−θ)·B − θ·A) for any s > θ, with K the cumulant function. Both bounds are added to the upper
//! result and subtracted from the lower one, as is a bound on the rounding of the transform (entry by entry, since each
//! butterfly errs by at most a multiple of the sum of the sizes that enter it: 8·ε₀·log₂N per unit of ℓ1 norm).

use super::lattice::{LossLattice, sum_of};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Laws on one lattice, each with the number of steps that follow it.
pub(crate) struct LatticeSteps<'a> {
    pub(crate) laws: Vec<(&'a LossLattice, u64)>,
    pub(crate) step: f64,
}

/// A window of the composed law, tilted.
pub(crate) struct TiltedWindow {
    step: f64,
    /// The loss of the first point.
    start: f64,
    tilted: Vec<f64>,
    theta: f64,
    /// K(θ): the untilted mass at loss l is `tilted · e^(K − θ·l)`.
    cumulant: f64,
    /// No entry of `tilted` is off by more than this.
    rounding: f64,
    /// By how much e^(K − θ·l) may be off, relatively: its argument is a difference of large numbers.
    blur: f64,
    /// Mass that the window may have misplaced, as a bound on what it does to any δ.
    pub(crate) misplaced: f64,
    infinite: f64,
}

/// The exponents θ·loss + ln mass, and the logarithm of the sum of their exponentials, ln Σ mass·e^(θ·loss).
/// Nothing overflows before the sum itself does: the smallest mass may meet the largest loss.
fn exponents(points: impl Iterator<Item = (f64, f64)>, theta: f64) -> (Vec<f64>, f64) {
    let all: Vec<f64> = points.map(|(l, p)| theta * l + p.ln()).collect();
    let peak = all.iter().copied().fold(f64::MIN, f64::max);
    let sum = sum_of(all.iter().map(|exponent| (exponent - peak).exp()));
    (all, peak + sum.ln())
}

/// A rough law, for planning: (loss, mass) points with the number of steps that follow it.
pub(crate) type Sketch = Vec<(Vec<(f64, f64)>, u64)>;

/// K, K′ and K″ of a composed sketch.
pub(crate) fn sketch_cumulant(sketch: &Sketch, theta: f64) -> (f64, f64, f64) {
    sketch.iter().fold((0.0, 0.0, 0.0), |sum, (points, times)| {
        let (exponents, k) = exponents(points.iter().copied(), theta);
        let weights: Vec<f64> = exponents.iter().map(|exponent| (exponent - k).exp()).collect();
        let mean: f64 = points.iter().zip(&weights).map(|(point, weight)| weight * point.0).sum();
        // In a second pass, so that nothing cancels.
        let variance: f64 = points.iter().zip(&weights).map(|(point, weight)| weight * (point.0 - mean).powi(2)).sum();
        let t = *times as f64;
        (sum.0 + t * k, sum.1 + t * mean, sum.2 + t * variance)
    })
}

/// The smallest even number of at least `least` without prime factors above 5: a length that is fast to transform.
fn even_and_smooth(least: usize) -> usize {
    let powers = |base: usize| {
        std::iter::successors(Some(1), move |power| Some(power * base)).take_while(move |power| *power < 2 * least)
    };
    let odd = powers(3).flat_map(|three| powers(5).map(move |five| three * five));
    odd.map(|odd| odd * 2 * least.div_ceil(2 * odd).next_power_of_two()).min().unwrap_or(least.next_power_of_two())
}

/// Factors of the spectrum below e^-80 are left out and counted as errors.
const NEGLIGIBLE: f64 = -80.0;

/// Memory and tables that every window of one question needs again.
#[derive(Default)]
pub(crate) struct Workspace {
    planner: Option<FftPlanner<f64>>,
    buffer: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
    product: Vec<SpectrumEntry>,
    tilted: Vec<f64>,
}

impl Workspace {
    /// Takes a window's memory back.
    pub(crate) fn recycle(&mut self, window: TiltedWindow) {
        self.tilted = window.tilted;
    }
}

/// One entry of the composed spectrum.
#[derive(Clone, Copy)]
struct SpectrumEntry {
    /// The logarithm of its size as computed.
    size: f64,
    phase: f64,
    /// The logarithm of the largest size that it can have, errors included.
    limit: f64,
}

/// Bounds on what a window of a composed law misplaces, for many windows under one tilt.
pub(crate) struct Outside {
    theta: f64,
    /// ln of all mass.
    all: f64,
    /// (s, K(s)) for a few s > θ.
    tilts: Vec<(f64, f64)>,
}

impl Outside {
    /// From the left of [a, b): at most all of the mass, e^(−θ·width) times as large, and again for every further turn.
    pub(crate) fn left(&self, a: f64, b: f64) -> f64 {
        (self.all - self.theta * (b - a)).exp() / -(-self.theta * (b - a)).exp_m1()
    }

    /// From the right of it, and what is missing there.
    pub(crate) fn right(&self, a: f64, b: f64) -> f64 {
        let bounds =
            self.tilts.iter().map(|&(s, k)| (k - (s - self.theta) * b - self.theta * a).exp() + (k - s * b).exp());
        bounds.filter(|bound| !bound.is_nan()).fold(f64::INFINITY, f64::min)
    }
}

impl LatticeSteps<'_> {
    fn points<'b>(&self, law: &'b LossLattice) -> impl Iterator<Item = (f64, f64)> + Clone + use<'b> {
        let step = self.step;
        law.mass.iter().zip(law.start..).map(move |(&mass, i)| (i as f64 * step + law.offset, mass))
    }

    /// K(θ), raised by what the rounding of every exponent may come to in all steps.
    fn cumulant(&self, theta: f64) -> f64 {
        let rounding = |law: &LossLattice| 2.0 * f64::EPSILON * (4.0 + theta * law.reach() * self.step);
        self.laws
            .iter()
            .map(|(law, times)| (exponents(self.points(law), theta).1 + rounding(law)) * *times as f64)
            .sum()
    }

    /// The window [low, low + 2^n·step) of the composed law under the tilt θ > 0.
    pub(crate) fn window(&self, outside: &Outside, low: f64, high: f64, workspace: &mut Workspace) -> TiltedWindow {
        let theta = outside.theta;
        let points = even_and_smooth(((high - low) / self.step).ceil().max(2.0) as usize);
        // The composed law lies on the lattice shifted by the sum of all offsets.
        let offset: f64 = self.laws.iter().map(|(law, times)| law.offset * *times as f64).sum();
        let start = ((low - offset) / self.step).floor() as i64;
        let fft = workspace.planner.get_or_insert_with(FftPlanner::new).plan_fft_forward(points);
        let unit = 8.0 * f64::EPSILON * (points as f64).log2().max(1.0);
        let Workspace { buffer, scratch, product, tilted, .. } = workspace;
        buffer.resize(points, Complex::new(0.0, 0.0));
        scratch.resize(fft.get_inplace_scratch_len(), Complex::new(0.0, 0.0));
        let mut total = 0.0;
        // The laws are real, so half of the spectrum says all.
        product.clear();
        product.resize(points / 2 + 1, SpectrumEntry { size: 0.0, phase: 0.0, limit: 0.0 });
        for &(law, times) in &self.laws {
            let normal = exponents(self.points(law), theta).1;
            total += normal * times as f64;
            buffer.fill(Complex::new(0.0, 0.0));
            for (&mass, i) in law.mass.iter().zip(law.start..) {
                if mass > 0.0 {
                    let at = i.rem_euclid(points as i64) as usize;
                    buffer[at].re += mass * (theta * (i as f64 * self.step + law.offset) - normal).exp();
                }
            }
            fft.process_with_scratch(buffer, scratch);
            // The transform's rounding, and that of the tilted masses: an exponential of an argument of size θ·l.
            let error = unit + 4.0 * f64::EPSILON * (4.0 + theta * law.reach() * self.step);
            let t = times as f64;
            for (product, one) in product.iter_mut().zip(&*buffer) {
                if product.limit < NEGLIGIBLE {
                    continue; // the other factors cannot bring it back: sizes are at most 1
                }
                let size = one.norm_sqr().sqrt();
                product.limit += t * (size + error).ln();
                if product.limit >= NEGLIGIBLE {
                    product.size += t * size.ln();
                    product.phase += t * one.arg();
                }
            }
        }
        // |Π(zᵢ + ηᵢ)^Tᵢ − Π zᵢ^Tᵢ| ≤ Π(|zᵢ| + |ηᵢ|)^Tᵢ − Π|zᵢ|^Tᵢ; entries of the inverse are averages of these errors.
        // The inverse transform is the forward one of the conjugate spectrum, since the result is real.
        let (spectrum, mut errors) = (buffer, 0.0);
        spectrum.fill(Complex::new(0.0, 0.0));
        for (k, factor) in product.iter().enumerate() {
            if factor.limit < NEGLIGIBLE {
                errors += 2.0 * NEGLIGIBLE.exp();
                continue;
            }
            let size = factor.size.exp();
            errors += 2.0 * (factor.limit.exp() - size).max(0.0) + 2.0 * size * unit;
            spectrum[k] = Complex::from_polar(size, -factor.phase);
            if k > 0 && k < points - k {
                spectrum[points - k] = spectrum[k].conj();
            }
        }
        let rounding = errors / points as f64;
        // A circular shift puts the window's first point first.
        fft.process_with_scratch(spectrum, scratch);
        let shift = start.rem_euclid(points as i64) as usize;
        let scale = 1.0 / points as f64;
        let mut tilted = std::mem::take(tilted);
        tilted.clear();
        tilted.extend(spectrum[shift..].iter().chain(&spectrum[..shift]).map(|z| z.re * scale));
        let width = points as f64 * self.step;
        let (a, b) = (start as f64 * self.step + offset, start as f64 * self.step + offset + width);
        TiltedWindow {
            step: self.step,
            start: a,
            tilted,
            theta,
            cumulant: total,
            rounding,
            blur: 1e-13 + 4.0 * f64::EPSILON * (total.abs() + theta * a.abs().max(b.abs())),
            misplaced: outside.left(a, b) + outside.right(a, b),
            infinite: -self
                .laws
                .iter()
                .map(|(law, times)| (-law.infinite).ln_1p() * *times as f64)
                .sum::<f64>()
                .exp_m1(),
        }
    }

    /// What windows under the tilt θ misplace.
    pub(crate) fn outside(&self, theta: f64) -> Outside {
        let tilts = [1.02, 1.05, 1.1, 1.2, 1.4, 1.7, 2.2, 3.0, 5.0, 15.0, 60.0].map(|factor| theta * factor);
        Outside { theta, all: self.cumulant(0.0), tilts: tilts.iter().map(|&s| (s, self.cumulant(s))).collect() }
    }
}

impl LossLattice {
    /// The largest size of a loss, in steps.
    fn reach(&self) -> f64 {
        let last = self.start + self.mass.len() as i64 - 1;
        self.start.unsigned_abs().max(last.unsigned_abs()) as f64
    }
}

/// A tail of the composed law at one lattice point: what δ(ε) is made of.
#[derive(Clone, Copy)]
struct Tail {
    /// Σ p·(1 − e^(ε−l)) over l > ε, for ε at the lattice point.
    delta: f64,
    /// Σ p·e^(ε−l) over l > ε.
    shrunk: f64,
}

impl TiltedWindow {
    /// The smallest ε ≥ 0 in the window with δ(ε) ≤ `delta`; errors go against the caller when `upper`, else for them.
    /// `None` when ε lies to the left of the window.
    pub(crate) fn epsilon(&self, delta: f64, upper: bool) -> Option<f64> {
        let left = delta - self.infinite - if upper { self.misplaced } else { -self.misplaced };
        if left.is_nan() {
            return Some(if upper { f64::INFINITY } else { 0.0 });
        }
        if left <= 0.0 {
            return Some(f64::INFINITY);
        }
        // From the right end down: at the last point nothing is above.
        let mut tail = Tail { delta: 0.0, shrunk: 0.0 };
        let (keep, drop) = ((-self.step).exp(), -(-self.step).exp_m1());
        // Mass is untilted by a factor that grows by the same ratio from point to point; it is set anew now and then.
        let (mut weight, ratio) = (0.0, (self.theta * self.step).exp());
        let factor = self.factor(upper);
        for k in (0..self.tilted.len()).rev() {
            // `tail` is at ε = l_k; here is the step from l_k to l_k − h, which adds the mass at l_k.
            let at = self.start + k as f64 * self.step;
            if at <= 0.0 {
                return Some(0.0);
            }
            weight =
                if k % 64 == 0 || weight == 0.0 { (self.cumulant - self.theta * at).exp() } else { weight * ratio };
            let mass = self.tilted(k, upper) * weight * factor;
            // δ at ε in [l_k − h, l_k]: Σ_{l ≥ l_k} p(1 − e^(ε−l)) = S − e^(ε−l_k)·R with S and R the sums at l_k.
            let shrunk = tail.shrunk + mass;
            let sum = tail.delta + shrunk;
            let next = Tail { delta: tail.delta + drop * shrunk, shrunk: keep * shrunk };
            if next.delta > left {
                // S − e^x·R = left for x = ε − l_k in [−h, 0].
                let x = if shrunk > 0.0 && sum > left { ((sum - left) / shrunk).ln() } else { -self.step };
                let x = if x.is_nan() { if upper { 0.0 } else { -self.step } } else { x.clamp(-self.step, 0.0) };
                return Some((at + x).max(0.0));
            }
            tail = next;
        }
        None
    }

    /// δ at an ε inside the window.
    pub(crate) fn delta(&self, epsilon: f64, upper: bool) -> f64 {
        let finite: f64 = (0..self.tilted.len())
            .rev()
            .map(|k| (k, self.start + k as f64 * self.step))
            .take_while(|&(_, l)| l > epsilon)
            .map(|(k, l)| self.mass(k, upper) * -(epsilon - l).exp_m1())
            .sum();
        if upper {
            let delta = finite + self.infinite + self.misplaced;
            if delta < 1.0 { delta } else { 1.0 } // and 1 for what is no number
        } else {
            (finite + self.infinite - self.misplaced).max(0.0)
        }
    }

    /// The tilted mass at a point, with its rounding error on the safe side.
    fn tilted(&self, k: usize, upper: bool) -> f64 {
        (self.tilted[k] + if upper { self.rounding } else { -self.rounding }).max(0.0)
    }

    /// The untilted mass at a point, likewise.
    fn mass(&self, k: usize, upper: bool) -> f64 {
        let l = self.start + k as f64 * self.step;
        self.tilted(k, upper) * (self.cumulant - self.theta * l).exp() * self.factor(upper)
    }

    /// What makes up for the blur, on the safe side.
    fn factor(&self, upper: bool) -> f64 {
        if upper { self.blur.exp() } else { (-self.blur).exp() }
    }

    /// The loss of the window's first point: where `epsilon` finds nothing, δ is small enough here.
    pub(crate) fn start(&self) -> f64 {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_even_smooth_and_not_much_longer_than_asked() {
        for least in [2, 3, 7, 100, 1000, 40_001, 65_537, 1_000_000] {
            let mut rest = even_and_smooth(least);
            assert!(rest >= least && rest.is_multiple_of(2) && rest <= least + least / 8 + 2, "{least}: {rest}");
            for prime in [2, 3, 5] {
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                }
            }
            assert_eq!(rest, 1, "{least}");
        }
    }

    /// A law of two atoms, composed a thousand times, is a binomial law: every tail of the window is right to the
    /// last digits that its own error bound leaves, far below what a transform without a tilt could see.
    #[test]
    fn a_composed_law_of_two_atoms_is_binomial() {
        let (step, times, up) = (0.125, 1000_u64, 0.6);
        let law = LossLattice { start: -1, offset: 0.0, mass: vec![1.0 - up, 0.0, up], infinite: 0.0 };
        let steps = LatticeSteps { laws: vec![(&law, times)], step };
        let mut workspace = Workspace::default();
        let (theta, low, high) = (4.0, -60.0, 130.0); // the bulk of the tilted law is at 803 wins
        let window = steps.window(&steps.outside(theta), low, high, &mut workspace);
        for wins in [780_u32, 800, 820] {
            let epsilon = (2.0 * f64::from(wins) - 1000.0) * step;
            // Σ over more wins than that of binom(T, w)·p^w·(1−p)^(T−w)·(1 − e^(ε − l)), in logarithms.
            let ln_binomial = |w: f64| libm::lgamma(1001.0) - libm::lgamma(w + 1.0) - libm::lgamma(1001.0 - w);
            let term = |w: u32| {
                let w = f64::from(w);
                let l = (2.0 * w - 1000.0) * step;
                (ln_binomial(w) + w * up.ln() + (1000.0 - w) * (1.0 - up).ln()).exp() * -(epsilon - l).exp_m1()
            };
            let exact: f64 = (wins + 1..=1000).map(term).sum();
            let (upper, lower) = (window.delta(epsilon, true), window.delta(epsilon, false));
            assert!(
                lower <= exact * (1.0 + 1e-9) && exact <= upper * (1.0 + 1e-9),
                "{wins}: {lower:e}, {exact:e}, {upper:e}"
            );
            assert!(upper - lower < 1e-4 * exact, "{wins}: {lower:e} and {upper:e} around {exact:e}");
            let found = window.epsilon(exact, true).unwrap();
            assert!((found - epsilon).abs() < 1e-3, "{wins}: ε is {found}, not {epsilon}");
        }
    }
}
