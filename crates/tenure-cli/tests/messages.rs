//! The most usual mistakes, each really made: the exit code, the name that scripts match, and that
//! what to do is said. `docs/reference/messages.md` has all messages.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::Daemons;
use tenure_testkit::http_cluster::HttpCluster;
use tenure_testkit::other_user::Attacker;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// Parts of the inside of the program, which no message shows.
const INSIDE: &[&str] = &["Drift(", "Quorums {", "Some(", "Err(", "struct ", "enum ", "os error", "::"];

/// A mistake: its words, and what is said: exit code, name, and parts of the text.
type Case<'a> = (&'a str, i32, &'a str, &'a [&'a str]);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes a mistake twice, for people and for programs, and compares what is said.
fn judge(make: impl Fn() -> Command, (words, code, name, parts): Case<'_>) {
    let run = |first: &[&str]| -> Output {
        make().args(first).args(words.split_whitespace()).output().expect("it runs")
    };
    let (people, programs) = (run(&[]), run(&["-o", "json"]));
    let said = text(&people.stderr);
    assert_eq!(people.status.code(), Some(code), "{words}: {said}");
    assert_eq!(programs.status.code(), Some(code), "{words}");
    let line = text(&programs.stderr).lines().last().unwrap_or_default().to_owned();
    let object: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{words}: {line}"));
    let error = &object["error"];
    assert_eq!((&error["name"], &error["exit_code"]), (&name.into(), &code.into()), "{words}: {line}");
    for part in ["what", "why", "do"] {
        assert!(error[part].as_str().is_some_and(|part| part.len() > 2), "{words}: no '{part}' in {line}");
    }
    let own: Vec<&str> = said.lines().filter(|line| line.starts_with("tenure: ")).collect();
    assert!(!own.is_empty() && own.iter().any(|line| line.contains("; ")), "{words}: {said}");
    for part in parts {
        assert!(said.contains(part), "{words}: no '{part}' in {said}");
    }
    for inside in INSIDE {
        assert!(!said.contains(inside), "{words}: {said}");
    }
}

fn judge_in(folder: &Path, cases: &[Case<'_>]) {
    for case in cases {
        judge(|| TENURE.command_in(folder), *case);
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    judge_in(
        folder.path(),
        &[
            ("leader jobs --wacth", 2, "usage-unknown", &["'--watch'", "see tenure leader --help"]),
            ("staus", 2, "usage-unknown", &["'status'", "see tenure --help"]),
            ("leader", 2, "usage-missing", &["<GROUP>", "see tenure leader --help"]),
            ("calc --lease 2x", 2, "usage-refused", &["'2x' is no length of time", "as in 250ms"]),
            ("calc --drift 2", 2, "usage-refused", &["a clock that is off by all of it", "1000ppm"]),
            (
                "run -g jobs sh -c true",
                2,
                "run-without-dashes",
                &["after two dashes", "write `tenure run -g jobs -- sh -c true`"],
            ),
            ("init --member a", 78, "founding-member-malformed", &["NAME=HOST:PORT"]),
            ("edict", 2, "edict-outside-run", &["`tenure run`"]),
            ("lab replay nowhere", 2, "file-missing", &["nowhere: there is no such file"]),
            ("lab run nobody", 2, "lab-refused", &["`tenure lab list`"]),
        ],
    );
}

#[test]
fn where_there_is_no_cluster_it_is_said_how_to_get_or_name_one() {
    let folder = tempfile::tempdir().unwrap();
    judge_in(
        folder.path(),
        &[
            ("node", 78, "config-missing", &["`tenure up`", "-c FILE"]),
            ("run -g jobs -- true", 78, "config-missing", &["`tenure up`"]),
            ("status", 78, "no-endpoint", &["`tenure up`", "--endpoint URL"]),
            ("status -c nowhere.toml", 78, "config-unreadable", &["nowhere.toml", "-c FILE"]),
            ("status --endpoint http://127.0.0.1:1", 69, "no-daemon", &["Connection refused", "--endpoint"]),
            ("status --endpoint 127.0.0.1:1", 78, "endpoint-malformed", &["http://HOST:PORT"]),
        ],
    );
}

#[test]
fn what_does_not_fit_a_founded_cluster_is_told_apart() {
    let cluster = Daemons::found(TENURE, 1, "");
    judge_in(
        cluster.path(),
        &[
            ("init --member n1=127.0.0.1:7400 --dir .", 78, "already-founded", &["another --dir"]),
            ("node -c tenure.toml", 78, "file-of-client", &["-c FILE"]),
            ("node --found --term-floor 1 -c n1/tenure.toml", 78, "store-there", &["without --found"]),
            (
                "run -g jobs --lease 1s --grace 1s -c tenure.toml -- true",
                78,
                "lease-too-short",
                &["lease of 1s", "use --lease "],
            ),
            ("run -g jobs --wait 100ms -c tenure.toml -- true", 69, "run-no-quorum", &["within 100ms"]),
            ("key show n1/tenure.toml", 78, "key-file-malformed", &["n1/tenure.toml", "`tenure key new`"]),
            ("key show nowhere", 78, "key-file-unreadable", &["nowhere"]),
            ("key rotate --step 2 -c n1/tenure.toml", 78, "rotate-not-begun", &["--step 1"]),
        ],
    );
    let taken = UdpSocket::bind(("127.0.0.1", cluster.base)).unwrap();
    let port = format!("127.0.0.1:{}", cluster.base);
    judge_in(
        cluster.path(),
        &[("node -c n1/tenure.toml", 78, "port-refused", &["listen", &port, "stop the program"])],
    );
    drop(taken);
    fs::rename(cluster.path().join("n1/store"), cluster.path().join("elsewhere")).unwrap();
    judge_in(
        cluster.path(),
        &[("node -c n1/tenure.toml", 78, "store-missing", &["`tenure init`", "--join", "members replace"])],
    );
}

#[test]
fn what_is_wrong_in_a_file_is_shown_where_it_stands_and_in_its_words() {
    let cluster = Daemons::found(TENURE, 2, "");
    let good = fs::read_to_string(cluster.file(0)).unwrap();
    let check = |from: &str, to: &str, (words, code, name, parts): Case<'_>| {
        assert!(good.contains(from), "{from} is not in {good}");
        fs::write(cluster.file(0), good.replacen(from, to, 1)).unwrap();
        judge(|| TENURE.command_in(cluster.path()), (words, code, name, parts));
    };
    const CHECK: &str = "config check n1/tenure.toml";
    const NODE: &str = "node -c n1/tenure.toml";
    let malformed: &[(&str, &str, &[&str])] = &[
        ("listen =", "listn =", &["line ", "did you mean 'listen'?", "| listn =", "| ^"]),
        ("name = \"n1\"", "name = ", &["line ", "| name =", "^"]),
        ("[daemon]", "[daemon]\nstandbys = [\"n4\"]", &["expected a table such as", "| standbys = [\"n4\"]"]),
        ("[daemon]", "[daemon]\nreplace_after = \"2x\"", &["no length of time", "| replace_after"]),
    ];
    for (from, to, parts) in malformed {
        check(from, to, (CHECK, 78, "config-malformed", parts));
    }
    let twice = "\n[[cluster.members]]\nname = \"n1\"\naddress = \"127.0.0.1:9\"\n\n[daemon]";
    check(
        "[daemon]",
        twice,
        (CHECK, 78, "setting-refused", &["cluster.members", "two members are called 'n1'"]),
    );
    check(
        "[cluster]",
        "[cluster]\nquorums = \"list:0,1\"",
        (
            CHECK,
            78,
            "setting-refused",
            &["the quorums ['n1'] and ['n2'] share no member", "add a common member"],
        ),
    );
    let second = format!("[[cluster.members]]\nname = \"n2\"\naddress = \"127.0.0.1:{}\"", cluster.base + 2);
    check(&second, "", (NODE, 78, "config-differs", &["majority of 'n1', one that the file does not name"]));
    check("[cluster]", "[cluster]\ndrift_ppm = 7", (NODE, 78, "config-differs", &["drift_ppm = 7"]));
    check(
        "[cluster]",
        "[cluster]\nquorums = \"weights:2,1\"",
        (NODE, 78, "config-differs", &["weights:2,1 of 'n1', 'n2'", "majority of 'n1', 'n2'"]),
    );
}

#[test]
fn a_key_that_cannot_be_used_is_named_with_its_setting() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    const CHECK: &str = "config check n1/tenure.toml";
    let key = dir.join("n1/key");
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    let good = fs::read_to_string(&key).unwrap();
    mode(0o644);
    judge_in(dir, &[(CHECK, 78, "secret-exposed", &["key_file", "n1/key", "(mode 644)", "chmod 600"])]);
    mode(0o600);
    fs::write(&key, &good[..good.len() / 2]).unwrap();
    judge_in(dir, &[(CHECK, 78, "setting-refused", &["key_file", "copy it again"])]);
    fs::copy(dir.join("client.key"), &key).unwrap();
    judge_in(dir, &[(CHECK, 78, "setting-refused", &["a member needs the cluster's key"])]);
    fs::remove_file(&key).unwrap();
    judge_in(dir, &[(CHECK, 78, "secret-unreadable", &["key_file", "n1/key", "No such file", "mode 600"])]);
}

#[test]
fn a_variable_that_is_refused_is_named() {
    let cluster = Daemons::found(TENURE, 1, "");
    let with = || {
        let mut command = TENURE.command_in(cluster.path());
        command.env("TENURE_SIDECAR_PORT", "many");
        command
    };
    judge(
        with,
        ("config check n1/tenure.toml", 78, "variable-refused", &["TENURE_SIDECAR_PORT='many'", "unset"]),
    );
}

#[test]
fn a_key_of_another_cluster_is_named_as_what_may_keep_the_quorum_away() {
    let (cluster, other) = (Daemons::found(TENURE, 1, ""), Daemons::found(TENURE, 1, ""));
    let _daemons = cluster.start_all();
    fs::copy(other.path().join("client.key"), cluster.path().join("client.key")).unwrap();
    let text = fs::read_to_string(cluster.path().join("tenure.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("cluster_id") && !line.starts_with("lineage"));
    fs::write(cluster.path().join("tenure.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    let words = "run -g jobs --wait 100ms -c tenure.toml -- true";
    judge_in(cluster.path(), &[(words, 69, "run-no-quorum", &["key", "`tenure doctor`"])]);
}

#[test]
fn a_daemon_says_what_its_askers_lack() {
    let daemons = HttpCluster::start(TENURE, 1, "open_reads = false");
    let with = |token: Option<&str>| {
        let mut command = daemons.asking(&[]);
        match token {
            Some(token) => command.env("TENURE_TOKEN_FILE", daemons.path(token)),
            None => command.env_remove("TENURE_TOKEN_FILE"),
        };
        command
    };
    judge(|| with(None), ("status", 77, "token-refused", &["token_file under [client]"]));
    let made = daemons.ask(&["token", "create", "--role", "read"]);
    let printed = text(&made.stdout);
    let token = printed.split_whitespace().find(|word| word.starts_with("tenure-token-1:"));
    daemons.write_secret("reader", token.unwrap_or_else(|| panic!("{printed}{}", text(&made.stderr))));
    judge(|| with(Some("reader")), ("resign jobs", 77, "role-refused", &["operate", "`tenure token create"]));
    judge(
        || with(Some("token")),
        ("members remove zz", 2, "change-failed", &["'zz' is no member: see `tenure members list`"]),
    );
    let again = || {
        let mut command = daemons.asking(&["node", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "-c"]);
        command.arg(daemons.file(0));
        command
    };
    judge(again, ("", 78, "store-in-use", &["another process runs this node; stop it first"]));
}

#[test]
fn a_daemon_whose_certificate_nobody_trusts_is_no_missing_daemon() {
    let extra = "tls_cert = \"server.pem\"\ntls_key = \"server.key\"";
    let mut daemons = HttpCluster::found(TENURE, 1, extra);
    for (name, host) in [("server", "127.0.0.1"), ("stranger", "operator")] {
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(vec![host.to_owned()]).unwrap().self_signed(&key).unwrap();
        daemons.write_secret(&format!("{name}.pem"), &made.pem());
        daemons.write_secret(&format!("{name}.key"), &key.serialize_pem());
    }
    daemons.run(0);
    let client = format!("[client]\nendpoints = [\"https://{}\"]\nca = \"stranger.pem\"\n", daemons.http[0]);
    fs::write(daemons.path("client.toml"), client).unwrap();
    let ask = || TENURE.command_in(daemons.cluster.dir.path());
    daemons.wait("a daemon that listens", || {
        let output = ask().args(["status", "-c", "client.toml"]).output().unwrap();
        text(&output.stderr).contains("certificate").then_some(())
    });
    judge(ask, ("status -c client.toml", 69, "tls-not-trusted", &["`ca` under [client]"]));
}

#[test]
fn another_user_is_told_which_file_that_user_cannot_read() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path().join("tenure.toml");
    fs::write(&file, "name = \"a\"\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = attacker.tenure(&format!("-o json status -c {}", file.display()));
    let object: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((code, &object["error"]["name"]), (78, &"config-unreadable".into()), "{said}");
    assert!(said.contains("Permission denied") && said.contains("tenure.toml"), "{said}");
}
