//! What a release says of itself: the one place where that is made, whoever answered.

use crate::answer::Statement;
use whit_account::desk::Served;
use whit_account::ledger::{Budget, Question, Register};

/// What can be said before anything is paid, and all that there is to say where nothing is.
pub(crate) fn unpaid(dataset: &str, question: &str, unit: String, confidence: f64) -> Statement {
    Statement {
        dataset: dataset.to_owned(),
        question: question.to_owned(),
        unit,
        prices: Vec::new(),
        confidence,
        mechanisms: Vec::new(),
        notes: Vec::new(),
        partition: None,
        entry: None,
        stored: false,
        more_like_this: None,
    }
}

/// The same of what the ledger served, and for how many more it has room. The price is what was *booked*: where the answer is stored, an earlier version may have divided it otherwise.
pub(crate) fn paid<T>(
    mut statement: Statement,
    served: &Served<T>,
    question: &Question,
    delta: f64,
    (books, budgets): (&mut dyn Register, &[Budget]),
) -> Statement {
    statement.prices = Statement::prices(&served.charge, delta);
    statement.partition.clone_from(&question.partition);
    (statement.entry, statement.stored) = (Some(served.entry), served.stored);
    if !served.stored {
        // The answer is there, and is given also where this cannot be known.
        let fits = books.fits((&question.dataset, &question.analyst), budgets, &served.charge).unwrap_or_default();
        statement.more_like_this = fits.iter().map(|fit| fit.times).min();
    }
    statement
}
