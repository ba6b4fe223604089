//! Every accountant against exact losses of extreme runs: users with up to 10¹⁸ elements, rates up to 1 − 1e-16, noise from 1e-6
//! to 1e9, δ down to 1e-300. `oracles/extremes.py` integrates them with 60 to 400 digits and shares nothing with the crate.

use serde_json::Value;
use whit_account::{Name, delta, epsilon_by};
use whit_core::{Change, Cost, Draw, Sampled, Sampling};

struct Question {
    what: String,
    cost: Cost,
    delta: f64,
    /// What some pair of neighbours attains.
    truth: f64,
    /// The most that any mechanism with this cost loses: the same, where the reference is exact.
    most: f64,
}

fn questions() -> Vec<Question> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/extremes.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let read = |entry: &Value| {
        let number = |field: &str| entry[field].as_f64().unwrap_or_else(|| panic!("no {field} in {entry}"));
        let change = if entry["change"] == "replace" { Change::Replace } else { Change::AddRemove };
        let step = Sampled {
            noise: number("noise"),
            rate: number("rate"),
            sampling: Sampling::Poisson,
            draw: entry["draw"].as_u64().map_or(Draw::Unit, |elements| Draw::User { elements }),
            change,
            difference: number("difference"),
            holds: entry["holds"].as_u64().unwrap(),
        };
        let steps = entry["steps"].as_u64().unwrap();
        Question {
            what: entry.to_string(),
            cost: Cost::Sampled(step).repeat(steps),
            delta: number("delta"),
            truth: entry["epsilon"].as_str().unwrap().parse().unwrap(),
            most: entry["most"].as_str().unwrap().parse().unwrap(),
        }
    };
    file["entries"].as_array().unwrap().iter().map(read).collect()
}

#[test]
fn no_accountant_falls_below_the_truth_at_any_extreme() {
    for Question { what, cost, delta, truth, most } in questions() {
        for name in Name::ALL {
            // The reference has 17 digits, of which a float keeps nearly all.
            let (loss, by) = epsilon_by(&cost, delta, name).unwrap_or_else(|error| panic!("{name}: {error}: {what}"));
            assert!(loss.upper >= truth * (1.0 - 4e-16), "{name} ({by}) says {loss:?}, below {truth}: {what}");
            assert!(loss.lower <= most * (1.0 + 1e-12), "{name} claims that {loss:?} is attained, {most} is: {what}");
        }
        let (loss, by) = epsilon_by(&cost, delta, Name::Pld).unwrap();
        let close = if by == Name::Pld { 1.01 * most + 1e-9 } else { 1.5 * most + 1.0 };
        assert!(loss.upper <= close, "PLD ({by}) says {loss:?} for {truth}: {what}");
    }
}

#[test]
fn the_way_back_from_the_true_epsilon_is_no_less_than_delta() {
    for Question { what, cost, delta: d, truth, most } in questions() {
        // Where ε is large a unit in its last place moves δ by far more than that.
        let sharp = 1e-6 + 1e-14 * truth;
        if truth == 0.0 || sharp > 0.1 || truth < most {
            continue;
        }
        for name in [Name::Pld, Name::Rdp, Name::Gdp, Name::Zcdp] {
            let back = delta(&cost, truth, name).unwrap();
            assert!(back.upper >= d * (1.0 - sharp), "{name} says δ = {back:?} at ε = {truth}: {what}");
            assert!(back.lower <= d * (1.0 + sharp), "{name} says δ = {back:?} at ε = {truth}: {what}");
        }
    }
}
