//! Basic composition: every run has an (ε, δ), and they add up.
//!
//! The oldest accountant, and the only one that needs no δ where all runs are pure. A run that is not pure (Gaussian
//! noise, subsampled or not, or ρ) is first given an (ε, δ) of its own by its exact one-step profile; all such runs
//! share what the approximate runs leave of δ in equal parts.

use super::divergence::run_divergence_up;
use super::pair::{dominating, step_epsilon_up};
use super::{Name, Unsupported, check_delta, check_epsilon, invert, pure_epsilon_up, renyi, runs, word_for, zcdp};
use crate::normal::gaussian_epsilon_up;
use whit_core::{Cost, Delta, Epsilon};

/// So many runs, each (ε, δ)-differentially private.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// ε of each.
    pub epsilon: f64,
    /// δ of each.
    pub delta: f64,
    /// How many there are.
    pub times: u64,
}

/// The sums of all ε and of all δ, rounded up: valid however the runs depend on one another (Dwork et al. 2006).
///
/// ```
/// use whit_account::accountant::basic::{Runs, compose};
/// let (epsilon, delta) = compose(&[Runs { epsilon: 0.5, delta: 1e-7, times: 10 }]);
/// assert!((epsilon - 5.0).abs() < 1e-12 && (delta - 1e-6).abs() < 1e-18);
/// ```
pub fn compose(runs: &[Runs]) -> (f64, f64) {
    let total = |amount: fn(&Runs) -> f64| {
        runs.iter().fold(0.0, |sum, run| {
            let all = Epsilon::new(amount(run)).map_or(f64::INFINITY, |one| one.times(run.times).get());
            if all == 0.0 { sum } else { (sum + all).next_up() }
        })
    };
    (total(|run| run.epsilon), total(|run| run.delta))
}

/// What a cost is for the accountants of (ε, δ): runs whose (ε, δ) is fixed, and runs that take a share of δ.
pub(crate) struct Split {
    pub(crate) fixed: Vec<Runs>,
    shared: Vec<(Cost, u64)>,
    /// How many runs take a share.
    pub(crate) sharers: u64,
}

impl Split {
    /// Sorts the runs of a cost. `None`: one of them protects nothing.
    pub(crate) fn of(cost: &Cost) -> Result<Option<Self>, Unsupported> {
        let Some(leaves) = runs(cost)? else { return Ok(None) };
        let mut split = Self { fixed: Vec::new(), shared: Vec::new(), sharers: 0 };
        for (leaf, times) in leaves {
            let (epsilon, delta) = match &leaf {
                Cost::Pure { epsilon } | Cost::BoundedRange { epsilon } => (epsilon.get(), 0.0),
                Cost::Approximate { epsilon, delta } => (epsilon.get(), delta.get()),
                Cost::Laplace { scale } => (pure_epsilon_up(1.0, *scale), 0.0),
                Cost::Geometric { shift, scale } => (pure_epsilon_up(*shift as f64, *scale), 0.0),
                Cost::Chosen { .. } if run_divergence_up(&leaf, f64::INFINITY)?.is_finite() => {
                    (run_divergence_up(&leaf, f64::INFINITY)?, 0.0)
                }
                Cost::Sampled(_) | Cost::Gaussian { .. } | Cost::Concentrated { .. } | Cost::Chosen { .. } => {
                    split.sharers = split.sharers.saturating_add(times);
                    split.shared.push((leaf, times));
                    continue;
                }
                Cost::Nothing | Cost::Everything | Cost::Repeat { .. } | Cost::Series(_) => {
                    unreachable!("leaves are single runs, and `runs` has set `Everything` apart")
                }
            };
            split.fixed.push(Runs { epsilon, delta, times });
        }
        Ok(Some(split))
    }

    /// All runs, those that take a share of δ having `share` each.
    pub(crate) fn with(&self, share: f64) -> Result<Vec<Runs>, Unsupported> {
        let mut all = self.fixed.clone();
        for (leaf, times) in &self.shared {
            all.push(Runs { epsilon: run_epsilon_up(leaf, share)?, delta: share, times: *times });
        }
        Ok(all)
    }

    /// The name of a run that cannot do without a δ, if there is one.
    pub(crate) fn needs_delta(&self) -> Option<&'static str> {
        let approximate = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::ZERO };
        let fixed = self.fixed.iter().any(|run| run.delta > 0.0).then(|| word_for(&approximate));
        self.shared.first().map(|(leaf, _)| word_for(leaf)).or(fixed)
    }
}

/// The ε of one run of a kind that is not pure, at a δ of its own.
fn run_epsilon_up(leaf: &Cost, delta: f64) -> Result<f64, Unsupported> {
    Ok(match leaf {
        Cost::Gaussian { noise } => gaussian_epsilon_up(delta, (1.0 / noise).next_up()),
        Cost::Concentrated { rho } => zcdp::tight_epsilon(rho.get(), delta),
        Cost::Sampled(s) => step_epsilon_up(&dominating(s)?, s.rate, s.noise, delta),
        Cost::Chosen { .. } => renyi::epsilon(leaf, delta)?,
        Cost::Nothing
        | Cost::Everything
        | Cost::Pure { .. }
        | Cost::Approximate { .. }
        | Cost::Laplace { .. }
        | Cost::Geometric { .. }
        | Cost::BoundedRange { .. }
        | Cost::Repeat { .. }
        | Cost::Series(_) => unreachable!("`Split` hands over runs that take a share of δ"),
    })
}

/// ε at δ: infinite where the δ of approximate runs alone come to more.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let Some(split) = Split::of(cost)? else { return Ok(f64::INFINITY) };
    let needs = split.needs_delta();
    if delta >= 1.0 {
        return Ok(0.0);
    }
    if let (true, Some(cost)) = (delta == 0.0, needs) {
        return Err(Unsupported::NeedsDelta { accountant: Name::Basic, cost });
    }
    epsilon_of(&split, delta)
}

/// ε of runs that were sorted before, at 0 ≤ δ < 1.
pub(crate) fn epsilon_of(split: &Split, delta: f64) -> Result<f64, Unsupported> {
    let (fixed, aside) = compose(&split.fixed);
    if aside > delta {
        return Ok(f64::INFINITY);
    }
    if split.sharers == 0 {
        return Ok(fixed);
    }
    let share = (delta - aside) / split.sharers as f64 * (1.0 - 1e-15);
    if share <= 0.0 {
        return Ok(f64::INFINITY);
    }
    Ok(compose(&split.with(share)?).0)
}

/// δ at ε.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<f64, Unsupported> {
    check_epsilon(epsilon)?;
    let Some(split) = Split::of(cost)? else { return Ok(1.0) };
    if split.needs_delta().is_none() && epsilon_of(&split, 0.0)? <= epsilon {
        return Ok(0.0);
    }
    invert(epsilon, |delta| if delta >= 1.0 { Ok(0.0) } else { epsilon_of(&split, delta) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::gaussian_delta;

    #[test]
    fn one_gaussian_run_costs_what_its_exact_profile_says() {
        let cost = Cost::Gaussian { noise: 1.0 };
        let exact = 4.377_178_095_681_224_5;
        let reported = epsilon(&cost, 1e-5).unwrap();
        assert!(reported >= exact && reported < exact * (1.0 + 1e-9));
        let delta = delta(&cost, exact).unwrap();
        assert!((1e-5 * (1.0 - 1e-12)..1e-5 * (1.0 + 1e-6)).contains(&delta), "{delta}");
    }

    #[test]
    fn shares_of_delta_add_up_to_no_more_than_there_is() {
        let cost = Cost::Series(vec![
            Cost::Gaussian { noise: 2.0 }.repeat(4),
            Cost::Approximate { epsilon: Epsilon::new(0.5).unwrap(), delta: Delta::new(1e-6).unwrap() },
        ]);
        let per_run = (epsilon(&cost, 5e-6).unwrap() - 0.5) / 4.0;
        assert!((gaussian_delta(per_run, 0.5) - 1e-6).abs() < 1e-14);
        assert_eq!(epsilon(&cost, 9e-7).unwrap(), f64::INFINITY);
        assert!(matches!(epsilon(&cost, 0.0), Err(Unsupported::NeedsDelta { accountant: Name::Basic, .. })));
    }

    #[test]
    fn pure_runs_need_no_delta_and_lose_exactly_the_sum() {
        let cost = Cost::Series(vec![
            Cost::Laplace { scale: 4.0 }.repeat(3),
            Cost::Geometric { shift: 3, scale: 6.0 },
            Cost::BoundedRange { epsilon: Epsilon::new(0.25).unwrap() },
        ]);
        let sum = epsilon(&cost, 0.0).unwrap();
        assert!((1.5..1.5 + 1e-12).contains(&sum));
        assert_eq!(delta(&cost, 1.51).unwrap(), 0.0);
        assert_eq!(delta(&cost, 1.4).unwrap(), 1.0);
    }
}
