//! Baskets: which of some items are in each, and to which cluster of baskets it belongs. Some items are shown to everybody, the others are hidden.

use super::dice::Dice;
use super::{Fallible, table};
use std::path::Path;

/// How many features of the real data are public; the paper has 100 of 600.
const SHOWN: usize = 100;
/// How many rows of a hundred are learned from.
const TRAIN: f64 = 0.85;

/// The made-up baskets.
const BASKETS: usize = 6000;
const ITEMS: usize = 120;
const ITEMS_SHOWN: usize = 40;
const CLUSTERS: usize = 20;

/// Opens bits up to bytes, and parts them into what is shown and what is hidden.
pub(crate) fn rewrite(file: &Path, to: &Path) -> Fallible<()> {
    let dice = &mut Dice::new(0x5e11);
    let mut baskets = Baskets::default();
    for batch in table::read(file)? {
        let batch = batch?;
        let labels = table::label_column(&batch, "label")?;
        for (label, bits) in labels.into_iter().zip(table::byte_column(&batch, "bits")?) {
            let items: Vec<u8> = bits.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
            baskets.add(label, &items, SHOWN, dice);
        }
    }
    baskets.write(to, SHOWN)
}

/// Makes baskets: each cluster has eight favourites, of which most of a basket is.
pub(crate) fn make(to: &Path) -> Fallible<()> {
    let dice = &mut Dice::new(0xba5c);
    let favourites: Vec<Vec<usize>> = (0..CLUSTERS).map(|_| dice.choose(8, ITEMS)).collect();
    let mut baskets = Baskets::default();
    for _ in 0..BASKETS {
        let cluster = dice.below(CLUSTERS);
        let mut items = vec![0; ITEMS];
        for _ in 0..7 {
            let liked = dice.uniform() < 0.65;
            // What nobody likes in particular is bought by how popular it is: the first items are.
            let item = if liked {
                favourites[cluster][dice.below(8)]
            } else {
                (ITEMS as f64 * dice.uniform().powi(2)) as usize
            };
            items[item.min(ITEMS - 1)] = 1;
        }
        baskets.add(u8::try_from(cluster)?, &items, ITEMS_SHOWN, dice);
    }
    baskets.write(to, ITEMS_SHOWN)
}

#[derive(Default)]
struct Baskets {
    labels: Vec<u8>,
    shown: Vec<u8>,
    hidden: Vec<u8>,
    splits: Vec<&'static str>,
}

impl Baskets {
    fn add(&mut self, label: u8, items: &[u8], shown: usize, dice: &mut Dice) {
        self.labels.push(label);
        self.shown.extend_from_slice(&items[..shown]);
        self.hidden.extend_from_slice(&items[shown..]);
        self.splits.push(if dice.uniform() < TRAIN { "train" } else { "test" });
    }

    fn write(self, to: &Path, shown: usize) -> Fallible<()> {
        let hidden = self.hidden.len() / self.labels.len().max(1);
        let columns = vec![
            ("label", table::labels(self.labels)),
            ("shown", table::bytes(self.shown, shown)?),
            ("hidden", table::bytes(self.hidden, hidden)?),
            ("split", table::texts(&self.splits)),
        ];
        table::write(&to.join("retail.parquet"), columns)?;
        Ok(std::fs::write(to.join("whit.toml"), DECLARED)?)
    }
}

const DECLARED: &str = r#"# One file, declared twice. Where features are protected, everybody may know the cluster and the items that are shown;
# where events are, nothing of a basket. Neighbours replace what is protected in both, so that one ε means the same.
[dataset.retail_feature]
source = "retail.parquet"
unit.public = ["label", "shown", "split"]
unit.protect = "feature"
budget.feature = { epsilon = 8.0, delta = 1e-5, currency = "renyi" }

[dataset.retail_event]
source = "retail.parquet"
unit.public = ["split"]
unit.protect = "event"
budget.event = { epsilon = 8.0, delta = 1e-5, currency = "renyi" }
"#;
