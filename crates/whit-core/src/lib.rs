//! Units of privacy, the bounds on what one unit contributes, the language of costs, and every mechanism.
//!
//! Data walks one way: a [`unit`](mod@unit) is declared, what it contributes is [`bound`](mod@bound)ed, the bounded statistic is put on a
//! [`lattice`] of integers, a [`mechanism`] sanitises it, its [`cost`] is charged, and a [`release`](mod@release) leaves.
//! Nothing here does I/O, reads a clock or keeps a global: entropy and ledger are arguments.

pub mod bound;
pub mod cost;
pub mod declare;
pub mod digits;
pub mod feature;
pub mod lattice;
pub mod loss;
pub mod matrix;
pub mod mechanism;
pub mod partition;
pub mod persist;
pub mod release;
pub mod unit;

pub use bound::{Bound, Clusters, HeavyHitters, Sensitivity, Support};
pub use cost::{Cost, Draw, RunLaw, Sampled, Sampling};
pub use lattice::Lattice;
pub use loss::{Delta, Epsilon, Loss, Mu, OutOfRange, Rho};
pub use mechanism::{Accuracy, Mechanism};
pub use partition::Partition;
pub use persist::Persist;
pub use release::{Charge, Ledger, Progress, Refusal, Release, Sealed, release};
pub use unit::{Caps, Change, Kind, Ladder, Rung, Unit};
