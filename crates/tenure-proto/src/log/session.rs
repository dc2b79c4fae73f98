//! Sessions: a write that is in the log twice is carried out once.
//!
//! A client that hears nothing asks again, at another process perhaps, and then its write may be
//! chosen in two slots. Each session numbers its writes, one after the other, and every process
//! keeps the number of the last one carried out: a write with a number not above that was carried
//! out before. The table changes with applied slots alone, so it is the same everywhere at the same
//! slot; and it is part of every snapshot, or a process restored from one would carry out writes
//! again.
//!
//! A session is remembered together with the nonce that opened it: a repeated request to open it
//! finds it, in whichever slot that was, and also if that slot was skipped by a snapshot.
//!
//! The table is bounded. A session that was evicted from it may have a write in the log that was
//! carried out, so its writes are refused, not carried out; and because a session is named by the
//! slot that opened it, no late message opens it again.

use std::collections::BTreeMap;

use super::message::{Session, Slot};

/// A session's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The nonce that opened it.
    pub nonce: u128,
    /// The sequence number of its last write that was carried out; 0 before the first.
    pub last: u64,
    /// The slot that used it last.
    pub used: Slot,
}

/// The open sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sessions(BTreeMap<Session, Seen>);

impl Sessions {
    /// Makes the table from the parts that a disk or a wire held.
    pub fn from_parts(parts: impl IntoIterator<Item = (Session, Seen)>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// All sessions, rising.
    pub fn iter(&self) -> impl Iterator<Item = (Session, Seen)> + '_ {
        self.0.iter().map(|(session, seen)| (*session, *seen))
    }

    /// The record of a session, if it is open.
    pub fn get(&self, session: Session) -> Option<Seen> {
        self.0.get(&session).copied()
    }

    /// The session that was opened by a nonce, if it is open.
    pub fn opened_by(&self, nonce: u128) -> Option<Session> {
        self.iter().find(|(_, seen)| seen.nonce == nonce).map(|(session, _)| session)
    }

    /// Opens one at `slot`, unless that was done before, and closes the one used least recently if
    /// there are more than `most`.
    pub(super) fn open(&mut self, nonce: u128, slot: Slot, most: usize) -> (Session, Option<Session>) {
        if let Some(session) = self.opened_by(nonce) {
            return (session, None);
        }
        let session = Session(slot.0);
        self.0.insert(session, Seen { nonce, last: 0, used: slot });
        let oldest =
            self.0.iter().min_by_key(|(session, seen)| (seen.used, **session)).map(|(session, _)| *session);
        let closed = oldest.filter(|_| self.0.len() > most);
        if let Some(closed) = closed {
            self.0.remove(&closed);
        }
        (session, closed)
    }

    /// Notes a write that is carried out at `slot`, or comes once more.
    pub(super) fn note(&mut self, session: Session, number: u64, slot: Slot) {
        if let Some(seen) = self.0.get_mut(&session) {
            *seen = Seen { last: seen.last.max(number), used: slot, ..*seen };
        }
    }
}
