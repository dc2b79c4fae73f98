//! The commands that ask, against real daemons: what they print, and what their exit codes say.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use tenure::{Node, Role};
use tenure_testkit::binary::Binary;
use tenure_testkit::cluster::numbered;
use tenure_testkit::http_cluster::{HttpCluster, get};
use tenure_testkit::ports::free_addresses;
use tenure_testkit::waiting::LIMIT;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// Applications that want to lead, in this process.
struct Applications {
    runtime: Runtime,
    running: Vec<(Node, JoinHandle<()>)>,
}

impl Applications {
    fn new() -> Self {
        Self { runtime: Runtime::new().unwrap(), running: Vec::new() }
    }

    /// One more that leads `group` whenever it can, and does what it is asked.
    fn start(&mut self, daemons: &HttpCluster, name: &str, group: &str) {
        let config = daemons.cluster.outsider(name, Role::Candidate);
        let group = group.to_owned();
        let node = self.runtime.block_on(Node::start(config)).unwrap();
        let own = node.clone();
        let task = self.runtime.spawn(async move {
            loop {
                // Ends only when the node does: the work has no end.
                if own.lead(&group, async |_| std::future::pending::<()>().await).await.is_err() {
                    return;
                }
            }
        });
        self.running.push((node, task));
    }
}

impl Drop for Applications {
    fn drop(&mut self) {
        for (node, task) in self.running.drain(..) {
            task.abort();
            self.runtime.block_on(node.shutdown());
        }
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(output: &Output) -> Value {
    let (_, stdout, stderr) = said(output);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

/// The keys of an object with the kinds of their values: what scripts rely on.
fn shape(value: &Value) -> String {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    object.iter().map(|(key, value)| format!("{key}:{}", kind(value))).collect::<Vec<_>>().join(" ")
}

fn wait_for_leader(daemons: &HttpCluster, group: &str) -> String {
    daemons.wait("a leader", || {
        let (code, stdout, _) = said(&daemons.ask(&["leader", group]));
        (code == Some(0)).then(|| stdout.trim().to_owned())
    })
}

#[test]
fn leader_prints_a_name_and_its_exit_code_says_whether_somebody_leads() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let (code, stdout, stderr) = said(&daemons.ask(&["leader", "jobs"]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("nobody leads 'jobs'"), "{stderr}");
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    assert_eq!(wait_for_leader(&daemons, "jobs"), "app-1");

    let one = json(&daemons.ask(&["leader", "jobs", "-o", "json"]));
    assert_eq!(
        shape(&one),
        "campaigned_here:bool edict:null granted_for_ms:number group:string leader:string leads_for_ms:number lease_remaining_ms:null led_here:bool nearest:null state:string term:number"
    );
    assert_eq!((&one["state"], &one["leader"]), (&"leader".into(), &"app-1".into()));

    let (code, _, stderr) = said(&daemons.ask(&["leader", "job"]));
    assert_eq!(code, Some(1), "a group that was never led");
    assert!(stderr.contains("did you mean 'jobs'?"), "{stderr}");
    let nobody = daemons.ask(&["leader", "job", "-o", "json"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert_eq!((&json(&nobody)["state"], &json(&nobody)["nearest"]), (&"nobody".into(), &"jobs".into()));
}

#[test]
fn status_shows_the_cluster_and_says_whether_the_daemon_is_ready() {
    let mut daemons = HttpCluster::start(TENURE, 3, "");
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    wait_for_leader(&daemons, "jobs");
    let output = daemons.ask(&["status", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let status = json(&output);
    assert_eq!(
        shape(&status),
        "addresses:list charter:object cluster:string counts:object epoch:number groups:list groups_idle:number groups_total:number is_member:bool lease_ms:number led:number members:list name:string not_ready:list ready:bool role:string silent_for_ms:null terms:object uptime_ms:number version:string"
    );
    assert_eq!(shape(&status["charter"]).split(' ').next(), Some("changing:bool"));
    assert_eq!(status["members"].as_array().unwrap().len(), 3);
    let me = &status["members"][0];
    assert_eq!(
        shape(me),
        "address:string answers:bool clock_trusted:bool condemned:bool heard_ago_ms:null me:bool name:string \
         round_trip_us:null store:string"
    );
    let (_, table, _) = said(&daemons.ask(&["status"]));
    for word in ["n1", "n2", "n3", "majority", "jobs", "app-1", "ready"] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }

    // Alone of three: alive, not ready, and the exit code says so.
    daemons.kill(1);
    daemons.kill(2);
    let endpoint = format!("http://{}", daemons.http[0]);
    let (stdout, verbose) = daemons.wait("a daemon that is not ready", || {
        let (code, stdout, _) = said(&daemons.ask(&["status", "--endpoint", &endpoint]));
        (code == Some(1)).then(|| (stdout, get(daemons.http[0], "/readyz?verbose").unwrap()))
    });
    assert!(stdout.contains("not ready: it reaches 1 of 3 members"), "{stdout}");
    assert!(
        verbose.starts_with("HTTP/1.1 503") && verbose.contains("[-] quorum it reaches 1 of 3"),
        "{verbose}"
    );
    assert!(verbose.contains("[+] store ok"), "{verbose}");
    assert!(get(daemons.http[0], "/livez").unwrap().starts_with("HTTP/1.1 200"), "it lives");
}

#[test]
fn verify_says_for_how_long_it_is_certain() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let (code, stdout, stderr) = said(&daemons.ask(&["verify", "jobs"]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("no leader of 'jobs' answered"), "{stderr}");
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    wait_for_leader(&daemons, "jobs");
    let verified = daemons.wait("a certain leader", || {
        let output = daemons.ask(&["verify", "jobs", "--for", "100ms", "-o", "json"]);
        (output.status.code() == Some(0)).then(|| json(&output))
    });
    assert_eq!(
        shape(&verified),
        "certain_for_ms:number certain_until_boottime_ns:number group:string leader:string term:number"
    );
    assert_eq!(verified["leader"], "app-1");
    assert!(verified["certain_for_ms"].as_u64().unwrap() <= 100, "{verified}");
}

/// A command whose lines are read as they come.
struct Watcher {
    child: Child,
    lines: Receiver<String>,
}

impl Watcher {
    fn start(daemons: &HttpCluster, words: &[&str]) -> Self {
        let mut child =
            daemons.asking(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The first line that will do.
    fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what} was not told"));
            let value: Value = serde_json::from_str(&line).expect("each line is one object");
            if wanted(&value) {
                return value;
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn what_is_ordered_of_a_leader_is_done_by_it_and_watchers_hear_of_it() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    assert_eq!(wait_for_leader(&daemons, "jobs"), "app-1");
    applications.start(&daemons, "app-2", "jobs");
    let watcher = Watcher::start(&daemons, &["leader", "jobs", "--watch", "-o", "json"]);
    let first = watcher.until("the leader", |sight| sight["event"] == "leader");
    assert_eq!(shape(&first), "edict:null event:string group:string leader:string term:number");

    let proclaimed = json(&daemons.ask(&["proclaim", "jobs", "at 10.0.0.7", "-o", "json"]));
    assert_eq!(shape(&proclaimed), "group:string leader:string term:number token:string");
    let edict = watcher.until("the edict", |sight| sight["event"] == "edict");
    assert_eq!(shape(&edict["edict"]), "hex:null number:number term:number text:string token:string");
    assert_eq!(
        (&edict["edict"]["text"], &edict["edict"]["token"]),
        (&"at 10.0.0.7".into(), &proclaimed["token"])
    );

    let handed = daemons.wait("a hand-over", || {
        let output = daemons.ask(&["transfer", "jobs", "--to", "app-2", "-o", "json"]);
        (output.status.code() == Some(0)).then(|| json(&output))
    });
    assert_eq!(
        (shape(&handed).as_str(), &handed["leader"]),
        ("group:string leader:string new_term:number term:number token:null", &"app-1".into())
    );
    assert!(handed["new_term"].as_u64() > handed["term"].as_u64(), "{handed}");
    let next = watcher.until("the next leader", |sight| sight["leader"] == "app-2");
    assert!(next["term"].as_u64() > first["term"].as_u64(), "{next}");

    let (code, stdout, stderr) = said(&daemons.ask(&["resign", "jobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("app-2 has resigned"), "{stdout}");
    watcher.until("a leader after that", |sight| {
        sight["event"] == "leader" && sight["term"].as_u64() > next["term"].as_u64()
    });
    let resigned = json(&daemons.ask(&["resign", "jobs", "-o", "json"]));
    assert_eq!(shape(&resigned), "group:string leader:string term:number token:null");

    let (code, _, stderr) = said(&daemons.ask(&["transfer", "jobs", "--to", "nowhere"]));
    assert_eq!(code, Some(1), "{stderr}");
    for words in [["resign", "nobodys"].as_slice(), &["proclaim", "nobodys", "x"]] {
        let (code, stdout, stderr) = said(&daemons.ask(words));
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains("no leader of 'nobodys'"), "{stderr}");
    }
}

#[test]
fn a_watcher_goes_on_with_another_daemon_when_one_ends() {
    let mut daemons = HttpCluster::start(TENURE, 3, "");
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    wait_for_leader(&daemons, "jobs");
    let watcher = Watcher::start(&daemons, &["leader", "jobs", "--watch", "-o", "json"]);
    watcher.until("the leader", |sight| sight["event"] == "leader");
    daemons.kill(0);
    daemons.wait("something proclaimed", || {
        daemons.ask(&["proclaim", "jobs", "later"]).status.success().then_some(())
    });
    watcher.until("what was said later", |sight| sight["edict"]["text"] == "later");
}

/// Another token of the role admin, and the line by which a daemon accepts it.
const OTHER: &str =
    "tenure-token-1:0000000b:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER_LINE: &str =
    "0000000b admin 2bf4ad4b2902eaa4170357b49bd64621c2044820db207b4ac0b4ece363af2280 - another\n";

#[test]
fn a_refused_token_has_an_exit_code_of_its_own() {
    let daemons = HttpCluster::start(TENURE, 1, "open_reads = false\nsocket = \"http.sock\"");
    daemons.write_secret("wrong", OTHER);
    for (file, words) in [(None, "status"), (Some("wrong"), "status"), (None, "resign jobs")] {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = daemons.asking(&words);
        match file {
            Some(file) => command.env("TENURE_TOKEN_FILE", daemons.path(file)),
            None => command.env_remove("TENURE_TOKEN_FILE"),
        };
        let (code, stdout, stderr) = said(&command.output().unwrap());
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(77), "", 1), "{stderr}");
        assert!(stderr.contains("token_file"), "{stderr}");
    }
    let output = daemons.asking(&["status"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // By the daemon's own file nothing else is needed: it names the socket.
    let output = TENURE.command().args(["status", "-c"]).arg(daemons.file(0)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Has a daemon read its settings again, and waits until it has said what came of it for the
/// `count`th time.
fn read_again(daemons: &HttpCluster, count: usize, event: &str) {
    let pid = Pid::from_child(daemons.children[0].as_ref().unwrap());
    kill_process(pid, Signal::HUP).unwrap();
    daemons.wait(event, || {
        let log = fs::read_to_string(daemons.path("n1.log")).unwrap();
        (log.matches(&format!("event={event} ")).count() == count).then_some(())
    });
}

#[test]
fn a_daemon_that_is_told_so_reads_its_tokens_again() {
    let daemons = HttpCluster::start(TENURE, 1, "open_reads = false");
    daemons.write_secret("next", OTHER);
    let status = |file: &str| {
        let output = daemons.asking(&["status"]).env("TENURE_TOKEN_FILE", daemons.path(file)).output();
        output.unwrap().status.code()
    };
    assert_eq!((status("token"), status("next")), (Some(0), Some(77)));
    daemons.write_secret("tokens", "0000000b root\n");
    read_again(&daemons, 1, "reload_failed");
    assert_eq!(status("token"), Some(0), "a list that cannot be read changes nothing");
    daemons.write_secret("tokens", OTHER_LINE);
    read_again(&daemons, 1, "reloaded");
    assert_eq!((status("token"), status("next")), (Some(77), Some(0)));
}

/// An authority, a certificate for 127.0.0.1 and one for a client, in `folder`.
fn make_certificates(folder: &Path) {
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    write("ca.pem", authority.pem());
    for (name, host) in [("server", "127.0.0.1"), ("client", "operator")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        write(&format!("{name}.pem"), params.signed_by(&key, &authority).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
    // Somebody else's, by no authority that we know.
    let key = KeyPair::generate().unwrap();
    let stranger = CertificateParams::new(vec!["operator".to_owned()]).unwrap().self_signed(&key).unwrap();
    write("stranger.pem", stranger.pem());
    write("stranger.key", key.serialize_pem());
}

/// Asks over TLS with the settings of `[client]`.
fn ask_tls(daemons: &HttpCluster, client: &str, words: &[&str]) -> Output {
    let text = format!("[client]\nendpoints = [\"https://{}\"]\n{client}\n", daemons.http[0]);
    fs::write(daemons.path("client.toml"), text).unwrap();
    TENURE.command().args(words).arg("-c").arg(daemons.path("client.toml")).output().unwrap()
}

/// The answer to a GET over TLS, by somebody who knows the authority and has no certificate.
fn get_tls(daemons: &HttpCluster, path: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(daemons.path("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(session, TcpStream::connect(daemons.http[0]).unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // That the other side closed without a word is no matter.
    String::from_utf8(answer).unwrap()
}

fn wait_for_tls(daemons: &HttpCluster, client: &str) {
    daemons.wait("a daemon that is ready", || {
        (ask_tls(daemons, client, &["status"]).status.code() == Some(0)).then_some(())
    });
}

#[test]
fn over_tls_the_daemon_must_be_known() {
    let mut daemons = HttpCluster::found(TENURE, 1, "tls_cert = \"server.pem\"\ntls_key = \"server.key\"");
    make_certificates(daemons.cluster.dir.path());
    daemons.run(0);
    wait_for_tls(&daemons, "ca = \"ca.pem\"");
    let (code, _, stderr) = said(&ask_tls(&daemons, "ca = \"stranger.pem\"", &["status"]));
    assert_eq!(code, Some(69), "{stderr}");
    let why = "the daemon's certificate is refused: no authority that is trusted here has signed it";
    assert!(stderr.contains(why) && stderr.contains("`ca` under [client]"), "{stderr}");
    let (code, _, stderr) = said(&daemons.ask(&["status"]));
    assert_eq!((code, stderr.lines().count()), (Some(69), 1), "without TLS nobody answers: {stderr}");
}

#[test]
fn a_daemon_that_is_told_so_reads_its_certificate_again() {
    let mut daemons = HttpCluster::found(TENURE, 1, "tls_cert = \"server.pem\"\ntls_key = \"server.key\"");
    make_certificates(daemons.cluster.dir.path());
    daemons.run(0);
    wait_for_tls(&daemons, "ca = \"ca.pem\"");
    fs::copy(daemons.path("ca.pem"), daemons.path("past.pem")).unwrap();
    make_certificates(daemons.cluster.dir.path()); // By another authority.
    let code = |ca: &str| ask_tls(&daemons, &format!("ca = \"{ca}\""), &["status"]).status.code();
    assert_eq!((code("past.pem"), code("ca.pem")), (Some(0), Some(69)));
    read_again(&daemons, 1, "reloaded");
    assert_eq!((code("past.pem"), code("ca.pem")), (Some(69), Some(0)));
    daemons.write_secret("server.key", "no key");
    read_again(&daemons, 1, "reload_failed");
    assert_eq!(code("ca.pem"), Some(0), "a key that cannot be read changes nothing");
}

#[test]
fn with_mutual_tls_only_probes_need_no_certificate() {
    let extra = "tls_cert = \"server.pem\"\ntls_key = \"server.key\"\ntls_client_ca = \"ca.pem\"";
    let mut daemons = HttpCluster::found(TENURE, 1, extra);
    make_certificates(daemons.cluster.dir.path());
    daemons.run(0);
    let certified = "ca = \"ca.pem\"\ncert = \"client.pem\"\nkey = \"client.key\"";
    wait_for_tls(&daemons, certified);
    let (code, _, stderr) = said(&ask_tls(&daemons, "ca = \"ca.pem\"", &["status"]));
    assert_eq!(code, Some(77), "{stderr}");
    assert!(stderr.contains("client.cert"), "{stderr}");
    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/status", 401)] {
        let answer = get_tls(&daemons, path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    let stranger = "ca = \"ca.pem\"\ncert = \"stranger.pem\"\nkey = \"stranger.key\"";
    let (code, _, stderr) = said(&ask_tls(&daemons, stranger, &["status"]));
    assert_eq!(code, Some(69), "a certificate of nobody's is refused by TLS itself: {stderr}");
    let (code, _, stderr) = said(&ask_tls(&daemons, "ca = \"ca.pem\"\ncert = \"client.pem\"", &["status"]));
    assert_eq!((code, stderr.contains("belong together")), (Some(78), true), "{stderr}");
}

#[test]
fn a_certificate_has_the_role_of_a_name_in_it_and_reads_without_one() {
    let tls = "tls_cert = \"server.pem\"\ntls_key = \"server.key\"\ntls_client_ca = \"ca.pem\"";
    let certified = "ca = \"ca.pem\"\ncert = \"client.pem\"\nkey = \"client.key\"";
    for (roles, resign, remove, status) in [
        ("", 77, 77, 0),
        ("roles = { \"DNS=operator\" = \"operate\" }", 1, 77, 0),
        ("roles = { \"DNS=operator\" = \"admin\" }", 1, 2, 0),
        ("roles = { \"DNS=operator\" = \"none\" }", 77, 77, 77),
    ] {
        let mut daemons = HttpCluster::found(TENURE, 1, &format!("{tls}\n{roles}"));
        make_certificates(daemons.cluster.dir.path());
        daemons.run(0);
        daemons.wait("a daemon that listens", || TcpStream::connect(daemons.http[0]).ok());
        for (words, code) in [(vec!["resign", "jobs"], resign), (vec!["members", "remove", "n9"], remove)] {
            let (said_code, _, stderr) = said(&ask_tls(&daemons, certified, &words));
            assert_eq!(said_code, Some(code), "{roles} {words:?}: {stderr}");
            assert!(code != 77 || stderr.contains("certificate:CN="), "{stderr}");
        }
        let (code, _, stderr) = said(&ask_tls(&daemons, certified, &["members", "list"]));
        assert_eq!(code, Some(status), "{roles}: {stderr}");
    }
}

#[test]
fn a_daemon_that_others_could_reach_without_a_token_does_not_start() {
    let daemons = HttpCluster::found(TENURE, 1, "");
    let text = fs::read_to_string(daemons.file(0)).unwrap().replace("tokens_file = \"tokens\"\n", "");
    fs::write(daemons.file(0), text).unwrap();
    let run = |http: &str| {
        TENURE.command().args(["node", "--http", http, "-c"]).arg(daemons.file(0)).output().unwrap()
    };
    for http in ["0.0.0.0:0", "[::]:0"] {
        let (code, _, stderr) = said(&run(http));
        assert_eq!(code, Some(78), "{stderr}");
        let line = stderr.lines().find(|line| line.starts_with("tenure: ")).unwrap();
        for word in ["daemon.tokens_file", "tls_client_ca", "127.0.0.1"] {
            assert!(line.contains(word), "{word} is not in: {line}");
        }
    }
}

#[test]
fn a_port_that_is_taken_is_told_with_its_setting() {
    let daemons = HttpCluster::found(TENURE, 1, "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let http = taken.local_addr().unwrap().to_string();
    let output =
        TENURE.command().args(["node", "--http", &http, "-c"]).arg(daemons.file(0)).output().unwrap();
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(78), "{stderr}");
    let line = stderr.lines().find(|line| line.starts_with("tenure: ")).unwrap();
    assert!(line.contains("daemon.http") && line.contains(&http), "{line}");
}

#[test]
fn without_a_daemon_to_ask_every_command_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 6] = [
        &["leader", "jobs"],
        &["status"],
        &["verify", "jobs"],
        &["proclaim", "jobs", "x"],
        &["resign", "jobs"],
        &["transfer", "jobs", "--to", "a"],
    ];
    for words in commands {
        let (code, stdout, stderr) =
            said(&TENURE.command().args(words).current_dir(folder.path()).output().unwrap());
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(78), "", 1), "{words:?}: {stderr}");
        assert!(stderr.contains("--endpoint") && stderr.contains("tenure up"), "{stderr}");
        let gone = TENURE
            .command()
            .args(words)
            .args(["--endpoint", "http://127.0.0.1:1"])
            .current_dir(folder.path())
            .output();
        let (code, stdout, stderr) = said(&gone.unwrap());
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(69), "", 1), "{words:?}: {stderr}");
        assert!(stderr.contains("http://127.0.0.1:1 (Connection refused)"), "{stderr}");
    }
    let (code, _, stderr) = said(&TENURE.command().args(["leader", "no good"]).output().unwrap());
    assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
}

#[test]
fn the_sidecar_answers_on_a_port_of_its_own() {
    let mut daemons = HttpCluster::found(TENURE, 1, "");
    let port = free_addresses(1)[0].port();
    let mut text = fs::read_to_string(daemons.file(0)).unwrap();
    text += &format!("sidecar_port = {port}\n");
    fs::write(daemons.file(0), text).unwrap();
    daemons.run(0);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    daemons.wait("the sidecar", || get(address, "/jobs").filter(|answer| answer.ends_with(r#"{"name":""}"#)));
    let mut applications = Applications::new();
    applications.start(&daemons, "app-1", "jobs");
    daemons
        .wait("the name", || get(address, "/jobs").filter(|answer| answer.ends_with(r#"{"name":"app-1"}"#)));
    assert!(get(address, "/").unwrap().starts_with("HTTP/1.1 400"), "which group?");
}

/// A process that is ended when the test does.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn in_a_command_of_run_the_runner_itself_is_asked() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let mut text = format!(
        "name = \"client\"\nrole = \"candidate\"\nkey = \"{}\"\ncluster_id = \"{}\"\n",
        daemons.cluster.key.reveal(),
        daemons.cluster.id
    );
    for (index, address) in daemons.cluster.addresses.iter().enumerate() {
        text += &format!("[[cluster.members]]\nname = \"{}\"\naddress = \"{address}\"\n", numbered(index));
    }
    fs::write(daemons.path("client.toml"), text).unwrap();
    // No daemon is named anywhere: what is answered, the runner answers.
    let script = "\"$0\" proclaim jobs 'from within' -o json > said; \"$0\" proclaim others x; echo $? > code; \"$0\" resign jobs > resigned; sleep 60";
    let child = TENURE
        .command()
        .args(["run", "-c", "client.toml", "-g", "jobs", "--once", "--", "sh", "-c", script])
        .arg(TENURE.0)
        .current_dir(daemons.cluster.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(daemons.path("run.log")).unwrap())
        .spawn();
    let mut runner = Ended(child.unwrap());
    let read = |name: &str| fs::read_to_string(daemons.path(name)).ok().filter(|text| text.ends_with('\n'));
    let code = daemons.wait("the command's answer", || read("code"));
    assert_eq!(code.trim(), "78", "another group's runner is not this one, and no daemon is known");
    let done: Value = serde_json::from_str(&read("said").unwrap()).unwrap();
    assert_eq!(shape(&done), "group:string leader:string term:number token:string");
    let known = daemons.wait("what was proclaimed", || {
        let group = json(&daemons.ask(&["leader", "jobs", "-o", "json"]));
        group["edict"]["text"].is_string().then_some(group)
    });
    assert_eq!((&known["edict"]["text"], &known["edict"]["token"]), (&"from within".into(), &done["token"]));
    daemons.wait("the end of the runner, which has resigned", || runner.0.try_wait().unwrap());
}
