//! The election of the log's leader. No safety rests on it: any number of processes may be told at
//! once, and a value costs more rounds then.

use std::time::Duration;

use tenure_proto::log::Record;
use tenure_proto::{Boot, NodeId};
use tokio::sync::{oneshot, watch};

use super::config::Checked;
use super::error::OpenError;
use super::eventual::Omega;
use crate::error::CampaignError;
use crate::guard::Tenure;
use crate::name::{GroupName, NodeName};
use crate::node::Node;
use crate::observe::{Leadership, Sight};
use crate::operator_request::{Asked, OperatorRequest};

/// For how long a process that was asked to resign, or that got nothing done, lets others try.
pub(super) const REST: Duration = Duration::from_secs(1);

/// Where a log learns who should lead it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Election {
    /// The strong group of the log's name: every member of the log campaigns for it, through its
    /// node. The leader's term is part of its ballots, and under the lease it reads without asking
    /// anybody.
    Strong(Node),
    /// The members of the log elect among themselves, by Omega: no node is needed, no lease and no
    /// link that is always in time. One leads in the end that reaches f others within `round`,
    /// others each time if need be. Reads cost a round, always.
    Eventual {
        /// δ: the longest round trip that counts as in time. When a leader dies, another leads
        /// after about twenty of these.
        round: Duration,
    },
    /// The caller tells who leads, and may change it at any time: see [`watch`].
    Told(watch::Receiver<Hint>),
}

impl Election {
    /// Returns an election that always names the same leader: for a log of one member, and for
    /// tests.
    pub fn fixed(leader: NodeName) -> Self {
        Self::Told(watch::channel(Hint { leader: Some(leader), epoch: 0 }).1)
    }
}

/// An opinion about the leader of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The process that should lead, if any.
    pub leader: Option<NodeName>,
    /// Rises with each leadership, where the election counts them; else 0.
    pub epoch: u64,
}

/// Whether this election can lead what is on the disk. Ballots begin with the term of the strong
/// lease, and without a lease that is 0: where a member has promised a later term, it would be
/// refused forever.
pub(super) fn check(election: &Election, config: &Checked, boot: &Boot<Record>) -> Result<(), OpenError> {
    let terms = boot.durable.iter().map(|record| match record {
        Record::Promised(ballot) => ballot.term,
        _ => 0,
    });
    match (election, terms.max().unwrap_or(0)) {
        (Election::Strong(_), _) | (_, 0) => Ok(()),
        (_, term) => Err(OpenError::LedByTerms { folder: config.folder.clone(), term }),
    }
}

/// A message of the election to the driver of a log.
pub(super) enum Opinion {
    /// The leader, as others see it.
    Seen { leader: Option<NodeId>, epoch: u64 },
    /// This process leads by the strong lease.
    Elected(Tenure),
    /// It does not any more.
    Lost,
    /// It shall give up the lease: to be answered when it reads nothing under it any more.
    GiveUp(oneshot::Sender<()>),
    /// There will be no more opinions.
    Over(String),
}

/// An election that is ready to be run.
pub(super) enum Source {
    Strong(Node, GroupName),
    Eventual(Box<Omega>),
    Told(watch::Receiver<Hint>),
}

/// Carries opinions to the driver, until the election ends or this is dropped. While `may_lead` is
/// false this process does not campaign.
pub(super) async fn run(
    source: Source,
    may_lead: watch::Receiver<bool>,
    tell: impl Fn(Opinion) + Clone + Send + 'static,
) {
    match source {
        Source::Eventual(omega) => omega.run(may_lead, &tell).await,
        Source::Told(mut hint) => loop {
            let Hint { leader, epoch } = hint.borrow_and_update().clone();
            tell(Opinion::Seen { leader: leader.map(|name| name.id()), epoch });
            if hint.changed().await.is_err() {
                return; // The caller that knew it has gone: the last word stands.
            }
        },
        Source::Strong(node, log) => {
            let over = tell.clone();
            let ended = tokio::select! {
                error = watch_group(&node, &log, &tell) => error,
                error = campaign(&node, &log, may_lead, &tell) => error,
            };
            over(Opinion::Over(ended.to_string()));
        }
    }
}

async fn watch_group(node: &Node, log: &GroupName, tell: &impl Fn(Opinion)) -> CampaignError {
    let mut watch = match node.observe(log.as_str()).await {
        Ok(watch) => watch,
        Err(error) => return error,
    };
    while let Some(sight) = watch.next().await {
        if let Sight::Leadership(leadership) = sight {
            let leader = match leadership {
                Leadership::Leader { name, .. } => name,
                Leadership::Unknown | Leadership::Nobody { .. } | Leadership::Weak { .. } => None,
            };
            // That this process leads it hears from its own campaign, or it is a word from a former
            // life.
            let leader = leader.filter(|name| name != node.name());
            tell(Opinion::Seen { leader: leader.map(|name| name.id()), epoch: 0 });
        }
    }
    CampaignError::Stopped(node.stopped().await)
}

async fn campaign(
    node: &Node,
    log: &GroupName,
    mut may_lead: watch::Receiver<bool>,
    tell: &impl Fn(Opinion),
) -> CampaignError {
    loop {
        if may_lead.wait_for(|may| *may).await.is_err() {
            std::future::pending::<()>().await; // The log is being closed.
        }
        let tenure = tokio::select! {
            elected = node.campaign(log.as_str()) => match elected {
                Ok(tenure) => tenure,
                Err(error) => return error,
            },
            _ = may_lead.wait_for(|may| !*may) => continue,
        };
        if serve(tenure, tell).await {
            tokio::time::sleep(REST).await;
        }
    }
}

/// One term. True if this process was asked to resign. The driver holds a guard of its own, and
/// lets go of it before the lease is given back: nothing is read under a lease that others may
/// have.
async fn serve(tenure: Tenure, tell: &impl Fn(Opinion)) -> bool {
    loop {
        tell(Opinion::Elected(tenure.clone()));
        let asked = tokio::select! {
            _ = tenure.lost() => {
                tell(Opinion::Lost);
                return false;
            }
            asked = wish(&tenure) => asked,
        };
        let (done, given_up) = oneshot::channel();
        tell(Opinion::GiveUp(done));
        let _ = given_up.await;
        let OperatorRequest::Transfer { to } = asked.request() else {
            tenure.resign();
            asked.fulfil();
            return true;
        };
        let to = to.clone();
        match tenure.transfer(&to).await {
            Ok(()) => {
                asked.fulfil();
                return false;
            }
            Err(error) => asked.decline(&error.to_string()),
        }
        if !tenure.is_leader() {
            tell(Opinion::Lost);
            return false;
        }
    }
}

/// The next wish that ends the term; others are granted here.
async fn wish(tenure: &Tenure) -> Asked {
    loop {
        let asked = tenure.asked().await;
        match asked.request() {
            OperatorRequest::Resign | OperatorRequest::Transfer { .. } => return asked,
            OperatorRequest::Proclaim { body } => match tenure.proclaim(body) {
                Ok(edict) => asked.fulfil_as(edict),
                Err(error) => asked.decline(&error.to_string()),
            },
        }
    }
}
