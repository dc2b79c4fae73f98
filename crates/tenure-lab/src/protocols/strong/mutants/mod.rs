//! Mutants: known-wrong variants, each breaking one rule, to prove that the properties notice.
//!
//! A mutant is a value of a type that only this crate has: a machine made with [`Broken`] rules, or
//! a driver with [`Flaws`]. The daemon is made with [`Sound`](tenure_proto::strong::Sound) rules
//! and cannot name these.

mod broken;
mod epochs;
mod field;
mod wedge;

use tenure_proto::strong::Across;

use crate::protocols::strong::subject::{Model, Strong};
use crate::subject::Order;
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
    /// An Ok waits for the write of the block before the one that covers its term.
    CoveredByOlder,
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
    /// A verified leader counts as leader forever: what the signs of the paper's formula come to.
    VerifyPrinted,
    /// A leader may give its grants back right after it has said that it leads.
    VerifyNoPledge,
    /// Anybody's answer to a question is taken for that of the process that was asked.
    CertainByAnybody,
    /// An answer to an older question is counted from the newest.
    CertainToOlder,
    /// The proposer waits from when it learnt of the epoch itself, the acceptors not at all.
    SkipW1,
    /// The proposer waits from when one member had adopted the epoch, the acceptors not at all.
    W1One,
    /// The wait is counted from the adoption before: wait, then adopt.
    WaitFirst,
    /// Nobody waits between two epochs.
    SkipW,
    /// After a reboot the wait between two epochs counts as over.
    RebootNoWait,
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
    /// A charter that one member has accepted counts as decided.
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
    /// A candidate that asks in an old epoch is not told of the new one.
    NackNoRecord,
    /// A new member grants acquisitions at once.
    NoYoung,
    /// A process with a new store goes by a charter that names the old one.
    AnyStore,
    /// A change may name another store for a member that stays.
    StoreReplaced,
    /// Answers of a new epoch leave before its charter is durable.
    EpochLearntVolatile,
    /// A charter by an operator's word takes effect at once.
    ForceNoWait,
    /// A member that has accepted it grants on until it goes by it.
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
    /// A process whose clock is behind grants by it.
    ActsWhileBehind,
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
    /// A larger term is granted at once, even if another process holds the grant.
    NoWaitOnTakeover,
    /// A process that has given back a grant is not granted anything.
    FormerLeaderRefused,
    /// A refused candidate lengthens the grant that stands in its way.
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
    /// A group that a repair of terms has barred is granted. Shown by `tests/repair_of_terms.rs`.
    GrantsBarred,
    /// The ballot of a force-remove goes on when another command has taken its place.
    BallotOutlivesWord,
    /// A sealed member judges the charter that it is sealed for by its ceiling.
    DeniesOwnSeal,
    /// Nothing is charged for the height of a term.
    HeightFree,
    /// Asking for a term vouches for it, also by an outsider.
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

/// A mutant of the strong machine or of its driver.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// Its mistake.
    pub says: &'static str,
    /// The broken rule.
    pub rules: Broken,
    /// The driver's flaws.
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
    pub fn subject(&self, model: Model) -> Strong<Broken> {
        Strong { rules: self.rules, flaws: self.flaws, order: self.order, model }
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

/// All mutants of epochs that are ended, and of disks that recover. A mutant that is wrong anyway
/// need not be tried once more there.
pub fn wedge() -> impl Iterator<Item = &'static Mutant> {
    wedge::WEDGE.iter()
}

/// Mutants that break a rule of the protocol, or of the specification of its driver.
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
    rule("covered-by-older", Broken::CoveredByOlder, "an Ok waits for a write that does not cover its term"),
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
    rule("speaks-for-others", Broken::SpeaksForOthers, "anybody may give back what another holds"),
    rule("relays-for-others", Broken::RelaysForOthers, "a hand-over may give back what another holds"),
    rule("counts-unknown", Broken::CountsUnknown, "the answer of a process that is no member counts"),
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
    rule("verify-printed", Broken::VerifyPrinted, "a verified leader counts as leader without end"),
    rule(
        "verify-no-pledge",
        Broken::VerifyNoPledge,
        "a leader gives its grants back right after it was verified",
    ),
    rule("certain-by-anybody", Broken::CertainByAnybody, "anybody may answer that it leads, asked or not"),
    rule("certain-to-older", Broken::CertainToOlder, "an answer to an older question counts for the newest")
        .only(On::Drift),
    rule("forgets-grant", Broken::ForgetsGrant, "a group is forgotten while its grant binds"),
    rule("forgets-release", Broken::ForgetsRelease, "a group is forgotten while what was given back counts"),
    rule("forgets-pledge", Broken::ForgetsPledge, "a group is forgotten while a pledge stands"),
    rule("forgets-term", Broken::ForgetsTerm, "the largest term of a group is forgotten with it"),
    rule("clock-back", Broken::ClockBack, "a leader whose clock went back goes by what it shows"),
    rule("acts-while-behind", Broken::ActsWhileBehind, "a grantor whose clock went back grants by it")
        .only(On::Drift),
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
