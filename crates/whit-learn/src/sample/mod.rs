//! Which units take part in a step: drawn by exact coins, without touching those that are not drawn.
//!
//! Who was drawn is as private as the rows. Neither the units nor their number may leave, and no divisor is made of it.

mod skip;
#[cfg(test)]
mod tests;

use crate::plan::Plan;
use skip::Skip;
use whit_core::Draw;
use whit_core::digits::number_of;
use whit_noise::{Entropy, Ratio, below};

/// What there is to draw from: counts, never rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool<'a> {
    /// So many units, each with a coin of its own.
    Units(usize),
    /// Users with a coin each. Units are sorted by user, and `ends[u]` is one past the last unit of user `u`.
    Users {
        /// Where each user's units end; the next user's begin there.
        ends: &'a [u32],
    },
}

/// A pool that does not fit the plan. [`PoolError::hint`] offers the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The plan draws users and the pool has units, or the other way round.
    #[error("the plan draws {planned}, and the pool is one of {given}")]
    Kind {
        /// What the plan draws.
        planned: &'static str,
        /// What the pool holds.
        given: &'static str,
    },
    /// More units than 32 bits count.
    #[error("units are numbered with 32 bits, and there are more of them")]
    TooMany,
    /// More units or users than the plan declares places for.
    #[error("the plan draws from {places} places, and more than that have rows")]
    Places {
        /// How many places were declared.
        places: u64,
    },
    /// A user with more units than the cap that the price was made for.
    #[error("a user has more than the {} that the plan was priced for", number_of(elements, "unit"))]
    Cap {
        /// The cap.
        elements: u64,
    },
    /// Ends that go back.
    #[error("the ends of users' units must not decrease, and they do")]
    Order,
}

impl PoolError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Kind { .. } => "make the pool of what the plan draws",
            Self::TooMany => "split the data set, or join units",
            Self::Places { .. } => "declare at least as many places as may have rows, and bound the data to them",
            Self::Cap { .. } => "bound each user to the declared number of units before drawing",
            Self::Order => "sort units by user, and give where each user's units end",
        }
    }
}

#[derive(Debug, Clone)]
enum DrawLaw {
    Everything,
    Poisson(Skip),
    Fixed {
        batch: u64,
        places: u64,
        /// One bit a place, all 0 between draws.
        taken: Vec<u64>,
    },
}

/// Draws the units of each step.
///
/// Poisson: one exact coin for each unit or user, by skipping from one that is drawn to the next, so a draw takes time in
/// proportion to what is drawn. Fixed size: each set of that size is equally likely (Floyd's algorithm). Whole users: the
/// same coins for users, and all units of a drawn user come along.
///
/// ```
/// use whit_core::{Change, Ladder, Unit, unit::{Caps, Kind}};
/// use whit_learn::{Count, Draft, Pool, Sampler};
/// let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event)?;
/// let plan = Draft::new(ladder, "1/100".parse()?, Count::Declared(10_000), 1.0, 1000).with_noise(1.0)?;
/// let mut sampler = Sampler::new(&plan, Pool::Units(9_876))?;
/// let drawn = sampler.draw(&mut whit_noise::Os);
/// assert!(drawn.is_sorted() && drawn.iter().all(|&unit| unit < 9_876));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    law: DrawLaw,
    /// How many coins there are.
    coins: u64,
    /// Where each user's units end, where whole users are drawn.
    ends: Option<Vec<u32>>,
}

impl Sampler {
    /// The sampler of a plan for a pool.
    pub fn new(plan: &Plan, pool: Pool<'_>) -> Result<Self, PoolError> {
        let (coins, ends) = match (plan.draw(), pool) {
            (Draw::Unit, Pool::Units(units)) => (units, None),
            (Draw::User { elements }, Pool::Users { ends }) => {
                let starts = std::iter::once(&0).chain(ends);
                for (&start, &end) in starts.zip(ends) {
                    if u64::from(end.checked_sub(start).ok_or(PoolError::Order)?) > elements {
                        return Err(PoolError::Cap { elements });
                    }
                }
                (ends.len(), Some(ends.to_vec()))
            }
            (Draw::Unit, Pool::Users { .. }) => return Err(PoolError::Kind { planned: "units", given: "users" }),
            (Draw::User { .. }, Pool::Units(_)) => return Err(PoolError::Kind { planned: "users", given: "units" }),
        };
        let coins = u64::from(u32::try_from(coins).map_err(|_| PoolError::TooMany)?);
        // A plan has places if and only if its batches have a fixed size.
        let law = match plan.places() {
            None => Skip::new(plan.rate()).map_or(DrawLaw::Everything, DrawLaw::Poisson),
            Some(places) => {
                if coins > places {
                    return Err(PoolError::Places { places });
                }
                u32::try_from(places).map_err(|_| PoolError::TooMany)?;
                // The plan has checked that this is a whole number, at most `places`.
                let batch = plan.rate().times(&Ratio::from(places)).map_or(0, |batch| batch.numerator() as u64);
                DrawLaw::Fixed { batch, places, taken: vec![0; places.div_ceil(64) as usize] }
            }
        };
        Ok(Self { law, coins, ends })
    }

    /// The units of one step, sorted. There may be none.
    pub fn draw(&mut self, entropy: &mut dyn Entropy) -> Vec<u32> {
        let mut units = Vec::new();
        self.draw_into(&mut units, entropy);
        units
    }

    /// The same, into a vector that is emptied first.
    fn draw_into(&mut self, units: &mut Vec<u32>, entropy: &mut dyn Entropy) {
        units.clear();
        let ends = self.ends.as_deref();
        let coins = self.coins;
        let mut take = |coin: u64| match ends {
            None => units.push(coin as u32),
            Some(ends) => {
                let coin = coin as usize;
                units.extend(if coin == 0 { 0 } else { ends[coin - 1] }..ends[coin]);
            }
        };
        match &mut self.law {
            DrawLaw::Everything => (0..coins).for_each(take),
            DrawLaw::Poisson(skip) => {
                let mut next = 0;
                while next < coins {
                    next += skip.draw(coins - next, entropy);
                    if next < coins {
                        take(next);
                        next += 1;
                    }
                }
            }
            DrawLaw::Fixed { batch, places, taken } => {
                let mut drawn = floyd(*batch, *places, taken, entropy);
                drawn.sort_unstable();
                // Places without a unit hold no rows: drawing them adds nothing.
                drawn.into_iter().map(u64::from).take_while(|&place| place < coins).for_each(take);
            }
        }
    }
}

/// A uniform set of `batch` out of `places`: for j from the last `batch` numbers, a uniform number up to j, or j itself where
/// that one is taken already (Floyd; Bentley 1987). `taken` is all 0 before and after.
fn floyd(batch: u64, places: u64, taken: &mut [u64], entropy: &mut dyn Entropy) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(batch as usize);
    let mut insert = |place: u64| {
        let (word, bit) = (&mut taken[(place / 64) as usize], 1 << (place % 64));
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    };
    for j in places.saturating_sub(batch)..places {
        let place = below(j + 1, entropy);
        let place = if insert(place) { place } else { j };
        insert(place); // notes `j` where it was chosen, and nothing new otherwise
        drawn.push(place as u32);
    }
    for &place in &drawn {
        taken[(place / 64) as usize] = 0;
    }
    drawn
}
