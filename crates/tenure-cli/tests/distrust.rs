//! Attacks by files and by text: what another user of the machine leaves about, and what another
//! node says.
//!
//! Some need a file of another user: a test that does not run as root says that it was left out.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::HttpCluster;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The user id of `nobody`.
const NOBODY: u32 = 65_534;

/// A folder of a user, and beside it a server of the attacker that writes down what it is sent.
struct Trap {
    folder: tempfile::TempDir,
    url: String,
    heard: Option<JoinHandle<String>>,
}

impl Trap {
    /// With `.tenure/tenure.toml` that sends the token in `secret` to the attacker.
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut request = [0; 4_096];
            let length = stream.read(&mut request).unwrap_or(0);
            let _ = stream.write_all(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let trap = Self { folder, url, heard: Some(heard) };
        trap.write("secret", "the-token", 0o600);
        fs::create_dir(trap.path(".tenure")).unwrap();
        fs::set_permissions(trap.path(".tenure"), fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!("[client]\nendpoints = [\"{}\"]\ntoken_file = \"../secret\"\n", trap.url);
        trap.write(".tenure/tenure.toml", &text, 0o644);
        trap
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs a command there.
    fn tenure(&self, words: &str) -> Output {
        let mut command = TENURE.command();
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        command.output().expect("it runs")
    }

    /// The text that the attacker received; it is woken if it received nothing.
    fn heard(mut self) -> String {
        if let Ok(mut stream) = std::net::TcpStream::connect(self.url.trim_start_matches("http://")) {
            let _ = stream.write_all(b"nothing");
        }
        self.heard.take().unwrap().join().unwrap()
    }
}

/// Gives a file to `nobody`; false where that is not allowed.
fn give_away(path: &Path) -> bool {
    let given = chown(path, Some(NOBODY), Some(NOBODY)).is_ok();
    if !given {
        println!("left out: only root can give {} to another user", path.display());
    }
    given
}

/// A command that must refuse its configuration: what it says.
fn refuses(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn a_configuration_of_ones_own_is_found_and_its_token_is_sent() {
    let trap = Trap::set();
    assert_eq!(trap.tenure("status").status.code(), Some(69));
    assert!(trap.heard().contains("Bearer the-token"));
}

#[test]
fn a_configuration_that_another_user_left_here_is_refused_and_no_token_is_sent() {
    for other in [".tenure", ".tenure/tenure.toml"] {
        let trap = Trap::set();
        if !give_away(&trap.path(other)) {
            return;
        }
        for command in ["status", "leader jobs", "resign jobs", "top -o json", "doctor", "config show", "up"]
        {
            let said = refuses(&trap.tenure(command));
            assert!(said.contains(".tenure/tenure.toml") && said.contains("-c "), "{command}: {said}");
        }
        assert_eq!(trap.heard(), "nothing");
    }
}

#[test]
fn a_configuration_that_others_can_write_is_refused_and_no_token_is_sent() {
    for (path, mode) in [(".tenure", 0o777), (".tenure", 0o1777), (".tenure/tenure.toml", 0o664)] {
        let trap = Trap::set();
        fs::set_permissions(trap.path(path), fs::Permissions::from_mode(mode)).unwrap();
        let said = refuses(&trap.tenure("status"));
        assert!(said.contains("can be written by others") && said.contains("chmod"), "{said}");
        assert_eq!(trap.heard(), "nothing");
    }
}

#[test]
fn a_link_that_another_user_made_is_refused() {
    let trap = Trap::set();
    fs::rename(trap.path(".tenure"), trap.path("own")).unwrap();
    std::os::unix::fs::symlink("own", trap.path(".tenure")).unwrap();
    assert_ne!(trap.tenure("status").status.code(), Some(78), "a link of one's own is believed");
    if std::os::unix::fs::lchown(trap.path(".tenure"), Some(NOBODY), None).is_ok() {
        refuses(&trap.tenure("status"));
    } else {
        println!("left out: only root can give a link to another user");
    }
}

#[test]
fn a_configuration_of_another_user_that_was_named_may_name_that_users_secrets_only() {
    let trap = Trap::set();
    if !give_away(&trap.path(".tenure/tenure.toml")) {
        return;
    }
    let said = refuses(&trap.tenure("status -c .tenure/tenure.toml"));
    assert!(said.contains("secret") && said.contains("65534"), "{said}");
    give_away(&trap.path("secret"));
    let output = trap.tenure("status -c .tenure/tenure.toml");
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&output.stderr).contains("belongs to the user 65534"));
    assert!(trap.heard().contains("Bearer the-token"));
}

#[test]
fn a_token_that_everybody_can_read_or_others_can_write_is_refused_by_client_and_daemon() {
    let trap = Trap::set();
    let daemons = HttpCluster::found(TENURE, 1, "");
    for mode in [0o644, 0o604, 0o622] {
        trap.write("secret", "the-token", mode);
        let said = refuses(&trap.tenure("status"));
        assert!(said.contains("secret") && said.contains("chmod 600"), "{said}");
        fs::set_permissions(daemons.path("tokens"), fs::Permissions::from_mode(mode)).unwrap();
        let said = refuses(&TENURE.command().args(["node", "-c"]).arg(daemons.file(0)).output().unwrap());
        assert!(said.contains("daemon.tokens_file") && said.contains("chmod 600"), "{said}");
    }
    assert_eq!(trap.heard(), "nothing");
}

#[test]
fn a_key_that_everybody_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("tenure.toml"), "name = \"a\"\nrole = \"candidate\"\nkey_file = \"key\"\n").unwrap();
    fs::write(path("key"), tenure::ClusterKey::generate().reveal()).unwrap();
    for words in ["config check", "run -g jobs -- true"] {
        fs::set_permissions(path("key"), fs::Permissions::from_mode(0o644)).unwrap();
        let output =
            TENURE.command().args(["-c", "tenure.toml"]).args(words.split(' ')).current_dir(&folder).output();
        let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
        assert!(said.contains("key_file") && said.contains("chmod 600"), "{words}: {said}");
    }
}

#[test]
fn config_check_says_what_node_says_word_for_word() {
    let daemons = HttpCluster::found(TENURE, 1, "");
    let good = fs::read_to_string(daemons.file(0)).unwrap();
    fs::write(daemons.path("text"), "no certificate").unwrap();
    daemons.write_secret("text.key", "no key");
    let extra = |line: &str| good.replace("[daemon]\n", &format!("[daemon]\n{line}\n"));
    let files = [
        good.replace("tokens_file = \"tokens\"", "tokens_file = \"text.key\""),
        extra("tls_cert = \"text\""),
        extra("tls_cert = \"text\"\ntls_key = \"text.key\""),
        extra("tls_client_ca = \"text\""),
        extra("sidecar_port = 1\nsidecar_group = \"no group\""),
        extra("log = \"loud\""),
        extra("replace_after = \"1s\""),
        extra("replace_after = \"60s\""),
        extra("htpp = \"127.0.0.1:1\""),
        good.replace("http = \"127.0.0.1:", "http = \"0.0.0.0:").replace("tokens_file = \"tokens\"\n", ""),
        good.replace("key = \"tenure", "key = \"tunere"),
        good.replace("name = \"n1\"\nkey", "name = \"no name\"\nkey"),
        good.replace("length = \"5s\"", "length = \"1h\""),
        good.replace("[[cluster", "[cluster"),
        good.replace(&daemons.http[0].to_string(), &daemons.cluster.addresses[0].to_string()),
    ];
    for text in files {
        assert_ne!(text, good);
        fs::write(daemons.file(0), &text).unwrap();
        let said = |words: [&str; 2]| {
            let mut command = TENURE.command();
            command.args(words.into_iter().filter(|word| !word.is_empty())).arg("-c").arg(daemons.file(0));
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (node, check) = (said(["node", ""]), said(["config", "check"]));
        assert_eq!(node.0, Some(78), "{text}\n{}", node.1);
        assert_eq!(node, check, "{text}");
    }
}

#[test]
fn a_mistake_in_a_file_shows_no_key_whichever_command_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [key, good] = [(); 2].map(|()| tenure::ClusterKey::generate().reveal());
    for line in [
        "key = \"KEY",
        "key = KEY",
        "key = \"KEY\" x",
        "KEY = 1",
        "old_key_files = \"KEY\"",
        "[daemon]\nhttp = [\"KEY\"]",
        "daemon = \"KEY\"",
        "key = \"GOOD\"\ncluster_id = \"KEY\"",
        "key = \"GOOD\"\nlineage = \"KEY\"",
        "key = \"GOOD\"\nadvertise = \"KEY\"",
        "key = \"GOOD\"\ngroups = [\"KEY\"]",
        "key = \"GOOD\"\n[cluster]\nquorums = \"KEY\"",
        "key = \"GOOD\"\n[[cluster.members]]\nname = \"KEY\"\naddress = \"KEY\"",
        "key = \"GOOD\"\n[daemon]\nlog = \"KEY\"",
        "key = \"GOOD\"\n[daemon]\nsidecar_group = \"KEY\"",
        "key_file = \"KEY\"",
        "[client]\nendpoints = [\"KEY\"]",
        "[client]\nendpoints = [\"http://127.0.0.1:1\"]\ntoken_file = \"KEY\"",
    ] {
        let text = format!("name = \"a\"\n{}\n", line.replace("KEY", &key).replace("GOOD", &good));
        fs::write(folder.path().join("tenure.toml"), text).unwrap();
        for words in ["status", "node", "config check", "config show", "doctor"] {
            let mut command = TENURE.command();
            command.args(words.split(' ')).args(["-c", "tenure.toml"]).current_dir(&folder);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!said.contains(&key[20..40]), "{words}: {line}: {said}");
        }
    }
    let output =
        TENURE.command().arg("doctor").env("TENURE_KEY", &key[..40]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!said.contains(&key[20..36]), "{said}");
}

/// A server that gives the same answer to everybody.
fn answering(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 4_096]);
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ =
                stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    url
}

#[test]
fn what_a_daemon_says_commands_no_terminal() {
    let url = answering(r#"{"error":{"code":"declined","message":"\u001b]0;owned\u0007 \u009b2J no"}}"#);
    for words in ["status", "leader jobs", "resign jobs", "members list"] {
        let output = TENURE.command().args(words.split(' ')).args(["--endpoint", &url]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("\\u001b]0;owned\\u0007 \\u009b2J no"), "{words}: {said:?}");
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{words}: {said:?}");
    }
}

/// Lines of our sources that write past the functions of `output.rs`, which leave nothing harmful
/// in a text.
fn bypasses(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bypasses(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let writes = |line: &&str| {
            ["println!(", "print!(", "stdout().lock", "stdout().write", "stderr().lock", "writeln!(io::std"]
                .iter()
                .any(|way| line.contains(way))
        };
        let lines = code.lines().filter(writes).map(|line| format!("{}: {}", path.display(), line.trim()));
        found.extend(lines.filter(|_| !path.ends_with("output.rs")));
    }
}

#[test]
fn everything_that_is_printed_goes_through_one_place() {
    let mut found = Vec::new();
    bypasses(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.is_empty(), "use output::say and output::note:\n{}", found.join("\n"));
}
