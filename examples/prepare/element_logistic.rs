//! The simulation of Asi, Duchi and Javidbakht, section 4.2: people who know of a few topics each, and a logistic regression over all of them.

use super::dice::Dice;
use super::{Fallible, table};
use std::fmt::Write as _;
use std::path::Path;

const ROWS: usize = 50;
const DIMENSION: usize = 10;
const TOPICS: usize = 10;
/// Of how many topics a user has rows.
const KNOWN: [usize; 3] = [2, 5, 8];

/// Writes worlds: new people, topics and a new truth for each number of known topics and each seed.
pub(crate) fn prepare(to: &Path, small: bool, seeds: Option<u64>) -> Fallible<()> {
    let users = if small { 200 } else { 1000 };
    let seeds = seeds.unwrap_or(if small { 3 } else { 10 });
    // As in the paper. For 1,000 users it is 5·10⁻⁴, which is a lot (erratum E18); the figures are for comparing.
    let delta = (users as f64).powf(-1.1);
    let mut declared = format!(
        "# {users} simulated users with {ROWS} rows each, in {TOPICS} topics. δ = n^-1.1, as in the paper.\n\
         # One file is declared twice: once one topic of a user is protected, and once all that a user has.\n"
    );
    for known in KNOWN {
        for seed in 0..seeds {
            let name = format!("k{known}_s{seed}");
            let truth = world(users, known, seed, &to.join(format!("{name}.parquet")))?;
            std::fs::write(to.join(format!("truth_{known}_{seed}.json")), serde_json::to_string(&truth)?)?;
            write!(
                declared,
                r#"
[dataset.{name}_element]
source = "{name}.parquet"
unit.user = "user"
unit.element = "topic"
unit.protect = "element"
unit.caps = {{ elements_per_user = {known} }}
budget.element = {{ epsilon = 8.0, delta = {delta:e}, currency = "renyi" }}

[dataset.{name}_user]
source = "{name}.parquet"
unit.user = "user"
unit.protect = "user"
budget.user = {{ epsilon = 8.0, delta = {delta:e}, currency = "renyi" }}
"#
            )?;
        }
    }
    Ok(std::fs::write(to.join("whit.toml"), declared)?)
}

/// Writes one world, and returns its truth.
fn world(users: usize, known: usize, seed: u64, path: &Path) -> Fallible<Vec<f64>> {
    let dice = &mut Dice::new(seed);
    let centres: Vec<Vec<f64>> = (0..TOPICS).map(|_| dice.direction(DIMENSION)).collect();
    let truth = dice.direction(DIMENSION);
    let (mut owners, mut topics, mut features, mut answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for user in 0..users {
        let own = dice.choose(known, TOPICS);
        for _ in 0..ROWS {
            let topic = own[dice.below(known)];
            let row: Vec<f64> = centres[topic].iter().zip(dice.direction(DIMENSION)).map(|(c, v)| c + v).collect();
            let z: f64 = row.iter().zip(&truth).map(|(x, t)| x * t).sum();
            answers.push(u8::from(dice.uniform() < 1.0 / (1.0 + (-z).exp())));
            features.extend(row.iter().map(|&v| v as f32));
            owners.push(i32::try_from(user)?);
            topics.push(i32::try_from(topic)?);
        }
    }
    let columns = vec![
        ("user", table::whole(owners)),
        ("topic", table::whole(topics)),
        ("x", table::vectors(features, DIMENSION)?),
        ("y", table::labels(answers)),
    ];
    table::write(path, columns)?;
    Ok(truth)
}
