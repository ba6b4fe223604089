//! What a model is worth: for the owner of the rows, and with noise for everybody.

use super::{DECLARED, TRAINING, entries, json, refused, room, whit};

#[test]
fn classes_are_measured_for_the_owner() {
    let folder = room("measured", TRAINING);
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    let (code, table, talk) = whit(&folder, &["evaluate", "train.toml", "--owner", "--plot", "reliability.svg"]);
    assert_eq!(code, 0, "{talk}");
    for word in ["accuracy", "F1", "AUC", "calibration error", "is, predicted as", "precision", "recall", "sure by"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let drawn = std::fs::read_to_string(folder.join("reliability.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("not sanitised"), "{drawn}");
    let found = json(&folder, &["evaluate", "train.toml", "--owner"]);
    let count = |class: usize, taken: usize| found["confusion"][class][taken].as_u64().unwrap();
    let (right, all) = (count(0, 0) + count(1, 1), count(0, 0) + count(0, 1) + count(1, 0) + count(1, 1));
    assert_eq!((all, &found["rows"]), (800, &800.into()));
    assert!((found["accuracy"].as_f64().unwrap() - right as f64 / 800.0).abs() < 1e-9, "{found}");
    let f1 = 2.0 * count(1, 1) as f64 / (2 * count(1, 1) + count(0, 1) + count(1, 0)) as f64;
    assert!((found["f1"].as_f64().unwrap() - f1).abs() < 1e-9, "{found}");
    assert!(found["auc"].as_f64().unwrap() > 0.9 && found["calibration_error"].as_f64().unwrap() < 0.5, "{found}");
    let rows: u64 = found["reliability"].as_array().unwrap().iter().map(|range| range["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, 800);
    // A number has no classes.
    let folder = room("measured-number", &TRAINING.replace("classes = 2\n", ""));
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    assert!(json(&folder, &["evaluate", "train.toml", "--owner"])["confusion"].is_null());
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--epsilon", "0.5"]);
    assert!(code == 2 && talk.contains("a number is predicted"), "{talk}");
}

#[test]
fn predictions_carry_ids_and_all_probabilities() {
    let folder = room("ids", &TRAINING.replace("classes = 2", "classes = [\"less\", \"more\"]"));
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    let chosen = ["predict", "model.safetensors", "--where", "split = 'test'"];
    let ids = ["--owner", "--id", "USER", "--id", "topic", "--probabilities"];
    let (code, _, talk) = whit(&folder, &[&chosen[..], &ids, &["--csv", "said.csv"]].concat());
    assert_eq!(code, 0, "{talk}");
    let said = std::fs::read_to_string(folder.join("said.csv")).unwrap();
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("row,user,topic,predicted,probability,p(less),p(more)"));
    let first: Vec<&str> = lines.next().unwrap().split(',').collect();
    let number = |at: usize| first[at].parse::<f64>().unwrap();
    assert_eq!((first[0], first[1], first[2]), ("1", "u0", "t0"), "{first:?}");
    assert!((number(5) + number(6) - 1.0).abs() < 1e-9 && (number(4) - number(5).max(number(6))).abs() < 1e-12);
    let rows = json(&folder, &[&chosen[..], &ids].concat());
    assert_eq!(rows[1]["carried"]["user"], "u5");
    assert!(rows[1]["probabilities"]["more"].is_number());
    // Still the owner's, and nothing more than asked for.
    assert_eq!(whit(&folder, &[&chosen[..], &["--id", "user"]].concat()).0, 2);
    assert!(json(&folder, &[&chosen[..], &["--owner"]].concat())[0].get("carried").is_none());
    let (code, _, talk) = whit(&folder, &[&chosen[..], &["--owner", "--id", "usr"]].concat());
    assert!(code == 2 && talk.contains("no column `usr`") && talk.contains("did you mean `user`?"), "{talk}");
}

/// The loss of a class counts three times before units are clipped: the promise stays, and the model takes more rows for that class.
#[test]
fn classes_have_weights_that_change_no_promise() {
    let taken = |name: &str, weights: &str| {
        let folder = room(name, &TRAINING.replace("classes = 2", &format!("classes = 2\n{weights}")));
        let rungs = json(&folder, &["train", "train.toml"])["card"]["rungs"].clone();
        let found = json(&folder, &["evaluate", "train.toml", "--owner"]);
        let count = |class: usize| found["confusion"][class][1].as_u64().unwrap();
        (rungs, count(0) + count(1))
    };
    let (plain, half) = taken("weights-none", "");
    let (rungs, more) = taken("weights-more", "weights = { 1 = 20.0, 0 = 1.0 }");
    assert_eq!(rungs, plain);
    assert!(more > half + 40, "{half} and {more}");
    let with = |weights: &str| TRAINING.replace("classes = 2", &format!("classes = 2\nweights = {weights}"));
    refused(
        "weights-balanced",
        &with("\"balanced\""),
        DECLARED,
        2,
        &["counting rows, which are private", "weights = { yes"],
    );
    refused("weights-odd", &with("{ 2 = 1.0 }"), DECLARED, 2, &["`weights` names `2`, which is no class"]);
    refused("weights-zero", &with("{ 1 = 0 }"), DECLARED, 2, &["between 0.001 and 1000"]);
    refused("weights-text", &with("3"), DECLARED, 2, &["weights are a number for each class"]);
}

#[test]
fn a_confusion_matrix_is_released_with_noise_and_paid_for_once() {
    let folder = room("judged", TRAINING);
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    let asked = ["evaluate", "train.toml", "--epsilon", "1"];
    let found = json(&folder, &asked);
    assert_eq!((&found["stored"], &found["entry"], entries(&folder)), (&false.into(), &2.into(), 2), "{found}");
    assert_eq!((&found["epsilon"], &found["delta"], &found["rows_per_unit"]), (&1.0.into(), &1e-6.into(), &3.into()));
    assert_eq!(found["unit"], "element (user, topic), replace");
    let exact = json(&folder, &["evaluate", "train.toml", "--owner"]);
    // Four cells, each off by more than eight deviations once in 10¹⁴ times; every user has two test rows, in one topic each, so that no cap cuts.
    let within = found["within"].as_f64().unwrap() * 4.0;
    for (class, taken) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let [noisy, plain] = [&found, &exact].map(|found| found["confusion"][class][taken].as_f64().unwrap());
        assert!((noisy - plain).abs() < within, "{class} {taken}: {noisy} and {plain}");
    }
    assert_ne!(found["confusion"], exact["confusion"], "four cells without noise: once in a thousand times or less");
    let [low, high] = ["low", "high"].map(|end| found["accuracy"][end].as_f64().unwrap());
    assert!(0.0 <= low && low < high && high <= 1.0, "{found}");
    // The same again is the same, and free; another ε is another release.
    let again = json(&folder, &asked);
    assert_eq!((&again["stored"], &again["confusion"], entries(&folder)), (&true.into(), &found["confusion"], 2));
    let (code, table, _) = whit(&folder, &asked);
    assert!(code == 0 && table.contains("nothing was charged") && table.contains("accuracy on these rows"), "{table}");
    let (code, out, talk) = whit(&folder, &["evaluate", "train.toml", "--epsilon", "4"]);
    assert!(code == 3 && out.is_empty() && talk.contains("of the budget is left"), "{talk}");
    assert_eq!(entries(&folder), 2);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--epsilon", "1", "--owner"]);
    assert!(code == 2 && talk.contains("cannot be used with"), "{talk}");
}

/// No rows, rows that do not fit, and many rows are told the same before the charge, and none makes the release fail.
#[test]
fn what_a_release_of_quality_asks_for_follows_from_what_is_declared() {
    let folder = room("judged-rows", TRAINING);
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    std::fs::write(folder.join("visits.csv"), "user,topic,x,z,y,word,split\nu1,t1,much,,9,,test\n").unwrap();
    let (code, table, talk) = whit(&folder, &["evaluate", "train.toml", "--epsilon", "0.5"]);
    assert!(code == 0 && table.contains("is, predicted as"), "{table}{talk}");
    let uncapped = DECLARED.replace(", rows_per_element = 3", "");
    std::fs::write(folder.join("whit.toml"), uncapped).unwrap();
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--epsilon", "0.5"]);
    assert!(code == 2 && talk.contains("may have any number of rows") && talk.contains("unit.caps"), "{talk}");
    let nothing = room("judged-nothing", &TRAINING.replace("evaluate_where = \"split = 'test'\"\n", ""));
    assert_eq!(whit(&nothing, &["train", "train.toml"]).0, 0);
    let (code, _, talk) = whit(&nothing, &["evaluate", "train.toml", "--epsilon", "0.5"]);
    assert!(code == 2 && talk.contains("no rows are set aside") && talk.contains("split = {"), "{talk}");
    assert_eq!(entries(&nothing), 1);
}
