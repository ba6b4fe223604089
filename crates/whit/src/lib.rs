//! Differential privacy that asks first what one whit is: one event, one element, one feature, one label, one user.
//!
//! This crate is the front door, and the `whit` command stands on it. A [`Session`] holds declaration, data, ledger and analyst, and does all that can be asked:
//! previews, questions, trainings, and what the ledger says of them. An [`AsyncSession`] does the same where one awaits. What they do not do goes by the parts:
//!
//! - [`noise`]: random bits, and samplers that are exact to the last bit;
//! - [`core`]: units and ladders, bounds, the language of costs, every mechanism, and the release of a value;
//! - [`account`]: accountants, from costs to loss, and back to the noise that keeps a promise;
//! - [`query`]: private statistics over tables, asked in SQL;
//! - [`learn`]: models that protect a unit, step by step;
//! - [`declared`]: declarations before a session: drafted, read and checked;
//! - [`train`]: trainings from their files to a model with its card;
//! - [`explain`]: what an adversary gains from a release, in numbers that hold.
//!
//! # A question, and a budget that says no
//!
//! ```
//! use whit::query::plan::Asking;
//! use whit::session::{Options, Session};
//! # let folder = std::env::temp_dir().join(format!("whit-front-door-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let shoppers: String = (0..500).map(|i| format!("{i},{}\n", i % 40)).collect();
//! # std::fs::write(folder.join("shoppers.csv"), format!("id,spent\n{shoppers}"))?;
//! # let config = folder.join("whit.toml");
//! # let options = Options { ledger: whit::account::ledger::Opening::default(), ..Options::default() };
//! // One row a shopper, and nobody's is to be found out: ε = 1 for all that is ever asked.
//! let declaration = "[dataset.shoppers]
//!     source = 'shoppers.csv'
//!     unit = { user = 'id', protect = 'user', caps.rows_per_user = 1 }
//!     columns = { id = 'int', spent = { type = 'float', bounds = [0, 100] } }
//!     budget.user = { epsilon = 1.0 }";
//! std::fs::write(&config, declaration)?;
//!
//! let mut session = Session::open(&config, options)?;
//! let at = |epsilon| Asking { epsilon: Some(epsilon), delta: Some(0.0), ..Asking::default() };
//! let answer = session.ask("SELECT COUNT(*), SUM(spent) FROM shoppers", &at(0.75))?;
//! assert_eq!(answer.rows[0].len(), 2); // each with its interval
//!
//! let error = session.ask("SELECT AVG(spent) FROM shoppers", &at(0.5)).unwrap_err();
//! let no = error.refusal().expect("only a quarter is left");
//! println!("{no}"); // this release needs ε = 0.5 per user (id), …, and ε = 0.25 of the budget is left
//! # assert_eq!(no.left, "ε = 0.25");
//! assert!(no.shortfall.as_ref().is_some_and(|short| short.fits.is_some_and(|epsilon| epsilon <= 0.25)));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! let rungs = [Rung { unit: user, holds: 1, disjoint: false, slices: None }];
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

pub mod declared;
pub mod error;
pub mod explain;
pub mod ledger;
pub mod partition;
pub mod price;
pub mod session;
mod state;
pub mod train;

pub use declared::{DeclarationDraft, Declared};
pub use error::Error;
pub use session::{AsyncSession, Session};

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
