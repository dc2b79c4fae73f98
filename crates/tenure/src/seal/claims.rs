//! The claims of a key: everything that its holder may say of itself, and no more.
//!
//! A key's secret is derived from these fields, written as bytes in one way only. Its holder sends
//! the same bytes in every greeting, and members derive the secret anew from them. So a holder that
//! states another id, a later expiry or a wider scope has the wrong secret, and its greeting does
//! not open.
//!
//! ```text
//!   claims   kind 1 · length 1, names · length 1, scope · serial 8 · flags 1 · [not after 8] · [lineage 16]
//! ```

use std::fmt;
use std::str::FromStr;

use super::keys::KeyKind;
use super::scope::{MAX_SCOPE, Rights, Scope};
use crate::chance;
use crate::name::{MAX_NODE_NAME, NameError, NodeName};

const HAS_NOT_AFTER: u8 = 1;
const HAS_LINEAGE: u8 = 2;

/// The most bytes of claims.
pub(super) const MAX_CLAIMS: usize = 1 + 1 + MAX_NODE_NAME + 1 + MAX_SCOPE + 8 + 1 + 8 + 16;

/// The id of one key that is no cluster's key. Drawn at random when the key is made, as
/// certificates have a serial number: `tenure key revoke` names a key by it. It is no secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub(crate) u64);

impl Serial {
    fn draw() -> Self {
        Self(u64::from_be_bytes(chance::bytes()))
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Serial {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(serial) if digits => Ok(Self(serial)),
            _ => Err(NameError::Serial { text: text.chars().take(40).collect() }),
        }
    }
}

/// The names under which the holder of a key may speak: one name, or all that begin alike
/// (`web-*`).
///
/// A single `*` is refused: with such a key one could take anybody's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names(Box<str>);

impl Names {
    /// Reads a name, or a beginning of names with `*` after it.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let plain = text.strip_suffix('*').unwrap_or(text);
        NodeName::new(plain)?;
        match text.len() <= MAX_NODE_NAME {
            true => Ok(Self(text.into())),
            false => Err(NameError::Node { text: text.into() }),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name is among them.
    pub fn has(&self, name: &NodeName) -> bool {
        match self.prefix() {
            Some(prefix) => name.as_str().len() > prefix.len() && name.as_str().starts_with(prefix),
            None => *name.as_str() == *self.0,
        }
    }

    /// How all of them begin, if there are many.
    pub fn prefix(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }

    /// The name `wanted`, made one of these: as it is, or with the beginning of all of them before
    /// it. If there is only one name, that one.
    pub fn fit(&self, wanted: &str) -> String {
        match self.prefix() {
            None => self.0.to_string(),
            Some(prefix) if wanted.len() > prefix.len() && wanted.starts_with(prefix) => wanted.to_owned(),
            Some(prefix) => {
                let room = MAX_NODE_NAME - prefix.len();
                // The end is what tells drawn names apart.
                let cut = wanted.len().saturating_sub(room);
                format!("{prefix}{}", wanted.get(cut..).unwrap_or(wanted))
            }
        }
    }
}

impl From<NodeName> for Names {
    fn from(name: NodeName) -> Self {
        Self(name.as_str().into())
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Names {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

/// The claims of a scoped key: kind, names, scope, expiry and founding. Each has an id of its own.
///
/// ```
/// use tenure::{Claims, ClusterId, ClusterKey, Names, Scope};
///
/// let claims = Claims::candidate(Names::new("web-*").unwrap(), Scope::new("web/*").unwrap())
///     .not_after(1_900_000_000);
/// let key = ClusterKey::generate().derive(ClusterId(0x1234), claims.clone());
/// assert_eq!((key.serial(), key.expires()), (claims.serial(), Some(1_900_000_000)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub(super) kind: KeyKind,
    pub(super) names: Names,
    /// Operators have none.
    pub(super) scope: Option<Scope>,
    pub(super) serial: Serial,
    /// The last second, since 1970, in which the key is good.
    pub(super) not_after: Option<u64>,
    pub(super) lineage: Option<u128>,
}

impl Claims {
    /// Makes the claims of a process that campaigns for the groups of `scope`.
    pub fn candidate(names: impl Into<Names>, scope: Scope) -> Self {
        Self::new(KeyKind::Candidate, names.into(), Some(scope))
    }

    /// Makes the claims of a process that only watches the groups of `scope`.
    pub fn observer(names: impl Into<Names>, scope: Scope) -> Self {
        Self::new(KeyKind::Observer, names.into(), Some(scope))
    }

    /// Makes the claims of a person or tool that watches everything and changes the members.
    pub fn operator(names: impl Into<Names>) -> Self {
        Self::new(KeyKind::Operator, names.into(), None)
    }

    fn new(kind: KeyKind, names: Names, scope: Option<Scope>) -> Self {
        Self { kind, names, scope, serial: Serial::draw(), not_after: None, lineage: None }
    }

    /// Sets the expiry: the key is good up to and including this second, counted from 1970 (UTC).
    #[must_use]
    pub fn not_after(self, second: u64) -> Self {
        Self { not_after: Some(second), ..self }
    }

    /// Restricts the key to the cluster of this founding.
    #[must_use]
    pub fn lineage(self, lineage: u128) -> Self {
        Self { lineage: Some(lineage), ..self }
    }

    /// Returns the id that the key will have.
    pub fn serial(&self) -> Serial {
        self.serial
    }

    pub(super) fn scope_text(&self) -> &str {
        self.scope.as_ref().map_or("", Scope::as_str)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind.code()];
        for text in [self.names.as_str(), self.scope_text()] {
            bytes.push(u8::try_from(text.len()).expect("names and scopes are short"));
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend(self.serial.0.to_be_bytes());
        let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        bytes.push(flag(self.not_after.is_some(), HAS_NOT_AFTER) | flag(self.lineage.is_some(), HAS_LINEAGE));
        bytes.extend(self.not_after.iter().flat_map(|second| second.to_be_bytes()));
        bytes.extend(self.lineage.iter().flat_map(|lineage| lineage.to_be_bytes()));
        bytes
    }
}

/// Claims as a greeting states them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated<'p> {
    pub(super) bytes: &'p [u8],
    kind: KeyKind,
    names: &'p str,
    scope: &'p str,
    pub(super) serial: Serial,
    pub(super) not_after: Option<u64>,
}

impl<'p> Stated<'p> {
    /// Reads them from the beginning of `bytes`, which may go on. Takes no memory.
    pub(super) fn read(bytes: &'p [u8]) -> Option<Self> {
        let kind = KeyKind::from_code(*bytes.first()?)?;
        let (names, rest) = short_text(bytes.get(1..)?)?;
        let (scope, rest) = short_text(rest)?;
        let (serial, rest) = rest.split_first_chunk()?;
        let (flags, rest) = rest.split_first()?;
        if flags & !(HAS_NOT_AFTER | HAS_LINEAGE) != 0 {
            return None;
        }
        let (not_after, rest) = optional::<8>(flags & HAS_NOT_AFTER != 0, rest)?;
        let (_, rest) = optional::<16>(flags & HAS_LINEAGE != 0, rest)?;
        let bytes = &bytes[..bytes.len() - rest.len()];
        let fits = bytes.len() <= MAX_CLAIMS && names.len() <= MAX_NODE_NAME;
        let (serial, not_after) = (Serial(u64::from_be_bytes(*serial)), not_after.map(u64::from_be_bytes));
        fits.then_some(Self { bytes, kind, names, scope, serial, not_after })
    }

    /// The rights of a holder under this name. `None` if there is no such key, or it is not for the
    /// name.
    pub(super) fn rights(&self, name: &NodeName) -> Option<Rights> {
        Names::new(self.names).ok().filter(|names| names.has(name))?;
        match self.kind {
            KeyKind::Candidate => Scope::new(self.scope).ok().map(Rights::Candidate),
            KeyKind::Observer => Scope::new(self.scope).ok().map(Rights::Observer),
            KeyKind::Operator => self.scope.is_empty().then_some(Rights::Operator),
        }
    }
}

fn optional<const N: usize>(is_there: bool, bytes: &[u8]) -> Option<(Option<[u8; N]>, &[u8])> {
    match is_there {
        true => bytes.split_first_chunk().map(|(chunk, rest)| (Some(*chunk), rest)),
        false => Some((None, bytes)),
    }
}

/// A text of at most 255 bytes after its length.
pub(super) fn short_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Names {
        Names::new(text).unwrap()
    }

    #[test]
    fn names_are_one_name_or_all_that_begin_alike() {
        let has = |pattern: &str, name: &str| names(pattern).has(&NodeName::new(name).unwrap());
        assert!(has("web", "web") && !has("web", "web-1"));
        assert!(has("web-*", "web-1") && !has("web-*", "web-") && !has("web-*", "app-1"));
        for text in ["", "*", "a*b", "a**", "a b", &"x".repeat(65)] {
            assert!(Names::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_wanted_name_is_made_to_fit() {
        assert_eq!(names("web").fit("other"), "web");
        assert_eq!(names("web-*").fit("web-7"), "web-7");
        assert_eq!(names("web-*").fit("seven"), "web-seven");
        let long = names("web-*").fit(&"x".repeat(64));
        assert!(names("web-*").has(&NodeName::new(&long).unwrap()), "{long}");
    }

    #[test]
    fn every_key_has_an_id_of_its_own_and_ids_are_read_as_they_are_written() {
        let scope = || Scope::new("*").unwrap();
        let (one, two) = (Claims::observer(names("a"), scope()), Claims::observer(names("a"), scope()));
        assert_ne!(one.serial(), two.serial());
        assert_eq!(one.serial().to_string().parse(), Ok(one.serial()));
        for text in ["", "12", "+23456789abcdef0", "00112233445566778"] {
            assert!(text.parse::<Serial>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_claims_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(stated) = Stated::read(&bytes) {
                prop_assert!(bytes.starts_with(stated.bytes) && stated.bytes.len() <= MAX_CLAIMS);
            }
        }

        #[test]
        fn claims_are_read_as_they_are_written(
            not_after in any::<Option<u64>>(),
            lineage in any::<Option<u128>>(),
            more in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let claims = Claims::candidate(names("web-*"), Scope::new("web/*").unwrap());
            let claims = Claims { not_after, lineage, ..claims };
            let bytes = claims.to_bytes();
            let longer = [&bytes[..], &more].concat();
            let stated = Stated::read(&longer).unwrap();
            prop_assert_eq!(stated.bytes, &bytes[..]);
            prop_assert_eq!((stated.serial, stated.not_after), (claims.serial, not_after));
            for length in 0..bytes.len() {
                prop_assert!(Stated::read(&bytes[..length]).is_none());
            }
        }
    }
}
