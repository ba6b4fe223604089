//! How far a long job has come, on standard error, for people who wait.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// What is shown while nothing may be known of how far it is. How many rows were read, and how many are left, tells of the data before a question is answered, so whoever asks one sees the time
/// alone, which they could measure themselves.
const WAITING: &str = "{spinner} {msg}  {elapsed}";

/// A line that says what is being done and how much of it is; nothing at all where nobody watches.
///
/// It is shown only where standard error is a terminal. It may be shared between threads, and goes away when dropped.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    /// A display that is silent if asked, or if standard error is no terminal.
    pub(crate) fn new(silent: bool) -> Self {
        let watched = !silent && io::stderr().is_terminal();
        Self::onto(if watched { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() })
    }

    fn onto(target: ProgressDrawTarget) -> Self {
        Self { bar: ProgressBar::with_draw_target(None, target).with_style(style(WAITING)) }
    }

    /// Says what is being done from now on; how long it will take is not known yet.
    pub(crate) fn start(&self, words: &str) {
        self.bar.set_style(style(WAITING));
        self.bar.set_message(words.to_owned());
        self.bar.unset_length();
        self.bar.reset();
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// Says something else while the same is being done.
    pub(crate) fn say(&self, words: &str) {
        self.bar.set_message(words.to_owned());
    }

    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Says how much is done.
    pub(crate) fn set(&self, done: u64, total: u64) {
        if self.bar.length() != Some(total) {
            self.bar.set_style(style("{msg} {bar:28} {percent:>3} %  {eta} left").progress_chars("━╸─"));
            self.bar.set_length(total);
        }
        self.bar.set_position(done.min(total));
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.finish();
    }
}

fn style(template: &'static str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_templates() {
        for template in [WAITING, "{msg} {bar:28} {percent:>3} %  {eta} left"] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }

    #[test]
    fn progress_is_kept_while_nobody_watches() {
        let progress = ProgressLine::onto(ProgressDrawTarget::hidden());
        progress.start("clustering 400,000 words");
        assert_eq!((progress.bar.length(), progress.bar.message().as_str()), (None, "clustering 400,000 words"));
        progress.set(3, 10);
        assert_eq!((progress.bar.position(), progress.bar.length()), (3, Some(10)));
        progress.set(30, 10);
        assert_eq!(progress.bar.position(), 10);
        progress.start("next");
        assert_eq!((progress.bar.position(), progress.bar.length()), (0, None));
        progress.finish();
        assert!(progress.bar.is_finished());
    }
}
