//! [`Campaign`]: how a process campaigns.

use std::time::Duration;

use tenure_proto::strong::Term;

#[cfg(doc)]
use crate::{Config, Node, Tenure};

/// Options of a campaign: see [`Node::campaign_with`] and [`Node::lead_with`].
///
/// ```
/// use std::time::Duration;
/// use tenure::Campaign;
///
/// let how = Campaign::default()
///     .priority(0)                                         // the first choice
///     .health(Duration::from_secs(10))                     // it calls `heartbeat` more often than that
///     .publish(*b"10.0.0.7:8080")                          // `Watch::leader` shows it to others
///     .cleanup(Duration::from_secs(2));                    // for the work, after it was cancelled
/// # assert_eq!(how.priority, Some(0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Campaign {
    /// The health gate: the longest time between two calls of [`Tenure::heartbeat`] by the guarded
    /// work. If the work misses it, for example because it hangs, this process stops leading at
    /// once and lets its lease run out; then another process is elected. Default `None`: no gate.
    /// Larger: a hanging leader blocks failover for longer. Smaller: a slow leader is deposed
    /// without need. Choose several times the interval at which the work calls.
    pub health: Option<Duration>,
    /// The rank of this process among the candidates of the group: zero is the first choice. A
    /// larger number means that others are preferred. Each start of the process begins with zero.
    /// Leaders hand over to a process of better priority if [`Config::hold`] says when. Default
    /// `None`: the group keeps the priority that it was given last.
    pub priority: Option<u8>,
    /// A term that the new term must exceed. Set it where a fence has seen a higher term, for
    /// example of another cluster that guarded the same resource before. Members limit how far an
    /// outsider raises terms, so a large step may take long. Default `None`: the next term,
    /// whatever it is.
    pub above: Option<Term>,
    /// Bytes that this process proclaims when it is elected, for example the address of its
    /// service: at most [`MAX_PROCLAIM`](crate::MAX_PROCLAIM). Observers find them by
    /// [`Watch::leader`](crate::Watch::leader). Default `None`: nothing is proclaimed.
    pub publish: Option<Vec<u8>>,
    /// How long the work of [`Node::lead_with`] may go on after it was
    /// [cancelled](Tenure::cancelled), to clean up. Then it is dropped. Default `None`: it is
    /// dropped at once. Larger: an operator who asks for a hand-over waits longer. Smaller: work
    /// that cleans up slowly is cut short.
    pub cleanup: Option<Duration>,
}

impl Campaign {
    /// Sets the field `health`: the longest time between two heartbeats of the guarded work.
    #[must_use]
    pub fn health(mut self, within: Duration) -> Self {
        self.health = Some(within);
        self
    }

    /// Sets the field `above`: the new term will be larger than this one.
    #[must_use]
    pub fn above(mut self, term: Term) -> Self {
        self.above = Some(term);
        self
    }

    /// Sets the field `priority`: zero is the first choice.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the field `publish`: the bytes that are proclaimed when this process is elected.
    #[must_use]
    pub fn publish(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.publish = Some(bytes.into());
        self
    }

    /// Sets the field `cleanup`: how long cancelled work may go on.
    #[must_use]
    pub fn cleanup(mut self, within: Duration) -> Self {
        self.cleanup = Some(within);
        self
    }
}
