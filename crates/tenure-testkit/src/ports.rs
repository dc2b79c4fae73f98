//! Free ports on loopback, drawn in one place for all tests, benchmarks and their processes.
//!
//! A test tells other processes where to listen, so it cannot hold the sockets itself. Instead it
//! reserves ports by blocks: a block belongs to the process that has bound an abstract unix socket
//! with the block's name. The kernel lets one process bind it and releases it when that process
//! ends, however it ends; names are per network namespace, as ports are. So two test programs that
//! run at once never draw the same port, and no file is left behind.
//!
//! All ports are below those that Linux hands out by itself (32,768), so nobody is given one of
//! them before its owner listens. Within a process no port is drawn twice: a member that is dead
//! for a while gets its own port back. Each port comes with the one [`LOG_OFFSET`] above it, which
//! nobody else is given: a replicated log listens there.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::{Mutex, PoisonError};

/// How far above the port of a node a test may put the node's log.
pub const LOG_OFFSET: u16 = 1000;

/// Ports from here are drawn, in strips: the second half of each strip holds the ports above.
const FIRST: u16 = 10_000;
const STRIPS: u16 = 11;
/// Ports in a block: as many as can be asked for in a row.
const BLOCK: u16 = 50;
const BLOCKS_IN_A_STRIP: u16 = LOG_OFFSET / BLOCK;
const BLOCKS: u16 = STRIPS * BLOCKS_IN_A_STRIP;

/// The blocks of this process, each with the socket that reserves it.
struct Reserved {
    sockets: Vec<UnixDatagram>,
    /// The rest of the newest block.
    left: Range<u16>,
    /// Blocks that were tried, this process's or not.
    tried: u16,
}

static RESERVED: Mutex<Reserved> = Mutex::new(Reserved { sockets: Vec::new(), left: 0..0, tried: 0 });

/// So many addresses on loopback that are free for datagrams and streams.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    (0..count).map(|_| address(free_range(1))).collect()
}

/// The first of so many ports in a row that are free for datagrams and streams; at most 50.
pub fn free_range(count: u16) -> u16 {
    assert!(count <= BLOCK, "a block has {BLOCK} ports, not {count}");
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while reserved.left.len() >= usize::from(count) {
            let first = reserved.left.start;
            // A port that somebody outside of the tests uses is skipped, with those before it.
            let Some(taken) = (first..first + count).rfind(|port| !is_free(*port)) else {
                reserved.left.start += count;
                return first;
            };
            reserved.left.start = taken + 1;
        }
        reserved.next_block();
    }
}

impl Reserved {
    /// Takes a block that no other process has.
    fn next_block(&mut self) {
        // Programs begin at different blocks, so that one does not get the ports of the last.
        let begin = std::process::id().wrapping_mul(61) % u32::from(BLOCKS);
        while self.tried < BLOCKS {
            let number = (begin + u32::from(self.tried)) % u32::from(BLOCKS);
            self.tried += 1;
            let name = UnixAddress::from_abstract_name(format!("tenure-test-ports-{number}"));
            let Ok(socket) = name.and_then(|name| UnixDatagram::bind_addr(&name)) else { continue };
            self.sockets.push(socket);
            let number = u16::try_from(number).expect("it is below the count of blocks");
            let (strip, place) = (number / BLOCKS_IN_A_STRIP, number % BLOCKS_IN_A_STRIP);
            let first = FIRST + strip * 2 * LOG_OFFSET + place * BLOCK;
            self.left = first..first + BLOCK;
            return;
        }
        panic!("this process and others hold all {BLOCKS} blocks of ports");
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Whether nobody listens on a port, nor on the one above it.
fn is_free(port: u16) -> bool {
    let free = |port| UdpSocket::bind(address(port)).is_ok() && TcpListener::bind(address(port)).is_ok();
    free(port) && free(port + LOG_OFFSET)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;

    /// Says to this test program that another one has started it, to draw ports.
    const ELSEWHERE: &str = "TENURE_TEST_PORTS";

    #[test]
    fn no_port_is_drawn_twice_in_one_process_or_by_two_at_once() {
        let drawn: Vec<u16> = free_addresses(120).iter().map(SocketAddr::port).collect();
        let mut all: BTreeSet<u16> = drawn.iter().copied().collect();
        assert_eq!(all.len(), 120, "{drawn:?}");
        if std::env::var_os(ELSEWHERE).is_some() {
            drawn.iter().for_each(|port| println!("port {port}"));
            return;
        }
        let mut again = Command::new(std::env::current_exe().expect("this test is a program"));
        again.args(["--exact", "ports::tests::no_port_is_drawn_twice_in_one_process_or_by_two_at_once"]);
        let output = again.arg("--nocapture").env(ELSEWHERE, "1").output().expect("it runs");
        let said = String::from_utf8(output.stdout).expect("it is text");
        let port = |line: &str| line.rsplit_once("port ")?.1.parse::<u16>().ok();
        let others: Vec<u16> = said.lines().filter_map(port).collect();
        assert_eq!(others.len(), 120, "{said}");
        assert!(others.iter().all(|port| all.insert(*port)), "{others:?} and {drawn:?}");
        let above = |port: &u16| all.contains(&(port + LOG_OFFSET));
        assert!(!all.iter().any(above), "a port is above another: {all:?}");
    }

    #[test]
    fn a_range_is_free_and_skips_what_others_use() {
        let first = free_range(6);
        assert!((first..first + 6).all(is_free));
        let next = free_range(1) + 1;
        let _foreign = TcpListener::bind(address(next));
        let range = free_range(6);
        assert!(!(range..range + 6).contains(&next), "{range} has {next}, which is used");
    }

    #[test]
    fn all_ports_are_below_those_that_linux_hands_out() {
        let last = FIRST + (STRIPS * 2) * LOG_OFFSET;
        assert!(last <= 32_768, "{last}");
    }
}
