//! The message of algorithms that send ids round the ring, and then the leader's.

use std::fmt;

use super::bits;

/// A message between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The id of a candidate.
    Id(u32),
    /// The leader's id.
    Leader(u32),
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["id", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::Id(_) => 0,
            Self::Leader(_) => 1,
        }
    }

    fn bits(&self) -> u32 {
        let (Self::Id(id) | Self::Leader(id)) = self;
        2 + bits(*id)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id {id}"),
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}
