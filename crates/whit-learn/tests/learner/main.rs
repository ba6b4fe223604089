//! The learner without noise against descent written out by hand, unit by unit.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[path = "../ladder/mod.rs"]
mod ladder;
mod public_parts;

use ladder::ladder;
use whit_core::release::{CommitError, Reservation, release_reproducibly_without_privacy};
use whit_core::unit::Caps;
use whit_core::{Change, Charge, Kind, Ladder, Ledger, Refusal, Unit};
use whit_learn::custom::Linear;
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::statistics::Sandwich;
use whit_learn::store::Builder;
use whit_learn::{
    Clip, Clipping, Count, Draft, Keep, Learner, NoiseSource, Owners, Padding, Parts, Plan, Rows, Store, Tuning, Way,
};
use whit_noise::{Entropy, Replay};

fn plan(kind: Kind, rate: &str, units: u64, norm: f64, steps: u64) -> Plan {
    Draft::new(ladder(kind), rate.parse().unwrap(), Count::Declared(units), norm, steps).with_noise(1.0).unwrap()
}

fn numbers(count: usize, entropy: &mut Replay) -> Vec<f32> {
    (0..count).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

const WIDTH: usize = 3;

struct Data {
    features: Vec<f32>,
    labels: Vec<f32>,
    users: Vec<u64>,
    topics: Vec<u64>,
}

fn data(rows: usize, seed: u64) -> Data {
    let mut entropy = Replay::new(seed);
    Data {
        features: numbers(rows * WIDTH, &mut entropy),
        labels: (0..rows).map(|_| entropy.bits(1) as f32).collect(),
        users: (0..rows).map(|_| entropy.bits(2)).collect(),
        topics: (0..rows).map(|_| entropy.bits(1)).collect(),
    }
}

fn learner(
    data: &Data,
    kind: Kind,
    plan: Plan,
    way: Way,
    loss: LossFunction,
    size: f64,
    noise: NoiseSource,
) -> Learner<Linear> {
    let features = Store::of(data.features.clone(), data.features.len() / data.labels.len()).unwrap();
    learner_of(features, data, kind, plan, way, loss, size, noise)
}

#[expect(clippy::too_many_arguments, reason = "the parts of a learner")]
fn learner_of(
    features: Store,
    data: &Data,
    kind: Kind,
    plan: Plan,
    way: Way,
    loss: LossFunction,
    size: f64,
    noise: NoiseSource,
) -> Learner<Linear> {
    let owners = Owners { users: Some(&data.users), elements: Some(&data.topics) };
    let targets = Targets::Numbers { values: data.labels.clone(), width: 1 };
    let rows = Rows::new(features, targets, kind, owners).unwrap();
    let model = Linear::at_zero(rows.width(), 1, false);
    let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size }, None, rows.width()).unwrap();
    let tuning = Tuning { rows_at_once: 7 };
    let plan = plan.stepping(way).unwrap().drawing(noise);
    Learner::new(Parts { model, plan, loss, rows, optimiser, average: None, tuning }).unwrap()
}

fn gradient_of(theta: &[f64], row: &[f32], label: f32) -> Vec<f64> {
    let z: f64 = theta.iter().zip(row).map(|(t, &x)| t * f64::from(x)).sum();
    let error = 1.0 / (1.0 + (-z).exp()) - f64::from(label);
    row.iter().map(|&x| error * f64::from(x)).collect()
}

/// Descent on the mean over bags of the bag's mean gradient, each clipped.
fn by_hand(data: &Data, bag_of: impl Fn(usize) -> u64, norm: f64, size: f64, steps: u64) -> Vec<f64> {
    let mut theta = vec![0.0; WIDTH];
    let rows = data.labels.len();
    let mut bags: Vec<u64> = (0..rows).map(&bag_of).collect();
    bags.sort_unstable();
    bags.dedup();
    for _ in 0..steps {
        let mut sum = vec![0.0; WIDTH];
        for &bag in &bags {
            let own: Vec<usize> = (0..rows).filter(|&row| bag_of(row) == bag).collect();
            let mut gradient = vec![0.0; WIDTH];
            for &row in &own {
                let of_row = gradient_of(&theta, &data.features[row * WIDTH..(row + 1) * WIDTH], data.labels[row]);
                gradient.iter_mut().zip(of_row).for_each(|(g, v)| *g += v / own.len() as f64);
            }
            let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let factor = if length > norm { norm / length } else { 1.0 };
            sum.iter_mut().zip(&gradient).for_each(|(s, g)| *s += factor * g);
        }
        theta.iter_mut().zip(&sum).for_each(|(t, s)| *t -= size * s / bags.len() as f64);
    }
    theta
}

fn is_near(found: &[f32], expected: &[f64], within: f64) {
    let error = found.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max);
    assert!(error <= within, "{found:?} is {error} away from {expected:?}");
}

#[test]
fn everything_without_noise_is_plain_descent() {
    let data = data(40, 1);
    let steps = 50;
    let (size, norm) = (0.5, 4.0); // no gradient is as long as that: nothing is clipped
    let bag = |kind: Kind, row: usize| match kind {
        Kind::Element => data.users[row] * 2 + data.topics[row],
        Kind::User => data.users[row],
        _ => row as u64,
    };
    for kind in [Kind::Event, Kind::Element, Kind::User] {
        let units = (0..40).map(|row| bag(kind, row)).collect::<std::collections::BTreeSet<_>>().len() as u64;
        let plan = plan(kind, "1", units, norm, steps);
        let mut learner = learner(&data, kind, plan, Way::Mean, LossFunction::Logistic, size, NoiseSource::Off);
        for _ in 0..steps {
            learner.step().unwrap();
        }
        is_near(learner.theta(), &by_hand(&data, |row| bag(kind, row), f64::INFINITY, size, steps), 2e-5);
        assert!(learner.step().unwrap_err().to_string().contains("are taken"), "a plan pays for so many steps");
    }
}

#[test]
fn bags_are_clipped_as_a_whole() {
    let data = data(40, 2);
    let (steps, size, norm) = (30, 1.0, 0.05);
    let bag = |row: usize| data.users[row] * 2 + data.topics[row];
    let units = (0..40).map(bag).collect::<std::collections::BTreeSet<_>>().len() as u64;
    let plan = plan(Kind::Element, "1", units, norm, steps);
    let mut learner = learner(&data, Kind::Element, plan, Way::Mean, LossFunction::Logistic, size, NoiseSource::Off);
    let mut clipped = 0;
    for _ in 0..steps {
        clipped += learner.step().unwrap().clipped;
    }
    assert!(clipped > 0);
    is_near(learner.theta(), &by_hand(&data, bag, norm, size, steps), 2e-5);
}

/// Rows of which hardly anything but rounding is left, so that the last bit decides which way they pull: one more row, of which nothing is to be learned, moves none
/// of them. (Kernels round differently for 60 rows and for 61.)
#[test]
fn what_a_row_adds_does_not_depend_on_who_else_is_drawn() {
    let (width, size) = (600, 1.0);
    let mut entropy = Replay::new(0x0b17);
    let features: Vec<f32> = numbers(60 * width, &mut entropy).iter().map(|x| x * 1e6).collect();
    let model = Linear::new(width, 1, &mut entropy);
    let (_, theta) = whit_learn::params::Layout::of(&model);
    // Targets are where the model is, as far as that can be said.
    let near = |row: &[f32]| row.iter().zip(&theta).map(|(x, t)| f64::from(*x) * f64::from(*t)).sum::<f64>() as f32;
    let labels: Vec<f32> = features.chunks(width).map(near).collect();
    let moved = |more: usize| {
        let features = [&features[..], &vec![0.0; more * width]].concat();
        let targets = Targets::Numbers { values: [&labels[..], &vec![theta[width]; more]].concat(), width: 1 };
        let rows = Rows::new(Store::of(features, width).unwrap(), targets, Kind::Event, Owners::default()).unwrap();
        let plan = plan(Kind::Event, "1", 60, 1.0, 1);
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size }, None, width + 1).unwrap();
        let (loss, tuning) = (LossFunction::Squared, Tuning::default());
        let plan = plan.drawing(NoiseSource::Off);
        let model = model.clone();
        let parts = Parts { model, plan, loss, rows, optimiser, average: None, tuning };
        let mut learner = Learner::new(parts).unwrap();
        let seen = learner.step().unwrap();
        assert_eq!((seen.rows, seen.bags), (60 + more, 60 + more));
        learner.theta().iter().zip(&theta).map(|(a, b)| f64::from(*a) - f64::from(*b)).collect::<Vec<_>>()
    };
    let alone = moved(0);
    assert!(alone.iter().map(|a| a * a).sum::<f64>().sqrt() > 0.05, "they do pull");
    for more in [1, 2, 3] {
        let apart = alone.iter().zip(moved(more)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        // Of sums of 60 in 32 bits, over the clip norm, and of θ itself.
        assert!(apart <= size * whit_learn::plan::SUMMATION / 60.0 + 1e-6, "{more} more: {apart}");
    }
}

/// Whatever is in a row, each step is taken: what is infinite or no number on the way contributes nothing, at every unit and in every way.
#[test]
fn no_row_makes_a_step_fail() {
    let mut entropy = Replay::new(5);
    let mut data = data(40, 13);
    let extremes = [f32::MAX, f32::MIN, 1e30, -1e30, f32::from_bits(1), 1e-30, 0.0];
    for _ in 0..40 {
        let at = entropy.bits(16) as usize % data.features.len();
        data.features[at] = extremes[entropy.bits(16) as usize % extremes.len()];
    }
    let feature = Way::Feature { private: vec![0, 2], padding: Padding::Mean(vec![0.0, 0.0]), public: 1.0 };
    let local = Way::Local { steps: 3, size: 10.0 };
    let ways = [
        (Kind::Event, Way::Mean),
        (Kind::Event, Way::Truncated),
        (Kind::Element, Way::Mean),
        (Kind::User, Way::Sum),
        (Kind::User, local),
        (Kind::Feature, feature),
        (Kind::Label, Way::Label),
    ];
    for loss in [LossFunction::Logistic, LossFunction::Squared, LossFunction::Poisson, LossFunction::Huber { at: 1.0 }]
    {
        for (kind, way) in &ways {
            for far in [false, true] {
                let mut data =
                    Data { features: data.features.clone(), labels: data.labels.clone(), ..self::data(40, 13) };
                if far && loss != LossFunction::Logistic {
                    data.labels[7] = f32::MAX;
                }
                let plan = plan(*kind, "1/2", 40, 1.0, 40);
                let noise = NoiseSource::Replay { seed: 9 };
                let mut learner = learner(&data, *kind, plan, way.clone(), loss, 10.0, noise);
                let mut emptied = 0;
                for step in 0..40 {
                    let seen = learner
                        .step()
                        .unwrap_or_else(|error| panic!("{loss:?}, {kind}, {way:?}, step {step}: {error}"));
                    emptied += seen.emptied;
                    assert!(learner.theta().iter().all(|value| value.is_finite()), "{loss:?}, {kind}, {way:?}");
                }
                assert!(
                    emptied > 0 || loss != LossFunction::Squared || *kind == Kind::Label,
                    "{loss:?}, {kind}, {way:?}: something was out of bounds"
                );
            }
        }
    }
}

/// E10: loss (θ − 1)²/2 from θ = 0 with α = 0.1 goes to 0.1; the printed update (15) goes to −0.1.
#[test]
fn an_update_goes_down() {
    let data = Data { features: vec![1.0], labels: vec![1.0], users: vec![0], topics: vec![0] };
    for way in [Way::Mean, Way::Sum, Way::Local { steps: 1, size: 0.1 }] {
        let plan = plan(Kind::Event, "1", 1, 8.0, 1);
        let mut learner = learner(&data, Kind::Event, plan, way, LossFunction::Squared, 0.1, NoiseSource::Off);
        learner.step().unwrap();
        assert!((learner.theta()[0] - 0.1).abs() < 1e-5, "{:?}", learner.theta());
    }
}

/// A step of 10 on (θ − 1)²/2 would go to 10; the truncated one stops where the linear model of the loss is zero, at 0.5.
#[test]
fn a_truncated_step_stops_where_its_model_ends() {
    let data = Data { features: vec![1.0], labels: vec![1.0], users: vec![0], topics: vec![0] };
    let plan = plan(Kind::Event, "1", 1, 8.0, 1);
    let mut learner = learner(&data, Kind::Event, plan, Way::Truncated, LossFunction::Squared, 10.0, NoiseSource::Off);
    learner.step().unwrap();
    assert!((learner.theta()[0] - 0.5).abs() < 1e-4, "{:?}", learner.theta());
}

/// Several local steps go as far as descent on the unit's own rows would.
#[test]
fn local_steps_are_descent_on_the_units_own_rows() {
    let data = data(12, 5);
    let one = Data { users: vec![0; 12], ..data };
    let (size, local) = (0.2, 5);
    let plan = plan(Kind::User, "1", 1, 64.0, 1);
    let way = Way::Local { steps: local, size };
    let mut learner = learner(&one, Kind::User, plan, way, LossFunction::Logistic, size, NoiseSource::Off);
    learner.step().unwrap();
    is_near(learner.theta(), &by_hand(&one, |_| 0, f64::INFINITY, size, u64::from(local)), 2e-5);
}

/// C10 and F3: the sum is divided by the expected number of bags, whoever was drawn.
#[test]
fn the_divisor_is_the_expected_number_of_bags() {
    let rows = 64;
    let data = Data {
        features: vec![1.0; rows],
        labels: vec![10.0; rows],
        users: (0..rows as u64).collect(),
        topics: vec![0; rows],
    };
    let plan = plan(Kind::Event, "1/4", rows as u64, 1.0, 20);
    let mut learner = learner(&data, Kind::Event, plan, Way::Mean, LossFunction::Squared, 1e-3, NoiseSource::Off);
    let mut before = 0.0;
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let seen = learner.step().unwrap();
        let moved = f64::from(learner.theta()[0]) - before;
        before = f64::from(learner.theta()[0]);
        // Every row's gradient is clipped to −1, so the sum is minus the number that was drawn.
        assert!((moved - 1e-3 * seen.bags as f64 / 16.0).abs() < 1e-6, "{moved} {}", seen.bags);
        sizes.insert(seen.bags);
    }
    assert!(sizes.len() > 3, "draws differ in size: {sizes:?}");
}

#[test]
fn an_empty_draw_is_noise_alone() {
    let data = data(3, 7);
    let plan = plan(Kind::Event, "1/1000000", 1_000_000, 1.0, 10);
    let noise = NoiseSource::Replay { seed: 1 };
    let mut learner = learner(&data, Kind::Event, plan, Way::Mean, LossFunction::Logistic, 1.0, noise);
    for _ in 0..10 {
        let before = learner.theta().to_vec();
        assert_eq!(learner.step().unwrap().bags, 0);
        assert!(learner.theta().iter().zip(&before).all(|(a, b)| a != b), "noise on every parameter");
    }
}

#[test]
fn micro_batches_change_nothing_but_the_last_bits() {
    let data = data(200, 9);
    let theta = |rows_at_once: usize| {
        let owners = Owners { users: Some(&data.users), elements: Some(&data.topics) };
        let targets = Targets::Numbers { values: data.labels.clone(), width: 1 };
        let rows = Rows::new(Store::of(data.features.clone(), WIDTH).unwrap(), targets, Kind::Event, owners).unwrap();
        let draft = Draft::new(ladder(Kind::Event), "1/2".parse().unwrap(), Count::Declared(200), 0.1, 10);
        let plan = Draft { clip: Clip { norm: 0.1, how: Clipping::Normalising }, ..draft }.with_noise(1.0).unwrap();
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1.0 }, None, WIDTH + 1).unwrap();
        let tuning = Tuning { rows_at_once };
        let model = Linear::at_zero(WIDTH, 1, true);
        let plan = plan.drawing(NoiseSource::Replay { seed: 5 });
        let parts = Parts { model, plan, loss: LossFunction::Logistic, rows, optimiser, average: None, tuning };
        let mut learner = Learner::new(parts).unwrap();
        for _ in 0..10 {
            learner.step().unwrap();
        }
        learner.theta().iter().map(|&value| f64::from(value)).collect::<Vec<_>>()
    };
    let (whole, parts) = (theta(100_000), theta(13));
    assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-5), "{whole:?} {parts:?}");
}

/// What a price rests on is looked at: rows brought together by another unit, a way that shows a part of the unit, more layers than were planned for, more units of a
/// user than the cap.
#[test]
fn what_would_make_a_price_wrong_is_refused() {
    let data = data(40, 11);
    let try_it = |rows_kind: Kind, ladder: Ladder, way: Way, how: Clipping| {
        let owners = Owners { users: Some(&data.users), elements: Some(&data.topics) };
        let targets = Targets::Numbers { values: data.labels.clone(), width: 1 };
        let rows = Rows::new(Store::of(data.features.clone(), WIDTH).unwrap(), targets, rows_kind, owners).unwrap();
        let draft = Draft::new(ladder, "1/2".parse().unwrap(), Count::Declared(40), 1.0, 5);
        let plan = Draft { clip: Clip { norm: 1.0, how }, ..draft }.with_noise(1.0).unwrap();
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1.0 }, None, WIDTH).unwrap();
        let model = Linear::at_zero(WIDTH, 1, false);
        let tuning = Tuning::default();
        let plan = plan.drawing(NoiseSource::Off).stepping(way).map_err(|error| error.to_string())?;
        let parts = Parts { model, plan, loss: LossFunction::Logistic, rows, optimiser, average: None, tuning };
        Learner::new(parts).and_then(|mut learner| learner.step()).map_err(|error| error.to_string())
    };
    let flat = Clipping::Flat;
    assert!(try_it(Kind::Event, ladder(Kind::Event), Way::Mean, flat).is_ok());
    let said = try_it(Kind::Event, ladder(Kind::User), Way::Mean, flat).unwrap_err();
    assert!(said.contains("the plan protects"), "{said}");
    let said = try_it(Kind::Event, ladder(Kind::Event), Way::Label, flat).unwrap_err();
    assert!(said.contains("another unit"), "{said}");
    let said = try_it(Kind::Event, ladder(Kind::Event), Way::Mean, Clipping::PerLayer { layers: 3 }).unwrap_err();
    assert!(said.contains("has 1"), "{said}");
    let feature = |mean: f32, public: f64| {
        let way = Way::Feature { private: vec![0], padding: Padding::Mean(vec![mean]), public };
        try_it(Kind::Feature, ladder(Kind::Feature), way, flat)
    };
    assert!(feature(0.5, 1.0).is_ok());
    assert!(feature(f32::NAN, 1.0).unwrap_err().contains("padding is of numbers"));
    assert!(feature(0.5, f64::INFINITY).unwrap_err().contains("at least 0"));
    let caps = Caps { elements_per_user: Some(1), rows_per_element: Some(64) };
    let units = vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)];
    let narrow = Ladder::new(units, caps, Kind::Element).unwrap();
    let said = try_it(Kind::Element, narrow, Way::Mean, flat).unwrap_err();
    assert!(said.contains("more than the 1 unit that"), "{said}");
}

/// Where rows lie changes no bit of any step: in memory, in a file, or some here and some there; scaled beforehand or when they are read.
#[test]
fn rows_in_a_file_are_learned_from_as_rows_in_memory_are() {
    let data = data(200, 11);
    let bytes: Vec<u8> = data.features.iter().map(|value| (value * 127.0 + 128.0) as u8).collect();
    let scale = |byte: &u8| f32::from(*byte).mul_add(1.0 / 127.0, -1.0);
    let of_bytes = Data { features: bytes.iter().map(scale).collect(), ..self::data(200, 11) };
    let steps = 25;
    let padding = Padding::Gaussian { mean: vec![0.5], deviation: vec![0.25] };
    let feature = Way::Feature { private: vec![1], padding, public: 1.0 };
    let local = Way::Local { steps: 2, size: 0.1 };
    for (kind, way) in
        [(Kind::Element, Way::Mean), (Kind::User, local), (Kind::Feature, feature), (Kind::Label, Way::Label)]
    {
        let plan = plan(kind, "1/3", 60, 1.0, steps);
        for memory in [0, 301, 599] {
            let builder = || Builder::new(WIDTH, Keep { memory, ..Keep::default() }).unwrap();
            let mut floats = builder();
            data.features.chunks(17 * WIDTH).for_each(|block| floats.push_floats(block).unwrap());
            let mut scaled = builder().scaled(1.0 / 127.0, -1.0);
            bytes.chunks(17 * WIDTH).for_each(|block| scaled.push_bytes(block).unwrap());
            for (data, store) in [(&data, floats.finish()), (&of_bytes, scaled.finish())] {
                assert!(store.memory() <= memory && store.memory() < (200 * WIDTH) as u64, "some of it lies in a file");
                let noise = NoiseSource::Replay { seed: 5 };
                let (loss, plan) = (LossFunction::Logistic, || plan.clone());
                let mut here = learner(data, kind, plan(), way.clone(), loss, 0.5, noise);
                let mut there = learner_of(store, data, kind, plan(), way.clone(), loss, 0.5, noise);
                for step in 0..steps {
                    assert_eq!(here.step().unwrap(), there.step().unwrap(), "{kind} {memory}: step {step}");
                    let bits = |of: &Learner<Linear>| of.theta().iter().map(|t| t.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&here), bits(&there), "{kind} {memory}: step {step}");
                }
            }
        }
    }
}

#[test]
fn projected_rows_are_learned_from_as_if_they_had_come_so() {
    use whit_account::filter::{Currency, Filter};
    use whit_core::release::release_reproducibly_without_privacy;
    use whit_learn::pca::Principal;
    use whit_learn::scatter::Scatter;
    let data = data(60, 9);
    let plan = || plan(Kind::Element, "1/2", 8, 1.0, 20);
    let owners = Owners { users: Some(&data.users), elements: Some(&data.topics) };
    let learner = |features: Store| {
        let targets = Targets::Numbers { values: data.labels.clone(), width: 1 };
        let rows = Rows::new(features, targets, Kind::Element, owners).unwrap();
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.3 }, None, 2).unwrap();
        let (model, loss, tuning) = (Linear::at_zero(2, 1, false), LossFunction::Logistic, Tuning::default());
        let plan = plan().drawing(NoiseSource::Replay { seed: 3 });
        Learner::new(Parts { model, plan, loss, rows, optimiser, average: None, tuning }).unwrap()
    };
    let mut projecting = learner(Store::of(data.features.clone(), WIDTH).unwrap());
    let scatter = Scatter::new(WIDTH, 2.0, "1/10".parse().unwrap()).unwrap();
    let sum = projecting.second_moments(&scatter).unwrap();
    let rungs = plan().ladder().rungs().to_vec();
    let mut ledger = whit_account::ledger::Memory::new();
    for rung in &rungs {
        let filter = Filter::new(1e6, 1e-6, Currency::Gaussian).unwrap();
        ledger = ledger.with_budget(rung.unit.clone(), filter);
    }
    let released =
        release_reproducibly_without_privacy(&scatter, |_| Ok(&sum), &rungs, &mut ledger, &mut Replay::new(5)).unwrap();
    let principal = Principal::of(&scatter, &released.value, 2).unwrap();
    let projection = whit_learn::Projection::of(&principal);
    // In blocks of so many rows, since the last bits of a row may differ with their number.
    let block: Vec<f32> = data.features.iter().copied().chain(std::iter::repeat(0.0)).take(4096 * WIDTH).collect();
    let mut projected = projection.apply(&block).unwrap();
    projected.truncate(2 * data.features.len() / WIDTH);
    let mut ready = learner(Store::of(projected, 2).unwrap());
    projecting.project(&principal).unwrap();
    for _ in 0..20 {
        projecting.step().unwrap();
        ready.step().unwrap();
    }
    assert_eq!(projecting.theta(), ready.theta());
    assert!(projecting.theta().iter().any(|&value| value != 0.0));
    assert_eq!(projecting.projection(), Some(&projection));
    assert!(projecting.project(&principal).is_err(), "once is enough");
}

/// Curvature and gradients of whole users at some θ, against sums written out by hand; with hardly any noise.
#[test]
fn what_intervals_are_made_of_is_summed_unit_by_unit() {
    let (data, theta) = (data(60, 11), [0.3_f32, -0.7, 0.2]);
    for (way, mean) in [(Way::Mean, true), (Way::Sum, false)] {
        let learner = learner(
            &data,
            Kind::User,
            plan(Kind::User, "1", 4, 1.0, 1),
            way,
            LossFunction::Logistic,
            0.1,
            NoiseSource::Off,
        );
        let sandwich = Sandwich::new(WIDTH, 9.0, 30.0, "0.000001".parse().unwrap()).unwrap();
        let sums = learner.sandwich(&sandwich, &theta).unwrap();
        let rungs = ladder(Kind::User).rungs().to_vec();
        let mut coins = Replay::new(1);
        let both =
            release_reproducibly_without_privacy(&sandwich, |_| Ok(&sums), &rungs, &mut Endless, &mut coins).unwrap();
        let moments = sandwich.moments(&both.value, 4.0).unwrap();
        assert!(moments.shortened.abs() < 1e-3, "no user is beyond these bounds");
        let tight = Sandwich::new(WIDTH, 9.0, 1e-3, "0.000001".parse().unwrap()).unwrap();
        let sums = learner.sandwich(&tight, &theta).unwrap();
        let all =
            release_reproducibly_without_privacy(&tight, |_| Ok(&sums), &rungs, &mut Endless, &mut coins).unwrap();
        assert!((tight.moments(&all.value, 4.0).unwrap().shortened - 1.0).abs() < 1e-3, "and all are beyond this one");
        let (mut curvature, mut outer) = ([0.0; WIDTH * WIDTH], [0.0; WIDTH * WIDTH]);
        for user in 0..4 {
            let own: Vec<usize> = (0..60).filter(|&row| data.users[row] == user).collect();
            let weight = if mean { 1.0 / own.len() as f64 } else { 1.0 };
            let mut gradient = [0.0; WIDTH];
            for &row in &own {
                let x = &data.features[row * WIDTH..(row + 1) * WIDTH];
                let z: f64 = theta.iter().zip(x).map(|(t, x)| f64::from(t * x)).sum();
                let p = 1.0 / (1.0 + (-z).exp());
                for at in 0..WIDTH * WIDTH {
                    curvature[at] += weight * p * (1.0 - p) * f64::from(x[at / WIDTH] * x[at % WIDTH]) / 4.0;
                }
                let own = gradient_of(&theta.map(f64::from), x, data.labels[row]);
                gradient.iter_mut().zip(own).for_each(|(sum, own)| *sum += weight * own);
            }
            (0..WIDTH * WIDTH).for_each(|at| outer[at] += gradient[at / WIDTH] * gradient[at % WIDTH] / 4.0);
        }
        for (found, right) in moments.hessian.iter().zip(curvature).chain(moments.gradient.iter().zip(outer)) {
            assert!((found - right).abs() < 2e-3, "{found} and {right}");
        }
    }
}

struct Endless;

impl Ledger for Endless {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(1))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}
