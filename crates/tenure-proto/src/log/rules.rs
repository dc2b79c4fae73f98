//! The rules that keep the log one log, one function each, with the argument that needs it.
//!
//! The machine asks these functions and decides nothing of the kind by itself. [`Sound`] takes them
//! as they stand here; the laboratory has values that break one at a time.
//!
//! (P), the invariant: if v is chosen in slot s and ballot b, then every value proposed in s in a
//! ballot c > b is v. Say c is the least ballot for which this fails. Its proposer heard n-f
//! promises, and one of them, q's, is of an acceptor of (s, b, v). When q promised c it had
//! accepted (s, b, v), for afterwards it would have refused b; so q reported a vote of a ballot
//! from b on and below c, which is v by the choice of c; and so is the highest reported.

use super::message::{Ballot, Entry, Slot, Standing, Vote};
use super::session::Sessions;
use crate::{Data, LocalTime, Ticket};

/// The facts that a local read rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalRead {
    /// E of the strong lease, and its term, if this process holds one.
    pub lease: Option<(u64, LocalTime)>,
    /// The ballot in which this process leads.
    pub ballot: Ballot,
    /// How far the log is applied here.
    pub applied: Slot,
    /// The highest slot that its promises told of.
    pub known: Slot,
}

/// The safety rules of the log.
pub trait Rules: Data {
    /// Whether the invariants that follow from these rules are asserted. A mutant is judged by
    /// properties, not by a stop.
    fn asserts(&self) -> bool {
        true
    }

    /// The number of members that must promise: n-f. Fewer might all miss an acceptor of a chosen
    /// value.
    fn prepare_quorum(&self, members: usize, faults: usize) -> usize {
        members - faults
    }

    /// The number of members that must accept: f+1. Together with n-f promises they are more than
    /// n, so they share a process. To wait for more would be as safe, but a leader that reaches f
    /// others in time is owed its commits in time.
    fn accept_quorum(&self, _members: usize, faults: usize) -> usize {
        faults + 1
    }

    /// A promise is for a ballot not below an earlier one: two proposers may otherwise both believe
    /// that nothing below them can be chosen any more.
    fn may_promise(&self, promised: Ballot, asked: Ballot) -> bool {
        asked >= promised
    }

    /// An acceptor accepts nothing below its promise. A lower *term* is a lower ballot, whatever
    /// its round: an earlier strong leader cannot change what a later one reads.
    fn may_accept(&self, promised: Ballot, asked: Ballot) -> bool {
        asked >= promised
    }

    /// To accept is to promise. Otherwise a ballot between the promise and the vote could still
    /// replace the vote.
    fn promised_by_accepting(&self, _promised: Ballot, accepted: Ballot) -> Ballot {
        accepted
    }

    /// Promise and vote are durable before anybody hears of them, also if they come once more: a
    /// process that restarts without them has never given them.
    fn reply_after(&self, written: Option<Ticket>) -> Option<Ticket> {
        written
    }

    /// A proposer's own promise is durable before its ballot is heard of. It would otherwise take
    /// the same ballot again after a restart, for other values: to the acceptors both are one.
    fn prepare_after(&self, written: Option<Ticket>) -> Option<Ticket> {
        written
    }

    /// A promise counts with its last page: a vote that is still to be told may be of a chosen
    /// value.
    fn is_whole(&self, next: Option<Slot>) -> bool {
        next.is_none()
    }

    /// The vote to propose in a slot that promises reported: that of the highest ballot (P).
    fn better(&self, held: &Vote, other: &Vote) -> bool {
        other.standing > held.standing
    }

    /// The entry to propose there: that vote's.
    fn proposal(&self, voted: &Entry) -> Entry {
        voted.clone()
    }

    /// Slots that no promise reported are filled with no-ops (liveness): later slots are applied
    /// only after them.
    fn fills_gaps(&self) -> bool {
        true
    }

    /// Slots that a process has forgotten were chosen, and it cannot tell with which entries: the
    /// votes that others still report may be of lower ballots. So nothing is proposed up to there,
    /// neither a vote nor a no-op.
    fn may_propose(&self, slot: Slot, base: Slot) -> bool {
        slot > base
    }

    /// The ballot of an attempt: under the own term, never above it. A process that proposes in a
    /// later leader's term can choose values while that leader reads without asking anybody.
    fn ballot(&self, own_term: u64, _seen: Ballot, next: Ballot) -> Ballot {
        Ballot { term: own_term, ..next }
    }

    /// Only answers to the ballot in which it was proposed count for a value.
    fn counts(&self, current: Ballot, answered: Ballot) -> bool {
        current == answered
    }

    /// `Commit(b, upto)` is about entries that were proposed in b. An entry accepted in another
    /// ballot may have been replaced.
    fn is_committed(&self, standing: Standing, ballot: Ballot) -> bool {
        standing == Standing::Accepted(ballot)
    }

    /// A leader that learns of another entry in a slot in which it proposed, or of a slot in which
    /// it did not, has been superseded. If it led on, it would say `Commit` of slots in which
    /// members that accepted its own proposal would take that for chosen.
    fn gives_way(&self) -> bool {
        true
    }

    /// Only an entry known to be chosen is taught to others. After a restart the slots below a
    /// snapshot hold entries that were accepted here, and another process may have taught that
    /// something else was chosen.
    fn may_teach(&self, standing: Standing) -> bool {
        standing == Standing::Chosen
    }

    /// Slots are applied in order: the state is a function of the log.
    fn is_next(&self, applied: Slot, slot: Slot) -> bool {
        slot == applied.next()
    }

    /// A write is carried out once: its sequence number is above the last one of its session.
    fn is_fresh(&self, last: u64, number: u64) -> bool {
        number > last
    }

    /// A write in a session that is not open is refused: the session may have been closed, and its
    /// write carried out.
    fn refuses_unknown_sessions(&self) -> bool {
        true
    }

    /// The slots that may be forgotten: those that a snapshot covers, except the last `keep`.
    /// `applied` is no measure, for slots applied here are in no snapshot yet.
    fn base(&self, snapshot: Slot, _applied: Slot, keep: u64) -> Slot {
        Slot(snapshot.0.saturating_sub(keep))
    }

    /// The sessions in a snapshot: they go with the state.
    fn snapshot_sessions(&self, sessions: Sessions) -> Sessions {
        sessions
    }

    /// The number of members that must confirm that a leader's ballot is not superseded before it
    /// answers a read: f+1, which meet the n-f promises of any later leader.
    fn read_quorum(&self, members: usize, faults: usize) -> usize {
        self.accept_quorum(members, faults)
    }

    /// An acceptor confirms if it has promised nothing higher.
    fn may_confirm(&self, promised: Ballot, asked: Ballot) -> bool {
        asked >= promised
    }

    /// The read index: the slot up to which the log must be applied to answer a read that came now,
    /// so that it covers everything acknowledged by then. This leader has applied every value that
    /// it acknowledged; its promises told of those that earlier ones acknowledged, by (P).
    fn read_index(&self, applied: Slot, known: Slot) -> Slot {
        applied.max(known)
    }

    /// Confirmations count for the round that asked for them: an older one was given before the
    /// read came.
    fn confirms(&self, current: u64, answered: u64) -> bool {
        current == answered
    }

    /// A new term needs a ballot of its own, and promises for it, before anything is read under it:
    /// between this lease and the one before another process may have led. Also if this process
    /// `leads` in a ballot, which is one of an earlier term then. This and the comparison of terms
    /// in [`Rules::may_read_locally`] cover each other: only both broken let an old state be read.
    fn needs_ballot(&self, is_new: bool, _leads: bool) -> bool {
        is_new
    }

    /// Whether the state may be read without asking anybody. The strong lease of term T is held, so
    /// no process leads in a later term yet, and none has proposed in one; the ballot is of term T,
    /// so this process alone proposes in it; and the values that earlier terms chose are known from
    /// the promises, and applied.
    fn may_read_locally(&self, read: LocalRead, now: LocalTime) -> bool {
        read.lease.is_some_and(|(term, until)| term == read.ballot.term && now < until)
            && read.applied >= read.known
    }

    /// Whether the state may be looked at for such a read: checked before the look, as
    /// [`Rules::may_read_locally`] says. This check makes it a read of everything acknowledged
    /// before it came, for later the state only grows. A check after the look says nothing of
    /// entries that were not yet applied when it was looked at.
    fn may_look(&self, read: LocalRead, now: LocalTime) -> bool {
        self.may_read_locally(read, now)
    }

    /// Whether the value that was read stands: the lease is still held *after* the state was looked
    /// at. Then the answer was the newest state when it was looked at, not only when the read came,
    /// however long the process was paused in between.
    fn read_stands(&self, read: LocalRead, now: LocalTime) -> bool {
        self.may_read_locally(read, now)
    }

    /// A process that lost its disk may have forgotten a promise or a vote on which a chosen value
    /// rests: it takes no part.
    fn abstains_after_amnesia(&self) -> bool {
        true
    }

    /// It takes no part in all later lives either: they find a disk that is not empty any more, and
    /// still lacks the lost records.
    fn remembers_amnesia(&self) -> bool {
        true
    }
}

/// The sound rules: they run outside the laboratory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Rules for Sound {}
