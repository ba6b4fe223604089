//! One file an accountant: from the leaves of a [`Cost`] to an ε at a δ, or a δ at an ε.
//!
//! Every accountant here gives a proven bound: what it reports is never less than what the cost may lose. They differ
//! in how close they come. [`pld`] is the default and comes closest, from both sides; the others only promise an upper
//! bound, so their lower bound is 0.
//!
//! | accountant | its currency | how costs add up |
//! |---|---|---|
//! | [`basic`] | (ε, δ) | sums |
//! | [`advanced`] | (ε, δ) | Dwork–Roth, Kairouz–Oh–Viswanath |
//! | [`zcdp`] | ρ | sums |
//! | [`renyi`] | Rényi divergence at each order α | sums at each order |
//! | [`gdp`] | μ | root of the sum of squares |
//! | [`pld`] | the distribution of the loss itself | convolution |
//!
//! [`Cost::leaves`] is the only way in, so that no accountant can forget to multiply or depend on the order.

pub mod advanced;
pub mod basic;
mod binomial;
mod choice;
pub mod divergence;
pub mod gdp;
pub mod pair;
pub mod pld;
pub(crate) mod quadrature;
pub mod renyi;
pub mod zcdp;

use serde::{Deserialize, Serialize};
use whit_core::{Cost, Loss, OutOfRange};

/// Which accountant to ask.
///
/// ```
/// use whit_account::Name;
/// assert_eq!("rdp".parse::<Name>()?, Name::Rdp);
/// assert_eq!(Name::Zcdp.to_string(), "zcdp");
/// # Ok::<(), whit_account::accountant::NoSuchAccountant>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    /// The privacy loss distribution, composed numerically: rigorous from above and from below.
    Pld,
    /// Rényi divergences.
    Rdp,
    /// Gaussian differential privacy.
    Gdp,
    /// Zero-concentrated differential privacy.
    Zcdp,
    /// Advanced composition of (ε, δ) pairs.
    Advanced,
    /// The sum of (ε, δ) pairs.
    Basic,
}

impl Name {
    /// All of them, the tightest first.
    pub const ALL: [Self; 6] = [Self::Pld, Self::Rdp, Self::Gdp, Self::Zcdp, Self::Advanced, Self::Basic];

    /// The word by which people choose it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pld => "pld",
            Self::Rdp => "rdp",
            Self::Gdp => "gdp",
            Self::Zcdp => "zcdp",
            Self::Advanced => "advanced",
            Self::Basic => "basic",
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// A word that names no accountant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no accountant `{0}`: choose one of pld, rdp, gdp, zcdp, advanced, basic")]
pub struct NoSuchAccountant(pub String);

impl std::str::FromStr for Name {
    type Err = NoSuchAccountant;

    fn from_str(word: &str) -> Result<Self, NoSuchAccountant> {
        Self::ALL.into_iter().find(|name| name.word() == word).ok_or_else(|| NoSuchAccountant(word.to_owned()))
    }
}

/// Why an accountant gives no number: it never gives a wrong one instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unsupported {
    /// The accountant has no proven bound for such a cost in its currency.
    #[error("the {accountant} accountant cannot price {cost}: {instead}")]
    Cost {
        /// Which accountant was asked.
        accountant: Name,
        /// What it was asked about.
        cost: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// No bound is known for such a way of drawing, whoever is asked.
    #[error("no accountant has a proven bound for {sampling}: {instead}")]
    Drawing {
        /// How units are drawn.
        sampling: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// At δ = 0 the accountant could only say that ε is infinite.
    #[error(
        "the {accountant} accountant needs δ > 0 to price {cost}: give a δ well below one over the number of units, such as 1e-6"
    )]
    NeedsDelta {
        /// Which accountant was asked.
        accountant: Name,
        /// What it was asked about.
        cost: &'static str,
    },
    /// A number that cannot be meant.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
}

/// What an accountant says of a cost at one ε: δ lies between the two, and the upper one is the promise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeltaLoss {
    /// A proven bound: the mechanism is (ε, upper)-differentially private.
    pub upper: f64,
    /// Some mechanism with this cost is not private for any smaller δ. Zero where the accountant knows of none.
    pub lower: f64,
    /// The ε at which both hold.
    pub epsilon: f64,
}

/// The ε that a cost loses at δ, as one accountant sees it.
///
/// No protection is an infinite ε, never zero and never an error.
///
/// ```
/// use whit_account::{Name, epsilon};
/// use whit_core::{Cost, Epsilon};
///
/// let counts = Cost::Pure { epsilon: Epsilon::new(0.1)? }.repeat(100);
/// let sum = epsilon(&counts, 1e-6, Name::Basic)?;
/// let advanced = epsilon(&counts, 1e-6, Name::Advanced)?;
/// assert!((10.0..10.000_001).contains(&sum.upper));
/// assert!((4.7745..4.7747).contains(&advanced.upper));
/// assert_eq!(epsilon(&Cost::Everything, 1e-6, Name::Basic)?.upper, f64::INFINITY);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn epsilon(cost: &Cost, delta: f64, accountant: Name) -> Result<Loss, Unsupported> {
    Ok(epsilon_by(cost, delta, accountant)?.0)
}

/// The same, and which accountant proved the upper bound: another one than was asked where PLD's lattice would take more
/// memory or time than a question may, or where another's theorem says less. An answer that is shown names it.
///
/// ```
/// use whit_account::{Name, epsilon_by};
/// use whit_core::Cost;
///
/// let (loss, by) = epsilon_by(&Cost::Gaussian { noise: 1.0 }, 1e-5, Name::Pld)?;
/// assert!(by == Name::Pld && loss.lower > 4.377);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn epsilon_by(cost: &Cost, delta: f64, accountant: Name) -> Result<(Loss, Name), Unsupported> {
    let upper = match accountant {
        Name::Pld => return pld::epsilon_by(cost, delta),
        Name::Rdp => renyi::epsilon(cost, delta)?,
        Name::Gdp => gdp::epsilon(cost, delta)?,
        Name::Zcdp => zcdp::epsilon(cost, delta)?,
        Name::Advanced => advanced::epsilon(cost, delta)?,
        Name::Basic => basic::epsilon(cost, delta)?,
    };
    Ok((Loss { upper, lower: 0.0, delta }, accountant))
}

/// The δ that a cost loses at ε, as one accountant sees it. It is at most 1.
///
/// ```
/// use whit_account::{Name, delta};
/// use whit_core::Cost;
///
/// // Gaussian noise as large as the sensitivity: Balle and Wang's exact value, from above.
/// let once = delta(&Cost::Gaussian { noise: 1.0 }, 1.0, Name::Gdp)?;
/// assert!((0.126_936..0.126_938).contains(&once.upper));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn delta(cost: &Cost, epsilon: f64, accountant: Name) -> Result<DeltaLoss, Unsupported> {
    Ok(delta_by(cost, epsilon, accountant)?.0)
}

/// The same, and which accountant proved the upper bound: see [`epsilon_by`].
pub fn delta_by(cost: &Cost, epsilon: f64, accountant: Name) -> Result<(DeltaLoss, Name), Unsupported> {
    let upper = match accountant {
        Name::Pld => return pld::delta_by(cost, epsilon),
        Name::Rdp => renyi::delta(cost, epsilon)?,
        Name::Gdp => gdp::delta(cost, epsilon)?,
        Name::Zcdp => zcdp::delta(cost, epsilon)?,
        Name::Advanced => advanced::delta(cost, epsilon)?,
        Name::Basic => basic::delta(cost, epsilon)?,
    };
    Ok((DeltaLoss { upper: upper.clamp(0.0, 1.0), lower: 0.0, epsilon }, accountant))
}

/// The single runs of a cost whose numbers are all in range, or `None` where one of them protects nothing
/// (`Everything`, an infinite ε or ρ, a δ of 1).
pub(crate) fn runs(cost: &Cost) -> Result<Option<Vec<(Cost, u64)>>, Unsupported> {
    cost.validate()?;
    let leaves = cost.leaves();
    let mut exposed = false;
    for (leaf, _) in &leaves {
        exposed |= match leaf {
            Cost::Chosen { candidates, .. } => {
                let mut any = false;
                for candidate in candidates {
                    any |= runs(candidate)?.is_none();
                }
                any
            }
            Cost::Everything => true,
            Cost::Pure { epsilon } | Cost::BoundedRange { epsilon } => epsilon.get().is_infinite(),
            Cost::Approximate { epsilon, delta } => epsilon.get().is_infinite() || delta.get() >= 1.0,
            Cost::Concentrated { rho } => rho.get().is_infinite(),
            Cost::Nothing
            | Cost::Gaussian { .. }
            | Cost::Laplace { .. }
            | Cost::Geometric { .. }
            | Cost::Sampled(_)
            | Cost::Repeat { .. }
            | Cost::Series(_) => false,
        };
    }
    Ok((!exposed).then_some(leaves))
}

/// The name by which messages speak of a leaf.
pub(crate) fn word_for(cost: &Cost) -> &'static str {
    match cost {
        Cost::Nothing => "a run that reads nothing private",
        Cost::Everything => "a run that protects nothing",
        Cost::Pure { .. } => "pure ε",
        Cost::Approximate { .. } => "approximate (ε, δ)",
        Cost::Concentrated { .. } => "concentrated ρ",
        Cost::Gaussian { .. } => "Gaussian noise",
        Cost::Laplace { .. } => "Laplace noise",
        Cost::Geometric { .. } => "discrete Laplace noise",
        Cost::BoundedRange { .. } => "a bounded range ε",
        Cost::Sampled(_) => "subsampled Gaussian noise",
        Cost::Chosen { .. } => "the best of several runs",
        Cost::Repeat { .. } | Cost::Series(_) => "several runs",
    }
}

/// δ as a question may give it.
pub(crate) fn check_delta(delta: f64) -> Result<(), Unsupported> {
    if (0.0..=1.0).contains(&delta) {
        Ok(())
    } else {
        Err(OutOfRange { name: "δ", value: delta, range: "between 0 and 1" }.into())
    }
}

/// ε as a question may give it.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<(), Unsupported> {
    if epsilon >= 0.0 { Ok(()) } else { Err(OutOfRange { name: "ε", value: epsilon, range: "at least 0" }.into()) }
}

/// ε of Laplace noise, continuous or discrete: distance over scale, rounded up.
pub(crate) fn pure_epsilon_up(distance: f64, scale: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { (distance.next_up() / scale).next_up() }
}

/// e^x as an upper bound: what is too small to be a number is still not 0.
pub(crate) fn exp_up(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { x.exp().max(f64::from_bits(1)) }
}

/// The smallest δ, up to a relative error of 1e-9 on the safe side, at which `epsilon_at` promises at most `epsilon`.
///
/// `epsilon_at` falls as δ grows; bisection on ln δ keeps the end at which the promise was checked, so the answer is
/// sound even where the function is not quite monotone. Below 1e-300 the answer is 1e-300, which is an upper bound.
pub(crate) fn invert(
    epsilon: f64,
    mut epsilon_at: impl FnMut(f64) -> Result<f64, Unsupported>,
) -> Result<f64, Unsupported> {
    const LEAST: f64 = 1e-300;
    if epsilon_at(LEAST)? <= epsilon {
        return Ok(LEAST);
    }
    let (mut fails, mut holds) = (LEAST.ln(), 0.0_f64);
    while holds - fails > 1e-9 {
        let middle = 0.5 * (fails + holds);
        if epsilon_at(middle.exp())? <= epsilon {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    // exp may round down by a hair; epsilon_at was asked at the very same rounded number.
    Ok(holds.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Epsilon;

    #[test]
    fn names_are_written_and_read_in_lower_case() {
        for name in Name::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
            assert_eq!(serde_json::to_string(&name).unwrap(), format!("\"{name}\""));
        }
        let refused = "PLD".parse::<Name>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no accountant `PLD`: choose one of pld, rdp, gdp, zcdp, advanced, basic"
        );
    }

    #[test]
    fn no_protection_is_an_infinite_loss_and_nothing_read_is_no_loss() {
        let exposed = [
            Cost::Everything,
            Cost::Series(vec![Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() }, Cost::Everything]),
            Cost::Pure { epsilon: Epsilon::INFINITE },
            Cost::Everything.repeat(3),
        ];
        for name in [Name::Rdp, Name::Gdp, Name::Zcdp, Name::Advanced, Name::Basic] {
            for cost in &exposed {
                assert_eq!(epsilon(cost, 1e-6, name).unwrap().upper, f64::INFINITY, "{name} {cost:?}");
                assert_eq!(delta(cost, 3.0, name).unwrap().upper, 1.0, "{name} {cost:?}");
            }
            for cost in [Cost::Nothing, Cost::Everything.repeat(0), Cost::Series(Vec::new())] {
                assert_eq!(epsilon(&cost, 0.0, name).unwrap().upper, 0.0, "{name} {cost:?}");
                assert_eq!(delta(&cost, 0.0, name).unwrap().upper, 0.0, "{name} {cost:?}");
            }
        }
    }

    #[test]
    fn questions_that_cannot_be_meant_are_refused_in_a_sentence() {
        let cost = Cost::Gaussian { noise: 1.0 };
        for name in [Name::Rdp, Name::Gdp, Name::Zcdp, Name::Advanced, Name::Basic] {
            assert!(matches!(epsilon(&cost, -0.1, name), Err(Unsupported::OutOfRange(_))));
            assert!(matches!(epsilon(&cost, f64::NAN, name), Err(Unsupported::OutOfRange(_))));
            assert!(matches!(delta(&cost, -1.0, name), Err(Unsupported::OutOfRange(_))));
            assert!(matches!(epsilon(&Cost::Gaussian { noise: 0.0 }, 0.1, name), Err(Unsupported::OutOfRange(_))));
            let error = epsilon(&cost, 0.0, name).unwrap_err();
            assert!(matches!(error, Unsupported::NeedsDelta { .. }), "{name}");
            assert!(error.to_string().contains(name.word()));
        }
    }
}
