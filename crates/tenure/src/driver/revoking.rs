//! Keys that are revoked, or expire: kept on the disk, told to all members, and refused.
//!
//! **A revocation holds once a quorum has it.** A candidate leads only by the grants of a quorum,
//! and any two quorums share a member: one that refuses the key. So the member that is asked to
//! revoke a key tells all others, each writes it to its disk and says so, and the answer names
//! those who have.
//!
//! Members tell each other all of the list when they ask for each other's clocks: every ten
//! seconds, and soon after a session with a new life has begun. So a member that was down, or is
//! new, has it soon. The list only grows ([`Revocations`]), so it does not matter in which order
//! they hear of what.
//!
//! Nobody waits for the disk: the file is written on another thread, one write at a time, and the
//! driver is told when it is done. A key is refused from the moment at which a member hears of it.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use tenure_proto::quorum::NodeSet;
use tenure_proto::{LocalTime, NodeId};
use tokio::sync::{mpsc, oneshot};

use super::questions::later;
use super::{Driver, Notice};
use crate::error::RevokeError;
use crate::node::{Revoked, RevokedKey};
use crate::seal::{Full, MAX_TOLD, Revocation, Revocations, Serial, Sessions};
use crate::store::RevokedFile;
use crate::sys::clock::{Which, read};
use crate::wall_clock::{Reading, WallClock};
use crate::wire::Item;

/// How long members have to say that they have a revocation.
const HAVE_WITHIN: Duration = Duration::from_secs(3);

/// How often they are told again meanwhile.
const AGAIN: Duration = Duration::from_millis(200);

/// How often the date is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long after a failed write it is tried again.
const MEND: Duration = Duration::from_secs(5);

/// How old the date in the file may become, in seconds.
const DAY: u64 = 86_400;

/// The most answers that wait for the disk. A member that gets none asks again.
const MOST_OWED: usize = 1024;

/// A key that is to be revoked.
pub(crate) struct RevokeOrder {
    pub(crate) serial: Serial,
    pub(crate) not_after: Option<u64>,
    pub(crate) reply: oneshot::Sender<Result<Revoked, RevokeError>>,
}

/// One that is told to all members.
struct Asked {
    entry: Revocation,
    reply: oneshot::Sender<Result<Revoked, RevokeError>>,
    holders: BTreeSet<NodeId>,
    /// The change of the list after which this member has it itself.
    change: u64,
    again: LocalTime,
    deadline: LocalTime,
}

/// The list of one member, and what is under way.
#[derive(Default)]
pub(crate) struct Revoking {
    list: Revocations,
    /// The folder of the store. `None`: this process grants nothing, and refuses nobody.
    folder: Option<PathBuf>,
    clock: Option<WallClock>,
    look_at: Option<LocalTime>,
    /// The date that is in the file.
    stored: Option<u64>,
    /// Counts what the file should have and may not have yet.
    changes: u64,
    writing: Option<u64>,
    durable: u64,
    /// After a failed write: not before this.
    mend_at: Option<LocalTime>,
    asked: Vec<Asked>,
    /// Members to be told that a key is on the disk, after which change.
    owed: VecDeque<(u64, NodeId, Serial)>,
}

fn reading() -> Reading {
    Reading { boot: read(Which::Boot), wall: read(Which::Real) / 1_000_000_000 }
}

impl Revoking {
    pub(crate) fn new(folder: PathBuf, file: RevokedFile) -> Self {
        let clock = Some(WallClock::start(reading(), file.date));
        let list = Revocations::new(file.keys);
        Self { list, folder: Some(folder), clock, stored: file.date, ..Self::default() }
    }

    /// Sessions that refuse what is refused when the node starts.
    pub(crate) fn applied(&self, mut sessions: Sessions) -> Sessions {
        sessions.set_revoked(self.list.serials());
        if let Some(date) = self.date() {
            sessions.set_date(date);
        }
        sessions
    }

    pub(crate) fn next_wake(&self) -> Option<LocalTime> {
        self.asked.iter().map(|asked| asked.again.min(asked.deadline)).min()
    }

    /// The date by which keys expire.
    pub(crate) fn date(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.date(read(Which::Boot)))
    }

    pub(crate) fn keys(&self) -> Vec<RevokedKey> {
        let shown = |entry: Revocation| RevokedKey { serial: entry.serial, not_after: entry.not_after };
        self.list.entries().into_iter().map(shown).collect()
    }

    /// Writes the file on another thread, if it should be written and is not being written.
    fn write(&mut self, now: LocalTime, notices: &mpsc::UnboundedSender<Notice>) {
        let Some(folder) = self.folder.clone() else { return };
        if self.writing.is_some() || self.durable == self.changes {
            return;
        }
        if self.mend_at.is_some_and(|at| now < at) {
            return;
        }
        self.writing = Some(self.changes);
        let file = RevokedFile { keys: self.list.entries(), date: self.date() };
        let notices = notices.clone();
        tokio::task::spawn_blocking(move || {
            let done = file.write(&folder).map(|()| file.date);
            let _ = notices.send(Notice::RevokedKept(done.map_err(|error| error.to_string())));
        });
    }
}

impl Driver {
    pub(super) fn on_revoke_order(&mut self, order: RevokeOrder) {
        let RevokeOrder { serial, not_after, reply } = order;
        if self.revoking.folder.is_none() || self.machine.is_none() {
            let _ = reply.send(Err(RevokeError::NotAMember));
            return;
        }
        let accepted = self.net.sessions.accepted();
        let entry = Revocation::new(serial, not_after, &accepted);
        if let Err(Full) = self.learn_revoked(&entry) {
            let _ = reply.send(Err(RevokeError::Full));
            return;
        }
        if !self.revoking.list.has(serial) {
            let _ = reply.send(Err(RevokeError::Expired));
            return;
        }
        let now = self.now();
        let (change, deadline) = (self.revoking.changes, later(now, HAVE_WITHIN));
        let holders = BTreeSet::new();
        self.revoking.asked.push(Asked { entry, reply, holders, change, again: now, deadline });
        self.on_key_time(now);
    }

    /// Another member tells of revoked keys, and wants to hear when they are on the disk.
    pub(super) fn on_revoked(&mut self, from: NodeId, keys: &[Revocation], answer: bool) {
        if self.revoking.folder.is_none() {
            return;
        }
        for entry in keys {
            let known = self.learn_revoked(entry).is_ok() && self.revoking.list.has(entry.serial);
            if known && answer && self.revoking.owed.len() < MOST_OWED {
                self.revoking.owed.push_back((self.revoking.changes, from, entry.serial));
            }
        }
        self.tell_kept();
        let now = self.now();
        self.revoking.write(now, self.net.notices());
    }

    /// Another member has these on its disk.
    pub(super) fn on_revoked_kept(&mut self, from: NodeId, keys: &[Serial]) {
        for asked in self.revoking.asked.iter_mut().filter(|asked| keys.contains(&asked.entry.serial)) {
            asked.holders.insert(from);
        }
        self.answer_revoked(self.now());
    }

    /// The file is written, or could not be.
    pub(super) fn on_revoked_written(&mut self, done: Result<Option<u64>, String>) {
        let now = self.now();
        let Some(change) = self.revoking.writing.take() else { return };
        match done {
            Ok(date) => {
                self.revoking.durable = change;
                self.revoking.stored = date;
                self.tell_kept();
                self.answer_revoked(now);
            }
            Err(reason) => {
                self.revoking.mend_at = Some(later(now, MEND));
                tracing::error!(name: "tenure.revoked_unkept", node = %self.name, reason, "revoked keys cannot be written: they are refused until a restart, which would forget them");
            }
        }
        self.revoking.write(now, self.net.notices());
    }

    /// Everything about keys that time brings.
    pub(super) fn on_key_time(&mut self, now: LocalTime) {
        if self.revoking.look_at.is_none_or(|at| at <= now) {
            self.revoking.look_at = Some(later(now, LOOK));
            self.look_at_date();
        }
        let due: Vec<Revocation> = self
            .revoking
            .asked
            .iter_mut()
            .filter(|asked| asked.again <= now)
            .map(|asked| {
                asked.again = later(now, AGAIN);
                asked.entry.clone()
            })
            .collect();
        for entry in due {
            self.tell_members(&Item::Revoked { keys: vec![entry], answer: true });
        }
        self.answer_revoked(now);
        self.revoking.write(now, self.net.notices());
    }

    /// Follows the wall clock where that is safe, and ends what has expired.
    fn look_at_date(&mut self) {
        let now = reading();
        let Some(clock) = &mut self.revoking.clock else { return };
        if let Some(by_s) = clock.look(now) {
            tracing::warn!(name: "tenure.date", node = %self.name, by_s, "the wall clock jumped: keys expire by the date as it was; if the wall clock is right, confirm it with HUP");
        }
        let date = clock.date(now.boot);
        self.net.sessions.set_date(date);
        let accepted = self.net.sessions.accepted();
        let tidied = self.revoking.list.tidy(&accepted, date);
        if tidied {
            self.refuse_revoked();
        }
        let old = self.revoking.stored.is_none_or(|stored| date.abs_diff(stored) >= DAY);
        if tidied || old && self.revoking.writing.is_none() && self.revoking.durable == self.revoking.changes
        {
            self.revoking.changes += 1;
        }
    }

    /// An operator has given new keys, and with that says that the wall clock is right.
    pub(super) fn confirm_date(&mut self) {
        if let Some(clock) = &mut self.revoking.clock {
            clock.confirm(reading());
            self.look_at_date();
        }
    }

    /// Adds to the list, and refuses the key from now on.
    fn learn_revoked(&mut self, entry: &Revocation) -> Result<(), Full> {
        let date = self.revoking.date().unwrap_or_default();
        let accepted = self.net.sessions.accepted();
        let was_there = self.revoking.list.has(entry.serial);
        let changed = self.revoking.list.add(entry, &accepted, date).inspect_err(|Full| {
            tracing::error!(name: "tenure.revoked_full", node = %self.name, key = %entry.serial, "the list of revoked keys is full: this key is not refused; change the cluster's key");
        })?;
        if changed {
            self.revoking.changes += 1;
        }
        if !was_there && self.revoking.list.has(entry.serial) {
            tracing::info!(name: "tenure.key_revoked", node = %self.name, key = %entry.serial, "a key is refused from now on: it was revoked");
            self.refuse_revoked();
        }
        Ok(())
    }

    fn refuse_revoked(&mut self) {
        self.net.sessions.set_revoked(self.revoking.list.serials());
    }

    /// Answers those who wait for the disk, as far as it has come.
    fn tell_kept(&mut self) {
        let durable = self.revoking.durable;
        while let Some((change, to, serial)) = self.revoking.owed.front().copied() {
            if change > durable {
                break;
            }
            self.revoking.owed.pop_front();
            self.net.send(to, &Item::RevokedKept(vec![serial]));
        }
    }

    /// Tells the caller that revoked a key which members have that, once all have or time is up.
    fn answer_revoked(&mut self, now: LocalTime) {
        let Some(machine) = self.machine.as_ref().filter(|_| !self.revoking.asked.is_empty()) else { return };
        let quorums = machine.charter().body.quorums.clone();
        let (me, durable) = (self.me, self.revoking.durable);
        let has = |asked: &Asked, node: &NodeId| {
            asked.holders.contains(node) || *node == me && asked.change <= durable
        };
        let done = |asked: &mut Asked| {
            asked.deadline <= now || quorums.members().iter().all(|node| has(asked, node))
        };
        let finished: Vec<Asked> = self.revoking.asked.extract_if(.., done).collect();
        for asked in finished {
            let members = quorums.members();
            let holding: NodeSet =
                (0..members.len()).filter(|position| has(&asked, &members[*position])).collect();
            let named = |wanted: bool| {
                let nodes = members.iter().filter(|node| has(&asked, node) == wanted);
                nodes.filter_map(|node| self.net.name(*node)).collect()
            };
            let revoked = Revoked {
                serial: asked.entry.serial,
                held_by: named(true),
                missing: named(false),
                is_quorum: quorums.is_quorum(holding),
            };
            let _ = asked.reply.send(Ok(revoked));
        }
    }

    fn tell_members(&mut self, item: &Item) {
        for member in self.members().into_iter().filter(|member| *member != self.me) {
            self.net.send(member, item);
        }
    }

    /// Tells one member of all revoked keys.
    pub(super) fn tell_revoked(&mut self, to: NodeId) {
        if self.revoking.list.is_empty() {
            return;
        }
        for keys in self.revoking.list.entries().chunks(MAX_TOLD) {
            self.net.send(to, &Item::Revoked { keys: keys.to_vec(), answer: false });
        }
    }
}
