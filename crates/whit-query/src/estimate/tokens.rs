//! Who has how much of which item, in the clusters of a public partition.

use super::noise::EstimateError;
use std::fmt;
use std::sync::Arc;

/// The items of a public dictionary and the cluster of each.
///
/// ```
/// use whit_query::estimate::tokens::Items;
/// let items = Items::new(&[0, 1, 0, 5])?;
/// assert_eq!((items.len(), items.clusters()), (4, 3)); // a number that no item has is no cluster
/// # Ok::<(), whit_query::estimate::EstimateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    /// By item: its place when items are sorted by cluster.
    place: Vec<u32>,
    /// By place: the item.
    item: Vec<u32>,
    /// By place: the cluster, numbered by first place.
    cluster: Vec<u32>,
    /// By cluster: how many items it has.
    sizes: Vec<u32>,
}

impl Items {
    /// Takes the cluster of each item. Clusters are told apart by their numbers, whatever these are.
    pub fn new(cluster_of: &[u32]) -> Result<Self, EstimateError> {
        if cluster_of.is_empty() {
            return Err(EstimateError::NoItems);
        }
        let mut item: Vec<u32> = (0..cluster_of.len() as u32).collect();
        item.sort_unstable_by_key(|&item| (cluster_of[item as usize], item));
        let mut place = vec![0; item.len()];
        item.iter().enumerate().for_each(|(at, &item)| place[item as usize] = at as u32);
        let sizes: Vec<u32> = item
            .chunk_by(|&a, &b| cluster_of[a as usize] == cluster_of[b as usize])
            .map(|same| same.len() as u32)
            .collect();
        let numbered =
            sizes.iter().enumerate().flat_map(|(number, &size)| std::iter::repeat_n(number as u32, size as usize));
        Ok(Self { place, cluster: numbered.collect(), item, sizes })
    }

    /// How many items there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always an item")]
    pub fn len(&self) -> usize {
        self.item.len()
    }

    /// How many clusters have items.
    pub fn clusters(&self) -> usize {
        self.sizes.len()
    }

    /// How many items each cluster has.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Whether an item has a cluster to itself.
    pub(crate) fn is_single(&self, item: u32) -> bool {
        self.sizes[self.cluster[self.place[item as usize] as usize] as usize] == 1
    }

    /// The size of the cluster at a place.
    pub(super) fn size_at(&self, place: u32) -> u32 {
        self.sizes[self.cluster[place as usize] as usize]
    }

    /// The item at a place.
    pub(super) fn item_at(&self, place: u32) -> u32 {
        self.item[place as usize]
    }
}

/// So much of one item, by one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// The user's number among those that were found, from 0.
    pub user: u32,
    /// The item's number in the dictionary.
    pub item: u32,
    /// How much, in whole units: occurrences, or steps of a weight. Summed in integers, so that the order of rows does not matter.
    pub weight: u64,
}

/// The most that one user has of one item; what is above counts as this.
const MOST: u64 = 1 << 40;

/// All tokens, by user and cluster. What a release bounds and adds up; not for logs.
#[derive(Clone)]
pub struct Tokens {
    items: Arc<Items>,
    /// Sorted by user and place; `item` holds the place. No two of one user and place, and no weight of 0.
    entries: Vec<Token>,
    /// By user: a number that is a function of who the user is, and of nothing else in the data.
    marks: Vec<u64>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens of {} items", self.items.len())
    }
}

impl Tokens {
    /// Sorts tokens and adds up those of one user and item. `marks[user]` must depend on the user's identity alone (a hash of
    /// the key): it decides who is set aside where users are split.
    pub fn gather(items: Arc<Items>, mut tokens: Vec<Token>, marks: Vec<u64>) -> Result<Self, EstimateError> {
        for token in &mut tokens {
            let place = items.place.get(token.item as usize);
            token.item = *place.ok_or(EstimateError::Item { item: token.item, items: items.len() })?;
            if token.user as usize >= marks.len() {
                let value = f64::from(token.user);
                return Err(EstimateError::Range { name: "a user's number", value, range: "one that has a mark" });
            }
        }
        tokens.sort_unstable_by_key(|token| (token.user, token.item));
        tokens.dedup_by(|next, kept| {
            let same = (next.user, next.item) == (kept.user, kept.item);
            if same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            same
        });
        for token in &mut tokens {
            token.weight = token.weight.min(MOST);
        }
        tokens.retain(|token| token.weight > 0);
        Ok(Self { items, entries: tokens, marks })
    }

    /// The dictionary.
    pub fn items(&self) -> &Arc<Items> {
        &self.items
    }

    /// Each user's tokens that are kept, with the user's mark.
    pub(super) fn users(&self) -> impl Iterator<Item = (u64, User<'_>)> {
        let by_user = self.entries.chunk_by(|a, b| a.user == b.user);
        by_user.map(|entries| (self.marks[entries[0].user as usize], User { entries, items: &self.items }))
    }
}

/// One user's tokens.
pub(super) struct User<'a> {
    entries: &'a [Token],
    items: &'a Items,
}

impl<'a> User<'a> {
    /// The user's tokens in each cluster that has some, by place, with the sum of squares of their weights.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u128, &'a [Token])> + use<'a> {
        let items = self.items;
        let by_cluster =
            self.entries.chunk_by(move |a, b| items.cluster[a.item as usize] == items.cluster[b.item as usize]);
        // At most 2^32 squares of 2^80.
        by_cluster.map(|block| (block.iter().map(|token| u128::from(token.weight).pow(2)).sum(), block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(user: u32, item: u32, weight: u64) -> Token {
        Token { user, item, weight }
    }

    #[test]
    fn tokens_are_added_up_by_user_and_cluster() {
        let items = Arc::new(Items::new(&[7, 3, 7, 3, 9]).unwrap());
        assert_eq!(items.sizes(), [2, 2, 1]);
        assert!(items.is_single(4) && !items.is_single(0));
        let rows = vec![token(1, 0, 2), token(0, 4, 1), token(1, 2, 5), token(1, 3, 0), token(1, 0, 1), token(1, 1, 4)];
        let tokens = Tokens::gather(items.clone(), rows, vec![10, 11]).unwrap();
        let mut found: Vec<(u64, u128, u32, u64)> = Vec::new(); // mark, square, item, weight
        for (mark, user) in tokens.users() {
            for (square, block) in user.blocks() {
                found.extend(block.iter().map(|token| (mark, square, items.item_at(token.item), token.weight)));
            }
        }
        assert_eq!(found, [(10, 1, 4, 1), (11, 16, 1, 4), (11, 34, 0, 3), (11, 34, 2, 5)]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let items = Arc::new(Items::new(&[0, 0]).unwrap());
        let wrong = Tokens::gather(items.clone(), vec![token(0, 2, 1)], vec![1]).unwrap_err();
        assert_eq!(wrong.to_string(), "item number 2 is not on the list of 2 items");
        assert!(Tokens::gather(items.clone(), vec![token(1, 0, 1)], vec![1]).is_err());
        let huge = Tokens::gather(items, vec![token(0, 0, u64::MAX), token(0, 0, 7)], vec![1]).unwrap();
        assert_eq!(huge.entries[0].weight, MOST);
        assert!(Items::new(&[]).is_err());
    }
}
