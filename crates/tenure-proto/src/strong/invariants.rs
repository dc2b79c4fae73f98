//! The conditions before and after each transition, asserted in release builds too.
//!
//! # Why no message reaches an assertion
//!
//! Each condition is about values that this process has itself: its readings, its runs, its grants,
//! its ballots and its ceiling. Where one of them comes from a message, a check in front of the
//! assertion has turned a wrong one away, and the assertion names it. Nothing is asserted of what
//! others claim: a member that lies about terms, charters or answers makes wrong decisions likely,
//! and stops nobody. That is also why a leader's own grant is not compared with its E: an Ok counts
//! for the position of its sender, and a copy of this process may have sent it.

use crate::LocalTime;
use crate::quorum::{NodeSet, Quorums};

use super::Process;
use super::candidate::{Candidate, Lead};
use super::epoch::{Ballot, Epoch};
use super::grantor::{Grant, Grantor};
use super::message::{GrantRequest, Kind, Term};
use super::rules::Rules;

impl Lead {
    /// Step 8, before E is set.
    pub(super) fn assert_taken<R: Rules>(
        &self,
        former: Option<Self>,
        (quorums, oks): (&Quorums, NodeSet),
        now: LocalTime,
        rules: &R,
    ) {
        invariant!(rules, quorums.is_quorum(oks), "a run completes by a quorum of its epoch (step 7)");
        invariant!(rules, now < self.until, "a lease that is over must not be taken (step 8)");
        invariant!(rules, self.start <= now, "E is counted from a start that has been (18)");
        self.assert_follows(former, rules);
    }

    /// E within one term, over any step.
    pub(super) fn assert_follows<R: Rules>(&self, former: Option<Self>, rules: &R) {
        let same = former.filter(|former| former.term == self.term);
        let kept = same.is_none_or(|former| former.until <= self.until);
        invariant!(rules, kept, "E never moves back in a term: grants behind the longer lease stand");
    }
}

impl Candidate {
    /// Before a release leaves that names every run so far.
    pub(super) fn assert_gives_back<R: Rules>(&self, rules: &R) {
        invariant!(rules, self.lead.is_none(), "who leads by a grant must not give it back (E9)");
    }
}

impl Grantor {
    /// Step 6, before A and F are set. Every condition was checked by `on_request`, whatever the
    /// request said.
    pub(super) fn assert_may_grant<R: Rules>(
        &self,
        request: &GrantRequest,
        process: &Process<R>,
        now: LocalTime,
    ) {
        let rules = process.rules();
        let longest = process.charter().body.longest_lease;
        let bound = self.bound_to_another(request.id.holder, now).is_some();
        invariant!(rules, process.position.is_some(), "only a member grants");
        invariant!(rules, !process.is_silent(now), "a grantor that may have forgotten is silent");
        invariant!(rules, !process.is_deaf(), "nothing is granted after the last word (EXACT)");
        invariant!(rules, !process.is_sealed(), "a sealed member grants nothing (SEAL)");
        invariant!(rules, !process.clock_is_behind, "nothing is granted by a clock that is behind");
        invariant!(rules, request.epoch == process.membership.epoch(), "grants are of this epoch (MONO)");
        invariant!(rules, request.lease <= longest, "no promise is longer than the silence (E22)");
        invariant!(rules, !bound, "a grant to somebody else stands until its F (step 5)");
    }

    /// Step 6, after A and F are set.
    pub(super) fn assert_granted<R: Rules>(
        &self,
        request: &GrantRequest,
        former: Option<Grant>,
        process: &Process<R>,
    ) {
        let rules = process.rules();
        let Some(grant) = self.grant else { return };
        let same = former.filter(|former| former.holder == grant.holder);
        let kept = same.is_none_or(|former| former.until <= grant.until);
        let newest = same.is_none_or(|former| former.newest <= grant.newest);
        let covered = request.kind == Kind::Renew || process.ceiling.reaches(request.term);
        invariant!(rules, grant.holder == request.id.holder, "A is who asked");
        invariant!(rules, kept, "F never moves back while the grant stands (16)");
        invariant!(rules, newest, "a late duplicate does not make a grant look older (E8)");
        invariant!(rules, self.max_term >= request.term, "the largest term is one that was granted");
        invariant!(rules, covered, "a term is granted up to the ceiling alone, or its Ok waits for it");
    }
}

impl<R: Rules> Process<R> {
    /// MONO, after a charter was adopted in the place of that of `former`.
    pub(super) fn assert_adopted(&self, former: Epoch) {
        let rules = self.rules();
        let here = &self.membership.charter;
        let position = here.body.quorums.position(self.holder.node);
        let pending = self.membership.pending().is_none_or(|next| next.epoch > here.epoch);
        invariant!(rules, former < here.epoch, "an epoch never falls (MONO)");
        invariant!(rules, self.position == position, "a process grants at its place in its charter");
        invariant!(rules, pending, "what was accepted for this epoch is done with");
    }

    /// T6, before a ballot is promised or accepted: `deny_outbid` has refused every lower one.
    pub(super) fn assert_not_outbid(&self, ballot: Ballot, promised: Ballot) {
        invariant!(self.rules(), promised <= ballot, "a promised ballot never falls (T6)");
    }

    /// (14), before a member is wedged: `drains` has waited for every grant.
    pub(super) fn assert_may_wedge(&self, grantor: &Grantor, ballot: Term, now: LocalTime) {
        let rules = self.rules();
        let over = grantor.grant.is_none_or(|grant| grant.until <= now);
        invariant!(rules, over, "a member is wedged when its grants are over (14)");
        invariant!(rules, grantor.max_term <= ballot, "a ballot is no lower than any term granted here");
    }

    /// Before the silence is set: what was forgotten is still forgotten.
    pub(super) fn assert_silence(&self, until: LocalTime) {
        invariant!(self.rules(), self.silent_until <= until, "a silence is never cut short");
    }
}
