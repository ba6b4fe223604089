//! The law of a noise next to what it was added to, as a ledger keeps it.
//!
//! How a price is divided among measures may change from version to version. What was stored before is off by the noise that it got then, and not by what it
//! would get today.

use crate::bound::{SumNoise, SumReach};
use serde::{Deserialize, Serialize};
use whit_core::mechanism::additive::{Coordinates, Law};
use whit_noise::Ratio;

/// A law and its exact width in lattice steps: `laplace 7/2` by its scale, `rounded 12` by its standard deviation, `discrete 144` by its variance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct StoredLaw(Law);

impl StoredLaw {
    /// The law of this noise.
    pub(crate) fn of(noise: &SumNoise) -> Self {
        Self(noise.law().clone())
    }

    /// The law.
    pub(crate) fn law(&self) -> &Law {
        &self.0
    }

    /// The noise, to say how far it reaches. How far units move what it was added to was paid for when it was drawn, and nobody knows it here: to draw it
    /// again would cost everything.
    pub(crate) fn drawn(&self) -> SumNoise {
        SumNoise::new(self.0.clone(), SumReach::unknown(), Coordinates::Any)
    }
}

impl From<Law> for StoredLaw {
    fn from(law: Law) -> Self {
        Self(law)
    }
}

impl PartialEq for StoredLaw {
    fn eq(&self, other: &Self) -> bool {
        String::from(self.clone()) == String::from(other.clone())
    }
}

impl From<StoredLaw> for String {
    fn from(StoredLaw(law): StoredLaw) -> Self {
        match law {
            Law::Laplace(law) => format!("laplace {}", law.scale()),
            Law::Rounded(law) => format!("rounded {}", law.sigma()),
            Law::Discrete(law) => format!("discrete {}", law.variance()),
        }
    }
}

impl TryFrom<String> for StoredLaw {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let unknown = || format!("`{text}` is no law of noise that is known here");
        let (kind, width) = text.split_once(' ').ok_or_else(unknown)?;
        let width: Ratio = width.parse().map_err(|_| unknown())?;
        let law = match kind {
            "laplace" => Law::laplace(width),
            "rounded" => Law::rounded(width),
            "discrete" => Law::discrete(width),
            _ => return Err(unknown()),
        };
        law.map(Self).map_err(|_| unknown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::mechanism::Mechanism as _;
    use whit_core::{Change, Cost, Rung, Unit};

    /// Written down once: ledgers hold these words.
    #[test]
    fn a_law_is_stored_exactly_and_read_again() {
        let width = |value: f64| Ratio::from_f64_up(value).unwrap();
        for (law, text) in [
            (Law::laplace(width(3.5)).unwrap(), "laplace 7/2"),
            (Law::rounded(width(12.0)).unwrap(), "rounded 12"),
            (Law::discrete(width(144.25)).unwrap(), "discrete 577/4"),
            (Law::rounded(width(0.1)).unwrap(), "rounded 3602879701896397/36028797018963968"),
        ] {
            let stored = StoredLaw(law.clone());
            let written = serde_json::to_string(&stored).unwrap();
            assert_eq!(written, format!("\"{text}\""));
            let read: StoredLaw = serde_json::from_str(&written).unwrap();
            assert_eq!(read, stored);
            assert_eq!(read.drawn().within(0.95).to_bits(), law.within(0.95).to_bits());
            let user = Rung { unit: Unit::user("id", Change::Replace), holds: 1, disjoint: false, slices: None };
            assert_eq!(read.drawn().cost(&user), Cost::Everything, "it says how far noise reaches, and no price");
        }
        for text in ["rounded", "rounded 0", "rounded -1", "rounded x", "flat 3", "", "rounded 1/0"] {
            assert!(StoredLaw::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
