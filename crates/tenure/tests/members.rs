//! Members change while a leader goes on leading.

use std::time::Duration;

use tenure::{
    Changing, ClockBound, Config, MemberChange, MembersError, Node, Peer, Progress, Role, Stopped, Tenure,
};
use tenure_testkit::cluster::{Cluster, renewed};
use tenure_testkit::ports::free_addresses;
use tenure_testkit::waiting::within;

/// Long enough that a leader which is not run for a while, on a machine that does much else, renews
/// in time.
const LEASE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);
/// For leaders that must stay. A leader renews at half of it: one that is not run for two seconds,
/// on a machine that does much else, leads on.
const LONG_LEASE: Duration = Duration::from_secs(5);

/// A node that is to become a member: joined, and running.
async fn newcomer(cluster: &Cluster, name: &str) -> (Node, Peer) {
    let address = free_addresses(1)[0];
    let mut config: Config = cluster.outsider(name, Role::Member);
    config.listen = vec![address];
    config.store = Some(cluster.path(name));
    Node::join(&config, cluster.id).expect("a new store");
    let node = Node::start(config).await.expect("it starts");
    (node, Peer { name: name.to_owned(), address: address.to_string() })
}

/// Waits until a node knows of an epoch: who orders a change by an older one is told of a conflict.
async fn knows(node: &Node, epoch: u64) {
    let known = async {
        while node.status().await.expect("it runs").epoch.is_none_or(|known| known.0 < epoch) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the newest epoch", SOON, known).await;
}

async fn change(node: &Node, change: MemberChange) -> u64 {
    let changing = node.change_members(&change).expect("it can be asked for");
    within("the change", SOON, changing.done()).await.expect("it is done").0
}

fn leads_on(tenure: &Tenure) {
    assert!(tenure.is_leader(), "the leader of term {} was deposed", tenure.term());
}

#[tokio::test]
async fn members_come_and_go_and_the_leader_stays() {
    let cluster = Cluster::found(3, LONG_LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let (d, peer) = newcomer(&cluster, "d").await;
    assert!(!d.status().await.expect("it runs").is_member, "nobody has added it");

    assert_eq!(change(&nodes[0], MemberChange::Add(peer)).await, 1);
    leads_on(&tenure);
    within("the newcomer", SOON, d.ready()).await.expect("it runs");
    let status = d.status().await.expect("it runs");
    assert!(status.is_member);
    assert_eq!(status.members.len(), 4);

    knows(&nodes[1], 1).await;
    assert!(change(&nodes[1], MemberChange::Remove("c".into())).await >= 2);
    leads_on(&tenure);
    let (_e, peer) = newcomer(&cluster, "e").await;
    assert!(change(&nodes[1], MemberChange::Replace { old: "b".into(), new: peer }).await >= 3);
    renewed(&nodes[0], 3).await;
    leads_on(&tenure);

    // b and c are gone: a, d and e are the cluster.
    let members = nodes[0].status().await.expect("it runs").members;
    let names: Vec<&str> = members.iter().map(tenure::NodeName::as_str).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(["a", "d", "e"].iter().all(|name| names.contains(name)), "{names:?}");
}

/// The next step of a change. On a busy machine it also says whom it waits for.
async fn step(changing: &mut Changing) -> Option<Progress> {
    loop {
        match changing.next().await {
            Some(Progress::Waiting { .. } | Progress::Unheard { .. }) => {}
            step => return step,
        }
    }
}

#[tokio::test]
async fn a_change_tells_its_progress_and_what_is_wrong_with_it() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let mut changing =
        nodes[0].change_members(&MemberChange::LongestLease(LEASE * 3)).expect("it can be asked for");
    let first = within("a step", SOON, step(&mut changing)).await;
    assert!(matches!(first, Some(Progress::Epoch(epoch)) if epoch.0 == 1), "{first:?}");
    let last = within("the end", SOON, step(&mut changing)).await;
    assert!(matches!(last, Some(Progress::Done(epoch)) if epoch.0 == 1), "{last:?}");

    let twice =
        nodes[0].change_members(&MemberChange::Add(Peer { name: "b".into(), address: "127.0.0.1:1".into() }));
    let refused = within("an answer", SOON, twice.expect("it can be asked for").done()).await;
    assert!(matches!(refused, Err(MembersError::AlreadyMember { .. })), "{refused:?}");

    let never = MemberChange::Bound(ClockBound::Drift { ppm: 1_000_000 });
    assert!(matches!(nodes[0].change_members(&never), Err(MembersError::Halted { .. })));
}

#[tokio::test]
async fn who_is_no_member_cannot_change_them() {
    let cluster = Cluster::found(3, LEASE);
    let _nodes = cluster.start().await;
    let app = Node::start(cluster.outsider("app", Role::Candidate)).await.expect("it starts");
    let refused =
        app.change_members(&MemberChange::Remove("a".into())).expect("it can be asked for").done().await;
    assert_eq!(refused, Err(MembersError::NotAMember));
}

#[tokio::test]
async fn a_member_whose_file_contradicts_the_cluster_does_not_start() {
    let cluster = Cluster::found(3, LEASE);
    let mut config = cluster.member(0);
    config.longest_lease = LEASE * 10;
    let error = Node::start(config).await.expect_err("the cluster rules").to_string();
    assert!(error.contains("longest_lease") && error.contains("members set"), "{error}");
}

#[tokio::test]
async fn what_cannot_come_to_a_good_end_is_refused_before_anybody_is_asked() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    for node in &nodes {
        within("readiness", SOON, node.ready()).await.expect("it runs");
    }
    let refused = async |node: &Node, change: MemberChange| {
        let changing = node.change_members(&change).expect("it can be asked for");
        within("an answer", SOON, changing.done()).await.expect_err("it is refused")
    };
    let nobody = free_addresses(1)[0].to_string();
    let nobody = || Peer { name: "d".into(), address: nobody.clone() };
    let a = &nodes[0];
    assert!(matches!(refused(a, MemberChange::Add(nobody())).await, MembersError::Unreachable { .. }));
    assert!(matches!(refused(a, MemberChange::Remove("x".into())).await, MembersError::NoSuchMember { .. }));
    let force = MemberChange::ForceRemove { powered_off: vec!["c".into()], floor: None };
    let why = refused(a, force).await.to_string();
    assert!(why.contains("are a quorum"), "{why}");

    // c is gone. To remove b would leave a and c, of whom only a answers.
    nodes.pop().expect("three").shutdown().await;
    within("c's end to be seen", SOON, async {
        while nodes[0].status().await.expect("it runs").peers_known.iter().filter(|peer| peer.answers).count()
            > 2
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let why = refused(&nodes[0], MemberChange::Remove("b".into())).await;
    assert_eq!(why, MembersError::NoQuorumLeft { live: 1, members: 2 });
    assert!(change(&nodes[0], MemberChange::Remove("c".into())).await >= 1);
}

#[tokio::test]
async fn quorums_and_bounds_change_together() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let adjust = MemberChange::Adjust {
        quorums: Some("weights:2,1,1".into()),
        bound: Some(ClockBound::Drift { ppm: 2000 }),
        longest_lease: Some(LEASE * 3),
    };
    change(&nodes[1], adjust).await;
    leads_on(&tenure);
    let charter = nodes[1].status().await.expect("it runs").charter.expect("it knows the charter");
    assert_eq!(charter.quorums, "weights:2,1,1");
    assert_eq!((charter.bound, charter.longest_lease), (ClockBound::Drift { ppm: 2000 }, LEASE * 3));
}

#[tokio::test]
async fn a_lost_quorum_is_given_up_by_an_operator_s_word_after_a_wait() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let before = tenure.term();
    drop(nodes.split_off(1)); // b and c are powered off, so to speak.
    within("the loss", SOON, tenure.lost()).await;
    drop(tenure);

    let force = MemberChange::ForceRemove { powered_off: vec!["b".into(), "c".into()], floor: None };
    let mut changing = nodes[0].change_members(&force).expect("it can be asked for");
    let mut told = Vec::new();
    let epoch = loop {
        match within("progress", SOON, changing.next()).await {
            Some(Progress::Done(epoch)) => break epoch,
            Some(progress) => told.push(progress),
            None => panic!("it ended after {told:?}"),
        }
    };
    // Leases of those who are gone may be in force for that long.
    let waits = |told: &Progress| matches!(told, Progress::Waiting { left } if *left > LEASE);
    assert!(told.iter().any(waits), "{told:?}");
    assert!(epoch.0 >= 1 << 20, "an era of its own: {epoch}");
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    assert!(tenure.term() > before && tenure.term() > tenure::term_floor(), "{}", tenure.term());

    // One of them was not powered off forever. It learns that it is no member.
    let b = Node::start(cluster.member(1)).await.expect("it starts");
    let campaign = b.campaign("jobs");
    tokio::pin!(campaign);
    within("b to learn", SOON, async {
        while b.status().await.expect("it runs").is_member {
            tokio::select! {
                led = &mut campaign => panic!("it leads: {led:?}"),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    })
    .await;
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn a_lost_member_does_not_come_back_under_its_name_although_a_stale_one_answers_first() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    for node in &nodes {
        within("readiness", SOON, node.ready()).await.expect("it runs");
    }
    // c does not hear that it is removed, nor that d is a member.
    nodes.pop().expect("c").shutdown().await;
    change(&nodes[0], MemberChange::Remove("c".into())).await;
    let (d, peer) = newcomer(&cluster, "d").await;
    let address = peer.address.clone();
    change(&nodes[0], MemberChange::Add(peer)).await;
    within("the newcomer", SOON, d.ready()).await.expect("it runs");
    let epoch = d.status().await.expect("it runs").epoch.expect("it knows one").0;
    knows(&nodes[1], epoch).await;
    d.shutdown().await;
    for node in nodes {
        node.shutdown().await;
    }

    // d has lost its disk, and the first that answers it is c, whose charter does not name it.
    std::fs::remove_dir_all(cluster.path("d")).expect("it was there");
    let mut config: Config = cluster.outsider("d", Role::Member);
    config.listen = vec![address.parse().expect("an address")];
    config.store = Some(cluster.path("d"));
    let c = Node::start(cluster.member(2)).await.expect("it starts");
    Node::join(&config, cluster.id).expect("a new store");
    let d = Node::start(config).await.expect("it starts");
    knows(&d, 0).await;
    assert!(!d.status().await.expect("it runs").is_member);
    let _a = Node::start(cluster.member(0)).await.expect("it starts");
    let _b = Node::start(cluster.member(1)).await.expect("it starts");
    let stopped = within("the refusal", SOON, async {
        loop {
            match d.status().await {
                Ok(status) => assert!(!status.is_member, "its promises are lost"),
                Err(stopped) => break stopped,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(matches!(stopped, Stopped::NameTaken { .. }), "{stopped}");
    drop(c);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for file in std::fs::read_dir(from).expect("a store").map(|file| file.expect("a file")) {
        std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

#[tokio::test]
async fn a_store_that_was_put_back_from_a_backup_is_condemned_also_after_restarts() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    nodes.pop().expect("c").shutdown().await;
    copy(&cluster.path("c"), &cluster.path("backup"));
    for _ in 0..2 {
        let c = Node::start(cluster.member(2)).await.expect("it starts");
        within("readiness", SOON, c.ready()).await.expect("it runs");
        c.shutdown().await;
    }
    std::fs::remove_dir_all(cluster.path("c")).expect("it was there");
    copy(&cluster.path("backup"), &cluster.path("c"));
    // Restarts count its lives up to those that were heard; nothing in the memory of this host
    // tells it of them.
    let memory = cluster.path("no-memory");
    std::fs::create_dir_all(&memory).expect("a folder");
    for _ in 0..4 {
        let mut config = cluster.member(2);
        config.memory = Some(memory.clone());
        let c = Node::start(config).await.expect("it starts");
        let stopped = within("its end", SOON, async {
            loop {
                match c.status().await {
                    Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                    Err(stopped) => break stopped,
                }
            }
        })
        .await;
        assert!(matches!(stopped, Stopped::RolledBack { .. }), "{stopped}");
    }
    // It ends at the word of the first that it greets: the other member need not have heard it.
    let mut condemned = Vec::new();
    for node in &nodes {
        let peers = node.status().await.expect("it runs").peers_known;
        let names = peers.into_iter().filter(|peer| peer.condemned).map(|peer| peer.name.to_string());
        condemned.extend(names);
    }
    assert!(!condemned.is_empty() && condemned.iter().all(|name| name == "c"), "{condemned:?}");
    drop(within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("the others go on"));
}

#[tokio::test]
async fn a_copy_of_a_running_store_does_not_start_on_the_same_host() {
    let cluster = Cluster::found(1, LEASE);
    let _node = cluster.start().await;
    copy(&cluster.path("a"), &cluster.path("twin"));
    let mut config = cluster.member(0);
    config.store = Some(cluster.path("twin"));
    config.listen = free_addresses(1);
    let error = Node::start(config).await.expect_err("a live twin has the memory");
    assert!(error.to_string().contains("copy of this store"), "{error}");
}
