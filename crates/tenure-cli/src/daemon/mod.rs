//! `tenure node`: one node of the library, with what a service needs around it.
//!
//! The node itself runs on a thread of its own ([`tenure::Node`]). Around it, on a runtime that may
//! be slow without anybody losing a lease: signals (`signals.rs`), the service manager
//! (`notify.rs`), the log (`log.rs`), HTTP (`http/`), and a look at the node every second
//! (`watch.rs`), and standbys for members that are gone (`replace.rs`).
//!
//! | it ends because | exit code |
//! |---|---|
//! | TERM or INT: it has resigned and answered what was asked | 0 |
//! | a second TERM or INT: at once | 128 + the signal |
//! | its clock or its disk cannot be trusted: it must not be started again unseen | 70 |
//! | its thread died: it may be started again | 2 |
//! | configuration, key, store, name or port must be changed first | 78 |

pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod notify;
mod replace;
pub(crate) mod signals;
mod watch;

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tenure::{Config, Node, Stopped, Term};
use tokio::time::timeout;

use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};
use crate::settings::Settings;
use crate::trust::{Flaw, Secrecy};
use http::Server;
use log::Log;
use notify::Manager;
use replace::Replacer;
use signals::{End, Signals, Told};
use watch::Watcher;

/// How long open requests are waited for when the daemon ends. Leaderships are given back at once.
const DRAIN: Duration = Duration::from_secs(5);

/// Whether the store is to be made first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Founding {
    /// It is there.
    Done,
    /// As a member that founds the cluster.
    Found {
        /// No term up to this is ever granted.
        floor: u64,
    },
    /// As a member to be.
    Join,
}

/// A daemon that is to run.
pub(crate) struct Daemon {
    /// The settings of the daemon.
    pub(crate) settings: Settings,
    /// Whether its store is to be made.
    pub(crate) founding: Founding,
    /// Reads the settings again.
    pub(crate) again: Box<dyn Fn() -> Result<Settings, Failure>>,
}

/// Ends this process when its parent ends, however that happens.
pub(crate) fn die_with(parent: i32) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| messages::system_refuses("a signal at the end of --parent-pid", error))?;
    // If it ended before, no signal comes any more.
    match getppid().map(Pid::as_raw_pid) {
        Some(pid) if pid == parent => Ok(()),
        _ => Err(messages::parent_gone()),
    }
}

/// Everything that a start refuses for the configuration's sake alone: without the store, the
/// network and the ports. A daemon begins with it, and `tenure config check` is it, so that both
/// say the same.
pub(crate) fn check(settings: &Settings) -> Result<Config, Failure> {
    let config = settings.node()?;
    config.check()?;
    log::filter(settings)?;
    Replacer::new(settings)?;
    http::check(settings)?;
    check_ports(settings, &config)?;
    Ok(config)
}

/// Refuses one port for two things: a node listens on its port by UDP and by TCP.
fn check_ports(settings: &Settings, config: &Config) -> Result<(), Failure> {
    let Some(http) = settings.daemon.http.filter(|http| http.port() != 0) else { return Ok(()) };
    let meets = |listen: &&SocketAddr| {
        let any = listen.ip().is_unspecified() || http.ip().is_unspecified();
        listen.port() == http.port() && (any || listen.ip() == http.ip())
    };
    match config.listen.iter().find(meets) {
        Some(listen) => Err(messages::port_wanted_twice(http, listen)),
        None => Ok(()),
    }
}

/// Refuses the file of a client: a daemon that neither grants nor serves is of no use.
fn check_role(settings: &Settings, config: &Config) -> Result<(), Failure> {
    if config.role.grants() || settings.daemon.http.is_some() {
        return Ok(());
    }
    Err(messages::file_of_client(settings.path().display(), config.role.name()))
}

impl Daemon {
    /// Runs until it is told to end, or cannot go on.
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        check_role(&self.settings, &check(&self.settings)?)?;
        let log = Log::start(&self.settings)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tenure-daemon")
            .enable_all()
            .build()
            .map_err(|error| messages::system_refuses("threads", error))?;
        let result = runtime.block_on(self.serve(&log));
        // Whatever hangs in a blocking call is not waited for.
        runtime.shutdown_background();
        result
    }

    async fn serve(self, log: &Log) -> Result<Answer, Failure> {
        let mut signals = Signals::catch()?;
        let replacer = Replacer::new(&self.settings)?;
        let node = self.start().await?;
        let server = match http::serve(&node, &self.settings).await {
            Ok(server) => server,
            Err(failure) => {
                node.shutdown().await;
                return Err(failure);
            }
        };
        let mut manager = Manager::from_environment();
        tell_secrecy(&self.settings);
        tell_started(&node, &server, &self.settings).await;
        let replacing = replacer.map(|replacer| tokio::spawn(replacer.run(node.clone())));
        let attended = self.attend((&node, &server), &mut signals, &mut manager, log).await;
        replacing.inspect(|task| task.abort());
        match attended {
            Ok(end) => {
                manager.stopping();
                leave(node, server, &mut signals, end).await
            }
            Err(why) => {
                manager.status(why.to_string());
                manager.stopping();
                Err(Failure::from(&why))
            }
        }
    }

    async fn start(&self) -> Result<Node, Failure> {
        let config = self.settings.node()?;
        self.make_store(&config)?;
        Ok(Node::start(config).await?)
    }

    fn make_store(&self, config: &Config) -> Result<(), Failure> {
        let cluster = || config.cluster.ok_or_else(messages::cluster_id_missing);
        match self.founding {
            Founding::Done => Ok(()),
            Founding::Found { floor } => Ok(Node::found(config, cluster()?, Term(floor))?),
            Founding::Join => Ok(Node::join(config, cluster()?)?),
        }
    }

    /// Does what signals ask for and looks after the node, until one of them says that this is
    /// over.
    async fn attend(
        &self,
        (node, server): (&Node, &Server),
        signals: &mut Signals,
        manager: &mut Manager,
        log: &Log,
    ) -> Result<End, Stopped> {
        let mut watcher = Watcher::new(manager.interval());
        loop {
            tokio::select! {
                biased;
                told = signals.next() => match told {
                    Told::End(end) => return Ok(end),
                    Told::Reload => {
                        manager.reloading();
                        self.reload(node, server, log);
                        if watcher.is_ready() {
                            manager.ready();
                        }
                    }
                    Told::Dump => watch::dump(node).await,
                },
                why = node.stopped() => return Err(why),
                () = watcher.next(node, manager) => {}
            }
        }
    }

    /// Reads the settings again and takes over what can change in a process that runs: what is
    /// logged, the keys, and token and certificates of HTTP. If anything is wrong, nothing changes.
    fn reload(&self, node: &Node, server: &Server, log: &Log) {
        let read = || {
            let settings = (self.again)()?;
            let config = settings.node()?;
            let renewed = server.read_again(&settings)?;
            log.reload(&settings)?;
            server.renew(renewed);
            node.set_keys(&config.key, &config.old_keys);
            Ok::<_, Failure>((settings, config))
        };
        match read() {
            Ok((settings, config)) => {
                let level = settings.daemon.log.as_deref().unwrap_or(log::USUAL);
                let key = key_id(&config);
                tracing::info!(name: "tenure.reloaded", log = level, key, old_keys = config.old_keys.len(), "settings were read again");
            }
            Err(failure) => {
                tracing::error!(name: "tenure.reload_failed", reason = %failure, "everything stays as it was");
            }
        }
    }
}

/// The short name of the key that is spoken.
fn key_id(config: &Config) -> String {
    match &config.key {
        tenure::Key::Cluster(key) => key.id().to_string(),
        tenure::Key::Scoped(key) => key.made_from().to_string(),
    }
}

/// Warns of secrets that others than the owner can read.
fn tell_secrecy(settings: &Settings) {
    for (key, path, secrecy) in settings.secrecy() {
        if let Secrecy::Shared(flaw) | Secrecy::Broken(flaw) = secrecy {
            let (file, Flaw { what, advice }) = (path.display(), flaw);
            tracing::warn!(name: "tenure.secret_exposed", key, %file, reason = what, advice, "others can read a secret");
        }
    }
}

async fn tell_started(node: &Node, server: &Server, settings: &Settings) {
    let list = |addresses: &[std::net::SocketAddr]| {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    let cluster = node.status().await.map(|status| status.cluster.to_string()).unwrap_or_default();
    tracing::info!(
        name: "tenure.started",
        node = %node.name(),
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        cluster,
        listen = list(node.addresses()),
        http = list(server.addresses()),
        socket = server.socket().map(|path| path.display().to_string()),
        config = %settings.path().display(),
        "the node runs"
    );
}

/// Gives back what is led here, answers what was asked, and ends; at once if it is told so a second
/// time.
async fn leave(node: Node, server: Server, signals: &mut Signals, end: End) -> Result<Answer, Failure> {
    let name = node.name().clone();
    tracing::info!(name: "tenure.stopping", node = %name, signal = end.name(), "resigns and ends");
    let drain = async { tokio::join!(node.shutdown(), timeout(DRAIN, server.shutdown())) };
    let verdict = drain_unless(drain, signals.end()).await;
    tracing::info!(name: "tenure.ended", node = %name, in_time = verdict == Verdict::Holds, "has ended");
    Ok(Answer { verdict, ..Answer::text(String::new()) })
}

/// Waits for the one, or for the other, which cuts it short.
async fn drain_unless<T>(drain: impl Future<Output = T>, again: impl Future<Output = End>) -> Verdict {
    tokio::select! {
        biased;
        _ = drain => Verdict::Holds,
        end = again => Verdict::Code(end.code()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_second_signal_ends_a_daemon_that_drains() {
        assert_eq!(drain_unless(pending::<()>(), ready(End::Term)).await, Verdict::Code(143));
        assert_eq!(drain_unless(pending::<()>(), ready(End::Int)).await, Verdict::Code(130));
        assert_eq!(drain_unless(ready(()), pending()).await, Verdict::Holds);
    }

    #[test]
    fn what_must_be_changed_first_is_told_from_what_failed() {
        let (reason, name) = (String::new(), tenure::NodeName::new("a").unwrap());
        let codes = [
            Stopped::Config { reason: reason.clone() },
            Stopped::NameTaken { name: name.clone() },
            Stopped::RolledBack { name, life: 1, highest: 2 },
            Stopped::Clock { reason: reason.clone() },
            Stopped::Store { reason },
            Stopped::Crashed,
        ]
        .map(|why| Failure::from(&why).code());
        assert_eq!(codes, [78, 78, 78, 70, 70, 2]);
    }
}
