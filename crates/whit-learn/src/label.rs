//! Labels through randomised response, helped by what is known of them beforehand: the baseline for label units.
//!
//! Noisy labels are released once and anything may then be learned from them, with any loss and as often as one likes.
//! [`Way::Label`](crate::Way::Label) sanitises gradients instead, which asks for less noise where there are many rows
//! to a step and for a δ.

pub use crate::reporting::Error;

use crate::error::LearnError;
use crate::loss::Targets;
use crate::reporting::{LabelPrice, LabelReporting, responses};
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::response::Response;
use whit_core::{Accuracy, Cost, Mechanism, Persist, Rung, Sealed, Unit};
use whit_noise::{Entropy, Ratio, below, bernoulli};

#[cfg(test)]
mod tests;

/// Randomised response among the labels that a prior finds likely: RRWithPrior of Ghazi, Golowich, Kumar, Manurangsi
/// and Zhang (2021).
///
/// Each row has a prior over the classes, and its answer is one of the k likeliest. A label among them is reported with
/// probability `e^ε/(e^ε + k − 1)`, else another of the k, all alike; in place of any other label one of the k is reported,
/// all alike. k is that for which the truth is reported most often if the prior is right, and then, as they prove, no
/// mechanism with this ε reports it more often. A flat prior makes it randomised response among all classes.
///
/// # Neighbours
/// The labels of rows of which one differs. All else about the rows is public, and so are the priors: whoever makes
/// them must not look at the labels that they are for. Units that are not labels are not protected; of a unit of
/// several labels each gives an answer of its own.
///
/// # Claim
/// For labels `x` and `y` of a row and every answer `z`, `P[M(x) = z] ≤ e^ε · P[M(y) = z]`; so the answers of all rows
/// together cost one label ε.
///
/// # Why
/// Write `1 + a/b` for `e^ε` as a fraction, rounded down. An answer has one of three probabilities, `(b + a)/(kb + a)`
/// for the truth, `b/(kb + a)` for another label than the truth, and `1/k` where the truth is not among the k. The
/// first is `1 + a/b` times the second, the third lies between them, as `k(b + a) ≥ kb + a ≥ kb`, and whatever cannot
/// be reported has probability 0 under every label. k and the k labels depend on the prior alone. The coins have exactly
/// these biases, and the claimed ε is `ln(1 + a/b)` rounded up. Rows answer independently, and a neighbour differs in
/// one of them.
///
/// # Tried by
/// `no_answer_is_likelier_than_the_claim_allows`, exactly, `every_string_of_coins_follows_the_law`,
/// `priors_are_all_that_decides_what_can_be_reported`, `units_that_are_no_labels_are_promised_nothing`.
///
/// ```
/// use whit_learn::label::PriorResponse;
/// // Two rows and three classes. Of the first row it is known that its label is hardly ever 2.
/// let response = PriorResponse::new(3, "1".parse()?, &[0.6, 0.39, 0.01, 1.0, 1.0, 1.0])?;
/// assert_eq!(response.likely(0), [0, 1]);
/// assert_eq!(response.likely(1), [0, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PriorResponse {
    classes: u32,
    price: LabelPrice,
    /// Among k labels, at k − 2.
    among: Vec<Response>,
    /// What may be reported of each row, the likeliest first.
    likely: Vec<Vec<u32>>,
}

impl PriorResponse {
    /// For labels below `classes`, at most this ε, and a prior for each row: one weight for each class, of any sum, row
    /// by row.
    pub fn new(classes: u32, epsilon: Ratio, priors: &[f64]) -> Result<Self, Error> {
        let width = classes as usize;
        let mut this = Self::flat(classes, epsilon, 0)?;
        if !priors.len().is_multiple_of(width) {
            let expected = format!("{classes} for each row");
            return Err(Error::Shape { what: "weights", given: priors.len(), expected });
        }
        this.likely = priors.chunks_exact(width).map(|prior| this.choose(prior)).collect::<Result<_, _>>()?;
        Ok(this)
    }

    /// Where nothing is known of the labels of so many rows: randomised response among all classes.
    pub fn flat(classes: u32, epsilon: Ratio, rows: usize) -> Result<Self, Error> {
        let among = responses(classes, epsilon)?;
        let price = LabelPrice::of_answer(among[0]);
        Ok(Self { classes, price, among, likely: vec![(0..classes).collect(); rows] })
    }

    /// The same, for which one unit of several labels, such as all of one user's, has those of the rows with one owner.
    /// Who owns a row is public under a label unit, and so is how many rows that are.
    pub fn grouped(mut self, unit: Unit, owners: &[u64]) -> Result<Self, Error> {
        self.price.group(unit, owners, self.likely.len())?;
        Ok(self)
    }

    /// The likeliest labels, as many as make the truth come out most often.
    fn choose(&self, prior: &[f64]) -> Result<Vec<u32>, Error> {
        if prior.iter().any(|weight| !(weight.is_finite() && *weight >= 0.0))
            || prior.iter().all(|weight| *weight == 0.0)
        {
            return Err(Error::Prior);
        }
        let mut order: Vec<u32> = (0..self.classes).collect();
        order.sort_by(|&a, &b| prior[b as usize].total_cmp(&prior[a as usize]));
        let (mut mass, mut best) = (0.0, (0.0, 1));
        for (place, &label) in order.iter().enumerate() {
            mass += prior[label as usize];
            let truth = mass * self.truth(place + 1).to_f64();
            if truth > best.0 {
                best = (truth, place + 1);
            }
        }
        order.truncate(best.1);
        Ok(order)
    }

    /// The probability of the truth among k labels, one of which it is.
    fn truth(&self, k: usize) -> Ratio {
        if k < 2 { Ratio::ONE } else { *self.among[k - 2].truth() }
    }

    /// How many rows have a prior.
    pub fn rows(&self) -> usize {
        self.likely.len()
    }

    /// What may be reported of a row, the likeliest first.
    pub fn likely(&self, row: usize) -> &[u32] {
        &self.likely[row]
    }

    /// The probability of each answer of a row with this label, exactly.
    pub fn law(&self, row: usize, label: u32) -> Vec<Ratio> {
        let likely = self.likely(row);
        let mut law = vec![Ratio::ZERO; self.classes as usize];
        for &reported in likely {
            law[reported as usize] = match (likely.contains(&label), likely.len()) {
                (true, k) if reported == label => self.truth(k),
                (true, k) => *self.among[k - 2].indicator().off(),
                (false, k) => Ratio::from(k as u64).inverse().unwrap_or(Ratio::ONE), // at least one may be reported
            };
        }
        law
    }

    /// The answer of one row.
    fn answer(&self, row: usize, label: u32, entropy: &mut dyn Entropy) -> u32 {
        let likely = &self.likely[row];
        let k = likely.len();
        let pick = |place: u64| likely[place as usize];
        match likely.iter().position(|&reported| reported == label) {
            _ if k == 1 => likely[0],
            None => pick(below(k as u64, entropy)),
            Some(_) if bernoulli(&self.truth(k), entropy) => label,
            Some(own) => {
                let other = below(k as u64 - 1, entropy);
                pick(if other < own as u64 { other } else { other + 1 })
            }
        }
    }

    fn answers(&self, labels: &[u32], entropy: &mut dyn Entropy) -> Result<Vec<u32>, SanitiseError> {
        if labels.len() != self.rows() {
            return Err(SanitiseError::Length { given: labels.len(), expected: self.rows() });
        }
        if labels.iter().any(|label| *label >= self.classes) {
            return Err(SanitiseError::Domain { size: u64::from(self.classes) });
        }
        Ok(labels.iter().enumerate().map(|(row, &label)| self.answer(row, label, entropy)).collect())
    }
}

impl Mechanism for PriorResponse {
    type Exact = [u32];
    type Noisy = NoisyLabels;

    fn cost(&self, rung: &Rung) -> Cost {
        self.price.of(rung)
    }

    fn sanitise(&self, exact: &[u32], entropy: &mut dyn Entropy) -> Result<Sealed<NoisyLabels>, SanitiseError> {
        let labels = self.answers(exact, entropy)?;
        Ok(Sealed::new(NoisyLabels { labels, classes: self.classes }))
    }

    /// The error of any one answer is 0 when it is true and 1 when it is not, which is certain where the truth is none
    /// of what may be reported.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let all = self.classes as usize;
        let surely =
            self.likely.iter().all(|likely| likely.len() == all) && confidence <= self.truth(all).to_f64_down();
        Accuracy { within: if surely { 0.0 } else { 1.0 }, confidence }
    }
}

/// Labels as randomised response reported them, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisyLabels {
    labels: Vec<u32>,
    classes: u32,
}

impl NoisyLabels {
    /// Row by row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// How many classes there are.
    pub fn classes(&self) -> u32 {
        self.classes
    }

    /// What a ledger kept; nothing where the bytes are others. What noise is in bytes from elsewhere is not known, so only who asks the ledger reads them.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (classes, rest) = bytes.split_first_chunk::<8>()?;
        let (rows, rest) = rest.split_first_chunk::<8>()?;
        let (labels, odd) = rest.as_chunks::<4>();
        let classes = u32::try_from(u64::from_le_bytes(*classes)).ok()?;
        let labels: Vec<u32> = labels.iter().map(|label| u32::from_le_bytes(*label)).collect();
        let whole = odd.is_empty() && labels.len() as u64 == u64::from_le_bytes(*rows);
        (whole && labels.iter().all(|label| *label < classes)).then_some(Self { labels, classes })
    }

    /// To be learned from.
    pub fn targets(&self) -> Targets {
        Targets::Classes { labels: self.labels.clone(), classes: self.classes }
    }
}

impl Persist for NoisyLabels {
    /// How many classes and rows there are, and each label in four bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = u64::from(self.classes).to_bytes();
        bytes.extend(self.labels.len().to_bytes());
        bytes.extend(self.labels.iter().flat_map(|label| label.to_le_bytes()));
        bytes
    }
}

/// The labels of all rows of a learner as its plan has them reported: what [`Learner::take_noisy_labels`](crate::Learner::take_noisy_labels) takes, and nothing else.
///
/// [`LabelRun`](crate::release::LabelRun) is the one way to them: labels that another mechanism made noisy, or that somebody wrote down, are [`NoisyLabels`] at most.
///
/// ```compile_fail
/// use whit_learn::label::{NoisyLabels, ReportedLabels};
/// fn forged(labels: NoisyLabels) -> ReportedLabels {
///     ReportedLabels { labels } // its fields are private
/// }
/// ```
///
/// ```compile_fail
/// let bytes = [2_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat();
/// let _ = whit_learn::label::NoisyLabels::read(&bytes); // only who asks the ledger reads what it kept
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedLabels {
    labels: NoisyLabels,
    by: LabelReporting,
    /// Whether their coins were secret.
    secret: bool,
}

impl ReportedLabels {
    /// Of labels that were made noisy in this way just now, or by whoever asked the ledger before.
    pub(crate) fn new(labels: NoisyLabels, by: LabelReporting, secret: bool) -> Self {
        Self { labels, by, secret }
    }

    /// The labels, in an order of their own.
    pub fn noisy(&self) -> &NoisyLabels {
        &self.labels
    }

    /// Whether they were reported in this way, by such coins.
    pub(crate) fn are_by(&self, reporting: &LabelReporting, secret: bool) -> bool {
        self.by == *reporting && self.secret == secret
    }
}

impl Persist for ReportedLabels {
    /// The labels alone: the question that a ledger keeps them under says how they were made.
    fn to_bytes(&self) -> Vec<u8> {
        self.labels.to_bytes()
    }
}

/// What a model of classes says of rows, as priors: the softmax of its outputs, row by row.
///
/// A model may say it of rows whose labels it was not learned from, or learned from under a charge of its own.
pub fn priors(outputs: &[f32], classes: u32) -> Vec<f64> {
    let mut priors = Vec::with_capacity(outputs.len());
    for row in outputs.chunks(classes.max(1) as usize) {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f64> = row.iter().map(|z| f64::from(z - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        priors.extend(weights.iter().map(|weight| weight / total));
    }
    priors
}

/// Randomised response in two stages: the labels of the first rows make a model, whose word on the other rows is the
/// prior for theirs (LP-2ST of Ghazi, Golowich, Kumar, Manurangsi and Zhang, 2021).
///
/// # Neighbours
/// As for [`PriorResponse`]. Which rows come first is public, and so is all that `learn` reads besides the noisy labels
/// which it is given; it must not know any label itself.
///
/// # Claim
/// As for [`PriorResponse`]: all answers together cost one label ε, not 2ε.
///
/// # Why
/// The answers are `(u, v)` with probability `P[u | labels of the first rows] · P[v | labels of the others, prior(u)]`.
/// A neighbour's label is in one of the two factors, and that one changes by at most `e^ε`: the second for every prior,
/// so also for the one that u makes. What `learn` draws for itself is independent of the labels given u.
///
/// # Tried by
/// `two_stages_lose_what_one_does`, exactly, and `two_stages_beat_plain_response`, for what they are good for.
#[derive(Debug, Clone)]
pub struct TwoStages<L> {
    first: PriorResponse,
    epsilon: Ratio,
    rows: usize,
    price: LabelPrice,
    learn: L,
}

impl<L: Fn(&NoisyLabels) -> Result<Vec<f64>, LearnError>> TwoStages<L> {
    /// Of `rows` rows the `first` ones answer by randomised response among all classes; `learn` makes priors for the
    /// others of their answers, row by row.
    pub fn new(classes: u32, epsilon: Ratio, rows: usize, first: usize, learn: L) -> Result<Self, Error> {
        if first > rows {
            let expected = format!("at most all {rows}");
            return Err(Error::Shape { what: "first rows", given: first, expected });
        }
        let first = PriorResponse::flat(classes, epsilon, first)?;
        Ok(Self { price: first.price.clone(), first, epsilon, rows, learn })
    }

    /// The same, for a unit of several labels: see [`PriorResponse::grouped`].
    pub fn grouped(mut self, unit: Unit, owners: &[u64]) -> Result<Self, Error> {
        self.price.group(unit, owners, self.rows)?;
        Ok(self)
    }

    /// What it costs.
    pub(crate) fn price(&self) -> &LabelPrice {
        &self.price
    }

    /// The answers of all rows.
    pub(crate) fn answers(&self, exact: &[u32], entropy: &mut dyn Entropy) -> Result<NoisyLabels, SanitiseError> {
        if exact.len() != self.rows {
            return Err(SanitiseError::Length { given: exact.len(), expected: self.rows });
        }
        let classes = self.first.classes;
        // Before anything is drawn: how far it got is not to depend on a label of the second stage.
        if exact.iter().any(|label| *label >= classes) {
            return Err(SanitiseError::Domain { size: u64::from(classes) });
        }
        let (first, second) = exact.split_at(self.first.rows());
        let mut noisy = NoisyLabels { labels: self.first.answers(first, entropy)?, classes };
        let priors = (self.learn)(&noisy)?;
        let next = PriorResponse::new(classes, self.epsilon, &priors);
        let next = next.map_err(LearnError::from)?;
        noisy.labels.extend(next.answers(second, entropy)?);
        Ok(noisy)
    }
}

impl<L: Fn(&NoisyLabels) -> Result<Vec<f64>, LearnError>> Mechanism for TwoStages<L> {
    type Exact = [u32];
    type Noisy = NoisyLabels;

    fn cost(&self, rung: &Rung) -> Cost {
        self.price.of(rung)
    }

    fn sanitise(&self, exact: &[u32], entropy: &mut dyn Entropy) -> Result<Sealed<NoisyLabels>, SanitiseError> {
        self.answers(exact, entropy).map(Sealed::new)
    }

    /// The error of any one answer is 0 when it is true and 1 when it is not; what a model thinks likely need not hold
    /// the truth.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: 1.0, confidence }
    }
}
