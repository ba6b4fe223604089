//! Private learning at any unit: a unit is a weighted bag of rows.
//!
//! Each step draws units ([`sample`]), [`bound`]s what each contributes to the sum of gradients, adds noise once ([`sanitise`]), divides by a number
//! that was fixed before and moves the parameters ([`optimise`]). One [`plan`] holds all that a guarantee depends on, and
//! [`train`] goes the whole way. Models are known by [`model::Named`]. Who brings one of another architecture writes it in burn: [`custom`] is the one place where
//! types of it are public, and no other crate names it.

#[cfg(test)]
mod audit;
pub mod augment;
pub mod bound;
pub mod checkpoint;
pub mod choice;
pub mod confusion;
pub mod custom;
mod error;
mod kernel;
pub mod label;
mod layer;
pub mod loss;
pub mod model;
pub mod optimise;
pub mod params;
pub mod pca;
pub mod plan;
pub mod projection;
pub mod release;
mod reporting;
pub mod sample;
pub mod sanitise;
pub mod scatter;
pub mod source;
pub mod start;
pub mod statistics;
pub mod store;
pub mod symmetric;
mod tensor;
pub mod train;
#[cfg(test)]
mod trial;

pub use error::{LearnError, SanitiserError};
pub use kernel::WindowError;
pub use plan::{Clip, Clipping, Count, Draft, Drawn, NoiseSource, Padding, Plan, PlanError, Way};
pub use projection::{Projecting, Projection};
pub use release::{Card, Recipe, Trained, TrainingRun};
pub use sample::{Pool, PoolError, Sampler};
pub use sanitise::Sanitiser;
pub use source::{Owners, Rows};
pub use store::{Keep, Store, StoreError};
pub use train::{Learner, Parts, Tuning};
