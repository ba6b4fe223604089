//! `VAR(x)`, `STDDEV(x)` and their kinds.

use super::call::Asked;
use super::part::Draft;
use super::sum::Summed;
use super::{Aggregate, Statistic};
use crate::error::QueryError;
use crate::plan::{Part, Shape};

pub(super) struct Spread;

impl Aggregate for Spread {
    fn names(&self) -> &'static [&'static str] {
        &["var", "var_samp", "var_sample", "var_pop", "stddev", "stddev_samp", "stddev_pop"]
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let summed = Summed::of(asked, draft)?;
        let sum = summed.sum(Shape::Centred, asked, draft)?;
        let squares = summed.sum(Shape::Squared, asked, draft)?;
        let count = draft.count(Some(summed.value), asked, format!("{}: count", asked.title))?;
        let (sample, root) = (!asked.name().ends_with("_pop"), asked.name().starts_with("stddev"));
        Ok(Statistic::Spread { sum, squares, count, sample, root })
    }

    fn widest(&self, statistic: &Statistic, part: &Part, _: f64) -> Option<f64> {
        let Statistic::Spread { sum, root, .. } = statistic else { return None };
        let (low, high) = part.bounds_of(*sum)?;
        Some(if *root { (high - low) / 2.0 } else { (high - low).powi(2) / 4.0 })
    }
}
