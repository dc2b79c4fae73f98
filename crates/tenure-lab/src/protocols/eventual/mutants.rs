//! The elections of eventual leaders as the figures print them, one line at a time, and with an
//! extension left out.

use tenure_proto::eventual::{Epoch, Rules, Sound, State};
use tenure_proto::time::{Drift, LocalSpan};
use tenure_proto::{NodeId, time::Span};

/// Which line is as it is printed. The numbers are those of `docs/explanation/errata.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Printed {
    /// None: every rule is as it should be.
    Nothing,
    /// The least of the epochs that are alive and of (0, nobody).
    A1,
    /// A process does not count itself.
    A2,
    /// A state is made new when a round has succeeded.
    A3,
    /// The state of a process that was never heard of equals the first that it says, which is then
    /// not acknowledged.
    A4,
    /// Only news are acknowledged.
    A5,
    /// Acknowledgements are counted, not who sent them.
    A6,
    /// Late answers to a read are looked at.
    A7,
    /// The next read begins too early.
    A8,
    /// A process leads on by an epoch that it has given up.
    A10,
    /// A process that has an epoch goes on asking for one.
    C1,
    /// Late answers change an epoch.
    C2,
    /// A leader is made by the read before the last.
    C4,
    /// A read may end a leadership.
    C5,
    /// No wait before a leadership.
    C6,
    /// A question for an epoch follows the other without a rest.
    C7,
    /// A process leads by an epoch that it has given up, if that was the lowest.
    C8,
    /// Waits do not allow for drift.
    Drift,
    /// Leadership lasts until a timer says otherwise.
    Fence,
    /// A refresh that is sent too late counts like any other.
    LateRefresh,
    /// Answers to a question for an epoch count whenever they come.
    LateEpoch,
    /// A process that has forgotten everything answers at once.
    Silence,
    /// A repeated refresh is acknowledged while the first is on its way to the disk.
    Kept,
    /// States that are read are not written down.
    Learnt,
}

impl Rules for Printed {
    fn asserts(&self) -> bool {
        false
    }

    fn least(&self, alive: &[Epoch]) -> Epoch {
        if *self == Self::A1 { Epoch::NOBODY } else { Sound.least(alive) }
    }

    fn counts_itself(&self) -> bool {
        *self != Self::A2
    }

    fn is_fresh_at_send(&self) -> bool {
        *self != Self::A3
    }

    fn unheard(&self, process: NodeId) -> State {
        match self {
            Self::A4 => State { epoch: Epoch::of(0, process), fresh: 1, bound: Span::from_nanos(0) },
            _ => Sound.unheard(process),
        }
    }

    fn acknowledges(&self, known: State, told: State) -> bool {
        !matches!(self, Self::A4 | Self::A5) || told.is_newer(&known)
    }

    fn counts_senders(&self) -> bool {
        *self != Self::A6
    }

    fn closes_reads(&self) -> bool {
        *self != Self::A7
    }

    fn gap(&self, needed: LocalSpan) -> LocalSpan {
        if *self == Self::A8 { needed.fraction(1, 2) } else { needed }
    }

    fn stops_leading(&self) -> bool {
        *self != Self::A10
    }

    fn stops_asking(&self) -> bool {
        *self != Self::C1
    }

    fn closes_attempts(&self) -> bool {
        *self != Self::C2
    }

    fn judges_this_read(&self) -> bool {
        *self != Self::C4
    }

    fn outlives_reads(&self) -> bool {
        *self != Self::C5
    }

    fn wait(&self, needed: LocalSpan) -> LocalSpan {
        if *self == Self::C6 { LocalSpan::ZERO } else { needed }
    }

    fn rests_after(&self) -> u32 {
        if *self == Self::C7 { u32::MAX } else { Sound.rests_after() }
    }

    fn needs_epoch(&self) -> bool {
        *self != Self::C8
    }

    fn allows_for(&self, drift: Drift) -> Drift {
        match (self, Drift::from_ppm(0)) {
            (Self::Drift, Some(none)) => none,
            _ => drift,
        }
    }

    fn ends_by_the_clock(&self) -> bool {
        *self != Self::Fence
    }

    fn gives_up_when_late(&self) -> bool {
        *self != Self::LateRefresh
    }

    fn attempts_end(&self) -> bool {
        *self != Self::LateEpoch
    }

    fn keeps_silent(&self) -> bool {
        *self != Self::Silence
    }

    fn acknowledges_what_is_kept(&self) -> bool {
        *self != Self::Kept
    }

    fn keeps_what_it_reads(&self) -> bool {
        *self != Self::Learnt
    }
}

/// A mutant of an election.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// Which line it breaks.
    pub printed: Printed,
    /// Its mistake.
    pub says: &'static str,
}

const fn mutant(name: &'static str, printed: Printed, says: &'static str) -> Mutant {
    Mutant { name, printed, says }
}

/// Fig. 1.
pub const OMEGA: &[Mutant] = &[
    mutant("fig1-a1", Printed::A1, "the leader is the least of all epochs that are alive and of (0, nobody)"),
    mutant("fig1-a2", Printed::A2, "a process does not count among those that have its state"),
    mutant("fig1-a3", Printed::A3, "a state is made new when a round has succeeded, not when it is sent"),
    mutant(
        "fig1-a4",
        Printed::A4,
        "the first that a process says of itself is not news, and not acknowledged",
    ),
    mutant("fig1-a5", Printed::A5, "what is not news is not acknowledged"),
    mutant("fig1-a6", Printed::A6, "acknowledgements are counted, not those who send them"),
    mutant("fig1-a7", Printed::A7, "what comes after a read is complete is looked at too"),
    mutant("fig1-a8", Printed::A8, "the next read begins before every live process must have written"),
    mutant("fig1-a10", Printed::A10, "a process leads on by an epoch that it has given up"),
];

/// The frugal form of it.
pub const LEAN: &[Mutant] = &[
    mutant(
        "least-of-all",
        Printed::A1,
        "the leader is the least of all epochs that are active and of (0, nobody)",
    ),
    mutant("no-self-ack", Printed::A2, "a process does not count among those that have its state"),
    mutant("leads-on", Printed::A10, "a process leads on by an epoch that it has given up"),
];

/// Fig. 2.
pub const STABLE: &[Mutant] = &[
    mutant("fig2-c1", Printed::C1, "who has an epoch goes on asking for one"),
    mutant("fig2-c2", Printed::C2, "late answers change an epoch that is in use"),
    mutant("fig2-c3", Printed::A3, "a state is made new when a round has succeeded, not when it is sent"),
    mutant("fig2-c4", Printed::C4, "a leader is made by the outcome of the read before the last"),
    mutant("fig2-c5", Printed::C5, "a read that shows a lower epoch ends a leadership"),
    mutant("fig2-c6", Printed::C6, "a leader is made without waiting for lower epochs to show"),
    mutant("fig2-c7", Printed::C7, "who gets no epoch asks for one every delta, without end"),
    mutant("fig2-c8", Printed::C8, "a process leads by the epoch that it has just given up"),
    mutant("no-drift", Printed::Drift, "waits are as long as if all clocks were exact"),
    mutant("no-fence", Printed::Fence, "a leadership lasts until a timer says otherwise"),
    mutant("late-refresh", Printed::LateRefresh, "who wakes too late goes on by its old epoch"),
    mutant("late-epoch", Printed::LateEpoch, "answers to a question for an epoch count whenever they come"),
    mutant(
        "no-silence",
        Printed::Silence,
        "a process that has forgotten what it acknowledged answers at once",
    ),
    mutant(
        "ack-before-kept",
        Printed::Kept,
        "a refresh that comes twice is acknowledged before the disk has what it says",
    ),
    mutant(
        "learn-unkept",
        Printed::Learnt,
        "what is read of others is acknowledged when they say it, and written down nowhere",
    ),
];
