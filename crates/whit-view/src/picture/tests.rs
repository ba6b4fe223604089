use super::*;
use crate::samples::{answer, cell, key, priced};

fn count(value: i64) -> Cell {
    cell(Value::Int(value), value as f64 - 10.0, value as f64 + 12.0)
}

fn drawn(answer: &Answer) -> String {
    drawn_as(answer, None)
}

fn drawn_as(answer: &Answer, kind: impl Into<Option<ChartKind>>) -> String {
    of(answer, kind.into()).expect("something to draw").svg().to_owned()
}

fn number(n: i64) -> Cell {
    Cell { value: Value::Int(n), low: None, high: None }
}

#[test]
fn words_make_bars_and_order_makes_lines() {
    let columns = [("site", Role::Key), ("visits", Role::Noisy)];
    let rows = |keys: [Cell; 3]| keys.map(|key| vec![key, count(50)]).to_vec();
    let words = drawn(&answer(&columns, rows(["a", "b", "c"].map(key))));
    assert_eq!((words.matches("class=\"error-bar\"").count(), words.matches("class=\"curve\"").count()), (3, 0));
    let whole = answer(&columns, rows([1, 2, 3].map(number)));
    let days = answer(&columns, rows(["2024-01-01", "2024-01-02", "2024-01-03"].map(key)));
    let is_line = |svg: &str| (svg.matches("class=\"band\"").count(), svg.matches("class=\"curve\"").count()) == (1, 1);
    assert!(is_line(&drawn(&days)) && is_line(&drawn_as(&whole, ChartKind::Lines)));
    // Whole numbers are things to compare; many of them go on and on.
    assert!(
        !drawn(&whole).contains("class=\"curve\"") && !drawn_as(&days, ChartKind::Bars).contains("class=\"curve\"")
    );
    let many = answer(&columns, (0..41).map(|n| vec![number(n), count(5)]).collect());
    assert!(is_line(&drawn(&many)));
    let two = answer(&columns, vec![vec![key("2024-01-01"), count(5)], vec![key("2024-01-02"), count(5)]]);
    assert!(!drawn(&two).contains("class=\"curve\"") && is_line(&drawn_as(&two, ChartKind::Lines)));
}

#[test]
fn bars_keep_the_order_that_was_asked_for() {
    let columns = [("hour", Role::Key), ("visits", Role::Noisy)];
    let places = |svg: &str, names: &[&str]| -> Vec<usize> {
        names.iter().map(|name| svg.find(&format!(">{name}<")).unwrap_or_else(|| panic!("{name}: {svg}"))).collect()
    };
    let rows = [17, 3, 22, 5].map(|hour| vec![number(hour), count(100 + hour)]);
    assert!(places(&drawn(&answer(&columns, rows.to_vec())), &["17", "3", "22", "5"]).is_sorted());
    // Also where the largest of many are drawn.
    let rows = (0..100).rev().map(|i| vec![key(&format!("s{i}")), count(if i % 2 == 0 { 900 } else { i })]);
    let svg = drawn(&answer(&columns, rows.collect()));
    assert!(places(&svg, &["s98", "s50", "s22"]).is_sorted());
    // And where colours divide them.
    let columns = [("hour", Role::Key), ("device", Role::Key), ("visits", Role::Noisy)];
    let rows =
        [(9, "b"), (4, "a"), (4, "b"), (7, "a")].map(|(hour, device)| vec![number(hour), key(device), count(50)]);
    assert!(places(&drawn(&answer(&columns, rows.to_vec())), &["9", "4", "7"]).is_sorted());
}

#[test]
fn no_line_leads_across_what_was_not_released() {
    let columns = [("day", Role::Key), ("visits", Role::Noisy)];
    let curves = |days: &[&str]| {
        let rows = days.iter().map(|day| vec![key(day), count(50)]).collect();
        drawn_as(&answer(&columns, rows), ChartKind::Lines).matches("class=\"curve\"").count()
    };
    assert_eq!(curves(&["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"]), 1);
    assert_eq!(curves(&["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-06", "2024-01-07", "2024-01-08"]), 2);
    assert_eq!(curves(&["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01", "2024-06-01", "2024-07-01"]), 2);
    assert_eq!(curves(&["2024-01-01", "2024-01-11", "2024-01-13", "2024-03-01"]), 1, "no even distances, no gap");
    let missing = Cell { value: Value::Null, low: None, high: None };
    let mut rows: Vec<Vec<Cell>> = (1..=5).map(|day| vec![key(&format!("2024-01-0{day}")), count(50)]).collect();
    rows[2][1] = missing.clone();
    assert_eq!(drawn(&answer(&columns, rows)).matches("class=\"curve\"").count(), 2);
    let bars = vec![vec![key("a"), count(5)], vec![key("b"), missing], vec![key("c"), count(0)]];
    let svg = drawn(&answer(&columns, bars));
    assert!(svg.contains(">b<") && svg.matches("class=\"hit\"").count() == 2, "{svg}");
}

#[test]
fn two_keys_with_many_values_make_a_heat_map_in_their_order() {
    let columns = [("hour", Role::Key), ("shop", Role::Key), ("visits", Role::Noisy)];
    let row = |hour: i64, shop: i64| vec![number(hour), key(&format!("shop {shop}")), count(10 * hour + shop)];
    let rows: Vec<_> = (0..24).flat_map(|hour| (0..7).rev().map(move |shop| row(hour, shop))).skip(1).collect();
    let svg = drawn(&answer(&columns, rows.clone()));
    assert!(svg.contains("visits by hour and shop") && svg.matches("class=\"hit\"").count() == 24 * 7);
    assert_eq!(svg.matches(": nothing was released<").count(), 1);
    assert!(svg.contains("<title>shop 3, 12: 123"), "the longer key has the longer side: {svg}");
    assert!(svg.find(">shop 5<") < svg.find(">shop 1<"));
    // Names keep their order also where the first of them comes late: shop 6 has nothing at the first hour.
    assert!(svg.find(">shop 6<") < svg.find(">shop 5<"));
    let bars = drawn_as(&answer(&columns, rows.clone()), ChartKind::Bars);
    assert!(!bars.contains("nothing was released"));
    // Fewer are told apart by colour, unless somebody wants it otherwise.
    let few = answer(&columns, rows.into_iter().take(20).collect());
    assert!(!drawn(&few).contains("nothing was released"));
    assert!(drawn_as(&few, ChartKind::Heat).contains("nothing was released"));
    // What cannot be drawn as somebody wants is drawn as it can be, and says so.
    let words =
        answer(&[("site", Role::Key), ("n", Role::Noisy)], vec![vec![key("a"), count(5)], vec![key("b"), count(6)]]);
    assert!(drawn_as(&words, ChartKind::Heat).contains("a heat map has two keys"));
    assert!(drawn_as(&words, ChartKind::Lines).contains("lines go along a key of numbers or times"));
}

#[test]
fn of_many_groups_the_largest_are_drawn_and_the_rest_told() {
    let rows = (0..100).map(|i| vec![key(&format!("site {i}")), count(i)]).collect();
    let svg = drawn(&answer(&[("site", Role::Key), ("visits", Role::Noisy)], rows));
    assert_eq!(svg.matches("class=\"error-bar\"").count(), GROUPS);
    assert!(svg.contains("Drawn are the 40 largest of 100 groups."));
    assert!(svg.contains(">site 99<") && svg.contains(">site 60<") && !svg.contains(">site 59<"));
}

#[test]
fn a_second_key_is_told_apart_by_colour() {
    let rows = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .flat_map(|site| ["mobile", "desktop"].map(|device| vec![key(site), key(device), count(50)]));
    let columns = [("site", Role::Key), ("device", Role::Key), ("visits", Role::Noisy)];
    let svg = drawn(&answer(&columns, rows.collect()));
    assert!(svg.contains("visits by site and device"));
    assert!(svg.contains(">mobile<") && svg.contains(">desktop<"));
    assert_eq!(svg.matches(&format!("fill=\"{}\"", PALETTE[1])).count(), 8, "seven bars and the legend");
}

#[test]
fn values_of_different_size_get_a_picture_each() {
    let row = |name: &str, n: i64| vec![key(name), count(n), cell(Value::Float(0.5), 0.4, 0.6)];
    let columns = [("site", Role::Key), ("visits", Role::Noisy), ("share", Role::Noisy)];
    let apart = drawn(&priced(answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)])));
    assert_eq!(apart.matches("<svg").count(), 3);
    assert_eq!(apart.matches("for each element").count(), 2, "in the description and under the first title");
    let row = |name: &str, n: i64| vec![key(name), count(n), cell(Value::Float(0.5), 0.4, 0.6), count(2 * n)];
    let columns = [("site", Role::Key), ("a", Role::Noisy), ("share", Role::Noisy), ("b", Role::Noisy)];
    let mixed = drawn(&answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)]));
    assert!(mixed.contains(">a and b by site<") && mixed.contains(">share by site<"), "{mixed}");
    let row = |name: &str, n: i64| vec![key(name), count(n), count(2 * n)];
    let together = drawn(&answer(&columns, vec![row("a", 900), row("b", 800), row("c", 700)]));
    assert_eq!(together.matches("<svg").count(), 1);
}

#[test]
fn keys_that_the_question_left_out_do_not_merge_rows() {
    let rows = vec![vec![count(5)], vec![count(6)], vec![count(7)]];
    let svg = drawn(&answer(&[("visits", Role::Noisy)], rows));
    assert_eq!(svg.matches("class=\"error-bar\"").count(), 3);
    assert!(svg.contains("row 3"));
}

#[test]
fn one_number_is_one_bar() {
    let svg = drawn(&priced(answer(&[("visits", Role::Noisy)], vec![vec![count(1234)]])));
    assert!(svg.contains("ε ≤ 1 for each element (user_id, domain), replace."));
    assert!(svg.contains("1,234 [1,224 … 1,246]"));
}

#[test]
fn no_numbers_are_no_picture() {
    assert!(of(&answer(&[("site", Role::Key)], vec![vec![key("a")]]), None).is_none());
    assert!(of(&answer(&[("site", Role::Key), ("n", Role::Noisy)], Vec::new()), None).is_none());
    let nothing = Cell { value: Value::Float(f64::NAN), low: None, high: None };
    assert!(of(&answer(&[("n", Role::Noisy)], vec![vec![nothing]]), None).is_none());
}

#[test]
fn keys_cannot_break_out_of_the_picture() {
    let rows = ["<script>alert(1)</script>", "\"><svg onload=x>", "&amp;"].map(|name| vec![key(name), count(5)]);
    let svg = drawn(&answer(&[("<i>", Role::Key), ("</svg>", Role::Noisy)], rows.to_vec()));
    assert!(
        drawn(&answer(&[("k", Role::Key), ("n", Role::Noisy)], vec![vec![key("\u{202e}rtl"), count(5)]]))
            .contains("\\u{202e}rtl")
    );
    assert!(!svg.contains("<script") && !svg.contains("<svg onload") && !svg.contains("<i>"));
    assert_eq!(svg.matches("</svg>").count(), 1);
}
