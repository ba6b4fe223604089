use super::*;
use crate::trial::Endless;
use dashu_int::UBig;
use proptest::prelude::*;
use whit_core::Change;
use whit_core::release::release_reproducibly_without_privacy;
use whit_noise::Replay;
use whit_noise::fit::BitTree;

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

fn one_label() -> Rung {
    Rung { unit: Unit::label(&[], "y"), holds: 1, disjoint: false, slices: None }
}

fn epsilon(cost: &Cost) -> f64 {
    let leaves = cost.leaves().into_iter().map(|(leaf, times)| match leaf {
        Cost::Pure { epsilon } => epsilon.get() * times as f64,
        other => panic!("{other:?} is no pure cost"),
    });
    leaves.sum()
}

/// p ≤ factor·q, exactly.
fn at_most(p: &Ratio, factor: &Ratio, q: &Ratio) -> bool {
    let big = |value: u128| UBig::from(value);
    big(p.numerator()) * big(factor.denominator()) * big(q.denominator())
        <= big(factor.numerator()) * big(q.numerator()) * big(p.denominator())
}

/// e^ε of the mechanism, exactly: the odds of an answer among two.
fn odds(response: &PriorResponse) -> Ratio {
    let truth = response.truth(2);
    Ratio::new(truth.numerator(), truth.denominator() - truth.numerator()).unwrap()
}

/// Whether fractions add up to 1, exactly.
fn is_law(law: &[Ratio]) -> bool {
    let whole = law.iter().fold(UBig::ONE, |whole, p| whole * UBig::from(p.denominator()));
    let part = |p: &Ratio| UBig::from(p.numerator()) * (&whole / UBig::from(p.denominator()));
    law.iter().fold(UBig::ZERO, |sum, p| sum + part(p)) == whole
}

/// Every answer, every pair of labels and every number of labels that may be reported; the odds cost no more than ε, and
/// hardly less.
#[test]
fn no_answer_is_likelier_than_the_claim_allows() {
    for text in ["0.001", "0.1", "1/3", "1", "2.5", "8"] {
        for classes in 2..=6_u32 {
            let mut response = PriorResponse::flat(classes, ratio(text), 0).unwrap();
            response.likely = (1..=classes).map(|k| (0..k).rev().collect()).collect();
            let (most, spent) = (odds(&response), epsilon(&response.cost(&one_label())));
            let wanted = ratio(text).to_f64();
            assert!(spent <= wanted && spent > wanted * (1.0 - 1e-9), "{spent} of {wanted}");
            let excess = Ratio::new(most.numerator() - most.denominator(), most.denominator()).unwrap();
            assert!(libm::log1p(excess.to_f64_down()) <= spent, "the odds of an answer are claimed");
            let mut attained = false;
            for row in 0..response.rows() {
                let laws: Vec<Vec<Ratio>> = (0..classes).map(|label| response.law(row, label)).collect();
                assert!(laws.iter().all(|law| is_law(law)));
                for (one, other) in laws.iter().flat_map(|one| laws.iter().map(move |other| (one, other))) {
                    for (p, q) in one.iter().zip(other) {
                        assert!(at_most(p, &most, q), "{classes} classes, ε = {text}, row {row}");
                        attained |= !p.is_zero() && at_most(q, &most.inverse().unwrap(), p);
                    }
                }
            }
            assert!(attained, "the claim is not larger than it need be");
        }
    }
}

/// All strings of 18 random bits, for labels that may be reported and labels that may not.
#[test]
fn every_string_of_coins_follows_the_law() {
    let priors = [0.97, 0.01, 0.01, 0.01, 0.58, 0.4, 0.01, 0.01, 0.5, 0.3, 0.15, 0.05, 1.0, 1.0, 1.0, 1.0];
    let response = PriorResponse::new(4, ratio("1.5"), &priors).unwrap();
    assert_eq!([0, 1, 2, 3].map(|row| response.likely(row).len()), [1, 2, 3, 4]);
    for row in 0..4 {
        for label in 0..4 {
            for (reported, expected) in (0..).zip(response.law(row, label)) {
                let (hit, open) =
                    BitTree::new(18).probability(|entropy| response.answer(row, label, entropy) == reported);
                let expected = expected.to_f64();
                assert!(open < 1e-3, "{open} is open");
                assert!(
                    hit <= expected + 1e-12 && expected <= hit + open + 1e-12,
                    "{row}, {label} to {reported}: {hit}"
                );
            }
        }
    }
}

/// How often the truth is reported where the labels in `set` may be, times a constant.
fn accuracy_of(prior: &[u32], set: &[u32], odds: f64) -> f64 {
    let mass: u32 = set.iter().map(|&label| prior[label as usize]).sum();
    f64::from(mass) * odds / (odds + set.len() as f64 - 1.0)
}

proptest! {
    /// Not only of the likeliest k: of all sets of labels the chosen one reports the truth most often.
    #[test]
    fn no_set_of_labels_is_more_accurate(prior in proptest::collection::vec(0..50_u32, 2..7), tenths in 1..60_u32) {
        prop_assume!(prior.iter().any(|&weight| weight > 0));
        let classes = prior.len() as u32;
        let weights: Vec<f64> = prior.iter().map(|&weight| f64::from(weight)).collect();
        let response = PriorResponse::new(classes, Ratio::new(u128::from(tenths), 10).unwrap(), &weights).unwrap();
        let odds = (f64::from(tenths) / 10.0).exp();
        let chosen = accuracy_of(&prior, response.likely(0), odds);
        for bits in 1..1_u32 << classes {
            let set: Vec<u32> = (0..classes).filter(|label| bits >> label & 1 == 1).collect();
            prop_assert!(accuracy_of(&prior, &set, odds) <= chosen * (1.0 + 1e-9), "{:?} instead of {:?}", set, response.likely(0));
        }
    }

    /// Labels decide among what may be reported, and never what that is; and priors count up to a factor.
    #[test]
    fn priors_are_all_that_decides_what_can_be_reported(prior in proptest::collection::vec(0.0..1.0_f64, 5), label in 0..5_u32, seed in 0..1000_u64) {
        prop_assume!(prior.iter().any(|&weight| weight > 0.0));
        let response = PriorResponse::new(5, Ratio::ONE, &prior).unwrap();
        let scaled: Vec<f64> = prior.iter().map(|weight| weight * 1024.0).collect();
        prop_assert_eq!(&PriorResponse::new(5, Ratio::ONE, &scaled).unwrap(), &response);
        prop_assert!(response.likely(0).contains(&response.answer(0, label, &mut Replay::new(seed))));
        for reported in 0..5 {
            prop_assert_eq!(!response.law(0, label)[reported as usize].is_zero(), response.likely(0).contains(&reported));
        }
    }
}

/// A flat prior leaves all classes, at every ε: the probabilities are those of plain randomised response.
#[test]
fn a_flat_prior_is_plain_response() {
    for text in ["0.01", "1", "10"] {
        for classes in [2, 3, 10, 100] {
            let priors = vec![1.0 / f64::from(classes); classes as usize];
            let response = PriorResponse::new(classes, ratio(text), &priors).unwrap();
            assert_eq!(response, PriorResponse::flat(classes, ratio(text), 1).unwrap());
            let plain = Response::for_epsilon(u64::from(classes), ratio(text)).unwrap();
            let law = response.law(0, 1);
            assert_eq!((law[0], law[1]), (*plain.indicator().off(), *plain.truth()));
            assert_eq!(response.cost(&one_label()), plain.cost(&one_label()), "{classes} classes, ε = {text}");
        }
    }
    // One that is sure of itself asks nothing, and reports what it knew.
    let sure = PriorResponse::new(3, Ratio::ONE, &[0.0, 1.0, 0.0]).unwrap();
    assert_eq!(sure.likely(0), [1]);
    assert_eq!(sure.law(0, 2), [Ratio::ZERO, Ratio::ONE, Ratio::ZERO]);
}

#[test]
fn units_that_are_no_labels_are_promised_nothing() {
    let rung = |unit, holds| Rung { unit, holds, disjoint: false, slices: None };
    let response = PriorResponse::flat(3, Ratio::ONE, 5).unwrap();
    for unit in [Unit::event(Change::Replace), Unit::user("user", Change::Replace), Unit::feature(&[], &["a"])] {
        assert_eq!(response.cost(&rung(unit, 1)), Cost::Everything, "its prior would change with it");
    }
    let user = Unit::label(&["user"], "y");
    assert_eq!(
        response.cost(&rung(user.clone(), 1)),
        Cost::Everything,
        "it is not declared how many labels a user has"
    );
    let grouped = response.clone().grouped(user.clone(), &[7, 8, 7, 7, 9]).unwrap();
    assert!((epsilon(&grouped.cost(&rung(user.clone(), 1))) - 3.0).abs() < 1e-9);
    assert_eq!(grouped.cost(&rung(Unit::label(&["house"], "y"), 1)), Cost::Everything, "another key");
    assert!(matches!(response.clone().grouped(Unit::label(&[], "y"), &[0; 5]), Err(Error::Unit(_))));
    assert!(matches!(response.grouped(user, &[0; 4]), Err(Error::Shape { .. })));
}

#[test]
fn what_does_not_fit_is_named() {
    let new = |classes, priors: &[f64]| PriorResponse::new(classes, Ratio::ONE, priors).unwrap_err();
    assert_eq!(new(1, &[1.0]), Error::Classes(1));
    assert!(matches!(new(2, &[1.0; 3]), Error::Shape { given: 3, .. }));
    for bad in [[0.0, 0.0], [1.0, -1.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
        assert_eq!(new(2, &bad), Error::Prior);
    }
    assert!(matches!(PriorResponse::flat(2, Ratio::ZERO, 1), Err(Error::Epsilon(_))));
    let response = PriorResponse::flat(2, Ratio::ONE, 2).unwrap();
    let mut entropy = Replay::new(1);
    assert_eq!(response.sanitise(&[0], &mut entropy).err(), Some(SanitiseError::Length { given: 1, expected: 2 }));
    assert_eq!(response.sanitise(&[0, 2], &mut entropy).err(), Some(SanitiseError::Domain { size: 2 }));
    assert_eq!((response.accuracy(0.7).within, response.accuracy(0.75).within), (0.0, 1.0));
}

/// The law of both answers of two rows, one to a stage, from the exact laws of each; the prior of the second depends on
/// what the first said. No pair of neighbours is further apart than by ε, and the answers of the mechanism follow the
/// law (a wrong alarm once in 10⁶ seeds).
#[test]
fn two_stages_lose_what_one_does() {
    let prior_after = |reported: u32| if reported == 0 { [0.7, 0.2, 0.1] } else { [0.1, 0.1, 0.8] };
    let learn = |noisy: &NoisyLabels| Ok(prior_after(noisy.labels()[0]).to_vec());
    let stages = TwoStages::new(3, Ratio::ONE, 2, 1, learn).unwrap();
    let flat = PriorResponse::flat(3, Ratio::ONE, 1).unwrap();
    let law = |labels: [u32; 2]| -> Vec<(Ratio, Ratio)> {
        let first = flat.law(0, labels[0]);
        let second =
            |reported: u32| PriorResponse::new(3, Ratio::ONE, &prior_after(reported)).unwrap().law(0, labels[1]);
        (0..9).map(|both| (first[both / 3], second(both as u32 / 3)[both % 3])).collect()
    };
    let most = odds(&flat);
    assert_eq!(stages.cost(&one_label()), flat.cost(&one_label()));
    for labels in (0..3).flat_map(|a| (0..3).map(move |b| [a, b])) {
        for (place, other) in (0..2).flat_map(|place| (0..3).map(move |other| (place, other))) {
            let mut neighbour = labels;
            neighbour[place] = other;
            for (p, q) in law(labels).iter().zip(law(neighbour)) {
                // The factor that does not differ is the same; it may be 0.
                let (differs, same) = if place == 0 { ((p.0, q.0), (p.1, q.1)) } else { ((p.1, q.1), (p.0, q.0)) };
                assert!(same.0 == same.1 && at_most(&differs.0, &most, &differs.1), "{labels:?} and {neighbour:?}");
            }
        }
    }
    let mut counts = [0_u64; 9];
    for seed in 0..20_000 {
        let release = release_reproducibly_without_privacy(
            &stages,
            |_| Ok(&[1, 2][..]),
            &[one_label()],
            &mut Endless,
            &mut Replay::new(seed),
        );
        let noisy = release.unwrap().value;
        counts[(noisy.labels[0] * 3 + noisy.labels[1]) as usize] += 1;
    }
    let expected: Vec<f64> = law([1, 2]).iter().map(|(a, b)| 20_000.0 * a.to_f64() * b.to_f64()).collect();
    for (count, expected) in counts.iter().zip(&expected) {
        // Six deviations of a count, and none where nothing can be reported.
        assert!((*count as f64 - expected).abs() <= 6.0 * expected.sqrt(), "{counts:?} instead of {expected:?}");
    }
}

#[test]
fn a_stage_that_learns_nothing_releases_nothing() {
    let fails = |_: &NoisyLabels| Err(LearnError::Data("no model".to_owned()));
    let stages = TwoStages::new(2, Ratio::ONE, 4, 2, fails).unwrap();
    let mut entropy = Replay::new(1);
    assert_eq!(
        stages.sanitise(&[0, 1, 0, 1], &mut entropy).err(),
        Some(LearnError::Data("no model".to_owned()).into())
    );
    let short = TwoStages::new(2, Ratio::ONE, 4, 2, |_: &NoisyLabels| Ok(vec![0.5; 2])).unwrap();
    let wrong = Some(SanitiseError::Length { given: 2, expected: 1 });
    assert_eq!(short.sanitise(&[0, 1, 0, 1], &mut entropy).err(), wrong, "a prior for one row of two");
    assert!(TwoStages::new(2, Ratio::ONE, 4, 5, |_: &NoisyLabels| Ok(Vec::new())).is_err());
}

#[test]
fn what_a_ledger_keeps_of_labels_is_read_as_it_was() {
    let noisy = NoisyLabels { labels: vec![0, 3, 1, 2, 3], classes: 4 };
    let bytes = noisy.to_bytes();
    assert_eq!(NoisyLabels::read(&bytes), Some(noisy));
    for cut in 0..bytes.len() {
        assert_eq!(NoisyLabels::read(&bytes[..cut]), None, "{cut} bytes");
    }
    let mut other = bytes.clone();
    other[16] = 4; // the first label, now out of range
    assert_eq!(NoisyLabels::read(&other), None);
    other = [bytes, vec![0; 4]].concat();
    assert_eq!(NoisyLabels::read(&other), None, "one label too many");
}
