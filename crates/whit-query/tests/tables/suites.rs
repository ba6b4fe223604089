//! Whole suites of statements, each compared with what a plain database answers: at so large an ε that noise is next to nothing, what is left is what planning and bounding do.
//!
//! The plain answers stand in `suites/NAME.json`; `suites/answers.py` writes them with DuckDB from the tables that a test leaves behind.

use crate::room::{Room, ask};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whit_query::plan::Asking;
use whit_query::{Answer, Value};

/// A statement with its number, and what a plain database says to it.
struct Statement {
    number: String,
    title: String,
    sql: String,
    truth: Vec<Vec<serde_json::Value>>,
}

fn statements(sql: &str, answers: &str) -> Vec<Statement> {
    let mut truths: BTreeMap<String, Vec<Vec<serde_json::Value>>> = serde_json::from_str(answers).unwrap();
    let mut found: Vec<Statement> = Vec::new();
    for line in sql.lines() {
        let heading = line.strip_prefix("-- ").and_then(|line| line.split_once(": "));
        match heading.filter(|(number, _)| number.parse::<u32>().is_ok()) {
            Some((number, title)) => found.push(Statement {
                number: number.to_owned(),
                title: title.to_owned(),
                sql: String::new(),
                truth: truths.remove(number).unwrap_or_else(|| panic!("no answer is written down for {number}")),
            }),
            None => {
                if let Some(last) = found.last_mut() {
                    last.sql.push_str(line);
                    last.sql.push('\n');
                }
            }
        }
    }
    found
}

/// What is wrong with an answer, where something is: each row of the truth must be there with its numbers, and groups that it does not have must be empty.
fn fault(answer: &Answer, statement: &Statement) -> Option<String> {
    let exact = answer.statement.entry.is_none();
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    let word = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        other => format!("{other:?}"),
    };
    let is_key = |column: usize| !exact && answer.rows.iter().all(|row| row[column].low.is_none());
    let (keys, numbers): (Vec<usize>, Vec<usize>) = (0..answer.columns.len()).partition(|column| is_key(*column));
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if exact && answer.rows.len() != statement.truth.len() {
        return Some(format!("{} rows instead of {}", answer.rows.len(), statement.truth.len()));
    }
    for (place, truth) in statement.truth.iter().enumerate() {
        let named: Vec<String> = keys.iter().map(|key| plain(&truth[*key])).collect();
        let same =
            |row: &&Vec<whit_query::Cell>| keys.iter().zip(&named).all(|(key, name)| word(&row[*key].value) == *name);
        let found = if exact { answer.rows.get(place) } else { answer.rows.iter().find(same) };
        let Some(found) = found else { return Some(format!("{named:?} is missing")) };
        for column in &numbers {
            let Some(wanted) = truth[*column].as_f64() else {
                let (given, wanted) = (word(&found[*column].value), plain(&truth[*column]));
                if given == wanted {
                    continue;
                }
                return Some(format!("{given} for {wanted} in column {column}"));
            };
            let (given, cell) = (number(&found[*column].value), &found[*column]);
            let largest =
                |most: f64, row: &Vec<serde_json::Value>| row[*column].as_f64().map_or(most, |x| most.max(x.abs()));
            let most = statement.truth.iter().fold(0.0, largest);
            // Noise is not quite nothing where a few numbers are asked of many rows: there it must be small, and the truth near.
            let width = cell.high.zip(cell.low).map_or(0.0, |(high, low)| high - low);
            let near = |given: f64| (given - wanted).abs() <= (2.0 * width).max(1e-9 * most);
            if !given.is_some_and(near) || width > 1.0 + 0.05 * most {
                return Some(format!(
                    "{named:?}: {given:?} for {wanted} in column {column}, with an interval of {width}"
                ));
            }
        }
    }
    None
}

/// Asks all statements; what is not answered, or not as a plain database would, is told by name.
fn asked(name: &str, room: &Room, declared: &str, sql: &str, answers: &str) -> (usize, String) {
    let tables = room.tables(declared);
    let asking = Asking { epsilon: Some(1e8), delta: Some(1e-6), ..Asking::default() };
    let (mut right, mut wrong) = (0, String::new());
    for statement in statements(sql, answers) {
        let fault = match ask(&tables, room, &statement.sql, &asking) {
            Ok(answer) => fault(&answer, &statement),
            Err(error) => Some(format!("{} ({})", error.sentence, error.hint.unwrap_or_default())),
        };
        match fault {
            None => right += 1,
            Some(fault) => {
                let _ = writeln!(wrong, "{name} {}, {}: {fault}", statement.number, statement.title);
            }
        }
    }
    (right, wrong)
}

/// Writes a table of TPC-H as a CSV file.
macro_rules! table {
    ($room:ident, $name:literal, $csv:ident, $rows:expr) => {{
        let mut text = format!("{}\n", tpchgen::csv::$csv::header());
        for row in $rows.iter() {
            let _ = writeln!(text, "{}", tpchgen::csv::$csv::new(row));
        }
        $room.write(concat!($name, ".csv"), &text);
    }};
}

#[test]
fn what_a_business_asks_of_customers_orders_and_lines_is_answered() {
    use tpchgen::generators::{
        CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
        RegionGenerator, SupplierGenerator,
    };
    let room = Room::new("suite_orders");
    let scale = 0.01;
    table!(room, "nation", NationCsv, NationGenerator::default());
    table!(room, "region", RegionCsv, RegionGenerator::default());
    table!(room, "part", PartCsv, PartGenerator::new(scale, 1, 1));
    table!(room, "supplier", SupplierCsv, SupplierGenerator::new(scale, 1, 1));
    table!(room, "partsupp", PartSuppCsv, PartSuppGenerator::new(scale, 1, 1));
    table!(room, "customer", CustomerCsv, CustomerGenerator::new(scale, 1, 1));
    table!(room, "orders", OrderCsv, OrderGenerator::new(scale, 1, 1));
    table!(room, "lineitem", LineItemCsv, LineItemGenerator::new(scale, 1, 1));
    let (sql, answers) = (include_str!("suites/orders.sql"), include_str!("suites/orders.json"));
    let (right, wrong) = asked("orders", &room, include_str!("suites/orders.toml"), sql, answers);
    assert!(wrong.is_empty() && right == 19, "{wrong}");
}

#[test]
fn what_people_ask_of_a_census_and_of_telemetry_is_answered() {
    let room = Room::new("suite_people");
    let mut state = 11_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut census = String::from("PersonID,Age,Sex,Educ,Race,Income,Married\n");
    for person in 0..1000 {
        let race = ["white", "white", "black", "other"][next(4) as usize];
        let (age, sex, educ, income, married) = (next(90), next(2), 1 + next(16), next(9) * next(25_000), next(2) == 1);
        let _ = writeln!(census, "{person},{age},{sex},{educ},{race},{income},{married}");
    }
    let mut telemetry = String::from("DeviceID,OsName,EventDate,Crashes,BatteryLevel,Session Minutes,IsBeta\n");
    for device in 0..400 {
        let system = ["Android", "Linux", "Windows"][next(3) as usize];
        for report in 0..=next(12) {
            let (month, crashes, battery, minutes, beta) =
                (1 + report % 4, next(10), next(101) as f64 / 100.0, next(240), next(5) == 0);
            let _ = writeln!(
                telemetry,
                "d{device},{system},2026-0{month}-0{},{crashes},{battery},{minutes},{beta}",
                1 + report % 3
            );
        }
    }
    room.write("census.csv", &census);
    room.write("telemetry.csv", &telemetry);
    room.write("regions.csv", "Race,Region\nwhite,north\nblack,south\nother,south\n");
    let (sql, answers) = (include_str!("suites/people.sql"), include_str!("suites/people.json"));
    let (right, wrong) = asked("people", &room, include_str!("suites/people.toml"), sql, answers);
    assert!(wrong.is_empty() && right == 31, "{wrong}");
}
