//! Streams between the members: each calls each other one, and what goes from one to the other goes
//! through the stream that it opened itself. `seal/stream.rs` says how a stream begins and why
//! nothing in it can be read, changed or repeated.
//!
//! A stream that breaks is opened again, after a pause that grows. Messages may be lost meanwhile:
//! the machine repeats what is not answered. For the same reason nothing ever waits for a slow
//! member: what finds its queue full is dropped. The other way, a member that is slow to handle
//! what it was sent stops reading, and the sender's queue is what fills.
//!
//! A snapshot may be gigabytes long. It goes piece by piece between the other messages, which do
//! not wait for it, from file to file (`transfer`): one at a time to each member, and further ones
//! are dropped meanwhile.
//!
//! Before a caller has proved that it holds the key it costs a place among 32 and room for two
//! pieces, 256 KiB; afterwards at most [`MAX_MESSAGE`]. When the places are taken,
//! the oldest caller goes of the network that has most of them: strangers cannot keep members away
//! by calling and saying nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tenure_proto::{NodeId, eventual, log};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::codec::{bytes_of, whole};
use super::config::Checked;
use super::strangers::Strangers;
use super::transfer::{self, Body, GOES_ON, OF_SNAPSHOT, Outgoing, PIECE, Pieces, Resume, Transfers};
use crate::chance;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::seal::{
    Answer, Hello, KeyId, Keyring, MAX_GREETING, STREAM_TAG, Stream, Turned, welcome, welcomed,
};

/// The longest message, but for snapshots.
pub(super) const MAX_MESSAGE: usize = 256 << 20;

/// How many bytes may wait to be sent to one member, those included that are being sent. A single
/// message may be longer if nothing else waits.
const QUEUE: usize = 16 << 20;

/// How many bytes that came in may wait to be handled, in KiB: from all members together.
const ROOM_KIB: u32 = 64 << 10;

/// How long a greeting, or a connection, may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long what was sent may stay unacknowledged before a stream counts as broken.
const SILENCE: Duration = Duration::from_secs(5);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The byte before the last piece of a message. `transfer` has the bits.
const ENDS: u8 = 0;

/// A message on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    /// Of the log.
    Log(log::Message),
    /// Of the election, where the members of the log elect among themselves.
    Election(eventual::Message),
    /// How much the sender has of a snapshot that it asks for.
    Resume(Resume),
}

/// A message that came in. It takes room until it is dropped.
pub(super) struct Delivery {
    pub(super) from: NodeId,
    pub(super) talk: Talk,
    pub(super) _room: OwnedSemaphorePermit,
}

/// The state that all streams of a process share.
struct Shared {
    me: NodeName,
    log: GroupName,
    shape: u64,
    members: BTreeSet<NodeName>,
    cluster: ClusterId,
    keys: watch::Receiver<Keyring>,
    deliver: Box<dyn Fn(Delivery) + Send + Sync>,
    room: Arc<Semaphore>,
    transfers: Arc<Transfers>,
    /// Whether the disk refused a snapshot last: it is said once.
    refused: AtomicBool,
    /// The stream on which each member is heard. A newer one takes its place.
    heard: Mutex<BTreeMap<NodeId, AbortHandle>>,
    /// The complaints that were logged: once is enough.
    said: Mutex<BTreeSet<String>>,
}

/// The way out to one member.
struct Line {
    name: NodeName,
    queue: mpsc::UnboundedSender<Vec<u8>>,
    snapshots: mpsc::UnboundedSender<Outgoing>,
    state: Arc<LineState>,
}

#[derive(Default)]
struct LineState {
    up: AtomicBool,
    queued: AtomicUsize,
    /// Whether a snapshot waits, or is on its way.
    has_snapshot: AtomicBool,
    /// Whether it was said that a message was too long: once is enough.
    said: AtomicBool,
}

/// The ways out to all others.
pub(super) struct Links {
    lines: BTreeMap<NodeId, Line>,
    me: NodeName,
    log: GroupName,
    transfers: Arc<Transfers>,
    /// The keys that streams are opened and accepted with.
    pub(super) keys: Arc<watch::Sender<Keyring>>,
}

impl Links {
    /// Sends a message, or drops it if there is no stream or no room. No question is sent that a
    /// snapshot on its way here will answer.
    pub(super) fn send(&self, to: NodeId, talk: Talk) {
        let Some(line) = self.lines.get(&to).filter(|line| line.state.up.load(Relaxed)) else { return };
        match talk {
            Talk::Log(log::Message::Install { upto, sessions, state }) => {
                if !line.state.has_snapshot.swap(true, Relaxed) {
                    let _ = line.snapshots.send(Outgoing { upto, sessions, state });
                }
            }
            Talk::Log(log::Message::Fetch { from }) => {
                if !self.transfers.answers(from) {
                    let resume = self.transfers.parked(to, from).map(Talk::Resume);
                    resume.into_iter().chain([talk]).for_each(|talk| self.queue(line, &talk));
                }
            }
            talk => self.queue(line, &talk),
        }
    }

    fn queue(&self, line: &Line, talk: &Talk) {
        let queued = line.state.queued.load(Relaxed);
        let has_room = |length: usize| queued == 0 || queued.saturating_add(length) <= QUEUE;
        if !has_room(1) {
            return;
        }
        let message = bytes_of(talk);
        let length = message.len();
        if length > MAX_MESSAGE {
            self.say_too_long(line, length);
        } else if has_room(length) {
            line.state.queued.fetch_add(length, Relaxed);
            let _ = line.queue.send(message);
        }
    }

    fn say_too_long(&self, line: &Line, bytes: usize) {
        if !line.state.said.swap(true, Relaxed) {
            let (log, node, peer, most) = (&self.log, &self.me, &line.name, MAX_MESSAGE);
            tracing::error!(name: "tenure.log_too_long", log = %log, node = %node, peer = %peer, bytes, most, "a message to a member of the log is too long, and was dropped");
        }
    }

    /// To how many members a stream leads.
    pub(super) fn reached(&self) -> usize {
        self.lines.values().filter(|line| line.state.up.load(Relaxed)).count()
    }

    /// Whom a stream leads to.
    pub(super) fn up(&self) -> Vec<NodeName> {
        let up = self.lines.values().filter(|line| line.state.up.load(Relaxed));
        up.map(|line| line.name.clone()).collect()
    }
}

/// The tasks that keep all streams, to be run in a runtime, and the ways out.
pub(super) fn links(
    config: &Checked,
    listener: Option<std::net::TcpListener>,
    deliver: impl Fn(Delivery) + Send + Sync + 'static,
) -> (Arc<Links>, impl Future<Output = ()> + Send + 'static) {
    let (set_keys, keys) = watch::channel(config.keys.clone());
    let transfers = Arc::new(Transfers::new(config.snapshots.clone()));
    let shared = Arc::new(Shared {
        me: config.me.clone(),
        log: config.log.clone(),
        shape: config.shape(),
        members: config.members.iter().map(|(name, _)| name.clone()).collect(),
        cluster: config.cluster,
        keys,
        deliver: Box::new(deliver),
        room: Arc::new(Semaphore::new(ROOM_KIB as usize)),
        transfers: transfers.clone(),
        refused: AtomicBool::new(false),
        heard: Mutex::default(),
        said: Mutex::default(),
    });
    let (mut lines, mut callers) = (BTreeMap::new(), Vec::new());
    for (name, address) in config.members.iter().filter(|(name, _)| *name != config.me) {
        let ((queue, messages), (snapshots, long)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let state = Arc::<LineState>::default();
        lines.insert(name.id(), Line { name: name.clone(), queue, snapshots, state: state.clone() });
        let waiting = Waiting { messages, snapshots: long, state };
        callers.push(call(shared.clone(), name.clone(), address.clone(), waiting));
    }
    let (me, log) = (shared.me.clone(), shared.log.clone());
    let tasks = async move {
        callers.into_iter().for_each(|caller| drop(tokio::spawn(caller)));
        if let Some(listener) = listener {
            listen(shared, listener).await;
        }
    };
    (Arc::new(Links { lines, me, log, transfers, keys: Arc::new(set_keys) }), tasks)
}

/// The messages that wait to be sent to one member.
struct Waiting {
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    snapshots: mpsc::UnboundedReceiver<Outgoing>,
    state: Arc<LineState>,
}

impl Waiting {
    /// The stream is gone, and what waited for it.
    fn drop_all(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.state.queued.fetch_sub(message.len(), Relaxed);
        }
        while self.snapshots.try_recv().is_ok() {}
        self.state.has_snapshot.store(false, Relaxed);
    }
}

/// Keeps a stream to one member.
async fn call(shared: Arc<Shared>, peer: NodeName, address: String, mut waiting: Waiting) {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Ok(Ok((socket, stream, key))) = timeout(PATIENCE, connect(&shared, &peer, &address)).await {
            pause = FIRST_PAUSE;
            waiting.state.up.store(true, Relaxed);
            tokio::select! {
                _ = transmit(socket, stream, &mut waiting, (&shared.transfers, peer.id())) => {}
                () = shared.until_refused(key) => {}
            }
            waiting.state.up.store(false, Relaxed);
            waiting.drop_all();
        }
        if waiting.messages.is_closed() {
            return;
        }
        sleep(pause + pause * chance::below(1000) / 1000).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect(shared: &Shared, peer: &NodeName, address: &str) -> io::Result<(TcpStream, Stream, KeyId)> {
    let mut socket = TcpStream::connect(address).await?;
    prepare(&socket)?;
    let keys = shared.keys.borrow().clone();
    let hello = Hello::new(shared.me.clone(), peer.clone(), (shared.log.clone(), shared.shape), &keys);
    write_greeting(&mut socket, &hello.to_bytes()).await?;
    let answer = Answer::from_bytes(&read_greeting(&mut socket).await?).map_err(io::Error::other)?;
    match welcomed(&hello, &answer, &keys, shared.cluster) {
        Some(stream) => Ok((socket, stream, hello.key)),
        None => {
            let why = match answer {
                Answer::Turned(Turned::Name) => "somebody else answers there, or does not know this member",
                Answer::Turned(Turned::Log) => "it keeps another log there, or one of other members",
                Answer::Turned(Turned::Key) | Answer::Welcome { .. } => "it has another key or cluster id",
            };
            shared.complain(peer.as_str(), address, why);
            Err(io::Error::other(why))
        }
    }
}

/// Sends what waits, until the stream breaks. The first frame is empty: it proves to the other side
/// who calls.
async fn transmit(
    socket: TcpStream,
    mut stream: Stream,
    waiting: &mut Waiting,
    (transfers, peer): (&Transfers, NodeId),
) -> io::Result<()> {
    let (mut back, mut out) = socket.into_split();
    let mut nothing = [0; 1];
    let mut bytes = Vec::new();
    let state = waiting.state.clone();
    let mut on_its_way = OnItsWay { state: &state, bytes: 0 };
    let mut snapshot = None;
    pack(&mut stream, &[], &mut bytes);
    loop {
        tokio::select! {
            written = out.write_all(&bytes) => written?,
            _ = back.read(&mut nothing) => return Ok(()), // Nothing comes this way but the end.
        }
        bytes.clear();
        on_its_way.has_gone();
        if snapshot.is_none() {
            let message = tokio::select! {
                message = waiting.messages.recv() => message,
                outgoing = waiting.snapshots.recv() => {
                    let Some(outgoing) = outgoing else { return Ok(()) };
                    let asked = transfers.take_asked(peer);
                    snapshot = Pieces::of(outgoing, transfers.snapshots(), asked).await;
                    state.has_snapshot.store(snapshot.is_some(), Relaxed);
                    Some(Vec::new())
                }
                _ = back.read(&mut nothing) => return Ok(()),
            };
            let Some(message) = message else { return Ok(()) };
            if !message.is_empty() {
                on_its_way.add(&message, &mut stream, &mut bytes);
            }
        }
        while bytes.len() < 2 * PIECE
            && let Ok(message) = waiting.messages.try_recv()
        {
            on_its_way.add(&message, &mut stream, &mut bytes);
        }
        // A piece of the snapshot between them: neither waits for all of the other.
        if let Some(pieces) = &mut snapshot {
            let (piece, kind, was_last) = pieces.next().await?;
            pack_piece(&mut stream, &piece, kind, &mut bytes);
            if was_last {
                snapshot = None;
                state.has_snapshot.store(false, Relaxed);
            }
        }
    }
}

/// Messages that were taken from the queue and are not sent yet. They wait as well.
struct OnItsWay<'a> {
    state: &'a LineState,
    bytes: usize,
}

impl OnItsWay<'_> {
    /// Seals a message that was taken from the queue.
    fn add(&mut self, message: &[u8], stream: &mut Stream, bytes: &mut Vec<u8>) {
        self.bytes += message.len();
        pack(stream, message, bytes);
    }

    fn has_gone(&mut self) {
        self.state.queued.fetch_sub(std::mem::take(&mut self.bytes), Relaxed);
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.has_gone();
    }
}

/// A message as sealed frames.
fn pack(stream: &mut Stream, message: &[u8], bytes: &mut Vec<u8>) {
    let mut pieces = message.chunks(PIECE).peekable();
    let mut piece = pieces.next().unwrap_or_default();
    loop {
        let next = pieces.next();
        pack_piece(stream, piece, if next.is_some() { GOES_ON } else { ENDS }, bytes);
        match next {
            Some(next) => piece = next,
            None => return,
        }
    }
}

/// One piece as a sealed frame.
fn pack_piece(stream: &mut Stream, piece: &[u8], kind: u8, bytes: &mut Vec<u8>) {
    let length = u32::try_from(1 + piece.len() + STREAM_TAG).expect("pieces are short");
    let mut frame = Vec::with_capacity(4 + 1 + piece.len() + STREAM_TAG);
    frame.extend(length.to_be_bytes());
    frame.push(kind);
    frame.extend(piece);
    stream.seal(&mut frame, 4);
    bytes.extend(frame);
}

async fn listen(shared: Arc<Shared>, listener: std::net::TcpListener) {
    let listener = match listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)) {
        Ok(listener) => listener,
        Err(error) => return shared.complain(shared.me.as_str(), "here", &error.to_string()),
    };
    let mut strangers = Strangers::default();
    loop {
        match listener.accept().await {
            Ok((socket, from)) => {
                let caller = tokio::spawn(serve(shared.clone(), socket, from));
                strangers.admit(from.ip(), caller.abort_handle());
            }
            Err(_) => sleep(FIRST_PAUSE).await, // Too many files are open, or the caller has gone.
        }
    }
}

/// Hears one caller, for as long as it says what only a member can.
async fn serve(shared: Arc<Shared>, mut socket: TcpStream, from: SocketAddr) {
    let greeted = timeout(PATIENCE, async {
        prepare(&socket)?;
        let (peer, stream, key) = greet(&shared, &mut socket, from).await?;
        let mut incoming = Incoming {
            stream,
            reader: BufReader::with_capacity(PIECE, socket),
            sealed: Vec::new(),
            snapshot: transfer::Incoming::new(shared.transfers.clone(), peer.id()),
        };
        match incoming.next().await {
            Ok(Came::Message(first)) if first.is_empty() => Ok((peer, incoming, key)),
            Ok(_) => Err(io::Error::other("it does not begin as agreed")),
            Err(error) => {
                shared.complain(peer.as_str(), &from.to_string(), "it has another key or cluster id");
                Err(error)
            }
        }
    });
    let Ok(Ok((peer, incoming, key))) = greeted.await else { return };
    let (with, from) = (shared.clone(), peer.id());
    let hearing = tokio::spawn(async move {
        tokio::select! {
            () = hear(with.clone(), from, incoming) => {}
            () = with.until_refused(key) => {}
        }
    });
    let mut heard = shared.heard.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(older) = heard.insert(peer.id(), hearing.abort_handle()) {
        older.abort();
    }
}

async fn greet(
    shared: &Shared,
    socket: &mut TcpStream,
    from: SocketAddr,
) -> io::Result<(NodeName, Stream, KeyId)> {
    let hello = Hello::from_bytes(&read_greeting(socket).await?).map_err(io::Error::other)?;
    let known = hello.to == shared.me && hello.from != shared.me && shared.members.contains(&hello.from);
    let keys = shared.keys.borrow().clone();
    let (answer, why) = match welcome(&hello, &keys, shared.cluster) {
        _ if !known => (Turned::Name, "it wants somebody else, or is no member"),
        _ if (&hello.log, hello.shape) != (&shared.log, shared.shape) => {
            (Turned::Log, "it wants another log, or one of other members")
        }
        None => (Turned::Key, "it has another key"),
        Some((answer, stream)) => {
            write_greeting(socket, &answer.to_bytes()).await?;
            return Ok((hello.from, stream, hello.key));
        }
    };
    shared.complain(hello.from.as_str(), &from.ip().to_string(), why);
    write_greeting(socket, &Answer::Turned(answer).to_bytes()).await?;
    Err(io::Error::other(why))
}

async fn hear(shared: Arc<Shared>, from: NodeId, mut incoming: Incoming) {
    while let Ok(came) = incoming.next().await {
        let bytes = match came {
            Came::Message(bytes) if bytes.is_empty() => continue,
            Came::Message(bytes) => bytes,
            Came::Snapshot(came) => {
                tokio::spawn(shared.clone().take_up(from, came)); // The disk holds up no message.
                continue;
            }
        };
        let kib = u32::try_from(bytes.len() / 1024 + 1).unwrap_or(ROOM_KIB).min(ROOM_KIB);
        let Ok(room) = shared.room.clone().acquire_many_owned(kib).await else { return };
        match whole(&bytes) {
            Ok(Talk::Resume(resume)) => shared.transfers.note_asked(from, resume),
            // As older versions send a short one.
            Ok(Talk::Log(log::Message::Install { upto, sessions, state })) => {
                let outgoing = Outgoing { upto, sessions, state };
                shared.deliver_snapshot(from, shared.transfers.keep(from, outgoing).await).await;
            }
            Ok(talk) => (shared.deliver)(Delivery { from, talk, _room: room }),
            Err(_) => shared.complain(
                "a member",
                "a stream",
                "it says what is not understood: do all run one version?",
            ),
        }
    }
}

/// Something that came on a stream.
enum Came {
    Message(Vec<u8>),
    /// A snapshot, or why the disk did not take it.
    Snapshot(io::Result<Body>),
}

/// The receiving end of a stream.
struct Incoming {
    stream: Stream,
    reader: BufReader<TcpStream>,
    sealed: Vec<u8>,
    /// The snapshot that comes between the other messages.
    snapshot: transfer::Incoming,
}

impl Incoming {
    /// Returns the next thing that comes. An error ends the stream.
    async fn next(&mut self) -> io::Result<Came> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 4];
            self.reader.read_exact(&mut head).await?;
            let length = usize::try_from(u32::from_be_bytes(head)).map_err(io::Error::other)?;
            if length > 1 + PIECE + STREAM_TAG {
                return Err(io::Error::other("a frame is too long"));
            }
            self.sealed.resize(length, 0);
            self.reader.read_exact(&mut self.sealed).await?;
            let plain = self.stream.open(&head, &mut self.sealed);
            let (kind, piece) = plain
                .and_then(<[u8]>::split_first)
                .ok_or_else(|| io::Error::other("a frame does not open"))?;
            if kind & OF_SNAPSHOT != 0 {
                if let Some(came) = self.snapshot.take(*kind, piece).await? {
                    return Ok(Came::Snapshot(came));
                }
                continue;
            }
            if message.len() + piece.len() > MAX_MESSAGE {
                return Err(io::Error::other("a message is too long"));
            }
            message.extend_from_slice(piece);
            if kind & GOES_ON == 0 {
                return Ok(Came::Message(message));
            }
        }
    }
}

impl Shared {
    /// Makes a snapshot durable that has come, and tells the machine of it.
    async fn take_up(self: Arc<Self>, from: NodeId, came: io::Result<Body>) {
        let message = match came {
            Ok(body) => self.transfers.finish(from, body).await,
            Err(error) => Err(error),
        };
        self.deliver_snapshot(from, message).await;
    }

    async fn deliver_snapshot(&self, from: NodeId, message: io::Result<log::Message>) {
        let message = match message {
            Ok(message) => message,
            Err(error) => return self.say_refused(from, &error),
        };
        self.refused.store(false, Relaxed);
        if let Ok(room) = self.room.clone().acquire_owned().await {
            (self.deliver)(Delivery { from, talk: Talk::Log(message), _room: room });
        }
    }

    fn say_refused(&self, from: NodeId, error: &io::Error) {
        if !self.refused.swap(true, Relaxed) {
            let (log, node) = (&self.log, &self.me);
            let peer = self.members.iter().find(|name| name.id() == from).map(NodeName::as_str);
            tracing::error!(name: "tenure.log_snapshot_refused", log = %log, node = %node, peer, error = %error, "a snapshot of another member could not be kept: it is asked for again");
        }
    }

    /// Waits until a key is accepted no more: streams under it end then.
    async fn until_refused(&self, key: KeyId) {
        if self.keys.clone().wait_for(|keys| !keys.has(key)).await.is_err() {
            std::future::pending::<()>().await; // Nobody can change the keys any more.
        }
    }

    /// Once for each member, place and reason.
    fn complain(&self, peer: &str, address: &str, why: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < 64 && said.insert(format!("{peer} {address} {why}")) {
            tracing::warn!(name: "tenure.log_refused", log = %self.log, node = %self.me, peer, address, why, "no stream to a member of the log");
        }
    }
}

/// Small messages leave at once, and a host that is gone is noticed.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    socket.set_tcp_user_timeout(Some(SILENCE))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE).with_interval(Duration::from_secs(1)))
}

async fn write_greeting(socket: &mut TcpStream, greeting: &[u8]) -> io::Result<()> {
    let length = u16::try_from(greeting.len()).map_err(io::Error::other)?;
    socket.write_all(&[&length.to_be_bytes()[..], greeting].concat()).await
}

async fn read_greeting(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::from(socket.read_u16().await?);
    if length > MAX_GREETING {
        return Err(io::Error::other("a greeting is too long"));
    }
    let mut greeting = vec![0; length];
    socket.read_exact(&mut greeting).await?;
    Ok(greeting)
}

#[cfg(test)]
mod tests {
    use super::super::snapshots::Snapshots;
    use super::*;

    /// A line that nobody reads but the test.
    fn line() -> (Links, NodeId, Waiting) {
        let name = NodeName::new("b").unwrap();
        let ((queue, messages), (snapshots, long)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let state = Arc::new(LineState { up: AtomicBool::new(true), ..LineState::default() });
        let to = name.id();
        let lines =
            BTreeMap::from([(to, Line { name: name.clone(), queue, snapshots, state: state.clone() })]);
        let keys = Arc::new(watch::channel(Keyring::new(crate::ClusterKey::generate())).0);
        let transfers = Arc::new(Transfers::new(Snapshots::new(std::path::Path::new("none"))));
        let links = Links { lines, me: name, log: GroupName::new("kv").unwrap(), transfers, keys };
        (links, to, Waiting { messages, snapshots: long, state })
    }

    fn install() -> Talk {
        let (upto, sessions) = (log::Slot(1), log::Sessions::default());
        Talk::Log(log::Message::Install { upto, sessions, state: vec![0; 40].into() })
    }

    fn short() -> Talk {
        Talk::Log(log::Message::Fetch { from: log::Slot(1) })
    }

    #[test]
    fn messages_for_which_there_is_no_room_are_dropped() {
        let (links, to, mut waiting) = line();
        let state = waiting.state.clone();
        state.queued.store(QUEUE, Relaxed);
        links.send(to, short());
        assert!(waiting.messages.try_recv().is_err(), "there is no room in the queue");
        let mut on_its_way = OnItsWay { state: &state, bytes: QUEUE };
        on_its_way.has_gone();
        drop(on_its_way);
        links.send(to, short());
        assert!(waiting.messages.try_recv().is_ok(), "what has gone counts once");
    }

    #[test]
    fn one_snapshot_at_a_time_is_on_its_way_and_other_messages_do_not_wait_for_it() {
        let (links, to, mut waiting) = line();
        links.send(to, install());
        links.send(to, install());
        links.send(to, short());
        assert!(waiting.snapshots.try_recv().is_ok() && waiting.snapshots.try_recv().is_err());
        assert!(waiting.messages.try_recv().is_ok());
        waiting.drop_all();
        links.send(to, install());
        assert!(waiting.snapshots.try_recv().is_ok(), "the next stream takes the next one");
    }
}
