//! Whole numbers of any size as floats, rounded the stated way.

/// The least float that is not below `whole`.
///
/// ```
/// use whit_noise::round;
/// assert_eq!(round::whole_up((1 << 53) + 1), 9_007_199_254_740_994.0);
/// assert_eq!(round::whole_up(7), 7.0);
/// ```
#[must_use]
pub fn whole_up(whole: u128) -> f64 {
    let near = whole as f64;
    if (near as u128) < whole { near.next_up() } else { near }
}

/// The largest float that is not above `whole`.
#[must_use]
pub(crate) fn whole_down(whole: u128) -> f64 {
    let near = whole as f64;
    // The cast back saturates, and 2^128 is above every whole number.
    if near as u128 > whole || near >= 2f64.powi(128) { near.next_down() } else { near }
}
