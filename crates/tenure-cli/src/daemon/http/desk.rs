//! The state that handlers share: the node, and what is known of groups.
//!
//! A group that somebody asks about is observed for a while after, so that a load balancer that
//! asks each second is answered at once, by what the members have reported meanwhile.
//!
//! Handlers read the state of groups from the node's board, on their own threads, and no more of it
//! than is asked for: the thread that grants and renews leases takes no part in it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tenure::{ClockBound, GroupName, Leadership, Node, Scene, Watch};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::clock::clock;
use crate::failure::Failure;
use crate::settings::Settings;

use super::access::Access;
use super::answer::Refused;
use super::kept::{KeptGroups, SWEEP};

/// How long an answer waits for what is not known yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// The handle that every handler has. Cheap to clone.
#[derive(Clone)]
pub(super) struct Desk(Arc<Things>);

/// The contents of a desk.
pub(super) struct Things {
    /// The node.
    pub(super) node: Node,
    /// The bound on clocks in its file; the charter's is better.
    pub(super) bound: ClockBound,
    /// When it began to serve.
    pub(super) since: Instant,
    /// Turns true when streams must end.
    pub(super) stopping: watch::Receiver<bool>,
    /// Tokens and sessions.
    pub(super) access: Access,
    /// Where browsers of this machine find the page, if HTTP is served.
    pub(super) page: Option<SocketAddr>,
    kept: Mutex<KeptGroups<Watch>>,
}

impl Things {
    fn kept(&self) -> MutexGuard<'_, KeptGroups<Watch>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            kept: Mutex::default(),
        })))
    }

    /// All that is known about a group; waits a little if that is nothing.
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
        let _ = timeout(PATIENCE, known).await; // A group still unknown then is shown as unknown.
        Ok(watch.now())
    }

    async fn keep(&self, group: &GroupName) -> Result<(), Refused> {
        if self.kept().asked(group, clock()) {
            return Ok(());
        }
        let watch = self.node.observe(group.as_str()).await?;
        if self.kept().keep(group.clone(), watch, clock()) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
        Ok(())
    }
}

/// Lets go of groups that nobody asks about any more, and of the desk: it must not keep the node
/// running.
async fn sweep(desk: Weak<Things>) {
    loop {
        sleep(SWEEP).await;
        let Some(things) = desk.upgrade() else { return };
        let is_over = things.kept().sweep(clock());
        if is_over {
            return;
        }
    }
}
