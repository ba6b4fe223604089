//! What an adversary gains, in words, in numbers and as a picture.

use super::options::Relation;
use super::unsupported;
use super::words::AccountantWord;
use crate::error::Error;
use crate::number;
use crate::output::{Drawing, drawing, write_json};
use std::io::Write;
use whit::Name;
use whit::explain::Promise;
use whit::price::{EpsilonPrice, SampledRun};
use whit_view::explain::{ExplainView, picture};
use whit_view::page::Report;

/// The options that describe a run. Of a promise alone they would change nothing, and whoever gave them would believe that they did.
const OF_A_RUN: [&str; 9] =
    ["noise", "rate", "steps", "change", "draw", "elements_per_user", "sampling", "difference", "accountant"];

/// What an adversary gains from a release: odds, beliefs, and the errors that no test avoids.
///
/// Give a promise (`--epsilon` and `--delta`), or a run (`--noise`, `--delta` and what else describes it), whose ε is
/// then computed and whose own trade-off curve is drawn next to that of its promise.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// The ε that was promised. A promise has no run: what describes one goes with `--noise`.
    #[arg(long, allow_negative_numbers = true, value_parser = number::epsilon, required_unless_present = "noise", conflicts_with_all = OF_A_RUN)]
    epsilon: Option<f64>,
    /// The δ that was promised; 0 for pure ε.
    #[arg(long, allow_negative_numbers = true, value_parser = number::delta_or_zero)]
    delta: f64,
    /// What the adversary believes beforehand, as probabilities.
    #[arg(long, value_name = "P,P,…", value_delimiter = ',', default_value = "0.01,0.1,0.5", allow_negative_numbers = true, value_parser = number::prior)]
    prior: Vec<f64>,
    /// Draw the trade-off curve into a file that ends in .svg, .png or .html.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Option<Drawing>,
    /// Standard deviation of a run's noise, over the largest norm that one drawn unit can contribute.
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true, value_parser = number::noise)]
    noise: Option<f64>,
    /// The probability with which the run draws a unit in one step.
    #[arg(long, value_name = "Q", default_value = "1", allow_negative_numbers = true, value_parser = number::rate)]
    rate: f64,
    /// How many steps the run makes.
    #[arg(long, value_name = "T", default_value = "1", allow_negative_numbers = true, value_parser = number::steps)]
    steps: u64,
    #[command(flatten)]
    relation: Relation,
    /// Which accountant prices the run.
    #[arg(long, value_enum, default_value_t = AccountantWord::Pld)]
    accountant: AccountantWord,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
}

/// A run with its price, and the promises that it keeps.
type PricedRun = (SampledRun, EpsilonPrice, Vec<Promise>);

impl Explain {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let accountant = self.accountant.into();
        let priced = match (self.epsilon, self.noise) {
            (None, Some(noise)) => Some(self.price(noise, accountant)?),
            _ => None,
        };
        let epsilon = priced.as_ref().map(|(_, price, _)| price.loss.upper).or(self.epsilon);
        let epsilon = epsilon.expect("clap asks for --epsilon or --noise");
        let promise = Promise::new(epsilon, self.delta).expect("the options were checked when they were read");
        let profile = priced.as_ref().map(|(_, _, promises)| promises.as_slice());
        let run = priced.as_ref().map(|(run, price, _)| (run, price, accountant));
        let view = ExplainView::of(promise, &self.prior, run, profile);
        if let Some(drawing) = &self.plot {
            let svg = picture(promise, profile);
            drawing.write(&svg, || Report::new("What an adversary gains").picture(&svg).finish(), talk)?;
        }
        if self.json { write_json(&view, out) } else { Ok(view.write(out)?) }
    }

    /// What the run costs at δ, also a whole user where it is known how much one has, and promises that it keeps besides that one.
    fn price(&self, noise: f64, accountant: Name) -> Result<PricedRun, Error> {
        let run = self.relation.run(noise, self.rate, self.steps)?;
        if self.delta == 0.0 {
            let wrong = number::delta("0").expect_err("0 is not greater than 0");
            return Err(Error::asked(format!("--delta is 0, but it must be {}", wrong.range), wrong.hint));
        }
        let priced = run.promises(self.delta, accountant);
        let (price, promises) = priced.map_err(|why| unsupported(&why, accountant))?;
        Ok((run, price, promises))
    }
}
