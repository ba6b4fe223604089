//! One unit's value as noisy bits: optimised unary encoding, and RAPPOR's memoised encoding.

use super::response::{Channel, excess_down, local_cost};
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::cost::Cost;
use crate::release::Sealed;
use crate::unit::Rung;
use whit_noise::{BadRatio, Entropy, Ratio};

/// Sends a few set bits among many, each bit through the same noisy channel.
///
/// # Neighbours
/// Two sets of at most `h` bits, of one unit. That the unit reports is in plain view, as with
/// [`Response`](super::response::Response): the cost is for replacing.
///
/// # Claim
/// `P[M(x) = z] ≤ e^ε · P[M(y) = z]` with `ε = h · ln(on·(1 − off) / ((1 − on)·off))`, where `on` and `off` are the probabilities
/// with which a bit that is set or not set is reported as set.
///
/// # Why
/// Bits are independent, so log-ratios add up. At most `h` bits go from set to unset, each worth at most `ln(on/off)`, and at most
/// `h` the other way, each worth at most `ln((1 − off)/(1 − on))`. For one bit of k and `on = 1/2`, `off = 1/(e^ε + 1)` this is ε,
/// and no other pair of probabilities has less variance for rare values (Wang, Blocki, Li, Jha 2017).
///
/// # Tried by
/// `all_reports_of_all_values_keep_the_promise`, `flipping_with_the_full_epsilon_a_bit_breaks_it`, `bits_follow_the_law`.
///
/// ```
/// use whit_core::mechanism::unary::NoisyBits;
/// let browser = NoisyBits::optimised(100, "1".parse()?)?;
/// let chrome = browser.channel().estimate(30_000, 100_000); // 30,000 of 100,000 reports have this bit set
/// assert!((chrome - 13_440.0).abs() < 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyBits {
    bits: usize,
    set: u64,
    channel: Channel,
}

impl NoisyBits {
    /// `bits` bits of which at most `set` are set, each sent through `channel`.
    pub fn new(bits: usize, set: u64, channel: Channel) -> Result<Self, BadParameter> {
        if set == 0 || set > bits as u64 {
            return Err(BadParameter::range("number of bits that are set", set as f64, "at least 1 and at most all"));
        }
        Ok(Self { bits, set, channel })
    }

    /// One bit for each of `values` values, and the probabilities that estimate rare values best at ε.
    pub fn optimised(values: usize, epsilon: Ratio) -> Result<Self, BadParameter> {
        // With e^ε − 1 = a/b: off = 1/(e^ε + 1) = b/(2b + a). A smaller excess makes it larger, so less is lost.
        let excess = excess_down(&epsilon)?;
        let (a, b) = (excess.numerator(), excess.denominator());
        Self::new(values, 1, Channel::new(Ratio::new(1, 2)?, Ratio::new(b, 2 * b + a)?)?)
    }

    /// What each bit goes through; it estimates how many units have a bit set.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl Mechanism for NoisyBits {
    /// The numbers of the bits that are set.
    type Exact = [usize];
    type Noisy = Vec<bool>;

    fn cost(&self, rung: &Rung) -> Cost {
        let each = self.channel.log_odds_up();
        local_cost(if self.set == 1 { each } else { (each * self.set as f64).next_up() }, rung)
    }

    fn sanitise(&self, exact: &[usize], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<bool>>, SanitiseError> {
        if exact.len() as u64 > self.set {
            return Err(SanitiseError::Length { given: exact.len(), expected: self.set as usize });
        }
        let mut bits = vec![false; self.bits];
        for place in exact {
            *bits.get_mut(*place).ok_or(SanitiseError::Domain { size: self.bits as u64 })? = true;
        }
        Ok(Sealed::new(bits.into_iter().map(|bit| self.channel.send(bit, entropy)).collect()))
    }

    /// How many bits of one report are wrong (Hoeffding). For the error of an estimate from many reports, see
    /// [`Channel::accuracy`].
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let (bits, missed, false_alarm) =
            (self.bits as f64, 1.0 - self.channel.on().to_f64(), self.channel.off().to_f64());
        let mean = bits * false_alarm + self.set as f64 * (missed - false_alarm).max(0.0);
        let slack = (bits * (1.0 / (1.0 - confidence)).ln() / 2.0).sqrt();
        Accuracy { within: (mean + slack).ceil().min(bits), confidence }
    }
}

/// RAPPOR: a value becomes a few bits of a Bloom filter, those are randomised once and for all (and remembered), and every report
/// randomises the remembered bits again.
///
/// # Neighbours
/// Two values of one unit, as for [`NoisyBits`].
///
/// # Claim
/// All reports ever made about one value together lose at most `ε∞ = 2h·ln((1 − f/2) / (f/2))`. A single report loses at most
/// `ε1 = h·ln(q*(1 − p*) / (p*(1 − q*)))`, where `p*` and `q*` are the probabilities that a bit that is unset or set is
/// reported as set.
///
/// # Why
/// Reports are made from the remembered bits alone, so they are post-processing of these, however many there are; the remembered bits
/// are [`NoisyBits`] with `on = 1 − f/2`, `off = f/2`. One report on its own is `NoisyBits` with both channels in a row.
/// (Erlingsson, Pihur, Korolova 2014, Theorems 1 and 2.) ε1 is *not* the price of a second report about the same value:
/// who sees many pays ε∞.
///
/// # Tried by
/// `a_single_report_is_both_channels_in_a_row`, `losses_are_those_of_the_theorems`, `many_reports_approach_the_permanent_loss`.
///
/// ```
/// use whit_core::mechanism::unary::Rappor;
/// let homepage = Rappor::new(128, 2, "1/2".parse()?, "1/2".parse()?, "3/4".parse()?)?;
/// let bits = homepage.bits_of(b"example.org", 7); // cohort 7
/// assert!(bits.len() <= 2);
/// let (memo, single) = (homepage.permanent(), homepage.single_report()?);
/// assert!(single.channel().log_odds_up() < memo.channel().log_odds_up());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rappor {
    bits: usize,
    hashes: u64,
    permanent: Channel,
    instantaneous: Channel,
}

impl Rappor {
    /// `bits` bits, of which a value sets `hashes`. A bit is replaced by a fair coin with probability `flip` (f) for good; each
    /// report then shows a remembered 0 as 1 with probability `low` (p) and a remembered 1 with probability `high` (q).
    pub fn new(bits: usize, hashes: u64, flip: Ratio, low: Ratio, high: Ratio) -> Result<Self, BadParameter> {
        let bad = || BadParameter::range("f, the share of bits that become coins", flip.to_f64(), "between 0 and 1");
        let half = flip.times(&Ratio::new(1, 2)?).ok_or_else(bad)?;
        if flip.is_zero() || flip >= Ratio::ONE {
            return Err(bad());
        }
        let stays = Ratio::new(half.denominator() - half.numerator(), half.denominator())?;
        let permanent = Channel::new(stays, half)?;
        NoisyBits::new(bits, hashes, permanent)?;
        Ok(Self { bits, hashes, permanent, instantaneous: Channel::new(high, low)? })
    }

    /// The bits that a value sets in one cohort: public, the same for everybody, and at most `hashes` (two may coincide).
    pub fn bits_of(&self, value: &[u8], cohort: u64) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.hashes)
            .map(|hash| {
                // FNV-1a over cohort, number of the hash and value, then a finaliser that spreads it over all bits.
                let head = cohort.to_le_bytes().into_iter().chain(hash.to_le_bytes());
                let mix = head.chain(value.iter().copied()).fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
                    (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
                });
                let mix = (mix ^ mix >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((u128::from(mix ^ mix >> 31) * self.bits as u128) >> 64) as usize
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The bits to remember. Releasing them costs ε∞, and all reports from them are free after that.
    pub fn permanent(&self) -> NoisyBits {
        NoisyBits { bits: self.bits, set: self.hashes, channel: self.permanent }
    }

    /// A report from remembered bits, which are paid for: post-processing.
    pub fn report(&self, remembered: &[bool], entropy: &mut dyn Entropy) -> Vec<bool> {
        remembered.iter().map(|bit| self.instantaneous.send(*bit, entropy)).collect()
    }

    /// The only report that will ever be made about a value: it costs ε1.
    pub fn single_report(&self) -> Result<NoisyBits, BadParameter> {
        let too_fine = || {
            let (kept, low, high) = (self.permanent.on(), self.instantaneous.off(), self.instantaneous.on());
            let given = format!("1 − f/2 = {kept}, p = {low}, q = {high}");
            BadParameter::Fraction(BadRatio { given, expected: "fractions with smaller denominators" })
        };
        let channel = self.permanent.then(&self.instantaneous).ok_or_else(too_fine)?;
        Ok(NoisyBits { bits: self.bits, set: self.hashes, channel })
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{epsilon, fit, rung, tally};
    use super::*;
    use crate::unit::Change;
    use whit_noise::Replay;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    fn cost(mechanism: &NoisyBits) -> f64 {
        epsilon(&mechanism.cost(&rung(Change::Replace, 1)))
    }

    /// The law of all 2^k reports for one set of bits.
    fn law(bits: usize, channel: &Channel, set: &[usize]) -> Vec<f64> {
        let (on, off) = (channel.on().to_f64(), channel.off().to_f64());
        (0..1_usize << bits)
            .map(|report| {
                let bit = |i: usize| {
                    let p = if set.contains(&i) { on } else { off };
                    if report >> i & 1 == 1 { p } else { 1.0 - p }
                };
                (0..bits).map(bit).product()
            })
            .collect()
    }

    fn worst(bits: usize, channel: &Channel, sets: &[Vec<usize>]) -> f64 {
        let laws: Vec<Vec<f64>> = sets.iter().map(|set| law(bits, channel, set)).collect();
        let losses = laws.iter().flat_map(|p| laws.iter().map(|q| super::super::trial::worst_loss(p, q)));
        losses.fold(0.0, f64::max)
    }

    fn one_hot(bits: usize) -> Vec<Vec<usize>> {
        (0..bits).map(|i| vec![i]).collect()
    }

    #[test]
    fn all_reports_of_all_values_keep_the_promise() {
        for text in ["0.1", "1", "3"] {
            let mechanism = NoisyBits::optimised(5, ratio(text)).unwrap();
            let claimed = cost(&mechanism);
            assert!(claimed <= ratio(text).to_f64() && claimed > ratio(text).to_f64() * (1.0 - 1e-13));
            let found = worst(5, mechanism.channel(), &one_hot(5));
            assert!(found <= claimed + 1e-12 && found > claimed - 1e-9, "{found} of {claimed}");
        }
        // Two set bits of six, disjoint or overlapping.
        let channel = Channel::new(ratio("0.8"), ratio("0.3")).unwrap();
        let pairs: Vec<Vec<usize>> = (0..6).flat_map(|i| (0..i).map(move |j| vec![j, i])).chain(one_hot(6)).collect();
        let claimed = cost(&NoisyBits::new(6, 2, channel).unwrap());
        assert!((worst(6, &channel, &pairs) - claimed).abs() < 1e-9);
    }

    /// Two bits differ under a change. Who gives each of them the whole ε, as binary randomised response would, spends 2ε.
    #[test]
    fn flipping_with_the_full_epsilon_a_bit_breaks_it() {
        let keep = 1_f64.exp() / (1_f64.exp() + 1.0);
        let channel =
            Channel::new(Ratio::from_f64_down(keep).unwrap(), Ratio::from_f64_up(1.0 - keep).unwrap()).unwrap();
        assert!(worst(4, &channel, &one_hot(4)) > 1.999);
        assert!(cost(&NoisyBits::new(4, 1, channel).unwrap()) > 1.999, "and the cost says so");
    }

    /// Chi-square on 100,000 reports: a correct sampler fails once in 10⁶ seeds; correlated bits are caught.
    #[test]
    fn bits_follow_the_law() {
        let mechanism = NoisyBits::optimised(4, Ratio::ONE).unwrap();
        let mut entropy = Replay::new(0x0e);
        let number = |bits: &[bool]| bits.iter().enumerate().map(|(i, bit)| usize::from(*bit) << i).sum::<usize>();
        let counts = tally(16, 100_000, || number(&mechanism.sanitise(&[2], &mut entropy).unwrap().open()));
        let law = law(4, mechanism.channel(), &[2]);
        assert!(fit(&counts, &law) > 1e-6, "{counts:?}");
        let broken = tally(16, 100_000, || {
            let mut bits = mechanism.sanitise(&[2], &mut entropy).unwrap().open();
            bits[3] = bits[0]; // the right share of ones, but no coin of its own
            number(&bits)
        });
        assert!(fit(&broken, &law) < 1e-6);
        assert_eq!(mechanism.sanitise(&[4], &mut entropy).err(), Some(SanitiseError::Domain { size: 4 }));
        assert!(mechanism.sanitise(&[1, 2], &mut entropy).is_err());
    }

    #[test]
    fn a_report_has_no_more_wrong_bits_than_stated() {
        let mechanism = NoisyBits::optimised(200, Ratio::ONE).unwrap();
        let (mut entropy, within) = (Replay::new(3), mechanism.accuracy(0.95).within);
        let wrong = |bits: &[bool]| bits.iter().enumerate().filter(|(i, bit)| **bit != (*i == 7)).count() as f64;
        let bad = (0..2000).filter(|_| wrong(&mechanism.sanitise(&[7], &mut entropy).unwrap().open()) > within).count();
        assert!(within < 80.0 && bad < 100, "{bad} of 2000 beyond {within}");
    }

    fn homepage() -> Rappor {
        Rappor::new(128, 2, ratio("1/2"), ratio("1/2"), ratio("3/4")).unwrap()
    }

    #[test]
    fn losses_are_those_of_the_theorems() {
        let (f, p, q, h) = (0.5_f64, 0.5, 0.75, 2.0);
        let permanent = cost(&homepage().permanent());
        assert!((permanent - 2.0 * h * ((1.0 - f / 2.0) / (f / 2.0)).ln()).abs() < 1e-12);
        let (high, low) = (0.5 * f * (p + q) + (1.0 - f) * q, 0.5 * f * (p + q) + (1.0 - f) * p);
        let single = cost(&homepage().single_report().unwrap());
        assert!((single - h * (high * (1.0 - low) / (low * (1.0 - high))).ln()).abs() < 1e-12);
        assert!(single < permanent);
        assert!(Rappor::new(128, 2, Ratio::ZERO, ratio("1/2"), ratio("3/4")).is_err());
        assert!(Rappor::new(128, 2, ratio("1/2"), ratio("3/4"), ratio("1/2")).is_err());
        assert!(Rappor::new(4, 5, ratio("1/2"), ratio("1/2"), ratio("3/4")).is_err());
    }

    /// Chi-square on 100,000 reports: two stages and one channel have the same law.
    #[test]
    fn a_single_report_is_both_channels_in_a_row() {
        let rappor = Rappor::new(3, 1, ratio("0.4"), ratio("0.3"), ratio("0.9")).unwrap();
        let mut entropy = Replay::new(0x4a);
        let number = |bits: &[bool]| bits.iter().enumerate().map(|(i, bit)| usize::from(*bit) << i).sum::<usize>();
        let counts = tally(8, 100_000, || {
            let remembered = rappor.permanent().sanitise(&[1], &mut entropy).unwrap().open();
            number(&rappor.report(&remembered, &mut entropy))
        });
        let single = rappor.single_report().unwrap();
        assert!(fit(&counts, &law(3, single.channel(), &[1])) > 1e-6, "{counts:?}");
        assert!(fit(&counts, &law(3, rappor.permanent().channel(), &[1])) < 1e-6);
    }

    /// ε1 is for one report. The mean of many shows the remembered bits, and with them ε∞; never more.
    #[test]
    fn many_reports_approach_the_permanent_loss() {
        let rappor = Rappor::new(2, 1, ratio("1/2"), ratio("1/2"), ratio("3/4")).unwrap();
        // P(bit shown `ones` times in n reports) for a truly set and a truly unset bit, up to the binomial coefficient.
        let shown = |stays: f64, ones: i32, n: i32| {
            let term = |p: f64| p.powi(ones) * (1.0 - p).powi(n - ones);
            stays * term(0.75) + (1.0 - stays) * term(0.5)
        };
        let loss = |n: i32| {
            let ratio = |ones| (shown(0.75, ones, n) / shown(0.25, ones, n)).ln();
            ratio(n) - ratio(0) // one bit turns on and another off
        };
        let (single, permanent) = (cost(&rappor.single_report().unwrap()), cost(&rappor.permanent()));
        assert!((loss(1) - single).abs() < 1e-12);
        assert!(loss(2) > single && loss(40) > permanent * 0.99 && loss(40) <= permanent);
    }

    #[test]
    fn a_value_sets_the_same_few_bits_for_everybody() {
        let rappor = homepage();
        assert_eq!(rappor.bits_of(b"example.org", 1), rappor.bits_of(b"example.org", 1));
        assert_ne!(rappor.bits_of(b"example.org", 1), rappor.bits_of(b"example.org", 2));
        let mut hits = vec![0_u64; 128];
        for i in 0..50_000_u32 {
            rappor.bits_of(&i.to_le_bytes(), 0).into_iter().for_each(|bit| hits[bit] += 1);
        }
        assert!(fit(&hits, &[1.0 / 128.0; 128]) > 1e-6, "every bit is hit equally often");
    }
}
