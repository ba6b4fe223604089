//! The run that the account commands ask about: its options, its cost at each rung, and how it reads.

use super::super::Error;
use crate::number;
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};
use whit::account::{Name, Unsupported, epsilon_by};
use whit::{Change, Cost, Draw, Loss, Sampled, Sampling};
use whit_view::number::{Exact, brief, brief_down, brief_up};
use whit_view::table::{Side, Table};

/// How neighbours differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChangeWord {
    /// The unit is there or not.
    AddRemove,
    /// The unit's rows become any others, possibly none.
    Replace,
}

/// What one coin decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DrawWord {
    /// The unit itself: an event, a row, a (user, element) pair.
    Unit,
    /// A whole user, with all elements at once.
    User,
}

/// How a step chooses what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SamplingWord {
    /// Each on its own, with the same probability.
    Poisson,
    /// A batch of fixed size, without replacement.
    Fixed,
}

/// Which accountant answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AccountantWord {
    /// The privacy loss distribution, from above and from below.
    Pld,
    /// Rényi divergences.
    Rdp,
    /// Gaussian differential privacy.
    Gdp,
    /// Zero-concentrated differential privacy.
    Zcdp,
    /// Advanced composition.
    Advanced,
    /// Sums of (ε, δ).
    Basic,
}

impl From<AccountantWord> for Name {
    fn from(word: AccountantWord) -> Self {
        match word {
            AccountantWord::Pld => Self::Pld,
            AccountantWord::Rdp => Self::Rdp,
            AccountantWord::Gdp => Self::Gdp,
            AccountantWord::Zcdp => Self::Zcdp,
            AccountantWord::Advanced => Self::Advanced,
            AccountantWord::Basic => Self::Basic,
        }
    }
}

/// The noise of each step.
#[derive(clap::Args)]
pub(super) struct NoiseOption {
    /// Standard deviation of the noise on the sum, over the largest norm that one drawn unit can contribute.
    ///
    /// It means the same under every change: that a replacement moves the sum by twice that norm is the
    /// accountant's business.
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true, value_parser = number::noise)]
    pub(super) noise: f64,
}

/// How often each unit is drawn.
#[derive(clap::Args)]
pub(super) struct RateOption {
    /// The probability with which a unit is drawn in one step.
    #[arg(long, value_name = "Q", default_value = "1", allow_negative_numbers = true, value_parser = number::rate)]
    pub(super) rate: f64,
}

/// How many steps are made.
#[derive(clap::Args)]
pub(super) struct StepsOption {
    /// How often a batch is drawn, summed and noised.
    #[arg(long, value_name = "T", default_value = "1", allow_negative_numbers = true, value_parser = number::steps)]
    pub(super) steps: u64,
}

/// The δ at which ε is told.
#[derive(clap::Args)]
pub(super) struct DeltaOption {
    /// What is added to e^ε times a probability; well below one over the number of units.
    #[arg(long, allow_negative_numbers = true, value_parser = number::delta)]
    pub(super) delta: f64,
}

/// How neighbours differ, and how units are drawn.
#[derive(clap::Args)]
pub(super) struct Relation {
    /// How neighbours differ. Unless `--difference` is given, what holds under replace holds under add-remove too.
    #[arg(long, value_enum, default_value_t = ChangeWord::Replace)]
    pub(super) change: ChangeWord,
    /// What one coin decides about.
    #[arg(long, value_enum, default_value_t = DrawWord::Unit)]
    pub(super) draw: DrawWord,
    /// The most elements that one user has; adds the price for a whole user to the answer.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = number::elements)]
    pub(super) elements_per_user: Option<u64>,
    /// How a step chooses what it sees.
    #[arg(long, value_enum, default_value_t = SamplingWord::Poisson)]
    pub(super) sampling: SamplingWord,
    /// How far apart two neighbours' contributions are at most, in clip norms; 2 unless more is known. Only with
    /// `--change replace`. It is about one unit: a whole user's price does not depend on it.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = number::difference)]
    pub(super) difference: Option<f64>,
}

/// Who answers, and in which form.
#[derive(clap::Args)]
pub(super) struct Answer {
    /// Which accountant answers.
    #[arg(long, value_enum, default_value_t = AccountantWord::Pld)]
    pub(super) accountant: AccountantWord,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    pub(super) json: bool,
}

impl Relation {
    /// One step of the run on the rung that is protected.
    pub(super) fn step(&self, noise: f64, rate: f64) -> Result<Sampled, Error> {
        let change = match self.change {
            ChangeWord::AddRemove => Change::AddRemove,
            ChangeWord::Replace => Change::Replace,
        };
        let draw = match (self.draw, self.elements_per_user) {
            (DrawWord::Unit, _) => Draw::Unit,
            (DrawWord::User, Some(elements)) => Draw::User { elements },
            (DrawWord::User, None) => {
                return Err(Error::asked(
                    "--draw is user, but --elements-per-user is missing: a user's other elements are drawn \
                               with the same coin and give the draw away",
                    "add --elements-per-user K with the cap that you enforce, or draw (user, element) pairs with \
                           --draw unit",
                ));
            }
        };
        let sampling = match self.sampling {
            SamplingWord::Poisson => Sampling::Poisson,
            SamplingWord::Fixed => Sampling::Fixed,
        };
        if let (Change::AddRemove, Some(difference)) = (change, self.difference) {
            return Err(Error::asked(
                format!(
                    "--difference is {difference}, but it must be left out unless --change is replace: a unit that is \
                     added or removed has no second contribution to differ from"
                ),
                "drop --difference, or ask with --change replace",
            ));
        }
        Ok(Sampled { noise, rate, sampling, draw, change, difference: self.difference.unwrap_or(2.0), holds: 1 })
    }

    /// The run at the protected rung and, where the link is known, at the user's.
    fn rungs(&self, step: &Sampled) -> Vec<(&'static str, Sampled)> {
        match (self.elements_per_user, self.change) {
            (None, _) => vec![("unit", *step)],
            (Some(holds), ChangeWord::Replace) => vec![("element", *step), ("user", Sampled { holds, ..*step })],
            (Some(holds), ChangeWord::AddRemove) => vec![("unit", *step), ("user", Sampled { holds, ..*step })],
        }
    }

    /// What the run loses at every rung, as far as the accountant can tell; at the rung that is protected it is known.
    pub(super) fn prices(&self, step: &Sampled, steps: u64, known: (Loss, Name), accountant: Name) -> Vec<RungView> {
        self.rungs(step)
            .into_iter()
            .map(|(unit, rung)| {
                let price = || epsilon_by(&Cost::Sampled(rung).repeat(steps), known.0.delta, accountant);
                let told = if rung == *step { Ok(known) } else { price() };
                RungView::new(unit, self.change, accountant, told)
            })
            .collect()
    }

    /// The parameters, as every answer repeats them.
    pub(super) fn view(&self, noise: f64, rate: f64, steps: u64) -> RunView {
        RunView {
            noise,
            rate,
            steps,
            sampling: self.sampling,
            draw: self.draw,
            elements_per_user: self.elements_per_user,
            change: self.change,
            difference: (self.change == ChangeWord::Replace).then(|| self.difference.unwrap_or(2.0)),
        }
    }
}

/// A run's parameters.
#[derive(Debug, Serialize)]
pub(super) struct RunView {
    noise: f64,
    rate: f64,
    steps: u64,
    sampling: SamplingWord,
    draw: DrawWord,
    elements_per_user: Option<u64>,
    change: ChangeWord,
    difference: Option<f64>,
}

impl RunView {
    /// The parameters in words, a line each.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let steps = if self.steps == 1 { "1 step".into() } else { format!("{} steps", self.steps) };
        let batch = match (self.rate == 1.0, self.sampling) {
            (true, _) => "on all units".into(),
            (false, SamplingWord::Poisson) => format!("on units drawn with probability {}", brief_down(self.rate)),
            (false, SamplingWord::Fixed) => {
                format!("on batches of a fixed {} of the units", whit_view::number::percent(self.rate))
            }
        };
        let drawn = match (self.draw, self.elements_per_user) {
            (DrawWord::User, Some(k)) => format!("whole users are drawn, each with at most {k} elements"),
            (DrawWord::User, None) | (DrawWord::Unit, _) => "the unit itself is drawn".into(),
        };
        let change = match (self.change, self.difference) {
            (ChangeWord::AddRemove, _) => "a unit is there or not (add-remove)".into(),
            (ChangeWord::Replace, Some(d)) if d < 2.0 => {
                format!("a unit becomes any other whose contribution is at most {} clip norms away (replace)", brief(d))
            }
            (ChangeWord::Replace, _) => "a unit becomes any other (replace)".into(),
        };
        writeln!(out, "  run         {steps} {batch}, noise {} clip norms", brief_up(self.noise))?;
        writeln!(out, "  drawing     {drawn}")?;
        writeln!(out, "  neighbours  {change}")
    }
}

/// What the run loses at one rung.
#[derive(Debug, Serialize)]
pub(super) struct RungView {
    unit: &'static str,
    change: ChangeWord,
    epsilon_upper: Option<Exact>,
    epsilon_lower: Option<Exact>,
    /// Who proved the upper bound, where it is not the accountant that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<String>,
}

impl RungView {
    fn new(unit: &'static str, change: ChangeWord, asked: Name, told: Result<(Loss, Name), Unsupported>) -> Self {
        let (epsilon_upper, epsilon_lower, upper_by, unsupported) = match told {
            Ok((loss, by)) => (Some(Exact(loss.upper)), Some(Exact(loss.lower)), other(by, asked), None),
            Err(why) => (None, None, None, Some(why.to_string())),
        };
        Self { unit, change, epsilon_upper, epsilon_lower, upper_by, unsupported }
    }

    /// The ladder as a table; nothing where there is but one rung.
    pub(super) fn write(rungs: &[Self], out: &mut dyn Write) -> io::Result<()> {
        if rungs.len() < 2 {
            return Ok(());
        }
        let columns = [
            ("protects one", Side::Left),
            ("change", Side::Left),
            ("ε at least", Side::Right),
            ("ε at most", Side::Right),
        ];
        let mut table = Table::new(columns);
        for rung in rungs {
            let change = match rung.change {
                ChangeWord::AddRemove => "add-remove",
                ChangeWord::Replace => "replace",
            };
            let show =
                |value: Option<Exact>, brief: fn(f64) -> String| value.map_or("–".to_owned(), |Exact(v)| brief(v));
            table.row([
                rung.unit.to_owned(),
                change.to_owned(),
                show(rung.epsilon_lower, brief_down),
                show(rung.epsilon_upper, brief_up),
            ]);
        }
        writeln!(out)?;
        table.write(out)?;
        for rung in rungs {
            if let Some(by) = rung.upper_by {
                writeln!(out, "\nFor one {} the upper bound is {by}'s, which is less than pld proves.", rung.unit)?;
            }
            if let Some(why) = &rung.unsupported {
                writeln!(out, "\nNo figure for one {}: {why}.", rung.unit)?;
            }
        }
        Ok(())
    }
}

/// Who proved a bound, where that is another than was asked.
pub(super) fn other(by: Name, asked: Name) -> Option<Name> {
    (by != asked).then_some(by)
}

/// An accountant's "no number from me" as a mistake in the question, with the option that caused it.
pub(super) fn unsupported(why: &Unsupported, accountant: Name) -> Error {
    let (sentence, hint) = match why {
        Unsupported::Cost { .. } | Unsupported::NeedsDelta { .. } => (
            format!("--accountant is {accountant}, but {why}"),
            "--accountant pld prices every run that this command can describe, from above and from below",
        ),
        Unsupported::Drawing { .. } => (format!("--sampling is fixed, but {why}"), "ask with --sampling poisson"),
        Unsupported::OutOfRange(_) => (why.to_string(), "`whit account epsilon --help` says what each option means"),
    };
    Error::asked(sentence, hint)
}
