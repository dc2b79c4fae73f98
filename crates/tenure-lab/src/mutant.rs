//! Mutants: known-wrong variants, each breaking one rule, to prove that the properties notice.
//!
//! A mutant is a value of a type that only this crate has: a machine made with [`Broken`] rules, or a driver with
//! [`Flaws`]. The daemon is made with [`Sound`] rules and cannot name these.

mod epochs;
pub mod eventual;
mod field;
pub mod local;
pub mod log;
pub mod named;
mod wedge;

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::epoch::{Ballot, Charter, Epoch, Relation};
use tenure_proto::strong::{Across, Grant, GrantRequest, InstanceId, Kind, Rules, Sound, Term};
use tenure_proto::time::{Bound, Clockwork, LocalSpan, Pledge, Span, Stamp};
use tenure_proto::{Incarnation, LocalTime, NodeId, Ticket};

use crate::subject::Order;
use crate::subject::strong::Strong;
use crate::world::Flaws;

/// Which rule of the strong machine is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// None: the flaw is in the driver.
    Nothing,
    /// E counts on 1+ρ and F honours 1-ρ.
    SwapRho,
    /// E is counted from the completion of the run, not from its start.
    EFromCompletion,
    /// A grantor that lost its memory grants at once.
    NoSilence,
    /// It is silent for (1-ρ)δ_max only.
    ShortSilence,
    /// A candidate counts itself without asking its own grantor.
    SelfShortcut,
    /// A shorter request shortens what was promised.
    FNoMax,
    /// Any length is granted.
    NoDeltaCap,
    /// Answers to an aborted run count for the current one.
    AbortedOk,
    /// F without the tick that the clock may be ahead of its reading.
    NoTickPad,
    /// E not rounded down to a tick.
    ENotFloored,
    /// A term is granted again.
    TermGe,
    /// An Ok leaves before its term is durable.
    OkBeforeTicket,
    /// After a restart every term counts as fresh.
    CeilingForgotten,
    /// A run completes after its lease is over.
    NoStep8Check,
    /// A renewal extends a term that has lapsed.
    RenewAfterLapse,
    /// A grant to somebody else does not stand in the way.
    SecondSuitor,
    /// A release cancels whatever its sender holds.
    ReleaseNoId,
    /// A late duplicate of an older request makes the grant look older.
    GNotMax,
    /// A leader whose renewal failed gives its grants back and leads on.
    RevokeKeepsE,
    /// Clocks differ by three times what F allows for.
    SkewExceeded,
    /// Stamps without a count: two of one tick tie.
    NoComposite,
    /// Stamps without an incarnation: a reboot turns them back.
    NoIncInStamp,
    /// A leader that hands over leads on until its lease ends.
    XferKeepE,
    /// A verified leader counts as leader for ever: what the signs of the paper's formula come to.
    VerifyPrinted,
    /// A leader may give its grants back right after it has said that it leads.
    VerifyNoPledge,
    /// The proposer waits from when it learnt of the epoch itself, the acceptors not at all.
    SkipW1,
    /// The proposer waits from when one member had adopted the epoch, the acceptors not at all.
    W1One,
    /// The wait is counted from the adoption before: wait, then adopt.
    WaitFirst,
    /// Nobody waits between two epochs.
    SkipW,
    /// An adoption is remembered without its epoch, after the charter was given to the disk.
    AdoptedLate,
    /// A member answers the ballots of an epoch that it has not adopted.
    ActUnadopted,
    /// Charters have no floor.
    SkipFloors,
    /// The floor is what an earlier ballot had found.
    FloorEarly,
    /// The floor is what the proposer itself has granted.
    FloorOwn,
    /// A member reports what it granted, not the floor that it adopted.
    FloorNoChain,
    /// Any quorums may follow any.
    NonAdjacent,
    /// Answers of two epochs are counted together, by one rule or another.
    Count(Across),
    /// The epoch is forgotten in a restart.
    EpochVolatile,
    /// Promises and accepted charters are forgotten in a restart.
    PaxosVolatile,
    /// A proposer does not take up what others may have decided.
    NoValueAdopt,
    /// What one member has accepted counts as decided.
    ActOnAccepted,
    /// A member that has just joined takes over an F of another clock.
    NewOldF,
    /// A member without a grant takes over an F of another clock when a leader renews with it.
    NewLateF,
    /// Adopting an epoch forgets the grants.
    ClearOnAdopt,
    /// Adopting an epoch replaces the largest term by the floor.
    TermResetOnAdopt,
    /// A grantor goes on granting in epochs that it has left.
    OldGrants,
    /// A running silence is cut short by a quick restart.
    RememberNoSilence,
    /// Who asks in an old epoch is not told of the new one.
    NackNoRecord,
    /// A new member grants acquisitions at once.
    NoYoung,
    /// Answers of a new epoch leave before its charter is durable.
    EpochLearntVolatile,
    /// What an operator's word brings about takes effect at once.
    ForceNoWait,
    /// Who has accepted it grants on until it goes by it.
    ForceNoSeal,
    /// A member that hears of a charter of another lineage goes on.
    IgnoresForeign,
    /// A member is wedged although a grant stands.
    WedgeIgnoresGrant,
    /// A restart forgets that a member is wedged, and what it accepted.
    WedgeVolatile,
    /// A leader that ends its epoch leads on until its lease ends.
    ReconfKeepE,
    /// Terms begin anew in a new epoch.
    EpochTermReset,
    /// A grantor that lost its disk grants after its silence, any term.
    AmnesiaNoRead,
    /// It reads the largest term before its silence, not after.
    AmnesiaReadEarly,
    /// A leader whose clock went back goes by what it shows.
    ClockBack,
    /// A command that comes while the clock is behind is dropped.
    CommandsLost,
    /// A leader whose machine was suspended goes by its clock.
    DisturbedLeadsOn,
    /// A grantor whose machine was suspended goes by its clock.
    DisturbedNoSilence,
    /// Late answers become part of the stamps of a run that has completed.
    LateOkMerged,
    /// A leader that resigns gives its grants back and leads on until its lease ends.
    ZombieAuthority,
    /// Each renewal lengthens F by its whole lease, whatever is left of it.
    ExpiryMovedForward,
    /// A renewal that asks for less takes back what was promised before.
    ExpiryMovedBack,
    /// Grants are given back when a hand-over is asked for, not when the leader has given up.
    EarlyGrant,
    /// E is looked at every half lease, and counts until somebody looks.
    CoarseCheck,
    /// A larger term is granted at once, whoever holds the grant.
    NoWaitOnTakeover,
    /// Who has given back anything is not granted anything.
    FormerLeaderRefused,
    /// Whoever is refused lengthens the grant that stands in its way.
    RefreshStarves,
    /// A candidate without a quorum holds on to those it reached, and asks on.
    PartialConnectivity,
    /// Answers to an earlier life of the process count.
    ReconnectRace,
    /// A grant is not remembered.
    VolatilePromise,
    /// The terms of those who are refused count as granted, and renewals are tested.
    TermInflation,
    /// Nobody finishes a change whose proposer is gone.
    ChangeAbandoned,
    /// Anybody may release or renew in another's name.
    SpeaksForOthers,
    /// A relay may give back another's grants.
    RelaysForOthers,
    /// A request may start at any time after the grantor's reading.
    FutureStart,
    /// A member answers a ballot below one that it has promised.
    AnswersOutbid,
    /// A promise leaves before it is durable.
    PromiseBeforeTicket,
    /// An acceptance leaves before it is durable.
    AcceptedBeforeTicket,
    /// An answer to any ballot counts for the present one.
    AnyBallot,
    /// A promise that comes late counts as an acceptance.
    PromiseAccepts,
    /// The word of a process that is no member counts.
    CountsUnknown,
    /// A sealed member accepts any other charter of an operator.
    SealReplaced,
    /// A forced charter's floor may be below what a survivor has granted.
    ForceLowFloor,
    /// Nothing is charged for the height of a term.
    HeightFree,
    /// Whoever asks for a term vouches for it, outsiders too.
    OutsidersVouch,
    /// Whatever a member says of terms is believed.
    AbsurdBelieved,
    /// A process that has written the exact largest term grants on.
    GrantsAfterClose,
    /// A group is forgotten although its grant binds.
    ForgetsGrant,
    /// A group is forgotten although a late request of what was given back may come.
    ForgetsRelease,
    /// A group is forgotten although its process has pledged to give nothing back.
    ForgetsPledge,
    /// The largest term of a group is forgotten with it.
    ForgetsTerm,
}

/// With bounded drift, what the leader and the grantor would count if they took each other's side of ρ.
fn swapped(clocks: Clockwork, lease: Span) -> (LocalSpan, LocalSpan) {
    match clocks.bound {
        Bound::Drift(drift) => (drift.longest(lease), drift.shortest(lease)),
        Bound::Skew(_) => (lease.nominal(), lease.nominal()),
    }
}

impl Rules for Broken {
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

    fn floor_covers(&self, floor: Term, top: Term) -> bool {
        *self == Self::ForceLowFloor || top <= floor
    }

    fn stops_for_foreign(&self, relation: Relation) -> bool {
        *self != Self::IgnoresForeign && relation == Relation::Foreign
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

/// A mutant of the strong machine or of its driver.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What it does wrong.
    pub says: &'static str,
    /// The broken rule.
    pub rules: Broken,
    /// What the driver does wrong.
    pub flaws: Flaws,
    /// In which order a leader's threads work.
    pub order: Order,
    /// On which clocks that is wrong.
    pub on: On,
}

/// On which clocks a mutant is wrong: some rules matter on one kind alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// On both kinds.
    Both,
    /// Where drift is bounded: only there F is counted from a reading of the grantor.
    Drift,
    /// Where skew is bounded.
    Skew,
}

impl Mutant {
    /// Whether this is wrong where skew is bounded, or else where drift is.
    pub fn is_wrong_on(&self, skew: bool) -> bool {
        match self.on {
            On::Both => true,
            On::Drift => !skew,
            On::Skew => skew,
        }
    }

    /// This, on one kind of clocks alone.
    const fn only(self, on: On) -> Self {
        Self { on, ..self }
    }

    /// The mutant, ready to be run.
    pub fn subject<const SKEW: bool, const WEDGE: bool>(&self) -> Strong<Broken, SKEW, WEDGE> {
        Strong { rules: self.rules, flaws: self.flaws, order: self.order }
    }
}

const fn rule(name: &'static str, rules: Broken, says: &'static str) -> Mutant {
    Mutant { name, says, rules, flaws: Flaws::NONE, order: Order::Sound, on: On::Both }
}

const fn driver(name: &'static str, flaws: Flaws, says: &'static str) -> Mutant {
    Mutant { name, says, rules: Broken::Nothing, flaws, order: Order::Sound, on: On::Both }
}

const fn thread(name: &'static str, order: Order, says: &'static str) -> Mutant {
    Mutant { order, ..rule(name, Broken::Nothing, says) }
}

/// All mutants of strong leadership.
pub fn strong() -> impl Iterator<Item = &'static Mutant> {
    STRONG.iter().chain(epochs::EPOCHS).chain(field::FIELD)
}

/// All mutants of epochs that are ended, and of disks that recover. What is wrong anyway need not be tried once more there.
pub fn wedge() -> impl Iterator<Item = &'static Mutant> {
    wedge::WEDGE.iter()
}

/// What breaks a rule of the protocol, or of the specification of its driver.
const STRONG: &[Mutant] = &[
    rule("swap-rho", Broken::SwapRho, "E counts on 1+rho and F honours 1-rho").only(On::Drift),
    rule("e-from-completion", Broken::EFromCompletion, "E is counted from the completion of the run"),
    rule("no-silence", Broken::NoSilence, "a grantor that lost its memory grants at once"),
    rule("short-silence", Broken::ShortSilence, "it keeps silent for (1-rho) delta_max only"),
    rule("self-shortcut", Broken::SelfShortcut, "a candidate counts itself without asking its own grantor"),
    rule("f-no-max", Broken::FNoMax, "a shorter request shortens what was promised"),
    rule("no-delta-cap", Broken::NoDeltaCap, "a grantor promises more than delta_max"),
    rule("aborted-ok", Broken::AbortedOk, "answers to an aborted run count for the current one"),
    rule("no-tick-pad", Broken::NoTickPad, "F without the tick that the clock may be ahead of its reading")
        .only(On::Drift),
    rule("e-not-floored", Broken::ENotFloored, "E is not rounded down to a tick"),
    rule("term-ge", Broken::TermGe, "a grantor grants a term again"),
    rule("ok-before-ticket", Broken::OkBeforeTicket, "an Ok leaves before its term is durable"),
    rule("ceiling-forgotten", Broken::CeilingForgotten, "after a restart every term counts as fresh"),
    rule("height-free", Broken::HeightFree, "an outsider has any term that it asks for"),
    rule("outsiders-vouch", Broken::OutsidersVouch, "the word of an outsider counts for how high terms are"),
    rule("absurd-believed", Broken::AbsurdBelieved, "any term of a member is believed, however high"),
    rule(
        "grants-after-close",
        Broken::GrantsAfterClose,
        "a grantor grants on when it has written the exact largest term",
    ),
    rule("no-step8-check", Broken::NoStep8Check, "a run completes after its lease is over"),
    rule("renew-after-lapse", Broken::RenewAfterLapse, "a renewal extends a term that has lapsed"),
    rule("second-suitor", Broken::SecondSuitor, "a grant to somebody else does not stand in the way"),
    rule("release-no-id", Broken::ReleaseNoId, "a release cancels whatever grant its sender holds"),
    rule("g-not-max", Broken::GNotMax, "a late duplicate of an older request makes a grant look older"),
    rule(
        "revoke-keeps-e",
        Broken::RevokeKeepsE,
        "a leader whose renewal failed gives its grants back and leads on",
    ),
    rule("skew-exceeded", Broken::SkewExceeded, "clocks differ by three times what F allows for")
        .only(On::Skew),
    rule("future-start", Broken::FutureStart, "a request may start at any time in the grantor's future")
        .only(On::Skew),
    rule("xfer-keep-e", Broken::XferKeepE, "a leader that hands over leads on until its lease ends"),
    rule("verify-printed", Broken::VerifyPrinted, "a verified leader counts as leader for ever"),
    rule(
        "verify-no-pledge",
        Broken::VerifyNoPledge,
        "a leader gives its grants back right after it was verified",
    ),
    rule("forgets-grant", Broken::ForgetsGrant, "a group is forgotten while its grant binds"),
    rule("forgets-release", Broken::ForgetsRelease, "a group is forgotten while what was given back counts"),
    rule("forgets-pledge", Broken::ForgetsPledge, "a group is forgotten while a pledge stands"),
    rule("forgets-term", Broken::ForgetsTerm, "the largest term of a group is forgotten with it"),
    rule("clock-back", Broken::ClockBack, "a leader whose clock went back goes by what it shows"),
    rule("no-composite", Broken::NoComposite, "stamps of one tick tie"),
    rule("no-inc-in-stamp", Broken::NoIncInStamp, "a reboot turns a grantor's stamps back"),
    thread(
        "edict-non-atomic",
        Order::NonAtomic,
        "an edict tagged in one term is checked against another's E",
    ),
    thread("edict-sample-first", Order::SampleFirst, "an edict is numbered after its clock was checked"),
    thread("edict-stale-e", Order::StaleE, "E is loaded before the edict is numbered"),
    thread("stale-now-leader", Order::StaleNow, "an edict is checked with an old clock sample"),
    driver(
        "term-not-durable",
        Flaws { disk_forgets: true, ..Flaws::NONE },
        "the disk says it has written the ceiling, and has not",
    ),
    driver(
        "instance-reuse",
        Flaws { same_incarnation: true, ..Flaws::NONE },
        "runs are named alike in every life of a process",
    ),
    driver(
        "suspend-clock",
        Flaws { clock_stops_in_suspend: true, ..Flaws::NONE },
        "the clock stops while the machine is suspended",
    ),
    driver(
        "coarse-suspend",
        Flaws { suspend_unnoticed: true, ..Flaws::NONE },
        "a suspend that the kernel counts coarsely goes unnoticed",
    )
    .only(On::Drift),
    rule("disturbed-leads-on", Broken::DisturbedLeadsOn, "a leader goes by a clock that slept coarsely")
        .only(On::Drift),
    rule("disturbed-no-silence", Broken::DisturbedNoSilence, "a grantor goes by a clock that slept coarsely")
        .only(On::Drift),
    driver(
        "stale-now-grantor",
        Flaws { stale_now: true, ..Flaws::NONE },
        "the time is read before the request is taken from the socket",
    )
    .only(On::Drift),
    driver(
        "realtime",
        Flaws { reads_time_of_day: true, ..Flaws::NONE },
        "leases are measured by the time of day, which anybody may set",
    )
    .only(On::Drift),
    driver(
        "stale-memory",
        Flaws { stale_memory: true, ..Flaws::NONE },
        "remembered grants are believed without asking which life wrote them",
    ),
    driver(
        "claimed-early",
        Flaws { claims_early: true, ..Flaws::NONE },
        "memory counts as this life's before its silence is remembered",
    ),
    driver(
        "missing-is-fresh",
        Flaws { missing_is_fresh: true, ..Flaws::NONE },
        "a missing store is taken for a founding",
    ),
];
