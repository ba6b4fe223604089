//! Small random tables, written as Parquet so that a column has its type even where no row does, and NaN and infinity stay what they are.

use crate::room::Room;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// SplitMix64: the same tables each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) % most
    }

    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// One row. `x` has the bounds −2 and 6, `n` 0 and 10; both go beyond them. `shop` has listed keys, `tag` has none.
#[derive(Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) user: Option<i64>,
    pub(crate) day: Option<i64>,
    pub(crate) shop: &'static str,
    pub(crate) tag: Option<&'static str>,
    pub(crate) x: Option<f64>,
    pub(crate) n: Option<i64>,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, day, shop, tag, x, n } = self;
        write!(f, "(user {user:?}, day {day:?}, shop {shop}, tag {tag:?}, x {x:?}, n {n:?})")
    }
}

pub(crate) const SHOPS: &[&str] = &["a", "b", "c", "d"];
const TAGS: &[Option<&str>] = &[Some("p"), Some("q"), Some("r"), Some("s"), Some("t"), None];
const XS: &[Option<f64>] = &[
    Some(-2.0),
    Some(6.0),
    Some(6.0),
    Some(0.0),
    Some(-0.0),
    Some(1.25),
    Some(2.7),
    Some(f64::NAN),
    Some(f64::INFINITY),
    Some(f64::NEG_INFINITY),
    Some(-7.5),
    None,
];
const NS: &[Option<i64>] = &[Some(0), Some(10), Some(10), Some(3), Some(4), Some(7), Some(i64::MAX), Some(-5), None];

impl Row {
    /// A row of this user and day.
    pub(crate) fn some(user: Option<i64>, day: Option<i64>, dice: &mut Dice) -> Self {
        Self { user, day, shop: dice.of(SHOPS), tag: dice.of(TAGS), x: dice.of(XS), n: dice.of(NS) }
    }
}

/// Four users and four days, and a few rows that have none.
pub(crate) fn any_user(dice: &mut Dice) -> Option<i64> {
    if dice.one_in(25) { None } else { Some(dice.below(4) as i64) }
}

pub(crate) fn any_day(dice: &mut Dice) -> Option<i64> {
    if dice.one_in(25) { None } else { Some(dice.below(4) as i64) }
}

pub(crate) fn any_row(dice: &mut Dice) -> Row {
    let (user, day) = (any_user(dice), any_day(dice));
    Row::some(user, day, dice)
}

/// Now and then every row is like another, which is where bounds are met.
pub(crate) fn any_rows(most: u64, dice: &mut Dice) -> Vec<Row> {
    let many = dice.below(most + 1);
    let mut rows: Vec<Row> = (0..many).map(|_| any_row(dice)).collect();
    if dice.one_in(3) {
        for i in 1..rows.len() {
            if !dice.one_in(3) {
                let like = rows[i - 1].clone();
                rows[i] = Row { user: rows[i].user, day: rows[i].day, ..like };
            }
        }
    }
    rows
}

/// Writes rows as a Parquet file that says nothing of its values.
pub(crate) fn write(room: &Room, name: &str, rows: &[Row]) {
    write_with(room, name, rows, EnabledStatistics::None);
}

/// Writes rows as a Parquet file that says so much of its values: the least and the largest, without NaN, and how many are missing.
pub(crate) fn write_with(room: &Room, name: &str, rows: &[Row], statistics: EnabledStatistics) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user_id", Arc::new(rows.iter().map(|row| row.user).collect::<Int64Array>())),
        ("day", Arc::new(rows.iter().map(|row| row.day).collect::<Int64Array>())),
        ("shop", Arc::new(rows.iter().map(|row| Some(row.shop)).collect::<StringArray>())),
        ("tag", Arc::new(rows.iter().map(|row| row.tag).collect::<StringArray>())),
        ("x", Arc::new(rows.iter().map(|row| row.x).collect::<Float64Array>())),
        ("n", Arc::new(rows.iter().map(|row| row.n).collect::<Int64Array>())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .unwrap();
    let properties = WriterProperties::builder().set_statistics_enabled(statistics).build();
    let file = std::fs::File::create(room.path().join(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Public tables: up to two regions of a shop, and one season of a day.
pub(crate) fn write_public(room: &Room) {
    room.write("regions.csv", "shop,region\na,east\na,west\nb,east\nc,west\nc,north\n");
    room.write("seasons.csv", "day,season\n0,cold\n1,cold\n2,warm\n");
}

/// A declaration of many tables with one unit, and of the public ones.
pub(crate) fn declare(names: &[String], unit: &str) -> String {
    let mut text = String::from(
        "[dataset.regions]\nsource = \"regions.csv\"\npublic = true\n[dataset.seasons]\nsource = \"seasons.csv\"\npublic = true\n",
    );
    for name in names {
        let _ = write!(
            text,
            "[dataset.{name}]\nsource = \"{name}.parquet\"\n{unit}\ncolumns.x = {{ bounds = [-2, 6] }}\ncolumns.n = {{ bounds = [0, 10] }}\ncolumns.shop = {{ keys = [\"a\", \"b\", \"c\"] }}\n"
        );
    }
    text
}
