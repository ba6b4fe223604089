//! With which ε a question would fit its budgets.

use whit_core::declare::QueryDefaults;

/// The least ε that can be asked for.
const LEAST_EPSILON: f64 = *QueryDefaults::EPSILON.start();

/// The largest ε below the one that was refused with which the same question would fit now, as it is written: that very text was tried.
pub(crate) fn largest(refused: f64, mut fits: impl FnMut(f64) -> bool) -> Option<String> {
    // Below this nobody can ask: see `--epsilon`.
    let (mut low, mut high) = ((refused * 1e-4).max(LEAST_EPSILON), refused);
    if low >= high || !fits(low) {
        return None;
    }
    while high / low > 1.000_1 {
        let middle = (low * high).sqrt();
        if fits(middle) { low = middle } else { high = middle }
    }
    // Four digits, rounded down; what is rounded down fits if more did, and that is looked at all the same.
    let digits = (3 - low.log10().floor() as i32).clamp(0, 15) as usize;
    let scale = 10_f64.powi(digits as i32);
    let text = |steps: f64| format!("{:.digits$}", ((low * scale).floor() - steps) / scale);
    let told = [0.0, 1.0, 2.0, 10.0]
        .into_iter()
        .map(text)
        .find(|told| told.parse().is_ok_and(|told| told >= LEAST_EPSILON && fits(told)))?;
    Some(if told.contains('.') { told.trim_end_matches('0').trim_end_matches('.').to_owned() } else { told })
}
