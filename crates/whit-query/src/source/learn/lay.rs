//! Columns laid side by side, so that the numbers of one row stand together.

use super::open::{Opened, Values};
use super::{Block, Sink};
use crate::error::QueryError;

/// So many numbers are brought together at a time: they stay in the nearer caches while columns are laid side by side.
const AT_ONCE: usize = 1 << 15;

/// Hands the rows of columns to a sink.
pub(super) fn hand_on(columns: &[Opened], rows: usize, width: usize, sink: &mut Sink<'_>) -> Result<(), QueryError> {
    if let [Opened { values, .. }] = columns {
        return match values {
            Values::Bytes(values) => sink(width, Block::Bytes(values)),
            Values::Floats(values) => sink(width, Block::Floats(values)),
        };
    }
    let bytes = columns.iter().all(|column| matches!(column.values, Values::Bytes(_)));
    let (mut of_bytes, mut of_floats) = (Vec::new(), Vec::new());
    let at_once = (AT_ONCE / width.max(1)).max(1);
    for first in (0..rows).step_by(at_once) {
        let part = first..rows.min(first + at_once);
        if bytes {
            of_bytes.resize(part.len() * width, 0);
        } else {
            of_floats.resize(part.len() * width, 0.0);
        }
        let mut start = 0;
        for Opened { values, width: own } in columns {
            let range = part.start * own..part.end * own;
            let to = Strip { start, own: *own, width };
            match values {
                Values::Bytes(values) if bytes => to.lay(&values[range], &mut of_bytes, |byte| byte),
                Values::Bytes(values) => to.lay(&values[range], &mut of_floats, f32::from),
                Values::Floats(values) => to.lay(&values[range], &mut of_floats, |value| value),
            }
            start += own;
        }
        sink(width, if bytes { Block::Bytes(&of_bytes) } else { Block::Floats(&of_floats) })?;
    }
    Ok(())
}

/// Where a column's numbers stand in a row.
struct Strip {
    start: usize,
    own: usize,
    width: usize,
}

impl Strip {
    fn lay<T: Copy, U>(&self, values: &[T], rows: &mut [U], made: impl Fn(T) -> U) {
        for (row, values) in rows.chunks_exact_mut(self.width).zip(values.chunks_exact(self.own)) {
            let places = &mut row[self.start..self.start + self.own];
            places.iter_mut().zip(values).for_each(|(place, &value)| *place = made(value));
        }
    }
}
