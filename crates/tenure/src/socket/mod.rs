//! Sockets: datagrams for everything that is urgent, streams for what fits no datagram.
//!
//! A datagram socket per address that is listened on; one on `[::]` serves both families. A stream
//! carries sealed packets, each after its length, under the same sessions: it is only another way
//! for bytes that are authentic or worthless. Leases never take it. `bulk.rs` reads them, and
//! evicts those who only hold a place.

mod bulk;

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::time::timeout;

#[cfg(any(test, feature = "test-util"))]
use crate::testing::{Network, Port};

/// Room for the datagrams of many groups; the kernel gives what it allows.
const BUFFER: usize = 4 << 20;

/// The longest packet on a stream: a configuration of 64 members with listed quorums is well below
/// it.
pub(crate) const MAX_BULK: usize = 64 << 10;

/// How many streams are read at once. For one more, the longest idler leaves.
const STREAMS: usize = 32;

/// How long a stream may take for a packet.
const PATIENCE: Duration = Duration::from_secs(2);

/// All datagram sockets of a node.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// With the address of each: to ask for it again costs a system call.
    datagrams: Vec<(UdpSocket, SocketAddr)>,
    /// In a cluster of `testing`, all there is.
    #[cfg(any(test, feature = "test-util"))]
    port: Option<Port>,
}

/// Packets that came on streams.
pub(crate) type Bulk = mpsc::Receiver<Vec<u8>>;

impl Sockets {
    /// Opens them. To be called within the driver's runtime.
    pub(crate) fn open(
        listen: &[SocketAddr],
        streams: bool,
    ) -> Result<(Self, Bulk), (SocketAddr, io::Error)> {
        let (sender, bulk) = mpsc::channel(STREAMS);
        let mut datagrams = Vec::new();
        for address in listen {
            let (socket, local, listener) = open_both(*address, streams)?;
            if let Some(listener) = listener {
                tokio::spawn(bulk::accept(listener, sender.clone()));
            }
            datagrams.push((socket, local));
        }
        Ok((
            Self {
                datagrams,
                #[cfg(any(test, feature = "test-util"))]
                port: None,
            },
            bulk,
        ))
    }

    /// A port of the network of `testing`.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn in_memory(network: &Network, address: SocketAddr) -> (Self, Bulk) {
        let (sender, bulk) = mpsc::channel(STREAMS);
        (Self { datagrams: Vec::new(), port: Some(network.open(address, sender)) }, bulk)
    }

    /// Where this node listens: the port is real even if none was asked for.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(port) = &self.port {
            return vec![port.address()];
        }
        self.datagrams.iter().map(|(_, local)| *local).collect()
    }

    /// Waits until a datagram may have come.
    pub(crate) async fn readable(&self) {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(port) = &self.port {
            return port.readable().await;
        }
        let any = |context: &mut Context<'_>| {
            let ready = |(socket, _): &(UdpSocket, SocketAddr)| socket.poll_recv_ready(context).is_ready();
            if self.datagrams.iter().any(ready) { Poll::Ready(()) } else { Poll::Pending }
        };
        poll_fn(any).await;
    }

    /// Takes one datagram, if there is one.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(port) = &self.port {
            return port.receive(buffer);
        }
        for (socket, _) in &self.datagrams {
            // An error here is one of an earlier send: somebody is not there. That shows soon
            // enough.
            if let Ok((length, from)) = socket.try_recv_from(buffer) {
                return Some((length, canonical(from)));
            }
        }
        None
    }

    /// Sends one datagram. A datagram that the kernel has no room for is lost, like any datagram
    /// may be. Says whether it left.
    pub(crate) fn send(&self, packet: &[u8], to: SocketAddr) -> bool {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(port) = &self.port {
            return port.send(packet.to_vec(), to);
        }
        let fits = |(_, local): &&(UdpSocket, SocketAddr)| local.is_ipv6() || to.is_ipv4();
        let exact = |(_, local): &&(UdpSocket, SocketAddr)| local.is_ipv4() == to.is_ipv4();
        let socket = self.datagrams.iter().find(exact).or_else(|| self.datagrams.iter().find(fits));
        // Past the runtime, which would first want to be told by the system that there is room.
        socket.is_some_and(|(socket, local)| {
            SockRef::from(socket).send_to(packet, &mapped(to, *local).into()).is_ok()
        })
    }

    /// Sends one packet on a stream of its own, in the background.
    pub(crate) fn send_bulk(&self, packet: Vec<u8>, to: SocketAddr) {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(port) = &self.port {
            return port.send_bulk(packet, to);
        }
        tokio::spawn(async move {
            let _ = timeout(PATIENCE, bulk::write(packet, to)).await;
        });
    }
}

/// An IPv4 address as IPv4, however the socket shows it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address in the family of the socket.
fn mapped(to: SocketAddr, local: SocketAddr) -> SocketAddr {
    match (to.ip(), local.ip()) {
        (IpAddr::V4(ip), IpAddr::V6(_)) => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
        _ => to,
    }
}

/// Opens a socket for datagrams and, if wanted, one for streams on the same port. A port that the
/// system chose for the one may be taken for the other; then it chooses again.
fn open_both(
    address: SocketAddr,
    streams: bool,
) -> Result<(UdpSocket, SocketAddr, Option<TcpListener>), (SocketAddr, io::Error)> {
    let mut tries = if address.port() == 0 { 32 } else { 1 };
    loop {
        let socket = open_datagrams(address).map_err(|error| (address, error))?;
        let local = socket.local_addr().map_err(|error| (address, error))?;
        match streams.then(|| open_stream(local)).transpose() {
            Ok(listener) => return Ok((socket, local, listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 1 => tries -= 1,
            Err(error) => return Err((local, error)),
        }
    }
}

fn open_datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED))?;
    }
    // Smaller buffers only mean that more is lost when much comes at once.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    UdpSocket::from_std(socket.into())
}

fn open_stream(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED))?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(64)?;
    TcpListener::from_std(socket.into())
}

/// Any address of both families, for who only needs to be answered.
pub(crate) const ANY: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// The same where the machine has no IPv6.
pub(crate) const ANY_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    async fn received(sockets: &Sockets) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 64];
        loop {
            timeout(Duration::from_secs(10), sockets.readable()).await.expect("a datagram comes");
            if let Some((length, from)) = sockets.receive(&mut buffer) {
                return (buffer[..length].to_vec(), from);
            }
        }
    }

    #[tokio::test]
    async fn every_address_is_listened_on() {
        let (sockets, _) = Sockets::open(&[LOOPBACK; 3], false).unwrap();
        let (sender, _) = Sockets::open(&[LOOPBACK], false).unwrap();
        for (number, address) in (0..).zip(sockets.addresses()) {
            assert!(sender.send(&[number], address));
            assert_eq!(received(&sockets).await, (vec![number], sender.addresses()[0]));
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_for_streams_is_not_chosen() {
        let taken: Vec<_> = (0..400).map(|_| std::net::TcpListener::bind(LOOPBACK).unwrap()).collect();
        for _ in 0..200 {
            Sockets::open(&[LOOPBACK], true).expect("there are other ports");
        }
        let address = taken[0].local_addr().unwrap();
        let (named, error) = Sockets::open(&[address], true).expect_err("this one was asked for");
        assert_eq!((named, error.kind()), (address, io::ErrorKind::AddrInUse));
    }

    #[tokio::test]
    async fn a_socket_of_both_families_shows_and_takes_addresses_of_the_older_as_such() {
        let Ok((both, _)) = Sockets::open(&[ANY], false) else {
            return println!("skipped: this machine has no IPv6");
        };
        let (older, _) = Sockets::open(&[LOOPBACK], false).unwrap();
        assert!(both.send(b"there", older.addresses()[0]));
        let (_, from) = received(&older).await;
        assert!(older.send(b"and back", from));
        assert_eq!(received(&both).await, (b"and back".to_vec(), older.addresses()[0]));
    }
}
