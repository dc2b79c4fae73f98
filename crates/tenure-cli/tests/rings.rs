//! Ring theory on the command line: counts, attacks, races and drawings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tenure(&self, words: &str) -> Output {
        run(self.0.path(), words)
    }

    fn json(&self, words: &str) -> Value {
        let output = self.tenure(&format!("{words} -o json"));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words}: {error}: {output:?}"))
    }

    fn refuses(&self, words: &str) -> String {
        let output = self.tenure(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

fn run(folder: &Path, words: &str) -> Output {
    let tenure = env!("CARGO_BIN_EXE_tenure");
    Command::new(tenure).args(words.split(' ')).current_dir(folder).output().unwrap()
}

#[test]
fn the_known_cases_have_their_counts_with_election_and_announcement_apart() {
    let folder = Folder::new();
    let worst = folder.json("lab run clockwise --nodes 1024 --order worst");
    assert_eq!(worst["messages"]["election"], 1024 * 1025 / 2);
    assert_eq!(worst["messages"]["announcement"], 1024);
    assert_eq!(worst["messages"]["total"], 1024 * 1025 / 2 + 1024);
    assert_eq!((&worst["verdict"], &worst["time"]), (&"holds".into(), &2048.into()));
    let best = folder.json("lab run clockwise --nodes 1024 --order best");
    assert_eq!(best["messages"]["election"], 2047);
    let best = folder.json("lab run radius-growth --nodes 64 --order best");
    assert_eq!(best["messages"]["election"], 6 * 64 + 4 * 64 - 8);
    let worst = folder.json("lab run radius-growth --nodes 64 --order worst");
    assert_eq!(worst["messages"]["election"], 1664);
    let slice = folder.json("lab run time-slice --nodes 100 --set first-id=7");
    assert_eq!((&slice["messages"]["total"], &slice["time"]), (&100.into(), &800.into()));
    let rodeh = folder.json("lab run itai-rodeh --nodes 100 --seed 5");
    assert_eq!(rodeh["verdict"], "holds");
}

#[test]
fn elections_among_named_processes_have_their_known_counts_too() {
    let folder = Folder::new();
    for n in [3, 10, 100] {
        let count = |name: &str, order: &str| {
            let run = folder.json(&format!("lab run {name} --nodes {n} --order {order}"));
            assert_eq!(run["verdict"], "holds", "{name}, {n} processes");
            let messages =
                ["election", "announcement", "total"].map(|key| run["messages"][key].as_u64().unwrap());
            (messages, run["time"].as_u64().unwrap())
        };
        assert_eq!(count("ring", "best"), ([n, n, 2 * n], 2 * n));
        assert_eq!(count("ring", "worst"), ([2 * n - 1, n, 3 * n - 1], 3 * n - 1));
        assert_eq!(count("bully", "best"), ([0, n - 2, n - 2], 1));
        assert_eq!(count("bully", "worst"), ([(n - 1) * (n - 1), n - 2, n * n - n - 1], 4));
        assert_eq!(count("trivial", "worst"), ([n * n - 1, 0, n * n - 1], 2));
    }
    let refused = folder.refuses("lab run bully --nodes 8 --order worst --svg b.svg");
    assert!(refused.contains("leave --order out"), "{refused}");
}

#[test]
fn a_large_ring_costs_the_sum_of_distances_to_the_message() {
    let run = Folder::new().json("lab run clockwise --nodes 1000000 --order random --seed 1");
    assert_eq!(run["messages"]["election"], run["next_larger"]);
    let (count, mean) =
        (run["messages"]["election"].as_f64().unwrap(), run["theory"]["messages"].as_f64().unwrap());
    assert!((count - mean).abs() <= 2.4e6, "{count} {mean}");
}

#[test]
fn the_mean_over_all_orders_is_an_exact_fraction() {
    let exact = Folder::new().json("lab run clockwise --nodes 9 --order all");
    assert_eq!((&exact["mean"], &exact["n_harmonic"]), (&"7129/280".into(), &"7129/280".into()));
    assert_eq!((&exact["orders"], &exact["verdict"]), (&40_320.into(), &"holds".into()));
}

#[test]
fn every_uniform_algorithm_is_made_to_talk_and_the_cheat_is_caught() {
    let folder = Folder::new();
    let listed = folder.json("lab list");
    let names = listed["protocols"]
        .as_array()
        .unwrap()
        .iter()
        .map(|about| about["name"].as_str().unwrap().to_owned());
    let uniform: Vec<String> = names
        .filter(|name| {
            folder.json(&format!("lab list {name}"))["protocols"][0]["uniform"] == Value::Bool(true)
        })
        .collect();
    assert!(uniform.len() >= 7, "{uniform:?}");
    for name in uniform {
        let siege = folder.json(&format!("lab adversary {name} --nodes 1024"));
        assert!(siege["receptions"].as_u64() >= siege["bound"].as_u64(), "{name}: {siege}");
        assert_eq!((&siege["bound"], &siege["decided_open"]), (&2816.into(), &false.into()), "{name}");
    }
    let caught = folder.tenure("lab adversary lelann --nodes 1024 --mutant assumes-four");
    assert_eq!(caught.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&caught.stdout).contains("it is not uniform"));
    assert!(folder.refuses("lab adversary time-slice --nodes 8").contains("rounds"));
    assert!(folder.refuses("lab adversary clockwise --nodes 12").contains("2, 4, 8"));
}

#[test]
fn anonymous_nodes_stay_equal_and_two_nodes_of_a_star_elect_nobody() {
    let folder = Folder::new();
    let all = folder.json("lab run clockwise --nodes 8 --set ids=same");
    assert_eq!((&all["states_equal"], &all["leaders"]), (&true.into(), &8.into()));
    let drawn = folder.json("lab run automaton --nodes 7 --seed 3");
    assert_eq!(drawn["states_equal"], true);
    assert_eq!(folder.tenure("lab run star --nodes 2").status.code(), Some(1));
    assert_eq!(folder.json("lab run star --nodes 10")["leader"], "n0");
}

#[test]
fn a_race_writes_a_slide_and_rows() {
    let folder = Folder::new();
    let race = folder.json("lab race --all --nodes 16,64 --seeds 3 --svg race.svg --csv race.csv");
    let rows = race["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &race["verdict"]), (32, &"holds".into()));
    assert!(rows.iter().all(|row| row["messages"].as_f64() > Some(0.0)), "{race}");
    assert!(folder.read("race.svg").starts_with("<svg"));
    assert_eq!(folder.read("race.csv").lines().count(), 33);
    let two = folder.json("lab race clockwise,peterson --nodes 16 --seeds 2");
    assert_eq!(two["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn sizes_of_a_race_may_be_far_apart_and_in_any_order() {
    let folder = Folder::new();
    let race = folder.json("lab race clockwise --nodes 524288,16 --seeds 1");
    assert_eq!(race["parameters"]["left_out"], "nothing");
    assert_eq!([&race["rows"][0]["nodes"], &race["rows"][1]["nodes"]], [&16, &524_288]);
    let refused = folder.refuses("lab race lelann --nodes 524288");
    assert!(refused.contains("nothing to run: lelann, 524288 nodes would exceed the budget"), "{refused}");
}

#[test]
fn a_run_is_drawn_as_a_ring_and_traced_with_the_fields_of_the_lecture() {
    let folder = Folder::new();
    let plain = folder.tenure("lab run franklin --nodes 12 --seed 4");
    let drawn =
        folder.tenure("lab run franklin --nodes 12 --seed 4 --svg r.svg --html r.html --trace r.trace");
    assert_eq!(plain.status.code(), Some(0));
    assert_eq!(drawn.status.code(), Some(0));
    assert!(folder.read("r.svg").contains("</svg>"));
    assert!(folder.read("r.html").contains("\"messages\":[["));
    let trace = folder.read("r.trace");
    assert!(trace.starts_with("# time  node  id  type  message\n"), "{trace}");
    assert!(trace.lines().any(|line| line.contains("  send  id ")), "{trace}");
    assert!(folder.refuses("lab run clockwise --nodes 100000 --svg r.svg").contains("cannot be drawn"));
}

#[test]
fn what_means_nothing_to_a_ring_is_refused() {
    let folder = Folder::new();
    assert!(folder.refuses("lab run clockwise --quorums grid:2x2").contains("--quorums"));
    assert!(folder.refuses("lab run clockwise --set lease=2s").contains("no such constant"));
    assert!(folder.refuses("lab run nerio-drift --order worst").contains("--order"));
    assert!(folder.refuses("lab run nerio-drift --nodes 65").contains("1 to 64 nodes"));
    assert!(folder.refuses("lab run peterson --order worst").contains("no order is known"));
    assert!(folder.refuses("lab run time-slice --set wake=0").contains("common start"));
}

/// A command of the tutorial, and what it should say.
struct Lesson {
    words: String,
    code: i32,
    shown: Vec<String>,
}

/// The commands of all `sh` blocks, each with the `text` block that follows its block, if it is the
/// last in it.
fn lessons(tutorial: &str) -> Vec<Lesson> {
    let mut lessons: Vec<Lesson> = Vec::new();
    let mut block = "";
    for line in tutorial.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            block = kind;
        } else if block == "sh" {
            let (words, code) = match line.split_once(" # exit code ") {
                Some((words, code)) => (words, code.parse().unwrap()),
                None => (line, 0),
            };
            lessons.push(Lesson { words: words.to_owned(), code, shown: Vec::new() });
        } else if block == "text" {
            lessons.last_mut().unwrap().shown.push(line.trim().to_owned());
        }
    }
    lessons
}

#[test]
fn every_command_of_the_tutorial_runs_and_says_what_stands_there() {
    let tutorial = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory/tutorial.md");
    let folder = Folder::new();
    let lessons = lessons(&std::fs::read_to_string(tutorial).unwrap());
    assert!(lessons.len() >= 20, "the tutorial has commands");
    for Lesson { words, code, shown } in lessons {
        let Some(words) = words.strip_prefix("tenure ") else {
            // Run by crates/tenure-lab/tests/laboratory.rs, which is where examples are.
            assert_eq!(words, "cargo run -p tenure-lab --example own_ring");
            continue;
        };
        let output = folder.tenure(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{words}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for line in shown {
            assert!(said.lines().any(|said| said.trim() == line), "{words} does not say '{line}':\n{said}");
        }
    }
}
