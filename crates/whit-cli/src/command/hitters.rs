//! `whit hitters`: how many users have each item, and in which order.

use super::asked::QuestionOptions;
use crate::error::Error;
use crate::interrupt::stoppable;
use crate::number::{self, Wrong};
use crate::output::{OutputOptions, write_answer};
use std::io::Write;
use std::path::Path;
use whit::query::estimate::{HittersQuestion, ItemList};

/// Count how many users have each item, and rank the items.
///
/// Each user counts once for each item, however many rows they are. The noise protects the declared unit: where the item is
/// the element, one user's having or not having one item. Items are named from a public list only, whether or not anybody has them.
#[derive(clap::Args)]
pub(super) struct HittersCommand {
    /// The data set.
    dataset: String,
    /// The column of items.
    #[arg(long, value_name = "COLUMN")]
    item: String,
    /// The public list of items: a partition file, a text file with one item a line, or `table.column` of a table that is
    /// declared public. Without it, the keys that are declared for the column.
    #[arg(long, value_name = "LIST")]
    items: Option<String>,
    /// Show so many, with intervals that hold all at once. With --all, show every item, with intervals that hold each by itself.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = lines)]
    top: usize,
    /// The most items for which a user counts fully: with N more than this, each counts √(this/N). Without it, what the
    /// declared caps come to.
    #[arg(long, value_name = "M", value_parser = number::count)]
    items_per_user: Option<u64>,
    /// Count pairs as wrongly ordered only if their true counts are this far apart. Without it, one deviation of the noise.
    #[arg(long, value_name = "USERS", value_parser = number::noise)]
    gap: Option<f64>,
    #[command(flatten)]
    asked: QuestionOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// How many lines to show.
pub(super) fn lines(text: &str) -> Result<usize, Wrong> {
    let wrong =
        Wrong { range: "a whole number, at least 1", hint: "it is how many lines are shown; --all shows every one" };
    text.trim().parse().ok().filter(|&lines| lines >= 1).ok_or(wrong)
}

impl HittersCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let progress = self.output.progress();
        progress.start("opening the data");
        let mut session = self.asked.session()?;
        self.output.check(&session)?;
        let question = HittersQuestion {
            dataset: self.dataset.clone(),
            item: self.item.clone(),
            items: self.items.as_deref().map(|text| ItemList::read(text, Path::new(""))),
            top: (!self.output.all).then_some(self.top),
            items_per_user: self.items_per_user,
            gap: self.gap,
        };
        progress.start("counting users");
        let asking = self.asked.asking();
        let answer = stoppable(&mut session, |session| session.hitters(&question, &asking));
        progress.finish();
        write_answer(&answer?, &self.output, out, talk)
    }
}
