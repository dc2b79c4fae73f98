//! A stream between two members: who is at its other end, and that nobody reads or changes what
//! goes through it. Pure, as all of this folder: bytes in, bytes out.
//!
//! ```text
//!   A  Hello    { who I am, whom I want, which log, key, challenge } ──▶  B
//!   A  ◀────────────────────── Welcome { challenge, proof } or Refusal
//!   A  frames, each sealed with its number ──────────────────────────▶  B
//! ```
//!
//! The key of the frames comes from the pair key of the two and from both greetings, and there is a
//! fresh challenge in each. So an old Welcome proves nothing to A, and old frames do not open at B:
//! its challenge was another then. Frames count from zero: one that is missing, repeated or moved
//! does not open, and neither does any after it. The other direction has a stream of its own.

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use aws_lc_rs::hmac;

use super::keys::{KeyId, Keyring, Pair};
use crate::chance;
use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::name::{ClusterId, GroupName, NodeName};

/// The first bytes of every stream, with the version.
const MAGIC: &[u8; 8] = b"tenure-1";

/// The bytes that sealing adds to a frame.
pub(crate) const STREAM_TAG: usize = 16;

/// The longest greeting of either side, in bytes.
pub(crate) const MAX_GREETING: usize = 512;

const PROOF: usize = 32;

/// The first message of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) from: NodeName,
    pub(crate) to: NodeName,
    /// The log that the stream is for.
    pub(crate) log: GroupName,
    /// A digest of the settings that both must agree on.
    pub(crate) shape: u64,
    /// Which of the cluster's keys it speaks.
    pub(crate) key: KeyId,
    challenge: [u8; 32],
}

impl Hello {
    pub(crate) fn new(from: NodeName, to: NodeName, (log, shape): (GroupName, u64), keys: &Keyring) -> Self {
        Self { from, to, log, shape, key: keys.speak.id(), challenge: chance::bytes() }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new();
        to.raw(MAGIC);
        self.from.write(&mut to);
        self.to.write(&mut to);
        self.log.write(&mut to);
        to.number(self.shape);
        to.raw(&self.key.0);
        to.raw(&self.challenge);
        to.into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = Reader::new(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(DecodeError::Invalid);
        }
        let hello = Self {
            from: NodeName::read(&mut from)?,
            to: NodeName::read(&mut from)?,
            log: GroupName::read(&mut from)?,
            shape: from.number()?,
            key: KeyId(array(&mut from)?),
            challenge: array(&mut from)?,
        };
        if from.is_empty() { Ok(hello) } else { Err(DecodeError::TooLong) }
    }
}

/// Why a caller is sent away. For its log alone: nobody has proved anything yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// The callee does not have the caller's key.
    Key,
    /// Somebody else is called there, or the caller is not among the members.
    Name,
    /// The callee does not keep that log, or keeps it with other members.
    Log,
}

/// The answer of the process that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Welcome { challenge: [u8; 32], proof: [u8; PROOF] },
    Turned(Turned),
}

impl Answer {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new();
        match self {
            Self::Welcome { challenge, proof } => {
                to.byte(0);
                to.raw(challenge);
                to.raw(proof);
            }
            Self::Turned(Turned::Key) => to.byte(1),
            Self::Turned(Turned::Name) => to.byte(2),
            Self::Turned(Turned::Log) => to.byte(3),
        }
        to.into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = Reader::new(bytes);
        let answer = match from.byte()? {
            0 => Self::Welcome { challenge: array(&mut from)?, proof: array(&mut from)? },
            1 => Self::Turned(Turned::Key),
            2 => Self::Turned(Turned::Name),
            3 => Self::Turned(Turned::Log),
            other => return Err(DecodeError::Kind(u64::from(other))),
        };
        if from.is_empty() { Ok(answer) } else { Err(DecodeError::TooLong) }
    }
}

/// The callee's part: a Welcome with its proof, and the stream. `None` if it does not have the
/// caller's key.
pub(crate) fn welcome(hello: &Hello, keys: &Keyring, cluster: ClusterId) -> Option<(Answer, Stream)> {
    let challenge = chance::bytes();
    let (proof, stream) = agree(hello, &challenge, keys, cluster)?;
    let proof = hmac::sign(&proof, PROVES).as_ref().try_into().expect("SHA-256 has 32 bytes");
    Some((Answer::Welcome { challenge, proof }, stream))
}

/// The caller's part: the stream, if the Welcome is from one who has the key and has just read this
/// very Hello.
pub(crate) fn welcomed(hello: &Hello, answer: &Answer, keys: &Keyring, cluster: ClusterId) -> Option<Stream> {
    let Answer::Welcome { challenge, proof } = answer else { return None };
    let (key, stream) = agree(hello, challenge, keys, cluster)?;
    hmac::verify(&key, PROVES, proof).ok().map(|()| stream)
}

/// All that goes into the proof is in its key already.
const PROVES: &[u8] = b"tenure stream welcome";

fn agree(
    hello: &Hello,
    challenge: &[u8; 32],
    keys: &Keyring,
    cluster: ClusterId,
) -> Option<(hmac::Key, Stream)> {
    let root = keys.roots(cluster).into_iter().find(|root| root.id == hello.key)?;
    let Pair(pair) = root.pair(hello.from.as_str(), hello.to.as_str());
    let bytes = hello.to_bytes();
    let length = u64::try_from(bytes.len()).expect("greetings are short").to_be_bytes();
    let parts = |label| [label, &length[..], &bytes[..], &challenge[..]];
    let proof = pair.derive_mac(&parts(b"tenure stream proof\0"));
    let key = pair.derive_sealing(&parts(b"tenure stream\0"));
    Some((proof, Stream { key, next: 0 }))
}

/// One end of a stream: the frames from one process to another, each with its number.
pub(crate) struct Stream {
    key: LessSafeKey,
    next: u64,
}

impl Stream {
    /// Seals what follows the first `head` bytes, in place, and adds the tag.
    pub(crate) fn seal(&mut self, frame: &mut Vec<u8>, head: usize) {
        let nonce = self.nonce();
        let (before, plain) = frame.split_at_mut(head);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(&*before), plain);
        frame.extend_from_slice(tag.expect("a frame is shorter than the cipher allows").as_ref());
    }

    /// Opens the next frame. `None` if it is not the next one, or not whole: then the stream is
    /// over.
    pub(crate) fn open<'f>(&mut self, head: &[u8], sealed: &'f mut [u8]) -> Option<&'f [u8]> {
        let nonce = self.nonce();
        self.key.open_in_place(nonce, Aad::from(head), sealed).ok().map(|plain| &*plain)
    }

    fn nonce(&mut self) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(bytes)
    }
}

fn array<const N: usize>(from: &mut Reader<'_>) -> Result<[u8; N], DecodeError> {
    Ok(from.raw(N)?.try_into().expect("as many as were asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::ClusterKey;

    const CLUSTER: ClusterId = ClusterId(7);

    fn hello(keys: &Keyring) -> Hello {
        let name = |text| NodeName::new(text).unwrap();
        Hello::new(name("a"), name("b"), (GroupName::new("kv").unwrap(), 3), keys)
    }

    fn both(keys: &Keyring) -> (Stream, Stream) {
        let hello = hello(keys);
        let (answer, at_b) = welcome(&hello, keys, CLUSTER).unwrap();
        (welcomed(&hello, &answer, keys, CLUSTER).unwrap(), at_b)
    }

    fn sealed(stream: &mut Stream, text: &[u8]) -> Vec<u8> {
        let mut frame = text.to_vec();
        stream.seal(&mut frame, 0);
        frame
    }

    #[test]
    fn two_who_share_a_key_hear_each_other() {
        let keys = Keyring::new(ClusterKey::generate());
        let (mut a, mut b) = both(&keys);
        for text in [&b"one"[..], b"", b"three"] {
            let mut frame = sealed(&mut a, text);
            assert_eq!(b.open(&[], &mut frame), Some(text));
        }
    }

    #[test]
    fn greetings_come_back_as_they_were_written() {
        let keys = Keyring::new(ClusterKey::generate());
        let hello = hello(&keys);
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Ok(hello.clone()));
        assert!(hello.to_bytes().len() < MAX_GREETING);
        let (answer, _) = welcome(&hello, &keys, CLUSTER).unwrap();
        for answer in
            [answer, Answer::Turned(Turned::Key), Answer::Turned(Turned::Name), Answer::Turned(Turned::Log)]
        {
            assert_eq!(Answer::from_bytes(&answer.to_bytes()), Ok(answer));
        }
        assert!(Hello::from_bytes(b"GET / HTTP/1.1\r\n").is_err());
    }

    #[test]
    fn another_key_another_cluster_and_an_old_welcome_prove_nothing() {
        let (keys, others) = (Keyring::new(ClusterKey::generate()), Keyring::new(ClusterKey::generate()));
        let first = hello(&keys);
        assert!(welcome(&first, &others, CLUSTER).is_none());
        let (answer, _) = welcome(&first, &keys, CLUSTER).unwrap();
        assert!(welcomed(&first, &answer, &keys, ClusterId(8)).is_none());
        assert!(welcomed(&hello(&keys), &answer, &keys, CLUSTER).is_none(), "it answers another greeting");
    }

    #[test]
    fn a_key_that_is_still_accepted_opens_streams() {
        let (old, new) = (ClusterKey::generate(), ClusterKey::generate());
        let caller = Keyring::new(old.clone());
        let callee = Keyring { speak: new, accept: vec![old] };
        let hello = hello(&caller);
        let (answer, _) = welcome(&hello, &callee, CLUSTER).unwrap();
        assert!(welcomed(&hello, &answer, &caller, CLUSTER).is_some());
    }

    #[test]
    fn frames_that_are_repeated_changed_or_from_another_stream_do_not_open() {
        let keys = Keyring::new(ClusterKey::generate());
        let (mut a, mut b) = both(&keys);
        let mut frame = sealed(&mut a, b"one");
        assert!(b.open(&[], &mut frame.clone()).is_some());
        assert!(b.open(&[], &mut frame.clone()).is_none(), "once more");
        let (mut a, mut b) = both(&keys);
        assert!(b.open(&[], &mut frame).is_none(), "from a stream of before");
        let mut changed = sealed(&mut a, b"two");
        changed[0] ^= 1;
        assert!(b.open(&[], &mut changed).is_none());
        let (mut a, mut b) = both(&keys);
        let _lost = sealed(&mut a, b"lost");
        assert!(b.open(&[], &mut sealed(&mut a, b"next")).is_none(), "one is missing");
    }
}
