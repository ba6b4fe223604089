//! What is asked: one question, or several in a file or on standard input, which are planned and paid for together.

use crate::error::Error;
use crate::hint::settings_as_options;
use crate::output::{OutputOptions, write_json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use whit::query::explain::{Fits, Repeated, WorkloadPreview};
use whit::query::{Workload, WorkloadAnswer};
use whit::session::WorkloadForeseen;

/// One question, or a file of them.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct QuestionText {
    /// The question; `-` reads it from standard input, also several with semicolons between them.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// A file with questions, which ends in .sql, with semicolons between them. They are asked together: one price, one entry in the ledger, and one noise for what they share. A line
    /// `-- name: visits by day` before a question names it, and `-- weight: 4` gives it more of the price.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What was read.
pub(super) enum AskedText {
    /// One question.
    One(String),
    /// Several.
    Several(Workload),
}

impl QuestionText {
    /// The question itself, or what stands in the file or on standard input.
    pub(super) fn read(&self) -> Result<AskedText, Error> {
        let (text, workload) = match (&self.file, self.sql.as_deref().unwrap_or_default()) {
            (Some(file), _) => {
                let text = questions_in(file)?;
                let workload = Workload::read(&text)?;
                (text, workload)
            }
            (None, "-") => {
                let mut text = String::new();
                let read = std::io::stdin().read_to_string(&mut text);
                read.map_err(|error| {
                    Error::failed(format!("the question could not be read from standard input: {error}"))
                })?;
                // What cannot be divided is one question, of which planning says what is wrong.
                let Ok(workload) = Workload::read(&text) else { return Ok(AskedText::One(text)) };
                (text, workload)
            }
            (None, sql) => return Ok(AskedText::One(sql.to_owned())),
        };
        crate::hint::typed([text.as_str()]);
        Ok(match workload.questions() {
            [one] => AskedText::One(one.sql.clone()),
            _ => AskedText::Several(workload),
        })
    }
}

/// The text of a file of questions. No other is looked into: what is said of its text must not follow from rows, whichever file somebody names.
fn questions_in(file: &Path) -> Result<String, Error> {
    let name = file.display();
    if file.extension().is_none_or(|kind| !kind.eq_ignore_ascii_case("sql")) {
        let sentence = format!("`{name}` is no file of questions: the name of one ends in .sql");
        return Err(Error::asked(sentence, "call it so, or hand its text to standard input with `-`"));
    }
    let unread = |error| Error::asked(format!("`{name}` cannot be read: {error}"), "name a file of questions");
    std::fs::read_to_string(file).map_err(unread)
}

/// Refuses outputs that have room for one answer, before anything is charged.
pub(super) fn check(workload: &Workload, output: &OutputOptions) -> Result<(), Error> {
    let pictures = output.plot.iter().any(|drawing| !drawing.is_page());
    let one = [("--csv", output.csv), ("--parquet", output.parquet.is_some()), ("a --plot other than .html", pictures)];
    match one.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((option, _)) => Err(Error::asked(
            format!("{option} has room for one answer, and {} questions are asked", workload.questions().len()),
            "--json prints all of them, --plot page.html shows them on one page, and a question asked by itself can be written in any form",
        )),
    }
}

/// Writes all answers the way the options ask for, and then the page.
pub(super) fn write(
    answer: &WorkloadAnswer,
    output: &OutputOptions,
    out: &mut dyn Write,
    talk: &mut dyn Write,
) -> Result<(), Error> {
    if output.json {
        write_json(answer, out)?;
    } else {
        whit_view::workload::write(answer, output.excerpt(), out)?;
    }
    out.flush()?;
    output
        .plot
        .iter()
        .try_for_each(|drawing| drawing.write("", || whit_view::workload::page(answer, output.kind), talk))
}

/// A preview for programs.
#[derive(serde::Serialize)]
struct WorkloadView<'a> {
    #[serde(flatten)]
    preview: &'a WorkloadPreview,
    #[serde(flatten)]
    fits: &'a Fits,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<Repeated>,
}

/// Writes what questions would cost together, once and so many times.
pub(super) fn write_preview(
    mut foreseen: WorkloadForeseen,
    times: Option<u64>,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let WorkloadForeseen { preview, fits } = &mut foreseen;
    let own = preview.questions.iter_mut().flat_map(|question| &mut question.notes);
    settings_as_options(preview.whole.notes.iter_mut().chain(own), fits);
    let repeated = times.map(|times| Repeated::of(times, &preview.whole.prices, fits));
    if json {
        return write_json(&WorkloadView { preview, fits, repeated }, out);
    }
    whit_view::workload::write_preview(preview, fits, out)?;
    Ok(repeated.iter().try_for_each(|repeated| whit_view::preview::write_repeated(repeated, out))?)
}
