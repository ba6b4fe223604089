//! Tables whose users stand in others, from key to key, and private tables that are joined along them.

use crate::room::{Room, ask, asking};
use std::fmt::Write as _;
use whit_core::declare::Declaration;
use whit_query::{Tables, Value};

/// Customers, their orders, the lines of these, and parcels for lines: three keys from a parcel to its customer.
const SHOP: &str = r#"
[dataset.customers]
source = "customers.csv"
unit.user = "c_id"
unit.protect = "user"
unit.caps = { rows_per_user = 1 }
columns.c_id = "int"
columns.town = { type = "text", keys = ["graz", "linz"] }
budget.user = { epsilon = 1e9, delta = 1e-3 }

[dataset.orders]
source = "orders.csv"
unit.user = "orders.o_customer -> customers.c_id"
unit.protect = "user"
unit.caps = { rows_per_user = 6 }
columns.o_id = "int"
columns.o_customer = "int"
columns.urgent = "bool"

[dataset.lines]
source = "lines.csv"
unit.user = "lines.l_order -> orders.o_id"
unit.protect = "user"
unit.caps = { rows_per_user = 20 }
columns.l_id = "int"
columns.l_order = "int"
columns.price = { type = "int", bounds = [0, 100] }

[dataset.parcels]
source = "parcels.csv"
unit.user = "parcels.p_line -> lines.l_id"
unit.protect = "user"
unit.caps = { rows_per_user = 20 }
columns.p_line = "int"
columns.weight = { type = "int", bounds = [0, 9] }
"#;

/// 200 customers with up to five orders of up to three lines each; every second line has a parcel.
fn shop(name: &str) -> Room {
    let room = Room::new(name);
    let (mut customers, mut orders) = (String::from("c_id,town\n"), String::from("o_id,o_customer,urgent\n"));
    let (mut lines, mut parcels) = (String::from("l_id,l_order,price\n"), String::from("p_line,weight\n"));
    let (mut order, mut line) = (0, 0);
    for customer in 0..200 {
        let _ = writeln!(customers, "{customer},{}", if customer % 4 == 0 { "graz" } else { "linz" });
        for _ in 0..customer % 6 {
            order += 1;
            let _ = writeln!(orders, "{order},{customer},{}", order % 3 == 0);
            for _ in 0..order % 4 {
                line += 1;
                let _ = writeln!(lines, "{line},{order},{}", line % 101);
                if line % 2 == 0 {
                    let _ = writeln!(parcels, "{line},{}", line % 10);
                }
            }
        }
    }
    for (name, text) in [("customers", customers), ("orders", orders), ("lines", lines), ("parcels", parcels)] {
        room.write(&format!("{name}.csv"), &text);
    }
    room
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        other => panic!("{other:?}"),
    }
}

/// The one number of an answer, at so large an ε that no noise is left.
fn one(tables: &Tables, room: &Room, sql: &str) -> f64 {
    let answer = ask(tables, room, sql, &asking(1e5)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    number(&answer.rows[0][0].value).round()
}

fn rows_of(room: &Room, file: &str) -> Vec<Vec<i64>> {
    let text = std::fs::read_to_string(room.path().join(file)).unwrap();
    let number = |value: &str| value.parse().unwrap_or(i64::from(value == "true"));
    text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

#[test]
fn a_chain_of_keys_gives_every_row_its_user() {
    let room = shop("chains_rows");
    let tables = room.tables(SHOP);
    let (orders, lines, parcels) =
        (rows_of(&room, "orders.csv"), rows_of(&room, "lines.csv"), rows_of(&room, "parcels.csv"));
    for (table, rows) in [("orders", &orders), ("lines", &lines), ("parcels", &parcels)] {
        assert_eq!(one(&tables, &room, &format!("SELECT COUNT(*) FROM {table}")), rows.len() as f64, "{table}");
    }
    let dear = lines.iter().filter(|line| line[2] > 50).map(|line| line[2]).sum::<i64>();
    let summed = one(&tables, &room, "SELECT SUM(price) FROM lines WHERE price > 50");
    assert!((summed - dear as f64).abs() < 50.0, "{summed} for {dear}");
    let weight = parcels.iter().map(|parcel| parcel[1]).sum::<i64>();
    let summed = one(&tables, &room, "SELECT SUM(weight) FROM parcels");
    assert!((summed - weight as f64).abs() < 10.0, "{summed} for {weight}");
    // Those who are in the chain count once, however many rows they have.
    let owner = |order: i64| orders.iter().find(|row| row[0] == order).map(|row| row[1]);
    let buyers: std::collections::BTreeSet<i64> = lines.iter().filter_map(|line| owner(line[1])).collect();
    let lines_of =
        "SELECT COUNT(*) FROM (SELECT o_customer FROM lines JOIN orders ON l_order = o_id GROUP BY o_customer)";
    assert_eq!(one(&tables, &room, lines_of), buyers.len() as f64);
}

#[test]
fn private_tables_are_joined_along_their_keys_in_any_order() {
    let room = shop("chains_joins");
    let tables = room.tables(SHOP);
    let (customers, orders, lines) =
        (rows_of(&room, "customers.csv"), rows_of(&room, "orders.csv"), rows_of(&room, "lines.csv"));
    let urgent = |line: &&Vec<i64>| orders.iter().any(|order| order[0] == line[1] && order[2] == 1);
    let truth = lines.iter().filter(urgent).count() as f64;
    for sql in [
        "SELECT COUNT(*) FROM lines JOIN orders ON l_order = o_id WHERE urgent",
        "SELECT COUNT(*) FROM orders JOIN lines ON l_order = o_id WHERE urgent",
        "SELECT COUNT(*) FROM orders, lines WHERE l_order = o_id AND urgent",
        "SELECT COUNT(*) FROM lines CROSS JOIN orders WHERE o_id = l_order AND urgent",
        "SELECT COUNT(*) FROM lines, customers, orders WHERE o_customer = c_id AND l_order = o_id AND urgent",
        "SELECT COUNT(*) FROM customers JOIN orders ON o_customer = c_id JOIN lines ON l_order = o_id WHERE urgent",
        "SELECT COUNT(*) FROM (SELECT o_id AS l_order, urgent FROM orders) AS o JOIN lines USING (l_order) WHERE urgent",
    ] {
        assert_eq!(one(&tables, &room, sql), truth, "{sql}");
    }
    let with_empty =
        orders.iter().map(|order| lines.iter().filter(|line| line[1] == order[0]).count().max(1)).sum::<usize>();
    let outer = "SELECT COUNT(*) FROM orders LEFT JOIN lines ON l_order = o_id";
    assert_eq!(one(&tables, &room, outer), with_empty as f64);
    // By town, which only customers have, whose rows count by the caps of lines alone: no product of caps.
    let by_town = "SELECT town, COUNT(*) AS n FROM lines JOIN orders ON l_order = o_id JOIN customers ON o_customer = c_id GROUP BY town";
    let answer = ask(&tables, &room, by_town, &asking(1e5)).unwrap();
    let graz = |order: i64| orders.iter().any(|row| row[0] == order && row[1] % 4 == 0);
    assert_eq!(number(&answer.rows[0][1].value), lines.iter().filter(|line| graz(line[1])).count() as f64);
    assert_eq!(customers.len(), 200);
    assert!(answer.statement.entry.is_some());
}

fn append(room: &Room, file: &str, rows: &str) {
    let path = room.path().join(file);
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + rows).unwrap();
}

/// All rows that lead to one user go, in all tables: what is left counts as it did before. A row whose key leads to two users is nobody's, and one whose user has the key twice
/// counts once.
#[test]
fn a_user_moves_only_rows_of_their_own() {
    let room = shop("chains_neighbours");
    // Order 7 is also 199's, and 198 has order 9 twice beside whoever has it; the last lines and parcels lead nowhere.
    append(&room, "orders.csv", "7,199,false\n90,198,false\n90,198,true\n90000,198,true\n90000,198,false\n");
    append(&room, "lines.csv", "90001,123456,40\n90002,,40\n90003,90000,40\n");
    append(&room, "parcels.csv", "123456,3\n90001,3\n90003,3\n");
    let (lines, orders) = (rows_of(&room, "lines.csv"), rows_of(&room, "orders.csv"));
    let users = |line: &[i64]| {
        let orders = orders.iter().filter(|order| order[0] == line[1]);
        orders.map(|order| order[1]).collect::<std::collections::BTreeSet<i64>>()
    };
    let belonging = lines.iter().filter(|line| users(line).len() == 1).count() as f64;
    assert!(lines.iter().any(|line| users(line).len() == 2), "order 7 has lines");
    let counted = |room: &Room| one(&room.tables(SHOP), room, "SELECT COUNT(*) FROM lines");
    assert_eq!(counted(&room), belonging);
    for user in [5, 17, 198, 199] {
        let near = shop(&format!("chains_without_{user}"));
        let kept = orders.iter().filter(|order| order[1] != user);
        let kept = kept.map(|order| format!("{},{},{}", order[0], order[1], order[2] == 1));
        let text = kept.collect::<Vec<_>>().join("\n");
        near.write("orders.csv", &format!("o_id,o_customer,urgent\n{text}\n"));
        let kept = lines.iter().filter(|line| !users(line).contains(&user));
        let kept = kept.map(|line| format!("{},{},{}", line[0], line[1], line[2]));
        let text = kept.collect::<Vec<_>>().join("\n");
        near.write("lines.csv", &format!("l_id,l_order,price\n{text}\n"));
        let own = lines.iter().filter(|line| users(line).len() == 1 && users(line).contains(&user)).count();
        assert!(own <= 20, "nobody has more than the cap: {user}");
        assert_eq!(counted(&near), belonging - own as f64, "{user}");
    }
}

/// One line that leads to 61 users would otherwise count 61 times, and go with each of them.
#[test]
fn a_row_that_leads_to_several_users_is_nobodys_and_the_owner_is_told() {
    let room = shop("chains_shared");
    room.write("lines.csv", "l_id,l_order,price\n1,500,40\n2,501,40\n3,999,1\n3,501,40\n");
    let shared = (0..61).map(|customer| format!("500,{customer},false")).collect::<Vec<_>>().join("\n");
    room.write("orders.csv", &format!("o_id,o_customer,urgent\n{shared}\n501,7,true\n"));
    // The second parcel's line is 7's alone; the third's stands for two orders, of which one is nobody's; the fourth leads to 61, one table further on.
    room.write("parcels.csv", "p_line,weight\n2,3\n3,3\n1,3\n");
    let tables = room.tables(SHOP);
    assert_eq!(one(&tables, &room, "SELECT COUNT(*) FROM lines"), 2.0);
    assert_eq!(one(&tables, &room, "SELECT COUNT(*) FROM parcels"), 2.0);
    // A line of 7 and one of all of them under one key: what is behind it leads to all of them.
    append(&room, "lines.csv", "2,500,40\n");
    let tables = room.tables(SHOP);
    assert_eq!(one(&tables, &room, "SELECT COUNT(*) FROM lines"), 2.0);
    assert_eq!(one(&tables, &room, "SELECT COUNT(*) FROM parcels"), 1.0);
    let owner = whit_query::source::owner::Owner::who_may_see_every_row();
    let views = tables.survey_for(&owner, |_| Ok(None)).unwrap();
    let told = |name: &str| {
        let view = views.iter().find(|view| view.name == name).unwrap();
        (view.shared_keys, view.without_user)
    };
    assert_eq!(told("customers"), (None, Some(0)));
    assert_eq!(told("lines"), (Some(1), Some(3)));
    assert_eq!(told("parcels"), (Some(2), Some(2)));
}

/// By which keys rows find their users decides whose they are, and so the answer.
#[test]
fn a_changed_key_is_another_question() {
    let room = shop("chains_keys");
    let stored = |declared: &str, table: &str| {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        ask(&room.tables(declared), &room, &sql, &asking(10.0)).unwrap().statement.stored
    };
    for table in ["lines", "parcels"] {
        assert!(!stored(SHOP, table), "{table}");
        assert!(stored(SHOP, table), "nothing changed: {table}");
        let another = SHOP.replace("lines.l_order -> orders.o_id", "lines.price -> orders.o_id");
        assert!(!stored(&another, table), "{table}");
        assert!(stored(&another, table) && stored(SHOP, table), "both are there: {table}");
    }
    let joined = |declared: &str| {
        let sql = "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE l_order = o_id)";
        ask(&room.tables(declared), &room, sql, &asking(10.0)).unwrap().statement.stored
    };
    assert!(!joined(SHOP));
    assert!(!joined(&SHOP.replace("lines.l_order -> orders.o_id", "lines.l_id -> orders.o_id")));
    assert!(joined(SHOP));
}

/// Each row finds at most one partner where the other side has each key once: a table that the key leads to, or rows that are grouped by it. Elsewhere each may meet each.
#[test]
fn two_sides_with_many_rows_of_a_key_cut_nobody() {
    let room = shop("chains_many");
    let tables = room.tables(SHOP);
    let (orders, lines, parcels) =
        (rows_of(&room, "orders.csv"), rows_of(&room, "lines.csv"), rows_of(&room, "parcels.csv"));
    let of_order = |order: &Vec<i64>| lines.iter().filter(|line| line[1] == order[0]).count();
    let pairs = orders.iter().map(|order| of_order(order).pow(2)).sum::<usize>() as f64;
    for sql in [
        "SELECT COUNT(*) FROM orders JOIN lines a ON a.l_order = o_id JOIN lines b ON b.l_order = o_id",
        "SELECT COUNT(*) FROM (SELECT o_id FROM orders JOIN lines ON l_order = o_id) AS a JOIN lines b ON b.l_order = a.o_id",
        "SELECT COUNT(*) FROM lines b JOIN (SELECT o_id FROM orders JOIN lines ON l_order = o_id) AS a ON b.l_order = a.o_id",
        "SELECT COUNT(*) FROM lines a JOIN lines b ON a.l_order = b.l_order",
        "SELECT SUM(k) FROM (SELECT l_order, COUNT(*) * COUNT(*) AS k FROM lines GROUP BY l_order) AS each_order WHERE k BETWEEN 0 AND 100",
    ] {
        let answer = ask(&tables, &room, sql, &asking(1e8)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let found = number(&answer.rows[0][0].value);
        assert!((found - pairs).abs() < 1.0, "{sql}: {found} for {pairs}");
    }
    let reach = |sql: &str| {
        let plan = tables.plan(sql, &asking(1.0)).unwrap();
        plan.parts[0].measures[0].moved[0].l1
    };
    // Six orders and twenty lines, with one partner each or with any number of them.
    for (sql, most) in [
        ("SELECT COUNT(*) FROM lines JOIN orders ON l_order = o_id", 20.0),
        ("SELECT COUNT(*) FROM orders JOIN lines ON l_order = o_id JOIN parcels ON p_line = l_id", 20.0),
        ("SELECT COUNT(*) FROM orders JOIN (SELECT l_order FROM lines GROUP BY l_order) AS l ON l_order = o_id", 6.0),
        ("SELECT COUNT(*) FROM lines JOIN (SELECT l_order AS k FROM lines GROUP BY l_order) AS l ON l_order = k", 20.0),
        (
            "SELECT COUNT(*) FROM lines JOIN (SELECT l_order AS k, price FROM lines GROUP BY l_order, price) AS l ON l_order = k",
            400.0,
        ),
        ("SELECT COUNT(*) FROM orders JOIN lines a ON a.l_order = o_id JOIN lines b ON b.l_order = o_id", 400.0),
        (
            "SELECT COUNT(*) FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) AS o JOIN lines ON l_order = o_id",
            240.0,
        ),
    ] {
        assert_eq!(reach(sql), most, "{sql}");
    }
    assert!(!parcels.is_empty());
}

/// A sub-query that depends on the row around it is a join where a join says the same, and is refused elsewhere, in our words.
#[test]
fn sub_queries_that_would_be_others_as_joins_are_refused() {
    let room = shop("chains_inside");
    room.write("list.csv", "w,v\n1,3\n1,4\n2,\n");
    let declared = format!(
        "{SHOP}\n[dataset.list]\nsource = \"list.csv\"\npublic = true\ncolumns.w = \"int\"\ncolumns.v = \"int\"\n"
    );
    let tables = room.tables(&declared);
    let (nothing, counts, unknown, join) = (
        "has a row even where nothing is found",
        "counts the rows that are found",
        "neither in the list",
        "cannot be written as a join",
    );
    for (condition, words) in [
        ("EXISTS (SELECT COUNT(*) FROM lines WHERE l_order = o_id)", nothing),
        ("0 IN (SELECT COUNT(*) FROM lines WHERE l_order = o_id)", nothing),
        ("NOT EXISTS (SELECT 1 FROM lines WHERE l_order = o_id HAVING COUNT(*) > 1)", nothing),
        ("3 NOT IN (SELECT MAX(price) FROM lines WHERE l_order = o_id)", nothing),
        ("EXISTS (SELECT 1 FROM lines WHERE l_order = o_id OFFSET 1)", counts),
        ("EXISTS (SELECT 1 FROM lines WHERE l_order = o_id LIMIT 0)", counts),
        ("o_id IN (SELECT price FROM lines WHERE l_order = o_id LIMIT 1)", counts),
        ("EXISTS (SELECT 1 FROM list WHERE w = o_id OFFSET 1)", counts),
        ("urgent OR o_id NOT IN (SELECT l_order FROM lines)", unknown),
        ("NOT (urgent AND o_id IN (SELECT l_order FROM lines))", unknown),
        ("(o_id IN (SELECT l_order FROM lines)) IS NULL", unknown),
        ("CASE WHEN o_id IN (SELECT l_order FROM lines) THEN urgent ELSE true END", unknown),
        ("EXISTS (SELECT 1 FROM lines WHERE l_order = o_id UNION ALL SELECT 2 FROM lines)", join),
        (
            "EXISTS (SELECT 1 FROM (SELECT row_number() OVER (ORDER BY v) AS k FROM list WHERE w = o_id) AS l WHERE k = 2)",
            join,
        ),
        ("o_id > (SELECT COUNT(*) FROM list WHERE w = o_id)", "SUM, AVG, MIN or MAX"),
        ("o_id > (SELECT COALESCE(SUM(v), 0) FROM list WHERE w = o_id)", "SUM, AVG, MIN or MAX"),
        ("o_id > (SELECT v FROM list WHERE w = o_id)", "SUM, AVG, MIN or MAX"),
        ("o_id > (SELECT MAX(v) FROM list WHERE w < o_id)", join),
        ("o_id > (SELECT MAX(price) FROM lines WHERE l_order = o_id)", "reads a private table"),
        ("EXISTS (SELECT 1 FROM lines WHERE price > 50)", "not joined along the user"),
    ] {
        let sql = format!("SELECT COUNT(*) FROM orders WHERE {condition}");
        let refused = ask(&tables, &room, &sql, &asking(10.0)).map(|answer| answer.rows).unwrap_err();
        assert!(refused.sentence.contains(words), "{condition}: {refused:?}");
        assert!(refused.hint.is_some() && refused.fault == whit_query::Fault::Asked, "{condition}: {refused:?}");
    }
    let selected = "SELECT SUM((SELECT MAX(v) FROM list WHERE w = o_id)) FROM orders";
    let refused = ask(&tables, &room, selected, &asking(10.0)).unwrap_err();
    assert!(refused.sentence.contains(join), "{refused:?}");
}

#[test]
fn what_no_table_of_a_chain_can_answer_is_refused_before_it_costs() {
    let room = shop("chains_refused");
    let tables = room.tables(SHOP);
    for (sql, words) in [
        (
            "SELECT COUNT(*) FROM orders JOIN customers ON o_customer = c_id AND town = o_id",
            "`o_id` is a whole number and `town` is text",
        ),
        ("SELECT COUNT(*) FROM orders JOIN customers ON town = o_customer", "is text"),
        ("SELECT COUNT(*) FROM orders JOIN customers ON CAST(o_id AS VARCHAR) = c_id", "is text"),
        ("SELECT COUNT(*) FROM customers WHERE town IN (SELECT o_customer FROM orders)", "is text"),
        ("SELECT * FROM hitters('lines', 'price')", "`lines` pays from the budget of `customers`"),
        ("SELECT * FROM hitters('orders', 'urgent')", "`orders` pays from the budget of `customers`"),
    ] {
        let refused = ask(&tables, &room, sql, &asking(10.0)).map(|answer| answer.rows).unwrap_err();
        assert!(format!("{refused:?}").contains(words), "{sql}: {refused:?}");
    }
}

#[test]
fn data_that_says_whose_rows_are_is_noticed_when_it_changes() {
    let room = shop("chains_changed");
    let sql = "SELECT COUNT(*) FROM parcels";
    let asked = |room: &Room| ask(&room.tables(SHOP), room, sql, &asking(10.0)).unwrap();
    assert!(!asked(&room).statement.stored);
    assert!(asked(&room).statement.stored, "nothing changed");
    let orders = std::fs::read_to_string(room.path().join("orders.csv")).unwrap();
    room.write("orders.csv", orders.trim_end().rsplit_once('\n').unwrap().0);
    assert!(!asked(&room).statement.stored, "other rows have users now");
}

#[test]
fn a_chain_that_leads_nowhere_or_hides_too_little_is_refused() {
    let wrong = |from: &str, to: &str| Declaration::parse(&SHOP.replace(from, to)).unwrap_err().to_string();
    let circle =
        wrong("unit.user = \"orders.o_customer -> customers.c_id\"", "unit.user = \"orders.o_id -> parcels.p_line\"");
    assert!(circle.contains("back to `lines`, and so to nobody"), "{circle}");
    let less = SHOP.replacen(
        "unit.protect = \"user\"\nunit.caps = { rows_per_user = 6 }",
        "unit.protect = \"event\"\nunit.caps = { rows_per_user = 6 }",
        1,
    );
    let less = Declaration::parse(&less).unwrap_err().to_string();
    assert!(less.contains("`orders` protects less than a user"), "{less}");
    let nobody = wrong("-> orders.o_id", "-> order.o_id");
    assert!(nobody.contains("leads to `order`, but no data set is called"), "{nobody}");
    let room = shop("chains_wrong");
    let declaration = Declaration::parse(&SHOP.replace("-> orders.o_id", "-> orders.id")).unwrap();
    let tuning = whit_query::source::Tuning { memory: None, threads: Some(1) };
    let column = Tables::of(declaration, room.path(), tuning).err().unwrap();
    assert!(format!("{column:?}").contains("has no column `id`"), "{column:?}");
}

/// Rows of two tables that share some other value meet under one user, and the answer says so; rows of one table that do are not known to be meant so.
#[test]
fn what_the_planner_adds_is_said() {
    let room = shop("chains_said");
    let tables = room.tables(SHOP);
    let answer =
        ask(&tables, &room, "SELECT COUNT(*) FROM parcels JOIN lines ON weight = price", &asking(10.0)).unwrap();
    let notes = format!("{:?}", answer.statement.notes);
    assert!(notes.contains("meet where they belong to one user"), "{notes}");
    let answer =
        ask(&tables, &room, "SELECT COUNT(*) FROM lines JOIN orders ON l_order = o_id", &asking(10.0)).unwrap();
    let notes = format!("{:?}", answer.statement.notes);
    assert!(
        notes.contains("whose `l_order` leads to nobody by `orders.o_id`, or to several users, are left out")
            && !notes.contains("meet"),
        "{notes}"
    );
    let itself = "SELECT COUNT(*) FROM lines a JOIN lines b ON a.price = b.price";
    let refused = ask(&tables, &room, itself, &asking(10.0)).unwrap_err();
    assert!(format!("{refused:?}").contains("not joined along the user"), "{refused:?}");
}
