//! `whit preview`: what a question would cost, and how wrong it would be.

use super::asked::QuestionOptions;
use super::query::Limits;
use super::workload::{self, AskedText, QuestionText};
use crate::error::Error;
use crate::hint::settings_as_options;
use crate::number::{self, Wrong};
use crate::output::write_json;
use std::io::Write;
use whit::query::explain::{self, Repeated, Within};
use whit::query::plan::Asking;
use whit::session::Foreseen;

/// See what a question would cost and how wrong it would be; nothing is charged.
///
/// Nothing private is read either: prices and errors follow from the declaration and the question.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit preview \"SELECT shop, COUNT(*) FROM visits GROUP BY shop\" --epsilon 0.5
  whit preview \"SELECT COUNT(*) FROM visits\" --within 200
  whit preview \"SELECT COUNT(*) FROM visits\" --within 5% --about 20000
  whit preview --file dashboard.sql --within 5% --times 7")]
pub(super) struct PreviewCommand {
    #[command(flatten)]
    text: QuestionText,
    /// Find the smallest ε with which every value is off by no more than this: a number, or a percentage of the value that a group of --about rows has. With --epsilon, up to
    /// that one.
    #[arg(long, value_name = "ERROR", value_parser = goal)]
    within: Option<Goal>,
    /// About so many rows in a group, on which the errors of averages, spreads and quantiles depend, and the values that a percentage is of; 1000
    /// without it. It is yours to say: looking it up would cost.
    #[arg(long, value_name = "ROWS", value_parser = rows)]
    about: Option<f64>,
    /// Say what it would cost to ask so many times, each time of data that has changed, as a dashboard does, and what that is of each budget.
    #[arg(long, value_name = "N", value_parser = number::count)]
    times: Option<u64>,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    asked: QuestionOptions,
}

/// How close an answer should be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Absolute(f64),
    Share(f64),
}

fn goal(text: &str) -> Result<Goal, Wrong> {
    let wrong = Wrong { range: "a number above 0, or a percentage", hint: "write 200, or 5%" };
    let text = text.trim();
    let parse = |number: &str| number.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite()).ok_or(wrong);
    match text.strip_suffix('%') {
        Some(percent) => Ok(Goal::Share(parse(percent)? / 100.0)),
        None => Ok(Goal::Absolute(parse(text)?)),
    }
}

fn rows(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong { range: "a number of rows, at least 1", hint: "write 20000" };
    text.trim().parse().ok().filter(|rows: &f64| *rows >= 1.0 && *rows <= 1e15).ok_or(wrong)
}

impl PreviewCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let text = self.text.read()?;
        let mut session = self.asked.session()?;
        let asking = self.limits.with(Asking { about: self.about, ..self.asked.asking() });
        let about = self.about.unwrap_or(explain::ABOUT);
        let within = self.within.map(|goal| match goal {
            Goal::Absolute(error) => Within::Absolute(error),
            Goal::Share(share) => Within::Relative { share, of: about },
        });
        let foreseen = match (&text, within) {
            (AskedText::One(sql), None) => session.preview(sql, &asking)?,
            (AskedText::One(sql), Some(within)) => session.within(sql, &asking, within)?,
            (AskedText::Several(workload), within) => {
                let foreseen = match within {
                    None => session.preview_workload(workload, &asking)?,
                    Some(within) => session.workload_within(workload, &asking, within)?,
                };
                return workload::write_preview(foreseen, self.times, self.json, out);
            }
        };
        let Foreseen { preview, fits } = in_options(foreseen);
        let repeated = self.times.map(|times| Repeated::of(times, &preview.prices, &fits));
        if self.json {
            return write_json(&View { preview: &preview, fits: &fits, repeated }, out);
        }
        write(&preview, &fits, out)?;
        Ok(repeated.iter().try_for_each(|repeated| whit_view::preview::write_repeated(repeated, out))?)
    }
}

/// A preview with the command's own options where it speaks of settings.
pub(super) fn in_options(mut foreseen: Foreseen) -> Foreseen {
    settings_as_options(foreseen.preview.notes.iter_mut(), &mut foreseen.fits);
    foreseen
}

/// A preview for people.
pub(super) fn write(preview: &explain::Preview, fits: &explain::Fits, out: &mut dyn Write) -> Result<(), Error> {
    Ok(whit_view::preview::write(preview, fits, out)?)
}

/// A preview for programs.
#[derive(serde::Serialize)]
struct View<'a> {
    #[serde(flatten)]
    preview: &'a explain::Preview,
    #[serde(flatten)]
    fits: &'a explain::Fits,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<Repeated>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_a_number_or_a_percentage() {
        assert_eq!(goal("200"), Ok(Goal::Absolute(200.0)));
        assert_eq!(goal(" 5 %"), Ok(Goal::Share(0.05)));
        assert!(goal("0").is_err() && goal("-3%").is_err() && goal("few").is_err());
    }
}
