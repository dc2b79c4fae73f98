//! `tenure run` under torture: runners, sentinels, commands, nodes and cables fail, round after
//! round, while an independent witness looks for two commands alive at once, and a fenced resource
//! counts what it refused. Beside it `etcdctl lock`.
//!
//! `cargo xtask torture run` does 200 rounds; without that, each kind of round is done once. Needs
//! root, for namespaces of the network; where they cannot be made, nothing is checked, and that is
//! said.
//!
//! The counts, and the evidence for each:
//!
//! * *worked at once*: the heartbeats of two leaderships overlap. Each beat is a reading of the one
//!   boot clock by the working process itself: exact.
//! * *alive at once*: the kernel told the witness that one still lived after another had begun. The
//!   witness may miss a life's last moments: by as much as the largest gap between two of its
//!   looks, which is printed.

mod judge;
mod kinds;
mod resource;
mod roles;
mod stage;

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tenure_testkit::beats::Beat;
use tenure_testkit::chance::Chance;
use tenure_testkit::namespaces::Net;

use judge::{Blindness, Round, Seen};
use kinds::Kind;
use resource::Resource;
use stage::{LEASE, MODES, SIZE, Stage, Whose};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["child", owner] => roles::child(owner, true),
        ["forked", owner] => roles::child(owner, false),
        ["witness"] => roles::witness(),
        ["--list", ..] => println!("torture: test"),
        _ => torture(),
    }
}

/// A reading of the clock that all processes share.
pub(crate) fn now() -> u64 {
    tenure::Clock::boot().read().as_nanos()
}

fn torture() {
    let full = std::env::var("TENURE_TORTURE").is_ok_and(|size| size == "full");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let rounds = number("TENURE_TORTURE_ROUNDS").unwrap_or(if full { 200 } else { Kind::COVERED.len() });
    let mut chance = Chance::new_and_tell();
    let Some(seen) = run(Whose::Tenure, rounds, &mut chance) else { return };
    print!("{}", seen.table("tenure run"));
    seen.must_hold();
    let etcd = Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_ok();
    if full && etcd {
        let rounds = number("TENURE_TORTURE_ETCD").unwrap_or(rounds.div_ceil(4));
        if let Some(seen) = run(Whose::Etcd, rounds, &mut chance) {
            print!(
                "{}",
                seen.table(
                    "etcdctl lock --ttl=1 (overlaps are ended by the harness, after a tenth of a second)"
                )
            );
        }
    }
}

/// So many rounds of each kind in turn; `None` where there are no namespaces.
fn run(whose: Whose, rounds: usize, chance: &mut Chance) -> Option<Seen> {
    let net = match Net::make(2 * SIZE) {
        Ok(net) => net,
        Err(error) => {
            println!("not checked: this machine gives no namespaces of the network to this user ({error})");
            return None;
        }
    };
    let folder = tempfile::Builder::new().prefix("tenure-torture").tempdir_in("/dev/shm").expect("tmpfs");
    let resource = Resource::open(&folder.path().join("resource"));
    let mut stage = Stage::set(whose, net, folder.path());
    let mut witness = start_witness(folder.path());
    let mut kinds: Vec<Kind> = (0..rounds).map(|round| Kind::COVERED[round % Kind::COVERED.len()]).collect();
    kinds.extend((0..rounds.div_ceil(40)).map(|_| Kind::StopBoth));
    kinds.retain(|kind| kind.suits(whose));
    let mut done = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        done.push(round(*kind, &mut stage, chance));
        if place % 20 == 19 {
            println!("{} of {} rounds", place + 1, kinds.len());
        }
    }
    stage.end();
    let (alive, blindness) = hear_witness(&mut witness);
    Some(Seen::new(whose, stage.beats.all(), &alive, done, blindness, &resource))
}

fn round(kind: Kind, stage: &mut Stage, chance: &mut Chance) -> Round {
    let began = now();
    let leader = prepare(kind, stage, chance);
    sleep(Duration::from_nanos(chance.below(u64::try_from(LEASE.as_nanos()).expect("it is short"))));
    let leader = stage.leader(leader.first.saturating_sub(1));
    stage.doing = kind.name();
    let node = u8::try_from(chance.below(u64::from(SIZE))).expect("it is small");
    let gap = kind.carry_out(stage, &leader, node);
    Round { kind, began, gap }
}

/// A leader whose child is of the kind that the round needs. A new one comes when the old one's
/// child is killed.
fn prepare(kind: Kind, stage: &mut Stage, chance: &mut Chance) -> Beat {
    let leader = stage.leader(0);
    let Some(mode) = kind.mode() else {
        stage.mode(MODES[chance.index(MODES.len())]); // For the next child.
        return leader;
    };
    stage.mode(mode);
    let at = now();
    Kind::KillChild.carry_out(stage, &leader, 0);
    stage.leader(at)
}

fn start_witness(folder: &Path) -> Child {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new(own);
    command.arg("witness").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("a witness")
}

/// Ends the witness: the last instants at which it saw each slot alive, and how blind it was.
fn hear_witness(witness: &mut Child) -> (Vec<u64>, Blindness) {
    drop(witness.stdin.take());
    let mut text = String::new();
    let said = witness.stdout.take().map(|mut out| out.read_to_string(&mut text));
    assert!(said.is_some_and(|said| said.is_ok()) && witness.wait().is_ok_and(|end| end.success()));
    let numbers = |line: &str| -> Vec<u64> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let mut lines = text.lines();
    let gaps = numbers(lines.next().expect("its gaps"));
    let blindness = Blindness { median: gaps[0], p999: gaps[1], most: gaps[2] };
    (lines.map(|line| numbers(line)[1]).collect(), blindness)
}
