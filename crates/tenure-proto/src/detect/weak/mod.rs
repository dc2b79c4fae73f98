//! Weak elections (section 9): advice on when to try, never on who leads.
//!
//! Any number of processes may try to become leader; the quorum decides, and nobody is harmed. But
//! runs that meet take each other's grants, and all may fail. A weak election makes it likely that
//! one process tries and the others wait. It may be wrong: it may name several, or nobody, or a
//! dead process. That costs a few steps of waiting or a collision. **Nothing that keeps two leaders
//! apart may depend on it.**
//!
//! A weak election is told which members are heard ([`Weak`]) and answers with a [`Turn`]: how many
//! steps a candidate waits before it tries. The weak leader waits none. Every other member waits a
//! little longer than those before it, so that a weak leader that does not campaign, or reaches no
//! quorum, holds nobody up for long. Which election a process uses is a setting ([`Choice`]), and
//! the choices can differ between processes: they need not agree to be safe, only to be quick.
//!
//! | choice | who tries first |
//! |---|---|
//! | [`AtRandom`] | the member that draws the earliest time in a window |
//! | [`OnRing`] | the lowest member that is not suspected |
//! | [`OnOmega`] | among the members that are not suspected, one that enough others answer in time, not always the same ones |
//! | [`OnLocal`] | the local leader: the first of the members that reach each other in time, supported by all of them |

mod on_local;
mod on_omega;
mod on_ring;
#[cfg(test)]
mod tests;

pub use on_local::OnLocal;
pub use on_omega::OnOmega;
pub use on_ring::OnRing;

use crate::quorum::NodeSet;
use crate::time::{Incarnation, LocalSpan};
use crate::{Data, GroupId, LocalTime, NodeId};

use super::{Detector, Heartbeat, PhiAccrual, phi};

/// The time at which a candidate should try, counted from when its own grantor supports nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// After this many steps, each long enough for a run. Zero is the turn of the weak leader.
    Rank(u32),
    /// At a random time in the window, which begins after this many steps.
    Window {
        /// How many steps are left to others.
        after: u32,
    },
}

/// A heartbeat that others may pass on: its sequence number rises for a process, over restarts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beat {
    /// The life in which it was given.
    pub incarnation: Incarnation,
    /// The sequence number within that life.
    pub count: u64,
}

/// A weak election as one process sees it. Plain data; every reading is of its own host's clock,
/// and members are named by their position in the present epoch.
pub trait Weak: Data {
    /// Begins an epoch with these members, in the order that all know.
    fn members(&mut self, members: &[NodeId], now: LocalTime);

    /// Notes that a message came in from `from` itself, of any kind.
    fn heard(&mut self, from: NodeId, now: LocalTime);

    /// Notes a leader's report of the members that have answered it lately.
    fn report(&mut self, alive: NodeSet, now: LocalTime);

    /// Notes the newest signs of life that another member knows of. Only a sign newer than the one
    /// known here counts: else two members could keep a dead process alive for each other by
    /// passing old news to and fro.
    fn passed_on(&mut self, beats: &[Option<Beat>], now: LocalTime);

    /// The signs of life to pass on, one's own among them, a new one each time.
    fn beats(&mut self, now: LocalTime) -> Vec<Option<Beat>>;

    /// Notes that a promise to `node` has run out at `at`: unless it was heard since then, it has
    /// stopped, or it cannot be heard.
    fn lapsed(&mut self, node: NodeId, at: LocalTime);

    /// Notes whether `node` leaves its turn to others, because it has given back its grants. It
    /// takes its turn again when it asks again, in whatever group.
    fn passes(&mut self, node: NodeId, passes: bool);

    /// The turn of this process in `group`.
    fn turn(&self, group: GroupId, now: LocalTime) -> Turn;

    /// The members to send signs of life to while nobody leads.
    fn neighbours(&self, now: LocalTime) -> Vec<NodeId>;

    /// The members that are not suspected.
    fn trusted(&self, now: LocalTime) -> NodeSet;

    /// The first of them, in the order of `group`: the weak leader, as far as this process knows.
    fn weak_leader(&self, group: GroupId, now: LocalTime) -> Option<NodeId>;

    /// The members that were heard themselves at `since` or later.
    fn alive(&self, since: LocalTime) -> NodeSet;
}

/// Which weak election a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// See [`AtRandom`].
    Random,
    /// See [`OnRing`].
    Ring(Watch),
    /// See [`OnOmega`].
    Omega,
    /// See [`OnLocal`].
    Local,
}

/// The way in which the members of a ring are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watch {
    /// By a fixed timeout: as long as a leader may take to renew, and as long as news takes around
    /// the ring.
    Heartbeat,
    /// By phi accrual, from the intervals seen. Its pause should be as long as a lease: between
    /// renewals nobody speaks.
    Phi(phi::Config),
}

/// One member's detector, as [`Watch`] wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Watcher {
    Heartbeat(Heartbeat),
    Phi(PhiAccrual),
}

impl Detector for Watcher {
    fn heard(&mut self, now: LocalTime) {
        match self {
            Self::Heartbeat(detector) => detector.heard(now),
            Self::Phi(detector) => detector.heard(now),
        }
    }

    fn suspects(&self, now: LocalTime) -> bool {
        match self {
            Self::Heartbeat(detector) => detector.suspects(now),
            Self::Phi(detector) => detector.suspects(now),
        }
    }

    fn next_crossing(&self, now: LocalTime) -> Option<LocalTime> {
        match self {
            Self::Heartbeat(detector) => detector.next_crossing(now),
            Self::Phi(detector) => detector.next_crossing(now),
        }
    }
}

/// The timing of the protocol that a weak election advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// The longest silence of a leader between two renewals.
    pub renewal: LocalSpan,
    /// The interval of messages while nobody leads: about one round trip.
    pub interval: LocalSpan,
}

/// The weak election of a process, as [`Choice`] names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Advisor {
    /// See [`AtRandom`].
    Random(AtRandom),
    /// See [`OnRing`].
    Ring(OnRing),
    /// See [`OnOmega`].
    Omega(OnOmega),
    /// See [`OnLocal`].
    Local(OnLocal),
}

impl Advisor {
    /// Makes the weak election of one life of `me`, as if all members had just been heard.
    pub fn new(
        choice: Choice,
        (me, incarnation): (NodeId, Incarnation),
        timing: Timing,
        members: &[NodeId],
        now: LocalTime,
    ) -> Self {
        match choice {
            Choice::Random => Self::Random(AtRandom { members: members.len() }),
            Choice::Ring(watch) => Self::Ring(OnRing::new((me, incarnation), watch, timing, members, now)),
            Choice::Omega => Self::Omega(OnOmega::new((me, incarnation), timing, members, now)),
            Choice::Local => Self::Local(OnLocal::new((me, incarnation), timing, members, now)),
        }
    }
}

impl Weak for Advisor {
    fn members(&mut self, members: &[NodeId], now: LocalTime) {
        match self {
            Self::Random(advisor) => advisor.members(members, now),
            Self::Ring(advisor) => advisor.members(members, now),
            Self::Omega(advisor) => advisor.members(members, now),
            Self::Local(advisor) => advisor.members(members, now),
        }
    }

    fn heard(&mut self, from: NodeId, now: LocalTime) {
        match self {
            Self::Random(advisor) => advisor.heard(from, now),
            Self::Ring(advisor) => advisor.heard(from, now),
            Self::Omega(advisor) => advisor.heard(from, now),
            Self::Local(advisor) => advisor.heard(from, now),
        }
    }

    fn report(&mut self, alive: NodeSet, now: LocalTime) {
        match self {
            Self::Random(advisor) => advisor.report(alive, now),
            Self::Ring(advisor) => advisor.report(alive, now),
            Self::Omega(advisor) => advisor.report(alive, now),
            Self::Local(advisor) => advisor.report(alive, now),
        }
    }

    fn passed_on(&mut self, beats: &[Option<Beat>], now: LocalTime) {
        match self {
            Self::Random(advisor) => advisor.passed_on(beats, now),
            Self::Ring(advisor) => advisor.passed_on(beats, now),
            Self::Omega(advisor) => advisor.passed_on(beats, now),
            Self::Local(advisor) => advisor.passed_on(beats, now),
        }
    }

    fn beats(&mut self, now: LocalTime) -> Vec<Option<Beat>> {
        match self {
            Self::Random(advisor) => advisor.beats(now),
            Self::Ring(advisor) => advisor.beats(now),
            Self::Omega(advisor) => advisor.beats(now),
            Self::Local(advisor) => advisor.beats(now),
        }
    }

    fn lapsed(&mut self, node: NodeId, at: LocalTime) {
        match self {
            Self::Random(advisor) => advisor.lapsed(node, at),
            Self::Ring(advisor) => advisor.lapsed(node, at),
            Self::Omega(advisor) => advisor.lapsed(node, at),
            Self::Local(advisor) => advisor.lapsed(node, at),
        }
    }

    fn passes(&mut self, node: NodeId, passes: bool) {
        match self {
            Self::Random(advisor) => advisor.passes(node, passes),
            Self::Ring(advisor) => advisor.passes(node, passes),
            Self::Omega(advisor) => advisor.passes(node, passes),
            Self::Local(advisor) => advisor.passes(node, passes),
        }
    }

    fn turn(&self, group: GroupId, now: LocalTime) -> Turn {
        match self {
            Self::Random(advisor) => advisor.turn(group, now),
            Self::Ring(advisor) => advisor.turn(group, now),
            Self::Omega(advisor) => advisor.turn(group, now),
            Self::Local(advisor) => advisor.turn(group, now),
        }
    }

    fn neighbours(&self, now: LocalTime) -> Vec<NodeId> {
        match self {
            Self::Random(advisor) => advisor.neighbours(now),
            Self::Ring(advisor) => advisor.neighbours(now),
            Self::Omega(advisor) => advisor.neighbours(now),
            Self::Local(advisor) => advisor.neighbours(now),
        }
    }

    fn trusted(&self, now: LocalTime) -> NodeSet {
        match self {
            Self::Random(advisor) => advisor.trusted(now),
            Self::Ring(advisor) => advisor.trusted(now),
            Self::Omega(advisor) => advisor.trusted(now),
            Self::Local(advisor) => advisor.trusted(now),
        }
    }

    fn weak_leader(&self, group: GroupId, now: LocalTime) -> Option<NodeId> {
        match self {
            Self::Random(advisor) => advisor.weak_leader(group, now),
            Self::Ring(advisor) => advisor.weak_leader(group, now),
            Self::Omega(advisor) => advisor.weak_leader(group, now),
            Self::Local(advisor) => advisor.weak_leader(group, now),
        }
    }

    fn alive(&self, since: LocalTime) -> NodeSet {
        match self {
            Self::Random(advisor) => advisor.alive(since),
            Self::Ring(advisor) => advisor.alive(since),
            Self::Omega(advisor) => advisor.alive(since),
            Self::Local(advisor) => advisor.alive(since),
        }
    }
}

/// No election at all: every candidate draws a time. It needs no message besides the runs
/// themselves, and knows nobody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AtRandom {
    members: usize,
}

impl Weak for AtRandom {
    fn members(&mut self, members: &[NodeId], _now: LocalTime) {
        self.members = members.len();
    }

    fn heard(&mut self, _from: NodeId, _now: LocalTime) {}
    fn report(&mut self, _alive: NodeSet, _now: LocalTime) {}
    fn passed_on(&mut self, _beats: &[Option<Beat>], _now: LocalTime) {}
    fn lapsed(&mut self, _node: NodeId, _at: LocalTime) {}
    fn passes(&mut self, _node: NodeId, _passes: bool) {}

    fn beats(&mut self, _now: LocalTime) -> Vec<Option<Beat>> {
        Vec::new()
    }

    fn turn(&self, _group: GroupId, _now: LocalTime) -> Turn {
        Turn::Window { after: 0 }
    }

    fn neighbours(&self, _now: LocalTime) -> Vec<NodeId> {
        Vec::new()
    }

    /// Nobody is ever suspected.
    fn trusted(&self, _now: LocalTime) -> NodeSet {
        (0..self.members).collect()
    }

    fn weak_leader(&self, _group: GroupId, _now: LocalTime) -> Option<NodeId> {
        None
    }

    fn alive(&self, _since: LocalTime) -> NodeSet {
        NodeSet::EMPTY
    }
}
