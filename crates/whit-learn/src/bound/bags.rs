//! Units as bags of rows.

/// The rows of a batch, bag by bag: all rows of one unit stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bags {
    /// Where each bag ends.
    ends: Vec<usize>,
}

impl Bags {
    /// Bags of these sizes, one after the other. A bag may be empty: it contributes nothing.
    pub fn of_sizes(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0;
        let ends = sizes.into_iter().map(|size| {
            end += size;
            end
        });
        Self { ends: ends.collect() }
    }

    /// One row each.
    pub fn single(rows: usize) -> Self {
        Self { ends: (1..=rows).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many rows they hold together.
    pub fn rows(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The rows of each bag.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + Clone + '_ {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }

    /// The rows of one bag.
    pub fn range(&self, bag: usize) -> std::ops::Range<usize> {
        let start = bag.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[bag]
    }
}
