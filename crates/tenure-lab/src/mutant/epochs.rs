//! What breaks a rule by which members change (see `tenure_proto::strong::epoch`).

use tenure_proto::strong::Across;

use super::{Broken, Mutant, On, Order, driver, rule, thread};
use crate::world::Flaws;

pub(super) const EPOCHS: &[Mutant] = &[
    rule("skip-w1", Broken::SkipW1, "between two epochs only the proposer waits, by when it learnt itself"),
    rule("w1-one", Broken::W1One, "between two epochs only the proposer waits, by when one member was there"),
    rule("wait-first", Broken::WaitFirst, "between two epochs members wait before they adopt, not after"),
    rule("adopted-late", Broken::AdoptedLate, "an adoption is remembered late, and for whichever epoch"),
    rule("skip-w2", Broken::SkipW, "a proposer that has found a quorum in the epoch does not wait"),
    rule("skip-w-acc", Broken::SkipW, "a member accepts the next epoch without waiting"),
    rule("act-unadopted", Broken::ActUnadopted, "a member answers ballots of an epoch it has not adopted"),
    rule("skip-floors", Broken::SkipFloors, "charters have no floor"),
    rule("floor-early", Broken::FloorEarly, "the floor is what an earlier ballot had found"),
    rule("floor-own", Broken::FloorOwn, "the floor is what the proposer itself has granted"),
    rule("floor-no-chain", Broken::FloorNoChain, "a member does not report the floor that it adopted"),
    rule("non-adjacent", Broken::NonAdjacent, "any quorums may follow any"),
    rule(
        "count-old",
        Broken::Count(Across::ByOld),
        "answers of two epochs count together, by the old quorums",
    ),
    rule(
        "count-new",
        Broken::Count(Across::ByNew),
        "answers of two epochs count together, by the new quorums",
    ),
    rule("count-card", Broken::Count(Across::ByNumber), "answers of two epochs count together, by number"),
    rule("epoch-volatile", Broken::EpochVolatile, "a restart forgets the epoch"),
    rule("paxos-volatile", Broken::PaxosVolatile, "a restart forgets promises and accepted charters"),
    rule("no-value-adopt", Broken::NoValueAdopt, "a proposer ignores what others may have decided"),
    rule("act-on-accepted", Broken::ActOnAccepted, "what one member has accepted counts as decided"),
    rule("new-old-f", Broken::NewOldF, "a member that has just joined takes over an F of another clock")
        .only(On::Drift),
    rule("new-late-f", Broken::NewLateF, "a member that supports nobody takes over an F of another clock")
        .only(On::Drift),
    rule("clear-on-adopt", Broken::ClearOnAdopt, "adopting an epoch forgets the grants"),
    rule("term-reset-on-adopt", Broken::TermResetOnAdopt, "the floor replaces the largest term"),
    rule("old-grants", Broken::OldGrants, "a grantor goes on granting in epochs that it has left"),
    driver(
        "amnesia-same-id",
        Flaws { missing_is_fresh: true, ..Flaws::NONE },
        "a member that lost its disk joins again under its name",
    ),
    driver(
        "amnesia-same-id-silent",
        Flaws { missing_is_reboot: true, ..Flaws::NONE },
        "a member that lost its disk joins again under its name, after a silence",
    ),
    rule("remember-no-silence", Broken::RememberNoSilence, "a quick restart cuts a running silence short"),
    thread(
        "qt0-cur-epoch",
        Order::CurrentEpoch,
        "an edict has the stamps of the first run and a later epoch",
    ),
    rule("nack-no-record", Broken::NackNoRecord, "who asks in an old epoch is not told of the new one"),
    rule("no-young", Broken::NoYoung, "a new member grants acquisitions at once"),
    rule("force-no-wait", Broken::ForceNoWait, "a force-remove takes effect while leases may be in force"),
    rule(
        "force-no-seal",
        Broken::ForceNoSeal,
        "who has accepted a force-remove grants on until it takes effect",
    ),
    rule(
        "ignores-foreign",
        Broken::IgnoresForeign,
        "a member that hears of another lineage grants and leads on",
    ),
    rule(
        "epoch-learnt-volatile",
        Broken::EpochLearntVolatile,
        "answers of a new epoch leave before its charter is durable",
    ),
    rule("answers-outbid", Broken::AnswersOutbid, "a member answers a ballot below one that it promised"),
    rule("promise-before-ticket", Broken::PromiseBeforeTicket, "a promise leaves before it is durable"),
    rule("accepted-before-ticket", Broken::AcceptedBeforeTicket, "an acceptance leaves before it is durable"),
    rule("any-ballot", Broken::AnyBallot, "an answer to any ballot counts for the present one"),
    rule("promise-accepts", Broken::PromiseAccepts, "a promise that comes late counts as an acceptance"),
    rule("seal-replaced", Broken::SealReplaced, "a sealed member accepts any other charter of an operator"),
    rule("reset-unasked", Broken::ResetUnasked, "terms may fall below one that a member has granted"),
    rule("reset-unbarred", Broken::ResetUnbarred, "a group that held an absurd term is granted again"),
    rule("force-low-floor", Broken::ForceLowFloor, "a forced floor may be below what a survivor granted"),
];
