//! Plays: read with care, performed without chance, and written down so that they can be repeated.

use tenure_lab::catalogue::{Replay, find};

const HEAD: &str = "tenure play 1
# A remark.
protocol nerio-drift
nodes 3
set drift=1000ppm tick=0.000001ms lease=200ms longest-lease=200ms window=60ms retry=20ms block=4 groups=1
ends at 2s
";

fn perform(rest: &str) -> Result<Replay, String> {
    let nerio = find("nerio-drift").expect("it is in the catalogue");
    nerio.replay(&format!("{HEAD}{rest}"), None).map_err(|error| error.to_string())
}

fn error(rest: &str) -> String {
    match perform(rest) {
        Ok(_) => panic!("this was read: {rest}"),
        Err(error) => error,
    }
}

#[test]
fn what_is_not_said_happens_by_itself() {
    let replay = perform("expect a leader from 100ms to 2s\n0ms  everyone campaigns\n").unwrap();
    assert!(replay.as_expected, "{}", replay.came);
    assert!(replay.report.counts.get("renewals") > 5, "wake-ups, deliveries and writes happen");
    assert!(replay.report.counts.get("edicts") > 5, "and threads work");
}

#[test]
fn the_same_play_gives_the_same_bytes_and_another_seed_other_draws() {
    let trace = |seed| perform(&format!("seed {seed}\n0ms  everyone campaigns\n")).unwrap().report.trace;
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn the_trace_of_a_play_is_a_script_that_comes_out_the_same() {
    let play = "0ms  everyone campaigns\n300ms  n0 crashes\n400ms  n0 reboots and campaigns\n500ms  n1 pauses
900ms  n1 goes on\n1s  network: chain n0 n1 n2\n";
    let performed = perform(play).unwrap().report;
    let nerio = find("nerio-drift").unwrap();
    let replayed = nerio.replay(&performed.trace, None).unwrap();
    assert_eq!((replayed.skipped, replayed.as_expected), (0, true));
    assert_eq!(replayed.report.trace, performed.trace);
    assert_eq!(replayed.report.picture, performed.picture);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (rest, wanted) in [
        ("0ms  n7 campaigns", "line 7: there is no node n7"),
        ("0ms  n0 flies", "line 7: cannot read 'flies'"),
        ("0ms  rain falls", "line 7: cannot read 'rain'"),
        ("5ms  n0 crashes\n4ms  n0 restarts", "line 8: 4ms comes after a later line"),
        ("3s  n0 crashes", "line 7: it ends at 2000ms, before 3000ms"),
        ("0ms", "line 7: nothing happens here"),
        ("0  n0 crashes", "line 7: '0' is no time"),
        ("0ms  n0 is told: sing", "line 7: there is no command 'sing'"),
        ("0ms  n0 n0 crash", "line 7: n0 is named twice"),
        ("0ms  network: split n0 | n1", "line 7: where is n2?"),
        ("0ms  hold n0 -> n1 letter until 5ms", "line 7: there is no kind of message 'letter'"),
        ("9ms  hold n0 -> n1 ok until 5ms", "line 7: 5ms is not after 9ms"),
        ("0ms  repeat n0 -> n1 ok until 5ms", "line 7: say 'at TIME' after 'ok'"),
        ("expect rain", "line 7: cannot read 'rain'"),
        ("expect leader n1 at 3s", "line 7: it ends at 2000ms, before 3000ms"),
        ("clock n0 fast", "line 7: cannot read the rate"),
        ("clock n0 +0ppm\nclock n0 +1ppm", "line 8: n0 has a clock already"),
        ("set lease=long", "line 7: cannot read lease='long'"),
        ("colour red", "line 7: cannot read 'colour red'"),
    ] {
        let error = error(rest);
        assert!(error.starts_with(wanted), "{rest}: {error}");
    }
}

#[test]
fn what_a_head_leaves_out_is_named() {
    let nerio = find("nerio-drift").unwrap();
    for (line, wanted) in [
        ("nodes 3", "no line says 'nodes N'"),
        ("ends at 2s", "no line says 'ends at TIME'"),
        (" block=4", "no line sets block"),
    ] {
        let error = nerio.replay(&HEAD.replace(line, ""), None).unwrap_err().to_string();
        assert!(error.contains(wanted), "{line}: {error}");
    }
}

#[test]
fn a_line_that_cannot_be_carried_out_is_an_error() {
    assert_eq!(
        error("5ms  n0 crashes\n6ms  n0 crashes"),
        "line 8: at 6ms 'n0 crashes' could not be carried out"
    );
    assert!(error("5ms  n0 restarts").contains("could not be carried out"));
    assert!(error("5ms  n0 goes on").contains("could not be carried out"));
}

#[test]
fn an_expectation_that_does_not_come_is_told_with_what_came() {
    let replay = perform("expect nobody at 1s\n0ms  n0 campaigns\n").unwrap();
    assert!(!replay.as_expected);
    assert_eq!(replay.expected.as_deref(), Some("nobody at 1s"));
    assert_eq!(replay.came, "at 1000ms n0 leads");
}

/// How often n1 handles a request of n0, and when first.
fn requests(meddling: &str) -> (usize, Option<String>) {
    let text = format!("{meddling}\n0ms  n0 is told: attempt g0 for 15ms\n");
    let trace = perform(&text).unwrap().report.trace;
    let handled: Vec<&str> = trace.lines().filter(|line| line.contains("n1 handles n0's request")).collect();
    (handled.len(), handled.first().and_then(|line| Some(line.split_once(' ')?.0.to_owned())))
}

#[test]
fn single_messages_are_held_lost_and_repeated() {
    assert_eq!(requests(""), (1, Some("5ms".to_owned())));
    assert_eq!(requests("0ms  hold n0 -> n1 request until 50ms"), (1, Some("50ms".to_owned())));
    assert_eq!(requests("0ms  lose n0 -> n1 n2 next message until 50ms"), (0, None));
    assert_eq!(requests("0ms  repeat everyone -> n1 request at 50ms"), (2, Some("5ms".to_owned())));
    assert_eq!(requests("0ms  hold n0 -> n1 ok until 50ms"), (1, Some("5ms".to_owned())));
}

#[test]
fn a_clock_beyond_its_bound_is_named() {
    let report = perform("clock n0 shows 5s, +0ppm, from 100ms +5000ppm\n").unwrap().report;
    assert!(report.assumption.unwrap().contains("n0 at +5000ppm"));
}

#[test]
fn hosts_beyond_the_members_can_be_named_and_have_their_roles() {
    let replay = perform(
        "set outsiders=1 observers=1 witnesses=1\nexpect leader n3 from 100ms to 2s\nexpect 1 verifications
0ms  everyone campaigns\n0ms  n0 n1 crash\n1ms  n0 restarts\n500ms  n4 is told: verify g0 with n3 for 50ms\n",
    );
    let replay = replay.unwrap();
    assert!(replay.as_expected, "{}", replay.came);
    assert_eq!((replay.report.nodes, replay.report.hosts), (3, 5));
    assert_eq!(replay.report.picture.roles, ["", "", "witness", "outsider", "observer"]);
    assert!(replay.report.picture.title.contains("3 nodes, 1 of them a witness, 1 outsider, 1 observer"));
}

#[test]
fn who_never_campaigns_cannot_be_told_to_and_who_is_there_is_said_first() {
    assert_eq!(error("set observers=1\n0ms  n3 campaigns"), "line 8: n3, as observer, never campaigns");
    assert!(error("0ms  n3 crashes").contains("there is no node n3"));
    assert!(error("expect nobody at 1s\nset outsiders=1").contains("say who is there before"));
    assert!(error("set outsiders=62").contains("at most 64 together"));
}

#[test]
fn a_clock_that_is_set_is_named_as_the_broken_assumption_and_the_time_of_day_is_not() {
    let assumption = |line: &str| perform(&format!("5ms  {line}\n")).unwrap().report.assumption;
    assert_eq!(
        assumption("n1's clock steps forward 80ms").as_deref(),
        Some("n1's clock steps forward 80ms at 5ms")
    );
    assert_eq!(assumption("n1's time of day steps back 80ms"), None, "no sound driver reads it");
    assert!(error("5ms  n1's clock jumps 80ms").contains("'steps back 80ms'"));
    assert!(error("5ms  n1's clock steps back far").contains("'far' is no time"));
    assert!(error("5ms  n1's clock steps back 99999999s").contains("at most"));
    assert!(error("5ms  n7's clock steps back 80ms").contains("there is no node n7"));
    assert!(error("5ms  n1's hand waves").contains("cannot read 'hand waves'"));
}

/// n1 grants, and is killed in the step in which it does; then it restarts and everybody has
/// forgotten n0.
fn killed(place: &str) -> Replay {
    let play = format!(
        "expect 1 crashes-inside-a-step\n0ms  n1 crashes after effect {place}\n0ms  n0 campaigns\n500ms  n1 restarts\n"
    );
    perform(&play).unwrap()
}

#[test]
fn a_process_that_is_killed_inside_a_step_has_done_the_first_part_of_it() {
    // To grant: remember, publish, send.
    for (effects, tells, sends) in [(0, false, false), (1, false, false), (2, true, false), (3, true, true)] {
        let trace = killed(&format!("{effects} of its next step, 0 records durable")).report.trace;
        let words = format!(", and is killed after effect {effects}, 0 records durable");
        let line = trace.lines().position(|line| line.contains(&words)).expect("it is killed");
        let next = trace.lines().nth(line + 1).unwrap_or_default();
        assert_eq!(next.starts_with("    n1 supports n0"), tells, "{next}");
        let (before, _) = trace.split_once("n1 restarts").expect("it does");
        assert_eq!(before.contains("n0 handles n1's ok"), sends, "after {effects} effects");
    }
}

#[test]
fn a_step_that_is_cut_short_is_written_down_and_replays_the_same() {
    let performed = killed("1 of its next step, 0 records durable").report;
    let replayed = find("nerio-drift").unwrap().replay(&performed.trace, None).unwrap();
    assert_eq!((replayed.skipped, replayed.as_expected), (0, true));
    assert_eq!(replayed.report.trace, performed.trace);
    assert_eq!(replayed.report.picture, performed.picture);
    let marks = &performed.picture.marks;
    assert!(marks.iter().any(|mark| mark.text == "n1 is killed inside a step"), "{marks:?}");
}

#[test]
fn records_of_a_killed_process_are_durable_in_order_or_lost() {
    // Its first life has asked for a block of terms: with the record durable, the next block begins
    // above it.
    let largest = |durable: u32| {
        let play = format!(
            "disk 100ms\n1ms  n1 n2 crash after effect 9 of its next step, {durable} records durable\n1ms  n0 campaigns
200ms  n1 n2 reboot\n900ms  n0 is told: resign g0\n"
        );
        let trace = perform(&play).unwrap().report.trace;
        let terms = trace.split("leads g0 in term ").skip(1);
        terms.filter_map(|part| part.split(' ').next()?.parse::<u64>().ok()).max().expect("somebody leads")
    };
    assert!(largest(1) > largest(0), "{} and {}", largest(1), largest(0));
}

#[test]
fn a_kill_that_cannot_be_read_or_never_comes_is_an_error() {
    for (line, wanted) in [
        (
            "0ms  n0 crashes after effect 1",
            "line 7: write 'after effect 2 of its next step, 1 record durable'",
        ),
        (
            "0ms  n0 crashes after effect x of its next step, 1 record durable",
            "line 7: write 'after effect 2",
        ),
        (
            "0ms  n0 crashes after effect 1 of its next write, 1 record durable",
            "line 7: at 0ms 'n0 crashes after",
        ),
    ] {
        assert!(error(line).starts_with(wanted), "{}", error(line));
    }
}

#[test]
fn a_clock_that_steps_forward_ends_its_leases_early() {
    let replay = perform(
        "expect leader n0 from 100ms to 499ms\nexpect nobody at 500ms
0ms  n0 campaigns\n500ms  n0's clock steps forward 300ms\n",
    );
    let replay = replay.unwrap();
    assert!(replay.as_expected, "{}", replay.came);
}

#[test]
fn threads_that_are_told_what_to_do_do_nothing_else() {
    let steps = "500ms  n0's thread 1 takes a step\n";
    let told = |times: usize| format!("expect 1 edicts\n0ms  n0 campaigns\n{}", steps.repeat(times));
    assert!(perform(&told(3)).unwrap().as_expected, "an edict takes three steps");
    assert_eq!(perform(&told(2)).unwrap().came, "0 edicts were counted");
    assert!(
        error("5ms  n0's thread 0 takes a step").contains("could not be carried out"),
        "it does not lead"
    );
    assert!(error("5ms  n0's thread 2 takes a step").contains("2 threads"));
    assert!(error("5ms  n0's thread 0 sleeps").contains("'takes a step'"));
}
