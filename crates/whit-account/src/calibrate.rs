//! Accountants run backwards: the least noise, the most steps or the highest rate that keep a promise.
//!
//! Every answer is checked forwards: the loss that comes with it is what the accountant says of the value returned, and
//! its upper ε is at most the target. Searching can only stop short of the best value, never overshoot it.

use crate::accountant::{self, Name, Unsupported, pair};
use crate::normal::gaussian_mu_down;
use whit_core::digits::{brief, brief_up};
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
    /// Whether the search ended here, at 10¹² steps or at a rate of 1, and not because more would cost too much.
    pub is_end: bool,
}

/// The most steps that [`steps`] looks at.
const MOST_STEPS: u64 = 1_000_000_000_000;

/// The least rate that [`rate`] looks at.
const LEAST_RATE: f64 = 1e-12;

/// What an accountant says of a value that was tried.
type Priced = (Loss, Name);

/// Why there is no such value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalibrateError {
    /// The accountant cannot price this at all.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Nothing in the range keeps the promise.
    #[error("no {what} keeps ε at {} and δ at {}: even {least} costs {cost}", brief(*epsilon), brief(*delta))]
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
    #[error("any {what} keeps ε at {} and δ at {}: nothing private is read", brief(*epsilon), brief(*delta))]
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
        #[cfg(test)]
        tests::count(accountant);
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
            return Ok(Calibrated { value: ln.exp(), loss, by, is_end: false });
        }
        from = (to, priced);
    }
    let (ln, (loss, by)) = from;
    if met {
        return Ok(Calibrated { value: ln.exp(), loss, by, is_end: false });
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
    let cost = format!("ε = {}", brief_up(loss.upper));
    CalibrateError::Unreachable { what, epsilon: target.epsilon, delta: target.delta, least, cost }
}

/// A value that was tried, and what it costs.
type Tried = (f64, Priced);

/// The most that keeps the promise, to within `close`, between a value that does and one that does not; `tidy` makes a value of what may lie between them.
///
/// ε is nearly a straight line on a log-log scale. Where it crosses the target, a little towards the middle, is tried next, so that both ends come nearer (ITP: Oliveira and
/// Takahashi 2021); and the middle itself where two tries did not halve what is left, or ε is 0 or infinite at an end. PLD may take a second for a try, so there are
/// few: what is left between the ends after them is given up.
fn most_between<E>(
    target: Target,
    (mut low, mut high): (Tried, Tried),
    close: impl Fn(f64, f64) -> bool,
    tidy: impl Fn(f64, f64, f64) -> f64,
    price: impl Fn(f64) -> Result<Priced, E>,
) -> Result<Tried, E> {
    const TRIES: usize = 16;
    let gap = |tried: &Tried| (tried.1.0.upper / target.epsilon).ln();
    let whole = (high.0 / low.0).ln();
    let mut widths = vec![whole];
    for _ in 0..TRIES {
        if close(low.0, high.0) {
            break;
        }
        let (from, to) = (low.0.ln(), high.0.ln());
        let (width, middle) = (to - from, f64::midpoint(from, to));
        let (a, b) = (gap(&low), gap(&high));
        let slow = widths.len() > 2 && width > 0.5 * widths[widths.len() - 3];
        let at = if a.is_finite() && b.is_finite() && b > a && !slow {
            let crossing = from + width * (-a / (b - a));
            let inwards = 0.2 * width * width / whole;
            crossing + (middle - crossing).clamp(-inwards, inwards)
        } else {
            middle
        };
        let at = tidy(low.0, at.exp(), high.0);
        let tried = (at, price(at)?);
        if target.met_by(&tried.1) {
            low = tried;
        } else {
            high = tried;
        }
        widths.push((high.0 / low.0).ln());
    }
    Ok(low)
}

/// How much further may be gone before the promise turns, by how much of it is spent: ε grows at least like the root of a run's length, and hardly faster than twice its root.
fn onwards(target: Target, spent: &Priced, least: f64, most: f64) -> f64 {
    let share = target.epsilon / spent.0.upper;
    if share.is_finite() { (1.1 * share).powi(2).clamp(least, most) } else { most.min(16.0) }
}

/// As many steps as keep the target, up to 10¹²: to the last one below 100,000, and beyond that all but a hundred-thousandth of them, as far as few tries come.
pub fn steps(sampled: &Sampled, target: Target, accountant: Name) -> Result<Calibrated, CalibrateError> {
    target.check()?;
    let price = |steps: f64| target.price(*sampled, steps as u64, accountant);
    if sampled.rate == 0.0 {
        price(1.0)?;
        let (epsilon, delta) = (target.epsilon, target.delta);
        return Err(CalibrateError::Unlimited { what: "number of steps", epsilon, delta });
    }
    // A cheaper accountant tells where to begin.
    let rough = match accountant {
        Name::Pld => steps(sampled, target, Name::Rdp).map_or(1.0, |found| found.value),
        Name::Rdp | Name::Gdp | Name::Zcdp | Name::Advanced | Name::Basic => 1.0,
    };
    let (mut low, mut high) = ((rough, price(rough)?), None);
    if !target.met_by(&low.1) && rough > 1.0 {
        high = Some(low);
        low = (1.0, price(1.0)?);
    }
    if !target.met_by(&low.1) {
        return Err(unreachable(target, "number of steps", "one step".to_owned(), &low.1.0));
    }
    let high = loop {
        if let Some(high) = high {
            break high;
        }
        let most = MOST_STEPS as f64;
        if low.0 >= most {
            let (value, (loss, by)) = low;
            return Ok(Calibrated { value, loss, by, is_end: true });
        }
        let next = (low.0 * onwards(target, &low.1, 1.2, 1e4)).floor().clamp(low.0 + 1.0, most);
        let tried = (next, price(next)?);
        if target.met_by(&tried.1) {
            low = tried;
        } else {
            high = Some(tried);
        }
    };
    let close = |low: f64, high: f64| high - low <= 1.0 + (low / 100_000.0).floor();
    let tidy = |low: f64, at: f64, high: f64| at.floor().clamp(low + 1.0, high - 1.0);
    let (value, (loss, by)) = most_between(target, (low, high), close, tidy, price)?;
    Ok(Calibrated { value, loss, by, is_end: false })
}

/// The highest rate, between 10^-12 and 1, and no more than a ten-thousandth of it below.
pub fn rate(sampled: &Sampled, steps: u64, target: Target, accountant: Name) -> Result<Calibrated, CalibrateError> {
    target.check()?;
    let price = |rate: f64| target.price(Sampled { rate, ..*sampled }, steps, accountant);
    let all = (1.0, price(1.0)?);
    if target.met_by(&all.1) {
        return Ok(Calibrated { value: 1.0, loss: all.1.0, by: all.1.1, is_end: true });
    }
    // Who is drawn in any of the steps with a chance of δ at most loses nothing else.
    let surely = (0.999 * target.delta / steps as f64).clamp(LEAST_RATE, 0.5);
    // A cheaper accountant tells where to begin.
    let rough = match accountant {
        Name::Pld => rate(sampled, steps, target, Name::Rdp).map_or(surely, |found| found.value),
        Name::Rdp | Name::Gdp | Name::Zcdp | Name::Advanced | Name::Basic => 0.1,
    };
    let (mut low, mut high) = ((rough, price(rough)?), all);
    // Down by ever larger factors until it is cheap enough, or up while it is.
    let mut factor = 8.0;
    while !target.met_by(&low.1) {
        if low.0 <= LEAST_RATE {
            return Err(unreachable(target, "rate", format!("a rate of {:.1e}", low.0), &low.1.0));
        }
        high = low;
        // What surely does is not passed by.
        let next = low.0 / factor;
        let next = if low.0 > surely { next.max(surely) } else { next.max(LEAST_RATE) };
        low = (next, price(next)?);
        factor *= factor;
    }
    while high.0 >= 1.0 {
        let next = low.0 * onwards(target, &low.1, 1.05, 8.0);
        if next >= 1.0 {
            break;
        }
        let tried = (next, price(next)?);
        if target.met_by(&tried.1) {
            low = tried;
        } else {
            high = tried;
        }
    }
    let close = |low: f64, high: f64| high <= low * (1.0 + 1e-4);
    let (value, (loss, by)) = most_between(target, (low, high), close, |_, at, _| at, price)?;
    Ok(Calibrated { value, loss, by, is_end: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
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

    thread_local! {
        /// How often PLD was asked.
        static TRIES: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn count(accountant: Name) {
        TRIES.set(TRIES.get() + u32::from(accountant == Name::Pld));
    }

    /// PLD may take a second for each try, so a search that tries less is one that people wait for.
    #[test]
    fn a_search_asks_pld_few_times() {
        let tried = |search: &dyn Fn() -> Result<Calibrated, CalibrateError>| {
            TRIES.set(0);
            (search().map(|found| found.value), TRIES.get())
        };
        let (mut most, mut sum, mut cases) = (0, 0, 0);
        for epsilon in [0.5, 8.0] {
            for (noise, q, many) in [(0.7, 0.01, 300), (1.0, 0.001, 10_000), (4.0, 0.1, 2_000), (20.0, 0.5, 50)] {
                let target = Target { epsilon, delta: 1e-6 };
                let step = step(noise, q);
                let searches: [&dyn Fn() -> Result<Calibrated, CalibrateError>; 2] =
                    [&|| steps(&step, target, Name::Pld), &|| rate(&step, many, target, Name::Pld)];
                for search in searches {
                    let (found, tries) = tried(search);
                    assert!(tries <= 20, "{tries} tries for {found:?} at {epsilon}, {noise}, {q}");
                    (most, sum, cases) = (most.max(tries), sum + tries, cases + 1);
                }
            }
        }
        assert!(sum <= 11 * cases, "{sum} tries in {cases} searches, at most {most}");
    }

    /// The end of a search is no answer to what is the most, and is marked as what it is.
    #[test]
    fn where_a_search_ends_is_said() {
        let target = Target { epsilon: 1.0, delta: 1e-5 };
        for accountant in Name::ALL {
            for rate in [1.0, 0.01] {
                let Ok(found) = steps(&step(1e18, rate), target, accountant) else { continue };
                assert!(found.is_end && found.value == MOST_STEPS as f64, "{accountant}: {found:?}");
            }
            let found = rate(&step(1e18, 0.5), 1000, target, accountant).unwrap();
            assert!(found.is_end && found.value == 1.0, "{accountant}: {found:?}");
        }
        let found = steps(&step(2.0, 0.01), target, Name::Pld).unwrap();
        assert!(!found.is_end && found.value < 1e6, "{found:?}");
        assert!(!rate(&step(2.0, 0.5), 1000, target, Name::Pld).unwrap().is_end);
        let message = steps(&step(1.0, 0.0), target, Name::Pld).unwrap_err().to_string();
        assert_eq!(message, "any number of steps keeps ε at 1 and δ at 1e-5: nothing private is read");
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
