//! The binomial law: how many of the units that somebody holds are drawn, in few enough parts to work with.

/// On which side of a law its parts may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartSide {
    /// None is smaller than what it stands for.
    Up,
    /// None is larger.
    Down,
}

/// A binomial law in few parts: as it is where it has few, otherwise each part stands for its neighbours on one side.
///
/// # Why
/// Of N(j) with a random j against N(0), and of the same with j in view, a larger j is never harder to tell: for
/// an event of given probability under N(0), N(j) gives it at most Φ(Φ⁻¹(x) + j/σ), which rises with j. So a law of j
/// that is stochastically larger dominates.
pub(crate) struct BinomialParts {
    /// (j, probability), by rising j.
    pub(crate) weighted: Vec<(f64, f64)>,
    /// Whether these are the probabilities themselves.
    pub(crate) exact: bool,
    /// What is left out at most.
    pub(crate) missing: f64,
}

/// Beyond so many probabilities they are put together.
const MOST_PARTS: usize = 128;
/// Beyond this deviation not even all probabilities are looked at.
const WIDEST: f64 = 300.0;

impl BinomialParts {
    pub(crate) fn of(trials: u64, q: f64, toward: PartSide) -> Self {
        let (n, mean) = (trials as f64, trials as f64 * q);
        let deviation = (mean * (1.0 - q)).sqrt();
        if deviation > WIDEST {
            return Self::by_bernstein(n, mean, deviation, toward);
        }
        let (weights, missing) = binomial(trials, q);
        if weights.len() <= MOST_PARTS {
            return Self { weighted: weights, exact: true, missing };
        }
        // A sixth of a deviation wide around the mean, wider outside.
        let mut parts: Vec<(f64, f64)> = Vec::new();
        let group = |j: f64| {
            let t = (j - mean) / deviation;
            if t.abs() <= 7.0 { (6.0 * t).floor() } else { t.signum() * 1000.0 + (0.5 * t).floor() }
        };
        let mut last = f64::NAN;
        for (j, weight) in weights {
            let here = group(j);
            match parts.last_mut().filter(|_| here == last) {
                Some(part) => *part = (if toward == PartSide::Up { j } else { part.0 }, part.1 + weight),
                None => parts.push((j, weight)),
            }
            last = here;
        }
        Self { weighted: parts, exact: false, missing }
    }

    /// P(|j − mean| on one side ≥ t·deviation) ≤ exp(−t²/2/(1 + t/(3·deviation))): Bernstein's inequality.
    fn by_bernstein(n: f64, mean: f64, deviation: f64, toward: PartSide) -> Self {
        let beyond = |t: f64| (-0.5 * t * t / (1.0 + t / (3.0 * deviation))).exp();
        let mut parts = Vec::new();
        for i in 0..80 {
            let (from, to) = (f64::from(i) * 0.5, f64::from(i + 1) * 0.5);
            let weight = beyond(from) - beyond(to);
            let j = match toward {
                PartSide::Up => ((mean + to * deviation) * (1.0 + 4.0 * f64::EPSILON)).min(n * (1.0 + f64::EPSILON)),
                PartSide::Down => ((mean - to * deviation) * (1.0 - 4.0 * f64::EPSILON)).max(0.0),
            };
            if weight > 0.0 {
                parts.push((j, weight));
            }
        }
        if toward == PartSide::Down {
            parts.reverse();
        }
        Self { weighted: parts, exact: false, missing: beyond(40.0).max(1e-300) }
    }
}

/// The probabilities of a binomial law for q in (0, 1], in order of j, by the ratio of neighbours from the mode outward as
/// far as they are numbers; and a bound on what is left out.
pub(crate) fn binomial(trials: u64, q: f64) -> (Vec<(f64, f64)>, f64) {
    const LEAST: f64 = 1e-300;
    let odds = q / (1.0 - q); // infinite at q = 1, where the mode is n and 1/odds is 0
    let mode = ((trials as f64 + 1.0) * q) as u64;
    let mode = mode.min(trials);
    let (mut up, mut down) = (vec![(mode, 1.0)], Vec::new());
    let (mut j, mut weight, mut left_out) = (mode, 1.0, 0.0);
    while j < trials {
        weight *= (trials - j) as f64 / (j + 1) as f64 * odds;
        j += 1;
        if weight < LEAST {
            left_out = f64::MIN_POSITIVE;
            break;
        }
        up.push((j, weight));
    }
    (j, weight) = (mode, 1.0);
    while j > 0 {
        weight *= j as f64 / (trials - j + 1) as f64 / odds;
        j -= 1;
        if weight < LEAST {
            left_out = f64::MIN_POSITIVE;
            break;
        }
        down.push((j, weight));
    }
    let total: f64 = up.iter().chain(&down).map(|part| part.1).sum();
    let all = down.into_iter().rev().chain(up).map(|(j, weight)| (j as f64, weight / total)).collect();
    // Beyond the last the ratios only get smaller, so that so much is more than all of them.
    (all, if left_out > 0.0 { LEAST * 1e8 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order of the stochastic one: parts up are never below the law, parts down never above it.
    #[test]
    fn parts_stand_on_their_side_of_the_law() {
        for (trials, q) in [(30, 0.3), (400, 0.5), (100_000, 0.01), (1_000_000, 0.7), (1 << 60, 1e-17), (1 << 60, 0.4)]
        {
            let [up, down] = [PartSide::Up, PartSide::Down].map(|toward| BinomialParts::of(trials, q, toward));
            for parts in [&up, &down] {
                let all: f64 = parts.weighted.iter().map(|part| part.1).sum();
                assert!((all - 1.0).abs() < 1e-9 && parts.weighted.len() <= 140, "{trials} at {q}: {all}");
            }
            let above = |parts: &BinomialParts, j: f64| -> f64 {
                parts.weighted.iter().filter(|part| part.0 > j).map(|part| part.1).sum()
            };
            let (mean, deviation) = (trials as f64 * q, (trials as f64 * q * (1.0 - q)).sqrt());
            for t in [-5.0, -1.0, -0.1, 0.0, 0.3, 1.0, 2.0, 6.0] {
                let j = mean + t * deviation;
                let exact: Option<f64> = (deviation < WIDEST)
                    .then(|| binomial(trials, q).0.iter().filter(|part| part.0 > j).map(|part| part.1).sum());
                let (high, low) = (above(&up, j), above(&down, j));
                let exact = exact.unwrap_or(f64::midpoint(high, low));
                assert!(low <= exact + 1e-12 && exact <= high + 1e-12, "{trials} at {q}, {t}: {low}, {exact}, {high}");
            }
        }
    }

    /// Where not even all probabilities are looked at: Bernstein's bound against the tails themselves, which a million trials still have.
    #[test]
    fn parts_by_bernstein_stand_on_their_side_of_the_true_tails() {
        for (trials, q) in [(1_u64 << 19, 0.5), (1_000_000, 0.7), (1 << 20, 0.1), (1 << 20, 0.5), (1 << 20, 0.9)] {
            let (mean, deviation) = (trials as f64 * q, (trials as f64 * q * (1.0 - q)).sqrt());
            assert!(deviation > WIDEST, "{trials} at {q} are looked at one by one");
            let (law, _) = binomial(trials, q);
            let [up, down] = [PartSide::Up, PartSide::Down].map(|toward| BinomialParts::of(trials, q, toward));
            let above = |law: &[(f64, f64)], j: f64| -> f64 { law.iter().filter(|p| p.0 > j).map(|p| p.1).sum() };
            let below = |law: &[(f64, f64)], j: f64| -> f64 { law.iter().filter(|p| p.0 <= j).map(|p| p.1).sum() };
            for i in -80..=80 {
                let t = f64::from(i) * 0.45; // a tail of 36 deviations is still a number
                let j = mean + t * deviation;
                let tails = [
                    (above(&up.weighted, j) + up.missing, above(&law, j)),
                    (below(&down.weighted, j) + down.missing, below(&law, j)),
                ];
                for (bound, truth) in tails {
                    assert!(bound >= truth * (1.0 - 1e-9), "{trials} at {q}, {t}: {bound} below {truth}");
                    assert!(t.abs() > 6.0 || bound <= 1000.0 * truth, "{trials} at {q}, {t}: {bound} for {truth}");
                }
            }
            // Each law as a whole is less than two deviations off.
            let average = |parts: &BinomialParts| parts.weighted.iter().map(|part| part.0 * part.1).sum::<f64>();
            for off in [average(&up) - mean, mean - average(&down)] {
                assert!((0.0..2.0 * deviation).contains(&off), "{trials} at {q}: {off}");
            }
        }
    }
}
