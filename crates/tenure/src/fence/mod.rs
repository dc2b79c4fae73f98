//! Fences: the receiver of a leader's writes keeps the newest token and refuses the writes of an
//! old leader.
//!
//! [`tenure_proto::fence`] explains what a fence decides and what it does not promise; the types
//! are the same ones. This module says where the decision is *stored*. That is the whole
//! difficulty: the token must be compared and stored in one step with the write, and must survive
//! whatever the resource survives. So the fence belongs to where the resource is:
//!
//! | the resource is | fence | one step because |
//! |---|---|---|
//! | data of this process | [`MemoryFence`] | the write runs under the fence's lock |
//! | a file, or has no atomic place for a token | [`FileFence`] | the token is durable before the write begins |
//! | rows in PostgreSQL | [`postgres`] | one transaction has both |
//! | rows in SQLite | [`sqlite`] | one transaction has both |
//! | behind HTTP | one of these, and [`http`] | as there; the token comes in a header |
//!
//! Each has both rules. [By term](Fence::by_term) is the usual one: a leader's concurrent writes
//! are all admitted, an old leader's never pass. [In order](Fence::in_order) also refuses a write
//! that was overtaken by a later one of the same leader, and knows a retry.
//!
//! **A new leader writes before it reads.** A fence refuses an old leader from the newest token on
//! that it has *seen*. Until a new leader has shown its token, the fence admits the old one: a new
//! leader that reads first may read a state that the old one still changes. So its first act in a
//! term is a write, however small, or an admission of its token alone; then it reads.
//!
//! One fence is one resource, and one resource has one election. Where two processes each keep a
//! fence for the same resource, neither protects it.

mod file;
pub mod http;
mod memory;
pub mod postgres;
pub mod sqlite;

pub use file::{FileError, FileFence, FileFenceState};
pub use memory::MemoryFence;
pub use tenure_proto::fence::{Admitted, Fence, Newest, Rule, Stale};
pub use tenure_proto::strong::Term;
pub use tenure_proto::strong::edict::{Exhausted, Form, PackedToken, Part, Token, TokenError};

/// The reason why a fence did not admit a write. In either case the write must not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer token was admitted: the sender no longer leads, or was overtaken. A retry is
    /// useless.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The fence could not decide, or could not store its decision. The write may be sent again
    /// when it can.
    #[error("not admitted: {0}")]
    Failed(#[from] FileError),
}
