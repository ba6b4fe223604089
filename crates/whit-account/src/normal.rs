//! The normal law: tails, quantiles, and the privacy profile of Gaussian noise, without overflow or cancellation.
//!
//! Everything is built on the Mills ratio m(x) = Q(x)/φ(x), where Q is the upper tail and φ the density: it neither
//! under- nor overflows where Q does, and differences of it can be taken as integrals of a positive function.

use std::f64::consts::FRAC_1_SQRT_2;

/// √(2π), and its logarithm.
const ROOT_TWO_PI: f64 = 2.506_628_274_631_000_7;
const LN_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_7;

/// Gauss–Legendre nodes in (0, 1) and their weights, 16 points in all by symmetry.
const GAUSS_LEGENDRE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];

/// Beyond this the continued fraction of the Mills ratio is used, before it the library's erfc.
const FAR: f64 = 3.0;

/// Nodes and weights of the 16-point Gauss–Legendre rule on [from, from + width]: the width is given as such, because it
/// may be far smaller than a float step of `from`.
pub(crate) fn integral_nodes(from: f64, width: f64) -> impl Iterator<Item = (f64, f64)> {
    let half = 0.5 * width;
    GAUSS_LEGENDRE
        .iter()
        .flat_map(move |&(x, w)| [(from + half * (1.0 - x), half * w), (from + half * (1.0 + x), half * w)])
}

/// ∫ f over [from, from + width].
fn integral(from: f64, width: f64, f: impl Fn(f64) -> f64) -> f64 {
    integral_nodes(from, width).map(|(x, w)| w * f(x)).sum()
}

/// φ(x), the density.
pub fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / ROOT_TWO_PI
}

/// Φ(x) = P(N ≤ x).
///
/// ```
/// use whit_account::normal::{cdf, upper_tail};
/// assert_eq!(cdf(0.0), 0.5);
/// assert!((cdf(1.959_963_984_540_054) - 0.975).abs() < 1e-15);
/// assert_eq!(cdf(-2.0), upper_tail(2.0));
/// ```
pub fn cdf(x: f64) -> f64 {
    upper_tail(-x)
}

/// Q(x) = P(N > x), with a small relative error also where it is tiny.
pub fn upper_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// ln Q(x), for every x: nothing underflows.
///
/// ```
/// use whit_account::normal::ln_upper_tail;
/// assert!((ln_upper_tail(1000.0) + 500_007.826_694_812_2).abs() < 1e-9);
/// ```
pub fn ln_upper_tail(x: f64) -> f64 {
    if x == f64::INFINITY {
        f64::NEG_INFINITY
    } else if x >= FAR {
        -0.5 * x * x - LN_ROOT_TWO_PI + mills(x).ln()
    } else if x >= 0.0 {
        upper_tail(x).ln()
    } else {
        (-upper_tail(-x)).ln_1p()
    }
}

/// t(x) in 1/m(x) = x + t(x), for x ≥ 3: t = 1/(x + 2/(x + 3/(x + …))).
///
/// So many terms leave a relative error below 1e-17 (found with 40 digits at fourteen points from 3 to 10⁴).
fn fraction(x: f64) -> f64 {
    let terms = 6 + (100.0 / x + 300.0 / (x * x)) as u32;
    let mut t = 0.0;
    for n in (1..=terms).rev() {
        t = f64::from(n) / (x + t);
    }
    t
}

/// The Mills ratio m(x) = Q(x)/φ(x). Infinite below about −38.
pub(crate) fn mills(x: f64) -> f64 {
    if x >= FAR { 1.0 / (x + fraction(x)) } else { upper_tail(x) * (0.5 * x * x).exp() * ROOT_TWO_PI }
}

/// m(x) − m(x + h) for x ≥ 3 and h ≥ 0, as ∫ (1 − t·m(t)) dt where a difference would cancel.
fn far_mills_gap(x: f64, h: f64) -> f64 {
    if h <= x {
        // 1 − t·m(t) = fraction·m; it varies on the scale of t itself, so 16 points are plenty for [x, 2x].
        integral(x, h, |t| {
            let rest = fraction(t);
            rest / (t + rest)
        })
    } else {
        mills(x) - mills(x + h)
    }
}

/// Q(y) − φ(y)/φ(y+h) · Q(y+h), for h ≥ 0: what an event y < N keeps after being weighed against the same event for a
/// mean that lies h lower, at the point where the two densities balance.
///
/// Every hockey-stick divergence of Gaussians and of mixtures of them is a positive combination of these
/// (see [`pair`](crate::accountant::pair)), so none of them is ever a difference of nearly equal numbers.
pub fn gap(y: f64, h: f64) -> f64 {
    if y >= FAR { density(y) * far_mills_gap(y, h) } else { near_gap(y, h) }
}

/// ln [`gap`]: does not underflow.
pub(crate) fn ln_gap(y: f64, h: f64) -> f64 {
    if y >= FAR { -0.5 * y * y - LN_ROOT_TWO_PI + far_mills_gap(y, h).ln() } else { near_gap(y, h).ln() }
}

/// [`gap`] for y < 3.
fn near_gap(y: f64, h: f64) -> f64 {
    let quadrature = if y < -1.0 { h * -y <= 1.0 } else { h <= 1.0 };
    if quadrature {
        // φ(y) ∫ (1 − t·m(t)) dt, with φ(y) drawn in: φ(y)·t·m(t) = t·Q(t)·exp((t−y)(t+y)/2).
        let scale = density(y);
        integral(y, h, |t| {
            if t >= FAR {
                let rest = fraction(t);
                scale * rest / (t + rest)
            } else {
                scale - t * upper_tail(t) * (0.5 * (t - y) * (t + y)).exp()
            }
        })
    } else if y + h >= FAR {
        upper_tail(y) - density(y) * mills(y + h)
    } else {
        upper_tail(y) - upper_tail(y + h) * (h * (y + 0.5 * h)).exp()
    }
}

/// The x with Q(x) = p, for p in [0, 1]; ±∞ at the ends.
///
/// ```
/// use whit_account::normal::upper_quantile;
/// assert!((upper_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-15);
/// assert_eq!(upper_quantile(0.5), 0.0);
/// ```
pub fn upper_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -upper_quantile_below_half(1.0 - p);
    }
    upper_quantile_below_half(p)
}

/// The x with Φ(x) = p.
pub fn quantile(p: f64) -> f64 {
    -upper_quantile(p)
}

fn upper_quantile_below_half(p: f64) -> f64 {
    if p > 0.25 {
        // Near the centre: Newton on the odd function ½·erf(x/√2) = ½ − p, exact in relative terms.
        let target = 0.5 - p;
        let mut x = target * ROOT_TWO_PI;
        for _ in 0..5 {
            x -= (0.5 * libm::erf(x * FRAC_1_SQRT_2) - target) / density(x);
        }
        return x;
    }
    upper_quantile_ln(p.ln())
}

/// The x ≥ 0 with ln Q(x) = `ln_p`, for ln_p ≤ ln ½: reaches where p itself would underflow.
///
/// Newton's method on ln Q, which is concave and falls; from √(−2 ln 2p), which is to the right of the root because
/// Q(x) ≤ ½·exp(−x²/2), each step stays to the right, so it converges from everywhere.
pub(crate) fn upper_quantile_ln(ln_p: f64) -> f64 {
    if ln_p == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    let mut x = (-2.0 * (ln_p + std::f64::consts::LN_2)).max(0.0).sqrt();
    for _ in 0..50 {
        let step = (ln_upper_tail(x) - ln_p) * mills(x);
        x += step;
        if step.abs() <= 1e-16 * x {
            break;
        }
    }
    x.max(0.0)
}

/// ε/μ − μ/2, whose two parts are nearly equal where ε and μ are large: as (ε − μ²/2)/μ with all digits of the square.
fn centred(epsilon: f64, mu: f64) -> f64 {
    let square = mu * mu;
    if square == f64::INFINITY || square < 1e-280 {
        return epsilon / mu - 0.5 * mu; // where μ² is no number, its rest is none either
    }
    let rest = mu.mul_add(mu, -square);
    ((epsilon - 0.5 * square) - 0.5 * rest) / mu
}

/// δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ): the exact privacy profile of Gaussian noise whose standard deviation is
/// 1/μ times the distance of neighbours (Balle and Wang 2018, Theorem 8).
///
/// With a = ε/μ − μ/2 and b = ε/μ + μ/2, b² − a² = 2ε, so that e^ε·Q(b) = φ(a)·m(b) and δ is [`gap`]`(a, μ)`: positive
/// and accurate to about 1e-12 relative, also where it is 1e-300 or where e^ε overflows.
///
/// It is not the probability that the loss exceeds ε, which at μ = ε = 1 is 0.3085 (erratum C4):
/// ```
/// use whit_account::normal::gaussian_delta;
/// assert!((gaussian_delta(1.0, 1.0) - 0.126_936_737_506_643_94).abs() < 1e-15);
/// ```
pub fn gaussian_delta(epsilon: f64, mu: f64) -> f64 {
    if mu == 0.0 || epsilon == f64::INFINITY {
        0.0
    } else if mu == f64::INFINITY {
        1.0
    } else {
        gap(centred(epsilon, mu), mu)
    }
}

/// ln of [`gaussian_delta`].
pub(crate) fn ln_gaussian_delta(epsilon: f64, mu: f64) -> f64 {
    if mu == 0.0 || epsilon == f64::INFINITY {
        f64::NEG_INFINITY
    } else if mu == f64::INFINITY {
        0.0
    } else {
        ln_gap(centred(epsilon, mu), mu)
    }
}

/// What the rounding in ln δ may come to: the solvers below aim that much lower, so that they err on the safe side.
fn hair(ln_delta: f64) -> f64 {
    1e-12 + 2e-15 * ln_delta.abs()
}

/// Finds where a decreasing function crosses 0 between `low` (where it is positive) and `high` (where it is not),
/// by Newton's method kept inside the bracket. `f` gives value and slope. Answers the last bracket.
pub(crate) fn crossing(mut low: f64, mut high: f64, f: impl Fn(f64) -> (f64, f64)) -> (f64, f64) {
    let mut x = high;
    for round in 0..200 {
        let (value, slope) = f(x);
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
        let width = high - low;
        if width <= 1e-15 * high.abs() || width <= f64::MIN_POSITIVE {
            break;
        }
        // Step a little past Newton's point, so that both ends of the bracket close in on the root.
        let newton = x - value / slope;
        let past = if value > 0.0 { 1.0 } else { -1.0 } * 1e-15 * newton.abs();
        x = newton + past;
        if !(x > low && x < high) || round % 8 == 7 {
            x = 0.5 * (low + high);
        }
    }
    (low, high)
}

/// The smallest ε at which Gaussian noise with parameter μ is (ε, δ)-differentially private, rounded up by a hair;
/// 0 where δ is at least the total variation distance, infinite where δ = 0.
///
/// ```
/// use whit_account::normal::gaussian_epsilon_up;
/// let epsilon = gaussian_epsilon_up(1e-5, 1.0);
/// assert!(epsilon >= 4.377_178_095_681_224_5 && epsilon < 4.377_178_095_7);
/// ```
pub fn gaussian_epsilon_up(delta: f64, mu: f64) -> f64 {
    if mu == 0.0 || delta >= 1.0 {
        return 0.0;
    }
    if delta <= 0.0 || mu == f64::INFINITY {
        return f64::INFINITY;
    }
    let aim = delta.ln() - hair(delta.ln());
    if ln_gaussian_delta(0.0, mu) <= aim {
        return 0.0;
    }
    // δ(ε) ≤ Q(a), so the ε at which Q(a) = δ is large enough.
    let a = if delta < 0.5 { upper_quantile_ln(aim.min(-std::f64::consts::LN_2)) } else { upper_quantile(delta) };
    let mut high = (mu * (a + 0.5 * mu) * (1.0 + 1e-12)).max(f64::MIN_POSITIVE);
    while ln_gaussian_delta(high, mu) > aim {
        high *= 2.0;
    }
    let (_, epsilon) = crossing(0.0, high, |epsilon| {
        let ln = ln_gaussian_delta(epsilon, mu);
        // dδ/dε = −e^ε·Q(b)
        let slope = -(epsilon + ln_upper_tail(epsilon / mu + 0.5 * mu) - ln).exp();
        (ln - aim, slope)
    });
    epsilon.next_up()
}

/// The largest μ at which Gaussian noise is (ε, δ)-differentially private, rounded down by a hair; 0 where δ = 0.
pub fn gaussian_mu_down(epsilon: f64, delta: f64) -> f64 {
    if delta >= 1.0 || epsilon == f64::INFINITY {
        return f64::INFINITY;
    }
    if delta <= 0.0 {
        return 0.0;
    }
    let aim = delta.ln() - hair(delta.ln());
    // δ√(2π) is small enough for ε = 0, hence for every ε; and so is the μ at which Q(a) = δ, a = ε/μ − μ/2.
    let mut small = delta * ROOT_TWO_PI;
    if delta < 0.5 {
        let a = upper_quantile_ln(aim.min(-std::f64::consts::LN_2));
        small = small.max(2.0 * epsilon / (a + (a * a + 2.0 * epsilon).sqrt()));
    }
    while ln_gaussian_delta(epsilon, small) > aim {
        small *= 0.5;
    }
    let mut large = 2.0 * small;
    while ln_gaussian_delta(epsilon, large) <= aim {
        (small, large) = (large, 2.0 * large);
    }
    // In terms of −μ the profile falls.
    let (_, negative) = crossing(-large, -small, |negative| {
        let mu = -negative;
        let ln = ln_gaussian_delta(epsilon, mu);
        let a = centred(epsilon, mu);
        // dδ/dμ = φ(a)
        (ln - aim, -(-0.5 * a * a - LN_ROOT_TWO_PI - ln).exp())
    });
    (-negative).next_down()
}

/// The smallest standard deviation of Gaussian noise that makes a statistic of ℓ2 sensitivity `sensitivity`
/// (ε, δ)-differentially private, rounded up by a hair: the analytic mechanism of Balle and Wang (2018).
///
/// The closed formulas of the literature are unsound for large ε (erratum E13) and waste noise for small ε.
/// ```
/// use whit_account::normal::gaussian_sigma_up;
/// let sigma = gaussian_sigma_up(1.0, 1e-5, 1.0);
/// assert!(sigma >= 3.730_631_634_815_942 && sigma < 3.730_631_635);
/// ```
pub fn gaussian_sigma_up(epsilon: f64, delta: f64, sensitivity: f64) -> f64 {
    if sensitivity == 0.0 {
        return 0.0;
    }
    (sensitivity / gaussian_mu_down(epsilon, delta)).next_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ε, μ, ln δ(ε; μ), worked out with 400 digits.
    const PROFILE: &[(f64, f64, f64)] = &[
        (0.0, 1e-9, -21.642_204_370_151_084),
        (0.0, 1e-4, -10.129_278_905_597_522),
        (0.0, 0.02, -4.830_978_205_188_375),
        (0.0, 0.3, -2.126_655_716_552_974),
        (0.0, 1.0, -0.959_916_333_695_622_3),
        (0.0, 5.0, -0.012_497_095_063_904_89),
        (1e-9, 1e-9, -23.208_386_862_159_053),
        (1e-9, 1e-4, -10.129_291_438_267_44),
        (1e-9, 0.02, -4.830_978_267_355_126_5),
        (1e-9, 0.3, -2.126_655_720_246_36),
        (1e-9, 1.0, -0.959_916_334_501_361_3),
        (1e-9, 5.0, -0.012_497_095_070_192_645),
        (1e-3, 1e-9, -500_000_000_049.272_7),
        (1e-3, 1e-4, -64.762_962_409_325_13),
        (1e-3, 0.02, -4.893_862_119_423_823),
        (1e-3, 0.3, -2.130_352_256_948_051),
        (1e-3, 1.0, -0.960_722_340_486_141_1),
        (1e-3, 5.0, -0.012_503_384_207_881_389),
        (0.5, 1e-9, -1.250_000_000_000_000_5e17),
        (0.5, 1e-4, -12_500_026.913_665_408),
        (0.5, 0.02, -323.523_536_428_688_4),
        (0.5, 0.3, -4.883_102_530_483_256),
        (0.5, 1.0, -1.433_714_290_323_697_7),
        (0.5, 5.0, -0.016_010_014_832_908_787),
        (1.0, 1e-9, -5.0e17),
        (1.0, 1e-4, -50_000_028.049_959_674),
        (1.0, 0.02, -1_262.156_255_834_000_6),
        (1.0, 0.3, -9.810_224_986_824_709),
        (1.0, 1.0, -2.064_066_446_500_390_4),
        (1.0, 5.0, -0.020_354_067_659_902_643),
        (10.0, 1e-9, -4.999_999_999_999_999e19),
        (10.0, 1e-4, -5_000_000_028.155_129),
        (10.0, 0.02, -125_012.260_239_734_9),
        (10.0, 0.3, -559.705_504_108_871_1),
        (10.0, 1.0, -50.675_779_079_990_114),
        (10.0, 5.0, -0.483_496_278_363_721_67),
        (100.0, 1e-9, -4.999_999_999_999_999e21),
        (100.0, 1e-4, -499_999_999_987.760_25),
        (100.0, 0.02, -12_499_971.865_398_042),
        (100.0, 0.3, -55_519.308_029_670_38),
        (100.0, 1.0, -4_960.254_553_817_421),
        (100.0, 5.0, -158.417_925_673_341_07),
        (100.0, 40.0, -1.274_213_729_980_127_6e-68),
        (1_000.0, 1e-9, -4.999_999_999_999_999e23),
        (1_000.0, 1e-4, -49_999_999_999_542.36),
        (1_000.0, 0.02, -1_249_999_526.470_568_2),
        (1_000.0, 0.3, -5_555_073.913_173_328),
        (1_000.0, 1.0, -499_514.859_451_841_16),
        (1_000.0, 5.0, -19_513.031_054_112_44),
        (1_000.0, 40.0, -15.187_390_698_916_74),
        (1e6, 1e-9, -4.999_999_999_999_999_4e29),
        (1e6, 1e-4, -4.999_999_999_999_949e19),
        (1e6, 0.02, -1_249_999_999_500_040.2),
        (1e6, 0.3, -5_555_555_055_587.729_5),
        (1e6, 1.0, -499_999_500_028.675),
        (1e6, 5.0, -19_999_500_026.846_645),
        (1e6, 40.0, -312_000_217.483_320_65),
        (1e6, 1_000.0, -125_007.539_017_517_45),
    ];

    #[test]
    fn the_gaussian_profile_is_accurate_from_total_variation_to_the_far_tail() {
        for &(epsilon, mu, expected) in PROFILE {
            let found = ln_gaussian_delta(epsilon, mu);
            // ε/μ is rounded once, and enters squared: so much cannot be known from f64 inputs alone.
            let tolerance = 1e-13 + 6e-16 * expected.abs();
            assert!((found - expected).abs() <= tolerance, "ε {epsilon}, μ {mu}: {found} for {expected}");
        }
    }

    #[test]
    fn the_profile_is_no_nan_and_no_more_than_one_and_falls_in_epsilon() {
        for mu in (-27..=27).map(|k| 10_f64.powf(f64::from(k) / 3.0).min(1e4)) {
            let mut before = 1.0;
            for epsilon in [0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 7.0, 50.0, 700.0, 1e4, 1e6] {
                let delta = gaussian_delta(epsilon, mu);
                assert!((0.0..=before).contains(&delta), "ε {epsilon}, μ {mu}: {delta} after {before}");
                before = delta;
            }
        }
    }

    #[test]
    fn solvers_land_on_the_safe_side_and_close() {
        for &mu in &[1e-6, 1e-3, 0.1, 1.0, 3.0, 30.0, 1e3] {
            for &delta in &[1e-300, 1e-30, 1e-9, 1e-5, 0.01, 0.3, 0.9] {
                let epsilon = gaussian_epsilon_up(delta, mu);
                let at = gaussian_delta(epsilon, mu);
                assert!(at <= delta, "δ {delta}, μ {mu}: {at}");
                if epsilon == 0.0 {
                    continue;
                }
                assert!(
                    gaussian_delta(epsilon * (1.0 - 1e-9), mu) > delta * (1.0 - 1e-12),
                    "δ {delta}, μ {mu}: ε {epsilon}"
                );
                let back = gaussian_mu_down(epsilon, delta);
                assert!(
                    gaussian_delta(epsilon, back) <= delta && (back / mu - 1.0).abs() < 1e-9,
                    "δ {delta}, μ {mu}: {back}"
                );
            }
        }
        assert_eq!(gaussian_epsilon_up(0.5, 1.0), 0.0);
        assert_eq!(gaussian_epsilon_up(0.0, 1.0), f64::INFINITY);
        assert_eq!(gaussian_sigma_up(1.0, 0.0, 1.0), f64::INFINITY);
    }

    #[test]
    fn quantiles_agree_with_many_digits_also_far_out() {
        for (p, expected) in [
            (0.499_999_999, 2.506_628_342_884_532_8e-9),
            (0.4, 0.253_347_103_135_799_7),
            (0.26, 0.643_345_405_392_917),
            (0.25, 0.674_489_750_196_081_7),
            (0.1, 1.281_551_565_544_600_4),
            (1e-3, 3.090_232_306_167_813_6),
            (1e-10, 6.361_340_902_404_057),
            (1e-100, 21.273_453_560_965_326),
            (1e-300, 37.047_096_299_361_2),
        ] {
            let found = upper_quantile(p);
            assert!((found / expected - 1.0).abs() < 1e-15, "p {p}: {found:e} for {expected:e}");
            assert_eq!(quantile(p), -found);
        }
        assert!((upper_quantile_ln(-1000.0) / 44.615_747_731_969_4 - 1.0).abs() < 1e-15);
        assert!((upper_quantile_ln(-1e6) / 1_414.207_782_991_017_2 - 1.0).abs() < 1e-15);
        assert_eq!(upper_quantile(0.0), f64::INFINITY);
        assert_eq!(upper_quantile(1.0), f64::NEG_INFINITY);
        assert!((upper_quantile(0.9) + upper_quantile(0.1)).abs() < 1e-15);
    }

    /// Erratum E13: closed formulas for σ fall below what the exact profile asks, for large ε.
    #[test]
    fn the_short_papers_sigma_and_dwork_and_roths_are_too_small_for_large_epsilon() {
        let (epsilon, delta) = (10.0, 1e-5_f64);
        let short_paper = (2.0 * (1.0 / delta).ln()).sqrt() / epsilon;
        let dwork_roth = (2.0 * (1.25 / delta).ln()).sqrt() / epsilon;
        let full_paper = (1.0 / epsilon + 2.0 * (1.0 / delta).ln() / (epsilon * epsilon)).sqrt();
        let ours = gaussian_sigma_up(epsilon, delta, 1.0);
        assert!((short_paper - 0.47985).abs() < 1e-5 && (dwork_roth - 0.48448).abs() < 1e-5);
        assert!((full_paper - 0.57468).abs() < 1e-5 && (ours - 0.49989).abs() < 1e-5);
        assert!((gaussian_delta(epsilon, 1.0 / short_paper) - 2.883e-5).abs() < 1e-8, "as in the errata");
        assert!(gaussian_delta(epsilon, 1.0 / dwork_roth) > delta);
        assert!(gaussian_delta(epsilon, 1.0 / full_paper) <= delta);
        assert!(gaussian_delta(epsilon, 1.0 / ours) <= delta);
        // Where the short paper's formula begins to fail.
        for (delta, limit) in [(1e-5_f64, 7.968), (1e-3, 6.978), (1e-6, 8.339)] {
            let slack = |epsilon: f64| gaussian_delta(epsilon, epsilon / (2.0 * (1.0 / delta).ln()).sqrt()) - delta;
            assert!(slack(limit - 0.002) < 0.0 && slack(limit + 0.002) > 0.0);
        }
        // The full paper's formula is not monotone: it jumps up just above ε = 1.
        let sigma = |e: f64| (f64::from(u8::from(e > 1.0)) / e + 2.0 * 1e5_f64.ln() / (e * e)).sqrt();
        assert!((sigma(1.0) - 4.79853).abs() < 1e-5 && (sigma(1.0001) - 4.90114).abs() < 1e-5);
        assert!(gaussian_sigma_up(1.0, 1e-5, 1.0) > gaussian_sigma_up(1.0001, 1e-5, 1.0));
    }

    /// Erratum C4: δ is not the probability that the loss exceeds ε.
    #[test]
    fn delta_is_less_than_the_probability_of_a_large_loss() {
        // The loss of N(0,1) against N(1,1) is normal with mean ½ and variance 1.
        let large_loss = upper_tail(1.0 - 0.5);
        assert!((large_loss - 0.308_538).abs() < 1e-6);
        assert!((gaussian_delta(1.0, 1.0) - 0.126_937).abs() < 1e-6);
    }
}
