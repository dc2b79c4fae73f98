//! Whether a peer is of this very cluster: compared before anything that it says counts.
//!
//! Two clusters may have one id and one key: founded twice, or each half of one has given the other
//! up by force. Nothing in a session shows that. So the first words of a session, after a handshake
//! with fresh challenges, are an [`Origin`]: what the sender goes by. Until a holder of the
//! cluster's key has said so, its votes are not counted and it is asked ([`Item::AskOrigin`]). The
//! machine judges what follows (`tenure_proto::strong::epoch::lineage`): a member that hears of a
//! foreign charter stops. A scoped key cannot cause that: its holder's word on charters is not
//! heard.
//!
//! Two halves that gave each other up never ask each other for anything. So members tell it again
//! now and then, to former members and to all whom the configuration names, and greet those with
//! whom there is no session.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::epoch::{Charter, CharterId, Epoch, EpochTalk, Relation, StoreId};
use tenure_proto::strong::{Cell, Command, Message, Rules as _, Sound};
use tenure_proto::{Incarnation, Input, LocalTime, NodeId};
use tokio::sync::oneshot;

use super::Driver;
use super::questions::later;
use crate::chance;
use crate::config::{ConfigError, Key};
use crate::error::Stopped;
use crate::seal::Peer;
use crate::wire::{self, Item, Origin};

/// How often members tell again what they go by.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// How often members look whether the others are there.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Members that were not heard for so long are asked something, unless a quorum was heard.
const QUIET: Duration = Duration::from_secs(1);

/// How often a peer is asked for its origin at most.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// All that is known about the origins of peers.
pub(super) struct Kin {
    /// Peers that have told, in the life that has told it.
    known: BTreeMap<NodeId, Known>,
    /// Peers that were told what this node goes by, in which life of theirs.
    told: BTreeMap<NodeId, u128>,
    asked: BTreeMap<NodeId, LocalTime>,
    /// The highest life of each member's store. On the disk too.
    lives: BTreeMap<StoreId, Life>,
    /// Questions to processes that seem to be of an older life than another that was heard.
    pub(super) doubts: BTreeMap<NodeId, u128>,
    /// Tells this start from that of another process with a copy of the store.
    start: u128,
    /// When to tell again.
    pub(super) tell_at: LocalTime,
    /// When to look again whether the other members are there.
    look_at: LocalTime,
    /// The founding of a charter that was refused, for it is not the one that the configuration
    /// names.
    pub(super) refused: Option<u128>,
}

/// The newest life of a store that was heard.
#[derive(Clone, Copy)]
struct Life {
    highest: Incarnation,
    start: u128,
    condemned: bool,
}

struct Known {
    boot: u128,
    /// It is of another cluster, or its store is not to be used.
    foreign: bool,
    store: Option<StoreId>,
    /// The epoch that it goes by.
    epoch: Option<Epoch>,
}

impl Default for Kin {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            told: BTreeMap::new(),
            asked: BTreeMap::new(),
            lives: BTreeMap::new(),
            doubts: BTreeMap::new(),
            start: chance::wide(),
            tell_at: LocalTime::ZERO,
            look_at: LocalTime::ZERO,
            refused: None,
        }
    }
}

impl Kin {
    /// The machine has started: what was told before could not be compared.
    pub(super) fn begin(&mut self, now: LocalTime) {
        let (lives, start) = (std::mem::take(&mut self.lives), self.start);
        *self = Self { tell_at: later(now, TELL_AGAIN), lives, start, ..Self::default() };
    }

    /// Loads the disk's records about the stores of others.
    pub(super) fn recall(&mut self, durable: &[Cell]) {
        for cell in durable {
            if let Cell::Life { store, highest, start, condemned } = cell {
                let life = Life { highest: *highest, start: *start, condemned: *condemned };
                self.lives.insert(*store, life);
            }
        }
    }

    /// Whether a store is not to be used any more.
    pub(super) fn is_condemned(&self, store: StoreId) -> bool {
        self.lives.get(&store).is_some_and(|life| life.condemned)
    }
}

impl Driver {
    /// There is a session with a peer: it is told where this node comes from, once in each life.
    pub(super) fn introduce_self(&mut self, peer: &Peer) {
        if self.kin.told.get(&peer.id) != Some(&peer.boot) {
            self.forget_strangers();
            self.kin.told.insert(peer.id, peer.boot);
            self.tell_origin(peer.id);
        }
    }

    /// Bounds the memory for peers to a few times that of sessions, whatever names come and go.
    fn forget_strangers(&mut self) {
        let sessions = &self.net.sessions;
        if self.kin.told.len() > 2 * sessions.peers() + 64 {
            self.kin.told.retain(|peer, _| sessions.has_session(*peer));
            self.kin.known.retain(|peer, _| sessions.has_session(*peer));
            self.kin.asked.retain(|peer, _| sessions.has_session(*peer));
        }
        if self.net.addresses.strangers() > 2 * sessions.peers() + 1024 {
            let members: BTreeSet<NodeId> = self.members().into_iter().collect();
            let sessions = &self.net.sessions;
            let stays = |peer| members.contains(&peer) || sessions.has_session(peer);
            self.net.addresses.forget_strangers(stays);
        }
    }

    /// Tells a peer where this node comes from.
    pub(super) fn tell_origin(&mut self, to: NodeId) {
        self.answer_origin(to, None);
    }

    /// The same, as the answer to a question.
    pub(super) fn answer_origin(&mut self, to: NodeId, echo: Option<u128>) {
        if matches!(self.config.key, Key::Scoped(_)) {
            return; // Nobody would hear it.
        }
        let goes_by = self.machine.as_ref().map(|machine| machine.charter().id());
        let origin = Origin { goes_by, store: self.persistence.store, start: self.kin.start, echo };
        self.net.send(to, &Item::Origin(origin));
    }

    /// This node goes by another charter: all that may have to do with it are told.
    pub(super) fn tell_origins(&mut self) {
        self.kin.told.clear();
        self.kin.tell_at = self.now();
    }

    /// Reads the origin of an unknown peer, wherever it is in the packet: items before it count
    /// too.
    pub(super) fn judge_origin(&mut self, peer: &Peer, bytes: &[u8]) {
        if !peer.rights.is_cluster() || self.known_origin(peer).is_some() {
            return;
        }
        for item in wire::decode(bytes) {
            if let Ok(Item::Origin(origin)) = item {
                self.on_origin(peer, &origin);
            }
        }
    }

    fn known_origin(&self, peer: &Peer) -> Option<&Known> {
        self.kin.known.get(&peer.id).filter(|known| known.boot == peer.boot)
    }

    /// Whether a peer has told in its present session what it goes by.
    pub(super) fn has_told_origin(&self, peer: NodeId) -> bool {
        self.net.sessions.peer(peer).is_some_and(|peer| self.known_origin(peer).is_some())
    }

    /// The newest epoch that a peer of this cluster goes by, as far as peers with sessions told.
    pub(super) fn newest_told_epoch(&self) -> Option<Epoch> {
        let told = self.kin.known.iter().filter(|(peer, known)| {
            !known.foreign && self.net.sessions.peer(**peer).is_some_and(|peer| peer.boot == known.boot)
        });
        told.filter_map(|(_, known)| known.epoch).max()
    }

    /// Asks members that have been quiet for a moment what they go by, unless a quorum was heard: a
    /// leader's renewals are enough where a member leads. A quorum that is gone is noticed by its
    /// silence within about two seconds, and a member that was removed while it was down hears of
    /// that at once.
    pub(super) fn look_for_members(&mut self, now: LocalTime) {
        let Some(machine) = self.machine.as_ref().filter(|_| self.config.role.grants()) else { return };
        if now < self.kin.look_at {
            return;
        }
        self.kin.look_at = later(now, LOOK_AGAIN);
        let quorums = &machine.charter().body.quorums;
        let (me, members) = (self.me, quorums.members().to_vec());
        let is_heard = |member: &NodeId| {
            let heard = self.net.sessions.heard_at(*member);
            *member == me || heard.is_some_and(|at| now < later(at, QUIET))
        };
        let heard: NodeSet = (0..members.len()).filter(|position| is_heard(&members[*position])).collect();
        if quorums.is_quorum(heard) {
            return;
        }
        let quiet: Vec<NodeId> = members.into_iter().filter(|member| !is_heard(member)).collect();
        for member in quiet {
            match self.net.sessions.heard_at(member) {
                Some(_) => self.net.send(member, &Item::AskOrigin { nonce: 0 }),
                None => self.net.greet(member, now),
            }
        }
    }

    /// Whether a charter that this process would go by names another store under its name. It stops
    /// then, before it goes by it: the charter is decided, so this store is no member's.
    pub(super) fn refuses_name(&mut self, charter: &Charter) -> bool {
        let newer = self.machine.as_ref().is_some_and(|machine| machine.charter().epoch < charter.epoch);
        let refused = newer && self.is_named_for_another(charter);
        if refused {
            let name = self.name.clone();
            self.stop(Stopped::NameTaken { name });
        }
        refused
    }

    /// The store that a process has announced in its newest session.
    pub(super) fn announced_store(&self, peer: NodeId) -> Option<StoreId> {
        self.kin.known.get(&peer).filter(|_| self.net.sessions.has_session(peer))?.store
    }

    /// The store of a member, as the charter names it, or of another as it was announced.
    pub(super) fn store_of(&self, peer: NodeId) -> Option<StoreId> {
        let charter = self.machine.as_ref().map(|machine| machine.charter());
        let own = || (peer == self.me).then_some(self.persistence.store).flatten();
        let named = charter.and_then(|charter| charter.body.stores.get(peer));
        named.or_else(own).or_else(|| self.announced_store(peer))
    }

    /// Whether a charter names another store under this node's name: this one has promised nothing
    /// to anybody, and must never grant as if it were that one.
    pub(super) fn is_named_for_another(&self, charter: &Charter) -> bool {
        charter.has(self.me) && !Sound.is_same_store(charter.body.stores.get(self.me), self.persistence.store)
    }

    /// Whether what a peer says may count. The machine itself compares decided charters.
    pub(super) fn counts(&self, peer: &Peer, message: &Message) -> bool {
        let compared = matches!(
            message,
            Message::Epoch(EpochTalk::Decided(_) | EpochTalk::GoesBy(_) | EpochTalk::Unknown { .. })
        );
        compared || !peer.rights.is_cluster() || self.known_origin(peer).is_some_and(|known| !known.foreign)
    }

    /// A peer whose words do not count is asked where it comes from, unless that is known.
    pub(super) fn ask_origin(&mut self, peer: &Peer, now: LocalTime) {
        let asked = self.kin.asked.get(&peer.id).is_some_and(|at| now < later(*at, ASK_AGAIN));
        if !asked && self.known_origin(peer).is_none() {
            self.kin.asked.insert(peer.id, now);
            self.net.send(peer.id, &Item::AskOrigin { nonce: 0 });
        }
    }

    /// The machine has started: those with whom there are sessions have told where they come from
    /// before it could be compared. Asked now, they answer together with the first request, whose
    /// answer would not count otherwise, and be waited for again.
    pub(super) fn ask_origins(&mut self, now: LocalTime) {
        for member in self.members() {
            if let Some(peer) = self.net.sessions.peer(member).cloned() {
                self.ask_origin(&peer, now);
            }
        }
    }

    /// A holder of the cluster's key tells where it comes from.
    pub(super) fn on_origin(&mut self, peer: &Peer, origin: &Origin) {
        let here = self.machine.as_ref().map(|machine| machine.charter().id());
        let compared = here.zip(origin.goes_by.as_ref()).map(|(here, there)| here.relation(there));
        let foreign = compared == Some(Relation::Foreign);
        let doubted = self.doubts_life(peer, origin);
        let epoch = origin.goes_by.as_ref().map(|charter| charter.epoch);
        let known = Known { boot: peer.boot, foreign: foreign || doubted, store: origin.store, epoch };
        self.kin.known.insert(peer.id, known);
        if let Some(there) = origin.goes_by.clone().filter(|_| compared != Some(Relation::Same)) {
            let message = Message::Epoch(EpochTalk::GoesBy(there));
            let received = self.now();
            self.step(Input::Message { from: peer.id, received, message });
        }
    }

    /// Whether a process is of an older life of a member's store than another that was heard: a
    /// store that was put back from a backup, or a copy. Its promises count nothing then. Lives
    /// count by one, so it would catch up by restarts: the store is condemned for good, but only
    /// when such a process has answered a question that was asked after the higher life was heard.
    /// A late or repeated packet answers nothing, and condemns nobody.
    fn doubts_life(&mut self, peer: &Peer, origin: &Origin) -> bool {
        let charter = self.machine.as_ref().map(|machine| machine.charter());
        let named = charter.and_then(|charter| charter.body.stores.get(peer.id));
        let Some(store) = origin.store.filter(|store| named == Some(*store)) else { return false };
        let (highest, start) = (Incarnation(peer.boot), origin.start);
        let known = self.kin.lives.get(&store).copied();
        let older = |life: Life| life.highest > highest || life.highest == highest && life.start != start;
        match known {
            Some(life) if life.condemned => self.tell_condemned(peer.id, store, life),
            Some(life) if older(life) => {
                // One question until a higher life is heard: answers to two would outdate each
                // other forever.
                let nonce = *self.kin.doubts.entry(peer.id).or_insert_with(chance::wide);
                if origin.echo != Some(nonce) {
                    self.net.send(peer.id, &Item::AskOrigin { nonce });
                    return true;
                }
                let life = Life { condemned: true, ..life };
                self.keep_life(store, life);
                tracing::error!(name: "tenure.condemned", node = %self.name, peer = %peer.name, store = %store, life = highest.0, highest = life.highest.0, "an older copy of a member's store is in use: nothing of it counts until the member is replaced");
                self.tell_condemned(peer.id, store, life);
            }
            Some(life) if life.highest == highest => return false,
            _ => {
                self.kin.doubts.remove(&peer.id);
                self.keep_life(store, Life { highest, start, condemned: false });
                return false;
            }
        }
        true
    }

    fn keep_life(&mut self, store: StoreId, life: Life) {
        self.kin.lives.insert(store, life);
        let Life { highest, start, condemned } = life;
        self.tickets.0 += 1;
        self.persistence
            .persist(self.tickets, Cell::Life { store, highest, start, condemned }, |_| Vec::new());
    }

    fn tell_condemned(&mut self, to: NodeId, store: StoreId, life: Life) {
        self.net.send(to, &Item::Condemned { store, highest: life.highest });
    }

    /// A member says that this store is not to be used any more.
    pub(super) fn on_condemned(&mut self, store: StoreId, highest: Incarnation) {
        if self.persistence.store == Some(store) {
            let (name, life) = (self.name.clone(), self.incarnation);
            self.stop(Stopped::RolledBack { name, life, highest: highest.0 });
        }
    }

    /// Tells members, former ones, and those whom the configuration names. With whom there is no
    /// session is greeted: it is told when there is one.
    pub(super) fn on_kin_time(&mut self, now: LocalTime) {
        self.look_for_members(now);
        let Some(machine) = self.machine.as_ref().filter(|_| self.kin.tell_at <= now) else { return };
        self.kin.tell_at = later(now, TELL_AGAIN);
        if !self.config.role.grants() {
            return;
        }
        let named = self.config.contacts.iter().map(|contact| contact.name.id());
        let mut all: BTreeSet<NodeId> = machine.charter().members_and_former().chain(named).collect();
        all.remove(&self.me);
        for peer in all {
            match self.net.sessions.has_session(peer) {
                true => self.tell_origin(peer),
                false => self.net.greet(peer, now),
            }
        }
    }

    /// A member has told a charter of another founding than this node was configured for: it is not
    /// believed.
    pub(super) fn refuse_lineage(&mut self, from: NodeId, error: &ConfigError) {
        let ConfigError::Lineage { there, .. } = error else { return };
        if self.kin.refused.replace(*there) != Some(*there) {
            let peer = self.net.name(from).map_or_else(|| from.to_string(), |name| name.to_string());
            tracing::error!(name: "tenure.lineage", node = %self.name, peer, error = %error, "a member is of another cluster of the same id");
        }
    }

    pub(super) fn log_split_brain(&self, other: &CharterId) {
        tracing::error!(name: "tenure.split_brain", node = %self.name, lineage = %other.lineage, epoch = other.epoch.0, "another cluster of this id and key exists: grants and leads nothing until an operator decides");
    }

    /// An operator has ended the other cluster.
    pub(super) fn on_accept_lineage(&mut self, reply: oneshot::Sender<bool>) {
        let split = self.machine.as_ref().is_some_and(|machine| machine.split_brain().is_some());
        if split {
            self.kin.known.clear();
            self.order(Command::AcceptLineage);
        }
        let _ = reply.send(split);
    }
}
