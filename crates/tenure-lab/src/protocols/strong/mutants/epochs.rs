//! Mutants of the rules by which members change (see `tenure_proto::strong::epoch`).

use tenure_proto::strong::Across;

use super::{Broken, Mutant, On, Order, driver, rule, thread};
use crate::world::Flaws;

pub(super) const EPOCHS: &[Mutant] = &[
    rule("skip-w1", Broken::SkipW1, "between two epochs only the proposer waits, by when it learnt itself"),
    rule("w1-one", Broken::W1One, "between two epochs only the proposer waits, by when one member was there"),
    rule("wait-first", Broken::WaitFirst, "between two epochs members wait before they adopt, not after"),
    rule("reboot-no-wait", Broken::RebootNoWait, "after a reboot a member does not wait between two epochs"),
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
    rule("any-store", Broken::AnyStore, "a new store counts as the member whose store was lost"),
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
    rule(
        "ballot-outlives-word",
        Broken::BallotOutlivesWord,
        "the ballot of a force-remove goes on without its floor when another command comes",
    ),
    rule(
        "denies-own-seal",
        Broken::DeniesOwnSeal,
        "a restarted member denies the forced charter that it has accepted",
    ),
    rule("force-low-floor", Broken::ForceLowFloor, "a forced floor may be below what a survivor granted"),
];

#[cfg(test)]
mod tests {
    use tenure_proto::NodeId;
    use tenure_proto::quorum::Quorums;
    use tenure_proto::strong::epoch::{Body, Change, StoreId, Stores};
    use tenure_proto::strong::{Rules, Sound};
    use tenure_proto::time::{Bound, Clockwork, LocalSpan, Span};

    use super::Broken;

    fn stores(all: &[(u64, u128)]) -> Stores {
        all.iter().map(|(member, store)| (NodeId(*member), StoreId(*store))).collect()
    }

    /// The store that a charter names for n2, when n3 has taken n1's place and n2 has lost its
    /// disk.
    fn named_after(rules: &impl Rules) -> Option<StoreId> {
        let body = Body {
            quorums: Quorums::majority((0..3).map(NodeId).collect()).expect("three are a majority system"),
            clocks: Clockwork {
                bound: Bound::Skew(LocalSpan::from_nanos(1)),
                tick: LocalSpan::from_nanos(1),
            },
            longest_lease: Span::from_millis(100),
            stores: stores(&[(0, 10), (1, 11), (2, 12)]),
            barred: tenure_proto::strong::epoch::Barred::default(),
        };
        let replace = Change::Replace { old: NodeId(1), new: NodeId(3) };
        let change = Change::Named(Box::new(replace), stores(&[(2, 99), (3, 13)]));
        let goal = change.applied(&body, rules).expect("one member is replaced");
        assert_eq!(goal.stores.get(NodeId(3)), Some(StoreId(13)), "a new member has the store that is said");
        goal.stores.get(NodeId(2))
    }

    #[test]
    fn a_new_store_counts_as_a_member_that_stays_only_where_a_rule_about_stores_is_broken() {
        let new = Some(StoreId(99));
        let counts = |change: Option<StoreId>, rules: Broken| rules.is_same_store(change, new);
        assert!(!Sound.is_same_store(named_after(&Sound), new));
        assert!(!counts(named_after(&Broken::Nothing), Broken::Nothing));
        assert!(counts(named_after(&Broken::StoreReplaced), Broken::StoreReplaced));
        assert!(counts(named_after(&Broken::AnyStore), Broken::AnyStore));
    }
}
