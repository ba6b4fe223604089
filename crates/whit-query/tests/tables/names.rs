//! Names as people spell them: without regard to case where that is unambiguous, as in other engines.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use std::fmt::Write as _;
use whit_query::Tables;

const DECLARED: &str = r#"
[dataset.pageviews]
source = "views.csv"
unit.user = "UserID"
unit.element = "lower(Topic)"
unit.protect = "user"
unit.caps = { rows_per_user = 3, elements_per_user = 3 }
columns.UserID = "int"
columns.Topic = "text"
columns.Seconds = { type = "int", bounds = [0, 100] }
columns."Shop Name" = { type = "text", keys = ["North", "South"] }
columns.day = "int"
columns.DAY = "int"
budget.user = { epsilon = 10000.0, delta = 1e-5 }

[dataset.users]
source = "users.csv"
unit.user = "users.userid -> pageviews.UserID"
unit.protect = "user"
unit.caps = { rows_per_user = 1 }
columns.userid = "int"
columns.Country = { type = "text", keys = ["de", "fr"] }
"#;

fn tables(room: &Room) -> Tables {
    let (mut views, mut users) = ("UserID,Topic,Seconds,Shop Name,day,DAY\n".to_owned(), "userid,Country\n".to_owned());
    for user in 0..900 {
        let shop = ["North", "South"][user % 2];
        let _ = writeln!(views, "{user},Art,{},{shop},{},{}", user % 100, user % 7, user % 5);
        let _ = writeln!(users, "{user},{}", ["de", "fr", "fr"][user % 3]);
    }
    room.write("views.csv", &views);
    room.write("users.csv", &users);
    room.tables(DECLARED)
}

#[test]
fn case_makes_no_other_column_and_no_other_question() {
    let room = Room::new("names_case");
    let tables = tables(&room);
    let sql =
        r#"SELECT "Shop Name", COUNT(*) AS N, SUM(Seconds) FROM PageViews WHERE Seconds >= 10 GROUP BY 1 ORDER BY 1"#;
    let first = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    assert_eq!(first.rows.len(), 2);
    assert!((number(&first.rows[0][1].value) - 405.0).abs() < 2.0, "{:?}", first.rows);
    let spelled = [
        r#"select "Shop Name", count(*), sum(SECONDS) from pageviews where seconds >= 10 group by "Shop Name""#,
        r#"SELECT v."Shop Name", COUNT(*), SUM(V.seconds) FROM PAGEVIEWS v WHERE v.SECONDS >= 10 GROUP BY v."Shop Name""#,
        r#"WITH Seconds AS (SELECT "Shop Name", seconds FROM pageviews WHERE seconds >= 10) SELECT "Shop Name", COUNT(*), SUM(SECONDS.seconds) FROM seconds GROUP BY 1"#,
        r#"SELECT "Shop Name", COUNT(*), SUM("Seconds") FROM "pageviews" WHERE "Seconds" >= 10 GROUP BY "Shop Name""#,
    ];
    for sql in spelled {
        let again = ask(&tables, &room, sql, &asking(500.0)).unwrap();
        assert!(again.statement.stored, "{sql}");
    }
}

#[test]
fn tables_that_spell_a_column_otherwise_are_joined_along_it() {
    let room = Room::new("names_join");
    let tables = tables(&room);
    let sql = "SELECT country, COUNT(*) FROM users u JOIN pageviews v ON u.USERID = v.userid GROUP BY Country ORDER BY COUNTRY";
    let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    let counts: Vec<f64> = answer.rows.iter().map(|row| number(&row[1].value)).collect();
    assert!((counts[0] - 300.0).abs() < 2.0 && (counts[1] - 600.0).abs() < 2.0, "{counts:?}");
    assert_eq!(answer.columns[0].name, "Country", "as it is declared");
}

#[test]
fn quotes_and_columns_that_differ_by_case_alone_are_exact() {
    let room = Room::new("names_exact");
    let tables = tables(&room);
    for (column, below) in
        [("day", 3.0 / 7.0), ("DAY", 3.0 / 5.0), ("\"day\"", 3.0 / 7.0), ("\"DAY\"", 3.0 / 5.0), ("Day", 3.0 / 7.0)]
    {
        let sql = format!("SELECT COUNT(*) FROM pageviews WHERE {column} < 3");
        let answer = ask(&tables, &room, &sql, &asking(500.0)).unwrap();
        assert!((number(&answer.rows[0][0].value) / 900.0 - below).abs() < 0.01, "{column}: {:?}", answer.rows);
    }
    let error = ask(&tables, &room, "SELECT SUM(\"seconds\") FROM pageviews", &asking(1.0)).unwrap_err();
    assert!(
        error.sentence.contains("`seconds`") && error.hint.as_deref().unwrap_or_default().contains("`Seconds`"),
        "{error:?}"
    );
}
