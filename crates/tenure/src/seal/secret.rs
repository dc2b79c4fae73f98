//! Bytes that nobody may see, and how further ones are derived from them (HKDF with SHA-256).
//!
//! Every derivation has a label that is used for nothing else, and every part of variable length
//! that goes into it is written after its length: two derivations can only agree if they mean the
//! same thing.

use std::fmt;
use std::hint::black_box;

use aws_lc_rs::aead::{AES_256_GCM_SIV, LessSafeKey, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac;

/// 32 bytes that are overwritten when they are dropped, as far as a program can tell: copies that
/// the compiler made while it moved them are not found.
#[derive(Clone)]
pub(super) struct Secret([u8; 32]);

impl Secret {
    pub(super) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Makes `key` fit for derivations, bound to `context`.
    pub(super) fn extract(context: &[u8], key: &Self) -> Self {
        let prk = Salt::new(HKDF_SHA256, context).extract(&key.0);
        Self(fill(&prk, &[b"tenure root\0"]))
    }

    /// Derives further bytes for the purpose that `parts` names; the first part is the label.
    pub(super) fn derive<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        fill(&Prk::new_less_safe(HKDF_SHA256, &self.0), parts)
    }

    /// A further secret.
    pub(super) fn derive_secret(&self, parts: &[&[u8]]) -> Self {
        Self(self.derive(parts))
    }

    /// A key to seal packets with.
    pub(super) fn derive_sealing(&self, parts: &[&[u8]]) -> LessSafeKey {
        self.derive_secret(parts).sealing()
    }

    /// These bytes themselves, as a key to seal packets with.
    pub(super) fn sealing(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, &self.0).expect("the key has 32 bytes"))
    }

    /// A key for checksums that only its holders can make.
    pub(super) fn derive_mac(&self, parts: &[&[u8]]) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.derive_secret(parts).bytes())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever they differ.
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Overwrites bytes in a way that is not optimised away.
pub(super) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    black_box(bytes);
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn fill<const N: usize>(prk: &Prk, parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let derived = prk.expand(parts, Length(N)).and_then(|okm| okm.fill(&mut bytes));
    derived.expect("at most 255 hashes' worth is asked for");
    bytes
}
