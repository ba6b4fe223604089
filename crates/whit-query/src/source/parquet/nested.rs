//! Fields of structs as columns of their own, called `address.city`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Fields, Schema};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// Where a column lies: its place among those of a file, and the way through structs from there. A column that is called so as a whole comes first.
pub(in crate::source) fn find(schema: &Schema, name: &str) -> Option<(usize, Vec<usize>)> {
    let mut way = among(schema.fields(), name)?.into_iter();
    way.next().map(|place| (place, way.collect()))
}

fn among(fields: &Fields, name: &str) -> Option<Vec<usize>> {
    if let Some((place, _)) = fields.find(name) {
        return Some(vec![place]);
    }
    // Names may have dots of their own, so every one is tried.
    name.match_indices('.').find_map(|(dot, _)| {
        let (place, field) = fields.find(&name[..dot])?;
        let DataType::Struct(inner) = field.data_type() else { return None };
        let mut way = vec![place];
        way.extend(among(inner, &name[dot + 1..])?);
        Some(way)
    })
}

/// What lies at the end of a way through structs; NULL where one of them is.
pub(super) fn inside(values: &ArrayRef, way: &[usize]) -> Result<ArrayRef, ArrowError> {
    let mut values = Arc::clone(values);
    for &place in way {
        let outer = values.as_struct_opt().ok_or_else(|| ArrowError::SchemaError("a struct is none".to_owned()))?;
        let missing: Option<BooleanArray> = (outer.null_count() > 0).then(|| is_null(outer)).transpose()?;
        let inner = Arc::clone(outer.column(place));
        values = match missing {
            Some(missing) => nullif(&inner, &missing)?,
            None => inner,
        };
    }
    Ok(values)
}

/// The type that lies at the end of a way.
pub(super) fn kind_inside<'a>(kind: &'a DataType, way: &[usize]) -> Option<&'a DataType> {
    way.iter().try_fold(kind, |kind, &place| match kind {
        DataType::Struct(fields) => fields.get(place).map(|field| field.data_type()),
        _ => None,
    })
}
