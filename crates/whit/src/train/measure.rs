//! How well a model tells classes apart: which it takes for which, in which order it puts rows, and how far it may be believed.

use serde::Serialize;
use whit_learn::loss::{LossFunction, Targets};

/// So many ranges of probability are looked at for calibration.
const RANGES: usize = 10;

/// How well a model tells classes apart. Nothing of it was sanitised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// How many rows of each class (outer) were taken for each (inner).
    pub confusion: Vec<Vec<u64>>,
    /// How each class does.
    pub by_class: Vec<ClassMeasure>,
    /// F1: of the second of two classes, and of more the mean over those that there are.
    pub f1: Option<f64>,
    /// The chance that a row of the class is given a higher probability of it than one of another class: of the second of two classes, and of more the mean over those that there are.
    pub auc: Option<f64>,
    /// The expected calibration error: how far the probability of what is predicted is from how often that is right, on average over rows.
    pub calibration_error: f64,
    /// The same by ranges of probability, of those that have rows.
    pub reliability: Vec<Reliability>,
}

/// How one class does; nothing is said where there would be a division by 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassMeasure {
    /// How many rows are of it.
    pub rows: u64,
    /// The share that is right of what was taken for it.
    pub precision: Option<f64>,
    /// The share of it that was found.
    pub recall: Option<f64>,
    /// The harmonic mean of both.
    pub f1: Option<f64>,
    /// How well it is put before the others.
    pub auc: Option<f64>,
}

/// Predictions of about one probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reliability {
    /// From this probability
    pub from: f64,
    /// to this one.
    pub to: f64,
    /// So many rows
    pub rows: u64,
    /// were predicted with this probability on average,
    pub probability: f64,
    /// and this share of them is right.
    pub accuracy: f64,
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// The probability of each class, of one row's outputs; nothing where a number is predicted.
pub(crate) fn probabilities(z: &[f32], loss: LossFunction) -> Option<Vec<f64>> {
    match loss {
        LossFunction::Softmax => {
            let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let parts: Vec<f64> = z.iter().map(|&other| f64::from(other - most).exp()).collect();
            let total: f64 = parts.iter().sum();
            Some(parts.into_iter().map(|part| part / total).collect())
        }
        LossFunction::Logistic => {
            let yes = sigmoid(f64::from(z[0]));
            Some(vec![1.0 - yes, yes])
        }
        LossFunction::Squared | LossFunction::Huber { .. } | LossFunction::Poisson => None,
    }
}

/// The class that is predicted: the first of the likeliest.
pub(crate) fn likeliest(z: &[f32], loss: LossFunction) -> usize {
    match loss {
        LossFunction::Logistic => usize::from(z[0] > 0.0),
        _ => (0..z.len()).fold(0, |best, class| if z[class] > z[best] { class } else { best }),
    }
}

/// The class of each row; nothing where a number is predicted.
pub(crate) fn classes_of(targets: &Targets, loss: LossFunction) -> Option<Vec<usize>> {
    match targets {
        Targets::Classes { labels, .. } => Some(labels.iter().map(|&label| label as usize).collect()),
        Targets::Numbers { values, .. } if loss == LossFunction::Logistic => {
            Some(values.iter().map(|&value| usize::from(value > 0.5)).collect())
        }
        Targets::Numbers { .. } => None,
    }
}

impl Measures {
    /// Of outputs of so many numbers a row; nothing where a number is predicted.
    pub(crate) fn of(
        outputs: &[f32],
        width: usize,
        targets: &Targets,
        (loss, names): (LossFunction, Option<&[String]>),
    ) -> Option<Self> {
        let labels = classes_of(targets, loss)?;
        let rows: Vec<(usize, usize, Vec<f64>)> = outputs
            .chunks_exact(width)
            .zip(labels)
            .filter_map(|(z, label)| Some((label, likeliest(z, loss), probabilities(z, loss)?)))
            .collect();
        let many = if loss == LossFunction::Logistic { 2 } else { width };
        let classes = names.map_or_else(|| (0..many).map(|class| class.to_string()).collect(), <[String]>::to_vec);
        let mut confusion = vec![vec![0_u64; many]; many];
        for &(label, predicted, _) in &rows {
            confusion[label][predicted] += 1;
        }
        let by_class: Vec<ClassMeasure> = (0..many)
            .map(|class| {
                let scores = rows.iter().map(|(label, _, shares)| (shares[class], *label == class));
                ClassMeasure { auc: auc(scores.collect()), ..of_class(&confusion, class) }
            })
            .collect();
        let overall = |one: fn(&ClassMeasure) -> Option<f64>| match by_class.as_slice() {
            [_, second] => one(second),
            all => mean(all.iter().filter_map(one)),
        };
        let (f1, auc) = (overall(|class| class.f1), overall(|class| class.auc));
        let reliability = reliability(&rows);
        let off = |range: &Reliability| range.rows as f64 * (range.probability - range.accuracy).abs();
        let calibration_error = reliability.iter().map(off).sum::<f64>() / rows.len().max(1) as f64;
        Some(Self { classes, confusion, by_class, f1, auc, calibration_error, reliability })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, many) = values.fold((0.0, 0_u64), |(sum, many), value| (sum + value, many + 1));
    (many > 0).then(|| sum / many as f64)
}

/// A class by what it was taken for, without its place among the others.
fn of_class(confusion: &[Vec<u64>], class: usize) -> ClassMeasure {
    let right = confusion[class][class];
    let rows: u64 = confusion[class].iter().sum();
    let taken: u64 = confusion.iter().map(|row| row[class]).sum();
    let share = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
    let f1 = share(2 * right, rows + taken).filter(|_| rows > 0);
    ClassMeasure { rows, precision: share(right, taken), recall: share(right, rows), f1, auc: None }
}

/// The chance that a row of a class has a higher score than one that is not; equal scores count half (Mann and Whitney).
fn auc(mut scores: Vec<(f64, bool)>) -> Option<f64> {
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut won, mut own) = (0_u64, 0.0, 0_u64);
    for same in scores.chunk_by(|a, b| a.0 == b.0) {
        let mine = same.iter().filter(|(_, mine)| *mine).count() as u64;
        let others = same.len() as u64 - mine;
        won += mine as f64 * (below as f64 + 0.5 * others as f64);
        below += others;
        own += mine;
    }
    (own > 0 && below > 0).then(|| won / (own as f64 * below as f64))
}

/// How often what is predicted is right, by how probable the model finds it.
fn reliability(rows: &[(usize, usize, Vec<f64>)]) -> Vec<Reliability> {
    let mut ranges = [(0_u64, 0.0, 0_u64); RANGES];
    for (label, predicted, shares) in rows {
        let share = shares[*predicted];
        let range = &mut ranges[((share * RANGES as f64) as usize).min(RANGES - 1)];
        *range = (range.0 + 1, range.1 + share, range.2 + u64::from(label == predicted));
    }
    let one = |(place, &(rows, sum, right)): (usize, &(u64, f64, u64))| {
        let (from, to) = (place as f64 / RANGES as f64, (place + 1) as f64 / RANGES as f64);
        let (probability, accuracy) = (sum / rows as f64, right as f64 / rows as f64);
        Reliability { from, to, rows, probability, accuracy }
    };
    ranges.iter().enumerate().filter(|(_, range)| range.0 > 0).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logit of a probability.
    fn logit(share: f64) -> f32 {
        (share / (1.0 - share)).ln() as f32
    }

    fn two(rows: &[(f64, u8)]) -> Measures {
        let outputs: Vec<f32> = rows.iter().map(|&(share, _)| logit(share)).collect();
        let values = rows.iter().map(|&(_, label)| f32::from(label)).collect();
        let targets = Targets::Numbers { values, width: 1 };
        Measures::of(&outputs, 1, &targets, (LossFunction::Logistic, None)).unwrap()
    }

    /// By hand: of 0.9, 0.8, 0.4 for yes and 0.7, 0.4, 0.1 for no, 7 of 9 pairs are in order and one is even.
    #[test]
    fn two_classes_are_measured_as_by_hand() {
        let found = two(&[(0.9, 1), (0.8, 1), (0.4, 1), (0.7, 0), (0.4, 0), (0.1, 0)]);
        assert_eq!(found.confusion, [[2, 1], [1, 2]]);
        assert!((found.auc.unwrap() - 7.5 / 9.0).abs() < 1e-12, "{found:?}");
        assert!((found.f1.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        let yes = found.by_class[1];
        assert_eq!((yes.rows, yes.precision, yes.recall), (3, Some(2.0 / 3.0), Some(2.0 / 3.0)));
        // Sure by 0.9 (twice, right), 0.8 (right), 0.7 (wrong), 0.6 (right and wrong).
        let off = (2.0 * 0.1 + 0.2 + 0.7 + 2.0 * 0.1) / 6.0;
        assert!((found.calibration_error - off).abs() < 1e-6, "{found:?}");
        assert_eq!(found.reliability.iter().map(|range| range.rows).sum::<u64>(), 6);
    }

    #[test]
    fn a_class_without_rows_is_not_measured() {
        let found = two(&[(0.9, 1), (0.2, 1)]);
        assert_eq!((found.auc, found.by_class[0].f1, found.by_class[0].recall), (None, None, None));
        assert_eq!(found.by_class[1].recall, Some(0.5));
    }

    #[test]
    fn several_classes_are_measured_one_against_the_others() {
        let outputs = [3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0];
        let targets = Targets::Classes { labels: vec![0, 1, 2, 2], classes: 3 };
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let found = Measures::of(&outputs, 3, &targets, (LossFunction::Softmax, Some(&names))).unwrap();
        assert_eq!(found.confusion, [[1, 0, 0], [0, 1, 0], [0, 1, 1]]);
        assert_eq!(found.classes, names);
        let f1 = [1.0, 2.0 / 3.0, 2.0 / 3.0].iter().sum::<f64>() / 3.0;
        assert!((found.f1.unwrap() - f1).abs() < 1e-12, "{found:?}");
        // A number has no classes.
        let numbers = Targets::Numbers { values: vec![1.0], width: 1 };
        assert!(Measures::of(&[1.0], 1, &numbers, (LossFunction::Squared, None)).is_none());
    }
}
