//! What a daemon serves over HTTP: the interface of version 1 (`crate::api`), health, metrics, and a page.
//!
//! | file | has |
//! |---|---|
//! | `routes.rs` | every path, once |
//! | `desk.rs` | what handlers share: the node, and what is known of groups |
//! | `status.rs`, `groups.rs`, `streams.rs`, `health.rs`, `members.rs`, `metrics.rs`, `page.rs` | the handlers |
//! | `entry.rs` | who may ask what: token, certificate, host |
//! | `listen.rs` | sockets, TLS, limits, the end |
//! | `sidecar.rs` | the answer of the old leader-elector sidecar, on a port of its own |
//!
//! **Nothing here decides anything.** A handler asks the node, which compares clocks itself, and writes down the answer.

mod answer;
mod desk;
mod entry;
mod groups;
mod health;
mod listen;
mod members;
mod metrics;
mod page;
mod routes;
mod sidecar;
mod status;
mod streams;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::settings::Settings;

use desk::Desk;
use entry::Entry;

/// What a daemon serves. Dropping it ends it at once.
#[derive(Debug)]
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Where it listens: HTTP first, then the sidecar's port. Empty if nothing is to be served.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes no more requests, ends streams, answers what was asked, and ends.
    pub(crate) async fn shutdown(mut self) {
        self.stop.send_replace(true);
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await; // One that panicked has ended too.
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Serves what the settings ask for: `daemon.http` and `daemon.sidecar_port`. Returns when the sockets are open.
pub(crate) async fn serve(node: &tenure::Node, settings: &Settings) -> Result<Server, Failure> {
    let (stop, stopping) = watch::channel(false);
    let mut server = Server { addresses: Vec::new(), stop, tasks: Vec::new() };
    let desk = Desk::new(node.clone(), settings, stopping.clone())?;
    if let Some(address) = settings.daemon.http {
        let entry = Entry::new(settings, address)?;
        let tls = listen::acceptor(settings)?;
        let router = routes::router(desk.clone(), entry);
        let listener = listen::bind("daemon.http", address).await?;
        server.addresses.extend(listener.local_addr());
        server.tasks.push(tokio::spawn(listen::run(listener, tls, router, stopping.clone())));
    }
    if let Some(port) = settings.daemon.sidecar_port {
        let host = settings.daemon.http.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
        let router = sidecar::router(desk, settings.daemon.sidecar_group.as_deref())?;
        let listener = listen::bind("daemon.sidecar_port", SocketAddr::new(host, port)).await?;
        server.addresses.extend(listener.local_addr());
        server.tasks.push(tokio::spawn(listen::run(listener, None, router, stopping)));
    }
    Ok(server)
}
