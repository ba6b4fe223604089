use super::*;
use crate::error::Fault;
use crate::partition::PartitionKind;
use crate::plan::call::ItemList;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use datafusion::arrow::array::{Float64Array, Int64Array, StringArray};
use std::path::PathBuf;
use whit_account::ledger::Books;

/// 300 users; user u has words w0 to w(u mod 10), word i as often as i + 1 rows, each of u mod 5 seconds.
fn talk(scratch: &Scratch) {
    let (mut users, mut words, mut seconds, mut days) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for user in 0..300_i64 {
        for word in 0..=user % 10 {
            for row in 0..=word {
                users.push(if user == 299 && row == 0 { None } else { Some(user) });
                words.push(format!("w{word}"));
                seconds.push((user % 5) as f64);
                days.push(row % 7);
            }
        }
    }
    scratch.parquet(
        "talk.parquet",
        vec![
            ("user", Arc::new(Int64Array::from(users))),
            ("word", Arc::new(StringArray::from(words))),
            ("seconds", Arc::new(Float64Array::from(seconds))),
            ("day", Arc::new(Int64Array::from(days))),
        ],
    );
    let list: Vec<String> = (0..50).map(|i| format!("w{i}")).collect();
    scratch.write("words.txt", list.join("\n"));
    scratch.write("words.csv", "word\nw0\nw1\nw2\n");
}

fn declare(scratch: &Scratch, element: &str, caps: &str) -> Tables {
    let text = format!(
        "[dataset.talk]\nsource = 'talk.parquet'\nunit.user = 'user'\nunit.element = {element}\nunit.protect = 'element'\nunit.caps = {{ {caps} }}\n\
         columns.seconds = {{ bounds = [0, 4] }}\nbudget.element = {{ epsilon = 400, delta = 1e-6 }}\n\
         [dataset.words]\nsource = 'words.csv'\npublic = true\n"
    );
    let config = scratch.write("whit.toml", text);
    Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap()
}

fn books(scratch: &Scratch) -> Books {
    Books::open(&scratch.path().join("whit.ledger")).unwrap()
}

fn words(scratch: &Scratch) -> HittersQuestion {
    HittersQuestion {
        dataset: "talk".into(),
        item: "word".into(),
        items: Some(ItemList::File(scratch.path().join("words.txt"))),
        top: Some(3),
        items_per_user: None,
        gap: None,
    }
}

fn asking(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), ..Asking::default() }
}

fn number(cell: &Cell) -> f64 {
    match cell.value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
        _ => panic!("a number"),
    }
}

#[test]
fn hitters_are_counted_once_and_asking_again_is_free() {
    let scratch = Scratch::new("ask-hitters");
    talk(&scratch);
    let (tables, mut books) = (declare(&scratch, "'word'", "elements_per_user = 20"), books(&scratch));
    let asking = asking(50.0); // so that noise hides nothing from this test
    let first = hitters(&tables, &words(&scratch), &asking, &mut books, "anna").unwrap();
    assert_eq!(first.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["word", "users"]);
    let names: Vec<&Value> = first.rows.iter().map(|row| &row[0].value).collect();
    assert_eq!(names, [&Value::Text("w0".into()), &Value::Text("w1".into()), &Value::Text("w2".into())]);
    assert!(!first.columns[0].after_caps && first.columns[1].after_caps, "who has more than 20 words counts for less");
    // User 299 has a row without a user for each word, and with w0 only that one.
    for (row, truth) in first.rows.iter().zip([299.0, 270.0, 240.0]) {
        assert!((number(&row[1]) - truth).abs() < 8.0, "{row:?}, not {truth}");
        assert!(row[1].low.unwrap() <= number(&row[1]) && number(&row[1]) <= row[1].high.unwrap());
    }
    assert!(!first.statement.stored);
    assert_eq!(first.statement.prices.len(), 2, "element and user");
    assert!(first.statement.prices[0].epsilon <= 50.0 && first.statement.prices[1].epsilon > 100.0);
    assert!(first.statement.notes.iter().any(|note| note.contains("pairs")), "{:?}", first.statement.notes);
    // Another top and another confidence are the same release, read anew.
    let wider = HittersQuestion { top: None, ..words(&scratch) };
    let again =
        hitters(&tables, &wider, &Asking { confidence: Some(0.5), ..asking.clone() }, &mut books, "bert").unwrap();
    assert!(again.statement.stored && again.rows.len() == 50);
    assert_eq!(again.rows[0][1].value, first.rows[0][1].value);
    assert_eq!(books.verify().unwrap().entries, 1);
    // A list in a table, and one that is written out.
    for items in [
        ItemList::Column { table: "words".into(), column: "word".into() },
        ItemList::Listed(vec!["w0".into(), "w1".into(), "w1".into()]),
    ] {
        let question = HittersQuestion { items: Some(items), top: None, ..words(&scratch) };
        let answer = hitters(&tables, &question, &asking, &mut books, "anna").unwrap();
        assert!(!answer.statement.stored && answer.rows.len() <= 3);
    }
}

/// Bytes that are no text are no item, whoever has them: their rows are left out, and the question is answered.
#[test]
fn items_that_are_no_text_are_left_out() {
    let scratch = Scratch::new("ask-bytes");
    talk(&scratch);
    let users: Vec<i64> = (0..40).collect();
    let mut words: Vec<&[u8]> = vec![b"w0"; 40];
    (words[3], words[17], words[20]) = (b"\xff\xfe", b"\xc3\x28", b"");
    let words = datafusion::arrow::array::BinaryArray::from(words);
    let columns: Vec<(&str, datafusion::arrow::array::ArrayRef)> = vec![
        ("user", Arc::new(Int64Array::from(users))),
        ("word", Arc::new(words)),
        ("seconds", Arc::new(Float64Array::from(vec![1.0; 40]))),
        ("day", Arc::new(Int64Array::from(vec![1; 40]))),
    ];
    scratch.parquet("talk.parquet", columns);
    let (tables, mut books) = (declare(&scratch, "'day'", "elements_per_user = 20"), books(&scratch));
    let question =
        HittersQuestion { items: Some(ItemList::Listed(vec!["w0".into(), "w1".into()])), ..self::words(&scratch) };
    let answer = hitters(&tables, &question, &asking(300.0), &mut books, "anna").unwrap();
    assert!((number(&answer.rows[0][1]) - 37.0).abs() < 3.0, "{:?}", answer.rows);
}

#[test]
fn what_an_element_touches_decides_the_noise() {
    let scratch = Scratch::new("ask-touch");
    talk(&scratch);
    let mut books = books(&scratch);
    let sigma = |tables: &Tables, books: &mut Books| {
        let answer = hitters(tables, &words(&scratch), &asking(1.0), books, "anna").unwrap();
        let words = answer.statement.mechanisms[0].clone();
        words.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let caps = "elements_per_user = 20";
    let own = sigma(&declare(&scratch, "'word'", caps), &mut books);
    assert!((own - 4.225).abs() < 0.01, "ε = 1 at δ = 1e-6: {own}");
    // Words by their last letter: 50 words in ten elements, five in each.
    let grouped = sigma(&declare(&scratch, "'right(word, 1)'", caps), &mut books);
    assert!((grouped / own - 5_f64.sqrt()).abs() < 0.01, "{grouped}");
    let file = PartitionFile::symbolic("last", PartitionKind::Expression { sql: "right(word, 1)".into() }).unwrap();
    file.save(&scratch.path().join("last.partition")).unwrap();
    let tables = declare(&scratch, "{ column = 'word', file = 'last.partition' }", caps);
    assert_eq!(tables.partition("talk"), Some(file.hash()));
    assert!((sigma(&tables, &mut books) - grouped).abs() < 1e-9, "the same, from a file");
    // A day may hold any words: as much as a user whose cap is not known, √50.
    let day = sigma(&declare(&scratch, "'day'", caps), &mut books);
    assert!((day / own - 50_f64.sqrt()).abs() < 0.01, "{day}");
    // By a dictionary of two elements, and by a partition file.
    let dictionary = "{ column = 'word', dictionary = { w0 = 'a', w1 = 'a', w2 = 'b' }, unknown = 'c' }";
    let listed = sigma(&declare(&scratch, dictionary, caps), &mut books);
    assert!((listed / own - 40_f64.sqrt().min(47_f64.sqrt())).abs() < 0.6, "47 words are in `c`: {listed}");
    let file = PartitionFile::dictionary("two", [("w0", "a"), ("w1", "a")], "b").unwrap();
    file.save(&scratch.path().join("two.partition")).unwrap();
    let tables = declare(&scratch, "{ column = 'word', file = 'two.partition' }", caps);
    let filed = sigma(&tables, &mut books);
    assert!((filed / own - 48_f64.sqrt()).abs() < 0.05, "48 words are in `b`: {filed}");
}

fn partition(scratch: &Scratch) -> PathBuf {
    let items: Vec<String> = (0..12).map(|i| format!("w{i}")).collect();
    let element_of = (0..12).map(|i| if i < 10 { i / 2 } else { i - 5 }).collect();
    let kind = PartitionKind::Kmeans { dimension: 2, seed: 1, iterations: 1 };
    let file = PartitionFile::listed("pairs", kind, items, element_of, 8, 7).unwrap();
    let path = scratch.path().join("pairs.partition");
    file.save(&path).unwrap();
    path
}

fn bars(scratch: &Scratch) -> HistogramQuestion {
    HistogramQuestion {
        dataset: "talk".into(),
        item: "word".into(),
        partition: partition(scratch),
        weight: None,
        radius: Radius::Given(100.0),
        top: None,
        clusters_per_user: None,
        shares: false,
    }
}

#[test]
fn histograms_add_up_what_users_have() {
    let scratch = Scratch::new("ask-histogram");
    talk(&scratch);
    let question = bars(&scratch);
    let tables = declare(&scratch, "{ column = 'word', file = 'pairs.partition' }", "elements_per_user = 6");
    let mut books = books(&scratch);
    let asking = asking(100.0);
    let answer = histogram(&tables, &question, &asking, &mut books, "anna").unwrap();
    assert_eq!(answer.rows.len(), 12);
    assert_eq!(answer.columns.iter().map(|column| column.after_caps).collect::<Vec<_>>(), [false, false, true]);
    let find = |answer: &Answer, word: &str| {
        let row = answer.rows.iter().find(|row| row[0].value == Value::Text(word.into())).unwrap();
        (number(&row[2]), row[2].low.unwrap(), row[2].high.unwrap())
    };
    // Word i is had by 30·(10 − i) users, i + 1 times each, but for user 299, who has no first row of any.
    for i in 0..10 {
        let truth = f64::from(30 * (10 - i) * (i + 1) - 1);
        let (value, low, high) = find(&answer, &format!("w{i}"));
        assert!(low <= truth + 40.0 && truth - 40.0 <= high, "w{i}: {low} ≤ {value} ≤ {high}, truth {truth}");
    }
    assert!(find(&answer, "w11").0.abs() < 150.0, "no user has it");
    let again = histogram(
        &tables,
        &HistogramQuestion { top: Some(2), shares: true, ..question.clone() },
        &asking,
        &mut books,
        "x",
    )
    .unwrap();
    assert!(again.statement.stored && again.rows.len() == 2);
    assert!((number(&again.rows[0][2]) - 0.136).abs() < 0.02, "w4 or w5, 900 of 6,600: {:?}", again.rows[0]);
    // Weights: word 0 has 300 rows of u mod 5 seconds, 2 on average, less what user 299 lost.
    let weighted = HistogramQuestion { weight: Some("seconds".into()), ..question.clone() };
    let answer = histogram(&tables, &weighted, &asking, &mut books, "anna").unwrap();
    assert!((find(&answer, "w0").0 - 596.0).abs() < 150.0, "{:?}", find(&answer, "w0"));
    // A radius that is found.
    for radius in [Radius::TwoStage { share: 0.2, quantile: 0.9 }, Radius::Split { users: 0.2, quantile: 0.9 }] {
        let found =
            histogram(&tables, &HistogramQuestion { radius, ..question.clone() }, &asking, &mut books, "anna").unwrap();
        let notes = found.statement.notes.join("\n");
        assert!(notes.contains("found privately") && notes.contains("cut off"), "{notes}");
        assert!(found.statement.prices[0].epsilon <= 100.0 * (1.0 + 1e-6), "{:?}", found.statement.prices[0]);
    }
    assert_eq!(answer.statement.partition.as_deref(), Some(PartitionFile::load(&question.partition).unwrap().hash()));
}

#[test]
fn what_cannot_be_asked_gets_a_sentence_and_is_not_charged() {
    let scratch = Scratch::new("ask-wrong");
    talk(&scratch);
    let (tables, mut books) = (declare(&scratch, "'word'", "elements_per_user = 20"), books(&scratch));
    let mut wrong = |question: HittersQuestion, asking: &Asking| {
        let error = hitters(&tables, &question, asking, &mut books, "anna").unwrap_err();
        (error.fault, format!("{} | {}", error.sentence, error.hint.unwrap_or_default()))
    };
    let plain = || words(&scratch);
    for (question, asking, words) in [
        (HittersQuestion { item: "wrod".into(), ..plain() }, asking(1.0), "did you mean `word`?"),
        (HittersQuestion { dataset: "tlak".into(), ..plain() }, asking(1.0), "did you mean `talk`?"),
        (HittersQuestion { dataset: "words".into(), ..plain() }, asking(1.0), "is public"),
        (HittersQuestion { items: None, ..plain() }, asking(1.0), "nothing says which values"),
        (HittersQuestion { items: Some(ItemList::Listed(vec![])), ..plain() }, asking(1.0), "list of items is empty"),
        (plain(), Asking::default(), "nothing says how much"),
        (plain(), Asking { delta: Some(0.0), ..asking(1.0) }, "no Gaussian noise keeps"),
        (plain(), Asking { confidence: Some(1.5), ..asking(1.0) }, "the confidence is 1.5"),
        (HittersQuestion { items_per_user: Some(0), ..plain() }, asking(1.0), "a cap of 0"),
        (
            HittersQuestion {
                items: Some(ItemList::Column { table: "talk".into(), column: "word".into() }),
                ..plain()
            },
            asking(1.0),
            "is not declared public",
        ),
    ] {
        let (fault, text) = wrong(question, &asking);
        assert!(fault == Fault::Asked && text.contains(words), "{text}");
    }
    let (fault, text) = wrong(plain(), &asking(500.0));
    assert!(fault == Fault::Refused && text.contains("nothing was charged"), "{text}");
    assert_eq!(books.verify().unwrap().entries, 0);
    let seconds = HistogramQuestion { weight: Some("day".into()), ..bars(&scratch) };
    let error = histogram(&tables, &seconds, &asking(1.0), &mut books, "anna").unwrap_err();
    assert!(error.sentence.contains("`talk.day` has no declared range"), "{}", error.sentence);
}

/// Fifty words in five clusters.
fn listed(scratch: &Scratch) {
    let pairs: Vec<(String, String)> = (0..50).map(|i| (format!("w{i}"), format!("c{}", i % 5))).collect();
    let pairs = pairs.iter().map(|(word, cluster)| (word.as_str(), cluster.as_str()));
    let partition = PartitionFile::dictionary("word", pairs, "other").unwrap();
    partition.save(&scratch.path().join("words.partition")).unwrap();
}

#[test]
fn estimators_are_tables_in_sql_and_the_same_question() {
    let scratch = Scratch::new("ask-sql");
    talk(&scratch);
    let (tables, mut books) = (declare(&scratch, "'word'", "elements_per_user = 20"), books(&scratch));
    let asking = asking(50.0);
    listed(&scratch);
    let sql = "SELECT word, users, users / 300 AS share FROM hitters('talk', 'word', 'items=words.partition') \
               WHERE word LIKE 'w%' ORDER BY users DESC LIMIT 3";
    let first = crate::ask(&tables, sql, &asking, &mut books, "anna").unwrap();
    assert_eq!(first.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["word", "users", "share"]);
    assert_eq!(first.rows.len(), 3);
    assert_eq!(first.rows[0][0].value, Value::Text("w0".into()));
    let (users, share) = (&first.rows[0][1], &first.rows[0][2]);
    assert!((number(users) - 299.0).abs() < 20.0 && (number(share) - number(users) / 300.0).abs() < 1e-9);
    assert!(users.low.unwrap() < users.high.unwrap() && share.low.unwrap() < share.high.unwrap());
    // The command asks the same question: it finds the answer in the ledger.
    let items = Some(ItemList::File(scratch.path().join("words.partition")));
    let command = HittersQuestion { items, ..words(&scratch) };
    let command = hitters(&tables, &command, &asking, &mut books, "anna").unwrap();
    assert!(!first.statement.stored && command.statement.stored);
    assert_eq!(number(&command.rows[0][1]), number(users));

    let added = "SELECT COUNT(*) AS n, SUM(users) AS pairs FROM hitters('talk', 'word', 'items=words.partition') h \
                 JOIN words ON h.word = words.word";
    let added = crate::ask(&tables, added, &asking, &mut books, "anna").unwrap();
    assert!(added.statement.stored, "what is done with a released table is free");
    assert_eq!(number(&added.rows[0][0]), 3.0);

    let preview = tables.preview(sql, &asking).unwrap();
    assert_eq!(preview.prices, first.statement.prices);
    assert_eq!(preview.errors[0].within.map(|w| w > 0.0), Some(true));
    let found = tables.within(sql, &asking, crate::explain::Within::Absolute(25.0)).unwrap();
    assert!(found.errors[0].within.unwrap() <= 25.0 && found.epsilon < 50.0);
}

#[test]
fn a_histogram_is_a_table_in_sql() {
    let scratch = Scratch::new("ask-sql-histogram");
    talk(&scratch);
    listed(&scratch);
    let element = "{ column = 'word', file = 'words.partition' }";
    let (tables, mut books) = (declare(&scratch, element, "elements_per_user = 5"), books(&scratch));
    let asking = asking(50.0);
    let sql = |radius: &str| {
        format!(
            "SELECT cluster, SUM(count) AS rows FROM histogram('talk', 'word', 'words.partition', 'radius={radius}') \
             GROUP BY cluster ORDER BY cluster"
        )
    };
    let answer = crate::ask(&tables, &sql("20"), &asking, &mut books, "anna").unwrap();
    assert_eq!(answer.rows.len(), 5);
    assert!(answer.columns[1].after_caps, "blocks are cut at the radius: {:?}", answer.columns);
    assert!(tables.preview(&sql("20"), &asking).unwrap().errors[0].within.is_some());
    assert!(tables.preview(&sql("auto"), &asking).unwrap().errors[0].within.is_none());
    let unknown = tables.within(&sql("auto"), &asking, crate::explain::Within::Absolute(25.0));
    assert!(unknown.is_err_and(|error| error.sentence.contains("depends on the data")));
}

#[test]
fn calls_that_say_nothing_sensible_are_refused_and_cost_nothing() {
    let scratch = Scratch::new("ask-sql-bad");
    talk(&scratch);
    let (tables, mut books) = (declare(&scratch, "'word'", "elements_per_user = 20"), books(&scratch));
    let asking = asking(1.0);
    listed(&scratch);
    let call = "hitters('talk', 'word', 'items=words.partition')";
    let (copy, sub, pair, with_rows, explain) = (
        format!("COPY (SELECT * FROM {call}) TO '{}'", scratch.path().join("out.csv").display()),
        format!("SELECT word FROM words WHERE word IN (SELECT word FROM {call})"),
        format!("SELECT * FROM {call} a JOIN {call} b ON a.word = b.word"),
        format!("SELECT h.users, COUNT(*) FROM {call} h JOIN talk ON h.word = talk.word GROUP BY 1"),
        format!("EXPLAIN SELECT * FROM {call}"),
    );
    for (sql, word) in [
        ("SELECT * FROM hitters('talk')", "needs 2 names"),
        ("SELECT * FROM hitters('talk', 'word', 'colour=red')", "no option colour"),
        ("SELECT * FROM hitters(talk, 'word')", "talk"),
        ("SELECT * FROM hitters('nothing', 'word', 'items=words.partition')", "nothing"),
        ("SELECT * FROM hitters('talk', 'wrod', 'items=words.partition')", "wrod"),
        ("SELECT * FROM histogram('talk', 'word', 'none.partition')", "none.partition"),
        // The lines of any other file would be released as items.
        ("SELECT * FROM hitters('talk', 'word', 'items=words.txt')", "no partition file"),
        ("SELECT * FROM hitters('talk', 'word', 'items=whit.toml')", "no partition file"),
        ("SELECT * FROM hitters('talk', 'word', 'items=/etc/passwd')", "no partition file"),
        ("SELECT * FROM hitters('talk', 'word', 'items=../words.partition')", "no partition file"),
        ("SELECT * FROM hitters('talk', 'word', 'items=talk.word')", "not declared public"),
        ("SELECT * FROM histogram('talk', 'word', 'words.partition', 'radius=inf')", "radius=inf"),
        (&copy, "would change something"),
        (&explain, "could tell of the data"),
        (&sub, "sub-query"),
        (&pair, "by itself"),
        (&with_rows, "by itself"),
    ] {
        let refused = crate::ask(&tables, sql, &asking, &mut books, "anna").unwrap_err();
        assert!(refused.sentence.contains(word), "{sql}: {}", refused.sentence);
        assert_eq!(refused.fault, Fault::Asked, "{sql}");
    }
    assert!(!scratch.path().join("out.csv").exists());
    let sql = format!("SELECT * FROM {call}");
    assert!(!crate::ask(&tables, &sql, &asking, &mut books, "anna").unwrap().statement.stored);
}

/// 0 % was stated where most was cut.
#[test]
fn a_radius_that_was_found_in_noise_says_so_and_not_that_nothing_is_cut() {
    let noise = CutOff { blocks: (0.0, 0.9), length: 0.0 };
    assert!(in_noise(Some(noise)).contains("mostly in noise") && in_noise(None).is_empty());
    let words = cut_off(noise, "");
    assert!(
        words.contains("cannot be stated at this noise") && words.contains("between 0 and 90 % of blocks"),
        "{words}"
    );
    let clear = CutOff { blocks: (0.04, 0.06), length: 0.125 };
    assert_eq!(in_noise(Some(clear)), "");
    let words = cut_off(clear, "of the users who were set aside, ");
    assert!(words.starts_with("of the users who were set aside, between 4 and 6 % of blocks are longer"), "{words}");
    assert!(words.contains("at least 12.5 % of all length is cut off"), "{words}");
    let unknown = cut_off(CutOff { length: 0.0, ..clear }, "");
    assert!(
        unknown.contains("how much of all length is cut off cannot be stated") && !unknown.contains(" 0 %"),
        "{unknown}"
    );
}

mod stored;
