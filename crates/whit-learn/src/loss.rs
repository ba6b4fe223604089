//! Losses of single rows, with their gradients at the model's output.
//!
//! They are computed by hand and handed to the backward pass as its start, which is faster than differentiating them, and lets a unit take a part
//! of a loss, with a weight of any sign.

use crate::error::LearnError;
use serde::{Deserialize, Serialize};

/// What a model's output is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossFunction {
    /// ½‖z − y‖².
    Squared,
    /// log(1 + e^z) − y·z, for y of 0 or 1.
    Logistic,
    /// log Σ e^z − z_y, for a class y.
    Softmax,
    /// e^z − y·z, for counts.
    Poisson,
    /// Squared within `at` of the target, and then linear.
    Huber {
        /// Where it becomes linear.
        at: f32,
    },
}

/// Which part of a loss counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Whole,
    /// What does not depend on the label: log Σ e^z, log(1 + e^z), e^z, ½z².
    WithoutLabel,
    /// What does: −z_y, −y·z.
    OfLabel,
}

/// What rows are measured against.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Numbers, one or more a row.
    Numbers {
        /// Row by row.
        values: Vec<f32>,
        /// How many a row.
        width: usize,
    },
    /// Classes.
    Classes {
        /// Row by row.
        labels: Vec<u32>,
        /// How many there are.
        classes: u32,
    },
}

impl Targets {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers { values, width } => values.len() / (*width).max(1),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them.
    #[must_use]
    pub fn pick(&self, rows: &[u32]) -> Self {
        match self {
            Self::Numbers { values, width } => {
                let row = |&row: &u32| &values[row as usize * width..(row as usize + 1) * width];
                Self::Numbers { values: rows.iter().flat_map(row).copied().collect(), width: *width }
            }
            Self::Classes { labels, classes } => {
                Self::Classes { labels: rows.iter().map(|&row| labels[row as usize]).collect(), classes: *classes }
            }
        }
    }

    /// The class of a row: of numbers, whether it is more than a half.
    pub(crate) fn class(&self, row: u32) -> usize {
        match self {
            Self::Numbers { values, width } => usize::from(values[row as usize * width] > 0.5),
            Self::Classes { labels, .. } => labels[row as usize] as usize,
        }
    }

    /// The same and so many more rows of 0, which count for nothing.
    pub(crate) fn padded(mut self, rows: usize) -> Self {
        match &mut self {
            Self::Numbers { values, width } => values.resize(values.len() + rows * *width, 0.0),
            Self::Classes { labels, .. } => labels.resize(labels.len() + rows, 0),
        }
        self
    }
}

/// log(1 + e^z), without overflow.
fn softplus(z: f32) -> f32 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

fn sigmoid(z: f32) -> f32 {
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

/// Above this, e^z and its gradient are as at this: a count's mean of 10¹³ is none.
const MOST: f32 = 30.0;

impl LossFunction {
    /// Whether targets are what this loss measures against.
    pub fn check(self, targets: &Targets, outputs: usize) -> Result<(), LearnError> {
        let wrong = |what: String| Err(LearnError::Data(what));
        match (self, targets) {
            (Self::Softmax, Targets::Classes { labels, classes }) => {
                if *classes as usize != outputs {
                    return wrong(format!("the model tells {outputs} classes apart, and there are {classes}"));
                }
                if labels.iter().any(|label| label >= classes) {
                    return wrong(format!("a label is out of range: classes are 0 to {}", classes - 1));
                }
                Ok(())
            }
            (Self::Softmax, Targets::Numbers { .. }) => {
                wrong("softmax needs classes as targets, not numbers".to_owned())
            }
            (_, Targets::Classes { .. }) => wrong(format!("{self:?} needs numbers as targets, not classes")),
            (_, Targets::Numbers { values, width }) => {
                if *width != outputs {
                    return wrong(format!("the model gives {outputs} numbers a row, and targets have {width}"));
                }
                let fits = |value: &f32| match self {
                    Self::Logistic => *value == 0.0 || *value == 1.0,
                    Self::Poisson => value.is_finite() && *value >= 0.0,
                    _ => value.is_finite(),
                };
                if values.iter().all(fits) {
                    return Ok(());
                }
                wrong(match self {
                    Self::Logistic => "a target is neither 0 nor 1".to_owned(),
                    Self::Poisson => "a count is negative or missing".to_owned(),
                    _ => "a target is missing".to_owned(),
                })
            }
        }
    }

    /// ∂²loss/∂z² of one output: the variance function of a generalised linear model. Nothing for softmax, whose outputs curve together.
    pub(crate) fn second_derivative(self, z: f32, y: f32) -> Option<f32> {
        match self {
            Self::Squared => Some(1.0),
            Self::Logistic => Some(sigmoid(z) * sigmoid(-z)),
            Self::Poisson => Some(if z < MOST { z.exp() } else { 0.0 }),
            Self::Huber { at } => Some(f32::from(u8::from((z - y).abs() <= at))),
            Self::Softmax => None,
        }
    }

    /// The loss of each row, and weight·∂loss/∂z, for outputs of `width` numbers a row.
    pub fn loss_and_gradient(
        self,
        share: Share,
        z: &[f32],
        targets: &Targets,
        weights: &[f32],
        width: usize,
    ) -> (Vec<f32>, Vec<f32>) {
        let mut losses = Vec::with_capacity(weights.len());
        let mut gradient = vec![0_f32; z.len()];
        let rows = z.chunks_exact(width).zip(gradient.chunks_exact_mut(width)).zip(weights).enumerate();
        let (with, without) = (share != Share::OfLabel, share != Share::WithoutLabel);
        for (row, ((z, gradient), &weight)) in rows {
            let mut loss = 0.0;
            match targets {
                Targets::Classes { labels, .. } => {
                    if with {
                        let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                        let total: f32 = z.iter().map(|z| (z - most).exp()).sum();
                        loss += most + total.ln();
                        gradient
                            .iter_mut()
                            .zip(z)
                            .for_each(|(gradient, z)| *gradient = weight * (z - most).exp() / total);
                    }
                    if without {
                        let label = labels[row] as usize;
                        loss -= z[label];
                        gradient[label] -= weight;
                    }
                }
                Targets::Numbers { values, .. } => {
                    let targets = &values[row * width..(row + 1) * width];
                    for ((&z, &y), gradient) in z.iter().zip(targets).zip(gradient.iter_mut()) {
                        let (free, free_gradient, tied) = match self {
                            Self::Logistic => (softplus(z), sigmoid(z), y),
                            Self::Poisson => (z.min(MOST).exp(), z.min(MOST).exp(), y),
                            Self::Squared => (0.5 * z * z, z, y),
                            // Neither part of it is free of the label: it counts whole, or as all of the label's.
                            Self::Huber { at } => {
                                let off = z - y;
                                let (value, derivative) = if off.abs() <= at {
                                    (0.5 * off * off, off)
                                } else {
                                    (at * (off.abs() - 0.5 * at), at * off.signum())
                                };
                                if without {
                                    loss += value;
                                    *gradient = weight * derivative;
                                }
                                continue;
                            }
                            Self::Softmax => (0.0, 0.0, 0.0),
                        };
                        if with {
                            loss += free;
                            *gradient += weight * free_gradient;
                        }
                        if without {
                            loss -= tied * z;
                            *gradient -= weight * tied;
                            if self == Self::Squared {
                                loss += 0.5 * y * y;
                            }
                        }
                    }
                }
            }
            losses.push(loss);
        }
        (losses, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slopes_are_those_of_the_loss(
            z in proptest::collection::vec(-4.0..4.0_f32, 3), y in 0..3_u32, count in 0..5_u32, weight in -2.0..2.0_f32, kind in 0..5,
        ) {
            let (loss, targets, width) = match kind {
                0 => (LossFunction::Softmax, Targets::Classes { labels: vec![y], classes: 3 }, 3),
                1 => (LossFunction::Logistic, Targets::Numbers { values: vec![(count % 2) as f32], width: 1 }, 1),
                2 => (LossFunction::Poisson, Targets::Numbers { values: vec![count as f32], width: 1 }, 1),
                3 => (LossFunction::Squared, Targets::Numbers { values: vec![0.5, -1.0, count as f32], width: 3 }, 3),
                _ => (LossFunction::Huber { at: 0.7 }, Targets::Numbers { values: vec![0.3, 0.1, count as f32], width: 3 }, 3),
            };
            for share in [Share::Whole, Share::WithoutLabel, Share::OfLabel] {
                let at = |z: &[f32]| f64::from(loss.loss_and_gradient(share, z, &targets, &[1.0], width).0[0]);
                let (_, gradient) = loss.loss_and_gradient(share, &z[..width], &targets, &[weight], width);
                for i in 0..width {
                    let (mut up, mut down) = (z[..width].to_vec(), z[..width].to_vec());
                    up[i] += 1e-2;
                    down[i] -= 1e-2;
                    let slope = (at(&up) - at(&down)) / 2e-2 * f64::from(weight);
                    prop_assert!((slope - f64::from(gradient[i])).abs() < 2e-2 * (1.0 + slope.abs()), "{slope} {}", gradient[i]);
                }
            }
        }

        #[test]
        fn the_parts_of_a_loss_add_up(z in proptest::collection::vec(-4.0..4.0_f32, 4), y in 0..4_u32) {
            let targets = Targets::Classes { labels: vec![y], classes: 4 };
            let gradient = |share| LossFunction::Softmax.loss_and_gradient(share, &z, &targets, &[1.0], 4).1;
            let (whole, free, tied) = (gradient(Share::Whole), gradient(Share::WithoutLabel), gradient(Share::OfLabel));
            for i in 0..4 {
                prop_assert!((whole[i] - free[i] - tied[i]).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_label_out_of_range_is_refused() {
        let targets = Targets::Classes { labels: vec![0, 3], classes: 3 };
        assert!(LossFunction::Softmax.check(&targets, 3).unwrap_err().to_string().contains("out of range"));
    }
    /// The gradient of rows of one feature each, summed over the rows, by class.
    fn gradient(share: Share, x: &[f32], z: &[f32], labels: &[u32]) -> Vec<f64> {
        let classes = z.len() / x.len();
        let targets = Targets::Classes { labels: labels.to_vec(), classes: classes as u32 };
        let (_, gradient) = LossFunction::Softmax.loss_and_gradient(share, z, &targets, &vec![1.0; x.len()], classes);
        let mut sum = vec![0.0; classes];
        for (gradient, x) in gradient.chunks_exact(classes).zip(x) {
            sum.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum += f64::from(x * gradient));
        }
        sum
    }

    fn length(a: &[f64]) -> f64 {
        a.iter().map(|a| a * a).sum::<f64>().sqrt()
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        length(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// F4: L_f is over pairs with the same public part. The paper's is over all pairs, says 2 of the label's share of a
    /// softmax and 2√2 of the whole, and so that subtracting the public part makes L_f smaller. It is √2 either way; what
    /// becomes smaller is the longest gradient. Outputs are such that all floats are exact.
    #[test]
    fn two_labels_are_as_far_apart_with_the_public_part_as_without() {
        let root = 2_f64.sqrt();
        // Four classes that are all as likely, or one that is certain.
        let outputs = [[0.0; 4], [200.0, 0.0, 0.0, 0.0], [0.0, 0.0, 200.0, 0.0]];
        for (share, longest, printed) in [(Share::Whole, root, 2.0 * root), (Share::OfLabel, 1.0, 2.0)] {
            let (mut apart, mut over_all, mut norm) = (0.0_f64, 0.0_f64, 0.0_f64);
            for z in outputs {
                for (y, other) in (0..4).flat_map(|y| (0..4).map(move |other| (y, other))) {
                    let one = gradient(share, &[1.0], &z, &[y]);
                    norm = norm.max(length(&one));
                    let by_label = distance(&one, &gradient(share, &[1.0], &z, &[other]));
                    assert_eq!(by_label, if y == other { 0.0 } else { root }, "{share:?}, whatever the output is");
                    apart = apart.max(by_label);
                    // An opposite row: a further feature, too small to count here, can give it the same outputs.
                    let far = gradient(share, &[-1.0], &z, &[other]);
                    over_all = over_all.max(distance(&one, &far));
                }
            }
            assert_eq!((apart, norm), (root, longest), "{share:?}");
            assert_eq!(over_all, printed, "{share:?}");
        }
        // What holds for one row does not for two: labels that change places turn the gradient round, and 2 of its
        // lengths are attained.
        let swap = |labels| gradient(Share::OfLabel, &[1.0, -1.0], &[0.0; 8], labels);
        let (one, other) = (swap(&[0, 1]), swap(&[1, 0]));
        assert_eq!(distance(&one, &other), 2.0 * length(&one));
    }

    /// F4 for two classes with one output: the label's share is −x or nothing, so labels are |x| apart and not 2|x|.
    #[test]
    fn yes_and_no_are_one_length_apart() {
        let gradient = |share, y| {
            let targets = Targets::Numbers { values: vec![y], width: 1 };
            LossFunction::Logistic.loss_and_gradient(share, &[0.0], &targets, &[1.0], 1).1[0]
        };
        for share in [Share::Whole, Share::OfLabel] {
            assert_eq!(gradient(share, 0.0) - gradient(share, 1.0), 1.0, "{share:?}");
        }
    }
}
