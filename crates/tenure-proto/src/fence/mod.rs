//! Fences: the receiver of a leader's writes refuses those of a former leader.
//!
//! A leader may be paused between looking at its clock and writing, for any time: by its scheduler,
//! by its host, by the network that holds the packet. When it goes on another process may lead. No
//! lock service can prevent that write from being sent; only its receiver can refuse it. So each
//! write carries a [`Token`] (a fencing token), and the resource remembers the newest that it has
//! admitted.
//!
//! ```text
//!   old leader   term 1 ──── paused ──────────────────────── write, token 1.4 ──┐
//!   new leader              term 2 ── write, token 2.1 ─┐                       │
//!   resource                                            ▼ admitted, newest 2.1  ▼ refused: stale
//! ```
//!
//! # Choosing a fence
//!
//! | fence | admits | use it where |
//! |---|---|---|
//! | [`Fence::by_term`] | terms that are not older than the newest | a leader writes concurrently: the usual case |
//! | [`Fence::in_order`] | tokens larger than all before, and the newest as a retry | a write replaces the one before |
//!
//! With the first, the writes of one leader may overtake each other, as they would without any
//! election; an old leader's never pass a newer one's. With the second, a write that was overtaken
//! is refused too. It needs a token of its own for each write, an edict's: the [token of a
//! term](Token::of_term) is the same for all, and every second write would look like a retry of the
//! first.
//!
//! # Guarantees and their limits
//!
//! * Once a write of a leader is admitted, no write of an earlier leader is, ever: provided that
//!   the fence's state is compared and stored **in one step with the write**, per resource, and
//!   survives everything that the resource survives.
//! * A fence orders; it does not prove that the sender still leads. Until a new leader's first
//!   write arrives, the resource knows nothing of it, and an old leader's write is admitted. That
//!   is harmless to the order of writes (it comes before them all), but a new leader that first
//!   reads and then writes must make a write before it reads.
//! * A refusal means that something newer was admitted. It does not say that this write was never
//!   applied: it may have been, and been overtaken since.
//! * A fence believes the token. The resource itself decides which clients may write at all.
//! * Tokens of one election compare. One resource, one election; and a cluster that is founded anew
//!   must begin above the terms of the old one.
//!
//! # Example
//!
//! Two leaders; the first was paused in the middle of a write.
//!
//! ```
//! use tenure_proto::fence::{Admitted, Fence, Stale};
//! use tenure_proto::strong::{Term, Token};
//!
//! let mut fence = Fence::by_term();
//! let first = Token::new(Term(1), 1);
//! assert_eq!(fence.admit(first, "alpha"), Ok(Admitted::Newer));
//!
//! let paused = Token::new(Term(1), 2); // alpha made this edict while it led; then its host stood still
//! let second = Token::new(Term(2), 1); // meanwhile beta was elected
//! assert_eq!(fence.admit(second, "beta"), Ok(Admitted::Newer));
//!
//! assert_eq!(fence.admit(paused, "alpha"), Err(Stale { newest: second })); // alpha's host goes on: too late
//! ```

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use crate::strong::Token;

/// The memory of one resource, and its rule. `W` names writers: a value that tells two senders
/// apart and stays the same when one sends again.
///
/// All of it is plain data: a durable fence stores exactly these fields and starts from them again.
/// To start from a copy that may be old is to forget; where there are several copies,
/// [merge](Self::merge) them first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fence<W> {
    /// The rule by which tokens are admitted.
    pub rule: Rule,
    /// The largest token that was admitted; `None` if there was none yet.
    pub newest: Option<Newest<W>>,
}

/// The rule by which a fence admits tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// See [`Fence::by_term`].
    ByTerm,
    /// See [`Fence::in_order`].
    InOrder,
}

/// The largest token that a fence has admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Newest<W> {
    /// The token.
    pub token: Token,
    /// The writer of the newest token, which alone may send it again. `None` where the rule does
    /// not ask for it, or where copies of the fence disagree.
    pub writer: Option<W>,
}

impl<W: Eq> Fence<W> {
    /// Makes a fence that admits every token whose term is not older than the newest. One leader's
    /// writes may overtake each other and may share a token; those of an older leader never pass.
    /// Writers are not compared: a leader may let others write for it, with its token.
    pub const fn by_term() -> Self {
        Self { rule: Rule::ByTerm, newest: None }
    }

    /// Makes a fence that admits a token larger than all before. The newest token again, from the
    /// same writer, is a retry, whose answer was lost; from another writer it is refused, since a
    /// token belongs to one edict.
    pub const fn in_order() -> Self {
        Self { rule: Rule::InOrder, newest: None }
    }

    /// Decides on a write, and remembers it if it is admitted. The caller stores the fence with the
    /// write in one step, or not at all.
    pub fn admit(&mut self, token: Token, writer: W) -> Result<Admitted, Stale> {
        let admitted = match &self.newest {
            None => Admitted::Newer,
            Some(newest) => match self.rule {
                Rule::ByTerm => by_term(newest.token, token)?,
                Rule::InOrder => in_order(newest, token, &writer)?,
            },
        };
        if self.newest.as_ref().is_none_or(|newest| token > newest.token) {
            let writer = (self.rule == Rule::InOrder).then_some(writer);
            self.newest = Some(Newest { token, writer });
        }
        Ok(admitted)
    }

    /// Merges another copy of this fence: afterwards it refuses every token that either refused.
    /// Merging is idempotent and commutative, and a fence never goes back by it.
    ///
    /// The rule stays this one's. A token that the other admitted beyond this one has had its
    /// effect: a merge does not undo it.
    pub fn merge(&mut self, other: Self) {
        let Some(theirs) = other.newest else { return };
        let Some(ours) = &mut self.newest else {
            self.newest = Some(theirs);
            return;
        };
        match theirs.token.cmp(&ours.token) {
            Ordering::Less => {}
            Ordering::Greater => *ours = theirs,
            // Two writers with one token: neither's word is better, so neither may repeat it.
            Ordering::Equal if ours.writer != theirs.writer => ours.writer = None,
            Ordering::Equal => {}
        }
    }
}

fn by_term(newest: Token, token: Token) -> Result<Admitted, Stale> {
    match token.term().cmp(&newest.term()) {
        Ordering::Greater => Ok(Admitted::Newer),
        Ordering::Equal => Ok(Admitted::SameTerm),
        Ordering::Less => Err(Stale { newest }),
    }
}

fn in_order<W: Eq>(newest: &Newest<W>, token: Token, writer: &W) -> Result<Admitted, Stale> {
    match token.cmp(&newest.token) {
        Ordering::Greater => Ok(Admitted::Newer),
        Ordering::Equal if newest.writer.as_ref() == Some(writer) => Ok(Admitted::Again),
        Ordering::Equal | Ordering::Less => Err(Stale { newest: newest.token }),
    }
}

/// The way in which a write was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admitted {
    /// By term: the first write of a new leader. In order: larger than all before.
    Newer,
    /// By term: a write of the leader that is newest already. Says nothing about the order of its
    /// writes, nor that one is a retry.
    SameTerm,
    /// In order: the very write that was admitted last, once more. It was applied, if the fence is
    /// stored with the write: answer as before, or apply it again if it is idempotent.
    Again,
}

/// The refusal of a write: something newer was admitted. The fence is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale {
    /// The largest token that was admitted.
    pub newest: Token,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (term, number) = (self.newest.term(), self.newest.number());
        write!(f, "refused: edict {number} of term {term} was admitted here already (token {})", self.newest)
    }
}

impl std::error::Error for Stale {}
