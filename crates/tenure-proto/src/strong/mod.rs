//! Nerio: leases from a quorum, so that at most one process leads at any instant.
//!
//! # The idea
//!
//! A **grantor** q supports one process at a time: it keeps whom (A) and until when on its own clock (F). A process
//! that is supported by a quorum leads (12). Two quorums share a grantor, so two processes cannot lead at once (1).
//! The difficulty is only that p must know, by its own clock, that a quorum supports it *now*, though clocks differ
//! and messages take any time. So p keeps a reading E up to which it may act, and everything below serves to keep
//!
//! ```text
//!     C_p < E_p   ⇒   a quorum of grantors q has A_q = p and C_q < F_q                              (14)
//! ```
//!
//! # The algorithm (OQwBD: obtain a quorum, clocks with bounded drift)
//!
//! ```text
//!   p   1 Start := C_p      2 choose δ      3 ask all grantors for δ
//!   q   4 T := C_q, read after the request came in
//!       5 supports somebody else and T < F: refuse
//!       6 else A := p, F := max(F, T + (1+ρ)δ), answer ok
//!   p   7 wait for ok from a quorum, or until C_p >= Start + (1-ρ)δ
//!       8 a quorum, and C_p < Start + (1-ρ)δ: E := Start + (1-ρ)δ; p leads
//!       9 else the run has failed
//!
//!   p  Start ├──────── leads ────────────┤ E = Start + (1-ρ)δ    at most δ of real time after Start
//!              ╲ ask      ╱ ok
//!   q           T ├──────── bound to p ────────────────┤ F = T + (1+ρ)δ    at least δ after T
//! ```
//!
//! Why (14) holds: p asked before q answered, so T lies after Start in real time. By p's clock (1-ρ)δ lasts at most δ;
//! by q's clock (1+ρ)δ lasts at least δ (15). So p stops before q is free. A renewal is the same run by a leader; a run
//! that p replaces by a new one is aborted and answers to it count for nothing.
//!
//! OQwBS is the same algorithm for clocks that differ by at most Δ at any instant (20): E = Start + δ and
//! F = Start + δ + Δ, for q can read Start_p on its own clock to within Δ. A request that was long on its way then binds q
//! no longer than one that was quick. But clocks must be synchronised, and a bound on skew is harder to keep than one on
//! drift: that is why drift is the default (section 5).
//!
//! # What a real system adds
//!
//! * **Terms.** An acquisition carries a term that must exceed every term its grantors granted; renewals keep it. So
//!   terms are unique and rise, and a token made from them can fence. The largest term survives restarts as one durable
//!   **ceiling** for all groups, raised in blocks in the background: no disk on a renewal, usually none on an
//!   acquisition.
//! * **Instances.** A run is named by process, incarnation and number, unique for ever; a start time is not.
//! * **Restarts.** A grantor that lost its memory is silent until whatever it promised is over. Within one boot the
//!   memory of grants survives the process, and no silence is needed. One that lost its disk takes no part.
//! * **Release.** A candidate that cannot win gives its grants back at once, and a leader that resigns does so after
//!   giving up E. A release names the newest run that it covers: a late one cancels no later grant.
//! * **Hand-over** to a chosen process takes one round trip: the leader passes its successor's request on together with
//!   its own release (`transfer`).
//! * **Verification** tells another process until when, on its clock, a leader is certain (`verify`).
//! * **Epochs.** The grantors, their quorums, ρ or Δ, and δ_max change by decided charters, one an epoch, and no group stops
//!   for it: a leader renews into the next epoch (`epoch`).
//! * **Refusals** are answered, with the term to beat and the time to wait, so that candidates waste neither.
//! * **Ticks.** Readings are multiples of a tick: E is rounded down to one, F is lengthened by one.
//! * **Rule U.** A lapsed term is over, even if a renewal completes afterwards.
//!
//! # From the paper to the code
//!
//! | paper | here | why it is safe |
//! |---|---|---|
//! | `C_p` | [`Context::now`] | sampled after the input was received |
//! | `A_q`, `F_q` | [`Grant::holder`], [`Grant::until`] | F never moves back while the grant stands (16) |
//! | `E_p` | `Lead::until`, seen through [`Elects::leadership`] | set by a completed run alone, and ends before F (14) |
//! | `Start_p` | [`GrantRequest::start`] | the reading from which E is counted (18, 19) |
//! | δ | [`GrantRequest::lease`] | every request carries its own; grantors cap it |
//! | steps 1-3, 7-9 | `candidate` | |
//! | steps 4-6 | `grantor` | |
//! | the formulas | [`Rules`], [`Clockwork`](crate::time::Clockwork) | each with its equation, each with a mutant in the laboratory |
//!
//! # What is assumed
//!
//! Clocks keep to ρ (15) and run on while a machine is suspended. Messages may be lost, repeated, delayed and
//! reordered in any way, not forged. Processes may stop, pause and restart at any time. If a clock breaks ρ two
//! processes may lead at once for a while, and only the fence at the receiver protects.
//!
//! # When to try
//!
//! A weak election (section 9) tells each candidate its turn (`turn`, [`weak`](crate::detect::weak)). It is advice: no rule in
//! [`Rules`] knows of it, and if it is wrong about everything candidates collide or wait, and never do two lead.
//!
//! # Example
//!
//! ```
//! use tenure_proto::detect::weak::{Choice, Watch};
//! use tenure_proto::quorum::Quorums;
//! use tenure_proto::strong::{Command, Event, Nerio, Settings, Sound};
//! use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
//! use tenure_proto::{boot, Boot, Chooser, Context, Effect, Elects, GroupId, Input, LocalTime, NodeId, Protocol, Ticket};
//!
//! struct First;
//! impl Chooser for First {
//!     fn choose(&mut self, _bound: u32) -> u32 { 0 }
//! }
//!
//! // One process that is its own quorum: it asks itself, grants, and leads.
//! let me = NodeId(0);
//! let config = Settings {
//!     quorums: Quorums::majority(vec![me])?,
//!     clocks: Clockwork { bound: Bound::Drift(Drift::from_ppm(1000).unwrap()), tick: LocalSpan::from_nanos(1) },
//!     lease: Span::from_millis(1000),
//!     longest_lease: Span::from_millis(2000),
//!     window: Span::from_millis(10),
//!     retry: Span::from_millis(5),
//!     block: 256,
//!     weak: Choice::Ring(Watch::Heartbeat),
//!     adapt: None,
//!     hold: None,
//!     rules: Sound,
//! }
//! .validate()?;
//! let store = boot::Store::Founded(Vec::new());
//! let boot = Boot::judge(store, None, boot::BootId { boot: 1, clock_offset: 0 });
//!
//! let (mut chance, mut ticket, mut effects) = (First, Ticket(0), Vec::new());
//! let now = LocalTime::from_nanos(5_000_000);
//! let mut node = Nerio::start(&config, me, boot, &mut Context::new(now, &mut chance, &mut ticket, &mut effects));
//! let mut inputs = vec![Input::Command(Command::Campaign(GroupId(7))), Input::Deadline];
//! while !inputs.is_empty() {
//!     node.handle(inputs.remove(0), &mut Context::new(now, &mut chance, &mut ticket, &mut effects));
//!     for effect in effects.drain(..) {
//!         if let Effect::Send { message, .. } = effect {
//!             inputs.push(Input::Message { from: me, received: now, message }); // after any record is durable
//!         }
//!     }
//! }
//! let until = node.leadership(GroupId(7), now).expect("nobody else could refuse");
//! assert_eq!(until.as_nanos(), 5_000_000 + 999_000_000); // (1-ρ)δ after the start
//! assert_eq!(node.leadership(GroupId(7), until), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidate;
mod config;
pub mod edict;
pub mod epoch;
mod grantor;
mod message;
mod pace;
mod prefer;
mod rules;
mod standing;
mod term;
#[cfg(test)]
mod tests;
mod transfer;
mod turn;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use config::{Adapt, Config, ConfigError, Settings};
pub use edict::{Edict, Token};
pub use grantor::Grant;
pub use message::{
    Cell, CellKey, Command, Event, Failure, GrantRequest, Holder, InstanceId, Kind, Loss, Message, Refusal,
    Talk, Term,
};
pub use rules::{Across, Rules, Sound};
pub use standing::{Standing, WeakLeader};

use crate::detect::weak::{Advisor, Weak};
use crate::quorum::NodeSet;
use crate::time::{LocalSpan, StampClock};
use crate::timers::Agenda;
use crate::{Boot, BootKind, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol};
use candidate::{Around, Candidate};
use epoch::{Body, Charter, Epoch, EpochTalk, Membership};
use grantor::{Grantor, remembered_grants};
use pace::Trips;
use term::Ceiling;

/// A process of a strong cluster: grantor, candidate, or both, for any number of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nerio<R: Rules = Sound> {
    process: Process<R>,
    groups: BTreeMap<GroupId, Group>,
    /// When each group wants to be woken, and (`None`) the process itself.
    agenda: Agenda<Option<GroupId>>,
}

/// What belongs to the process rather than to a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process<R: Rules> {
    config: Config<R>,
    /// This life.
    holder: Holder,
    /// Where this node stands among the grantors, if it is one.
    position: Option<usize>,
    clock: StampClock,
    /// The clock went back and has not caught up yet.
    clock_is_behind: bool,
    /// Runs begun in this life.
    seq: u64,
    /// Until when this grantor waits out what it may have forgotten.
    silent_until: LocalTime,
    /// The disk was lost: promises may stand that nobody here knows of.
    mute: bool,
    /// The largest term of a group of which nothing is in memory.
    largest_term: Term,
    ceiling: Ceiling,
    /// The newest epoch, and what is under way to change it.
    membership: Membership,
    /// Who seems to live, and so whose turn it is to try. Advice, no more.
    weak: Advisor,
    /// When this process last spoke to all members, or to its neighbours among them.
    spoke: Option<LocalTime>,
    /// How long messages to members and back take.
    trips: Trips,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    grantor: Grantor,
    candidate: Candidate,
}

impl Group {
    fn new(largest_term: Term, remembered: Option<Grant>) -> Self {
        Self { grantor: Grantor::new(largest_term, remembered), candidate: Candidate::default() }
    }
}

impl<R: Rules> Process<R> {
    fn is_silent(&self, now: LocalTime) -> bool {
        now < self.silent_until
    }

    fn next_instance(&mut self) -> InstanceId {
        self.seq += 1;
        self.newest_instance()
    }

    /// The newest run that this life has begun, of any group.
    fn newest_instance(&self) -> InstanceId {
        InstanceId { holder: self.holder, seq: self.seq }
    }

    /// When all is over that this grantor may have promised before `start`, in its epoch or the one before.
    fn silence_from(&self, start: LocalTime) -> LocalTime {
        let rules = &self.config.settings().rules;
        let end = |body: &Body| rules.silence_end(body.clocks, start, body.longest_lease);
        let here = end(&self.charter().body);
        self.charter().before.as_ref().map_or(here, |before| end(before).max(here))
    }

    /// Decides between silence and memory, and says so.
    fn recall(&mut self, kind: &BootKind<Cell>, cx: &mut Context<'_, Nerio<R>>) {
        let settings = self.config.settings();
        match kind {
            BootKind::Founding => {}
            BootKind::SameBoot { remembered } => {
                let silences = remembered.iter().filter_map(|cell| match cell {
                    Cell::Silence(until) => Some(settings.rules.silence_remembered(*until)),
                    _ => None,
                });
                self.silent_until = silences.max().unwrap_or(LocalTime::ZERO);
            }
            BootKind::Rebooted => {
                self.silent_until = self.silence_from(cx.now());
            }
            BootKind::Amnesia => {
                self.mute = true;
                cx.publish(Event::Mute);
            }
        }
        if self.is_silent(cx.now()) {
            cx.remember(Cell::Silence(self.silent_until));
            cx.publish(Event::Silent { until: self.silent_until });
        }
    }
}

/// A group, as nobody has seen it before if need be.
fn entry<'a, R: Rules>(
    groups: &'a mut BTreeMap<GroupId, Group>,
    process: &Process<R>,
    id: GroupId,
) -> &'a mut Group {
    groups.entry(id).or_insert_with(|| Group::new(process.largest_term, None))
}

impl<R: Rules> Nerio<R> {
    /// The grant that this process has given for a group, whether or not it still binds.
    pub fn grant(&self, group: GroupId) -> Option<&Grant> {
        self.groups.get(&group)?.grantor.grant.as_ref()
    }

    /// The newest epoch that this process knows.
    pub fn epoch(&self) -> Epoch {
        self.process.membership.epoch()
    }

    /// Whether the disk was lost, so that this process takes no part.
    pub fn is_mute(&self) -> bool {
        self.process.mute
    }

    /// Lets `step` work on one group, then notes when that group wants to be woken.
    fn with_group<'c>(
        &mut self,
        id: GroupId,
        cx: &mut Context<'c, Self>,
        step: impl FnOnce(&mut Candidate, &mut Around<'_, 'c, R>),
    ) {
        let group = entry(&mut self.groups, &self.process, id);
        let before = group.candidate.next_deadline();
        let mut around = Around { group: id, own: &group.grantor, process: &mut self.process, cx };
        step(&mut group.candidate, &mut around);
        self.agenda.update(Some(id), before, group.candidate.next_deadline());
    }

    /// Lets `step` work on the process itself, then notes when that wants to be woken.
    fn with_process<T>(&mut self, step: impl FnOnce(&mut Process<R>) -> T) -> T {
        let before = self.process.membership.next_deadline();
        let result = step(&mut self.process);
        self.agenda.update(None, before, self.process.membership.next_deadline());
        result
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        self.process.weak.heard(from, cx.now());
        match message {
            Message::Request(request) if request.id.holder.node == from => self.on_request(request, cx),
            Message::Release { group, upto } if upto.holder.node == from => self.on_release(group, upto, cx),
            Message::Talk { group, talk } => self.on_talk(from, group, talk, cx),
            Message::Epoch(talk) => self.on_epoch_talk(from, talk, cx),
            Message::Extend { request, alive, priority } if request.id.holder.node == from => {
                self.on_extend(request, (alive, priority), cx);
            }
            Message::Here { epoch, beats } => self.process.on_here(epoch, &beats, cx.now()),
            // Nobody may speak in another's name.
            Message::Request(_) | Message::Extend { .. } | Message::Release { .. } => {}
            Message::Ok { group, epoch, id, at } => {
                self.with_group(group, cx, |candidate, around| {
                    candidate.on_ok(from, epoch, id, at, around);
                });
            }
            Message::Nack { group, id, refusal, max_term } => {
                self.with_group(group, cx, |candidate, around| {
                    candidate.on_nack(from, id, refusal, max_term, around);
                });
            }
        }
    }

    fn on_request(&mut self, request: GrantRequest, cx: &mut Context<'_, Self>) {
        let newest = self.process.membership.epoch();
        let grants = self.process.config.settings().rules.grants_in(request.epoch, newest);
        if !grants && !self.process.admits(request.id.holder.node, request.epoch, cx) {
            return; // MONO
        }
        self.process.weak.passes(request.id.holder.node, false);
        let group = entry(&mut self.groups, &self.process, request.group);
        group.grantor.on_request(request, &mut self.process, cx);
    }

    /// A leader's renewal is a request like any other; besides, it tells who lives, and how gladly the leader would hand over.
    fn on_extend(
        &mut self,
        request: GrantRequest,
        (alive, priority): (NodeSet, u8),
        cx: &mut Context<'_, Self>,
    ) {
        if request.epoch == self.process.membership.epoch() {
            self.process.weak.report(alive, cx.now());
        }
        self.on_request(request, cx);
        let leader = request.id.holder;
        self.with_group(request.group, cx, |candidate, around| {
            if around.own.grant.is_some_and(|grant| grant.holder == leader) {
                candidate.on_renewed(leader, around);
                candidate.ask_for_preference(leader, priority, around);
            }
        });
    }

    fn on_release(&mut self, group: GroupId, upto: InstanceId, cx: &mut Context<'_, Self>) {
        self.process.weak.passes(upto.holder.node, true);
        let entry = entry(&mut self.groups, &self.process, group);
        let freed = entry.grantor.on_release(group, upto, &self.process, cx);
        let by = upto.holder.node;
        self.with_group(group, cx, |candidate, around| candidate.on_given_back(by, freed, around));
    }

    fn on_talk(&mut self, from: NodeId, group: GroupId, talk: Talk, cx: &mut Context<'_, Self>) {
        match talk {
            // A relay is two messages in one step: the release is the sender's own, the request another's.
            Talk::Relay { release, request } if release.holder.node == from => {
                self.on_release(group, release, cx);
                self.on_request(request, cx);
            }
            Talk::Relay { .. } => {}
            Talk::TakeOver { term } => {
                self.with_group(group, cx, |c, around| c.on_take_over(from, term, around));
            }
            Talk::Ready(request) => self.with_group(group, cx, |c, around| c.on_ready(from, request, around)),
            Talk::Prefer { holder, priority } => {
                self.with_group(group, cx, |c, around| c.on_prefer(from, (holder, priority), around));
            }
            Talk::Verify { id, wanted } => {
                self.with_group(group, cx, |c, around| c.on_verify(from, id, wanted, around));
            }
            Talk::Certain { id, leader, term, pledge } => {
                self.with_group(group, cx, |c, around| {
                    c.on_certain(from, (id, leader, term, pledge), around);
                });
            }
        }
    }

    fn on_epoch_talk(&mut self, from: NodeId, talk: EpochTalk, cx: &mut Context<'_, Self>) {
        match talk {
            EpochTalk::Decided(charter) => self.adopt(&charter, cx),
            EpochTalk::Unknown { newest } => self.process.on_unknown(from, newest, cx),
            EpochTalk::Prepare { epoch, ballot } => {
                let top = self.top();
                self.with_process(|process| process.on_prepare(from, (epoch, ballot), top, cx));
            }
            EpochTalk::Promise { epoch, ballot, accepted, top } => {
                let own = self.top();
                let told = (accepted, top);
                self.with_process(|process| process.on_promise(from, (epoch, ballot), told, own, cx));
            }
            EpochTalk::Accept { epoch, ballot, charter } => {
                let act = self.with_process(|process| process.on_accept(from, (epoch, ballot, &charter), cx));
                if act {
                    self.adopt(&charter, cx);
                }
            }
            EpochTalk::Accepted { epoch, ballot } => {
                if let Some(charter) =
                    self.with_process(|process| process.on_accepted(from, (epoch, ballot), cx))
                {
                    self.adopt(&charter, cx);
                }
            }
            EpochTalk::Denied { epoch, ballot, denial } => {
                self.with_process(|process| process.on_denied(from, (epoch, ballot, denial), cx));
            }
        }
    }

    /// A charter is decided: the process goes by it, its grants stay (KEEP), and its candidates go on in the new epoch.
    fn adopt(&mut self, charter: &Arc<Charter>, cx: &mut Context<'_, Self>) {
        if !self.with_process(|process| process.adopt(charter, cx)) {
            return;
        }
        self.process.weak.members(charter.members(), cx.now());
        self.process.trips.keep(charter.members());
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in groups {
            if let Some(group) = self.groups.get_mut(&id) {
                group.grantor.on_adopted(charter.floor, &self.process.config.settings().rules);
            }
            self.with_group(id, cx, |candidate, around| candidate.on_new_epoch(around));
        }
        self.with_process(|process| process.on_adopted(cx));
    }

    /// The largest term that this member may have granted, in any group: what a floor must cover.
    fn top(&self) -> Term {
        let granted = self.groups.values().map(|group| group.grantor.max_term).max();
        let granted = granted.unwrap_or_default().max(self.process.largest_term);
        self.process.config.settings().rules.top(self.process.charter().floor, granted)
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Campaign(group) => {
                self.with_group(group, cx, |candidate, around| candidate.campaign(around));
            }
            Command::Resign(group) => {
                self.with_group(group, cx, |candidate, around| candidate.resign(around));
            }
            Command::Transfer { group, to } => {
                self.with_group(group, cx, |candidate, around| candidate.transfer(to, around));
            }
            Command::Verify { group, leader, wanted } => {
                self.with_group(group, cx, |candidate, around| candidate.verify(leader, wanted, around));
            }
            Command::Attempt { group, lease } => {
                self.with_group(group, cx, |candidate, around| candidate.attempt(lease, around));
            }
            Command::Rank { group, priority } => {
                self.with_group(group, cx, |candidate, _| candidate.preference.own = priority);
            }
            Command::Change(change) => self.with_process(|process| process.change(&change, cx)),
        }
    }

    fn on_deadline(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        while let Some(owner) = self.agenda.due(now) {
            match owner {
                Some(group) => self.with_group(group, cx, |candidate, around| candidate.on_deadline(around)),
                None => self.with_process(|process| process.on_epoch_deadline(now, cx)),
            }
        }
    }

    /// A clock that went back breaks (15): what it measured cannot be trusted. Nobody leads by it, nothing is granted
    /// by it, until it has caught up; grants given before then only last longer, which is safe.
    fn on_clock_went_back(&mut self, by: LocalSpan, cx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.process.clock_is_behind, true) {
            return; // Said already.
        }
        cx.publish(Event::ClockWentBack { by });
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.with_group(group, cx, |candidate, around| candidate.distrust_clock(around));
        }
    }
}

impl<R: Rules> Protocol for Nerio<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Cell;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Cell>, cx: &mut Context<'_, Self>) -> Self {
        let settings = config.settings();
        let ceilings = boot.durable.iter().filter_map(|cell| match cell {
            Cell::Ceiling(term) => Some(*term),
            _ => None,
        });
        let durable = ceilings.max().unwrap_or_default();
        let founding = Charter::founding(settings.founding());
        let membership = Membership::start(founding, &boot.durable, &boot.kind, &settings.rules, cx.now());
        let mut process = Process {
            config: config.clone(),
            holder: Holder { node: me, incarnation: boot.incarnation },
            position: membership.charter.body.quorums.position(me),
            clock: StampClock::new(boot.incarnation, cx.now()),
            clock_is_behind: false,
            seq: 0,
            silent_until: LocalTime::ZERO,
            mute: false,
            largest_term: settings.rules.largest_term_known(durable),
            ceiling: Ceiling::start(durable, settings.block, cx),
            weak: Advisor::new(
                settings.weak,
                (me, boot.incarnation),
                settings.timing(),
                membership.charter.members(),
                cx.now(),
            ),
            spoke: None,
            trips: Trips::default(),
            membership,
        };
        process.recall(&boot.kind, cx);
        let remembered = match &boot.kind {
            BootKind::SameBoot { remembered } => remembered.as_slice(),
            BootKind::Founding | BootKind::Rebooted | BootKind::Amnesia => &[],
        };
        let groups = remembered_grants(remembered)
            .map(|(group, grant)| (group, Group::new(process.largest_term, Some(grant))))
            .collect();
        let mut machine = Self { process, groups, agenda: Agenda::default() };
        machine.with_process(|process| process.resume_change(cx));
        machine
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        if self.process.mute {
            return;
        }
        match self.process.clock.observe(cx.now()) {
            Ok(()) => self.process.clock_is_behind = false,
            Err(by) => return self.on_clock_went_back(by, cx),
        }
        match input {
            Input::Message { from, message, .. } => self.on_message(from, message, cx),
            Input::Command(command) => self.on_command(command, cx),
            Input::Deadline => self.on_deadline(cx),
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        if self.process.mute {
            return None;
        }
        let next = self.agenda.next()?;
        // A clock that went back is not asked for anything until it has caught up.
        let behind = self.process.clock_is_behind;
        Some(if behind { next.max(self.process.clock.latest()) } else { next })
    }
}

impl<R: Rules> Elects for Nerio<R> {
    fn leadership(&self, group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let process = &self.process;
        let counts = process.config.settings().rules.reading_counts(now, process.clock.latest());
        self.groups.get(&group).filter(|_| counts)?.candidate.leads_until(now)
    }
}
