//! Values as the numbers that a model reads: scaled, clamped, one-hot or hashed. As in [`open`](super::open), nothing here fails because of what is in a row.

use super::open::{Opened, Values, soft};
use crate::bound::hash::{PUBLIC, Role, hashes};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use std::collections::HashMap;
use whit_core::feature::{Feature, FeatureEncoding};

/// The numbers of a feature of so many a row. A row of which something does not fit is marked; or else, where the feature has an indicator, has zeros and a one.
pub(super) fn opened(
    feature: &Feature,
    column: &ArrayRef,
    (width, bits): (usize, bool),
    scaled: (f32, f32),
    fits: &mut [bool],
) -> Result<Opened, String> {
    let own = width - usize::from(feature.indicator);
    let mut here = vec![true; column.len()];
    let values = match &feature.encoding {
        FeatureEncoding::Plain | FeatureEncoding::BoundedWhereDeclared => {
            Opened::of(column, own, bits, scaled, &mut here)?.values
        }
        FeatureEncoding::Scaled { scale, offset } => {
            numbers(column, (own, bits), &mut here, |value| value.mul_add(*scale, *offset))?
        }
        FeatureEncoding::Bounded { range } => {
            let [low, high] = range.unwrap_or([-1.0, 1.0]);
            let unit = |value: f64| (value.clamp(low, high) - low) / (high - low) * 2.0 - 1.0;
            numbers(column, (own, bits), &mut here, unit)?
        }
        FeatureEncoding::OneHot { keys, other } => {
            one_hot(column, keys.as_deref().unwrap_or_default(), (own, *other), &mut here)?
        }
        FeatureEncoding::Hashed { width } => hashed(column, *width, &mut here)?,
    };
    if feature.indicator {
        let values = match values {
            Values::Bytes(values) => Values::Bytes(indicated(&values, own, &here, 1).into()),
            Values::Floats(values) => Values::Floats(indicated(&values, own, &here, 1.0).into()),
        };
        return Ok(Opened { values, width });
    }
    fits.iter_mut().zip(here).for_each(|(fits, here)| *fits &= here);
    Ok(Opened { values, width })
}

/// Numbers that something is done to, in double precision: a moment in seconds has more digits than single precision holds.
fn numbers(
    column: &ArrayRef,
    (width, bits): (usize, bool),
    here: &mut [bool],
    made: impl Fn(f64) -> f64,
) -> Result<Values, String> {
    let found: Vec<f64> = if column.data_type().is_numeric() {
        let wide = soft(column, &DataType::Float64)?;
        let number = |(value, here): (Option<f64>, &mut bool)| {
            let value = value.filter(|value| value.is_finite());
            *here &= value.is_some();
            value.unwrap_or(0.0)
        };
        wide.as_primitive::<Float64Type>().iter().zip(&mut *here).map(number).collect()
    } else {
        match Opened::of(column, width, bits, (1.0, 0.0), here)?.values {
            Values::Bytes(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Values::Floats(values) => values.iter().map(|&value| f64::from(value)).collect(),
        }
    };
    let of_nothing = made(0.0) as f32;
    let made = found.into_iter().enumerate().map(|(place, value)| {
        let value = made(value) as f32;
        if value.is_finite() {
            return value;
        }
        here[place / width] = false;
        of_nothing
    });
    Ok(Values::Floats(made.collect()))
}

/// A 1 in the place of each value's key; in the last where it is none and there is a place for that.
fn one_hot(
    column: &ArrayRef,
    keys: &[String],
    (width, other): (usize, bool),
    here: &mut [bool],
) -> Result<Values, String> {
    let known: HashMap<&str, usize> = keys.iter().enumerate().map(|(place, key)| (key.as_str(), place)).collect();
    let texts = soft(column, &DataType::Utf8)?;
    let mut places = vec![0_u8; column.len() * width];
    for (row, text) in texts.as_string::<i32>().iter().enumerate() {
        let Some(text) = text else {
            here[row] = false;
            continue;
        };
        if let Some(place) = known.get(text).copied().or_else(|| other.then_some(keys.len())) {
            places[row * width + place] = 1;
        }
    }
    Ok(Values::Bytes(places.into()))
}

/// A 1 in the place to which a hash sends each value, under a seed that is public: the same in every run, and on every machine.
fn hashed(column: &ArrayRef, width: usize, here: &mut [bool]) -> Result<Values, String> {
    // An error of the engine's may speak of a value.
    let numbers = hashes(std::slice::from_ref(column), column.len(), PUBLIC, Role::Place);
    let numbers = numbers.map_err(|_| "cannot be hashed".to_owned())?;
    let nulls = column.logical_nulls();
    let mut places = vec![0_u8; column.len() * width];
    for (row, number) in numbers.into_iter().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            here[row] = false;
        } else {
            places[row * width + place_of(number, width)] = 1;
        }
    }
    Ok(Values::Bytes(places.into()))
}

/// One of so many places, each as likely as the next.
fn place_of(number: u64, width: usize) -> usize {
    (u128::from(number) * width as u128 >> 64) as usize
}

/// Rows of numbers with one more each: 1, and the others 0, where something does not fit.
fn indicated<T: Copy + Default>(values: &[T], own: usize, here: &[bool], one: T) -> Vec<T> {
    let mut rows = Vec::with_capacity(values.len() + here.len());
    for (row, &here) in here.iter().enumerate() {
        if here {
            rows.extend_from_slice(&values[row * own..(row + 1) * own]);
            rows.push(T::default());
        } else {
            rows.extend(std::iter::repeat_n(T::default(), own));
            rows.push(one);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{BooleanArray, Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn read(feature: &Feature, column: &ArrayRef, width: usize) -> (Vec<f32>, Vec<bool>) {
        let mut fits = vec![true; column.len()];
        let opened = opened(feature, column, (width, false), (1.0, 0.0), &mut fits).unwrap();
        let values = match opened.values {
            Values::Bytes(values) => values.iter().map(|&value| f32::from(value)).collect(),
            Values::Floats(values) => values.to_vec(),
        };
        (values, fits)
    }

    fn as_(encoding: FeatureEncoding) -> Feature {
        Feature { encoding, ..Feature::from("x") }
    }

    #[test]
    fn a_key_has_its_place_and_what_is_none_has_no_one_or_the_last() {
        let words: ArrayRef = Arc::new(StringArray::from(vec![Some("de"), Some("fr"), None, Some("at")]));
        let keys = || Some(vec!["at".to_owned(), "de".to_owned()]);
        let plain = as_(FeatureEncoding::OneHot { keys: keys(), other: false });
        let places = vec![0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(read(&plain, &words, 2), (places, vec![true, true, false, true]));
        let other = Feature { indicator: true, ..as_(FeatureEncoding::OneHot { keys: keys(), other: true }) };
        let places = [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]];
        assert_eq!(read(&other, &words, 4), (places.concat(), vec![true; 4]));
        let (whole, truth): (ArrayRef, ArrayRef) =
            (Arc::new(Int64Array::from(vec![7, 8])), Arc::new(BooleanArray::from(vec![true, false])));
        let seven = as_(FeatureEncoding::OneHot { keys: Some(vec!["7".to_owned()]), other: false });
        assert_eq!(read(&seven, &whole, 1).0, [1.0, 0.0]);
        let yes = as_(FeatureEncoding::OneHot { keys: Some(vec!["true".to_owned()]), other: false });
        assert_eq!(read(&yes, &truth, 1).0, [1.0, 0.0]);
    }

    /// Written down once, and never to change: a model that was learned reads the places that it was learned from.
    #[test]
    fn hashed_values_have_the_places_that_they_had() {
        let words: ArrayRef = Arc::new(StringArray::from(vec![Some("a.org"), Some("b.org"), None, Some("a.org")]));
        let (places, fits) = read(&as_(FeatureEncoding::Hashed { width: 8 }), &words, 8);
        assert_eq!(fits, [true, true, false, true]);
        let ones: Vec<usize> = (0..places.len()).filter(|&at| places[at] == 1.0).collect();
        assert_eq!(ones.len(), 3, "{ones:?}");
        assert_eq!(ones[0] % 8, ones[2] % 8);
        assert_eq!(ones, [GOLDEN[0], 8 + GOLDEN[1], 24 + GOLDEN[0]]);
        for width in [1, 2, 1000] {
            assert!(place_of(u64::MAX, width) == width - 1 && place_of(0, width) == 0);
        }
    }

    const GOLDEN: [usize; 2] = [6, 1];

    #[test]
    fn ranges_become_minus_one_to_one_and_what_is_outside_is_clamped() {
        let seconds: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(1.7e9),
            Some(1.7e9 + 5.0),
            Some(1.7e9 + 10.0),
            Some(2e9),
            Some(-1e300),
            None,
            Some(f64::NAN),
        ]));
        let bounded = as_(FeatureEncoding::Bounded { range: Some([1.7e9, 1.7e9 + 10.0]) });
        let (values, fits) = read(&bounded, &seconds, 1);
        assert_eq!(values, [-1.0, 0.0, 1.0, 1.0, -1.0, -1.0, -1.0]);
        assert_eq!(fits, [true, true, true, true, true, false, false]);
        let (values, fits) = read(&Feature { indicator: true, ..bounded }, &seconds.slice(3, 3), 2);
        assert_eq!((values, fits), (vec![1.0, 0.0, -1.0, 0.0, 0.0, 1.0], vec![true; 3]));
    }

    #[test]
    fn a_scale_of_its_own_makes_no_number_infinite() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.0), None, Some(1e38)]));
        let (values, fits) = read(&as_(FeatureEncoding::Scaled { scale: 10.0, offset: 0.5 }), &numbers, 1);
        assert_eq!((values, fits), (vec![20.5, 0.5, 0.5], vec![true, false, false]));
        let whole: ArrayRef = Arc::new(Int64Array::from(vec![3]));
        assert_eq!(read(&as_(FeatureEncoding::Scaled { scale: 0.5, offset: 0.0 }), &whole, 1).0, [1.5]);
    }
}
