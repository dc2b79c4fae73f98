//! Splits: five processes, cut into two and three and joined again, by nftables on the bridge
//! between their network namespaces; and by delay alone, through a proxy on loopback.
//!
//! **Exclusion**: from the cut to the first request of a side that has no outsider among the alive.
//! **Election**: from the cut to the first leadership over exactly that side. Both are those of the
//! side that the cut leaves without a leader, as in the paper. The old leader's side is told apart:
//! it goes on asking, and may find at the end of a round that those who did not answer are not
//! alive any more. Before a cut somebody has led all five for as long as signs of life count, and
//! the cuts fall evenly into the time between two requests.

use std::process::Command;
use std::time::Duration;

use tenure::Locality;
use tenure_testkit::cluster::Cluster;
use tenure_testkit::namespaces::{Net, address};
use tenure_testkit::numbers::Numbers;
use tenure_testkit::ports::free_addresses;
use tenure_testkit::proxy::{Proxy, honest};

use crate::constants::Plan;
use crate::holes::{Witness, millis, now};
use crate::member::{LEASE, Member, What};
use crate::place::Place;
use crate::report::{Progress, Report, summary};
use crate::rounds::leader;

pub(crate) const HOSTS: u8 = 5;

/// How many are on the first side, and on the other.
const SIDES: [usize; 2] = [2, 3];

const PATIENCE: Duration = Duration::from_secs(20);

/// How many splits by nftables, and how many by delay.
pub(crate) fn run(
    counts: [usize; 2],
    plan: &Plan,
    net: Option<&Net>,
    witness: &Witness,
    report: &mut Report,
) {
    report.say("\n### From a split to a leader on each side, five processes, two and three (ms)\n");
    report.say("| split by | splits | | mean | median | 99 % | most |");
    report.say("|---|---|---|---|---|---|---|");
    let _ = witness.meanwhile();
    let net = net.filter(|net| can_cut(net));
    if let Some(net) = net {
        tell("nftables", &by_cutting(net, counts[0], plan), report);
    }
    tell("delay", &by_delay(counts[1], plan), report);
    if net.is_none() {
        report.say(
            "\nSplits by nftables are left out: they take namespaces, and nf_tables_bridge in the kernel.",
        );
    }
    let [pace, expires, hole] = [plan.pace(), plan.expires(), plan.how.hole].map(|it| it.as_secs_f64() * 1e3);
    let bound = plan.bound().as_secs_f64() * 1e3;
    report.note(&format!("constants {pace:.3} {expires:.3} {hole:.3} {bound:.3}"));
    report.say(&format!(
        "\nPredicted: exclusion from expires - EP = {:.0} to expires + σ = {:.0} ms after the split, a leader within κ_T = {bound:.0} ms. By \
         delay: what crosses takes {} ms, four times Δ, and nothing is lost. 1999, 12,000 splits: exclusion and election on an axis from 50 to \
         350 ms with expires = 230 ms; election usually one failed attempt and one EP after exclusion (figure 27).",
        expires - pace,
        expires + hole,
        (plan.fast() * 4).as_millis()
    ));
    report.say(&format!("Meanwhile: {}.", witness.meanwhile()));
}

/// Whether what crosses a bridge can be dropped on this machine.
fn can_cut(net: &Net) -> bool {
    let nft =
        |words: &[&str]| net.command(0, "nft").args(words).status().is_ok_and(|status| status.success());
    nft(&["add", "table", "bridge", "tried"]) && nft(&["delete", "table", "bridge", "tried"])
}

fn by_cutting(net: &Net, count: usize, plan: &Plan) -> Vec<Split> {
    let (_cluster, members) = Place::Namespaces(net).start(usize::from(HOSTS), &plan.how);
    let few = SIDES[0];
    let names = |hosts: &mut dyn Iterator<Item = u8>| hosts.map(address).collect::<Vec<_>>().join(", ");
    let here = names(&mut (1..=HOSTS).take(few));
    let there = names(&mut (1..=HOSTS).skip(few));
    let pass = |from: &str, to: &str| format!("ip saddr {{ {from} }} ip daddr {{ {to} }} drop;");
    let table = format!(
        "table bridge cut {{ chain forward {{ type filter hook forward priority 0; {} {} }}; }}",
        pass(&here, &there),
        pass(&there, &here)
    );
    // On the bridge, by one transaction: both directions of all links at one instant.
    let nft = |words: &[&str]| {
        let status = net.command(0, "nft").args(words).status().expect("nft worked before");
        assert!(status.success(), "nft {words:?} failed");
    };
    let heal = || nft(&["delete", "table", "bridge", "cut"]);
    measure("nftables", &members, (count, plan), || nft(&[&table]), heal)
}

/// Through a proxy that holds back what crosses, for longer than Δ and shorter than forever:
/// nothing is lost.
fn by_delay(count: usize, plan: &Plan) -> Vec<Split> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let cluster = Cluster::found(usize::from(HOSTS), LEASE);
    let real = free_addresses(usize::from(HOSTS));
    let proxy = runtime.block_on(Proxy::start(&cluster.addresses, &real)).expect("it listens");
    let how: &Locality = &plan.how;
    let start = |(name, listen): (&String, &std::net::SocketAddr)| {
        let command = Command::new(std::env::current_exe().expect("this program"));
        Member::start(command, &cluster, (name, &listen.to_string()), how)
    };
    let members: Vec<Member> = cluster.names.iter().zip(&real).map(start).collect();
    let few = real[..SIDES[0]].to_vec();
    let longer = plan.fast() * 4;
    let cut = || {
        let few = few.clone();
        proxy.rule(Box::new(move |packet| {
            let crosses = few.contains(&packet.from) != few.contains(&packet.to);
            vec![(if crosses { longer } else { Duration::ZERO }, packet.bytes.clone())]
        }));
    };
    measure("delay", &members, (count, plan), cut, || proxy.rule(honest()))
}

/// Times of one side after a cut, in milliseconds.
#[derive(Clone, Copy)]
struct Side {
    excluded: f64,
    elected: f64,
    attempts: f64,
}

/// Times of both sides after a cut.
#[derive(Clone, Copy)]
struct Split {
    /// The side that had no leader any more, and the other one.
    bereft: Side,
    kept: Side,
    /// How long the cut itself took, in milliseconds.
    cut: f64,
}

fn measure(
    what: &str,
    members: &[Member],
    (count, plan): (usize, &Plan),
    cut: impl Fn(),
    heal: impl Fn(),
) -> Vec<Split> {
    let all: usize = SIDES.iter().sum();
    let mut progress = Progress::new(format!("splits by {what}"), count);
    let mut splits = Vec::new();
    for split in 0..count {
        let Some(old) = leader(members, all) else {
            eprintln!("nobody led all five before split {split} by {what}: this machine is too busy");
            break;
        };
        std::thread::sleep(plan.expires() + phase(split, plan.pace()));
        let begun = now();
        cut();
        let done = now();
        let (few, many) = members.split_at(SIDES[0]);
        let sides = [side(few, SIDES[0], done), side(many, SIDES[1], done)];
        heal();
        let [Some(few), Some(many)] = sides else {
            eprintln!("no leader on one side within {PATIENCE:?} after split {split} by {what}");
            break;
        };
        let (kept, bereft) = if old < SIDES[0] { (few, many) } else { (many, few) };
        splits.push(Split { bereft, kept, cut: millis(done - begun) });
        progress.at(splits.len());
    }
    splits
}

/// Part of a length, another one for each split, evenly over all of it: steps of the golden
/// section.
fn phase(split: usize, length: Duration) -> Duration {
    let part = (u64::try_from(split).unwrap_or(0).wrapping_mul(618_034)) % 1_000_000;
    length * u32::try_from(part).unwrap_or(0) / 1_000_000
}

fn tell(what: &str, splits: &[Split], report: &mut Report) {
    if splits.is_empty() {
        return;
    }
    let count = splits.len();
    let mut row = |name: &str, of: fn(&Split) -> f64| {
        let values: Vec<f64> = splits.iter().map(of).collect();
        let ([mean, median, tail], most) = (summary(&values), Numbers::new(values.clone()).at(100));
        let line = format!("| {what} | {count} | {name} | {mean:.1} | {median:.1} | {tail:.1} | {most:.1} |");
        report.say(&line);
        values
    };
    let excluded = row("exclusion", |split| split.bereft.excluded);
    let elected = row("election", |split| split.bereft.elected);
    row("requests until then", |split| split.bereft.attempts);
    row("the old leader leads its side", |split| split.kept.elected);
    row("both sides have a leader", |split| split.bereft.elected.max(split.kept.elected));
    row("the cut itself", |split| split.cut);
    report.note_all(&format!("split {what} exclusion"), &excluded);
    report.note_all(&format!("split {what} election"), &elected);
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
                What::Asks { alive, .. } => {
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
                What::Leads { .. } | What::Traffic { .. } => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}
