//! The closed language in which mechanisms describe one run, for one rung of the ladder.
//!
//! A cost reads parameters alone, never data. Accountants turn it into a loss, and a better accountant may read an
//! old cost again, so what a variant means never changes: a new meaning is a new variant.

use crate::loss::{Delta, Epsilon, OutOfRange, Rho};
use crate::unit::Change;
use serde::{Deserialize, Serialize};

/// How the units of one step are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Each is drawn on its own with the same probability.
    Poisson,
    /// A batch of fixed size, without replacement; the rate is the batch's share of all.
    Fixed,
}

/// What one coin decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// The unit itself: an event, a row, a (user, element) pair.
    Unit,
    /// A whole user, of whom at most `elements` units are not empty; they share the coin.
    User {
        /// The most units that one user holds.
        elements: u64,
    },
}

/// One step of drawing units, adding up what they contribute (each at most 1 in norm), and adding Gaussian noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Standard deviation of the noise on the sum, over the largest norm of one unit's contribution.
    pub noise: f64,
    /// The probability that a coin shows "drawn".
    pub rate: f64,
    /// How coins are thrown.
    pub sampling: Sampling,
    /// What a coin decides about.
    pub draw: Draw,
    /// How neighbours differ.
    pub change: Change,
    /// A bound on how far apart two neighbours' contributions are, in the unit of the clip norm: 2 unless more is known.
    pub difference: f64,
    /// How many units change at once: 1 on the rung that is protected, the cap that links them on a coarser one.
    pub holds: u64,
}

/// How often a mechanism is run of which the best output alone is released: a law that depends on no data. How often it was is not released.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunLaw {
    /// k times with probability stop·(1 − stop)^(k−1).
    Geometric {
        /// The probability that a run is the last one.
        stop: f64,
    },
    /// k times with probability (1 − e^−spread)^k/(k·spread).
    Logarithmic {
        /// What the law is spread over.
        spread: f64,
    },
}

impl RunLaw {
    /// How many runs there are on average, rounded up.
    pub fn mean(&self) -> f64 {
        let mean = match *self {
            Self::Geometric { stop } => 1.0 / stop,
            Self::Logarithmic { spread } => libm::expm1(spread) / spread,
        };
        mean * (1.0 + 8.0 * f64::EPSILON)
    }

    fn validate(&self) -> Result<(), OutOfRange> {
        match *self {
            Self::Geometric { stop } if !(stop > 0.0 && stop <= 1.0) => {
                Err(OutOfRange { name: "probability of stopping", value: stop, range: "greater than 0 and at most 1" })
            }
            Self::Logarithmic { spread } if !(spread > 0.0 && spread <= 100.0) => {
                Err(OutOfRange { name: "spread", value: spread, range: "greater than 0 and at most 100" })
            }
            Self::Geometric { .. } | Self::Logarithmic { .. } => Ok(()),
        }
    }
}

/// What one run of a mechanism costs one rung.
///
/// ```
/// use whit_core::{Cost, Epsilon};
/// let count = Cost::Pure { epsilon: Epsilon::new(0.1)? };
/// let week = count.clone().repeat(7);
/// assert_eq!(week.leaves(), Cost::Series(vec![count; 7]).leaves());
/// # Ok::<(), whit_core::OutOfRange>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Reads nothing private.
    Nothing,
    /// Protects nothing.
    Everything,
    /// ε-differential privacy, and no more is known.
    Pure {
        /// The bound on the log-ratio of any two probabilities.
        epsilon: Epsilon,
    },
    /// (ε, δ)-differential privacy, and no more is known.
    Approximate {
        /// The bound outside a set of mass δ.
        epsilon: Epsilon,
        /// That mass.
        delta: Delta,
    },
    /// ρ-zero-concentrated differential privacy, and no more is known.
    Concentrated {
        /// The bound on Rényi divergence over order.
        rho: Rho,
    },
    /// Gaussian noise (real, or real and then rounded to the lattice), in any dimension.
    Gaussian {
        /// Standard deviation over the ℓ2 distance of neighbours.
        noise: f64,
    },
    /// Laplace noise on one real number.
    Laplace {
        /// Scale over the distance of neighbours.
        scale: f64,
    },
    /// Discrete Laplace noise on one integer.
    Geometric {
        /// The distance of neighbours, a whole number.
        shift: u64,
        /// The scale of the noise.
        scale: f64,
    },
    /// ε-bounded range: the log-ratios of all outputs lie in one interval of length ε, wherever that is.
    /// The exponential mechanism with weights exp(ε·score/(2Δ)) is one. (Dong, Durfee, Rogers 2020.)
    BoundedRange {
        /// The interval's length.
        epsilon: Epsilon,
    },
    /// A step of subsampled Gaussian noise.
    Sampled(Sampled),
    /// The best of several runs, by an order of outputs that is fixed beforehand: so many runs as a law says that depends on no data, each of which is drawn, by coins alone, from
    /// candidates that cost this. Nothing is released of the others, nor how many there were. (Papernot and Steinke 2022.)
    Chosen {
        /// What a run of each candidate costs, its output with what decides its place in the order.
        candidates: Vec<Cost>,
        /// How many runs there are.
        law: RunLaw,
    },
    /// The same, again and again; parameters of later runs may depend on earlier outputs.
    Repeat {
        /// How often.
        times: u64,
        /// What each run costs.
        cost: Box<Cost>,
    },
    /// One after the other, each chosen with the outputs of those before in view.
    Series(Vec<Cost>),
}

impl Cost {
    /// This cost `times` over.
    #[must_use]
    pub fn repeat(self, times: u64) -> Self {
        Self::Repeat { times, cost: Box::new(self) }
    }

    /// The single runs and how often each happens: sorted, merged, without `Nothing`, `Repeat` and `Series`.
    ///
    /// Two trees that describe the same runs, in whatever order and nesting, have the same leaves. Every accountant
    /// starts from here, so none can forget to multiply and none can depend on the order.
    /// What is repeated more often than can be counted protects nothing: it becomes `Everything`.
    pub fn leaves(&self) -> Vec<(Cost, u64)> {
        let mut found = Vec::new();
        self.collect(1, &mut found);
        found.sort_by_key(|(leaf, _)| leaf.rank());
        let mut merged: Vec<(Cost, u64)> = Vec::new();
        for (cost, times) in found {
            match merged.last_mut() {
                Some((last, count)) if last.rank() == cost.rank() => match count.checked_add(times) {
                    Some(sum) => *count = sum,
                    None => *last = Self::Everything,
                },
                _ => merged.push((cost, times)),
            }
        }
        merged
    }

    fn collect(&self, times: u64, found: &mut Vec<(Cost, u64)>) {
        if times == 0 {
            return;
        }
        match self {
            Self::Nothing => {}
            Self::Repeat { times: inner, cost } => match times.checked_mul(*inner) {
                Some(times) => cost.collect(times, found),
                None => found.push((Self::Everything, 1)),
            },
            Self::Series(costs) => costs.iter().for_each(|cost| cost.collect(times, found)),
            Self::Everything
            | Self::Pure { .. }
            | Self::Approximate { .. }
            | Self::Concentrated { .. }
            | Self::Gaussian { .. }
            | Self::Laplace { .. }
            | Self::Geometric { .. }
            | Self::BoundedRange { .. }
            | Self::Sampled(_)
            | Self::Chosen { .. } => found.push((self.clone(), times)),
        }
    }

    /// A total order on leaves: the variant's number, then the bits of its parameters, and what it has of others.
    fn rank(&self) -> (u8, [u64; 8], Vec<u64>) {
        let (mut bits, mut others) = ([0; 8], Vec::new());
        let kind = match self {
            Self::Nothing => 0,
            Self::Everything => 1,
            Self::Pure { epsilon } => {
                bits[0] = epsilon.get().to_bits();
                2
            }
            Self::Approximate { epsilon, delta } => {
                bits[..2].copy_from_slice(&[epsilon.get().to_bits(), delta.get().to_bits()]);
                3
            }
            Self::Concentrated { rho } => {
                bits[0] = rho.get().to_bits();
                4
            }
            Self::Gaussian { noise } => {
                bits[0] = noise.to_bits();
                5
            }
            Self::Laplace { scale } => {
                bits[0] = scale.to_bits();
                6
            }
            Self::Geometric { shift, scale } => {
                bits[..2].copy_from_slice(&[*shift, scale.to_bits()]);
                7
            }
            Self::BoundedRange { epsilon } => {
                bits[0] = epsilon.get().to_bits();
                8
            }
            Self::Sampled(s) => {
                let (drawn, elements) = match s.draw {
                    Draw::Unit => (0, 1),
                    Draw::User { elements } => (1, elements),
                };
                bits = [
                    s.noise.to_bits(),
                    s.rate.to_bits(),
                    u64::from(s.sampling == Sampling::Fixed),
                    drawn,
                    elements,
                    u64::from(s.change == Change::Replace),
                    s.difference.to_bits(),
                    s.holds,
                ];
                9
            }
            Self::Repeat { .. } => 10,
            Self::Series(_) => 11,
            Self::Chosen { candidates, law } => {
                let (name, parameter) = match *law {
                    RunLaw::Geometric { stop } => (0, stop),
                    RunLaw::Logarithmic { spread } => (1, spread),
                };
                bits[..3].copy_from_slice(&[name, parameter.to_bits(), candidates.len() as u64]);
                for candidate in candidates {
                    let leaves = candidate.leaves();
                    others.push(leaves.len() as u64);
                    for (leaf, times) in leaves {
                        let (kind, bits, more) = leaf.rank();
                        others.extend([kind.into(), times, more.len() as u64]);
                        others.extend(bits.into_iter().chain(more));
                    }
                }
                12
            }
        };
        (kind, bits, others)
    }

    /// Whether every number in the tree is one that its variant can mean. Costs that come from a file are checked
    /// with this before any accountant reads them.
    pub fn validate(&self) -> Result<(), OutOfRange> {
        fn positive(name: &'static str, value: f64) -> Result<(), OutOfRange> {
            if value > 0.0 { Ok(()) } else { Err(OutOfRange { name, value, range: "greater than 0" }) }
        }
        match self {
            Self::Approximate { delta, .. } if delta.get() > 1.0 => {
                Err(OutOfRange { name: "δ", value: delta.get(), range: "at most 1" })
            }
            Self::Nothing
            | Self::Everything
            | Self::Pure { .. }
            | Self::Approximate { .. }
            | Self::Concentrated { .. }
            | Self::BoundedRange { .. } => Ok(()),
            Self::Gaussian { noise } => positive("noise", *noise),
            Self::Laplace { scale } | Self::Geometric { scale, .. } => positive("scale", *scale),
            Self::Sampled(s) => s.validate(),
            Self::Chosen { candidates, law } => {
                if candidates.is_empty() {
                    return Err(OutOfRange { name: "number of candidates", value: 0.0, range: "at least 1" });
                }
                law.validate()?;
                candidates.iter().try_for_each(Self::validate)
            }
            Self::Repeat { cost, .. } => cost.validate(),
            Self::Series(costs) => costs.iter().try_for_each(Self::validate),
        }
    }
}

impl Sampled {
    /// Whether the numbers can be meant: see [`Cost::validate`].
    pub fn validate(&self) -> Result<(), OutOfRange> {
        let elements = match self.draw {
            Draw::Unit => 1,
            Draw::User { elements } => elements,
        };
        if self.noise <= 0.0 || self.noise.is_nan() {
            return Err(OutOfRange { name: "noise", value: self.noise, range: "greater than 0" });
        }
        if !(0.0..=1.0).contains(&self.rate) {
            return Err(OutOfRange { name: "rate", value: self.rate, range: "between 0 and 1" });
        }
        if !(self.difference > 0.0 && self.difference <= 2.0) {
            return Err(OutOfRange {
                name: "difference",
                value: self.difference,
                range: "greater than 0 and at most 2 clip norms",
            });
        }
        if elements == 0 {
            return Err(OutOfRange { name: "elements per user", value: 0.0, range: "at least 1" });
        }
        if self.holds == 0 {
            return Err(OutOfRange { name: "units that change at once", value: 0.0, range: "at least 1" });
        }
        if self.holds > elements && self.draw != Draw::Unit {
            return Err(OutOfRange {
                name: "units that change at once",
                value: self.holds as f64,
                range: "at most the number of elements per user",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pure(epsilon: f64) -> Cost {
        Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
    }

    #[test]
    fn nesting_and_order_leave_no_trace_in_the_leaves() {
        let (a, b) = (pure(0.5), Cost::Gaussian { noise: 3.0 });
        let nested =
            Cost::Series(vec![a.clone().repeat(2), Cost::Series(vec![b.clone(), Cost::Nothing]).repeat(3), a.clone()]);
        let flat = Cost::Series(vec![b.clone(), a.clone(), b.clone(), a.clone(), b.clone(), a.clone()]);
        assert_eq!(nested.leaves(), flat.leaves());
        assert_eq!(nested.leaves(), vec![(a, 3), (b, 3)]);
        assert!(Cost::Everything.repeat(0).leaves().is_empty());
    }

    #[test]
    fn choices_are_the_same_where_their_candidates_are() {
        let law = RunLaw::Logarithmic { spread: 2.0 };
        let chosen = |candidates: Vec<Cost>, law| Cost::Chosen { candidates, law };
        let twice = chosen(vec![pure(0.5).repeat(2), Cost::Gaussian { noise: 3.0 }], law);
        let written = chosen(vec![Cost::Series(vec![pure(0.5), pure(0.5)]), Cost::Gaussian { noise: 3.0 }], law);
        assert_eq!(Cost::Series(vec![twice.clone(), written]).leaves().len(), 1);
        for other in [
            chosen(vec![pure(0.5), Cost::Gaussian { noise: 3.0 }], law),
            chosen(vec![pure(0.5).repeat(2)], law),
            chosen(vec![pure(0.5).repeat(2), Cost::Gaussian { noise: 3.0 }], RunLaw::Geometric { stop: 0.5 }),
        ] {
            assert_eq!(Cost::Series(vec![twice.clone(), other]).leaves().len(), 2);
        }
        assert!(twice.validate().is_ok() && chosen(Vec::new(), law).validate().is_err());
        assert!(chosen(vec![pure(1.0)], RunLaw::Geometric { stop: 0.0 }).validate().is_err());
        assert!(chosen(vec![Cost::Gaussian { noise: -1.0 }], law).validate().is_err());
    }

    #[test]
    fn what_cannot_be_counted_protects_nothing() {
        let often = pure(1e-19).repeat(1 << 40).repeat(1 << 40);
        assert_eq!(often.leaves(), vec![(Cost::Everything, 1)]);
        let twice = Cost::Series(vec![pure(1e-19).repeat(u64::MAX), pure(1e-19)]);
        assert!(twice.leaves().iter().any(|leaf| leaf.0 == Cost::Everything));
        assert!(pure(1.0).repeat(1 << 40).repeat(0).leaves().is_empty());
    }

    #[test]
    fn a_cost_survives_being_written_down() {
        let cost = Cost::Series(vec![
            Cost::Sampled(Sampled {
                noise: 4.0,
                rate: 0.01,
                sampling: Sampling::Poisson,
                draw: Draw::User { elements: 30 },
                change: Change::Replace,
                difference: 2.0,
                holds: 1,
            })
            .repeat(40_000),
            Cost::Everything,
        ]);
        let text = serde_json::to_string(&cost).unwrap();
        assert_eq!(serde_json::from_str::<Cost>(&text).unwrap(), cost);
        assert!(serde_json::from_str::<Cost>(r#"{"pure":{"epsilon":-1.0}}"#).is_err());
    }
}
