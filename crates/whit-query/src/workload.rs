//! Several questions that are asked together: as a file or standard input has them, with a semicolon between them.

use crate::error::QueryError;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Whitespace};

/// Questions that are planned together, paid for once, and answered one by one.
///
/// ```
/// use whit_query::workload::Workload;
/// let text = "
///     -- name: visits by shop
///     SELECT shop, COUNT(*) FROM visits GROUP BY shop;
///     /* and the longest */ SELECT AVG(seconds) FROM visits; -- of all shops
/// ";
/// let workload = Workload::read(text)?;
/// assert_eq!(workload.questions().len(), 2);
/// assert_eq!(workload.questions()[0].name.as_deref(), Some("visits by shop"));
/// assert_eq!(workload.questions()[1].line, 4);
/// # Ok::<(), whit_query::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    questions: Vec<WorkloadQuestion>,
}

/// One question of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadQuestion {
    /// What a comment line before it calls it: `-- name: visits by day`.
    pub name: Option<String>,
    /// How many shares of the price each of its sums gets, where those of others get one: `-- weight: 4`.
    pub weight: f64,
    /// The line on which it begins, from 1 on.
    pub line: u64,
    /// The column in which it begins, from 1 on.
    pub column: u64,
    /// The question.
    pub sql: String,
}

impl WorkloadQuestion {
    /// The question where it stands in its file, so that what is wrong in it is found there.
    pub(crate) fn in_place(&self) -> String {
        let (lines, columns) = (self.line.saturating_sub(1), self.column.saturating_sub(1));
        let (lines, columns) = (usize::try_from(lines).unwrap_or(0), usize::try_from(columns).unwrap_or(0));
        format!("{}{}{}", "\n".repeat(lines), " ".repeat(columns), self.sql)
    }
}

impl Workload {
    /// Reads questions that stand one after the other. Semicolons inside of quotes and comments divide nothing, and what is empty is no question.
    pub fn read(text: &str) -> Result<Self, QueryError> {
        let tokens = Tokenizer::new(&GenericDialect {}, text).with_unescape(false).tokenize_with_location();
        let tokens = tokens.map_err(|error| {
            let Location { line, column } = error.location;
            let sentence =
                format!("the questions cannot be told apart (line {line}, column {column}): {}", error.message);
            QueryError::asked(
                sentence,
                "close every quote and every comment, and put a semicolon between two questions",
            )
        })?;
        let places = TextPlaces::of(text);
        let (mut questions, mut said) = (Vec::new(), Remarks::default());
        // Where a question began and where its last word ended.
        let mut open: Option<(Location, Location)> = None;
        let mut close = |open: Option<(Location, Location)>, said: &mut Remarks| {
            let Some((from, to)) = open else { return };
            let sql = text[places.at(from)..places.at(to)].to_owned();
            let Remarks { name, weight } = std::mem::take(said);
            let (weight, Location { line, column }) = (weight.unwrap_or(1.0), from);
            questions.push(WorkloadQuestion { name, weight, line, column, sql });
        };
        for token in tokens {
            match token.token {
                Token::EOF => {}
                Token::SemiColon => close(open.take(), &mut said),
                Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) if open.is_none() => {
                    said.read(&comment, token.span.start.line)?;
                }
                Token::Whitespace(_) => {}
                _ => open = Some((open.map_or(token.span.start, |(from, _)| from), token.span.end)),
            }
        }
        close(open.take(), &mut said);
        Self::of(questions)
    }

    fn of(questions: Vec<WorkloadQuestion>) -> Result<Self, QueryError> {
        if questions.is_empty() {
            return Err(QueryError::asked("there is no question", "write one, such as SELECT COUNT(*) FROM NAME"));
        }
        for (i, question) in questions.iter().enumerate() {
            let same = |other: &WorkloadQuestion| other.name.is_some() && other.name == question.name;
            if let Some(before) = questions[..i].iter().position(same) {
                return Err(QueryError::asked(
                    format!(
                        "questions {} and {} are both called `{}`",
                        before + 1,
                        i + 1,
                        question.name.as_deref().unwrap_or_default()
                    ),
                    "give each a name of its own",
                ));
            }
        }
        Ok(Self { questions })
    }

    /// The questions, in the order in which they are answered.
    pub fn questions(&self) -> &[WorkloadQuestion] {
        &self.questions
    }

    /// All of them as one text.
    pub(crate) fn text(&self) -> String {
        self.questions.iter().map(|question| question.sql.as_str()).collect::<Vec<_>>().join(";\n")
    }

    /// One of the questions in a sentence: its number, its name and where it begins.
    pub(crate) fn called(&self, place: usize) -> String {
        let WorkloadQuestion { name, line, .. } = &self.questions[place];
        let name = name.as_ref().map_or_else(String::new, |name| format!("`{name}`, "));
        format!("question {} ({name}line {line})", place + 1)
    }

    /// What is wrong with one of the questions, which is why none is asked.
    pub(crate) fn about(&self, place: usize, mut error: QueryError) -> QueryError {
        error.sentence = format!("{}: {}", self.called(place), error.sentence);
        error
    }
}

/// What comments say of the question after them.
#[derive(Debug, Default)]
struct Remarks {
    name: Option<String>,
    weight: Option<f64>,
}

impl Remarks {
    /// Reads a comment, if it says anything of that kind.
    fn read(&mut self, comment: &str, line: u64) -> Result<(), QueryError> {
        let Some((word, rest)) = comment.split_once(':') else { return Ok(()) };
        let rest = rest.trim();
        match word.trim().to_ascii_lowercase().as_str() {
            "name" if rest.is_empty() => {
                let hint = "write -- name: visits by day, or leave the line out";
                return Err(QueryError::asked(format!("the name on line {line} is empty"), hint));
            }
            "name" => self.name = Some(rest.to_owned()),
            "weight" => {
                let weight = rest.parse().ok().filter(|weight| (0.01..=100.0).contains(weight));
                self.weight = Some(weight.ok_or_else(|| {
                    let sentence =
                        format!("the weight on line {line} is `{rest}`, and it must be a number from 0.01 to 100");
                    QueryError::asked(sentence, "write -- weight: 4, or leave the line out")
                })?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Where lines begin in a text.
struct TextPlaces<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> TextPlaces<'a> {
    fn of(text: &'a str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, lines }
    }

    /// The place of a line and a column in bytes; columns are letters, from 1 on.
    fn at(&self, Location { line, column }: Location) -> usize {
        let first = line.checked_sub(1).and_then(|line| self.lines.get(usize::try_from(line).ok()?)).copied();
        let first = first.unwrap_or(self.text.len());
        let letters = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        self.text[first..].char_indices().nth(letters).map_or(self.text.len(), |(at, _)| first + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Option<String>, u64, String)> {
        let workload = Workload::read(text).unwrap();
        workload.questions.into_iter().map(|question| (question.name, question.line, question.sql)).collect()
    }

    #[test]
    fn semicolons_divide_questions_and_no_quotes() {
        let text = "SELECT ';' AS \"a;b\" -- one; two\nFROM t /* ; /* ; */ ; */ WHERE x = 'é;''ü';;\n\n  SELECT 2 ; ";
        let read = read(text);
        assert_eq!(read[0].2, "SELECT ';' AS \"a;b\" -- one; two\nFROM t /* ; /* ; */ ; */ WHERE x = 'é;''ü'");
        assert_eq!(read[1], (None, 4, "SELECT 2".to_owned()));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn a_comment_line_names_the_question_after_it_and_no_other() {
        let text = "-- a dashboard\n-- Name: by day \nSELECT 1; -- of all\nSELECT 2 -- name: not this\n;\n--name:last\n\nSELECT 3";
        let names: Vec<_> = read(text).into_iter().map(|(name, line, _)| (name, line)).collect();
        assert_eq!(names, [(Some("by day".to_owned()), 3), (None, 4), (Some("last".to_owned()), 8)]);
    }

    #[test]
    fn a_comment_line_weighs_the_question_after_it() {
        let text = "-- weight: 4\n-- name: a\nSELECT 1;\nSELECT 2; -- Weight: 0.5\nSELECT 3";
        let weights: Vec<f64> = Workload::read(text).unwrap().questions.iter().map(|own| own.weight).collect();
        assert_eq!(weights, [4.0, 1.0, 0.5]);
        for wrong in ["-- weight: 0", "-- weight: -1", "-- weight: much", "-- weight: NaN", "-- weight: 1e9"] {
            let error = Workload::read(&format!("SELECT 1;\n{wrong}\nSELECT 2")).unwrap_err().to_string();
            assert!(error.starts_with("the weight on line 2 is `"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_divided_or_named_is_refused_with_its_line() {
        let wrong = |text: &str| Workload::read(text).unwrap_err().to_string();
        assert!(wrong("SELECT 1;\nSELECT 'a;\n").starts_with("the questions cannot be told apart (line 2, column 8)"));
        assert_eq!(wrong(" -- nothing\n ; "), "there is no question");
        assert_eq!(wrong("-- name:\nSELECT 1"), "the name on line 1 is empty");
        assert_eq!(wrong("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2"), "questions 1 and 2 are both called `a`");
    }
}
