//! The key-value example as real processes: killed in a loop under load, restarted from torn logs,
//! on a disk that fills up. The laboratory judges the clients' histories
//! (`tenure lab check-history`).
//!
//! `cargo test` runs a small size of it; `cargo xtask torture kv` a minute of it, and prints the
//! figures.

mod client;
mod stage;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tenure_testkit::chance::Chance;
use tenure_testkit::member_files::NAMES;
use tenure_testkit::mounts;
use tenure_testkit::ports::free_addresses;
use tenure_testkit::programs::{self, Process, example};

use client::{Call, Client, Operation, now};
use stage::{Load, Stage};

const CLIENTS: usize = 8;

/// For how long the load lasts.
fn length() -> Duration {
    match env::var("TENURE_TORTURE").as_deref() {
        Ok("full") => Duration::from_secs(60),
        Ok(other) => panic!("TENURE_TORTURE is '{other}'; there is only `full`"),
        Err(_) => Duration::from_secs(4),
    }
}

/// Reads every key once more, at each of the servers.
fn read_all(stage: &Stage, history: &mut Vec<Operation>) {
    let keys: std::collections::BTreeSet<String> = history.iter().map(|it| it.key.clone()).collect();
    for (who, server) in stage.servers.iter().enumerate() {
        let mut client = Client::new(CLIENTS + who, &[*server]);
        for key in &keys {
            let begun = now();
            while client.call(key, Call::Get { saw: None }).is_none() {
                assert!(now() - begun < 60_000_000_000, "{server} does not answer");
            }
        }
        history.extend(client.history);
    }
}

/// The last value of each key must not be older than a write that was answered: there is none that
/// began after that value's had ended. A first look that needs no laboratory.
fn nothing_answered_is_lost(history: &[Operation]) {
    let mut writes: BTreeMap<&str, Vec<(&str, &Operation)>> = BTreeMap::new();
    for it in history {
        match &it.call {
            Call::Put { value } | Call::Cas { value, done: true, .. } => {
                writes.entry(&it.key).or_default().push((value, it));
            }
            Call::Cas { .. } | Call::Get { .. } => {}
        }
    }
    for last in history.iter().filter(|it| it.client >= CLIENTS) {
        let Call::Get { saw } = &last.call else { continue };
        let all = writes.get(last.key.as_str()).map_or(&[][..], Vec::as_slice);
        let ended =
            all.iter().find(|(value, _)| Some(*value) == saw.as_deref()).and_then(|(_, it)| it.returned);
        let lost = all.iter().find(|(_, it)| {
            it.returned.is_some() && (saw.is_none() || ended.is_some_and(|ended| ended < it.invoked))
        });
        assert!(lost.is_none(), "{last:?} does not see {lost:?}");
    }
}

fn must_be_linearizable(history: &[Operation], folder: &Path) {
    let file = folder.join("history");
    std::fs::write(&file, history.iter().map(Operation::line).collect::<String>()).expect("there is room");
    let checked = Command::new(programs::tenure()).args(["lab", "check-history"]).arg(&file).output();
    let checked = checked.expect("the command runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    let failed = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}{failed}");
    print!("{said}");
}

/// How many calls were answered, how fast, and how long they took.
fn figures(what: &str, history: &[Operation], took: Duration) -> String {
    let times = |wanted: fn(&Call) -> bool| {
        let answered = history.iter().filter(|it| it.client < CLIENTS && wanted(&it.call));
        let mut times: Vec<u64> =
            answered.filter_map(|it| it.returned.map(|returned| returned - it.invoked)).collect();
        times.sort_unstable();
        times
    };
    let line = |times: &[u64]| {
        let at = |per_mille: usize| {
            let micros =
                times.get(times.len() * per_mille / 1000).or(times.last()).map_or(0, |time| time / 1000);
            format!("{}.{:03} ms", micros / 1000, micros % 1000)
        };
        let rate = times.len() as u128 * 1000 / took.as_millis().max(1);
        format!("{rate}/s, median {}, p99 {}, longest {}", at(500), at(990), at(1000))
    };
    let reads = times(|call| matches!(call, Call::Get { .. }));
    let writes = times(|call| !matches!(call, Call::Get { .. }));
    let unknown = history.iter().filter(|it| it.returned.is_none()).count();
    let all = writes.len() + reads.len();
    format!(
        "{what}: {all} calls answered in {took:.1?}, {unknown} unknown\n  writes {}\n  reads  {}",
        line(&writes),
        line(&reads)
    )
}

/// One server alone, under the same load, without anybody being killed.
fn alone(length: Duration, seed: u64) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_addresses(1)[0];
    let (sender, sayings) = channel();
    let mut command = Command::new(example("kv"));
    command.arg("alone").arg(folder.path().join("log")).arg(address.to_string());
    let _server = Process::start(command, 0, 1, sender);
    sayings.recv_timeout(Duration::from_secs(60)).expect("it starts");
    let load = Load::start(&[address], CLIENTS, seed);
    thread::sleep(length);
    let (history, took) = load.end();
    nothing_answered_is_lost(&history);
    figures("one server alone", &history, took)
}

#[test]
fn killed_in_a_loop_under_load_no_answered_write_is_lost_and_clients_see_one_store() {
    let folder = tempfile::tempdir().expect("a folder");
    kill_in_a_loop(Stage::found(folder.path()));
}

#[test]
fn the_same_holds_where_the_members_elect_without_leases() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = Stage::found(folder.path());
    stage.elects_eventually();
    kill_in_a_loop(stage);
}

fn kill_in_a_loop(mut stage: Stage) {
    let length = length();
    let mut chance = Chance::new_and_tell();
    stage.start_all();
    stage.settled();

    let load = Load::start(&stage.servers, CLIENTS, chance.number());
    thread::sleep(length / 4);
    let (calm, took) = load.end();
    let undisturbed = figures("three servers, undisturbed", &calm, took);
    let syncs: Vec<String> = (0..NAMES.len()).map(|who| stage.status(who)).collect();

    let load = Load::start(&stage.servers, CLIENTS, chance.number());
    let begun = now();
    let mut kills = [0; 2];
    let mut turns = (0..).map(|turn: u32| turn.is_multiple_of(2));
    while Duration::from_nanos(now() - begun) < length {
        thread::sleep(Duration::from_millis(700 + chance.below(800)));
        let leader = stage.leader().filter(|_| turns.next() == Some(true));
        let victim = leader.unwrap_or_else(|| chance.index(NAMES.len()));
        stage.kill(victim);
        kills[usize::from(leader.is_some())] += 1;
        if chance.below(2) == 0 {
            let torn: Vec<u8> = (0..chance.below(200)).map(|_| chance.number().to_be_bytes()[0]).collect();
            stage.tear(victim, &torn);
        }
        thread::sleep(Duration::from_millis(chance.below(600)));
        stage.start(victim);
    }
    let (history, took) = load.end();
    let disturbed = figures("three servers, killed in a loop", &history, took);
    let mut history: Vec<Operation> = calm.into_iter().chain(history).collect();
    read_all(&stage, &mut history);

    println!("{} kills, {} of them of the leader on purpose", kills[0] + kills[1], kills[1]);
    println!("{undisturbed}\n{disturbed}\n{}", alone(length / 4, chance.number()));
    syncs.iter().for_each(|status| println!("  {status}"));
    nothing_answered_is_lost(&history);
    assert!(history.iter().filter(|it| it.returned.is_some()).count() > 100, "hardly anything was answered");
    must_be_linearizable(&history, &stage.files.folder);
}

#[test]
fn a_cluster_comes_back_from_its_disks_though_every_log_has_a_torn_tail() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = Stage::found(folder.path());
    stage.start_all();
    stage.settled();
    let mut client = Client::new(0, &stage.servers);
    for number in 0..50 {
        let value = format!("v{number}");
        while client.call(&format!("k{number}"), Call::Put { value: value.clone() }) != Some(200) {}
    }
    (0..NAMES.len()).for_each(|who| stage.kill(who));
    for who in 0..NAMES.len() {
        stage.tear(who, b"tlog and then the power went out");
    }
    stage.start_all();
    stage.settled();
    let mut history = client.history;
    read_all(&stage, &mut history);
    nothing_answered_is_lost(&history);
}

#[test]
fn disks_that_fill_up_refuse_writes_and_lose_nothing() {
    if !mounts::inside("disks_that_fill_up_refuse_writes_and_lose_nothing") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for name in NAMES {
        let at = folder.path().join(name).join("log-kv");
        mounts::tmpfs(&at, "256k");
    }
    let mut stage = Stage::found(folder.path());
    stage.start_all();
    stage.settled();
    let mut client = Client::new(0, &stage.servers);
    let mut number = 0;
    let begun = now();
    let long = "x".repeat(2000);
    while client.call(&format!("k{number}"), Call::Put { value: format!("v{number}{long}") }) != Some(507) {
        number += 1;
        assert!(now() - begun < 120_000_000_000, "{number} writes, and no disk is full");
    }
    let answered = client.history.iter().filter(|it| it.returned.is_some()).count();
    assert!(answered > 20, "only {answered} writes before the disks were full");
    println!("{answered} writes were answered before the disks were full");

    // They come back though there is no room yet, twice: the first time may have taken the room
    // that was kept for that.
    for _ in 0..2 {
        (0..NAMES.len()).for_each(|who| stage.kill(who));
        stage.start_all();
    }

    for name in NAMES {
        let at = folder.path().join(name).join("log-kv");
        mounts::run("mount", &["-o", "remount,size=16m", mounts::text(&at)]);
    }
    let begun = now();
    while client.call("afterwards", Call::Put { value: "v".into() }) != Some(200) {
        assert!(now() - begun < 60_000_000_000, "there is room, and writes are refused");
        thread::sleep(Duration::from_millis(50));
    }
    (0..NAMES.len()).for_each(|who| stage.kill(who));
    stage.start_all();
    stage.settled();
    let mut history = client.history;
    read_all(&stage, &mut history);
    nothing_answered_is_lost(&history);
    drop(stage);
    for name in NAMES {
        mounts::run("umount", &[mounts::text(&folder.path().join(name).join("log-kv"))]);
    }
}
