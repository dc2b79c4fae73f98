//! Common to tests of the auditor: files are judged, whole or in part, and saved schedules of
//! mutants are found.

use std::fs;
use std::path::PathBuf;

use tenure_lab::audit::{self, File, Report};
use tenure_lab::catalogue::Trial;
use tenure_lab::random::Random;
use tenure_lab::simulate::{Faults, Setup};

/// Five members, every fault.
pub(crate) fn stormy() -> Trial {
    let (quorums, faults) = ("majority".into(), Faults::all());
    let setup = Setup { nodes: 5, quorums, faults, sets: vec![], horizon: None, world: None };
    Trial { setup, mutant: None, property: None }
}

/// The auditor's report on the files of all nodes.
pub(crate) fn audited(files: &[String]) -> Report {
    let names: Vec<String> = (0..files.len()).map(|i| format!("n{i}.trace")).collect();
    let given = files.iter().zip(&names);
    let given: Vec<File<'_>> = given.map(|(text, name)| File { name, bytes: text.as_bytes() }).collect();
    audit::audit(&given).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn assert_silent(report: &Report, what: &str) {
    if let Some(broken) = report.violations.first() {
        let places: Vec<String> = broken
            .places
            .iter()
            .map(|place| format!("{}:{}: {}", place.file, place.line, place.text))
            .collect();
        panic!("{what}: {} at {:?}: {}\n{}", broken.property.name, broken.at, broken.text, places.join("\n"));
    }
}

/// Nothing is called broken because some of the files are missing, or the ends of some.
pub(crate) fn assert_silent_on_parts(whole: &[String], seed: u64) {
    let mut chance = Random::stream(seed, "what is missing");
    for round in 0..6 {
        let mut part = |text: &String| match chance.below(10) {
            0..=2 => String::new(),
            3..=5 => text[..chance.index(text.len())].to_owned(),
            _ => text.clone(),
        };
        let kept = whole.iter().map(&mut part);
        let kept: Vec<String> = kept.filter(|text| text.lines().count() > 2).collect();
        if !kept.is_empty() {
            assert_silent(&audited(&kept), &format!("seed {seed}, round {round}"));
        }
    }
}

/// The saved schedules of mutants of a protocol, by name.
pub(crate) fn saved(protocol: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mutants").join(protocol);
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// Whether an audit found a property broken.
pub(crate) fn sees(report: &Report, property: &str) -> bool {
    report.violations.iter().any(|broken| broken.property.name == property)
}
