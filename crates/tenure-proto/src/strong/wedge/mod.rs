//! The paper's own change of members (section 10.6): an epoch is *wedged* before the next one
//! begins.
//!
//! A member that is wedged grants nothing in its epoch any more. Once a quorum is, nobody can lead
//! there: the epoch is over, and the next may begin, with any members whatever. Nothing of one
//! epoch need meet anything of another, so this is the way out where no chain of neighbours leads
//! to what is wanted (see [`epoch`](super::epoch)). The price is that every group is without a
//! leader meanwhile, so this is for few groups, best for one.
//!
//! The paper leaves open *what* follows a wedged epoch (erratum E20): two who wedge one quorum
//! might begin two different epochs. So the members also decide, by single-decree Paxos among
//! themselves, and the two go together:
//!
//! ```text
//! slow  (anybody)     b := 1 + largest term known        wedge(b) ──▶ all of P_e
//!   q  silent: nothing.  b not above the largest term: outbid.  a grant stands: drain, not yet
//!      else wedged forever, largest term := b (both durable) ──▶ wedged(b, accepted)
//!   a quorum:  what was accepted under the highest ballot, else the own wish      accept(b, charter) ──▶ all of P_e
//! fast  (leader of t) E := 0, b := t                     accept(b, charter, own release) ──▶ all of P_e
//!   q  silent: nothing.  release first.  b below the largest term: outbid.  a grant stands: drain, not yet
//!      else wedged forever, largest term := b, accepted := (b, charter) (durable) ──▶ accepted(b)
//!   a quorum accepted under b: epoch e+1 is decided, with floor b, and told to P_e and P_{e+1}
//! ```
//!
//! **Ballots are terms.** The largest term that a member granted is the highest ballot that it
//! promised, and the durable ceiling stands for both after a restart (larger is always safe). That
//! is what makes the fast way one round trip: the acquisition of t was its phase 1.
//!
//! # Why it is safe
//!
//! **One charter an epoch.** Paxos. The fast way may leave out phase 1: a grantor of t was not
//! wedged, so it had accepted nothing, and from then on refuses every ballot below t. One proposal
//! a term, because a leader that proposes leads no more. Paxos decides the members and their
//! bounds; the floor is that of the ballot at which the decision was seen, so floors of one epoch
//! may differ, and each is right:
//!
//! **Terms carry over.** Let a quorum have accepted under b, and t complete in e. Some q did both.
//! If it granted first, its largest term was at least t, so b >= t; afterwards it is wedged and
//! grants nothing. So all terms of e are at most b.
//!
//! **One running epoch.** Each q that accepted was bound to nobody at that instant, and has granted
//! nothing since. A leader of e would need a quorum that is bound to it, with such a q in it. So
//! when e+1 is decided nobody leads in e, and grants of e that are left bind nobody: a member
//! begins the next epoch free (erratum E24).
//!
//! This needs the following: wedged and accepted are durable before anything is said
//! ([`Rules::keeps_wedge`], erratum E21); a wedge waits for the grant that stands
//! ([`Rules::may_wedge`]) and is not done in silence; and a leader gives up E before it proposes
//! ([`Rules::stops_before_change`]), not while a pledge stands.
//!
//! # Why it ends
//!
//! It needs a quorum of e that runs: not, as the paper has it, that "at most a quorum" is faulty
//! (erratum E18). A stable leader renews forever, so a wedge that waits for its lease to run out
//! would never get in (erratum E19): a member with a pending wedge *drains*, it refuses renewals
//! too. A wedged member, and any candidate that was refused for it, brings the change to an end
//! after a while, with the members as they are if nobody wanted others. Meanwhile candidates do not
//! ask: their rising terms would outbid every ballot.

mod changer;
mod member;

use std::sync::Arc;

use super::epoch::{Body, Charter, Epoch};
use super::message::{Cell, InstanceId, Refusal, Term};
use super::rules::Rules;
use super::{Nerio, Process};
use crate::quorum::NodeSet;
use crate::time::LocalSpan;
use crate::timers::Timers;
use crate::{Context, GroupId, LocalTime, Ticket};

/// Names one attempt to end an epoch. Two of one ballot may be about; only one of them can have a
/// quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bid {
    /// The epoch that is to end.
    pub epoch: Epoch,
    /// Its ballot: a term.
    pub ballot: Term,
    /// Whose it is, and which.
    pub id: InstanceId,
}

/// Messages that end an epoch and decide the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WedgeTalk {
    /// Phase 1: grant nothing in this epoch any more, and tell what you accepted.
    Wedge(Bid),
    /// So it is.
    Wedged {
        /// The attempt.
        bid: Bid,
        /// The charter accepted under the highest ballot so far.
        accepted: Option<(Term, Arc<Charter>)>,
    },
    /// Phase 2: accept this, and grant nothing in this epoch any more.
    Accept {
        /// The attempt.
        bid: Bid,
        /// What.
        charter: Arc<Charter>,
        /// The runs that a leader gives back with it: the sender's own.
        release: Option<(GroupId, InstanceId)>,
    },
    /// It is accepted.
    Accepted(Bid),
    /// Not now.
    NotYet {
        /// The attempt.
        bid: Bid,
        /// Why.
        hindrance: Hindrance,
    },
}

/// Why a member is not wedged, or does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hindrance {
    /// It granted or promised as much as this.
    Outbid(Term),
    /// A grant stands. It is not renewed any more.
    Bound {
        /// How much longer, on its clock.
        remaining: LocalSpan,
    },
}

/// How far an epoch has come, as a process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochState {
    /// It has not begun.
    Pending,
    /// Leaders are elected in it.
    Running,
    /// A quorum of it is wedged: nobody leads in it, ever again.
    Terminated,
}

/// A deadline of a change.
#[derive(Clone, Copy)]
enum Timer {
    /// Begin an attempt.
    Begin,
    /// Say it again to those that did not answer.
    Resend,
    /// Somebody is wedged and the next epoch is not known: finish it.
    Finish,
}

impl Timer {
    const COUNT: usize = Self::Finish as usize + 1;
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// All that a process knows of the end of its epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wedging {
    /// Durable: this member grants nothing in its epoch any more.
    wedged: bool,
    /// Durable: what it accepted, and under which ballot.
    accepted: Option<(Term, Arc<Charter>)>,
    /// The newest attempt that was answered, which may ask again.
    promised: Option<Bid>,
    /// The write that makes this durable: no answer leaves before that.
    saved: Option<Ticket>,
    /// Until when nothing is granted, so that a wedge can get in.
    drain_until: LocalTime,
    /// Until when this process's candidates leave the terms alone.
    hold_until: LocalTime,
    /// The members and bounds that this process wants.
    goal: Option<Body>,
    attempt: Option<Attempt>,
    /// The largest term that a denial told of.
    hint: Term,
    /// How often in a row this process was outbid: it waits the longer.
    outbid: u32,
    timers: Timers<{ Timer::COUNT }>,
}

/// An attempt under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    bid: Bid,
    phase: Phase,
    answered: NodeSet,
    denied: NodeSet,
    /// How often it was said.
    said: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Waiting for wedges; what was accepted under the highest ballot.
    Wedges(Option<(Term, Arc<Charter>)>),
    /// Waiting for acceptance.
    Accepts { charter: Arc<Charter>, release: Option<(GroupId, InstanceId)> },
}

impl Default for Wedging {
    fn default() -> Self {
        Self {
            wedged: false,
            accepted: None,
            promised: None,
            saved: None,
            drain_until: LocalTime::ZERO,
            hold_until: LocalTime::ZERO,
            goal: None,
            attempt: None,
            hint: Term(0),
            outbid: 0,
            timers: Timers::default(),
        }
    }
}

impl Wedging {
    /// The state by the disk's records on `epoch`; records on an older one do not matter any more.
    pub(super) fn start<R: Rules>(epoch: Epoch, durable: &[Cell], rules: &R) -> Self {
        let found = durable.iter().find_map(|cell| match cell {
            Cell::Wedge { epoch: of, accepted } if *of == epoch => Some(accepted.clone()),
            _ => None,
        });
        match found.filter(|_| rules.keeps_wedge()) {
            Some(accepted) => Self { wedged: true, accepted, ..Self::default() },
            None => Self::default(),
        }
    }

    /// When something is to be done, if anything.
    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        self.timers.next()
    }

    /// Why a member grants nothing for now, or forever.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.wedged.then_some(Refusal::Wedged)
    }

    /// Why a member does not even renew what it granted (erratum E19).
    pub(super) fn draining(&self, now: LocalTime) -> Option<Refusal> {
        (now < self.drain_until).then_some(Refusal::Draining)
    }

    fn drop_attempt(&mut self) {
        self.attempt = None;
        self.timers.clear(Timer::Resend);
    }
}

impl<R: Rules> Process<R> {
    /// Until when a candidate leaves the terms alone, if it has to: they are the ballots of a
    /// change that is under way.
    pub(super) fn awaits_change(&self, now: LocalTime) -> Option<LocalTime> {
        let Wedging { wedged, attempt, hold_until, .. } = &self.wedging;
        if *wedged || attempt.is_some() {
            return Some(now.after(self.config.settings().retry.nominal().times(2)).max(*hold_until));
        }
        (now < *hold_until).then_some(*hold_until)
    }

    /// A request was refused because its grantor is wedged or drains. A grantor that drains may
    /// come back; a wedged one does not, so some process must bring the change to an end.
    pub(super) fn on_held_up(&mut self, wedged: bool, cx: &mut Context<'_, Nerio<R>>) {
        let retry = self.config.settings().retry.nominal();
        if wedged {
            self.watch_change(cx);
        }
        let hold = cx.now().after(retry.times(if wedged { 8 } else { 2 }));
        self.wedging.hold_until = self.wedging.hold_until.max(hold);
    }

    /// Brings the change to an end after a while, unless somebody else does.
    fn watch_change(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        if self.wedging.timers.is_set(Timer::Finish) {
            return;
        }
        let retry = self.config.settings().retry.nominal();
        let patience = retry.times(4).plus(cx.jitter(retry.times(16)));
        self.wedging.timers.set(Timer::Finish, cx.now().after(patience));
    }

    /// After a restart: an epoch that is wedged must come to its end.
    pub(super) fn resume_wedge(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        if self.wedging.wedged {
            self.watch_change(cx);
        }
    }
}

impl<R: Rules> Nerio<R> {
    /// How far an epoch has come, as far as this process knows (section 10.6).
    pub fn epoch_state(&self, epoch: Epoch) -> EpochState {
        let newest = self.process.membership.epoch();
        // Phase 2 follows a quorum of wedges. On the fast way it does not: there the last answer
        // says so.
        let over = self.process.wedging.attempt.as_ref().is_some_and(|attempt| {
            matches!(attempt.phase, Phase::Accepts { release: None, .. }) && attempt.bid.epoch == newest
        });
        match epoch.cmp(&newest) {
            std::cmp::Ordering::Less => EpochState::Terminated,
            std::cmp::Ordering::Equal if over => EpochState::Terminated,
            std::cmp::Ordering::Equal => EpochState::Running,
            std::cmp::Ordering::Greater => EpochState::Pending,
        }
    }

    /// Whether this process grants nothing in its epoch any more, and waits for the next.
    pub fn is_wedged(&self) -> bool {
        self.process.wedging.wedged
    }
}

impl Wedging {
    /// Whether nothing of it is in use: where epochs are not ended.
    pub(super) fn is_idle(&self) -> bool {
        let wants = self.goal.is_some() || self.attempt.is_some();
        let keeps = self.wedged || self.accepted.is_some() || self.promised.is_some();
        !wants && !keeps && self.timers.next().is_none()
    }
}
