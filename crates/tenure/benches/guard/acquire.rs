//! From `campaign()` to the guard, beside a bare round of datagrams: one process asks two others
//! and waits for the first answer, which with its own vote is a quorum of three.
//!
//! The library seals its datagrams, has its sockets on threads of their own, and hands the guard
//! from one thread to another: two wake-ups more than a bare round has. The second baseline has
//! these too.
//!
//! Candidates take turns on a ring, another for each group: the first asks at once, the others
//! leave it a step or two of time. Only the first shows what an acquisition costs; the others show
//! what the ring does.

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tenure::{Clock, Node};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::numbers::Numbers;

const ROUNDS: usize = 1000;

/// Acquisitions by each node, to see whose turn it is.
const PROBES: usize = 20;

/// About what a request is, sealed.
const LENGTH: usize = 160;

pub(crate) async fn run() {
    println!("\nacquisition, {ROUNDS} times each, on loopback");
    let bare = Numbers::new(bare_rounds());
    let handed = Numbers::new(handed_rounds());
    let cluster = Cluster::found(3, Duration::from_secs(1));
    let nodes = cluster.start().await;
    let mut by_turn = Vec::new();
    for node in &nodes {
        by_turn.push((Numbers::new(acquire(node, PROBES).await), node));
    }
    by_turn.sort_by(|(one, _), (other, _)| one.median().total_cmp(&other.median()));
    let acquired = Numbers::new(acquire(by_turn[0].1, ROUNDS).await);
    bare.row("bare quorum round", "us");
    handed.row("bare quorum round, asked by another thread", "us");
    acquired.row("campaign() to guard, first on the ring", "us");
    for (turn, (times, _)) in ["second", "third"].iter().zip(&by_turn[1..]) {
        times.row(&format!("campaign() to guard, {turn} on the ring"), "us");
    }
    for (what, baseline) in [("bare round", &bare), ("asked by another thread", &handed)] {
        let (median, tail) = (acquired.median() / baseline.median(), acquired.at(99) / baseline.at(99));
        println!("{:<44} {median:>9.2} x   of the tails {tail:.2}x", format!("campaign() : {what}"));
    }
}

fn micros(from: u64, to: u64) -> f64 {
    Duration::from_nanos(to - from).as_secs_f64() * 1e6
}

fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

/// Asks two others, and takes the first answer to this question.
fn round(socket: &UdpSocket, others: &[UdpSocket; 2], number: u64) {
    let mut packet = [0; LENGTH];
    packet[..8].copy_from_slice(&number.to_be_bytes());
    for other in others {
        socket.send_to(&packet, other.local_addr().expect("it is bound")).expect("loopback takes it");
    }
    loop {
        let (length, _) = socket.recv_from(&mut packet).expect("an answer");
        if length == LENGTH && packet[..8] == number.to_be_bytes() {
            return;
        }
    }
}

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a free port")
}

/// Answers everything, until something of another length comes.
fn echo(socket: &UdpSocket) {
    let mut packet = [0; 2 * LENGTH];
    while let Ok((LENGTH, from)) = socket.recv_from(&mut packet) {
        let _ = socket.send_to(&packet[..LENGTH], from);
    }
}

/// With two others who answer.
fn with_others<T>(body: impl FnOnce(&UdpSocket, &[UdpSocket; 2]) -> T) -> T {
    let (own, others) = (socket(), [socket(), socket()]);
    thread::scope(|scope| {
        for other in &others {
            scope.spawn(|| echo(other));
        }
        let result = body(&own, &others);
        for other in &others {
            own.send_to(&[0], other.local_addr().expect("it is bound")).expect("loopback takes it");
        }
        result
    })
}

fn bare_rounds() -> Vec<f64> {
    with_others(|own, others| {
        let timed = |number| {
            let start = now();
            round(own, others, number);
            micros(start, now())
        };
        (0..ROUNDS as u64).map(timed).collect()
    })
}

/// The same, where one thread asks and another has the socket.
fn handed_rounds() -> Vec<f64> {
    with_others(|own, others| {
        thread::scope(|scope| {
            let (ask, asked) = mpsc::channel();
            let (answer, answered) = mpsc::channel();
            scope.spawn(move || {
                for number in asked {
                    round(own, others, number);
                    let _ = answer.send(());
                }
            });
            let timed = |number| {
                let start = now();
                ask.send(number).expect("it listens");
                answered.recv().expect("it answers");
                micros(start, now())
            };
            let times = (0..ROUNDS as u64).map(timed).collect();
            drop(ask);
            times
        })
    })
}

/// Campaigns again and again; each time all is given back before.
async fn acquire(node: &Node, rounds: usize) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = now();
        let tenure = node.campaign("bench").await.expect("it is elected");
        times.push(micros(start, now()));
        tenure.resign();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    times
}
