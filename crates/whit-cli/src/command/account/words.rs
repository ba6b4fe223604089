//! The words by which options choose.

use clap::ValueEnum;
use whit::price::DrawKind;
use whit::{Change, Name, Sampling};

/// How neighbours differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ChangeWord {
    /// The unit is there or not.
    AddRemove,
    /// The unit's rows become any others, possibly none.
    Replace,
}

/// What one coin decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DrawWord {
    /// The unit itself: an event, a row, a (user, element) pair.
    Unit,
    /// A whole user, with all elements at once.
    User,
}

/// How a step chooses what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SamplingWord {
    /// Each on its own, with the same probability.
    Poisson,
    /// A batch of fixed size, without replacement.
    Fixed,
}

/// Which accountant answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AccountantWord {
    /// The privacy loss distribution, from above and from below.
    Pld,
    /// Rényi divergences.
    Rdp,
    /// Gaussian differential privacy.
    Gdp,
    /// Zero-concentrated differential privacy.
    Zcdp,
    /// Advanced composition.
    Advanced,
    /// Sums of (ε, δ).
    Basic,
}

impl From<ChangeWord> for Change {
    fn from(word: ChangeWord) -> Self {
        match word {
            ChangeWord::AddRemove => Self::AddRemove,
            ChangeWord::Replace => Self::Replace,
        }
    }
}

impl From<DrawWord> for DrawKind {
    fn from(word: DrawWord) -> Self {
        match word {
            DrawWord::Unit => Self::Unit,
            DrawWord::User => Self::User,
        }
    }
}

impl From<SamplingWord> for Sampling {
    fn from(word: SamplingWord) -> Self {
        match word {
            SamplingWord::Poisson => Self::Poisson,
            SamplingWord::Fixed => Self::Fixed,
        }
    }
}

impl From<AccountantWord> for Name {
    fn from(word: AccountantWord) -> Self {
        match word {
            AccountantWord::Pld => Self::Pld,
            AccountantWord::Rdp => Self::Rdp,
            AccountantWord::Gdp => Self::Gdp,
            AccountantWord::Zcdp => Self::Zcdp,
            AccountantWord::Advanced => Self::Advanced,
            AccountantWord::Basic => Self::Basic,
        }
    }
}
