//! Clips for label units: the label's part of a gradient is clipped and the rest is not, so that a clip below it takes from rare classes alone.

use super::prepare::{Prepared, recipe};
use super::spec::Spec;
use crate::command::Error;
use crate::number::{brief, percent};
use whit::core::Kind;
use whit::learn::Rows;
use whit::learn::loss::Loss;
use whit::learn::model::Named;

/// So many units are looked at for a note.
const LOOKED_AT: usize = 1024;

/// The clip norm of a label unit where none is given: the longest that a label's part can be, by features alone, which are public there. For linear models of
/// classes; the longest of others moves with their parameters.
pub(super) fn default_clip(spec: &Spec, kind: Kind, rows: &Rows) -> Result<Option<f64>, Error> {
    let Named::Linear { bias } = spec.model else { return Ok(None) };
    let classes = matches!(recipe(spec)?.loss, Loss::Softmax | Loss::Logistic);
    if kind != Kind::Label || !classes || spec.privacy.clip.is_some() {
        return Ok(None);
    }
    let longest = rows.longest_label_slope(bias)?;
    Ok((longest > 0.0).then(|| up(longest)))
}

/// Three digits, and not below.
fn up(value: f64) -> f64 {
    let step = 10_f64.powi(value.log10().floor() as i32 - 2);
    let up = (value / step).ceil() * step;
    if up >= value { up } else { up + step }
}

/// What whoever trains should know of the clip.
pub(super) fn note(spec: &Spec, prepared: &Prepared) -> Result<Option<String>, Error> {
    let norm = prepared.learner.plan().clip().norm;
    if prepared.directions.is_some() {
        return Ok(None); // what rows are projected on is not known yet
    }
    let Some(slopes) = prepared.learner.label_slopes(LOOKED_AT)? else { return Ok(None) };
    if spec.privacy.clip.is_none() {
        return Ok(Some(format!(
            "privacy.clip is not given, and is {}: no label's part of a gradient is longer, by the features, which are public here",
            brief(norm)
        )));
    }
    if slopes.beyond == 0.0 {
        return Ok(None);
    }
    let linear = matches!(spec.model, Named::Linear { .. });
    let (when, better) = if linear {
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
