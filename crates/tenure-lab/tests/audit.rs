//! Traces written by hand: a clean cluster, clusters that break one thing each, and the clean one
//! with a line changed.

use std::fs;
use std::path::PathBuf;

use tenure_lab::audit::{self, AuditError, File, Report};
use tenure_lab::property::Status;

/// The files of a folder, by name.
fn folder(name: &str) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/audit").join(name);
    let mut files: Vec<(String, String)> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn judged(files: &[(String, String)]) -> Result<Report, AuditError> {
    let files: Vec<File<'_>> =
        files.iter().map(|(name, text)| File { name, bytes: text.as_bytes() }).collect();
    audit::audit(&files)
}

fn report(files: &[(String, String)]) -> Report {
    judged(files).unwrap_or_else(|error| panic!("{error}"))
}

/// Each broken property with what was seen.
fn broken(report: &Report) -> Vec<(&str, &str)> {
    report.violations.iter().map(|broken| (broken.property.name, broken.text.as_str())).collect()
}

/// Asserts the audit's verdict on a property, and the lines that show that it is broken.
#[track_caller]
fn breaks(files: &[(String, String)], property: &str, text: &str, lines: &[&str]) {
    let report = report(files);
    let found = report.violations.iter().find(|broken| broken.property.name == property);
    let Some(found) = found else { panic!("{property} holds; broken are {:?}", broken(&report)) };
    assert!(found.text.contains(text), "{}", found.text);
    let places: Vec<String> =
        found.places.iter().map(|place| format!("{}:{}", place.file, place.line)).collect();
    assert_eq!(places, lines, "{}", found.text);
}

fn status(report: &Report, name: &str) -> Status {
    report.properties.iter().find(|(property, _)| property.name == name).unwrap().1
}

#[test]
fn a_clean_cluster_holds_and_is_counted() {
    let report = report(&folder("clean"));
    assert_eq!(broken(&report), []);
    let counts = report.counts;
    assert_eq!((counts.files, counts.nodes, counts.lives, counts.groups), (5, 3, 4, 1));
    assert_eq!((counts.events, counts.terms, counts.edicts), (32, 3, 4));
    assert_eq!((counts.admitted, counts.refused, counts.cut, counts.unknown), (3, 1, 1, 0));
    let names: Vec<(&str, usize)> =
        report.nodes.iter().map(|node| (node.name.as_str(), node.lives)).collect();
    assert_eq!(names, [("alpha", 2), ("beta", 1), ("gamma", 1)]);
}

#[test]
fn what_holds_was_put_to_the_test() {
    let report = report(&folder("clean"));
    for seen in [
        "leadership-moves",
        "tenure-renewed",
        "grant-passes-on",
        "grant-given-back",
        "second-term",
        "second-life",
        "edicts-of-two-leaders",
    ] {
        assert_eq!(status(&report, seen), Status::Seen, "{seen}");
    }
    assert_eq!(status(&report, "leader-uniqueness"), Status::Holds);
    assert_eq!(status(&report, "leader-after-healing"), Status::Exempt);
}

#[test]
fn two_leaders_at_once_are_seen_with_both_lines() {
    let text = "beta leads g7 in term 2 while alpha leads it in term 1";
    breaks(&folder("two-leaders"), "leader-uniqueness", text, &["beta.trace:5", "alpha.trace:5"]);
}

#[test]
fn an_edict_after_the_lease_is_seen() {
    let text = "edict 1.2 after 13.1s on its clock, when its lease had ended at 12.998s";
    breaks(&folder("edict-after-lease"), "edicts-by-leaders", text, &["alpha.trace:7", "alpha.trace:5"]);
}

#[test]
fn a_term_used_twice_is_seen() {
    let text = "alpha and beta both complete term 1";
    breaks(&folder("term-twice"), "terms-rise", text, &["beta.trace:5", "alpha.trace:5"]);
}

#[test]
fn a_term_used_twice_is_seen_without_a_common_clock() {
    let files = folder("term-twice-without-common-clock");
    breaks(&files, "terms-rise", "both complete term 1", &["beta.trace:5", "alpha.trace:5"]);
    let report = report(&files);
    assert_eq!(status(&report, "leader-uniqueness"), Status::Exempt, "who led when cannot be compared");
    let why = report.unjudged.iter().find(|left| left.what == "leader-uniqueness").unwrap();
    assert_eq!(why.why, "no life has a common clock");
}

#[test]
fn a_term_that_falls_is_seen() {
    let files = folder("term-falls");
    let text = "alpha completed term 5";
    let report = report(&files);
    let (property, said) = broken(&report)[0];
    assert_eq!(property, "terms-rise");
    assert!(said.contains(text) && said.contains("term 4"), "{said}");
}

#[test]
fn two_charters_of_one_epoch_are_seen() {
    let text = "beta goes by an epoch 1 of [alpha, beta, n3, n5], others by another epoch 1";
    breaks(&folder("two-charters"), "one-charter-an-epoch", text, &["beta.trace:4", "alpha.trace:4"]);
}

#[test]
fn an_admission_out_of_order_is_seen() {
    let text = "ledger admitted token 1.2 after 2.1";
    breaks(
        &folder("admission-out-of-order"),
        "admissions-ordered",
        text,
        &["ledger.trace:4", "ledger.trace:3"],
    );
}

#[test]
fn a_last_line_that_was_cut_off_is_no_error() {
    let report = report(&folder("cut-off"));
    assert_eq!((broken(&report), report.counts.cut, report.counts.events), (vec![], 1, 1));
    let ends = report.unjudged.iter().find(|left| left.what.contains("life 1 of alpha")).unwrap();
    assert!(ends.why.contains("ends without 'stop'"), "{}", ends.why);
}

#[test]
fn a_file_of_another_cluster_is_an_error_that_names_both() {
    let said = judged(&folder("foreign-cluster")).unwrap_err().to_string();
    for part in ["delta.trace: line 2", "f0e1d", "alpha.trace", "c1a55", "one cluster at a time"] {
        assert!(said.contains(part), "{said}");
    }
}

/// The clean cluster with some text of one file replaced, everywhere in it.
fn mutated(file: &str, from: &str, to: &str) -> Vec<(String, String)> {
    changed("clean", file, from, to)
}

fn changed(cluster: &str, file: &str, from: &str, to: &str) -> Vec<(String, String)> {
    let mut files = folder(cluster);
    let (_, text) = files.iter_mut().find(|(name, _)| name == file).unwrap();
    assert!(text.contains(from), "{file} has no '{from}'");
    *text = text.replace(from, to);
    files
}

#[test]
fn each_change_of_the_clean_traces_breaks_its_property() {
    for (file, from, to, property) in [
        ("alpha-1.trace", "until=12.998s", "until=14.998s", "leader-uniqueness"),
        ("alpha-1.trace", "until=12.998s", "until=14.998s", "lease-from-a-run"),
        ("alpha-1.trace", "until=12.998s", "until=14.998s", "lease-inside-grants"),
        ("alpha-1.trace", "until=12.998s", "until=11.002s", "elected-in-time"),
        ("alpha-1.trace", "until=12.098s", "until=10.9s", "terms-unbroken"),
        ("alpha-1.trace", "run=n1/1/2 start", "run=n1/1/1 start", "instances-unique"),
        ("alpha-1.trace", "number=2 after=11.5001s", "number=1 after=11.5001s", "edicts-ordered"),
        ("alpha-1.trace", "number=1 after", "number=3 after", "edicts-ordered"),
        ("alpha-1.trace", "first=n1@1/10.1005s/0", "first=n1@1/10.1004s/0", "edicts-ordered"),
        ("alpha-1.trace", "11.5", "13.5", "edicts-by-leaders"),
        ("alpha-2.trace", "incarnation=2", "incarnation=1", "lives-apart"),
        ("alpha-2.trace", "own=13.5s common=13.5s", "own=10.5s common=10.5s", "lives-apart"),
        ("alpha-2.trace", "term=3", "term=2", "terms-rise"),
        ("alpha-2.trace", "stamp=2/14.6005s", "stamp=1/14.6005s", "stamps-rise"),
        ("alpha-2.trace", "number=1 after=14.7001s", "number=1 after=14.7001s epoch=1", "unreadable"),
        ("beta.trace", "term=2", "term=1", "terms-rise"),
        ("beta.trace", "13.1005s/0,n3@1/13.102s/0", "9s/0,n3@1/9s/0", "terms-rise"),
        ("beta.trace", "gave-back", "gave-back-nothing", "grants-kept"),
        (
            "beta.trace",
            "lost own=14.5s common=14.5s",
            "lost-nothing own=14.5s common=14.5s",
            "quorum-behind-leader",
        ),
        ("beta.trace", "granted own=11.001s", "granted-not own=11.001s", "lease-inside-grants"),
        ("gamma.trace", "until=13.003500001s", "until=13.103500001s", "grants-kept"),
        ("gamma.trace", "until=16.604000001s", "until=26.604000001s", "grants-end"),
        ("gamma.trace", "until=16.604000001s", "until=14.7s", "lease-inside-grants"),
        ("ledger.trace", "token=3.1", "token=1.9", "admissions-ordered"),
        ("ledger.trace", "token=1.2", "token=2.2", "admissions-ordered"),
    ] {
        let files = mutated(file, from, to);
        match judged(&files) {
            Ok(report) => {
                let found = broken(&report);
                assert!(
                    found.iter().any(|(name, _)| *name == property),
                    "{file}, {to}: {property}: {found:?}"
                );
            }
            Err(error) => assert_eq!(property, "unreadable", "{file}, {to}: {error}"),
        }
    }
}

#[test]
fn a_split_of_a_local_group_holds_and_was_put_to_the_test() {
    let report = report(&folder("local"));
    assert_eq!(broken(&report), []);
    let counts = report.counts;
    assert_eq!((counts.local_groups, counts.local_elections, counts.unknown), (1, 2, 0));
    for held in ["support-one", "self-support", "one-leader-a-partition", "bound", "members-true"] {
        assert_eq!(status(&report, held), Status::Holds, "{held}");
    }
    for seen in ["two-partitions", "waited", "learnt"] {
        assert_eq!(status(&report, seen), Status::Seen, "{seen}");
    }
    assert!(
        report.properties.iter().all(|(known, _)| known.name != "one-leader"),
        "no majority is asked for"
    );
    assert!(report.unjudged.iter().any(|left| left.what == "leader-in-time"));
}

#[test]
fn two_local_leaders_who_share_a_supporter_are_seen_with_both_lines() {
    let files = changed("local", "gamma.trace", "supporters=2 until", "supporters=1,2 until");
    let text = "beta supports gamma and alpha";
    breaks(&files, "support-one", text, &["gamma.trace:8", "alpha.trace:11"]);
    let report = report(&files);
    let found = report.violations.iter().find(|broken| broken.property.name == "support-one").unwrap();
    assert!(
        found.places[0].text.contains("gamma leads beta gamma until 11.2098s"),
        "{}",
        found.places[0].text
    );
}

#[test]
fn each_change_of_a_local_group_breaks_its_property() {
    for (file, from, to, property) in [
        ("gamma.trace", "supporters=2 until", "supporters=1,2 until", "one-leader-a-partition"),
        ("gamma.trace", "supporters=2 until", "supporters= until", "self-support"),
        ("gamma.trace", "local-locked own=11.11s", "local-locked-not own=11.11s", "bound"),
        ("gamma.trace", "until=11.2098s", "until=11.2198s", "bound"),
        ("alpha.trace", "until=11.1798s", "until=11.2798s", "bound"),
        ("beta.trace", "to=0 request=1/2", "to=2 request=1/2", "bound"),
        (
            "beta.trace",
            "local-declined own=11.15s common=11.15s group=g7 asker=n3",
            "local-freed own=11.15s common=11.15s group=g7 to=n1",
            "bound",
        ),
        ("beta.trace", "members=0,1,2 until", "members=0,1 until", "members-true"),
        ("beta.trace", "members=0,1,2 until=11.182s", "members=0,1,2 until=11.282s", "members-true"),
    ] {
        let found = report(&changed("local", file, from, to));
        let found = broken(&found);
        assert!(found.iter().any(|(name, _)| *name == property), "{file}, {to}: {property}: {found:?}");
    }
}

#[test]
fn two_local_leaders_who_share_a_supporter_are_seen_whatever_their_constants() {
    let mut files = changed("local", "gamma.trace", "constants=5", "constants=6");
    let sound = report(&files);
    assert_eq!(broken(&sound), []);
    let left = sound.unjudged.iter().find(|left| left.what == "lights").unwrap();
    assert!(left.partly && left.why.contains("only support-one is judged"), "{}", left.why);
    files[2].1 = files[2].1.replace("supporters=2 until", "supporters=1,2 until");
    let text = "beta supports gamma and alpha, which go by different constants";
    breaks(&files, "support-one", text, &["gamma.trace:8", "alpha.trace:11"]);
    let whole = report(&folder("local"));
    assert!(whole.unjudged.iter().all(|left| left.what != "lights"), "one set of constants is judged whole");
}

/// The same without a common clock.
fn untimed(mut files: Vec<(String, String)>) -> Vec<(String, String)> {
    for (_, text) in &mut files {
        let words = text.split_inclusive(' ').filter(|word| !word.starts_with("common="));
        *text = words.collect();
    }
    files
}

#[test]
fn what_compares_local_leaders_is_left_out_without_a_common_clock() {
    let report =
        report(&untimed(changed("local", "gamma.trace", "supporters=2 until", "supporters=1,2 until")));
    assert_eq!(broken(&report), []);
    for name in ["support-one", "one-leader-a-partition", "bound", "members-true", "two-partitions"] {
        assert_eq!(status(&report, name), Status::Exempt, "{name}");
        let why = report.unjudged.iter().find(|left| left.what == name).unwrap();
        assert_eq!(why.why, "of local groups: none of their lives has a common clock");
    }
    assert_eq!(status(&report, "self-support"), Status::Holds, "one life is enough to tell");
    assert!(report.unjudged.iter().all(|left| left.what != "one-leader"), "no majority is asked for");
}

#[test]
fn without_a_common_clock_there_is_nothing_to_draw() {
    let files = untimed(folder("local"));
    let given: Vec<File<'_>> =
        files.iter().map(|(name, text)| File { name, bytes: text.as_bytes() }).collect();
    let said = audit::picture(&given, &report(&files)).unwrap_err().to_string();
    assert!(said.contains("no life has a common clock"), "{said}");
}

#[test]
fn where_a_majority_is_asked_for_a_leader_of_few_is_seen() {
    let mut files = folder("local");
    files.iter_mut().for_each(|(_, text)| *text = text.replace("majority=no", "majority=yes"));
    breaks(&files, "one-leader", "gamma leads while alpha leads", &["gamma.trace:8", "alpha.trace:11"]);
}

#[test]
fn no_local_leader_is_accused_because_a_part_of_the_traces_is_missing() {
    let whole = folder("local");
    for missing in 0..whole.len() {
        for length in 0..whole[missing].1.len() {
            let mut files = whole.clone();
            files[missing].1.truncate(length);
            assert_eq!(broken(&report(&files)), [], "{} cut after {length}", files[missing].0);
        }
    }
}

#[test]
fn a_local_group_is_drawn_with_its_partitions() {
    let files = folder("local");
    let given: Vec<File<'_>> =
        files.iter().map(|(name, text)| File { name, bytes: text.as_bytes() }).collect();
    let picture = audit::picture(&given, &report(&files)).unwrap();
    assert_eq!(picture.lanes, ["alpha", "beta", "gamma"]);
    let shades: Vec<(usize, &[usize], u64, u64)> = picture
        .shades
        .iter()
        .map(|shade| (shade.leader, shade.members.as_slice(), shade.from / 1000, shade.until / 1000))
        .collect();
    assert_eq!(
        shades,
        [
            (0, &[0, 1, 2][..], 1_005_000, 1_085_000),
            (0, &[0, 1], 1_085_000, 1_179_800),
            (2, &[2], 1_110_000, 1_209_800)
        ]
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let header = "tenure-trace 1\n";
    let start = folder("clean")[0].1.lines().nth(2).unwrap().to_owned();
    for (text, reason) in [
        (format!("{header}stop own=1s\n"), "a.trace: line 2: stands before any 'start'"),
        (format!("{header}{start}\nstop own=11s\nstop own=12s\n"), "line 4: stands after 'stop'"),
        (
            format!("{header}{start}\nmute own=11s common=11s\nmute own=11s common=10.9s\n"),
            "line 4: is earlier on the common clock",
        ),
        (
            format!("{header}{start}\nrecovering own=11s\n"),
            "line 3: is of a cluster whose members do not change",
        ),
        (
            format!("{header}{start}\nedict own=12s group=g1 epoch=0 term=1 number=1 after=11s\n"),
            "line 3: has 'after' smaller than 'own'",
        ),
        (format!("{header}{start}\nasked own=11s\n"), "line 3: 'asked' needs 'group='"),
        ("hello\n".to_owned(), "line 1: a trace of a node begins with 'tenure-trace 1'"),
        (String::new(), "there is nothing to judge"),
        (header.to_owned(), "there is nothing to judge"),
    ] {
        let said = judged(&[("a.trace".to_owned(), text)]).unwrap_err().to_string();
        assert!(said.contains(reason), "{said}");
    }
    let twice = [folder("cut-off"), folder("cut-off")].concat();
    assert!(judged(&twice).unwrap_err().to_string().contains("name each file once"));
}

#[test]
fn edicts_of_a_thread_may_stand_in_a_file_of_their_own() {
    let mut files = folder("clean");
    let alpha = files[0].1.clone();
    let (edicts, rest): (Vec<&str>, Vec<&str>) =
        alpha.split_inclusive('\n').partition(|l| l.starts_with("edict"));
    let part = "part own=10s node=n1 incarnation=1 cluster=000000000000000000000000000c1a55\n";
    files[0].1 = rest.concat();
    let thread = |edicts: &[&str]| format!("tenure-trace 1\n{part}{}", edicts.concat());
    files.push(("thread.trace".to_owned(), thread(&edicts)));
    let whole = report(&files);
    assert_eq!((broken(&whole), whole.counts.edicts), (vec![], 4));

    let late = edicts[1].replace("11.5", "13.0");
    files.last_mut().unwrap().1 = thread(&[edicts[0], &late]);
    breaks(&files, "edicts-by-leaders", "edict 1.2", &["thread.trace:4", "alpha-1.trace:7"]);

    files.last_mut().unwrap().1 = thread(&["mute own=11s\n"]);
    assert!(judged(&files).unwrap_err().to_string().contains("where only edicts may"));
}

#[test]
fn members_without_a_trace_are_believed_and_named() {
    let mut files = folder("clean");
    files.retain(|(name, _)| name != "gamma.trace");
    let report = report(&files);
    assert_eq!(broken(&report), []);
    let left = report.unjudged.iter().find(|left| left.what == "n3").unwrap();
    assert!(left.why.contains("a member without a trace"), "{}", left.why);
}

#[test]
fn lines_may_be_in_one_file_or_many() {
    let files = folder("clean");
    let with_end = |text: &str| if text.ends_with('\n') { text.to_owned() } else { format!("{text}~\n") };
    let all: String = files.iter().map(|(_, text)| with_end(text)).collect();
    let report = report(&[("all.trace".to_owned(), all)]);
    assert_eq!(broken(&report), []);
    assert_eq!((report.counts.files, report.counts.lives, report.counts.cut), (1, 4, 1));
}
