//! Measures the cost of the guard and of an idle cluster, each beside a bare baseline of the same
//! run.
//!
//! | file | measures | against |
//! |---|---|---|
//! | `cost` | `is_leader()`, `edict()` | a bare reading of the boot clock |
//! | `acquire` | from `campaign()` to the guard | a bare round of datagrams to a quorum |
//! | `idle` | datagrams, processor time and memory of three processes; one leads | nothing |
//!
//! `cargo xtask bench guard` runs all, `cargo xtask bench guard cost` one of them. A figure
//! that misses its target is marked; nothing fails: a shared machine can be arbitrarily slow.

mod acquire;
mod cost;
mod idle;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [idle::MEMBER, rest @ ..] => runtime.block_on(idle::be_a_member(rest)),
        [] => {
            machine();
            runtime.block_on(cost::run());
            runtime.block_on(acquire::run());
            runtime.block_on(idle::run());
        }
        ["cost"] => runtime.block_on(cost::run()),
        ["acquire"] => runtime.block_on(acquire::run()),
        ["idle"] => runtime.block_on(idle::run()),
        _ => {
            eprintln!("guard: not understood: {arguments:?}. Say cost, acquire or idle, or nothing for all");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Prints what machine this is, and its load.
fn machine() {
    let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let source = line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    println!("machine: {cores} cores, clock source {source}, load {}", line("/proc/loadavg"));
}
