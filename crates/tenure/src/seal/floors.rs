//! The floor of each key: beginnings of sessions at or below it are refused.
//!
//! [`super`] explains why there must be a floor. There is one for each key, so that the sessions of
//! one key cannot make handshakes of another begin anew. Nothing that an outsider does moves a
//! member's floor: members have a table of their own.
//!
//! # Memory is bounded
//!
//! A table keeps at most `most` keys. One more makes it forget the key that began a session least
//! recently. Its floor goes into `rest`, which counts for every key that is not in the table: a
//! session of a forgotten key stays refused. A key that comes (back) into the table starts with
//! `rest`, for the same reason.
//!
//! The price: `rest` also refuses handshakes of keys that were never in the table. It is harmless,
//! because it is old. `rest` is at most the instant at which the forgotten key last began a
//! session, and `most` other keys have begun one after that. At most
//! [`Limits::welcomes`](super::sessions::Limits) sessions begin in a second, so `rest` is at least
//! `most / welcomes` behind the clock, 0.8 s by default, no matter how many keys one person holds.
//! A handshake with a shorter round trip is not touched.

use std::collections::BTreeMap;

use tenure_proto::{LocalTime, NodeId};

use super::limit::Rate;

/// Keys of each table. Each takes about 150 bytes.
const MOST: usize = 16_384;

/// The holder that began a session: for each of these there is a floor, and a limit on new sessions
/// and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// A holder of the cluster's key, by its name: the key itself is shared by all of them.
    Member(NodeId),
    /// A key of its own: a checksum of everything that the key was made for.
    Outsider([u8; 16]),
}

impl Holder {
    /// A number for a key of its own; `None` for the cluster's.
    pub(crate) fn key(self) -> Option<u64> {
        let Self::Outsider(sum) = self else { return None };
        sum.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    pub(super) fn is_member(self) -> bool {
        matches!(self, Self::Member(_))
    }
}

/// The floors of all keys, members apart from outsiders.
pub(super) struct Floors {
    members: Table,
    outsiders: Table,
    /// How many sessions one outsider's key may begin.
    beginnings: Rate,
}

impl Floors {
    pub(super) fn new(beginnings: Rate) -> Self {
        Self { members: Table::new(MOST), outsiders: Table::new(MOST), beginnings }
    }

    /// A session of this key may begin if its Welcome is newer than this.
    pub(super) fn floor(&self, holder: Holder) -> u64 {
        let table = self.table(holder);
        table.kept.get(&holder).map_or(table.rest, |entry| entry.floor)
    }

    /// A session of this key has ended without a newer one in its place: its Welcome must not begin
    /// it again.
    pub(super) fn raise(&mut self, holder: Holder, born: u64) {
        let entry = self.table_mut(holder).entry(holder);
        entry.floor = entry.floor.max(born);
    }

    /// Whether the key may begin one more session now. Members always may: they are believed in
    /// everything.
    pub(super) fn may_begin(&self, holder: Holder, now: LocalTime) -> bool {
        let whole_at = self.outsiders.kept.get(&holder).map_or(0, |entry| entry.whole_at);
        holder.is_member() || self.beginnings.used(whole_at, now.as_nanos()).is_some()
    }

    /// The key has begun a session.
    pub(super) fn has_begun(&mut self, holder: Holder, now: LocalTime) {
        let rate = self.beginnings;
        let entry = self.table_mut(holder).entry(holder);
        entry.whole_at = rate.used(entry.whole_at, now.as_nanos()).unwrap_or(entry.whole_at);
    }

    fn table(&self, holder: Holder) -> &Table {
        if holder.is_member() { &self.members } else { &self.outsiders }
    }

    fn table_mut(&mut self, holder: Holder) -> &mut Table {
        if holder.is_member() { &mut self.members } else { &mut self.outsiders }
    }
}

struct Entry {
    floor: u64,
    /// The state of the limit on beginnings.
    whole_at: u64,
    /// When it was last used, counted in uses of the table.
    used: u64,
}

struct Table {
    most: usize,
    rest: u64,
    uses: u64,
    kept: BTreeMap<Holder, Entry>,
    by_use: BTreeMap<u64, Holder>,
}

impl Table {
    fn new(most: usize) -> Self {
        Self { most, rest: 0, uses: 0, kept: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// The entry of a key that is used now.
    fn entry(&mut self, holder: Holder) -> &mut Entry {
        self.uses += 1;
        if let Some(entry) = self.kept.get(&holder) {
            self.by_use.remove(&entry.used);
        } else if self.kept.len() >= self.most {
            self.forget();
        }
        self.by_use.insert(self.uses, holder);
        let fresh = Entry { floor: self.rest, whole_at: 0, used: 0 };
        let entry = self.kept.entry(holder).or_insert(fresh);
        entry.used = self.uses;
        entry
    }

    /// Forgets the key that was not used for longest. Whatever it began stays refused.
    fn forget(&mut self) {
        let Some((_, holder)) = self.by_use.pop_first() else { return };
        if let Some(entry) = self.kept.remove(&holder) {
            self.rest = self.rest.max(entry.floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outsider(number: u64) -> Holder {
        Holder::Outsider(u128::from(number).to_be_bytes())
    }

    fn floors(most: usize) -> Floors {
        let mut floors = Floors::new(Rate::per_second(10, 3));
        (floors.members.most, floors.outsiders.most) = (most, most);
        floors
    }

    #[test]
    fn the_floor_of_one_key_is_no_other_keys() {
        let mut floors = floors(8);
        floors.raise(outsider(1), 500);
        floors.raise(Holder::Member(NodeId(1)), 700);
        floors.raise(outsider(1), 300);
        assert_eq!(floors.floor(outsider(1)), 500, "it never falls");
        assert_eq!(floors.floor(Holder::Member(NodeId(1))), 700);
        assert_eq!((floors.floor(outsider(2)), floors.floor(Holder::Member(NodeId(2)))), (0, 0));
    }

    #[test]
    fn a_forgotten_key_stays_refused_and_members_do_not_notice() {
        let mut floors = floors(3);
        floors.raise(Holder::Member(NodeId(1)), 5);
        for number in 1..=100 {
            floors.raise(outsider(number), number * 10);
            assert!(floors.outsiders.kept.len() <= 3 && floors.outsiders.by_use.len() <= 3);
        }
        for number in 1..=100 {
            assert!(floors.floor(outsider(number)) >= number * 10, "{number}");
        }
        assert_eq!(floors.outsiders.rest, 970, "that of the last key that was forgotten, and no more");
        assert_eq!((floors.members.rest, floors.floor(Holder::Member(NodeId(1)))), (0, 5));
        floors.has_begun(outsider(1), LocalTime::ZERO);
        assert_eq!(floors.floor(outsider(1)), 980, "it comes back with what was forgotten meanwhile");
    }

    #[test]
    fn a_key_begins_so_many_sessions_and_members_as_many_as_they_like() {
        let mut floors = floors(8);
        let begin = |floors: &mut Floors, holder, millis: u64| {
            let now = LocalTime::from_nanos(millis * 1_000_000);
            let may = floors.may_begin(holder, now);
            if may {
                floors.has_begun(holder, now);
            }
            may
        };
        let begun = (0..10).filter(|_| begin(&mut floors, outsider(1), 0)).count();
        assert_eq!(begun, 3);
        assert!(begin(&mut floors, outsider(2), 0), "another key has its own allowance");
        assert!(begin(&mut floors, outsider(1), 100), "it grows again");
        assert!((0..100).all(|_| begin(&mut floors, Holder::Member(NodeId(1)), 0)));
    }
}
