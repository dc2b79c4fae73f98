//! A replicated log: every member has the same writes in the same order, each once, and they
//! survive the failure of f members.
//!
//! A [`StateMachine`] is carried along by it: the same writes in the same order give the same state
//! everywhere. [`Log::propose`] writes; [`Log::read`] is a linearizable read: it sees every write
//! that was answered before, on any member. Multi-decree Paxos underneath ([`tenure_proto::log`],
//! which says why nothing chosen is ever lost); an [`Election`] says who should lead, and a wrong
//! one costs time, never a write.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", tenure::ClusterId::draw()));
//! use tenure::log::{self, Config, Election, Log, StateMachine};
//! use tenure::{ClusterId, ClusterKey, NodeName};
//!
//! #[derive(Default)]
//! struct Sum(u64);
//!
//! impl StateMachine for Sum {
//!     fn apply(&mut self, _index: u64, write: &[u8]) -> Vec<u8> {
//!         self.0 += u64::from(write[0]);
//!         self.0.to_be_bytes().to_vec()                     // the answer of `propose`
//!     }
//!     fn snapshot(&self) -> log::Snapshot {
//!         self.0.to_be_bytes().to_vec().into()
//!     }
//!     fn restore(&mut self, from: &mut dyn std::io::BufRead) -> Result<(), log::StateError> {
//!         let mut bytes = [0; 8];
//!         from.read_exact(&mut bytes)?;
//!         self.0 = u64::from_be_bytes(bytes);
//!         Ok(())
//!     }
//! }
//!
//! let mut config = Config::new("sum", "alone", ClusterId::draw(), ClusterKey::generate());
//! config.members = tenure::peers([("alone", "127.0.0.1:7400")]);
//! config.folder = folder.join("sum");
//! log::found(&config)?;                                     // once, ever, on each member
//!
//! let election = Election::fixed(NodeName::new("alone")?);   // of three members: Election::Strong(node)
//! let log = Log::open(&config, election, Sum::default())?;
//! log.propose(vec![2]).await?;
//! let chosen = log.propose(vec![3]).await?;
//! assert_eq!(chosen.answer, 5u64.to_be_bytes());
//! assert_eq!(log.read(|sum| sum.0).await?, 5);
//! log.shutdown().await;
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(()) }
//! ```
//!
//! # Guarantees
//!
//! * A write that was answered is on the disks of f+1 members, and in the state of every later
//!   read.
//! * A write is idempotent under retransmission: it is carried out at most once, and exactly once
//!   if it is answered with its index.
//! * A process that is killed at any instant comes back with everything that it has promised. A
//!   torn write is found and dropped; a full disk refuses writes, with [`ProposeError::DiskFull`],
//!   until there is room.
//!
//! # Assumptions
//!
//! * Members are fixed when the log is founded, do not lie, and hold the cluster's key. One that
//!   lost its disk comes back by [`relearn`]: it learns, but is counted among the f that may fail,
//!   for good.
//! * [`StateMachine::apply`] is a function of state and write: no clock, no chance, no order of a
//!   hash map.
//! * With [`Election::Strong`], reads under the lease rest on the bound of the clocks, as the lease
//!   does. All else rests on no clock.

mod codec;
mod config;
mod disk;
mod driver;
mod election;
mod error;
mod eventual;
mod link;
mod progress;
mod snapshots;
mod state;
mod strangers;
#[cfg(test)]
mod tests;
mod transfer;
mod users;

use std::io::BufRead;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tenure_proto::log::Record;
use tenure_proto::{Boot, LocalTime};
/// Tokio's channel of a newest value, for [`Election::Told`].
pub use tokio::sync::watch;
use tokio::sync::{Semaphore, broadcast, oneshot};

pub use config::Config;
pub use election::{Election, Hint};
pub use error::{OpenError, ProposeError, ReadError, Stopped};
pub use state::Snapshot;

use crate::clock::Clock;
use crate::metrics::Text;
use crate::name::NodeName;
use crate::seal::Keyring;
use crate::timing::Timing;
use config::Checked;
use disk::{Disk, Writer};
use driver::{Driver, Item, Look, Parts};
use election::Source;
use eventual::Omega;
use link::{Delivery, Talk};
use users::Proposal;

/// The number of reads of one process that may be under way: backpressure beyond it.
const READS: usize = 1024;

/// The number of writes that a slow subscriber may be behind.
const BEHIND: usize = 4096;

/// The reason why a state could not be restored.
pub type StateError = Box<dyn std::error::Error + Send + Sync>;

/// The state that a log replicates.
///
/// Three functions: carry out a write, hand out the state, take one up. It lives on the log's own
/// thread: a slow call delays the log, and nothing else. A panic in
/// [`apply`](Self::apply) refuses that write, on every member, and the log goes on
/// ([`ProposeError::Panicked`]).
pub trait StateMachine: Send + 'static {
    /// Carries out a write, and returns the answer for its proposer.
    ///
    /// The same state and write must give the same state and answer on every member; otherwise the
    /// members' states diverge. After a restart the writes since the last snapshot are carried out
    /// again, on the state that was restored.
    fn apply(&mut self, index: u64, write: &[u8]) -> Vec<u8>;

    /// Takes the state as it is now, for a file of its own and for members that are far behind.
    ///
    /// It is called on the log's thread, now and then (`snapshot_every`): be quick. For a state of
    /// a few megabytes return its bytes, with `.into()`. For a larger one use
    /// [`Snapshot::streamed`]: clone the state, or share what is copied before it is changed. The
    /// bytes are then made on another thread, and no more than a piece of them is in memory.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::io::BufRead;
    /// use std::sync::Arc;
    /// use tenure::log::{Snapshot, StateError, StateMachine};
    ///
    /// /// The map is shared with snapshots, and copied by the first write during one.
    /// #[derive(Default)]
    /// struct Counts(Arc<BTreeMap<u8, u64>>);
    ///
    /// impl StateMachine for Counts {
    ///     fn apply(&mut self, _index: u64, bytes: &[u8]) -> Vec<u8> {
    ///         *Arc::make_mut(&mut self.0).entry(bytes[0]).or_default() += 1;
    ///         Vec::new()
    ///     }
    ///     fn snapshot(&self) -> Snapshot {
    ///         let counts = self.0.clone();
    ///         Snapshot::streamed(move |to| {
    ///             counts.iter().try_for_each(|(key, count)| writeln!(to, "{key} {count}"))
    ///         })
    ///     }
    ///     fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError> {
    ///         let mut counts = BTreeMap::new();
    ///         for line in from.lines() {
    ///             let line = line?;
    ///             let (key, count) = line.split_once(' ').ok_or("no count")?;
    ///             counts.insert(key.parse()?, count.parse()?);
    ///         }
    ///         self.0 = Arc::new(counts);
    ///         Ok(())
    ///     }
    /// }
    /// # let mut counts = Counts::default();
    /// # counts.apply(1, b"a");
    /// # counts.restore(&mut &b"97 1\n98 2\n"[..]).unwrap();
    /// # assert_eq!(*counts.0, BTreeMap::from([(97, 1), (98, 2)]));
    /// ```
    fn snapshot(&self) -> Snapshot;

    /// Replaces the state by the one of a snapshot, whatever it was before.
    ///
    /// The bytes come from a file, in pieces, and end where those of the snapshot ended. They were
    /// checked before: they are what some member has written.
    ///
    /// # Errors
    /// If the snapshot is not understood. An error stops the log on this member.
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError>;
}

/// A write that is in the log, and was carried out here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chosen {
    /// Its place in the log. Places between those of writes belong to the log itself.
    pub index: u64,
    /// The answer of [`StateMachine::apply`].
    pub answer: Vec<u8>,
}

/// One piece of news of a [`Subscription`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A write was carried out here. They come in order, once in each life of the process.
    Applied {
        /// Its place.
        index: u64,
        /// The write.
        bytes: Arc<[u8]>,
    },
    /// The state was taken from another member: the writes up to there are not told.
    Restored {
        /// The place.
        upto: u64,
    },
    /// The subscriber was slow, and so many were not kept for it.
    Missed {
        /// How many.
        count: u64,
    },
}

/// The status of a process of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The name of this process.
    pub name: NodeName,
    /// The process that should lead, as far as this one has heard.
    pub leader: Option<NodeName>,
    /// Whether it leads: it has promises of enough members, and proposes.
    pub leads: bool,
    /// The last place whose write is carried out here.
    pub applied: u64,
    /// The last place that is forgotten here, but for the snapshot.
    pub forgotten: u64,
    /// The other members that it has a stream to.
    pub reached: Vec<NodeName>,
    /// Whether its disk is full.
    pub disk_full: bool,
    /// Whether it has lost its disk once, and so no longer counts for quorums.
    pub only_learns: bool,
    /// The number of writes that were refused because the state machine panicked on them, since it
    /// was opened.
    pub panics: u64,
    /// The number of records that it has written since it was opened.
    pub records: u64,
    /// The number of disk syncs for them: batching makes it smaller than the number of records.
    pub syncs: u64,
}

/// Makes the log of a founding member, in the folder that `config` names.
///
/// Call it once for each founding member, and never again: a member that forgot its promises must
/// not be taken for one that never promised anything.
///
/// # Errors
/// If a setting is refused, if there is a log already, or if the disk fails.
pub fn found(config: &Config) -> Result<(), OpenError> {
    disk::make(&Checked::new(config)?, false)
}

/// Makes the log of a member that lost its disk.
///
/// The member learns all that is chosen and answers its users, but never again promises or accepts
/// anything: it may have forgotten promises.
///
/// # Errors
/// If a setting is refused, if there is a log already, or if the disk fails.
pub fn relearn(config: &Config) -> Result<(), OpenError> {
    disk::make(&Checked::new(config)?, true)
}

/// A running process of a replicated log.
///
/// Cheap to clone. When the last clone is dropped, the log ends in this process; to wait for that,
/// call [`shutdown`](Self::shutdown).
pub struct Log<S: StateMachine>(Arc<Inner<S>>);

impl<S: StateMachine> Clone for Log<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<S: StateMachine> {
    items: Sender<Item<S>>,
    /// The driver alone keeps it open: subscribers hear of the end when that has gone.
    news: broadcast::WeakSender<News>,
    /// Why the log stops, known before anybody who waits is let down.
    why: Arc<OnceLock<Stopped>>,
    /// True when it has stopped: its folder and port are free.
    stopped: watch::Receiver<bool>,
    writes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    longest_write: usize,
    keys: Arc<watch::Sender<Keyring>>,
    latencies: Mutex<Latencies>,
}

/// How long calls of this process took.
#[derive(Clone, Copy, Default)]
struct Latencies {
    writes: Timing,
    reads: Timing,
}

impl<S: StateMachine> Log<S> {
    /// Opens the log of this member: reads its disk, restores the state, listens and calls the
    /// others.
    ///
    /// The call blocks for as long as the disk takes. `state` is the state before anything was
    /// written.
    ///
    /// # Errors
    /// An [`OpenError`] says what to change. The member has promised nothing then.
    pub fn open(config: &Config, election: Election, state: S) -> Result<Self, OpenError> {
        let config = Checked::new(config)?;
        let (disk, boot) = disk::take_up(&config)?;
        Self::run(config, election, state, (disk, boot))
    }

    /// Opens the log with a disk that is open.
    fn run(
        config: Checked,
        election: Election,
        state: S,
        (disk, boot): (Disk, Boot<Record>),
    ) -> Result<Self, OpenError> {
        election::check(&election, &config, &boot)?;
        let listener = config
            .listen
            .filter(|_| config.members.len() > 1)
            .map(|address| TcpListener::bind(address).map_err(|error| OpenError::Listen { address, error }));
        let listener = listener.transpose()?;
        let (items, inbox) = mpsc::channel();
        let (durable, deliver, tell): (Sender<Item<S>>, _, _) = (items.clone(), items.clone(), items.clone());
        let captured = items.clone();
        let writer = Writer::start(disk, move |done| _ = durable.send(Item::Durable(done)))?;
        let (hear, heard) = tokio::sync::mpsc::unbounded_channel();
        let (links, streams) =
            link::links(&config, listener, move |Delivery { from, talk, _room }| match talk {
                Talk::Log(message) => _ = deliver.send(Item::Message { from, message, _room }),
                Talk::Election(message) => _ = hear.send((from, message)),
                Talk::Resume(_) => {} // The streams' own.
            });
        let source = match election {
            Election::Strong(node) => Source::Strong(node, config.log.clone()),
            Election::Told(hint) => Source::Told(hint),
            Election::Eventual { round } => Source::Eventual(Box::new(Omega {
                config: eventual::settings(&config, round)?,
                me: config.me.id(),
                life: boot.incarnation,
                clock: config.time.clone(),
                links: links.clone(),
                heard,
            })),
        };
        let (may_lead, leads) = watch::channel(true);
        let tell = move |opinion| _ = tell.send(Item::Opinion(opinion));
        let election = election::run(source, leads, tell);
        let (news, stopped) = (broadcast::channel(BEHIND).0, watch::channel(false));
        let why = Arc::<OnceLock<Stopped>>::default();
        let inner = Inner {
            items,
            news: news.downgrade(),
            why: why.clone(),
            stopped: stopped.1,
            writes: Arc::new(Semaphore::new(config.users)),
            reads: Arc::new(Semaphore::new(READS)),
            longest_write: config.longest_write,
            keys: links.keys.clone(),
            latencies: Mutex::default(),
        };
        let driver = Driver::new(Parts { config, state, writer, links, may_lead, news, captured }, boot)
            .map_err(|stopped| OpenError::State { reason: stopped.to_string() })?;
        let network = Network::start(async { tokio::join!(streams, election) })?;
        thread::Builder::new().name("tenure-log".into()).spawn(move || {
            let farewell = driver.run(&inbox, &why);
            network.stop();
            stopped.0.send_replace(true);
            farewell.map(|farewell| farewell.send(()));
        })?;
        Ok(Self(Arc::new(inner)))
    }

    /// Writes to the log, and waits until the write is chosen and carried out here.
    ///
    /// It waits for however long that takes, if too few members can be reached. Backpressure: at
    /// most `window` writes of this process are under way, and further calls wait. If the future is
    /// dropped, the write may come about nevertheless.
    ///
    /// # Errors
    /// A [`ProposeError`]. After `Unknown` and `Stopped` the write may be in the log.
    pub async fn propose(&self, bytes: impl Into<Arc<[u8]>>) -> Result<Chosen, ProposeError> {
        let bytes = bytes.into();
        let (length, most) = (bytes.len(), self.0.longest_write);
        if length > most {
            return Err(ProposeError::TooLong { length, most });
        }
        let begun = Clock::boot().read();
        let place = self.0.writes.clone().acquire_owned().await.expect("it is never closed");
        let (reply, answer) = oneshot::channel();
        self.tell(Item::Propose(Proposal { bytes, reply, _place: place }));
        let chosen = answer.await.unwrap_or_else(|_| Err(self.why_stopped().into()))?;
        self.note(begun, |latencies| &mut latencies.writes);
        Ok(chosen)
    }

    /// Reads the state with every write that was answered before the call: a linearizable read.
    ///
    /// It costs one round to f+1 members, which concurrent reads share (batching); it costs no
    /// message on a leader that holds the strong lease. `look` may be called twice, if the lease
    /// ends meanwhile. If the future is dropped, `look` may still be called.
    ///
    /// # Errors
    /// If the log has stopped in this process.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnMut(&S) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let begun = Clock::boot().read();
        let _place = self.0.reads.acquire().await.expect("it is never closed");
        let found = self.look(look, Item::Read).await?;
        self.note(begun, |latencies| &mut latencies.reads);
        Ok(found)
    }

    fn note(&self, begun: LocalTime, which: impl FnOnce(&mut Latencies) -> &mut Timing) {
        let passed = Duration::from_nanos(Clock::boot().read().remaining(begun).as_nanos());
        which(&mut self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner)).note(passed);
    }

    /// Returns what this process counts of the log, and how long its writes and reads took, as
    /// Prometheus text (version 0.0.4). Serve it beside that of
    /// [`Node::metrics`](crate::Node::metrics); where a process has several logs, each on a path of
    /// its own. A dropped future changes nothing.
    ///
    /// # Errors
    /// If the log has stopped in this process.
    pub async fn metrics(&self) -> Result<String, Stopped> {
        let status = self.status().await?;
        let latencies = *self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Text::default();
        text.gauge("log_leads", "Whether this process leads the log: 1 or 0", u8::from(status.leads));
        text.gauge("log_applied", "The last place that is carried out here", status.applied);
        text.gauge("log_forgotten", "The last place that is forgotten here", status.forgotten);
        text.gauge("log_reached", "To how many other members there is a stream", status.reached.len());
        text.gauge(
            "log_disk_full",
            "Whether the disk of the log is full: 1 or 0",
            u8::from(status.disk_full),
        );
        text.counter("log_panics_total", "Writes on which the state machine panicked", status.panics);
        text.counter("log_records_total", "Records written to the disk", status.records);
        text.counter("log_syncs_total", "Syncs of the disk for them", status.syncs);
        text.histogram(
            "log_write_duration_seconds",
            "How long a write of this process took",
            &latencies.writes,
        );
        text.histogram("log_read_duration_seconds", "How long a read of this process took", &latencies.reads);
        Ok(text.0)
    }

    /// Reads the state as it is in this process, which may be stale.
    ///
    /// Other members may have answered later writes. If the future is dropped, `look` may still be
    /// called.
    ///
    /// # Errors
    /// If the log has stopped in this process.
    pub async fn peek<T: Send + 'static>(
        &self,
        look: impl FnMut(&S) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.look(look, Item::Peek).await
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnMut(&S) -> T + Send + 'static,
        item: impl FnOnce(Box<dyn Look<S>>) -> Item<S>,
    ) -> Result<T, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.tell(item(Box::new(Looking { look, found: None, reply })));
        match answer.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(panic)) => std::panic::resume_unwind(panic), // In its caller, not in the log.
            Err(_) => Err(self.why_stopped().into()),
        }
    }

    /// Subscribes to every write from now on, as it is carried out in this process.
    pub fn subscribe(&self) -> Subscription {
        let news = self.0.news.upgrade();
        Subscription(news.map_or_else(|| broadcast::channel(1).1, |news| news.subscribe()))
    }

    /// Replaces the keys of this process without a restart. Streams under keys that are accepted no
    /// more end at once and are opened anew; the others go on. Change keys in the three steps of
    /// [`Node::set_keys`](crate::Node::set_keys): accept the new one everywhere, speak it
    /// everywhere, then leave the old one out.
    pub fn set_keys(&self, keys: Keyring) {
        self.0.keys.send_replace(keys);
    }

    /// Returns the status of this process. A dropped future changes nothing.
    ///
    /// # Errors
    /// If the log has stopped in this process.
    pub async fn status(&self) -> Result<Status, Stopped> {
        let (reply, status) = oneshot::channel();
        self.tell(Item::Status(reply));
        status.await.map_err(|_| self.why_stopped())
    }

    /// Waits until the log has stopped in this process, and returns the reason.
    ///
    /// A dropped future changes nothing.
    pub async fn stopped(&self) -> Stopped {
        let _ = self.0.stopped.clone().wait_for(|stopped| *stopped).await;
        self.why_stopped()
    }

    /// Releases the lease, finishes the writes to the disk, and ends the log in this process.
    ///
    /// If the future is dropped after its first poll, the log ends all the same.
    pub async fn shutdown(self) {
        let (reply, done) = oneshot::channel();
        self.tell(Item::Shutdown(Some(reply)));
        let _ = done.await;
    }

    fn tell(&self, item: Item<S>) {
        let _ = self.0.items.send(item);
    }

    fn why_stopped(&self) -> Stopped {
        self.0.why.get().cloned().unwrap_or(Stopped::Crashed)
    }
}

impl<S: StateMachine> std::fmt::Debug for Log<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl<S: StateMachine> Drop for Inner<S> {
    fn drop(&mut self) {
        let _ = self.items.send(Item::Shutdown(None));
    }
}

/// A subscription to the writes of a log: see [`Log::subscribe`].
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<News>);

impl Subscription {
    /// Waits for the next news; returns `None` when the log has stopped in this process.
    ///
    /// The future may be dropped and the call repeated: no news is lost.
    pub async fn next(&mut self) -> Option<News> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(News::Missed { count }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// A read on its way.
struct Looking<F, T> {
    look: F,
    found: Option<thread::Result<T>>,
    reply: oneshot::Sender<thread::Result<T>>,
}

impl<S, T: Send, F: FnMut(&S) -> T + Send> Look<S> for Looking<F, T> {
    fn look(&mut self, state: &S) {
        let look = &mut self.look;
        // A closure that panicked is not called again: its panic is the answer.
        if !matches!(self.found, Some(Err(_))) {
            self.found = Some(catch_unwind(AssertUnwindSafe(|| look(state))));
        }
    }
    fn answer(self: Box<Self>) {
        if let Some(found) = self.found {
            let _ = self.reply.send(found);
        }
    }
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }
}

/// The thread on which streams and election run.
struct Network {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Network {
    fn start<T: Send>(tasks: impl Future<Output = T> + Send + 'static) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("tenure-log-net".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = async { tasks.await; std::future::pending().await } => {}
                }
            });
        })?;
        Ok(Self { stop, thread })
    }

    /// Closes all streams and waits until they are closed: a caller that is told of the end can
    /// listen on the port at once.
    fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}
