//! Choosing a day for a meeting: the calendar of the place is public, who can come when is not.
//!
//! Two roads to one day. Release a noisy count for every open day and take the largest: one person may be free on every open
//! day, so all these counts compose, and each gets a fifth of ε. Or choose the day itself by the exponential mechanism: nobody needs
//! the counts, one more person raises all scores at most by 1 and none falls, and the whole ε goes into the choice.
//!
//! ```text
//! cargo run --release --example meeting_day
//! ```
//!
//! The probabilities in the table are exact, not simulated; the day at the end is a real release and differs from run to run.

use std::io::Write;
use whit::core::mechanism::laplace::LaplaceVector;
use whit::core::mechanism::select::{Candidates, Exponential, PermuteAndFlip, Scores};
use whit::core::release::{CommitError, Reservation};
use whit::{Bound, Change, Charge, Cost, Ledger, Os, Ratio, Refusal, Rung, Support, Unit, release};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Public: the place is closed on Wednesday and on Sunday.
const CLOSED: [usize; 2] = [2, 6];
/// Private: how many people share each pattern of free days, Monday first.
const PEOPLE: [(i64, &str); 7] =
    [(9, ".x..x.."), (8, "xx.xx.."), (6, ".xx...x"), (5, "x..x..."), (4, ".....xx"), (3, "xxxxxxx"), (5, ".x.xx..")];

/// A ledger for one afternoon: it allows everything and remembers it.
#[derive(Default)]
struct Notebook {
    charges: Vec<Charge>,
}

impl Ledger for Notebook {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        self.charges.push(charge.clone());
        Ok(Reservation::new(self.charges.len() as u64))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

/// How many people can come on each day. On a closed day nobody can.
fn counts() -> Vec<i64> {
    let free = |day: usize| PEOPLE.iter().filter(|(_, days)| days.as_bytes()[day] == b'x').map(|(n, _)| n).sum();
    (0..7).map(|day| if CLOSED.contains(&day) { 0 } else { free(day) }).collect()
}

/// The law of the largest of several counts, those of open days with discrete Laplace noise. Of equal ones the earlier day wins.
fn law_of_largest(counts: &[i64], scale: f64, with_closed_days: bool) -> Vec<f64> {
    let a = (-1.0 / scale).exp();
    // P(noisy count of `day` ≤ k)
    let at_most = |day: usize, k: i64| {
        let gap = k - counts[day];
        if CLOSED.contains(&day) {
            f64::from(!with_closed_days || gap >= 0) // exactly 0, or not in the race at all
        } else if gap < 0 {
            (gap as f64 / scale).exp() / (1.0 + a)
        } else {
            1.0 - (-(gap as f64 + 1.0) / scale).exp() / (1.0 + a)
        }
    };
    let reach = (60.0 * scale) as i64 + 100;
    let wins = |day: usize| {
        let exactly = |k: i64| {
            if CLOSED.contains(&day) && !with_closed_days { 0.0 } else { at_most(day, k) - at_most(day, k - 1) }
        };
        let others = |k: i64| {
            (0..7)
                .filter(|other| *other != day)
                .map(|other| at_most(other, if other < day { k - 1 } else { k }))
                .product::<f64>()
        };
        (-reach..=reach).map(|k| exactly(k) * others(k)).sum()
    };
    (0..7).map(wins).collect()
}

/// The probability of the best day, and how many people fewer than on the best day can come, on average.
fn judge(law: &[f64], counts: &[i64]) -> (f64, f64) {
    let best = *counts.iter().max().expect("a week has days");
    let right = law.iter().zip(counts).filter(|(_, count)| **count == best).map(|(p, _)| p).sum();
    let regret = law.iter().zip(counts).map(|(p, count)| p * (best - count) as f64).sum();
    (right, regret)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let counts = counts();
    let open = DAYS.len() - CLOSED.len();
    writeln!(out, "People who can come (private), and days on which the place is closed (public):\n")?;
    for (i, day) in DAYS.iter().enumerate() {
        let bar = if CLOSED.contains(&i) { "closed".to_owned() } else { "█".repeat(counts[i] as usize) };
        writeln!(out, "  {day}  {:>2}  {bar}", counts[i])?;
    }

    writeln!(
        out,
        "\nProbability of the best day, and how many people fewer can come on average, at one ε per person:\n"
    )?;
    writeln!(
        out,
        "          exponential            permute-and-flip        noise on {open} counts     closed days as 0"
    )?;
    writeln!(out, "     ε     best day     fewer    best day      fewer    best day     fewer    a closed day wins")?;
    for text in ["0.05", "0.1", "0.2", "0.5", "1", "2"] {
        let epsilon: Ratio = text.parse()?;
        let days = Candidates::new(DAYS.len(), epsilon, 1, Scores::Monotone)?.without(CLOSED)?;
        let chosen = judge(&Exponential::new(days.clone()).probabilities(&counts)?, &counts);
        let flipped = judge(&PermuteAndFlip::new(days).probabilities(&counts)?, &counts);
        // One person is in at most `open` counts, once in each.
        let bound = Bound::coordinates(open as u64, 0, 1, Support::NonNegative)?;
        let noised = LaplaceVector::for_epsilon(bound, open, Change::AddRemove, epsilon)?;
        let scale = noised.scale().to_f64();
        let largest = judge(&law_of_largest(&counts, scale, false), &counts);
        let with_closed = law_of_largest(&counts, scale, true);
        let closed: f64 = CLOSED.iter().map(|day| with_closed[*day]).sum();
        writeln!(
            out,
            "{text:>6}  {:>9.1} %  {:>8.2}  {:>8.1} %   {:>8.2}  {:>8.1} %  {:>8.2}  {:>17.2} %",
            chosen.0 * 100.0,
            chosen.1,
            flipped.0 * 100.0,
            flipped.1,
            largest.0 * 100.0,
            largest.1,
            closed * 100.0
        )?;
    }

    let days = Candidates::new(DAYS.len(), "0.5".parse()?, 1, Scores::Monotone)?.without(CLOSED)?;
    let person = Rung { unit: Unit::user("person", Change::AddRemove), holds: 1, disjoint: false, slices: None };
    let mut ledger = Notebook::default();
    let released = release(&PermuteAndFlip::new(days), |_| Ok(&counts[..]), &[person], &mut ledger, &mut Os)?;
    let cost = match &released.charge[0].1 {
        Cost::Pure { epsilon } => format!("ε = {epsilon}"),
        other => format!("{other:?}"),
    };
    let (day, fewer) = (DAYS[released.value], released.accuracy.within.floor());
    writeln!(
        out,
        "\nReleased: {day}, for {cost} per person; with 95 % confidence at most {fewer} people fewer than on the best day."
    )?;
    Ok(())
}
