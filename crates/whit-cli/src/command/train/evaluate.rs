//! `whit evaluate`: how well a model does on rows that its owner chose.

use super::owner;
use super::spec::{Spec, asked};
use super::trial::{Score, Trial, network};
use super::{Opening, prepare, told};
use crate::command::{Error, write_json};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use whit::learn::Trained;
use whit_view::number::{brief, grouped, percent};
use whit_view::table::{Side, Table};

/// Try a trained model on rows that were set aside; the numbers are private.
///
/// Reads the rows of `evaluate_where`, or all rows where nothing is said. What comes out was not sanitised and nothing is charged for it: it is for
/// the owner of the data, who says --owner, and publishing it is a release that nobody paid for. Rows that do not fit are left out.
#[derive(clap::Args)]
pub(crate) struct Evaluate {
    /// The training file.
    training: PathBuf,
    /// Another model than the one that the training file names.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(flatten)]
    opening: Opening,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct EvaluateView<'a> {
    model: String,
    chosen: Option<&'a str>,
    /// Never sanitised.
    sanitised: bool,
    #[serde(flatten)]
    score: Score,
}

/// Reads the file of a model. One that says no checksum is read, and that is told.
pub(super) fn load(path: &Path, talk: &mut dyn Write) -> Result<Trained, Error> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|why| asked(format!("the model `{name}` cannot be read: {why}"), "`whit train` writes one"))?;
    let again = "the training that made it writes it again, from the ledger and at no cost: `whit train`";
    let (trained, checked) =
        Trained::of_file_checked(&bytes).map_err(|error| asked(format!("`{name}`: {error}"), again))?;
    if !checked {
        writeln!(
            talk,
            "note: `{name}` is of an earlier version, without a checksum: whether it is as it was is unknown"
        )?;
    }
    Ok(trained)
}

impl Evaluate {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let owner = owner::needed(self.opening.owner, "how well a model does")?;
        let spec = Spec::open(&self.training)?;
        let path = self.model.clone().unwrap_or_else(|| Spec::beside(&self.training, &spec.output.model));
        let trained = load(&path, talk)?;
        let mut asked_for = prepare::recipe(&spec)?;
        asked_for.inputs = trained.recipe.inputs;
        if asked_for != trained.recipe {
            return Err(asked(
                format!(
                    "`{}` was made by another training file: {}",
                    path.display(),
                    differs(&asked_for, &trained.recipe)
                ),
                "train again, or name its own training file",
            ));
        }
        let tables = self.opening.tables(&self.training)?;
        let chosen = spec.evaluate_where.as_deref();
        let trial = Trial::read(owner, &tables, &trained.recipe, chosen, &self.opening.keep(&tables))?;
        let score = trial.score(&trained.recipe, &network(&trained)?, trained.projection.as_ref())?;
        if self.json {
            let view = EvaluateView { model: path.display().to_string(), chosen, sanitised: false, score };
            return write_json(&view, out);
        }
        let mut table = Table::new([("rows", Side::Right), ("mean loss", Side::Right), ("told right", Side::Right)]);
        let right = score.accuracy.map_or_else(|| "–".to_owned(), percent);
        table.row([grouped(&score.rows.to_string()), brief(score.loss), right]);
        table.write(out)?;
        writeln!(talk, "{}", told(&score))?;
        Ok(())
    }
}

/// Which part of two recipes differs.
fn differs(asked_for: &whit::learn::Recipe, own: &whit::learn::Recipe) -> &'static str {
    [
        (asked_for.dataset != own.dataset, "the data set differs"),
        (asked_for.features != own.features, "the features differ"),
        (asked_for.widths != own.widths, "`widths` differ"),
        (asked_for.bits != own.bits, "`features_as` differs"),
        ((asked_for.scale, asked_for.offset) != (own.scale, own.offset), "the scale differs"),
        (asked_for.target != own.target, "the target differs"),
        (asked_for.classes != own.classes, "the classes differ"),
        (asked_for.loss != own.loss, "the loss differs"),
        (asked_for.projection != own.projection, "the projection differs"),
        (asked_for.model != own.model, "the model differs"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
    .unwrap_or("something differs")
}
