//! Private statistics over tables: declare a data set and its unit once, and ask in SQL.
//!
//! Data walks one way: [`source`] → [`plan`] → bound → engine → sanitise → [`release`] → [`explain`], and [`ask()`] chooses who answers.
//! The engine computes exact, bounded aggregates of integers. Noise is drawn here, after it, and never by it.

pub mod answer;
mod ask;
mod bound;
mod canonical;
mod engine;
pub mod error;
pub mod estimate;
mod evaluate;
pub mod explain;
pub mod export;
mod forms;
mod functions;
mod noise;
pub mod partition;
pub mod plan;
mod registry;
pub mod release;
mod sanitise;
pub mod source;
mod translate;
mod whose;
pub mod workload;

pub use answer::{Answer, Cell, Column, Price, QuestionAnswer, Role, Statement, Value, WorkloadAnswer};
pub use ask::ask;
pub use error::{Fault, QueryError};
pub use release::{Tables, ask_workload};
pub use workload::Workload;
