//! Streams that others open to this node, one packet on each.
//!
//! Anybody who reaches the port can open a stream and say nothing (an idler). The seal rejects what
//! a stranger writes, but it cannot reject silence. So a place is never kept by waiting: when all
//! places are taken, the newcomer gets the place of the oldest stream of the source that holds the
//! most places. A peer that writes its packet needs a few round trips, and one stream; a hostile
//! host evicts its own streams first.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{MAX_BULK, PATIENCE, STREAMS};

/// How long a stream keeps its place at least. It bounds how often this thread, which also grants,
/// is made to accept and evict: [`STREAMS`] times in this span.
const UNDISTURBED: Duration = Duration::from_millis(100);

/// Reads at most [`STREAMS`] streams at once, one packet from each.
pub(super) async fn accept(listener: TcpListener, packets: mpsc::Sender<Vec<u8>>) {
    accept_within(PATIENCE, listener, packets).await;
}

async fn accept_within(patience: Duration, listener: TcpListener, packets: mpsc::Sender<Vec<u8>>) {
    let mut places = Places::default();
    loop {
        places.wait_for_room().await;
        let Ok((stream, from)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await; // No file descriptors left, say.
            continue;
        };
        let packets = packets.clone();
        let reader = tokio::spawn(async move {
            if let Ok(Ok(packet)) = timeout(patience, read(stream)).await {
                let _ = packets.send(packet).await;
            }
        });
        places.take(source(from.ip()), reader.abort_handle());
    }
}

/// One packet. It takes memory as it comes in, not as its length claims.
async fn read(stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut stream = stream.take(4 + MAX_BULK as u64);
    let length = stream.read_u32().await? as usize;
    let mut packet = Vec::new();
    stream.read_to_end(&mut packet).await?;
    if packet.len() != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(packet)
}

/// The streams that are being read, oldest first.
#[derive(Debug, Default)]
struct Places(Vec<Held>);

#[derive(Debug)]
struct Held {
    source: IpAddr,
    since: Instant,
    reader: AbortHandle,
}

impl Places {
    /// Waits until there is a place, or until a stream may be evicted for the next one.
    async fn wait_for_room(&mut self) {
        self.0.retain(|held| !held.reader.is_finished());
        if let (Some(oldest), true) = (self.0.first(), self.0.len() >= STREAMS) {
            sleep_until(oldest.since + UNDISTURBED).await;
        }
    }

    /// Gives a place to a newcomer, and evicts another stream if there was none left.
    fn take(&mut self, source: IpAddr, reader: AbortHandle) {
        self.0.retain(|held| !held.reader.is_finished());
        let since = Instant::now();
        self.0.push(Held { source, since, reader });
        if self.0.len() > STREAMS {
            let sources: Vec<IpAddr> = self.0.iter().map(|held| held.source).collect();
            self.0.remove(victim(&sources)).reader.abort();
        }
    }
}

/// Which stream leaves: the oldest of the source that has the most. `sources` has the oldest first
/// and the newcomer last; among sources with as many, the one with the oldest stream loses.
fn victim(sources: &[IpAddr]) -> usize {
    let count = |index: &usize| sources.iter().filter(|source| **source == sources[*index]).count();
    // `max_by_key` takes the last of equals, so the order is turned around.
    (0..sources.len()).rev().max_by_key(count).unwrap_or(0)
}

/// The source of a stream: a host, or for IPv6 the network that one host commonly has to itself.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
    }
}

/// Writes one packet on a stream of its own.
pub(super) async fn write(packet: Vec<u8>, to: SocketAddr) -> io::Result<()> {
    use tokio::io::AsyncWriteExt;
    let mut stream = TcpStream::connect(to).await?;
    let length = u32::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_u32(length).await?;
    stream.write_all(&packet).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than a test may take.
    const FOREVER: Duration = Duration::from_secs(3_600);

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn a_packet_gets_through_although_idlers_hold_every_place_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, mut packets) = mpsc::channel(1);
        tokio::spawn(accept_within(FOREVER, listener, sender));
        let mut idlers = Vec::new();
        for _ in 0..STREAMS + 5 {
            idlers.push(TcpStream::connect(address).await.unwrap());
        }
        write(b"sealed".to_vec(), address).await.unwrap();
        let packet = timeout(Duration::from_secs(30), packets.recv()).await.expect("a packet comes");
        assert_eq!(packet.as_deref(), Some(b"sealed".as_slice()));
    }

    #[test]
    fn the_oldest_stream_of_the_source_with_the_most_is_evicted() {
        assert_eq!(victim(&[ip(1), ip(2), ip(2), ip(3)]), 1);
        assert_eq!(victim(&[ip(1), ip(2), ip(2), ip(1), ip(1)]), 0);
        assert_eq!(victim(&[ip(1), ip(2), ip(3)]), 0, "of equals, the oldest");
    }

    #[test]
    fn a_peer_with_one_stream_outlives_any_number_of_a_hostile_host() {
        let mut sources = vec![ip(9)]; // The peer came first, so it is the oldest of all.
        sources.extend([ip(1); STREAMS]);
        for _ in 0..1_000 {
            assert_ne!(victim(&sources), 0);
            sources.remove(victim(&sources));
            sources.push(ip(1));
        }
    }

    #[test]
    fn the_addresses_of_one_network_are_one_source() {
        let v6 = |text: &str| source(text.parse().unwrap());
        assert_eq!(v6("2001:db8:1:2::3"), v6("2001:db8:1:2:ffff::1"));
        assert_ne!(v6("2001:db8:1:2::3"), v6("2001:db8:1:3::3"));
        assert_eq!(v6("::ffff:10.0.0.1"), ip(1));
    }
}
