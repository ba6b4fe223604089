//! Attacks that once worked, in the form in which they did.

use super::dice::Dice;
use super::ground::{ColumnKind, Ground, GroundRow, declared};
use super::printed::{self, Printed};
use super::questions::{EVERY, Pen};
use super::{AttackOutcome, Attacker, transcripts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A row that makes an expression fail: each function, cast and operator over columns that hold, on one side, the worst that they can.
pub(crate) fn expressions(attacker: &Attacker, grounds: &[Ground]) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("expressions that a row could make fail");
    for (number, ground) in grounds.iter().enumerate().filter(|(number, _)| grounds.len() < 4 || number % 4 == 0) {
        let mut dice = Dice(500 + number as u64);
        let rows = ground.rows(40, &mut dice);
        let mut other = rows.clone();
        for _ in 0..6 {
            other = ground.neighbour(&other, &mut dice); // at many units at once: a failure shows the sooner
        }
        let folders = attacker.lay(&format!("expressions-{number}"), ground, &rows, &other);
        let mut orders = Vec::new();
        for &(template, kind) in EVERY.iter() {
            let inside = Pen { ground, dice: &mut dice }.filled(template, 1);
            let wanted = if kind == ColumnKind::Bool { format!("CASE WHEN {inside} THEN 1 END") } else { inside };
            orders.push(format!("SELECT COUNT({wanted}) FROM \"{}\"", ground.dataset));
        }
        transcripts(attacker, &folders, &orders, false, &mut outcome);
    }
    outcome
}

/// Types that follow from values: whole numbers that become fractions because of one cell.
pub(crate) fn types(attacker: &Attacker, grounds: &[Ground]) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("types that values choose");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(600 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        let folders = attacker.lay("types", ground, &rows, &other);
        let mut sums = vec!["COUNT(*)".to_owned()];
        sums.extend(
            ground.columns.iter().filter(|column| column.bounded).map(|column| format!("SUM(\"{}\")", column.name)),
        );
        let sql = format!("SELECT {} FROM \"{}\"", sums.join(", "), ground.dataset);
        for words in [
            &["query", &sql, "--epsilon", "0.05", "--delta", "1e-9", "--json"][..],
            &["preview", &sql, "--epsilon", "0.05", "--delta", "1e-9", "--json"],
        ] {
            let [one, other] = folders.each_ref().map(|folder| {
                let printed = attacker.ask(folder, words, "");
                let kinds =
                    serde_json::from_str::<Value>(&printed.out).map(|value| format!("{:#?}", printed::kinds(&value)));
                Printed { out: kinds.unwrap_or_default(), talk: printed.masked().talk, ..printed }
            });
            outcome.compare(&format!("{}: {sql}", ground.title), &one, &other);
        }
    }
    outcome
}

const TIES: &[&str] = &[
    "SELECT SUM(clamp(w, 0, 100)) FROM (SELECT SUM(n) OVER (PARTITION BY id ORDER BY topic ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM rows)",
    "SELECT SUM(clamp(w, 0, 100)) FROM (SELECT first_value(n) OVER (PARTITION BY id ORDER BY place) AS w FROM rows)",
    "SELECT SUM(clamp(w, 0, 100)) FROM (SELECT lag(n) OVER (PARTITION BY id ORDER BY place) AS w FROM rows)",
    "SELECT SUM(n) FROM (SELECT n, row_number() OVER (PARTITION BY id ORDER BY place) AS k FROM rows) WHERE k = 1",
    "SELECT SUM(n) FROM (SELECT n, ntile(2) OVER (PARTITION BY id ORDER BY flag) AS k FROM rows) WHERE k = 1",
    "SELECT COUNT(DISTINCT money) FROM rows",
    "SELECT COUNT(*) FROM rows a JOIN rows b ON a.id = b.id AND a.money = b.money",
    "SELECT SUM(a.n) FROM rows a JOIN rows b ON a.id = b.id AND a.topic = b.topic",
    "SELECT COUNT(*) FROM rows",
    "SELECT SUM(x) FROM rows",
    "SELECT SUM(money) FROM rows",
    "SELECT place, SUM(n) FROM rows GROUP BY place",
];

/// How far one unit moves an answer, without noise, against what the error that a preview tells allows: under Laplace noise the
/// error at 95 % is ln 20 of the scale, and at ε = 1 the scale is the sensitivity.
pub(crate) fn sensitivities(attacker: &Attacker) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("units that move an answer too far");
    for number in (0..super::ground::own()).step_by(2) {
        let ground = declared(number);
        let mut dice = Dice(900 + number as u64);
        let mut rows = ground.rows(32, &mut dice);
        // Decimals that are different and near one another, and many ties.
        for (i, row) in rows.iter_mut().enumerate() {
            let GroundRow::Cells(cells) = row else { continue };
            cells[5] = Some(format!("12345678901234567890.{:010}", i * 7 % 64));
            cells[2] = Some("a".to_owned());
            cells[4] = Some((i * 13 % 101).to_string());
            // Which events and elements above a cap count is drawn anew for each question, so that two answers about the same rows differ by more than one unit moves them: nobody
            // is above. Those who are, `no_neighbour_moves_a_measure_further_than_planned` of whit-query tries, under one draw.
            if ground.moving.user.is_some() && matches!(ground.moving.protect.as_str(), "event" | "element") {
                cells[0] = Some((i % 11).to_string());
            }
        }
        for lap in 0..2 {
            let other = ground.neighbour(&rows, &mut dice);
            let folders = attacker.lay(&format!("sensitivities-{number}-{lap}"), &ground, &rows, &other);
            for sql in TIES {
                compare_moves(attacker, &ground, &folders, sql, &mut outcome);
            }
        }
    }
    outcome
}

fn compare_moves(attacker: &Attacker, ground: &Ground, folders: &[PathBuf; 2], sql: &str, outcome: &mut AttackOutcome) {
    outcome.tries += 1;
    let preview = attacker.ask(&folders[0], &["preview", sql, "--epsilon", "1", "--delta", "0", "--json"], "");
    let Ok(view) = serde_json::from_str::<Value>(&preview.out) else { return };
    let [one, other] = folders.each_ref().map(|folder| {
        let printed = attacker.ask(folder, &["query", sql, "--epsilon", "1000", "--delta", "0", "--json"], "");
        numbers(&serde_json::from_str(&printed.out).unwrap_or_default())
    });
    if one.is_empty() || one.len() != other.len() {
        return;
    }
    outcome.answered += 1;
    let errors = view["errors"].as_array().cloned().unwrap_or_default();
    for (column, error) in errors.iter().enumerate() {
        let Some(error) = error["within"].as_f64() else { continue };
        let at = |row: &Vec<f64>| row.get(column).copied().unwrap_or_default();
        let moved: f64 = one.iter().zip(&other).map(|(a, b)| (at(a) - at(b)).abs()).sum();
        if moves_too_far(moved, error) {
            let moved = format!("column {column} moved by {moved}, at an error of {error:.1}");
            outcome.found.push(format!("{}: {sql}\n    {moved}", ground.title));
        }
    }
}

/// Whether a column moved further than noise with this error at ε = 1 covers.
///
/// The error at 95 % is ln 20 times the sensitivity, less than a lattice step off it, which is 1 for counts and less for all else. At ε = 1000 the noise that is left is beyond a
/// twentieth of the sensitivity once in 10¹⁵ answers, and counts have none.
pub(crate) fn moves_too_far(moved: f64, error: f64) -> bool {
    moved > 1.05 * error / 20_f64.ln() + 1.0 / 20_f64.ln()
}

/// The released values of an answer in JSON, row by row.
fn numbers(answer: &Value) -> Vec<Vec<f64>> {
    let rows = answer["rows"].as_array().cloned().unwrap_or_default();
    let cells = |row: &Value| match row {
        Value::Array(cells) => cells.clone(),
        Value::Object(fields) => fields.values().cloned().collect(),
        _ => Vec::new(),
    };
    let number = |cell: Value| match cell {
        Value::Object(fields) => fields.get("value").and_then(Value::as_f64),
        other => other.as_f64(),
    };
    rows.iter().map(|row| cells(row).into_iter().filter_map(number).collect()).collect()
}

const LOGISTIC: &str = r#"
dataset = "rows"
features = ["x", "n"]
target = "y"

[privacy]
epsilon = 0.5
delta = 1e-6
clip = 1.0
batch = 8
units = 24
steps = STEPS

[output]
model = "model.safetensors"
checkpoint_every = 5
"#;

/// A digest of private files, wherever something leaves: it is the same for the same data under two ledgers, and another for other data.
pub(crate) fn digests(attacker: &Attacker) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("digests of private rows");
    for number in [0, 8] {
        let ground = declared(number);
        let mut dice = Dice(700 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        let sides = [("same", &rows), ("again", &rows), ("other", &other)];
        let [same, again, other]: [BTreeSet<String>; 3] = sides.map(|(name, rows)| {
            let folder = attacker.room.join(format!("digests-{number}-{name}"));
            let _ = ground.lay(&folder, rows);
            let _ = std::fs::write(folder.join("train.toml"), LOGISTIC.replace("STEPS", "3"));
            let mut found = BTreeSet::new();
            for words in [
                &["query", "SELECT COUNT(*) FROM rows", "--epsilon", "1", "--delta", "1e-9", "--json"][..],
                &["query", "SELECT SUM(n) FROM rows", "--epsilon", "1", "--delta", "1e-9", "--plot", "page.html"],
                &["train", "train.toml", "--json"],
                &["ledger", "--json"],
                &["ledger", "export"],
                &["ledger", "verify"],
                &["check", "--json"],
            ] {
                let printed = attacker.ask(&folder, words, "");
                outcome.tries += 1;
                outcome.answered += usize::from(printed.code == Some(0));
                found.append(&mut printed::digests(printed.out.as_bytes()));
                found.append(&mut printed::digests(printed.talk.as_bytes()));
            }
            for file in ["page.html", "model.safetensors", "model.card.json", "model.card.txt"] {
                found.append(&mut printed::digests(&std::fs::read(folder.join(file)).unwrap_or_default()));
            }
            found
        });
        for digest in same.intersection(&again).filter(|digest| !other.contains(*digest)) {
            outcome.found.push(format!("{}: {digest} follows from the rows", ground.title));
        }
    }
    outcome
}

/// The parameters of a model file.
fn parameters(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return Vec::new() };
    let body = rest.get(u64::from_le_bytes(*length) as usize..).unwrap_or_default();
    body.as_chunks::<4>().0.iter().map(|four| f64::from(f32::from_le_bytes(*four))).collect()
}

/// By what rows are scaled, and what is to be predicted of them.
pub(crate) const EXTREMES: [(&str, &str); 5] =
    [("1e-25", "1e30"), ("1e-30", "3e38"), ("1e-22", "1e25"), ("1.0", "3e38"), ("1e30", "1e30")];

/// How far one step may be from that of other rows: all 20 units together move it by at most 20 clip norms, and one in a million draws goes beyond 5 deviations of noise.
pub(crate) fn step_allows(noise: f64, divisor: f64) -> f64 {
    20.0 / divisor + 2.0 * 6.0 * noise / divisor
}

/// Rows so small that their squares are nothing: a clip that measures lengths in single precision lets them pass.
pub(crate) fn underflow(attacker: &Attacker) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("gradients that pass the clip");
    for (scale, target) in EXTREMES {
        let declaration = "[dataset.rows]\nsource = \"rows.csv\"\nunit.protect = \"event\"\nbudget.event = { epsilon = 10.0, delta = 1e-3 }\ncolumns.x = { type = \"float\" }\ncolumns.t = { type = \"float\" }\n";
        let file = format!(
            "dataset = \"rows\"\nfeatures = [\"x\"]\ntarget = \"t\"\nscale = {scale}\n[model]\nname = \"linear\"\nbias = false\n\
             [privacy]\nepsilon = 0.1\ndelta = 1e-6\nclip = 1.0\nbatch = 10\nunits = 20\nsteps = 1\n[optimiser]\nsize = 1.0\n[output]\nmodel = \"model.safetensors\"\n"
        );
        outcome.tries += 1;
        let [one, other] = ["0.0", target].map(|value| {
            let folder = attacker.room.join(format!("underflow-{scale}-{value}"));
            let _ = std::fs::remove_dir_all(&folder); // it may not be there
            let _ = std::fs::create_dir_all(&folder);
            let rows = (0..20).fold(String::from("x,t\n"), |rows, _| rows + "1.0," + value + "\n");
            let _ = std::fs::write(folder.join("rows.csv"), rows);
            let _ = std::fs::write(folder.join("whit.toml"), declaration);
            let _ = std::fs::write(folder.join("train.toml"), &file);
            let printed = attacker.ask(&folder, &["train", "train.toml", "--json"], "");
            (printed, parameters(&folder.join("model.safetensors")))
        });
        if one.0.code != other.0.code {
            outcome.found.push(format!(
                "scale {scale}, target {target}: exit codes {:?} and {:?}: {}",
                one.0.code, other.0.code, other.0.talk
            ));
            continue;
        }
        let Ok(view) = serde_json::from_str::<Value>(&one.0.out) else { continue };
        outcome.answered += 1;
        let (noise, divisor) = (view["card"]["noise"].as_f64(), view["card"]["divisor"].as_f64());
        let limit = step_allows(noise.unwrap_or(100.0), divisor.unwrap_or(10.0));
        let moved = one.1.iter().zip(&other.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if one.1.is_empty() || !moved.is_finite() || moved > limit {
            outcome.found.push(format!("scale {scale}, target {target}: parameters moved by {moved:e}, and {limit:e} is what noise and clip allow"));
        }
    }
    outcome
}

/// A checkpoint that is put back, and the run taken again: two models under one charge.
pub(crate) fn checkpoints(attacker: &Attacker) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("trainings that one charge pays twice");
    let ground = declared(0);
    let rows = ground.rows(24, &mut Dice(800));
    let folder = attacker.room.join("checkpoints");
    let _ = ground.lay(&folder, &rows);
    let _ = std::fs::write(folder.join("train.toml"), LOGISTIC.replace("STEPS", "600"));
    let checkpoint = folder.join("model.safetensors.checkpoint");
    let Ok(mut child) = std::process::Command::new(&attacker.whit)
        .args(["train", "train.toml"])
        .current_dir(&folder)
        .env("WHIT_STATE", folder.join(".state"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
    else {
        outcome.found.push("the training could not be started".to_owned());
        return outcome;
    };
    let start = Instant::now();
    while !checkpoint.exists() && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let _ = child.kill();
    let _ = child.wait();
    let kept = std::fs::read(&checkpoint).unwrap_or_default();
    outcome.tries += 1;
    if kept.is_empty() {
        outcome.found.push("it left no checkpoint within a minute, so nothing was tried".to_owned());
        return outcome;
    }
    let mut models: Vec<Vec<f64>> = Vec::new();
    let mut keep = |folder: &Path, path: &str| {
        let model = parameters(&folder.join(path));
        if !model.is_empty() && !models.contains(&model) {
            models.push(model);
        }
    };
    // A copy of everything but the ledger's answer, taken to its end elsewhere; then the first; then the first again from the old checkpoint.
    let ended = attacker.ask(&folder, &["train", "train.toml"], "");
    outcome.answered += usize::from(ended.code == Some(0));
    if ended.code != Some(0) {
        outcome.found.push(format!("an interrupted run does not go on: {}", ended.talk));
    }
    keep(&folder, "model.safetensors");
    for path in ["model.safetensors", "second.safetensors"] {
        let file = LOGISTIC.replace("STEPS", "600").replace("model.safetensors", path);
        let _ = std::fs::write(folder.join("train.toml"), file);
        let _ = std::fs::remove_file(folder.join(path)); // it may not be there
        let _ = std::fs::write(folder.join(format!("{path}.checkpoint")), &kept);
        attacker.ask(&folder, &["train", "train.toml"], "");
        outcome.tries += 1;
        keep(&folder, path);
    }
    let entries = attacker.ask(&folder, &["ledger", "--json"], "");
    let entries = serde_json::from_str::<Value>(&entries.out).ok();
    let paid = entries.and_then(|view| view["releases"].as_array().map(Vec::len)).unwrap_or(0);
    if models.len() > paid.max(1) {
        outcome.found.push(format!("{} different models under {paid} entries of the ledger", models.len()));
    }
    outcome
}

/// A byte of the ledger's files that is changed, a file that is deleted or cut: charges that were printed must not be forgotten.
pub(crate) fn ledger(attacker: &Attacker) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("ledgers that forget");
    let ground = declared(0);
    let rows = ground.rows(24, &mut Dice(810));
    let folder = attacker.room.join("ledger");
    let _ = ground.lay(&folder, &rows);
    for epsilon in ["0.1", "0.2", "0.4"] {
        attacker.ask(&folder, &["query", "SELECT COUNT(*) FROM rows", "--epsilon", epsilon, "--delta", "1e-9"], "");
    }
    let spent = |printed: &Printed| {
        let view = serde_json::from_str::<Value>(&printed.out).ok()?;
        view["releases"].as_array().map(Vec::len)
    };
    let before = spent(&attacker.ask(&folder, &["ledger", "--json"], ""));
    if before != Some(3) {
        outcome.found.push(format!("three charges are {before:?}"));
        return outcome;
    }
    let files: Vec<PathBuf> = std::fs::read_dir(&folder).map_or_else(
        |_| Vec::new(),
        |files| {
            let files = files.flatten().map(|file| file.path());
            files.filter(|path| path.is_file() && path.to_string_lossy().contains("ledger")).collect()
        },
    );
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files.iter().map(|path| (path.clone(), std::fs::read(path).unwrap_or_default())).collect();
    let restore = || {
        for (path, bytes) in &whole {
            let _ = std::fs::write(path, bytes);
        }
    };
    let mut dice = Dice(811);
    let mut attack = |what: String, change: &dyn Fn()| {
        restore();
        change();
        let printed = attacker.ask(&folder, &["ledger", "--json"], "");
        outcome.tries += 1;
        if printed.code == Some(0) && spent(&printed) != before {
            outcome
                .found
                .push(format!("{what}: {:?} charges are left of {before:?}, and nothing is said", spent(&printed)));
        } else if printed.code == Some(0) {
            outcome.answered += 1;
        }
        // What is asked next may not find a fresh budget either.
        if printed.talk.contains("panicked") {
            outcome.found.push(format!("{what}: it panicked"));
        }
    };
    for (path, bytes) in &whole {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if bytes.is_empty() || path.extension().is_some_and(|ending| ending == "log") || name.ends_with("-shm") {
            continue;
        }
        for _ in 0..24 {
            let (at, by) = (dice.below(bytes.len()), 1 << dice.below(8));
            attack(format!("byte {at} of {name} changed"), &|| {
                let mut changed = bytes.clone();
                changed[at] ^= by;
                let _ = std::fs::write(path, changed);
            });
        }
        attack(format!("{name} deleted"), &|| {
            let _ = std::fs::remove_file(path);
        });
        attack(format!("{name} cut in half"), &|| {
            let _ = std::fs::write(path, &bytes[..bytes.len() / 2]);
        });
    }
    restore();
    outcome
}
