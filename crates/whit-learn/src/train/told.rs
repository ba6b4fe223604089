//! Learning from labels that were told before the first step, by randomised response: steps then read nothing that is private, and cost nothing.
//!
//! It is the baseline that [`Way::Label`] is compared with.

use super::{Learner, Plain};
use crate::bound::Tape;
use crate::error::LearnError;
use crate::label::{self, NoisyLabels, PriorResponse, TwoStages};
use crate::loss::{Loss, Targets};
use crate::model::{Inputs, Model};
use crate::source::Rows;
use crate::tensor;
use whit_core::{Charge, Ladder, Mechanism};
use whit_noise::{Ratio, Replay, below};

/// How labels are told.
#[derive(Debug, Clone, PartialEq)]
pub struct Telling {
    /// What all answers together cost one label.
    pub epsilon: Ratio,
    /// How many classes there are.
    pub classes: u32,
    /// The share of rows whose labels are told without a prior. Where it is less than 1, a model that is learned from these says what is likely of the others.
    pub first: f64,
}

/// What makes the priors of the other rows of what was told of the first.
pub type Priors<'a> = Box<dyn Fn(&NoisyLabels) -> Result<Vec<f64>, LearnError> + 'a>;

impl From<label::Error> for LearnError {
    fn from(error: label::Error) -> Self {
        Self::Data(format!("{error}; {}", error.hint()))
    }
}

impl Telling {
    /// What it costs to tell the labels of so many rows of these users, rung by rung. Whose they are, and how many, is public under a label unit.
    pub fn charge(&self, rows: usize, users: Option<&[u64]>, ladder: &Ladder) -> Result<Charge, LearnError> {
        let mut response = PriorResponse::flat(self.classes, self.epsilon, rows)?;
        for rung in ladder.rungs().iter().filter(|rung| !rung.unit.key().is_empty()) {
            response = response.grouped(rung.unit.clone(), users.ok_or_else(nobody)?)?;
        }
        Ok(ladder.rungs().iter().map(|rung| (rung.clone(), response.cost(rung))).collect())
    }

    fn first_rows(&self, rows: usize) -> usize {
        (self.first.clamp(0.0, 1.0) * rows as f64).ceil() as usize
    }
}

fn nobody() -> LearnError {
    LearnError::Data("the labels of a user need a column of users".to_owned())
}

/// The users of rows, in this order.
fn owners(rows: &Rows, order: &[u32]) -> Result<Vec<u64>, LearnError> {
    let users = rows.users().ok_or_else(nobody)?;
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
fn targets(loss: Loss, labels: Vec<u32>, classes: u32) -> Targets {
    match loss {
        Loss::Softmax => Targets::Classes { labels, classes },
        _ => Targets::Numbers { values: labels.iter().map(|&label| label as f32).collect(), width: 1 },
    }
}

impl<M: Model> Learner<M> {
    /// What tells the labels of all rows, in the order of [`labels`](Self::labels).
    pub fn telling(&self, telling: &Telling) -> Result<TwoStages<Priors<'_>>, LearnError> {
        let order = shuffled(self.rows.len());
        let (first, classes) = (telling.first_rows(order.len()), telling.classes);
        let mut of_users = Vec::new();
        for rung in self.plan.ladder().rungs().iter().filter(|rung| !rung.unit.key().is_empty()) {
            of_users.push((rung.unit.clone(), owners(&self.rows, &order)?));
        }
        let learn: Priors<'_> = Box::new(move |told| {
            let (first, others) = order.split_at(first);
            self.prior(first, others, told.labels(), classes)
        });
        let rows = self.rows.len();
        let mut stages = TwoStages::new(classes, telling.epsilon, rows, first, learn)?;
        for (unit, owners) in of_users {
            stages = stages.grouped(unit, &owners)?;
        }
        Ok(stages)
    }

    /// The labels of all rows, to be told. As private as they are.
    pub fn labels(&self) -> Result<Vec<u32>, LearnError> {
        let order = shuffled(self.rows.len());
        match (self.rows.targets(), self.loss) {
            (Targets::Classes { labels, .. }, Loss::Softmax) => {
                Ok(order.iter().map(|&row| labels[row as usize]).collect())
            }
            (Targets::Numbers { values, .. }, Loss::Logistic) => {
                Ok(order.iter().map(|&row| values[row as usize] as u32).collect())
            }
            _ => Err(LearnError::Data("labels are told of classes, and the loss is about numbers".to_owned())),
        }
    }

    /// Puts what was told in the place of all labels, before the first step.
    pub fn tell(&mut self, told: &NoisyLabels) -> Result<(), LearnError> {
        let order = shuffled(self.rows.len());
        if !self.plan.told() || self.told {
            return Err(LearnError::Data(
                "the plan is not for labels that were told, or these are told already".to_owned(),
            ));
        }
        if told.labels().len() != order.len() {
            let (given, rows) = (told.labels().len(), order.len());
            return Err(LearnError::Data(format!("{given} labels were told, and there are {rows} rows")));
        }
        let mut labels = vec![0; order.len()];
        for (&row, &label) in order.iter().zip(told.labels()) {
            labels[row as usize] = label;
        }
        let targets = targets(self.loss, labels, told.classes());
        self.loss.check(&targets, self.model.outputs())?;
        self.rows.measure_against(targets);
        self.told = true;
        Ok(())
    }

    /// What a model that is learned from told labels of the first rows thinks of the others.
    fn prior(&self, first: &[u32], others: &[u32], told: &[u32], classes: u32) -> Result<Vec<f64>, LearnError> {
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
            let labels = drawn.iter().map(|&at| told[at]).collect();
            plain.step(self.rows.pick(&rows)?, width, &targets(self.loss, labels, classes))?;
        }
        let mut priors = Vec::with_capacity(others.len() * classes as usize);
        for rows in others.chunks(self.tuning.rows_at_once.max(1)) {
            let inputs = Inputs::of(self.rows.pick(rows)?, width);
            let mut outputs = tensor::floats(plain.model().forward(&inputs, &mut Tape::open())?);
            if self.loss == Loss::Logistic {
                outputs = outputs.iter().flat_map(|&z| [0.0, z]).collect(); // of two classes, one stays at 0
            }
            priors.extend(label::priors(&outputs, classes));
        }
        Ok(priors)
    }
}
