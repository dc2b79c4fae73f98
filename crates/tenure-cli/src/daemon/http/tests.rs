//! A node and its server in one process, and a client that asks them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tenure::{ClusterId, ClusterKey, Node, Term};

use super::{Server, serve};
use crate::api::{self, Code};
use crate::client::{Client, Trouble};
use crate::settings::Settings;

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

    async fn end(self) {
        self.server.shutdown().await;
        self.node.shutdown().await;
        drop(self.folder);
    }
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

[daemon]
http = "127.0.0.1:0"
{extra}
"#,
        key.reveal()
    );
    std::fs::create_dir_all(folder.join("memory")).unwrap();
    Settings::read(&folder.join("tenure.toml"), text).unwrap()
}

#[tokio::test]
async fn a_daemon_tells_its_status() {
    let daemon = Daemon::start("").await;
    let status: api::Status = daemon.client().get("/v1/status").await.unwrap();
    assert_eq!((status.name.as_str(), status.role.as_str()), ("n1", "member"));
    assert!(status.ready && status.is_member, "{status:?}");
    assert_eq!(status.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["n1"]);
    daemon.end().await;
}

#[tokio::test]
async fn who_leads_a_group_is_told_whatever_is_in_its_name() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let path = api::group_path("app/jobs:nightly", "");
    let before: api::Group = client.get(&path).await.unwrap();
    assert_eq!((before.state, &before.leader), (api::State::Nobody, &None));
    let tenure = daemon.node.campaign("app/jobs:nightly").await.unwrap();
    tenure.proclaim(b"hello").unwrap();
    let after = loop {
        let group: api::Group = client.get(&path).await.unwrap();
        if group.edict.is_some() {
            break group;
        }
    };
    assert_eq!((after.state, after.leader.as_deref()), (api::State::Leader, Some("n1")));
    assert_eq!(after.term, Some(tenure.term().0));
    assert_eq!(after.edict.unwrap().text.as_deref(), Some("hello"));
    daemon.end().await;
}

#[tokio::test]
async fn readiness_is_not_leadership() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let nobody: Trouble = client.get::<api::Leader>("/leader/jobs").await.unwrap_err();
    assert!(matches!(nobody, Trouble::Said { status: 503, .. }), "{nobody:?}");
    let _tenure = daemon.node.campaign("jobs").await.unwrap();
    let leader: api::Leader = client.get("/leader/jobs").await.unwrap();
    assert_eq!((leader.leader.as_deref(), leader.here), (Some("n1"), true));
    daemon.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_the_same_form() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    assert!(client.get::<api::Status>("/v2/status").await.unwrap_err().is(Code::NotFound));
    assert!(client.post::<api::Status>("/v1/status", &()).await.unwrap_err().is(Code::BadMethod));
    assert!(client.get::<api::Group>("/v1/groups/a%20b").await.unwrap_err().is(Code::BadRequest));
    daemon.end().await;
}
