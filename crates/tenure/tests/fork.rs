//! A forked child has nothing of its parent's leadership.

#![allow(unsafe_code, reason = "only the system can fork")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Duration;

use tenure::{Clock, Loss, Tenure, Token};
use tenure_testkit::cluster::{Cluster, renewed};
use tenure_testkit::waiting::within;

const SOON: Duration = Duration::from_secs(60);
/// Long enough that a leader which is not run for a while, on a machine that does much else, renews
/// in time.
const LEASE: Duration = Duration::from_secs(5);

fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}

/// Forks; the child does one thing and ends. Says whether that went as it should.
///
/// Only the calling thread lives on in the child, so `act` must take no lock that another thread
/// may hold. One that waits all the same is ended by an alarm.
fn in_a_child(act: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does what `act` does, and leaves without running anything that was set up
    // for the parent.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system can fork");
    if child == 0 {
        // SAFETY: as above; the default action of the alarm ends the process.
        unsafe { libc::alarm(10) };
        let fine = act();
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = 0;
    // SAFETY: `status` is room for one status of our own child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

fn leads_nothing(tenure: &Tenure) -> bool {
    (0..1000).all(|_| !tenure.is_leader() && tenure.edict().is_err() && tenure.remaining().is_none())
}

#[tokio::test]
async fn a_child_that_is_forked_amid_edicts_creates_none() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("edicts")).await.expect("it is elected");
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let (tenure, stop, written) = (tenure.clone(), stop.clone(), written.clone());
            thread::spawn(move || {
                let mut tokens: Vec<Token> = Vec::new();
                while !stop.load(SeqCst) {
                    if let Ok(edict) = tenure.edict() {
                        tokens.push(edict.token());
                        written.fetch_add(1, SeqCst);
                    }
                    thread::yield_now();
                }
                tokens
            })
        })
        .collect();
    // Forty times, and on a machine that does much else for as long as writers need to have written
    // anything.
    let enough = |forks: usize| forks >= 40 && written.load(SeqCst) > 1000;
    let (mut forks, mut forks_while_leading, begun) = (0, 0, now());
    while !enough(forks) && now() < begun + SOON {
        forks += 1;
        assert!(in_a_child(|| leads_nothing(&tenure)), "a child led");
        forks_while_leading += usize::from(tenure.is_leader());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, SeqCst);
    let tokens: Vec<Token> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let different: BTreeSet<Token> = tokens.iter().copied().collect();
    assert_eq!(different.len(), tokens.len(), "the parent gave out a token twice");
    let (forks, tokens) = (forks_while_leading, tokens.len());
    assert!(forks > 20 && tokens > 1000, "this was no test: {forks} forks, {tokens} tokens");
}

#[tokio::test]
async fn a_child_that_lets_go_of_a_guard_takes_nothing_from_its_parent() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("edicts")).await.expect("it is elected");
    let mut guard = Some(tenure);
    assert!(in_a_child(|| {
        drop(guard.take());
        true
    }));
    let mut guard = Some(guard.take().expect("the parent has it still"));
    assert!(in_a_child(|| {
        guard.take().is_some_and(|tenure| {
            tenure.resign();
            true
        })
    }));
    let tenure = guard.expect("the parent has it still");
    renewed(&nodes[0], 2).await;
    assert!(tenure.is_leader(), "the parent goes on, and renews");
    assert!(tenure.edict().is_ok());
}

#[tokio::test]
async fn a_child_that_waits_for_the_loss_is_told_at_once() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("edicts")).await.expect("it is elected");
    assert!(in_a_child(|| {
        let mut lost = Box::pin(tenure.lost());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        lost.as_mut().poll(&mut context) == std::task::Poll::Ready(Loss::Stopped)
    }));
    assert!(tenure.is_leader());
}
