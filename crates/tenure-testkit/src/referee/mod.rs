//! A referee: it knows when each runner's command was alive, and judges by that what others say of
//! leaders.
//!
//! **The clock.** All instants are readings of CLOCK_BOOTTIME in nanoseconds, which all processes
//! and namespaces of one machine share.
//!
//! **The ledger.** A runner's command is [`command::lead`]. It writes its readings of the clock
//! into shared memory every few milliseconds, and holds a connection to the referee for as long as
//! it lives. The kernel closes the connection when the process ends, also by KILL, and wakes the
//! referee. So each [`Life`] has three instants:
//!
//! * `first`: the command's own first reading. It was alive then.
//! * `last`: the last instant at which it was alive for sure: its newest reading, or a look at its
//!   open connection, where the clock was read before the look.
//! * `ended`: when the referee saw the connection closed. It was dead by then.
//!
//! Two lives of one group overlap if the later one's `first` is before the earlier one's `last`:
//! both sides are certain, so a slow machine accuses nobody. When a command registers, the referee
//! looks at once at all others of its group.
//!
//! **Judgements** are in [`judge`]: its header has the rules.

pub mod command;
pub mod judge;
mod ledger;

use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use ledger::{Ledger, Life, Overlap, Process};

use crate::beats::Beats;
use crate::waiting::now;

/// The name of the referee's socket in its folder.
pub(crate) const SOCKET: &str = "referee";
/// The name of the heartbeats in its folder.
pub(crate) const BEATS: &str = "beats";

/// A reading of the clock of all ledgers, in nanoseconds.
pub fn clock() -> u64 {
    u64::try_from(now().as_nanos()).expect("it has not run for that long")
}

/// A thread that keeps the ledger. It ends when this is dropped.
pub struct Referee {
    ledger: Arc<Mutex<Ledger>>,
    /// Closed to end the thread.
    over: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Referee {
    /// Starts to listen in a folder, which should be in memory.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let beats = Beats::create(&folder.join(BEATS))?;
        let listener = UnixListener::bind(folder.join(SOCKET))?;
        let (over, end) = UnixStream::pair()?;
        let desk = Desk { ledger: Arc::clone(&ledger), beats, open: Vec::new() };
        let thread = thread::Builder::new().name("referee".to_owned()).spawn(move || {
            desk.serve(&listener, &end);
        })?;
        Ok(Self { ledger, over: Some(over), thread: Some(thread) })
    }

    /// The ledger, which others may write to as well: which runners there are, and when they ran.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread, and gives what it knows.
    pub fn close(&mut self) -> Ledger {
        self.end();
        self.ledger().clone()
    }

    fn end(&mut self) {
        drop(self.over.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's own side.
struct Desk {
    ledger: Arc<Mutex<Ledger>>,
    beats: Beats,
    open: Vec<Connection>,
}

/// A command that was not seen to end.
struct Connection {
    stream: BufReader<UnixStream>,
    /// Its place among the lives of the ledger, and its slot; none before it has said who it is.
    life: Option<(usize, u64)>,
}

impl Desk {
    fn serve(mut self, listener: &UnixListener, end: &UnixStream) {
        loop {
            let Ok((comes, ends, ready)) = self.wait(listener, end) else { return };
            if ends {
                self.close_the_books();
                return;
            }
            for place in ready.into_iter().rev() {
                self.hear(place);
            }
            if comes && let Ok((stream, _)) = listener.accept() {
                self.open.push(Connection { stream: BufReader::new(stream), life: None });
            }
        }
    }

    /// Waits for something: a new connection, the end, or a connection that is readable or closed.
    fn wait(&self, listener: &UnixListener, end: &UnixStream) -> io::Result<(bool, bool, Vec<usize>)> {
        let mut files = vec![PollFd::new(listener, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        files.extend(self.open.iter().map(|one| PollFd::new(one.stream.get_ref(), PollFlags::IN)));
        match poll(&mut files, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok((false, false, Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let moved: Vec<bool> = files.iter().map(|file| !file.revents().is_empty()).collect();
        let ready = (2..moved.len()).filter(|place| moved[*place]).map(|place| place - 2).collect();
        Ok((moved[0], moved[1], ready))
    }

    /// A connection has something to read, or is closed.
    fn hear(&mut self, place: usize) {
        let mut line = String::new();
        let read = self.open[place].stream.read_line(&mut line).unwrap_or(0);
        let seen = clock();
        if read > 0 {
            return self.register(place, &line);
        }
        let gone = self.open.swap_remove(place);
        if let Some((life, slot)) = gone.life {
            let last = self.beats.slot(slot).last;
            self.lock().end(life, last, seen);
        }
    }

    /// A command says who it is. All others of its group are looked at, at once.
    fn register(&mut self, place: usize, line: &str) {
        let Some((life, slot)) = Life::parse(line) else { return };
        let group = life.group.clone();
        let index = self.lock().begin(life);
        let others: Vec<(usize, usize)> = {
            let ledger = self.lock();
            let known = self.open.iter().enumerate().filter_map(|(at, one)| Some((at, one.life?.0)));
            known.filter(|(_, life)| ledger.lives[*life].group == group).collect()
        };
        self.open[place].life = Some((index, slot));
        for (at, life) in others {
            let before = clock(); // Read before the kernel is asked.
            if is_open(self.open[at].stream.get_ref()) {
                self.lock().saw(life, before);
            }
        }
    }

    /// A command that is still alive was alive at its newest reading.
    fn close_the_books(&mut self) {
        for one in &self.open {
            if let Some((life, slot)) = one.life {
                let last = self.beats.slot(slot).last;
                self.lock().saw(life, last);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process at the other end lives.
fn is_open(stream: &UnixStream) -> bool {
    let mut files = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut files, Some(&at_once)).is_ok() && files[0].revents().is_empty()
}
