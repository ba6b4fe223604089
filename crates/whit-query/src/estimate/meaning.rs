//! What a question by name means: see [`whit_account::meaning`].

use super::histogram::Radius;
use super::{Calibration, Touch};
use serde_json::{Value, json};
use whit_account::meaning;
use whit_account::meaning::number;
use whit_core::Ladder;

/// What both kinds of question mean alike.
pub(super) struct Common<'a> {
    pub(super) dataset: &'a str,
    pub(super) item: &'a str,
    /// The most items or clusters for which a user counts fully.
    pub(super) cap: Option<u64>,
    pub(super) touch: Touch,
    pub(super) ladder: &'a Ladder,
    pub(super) promise: Calibration,
}

impl Common<'_> {
    fn json(&self) -> Value {
        let touch = match self.touch {
            Touch::Most(most) => json!(most),
            Touch::Any => json!("any"),
        };
        json!({
            "dataset": self.dataset,
            "item": self.item,
            "cap": self.cap,
            "touch": touch,
            "units": meaning::units(self.ladder.rungs()),
            "epsilon": number(self.promise.epsilon),
            "delta": number(self.promise.delta),
        })
    }

    /// How many users have each of the items with this hash.
    pub(super) fn hitters(&self, items: &str) -> String {
        meaning::of("hitters", 2, &json!({ "asked of": self.json(), "items": items }))
    }

    /// How much of each item users have, of rows or of these weights, each at most so large.
    pub(super) fn histogram(&self, weight: Option<(&str, f64)>, radius: Radius) -> String {
        let weight = weight.map(|(column, most)| json!({ "column": column, "most": number(most) }));
        let radius = match radius {
            Radius::Given(radius) => json!({ "given": number(radius) }),
            Radius::TwoStage { share, quantile } => {
                json!({ "two stages": number(share), "quantile": number(quantile) })
            }
            Radius::Split { users, quantile } => json!({ "split": number(users), "quantile": number(quantile) }),
        };
        meaning::of("histogram", 2, &json!({ "asked of": self.json(), "weight": weight, "radius": radius }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::scratch::golden;
    use whit_core::{Caps, Change, Kind, Unit};

    /// Golden: what these say, ledgers have stored. Another text has answers paid for again.
    #[test]
    fn questions_by_name_mean_what_they_meant() {
        let ladder = Ladder::new(vec![Unit::user("id", Change::AddRemove)], Caps::default(), Kind::User).unwrap();
        let promise = Calibration { epsilon: 0.5, delta: 1e-8 };
        let asked =
            Common { dataset: "d", item: "word", cap: Some(3), touch: Touch::Most(1), ladder: &ladder, promise };
        let all = [
            asked.hitters("blake3:00"),
            asked.histogram(None, Radius::Given(2.0)),
            asked.histogram(Some(("w", 9.0)), Radius::TwoStage { share: 0.25, quantile: 0.9 }),
            Common { touch: Touch::Any, cap: None, ..asked }
                .histogram(None, Radius::Split { users: 0.5, quantile: 0.9 }),
        ];
        golden("named_questions.txt", &(all.join("\n") + "\n"));
    }
}
