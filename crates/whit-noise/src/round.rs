//! Directed rounding: floats that are not below, or not above, what is exact.
//!
//! An upper bound rounds up and a lower one down, each step by itself, so that what comes out is a bound whatever went in. Where the
//! exact result is a float, it is that one. All take numbers that are not negative, infinity included; NaN stays NaN.

pub use crate::whole::whole_up;

use crate::ratio::{BadRatio, Ratio};

/// Below this, what a product or a quotient rounds away may itself be too small for a float, and no sign tells of it.
const TINY: f64 = 1e-250;

/// A float that is not below the fraction: itself where it is a float.
#[must_use]
pub fn ratio_up(ratio: &Ratio) -> f64 {
    let near = ratio.to_f64();
    if Ratio::from_f64_up(near).is_ok_and(|exact| exact == *ratio) { near } else { ratio.to_f64_up() }
}

/// A float that is not above the fraction: itself where it is a float.
#[must_use]
pub fn ratio_down(ratio: &Ratio) -> f64 {
    let near = ratio.to_f64();
    if Ratio::from_f64_down(near).is_ok_and(|exact| exact == *ratio) { near } else { ratio.to_f64_down() }
}

/// A fraction that is not below the product: the product itself where one can be.
pub fn ratio_product_up(a: &Ratio, b: &Ratio) -> Result<Ratio, BadRatio> {
    a.times(b).map_or_else(|| Ratio::from_f64_up((a.to_f64_up() * b.to_f64_up()).next_up()), Ok)
}

/// The sum of two numbers.
#[must_use]
pub fn sum_up(a: f64, b: f64) -> f64 {
    let near = a + b;
    if near.is_infinite() {
        return near;
    }
    // What the addition rounded away, exactly (Knuth).
    let moved = near - a;
    let lost = (a - (near - moved)) + (b - moved);
    if lost > 0.0 { near.next_up() } else { near }
}

/// The product of two numbers; nothing times anything is nothing.
///
/// ```
/// use whit_noise::round;
/// assert_eq!(round::product_up(3.0, 4.0), 12.0);
/// assert!(round::product_up(0.1, 3.0) > 0.3);
/// ```
#[must_use]
pub fn product_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        return 0.0;
    }
    let near = a * b;
    // What rounding took away is a float itself, unless it is too small for one.
    let exact = near.is_infinite() || (near > TINY && a.mul_add(b, -near) <= 0.0);
    if exact { near } else { near.next_up() }
}

/// The quotient of two numbers, of which the lower is above 0.
#[must_use]
pub fn quotient_up(above: f64, below: f64) -> f64 {
    if above == 0.0 {
        return 0.0;
    }
    let near = above / below;
    let exact = near.is_infinite() || (near.min(above) > TINY && near.mul_add(below, -above) >= 0.0);
    if exact { near } else { near.next_up() }
}

/// The quotient of two numbers, of which the lower is above 0.
#[must_use]
pub fn quotient_down(above: f64, below: f64) -> f64 {
    let near = above / below;
    let exact = near == 0.0 || (near.min(above) > TINY && near.mul_add(below, -above) <= 0.0);
    if exact { near } else { near.next_down() }
}

/// The root of a number.
#[must_use]
pub fn root_up(square: f64) -> f64 {
    let near = square.sqrt();
    let exact = square == 0.0 || square.is_infinite() || (square > TINY && near.mul_add(near, -square) >= 0.0);
    if exact { near } else { near.next_up() }
}

/// The root of a whole number, but for what [`whole_up`] adds.
#[must_use]
pub fn root_of_whole_up(square: u128) -> f64 {
    root_up(whole_up(square))
}

/// `count · size`.
#[must_use]
pub fn whole_product_up(count: u128, size: u128) -> f64 {
    count.checked_mul(size).map_or_else(|| product_up(whole_up(count), whole_up(size)), whole_up)
}

/// `√count · size`: exact under the root where that fits into 128 bits.
#[must_use]
pub fn root_times_up(count: u128, size: u128) -> f64 {
    let square = size.checked_mul(size).and_then(|square| square.checked_mul(count));
    square.map_or_else(|| product_up(root_of_whole_up(count), whole_up(size)), root_of_whole_up)
}

/// At least the Euclidean norm of numbers of any size and sign: scaled by the largest of them, so that no square vanishes that counts and
/// none overflows. Infinite where one is infinite or no number. It is more than the norm by a part in 2^52 for each number, at most.
#[must_use]
pub fn norm_up(values: &[f64]) -> f64 {
    let largest =
        values.iter().fold(0.0_f64, |most, value| if value.is_nan() { f64::INFINITY } else { most.max(value.abs()) });
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    // By a power of two, which is exact; what vanishes of small numbers is less than what the raise adds.
    let scale = f64::from_bits((largest.to_bits() & (0x7ff << 52)).max(1 << 52));
    let squares: f64 = values.iter().map(|value| (value / scale) * (value / scale)).sum();
    (squares.sqrt() * (1.0 + (values.len() as f64 + 8.0) * f64::EPSILON)).next_up() * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::whole_down;
    use crate::{Entropy, Replay};
    use dashu_int::IBig;
    use std::cmp::Ordering;

    /// A fraction without rounding, of which the lower part is above 0.
    #[derive(Debug, Clone)]
    struct Exact(IBig, IBig);

    impl Exact {
        fn of(value: f64) -> Self {
            let bits = value.to_bits();
            let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
            let (mantissa, exponent) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
            let mantissa = IBig::from(mantissa);
            if exponent >= 0 {
                Self(mantissa << exponent as usize, IBig::ONE)
            } else {
                Self(mantissa, IBig::ONE << (-exponent) as usize)
            }
        }

        fn times(&self, other: &Self) -> Self {
            Self(&self.0 * &other.0, &self.1 * &other.1)
        }

        fn over(&self, other: &Self) -> Self {
            Self(&self.0 * &other.1, &self.1 * &other.0)
        }

        fn plus(&self, other: &Self) -> Self {
            Self(&self.0 * &other.1 + &other.0 * &self.1, &self.1 * &other.1)
        }

        fn cmp(&self, other: &Self) -> Ordering {
            (&self.0 * &other.1).cmp(&(&other.0 * &self.1))
        }
    }

    /// Not below, and the float before it is below: the least float that will do.
    fn is_least_above(found: f64, exact: &Exact, what: &str) {
        assert!(Exact::of(found).cmp(exact).is_ge(), "{what}: {found:e} is below");
        let before = found.next_down();
        assert!(found == 0.0 || Exact::of(before).cmp(exact).is_lt(), "{what}: {before:e} would do");
    }

    fn is_largest_below(found: f64, exact: &Exact, what: &str) {
        assert!(Exact::of(found).cmp(exact).is_le(), "{what}: {found:e} is above");
        assert!(Exact::of(found.next_up()).cmp(exact).is_gt(), "{what}: {:e} would do", found.next_up());
    }

    /// Floats with all their bits in use, whole numbers, powers of two and what lies next to them.
    fn numbers() -> Vec<f64> {
        let mut replay = Replay::new(0x20_0d);
        let mut numbers = vec![0.0, 1.0, 3.0, 0.1, 1e100, 1e-100, 2f64.powi(53), f64::EPSILON];
        for power in -60..60 {
            let fraction = 1.0 + replay.bits(52) as f64 * f64::EPSILON;
            let few = f64::from(replay.bits(8) as u32 + 1);
            numbers.extend([fraction * 2f64.powi(power), 2f64.powi(power), 2f64.powi(power).next_up(), few]);
        }
        numbers
    }

    #[test]
    fn sums_products_and_quotients_are_the_nearest_bound_to_exact_fractions() {
        let numbers = numbers();
        for &a in &numbers {
            for &b in &numbers {
                let (x, y, what) = (Exact::of(a), Exact::of(b), format!("{a:e}, {b:e}"));
                is_least_above(sum_up(a, b), &x.plus(&y), &what);
                is_least_above(product_up(a, b), &x.times(&y), &what);
                if b > 0.0 {
                    is_least_above(quotient_up(a, b), &x.over(&y), &what);
                    is_largest_below(quotient_down(a, b), &x.over(&y), &what);
                }
            }
            let root = root_up(a);
            assert!(Exact::of(root).times(&Exact::of(root)).cmp(&Exact::of(a)).is_ge(), "√{a:e}");
            let before = Exact::of(root.next_down().max(0.0));
            assert!(a == 0.0 || before.times(&before).cmp(&Exact::of(a)).is_lt(), "√{a:e}: the least one");
        }
    }

    /// Where what was rounded away is too small for a float, the bound is a step too far rather than one too short.
    #[test]
    fn numbers_at_the_ends_of_floats_are_bounded_too() {
        let small = [5e-324, f64::MIN_POSITIVE, 1e-300, 3.7e-252, 1e-160, 0.1, 3.0, 1e160];
        for a in small {
            for b in small {
                let (x, y) = (Exact::of(a), Exact::of(b));
                let product = product_up(a, b);
                assert!(product.is_infinite() || Exact::of(product).cmp(&x.times(&y)).is_ge(), "{a:e} · {b:e}");
                let (up, down) = (quotient_up(a, b), quotient_down(a, b));
                assert!(up.is_infinite() || Exact::of(up).cmp(&x.over(&y)).is_ge(), "{a:e} / {b:e}");
                assert!(Exact::of(down).cmp(&x.over(&y)).is_le(), "{a:e} / {b:e}: {down:e}");
            }
            let root = Exact::of(root_up(a));
            assert!(root.times(&root).cmp(&Exact::of(a)).is_ge(), "√{a:e}");
        }
        let far = f64::INFINITY;
        assert_eq!([sum_up(far, 1.0), product_up(far, 2.0), root_up(far), quotient_up(far, 2.0)], [far; 4]);
        assert_eq!([product_up(far, 0.0), quotient_down(1.0, far), quotient_up(0.0, 3.0)], [0.0; 3]);
        assert_eq!(quotient_down(f64::MAX, 0.5), f64::MAX, "below infinity is the largest float");
    }

    #[test]
    fn whole_numbers_and_fractions_are_bounded_from_both_sides() {
        for whole in [0, 1, 3, (1 << 53) + 1, (1 << 60) - 1, u128::from(u64::MAX), u128::MAX - 1, u128::MAX] {
            let exact = Exact(IBig::from(whole), IBig::ONE);
            is_least_above(whole_up(whole), &exact, "up");
            is_largest_below(whole_down(whole), &exact, "down");
            assert!(root_of_whole_up(whole).powi(2) >= whole as f64 * (1.0 - f64::EPSILON));
        }
        for square in 0..10_000_u32 {
            let root = root_of_whole_up(square.into());
            assert!(root.mul_add(root, -f64::from(square)) >= 0.0);
            let before = root.next_down();
            assert!(square == 0 || before.mul_add(before, -f64::from(square)) < 0.0, "the least one");
        }
        for (count, size) in
            [(1, 1), (3, 5), (2, 1 << 60), (u128::from(u64::MAX), u128::from(u64::MAX)), (7, u128::MAX)]
        {
            let exact = Exact(IBig::from(count) * IBig::from(size), IBig::ONE);
            let product = whole_product_up(count, size);
            assert!(Exact::of(product).cmp(&exact).is_ge() && product <= count as f64 * size as f64 * (1.0 + 1e-15));
            let root = Exact::of(root_times_up(count, size));
            let square = Exact(IBig::from(count) * IBig::from(size) * IBig::from(size), IBig::ONE);
            assert!(root.times(&root).cmp(&square).is_ge(), "√{count} · {size}");
        }
        for text in ["1/3", "2/3", "0.1", "5/2", "7", "123456789/1000", "1/340282366920938463463374607431"] {
            let ratio: Ratio = text.parse().unwrap();
            let exact = Exact(IBig::from(ratio.numerator()), IBig::from(ratio.denominator()));
            let (up, down) = (ratio_up(&ratio), ratio_down(&ratio));
            assert!(Exact::of(up).cmp(&exact).is_ge() && Exact::of(down).cmp(&exact).is_le(), "{text}");
            assert!(up <= down * (1.0 + 4.0 * f64::EPSILON), "{text}");
            let product = ratio_product_up(&ratio, &"3/7".parse().unwrap()).unwrap();
            let wanted = exact.times(&Exact(IBig::from(3), IBig::from(7)));
            let found = Exact(IBig::from(product.numerator()), IBig::from(product.denominator()));
            assert!(found.cmp(&wanted).is_ge(), "{text}");
        }
        assert_eq!((ratio_up(&Ratio::from(7)), ratio_down(&Ratio::from(7))), (7.0, 7.0));
    }

    #[test]
    fn norms_are_not_below_and_close() {
        let numbers = numbers();
        for count in [1, 2, 10, 400] {
            for values in numbers.chunks(count) {
                let square = values.iter().map(|&x| Exact::of(x).times(&Exact::of(x)));
                let square = square.reduce(|a, b| a.plus(&b)).unwrap();
                let norm = norm_up(values);
                assert!(Exact::of(norm).times(&Exact::of(norm)).cmp(&square).is_ge());
                let less = Exact::of(norm * (1.0 - 2.0 * (values.len() as f64 + 12.0) * f64::EPSILON));
                assert!(norm == 0.0 || less.times(&less).cmp(&square).is_le(), "{norm:e} is far too much");
            }
        }
        assert_eq!(norm_up(&[]), 0.0);
        assert!(norm_up(&[1.0, f64::NAN]).is_infinite() && norm_up(&[f64::NEG_INFINITY]).is_infinite());
        assert!(norm_up(&[1e-200, 1e-200]) >= 1.414e-200 && norm_up(&[1e300, 1e300]) < 1.42e300);
    }
}
