//! Bags in which something is infinite or no number: they are found, and contribute nothing.

use super::bags::Bags;
use crate::kernel::Floats;
use crate::layer::{Felt, Felts};
use std::ops::Range;

impl Felt {
    /// Marks the bags in which some input or gradient is infinite or no number.
    pub(super) fn mark_unbounded(&self, bags: &Bags, marks: &mut [bool]) {
        let input = match &self.map {
            Felts::Linear { input, .. } | Felts::Scale { input } | Felts::Windows { images: input, .. } => Some(input),
            Felts::Lookup { .. } => None,
        };
        for values in input.into_iter().chain([&self.gradient]).filter(|values| !is_finite(values)) {
            for (mark, places) in marks.iter_mut().zip(places(values, bags)) {
                *mark |= !is_finite(&values[places]);
            }
        }
    }

    /// Sets inputs and gradients of the marked bags to zero, so that they add nothing to any sum, exactly.
    pub(super) fn empty(&mut self, bags: &Bags, marks: &[bool]) {
        let emptied = |values: &Floats| {
            let marked = places(values, bags).zip(marks).filter(|(_, mark)| **mark);
            values.without(marked.map(|(places, _)| places))
        };
        match &mut self.map {
            Felts::Linear { input, .. } | Felts::Scale { input } | Felts::Windows { images: input, .. } => {
                *input = emptied(input);
            }
            Felts::Lookup { .. } => {}
        }
        self.gradient = emptied(&self.gradient);
    }
}

/// Where each bag's values lie: each row has equally many.
fn places<'a>(values: &[f32], bags: &'a Bags) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let each = values.len() / bags.rows().max(1);
    bags.ranges().map(move |rows| rows.start * each..rows.end * each)
}

/// Without a way out of the loop, so that it goes by vectors.
fn is_finite(values: &[f32]) -> bool {
    values.iter().fold(true, |all, value| all & value.is_finite())
}
