//! Values as bytes, for a ledger to keep with their charge.

/// A value that a ledger can keep, so that asking for it again is free.
///
/// Two values of one type have the same bytes only if they are equal: numbers are eight bytes, little-endian, and what has parts
/// says how many there are and how long each is.
///
/// ```
/// use whit_core::Persist;
/// assert_eq!(7_u64.to_bytes(), [7, 0, 0, 0, 0, 0, 0, 0]);
/// assert_ne!(vec!["ab".to_owned()].to_bytes(), vec!["a".to_owned(), "b".to_owned()].to_bytes());
/// ```
pub trait Persist {
    /// The value as bytes.
    fn to_bytes(&self) -> Vec<u8>;
}

impl Persist for i64 {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Persist for u64 {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Persist for usize {
    fn to_bytes(&self) -> Vec<u8> {
        (*self as u64).to_bytes()
    }
}

impl Persist for f64 {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_bits().to_bytes()
    }
}

impl Persist for bool {
    fn to_bytes(&self) -> Vec<u8> {
        vec![u8::from(*self)]
    }
}

impl Persist for () {
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl Persist for String {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl<T: Persist> Persist for Option<T> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_some())];
        bytes.extend(self.iter().flat_map(Persist::to_bytes));
        bytes
    }
}

impl<T: Persist> Persist for Vec<T> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.len().to_bytes();
        for part in self {
            push(&mut bytes, part);
        }
        bytes
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        push(&mut bytes, &self.0);
        push(&mut bytes, &self.1);
        bytes
    }
}

/// A part, after its length.
fn push(bytes: &mut Vec<u8>, part: &impl Persist) {
    let part = part.to_bytes();
    bytes.extend(part.len().to_bytes());
    bytes.extend(part);
}

/// JSON has no infinity: there it is the string `"Infinity"`.
pub mod finite_or_word {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A number, or the word.
    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { value.serialize(to) } else { "Infinity".serialize(to) }
    }

    /// A number, or the word.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrWord {
            Number(f64),
            Word(String),
        }
        match NumberOrWord::deserialize(from)? {
            NumberOrWord::Number(number) => Ok(number),
            NumberOrWord::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all_differ<T: Persist>(values: &[T]) {
        let bytes: BTreeSet<Vec<u8>> = values.iter().map(Persist::to_bytes).collect();
        assert_eq!(bytes.len(), values.len());
    }

    #[test]
    fn different_values_have_different_bytes() {
        all_differ(&[i64::MIN, -1, 0, 1, i64::MAX]);
        all_differ(&[0.0, -0.0, 1.0, f64::INFINITY, f64::from_bits(1)]);
        all_differ(&[None, Some(false), Some(true)]);
        all_differ(&[None, Some(None), Some(Some(0_u64))]);
        all_differ(&[vec![], vec![0_usize], vec![0, 0], vec![1, 0], vec![0, 1]]);
        all_differ(&[vec![vec![], vec![true]], vec![vec![true], vec![]], vec![vec![true]]]);
        all_differ(&[("a".to_owned(), "bc".to_owned()), ("ab".to_owned(), "c".to_owned())]);
    }
}
