//! What one unit contributes: its gradient, clipped, without being formed.

mod bags;
mod clip;
mod clipped;
mod formed;
mod norm;
mod sum;
mod total;
mod unbounded;
mod windows;

pub use bags::Bags;
pub use clipped::ClippedSum;
pub(crate) use clipped::Step;
pub(crate) use total::Total;

use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::layer::{OutputGradient, Tape};
use crate::loss::{LossFunction, Share, Targets};
use crate::params::Layout;
use crate::plan::{Clip, Clipping};
use crate::tensor;
use burn::module::ParamId;
use formed::Lengths;
use whit_noise::Replay;

/// Rows, in bags, with what they weigh.
pub(crate) struct Batch<'a> {
    pub(crate) inputs: Inputs,
    pub(crate) targets: &'a Targets,
    pub(crate) weights: &'a [f32],
    pub(crate) bags: &'a Bags,
    /// Which part of the loss counts.
    pub(crate) share: Share,
    /// What dropout draws from.
    pub(crate) coins: Option<Replay>,
}

/// How the gradients of bags are bounded and added up.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Nothing for plain learning, which is non-private.
    clip: Option<Clip>,
    /// Which error the sum may have from rounding.
    allowed: f64,
    /// The step size of a truncated step, where steps are truncated.
    truncated: Option<f64>,
}

/// What was seen on the way, which is as private as the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The sum of the losses of rows.
    pub loss: f64,
    /// How many rows went through the model.
    pub rows: usize,
    /// How many bags had a gradient longer than the clip norm, or some layer's part of it longer than that layer's.
    pub clipped: usize,
    /// How many bags there were.
    pub bags: usize,
    /// How many of them contributed nothing, since something of them was infinite or no number.
    pub emptied: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.rows += other.rows;
        self.clipped += other.clipped;
        self.bags += other.bags;
        self.emptied += other.emptied;
    }
}

/// One backward pass: the inputs and output gradients of all layers whose weights are not frozen.
fn output_gradients<M: Model>(
    model: &M,
    frozen: &[ParamId],
    loss: LossFunction,
    batch: Batch<'_>,
) -> Result<(Vec<OutputGradient>, Vec<f32>), LearnError> {
    let mut tape = Tape::tapped(batch.coins, frozen);
    let z = model.forward(&batch.inputs, &mut tape)?;
    let [rows, width] = z.dims();
    let values = tensor::floats(z.clone().inner());
    let (losses, gradient) = loss.loss_and_gradient(batch.share, &values, batch.targets, batch.weights, width);
    if !z.is_tracked() {
        return Err(LearnError::Layer("the model has no layer with a tap".to_owned()));
    }
    let start = (z * tensor::of(gradient, [rows, width])).sum();
    Ok((tape.output_gradients(&mut start.backward())?, losses))
}

/// Each parameter has one tap, or what a unit contributes to it is not known.
fn check(layout: &Layout, outputs: &[OutputGradient]) -> Result<(), LearnError> {
    for slot in layout.slots() {
        let uses = outputs.iter().filter(|output| output.weight == slot.id || output.bias == Some(slot.id)).count();
        match uses {
            0 => return Err(LearnError::Untapped(slot.name.clone())),
            1 => {}
            _ => return Err(LearnError::Shared(slot.name.clone())),
        }
    }
    Ok(())
}

/// Adds the clipped gradients of a batch's bags to `sums`.
///
/// A bag with an input, an output or a gradient that is infinite or no number adds nothing: its inputs and output gradients are set to zero before anything is
/// added up, so that no sum of others is touched by it, and nothing fails.
fn add_clipped<M: Model>(
    model: &M,
    layout: &Layout,
    loss: LossFunction,
    batch: Batch<'_>,
    limit: Limit,
    sums: &mut Total,
) -> Result<Seen, LearnError> {
    let bags = batch.bags;
    if bags.rows() == 0 {
        return Ok(Seen { bags: bags.len(), ..Seen::default() });
    }
    let weights = batch.weights.to_vec();
    let (mut outputs, losses) = output_gradients(model, layout.frozen(), loss, batch)?;
    check(layout, &outputs)?;
    if let Some(Clip { how: Clipping::PerLayer { layers }, .. }) = limit.clip
        && layers as usize != outputs.len()
    {
        let what = format!("the plan clips {layers} layers one by one, and the model has {}", outputs.len());
        return Err(LearnError::Layer(what));
    }
    let mut emptied = vec![false; bags.len()];
    for output in &outputs {
        output.mark_unbounded(bags, &mut emptied);
    }
    if emptied.contains(&true) {
        for output in &mut outputs {
            output.empty(bags, &emptied);
        }
    }
    let plain = || Lengths { squared: Vec::new(), spread: None, formed: None };
    let of = |output: &OutputGradient| {
        if limit.clip.is_some() || output.is_scale() { Lengths::of(output, bags) } else { plain() }
    };
    let mut lengths: Vec<Lengths> = outputs.iter().map(of).collect();
    // What is formed in f32 may overflow though all that it is formed of is finite.
    let mut overflowed = vec![false; bags.len()];
    for lengths in &lengths {
        overflowed.iter_mut().zip(&lengths.squared).for_each(|(mark, squared)| *mark |= !squared.is_finite());
    }
    if overflowed.contains(&true) {
        for (output, lengths) in outputs.iter_mut().zip(&mut lengths) {
            output.empty(bags, &overflowed);
            lengths.empty(&overflowed);
        }
    }
    let (factors, scales) = match limit.clip {
        None => (vec![vec![1.0; bags.len()]], None),
        Some(clip) => {
            let squared: Vec<&[f64]> = lengths.iter().map(|lengths| &lengths.squared[..]).collect();
            let scales = limit.truncated.map(|step| truncations(&squared, bags, &losses, &weights, step));
            (clip.factors(&squared, scales.as_deref()), scales)
        }
    };
    // Rows that only fill up weigh nothing.
    let real: Vec<bool> =
        bags.ranges().map(|range| range.is_empty() || weights[range].iter().any(|w| *w != 0.0)).collect();
    let count = |marks: &mut dyn Iterator<Item = bool>| marks.zip(&real).filter(|(mark, real)| *mark && **real).count();
    // What a truncated step takes away is not clipped.
    let whole = |bag: usize| scales.as_ref().map_or(1.0, |scales| scales[bag].abs());
    let is_shorter = |bag: usize| factors.iter().any(|factors| factors[bag].abs() < whole(bag));
    let clipped = count(&mut (0..bags.len()).map(is_shorter));
    let allowed = limit.allowed / (outputs.len() as f64).sqrt();
    for (i, (output, lengths)) in outputs.iter().zip(&lengths).enumerate() {
        let factors = &factors[i.min(factors.len() - 1)];
        let weight = layout.find(output.weight).map_or(0..0, |slot| slot.range.clone());
        let bias = output.bias.and_then(|bias| layout.find(bias)).map_or(0..0, |slot| slot.range.clone());
        let Some([mut weight, mut bias]) = sums.parts([weight, bias]) else {
            let name = layout.find(output.weight).map_or_else(String::new, |slot| slot.name.clone());
            return Err(LearnError::Shared(name));
        };
        sum::add(output, lengths, bags, factors, allowed, &mut weight, &mut bias);
    }
    let counted = losses.iter().zip(&weights).filter(|(loss, weight)| loss.is_finite() && **weight != 0.0);
    Ok(Seen {
        loss: counted.map(|(&loss, _)| f64::from(loss)).sum(),
        rows: weights.iter().filter(|weight| **weight != 0.0).count(),
        clipped,
        bags: real.iter().filter(|real| **real).count(),
        emptied: count(&mut emptied.iter().zip(&overflowed).map(|(emptied, overflowed)| *emptied || *overflowed)),
    })
}

/// Adds the gradients of a batch's bags as they are: for what is public, for steps that one unit takes by itself, and for plain learning, which
/// is non-private. No sanitiser takes such a sum.
pub(crate) fn add_plain<M: Model>(
    model: &M,
    layout: &Layout,
    loss: LossFunction,
    batch: Batch<'_>,
    sums: &mut Total,
) -> Result<Seen, LearnError> {
    let limit = Limit { clip: None, allowed: f64::INFINITY, truncated: None };
    add_clipped(model, layout, loss, batch, limit, sums)
}

/// At least how long the gradient of each bag is.
pub(crate) fn lengths_of<M: Model>(model: &M, loss: LossFunction, batch: Batch<'_>) -> Result<Vec<f64>, LearnError> {
    let bags = batch.bags;
    if bags.rows() == 0 {
        return Ok(vec![0.0; bags.len()]);
    }
    let (outputs, _) = output_gradients(model, &[], loss, batch)?;
    let mut squared = vec![0.0; bags.len()];
    for output in &outputs {
        squared.iter_mut().zip(Lengths::of(output, bags).squared).for_each(|(sum, layer)| *sum += layer);
    }
    Ok(squared.into_iter().map(f64::sqrt).collect())
}

/// By how much truncated steps are shorter: a bag's model of its loss ends at zero, which no loss of ours goes below.
fn truncations(squared: &[&[f64]], bags: &Bags, losses: &[f32], weights: &[f32], step: f64) -> Vec<f64> {
    bags.ranges()
        .enumerate()
        .map(|(bag, range)| {
            let loss: f64 = range.map(|row| f64::from(losses[row]) * f64::from(weights[row])).sum();
            let squared: f64 = squared.iter().map(|layer| layer[bag]).sum();
            crate::optimise::truncated(loss, squared, step)
        })
        .collect()
}

/// The clipped sum of a batch's bags, or the plain one. For tests, which compare it with gradients that are formed.
#[doc(hidden)]
#[expect(clippy::too_many_arguments, reason = "a door for tests")]
pub fn clipped_sum_for_tests<M: Model>(
    model: &M,
    layout: &Layout,
    loss: LossFunction,
    inputs: Inputs,
    targets: &Targets,
    weights: &[f32],
    bags: &Bags,
    clip: Option<Clip>,
) -> Result<Vec<f64>, LearnError> {
    let allowed = clip.map_or(f64::INFINITY, |clip| clip.norm * crate::plan::SUMMATION / 2.0);
    let batch = Batch { inputs, targets, weights, bags, share: Share::Whole, coins: None };
    let mut sums = Total::new(layout.len());
    add_clipped(model, layout, loss, batch, Limit { clip, allowed, truncated: None }, &mut sums)?;
    Ok(sums.into_values())
}
