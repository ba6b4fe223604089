//! Where models start, what of them is learned, how they are written, and what the owner alone is told of clipping.

use super::{DECLARED, TRAINING, entries, json, refused, room, whit};
use serde_json::Value;
use std::path::Path;

const PERCEPTRON: &str = "[model]\nname = \"perceptron\"\nhidden = [4]\n";

fn with_model(more: &str) -> String {
    TRAINING.replace("[optimiser]", &format!("{PERCEPTRON}{more}\n[optimiser]"))
}

/// The tensors of a file of safetensors: name, sides and numbers.
fn tensors(file: &Path) -> Vec<(String, Vec<u64>, Vec<f32>)> {
    let bytes = std::fs::read(file).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let Value::Object(header) = serde_json::from_slice(header).unwrap() else { panic!("no header") };
    let mut found: Vec<_> = header.into_iter().filter(|(name, _)| name != "__metadata__").collect();
    found.sort_by_key(|(_, tensor)| tensor["data_offsets"][0].as_u64());
    let read = |(name, tensor): (String, Value)| {
        let whole = |value: &Value| value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>();
        let place = whole(&tensor["data_offsets"]);
        let numbers = data[place[0] as usize..place[1] as usize].as_chunks::<4>().0;
        (name, whole(&tensor["shape"]), numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    found.into_iter().map(read).collect()
}

/// A file of safetensors with these tensors.
fn write(file: &Path, tensors: &[(&str, &[u64], Vec<f32>)]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, sides, numbers) in tensors {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let tensor = serde_json::json!({ "dtype": "F32", "shape": sides, "data_offsets": [start, data.len()] });
        header.insert((*name).to_owned(), tensor);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(file, [&length[..], header.as_bytes(), &data].concat()).unwrap();
}

fn base(file: &Path) {
    let numbers = |many: usize| (0..many).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<f32>>();
    write(
        file,
        &[
            ("0.weight", &[4, 2], numbers(8)),
            ("0.bias", &[4], numbers(4)),
            ("2.weight", &[1, 4], numbers(4)),
            ("2.bias", &[1], vec![0.5]),
        ],
    );
}

#[test]
fn the_owner_alone_is_told_how_many_were_clipped() {
    let folder = room("clipped", &TRAINING.replace("clip = 1.0", "clip = 0.01"));
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    let share = |of: &str| trained["private_clipped"][of].as_f64().unwrap();
    assert!(share("all") > 0.9 && share("last") > 0.9 && share("all") <= 1.0, "{trained}");
    for file in ["model.card.json", "model.card.txt"] {
        assert!(!std::fs::read_to_string(folder.join(file)).unwrap().contains("clipped"), "{file}");
    }
    assert!(!whit(&folder, &["ledger", "--json"]).1.contains("clipped"));
    let wide = room("unclipped", &TRAINING.replace("clip = 1.0", "clip = 100.0"));
    let (code, out, talk) = whit(&wide, &["train", "train.toml", "--owner"]);
    assert!(code == 0 && !out.contains("longer than the clip norm"), "{out}");
    assert!(
        talk.contains(
            "for the owner only: 0 % of the units that were drawn had gradients longer than the clip norm, 0 %"
        ),
        "{talk}"
    );
    let nobody = room("clipped_for_nobody", &TRAINING.replace("clip = 1.0", "clip = 0.01"));
    assert!(json(&nobody, &["train", "train.toml"]).get("private_clipped").is_none());
    assert!(!whit(&nobody, &["train", "train.toml"]).2.contains("clip"));
}

#[test]
fn a_model_starts_from_a_public_file_and_frozen_layers_stay() {
    let folder = room("started", &with_model("start = \"base.safetensors\"\nfrozen = [\"layer.0\"]"));
    base(&folder.join("base.safetensors"));
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    let said = trained["card"]["start"].as_str().unwrap();
    assert!(said.contains("`base.safetensors`") && said.contains("layer.0 stay as they are"), "{said}");
    assert_eq!(trained["card"]["parameters"], 17);
    let (from, to) = (tensors(&folder.join("base.safetensors")), tensors(&folder.join("model.safetensors")));
    let names: Vec<&str> = to.iter().map(|tensor| tensor.0.as_str()).collect();
    assert_eq!(names[..2], ["Perceptron.layers.0.weight", "Perceptron.layers.0.bias"]);
    // 2 by 4 here, and 4 by 2 there.
    let turned: Vec<f32> = (0..8).map(|i| from[0].2[i % 4 * 2 + i / 4]).collect();
    assert_eq!((&to[0].2, &to[1].2), (&turned, &from[1].2), "frozen");
    assert_ne!(to[2].2, from[2].2, "learned");
    // Another start is another training, and the same numbers in the other layout are the same one.
    std::fs::rename(folder.join("base.safetensors"), folder.join("other.safetensors")).unwrap();
    let numbers = |place: usize| from[place].2.clone();
    let ours: [(&str, &[u64], Vec<f32>); 4] = [
        ("Perceptron.layers.0.weight", &[2, 4], turned),
        ("Perceptron.layers.0.bias", &[4], numbers(1)),
        ("Perceptron.layers.1.weight", &[4, 1], numbers(2)),
        ("Perceptron.layers.1.bias", &[1], numbers(3)),
    ];
    write(&folder.join("base.safetensors"), &ours);
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    let mut moved = ours.clone();
    moved[3].2[0] += 1.0;
    write(&folder.join("base.safetensors"), &moved);
    assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], false);
    assert_eq!(entries(&folder), 1);
}

#[test]
fn a_start_that_does_not_fit_is_refused_by_the_tensors_name() {
    let start = |more: &str| with_model(&format!("start = \"base.safetensors\"\n{more}"));
    refused("no_start", &start(""), DECLARED, 2, &["model.start is `base.safetensors`, which cannot be read"]);
    let folder = room("start_unfit", &start("").replace("hidden = [4]", "hidden = [5]"));
    base(&folder.join("base.safetensors"));
    let said = |training: &str| {
        std::fs::write(folder.join("train.toml"), training).unwrap();
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert_eq!((code, out.as_str(), entries(&folder)), (2, "", 0), "{talk}");
        talk
    };
    let other = said(&start("").replace("hidden = [4]", "hidden = [5]"));
    assert!(other.contains("`0.weight` is of [4, 2], and that of the model is of [5, 2]"), "{other}");
    let deeper = said(&start("").replace("hidden = [4]", "hidden = [4, 4]"));
    assert!(deeper.contains("`2.weight` is of [1, 4], and that of the model is of [4, 4]"), "{deeper}");
    let none = said(&start("frozen = [\"layer.2\"]"));
    assert!(none.contains("names `layer.2`, and the layers of this model are layer.0 to layer.1"), "{none}");
    let all = said(&start("frozen = [\"layer.0\", \"layer.1\"]"));
    assert!(all.contains("there is nothing to learn"), "{all}");
    let both = said(&start("frozen = [\"layer.0\"]\nlora = { rank = 1, alpha = 1.0 }"));
    assert!(both.contains("leave one of them out"), "{both}");
    let alone = said(&with_model("lora = { rank = 1, alpha = 1.0 }"));
    assert!(alone.contains("model.start names none"), "{alone}");
    let flat = said(&start("lora = { rank = 0, alpha = 1.0 }"));
    assert!(flat.contains("expected a rank from 1"), "{flat}");
    let written = said(&start("").replace("\"model.safetensors\"", "\"base.safetensors\""));
    assert!(written.contains("the model that is read"), "{written}");
}

#[test]
fn adapters_are_learned_and_merged_into_the_model() {
    let folder = room("adapted", &with_model("start = \"base.safetensors\"\nlora = { rank = 2, alpha = 4.0 }"));
    base(&folder.join("base.safetensors"));
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    assert!(trained["card"]["start"].as_str().unwrap().contains("rank 2"), "{trained}");
    assert_eq!(trained["card"]["parameters"], 17, "as many as without adapters");
    let (from, to) = (tensors(&folder.join("base.safetensors")), tensors(&folder.join("model.safetensors")));
    assert_eq!(to.len(), 4);
    assert_eq!((&to[1].2, &to[3].2), (&from[1].2, &from[3].2), "constants stay");
    assert_ne!(to[2].2, from[2].2);
    assert_eq!(whit(&folder, &["predict", "model.safetensors", "--owner", "--csv", "predicted.csv"]).0, 0);
    let layers = with_model("start = \"base.safetensors\"\nlora = { rank = 2, alpha = 4.0 }")
        .replace("clip = 1.0", "clip = 1.0\nclipping = \"per-layer\"");
    std::fs::write(folder.join("train.toml"), layers).unwrap();
    assert!(json(&folder, &["train", "train.toml"])["card"]["clipping"].as_str().unwrap().contains("4 layers"));
}

#[test]
fn a_model_is_written_for_pytorch_and_for_other_runtimes() {
    let folder = room("layouts", &with_model(""));
    json(&folder, &["train", "train.toml"]);
    let ours = tensors(&folder.join("model.safetensors"));
    let words = ["predict", "model.safetensors", "--owner", "--json"];
    let before = json(&folder, &words[..3]);
    let more = "[output]\nlayout = \"torch\"\nonnx = \"model.onnx\"";
    std::fs::write(folder.join("train.toml"), with_model("").replace("[output]", more)).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true, "how it is written is not what it means");
    assert_eq!(entries(&folder), 1);
    let theirs = tensors(&folder.join("model.safetensors"));
    let shapes: Vec<(&str, &[u64])> = theirs.iter().map(|tensor| (tensor.0.as_str(), &tensor.1[..])).collect();
    assert_eq!(shapes, [("0.weight", &[4, 2][..]), ("0.bias", &[4]), ("2.weight", &[1, 4]), ("2.bias", &[1])]);
    let turned: Vec<f32> = (0..8).map(|i| ours[0].2[i % 2 * 4 + i / 2]).collect();
    assert_eq!(theirs[0].2, turned);
    assert_eq!(json(&folder, &words[..3]), before, "the command reads both layouts");
    let graph = std::fs::read(folder.join("model.onnx")).unwrap();
    assert!(graph.windows(4).any(|bytes| bytes == b"Gemm") && graph.windows(8).any(|bytes| bytes == b"0.weight"));
    let same = with_model("").replace("[output]", "[output]\nonnx = \"model.safetensors\"");
    refused("onnx_same", &same, DECLARED, 2, &["output.onnx", "a name of its own"]);
}
