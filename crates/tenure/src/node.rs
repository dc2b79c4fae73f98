//! What users hold: a running node.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::Term;
use tenure_proto::time::Span;
use tokio::sync::{mpsc, oneshot, watch};

use crate::board::Board;
use crate::clock::{Forward, nanos};
use crate::config::{Checked, Config, ConfigError, Key};
use crate::driver::{self, Entry, Mailbox, Request};
use crate::error::{
    AskError, CampaignError, KindError, MembersError, RevokeError, StartError, Stopped, VerifyError,
};
use crate::eventual::{Eventual, Hint};
use crate::guard::{Loss, MAX_PROCLAIM, Tenure};
use crate::local::{Local, Locality};
use crate::members::{Changing, MemberChange};
use crate::name::{ClusterId, GroupName, NodeName};
use crate::observe::{Scene, Watch};
use crate::seal::{ClusterKey, Serial};
use crate::status::{GroupStatus, Status};
use crate::steady::{SharedSteady, Steady};
use crate::store::{Founding, Store, founding_draw};
use crate::sys::clock::{Which, read};
use crate::wish::{Asked, Granted, Wish};

/// A process of a cluster: grants, campaigns, observes, as its [`Role`](crate::Role) says. Cheap to
/// clone. When the last clone is dropped the node ends: guards that are left are over at once, and
/// their leases run out, for the work that holds them may still be writing. To hand over sooner,
/// [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: NodeName,
    launched: Launched,
    numbers: AtomicU64,
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

/// The terms of a cluster that is founded now should begin above this: seconds since the beginning
/// of 2024. So a cluster that is founded anew presents larger tokens than the old one did, and
/// fences that remember the old one let it pass.
pub fn term_floor() -> Term {
    const BEGINNING: u64 = 1_704_067_200;
    Term((read(Which::Real) / 1_000_000_000).saturating_sub(BEGINNING))
}

/// How to campaign: see [`Node::campaign_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Campaign {
    /// The health gate: once elected, the guarded work must call [`Tenure::heartbeat`] at least
    /// this often. If it does not, for it hangs, this process stops leading at once and lets its
    /// lease run out; somebody else is elected. `None` for no gate.
    pub health: Option<Duration>,
    /// How much others are preferred: zero, as at the start of each life, is the first choice.
    /// Leaders hand over to a process of better priority if the configuration's `hold` says when.
    /// Kept for this group until it is given anew.
    pub priority: Option<u8>,
    /// The term must be larger than this: a fence has seen as much, from a cluster that was founded
    /// anew, say. Members limit how far an outsider raises terms, so a large step may take long.
    /// `None` for whatever comes next.
    pub above: Option<Term>,
}

impl Campaign {
    /// With a health gate.
    #[must_use]
    pub fn health(mut self, within: Duration) -> Self {
        self.health = Some(within);
        self
    }

    /// With a term above this one.
    #[must_use]
    pub fn above(mut self, term: Term) -> Self {
        self.above = Some(term);
        self
    }

    /// With a priority.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }
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

/// The outcome of a [revocation](Node::revoke).
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

/// Who leads, and until when that is certain on this host's clock.
#[derive(Clone, Debug)]
pub struct Certain {
    /// Who.
    pub leader: NodeName,
    /// In which term.
    pub term: Term,
    pub(crate) until: LocalTime,
    /// The clock, as it was when the leader was asked: after a disturbance nothing is certain.
    pub(crate) steady: Steady,
}

impl Certain {
    /// For how much longer it is certain, as of now; nothing if it is not any more. Nobody else
    /// leads meanwhile; the leader itself may have stopped.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.until.remaining(self.steady.read()).as_nanos();
        (left > 0).then(|| Duration::from_nanos(left))
    }
}

impl Node {
    /// Starts a node: checks the configuration, opens the store, listens. Works under any executor;
    /// the node itself runs on a thread of its own.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let checked = Checked::new(&config)?;
        let name = checked.name.clone();
        let launched = driver::launch(checked)?.await.unwrap_or_else(|_| {
            Err(StartError::System(std::io::Error::other("the node's thread has ended at its start")))
        })?;
        Ok(Self(Arc::new(Inner { name, launched, numbers: AtomicU64::new(1) })))
    }

    /// Founds a cluster: writes the store of the member that `config` is for. To be called once for
    /// every founding member, with the same `cluster` and `term_floor` for all; [`ClusterId::draw`]
    /// and [`term_floor`](crate::term_floor) make them.
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

    /// The number by which the founding of a cluster is known: what [`Config::lineage`] should be
    /// for everybody who has to do with the cluster that [`found`](Self::found) makes.
    pub fn founding_lineage(config: &Config, cluster: ClusterId) -> Result<u128, ConfigError> {
        Ok(founding_draw(cluster, &config.body()?))
    }

    /// Makes the store of a node that shall become a member of a cluster that exists: it starts,
    /// learns, and grants nothing until the members have [added](Self::change_members) it.
    pub fn join(config: &Config, cluster: ClusterId) -> Result<(), StartError> {
        let checked = Checked::new(config)?;
        let missing = ConfigError::Missing { key: "store", why: "only a member's store is made" };
        let dir: &Path = checked.store.as_deref().filter(|_| checked.role.grants()).ok_or(missing)?;
        Store::join(dir, cluster, &checked.name, checked.contacts.clone())?;
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &NodeName {
        &self.0.name
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.0.launched.addresses
    }

    /// Campaigns for `group`, and while this process leads runs what `work` gives; when that ends,
    /// resigns and returns what it returned.
    ///
    /// If the leadership is lost before, the work is dropped at its next `.await`, and the campaign
    /// begins anew: losing is normal. Work that must not be cut off like that should look at its
    /// guard itself, or hold one from [`campaign`](Self::campaign).
    ///
    /// [Wishes](Wish) of operators are granted: asked to proclaim, it does. Asked to resign or to
    /// hand over, it drops the work as on a loss, and only then gives up. After a resignation it
    /// rests for the length of a lease, so that others can be elected, and campaigns again; after a
    /// hand-over it does so at once. If the successor does not take over, the work begins anew, in
    /// the same term.
    pub async fn lead<T, F, W>(&self, group: &str, mut work: W) -> Result<T, CampaignError>
    where
        W: FnMut(Tenure) -> F,
        F: Future<Output = T>,
    {
        loop {
            let tenure = self.campaign(group).await?;
            match lead_once(&tenure, &mut work).await {
                Outcome::Done(result) => {
                    tenure.resign();
                    return Ok(result);
                }
                Outcome::Lost(Loss::Stopped) => return Err(CampaignError::Stopped(self.why_stopped())),
                Outcome::Lost(_) => {}
                Outcome::Resign(asked) => {
                    tenure.resign();
                    asked.grant();
                    let (reply, rested) = oneshot::channel();
                    self.0.launched.mailbox.send(Request::Rest(reply));
                    let _ = rested.await;
                }
            }
        }
    }

    /// Waits until this process leads `group`, for however long that takes, and returns the guard
    /// of that term. A future that is dropped withdraws from the campaign; nothing is left behind.
    pub async fn campaign(&self, group: &str) -> Result<Tenure, CampaignError> {
        self.campaign_with(group, Campaign::default()).await
    }

    /// The same, with a health gate, a priority or a term to exceed.
    pub async fn campaign_with(&self, group: &str, how: Campaign) -> Result<Tenure, CampaignError> {
        let group = GroupName::new(group)?;
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
        result.unwrap_or_else(|_| Err(CampaignError::Stopped(self.why_stopped())))
    }

    /// Watches a group: who leads, that nobody does, and what leaders proclaim, never going back.
    pub async fn observe(&self, group: &str) -> Result<Watch, CampaignError> {
        let group = GroupName::new(group)?;
        let (reply, scene) = oneshot::channel();
        let mailbox = self.0.launched.mailbox.clone();
        mailbox.send(Request::Observe { group: group.clone(), reply });
        let scene = scene.await.map_err(|_| CampaignError::Stopped(self.why_stopped()))?;
        Ok(Watch { group, scene, told: Scene::default(), mailbox })
    }

    /// Takes part in an eventual group, and shows who seems to lead it: a hint without authority,
    /// which in the end is the same everywhere. All members take part as soon as one does. Only for
    /// members.
    pub async fn eventual(&self, group: &str) -> Result<Eventual, KindError> {
        let group = GroupName::new(group)?;
        let (reply, opinion) = oneshot::channel();
        let order = driver::HintOrder { group: group.clone(), reply };
        self.0.launched.mailbox.send(Request::Hint(order));
        let opinion = opinion.await.map_err(|_| KindError::Stopped(self.why_stopped()))??;
        Ok(Eventual {
            group,
            opinion,
            told: Hint::default(),
            clock: Forward::new(self.0.launched.steady.clone()),
        })
    }

    /// Takes part in a local group: one leader for every partition, and who is in it. Only those
    /// members take part that call this, all with the same `how`; beside it there may be a strong
    /// group of the same name.
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

    /// Asks the leader itself, and says for how long it is certain that nobody else leads. The
    /// leader pledges not to hand over for `wanted`, but for no longer than its configuration
    /// allows.
    pub async fn verify(&self, group: &str, wanted: Duration) -> Result<Certain, VerifyError> {
        let group = GroupName::new(group)?;
        let (reply, answer) = oneshot::channel();
        let wanted = Span::from_nanos(nanos(wanted));
        self.0.launched.mailbox.send(Request::Verify(driver::VerifyOrder { group, wanted, reply }));
        answer.await.unwrap_or_else(|_| Err(VerifyError::Stopped(self.why_stopped())))
    }

    /// Asks the leader of `group`, wherever it is, to resign, to hand over or to proclaim, and
    /// waits for its answer, ten seconds at most. It is for the holder of the leader's guard to do
    /// it or to decline: see [`Tenure::asked`] and [`Node::lead`]. Done at most once. Only for
    /// holders of the cluster's key or an operator's.
    pub async fn ask(&self, group: &str, wish: Wish) -> Result<Granted, AskError> {
        self.ask_within(group, wish, ASK_WITHIN).await
    }

    /// The same, with another patience: at most a minute. A leader whose work takes long to end
    /// answers late.
    pub async fn ask_within(&self, group: &str, wish: Wish, within: Duration) -> Result<Granted, AskError> {
        let group = GroupName::new(group)?;
        if let Wish::Proclaim { body } = &wish
            && body.len() > MAX_PROCLAIM
        {
            return Err(AskError::TooLong { length: body.len() });
        }
        let (reply, answer) = oneshot::channel();
        let within = within.min(driver::LONGEST_ASK);
        self.0.launched.mailbox.send(Request::Ask(driver::AskOrder { group, wish, within, reply }));
        answer.await.unwrap_or_else(|_| Err(AskError::Stopped(self.why_stopped())))
    }

    /// Changes the members, their quorums or their bounds. Every group goes on being led meanwhile.
    pub fn change_members(&self, change: &MemberChange) -> Result<Changing, MembersError> {
        self.change(change, false)
    }

    /// The same, also if those that answer will be no quorum afterwards: nothing is granted then
    /// until more of them do.
    pub fn change_members_anyway(&self, change: &MemberChange) -> Result<Changing, MembersError> {
        self.change(change, true)
    }

    fn change(&self, change: &MemberChange, anyway: bool) -> Result<Changing, MembersError> {
        let wanted = change.resolve()?;
        let (progress, changing) = mpsc::unbounded_channel();
        self.0.launched.mailbox.send(Request::Change(driver::ChangeOrder { wanted, anyway, progress }));
        Ok(Changing(changing))
    }

    /// Goes on after a split brain ([`NotReady::SplitBrain`](crate::NotReady::SplitBrain)), after a
    /// silence. Says whether there was one. To be called at each member of the cluster that is to
    /// go on, *when the other one has been ended*: if that runs, both may have a leader until they
    /// hear of each other again.
    pub async fn accept_lineage(&self) -> Result<bool, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.launched.mailbox.send(Request::AcceptLineage(reply));
        answer.await.map_err(|_| self.why_stopped())
    }

    /// An operator's word that terms may be as high as this, though this member has never heard of
    /// any so high: see [`TermStatus::doubted`](crate::TermStatus::doubted). Find out first who
    /// granted such a term. A mistake cannot be taken back: terms never fall.
    pub fn confirm_term(&self, term: Term) {
        self.0.launched.mailbox.send(Request::Confirm(term));
    }

    /// Speaks with another key from now on, and accepts `old` ones beside it. To change the
    /// cluster's key without anybody noticing: give every process the new one as an old one, then
    /// speak it everywhere, then leave the old one out.
    ///
    /// A member also takes its wall clock for right from now on: keys expire by it, even if it
    /// jumped.
    pub fn set_keys(&self, key: &Key, old: &[ClusterKey]) {
        let credentials = Box::new(driver::credentials(key, old));
        self.0.launched.mailbox.send(Request::Keys(credentials));
    }

    /// Revokes one key that is no cluster's key, without a restart of anything. Members refuse it
    /// from now on, and its sessions end. A leader under the key leads until its lease ends, and
    /// does not renew it.
    ///
    /// It holds once a quorum has it: [`Revoked`] says who has it on the disk after a few seconds.
    /// Others get it when they are reached. To ask again is harmless. `not_after` is when the key
    /// expires, if that is known: the revocation is forgotten some months later. Only a member can
    /// be asked.
    pub async fn revoke(&self, key: Serial, not_after: Option<u64>) -> Result<Revoked, RevokeError> {
        let (reply, revoked) = oneshot::channel();
        let order = driver::RevokeOrder { serial: key, not_after, reply };
        self.0.launched.mailbox.send(Request::Revoke(order));
        revoked.await.unwrap_or_else(|_| Err(RevokeError::Stopped(self.why_stopped())))
    }

    /// The keys that this member refuses because they were revoked, by id.
    pub async fn revoked_keys(&self) -> Result<Vec<RevokedKey>, Stopped> {
        let (reply, keys) = oneshot::channel();
        self.0.launched.mailbox.send(Request::RevokedKeys(reply));
        keys.await.map_err(|_| self.why_stopped())
    }

    /// How it is. Costs little, however many groups there are and however many ask.
    pub async fn status(&self) -> Result<Status, Stopped> {
        self.look().await.map(Arc::unwrap_or_clone)
    }

    /// What happened before this call has been written down when it returns.
    async fn look(&self) -> Result<Arc<Status>, Stopped> {
        let (reply, status) = oneshot::channel();
        self.0.launched.mailbox.send(Request::Status(reply));
        status.await.map_err(|_| self.why_stopped())
    }

    /// Every group that this node knows, sorted by name: a member knows those for which somebody
    /// has campaigned, until nobody has had to do with them for
    /// [`Limits::forget_after`](crate::Limits); everybody those that it has to do with itself. What
    /// a node knows of a group is about the past, except for what it leads itself; to be certain,
    /// [`verify`](Self::verify). The list is made on the caller's thread, not on the node's.
    pub async fn groups(&self) -> Result<Vec<GroupStatus>, Stopped> {
        self.groups_after(None, usize::MAX).await
    }

    /// At most `limit` of these, with names after `after`: in time proportional to their number.
    pub async fn groups_after(
        &self,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.page(after, limit))
    }

    /// At most `limit` of the groups that this node leads or campaigns for.
    pub async fn groups_here(&self, limit: usize) -> Result<Vec<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.here(limit))
    }

    /// One of the groups that this node knows.
    pub async fn group(&self, group: &GroupName) -> Result<Option<GroupStatus>, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.one(group))
    }

    /// How many groups this node knows.
    pub async fn groups_known(&self) -> Result<usize, Stopped> {
        self.look().await?;
        Ok(self.0.launched.board.count())
    }

    /// Waits until this node can do its part: it knows the members, is not silent after a restart,
    /// and reaches a quorum. In a rolling restart, wait for this before the next node is stopped.
    /// For a candidate or an observer it says that a quorum is there to be asked.
    /// [`Status::not_ready`] tells what is missing.
    pub async fn ready(&self) -> Result<(), Stopped> {
        self.until_ready_is(true).await
    }

    /// Waits until this node cannot do its part any more: mostly because too few members answer.
    /// That is noticed when they are asked something: within a few seconds by whoever leads or
    /// campaigns, within a dozen by whoever is idle.
    pub async fn unready(&self) -> Result<(), Stopped> {
        self.until_ready_is(false).await
    }

    /// Whether it can do its part, as of its last look.
    pub fn is_ready(&self) -> bool {
        *self.0.launched.ready.borrow()
    }

    async fn until_ready_is(&self, wanted: bool) -> Result<(), Stopped> {
        let mut ready = self.0.launched.ready.clone();
        ready.wait_for(|ready| *ready == wanted).await.map(drop).map_err(|_| self.why_stopped())
    }

    /// Waits until the node has stopped, by itself or because it was told to, and says why.
    pub async fn stopped(&self) -> Stopped {
        let mut stopped = self.0.launched.stopped.clone();
        match stopped.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or(Stopped::Crashed),
            Err(_) => self.why_stopped(),
        }
    }

    /// Resigns everywhere, tells the grantors so, and ends. Guards that are left are over. Guarded
    /// work should have ended before.
    pub async fn shutdown(self) {
        let (reply, done) = oneshot::channel();
        self.0.launched.mailbox.send(Request::Shutdown(reply));
        let _ = done.await;
    }

    fn why_stopped(&self) -> Stopped {
        self.0.launched.stopped.borrow().clone().unwrap_or(Stopped::Crashed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.launched.mailbox.send(Request::Dropped);
    }
}

/// Withdraws a campaign whose future is dropped.
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

/// How a leadership with work ended.
enum Outcome<T> {
    /// The work has.
    Done(T),
    /// It was lost, or handed over.
    Lost(Loss),
    /// It is to be given up, and the work is dropped.
    Resign(Asked),
}

/// Runs the work while `tenure` lasts, and does what others wish. The work first, if several things
/// happen at once.
async fn lead_once<T, F: Future<Output = T>>(
    tenure: &Tenure,
    work: &mut impl FnMut(Tenure) -> F,
) -> Outcome<T> {
    loop {
        let (asked, to) = {
            let mut done = pin!(work(tenure.clone()));
            loop {
                let asked = tokio::select! {
                    biased;
                    result = &mut done => return Outcome::Done(result),
                    loss = tenure.lost() => return Outcome::Lost(loss),
                    asked = tenure.asked() => asked,
                };
                match asked.wish() {
                    Wish::Resign => break (asked, None),
                    Wish::Transfer { to } => {
                        let to = to.clone();
                        break (asked, Some(to));
                    }
                    Wish::Proclaim { body } => match tenure.proclaim(body) {
                        Ok(edict) => asked.grant_as(edict),
                        Err(error) => asked.decline(&error.to_string()),
                    },
                }
            }
        }; // The work is dropped here, before anything is given up.
        let Some(to) = to else { return Outcome::Resign(asked) };
        match tenure.transfer(&to).await {
            Ok(()) => {
                asked.grant();
                return Outcome::Lost(Loss::HandedOver);
            }
            Err(error) => asked.decline(&error.to_string()),
        }
        if !tenure.is_leader() {
            return Outcome::Lost(tenure.lost().await);
        }
    }
}
