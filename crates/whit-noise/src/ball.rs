//! Numbers with a proven error: a fixed-point midpoint and a radius, both integers, at any precision.
//!
//! The samplers come here about once in 10⁸ draws, to settle what an `f64` could not. Every operation widens the
//! radius by at least what it may have lost, so the true value is always inside.

use dashu_int::ops::{BitTest, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, UBig};

/// All reals between `(mid − radius)·2^-precision` and `(mid + radius)·2^-precision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ball {
    mid: IBig,
    radius: IBig,
    precision: usize,
}

impl Ball {
    /// The fraction `numerator / denominator`, the denominator not 0.
    pub fn ratio(numerator: &IBig, denominator: &IBig, precision: usize) -> Self {
        // Division truncates towards zero, so it is off by less than one.
        Self { mid: (numerator << precision) / denominator, radius: IBig::ONE, precision }
    }

    /// A whole number, exactly.
    pub fn integer(value: &IBig, precision: usize) -> Self {
        Self { mid: value << precision, radius: IBig::ZERO, precision }
    }

    /// The lower end, as an integer multiple of `2^-precision`.
    pub fn low(&self) -> IBig {
        &self.mid - &self.radius
    }

    /// The upper end, as an integer multiple of `2^-precision`.
    pub fn high(&self) -> IBig {
        &self.mid + &self.radius
    }

    /// How many bits stand behind the point.
    pub fn precision(&self) -> usize {
        self.precision
    }

    /// The number between `low` and `high` multiples of `2^-precision`.
    pub fn between(low: &IBig, high: &IBig, precision: usize) -> Self {
        let mid: IBig = (low + high) >> 1;
        let radius = (high - &mid).max(&mid - low);
        Self { mid, radius, precision }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { mid: &self.mid + &other.mid, radius: &self.radius + &other.radius, precision: self.precision }
    }

    /// The difference.
    #[must_use]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self { mid: &self.mid - &other.mid, radius: &self.radius + &other.radius, precision: self.precision }
    }

    /// The product: the cross terms of the radii, and one for the shift.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let (a, b) = (abs(&self.mid), abs(&other.mid));
        let spread = &self.radius * (b + &other.radius) + &other.radius * a;
        Self {
            mid: (&self.mid * &other.mid) >> self.precision,
            radius: (spread >> self.precision) + IBig::from(2),
            precision: self.precision,
        }
    }

    /// Divided by a small whole number.
    #[must_use]
    pub fn over(&self, divisor: u64) -> Self {
        let divisor = IBig::from(divisor);
        Self { mid: &self.mid / &divisor, radius: &self.radius / &divisor + IBig::from(2), precision: self.precision }
    }

    /// Times a power of two.
    #[must_use]
    pub(crate) fn doubled(&self, times: usize) -> Self {
        Self { mid: &self.mid << times, radius: &self.radius << times, precision: self.precision }
    }

    /// The quotient; the divisor must not contain 0.
    ///
    /// # Panics
    /// When it does.
    #[must_use]
    pub(crate) fn divided_by(&self, other: &Self) -> Self {
        let smallest = abs(&other.mid) - &other.radius;
        assert!(smallest > IBig::ZERO, "a divisor that may be zero");
        let mid = (&self.mid << self.precision) / &other.mid;
        // |a/b − ã/b̃| ≤ (ra + |ã/b̃|·rb) / (|b̃| − rb)
        let spread = (&self.radius << self.precision) + (abs(&mid) + IBig::ONE) * &other.radius;
        Self { mid, radius: spread / smallest + IBig::from(2), precision: self.precision }
    }

    /// The same number with fewer bits behind the point.
    #[must_use]
    pub fn at(&self, precision: usize) -> Self {
        let drop = self.precision - precision;
        Self { mid: &self.mid >> drop, radius: (&self.radius >> drop) + IBig::from(2), precision }
    }

    /// Admits an error as large as `term` can be.
    fn widen_by(&mut self, term: &Self) {
        self.radius += abs(&term.mid) + &term.radius + IBig::ONE;
    }

    /// A float near the middle, for tests and first guesses.
    pub fn to_f64(&self) -> f64 {
        let excess = self.precision.saturating_sub(900);
        let mid = &self.mid >> excess;
        mid.to_f64().value() * 2f64.powi(-((self.precision - excess) as i32))
    }
}

fn abs(value: &IBig) -> IBig {
    if *value < IBig::ZERO { -value } else { value.clone() }
}

/// e^-x for the fraction x = `numerator / denominator` ≥ 0.
///
/// x is halved until it is below 2^-8, the series Σ (−x)ⁿ/n! is summed until its terms vanish (it alternates, so the
/// remainder is below the first term left out), and the result is squared as often as x was halved.
pub fn exp_minus(numerator: &IBig, denominator: &IBig, precision: usize) -> Ball {
    let whole: IBig = numerator / denominator;
    if whole > IBig::from(precision + 2) {
        // e^-x < 2^-precision: all that is known at this precision is that it lies in [0, 1] last places.
        return Ball { mid: IBig::ZERO, radius: IBig::ONE, precision };
    }
    let halvings = 8 + bit_length(&(&whole + IBig::ONE));
    let work = precision + 2 * halvings + 16;
    let x = Ball::ratio(numerator, &(denominator << halvings), work);
    let (mut sum, mut term) = (Ball::integer(&IBig::ONE, work), Ball::integer(&IBig::ONE, work));
    for n in 1.. {
        term = term.times(&x).over(n);
        sum = if n % 2 == 1 { sum.minus(&term) } else { sum.plus(&term) };
        if abs(&term.mid) <= IBig::from(4) {
            break;
        }
    }
    sum.widen_by(&term); // the series alternates: the remainder is below the last term
    for _ in 0..halvings {
        sum = sum.times(&sum);
    }
    sum.at(precision)
}

fn bit_length(value: &IBig) -> usize {
    value.clone().unsigned_abs().bit_len()
}

/// −ln(`numerator / denominator`) for a fraction in (0, 1].
///
/// The fraction is doubled into (1/2, 1]; there ln m = −2·artanh((1−m)/(1+m)), whose argument is at most 1/3.
///
/// # Panics
/// When the fraction is not in (0, 1].
pub(crate) fn minus_ln(numerator: &IBig, denominator: &IBig, precision: usize) -> Ball {
    assert!(*numerator > IBig::ZERO && numerator <= denominator, "a logarithm outside (0, 1]");
    let mut doublings = bit_length(denominator) - bit_length(numerator);
    if numerator << doublings > *denominator {
        doublings -= 1;
    }
    let work = precision + 24 + bit_length(&IBig::from(doublings));
    let m = numerator << doublings;
    let main = artanh(&(denominator - &m), &(denominator + &m), work).doubled(1);
    let ln2 = artanh(&IBig::ONE, &IBig::from(3), work).doubled(1);
    main.plus(&ln2.times(&Ball::integer(&IBig::from(doublings), work))).at(precision)
}

/// artanh(a/b) for 0 ≤ a/b ≤ 1/3: Σ x^(2n+1)/(2n+1). What follows a term is below a seventh of it.
fn artanh(a: &IBig, b: &IBig, precision: usize) -> Ball {
    let x = Ball::ratio(a, b, precision);
    let square = x.times(&x);
    let (mut power, mut sum) = (x.clone(), x);
    for n in 1.. {
        power = power.times(&square);
        sum = sum.plus(&power.over(2 * n + 1));
        if abs(&power.mid) <= IBig::from(4) {
            break;
        }
    }
    sum.widen_by(&power);
    sum
}

/// π by Machin's formula, 16·arctan(1/5) − 4·arctan(1/239).
fn pi(precision: usize) -> Ball {
    fn arctan_of_inverse(k: u64, precision: usize) -> Ball {
        let mut power = Ball::ratio(&IBig::ONE, &IBig::from(k), precision);
        let mut sum = power.clone();
        for n in 1.. {
            power = power.over(k * k);
            let term = power.over(2 * n + 1);
            sum = if n % 2 == 1 { sum.minus(&term) } else { sum.plus(&term) };
            if abs(&power.mid) <= IBig::from(4) {
                break;
            }
        }
        sum.widen_by(&power); // alternating: below the last term
        sum
    }
    let work = precision + 16;
    arctan_of_inverse(5, work).doubled(4).minus(&arctan_of_inverse(239, work).doubled(2)).at(precision)
}

/// √(2π).
fn root_of_two_pi(precision: usize) -> Ball {
    let two_pi = pi(precision).doubled(1);
    // √ of an integer multiple of 2^-2p is an integer multiple of 2^-p, off by less than one.
    let root = |value: &IBig| -> IBig {
        let value: UBig = (value << precision).unsigned_abs();
        IBig::from(value.sqrt())
    };
    Ball::between(&root(&two_pi.low()), &(root(&two_pi.high()) + IBig::ONE), precision)
}

/// The upper tail of the standard normal law beyond x = `numerator / denominator` ≥ 0.
///
/// Q(x) = 1/2 − e^(−x²/2)/√(2π) · Σ x^(2n+1)/(1·3·5···(2n+1)), a series of positive terms. Its sum is as large as
/// e^(x²/2), so that many more bits are carried. After the terms have begun to halve, what is left is below the last.
///
/// # Panics
/// Never: the exponent that is converted was compared with the precision first.
pub fn normal_tail(numerator: &IBig, denominator: &IBig, precision: usize) -> Ball {
    let (square, square_denominator) = (numerator * numerator, (denominator * denominator) << 1); // x²/2
    let y: IBig = &square / &square_denominator;
    if y > IBig::from(2 * precision + 64) {
        return Ball { mid: IBig::ZERO, radius: IBig::ONE, precision }; // Q(x) < e^(−x²/2) < 2^-precision
    }
    let lost = usize::try_from(&y).expect("bounded above") * 3 / 2 + 64;
    let work = precision + lost;
    let x = Ball::ratio(numerator, denominator, work);
    let x2 = x.times(&x);
    let (mut term, mut sum) = (x.clone(), x);
    for n in 1_u64.. {
        term = term.times(&x2).over(2 * n + 1);
        sum = sum.plus(&term);
        if abs(&term.mid) <= IBig::from(4) && IBig::from(2 * n + 1) > (&y + IBig::ONE) << 2 {
            break;
        }
    }
    sum.widen_by(&term); // ratios of terms are below 1/2 by now, so the rest is below the last term
    let density = exp_minus(&square, &square_denominator, work).divided_by(&root_of_two_pi(work));
    let half = Ball::ratio(&IBig::ONE, &IBig::from(2), work);
    half.minus(&density.times(&sum)).at(precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> IBig {
        IBig::from(value)
    }

    /// The first hundred bits agree with published digits, and the radius is honest: a ball at low precision
    /// contains the ball at high precision.
    fn contains(coarse: &Ball, fine: &Ball) -> bool {
        let shift = fine.precision - coarse.precision;
        (coarse.low() << shift) <= fine.low() && fine.high() <= (coarse.high() << shift)
    }

    #[test]
    fn values_agree_with_known_digits() {
        let close = |ball: Ball, digits: &str| {
            let scale = IBig::from(10).pow(digits.split('.').nth(1).unwrap().len());
            let shown = ((ball.low() * &scale) >> ball.precision, (ball.high() * &scale) >> ball.precision);
            let expected: IBig = digits.replace('.', "").parse().unwrap();
            assert!(shown.0 <= expected && expected <= &shown.1 + IBig::ONE, "{shown:?} is not {expected}");
            assert!(ball.radius < IBig::ONE << 24, "a radius of {} last places is not useful", ball.radius);
        };
        close(pi(200), "3.14159265358979323846264338327950288419716939937510");
        close(root_of_two_pi(200), "2.50662827463100050241576528481104525300698674060993");
        close(exp_minus(&int(1), &int(1), 200), "0.36787944117144232159552377016146086744581113103176");
        close(exp_minus(&int(100), &int(3), 200), "0.00000000000000333823779536500618782659511723680598");
        close(minus_ln(&int(1), &int(10), 200), "2.30258509299404568401799145468436420760110148862877");
        close(normal_tail(&int(1), &int(1), 200), "0.15865525393145705141476745436796207752208703327339");
        close(normal_tail(&int(0), &int(1), 200), "0.50000000000000000000000000000000000000000000000000");
        close(normal_tail(&int(10), &int(1), 250), "0.00000000000000000000000761985302416052606597334325159");
    }

    #[test]
    fn a_coarse_ball_contains_every_finer_one() {
        for (a, b) in [(1, 7), (3, 2), (40, 3), (1, 1000), (333, 10)] {
            for precision in [20, 64, 130] {
                let (n, d) = (int(a), int(b));
                assert!(contains(&exp_minus(&n, &d, precision), &exp_minus(&n, &d, precision + 200)), "e^-{a}/{b}");
                assert!(contains(&normal_tail(&n, &d, precision), &normal_tail(&n, &d, precision + 200)), "Q({a}/{b})");
                if a < b {
                    assert!(contains(&minus_ln(&n, &d, precision), &minus_ln(&n, &d, precision + 200)), "ln {a}/{b}");
                }
            }
        }
    }
}
