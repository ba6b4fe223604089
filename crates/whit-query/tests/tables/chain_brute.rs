//! Small random data sets whose users are found by keys, some of them shared, repeated, missing or leading nowhere: what is counted is what counting by hand gives, and taking
//! away any one user, with all that leads to them, moves nothing further than was planned.

use crate::room::Room;
use crate::small::Dice;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use whit_query::Tables;
use whit_query::plan::Asking;

type Number = Option<i64>;

#[derive(Clone, Debug)]
struct Order {
    id: Number,
    customer: Number,
    urgent: bool,
    n: Number,
}

#[derive(Clone, Debug)]
struct Line {
    id: Number,
    order: Number,
    price: Number,
}

#[derive(Clone, Debug)]
struct Parcel {
    line: Number,
    weight: Number,
}

#[derive(Clone, Debug, Default)]
struct World {
    customers: Vec<i64>,
    orders: Vec<Order>,
    lines: Vec<Line>,
    parcels: Vec<Parcel>,
}

const USERS: i64 = 4;
/// Public: a key and a number, of which some are missing; and numbers of which none is.
const LIST: &[(Number, Number)] =
    &[(Some(0), Some(3)), (Some(0), None), (Some(1), Some(4)), (Some(2), Some(0)), (Some(3), None), (None, Some(5))];
const PLAIN: &[i64] = &[1, 4];

fn any(below: u64, missing: u64, dice: &mut Dice) -> Number {
    (!dice.one_in(missing)).then(|| dice.below(below) as i64)
}

impl World {
    fn any(dice: &mut Dice) -> Self {
        // In some there are many keys, so that few are shared, in others few.
        let keys = dice.of(&[6, 12, 40]);
        let mut world = Self { customers: (0..USERS).filter(|_| !dice.one_in(5)).collect(), ..Self::default() };
        for _ in 0..2 + dice.below(9) {
            let customer = any(USERS as u64, 8, dice);
            world.orders.push(Order { id: any(keys, 8, dice), customer, urgent: dice.one_in(2), n: any(6, 4, dice) });
        }
        for _ in 0..dice.below(20) {
            // Mostly of an order that is there.
            let known: Vec<Number> = world.orders.iter().map(|order| order.id).collect();
            let order = if known.is_empty() || dice.one_in(4) { any(keys, 8, dice) } else { dice.of(&known) };
            world.lines.push(Line { id: any(keys, 8, dice), order, price: any(8, 5, dice) });
        }
        for _ in 0..dice.below(16) {
            let known: Vec<Number> = world.lines.iter().map(|line| line.id).collect();
            let line = if known.is_empty() || dice.one_in(4) { any(keys, 8, dice) } else { dice.of(&known) };
            world.parcels.push(Parcel { line, weight: any(9, 5, dice) });
        }
        world
    }

    /// All users to whom a line leads.
    fn of_line(&self, line: &Line) -> BTreeSet<i64> {
        let orders = self.orders.iter().filter(|order| order.id.is_some() && order.id == line.order);
        orders.filter_map(|order| order.customer).collect()
    }

    fn of_parcel(&self, parcel: &Parcel) -> BTreeSet<i64> {
        let lines = self.lines.iter().filter(|line| line.id.is_some() && line.id == parcel.line);
        lines.flat_map(|line| self.of_line(line)).collect()
    }

    /// The rows that lead to a user and to nobody else.
    fn of(&self, user: i64) -> Self {
        let alone = BTreeSet::from([user]);
        Self {
            customers: self.customers.iter().copied().filter(|customer| *customer == user).collect(),
            orders: self.orders.iter().filter(|order| order.customer == Some(user)).cloned().collect(),
            lines: self.lines.iter().filter(|line| self.of_line(line) == alone).cloned().collect(),
            parcels: self.parcels.iter().filter(|parcel| self.of_parcel(parcel) == alone).cloned().collect(),
        }
    }

    /// A neighbour: no row is left that leads to a user.
    fn without(&self, user: i64) -> Self {
        Self {
            customers: self.customers.iter().copied().filter(|customer| *customer != user).collect(),
            orders: self.orders.iter().filter(|order| order.customer != Some(user)).cloned().collect(),
            lines: self.lines.iter().filter(|line| !self.of_line(line).contains(&user)).cloned().collect(),
            parcels: self.parcels.iter().filter(|parcel| !self.of_parcel(parcel).contains(&user)).cloned().collect(),
        }
    }

    fn write(&self, room: &Room) {
        let said = |number: Number| number.map_or(String::new(), |number| number.to_string());
        let mut files = [
            ("customers.csv", String::from("c_id,town\n")),
            ("orders.csv", String::from("o_id,o_customer,urgent,n\n")),
            ("lines.csv", String::from("l_id,l_order,price\n")),
            ("parcels.csv", String::from("p_line,weight\n")),
            ("list.csv", String::from("w,v\n")),
            ("plain.csv", String::from("v\n")),
        ];
        for customer in &self.customers {
            let _ = writeln!(files[0].1, "{customer},{}", if customer % 2 == 0 { "graz" } else { "linz" });
        }
        for Order { id, customer, urgent, n } in &self.orders {
            let _ = writeln!(files[1].1, "{},{},{urgent},{}", said(*id), said(*customer), said(*n));
        }
        for Line { id, order, price } in &self.lines {
            let _ = writeln!(files[2].1, "{},{},{}", said(*id), said(*order), said(*price));
        }
        for Parcel { line, weight } in &self.parcels {
            let _ = writeln!(files[3].1, "{},{}", said(*line), said(*weight));
        }
        for (w, v) in LIST {
            let _ = writeln!(files[4].1, "{},{}", said(*w), said(*v));
        }
        for v in PLAIN {
            let _ = writeln!(files[5].1, "{v}");
        }
        for (name, text) in files {
            room.write(name, &text);
        }
    }

    fn open(&self, name: &str, cap: u64) -> Tables {
        let room = Room::new(name);
        self.write(&room);
        let unit = |user: &str| {
            format!("unit.user = \"{user}\"\nunit.protect = \"user\"\nunit.caps = {{ rows_per_user = {cap} }}\n")
        };
        room.tables(&format!(
            "[dataset.customers]\nsource = \"customers.csv\"\n{}columns.c_id = \"int\"\ncolumns.town = {{ type = \"text\", keys = [\"graz\", \"linz\"] }}\n\
             [dataset.orders]\nsource = \"orders.csv\"\n{}columns.o_id = \"int\"\ncolumns.o_customer = \"int\"\ncolumns.urgent = \"bool\"\ncolumns.n = {{ type = \"int\", bounds = [0, 5] }}\n\
             [dataset.lines]\nsource = \"lines.csv\"\n{}columns.l_id = \"int\"\ncolumns.l_order = \"int\"\ncolumns.price = {{ type = \"int\", bounds = [0, 7] }}\n\
             [dataset.parcels]\nsource = \"parcels.csv\"\n{}columns.p_line = \"int\"\ncolumns.weight = {{ type = \"int\", bounds = [0, 8] }}\n\
             [dataset.list]\nsource = \"list.csv\"\npublic = true\ncolumns.w = \"int\"\ncolumns.v = \"int\"\n\
             [dataset.plain]\nsource = \"plain.csv\"\npublic = true\ncolumns.v = \"int\"\n",
            unit("c_id"),
            unit("orders.o_customer -> customers.c_id"),
            unit("lines.l_order -> orders.o_id"),
            unit("parcels.p_line -> lines.l_id"),
        ))
    }
}

fn same(a: Number, b: Number) -> bool {
    a.is_some() && a == b
}

fn count<T>(rows: &[T], test: impl Fn(&T) -> bool) -> i64 {
    rows.iter().filter(|row| test(row)).count() as i64
}

/// `x NOT IN list`, where NULL is neither in it nor not.
fn not_in(x: Number, list: &[Number]) -> bool {
    list.iter().all(|y| x.is_some() && y.is_some() && x != *y)
}

fn prices(world: &World, order: &Order) -> Vec<Number> {
    world.lines.iter().filter(|line| same(line.order, order.id)).map(|line| line.price).collect()
}

fn listed(order: &Order) -> Vec<Number> {
    LIST.iter().filter(|(w, _)| same(*w, order.id)).map(|(_, v)| *v).collect()
}

/// A question, and what it counts of one user's rows.
type Question = (&'static str, fn(&World) -> i64);

const QUESTIONS: &[Question] = &[
    ("SELECT COUNT(*) FROM lines", |own| own.lines.len() as i64),
    ("SELECT COUNT(*) FROM parcels WHERE weight > 2", |own| {
        count(&own.parcels, |parcel| parcel.weight.is_some_and(|weight| weight > 2))
    }),
    ("SELECT COUNT(*) FROM lines JOIN orders ON l_order = o_id", |own| {
        own.lines.iter().map(|line| count(&own.orders, |order| same(line.order, order.id))).sum()
    }),
    ("SELECT COUNT(*) FROM parcels, orders, lines WHERE p_line = l_id AND l_order = o_id AND urgent", |own| {
        let of_line = |line: &Line| count(&own.orders, |order| same(line.order, order.id) && order.urgent);
        let of_parcel =
            |parcel: &Parcel| -> i64 { own.lines.iter().filter(|line| same(line.id, parcel.line)).map(of_line).sum() };
        own.parcels.iter().map(of_parcel).sum()
    }),
    ("SELECT COUNT(*) FROM orders LEFT JOIN lines ON l_order = o_id", |own| {
        own.orders.iter().map(|order| count(&own.lines, |line| same(line.order, order.id)).max(1)).sum()
    }),
    ("SELECT COUNT(*) FROM lines a JOIN lines b ON a.l_order = b.l_order", |own| {
        own.lines.iter().map(|a| count(&own.lines, |b| same(a.order, b.order))).sum()
    }),
    (
        "SELECT COUNT(*) FROM parcels LEFT JOIN (SELECT l_id AS k, price FROM lines WHERE price > 4) AS dear ON p_line = k",
        |own| {
            let dear = |parcel: &Parcel| {
                count(&own.lines, |line| same(line.id, parcel.line) && line.price.is_some_and(|price| price > 4))
            };
            own.parcels.iter().map(|parcel| dear(parcel).max(1)).sum()
        },
    ),
    ("SELECT COUNT(*) FROM customers JOIN orders ON o_customer = c_id JOIN lines ON o_id = l_order", |own| {
        let of_order = |order: &Order| count(&own.lines, |line| same(line.order, order.id));
        own.customers.len() as i64 * own.orders.iter().map(of_order).sum::<i64>()
    }),
    ("SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE l_order = o_id AND price > 3)", |own| {
        count(&own.orders, |order| prices(own, order).iter().any(|price| price.is_some_and(|price| price > 3)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM lines WHERE l_order = o_id AND price > 3)", |own| {
        count(&own.orders, |order| !prices(own, order).iter().any(|price| price.is_some_and(|price| price > 3)))
    }),
    (
        "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE l_order = o_id AND NOT EXISTS (SELECT 1 FROM parcels WHERE p_line = l_id))",
        |own| {
            let bare = |line: &Line| !own.parcels.iter().any(|parcel| same(parcel.line, line.id));
            count(&own.orders, |order| own.lines.iter().any(|line| same(line.order, order.id) && bare(line)))
        },
    ),
    ("SELECT COUNT(*) FROM orders WHERE o_id IN (SELECT l_order FROM lines WHERE price > 3)", |own| {
        count(&own.orders, |order| prices(own, order).iter().any(|price| price.is_some_and(|price| price > 3)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE o_id NOT IN (SELECT l_order FROM lines WHERE price > 3)", |own| {
        let dear = own.lines.iter().filter(|line| line.price.is_some_and(|price| price > 3));
        let dear: Vec<Number> = dear.map(|line| line.order).collect();
        count(&own.orders, |order| order.id.is_some() && not_in(order.id, &dear))
    }),
    ("SELECT COUNT(*) FROM lines WHERE l_order NOT IN (SELECT o_id FROM orders WHERE urgent)", |own| {
        let urgent: Vec<Number> = own.orders.iter().filter(|order| order.urgent).map(|order| order.id).collect();
        count(&own.lines, |line| line.order.is_some() && not_in(line.order, &urgent))
    }),
    ("SELECT COUNT(*) FROM orders WHERE n NOT IN (SELECT price FROM lines WHERE l_order = o_id)", |own| {
        count(&own.orders, |order| not_in(order.n, &prices(own, order)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE NOT (n IN (SELECT price FROM lines WHERE l_order = o_id)) AND urgent", |own| {
        count(&own.orders, |order| order.urgent && not_in(order.n, &prices(own, order)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE urgent OR n IN (SELECT price FROM lines WHERE l_order = o_id)", |own| {
        count(&own.orders, |order| order.urgent || prices(own, order).into_iter().any(|price| same(price, order.n)))
    }),
    ("SELECT COUNT(*) FROM customers WHERE c_id NOT IN (SELECT o_customer FROM orders WHERE urgent)", |own| {
        if own.orders.iter().any(|order| order.urgent) { 0 } else { own.customers.len() as i64 }
    }),
    ("SELECT COUNT(*) FROM orders WHERE n NOT IN (SELECT v FROM plain)", |own| {
        count(&own.orders, |order| order.n.is_some_and(|n| !PLAIN.contains(&n)))
    }),
    (
        "SELECT COUNT(*) FROM orders WHERE n NOT IN (SELECT v FROM list) AND EXISTS (SELECT 1 FROM lines WHERE l_order = o_id)",
        |_| 0,
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE n NOT IN (SELECT v FROM plain) AND EXISTS (SELECT 1 FROM lines WHERE l_order = o_id)",
        |own| {
            count(&own.orders, |order| order.n.is_some_and(|n| !PLAIN.contains(&n)) && !prices(own, order).is_empty())
        },
    ),
    ("SELECT COUNT(*) FROM orders WHERE n NOT IN (SELECT v FROM list WHERE w = o_id)", |own| {
        count(&own.orders, |order| not_in(order.n, &listed(order)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE n < (SELECT MAX(v) + 1 FROM list WHERE w = o_id)", |own| {
        count(&own.orders, |order| {
            let most = listed(order).into_iter().flatten().max();
            order.n.zip(most).is_some_and(|(n, most)| n < most + 1)
        })
    }),
    (
        "SELECT COUNT(*) FROM (SELECT l_order, COUNT(*) AS k FROM lines GROUP BY l_order) AS each_order WHERE k >= 2",
        |own| {
            let orders: BTreeSet<Number> = own.lines.iter().map(|line| line.order).collect();
            let many = |order: &&Number| count(&own.lines, |line| line.order == **order) >= 2;
            orders.iter().filter(many).count() as i64
        },
    ),
    (
        "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY l_order) AS k FROM lines) AS each_line WHERE k >= 2",
        |own| count(&own.lines, |line| count(&own.lines, |other| other.order == line.order) >= 2),
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT l_order FROM lines WHERE l_order = o_id GROUP BY l_order HAVING COUNT(*) >= 2)",
        |own| count(&own.orders, |order| prices(own, order).len() >= 2),
    ),
    (
        "SELECT COUNT(*) FROM orders JOIN (SELECT l_order, MAX(price) AS m FROM lines GROUP BY l_order) AS l ON l_order = o_id WHERE m > 3",
        |own| count(&own.orders, |order| prices(own, order).into_iter().flatten().max().is_some_and(|most| most > 3)),
    ),
    (
        "SELECT COUNT(*) FROM orders LEFT JOIN lines ON l_order = o_id LEFT JOIN parcels ON p_line = l_id WHERE weight IS NULL",
        |own| {
            let of_line = |line: &Line| {
                let parcels = own.parcels.iter().filter(|parcel| same(parcel.line, line.id));
                let weights: Vec<Number> = parcels.map(|parcel| parcel.weight).collect();
                if weights.is_empty() { 1 } else { count(&weights, Option::is_none) }
            };
            let of_order = |order: &Order| {
                let lines: Vec<&Line> = own.lines.iter().filter(|line| same(line.order, order.id)).collect();
                if lines.is_empty() { 1 } else { lines.into_iter().map(of_line).sum() }
            };
            own.orders.iter().map(of_order).sum()
        },
    ),
    ("SELECT COUNT(*) FROM orders LEFT JOIN lines ON l_order = o_id WHERE l_order IS NULL", |own| {
        count(&own.orders, |order| prices(own, order).is_empty())
    }),
    (
        "SELECT COUNT(*) FROM (SELECT price AS x FROM lines UNION ALL SELECT weight AS x FROM parcels) AS both_kinds WHERE x > 2",
        |own| {
            let above = |x: Number| x.is_some_and(|x| x > 2);
            count(&own.lines, |line| above(line.price)) + count(&own.parcels, |parcel| above(parcel.weight))
        },
    ),
    ("SELECT COUNT(DISTINCT o_customer) FROM orders JOIN lines ON l_order = o_id", |own| {
        i64::from(own.orders.iter().any(|order| !prices(own, order).is_empty()))
    }),
    (
        "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lines JOIN parcels ON p_line = l_id WHERE l_order = o_id AND price > n)",
        |own| {
            let packed = |line: &Line| own.parcels.iter().any(|parcel| same(parcel.line, line.id));
            count(&own.orders, |order| {
                own.lines.iter().any(|line| {
                    same(line.order, order.id)
                        && packed(line)
                        && line.price.zip(order.n).is_some_and(|(price, n)| price > n)
                })
            })
        },
    ),
    ("SELECT COUNT(*) FROM orders WHERE n + 1 NOT IN (SELECT DISTINCT price FROM lines WHERE l_order = o_id)", |own| {
        count(&own.orders, |order| not_in(order.n.map(|n| n + 1), &prices(own, order)))
    }),
    ("SELECT COUNT(*) FROM orders WHERE NOT (urgent OR EXISTS (SELECT 1 FROM lines WHERE l_order = o_id))", |own| {
        count(&own.orders, |order| !order.urgent && prices(own, order).is_empty())
    }),
    (
        "SELECT COUNT(*) FROM lines JOIN orders ON l_order = o_id WHERE l_id IN (SELECT p_line FROM parcels) AND urgent",
        |own| {
            let packed = |line: &&Line| own.parcels.iter().any(|parcel| same(parcel.line, line.id));
            let lines = own.lines.iter().filter(packed);
            lines.map(|line| count(&own.orders, |order| same(line.order, order.id) && order.urgent)).sum()
        },
    ),
    ("SELECT COUNT(*) FROM lines WHERE price BETWEEN 1.5 AND 5 AND price <> 7 / 2", |own| {
        count(&own.lines, |line| line.price.is_some_and(|price| (2..=5).contains(&price) && price != 3))
    }),
];

#[test]
fn chains_count_what_counting_by_hand_gives() {
    let mut dice = Dice(13);
    let asking = Asking { rows: Some(1000), ..Asking::default() };
    let mut seen = vec![0; QUESTIONS.len()];
    for number in 0..20 {
        let world = World::any(&mut dice);
        let tables = world.open("chain_brute", 1000);
        for (place, (sql, by_hand)) in QUESTIONS.iter().enumerate() {
            let (_, parts) = tables.exact_for_tests(sql, &asking).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            let truth: i64 = (0..USERS).map(|user| by_hand(&world.of(user))).sum();
            assert_eq!(parts[0].measures[0][0], truth, "{number}: {sql} over {world:#?}");
            seen[place] += usize::from(truth > 0);
        }
    }
    let never: Vec<&str> =
        QUESTIONS.iter().zip(&seen).filter(|(_, seen)| **seen < 3).map(|(asked, _)| asked.0).collect();
    assert_eq!(never.len(), 1, "all but the one that is always nothing are tried: {never:?}");
}

#[test]
fn chains_without_any_one_user_leave_the_rows_of_all_others() {
    let mut dice = Dice(14);
    let (mut moves, mut most) = (0, 0.0_f64);
    let sums = [
        "SELECT SUM(price), COUNT(*) FROM lines",
        "SELECT SUM(weight) FROM parcels",
        "SELECT town, SUM(price), COUNT(*) FROM customers, orders, lines WHERE o_customer = c_id AND l_order = o_id GROUP BY town",
        "SELECT SUM(price), SUM(weight) FROM parcels JOIN lines ON p_line = l_id",
        "SELECT SUM(m) FROM (SELECT l_order, MAX(price) AS m FROM lines GROUP BY l_order) AS each_order",
    ];
    for number in 0..16 {
        let world = World::any(&mut dice);
        let cap = 1 + dice.below(4);
        let tables = world.open("chain_brute_with", cap);
        let asking = Asking { groups: Some(1 + dice.below(2)), rows: Some(1 + dice.below(3)), ..Asking::default() };
        let mut asked: Vec<&str> = sums.to_vec();
        asked.extend((0..6).map(|_| dice.of(QUESTIONS).0));
        let exact = |tables: &Tables, sql: &str| {
            tables.exact_for_tests(sql, &asking).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
        };
        let with: Vec<_> = asked.iter().map(|sql| exact(&tables, sql)).collect();
        for user in 0..USERS {
            let near = world.without(user);
            // What the proof says, of the attribution alone.
            for other in (0..USERS).filter(|other| *other != user) {
                assert_eq!(format!("{:?}", near.of(other)), format!("{:?}", world.of(other)), "{number}, {user}");
            }
            let tables = near.open("chain_brute_without", cap);
            for (sql, (plan, parts)) in asked.iter().zip(&with) {
                let (_, others) = exact(&tables, sql);
                for (part, (here, there)) in plan.parts.iter().zip(parts.iter().zip(&others)) {
                    assert_eq!(here.keys, there.keys, "{sql}");
                    for (i, measure) in part.measures.iter().enumerate() {
                        let steps = here.measures[i].iter().zip(&there.measures[i]).map(|(a, b)| a.abs_diff(*b) as f64);
                        let (l1, l2) = steps.fold((0.0, 0.0), |(l1, l2), step: f64| (l1 + step, l2 + step * step));
                        let claimed = measure.moved[0];
                        assert!(
                            l1 <= claimed.l1 * (1.0 + 1e-12) && l2.sqrt() <= claimed.l2 * (1.0 + 1e-12),
                            "{number}: {sql} with {asking:?}, caps of {cap}: without {user} {} moves by {l1}; claimed {claimed:?}, over {world:#?}",
                            measure.name
                        );
                        moves += usize::from(l1 > 0.0);
                        most = most.max(l1 / claimed.l1);
                    }
                }
            }
        }
    }
    assert!(moves > 100 && most > 0.99, "{moves} moves, of which the largest is {most} of what is claimed");
}
