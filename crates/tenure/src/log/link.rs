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
//! not wait for it: one snapshot at a time to each member, and further ones are dropped meanwhile.
//!
//! Before a caller has proved that it holds the key it costs a place among 32 and room for two
//! pieces, 256 KiB; afterwards at most [`MAX_MESSAGE`], and a snapshot. When the places are taken,
//! the oldest caller goes of the network that has most of them: strangers cannot keep members away
//! by calling and saying nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
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
use crate::chance;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::seal::{
    Answer, Hello, KeyId, Keyring, MAX_GREETING, STREAM_TAG, Stream, Turned, welcome, welcomed,
};

/// The longest message, but for snapshots.
pub(super) const MAX_MESSAGE: usize = 256 << 20;

/// The longest message with a snapshot: a little shorter than a frame of the file can be.
pub(super) const MAX_SNAPSHOT: usize = u32::MAX as usize - (64 << 20);

/// Longer messages go in pieces of this length.
const PIECE: usize = 128 << 10;

/// How many bytes may wait to be sent to one member, those included that are being sent. A single
/// message may be longer if nothing else waits.
const QUEUE: usize = 16 << 20;

/// How many bytes that came in may wait to be handled, in KiB: from all members together.
const ROOM_KIB: u32 = 64 << 10;

/// How many callers may be there that have not proved yet that they hold the key.
const STRANGERS: usize = 32;

/// How long a greeting, or a connection, may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long what was sent may stay unacknowledged before a stream counts as broken.
const SILENCE: Duration = Duration::from_secs(5);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The byte before each piece: whether the message goes on after it, and whether it is of the
/// snapshot that goes between the other messages.
const GOES_ON: u8 = 1;
const ENDS: u8 = 0;
const OF_SNAPSHOT: u8 = 2;

/// A message on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    /// Of the log.
    Log(log::Message),
    /// Of the election, where the members of the log elect among themselves.
    Election(eventual::Message),
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
    /// The stream on which each member is heard. A newer one takes its place.
    heard: Mutex<BTreeMap<NodeId, AbortHandle>>,
    /// The complaints that were logged: once is enough.
    said: Mutex<BTreeSet<String>>,
}

/// The way out to one member.
struct Line {
    name: NodeName,
    queue: mpsc::UnboundedSender<Vec<u8>>,
    snapshots: mpsc::UnboundedSender<Talk>,
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
    /// The longest message with a snapshot.
    most: usize,
    /// The keys that streams are opened and accepted with.
    pub(super) keys: Arc<watch::Sender<Keyring>>,
}

impl Links {
    /// Sends a message, or drops it if there is no stream or no room.
    pub(super) fn send(&self, to: NodeId, talk: &Talk) {
        let Some(line) = self.lines.get(&to).filter(|line| line.state.up.load(Relaxed)) else { return };
        let least = at_least(talk);
        if least > PIECE {
            return self.send_snapshot(line, talk, least);
        }
        let queued = line.state.queued.load(Relaxed);
        let has_room = |length: usize| queued == 0 || queued.saturating_add(length) <= QUEUE;
        if !has_room(1) {
            return;
        }
        let message = bytes_of(talk);
        let length = message.len();
        if length > MAX_MESSAGE {
            self.say_too_long(line, length, MAX_MESSAGE);
        } else if has_room(length) {
            line.state.queued.fetch_add(length, Relaxed);
            let _ = line.queue.send(message);
        }
    }

    /// Its bytes are made on another thread.
    fn send_snapshot(&self, line: &Line, talk: &Talk, least: usize) {
        if least > self.most {
            self.say_too_long(line, least, self.most);
        } else if !line.state.has_snapshot.swap(true, Relaxed) {
            let _ = line.snapshots.send(talk.clone());
        }
    }

    fn say_too_long(&self, line: &Line, bytes: usize, most: usize) {
        if !line.state.said.swap(true, Relaxed) {
            let (log, node, peer) = (&self.log, &self.me, &line.name);
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

/// How long a message is at least: a snapshot that is dropped need not become bytes first.
fn at_least(talk: &Talk) -> usize {
    if let Talk::Log(log::Message::Install { state, .. }) = talk { state.len() } else { 0 }
}

/// The tasks that keep all streams, to be run in a runtime, and the ways out.
pub(super) fn links(
    config: &Checked,
    listener: Option<std::net::TcpListener>,
    deliver: impl Fn(Delivery) + Send + Sync + 'static,
) -> (Arc<Links>, impl Future<Output = ()> + Send + 'static) {
    let (set_keys, keys) = watch::channel(config.keys.clone());
    let shared = Arc::new(Shared {
        me: config.me.clone(),
        log: config.log.clone(),
        shape: config.shape(),
        members: config.members.iter().map(|(name, _)| name.clone()).collect(),
        cluster: config.cluster,
        keys,
        deliver: Box::new(deliver),
        room: Arc::new(Semaphore::new(ROOM_KIB as usize)),
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
    (Arc::new(Links { lines, me, log, most: MAX_SNAPSHOT, keys: Arc::new(set_keys) }), tasks)
}

/// The messages that wait to be sent to one member.
struct Waiting {
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    snapshots: mpsc::UnboundedReceiver<Talk>,
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
                _ = transmit(socket, stream, &mut waiting) => {}
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
async fn transmit(socket: TcpStream, mut stream: Stream, waiting: &mut Waiting) -> io::Result<()> {
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
                talk = waiting.snapshots.recv() => {
                    snapshot = Pieces::of(talk).await;
                    snapshot.is_some().then(Vec::new)
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
        if let Some(pieces) = &mut snapshot
            && pieces.seal_next(&mut stream, &mut bytes)
        {
            snapshot = None;
            state.has_snapshot.store(false, Relaxed);
        }
    }
}

/// A snapshot that goes piece by piece.
struct Pieces {
    message: Vec<u8>,
    sent: usize,
}

impl Pieces {
    /// The bytes of a snapshot, made where they hold up no stream. None if there will be no more.
    async fn of(talk: Option<Talk>) -> Option<Self> {
        let talk = talk?;
        let message = tokio::task::spawn_blocking(move || bytes_of(&talk)).await.ok()?;
        Some(Self { message, sent: 0 })
    }

    /// Adds the next piece to what is sent. True if it was the last.
    fn seal_next(&mut self, stream: &mut Stream, bytes: &mut Vec<u8>) -> bool {
        let end = (self.sent + PIECE).min(self.message.len());
        let last = end == self.message.len();
        let goes_on = if last { ENDS } else { GOES_ON };
        pack_piece(stream, &self.message[self.sent..end], goes_on | OF_SNAPSHOT, bytes);
        self.sent = end;
        last
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

/// Callers that have proved nothing yet, the oldest first.
#[derive(Default)]
struct Strangers(VecDeque<(IpAddr, AbortHandle)>);

impl Strangers {
    /// One more. If there are too many another one goes.
    fn admit(&mut self, from: IpAddr, caller: AbortHandle) {
        self.0.retain(|(_, caller)| !caller.is_finished());
        if self.0.len() >= STRANGERS {
            let networks: Vec<IpAddr> = self.0.iter().map(|(network, _)| *network).collect();
            if let Some((_, oldest)) = self.0.remove(who_goes(&networks)) {
                oldest.abort();
            }
        }
        self.0.push_back((network(from), caller));
    }
}

/// The first one of the network that has most of them.
fn who_goes(networks: &[IpAddr]) -> usize {
    let count = |network| networks.iter().filter(|other| *other == network).count();
    let most = networks.iter().map(count).max();
    networks.iter().position(|network| Some(count(network)) == most).unwrap_or(0)
}

/// Whose address this is: of IPv6 everybody has a whole network, for the asking.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
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
            snapshot: Vec::new(),
        };
        match incoming.message().await {
            Ok(first) if first.is_empty() => Ok((peer, incoming, key)),
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
    while let Ok(bytes) = incoming.message().await {
        if bytes.is_empty() {
            continue;
        }
        let kib = u32::try_from(bytes.len() / 1024 + 1).unwrap_or(ROOM_KIB).min(ROOM_KIB);
        let Ok(room) = shared.room.clone().acquire_many_owned(kib).await else { return };
        match whole(&bytes) {
            Ok(talk) => (shared.deliver)(Delivery { from, talk, _room: room }),
            Err(_) => shared.complain(
                "a member",
                "a stream",
                "it says what is not understood: do all run one version?",
            ),
        }
    }
}

/// The receiving end of a stream.
struct Incoming {
    stream: Stream,
    reader: BufReader<TcpStream>,
    sealed: Vec<u8>,
    /// The pieces of a snapshot that have come.
    snapshot: Vec<u8>,
}

impl Incoming {
    /// The next message. An error ends the stream.
    async fn message(&mut self) -> io::Result<Vec<u8>> {
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
            let (whole, most) = match kind & OF_SNAPSHOT {
                0 => (&mut message, MAX_MESSAGE),
                _ => (&mut self.snapshot, MAX_SNAPSHOT + PIECE),
            };
            if whole.len() + piece.len() > most {
                return Err(io::Error::other("a message is too long"));
            }
            whole.extend_from_slice(piece);
            if kind & GOES_ON == 0 {
                return Ok(std::mem::take(whole));
            }
        }
    }
}

impl Shared {
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
    use super::*;

    #[test]
    fn when_places_are_taken_the_oldest_caller_of_the_busiest_network_goes() {
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(who_goes(&[a, b, c]), 0);
        assert_eq!(who_goes(&[a, b, c, b]), 1);
        assert_eq!(who_goes(&[a, b, c, c, a, c]), 2);
    }

    #[test]
    fn a_whole_network_of_ipv6_is_one_caller() {
        let [one, other, far] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"]
            .map(|text| network(text.parse::<IpAddr>().unwrap()));
        assert!(one == other && one != far);
        assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1".parse::<IpAddr>().unwrap());
    }

    /// A line that nobody reads but the test.
    fn line() -> (Links, NodeId, Waiting) {
        let name = NodeName::new("b").unwrap();
        let ((queue, messages), (snapshots, long)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let state = Arc::new(LineState { up: AtomicBool::new(true), ..LineState::default() });
        let to = name.id();
        let lines =
            BTreeMap::from([(to, Line { name: name.clone(), queue, snapshots, state: state.clone() })]);
        let keys = Arc::new(watch::channel(Keyring::new(crate::ClusterKey::generate())).0);
        let links = Links { lines, me: name, log: GroupName::new("kv").unwrap(), most: 4 * PIECE, keys };
        (links, to, Waiting { messages, snapshots: long, state })
    }

    fn install(bytes: usize) -> Talk {
        let (upto, sessions) = (log::Slot(1), log::Sessions::default());
        Talk::Log(log::Message::Install { upto, sessions, state: vec![0; bytes].into() })
    }

    #[test]
    fn a_snapshot_that_is_too_long_is_dropped_and_said_once() {
        let (links, to, mut waiting) = line();
        links.send(to, &install(5 * PIECE));
        assert!(waiting.snapshots.try_recv().is_err() && waiting.state.said.load(Relaxed));
        links.send(to, &install(20));
        assert!(waiting.messages.try_recv().is_ok(), "others go on");
    }

    #[test]
    fn messages_for_which_there_is_no_room_are_dropped() {
        let (links, to, mut waiting) = line();
        let state = waiting.state.clone();
        state.queued.store(QUEUE, Relaxed);
        links.send(to, &install(20));
        assert!(waiting.messages.try_recv().is_err(), "there is no room in the queue");
        let mut on_its_way = OnItsWay { state: &state, bytes: QUEUE };
        on_its_way.has_gone();
        drop(on_its_way);
        links.send(to, &install(20));
        assert!(waiting.messages.try_recv().is_ok(), "what has gone counts once");
    }

    #[test]
    fn one_snapshot_at_a_time_is_on_its_way_and_other_messages_do_not_wait_for_it() {
        let (links, to, mut waiting) = line();
        links.send(to, &install(2 * PIECE));
        links.send(to, &install(3 * PIECE));
        links.send(to, &install(20));
        assert!(waiting.snapshots.try_recv().is_ok() && waiting.snapshots.try_recv().is_err());
        assert!(waiting.messages.try_recv().is_ok());
        waiting.drop_all();
        links.send(to, &install(2 * PIECE));
        assert!(waiting.snapshots.try_recv().is_ok(), "the next stream takes the next one");
    }
}
