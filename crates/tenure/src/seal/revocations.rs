//! The keys that were revoked, as one member knows them.
//!
//! A set that only grows, so that members can tell each other of it in any order and as often as
//! they like: in the end all have all of it. Two things make it smaller, and both only when the
//! entry means nothing any more:
//!
//! * the key has expired, [`KEPT_AFTER_EXPIRY`] ago;
//! * none of the cluster's keys from which it can have been made is accepted any more. Those are
//!   the keys that were accepted when it was revoked: an entry names them.
//!
//! A member that has dropped an entry for one of these reasons does not take it again from one that
//! has not.

use std::collections::BTreeMap;

use super::claims::Serial;
use super::keys::KeyId;
use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};

/// The most keys of the list. Larger lists make no sense: the cluster's key should be changed
/// instead.
pub(crate) const MAX_REVOKED: usize = 1024;

/// The most entries that one item tells of: they fit a datagram.
pub(crate) const MAX_TOLD: usize = 16;

/// The most keys of the cluster that an entry names. Where more were accepted, it names none and
/// stays.
const MAX_ROOTS: usize = 4;

/// How long an entry stays after its key has expired, in seconds. A date that is set back by less
/// does not make the key good again.
const KEPT_AFTER_EXPIRY: u64 = 90 * 86_400;

/// One key that was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocation {
    pub(crate) serial: Serial,
    /// The last second in which the key would have been good, if the caller that revoked it knew.
    pub(crate) not_after: Option<u64>,
    /// The keys of the cluster that it may have been made from. Empty: not known.
    roots: Vec<KeyId>,
}

impl Revocation {
    /// A key is revoked while these keys of the cluster are accepted.
    pub(crate) fn new(serial: Serial, not_after: Option<u64>, accepted: &[KeyId]) -> Self {
        let roots = if accepted.len() <= MAX_ROOTS { accepted.to_vec() } else { Vec::new() };
        Self { serial, not_after, roots }
    }

    /// The memory that it holds beside itself, in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.roots.capacity() * size_of::<KeyId>()
    }

    /// Whether it means nothing any more.
    fn is_spent(&self, accepted: &[KeyId], date: u64) -> bool {
        let expired = self.not_after.is_some_and(|last| date > last.saturating_add(KEPT_AFTER_EXPIRY));
        let rotated = !self.roots.is_empty() && self.roots.iter().all(|root| !accepted.contains(root));
        expired || rotated
    }

    /// Takes over what another entry of the same key knows, so that the entry stays at least as
    /// long as either.
    fn join(&mut self, other: &Self) -> bool {
        let before = self.clone();
        self.not_after = self.not_after.zip(other.not_after).map(|(one, two)| one.max(two));
        if self.roots.is_empty() || other.roots.is_empty() {
            self.roots.clear();
        } else {
            self.roots.extend(&other.roots);
            self.roots.sort_unstable();
            self.roots.dedup();
            if self.roots.len() > MAX_ROOTS {
                self.roots.clear();
            }
        }
        *self != before
    }
}

impl Wire for Serial {
    fn write(&self, to: &mut Writer) {
        to.raw(&self.0.to_be_bytes());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(u64::from_be_bytes(from.raw(8)?.try_into().map_err(|_| DecodeError::Truncated)?)))
    }
}

impl Wire for KeyId {
    fn write(&self, to: &mut Writer) {
        to.raw(&self.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(from.raw(4)?.try_into().map_err(|_| DecodeError::Truncated)?))
    }
}

impl Wire for Revocation {
    fn write(&self, to: &mut Writer) {
        self.serial.write(to);
        to.option(self.not_after.as_ref(), |to, second| to.number(*second));
        write_list(to, &self.roots);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            serial: Serial::read(from)?,
            not_after: from.option(Reader::number)?,
            roots: read_list(from, MAX_ROOTS)?,
        })
    }
}

/// The list is full: this key was not revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// All keys that were revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revocations(BTreeMap<Serial, Revocation>);

impl Revocations {
    /// From a list, as [`Self::entries`] gives it.
    pub(crate) fn new(entries: Vec<Revocation>) -> Self {
        Self(entries.into_iter().take(MAX_REVOKED).map(|entry| (entry.serial, entry)).collect())
    }

    /// Adds a key. Returns whether anything changed; a key that is spent already changes nothing.
    pub(crate) fn add(&mut self, new: &Revocation, accepted: &[KeyId], date: u64) -> Result<bool, Full> {
        if let Some(entry) = self.0.get_mut(&new.serial) {
            return Ok(entry.join(new));
        }
        if new.is_spent(accepted, date) {
            return Ok(false);
        }
        if self.0.len() >= MAX_REVOKED {
            return Err(Full);
        }
        self.0.insert(new.serial, new.clone());
        Ok(true)
    }

    /// Drops what means nothing any more. Returns whether anything changed.
    pub(crate) fn tidy(&mut self, accepted: &[KeyId], date: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|_, entry| !entry.is_spent(accepted, date));
        self.0.len() != before
    }

    pub(crate) fn has(&self, serial: Serial) -> bool {
        self.0.contains_key(&serial)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn serials(&self) -> impl Iterator<Item = Serial> + '_ {
        self.0.keys().copied()
    }

    pub(crate) fn entries(&self) -> Vec<Revocation> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: KeyId = KeyId([1; 4]);
    const NEW: KeyId = KeyId([2; 4]);

    fn entry(serial: u64, not_after: Option<u64>, roots: &[KeyId]) -> Revocation {
        Revocation::new(Serial(serial), not_after, roots)
    }

    #[test]
    fn a_key_stays_revoked_until_no_key_is_accepted_that_it_can_come_from() {
        let mut list = Revocations::default();
        assert_eq!(list.add(&entry(1, None, &[OLD]), &[OLD], 0), Ok(true));
        assert_eq!(list.add(&entry(2, None, &[OLD, NEW]), &[OLD, NEW], 0), Ok(true));
        assert!(!list.tidy(&[OLD, NEW], 0));
        assert!(list.tidy(&[NEW], 0));
        assert!(!list.has(Serial(1)) && list.has(Serial(2)), "the second may come from the new key");
        assert_eq!(list.add(&entry(1, None, &[OLD]), &[NEW], 0), Ok(false), "a slower member tells again");
        assert!(list.tidy(&[KeyId([3; 4])], 0) && list.is_empty());
    }

    #[test]
    fn an_entry_goes_long_after_its_key_has_expired() {
        let mut list = Revocations::default();
        assert_eq!(list.add(&entry(1, Some(100), &[OLD]), &[OLD], 50), Ok(true));
        assert!(!list.tidy(&[OLD], 101) && !list.tidy(&[OLD], 100 + KEPT_AFTER_EXPIRY));
        assert!(list.tidy(&[OLD], 101 + KEPT_AFTER_EXPIRY));
    }

    #[test]
    fn two_entries_of_one_key_stay_as_long_as_either() {
        let mut list = Revocations::default();
        assert_eq!(list.add(&entry(1, Some(100), &[OLD]), &[OLD], 0), Ok(true));
        assert_eq!(list.add(&entry(1, Some(100), &[OLD]), &[OLD], 0), Ok(false));
        assert_eq!(list.add(&entry(1, None, &[NEW]), &[OLD, NEW], 0), Ok(true));
        assert!(!list.tidy(&[NEW], u64::MAX));
        assert_eq!(list.add(&entry(1, Some(7), &[]), &[NEW], 0), Ok(true));
        assert!(!list.tidy(&[], u64::MAX), "one that names no key of the cluster stays");
    }

    #[test]
    fn a_full_list_takes_no_more_and_says_so() {
        let mut list = Revocations::default();
        for serial in 0..MAX_REVOKED as u64 {
            assert_eq!(list.add(&entry(serial, None, &[OLD]), &[OLD], 0), Ok(true));
        }
        assert_eq!(list.add(&entry(9_999_999, None, &[OLD]), &[OLD], 0), Err(Full));
        assert_eq!(list.add(&entry(5, None, &[OLD]), &[OLD], 0), Ok(false), "one that is there stays");
        assert_eq!(Revocations::new(list.entries()), list);
    }
}
