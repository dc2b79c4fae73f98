//! Ten thousand groups on three members, each a process of its own: led, held, and taken over when
//! a member is killed.
//!
//! ```sh
//! cargo run --release --example many_groups -- --groups 10000 --hold 60s --share third
//! ```
//!
//! Each member leads a third of the groups (or one of them all, with `--share all`) and stands by
//! for the rest. It is held for a while, during which no group may change hands. Then one member is
//! killed as by `kill -9`: what it led must be led by others within lease·(1+ρ)/(1-ρ) and two
//! seconds, and nothing else may change. Prints what it took; exit code 1 if something of this did
//! not hold.

mod member;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tenure::Clock;
use tenure_testkit::group_members::{self, Led, Outcome, Place, Process};

/// The drift that a configuration assumes if it says nothing: a tenth.
const RHO: f64 = 0.1;

/// How much longer than the lease's bound a take-over of everything may take.
const SLACK: Duration = Duration::from_secs(2);

/// How long elections of everything may take at the start.
const PATIENCE: Duration = Duration::from_secs(20);

struct Plan {
    groups: u32,
    lease: Duration,
    hold: Duration,
    /// Whether the first member leads everything.
    all: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["member", config] => member::serve(Path::new(config)),
        _ => plan(&words).and_then(|plan| run(&plan)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("many_groups: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(words: &[String]) -> Outcome<Plan> {
    let mut plan =
        Plan { groups: 10_000, lease: Duration::from_secs(2), hold: Duration::from_secs(60), all: false };
    for pair in words.chunks(2) {
        match [pair[0].as_str(), pair.get(1).map_or("", String::as_str)] {
            ["--groups", count] => plan.groups = count.parse()?,
            ["--lease", length] => plan.lease = seconds(length)?,
            ["--hold", length] => plan.hold = seconds(length)?,
            ["--share", share @ ("third" | "all")] => plan.all = share == "all",
            [word, value] => {
                let usage = "--groups N, --lease SECONDS, --hold SECONDS, --share third|all";
                return Err(format!("{word} {value} is not understood: there are {usage}").into());
            }
        }
    }
    Ok(plan)
}

/// `60` or `60s`.
fn seconds(text: &str) -> Outcome<Duration> {
    Ok(Duration::try_from_secs_f64(text.trim_end_matches('s').parse()?)?)
}

fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}

fn run(plan: &Plan) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("tenure-many-{}", std::process::id()));
    let place = Place::found(&folder, &format!("[lease]\nlength = \"{}ms\"\n", plan.lease.as_millis()));
    let mut members = place.start(group_members::member)?;
    acquire(&mut members, plan)?;
    let before = hold(&mut members, plan)?;
    take_over(members, &before, plan)
}

/// Everything is led, and then everybody stands by for what it does not lead.
fn acquire(members: &mut [Process], plan: &Plan) -> Outcome<()> {
    let (begun, count) = (now(), plan.groups);
    match plan.all {
        true => members[0].campaign(0, 1, count)?,
        false => {
            for (first, member) in (0u32..).zip(members.iter_mut()) {
                member.campaign(first, 3, count)?;
            }
        }
    }
    let taken = await_all(members, plan, begun, PATIENCE);
    let taken = match taken {
        Ok(taken) => taken,
        Err(error) => return check_held(members, plan).and(Err(error)),
    };
    println!("acquired         {count} groups in {:.2} s", taken.as_secs_f64());
    for (own, member) in (0u32..).zip(members.iter_mut()) {
        for first in (0..3).filter(|first| *first != own && !(plan.all && own == 0)) {
            member.campaign(first, 3, count)?;
        }
        if plan.all && own > 0 {
            member.campaign(own, 3, count)?;
        }
    }
    Ok(())
}

/// Waits until every group is led. Says how long it took.
fn await_all(members: &mut [Process], plan: &Plan, since: Duration, limit: Duration) -> Outcome<Duration> {
    loop {
        let mut led = 0;
        for member in members.iter_mut() {
            led += member.report()?.led;
        }
        let taken = now().saturating_sub(since);
        match led {
            led if led == u64::from(plan.groups) => return Ok(taken),
            led if taken > limit => {
                return Err(format!("only {led} of {} groups are led after {taken:?}", plan.groups).into());
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Says what is wrong if not everything is led.
fn check_held(members: &mut [Process], plan: &Plan) -> Outcome<()> {
    let reports = members.iter_mut().map(Process::report).collect::<Outcome<Vec<_>>>()?;
    let (led, lost) =
        reports.iter().fold((0, 0), |(led, lost), report| (led + report.led, lost + report.lost));
    if lost == 0 && led == u64::from(plan.groups) {
        return Ok(());
    }
    for member in members {
        eprintln!("{}", member.ask("status")?.join(" "));
    }
    Err(format!("{led} groups are led, and {lost} leaderships were lost while nothing happened").into())
}

/// Nothing changes for a while. Says who leads what at the end.
fn hold(members: &mut [Process], plan: &Plan) -> Outcome<Vec<Vec<Led>>> {
    std::thread::sleep(plan.lease); // The requests from standing by have ended.
    let look = |members: &mut [Process]| {
        members.iter_mut().map(|member| Ok((member.report()?, member.cpu()?))).collect::<Outcome<Vec<_>>>()
    };
    let (first, begun) = (look(members)?, now());
    let tables =
        |members: &mut [Process]| members.iter_mut().map(Process::table).collect::<Outcome<Vec<_>>>();
    let before = tables(members)?;
    while now().saturating_sub(begun) < plan.hold {
        std::thread::sleep(Duration::from_millis(500));
        check_held(members, plan)?;
    }
    let (last, held) = (look(members)?, now().saturating_sub(begun).as_secs_f64());
    let after = tables(members)?;
    println!("held             for {held:.1} s with a lease of {:.1} s", plan.lease.as_secs_f64());
    println!("member   leads   datagrams/s   in/s   bytes/s   bytes/datagram   CPU %   RSS MiB");
    for (name, (member, ((from, cpu_from), (to, cpu_to)))) in
        ["a", "b", "c"].iter().zip(members.iter().zip(first.iter().zip(&last)))
    {
        let rate = |from: u64, to: u64| (to - from) as f64 / held;
        let (datagrams, bytes) = (rate(from.datagrams, to.datagrams), rate(from.bytes, to.bytes));
        let (cpu, memory) =
            ((*cpu_to - *cpu_from).as_secs_f64() / held * 100.0, member.memory()? as f64 / 1024.0);
        let (each, heard) = (bytes / datagrams, rate(from.received, to.received));
        println!(
            "{name}        {:>5}   {datagrams:>11.0}   {heard:>4.0}   {bytes:>7.0}   {each:>14.0}   {cpu:>5.1}   {memory:>7.1}",
            to.led
        );
    }
    match before == after && last.iter().all(|(report, _)| report.lost == 0) {
        true => Ok(after),
        false => Err("groups have changed hands while nothing happened".into()),
    }
}

/// A member is killed: what it led is led by others in time, and nothing else changes.
fn take_over(mut members: Vec<Process>, before: &[Vec<Led>], plan: &Plan) -> Outcome<()> {
    let mut killed = members.remove(0);
    killed.kill()?;
    let at = now();
    let bound = plan.lease.mul_f64((1.0 + RHO) / (1.0 - RHO)) + SLACK;
    if let Err(error) = await_all(&mut members, plan, at, bound + SLACK) {
        return check_held(&mut members, plan).and(Err(error));
    }
    let orphans: BTreeMap<u32, u64> = before[0].iter().map(|led| (led.group, led.term)).collect();
    let (mut times, mut changed) = (Vec::new(), Vec::new());
    for (member, before) in members.iter_mut().zip(&before[1..]) {
        for led in member.table()? {
            match orphans.get(&led.group) {
                Some(term) if led.term > *term => {
                    times.push(Duration::from_nanos(led.since).saturating_sub(at));
                }
                _ if before.contains(&led) => {}
                _ => changed.push(led.group),
            }
        }
        changed.extend((0..member.report()?.lost).map(|_| u32::MAX));
    }
    times.sort();
    let at_share = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64();
    let (half, most, worst) = (at_share(50), at_share(99), at_share(100));
    println!("killed           a, which led {} groups", orphans.len());
    println!("led again after  {half:.2} s (median), {most:.2} s (99 %), {worst:.2} s (all)");
    println!("bound            {:.2} s", bound.as_secs_f64());
    if !changed.is_empty() {
        return Err(format!("{} groups of others have changed hands meanwhile", changed.len()).into());
    }
    match times.len() == orphans.len() && at_share(100) <= bound.as_secs_f64() {
        true => Ok(()),
        false => Err("not everything was led again in time".into()),
    }
}
