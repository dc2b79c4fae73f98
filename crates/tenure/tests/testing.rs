//! Tests of `testing`, with which users test: a cluster in memory and in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::fence::Fence;
use tenure::testing::{Cluster, Group};
use tenure::{Campaign, Config, Loss, Node, Stopped, Tenure, Term, WeakElection};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

const JOBS: &str = "jobs";

/// Longer than anything may take, in virtual time.
const LONG: Duration = Duration::from_secs(600);

const LEASE: Duration = Duration::from_secs(10);

fn ten_seconds(config: &mut Config) {
    (config.lease, config.longest_lease) = (LEASE, LEASE);
}

async fn elected(node: &Node) -> Tenure {
    timeout(LONG, node.campaign(JOBS)).await.expect("it is elected").expect("it may lead")
}

async fn loss(tenure: &Tenure) -> Loss {
    timeout(LONG, tenure.lost()).await.expect("it is told")
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_is_succeeded_when_its_lease_of_ten_seconds_is_over() {
    let cluster = Cluster::with(3, 1, ten_seconds);
    let (node, old) = (cluster.node(0), elected(&cluster.node(0)).await);
    let begun = Instant::now();
    cluster.kill(0);
    assert_eq!((old.is_leader(), loss(&old).await), (false, Loss::Stopped), "its process is gone");
    assert_eq!(node.stopped().await, Stopped::Crashed);
    let new = elected(&cluster.node(1)).await;
    assert!(new.term() > old.term() && cluster.leader(JOBS) == Some(1));
    assert!(begun.elapsed() > LEASE / 2, "the members have kept what they granted");
}

#[tokio::test(start_paused = true)]
async fn in_a_partition_the_leader_of_the_minority_is_over_before_the_majority_has_one() {
    for seed in 0..200 {
        let cluster = Cluster::seeded(3, seed);
        let cut = usize::try_from(seed % 3).unwrap();
        let rest: Vec<usize> = (0..3).filter(|member| *member != cut).collect();
        let fence = Arc::new(Mutex::new(Fence::in_order()));
        let old = elected(&cluster.node(cut)).await;
        let late = old.edict().unwrap().token();
        let writer = tokio::spawn(write(old.clone(), fence.clone(), seed));
        sleep(Duration::from_millis(seed * 7)).await; // At any point between two renewals.
        cluster.partition(&[&[cut], &rest]);
        let [one, other] = [rest[0], rest[1]].map(|member| cluster.node(member));
        let new = tokio::select! {
            biased;
            new = elected(&one) => new,
            new = elected(&other) => new,
        };
        assert!(!old.is_leader(), "seed {seed}: two lead");
        assert!(new.is_leader(), "seed {seed}");
        write_once(&new, &fence, seed);
        assert!(fence.lock().unwrap().admit(late, "late").is_err(), "seed {seed}: an old edict passed");
        let written: u64 = timeout(LONG, writer).await.expect("the old leader's work ends").unwrap();
        assert!(written > 0, "seed {seed}: the old leader wrote nothing");
        write_once(&new, &fence, seed);
    }
}

/// Writes for as long as it leads, and says how often that was.
async fn write(tenure: Tenure, fence: Arc<Mutex<Fence<&'static str>>>, seed: u64) -> u64 {
    let mut written = 0;
    while tenure.is_leader() {
        write_once(&tenure, &fence, seed);
        written += 1;
        sleep(Duration::from_millis(1)).await;
    }
    written
}

fn write_once(tenure: &Tenure, fence: &Mutex<Fence<&'static str>>, seed: u64) {
    let Ok(edict) = tenure.edict() else { return };
    let admitted = fence.lock().unwrap().admit(edict.token(), "now");
    assert!(admitted.is_ok(), "seed {seed}: {:?} is out of order: {admitted:?}", edict.token());
}

#[tokio::test(start_paused = true)]
async fn when_a_partition_is_healed_all_members_see_the_same_leader() {
    let cluster = Cluster::seeded(5, 3);
    let mut watch = cluster.node(4).observe(JOBS).await.unwrap();
    cluster.partition(&[&[0, 1, 2], &[3, 4]]);
    let leader = elected(&cluster.node(0)).await;
    assert!(timeout(LEASE, cluster.node(3).campaign(JOBS)).await.is_err(), "two of five elect nobody");
    cluster.heal();
    let seen = async {
        while watch.leader().is_none_or(|seen| seen.name.as_ref() != Some(cluster.node(0).name())) {
            watch.next().await.expect("the node runs");
        }
    };
    timeout(LONG, seen).await.expect("the observer is told");
    assert!(leader.is_leader(), "and it leads on");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_process_is_paused_is_over_by_its_clock_and_is_told_when_it_goes_on() {
    let cluster = Cluster::seeded(3, 4);
    let old = elected(&cluster.node(2)).await;
    cluster.pause(2);
    let new = elected(&cluster.node(0)).await;
    assert!(!old.is_leader() && old.edict().is_err());
    assert!(timeout(LEASE, old.lost()).await.is_err(), "a process that is stopped says nothing");
    cluster.resume(2);
    assert_eq!(loss(&old).await, Loss::Lapsed);
    assert!(new.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_host_is_suspended_is_over_at_once_although_its_lease_is_not() {
    let cluster = Cluster::with(3, 5, ten_seconds);
    let old = elected(&cluster.node(1)).await;
    assert!(old.remaining() > Some(LEASE / 2));
    cluster.suspend(1);
    cluster.advance(Duration::from_millis(100)).await;
    assert!(!old.is_leader() && old.edict().is_err());
    cluster.resume(1);
    assert_eq!(loss(&old).await, Loss::Disturbed);
    let new = elected(&cluster.node(1)).await; // It takes part again.
    assert!(new.term() > old.term());
}

#[tokio::test(start_paused = true)]
async fn members_that_are_killed_and_restarted_keep_what_they_granted() {
    let mut cluster = Cluster::with(3, 6, ten_seconds);
    let old = elected(&cluster.node(0)).await;
    cluster.partition(&[&[0], &[1, 2]]);
    let (one, _two) = (cluster.restart(1), cluster.restart(2));
    assert!(old.is_leader());
    let new = elected(&one).await;
    assert!(!old.is_leader(), "two lead: the members forgot their grants");
    assert!(new.term() > old.term());
    cluster.heal();
    cluster.kill(1);
    let again = cluster.restart(1);
    assert!(elected(&again).await.term() > new.term());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_deposed_has_lapsed_and_afterwards_anybody_may_lead() {
    for members in [1, 3] {
        let cluster = Cluster::with(members, 7, ten_seconds);
        assert_eq!(cluster.depose(JOBS).await, None, "nobody leads");
        let old = elected(&cluster.node(0)).await;
        assert_eq!(cluster.depose(JOBS).await, Some(0));
        assert_eq!((old.is_leader(), loss(&old).await), (false, Loss::Lapsed));
        let new = elected(&cluster.node(members - 1)).await;
        assert!(new.term() > old.term() && old.edict().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_left_alone_leads_on_while_time_passes() {
    let cluster = Cluster::seeded(3, 8);
    cluster.ready().await;
    let tenure = elected(&cluster.node(0)).await;
    let begun = Instant::now();
    cluster.advance(LONG).await;
    assert!(tenure.is_leader() && begun.elapsed() >= LONG);
    assert_eq!(cluster.leader(JOBS), Some(0));
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_when_its_virtual_time_to_clean_up_is_over() {
    let cluster = Cluster::seeded(3, 9);
    let node = cluster.node(0);
    let how = Campaign::default().cleanup(LONG);
    let mut terms = Vec::new();
    let work = node.lead_with(JOBS, how, async |tenure: Tenure| {
        terms.push((tenure.term(), Instant::now()));
        if terms.len() == 1 {
            std::future::pending::<()>().await;
        }
    });
    let (result, deposed) = tokio::join!(timeout(4 * LONG, work), async {
        while cluster.leader(JOBS).is_none() {
            cluster.advance(Duration::from_millis(10)).await;
        }
        cluster.depose(JOBS).await
    });
    assert_eq!((result, deposed), (Ok(Ok(())), Some(0)));
    let [(first, begun), (second, again)] = terms[..] else { panic!("two terms: {terms:?}") };
    assert!(first < second && again - begun > LONG, "it had its time");
}

#[test]
fn the_same_seed_gives_the_same_leaders_at_the_same_times() {
    let mut histories = Vec::new();
    for seed in 0..8 {
        let history = history(seed);
        assert_eq!(history, self::history(seed), "seed {seed}");
        histories.push(history);
    }
    histories.sort();
    histories.dedup();
    assert!(histories.len() > 1, "another seed gives other leaders");
}

/// Which member led, in which term, since when: all three campaign, and the leader is deposed.
fn history(seed: u64) -> Vec<(usize, Term, Duration)> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        // Candidates that wait for a random time draw chance for every election.
        let cluster = Cluster::with(3, seed, |config| config.weak = WeakElection::Random);
        let (begun, led) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        for member in 0..3 {
            let (node, led) = (cluster.node(member), led.clone());
            tokio::spawn(node.lead(JOBS, async move |tenure: Tenure| {
                led.lock().unwrap().push((member, tenure.term(), begun.elapsed()));
                std::future::pending::<()>().await;
            }));
        }
        while led.lock().unwrap().len() < 8 {
            cluster.advance(Duration::from_millis(500)).await;
            cluster.depose(JOBS).await;
        }
        let led = led.lock().unwrap();
        led.clone()
    })
}

#[tokio::test(start_paused = true)]
async fn a_guard_on_a_thread_without_a_runtime_goes_by_virtual_time_too() {
    let cluster = Cluster::with(3, 10, ten_seconds);
    let tenure = elected(&cluster.node(0)).await;
    let there = |tenure: Tenure| std::thread::spawn(move || tenure.remaining()).join().unwrap();
    assert_eq!(there(tenure.clone()), tenure.remaining());
    cluster.pause(0);
    cluster.advance(2 * LEASE).await;
    assert_eq!(there(tenure), None);
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_a_group_is_answered_before_paused_time_goes_on() {
    let mut group = Group::new(JOBS);
    let tenure = group.elect(LEASE);
    let authority = tenure.authority();
    tenure.resign();
    assert_eq!(timeout(Duration::from_millis(1), authority.lost()).await, Ok(Loss::Resigned));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_works_in_real_time_and_on_several_threads_too() {
    let cluster = Cluster::of(3);
    cluster.ready().await;
    let tenure = elected(&cluster.node(2)).await;
    let edict = std::thread::spawn(move || tenure.edict()).join().unwrap();
    assert!(edict.is_ok());
}
