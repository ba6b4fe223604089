//! From a value to its number in a list, as a SQL function.

use super::file::PartitionFile;
use super::text::is_text;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArrayType, new_null_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{HashMap, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The names of functions that look an element up in a partition file start with this.
pub(crate) const PARTITION_FUNCTION: &str = "whit_element_of_";

/// A SQL function that maps a text to the number of its element in a partition file. NULL and what is not in
/// the file go to the unknown element, so that every row has exactly one.
pub(crate) fn lookup_udf(name: &str, file: &PartitionFile) -> ScalarUDF {
    let numbers = file.items().iter().zip(file.element_of()).map(|(item, &element)| (item.as_str(), element));
    Lookup::new(name, file.hash(), numbers, Some(file.unknown())).udf()
}

/// A list of texts and their numbers, and what others get.
#[derive(Clone)]
pub(crate) struct Lookup {
    name: String,
    /// What tells two lists of one name apart.
    hash: String,
    numbers: Arc<HashMap<String, u32>>,
    otherwise: Option<u32>,
    signature: Signature,
}

impl Lookup {
    /// A list under a name. Texts that are not on it, and NULL, get `otherwise`, or NULL.
    pub(crate) fn new<'a>(
        name: &str,
        hash: &str,
        numbers: impl Iterator<Item = (&'a str, u32)>,
        otherwise: Option<u32>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            hash: hash.to_owned(),
            numbers: Arc::new(numbers.map(|(text, number)| (text.to_owned(), number)).collect()),
            otherwise,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }

    /// The same as a SQL function from text to a whole number.
    pub(crate) fn udf(self) -> ScalarUDF {
        ScalarUDF::from(self)
    }

    fn strings<'a>(&self, array: impl StringArrayType<'a> + Copy) -> Int64Array {
        let find = |text: Option<&str>| text.and_then(|text| self.numbers.get(text).copied()).or(self.otherwise);
        array.iter().map(|text| find(text).map(i64::from)).collect()
    }

    fn all(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::Utf8 => Arc::new(self.strings(array.as_string::<i32>())),
            DataType::LargeUtf8 => Arc::new(self.strings(array.as_string::<i64>())),
            DataType::Utf8View => Arc::new(self.strings(array.as_string_view())),
            DataType::Null => match self.otherwise {
                None => new_null_array(&DataType::Int64, array.len()),
                Some(number) => Arc::new(Int64Array::from_value(number.into(), array.len())),
            },
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let numbers = self.all(dictionary.values())?;
                let found = take(&numbers, dictionary.keys(), None)?;
                match self.otherwise {
                    // A NULL key is a NULL.
                    Some(number) if found.null_count() > 0 => {
                        let known = found.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
                        Arc::new(known.iter().map(|found| found.or(Some(number.into()))).collect::<Int64Array>())
                    }
                    _ => found,
                }
            }
            other => return exec_err!("{} reads text, and this is {other}", self.name),
        })
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lookup({}, {} texts)", self.name, self.numbers.len())
    }
}

impl PartialEq for Lookup {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.hash, self.otherwise) == (&other.name, &other.hash, other.otherwise)
    }
}

impl Eq for Lookup {}

impl Hash for Lookup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.hash, self.otherwise).hash(state);
    }
}

impl ScalarUDFImpl for Lookup {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(text) if is_text(text) => Ok(DataType::Int64),
            Some(other) => plan_err!("{} reads text, and this is {other}: cast it to text first", self.name),
            None => plan_err!("{} takes one text", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => self.all(array).map(ColumnarValue::Array),
            [ColumnarValue::Scalar(scalar)] => {
                let found = self.all(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?))
            }
            other => exec_err!("{} takes one text, and got {} arguments", self.name, other.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Int64Type;

    #[test]
    fn every_kind_of_text_column_is_looked_up() {
        let texts = [Some("tea"), None, Some("rain"), Some("xyzzy"), Some("tea")];
        for array in super::super::text::of_every_kind(&texts) {
            for (otherwise, expected) in [
                (Some(9), [Some(4), Some(9), Some(5), Some(9), Some(4)]),
                (None, [Some(4), None, Some(5), None, Some(4)]),
            ] {
                let lookup = Lookup::new("element_of", "h", [("tea", 4), ("rain", 5)].into_iter(), otherwise);
                let found = lookup.all(&array).unwrap();
                let found: Vec<Option<i64>> = found.as_primitive::<Int64Type>().iter().collect();
                assert_eq!(found, expected, "{}", array.data_type());
            }
        }
        let lookup = Lookup::new("element_of", "h", [("tea", 4)].into_iter(), Some(9));
        assert!(lookup.return_type(&[DataType::Int64]).is_err());
        assert_eq!(lookup.all(&new_null_array(&DataType::Null, 2)).unwrap().null_count(), 0);
    }

    #[test]
    fn two_lists_of_one_name_are_different_functions() {
        let lookup = |hash| Lookup::new("element_of", hash, [("tea", 1)].into_iter(), None);
        assert!(lookup("a") == lookup("a") && lookup("a") != lookup("b"));
    }
}
