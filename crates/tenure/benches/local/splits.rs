//! Splits: five processes in network namespaces, cut into two and three by nftables, and joined again; and the same by delay alone.
//!
//! **Exclusion**: from the cut to the first request of a side that has no outsider among the alive. **Election**: from the cut to the first
//! leadership over exactly that side. Both are seen on both sides; the slower side counts.

use std::process::Command;
use std::time::Duration;

use tenure::{Clock, Locality};

use crate::holes::millis;
use crate::member::{LEASE, Member, What};
use crate::net::{Net, address};
use crate::numbers::Numbers;
use crate::proxy::{Proxy, honest};
use crate::rounds::leader;
use crate::support::{Cluster, free_addresses};

const HOSTS: u8 = 5;

/// How many are on the first side, and on the other.
const SIDES: [usize; 2] = [2, 3];

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(count: usize, assumed: &Locality) {
    println!("\nfrom a split to a leader on each side, 5 processes, 2 and 3 (ms)");
    match Net::make(HOSTS) {
        Ok(net) => by_cutting(&net, count, assumed),
        Err(error) => {
            println!(
                "  by nftables: left out, no network namespaces here ({error}); root with iproute2 and nftables has them"
            );
        }
    }
    by_delay((count / 5).max(1), assumed);
    println!(
        "  1999: exclusion 50 to 350 ms, election about one EP and 5 ms later, with expires = 230 ms (figure 27)"
    );
}

fn by_cutting(net: &Net, count: usize, assumed: &Locality) {
    println!(" cut by nftables between namespaces, {count} splits");
    let listen = |host: u8| format!("{}:7400", address(host));
    let cluster =
        Cluster::found_at((1..=HOSTS).map(|host| listen(host).parse().expect("an address")).collect(), LEASE);
    let this = std::env::current_exe().expect("this program");
    let start = |host: u8| {
        let name = &cluster.names[usize::from(host) - 1];
        Member::start(net.command(host, &this), &cluster, (name, &listen(host)), assumed)
    };
    let members: Vec<Member> = (1..=HOSTS).map(start).collect();
    let (few, many): (Vec<u8>, Vec<u8>) = (1..=HOSTS).partition(|host| usize::from(*host) <= SIDES[0]);
    let others = many.iter().map(|host| address(*host)).collect::<Vec<_>>().join(", ");
    let chain = |hook: &str, end: &str| {
        format!("chain {hook} {{ type filter hook {hook} priority 0; ip {end} {{ {others} }} drop; }};")
    };
    let table = format!("table inet cut {{ {} {} }}", chain("input", "saddr"), chain("output", "daddr"));
    let cut = || {
        for host in &few {
            let status = net.command(*host, "nft").arg(&table).status().expect("nft worked before");
            assert!(status.success(), "nft worked before");
        }
    };
    let heal = || few.iter().for_each(|host| net.heal(*host));
    measure(&members, count, cut, heal);
}

/// Through a proxy that holds back what crosses, for longer than Δ and shorter than for ever: nothing is lost.
fn by_delay(count: usize, assumed: &Locality) {
    println!(" by a second of delay across, through a proxy, {count} splits");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let cluster = Cluster::found(usize::from(HOSTS), LEASE);
    let real = free_addresses(usize::from(HOSTS));
    let proxy = runtime.block_on(Proxy::start(&cluster.addresses, &real)).expect("it listens");
    let start = |(name, listen): (&String, &std::net::SocketAddr)| {
        let command = Command::new(std::env::current_exe().expect("this program"));
        Member::start(command, &cluster, (name, &listen.to_string()), assumed)
    };
    let members: Vec<Member> = cluster.names.iter().zip(&real).map(start).collect();
    let few = real[..SIDES[0]].to_vec();
    let cut = || {
        let few = few.clone();
        proxy.rule(Box::new(move |packet| {
            let crosses = few.contains(&packet.from) != few.contains(&packet.to);
            vec![(Duration::from_secs(u64::from(crosses)), packet.bytes.clone())]
        }));
    };
    measure(&members, count, cut, || proxy.rule(honest()));
}

fn measure(members: &[Member], count: usize, cut: impl Fn(), heal: impl Fn()) {
    let all: usize = SIDES.iter().sum();
    let (mut excluded, mut elected, mut attempts) = (Vec::new(), Vec::new(), Vec::new());
    for split in 0..count {
        if leader(members, all).is_none() {
            println!("  nobody led all five before split {split}: this machine is too busy");
            break;
        }
        cut();
        let cut_at = Clock::boot().read().as_nanos();
        let (few, many) = members.split_at(SIDES[0]);
        let sides = [side(few, SIDES[0], cut_at), side(many, SIDES[1], cut_at)];
        heal();
        let [Some(few), Some(many)] = sides else {
            println!("  no leader on one side within {PATIENCE:?} after split {split}");
            break;
        };
        excluded.push(few.excluded.max(many.excluded));
        elected.push(few.elected.max(many.elected));
        attempts.push(few.attempts.max(many.attempts));
        if split % 50 == 49 {
            eprintln!("{} of {count} splits", split + 1);
        }
    }
    tell("exclusion", excluded);
    tell("election", elected);
    tell("attempts of a side", attempts);
}

fn tell(what: &str, values: Vec<f64>) {
    if values.is_empty() {
        return;
    }
    let count = values.len();
    let numbers = Numbers::new(values);
    println!(
        "  {what:<22} median {:>8.1}   p99 {:>8.1}   most {:>8.1}   ({count})",
        numbers.median(),
        numbers.at(99),
        numbers.at(100)
    );
}

/// What was seen of one side after a cut, in milliseconds.
struct Side {
    excluded: f64,
    elected: f64,
    attempts: f64,
}

/// Waits until somebody leads exactly this side, by a request of after the cut.
fn side(members: &[Member], size: usize, cut_at: u64) -> Option<Side> {
    let mut excluded: Option<u64> = None;
    let mut attempts = 0u32;
    let steps = PATIENCE.as_millis();
    for _ in 0..steps {
        let mut signs: Vec<_> =
            members.iter().flat_map(Member::drain).filter(|sign| sign.at > cut_at).collect();
        signs.sort_by_key(|sign| sign.at);
        for sign in signs {
            match sign.what {
                What::Asks { alive } => {
                    attempts += 1;
                    if alive <= size as u64 {
                        excluded.get_or_insert(sign.at);
                    }
                }
                What::Leads { supporters, .. } if supporters == size as u64 => {
                    let since = |at: u64| millis(at - cut_at);
                    let excluded = excluded.map_or(since(sign.at), since);
                    return Some(Side { excluded, elected: since(sign.at), attempts: f64::from(attempts) });
                }
                What::Leads { .. } | What::Sent(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}
