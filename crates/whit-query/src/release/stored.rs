//! What was released, as the ledger keeps it.

use crate::answer::{Cell, Value};
use crate::bound::SumNoise;
use crate::noise::StoredLaw;
use crate::plan::shared::PartPlace;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use whit_core::Persist;

/// One part's released table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReleasedPart {
    /// One row of keys a group.
    pub(crate) keys: Vec<Vec<Value>>,
    /// One column of cells a statistic.
    #[serde(serialize_with = "write_cells", deserialize_with = "read_cells")]
    pub(crate) cells: Vec<Vec<Cell>>,
    /// One column a measure: the noisy numbers of which the cells are made, for the intervals of what is made of several cells. A tree's
    /// is empty, since it has thousands a group. Nothing where it was stored before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) measures: Vec<Vec<i64>>,
    /// One a measure: the noise that it got. Nothing where it was stored before that was kept, in versions 1 to 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) noise: Vec<StoredLaw>,
    /// The ranges that were found privately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) found: Vec<(f64, f64)>,
}

impl ReleasedPart {
    /// The noise that its measures got, where that is known.
    pub(super) fn drawn(&self) -> Option<Vec<SumNoise>> {
        (!self.noise.is_empty()).then(|| self.noise.iter().map(StoredLaw::drawn).collect())
    }
}

/// The form in which releases are stored. What was stored in an earlier one is still read: the noise of its measures is taken to be what the question
/// would get today, which was so as long as these were written.
const VERSION: u32 = 4;

/// What was released, before anything is done with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Released {
    /// Of this form.
    version: u32,
    pub(crate) parts: Vec<ReleasedPart>,
    /// What a reader must know that was not known before.
    pub(super) notes: Vec<String>,
    pub(super) mechanisms: Vec<String>,
}

impl Default for Released {
    fn default() -> Self {
        Self { version: VERSION, parts: Vec::new(), notes: Vec::new(), mechanisms: Vec::new() }
    }
}

impl Released {
    /// What a ledger holds, of this form or of an earlier one.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let released: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        // What a later version means by its fields nobody knows here.
        if (1..=VERSION).contains(&released.version) {
            return Ok(released);
        }
        Err(format!("it is of form {}, and forms up to {VERSION} are known here", released.version))
    }
}

impl Released {
    /// What one of several questions that share it has of it: its own keys and statistics, of all measures.
    pub(super) fn picked(&self, places: &[PartPlace]) -> Self {
        let part = |place: &PartPlace| {
            let shared = &self.parts[place.part];
            let keys = shared.keys.iter().map(|row| place.keys.iter().map(|&key| row[key].clone()).collect());
            let cells = place.statistics.iter().map(|&statistic| shared.cells[statistic].clone());
            ReleasedPart { keys: keys.collect(), cells: cells.collect(), ..shared.clone() }
        };
        Self { parts: places.iter().map(part).collect(), ..self.clone() }
    }
}

impl Persist for Released {
    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A value and the ends of its interval, without their names: a ledger holds millions of them.
fn write_cells<S: Serializer>(cells: &[Vec<Cell>], to: S) -> Result<S::Ok, S::Error> {
    struct Column<'a>(&'a [Cell]);
    impl Serialize for Column<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq(self.0.iter().map(|cell| (&cell.value, cell.low, cell.high)))
        }
    }
    to.collect_seq(cells.iter().map(|column| Column(column)))
}

fn read_cells<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<Cell>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Bare(Value, Option<f64>, Option<f64>),
        /// As version 1 wrote it.
        Named(Cell),
    }
    let columns: Vec<Vec<Written>> = Deserialize::deserialize(from)?;
    let cell = |written| match written {
        Written::Bare(value, low, high) => Cell { value, low, high },
        Written::Named(cell) => cell,
    };
    Ok(columns.into_iter().map(|column| column.into_iter().map(cell).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_again_also_as_it_was_stored_before() {
        let cell = |value, low, high| Cell { value, low, high };
        let part = ReleasedPart {
            keys: vec![vec![Value::Text("a".to_owned())], vec![Value::Null]],
            cells: vec![
                vec![cell(Value::Int(7), Some(5.5), Some(8.5)), cell(Value::Null, None, None)],
                vec![cell(Value::Float(0.25), None, None), cell(Value::Bool(true), Some(0.0), None)],
            ],
            ..ReleasedPart::default()
        };
        let law = |text: &str| StoredLaw::try_from(text.to_owned()).unwrap();
        let whole = ReleasedPart {
            measures: vec![vec![7, -3], Vec::new()],
            noise: vec![law("rounded 7/2"), law("laplace 9")],
            found: vec![(-1.5, 2.0)],
            ..part.clone()
        };
        let kept = Released { parts: vec![whole], ..Released::default() };
        assert_eq!(Released::read(&kept.to_bytes()).unwrap(), kept);
        let released = Released { parts: vec![part], ..Released::default() };
        let read = Released::read(&released.to_bytes()).unwrap();
        assert_eq!(read, released);
        let before = r#"{"version":1,"parts":[{"keys":[["a"],[null]],"cells":[
            [{"value":7,"low":5.5,"high":8.5},{"value":null}],[{"value":0.25},{"value":true,"low":0.0}]]}],
            "notes":[],"mechanisms":[]}"#;
        let before = Released::read(before.as_bytes()).unwrap();
        assert_eq!(before.parts, released.parts);
    }
}
