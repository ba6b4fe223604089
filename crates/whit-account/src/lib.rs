//! Accountants: from symbolic costs to numbers that people can promise, and back to the noise that keeps the promise.
//!
//! Accountants are pure functions, without I/O. [`accountant`] holds one file an accountant; [`calibrate`] runs them backwards;
//! [`filter`] and [`odometer`] watch over analysts who choose the next question after seeing the last answer. The [`ledger`] keeps what was charged, in a file or
//! in memory, and the [`desk`] is where every release goes through it.

pub mod accountant;
pub mod calibrate;
pub mod desk;
pub mod filter;
pub mod group;
pub mod keys;
pub mod ledger;
pub mod meaning;
pub mod normal;
pub mod odometer;

pub use accountant::{Name, Unsupported, delta, delta_by, epsilon, epsilon_by};
