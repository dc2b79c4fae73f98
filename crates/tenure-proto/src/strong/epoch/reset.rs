//! A repair of terms that are absurdly high: the operator sets them anew.
//!
//! Terms only rise, and one ceiling serves all groups (`height`). If an absurd term was granted all
//! the same, by a mistaken [`Command::Confirm`] or a broken disk, every later term lies above it:
//! tokens no longer fit into 31 bits, and soon no term is left. The way back is a charter that
//! *lowers* the terms. It is decided like one that an operator forces (`force`), but by the word of
//! **all** members, and nobody is removed:
//!
//! ```text
//!   1  prepare       every member promises
//!   2  accept V      every member checks V's floor, writes V to disk and is sealed: it grants nothing before it goes by V
//!   3  wait          (1+ρ)δ_max and a tick (OQwBS: δ_max + 2Δ) after the last of them was sealed: every lease is over
//!   4  V is decided  every member sets its ceiling, and what it knows of terms, to V's floor, and goes by V
//! ```
//!
//! V names the **barred** groups: those that hold a term above its floor. No member ever grants
//! them again, in V or in any charter after it, for a new leader would have a lower term than an
//! old one.
//!
//! # Why terms still rise in every group
//!
//! A barred group has no later leader. In any other group let t be a term that was granted before
//! V. The operator says that t is at most V's floor. A member that knows better, because it has
//! granted a higher term to a group that is not barred, denies V ([`Rules::allows_reset`]). It
//! grants nothing between that check and the adoption of V (SEAL). Every term that is granted after
//! V is above V's floor (FLOOR), so it is above t.
//!
//! # Why no two lead
//!
//! As in `force`, with nobody gone: every lease of an epoch before V rests on a grant that a member
//! gave before it was sealed, so it is over when V is decided. After V the members and quorums are
//! the same, and all is as ever.
//!
//! # Why a kill between any two effects does no harm
//!
//! A member that adopts V writes the lowered ceiling *first*, then V. Killed in between, it
//! restarts in the old epoch with a low ceiling. It is still sealed, which is durable, so it grants
//! nothing by that ceiling before it has adopted V. In the other order it would restart in V with
//! the absurd ceiling, and the repair would be undone there.
//!
//! # Guarantees that rest on the operator's word alone
//!
//! That no group but the barred ones ever held a term above the floor. Members remember single
//! groups in memory only: after a restart they cannot contradict. If the word is wrong, a new
//! leader of such a group has a lower term than an old one had, and a fence that saw the old term
//! refuses the new leader. Nothing old gets through that was refused before.

use std::sync::Arc;

use super::force::Force;
use super::proposer::Halt;
use super::{ChangeError, Charter, Epoch};
use crate::strong::height::Heights;
use crate::strong::message::Term;
use crate::strong::rules::Rules;
use crate::strong::term::Ceiling;
use crate::strong::{Nerio, Process};
use crate::{Context, GroupId};

#[allow(unused_imports, reason = "named in the documentation above")]
use crate::strong::message::Command;

/// The traces that repairs of terms have left. Every later charter carries it on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TermReset {
    at: Epoch,
    /// Sorted.
    barred: Vec<GroupId>,
}

impl TermReset {
    /// How many groups can be barred in the life of a cluster: a charter must fit into one
    /// datagram.
    pub const MOST: usize = 8;

    /// Terms were set anew in an epoch, and these groups are barred. `None` if they are too many.
    pub fn new(at: Epoch, mut barred: Vec<GroupId>) -> Option<Self> {
        barred.sort_unstable();
        barred.dedup();
        (barred.len() <= Self::MOST).then_some(Self { at, barred })
    }

    /// The epoch in which terms were last set anew; zero if they never were.
    pub fn at(&self) -> Epoch {
        self.at
    }

    /// The groups that held a term above the floor of such an epoch. Nobody leads them again.
    pub fn barred(&self) -> &[GroupId] {
        &self.barred
    }

    /// Whether a group is barred.
    pub fn bars(&self, group: GroupId) -> bool {
        self.barred.binary_search(&group).is_ok()
    }

    /// The same, with more groups barred, as of a later epoch.
    fn again(&self, at: Epoch, more: &[GroupId]) -> Result<Self, ChangeError> {
        Self::new(at, [&self.barred, more].concat()).ok_or(ChangeError::TooManyBarred)
    }
}

/// The terms that an operator wants: see [`Change::ResetTerms`](super::Change::ResetTerms).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WantedReset {
    pub(super) floor: Term,
    barred: Vec<GroupId>,
    /// The reset that was the last one when the operator spoke.
    last: Epoch,
}

impl Charter {
    /// Whether terms were set anew after `earlier`, in this charter or on the way to it.
    pub(in crate::strong) fn resets_terms_of(&self, earlier: &Self) -> bool {
        self.reset.at > earlier.reset.at
    }

    /// The reset in the charter that an operator's word puts in this one's place: the operator's
    /// wish, and any reset that was accepted before and may be decided.
    pub(super) fn forced_reset(
        &self,
        epoch: Epoch,
        found: &[&Arc<Charter>],
        wanted: Option<&WantedReset>,
    ) -> Result<TermReset, ChangeError> {
        let resets = found.iter().filter(|charter| charter.resets_terms_of(self));
        let barred: Vec<GroupId> = resets.clone().flat_map(|charter| charter.reset.barred.clone()).collect();
        if wanted.is_none() && resets.count() == 0 {
            return Ok(self.reset.clone());
        }
        let more = wanted.map(|wanted| wanted.barred.as_slice()).unwrap_or_default();
        self.reset.again(epoch, &[&barred, more].concat())
    }
}

impl Force {
    /// Whether the charter that was adopted is what the operator asked for.
    pub(super) fn is_done_by(&self, charter: &Charter) -> bool {
        let gone = self.gone.iter().all(|node| !charter.has(*node));
        gone && self.reset.as_ref().is_none_or(|wanted| charter.reset.at > wanted.last)
    }
}

impl<R: Rules> Process<R> {
    /// The operator wants terms set anew.
    pub(super) fn reset_terms(&mut self, floor: Term, barred: &[GroupId], cx: &mut Context<'_, Nerio<R>>) {
        if floor >= self.known() {
            let why = format!(
                "no term above {} is known here, so a floor of {floor} repairs nothing",
                self.known()
            );
            return self.halt(Halt::Impossible(why), cx);
        }
        let reset = WantedReset { floor, barred: barred.to_vec(), last: self.charter().reset.at };
        self.membership.proposer.force = Some(Force::of_terms(reset));
        self.begin_force(cx);
    }

    /// Whether the ballot under way sets terms anew: then what members report of their tops decides
    /// nothing.
    pub(super) fn is_resetting(&self) -> bool {
        let wanted = self.membership.proposer.force.as_ref().is_some_and(|force| force.reset.is_some());
        wanted || self.sealed_for().is_some_and(|charter| charter.resets_terms_of(self.charter()))
    }

    /// RESET: the ceiling, and all that is known of terms, fall to the floor of a charter that is
    /// about to be adopted. The caller persists the charter after this.
    pub(super) fn lower_terms(&mut self, floor: Term, cx: &mut Context<'_, Nerio<R>>) {
        let settings = self.config.settings();
        self.largest_term = settings.rules.largest_term_known(floor);
        self.heights.lower(floor);
        if !self.mute && self.recovery.is_none() {
            self.ceiling = Ceiling::start(floor, settings.block, cx);
        }
    }
}

impl<R: Rules> Nerio<R> {
    /// The largest term that this member knows to have granted to a group that a charter does not
    /// bar. A group whose ceiling alone is known, since a restart, is no evidence.
    pub(super) fn unbarred_term(&self, charter: &Charter) -> Option<(GroupId, Term)> {
        let inherited = self.process.largest_term;
        let granted = self.groups.iter().filter_map(|(id, group)| {
            let own = Some(group.grantor.max_term).filter(|term| *term > inherited);
            let held = group.grantor.grant.map(|grant| grant.term);
            own.max(held).map(|term| (*id, term))
        });
        granted.filter(|(id, _)| !charter.reset.bars(*id)).max_by_key(|(_, term)| *term)
    }

    /// RESET: every group begins at the floor. Grants of a barred group are dropped: nobody is
    /// granted it again.
    pub(super) fn lower_groups(&mut self, charter: &Charter) {
        for (id, group) in &mut self.groups {
            group.grantor.max_term = charter.floor;
            group.candidate.hint = Term(0);
            if charter.reset.bars(*id) {
                group.grantor.grant = None;
            }
        }
    }
}

impl Heights {
    /// Terms were set anew: what was said of them before counts no more. Buckets stay as they are.
    fn lower(&mut self, floor: Term) {
        let former = std::mem::replace(self, Self::new(floor));
        self.keep_buckets_of(former);
    }
}
