//! One run of a candidate: the request, the answers so far, and whether they suffice.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::explore::View;
use crate::quorum::NodeSet;
use crate::time::{LocalSpan, Stamp};
use crate::{LocalTime, NodeId};

use super::candidate::Around;
use super::epoch::Charter;
use super::message::{GrantRequest, Refusal, Term};
use super::rules::{Across, Rules};

/// A run in flight: Start and the answers so far. In a box, for most groups have none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) request: GrantRequest,
    /// Whose members were asked, and by whose quorums the answers are judged (ONE).
    pub(super) charter: Arc<Charter>,
    pub(super) oks: NodeSet,
    /// When those granted, by their own clocks.
    pub(super) stamps: Vec<(NodeId, Stamp)>,
    pub(super) nacks: NodeSet,
    /// Grantors that count as refusing without a word, because they are silent or seem dead.
    pub(super) mute: NodeSet,
    /// How often the silent ones were asked again.
    pub(super) retries: u32,
    /// Whether every nack said that the term is too small.
    pub(super) all_stale: bool,
    /// The largest term that a nack told of.
    pub(super) told: Term,
    /// The shortest wait of those who found the term too high.
    pub(super) held_back: Option<LocalSpan>,
    /// The first process that a refusal named as holder, who is bound to it, and for how long.
    pub(super) rival: Option<Rival>,
    /// A shorter pause between tries, for a leader whose lease is almost over.
    pub(super) hurry: Option<LocalSpan>,
}

impl Run {
    /// An answer, once for each grantor.
    pub(super) fn count<R: Rules>(&mut self, from: NodeId, at: Stamp, rules: &R) {
        let position = rules.voice_of(&self.charter.body.quorums, from, self.oks);
        // QT has no stamp of a process that was not asked (lemma 7.1). Only a mutant keeps it.
        if position.is_some() || rules.across() == Across::ByNumber {
            self.stamps.push((from, at));
        }
        position.into_iter().for_each(|position| self.oks.insert(position));
    }

    /// Notes how long a refusal says to wait, if it is about the height of the term or a barred
    /// group. No longer than a few leases: a member that vouches for the term may come back
    /// meanwhile, and an operator may confirm it or lift the bar.
    pub(super) fn hold_back(&mut self, refusal: Refusal, lease: LocalSpan) {
        let longest = lease.times(8);
        let wait = match refusal {
            Refusal::TooHigh { wait } => wait.min(longest),
            Refusal::Implausible | Refusal::Barred => longest,
            _ => return,
        };
        self.held_back = Some(self.held_back.map_or(wait, |known| known.min(wait)));
    }

    /// Step 7: a quorum of the run's epoch has answered.
    pub(super) fn suffices(&self, across: Across) -> bool {
        if across == Across::ByNumber {
            let answered: BTreeSet<NodeId> = self.stamps.iter().map(|(node, _)| *node).collect();
            return 2 * answered.len() > self.charter.members().len();
        }
        self.charter.body.quorums.is_quorum(self.oks)
    }

    /// Continues the run in another epoch with the answers that it has: no sound candidate does
    /// this.
    pub(super) fn carry_over<R: Rules>(&mut self, across: Across, around: &mut Around<'_, '_, R>) {
        self.request.epoch = around.process.membership.epoch();
        if across != Across::ByOld {
            self.charter = around.process.membership.charter.clone();
            let quorums = &self.charter.body.quorums;
            self.oks = self.stamps.iter().filter_map(|(node, _)| quorums.position(*node)).collect();
            self.nacks = NodeSet::EMPTY;
        }
        let everyone = around.process.charter().body.quorums.everyone();
        around.ask(everyone, self.request, None);
    }
}

/// Somebody who stands in the way, as refusals tell. A hint: nothing but patience rests on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rival {
    pub(super) node: NodeId,
    pub(super) held: NodeSet,
    pub(super) until: LocalTime,
}

impl Run {
    /// See [`Explore`](crate::explore::Explore). The start is the timer that ends the run. Left
    /// out is all that tells a campaign when to try again: who did not answer, how often they were
    /// asked, and the words of refusals besides their terms.
    pub(super) fn view(&self, v: &mut View<'_>) {
        self.request.view(v);
        self.charter.view(v);
        v.set(self.oks);
        v.set(self.nacks);
        // The first answer of a grantor counts, in whatever order grantors answered.
        let mut stamps: Vec<_> = self.stamps.iter().map(|(node, at)| (v.name(*node), *node, *at)).collect();
        stamps.sort_by_key(|(name, ..)| *name);
        stamps.dedup_by_key(|(name, ..)| *name);
        v.num(stamps.len() as u64);
        for (_, node, at) in stamps {
            v.stamp(node, at);
        }
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        self.request.start = self.request.start.shifted(by);
        if let Some(rival) = &mut self.rival {
            rival.until = rival.until.shifted(by);
        }
    }
}
