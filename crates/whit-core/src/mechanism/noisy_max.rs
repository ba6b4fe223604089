//! Choosing the candidate with the largest noisy score: the two laws of [`select`](super::select), drawn by a race.

use super::select::{Candidates, Exponential, PermuteAndFlip};
use super::{Accuracy, Mechanism, SanitiseError};
use crate::cost::Cost;
use crate::release::Sealed;
use crate::unit::Rung;
use whit_noise::Entropy;
use whit_noise::race::{self, Perturbation};

/// Report-noisy-max: each score gets noise of its own, and the number of the largest is released, not the noisy score.
///
/// # Neighbours
/// As for [`Exponential`]: scores of data sets that differ in one unit of the rung.
///
/// # Claim
/// With Gumbel noise: the law and the cost (bounded range) of the exponential mechanism. With exponential noise: the law and
/// the cost (pure ε) of permute-and-flip.
///
/// # Why
/// `factor·score + Gumbel` is largest for `r` with probability proportional to `exp(factor·score(r))` (the Gumbel-max identity).
/// That exponential noise gives permute-and-flip: Ding, Kifer, Steinke, Wang, Xiao, Zhang 2021; and its ε follows from the
/// memoryless law of the winner's noise, see [`PermuteAndFlip`]. Noise is a real number, never rounded: only the *order* is
/// computed, with as many random bits as that takes, so no floating-point tie is decided wrongly.
///
/// # Tried by
/// `gumbel_noise_is_the_exponential_mechanism`, `exponential_noise_is_permute_and_flip`.
///
/// ```
/// use whit_core::mechanism::{noisy_max::NoisyMax, select::{Candidates, Scores}};
/// let days = Candidates::new(7, "1".parse()?, 1, Scores::Monotone)?;
/// let quietest = NoisyMax::exponential(days);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyMax {
    candidates: Candidates,
    noise: Perturbation,
}

impl NoisyMax {
    /// With Gumbel noise of scale 1/factor on each score.
    pub fn gumbel(candidates: Candidates) -> Self {
        Self { candidates, noise: Perturbation::Gumbel }
    }

    /// With exponential noise of scale 1/factor on each score.
    pub fn exponential(candidates: Candidates) -> Self {
        Self { candidates, noise: Perturbation::Exponential }
    }

    /// The law of the choice, from the exact scores. It is as private as they are: for audits and worked examples.
    pub fn probabilities(&self, scores: &[i64]) -> Result<Vec<f64>, SanitiseError> {
        match self.noise {
            Perturbation::Gumbel => Exponential::new(self.candidates.clone()).probabilities(scores),
            Perturbation::Exponential => PermuteAndFlip::new(self.candidates.clone()).probabilities(scores),
        }
    }
}

impl Mechanism for NoisyMax {
    type Exact = [i64];
    type Noisy = usize;

    fn cost(&self, rung: &Rung) -> Cost {
        self.candidates.range_up(rung).map_or(Cost::Everything, |epsilon| match self.noise {
            Perturbation::Gumbel => Cost::BoundedRange { epsilon },
            Perturbation::Exponential => Cost::Pure { epsilon },
        })
    }

    fn sanitise(&self, exact: &[i64], entropy: &mut dyn Entropy) -> Result<Sealed<usize>, SanitiseError> {
        let (numbers, scores): (Vec<usize>, Vec<i64>) = self.candidates.contest(exact)?.into_iter().unzip();
        let order = match self.noise {
            Perturbation::Gumbel => race::gumbel(&scores, self.candidates.factor(), 1, entropy),
            Perturbation::Exponential => race::exponential(&scores, self.candidates.factor(), 1, entropy),
        };
        Ok(Sealed::new(numbers[order[0]]))
    }

    /// How far the chosen score is below the best one.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.candidates.accuracy(confidence, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::select::Scores;
    use super::super::trial::{epsilon, fit, rung, tally};
    use super::*;
    use crate::unit::Change;
    use whit_noise::Replay;

    const SCORES: [i64; 6] = [30, 29, 27, 22, 99, 25];

    fn candidates() -> Candidates {
        Candidates::new(6, "0.9".parse().unwrap(), 1, Scores::General).unwrap().without([4]).unwrap()
    }

    fn counts(mechanism: &NoisyMax) -> Vec<u64> {
        let mut entropy = Replay::new(0x9a8e);
        tally(6, 100_000, || mechanism.sanitise(&SCORES, &mut entropy).unwrap().open())
    }

    /// Chi-square on 100,000 draws: a correct race fails once in 10⁶ seeds, and the other law is caught.
    #[test]
    fn gumbel_noise_is_the_exponential_mechanism() {
        let mechanism = NoisyMax::gumbel(candidates());
        let counts = counts(&mechanism);
        assert!(fit(&counts, &Exponential::new(candidates()).probabilities(&SCORES).unwrap()) > 1e-6, "{counts:?}");
        assert!(fit(&counts, &PermuteAndFlip::new(candidates()).probabilities(&SCORES).unwrap()) < 1e-6);
        let cost = mechanism.cost(&rung(Change::Replace, 1));
        assert_eq!(cost, Exponential::new(candidates()).cost(&rung(Change::Replace, 1)));
    }

    #[test]
    fn exponential_noise_is_permute_and_flip() {
        let mechanism = NoisyMax::exponential(candidates());
        let counts = counts(&mechanism);
        assert!(fit(&counts, &PermuteAndFlip::new(candidates()).probabilities(&SCORES).unwrap()) > 1e-6, "{counts:?}");
        assert!(fit(&counts, &Exponential::new(candidates()).probabilities(&SCORES).unwrap()) < 1e-6);
        assert!(matches!(mechanism.cost(&rung(Change::Replace, 1)), Cost::Pure { .. }));
        assert!(epsilon(&mechanism.cost(&rung(Change::Replace, 2))) >= 1.8);
    }

    #[test]
    fn a_noisy_maximum_misses_by_no_more_than_stated() {
        for mechanism in [NoisyMax::gumbel(candidates()), NoisyMax::exponential(candidates())] {
            let bound = mechanism.accuracy(0.95).within.ceil() as i64;
            let law = mechanism.probabilities(&[bound, 0, 0, 0, 0, 0]).unwrap();
            assert!(law[0] >= 0.95, "{law:?}");
        }
    }
}
