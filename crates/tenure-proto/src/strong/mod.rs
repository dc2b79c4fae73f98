//! Nerio: leases from a quorum, so that at most one process leads at any instant.
//!
//! # The idea
//!
//! A **grantor** q supports one process at a time: it keeps which one (A) and until when on its own
//! clock (F). A process that is supported by a quorum leads (12). Two quorums share a grantor, so
//! two processes cannot lead at once, which would be split brain (1). The difficulty is only that p
//! must know, by its own clock, that a quorum supports it *now*, though clocks differ and messages
//! take any time. So p keeps a reading E up to which it may act, and everything below serves to
//! keep
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
//! Why (14) holds: p asked before q answered, so T lies after Start in real time. By p's clock
//! (1-ρ)δ lasts at most δ; by q's clock (1+ρ)δ lasts at least δ (15). So p stops before q is free.
//! A renewal is the same run by a leader; a run that p replaces by a new one is aborted and answers
//! to it count for nothing.
//!
//! OQwBS is the same algorithm for clocks that differ by at most Δ at any instant (20): E = Start +
//! δ and F = Start + δ + Δ, for q can read Start_p on its own clock to within Δ. A request that was
//! long on its way then binds q no longer than one that was quick. But clocks must be synchronised,
//! and a bound on skew is harder to keep than one on drift: that is why drift is the default
//! (section 5).
//!
//! # Additions of a real system
//!
//! * **Terms.** An acquisition carries a term that must exceed every term its grantors granted;
//!   renewals keep it. So terms are unique and rise, and a token made from them can fence. The
//!   largest term survives restarts as one durable **ceiling** for all groups, raised in blocks in
//!   the background: no disk on a renewal, usually none on an acquisition.
//! * **Instances.** A run is named by process, incarnation and number, unique forever; a start
//!   time is not.
//! * **Restarts.** A grantor that lost its memory is silent until every promise that it may have
//!   given is over. Within one boot the memory of grants survives the process, and no silence is
//!   needed. A grantor that lost its disk takes no part, or, where members never change, reads the
//!   lost terms from the others (`recovery`).
//! * **Members**, their quorums, ρ or Δ, and δ_max change by decided charters, one an epoch:
//!   gaplessly, a leader renewing into the next epoch ([`epoch`]), or, as in the paper, by ending
//!   one before the next begins ([`wedge`]).
//! * **Release.** A candidate that cannot win gives its grants back at once, and a leader that
//!   resigns does so after giving up E. A release names the newest run that it covers: a late one
//!   cancels no later grant.
//! * **Hand-over** to a chosen process takes one round trip: the leader passes its successor's
//!   request on together with its own release (`transfer`).
//! * **Verification** tells another process until when, on its clock, a leader is certain
//!   (`verify`).
//! * **Finding** the leader: a process that is asked answers, or tells whom it supports ([`find`]).
//! * **Forgetting** a group that nobody uses gives its memory back (`forget`).
//! * **Refusals** are answered, with the term to beat and the time to wait, so that candidates
//!   waste neither; and a grantor that is free sooner says so (`free`).
//! * **Heights.** An outsider raises the terms of a member by no more than a bucket of its key
//!   holds, for one ceiling serves all groups ([`height`]).
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
//! # Assumptions
//!
//! Clocks keep to ρ (15) and run on while a machine is suspended. Messages may be lost, repeated,
//! delayed and reordered in any way, not forged. Processes may stop, pause and restart at any time.
//! If a clock breaks ρ two processes may lead at once for a while, and only the fence at the
//! receiver protects.
//!
//! # When to try
//!
//! A weak election (section 9) tells each candidate its turn (`turn`,
//! [`weak`](crate::detect::weak)). It is advice: no rule in [`Rules`] knows of it, and if it is
//! wrong about everything candidates collide or wait, and never do two lead.
//!
//! # Example
//!
//! ```
//! use tenure_proto::detect::weak::{Choice, Watch};
//! use tenure_proto::quorum::Quorums;
//! use tenure_proto::strong::{Command, Event, Nerio, Settings, Sound, Succession};
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
//!     reserve: Span::from_nanos(0),
//!     eager: false,
//!     longest_lease: Span::from_millis(2000),
//!     window: Span::from_millis(10),
//!     retry: Span::from_millis(5),
//!     block: 256,
//!     succession: Succession::Adjacent,
//!     weak: Choice::Ring(Watch::Heartbeat),
//!     adapt: None,
//!     hold: None,
//!     rules: Sound,
//! }
//! .validate()?;
//! let store = boot::Store::Founded(Vec::new());
//! let boot = Boot::judge(store, None, boot::BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 });
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
mod disturbed;
pub mod edict;
pub mod epoch;
mod event;
mod explore;
pub mod find;
mod forget;
mod free;
mod grantor;
pub mod height;
mod invariants;
mod message;
mod pace;
mod prefer;
mod process;
mod recovery;
mod rules;
mod run;
mod standing;
mod term;
#[cfg(test)]
mod tests;
mod tombs;
mod transfer;
mod turn;
mod verify;
pub mod wedge;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use config::{Adapt, Config, ConfigError, Settings, Succession};
pub use edict::{Edict, Token};
pub use find::{Hint, How, Miss};
pub use grantor::Grant;
pub use height::HeightTalk;
pub use message::{
    Cell, CellKey, Command, Event, Failure, GrantRequest, Holder, InstanceId, Kind, Loss, Message, Refusal,
    Talk, Term,
};
pub use recovery::RecoveryTalk;
pub use rules::{Across, Rules, Sound};
pub use standing::{Standing, WeakLeader};

use crate::detect::weak::{Advisor, Weak};
use crate::quorum::NodeSet;
use crate::time::StampClock;
use crate::timers::Agenda;
use crate::{Boot, BootKind, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol};
use candidate::{Around, Candidate};
use epoch::{Charter, CharterId, Epoch, Halt, Membership, Stage};
use grantor::{Grantor, remembered_grants};
use height::Heights;
use pace::Trips;
use recovery::Recovery;
use term::Ceiling;
use verify::Certainty;
use wedge::Wedging;

/// A process of a strong cluster: grantor, candidate, or both, for any number of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nerio<R: Rules = Sound> {
    process: Process<R>,
    groups: BTreeMap<GroupId, Group>,
    /// When each group wants to be woken, and (`None`) the process itself.
    agenda: Agenda<Option<GroupId>>,
}

/// State that belongs to the process rather than to a group.
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
    /// Commands received meanwhile, in order: done when the clock has caught up.
    kept: Vec<Command>,
    /// Runs begun in this life.
    seq: u64,
    /// Until when this grantor waits out what it may have forgotten.
    silent_until: LocalTime,
    /// The disk was lost: promises may stand that nobody here knows of.
    mute: bool,
    /// The largest term of a group that has nothing in memory: as the disk said at the start, and
    /// as granted in groups that were forgotten since.
    largest_term: Term,
    ceiling: Ceiling,
    /// How high terms are, and who raised them.
    heights: Heights,
    /// The exact largest term was written, as the last word of this life.
    closed: bool,
    /// The newest epoch, and what is under way to change it.
    membership: Membership,
    /// The work under way to end it, where it is wedged before the next begins.
    wedging: Wedging,
    /// The charter of another cluster of this name and key: until an operator decides, nothing is
    /// granted or led.
    split: Option<CharterId>,
    /// The disk was lost, and what was on it is being read from the others.
    recovery: Option<Recovery>,
    /// The members that seem to live, and so whose turn it is to try. Advice, no more.
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

/// The other cluster that a former life has stopped for.
fn known_split(durable: &[Cell]) -> Option<CharterId> {
    durable.iter().find_map(|cell| match cell {
        Cell::SplitBrain(other) => other.clone(),
        _ => None,
    })
}

/// A group, as nobody has seen it before if need be.
fn entry<'a, R: Rules>(
    groups: &'a mut BTreeMap<GroupId, Group>,
    process: &Process<R>,
    id: GroupId,
) -> &'a mut Group {
    groups.entry(id).or_insert_with(|| Group::new(process.largest_term, None))
}

/// Takes talk about where the leader is.
fn on_search<R: Rules>(c: &mut Candidate, from: NodeId, talk: Talk, around: &mut Around<'_, '_, R>) {
    match talk {
        Talk::Seek { id, how, hops } => c.on_seek(from, (id, how, hops), around),
        Talk::Here { id, hops, leader, term } if leader.node == from => {
            c.on_here(from, (id, hops), (leader, term), around);
        }
        Talk::There { id, hops, hint } => c.on_there(from, (id, hops), hint, around),
        Talk::Nowhere { id, hops, why } => c.on_nowhere(from, (id, hops), why, around),
        _ => {}
    }
}

impl<R: Rules> Nerio<R> {
    /// The grant that this process has given for a group, whether or not it still binds.
    pub fn grant(&self, group: GroupId) -> Option<&Grant> {
        self.groups.get(&group)?.grantor.grant.as_ref()
    }

    /// The latest reading at which this grantor may still refuse what was given back, in any group.
    pub fn latest_tomb(&self) -> Option<LocalTime> {
        self.groups.values().filter_map(|group| group.grantor.latest_tomb()).max()
    }

    /// The charter after the present one that this process has accepted, not knowing whether it is
    /// decided.
    pub fn pending_change(&self) -> Option<&Charter> {
        self.process.membership.pending()
    }

    /// The stage of a change of the members that this process brings about.
    pub fn change_stage(&self) -> Option<Stage> {
        self.process.stage()
    }

    /// The newest epoch that this process knows.
    pub fn epoch(&self) -> Epoch {
        self.process.membership.epoch()
    }

    /// The charter of that epoch.
    pub fn charter(&self) -> &Arc<Charter> {
        &self.process.membership.charter
    }

    /// The reading until which this grantor waits out promises that it may have forgotten; in the
    /// past if it does not.
    pub fn silent_until(&self) -> LocalTime {
        self.process.silent_until
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
        let (before, led) = (group.candidate.next_deadline(), group.candidate.lead);
        let mut around = Around { group: id, own: &group.grantor, process: &mut self.process, cx };
        step(&mut group.candidate, &mut around);
        group.candidate.serve(&mut around);
        group.candidate.lead.iter().for_each(|lead| lead.assert_follows(led, self.process.rules()));
        self.agenda.update(Some(id), before, group.candidate.next_deadline());
    }

    /// Lets `step` work on the process itself, then notes when that wants to be woken.
    fn with_process<T>(&mut self, step: impl FnOnce(&mut Process<R>) -> T) -> T {
        let before = self.process.next_deadline();
        let result = step(&mut self.process);
        self.agenda.update(None, before, self.process.next_deadline());
        result
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        self.process.weak.heard(from, cx.now());
        let rules = self.process.rules().clone();
        let own = |holder: Holder| rules.speaks_for(from, holder.node);
        match message {
            Message::Request(request) if own(request.id.holder) => self.on_request(from, request, cx),
            Message::Release { group, upto } if own(upto.holder) => {
                self.on_release(group, upto, cx);
                self.tell_refused(group, cx);
            }
            Message::Talk { group, talk } => self.on_talk(from, group, talk, cx),
            Message::Epoch(talk) => self.on_epoch_talk(from, talk, cx),
            Message::Wedge(talk) => self.on_wedge_talk(from, talk, cx),
            Message::Recovery(talk) => self.on_recovery_talk(from, talk, cx),
            Message::Height(talk) => self.process.on_height_talk(from, talk, cx),
            Message::Extend { request, alive, priority } if own(request.id.holder) => {
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
                self.process.vouch(from, max_term, cx);
                self.with_group(group, cx, |candidate, around| {
                    candidate.on_nack(from, id, refusal, max_term, around);
                });
                if matches!(refusal, Refusal::Wedged | Refusal::Draining) {
                    self.with_process(|process| process.on_held_up(refusal == Refusal::Wedged, cx));
                }
            }
        }
    }

    fn on_request(&mut self, by: NodeId, request: GrantRequest, cx: &mut Context<'_, Self>) {
        let newest = self.process.membership.epoch();
        let grants = self.process.rules().grants_in(request.epoch, newest);
        if !grants && !self.process.admits(request.id.holder.node, request.epoch, cx) {
            return; // MONO
        }
        self.process.weak.passes(request.id.holder.node, false);
        let group = entry(&mut self.groups, &self.process, request.group);
        group.grantor.on_request(request, by, &mut self.process, cx);
        if group.candidate.finding.has_waiting() {
            self.with_group(request.group, cx, |_, _| ()); // Perhaps this process now knows whom to name.
        }
    }

    /// A leader's renewal is a request like any other; besides, it tells who lives, and how gladly
    /// the leader would hand over.
    fn on_extend(
        &mut self,
        request: GrantRequest,
        (alive, priority): (NodeSet, u8),
        cx: &mut Context<'_, Self>,
    ) {
        if request.epoch == self.process.membership.epoch() {
            self.process.weak.report(alive, cx.now());
        }
        self.on_request(request.id.holder.node, request, cx);
        let leader = request.id.holder;
        self.with_group(request.group, cx, |candidate, around| {
            // One that comes late, of an earlier term of the same holder, renews nothing.
            let renews = |grant: Grant| grant.holder == leader && grant.term == request.term;
            if around.own.grant.is_some_and(renews) {
                candidate.on_renewed((leader, request.term), around);
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

    /// If nobody has what was given back, those who were refused for its sake may know.
    fn tell_refused(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let entry = entry(&mut self.groups, &self.process, group);
        if entry.grantor.grant.is_none() {
            entry.grantor.refused.tell(group, &self.process, cx);
        }
    }

    fn on_talk(&mut self, from: NodeId, group: GroupId, talk: Talk, cx: &mut Context<'_, Self>) {
        match talk {
            // A relay is two messages in one step: the release is the sender's own, the request
            // another's.
            Talk::Relay { release, request } if self.relays_own(from, release.holder) => {
                self.on_release(group, release, cx);
                self.on_request(from, request, cx);
                self.tell_refused(group, cx);
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
                    c.on_certain(from, Certainty { id, leader, term, pledge }, around);
                });
            }
            Talk::Free => self.with_group(group, cx, |candidate, around| candidate.on_free(around)),
            Talk::Seek { .. } | Talk::Here { .. } | Talk::There { .. } | Talk::Nowhere { .. } => {
                self.with_group(group, cx, |candidate, around| on_search(candidate, from, talk, around));
            }
        }
    }

    fn relays_own(&self, from: NodeId, holder: Holder) -> bool {
        self.process.rules().relays_own_release(from, holder.node)
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        match command {
            Command::Disturbed => self.on_disturbed(cx),
            Command::Campaign(group) => {
                self.with_group(group, cx, |candidate, around| candidate.campaign(around));
            }
            Command::Offer(group) => {
                self.with_group(group, cx, |candidate, _| candidate.finding.offer(true));
            }
            Command::Resign(group) => {
                self.with_group(group, cx, |candidate, around| {
                    candidate.finding.offer(false);
                    candidate.resign(around);
                });
            }
            Command::StandDown(group) => {
                self.with_group(group, cx, |candidate, around| {
                    candidate.finding.offer(false);
                    candidate.stand_down(around);
                });
            }
            Command::Transfer { group, to } => {
                self.with_group(group, cx, |candidate, around| candidate.transfer(to, around));
            }
            Command::Verify { group, leader, wanted } => {
                self.with_group(group, cx, |candidate, around| candidate.verify(leader, wanted, around));
            }
            Command::Find { group, ask, how, hops } => {
                self.with_group(group, cx, |candidate, around| candidate.find(ask, how, hops, around));
            }
            Command::Attempt { group, lease } => {
                self.with_group(group, cx, |candidate, around| candidate.attempt(lease, around));
            }
            Command::Raise { group, above } => {
                self.with_group(group, cx, |candidate, _| candidate.hint = candidate.hint.max(above));
            }
            Command::KeyOf { node, key } => self.process.note_key(node, key),
            Command::Confirm(term) => self.process.confirm(term, cx),
            Command::Close => self.process.close(cx),
            Command::Rank { group, priority } => {
                self.with_group(group, cx, |candidate, _| candidate.preference.own = priority);
            }
            Command::AcceptLineage => self.accept_lineage(cx),
            Command::Forget(group) => self.on_forget(group, cx),
            Command::Change(change) => match self.process.config.settings().succession {
                Succession::Adjacent => self.with_process(|process| process.change(&change, cx)),
                Succession::Wedge => self.change_by_wedge(&change, cx),
                Succession::Fixed => cx.publish(Event::ChangeHalted { halt: Halt::Fixed }),
            },
        }
    }

    fn on_deadline(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        while let Some(owner) = self.agenda.due(now) {
            match owner {
                Some(group) => self.with_group(group, cx, |candidate, around| candidate.on_deadline(around)),
                None => self.on_process_deadline(now, cx),
            }
        }
    }

    fn on_process_deadline(&mut self, now: LocalTime, cx: &mut Context<'_, Self>) {
        if let Some(charter) = self.with_process(|process| process.on_epoch_deadline(now, cx)) {
            self.adopt(&charter, cx);
        }
        self.on_wedge_deadline(now, cx);
        self.on_recovery_deadline(now, cx);
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
        let membership = Membership::start(founding, &boot.durable, &boot.kind, config.rules(), cx.now());
        let wedging = Wedging::start(membership.epoch(), &boot.durable, config.rules());
        // A process that has lost its disk writes nothing before it knows what to write: an empty
        // store is no store.
        let ceiling = match boot.kind {
            BootKind::Amnesia => Ceiling::unwritten(settings.block),
            _ => Ceiling::start(durable, settings.block, cx),
        };
        let process = Process {
            config: config.clone(),
            holder: Holder { node: me, incarnation: boot.incarnation },
            position: membership.charter.body.quorums.position(me),
            clock: StampClock::new(boot.incarnation, cx.now()),
            clock_is_behind: false,
            kept: Vec::new(),
            seq: 0,
            silent_until: LocalTime::ZERO,
            mute: false,
            largest_term: config.rules().largest_term_known(durable),
            ceiling,
            heights: Heights::default(),
            closed: false,
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
            wedging,
            split: known_split(&boot.durable),
            recovery: None,
        };
        let remembered = match &boot.kind {
            BootKind::SameBoot { remembered } => remembered.as_slice(),
            BootKind::Founding | BootKind::Rebooted | BootKind::Amnesia => &[],
        };
        // Where epochs are ended, a grant of an older one binds nobody. One of a newer epoch may be
        // found if its charter was not on disk yet.
        let newest = process.membership.epoch();
        let binds = |grant: &Grant| settings.succession != Succession::Wedge || grant.epoch >= newest;
        let groups = remembered_grants(remembered)
            .filter(|(_, grant)| binds(grant))
            .map(|(group, grant)| (group, Group::new(process.largest_term, Some(grant))))
            .collect();
        let mut machine = Self { process, groups, agenda: Agenda::default() };
        let granted = machine.groups.values().map(|group| group.grantor.max_term).max();
        machine.process.heights = Heights::new(granted.unwrap_or_default());
        machine.with_process(|process| {
            process.recall(&boot.kind, cx);
            process.resume_change(cx);
            process.resume_wedge(cx);
        });
        machine
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        if self.process.is_deaf() {
            return;
        }
        match self.process.clock.observe(cx.now()) {
            Ok(()) => self.process.clock_is_behind = false,
            Err(by) => {
                self.on_clock_went_back(by, cx);
                if !self.process.rules().acts_while_behind() {
                    return match input {
                        Input::Command(command) if !command.needs_clock() => self.on_command(command, cx),
                        input => self.keep_command(input),
                    };
                }
            }
        }
        for command in std::mem::take(&mut self.process.kept) {
            self.on_command(command, cx);
        }
        match input {
            Input::Message { from, message, .. } => self.on_message(from, message, cx),
            Input::Command(command) => self.on_command(command, cx),
            Input::Deadline => self.on_deadline(cx),
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        if self.process.is_deaf() {
            return None;
        }
        if !self.process.clock_is_behind {
            return self.agenda.next();
        }
        // A clock that went back is not asked for anything until it has caught up.
        let caught_up = self.process.clock.latest();
        let kept = (!self.process.kept.is_empty()).then_some(caught_up);
        kept.or(self.agenda.next().map(|next| next.max(caught_up)))
    }
}

impl<R: Rules> Elects for Nerio<R> {
    fn leadership(&self, group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let process = &self.process;
        let counts = process.rules().reading_counts(now, process.clock.latest());
        self.groups.get(&group).filter(|_| counts)?.candidate.leads_until(now)
    }
}
