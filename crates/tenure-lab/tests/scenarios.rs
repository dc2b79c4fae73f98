//! Saved scenarios come out as they say, and every mutant is killed by one on which the sound
//! protocol is silent.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use tenure_lab::catalogue::{all, find};
use tenure_lab::play::is_play;
use tenure_lab::property::Violation;
use tenure_lab::script::subject_of;

/// Every saved scenario, with its name.
fn saved() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("scenarios are beside the crates") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "scenario") {
                let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).expect("it is text")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_saved_scenario_comes_out_as_it_says() {
    let mut wrong = Vec::new();
    for (name, text) in saved() {
        let (protocol, _) = subject_of(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let experiment = find(&protocol).unwrap_or_else(|error| panic!("{name}: {error}"));
        match experiment.replay(&text, None) {
            Ok(replay) if replay.as_expected => {}
            Ok(replay) => {
                let (expected, came) = (replay.expected, replay.came);
                wrong.push(format!("{protocol}, {name}: expected {expected:?}, but {came}"));
            }
            Err(error) => wrong.push(format!("{protocol}, {name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A play, performed with a rule broken on purpose.
fn perform_broken(name: &str, mutant: &str) -> Option<Violation> {
    let (_, text) = saved().into_iter().find(|(known, _)| known == name).expect("the play is there");
    let (protocol, _) = subject_of(&text).expect("it names its protocol");
    let experiment = find(&protocol).expect("it is in the catalogue");
    experiment.replay(&text, Some(Some(mutant))).expect("it can be performed").report.violation
}

#[test]
fn plays_need_the_rules_that_they_are_about() {
    for (name, mutant) in [
        ("delayed-release", "release-no-id"),
        ("late-duplicate", "g-not-max"),
        ("verify-then-release", "verify-no-pledge"),
        ("coarse-suspend", "coarse-suspend"),
        ("coarse-suspend", "disturbed-leads-on"),
        ("coarse-suspend-grantor", "disturbed-no-silence"),
        ("reboot-inside-lease", "no-silence"),
        ("total-restart", "no-silence"),
        ("total-restart", "ceiling-forgotten"),
        ("wedge-forgotten", "wedge-volatile"),
        ("two-changers", "reconf-no-adopt"),
        ("interrupted-change", "epoch-no-wait"),
        ("amnesia-read-early", "amnesia-read-early"),
        ("amnesia-read-early", "amnesia-no-read"),
        ("threaded-edict", "edict-non-atomic"),
        ("threaded-edict", "edict-stale-e"),
        ("threaded-edict", "edict-sample-first"),
        ("bridge", "partial-connectivity"),
        ("half-dead-switch", "term-inflation"),
        ("force-remove", "force-no-wait"),
        ("killed-between-effects", "adopted-late"),
        ("command-while-clock-is-behind", "commands-lost"),
    ] {
        assert_ne!(perform_broken(name, mutant), None, "{name} holds without the rule of {mutant}");
    }
}

#[test]
fn after_a_total_restart_the_term_is_larger() {
    let (_, text) = saved().into_iter().find(|(name, _)| name == "total-restart").expect("it is there");
    let trace = find("nerio-drift").unwrap().replay(&text, None).unwrap().report.trace;
    let (before, after) = trace.split_once("reboots").expect("all reboot");
    let terms = |trace: &str| -> Vec<u64> {
        let parts = trace.split("leads g0 in term ").skip(1);
        parts.filter_map(|part| part.split(' ').next()?.parse().ok()).collect()
    };
    let (before, after) = (terms(before), terms(after));
    assert!(!before.is_empty() && !after.is_empty(), "somebody leads before and after");
    assert!(after.iter().min() > before.iter().max(), "{before:?}, then {after:?}");
}

#[test]
fn an_edict_begun_before_a_lapse_is_out_of_order_where_its_check_is_torn_apart() {
    // Only the second half of the play: n0 has not handed over, its lease has run out.
    let (_, text) = saved().into_iter().find(|(name, _)| name == "threaded-edict").expect("it is there");
    let early = |line: &&str| line.contains(" thread ") && millis(line).is_some_and(|at| at < 1000.0);
    let lapse: String = text.lines().filter(|line| !early(line)).map(|line| format!("{line}\n")).collect();
    let broken = |mutant: Option<&str>| {
        let replay = find("nerio-drift").unwrap().replay(&lapse, Some(mutant)).expect("it can be performed");
        replay.report.violation.map(|violation| violation.property)
    };
    assert_eq!(broken(None), None);
    assert_eq!(broken(Some("edict-non-atomic")), Some("edicts-ordered"));
    assert_eq!(broken(Some("edict-sample-first")), Some("edicts-ordered"));
    assert_eq!(broken(Some("edict-stale-e")), None, "the E that it loaded is over by the clock");
}

/// The time of a line of a trace, in milliseconds.
fn millis(line: &str) -> Option<f64> {
    line.split_once("ms ")?.0.parse().ok()
}

#[test]
fn who_sees_its_clock_go_back_says_so_and_grants_nothing_until_it_has_caught_up() {
    let (_, text) = saved().into_iter().find(|(name, _)| name == "clock-steps-back").expect("it is there");
    let trace = find("nerio-drift").unwrap().replay(&text, None).unwrap().report.trace;
    let (_, after) = trace.split_once("n0's clock steps back 500ms").expect("it does");
    let mut granted = Vec::new();
    let mut now = 1000.0;
    for line in after.lines() {
        now = millis(line).unwrap_or(now);
        granted.extend(line.trim_start().starts_with("n0 supports").then_some(now));
    }
    assert!(after.contains("n0 sees its clock go back by ") && after.contains(": its clock went back"));
    assert!(granted.first().is_some_and(|first| (1490.0..1600.0).contains(first)), "{granted:?}");
}

#[test]
fn every_play_says_what_is_seen_and_leaves_a_trace_that_comes_out_the_same() {
    for (name, text) in saved().into_iter().filter(|(_, text)| is_play(text)) {
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("# ")), "{name} says nothing");
        let (protocol, _) = subject_of(&text).unwrap();
        let experiment = find(&protocol).unwrap();
        let performed = experiment.replay(&text, None).unwrap().report.trace;
        let again = experiment.replay(&performed, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.report.trace, performed, "{name}");
    }
}

#[test]
fn the_sound_protocol_is_silent_on_every_mutants_schedule() {
    for (name, text) in saved() {
        let (protocol, mutant) = subject_of(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        if mutant.is_none() {
            continue;
        }
        let experiment = find(&protocol).unwrap_or_else(|error| panic!("{name}: {error}"));
        let replay = experiment.replay(&text, Some(None)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(replay.report.violation, None, "{name}");
    }
}

#[test]
fn every_mutant_has_a_schedule_that_kills_it() {
    let killed: BTreeSet<(String, Option<String>)> = saved()
        .iter()
        .map(|(name, text)| subject_of(text).unwrap_or_else(|e| panic!("{name}: {e}")))
        .collect();
    // Where an adversary grants something, a schedule made small would take away what it grants:
    // seeds kill those mutants, and plays.
    for experiment in all().iter().filter(|it| it.home().is_none()) {
        for mutant in experiment.mutants() {
            let name = (experiment.about().name.to_owned(), Some(mutant.name.to_owned()));
            let by_seeds = experiment.showcase(mutant.name).is_some();
            assert!(by_seeds || killed.contains(&name), "no scenario kills {}", mutant.name);
        }
    }
}

#[test]
fn a_mutants_schedule_is_short_enough_to_be_read() {
    for (name, text) in saved().iter().filter(|(_, text)| text.contains("\nmutant ")) {
        let lines = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count();
        assert!(lines <= 80, "{name} has {lines} lines");
    }
}
