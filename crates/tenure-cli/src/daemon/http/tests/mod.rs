//! A node and its server in one process, and a client that asks them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tenure::{ClusterId, ClusterKey, Node, Term};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Server, serve};
use crate::api::{self, Code};
use crate::client::{Client, Trouble};
use crate::settings::Settings;
use crate::tokens::{List, Role, Token};

mod doors;
mod lint;
mod pressure;
mod schema;

/// A cluster of one, which is its own quorum.
struct Daemon {
    node: Node,
    server: Server,
    settings: Settings,
    folder: TempDir,
}

impl Daemon {
    async fn start(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), extra);
        let config = settings.node().unwrap();
        Node::found(&config, ClusterId(7), Term(0)).unwrap();
        let node = Node::start(config).await.unwrap();
        node.ready().await.unwrap();
        let server = serve(&node, &settings).await.unwrap();
        Self { node, server, settings, folder }
    }

    fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    fn client(&self) -> Client {
        let url = format!("http://{}", self.address());
        Client::new(&self.settings, &[url], Duration::from_secs(5)).unwrap()
    }

    /// The answer to a request as it is written, head and body.
    async fn raw(&self, request: &str) -> String {
        raw(self.address(), request).await
    }

    /// The metrics as OpenMetrics text.
    async fn metrics(&self) -> String {
        let accept = "Accept: application/openmetrics-text";
        let head =
            format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\nConnection: close\r\n\r\n");
        self.raw(&head).await
    }

    async fn get(&self, path: &str) -> String {
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await
    }

    /// The token of its client.
    fn token(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("token")).unwrap()
    }

    async fn end(self) {
        let deadline = Duration::from_secs(10);
        timeout(deadline, self.server.shutdown()).await.expect("a server ends when it is told to");
        timeout(deadline, self.node.shutdown()).await.expect("a node ends when it is told to");
    }
}

async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8(answer).unwrap()
}

fn settings(folder: &Path, extra: &str) -> Settings {
    let key = ClusterKey::generate();
    let text = format!(
        r#"
name = "n1"
key = "{}"
listen = ["127.0.0.1:0"]
store = "store"
memory = "memory"

[[cluster.members]]
name = "n1"
address = "127.0.0.1:7400"

[client]
token_file = "token"

[daemon]
http = "127.0.0.1:0"
tokens_file = "tokens"
{extra}
"#,
        key.reveal()
    );
    std::fs::create_dir_all(folder.join("memory")).unwrap();
    let token = Token::draw();
    let list = List(vec![token.listed(Role::Admin, None, "of the test")]);
    for (name, text) in [("token", token.reveal().to_owned()), ("tokens", list.file())] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    Settings::read(&folder.join("tenure.toml"), text).unwrap()
}

#[tokio::test]
async fn a_daemon_tells_its_status() {
    let daemon = Daemon::start("").await;
    let status: api::Status = daemon.client().get("/v1/status").await.unwrap();
    assert_eq!((status.name.as_str(), status.role.as_str()), ("n1", "member"));
    assert!(status.ready && status.is_member && status.not_ready.is_empty(), "{status:?}");
    assert_eq!(status.charter.unwrap().quorums, "majority");
    assert!(status.members.iter().all(|member| member.name == "n1" && member.me && member.answers));
    assert_eq!(status.members.len(), 1);
    daemon.end().await;
}

#[tokio::test]
async fn who_leads_a_group_is_told_whatever_is_in_its_name() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let path = api::group_path("app/jobs:nightly", "");
    let before: api::Group = client.get(&path).await.unwrap();
    assert_eq!((before.state, &before.leader), (api::State::Nobody, &None));
    let groups: api::Groups = client.get("/v1/groups").await.unwrap();
    assert_eq!(groups.total, 0, "what was only asked about is no group yet");
    let tenure = daemon.node.campaign("app/jobs:nightly").await.unwrap();
    tenure.proclaim(b"hello").unwrap();
    let told = async {
        loop {
            let group: api::Group = client.get(&path).await.unwrap();
            if group.edict.is_some() && group.led_here {
                return group;
            }
        }
    };
    let after = timeout(Duration::from_secs(10), told).await.expect("what is proclaimed is heard");
    assert_eq!((after.state, after.leader.as_deref()), (api::State::Leader, Some("n1")));
    assert_eq!(after.term, Some(tenure.term().0));
    assert!(after.led_here && after.lease_remaining_ms.is_some() && after.granted_for_ms.is_some());
    assert_eq!(after.edict.unwrap().text.as_deref(), Some("hello"));
    let groups: api::Groups = client.get("/v1/groups").await.unwrap();
    assert_eq!(groups.groups.iter().filter(|group| group.led_here).count(), 1);
    daemon.end().await;
}

#[tokio::test]
async fn the_list_of_groups_is_told_in_parts() {
    let daemon = Daemon::start("").await;
    let mut held = Vec::new();
    for group in ["a", "b", "c", "d", "e"] {
        held.push(daemon.node.campaign(group).await.unwrap());
    }
    let client = daemon.client();
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let part: api::Groups = client.get(&format!("/v1/groups?limit=2&after={after}")).await.unwrap();
        assert!(part.total == 5 && part.groups.len() <= 2, "{part:?}");
        names.extend(part.groups.into_iter().map(|group| group.group));
        match part.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert!(client.get::<api::Groups>("/v1/groups?limt=2").await.unwrap_err().is(Code::BadRequest));
    daemon.end().await;
}

#[tokio::test]
async fn readiness_is_not_leadership() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let nobody: Trouble = client.get::<api::Leader>("/leader/jobs").await.unwrap_err();
    assert!(matches!(nobody, Trouble::Said { status: 503, .. }), "{nobody:?}");
    let ready = daemon.get("/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "nobody leads, and the node is ready: {ready}");
    let tenure = daemon.node.campaign("jobs").await.unwrap();
    let told = async {
        loop {
            if let Ok(leader) = client.get::<api::Leader>("/leader/jobs").await {
                return leader;
            }
        }
    };
    let leader = timeout(Duration::from_secs(10), told).await.expect("that it leads is heard");
    assert_eq!((leader.leader.as_deref(), leader.here), (Some("n1"), true));
    assert!(daemon.get("/readyz").await.starts_with("HTTP/1.1 200"));
    drop(tenure);
    daemon.end().await;
}

#[tokio::test]
async fn a_path_for_load_balancers_takes_slashes_as_they_are() {
    let daemon = Daemon::start("").await;
    let _tenure = daemon.node.campaign("app/jobs").await.unwrap();
    for path in ["/leader/app/jobs", "/leader/app%2Fjobs"] {
        let answer = daemon.get(path).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains(r#""leader":"n1""#),
            "{path}: {answer}"
        );
    }
    daemon.end().await;
}

#[tokio::test]
async fn each_check_of_readiness_has_a_name() {
    let daemon = Daemon::start("").await;
    let verbose = daemon.get("/readyz?verbose").await;
    for check in ["store", "clock", "members", "silence", "quorum"] {
        assert!(verbose.contains(&format!("[+] {check} ok\n")), "{verbose}");
    }
    assert!(verbose.ends_with("ready\n"));
    daemon.end().await;
}

#[tokio::test]
async fn a_node_that_has_stopped_is_neither_alive_nor_ready_and_says_why() {
    let daemon = Daemon::start("").await;
    daemon.node.clone().shutdown().await;
    for path in ["/livez", "/readyz", "/readyz?verbose"] {
        let answer = daemon.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("shut down"), "{path}: {answer}");
    }
    assert!(daemon.client().get::<api::Status>("/v1/status").await.unwrap_err().is(Code::Stopped));
    daemon.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_the_same_form() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    assert!(client.get::<api::Status>("/v2/status").await.unwrap_err().is(Code::NotFound));
    assert!(client.post::<api::Status>("/v1/status", &()).await.unwrap_err().is(Code::BadMethod));
    assert!(client.get::<api::Group>("/v1/groups/a%20b").await.unwrap_err().is(Code::BadRequest));
    let misspelt = serde_json::json!({ "for": 7 });
    let answer = client.post::<api::Verified>("/v1/groups/a/verify", &misspelt).await.unwrap_err();
    assert!(answer.is(Code::BadRequest), "{answer:?}");
    daemon.end().await;
}

#[tokio::test]
async fn what_a_page_of_another_site_could_send_is_refused() {
    let daemon = Daemon::start("").await;
    let plain = format!(
        "POST /v1/groups/a/resign HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
        daemon.token()
    );
    let answer = daemon.raw(&plain).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("application/json"), "{answer}");
    let rebound = "GET /v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let answer = daemon.raw(rebound).await;
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("localhost"), "{answer}");
    daemon.end().await;
}

#[tokio::test]
async fn bodies_and_headers_have_limits() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let long = api::ProclaimOrder { text: "x".repeat(100_000), within_ms: None };
    let answer = client.post::<api::Done>("/v1/groups/a/proclaim", &long).await.unwrap_err();
    assert!(answer.is(Code::TooLarge), "{answer:?}");
    let header = format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "y".repeat(100_000));
    let answer = daemon.raw(&header).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    daemon.end().await;
}

#[tokio::test]
async fn a_header_that_does_not_come_to_its_end_is_waited_for_no_longer_than_ten_seconds() {
    let daemon = Daemon::start("").await;
    // The text ends when the server closes the connection, or the test fails after twenty seconds.
    let answer = daemon.raw("GET /livez HTTP/1.1\r\nHost: ").await;
    assert!(!answer.contains("200 OK"), "{answer}");
    daemon.end().await;
}

#[tokio::test]
async fn a_watcher_hears_of_a_leader_of_its_edicts_and_of_its_end() {
    let daemon = Daemon::start("").await;
    let mut events = daemon.client().events("/v1/groups/jobs/watch").await.unwrap();
    let story = async {
        let tenure = daemon.node.campaign("jobs").await.unwrap();
        let mut heard = Vec::new();
        let mut tenure = Some(tenure);
        while let Some(event) = events.next().await.unwrap() {
            let sight: api::Sight = event.json().unwrap();
            assert_eq!(event.name, sight.event.name());
            match sight.event {
                api::Seen::Leader => drop(tenure.as_ref().unwrap().proclaim(b"one").unwrap()),
                api::Seen::Edict => drop(tenure.take()),
                api::Seen::Nobody if heard.contains(&"edict") => return heard,
                _ => {}
            }
            heard.push(sight.event.name());
        }
        heard
    };
    let heard = timeout(Duration::from_secs(20), story).await.expect("all of it is heard");
    assert!(heard.ends_with(&["leader", "edict"]), "{heard:?}");
    daemon.end().await;
}

#[tokio::test]
async fn the_whole_status_is_told_when_it_changes_and_streams_end_with_the_server() {
    let daemon = Daemon::start("").await;
    let mut events = daemon.client().events("/v1/watch").await.unwrap();
    let first: api::Status = events.next().await.unwrap().unwrap().json().unwrap();
    assert_eq!((first.name.as_str(), first.led), ("n1", 0));
    let _tenure = daemon.node.campaign("jobs").await.unwrap();
    let led = async {
        loop {
            let status: api::Status = events.next().await.unwrap().unwrap().json().unwrap();
            if status.led == 1 && !status.groups.is_empty() {
                return status;
            }
        }
    };
    let status = timeout(Duration::from_secs(10), led).await.expect("the change is told");
    assert_eq!(status.groups[0].leader.as_deref(), Some("n1"));
    daemon.end().await;
    let rest = async { while let Ok(Some(_)) = events.next().await {} };
    timeout(Duration::from_secs(5), rest).await.expect("the stream has ended");
}

#[tokio::test]
async fn a_verified_leader_is_certain_for_a_while_and_nobody_is_not() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let path = api::group_path("jobs", "/verify");
    let order = api::VerifyOrder { for_ms: Some(90) };
    let nobody = client.query::<api::Verified>(&path, &order).await.unwrap_err();
    assert!(nobody.is(Code::NoLeader), "{nobody:?}");
    let tenure = daemon.node.campaign("jobs").await.unwrap();
    let verified: api::Verified = client.query(&path, &order).await.unwrap();
    assert_eq!((verified.leader.as_str(), verified.term), ("n1", tenure.term().0));
    assert!(verified.certain_for_ms <= 90, "never more than was asked for: {verified:?}");
    daemon.end().await;
}

#[tokio::test]
async fn the_sidecar_names_the_leader_on_a_port_of_its_own() {
    let daemon = Daemon::start("sidecar_port = 0\nsidecar_group = \"jobs\"").await;
    let address = daemon.server.addresses()[1];
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(raw(address, &ask("/")).await.ends_with(r#"{"name":""}"#), "nobody yet");
    let _tenure = daemon.node.campaign("jobs").await.unwrap();
    let told = async { while raw(address, &ask("/")).await.ends_with(r#"{"name":""}"#) {} };
    timeout(Duration::from_secs(10), told).await.expect("that it leads is heard");
    for path in ["/", "/anything?x=1"] {
        let answer = raw(address, &ask(path)).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"name":"n1"}"#), "{answer}");
    }
    let other = raw(address, "POST / HTTP/1.1\r\nHost: [::1]:4040\r\nConnection: close\r\n\r\n").await;
    assert!(other.starts_with("HTTP/1.1 405"), "{other}");
    daemon.end().await;
}

#[tokio::test]
async fn the_sidecar_does_not_answer_a_page_whose_name_was_made_to_lead_here() {
    let daemon = Daemon::start("sidecar_port = 0\nsidecar_group = \"jobs\"").await;
    let address = daemon.server.addresses()[1];
    for (host, status) in
        [("evil.example", "403"), ("localhost.evil.example:4040", "403"), ("127.0.0.1:4040", "200")]
    {
        let answer =
            raw(address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    daemon.end().await;
}

#[tokio::test]
async fn the_page_asks_nobody_else_for_anything() {
    let daemon = Daemon::start("").await;
    let page = daemon.get("/").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains(" src="), "{page}");
    daemon.end().await;
}

#[tokio::test]
async fn the_next_daemon_is_asked_when_one_is_gone_or_hangs() {
    let daemon = Daemon::start("").await;
    // Accepts nothing: connections stay in the queue, and nobody ever answers.
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let urls =
        [gone, hangs.local_addr().unwrap(), daemon.address()].map(|address| format!("http://{address}"));
    let client = Client::new(&daemon.settings, &urls, Duration::from_secs(6)).unwrap();
    let status: api::Status = client.get("/v1/status").await.unwrap();
    assert_eq!(status.name, "n1");
    // An order that was sent is not given a second time: the one that hangs may have it.
    let order = api::ResignOrder::default();
    let client = Client::new(&daemon.settings, &urls, Duration::from_secs(1)).unwrap();
    let trouble = client.post::<api::Done>("/v1/groups/jobs/resign", &order).await.unwrap_err();
    let failure = crate::failure::Failure::from(trouble);
    assert!(failure.code() == 69 && failure.to_string().contains("may have been done or not"), "{failure}");
    daemon.end().await;
}

#[tokio::test]
async fn where_nobody_answers_the_failure_names_all_that_were_asked() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), "");
    let client = Client::new(&settings, &["http://127.0.0.1:1".to_owned()], Duration::from_secs(2)).unwrap();
    let failure = crate::failure::Failure::from(client.get::<api::Status>("/v1/status").await.unwrap_err());
    let text = failure.to_string();
    assert!(failure.code() == 69 && text.contains("http://127.0.0.1:1 (Connection refused)"), "{text}");
    assert!(text.contains("tenure up") && text.contains("--endpoint"), "{text}");
    for wrong in ["127.0.0.1:7401", "ftp://x", "http://", "http://h:1/?q"] {
        let failure = Client::new(&settings, &[wrong.to_owned()], Duration::from_secs(2)).unwrap_err();
        assert!(failure.code() == 78 && failure.to_string().contains(wrong), "{failure}");
    }
}
