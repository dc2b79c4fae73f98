//! One session: two keys, a counter, and the window of what was accepted.

use std::net::SocketAddr;

use aws_lc_rs::aead::LessSafeKey;

use super::MAX_PACKET;
use super::keys::{KeyId, Pair};
use super::packet::{self, DATA_HEAD, TAG};
use super::refusal::Refusal;
use super::secret::{Secret, wipe};
use super::window::Window;

/// The end of a session that began it sends with one key, the other end with the other: a packet
/// that is sent back to its sender does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Initiator,
    Responder,
}

/// Which sessions to make, and with what.
pub(super) struct Terms<'a> {
    pub(super) pair: &'a Pair,
    /// The key of the cluster that the pair key comes from.
    pub(super) key: KeyId,
    pub(super) introduction: &'a [u8],
    pub(super) responder_boot: u128,
    /// The instant, on this process's count, at which it gave the session what makes it new: its
    /// challenge, or its stamp.
    pub(super) born: u64,
}

pub(super) struct Link {
    pub(super) id: u64,
    pub(super) born: u64,
    pub(super) key: KeyId,
    pub(super) address: SocketAddr,
    ours: LessSafeKey,
    theirs: LessSafeKey,
    next: u64,
    window: Window,
    /// Until the first answer: the other side may know nothing of the session yet.
    introduction: Option<Box<[u8]>>,
}

impl Link {
    pub(super) fn new(end: End, terms: &Terms<'_>, address: SocketAddr) -> Self {
        let boot = terms.responder_boot.to_be_bytes();
        let mut bytes: [u8; 72] = terms.pair.0.derive(&[b"tenure session\0", terms.introduction, &boot]);
        let (id, keys) = bytes.split_first_chunk().expect("8 of 72 bytes");
        let id = u64::from_be_bytes(*id);
        let forth = sealing(&keys[..32]);
        let back = sealing(&keys[32..]);
        wipe(&mut bytes);
        let (ours, theirs, introduction) = match end {
            End::Initiator => (forth, back, Some(terms.introduction.into())),
            End::Responder => (back, forth, None),
        };
        let (born, key) = (terms.born, terms.key);
        Self { id, born, key, address, ours, theirs, next: 0, window: Window::default(), introduction }
    }

    /// Adds the introduction while the other side may need it, if the packet has room for it.
    pub(super) fn seal(&mut self, plaintext: &[u8]) -> Option<Vec<u8>> {
        let counter = self.next;
        self.next = counter.checked_add(1)?;
        let room = MAX_PACKET.saturating_sub(DATA_HEAD + plaintext.len() + TAG);
        let introduction = self.introduction.as_deref().filter(|bytes| bytes.len() <= room);
        Some(packet::seal_data(&self.ours, self.id, counter, introduction, plaintext))
    }

    /// Opens a packet whose sealed part begins at `head`. Says also whether the peer has moved:
    /// whether this is its newest packet and comes from another address than the one before. Where
    /// it is not known from which address a packet comes, nobody has moved.
    pub(super) fn open<'p>(
        &mut self,
        counter: u64,
        head: usize,
        packet: &'p mut [u8],
        from: Option<SocketAddr>,
    ) -> Result<(&'p [u8], bool), Refusal> {
        if !self.window.is_new(counter) {
            return Err(Refusal::Replayed);
        }
        let plaintext = packet::open_data(&self.theirs, counter, head, packet).ok_or(Refusal::Forged)?;
        let newest = self.window.accept(counter);
        let elsewhere = from.filter(|from| newest && *from != self.address);
        self.address = elsewhere.unwrap_or(self.address);
        Ok((plaintext, elsewhere.is_some()))
    }

    /// The other side has answered: it knows the session.
    pub(super) fn is_known(&mut self) {
        self.introduction = None;
    }
}

fn sealing(bytes: &[u8]) -> LessSafeKey {
    Secret::new(bytes.try_into().expect("keys have 32 bytes")).sealing()
}
