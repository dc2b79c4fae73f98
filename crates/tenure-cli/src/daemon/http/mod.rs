//! The HTTP service of a daemon: the interface of version 1 (`crate::api`), health, metrics, and a
//! page.
//!
//! | file | has |
//! |---|---|
//! | `routes.rs` | every path, once |
//! | `desk.rs` | what handlers share: the node, and what is known of groups |
//! | `status.rs`, `groups.rs`, `streams.rs`, `health.rs`, `members.rs`, `metrics.rs`, `page.rs` | the handlers |
//! | `entry.rs` | who may do what: roles of callers, and what each path needs |
//! | `access.rs`, `sessions.rs`, `calendar.rs`, `certificate.rs` | tokens, sessions of browsers, their time, names of certificates |
//! | `audit.rs` | one event for each act of an operator |
//! | `listen.rs`, `unix.rs` | sockets, TLS, the end; the unix socket |
//! | `places.rs`, `stalls.rs` | how many connections there may be, and how long a client may not read |
//! | `sidecar.rs` | the answer of the old leader-elector sidecar, on a port of its own |
//!
//! **Nothing here decides anything.** A handler asks the node, which compares clocks itself, and
//! writes down the answer.

mod access;
mod answer;
mod audit;
mod calendar;
mod certificate;
mod desk;
mod entry;
mod groups;
mod health;
mod kept;
mod keys;
mod listen;
mod members;
mod metrics;
mod page;
mod places;
mod routes;
mod sessions;
mod sidecar;
mod stalls;
mod status;
mod streams;
#[cfg(test)]
mod tests;
mod unix;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::settings::Settings;

use access::{Access, TokenFile};
use desk::Desk;
use entry::{Entry, Rules};
use listen::Served;
use places::Limits;
use tokio_rustls::TlsAcceptor;
use unix::Socket;

/// The HTTP server of a daemon. Dropping it ends it at once.
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
    socket: Option<PathBuf>,
    door: Option<Door>,
    access: Access,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// The settings that a running server can reload.
struct Door {
    address: SocketAddr,
    rules: watch::Sender<Rules>,
    tls: watch::Sender<Option<TlsAcceptor>>,
}

/// Token and certificates that were read again, and are sound. Nothing has changed yet.
pub(crate) struct Renewed {
    door: Option<(Rules, Option<TlsAcceptor>)>,
    tokens: TokenFile,
}

impl Server {
    /// Reads token and certificates again. An address that has changed since is not looked at: it
    /// takes a restart.
    pub(crate) fn read_again(&self, settings: &Settings) -> Result<Renewed, Failure> {
        let tokens = TokenFile::open(settings)?;
        let Some(door) = &self.door else { return Ok(Renewed { door: None, tokens }) };
        let door = Some((Rules::new(settings, door.address)?, listen::acceptor(settings)?));
        Ok(Renewed { door, tokens })
    }

    /// From now on the tokens that were read hold, and new connections get the certificate.
    pub(crate) fn renew(&self, renewed: Renewed) {
        self.access.renew(renewed.tokens);
        if let (Some(door), Some((rules, tls))) = (&self.door, renewed.door) {
            door.rules.send_replace(rules);
            door.tls.send_replace(tls);
        }
    }

    /// Where it listens: HTTP first, then the sidecar's port. Empty if nothing is to be served.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its unix socket, if there is one.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
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

/// Refuses what [`serve`] would refuse for the settings' sake: tokens, certificates, names,
/// addresses that others reach.
pub(crate) fn check(settings: &Settings) -> Result<(), Failure> {
    if let Some(address) = settings.daemon.http {
        Rules::new(settings, address)?;
        listen::acceptor(settings)?;
    }
    TokenFile::open(settings)?;
    Socket::check(settings)?;
    sidecar::group(settings.daemon.sidecar_group.as_deref())?;
    Ok(())
}

/// Serves what the settings ask for: `daemon.http`, `daemon.socket` and `daemon.sidecar_port`.
/// Returns when the sockets are open.
pub(crate) async fn serve(node: &tenure::Node, settings: &Settings) -> Result<Server, Failure> {
    let (stop, stopping) = watch::channel(false);
    let daemon = &settings.daemon;
    let access = Access::new(TokenFile::open(settings)?, 0, daemon.tls_cert.is_some());
    let desk = Desk::new(node.clone(), settings, stopping.clone(), access.clone())?;
    let rules = daemon.http.map(|address| Rules::new(settings, address)).transpose()?;
    let (rules, required) = watch::channel(rules.unwrap_or_else(Rules::local));
    let entry = Entry::new(node.name().as_str(), required, access.clone(), routes::needs());
    let router = routes::router(desk.clone(), entry);
    let service = Served { router, is_probe: entry::is_probe, limits: Limits::http() };
    let (addresses, tasks) = (Vec::new(), Vec::new());
    let mut server = Server { addresses, socket: None, door: None, access, stop, tasks };
    if let Some(address) = daemon.http {
        let (tls, secured) = watch::channel(listen::acceptor(settings)?);
        let listener = listen::bind("daemon.http", address).await?;
        let local = listener.local_addr().unwrap_or(address);
        server.access.set_port(local.port());
        server.addresses.push(local);
        server.tasks.push(tokio::spawn(listen::run(listener, secured, service.clone(), stopping.clone())));
        server.door = Some(Door { address, rules, tls });
    }
    if let Some(socket) = Socket::open(settings)? {
        server.socket = Some(socket.path().to_owned());
        server.tasks.push(tokio::spawn(socket.run(service, stopping.clone())));
    }
    if let Some(port) = daemon.sidecar_port {
        let host = daemon.http.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
        let router = sidecar::router(desk, sidecar::group(daemon.sidecar_group.as_deref())?);
        let service = Served { router, is_probe: |_| true, limits: Limits::sidecar() };
        let listener = listen::bind("daemon.sidecar_port", SocketAddr::new(host, port)).await?;
        server.addresses.extend(listener.local_addr());
        let (_, plain) = watch::channel(None);
        server.tasks.push(tokio::spawn(listen::run(listener, plain, service, stopping)));
    }
    Ok(server)
}
