//! What a question would cost and how wrong it would be, before it is asked.

use crate::number::{brief, brief_down, brief_up, percent_up, times_left};
use crate::plain::PlainText;
use crate::table::{Side, Table};
use std::io::{self, Write};
use whit_query::Fault;
use whit_query::explain::{Error, Fits, Preview, Repeated};

/// The plan, how far off each value would be, what it would cost, and what asking would come to.
pub fn write(preview: &Preview, fits: &Fits, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    for line in &preview.plan {
        writeln!(out, "{line}")?;
    }
    if !preview.errors.is_empty() {
        writeln!(out)?;
        write_errors(&preview.errors, preview.confidence, out)?;
    }
    writeln!(out)?;
    write_price(preview, fits, out)
}

/// How far off each column would be.
pub(crate) fn write_errors(errors: &[Error], confidence: f64, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new([("column", Side::Left), ("off by", Side::Left)]);
    for error in errors {
        let off_by = match error.within {
            Some(within) => {
                let words = if error.words.is_empty() { String::new() } else { format!(", {}", error.words) };
                format!("± {} at {} %{words}", brief_up(within), confidence * 100.0)
            }
            None => error.words.clone(),
        };
        table.row([error.name.clone(), off_by]);
    }
    table.write(out)
}

/// What it would cost, what to know of it, and what asking would come to.
pub(crate) fn write_price(preview: &Preview, fits: &Fits, out: &mut dyn Write) -> io::Result<()> {
    if preview.prices.is_empty() {
        writeln!(out, "It reads nothing private and costs nothing.")?;
    } else {
        let mut table = Table::new([("it would cost", Side::Left), ("ε", Side::Right), ("δ", Side::Right)]);
        for price in &preview.prices {
            table.row([price.unit.clone(), brief_up(price.epsilon), format!("{:e}", price.delta)]);
        }
        table.write(out)?;
        match (fits.stored, fits.goes_on, &fits.denied) {
            (Some(entry), ..) => {
                writeln!(
                    out,
                    "It was answered before: asking it reads entry {entry} of the ledger again, and costs nothing."
                )?;
            }
            (None, Some(entry), _) => {
                writeln!(out, "It was interrupted: asking it goes on under entry {entry}, and costs nothing more.")?;
            }
            (None, None, None) => writeln!(out, "Nothing was charged. Ask it with `whit query`.")?,
            (None, None, Some(_)) => writeln!(out, "Nothing was charged.")?,
        }
    }
    for note in &preview.notes {
        writeln!(out, "note: {note}")?;
    }
    if !fits.budgets.is_empty() {
        writeln!(out)?;
        write_budgets(fits, out)?;
    }
    let Some(denied) = &fits.denied else { return Ok(()) };
    if denied.fault == Fault::Refused {
        writeln!(out, "It would be refused: {denied}.")?;
        return fits.epsilon_that_fits.iter().try_for_each(|epsilon| {
            writeln!(out, "With --epsilon {epsilon} it would fit.") // as it was tried
        });
    }
    writeln!(out, "\nAsking it would fail: {denied}.")?;
    denied.hint.iter().try_for_each(|hint| writeln!(out, "  hint: {hint}"))
}

/// Which budgets a question fits.
fn write_budgets(fits: &Fits, out: &mut dyn Write) -> io::Result<()> {
    let columns = [("budget", Side::Left), ("for", Side::Left), ("ε left", Side::Right), ("it fits", Side::Left)];
    let mut table = Table::new(columns);
    for budget in &fits.budgets {
        let slice = budget.slice.as_ref().map_or_else(String::new, |slice| format!(", where {slice}"));
        table.row([
            format!("{}{slice}, ε = {} at δ = {}", budget.unit, brief(budget.epsilon), brief(budget.delta)),
            budget.analyst.clone().unwrap_or_else(|| "all".to_owned()),
            brief_down(budget.left),
            match (budget.fits, budget.times) {
                (false, _) => "no".to_owned(),
                (true, 0 | 1) => "yes, once".to_owned(),
                (true, times) => format!("yes, {} times", times_left(times)),
            },
        ]);
    }
    table.write(out)
}

/// What it would cost to ask so many times, each time of data that has changed.
pub fn write_repeated(repeated: &Repeated, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let Repeated { times, prices, budgets } = repeated;
    if prices.is_empty() {
        return Ok(());
    }
    let heading = format!("{times} times, of changed data");
    writeln!(out)?;
    let mut table = Table::new([(heading.as_str(), Side::Left), ("ε", Side::Right), ("δ", Side::Right)]);
    for price in prices {
        table.row([price.unit.clone(), brief_up(price.epsilon), format!("{:e}", price.delta)]);
    }
    table.write(out)?;
    if budgets.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let columns = [("budget", Side::Left), ("for", Side::Left), ("they take", Side::Right), ("they fit", Side::Left)];
    let mut table = Table::new(columns);
    for budget in budgets {
        table.row([
            format!("{}, ε = {} at δ = {}", budget.unit, brief(budget.epsilon), brief(budget.delta)),
            budget.analyst.clone().unwrap_or_else(|| "all".to_owned()),
            if budget.share.is_finite() { percent_up(budget.share) } else { "–".to_owned() },
            match (budget.fits, budget.room) {
                (true, room) => format!("yes, room for {}", times_left(room)),
                (false, 0) => "no, not even one".to_owned(),
                (false, room) => format!("no, room for {}", times_left(room)),
            },
        ]);
    }
    table.write(out)
}
