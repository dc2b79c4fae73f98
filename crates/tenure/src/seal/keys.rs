//! The keys of a cluster, and what is derived from them.
//!
//! ```text
//!   cluster key ── cluster id ──▶ root ── two names ───────────▶ pair key of two members
//!                                  │
//!                                  └── claims ──▶ candidate's secret ── member's name ──▶ pair key
//! ```
//!
//! A member holds the cluster key and can make every key. A process that is no member is given a
//! [`CandidateKey`], from which only its own pair keys can be made. It cannot speak as another, nor
//! as itself with a wider scope or a later expiry: all its [claims](super::claims) went into its
//! secret, and members derive that secret anew from the claims that a greeting states.
//!
//! To change the cluster's key without a gap: give every member the new key to accept; then let
//! every member speak it, and give candidates new keys; then take the old key away. A [`Keyring`]
//! is what one member has meanwhile.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use thiserror::Error;

use super::claims::{Claims, Names, Serial};
use super::scope::{Scope, ScopeError};
use super::secret::{Secret, wipe};
use crate::chance;
use crate::name::{ClusterId, NameError, NodeName};

const CLUSTER_PREFIX: &str = "tenure-key-1:";

/// Bytes of the checksum at the end of a key's text.
const CHECKSUM: usize = 4;

/// The key of a whole cluster.
///
/// A holder of it counts as a member and can make every other key.
///
/// ```
/// use tenure::ClusterKey;
///
/// let key = ClusterKey::generate();
/// let text = key.reveal(); // tenure-key-1:… for a file that only the node may read
/// assert_eq!(text.parse(), Ok(key));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey(Secret);

impl ClusterKey {
    /// Draws a new key from the system's generator.
    pub fn generate() -> Self {
        Self::from_bytes(chance::bytes())
    }

    /// Makes a key from 32 bytes, which must come from a good generator: a password is no key.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// Returns the secret as text, for a file that only the node may read.
    ///
    /// It ends with a checksum, so that a typo is told from another key.
    pub fn reveal(&self) -> String {
        sign(format!("{CLUSTER_PREFIX}{}", hex(self.0.bytes())))
    }

    /// Returns a short name of this key. It is no secret: equal keys have the same, others hardly
    /// ever.
    pub fn id(&self) -> KeyId {
        KeyId(self.0.derive(&[b"tenure key id\0"]))
    }

    /// Makes the key of a candidate: it campaigns for the groups of `scope` and is no member.
    ///
    /// Each call makes another key, with an id of its own.
    pub fn candidate(&self, cluster: ClusterId, name: NodeName, scope: Scope) -> CandidateKey {
        self.derive(cluster, Claims::candidate(name, scope))
    }

    /// Makes the key of a process that only watches the groups of `scope`.
    pub fn observer(&self, cluster: ClusterId, name: NodeName, scope: Scope) -> CandidateKey {
        self.derive(cluster, Claims::observer(name, scope))
    }

    /// Makes the key of a person or tool that asks leaders to act. It never leads.
    pub fn operator(&self, cluster: ClusterId, name: NodeName) -> CandidateKey {
        self.derive(cluster, Claims::operator(name))
    }

    /// Makes a key for exactly these claims.
    ///
    /// Members need not be told: they derive the same key from the claims.
    pub fn derive(&self, cluster: ClusterId, claims: Claims) -> CandidateKey {
        let root = Root::new(self, cluster);
        let secret = root.outsider(&claims.to_bytes());
        CandidateKey { claims, cluster, key: root.id, knock: root.knock, secret }
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterKey({})", self.id())
    }
}

impl FromStr for ClusterKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let body = text.strip_prefix(CLUSTER_PREFIX).ok_or(KeyError::NotAClusterKey)?;
        verify(text)?;
        let mut bytes = unhex::<{ 32 + CHECKSUM }>(body).ok_or(KeyError::Garbled)?;
        let key = Secret::new(bytes[..32].try_into().expect("there are 32 bytes and a checksum"));
        wipe(&mut bytes);
        Ok(Self(key))
    }
}

/// The short name of a cluster's key: sent in greetings, so that the receiver knows which of its
/// keys to use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(super) [u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The keys of one member: the one that it speaks, and those that it accepts during a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keyring {
    /// Used for every greeting that this member sends. Also accepted.
    pub speak: ClusterKey,
    /// Accepted, too. A key that is in neither place is refused, and sessions under it end.
    pub accept: Vec<ClusterKey>,
}

impl Keyring {
    /// Makes a keyring of one key.
    pub fn new(speak: ClusterKey) -> Self {
        Self { speak, accept: Vec::new() }
    }

    /// Whether a key of the cluster is spoken or accepted.
    pub(crate) fn has(&self, key: KeyId) -> bool {
        std::iter::once(&self.speak).chain(&self.accept).any(|accepted| accepted.id() == key)
    }

    /// The roots of all keys, that of the spoken key first.
    pub(super) fn roots(&self, cluster: ClusterId) -> Vec<Root> {
        std::iter::once(&self.speak).chain(&self.accept).map(|key| Root::new(key, cluster)).collect()
    }
}

/// The kind of a scoped key: what its holder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// It campaigns for the groups of its scope.
    Candidate,
    /// It watches the groups of its scope.
    Observer,
    /// It watches everything, and asks leaders to act.
    Operator,
}

impl KeyKind {
    const ALL: [Self; 3] = [Self::Candidate, Self::Observer, Self::Operator];

    fn prefix(self) -> &'static str {
        match self {
            Self::Candidate => "tenure-candidate-1:",
            Self::Observer => "tenure-observer-1:",
            Self::Operator => "tenure-operator-1:",
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// How it is written in greetings; 0 is a member.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Candidate => 1,
            Self::Observer => 2,
            Self::Operator => 3,
        }
    }
}

/// The key of a process that is no member: a candidate, an observer or an operator. With it nobody
/// can speak under another name, or for groups outside its scope.
///
/// As text it shows what it is for, and its id: `tenure-candidate-1:NAMES:SCOPE:ID:SECRET`.
///
/// ```
/// use tenure::{CandidateKey, ClusterId, ClusterKey, NodeName, Scope};
///
/// let cluster = ClusterId(0x1234);
/// let key = ClusterKey::generate();
/// let app = key.candidate(cluster, NodeName::new("app1").unwrap(), Scope::new("app1/*").unwrap());
/// assert!(app.reveal().starts_with("tenure-candidate-1:app1:app1/*:"));
/// assert_eq!(app.reveal().parse::<CandidateKey>(), Ok(app));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CandidateKey {
    claims: Claims,
    cluster: ClusterId,
    key: KeyId,
    knock: Knock,
    secret: Secret,
}

impl CandidateKey {
    /// Returns the kind of the key.
    pub fn kind(&self) -> KeyKind {
        self.claims.kind
    }

    /// Returns the cluster that the key belongs to.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Returns the id of the cluster key that it was made from.
    ///
    /// When members no longer accept that key, this one is worthless.
    pub fn made_from(&self) -> KeyId {
        self.key
    }

    /// Returns the key's own id, by which it can be revoked.
    pub fn serial(&self) -> Serial {
        self.claims.serial
    }

    /// Returns the last second, counted from 1970 (UTC), in which members accept it. `None`: it
    /// does not expire.
    pub fn expires(&self) -> Option<u64> {
        self.claims.not_after
    }

    /// Returns the founding of the cluster that it is for, if it names one.
    pub fn lineage(&self) -> Option<u128> {
        self.claims.lineage
    }

    /// Returns the only names under which its holder can speak.
    pub fn names(&self) -> &Names {
        &self.claims.names
    }

    /// Returns the groups that it is for. An operator's key has no scope: it is for all groups.
    pub fn scope(&self) -> Option<&Scope> {
        self.claims.scope.as_ref()
    }

    /// The secret as text, for a file that nobody else may read.
    pub fn reveal(&self) -> String {
        let Claims { kind, names, serial, not_after, lineage, .. } = &self.claims;
        let flags = u8::from(not_after.is_some()) | u8::from(lineage.is_some()) << 1;
        let parts = [
            hex(&self.cluster.0.to_be_bytes()),
            hex(&self.key.0),
            hex(&self.knock.0),
            hex(self.secret.bytes()),
            hex(&[flags]),
            hex(&not_after.unwrap_or(0).to_be_bytes()),
            hex(&lineage.unwrap_or(0).to_be_bytes()),
        ];
        let scope = self.claims.scope_text();
        sign(format!("{}{names}:{scope}:{serial}:{}", kind.prefix(), parts.concat()))
    }

    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    pub(super) fn knock(&self) -> &Knock {
        &self.knock
    }

    /// The key shared with one member.
    pub(super) fn pair(&self, member: &str) -> Pair {
        outsider_pair(&self.secret, member)
    }
}

impl fmt::Debug for CandidateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claims { kind, names, serial, .. } = &self.claims;
        write!(f, "CandidateKey({serial} {kind:?} {names} {:?}, of {})", self.claims.scope_text(), self.key)
    }
}

impl FromStr for CandidateKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let named = |kind: &KeyKind| text.strip_prefix(kind.prefix()).map(|rest| (*kind, rest));
        let (kind, rest) = KeyKind::ALL.iter().find_map(named).ok_or(KeyError::NotACandidateKey)?;
        verify(text)?;
        let (names, rest) = rest.split_once(':').ok_or(KeyError::Garbled)?;
        let (rest, secrets) = rest.rsplit_once(':').ok_or(KeyError::Garbled)?;
        let (scope, serial) = rest.rsplit_once(':').ok_or(KeyError::Garbled)?;
        let mut bytes =
            unhex::<{ 16 + 4 + 16 + 32 + 1 + 8 + 16 + CHECKSUM }>(secrets).ok_or(KeyError::Garbled)?;
        let scope = match kind {
            KeyKind::Operator if scope.is_empty() => None,
            _ => Some(Scope::new(scope)?),
        };
        let flags = bytes[68];
        let claims = Claims {
            kind,
            names: Names::new(names)?,
            scope,
            serial: serial.parse()?,
            not_after: (flags & 1 != 0).then(|| u64::from_be_bytes(part(&bytes, 69))),
            lineage: (flags & 2 != 0).then(|| u128::from_be_bytes(part(&bytes, 77))),
        };
        let key = Self {
            claims,
            cluster: ClusterId(u128::from_be_bytes(part(&bytes, 0))),
            key: KeyId(part(&bytes, 16)),
            knock: Knock(part(&bytes, 20)),
            secret: Secret::new(part(&bytes, 36)),
        };
        wipe(&mut bytes);
        Ok(key)
    }
}

fn part<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    bytes[from..from + N].try_into().expect("the lengths of the parts add up")
}

/// Why a text is no key. Says nothing of what the text was: it may be a key after all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It does not begin like the key of a cluster.
    #[error("this is no cluster key: it begins with '{CLUSTER_PREFIX}' (`tenure key new` makes one)")]
    NotAClusterKey,
    /// It does not begin like the key of somebody who is no member.
    #[error(
        "this is no candidate's key: it begins with 'tenure-candidate-1:', 'tenure-observer-1:' or \
         'tenure-operator-1:' (`tenure key derive` makes one)"
    )]
    NotACandidateKey,
    /// Its checksum is wrong.
    #[error("the key has a typo or was cut short: copy it again, all of it")]
    Garbled,
    /// The name in it is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The scope in it is none.
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

/// A cluster key bound to one cluster: everything that members derive comes from here.
pub(super) struct Root {
    pub(super) id: KeyId,
    /// The key for the checksum in greetings of outsiders.
    pub(super) knock: Knock,
    secret: Secret,
}

impl Root {
    fn new(key: &ClusterKey, cluster: ClusterId) -> Self {
        let secret = Secret::extract(&cluster.0.to_be_bytes(), &key.0);
        Self { id: key.id(), knock: Knock(secret.derive(&[b"tenure knock\0"])), secret }
    }

    /// The key for the checksum in greetings of members. No outsider can make one, so none can use
    /// up what members are allowed.
    pub(super) fn members_knock(&self) -> Knock {
        Knock(self.secret.derive(&[b"tenure members knock\0"]))
    }

    /// The key that two members share.
    pub(super) fn pair(&self, one: &str, other: &str) -> Pair {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let parts = [b"tenure members\0", &length(low)[..], low.as_bytes(), &length(high), high.as_bytes()];
        Pair(self.secret.derive_secret(&parts))
    }

    /// The key that an outsider with these claims shares with a member.
    pub(super) fn outsider_pair(&self, claims: &[u8], member: &str) -> Pair {
        outsider_pair(&self.outsider(claims), member)
    }

    /// Claims say themselves where they end, so they need no length before them.
    fn outsider(&self, claims: &[u8]) -> Secret {
        self.secret.derive_secret(&[b"tenure outsider\0", claims])
    }
}

fn outsider_pair(secret: &Secret, member: &str) -> Pair {
    Pair(secret.derive_secret(&[b"tenure outsider with\0", &length(member), member.as_bytes()]))
}

/// Written before a text that goes into a derivation.
fn length(text: &str) -> [u8; 2] {
    u16::try_from(text.len()).expect("names and scopes are short").to_be_bytes()
}

/// A secret shared by all outsiders with a key of the cluster, or by all members. It opens nothing:
/// it lets a receiver drop, for the price of one hash, greetings from those who hold none.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Knock([u8; 16]);

impl Knock {
    pub(super) fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// The secret of two processes; only members can derive it as well.
pub(super) struct Pair(pub(super) Secret);

/// Adds the checksum of everything before it.
fn sign(mut text: String) -> String {
    let sum = checksum(&text);
    text.push_str(&sum);
    text
}

fn verify(text: &str) -> Result<(), KeyError> {
    match text.len().checked_sub(2 * CHECKSUM).and_then(|at| text.split_at_checked(at)) {
        Some((before, sum)) if checksum(before) == sum => Ok(()),
        _ => Err(KeyError::Garbled),
    }
}

fn checksum(text: &str) -> String {
    hex(&digest(&SHA256, format!("tenure checksum\0{text}").as_bytes()).as_ref()[..CHECKSUM])
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// Exactly `N` bytes, in the digits that [`hex`] writes.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
