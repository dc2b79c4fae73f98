//! Names of nodes, groups and clusters, and the numbers by which the protocol knows them.
//!
//! People give names; the protocol compares numbers. A node's and a group's number is the first 64
//! bits of the SHA-256 of its name, so that nobody has to hand out numbers and everybody computes
//! the same ones. Two names of one number would be one node, or one election: with a hundred
//! thousand names the chance is one in four thousand million. A process that meets such a pair
//! refuses the second name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use tenure_proto::{GroupId, NodeId};
use thiserror::Error;

/// The longest name of a node, in bytes.
pub const MAX_NODE_NAME: usize = 64;

/// The longest name of a group, in bytes.
pub const MAX_GROUP_NAME: usize = 100;

/// Which cluster a message, a store or a key belongs to. Drawn at random when the cluster is
/// founded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u128);

impl ClusterId {
    /// A new one, for a cluster that is to be founded.
    pub fn draw() -> Self {
        Self(crate::chance::wide())
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ClusterId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(id) if digits => Ok(Self(id)),
            _ => Err(NameError::Cluster { text: text.to_owned() }),
        }
    }
}

/// The name of a process: member, candidate or observer. Unique in its cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Box<str>);

impl NodeName {
    /// Letters, digits, `.`, `_` and `-`; at most [`MAX_NODE_NAME`] bytes.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let fits = !text.is_empty() && text.len() <= MAX_NODE_NAME;
        if fits && text.bytes().all(is_plain) {
            Ok(Self(text.into()))
        } else {
            Err(NameError::Node { text: shown(text) })
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number by which the protocol knows this node.
    pub fn id(&self) -> NodeId {
        NodeId(number("node", &self.0))
    }
}

/// The name of an election. Cheap to copy: copies share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(Arc<Numbered>);

/// A name with its number, which is computed once: a hash costs more than most that is done with
/// a name. The text comes first, so that names are sorted by it.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Numbered {
    text: Box<str>,
    id: GroupId,
}

impl GroupName {
    /// Letters, digits, `.`, `_`, `-`, `:` and `/`; at most [`MAX_GROUP_NAME`] bytes.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let fits = !text.is_empty() && text.len() <= MAX_GROUP_NAME;
        if fits && text.bytes().all(|byte| is_plain(byte) || byte == b'/' || byte == b':') {
            let id = GroupId(number("group", text));
            Ok(Self(Arc::new(Numbered { text: text.into(), id })))
        } else {
            Err(NameError::Group { text: shown(text) })
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The number by which the protocol knows this group.
    pub fn id(&self) -> GroupId {
        self.0.id
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// As much of a refused name as is good for a message.
fn shown(text: &str) -> String {
    text.chars().take(MAX_GROUP_NAME + 1).collect()
}

/// The first 64 bits of the hash of a name of one kind.
fn number(kind: &str, name: &str) -> u64 {
    let hash = digest(&SHA256, format!("tenure {kind} {name}").as_bytes());
    let first: [u8; 8] = hash.as_ref()[..8].try_into().expect("SHA-256 has 32 bytes");
    u64::from_be_bytes(first)
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for GroupName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

/// The reason why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not the name of a node.
    #[error("'{text}' is no name for a node: use 1 to {MAX_NODE_NAME} letters, digits, '.', '_' and '-'")]
    Node {
        /// The text that was given.
        text: String,
    },
    /// Not the name of a group.
    #[error(
        "'{text}' is no name for a group: use 1 to {MAX_GROUP_NAME} letters, digits, '.', '_', '-', ':' and '/'"
    )]
    Group {
        /// The text that was given.
        text: String,
    },
    /// Not the id of a key.
    #[error("'{text}' is no id of a key: it has 16 hexadecimal digits (`tenure key show FILE` prints it)")]
    Serial {
        /// The text that was given.
        text: String,
    },
    /// Not the id of a cluster.
    #[error("'{text}' is no cluster id: it has 32 hexadecimal digits")]
    Cluster {
        /// The text that was given.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_number_everywhere() {
        assert_eq!(NodeName::new("a").unwrap().id(), NodeName::new("a").unwrap().id());
        assert_ne!(NodeName::new("a").unwrap().id(), NodeName::new("b").unwrap().id());
        assert_ne!(NodeName::new("a").unwrap().id().0, GroupName::new("a").unwrap().id().0);
    }

    #[test]
    fn names_that_would_not_survive_a_shell_a_header_or_a_file_name_are_refused() {
        for text in ["", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(NodeName::new(text).is_err(), "{text:?}");
        }
        assert!(NodeName::new("a/b").is_err());
        assert!(GroupName::new("app1/jobs:nightly").is_ok());
        assert!(GroupName::new(&"x".repeat(101)).is_err());
    }

    #[test]
    fn a_cluster_id_is_read_as_it_is_written() {
        let id = ClusterId(7);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("7".parse::<ClusterId>().is_err());
        assert!(format!("+{}", "0".repeat(31)).parse::<ClusterId>().is_err());
    }
}
