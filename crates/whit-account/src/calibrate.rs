//! Accountants run backwards: the least noise, the most steps or the highest rate that keep a promise.
//!
//! Every answer is checked forwards: the loss that comes with it is what the accountant says of the value returned, and
//! its upper ε is at most the target. Searching can only stop short of the best value, never overshoot it.

use crate::accountant::{self, Name, Unsupported, pair};
use crate::normal::gaussian_mu_down;
use whit_core::{Cost, Loss, OutOfRange, Sampled};

/// The promise to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The largest ε.
    pub epsilon: f64,
    /// The δ at which it must hold.
    pub delta: f64,
}

/// A value that keeps the promise, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// The noise, the number of steps, or the rate.
    pub value: f64,
    /// What the accountant says of it.
    pub loss: Loss,
    /// Who proved the upper bound: see [`epsilon_by`](accountant::epsilon_by).
    pub by: Name,
}

/// What an accountant says of a value that was tried.
type Priced = (Loss, Name);

/// Why there is no such value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalibrateError {
    /// The accountant cannot price this at all.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Nothing in the range keeps the promise.
    #[error("no {what} keeps ε at {epsilon} and δ at {delta}: even {least} costs {cost}")]
    Unreachable {
        /// What was looked for.
        what: &'static str,
        /// The ε that was asked for.
        epsilon: f64,
        /// The δ that was asked for.
        delta: f64,
        /// The cheapest value that was tried, in words.
        least: String,
        /// What it costs, in words.
        cost: String,
    },
    /// Everything keeps it.
    #[error("any {what} keeps ε at {epsilon} and δ at {delta}: nothing private is read")]
    Unlimited {
        /// What was looked for.
        what: &'static str,
        /// The ε that was asked for.
        epsilon: f64,
        /// The δ that was asked for.
        delta: f64,
    },
}

impl From<OutOfRange> for CalibrateError {
    fn from(error: OutOfRange) -> Self {
        Self::Unsupported(error.into())
    }
}

impl Target {
    fn check(self) -> Result<(), OutOfRange> {
        if self.epsilon.is_nan() || self.epsilon < 0.0 {
            return Err(OutOfRange { name: "ε", value: self.epsilon, range: "at least 0" });
        }
        if !(0.0..=1.0).contains(&self.delta) {
            return Err(OutOfRange { name: "δ", value: self.delta, range: "between 0 and 1" });
        }
        Ok(())
    }

    fn price(self, sampled: Sampled, steps: u64, accountant: Name) -> Result<Priced, Unsupported> {
        accountant::epsilon_by(&Cost::Sampled(sampled).repeat(steps), self.delta, accountant)
    }

    fn met_by(self, priced: &Priced) -> bool {
        priced.0.upper <= self.epsilon
    }
}

/// Narrows a bracket of ln x, in which the cost of x rises, until it is relatively `narrow`; returns its cheap end.
///
/// Regula falsi on ln ε (with the Illinois rule) where both ends are finite and positive, bisection where not.
fn narrow<E>(
    target: Target,
    mut cheap: (f64, Priced),
    mut dear: (f64, Priced),
    tolerance: f64,
    price: impl Fn(f64) -> Result<Priced, E>,
) -> Result<(f64, Priced), E> {
    let gap = |priced: &Priced| (priced.0.upper / target.epsilon).ln();
    let (mut a, mut b) = (gap(&cheap.1), gap(&dear.1));
    for _ in 0..200 {
        let width = dear.0 - cheap.0;
        if width.abs() <= tolerance {
            break;
        }
        let share = if a.is_finite() && b.is_finite() { (-a / (b - a)).clamp(0.02, 0.98) } else { 0.5 };
        // Aim a little to the cheap side, so that the cheap end moves too.
        let at = cheap.0 + width * share - width.signum() * (0.3 * tolerance).min(0.01 * width.abs());
        let loss = price(at)?;
        if target.met_by(&loss) {
            (cheap, a) = ((at, loss), gap(&loss));
            b /= 2.0;
        } else {
            (dear, b) = ((at, loss), gap(&loss));
            a /= 2.0;
        }
    }
    Ok(cheap)
}

/// The least noise (standard deviation over the largest norm of one unit's contribution) for `steps` steps.
///
/// `sampled.noise` is where the search begins, if it is positive and finite.
///
/// ```
/// use whit_account::{Name, calibrate::{self, Target}};
/// use whit_core::{Change, Draw, Sampled, Sampling};
/// let step = Sampled {
///     noise: 1.0, rate: 0.01, sampling: Sampling::Poisson, draw: Draw::Unit,
///     change: Change::Replace, difference: 2.0, holds: 1,
/// };
/// let found = calibrate::noise(&step, 1000, Target { epsilon: 1.0, delta: 1e-5 }, Name::Pld)?;
/// assert!(found.loss.upper <= 1.0 && (found.value - 2.3644).abs() < 2e-3);
/// # Ok::<(), calibrate::CalibrateError>(())
/// ```
pub fn noise(sampled: &Sampled, steps: u64, target: Target, accountant: Name) -> Result<Calibrated, CalibrateError> {
    target.check()?;
    let price = |ln: f64| target.price(Sampled { noise: ln.exp(), ..*sampled }, steps, accountant);
    if sampled.rate == 0.0 || steps == 0 {
        price(0.0)?;
        return Err(CalibrateError::Unlimited { what: "noise", epsilon: target.epsilon, delta: target.delta });
    }
    // A cheaper accountant tells where to begin: PLD needs somewhat less than Rényi's noise, and all about plain Gaussian's.
    let rough = match accountant {
        Name::Pld => noise(sampled, steps, target, Name::Rdp).ok().map(|found| found.value.ln()),
        Name::Rdp | Name::Gdp | Name::Zcdp | Name::Advanced | Name::Basic => undrawn_noise(sampled, steps, target),
    };
    let given = (sampled.noise > 0.0 && sampled.noise.is_finite()).then(|| sampled.noise.ln());
    let start = rough.filter(|ln| ln.is_finite()).or(given).unwrap_or(0.0);
    let first = price(start)?;
    // From the start outwards, by ever larger factors, until the promise turns.
    let (met, mut from) = (target.met_by(&first), (start, first));
    let direction = if met { -1.0 } else { 1.0 };
    for stride in strides() {
        let to = from.0 + direction * stride;
        let priced = price(to)?;
        if target.met_by(&priced) != met {
            let (cheap, dear) = if met { (from, (to, priced)) } else { ((to, priced), from) };
            let (ln, (loss, by)) = narrow(target, cheap, dear, 2e-5, price)?;
            return Ok(Calibrated { value: ln.exp(), loss, by });
        }
        from = (to, priced);
    }
    let (ln, (loss, by)) = from;
    if met {
        return Ok(Calibrated { value: ln.exp(), loss, by });
    }
    Err(unreachable(target, "noise", format!("a noise of {:.3e}", ln.exp()), &loss))
}

/// How far to go from a guess, in logarithms: a little at first, then by doubling.
fn strides() -> impl Iterator<Item = f64> {
    [0.1, 0.2, 0.4].into_iter().chain(std::iter::repeat_n(std::f64::consts::LN_2, 60))
}

/// ln of the noise that would do if every unit were drawn in every step: plain Gaussian noise at the full distance.
fn undrawn_noise(sampled: &Sampled, steps: u64, target: Target) -> Option<f64> {
    let distance = pair::dominating(sampled).ok()?.distance();
    Some((distance * (steps as f64).sqrt() / gaussian_mu_down(target.epsilon, target.delta)).ln())
}

fn unreachable(target: Target, what: &'static str, least: String, loss: &Loss) -> CalibrateError {
    let cost = format!("ε = {:.4}", loss.upper);
    CalibrateError::Unreachable { what, epsilon: target.epsilon, delta: target.delta, least, cost }
}

/// As many steps as keep the target, up to 10¹²: to the last one below 100,000, and beyond that all but a hundred-thousandth of them.
pub fn steps(sampled: &Sampled, target: Target, accountant: Name) -> Result<Calibrated, CalibrateError> {
    const MOST: u64 = 1_000_000_000_000;
    target.check()?;
    let price = |steps: u64| target.price(*sampled, steps, accountant);
    // A cheaper accountant tells where to begin.
    let rough = match accountant {
        Name::Pld => steps(sampled, target, Name::Rdp).map_or(1, |found| found.value as u64),
        Name::Rdp | Name::Gdp | Name::Zcdp | Name::Advanced | Name::Basic => 1,
    };
    let mut low = (rough, price(rough)?);
    if !target.met_by(&low.1) && rough > 1 {
        low = (1, price(1)?);
    }
    if !target.met_by(&low.1) {
        return Err(unreachable(target, "number of steps", "one step".to_owned(), &low.1.0));
    }
    let mut high = loop {
        if low.0 >= MOST {
            if low.1.0.upper == 0.0 {
                return Err(CalibrateError::Unlimited {
                    what: "number of steps",
                    epsilon: target.epsilon,
                    delta: target.delta,
                });
            }
            return Ok(Calibrated { value: low.0 as f64, loss: low.1.0, by: low.1.1 });
        }
        // ε grows at least like the root of the number of steps and at most like it, once it is not 0.
        let spent = low.1.0.upper;
        let factor = if spent > 0.0 { (1.1 * target.epsilon / spent).powi(2).clamp(1.2, 1e4) } else { 16.0 };
        let next = ((low.0 as f64 * factor) as u64).clamp(low.0 + 1, MOST);
        let loss = price(next)?;
        if !target.met_by(&loss) {
            break (next, loss);
        }
        low = (next, loss);
    };
    let mut turn = 0_u32;
    // To the last step where they are few, to a hundred-thousandth where they are many.
    while high.0 - low.0 > 1 + low.0 / 100_000 {
        turn += 1;
        let (a, b) = (low.1.0.upper, high.1.0.upper);
        // On a log-log scale ε is nearly a straight line; every other step bisects, so that it ends.
        let guess = if a > 0.0 && b.is_finite() && b > a && turn % 2 == 1 {
            let share = (target.epsilon / a).ln() / (b / a).ln();
            ((low.0 as f64).ln() + share * (high.0 as f64 / low.0 as f64).ln()).exp()
        } else {
            f64::midpoint(low.0 as f64, high.0 as f64)
        };
        let next = (guess as u64).clamp(low.0 + 1, high.0 - 1);
        let priced = price(next)?;
        if target.met_by(&priced) {
            low = (next, priced);
        } else {
            high = (next, priced);
        }
    }
    Ok(Calibrated { value: low.0 as f64, loss: low.1.0, by: low.1.1 })
}

/// The highest rate, between 10^-12 and 1.
pub fn rate(sampled: &Sampled, steps: u64, target: Target, accountant: Name) -> Result<Calibrated, CalibrateError> {
    target.check()?;
    let price = |ln: f64| target.price(Sampled { rate: ln.exp().min(1.0), ..*sampled }, steps, accountant);
    let all = price(0.0)?;
    if target.met_by(&all) {
        return Ok(Calibrated { value: 1.0, loss: all.0, by: all.1 });
    }
    // A cheaper accountant tells where to begin.
    let rough = match accountant {
        Name::Pld => rate(sampled, steps, target, Name::Rdp).map_or(-2.0, |found| found.value.ln()),
        Name::Rdp | Name::Gdp | Name::Zcdp | Name::Advanced | Name::Basic => -2.0,
    };
    let (mut dear, mut cheap) = ((0.0, all), (rough, price(rough)?));
    // Up from there while it is cheap enough, or down until it is.
    for stride in strides() {
        let to = cheap.0 + stride;
        if to >= 0.0 || !target.met_by(&cheap.1) {
            break;
        }
        let priced = price(to)?;
        if !target.met_by(&priced) {
            dear = (to, priced);
            break;
        }
        cheap = (to, priced);
    }
    while !target.met_by(&cheap.1) {
        if cheap.0 < 1e-12_f64.ln() {
            return Err(unreachable(target, "rate", format!("a rate of {:.1e}", cheap.0.exp()), &cheap.1.0));
        }
        dear = cheap;
        cheap = (dear.0 - 2.0, price(dear.0 - 2.0)?);
    }
    let (ln, (loss, by)) = narrow(target, cheap, dear, 2e-5, price)?;
    Ok(Calibrated { value: ln.exp().min(1.0), loss, by })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Change, Draw, Sampling};

    fn step(noise: f64, rate: f64) -> Sampled {
        let (sampling, draw, change) = (Sampling::Poisson, Draw::Unit, Change::Replace);
        Sampled { noise, rate, sampling, draw, change, difference: 2.0, holds: 1 }
    }

    #[test]
    fn every_direction_comes_back_to_where_it_started() {
        let (target, start) = (Target { epsilon: 2.0, delta: 1e-6 }, step(1.0, 0.02));
        for accountant in [Name::Pld, Name::Rdp] {
            let noise = noise(&start, 500, target, accountant).unwrap();
            assert!(noise.loss.upper <= 2.0 && noise.loss.upper > 1.99, "{noise:?}");
            let found = Sampled { noise: noise.value, ..start };
            let steps = steps(&found, target, accountant).unwrap();
            assert!((490.0..=510.0).contains(&steps.value), "{steps:?}");
            let over = target.price(found, steps.value as u64 + 1, accountant).unwrap();
            assert!(over.0.upper > 2.0, "one more step would still have been fine: {over:?}");
            let rate = rate(&found, 500, target, accountant).unwrap();
            assert!((rate.value - 0.02).abs() < 2e-4, "{rate:?}");
        }
    }

    #[test]
    fn what_cannot_be_reached_is_said() {
        let target = Target { epsilon: 0.001, delta: 1e-9 };
        let message = steps(&step(0.3, 0.5), target, Name::Pld).unwrap_err().to_string();
        assert!(
            message.starts_with("no number of steps keeps ε at 0.001") && message.contains("even one step"),
            "{message}"
        );
        assert!(matches!(noise(&step(1.0, 0.0), 10, target, Name::Pld), Err(CalibrateError::Unlimited { .. })));
        assert!(noise(&step(1.0, 0.1), 10, Target { epsilon: -1.0, delta: 1e-6 }, Name::Pld).is_err());
    }
}
