//! Learning from noisy labels, reported by randomised response before the first step: steps then read nothing that is private, and cost nothing.
//!
//! It is the baseline that [`Way::Label`] is compared with.

use super::{Learner, Plain};
use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::label::{self, NoisyLabels, ReportedLabels, TwoStages};
use crate::layer::Tape;
use crate::loss::{LossFunction, Targets};
use crate::plan::PlanError;
use crate::reporting::PlannedLabels;
use crate::source::Rows;
use crate::tensor;
use whit_noise::{Replay, below};

/// What makes the priors of the other rows of the noisy labels of the first.
pub(crate) type Priors<'a> = Box<dyn Fn(&NoisyLabels) -> Result<Vec<f64>, LearnError> + 'a>;

impl From<label::Error> for LearnError {
    fn from(error: label::Error) -> Self {
        Self::Data(format!("{error}; {}", error.hint()))
    }
}

/// The users of rows, in this order.
fn owners(rows: &Rows, order: &[u32]) -> Result<Vec<u64>, LearnError> {
    let users = rows.users().ok_or(label::Error::NoUsers)?;
    Ok(order.iter().map(|&row| users[row as usize]).collect())
}

/// Rows in an order that depends on their number alone: files may be sorted by label, and those that come first are to have some of each.
fn shuffled(rows: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let mut coins = Replay::new(0x5_4f1e);
    for place in (1..rows).rev() {
        order.swap(place, below(place as u64 + 1, &mut coins) as usize);
    }
    order
}

/// What labels are measured against, under this loss.
fn targets(loss: LossFunction, labels: Vec<u32>, classes: u32) -> Targets {
    match loss {
        LossFunction::Softmax => Targets::Classes { labels, classes },
        _ => Targets::Numbers { values: labels.iter().map(|&label| label as f32).collect(), width: 1 },
    }
}

impl<M: Model> Learner<M> {
    /// The mechanism that reports the labels of all rows as the plan has it, in the order of [`labels`](Self::labels). Rows that would lose more by it than the plan
    /// was made for are refused: how many there are, and whose, is public.
    pub(crate) fn label_mechanism(&self) -> Result<TwoStages<Priors<'_>>, LearnError> {
        let PlannedLabels { reporting, price } = self.plan.labels().ok_or(PlanError::NoLabels)?;
        let order = shuffled(self.rows.len());
        let (first, classes) = (reporting.first_rows(order.len()), reporting.classes);
        let mut of_users = Vec::new();
        for rung in self.plan.ladder().rungs().iter().filter(|rung| !rung.unit.key().is_empty()) {
            of_users.push((rung.unit.clone(), owners(&self.rows, &order)?));
        }
        let learn: Priors<'_> = Box::new(move |noisy| {
            let (first, others) = order.split_at(first);
            self.prior(first, others, noisy.labels(), classes)
        });
        let rows = self.rows.len();
        let mut stages = TwoStages::new(classes, reporting.epsilon, rows, first, learn)?;
        for (unit, owners) in of_users {
            stages = stages.grouped(unit, &owners)?;
        }
        if price.covers(stages.price()) { Ok(stages) } else { Err(PlanError::OtherLabels.into()) }
    }

    /// The labels of all rows, to be reported. As private as they are.
    pub(crate) fn labels(&self) -> Result<Vec<u32>, LearnError> {
        let order = shuffled(self.rows.len());
        match (self.rows.targets(), self.loss) {
            (Targets::Classes { labels, .. }, LossFunction::Softmax) => {
                Ok(order.iter().map(|&row| labels[row as usize]).collect())
            }
            (Targets::Numbers { values, .. }, LossFunction::Logistic) => {
                Ok(order.iter().map(|&row| values[row as usize] as u32).collect())
            }
            _ => Err(LearnError::Data("noisy labels are of classes, and the loss is about numbers".to_owned())),
        }
    }

    /// Puts noisy labels in the place of all labels, before the first step. They must be reported in the way that the plan was made for, by coins as secret as its own,
    /// and of rows that lose no more by it.
    pub fn take_noisy_labels(&mut self, reported: &ReportedLabels) -> Result<(), LearnError> {
        let planned = self.plan.labels().ok_or(PlanError::NoLabels)?;
        if !reported.are_by(&planned.reporting, self.plan.source().protects()) {
            return Err(PlanError::OtherLabels.into());
        }
        self.label_mechanism()?; // only to see whether the price is that of these rows
        if self.has_noisy_labels {
            return Err(LearnError::Data("the labels are noisy already".to_owned()));
        }
        let (noisy, order) = (reported.noisy(), shuffled(self.rows.len()));
        if noisy.labels().len() != order.len() {
            let (given, rows) = (noisy.labels().len(), order.len());
            return Err(LearnError::Data(format!("{given} noisy labels are given, and there are {rows} rows")));
        }
        let mut labels = vec![0; order.len()];
        for (&row, &label) in order.iter().zip(noisy.labels()) {
            labels[row as usize] = label;
        }
        let targets = targets(self.loss, labels, noisy.classes());
        self.loss.check(&targets, self.model.outputs())?;
        self.rows.measure_against(targets);
        self.has_noisy_labels = true;
        Ok(())
    }

    /// What a model that is learned from noisy labels of the first rows thinks of the others.
    fn prior(&self, first: &[u32], others: &[u32], noisy: &[u32], classes: u32) -> Result<Vec<f64>, LearnError> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        if first.is_empty() {
            return Ok(vec![1.0; others.len() * classes as usize]);
        }
        let width = self.rows.width();
        let mut plain = Plain::new(self.model.clone(), self.loss, self.optimiser.clone());
        let mut coins = Replay::new(0x9_0105);
        let batch = (self.plan.divisor().round() as usize).clamp(1, first.len());
        for _ in 0..self.plan.steps() {
            let drawn: Vec<usize> = (0..batch).map(|_| below(first.len() as u64, &mut coins) as usize).collect();
            let rows: Vec<u32> = drawn.iter().map(|&at| first[at]).collect();
            let labels = drawn.iter().map(|&at| noisy[at]).collect();
            plain.step(self.rows.pick(&rows)?, width, &targets(self.loss, labels, classes))?;
        }
        let mut priors = Vec::with_capacity(others.len() * classes as usize);
        for rows in others.chunks(self.tuning.rows_at_once.max(1)) {
            let inputs = Inputs::of(self.rows.pick(rows)?, width);
            let mut outputs = tensor::floats(plain.model().forward(&inputs, &mut Tape::open())?);
            if self.loss == LossFunction::Logistic {
                outputs = outputs.iter().flat_map(|&z| [0.0, z]).collect(); // of two classes, one stays at 0
            }
            priors.extend(label::priors(&outputs, classes));
        }
        Ok(priors)
    }
}
