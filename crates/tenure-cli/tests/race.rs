//! `tenure lab race` as a user runs it: every study, and what is refused.

use std::fs;

use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::lab_folder::{Folder, has_keys, json, stdout, text};

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

#[test]
fn every_study_runs_and_its_json_is_the_same_every_time() {
    let folder = Folder::new(TENURE, "race");
    for (words, rows, keys) in [
        (
            "election --nodes 2,3 --nodes 5 --seeds 20",
            9,
            &["nodes", "turns", "mean_v", "p99_v", "bound_v", "messages"][..],
        ),
        (
            "detectors --seeds 2",
            30,
            &["link", "detector", "settings", "detection_median_ms", "accuracy_percent"],
        ),
        ("blocking", 488, &["protocol", "bound", "clocks", "delay_ms", "blocked_ms", "in_vain_ms"]),
        (
            "paxos --nodes 3 --seeds 2",
            3,
            &[
                "election",
                "commits",
                "prepares",
                "per_thousand",
                "changes",
                "unfinished",
                "counted",
                "sent",
                "longest",
            ],
        ),
        (
            "local --nodes 4,8 --seeds 1",
            12,
            &["nodes", "handling_us", "answers", "mean_ms", "p99_ms", "messages", "leader_hears"],
        ),
    ] {
        let study = words.split(' ').next().unwrap();
        let first = folder.tenure(&format!("lab race {words} -o json"));
        assert_eq!(first.status.code(), Some(0), "{words}: {}", text(&first.stderr));
        assert!(first.stdout == folder.tenure(&format!("lab race {words} -o json")).stdout, "{words}");
        let race = json(&first);
        has_keys(&race, &["study", "parameters", "rows", "verdict"]);
        match study {
            "blocking" => {}
            "paxos" => has_keys(&race["parameters"], &["seeds", "first_seed", "world", "horizon"]),
            _ => has_keys(&race["parameters"], &["seeds", "first_seed"]),
        }
        assert_eq!((race["study"].as_str(), race["rows"].as_array().unwrap().len()), (Some(study), rows));
        has_keys(&race["rows"][0], keys);
        let table = folder.tenure(&format!("lab race {words}"));
        assert!(stdout(&table).starts_with(&format!("{study}: holds\n")), "{}", stdout(&table));
    }
}

#[test]
fn bounded_skew_frees_others_of_a_late_request_and_bounded_drift_does_not() {
    let race = json(&Folder::new(TENURE, "late").tenure("lab race blocking -o json"));
    let blocked = |protocol: &str, bound: &str, delay: f64| {
        let wanted = |row: &&Value| {
            let words = [&row["protocol"], &row["bound"], &row["clocks"]].map(|word| word.as_str().unwrap());
            words == [protocol, bound, "exact"] && row["delay_ms"] == delay
        };
        race["rows"].as_array().unwrap().iter().find(wanted).unwrap()["blocked_ms"].as_f64().unwrap()
    };
    assert_eq!(blocked("nerio-drift", "100000ppm", 1000.0), 1100.0);
    assert_eq!(blocked("nerio-skew", "10ms", 1000.0), 10.0);
    assert_eq!(blocked("nerio-skew", "10ms", 1050.0), 0.0);
}

#[test]
fn a_study_is_drawn_as_an_image() {
    let folder = Folder::new(TENURE, "plot");
    for words in ["election --nodes 3 --seeds 20", "blocking", "local --nodes 4,8 --seeds 1"] {
        assert_eq!(folder.tenure(&format!("lab race {words} --svg plot.svg")).status.code(), Some(0));
        let image = fs::read_to_string(folder.path("plot.svg")).unwrap();
        assert!(
            image.starts_with("<svg ") && image.ends_with("</svg>\n") && !image.contains("NaN"),
            "{words}"
        );
    }
}

#[test]
fn elections_of_eventual_leaders_are_compared_in_every_variant_of_a_world() {
    let folder = Folder::new(TENURE, "settle");
    let words = "lab race omega,omega-stable --world moving-set --variant plain,learn --nodes 3 --seeds 2 --horizon 5s";
    let race = json(&folder.tenure(&format!("{words} -o json")));
    let rows: Vec<[&Value; 5]> = race["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["protocol", "variant", "may_fail", "agreed", "violations"].map(|key| &row[key]))
        .collect();
    let row = |protocol: &str, variant: &str| {
        [Value::from(protocol), Value::from(variant), Value::from("1"), Value::from(2), Value::from(0)]
    };
    let expected = [row("omega", "plain"), row("omega-stable", "plain"), row("omega", "learn")];
    assert_eq!(rows, expected.iter().map(|row| row.each_ref()).collect::<Vec<_>>());
    assert_eq!((&race["verdict"], folder.tenure(words).status.code()), (&Value::from("holds"), Some(0)));
}

#[test]
fn an_unknown_study_and_flags_that_would_change_nothing_are_refused() {
    let folder = Folder::new(TENURE, "no-race");
    assert!(
        folder
            .refuses("lab race omega --variant loss")
            .contains("--variant means nothing to eventual leaders: without --world")
    );
    assert!(
        folder.refuses("lab race omega --world blocks --variant los").contains("did you mean loss or lost?")
    );
    for (words, said) in [
        (
            "election --variant loss",
            "--variant means nothing to election: only to eventual leaders; leave it out",
        ),
        (
            "local --threads 1",
            "--threads means nothing to local: only to ring algorithms and eventual leaders;",
        ),
        (
            "detectors --world blocks",
            "--world means nothing to detectors: only to eventual leaders and paxos;",
        ),
        ("clockwise --variant loss", "--variant means nothing to ring algorithms: only to eventual leaders;"),
        (
            "clockwise --world blocks",
            "--world means nothing to ring algorithms: only to eventual leaders and paxos;",
        ),
        (
            "bully --horizon 1s",
            "--horizon means nothing to ring algorithms: only to eventual leaders and paxos;",
        ),
        ("omega --order worst", "--order means nothing to eventual leaders: only to ring algorithms;"),
        (
            "omega-stable --world moving-set --variant learn",
            "there is nothing to run: variant 'learn' of omega-stable: it must know the round",
        ),
    ] {
        let refused = folder.refuses(&format!("lab race {words}"));
        assert!(refused.contains(said), "{words}: {refused}");
    }
    let refused = folder.refuses("lab race paxos --seeds 1 --world f-source");
    assert!(refused.contains("not for paxos: for it there are moving-set, blocks"), "{refused}");
    assert!(folder.refuses("lab race omega --world star --seeds 1").contains("not for omega"));
    assert!(folder.refuses("lab race detector").contains("did you mean detectors?"));
    assert!(folder.refuses("lab race blocking --seeds 5").contains("--seeds means nothing"));
    assert!(folder.refuses("lab race detectors --svg plot.svg").contains("--svg means nothing"));
    assert!(folder.refuses("lab race election --nodes 1").contains("2 to 64 nodes"));
    assert!(folder.refuses("lab race local --nodes 65").contains("2 to 64 nodes"));
    folder.refuses("lab race");
}
