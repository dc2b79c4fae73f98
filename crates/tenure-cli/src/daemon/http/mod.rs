//! What a daemon serves over HTTP.

use std::net::SocketAddr;

use crate::failure::Failure;
use crate::settings::Settings;

/// The servers of a daemon.
#[derive(Debug, Default)]
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Where they listen.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Answers what was asked, and ends.
    pub(crate) async fn shutdown(self) {}
}

/// Serves what the settings ask for; nothing yet.
#[expect(clippy::unused_async, reason = "what listens will be asynchronous")]
pub(crate) async fn serve(_node: &tenure::Node, _settings: &Settings) -> Result<Server, Failure> {
    Ok(Server::default())
}
