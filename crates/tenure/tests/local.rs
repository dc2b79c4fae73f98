//! Local groups among real nodes: a leader for every partition, also where it is slowness that
//! parts them.

use std::net::SocketAddr;
use std::time::Duration;

use tenure::{KindError, Local, Locality, Node, Partition, Role, WeakElection};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::ports::free_addresses;
use tenure_testkit::proxy::{Proxy, Rule, honest};
use tenure_testkit::waiting::within;

const LEASE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);

/// Assumptions that also a busy machine keeps to.
fn easy() -> Locality {
    let mut how = Locality::default();
    how.delay = Duration::from_millis(60);
    how.hole = Duration::from_millis(120);
    how
}

/// Five members behind a proxy that can make some links slow.
struct Site {
    _cluster: Cluster,
    real: Vec<SocketAddr>,
    proxy: Proxy,
    nodes: Vec<Node>,
    groups: Vec<Local>,
}

impl Site {
    async fn new(how: &Locality) -> Self {
        let cluster = Cluster::found(5, LEASE);
        let real = free_addresses(5);
        let proxy = Proxy::start(&cluster.addresses, &real).await.expect("it listens");
        let mut site = Self { _cluster: cluster, real, proxy, nodes: Vec::new(), groups: Vec::new() };
        for index in 0..5 {
            let mut config = site._cluster.member(index);
            config.listen = vec![site.real[index]];
            let node = Node::start(config).await.expect("it starts");
            site.groups.push(node.local("lights", how).await.expect("a member takes part"));
            site.nodes.push(node);
        }
        site
    }

    /// Messages between the first `count` and the others take `longer`.
    fn part(&self, count: usize, longer: Duration) {
        let near = self.real[..count].to_vec();
        let rule: Rule = Box::new(move |packet| {
            let crosses = near.contains(&packet.from) != near.contains(&packet.to);
            vec![(if crosses { longer } else { Duration::ZERO }, packet.bytes.clone())]
        });
        self.proxy.rule(rule);
    }

    fn heal(&self) {
        self.proxy.rule(honest());
    }

    fn names(&self, which: &[usize]) -> Vec<String> {
        which.iter().map(|index| self.nodes[*index].name().to_string()).collect()
    }

    /// Waits until all of `which` know that they are a partition of their own, and gives it.
    async fn partition(&self, which: &[usize]) -> Partition {
        let names = self.names(which);
        let is_whole = |partition: &Partition| {
            partition.members.iter().map(ToString::to_string).collect::<Vec<_>>() == names
        };
        let together = async {
            loop {
                self.no_two_leaders_share_a_member();
                let seen: Vec<_> = which.iter().map(|index| self.groups[*index].partition()).collect();
                if let Some(first) = &seen[0]
                    && is_whole(first)
                    && seen.iter().all(|other| other.as_ref() == Some(first))
                {
                    return first.clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(&format!("a partition of {names:?}"), SOON, together).await
    }

    /// A leader that is seen before and after another one, with the same supporters, led in
    /// between.
    fn no_two_leaders_share_a_member(&self) {
        let led = |index: usize| self.groups[index].partition().filter(|_| self.groups[index].leads());
        for one in 0..self.groups.len() {
            let Some(before) = led(one) else { continue };
            let others = (0..self.groups.len()).filter(|other| *other != one).filter_map(led);
            let others: Vec<Partition> = others.collect();
            if led(one).as_ref() == Some(&before) {
                for other in others {
                    let shared = other.members.iter().find(|member| before.members.contains(member));
                    assert_eq!(shared, None, "{before:?} and {other:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn slowness_parts_a_group_in_two_with_a_leader_each_and_speed_joins_them_again() {
    let site = Site::new(&easy()).await;
    let whole = site.partition(&[0, 1, 2, 3, 4]).await;
    let leads: Vec<bool> = site.groups.iter().map(Local::leads).collect();
    assert!(leads.iter().filter(|leads| **leads).count() <= 1, "{leads:?}");
    assert!(whole.members.contains(&whole.leader));

    site.part(2, Duration::from_secs(2));
    let few = site.partition(&[0, 1]).await;
    let many = site.partition(&[2, 3, 4]).await;
    assert_ne!(few.leader, many.leader);

    site.heal();
    site.partition(&[0, 1, 2, 3, 4]).await;
}

#[tokio::test]
async fn a_leader_whose_clock_steps_back_is_over_and_begins_anew() {
    let cluster = Cluster::found(3, LEASE);
    let (nodes, hands) = cluster.start_by_hand(WeakElection::default()).await;
    let mut groups = Vec::new();
    for node in &nodes {
        groups.push(node.local("lights", &easy()).await.expect("a member takes part"));
    }
    let leader = async {
        loop {
            match groups.iter().position(Local::leads) {
                Some(leader) => return leader,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let leader = within("a leader", SOON, leader).await;

    // It would lead longer by this than its supporters are bound to it. A node that reads the
    // clock only after it is back sees no step: then it steps once more.
    let mut is_over = false;
    for _ in 0..20 {
        hands[leader].back(Duration::from_millis(40));
        let over = async { while groups[leader].changed().await.expect("it takes part").is_some() {} };
        is_over = tokio::time::timeout(Duration::from_millis(1500), over).await.is_ok();
        if is_over {
            break;
        }
    }
    assert!(is_over, "no reading vouches for what it knew");
    // It is bound by what it promised, for longer than this, before it can lead again.
    for _ in 0..20 {
        assert!(!groups[leader].leads());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = async { while groups[leader].changed().await.expect("it takes part").is_none() {} };
    within("a partition again", SOON, again).await;
}

#[tokio::test]
async fn with_majority_only_the_larger_side_has_a_leader() {
    let mut how = easy();
    how.majority = true;
    let site = Site::new(&how).await;
    site.partition(&[0, 1, 2, 3, 4]).await;
    site.part(2, Duration::from_secs(2));
    site.partition(&[2, 3, 4]).await;
    assert_eq!(site.groups[0].partition(), None);
    assert_eq!(site.groups[1].partition(), None);
}

#[tokio::test]
async fn a_member_whose_handles_are_gone_is_left_out_until_it_takes_part_again() {
    let mut site = Site::new(&easy()).await;
    site.partition(&[0, 1, 2, 3, 4]).await;
    site.groups.remove(0);
    let names = site.names(&[1, 2, 3, 4]);
    let rest = async {
        loop {
            let seen = site.groups[0].partition();
            let members = seen.map(|seen| seen.members.iter().map(ToString::to_string).collect::<Vec<_>>());
            if members.as_ref() == Some(&names) {
                return;
            }
            site.groups[0].changed().await.expect("the node runs");
        }
    };
    within("a partition without it", SOON, rest).await;
    site.groups.insert(0, site.nodes[0].local("lights", &easy()).await.expect("it takes part again"));
    site.partition(&[0, 1, 2, 3, 4]).await;
}

#[tokio::test]
async fn a_group_can_be_strong_and_local_under_one_name() {
    let cluster = Cluster::found(1, LEASE);
    let nodes = cluster.start().await;
    let local = nodes[0].local("lights", &easy()).await.expect("a member takes part");
    let tenure = within("a leader", SOON, nodes[0].campaign("lights")).await.expect("it is elected");
    let leads = async {
        while !local.leads() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("a local leader", SOON, leads).await;
    let me = nodes[0].name().clone();
    assert_eq!((local.local_leader(), local.members()), (Some(me.clone()), vec![me]));
    assert!(tenure.is_leader());
    nodes.into_iter().next().expect("there is one").shutdown().await;
    assert!(!local.leads() && local.local_leader().is_none(), "who has ended leads nothing");
}

#[tokio::test]
async fn assumptions_that_do_not_hold_together_are_refused_with_what_would() {
    let cluster = Cluster::found(1, LEASE);
    let nodes = cluster.start().await;
    let mut how = Locality::default();
    how.drift_ppm = 2;
    how.delay = Duration::from_millis(5);
    how.fast = Some(Duration::from_millis(15));
    how.hole = Duration::from_millis(30);
    how.pace = Some(Duration::from_millis(50)); // As the paper measured with.
    let Err(KindError::Refused { reason }) = nodes[0].local("lights", &how).await else {
        panic!("they are not refused");
    };
    for word in ["(max(2 Delta, 4 delta) + sigma)", "does not hold", "EP=", "sigma="] {
        assert!(reason.contains(word), "{word} is not in: {reason}");
    }
    let app = Node::start(cluster.outsider("app", Role::Candidate)).await.expect("it starts");
    assert!(matches!(app.local("lights", &easy()).await, Err(KindError::NotAMember { .. })));
}
