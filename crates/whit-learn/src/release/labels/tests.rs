use super::*;
use crate::custom::Linear;
use crate::loss::{LossFunction, Targets};
use crate::optimise::{Optimiser, Rule, Schedule};
use crate::reporting;
use crate::source::{Owners, Rows};
use crate::store::Store;
use crate::train::{LabelReporting, Parts, Tuning};
use crate::{Count, Draft};
use whit_account::ledger::{Budget, Memory};
use whit_core::release::CommitError;
use whit_core::unit::Caps;
use whit_core::{Charge, Kind, Ladder, Persist, Refusal, Unit};

const ROWS: usize = 60;

/// A ledger that allows everything.
struct Endless;

impl Ledger for Endless {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(1))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

fn at(epsilon: &str) -> LabelReporting {
    LabelReporting { epsilon: epsilon.parse().unwrap(), classes: 2, first: 0.5 }
}

fn draft(key: &[&str]) -> Draft {
    let ladder = Ladder::new(vec![Unit::label(key, "y")], Caps::default(), Kind::Label).unwrap();
    Draft::new(ladder, "1".parse().unwrap(), Count::Counted(ROWS as u64), 1e4, 3)
}

fn plan(reporting: LabelReporting) -> Plan {
    draft(&[]).after_labels(reporting, ROWS, None).unwrap()
}

/// Six users of ten rows each.
fn users() -> Vec<u64> {
    (0..ROWS as u64).map(|row| row / 10).collect()
}

fn learner(plan: &Plan) -> Learner<Linear> {
    let mut coins = Replay::new(11);
    let features = (0..2 * ROWS).map(|_| coins.bits(8) as f32 / 256.0 - 0.5).collect();
    let values = (0..ROWS).map(|_| coins.bits(1) as f32).collect();
    let (users, targets) = (users(), Targets::Numbers { values, width: 1 });
    let owners = Owners { users: Some(&users), elements: None };
    let of_users = !plan.ladder().protected().unit.key().is_empty();
    let kind = if of_users { Kind::User } else { Kind::Label };
    let rows = Rows::new(Store::of(features, 2).unwrap(), targets, kind, owners).unwrap();
    let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.5 }, None, 2).unwrap();
    let (model, loss, tuning) = (Linear::at_zero(2, 1, false), LossFunction::Logistic, Tuning::default());
    Learner::new(Parts { model, plan: plan.clone(), loss, rows, optimiser, average: None, tuning }).unwrap()
}

fn reported(plan: &Plan) -> ReportedLabels {
    LabelRun::new(plan).unwrap().release(|_| Ok(learner(plan)), &mut Endless).unwrap()
}

/// No caller writes the charge down, and no number of rows or list of users makes it vanish.
#[test]
fn a_plan_after_labels_is_never_free() {
    let refused = |key: &[&str], reporting, rows, users: Option<&[u64]>| {
        let PlanError::Labels(error) = draft(key).after_labels(reporting, rows, users).unwrap_err() else {
            panic!("refused for its labels")
        };
        error
    };
    assert_eq!(refused(&[], at("1"), 0, None), reporting::Error::NoRows);
    assert_eq!(refused(&["user"], at("1"), 0, Some(&[])), reporting::Error::NoRows);
    assert_eq!(refused(&["user"], at("1"), ROWS, None), reporting::Error::NoUsers);
    assert!(matches!(refused(&["user"], at("1"), ROWS, Some(&[])), reporting::Error::Shape { .. }));
    assert!(matches!(refused(&[], at("0"), ROWS, None), reporting::Error::Epsilon(_)));
    let of_users = draft(&["user"]).after_labels(at("1"), ROWS, Some(&users())).unwrap();
    for (plan, epsilon) in [(plan(at("1")), 1.0), (of_users, 10.0)] {
        let rung = plan.ladder().protected().clone();
        assert!((plan.loss(0.0).unwrap()[0].1.upper - epsilon).abs() < 1e-9);
        assert!(!plan.label_cost(&rung).leaves().is_empty());
        let open = plan.drawing(NoiseSource::Replay { seed: 1 });
        assert_eq!(open.label_cost(&rung), Cost::Everything);
    }
    assert_eq!(LabelRun::new(&draft(&[]).with_noise(1.0).unwrap()).unwrap_err(), PlanError::NoLabels);
}

/// Labels of a higher ε, of other stages, or whose coins come again are not those that a plan promises.
#[test]
fn labels_of_another_mechanism_are_refused() {
    let planned = plan(at("1"));
    let forged = [
        plan(at("40")),
        plan(LabelReporting { first: 1.0, ..at("1") }),
        plan(LabelReporting { classes: 3, first: 1.0, ..at("1") }),
        planned.clone().drawing(NoiseSource::Replay { seed: 4 }),
        planned.clone().drawing(NoiseSource::Off),
    ];
    let mut learner = learner(&planned);
    for other in forged {
        let error = learner.take_noisy_labels(&reported(&other)).unwrap_err().to_string();
        assert_eq!(error, PlanError::OtherLabels.to_string());
        assert!(learner.step().is_err(), "the labels are still exact");
        // Nor does a run of this plan report those of a learner that goes by another.
        let error = LabelRun::new(&planned).unwrap().release(|_| Ok(self::learner(&other)), &mut Endless).unwrap_err();
        assert!(error.to_string().contains("another plan than was paid for"), "{error}");
    }
    learner.take_noisy_labels(&reported(&planned)).unwrap();
    learner.step().unwrap();
    let with_noise = draft(&[]).with_noise(1.0).unwrap();
    assert!(self::learner(&with_noise).take_noisy_labels(&reported(&planned)).is_err());
}

/// A plan that says of each user that they have one label is not one for users of ten.
#[test]
fn labels_of_more_rows_than_were_paid_for_are_refused() {
    let each: Vec<u64> = (0..ROWS as u64).collect();
    let of = |users: &[u64]| draft(&["user"]).after_labels(at("1"), users.len(), Some(users)).unwrap();
    for cheap in [of(&each), of(&each[..1])] {
        let error = LabelRun::new(&cheap).unwrap().release(|_| Ok(learner(&cheap)), &mut Endless).unwrap_err();
        assert!(error.to_string().contains("other rows than the plan was made for"), "{error}");
        let honest = reported(&of(&users()));
        assert!(learner(&cheap).take_noisy_labels(&honest).is_err());
    }
}

#[test]
fn labels_are_reported_as_they_are_as_often_as_the_odds_say() {
    let planned = plan(at("1")).drawing(NoiseSource::Replay { seed: 5 });
    let exact = learner(&planned).labels().unwrap();
    let reported = reported(&planned);
    assert_eq!(reported.noisy().labels().len(), ROWS);
    let same = exact.iter().zip(reported.noisy().labels()).filter(|(a, b)| a == b).count();
    assert!((30..60).contains(&same), "{same} of 60 are reported as they are");
}

/// What a ledger has from the mechanism alone, as it was written before plans knew how labels are reported, is served and not read again.
#[test]
fn labels_that_a_ledger_kept_before_are_served() {
    let planned = plan(at("1"));
    let (learner, rungs) = (learner(&planned), planned.ladder().rungs());
    let budgets = [Budget::new("visits", rungs[0].unit.clone(), 1.5, 0.0)];
    let text = |text: &str| text.to_owned();
    let question = Question {
        dataset: text("visits"),
        analyst: text("alice"),
        meaning: text("labels"),
        text: text("labels"),
        fingerprint: text("blake3:1"),
        partition: None,
    };
    let mut ledger = Memory::new();
    let mut desk = Desk::new(&mut ledger, &budgets);
    let (mechanism, exact) = (learner.label_mechanism().unwrap(), learner.labels().unwrap());
    let (coins, start, instead) = (Coins::Secret(&mut Os), Start::Open, Instead::Nothing);
    let request = ReleaseRequest { question: &question, rungs, coins, start, instead };
    let decode = |bytes: &[u8]| NoisyLabels::read(bytes).ok_or_else(|| text("no labels"));
    let before = desk.once(request, &mechanism, |_| Ok(&exact[..]), decode).unwrap();
    let run = LabelRun::new(&planned).unwrap();
    let unread = |_: &Reservation| -> Result<Learner<Linear>, ReadError> { panic!("rows are read") };
    let served = run.release_once(unread, &question, &mut desk).unwrap();
    assert!(served.stored && served.value.noisy() == &before.value && served.charge == before.charge);
    assert_eq!(served.value.to_bytes(), before.value.to_bytes());
    assert_eq!(served.charge, [(rungs[0].clone(), planned.label_cost(&rungs[0]))]);
    // Under another meaning they are reported anew, and the budget is asked.
    let other = Question { meaning: text("others"), ..question.clone() };
    let refused = run.release_once(unread, &other, &mut desk).unwrap_err();
    assert!(matches!(refused, DeskError::Refused { .. }), "{refused}");
    // Labels of other classes are not taken for these.
    let three = plan(LabelReporting { classes: 3, ..at("1") });
    let error = LabelRun::new(&three).unwrap().release_once(unread, &question, &mut desk).unwrap_err();
    assert!(matches!(error, DeskError::Unreadable { .. }), "{error}");
}
