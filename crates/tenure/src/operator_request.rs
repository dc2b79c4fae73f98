//! Requests of operators to a leader: resign, hand over, proclaim.
//!
//! Only the holder of the guard can do any of it, for only it knows when the guarded work has
//! ended. So a request is a message and no more: it travels to the process that leads, and the
//! holder hears of it by [`Tenure::asked`](crate::Tenure::asked), does it or does not, and says so.
//! Nothing about a request keeps a lease alive or ends one; a leader that never listens leads on,
//! and the asker is told that nobody listens.
//!
//! ```text
//!   asker ── who leads? ──▶ member            any member that supports somebody says whom, and in which term
//!   asker ── request, for that term ──▶ leader   directly where there is a session, else a member passes it on
//!         ◀── fulfilled, or declined, or nobody listens
//! ```
//!
//! Requests are idempotent. Each has a random number and is for one term of one life of a process.
//! A retransmission finds the number known and gets the same answer; one that comes too late finds
//! the term over. So a request is done at most once, however often it is sent, and never by the
//! next leader in place of the one that was meant.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::AcqRel, Ordering::Acquire};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_proto::strong::{Edict, Term, Token};
use tokio::sync::Notify;

use crate::driver::{Mailbox, Request};
use crate::guard::SharedTerm;
use crate::name::NodeName;

/// The longest reason of a [refusal](Asked::decline) that the asker is told, in bytes.
pub const MAX_REASON: usize = 200;

/// A request of an operator to a leader: see [`Node::ask`](crate::Node::ask).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperatorRequest {
    /// Resign: give up the leadership.
    Resign,
    /// Hand the leadership over.
    Transfer {
        /// The successor: a process that campaigns for the same group.
        to: NodeName,
    },
    /// Proclaim something.
    Proclaim {
        /// The body, at most [`MAX_PROCLAIM`](crate::MAX_PROCLAIM) bytes.
        body: Vec<u8>,
    },
}

/// The answer of a leader that did as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fulfilled {
    /// The leader that did it.
    pub leader: NodeName,
    /// The leader's term.
    pub term: Term,
    /// The token of the edict, if something was proclaimed.
    pub token: Option<Token>,
}

/// A request, as the holder of a guard receives it. Dropping it declines it.
#[must_use = "to drop it is to decline it"]
pub struct Asked {
    id: u128,
    request: OperatorRequest,
    /// Keeps what the handles share, and nobody's lease: only a guard does that.
    term: Arc<SharedTerm>,
    mailbox: Mailbox,
    open: bool,
}

impl Asked {
    /// Returns the request.
    pub fn request(&self) -> &OperatorRequest {
        &self.request
    }

    /// Answers that it was done: the guard has resigned, or the leadership was handed over.
    ///
    /// Call it afterwards, not before: the asker may start work that relies on it.
    pub fn fulfil(self) {
        self.answer(Reply::Fulfilled { token: None });
    }

    /// Answers that it was proclaimed, with this edict.
    pub fn fulfil_as(self, edict: Edict) {
        self.answer(Reply::Fulfilled { token: Some(edict.token()) });
    }

    /// Answers that it was not done, with a reason for people.
    ///
    /// The reason becomes one line, cut to [`MAX_REASON`] bytes.
    pub fn decline(self, reason: &str) {
        self.answer(Reply::Declined { reason: shown(reason) });
    }

    fn answer(mut self, reply: Reply) {
        self.open = false;
        self.mailbox.send(Request::Answer { id: self.id, reply });
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.open && !self.term.record.is_wiped() {
            let reason = "the leader dropped it".to_owned();
            self.mailbox.send(Request::Answer { id: self.id, reply: Reply::Declined { reason } });
        }
    }
}

/// A reason as it may be shown: one line, and not too long.
fn shown(reason: &str) -> String {
    let mut text: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = (0..=MAX_REASON.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It was done.
    Fulfilled { token: Option<Token> },
    /// It was not.
    Declined { reason: String },
    /// The holder of the guard does not listen.
    NotListening,
    /// The asker has no right to it.
    NotAllowed,
}

/// A request that waits for the holder of the guard.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) id: u128,
    pub(crate) request: OperatorRequest,
    pub(crate) claim: Claim,
}

/// Whose a request is: the holder's once it has heard it, the driver's again if it was not heard in
/// time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim(Arc<AtomicU8>);

const WAITS: u8 = 0;
const HEARD: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Claim {
    /// The holder hears it. Refused if it was withdrawn.
    fn hear(&self) -> bool {
        self.0.compare_exchange(WAITS, HEARD, AcqRel, Acquire).is_ok()
    }

    /// Nobody shall hear it any more. Refused if somebody has.
    pub(crate) fn withdraw(&self) -> bool {
        self.0.compare_exchange(WAITS, WITHDRAWN, AcqRel, Acquire).is_ok()
    }
}

/// Where requests wait for the holder of a guard.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    notes: Mutex<VecDeque<Note>>,
    news: Notify,
}

impl Desk {
    pub(crate) fn put(&self, note: Note) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push_back(note);
        self.news.notify_one();
    }

    /// The next request that was not withdrawn meanwhile.
    fn take(&self) -> Option<Note> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| notes.pop_front()).find(|note| note.claim.hear())
    }

    /// Waits for the next request. A future that is dropped while it waits has taken nothing.
    pub(crate) async fn next(&self) -> Note {
        loop {
            if let Some(note) = self.take() {
                return note;
            }
            self.news.notified().await;
        }
    }
}

impl Asked {
    pub(crate) fn new(note: Note, term: Arc<SharedTerm>, mailbox: Mailbox) -> Self {
        Self { id: note.id, request: note.request, term, mailbox, open: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(id: u128) -> Note {
        Note { id, request: OperatorRequest::Resign, claim: Claim::default() }
    }

    #[tokio::test]
    async fn what_was_withdrawn_is_not_heard_and_what_was_heard_is_not_withdrawn() {
        let desk = Desk::default();
        let (first, second) = (note(1), note(2));
        desk.put(first.clone());
        desk.put(second.clone());
        assert!(first.claim.withdraw());
        assert_eq!(desk.next().await.id, 2);
        assert!(!second.claim.withdraw());
        assert!(desk.take().is_none());
    }

    #[tokio::test]
    async fn a_listener_that_goes_takes_nothing_with_it() {
        let desk = Arc::new(Desk::default());
        for id in 0..100 {
            let mut gone = Box::pin(desk.next());
            let waits =
                std::future::poll_fn(|cx| std::task::Poll::Ready(gone.as_mut().poll(cx).is_pending()));
            assert!(waits.await);
            desk.put(note(id));
            let other = desk.clone();
            let stays = tokio::spawn(async move { other.next().await.id });
            drop(gone);
            assert_eq!(stays.await.unwrap(), id);
        }
    }

    #[test]
    fn a_reason_is_one_line_and_not_too_long() {
        assert_eq!(shown("a\nb\u{1b}[2J"), "a b [2J");
        let long = shown(&"é".repeat(150));
        assert_eq!((long.len(), long.chars().count()), (MAX_REASON, 100));
    }
}
