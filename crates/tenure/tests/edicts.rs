//! Edicts on the real handle: many threads, real leases that are renewed and resigned, forks,
//! cancelled campaigns.
//!
//! Each thread reads the clock before and after it makes an edict. The edict was created in
//! between, so if one was made after the readings of another, its token must be larger, whichever
//! threads, nodes and terms they come from.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure::{Clock, Loss, Node, Tenure, Token};
use tenure_proto::strong::Event;
use tenure_proto::trace::{Reader, What};
use tenure_testkit::chance::Chance;
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_millis(100);
const THREADS: usize = 4;

fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

/// An edict that was created between two readings.
#[derive(Clone, Copy, Debug)]
struct Made {
    before: u64,
    token: Token,
    after: u64,
}

/// Makes one edict, if this process leads.
fn make(tenure: &Tenure) -> Option<Made> {
    let before = now();
    let token = tenure.edict().ok()?.token();
    Some(Made { before, token, after: now() })
}

/// A thread that makes at most so many edicts, in bursts, until it is refused; then it lets go of
/// its guard.
fn writer(tenure: Tenure, most: usize, seed: u64) -> JoinHandle<Vec<Made>> {
    thread::spawn(move || {
        let mut chance = Chance::new(seed);
        let mut made = Vec::new();
        while made.len() < most {
            let burst = 1 + chance.below(500);
            for _ in 0..burst.min((most - made.len()) as u64) {
                match make(&tenure) {
                    Some(edict) => made.push(edict),
                    None => return made,
                }
            }
            thread::sleep(Duration::from_micros(chance.below(800)));
        }
        made
    })
}

/// Every edict whose readings are all later than those of another has the larger token; and no two
/// have the same.
fn judge(made: &[Made]) -> Result<(), String> {
    let mut begun = made.to_vec();
    begun.sort_by_key(|edict| edict.before);
    let mut ended = made.to_vec();
    ended.sort_by_key(|edict| edict.after);
    let mut ended = ended.iter().peekable();
    let mut newest: Option<&Made> = None;
    for edict in &begun {
        while let Some(earlier) = ended.next_if(|earlier| earlier.after < edict.before) {
            newest = newest.filter(|newest| newest.token > earlier.token).or(Some(earlier));
        }
        if let Some(newest) = newest.filter(|newest| newest.token > edict.token) {
            return Err(format!("{newest:?} was made before {edict:?}"));
        }
    }
    begun.sort_by_key(|edict| edict.token);
    match begun.windows(2).find(|pair| pair[0].token == pair[1].token) {
        Some(pair) => Err(format!("one token for two edicts: {pair:?}")),
        None => Ok(()),
    }
}

#[test]
fn the_judge_of_the_order_sees_what_is_wrong() {
    let made = |before, number, after| Made { before, token: Token::new(tenure::Term(1), number), after };
    assert_eq!(judge(&[made(1, 1, 5), made(2, 3, 4), made(3, 2, 6), made(7, 4, 8)]), Ok(()));
    assert!(judge(&[made(1, 2, 5), made(6, 1, 7)]).is_err_and(|why| why.contains("was made before")));
    assert!(judge(&[made(1, 1, 5), made(2, 1, 6)]).is_err_and(|why| why.contains("two edicts")));
}

#[tokio::test]
async fn a_million_edicts_by_four_threads_are_in_order_over_renewals_and_resignations() {
    const EDICTS: usize = 1_000_000;
    let mut chance = Chance::new_and_tell();
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let (mut made, mut terms, mut under_fire) = (Vec::new(), 0, 0);
    while made.len() < EDICTS {
        let node = &nodes[chance.index(nodes.len())];
        let tenure = within("a leader", SOON, node.campaign("edicts")).await.expect("it is elected");
        // In turns: a term that is renewed a few times, and one that is resigned while all are at
        // it.
        let (most, length) = match terms % 2 {
            0 => (EDICTS / THREADS / 16, 100 + chance.below(150)),
            _ => (EDICTS / THREADS / 2, 5 + chance.below(20)),
        };
        let writers: Vec<_> = (0..THREADS).map(|_| writer(tenure.clone(), most, chance.number())).collect();
        tokio::time::sleep(Duration::from_millis(length)).await;
        tenure.resign();
        let resigned = now();
        let of_term: Vec<Made> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        let late = of_term.iter().find(|edict| edict.before > resigned);
        assert!(late.is_none(), "made after {resigned}, when its term was resigned: {late:?}");
        terms += 1;
        under_fire += usize::from(of_term.len() < most * THREADS);
        made.extend(of_term);
    }
    assert_eq!(judge(&made), Ok(()));
    let mut renewals = 0;
    for node in &nodes {
        renewals += node.status().await.expect("it runs").tally.renewals;
    }
    println!(
        "{} edicts in {terms} terms with {renewals} renewals; {under_fire} resigned in between",
        made.len()
    );
    assert!(terms >= 4 && renewals >= 4 && under_fire > 0, "this was no test");
}

/// A reading and what was left of the lease at it: between which readings E lies.
#[derive(Clone, Copy, Debug)]
struct Sight {
    from: u64,
    to: u64,
}

/// Looks at a lease, unless nobody leads or the look took too long to tell anything.
fn look(tenure: &Tenure) -> Option<Sight> {
    let before = now();
    let left = u64::try_from(tenure.remaining()?.as_nanos()).ok()?;
    let after = now();
    (after - before < 1_000_000).then_some(Sight { from: before + left, to: after + left })
}

/// A thread that makes edicts without a pause until it is refused: the last of them, and what it
/// saw of the lease.
fn restless(tenure: Tenure) -> JoinHandle<(Option<Made>, Vec<Sight>)> {
    thread::spawn(move || {
        let (mut last, mut sights) = (None, Vec::new());
        loop {
            sights.extend(look(&tenure));
            for _ in 0..100 {
                match make(&tenure) {
                    Some(edict) => last = Some(edict),
                    None => return (last, sights),
                }
            }
        }
    })
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_any_more_ends_all_edicts_in_time() {
    let cluster = Cluster::found(3, LEASE * 3);
    let mut nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("edicts")).await.expect("it is elected");
    let writers: Vec<_> = (0..THREADS).map(|_| restless(tenure.clone())).collect();
    for other in nodes.drain(1..) {
        other.shutdown().await;
    }
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Lapsed);
    let ends: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    // Each renewal moves E by much more than a look takes: what was seen near the latest E was seen
    // of it.
    let sights = || ends.iter().flat_map(|(_, sights)| sights);
    let latest = sights().map(|sight| sight.from).max().expect("somebody looked");
    let end = sights().map(|sight| sight.to).filter(|to| to + 2_000_000 > latest).min().expect("that one");
    for (last, _) in &ends {
        let last = last.expect("it led");
        assert!(last.before < end, "{last:?} was made after {end}, the end of the lease");
    }
    let last = ends.iter().filter_map(|(last, _)| *last).map(|last| last.after).max().expect("as above");
    println!("the last edict was made {} us before the end of the lease", end.saturating_sub(last) / 1000);
}

#[tokio::test]
async fn a_trace_tells_of_each_edict_after_the_lease_that_it_was_made_in() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = Vec::new();
    for index in 0..3 {
        let mut config = cluster.member(index);
        config.trace = Some(cluster.path(&format!("trace{index}")));
        nodes.push(Node::start(config).await.expect("it starts"));
    }
    let mut chance = Chance::new_and_tell();
    for _ in 0..12 {
        let node = &nodes[chance.index(nodes.len())];
        let tenure = within("a leader", SOON, node.campaign("edicts")).await.expect("it is elected");
        let writers: Vec<_> = (0..2).map(|_| writer(tenure.clone(), 2000, chance.number())).collect();
        tokio::time::sleep(Duration::from_millis(chance.below(150))).await;
        tenure.resign();
        writers.into_iter().for_each(|writer| drop(writer.join().unwrap()));
    }
    for node in nodes {
        node.shutdown().await;
    }
    let mut edicts = 0;
    for index in 0..3 {
        edicts += judge_trace(&std::fs::read(cluster.path(&format!("trace{index}.1"))).expect("a trace"));
    }
    assert!(edicts > 1000, "this was no test");
}

/// Every edict stands behind the run that it rests on, and its reading is below E. Says how many
/// there are.
fn judge_trace(bytes: &[u8]) -> usize {
    let (mut lease, mut edicts) = (None, 0);
    for entry in Reader::new(bytes) {
        match entry.expect("a line").1.what {
            What::Event(Event::Leads { term, until, .. }) => lease = Some((term, until)),
            What::Edict(edict) => {
                let (term, until) = lease.expect("nobody has led yet");
                assert!(edict.term == term && edict.after < until, "{edict:?} in term {term} until {until}");
                edicts += 1;
            }
            _ => {}
        }
    }
    edicts
}

#[tokio::test]
async fn a_resignation_that_races_a_renewal_ends_everything_before_the_next_term_begins() {
    const ROUNDS: usize = 120;
    let mut chance = Chance::new_and_tell();
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let mut made_in_all: Vec<Made> = Vec::new();
    for round in 0..ROUNDS {
        let tenure = within("a leader", SOON, nodes[round % 3].campaign("edicts")).await.expect("elected");
        let other = nodes[(round + 1) % 3].clone();
        let next = tokio::spawn(async move { other.campaign("edicts").await });
        let writers: Vec<_> = (0..2).map(|_| restless(tenure.clone())).collect();
        let beside = tenure.clone();
        tokio::time::sleep(Duration::from_micros(chance.below(40_000))).await;
        tenure.resign();
        let resigned = now();
        assert!(!beside.is_leader() && beside.edict().is_err(), "it has resigned");
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        assert!(beside.edict().is_err(), "it stays so, whatever is renewed");
        let held = now();
        drop(beside);
        let next = within("the next", SOON, next).await.expect("no panic").expect("it is elected");
        // The last grantor that it needed granted it then. All clocks here are one.
        let begun = next.tag().first.iter().map(|(_, stamp)| stamp.at.as_nanos()).max().expect("a quorum");
        for edict in ends.iter().filter_map(|(last, _)| *last) {
            assert!(edict.before <= resigned, "{edict:?} was made after {resigned}, when it was resigned");
            assert!(edict.before < begun, "{edict:?} was made after {begun}, when another led");
            made_in_all.push(edict);
        }
        let lease = ends.iter().flat_map(|(_, sights)| sights).map(|sight| sight.from).max().unwrap_or(0);
        assert!(begun > held || begun > lease, "{begun}: given back before all handles were gone, at {held}");
        made_in_all.extend(make(&next));
    }
    assert_eq!(judge(&made_in_all), Ok(()));
}
