//! The guard of one term: [`Tenure`].
//!
//! Who holds it may ask at any time, from any thread, whether this process leads **now**, and gets
//! an answer by a comparison of clocks: a reading of this host's clock against E, the end of the
//! lease. No timer, no callback and no cached belief is asked. Five rules keep it honest:
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
//! Authority ends with [`Tenure::resign`] or with the last clone. What the grantors promised is
//! given back only when the last clone is gone: work that still holds one may be writing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::edict::{ByTerm, NotLeader};
use tenure_proto::strong::trace::Common;
use tenure_proto::strong::{Edict, Term, Token};
use tokio::sync::{oneshot, watch};

use crate::clock::nanos;
use crate::driver::{Mailbox, Request};
use crate::error::{ProclaimError, TransferError};
use crate::name::{GroupName, NodeName};
use crate::steady::Steady;
use crate::sys::clock::{Which, read};
use crate::sys::page::Lent;
use crate::trace::Trace;
use crate::wish::{Asked, Desk};

/// The most bytes that can be [proclaimed](Tenure::proclaim) with an edict.
pub const MAX_PROCLAIM: usize = 512;

/// A leadership of this process: one term of one group. Cheap to clone; all clones are one
/// leadership.
#[derive(Clone)]
pub struct Tenure {
    term: Arc<SharedTerm>,
    hold: Arc<Hold>,
}

/// What the driver and the handles share of a term.
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
    /// What others ask of this leader.
    pub(crate) desk: Desk,
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
    /// It was not renewed in time: too few grantors were reached, or this process was held up.
    Lapsed,
    /// It was given up, or all its handles are gone.
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
    fn leads_until(&self) -> Option<(LocalTime, LocalTime)> {
        self.record.leads_until(|| self.steady.read())
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

    /// Whether this process leads at this instant. Wait-free; about as dear as a look at the clock,
    /// or two on a machine that can be [suspended](crate::Suspends).
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.term.leads_until().is_some()
    }

    /// For how much longer this process leads if it renews no more; nothing if it does not lead.
    pub fn remaining(&self) -> Option<Duration> {
        let (now, until) = self.term.leads_until()?;
        Some(Duration::from_nanos(until.remaining(now).as_nanos()))
    }

    /// E, the end of the lease as it stands: from then on this process does not lead, unless it
    /// renews before; nothing if it does not lead now. For a watcher that shares this host's clock,
    /// such as a process that ends the guarded work if this one hangs. A reading of CLOCK_BOOTTIME
    /// in nanoseconds; of CLOCK_REALTIME where the cluster's bound is on skew.
    pub fn until(&self) -> Option<LocalTime> {
        self.term.leads_until().map(|(_, until)| until)
    }

    /// Creates an edict: an act of this leader, whose [token](Edict::token) any
    /// [fence](crate::fence) can order. Refused from the instant on at which the lease is over.
    /// Wait-free.
    #[inline]
    pub fn edict(&self) -> Result<Edict, NotLeader> {
        if let Some(trace) = &self.term.trace {
            return self.traced_edict(trace);
        }
        self.term.record.edict(self.term.number, || self.term.steady.read())
    }

    /// The same, written down with the readings around it, so that an audit can judge it.
    #[cold]
    fn traced_edict(&self, trace: &Trace) -> Result<Edict, NotLeader> {
        let (from, before) = (read(Which::Boot), self.term.steady.clock().read());
        let mut reading = before;
        let edict = self.term.record.edict(self.term.number, || {
            reading = self.term.steady.read();
            reading
        })?;
        let common = Common::between(from, read(Which::Boot));
        trace.edict(&self.term.group, &self.term.tag, edict, (before, reading), common);
        Ok(edict)
    }

    /// The token of the whole term: what a fence by term needs, and what to give to work that
    /// writes for this leader.
    pub fn token(&self) -> Token {
        Token::of_term(self.term.number)
    }

    /// The term: larger than that of every leader of this group before.
    pub fn term(&self) -> Term {
        self.term.number
    }

    /// Epoch and quorum of the run that began the term: the paper's timestamp. With the number of
    /// an edict it orders like the token does, by the grantors' clocks alone.
    pub fn tag(&self) -> &ByTerm {
        &self.term.tag
    }

    /// The group that this process leads.
    pub fn group(&self) -> &GroupName {
        &self.term.group
    }

    /// Tells that the guarded work is alive. Only for a campaign that asked for it: see
    /// [`Campaign`](crate::Campaign).
    #[inline]
    pub fn heartbeat(&self) {
        self.term.record.beat(self.term.steady.clock().read());
    }

    /// Waits until this process leads no more, and says why. To be told late is harmless: the clock
    /// has refused since then. In a forked child, which never leads, that is at once.
    pub async fn lost(&self) -> Loss {
        if self.term.record.is_wiped() {
            return Loss::Stopped;
        }
        let mut watch = self.term.loss.subscribe();
        match watch.wait_for(Option::is_some).await {
            Ok(loss) => loss.unwrap_or(Loss::Stopped),
            Err(_) => Loss::Stopped,
        }
    }

    /// Gives up the leadership. Authority ends at once, for all clones; the grantors are set free
    /// when the last clone is gone, or when the lease has run out.
    pub fn resign(self) {
        self.term.record.close();
        if !self.term.record.is_wiped() {
            let (group, term) = (self.term.group.id(), self.term.number);
            self.hold.mailbox.send(Request::StandDown { group, term });
        }
    }

    /// Hands the leadership over to a process that campaigns for this group, with a gap of about
    /// one round trip. This guard is over when it succeeds; when it fails, this process goes on
    /// leading if its lease does.
    pub async fn transfer(&self, to: &NodeName) -> Result<(), TransferError> {
        if !self.is_leader() {
            return Err(TransferError::NotLeader);
        }
        let (reply, answer) = oneshot::channel();
        let group = self.term.group.id();
        self.hold.mailbox.send(Request::Transfer { group, term: self.term.number, to: to.clone(), reply });
        answer.await.unwrap_or(Err(TransferError::Stopped))
    }

    /// Waits for a [wish](crate::Wish) of somebody who has the cluster's or an operator's key.
    /// Whether to do it is for the holder of this guard to say, who alone knows when the guarded
    /// work has ended: end that, then [`resign`](Self::resign) or [`transfer`](Self::transfer),
    /// then [`Asked::grant`]. A wish that is not heard within a second is answered in its place:
    /// nobody listens. Of several that wait, one hears it. Never returns once the term is over:
    /// wait for [`lost`](Self::lost) beside it. May be dropped and called again: nothing is lost.
    pub async fn asked(&self) -> Asked {
        if self.term.record.is_wiped() {
            std::future::pending::<()>().await; // A forked child is asked nothing.
        }
        let note = self.term.desk.next().await;
        Asked::new(note, self.term.clone(), self.hold.mailbox.clone())
    }

    /// Tells observers: an edict and at most [`MAX_PROCLAIM`] bytes. The newest replaces what was
    /// proclaimed before; best effort, and gone after a restart of all members. Returns the edict
    /// under which it goes out.
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
