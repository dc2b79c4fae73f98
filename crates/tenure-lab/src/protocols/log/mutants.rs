//! Known-wrong logs: each breaks one rule, and a property must notice.

use tenure_proto::log::{Ballot, Entry, LocalRead, Rules, Sessions, Slot, Standing, Vote};
use tenure_proto::{LocalTime, Ticket};

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenLog {
    /// None.
    Nothing,
    /// f promises suffice.
    PrepareSmallQuorum,
    /// One vote suffices.
    AcceptSmallQuorum,
    /// More votes are waited for than suffice.
    AcceptLargeQuorum,
    /// A promise is given below an earlier one.
    PromiseAny,
    /// A ballot below the promise is accepted.
    AcceptBelowPromise,
    /// A ballot of a lower term is accepted if its round is higher.
    LowerTermAccepted,
    /// To accept is not to promise.
    AcceptNoPromise,
    /// Promise and vote are told of before they are durable.
    ForgetPromise,
    /// A ballot is heard of before its own promise is durable.
    ReuseBallot,
    /// The vote of the lowest ballot is proposed.
    LowestVote,
    /// Votes that promises tell of are replaced by no-ops.
    IgnorePromises,
    /// Gaps are left.
    NoGapFill,
    /// Slots are proposed that another process has forgotten.
    ProposeForgotten,
    /// A proposer takes a ballot above the term of its lease.
    AboveTerm,
    /// Answers to earlier ballots count.
    StaleAccepted,
    /// Whatever was accepted is committed, in whichever ballot.
    CommitAnyBallot,
    /// A promise counts with its first page.
    PromiseInPart,
    /// A leader goes on although another one chose in its slots.
    LeadsOn,
    /// An entry accepted before a restart is taught as chosen.
    TeachAccepted,
    /// Slots are applied over a gap.
    ApplyOverGap,
    /// A repeated write is carried out again.
    SessionForgotten,
    /// The write of a closed session is carried out.
    ClosedSession,
    /// Slots are forgotten that no snapshot covers.
    TruncateUnapplied,
    /// Snapshots are without sessions.
    SnapshotLosesSessions,
    /// A leader answers reads without asking anybody.
    ReadNoRound,
    /// A read waits only for what this leader has applied.
    ReadBeforeApplied,
    /// Confirmations of earlier rounds count.
    StaleConfirm,
    /// Acceptors confirm whatever they have promised.
    ConfirmAny,
    /// The state is read without the lease.
    ReadWithoutLease,
    /// The state is read under the lease before what the promises told of is applied.
    LocalReadBeforeApplied,
    /// A leader goes on with its ballot of an old term in a new one, and reads under it.
    ReadOtherTerm,
    /// Lease and log are checked after the state was looked at, and not before.
    CheckAfterLook,
    /// A process that lost its disk goes on as if it were new.
    AmnesiacVotes,
    /// A process that lost its disk takes part again from its next life on.
    AmnesiaOnce,
}

impl Rules for BrokenLog {
    fn asserts(&self) -> bool {
        false
    }

    fn prepare_quorum(&self, members: usize, faults: usize) -> usize {
        if *self == Self::PrepareSmallQuorum { faults.max(1) } else { members - faults }
    }

    fn accept_quorum(&self, members: usize, faults: usize) -> usize {
        match self {
            Self::AcceptSmallQuorum => faults.max(1),
            Self::AcceptLargeQuorum => members - faults,
            _ => faults + 1,
        }
    }

    fn may_promise(&self, promised: Ballot, asked: Ballot) -> bool {
        *self == Self::PromiseAny || asked >= promised
    }

    fn may_accept(&self, promised: Ballot, asked: Ballot) -> bool {
        match self {
            Self::AcceptBelowPromise => true,
            Self::LowerTermAccepted => (asked.round, asked.node) >= (promised.round, promised.node),
            _ => asked >= promised,
        }
    }

    fn promised_by_accepting(&self, promised: Ballot, accepted: Ballot) -> Ballot {
        if *self == Self::AcceptNoPromise { promised } else { accepted }
    }

    fn reply_after(&self, written: Option<Ticket>) -> Option<Ticket> {
        written.filter(|_| *self != Self::ForgetPromise)
    }

    fn prepare_after(&self, written: Option<Ticket>) -> Option<Ticket> {
        written.filter(|_| *self != Self::ReuseBallot)
    }

    fn better(&self, held: &Vote, other: &Vote) -> bool {
        if *self == Self::LowestVote {
            other.standing < held.standing
        } else {
            other.standing > held.standing
        }
    }

    fn proposal(&self, voted: &Entry) -> Entry {
        if *self == Self::IgnorePromises { Entry::Noop } else { voted.clone() }
    }

    fn fills_gaps(&self) -> bool {
        *self != Self::NoGapFill
    }

    fn may_propose(&self, slot: Slot, base: Slot) -> bool {
        *self == Self::ProposeForgotten || slot > base
    }

    fn ballot(&self, own_term: u64, seen: Ballot, next: Ballot) -> Ballot {
        let term = if *self == Self::AboveTerm { own_term.max(seen.term) } else { own_term };
        Ballot { term, ..next }
    }

    fn counts(&self, current: Ballot, answered: Ballot) -> bool {
        *self == Self::StaleAccepted || current == answered
    }

    fn is_committed(&self, standing: Standing, ballot: Ballot) -> bool {
        *self == Self::CommitAnyBallot || standing == Standing::Accepted(ballot)
    }

    fn is_whole(&self, next: Option<Slot>) -> bool {
        *self == Self::PromiseInPart || next.is_none()
    }

    fn gives_way(&self) -> bool {
        *self != Self::LeadsOn
    }

    fn may_teach(&self, standing: Standing) -> bool {
        *self == Self::TeachAccepted || standing == Standing::Chosen
    }

    fn is_next(&self, applied: Slot, slot: Slot) -> bool {
        *self == Self::ApplyOverGap || slot == applied.next()
    }

    fn is_fresh(&self, last: u64, number: u64) -> bool {
        *self == Self::SessionForgotten || number > last
    }

    fn refuses_unknown_sessions(&self) -> bool {
        *self != Self::ClosedSession
    }

    fn base(&self, snapshot: Slot, applied: Slot, keep: u64) -> Slot {
        match self {
            Self::TruncateUnapplied => Slot(applied.0 + 1),
            _ => Slot(snapshot.0.saturating_sub(keep)),
        }
    }

    fn snapshot_sessions(&self, sessions: Sessions) -> Sessions {
        if *self == Self::SnapshotLosesSessions { Sessions::default() } else { sessions }
    }

    fn read_quorum(&self, members: usize, faults: usize) -> usize {
        match self {
            Self::ReadNoRound => 1,
            Self::AcceptLargeQuorum => faults + 1,
            _ => self.accept_quorum(members, faults),
        }
    }

    fn may_confirm(&self, promised: Ballot, asked: Ballot) -> bool {
        *self == Self::ConfirmAny || asked >= promised
    }

    fn read_index(&self, applied: Slot, known: Slot) -> Slot {
        if *self == Self::ReadBeforeApplied { applied } else { applied.max(known) }
    }

    fn confirms(&self, current: u64, answered: u64) -> bool {
        *self == Self::StaleConfirm || current == answered
    }

    fn may_read_locally(&self, read: LocalRead, now: LocalTime) -> bool {
        let held = read.lease.is_some_and(|(_, until)| now < until);
        let same = read.lease.is_some_and(|(term, _)| term == read.ballot.term);
        let applied = read.applied >= read.known;
        match self {
            Self::ReadWithoutLease => applied,
            Self::LocalReadBeforeApplied => held && same,
            Self::ReadOtherTerm => held && applied,
            _ => held && same && applied,
        }
    }

    fn needs_ballot(&self, is_new: bool, leads: bool) -> bool {
        is_new && !(*self == Self::ReadOtherTerm && leads)
    }

    fn may_look(&self, read: LocalRead, now: LocalTime) -> bool {
        *self == Self::CheckAfterLook || self.may_read_locally(read, now)
    }

    fn abstains_after_amnesia(&self) -> bool {
        *self != Self::AmnesiacVotes
    }

    fn remembers_amnesia(&self) -> bool {
        *self != Self::AmnesiaOnce
    }
}

/// A mutant of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMutant {
    /// Its name.
    pub name: &'static str,
    /// Its mistake.
    pub says: &'static str,
    /// The broken rule.
    pub rules: BrokenLog,
}

const fn rule(name: &'static str, rules: BrokenLog, says: &'static str) -> LogMutant {
    LogMutant { name, says, rules }
}

/// All mutants of the log.
pub const LOG: &[LogMutant] = &[
    rule("prepare-small-quorum", BrokenLog::PrepareSmallQuorum, "f promises suffice to lead"),
    rule("accept-small-quorum", BrokenLog::AcceptSmallQuorum, "f votes suffice to choose"),
    rule(
        "accept-large-quorum",
        BrokenLog::AcceptLargeQuorum,
        "n-f votes are waited for where f+1 suffice: it breaks no log, but takes too long",
    ),
    rule("promise-any", BrokenLog::PromiseAny, "a lower ballot is promised after a higher one"),
    rule("accept-below-promise", BrokenLog::AcceptBelowPromise, "what is below the promise is accepted"),
    rule("lower-term-accepted", BrokenLog::LowerTermAccepted, "ballots are compared without their terms"),
    rule("accept-no-promise", BrokenLog::AcceptNoPromise, "a vote does not raise the promise"),
    rule(
        "forget-promise",
        BrokenLog::ForgetPromise,
        "promises and votes are told of before they are durable",
    ),
    rule("reuse-ballot", BrokenLog::ReuseBallot, "a ballot is heard of before its own promise is durable"),
    rule("lowest-vote", BrokenLog::LowestVote, "of several votes the one of the lowest ballot is proposed"),
    rule("ignore-promises", BrokenLog::IgnorePromises, "votes that promises tell of are not proposed again"),
    rule("no-gap-fill", BrokenLog::NoGapFill, "slots that no promise tells of are left empty"),
    rule(
        "propose-forgotten",
        BrokenLog::ProposeForgotten,
        "a slot is proposed that another process has forgotten",
    ),
    rule("above-term", BrokenLog::AboveTerm, "an earlier leader proposes in the term of a later one"),
    rule("stale-accepted", BrokenLog::StaleAccepted, "answers to earlier ballots count"),
    rule(
        "commit-any-ballot",
        BrokenLog::CommitAnyBallot,
        "what was accepted in another ballot is taken for chosen",
    ),
    rule("promise-in-part", BrokenLog::PromiseInPart, "a promise counts before all of it was told"),
    rule(
        "leads-on",
        BrokenLog::LeadsOn,
        "a leader goes on although something else was chosen where it proposed",
    ),
    rule(
        "teach-accepted",
        BrokenLog::TeachAccepted,
        "what was accepted before a restart, below a snapshot, is taught as chosen",
    ),
    rule("apply-over-gap", BrokenLog::ApplyOverGap, "slots are applied before those below them"),
    rule("session-forgotten", BrokenLog::SessionForgotten, "a repeated write is carried out again"),
    rule("closed-session", BrokenLog::ClosedSession, "the write of a closed session is carried out"),
    rule("truncate-unapplied", BrokenLog::TruncateUnapplied, "slots are forgotten that no snapshot covers"),
    rule("snapshot-loses-sessions", BrokenLog::SnapshotLosesSessions, "snapshots are without sessions"),
    rule(
        "read-no-round",
        BrokenLog::ReadNoRound,
        "a leader answers reads without asking whether it still leads",
    ),
    rule(
        "read-before-applied",
        BrokenLog::ReadBeforeApplied,
        "a read does not wait for what the promises told of",
    ),
    rule("stale-confirm", BrokenLog::StaleConfirm, "confirmations from before the read count"),
    rule("confirm-any", BrokenLog::ConfirmAny, "an acceptor that has promised more confirms"),
    rule("read-without-lease", BrokenLog::ReadWithoutLease, "the state is read without a lease"),
    rule(
        "local-read-before-applied",
        BrokenLog::LocalReadBeforeApplied,
        "the state is read under the lease before what the promises told of is applied",
    ),
    rule(
        "read-other-term",
        BrokenLog::ReadOtherTerm,
        "the state is read under a new lease by the ballot of an old one",
    ),
    rule(
        "check-after-look",
        BrokenLog::CheckAfterLook,
        "lease and log are checked after the state was looked at, and not before",
    ),
    rule(
        "amnesiac-votes",
        BrokenLog::AmnesiacVotes,
        "a process that lost its disk votes as if it had forgotten nothing",
    ),
    rule(
        "amnesia-once",
        BrokenLog::AmnesiaOnce,
        "a process that lost its disk votes again from its next life on",
    ),
];
