//! Tables, pictures and pages of whatever was released.
//!
//! - [`number`] and [`measure`]: the digits that mean something, rounded to the side that keeps a bound;
//! - [`table`]: aligned tables for people; [`plain`]: text of which a terminal obeys nothing;
//! - [`text`] and [`csv`]: answers as text and as comma-separated values;
//! - [`plot`]: pictures as SVG text; [`picture`] draws an answer, [`raster`] makes PNG of it;
//! - [`page`]: reports as pages that need nothing from elsewhere;
//! - [`dataset`], [`partition`], [`preview`], [`ledger`], [`training`] and [`experiment`]: what sessions say of these, as tables and pictures;
//! - [`price`] and [`explain`]: what a run costs, and what an adversary gains from it.
//!
//! Nothing here reads data or adds noise: it shows values that somebody may already see.
//!
//! ```
//! use whit_view::number::{brief_down, brief_up};
//! use whit_view::table::{Side, Table};
//!
//! let mut table = Table::new([("unit", Side::Left), ("ε at most", Side::Right)]);
//! table.row(["user".to_owned(), brief_up(1.234_561)]);
//! let mut text = Vec::new();
//! table.write(&mut text)?;
//! assert_eq!(String::from_utf8_lossy(&text), "unit  ε at most\n────  ─────────\nuser     1.2346\n");
//! assert_eq!(brief_down(1.234_569), "1.2345");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod csv;
pub mod dataset;
pub mod experiment;
pub mod explain;
pub mod ledger;
pub mod measure;
pub mod number;
pub mod page;
pub mod partition;
pub mod picture;
pub mod plain;
pub mod plot;
pub mod preview;
pub mod price;
pub mod raster;
#[cfg(test)]
mod samples;
pub mod table;
pub mod text;
pub mod training;
pub mod workload;
