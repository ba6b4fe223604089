//! The commented draft of a `whit.toml`, from names and types.

use super::Inspection;
use super::inspect::{is_moment, is_text, names_somebody};
use super::line::{key, quoted};
use super::schema::declared_as;
use crate::translate::{as_name, in_words};
use std::fmt::Write as _;
use whit_core::declare::{ColumnType, Format};
use whit_core::digits::number_of;

impl Inspection {
    /// A `whit.toml` for these files under a name, with `source` as the path stands relative to it.
    ///
    /// Where a user column was recognised it can be read at once. Where none was, one line has to be uncommented first.
    pub fn draft(&self, name: &str, source: &str) -> String {
        let mut text = String::new();
        // Writing to a text never fails.
        let _ = self.write(&mut text, name, source);
        text
    }

    /// How the files seem to be written, where that is not what their endings say; a sentence each.
    pub fn noticed(&self) -> Vec<String> {
        let layout = &self.layout;
        let delimiter = layout.delimiter.map(|sign| format!("{sign:?} stands between values: delimiter was drafted"));
        let comment =
            layout.comment.map(|sign| format!("lines that begin with {sign:?} are no rows: comment was drafted"));
        let row = "the first line seems to be a row: header = false was drafted; call the columns what they are";
        let encoding = layout.encoding.map(|encoding| format!("letters seem to be {encoding}: encoding was drafted"));
        let folders = self.partitioned_by.join(", ");
        let folders = format!("folders are named after {folders}: partitioned_by was drafted");
        let folders = (!self.partitioned_by.is_empty()).then_some(folders);
        let names = layout.names.as_ref().map(|_| row.to_owned());
        let table = "it is a Delta table: its newest version is read, unless `version` names another";
        let table = (self.format == Format::Delta).then(|| table.to_owned());
        let commas = self.commas.iter().map(|column| {
            format!(
                "{column} is drafted as text, since its numbers have a comma (2,50): write them with a point, or ask with CAST(replace({}, ',', '.') AS DOUBLE)",
                as_name(column)
            )
        });
        [table, delimiter, comment, names, encoding, folders].into_iter().flatten().chain(commas).collect()
    }

    fn write(&self, out: &mut String, name: &str, source: &str) -> std::fmt::Result {
        writeln!(out, "# What one whit of this data is, what is known of it without looking, and what may be spent.")?;
        if self.looked {
            writeln!(
                out,
                "# Drafted by `whit init`. It LOOKED at values to draft the types below, since {} files have none: confirm each.",
                self.format
            )?;
            writeln!(
                out,
                "# From here on nothing looks again: a value that is not of its column's type is NULL. Then: `whit check`, first as anybody, then as the owner.\n"
            )?;
        } else {
            writeln!(
                out,
                "# Drafted by `whit init` from names and types; no value of any row was used. Then: `whit check`, first as anybody, then as the owner.\n"
            )?;
        }
        writeln!(out, "[dataset.{name}]")?;
        if self.format == Format::Delta {
            writeln!(out, "source = {}  # a Delta table: its log says which files and columns it has", quoted(source))?;
            writeln!(out, "# version = 0  # which version is read; the newest where this is left out")?;
        } else {
            let files = number_of(self.files, "file");
            let kinds = "a file, a glob, a folder, or a list of these";
            writeln!(out, "source = {}  # {}, {files}; {kinds}", quoted(source), self.format)?;
        }
        if self.newlines {
            writeln!(
                out,
                "newlines_in_values = true  # values in quotes hold line breaks; without this every line is a row"
            )?;
        }
        self.write_layout(out)?;
        writeln!(
            out,
            "# public = true  # only if the whole table is public: then it joins freely, and has no unit and no budget\n"
        )?;
        self.write_unit(out)?;
        self.write_columns(out)?;
        out.write_str(BUDGET)
    }

    /// How the files are written, where that is not what their endings say.
    fn write_layout(&self, out: &mut String) -> std::fmt::Result {
        let sign = |sign: char| quoted(&sign.to_string());
        if let Some(delimiter) = self.layout.delimiter {
            writeln!(out, "delimiter = {}  # what stands between values", sign(delimiter))?;
        }
        if let Some(comment) = self.layout.comment {
            writeln!(out, "comment = {}  # lines that begin so are no rows", sign(comment))?;
        }
        if self.layout.names.is_some() {
            writeln!(
                out,
                "header = false  # the first line seems to be a row: columns go by the order below, so call them what they are"
            )?;
        }
        if let Some(encoding) = self.layout.encoding {
            writeln!(out, "encoding = \"{encoding}\"  # letters are not written as UTF-8")?;
        }
        if !self.partitioned_by.is_empty() {
            let names: Vec<String> = self.partitioned_by.iter().map(|name| quoted(name)).collect();
            writeln!(
                out,
                "partitioned_by = [{}]  # folders are named after these; their names are as private as rows",
                names.join(", ")
            )?;
        }
        Ok(())
    }

    fn write_unit(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "# Whose is a row? All rows with one value here belong to one user.")?;
        let candidates: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .filter(|field| names_somebody(field.data_type()))
            .map(|field| field.name().as_str())
            .collect();
        if let Some(user) = &self.user {
            let said = if self.user_said { "as was said" } else { "recognised by its name: is it right?" };
            writeln!(out, "unit.user = {}  # {said}\n", quoted(user))?;
        } else {
            let first = candidates.first().copied().unwrap_or("user_id");
            let could_be = one_line(&candidates.join(", "));
            writeln!(out, "# TODO: uncomment, and name the column. Could be: {could_be}")?;
            writeln!(
                out,
                "# Where each row is somebody else's, set unit.protect = \"event\" and rename budget.user to budget.event."
            )?;
            writeln!(out, "# unit.user = {}\n", quoted(first))?;
        }
        writeln!(
            out,
            "# An element is a part of what one user did: all of one day, all on one web site. Protecting it in place of the"
        )?;
        writeln!(out, "# whole user costs far less. Uncomment one, and set unit.protect = \"element\".")?;
        if let Some(url) = &self.url {
            writeln!(out, "# unit.element = {}", quoted(&format!("registrable_domain({})", sql_name(url))))?;
        }
        if let Some(time) = &self.time {
            let kind = self.schema.field_with_name(time).map(|field| field.data_type().clone());
            let moment = if kind.is_ok_and(|kind| is_moment(&kind)) {
                sql_name(time)
            } else {
                format!("CAST({} AS TIMESTAMP)", sql_name(time))
            };
            writeln!(out, "# unit.element = {}", quoted(&format!("date_trunc('day', {moment})")))?;
        }
        if self.url.is_none() && self.time.is_none() {
            let other = self
                .schema
                .fields()
                .iter()
                .find(|field| is_text(field.data_type()) && Some(field.name()) != self.user.as_ref());
            let other = other.map_or_else(|| "a_column".to_owned(), |field| sql_name(field.name()));
            writeln!(out, "# unit.element = {}  # a column, or SQL over one row", quoted(&other))?;
        }
        writeln!(out, "unit.protect = \"user\"  # event | element | feature | label | user\n")?;
        writeln!(out, "# Columns that everybody may know, row by row, whoever is replaced:")?;
        writeln!(out, "# unit.public = []\n")?;
        writeln!(
            out,
            "# Limits on what one user adds to an answer. What is beyond them is left out; fewer means less noise."
        )?;
        writeln!(
            out,
            "# With an element also elements_per_user and rows_per_element, which tell what a question costs a whole user."
        )?;
        let caps = [("rows_per_user", self.rows_per_user), ("groups", self.groups)];
        let caps = caps.iter().filter_map(|(name, cap)| cap.map(|cap| format!("{name} = {cap}")));
        match caps.collect::<Vec<_>>() {
            caps if caps.is_empty() => writeln!(out, "# unit.caps = {{ rows_per_user = 100, groups = 3 }}\n"),
            caps => writeln!(out, "unit.caps = {{ {} }}\n", caps.join(", ")),
        }
    }

    fn write_columns(&self, out: &mut String) -> std::fmt::Result {
        // In folders that are named after values the declaration alone says which columns there are.
        if self.looked || !self.partitioned_by.is_empty() {
            writeln!(out, "# What each column is: {}.", ColumnType::KNOWN)?;
            writeln!(out, "# One without a type cannot be asked for. Codes that only look like numbers are text.")?;
            for field in self.schema.fields() {
                let kind = declared_as(field.data_type()).unwrap_or(ColumnType::Text);
                writeln!(out, "columns.{}.type = {}", key(field.name()), quoted(&kind.to_string()))?;
            }
            writeln!(out)?;
        }
        if !self.numbers.is_empty() {
            writeln!(
                out,
                "# SUM, AVG and the like need a range into which values are clamped. It is not drafted from the data, because the largest"
            )?;
            writeln!(
                out,
                "# value belongs to somebody. Write one that you can defend without looking, such as bounds = [0, 600], or"
            )?;
            writeln!(out, "# leave \"auto\" to have it found privately, from a part of each question's ε.")?;
            for name in &self.numbers {
                let kind =
                    self.schema.field_with_name(name).map(|field| in_words(field.data_type())).unwrap_or_default();
                writeln!(out, "# columns.{}.bounds = \"auto\"  # {kind}", key(name))?;
            }
            writeln!(out)?;
        }
        let texts: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .filter(|field| {
                is_text(field.data_type())
                    && ![&self.user, &self.url, &self.time].contains(&&Some(field.name().clone()))
            })
            .map(|field| field.name().as_str())
            .collect();
        if let Some(first) = texts.first() {
            writeln!(
                out,
                "# Keys that are known without looking all appear in an answer, with zeros, and cost nothing. Others are chosen privately."
            )?;
            writeln!(out, "# columns.{}.keys = [\"one\", \"another\"]\n", key(first))?;
        }
        Ok(())
    }
}

/// What all questions share, whatever the data is.
const BUDGET: &str = "\
# What all answers together may reveal, per protected unit; the rung is named as in unit.protect. ε = 1 is strong, 10 is weak.
# δ should be well below one over the number of users. When the budget is spent, questions are refused.
budget.user = { epsilon = 3.0, delta = 1e-6 }
# budget.element = { epsilon = 3.0, delta = 1e-6 }  # with unit.protect = \"element\"; then budget.user needs elements_per_user
# What one question gets unless it says otherwise:
# query = { epsilon = 0.1, delta = 1e-8 }
";

/// A column in SQL, in quotes where it needs them.
fn sql_name(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if plain && starts { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Names in a comment must not end it.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::inspect::tests::seen;
    use datafusion::arrow::datatypes::DataType::{Date32, Float64, Int64, Utf8};
    use whit_core::declare::{Bounds, Declaration};

    /// The draft with the comment sign taken from every line that has `wanted` after it.
    fn uncommented(draft: &str, wanted: &str) -> String {
        assert!(draft.contains(&format!("# {wanted}")), "no `# {wanted}` in\n{draft}");
        draft
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with(wanted) => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect()
    }

    #[test]
    fn a_draft_with_a_user_can_be_read_at_once_and_after_each_line_that_it_offers() {
        let visits =
            seen(&[("user_id", Int64), ("url", Utf8), ("at", Date32), ("seconds", Float64), ("country", Utf8)]);
        let draft = visits.draft("visits", "visits/*.parquet");
        let read =
            |text: &str| Declaration::parse(text).unwrap_or_else(|error| panic!("{error} | {}\n{text}", error.hint()));
        let declaration = read(&draft);
        assert_eq!(declaration.datasets["visits"].source, ["visits/*.parquet"]);
        assert!(declaration.datasets["visits"].columns.is_empty(), "no bounds from the data");
        for wanted in [
            "unit.element = \"registrable",
            "unit.element = \"date_trunc",
            "unit.public",
            "unit.caps",
            "query",
            "columns.country",
        ] {
            read(&uncommented(&draft, wanted));
        }
        let bounded = read(&uncommented(&draft, "columns.seconds"));
        assert_eq!(bounded.datasets["visits"].bounds("seconds"), Some(Bounds::Auto));
        let element = uncommented(&uncommented(&draft, "unit.element = \"date"), "budget.element");
        let element =
            element.replace("protect = \"user\"", "protect = \"element\"").replace("\nbudget.user", "\n# budget.user");
        assert!(read(&element).datasets["visits"].unit.as_ref().unwrap().element.is_some());
    }

    #[test]
    fn a_draft_without_a_user_says_what_to_fill_in() {
        let draft = seen(&[("shop_id", Int64), ("item_id", Int64)]).draft("sales", "sales.csv");
        let error = Declaration::parse(&draft).unwrap_err();
        assert!(error.to_string().contains("`dataset.sales.unit.user` is missing"), "{error}");
        assert!(draft.contains("# TODO: uncomment, and name the column. Could be: shop_id, item_id"), "{draft}");
        assert!(Declaration::parse(&uncommented(&draft, "unit.user")).is_ok());
        assert!(Declaration::parse(&uncommented(&seen(&[("x", Float64)]).draft("t", "t.csv"), "unit.user")).is_ok());
    }

    #[test]
    fn odd_names_stay_names() {
        let odd = seen(&[
            ("User \"ID\"\n", Utf8),
            ("user_id", Int64),
            ("Page URL", Utf8),
            ("a.b = [", Float64),
            ("URL", Utf8),
        ]);
        let draft = odd.draft("t", "C:\\new \"data\"\u{7f}.csv");
        let declaration = Declaration::parse(&draft).unwrap_or_else(|error| panic!("{error}\n{draft}"));
        assert_eq!(declaration.datasets["t"].source, ["C:\\new \"data\"\u{7f}.csv"]);
        let bounded = Declaration::parse(&uncommented(&draft, "columns.\"a.b")).unwrap();
        assert_eq!(bounded.datasets["t"].bounds("a.b = ["), Some(Bounds::Auto));
        let element = Declaration::parse(&uncommented(&draft, "unit.element")).unwrap();
        let element = element.datasets["t"].unit.as_ref().unwrap().element.as_ref().unwrap().to_string();
        assert_eq!(element, "registrable_domain(\"URL\")");
    }
}
