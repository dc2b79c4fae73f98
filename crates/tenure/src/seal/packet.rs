//! The four kinds of packets, byte by byte.
//!
//! ```text
//!   every packet   magic 1 · kind 1
//!   Hello          knock 8 · cluster 4 · to 8 · challenge 16 · sender · sealed { oldest 1, newest 1, boot 16, zeros }
//!   Welcome        challenge 16 · issued 8 · stamp 16 · sealed { version 1, oldest 1, newest 1, boot 16 }
//!                  refusing a key: version 0, oldest 0 (which no process speaks), newest 1 revoked or 2 expired
//!   First          session 8 · counter 8 · introduction · sealed { anything }
//!   Data           session 8 · counter 8 · sealed { anything }
//!
//!   sender         key id 4 · 0 or claims · length 1, name
//!   introduction   sender · boot 16 · challenge 16 · version 1 · issued 8 · stamp 16
//! ```
//!
//! Fields outside of the seal are authenticated all the same: they are the associated data of the
//! seal. (Of a Hello, all that comes after the knock; the knock is made last, over all that follows
//! it.) Anyone who sees the packets can read names and scopes. The readers are total, take no
//! memory, and ignore what a later version may have put at the end of a sealed part.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use aws_lc_rs::hmac;
use tenure_proto::NodeId;

use super::claims::{Claims, MAX_CLAIMS, Stated, short_text};
use super::keys::KeyId;
use super::refusal::{KeyRefusal, Versions};
use super::scope::Rights;
use crate::name::{MAX_NODE_NAME, NodeName};

/// The first byte of every packet.
const MAGIC: u8 = 0xe7;

/// The bytes that sealing adds.
pub(super) const TAG: usize = 16;

/// Kind, session and counter: what comes before the introduction of a First, and before the sealed
/// part of a Data.
pub(super) const DATA_HEAD: usize = 2 + 8 + 8;

const KNOCKED: usize = 2 + 8;
const HELLO_HEAD: usize = KNOCKED + 4 + 8 + 16;
const HELLO_FIELDS: usize = 2 + 16;
const WELCOME_HEAD: usize = 2 + 16 + 8 + 16;
const WELCOME_FIELDS: usize = 3 + 16;
const WELCOME: usize = WELCOME_HEAD + WELCOME_FIELDS + TAG;

/// No greeting is shorter. Longer than its answer, so that answers can be sent to an address that
/// nobody has proved to own, and with some room in which later versions may answer more.
const HELLO_LEAST: usize = 128;
const _: () = assert!(WELCOME <= HELLO_LEAST);

/// The longest packet that is not data.
const HELLO_MOST: usize = HELLO_HEAD + 4 + MAX_CLAIMS + 1 + MAX_NODE_NAME + HELLO_FIELDS + TAG;
const _: () = assert!(HELLO_MOST <= 1200 && MAX_NODE_NAME < 256);

/// The kinds of packets of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hello,
    Welcome,
    First,
    Data,
}

impl Kind {
    /// The upper half is the format, the lower half the kind.
    fn code(self) -> u8 {
        match self {
            Self::Hello => 0x11,
            Self::Welcome => 0x12,
            Self::First => 0x13,
            Self::Data => 0x14,
        }
    }

    /// `None` for whatever is no packet of ours.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let [MAGIC, code, ..] = packet else { return None };
        [Self::Data, Self::First, Self::Hello, Self::Welcome].into_iter().find(|kind| kind.code() == *code)
    }
}

/// The claimed sender: the fields as they stand in the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'p> {
    pub(super) bytes: &'p [u8],
    pub(super) key: KeyId,
    /// `None` for one that holds the cluster's key. Else what it says that its own was made for.
    pub(super) claims: Option<Stated<'p>>,
    pub(super) name: &'p str,
}

impl<'p> Sender<'p> {
    /// Reads it from the beginning of `bytes`, which may go on.
    fn read(bytes: &'p [u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk()?;
        let (claims, rest) = match rest {
            [0, rest @ ..] => (None, rest),
            _ => Stated::read(rest).map(|claims| (Some(claims), &rest[claims.bytes.len()..]))?,
        };
        let (name, rest) = short_text(rest)?;
        let bytes = &bytes[..bytes.len() - rest.len()];
        Some(Self { bytes, key: KeyId(*key), claims, name })
    }

    /// The name and rights of the sender, if the claim is true. `None` if there is no such key.
    pub(super) fn rights(&self) -> Option<(NodeName, Rights)> {
        let name = NodeName::new(self.name).ok()?;
        let rights = match &self.claims {
            None => Rights::Member,
            Some(claims) => claims.rights(&name)?,
        };
        Some((name, rights))
    }

    /// All of it but the name: what stands for the key.
    pub(super) fn key_bytes(&self) -> [&'p [u8]; 2] {
        [&self.bytes[..4], self.claims.map_or(&[0], |claims| claims.bytes)]
    }

    /// The fields of somebody, for its own packets.
    pub(super) fn write(key: KeyId, claims: Option<&Claims>, name: &str) -> Box<[u8]> {
        let mut bytes = key.0.to_vec();
        bytes.extend(claims.map_or_else(|| vec![0], Claims::to_bytes));
        bytes.push(u8::try_from(name.len()).expect("names are short"));
        bytes.extend_from_slice(name.as_bytes());
        bytes.into()
    }
}

/// A greeting as received.
pub(super) struct Hello<'p> {
    head: &'p [u8],
    sealed: &'p mut [u8],
    pub(super) cluster: [u8; 4],
    pub(super) to: NodeId,
    pub(super) challenge: [u8; 16],
    pub(super) sender: Sender<'p>,
}

impl<'p> Hello<'p> {
    pub(super) fn read(packet: &'p mut [u8]) -> Option<Self> {
        let sender = Sender::read(packet.get(HELLO_HEAD..)?)?.bytes.len();
        let long_enough =
            packet.len() >= HELLO_LEAST && packet.len() >= HELLO_HEAD + sender + HELLO_FIELDS + TAG;
        let (head, sealed) = packet.split_at_mut_checked(HELLO_HEAD + sender).filter(|_| long_enough)?;
        let head: &'p [u8] = head;
        Some(Self {
            cluster: array(head, KNOCKED),
            to: NodeId(u64::from_be_bytes(array(head, KNOCKED + 4))),
            challenge: array(head, KNOCKED + 12),
            sender: Sender::read(&head[HELLO_HEAD..])?,
            head,
            sealed,
        })
    }

    /// Whether the sender has some key of the cluster, or repeats what one sent who had.
    pub(super) fn knocks(&self, key: &hmac::Key) -> bool {
        let expected = knock(key, &self.head[KNOCKED..], self.sealed);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected, &self.head[2..KNOCKED]).is_ok()
    }

    /// Opens the sealed part: versions and boot. `None` if it was not sealed with this key.
    pub(super) fn open(self, key: &LessSafeKey) -> Option<(Versions, u128)> {
        let plain = open(key, nonce_of(&self.challenge), &self.head[KNOCKED..], self.sealed)?;
        Some((Versions { oldest: plain[0], newest: plain[1] }, u128::from_be_bytes(array(plain, 2))))
    }
}

/// The contents of a greeting.
pub(super) struct Greeting<'a> {
    pub(super) cluster: [u8; 4],
    pub(super) to: NodeId,
    pub(super) challenge: [u8; 16],
    pub(super) sender: &'a [u8],
    pub(super) versions: Versions,
    pub(super) boot: u128,
}

impl Greeting<'_> {
    pub(super) fn seal(&self, key: &LessSafeKey, knock_key: &hmac::Key) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HELLO_MOST);
        packet.extend([MAGIC, Kind::Hello.code()]);
        packet.extend([0; 8]);
        packet.extend(self.cluster);
        packet.extend(self.to.0.to_be_bytes());
        packet.extend(self.challenge);
        packet.extend(self.sender);
        let head = packet.len();
        packet.extend([self.versions.oldest, self.versions.newest]);
        packet.extend(self.boot.to_be_bytes());
        packet.resize(packet.len().max(HELLO_LEAST - TAG), 0);
        seal(key, nonce_of(&self.challenge), &mut packet, KNOCKED, head);
        let knock = knock(knock_key, &packet[KNOCKED..head], &packet[head..]);
        packet[2..KNOCKED].copy_from_slice(&knock);
        packet
    }
}

fn knock(key: &hmac::Key, head: &[u8], sealed: &[u8]) -> [u8; 8] {
    let mut context = hmac::Context::with_key(key);
    context.update(head);
    context.update(sealed);
    array(context.sign().as_ref(), 0)
}

/// The answer to a greeting, as received.
pub(super) struct Welcome<'p> {
    head: &'p [u8],
    sealed: &'p mut [u8],
    pub(super) challenge: [u8; 16],
    pub(super) issued: u64,
    pub(super) stamp: [u8; 16],
}

impl<'p> Welcome<'p> {
    pub(super) fn read(packet: &'p mut [u8]) -> Option<Self> {
        let fits = packet.len() >= WELCOME;
        let (head, sealed) = packet.split_at_mut_checked(WELCOME_HEAD).filter(|_| fits)?;
        let head: &'p [u8] = head;
        let (challenge, issued) = (array(head, 2), u64::from_be_bytes(array(head, 18)));
        Some(Self { challenge, issued, stamp: array(head, 26), head, sealed })
    }

    /// Opens the sealed part: the verdict, and the boot of the sender.
    pub(super) fn open(self, key: &LessSafeKey) -> Option<(Verdict, u128)> {
        let plain = open(key, nonce_of(&self.stamp), self.head, self.sealed)?;
        let versions = Versions { oldest: plain[1], newest: plain[2] };
        let verdict = match (plain[0], versions.oldest) {
            (0, 0) => KeyRefusal::from_code(versions.newest).map(Verdict::Refused)?,
            (0, _) => Verdict::NoCommon(versions),
            (version, _) => Verdict::Version(version),
        };
        Some((verdict, u128::from_be_bytes(array(plain, 3))))
    }
}

/// The answer to a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A session may begin; it speaks this version.
    Version(u8),
    /// The sender speaks these versions, and none in common.
    NoCommon(Versions),
    /// The key is genuine and not good any more.
    Refused(KeyRefusal),
}

impl Verdict {
    /// The version of a session that may begin; 0 if none may.
    pub(super) fn version(self) -> u8 {
        match self {
            Self::Version(version) => version,
            Self::NoCommon(_) | Self::Refused(_) => 0,
        }
    }
}

/// The contents of an answer to a greeting.
pub(super) struct Answer {
    pub(super) challenge: [u8; 16],
    pub(super) issued: u64,
    pub(super) stamp: [u8; 16],
    pub(super) verdict: Verdict,
    pub(super) versions: Versions,
    pub(super) boot: u128,
}

impl Answer {
    pub(super) fn seal(&self, key: &LessSafeKey) -> Vec<u8> {
        let mut packet = Vec::with_capacity(WELCOME);
        packet.extend([MAGIC, Kind::Welcome.code()]);
        packet.extend(self.challenge);
        packet.extend(self.issued.to_be_bytes());
        packet.extend(self.stamp);
        let Versions { oldest, newest } = match self.verdict {
            Verdict::Refused(why) => Versions { oldest: 0, newest: why.code() },
            Verdict::Version(_) | Verdict::NoCommon(_) => self.versions,
        };
        packet.extend([self.verdict.version(), oldest, newest]);
        packet.extend(self.boot.to_be_bytes());
        seal(key, nonce_of(&self.stamp), &mut packet, 0, WELCOME_HEAD);
        packet
    }
}

/// The part of a First that introduces its sender to a receiver that has kept nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Introduction<'p> {
    pub(super) bytes: &'p [u8],
    pub(super) sender: Sender<'p>,
    pub(super) boot: u128,
    pub(super) challenge: [u8; 16],
    pub(super) version: u8,
    pub(super) issued: u64,
    pub(super) stamp: [u8; 16],
}

impl<'p> Introduction<'p> {
    /// Reads it from a First. The sealed part comes right after.
    pub(super) fn read(packet: &'p [u8]) -> Option<Self> {
        let bytes = packet.get(DATA_HEAD..)?;
        let sender = Sender::read(bytes)?;
        let at = sender.bytes.len();
        let bytes = bytes.get(..at + 16 + 16 + 1 + 8 + 16)?;
        Some(Self {
            bytes,
            sender,
            boot: u128::from_be_bytes(array(bytes, at)),
            challenge: array(bytes, at + 16),
            version: bytes[at + 32],
            issued: u64::from_be_bytes(array(bytes, at + 33)),
            stamp: array(bytes, at + 41),
        })
    }

    /// The bytes that the stamp covers.
    pub(super) fn said(&self) -> &'p [u8] {
        &self.bytes[..self.bytes.len() - self.stamp.len()]
    }
}

/// All of an introduction but its stamp.
pub(super) fn say(sender: &[u8], boot: u128, challenge: [u8; 16], version: u8, issued: u64) -> Vec<u8> {
    let mut bytes = sender.to_vec();
    bytes.extend(boot.to_be_bytes());
    bytes.extend(challenge);
    bytes.push(version);
    bytes.extend(issued.to_be_bytes());
    bytes
}

/// The stamp of a process that answers a greeting: a sender that shows it again, from this address,
/// has said this before.
pub(super) fn stamp(key: &hmac::Key, said: &[u8], from: SocketAddr) -> [u8; 16] {
    let mut context = hmac::Context::with_key(key);
    let ip = match from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    context.update(&ip.octets());
    context.update(&from.port().to_be_bytes());
    context.update(said);
    array(context.sign().as_ref(), 0)
}

/// Session and counter of a First or a Data that is long enough to hold a seal.
pub(super) fn session_of(packet: &[u8]) -> Option<(u64, u64)> {
    let fits = packet.len() >= DATA_HEAD + TAG;
    fits.then(|| (u64::from_be_bytes(array(packet, 2)), u64::from_be_bytes(array(packet, 10))))
}

/// A First, if there is an introduction, or a Data.
pub(super) fn seal_data(
    key: &LessSafeKey,
    session: u64,
    counter: u64,
    introduction: Option<&[u8]>,
    plaintext: &[u8],
) -> Vec<u8> {
    let kind = if introduction.is_some() { Kind::First } else { Kind::Data };
    let introduction = introduction.unwrap_or_default();
    let mut packet = Vec::with_capacity(DATA_HEAD + introduction.len() + plaintext.len() + TAG);
    packet.extend([MAGIC, kind.code()]);
    packet.extend(session.to_be_bytes());
    packet.extend(counter.to_be_bytes());
    packet.extend(introduction);
    let head = packet.len();
    packet.extend(plaintext);
    seal(key, nonce_of_counter(counter), &mut packet, 0, head);
    packet
}

/// Opens a First or a Data whose sealed part begins at `head`.
pub(super) fn open_data<'p>(
    key: &LessSafeKey,
    counter: u64,
    head: usize,
    packet: &'p mut [u8],
) -> Option<&'p [u8]> {
    let (head, sealed) = packet.split_at_mut_checked(head)?;
    open(key, nonce_of_counter(counter), head, sealed)
}

/// Seals the end of a packet, from `head` on, and authenticates what comes before it, from `start`
/// on.
fn seal(key: &LessSafeKey, nonce: Nonce, packet: &mut Vec<u8>, start: usize, head: usize) {
    let (before, plain) = packet.split_at_mut(head);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&before[start..]), plain);
    packet.extend(tag.expect("packets are far shorter than the cipher allows").as_ref());
}

fn open<'p>(key: &LessSafeKey, nonce: Nonce, head: &[u8], sealed: &'p mut [u8]) -> Option<&'p [u8]> {
    key.open_in_place(nonce, Aad::from(head), sealed).ok().map(|plain| &*plain)
}

/// Challenges and stamps are as good as random. Should one come twice, this cipher gives away no
/// more than whether the two packets were the same.
fn nonce_of(random: &[u8; 16]) -> Nonce {
    Nonce::assume_unique_for_key(array(random, 0))
}

fn nonce_of_counter(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// `N` bytes from a place where they are known to be.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the length was checked")
}
