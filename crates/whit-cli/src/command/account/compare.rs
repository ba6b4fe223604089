//! Every accountant's answer, side by side.

use super::options::{DeltaOption, NoiseOption, RateOption, Relation, StepsOption};
use crate::error::Error;
use crate::output::write_json;
use std::io::Write;
use whit_view::price::CompareView;

/// Every accountant's answer, side by side.
#[derive(clap::Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    delta: DeltaOption,
    #[command(flatten)]
    relation: Relation,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let run = self.relation.run(self.noise.noise, self.rate.rate, self.steps.steps)?;
        let view = CompareView::of(&run, &run.opinions(self.delta.delta), self.delta.delta);
        if self.json { write_json(&view, out) } else { Ok(view.write(out)?) }
    }
}
