//! `whit histogram`: how much of each item users have, in the clusters of a partition.

use super::asked::QuestionOptions;
use super::hitters::lines;
use crate::error::Error;
use crate::interrupt::stoppable;
use crate::number::{self, Wrong};
use crate::output::{OutputOptions, write_answer};
use std::io::Write;
use std::path::PathBuf;
use whit::query::estimate::HistogramQuestion;
use whit::query::estimate::histogram::Radius;

/// Add up how much of each item users have, in the clusters of a partition.
///
/// What one user has in one cluster is scaled to a length of at most the radius, so that no element moves the histogram further than that
/// allows. A small radius cuts much off, a large one needs much noise: let `--radius auto` find one from a part of the budget.
#[derive(clap::Args)]
pub(super) struct HistogramCommand {
    /// The data set.
    dataset: String,
    /// The column of items.
    #[arg(long, value_name = "COLUMN")]
    item: String,
    /// The partition file that lists items and their clusters.
    #[arg(long, value_name = "FILE")]
    partition: PathBuf,
    /// Add up this column, whose bounds are declared, instead of counting rows.
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,
    /// The radius: a number, `auto` (found with a share of the budget) or `split` (found from a share of the users, who are then left out).
    #[arg(long, value_name = "R", default_value = "auto", value_parser = radius)]
    radius: RadiusChoice,
    /// The share of the budget, or of the users, that finds the radius.
    #[arg(long, value_name = "SHARE", default_value_t = Radius::SHARE, value_parser = share)]
    radius_share: f64,
    /// The share of blocks that the radius is to leave whole.
    #[arg(long, value_name = "SHARE", default_value_t = Radius::QUANTILE, value_parser = share)]
    radius_quantile: f64,
    /// Show so many, with intervals that hold all at once. With --all, show every item, with intervals that hold each by itself.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = lines)]
    top: usize,
    /// The most clusters for which a user counts fully. Without it, what the declared caps come to.
    #[arg(long, value_name = "K", value_parser = number::count)]
    clusters_per_user: Option<u64>,
    /// Show shares of the whole instead of sums.
    #[arg(long)]
    shares: bool,
    #[command(flatten)]
    asked: QuestionOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// How the radius is found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RadiusChoice {
    Given(f64),
    Auto,
    Split,
}

fn radius(text: &str) -> Result<RadiusChoice, Wrong> {
    let wrong = Wrong {
        range: "a number greater than 0, `auto` or `split`",
        hint: "it is the most that one user may have in one cluster, as a length: auto finds one",
    };
    match text.trim() {
        "auto" => Ok(RadiusChoice::Auto),
        "split" => Ok(RadiusChoice::Split),
        number => match number.parse::<f64>() {
            Ok(radius) if radius > 0.0 && radius.is_finite() => Ok(RadiusChoice::Given(radius)),
            Ok(_) | Err(_) => Err(wrong),
        },
    }
}

fn share(text: &str) -> Result<f64, Wrong> {
    let wrong =
        Wrong { range: "a number between 0 and 1", hint: "a tenth of the budget or of the users is usual: 0.1" };
    text.trim().parse().ok().filter(|&share: &f64| share > 0.0 && share < 1.0).ok_or(wrong)
}

impl HistogramCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let progress = self.output.progress();
        progress.start("opening the data");
        let mut session = self.asked.session()?;
        self.output.check(&session)?;
        let (part, quantile) = (self.radius_share, self.radius_quantile);
        let question = HistogramQuestion {
            dataset: self.dataset.clone(),
            item: self.item.clone(),
            partition: self.partition.clone(),
            weight: self.weight.clone(),
            radius: match self.radius {
                RadiusChoice::Given(radius) => Radius::Given(radius),
                RadiusChoice::Auto => Radius::TwoStage { share: part, quantile },
                RadiusChoice::Split => Radius::Split { users: part, quantile },
            },
            top: (!self.output.all).then_some(self.top),
            clusters_per_user: self.clusters_per_user,
            shares: self.shares,
        };
        progress.start("adding up");
        let asking = self.asked.asking();
        let answer = stoppable(&mut session, |session| session.histogram(&question, &asking));
        progress.finish();
        write_answer(&answer?, &self.output, out, talk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_radius_is_a_number_or_a_way_to_find_one() {
        assert_eq!(radius("2.5"), Ok(RadiusChoice::Given(2.5)));
        assert_eq!((radius(" auto "), radius("split")), (Ok(RadiusChoice::Auto), Ok(RadiusChoice::Split)));
        assert!(radius("0").is_err() && radius("inf").is_err() && radius("much").is_err());
        assert!(share("0.5").is_ok() && share("1").is_err() && share("x").is_err());
    }
}
