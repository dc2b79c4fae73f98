//! Each rule of the strong machine as its mutant has it.

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::epoch::{Ballot, Barred, Charter, Epoch, Relation, StoreId};
use tenure_proto::strong::{Across, Grant, GrantRequest, InstanceId, Kind, Rules, Sound, Term};
use tenure_proto::time::{Bound, Clockwork, LocalSpan, Pledge, Span, Stamp};
use tenure_proto::{GroupId, Incarnation, LocalTime, NodeId, Ticket};

use super::Broken;

/// With bounded drift, what the leader and the grantor would count if they took each other's side
/// of ρ.
fn swapped(clocks: Clockwork, lease: Span) -> (LocalSpan, LocalSpan) {
    match clocks.bound {
        Bound::Drift(drift) => (drift.longest(lease), drift.shortest(lease)),
        Bound::Skew(_) => (lease.nominal(), lease.nominal()),
    }
}

impl Rules for Broken {
    fn asserts(&self) -> bool {
        false
    }

    fn lease_end(&self, clocks: Clockwork, start: LocalTime, completed: LocalTime, lease: Span) -> LocalTime {
        match self {
            Self::SwapRho => start.after(swapped(clocks, lease).0).floor_to(clocks.tick),
            Self::EFromCompletion => clocks.lease_end(completed, lease),
            Self::ENotFloored => start.after(clocks.usable(lease)),
            Self::CoarseCheck => {
                let looks = lease.nominal().fraction(1, 2);
                clocks.lease_end(start, lease).ceil_to(looks).floor_to(clocks.tick)
            }
            _ => clocks.lease_end(start, lease),
        }
    }

    fn grant_end(&self, clocks: Clockwork, start: LocalTime, granted: LocalTime, lease: Span) -> LocalTime {
        let tickless = Clockwork { tick: LocalSpan::ZERO, ..clocks };
        match (self, clocks.bound) {
            (Self::SwapRho, _) => granted.after(clocks.tick).after(swapped(clocks, lease).1),
            (Self::NoTickPad, _) => tickless.grant_end(start, granted, lease),
            (Self::SkewExceeded, Bound::Skew(skew)) => {
                start.after(lease.nominal()).after(skew.fraction(1, 3))
            }
            _ => clocks.grant_end(start, granted, lease),
        }
    }

    fn end_at_member(&self, sound: LocalTime, theirs: LocalTime, joined: bool, first: bool) -> LocalTime {
        match self {
            Self::NewOldF if joined => theirs,
            Self::NewLateF if first => theirs,
            _ => sound,
        }
    }

    fn extended(&self, held: &Grant, request: &GrantRequest, asked: LocalTime, now: LocalTime) -> LocalTime {
        match self {
            Self::FNoMax => asked,
            Self::ExpiryMovedBack if request.kind == Kind::Renew => asked,
            Self::ExpiryMovedForward => held.until.max(now).after(asked.remaining(now)),
            _ => held.until.max(asked),
        }
    }

    fn end_after_refusal(&self, held: LocalTime, asked: LocalTime) -> LocalTime {
        if *self == Self::RefreshStarves { held.max(asked) } else { held }
    }

    fn remembers_grants(&self) -> bool {
        *self != Self::VolatilePromise
    }

    fn stamp(&self, stamp: Stamp) -> Stamp {
        match self {
            Self::NoComposite => Stamp { count: 0, ..stamp },
            Self::NoIncInStamp => Stamp { incarnation: Incarnation(0), ..stamp },
            _ => stamp,
        }
    }

    fn is_free(&self, grant: Option<&Grant>, request: &GrantRequest, now: LocalTime) -> bool {
        let newer = grant.is_some_and(|grant| grant.term < request.term);
        *self == Self::SecondSuitor
            || (*self == Self::NoWaitOnTakeover && newer)
            || Sound.is_free(grant, request, now)
    }

    fn was_given_back(&self, upto: InstanceId, asked: InstanceId) -> bool {
        match self {
            Self::FormerLeaderRefused => upto.holder.node == asked.holder.node,
            _ => Sound.was_given_back(upto, asked),
        }
    }

    fn may_forget(
        &self,
        (grant, buried): (Option<&Grant>, Option<LocalTime>),
        pledged: Option<LocalTime>,
        now: LocalTime,
    ) -> bool {
        let grant = grant.filter(|_| *self != Self::ForgetsGrant);
        let buried = buried.filter(|_| *self != Self::ForgetsRelease);
        let pledged = pledged.filter(|_| *self != Self::ForgetsPledge);
        Sound.may_forget((grant, buried), pledged, now)
    }

    fn largest_term_after(&self, known: Term, forgotten: Term) -> Term {
        if *self == Self::ForgetsTerm { known } else { known.max(forgotten) }
    }

    fn counted_unasked(&self, me: Option<usize>) -> NodeSet {
        if *self == Self::SelfShortcut { me.into_iter().collect() } else { NodeSet::EMPTY }
    }

    fn answers(&self, current: InstanceId, answered: InstanceId) -> bool {
        match self {
            Self::AbortedOk => current.holder == answered.holder,
            Self::ReconnectRace => {
                let (now, then) = (current.holder, answered.holder);
                current == answered || (now.node == then.node && then.incarnation < now.incarnation)
            }
            _ => current == answered,
        }
    }

    fn freezes_stamps(&self) -> bool {
        *self != Self::LateOkMerged
    }

    fn still_worth(&self, now: LocalTime, end: LocalTime) -> bool {
        *self == Self::NoStep8Check || now < end
    }

    fn term_unbroken(&self, now: LocalTime, until: LocalTime) -> bool {
        *self == Self::RenewAfterLapse || now < until
    }

    fn may_give_back(&self, leads: bool) -> bool {
        *self == Self::RevokeKeepsE || !leads
    }

    fn lets_go(&self) -> bool {
        *self != Self::PartialConnectivity
    }

    fn stops_before_release(&self) -> bool {
        *self != Self::ZombieAuthority
    }

    fn frees_before_ready(&self) -> bool {
        *self == Self::EarlyGrant
    }

    fn stops_before_relay(&self) -> bool {
        *self != Self::XferKeepE
    }

    fn reading_counts(&self, now: LocalTime, latest: LocalTime) -> bool {
        *self == Self::ClockBack || now >= latest
    }

    fn acts_while_behind(&self) -> bool {
        *self == Self::ActsWhileBehind
    }

    fn keeps_commands(&self) -> bool {
        *self != Self::CommandsLost
    }

    fn leads_on_disturbed(&self) -> bool {
        *self == Self::DisturbedLeadsOn
    }

    fn waits_anew(&self) -> bool {
        *self != Self::DisturbedNoSilence
    }

    fn pledged_until(&self, pledge: Pledge) -> LocalTime {
        if *self == Self::VerifyNoPledge { LocalTime::ZERO } else { pledge.until }
    }

    fn certain_until(&self, clocks: Clockwork, start: LocalTime, pledge: Pledge) -> LocalTime {
        match self {
            Self::VerifyPrinted => start.after(LocalSpan::from_nanos(u64::MAX / 4)),
            _ => clocks.certain_until(start, pledge),
        }
    }

    fn answers_question(&self, asked: (InstanceId, NodeId), answered: (InstanceId, NodeId)) -> bool {
        match self {
            Self::CertainByAnybody => asked.0 == answered.0,
            Self::CertainToOlder => asked.1 == answered.1 && answered.0 <= asked.0,
            _ => asked == answered,
        }
    }

    fn release_matches(&self, grant: &Grant, upto: InstanceId) -> bool {
        match self {
            Self::ReleaseNoId => grant.holder == upto.holder,
            _ => Sound.release_matches(grant, upto),
        }
    }

    fn speaks_for(&self, from: NodeId, named: NodeId) -> bool {
        *self == Self::SpeaksForOthers || from == named
    }

    fn relays_own_release(&self, from: NodeId, named: NodeId) -> bool {
        *self == Self::RelaysForOthers || from == named
    }

    fn newest(&self, granted: InstanceId, asked: InstanceId) -> InstanceId {
        if *self == Self::GNotMax { asked } else { granted.max(asked) }
    }

    fn accepts_length(&self, lease: Span, longest: Span) -> bool {
        *self == Self::NoDeltaCap || lease <= longest
    }

    fn may_have_started(&self, clocks: Clockwork, start: LocalTime, now: LocalTime) -> bool {
        *self == Self::FutureStart || clocks.may_have_started(start, now)
    }

    fn silence_end(&self, clocks: Clockwork, start: LocalTime, longest: Span) -> LocalTime {
        match self {
            Self::NoSilence => start,
            Self::ShortSilence => start.after(clocks.usable(longest)),
            _ => clocks.silence_end(start, longest),
        }
    }

    fn term_is_fresh(&self, request: &GrantRequest, max_term: Term, grant: Option<&Grant>) -> bool {
        match self {
            Self::TermGe => request.term >= max_term,
            _ => Sound.term_is_fresh(request, max_term, grant),
        }
    }

    fn renewal_is_fresh(&self, renewed: Term, max_term: Term) -> bool {
        *self != Self::TermInflation || renewed >= max_term
    }

    fn max_term_after_refusal(&self, max_term: Term, refused: Term) -> Term {
        if *self == Self::TermInflation { max_term.max(refused) } else { max_term }
    }

    fn ok_waits_for(&self, ceiling: Option<Ticket>) -> Option<Ticket> {
        if *self == Self::OkBeforeTicket { None } else { ceiling }
    }

    fn covered_by(&self, in_older: bool, (older, newer): (Option<Ticket>, Option<Ticket>)) -> Option<Ticket> {
        if in_older || *self == Self::CoveredByOlder { older } else { newer }
    }

    fn largest_term_known(&self, ceiling: Term) -> Term {
        if *self == Self::CeilingForgotten { Term(0) } else { ceiling }
    }

    fn charged(&self, term: Term, known: Term) -> u64 {
        if *self == Self::HeightFree { 0 } else { Sound.charged(term, known) }
    }

    fn vouches(&self, is_member: bool) -> bool {
        is_member || *self == Self::OutsidersVouch
    }

    fn is_plausible(&self, term: Term, known: Term) -> bool {
        *self == Self::AbsurdBelieved || Sound.is_plausible(term, known)
    }

    fn ends_with_close(&self) -> bool {
        *self != Self::GrantsAfterClose
    }

    fn adjacent(&self, before: &Quorums, after: &Quorums) -> bool {
        *self == Self::NonAdjacent || before.adjacent(after)
    }

    fn counts(&self, run: Epoch, answer: Epoch) -> bool {
        matches!(self, Self::Count(_)) || run == answer
    }

    fn across(&self) -> Across {
        if let Self::Count(across) = self { *across } else { Across::Anew }
    }

    fn grants_in(&self, asked: Epoch, newest: Epoch) -> bool {
        asked == newest || (*self == Self::OldGrants && asked < newest)
    }

    fn keeps_charter(&self) -> bool {
        *self != Self::EpochVolatile
    }

    fn answer_waits_for(&self, charter: Ticket) -> Option<Ticket> {
        (*self != Self::EpochLearntVolatile).then_some(charter)
    }

    fn grant_on_adoption(&self, grant: Option<Grant>) -> Option<Grant> {
        grant.filter(|_| *self != Self::ClearOnAdopt)
    }

    fn max_term_on_adoption(&self, max_term: Term, floor: Term) -> Term {
        if *self == Self::TermResetOnAdopt { floor } else { max_term }
    }

    fn may_accept_from(&self, here: &Charter, adopted_at: LocalTime) -> LocalTime {
        match self {
            Self::SkipW1 | Self::W1One | Self::SkipW => LocalTime::ZERO,
            _ => here.spacing(adopted_at),
        }
    }

    fn counted_from(&self, previous: LocalTime, adopted: LocalTime) -> LocalTime {
        if *self == Self::WaitFirst { previous } else { adopted }
    }

    fn adopted_before(&self, remembered: Option<LocalTime>, started: LocalTime) -> LocalTime {
        let otherwise = if *self == Self::RebootNoWait { LocalTime::ZERO } else { started };
        remembered.unwrap_or(otherwise)
    }

    fn ties_adoption_to_epoch(&self) -> bool {
        *self != Self::AdoptedLate
    }

    fn may_propose_from(&self, here: &Charter, adopted: LocalTime, promised: LocalTime) -> LocalTime {
        match self {
            Self::SkipW1 if here.epoch > Epoch(0) => here.spacing(adopted),
            Self::W1One if here.epoch > Epoch(0) => here.spacing(promised),
            _ => LocalTime::ZERO,
        }
    }

    fn adopts_before_deciding(&self) -> bool {
        *self != Self::ActUnadopted
    }

    fn top(&self, floor: Term, granted: Term) -> Term {
        if *self == Self::FloorNoChain { granted } else { floor.max(granted) }
    }

    fn floor(&self, reported: Term, own: Term, earlier: Term) -> Term {
        match self {
            Self::SkipFloors => Term(0),
            Self::FloorEarly => earlier,
            Self::FloorOwn => own,
            _ => reported,
        }
    }

    fn keeps_ballot(&self) -> bool {
        *self != Self::PaxosVolatile
    }

    fn is_outbid(&self, ballot: Ballot, promised: Ballot) -> bool {
        *self != Self::AnswersOutbid && ballot < promised
    }

    fn promise_waits_for(&self, saved: Option<Ticket>) -> Option<Ticket> {
        saved.filter(|_| *self != Self::PromiseBeforeTicket)
    }

    fn acceptance_waits_for(&self, saved: Option<Ticket>) -> Option<Ticket> {
        saved.filter(|_| *self != Self::AcceptedBeforeTicket)
    }

    fn answers_ballot(&self, current: (Epoch, Ballot), answered: (Epoch, Ballot)) -> bool {
        *self == Self::AnyBallot || current == answered
    }

    fn promise_accepts(&self) -> bool {
        *self == Self::PromiseAccepts
    }

    fn voice_of(&self, asked: &Quorums, from: NodeId, counted: NodeSet) -> Option<usize> {
        let another = || asked.everyone().difference(counted).positions().next();
        asked.position(from).or_else(|| another().filter(|_| *self == Self::CountsUnknown))
    }

    fn adopts_accepted_value(&self) -> bool {
        *self != Self::NoValueAdopt
    }

    fn acts_on_accepted(&self) -> bool {
        *self == Self::ActOnAccepted
    }

    fn finishes_changes(&self) -> bool {
        *self != Self::ChangeAbandoned
    }

    fn young_until(&self, charter: &Charter, now: LocalTime) -> LocalTime {
        if *self == Self::NoYoung { now } else { charter.spacing(now) }
    }

    fn refusal_tells_charter(&self) -> bool {
        *self != Self::NackNoRecord
    }

    fn enforced(&self, floor: Term) -> Term {
        if *self == Self::EpochTermReset { Term(0) } else { floor }
    }

    fn seals(&self) -> bool {
        *self != Self::ForceNoSeal
    }

    fn may_replace_seal(&self, sealed: &Charter, forced: &Charter) -> bool {
        *self == Self::SealReplaced || Sound.may_replace_seal(sealed, forced)
    }

    fn ballot_ends_with_word(&self) -> bool {
        *self != Self::BallotOutlivesWord
    }

    fn accepts_again(&self, sealed: &Charter, forced: &Charter) -> bool {
        *self != Self::DeniesOwnSeal && Sound.accepts_again(sealed, forced)
    }

    fn floor_covers(&self, floor: Term, top: Term) -> bool {
        *self == Self::ForceLowFloor || top <= floor
    }

    fn is_barred(&self, barred: &Barred, group: GroupId) -> bool {
        *self != Self::GrantsBarred && barred.has(group)
    }

    fn stops_for_foreign(&self, relation: Relation) -> bool {
        *self != Self::IgnoresForeign && relation == Relation::Foreign
    }

    fn is_same_store(&self, named: Option<StoreId>, own: Option<StoreId>) -> bool {
        *self == Self::AnyStore || named == own
    }

    fn store_after(&self, kept: Option<StoreId>, said: Option<StoreId>) -> Option<StoreId> {
        if *self == Self::StoreReplaced { said.or(kept) } else { kept.or(said) }
    }

    fn takes_effect_from(&self, forced: &Charter, sealed: LocalTime) -> LocalTime {
        if *self == Self::ForceNoWait { sealed } else { forced.spacing(sealed) }
    }

    fn may_wedge(&self, grant: &Grant, now: LocalTime) -> bool {
        *self == Self::WedgeIgnoresGrant || now >= grant.until
    }

    fn keeps_wedge(&self) -> bool {
        *self != Self::WedgeVolatile
    }

    fn stops_before_change(&self) -> bool {
        *self != Self::ReconfKeepE
    }

    fn first_term(&self, max_term: Term, floor: Term) -> Term {
        if *self == Self::EpochTermReset { Term(0) } else { max_term.max(floor) }
    }

    fn reads_after_amnesia(&self) -> bool {
        *self != Self::AmnesiaNoRead
    }

    fn reads_from(&self, started: LocalTime, silent_until: LocalTime) -> LocalTime {
        if *self == Self::AmnesiaReadEarly { started } else { silent_until }
    }

    fn silence_remembered(&self, until: LocalTime) -> LocalTime {
        if *self == Self::RememberNoSilence { LocalTime::ZERO } else { until }
    }
}
