//! Work that runs while a process leads: [`Node::lead`].

use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::campaign::Campaign;
use crate::driver::Request;
use crate::error::CampaignError;
use crate::guard::{Loss, Tenure};
use crate::node::Node;
use crate::operator_request::{Asked, OperatorRequest};

/// How a leadership with work ended.
enum Outcome<T> {
    /// The work has.
    Done(T),
    /// It was lost, or handed over.
    Lost(Loss),
    /// It is to be given up, and the work is dropped.
    Resign(Asked),
}

impl Node {
    /// Campaigns for `group` and runs `work` while this process leads. When the work ends while it
    /// still leads, or has resigned by itself, the call returns what the work returned.
    ///
    /// If the leadership is lost before, the work is dropped at its next `.await`, and the campaign
    /// begins anew: losing is normal. That is so, too, if the work ends because it noticed the loss
    /// itself: what it returned is dropped, and the work begins anew in a later term. Work that
    /// must not be cut short is given time to clean up by [`lead_with`](Self::lead_with).
    ///
    /// It fulfils [requests](OperatorRequest) of operators. Asked to proclaim, it proclaims. Asked
    /// to hand over, it first asks whether the successor [stands by](Tenure::stands_by), and
    /// declines if not: the work goes on. Asked to resign or to hand over, it drops the work as on
    /// a loss, and only then gives up the leadership. After a resignation it backs off for the
    /// length of a lease, so that others can be elected, and campaigns again; after a hand-over it
    /// campaigns at once. If the successor does not take over all the same, the work begins anew,
    /// in the same term.
    ///
    /// **Write before you read.** A resource behind a [`fence`](crate::fence) admits the old leader
    /// until it has seen the token of the new one. Work that begins with a read may read what the
    /// old leader still changes: let the first act of each term be a write, or an admission of the
    /// token alone.
    ///
    /// If the future is dropped, the work is dropped, and this process resigns or withdraws from
    /// the campaign. A clone of the guard that lives elsewhere keeps the leadership; an
    /// [`Authority`](crate::Authority) does not.
    ///
    /// The future borrows nothing but what the closure does. To spawn it, let the closure own what
    /// it uses: `tokio::spawn(node.lead("jobs", async move |tenure| …))`. The compiler does not
    /// accept an async closure that borrows in a task that may move between threads.
    ///
    /// # Errors
    /// A [`CampaignError`] if this process may not lead the group, or the node has stopped. A lost
    /// election is no error.
    pub fn lead<T, W: AsyncFnMut(Tenure) -> T>(
        &self,
        group: &str,
        work: W,
    ) -> impl Future<Output = Result<T, CampaignError>> + use<T, W> {
        self.lead_with(group, Campaign::default(), work)
    }

    /// Leads as [`lead`](Self::lead) does, with a health gate, a priority, bytes to publish, or
    /// time to clean up.
    ///
    /// The work is an async closure, which may borrow and keep counts over terms:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tenure::{ClusterId, ClusterKey, Config, Key, Node, Term};
    /// # use std::time::Duration;
    /// # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", ClusterId::draw()));
    /// # let mut config = Config::new("alone", Key::Cluster(ClusterKey::generate()));
    /// # config.listen = vec!["127.0.0.1:0".parse()?];
    /// # config.members = tenure::peers([("alone", "127.0.0.1:7400")]);
    /// # config.store = Some(folder.join("alone"));
    /// # Node::found(&config, ClusterId::draw(), Term(0))?;
    /// # let node = Node::start(config).await?;
    /// # async fn serve(_: tenure::Authority) {}
    /// # async fn flush() {}
    /// use tenure::Campaign;
    ///
    /// let how = Campaign::default().publish(*b"10.0.0.7:8080").cleanup(Duration::from_secs(2));
    /// let mut terms = 0;
    /// node.lead_with("jobs", how, async |tenure| {
    ///     terms += 1;                                      // borrowed
    ///     tokio::select! {
    ///         () = serve(tenure.authority()) => {}         // shares freely, and delays no hand-over
    ///         () = tenure.cancelled() => flush().await,    // has two seconds
    ///     }
    /// }).await?;
    /// assert_eq!(terms, 1);
    /// # node.shutdown().await;
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`lead`](Self::lead), and if there are too many bytes to publish.
    pub fn lead_with<T, W: AsyncFnMut(Tenure) -> T>(
        &self,
        group: &str,
        how: Campaign,
        mut work: W,
    ) -> impl Future<Output = Result<T, CampaignError>> + use<T, W> {
        // It owns what it needs: a future with borrowed arguments and an async closure cannot be
        // spawned.
        let (node, group) = (self.clone(), group.to_owned());
        async move {
            loop {
                let tenure = node.campaign_with(&group, how.clone()).await?;
                match lead_once(&tenure, how.cleanup, &mut work).await {
                    Outcome::Done(result) => {
                        tenure.resign();
                        return Ok(result);
                    }
                    Outcome::Lost(Loss::Stopped) => return Err(CampaignError::Stopped(node.why_stopped())),
                    Outcome::Lost(_) => {}
                    Outcome::Resign(asked) => {
                        tenure.resign();
                        asked.fulfil();
                        let (reply, rested) = oneshot::channel();
                        node.mailbox().send(Request::Rest(reply));
                        let _ = rested.await;
                    }
                }
            }
        }
    }
}

/// Runs the work while `tenure` lasts, and fulfils requests. The work first, if several
/// things happen at once: what it returned counts if it still leads.
async fn lead_once<T>(
    tenure: &Tenure,
    cleanup: Option<Duration>,
    work: &mut impl AsyncFnMut(Tenure) -> T,
) -> Outcome<T> {
    loop {
        tenure.set_cancelled(false);
        let (asked, to) = {
            let mut done = pin!(work(tenure.clone()));
            let order = loop {
                let asked = tokio::select! {
                    biased;
                    result = &mut done => return ended(tenure, result).await,
                    loss = tenure.lost() => {
                        let result = clean_up(tenure, cleanup, done).await;
                        return after(loss, result);
                    }
                    asked = tenure.asked() => asked,
                };
                match asked.request() {
                    OperatorRequest::Resign => break (asked, None),
                    OperatorRequest::Transfer { to } => {
                        let ready = tokio::select! {
                            biased;
                            result = &mut done => return ended(tenure, result).await,
                            ready = tenure.stands_by(to) => ready,
                        };
                        match ready {
                            Ok(()) => {
                                let to = to.clone();
                                break (asked, Some(to));
                            }
                            Err(error) => asked.decline(&error.to_string()),
                        }
                    }
                    OperatorRequest::Proclaim { body } => match tenure.proclaim(body) {
                        Ok(edict) => asked.fulfil_as(edict),
                        Err(error) => asked.decline(&error.to_string()),
                    },
                }
            };
            clean_up(tenure, cleanup, done).await;
            order
        }; // The work is dropped here, before anything is given up.
        let Some(to) = to else { return Outcome::Resign(asked) };
        match tenure.transfer(&to).await {
            Ok(()) => {
                asked.fulfil();
                return Outcome::Lost(Loss::HandedOver);
            }
            Err(error) => asked.decline(&error.to_string()),
        }
        if !tenure.is_leader() {
            return Outcome::Lost(tenure.lost().await);
        }
    }
}

/// Tells the work to end, and gives it time for that. Returns what it returned in that time.
async fn clean_up<T>(
    tenure: &Tenure,
    within: Option<Duration>,
    work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    tenure.set_cancelled(true);
    let within = within?;
    #[cfg(any(test, feature = "test-util"))]
    if let Some(host) = tenure.shared().steady.clock().host() {
        return tokio::select! {
            biased;
            result = work => Some(result),
            () = host.sleep(within) => None,
        };
    }
    let (_ended, over) = alarm(within);
    tokio::select! {
        biased;
        result = work => Some(result),
        _ = over => None,
    }
}

/// Rings after a while, under any executor, also when the node has stopped: a thread waits for it.
/// The thread ends as soon as the first half is dropped.
fn alarm(after: Duration) -> (mpsc::Sender<()>, oneshot::Receiver<()>) {
    let ((ended, waits), (ring, over)) = (mpsc::channel::<()>(), oneshot::channel());
    // Without a thread it rings at once.
    let _ = thread::Builder::new().name("tenure-cleanup".into()).spawn(move || {
        let _ = waits.recv_timeout(after);
        let _ = ring.send(());
    });
    (ended, over)
}

/// Judges the end of the work by the clock, at this moment: a loss that nobody was told of yet is a
/// loss. Work that gave the leadership up itself has ended by itself.
async fn ended<T>(tenure: &Tenure, result: T) -> Outcome<T> {
    if tenure.is_leader() {
        return Outcome::Done(result);
    }
    after(tenure.lost().await, Some(result))
}

/// The work has ended, or not, and its leadership is over.
fn after<T>(loss: Loss, result: Option<T>) -> Outcome<T> {
    match (loss, result) {
        (Loss::Resigned | Loss::HandedOver, Some(result)) => Outcome::Done(result),
        (loss, _) => Outcome::Lost(loss),
    }
}
