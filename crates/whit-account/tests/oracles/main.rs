//! Reference numbers of others, and exact integrals, against every accountant. The numbers stand next to these files as JSON, each with its source.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its reference has failed")]

mod closed_form;
mod extremes;
mod pld;
