//! [`Group`]: leaderships without a cluster.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::Term;
use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::epoch::Epoch;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, watch};

use crate::clock::{Clock, Hand, nanos};
use crate::driver::{Mailbox, Request};
use crate::guard::{Loss, SharedTerm, Tenure};
use crate::name::GroupName;
use crate::observe::Proclaimed;
use crate::operator_request::Desk;
use crate::steady::Steady;
use crate::sys::page::Pages;

/// A group whose leaders a test elects and deposes, for code that takes a [`Tenure`].
///
/// It gives out real guards, edicts and authorities, without a node. Its clock stands still until
/// the test moves it, and it sets no timer: a lease lasts exactly as long as the test says, on a
/// busy machine too, and whatever the async runtime's clock does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use tenure::testing::Group;
/// use tenure::{Loss, Term};
///
/// let lease = Duration::from_secs(2);
/// let mut group = Group::new("jobs");
/// let tenure = group.elect(lease);
/// assert!(tenure.is_leader() && tenure.edict().is_ok());
///
/// group.advance(lease / 2);
/// group.renew(lease);                                      // as a node does at half of a lease
/// group.advance(lease / 2);
/// assert!(tenure.is_leader());
///
/// group.advance(lease);                                    // nobody renewed it
/// assert!(!tenure.is_leader() && tenure.edict().is_err());
/// assert_eq!(tenure.lost().await, Loss::Lapsed);
///
/// let next = group.elect(lease);                           // in a later term
/// assert!(next.term() > tenure.term() && next.token() > tenure.token());
/// # }
/// ```
#[derive(Debug)]
pub struct Group {
    name: GroupName,
    clock: Clock,
    hand: Hand,
    pages: Arc<Pages>,
    mailbox: Mailbox,
    last: Term,
    /// The end of the lease that was given last.
    until: LocalTime,
    office: Arc<Mutex<Office>>,
}

/// The term that is led, and what was proclaimed.
#[derive(Default)]
struct Office {
    term: Option<Arc<SharedTerm>>,
    proclaimed: Vec<Proclaimed>,
}

impl std::fmt::Debug for Office {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Office").finish_non_exhaustive()
    }
}

impl Group {
    /// A group that nobody leads.
    ///
    /// # Panics
    /// If `name` is not a group's name, or the system gives no thread.
    pub fn new(name: &str) -> Self {
        let name = GroupName::new(name).expect("a group's name");
        let (clock, hand) = Clock::by_hand();
        hand.rate(0);
        let (send, requests) = mpsc::unbounded_channel();
        let office = Arc::<Mutex<Office>>::default();
        serve(requests, office.clone());
        let pages = Arc::default();
        let (mailbox, until) = (Mailbox(send), LocalTime::ZERO);
        Self { name, clock, hand, pages, mailbox, last: Term(0), until, office }
    }

    /// Elects this process for so long, in a term above all before. An earlier leader of the group
    /// leads no more: it has lapsed.
    ///
    /// # Panics
    /// If the system gives no page that is wiped on fork.
    pub fn elect(&mut self, lease: Duration) -> Tenure {
        self.depose(Loss::Lapsed);
        self.last = Term(self.last.0 + 1);
        let term = Arc::new(SharedTerm {
            record: self.pages.lend().expect("a page that is wiped on fork"),
            steady: Steady::begin(&self.clock, None),
            group: self.name.clone(),
            number: self.last,
            tag: ByTerm { epoch: Epoch(0), first: std::iter::empty().collect() },
            trace: None,
            loss: watch::Sender::new(None),
            desk: Desk::default(),
            cancel: watch::Sender::new(false),
        });
        let tenure = Tenure::new(term.clone(), self.mailbox.clone());
        tenure.heartbeat();
        self.office().term = Some(term);
        self.renew(lease);
        tenure
    }

    /// Renews the lease: it lasts so long from now on.
    pub fn renew(&mut self, lease: Duration) {
        self.until = LocalTime::from_nanos(self.clock.read().as_nanos().saturating_add(nanos(lease)));
        if let Some(term) = &self.office().term {
            term.record.extend(self.until);
        }
    }

    /// Lets time pass on the clock of this group. A lease that was not renewed is over.
    pub fn advance(&mut self, by: Duration) {
        self.hand.forward(by);
        if self.clock.read() >= self.until {
            self.depose(Loss::Lapsed);
        }
    }

    /// Ends the present term for this reason. Does nothing if nobody leads.
    pub fn depose(&mut self, loss: Loss) {
        if let Some(term) = self.office().term.take() {
            term.end(loss);
        }
    }

    /// Returns the edicts that leaders of this group have proclaimed so far, in order.
    ///
    /// A guard does not wait until it is heard: wait for as many as the test expects.
    pub fn proclaimed(&self) -> Vec<Proclaimed> {
        self.office().proclaimed.clone()
    }

    fn office(&self) -> std::sync::MutexGuard<'_, Office> {
        self.office.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what a node does for its guards, until all of them are gone. In a runtime it is a task:
/// while tokio's time is paused, hours pass before a thread answers.
fn serve(mut requests: mpsc::UnboundedReceiver<Request>, office: Arc<Mutex<Office>>) {
    let all = poll_fn(move |cx: &mut Context<'_>| {
        while let Poll::Ready(request) = requests.poll_recv(cx) {
            let Some(request) = request else { return Poll::Ready(()) };
            office.lock().unwrap_or_else(PoisonError::into_inner).take(request);
        }
        Poll::Pending
    });
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(all)),
        Err(_) => {
            let runtime = Builder::new_current_thread().build().expect("the system gives a runtime");
            let thread = thread::Builder::new().name("tenure-testing".into());
            thread.spawn(move || runtime.block_on(all)).expect("the system gives a thread");
        }
    }
}

impl Office {
    fn take(&mut self, request: Request) {
        match request {
            Request::StandDown { term, .. } | Request::Gone { term, .. } => self.end(term, Loss::Resigned),
            Request::Transfer { term, reply, .. } => {
                self.end(term, Loss::HandedOver);
                let _ = reply.send(Ok(()));
            }
            Request::Proclaim { token, body, .. } => self.proclaimed.push(Proclaimed { token, body }),
            _ => {}
        }
    }

    fn end(&mut self, number: Term, loss: Loss) {
        if let Some(term) = self.term.take_if(|term| term.number == number) {
            term.end(loss);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeName;

    const LEASE: Duration = Duration::from_secs(2);

    #[tokio::test]
    async fn a_leadership_ends_by_the_tests_clock_and_no_other() {
        let mut group = Group::new("jobs");
        let tenure = group.elect(LEASE);
        thread::sleep(Duration::from_millis(1));
        assert_eq!(tenure.remaining(), Some(LEASE), "the clock stands still");
        group.advance(LEASE - Duration::from_nanos(1));
        assert!(tenure.is_leader());
        assert_eq!(tenure.remaining(), Some(Duration::from_nanos(1)));
        group.advance(Duration::from_nanos(1));
        assert!(!tenure.is_leader());
        assert_eq!(tenure.lost().await, Loss::Lapsed);
    }

    #[tokio::test]
    async fn each_leader_has_a_later_term_and_the_one_before_is_over() {
        let mut group = Group::new("jobs");
        let first = group.elect(LEASE);
        let second = group.elect(LEASE);
        assert!(!first.is_leader() && second.is_leader() && first.term() < second.term());
        group.depose(Loss::Unhealthy);
        assert_eq!((first.lost().await, second.lost().await), (Loss::Lapsed, Loss::Unhealthy));
    }

    #[test]
    fn guards_are_answered_without_a_runtime_too() {
        let mut group = Group::new("jobs");
        let authority = group.elect(LEASE).authority(); // The guard is dropped: it resigns.
        let runtime = Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(authority.lost()), Loss::Resigned);
    }

    #[tokio::test]
    async fn guards_resign_hand_over_and_proclaim() {
        let mut group = Group::new("jobs");
        let first = group.elect(LEASE);
        let (authority, edict) = (first.authority(), first.proclaim(b"hear ye").unwrap());
        first.resign();
        assert!(!authority.is_leader());
        assert_eq!(authority.lost().await, Loss::Resigned);
        assert_eq!(group.proclaimed(), [Proclaimed { token: edict.token(), body: b"hear ye".to_vec() }]);
        let second = group.elect(LEASE);
        assert_eq!(second.transfer(&NodeName::new("b").unwrap()).await, Ok(()));
        assert_eq!(second.lost().await, Loss::HandedOver);
    }
}
