//! Where members run: all on loopback, or each in a network namespace of its own on one bridge.

use std::process::Command;

use tenure::Locality;
use tenure_testkit::cluster::Cluster;
use tenure_testkit::namespaces::{Net, address};

use crate::member::{LEASE, Member};

/// One of them.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Loopback,
    Namespaces(&'a Net),
}

impl Place<'_> {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces(_) => "namespaces",
        }
    }

    /// Founds a cluster and starts its members, the first of the order first.
    pub(crate) fn start(self, size: usize, how: &Locality) -> (Cluster, Vec<Member>) {
        let cluster = match self {
            Self::Loopback => Cluster::found(size, LEASE),
            Self::Namespaces(_) => {
                let listen = |host: u8| format!("{}:7400", address(host)).parse().expect("an address");
                Cluster::found_at((1..).take(size).map(listen).collect(), LEASE)
            }
        };
        let this = std::env::current_exe().expect("this program");
        let start = |(host, (name, listen)): (u8, (&String, &std::net::SocketAddr))| {
            let command = match self {
                Self::Loopback => Command::new(&this),
                Self::Namespaces(net) => net.command(host, &this),
            };
            Member::start(command, &cluster, (name, &listen.to_string()), how)
        };
        let members = (1..).zip(cluster.names.iter().zip(&cluster.addresses)).map(start).collect();
        (cluster, members)
    }
}
