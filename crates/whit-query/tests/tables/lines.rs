//! What an analyst sees of a table, on neighbouring data sets, for many declarations: only what noise lets through may differ.

use crate::room::{Room, asking};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::sync::Arc;
use whit_account::ledger::Books;
use whit_core::declare::Declaration;
use whit_query::source::Tuning;
use whit_query::{Tables, Value};

/// What a column of numbers may be declared as.
const NUMBERS: [&str; 3] = ["int", "float", "decimal(12, 2)"];
/// What one user may write into it.
const ODD: [&str; 12] =
    ["12.5", "", "n/a", "1e400", "-0", "9223372036854775808", "NaN", "\"", "\"a\"\"b", "é", "1,2,3", "00012"];

#[derive(Debug, Clone)]
struct Case {
    format: &'static str,
    number: &'static str,
    unit: &'static str,
    bounds: &'static str,
    keys: bool,
    newlines: bool,
    /// The rows of one user, in two data sets: what stands for the number, and for the text.
    odd: [Vec<(usize, usize)>; 2],
    /// Where they stand among the others.
    at: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let rows = || proptest::collection::vec((0..ODD.len(), 0..ODD.len()), 0..4);
    (
        prop_oneof![Just("csv"), Just("ndjson"), Just("parquet")],
        (0..3_usize).prop_map(|i| NUMBERS[i]),
        prop_oneof![
            Just("unit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 4 }\nbudget.user"),
            Just("unit.user = 'user_id'\nunit.element = 'shop'\nunit.protect = 'element'\nunit.caps = { elements_per_user = 3, rows_per_element = 2 }\nbudget.element"),
            Just("unit.protect = 'event'\nbudget.event"),
        ],
        prop_oneof![Just(", bounds = [0, 600]"), Just(", bounds = [-1, 2.5]"), Just(", bounds = 'auto'"), Just("")],
        any::<bool>(),
        any::<bool>(),
        [rows(), rows()],
        0..20_usize,
    )
        .prop_map(|(format, number, unit, bounds, keys, newlines, odd, at)| Case {
            format,
            number,
            unit,
            bounds,
            keys,
            // With line breaks in quotes a quote that stays open takes other rows along: a writer that quotes is assumed there.
            newlines: newlines && format == "csv" && odd.iter().flatten().all(|&(x, shop)| !ODD[x].contains('"') && !ODD[shop].contains('"')),
            odd,
            at,
        })
}

impl Case {
    fn declaration(&self) -> String {
        let keys = if self.keys { ", keys = ['a', 'b', 'moon']" } else { "" };
        let newlines = if self.newlines { "newlines_in_values = true\n" } else { "" };
        format!(
            "[dataset.t]\nsource = 't.{}'\n{newlines}{} = {{ epsilon = 1000.0, delta = 1e-3 }}\n\
             columns.user_id = 'int'\ncolumns.shop = {{ type = 'text'{keys} }}\ncolumns.x = {{ type = '{}'{} }}\n",
            self.format, self.unit, self.number, self.bounds
        )
    }

    /// The user of each row, the number and the text; those of user 99 are odd.
    fn rows(&self, which: usize) -> Vec<(i64, String, String)> {
        let mut rows: Vec<(i64, String, String)> =
            (0..20).map(|i| (i / 2, ["a", "b", "c"][i as usize % 3].to_owned(), (i * 7 % 50).to_string())).collect();
        for &(x, shop) in &self.odd[which] {
            rows.insert(self.at, (99, ODD[shop].to_owned(), ODD[x].to_owned()));
        }
        rows
    }

    fn write(&self, room: &Room, which: usize) {
        let rows = self.rows(which);
        let mut text = String::new();
        match self.format {
            "csv" => {
                text.push_str("user_id,shop,x,other\n");
                for (user, shop, x) in &rows {
                    writeln!(text, "{user},{shop},{x},z").unwrap();
                }
            }
            "ndjson" => rows.iter().for_each(|(user, shop, x)| {
                // Not everything is JSON, and that is the matter.
                let shop = if shop.contains('"') { shop.clone() } else { format!("\"{shop}\"") };
                writeln!(text, "{{\"user_id\": {user}, \"shop\": {shop}, \"x\": {x}, \"other\": {which}}}").unwrap();
            }),
            _ => return Self::parquet(room, &rows, which),
        }
        room.write(&format!("t.{}", self.format), &text);
    }

    /// A writer that chooses types by values: whole numbers where all are, else numbers with a point, else text.
    fn parquet(room: &Room, rows: &[(i64, String, String)], which: usize) {
        let whole: Option<Vec<i64>> = rows.iter().map(|row| row.2.parse().ok()).collect();
        let point: Option<Vec<f64>> = rows.iter().map(|row| row.2.parse().ok()).collect();
        let numbers: ArrayRef = match (whole, point) {
            (Some(whole), _) => Arc::new(Int64Array::from(whole)),
            (None, Some(point)) => Arc::new(Float64Array::from(point)),
            (None, None) => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.2))),
        };
        let users: ArrayRef = match which {
            0 => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
            _ => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0.to_string()))),
        };
        let shops: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1)));
        let batch = RecordBatch::try_from_iter([("user_id", users), ("shop", shops), ("x", numbers)]).unwrap();
        let file = std::fs::File::create(room.path().join("t.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    /// All that is seen but noisy values, and keys that are selected.
    fn seen(&self, room: &Room, which: usize) -> String {
        self.write(room, which);
        let mut seen = String::new();
        let declaration = Declaration::parse(&self.declaration()).unwrap();
        let tables = match Tables::of(declaration, room.path(), Tuning { memory: None, threads: Some(1) }) {
            Ok(tables) => tables,
            Err(error) => return format!("{error:?}"),
        };
        let _ = writeln!(seen, "{}", serde_json::to_string(&tables.warehouse().survey().unwrap()).unwrap());
        let books = Books::open(&room.path().join(format!("{which}-{}.ledger", std::process::id())));
        let mut books = books.unwrap();
        books.unsynchronised();
        for sql in [
            "SELECT COUNT(*) AS n, COUNT(x) AS c FROM t",
            "SELECT SUM(x) AS s, AVG(x) AS m FROM t WHERE shop = 'a'",
            "SELECT shop, COUNT(*) AS n FROM t GROUP BY shop ORDER BY shop",
            "SELECT SUM(other) FROM t",
            "SELECT MEDIAN(x) AS m FROM t",
        ] {
            let asking = asking(0.5);
            let preview = tables.preview(sql, &asking).map(|preview| serde_json::to_string(&preview).unwrap());
            let _ = writeln!(seen, "{sql}\n{preview:?}");
            match whit_query::ask(&tables, sql, &asking, &mut books, "eve") {
                Err(error) => {
                    let _ = writeln!(seen, "{error:?}");
                }
                Ok(answer) => {
                    let _ = writeln!(seen, "{:?}", answer.columns);
                    // Ranges that are found privately, and keys that are selected, are released.
                    if !self.bounds.contains("auto") {
                        // How much caps left out is released too.
                        let notes = answer.statement.notes.iter().filter(|note| !note.contains("left out by"));
                        let _ = writeln!(seen, "{:?} {:?}", answer.statement.mechanisms, notes.collect::<Vec<_>>());
                    }
                    if (self.keys || !sql.contains("GROUP BY")) && !self.bounds.contains("auto") {
                        let rows =
                            answer.rows.iter().map(|row| row.iter().map(|cell| kind(&cell.value)).collect::<Vec<_>>());
                        let _ = writeln!(seen, "{:?}", rows.collect::<Vec<_>>());
                    }
                }
            }
        }
        seen
    }
}

/// What a value is; an average of too few may be missing, and which they are depends on noise.
fn kind(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(_) => "int".to_owned(),
        Value::Float(_) | Value::Null => "float".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn neighbours_look_alike_whatever_one_user_wrote(case in cases()) {
        let room = Room::new("lines_alike");
        let [one, other] = [0, 1].map(|which| case.seen(&room, which));
        prop_assert_eq!(&one, &other, "{}", case.declaration());
        prop_assert!(one.contains("COUNT") && !one.contains("n/a") && !one.contains("line 1:"), "{}", one);
    }
}
