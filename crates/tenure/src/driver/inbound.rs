//! The rights of senders. Everything here is authentic; the question is whether its sender is
//! entitled to it.
//!
//! | sender | may |
//! |---|---|
//! | holder of the cluster's key | everything, once it has shown that it is of this cluster (`kin`); the machine itself judges whether it is a member |
//! | candidate | ask, release and talk about groups in its scope, watch them, and ask for the charter |
//! | observer | watch groups in its scope, ask for and verify their leaders, and ask for the charter |
//! | operator | the same for all groups, and make requests to their leaders |

use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::epoch::EpochTalk;
use tenure_proto::strong::{Command, GrantRequest, Holder, Message, Refusal, Talk, Term};
use tenure_proto::{GroupId, Incarnation, Input, LocalTime, NodeId};

use super::Driver;
use super::observers::Source;
use super::registry::{By, For, Full, Learnt};
use super::step::group_of;
use crate::error::CampaignError;
use crate::name::GroupName;
use crate::seal::{Peer, Rights};
use crate::sys::heap::give_back;
use crate::wire::{self, Item, Pass};

/// How many groups are looked at in one turn, to see whether they may be forgotten.
const LOOKS: usize = 64;

/// The memory of so many forgotten groups is returned at once, about 15 MB, although more are to be
/// forgotten.
const MANY: usize = 4096;

/// The memory of so many is returned when no others are to be forgotten now.
const SOME: usize = 512;

/// The most items of one packet of an outsider that are heard.
const MOST_ITEMS: usize = 256;

/// Stands for the keys of all outsiders that have no session here.
const STRANGERS: u64 = 0;

impl Driver {
    /// The items of one authentic packet.
    pub(super) fn on_items(&mut self, peer: &Peer, bytes: &[u8], received: LocalTime) {
        self.introduce_self(peer);
        self.judge_origin(peer, bytes);
        let mut share = Share::of(peer);
        for item in wire::decode(bytes) {
            match item {
                Ok(item) if share.has(&item) => self.on_item(peer, item, received),
                Ok(_) => self.tally.over_limit += 1,
                Err(_) => self.net.traffic.items_unreadable += 1,
            }
            if share.items == 0 {
                break;
            }
        }
        self.settle();
    }

    fn on_item(&mut self, peer: &Peer, item: Item, received: LocalTime) {
        match item {
            Item::Machine { message, .. } if !self.counts(peer, &message) => {
                self.ask_origin(peer, self.now());
            }
            Item::Machine { group, message } => self.on_message(peer, group, message, received),
            Item::Origin(origin) if peer.rights.is_cluster() => self.on_origin(peer, &origin),
            Item::AskOrigin { nonce } => self.answer_origin(peer.id, Some(nonce)),
            Item::Condemned { store, highest } if peer.rights.is_cluster() => {
                self.on_condemned(store, highest);
            }
            Item::Contacts(contacts) if peer.rights.is_cluster() => {
                contacts.iter().for_each(|contact| self.net.addresses.learn(contact));
            }
            Item::Watch { group, asked } if peer.rights.may_watch(&group) && self.config.role.grants() => {
                self.on_watch(peer, (group, asked), self.now());
            }
            Item::Unwatch { group } => self.observers.on_unwatch(peer.id, group),
            Item::Report(report) if peer.rights.is_cluster() => {
                self.touch(report.group);
                let now = self.now();
                self.observers.on_report(peer.id, &report, now);
            }
            Item::Proclaim(word) if self.may_proclaim(peer, &word) => {
                self.touch(word.group);
                let (grants, now) = (self.config.role.grants(), self.now());
                self.chronicle_leader(word.group, word.leader, word.token.term());
                let post = self.observers.on_proclaim(&word, grants, now);
                self.post(post);
            }
            Item::AskCharter => self.tell_charter(peer.id),
            Item::Charter(charter) if peer.rights.is_cluster() => self.on_charter(peer.id, &charter),
            Item::Ping { at } => self.net.send(peer.id, &Item::Pong { echo: at, at: self.now() }),
            Item::Pong { echo, at } if echo <= received => {
                self.watchdog.on_pong(peer.id, peer.boot, [echo, at, received]);
            }
            Item::Pong { .. } => {}
            Item::Limited { group } if peer.rights.is_cluster() => self.on_limited(peer, group),
            Item::Ask(ask) => self.on_ask(peer.id, peer.rights.may_operate(), ask),
            Item::Told(told) => self.on_told(peer.id, peer.rights.is_cluster(), told),
            Item::Pass(pass) => self.on_pass(peer, pass, received),
            Item::Local(said) if peer.rights.is_cluster() => self.on_local_talk(peer.id, said, received),
            Item::Revoked { keys, answer } if peer.rights.is_cluster() => {
                self.on_revoked(peer.id, &keys, answer);
            }
            Item::RevokedKept(keys) if peer.rights.is_cluster() => self.on_revoked_kept(peer.id, &keys),
            Item::Eventual(said) if peer.rights.is_cluster() => {
                self.on_eventual_talk(peer.id, said, received);
            }
            Item::Measures(measures) if peer.rights.may_lead() && self.config.role.grants() => {
                self.on_measures(&measures);
            }
            Item::Contacts(_)
            | Item::Measures(_)
            | Item::Watch { .. }
            | Item::Report(_)
            | Item::Limited { .. }
            | Item::Proclaim(_)
            | Item::Charter(_)
            | Item::Origin(_)
            | Item::Condemned { .. }
            | Item::Eventual(_)
            | Item::Revoked { .. }
            | Item::RevokedKept(_)
            | Item::Local(_) => {
                self.tally.out_of_scope += 1;
            }
        }
    }

    /// Observers here: the same, said by this very process.
    pub(super) fn on_own_item(&mut self, item: &Item) {
        let now = self.now();
        match item {
            Item::Watch { group, asked } if self.config.role.grants() => {
                let Some(machine) = &self.machine else { return };
                let source = Source { machine, registry: &self.registry };
                let watched = (group.id(), *asked);
                if let Ok(post) = self.observers.on_watch((self.me, By::Cluster), watched, source, now) {
                    self.post(post);
                }
            }
            Item::Unwatch { group } => self.observers.on_unwatch(self.me, *group),
            Item::Report(report) => {
                self.touch(report.group);
                self.observers.on_report(self.me, report, now);
            }
            Item::Proclaim(word) => {
                self.touch(word.group);
                let post = self.observers.on_proclaim(word, self.config.role.grants(), now);
                self.post(post.into_iter().filter(|(to, _)| *to != self.me).collect());
            }
            _ => {}
        }
    }

    fn on_message(&mut self, peer: &Peer, name: Option<GroupName>, message: Message, received: LocalTime) {
        let group = group_of(&message);
        if matches!(message, Message::Ok { .. } | Message::Nack { .. }) {
            self.net.answered(peer.id);
        }
        let entitled = self.is_of_its_life(peer, name.as_ref(), &message)
            && self.may_say(peer, group, name.as_ref(), &message);
        if !entitled || !self.is_wanted(peer.id, group, &message) {
            self.tally.out_of_scope += 1;
            return;
        }
        let purpose = match message {
            Message::Request(_) | Message::Extend { .. } => For::Election,
            _ => For::Question,
        };
        if let Some(group) = group {
            let Ok(learnt) = self.learn(group, name, (by(peer), purpose), received) else {
                return self.refuse(peer, &message);
            };
            if purpose == For::Election && !learnt.was_election && self.registry.note_election(group) {
                self.touch(group);
            }
        }
        self.note_standby(peer.id, &message, received);
        match &message {
            Message::Nack { group, refusal: Refusal::TooManyGroups, .. } => {
                self.on_too_many_groups(peer.id, *group);
            }
            // One member's word suffices: the charter says so, which all of them go by.
            Message::Nack { group, refusal: Refusal::Barred, .. } if self.members().contains(&peer.id) => {
                let why = |group| CampaignError::Barred { group };
                self.orders.extend(self.campaigns.refuse(*group, why));
                self.touch(*group);
            }
            _ => {}
        }
        self.hear(peer.id, &peer.rights, message, received);
    }

    /// The one way from the network to the machine: nothing comes by it unbounded.
    fn hear(&mut self, from: NodeId, rights: &Rights, message: Message, received: LocalTime) {
        if let Message::Epoch(EpochTalk::Decided(charter)) = &message
            && self.refuses_name(charter)
        {
            return;
        }
        let message = self.bounded(rights, message);
        if let Message::Talk { group, talk: Talk::Ready(_) } = &message {
            self.on_stands_by(*group, from);
        }
        self.note_successor(&message);
        self.tell_keys(from, &message);
        self.step(Input::Message { from, received, message });
    }

    /// Tells the machine by which key outsiders ask for terms, or make it ask: names of one key
    /// share a bucket.
    fn tell_keys(&mut self, from: NodeId, message: &Message) {
        let successor = match message {
            Message::Request(_) | Message::Extend { .. } => None,
            Message::Talk { talk: Talk::TakeOver { .. }, .. } => None,
            Message::Talk { talk: Talk::Relay { request, .. }, .. } => Some(request.id.holder.node),
            _ => return,
        };
        let me = self.me;
        for node in std::iter::once(from).chain(successor).filter(|node| *node != me) {
            // Whose words others pass on has perhaps no session here: all such share one bucket.
            let key = self.net.sessions.peer(node).map_or(Some(STRANGERS), |peer| peer.holder.key());
            let known = self.machine.as_ref().and_then(|machine| machine.key_of(node));
            if let Some(key) = key.filter(|_| self.config.role.grants() && key != known) {
                self.step(Input::Command(Command::KeyOf { node, key }));
            }
        }
    }

    /// Whether a message speaks for the life at the other end of its session, and for no other.
    ///
    /// The name alone proves little. Two processes may run under one name and key, by mistake or by
    /// theft: then each would end leaderships of the other, and late words of a former life would
    /// count for the present one. A relay gives back what its sender holds and passes on what its
    /// successor asks for. The successor has a session here too, for its answer must reach it: it
    /// must be that very life, and its own key must allow the group.
    fn is_of_its_life(&self, peer: &Peer, name: Option<&GroupName>, message: &Message) -> bool {
        let own = |speaker: Holder| speaker == Holder { node: peer.id, incarnation: Incarnation(peer.boot) };
        let successor = match message {
            Message::Talk { talk: Talk::Relay { request, .. }, .. } => self.is_live_candidate(name, request),
            _ => true,
        };
        successor && message.speaker().is_none_or(own)
    }

    /// Whether the process that asks has a session here, in this life, and may campaign for the
    /// group.
    fn is_live_candidate(&self, name: Option<&GroupName>, request: &GrantRequest) -> bool {
        let Holder { node, incarnation } = request.id.holder;
        if node == self.me {
            return incarnation.0 == self.incarnation;
        }
        let name =
            name.filter(|name| name.id() == request.group).or_else(|| self.registry.name(request.group));
        self.net.sessions.peer(node).is_some_and(|peer| {
            let allowed = peer.rights.is_cluster() || name.is_some_and(|name| peer.rights.may_campaign(name));
            peer.boot == incarnation.0 && allowed
        })
    }

    /// Two candidates that are no members have no session with each other: members pass on what
    /// they must say for a hand-over. The member that passes it on vouches for the sender: it has
    /// the words under the sender's seal.
    fn on_pass(&mut self, peer: &Peer, pass: Pass, received: LocalTime) {
        let Pass { from, to, group, talk } = pass;
        let message = Message::Talk { group: group.id(), talk };
        let is_from_peer = from == peer.id && self.is_of_its_life(peer, Some(&group), &message);
        if !self.is_wanted(from, Some(group.id()), &message) && to == self.me {
            self.tally.out_of_scope += 1;
        } else if to == self.me && peer.rights.is_cluster() {
            self.hear(from, &peer.rights, message, received);
        } else if is_from_peer && peer.rights.may_campaign(&group) && self.config.role.grants() {
            if self.net.sessions.has_session(to) {
                self.net.send(to, &Item::Pass(Pass { from, to, group, talk }));
            }
        } else {
            self.tally.out_of_scope += 1;
        }
    }

    /// Whether a sender is entitled to a message.
    fn may_say(
        &self,
        peer: &Peer,
        group: Option<GroupId>,
        name: Option<&GroupName>,
        message: &Message,
    ) -> bool {
        if peer.rights.is_cluster() {
            return true;
        }
        let named = name.filter(|name| Some(name.id()) == group);
        match message {
            Message::Request(_) | Message::Extend { .. } | Message::Release { .. } => {
                named.is_some_and(|name| peer.rights.may_campaign(name))
            }
            Message::Talk { talk: Talk::Seek { .. } | Talk::Verify { .. }, .. } => {
                named.is_some_and(|name| peer.rights.may_watch(name))
            }
            Message::Talk { .. } => named.is_some_and(|name| peer.rights.may_campaign(name)),
            Message::Epoch(EpochTalk::Unknown { .. }) => true,
            _ => false,
        }
    }

    /// Whether this node has anything to do with it: a closed list of groups is closed for
    /// everybody, and nobody is made to take over who does not campaign.
    fn is_wanted(&self, peer: NodeId, group: Option<GroupId>, message: &Message) -> bool {
        let Some(group) = group else { return true };
        if matches!(message, Message::Ok { .. }) && !self.watchdog.trusts(peer) {
            return false; // Its clock may free it of a grant before this one ends.
        }
        let open = self.config.groups.as_ref().is_none_or(|groups| groups.contains(&group));
        let unasked = matches!(message, Message::Talk { talk: Talk::TakeOver { .. }, .. })
            && !self.campaigns.campaigns_for(group);
        open && !unasked
    }

    /// Bounds a message by this node's own limits: a question binds a leader for no longer than its
    /// configuration allows, and a leader without the cluster's key is not believed when it says
    /// which members live.
    pub(super) fn bounded(&self, rights: &Rights, message: Message) -> Message {
        match message {
            Message::Talk { group, talk: Talk::Verify { id, wanted } } => {
                let wanted = wanted.min(self.config.longest_pledge);
                Message::Talk { group, talk: Talk::Verify { id, wanted } }
            }
            Message::Extend { request, priority, .. } if !rights.is_cluster() => {
                Message::Extend { request, alive: NodeSet::EMPTY, priority }
            }
            other => other,
        }
    }

    /// A leader may be an outsider; then its key must allow the group. Members pass on the words of
    /// others.
    fn may_proclaim(&self, peer: &Peer, word: &wire::Proclaim) -> bool {
        let own = word.leader == peer.id;
        let name = self.registry.name(word.group);
        peer.rights.is_cluster() || own && name.is_some_and(|name| peer.rights.may_campaign(name))
    }

    /// Keeps the name of a group. One whose number is taken by another name is not believed.
    pub(super) fn learn_group(&mut self, name: GroupName, by: (By, For)) -> Result<(), Full> {
        self.learn(name.id(), Some(name), by, self.now()).map(|_| ())
    }

    fn learn(
        &mut self,
        group: GroupId,
        name: Option<GroupName>,
        by: (By, For),
        now: LocalTime,
    ) -> Result<Learnt, Full> {
        let learnt = self.registry.learn(group, name, by, now)?;
        if learnt.name_is_new
            && let (Some(trace), Some(name)) = (&self.trace, self.registry.name(group))
        {
            trace.group(self.clock.reading(), name);
        }
        Ok(learnt)
    }

    /// Somebody wants to be told of a group, if its key may have one more.
    fn on_watch(&mut self, peer: &Peer, (group, asked): (GroupName, LocalTime), now: LocalTime) {
        let (id, by) = (group.id(), by(peer));
        let Some(machine) = &self.machine else { return };
        let source = Source { machine, registry: &self.registry };
        let post = self.observers.on_watch((peer.id, by), (id, asked), source, now);
        match post.and_then(|post| self.learn_group(group, (by, For::Question)).map(|()| post)) {
            Ok(post) => self.post(post),
            Err(Full) => {
                self.observers.on_unwatch(peer.id, id);
                self.tally.over_limit += 1;
                self.net.send(peer.id, &Item::Limited { group: id });
            }
        }
    }

    /// A member does not tell this node of a group: its key watches or names too many.
    fn on_limited(&mut self, peer: &Peer, group: GroupId) {
        let group = self.registry.name(group).map_or_else(|| group.to_string(), ToString::to_string);
        if self.observers.tell_limited(self.now()) {
            tracing::warn!(name: "tenure.limited", node = %self.name, member = %peer.name, group, "a member does not tell of a group: this node's key watches or names as many as it may there (`limits` of the member); its leader is unknown here");
        }
    }

    /// The sender's key has as many groups here as it may. A process that asks for a grant is told;
    /// the rest is dropped, as if the group had been forgotten since.
    fn refuse(&mut self, peer: &Peer, message: &Message) {
        self.tally.over_limit += 1;
        if let Message::Request(request) | Message::Extend { request, .. } = message {
            let (group, id) = (request.group, request.id);
            let (refusal, max_term) = (Refusal::TooManyGroups, Term(0));
            self.net.send(
                peer.id,
                &Item::Machine { group: None, message: Message::Nack { group, id, refusal, max_term } },
            );
        }
    }

    /// A group is known no more, and not shown any more.
    fn erase(&mut self, group: GroupId) {
        if let Some(name) = self.registry.forget(group) {
            self.erased.push(name);
            self.dirty.insert(group); // So that the board is looked at.
        }
    }

    /// A member cannot know one more group of this node's key. If so many cannot that no quorum is
    /// left, the campaign is told: to ask on would be in vain.
    fn on_too_many_groups(&mut self, member: NodeId, group: GroupId) {
        let Some(machine) = self.machine.as_ref().filter(|_| self.campaigns.campaigns_for(group)) else {
            return;
        };
        let quorums = &machine.charter().body.quorums;
        let refused = self.over_limit.entry(group).or_default();
        refused.insert(member);
        let places = refused.iter().filter_map(|member| quorums.position(*member)).collect();
        if quorums.is_blocking(places) {
            self.over_limit.remove(&group);
            let why = |group| CampaignError::TooManyGroups { group };
            self.orders.extend(self.campaigns.refuse(group, why));
            self.touch(group);
        }
    }

    /// Looks at groups that were not looked at for long, a few in each turn, and forgets those that
    /// nobody has had to do with since.
    pub(super) fn forget_groups(&mut self, now: LocalTime) {
        for _ in 0..LOOKS {
            let Some(group) = self.registry.due(now) else { return self.return_memory(SOME) };
            let Some(machine) = &self.machine else { return };
            let used_here = self.campaigns.has_to_do_with(group) || self.observers.has_to_do_with(group, now);
            let is_idle = !used_here && machine.may_forget(group, now);
            if self.registry.looked(group, is_idle, now) {
                self.step(Input::Command(Command::Forget(group)));
                self.observers.forget(group);
                self.over_limit.remove(&group);
                self.erase(group);
                self.tally.forgotten += 1;
            }
        }
        self.return_memory(MANY);
    }

    /// Returns the memory of forgotten groups to the system, on another thread, if there are so
    /// many of them. Little by little: the allocator lets this thread wait meanwhile.
    fn return_memory(&mut self, so_many: usize) {
        if self.registry.has_memory_of(so_many) {
            tokio::task::spawn_blocking(give_back);
        }
    }
}

/// The work that one packet of an outsider may cause at a member. Items may be as short as two
/// bytes, and a question of two bytes has an answer of hundreds: six hundred of them in each packet
/// would keep the granting thread from its work. Of members everything is taken.
struct Share {
    is_limited: bool,
    items: usize,
    charter: bool,
    origin: bool,
    ping: bool,
}

impl Share {
    fn of(peer: &Peer) -> Self {
        let is_limited = !peer.rights.is_cluster();
        let items = if is_limited { MOST_ITEMS } else { usize::MAX };
        Self { is_limited, items, charter: false, origin: false, ping: false }
    }

    /// Whether an item is still in it. Of each question that has one answer, the first is.
    fn has(&mut self, item: &Item) -> bool {
        self.items = self.items.saturating_sub(1);
        let asked = match item {
            Item::AskCharter => &mut self.charter,
            Item::AskOrigin { .. } => &mut self.origin,
            Item::Ping { .. } => &mut self.ping,
            _ => return true,
        };
        !std::mem::replace(asked, true) || !self.is_limited
    }
}

/// To whom a group is charged that a peer brings up.
fn by(peer: &Peer) -> By {
    peer.holder.key().map_or(By::Cluster, By::Key)
}
