//! The best of several trainings, at its true price.

use super::{DECLARED, TRAINING, entries, json, refused, room, whit};

const AMONG: &str = "among = [{ optimiser = { size = 2.0 } }, { optimiser = { size = 1e-4 } }, { model = { name = \"perceptron\", hidden = [4] }, privacy = { clip = 0.5 } }]";

fn choosing(more: &str) -> String {
    format!("{TRAINING}\n[choose]\nruns = 3.0\nnoise = 40.0\n{more}\n{AMONG}\n")
}

#[test]
fn the_best_of_several_trainings_is_chosen_at_the_price_of_a_choice() {
    let folder = room("choose", &choosing(""));
    let foreseen = json(&folder, &["train", "train.toml", "--preview"]);
    let card = &foreseen["card"];
    let epsilon = card["rungs"][0]["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.97, "all of it is what was asked for: {card}");
    assert!(card["rungs"][1]["epsilon"].as_f64().unwrap() > epsilon, "{card}");
    assert!(card["accountant"].as_str().unwrap().contains("rdp"), "{card}");
    // One training of the same ε needs less noise: the others are paid for.
    let alone = json(&room("choose_alone", TRAINING), &["train", "train.toml", "--preview"]);
    let noise = |card: &serde_json::Value| card["noise"].as_f64().unwrap();
    assert!(noise(card) > 1.3 * noise(&alone["card"]), "{card}");
    assert!(!folder.join("whit.ledger").exists());

    let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 2 && talk.contains("how long a choice takes") && talk.contains("--owner"), "{talk}");
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--owner", "--plot", "curve.svg"]);
    assert!(code == 2 && talk.contains("would tell how many trainings there were"), "{talk}");
    assert_eq!(entries(&folder), 0);

    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    let said = trained["card"]["choice"].as_str().unwrap();
    assert!(said.contains(" of 3, the best of a random number of trainings (logarithmic, 3.000 on average)"), "{said}");
    assert_eq!(trained["card"]["rungs"], card["rungs"]);
    assert!(std::fs::read_to_string(folder.join("model.card.txt")).unwrap().contains("choice "));
    assert_eq!(entries(&folder), 1, "the choice is one release");
    // The same again is free, also by somebody who may not see the clock, and whichever candidate it was can be tried.
    assert_eq!(json(&folder, &["train", "train.toml", "--owner"])["stored"], true);
    assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], true);
    assert_eq!(json(&folder, &["evaluate", "train.toml", "--owner"])["rows"], 800);
    assert_eq!(whit(&folder, &["predict", "model.safetensors", "--owner", "--csv", "predicted.csv"]).0, 0);
    assert_eq!((entries(&folder), whit(&folder, &["ledger", "verify"]).0), (1, 0));
    // More trainings are another choice, and so is another noise of the score.
    std::fs::write(folder.join("train.toml"), choosing("law = \"geometric\"")).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], false);
}

#[test]
fn a_choice_that_cannot_be_is_refused_before_anything_is_charged() {
    let with = |old: &str, new: &str| {
        let training = choosing("");
        assert!(training.contains(old), "{old}");
        training.replace(old, new)
    };
    let said = |name: &str, training: &str, code: i32, words: &[&str]| {
        let folder = room(name, training);
        let (got, out, talk) = whit(&folder, &["train", "train.toml", "--owner"]);
        assert_eq!((got, out.as_str()), (code, ""), "{name}: {talk}");
        assert!(words.iter().all(|word| talk.contains(word)), "{name}: {talk}");
        assert_eq!(entries(&folder), 0, "{name}");
    };
    said("choose_few", &with("runs = 3.0", "runs = 1.0"), 2, &["choose.runs is 1", "more than 1 training"]);
    said("choose_rows", &with("evaluate_where = \"split = 'test'\"\n", ""), 2, &["no rows to choose by"]);
    said("choose_none", &with(AMONG, "among = []"), 2, &["choose.among is empty"]);
    let other = with(AMONG, "among = [{ features = [\"x\"] }]");
    said("choose_features", &other, 2, &["`features` cannot differ among candidates", "1. candidate"]);
    let other = with(AMONG, "among = [{ privacy = { units = 7 } }]");
    said("choose_units", &other, 2, &["`privacy.units` cannot differ"]);
    let other = with(AMONG, "among = [{ optimiser = { sise = 7 } }]");
    said("choose_typo", &other, 2, &["unknown field `sise`", "did you mean `size`?"]);
    said("choose_limit", &with("noise = 40.0", "noise = 40.0\nlimit = 2.0"), 2, &["choose.limit is for numbers"]);
    said("choose_silent", &with("noise = 40.0", "noise = 0.0"), 2, &["choose.noise or choose.limit cannot be"]);
    said("choose_loud", &with("noise = 40.0", "noise = 0.5"), 2, &["the scores alone cost more"]);
    said("choose_seed", &with("[output]", "[output]\nseed = 3"), 2, &["output.seed makes it come again"]);
    said(
        "choose_projected",
        &with("[privacy]", "[projection]\ncomponents = 1\nradius = 1.5\nnoise = 10.0\n[privacy]"),
        2,
        &["`projection` is another"],
    );
    let tight = DECLARED.replace("epsilon = 3.0", "epsilon = 0.3");
    let folder = room("choose_tight", &choosing(""));
    std::fs::write(folder.join("whit.toml"), &tight).unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--owner"]);
    assert!(code == 3 && talk.contains("nothing was charged"), "{talk}");
    assert_eq!(entries(&folder), 0);
    // A currency that does not know divergences cannot price it.
    let plain = DECLARED.replace(", currency = \"renyi\"", "");
    let folder = room("choose_currency", &choosing(""));
    std::fs::write(folder.join("whit.toml"), &plain).unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--owner"]);
    assert!(code != 0 && talk.contains("the best of several runs") && talk.contains("renyi"), "{talk}");
    assert_eq!(entries(&folder), 0);
    refused("choose_unowned", &choosing(""), DECLARED, 2, &["--owner"]);
}

#[test]
fn numbers_are_chosen_by_how_far_they_are_off() {
    let training = choosing("limit = 1.0").replace("classes = 2\n", "loss = \"squared\"\n");
    let folder = room("choose_numbers", &training);
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    assert!(trained["card"]["choice"].is_string() && trained["private"]["loss"].is_number(), "{trained}");
}
