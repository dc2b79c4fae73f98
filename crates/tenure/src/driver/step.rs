//! One step of the machine, and the effects of it carried out in order.

use tenure_proto::strong::edict::Token;
use tenure_proto::strong::{Command, Event, GrantRequest, Kind, Message, Talk};
use tenure_proto::{Chooser, Context, Effect, GroupId, Input, LocalTime, NodeId, Protocol};

use super::Driver;
use super::observers::{Post, Source};
use crate::clock::Reading;
use crate::config::{Checked, UNSUITED};
use crate::error::Stopped;
#[cfg(any(test, feature = "test-util"))]
use crate::testing::Dice;
use crate::watchdog::{Finding, Readings};
use crate::wire::{GroupState, Item, Pass, Proclaim, Report};
use crate::{Machine, chance};

/// Chance from the operating system.
pub(crate) struct Os;

impl Chooser for Os {
    fn choose(&mut self, bound: u32) -> u32 {
        chance::below(bound)
    }
}

/// Chance for the strong machine: from the operating system, but in a cluster of `testing` from its
/// seed.
pub(super) struct Chance {
    #[cfg(any(test, feature = "test-util"))]
    dice: Option<Dice>,
}

impl Chance {
    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn of(config: &Checked) -> Self {
        Self { dice: config.host.as_ref().map(|host| host.dice.clone()) }
    }

    #[cfg(not(any(test, feature = "test-util")))]
    pub(super) fn of(_: &Checked) -> Self {
        Self {}
    }
}

impl Chooser for Chance {
    fn choose(&mut self, bound: u32) -> u32 {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(dice) = &mut self.dice {
            return dice.below(bound);
        }
        Os.choose(bound)
    }
}

impl Driver {
    /// One input. The clock is read here, after the input was taken from wherever it waited.
    pub(super) fn step(&mut self, input: Input<Machine>) {
        self.notice_disturbance();
        self.step_undisturbed(input);
    }

    /// If the clock was disturbed, nothing that was measured before counts: whatever leads here is
    /// over, and the grantor begins a silence, before anything else is done. The order matters: the
    /// clock is looked at anew first, so that a second disturbance is not missed; then the machine
    /// gives up and remembers its silence; then what handles were shown is taken back; and only
    /// then memory and handles go by the new look.
    pub(super) fn notice_disturbance(&mut self) {
        let Some(why) = self.steady.disturbance().filter(|_| self.machine.is_some()) else { return };
        let steady = self.steady.anew();
        tracing::warn!(name: "tenure.disturbed", node = %self.name, reason = %why, "all leaderships here are over, and this member is silent for a longest lease");
        self.step_undisturbed(Input::Command(Command::Disturbed));
        self.forget_eventual();
        self.forget_local();
        self.persistence.claim_anew(&steady);
        self.campaigns.steady = steady.clone();
        self.shared.replace(steady.clone());
        self.steady = steady;
    }

    fn step_undisturbed(&mut self, input: Input<Machine>) {
        let Some(machine) = &mut self.machine else { return };
        let at = self.clock.reading();
        let mut effects = std::mem::take(&mut self.effects);
        machine.handle(input, &mut Context::new(at.own, &mut self.chance, &mut self.tickets, &mut effects));
        self.perform(&mut effects, at);
        self.effects = effects;
    }

    /// In order: a leader's E is gone before its release is queued, and a grant is remembered
    /// before its Ok is. The writer's thread may make a record durable before the next effect is
    /// carried out, and this process may be killed in between: machines are safe with any first
    /// part of their effects ([`Effect`]).
    pub(super) fn perform(&mut self, effects: &mut Vec<Effect<Machine>>, at: Reading) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { ticket, record } => {
                    let addresses = &self.net.addresses;
                    self.persistence.persist(ticket, record, |nodes| addresses.contacts(nodes.into_iter()));
                }
                Effect::Remember(record) => {
                    if let Some(trouble) = self.persistence.remember(&record) {
                        tracing::warn!(name: "tenure.memory", node = %self.name, "{trouble}");
                    }
                }
                Effect::Publish(event) => self.publish(&event, at),
                Effect::Send { to, message, after } => match after {
                    Some(ticket) if !self.persistence.is_durable(ticket) => {
                        self.waiting.entry(ticket).or_default().push((to, message));
                    }
                    _ => self.send(to, message),
                },
            }
        }
    }

    /// Handles messages to itself and commands that follow from events, until none is left.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(message) = self.loopback.pop_front() {
                let received = self.now();
                self.step(Input::Message { from: self.me, received, message });
            } else if self.machine.is_none() {
                return; // Orders wait for the machine.
            } else if let Some(order) = self.orders.pop_front() {
                self.step(Input::Command(order));
            } else {
                return;
            }
        }
    }

    /// Deadlines of all kinds.
    pub(super) fn on_time(&mut self, now: LocalTime) {
        self.await_charter(now);
        let unhealthy = self.campaigns.unhealthy();
        self.orders.extend(unhealthy);
        self.settle();
        let is_due = self.machine.as_ref().and_then(Protocol::next_deadline).is_some_and(|at| at <= now);
        // A clock that went back reaches no deadline, and a leader by it would believe in its lease
        // for as long as it went back: the machine must see the reading.
        let went_back = std::mem::replace(&mut self.turned, now) > now;
        if is_due || went_back {
            self.step(Input::Deadline);
        }
        if went_back {
            // Where no strong group is at work the machine has seen no reading beyond this one, and
            // says nothing of it.
            self.forget_eventual();
            self.forget_local();
        }
        self.watch_clocks(now);
        self.on_key_time(now);
        self.on_kin_time(now);
        self.forget_groups(now);
        self.on_question_time(now);
        self.on_eventual_time(now);
        self.on_local_time(now);
        self.tell_measures(now);
        self.on_chronicle_time(now);
        if let Some(machine) = &self.machine {
            let post = self.observers.on_time(Source { machine, registry: &self.registry }, now);
            self.post(post);
        }
    }

    /// Looks whether the clocks keep to their bound. If this one does not, the node has nothing
    /// more to say.
    fn watch_clocks(&mut self, now: LocalTime) {
        let Some(machine) = &self.machine else { return };
        let body = &machine.charter().body;
        let is_due = self.watchdog.is_due(&self.clock, now);
        if is_due {
            let readings = Readings::take(&self.clock);
            let calendar = self.config.calendar;
            let found = self.watchdog.look(readings, body.clocks, (&body.quorums, self.me), calendar);
            found.into_iter().for_each(|finding| self.on_finding(finding));
            self.watch_terms(now);
        }
        let asks_all = self.watchdog.asks(now);
        if is_due || asks_all {
            self.ping(asks_all);
        }
    }

    /// Asks members for their clocks: all of them now and then, and soon those that have never
    /// told.
    fn ping(&mut self, all: bool) {
        let me = self.me;
        for member in self.members().into_iter().filter(|member| *member != me) {
            let wanted = all || self.watchdog.round_trip(member).is_none();
            if wanted && self.net.sessions.has_session(member) {
                let at = self.now();
                self.watchdog.on_ping(member, at);
                self.net.send(member, &Item::Ping { at });
                self.tell_revoked(member);
            }
        }
    }

    fn on_finding(&mut self, finding: Finding) {
        match finding {
            Finding::Broken(reason) => {
                self.tally.clock_faults += 1;
                self.stop(Stopped::Clock { reason });
            }
            Finding::Peer(peer) => {
                self.tally.peer_clock_faults += 1;
                let peer = self.net.name(peer).map_or_else(|| peer.to_string(), |name| name.to_string());
                tracing::error!(name: "tenure.peer_clock", node = %self.name, peer, "the clock of a peer is beyond the bound: its grants do not count");
            }
            Finding::Jumped(by) => {
                tracing::warn!(name: "tenure.calendar", node = %self.name, by_ms = by / 1_000_000, "the calendar jumped: if this machine was paused with all its clocks, only fences have protected meanwhile");
            }
        }
    }

    /// To a process, or to oneself. The group is named where the receiver may not know it.
    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        if to == self.me {
            return self.loopback.push_back(message);
        }
        let group = group_of(&message).filter(|_| self.must_name(&message));
        let group = group.and_then(|group| self.registry.name(group).cloned());
        if let Message::Epoch(_) = message {
            self.introduce(to, &message);
        }
        let item = Item::Machine { group, message };
        match self.detour(to, &item) {
            Some((member, pass)) => self.net.send(member, &Item::Pass(pass)),
            None => self.net.send(to, &item),
        }
    }

    /// By which member a word for a hand-over goes to a process with which there is no session, and
    /// never will be: neither of two candidates knows where the other is. Each time by another
    /// member: one of them may be gone.
    fn detour(&mut self, to: NodeId, item: &Item) -> Option<(NodeId, Pass)> {
        let Item::Machine { group: Some(group), message: Message::Talk { talk, .. } } = item else {
            return None;
        };
        let sessions = &self.net.sessions;
        if !matches!(talk, Talk::TakeOver { .. } | Talk::Ready(_)) || sessions.has_session(to) {
            return None;
        }
        let members = self.members();
        let ways: Vec<NodeId> = members.iter().copied().filter(|way| sessions.has_session(*way)).collect();
        if members.contains(&to) || ways.is_empty() {
            return None;
        }
        self.detours += 1;
        let pass = Pass { from: self.me, to, group: group.clone(), talk: *talk };
        Some((ways[self.detours % ways.len()], pass))
    }

    /// A process that is no member always names its groups: its key's scope is judged by the name.
    /// Members do when a group may be new.
    fn must_name(&self, message: &Message) -> bool {
        if !self.config.role.grants() {
            return true;
        }
        match message {
            Message::Request(GrantRequest { kind, .. }) => *kind == Kind::Acquire,
            Message::Talk { talk, .. } => {
                matches!(talk, Talk::TakeOver { .. } | Talk::Ready(_) | Talk::Relay { .. })
            }
            _ => false,
        }
    }

    /// Sends items to observers, or keeps them if the observer is here.
    pub(super) fn post(&mut self, post: Post) {
        for (to, item) in post {
            if to == self.me {
                self.on_own_item(&item);
                continue;
            }
            let leader = match &item {
                Item::Report(Report { state: GroupState::Bound { holder, .. }, .. }) => Some(*holder),
                Item::Report(Report { state: GroupState::Weak { leader }, .. }) => Some(*leader),
                Item::Proclaim(word) if word.leader != self.me => Some(word.leader),
                _ => None,
            };
            let named = self.net.addresses.contacts(leader.into_iter());
            if !named.is_empty() {
                self.net.send(to, &Item::Contacts(named));
            }
            self.net.send(to, &item);
        }
    }

    /// Publishes an event of the machine: first to the trace, then where it is authority, then to
    /// observers.
    fn publish(&mut self, event: &Event, at: Reading) {
        let now = at.own;
        if let Some(trace) = &self.trace {
            trace.event(at, event);
        }
        let order = self.campaigns.on_event(event);
        self.orders.extend(order);
        self.tally.count(event);
        self.stopwatch.on_event(event, now);
        self.log(event);
        self.chronicle(event);
        self.on_height_event(event, now);
        self.on_answer(event, now);
        self.show(event, now);
        match event {
            Event::Leads { group, kind: Kind::Acquire, term, .. } => {
                self.proclaim(*group, Token::of_term(*term), None);
                self.tell_of(*group, false, now);
            }
            Event::Granted { request, .. } => self.tell_of(request.group, true, now),
            Event::Freed { group, .. } | Event::Lost { group, .. } | Event::WeakLeader { group, .. } => {
                self.tell_of(*group, false, now);
            }
            Event::Adopted { charter, .. } if !self.clock.suits(charter.body.clocks.bound) => {
                let reason = UNSUITED.to_owned();
                self.stop(Stopped::Config { reason });
            }
            Event::Adopted { .. } => {
                self.tell_origins();
                self.renew_eventual();
                self.renew_local(at);
            }
            Event::ClockWentBack { by } => {
                tracing::error!(name: "tenure.clock", node = %self.name, by = %by, "the clock went back");
                // The machine ends the terms of strong groups; what was shown of the others was
                // shown by readings beyond this one.
                self.forget_eventual();
                self.forget_local();
            }
            _ => {}
        }
    }

    fn tell_of(&mut self, group: GroupId, renewed: bool, now: LocalTime) {
        if let Some(machine) = &self.machine {
            let source = Source { machine, registry: &self.registry };
            let post = self.observers.tell(group, renewed, source, now);
            self.post(post);
        }
    }

    /// A leader's proclamation goes to every member, and from there to the observers.
    pub(super) fn proclaim(&mut self, group: GroupId, token: Token, body: Option<Vec<u8>>) {
        let Some(machine) = &self.machine else { return };
        let word = Proclaim { group, epoch: machine.epoch(), leader: self.me, token, body };
        let mut post: Post =
            self.members().into_iter().map(|to| (to, Item::Proclaim(word.clone()))).collect();
        if !post.iter().any(|(to, _)| *to == self.me) {
            post.push((self.me, Item::Proclaim(word)));
        }
        self.post(post);
    }

    /// The few events that an operator wants in a log, under names that stay.
    fn log(&self, event: &Event) {
        let name = |group: &GroupId| {
            self.registry.name(*group).map_or_else(|| group.to_string(), ToString::to_string)
        };
        match event {
            Event::Leads { group, kind: Kind::Acquire, term, epoch, .. } => {
                tracing::info!(name: "tenure.elected", node = %self.name, group = name(group), term = term.0, epoch = epoch.0, "leads");
            }
            Event::Lost { group, term, loss } => {
                tracing::info!(name: "tenure.lost", node = %self.name, group = name(group), term = term.0, loss = ?loss, "leads no more");
            }
            Event::Silent { until } => {
                tracing::info!(name: "tenure.silent", node = %self.name, until = %until, "waits out what it may have promised");
            }
            Event::Adopted { charter, joined } => {
                tracing::info!(name: "tenure.epoch", node = %self.name, epoch = charter.epoch.0, joined, "goes by a new epoch");
            }
            Event::SplitBrain { other } => self.log_split_brain(other),
            Event::LineageAccepted => {
                tracing::warn!(name: "tenure.lineage_accepted", node = %self.name, "an operator has ended the other cluster: goes on after a silence");
            }
            Event::Strained { group, needed, longest } => {
                tracing::warn!(name: "tenure.strained", node = %self.name, group = name(group), needed = %needed, longest = %longest, "the network is too slow for the longest lease");
            }
            _ => {}
        }
    }

    /// Gives a command to the machine once it is there.
    pub(super) fn order(&mut self, command: Command) {
        self.orders.push_back(command);
    }
}

/// The group that a message is about, if it is about one.
pub(super) fn group_of(message: &Message) -> Option<GroupId> {
    match message {
        Message::Request(request) | Message::Extend { request, .. } => Some(request.group),
        Message::Ok { group, .. }
        | Message::Nack { group, .. }
        | Message::Release { group, .. }
        | Message::Talk { group, .. } => Some(*group),
        Message::Here { .. }
        | Message::Epoch(_)
        | Message::Wedge(_)
        | Message::Recovery(_)
        | Message::Height(_) => None,
    }
}
