//! The status of a node: peers, charter, groups, and why it is not ready.

use std::time::Duration;

use tenure::{ClockBound, GroupStatus, Node, NotReady, PeerStatus, Role, Status};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::{now, within};

const SOON: Duration = Duration::from_secs(60);
/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);

/// Asks again until the status is as it should be.
async fn shows(node: &Node, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
    let shown = async {
        loop {
            let status = node.status().await.expect("it runs");
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(what, SOON, shown).await
}

async fn lists(node: &Node, group: &str, wanted: impl Fn(&GroupStatus) -> bool) -> GroupStatus {
    let listed = async {
        loop {
            let groups = node.groups().await.expect("it runs");
            assert!(groups.is_sorted_by_key(|status| status.group.clone()), "they are sorted by name");
            if let Some(status) =
                groups.into_iter().find(|status| status.group.as_str() == group && wanted(status))
            {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(group, SOON, listed).await
}

#[tokio::test]
async fn a_member_tells_of_its_peers_and_what_the_epoch_lays_down() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let _app = Node::start(cluster.outsider("app1", Role::Candidate)).await.expect("it starts");
    within("it is ready", SOON, nodes[0].ready()).await.expect("it runs");
    let measured = |peer: &PeerStatus| peer.is_me || peer.round_trip.is_some();
    let all = |status: &Status| status.peers_known.len() == 4 && status.peers_known[..3].iter().all(measured);
    let status = shows(&nodes[0], "all peers", all).await;
    assert_eq!((status.role, status.lease, status.is_member), (Role::Member, LEASE, true));
    assert!(status.incarnation > 0);
    let charter = status.charter.expect("it knows the members");
    assert_eq!(
        (charter.quorums.as_str(), charter.longest_lease, charter.changing),
        ("majority", LEASE * 2, false)
    );
    assert_eq!(charter.bound, ClockBound::Drift { ppm: 100_000 });
    let names: Vec<&str> = status.peers_known.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "app1"]);
    let [me, other, _, app] = &status.peers_known[..] else { panic!("there are four") };
    assert!(me.is_me && me.is_member && me.answers && !me.has_session && me.heard.is_none());
    assert!(other.is_member && !other.is_me && other.has_session && other.answers && other.clock_trusted);
    assert_eq!(other.address.as_deref(), Some(cluster.addresses[1].to_string().as_str()));
    assert!(other.heard.is_some_and(|ago| ago < SOON) && other.round_trip.is_some_and(|trip| trip < SOON));
    assert!(!app.is_member && app.has_session && app.address.is_some());
}

#[tokio::test]
async fn groups_tell_who_holds_them_and_for_how_long() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let app = Node::start(cluster.outsider("app1", Role::Candidate)).await.expect("it starts");
    let tenure = within("a leader", SOON, app.campaign("b/jobs")).await.expect("it is elected");
    let own = within("a leader", SOON, nodes[0].campaign("a/jobs")).await.expect("it is elected");
    let waiting = nodes[1].clone();
    let waits = tokio::spawn(async move { waiting.campaign("a/jobs").await });
    tenure.proclaim(b"hear ye").expect("it leads");

    let here = lists(&app, "b/jobs", |status| status.led_here).await;
    assert_eq!((here.holder.as_ref(), here.term), (Some(app.name()), Some(tenure.term())));
    assert!(here.lease_remaining.is_some_and(|left| left <= LEASE) && here.grant_remaining.is_none());

    let until = Duration::from_nanos(tenure.until().expect("it leads").as_nanos());
    let now = now();
    assert!(until > now && until - now < LEASE * 2, "it is the end of a lease");

    let told =
        lists(&nodes[0], "b/jobs", |status| status.proclaimed.is_some() && status.holder.is_some()).await;
    assert_eq!((told.holder.as_ref(), told.term), (Some(app.name()), Some(tenure.term())));
    assert!(told.holder_known_to_lead && !told.led_here && told.lease_remaining.is_none());
    assert!(told.grant_remaining.is_some());
    assert_eq!(told.proclaimed.expect("it was heard").body, b"hear ye");

    let led = lists(&nodes[0], "a/jobs", |status| status.led_here).await;
    assert!(led.holder_known_to_lead && led.grant_remaining.is_some());
    let wanted = lists(&nodes[1], "a/jobs", |status| status.campaigning_here).await;
    assert!(!wanted.led_here);
    drop((own, tenure));
    drop(within("the next", SOON, waits).await.expect("no panic").expect("it is elected"));
    let free = lists(&nodes[0], "b/jobs", |status| status.holder.is_none()).await;
    assert_eq!((free.term, free.grant_remaining, free.holder_known_to_lead), (None, None, false));
}

#[tokio::test]
async fn writes_and_runs_are_timed() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let timed =
        |status: &Status| status.timings.renewals.count() > 1 && status.timings.store_writes.count() > 0;
    let status = shows(&nodes[0], "renewals", timed).await;
    let timings = status.timings;
    assert_eq!((timings.acquisitions.count(), timings.renewals.count()), (1, status.tally.renewals));
    assert!(timings.renewals.total() > Duration::ZERO && timings.renewals.total() < SOON);
    assert!(timings.store_writes.total() > Duration::ZERO);
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn a_node_says_what_it_lacks_to_be_ready() {
    // Its leader is to lose: the lease is over before the others are known to be silent.
    let cluster = Cluster::found(3, Duration::from_millis(500));
    let first = Node::start(cluster.member(0)).await.expect("it starts");
    let app = Node::start(cluster.outsider("app1", Role::Candidate)).await.expect("it starts");
    let alone = shows(&first, "it is alone", |status| !status.not_ready.is_empty()).await;
    assert_eq!(alone.not_ready, [NotReady::NoQuorum { reached: 1, members: 3 }]);
    assert!(!alone.ready && !first.is_ready());
    let second = Node::start(cluster.member(1)).await.expect("it starts");
    for node in [&first, &second, &app] {
        within("it is ready", SOON, node.ready()).await.expect("it runs");
    }
    assert!(app.is_ready());
    let tenure = within("a leader", SOON, app.campaign("jobs")).await.expect("it is elected");
    drop(second);
    for node in [&app, &first] {
        within("it is not ready any more", SOON * 2, node.unready()).await.expect("it runs");
    }
    let left = shows(&app, "too few are left", |status| !status.ready).await;
    assert_eq!(left.not_ready, [NotReady::NoQuorum { reached: 1, members: 3 }]);
    assert!(!tenure.is_leader());
    assert_eq!(left.not_ready[0].to_string(), "it reaches 1 of 3 members, which are no quorum");
}

#[tokio::test]
async fn a_name_that_was_only_asked_about_is_no_group_yet() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let mut watch = nodes[0].observe("jobs").await.expect("it runs");
    let nobody = async {
        while !matches!(watch.now().leadership, tenure::Leadership::Nobody { .. }) {
            watch.next().await.expect("it runs");
        }
    };
    within("the members have answered", SOON, nobody).await;
    for node in &nodes {
        assert_eq!(node.groups().await.expect("it runs"), []);
    }
    let tenure = within("elected", SOON, nodes[1].campaign("jobs")).await.expect("it leads");
    lists(&nodes[0], "jobs", |status| status.holder_known_to_lead).await;
    drop(tenure);
    lists(&nodes[0], "jobs", |status| status.holder.is_none()).await;
}
