//! The seal on a value that is not paid for yet.

/// A sanitised value that nobody may read before it is paid for.
///
/// It has no accessor, no `Debug` and no `Clone`; [`release`](crate::release::release) opens it.
///
/// ```compile_fail
/// let sealed = whit_core::Sealed::new(7);
/// let peeked: i32 = sealed.0; // the field is private
/// ```
///
/// ```compile_fail
/// println!("{:?}", whit_core::Sealed::new(7)); // and it does not print itself
/// ```
///
/// ```compile_fail
/// let _ = whit_core::Sealed::new(7).clone();
/// ```
#[must_use = "a sealed value is opened by `release` only"]
pub struct Sealed<T>(pub(super) T);

impl<T> Sealed<T> {
    /// Seals a value: the last thing that a mechanism does.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Looks inside: for the tests and audits of the mechanisms in this crate.
    #[cfg(test)]
    pub(crate) fn open(self) -> T {
        self.0
    }
}
