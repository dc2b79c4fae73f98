//! Ports for tests. Whoever draws them counts for itself, so each has a part of its own: two that
//! began at the same one would be given the same. Here 10,000 to 14,999; `common/process.rs` has
//! those from 15,000 on, the examples' processes from 20,000, `tenure up` from 25,000.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Ports that are free now, for datagrams and streams. They are below those that Linux hands out by
/// itself, so that nobody is given one before it is used, and never the same twice in one process.
pub(crate) fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let free = || loop {
        let place = std::process::id().wrapping_mul(61).wrapping_add(TRIED.fetch_add(1, Relaxed));
        let port = u16::try_from(10_000 + place % 5_000).expect("it is below 15,000");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return address;
        }
    };
    (0..count).map(|_| free()).collect()
}
