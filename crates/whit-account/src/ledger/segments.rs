//! The line of all values that a slice may have, cut where something begins or ends.
//!
//! Values that nothing has told apart so far share one segment. So there is no need to know which values there are: all are on the line, those that nobody has named in
//! whichever segment they fall into.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use whit_core::unit::{SliceRange, SliceValue};

/// A place between two values: before all of them, right before one, or right behind one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge(Option<(SliceValue, bool)>);

impl Edge {
    fn before(value: Option<&SliceValue>) -> Self {
        // Before the least whole number there is none.
        Self(value.filter(|value| **value != SliceValue::Whole(i64::MIN)).map(|value| (value.clone(), false)))
    }

    /// Behind a value; nothing where no value is.
    fn behind(value: Option<&SliceValue>) -> Option<Self> {
        let value = value?;
        match (value.next(), value) {
            // Between a whole number and the next there is none.
            (Some(next), _) => Some(Self(Some((next, false)))),
            (None, SliceValue::Whole(_)) => None,
            (None, SliceValue::Text(_)) => Some(Self(Some((value.clone(), true)))),
        }
    }
}

/// What is known of each value, value by value, kept for whole segments of them.
#[derive(Debug, Clone)]
pub(super) struct Segments<T> {
    /// From each edge up to the next; the first lies before all values.
    from: BTreeMap<Edge, T>,
}

impl<T: Clone> Segments<T> {
    /// The same of all values.
    pub(super) fn all(known: T) -> Self {
        Self { from: BTreeMap::from([(Edge(None), known)]) }
    }

    /// Changes what is known of the values in these ranges; of all where there are none.
    pub(super) fn touch(&mut self, ranges: Option<&[SliceRange]>, mut change: impl FnMut(&mut T)) {
        let Some(ranges) = ranges else { return self.from.values_mut().for_each(change) };
        for range in ranges {
            let (start, end) = (Edge::before(range.from.as_ref()), Edge::behind(range.to.as_ref()));
            self.cut(&start);
            if let Some(end) = &end {
                self.cut(end);
            }
            let end = end.map_or(Unbounded, Excluded);
            self.from.range_mut((Included(start), end)).for_each(|(_, known)| change(known));
        }
    }

    fn cut(&mut self, at: &Edge) {
        if let Some((_, known)) = self.from.range(..=at).next_back() {
            let known = known.clone();
            self.from.entry(at.clone()).or_insert(known);
        }
    }

    /// Each segment in order, with the values that it holds; nothing in place of these where they are those between two texts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<SliceRange>, &T)> {
        let ends = self.from.keys().skip(1).map(Some).chain([None]);
        self.from.iter().zip(ends).map(|((start, known), end)| (between(start, end), known))
    }

    /// Whether something was ever said of some values alone.
    pub(super) fn is_cut(&self) -> bool {
        self.from.len() > 1
    }

    /// The same with something else known.
    pub(super) fn map<U>(&self, other: impl Fn(&T) -> U) -> Segments<U> {
        Segments { from: self.from.iter().map(|(edge, known)| (edge.clone(), other(known))).collect() }
    }
}

fn between(start: &Edge, end: Option<&Edge>) -> Option<SliceRange> {
    let from = match &start.0 {
        None => None,
        Some((value, false)) => Some(value.clone()),
        Some((_, true)) => return None,
    };
    let to = match end.and_then(|end| end.0.as_ref()) {
        None => None,
        Some((SliceValue::Whole(number), _)) => Some(SliceValue::Whole(number.saturating_sub(1))),
        Some((text, true)) => Some(text.clone()),
        Some((SliceValue::Text(_), false)) => return None,
    };
    Some(SliceRange { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: Option<i64>, to: Option<i64>) -> SliceRange {
        SliceRange { from: from.map(SliceValue::Whole), to: to.map(SliceValue::Whole) }
    }

    #[test]
    fn segments_know_of_each_value_what_was_said_of_it() {
        let said = [
            vec![range(Some(2), Some(4))],
            vec![range(None, Some(2)), range(Some(6), None)],
            vec![range(Some(i64::MAX), Some(i64::MAX)), range(Some(i64::MIN), Some(i64::MIN))],
            vec![range(Some(3), Some(3))],
        ];
        let mut segments = Segments::all(Vec::new());
        for (i, ranges) in said.iter().enumerate() {
            segments.touch(Some(ranges), |known| known.push(i));
        }
        segments.touch(None, |known| known.push(9));
        for n in (-2..9).chain([i64::MIN, i64::MAX]) {
            let point = SliceRange::one(SliceValue::Whole(n));
            let holds = |range: &SliceRange| range.and(&point).is_some();
            let mut expected: Vec<usize> = (0..said.len()).filter(|&i| said[i].iter().any(holds)).collect();
            expected.push(9);
            let found: Vec<&Vec<usize>> =
                segments.iter().filter(|(range, _)| holds(range.as_ref().unwrap())).map(|(_, known)| known).collect();
            assert_eq!(found, [&expected], "{n}");
        }
    }

    #[test]
    fn between_two_texts_there_are_others() {
        let text = |text: &str| SliceRange::one(SliceValue::Text(text.to_owned()));
        let mut segments = Segments::all(0);
        segments.touch(Some(&[text("at"), text("de")]), |known| *known += 1);
        let seen: Vec<(Option<SliceRange>, i32)> = segments.iter().map(|(range, known)| (range, *known)).collect();
        assert_eq!(seen.len(), 5);
        assert_eq!((&seen[1], &seen[3]), (&(Some(text("at")), 1), &(Some(text("de")), 1)));
        assert_eq!([seen[0].1, seen[2].1, seen[4].1], [0, 0, 0]);
        assert!(seen[2].0.is_none());
    }
}
