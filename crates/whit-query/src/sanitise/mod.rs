//! How much noise each measure gets for a price, what that costs on every rung, and drawing it.
//!
//! One number is asked for: ε (and δ) of the protected rung. It is divided among the measures of all parts so that each gets
//! the same share: with Gaussian noise, shares of μ², of which the whole is known exactly (Balle and Wang 2018; Dong,
//! Roth and Su 2022), so that k measures cost √k times the noise and not k times; with δ = 0, shares of ε.

pub(crate) use whit_core::mechanism::additive::short;

use crate::bound::{BoundedSum, SumNoise, SumReach, UnitLimit};
use crate::error::QueryError;
use crate::plan::shared::PartPlace;
use crate::plan::{Groups, Part, Plan};
use crate::source::line;
use datafusion::logical_expr::Expr;
use whit_account::normal::gaussian_mu_down;
use whit_core::mechanism::additive::{self, Coordinates, Reach};
use whit_core::mechanism::keys::{Keys, Moved};
use whit_core::mechanism::{Mechanism as _, SanitiseError};
use whit_core::{Charge, Cost, Delta, Rung, Sensitivity};
use whit_noise::{Entropy, Ratio};

/// Of δ, this share is for keys that show though they should not.
const KEYS_DELTA: f64 = 0.05;
/// A range that is found first gets this share of what a measure gets.
const RANGE_SHARE: f64 = 0.25;
/// Keys get as much as a measure and a half.
const KEYS_SHARE: f64 = 1.5;

/// How many rows caps leave is released for this share of what a measure gets, before caps and after them.
const KEPT_SHARE: f64 = 0.02;

/// The noise of one part.
#[derive(Debug, Clone)]
pub(crate) struct PartNoise {
    pub(crate) measures: Vec<SumNoise>,
    pub(crate) ranges: Vec<SumNoise>,
    pub(crate) keys: Option<Keys>,
    /// On the number of rows before caps and after them, where that is released.
    pub(crate) kept: Option<[SumNoise; 2]>,
}

impl PartNoise {
    /// Adds noise to the sums of all measures.
    pub(crate) fn add(&self, sums: Vec<BoundedSum>, entropy: &mut dyn Entropy) -> Result<Vec<Vec<i64>>, SanitiseError> {
        if sums.len() != self.measures.len() {
            return Err(SanitiseError::Length { given: sums.len(), expected: self.measures.len() });
        }
        sums.into_iter().zip(&self.measures).map(|(sum, noise)| sum.with_noise(noise, &mut *entropy)).collect()
    }

    /// The groups that show, of so many.
    pub(crate) fn shown(
        &self,
        presence: Option<&BoundedSum>,
        groups: usize,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<usize>, SanitiseError> {
        match (&self.keys, presence) {
            (None, _) => Ok((0..groups).collect()),
            (Some(keys), Some(presence)) => presence.shown(keys, entropy),
            (Some(_), None) => Err(SanitiseError::Unfit("private keys without the number of their users")),
        }
    }
}

/// The noise of a whole plan, and what it costs.
#[derive(Debug, Clone)]
pub(crate) struct Calibrated {
    pub(crate) parts: Vec<PartNoise>,
    pub(crate) charge: Charge,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

/// How the price of a plan is divided.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PriceLaw {
    /// μ², and δ for keys.
    Gaussian {
        /// μ of everything together.
        mu: f64,
    },
    /// ε.
    Laplace {
        /// ε of everything together.
        epsilon: f64,
    },
}

/// How the keys that are not public would be listed.
fn listing(plan: &Plan) -> String {
    let selected = plan.parts.iter().filter(|part| part.groups == Groups::Selected);
    let unlisted = selected.flat_map(|part| &part.keys).find(|key| key.listed.is_none());
    match unlisted {
        Some(key) if matches!(key.expr, Expr::Column(_)) => {
            format!("the keys: columns.{}.keys = […]", line::key(&key.name))
        }
        Some(key) => format!("the values of `{}` in a public table, and join with that", key.name),
        None => "the keys: columns.NAME.keys = […]".to_owned(),
    }
}

/// Divides ε and δ of the protected rung among all that a plan releases.
pub(crate) fn calibrate(plan: &Plan, epsilon: f64, delta: f64) -> Result<Calibrated, QueryError> {
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return Err(QueryError::asked(
            format!("ε is {epsilon}, and it must be a finite number above 0"),
            "try `asking.epsilon = 0.5`",
        ));
    }
    if !(0.0..1.0).contains(&delta) {
        return Err(QueryError::asked(
            format!("δ is {delta}, and it must be at least 0 and below 1"),
            "try `asking.delta = 1e-6`",
        ));
    }
    let selected = plan.parts.iter().filter(|part| part.groups == Groups::Selected && is_private(part)).count();
    let needs_delta = plan.parts.iter().any(|part| {
        !part.autos.is_empty()
            || part.measures.iter().any(|measure| measure.moved.iter().any(|moved| moved.l1.is_infinite()))
    });
    if delta == 0.0 && (selected > 0 || needs_delta) {
        let what = if selected > 0 {
            "group keys that are not public"
        } else {
            "quantiles, extremes and bounds found privately"
        };
        return Err(QueryError::asked(
            format!("{what} need a δ above 0"),
            if selected > 0 {
                format!("give `asking.delta = 1e-6`, or list {}", listing(plan))
            } else {
                "give `asking.delta = 1e-6`".to_owned()
            },
        ));
    }
    let weights: f64 = plan
        .parts
        .iter()
        .filter(|part| is_private(part))
        .map(|part| {
            let keys = if part.groups == Groups::Selected { KEYS_SHARE } else { 0.0 };
            let kept = if part.kept.is_some() { 2.0 * KEPT_SHARE } else { 0.0 };
            let measures: f64 = (0..part.measures.len()).map(|measure| part.weight(measure)).sum();
            measures + part.autos.len() as f64 * RANGE_SHARE + keys + kept
        })
        .sum();
    let weights = weights.max(1.0);
    if delta == 0.0 {
        return shared_out(
            plan,
            (epsilon, delta),
            PriceLaw::Laplace { epsilon: epsilon * (1.0 - 1e-12) },
            weights,
            KeyRule::None,
        );
    }
    // A hair less than allowed, for the rounding on the way.
    let gaussian =
        |epsilon: f64, delta: f64| PriceLaw::Gaussian { mu: gaussian_mu_down(epsilon, delta) * (1.0 - 1e-9) };
    if selected == 0 {
        return shared_out(plan, (epsilon, delta), gaussian(epsilon, delta), weights, KeyRule::None);
    }
    let each = delta * KEYS_DELTA / selected as f64;
    let rest = delta * (1.0 - KEYS_DELTA);
    let together =
        shared_out(plan, (epsilon, delta), gaussian(epsilon, rest), weights, KeyRule::Gaussian { delta: each })?;
    // The rule that shows most needs an ε of its own, which adds up plainly: better where one unit has few keys.
    let apart = epsilon * KEYS_SHARE / weights;
    let left = epsilon - apart * selected as f64;
    let optimal = KeyRule::Optimal { epsilon: apart, delta: each };
    let without_measures = plan.parts.iter().all(|part| part.measures.is_empty());
    if left <= 0.0 && !without_measures {
        return Ok(together);
    }
    let law = if without_measures { PriceLaw::Gaussian { mu: 1.0 } } else { gaussian(left, rest) };
    Ok(match shared_out(plan, (epsilon, delta), law, (weights - KEYS_SHARE * selected as f64).max(1.0), optimal) {
        Ok(apart) if apart.hardship() < together.hardship() => apart,
        _ => together,
    })
}

/// By what rule private keys show.
#[derive(Debug, Clone, Copy, PartialEq)]
enum KeyRule {
    None,
    Gaussian { delta: f64 },
    Optimal { epsilon: f64, delta: f64 },
}

impl Calibrated {
    /// The noise of one of several questions that share it, part by part.
    pub(crate) fn picked(&self, places: &[PartPlace]) -> Self {
        let parts = places.iter().map(|place| self.parts[place.part].clone()).collect();
        Self { parts, charge: self.charge.clone(), ..*self }
    }

    /// How many users a key needs, times the noise: what one would rather have less of.
    fn hardship(&self) -> f64 {
        let of = |part: &PartNoise| {
            let keys = part.keys.as_ref().map_or(1.0, |keys| keys.half() as f64);
            keys * part.measures.first().map_or(1.0, SumNoise::deviation)
        };
        self.parts.iter().map(of).sum()
    }
}

fn shared_out(
    plan: &Plan,
    asked: (f64, f64),
    law: PriceLaw,
    weights: f64,
    rule: KeyRule,
) -> Result<Calibrated, QueryError> {
    let mut parts = Vec::new();
    for part in &plan.parts {
        parts.push(part_noise(part, &plan.rungs, law, weights, rule)?);
    }
    let mut charge: Charge = Vec::new();
    for rung in &plan.rungs {
        let mut costs = Vec::new();
        for noise in &parts {
            costs.extend(noise.measures.iter().chain(&noise.ranges).map(|noise| noise.cost(rung)));
            costs.extend(noise.keys.as_ref().map(|keys| keys.cost(rung)));
            costs.extend(noise.kept.iter().flatten().map(|noise| noise.cost(rung)));
        }
        charge.push((rung.clone(), Cost::Series(costs)));
    }
    Ok(Calibrated { parts, charge, epsilon: asked.0, delta: asked.1 })
}

/// Whether a part releases anything that is not free.
pub(crate) fn is_private(part: &Part) -> bool {
    !part.measures.is_empty() || part.groups == Groups::Selected
}

fn part_noise(
    part: &Part,
    rungs: &[Rung],
    law: PriceLaw,
    weights: f64,
    rule: KeyRule,
) -> Result<PartNoise, QueryError> {
    let noise =
        |limit: UnitLimit, moved: &[Sensitivity], share: f64| noise(law, rungs, (limit, moved), share / weights);
    let measures = part.measures.iter().enumerate();
    let measures = measures.map(|(i, measure)| noise(part.limit_of(i), &measure.moved, part.weight(i)));
    let measures = measures.collect::<Result<_, _>>()?;
    let ranges = part.autos.iter().map(|auto| noise(part.limit_of_bins(), &auto.moved, RANGE_SHARE));
    let ranges = ranges.collect::<Result<_, _>>()?;
    let keys = match &part.presence {
        Some(presence) if is_private(part) => {
            let moved: Vec<(Rung, Moved)> = rungs.iter().cloned().zip(presence.moved.iter().copied()).collect();
            keys(law, KEYS_SHARE / weights, rule, moved)?
        }
        _ => None,
    };
    let kept = match &part.kept {
        Some(kept) => {
            let on = |i: usize| noise(UnitLimit::up_to(kept.most[i]), &kept.moved[i], KEPT_SHARE);
            Some([on(0)?, on(1)?])
        }
        None => None,
    };
    Ok(PartNoise { measures, ranges, keys, kept })
}

fn keys(law: PriceLaw, share: f64, rule: KeyRule, moved: Vec<(Rung, Moved)>) -> Result<Option<Keys>, QueryError> {
    let wrong = |error: &dyn std::fmt::Display| QueryError::failed(format!("no rule for private keys fits: {error}"));
    match (rule, law) {
        (KeyRule::Gaussian { delta }, PriceLaw::Gaussian { mu }) => {
            let length = moved.first().map_or(1.0, |(_, moved)| moved.by as f64 * (moved.keys as f64).sqrt());
            let sigma = Ratio::from_f64_up((length / (mu * share.sqrt())).next_up()).map_err(|error| wrong(&error))?;
            let delta = Delta::new(delta).map_err(|error| wrong(&error))?;
            Keys::gaussian_for(sigma, delta, moved).map(Some).map_err(|error| wrong(&error))
        }
        (KeyRule::Optimal { epsilon, delta }, _) => {
            whit_account::keys::optimal(epsilon, delta, moved).map(Some).map_err(|error| wrong(&error))
        }
        (KeyRule::None | KeyRule::Gaussian { .. }, _) => Ok(None),
    }
}

/// Noise for a share of the price on what units are bounded to, by how far one of the protected rung, which is the first, moves it.
fn noise(
    law: PriceLaw,
    rungs: &[Rung],
    (limit, moved): (UnitLimit, &[Sensitivity]),
    share: f64,
) -> Result<SumNoise, QueryError> {
    let wrong = |error: &dyn std::fmt::Display| {
        QueryError::asked(
            format!("the noise would leave all numbers: {error}"),
            "ask with a larger ε, or smaller caps and bounds",
        )
    };
    let width = match law {
        PriceLaw::Gaussian { mu } => moved[0].l2 / (mu * share.sqrt()),
        PriceLaw::Laplace { epsilon } => moved[0].l1 / (epsilon * share),
    };
    let width = Ratio::from_f64_up(width).map_err(|error| wrong(&error))?;
    let law = match law {
        PriceLaw::Gaussian { .. } => additive::Law::rounded(width),
        PriceLaw::Laplace { .. } => additive::Law::laplace(width),
    };
    let known = Reach::known(rungs.iter().cloned().zip(moved.iter().copied()).collect());
    Ok(SumNoise::new(law.map_err(|error| wrong(&error))?, SumReach::new(limit, known), Coordinates::Any))
}
