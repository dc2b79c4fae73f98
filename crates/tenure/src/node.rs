//! [`Node`]: the handle of a running node.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::Term;
use tenure_proto::time::Span;
use tokio::sync::{mpsc, oneshot, watch};

use crate::authority::{Authority, Led};
use crate::board::Board;
use crate::campaign::Campaign;
use crate::clock::{Forward, nanos};
use crate::config::{Checked, Config, ConfigError, Key};
use crate::driver::{self, Entry, Mailbox, Request};
use crate::error::{
    AskError, CampaignError, KindError, MembersError, RevokeError, StartError, Stopped, VerifyError,
};
use crate::eventual::{Eventual, Hint};
use crate::guard::{MAX_PROCLAIM, Tenure};
use crate::local::{Local, Locality};
use crate::members::{Changing, MemberChange};
use crate::name::{ClusterId, GroupName, NodeName};
use crate::observe::{Scene, Watch};
use crate::operator_request::{Fulfilled, OperatorRequest};
use crate::seal::{ClusterKey, Serial};
use crate::status::{GroupStatus, Status};
use crate::steady::{SharedSteady, Steady};
use crate::store::{Founding, Store, founding_draw};
use crate::sys::clock::{Which, read};

/// A running process of a cluster: it grants, campaigns and observes, as its [`Role`](crate::Role)
/// says.
///
/// Cheap to clone. When the last clone is dropped, the node ends. Guards that are left are over at
/// once, but their leases run out instead of being released, because the work that holds them may
/// still be writing. For a faster failover call [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: NodeName,
    launched: Launched,
    numbers: AtomicU64,
    /// The terms that were won by clones of this node.
    led: Led,
}

/// How long a leader that is asked for something has to answer, unless the asker says otherwise.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// How to reach a driver that runs.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) mailbox: Mailbox,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) ready: watch::Receiver<bool>,
    pub(crate) stopped: watch::Receiver<Option<Stopped>>,
    pub(crate) board: Arc<Board>,
    pub(crate) steady: SharedSteady,
}

/// Returns the term above which a cluster that is founded now should begin.
///
/// It is the number of seconds since the beginning of 2024. So a cluster that is founded anew
/// presents larger tokens than the old one did. With a lower floor, fences that remember the old
/// cluster would refuse the new leaders.
pub fn term_floor() -> Term {
    const BEGINNING: u64 = 1_704_067_200;
    Term((read(Which::Real) / 1_000_000_000).saturating_sub(BEGINNING))
}

/// A key that a member refuses: see [`Node::revoked_keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RevokedKey {
    /// Its id.
    pub serial: Serial,
    /// The last second, since 1970, in which it would have been good, if that was known. The entry
    /// is forgotten some months later.
    pub not_after: Option<u64>,
}

/// The outcome of a [revocation](Node::revoke): which members have stored it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revoked {
    /// The key.
    pub serial: Serial,
    /// The members that have it on their disks, as they said in time.
    pub held_by: Vec<NodeName>,
    /// The members that have not said so. They get it when they are reached.
    pub missing: Vec<NodeName>,
    /// Whether those that have it are a quorum: only then does the revocation hold.
    pub is_quorum: bool,
}

/// A verified leader, and the time until which it is certain on this host's clock.
#[derive(Clone, Debug)]
pub struct Certain {
    /// The leader's name.
    pub leader: NodeName,
    /// The leader's term.
    pub term: Term,
    pub(crate) until: LocalTime,
    /// The clock, as it was when the leader was asked: after a disturbance nothing is certain.
    pub(crate) steady: Steady,
}

impl Certain {
    /// Returns for how much longer the leadership is certain; `None` if it no longer is. During
    /// that time no other process leads. The leader itself may have stopped.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.until.remaining(self.steady.read()).as_nanos();
        (left > 0).then(|| Duration::from_nanos(left))
    }
}

impl Node {
    /// Starts a node: checks the configuration, opens the store, listens. Works under any executor;
    /// the node itself runs on a thread of its own. If the future is dropped before it returns, the
    /// node ends again.
    /// # Errors
    /// A [`StartError`] says what to change: the configuration, the store, an address, the trace or
    /// the system. The node has granted nothing then.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let checked = Checked::new(&config)?;
        let name = checked.name.clone();
        let launched = driver::launch(checked)?.await.unwrap_or_else(|_| {
            Err(StartError::System(std::io::Error::other("the node's thread has ended at its start")))
        })?;
        Ok(Self::launched(name, launched))
    }

    pub(crate) fn launched(name: NodeName, launched: Launched) -> Self {
        Self(Arc::new(Inner { name, launched, numbers: AtomicU64::new(1), led: Led::default() }))
    }

    /// Founds a cluster: writes the store of the member that `config` is for. Call it once for
    /// every founding member, with the same `cluster` and `floor` for all; [`ClusterId::draw`] and
    /// [`term_floor`](crate::term_floor) make them. It refuses a folder that has a store already,
    /// because a second founding would forget the promises of the first.
    /// # Errors
    /// If the configuration is refused, if it names another [lineage](Config::lineage) or no store,
    /// or if the store cannot be written.
    pub fn found(config: &Config, cluster: ClusterId, floor: Term) -> Result<(), StartError> {
        let checked = Checked::new(config)?;
        let missing = ConfigError::Missing { key: "store", why: "only a member's store is founded" };
        let dir = checked.store.as_deref().filter(|_| checked.role.grants()).ok_or(missing)?;
        let (me, members) = (checked.name.clone(), checked.contacts.clone());
        let (body, there) = (config.body()?, Self::founding_lineage(config, cluster)?);
        if let Some(here) = config.lineage.filter(|here| *here != there) {
            return Err(ConfigError::Lineage { here, there }.into());
        }
        Store::found(dir, &Founding { cluster, me, members, body, floor })?;
        Ok(())
    }

    /// Returns the lineage of the cluster that [`found`](Self::found) makes: the number of that
    /// founding. Write it into [`Config::lineage`] of every process that talks to the cluster. They
    /// then refuse another cluster that was founded under the same id and key.
    /// # Errors
    /// If members, quorums or bounds of the configuration are refused.
    pub fn founding_lineage(config: &Config, cluster: ClusterId) -> Result<u128, ConfigError> {
        Ok(founding_draw(cluster, &config.body()?))
    }

    /// Makes the store of a new member for a cluster that exists already. The node starts, learns
    /// the charter, and grants nothing until the members have [added](Self::change_members) it.
    /// # Errors
    /// If the configuration is refused, names no store, or if the store cannot be written.
    pub fn join(config: &Config, cluster: ClusterId) -> Result<(), StartError> {
        let checked = Checked::new(config)?;
        let missing = ConfigError::Missing { key: "store", why: "only a member's store is made" };
        let dir: &Path = checked.store.as_deref().filter(|_| checked.role.grants()).ok_or(missing)?;
        Store::join(dir, cluster, &checked.name, checked.contacts.clone())?;
        Ok(())
    }

    /// Returns the name of this node.
    pub fn name(&self) -> &NodeName {
        &self.0.name
    }

    /// Returns the addresses on which this node listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.0.launched.addresses
    }

    /// Waits until this process leads `group`, and returns the guard of that term. It waits for
    /// however long that takes. A future that is dropped withdraws from the campaign; nothing is
    /// left behind.
    /// # Errors
    /// A [`CampaignError`] if this process may not lead the group, campaigns for it or leads it
    /// already, or if the node has stopped.
    pub async fn campaign(&self, group: &str) -> Result<Tenure, CampaignError> {
        self.campaign_with(group, Campaign::default()).await
    }

    /// Campaigns as [`campaign`](Self::campaign) does, with a health gate, a priority, a term to
    /// exceed, or bytes to publish. A future that is dropped withdraws from the campaign; a
    /// priority that was given stays in force.
    /// # Errors
    /// As [`campaign`](Self::campaign).
    pub async fn campaign_with(&self, group: &str, how: Campaign) -> Result<Tenure, CampaignError> {
        let group = GroupName::new(group)?;
        if let Some(length) = how.publish.as_ref().map(Vec::len).filter(|length| *length > MAX_PROCLAIM) {
            return Err(CampaignError::TooLong { length });
        }
        let number = self.0.numbers.fetch_add(1, Relaxed);
        let (prize, won) = oneshot::channel();
        let mailbox = &self.0.launched.mailbox;
        let withdraw = Withdraw { mailbox, group: &group, number, armed: true };
        let entry = Entry { group: group.clone(), number, health: how.health, prize };
        if let Some(above) = how.above {
            mailbox.send(Request::Raise { group: group.clone(), above });
        }
        mailbox.send(Request::Campaign(entry, how.priority));
        let result = won.await;
        withdraw.disarm();
        let tenure = result.unwrap_or_else(|_| Err(CampaignError::Stopped(self.why_stopped())))?;
        self.0.led.note(&tenure);
        if let Some(body) = &how.publish {
            let _ = tenure.proclaim(body); // A process that has lost already publishes nothing.
        }
        Ok(tenure)
    }

    /// Returns whether this process leads `group` at this instant, by its clock.
    ///
    /// Any clone of the node answers; nobody need pass a guard around.
    pub fn leads(&self, group: &str) -> bool {
        self.authority(group).is_some_and(|authority| authority.is_leader())
    }

    /// Returns the [authority](Authority) of this process over `group`; `None` if it does not lead.
    pub fn authority(&self, group: &str) -> Option<Authority> {
        self.0.led.authority(&GroupName::new(group).ok()?).filter(Authority::is_leader)
    }

    /// Watches a group: its leader, the lack of one, and the edicts that leaders proclaim. News
    /// come in the order of terms and never go back. If the future is dropped before it returns,
    /// the node may go on watching the group until it ends; no other harm is done.
    /// # Errors
    /// If the name is not a group's name, or the node has stopped.
    pub async fn observe(&self, group: &str) -> Result<Watch, CampaignError> {
        let group = GroupName::new(group)?;
        let (reply, scene) = oneshot::channel();
        let mailbox = self.0.launched.mailbox.clone();
        mailbox.send(Request::Observe { group: group.clone(), reply });
        let scene = scene.await.map_err(|_| CampaignError::Stopped(self.why_stopped()))?;
        Ok(Watch { group, scene, told: Scene::default(), mailbox })
    }

    /// Takes part in an eventual group, and shows the process that seems to lead it. The answer is
    /// a hint without authority, which in the end is the same everywhere. All members take part as
    /// soon as one does, and go on if this future or its handle is dropped.
    /// # Errors
    /// A [`KindError`] if this node is no member, if there are too many such groups, if the name is
    /// not a group's name, or if the node has stopped.
    pub async fn eventual(&self, group: &str) -> Result<Eventual, KindError> {
        let group = GroupName::new(group)?;
        let (reply, opinion) = oneshot::channel();
        let order = driver::EventualOrder { group: group.clone(), reply };
        self.0.launched.mailbox.send(Request::Eventual(order));
        let opinion = opinion.await.map_err(|_| KindError::Stopped(self.why_stopped()))??;
        Ok(Eventual {
            group,
            opinion,
            told: Hint::default(),
            clock: Forward::new(self.0.launched.steady.clone()),
        })
    }

    /// Takes part in a local group: one leader and one list of members for every partition. Only
    /// the members that call this take part, all with the same `how`. A strong group of the same
    /// name may exist beside it. If the future is dropped, this process takes no part.
    /// # Errors
    /// A [`KindError`] if this node is no member, if `how` contradicts itself or what this node
    /// takes part with already, if the name is not a group's name, or if the node has stopped.
    pub async fn local(&self, group: &str, how: &Locality) -> Result<Local, KindError> {
        let group = GroupName::new(group)?;
        let (reply, joined) = oneshot::channel();
        let mailbox = self.0.launched.mailbox.clone();
        mailbox.send(Request::Local(driver::LocalOrder { group: group.clone(), how: how.clone(), reply }));
        let joined = joined.await.map_err(|_| KindError::Stopped(self.why_stopped()))??;
        let clock = Forward::new(self.0.launched.steady.clone());
        let surroundings = joined.surroundings;
        Ok(Local { group, surroundings, told: None, clock, mailbox, _held: joined.held })
    }

    /// Asks the leader itself, and returns how long it is certain that no other process leads. The
    /// leader pledges not to hand over for `wanted`, but for no longer than its
    /// [`Config::longest_pledge`] allows. A decision that is made within that time is a
    /// linearizable read of the leadership. If the future is dropped, the answer is ignored.
    /// # Errors
    /// [`VerifyError::NoLeader`] if no leader answers in time; others if the key or the name is
    /// refused, or the node has stopped.
    pub async fn verify(&self, group: &str, wanted: Duration) -> Result<Certain, VerifyError> {
        let group = GroupName::new(group)?;
        let (reply, answer) = oneshot::channel();
        let wanted = Span::from_nanos(nanos(wanted));
        self.0.launched.mailbox.send(Request::Verify(driver::VerifyOrder { group, wanted, reply }));
        answer.await.unwrap_or_else(|_| Err(VerifyError::Stopped(self.why_stopped())))
    }

    /// Asks the leader of `group`, wherever it is, to resign, to hand over or to proclaim. It waits
    /// for the answer, ten seconds at most. The holder of the leader's guard does it or declines:
    /// see [`Tenure::asked`] and [`Node::lead`]. Retransmissions are idempotent: the request is
    /// done at most once. Only holders of the cluster's key or of an operator's key may ask. If the
    /// future is dropped, the leader may still do it.
    /// # Errors
    /// An [`AskError`]. After [`AskError::Timeout`] the leader may still do it; after `Stopped` it
    /// may have done it.
    pub async fn ask(&self, group: &str, request: OperatorRequest) -> Result<Fulfilled, AskError> {
        self.ask_within(group, request, ASK_WITHIN).await
    }

    /// Asks as [`ask`](Self::ask) does, and waits for at most `within`, a minute at the longest. A
    /// leader whose work takes long to end answers late. If the future is dropped, the leader may
    /// still do it.
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn ask_within(
        &self,
        group: &str,
        request: OperatorRequest,
        within: Duration,
    ) -> Result<Fulfilled, AskError> {
        let group = GroupName::new(group)?;
        if let OperatorRequest::Proclaim { body } = &request
            && body.len() > MAX_PROCLAIM
        {
            return Err(AskError::TooLong { length: body.len() });
        }
        let (reply, answer) = oneshot::channel();
        let within = within.min(driver::LONGEST_ASK);
        self.0.launched.mailbox.send(Request::Ask(driver::AskOrder { group, request, within, reply }));
        answer.await.unwrap_or_else(|_| Err(AskError::Stopped(self.why_stopped())))
    }

    /// Begins a change of the members, their quorums or their bounds. Leaders go on leading
    /// meanwhile, except where [`MemberChange`] says otherwise. The returned [`Changing`] tells the
    /// progress and the outcome.
    /// # Errors
    /// If a name, an address, the quorums or a bound in `change` is malformed. All else is told by
    /// [`Changing`].
    pub fn change_members(&self, change: &MemberChange) -> Result<Changing, MembersError> {
        self.change(change, false)
    }

    /// Changes the members even if those that answer are no quorum of the new members. In that case
    /// the members grant nothing until more of them answer.
    /// [`change_members`](Self::change_members) refuses such a change.
    /// # Errors
    /// As [`change_members`](Self::change_members).
    pub fn change_members_anyway(&self, change: &MemberChange) -> Result<Changing, MembersError> {
        self.change(change, true)
    }

    fn change(&self, change: &MemberChange, anyway: bool) -> Result<Changing, MembersError> {
        let wanted = change.resolve()?;
        let (progress, changing) = mpsc::unbounded_channel();
        self.0.launched.mailbox.send(Request::Change(driver::ChangeOrder { wanted, anyway, progress }));
        Ok(Changing(changing))
    }

    /// Resumes after a split brain ([`NotReady::SplitBrain`](crate::NotReady::SplitBrain)), after a
    /// silence.
    ///
    /// Returns whether there was one. Call it at each member of the cluster that is to go on,
    /// *after the other cluster has been ended*: if the other runs, both may have a leader until
    /// they hear of each other again. If the future is dropped, the node may have resumed.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn accept_lineage(&self) -> Result<bool, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.launched.mailbox.send(Request::AcceptLineage(reply));
        answer.await.map_err(|_| self.why_stopped())
    }

    /// Confirms, on an operator's word, that terms may be as high as `term`. A member doubts a term
    /// that is far above all that it has heard of: see
    /// [`TermStatus::doubted`](crate::TermStatus::doubted). Find out first which member granted
    /// such a term. A mistake cannot be undone: terms never fall.
    pub fn confirm_term(&self, term: Term) {
        self.0.launched.mailbox.send(Request::Confirm(term));
    }

    /// Replaces the keys of this node: it speaks `key` from now on and also accepts `old`. To
    /// rotate the cluster's key without an interruption: first give every process the new key as an
    /// old one, then speak it everywhere, then leave the old one out. A process that skips a step
    /// is refused by the others.
    ///
    /// A member also takes its wall clock for right from now on: keys expire by it, even if it
    /// jumped.
    pub fn set_keys(&self, key: &Key, old: &[ClusterKey]) {
        let credentials = Box::new(driver::credentials(key, old));
        self.0.launched.mailbox.send(Request::Keys(credentials));
    }

    /// Revokes one scoped key without a restart. Members refuse the key from now on, and its
    /// sessions end. A leader under the key leads until its lease ends, and cannot renew it.
    ///
    /// The revocation holds once a quorum has stored it: [`Revoked`] lists the members that have it
    /// on their disks after a few seconds. The others get it when they are reached. The call is
    /// idempotent. `not_after` is when the key expires, if that is known: the revocation is
    /// forgotten some months later. If the future is dropped, the revocation goes on.
    /// # Errors
    /// A [`RevokeError`] if this node is no member, if the key expired long ago, if the list is
    /// full, or if the node has stopped.
    pub async fn revoke(&self, key: Serial, not_after: Option<u64>) -> Result<Revoked, RevokeError> {
        let (reply, revoked) = oneshot::channel();
        let order = driver::RevokeOrder { serial: key, not_after, reply };
        self.0.launched.mailbox.send(Request::Revoke(order));
        revoked.await.unwrap_or_else(|_| Err(RevokeError::Stopped(self.why_stopped())))
    }

    /// Returns the revoked keys that this member refuses, sorted by id. A dropped future changes
    /// nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn revoked_keys(&self) -> Result<Vec<RevokedKey>, Stopped> {
        let (reply, keys) = oneshot::channel();
        self.0.launched.mailbox.send(Request::RevokedKeys(reply));
        keys.await.map_err(|_| self.why_stopped())
    }

    /// Returns the status of this node. It costs little, however many groups there are and however
    /// many callers ask. A dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn status(&self) -> Result<Status, Stopped> {
        self.look().await.map(Arc::unwrap_or_clone)
    }

    /// Everything that happened before this call is on the board when it returns.
    async fn look(&self) -> Result<Arc<Status>, Stopped> {
        let (reply, status) = oneshot::channel();
        self.0.launched.mailbox.send(Request::Status(reply));
        status.await.map_err(|_| self.why_stopped())
    }

    /// Returns every group that this node knows, sorted by name. Every node knows the groups that
    /// it campaigns for, leads, or observes. A member also knows the groups that any process has
    /// campaigned for, until they were unused for [`Limits::forget_after`](crate::Limits). The
    /// information is about the past, except for groups that this node leads itself; to be certain,
    /// [`verify`](Self::verify). The list is made on the caller's thread, not on the node's. A
    /// dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn groups(&self) -> Result<Vec<GroupStatus>, Stopped> {
        self.groups_after(None, usize::MAX).await
    }

    /// Returns at most `limit` of the groups, with names after `after`: one page of the list. It
    /// takes time in proportion to the page, not to all groups. A dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn groups_after(
        &self,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.page(after, limit))
    }

    /// Returns at most `limit` of the groups that this node leads or campaigns for. A dropped
    /// future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn groups_here(&self, limit: usize) -> Result<Vec<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.here(limit))
    }

    /// Returns the status of one group; `None` if this node does not know it. A dropped future
    /// changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn group(&self, group: &GroupName) -> Result<Option<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.one(group))
    }

    /// Lists the processes that stand by for a group: a leader can
    /// [hand over](crate::Tenure::transfer) to them.
    ///
    /// A member knows those that are no members and have asked within two of the longest leases,
    /// and this process itself. One that has just gone may still be among them. A dropped future
    /// changes nothing.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn candidates(&self, group: &GroupName) -> Result<Vec<NodeName>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.launched.mailbox.send(Request::Candidates { group: group.id(), reply });
        match answer.await {
            Ok(candidates) => Ok(candidates),
            Err(_) => Err(self.stopped().await),
        }
    }

    /// Returns the number of groups that this node knows. A dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn groups_known(&self) -> Result<usize, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.count())
    }

    /// Waits until this node is ready: it knows the members, grants, and reaches a quorum. A node
    /// that waits out a silence after a restart is not ready. In a rolling restart, wait for this
    /// before you stop the next node; otherwise the cluster may lose its quorum. For a candidate or
    /// an observer it means that a quorum can be asked. [`Status::not_ready`] tells the reasons. A
    /// dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn ready(&self) -> Result<(), Stopped> {
        self.until_ready_is(true).await
    }

    /// Waits until this node is no longer ready, mostly because too few members answer. A node
    /// notices that when it asks them something: within a few seconds if it leads or campaigns,
    /// within a dozen seconds if it is idle. A dropped future changes nothing.
    /// # Errors
    /// If the node has stopped.
    pub async fn unready(&self) -> Result<(), Stopped> {
        self.until_ready_is(false).await
    }

    /// Returns whether this node was ready at its last check: see [`ready`](Self::ready).
    pub fn is_ready(&self) -> bool {
        *self.0.launched.ready.borrow()
    }

    async fn until_ready_is(&self, wanted: bool) -> Result<(), Stopped> {
        let mut ready = self.0.launched.ready.clone();
        ready.wait_for(|ready| *ready == wanted).await.map(drop).map_err(|_| self.why_stopped())
    }

    /// Waits until the node has stopped, and returns the reason. A node stops when it is told to,
    /// or by itself when it can no longer keep its promises. A dropped future changes nothing.
    pub async fn stopped(&self) -> Stopped {
        let mut stopped = self.0.launched.stopped.clone();
        match stopped.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or(Stopped::Crashed),
            Err(_) => self.why_stopped(),
        }
    }

    /// Resigns everywhere, releases the grants, and ends the node. Guards that are left are over.
    /// End the guarded work first: other processes may lead as soon as the grants are released. If
    /// the future is dropped after its first poll, the node ends all the same.
    pub async fn shutdown(self) {
        let (reply, done) = oneshot::channel();
        self.0.launched.mailbox.send(Request::Shutdown(reply));
        let _ = done.await;
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.0.launched.mailbox
    }

    pub(crate) fn why_stopped(&self) -> Stopped {
        self.0.launched.stopped.borrow().clone().unwrap_or(Stopped::Crashed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.launched.mailbox.send(Request::Dropped);
    }
}

/// Withdraws a campaign when its future is dropped.
struct Withdraw<'a> {
    mailbox: &'a Mailbox,
    group: &'a GroupName,
    number: u64,
    armed: bool,
}

impl Withdraw<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.mailbox.send(Request::Withdraw { group: self.group.id(), number: self.number });
        }
    }
}
