//! One training as a mechanism: reserved as a whole, read after that, and taken step by step, from where it stands.

use super::{Card, Recipe, Trained, shapes_of};
use crate::bound::Seen;
use crate::checkpoint::{Checkpoint, CheckpointFile, Standing};
use crate::custom::Model;
use crate::error::LearnError;
use crate::params::Layout;
use crate::plan::{NoiseSource, Plan, PlanError};
use crate::scatter::Scatter;
use crate::train::Learner;
use std::cell::{OnceCell, RefCell};
use whit_account::desk::{Coins, Desk, DeskError, Instead, ReleaseRequest, Served, Start};
use whit_account::ledger::Question;
use whit_core::mechanism::{Mechanism, SanitiseError};
use whit_core::release::{Note, ReadError, ReleaseError, Reservation, release_reproducibly_without_privacy};
use whit_core::{Accuracy, Cost, Kind, Ledger, Progress, Rung, Sealed};
use whit_noise::{Entropy, Os, Replay};

/// Whoever watches a run: what it sees is as private as the rows. [`LearnError::Stopped`] ends it after a checkpoint, from which it can go on.
pub type AfterStep<'a, M> = dyn FnMut(&Learner<M>, &Seen) -> Result<(), LearnError> + 'a;

/// One training, from where it stands to the last step: a mechanism whose noise is drawn step by step.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the plan's ladder.
///
/// # Claim
/// What is released costs what [`Plan::charge`] says, however often the process was killed and went on, and whatever was copied or put back meanwhile. No row is read
/// before the charge is reserved. Noise that comes from a seed costs everything, and without noise nothing is released.
///
/// # Why
/// Rows are read by [`TrainingRun::read`], which is shown the reservation, and by the steps of what that began. A run that is not interrupted is [`Learner`]'s claim. One that is goes on from the checkpoint that the ledger
/// noted last, with the noise of its own that every step has. The ledger notes a checkpoint only after the one that it noted before, so of two processes that go on from one
/// checkpoint the first to note wins and the other ends, with nothing of it seen; an older checkpoint, or a copy of one that was gone on from, is not the last and
/// is refused. What was written and not noted yet is gone on with and not drawn anew. So all that can be seen is one way of so many steps, each a step
/// of the plan.
///
/// # Tried by
/// `a_training_that_is_killed_pays_once`, `a_checkpoint_that_was_put_back_is_refused` and `of_two_runs_on_one_entry_one_wins`, in the tests of `whit`, and
/// `rows_are_read_after_the_reservation` and `a_learner_without_noise_is_not_released`.
pub struct TrainingRun<'a, M: Model> {
    task: Task<'a, M>,
    keeping: Keeping<'a>,
    begun: OnceCell<Begun<M>>,
    watch: RefCell<&'a mut AfterStep<'a, M>>,
}

/// A learner that has read its rows, and the entry under which it learns: what a run makes after its reservation. Steps read rows again and again, with noise in between.
pub struct Begun<M: Model> {
    learner: RefCell<Learner<M>>,
    entry: u64,
}

/// Reads the rows, for what was reserved, and makes a learner that stands at its start.
pub type Make<'a, M> = dyn Fn(&Reservation) -> Result<Learner<M>, LearnError> + 'a;

/// What is to be learned: all that is known before a row is read, and how rows become a learner.
pub struct Task<'a, M: Model> {
    /// What is promised, and where noise comes from.
    pub plan: Plan,
    /// What the model will say of itself.
    pub card: Card,
    /// How rows become its input.
    pub recipe: Recipe,
    /// Reads the rows; called once, after the reservation.
    pub make: Box<Make<'a, M>>,
}

/// Where checkpoints go and how often, and where the run goes on.
pub struct Keeping<'a> {
    /// The hash of what is meant.
    pub run: String,
    /// Where they go.
    pub file: &'a CheckpointFile,
    /// After so many steps each.
    pub every: u64,
    /// The checkpoint to go on from; the start where there is none.
    pub from: Option<Standing>,
    /// Whether that one was written and not noted yet.
    pub unnoted: bool,
}

impl<'a, M: Model> TrainingRun<'a, M> {
    /// A run that has not begun. What is learned without noise is not released, and a card of another plan is none.
    pub fn new(task: Task<'a, M>, keeping: Keeping<'a>, watch: &'a mut AfterStep<'a, M>) -> Result<Self, PlanError> {
        if task.plan.source() == NoiseSource::Off {
            return Err(PlanError::NoNoise);
        }
        if !task.card.is_of(&task.plan) {
            return Err(PlanError::OtherCard);
        }
        Ok(Self { task, keeping, begun: OnceCell::new(), watch: RefCell::new(watch) })
    }

    /// The learner, where the run left it; nothing where it did not get so far as to read rows.
    pub fn into_learner(self) -> Option<Learner<M>> {
        self.begun.into_inner().map(|begun| begun.learner.into_inner())
    }

    /// Reads the rows, for what was reserved: what a [`release`](whit_core::release()) of this run calls.
    pub fn read(&self, reservation: &Reservation) -> Result<&Begun<M>, ReadError> {
        let mut learner = (self.task.make)(reservation)?;
        // What was reserved and what the card says is this plan's, of noise and coins and all.
        if *learner.plan() != self.task.plan {
            return Err(LearnError::from(PlanError::OtherPlan).into());
        }
        // The directions leave with the model, so what they were found from is to be part of its ε. Where labels are the unit, features are public.
        let mut rungs = self.rungs().iter().filter(|rung| rung.unit.kind() != Kind::Label);
        let paid = |scatter: &Scatter| rungs.all(|rung| self.task.plan.promises(rung, &scatter.cost(rung)));
        if !learner.directions_of().is_none_or(paid) {
            return Err(LearnError::from(PlanError::OtherDirections).into());
        }
        if let Some(Standing { checkpoint, .. }) = &self.keeping.from {
            let theta = checkpoint.theta.iter().map(|&value| value as f32).collect::<Vec<f32>>();
            let average = checkpoint.average.clone().map(|average| average.validated(theta.len())).transpose();
            let average = average.map_err(LearnError::from)?;
            learner.resume(theta, checkpoint.optimiser.clone(), average, checkpoint.taken)?;
        }
        let entry = reservation.number();
        Ok(self.begun.get_or_init(|| Begun { learner: RefCell::new(learner), entry }))
    }

    /// The units that pay, the protected one first.
    fn rungs(&self) -> &[Rung] {
        self.task.plan.ladder().rungs()
    }

    /// What noise is drawn from apart from the learner's own; a seed where it has one.
    fn seeded(&self) -> Option<Replay> {
        match self.task.plan.source() {
            NoiseSource::Secret { .. } => None,
            NoiseSource::Replay { seed } => Some(Replay::new(seed)),
            NoiseSource::Off => Some(Replay::new(0)),
        }
    }

    /// Writes where the learner stands under an entry, has it noted, and returns its hash.
    fn checkpoint(
        &self,
        (learner, entry): (&Learner<M>, u64),
        after: Option<&str>,
        note: &mut Note<'_>,
    ) -> Result<String, LearnError> {
        let Keeping { run, file, .. } = &self.keeping;
        let hash = file.write(&Checkpoint::new(run, entry, after, learner.state()))?;
        self.noted(learner.taken(), hash, note)
    }

    /// Has the next checkpoint noted, and puts it in its place.
    fn noted(&self, step: u64, checkpoint: String, note: &mut Note<'_>) -> Result<String, LearnError> {
        let progress = Progress { step, checkpoint };
        note(&progress).map_err(LearnError::Ledger)?;
        self.keeping.file.advance()?;
        Ok(progress.checkpoint)
    }

    fn everything(&self, begun: &Begun<M>, note: &mut Note<'_>) -> Result<Trained, LearnError> {
        let (mut learner, entry) = (begun.learner.borrow_mut(), begun.entry);
        let learner = &mut *learner;
        let mut stands = match &self.keeping.from {
            None => self.checkpoint((learner, entry), None, note)?,
            Some(Standing { checkpoint, hash }) if self.keeping.unnoted => {
                self.noted(checkpoint.taken, hash.clone(), note)?
            }
            Some(Standing { hash, .. }) => hash.clone(),
        };
        let steps = learner.plan().steps();
        while learner.taken() < steps {
            let seen = learner.step()?;
            // Before the checkpoint, so that nothing is left unseen of what is not done again.
            let watched = (self.watch.borrow_mut())(learner, &seen);
            let last = learner.taken() == steps;
            let stopped = match watched {
                Err(stopped @ LearnError::Stopped { .. }) => Some(stopped).filter(|_| !last),
                other => other.map(|()| None)?,
            };
            // Where it is stopped it goes on from later: no step is taken twice.
            if last || stopped.is_some() || learner.taken().is_multiple_of(self.keeping.every.max(1)) {
                stands = self.checkpoint((learner, entry), Some(&stands), note)?;
            }
            if let Some(stopped) = stopped {
                return Err(stopped);
            }
        }
        let (card, recipe) = (self.task.card.clone(), self.task.recipe.clone());
        let (layout, theta) = Layout::of(&learner.model()?.merged());
        Ok(Trained { card, recipe, projection: learner.projection().cloned(), shapes: shapes_of(&layout), theta })
    }
}

impl<M: Model> Mechanism for TrainingRun<'_, M> {
    type Exact = Begun<M>;
    type Noisy = Trained;

    fn cost(&self, rung: &Rung) -> Cost {
        self.task.plan.cost(rung)
    }

    fn sanitise(&self, begun: &Begun<M>, entropy: &mut dyn Entropy) -> Result<Sealed<Trained>, SanitiseError> {
        self.sanitise_in_steps(begun, entropy, &mut |_| Ok(()))
    }

    /// The learner has its own source of noise, of the kind that its plan's noise was made with.
    fn sanitise_in_steps(
        &self,
        begun: &Begun<M>,
        _: &mut dyn Entropy,
        note: &mut Note<'_>,
    ) -> Result<Sealed<Trained>, SanitiseError> {
        Ok(Sealed::new(self.everything(begun, note)?))
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        // How far a model is from the one without noise is nothing that a plan knows.
        Accuracy { within: f64::INFINITY, confidence }
    }
}

/// Reserves the whole charge, reads the rows, takes all steps, commits the model, and opens it: for whoever keeps a ledger of their own.
pub fn train<M: Model>(run: &TrainingRun<'_, M>, ledger: &mut dyn Ledger) -> Result<Trained, ReleaseError> {
    let read = |reservation: &Reservation| run.read(reservation);
    let released = match run.seeded() {
        None => whit_core::release(run, read, run.rungs(), ledger, &mut Os),
        Some(mut coins) => release_reproducibly_without_privacy(run, read, run.rungs(), ledger, &mut coins),
    }?;
    let mut trained = released.value;
    trained.card.entry = Some(released.entry);
    Ok(trained)
}

/// The same at the desk: from the ledger where the same was learned before, else learned now, under the entry that `start` says.
pub fn train_once<M: Model>(
    run: &TrainingRun<'_, M>,
    question: &Question,
    start: Start,
    desk: &mut Desk<'_>,
) -> Result<Served<Trained>, DeskError> {
    let (mut seeded, mut secret) = (run.seeded(), Os);
    let coins = seeded.as_mut().map_or(Coins::Secret(&mut secret), Coins::Seeded);
    let request = ReleaseRequest { question, rungs: run.rungs(), coins, start, instead: Instead::Nothing };
    let decode = |bytes: &[u8]| Trained::of_file(bytes).map_err(|error| error.to_string());
    let mut served = desk.once(request, run, |reservation| run.read(reservation), decode)?;
    served.value.card.entry = Some(served.entry);
    Ok(served)
}

/// One hash of all that a run means: a checkpoint of another is not gone on with. Which data it is about, the ledger knows, and a file is not to show it.
pub fn run_hash(meaning: &str, partition: Option<&str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [meaning, partition.unwrap_or_default()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
