//! Attacks on the doors of a default cluster, a test each, by another user of the machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::other_user::{Attacker, attack, open_to_all, request};
use tenure_testkit::up::{Ends, Up};
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The process of `nobody`: what it does is in the environment.
#[test]
fn an_attack_in_another_process() {
    attack();
}

/// Everything that changes a cluster, with a body that would do.
const ACTS: [(&str, &str); 12] = [
    ("/v1/groups/jobs/resign", "{}"),
    ("/v1/groups/jobs/transfer", r#"{"to":"somebody"}"#),
    ("/v1/groups/jobs/proclaim", r#"{"text":"lies"}"#),
    ("/v1/members/add", r#"{"name":"evil","address":"127.0.0.1:1"}"#),
    ("/v1/members/remove", r#"{"name":"n3"}"#),
    ("/v1/members/replace", r#"{"old":"n3","name":"evil","address":"127.0.0.1:1"}"#),
    ("/v1/members/set", r#"{"drift_ppm":0}"#),
    ("/v1/members/force-remove", r#"{"powered_off":["n2","n3"]}"#),
    ("/v1/members/lift-bar", r#"{"group":"jobs"}"#),
    ("/v1/tokens/add", r#"{"id":"0000000a","role":"admin","sha256":"00"}"#),
    ("/v1/tokens/revoke", r#"{"id":"0000000a"}"#),
    ("/v1/session/link", "{}"),
];

fn address(up: &Up, index: u16) -> String {
    up.endpoint(index).trim_start_matches("http://").to_owned()
}

/// A process that leads `jobs`, and its name.
fn leader(up: &Up) -> (Ends, String) {
    let mut command = up.command("run -g jobs -- sleep 600");
    command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let runner = Ends(command.spawn().expect("it starts"));
    let name = look_for("a leader", || {
        let (code, said) = up.tenure("leader jobs");
        (code == 0).then(|| said.trim().to_owned())
    });
    (runner, name)
}

#[test]
fn another_user_reads_and_does_nothing_else_over_tcp() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let up = Up::start(TENURE);
    let (_runner, name) = leader(&up);
    let at = address(&up, 0);
    for path in ["/v1/status", "/v1/groups/jobs", "/v1/members", "/leader/jobs", "/metrics", "/livez", "/"] {
        let answer = attacker.tcp(&at, &request("GET", path, "", ""));
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    for (path, body) in ACTS {
        let answer = attacker.tcp(&at, &request("POST", path, "", body));
        assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("token"), "{path}: {answer}");
    }
    let (code, said) = up.tenure("leader jobs");
    assert_eq!((code, said.trim()), (0, name.as_str()), "nothing has changed");
    let (_, said) = up.tenure("members list -o json");
    assert!(said.contains("\"epoch\": 0"), "{said}");
}

/// The files of a cluster that must not be read by others.
const SECRETS: [&str; 5] = ["key", "token", "n1/key", "n1/tokens", "n1/tenure.toml"];

#[test]
fn another_user_reaches_neither_sockets_nor_secrets_even_if_the_folders_are_open() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let up = Up::start(TENURE);
    let home = up.path().join(".tenure");
    let socket = home.join("n1/http.sock");
    let resign = request("POST", "/v1/groups/jobs/resign", "", "{}");
    assert_eq!(attacker.socket(&socket, &resign), "error: PermissionDenied", "the folder is closed");
    assert_eq!(fs::metadata(&home).unwrap().mode() & 0o777, 0o700);
    // As if somebody had opened them by mistake.
    for folder in [up.path(), &home, &home.join("n1")] {
        open_to_all(folder);
    }
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o660);
    assert_eq!(attacker.socket(&socket, &resign), "error: PermissionDenied", "the socket is closed");
    for secret in SECRETS.iter().filter(|secret| !secret.ends_with(".toml")) {
        assert_eq!(attacker.read(&home.join(secret)), "error: PermissionDenied", "{secret}");
    }
    // And as if the socket had been opened too: the system tells the daemon who asks.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    for (path, body) in ACTS {
        let answer = attacker.socket(&socket, &request("POST", path, "", body));
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("uid:65534"), "{path}: {answer}");
    }
    let answer = attacker.socket(&socket, &request("GET", "/v1/status", "", ""));
    assert!(answer.starts_with("HTTP/1.1 200"), "it may read: {answer}");
}

#[test]
fn the_commands_of_another_user_read_and_are_told_what_they_lack() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let up = Up::start(TENURE);
    let (_runner, name) = leader(&up);
    let at = up.endpoint(0);
    let (code, said) = attacker.tenure(&format!("leader jobs --endpoint {at}"));
    assert_eq!((code, said.trim()), (0, name.as_str()));
    for words in [
        "resign jobs",
        "transfer jobs --to somebody",
        "proclaim jobs lies",
        "members remove n3",
        "members force-remove --powered-off n2 n3 --yes",
        "token list",
        "token create --role admin",
        "token link",
    ] {
        let (code, said) = attacker.tenure(&format!("{words} --endpoint {at}"));
        assert!(code == 77 && said.contains("needs the role"), "{words}: {code} {said}");
    }
}

#[test]
fn guessed_tokens_codes_and_cookies_open_nothing() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let up = Up::start(TENURE);
    let at = address(&up, 0);
    let id = fs::read_to_string(up.path().join(".tenure/token")).unwrap()[15..23].to_owned();
    let guess = format!("tenure-token-1:{id}:{}", "0".repeat(64));
    let port = at.rsplit(':').next().unwrap();
    for (header, status) in [
        (format!("Authorization: Bearer {guess}\r\n"), "401"),
        ("Authorization: Bearer let-me-in\r\n".to_owned(), "401"),
        ("Authorization: Basic YTpi\r\n".to_owned(), "401"),
        (format!("Cookie: tenure-session-{port}=0\r\nX-Tenure-Session: 0\r\n"), "401"),
        ("Host: evil.example\r\n".to_owned(), "40"),
    ] {
        for (path, body) in ACTS {
            let answer = attacker.tcp(&at, &request("POST", path, &header, body));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{header} {path}: {answer}");
        }
    }
    let code = r#"{"code":"00000000000000000000"}"#;
    let answer = attacker.tcp(&at, &request("POST", "/v1/session", "", code));
    assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("set-cookie"), "{answer}");
}

/// The events `act` in the log of a member, as text.
fn acts(up: &Up, member: &str) -> Vec<String> {
    let log = fs::read_to_string(up.path().join(".tenure").join(member).join("log")).unwrap();
    log.lines().filter(|line| line.contains("event=act ")).map(str::to_owned).collect()
}

#[test]
fn every_act_is_one_event_and_a_refused_one_is_never_logged_as_done() {
    let Some(attacker) = Attacker::new(TENURE) else { return };
    let up = Up::start(TENURE);
    let (_runner, name) = leader(&up);
    let at = address(&up, 0);
    let before = acts(&up, "n1").len();
    for (path, body) in &ACTS[..4] {
        attacker.tcp(&at, &request("POST", path, "", body));
    }
    let refused = look_for("four refusals", || {
        let all = acts(&up, "n1").split_off(before);
        (all.len() >= 4).then_some(all)
    });
    for (line, act) in refused.iter().zip(["resign", "transfer", "proclaim", "\"members add\""]) {
        let is_whole = line.contains(&format!(" act={act} ")) && line.contains(" who=nobody from=127.0.0.1:");
        assert!(is_whole && line.contains(" result=refused "), "{line}");
        assert!(line.contains("level=warn") && !line.contains("done "), "{line}");
    }
    assert!(refused[0].contains(" group=jobs "), "{}", refused[0]);
    let (code, said) = up.tenure("resign others --timeout 3s");
    assert_eq!(code, 1, "{said}");
    let (code, said) = up.tenure("proclaim jobs hello");
    assert_eq!(code, 0, "{said}");
    let (code, said) = up.tenure("members set --drift-ppm 90000");
    assert_eq!(code, 0, "{said}");
    let done = look_for("three more", || {
        let all = acts(&up, "n1").split_off(before + 4);
        (all.len() >= 3).then_some(all)
    });
    for (line, parts) in done.iter().zip([
        ["act=resign group=others result=failed", "level=warn"],
        ["act=proclaim group=jobs detail=\"5 bytes\" result=done", "level=info"],
        ["act=\"members set\" detail=", "(epoch 1)\" result=done"],
    ]) {
        assert!(line.contains(" who=uid:0 ") && parts.iter().all(|part| line.contains(part)), "{line}");
    }
    assert_eq!(acts(&up, "n1").len(), before + 7, "one event each");
    let (code, said) = up.tenure("leader jobs");
    assert_eq!((code, said.trim()), (0, name.as_str()));
}

#[test]
fn members_that_run_are_not_removed_by_force() {
    let up = Up::start(TENURE);
    let (code, said) = up.tenure("members force-remove --powered-off n2 n3 --yes");
    assert!(code == 2 && said.contains("n2 was heard within the longest lease"), "{code} {said}");
    let line = acts(&up, "n1").pop().unwrap();
    assert!(line.contains("act=\"members force-remove\"") && line.contains("result=refused"), "{line}");
    let (_, said) = up.tenure("members list -o json");
    assert!(said.contains("\"epoch\": 0"), "{said}");
}

/// Runs a command that shows a token over TCP, in a folder without a configuration.
fn with_token(up: &Up, folder: &Path, token: &Path, words: &str) -> (i32, String) {
    let mut command = up.command(words);
    command.current_dir(folder).env("TENURE_TOKEN_FILE", token).env("TENURE_ENDPOINTS", up.endpoint(0));
    let output = command.output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_token_does_what_its_role_allows_until_it_is_revoked_or_expires() {
    let up = Up::start(TENURE);
    let (_runner, _) = leader(&up);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = up.path().join("job.token");
    let (code, said) = up.tenure("token create --role operate --note nightly --out job.token -o json");
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let json = said.rsplit_once('}').unwrap().0.to_owned() + "}";
    let made: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(made["daemons"].as_array().unwrap().len(), 3, "every daemon has it: {said}");
    let id = made["id"].as_str().unwrap();
    let run = |words: &str| with_token(&up, elsewhere.path(), &file, words);
    let (code, said) = run("proclaim jobs hello");
    assert_eq!(code, 0, "{said}");
    let (code, said) = run("members remove n3");
    assert!(code == 77 && said.contains(&format!("token:{id} has the role 'operate'")), "{code} {said}");
    let who = acts(&up, "n1");
    assert!(
        who.iter().any(|line| line.contains(&format!("who=token:{id} ")) && line.contains("done")),
        "{who:?}"
    );

    let (code, said) = up.tenure(&format!("token revoke {id}"));
    assert!(code == 0 && said.matches("is revoked").count() == 3, "{said}");
    let (code, said) = run("proclaim jobs hello");
    assert!(code == 77 && said.contains("knows no such bearer token"), "at once: {code} {said}");

    let (code, said) = up.tenure("token create --role operate --expires 1s --out short.token");
    assert_eq!(code, 0, "{said}");
    let file = up.path().join("short.token");
    let said = look_for("the end of a token", || {
        let (code, said) = with_token(&up, elsewhere.path(), &file, "status");
        (code == 77).then_some(said)
    });
    assert!(said.contains("expired at"), "{said}");
    // The token of the cluster goes on, from anywhere.
    let token = up.path().join(".tenure/token");
    let (code, said) = with_token(&up, elsewhere.path(), &token, "token list");
    assert!(code == 0 && said.contains("for the commands"), "{said}");
}

#[test]
fn a_link_of_up_opens_one_session() {
    let up = Up::start(TENURE);
    let said = look_for("the link", || Some(up.said()).filter(|said| said.contains("#code=")));
    let link = said.split_whitespace().find(|word| word.contains("#code=")).unwrap();
    let (page, code) = link.split_once("#code=").unwrap();
    assert_eq!(page, format!("{}/", up.endpoint(0)));
    let open = || {
        use std::io::{Read, Write};
        let body = format!("{{\"code\":\"{code}\"}}");
        let mut stream = std::net::TcpStream::connect(address(&up, 0)).unwrap();
        stream.write_all(request("POST", "/v1/session", "", &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let first = open();
    assert!(first.starts_with("HTTP/1.1 200") && first.contains("HttpOnly; SameSite=Strict"), "{first}");
    assert!(open().starts_with("HTTP/1.1 401"), "once");
}
