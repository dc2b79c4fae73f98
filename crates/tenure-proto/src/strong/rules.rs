//! The rules that keep two leaders apart, one function each, with the equation that needs it.
//!
//! The machine asks these functions and decides nothing of the kind by itself. [`Sound`] takes them
//! as they stand here; every running node uses it. The laboratory has types of its own that break
//! one rule at a time, to prove that the properties notice; no other crate can see them.

use crate::quorum::{NodeSet, Quorums};
use crate::time::{Clockwork, Pledge, Span, Stamp};
use crate::{Data, GroupId, LocalTime, NodeId, Ticket};

use super::epoch::{Ballot, Barred, Charter, Epoch, Relation, StoreId};
use super::{Grant, GrantRequest, InstanceId, Term};

/// The safety rules of OQwBD and OQwBS.
pub trait Rules: Data {
    /// Whether the invariants that follow from these rules are asserted. A mutant is judged by
    /// properties, not by a stop.
    fn asserts(&self) -> bool {
        true
    }

    /// `E := Start + (1-ρ)·δ`, or `Start + δ` with bounded skew (step 8), from the *start* of the
    /// run: the grants may be as old as that (19).
    fn lease_end(
        &self,
        clocks: Clockwork,
        start: LocalTime,
        _completed: LocalTime,
        lease: Span,
    ) -> LocalTime {
        clocks.lease_end(start, lease)
    }

    /// `F := T + (1+ρ)·δ` (step 6.1), from a reading taken *after* the request arrived; or, where
    /// clocks differ by at most Δ, `Start + δ + Δ`.
    fn grant_end(&self, clocks: Clockwork, start: LocalTime, granted: LocalTime, lease: Span) -> LocalTime {
        clocks.grant_end(start, granted, lease)
    }

    /// `F := max(F, …)` (16): a shorter request of the same holder must not shorten what it was
    /// promised.
    fn extended(
        &self,
        held: &Grant,
        _request: &GrantRequest,
        asked: LocalTime,
        _now: LocalTime,
    ) -> LocalTime {
        held.until.max(asked)
    }

    /// F is the holder's: a refusal of somebody else leaves it as it is, or those who ask would
    /// keep a dead holder's grant alive (availability).
    fn end_after_refusal(&self, held: LocalTime, _asked: LocalTime) -> LocalTime {
        held
    }

    /// A grant is remembered before its Ok leaves: a restart within the boot keeps no silence, so
    /// it must not forget.
    fn remembers_grants(&self) -> bool {
        true
    }

    /// T_q as it is told: with the incarnation, which orders it after all stamps of earlier lives,
    /// and the count, which orders it within its tick. Otherwise two quorums' stamps may tie or
    /// contradict each other (lemma 7.1).
    fn stamp(&self, stamp: Stamp) -> Stamp {
        stamp
    }

    /// Step 5: a grant to somebody else stands until its F.
    fn is_free(&self, grant: Option<&Grant>, request: &GrantRequest, now: LocalTime) -> bool {
        grant.is_none_or(|grant| grant.holder == request.id.holder || now >= grant.until)
    }

    /// Whether a request was given back before it came. Later runs of the same process are not
    /// touched (availability): who led before may lead again.
    fn was_given_back(&self, upto: InstanceId, asked: InstanceId) -> bool {
        upto.holder == asked.holder && upto >= asked
    }

    /// Whom a candidate counts before anybody answered. Nobody, itself included: its own grantor
    /// answers under the same rule as all others, or (14) fails (erratum E11).
    fn counted_unasked(&self, _me: Option<usize>) -> NodeSet {
        NodeSet::EMPTY
    }

    /// Whether an answer is for the current run. Answers to an aborted run, or to one of an earlier
    /// life, were given before this run's start (19, erratum E23).
    fn answers(&self, current: InstanceId, answered: InstanceId) -> bool {
        current == answered
    }

    /// QT is what stood behind the run when it completed: an Ok that comes later is no part of it
    /// (erratum E14).
    fn freezes_stamps(&self) -> bool {
        true
    }

    /// Step 8: a run completes only while its lease is not yet over.
    fn still_worth(&self, now: LocalTime, end: LocalTime) -> bool {
        now < end
    }

    /// Rule U: a renewal extends a term only if that never lapsed; otherwise somebody may have led
    /// in between.
    fn term_unbroken(&self, now: LocalTime, until: LocalTime) -> bool {
        now < until
    }

    /// Whether a candidate whose run failed may give its grants back. Not while it leads: the
    /// grants that failed to be renewed are the ones it leads by (erratum E9).
    fn may_give_back(&self, leads: bool) -> bool {
        !leads
    }

    /// Whether a candidate that reached too few lets go of those it reached, and asks again later
    /// (availability). One that held on would keep them from everybody else forever.
    fn lets_go(&self) -> bool {
        true
    }

    /// Whether a leader that resigns stops leading before it gives its grants back. It must
    /// (erratum E9).
    fn stops_before_release(&self) -> bool {
        true
    }

    /// Whether grants are given back as soon as a hand-over is asked for. They must not: the leader
    /// leads on until its successor is ready.
    fn frees_before_ready(&self) -> bool {
        false
    }

    /// Whether a leader that hands over stops leading before it passes its successor's request on.
    /// It must: the grantors are free of it as soon as they hear.
    fn stops_before_relay(&self) -> bool {
        true
    }

    /// Whether a reading says anything about E. Authority is a comparison of clocks at the moment
    /// of use; a reading below one that this process has already seen is of a clock that went back,
    /// and what such a clock measured (15) is unknown.
    fn reading_counts(&self, now: LocalTime, latest: LocalTime) -> bool {
        now >= latest
    }

    /// Whether a process acts on what it hears while its clock is behind. It must not: if the clock
    /// is set forward again, what was granted in between is over by its F before (1+ρ)δ have
    /// passed. A grant given before has seen both steps, and lasts.
    fn acts_while_behind(&self) -> bool {
        false
    }

    /// Whether a command that comes while the clock is behind is kept until it has caught up
    /// (availability): nobody says it again.
    fn keeps_commands(&self) -> bool {
        true
    }

    /// A leader whose clock was disturbed leads no more, and its runs are worth nothing. E counts
    /// on (15): from `Start` on this clock has shown at least (1-ρ) of what has passed. A kernel
    /// that counts sleep by a clock of one second may have lost almost two, and a virtual machine
    /// that was paused all of it: then `C_p < E_p` says nothing.
    fn leads_on_disturbed(&self) -> bool {
        false
    }

    /// A grantor whose clock was disturbed waits as after a reboot, from the first reading after
    /// it: the silence (1+ρ)δ_max, and rule W anew. The clock may have shown more than has passed,
    /// so that F, or the end of a wait, was reached while a lease that counts on it is in force. A
    /// grant given before is over δ_max of real time after the disturbance; the silence, measured
    /// by readings after it alone, is at least that long.
    fn waits_anew(&self) -> bool {
        true
    }

    /// Until when a leader that answered a question keeps its grants (erratum E4): a release before
    /// then would make the answer false.
    fn pledged_until(&self, pledge: Pledge) -> LocalTime {
        pledge.until
    }

    /// Until when an answer is certain, on the clock of the one who asked at `start` (erratum E3).
    fn certain_until(&self, clocks: Clockwork, start: LocalTime, pledge: Pledge) -> LocalTime {
        clocks.certain_until(start, pledge)
    }

    /// Whether an answer is to the newest question: by the process that was asked, and to that
    /// question. With bounded drift certainty is counted from when the question left, and an answer
    /// to an older one was given before that start (erratum E3). And only the leader can pledge to
    /// keep its grants (erratum E4): a pledge of another binds nobody.
    fn answers_question(&self, asked: (InstanceId, NodeId), answered: (InstanceId, NodeId)) -> bool {
        asked == answered
    }

    /// Whether a release is for the grant that stands. A late one, sent before the newest run that
    /// was granted, is not (erratum E8).
    fn release_matches(&self, grant: &Grant, upto: InstanceId) -> bool {
        grant.holder == upto.holder && grant.newest <= upto
    }

    /// A request, a renewal or a release counts only if the process that it names has sent it.
    /// Otherwise anybody could free a leader's grantors while it leads, and (14) would fail.
    fn speaks_for(&self, from: NodeId, named: NodeId) -> bool {
        from == named
    }

    /// The release in a relay must be the sender's own, for the same reason. The request in it is
    /// the successor's, and is judged like any other.
    fn relays_own_release(&self, from: NodeId, named: NodeId) -> bool {
        from == named
    }

    /// The newest run of a holder: a late duplicate of an older request must not make the grant
    /// look older, or a late release would match it.
    fn newest(&self, granted: InstanceId, asked: InstanceId) -> InstanceId {
        granted.max(asked)
    }

    /// A grantor promises nothing longer than δ_max: the silence after a restart waits out just
    /// that (erratum E22).
    fn accepts_length(&self, lease: Span, longest: Span) -> bool {
        lease <= longest
    }

    /// With bounded skew no honest request starts after the grantor's reading and Δ. One that does
    /// shows a broken clock, and its F would outlast the silence after a restart, which covers
    /// `δ_max + 2Δ` and no more.
    fn may_have_started(&self, clocks: Clockwork, start: LocalTime, now: LocalTime) -> bool {
        clocks.may_have_started(start, now)
    }

    /// The silence of a grantor that lost its memory: `(1+ρ)·δ_max` on any legal clock lasts at
    /// least δ_max, and with bounded skew no F lies beyond `δ_max + 2Δ`.
    fn silence_end(&self, clocks: Clockwork, start: LocalTime, longest: Span) -> LocalTime {
        clocks.silence_end(start, longest)
    }

    /// An acquisition needs a term above every term that this grantor has granted; only the very
    /// same request may come twice. Renewals are not tested (erratum E25): a failed candidate's
    /// higher term must not depose a leader.
    fn term_is_fresh(&self, request: &GrantRequest, max_term: Term, grant: Option<&Grant>) -> bool {
        let again = grant.is_some_and(|grant| grant.newest == request.id && grant.term == request.term);
        request.term > max_term || again
    }

    /// Renewals are not tested (erratum E25, availability).
    fn renewal_is_fresh(&self, _renewed: Term, _max_term: Term) -> bool {
        true
    }

    /// The largest term is one that was granted: who was refused has not raised it (erratum E25,
    /// availability).
    fn max_term_after_refusal(&self, max_term: Term, _refused: Term) -> Term {
        max_term
    }

    /// No Ok to an acquisition leaves before a ceiling that covers its term is durable.
    fn ok_waits_for(&self, ceiling: Option<Ticket>) -> Option<Ticket> {
        ceiling
    }

    /// A group is forgotten only when its grant is over (14), what was given back is forgotten by
    /// itself, and no pledge stands (erratum E4). See `forget`.
    fn may_forget(
        &self,
        (grant, buried): (Option<&Grant>, Option<LocalTime>),
        pledged: Option<LocalTime>,
        now: LocalTime,
    ) -> bool {
        grant.is_none_or(|grant| now >= grant.until)
            && buried.is_none_or(|until| now >= until)
            && pledged.is_none_or(|until| now >= until)
    }

    /// The largest term of a group that is forgotten goes to the process, and so to every group
    /// that is not in memory: it is at least every term that was granted in any of them.
    fn largest_term_after(&self, known: Term, forgotten: Term) -> Term {
        known.max(forgotten)
    }

    /// The write that covers a term is that of the first block which reaches it. The older block
    /// may be durable already; it covers no term above its end (`in_older`), and an Ok that waits
    /// for it leaves while the disk says less.
    fn covered_by(&self, in_older: bool, (older, newer): (Option<Ticket>, Option<Ticket>)) -> Option<Ticket> {
        if in_older { older } else { newer }
    }

    /// After a restart every group's largest term is the durable ceiling: it is at least every term
    /// ever granted.
    fn largest_term_known(&self, ceiling: Term) -> Term {
        ceiling
    }

    // The height of terms: see `height`.

    /// HEIGHT: what a term of an outsider is charged: all by which it lies above what is known.
    /// Otherwise one request raises the ceiling of every group, and the floor of the next charter,
    /// as high as it likes.
    fn charged(&self, term: Term, known: Term) -> u64 {
        term.0.saturating_sub(known.0)
    }

    /// HEIGHT: whose word on how high terms are is believed: that of members. An outsider that
    /// could vouch would lift the bound on its own bucket.
    fn vouches(&self, is_member: bool) -> bool {
        is_member
    }

    /// HEIGHT: what a member may say of terms without an operator's confirmation. No cluster holds
    /// 2^24 elections of one group while its members do not hear of each other.
    fn is_plausible(&self, term: Term, known: Term) -> bool {
        term.0.saturating_sub(known.0) <= super::height::PLAUSIBLE
    }

    /// EXACT: nothing happens after the exact largest term was written. A term that is granted
    /// later is on no disk: the ceiling in memory counts on a block whose record was just replaced.
    fn ends_with_close(&self) -> bool {
        true
    }

    // Epochs: see `epoch` for the names of the rules and the proofs that need them.

    /// ADJ: every quorum of an epoch meets every quorum of the next, so that some grantor sees
    /// both.
    fn adjacent(&self, before: &Quorums, after: &Quorums) -> bool {
        before.adjacent(after)
    }

    /// ONE: an answer counts for a run of its own epoch alone. Answers of two epochs together may
    /// be a quorum of neither.
    fn counts(&self, run: Epoch, answer: Epoch) -> bool {
        run == answer
    }

    /// The fate of a run when its process learns of a new epoch: it begins anew, or, where that is
    /// the mistake, goes on with the answers that it has.
    fn across(&self) -> Across {
        Across::Anew
    }

    /// MONO: a grantor grants nothing in an epoch that it has left.
    fn grants_in(&self, asked: Epoch, newest: Epoch) -> bool {
        asked == newest
    }

    /// MONO: the epoch survives a restart.
    fn keeps_charter(&self) -> bool {
        true
    }

    /// MONO: no answer of an epoch leaves before its charter is durable. Otherwise a restart falls
    /// back to an older epoch, with a silence that may be too short for what was promised under a
    /// longer δ_max.
    fn answer_waits_for(&self, charter: Ticket) -> Option<Ticket> {
        Some(charter)
    }

    /// KEEP: adopting an epoch leaves the grant as it is; new members need none, for they are in no
    /// quorum of the old epoch.
    fn grant_on_adoption(&self, grant: Option<Grant>) -> Option<Grant> {
        grant
    }

    /// A new member starts with nothing, and counts what it grants on its own clock: an F that it
    /// is given is a reading of another clock (erratum A6). `joined` says whether it has just
    /// joined, `first` whether it supports nobody yet.
    fn end_at_member(
        &self,
        sound: LocalTime,
        _asked_at: LocalTime,
        _joined: bool,
        _first: bool,
    ) -> LocalTime {
        sound
    }

    /// KEEP: and the largest term; the floor is a bound besides, not instead.
    fn max_term_on_adoption(&self, max_term: Term, _floor: Term) -> Term {
        max_term
    }

    /// W: the next charter is accepted only when no lease of the epoch before this one can be in
    /// force: (1+ρ)δ_max after this acceptor came here, on any legal clock at least δ_max.
    fn may_accept_from(&self, here: &Charter, adopted_at: LocalTime) -> LocalTime {
        here.spacing(adopted_at)
    }

    /// W: adopt, then wait. The wait is counted from this adoption, not from the one before.
    fn counted_from(&self, _previous: LocalTime, adopted: LocalTime) -> LocalTime {
        adopted
    }

    /// W: where a restart finds no adoption in memory, as after a reboot or in another place, the
    /// wait begins anew with the start: nobody knows how long ago the charter was adopted.
    fn adopted_before(&self, remembered: Option<LocalTime>, started: LocalTime) -> LocalTime {
        remembered.unwrap_or(started)
    }

    /// W: an adoption is remembered together with its epoch, before the charter is given to the
    /// disk, and counts for that epoch alone. A process can be killed between any two effects. If
    /// it is killed when the charter is durable and the adoption is not remembered yet, the
    /// restarted member finds the adoption *before* this one: counted from there, the wait seems to
    /// be over while leases of the epoch before are in force.
    fn ties_adoption_to_epoch(&self) -> bool {
        true
    }

    /// W is the acceptors' to keep; a proposer that waits by its own clock instead proves nothing
    /// about theirs (erratum A2).
    fn may_propose_from(
        &self,
        _here: &Charter,
        _adopted_at: LocalTime,
        _first_promise: LocalTime,
    ) -> LocalTime {
        LocalTime::ZERO
    }

    /// MONO: who answers a ballot of an epoch has adopted it, so it grants nothing in the one
    /// before any more (T1, T4).
    fn adopts_before_deciding(&self) -> bool {
        true
    }

    /// FLOOR: what a member reports: all that it granted, and the floor of its epoch, which stands
    /// for what others granted in epochs before (T4).
    fn top(&self, floor: Term, granted: Term) -> Term {
        floor.max(granted)
    }

    /// FLOOR: the largest of what the quorum that promised reports, in this ballot, when all of it
    /// had adopted this epoch.
    fn floor(&self, reported: Term, _own: Term, _earlier: Term) -> Term {
        reported
    }

    /// FLOOR: the least that a term must exceed in an epoch, whatever the group.
    fn enforced(&self, floor: Term) -> Term {
        floor
    }

    /// T6: promises and what was accepted survive a restart.
    fn keeps_ballot(&self) -> bool {
        true
    }

    /// T6: a member that has promised a ballot answers no lower one.
    fn is_outbid(&self, ballot: Ballot, promised: Ballot) -> bool {
        ballot < promised
    }

    /// T6: a promise leaves when it is durable. A member that forgot it would accept a lower
    /// ballot.
    fn promise_waits_for(&self, saved: Option<Ticket>) -> Option<Ticket> {
        saved
    }

    /// T6: an acceptance leaves when it is durable. A member that forgot it would not tell the next
    /// proposer.
    fn acceptance_waits_for(&self, saved: Option<Ticket>) -> Option<Ticket> {
        saved
    }

    /// T6: an answer counts for the ballot that it names, in the epoch that it names.
    fn answers_ballot(&self, current: (Epoch, Ballot), answered: (Epoch, Ballot)) -> bool {
        current == answered
    }

    /// T6: a promise that arrives in phase 2 is no acceptance.
    fn promise_accepts(&self) -> bool {
        false
    }

    /// Only the members that were asked count: the word of any other process adds nothing to a
    /// quorum (ONE, T6).
    fn voice_of(&self, asked: &Quorums, from: NodeId, _counted: NodeSet) -> Option<usize> {
        asked.position(from)
    }

    /// T6: a charter that may have been decided already is proposed again, instead of one's own.
    fn adopts_accepted_value(&self) -> bool {
        true
    }

    /// T6: what one member has accepted is not decided: nobody acts on it.
    fn acts_on_accepted(&self) -> bool {
        false
    }

    /// Availability only (L3): a member that has accepted a charter and hears no more of it
    /// finishes it itself.
    fn finishes_changes(&self) -> bool {
        true
    }

    /// Y (availability only): a member that has just joined refuses acquisitions for a longest
    /// lease, so that a leader of the epoch before can renew with it first.
    fn young_until(&self, charter: &Charter, now: LocalTime) -> LocalTime {
        charter.spacing(now)
    }

    /// Availability only: who asks in an old epoch is refused with the charter of the new one, and
    /// can renew there in time.
    fn refusal_tells_charter(&self) -> bool {
        true
    }

    /// LINEAGE: a charter that neither comes from one's own nor leads to it has quorums that need
    /// not meet one's own, and no wait lies between. Members of both must stop: to refuse the other
    /// is not enough.
    fn stops_for_foreign(&self, relation: Relation) -> bool {
        relation == Relation::Foreign
    }

    // Stores: see `epoch::stores`.

    /// STORE: a process is a member of a charter only by the store that the charter names. Another
    /// store under the same name has promised and accepted nothing: counted as that member it may
    /// grant or accept the opposite (T1, T6).
    fn is_same_store(&self, named: Option<StoreId>, own: Option<StoreId>) -> bool {
        named == own
    }

    /// STORE: a member that stays keeps its store, whatever a change says: only one that was
    /// removed before can come back with another, when no lease counts on the old one any more.
    fn store_after(&self, kept: Option<StoreId>, said: Option<StoreId>) -> Option<StoreId> {
        kept.or(said)
    }

    // A lost quorum: see `epoch::force`.

    /// FLOOR, by an operator's word: the ballot of a word ends with that word. A second command
    /// takes the word's place; a ballot that went on would find no word, and decide a floor
    /// without the least term that the operator gave, below what the dead may have granted.
    fn ballot_ends_with_word(&self) -> bool {
        true
    }

    /// A sealed member accepts the charter that it is sealed for again, whatever its largest term
    /// is by now (availability). It has granted nothing since it was sealed, so the floor covers
    /// all that it granted; after a restart its ceiling alone lies higher. If it denied the
    /// charter, all who are left would stay sealed.
    fn accepts_again(&self, sealed: &Charter, forced: &Charter) -> bool {
        sealed == forced
    }

    /// SEAL: who has accepted a charter by an operator's word grants nothing before it goes by it,
    /// in whatever epoch it is told of.
    fn seals(&self) -> bool {
        true
    }

    /// A sealed member accepts another charter by an operator's word only if that has no lower
    /// number and keeps nobody whom its own does not keep: so of two remainders that share a member
    /// at most one is decided.
    fn may_replace_seal(&self, sealed: &Charter, forced: &Charter) -> bool {
        forced.epoch >= sealed.epoch && sealed.keeps_all_of(forced.members())
    }

    /// FLOOR, by an operator's word: no survivor has granted a term above the floor.
    fn floor_covers(&self, floor: Term, top: Term) -> bool {
        top <= floor
    }

    /// A charter that need not meet the one before takes effect when no lease of before can be in
    /// force: (1+ρ)δ_max, or δ_max + 2Δ, after the last that is left was sealed, on any legal clock
    /// at least δ_max.
    fn takes_effect_from(&self, forced: &Charter, sealed: LocalTime) -> LocalTime {
        forced.spacing(sealed)
    }

    // A repair of absurd terms: see `epoch::repair`.

    /// BAR: a group that holds a term above the floor of a repair is granted to nobody. Its next
    /// leader would have a lower term than one before it, and a fence would admit the old leader's
    /// tokens beside the new one's.
    fn is_barred(&self, barred: &Barred, group: GroupId) -> bool {
        barred.has(group)
    }

    // The end of an epoch: see `wedge`.

    /// (14): a member is wedged only when the grant that it gave is over, or was given back. Nobody
    /// leads in an epoch that a wedged quorum has ended; so nobody may be counting on a grant of
    /// one of its members.
    fn may_wedge(&self, grant: &Grant, now: LocalTime) -> bool {
        now >= grant.until
    }

    /// Wedged is forever, and what was accepted survives a restart (erratum E21).
    fn keeps_wedge(&self) -> bool {
        true
    }

    /// A leader that ends its epoch gives up E before it says so (erratum E9): those who accept are
    /// free of it.
    fn stops_before_change(&self) -> bool {
        true
    }

    /// In a new epoch a grantor begins free, and with the floor: all terms of the epoch before are
    /// at most that.
    fn first_term(&self, max_term: Term, floor: Term) -> Term {
        max_term.max(floor)
    }

    // A lost disk: see `recovery`.

    /// The largest term is read from a quorum of the others.
    fn reads_after_amnesia(&self) -> bool {
        true
    }

    /// It is read when the silence is over: until then runs may complete that count on a forgotten
    /// grant, and a member that is asked may not have granted them yet.
    fn reads_from(&self, _started: LocalTime, silent_until: LocalTime) -> LocalTime {
        silent_until
    }

    /// A silence that was running goes on after a quick restart within the boot: what was forgotten
    /// is still forgotten.
    fn silence_remembered(&self, until: LocalTime) -> LocalTime {
        until
    }
}

/// The fate of a run when its process learns of a new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Across {
    /// It begins anew, in the new epoch.
    Anew,
    /// Its answers go on counting, judged by the quorums of the old epoch. A mistake.
    ByOld,
    /// The same, judged by those of the new one. A mistake.
    ByNew,
    /// The same; as many as make a majority of the new epoch suffice, whosoever they are. A
    /// mistake.
    ByNumber,
}

/// The sound rules: they run outside the laboratory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Rules for Sound {}
