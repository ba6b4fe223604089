//! The `whit` command as people and programs meet it: the real binary, its output, its sentences, its exit codes.

mod declare;
mod workload;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn whit(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.args(line.split_whitespace()).env("WHIT_STATE", "").output().expect("the binary was built")
}

fn stdout(line: &str) -> String {
    let output = whit(line);
    assert!(output.status.success(), "`whit {line}` said: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(line: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{line} --json"))).expect("JSON")
}

fn number(view: &Value, field: &str) -> f64 {
    view[field].as_f64().unwrap_or_else(|| panic!("`{field}` is no number in {view}"))
}

/// The exit code and the sentence on standard error; nothing may have been written as data.
fn complaint(line: &str) -> (Option<i32>, String) {
    let output = whit(line);
    assert!(output.stdout.is_empty(), "`whit {line}` complained and still wrote data");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
    folder
}

const RUN: &str = "--noise 4 --rate 0.01 --steps 40000 --delta 1e-5 --change replace";

#[test]
fn drawing_units_costs_what_the_pair_of_units_costs() {
    let view = json(&format!("account epsilon {RUN} --draw unit"));
    let (lower, upper) = (number(&view, "epsilon_lower"), number(&view, "epsilon_upper"));
    assert!(lower <= upper && upper - lower < 0.01 * upper, "{lower} to {upper}");
    assert!((4.37..4.40).contains(&upper), "{upper}");
    for (field, expected) in [("accountant", "pld"), ("change", "replace"), ("draw", "unit"), ("sampling", "poisson")] {
        assert_eq!(view[field], expected);
    }
    assert_eq!((number(&view, "noise"), number(&view, "delta"), number(&view, "rate")), (4.0, 1e-5, 0.01));
    assert_eq!((number(&view, "steps"), number(&view, "difference")), (40_000.0, 2.0));
    assert_eq!(view["rungs"].as_array().map(Vec::len), Some(1));
    assert_eq!(view["rungs"][0]["unit"], "unit");
}

#[test]
fn drawing_whole_users_gives_the_draw_away() {
    let view = json(&format!("account epsilon {RUN} --draw user --elements-per-user 30"));
    let (lower, upper) = (number(&view, "epsilon_lower"), number(&view, "epsilon_upper"));
    assert!(lower >= 93.4 && upper <= 94.4 && lower <= upper, "{lower} to {upper}");
    assert_eq!((&view["draw"], number(&view, "elements_per_user")), (&Value::from("user"), 30.0));
    let rungs = view["rungs"].as_array().expect("a list");
    assert_eq!(rungs.iter().map(|rung| &rung["unit"]).collect::<Vec<_>>(), ["element", "user"]);
    assert!(rungs.iter().all(|rung| rung["change"] == "replace"));
    assert!(number(&rungs[1], "epsilon_upper") > number(&rungs[0], "epsilon_lower"), "a coarser rung never costs less");
}

/// Both accountants read `--noise` as the noise over the clip norm, and know that a replacement moves the sum by two.
#[test]
fn two_accountants_read_the_noise_in_one_way() {
    for noise in ["1", "3", "10"] {
        let ask = |accountant: &str, change: &str| {
            let line =
                format!("account epsilon --noise {noise} --delta 1e-5 --change {change} --accountant {accountant}");
            number(&json(&line), "epsilon_upper")
        };
        let (pld, rdp) = (ask("pld", "replace"), ask("rdp", "replace"));
        assert!(rdp >= pld * 0.999 && rdp < pld * 1.25, "noise {noise}: pld {pld}, rdp {rdp}");
        let (pld, rdp) = (pld / ask("pld", "add-remove"), rdp / ask("rdp", "add-remove"));
        assert!(
            pld > 1.8 && (rdp / pld - 1.0).abs() < 0.1,
            "noise {noise}: replacing costs {pld} and {rdp} times as much"
        );
    }
}

#[test]
fn noise_that_was_looked_for_keeps_the_promise_and_little_less_would_not() {
    let view = json("account noise --epsilon 3 --delta 1e-5 --rate 0.01 --steps 4000 --change replace --draw unit");
    let noise = number(&view, "noise");
    assert_eq!((&view["found"], number(&view, "epsilon_target")), (&Value::from("noise"), 3.0));
    let ask = |noise: f64| json(&format!("account epsilon --noise {noise} --rate 0.01 --steps 4000 --delta 1e-5"));
    assert!(number(&ask(noise), "epsilon_upper") <= 3.0);
    assert!(number(&ask(noise * 0.98), "epsilon_upper") > 3.0);
}

#[test]
fn steps_and_rate_that_were_looked_for_keep_the_promise() {
    let view = json("account steps --epsilon 2 --delta 1e-5 --noise 2 --rate 0.01");
    let steps = number(&view, "steps");
    assert!(steps >= 1.0 && steps.fract() == 0.0 && number(&view, "epsilon_upper") <= 2.0);
    let too_many = (steps * 1.05) as u64 + 1;
    let more = json(&format!("account epsilon --noise 2 --rate 0.01 --delta 1e-5 --steps {too_many}"));
    assert!(number(&more, "epsilon_upper") > 2.0, "five per cent more steps are too many");
    let view = json("account rate --epsilon 2 --delta 1e-5 --noise 2 --steps 1000");
    assert!((0.0..1.0).contains(&number(&view, "rate")) && number(&view, "epsilon_upper") <= 2.0);
}

#[test]
fn where_a_search_ends_is_no_most() {
    let question = "--epsilon 1 --delta 1e-5 --noise 1e18";
    let words = stdout(&format!("account steps {question} --rate 0.01"));
    assert!(words.starts_with("more than 1000000000000 steps, where the search ends, for ε = 1"), "{words}");
    assert_eq!(json(&format!("account steps {question}"))["is_end"], true);
    let words = stdout(&format!("account rate {question} --steps 1000"));
    assert!(words.starts_with("rate 1, so that all may be drawn in every step, for ε = 1"), "{words}");
    let view = json("account steps --epsilon 2 --delta 1e-5 --noise 2 --rate 0.01");
    assert_eq!(view["is_end"], Value::Null, "{view}");
    let (code, said) = complaint("account rate --epsilon 1 --delta 1e-300 --noise 1");
    assert!(code == Some(2) && said.contains("no rate keeps ε at 1 and δ at 1e-300: even a rate of 1.0e-12"), "{said}");
}

/// Two lattices may differ in the fourth digit of ε; the noise that is printed is the one that was priced.
#[test]
fn what_was_looked_for_is_priced_as_it_is_printed() {
    let run = "--delta 1e-5 --rate 0.02 --steps 300";
    let found = json(&format!("account noise --epsilon 1.5 {run}"));
    let (noise, spent) = (number(&found, "noise"), number(&found, "epsilon_upper"));
    let printed = stdout(&format!("account noise --epsilon 1.5 {run}"));
    assert!(printed.starts_with(&format!("noise {noise} clip norms")), "{printed}");
    assert_eq!(number(&json(&format!("account epsilon --noise {noise} {run}")), "epsilon_upper"), spent);
    assert!(spent <= 1.5);
}

#[test]
fn a_user_has_one_price_at_rate_one_whatever_is_drawn() {
    let user = |line: &str| {
        number(&json(&format!("account epsilon --noise 30 --delta 1e-5 {line}"))["rungs"][1], "epsilon_upper")
    };
    let both =
        ["--draw unit", "--draw user"].map(|draw| user(&format!("{draw} --elements-per-user 30 --difference 0.1")));
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0], user("--draw unit --elements-per-user 30"), "a difference of one unit says nothing of a user");
}

#[test]
fn very_many_elements_are_read_exactly_and_priced() {
    let view = json("account epsilon --noise 1 --rate 0.01 --delta 1e-5 --draw user --elements-per-user 1e18");
    assert_eq!(view["elements_per_user"].as_u64(), Some(1_000_000_000_000_000_000));
    assert!((7.581_279_924_57..7.581_280).contains(&number(&view, "epsilon_upper")), "{view}");
}

/// Where PLD's lattice would take more time and memory than a question may, somebody else's bound is named.
#[test]
fn a_bound_of_another_accountant_is_told_as_such() {
    let line = "account epsilon --noise 1 --rate 1e-9 --steps 1e18 --delta 1e-6";
    let view = json(line);
    assert_eq!((&view["accountant"], &view["upper_by"]), (&Value::from("pld"), &Value::from("rdp")), "{view}");
    let rdp = json(&format!("{line} --accountant rdp"));
    assert_eq!(number(&rdp, "epsilon_upper"), number(&view, "epsilon_upper"));
    assert!(stdout(line).contains("(pld; the upper bound is rdp's)"));
    assert!(stdout(&line.replace("epsilon", "compare")).contains("the upper bound is rdp's"));
    let plain = json("account epsilon --noise 4 --rate 0.01 --steps 100 --delta 1e-5");
    assert!(plain.get("upper_by").is_none(), "{plain}");
}

#[test]
fn delta_and_epsilon_are_two_sides_of_one_curve() {
    let run = "--noise 2 --rate 0.05 --steps 100";
    let epsilon = number(&json(&format!("account epsilon {run} --delta 1e-5")), "epsilon_upper");
    let view = json(&format!("account delta {run} --epsilon {epsilon}"));
    let (upper, lower) = (number(&view, "delta_upper"), number(&view, "delta_lower"));
    assert!(upper <= 1.02e-5 && lower > 0.5e-5 && lower <= upper, "{lower} to {upper}");
    assert_eq!(number(&view, "epsilon_upper"), epsilon);
}

#[test]
fn compare_shows_every_accountant_and_never_calls_an_approximation_a_bound() {
    let line = "account compare --noise 4 --rate 0.01 --steps 4000 --delta 1e-5";
    let view = json(line);
    let rows = view["accountants"].as_array().expect("a list");
    let names: Vec<_> = rows.iter().map(|row| row["accountant"].as_str().expect("a name")).collect();
    assert_eq!(names, ["pld", "rdp", "gdp", "zcdp", "advanced", "basic"]);
    let lower = number(&rows[0], "epsilon_lower");
    for row in rows {
        match (row["epsilon_upper"].as_f64(), row["unsupported"].as_str()) {
            (Some(upper), None) => assert!(upper >= lower, "{row}"),
            (None, why) => {
                assert!(row["epsilon_upper"] == "Infinity" || why.is_some_and(|why| why.len() > 20), "{row}");
            }
            (Some(_), Some(_)) => panic!("an answer and none: {row}"),
        }
        if let Some(what) = row["approximation"].as_str() {
            assert_eq!((what, &row["accountant"]), ("central limit theorem, not a bound", &Value::from("gdp")));
        }
    }
    assert!(rows[2]["epsilon_approximate"].is_f64());
    let table = stdout(line);
    for name in names {
        assert!(table.lines().any(|line| line.starts_with(name)), "{name} is not in\n{table}");
    }
    assert!(table.lines().any(|line| line.contains('≈') && line.contains("not a bound")), "{table}");
}

#[test]
fn explain_says_in_numbers_and_words_what_an_adversary_gains() {
    let view = json("account explain --epsilon 1 --delta 1e-6 --prior 0.01,0.5");
    assert!((number(&view, "odds_factor") - std::f64::consts::E).abs() < 1e-12);
    assert!((number(&view, "best_guess") - 0.731_059).abs() < 1e-5);
    let beliefs = view["beliefs"].as_array().expect("a list");
    assert_eq!(beliefs.len(), 2);
    let odds = 1.1 * std::f64::consts::E;
    assert!((number(&beliefs[1], "high") - odds / (1.0 + odds)).abs() < 1e-12);
    assert!((number(&beliefs[1], "except_with_probability") - 1.1e-5).abs() < 1e-15);
    assert!(view["trade_off"].as_array().is_some_and(|rows| rows.len() > 4));
    let words = stdout("account explain --epsilon 1 --delta 1e-6");
    for part in ["odds", "2.7183", "false alarms", "misses at least", "73.11 %"] {
        assert!(words.contains(part), "`{part}` is not in\n{words}");
    }
}

#[test]
fn explain_draws_the_trade_off_of_a_promise_and_of_a_run() {
    let folder = folder("explain");
    let promise = folder.join("promise.svg");
    stdout(&format!("account explain --epsilon 1 --delta 1e-6 --plot {}", promise.display()));
    let picture = std::fs::read_to_string(promise).expect("the picture was written");
    assert_well_formed(&picture);
    assert_eq!(picture.matches("class=\"curve\"").count(), 2);
    let png = folder.join("promise.png");
    stdout(&format!("account explain --epsilon 1 --delta 1e-6 --plot {}", png.display()));
    assert!(
        std::fs::read(png).expect("the picture was written").starts_with(b"\x89PNG"),
        "the ending says how it is drawn"
    );
    let model = folder.join("model.safetensors");
    std::fs::write(&model, "a model").expect("our own folder");
    let (code, said) = complaint(&format!("account explain --epsilon 1 --delta 1e-6 --plot {}", model.display()));
    assert!(code == Some(2) && said.contains(".svg, .png or .html"), "{said}");
    assert_eq!(std::fs::read_to_string(model).expect("it is still there"), "a model");
    let run = folder.join("run.svg");
    let line = format!("account explain --noise 2 --steps 4 --delta 1e-6 --plot {}", run.display());
    let view = json(&line);
    assert_eq!(std::fs::read_to_string(run).expect("the picture was written").matches("class=\"curve\"").count(), 3);
    for row in view["trade_off"].as_array().expect("a list") {
        let (promised, own) =
            (number(row, "false_negatives_at_least"), number(row, "false_negatives_of_the_run_at_least"));
        assert!(own >= promised - 1e-12, "the run keeps its own promise: {row}");
    }
}

/// What describes a run is used where there is one, and refused where there is none: nobody is to believe that a promise was explained for a rate.
#[test]
fn explain_ignores_no_option() {
    let run = "account explain --noise 2 --delta 1e-6";
    let all = number(&json(run), "epsilon_upper");
    assert!(number(&json(&format!("{run} --rate 0.1")), "epsilon_upper") < all, "fewer are drawn");
    assert!(number(&json(&format!("{run} --steps 4")), "epsilon_upper") > all, "more is said");
    let view = json(&format!("{run} --elements-per-user 3"));
    assert_eq!(number(&view, "epsilon_upper"), all, "what is explained is the unit");
    let rungs = view["rungs"].as_array().expect("a list");
    assert_eq!(rungs.iter().map(|rung| &rung["unit"]).collect::<Vec<_>>(), ["element", "user"]);
    assert!(number(&rungs[1], "epsilon_upper") > all, "{view}");
    let words = stdout(&format!("{run} --elements-per-user 3"));
    assert!(words.contains("protects one") && words.lines().any(|line| line.starts_with("user ")), "{words}");
    for option in [
        "--rate 0.1",
        "--steps 4",
        "--elements-per-user 3",
        "--change replace",
        "--draw unit",
        "--sampling poisson",
        "--difference 1",
        "--accountant rdp",
    ] {
        let (code, said) = complaint(&format!("account explain --epsilon 1 --delta 1e-6 {option}"));
        let name = option.split(' ').next().unwrap_or_default();
        assert!(code == Some(2) && said.contains("--epsilon") && said.contains(name), "{option}: {said}");
    }
}

#[test]
fn a_wrong_question_gets_a_sentence_with_option_value_and_range() {
    let run = "--rate 0.1 --steps 10";
    let cases = [
        (
            format!("account epsilon --noise 0 --delta 1e-5 {run}"),
            "--noise is 0, but it must be a number greater than 0",
        ),
        (
            format!("account epsilon --noise -1 --delta 1e-5 {run}"),
            "--noise is -1, but it must be a number greater than 0",
        ),
        (format!("account epsilon --noise NaN --delta 1e-5 {run}"), "--noise is NaN, but"),
        (
            "account epsilon --noise 1 --delta 1e-5 --rate 1.5".into(),
            "--rate is 1.5, but it must be a number from 0 to 1",
        ),
        (
            "account epsilon --noise 1 --delta 1e-5 --rate -0.1".into(),
            "--rate is -0.1, but it must be a number from 0 to 1",
        ),
        (
            format!("account epsilon --noise 1 --delta 0 {run}"),
            "--delta is 0, but it must be a number greater than 0 and less than 1",
        ),
        (format!("account epsilon --noise 1 --delta 1 {run}"), "--delta is 1, but"),
        (
            "account epsilon --noise 1 --delta 1e-5 --steps 0".into(),
            "--steps is 0, but it must be a whole number, at least 1",
        ),
        (
            format!("account noise --epsilon -1 --delta 1e-5 {run}"),
            "--epsilon is -1, but it must be a number that is at least 0",
        ),
        (format!("account delta --noise 1 --epsilon nan {run}"), "--epsilon is nan, but"),
        (
            "account epsilon --noise 1 --delta 1e-5 --difference 3".into(),
            "--difference is 3, but it must be a number greater than 0 and at most 2",
        ),
        (
            "account epsilon --noise 1 --delta 1e-5 --difference 1 --change add-remove".into(),
            "--difference is 1, but it must be left out unless --change is replace",
        ),
        (
            "account epsilon --noise 1 --delta 1e-5 --draw user".into(),
            "--draw is user, but --elements-per-user is missing",
        ),
        ("account epsilon --noise 1 --delta 1e-5 --elements-per-user 0".into(), "--elements-per-user is 0, but"),
        (
            "account explain --epsilon 1 --delta 1.5".into(),
            "--delta is 1.5, but it must be a number that is at least 0",
        ),
        ("account explain --noise 1 --delta 0".into(), "--delta is 0, but it must be a number greater than 0"),
        ("account explain --epsilon 1 --delta 0 --prior 0.5,1".into(), "--prior is 1, but it must be probabilities"),
        (
            "account steps --epsilon 0.001 --delta 1e-9 --noise 0.3".into(),
            "--epsilon is 0.001, but no number of steps keeps",
        ),
        (
            "account noise --epsilon 1 --delta 1e-9 --rate 0".into(),
            "--rate is 0, but it must be greater than 0 for this question",
        ),
        ("demo --epsilon 0".into(), "--epsilon is 0, but it must be a number from 0.01 to 100"),
    ];
    for (line, sentence) in cases {
        let (code, said) = complaint(&line);
        assert_eq!(code, Some(2), "`whit {line}` said {said}");
        assert!(said.starts_with(&format!("error: {sentence}")), "`whit {line}` said {said}");
        assert!(said.contains("\n  hint: "), "`whit {line}` has no hint: {said}");
    }
}

#[test]
fn words_that_are_no_options_are_answered_with_those_that_are() {
    let (code, said) = complaint("account epsilon --noise 1 --delta 1e-5 --change swap");
    assert!(code == Some(2) && said.contains("--change") && said.contains("add-remove, replace"), "{said}");
    let (code, said) = complaint("acount");
    assert!(code == Some(2) && said.contains("account"), "{said}");
    let (code, said) = complaint("account epsilon --noise 1");
    assert!(code == Some(2) && said.contains("--delta"), "{said}");
    assert_eq!(complaint("account").0, Some(2));
    assert_eq!(complaint("account explain --delta 1e-6").0, Some(2));
}

#[test]
fn a_run_that_no_accountant_can_price_is_a_wrong_question_and_a_rung_that_none_can_has_a_reason() {
    let view = json("account epsilon --noise 2 --rate 0.1 --sampling fixed --delta 1e-5 --elements-per-user 3");
    assert!(number(&view, "epsilon_upper") > 0.0);
    assert!(view["rungs"][1]["epsilon_upper"].is_null());
    assert!(view["rungs"][1]["unsupported"].as_str().is_some_and(|why| why.len() > 20));
}

#[test]
fn no_protection_is_told_as_infinity_and_nothing_read_as_zero() {
    let nothing = json("account epsilon --noise 1 --rate 0 --delta 1e-5");
    assert_eq!(number(&nothing, "epsilon_upper"), 0.0);
    let view = json("account explain --epsilon 1000 --delta 0");
    assert_eq!(view["odds_factor"], "Infinity");
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout(&format!("completions {shell}")).contains("whit"), "{shell}");
    }
    assert!(stdout("man").contains(".TH whit 1"));
    let folder = folder("man");
    stdout(&format!("man --dir {}", folder.display()));
    for page in ["whit.1", "whit-account.1", "whit-account-epsilon.1", "whit-demo.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
}

#[test]
fn the_demo_walks_the_whole_road_and_leaves_a_report_a_picture_and_a_sound_ledger() {
    let folder = folder("demo");
    let line = format!("demo --out {}", folder.display());
    let story = stdout(&line);
    let words =
        ["whit.toml", "$ whit preview", "$ whit ledger verify", "as it was written", "nothing was charged", "hint: "];
    for part in words {
        assert!(story.contains(part), "`{part}` is not in\n{story}");
    }
    let view = json(&line);
    let levels = view["levels"].as_array().expect("a list");
    let units: Vec<_> = levels.iter().map(|level| level["unit"].as_str().expect("a name")).collect();
    assert_eq!(units, ["event", "element", "user"]);
    for table in ["counts", "hitters"] {
        let errors: Vec<_> = levels.iter().map(|level| number(&level[table], "within")).collect();
        assert!(errors.is_sorted_by(|a, b| a < b), "what protects more is less exact: {table} {errors:?}");
        let true_errors: Vec<_> = levels.iter().map(|level| number(&level[table], "mean_error")).collect();
        assert!(true_errors.iter().all(|error| error.is_finite() && *error > 0.0), "{table} {true_errors:?}");
    }
    for (level, releases) in levels.iter().zip([2, 3, 3]) {
        let prices = level["prices"].as_array().expect("a list");
        let prices: Vec<_> = prices.iter().map(|price| number(price, "epsilon")).collect();
        assert!((prices[0] - 1.0).abs() < 1e-3, "the protected unit loses what was asked for: {prices:?}");
        assert!(prices.is_sorted(), "a coarser rung never costs less: {prices:?}");
        assert_eq!((&level["ledger_is_sound"], &level["releases"]), (&true.into(), &releases.into()));
    }
    assert_eq!(
        (&view["again_was_free"], view["refusal"].as_str().is_some_and(|why| why.len() > 20)),
        (&true.into(), true)
    );

    let picture = std::fs::read_to_string(folder.join("demo.svg")).expect("the picture was written");
    assert_well_formed(&picture);
    assert_eq!(picture.matches("class=\"error-bar\"").count(), 3 * 12);
    let report = std::fs::read_to_string(folder.join("demo/report.html")).expect("the report was written");
    assert!(
        report.starts_with("<!doctype html>") && report.matches("<svg").count() >= 4,
        "three pictures and an answer's"
    );
    let ledger = json(&format!("ledger verify --ledger {}", folder.join("demo/whit.ledger").display()));
    assert_eq!((&ledger["sound"], &ledger["entries"]), (&true.into(), &3.into()));
}

/// What is known of a ledger outside of its file makes a second one in its place an error, and the demonstration makes one each time.
#[test]
fn a_demonstration_is_run_again_and_replaces_nothing_that_is_none() {
    let folder = folder("demo-again");
    std::fs::create_dir_all(&folder).unwrap();
    let state = folder.join("state");
    let demo = |out: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_whit"));
        command.args(["demo", "--json", "--out"]).arg(folder.join(out)).env("WHIT_STATE", &state);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for lap in 0..3 {
        let (code, talk) = demo("own");
        assert_eq!(code, Some(0), "{talk}");
        if lap == 1 {
            std::fs::remove_dir_all(folder.join("own")).unwrap(); // and yet known of
        }
    }
    let others = folder.join("others/demo");
    std::fs::create_dir_all(&others).unwrap();
    for name in ["whit.ledger", "event.ledger", "user.toml", "areas.csv", "report.html"] {
        std::fs::write(others.join(name), "somebody's own").unwrap();
        let (code, talk) = demo("others");
        assert!(code == Some(2) && talk.contains("is of no demonstration") && talk.contains(name), "{name}: {talk}");
        assert_eq!(std::fs::read_dir(&others).unwrap().count(), 1, "{name}: nothing was written");
        std::fs::remove_file(others.join(name)).unwrap();
    }
}

/// No user has more areas than count fully, so each of 852 counts of users is off by more than its error bar with probability at
/// most 5 %: more than 90 are less than once in 10⁹ runs (Chernoff). Noise of twice the stated scale would leave 279 of them
/// in the mean, and be caught.
#[test]
fn the_demos_error_bars_hold() {
    let view = json(&format!("demo --epsilon 0.5 --out {}", folder("demo-errors").display()));
    let levels = view["levels"].as_array().expect("a list").iter();
    let rows: Vec<&Value> = levels.flat_map(|level| level["hitters"]["rows"].as_array().expect("a list")).collect();
    let outside = |row: &&&Value| !(number(row, "low")..=number(row, "high")).contains(&number(row, "exact"));
    let outside = rows.iter().filter(outside).count();
    assert_eq!(rows.len(), 3 * 284);
    assert!((1..=90).contains(&outside), "{outside} of {} counts are off by more than they say", rows.len());
}

/// Every element is closed in the order in which it was opened, and nothing follows the root.
fn assert_well_formed(svg: &str) {
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(!text.contains('&') || text.contains(';'), "a bare ampersand in {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a name"));
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "an open quotation mark in {tag}");
    }
    assert!(open.is_empty(), "still open: {open:?}");
}
