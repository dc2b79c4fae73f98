//! [`Authority`]: a share in a term that keeps nothing alive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_proto::GroupId;
use tenure_proto::strong::edict::NotLeader;
use tenure_proto::strong::{Edict, Term, Token};

use crate::guard::{Loss, SharedTerm, Tenure};
use crate::name::GroupName;

/// The authority of a term, for the parts of a program that act under it.
///
/// It answers as the [`Tenure`] does that it came from, and creates edicts in its name. But it
/// holds nothing: when the guard resigns or hands over, nobody waits until its authorities are
/// gone. Give it to requests, tasks and threads; keep the guard where the work is ended.
///
/// Cheap to clone. It never comes back to life: a later term has authorities of its own.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tenure::{ClusterId, ClusterKey, Config, Key, Node, Term};
/// # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", ClusterId::draw()));
/// # let mut config = Config::new("alone", Key::Cluster(ClusterKey::generate()));
/// # config.listen = vec!["127.0.0.1:0".parse()?];
/// # config.members = tenure::peers([("alone", "127.0.0.1:7400")]);
/// # config.store = Some(folder.join("alone"));
/// # Node::found(&config, ClusterId::draw(), Term(0))?;
/// # let node = Node::start(config).await?;
/// let tenure = node.campaign("jobs").await?;
/// let authority = tenure.authority();                      // for a thread that writes
/// let writes = std::thread::spawn(move || authority.edict().map(|edict| edict.token()));
/// assert!(writes.join().unwrap().is_ok());
///
/// let authority = tenure.authority();
/// assert!(node.leads("jobs"));
/// tenure.resign();                                         // the grants are released at once
/// assert!(!authority.is_leader() && !node.leads("jobs"));
/// # node.shutdown().await;
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Authority(Arc<SharedTerm>);

impl Authority {
    pub(crate) fn new(term: Arc<SharedTerm>) -> Self {
        Self(term)
    }

    /// Returns whether this process leads at this instant: see [`Tenure::is_leader`].
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.0.leads_until().is_some()
    }

    /// Returns how much longer this process leads without a renewal; `None` if it does not lead.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.remaining()
    }

    /// Creates an edict, as [`Tenure::edict`] does, with the next sequence number of the term.
    ///
    /// # Errors
    /// [`NotLeader`] from the instant on at which the lease is over.
    #[inline]
    pub fn edict(&self) -> Result<Edict, NotLeader> {
        self.0.edict()
    }

    /// Returns the token of the whole term, for a fence by term.
    pub fn token(&self) -> Token {
        Token::of_term(self.0.number)
    }

    /// Returns the term.
    pub fn term(&self) -> Term {
        self.0.number
    }

    /// Returns the group that this process leads.
    pub fn group(&self) -> &GroupName {
        &self.0.group
    }

    /// Records a heartbeat of the guarded work: see [`Tenure::heartbeat`].
    #[inline]
    pub fn heartbeat(&self) {
        self.0.heartbeat();
    }

    /// Waits until this process no longer leads, and returns the reason: see [`Tenure::lost`]. A
    /// dropped future changes nothing.
    pub async fn lost(&self) -> Loss {
        self.0.lost().await
    }

    /// Waits until the work under this term should end: see [`Tenure::cancelled`]. A dropped future
    /// changes nothing.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedTerm { group, number, .. } = &*self.0;
        f.debug_struct("Authority").field("group", group).field("term", number).finish_non_exhaustive()
    }
}

/// The newest term of each group that was won here, for as long as somebody has a share in it.
#[derive(Default)]
pub(crate) struct Led(Mutex<BTreeMap<GroupId, Weak<SharedTerm>>>);

impl Led {
    pub(crate) fn note(&self, tenure: &Tenure) {
        let mut led = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        led.retain(|_, term| term.strong_count() > 0);
        led.insert(tenure.group().id(), Arc::downgrade(tenure.shared()));
    }

    pub(crate) fn authority(&self, group: &GroupName) -> Option<Authority> {
        let led = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        led.get(&group.id()).and_then(Weak::upgrade).map(Authority)
    }
}

impl fmt::Debug for Led {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Led").finish_non_exhaustive()
    }
}
