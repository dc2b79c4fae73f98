//! Whether the ports are free: found out before a node is started, so that it can be said in one
//! line.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use crate::failure::{Failure, messages};

/// Looks at every port of every node: `udp` are those where members listen, by UDP, and by TCP for
/// what is long. `folder` is that of a cluster that has these ports already.
pub(super) fn check(udp: &[SocketAddr], http: &[SocketAddr], folder: Option<&Path>) -> Result<(), Failure> {
    for address in udp {
        taken(folder, *address, UdpSocket::bind(address))?;
    }
    for address in udp.iter().chain(http) {
        taken(folder, *address, TcpListener::bind(address))?;
    }
    Ok(())
}

fn taken<T>(folder: Option<&Path>, address: SocketAddr, bound: io::Result<T>) -> Result<(), Failure> {
    let Err(error) = bound else { return Ok(()) };
    let what = match error.kind() {
        io::ErrorKind::AddrInUse => "is in use".to_owned(),
        _ => format!("cannot be had ({error})"),
    };
    let port = address.port();
    Err(match folder {
        Some(folder) => messages::up_port_of_cluster_taken(port, what, folder.display()),
        None => messages::up_port_taken(port, what),
    })
}
