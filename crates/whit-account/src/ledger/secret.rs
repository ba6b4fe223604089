//! The ledger's secret: what fingerprints of data are keyed with.
//!
//! A plain hash of private files tells whoever knows all of them but one value whether a guess at that value is right. So whatever is kept
//! of the data's fingerprint is a hash under 32 bytes that the operating system gave when the ledger was made. They stay in the
//! ledger's file: no report, no export and no message has them, nor anything that was made with them but the [`Head`].

use super::chain::Head;
use super::format::hex;
use whit_noise::{Entropy, Os};

/// What stands where a ledger's own fingerprint would, in entries that were built from an export: nobody knows of which data they were. No question has it.
pub(super) const UNKNOWN: &str = "unknown";

/// The secret of one ledger, and the name by which the ledger is known elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LedgerSecret {
    pub(super) ledger: [u8; 16],
    key: [u8; 32],
}

impl LedgerSecret {
    /// A fresh one.
    pub(super) fn new() -> Self {
        let mut words = [0; 6];
        Os.fill(&mut words);
        let mut bytes = [0; 48];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let (mut ledger, mut key) = ([0; 16], [0; 32]);
        ledger.copy_from_slice(&bytes[..16]);
        key.copy_from_slice(&bytes[16..]);
        Self { ledger, key }
    }

    /// What was kept, if no byte of it changed.
    pub(super) fn of(ledger: &[u8], key: &[u8], sound: &[u8]) -> Option<Self> {
        let secret = Self { ledger: ledger.try_into().ok()?, key: key.try_into().ok()? };
        (secret.sound() == sound).then_some(secret)
    }

    /// What is kept.
    pub(super) fn parts(&self) -> (&[u8], &[u8], Vec<u8>) {
        (&self.ledger, &self.key, self.sound())
    }

    fn sound(&self) -> Vec<u8> {
        self.hash("secret", &[&self.ledger]).as_bytes().to_vec()
    }

    /// A hash of some fields under the secret; `what` keeps uses apart.
    pub(super) fn hash(&self, what: &str, fields: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for field in std::iter::once(&what.as_bytes()).chain(fields) {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
        }
        hasher.finalize()
    }

    /// What stands for a fingerprint of data.
    pub(super) fn fingerprint(&self, given: &str) -> String {
        format!("keyed:{}", hex(self.hash("fingerprint", &[given.as_bytes()]).as_bytes()))
    }

    /// A head that may be shown: the chain's hashes themselves vouch for fingerprints, so with the rest known they would let one be guessed.
    pub(super) fn shown(&self, head: Head) -> Head {
        Head::of(head.events, self.hash("head", &[head.hash().as_bytes()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_keyed_depends_on_the_secret_and_on_what_it_is_for() {
        let (one, other) = (LedgerSecret::new(), LedgerSecret::new());
        assert_ne!(one.fingerprint("blake3:1"), other.fingerprint("blake3:1"));
        assert_eq!(one.fingerprint("blake3:1"), one.clone().fingerprint("blake3:1"));
        assert_ne!(one.hash("a", &[b"bc"]), one.hash("ab", &[b"c"]));
        assert_ne!(one.hash("a", &[b"b", b""]), one.hash("a", &[b"", b"b"]));
    }

    #[test]
    fn a_secret_of_which_one_byte_changed_is_none() {
        let secret = LedgerSecret::new();
        let (ledger, key, sound) = secret.parts();
        assert!(LedgerSecret::of(ledger, key, &sound).is_some());
        for place in 0..80 {
            let mut all = [ledger, key, &sound].concat();
            all[place] ^= 1;
            assert!(LedgerSecret::of(&all[..16], &all[16..48], &all[48..]).is_none(), "{place}");
        }
    }
}
