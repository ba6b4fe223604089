//! A ledger in memory, instead of a file.

use crate::ask::USER;
use crate::room::{Room, asking, visits};

/// A ledger that is no file serves questions as well: nothing asks for more than the trait.
#[test]
fn a_ledger_in_memory_answers_questions_too() {
    let room = Room::new("in_memory");
    room.write("visits.csv", &visits());
    let (tables, mut ledger) = (room.tables(USER), whit_account::ledger::Memory::new());
    let sql = "SELECT COUNT(*) FROM visits";
    let first = whit_query::ask(&tables, sql, &asking(1.0), &mut ledger, "tester").unwrap();
    let again = whit_query::ask(&tables, sql, &asking(1.0), &mut ledger, "tester").unwrap();
    assert!(!first.statement.stored && again.statement.stored);
    assert_eq!((&first.rows, first.statement.entry), (&again.rows, again.statement.entry));
    assert_eq!(ledger.entries().len(), 1);
}
