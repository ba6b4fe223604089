//! Questions that nobody would think of: every kind of expression over every kind of column.

use super::dice::Dice;
use super::ground::{ColumnKind, Ground};

/// Functions of one argument and more; `$i` is a number, `$t` a text, `$d` a date or time.
const OF_NUMBERS: &[&str] = &[
    "sqrt($i)",
    "ln($i)",
    "log10($i)",
    "log2($i)",
    "log(2, $i)",
    "exp($i)",
    "abs($i)",
    "ceil($i)",
    "floor($i)",
    "round($i)",
    "round($i, -1)",
    "round($i, 2)",
    "trunc($i)",
    "signum($i)",
    "cbrt($i)",
    "acos($i)",
    "asin($i)",
    "atanh($i)",
    "acosh($i)",
    "cot($i)",
    "tan($i)",
    "degrees($i)",
    "radians($i)",
    "power($i, $i)",
    "$i + $i",
    "$i - $i",
    "$i * $i",
    "$i / $i",
    "$i % $i",
    "-($i)",
    "nullif($i, 0)",
    "coalesce($i, 1)",
    "greatest($i, $i)",
    "least($i, 3)",
    "clamp($i, 0, 100)",
    "bin($i, 0, 100, 4)",
    "CAST($i AS BIGINT)",
    "CAST($i AS INT)",
    "CAST($i AS TINYINT)",
    "CAST($i AS DOUBLE)",
    "CAST($i AS REAL)",
    "CAST($i AS DECIMAL(10, 2))",
    "CAST($i AS DECIMAL(38, 30))",
    "CAST($t AS BIGINT)",
    "CAST($t AS DOUBLE)",
    "CAST($t AS DECIMAL(20, 3))",
    "length($t)",
    "ascii($t)",
    "strpos($t, 'a')",
    "levenshtein($t, 'abc')",
    "octet_length($t)",
    "date_part('year', $d)",
    "date_part('epoch', $d)",
    "CASE WHEN $i > 50 THEN $i ELSE 1 END",
    "CASE WHEN $b THEN -1 ELSE 1 END",
    "factorial($i)",
    "gcd($i, $i)",
    "lcm($i, $i)",
    "$i & $i",
    "$i << $i",
    "isnan($i)::INT",
    "CAST($d AS BIGINT)",
    "CAST(($d - $d) AS BIGINT)",
    "atan2($i, $i)",
];
const OF_TEXT: &[&str] = &[
    "upper($t)",
    "lower($t)",
    "reverse($t)",
    "substr($t, 2, 3)",
    "left($t, 2)",
    "right($t, 2)",
    "split_part($t, ' ', 2)",
    "replace($t, 'a', 'bb')",
    "concat($t, $t)",
    "repeat($t, $i)",
    "lpad($t, $i, 'x')",
    "trim($t)",
    "initcap($t)",
    "translate($t, 'ab', 'c')",
    "CAST($i AS TEXT)",
    "CAST($d AS TEXT)",
    "to_hex($i)",
    "chr($i)",
    "coalesce($t, 'none')",
    "registrable_domain($t)",
    "regexp_replace($t, 'a+', 'b')",
    "CASE WHEN $b THEN $t ELSE 'x' END",
    "md5($t)",
    "$t || $t",
];
const OF_TIME: &[&str] = &[
    "date_trunc('month', $d)",
    "date_trunc('hour', $d)",
    "CAST($t AS DATE)",
    "CAST($t AS TIMESTAMP)",
    "CAST($i AS TIMESTAMP)",
    "$d + INTERVAL '1 month'",
    "$d - INTERVAL '90 days'",
    "to_timestamp($i)",
    "to_timestamp($t)",
    "CAST($d AS DATE)",
    "CAST($d AS TIMESTAMP)",
    "date_bin(INTERVAL '15 minutes', $d)",
];
const OF_TRUTH: &[&str] = &[
    "$i > 50",
    "$i = $i",
    "$i BETWEEN 10 AND 20",
    "$i IN (1, 2, 3)",
    "$t LIKE 'a%'",
    "$t LIKE $t",
    "$t ILIKE '%A'",
    "$t ~ '^a.*'",
    "$t = 'a'",
    "$d > DATE '2024-03-01'",
    "$i IS NULL",
    "NOT ($b)",
    "$b AND $b",
    "$b OR $b",
    "starts_with($t, 'a')",
    "$d > TIMESTAMP '2024-03-01T00:00:00'",
    "$i <> 7",
    "1 / $i > 0",
    "sqrt($i) < 5",
    "CAST($t AS INT) = 1",
];

/// All of them, with the kind that comes out.
pub(crate) static EVERY: std::sync::LazyLock<Vec<(&'static str, ColumnKind)>> = std::sync::LazyLock::new(|| {
    let of =
        |templates: &'static [&'static str], kind: ColumnKind| templates.iter().map(move |&template| (template, kind));
    let numbers = of(OF_NUMBERS, ColumnKind::Int).chain(of(OF_TEXT, ColumnKind::Text));
    numbers.chain(of(OF_TIME, ColumnKind::Timestamp)).chain(of(OF_TRUTH, ColumnKind::Bool)).collect()
});

/// Writes expressions over the columns of a data set.
pub(crate) struct Pen<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) dice: &'a mut Dice,
}

impl Pen<'_> {
    fn column(&mut self, kinds: &[ColumnKind], otherwise: &str) -> String {
        let fitting: Vec<&str> = self
            .ground
            .columns
            .iter()
            .filter(|column| kinds.contains(&column.kind))
            .map(|column| column.name.as_str())
            .collect();
        if fitting.is_empty() { otherwise.to_owned() } else { format!("\"{}\"", self.dice.of(&fitting)) }
    }

    pub(crate) fn filled(&mut self, template: &str, deep: usize) -> String {
        let mut text = template.to_owned();
        for (hole, kind) in
            [("$i", ColumnKind::Int), ("$t", ColumnKind::Text), ("$d", ColumnKind::Date), ("$b", ColumnKind::Bool)]
        {
            while text.contains(hole) {
                let inside = self.expression(kind, deep.saturating_sub(1));
                text = text.replacen(hole, &inside, 1);
            }
        }
        text
    }

    /// An expression of about this kind.
    pub(crate) fn expression(&mut self, kind: ColumnKind, deep: usize) -> String {
        let plain = deep == 0 || self.dice.one_in(3);
        match kind {
            ColumnKind::Text if plain => self.column(&[ColumnKind::Text], "'a'"),
            ColumnKind::Date | ColumnKind::Timestamp if plain => {
                self.column(&[ColumnKind::Date, ColumnKind::Timestamp], "DATE '2024-01-01'")
            }
            ColumnKind::Bool if plain => {
                let number = self.column(&[ColumnKind::Int, ColumnKind::Float, ColumnKind::Decimal], "1");
                format!("{number} > 50")
            }
            _ if plain => self.column(&[ColumnKind::Int, ColumnKind::Float, ColumnKind::Decimal], "1"),
            ColumnKind::Text => {
                let template = *self.dice.of(OF_TEXT);
                self.filled(template, deep)
            }
            ColumnKind::Date | ColumnKind::Timestamp => {
                let template = *self.dice.of(OF_TIME);
                self.filled(template, deep)
            }
            ColumnKind::Bool => {
                let template = *self.dice.of(OF_TRUTH);
                self.filled(template, deep)
            }
            _ => {
                let template = *self.dice.of(OF_NUMBERS);
                self.filled(template, deep)
            }
        }
    }

    fn aggregate(&mut self) -> String {
        let number = self.expression(ColumnKind::Int, 2);
        match self.dice.below(12) {
            0 => "COUNT(*)".to_owned(),
            1 => format!("COUNT({})", self.expression(ColumnKind::Text, 2)),
            2 => format!("COUNT({})", self.expression(ColumnKind::Date, 2)),
            3 => format!("COUNT(DISTINCT {})", self.expression(ColumnKind::Text, 1)),
            4 => format!("SUM(clamp({number}, 0, 10))"),
            5 => format!("AVG(clamp({number}, 0, 100))"),
            6 => format!("COUNT(*) FILTER (WHERE {})", self.expression(ColumnKind::Bool, 2)),
            7 => format!("MEDIAN(clamp({number}, 0, 100))"),
            8 => format!("SUM(CASE WHEN {} THEN 1 ELSE 0 END)", self.expression(ColumnKind::Bool, 2)),
            9 => format!("STDDEV(clamp({number}, 0, 10))"),
            10 => format!("MAX(clamp({number}, 0, 10))"),
            _ => format!("COUNT({number})"),
        }
    }

    /// A question in which something is said more than once: a key, a column, a partition, by its name, an alias, its place or as an expression. The engine has one
    /// column for some of them and several for others, and whatever is known of columns is known by their place.
    pub(crate) fn repeated(&mut self) -> String {
        let table = format!("\"{}\"", self.ground.dataset);
        let listed = self.ground.columns.iter().find(|column| !column.keys.is_empty());
        let key =
            listed.map_or_else(|| self.column(&[ColumnKind::Text], "'a'"), |column| format!("\"{}\"", column.name));
        let private = self.ground.moving.label.clone().map(|label| format!("\"{label}\""));
        let value = private.unwrap_or_else(|| self.column(&[ColumnKind::Int], "1"));
        let user = self.ground.moving.user.as_ref().map_or_else(|| key.clone(), |user| format!("\"{user}\""));
        let truth = self.expression(ColumnKind::Bool, 1);
        let filter = if self.dice.one_in(3) { format!(" WHERE {truth}") } else { String::new() };
        let over = *self.dice.of(&["MAX", "MIN", "SUM", "COUNT"]);
        let outer = *self.dice.of(&["COUNT(*)", "MAX(clamp(m, 0, 100))", "SUM(clamp(m, 0, 10))", "COUNT(DISTINCT m)"]);
        let aggregate = self.aggregate();
        let keys = self
            .dice
            .of(&[
                "$k, $k, $u, $k",
                "$u, $u",
                "$k, $u, $u, $k",
                "$u, $k, $v, $v",
                "$v, $u, $k, $v",
                "1, $u, 1",
                "$u, 1, $k, $u",
                "$e, $e, $u",
            ])
            .replace("$u", &user)
            .replace("$k", &key)
            .replace("$v", &value)
            .replace("$e", &format!("({truth})"));
        match self.dice.below(13) {
            0 => format!("SELECT {key}, {aggregate} FROM {table}{filter} GROUP BY {key}, {key}"),
            1 => format!("SELECT {key} AS k, {aggregate} FROM {table}{filter} GROUP BY k, {key}, k"),
            2 => format!("SELECT {key}, {key} AS k, {aggregate} FROM {table}{filter} GROUP BY 1, 2, 1"),
            3 => format!("SELECT {truth} AS k, {aggregate} FROM {table}{filter} GROUP BY {truth}, 1, {truth}"),
            4 => format!(
                "SELECT v, {outer} FROM (SELECT {user} AS v, {over}({value}) AS m FROM {table}{filter} GROUP BY {keys}) GROUP BY v, v ORDER BY v"
            ),
            // Where it is released by itself, its numbers say how many groups there are.
            5 if self.ground.moving.user.is_some() => format!(
                "SELECT m, COUNT(*) FROM (SELECT {user} AS v, {over}({value}) AS m FROM {table}{filter} GROUP BY {keys}) GROUP BY m"
            ),
            5 | 6 => format!(
                "SELECT {outer} FROM (SELECT {user}, {over}({value}) AS m FROM {table}{filter} GROUP BY {keys}){}",
                // Which rows a noisy number leaves is noise, and so is whether their interval is known.
                if self.ground.moving.user.is_some() { " WHERE m > 5" } else { "" }
            ),
            7 => format!(
                "SELECT k, {outer} FROM (SELECT DISTINCT {key} AS k, {user}, {value} AS m, {user} AS v, {value} AS w, {key} AS l FROM {table}{filter}) GROUP BY k, l, k"
            ),
            8 => format!("SELECT DISTINCT {key}, {key} AS k, {value} AS m, {value} FROM {table}{filter}"),
            9 => format!(
                "SELECT l, v, {outer} FROM (SELECT {user} AS v, {key} AS k, {value} AS m, {key} AS l, {value} AS w FROM {table}{filter}) GROUP BY l, k, v, l"
            ),
            10 => format!(
                "SELECT k, {outer} FROM (SELECT {user}, {key} AS k, {value} AS m, {key} AS l FROM {table} UNION ALL SELECT {user}, {key}, {value}, {key} FROM {table}{filter}) GROUP BY l, k, l"
            ),
            11 => format!(
                "SELECT k, {outer} FROM (SELECT {key} AS k, {over}({value}) OVER (PARTITION BY {user}, {key}, {user}, {key}) AS m, {over}({value}) OVER (PARTITION BY {user}, {user}) AS w FROM {table}{filter}) GROUP BY k, k"
            ),
            _ => format!(
                "SELECT k, {outer} FROM (SELECT {user} AS v, {key} AS k, {over}({value}) AS m FROM {table}{filter} GROUP BY {user}, {key}, {user}) GROUP BY k, k ORDER BY k, k"
            ),
        }
    }

    /// A question whose groups, where it has some, are listed.
    pub(crate) fn question(&mut self) -> String {
        if self.dice.one_in(4) {
            return self.repeated();
        }
        let table = format!("\"{}\"", self.ground.dataset);
        let aggregates: Vec<String> = (0..=self.dice.below(2)).map(|_| self.aggregate()).collect();
        let aggregates = aggregates.join(", ");
        let filter = if self.dice.one_in(2) {
            format!(" WHERE {}", self.expression(ColumnKind::Bool, 2))
        } else {
            String::new()
        };
        let listed =
            self.ground.columns.iter().find(|column| !column.keys.is_empty()).map(|column| column.name.clone());
        let user = self.ground.moving.user.clone();
        match (self.dice.below(8), listed, user) {
            (0 | 1, Some(key), _) => format!("SELECT \"{key}\", {aggregates} FROM {table}{filter} GROUP BY \"{key}\""),
            (2, _, Some(user)) => {
                let inner = self.expression(ColumnKind::Int, 2);
                let over = *self.dice.of(&["SUM", "AVG", "MAX", "MIN", "COUNT"]);
                format!(
                    "SELECT COUNT(*), SUM(clamp(m, 0, 10)) FROM (SELECT \"{user}\", {over}({inner}) AS m FROM {table}{filter} GROUP BY \"{user}\")"
                )
            }
            (3, _, Some(user)) => {
                let (value, by) =
                    (self.expression(ColumnKind::Int, 1), self.column(&[ColumnKind::Int, ColumnKind::Date], "1"));
                let over = *self.dice.of(&["SUM", "AVG", "lag", "first_value", "last_value", "MAX"]);
                let frame = *self.dice.of(&[
                    "",
                    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                    " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                ]);
                let frame = if over == "lag" { "" } else { frame };
                format!(
                    "SELECT COUNT(w), SUM(clamp(w, 0, 10)) FROM (SELECT {over}({value}) OVER (PARTITION BY \"{user}\" ORDER BY {by}{frame}) AS w FROM {table}{filter})"
                )
            }
            (4, _, _) if self.ground.columns.iter().any(|column| column.name == "place") => {
                format!("SELECT {aggregates} FROM {table} JOIN places ON {table}.place = places.place{filter}")
            }
            _ => format!("SELECT {aggregates} FROM {table}{filter}"),
        }
    }
}
