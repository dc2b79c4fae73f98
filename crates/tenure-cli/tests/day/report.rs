//! The summary of a day, and whether all was right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use tenure_testkit::numbers::Numbers;
use tenure_testkit::referee::judge::{Claim, Rules, Says, Wrong, judge};

use crate::alerts;
use crate::site::{Event, LEASE};
use crate::{Plan, Seen};

/// How many wrong things of a kind are shown.
const SHOWN: usize = 5;

/// Prints everything; false if something was wrong.
pub(crate) fn tell(plan: Plan, seen: &Seen) -> bool {
    let lease = u64::try_from(LEASE.as_nanos()).expect("it is short");
    let wrong = judge(&seen.ledger, &seen.claims, &trouble(seen), Rules::with_lease(lease));
    let (overlaps, order) = (seen.ledger.overlaps(), seen.ledger.out_of_order());
    let day = alerts::Day { ledger: &seen.ledger, events: &seen.events, holes: &seen.holes, span: seen.span };
    let verdict = day.judge(&seen.fired);

    println!("\nseed {}, {} s", plan.seed, (seen.span.1 - seen.span.0) / 1_000_000_000);
    faults(&seen.events);
    answers(&seen.claims, &wrong);
    println!("\ncommands: {}", seen.ledger.lives.len());
    println!("  overlaps: {}, terms that did not rise: {}", overlaps.len(), order.len());
    gaps(seen);
    println!("\nalerts (must fire / fired)");
    let names: BTreeSet<_> = verdict.wanted.keys().chain(verdict.fired.keys()).collect();
    for name in names {
        let of = |counts: &BTreeMap<String, usize>| counts.get(name).copied().unwrap_or(0);
        println!("  {name:<28} {:>3} / {:>3}", of(&verdict.wanted), of(&verdict.fired));
    }
    println!(
        "  missing: {}, unexpected: {}, excused by holes of the machine: {} ({} holes)",
        verdict.missing.len(),
        verdict.unexpected.len(),
        verdict.excused,
        seen.holes.len()
    );

    let of = |what: &str, list: Vec<String>| (what.to_owned(), list);
    let all = [
        of("two commands at once", overlaps.iter().map(|two| format!("{two:?}")).collect()),
        of("terms or tokens do not rise", order.iter().map(|two| format!("{two:?}")).collect()),
        of("a wrong answer", wrong.iter().map(|one| format!("{one:?}")).collect()),
        of("an alert did not fire", verdict.missing),
        of("an alert fired for no reason", verdict.unexpected),
    ];
    for (what, list) in &all {
        list.iter().take(SHOWN).for_each(|one| println!("\nWRONG: {what}: {one}"));
    }
    let count: usize = all.iter().map(|(_, list)| list.len()).sum();
    if count == 0 {
        println!("\nall was right");
    } else {
        let (minutes, seed) = (plan.seconds / 60, plan.seed);
        println!(
            "\n{count} things were wrong. Again: cargo xtask torture day --minutes {minutes} --seed {seed}"
        );
    }
    count == 0
}

/// Writes down all that happened, by time, for those who look for a cause.
pub(crate) fn chronicle(seen: &Seen, path: &Path) -> io::Result<()> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for event in &seen.events {
        let what = format!("{} {:?} {:?}", event.kind, event.hosts, event.group);
        lines.push((event.from, format!("DONE {what}")));
        lines.push((event.to, format!("MENDED {what}")));
    }
    for life in &seen.ledger.lives {
        let what = format!("{} {} in term {}", life.group, life.runner, life.term);
        lines.push((life.first, format!("BEGINS {what}")));
        lines.push((life.last, format!("LAST {what}")));
    }
    for claim in &seen.claims {
        let Claim { kind, host, group, told, says, here, .. } = claim;
        lines.push((claim.asked, format!("asked {kind} on h{host} {group}: {told} {says:?} {here:?}")));
    }
    lines.extend(seen.fired.iter().map(|fired| (fired.span.0, format!("ALERT {fired:?}"))));
    lines.extend(seen.holes.iter().map(|hole| (hole.0, format!("HOLE until {}", hole.1))));
    lines.sort();
    let text: String = lines.iter().map(|(at, what)| format!("{at} {what}\n")).collect();
    fs::write(path, text)
}

/// The times in which something was done to the cluster, or the machine ran nobody.
fn trouble(seen: &Seen) -> Vec<(u64, u64)> {
    let cluster = seen.events.iter().filter(|event| event.group.is_none());
    cluster.map(|event| (event.from, event.to)).chain(seen.holes.iter().copied()).collect()
}

fn faults(events: &[Event]) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    events.iter().for_each(|event| *kinds.entry(event.kind).or_default() += 1);
    println!("\nwhat was done");
    kinds.iter().for_each(|(kind, count)| println!("  {kind:<32} {count:>5}"));
}

/// The kind of an answer.
fn said(says: &Says) -> usize {
    match says {
        Says::Leader { .. } => 0,
        Says::Nobody { .. } => 1,
        Says::Unknown => 2,
        Says::Silence => 3,
        Says::Nonsense(_) => 4,
    }
}

fn answers(claims: &[Claim], wrong: &[Wrong]) {
    let mut kinds: BTreeMap<&str, ([usize; 5], usize)> = BTreeMap::new();
    for claim in claims {
        kinds.entry(claim.kind).or_default().0[said(&claim.says)] += 1;
    }
    for one in wrong {
        kinds.entry(one.claim.kind).or_default().1 += 1;
    }
    println!(
        "\n{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "answers", "leader", "nobody", "unknown", "none", "nonsense", "wrong"
    );
    for (kind, ([leader, nobody, unknown, silence, nonsense], wrong)) in kinds {
        println!("  {kind:<22} {leader:>8} {nobody:>8} {unknown:>8} {silence:>8} {nonsense:>8} {wrong:>8}");
    }
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    wrong.iter().for_each(|one| *rules.entry(one.rule).or_default() += 1);
    if !rules.is_empty() {
        println!("  wrong by rule: {rules:?}");
    }
}

/// How long groups had no command, by the last thing that was done to them or to the cluster
/// before.
fn gaps(seen: &Seen) {
    let mut causes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (group, from, to) in seen.ledger.gaps() {
        if to <= from || to > seen.span.1 {
            continue;
        }
        let touches = |event: &&Event| {
            event.from <= to && (event.group.as_deref() == Some(group) || event.group.is_none())
        };
        // A recent deed to this very group counts before the rest.
        let recent = |event: &&Event| from <= event.to.saturating_add(3_000_000_000);
        let of = |own: bool| {
            let found = seen.events.iter().filter(touches).filter(recent);
            found.filter(|event| event.group.is_some() == own).max_by_key(|event| event.from)
        };
        let cause = of(true).or_else(|| of(false)).map_or("(nothing was done)", |event| event.kind);
        let (seconds, nanos) = ((to - from) / 1_000_000_000, (to - from) % 1_000_000_000);
        let length = Duration::new(seconds, u32::try_from(nanos).expect("it is below a second"));
        causes.entry(cause).or_default().push(length.as_secs_f64());
    }
    println!("\ntime without a command, s         count     p50     p90     max");
    for (cause, lengths) in causes {
        let (count, numbers) = (lengths.len(), Numbers::new(lengths));
        let [half, ninth, most] = [50, 90, 100].map(|part| numbers.at(part));
        println!("  {cause:<32} {count:>5} {half:>7.2} {ninth:>7.2} {most:>7.2}");
    }
}
