//! What a daemon serves over HTTP: the interface of version 1 (`crate::api`), health, metrics, and a page.
//!
//! | file | has |
//! |---|---|
//! | `routes.rs` | every path, once |
//! | `desk.rs` | what handlers share: the node, and what is known of groups |
//! | `status.rs`, `groups.rs`, `streams.rs`, `health.rs`, `members.rs`, `metrics.rs`, `page.rs` | the handlers |
//! | `entry.rs` | who may ask what: token, certificate, host |
//! | `listen.rs` | sockets, TLS, the end |
//! | `places.rs`, `stalls.rs` | how many connections there may be, and how long a client may not read |
//! | `sidecar.rs` | the answer of the old leader-elector sidecar, on a port of its own |
//!
//! **Nothing here decides anything.** A handler asks the node, which compares clocks itself, and writes down the answer.

mod answer;
mod desk;
mod entry;
mod groups;
mod health;
mod keys;
mod listen;
mod members;
mod metrics;
mod page;
mod places;
mod routes;
mod sidecar;
mod stalls;
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
use entry::{Entry, Rules};
use listen::Served;
use places::Limits;
use tokio_rustls::TlsAcceptor;

/// What a daemon serves. Dropping it ends it at once.
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
    door: Option<Door>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// What a running server can be told anew.
struct Door {
    address: SocketAddr,
    rules: watch::Sender<Rules>,
    tls: watch::Sender<Option<TlsAcceptor>>,
}

/// Token and certificates that were read again, and are sound. Nothing has changed yet.
pub(crate) struct Renewed(Option<(Rules, Option<TlsAcceptor>)>);

impl Server {
    /// Reads token and certificates again. An address that has changed since is not looked at: it takes a restart.
    pub(crate) fn read_again(&self, settings: &Settings) -> Result<Renewed, Failure> {
        let Some(door) = &self.door else { return Ok(Renewed(None)) };
        Ok(Renewed(Some((Rules::new(settings, door.address)?, listen::acceptor(settings)?))))
    }

    /// From now on requests need the token that was read, and new connections get the certificate.
    pub(crate) fn renew(&self, renewed: Renewed) {
        if let (Some(door), Renewed(Some((rules, tls)))) = (&self.door, renewed) {
            door.rules.send_replace(rules);
            door.tls.send_replace(tls);
        }
    }

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

/// Refuses what [`serve`] would refuse for the settings' sake: tokens, certificates, names, addresses that others reach.
pub(crate) fn check(settings: &Settings) -> Result<(), Failure> {
    if let Some(address) = settings.daemon.http {
        Rules::new(settings, address)?;
        listen::acceptor(settings)?;
    }
    sidecar::group(settings.daemon.sidecar_group.as_deref())?;
    Ok(())
}

/// Serves what the settings ask for: `daemon.http` and `daemon.sidecar_port`. Returns when the sockets are open.
pub(crate) async fn serve(node: &tenure::Node, settings: &Settings) -> Result<Server, Failure> {
    let (stop, stopping) = watch::channel(false);
    let mut server = Server { addresses: Vec::new(), door: None, stop, tasks: Vec::new() };
    let desk = Desk::new(node.clone(), settings, stopping.clone())?;
    if let Some(address) = settings.daemon.http {
        let (rules, required) = watch::channel(Rules::new(settings, address)?);
        let (tls, secured) = watch::channel(listen::acceptor(settings)?);
        let router = routes::router(desk.clone(), Entry::new(required));
        let service = Served { router, is_probe: entry::is_probe, limits: Limits::http() };
        let listener = listen::bind("daemon.http", address).await?;
        server.addresses.extend(listener.local_addr());
        server.tasks.push(tokio::spawn(listen::run(listener, secured, service, stopping.clone())));
        server.door = Some(Door { address, rules, tls });
    }
    if let Some(port) = settings.daemon.sidecar_port {
        let host = settings.daemon.http.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
        let router = sidecar::router(desk, sidecar::group(settings.daemon.sidecar_group.as_deref())?);
        let service = Served { router, is_probe: |_| true, limits: Limits::sidecar() };
        let listener = listen::bind("daemon.sidecar_port", SocketAddr::new(host, port)).await?;
        server.addresses.extend(listener.local_addr());
        let (_, plain) = watch::channel(None);
        server.tasks.push(tokio::spawn(listen::run(listener, plain, service, stopping)));
    }
    Ok(server)
}
