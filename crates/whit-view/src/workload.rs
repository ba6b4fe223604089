//! Questions that are asked together: one answer after the other, and one price for all.

use crate::page::Report;
use crate::picture::ChartKind;
use crate::plain::PlainText;
use crate::preview::{write_errors, write_price};
use crate::text::{self, Excerpt};
use std::io::{self, Write};
use whit_query::explain::{Fits, WorkloadPreview};
use whit_query::{Answer, Statement, WorkloadAnswer};

/// What an answer is called: by its name, or by its place.
fn title(place: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{}. {name}", place + 1),
        None => format!("{}.", place + 1),
    }
}

/// One answer without what it has in common with the others.
fn alone(answer: Answer) -> Answer {
    let statement = Statement {
        prices: Vec::new(),
        mechanisms: Vec::new(),
        partition: None,
        entry: None,
        stored: false,
        more_like_this: None,
        ..answer.statement
    };
    Answer { statement, ..answer }
}

/// What all answers have in common.
fn whole(workload: &WorkloadAnswer) -> Answer {
    Answer { columns: Vec::new(), rows: Vec::new(), statement: workload.statement.clone() }
}

/// Writes the tables with their notes, one below the other, and then what they cost together.
pub fn write(workload: &WorkloadAnswer, cut: Excerpt, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    for (place, named) in workload.answers.iter().enumerate() {
        let Some(answer) = workload.answer(place).map(alone) else { continue };
        let question = named.name.is_none().then(|| in_one_line(&named.question));
        writeln!(out, "{}\n", title(place, named.name.as_deref().or(question.as_deref())))?;
        text::write_rows(&answer, cut, out)?;
        writeln!(out)?;
        text::write_account(&answer, cut.columns, out)?;
        writeln!(out)?;
    }
    text::write_statement(&whole(workload), out)
}

/// A question as one line.
fn in_one_line(question: &str) -> String {
    question.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One page with all answers.
pub fn page(workload: &WorkloadAnswer, kind: Option<ChartKind>) -> String {
    let dataset = &workload.statement.dataset;
    let of = if dataset.is_empty() { String::new() } else { format!(" about `{dataset}`") };
    let mut report =
        Report::new(format!("{} answers{of}", workload.answers.len())).lead(&text::one_line(&workload.statement));
    for (place, named) in workload.answers.iter().enumerate() {
        let Some(answer) = workload.answer(place).map(alone) else { continue };
        report =
            report.section(&title(place, named.name.as_deref()), "").rows(&answer, kind).list(&text::account(&answer));
    }
    report.section("All of them together", "").statement(&whole(workload)).finish()
}

/// How they would be released together, how far off each value would be, what all would cost, and what asking would come to.
pub fn write_preview(preview: &WorkloadPreview, fits: &Fits, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let WorkloadPreview { whole, questions } = preview;
    for line in &whole.plan {
        writeln!(out, "{line}")?;
    }
    for (place, question) in questions.iter().enumerate() {
        let text = question.name.is_none().then(|| in_one_line(&question.question));
        writeln!(out, "\n{}", title(place, question.name.as_deref().or(text.as_deref())))?;
        if !question.errors.is_empty() {
            writeln!(out)?;
            write_errors(&question.errors, whole.confidence, out)?;
        }
        for note in &question.notes {
            writeln!(out, "note: {note}")?;
        }
    }
    writeln!(out)?;
    write_price(whole, fits, out)
}
