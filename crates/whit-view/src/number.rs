//! Numbers as people read them, rounded the way that keeps a bound, and as programs read them.

use serde::{Serialize, Serializer};
use whit_query::explain::MOST_TIMES;

pub use whit_core::digits::{brief, brief_down, brief_up, grouped, number_of, percent, percent_down, percent_up};

/// A number in JSON: to the last digit, and infinity as the string `"Infinity"`, because JSON has no number for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exact(
    /// The number itself.
    pub f64,
);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_infinite() {
            serializer.serialize_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// How often something fits, as far as that was counted.
pub(crate) fn times_left(times: u64) -> String {
    if times < MOST_TIMES { format!("about {times}") } else { "more than a thousand".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_is_a_word_in_json_and_never_null() {
        assert_eq!(serde_json::to_string(&Exact(f64::INFINITY)).unwrap(), "\"Infinity\"");
        assert_eq!(serde_json::to_string(&Exact(0.1)).unwrap(), "0.1");
    }
}
