//! Differential privacy that asks first what one whit is: one event, one element, one feature, one label, one user.
//!
//! This crate is the front door, and the `whit` command stands on it. A [`Session`] holds declaration, data, ledger and analyst, and does all that can be asked:
//! previews, questions, trainings, and what the ledger says of them. What it does not do goes by the parts:
//!
//! - [`noise`]: random bits, and samplers that are exact to the last bit;
//! - [`core`]: units and ladders, bounds, the language of costs, every mechanism, and the release of a value;
//! - [`account`]: accountants, from costs to loss, and back to the noise that keeps a promise;
//! - [`query`]: private statistics over tables, asked in SQL;
//! - [`learn`]: models that protect a unit, step by step;
//! - [`train`]: trainings from their files to a model with its card;
//! - [`explain`]: what an adversary gains from a release, in numbers that hold.
//!
//! # A count that hides any one user
//!
//! Each user has at most one row, so a user moves the count by at most one. The charge is reserved before noise is
//! drawn, and the value is opened only after it is paid for. A third count would be refused.
//!
//! ```
//! use whit::account::filter::{Currency, Filter};
//! use whit::account::ledger::Memory;
//! use whit::core::mechanism::laplace::Laplace;
//! use whit::{Bound, Change, Os, Rung, Support, Unit, release};
//!
//! let one_row = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
//! let count = Laplace::for_epsilon(one_row, Change::AddRemove, "0.1".parse()?)?;
//! let user = Unit::user("id", Change::AddRemove);
//! let mut ledger = Memory::new().with_budget(user.clone(), Filter::new(0.25, 0.0, Currency::Sum)?);
//! let rungs = [Rung { unit: user, holds: 1, disjoint: false }];
//!
//! let released = release(&count, |_| Ok(1_234), &rungs, &mut ledger, &mut Os)?;
//! println!("{} {}", released.value, released.accuracy); // such as "1229 ± 30 at 95 %"
//! # assert_eq!(released.accuracy.to_string(), "± 30 at 95 %");
//! assert!(release(&count, |_| Ok(1_234), &rungs, &mut ledger, &mut Os).is_ok());
//! assert!(release(&count, |_| Ok(1_234), &rungs, &mut ledger, &mut Os).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The price of a training run
//!
//! ```
//! use whit::account::{Name, epsilon};
//! use whit::{Change, Cost, Draw, Sampled, Sampling};
//!
//! let step = Sampled {
//!     noise: 1.0,
//!     rate: 0.01,
//!     sampling: Sampling::Poisson,
//!     draw: Draw::Unit,
//!     change: Change::Replace,
//!     difference: 2.0,
//!     holds: 1,
//! };
//! let loss = epsilon(&Cost::Sampled(step).repeat(1000), 1e-5, Name::Pld)?;
//! assert!(loss.lower <= 2.8434 && 2.8434 <= loss.upper && loss.upper < 2.86);
//! # Ok::<(), whit::account::Unsupported>(())
//! ```

pub mod error;
pub mod explain;
pub mod session;
mod state;
pub mod train;

/// The README's own example, as it is printed there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use error::Error;
pub use session::Session;

pub use whit_account as account;
pub use whit_core as core;
pub use whit_learn as learn;
pub use whit_noise as noise;
pub use whit_query as query;

pub use whit_account::{Name, Unsupported};
pub use whit_core::{
    Accuracy, Bound, Change, Charge, Cost, Delta, Draw, Epsilon, Ladder, Lattice, Ledger, Loss, Mechanism, Partition,
    Refusal, Release, Rung, Sampled, Sampling, Sealed, Sensitivity, Support, Unit, release,
};
pub use whit_noise::{Entropy, Os, Ratio, Secret};
