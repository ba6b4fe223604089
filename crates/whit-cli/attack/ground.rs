//! A declared data set and two neighbours of it: what an attack stands on.

use super::dice::Dice;
use std::fmt::Write as _;
use std::path::Path;

/// What a column holds, in the words of `columns.NAME.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Int,
    Float,
    Text,
    Bool,
    Date,
    Timestamp,
    Decimal,
}

impl ColumnKind {
    /// As it is declared.
    pub(crate) fn declared(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Decimal => "decimal(38, 10)",
        }
    }

    /// What the engine or a declaration calls it; text where it is something else.
    pub(crate) fn named(name: &str) -> Self {
        let name = name.to_lowercase();
        let starts = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
        if starts(&["int", "uint", "whole"]) {
            Self::Int
        } else if starts(&["float", "double"]) {
            Self::Float
        } else if starts(&["bool"]) {
            Self::Bool
        } else if starts(&["date"]) {
            Self::Date
        } else if starts(&["timestamp"]) {
            Self::Timestamp
        } else if starts(&["decimal"]) {
            Self::Decimal
        } else {
            Self::Text
        }
    }

    fn ordinary(self, dice: &mut Dice) -> String {
        match self {
            Self::Int => dice.below(100).to_string(),
            Self::Float => format!("{}.{}", dice.below(100), dice.below(4) * 25),
            Self::Text => (*dice.of(&["a", "b", "c", "d"])).to_owned(),
            Self::Bool => (*dice.of(&["true", "false"])).to_owned(),
            Self::Date => format!("2024-0{}-1{}", 1 + dice.below(9), dice.below(9)),
            Self::Timestamp => format!("2024-0{}-1{}T0{}:30:00", 1 + dice.below(9), dice.below(9), dice.below(9)),
            Self::Decimal => format!("{}.{}", dice.below(1000), dice.below(100)),
        }
    }

    /// What a careless owner, or a hostile unit, may have in a cell.
    fn extreme(self, dice: &mut Dice) -> String {
        let own: &[&str] = match self {
            Self::Int => &["-9223372036854775808", "9223372036854775807", "0", "-1", "12.5", "99999999999999999999"],
            Self::Float => &["NaN", "inf", "-inf", "1e308", "-1e308", "5e-324", "-0.0", "0"],
            Self::Text => &["", "%", "\\", "%_\\", "(", "[a", "é\u{301}", "1e999", "P1Y", "99 years", "\u{0}"],
            Self::Bool => &["true", "2", "maybe"],
            Self::Date => &["0001-01-01", "9999-12-31", "-262143-01-01", "262142-12-31", "2024-02-30"],
            Self::Timestamp => {
                &["1677-09-21T00:12:43", "2262-04-11T23:47:16", "0001-01-01T00:00:00", "9999-12-31T23:59:59"]
            }
            Self::Decimal => {
                &["9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0", "1e30"]
            }
        };
        let foreign = ["12.5", "word", "", "-1", "NULL", "9223372036854775807", "1969-12-31"];
        if self == Self::Text && dice.one_in(6) {
            return "long ".repeat(2000);
        }
        (*if dice.one_in(4) { dice.of(&foreign) } else { dice.of(own) }).to_owned()
    }
}

/// A column of the attacked data set.
#[derive(Debug, Clone)]
pub(crate) struct GroundColumn {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
    /// The values that a declaration lists.
    pub(crate) keys: Vec<String>,
    /// Whether numbers have declared bounds, so that they can be summed.
    pub(crate) bounded: bool,
}

impl GroundColumn {
    fn cell(&self, extreme: bool, dice: &mut Dice) -> Option<String> {
        if dice.one_in(12) {
            return None;
        }
        if !self.keys.is_empty() && !dice.one_in(8) {
            return Some(dice.of(&self.keys).clone());
        }
        Some(if extreme { self.kind.extreme(dice) } else { self.kind.ordinary(dice) })
    }
}

/// What moves together, and what stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moving {
    pub(crate) protect: String,
    pub(crate) add_remove: bool,
    pub(crate) user: Option<String>,
    /// The columns from which the element follows.
    pub(crate) element: Vec<String>,
    pub(crate) public: Vec<String>,
    pub(crate) label: Option<String>,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    Ndjson,
}

/// One row; or a line that is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GroundRow {
    Cells(Vec<Option<String>>),
    Raw(Vec<u8>),
}

/// A data set as it is declared, and nothing of anybody's rows.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) title: String,
    pub(crate) dataset: String,
    pub(crate) columns: Vec<GroundColumn>,
    pub(crate) moving: Moving,
    pub(crate) form: Form,
    /// The whole declaration.
    pub(crate) declaration: String,
}

impl Ground {
    /// The name of its file.
    pub(crate) fn file(&self) -> &'static str {
        match self.form {
            Form::Csv => "rows.csv",
            Form::Ndjson => "rows.ndjson",
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn row(&self, extreme: bool, dice: &mut Dice) -> Vec<Option<String>> {
        self.columns.iter().map(|column| column.cell(extreme, dice)).collect()
    }

    /// Ordinary rows of a few users.
    pub(crate) fn rows(&self, many: usize, dice: &mut Dice) -> Vec<GroundRow> {
        let user = self.moving.user.as_deref().and_then(|user| self.place(user));
        (0..many)
            .map(|i| {
                let mut row = self.row(false, dice);
                if let Some(user) = user {
                    row[user] = Some((i % (many / 4).max(1)).to_string());
                }
                GroundRow::Cells(row)
            })
            .collect()
    }

    /// A neighbour in which one unit has other rows, mostly with the worst that a cell can hold.
    pub(crate) fn neighbour(&self, rows: &[GroundRow], dice: &mut Dice) -> Vec<GroundRow> {
        let mut rows = rows.to_vec();
        let at = dice.below(rows.len());
        let GroundRow::Cells(one) = rows[at].clone() else { return rows };
        let kept: Vec<usize> = match self.moving.protect.as_str() {
            "element" => {
                self.moving.user.iter().chain(&self.moving.element).filter_map(|name| self.place(name)).collect()
            }
            "feature" => {
                self.moving.public.iter().chain(&self.moving.user).filter_map(|name| self.place(name)).collect()
            }
            "label" => {
                (0..self.columns.len()).filter(|&i| Some(&self.columns[i].name) != self.moving.label.as_ref()).collect()
            }
            "user" => self.moving.user.iter().filter_map(|name| self.place(name)).collect(),
            _ => Vec::new(),
        };
        let whole = matches!(self.moving.protect.as_str(), "element" | "user")
            || (self.moving.user.is_some() && matches!(self.moving.protect.as_str(), "feature" | "label"));
        let unit: Vec<usize> = match self.moving.protect.as_str() {
            "feature" | "label" => self.moving.user.iter().filter_map(|name| self.place(name)).collect(),
            _ => kept.clone(),
        };
        let belongs = |row: &GroundRow| match row {
            GroundRow::Cells(cells) => unit.iter().all(|&i| cells[i] == one[i]),
            GroundRow::Raw(_) => false,
        };
        let moved: Vec<usize> = (0..rows.len()).filter(|&i| if whole { belongs(&rows[i]) } else { i == at }).collect();
        let fixed = matches!(self.moving.protect.as_str(), "feature" | "label");
        if self.moving.add_remove || (!fixed && dice.one_in(6)) {
            let mut place = 0;
            rows.retain(|_| {
                place += 1;
                !moved.contains(&(place - 1))
            });
            return rows;
        }
        for &i in &moved {
            let GroundRow::Cells(old) = &rows[i] else { continue };
            let mut new = self.row(!dice.one_in(5), dice);
            for &keep in &kept {
                new[keep].clone_from(&old[keep]);
            }
            rows[i] = GroundRow::Cells(new);
        }
        // A line that is no row is one event, and nobody's where users are declared.
        if self.moving.protect == "event" && self.moving.user.is_none() && dice.one_in(3) {
            let broken: [&[u8]; 5] = [b"\"", b"1,2", b"\xff\xfe,\x80", b"{\"x\": ", b"1,2,3,4,5,6,7,8,9,10,11,12,13"];
            rows[at] = GroundRow::Raw(dice.of(&broken).to_vec());
        }
        rows
    }

    /// The rows as a file.
    pub(crate) fn bytes(&self, rows: &[GroundRow]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.form == Form::Csv {
            let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
            bytes.extend_from_slice(names.join(",").as_bytes());
            bytes.push(b'\n');
        }
        for row in rows {
            match row {
                GroundRow::Raw(raw) => bytes.extend_from_slice(raw),
                GroundRow::Cells(cells) if self.form == Form::Csv => {
                    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell.as_deref())).collect();
                    bytes.extend_from_slice(cells.join(",").as_bytes());
                }
                GroundRow::Cells(cells) => {
                    let mut line = String::from("{");
                    for (column, cell) in self.columns.iter().zip(cells) {
                        let Some(cell) = cell else { continue };
                        let comma = if line.len() > 1 { ", " } else { "" };
                        let name = serde_json::Value::from(column.name.as_str());
                        let plain = matches!(column.kind, ColumnKind::Int | ColumnKind::Float | ColumnKind::Bool)
                            && serde_json::from_str::<serde_json::Value>(cell).is_ok();
                        let value =
                            if plain { cell.clone() } else { serde_json::Value::from(cell.as_str()).to_string() };
                        let _ = write!(line, "{comma}{name}: {value}");
                    }
                    line.push('}');
                    bytes.extend_from_slice(line.as_bytes());
                }
            }
            bytes.push(b'\n');
        }
        bytes
    }

    /// Writes declaration and rows into a folder of their own.
    pub(crate) fn lay(&self, folder: &Path, rows: &[GroundRow]) -> std::io::Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("whit.toml"), &self.declaration)?;
        std::fs::write(folder.join("places.csv"), "place,region\na,east\na,west\nb,east\nc,north\n")?;
        std::fs::write(folder.join(self.file()), self.bytes(rows))
    }
}

fn quoted(cell: Option<&str>) -> String {
    match cell {
        None => String::new(),
        Some(cell) if cell.contains([',', '"', '\n', '\r']) || cell.is_empty() => {
            format!("\"{}\"", cell.replace('"', "\"\""))
        }
        Some(cell) => cell.to_owned(),
    }
}

const UNITS: &[(&str, &str)] = &[
    ("event, replace", "unit.protect = \"event\""),
    ("event, add-remove", "unit.protect = \"event\"\nunit.change = \"add-remove\""),
    ("event of users", "unit.user = \"id\"\nunit.protect = \"event\"\nunit.caps = { rows_per_user = 3 }"),
    (
        "element",
        "unit.user = \"id\"\nunit.element = \"topic\"\nunit.protect = \"element\"\nunit.caps = { elements_per_user = 3, rows_per_element = 2 }",
    ),
    ("user, replace", "unit.user = \"id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 4 }"),
    (
        "user, add-remove",
        "unit.user = \"id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 4 }",
    ),
    ("feature", "unit.public = [\"topic\", \"place\"]\nunit.protect = \"feature\""),
    (
        "feature of a user",
        "unit.user = \"id\"\nunit.public = [\"topic\", \"place\"]\nunit.protect = \"feature\"\nunit.caps = { rows_per_user = 3 }",
    ),
    ("label", "unit.label = \"y\"\nunit.protect = \"label\""),
    (
        "label of a user",
        "unit.user = \"id\"\nunit.label = \"y\"\nunit.protect = \"label\"\nunit.caps = { rows_per_user = 4 }",
    ),
];

/// How many declarations of whit's own there are.
pub(crate) fn own() -> usize {
    UNITS.len() * 2
}

/// One of whit's own declarations: every unit, in both forms of files whose types are declared.
pub(crate) fn declared(number: usize) -> Ground {
    let (title, unit) = UNITS[number / 2 % UNITS.len()];
    let form = if number.is_multiple_of(2) { Form::Csv } else { Form::Ndjson };
    let column = |name: &str, kind: ColumnKind, keys: &[&str], bounded: bool| GroundColumn {
        name: name.to_owned(),
        kind,
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
        bounded,
    };
    let columns = vec![
        column("id", ColumnKind::Int, &[], false),
        column("topic", ColumnKind::Text, &[], false),
        column("place", ColumnKind::Text, &["a", "b", "c"], false),
        column("x", ColumnKind::Float, &[], true),
        column("n", ColumnKind::Int, &[], true),
        column("money", ColumnKind::Decimal, &[], true),
        column("word", ColumnKind::Text, &[], false),
        column("day", ColumnKind::Date, &[], false),
        column("at", ColumnKind::Timestamp, &[], false),
        column("flag", ColumnKind::Bool, &[], false),
        column("y", ColumnKind::Int, &[], true),
    ];
    let mut ground = Ground {
        title: format!("{title}, {form:?}").to_lowercase(),
        dataset: "rows".to_owned(),
        columns,
        moving: moving(unit),
        form,
        declaration: String::new(),
    };
    let mut text = format!("[dataset.rows]\nsource = \"{}\"\n{unit}\n", ground.file());
    let _ = writeln!(text, "budget.{} = {{ epsilon = 1e9, delta = 1e-3 }}", ground.moving.protect);
    for column in &ground.columns {
        let mut facts = vec![format!("type = \"{}\"", column.kind.declared())];
        if column.bounded {
            facts.push("bounds = [0, 100]".to_owned());
        }
        if !column.keys.is_empty() {
            facts.push(format!("keys = {:?}", column.keys));
        }
        let _ = writeln!(text, "columns.{} = {{ {} }}", column.name, facts.join(", "));
    }
    text.push_str("[dataset.places]\nsource = \"places.csv\"\npublic = true\n");
    ground.declaration = text;
    ground
}

/// What a unit's lines in a declaration say.
fn moving(unit: &str) -> Moving {
    let table: toml::Table = unit.parse().unwrap_or_default();
    of_unit(table.get("unit").and_then(toml::Value::as_table).unwrap_or(&toml::Table::new()))
}

/// What moves together under a declared unit.
pub(crate) fn of_unit(unit: &toml::Table) -> Moving {
    let text = |key: &str| unit.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let names = |key: &str| match unit.get(key) {
        Some(toml::Value::Array(names)) => names.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let element = match unit.get("element") {
        Some(toml::Value::String(text)) => text.split(word).map(str::to_owned).collect(),
        Some(toml::Value::Table(table)) => table
            .values()
            .filter_map(toml::Value::as_str)
            .flat_map(|text| text.split(word))
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    Moving {
        protect: text("protect").unwrap_or_else(|| "event".to_owned()),
        add_remove: text("change").as_deref() == Some("add-remove"),
        user: text("user"),
        element,
        public: names("public"),
        label: text("label"),
    }
}
