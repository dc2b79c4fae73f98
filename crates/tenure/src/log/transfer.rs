//! Snapshots on their way from a file of one member to a file of another, in pieces.
//!
//! They go between the other messages of a stream. On the wire a snapshot is the message with it,
//! as older versions send and read it: this module makes and takes that message piece by piece.
//! Newer senders mark the pieces: the snapshot ends with its sum ([`CHECKED`]).
//!
//! The receiver writes to a file without a name. When all has come it checks length and sum, makes
//! the file durable and names it; then its machine is told, and not before. If a stream breaks, the
//! receiver keeps what has come, and says how much that is with its next question to that member
//! ([`Resume`]): the sender goes on from there ([`RESUMED`]), if it still has that snapshot. The
//! sum at the end is over all of it, so halves of two snapshots are never taken for one.
//!
//! While a snapshot comes, nobody else is asked for one. If no piece comes for a while, that ends.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_proto::log::{Bytes, Message, Sessions, Slot};
use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};
use tokio::task::spawn_blocking;

use super::codec::{read_install, write_install};
use super::snapshots::{Held, Opened, Snapshots, Unfinished};
use crate::clock::{Clock, nanos};
use crate::codec::{DecodeError, Reader};

/// Longer messages go in pieces of this length.
pub(super) const PIECE: usize = 128 << 10;

/// Kinds of a piece, one bit each: whether the message goes on after it;
pub(super) const GOES_ON: u8 = 1;
/// whether it is of the snapshot that goes between the other messages;
pub(super) const OF_SNAPSHOT: u8 = 2;
/// whether that ends with its sum: older senders do not say so, older receivers do not look;
const CHECKED: u8 = 4;
/// and whether it goes on from where a former stream broke.
const RESUMED: u8 = 8;

/// How long no piece may come before somebody else is asked.
const SILENCE: Duration = Duration::from_secs(5);

/// The most bytes before a snapshot: the table of sessions.
const HEAD: usize = 1 << 20;

/// How much of a snapshot a member has. The next one that it is sent may go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resume {
    pub(super) upto: Slot,
    /// Of the whole.
    pub(super) length: u64,
    pub(super) got: u64,
}

/// A snapshot that is to be sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) upto: Slot,
    pub(super) sessions: Sessions,
    pub(super) state: Bytes,
}

/// A snapshot that goes piece by piece.
pub(super) struct Pieces {
    opened: Opened,
    kind: u8,
    /// Bytes that were read, and not sent yet.
    ahead: Vec<u8>,
    sent: usize,
    /// Where to read on.
    at: u64,
}

impl Pieces {
    /// Begins, from where the receiver says that its part ends. None if the file is gone: then
    /// there is a later one.
    pub(super) async fn of(outgoing: Outgoing, snapshots: Snapshots, asked: Option<Resume>) -> Option<Self> {
        let held = Held::of_state(&outgoing.state)?;
        let opened = spawn_blocking(move || snapshots.open(held)).await.ok()?.ok()?;
        let Outgoing { upto, sessions, .. } = outgoing;
        let fits =
            |asked: &Resume| (asked.upto, asked.length) == (upto, held.length) && asked.got < asked.length;
        let mut ahead = write_install(upto, &sessions, held.length);
        let (mut kind, mut at) = (OF_SNAPSHOT | CHECKED, 0);
        if let Some(asked) = asked.filter(fits) {
            (kind, at) = (kind | RESUMED, asked.got);
            ahead.extend(at.to_be_bytes());
        }
        Some(Self { opened, kind, ahead, sent: 0, at })
    }

    /// The next piece and its kind, and whether it was the last.
    pub(super) async fn next(&mut self) -> io::Result<(Vec<u8>, u8, bool)> {
        if self.sent == self.ahead.len() {
            let (opened, at) = (self.opened.clone(), self.at);
            self.ahead = spawn_blocking(move || opened.read(at)).await.map_err(io::Error::other)??;
            self.at += self.ahead.len() as u64;
            self.sent = 0;
        }
        let end = (self.sent + PIECE).min(self.ahead.len());
        let piece = self.ahead[self.sent..end].to_vec();
        self.sent = end;
        let last = end == self.ahead.len() && self.at == self.opened.length();
        Ok((piece, if last { self.kind } else { self.kind | GOES_ON }, last))
    }
}

/// The snapshots on their way, to this process and from it.
pub(super) struct Transfers {
    snapshots: Snapshots,
    clock: Clock,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Those that come, by sender: up to which slot, and until when nobody else need be asked.
    coming: BTreeMap<NodeId, (Slot, LocalTime)>,
    /// Those whose streams broke.
    parked: BTreeMap<NodeId, Body>,
    /// How much those have that ask for one.
    asked: BTreeMap<NodeId, Resume>,
}

impl Transfers {
    pub(super) fn new(snapshots: Snapshots) -> Self {
        Self { snapshots, clock: Clock::boot(), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn patience(&self) -> LocalTime {
        self.clock.read().after(LocalSpan::from_nanos(nanos(SILENCE)))
    }

    /// Whether a snapshot that is on its way here answers a question for this slot.
    pub(super) fn answers(&self, from: Slot) -> bool {
        self.answered_by_other(from, None)
    }

    fn answered_by_other(&self, from: Slot, than: Option<NodeId>) -> bool {
        let now = self.clock.read();
        let known = self.known();
        let mut others = known.coming.iter().filter(|(node, _)| Some(**node) != than);
        others.any(|(_, (upto, until))| *upto >= from && *until > now)
    }

    /// A piece has come.
    fn note_coming(&self, from: NodeId, upto: Slot) {
        let until = self.patience();
        self.known().coming.insert(from, (upto, until));
    }

    /// How much is there of a snapshot of this member, whose stream broke.
    pub(super) fn parked(&self, at: NodeId, from: Slot) -> Option<Resume> {
        let mut known = self.known();
        let useless = |body: &mut Body| body.upto < from;
        drop(known.parked.get_mut(&at).is_some_and(useless).then(|| known.parked.remove(&at)));
        let body = known.parked.get(&at)?;
        Some(Resume { upto: body.upto, length: body.length, got: body.file.length })
    }

    pub(super) fn note_asked(&self, by: NodeId, resume: Resume) {
        self.known().asked.insert(by, resume);
    }

    pub(super) fn take_asked(&self, by: NodeId) -> Option<Resume> {
        self.known().asked.remove(&by)
    }

    pub(super) fn snapshots(&self) -> Snapshots {
        self.snapshots.clone()
    }

    /// Checks and names a snapshot that has come: the message that the machine may be told.
    pub(super) async fn finish(&self, from: NodeId, body: Body) -> io::Result<Message> {
        let (upto, forever) = (body.upto, LocalTime::from_nanos(u64::MAX));
        self.known().coming.insert(from, (upto, forever));
        let Body { sessions, file, checked, .. } = body;
        let sealed = spawn_blocking(move || if checked { file.check() } else { file.seal() }).await;
        let sealed = sealed.map_err(io::Error::other).flatten();
        // A failed one is asked for again after a pause. One that has come is not, while the state
        // machine takes it up.
        let until = self.patience();
        let mut known = self.known();
        known.coming.insert(from, (upto, until));
        if sealed.is_ok() {
            known.parked.retain(|_, body| body.upto > upto);
        }
        Ok(Message::Install { upto, sessions, state: sealed?.to_state() })
    }

    /// Puts a snapshot into a file that an older version has sent as one message.
    pub(super) async fn keep(&self, from: NodeId, outgoing: Outgoing) -> io::Result<Message> {
        let Outgoing { upto, sessions, state } = outgoing;
        let (snapshots, length) = (self.snapshots(), state.len() as u64);
        let written = spawn_blocking(move || {
            let mut file = snapshots.begin()?;
            io::Write::write_all(&mut file, &state).map(|()| file)
        });
        let file = written.await.map_err(io::Error::other)??;
        self.finish(from, Body { upto, sessions, length, file, checked: false }).await
    }
}

/// A snapshot that comes, or has come.
pub(super) struct Body {
    pub(super) upto: Slot,
    sessions: Sessions,
    length: u64,
    file: Unfinished,
    /// Whether it ends with its sum.
    checked: bool,
}

/// The snapshot that comes on a stream.
pub(super) struct Incoming {
    transfers: Arc<Transfers>,
    from: NodeId,
    now: Now,
}

enum Now {
    /// The bytes before the snapshot, as far as they have come.
    Head(Vec<u8>),
    Body(Body),
    /// The rest is not wanted.
    Skips,
}

impl Incoming {
    pub(super) fn new(transfers: Arc<Transfers>, from: NodeId) -> Self {
        Self { transfers, from, now: Now::Head(Vec::new()) }
    }

    /// Takes a piece, and returns the whole after the last one. If this process's disk does not
    /// take it, that is returned once; the pieces after it are dropped.
    ///
    /// # Errors
    /// The outer one if the sender does not speak as agreed: the stream is to be closed.
    pub(super) async fn take(&mut self, kind: u8, piece: &[u8]) -> io::Result<Option<io::Result<Body>>> {
        let ends = kind & GOES_ON == 0;
        let rest = match &mut self.now {
            Now::Skips => Ok(()),
            Now::Head(head) => {
                head.extend_from_slice(piece);
                let head = std::mem::take(head);
                self.begin(kind, head).await?
            }
            Now::Body(body) => body.add(piece.to_vec()).await?,
        };
        if let Err(error) = rest {
            self.now = if ends { Now::Head(Vec::new()) } else { Now::Skips };
            return Ok(Some(Err(error)));
        }
        if let Now::Body(body) = &self.now {
            self.transfers.note_coming(self.from, body.upto);
        }
        if !ends {
            return Ok(None);
        }
        match std::mem::replace(&mut self.now, Now::Head(Vec::new())) {
            Now::Body(body) if body.file.length == body.length => Ok(Some(Ok(body))),
            Now::Skips => Ok(None),
            Now::Body(_) | Now::Head(_) => Err(io::Error::other("a snapshot ends too soon")),
        }
    }

    /// Reads the bytes before a snapshot, if they are all there.
    async fn begin(&mut self, kind: u8, head: Vec<u8>) -> io::Result<io::Result<()>> {
        let mut from = Reader::new(&head);
        let read = read_install(&mut from).and_then(|install| {
            let at = if kind & RESUMED == 0 { None } else { Some(from.fixed()?) };
            Ok((install, at))
        });
        let ((upto, sessions, length), at) = match read {
            Ok(read) => read,
            Err(DecodeError::Truncated) if head.len() < HEAD => {
                self.now = Now::Head(head);
                return Ok(Ok(()));
            }
            Err(_) => return Err(io::Error::other("no snapshot begins like this")),
        };
        let content = head[head.len() - from.left()..].to_vec();
        let covered = self.transfers.answered_by_other(upto, Some(self.from));
        self.transfers.note_coming(self.from, upto);
        let parked = self.transfers.known().parked.remove(&self.from);
        let fits = |body: &Body| (body.upto, body.length, Some(body.file.length)) == (upto, length, at);
        let body = match (at, parked.filter(fits)) {
            _ if covered => None,
            (Some(_), parked) => parked,
            (None, _) => match self.transfers.snapshots.begin() {
                Ok(file) => Some(Body { upto, sessions, length, file, checked: kind & CHECKED != 0 }),
                Err(error) => return Ok(Err(error)),
            },
        };
        let Some(mut body) = body else {
            self.now = Now::Skips;
            return Ok(Ok(()));
        };
        let added = body.add(content).await?;
        self.now = Now::Body(body);
        Ok(added)
    }
}

impl Body {
    /// Writes a piece. The outer error is the sender's fault, the inner one that of the disk.
    async fn add(&mut self, piece: Vec<u8>) -> io::Result<io::Result<()>> {
        if self.file.length + piece.len() as u64 > self.length {
            return Err(io::Error::other("a snapshot is longer than it says"));
        }
        Ok(self.file.add(piece).await)
    }
}

impl Drop for Incoming {
    /// The stream is gone: what has come is kept, for the next one.
    fn drop(&mut self) {
        let mut known = self.transfers.known();
        match std::mem::replace(&mut self.now, Now::Skips) {
            Now::Body(body) => {
                known.coming.remove(&self.from);
                if body.checked {
                    known.parked.insert(self.from, body);
                }
            }
            Now::Head(_) | Now::Skips => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::codec::{bytes_of, whole};
    use super::super::link::Talk;
    use super::*;

    const FROM: NodeId = NodeId(1);

    /// A member, and where its snapshots are.
    fn member() -> (TempDir, Arc<Transfers>) {
        let dir = tempfile::tempdir().unwrap();
        let transfers = Arc::new(Transfers::new(Snapshots::new(dir.path())));
        (dir, transfers)
    }

    /// A snapshot of 3 MiB and a bit, and its bytes.
    fn outgoing(of: &Transfers) -> (Outgoing, Vec<u8>) {
        let content: Vec<u8> =
            (0..(3 << 20) + 77).map(|at: u32| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
        let held = of.snapshots.put(&content).unwrap();
        let bytes = std::fs::read(of.snapshots.path(held)).unwrap();
        let (upto, sessions) = (Slot(9), Sessions::default());
        (Outgoing { upto, sessions, state: held.to_state() }, bytes)
    }

    type Piece = (Vec<u8>, u8, bool);

    async fn all(outgoing: &Outgoing, of: &Transfers, asked: Option<Resume>) -> Vec<Piece> {
        let mut sending = Pieces::of(outgoing.clone(), of.snapshots(), asked).await.unwrap();
        let mut pieces = Vec::new();
        while pieces.last().is_none_or(|(_, _, last): &Piece| !last) {
            pieces.push(sending.next().await.unwrap());
        }
        pieces
    }

    /// Gives all these pieces to a stream: the whole, if it is one.
    async fn give(incoming: &mut Incoming, pieces: &[Piece]) -> Option<io::Result<Body>> {
        let mut came = None;
        for (piece, kind, _) in pieces {
            assert!(came.is_none());
            came = incoming.take(*kind, piece).await.unwrap();
        }
        came
    }

    /// The bytes of the file that a message of this process to itself names.
    fn file_of(message: &Message, at: &Transfers) -> Vec<u8> {
        let Message::Install { state, .. } = message else { panic!("{message:?}") };
        std::fs::read(at.snapshots.path(Held::of_state(state).unwrap())).unwrap()
    }

    fn files(dir: &TempDir) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[tokio::test]
    async fn what_is_sent_is_a_message_that_older_versions_read() {
        let (_dir, sender) = member();
        let (outgoing, bytes) = outgoing(&sender);
        let pieces = all(&outgoing, &sender, None).await;
        assert!(pieces.iter().all(|(piece, kind, _)| piece.len() <= PIECE && kind & OF_SNAPSHOT != 0));
        let message: Vec<u8> = pieces.into_iter().flat_map(|(piece, ..)| piece).collect();
        let (upto, sessions) = (outgoing.upto, outgoing.sessions);
        let expected = Talk::Log(Message::Install { upto, sessions, state: bytes.into() });
        assert!(whole::<Talk>(&message) == Ok(expected));
    }

    #[tokio::test]
    async fn what_older_versions_send_becomes_a_file() {
        let (_dir, receiver) = member();
        let state = vec![7; 3 * PIECE + 5];
        let install =
            Message::Install { upto: Slot(9), sessions: Sessions::default(), state: state.clone().into() };
        let message = bytes_of(&Talk::Log(install));
        let mut pieces: Vec<Piece> =
            message.chunks(PIECE).map(|piece| (piece.to_vec(), OF_SNAPSHOT | GOES_ON, false)).collect();
        pieces.last_mut().unwrap().1 = OF_SNAPSHOT;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        let body = give(&mut incoming, &pieces).await.unwrap().unwrap();
        let message = receiver.finish(FROM, body).await.unwrap();
        assert!(file_of(&message, &receiver).starts_with(&state));
        let outgoing =
            Outgoing { upto: Slot(10), sessions: Sessions::default(), state: b"short".to_vec().into() };
        let message = receiver.keep(FROM, outgoing).await.unwrap();
        assert!(file_of(&message, &receiver).starts_with(b"short"));
    }

    #[tokio::test]
    async fn a_snapshot_goes_on_where_its_stream_broke() {
        let ((_dir, sender), (_there, receiver)) = (member(), member());
        let (outgoing, bytes) = outgoing(&sender);
        let pieces = all(&outgoing, &sender, None).await;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        assert!(give(&mut incoming, &pieces[..10]).await.is_none());
        assert!(receiver.answers(Slot(9)) && !receiver.answers(Slot(10)), "nobody else need be asked");
        assert_eq!(receiver.parked(FROM, Slot(9)), None, "it still comes");
        drop(incoming);
        assert!(!receiver.answers(Slot(9)));
        let resume = receiver.parked(FROM, Slot(9)).unwrap();
        assert!(resume.got > 8 * PIECE as u64);
        sender.note_asked(FROM, resume);
        let rest = all(&outgoing, &sender, sender.take_asked(FROM)).await;
        let sent: usize = rest.iter().map(|(piece, ..)| piece.len()).sum();
        assert!(sent < bytes.len() - 8 * PIECE, "{sent} bytes");
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        let body = give(&mut incoming, &rest).await.unwrap().unwrap();
        let message = receiver.finish(FROM, body).await.unwrap();
        assert!(file_of(&message, &receiver) == bytes);
    }

    #[tokio::test]
    async fn a_part_of_another_snapshot_is_not_gone_on_with() {
        let ((_dir, sender), (there, receiver)) = (member(), member());
        let (outgoing, _) = outgoing(&sender);
        let pieces = all(&outgoing, &sender, None).await;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        give(&mut incoming, &pieces[..10]).await;
        drop(incoming);
        let resume = receiver.parked(FROM, Slot(9)).unwrap();
        let later = Outgoing { upto: Slot(10), ..outgoing.clone() };
        let whole = all(&later, &sender, Some(resume)).await;
        assert_eq!(whole.len(), pieces.len(), "the sender has another one by now, and begins anew");
        let elsewhere = all(&outgoing, &sender, Some(Resume { got: resume.got - 1, ..resume })).await;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        assert!(give(&mut incoming, &elsewhere).await.is_none(), "it is not what is there");
        assert!(matches!(incoming.now, Now::Head(_)), "and the stream goes on");
        assert_eq!(files(&there), 0);
    }

    #[tokio::test]
    async fn a_byte_that_has_changed_on_the_way_is_found_and_nothing_is_kept() {
        let ((_dir, sender), (there, receiver)) = (member(), member());
        let (outgoing, _) = outgoing(&sender);
        let mut pieces = all(&outgoing, &sender, None).await;
        pieces[5].0[1000] ^= 1;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        let body = give(&mut incoming, &pieces).await.unwrap().unwrap();
        assert!(receiver.finish(FROM, body).await.is_err());
        assert_eq!(files(&there), 0);
    }

    #[tokio::test]
    async fn while_a_snapshot_comes_the_same_from_another_member_is_not_kept() {
        let ((_dir, sender), (there, receiver)) = (member(), member());
        let (outgoing, _) = outgoing(&sender);
        let pieces = all(&outgoing, &sender, None).await;
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        give(&mut incoming, &pieces[..10]).await;
        let mut other = Incoming::new(receiver.clone(), NodeId(2));
        assert!(give(&mut other, &pieces).await.is_none());
        assert_eq!(files(&there), 1);
        assert!(give(&mut incoming, &pieces[10..]).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_snapshot_for_which_the_disk_has_no_place_is_told_once_and_the_stream_goes_on() {
        let ((_dir, sender), (there, receiver)) = (member(), member());
        let (outgoing, _) = outgoing(&sender);
        let pieces = all(&outgoing, &sender, None).await;
        let at = there.path().to_path_buf();
        drop(there);
        let mut incoming = Incoming::new(receiver.clone(), FROM);
        let mut told = 0;
        for (piece, kind, _) in &pieces {
            told += usize::from(incoming.take(*kind, piece).await.unwrap().is_some());
        }
        assert_eq!(told, 1);
        std::fs::create_dir(&at).unwrap();
        let body = give(&mut incoming, &pieces).await.unwrap().unwrap();
        assert!(receiver.finish(FROM, body).await.is_ok());
        std::fs::remove_dir_all(at).unwrap();
    }
}
