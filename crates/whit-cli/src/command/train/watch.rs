//! What is shown while a model learns: how far it has come and what that costs. The loss is private, and shown to the owner alone.

use super::owner::Owner;
use super::prepare::Planned;
use super::trial::Trial;
use crate::output::Progress;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use whit::learn::bound::Seen;
use whit::learn::checkpoint::write_privately;
use whit::learn::model::Network;
use whit::learn::train::Learner;
use whit::learn::{Plan, Recipe};
use whit_view::number::{brief, brief_up, grouped};

/// How often ε is told, and how many points a curve has.
const TIMES: u64 = 20;
const POINTS: u64 = 40;

/// Whoever watches a run.
pub(super) struct Watcher<'a> {
    progress: &'a Progress,
    trial: Option<&'a Trial>,
    recipe: Recipe,
    delta: f64,
    steps: u64,
    since: Instant,
    /// Since then so many steps were taken.
    seen: u64,
    owner: Option<Owner>,
    told: Option<(u64, String)>,
    /// Steps, and the loss on rows that were set aside.
    pub(super) points: Vec<(f64, f64)>,
    /// Where points lie until the run is done, so that one that is gone on with has a whole curve.
    kept: Option<PathBuf>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        progress: &'a Progress,
        owner: Option<Owner>,
        trial: Option<&'a Trial>,
        planned: &Planned,
    ) -> Self {
        Self {
            progress,
            trial,
            recipe: planned.recipe.clone(),
            delta: planned.delta,
            steps: planned.steps().steps(),
            since: Instant::now(),
            seen: 0,
            owner,
            told: None,
            points: Vec::new(),
            kept: None,
        }
    }

    /// Keeps points in this file from now on, after those that it has of the first so many steps. They are as private as the rows, which lie no further away.
    pub(super) fn keep(&mut self, file: &Path, taken: u64) {
        let read = |line: &str| {
            let (step, loss) = line.split_once(' ')?;
            Some((step.parse().ok()?, loss.parse().ok()?))
        };
        let before = std::fs::read_to_string(file).unwrap_or_default(); // what cannot be read is left out of the curve
        let kept = before.lines().filter_map(read).filter(|(step, _)| *step <= taken as f64);
        self.points = kept.collect();
        let mut lines = Vec::new();
        let written = self.points.iter().try_for_each(|(step, loss)| writeln!(lines, "{step} {loss}"));
        self.kept = written.and_then(|()| write_privately(file, &lines)).is_ok().then(|| file.to_owned());
    }

    /// Sees one step.
    pub(super) fn see(&mut self, learner: &Learner<Network>, seen: &Seen) {
        let taken = learner.taken();
        self.seen += 1;
        let due = taken == self.steps || taken.is_multiple_of((self.steps / POINTS).max(1));
        if let Some(trial) = self.trial.filter(|_| due) {
            // A point that cannot be had is left out: the model does not depend on it.
            let score =
                learner.model().ok().and_then(|model| trial.score(&self.recipe, &model, learner.projection()).ok());
            if let Some(score) = score {
                self.points.push((taken as f64, score.loss));
                let file = self.kept.as_ref().and_then(|file| std::fs::File::options().append(true).open(file).ok());
                // In one piece, so that no half of a number is ever read.
                let _ = file.map(|mut file| file.write_all(format!("{taken} {}\n", score.loss).as_bytes()));
            }
        }
        if !self.progress.is_watched() {
            return;
        }
        let part = taken * TIMES / self.steps.max(1);
        if self.told.as_ref().is_none_or(|(told, _)| *told != part) {
            self.told = Some((part, self.spent(learner.plan(), taken)));
        }
        let (_, spent) = self.told.clone().unwrap_or_default();
        let rate = self.seen as f64 / self.since.elapsed().as_secs_f64().max(1e-9);
        let loss = match self.owner {
            Some(_) if seen.rows > 0 => format!("  loss {} (private)", brief(seen.loss / seen.rows as f64)),
            _ => String::new(),
        };
        let rate = grouped(&format!("{rate:.0}"));
        self.progress.say(&format!("step {taken} of {}  {spent}{loss}  {rate} steps/s", self.steps));
        self.progress.set(taken, self.steps);
    }

    /// What the steps so far have cost, rung by rung.
    fn spent(&self, plan: &Plan, taken: u64) -> String {
        let Ok(lost) = plan.loss_after(taken, self.delta) else { return "ε ?".to_owned() };
        let told = lost.iter().map(|(rung, loss)| format!("ε {} per {}", brief_up(loss.upper), rung.unit.kind()));
        told.collect::<Vec<_>>().join(", ")
    }
}
