//! What is shown while a model learns: how far it has come and what that costs.

use crate::output::ProgressLine;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use whit::train::{Step, Watch};
use whit_view::number::{brief, brief_up, grouped, percent};

/// How often ε is shown.
const TIMES: u64 = 20;

/// A line on standard error while something is done, and what is said besides.
pub(super) struct Watcher<'a> {
    progress: ProgressLine,
    talk: &'a mut dyn Write,
    since: Option<Instant>,
    /// Since then so many steps were taken.
    seen: u64,
    shown: Option<(u64, String)>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(progress: ProgressLine, talk: &'a mut dyn Write) -> Self {
        Self { progress, talk, since: None, seen: 0, shown: None }
    }

    /// Says something that has a line of its own. A talk that nobody reads stops no training.
    fn say(&mut self, line: &str) {
        self.progress.finish();
        let _ = writeln!(self.talk, "{line}");
    }
}

/// What the steps so far have cost, rung by rung.
fn spent(step: &Step<'_>) -> String {
    let Some(lost) = step.spent() else { return "ε ?".to_owned() };
    let rungs = lost.iter().map(|(rung, loss)| format!("ε {} per {}", brief_up(loss.upper), rung.unit.kind()));
    rungs.collect::<Vec<_>>().join(", ")
}

impl Watch for Watcher<'_> {
    fn doing(&mut self, what: &str) {
        self.progress.start(what);
    }

    fn note(&mut self, note: &str) {
        self.say(&format!("note: {note}"));
    }

    fn wrote(&mut self, file: &Path) {
        self.say(&format!("wrote {}", file.display()));
    }

    fn step(&mut self, step: &Step<'_>) {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.seen += 1;
        if !self.progress.is_watched() {
            return;
        }
        let Step { taken, steps, .. } = *step;
        let part = taken * TIMES / steps.max(1);
        if self.shown.as_ref().is_none_or(|(shown, _)| *shown != part) {
            self.shown = Some((part, spent(step)));
        }
        let (_, spent) = self.shown.clone().unwrap_or_default();
        let rate = self.seen as f64 / since.elapsed().as_secs_f64().max(1e-9);
        let loss = step.loss.map_or_else(String::new, |loss| format!("  loss {} (private)", brief(loss)));
        let clipped = step.clipped.map_or_else(String::new, |share| format!("  clipped {} (private)", percent(share)));
        let rate = grouped(&format!("{rate:.0}"));
        self.progress.say(&format!("step {taken} of {steps}  {spent}{loss}{clipped}  {rate} steps/s"));
        self.progress.set(taken, steps);
    }

    fn run(&mut self, nth: usize, of: usize, arm: &str) {
        self.progress.say(&format!("run {nth} of {of}: {arm}"));
    }

    fn taken(&mut self, steps: u64, of: u64) {
        self.progress.set(steps, of);
    }
}
