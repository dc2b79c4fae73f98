//! Observers: those here, who are shown what all members report, and those elsewhere, whom this member tells.
//!
//! An observer asks every member once a second to be told of a group; a member forgets who has not asked for a while. What
//! changes is told at once.

use std::collections::BTreeMap;

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::{Grant, Standing, Term};
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};
use tokio::sync::watch;

use crate::Machine;
use crate::name::{GroupName, NodeName};
use crate::observe::{Proclaimed, Scene, View};
use crate::wire::{GroupState, Item, Proclaim, Report};

/// How often an observer asks again, in nanoseconds.
const ASK: u64 = 1_000_000_000;

/// For how long a member tells somebody who has asked.
const TELL: u64 = 5 * ASK;

/// How often a member looks whether a grant has run out for whom somebody watches.
const LOOK: u64 = 20_000_000;

/// The most observers of one group, and groups observed, that a member serves.
const MOST: usize = 10_000;

/// How often at most it is said that a member does not tell of a group, in nanoseconds.
const SAY_LIMITED: u64 = 60 * ASK;

/// A group that is observed here.
struct Shown {
    name: GroupName,
    view: View,
    scene: watch::Sender<Scene>,
    /// How many handles there are.
    handles: usize,
    ask_at: LocalTime,
}

/// A group that others observe.
#[derive(Default)]
struct Told {
    observers: BTreeMap<NodeId, LocalTime>,
    last: Option<GroupState>,
}

/// All observers, and the newest word of each group's leader.
#[derive(Default)]
pub(crate) struct Gallery {
    shown: BTreeMap<GroupId, Shown>,
    told: BTreeMap<GroupId, Told>,
    /// How many groups each process watches here.
    watches: BTreeMap<NodeId, usize>,
    /// How many groups a process without the cluster's key may watch here.
    most_watches: usize,
    limited_said: Option<LocalTime>,
    words: BTreeMap<GroupId, Proclaim>,
    look_at: Option<LocalTime>,
    /// Whether this node's sessions reach no quorum.
    cut_off: bool,
}

/// What is to be sent, and to whom.
pub(crate) type Post = Vec<(NodeId, Item)>;

impl Gallery {
    pub(crate) fn new(most_watches: usize) -> Self {
        Self { most_watches, ..Self::default() }
    }

    /// Whether a process may watch a group. A process without the cluster's key has a limit of its own,
    /// and where all places are taken the process that watches most makes room: nobody can keep
    /// others from being told.
    pub(crate) fn has_room(&mut self, from: NodeId, group: GroupId, limited: bool, now: LocalTime) -> bool {
        let told = self.told.get(&group);
        if told.is_some_and(|told| told.observers.contains_key(&from)) {
            return true;
        }
        let own = self.watches.get(&from).copied().unwrap_or(0);
        if limited && own >= self.most_watches {
            return false;
        }
        if told.map_or(self.told.len(), |told| told.observers.len()) < MOST {
            return true;
        }
        told.is_none() && self.make_room(own, now)
    }

    /// All groups that can be watched are: one that only the busiest process watches is given up.
    fn make_room(&mut self, own: usize, now: LocalTime) -> bool {
        let busiest =
            self.watches.iter().max_by_key(|(_, count)| **count).map(|(node, count)| (*node, *count));
        let Some((busiest, _)) = busiest.filter(|(_, count)| *count > own + 1) else { return false };
        let only = |told: &Told| told.observers.len() == 1 && told.observers.contains_key(&busiest);
        let Some(group) = self.told.iter().find(|(_, told)| only(told)).map(|(group, _)| *group) else {
            return false;
        };
        self.on_unwatch(busiest, group);
        self.drop_late(group, now);
        self.told.remove(&group);
        true
    }

    /// Whether anybody here or elsewhere observes a group.
    pub(crate) fn has_to_do_with(&mut self, group: GroupId, now: LocalTime) -> bool {
        self.drop_late(group, now);
        let told = self.told.get(&group).is_some_and(|told| !told.observers.is_empty());
        told || self.shown.contains_key(&group)
    }

    /// Nobody has to do with a group any more.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.told.remove(&group);
        self.words.remove(&group);
    }

    /// Whether to say that a member does not tell of a group.
    pub(crate) fn tell_limited(&mut self, now: LocalTime) -> bool {
        let due = self.limited_said.is_none_or(|said| now.as_nanos() >= said.as_nanos() + SAY_LIMITED);
        if due {
            self.limited_said = Some(now);
        }
        due
    }

    /// Drops the observers of a group that have not asked for a while.
    fn drop_late(&mut self, group: GroupId, now: LocalTime) {
        let Some(told) = self.told.get_mut(&group) else { return };
        let watches = &mut self.watches;
        told.observers.retain(|observer, until| {
            let stays = now < *until;
            if !stays {
                less(watches, *observer);
            }
            stays
        });
    }

    /// Whether this node's sessions reach a quorum. Members that do not campaign hear little of each other as candidates do, and would
    /// each take itself for a minority: one that reaches a quorum is none, and can say that it supports nobody.
    pub(crate) fn reaches(&mut self, quorum: bool) {
        self.cut_off = !quorum;
    }

    /// A handle wants to see a group.
    pub(crate) fn observe(&mut self, name: GroupName, now: LocalTime) -> watch::Receiver<Scene> {
        let group = name.id();
        let shown = self.shown.entry(group).or_insert_with(|| Shown {
            name,
            view: View::default(),
            scene: watch::Sender::default(),
            handles: 0,
            ask_at: now,
        });
        shown.handles += 1;
        shown.scene.subscribe()
    }

    /// A handle is gone.
    pub(crate) fn unobserve(&mut self, group: GroupId, members: &[NodeId]) -> Post {
        let Some(shown) = self.shown.get_mut(&group) else { return Vec::new() };
        shown.handles -= 1;
        if shown.handles > 0 {
            return Vec::new();
        }
        self.shown.remove(&group);
        members.iter().map(|member| (*member, Item::Unwatch { group })).collect()
    }

    /// Somebody wants to be told, and is told at once.
    pub(crate) fn on_watch(
        &mut self,
        from: NodeId,
        group: GroupId,
        machine: &Machine,
        now: LocalTime,
    ) -> Post {
        let told = self.told.entry(group).or_default();
        if told.observers.insert(from, LocalTime::from_nanos(now.as_nanos() + TELL)).is_none() {
            *self.watches.entry(from).or_default() += 1;
        }
        self.look_at.get_or_insert(now);
        let state = state_of(machine, (group, self.cut_off), self.words.get(&group), now);
        let report = Item::Report(Report { group, epoch: machine.epoch(), state });
        let word = self.words.get(&group).map(|word| (from, Item::Proclaim(word.clone())));
        std::iter::once((from, report)).chain(word).collect()
    }

    pub(crate) fn on_unwatch(&mut self, from: NodeId, group: GroupId) {
        let told = self.told.get_mut(&group);
        if told.is_some_and(|told| told.observers.remove(&from).is_some()) {
            less(&mut self.watches, from);
        }
    }

    /// A leader speaks, itself or through a member. Older words than the newest are dropped.
    pub(crate) fn on_proclaim(&mut self, word: &Proclaim, keep: bool) -> Post {
        if let Some(shown) = self.shown.get_mut(&word.group) {
            shown.view.on_proclaim(word);
        }
        let newest = self.words.get(&word.group);
        if !keep || newest.is_some_and(|newest| newest.token >= word.token) {
            return Vec::new();
        }
        // A leader that says nothing new does not silence the last word of the one before; its own replaces it.
        self.words.insert(word.group, word.clone());
        let observers = self.told.get(&word.group).into_iter().flat_map(|told| told.observers.keys());
        observers.map(|observer| (*observer, Item::Proclaim(word.clone()))).collect()
    }

    /// A member reports.
    pub(crate) fn on_report(&mut self, from: NodeId, report: &Report, now: LocalTime) {
        if let Some(shown) = self.shown.get_mut(&report.group) {
            shown.view.on_report(from, report.state, now);
        }
    }

    /// Tells those who watch a group what has changed about it.
    pub(crate) fn tell(&mut self, group: GroupId, machine: &Machine, now: LocalTime) -> Post {
        self.drop_late(group, now);
        let (word, cut_off) = (self.words.get(&group), self.cut_off);
        let Some(told) = self.told.get_mut(&group) else { return Vec::new() };
        let state = state_of(machine, (group, cut_off), word, now);
        if told.last.replace(state) == Some(state) {
            return Vec::new();
        }
        let report = Report { group, epoch: machine.epoch(), state };
        told.observers.keys().map(|observer| (*observer, Item::Report(report))).collect()
    }

    /// Asks members again, and looks whether grants have run out.
    pub(crate) fn on_time(&mut self, machine: &Machine, now: LocalTime) -> Post {
        let mut post = Vec::new();
        for shown in self.shown.values_mut().filter(|shown| shown.ask_at <= now) {
            shown.ask_at = LocalTime::from_nanos(now.as_nanos() + ASK);
            let ask = |member: &NodeId| (*member, Item::Watch { group: shown.name.clone() });
            post.extend(machine.charter().members().iter().map(ask));
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.told.retain(|_, told| !told.observers.is_empty());
            let groups: Vec<GroupId> = self.told.keys().copied().collect();
            for group in groups {
                post.extend(self.tell(group, machine, now));
            }
            let again = LocalTime::from_nanos(now.as_nanos() + LOOK);
            self.look_at = (!self.told.is_empty()).then_some(again);
        }
        post
    }

    /// Shows the handles here what is new.
    pub(crate) fn show(
        &mut self,
        quorums: &Quorums,
        now: LocalTime,
        name: impl Fn(NodeId) -> Option<NodeName>,
    ) {
        for shown in self.shown.values_mut() {
            let scene = shown.view.scene(quorums, now, &name);
            shown.scene.send_if_modified(|known| {
                let news = *known != scene;
                if news {
                    *known = scene;
                }
                news
            });
        }
    }

    pub(crate) fn next_wake(&self) -> Option<LocalTime> {
        self.shown.values().map(|shown| shown.ask_at).chain(self.look_at).min()
    }

    /// The newest word of a group's leader, if this member keeps them.
    pub(crate) fn word(&self, group: GroupId) -> Option<&Proclaim> {
        self.words.get(&group)
    }

    /// The newest edict of a group that was heard.
    pub(crate) fn newest_edict(&self, group: GroupId) -> Option<Proclaimed> {
        let kept = self.words.get(&group).and_then(|word| {
            let body = word.body.clone()?;
            Some(Proclaimed { token: word.token, body })
        });
        let shown = self.shown.get(&group).and_then(|shown| shown.view.edict().cloned());
        kept.into_iter().chain(shown).max_by_key(|edict| edict.token)
    }

    /// Who leads a group that is observed here, as far as was told.
    pub(crate) fn leader(&self, group: GroupId) -> Option<(Term, NodeId)> {
        self.shown.get(&group).and_then(|shown| shown.view.leader())
    }

    /// Whether anybody here observes anything.
    pub(crate) fn is_open(&self) -> bool {
        !self.shown.is_empty()
    }
}

/// A process watches one group less.
fn less(watches: &mut BTreeMap<NodeId, usize>, node: NodeId) {
    match watches.get_mut(&node) {
        Some(count) if *count > 1 => *count -= 1,
        _ => _ = watches.remove(&node),
    }
}

/// What this member can say of a group. Only who is cut off speaks of a weak leader.
fn state_of(
    machine: &Machine,
    (group, cut_off): (GroupId, bool),
    word: Option<&Proclaim>,
    now: LocalTime,
) -> GroupState {
    if let (Standing::Weak(weak), true) = (machine.standing(group, now), cut_off) {
        return GroupState::Weak { leader: weak.node() };
    }
    let live = machine.grant(group).filter(|grant| now < grant.until);
    match live {
        Some(grant) => {
            let leads = is_known_to_lead(machine, group, word, grant, now);
            GroupState::Bound { holder: grant.holder.node, term: grant.term, leads }
        }
        None => GroupState::Free { after: machine.largest_term(group) },
    }
}

/// Whether the holder of a live grant is known to lead, and does not only ask.
pub(super) fn is_known_to_lead(
    machine: &Machine,
    group: GroupId,
    word: Option<&Proclaim>,
    grant: &Grant,
    now: LocalTime,
) -> bool {
    let renews = machine.renewed_by(group) == Some(grant.holder);
    let said = word.is_some_and(|word| word.token.term() == grant.term);
    renews || said || machine.leadership(group, now).is_some()
}
