//! Text that was met before, known by where it stands.

use super::Outcome;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::take;
use datafusion::physical_plan::aggregates::group_values::GroupValues;

/// No number yet.
pub(super) const NONE: u32 = u32::MAX;
/// How many texts are remembered, two to this power; one whose place is taken takes it over.
const SLOTS: u32 = 14;
/// Up to so many buffers, and bytes in them, are kept from being freed.
const BUFFERS: usize = 64;
const BYTES: usize = 1 << 24;
/// Up to so long a text stands in its view.
const INLINE: u32 = 12;

/// Numbers of texts, remembered by where their bytes stand: a file's dictionary has each text once, so that its place tells it apart without
/// reading it. The table has the last word on who has which number; this only remembers what it said.
#[derive(Default)]
pub(super) struct Texts {
    /// What is known by a place: short text itself, or the address and length of a longer one, and its number.
    slots: Vec<(u128, u32)>,
    /// The buffers into which addresses point. They are not freed while an address is remembered, so none comes to mean another text.
    held: Vec<Buffer>,
    rows: u64,
    missed: u64,
}

impl Texts {
    /// Numbers a column of text; false where it is none, or where remembering does not help.
    pub(super) fn number(
        &mut self,
        column: &ArrayRef,
        table: &mut dyn GroupValues,
        out: &mut Vec<u32>,
        interned: &mut Vec<usize>,
    ) -> Outcome<bool> {
        if self.rows > 1 << 16 && self.missed > self.rows / 2 {
            (self.slots, self.held) = (Vec::new(), Vec::new());
            return Ok(false);
        }
        let Some(texts) = column.as_string_view_opt().filter(|texts| texts.null_count() == 0) else { return Ok(false) };
        self.hold(texts.data_buffers());
        let starts: Vec<usize> = texts.data_buffers().iter().map(|buffer| buffer.as_ptr() as usize).collect();
        let place = |view: u128| {
            let length = view as u32;
            if length <= INLINE {
                return view;
            }
            // A longer text's view: its length, four bytes of it, the number of its buffer, where it begins there.
            let start = starts[(view >> 64) as u32 as usize] + (view >> 96) as usize;
            (start as u128) << 32 | u128::from(length)
        };
        let mut missing = Vec::new();
        out.extend(texts.views().iter().zip(0..).map(|(&view, row)| {
            let place = place(view);
            let (known, id) = self.slots[slot(place)];
            if known == place && id != NONE {
                return id;
            }
            missing.push(row);
            NONE
        }));
        self.rows += texts.len() as u64;
        self.missed += missing.len() as u64;
        if missing.is_empty() {
            return Ok(true);
        }
        let missing = UInt32Array::from(missing);
        table.intern(&[take(column, &missing, None)?], interned)?;
        for (&row, &id) in missing.values().iter().zip(&*interned) {
            let place = place(texts.views()[row as usize]);
            out[row as usize] = id as u32;
            self.slots[slot(place)] = (place, id as u32);
        }
        Ok(true)
    }

    /// Keeps buffers, and forgets everything where there are too many.
    fn hold(&mut self, buffers: &[Buffer]) {
        let new = |held: &[Buffer], buffer: &Buffer| !held.iter().any(|known| known.as_ptr() == buffer.as_ptr());
        let more: Vec<Buffer> = buffers.iter().filter(|buffer| new(&self.held, buffer)).cloned().collect();
        let bytes: usize = self.held.iter().chain(&more).map(Buffer::capacity).sum();
        if self.slots.is_empty() || self.held.len() + more.len() > BUFFERS || bytes > BYTES {
            self.slots = vec![(0, NONE); 1 << SLOTS];
            self.held = buffers.to_vec();
        } else {
            self.held.extend(more);
        }
    }

    /// How many bytes of memory it takes, with what it keeps from being freed.
    pub(super) fn size(&self) -> usize {
        let held: usize = self.held.iter().map(Buffer::capacity).sum();
        held + self.slots.capacity() * size_of::<(u128, u32)>()
    }
}

fn slot(place: u128) -> usize {
    let mixed = (place as u64 ^ (place >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - SLOTS)) as usize
}
