//! The state that handlers share: the node, and what is known of groups.
//!
//! A question about one group is put to the members when it is asked, and a quorum answers it. A
//! group that somebody asks about, or that is listed, is observed for a while after: lists are made
//! from what the members have reported meanwhile.
//!
//! Handlers read the state of groups from the node's board, on their own threads, and no more of it
//! than is asked for: the thread that grants and renews leases takes no part in it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tenure::{Answer, ClockBound, GroupName, GroupStatus, Node, Scene, Watch};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::clock::clock;
use crate::failure::Failure;
use crate::settings::Settings;

use super::access::Access;
use super::answer::Refused;
use super::kept::{KeptGroups, MOST, SWEEP};

/// A group that nobody has led or campaigned for so long is listed as this member knows it: led by
/// nobody. It is observed only if somebody asks about it.
pub(super) const UNUSED: Duration = Duration::from_secs(10);

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

    /// Asks the members about a group, and gives what a quorum of them answers to that.
    pub(super) async fn look(&self, group: &GroupName) -> Result<(Answer, Scene), Refused> {
        let watch = self.node.observe(group.as_str()).await?;
        self.keep(group).await?;
        self.kept().note_question(group, clock());
        let answer = watch.ask().await;
        Ok((answer, watch.now()))
    }

    /// Observes groups that are about to be listed, so that what is said of each rests on the
    /// reports of a quorum. Asks about those that nobody has asked about lately.
    pub(super) async fn look_at_all(&self, groups: &[GroupStatus]) -> Result<(), Refused> {
        let mut new = Vec::new();
        for group in groups.iter().filter(|group| !group.led_here).take(MOST) {
            // A list must not keep members from forgetting a group that nobody uses.
            if group.idle >= UNUSED && !self.was_asked_about(&group.group) {
                self.kept().let_go(&group.group);
            } else if !self.kept().asked(&group.group, clock()) {
                new.push(self.node.observe(group.group.as_str()).await?);
                self.keep(&group.group).await?;
            }
        }
        join_all(new.iter().map(Watch::ask)).await;
        Ok(())
    }

    /// Whether somebody has asked about this very group within the last hour.
    pub(super) fn was_asked_about(&self, group: &GroupName) -> bool {
        self.kept().was_asked_about(group, clock())
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
