//! The guard of one term: [`Tenure`].
//!
//! Its holder may ask at any time, from any thread, whether this process leads **now**. The answer
//! is a comparison of clocks: a reading of this host's clock against E, the end of the lease. No
//! timer, no callback and no cached belief is asked. Five rules keep it honest:
//!
//! * **Only the driver writes E.** It raises it when a renewal completes, and stores zero when the
//!   term ends, before anything about that end is sent. Handles can only close the guard. (A handle
//!   that stored zero itself would race a renewal that is storing a later E.)
//! * **A guard is one term.** It is never revived: after a loss, campaign again and get another.
//! * **E is loaded after the clock was read.** An E found above a reading was in force at that
//!   reading.
//! * **The number of an edict is taken first**: that instant is its creation. See
//!   [`create`](tenure_proto::strong::edict::create) for why no other order will do.
//! * **E and the counter live in a page that is empty in a forked child.** It can neither lead nor
//!   give out a token twice.
//!
//! Authority ends with [`Tenure::resign`] or with the last clone. The grants are released only when
//! the last clone is gone: work that still holds one may be writing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::edict::{ByTerm, NotLeader};
use tenure_proto::strong::{Edict, Term, Token};
use tenure_proto::trace::Common;
use tokio::sync::{oneshot, watch};

use crate::authority::Authority;
use crate::clock::nanos;
use crate::driver::{Mailbox, Request};
use crate::error::{ProclaimError, TransferError};
use crate::name::{GroupName, NodeName};
use crate::operator_request::{Asked, Desk};
use crate::steady::Steady;
use crate::sys::clock::{Which, read};
use crate::sys::page::Lent;
use crate::trace::Trace;

/// The largest body, in bytes, that can be [proclaimed](Tenure::proclaim) with an edict.
pub const MAX_PROCLAIM: usize = 512;

/// The guard of a leadership of this process: one term of one group.
///
/// Cheap to clone; all clones are one leadership. A guard never comes back to life: after a loss,
/// campaign again and get another. When the last clone is dropped, this process resigns. Tasks that
/// only act under it take an [`Authority`].
#[derive(Clone)]
#[must_use = "a guard that is dropped resigns: keep it while this process should lead"]
pub struct Tenure {
    term: Arc<SharedTerm>,
    hold: Arc<Hold>,
}

/// The state of a term that the driver and the handles share.
pub(crate) struct SharedTerm {
    pub(crate) record: Lent,
    /// The clock, and what must be as it was when the term began: after any disturbance nobody
    /// leads by this term again.
    pub(crate) steady: Steady,
    pub(crate) group: GroupName,
    pub(crate) number: Term,
    /// The run that began the term: the paper's timestamp, (epoch, QT0).
    pub(crate) tag: ByTerm,
    pub(crate) trace: Option<Trace>,
    /// Why it ended, once it has.
    pub(crate) loss: watch::Sender<Option<Loss>>,
    /// The requests of operators that wait for this leader.
    pub(crate) desk: Desk,
    /// Whether the work under this term was asked to end.
    pub(crate) cancel: watch::Sender<bool>,
}

/// Exists as often as there are terms with a handle. When it goes, the last clone has gone.
struct Hold {
    term: Arc<SharedTerm>,
    mailbox: Mailbox,
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease was not renewed in time: too few grantors answered, or this process was delayed.
    Lapsed,
    /// This process resigned, or dropped all handles of the term.
    Resigned,
    /// It was handed over to another process.
    HandedOver,
    /// The guarded work gave no sign of life for longer than it had promised: see
    /// [`Campaign`](crate::Campaign).
    Unhealthy,
    /// The clock can no longer be trusted.
    Clock,
    /// The node has heard of another cluster of this id and key, which may have a leader too.
    SplitBrain,
    /// The machine was suspended, or the virtual machine paused, moved or restored: how much time
    /// has passed is not known.
    Disturbed,
    /// The node was shut down, or had to stop.
    Stopped,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lapsed => "the lease was not renewed in time",
            Self::Resigned => "it was given up",
            Self::HandedOver => "it was handed over",
            Self::Unhealthy => "the guarded work gave no sign of life",
            Self::Clock => "the clock can no longer be trusted",
            Self::SplitBrain => "another cluster of this id and key may have a leader",
            Self::Disturbed => "the machine was suspended, or paused with its clocks",
            Self::Stopped => "the node was stopped",
        })
    }
}

impl SharedTerm {
    #[inline]
    pub(crate) fn leads_until(&self) -> Option<(LocalTime, LocalTime)> {
        self.record.leads_until(|| self.steady.read())
    }

    pub(crate) fn remaining(&self) -> Option<Duration> {
        let (now, until) = self.leads_until()?;
        Some(Duration::from_nanos(until.remaining(now).as_nanos()))
    }

    #[inline]
    pub(crate) fn edict(&self) -> Result<Edict, NotLeader> {
        if let Some(trace) = &self.trace {
            return self.traced_edict(trace);
        }
        self.record.edict(self.number, || self.steady.read())
    }

    /// The same, written down with the readings around it, so that an audit can judge it.
    #[cold]
    fn traced_edict(&self, trace: &Trace) -> Result<Edict, NotLeader> {
        let (from, before) = (read(Which::Boot), self.steady.clock().read());
        let mut reading = before;
        let edict = self.record.edict(self.number, || {
            reading = self.steady.read();
            reading
        })?;
        let common = Common::between(from, read(Which::Boot));
        trace.edict(&self.group, &self.tag, edict, (before, reading), common);
        Ok(edict)
    }

    #[inline]
    pub(crate) fn heartbeat(&self) {
        self.record.beat(self.steady.clock().read());
    }

    pub(crate) async fn lost(&self) -> Loss {
        if self.record.is_wiped() {
            return Loss::Stopped;
        }
        let mut watch = self.loss.subscribe();
        match watch.wait_for(Option::is_some).await {
            Ok(loss) => loss.unwrap_or(Loss::Stopped),
            Err(_) => Loss::Stopped,
        }
    }

    pub(crate) async fn cancelled(&self) {
        if self.record.is_wiped() {
            return;
        }
        let mut asked = self.cancel.subscribe();
        tokio::select! {
            _ = self.lost() => {}
            _ = asked.wait_for(|asked| *asked) => {}
        }
    }

    /// For the driver alone: the term is over. Before anything about it is sent.
    pub(crate) fn end(&self, loss: Loss) {
        self.record.end();
        self.loss.send_if_modified(|known| known.is_none().then(|| *known = Some(loss)).is_some());
    }
}

impl Tenure {
    pub(crate) fn new(term: Arc<SharedTerm>, mailbox: Mailbox) -> Self {
        Self { hold: Arc::new(Hold { term: term.clone(), mailbox }), term }
    }

    /// Returns whether this process leads at this instant.
    ///
    /// Wait-free. It costs one reading of the clock, or two on a machine that can be
    /// [suspended](crate::Suspends). The answer may be out of date when the caller acts on it;
    /// where that matters, send the [edict](Self::edict)'s token to a [fence](crate::fence).
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.term.leads_until().is_some()
    }

    /// Returns how much longer this process leads without a renewal; `None` if it does not lead.
    pub fn remaining(&self) -> Option<Duration> {
        self.term.remaining()
    }

    /// Returns E, the end of the lease as it stands; `None` if this process does not lead.
    ///
    /// From E on this process does not lead, unless it renews before. It is for a watcher that
    /// shares this host's clock, such as a process that ends the guarded work if this one hangs. E
    /// is a reading of CLOCK_BOOTTIME in nanoseconds; of CLOCK_REALTIME where the cluster's bound
    /// is on skew.
    pub fn until(&self) -> Option<LocalTime> {
        self.term.leads_until().map(|(_, until)| until)
    }

    /// Creates an edict: an act of this leader with a [token](Edict::token) that fences can order.
    ///
    /// Each edict has the next sequence number of the term. Wait-free. Send the token with the
    /// write; a [fence](crate::fence) then refuses it if a newer leader has written.
    ///
    /// # Errors
    /// [`NotLeader`] from the instant on at which the lease is over.
    #[inline]
    pub fn edict(&self) -> Result<Edict, NotLeader> {
        self.term.edict()
    }

    /// Returns the [authority](Authority) of this term, which shares freely.
    ///
    /// A clone of the guard that is left somewhere delays a hand-over until the lease has run out;
    /// an authority delays nothing.
    pub fn authority(&self) -> Authority {
        Authority::new(self.term.clone())
    }

    pub(crate) fn shared(&self) -> &Arc<SharedTerm> {
        &self.term
    }

    /// Returns the token of the whole term, for a fence by term.
    ///
    /// Give it to work that writes for this leader and creates no edicts of its own.
    pub fn token(&self) -> Token {
        Token::of_term(self.term.number)
    }

    /// Returns the term: larger than that of every earlier leader of this group.
    pub fn term(&self) -> Term {
        self.term.number
    }

    /// Returns epoch and quorum of the run that began the term: the paper's timestamp.
    ///
    /// With the sequence number of an edict it orders like the token does, by the grantors' clocks
    /// alone.
    pub fn tag(&self) -> &ByTerm {
        &self.term.tag
    }

    /// Returns the group that this process leads.
    pub fn group(&self) -> &GroupName {
        &self.term.group
    }

    /// Records a heartbeat of the guarded work, for the health gate.
    ///
    /// It matters only if the campaign set [`Campaign::health`](crate::Campaign::health): then the
    /// term ends when a heartbeat is overdue.
    #[inline]
    pub fn heartbeat(&self) {
        self.term.heartbeat();
    }

    /// Waits until this process no longer leads, and returns the reason.
    ///
    /// A late answer is harmless: the clock has refused edicts since the lease ended. In a forked
    /// child, which never leads, it returns at once. A dropped future changes nothing.
    pub async fn lost(&self) -> Loss {
        self.term.lost().await
    }

    /// Waits until the work under this term should end: the cancellation token of
    /// [`Node::lead`](crate::Node::lead).
    ///
    /// It returns when the leadership is lost, and when an operator has asked for a resignation or
    /// a hand-over; in that case this process still leads. Work that waits for it beside its own
    /// business has [`Campaign::cleanup`](crate::Campaign::cleanup) to end in good order. A guard
    /// of [`campaign`](crate::Node::campaign) is cancelled by its loss alone: there its holder
    /// decides ([`asked`](Self::asked)). A dropped future changes nothing.
    pub async fn cancelled(&self) {
        self.term.cancelled().await;
    }

    /// Asks the work under this term to end, or says that other work has begun.
    pub(crate) fn set_cancelled(&self, cancelled: bool) {
        self.term.cancel.send_replace(cancelled);
    }

    /// Gives up the leadership, for all clones at once.
    ///
    /// The grants are released when the last clone is gone, or else when the lease has run out:
    /// work that still holds a clone may be writing.
    pub fn resign(self) {
        self.term.record.close();
        if !self.term.record.is_wiped() {
            let (group, term) = (self.term.group.id(), self.term.number);
            self.hold.mailbox.send(Request::StandDown { group, term });
        }
    }

    /// Hands the leadership over to a process that campaigns for this group.
    ///
    /// The gap without a leader is about one round trip. On success this guard is over; on failure
    /// this process goes on leading for as long as its lease does. End the guarded work before the
    /// call. If the future is dropped, the hand-over goes on: wait for [`lost`](Self::lost).
    ///
    /// # Errors
    /// [`TransferError::NotLeader`] if this process does not lead, `Declined` if `to` did not take
    /// over within a lease, `Stopped` if the node has stopped.
    pub async fn transfer(&self, to: &NodeName) -> Result<(), TransferError> {
        if !self.is_leader() {
            return Err(TransferError::NotLeader);
        }
        let (reply, answer) = oneshot::channel();
        let group = self.term.group.id();
        self.hold.mailbox.send(Request::Transfer { group, term: self.term.number, to: to.clone(), reply });
        answer.await.unwrap_or(Err(TransferError::Stopped))
    }

    /// Asks whether a process stands by to take over this group, and changes nothing.
    ///
    /// Ask before the guarded work is ended for a [`transfer`](Self::transfer): a name that is
    /// misspelt, or a process that has gone, then costs nothing. This process leads on, whatever
    /// the answer. A dropped future changes nothing.
    ///
    /// # Errors
    /// [`TransferError::NotStandingBy`] if `to` does not say so within a second or is this process
    /// itself, `NotLeader` if this process does not lead, `Stopped` if the node has stopped.
    pub async fn stands_by(&self, to: &NodeName) -> Result<(), TransferError> {
        if !self.is_leader() {
            return Err(TransferError::NotLeader);
        }
        let (reply, answer) = oneshot::channel();
        let group = self.term.group.id();
        self.hold.mailbox.send(Request::StandBy { group, term: self.term.number, to: to.clone(), reply });
        answer.await.unwrap_or(Err(TransferError::Stopped))
    }

    /// Waits for a [request](crate::OperatorRequest) of an operator: to resign, to hand over or to
    /// proclaim.
    ///
    /// The asker holds the cluster's key or an operator's key. The holder of this guard decides,
    /// because it alone knows when the guarded work has ended: end the work, then
    /// [`resign`](Self::resign) or [`transfer`](Self::transfer), then [`Asked::fulfil`]. If no
    /// caller takes the request within a second, the node answers that nobody listens. If several
    /// callers wait, one gets it.
    ///
    /// It never returns once the term is over: wait for [`lost`](Self::lost) beside it. The future
    /// may be dropped and the call repeated: no request is lost.
    pub async fn asked(&self) -> Asked {
        if self.term.record.is_wiped() {
            std::future::pending::<()>().await; // A forked child is asked nothing.
        }
        let note = self.term.desk.next().await;
        Asked::new(note, self.term.clone(), self.hold.mailbox.clone())
    }

    /// Publishes an edict and at most [`MAX_PROCLAIM`] bytes to all observers of the group.
    ///
    /// The newest proclamation replaces the one before. Delivery is best effort, and it is gone
    /// after a restart of all members. Returns the edict that orders it.
    ///
    /// # Errors
    /// [`ProclaimError::TooLong`] for a longer body, `NotLeader` if this process does not lead.
    pub fn proclaim(&self, body: &[u8]) -> Result<Edict, ProclaimError> {
        if body.len() > MAX_PROCLAIM {
            return Err(ProclaimError::TooLong { length: body.len() });
        }
        let edict = self.edict()?;
        let group = self.term.group.id();
        self.hold.mailbox.send(Request::Proclaim { group, token: edict.token(), body: body.to_vec() });
        Ok(edict)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.term.record.is_wiped() {
            return; // A forked child has nothing to give up, and must not touch what its parent waits on.
        }
        self.term.record.close();
        self.mailbox.send(Request::Gone { group: self.term.group.id(), term: self.term.number });
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedTerm { group, number, .. } = &*self.term;
        f.debug_struct("Tenure").field("group", group).field("term", number).finish_non_exhaustive()
    }
}

/// When the guarded work must have given a sign of life, counted from its last.
pub(crate) fn overdue_at(last: LocalTime, health: Duration) -> LocalTime {
    LocalTime::from_nanos(last.as_nanos().saturating_add(nanos(health)))
}
