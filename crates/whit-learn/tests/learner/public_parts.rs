//! Feature and label units, of whose rows a part is public: what is private and what is public in a gradient, and labels that are noisy before the first step.

use super::ladder::ladder;
use super::{Data, Endless, WIDTH, by_hand, data, is_near, learner, numbers, plan};
use whit_core::unit::Caps;
use whit_core::{Change, Cost, Kind, Ladder, Rung, Unit};
use whit_learn::custom::Linear;
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::model::{Activation, Perceptron};
use whit_learn::release::LabelRun;
use whit_learn::train::{LabelReporting, label_gradients};
use whit_learn::{Count, Draft, Learner, NoiseSource, Owners, Padding, Plan, Rows, Store, Way};
use whit_noise::{Entropy, Replay};

/// The private and the public part of a feature or label unit are the whole gradient together, when everybody is drawn.
#[test]
fn private_and_public_parts_make_up_the_gradient() {
    let data = data(40, 3);
    let (steps, size) = (30, 0.5);
    let expected = by_hand(&data, |row| row as u64, f64::INFINITY, size, steps);
    let padding = Padding::Mean(vec![0.25, -0.5]);
    let feature = Way::Feature { private: vec![0, 2], padding, public: 1.0 };
    for (kind, way) in [(Kind::Feature, feature), (Kind::Label, Way::Label)] {
        let plan = plan(kind, "1", 40, 4.0, steps);
        let mut learner = learner(&data, kind, plan, way, LossFunction::Logistic, size, NoiseSource::Off);
        for _ in 0..steps {
            learner.step().unwrap();
        }
        is_near(learner.theta(), &expected, 5e-5);
    }
}

/// Rows brought together by user, under a label or feature unit of whole users.
fn of_users(
    data: &Data,
    unit: Unit,
    declared: u64,
    way: Way,
    loss: LossFunction,
    size: f64,
    steps: u64,
) -> Learner<Linear> {
    let kind = unit.kind();
    let ladder = Ladder::new(vec![unit], Caps::default(), kind).unwrap();
    let plan =
        Draft::new(ladder, "1".parse().unwrap(), Count::Declared(declared), 64.0, steps).with_noise(1.0).unwrap();
    learner(data, Kind::User, plan, way, loss, size, NoiseSource::Off)
}

/// Users have between 1 and many rows here. Both parts go down the mean over users of a user's mean loss; and where another number of users was declared than there
/// is, both are scaled alike.
#[test]
fn a_user_counts_once_in_the_private_part_and_in_the_public_one() {
    let mut data = data(40, 3);
    data.users = (0..40).map(|row| if row < 30 { 0 } else { row / 5 }).collect();
    let (steps, size, users) = (30, 0.5, 3.0);
    let padding = Padding::Mean(vec![0.25, -0.5]);
    let feature = Way::Feature { private: vec![0, 2], padding, public: 1.0 };
    for declared in [3, 5] {
        let scaled = size * users / declared as f64;
        let expected = by_hand(&data, |row| data.users[row], f64::INFINITY, scaled, steps);
        for (unit, way) in
            [(Unit::feature(&["user"], &["b", "y"]), feature.clone()), (Unit::label(&["user"], "y"), Way::Label)]
        {
            let mut learner = of_users(&data, unit, declared, way, LossFunction::Logistic, size, steps);
            for _ in 0..steps {
                learner.step().unwrap();
            }
            is_near(learner.theta(), &expected, 5e-5);
        }
    }
}

/// 400 users: one in ten has 60 rows, of another sort than the others' single ones. Labels follow one model for all of them, which is found.
#[test]
fn the_truth_is_found_with_users_who_are_unequal() {
    let truth = [1.0, -1.5, 0.5];
    let mut entropy = Replay::new(0x0e0a1);
    let mut data = Data { features: Vec::new(), labels: Vec::new(), users: Vec::new(), topics: Vec::new() };
    for user in 0..400_u64 {
        let busy = user % 10 == 0;
        for _ in 0..if busy { 60 } else { 1 } {
            let mut row = numbers(WIDTH, &mut entropy);
            row[0] += if busy { 2.0 } else { 0.0 };
            let z: f64 = row.iter().zip(truth).map(|(&x, t)| f64::from(x) * t).sum();
            let label = (entropy.bits(53) as f64) * 2_f64.powi(-53) < 1.0 / (1.0 + (-z).exp());
            data.features.extend(row);
            data.labels.push(f32::from(u8::from(label)));
            data.users.push(user);
            data.topics.push(0);
        }
    }
    let steps = 400;
    let padding = Padding::Mean(vec![0.0, 0.0]);
    let feature = Way::Feature { private: vec![0, 2], padding, public: 1.0 };
    for (unit, way) in [(Unit::label(&["user"], "y"), Way::Label), (Unit::feature(&["user"], &["b", "y"]), feature)] {
        let mut learner = of_users(&data, unit, 400, way, LossFunction::Logistic, 2.0, steps);
        for _ in 0..steps {
            learner.step().unwrap();
        }
        // 400 users of one label's worth each determine a parameter to about 0.25; with two weightings it was 0.9 and more off.
        is_near(learner.theta(), &truth, 0.6);
    }
}

/// Nine of ten labels are no. The label's part is clipped and the public one is not, so that a clip below the longest gradient takes from the few yeses alone: all are predicted
/// as no. At the longest gradient, which features alone decide, the model is that of plain descent.
#[test]
fn labels_at_the_longest_gradient_are_not_lost() {
    let mut entropy = Replay::new(0x1abe);
    let mut data = Data { features: Vec::new(), labels: Vec::new(), users: Vec::new(), topics: Vec::new() };
    for row in 0..400 {
        let yes = row % 10 == 0;
        data.features.extend([if yes { 2.0 } else { -2.0 } + numbers(1, &mut entropy)[0], 3.0, 1.0]);
        data.labels.push(f32::from(u8::from(yes)));
        data.users.push(row);
        data.topics.push(0);
    }
    let label = |clip: f64| {
        let plan = plan(Kind::Label, "1", 400, clip, 200);
        learner(&data, Kind::Label, plan, Way::Label, LossFunction::Logistic, 0.5, NoiseSource::Off)
    };
    let rows = {
        let (features, targets) = (
            Store::of(data.features.clone(), WIDTH).unwrap(),
            Targets::Numbers { values: data.labels.clone(), width: 1 },
        );
        Rows::new(features, targets, Kind::Label, Owners::default()).unwrap()
    };
    let longest = rows.longest_label_gradient(false).unwrap();
    let exact =
        data.features.chunks(WIDTH).map(|row| row.iter().map(|x| x * x).sum::<f32>().sqrt()).fold(0.0, f32::max);
    assert!((longest - f64::from(exact)).abs() < 1e-5);
    assert!((rows.longest_label_gradient(true).unwrap() - longest.hypot(1.0)).abs() < 1e-5);
    let yeses = |mut learner: Learner<Linear>| {
        for _ in 0..200 {
            learner.step().unwrap();
        }
        let predicted = |row: &[f32]| row.iter().zip(learner.theta()).map(|(x, t)| x * t).sum::<f32>() > 0.0;
        data.features.chunks(WIDTH).filter(|row| predicted(row)).count()
    };
    assert_eq!(yeses(label(0.5)), 0, "the majority is all that is left");
    assert_eq!(yeses(label(longest)), 40);
    let model = Linear::at_zero(WIDTH, 1, false);
    let gradients =
        |clip: f64, most: usize| label_gradients(&model, LossFunction::Logistic, &rows, clip, most).unwrap().unwrap();
    assert!((gradients(0.5, 1000).longest - longest).abs() < 1e-5 && gradients(0.5, 10).longest <= longest);
    assert_eq!(
        (gradients(0.5, 1000).beyond, gradients(longest, 1000).beyond, gradients(0.5, 7).beyond),
        (1.0, 0.0, 1.0)
    );
    // Of many classes, and of several layers, it is the longest of any label.
    let mut entropy = Replay::new(3);
    let deep = Perceptron::new(&[WIDTH, 4, 3], Activation::Tanh, 0.0, &mut entropy);
    let all = label_gradients(&deep, LossFunction::Softmax, &rows, 1.0, 400).unwrap().unwrap();
    assert!(all.longest > longest.min(1.0) && all.beyond > 0.0, "{all:?}");
    assert_eq!(
        label_gradients(&model, LossFunction::Squared, &rows, 1.0, 400).unwrap(),
        None,
        "numbers may be as large as they like"
    );
}

/// Draws of padding are independent: the private and the public batch do not share them, or the noise in them would cancel (F6).
#[test]
fn padding_is_drawn_anew_for_each_use() {
    let data = data(40, 3);
    let padding = Padding::Gaussian { mean: vec![0.0; 2], deviation: vec![3.0; 2] };
    let way = Way::Feature { private: vec![0, 2], padding, public: 1.0 };
    let plan = plan(Kind::Feature, "1", 40, 64.0, 1);
    let mut learner = learner(&data, Kind::Feature, plan, way, LossFunction::Logistic, 0.5, NoiseSource::Off);
    learner.step().unwrap();
    // With shared draws the padded parts would cancel, and this would be plain descent.
    let plain = by_hand(&data, |row| row as u64, f64::INFINITY, 0.5, 1);
    let apart = learner.theta().iter().zip(&plain).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max);
    assert!(apart > 1e-2, "{apart}");
}

/// A plan without noise is for noisy labels alone: before they are there no step is taken, and under any other plan none are taken in.
#[test]
fn steps_that_cost_nothing_wait_for_noisy_labels() {
    let label = || Ladder::new(vec![Unit::label(&[], "y")], Caps::default(), Kind::Label).unwrap();
    let draft = || Draft::new(label(), "1".parse().unwrap(), Count::Counted(60), 1e4, 3);
    let reporting = LabelReporting { epsilon: "1".parse().unwrap(), classes: 2, first: 0.5 };
    let data = data(60, 12);
    let learner = |plan: Plan, noise| learner(&data, Kind::Label, plan, Way::Mean, LossFunction::Logistic, 0.5, noise);
    let plan = || draft().after_labels(reporting.clone(), 60, None).unwrap();
    let rung = label().protected().clone();
    assert_eq!(plan().cost(&rung), Cost::Nothing);
    let user = Rung { unit: Unit::user("user", Change::Replace), holds: 1, disjoint: false, slices: None };
    assert_eq!(plan().cost(&user), Cost::Everything, "who has rows is not hidden");
    assert!((plan().loss(0.0).unwrap()[0].1.upper - 1.0).abs() < 1e-9, "the answers are what costs");
    assert!(
        Draft::new(ladder(Kind::Event), "1".parse().unwrap(), Count::Declared(60), 1e4, 3)
            .after_labels(reporting.clone(), 60, None)
            .is_err()
    );

    let mut waiting = learner(plan(), NoiseSource::Off);
    assert!(waiting.step().unwrap_err().to_string().contains("noisy labels"));
    assert_eq!(waiting.taken(), 0);
    let run = LabelRun::new(waiting.plan()).unwrap();
    let noisy = run.release(|_| Ok(&waiting), &mut Endless).unwrap();
    assert_eq!(noisy.noisy().labels().len(), 60);
    waiting.take_noisy_labels(&noisy).unwrap();
    waiting.step().unwrap();
    assert!(waiting.take_noisy_labels(&noisy).is_err(), "once");
    let mut with_noise = learner(draft().with_noise(1.0).unwrap(), NoiseSource::Off);
    assert!(with_noise.take_noisy_labels(&noisy).is_err() && with_noise.step().is_ok());
}
