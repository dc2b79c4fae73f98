//! The laboratory's commands, as a user runs them: the real binary, its output, its exit code, and
//! the files it leaves.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::lab_folder::{Folder, has_keys, json, stdout, text};

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The lines of a scenario that make something happen.
fn script_lines(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count()
}

const SWAP_RHO: &str =
    "lab sweep nerio-drift --seed 41 --seeds 500 --mutant swap-rho --property leader-uniqueness";

/// Lets a mutant break a property and returns the path of the small scenario.
fn broken_scenario(folder: &Folder) -> String {
    let output = folder.tenure(&format!("{SWAP_RHO} -o json"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    json(&output)["scenario"].as_str().unwrap().to_owned()
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    let folder = Folder::new(TENURE, "same");
    for words in ["lab run nerio-drift --seed 7", "lab run nerio-drift --seed 7 -o json"] {
        let first = folder.tenure(words);
        assert_eq!(first.status.code(), Some(0));
        assert!(first.stdout == folder.tenure(words).stdout, "{words}");
    }
}

#[test]
fn the_verdict_comes_first() {
    let folder = Folder::new(TENURE, "first");
    let said = stdout(&folder.tenure("lab run nerio-drift --seed 1"));
    assert_eq!(said.lines().next(), Some("nerio-drift, 5 nodes, 1 of them a witness, seed 1: holds"));
    let said = stdout(&folder.tenure("lab sweep nerio-drift --seeds 4"));
    assert_eq!(said.lines().next(), Some("nerio-drift, 5 nodes, seeds 0 to 3: holds"));
}

#[test]
fn the_json_of_a_run_has_the_keys_of_the_contract() {
    let run = json(&Folder::new(TENURE, "run-keys").tenure("lab run nerio-drift -o json"));
    has_keys(
        &run,
        &["protocol", "nodes", "seed", "verdict", "leader", "messages", "time", "time_ns", "events"],
    );
    has_keys(
        &run,
        &["properties", "counts", "violation", "assumption", "constants", "faults", "mutant", "quorums"],
    );
    has_keys(&run["messages"], &["total", "request", "ok", "nack"]);
    has_keys(&run["properties"][0], &["name", "kind", "status"]);
    assert_eq!((&run["verdict"], &run["violation"]), (&Value::from("holds"), &Value::Null));
    assert!(run["time"].as_str().unwrap().ends_with("ms"));
    assert!(run["leader"].as_str().unwrap().starts_with('n'));
}

#[test]
fn a_calm_run_tells_whether_the_leader_stayed_and_what_that_cost() {
    let folder = Folder::new(TENURE, "calm");
    let words = "lab run nerio-drift --nodes 3 --world calm --horizon 60s --set lease=200ms --set groups=1";
    let calm = json(&folder.tenure(&format!("{words} -o json")));
    has_keys(&calm["calm"], &["from", "leader_changes", "renewals", "datagrams", "datagrams_per_renewal"]);
    assert_eq!((&calm["calm"]["leader_changes"], &calm["counts"]["leader-changes"]), (&0.into(), &0.into()));
    let cost = calm["calm"]["datagrams_per_renewal"].as_f64().unwrap();
    assert!((cost - 4.0).abs() < 0.05, "two for each of the two others, not {cost}");
    assert!(stdout(&folder.tenure(words)).contains("  stability  no leader change in the "));
}

#[test]
fn a_run_says_the_same_whether_or_not_it_is_written_down() {
    let folder = Folder::new(TENURE, "unwritten");
    for words in ["lab run nerio-drift --seed 3", "lab run nerio-drift --seed 3 -o json"] {
        let plain = folder.tenure(words);
        let traced = folder.tenure(&format!("{words} --trace run.trace --svg run.svg"));
        assert_eq!(stdout(&plain), stdout(&traced), "{words}");
    }
}

#[test]
fn every_kind_of_message_has_a_count_even_if_none_was_sent() {
    let run = json(
        &Folder::new(TENURE, "kinds")
            .tenure("lab run nerio-drift --nodes 1 --set outsiders=0 --set observers=0 --world calm -o json"),
    );
    assert_eq!((&run["messages"]["nack"], &run["messages"]["total"]), (&Value::from(0), &Value::from(0)));
}

#[test]
fn the_json_of_a_sweep_has_the_keys_of_the_contract() {
    let sweep = json(&Folder::new(TENURE, "sweep-keys").tenure("lab sweep nerio-drift --seeds 50 -o json"));
    has_keys(&sweep, &["schedules", "violations", "violations_total", "counts", "messages", "events"]);
    has_keys(&sweep, &["properties", "unseen", "assumption", "scenario", "scenario_lines"]);
    has_keys(&sweep["properties"][0], &["name", "kind", "holds", "seen", "unseen", "exempt", "broken"]);
    assert_eq!(sweep["schedules"], 50);
}

#[test]
fn the_list_tells_everything_about_a_protocol_that_is_named() {
    let folder = Folder::new(TENURE, "list");
    let all = json(&folder.tenure("lab list -o json"));
    has_keys(&all["protocols"][0], &["name", "model", "promises", "source"]);
    let one = json(&folder.tenure("lab list nerio-drift -o json"));
    has_keys(&one["protocols"][0], &["properties", "constants", "mutants", "faults"]);
    let said = stdout(&folder.tenure("lab list nerio-drift"));
    assert!(
        said.contains("leader-uniqueness") && said.contains("swap-rho") && said.contains("longest-lease")
    );
}

#[test]
fn a_name_that_is_wrong_is_answered_with_the_nearest_ones() {
    let folder = Folder::new(TENURE, "names");
    assert!(folder.refuses("lab run nerio-drft").contains("did you mean nerio-drift?"));
    assert!(folder.refuses("lab run nerio-drift --mutant swap-ro").contains("did you mean swap-rho?"));
    assert!(folder.refuses("lab run nerio-drift --property leader-uniquenes").contains("leader-uniqueness?"));
    assert!(folder.refuses("lab swep nerio-drift").contains("'sweep'"));
    assert!(folder.refuses("lab mutants --mutant swap-ro").contains("did you mean swap-rho?"));
    assert!(folder.refuses("lab run nerio-drift --faults rain").contains("'rain'"));
    assert!(folder.refuses("lab run nerio-drift --set leas=1s").contains("'leas'"));
}

#[test]
fn a_number_of_nodes_out_of_range_is_refused() {
    let folder = Folder::new(TENURE, "nodes");
    for nodes in ["0", "65", "-1", "five"] {
        let said = folder.refuses(&format!("lab run nerio-drift --nodes {nodes} --svg run.svg"));
        assert!(said.contains("1 to 64"), "{said}");
    }
}

#[test]
fn quorums_that_do_not_intersect_are_refused() {
    let said =
        Folder::new(TENURE, "quorums").refuses("lab run nerio-drift --quorums list:01,23 --html run.html");
    assert!(said.contains("--quorums list:01,23") && said.contains("share no member"), "{said}");
}

#[test]
fn a_corrupt_trace_is_refused_with_its_line() {
    let folder = Folder::new(TENURE, "corrupt");
    assert_eq!(
        folder.tenure("lab run nerio-drift --horizon 500ms --trace whole.trace").status.code(),
        Some(0)
    );
    let whole = fs::read_to_string(folder.path("whole.trace")).unwrap();
    fs::write(folder.path("bad.trace"), whole.replacen("campaign", "campaing", 1)).unwrap();
    let said = folder.refuses("lab replay bad.trace --svg run.svg");
    assert!(
        said.contains("bad.trace is not what was expected: line ") && said.contains("campaing"),
        "{said}"
    );
    let head = whole.find("\nexpect ").unwrap();
    fs::write(folder.path("cut.trace"), &whole[..head / 2]).unwrap();
    folder.refuses("lab replay cut.trace");
    let lines = whole.lines().filter(|line| !line.contains(" wakes"));
    fs::write(folder.path("gaps.trace"), lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    assert!(folder.refuses("lab replay gaps.trace").contains("is it cut off?"));
    fs::write(folder.path("bytes.trace"), [0xff, 0xfe, 0x00]).unwrap();
    folder.refuses("lab replay bytes.trace");
    fs::write(folder.path("empty.trace"), "").unwrap();
    folder.refuses("lab replay empty.trace");
}

#[test]
fn a_scenario_with_an_unknown_node_is_refused() {
    let folder = Folder::new(TENURE, "unknown-node");
    let path = folder.path(&broken_scenario(&folder));
    let scenario = fs::read_to_string(&path).unwrap() + "9000ms  n7 wakes\n";
    fs::write(folder.path("n7.scenario"), scenario).unwrap();
    assert!(folder.refuses("lab replay n7.scenario").contains("there is no node n7"));
}

#[test]
fn a_file_that_is_missing_is_refused() {
    let folder = Folder::new(TENURE, "missing");
    assert!(folder.refuses("lab replay nowhere.trace").contains("nowhere.trace: there is no such file"));
    assert!(folder.refuses("lab run nerio-drift --scenario mutants/x").contains("there is no scenario"));
}

#[test]
fn a_path_that_cannot_be_written_is_refused_before_anything_is() {
    let folder = Folder::new(TENURE, "unwritable");
    folder.refuses("lab run nerio-drift --svg fine.svg --html missing/run.html");
    folder.refuses("lab run nerio-drift --trace .");
    folder.refuses("lab run nerio-drift --svg same --html same");
    folder.refuses("lab sweep nerio-drift --seeds 10 --save missing");
}

#[test]
fn a_broken_property_exits_with_1_and_says_how_to_see_it_again() {
    let folder = Folder::new(TENURE, "broken");
    let output = folder.tenure("lab run nerio-drift --seed 6 --faults all --mutant swap-rho");
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(
        said.starts_with("nerio-drift, mutant swap-rho, 5 nodes, ") && said.contains(", seed 6: broken\n"),
        "{said}"
    );
    let again = "tenure lab run nerio-drift --seed 6 --faults all --mutant swap-rho --html run.html";
    assert!(said.contains(again), "{said}");
}

#[test]
fn a_sweep_saves_a_small_scenario_that_replays_to_the_same_violation() {
    let folder = Folder::new(TENURE, "small");
    let output = folder.tenure(&format!("{SWAP_RHO} -o json"));
    assert_eq!(output.status.code(), Some(1));
    let sweep = json(&output);
    let file = sweep["scenario"].as_str().unwrap();
    let seed = sweep["violations"][0]["seed"].as_u64().unwrap();
    assert_eq!(file, format!("nerio-drift-swap-rho-{seed}.scenario"));
    assert_eq!(sweep["scenario_lines"], script_lines(&folder.path(file)));
    assert!(script_lines(&folder.path(file)) <= 40);
    let replay = folder.tenure(&format!("lab replay {file} -o json"));
    assert_eq!(replay.status.code(), Some(1));
    assert_eq!(json(&replay)["violation"]["property"], sweep["violations"][0]["property"]);
    assert_eq!(json(&replay)["as_expected"], true);
}

#[test]
fn a_walk_of_a_small_scope_meets_every_state_and_holds() {
    let folder = Folder::new(TENURE, "walk");
    let output = folder.tenure("lab check nerio-drift -o json");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let check = json(&output);
    assert_eq!((check["verdict"].as_str(), check["complete"].as_bool()), (Some("holds"), Some(true)));
    assert_eq!((check["states"].as_u64(), check["depth"].as_u64()), (Some(1639), Some(11)));
    assert!(check["states_per_second"].as_u64() > Some(0));
    let witnesses = check["witnesses"].as_array().unwrap();
    assert!(witnesses.iter().any(|witness| witness["name"] == "lapsed" && witness["seen"] == true));
}

#[test]
fn a_walk_saves_the_shortest_way_to_a_violation_and_it_replays() {
    let folder = Folder::new(TENURE, "way");
    let output = folder.tenure("lab check nerio-drift --scope two --mutant aborted-ok -o json");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let check = json(&output);
    assert_eq!((check["verdict"].as_str(), check["complete"].as_bool()), (Some("broken"), Some(false)));
    assert_eq!(
        (check["violation"]["length"].as_u64(), check["violation"]["confirmed"].as_bool()),
        (Some(8), Some(true))
    );
    assert_eq!(check["scenario"], "nerio-drift-aborted-ok-two.scenario");
    let replay = folder.tenure("lab replay nerio-drift-aborted-ok-two.scenario -o json");
    assert_eq!(replay.status.code(), Some(1));
    assert_eq!(json(&replay)["violation"]["property"], check["violation"]["property"]);
    assert_eq!(json(&replay)["as_expected"], true);
}

#[test]
fn a_walk_that_a_bound_ends_exits_with_3() {
    let folder = Folder::new(TENURE, "bound");
    let output = folder.tenure("lab check nerio-drift --scope two --states 1000");
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stdout(&output).contains("not exhausted"), "{}", stdout(&output));
}

#[test]
fn a_walk_that_never_sees_what_it_is_there_for_exits_with_1() {
    let folder = Folder::new(TENURE, "empty");
    let output = folder.tenure("lab check nerio-drift --scope two --acquisitions 0");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).starts_with("nerio-drift, scope two: unexercised"), "{}", stdout(&output));
}

#[test]
fn the_sound_protocol_holds_where_a_mutant_fails() {
    let folder = Folder::new(TENURE, "sound");
    let file = broken_scenario(&folder);
    let output = folder.tenure(&format!("lab replay {file} --sound"));
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).lines().next().unwrap().ends_with(": holds"));
}

#[test]
fn a_scenario_that_comes_out_otherwise_than_it_says_is_an_error() {
    let folder = Folder::new(TENURE, "otherwise");
    let path = folder.path(&broken_scenario(&folder));
    let scenario =
        fs::read_to_string(&path).unwrap().replace("expect broken leader-uniqueness", "expect holds");
    fs::write(folder.path("wrong.scenario"), scenario).unwrap();
    let said = folder.refuses("lab replay wrong.scenario --svg run.svg");
    assert!(said.contains("expected 'holds', but ") && said.contains(" is broken at "), "{said}");
}

#[test]
fn a_scenario_with_a_name_is_found_in_its_folder() {
    let folder = Folder::new(TENURE, "named");
    let file = folder.path(&broken_scenario(&folder));
    fs::create_dir_all(folder.path("scenarios/mutants")).unwrap();
    fs::rename(file, folder.path("scenarios/mutants/swap-rho.scenario")).unwrap();
    let output = folder.tenure("lab run nerio-drift --scenario mutants/swap-rho --svg run.svg");
    assert_eq!(output.status.code(), Some(1));
    assert!(fs::read_to_string(folder.path("run.svg")).unwrap().contains("<svg"));
    assert!(folder.refuses("lab run nerio-drift --scenario mutants/swap-ro").contains("mutants/swap-rho?"));
}

/// A play, as a person writes it, in the folder of scenarios.
fn play(folder: &Folder) {
    fs::create_dir_all(folder.path("scenarios")).unwrap();
    let play = "tenure play 1
# n0 leads, and
# nobody disturbs it.
protocol nerio-drift
nodes 3
set drift=1000ppm tick=1ms lease=200ms longest-lease=200ms window=60ms retry=20ms block=4 groups=1
expect leader n0 from 150ms to 2s
ends at 2s

# What follows is not said of the whole.
0ms  n0 campaigns
";
    fs::write(folder.path("scenarios/quiet.scenario"), play).unwrap();
}

#[test]
fn a_scenario_is_run_with_every_output_and_says_what_is_seen() {
    let folder = Folder::new(TENURE, "says");
    play(&folder);
    let words = "lab run nerio-drift --scenario quiet --svg run.svg --html run.html --trace run.trace";
    let output = folder.tenure(words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = stdout(&output);
    let head: Vec<&str> = said.lines().take(2).collect();
    assert_eq!(head, ["nerio-drift, 3 nodes: holds", "  says  n0 leads, and nobody disturbs it."]);
    assert!(fs::read_to_string(folder.path("run.svg")).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(folder.path("run.html")).unwrap().contains("n0 leads, term 1"));
    assert_eq!(folder.tenure("lab replay run.trace").status.code(), Some(0));
    let run = json(&folder.tenure("lab run nerio-drift --scenario quiet -o json"));
    assert_eq!(
        (&run["scenario"], &run["says"]),
        (&"quiet".into(), &"n0 leads, and nobody disturbs it.".into())
    );
    assert_eq!((&run["verdict"], &run["faults"]), (&"holds".into(), &Value::Null));
    let seed = json(&folder.tenure("lab run nerio-drift -o json"));
    assert_eq!((&seed["scenario"], &seed["says"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_scenario_may_be_a_path_and_a_wrong_name_is_answered_with_the_nearest() {
    let folder = Folder::new(TENURE, "path");
    play(&folder);
    let run = json(&folder.tenure("lab run nerio-drift --scenario scenarios/quiet.scenario -o json"));
    assert_eq!(run["leader"], "n0");
    assert!(folder.refuses("lab run nerio-drift --scenario quite").contains("did you mean quiet?"));
    let other = folder.refuses("lab run nerio-skew --scenario quiet");
    assert!(other.contains("a scenario of nerio-drift, not of nerio-skew"), "{other}");
}

#[test]
fn what_a_scenario_fixes_cannot_be_asked_for_beside_it() {
    let folder = Folder::new(TENURE, "fixed");
    play(&folder);
    for option in
        ["--seed 3", "--faults all", "--nodes 5", "--world calm", "--quorums majority", "--horizon 1s"]
    {
        let said = folder.refuses(&format!("lab run nerio-drift --scenario quiet {option}"));
        let name = option.split(' ').next().unwrap();
        assert!(said.contains("--scenario") && said.contains(name), "{said}");
    }
    folder.refuses("lab run nerio-drift --scenario quiet --set lease=1s");
}

#[test]
fn drawings_and_traces_are_written_and_a_trace_replays() {
    let folder = Folder::new(TENURE, "files");
    let words = "lab run nerio-drift --seed 3 --svg run.svg --html run.html --trace run.trace -o json";
    let run = folder.tenure(words);
    assert_eq!(run.status.code(), Some(0));
    assert!(fs::read_to_string(folder.path("run.svg")).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(folder.path("run.html")).unwrap().starts_with("<!doctype html>"));
    let replay = folder.tenure("lab replay run.trace -o json");
    assert_eq!(replay.status.code(), Some(0), "{}", text(&replay.stderr));
    for key in ["verdict", "leader", "events", "messages", "time", "properties"] {
        assert_eq!(json(&run)[key], json(&replay)[key], "{key}");
    }
    assert_eq!(folder.files().len(), 3, "only what was asked for: {:?}", folder.files());
}

#[test]
fn a_clock_beyond_its_bound_breaks_the_assumption_and_the_output_says_so() {
    let folder = Folder::new(TENURE, "beyond");
    let output = folder.tenure("lab sweep nerio-drift --seeds 60 --faults clock-beyond-rho");
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("THE ASSUMPTION IS BROKEN, NOT THE PROTOCOL"), "{said}");
    assert!(said.contains("the assumption is broken, not the protocol: clocks beyond the bound"), "{said}");
    let sweep = json(&folder.tenure("lab sweep nerio-drift --seeds 60 --faults clock-beyond-rho -o json"));
    assert!(sweep["assumption"].is_string());
    assert_eq!(sweep["schedules"], 60, "it goes on by itself");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = Folder::new(TENURE, "threads");
    for words in [
        "lab sweep nerio-drift --seeds 100 -o json",
        "lab sweep nerio-drift --seeds 400 --mutant ceiling-forgotten -o json",
        "lab sweep nerio-drift --seeds 60 --mutant short-silence --keep-going -o json",
    ] {
        let one = folder.tenure(&format!("{words} --threads 1"));
        let two = folder.tenure(&format!("{words} --threads 2"));
        assert_eq!((stdout(&one), one.status.code()), (stdout(&two), two.status.code()), "{words}");
    }
}

#[test]
fn what_a_sweep_did_not_exercise_is_said() {
    let folder = Folder::new(TENURE, "idle");
    let alone = "--nodes 1 --set outsiders=0 --set observers=0";
    let output = folder.tenure(&format!("lab sweep nerio-drift --seeds 20 {alone} --faults clock,dup"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("warning: nothing exercised dup"), "{said}");
    assert!(said.contains("leadership-moves"), "{said}");
}

#[test]
fn off_a_terminal_there_is_no_escape_byte() {
    let folder = Folder::new(TENURE, "escape");
    for words in [
        "--help",
        "lab",
        "lab sweep --help",
        "lab list nerio-drift",
        "lab run nerio-drift",
        "lab sweep nerio-drift --seeds 40",
        "lab swep",
    ] {
        let output = folder.tenure(words);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{words}");
    }
}

#[test]
fn every_page_of_help_has_examples() {
    let folder = Folder::new(TENURE, "help");
    let inner =
        ["list", "run", "sweep", "replay", "mutants", "race", "bench"].map(|name| format!("lab {name}"));
    for command in ["".to_owned(), "lab".to_owned()].into_iter().chain(inner) {
        let output = folder.tenure(&format!("{command} --help"));
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("Examples:\n"), "{command}");
    }
    let alone = folder.tenure("");
    assert_eq!((alone.status.code(), stdout(&alone).contains("Usage: tenure")), (Some(0), true));
    assert!(stdout(&folder.tenure("--version")).starts_with("tenure "));
}

#[test]
fn the_kill_matrix_names_what_noticed_each_mutant() {
    let folder = Folder::new(TENURE, "mutants");
    let output = folder.tenure("lab mutants nerio-drift --mutant swap-rho --seeds 100 -o json");
    assert_eq!(output.status.code(), Some(0));
    let matrix = json(&output);
    assert_eq!(matrix["mutants"].as_array().unwrap().len(), 1);
    let fate = &matrix["mutants"][0];
    has_keys(fate, &["mutant", "protocol", "killed", "property", "by", "schedules", "seconds"]);
    assert_eq!((&fate["killed"], &fate["by"]), (&Value::from(true), &Value::from("sweep")));
    assert_eq!(matrix["sound"][0]["silent"], true);
}

#[test]
fn a_mutant_that_no_seed_shows_is_killed_by_its_scenario_or_survives() {
    let folder = Folder::new(TENURE, "survivor");
    let file = folder.path(&broken_scenario(&folder));
    // Without drift and faults, swapping the bounds of the clocks changes nothing.
    let calm = "lab mutants --mutant swap-rho --seeds 5 --world calm --property leader-uniqueness -o json";
    let output = folder.tenure(calm);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["mutants"][0]["killed"], false);
    fs::create_dir_all(folder.path("kept/mutants/nerio-drift")).unwrap();
    fs::rename(file, folder.path("kept/mutants/nerio-drift/swap-rho.scenario")).unwrap();
    let output = folder.tenure(&format!("{calm} --scenarios kept"));
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!(json(&output)["mutants"][0]["by"], "kept/mutants/nerio-drift/swap-rho.scenario");
    assert_eq!(json(&output)["sound"][0]["scenarios"], 1);
}

#[test]
fn a_mutant_that_takes_a_world_of_its_own_is_looked_for_there_unless_it_is_said_where_to_look() {
    let folder = Folder::new(TENURE, "showcase");
    let words = "lab mutants local --mutant accept-slow -o json";
    let matrix = json(&folder.tenure(words));
    assert_eq!(matrix["mutants"][0]["by"], "sweep of partition, 5 nodes, seeds 0 to 63");
    assert_eq!((&matrix["sound"][0]["silent"], &matrix["sound"][0]["schedules"]), (&true.into(), &64.into()));
    for elsewhere in ["--seeds 3", "--nodes 3 --seeds 3"] {
        let matrix = json(&folder.tenure(&format!("{words} {elsewhere}")));
        let by = matrix["mutants"][0]["by"].as_str().unwrap_or_default();
        assert!(!by.contains("partition"), "{elsewhere}: {by}");
        assert!(matrix["mutants"][0]["schedules"].as_u64() <= Some(3), "{elsewhere}: {matrix}");
    }
}

/// The command of a document that begins like this, and the line that follows it.
fn told(document: &str, command: &str) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let document = fs::read_to_string(path).unwrap();
    let mut lines = document.lines().skip_while(|line| !line.starts_with(&format!("$ tenure {command}")));
    let words = lines.next().unwrap().strip_prefix("$ tenure ").unwrap().to_owned();
    (words, lines.next().unwrap().to_owned())
}

#[test]
fn constants_that_do_not_fit_are_refused_as_the_document_says() {
    let (words, said) = told("explanation/local.md", "lab run local --set");
    assert_eq!(Folder::new(TENURE, "constants").refuses(&words), format!("{said}\n"));
}

#[test]
fn the_benchmark_measures_a_baseline_beside_the_laboratory() {
    let bench = json(&Folder::new(TENURE, "bench").tenure("lab bench --seeds 5 --rounds 5 -o json"));
    has_keys(&bench, &["events_per_second", "with_properties", "baseline_per_second", "ratio_to_baseline"]);
    has_keys(&bench, &["cost_of_properties", "rounds"]);
    assert!(bench["events_per_second"].as_u64().unwrap() > 0);
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let tenure = TENURE.0;
    let script = format!("'{tenure}' lab list nerio-drift -o json | true; echo ${{PIPESTATUS[0]}}");
    for _ in 0..5 {
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!((stdout(&output), text(&output.stderr)), ("0\n".to_owned(), String::new()));
    }
}

#[test]
fn a_history_that_no_order_explains_exits_with_1_and_names_the_operation() {
    let folder = Folder::new(TENURE, "history");
    let good = "c1 put x 1 @ 10 20\nc2 get x -> 1 @ 30 40\nc1 put x 2 @ 50 ?\n";
    fs::write(folder.path("good"), good).unwrap();
    let output = folder.tenure("lab check-history good -o json");
    let judged: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((&judged["verdict"], &judged["operations"]), (&Value::from("holds"), &Value::from(3)));
    fs::write(folder.path("bad"), "c2 get x -> - @ 60 70\n").unwrap();
    let output = folder.tenure("lab check-history good bad");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("no order explains the get of nothing"),
        "{}",
        text(&output.stdout)
    );
    fs::write(folder.path("torn"), "c2 get x @ 60 70\n").unwrap();
    assert!(folder.refuses("lab check-history torn").contains("line 1"));
}
