//! `tenure up`: a whole cluster on this machine.
//!
//! Every node is a process of its own, as it would be in earnest: one can be killed, stopped or
//! started again by itself. This process founds the cluster if there is none, and looks after the
//! nodes as a service manager does: they tell it by `sd_notify` when they are ready. However it
//! ends, they end with it.

mod cluster;
mod follow;
mod nodes;
mod notices;
mod ports;
mod teller;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep_until};

use crate::api::access::{Link, LinkOrder};
use crate::arguments::Common;
use crate::client::Client;
use crate::daemon::signals::{End, Signals};
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};
use crate::settings::length;
use cluster::Cluster;
use nodes::{Nodes, Note};
use teller::Teller;

/// How long nodes may take to become ready before that is said. After a reboot they are silent for
/// about a longest lease.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a node may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// How long nodes may take to end before they are killed.
const FAREWELL: Duration = Duration::from_secs(10);

/// Run a whole cluster on this machine: the place to start.
#[derive(Args, Debug)]
#[command(
    after_help = "Founds a cluster in DIR, or continues the one that is there; runs its nodes, each a process of
its own, and shows who leads. Node i of n1, n2, … has UDP port BASE+2(i-1) and HTTP port
BASE+2(i-1)+1, on 127.0.0.1. Ctrl-C or TERM stops all of them; if this process is killed, they
end too. Other commands find the cluster by DIR/tenure.toml: in this folder without being told
if DIR is .tenure, else by -c FILE.

Examples:
  tenure up
  tenure up --nodes 5 --lease 500ms --dir /tmp/five --port 7500
  tenure leader jobs --watch -c /tmp/five/tenure.toml

Exit codes: 0 stopped as it was told, 2 error, 78 the folder or a port will not do, 128+N for a
second signal N"
)]
pub(crate) struct Up {
    /// How many nodes [default: 3, or what the folder has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=31))]
    nodes: Option<u16>,
    /// The folder of the cluster
    #[arg(long, value_name = "DIR", default_value = ".tenure")]
    dir: PathBuf,
    /// The first port [default: 7400, or what the folder has]
    #[arg(long, value_name = "BASE", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// δ: how long leases last [default: 2s, or what the folder has]
    #[arg(long, value_name = "D", value_parser = length)]
    lease: Option<Duration>,
}

/// The wanted shape of a new cluster, or the required shape of an old one.
#[derive(Clone, Copy, Debug)]
struct Wishes {
    nodes: Option<u16>,
    port: Option<u16>,
    lease: Option<Duration>,
}

impl Up {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        if common.config.is_some() {
            return Err(messages::up_has_no_config());
        }
        let wishes = Wishes { nodes: self.nodes, port: self.port, lease: self.lease };
        let cluster = Cluster::find_or_found(&self.dir, wishes)?;
        // Nodes are tied to the life of the thread that starts them: this one, which lives as long
        // as the process.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| messages::system_refuses("an event loop", error))?;
        runtime.block_on(attend(&cluster, &mut Teller::new(common.output)))
    }
}

/// Starts the nodes and looks after them until it is told to end.
async fn attend(cluster: &Cluster, teller: &mut Teller) -> Result<Answer, Failure> {
    let mut signals = Signals::catch()?;
    let mut nodes = Nodes::start(cluster)?;
    let waited = tokio::select! {
        waited = wait_for_all(cluster, &mut nodes, teller) => waited.map(|()| None),
        end = signals.end() => Ok(Some(end)),
    };
    let end = match waited {
        Ok(Some(end)) => Ok(end),
        Ok(None) => tokio::select! {
            failure = report(cluster, &mut nodes, teller) => Err(failure),
            end = signals.end() => Ok(end),
        },
        Err(failure) => Err(failure),
    };
    if let Ok(end) = &end {
        teller.stopping(end.name());
    }
    let by_force = stop(&mut nodes, &mut signals).await;
    end?;
    teller.stopped();
    let verdict = by_force.map_or(Verdict::Holds, |end: End| Verdict::Code(end.code()));
    Ok(Answer { verdict, ..Answer::text(String::new()) })
}

/// Waits until every member is ready. A node that ends before is a failure; one that is slow is
/// not. One that is no member any more is told of, and not waited for.
async fn wait_for_all(cluster: &Cluster, nodes: &mut Nodes, teller: &mut Teller) -> Result<(), Failure> {
    let mut look = Instant::now() + PATIENCE;
    while !nodes.all(|node| node.is_ready() || node.is_no_member()) {
        let note = tokio::select! {
            note = nodes.next() => Some(note),
            () = sleep_until(look) => None,
        };
        match note {
            Some(Note::Ended { node, how }) => {
                let words = nodes.last_words(&node, &how);
                return Err(messages::up_node_ended(node, words)
                    .with_code(how.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
            }
            Some(Note::Ready | Note::Status) => {}
            None => {
                teller.waiting(nodes);
                look += PATIENCE;
            }
        }
    }
    let link = link(cluster).await;
    teller.ready(cluster, link.as_deref());
    nodes.iter().filter(|node| node.is_no_member()).for_each(|node| teller.no_member(node.member()));
    Ok(())
}

/// The page of the first node, with a code by which a browser may ask leaders for something.
/// Without a socket there is no code: the page can be read then.
async fn link(cluster: &Cluster) -> Option<String> {
    let member = cluster.members.first()?;
    let page = || member.http.map(|http| format!("http://{http}/"));
    let settings = cluster::read(&member.file).ok()?;
    let client = Client::new(&settings, &[], ANSWER).ok()?;
    let made: Result<Link, _> = client.post("/v1/session/link", &LinkOrder {}).await;
    made.ok().and_then(|link| link.url).or_else(page)
}

/// Says what happens, for as long as any node runs.
async fn report(cluster: &Cluster, nodes: &mut Nodes, teller: &Teller) -> Failure {
    let mut changes = match follow::follow(cluster) {
        Ok(changes) => changes,
        Err(failure) => return failure,
    };
    loop {
        tokio::select! {
            Some(change) = changes.recv() => teller.leads(&change),
            note = nodes.next() => if let Note::Ended { node, how } = note {
                teller.ended(nodes, &node, how);
            },
        }
        if nodes.all(|node| !node.runs()) {
            return messages::up_nobody_left();
        }
    }
}

/// Ends all nodes, by force if they take too long or if it is asked for; says whether it was.
async fn stop(nodes: &mut Nodes, signals: &mut Signals) -> Option<End> {
    nodes.terminate();
    let deadline = Instant::now() + FAREWELL;
    let by_force = tokio::select! {
        () = nodes.ended() => return None,
        () = sleep_until(deadline) => None,
        end = signals.end() => Some(end),
    };
    nodes.kill();
    nodes.ended().await;
    by_force
}
