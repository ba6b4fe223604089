//! Reports: one HTML page with prose, tables and pictures, that needs nothing from elsewhere.
//!
//! The page asks for no other file and says so to the browser. Without its script it reads the same; with it, tables
//! sort and marks tell what they stand for as one points at them.

use crate::number::grouped;
use crate::picture::{self, ChartKind};
use crate::plot::escape;
use crate::table::{Side, Table};
use crate::text::{self, Excerpt};
use std::fmt::Write as _;
use whit_query::Answer;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of the script: the browser runs this script and no other, whatever a key may smuggle in.
const SCRIPT_HASH: &str = "sha256-w8yii9fl/o4omjlI1Pe07ZWCZVBv3xOBVwr+LCDbev8=";
/// The most rows of an answer on a page.
const ROWS: usize = 1000;

/// A page in the making. Texts may hold `code` between backticks, and blank lines between paragraphs.
pub struct Report {
    title: String,
    body: String,
    open: bool,
}

impl Report {
    /// A page with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), body: String::new(), open: false }
    }

    /// Prose in larger letters, under the title.
    #[must_use]
    pub fn lead(mut self, text: &str) -> Self {
        let _ = writeln!(self.body, "<p class=\"lead\">{}</p>", inline(text));
        self
    }

    /// Starts a section.
    #[must_use]
    pub fn section(mut self, heading: &str, prose: &str) -> Self {
        self.close();
        self.open = true;
        let _ = writeln!(self.body, "<section>\n<h2>{}</h2>", inline(heading));
        self.prose(prose)
    }

    /// Paragraphs.
    #[must_use]
    pub fn prose(mut self, text: &str) -> Self {
        for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            let _ = writeln!(self.body, "<p>{}</p>", inline(paragraph));
        }
        self
    }

    /// Lines as they stand: a question, a command.
    #[must_use]
    pub fn code(mut self, text: &str) -> Self {
        let _ = writeln!(self.body, "<pre>{}</pre>", escape(text.trim_end()));
        self
    }

    /// A table; its headings sort it.
    #[must_use]
    pub fn table(mut self, table: &Table) -> Self {
        let class = |side: Side| if side == Side::Right { " class=\"num\"" } else { "" };
        self.body.push_str("<div class=\"table\"><table>\n<thead><tr>");
        for (name, side) in table.columns() {
            let _ = write!(self.body, "<th scope=\"col\"{}>{}</th>", class(*side), escape(name));
        }
        self.body.push_str("</tr></thead>\n<tbody>\n");
        let spread = |cell: &String| cell[split(cell)..].trim_end().chars().count();
        let widest: Vec<usize> = (0..table.columns().len())
            .map(|i| table.rows().iter().filter_map(|row| row.get(i)).map(spread).max().unwrap_or(0))
            .collect();
        for row in table.rows() {
            self.body.push_str("<tr>");
            for (i, (cell, (_, side))) in row.iter().zip(table.columns()).enumerate() {
                let cell = if *side == Side::Right { number(cell, widest[i]) } else { escape(cell) };
                let _ = write!(self.body, "<td{}>{cell}</td>", class(*side));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody>\n</table></div>\n");
        self
    }

    /// A picture. It must be one of ours: it is not escaped.
    #[must_use]
    pub fn picture(self, svg: impl AsRef<str>) -> Self {
        self.figure(svg, "")
    }

    /// A picture with a line under it.
    #[must_use]
    pub fn figure(mut self, svg: impl AsRef<str>, caption: &str) -> Self {
        let caption =
            if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", inline(caption)) };
        let _ = writeln!(self.body, "<figure>\n{}{caption}</figure>", svg.as_ref());
        self
    }

    /// A remark, set apart.
    #[must_use]
    pub fn note(mut self, text: &str) -> Self {
        let _ = writeln!(self.body, "<p class=\"note\">{}</p>", inline(text));
        self
    }

    /// Things under their labels; a label without things is left out.
    #[must_use]
    pub fn list(mut self, things: &[(&str, Vec<String>)]) -> Self {
        self.body.push_str("<dl>\n");
        for (label, lines) in things.iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = write!(self.body, "<dt>{}</dt>", escape(label));
            for line in lines {
                let _ = write!(self.body, "<dd>{}</dd>", inline(line));
            }
            self.body.push('\n');
        }
        self.body.push_str("</dl>\n");
        self
    }

    /// A whole answer: its picture, its rows and its statement.
    #[must_use]
    pub fn answer(self, answer: &Answer) -> Self {
        self.answer_as(answer, None)
    }

    /// The same with pictures of this kind.
    fn answer_as(self, answer: &Answer, kind: Option<ChartKind>) -> Self {
        self.rows(answer, kind).statement(answer)
    }

    /// What it costs, and all else that it says of itself.
    pub(crate) fn statement(self, answer: &Answer) -> Self {
        let statement = &answer.statement;
        let report = if statement.prices.is_empty() {
            self.prose("Nothing private was read: this answer is exact and free.")
        } else {
            self.prose("What it costs, rung by rung:").table(&text::prices(statement))
        };
        report.list(&text::account(answer))
    }

    /// The question, its picture and its rows.
    pub(crate) fn rows(self, answer: &Answer, kind: Option<ChartKind>) -> Self {
        let mut report = self.code(&answer.statement.question);
        for panel in picture::panels(answer, kind) {
            report = report.picture(panel);
        }
        if !answer.columns.is_empty() {
            report = report.table(&text::table(answer, Excerpt { rows: ROWS, ..Excerpt::ALL }));
        }
        let left = answer.rows.len().saturating_sub(ROWS);
        if left > 0 {
            report = report.note(&format!("{} more rows are not shown here.", grouped(&left.to_string())));
        }
        if answer.rows.is_empty() {
            report = report.note("The answer has no rows.");
        }
        report
    }

    fn close(&mut self) {
        if self.open {
            self.body.push_str("</section>\n");
        }
    }

    /// The page.
    pub fn finish(mut self) -> String {
        self.close();
        let title = escape(&self.title.replace('`', ""));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}\
             <script>{SCRIPT}</script>\n</body>\n</html>\n",
            inline(&self.title),
            self.body
        )
    }
}

/// The page of one answer.
pub fn of(answer: &Answer, kind: Option<ChartKind>) -> String {
    let dataset = &answer.statement.dataset;
    let title = if dataset.is_empty() { "An answer".to_owned() } else { format!("An answer about `{dataset}`") };
    Report::new(title).lead(&text::one_line(&answer.statement)).answer_as(answer, kind).finish()
}

/// Escaped text in which what stands between two backticks is code.
fn inline(text: &str) -> String {
    let safe = escape(text);
    let parts: Vec<&str> = safe.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return safe; // a lonely backtick is a backtick
    }
    let mark = |(i, part): (usize, &&str)| if i % 2 == 1 { format!("<code>{part}</code>") } else { (*part).to_owned() };
    parts.iter().enumerate().map(mark).collect()
}

/// Where a number ends and its interval begins.
fn split(cell: &str) -> usize {
    cell.find(['±', '[']).unwrap_or(cell.len())
}

/// A number, and its interval in a box of the same width in every row, so that both line up.
fn number(cell: &str, widest: usize) -> String {
    let (value, spread) = cell.split_at(split(cell));
    let value = figures(value.trim_start().strip_suffix(' ').unwrap_or(value.trim_start()));
    if widest == 0 {
        return escape(&value);
    }
    format!("{} <span style=\"min-width:{widest}ch\">{}</span>", escape(&value), escape(&figures(spread.trim_end())))
}

/// Padding as blanks that are as wide as digits: the first of several blanks separates, others pad.
fn figures(text: &str) -> String {
    let mut padded = String::new();
    for c in text.chars() {
        let pads = c == ' ' && padded.ends_with([' ', '\u{2007}']);
        padded.push(if pads { '\u{2007}' } else { c });
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answer, cell, key, priced};
    use whit_query::{Cell, Role, Value};

    fn evil() -> Answer {
        let name = "<script>alert('x')</script>";
        let rows = vec![vec![key(name), cell(Value::Int(5), 1.0, 9.0)], vec![key("`a` & \"b\""), key(name)]];
        let mut answer = priced(answer(&[(name, Role::Key), ("n", Role::Noisy)], rows));
        answer.statement.question = format!("SELECT '{name}'");
        answer.statement.unit = name.into();
        answer.statement.notes = vec![name.into()];
        answer.statement.mechanisms = vec![format!("`{name}`")];
        answer.statement.prices[0].unit = name.into();
        answer.statement.dataset = name.into();
        answer
    }

    #[test]
    fn keys_names_and_notes_are_text_and_never_markup() {
        let page = of(&evil(), None);
        assert_eq!(page.matches("<script").count(), 1, "our own");
        assert!(page.matches("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;").count() >= 8);
    }

    #[test]
    fn nothing_is_asked_for_from_elsewhere() {
        let page = of(&priced(answer(&[("n", Role::Noisy)], vec![vec![cell(Value::Int(5), 1.0, 9.0)]])), None);
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http:", "https:", "src=", "url(", "@import", "<link", "<img", "<iframe"] {
            assert!(!outside.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn every_element_is_closed() {
        let page = Report::new("A `title`")
            .lead("lead")
            .section("One", "a\n\nb `c`")
            .answer(&evil())
            .section("Two", "")
            .code("whit query")
            .note("n")
            .finish();
        let body = page.split("<body>").nth(1).unwrap().split("<script>").next().unwrap();
        let mut open = Vec::new();
        for tag in body.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if !tag.ends_with('/') => open.push(tag.split_whitespace().next().unwrap()),
                None => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(body.matches("<section>").count(), 2);
        assert!(body.contains("<p>b <code>c</code></p>"));
    }

    #[test]
    fn a_long_answer_says_what_it_leaves_out() {
        let rows = (0..ROWS + 2).map(|i| vec![Cell { value: Value::Int(i as i64), low: None, high: None }]);
        let page = of(&answer(&[("n", Role::Key)], rows.collect()), None);
        assert!(page.contains("2 more rows are not shown here.") && page.matches("<tr>").count() == ROWS + 1);
    }

    #[test]
    fn padding_is_as_wide_as_digits() {
        assert_eq!(number("  987 ±  41", 5), "987 <span style=\"min-width:5ch\">± \u{2007}41</span>");
        assert_eq!(number("    9    [8 … 30]", 8), "9 \u{2007}\u{2007} <span style=\"min-width:8ch\">[8 … 30]</span>");
        assert_eq!(number("  12", 0), "12");
    }

    /// The browser compares this hash; a script that was changed without it would not run.
    #[test]
    fn the_hash_is_that_of_the_script() {
        assert_eq!(format!("sha256-{}", base64(&sha256(SCRIPT.as_bytes()))), SCRIPT_HASH);
        assert_eq!(base64(&sha256(b"abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    fn base64(bytes: &[u8]) -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let encode = |chunk: &[u8]| {
            let bits = (0..3).fold(0_u32, |bits, i| bits << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
            let letter = |i: usize| {
                if i > chunk.len() { '=' } else { char::from(letters[(bits >> (18 - 6 * i)) as usize & 63]) }
            };
            (0..4).map(letter).collect::<String>()
        };
        bytes.chunks(3).map(encode).collect()
    }

    /// FIPS 180-4. The constants are the first bits of the roots of the primes, as there.
    fn sha256(message: &[u8]) -> [u8; 32] {
        let primes: Vec<u32> = (2..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
        let first_bits = |root: f64| (root.fract() * 2_f64.powi(32)) as u32;
        let constants: Vec<u32> = primes.iter().map(|&p| first_bits(f64::from(p).cbrt())).collect();
        let mut state: Vec<u32> = primes.iter().take(8).map(|&p| first_bits(f64::from(p).sqrt())).collect();
        let mut padded = message.to_vec();
        padded.push(0x80);
        padded.resize(padded.len().next_multiple_of(64) + if padded.len() % 64 > 56 { 64 } else { 0 } - 8, 0);
        padded.extend((8 * message.len() as u64).to_be_bytes());
        for block in padded.chunks(64) {
            let mut w: Vec<u32> =
                block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect();
            for i in 16..64 {
                let (a, b) = (w[i - 15], w[i - 2]);
                let (s0, s1) = (
                    a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3),
                    b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10),
                );
                w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
            }
            let mut v = state.clone();
            for i in 0..64 {
                let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
                let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
                let t1 = [s1, choice, constants[i], w[i]].iter().fold(v[7], |sum, &term| sum.wrapping_add(term));
                let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
                let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
                v.rotate_right(1);
                v[4] = v[4].wrapping_add(t1);
                v[0] = t1.wrapping_add(s0).wrapping_add(majority);
            }
            state = state.iter().zip(&v).map(|(a, b)| a.wrapping_add(*b)).collect();
        }
        state.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>().try_into().expect("eight words")
    }
}
