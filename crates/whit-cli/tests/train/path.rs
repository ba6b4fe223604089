//! One charge pays for one way of noise: checkpoints that are copied, put back, or gone on from twice.

use super::{TRAINING, entries, json, room, whit};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Many short steps, so that a run can be ended on its way.
fn long(steps: u32, model: &str) -> String {
    TRAINING
        .replace("epsilon = 1.0", "noise = 3000.0")
        .replace("steps = 60", &format!("steps = {steps}"))
        .replace("checkpoint_every = 7", "checkpoint_every = 50")
        .replace("model.safetensors", model)
}

fn begin(folder: &Path, training: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.env("WHIT_STATE", "");
    command.args(["train", training]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The step at which a checkpoint stands.
fn stands(checkpoint: &Path) -> u64 {
    let text = std::fs::read_to_string(checkpoint).unwrap_or_default();
    let body = text.split_once('\n').and_then(|(_, body)| serde_json::from_str::<Value>(body).ok());
    body.map_or(0, |body| body["taken"].as_u64().unwrap())
}

/// Trains until the checkpoint is beyond a step, and ends the process there.
fn until(folder: &Path, checkpoint: &Path, step: u64) {
    let mut child = begin(folder, "train.toml");
    let since = Instant::now();
    while stands(checkpoint) <= step && since.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(stands(checkpoint) > step);
}

#[test]
fn a_checkpoint_that_was_put_back_is_refused() {
    let folder = room("put-back", &long(200_000, "model.safetensors"));
    let checkpoint = folder.join("model.safetensors.checkpoint");
    until(&folder, &checkpoint, 0);
    let old = std::fs::read(&checkpoint).unwrap();
    until(&folder, &checkpoint, stands(&checkpoint) + 50);
    let (newest, step) = (std::fs::read(&checkpoint).unwrap(), stands(&checkpoint));
    let next = folder.join("model.safetensors.checkpoint.next");
    let refused = || {
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 2 && out.is_empty() && talk.contains("entry 1 of the ledger is open"), "{talk}");
        assert!(talk.contains("has gone on to step") && talk.contains("one charge pays for one run"), "{talk}");
    };
    // An older one, whatever stands next to it.
    let aside = std::fs::read(&next).ok();
    let _ = std::fs::remove_file(&next); // it may not be there
    std::fs::write(&checkpoint, &old).unwrap();
    refused();
    std::fs::write(&next, &old).unwrap();
    refused();
    // None at all.
    std::fs::remove_file(&checkpoint).unwrap();
    std::fs::remove_file(&next).unwrap();
    refused();
    // Another output path has no checkpoint of the run either.
    std::fs::write(folder.join("train.toml"), long(200_000, "other.safetensors")).unwrap();
    refused();
    // The newest goes on, from where it stood.
    std::fs::write(folder.join("train.toml"), long(200_000, "model.safetensors")).unwrap();
    std::fs::write(&checkpoint, &newest).unwrap();
    if let Some(aside) = aside {
        std::fs::write(&next, aside).unwrap();
    }
    until(&folder, &checkpoint, step);
    assert_eq!(entries(&folder), 1);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
}

#[test]
fn a_run_that_ended_does_not_end_twice() {
    let folder = room("ended", &long(3_000, "model.safetensors"));
    let checkpoint = folder.join("model.safetensors.checkpoint");
    until(&folder, &checkpoint, 0);
    let old = std::fs::read(&checkpoint).unwrap();
    let first = json(&folder, &["train", "train.toml"]);
    assert!(first["stored"] == false && first["resumed_from"].as_u64().unwrap() > 0, "{first}");
    let model = std::fs::read(folder.join("model.safetensors")).unwrap();
    for path in ["model.safetensors", "other.safetensors"] {
        std::fs::write(folder.join("train.toml"), long(3_000, path)).unwrap();
        std::fs::write(folder.join(format!("{path}.checkpoint")), &old).unwrap();
        assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
        assert!(std::fs::read(folder.join(path)).unwrap() == model, "{path}: one θ for one charge");
    }
    assert_eq!(entries(&folder), 1);
}

/// Eight copies of one checkpoint are gone on with at once, at eight paths. The ledger notes one way; the others end and leave no model.
#[test]
fn of_two_runs_on_one_entry_one_wins() {
    let folder = room("two", &long(4_000, "model.safetensors"));
    let checkpoint = folder.join("model.safetensors.checkpoint");
    until(&folder, &checkpoint, 0);
    let copies: Vec<String> = (0..8).map(|copy| format!("copy{copy}")).collect();
    for copy in &copies {
        std::fs::write(folder.join(format!("{copy}.toml")), long(4_000, &format!("{copy}.safetensors"))).unwrap();
        for ending in ["checkpoint", "checkpoint.next"] {
            let _ = std::fs::copy(
                folder.join(format!("model.safetensors.{ending}")),
                folder.join(format!("{copy}.safetensors.{ending}")),
            ); // there need not be a next one
        }
    }
    let running: Vec<Child> = copies.iter().map(|copy| begin(&folder, &format!("{copy}.toml"))).collect();
    let mut ended = Vec::new();
    for child in running {
        let output = child.wait_with_output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(!talk.contains("panicked"), "{talk}");
        ended.push((output.status.code(), talk));
    }
    let models: Vec<Vec<u8>> =
        copies.iter().filter_map(|copy| std::fs::read(folder.join(format!("{copy}.safetensors"))).ok()).collect();
    // Whoever came after the end was answered from the ledger.
    assert!(!models.is_empty() && models.iter().all(|model| *model == models[0]), "{} ways", models.len());
    let won = ended.iter().filter(|(code, _)| *code == Some(0)).count();
    assert_eq!(won, models.len(), "{ended:?}");
    for (_, talk) in ended.iter().filter(|(code, _)| *code != Some(0)) {
        let said = [
            "is training this very model",
            "does not follow from that checkpoint",
            "is none to go on to",
            "is not its checkpoint",
            "not open",
        ];
        assert!(said.iter().any(|said| talk.contains(said)), "{talk}");
    }
    assert_eq!(entries(&folder), 1);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
}

#[cfg(unix)]
#[test]
fn nobody_else_may_open_what_a_run_keeps() {
    use std::os::unix::fs::PermissionsExt;
    let folder = room("mode", &long(200_000, "model.safetensors"));
    let checkpoint = folder.join("model.safetensors.checkpoint");
    until(&folder, &checkpoint, 0);
    for file in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let name = file.file_name().into_string().unwrap();
        if name.contains("checkpoint") {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
}
