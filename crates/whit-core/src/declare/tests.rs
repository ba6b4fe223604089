use super::*;
use crate::unit::Unit;
use proptest::prelude::*;

/// A sound declaration to make mistakes in.
const VISITS: &str = r#"
[dataset.visits]
source = "visits/*.parquet"
unit.user = "user_id"
unit.element = "registrable_domain(url)"
unit.public = ["country"]
unit.protect = "element"
unit.caps = { elements_per_user = 400, rows_per_element = 50, groups = 3 }
columns.seconds = { bounds = [0, 600] }
columns.country = { keys = "countries.code" }
columns.kind = { keys = ["page", "api", 7, true] }
columns.bytes = { bounds = "auto" }
budget.element = { epsilon = 3.0, delta = 1e-6 }
budget.user    = { epsilon = 30, delta = 1e-6, currency = "renyi" }
budget.analyst.alice.element = { epsilon = 1.0, delta = 1e-7 }
query = { epsilon = 0.1, delta = 1e-8, groups = 3 }

[dataset.countries]
source = ["a.csv", "b.csv"]
format = "csv"
public = true
"#;

fn wrong(text: &str) -> DeclareError {
    match Declaration::parse(text) {
        Ok(declaration) => panic!("this was taken: {text}\n{declaration:?}"),
        Err(error) => error,
    }
}

/// The sound declaration with one line changed, and what is said of it.
fn mistake(line: &str, instead: &str) -> String {
    assert!(VISITS.contains(line), "the declaration has no line {line}");
    let error = wrong(&VISITS.replace(line, instead));
    assert!(!error.hint().is_empty(), "{error} has no hint");
    format!("{error} | {}", error.hint())
}

fn unit_of(lines: &str) -> UnitDeclaration {
    let text = format!("[dataset.t]\nsource = 't.csv'\n{lines}");
    let declaration = Declaration::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    declaration.datasets["t"].unit.clone().unwrap()
}

#[test]
fn everything_that_is_declared_is_read() {
    let declaration = Declaration::parse(&format!("ledger = 'books/whit.ledger'\n{VISITS}")).unwrap();
    assert_eq!(declaration.ledger.as_deref(), Some("books/whit.ledger"));
    let visits = declaration.dataset("visits").unwrap();
    assert_eq!((visits.name.as_str(), visits.public, visits.format), ("visits", false, None));
    assert_eq!(visits.source, ["visits/*.parquet"]);
    let unit = visits.unit.as_ref().unwrap();
    assert_eq!(unit.user, Some(UserKey::Column("user_id".into())));
    assert_eq!(unit.element, Some(ElementSource::Expression("registrable_domain(url)".into())));
    assert_eq!((unit.public.as_slice(), unit.protect), (["country".to_owned()].as_slice(), Kind::Element));
    assert_eq!(unit.caps.groups, Some(3));
    assert_eq!(visits.bounds("seconds"), Some(Bounds::Declared { low: 0.0, high: 600.0 }));
    assert_eq!(visits.bounds("bytes"), Some(Bounds::Auto));
    assert_eq!(visits.bounds("country"), None);
    assert_eq!(visits.keys("country"), Some(&Keys::FromTable { table: "countries".into(), column: "code".into() }));
    let listed = ["page", "api", "7", "true"].map(str::to_owned);
    assert_eq!(visits.keys("kind"), Some(&Keys::Listed(listed.to_vec())));
    let budget = |kind, analyst: Option<&str>, epsilon, delta, currency: Option<&str>| BudgetDeclaration {
        kind,
        analyst: analyst.map(str::to_owned),
        epsilon,
        delta,
        currency: currency.map(str::to_owned),
    };
    let expected = [
        budget(Kind::Element, None, 3.0, 1e-6, None),
        budget(Kind::User, None, 30.0, 1e-6, Some("renyi")),
        budget(Kind::Element, Some("alice"), 1.0, 1e-7, None),
    ];
    assert_eq!(declaration.budgets_of("visits"), expected);
    assert!(declaration.budgets_of("nobody").is_empty());
    assert_eq!(visits.query, Some(QueryDefaults { epsilon: Some(0.1), delta: Some(1e-8), groups: Some(3) }));
    let countries = declaration.dataset("countries").unwrap();
    assert!(countries.public && countries.unit.is_none());
    assert_eq!((countries.source.len(), countries.format), (2, Some(Format::Csv)));
    let none = declaration.dataset("visit").unwrap_err();
    assert_eq!((none.to_string().as_str(), none.hint()), ("no data set is called `visit`", "did you mean `visits`?"));
}

#[test]
fn a_mistake_is_named_with_its_line_and_the_nearest_key() {
    let message = mistake("unit.user =", "unit.usr =");
    assert!(
        message.starts_with("line 4: `dataset.visits.unit.usr` is not a key that is known here | did you mean `user`?"),
        "{message}"
    );
    let message = mistake("source = \"visits", "sauce = \"visits");
    assert!(
        message.contains("line 3: `dataset.visits.sauce`") && message.contains("did you mean `source`?"),
        "{message}"
    );
    let message = mistake("bounds = [0, 600]", "bound = [0, 600]");
    assert!(
        message.contains("line 9: `dataset.visits.columns.seconds.bound`") && message.contains("`bounds`"),
        "{message}"
    );
    let message = mistake("rows_per_element = 50", "rows_per_elements = 50");
    assert!(message.contains("line 8") && message.contains("did you mean `rows_per_element`?"), "{message}");
    let message = mistake("unit.protect = \"element\"", "unit.protect = \"elemnt\"");
    assert!(
        message.contains("line 7: `dataset.visits.unit.protect` is `elemnt`") && message.contains("`element`"),
        "{message}"
    );
    let message = mistake("[dataset.visits]", "budgets = 3\n[dataset.visits]");
    assert!(
        message.contains("line 2: `budgets` is not a key") && message.contains("known here: dataset, ledger"),
        "{message}"
    );
    let message = mistake("\"renyi\"", "\"reny\"");
    assert!(message.contains("line 14") && message.contains("did you mean `renyi`?"), "{message}");
}

#[test]
fn every_mistake_gets_its_own_sentence() {
    for (line, instead, message) in [
        ("source = \"visits/*.parquet\"", "", "`dataset.visits` has no source"),
        ("\"visits/*.parquet\"", "[]", "`dataset.visits.source` is empty"),
        ("\"visits/*.parquet\"", "7", "must be text in quotes, and is an integer"),
        ("unit.user = \"user_id\"", "", "`dataset.visits.unit.user` is missing, and `unit.protect` is `element`"),
        ("unit.element = \"registrable_domain(url)\"", "", "`dataset.visits.unit.element` is missing"),
        ("unit.protect = \"element\"", "", "does not say what it protects: `unit.protect` is missing"),
        ("unit.protect = \"element\"", "unit.protect = \"label\"", "`dataset.visits.unit.label` is missing"),
        ("unit.protect = \"element\"", "unit.protect = \"feature\"", "`dataset.visits.unit.element` has no meaning"),
        ("[\"country\"]", "[\"country\", \"user_id\"]", "lists `user_id`, the user column"),
        ("[\"country\"]", "[\"country\", \"country\"]", "lists `country` twice"),
        ("[\"country\"]", "\"country\"", "must be a list in brackets, and is a string"),
        ("elements_per_user = 400", "elements_per_user = 0", "is 0, but must be a whole number, at least 1"),
        ("elements_per_user = 400", "elements_per_user = 2.5", "must be a whole number, at least 1, and is a float"),
        ("elements_per_user = 400", "elements_per_user = 99999999999999999999", "does not fit into 64 bits"),
        ("elements_per_user = 400, ", "", "`dataset.visits.budget.user` cannot be kept: without `elements_per_user`"),
        ("[0, 600]", "[600, 0]", "= [600, 0] is empty | write the least value first: bounds = [0, 600]"),
        ("[0, 600]", "[5, 5]", "holds one value only"),
        ("[0, 600]", "[0, nan]", "is not a number (NaN)"),
        ("[0, 600]", "[-inf, 600]", "must be a finite number"),
        ("[0, 600]", "[0, 1e999]", "must be a finite number"),
        ("[0, 600]", "[0]", "must be two numbers, and has 1"),
        ("[0, 600]", "[\"0\", 600]", "must be a number, and is a string"),
        ("\"auto\"", "\"automatic\"", "must be two numbers or \"auto\""),
        ("\"auto\"", "100", "must be two numbers or \"auto\""),
        ("{ bounds = \"auto\" }", "{}", "`dataset.visits.columns.bytes` says nothing"),
        ("\"countries.code\"", "\"countries\"", "is `countries`, which is not `table.column`"),
        ("\"countries.code\"", "\"country.code\"", "no data set is called `country` | did you mean `countries`?"),
        ("\"countries.code\"", "\"visits.country\"", "are taken from `visits`, which is private"),
        ("[\"page\", \"api\", 7, true]", "[]", "lists no keys"),
        ("[\"page\", \"api\", 7, true]", "[7, \"7\"]", "lists `7` twice"),
        ("{ epsilon = 3.0, delta", "{ epsilon = -3.0, delta", "is -3, but must be above 0"),
        ("{ epsilon = 3.0, delta", "{ epsilon = nan, delta", "is not a number (NaN)"),
        ("{ epsilon = 3.0, delta", "{ delta", "`dataset.visits.budget.element` has no `epsilon`"),
        ("3.0, delta = 1e-6", "3.0, delta = 1", "is 1, but must be at least 0 and below 1"),
        ("{ epsilon = 0.1, delta", "{ epsilon = 0.0001, delta", "but a question has an ε from 0.001 to 1000"),
        ("{ epsilon = 0.1, delta", "{ epsilon = 2e3, delta", "is 2000, but a question has an ε from 0.001 to 1000"),
        ("30, delta = 1e-6", "30, delta = 0", "adds up in `renyi`, which needs a δ above 0"),
        ("budget.user ", "budget.event ", "names a rung below the protected one, `element`"),
        ("budget.user ", "budget.feature ", "`dataset.visits.budget.feature` names a rung that is not declared"),
        ("budget.analyst.alice.element", "budget.analyst.alice.event", "`dataset.visits.budget.analyst.alice.event`"),
        ("public = true", "public = true\nunit.protect = \"event\"", "gives a unit to a table that is public"),
        ("public = true", "public = true\nbudget.event = { epsilon = 1 }", "gives budgets to a table that is public"),
        ("public = true", "public = \"yes\"", "must be true or false, and is a string"),
        ("public = true", "", "`dataset.countries` has no unit"),
        ("[dataset.countries]", "[dataset.visits]", "this is not TOML: duplicate key"),
        (
            "[dataset.countries]",
            "[dataset.Countries]",
            "lower-case letters, digits and underscores, since SQL asks for it by that name | call it `countries`",
        ),
        ("[dataset.countries]", "[dataset.\"2 countries\"]", "call it `table_2_countries`"),
        ("[dataset.countries]", "[dataset.countries", "this is not TOML"),
        (
            "unit.caps =",
            "unit.label = \"x\"\nunit.caps =",
            "`dataset.visits.unit.label` has no meaning where `unit.protect` is `element`",
        ),
    ] {
        let found = mistake(line, instead);
        assert!(found.contains(message), "{instead} in place of {line}:\n{found}");
    }
    let huge = "caps = { elements_per_user = 9000000000000000000, rows_per_element = 4 }";
    let event =
        format!("[dataset.t]\nsource = 't.csv'\nunit = {{ user = 'u', element = 'e', protect = 'event', {huge} }}");
    assert!(wrong(&event).to_string().starts_with("line 3: `dataset.t` has no ladder that stands: the caps below"));
    assert_eq!(wrong("").to_string(), "no data set is declared");
    assert_eq!(wrong("[dataset]").to_string(), "line 1: no data set is declared");
    // A library names what the library has; the command says its own words for it.
    let none = Declaration { datasets: BTreeMap::new(), ledger: None };
    for hint in [wrong("").hint().to_owned(), none.dataset("visits").unwrap_err().hint().to_owned()] {
        assert!(hint.contains("`DeclarationDraft::of` writes a draft") && !hint.contains("whit init"), "{hint}");
    }
    assert!(wrong("dataset = 3").to_string().contains("must be a table"));
    assert!(wrong("[dataset]\nvisits = 3").to_string().contains("line 2: `dataset.visits` must be a table"));
}

#[test]
fn an_element_is_sql_a_dictionary_or_a_file() {
    let element = |text: &str| {
        unit_of(&format!("unit.user = 'u'\nunit.protect = 'element'\nunit.element = {text}")).element.unwrap()
    };
    assert_eq!(
        element("'date_trunc(''day'', at)'".replace("''", "\"").as_str()).to_string(),
        "date_trunc(\"day\", at)"
    );
    let days =
        element("{ column = 'weekday', dictionary = { sat = 'weekend', sun = 'weekend' }, unknown = 'weekday' }");
    let ElementSource::Dictionary { column, elements, unknown } = &days else { panic!("{days:?}") };
    assert_eq!((column.as_str(), elements["sun"].as_str(), unknown.as_str()), ("weekday", "weekend", "weekday"));
    assert_eq!(days.to_string(), "weekday");
    let words = element("{ column = 'word', file = 'words.partition' }");
    assert_eq!(words, ElementSource::PartitionFile { column: "word".into(), path: "words.partition".into() });

    let refused = |text: &str| {
        let text =
            format!("[dataset.t]\nsource = 't.csv'\nunit.user = 'u'\nunit.protect = 'element'\nunit.element = {text}");
        wrong(&text).to_string()
    };
    assert!(refused("{ file = 'w' }").contains("`column` is missing"));
    assert!(refused("{ column = 'w' }").contains("has neither a `file` nor a `dictionary`"));
    assert!(refused("{ column = 'w', file = 'f', unknown = 'u' }").contains("has a file and a dictionary"));
    assert!(refused("{ column = 'w', dictionary = { a = 'b' } }").contains("`unknown` is missing"));
    assert!(refused("''").contains("is empty"));
    assert!(refused("{ column = 'w', dictionry = { a = 'b' } }").contains("not a key that is known"));
}

#[test]
fn a_ladder_starts_at_the_protected_rung_and_leaves_out_what_nothing_bounds() {
    let holds = |lines: &str| -> Vec<(Kind, u64)> {
        unit_of(lines).ladder().unwrap().rungs().iter().map(|rung| (rung.unit.kind(), rung.holds)).collect()
    };
    let base = "unit.user = 'u'\nunit.element = 'day'\n";
    let element = format!("{base}unit.protect = 'element'\n");
    assert_eq!(holds(&element), [(Kind::Element, 1)]);
    assert_eq!(holds(&format!("{element}unit.caps.elements_per_user = 12")), [(Kind::Element, 1), (Kind::User, 24)]);
    assert_eq!(
        holds(&format!("{element}unit.change = 'add-remove'\nunit.caps.elements_per_user = 12")),
        [(Kind::Element, 1), (Kind::User, 12)]
    );
    assert_eq!(holds(&format!("{element}unit.caps.rows_per_user = 12")), [(Kind::Element, 1)]);
    assert_eq!(holds(&format!("{base}unit.protect = 'user'")), [(Kind::User, 1)]);
    let event = format!("{base}unit.protect = 'event'\n");
    assert_eq!(holds(&event), [(Kind::Event, 1)]);
    assert_eq!(holds(&format!("{event}unit.caps.rows_per_element = 5")), [(Kind::Event, 1), (Kind::Element, 5)]);
    let both = format!("{event}unit.caps = {{ rows_per_element = 5, elements_per_user = 12 }}");
    assert_eq!(holds(&both), [(Kind::Event, 1), (Kind::Element, 5), (Kind::User, 60)]);
    let flat = "unit.user = 'u'\nunit.protect = 'event'\nunit.caps.rows_per_user = 7";
    assert_eq!(holds(flat), [(Kind::Event, 1), (Kind::User, 7)]);
    assert_eq!(holds("unit.protect = 'event'"), [(Kind::Event, 1)]);
}

#[test]
fn a_budget_needs_the_caps_that_link_its_rung() {
    let refused = |lines: &str| {
        let error = wrong(&format!("[dataset.t]\nsource = 't.csv'\n{lines}"));
        format!("{error} | {}", error.hint())
    };
    let message = refused("unit.user = 'u'\nunit.protect = 'event'\nbudget.user = { epsilon = 1, delta = 1e-6 }");
    assert!(message.contains("line 5: `dataset.t.budget.user` cannot be kept: without `rows_per_user` one user may hold any number of events"), "{message}");
    assert!(message.contains("declare unit.caps.rows_per_user"), "{message}");
    let message = refused("unit.user = 'u'\nunit.protect = 'user'\nbudget.element = { epsilon = 1, delta = 1e-6 }");
    assert!(
        message.contains(
            "`dataset.t.budget.element` names a rung that is not declared | budgets can be given for budget.user"
        ),
        "{message}"
    );
    let message = refused("unit.user = 'u'\nunit.protect = 'event'\nunit.caps.elements_per_user = 3");
    assert!(
        message.contains("`dataset.t.unit.caps.elements_per_user` caps elements, and none is declared"),
        "{message}"
    );
    let message = refused("unit.protect = 'event'\nunit.caps.rows_per_user = 3");
    assert!(message.contains("caps users, and none is declared"), "{message}");
    let message = refused("unit.protect = 'event'\nunit.element = 'day'");
    assert!(message.contains("`dataset.t.unit.user` is missing, and an element is the rows of one user"), "{message}");
}

#[test]
fn feature_and_label_units_stand_alone() {
    let unit = unit_of("unit.public = ['age', 'town']\nunit.protect = 'feature'");
    assert_eq!(unit.units(), [Unit::feature(&[], &["age", "town"])]);
    assert_eq!(unit.ladder().unwrap().rungs().len(), 1);
    let unit = unit_of(
        "unit.user = 'u'\nunit.label = 'ill'\nunit.protect = 'label'\nbudget.label = { epsilon = 1, delta = 1e-6 }",
    );
    assert_eq!(unit.units(), [Unit::label(&["u"], "ill")]);
    for lines in [
        "unit.protect = 'feature'",
        "unit.public = ['ill']\nunit.label = 'ill'\nunit.protect = 'label'",
        "unit.label = 'ill'\nunit.protect = 'label'\nunit.change = 'add-remove'",
        "unit.label = 'ill'\nunit.protect = 'label'\nbudget.user = { epsilon = 1 }",
    ] {
        wrong(&format!("[dataset.t]\nsource = 't.csv'\n{lines}"));
    }
}

const SHOP: &str = "[dataset.orders]\nsource = 'o.csv'\nunit.user = 'orders.customer_id -> customers.id'\nunit.protect = 'user'\n\
                    [dataset.customers]\nsource = 'c.csv'\nunit.user = 'id'\nunit.protect = 'user'\n";

#[test]
fn several_tables_belong_to_one_user_through_keys() {
    let shop = Declaration::parse(SHOP).unwrap();
    let user = shop.datasets["orders"].unit.as_ref().unwrap().user.as_ref().unwrap();
    assert_eq!((user.column(), user.to_string().as_str()), ("customer_id", "orders.customer_id -> customers.id"));
    assert_eq!(shop.datasets["orders"].unit.as_ref().unwrap().units()[1], Unit::user("customer_id", Change::Replace));
    for (instead, message) in [
        ("order.customer_id -> customers.id", "begins at `order`, but belongs to `orders`"),
        (
            "orders.customer_id -> customer.id",
            "line 3: `dataset.orders.unit.user` leads to `customer`, but no data set is called `customer`",
        ),
        ("orders.customer_id -> customers", "must be `table.column -> other.column`"),
    ] {
        let error = wrong(&SHOP.replace("orders.customer_id -> customers.id", instead));
        assert!(error.to_string().contains(message), "{error}");
    }
    let own = SHOP.replacen(
        "unit.protect = 'user'\n",
        "unit.protect = 'user'\nunit.caps.rows_per_user = 3\nbudget.user = { epsilon = 5, delta = 1e-6 }\n",
        1,
    );
    assert!(wrong(&own).to_string().contains("`orders` has a budget of its own"), "{}", wrong(&own));
    let otherwise = SHOP.replacen("unit.protect = 'user'\n", "unit.protect = 'user'\nunit.change = 'add-remove'\n", 1);
    assert!(wrong(&otherwise).to_string().contains("change in another way"), "{}", wrong(&otherwise));
    let public = SHOP.replace("unit.user = 'id'\nunit.protect = 'user'", "public = true");
    assert!(wrong(&public).to_string().contains("leads to `customers`, which has no users"));
}

#[test]
fn a_key_is_looked_up_from_table_to_table_until_it_leads_to_a_user() {
    let lines = "[dataset.lines]\nsource = 'l.csv'\nunit.user = 'lines.order_id -> orders.id'\nunit.protect = 'user'\n\
                 [dataset.notes]\nsource = 'n.csv'\nunit.user = 'notes.order_no -> lines.order_id'\nunit.protect = 'user'\n";
    let shop = Declaration::parse(&format!("{SHOP}{lines}")).unwrap();
    let owning = |name: &str| shop.owning(&shop.datasets[name]).unwrap();
    assert_eq!(owning("customers"), Owning::Column("id"));
    assert_eq!(owning("orders"), Owning::Column("customer_id"));
    assert_eq!(owning("lines"), Owning::LookedUp { column: "order_id", table: "orders", key: "id" });
    // A key that leads to a key says what that says.
    assert_eq!(owning("notes"), Owning::LookedUp { column: "order_no", table: "orders", key: "id" });
    let less = format!("{SHOP}{lines}").replacen("'user'\n[dataset.customers]", "'event'\n[dataset.customers]", 1);
    assert!(wrong(&less).to_string().contains("`orders` protects less than a user"), "{}", wrong(&less));
}

#[test]
fn a_budget_without_delta_adds_up_plainly() {
    let text = "[dataset.t]\nsource = 't.csv'\nunit.protect = 'event'\nbudget.event = { epsilon = 1 }";
    let declaration = Declaration::parse(text).unwrap();
    let budget = &declaration.budgets_of("t")[0];
    assert_eq!((budget.delta, budget.currency.as_deref()), (0.0, Some("sum")));
}

#[test]
fn a_table_name_is_one_that_can_be_declared() {
    for (text, name) in [
        ("visits", "visits"),
        ("_x", "_x"),
        ("a__b_", "a__b_"),
        ("My Data!", "my_data"),
        ("", "table"),
        ("*.csv", "csv"),
        ("é-1", "é_1"),
    ] {
        assert_eq!(table_name(text), name, "{text}");
    }
}

proptest! {
    #[test]
    fn a_table_name_is_its_own_table_name(text in "\\PC*") {
        let name = table_name(&text);
        prop_assert_eq!(&table_name(&name), &name);
        let declared = format!("[dataset.\"{name}\"]\nsource = 'x'\npublic = true");
        prop_assert!(Declaration::parse(&declared).is_ok(), "{}", name);
    }
}

#[test]
fn a_declaration_can_be_written_as_json() {
    let json = serde_json::to_value(Declaration::parse(VISITS).unwrap()).unwrap();
    assert_eq!(json["datasets"]["visits"]["unit"]["protect"], "element");
    assert_eq!(json["datasets"]["visits"]["columns"]["seconds"]["bounds"]["declared"]["high"], 600.0);
}

/// Lines that mean something, so that chance gets past the first key.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "[dataset.a]",
        "[dataset.b]",
        "[dataset]",
        "source",
        "format",
        "public",
        "unit",
        "unit.user",
        "unit.element",
        "unit.public",
        "unit.label",
        "unit.protect",
        "unit.change",
        "unit.caps",
        "unit.caps.rows_per_user",
        "unit.caps.elements_per_user",
        "columns.x",
        "columns.x.bounds",
        "columns.x.keys",
        "budget",
        "budget.user",
        "budget.element",
        "budget.event",
        "budget.analyst.eve.user",
        "query",
        "ledger",
        "\"\"",
        "[[dataset.a]]",
    ]);
    let value = prop::sample::select(vec![
        "'x'",
        "'a.x -> b.y'",
        "'b.y'",
        "true",
        "false",
        "0",
        "-1",
        "7",
        "9223372036854775807",
        "1e400",
        "nan",
        "-inf",
        "0x7f",
        "[]",
        "[0, 1]",
        "['x']",
        "[[1]]",
        "{}",
        "{ epsilon = 1, delta = 1e-6 }",
        "{ epsilon = 1 }",
        "'user'",
        "'element'",
        "'event'",
        "'label'",
        "'feature'",
        "'replace'",
        "'add-remove'",
        "'auto'",
        "'csv'",
        "2024-01-01",
        "{ column = 'x', file = 'y' }",
        "{ column = 'x', dictionary = { a = 'b' }, unknown = 'c' }",
        "\"\\u0000\"",
        "",
    ]);
    (key, value).prop_map(|(key, value)| if key.starts_with('[') { key.to_owned() } else { format!("{key} = {value}") })
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = Declaration::parse(&text);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Declaration::parse(&String::from_utf8_lossy(&bytes));
    }

    /// Whatever is taken has a ladder, and each of its budgets a rung on it.
    #[test]
    fn what_is_taken_stands_and_what_is_refused_has_a_hint(lines in prop::collection::vec(line(), 0..12), sound in any::<bool>()) {
        let start = if sound { "[dataset.a]\nsource = 'x'\nunit.protect = 'event'\n" } else { "" };
        match Declaration::parse(&format!("{start}{}", lines.join("\n"))) {
            Ok(declaration) => for dataset in declaration.datasets.values() {
                let Some(unit) = &dataset.unit else { prop_assert!(dataset.public); continue };
                let ladder = unit.ladder().unwrap();
                prop_assert_eq!(ladder.protected().unit.kind(), unit.protect);
                prop_assert!(dataset.budgets.iter().all(|budget| ladder.rung(budget.kind).is_some()));
            },
            Err(error) => {
                let left_open = error.sentence().contains("{key}");
                prop_assert!(!error.hint().is_empty() && !left_open);
            }
        }
    }

    /// A sound text that loses or gains a few bytes is taken or refused, and never a panic.
    #[test]
    fn no_slip_of_the_pen_makes_the_reader_panic(cuts in prop::collection::vec((0..VISITS.len(), any::<char>()), 1..4)) {
        let mut text: Vec<char> = VISITS.chars().collect();
        for (at, letter) in cuts {
            let at = at % text.len();
            if letter.is_alphabetic() { text[at] = letter } else { text.remove(at); }
        }
        let _ = Declaration::parse(&text.into_iter().collect::<String>());
    }
}

#[test]
fn types_are_declared_with_the_column_or_in_place_of_it() {
    let text = |columns: &str| {
        format!(
            "[dataset.t]\nsource = 't.csv'\nunit.user = 'u'\nunit.protect = 'user'\nnewlines_in_values = true\n{columns}\n"
        )
    };
    let declared =
        Declaration::parse(&text("columns.u = 'int'\ncolumns.x = { type = 'decimal(9, 2)', bounds = [0, 1] }\n"))
            .unwrap();
    let dataset = &declared.datasets["t"];
    assert!(dataset.newlines_in_values);
    assert_eq!(dataset.column_type("u"), Some(&ColumnType::Int));
    assert_eq!(dataset.column_type("x").map(ToString::to_string).as_deref(), Some("decimal(9, 2)"));
    assert_eq!((dataset.column_type("y"), dataset.bounds("x").is_some()), (None, true));
    assert_eq!(serde_json::to_value(dataset).unwrap()["columns"]["x"]["type"], "decimal(9, 2)");
    for (columns, expected) in [
        (
            "columns.u = 'integer'",
            "line 6: `dataset.t.columns.u` is `integer`, which is not a type that is known | did you mean `int`?",
        ),
        ("columns.u.type = 'txt'", "did you mean `text`?"),
        ("columns.u.type = 'decimal(99, 2)'", "a column's type is one of: int, float"),
        ("columns.u = 7", "`dataset.t.columns.u` must be text in quotes"),
        (
            "columns.u = { type = 'date', bounds = [0, 1] }",
            "has bounds that are not of its type, which is date | numbers have numbers as bounds",
        ),
        ("columns.u = { type = 'int', bounds = ['2024-01-01', '2024-01-02'] }", "not of its type, which is int"),
        ("columns.u = { type = 'date', bounds = ['2024-02-30', '2024-03-01'] }", "has `2024-02-30`, which is no day"),
        ("columns.u = { type = 'date', bounds = [2024-03-01, 2024-01-01] }", "is empty | write the first day first"),
    ] {
        let error = Declaration::parse(&text(columns)).unwrap_err();
        let message = format!("{error} | {}", error.hint());
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn how_files_are_written_is_read_and_checked() {
    let text = |more: &str| {
        format!(
            "[dataset.t]\nsource = 't.csv'\nunit.user = 'u'\nunit.protect = 'user'\n{more}\ncolumns.u.type = 'int'\ncolumns.day = 'date'\ncolumns.a = {{ type = 'text' }}\n"
        )
    };
    let read = |more: &str| Declaration::parse(&text(more)).map(|mut declared| declared.datasets.remove("t").unwrap());
    assert!(read("").unwrap().layout.is_default());
    assert_eq!(serde_json::to_value(read("").unwrap()).unwrap().get("layout"), None);
    let signs =
        read("delimiter = '\\t'\nquote = \"'\"\nescape = '\\'\ncomment = '#'\nnull = ['NA', -9]").unwrap().layout;
    assert_eq!(
        (signs.delimiter, signs.quote, signs.escape, signs.comment),
        (Some('\t'), Some('\''), Some('\\'), Some('#'))
    );
    assert_eq!(signs.null, ["NA", "-9"]);
    assert_eq!(read("delimiter = \"\\t\"\nquote = ''").unwrap().layout.quote, None);
    let columns = |more| read(more).unwrap().layout.names.unwrap();
    assert_eq!(columns("header = false"), ["u", "day", "a"], "in the order in which they are written");
    assert_eq!(columns("header = false\npartitioned_by = 'day'"), ["u", "a"], "a folder is no place in a line");
    assert_eq!(columns("header = ['x', 'u']"), ["x", "u"]);
    assert_eq!(read("header = true").unwrap().layout.names, None);
    assert_eq!(read("compression = 'zstd'").unwrap().layout.compression, Some(Compression::Zstd));
    assert_eq!(read("encoding = 'windows-1252'").unwrap().layout.encoding, Some(Encoding::Windows1252));
    for (more, expected) in [
        ("delimiter = ';;'", "line 5: `dataset.t.delimiter` is `;;`, but must be one sign of ASCII"),
        ("delimiter = 'é'", "must be one sign of ASCII"),
        ("delimiter = '\"'", "`delimiter` and `quote` are the same sign"),
        ("quote = ','", "`delimiter` and `quote` are the same sign"),
        ("quote = ''\nescape = '\\'", "has a meaning in quotes alone"),
        ("header = 1", "must be true or false"),
        ("header = ['a', 'a']", "lists `a` twice"),
        ("encoding = 'utf8'", "did you mean `utf-8`?"),
        ("compression = 'gzipp'", "did you mean `gzip`?"),
        ("partitioned_by = ['month']", "lists `month`, which has no declared type"),
        ("delimeter = ';'", "did you mean `delimiter`?"),
        ("open = 'u'", "opens `u`, the user column"),
        ("open = 'day'\npartitioned_by = 'day'", "the name of a folder is no list"),
    ] {
        let error = read(more).unwrap_err();
        let message = format!("{error} | {}", error.hint());
        assert!(message.contains(expected), "{message}");
    }
    for (protect, kind, expected) in [
        ("event", "text", "`unit.protect` is `event`, which would be a part of what one row was"),
        ("user", "list(text)", "opens `tags`, which is declared as list(text), but what is declared is of one item"),
    ] {
        let text = format!(
            "[dataset.t]\nsource = 't'\nopen = 'tags'\nunit.user = 'u'\nunit.protect = '{protect}'\ncolumns.tags = '{kind}'\n"
        );
        assert!(Declaration::parse(&text).unwrap_err().to_string().contains(expected), "{protect} {kind}");
    }
    let label =
        "[dataset.t]\nsource = 't.csv'\ncomment = '#'\nunit.label = 'a'\nunit.protect = 'label'\ncolumns.a = 'text'\n";
    assert!(Declaration::parse(label).unwrap_err().to_string().contains("lets a value decide whether a line is a row"));
    let bare = "[dataset.t]\nsource = 't.csv'\npublic = true\nheader = false\n";
    assert!(Declaration::parse(bare).unwrap_err().to_string().contains("no column has a declared type"));
}
