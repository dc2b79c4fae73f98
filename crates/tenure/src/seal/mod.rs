//! Keys and sessions: who sent a packet, that nobody has seen or changed it, and that it is not an old one.
//!
//! A pure state machine: bytes, the time and a seed go in, bytes come out. [`Sessions`] has all of it.
//!
//! # How a session begins
//!
//! ```text
//!   A  Hello   { who I am, versions, boot, challenge } ─────────────────────────▶  B  keeps nothing
//!   A  ◀─────────────────────── Welcome { challenge, issued, stamp, version, boot }
//!   A  First   { session, counter, who I am, challenge, issued, stamp, … | data } ─▶  B  begins the session
//!   A  ◀──────────────────────────────────────── Data { session, counter | data }
//! ```
//!
//! The stamp is a checksum, under a secret that only B has, over all of Hello and Welcome and A's address. Hello and
//! Welcome are sealed under the pair key of the two, everything after under keys of the session. These come from the pair
//! key, both challenges (B's is `issued` with the stamp) and both boots; there is one for each direction. Until A has heard
//! an answer its packets have the introduction in them, from which B can rebuild what it did not keep. After one round
//! trip A can speak; a peer that was restarted is spoken to again after two at most. Both sides can send on a session, so
//! a candidate without an address of its own is reached by the session that it began.
//!
//! B keeps nothing until a First proves that A received a Welcome at its address and holds the key. So a flood of greetings
//! costs B no memory, and what it answers is shorter than what it was sent. Only somebody with a key of the cluster, or one
//! who repeats what such a one sent, gets an answer at all: greetings carry a *knock*, a checksum under a key that all of
//! them share, which is checked before anything is derived or taken from the [limits](limit).
//!
//! # Why nothing old is taken again
//!
//! Within a session, counters are accepted [once](window). So the question is whether a session can begin twice.
//!
//! *Where A keeps it:* a session begins only by a Welcome to a challenge that A is waiting for. Challenges are random and
//! are forgotten when they are answered. None comes twice.
//!
//! *Where B keeps it:* a session begins by a First with a stamp that B made. `issued` is B's clock, moved on by one where
//! it would repeat: every Welcome of this life of B has another, and they rise. B takes a First only if
//!
//! 1. the stamp is of this life: the key of stamps is drawn at each start, so nothing from before a restart passes;
//! 2. it is for this address, and at most [`Limits::welcome_valid`] old;
//! 3. `issued` is larger than that of the session which this peer has begun here before, if there is one;
//! 4. `issued` is larger than the **floor**. Whenever B drops a session and puts no newer one in its place, because it
//!    needs room or because its key was taken away, it raises the floor to the `issued` of that session.
//!
//! Take any session S that has begun at B in this life. While it is there, its First is a packet like any other, and its
//! counter was accepted. If a newer session of the peer has replaced it, rule 3 refuses S; if that one is dropped, the
//! floor is above both. If S was dropped itself, the floor is at S, and rule 4 refuses it. So S begins once, and B needs
//! to remember one number for all sessions that ever ended: it can drop any of them at any time. The price is that a
//! handshake which is under way when a younger session is dropped has to be begun anew.
//!
//! Rule 3 also keeps a First that was held back from replacing a newer session; and one of another boot than the
//! sessions that are there must be newer than all of them ([`known`]).
//!
//! # What an attacker can still do
//!
//! One who sees and sends packets can hold them back, and sees names, scopes and sizes. If it sends a packet on faster
//! than the network does, from its own address, the answers go there until the next packet of the real sender; it
//! cannot read them. Who has the cluster's key can do everything: there is no protection against members that lie. There
//! is no forward secrecy either: who learns the key later can read what it recorded. What travels here are leases.
//!
//! A process that was cloned or forked repeats counters. The cipher, AES-256-GCM-SIV, then tells a listener no more
//! than whether two packets were the same, and receivers take only one of the two.

mod identity;
mod keys;
mod known;
mod limit;
mod link;
mod packet;
mod refusal;
mod scope;
mod secret;
mod sessions;
mod stream;
mod window;

#[cfg(test)]
mod tests;

pub use keys::{CandidateKey, ClusterKey, KeyError, KeyId, KeyKind, Keyring};
pub use refusal::Counters;
pub use scope::{MAX_SCOPE, Scope, ScopeError};

pub(crate) use identity::{Credentials, Identity};
pub(crate) use known::Peer;
pub(crate) use refusal::{Refusal, Versions};
pub(crate) use sessions::{Expect, Limits, Received, Sessions};
pub(crate) use stream::{Answer, Hello, MAX_GREETING, STREAM_TAG, Stream, Turned, welcome, welcomed};

/// The longest packet: it passes every network that is in use without being cut into pieces.
pub(crate) const MAX_PACKET: usize = 1200;

/// What sealing adds to a packet, in bytes.
pub(crate) const OVERHEAD: usize = packet::DATA_HEAD + packet::TAG;
