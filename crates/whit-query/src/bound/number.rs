//! Values numbered as they are met.

use super::Outcome;
use super::hash::{Role, hashes};
use super::sums::interner;
use super::text::{NONE, Texts};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef, UInt16Type,
    UInt32Type,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use std::ops::Range;
use std::sync::Arc;

/// Numbers for the different values of some columns.
pub(super) struct Numbering {
    schema: SchemaRef,
    table: Option<Box<dyn GroupValues>>,
    dense: Option<Dense>,
    texts: Option<Texts>,
    /// How many there are.
    pub(super) known: usize,
    /// The hash of each, where it decides who stays.
    pub(super) priorities: Option<Vec<u64>>,
    /// Under which seed, and of what.
    key: (u64, Role),
    /// The numbers of the last rows.
    pub(super) ids: Vec<u32>,
    /// The same, as the table tells them.
    interned: Vec<usize>,
}

impl Numbering {
    pub(super) fn new(schema: &Schema, columns: Range<usize>, key: (u64, Role), ranked: bool) -> Outcome<Self> {
        let schema = Arc::new(Schema::new(schema.fields()[columns].to_vec()));
        let table = interner(Arc::clone(&schema))?;
        let only = schema.fields().len() == 1;
        Ok(Self {
            dense: only.then(Dense::default),
            texts: only.then(Texts::default),
            schema,
            table,
            known: 0,
            priorities: ranked.then(Vec::new),
            key,
            ids: Vec::new(),
            interned: Vec::new(),
        })
    }

    /// Numbers rows; without columns all are the same.
    pub(super) fn number(&mut self, columns: &[ArrayRef], rows: usize) -> Outcome<&[u32]> {
        let before = self.known;
        self.ids.clear();
        match (&mut self.table, &mut self.dense) {
            (None, _) => {
                self.ids.resize(rows, 0);
                self.known = 1;
            }
            (Some(table), dense) => {
                let mut looked_up = match dense {
                    Some(dense) => dense.number(&columns[0], table.as_mut(), &mut self.ids, &mut self.interned)?,
                    None => false,
                };
                if let Some(texts) = self.texts.as_mut().filter(|_| !looked_up) {
                    looked_up = texts.number(&columns[0], table.as_mut(), &mut self.ids, &mut self.interned)?;
                }
                if !looked_up {
                    table.intern(columns, &mut self.interned)?;
                    self.ids.extend(self.interned.iter().map(|&id| id as u32));
                }
                self.known = table.len();
            }
        }
        if self.known >= NONE as usize {
            return Err(DataFusionError::ResourcesExhausted("more than 2^32 different values".to_owned()));
        }
        if let Some(priorities) = self.priorities.as_mut().filter(|_| self.known > before && !columns.is_empty()) {
            let mut first = vec![u32::MAX; self.known - before];
            for (row, &id) in self.ids.iter().enumerate().rev().filter(|&(_, &id)| id as usize >= before) {
                first[id as usize - before] = row as u32;
            }
            let first = UInt32Array::from(first);
            let new = columns.iter().map(|column| take(column, &first, None)).collect::<Result<Vec<_>, _>>()?;
            let (seed, role) = self.key;
            priorities.resize(before, 0);
            priorities.extend(hashes(&new, self.known - before, seed, role)?);
        }
        Ok(&self.ids)
    }

    /// How many bytes of memory they take.
    pub(super) fn size(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| table.size());
        let dense = self.dense.as_ref().map_or(0, |dense| 4 * dense.ids.capacity());
        let texts = self.texts.as_ref().map_or(0, Texts::size);
        table + dense + texts + 8 * self.priorities.as_ref().map_or(0, Vec::capacity)
    }

    /// The values, by their numbers.
    pub(super) fn values(&mut self) -> Outcome<Vec<ArrayRef>> {
        match &mut self.table {
            Some(table) if self.known > 0 => table.emit(EmitTo::All),
            _ => Ok(self.schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect()),
        }
    }
}

/// Whole numbers that lie close together, looked up by where they lie: many times faster than hashing each. The table has the last word
/// on who has which number; this only remembers what it said.
#[derive(Default)]
struct Dense {
    /// The value whose number stands first.
    base: i64,
    ids: Vec<u32>,
    /// How many rows were looked up, and how many were not found.
    rows: u64,
    missed: u64,
}

impl Dense {
    /// Numbers a column of whole numbers; false where it is none, or where looking up does not help.
    fn number(
        &mut self,
        column: &ArrayRef,
        table: &mut dyn GroupValues,
        out: &mut Vec<u32>,
        interned: &mut Vec<usize>,
    ) -> Outcome<bool> {
        if self.rows > 1 << 20 && self.missed > self.rows / 4 {
            self.ids = Vec::new();
            return Ok(false);
        }
        if column.null_count() > 0 {
            return Ok(false);
        }
        match column.data_type() {
            DataType::Int64 => self.of::<Int64Type>(column, table, out, interned)?,
            DataType::Int32 => self.of::<Int32Type>(column, table, out, interned)?,
            DataType::Int16 => self.of::<Int16Type>(column, table, out, interned)?,
            DataType::UInt32 => self.of::<UInt32Type>(column, table, out, interned)?,
            DataType::UInt16 => self.of::<UInt16Type>(column, table, out, interned)?,
            DataType::Date32 => self.of::<Date32Type>(column, table, out, interned)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn of<T>(
        &mut self,
        column: &ArrayRef,
        table: &mut dyn GroupValues,
        out: &mut Vec<u32>,
        interned: &mut Vec<usize>,
    ) -> Outcome<()>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i64>,
    {
        let values = column.as_primitive::<T>().values();
        let place = |value: T::Native, base: i64| value.into().wrapping_sub(base) as u64 as usize;
        let mut all = true;
        out.extend(values.iter().map(|&value| {
            let id = self.ids.get(place(value, self.base)).copied().unwrap_or(NONE);
            all &= id != NONE;
            id
        }));
        self.rows += values.len() as u64;
        if all {
            return Ok(());
        }
        let missing: Vec<u32> = (0..).zip(&*out).filter(|&(_, &id)| id == NONE).map(|(row, _)| row).collect();
        self.missed += missing.len() as u64;
        let missing = UInt32Array::from(missing);
        table.intern(&[take(column, &missing, None)?], interned)?;
        for (&row, &id) in missing.values().iter().zip(&*interned) {
            let value = values[row as usize];
            out[row as usize] = id as u32;
            self.make_room(value.into(), table.len());
            if let Some(known) = self.ids.get_mut(place(value, self.base)) {
                *known = id as u32;
            }
        }
        Ok(())
    }

    /// Widens the table to a value, unless most of it would be empty.
    fn make_room(&mut self, value: i64, known: usize) {
        let most = (16 * known).clamp(1 << 16, 1 << 26);
        if self.ids.is_empty() {
            self.base = value;
            self.ids = vec![NONE; 1 << 10];
        }
        let ahead = i128::from(self.base) - i128::from(value);
        let length = self.ids.len() as i128;
        if ahead > 0 && ahead + length <= most as i128 {
            // Room for as many again, so that a falling series does not move the table each time.
            let ahead = (ahead + length).min(most as i128 - length).min(i128::from(self.base) - i128::from(i64::MIN));
            self.ids.splice(0..0, std::iter::repeat_n(NONE, ahead as usize));
            self.base -= ahead as i64;
        } else if ahead <= 0 && -ahead >= length && -ahead < most as i128 {
            let length = (2 * -ahead).clamp(1 << 10, most as i128);
            self.ids.resize(length as usize, NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int32Array, Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::Field;
    use proptest::prelude::*;

    fn numbering(kind: DataType) -> Numbering {
        Numbering::new(&Schema::new(vec![Field::new("x", kind, true)]), 0..1, (5, Role::Group), true).unwrap()
    }

    /// Two rows have one number where they are equal and only there, and numbers name their values.
    fn is_numbering(kind: DataType, batches: &[ArrayRef]) {
        let mut numbering = numbering(kind);
        let mut met: Vec<(u32, ArrayRef)> = Vec::new();
        for batch in batches {
            let ids = numbering.number(&[Arc::clone(batch)], batch.len()).unwrap().to_vec();
            met.extend(ids.into_iter().enumerate().map(|(row, id)| (id, batch.slice(row, 1))));
        }
        let known = numbering.known;
        let values = numbering.values().unwrap().remove(0);
        assert_eq!((values.len(), numbering.priorities.as_ref().unwrap().len()), (known, known));
        for (id, value) in met {
            assert_eq!(&values.slice(id as usize, 1), &value);
        }
        for id in 0..known {
            for other in 0..id {
                assert_ne!(&values.slice(id, 1), &values.slice(other, 1));
            }
        }
    }

    proptest! {
        #[test]
        fn equal_values_and_only_they_have_one_number(
            batches in proptest::collection::vec(proptest::collection::vec(prop_oneof![
                0..20_i64, -40..40_i64, 900..1100_i64, -70_000..70_000_i64, any::<i64>(),
                Just(i64::MIN), Just(i64::MAX),
            ], 0..60), 0..5),
            missing in proptest::option::of(0..5_usize),
        ) {
            let arrays: Vec<ArrayRef> = batches
                .iter()
                .enumerate()
                .map(|(i, batch)| -> ArrayRef {
                    let hole = missing == Some(i);
                    Arc::new(batch.iter().map(|&v| (!hole || v % 3 != 0).then_some(v)).collect::<Int64Array>())
                })
                .collect();
            is_numbering(DataType::Int64, &arrays);
            let narrow = |batch: &Vec<i64>| -> ArrayRef { Arc::new(batch.iter().map(|&v| Some(v as i32)).collect::<Int32Array>()) };
            is_numbering(DataType::Int32, &batches.iter().map(narrow).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn equal_texts_and_only_they_have_one_number(
            words in proptest::collection::vec("[a-c]{0,3}|[ab]{11,14}|long words of which [0-9]{1,2} differ", 1..12),
            batches in proptest::collection::vec((proptest::collection::vec(0..12_usize, 0..60), any::<bool>()), 0..12),
        ) {
            // One dictionary for most batches, as a file has it, and an own one for others.
            let dictionary = StringViewArray::from(words.iter().map(String::as_str).collect::<Vec<_>>());
            let arrays: Vec<ArrayRef> = batches
                .iter()
                .map(|(picks, own)| {
                    let picks: Vec<u32> = picks.iter().map(|&pick| (pick % words.len()) as u32).collect();
                    let taken = take(&dictionary, &UInt32Array::from(picks), None).unwrap();
                    if *own { Arc::new(taken.as_string_view().gc()) as ArrayRef } else { taken }
                })
                .collect();
            is_numbering(DataType::Utf8View, &arrays);
        }
    }

    #[test]
    fn text_whose_buffer_is_gone_is_not_taken_for_what_comes_in_its_place() {
        let mut numbering = numbering(DataType::Utf8View);
        let mut met = Vec::new();
        for round in 0..2000 {
            // Buffers of one size are likely to be given the same memory, one after the other.
            let texts = StringViewArray::from(vec![format!("a text that is {round:06} rounds old"); 3]);
            met.extend_from_slice(numbering.number(&[Arc::new(texts)], 3).unwrap());
        }
        assert_eq!(met, (0..2000).flat_map(|round| [round; 3]).collect::<Vec<u32>>());
    }

    #[test]
    fn numbers_that_lie_far_apart_are_hashed() {
        let mut numbering = numbering(DataType::Int64);
        for start in 0..200_i64 {
            let far: ArrayRef = Arc::new(
                (0..8192)
                    .map(|i| (start * 8192 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))
                    .collect::<Int64Array>(),
            );
            numbering.number(&[far], 8192).unwrap();
        }
        assert!(numbering.dense.is_some_and(|dense| dense.ids.is_empty()) && numbering.known == 200 * 8192);
    }
}
