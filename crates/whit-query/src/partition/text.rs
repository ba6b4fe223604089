//! Columns of text, in the several ways in which the engine holds them.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};

/// The type of a function from text to text: the type that came in, or a sentence where that is no text.
pub(super) fn text_type(function: &str, given: Option<&DataType>) -> Result<DataType> {
    match given {
        Some(text @ (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)) => Ok(text.clone()),
        Some(DataType::Null) => Ok(DataType::Utf8),
        Some(DataType::Dictionary(key, value)) => {
            Ok(DataType::Dictionary(key.clone(), Box::new(text_type(function, Some(value))?)))
        }
        Some(other) => plan_err!("{function} reads text, and this is {other}: cast it to text first"),
        None => plan_err!("{function} takes one text"),
    }
}

/// Whether a column is text, however it is held.
pub(super) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// Applies a function to the different values of a dictionary only.
pub(super) fn map_dictionary(array: &ArrayRef, map: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    Ok(dictionary.with_values(map(dictionary.values())?))
}

/// The same texts as a column of each kind that text may have in a file.
#[cfg(test)]
pub(super) fn of_every_kind(texts: &[Option<&str>]) -> [ArrayRef; 4] {
    use datafusion::arrow::array::{DictionaryArray, LargeStringArray, StringArray, StringViewArray};
    use std::sync::Arc;
    [
        Arc::new(StringArray::from(texts.to_vec())),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(StringViewArray::from(texts.to_vec())),
        Arc::new(texts.iter().copied().collect::<DictionaryArray<datafusion::arrow::datatypes::Int32Type>>()),
    ]
}
