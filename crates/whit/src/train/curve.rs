//! The loss on rows that were set aside, step by step: as private as they are, and for their owner.

use super::trial::Trial;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use whit_learn::Recipe;
use whit_learn::checkpoint::write_privately;
use whit_learn::model::Network;
use whit_learn::train::Learner;

/// How many points a curve has.
const POINTS: u64 = 40;

/// A curve in the making.
pub(crate) struct Curve {
    trial: Trial,
    recipe: Recipe,
    steps: u64,
    /// Steps, and the loss.
    pub(crate) points: Vec<(f64, f64)>,
    /// Where points lie until the run is done, so that one that is gone on with has a whole curve.
    kept: Option<PathBuf>,
}

impl Curve {
    /// Of a run of so many steps. Points are kept in this file, after those that it has of the first so many steps. They are as private as the rows, which lie no further away.
    pub(crate) fn new(trial: Trial, recipe: Recipe, steps: u64, (file, taken): (&Path, u64)) -> Self {
        let read = |line: &str| {
            let (step, loss) = line.split_once(' ')?;
            Some((step.parse().ok()?, loss.parse().ok()?))
        };
        let before = std::fs::read_to_string(file).unwrap_or_default(); // what cannot be read is left out of the curve
        let kept = before.lines().filter_map(read).filter(|(step, _)| *step <= taken as f64);
        let points: Vec<(f64, f64)> = kept.collect();
        let mut lines = Vec::new();
        let written = points.iter().try_for_each(|(step, loss)| writeln!(lines, "{step} {loss}"));
        let kept = written.and_then(|()| write_privately(file, &lines)).is_ok().then(|| file.to_owned());
        Self { trial, recipe, steps, points, kept }
    }

    /// Sees one step, and adds a point where one is due.
    pub(crate) fn see(&mut self, learner: &Learner<Network>) {
        let taken = learner.taken();
        if taken != self.steps && !taken.is_multiple_of((self.steps / POINTS).max(1)) {
            return;
        }
        // A point that cannot be had is left out: the model does not depend on it.
        let score =
            learner.model().ok().and_then(|model| self.trial.score(&self.recipe, &model, learner.projection()).ok());
        let Some(score) = score else { return };
        self.points.push((taken as f64, score.loss));
        let file = self.kept.as_ref().and_then(|file| std::fs::File::options().append(true).open(file).ok());
        // In one piece, so that no half of a number is ever read.
        let _ = file.map(|mut file| file.write_all(format!("{taken} {}\n", score.loss).as_bytes()));
    }
}
