//! The settings of a process of the log, checked once.

use std::fmt;
use std::sync::Arc;

use super::rules::{Rules, Sound};
use crate::NodeId;
use crate::quorum::MAX_MEMBERS;
use crate::time::LocalSpan;

/// The settings of a process of the log. The same for all of them, except `retry`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings<R: Rules = Sound> {
    /// The acceptors. Fixed: the members of a log do not change.
    pub members: Vec<NodeId>,
    /// f: the number of members that may be down or out of reach. A value needs f+1 members, a new
    /// leader n-f; at most (n-1)/2.
    pub faults: usize,
    /// δ: the time after which an unanswered message is retransmitted. About a round trip.
    pub retry: LocalSpan,
    /// The number of slots that may be proposed and not yet chosen. More hide the delay of links;
    /// one makes the log strictly sequential.
    pub window: u64,
    /// The number of slots after which a snapshot is wanted. Fewer make restarts quick, and write
    /// the state more often.
    pub snapshot_every: u64,
    /// How many slots sooner the first snapshot is wanted; later ones follow at the same distance.
    /// Members that differ in it do not make theirs at once. Below `snapshot_every`.
    pub snapshot_sooner: u64,
    /// The number of applied slots that are kept below a snapshot, for members that are a little
    /// behind.
    pub keep: u64,
    /// The number of sessions that may be open: the one that was used least recently makes room for
    /// a new one.
    pub sessions: usize,
    /// The number of users' wishes that may wait at a process (backpressure); further ones are
    /// refused.
    pub wishes: usize,
    /// The most bytes of entries that one message carries, about; one entry it carries in any case.
    /// Further entries come in further messages, so that no log is too long to be told of.
    pub page: usize,
    /// The safety rules: [`Sound`], outside the laboratory.
    pub rules: R,
}

/// Settings that hold together. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R: Rules = Sound>(Arc<Settings<R>>);

impl<R: Rules> Config<R> {
    /// The settings that were validated.
    pub fn settings(&self) -> &Settings<R> {
        &self.0
    }

    pub(super) fn rules(&self) -> &R {
        &self.0.rules
    }

    /// n and f.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.0.members.len(), self.0.faults)
    }

    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.0.members.iter().position(|member| *member == node)
    }
}

impl<R: Rules> Settings<R> {
    /// Checks that these settings can choose anything at all.
    pub fn validate(self) -> Result<Config<R>, ConfigError> {
        let mut members = self.members.clone();
        members.sort_unstable();
        members.dedup();
        if members.is_empty() || members.len() != self.members.len() || members.len() > MAX_MEMBERS {
            return Err(ConfigError::Members);
        }
        let most = (members.len() - 1) / 2;
        if self.faults > most {
            return Err(ConfigError::TooManyFaults { faults: self.faults, most });
        }
        let counts = [
            ("window", self.window),
            ("snapshot-every", self.snapshot_every),
            ("retry", self.retry.as_nanos()),
        ];
        let sizes = [("sessions", self.sessions), ("wishes", self.wishes), ("page", self.page)];
        let zero = counts.into_iter().find(|(_, value)| *value == 0).map(|(key, _)| key);
        let zero = zero.or(sizes.into_iter().find(|(_, value)| *value == 0).map(|(key, _)| key));
        match zero {
            Some(key) => Err(ConfigError::Zero { key }),
            None => Ok(Config(Arc::new(self))),
        }
    }
}

/// Why settings were refused. Each names the setting to change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// There must be 1 to 64 members, each once.
    Members,
    /// Two quorums would not meet.
    TooManyFaults {
        /// f.
        faults: usize,
        /// (n-1)/2.
        most: usize,
    },
    /// A setting must be more than zero.
    Zero {
        /// The setting.
        key: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members => write!(f, "members must be 1 to {MAX_MEMBERS} different processes"),
            Self::TooManyFaults { faults, most } => {
                write!(f, "faults={faults}, but with so many members at most {most} may fail: add members")
            }
            Self::Zero { key } => write!(f, "{key} must be more than zero"),
        }
    }
}

impl std::error::Error for ConfigError {}
