//! A unit that is replaced leaves, and another one comes: two changes of a kind of which more is known.

use super::epsilon_by;
use crate::accountant::Name;
use whit_core::{Change, Cost, Draw, Sampled, Sampling};

/// The same step for a unit that leaves or comes, where it is replaced here and what it holds is drawn piece by piece.
fn removed(step: &Sampled) -> Option<Cost> {
    let piece_by_piece = (step.change, step.draw, step.sampling) == (Change::Replace, Draw::Unit, Sampling::Poisson);
    piece_by_piece.then_some(Cost::Sampled(Sampled { change: Change::AddRemove, difference: 2.0, ..*step }))
}

/// The steps that draw a replaced unit's pieces, as if it left or came, and whatever stands beside them. Nothing where none of them draws several pieces,
/// since one piece alone has its own pair, which is no worse; and nothing where another leaf is for units that leave or come: its two directions are not those of these steps.
fn divided(cost: &Cost) -> Option<(Vec<Cost>, Vec<Cost>)> {
    let (mut drawn, mut beside, mut several) = (Vec::new(), Vec::new(), false);
    for (leaf, times) in cost.leaves() {
        match leaf {
            Cost::Sampled(step) if step.change == Change::AddRemove => return None,
            Cost::Sampled(step) => match removed(&step) {
                Some(removed) => {
                    several |= step.holds > 1;
                    drawn.push(removed.repeat(times));
                }
                None => beside.push(leaf.repeat(times)),
            },
            other => beside.push(other.repeat(times)),
        }
    }
    several.then_some((drawn, beside))
}

/// ε for a unit that is replaced when what it holds is drawn piece by piece: it leaves, and another one comes. Other leaves may stand beside those steps.
/// Who proves it is who proves the two, or the one of them that is not PLD.
///
/// # Claim
/// A mechanism with this cost is (the first number, δ)-differentially private for the unit of the cost, where neighbours replace it.
///
/// # Why
/// Let x and y be neighbours, z be x without the unit, A the steps that draw pieces and B all others, in whatever order they come. Take three worlds: P, where all
/// steps run on x; W, where those of A run on z and those of B on y; and Q, where all run on y. Given any history of outputs,
/// the next output's laws in P and W are those of a unit that leaves, if the step is of A, and of two neighbours, if it is of B. So each step has its own dominating
/// pair, and these compose (Zhu, Dong, Wang 2022, Theorem 10, which asks for the pair of the next step after every history, and not that W be a run on one data set).
/// Between W and Q a step of B has the same law after every history and adds nothing, and one of A has that of a unit that comes.
/// With (ε₁, δ₁) for the first change and (ε₂, δ₂) for the second, P(S) ≤ e^ε₁·(e^ε₂·Q(S) + δ₂) + δ₁, so (ε₁ + ε₂, δ₁ + e^ε₁·δ₂) for both.
///
/// Of A both directions are composed, each for all of its steps, and the larger counts for either change. A leaf of B is known for neighbours that may swap,
/// so that its one law holds in both directions; leaves that have two of their own are not divided so.
/// Where many pieces change at once this is far below what revealing the coins gives.
///
/// # Tried by
/// `leaving_and_coming_beside_a_question_are_two_gaussians_where_all_are_drawn`, `a_question_beside_a_training_adds_little_to_what_a_user_loses` and
/// `no_event_of_two_dimensions_tells_more_of_a_training_and_a_question`.
pub(super) fn through_removal(cost: &Cost, delta: f64) -> Option<(f64, Name)> {
    let (drawn, beside) = divided(cost)?;
    let all = Cost::Series(drawn.iter().cloned().chain(beside).collect());
    let (leaving, by) = epsilon_by(&all, 0.9 * delta).ok()?;
    let (coming, by_too) = epsilon_by(&Cost::Series(drawn), 0.1 * delta * (-leaving.upper).exp()).ok()?;
    let by = if by == Name::Pld { by_too } else { by };
    Some(((leaving.upper + coming.upper) * (1.0 + 4.0 * f64::EPSILON), by))
}

#[cfg(test)]
mod tests {
    use super::super::problem::Problem;
    use super::*;
    use crate::accountant::{advanced, basic, gdp, renyi, zcdp};
    use crate::normal::{density, upper_tail};
    use whit_core::{Delta, Epsilon};

    fn drawn(noise: f64, rate: f64, holds: u64) -> Cost {
        let (sampling, draw, change) = (Sampling::Poisson, Draw::Unit, Change::Replace);
        Cost::Sampled(Sampled { noise, rate, sampling, draw, change, difference: 2.0, holds })
    }

    fn both(training: &Cost, question: &Cost) -> Cost {
        Cost::Series(vec![training.clone(), question.clone()])
    }

    fn questions() -> [Cost; 4] {
        let (epsilon, delta) = (Epsilon::new(0.2).unwrap(), Delta::new(1e-9).unwrap());
        [
            Cost::Gaussian { noise: 8.0 },
            Cost::Laplace { scale: 5.0 },
            Cost::Approximate { epsilon, delta },
            Cost::Series(vec![Cost::Pure { epsilon }, Cost::Gaussian { noise: 10.0 }.repeat(2)]),
        ]
    }

    /// What was said of a cost before its leaves were divided: the lattice of all of them, and the other accountants.
    fn undivided(cost: &Cost, delta: f64) -> f64 {
        let others = [renyi::epsilon, gdp::epsilon, zcdp::epsilon, advanced::epsilon, basic::epsilon];
        let lattice = Problem::new(cost).unwrap().epsilon(delta).0;
        others.into_iter().filter_map(|other| other(cost, delta).ok()).fold(lattice, f64::min)
    }

    /// ε of Gaussian noise by bisection of Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), which no lattice and no other accountant has a hand in.
    fn of_gaussian(mu: f64, delta: f64) -> f64 {
        let at = |e: f64| upper_tail(e / mu - mu / 2.0) - e.exp() * upper_tail(e / mu + mu / 2.0);
        let (mut low, mut high) = (0.0, 200.0);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if at(middle) <= delta { high = middle } else { low = middle }
        }
        high
    }

    /// Where all are drawn, leaving and coming are plain Gaussian noise at half the way, and the question is another one next to the first of them. The truth is
    /// Gaussian noise at the whole way next to the question's, and lies below.
    #[test]
    fn leaving_and_coming_beside_a_question_are_two_gaussians_where_all_are_drawn() {
        for (noise, holds, asked) in [(20.0, 4, 5.0), (50.0, 10, 1.0), (8.0, 2, 40.0), (3.0, 2, 3.0)] {
            for delta in [1e-3, 1e-6, 1e-9] {
                let cost = both(&drawn(noise, 1.0, holds), &Cost::Gaussian { noise: asked });
                let (found, by) = through_removal(&cost, delta).unwrap();
                let (half, question) = (holds as f64 / noise, 1.0 / asked);
                let leaving = of_gaussian(half.hypot(question), 0.9 * delta);
                let coming = of_gaussian(half, 0.1 * delta * (-leaving).exp());
                let truth = of_gaussian((2.0 * half).hypot(question), delta);
                assert!((found / (leaving + coming) - 1.0).abs() < 1e-6, "{found} by {by} for {leaving} + {coming}");
                assert!(found >= truth, "{found} is below {truth}");
            }
        }
    }

    #[test]
    fn a_question_beside_a_training_adds_little_to_what_a_user_loses() {
        let delta = 1e-6;
        for training in [drawn(4.0, 0.01, 8).repeat(500), drawn(2.0, 0.02, 4).repeat(100)] {
            let alone = epsilon_by(&training, delta).unwrap().0;
            for question in questions() {
                let cost = both(&training, &question);
                let (loss, _) = epsilon_by(&cost, delta).unwrap();
                let asked = epsilon_by(&question, delta).unwrap().0;
                let least = alone.upper.max(asked.upper) * (1.0 - 1e-3);
                assert!(loss.upper >= least && loss.lower <= loss.upper, "{loss:?} for {alone:?} and {asked:?}");
                let before = undivided(&cost, delta);
                assert!(loss.upper <= before * (1.0 + 1e-9), "{} after {before}", loss.upper);
                assert!(before > 1.5 * loss.upper, "{before} was {}: it is the division that is tried", loss.upper);
                let sum = alone.upper + asked.upper;
                assert!(loss.upper < sum, "{} for {sum}: {question:?}", loss.upper);
                // The way back agrees, as far as its few tries go.
                let back = super::super::delta(&cost, loss.upper).unwrap();
                assert!(back.upper <= delta * 1.5 && back.lower <= back.upper, "{back:?}");
            }
        }
    }

    /// Nobody who may leave is taken for somebody who comes: such a leaf has two directions of its own, and the sum of both is not known to be safe.
    #[test]
    fn leaves_with_two_directions_of_their_own_are_not_divided() {
        let training = drawn(4.0, 0.01, 8);
        let Cost::Sampled(step) = training else { unreachable!() };
        let other = Cost::Sampled(Sampled { change: Change::AddRemove, holds: 1, ..step });
        assert!(divided(&both(&training, &other)).is_none() && divided(&other).is_none());
        assert!(divided(&drawn(4.0, 0.01, 1)).is_none() && divided(&Cost::Gaussian { noise: 1.0 }).is_none());
        let fixed = Cost::Sampled(Sampled { sampling: Sampling::Fixed, holds: 1, ..step });
        let (drawn, beside) = divided(&both(&training, &fixed)).unwrap();
        assert_eq!((drawn.len(), beside), (1, vec![fixed.repeat(1)]));
    }

    /// One step and one question, integrated in the plane over the event that tells most: for contributions of opposite signs, and for a unit that leaves.
    #[test]
    fn no_event_of_two_dimensions_tells_more_of_a_training_and_a_question() {
        let (width, most) = (0.02, 14.0);
        let places: Vec<f64> = (0..=(2.0 * most / width) as i32).map(|i| f64::from(i) * width - most).collect();
        for (noise, rate, holds, asked) in [(1.5, 0.3, 2, 1.5), (2.0, 0.1, 3, 2.0), (1.0, 0.5, 2, 4.0)] {
            let cost = both(&drawn(noise, rate, holds), &Cost::Gaussian { noise: asked });
            let chance = |j: u64| {
                let ways = (0..j).fold(1.0, |ways, i| ways * (holds - i) as f64 / (i + 1) as f64);
                ways * rate.powi(j as i32) * (1.0 - rate).powi((holds - j) as i32)
            };
            let law = |sign: f64| -> Vec<f64> {
                let at = |x: f64| (0..=holds).map(|j| chance(j) * density(x - sign * j as f64 / noise)).sum();
                places.iter().map(|&x| at(x)).collect()
            };
            let question = |mean: f64| -> Vec<f64> { places.iter().map(|&x| density(x - mean)).collect() };
            let answers = [question(0.5 / asked), question(-0.5 / asked)];
            for delta in [1e-2, 1e-4] {
                let found = through_removal(&cost, delta).unwrap().0;
                for (p, q) in [(law(1.0), law(-1.0)), (law(1.0), law(0.0)), (law(0.0), law(1.0))] {
                    let told: f64 = p
                        .iter()
                        .zip(&q)
                        .map(|(p, q)| {
                            let rows = answers[0].iter().zip(&answers[1]);
                            rows.map(|(a, b)| (p * a - found.exp() * q * b).max(0.0)).sum::<f64>()
                        })
                        .sum();
                    let told = told * width * width;
                    assert!(told <= delta, "ε = {found} at δ = {delta}: {told}");
                }
            }
        }
    }
}
