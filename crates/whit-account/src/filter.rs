//! A budget that says no: privacy filters, for analysts who choose each question after seeing the last answer.
//!
//! Under such fully adaptive composition the costs themselves are random, so a bound that holds for costs fixed beforehand
//! does not carry over by itself. A filter adds up the costs in one currency, refuses the first that would go
//! over, and everything that it let through is (ε, δ)-differentially private together.
//!
//! # Why
//! Let L be the loss of the whole transcript. Each currency stops a process whose drift is known:
//! - **Sum.** L ≤ Σε along every path on which none of the approximate runs failed, and the chance that one fails is at most the
//!   expectation of Σδ, which the filter keeps below δ (Rogers et al. 2016, Theorem 3.1).
//! - **Concentrated.** exp((α−1)·(L − α·Σρ)) is a supermartingale for every order α, so that if Σρ never exceeds ρ the whole
//!   transcript is ρ-concentrated, and the tight conversion applies (Feldman and Zrnic 2021; Whitehouse et al. 2023).
//! - **Rényi at several orders.** One order α alone is as above. With m orders, each gets δ/m, and the filter goes on while
//!   *any* order is within its budget. δ = E[(1 − e^{ε−L})₊] splits over which order, the first in the list, is within its
//!   budget at the end. Where it is α, that order was within its budget all along, since costs only grow; so the transcript
//!   is the same as that of the filter which watches α alone, for which the expectation is at most δ/m. The m parts add up to δ.
//! - **The plain sum as well.** While all runs are pure (or approximate, their δ being set aside), L ≤ Σε along every path. So filters in ρ, in μ and at
//!   Rényi orders also go on while Σε is within ε: the part of δ that belongs to such an end is 0, so it takes no share.
//! - **Gaussian.** Fix two neighbours. A Gaussian run with parameter μᵢ is what a Brownian motion with drift 0 or 1 does during a time of μᵢ². How long the
//!   next run lasts may depend on the path so far: all runs together are a function of one path up to time μ², which
//!   is exactly as telling as N(0, 1) against N(μ, 1). *Any* run that is μᵢ-GDP given the answers so far will do: by Blackwell's theorem it is
//!   what some random map, which may depend on those answers, makes of such a stretch of the path (Dong, Roth, Su 2022, Theorem 2.10), so the
//!   transcript is still a function of the path and of coins that know nothing of the data. That runs with Σμᵢ² ≤ μ² are μ-GDP together however
//!   they are chosen is the theorem of Smith and Thakurta (2022), "Fully adaptive composition for Gaussian differential privacy"; Koskela, Tobaben and Honkela
//!   (2023), "Individual privacy accounting with Gaussian differential privacy", have it for each individual. A pure ε is μ-GDP with
//!   μ = 2Φ⁻¹(e^ε/(1+e^ε)): [`pure_mu`](crate::accountant::gdp::pure_mu) says why, [`mu`](crate::accountant::gdp::mu) what the other runs are.
//! - **The part of δ set aside.** An (ε, δ) run is, by a coin that shows "fails" with probability δ under both neighbours, either something arbitrary or
//!   an ε-private run (Kairouz, Oh, Viswanath 2015). Let the filter end at the first failure without a word. That transcript costs what the
//!   filter says, and differs from the true one only where something failed, which has probability at most the expectation
//!   of Σδ, at most what was set aside.

use crate::accountant::divergence::run_divergence_up;
use crate::accountant::gdp;
use crate::accountant::renyi::{self, cks_epsilon, lowest};
use crate::accountant::zcdp::{self, rho_down, tight_epsilon};
use crate::accountant::{Name, Unsupported, runs, word_for};
use crate::normal::{gaussian_epsilon_up, gaussian_mu_down};
use std::collections::BTreeMap;
use whit_core::{Cost, Epsilon, OutOfRange, Rho, Sampled};
use whit_noise::round::sum_up;

/// What a filter adds up.
#[derive(Debug, Clone, PartialEq)]
pub enum Currency {
    /// ε and δ: for pure and approximate runs. The only one that works at δ = 0.
    Sum,
    /// ρ: for every kind of run, though sampling is not rewarded.
    Concentrated,
    /// Rényi divergences at fixed orders, each above 1: the one for subsampled steps.
    Renyi {
        /// The orders; δ is divided among them.
        orders: Vec<f64>,
    },
    /// μ²: exact for Gaussian noise, good for pure runs among it; sampling is not rewarded, and a ρ has no price.
    Gaussian,
}

impl Currency {
    /// Ten Rényi orders around the one that would be best if the whole budget were spent on Gaussian noise: for costs of which
    /// nothing is known beforehand.
    pub fn renyi(epsilon: f64, delta: f64) -> Self {
        let best = gaussian_order(epsilon, delta) - 1.0;
        // Whole orders are cheaper to price.
        let order = |k: i32| 1.0 + best * 1.3_f64.powi(k);
        let mut orders: Vec<f64> =
            (-5..=4).map(order).map(|alpha| if alpha > 2.0 { alpha.round() } else { alpha }).collect();
        orders.dedup();
        Self::Renyi { orders }
    }

    /// Rényi orders for a loss of which nothing is known, not even how large it is: one of them is near the best, from an ε of a tenth to one of thousands.
    pub(crate) fn renyi_of_any_loss() -> Self {
        let orders = (0..=18).map(|k| 1.0 + 0.06 * 1.6_f64.powi(k));
        Self::Renyi { orders: orders.map(|alpha| if alpha > 2.0 { alpha.round() } else { alpha }).collect() }
    }

    /// Three Rényi orders around the one at which most runs like `typical` fit into the budget. What is really charged
    /// may be anything: a wrong guess costs budget, never privacy.
    pub fn renyi_for(epsilon: f64, delta: f64, typical: &Cost) -> Result<Self, Unsupported> {
        renyi::divergence(typical, 2.0)?;
        let (best, _) = lowest(gaussian_order(epsilon, delta), |alpha| {
            let budget = order_budget_down(alpha, epsilon, delta / 3.0);
            let each = renyi::divergence(typical, alpha).unwrap_or(f64::INFINITY);
            if budget > 0.0 { each / budget } else { f64::INFINITY }
        });
        Ok(Self::Renyi { orders: [0.8, 1.0, 1.25].map(|factor| 1.0 + (best - 1.0) * factor).to_vec() })
    }
}

/// A filter's "no", or the reason why it cannot judge. Nothing was charged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The cost does not fit into what is left.
    #[error("this needs ε = {asked} at δ = {delta}, and ε = {left} of the budget is left")]
    Short {
        /// ε of this cost alone, in the terms of [`Filter::left`].
        asked: f64,
        /// [`Filter::left`].
        left: f64,
        /// The δ of the budget.
        delta: f64,
    },
    /// The δ that approximate runs bring along does not fit into the part of δ that is kept for them.
    #[error("this brings along δ = {asked}, and {left} of what is set aside for such runs is left")]
    Aside {
        /// δ of this cost.
        asked: f64,
        /// What is left for such δ.
        left: f64,
    },
    /// The cost has no price in this currency.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// What one cost comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CostPrice {
    amounts: Vec<f64>,
    aside: f64,
}

/// Watches over a budget of (ε, δ).
///
/// A charge takes constant time, whatever was charged before; prices of costs that come again are remembered. Sums are rounded up;
/// so that ten runs of 0.1, which is a little more than a tenth in binary, fit into 1, a budget that is a plain sum of ε or δ is
/// kept to a relative [`TOLERANCE`], and the guarantee is for that.
///
/// ```
/// use whit_account::filter::{Currency, Filter};
/// use whit_core::{Cost, Epsilon};
///
/// let mut filter = Filter::new(1.0, 1e-6, Currency::Concentrated)?;
/// let count = Cost::Pure { epsilon: Epsilon::new(0.05)? };
/// let answered = (0..1000).take_while(|_| filter.charge(&count).is_ok()).count();
/// assert_eq!(answered, 20, "few pure runs fit as a plain sum; ρ is for many");
/// assert!(filter.spent() <= 1.000_000_001 && filter.charge(&Cost::Everything).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    epsilon: f64,
    delta: f64,
    currency: Currency,
    /// What may be spent: one number for each order, or one in all; after it Σε, except for `Sum`.
    budget: Vec<f64>,
    spent: Vec<f64>,
    aside: f64,
    aside_spent: f64,
    memo: BTreeMap<String, CostPrice>,
}

/// By how much, relatively, a plain sum may exceed its budget.
pub const TOLERANCE: f64 = 1e-9;

/// So many prices are remembered; then the filter starts over.
const MEMORY: usize = 4096;

impl Filter {
    /// A filter for a budget, with no part of δ kept for approximate runs (except for [`Currency::Sum`], where it is all of δ).
    pub fn new(epsilon: f64, delta: f64, currency: Currency) -> Result<Self, Unsupported> {
        let aside = if currency == Currency::Sum { delta } else { 0.0 };
        Self::with_aside(epsilon, delta, aside, currency)
    }

    /// A filter that keeps `aside` of δ for the δ that approximate runs bring along.
    pub(crate) fn with_aside(epsilon: f64, delta: f64, aside: f64, currency: Currency) -> Result<Self, Unsupported> {
        let range = |name, value, ok: bool, range| if ok { Ok(()) } else { Err(OutOfRange { name, value, range }) };
        range("ε", epsilon, epsilon >= 0.0, "at least 0")?;
        range("δ", delta, (0.0..1.0).contains(&delta), "at least 0 and below 1")?;
        range("δ set aside", aside, (0.0..=delta).contains(&aside), "at least 0 and at most δ")?;
        let left = delta - aside;
        let needs = |accountant| {
            let cost = "a budget in its currency";
            if left > 0.0 { Ok(()) } else { Err(Unsupported::NeedsDelta { accountant, cost }) }
        };
        let budget = match &currency {
            Currency::Sum => vec![tolerated(epsilon)],
            Currency::Concentrated => {
                needs(Name::Zcdp)?;
                vec![rho_down(epsilon, left), tolerated(epsilon)]
            }
            Currency::Gaussian => {
                needs(Name::Gdp)?;
                let mu = gaussian_mu_down(epsilon, left);
                vec![(mu * mu).next_down(), tolerated(epsilon)]
            }
            Currency::Renyi { orders } => {
                needs(Name::Rdp)?;
                range("the number of orders", 0.0, !orders.is_empty(), "at least 1")?;
                let share = left / orders.len() as f64;
                let mut budget = Vec::new();
                for &alpha in orders {
                    range("a Rényi order", alpha, alpha > 1.0 && alpha.is_finite(), "greater than 1")?;
                    budget.push(order_budget_down(alpha, epsilon, share));
                }
                budget.push(tolerated(epsilon));
                budget
            }
        };
        let spent = vec![0.0; budget.len()];
        Ok(Self { epsilon, delta, currency, budget, spent, aside, aside_spent: 0.0, memo: BTreeMap::new() })
    }

    /// The budget's ε.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The budget's δ.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// Charges a cost, or refuses it and stays as it was.
    pub fn charge(&mut self, cost: &Cost) -> Result<(), Refused> {
        let price = self.price(cost)?;
        self.fits(&price)?;
        self.add(&price);
        Ok(())
    }

    /// What was charged so far, as an ε at the budget's δ. A report on the budget: what a *later* refusal will have
    /// guaranteed is the budget itself, and what holds at this very moment is for an [`odometer`](crate::odometer) to say.
    ///
    /// Of δ, what approximate runs have brought along is taken away first, and no more: so one release that was calibrated to ε at the budget's δ is reported as that ε.
    pub fn spent(&self) -> f64 {
        self.best(|i| Some(self.in_epsilon(i, self.spent[i], self.delta - self.aside_spent)))
    }

    /// ε of the largest single release that would still fit: with Gaussian noise, at the budget's δ; in a plain sum, of a pure one.
    ///
    /// This is what reports, previews and refusals all call "left". It is the ε that a question may ask for which brings along no δ of its own. What is
    /// spent and what is left need not add up to the budget: ε of several releases together is less than their sum, and a part of δ may be set aside.
    pub fn left(&self) -> f64 {
        match self.currency {
            // Without the tolerance, which is there for the rounding of sums and not to be asked for.
            Currency::Sum => (self.epsilon - self.spent[0]).max(0.0),
            _ => self.nearest().map_or(0.0, |i| self.plainly(i, self.budget[i] - self.spent[i])),
        }
    }

    /// The order at which most is left for Gaussian noise, if anything is.
    fn nearest(&self) -> Option<usize> {
        let orders = self.budget.len() - usize::from(self.currency != Currency::Sum);
        let left = |i: usize| self.plainly(i, self.budget[i] - self.spent[i]);
        (0..orders).filter(|&i| self.budget[i] > self.spent[i]).max_by(|&i, &j| left(i).total_cmp(&left(j)))
    }

    /// ε at the budget's δ of the Gaussian noise that comes to this much at the i-th order; an ε itself in a plain sum. A hair less than it is.
    fn plainly(&self, i: usize, amount: f64) -> f64 {
        let squared = match &self.currency {
            Currency::Sum => return amount,
            Currency::Gaussian => amount,
            Currency::Concentrated => 2.0 * amount,
            Currency::Renyi { orders } => 2.0 * amount / orders[i],
        };
        gaussian_epsilon_up(self.delta, squared.max(0.0).sqrt()) * (1.0 - 1e-9)
    }

    /// ε of the largest cost of this kind that would still fit: the same runs with more noise, each by the same factor. An ε at
    /// the part of δ that is not set aside; nothing where more noise does not help, because δ itself does not fit.
    ///
    /// ```
    /// use whit_account::filter::{Currency, Filter};
    /// use whit_core::{Cost, Epsilon};
    /// let mut filter = Filter::new(1.0, 1e-6, Currency::Gaussian)?;
    /// filter.charge(&Cost::Pure { epsilon: Epsilon::new(0.75)? })?;
    /// let available = filter.available(&Cost::Pure { epsilon: Epsilon::new(3.0)? }).unwrap();
    /// assert!((0.249..=0.250_000_01).contains(&available));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn available(&self, cost: &Cost) -> Option<f64> {
        let fitting = |share: f64| {
            let price = self.work_out(&with_more_noise(cost, share)?).ok()?;
            let delta = self.delta - self.aside;
            self.fits(&price).ok().map(|()| self.best(|i| Some(self.in_epsilon(i, price.amounts[i], delta))))
        };
        if let Some(all) = fitting(1.0) {
            return Some(all);
        }
        // Below a billionth nothing worth asking for is left.
        let mut best = fitting(1e-9)?;
        let (mut fits, mut fails) = (1e-9_f64.ln(), 0.0_f64);
        while fails - fits > 1e-6 {
            let middle = 0.5 * (fits + fails);
            match fitting(middle.exp()) {
                Some(epsilon) => (fits, best) = (middle, epsilon),
                None => fails = middle,
            }
        }
        Some(best)
    }

    /// The share of the whole budget that a cost takes, in the terms in which it takes least, whatever was spent before; infinite where it has no price. Sums in a
    /// currency are plain, so that the same n times takes n times that share.
    ///
    /// ```
    /// use whit_account::filter::{Currency, Filter};
    /// use whit_core::{Cost, Epsilon};
    /// let mut filter = Filter::new(1.0, 0.0, Currency::Sum)?;
    /// let quarter = Cost::Pure { epsilon: Epsilon::new(0.25)? };
    /// assert!((filter.share(&quarter) - 0.25).abs() < 1e-8);
    /// assert!(filter.share(&Cost::Everything).is_infinite());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(&mut self, cost: &Cost) -> f64 {
        let Ok(price) = self.price(cost) else { return f64::INFINITY };
        let of = |amount: f64, budget: f64| if amount == 0.0 { 0.0 } else { amount / budget };
        self.best(|i| Some(of(price.amounts[i], self.budget[i]))).max(of(price.aside, self.aside))
    }

    fn best(&self, value: impl Fn(usize) -> Option<f64>) -> f64 {
        (0..self.budget.len()).filter_map(value).fold(f64::INFINITY, f64::min)
    }

    /// An amount of the i-th currency as an ε at δ.
    fn in_epsilon(&self, i: usize, amount: f64, left: f64) -> f64 {
        if amount == 0.0 {
            return 0.0;
        }
        match &self.currency {
            Currency::Sum => amount,
            Currency::Concentrated => [tight_epsilon(amount, left), amount][i],
            Currency::Gaussian => [gaussian_epsilon_up(left, amount.sqrt()), amount][i],
            Currency::Renyi { orders } => {
                orders.get(i).map_or(amount, |&alpha| cks_epsilon(alpha, amount, left / orders.len() as f64))
            }
        }
    }

    /// What a cost comes to in this filter's currency; remembered.
    pub(crate) fn price(&mut self, cost: &Cost) -> Result<CostPrice, Unsupported> {
        let key = format!("{cost:?}"); // floats print so that they can be read back, so equal keys are equal costs
        if let Some(price) = self.memo.get(&key) {
            return Ok(price.clone());
        }
        let price = self.work_out(cost)?;
        if self.memo.len() >= MEMORY {
            self.memo.clear();
        }
        self.memo.insert(key, price.clone());
        Ok(price)
    }

    fn work_out(&self, cost: &Cost) -> Result<CostPrice, Unsupported> {
        let Some(leaves) = runs(cost)? else {
            return Ok(CostPrice { amounts: vec![f64::INFINITY; self.budget.len()], aside: 0.0 });
        };
        let mut price = CostPrice { amounts: vec![0.0; self.budget.len()], aside: 0.0 };
        let add = |sum: &mut f64, amount: f64, times: u64| {
            if amount > 0.0 {
                *sum = (*sum + (amount * times as f64).next_up().next_up()).next_up();
            }
        };
        for (leaf, times) in &leaves {
            if let Cost::Approximate { delta, .. } = leaf {
                add(&mut price.aside, delta.get(), *times);
            }
            for (i, sum) in price.amounts.iter_mut().enumerate() {
                add(sum, self.run_amount(leaf, i)?, *times);
            }
        }
        Ok(price)
    }

    /// One run of a leaf in the i-th currency.
    fn run_amount(&self, leaf: &Cost, i: usize) -> Result<f64, Unsupported> {
        match &self.currency {
            Currency::Sum => {
                let epsilon = run_divergence_up(leaf, f64::INFINITY)?;
                if epsilon == f64::INFINITY {
                    let instead = "a sum of ε has no δ to share out; use a filter in ρ or at Rényi orders";
                    return Err(Unsupported::Cost { accountant: Name::Basic, cost: word_for(leaf), instead });
                }
                Ok(epsilon)
            }
            Currency::Concentrated if i == 0 => Ok(zcdp::rho(leaf)?.0),
            Currency::Renyi { orders } => run_divergence_up(leaf, orders.get(i).copied().unwrap_or(f64::INFINITY)),
            Currency::Gaussian if i == 0 => {
                let mu = match leaf {
                    Cost::Approximate { epsilon, .. } => gdp::pure_mu(epsilon.get()), // its δ goes to the part set aside
                    Cost::Concentrated { .. } => {
                        let instead =
                            "a ρ alone does not bound a trade-off curve; use a filter in ρ or at Rényi orders";
                        return Err(Unsupported::Cost { accountant: Name::Gdp, cost: word_for(leaf), instead });
                    }
                    Cost::Nothing
                    | Cost::Everything
                    | Cost::Pure { .. }
                    | Cost::Gaussian { .. }
                    | Cost::Laplace { .. }
                    | Cost::Geometric { .. }
                    | Cost::BoundedRange { .. }
                    | Cost::Sampled(_)
                    | Cost::Chosen { .. }
                    | Cost::Repeat { .. }
                    | Cost::Series(_) => gdp::mu(leaf)?,
                };
                Ok(if mu == 0.0 { 0.0 } else { (mu * mu).next_up() })
            }
            Currency::Concentrated | Currency::Gaussian => run_divergence_up(leaf, f64::INFINITY),
        }
    }

    /// Whether a price fits into what is left.
    pub(crate) fn fits(&self, price: &CostPrice) -> Result<(), Refused> {
        if price.aside > 0.0 && sum_up(self.aside_spent, price.aside) > tolerated(self.aside) {
            return Err(Refused::Aside { asked: price.aside, left: (self.aside - self.aside_spent).max(0.0) });
        }
        let after = |i: usize| sum_up(self.spent[i], price.amounts[i]);
        let free = price.amounts.iter().all(|&amount| amount == 0.0);
        if free || (0..self.budget.len()).any(|i| after(i) <= self.budget[i]) {
            return Ok(());
        }
        // Reported at the order at which most is left, so that what is asked is more than what is left.
        let (asked, left) = match self.nearest() {
            Some(i) => (self.plainly(i, price.amounts[i]), self.left()),
            None => (self.plainly(0, price.amounts[0]), 0.0),
        };
        Err(Refused::Short { asked, left, delta: self.delta })
    }

    /// Adds a price that fits.
    pub(crate) fn add(&mut self, price: &CostPrice) {
        for (spent, amount) in self.spent.iter_mut().zip(&price.amounts) {
            *spent = sum_up(*spent, *amount);
        }
        self.aside_spent = sum_up(self.aside_spent, price.aside);
    }

    /// What was spent, to be put back by [`restore`](Self::restore) when a charge to several filters fails half-way.
    pub(crate) fn mark(&self) -> (Vec<f64>, f64) {
        (self.spent.clone(), self.aside_spent)
    }

    pub(crate) fn restore(&mut self, (spent, aside): (Vec<f64>, f64)) {
        self.spent = spent;
        self.aside_spent = aside;
    }
}

fn tolerated(budget: f64) -> f64 {
    budget * (1.0 + TOLERANCE)
}

/// The same runs with noise larger by 1/`share`: an ε shrinks by the share, a ρ by its square, and a δ stays. Nothing for what has no noise.
fn with_more_noise(cost: &Cost, share: f64) -> Option<Cost> {
    let less = |epsilon: &Epsilon| Epsilon::new(epsilon.get() * share).ok();
    Some(match cost {
        Cost::Nothing => Cost::Nothing,
        Cost::Everything => return None,
        Cost::Pure { epsilon } => Cost::Pure { epsilon: less(epsilon)? },
        Cost::Approximate { epsilon, delta } => Cost::Approximate { epsilon: less(epsilon)?, delta: *delta },
        Cost::Concentrated { rho } => Cost::Concentrated { rho: Rho::new(rho.get() * share * share).ok()? },
        Cost::Gaussian { noise } => Cost::Gaussian { noise: noise / share },
        Cost::Laplace { scale } => Cost::Laplace { scale: scale / share },
        Cost::Geometric { shift, scale } => Cost::Geometric { shift: *shift, scale: scale / share },
        Cost::BoundedRange { epsilon } => Cost::BoundedRange { epsilon: less(epsilon)? },
        Cost::Sampled(step) => Cost::Sampled(Sampled { noise: step.noise / share, ..*step }),
        Cost::Chosen { candidates, law } => Cost::Chosen {
            candidates: candidates.iter().map(|cost| with_more_noise(cost, share)).collect::<Option<_>>()?,
            law: *law,
        },
        Cost::Repeat { times, cost } => with_more_noise(cost, share)?.repeat(*times),
        Cost::Series(costs) => {
            Cost::Series(costs.iter().map(|cost| with_more_noise(cost, share)).collect::<Option<_>>()?)
        }
    })
}

/// The order that is best for a budget which is spent on Gaussian noise.
fn gaussian_order(epsilon: f64, delta: f64) -> f64 {
    let rho = rho_down(epsilon, delta).clamp(1e-12, 1e6);
    1.0 + (-delta.clamp(1e-300, 0.99).ln() / rho).sqrt()
}

/// The largest divergence at order α that Canonne, Kamath and Steinke's conversion turns into at most ε at δ, rounded down;
/// negative where the order can never do.
fn order_budget_down(alpha: f64, epsilon: f64, delta: f64) -> f64 {
    let overhead = (-1.0 / alpha).ln_1p() - (delta.ln() + alpha.ln()) / (alpha - 1.0);
    let budget = epsilon - overhead;
    budget - 1e-14 * (epsilon.abs() + overhead.abs())
}

#[cfg(test)]
mod tests;
