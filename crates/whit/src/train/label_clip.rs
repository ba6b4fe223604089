//! Clips for label units: the label's part of a gradient is clipped and the rest is not, so that a clip below it takes from rare classes alone.
//!
//! How long that part may be follows from features, which are public where a label is the unit. All of them are read for it, whenever such a training is planned, and no label.

use super::rows::{gather, reading, recipe};
use super::spec::{self, Spec};
use crate::Error;
use std::borrow::Cow;
use whit_core::Kind;
use whit_core::digits::{brief, percent};
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::model::Named;
use whit_learn::train::label_gradients;
use whit_learn::{Keep, Owners, Recipe, Rows};
use whit_noise::Replay;
use whit_query::source::learn::{Misfits, Reading};
use whit_query::{QueryError, Tables};

/// So many units are looked at for a note.
const LOOKED_AT: usize = 1024;

/// The training with a clip norm where a label is the unit, a linear model tells classes apart and none is given: the longest that a label's part can be. Where one is given,
/// a note says how much it shortens. The file was checked before, so that rows are chosen by public columns.
pub(crate) fn clipped<'a>(
    spec: &'a Spec,
    tables: &Tables,
    keep: &Keep,
    notes: &mut Vec<String>,
) -> Result<Cow<'a, Spec>, Error> {
    let dataset = tables.warehouse().declaration().dataset(&spec.dataset).map_err(QueryError::from)?;
    let recipe = recipe(spec)?;
    let split = dataset.unit.as_ref().filter(|unit| unit.protect == Kind::Label);
    let noisy_labels = spec.privacy.way.is_some_and(spec::WaySpec::tells);
    let classes = matches!(recipe.loss, LossFunction::Softmax | LossFunction::Logistic);
    let (Some(unit), false, true, None) = (split, noisy_labels, classes, &spec.projection) else {
        return Ok(Cow::Borrowed(spec));
    };
    let rows = features(spec, tables, &recipe, unit.user.is_some(), keep)?;
    if spec.privacy.clip.is_some() {
        notes.extend(note(spec, &recipe, &rows)?);
        return Ok(Cow::Borrowed(spec));
    }
    // The longest of deeper models moves with their parameters.
    let Named::Linear { bias } = spec.model.named else { return Ok(Cow::Borrowed(spec)) };
    if !spec.model.is_learned_as_a_whole() {
        return Ok(Cow::Borrowed(spec)); // an adapter's gradients are others
    }
    let longest = rows.longest_label_gradient(bias)?;
    if longest == 0.0 {
        return Ok(Cow::Borrowed(spec));
    }
    let norm = up(longest);
    notes.push(format!(
        "privacy.clip is not given, and is {}: no label's part of a gradient is longer, by the features, which are public here",
        brief(norm)
    ));
    let mut spec = spec.clone();
    spec.privacy.clip = Some(norm);
    Ok(Cow::Owned(spec))
}

/// All that the norm and the note depend on besides the data, as text: trainings that agree in it have the same.
pub(crate) fn decided_by(spec: &Spec) -> Result<String, Error> {
    let Spec { dataset, learned, split, privacy, model, .. } = spec;
    Ok(format!("{:?} {model:?} {dataset:?} {learned:?} {split:?} {:?} {:?}", recipe(spec)?, privacy.clip, privacy.way))
}

/// The features alone, brought together as the unit is, in as much memory as rows may take.
fn features(spec: &Spec, tables: &Tables, recipe: &Recipe, of_users: bool, keep: &Keep) -> Result<Rows, Error> {
    let reading = Reading { users: of_users, misfits: Misfits::Zero, ..reading(recipe, spec.learned_from(), false) };
    let (store, numbers) = gather(tables, recipe, &reading, keep)?;
    let targets = Targets::Numbers { values: vec![0.0; store.len()], width: 1 };
    let kind = if of_users { Kind::User } else { Kind::Label };
    Ok(Rows::new(store, targets, kind, Owners { users: numbers.users.as_deref(), elements: None })?)
}

/// Three digits, and not below.
fn up(value: f64) -> f64 {
    let step = 10_f64.powi(value.log10().floor() as i32 - 2);
    let up = (value / step).ceil() * step;
    if up >= value { up } else { up + step }
}

/// What whoever trains should know of a clip that is given.
fn note(spec: &Spec, recipe: &Recipe, rows: &Rows) -> Result<Option<String>, Error> {
    let Some(norm) = spec.privacy.clip.filter(|_| spec.model.is_plain()) else { return Ok(None) };
    // Where models start at random, another start of the same law serves as well.
    let model = recipe.model.build(rows.width(), recipe.outputs, &mut Replay::new(0x510e))?;
    let slopes = label_gradients(&model, recipe.loss, rows, norm, LOOKED_AT)?;
    let Some(slopes) = slopes.filter(|slopes| slopes.beyond > 0.0) else { return Ok(None) };
    let (when, better) = if matches!(spec.model.named, Named::Linear { .. }) {
        ("", "leave privacy.clip out to take the longest")
    } else {
        (" at the start", "write a larger privacy.clip")
    };
    Ok(Some(format!(
        "privacy.clip = {} shortens the label's part of the gradient of {} of units{when}, by the features, which are public here, and the longest is {}: rare classes may be lost; {better}",
        brief(norm),
        percent(slopes.beyond),
        brief(slopes.longest)
    )))
}

#[cfg(test)]
mod tests {
    use super::up;

    #[test]
    fn three_digits_are_not_below() {
        for (value, found) in [(3.3166, 3.32), (1.0, 1.0), (0.012_345, 0.0124), (999.5, 1000.0)] {
            assert!((up(value) - found).abs() < 1e-9 * found && up(value) >= value, "{value}: {}", up(value));
        }
    }
}
