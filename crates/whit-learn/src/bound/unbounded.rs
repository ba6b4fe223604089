//! Bags in which something is infinite or no number: they are found, and contribute nothing.

use super::bags::Bags;
use crate::kernel::Floats;
use crate::layer::{LayerInput, OutputGradient};
use std::ops::Range;

impl OutputGradient {
    /// Marks the bags in which some input or gradient is infinite or no number.
    pub(super) fn mark_unbounded(&self, bags: &Bags, marks: &mut [bool]) {
        let input = match &self.input {
            LayerInput::Linear { input, .. }
            | LayerInput::Scale { input }
            | LayerInput::Windows { images: input, .. } => Some(input),
            LayerInput::Lookup { .. } => None,
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
        match &mut self.input {
            LayerInput::Linear { input, .. }
            | LayerInput::Scale { input }
            | LayerInput::Windows { images: input, .. } => {
                *input = emptied(input);
            }
            LayerInput::Lookup { .. } => {}
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
