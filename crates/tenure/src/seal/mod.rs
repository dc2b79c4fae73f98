//! Keys and sessions: who sent a packet, that nobody has seen or changed it, and that it is not an
//! old one.
//!
//! A pure state machine: bytes, the time and a seed go in, bytes come out. [`Sessions`] has all of
//! it.
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
//! The stamp is a checksum, under a secret that only B has, over all of Hello and Welcome and A's
//! address. Hello and Welcome are sealed under the pair key of the two, everything after under keys
//! of the session. These come from the pair key, both challenges (B's is `issued` with the stamp)
//! and both boots; there is one for each direction. Until A has heard an answer its packets have
//! the introduction in them, from which B can rebuild what it did not keep. After one round trip A
//! can speak; a peer that was restarted is spoken to again after two at most. Both sides can send
//! on a session, so a candidate without an address of its own is reached by the session that it
//! began.
//!
//! B keeps nothing until a First proves that A received a Welcome at its address and holds the key.
//! So a flood of greetings costs B no memory, and the answer is shorter than the greeting. Only a
//! holder of some key of the cluster, or somebody who repeats a holder's packet, gets an answer at
//! all: greetings carry a *knock*, a checksum under a key that all members share, or all outsiders.
//! B checks it before it derives anything or takes anything from the [limits](limit). Members and
//! outsiders have limits of their own, so no outsider can use up what members need.
//!
//! # Why nothing old is taken again
//!
//! Within a session, each counter is accepted [once](window). So a replay could only succeed if a
//! session could begin twice.
//!
//! *Where A keeps it:* a session begins only by a Welcome to a challenge that A is waiting for.
//! Challenges are random, and A forgets a challenge when it is answered. None comes twice.
//!
//! *Where B keeps it:* a session begins by a First with a stamp that B made. `issued` is B's clock,
//! moved on by one where it would repeat: every Welcome of this life of B has another `issued`, and
//! they rise. Each session belongs to one *key*: that of a member, by its name, or that of an
//! outsider, by all that the key was made for ([`floors::Holder`]). The stamp covers these fields,
//! so a Welcome is good for one key. B takes a First only if
//!
//! 1. the stamp is of this life: the key of stamps is drawn at each start, so nothing from before a
//!    restart passes;
//! 2. it is for this address, and at most [`Limits::welcome_valid`] old;
//! 3. `issued` is larger than that of the session that a peer of this name has begun here before,
//!    if there is one;
//! 4. `issued` is larger than the **floor** of the key. Whenever B drops a session and puts no
//!    newer one *of the same key* in its place, it raises the floor of that key to the `issued` of
//!    the session. It does so when it needs room, when another life or another key takes the name,
//!    and when a key expires, is revoked or is taken away.
//!
//! Take any session S, of key K, that has begun at B in this life.
//!
//! * While S is there, its First is a packet like any other, and its counter was accepted.
//! * If a newer session of K has replaced S, rule 3 refuses S while the newer one is there. When
//!   that one is dropped, or replaced in turn, the same holds for its successor, which is newer
//!   still; and when the last of them is dropped, K's floor is at its `issued`, above S.
//! * If S was dropped, K's floor is at S or above, and rule 4 refuses S.
//!
//! So S begins once, and B remembers one number for each key instead of one for each session: it
//! can drop any session at any time. The price is that a handshake under way has to be begun anew
//! if a younger session *of the same key* is dropped. No key can cause that for another. The number
//! of keys that B remembers is bounded; [`floors`] says what happens to the floors of the others,
//! and why that hurts nobody.
//!
//! Rule 3 also keeps a First that was held back from replacing a newer session; and one of another
//! boot or key than the sessions that are there must be newer than all of them ([`known`]).
//!
//! # How a process learns that its key is refused
//!
//! A key may be genuine and not good any more: revoked, or expired. Its holder is told so, in a
//! Welcome that begins nothing, or else it would wait without ever knowing why. This opens no door:
//!
//! * *Amplification.* It is a Welcome like any other: shorter than the greeting, answered to the
//!   knock of a genuine greeting only, and taken from a small limit of its own: such keys use up
//!   nothing of what others are allowed.
//! * *Oracle.* The verdict is sealed under the pair key and of the same length as any other. One
//!   who repeats a greeting that it saw gets a Welcome in both cases and cannot open it. Silence,
//!   which it would get otherwise, would tell it that the key was revoked. One who guesses ids of
//!   keys has no greeting that opens, and gets nothing.
//! * *Forgery.* Only one that holds the cluster's key can make it, for a challenge that the
//!   receiver is waiting for. The receiver believes members that are enough to keep it from leading
//!   anyway (a blocking set), never a single one.
//! * *Beginnings.* The stamp is over version 0, and no First with that version is taken.
//!
//! # Attacks that remain
//!
//! One who sees and sends packets can hold them back, and sees names, scopes and sizes. If it sends
//! a packet on faster than the network does, from its own address, the answers go there until the
//! next packet of the real sender; it cannot read them. A holder of the cluster's key can do
//! everything: there is no protection against members that lie. There is no forward secrecy either:
//! an attacker that learns the key later can read what it recorded. The packets carry leases.
//!
//! A process that was cloned or forked repeats counters. The cipher, AES-256-GCM-SIV, then tells a
//! listener no more than whether two packets were the same, and receivers take only one of the two.

mod claims;
mod floors;
mod identity;
mod keys;
mod known;
mod limit;
mod link;
mod packet;
mod refusal;
mod revocations;
mod scope;
mod secret;
mod sessions;
mod stream;
mod window;

#[cfg(test)]
mod tests;

pub use claims::{Claims, Names, Serial};
pub use keys::{CandidateKey, ClusterKey, KeyError, KeyId, KeyKind, Keyring};
pub use refusal::{Counters, KeyRefusal};
pub use scope::{MAX_SCOPE, Scope, ScopeError};

pub(crate) use identity::{Credentials, Identity};
pub(crate) use known::Peer;
pub(crate) use refusal::{Refusal, Versions};
pub(crate) use revocations::{Full, MAX_REVOKED, MAX_TOLD, Revocation, Revocations};
pub(crate) use scope::Rights;
pub(crate) use sessions::{Expect, Limits, Received, Sessions};
pub(crate) use stream::{Answer, Hello, MAX_GREETING, STREAM_TAG, Stream, Turned, welcome, welcomed};

/// The longest packet: it passes every network that is in use without being cut into pieces.
pub(crate) const MAX_PACKET: usize = 1200;

/// The bytes that sealing adds to a packet.
pub(crate) const OVERHEAD: usize = packet::DATA_HEAD + packet::TAG;
