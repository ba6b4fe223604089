//! Randomised response: each unit gives its own answer, and it is the true one only with a stated probability.

use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::cost::Cost;
use crate::loss::Epsilon;
use crate::release::Sealed;
use crate::unit::{Change, Rung};
use whit_noise::round::{ratio_down, ratio_up};
use whit_noise::{Entropy, Ratio, below, bernoulli};

/// What a yes-or-no goes through on its way: a true one arrives as yes with probability `on`, a false one with `off`.
///
/// Who counts n reports and knows both probabilities can estimate how many were truly yes, without bias.
///
/// ```
/// use whit_core::mechanism::response::Channel;
/// let coin = Channel::new("3/4".parse()?, "1/4".parse()?)?;
/// assert_eq!(coin.estimate(4_000, 10_000), 3_000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    on: Ratio,
    off: Ratio,
}

impl Channel {
    /// The channel with these probabilities of yes, `off` below `on`.
    pub fn new(on: Ratio, off: Ratio) -> Result<Self, BadParameter> {
        if on > Ratio::ONE || off >= on {
            return Err(BadParameter::range(
                "probability that a no arrives as yes",
                off.to_f64(),
                "less than the probability that a yes does, and both at most 1",
            ));
        }
        Ok(Self { on, off })
    }

    /// The probability that a true yes arrives as yes.
    pub fn on(&self) -> &Ratio {
        &self.on
    }

    /// The probability that a no arrives as yes.
    pub fn off(&self) -> &Ratio {
        &self.off
    }

    /// Sends one bit through.
    pub fn send(&self, bit: bool, entropy: &mut dyn Entropy) -> bool {
        bernoulli(if bit { &self.on } else { &self.off }, entropy)
    }

    /// This channel and then `next`, as one. Nothing when the fractions become too large.
    pub fn then(&self, next: &Self) -> Option<Self> {
        // P(yes) is a·on + (1 − a)·off = (n·x·w + (d − n)·z·y) / (d·y·w) for a = n/d, on = x/y, off = z/w.
        let through = |a: &Ratio| {
            let (n, d) = (a.numerator(), a.denominator());
            let (x, y) = (next.on.numerator(), next.on.denominator());
            let (z, w) = (next.off.numerator(), next.off.denominator());
            let yes = n.checked_mul(x)?.checked_mul(w)?.checked_add((d - n).checked_mul(z)?.checked_mul(y)?)?;
            Ratio::new(yes, d.checked_mul(y)?.checked_mul(w)?).ok()
        };
        Self::new(through(&self.on)?, through(&self.off)?).ok()
    }

    /// (on − off) / ((1 − on)·off): by how much the odds ratio exceeds 1. Rounded up; infinite when an answer gives the truth away.
    fn excess_up(&self) -> f64 {
        let ((a, b), (c, d)) =
            ((self.on.numerator(), self.on.denominator()), (self.off.numerator(), self.off.denominator()));
        if a == b || c == 0 {
            return f64::INFINITY;
        }
        let exact = || {
            let above = a.checked_mul(d)? - c.checked_mul(b)?;
            Ratio::new(above, (b - a).checked_mul(c)?).ok()
        };
        exact().map_or_else(
            || {
                // Each of the four conversions and three products rounds by less than a part in 2^51.
                let odds = a as f64 * (d - c) as f64 / ((b - a) as f64 * c as f64);
                odds * (1.0 + 2f64.powi(-48)) - 1.0
            },
            |ratio| ratio_up(&ratio),
        )
    }

    /// ln(on·(1 − off) / ((1 − on)·off)), rounded up: the loss of one bit that turns on while another turns off.
    pub fn log_odds_up(&self) -> f64 {
        log1p_up(self.excess_up())
    }

    /// How many of `reports` were truly yes, from how many arrived as yes. Unbiased, so it may be negative or exceed `reports`.
    pub fn estimate(&self, yes: u64, reports: u64) -> f64 {
        let (on, off) = (self.on.to_f64(), self.off.to_f64());
        (yes as f64 - reports as f64 * off) / (on - off)
    }

    /// The variance of that estimate when `truly` of `reports` are yes.
    pub fn variance(&self, truly: u64, reports: u64) -> f64 {
        let (on, off) = (self.on.to_f64(), self.off.to_f64());
        let spread = truly as f64 * on * (1.0 - on) + reports.saturating_sub(truly) as f64 * off * (1.0 - off);
        spread / (on - off).powi(2)
    }

    /// How far that estimate may be off, whatever the truth (Hoeffding's inequality for `reports` independent coins).
    pub fn accuracy(&self, reports: u64, confidence: f64) -> Accuracy {
        let half_width = (reports as f64 * (2.0 / (1.0 - confidence)).ln() / 2.0).sqrt();
        Accuracy { within: half_width / (self.on.to_f64() - self.off.to_f64()), confidence }
    }
}

/// ln(1 + x), rounded up.
fn log1p_up(x: f64) -> f64 {
    libm::log1p(x).next_up().next_up() // its error is below one step
}

/// e^ε − 1, so much rounded down that its logarithm, rounded up again, does not exceed ε.
pub(super) fn excess_down(epsilon: &Ratio) -> Result<Ratio, BadParameter> {
    let bad = || BadParameter::range("ε", epsilon.to_f64(), "greater than 0 and at most 80");
    let target = ratio_down(epsilon);
    if !(target > 0.0 && target <= 80.0) {
        return Err(bad());
    }
    // 2^-48 of ε (of 1 where ε is smaller) is more than the sixteen last places that the way there and back may lose.
    let excess = libm::expm1(target) * (1.0 - 2f64.powi(-48) * target.max(1.0));
    let excess = Ratio::from_f64_down(excess)?;
    if excess.is_zero() { Err(bad()) } else { Ok(excess) }
}

/// A local report's cost. Whoever sends one is seen to be there, so adding or removing a unit is not hidden at all; where a unit
/// holds several others, each of those sends a report of its own.
pub(super) fn local_cost(epsilon: f64, rung: &Rung) -> Cost {
    match (rung.unit.change(), Epsilon::new(epsilon)) {
        (Change::Replace, Ok(epsilon)) if rung.holds == 1 => Cost::Pure { epsilon },
        (Change::Replace, Ok(epsilon)) => Cost::Pure { epsilon }.repeat(rung.holds),
        (Change::Replace, Err(_)) | (Change::AddRemove, _) => Cost::Everything,
    }
}

/// Randomised response among `k` values: the true one with probability `p`, else one of the others, all alike.
///
/// # Neighbours
/// Two values of one unit. That the unit answers is in plain view: every unit does, also one without anything to say, for which
/// the domain needs a value. So the cost is for replacing, and adding or removing a unit is not protected.
///
/// # Claim
/// `P[M(x) = z] ≤ e^ε · P[M(y) = z]` with `e^ε = p·(k − 1) / (1 − p)`.
///
/// # Why
/// Every output has probability `p` under one input and `(1 − p)/(k − 1)` under all others. (Warner 1965.) `p` is a fraction:
/// e^ε/(e^ε + k − 1) rounded down, and the coin has exactly that bias.
///
/// # Tried by
/// `every_string_of_coins_gives_the_stated_probabilities`, exactly, `the_next_larger_epsilon_is_not_spent`,
/// `estimates_are_unbiased`, `the_confidence_interval_covers`.
///
/// ```
/// use whit_core::mechanism::response::Response;
/// let smokes = Response::for_epsilon(2, "1".parse()?)?;
/// let yes = smokes.indicator().estimate(400, 1000); // 400 of 1000 said yes
/// assert!((yes - 283.6).abs() < 0.1);
/// assert_eq!(smokes.indicator().accuracy(1000, 0.95).to_string(), "± 93 at 95 %");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    values: u64,
    /// The probabilities of a value's own indicator: on = p, off = (1 − p)/(k − 1).
    indicator: Channel,
}

impl Response {
    /// Among `values` values, the true one with probability `truth`, which lies between 1/values and 1.
    pub fn new(values: u64, truth: Ratio) -> Result<Self, BadParameter> {
        let bad = || BadParameter::range("probability of the truth", truth.to_f64(), "more than 1/k and less than 1");
        if values < 2 {
            return Err(BadParameter::range("number of values", values as f64, "at least 2"));
        }
        let (n, d) = (truth.numerator(), truth.denominator());
        if n >= d {
            return Err(bad());
        }
        let other =
            d.checked_mul(u128::from(values - 1)).and_then(|below| Ratio::new(d - n, below).ok()).ok_or_else(bad)?;
        Channel::new(truth, other).map(|indicator| Self { values, indicator }).map_err(|_| bad())
    }

    /// Among `values` values, the most truth that costs at most ε.
    pub fn for_epsilon(values: u64, epsilon: Ratio) -> Result<Self, BadParameter> {
        // With e^ε − 1 = a/b: p = (b + a)/(k·b + a).
        let excess = excess_down(&epsilon)?;
        let (a, b) = (excess.numerator(), excess.denominator());
        let below = b.checked_mul(u128::from(values)).and_then(|kb| kb.checked_add(a));
        let truth = below.ok_or_else(|| {
            BadParameter::range("ε", epsilon.to_f64(), "large enough for so many values (or use fewer values)")
        })?;
        Self::new(values, Ratio::new(a + b, truth)?)
    }

    /// The probability of the truth.
    pub fn truth(&self) -> &Ratio {
        self.indicator.on()
    }

    /// What "the value is v" goes through: it estimates how many units have any one value.
    pub fn indicator(&self) -> &Channel {
        &self.indicator
    }
}

impl Mechanism for Response {
    type Exact = u64;
    type Noisy = u64;

    fn cost(&self, rung: &Rung) -> Cost {
        // p(k − 1)/(1 − p) is on/off, whose excess over 1 is (on − off)/off.
        let (on, off) = (self.indicator.on(), self.indicator.off());
        let ratio = off.inverse().and_then(|inverse| on.times(&inverse));
        let excess = ratio.map(|r| (r.numerator() - r.denominator(), r.denominator()));
        let excess = excess.and_then(|(n, d)| Ratio::new(n, d).ok());
        let epsilon = excess.map_or_else(
            || (on.to_f64_up() / off.to_f64_down()).next_up().ln().next_up().next_up(),
            |excess| log1p_up(ratio_up(&excess)),
        );
        local_cost(epsilon, rung)
    }

    fn sanitise(&self, exact: &u64, entropy: &mut dyn Entropy) -> Result<Sealed<u64>, SanitiseError> {
        if *exact >= self.values {
            return Err(SanitiseError::Domain { size: self.values });
        }
        if bernoulli(self.truth(), entropy) {
            return Ok(Sealed::new(*exact));
        }
        let other = below(self.values - 1, entropy);
        Ok(Sealed::new(if other < *exact { other } else { other + 1 }))
    }

    /// The error of one answer is 0 when it is true and 1 when it is not. For the error of an estimate from many answers, see
    /// [`Channel::accuracy`].
    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: if confidence <= self.truth().to_f64_down() { 0.0 } else { 1.0 }, confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{epsilon, fit, rung, tally};
    use super::*;
    use whit_noise::Replay;
    use whit_noise::fit::BitTree;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    fn replace(holds: u64) -> Rung {
        rung(Change::Replace, holds)
    }

    /// All strings of 16 random bits: the laws are exact, and so is the log-ratio of two inputs.
    #[test]
    fn every_string_of_coins_gives_the_stated_probabilities() {
        for (values, truth) in [(2, "3/4"), (3, "1/2"), (4, "5/8")] {
            let mechanism = Response::new(values, ratio(truth)).unwrap();
            let probability = |exact: u64, z: u64| {
                BitTree::new(16).probability(|entropy| mechanism.sanitise(&exact, entropy).unwrap().open() == z)
            };
            let (on, off) = (ratio(truth).to_f64(), mechanism.indicator().off().to_f64());
            let claimed = epsilon(&mechanism.cost(&replace(1)));
            assert!(((on / off).ln()..).contains(&claimed) && claimed < (on / off).ln() + 1e-14);
            for exact in 0..values {
                for z in 0..values {
                    let (hit, open) = probability(exact, z);
                    let expected = if z == exact { on } else { off };
                    assert!(
                        hit <= expected + 1e-12 && expected <= hit + open + 1e-12,
                        "{exact} to {z}: {hit} + {open}"
                    );
                    assert!(open < 1e-3);
                }
            }
        }
    }

    /// The derived fraction costs at most ε, and hardly less; ε rounded to the nearest probability would overspend.
    #[test]
    fn the_next_larger_epsilon_is_not_spent() {
        for values in [2, 3, 10, 1000] {
            for text in ["0.000001", "0.01", "0.1", "1/3", "1", "2", "5", "10", "40"] {
                let wanted = ratio_down(&ratio(text));
                let spent = epsilon(&Response::for_epsilon(values, ratio(text)).unwrap().cost(&replace(1)));
                assert!(spent <= wanted, "{values} values: {spent} of {wanted}");
                assert!(spent > wanted * (1.0 - 1e-13), "{values} values: {spent} of {wanted} is too careful");
            }
        }
        // Three decimals instead: 0.732 is more than e/(e + 1) = 0.7310…, and costs more than 1.
        assert!(epsilon(&Response::new(2, ratio("0.732")).unwrap().cost(&replace(1))) > 1.0);
        assert!(Response::for_epsilon(2, Ratio::ZERO).is_err());
        assert!(Response::for_epsilon(2, Ratio::from(81)).is_err());
        assert!(Response::for_epsilon(1, Ratio::ONE).is_err());
        assert!(Response::new(2, Ratio::ONE).is_err() && Response::new(3, ratio("1/3")).is_err());
    }

    #[test]
    fn who_answers_is_seen_so_only_replacing_is_hidden() {
        let mechanism = Response::for_epsilon(2, Ratio::ONE).unwrap();
        assert_eq!(mechanism.cost(&rung(Change::AddRemove, 1)), Cost::Everything);
        assert!(epsilon(&mechanism.cost(&replace(5))) > 4.999);
        assert_eq!(mechanism.sanitise(&2, &mut Replay::new(1)).err(), Some(SanitiseError::Domain { size: 2 }));
        assert_eq!((mechanism.accuracy(0.7).within, mechanism.accuracy(0.75).within), (0.0, 1.0));
    }

    /// Chi-square on 100,000 answers: a correct one fails once in 10⁶ seeds; a wrong answer that may be the truth is caught.
    #[test]
    fn answers_follow_the_law() {
        let mechanism = Response::for_epsilon(5, Ratio::ONE).unwrap();
        let mut entropy = Replay::new(0xa45);
        let counts = tally(5, 100_000, || mechanism.sanitise(&3, &mut entropy).unwrap().open() as usize);
        let (on, off) = (mechanism.truth().to_f64(), mechanism.indicator().off().to_f64());
        let law = [off, off, off, on, off];
        assert!(fit(&counts, &law) > 1e-6, "{counts:?}");
        let broken = tally(5, 100_000, || {
            if bernoulli(mechanism.truth(), &mut entropy) { 3 } else { below(5, &mut entropy) as usize }
        });
        assert!(fit(&broken, &law) < 1e-6, "a lie that is sometimes true must be caught");
    }

    /// P(k of n), by multiplication.
    fn binomial(n: u32, p: f64) -> Vec<f64> {
        (0..n).fold(vec![1.0], |law, _| {
            let mut longer = vec![0.0; law.len() + 1];
            for (k, mass) in law.iter().enumerate() {
                longer[k] += mass * (1.0 - p);
                longer[k + 1] += mass * p;
            }
            longer
        })
    }

    /// The exact law of how many of 40 answers are yes when 12 truly are.
    fn arrivals(channel: &Channel) -> Vec<f64> {
        let (yes, no) = (binomial(12, channel.on().to_f64()), binomial(28, channel.off().to_f64()));
        let mut law = vec![0.0; 41];
        for (i, p) in yes.iter().enumerate() {
            for (j, q) in no.iter().enumerate() {
                law[i + j] += p * q;
            }
        }
        law
    }

    #[test]
    fn estimates_are_unbiased() {
        for channel in [
            *Response::for_epsilon(2, ratio("0.5")).unwrap().indicator(),
            *Response::for_epsilon(7, ratio("2")).unwrap().indicator(),
        ] {
            let law = arrivals(&channel);
            let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
                law.iter().enumerate().map(|(k, p)| p * f(channel.estimate(k as u64, 40))).sum()
            };
            assert!((moment(&|x| x) - 12.0).abs() < 1e-10);
            assert!((moment(&|x| (x - 12.0).powi(2)) / channel.variance(12, 40) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_confidence_interval_covers() {
        let channel = *Response::for_epsilon(3, Ratio::ONE).unwrap().indicator();
        let law = arrivals(&channel);
        for confidence in [0.5, 0.9, 0.99] {
            let within = channel.accuracy(40, confidence).within;
            let covered: f64 = law
                .iter()
                .enumerate()
                .filter(|(k, _)| (channel.estimate(*k as u64, 40) - 12.0).abs() <= within)
                .map(|(_, p)| p)
                .sum();
            assert!(covered >= confidence, "{covered} at {confidence}");
        }
    }

    #[test]
    fn two_channels_are_one() {
        let (first, second) =
            (Channel::new(ratio("3/4"), ratio("1/4")).unwrap(), Channel::new(ratio("0.9"), ratio("0.2")).unwrap());
        let both = first.then(&second).unwrap();
        assert_eq!((*both.on(), *both.off()), (ratio("0.725"), ratio("0.375")));
        assert!(both.log_odds_up() < first.log_odds_up() && both.log_odds_up() < second.log_odds_up());
        assert!(Channel::new(ratio("1"), ratio("1/2")).unwrap().log_odds_up().is_infinite());
        assert!(Channel::new(ratio("1/2"), ratio("1/2")).is_err());
    }
}
