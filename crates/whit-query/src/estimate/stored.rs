//! What an estimator released, next to the noise that it got, as a ledger keeps it.

use crate::noise::StoredLaw;
use whit_core::Persist;
use whit_core::mechanism::additive::Law;

/// What no value begins with that was stored before its noise was: a vector of no numbers that has some all the same, and a radius that is no number.
const MARK: [u8; 8] = [0, b'w', b'h', b'i', b't', 2, 0xff, 0xff];

/// Noisy values, and the laws of the noise that is in them, in the order in which it was drawn.
///
/// How a price is divided among stages may change from version to version. What was stored is off by the noise that it got, and not by what it would get today.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEstimate<T> {
    /// The values.
    pub(super) value: T,
    /// Nothing where the values were stored before their noise was.
    laws: Vec<StoredLaw>,
}

impl<T> StoredEstimate<T> {
    /// Values that got noise of these laws.
    pub(super) fn new<'a>(value: T, laws: impl IntoIterator<Item = &'a Law>) -> Self {
        Self { value, laws: laws.into_iter().cloned().map(StoredLaw::from).collect() }
    }

    /// The laws, where they were stored.
    pub(super) fn laws(&self) -> impl Iterator<Item = &Law> {
        self.laws.iter().map(StoredLaw::law)
    }

    /// Reads what [`Persist::to_bytes`] wrote, of so many laws, and what was written before there were any; nothing else.
    pub(super) fn read(bytes: &[u8], laws: usize, value: impl Fn(&[u8]) -> Option<T>) -> Option<Self> {
        let Some(mut rest) = bytes.strip_prefix(&MARK) else {
            return Some(Self { value: value(bytes)?, laws: Vec::new() });
        };
        let length = usize::try_from(read_varint(&mut rest)?).ok()?;
        let (words, rest) = rest.split_at_checked(length)?;
        let found: Vec<StoredLaw> = serde_json::from_slice(words).ok()?;
        (found.len() == laws).then_some(())?;
        Some(Self { value: value(rest)?, laws: found })
    }
}

impl<T: Persist> Persist for StoredEstimate<T> {
    fn to_bytes(&self) -> Vec<u8> {
        let words = serde_json::to_vec(&self.laws).unwrap_or_default();
        let mut bytes = MARK.to_vec();
        push_varint(&mut bytes, words.len() as u64);
        bytes.extend(words);
        bytes.extend(self.value.to_bytes());
        bytes
    }
}

/// Seven bits a byte, the lowest first.
pub(super) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes what [`push_varint`] wrote from the front.
pub(super) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::histogram::NoisyHistogram;
    use crate::estimate::hitters::NoisyVector;

    #[test]
    fn what_was_drawn_is_read_back_with_its_noise_and_what_is_older_without() {
        let law = |sigma: u64| Law::rounded(sigma.into()).unwrap();
        let (values, laws) = (NoisyVector(vec![119, -3, 0]), [law(7)]);
        let drawn = StoredEstimate::new(values.clone(), &laws);
        let bytes = drawn.to_bytes();
        // Written down once: ledgers hold these bytes.
        assert_eq!(bytes, [&MARK[..], &[13], b"[\"rounded 7\"]", &values.to_bytes()].concat());
        let read = |bytes: &[u8], laws: usize| StoredEstimate::read(bytes, laws, NoisyVector::from_bytes);
        assert_eq!(read(&bytes, 1), Some(drawn));
        assert_eq!((read(&bytes, 2), NoisyVector::from_bytes(&bytes)), (None, None), "of another form");
        assert!((2..bytes.len()).all(|cut| read(&bytes[..cut], 1).is_none()));
        let older = read(&values.to_bytes(), 1).unwrap();
        assert_eq!((older.value, older.laws.len()), (values, 0));
        let bars = NoisyHistogram { radius: 2.5, norms: Some(vec![1, -9]), values: vec![1 << 40] };
        let read = |bytes: &[u8]| StoredEstimate::read(bytes, 2, NoisyHistogram::from_bytes);
        let drawn = StoredEstimate::new(bars.clone(), &[law(7), law(9)]);
        assert_eq!(read(&drawn.to_bytes()), Some(drawn));
        assert_eq!(read(&bars.to_bytes()).map(|older| older.value), Some(bars));
        assert!(f64::from_le_bytes(MARK).is_nan(), "and so no radius");
    }
}
