//! What handlers share: the node, and what is known of groups.
//!
//! A group that somebody asks about is observed for a while after, so that a load balancer that asks each second is answered at
//! once, by what the members have reported meanwhile.
//!
//! What is told of groups is read from the node's board, on the handler's own thread, and no more of it than is asked for: the
//! thread that grants and renews leases takes no part in it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure::{ClockBound, GroupName, Leadership, Node, Scene, Watch};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::clock::clock;
use crate::failure::Failure;
use crate::settings::Settings;

use super::access::Access;
use super::answer::Refused;

/// For how long a group is observed after it was last asked about.
const KEPT: Duration = Duration::from_secs(60);

/// The most groups that are observed because somebody asked.
const MOST_KEPT: usize = 1_000;

/// How long an answer waits for what is not known yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// What every handler has at hand. Cheap to clone.
#[derive(Clone)]
pub(super) struct Desk(Arc<Things>);

/// What is on it.
pub(super) struct Things {
    /// The node.
    pub(super) node: Node,
    /// What its file says of clocks; the charter's word is better.
    pub(super) bound: ClockBound,
    /// When it began to serve.
    pub(super) since: Instant,
    /// Turns true when streams must end.
    pub(super) stopping: watch::Receiver<bool>,
    /// Tokens and sessions.
    pub(super) access: Access,
    /// Where browsers of this machine find the page, if HTTP is served.
    pub(super) page: Option<SocketAddr>,
    kept: Mutex<BTreeMap<GroupName, Kept>>,
}

/// A group that was asked about.
struct Kept {
    /// Keeps what the node has been told from being forgotten.
    _watch: Watch,
    asked: Instant,
}

impl Deref for Desk {
    type Target = Things;
    fn deref(&self) -> &Things {
        &self.0
    }
}

impl Desk {
    pub(super) fn new(
        node: Node,
        settings: &Settings,
        stopping: watch::Receiver<bool>,
        access: Access,
    ) -> Result<Self, Failure> {
        let config = settings.node()?;
        Ok(Self(Arc::new(Things {
            node,
            bound: config.bound,
            since: clock(),
            stopping,
            access,
            page: settings.daemon_address(),
            kept: Mutex::new(BTreeMap::new()),
        })))
    }

    /// What is known of a group; waits a little if that is nothing.
    pub(super) async fn look(&self, group: &GroupName) -> Result<Scene, Refused> {
        let mut watch = self.node.observe(group.as_str()).await?;
        self.keep(group).await?;
        let known = async {
            while watch.now().leadership == Leadership::Unknown {
                if watch.next().await.is_none() {
                    break;
                }
            }
        };
        let _ = timeout(PATIENCE, known).await; // What is still unknown then is said to be.
        Ok(watch.now())
    }

    async fn keep(&self, group: &GroupName) -> Result<(), Refused> {
        let now = clock();
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|_, kept| now - kept.asked < KEPT);
            if let Some(kept) = kept.get_mut(group) {
                kept.asked = now;
                return Ok(());
            }
            if kept.len() >= MOST_KEPT {
                return Ok(());
            }
        }
        let watch = self.node.observe(group.as_str()).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(group.clone(), Kept { _watch: watch, asked: now });
        Ok(())
    }
}
