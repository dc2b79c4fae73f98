//! Attackers without a key: sockets on addresses that no member has, and floods of datagrams.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The answers to the attacker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// How many datagrams.
    pub count: usize,
    /// How many bytes in all.
    pub bytes: usize,
    /// The longest of them.
    pub longest: usize,
}

/// Sockets on addresses that are nobody's.
pub struct Forged {
    sockets: Vec<UdpSocket>,
    turn: AtomicU64,
    asked: AtomicU64,
}

impl Forged {
    /// Each in another part of the network.
    pub fn open(count: u16) -> Self {
        let open = |index: u16| {
            let [high, low] = (index + 256).to_be_bytes();
            let socket =
                UdpSocket::bind((Ipv4Addr::new(127, high, low, 1), 0)).expect("all of 127/8 is here");
            socket.set_nonblocking(true).expect("it is a socket");
            socket
        };
        Self { sockets: (0..count).map(open).collect(), turn: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    /// Sends from the next of the sockets.
    pub fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let turn = usize::try_from(self.turn.fetch_add(1, Relaxed)).expect("64 bits");
        if self.sockets[turn % self.sockets.len()].send_to(bytes, to).is_ok() {
            self.asked.fetch_add(bytes.len() as u64, Relaxed);
        }
    }

    /// The bytes that were sent, and what came back since this was last called.
    pub fn tally(&self) -> (u64, Answers) {
        let mut answers = Answers::default();
        let mut buffer = [0; 2048];
        for socket in &self.sockets {
            while let Ok(length) = socket.recv(&mut buffer) {
                answers.count += 1;
                answers.bytes += length;
                answers.longest = answers.longest.max(length);
            }
        }
        (self.asked.load(Relaxed), answers)
    }
}

/// A thread that sends as fast as it can.
pub struct Flood {
    thread: JoinHandle<(u64, Answers)>,
    over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// `next` makes the datagram of that number.
    pub fn start(
        forged: Forged,
        mut next: impl FnMut(u64) -> (SocketAddr, Vec<u8>) + Send + 'static,
    ) -> Self {
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count) = (over.clone(), sent.clone());
        let thread = thread::spawn(move || {
            let mut all = Answers::default();
            let mut drain = |forged: &Forged| {
                let (asked, answers) = forged.tally();
                all.count += answers.count;
                all.bytes += answers.bytes;
                all.longest = all.longest.max(answers.longest);
                (asked, all)
            };
            while !end.load(Relaxed) {
                let number = count.fetch_add(1, Relaxed);
                let (to, bytes) = next(number);
                forged.send(to, &bytes);
                if number % 20_000 == 0 {
                    drain(&forged);
                }
            }
            thread::sleep(Duration::from_millis(100));
            drain(&forged)
        });
        Self { thread, over, sent }
    }

    /// How many it has sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Ends it: the bytes that were sent, and what came back.
    pub fn stop(self) -> (u64, Answers) {
        self.over.store(true, Relaxed);
        self.thread.join().expect("it does not panic")
    }
}
