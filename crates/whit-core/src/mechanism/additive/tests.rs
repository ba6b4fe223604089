use super::super::gaussian::{Gaussian, GaussianVector};
use super::super::laplace::{Laplace, LaplaceVector};
use super::super::trial::{self, rung};
use super::*;
use crate::bound::Support;
use crate::unit::{Caps, Unit};
use whit_noise::Replay;

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

fn laws(width: &str) -> [Law; 3] {
    [Law::laplace(ratio(width)).unwrap(), Law::rounded(ratio(width)).unwrap(), Law::discrete(ratio(width)).unwrap()]
}

/// All rungs that a bound may be asked about: alone, several at once, disjoint or not, under both changes.
fn rungs() -> Vec<Rung> {
    let mut rungs = Vec::new();
    for change in [Change::AddRemove, Change::Replace] {
        for (holds, disjoint) in [(1, false), (7, false), (7, true)] {
            rungs.push(Rung { disjoint, ..rung(change, holds) });
        }
    }
    rungs.push(Rung { unit: Unit::element("id", "word"), holds: 1, disjoint: false, slices: None });
    rungs
}

/// A face says of cost, draws and interval what the one noise says, which is made here of a law and a reach, without it.
#[test]
fn every_face_is_the_one_noise() {
    let bounds = [
        Bound::coordinates(1, 0, 1, Support::Single).unwrap(),
        Bound::coordinates(3, -2, 5, Support::Any).unwrap(),
        Bound::ball(2.5, Support::NonNegative).unwrap(),
    ];
    let caps = Caps { elements_per_user: Some(9), rows_per_element: None };
    let units = vec![Unit::element("id", "word"), Unit::user("id", Change::Replace)];
    let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
    let all: Vec<Rung> = rungs().into_iter().chain(ladder.rungs().iter().cloned()).collect();
    for (bound, width, on) in bounds.into_iter().flat_map(|bound| {
        ["1/3", "4", "987654321/1000"].into_iter().flat_map(move |width| [(bound, width, false), (bound, width, true)])
    }) {
        let reach = if on { Reach::on(bound, &ladder) } else { Reach::new(bound) };
        let one = laws(width).map(|law| Additive::new(law, reach.clone(), Coordinates::One));
        let many = laws(width).map(|law| Additive::new(law, reach.clone(), Coordinates::Many(1500)));
        let (laplace, rounded, discrete) = (
            Laplace::new(bound, ratio(width)).unwrap(),
            Gaussian::rounded(bound, ratio(width)).unwrap(),
            Gaussian::discrete(bound, ratio(width)).unwrap(),
        );
        let (laplaces, roundeds, discretes) = (
            LaplaceVector::new(bound, 1500, ratio(width)).unwrap(),
            GaussianVector::rounded(bound, 1500, ratio(width)).unwrap(),
            GaussianVector::discrete(bound, 1500, ratio(width)).unwrap(),
        );
        if on {
            let scalars = (laplace.on(&ladder), rounded.on(&ladder), discrete.on(&ladder));
            same(&[&scalars.0, &scalars.1, &scalars.2], &one, &all);
            let vectors = (laplaces.on(&ladder), roundeds.on(&ladder), discretes.on(&ladder));
            same_vectors(&[&vectors.0, &vectors.1, &vectors.2], &many, &all);
        } else {
            same(&[&laplace, &rounded, &discrete], &one, &all);
            same_vectors(&[&laplaces, &roundeds, &discretes], &many, &all);
        }
    }
}

type Scalar<'a> = &'a dyn Mechanism<Exact = i64, Noisy = i64>;
type Vector<'a> = &'a dyn Mechanism<Exact = [i64], Noisy = Vec<i64>>;

fn same(faces: &[Scalar<'_>], noises: &[Additive], rungs: &[Rung]) {
    for (face, noise) in faces.iter().zip(noises) {
        for rung in rungs {
            assert_eq!(face.cost(rung), noise.cost(rung), "{noise:?} {rung:?}");
        }
        for confidence in [0.0, 0.5, 0.95, 0.999_999, 1.0] {
            assert_eq!(face.accuracy(confidence).within, noise.within(confidence));
        }
        let (mut left, mut right, mut third) = (Replay::new(3), Replay::new(3), Replay::new(3));
        for exact in [0, -5, 1 << 40] {
            let mut value = [exact];
            noise.add(&mut value, &mut right).unwrap();
            assert_eq!(face.sanitise(&exact, &mut left).unwrap().open(), value[0]);
            assert_eq!(exact + noise.law().draw(&mut third).unwrap(), value[0], "the law's own draw");
        }
    }
}

fn same_vectors(faces: &[Vector<'_>], noises: &[Additive], rungs: &[Rung]) {
    let exact: Vec<i64> = (0..1500).map(|i| i * i - 7000).collect();
    for (face, noise) in faces.iter().zip(noises) {
        for rung in rungs {
            assert_eq!(face.cost(rung), noise.cost(rung), "{noise:?} {rung:?}");
        }
        for confidence in [0.5, 0.95, 1.0] {
            assert_eq!(face.accuracy(confidence).within, noise.law().all_within(confidence, 1500));
        }
        let mut added = exact.clone();
        noise.add(&mut added, &mut Replay::new(9)).unwrap();
        assert_eq!(face.sanitise(&exact, &mut Replay::new(9)).unwrap().open(), added);
        let mut drawn = vec![0; 1500];
        noise.law().fill(&mut drawn, &mut Replay::new(9)).unwrap();
        assert!(drawn.iter().zip(&exact).zip(&added).all(|((noise, exact), added)| noise + exact == *added));
        let mut ahead = vec![7; 1500];
        noise.fill(&mut ahead, &mut Replay::new(9)).unwrap();
        assert_eq!(ahead, drawn, "what is drawn ahead is what would be added");
        let short = Some(SanitiseError::Length { given: 1499, expected: 1500 });
        assert_eq!(noise.fill(&mut ahead[1..], &mut Replay::new(9)).err(), short);
        assert_eq!(noise.fill_parallel(&mut ahead[1..], 2).err(), short);
        let wrong = face.sanitise(&exact[1..], &mut Replay::new(9)).err();
        assert_eq!(wrong, Some(SanitiseError::Length { given: 1499, expected: 1500 }));
    }
}

/// Against the tail itself, by bisection, from chances near 1 to such that floats hardly hold, and at widths from far below a step on.
#[test]
fn what_noise_exceeds_is_the_least_that_its_law_allows() {
    for width in ["1/20", "1/3", "0.4", "1", "25", "1000000/7", "123456789012"] {
        for law in laws(width) {
            for chance in [0.999, 0.5, 0.32, 0.05, 1e-3, 1e-9, 1e-40, 1e-200] {
                let found = law.exceeded(chance);
                assert!(law.tail(found) <= chance, "{law:?} {chance}");
                assert!(found == 0.0 || law.tail(found - 1.0) > chance * (1.0 - 2.0 * HAIR), "{law:?} {chance}");
                let bisected = Accuracy::of_tail(1.0 - chance, |m| law.tail(m as f64)).within;
                // 1 − chance has few digits left of small ones.
                assert!(chance < 1e-3 || (bisected - found).abs() <= 1.0 + found * 1e-9, "{found} {bisected}");
            }
            assert_eq!(law.exceeded(0.0), f64::INFINITY);
            assert_eq!(law.within(f64::NAN), f64::INFINITY);
            // The smallest float is no chance that is ever held for too large.
            let least = law.exceeded(5e-324);
            assert!(least.is_infinite() || law.tail(least) <= 5e-324, "{law:?}: {least}");
        }
    }
    let far = Law::rounded(ratio("1000000000000000000")).unwrap();
    let within = far.within(0.95) / 1e18;
    assert!(within > 1.959_963 && within < 1.959_965);
    assert_eq!(far.all_within(0.95, 1), far.within(0.95));
}

/// All of several hold together as often as is stated, exactly: the product of what each holds.
#[test]
fn several_are_within_together() {
    for law in laws("3") {
        for coordinates in [2, 50, 100_000] {
            let within = law.all_within(0.95, coordinates);
            let all = |m: f64| (coordinates as f64 * (-law.tail(m)).ln_1p()).exp();
            assert!(all(within) >= 0.95 && all(within - 1.0) < 0.95, "{law:?} {coordinates}");
        }
    }
}

/// Noise that is more than one block of draws, and values at the ends of 64 bits: all or nothing.
#[test]
fn what_does_not_fit_is_an_error_and_never_wraps() {
    let mut values = [i64::MAX, 0, i64::MIN];
    assert_eq!(add_to(&mut values, [0, i64::MIN, i64::MAX]), Ok(()));
    assert_eq!(values, [i64::MAX, i64::MIN, -1]);
    assert_eq!(add_to(&mut [i64::MAX, 0], [1, 0]), Err(Overflow));
    assert_eq!(add_to(&mut [0, i64::MIN], [0, -1]), Err(Overflow));
    for law in laws("1000") {
        let mut values = vec![i64::MAX; 3 * BLOCK];
        let noise = Additive::new(law, Reach::known(Vec::new()), Coordinates::Any);
        assert_eq!(noise.add(&mut values, &mut Replay::new(1)), Err(SanitiseError::Overflow));
        assert_eq!(noise.cost(&rung(Change::AddRemove, 1)), Cost::Everything, "nothing is known of this unit");
    }
}

/// What a plan worked out for a rung is taken as it is, and ℓ1 alone counts where nobody knows how many coordinates there are.
#[test]
fn known_distances_are_priced_as_they_are() {
    let user = rung(Change::Replace, 1);
    let moved = Sensitivity { l1: 20.0, l2: 5.0 };
    let [laplace, rounded, discrete] = laws("10")
        .map(|law| Additive::new(law, Reach::known(vec![(user.clone(), moved)]), Coordinates::Any).cost(&user));
    assert_eq!(laplace, Cost::Pure { epsilon: Epsilon::new(2.0).unwrap() });
    assert_eq!(rounded, Cost::Gaussian { noise: 2.0 });
    assert_eq!(discrete, Cost::Concentrated { rho: Rho::new(1.25).unwrap() });
    // A distance whose square rounds costs what the distance says, and one whose square is beyond numbers everything.
    let moves = |l2: f64| Law::rounded(ratio("3")).unwrap().cost(Sensitivity { l1: l2, l2 }, Coordinates::Any);
    assert_eq!(moves(2f64.powi(36) * 3.0), Cost::Gaussian { noise: 2f64.powi(-36) });
    assert_eq!(moves(1e200), Cost::Everything);
    let far = Sensitivity { l1: f64::INFINITY, l2: 5.0 };
    let law = || Law::laplace(ratio("10")).unwrap();
    assert_eq!(law().cost(far, Coordinates::Any), Cost::Everything);
    assert_eq!(law().cost(far, Coordinates::Many(4)), Cost::Pure { epsilon: Epsilon::new(1.0).unwrap() });
    assert_eq!(law().cost(Sensitivity { l1: 0.5, l2: 0.5 }, Coordinates::Any), Cost::Nothing);
}

#[test]
fn noise_is_described_in_words() {
    let words = laws("2.5").map(|law| law.words(0.01));
    assert_eq!(
        words,
        ["discrete Laplace, scale 0.025", "rounded Gaussian, σ = 0.025", "discrete Gaussian, σ = 0.01581"]
    );
    assert_eq!([0.0, 1234.5, 0.001_234_56].map(short), ["0", "1234", "0.001235"]);
}

#[test]
fn several_units_add_up_in_one_number_even_on_an_element_wise_ladder() {
    let bound = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::Single };
    let units = vec![Unit::element("author", "word"), Unit::user("author", Change::AddRemove)];
    let caps = Caps { elements_per_user: Some(9), rows_per_element: None };
    let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
    let user = &ladder.rungs()[1];
    let of_one = |reach: &Reach| reach.of_one_number(user).l1.min(reach.of_one_number(user).l2);
    for reach in [Reach::new(bound), Reach::on(bound, &ladder)] {
        assert_eq!(reach.at(user).l2, 3.0, "nine coordinates of a histogram");
        assert_eq!(of_one(&reach), 9.0, "but one total");
    }
    let ball = Bound::Ball { radius: 1.0, support: Support::Any };
    assert_eq!(of_one(&Reach::on(ball, &ladder)), 9.0);
}

#[test]
fn quotients_are_exact_where_floats_can_be_and_rounded_up_elsewhere() {
    assert_eq!(pure_up(5, &Ratio::from(10)), Cost::Pure { epsilon: Epsilon::new(0.5).unwrap() });
    assert_eq!(pure_up(0, &Ratio::from(10)), Cost::Nothing);
    let huge = Ratio::new(1, (1 << 126) - 1).unwrap();
    assert!(trial::epsilon(&pure_up(u64::MAX, &huge)) >= 2f64.powi(190) * (1.0 - 1e-15));
}
