//! Rounds: from asking to leading. The leader of a stable group asks every EP, and each time leads anew.

use std::process::Command;
use std::time::Duration;

use tenure::Locality;

use crate::holes::millis;
use crate::member::{LEASE, Member, What};
use crate::numbers::Numbers;
use crate::support::Cluster;

/// How long somebody is waited for who should lead all.
const PATIENCE: Duration = Duration::from_secs(30);

/// The average that figure 26 of the paper shows, in milliseconds, for 1 to 7 processes (read off its axis), on eight Sun IPX and an
/// Ethernet of 10 Mbit/s.
const PAPER: [f64; 7] = [3.3, 3.6, 4.2, 4.8, 5.4, 6.0, 6.6];

pub(crate) fn run(count: usize, assumed: &Locality) {
    println!("\nfrom asking to leading, {count} rounds each, on loopback (ms)");
    println!(
        "  {:<22} {:>8} {:>8} {:>8} {:>8} {:>14} {:>16}",
        "processes", "mean", "median", "p99", "most", "a round sends", "1999, average"
    );
    for size in 1..=8 {
        one(size, count, assumed, None);
    }
    one(8, count, assumed, Some(3));
    println!(
        "  A round is one Election to each of n-1 others and n-1 answers; the rest are the node's own pings."
    );
}

fn one(size: usize, count: usize, assumed: &Locality, tree: Option<usize>) {
    let cluster = Cluster::found(size, LEASE);
    let mut how = assumed.clone();
    how.tree = tree;
    let start = |(name, address): (&String, &std::net::SocketAddr)| {
        let command = Command::new(std::env::current_exe().expect("this program"));
        Member::start(command, &cluster, (name, &address.to_string()), &how)
    };
    let mut members: Vec<Member> = cluster.names.iter().zip(&cluster.addresses).map(start).collect();
    let Some(leader) = leader(&members, size) else {
        println!("  {size:<22} nobody led all of them within {PATIENCE:?}: this machine is too busy");
        return;
    };
    let before: u64 = members.iter_mut().map(Member::sent).sum();
    let mut took = Vec::new();
    while took.len() < count {
        match members[leader].next(PATIENCE) {
            Some(sign) => {
                if let What::Leads { took: nanos, supporters } = sign.what
                    && supporters == size as u64
                {
                    took.push(millis(nanos));
                }
            }
            None => {
                println!(
                    "  {size:<22} the leader was lost after {} rounds: this machine is too busy",
                    took.len()
                );
                return;
            }
        }
    }
    let after: u64 = members.iter_mut().map(Member::sent).sum();
    row(size, tree, took, after - before);
}

#[allow(clippy::cast_precision_loss, reason = "for people to read")]
fn row(size: usize, tree: Option<usize>, took: Vec<f64>, datagrams: u64) {
    let rounds = took.len() as f64;
    let mean = took.iter().sum::<f64>() / rounds;
    let numbers = Numbers::new(took);
    let name = tree.map_or(size.to_string(), |children| format!("{size}, tree of {children}"));
    let paper =
        PAPER.get(size - 1).filter(|_| tree.is_none()).map_or(String::new(), |paper| format!("{paper:.1}"));
    println!(
        "  {name:<22} {mean:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>14.2} {paper:>16}",
        numbers.median(),
        numbers.at(99),
        numbers.at(100),
        datagrams as f64 / rounds
    );
}

/// Who leads all members, as soon as somebody does.
pub(crate) fn leader(members: &[Member], size: usize) -> Option<usize> {
    let steps = PATIENCE.as_millis() / 5;
    for _ in 0..steps {
        for (index, member) in members.iter().enumerate() {
            let leads = |what| matches!(what, What::Leads { supporters, .. } if supporters == size as u64);
            if member.drain().iter().any(|sign| leads(sign.what)) {
                return Some(index);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}
