//! Messages that a process says in another's name.
//!
//! A driver vouches for the sender of a message: the session that it came by has a key. It does not
//! vouch for what the message says. So a process may say what another has said, or give back what
//! another asked for, under its own name. A machine must bear that where it promises to:
//! [`Subject::forged`](crate::subject::Subject::forged) says where.

use tenure_proto::{NodeId, Protocol};

/// The change that a process makes to another's message before it says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guise {
    /// The same words.
    Copy,
    /// A release of what the other asked for.
    Release,
    /// A hand-over that gives back what the other asked for.
    Relay,
    /// An answer of the other, with the speaker's name in the place of the other's.
    Own,
}

impl Guise {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Release, Self::Relay, Self::Own];

    /// The words after the name of the process that says it, in a script.
    pub fn text(self) -> &'static str {
        match self {
            Self::Copy => "",
            Self::Release => " as a release",
            Self::Relay => " as a relay",
            Self::Own => " as its own",
        }
    }
}

/// Forges a message for a receiver that promises to bear it; else nothing.
pub type Forger<P> = fn(&<P as Protocol>::Message, NodeId, Guise, &P) -> Option<<P as Protocol>::Message>;
