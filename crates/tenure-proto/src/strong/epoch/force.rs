//! A lost quorum: the operator's word in the place of the votes that nobody can give any more.
//!
//! So many members are gone that those who are left are no quorum: nothing can be granted, and no
//! change be decided. An operator says that the others (D) are *powered off and will never run
//! again with their stores*, and those who are left (S) go on as a smaller cluster. The quorums of
//! the new epoch need not meet those of any epoch before. So what keeps two leaders apart is not a
//! common grantor; it is a wait, and that everybody who could still grant has stopped before it
//! began.
//!
//! ```text
//!   1  prepare            every one of S promises, and reports its largest term and what it has accepted
//!   2  accept V           every one of S writes V to disk and is *sealed*: it grants nothing, in no epoch before V
//!   3  wait               (1+ρ)δ_max and a tick (OQwBS: δ_max + 2Δ) on the clock of whoever decides, after the last of S has
//!                         said that it is sealed
//!   4  V is decided       everybody is told, and goes by it
//! ```
//!
//! The ballots are those of every change; but who prepares or accepts for V is not a quorum, it is
//! all of S. V has the number of the next *era* ([`Epoch::next_era`]): far above any epoch that the
//! dead may have decided without telling the survivors.
//!
//! # Why no two lead
//!
//! Let e be the epoch that all of S were in when they accepted V (a ballot names its epoch, MONO),
//! and T any set that supports a lease of an epoch f before V, in force when V is decided. If f is
//! e or one of its neighbours, T has a member of e: quorums of neighbours meet (ADJ). Say it is q.
//! Either q is in D: its Ok was given before it was powered off, so before the operator spoke, so
//! before the wait. Or it is in S: its Ok was given before it was sealed, so before the wait. The
//! lease ends at most δ_max after that Ok, and the wait is at least δ_max of real time: the lease
//! is over. Older epochs had ended when e was decided (T1). After V has taken effect all is as
//! ever: its members adopt it before they answer in it (MONO), and the next epoch is its neighbour.
//!
//! **Terms.** A member that accepts V has granted no term above V's floor, or it denies V; and it
//! grants none until it goes by V. So the floor is above all that S granted. Nobody can ask which
//! terms the dead granted among themselves: the floor is also at least what the operator gives
//! ([`Change::ForceRemove`]), which is the time of day plus a margin unless it is said otherwise,
//! as for a cluster that is founded anew. If the dead have held more elections than a second each
//! since the cluster was founded, a new term may be below one that a fence has seen: that fence
//! refuses the new leader until terms have risen. Nothing old gets through.
//!
//! **Two operators.** Each needs the word of all that it does not name as dead. A member that has
//! accepted V denies a ballot that keeps anybody whom V does not keep, and accepts nothing of a
//! lower number: so of two remainders that share a member at most one is decided, or the second is
//! a part of the first, and then the argument above holds of the second with V as e. Of the same
//! remainder one charter is decided, for every ballot asks all of S: what all of them hold is taken
//! up, and what one of them does not hold cannot have been decided.
//!
//! # Assumptions that rest on the operator's word alone
//!
//! * That the dead are dead. If one of D runs on and with others of D is a quorum, it elects
//!   leaders of its own. When one comes back alone it is harmless: it is refused, told of V, and is
//!   no member.
//! * Remainders that share nobody: two operators, each of whom says that the other's half is
//!   powered off. One of them is wrong. Each draws a number, so their charters differ in lineage,
//!   and both halves stop as soon as they hear of each other (`lineage`).
//! * Members whom no survivor has heard of: added by those who are dead now, two or more epochs on.
//!   Those that a survivor has accepted are found in step 1, and must be named.

use std::sync::Arc;

use super::proposer::{Halt, Phase, Timer};
use super::{Barred, Body, Change, ChangeError, Charter, Denial, Epoch, Stores};
use crate::quorum::{QuorumError, Quorums};
use crate::strong::message::Term;
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::{Context, NodeId};

/// The word of an operator: see [`Change::ForceRemove`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::strong) struct Force {
    /// Those who are powered off.
    pub(super) gone: Vec<NodeId>,
    /// The floor is at least this, and a margin above it.
    pub(super) least: Term,
    pub(super) margin: u64,
    /// The number with which the lineage goes on.
    pub(super) draw: u128,
}

impl Epoch {
    /// How many epochs an era has. The dead cannot have decided so many: each takes about a longest
    /// lease.
    pub const ERA: u64 = 1 << 20;

    /// The first epoch of the next era: above all that can have been decided in this one.
    #[must_use]
    pub fn next_era(self) -> Self {
        Self((self.0 / Self::ERA).saturating_add(1).saturating_mul(Self::ERA))
    }

    /// Whether an epoch begins an era: it was brought about by an operator's word, not by the votes
    /// of the epoch before.
    pub fn begins_era(self) -> bool {
        self.0 > 0 && self.0.is_multiple_of(Self::ERA)
    }
}

/// The quorums of those who are left: with the weights that they had, or a majority where there
/// were none.
pub(super) fn remaining(quorums: &Quorums, gone: &[NodeId]) -> Result<Quorums, QuorumError> {
    let mut left = quorums.members().to_vec();
    left.retain(|member| !gone.contains(member));
    match quorums.weights() {
        Some(weights) if weights.values().any(|weight| *weight != 1) => {
            let weights = left.iter().filter_map(|member| weights.get(member).copied()).collect();
            Quorums::weighted(left, weights)
        }
        _ => Quorums::majority(left),
    }
}

impl Charter {
    /// The charter that an operator's word puts in this one's place, above all those that were
    /// `found`.
    fn forced(
        &self,
        body: Body,
        found: &[&Arc<Charter>],
        (floor, draw): (Term, Option<u128>),
    ) -> Result<Arc<Self>, ChangeError> {
        // One that was found and may be decided is an ancestor; and the newest comes from all that
        // may be.
        let newest = found.iter().filter(|charter| charter.epoch.begins_era()).max_by_key(|c| c.epoch);
        let lineage = newest.map_or(&self.lineage, |charter| &charter.lineage);
        let lineage = match draw {
            Some(draw) => lineage.forced(draw)?,
            // A proposer that finishes what another began goes on under that one's draw.
            None => lineage.clone(),
        };
        let newest = found.iter().map(|charter| charter.epoch).fold(self.epoch, Epoch::max);
        // The member that decides it must wait for leases of this epoch, of the one before, and of
        // any that may be decided.
        let bodies = found.iter().map(|charter| &charter.body).chain(&self.before);
        let start = crate::LocalTime::ZERO;
        let longest = bodies.fold(&self.body, |longest, body| {
            if body.spacing(start) > longest.spacing(start) { body } else { longest }
        });
        let (clocks, longest_lease) = (longest.clocks, longest.longest_lease);
        let (quorums, stores) = (self.body.quorums.clone(), self.body.stores.clone());
        let barred = Barred::default(); // Nothing is granted by this body any more.
        let before = Some(Body { quorums, clocks, longest_lease, stores, barred });
        Ok(Arc::new(Self { epoch: newest.next_era(), lineage, body, before, floor }))
    }

    /// Whether all of these are members.
    pub(in crate::strong) fn keeps_all_of(&self, members: &[NodeId]) -> bool {
        members.iter().all(|member| self.has(*member))
    }
}

impl<R: Rules> Process<R> {
    /// Whether this member has accepted a charter by which it grants nothing before it goes by it.
    pub(in crate::strong) fn is_sealed(&self) -> bool {
        let seals = self.rules().seals();
        seals && self.sealed_for().is_some()
    }

    /// The charter of a later era that was accepted here.
    pub(super) fn sealed_for(&self) -> Option<&Arc<Charter>> {
        let accepted = self.membership.acceptor.accepted.as_ref().map(|(_, charter)| charter);
        accepted.filter(|charter| charter.epoch.begins_era() && charter.epoch > self.membership.epoch())
    }

    /// The operator says that members are powered off.
    pub(super) fn force(&mut self, force: Force, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.force = Some(force);
        self.begin_force(cx);
    }

    /// Begins, or begins anew in an epoch that was learnt meanwhile.
    pub(super) fn begin_force(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let Some(force) = &self.membership.proposer.force else { return };
        let here = &self.membership.charter.body.quorums;
        let left = here.members().iter().filter(|member| !force.gone.contains(member));
        let left = left.filter_map(|member| here.position(*member)).collect();
        let why = if force.gone.contains(&self.holder.node) {
            Some("this very member is named as powered off: ask another".to_owned())
        } else if !force.gone.iter().any(|node| here.position(*node).is_some()) {
            Some("none of those who are named is a member".to_owned())
        } else if here.is_quorum(left) {
            Some("those who are left are a quorum: remove members in the ordinary way, which no word can make unsafe".to_owned())
        } else {
            remaining(here, &force.gone).err().map(|error| error.to_string())
        };
        match why {
            Some(why) => self.halt(Halt::Impossible(why), cx),
            None => self.propose(cx),
        }
    }

    /// Those who are left, if this process acts on an operator's word: its own operator's, or that
    /// which it has accepted.
    pub(super) fn remainder(&self) -> Option<Body> {
        let here = &self.membership.charter.body;
        if let Some(force) = &self.membership.proposer.force {
            let quorums = remaining(&here.quorums, &force.gone).ok()?;
            let stores = here.stores.with(&Stores::default(), quorums.members(), self.rules());
            return Some(Body { quorums, stores, ..here.clone() });
        }
        self.sealed_for().map(|charter| charter.body.clone())
    }

    /// The end of phase 1, in which all of those who are left have answered.
    pub(super) fn choose_forced(
        &mut self,
        body: Body,
        reports: &[Option<Arc<Charter>>],
        top: Term,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<Arc<Charter>> {
        let here = self.membership.charter.clone();
        let found: Vec<&Arc<Charter>> =
            reports.iter().flatten().filter(|charter| charter.epoch > here.epoch).collect();
        let members = body.quorums.members();
        // A charter that all hold may be decided. One that a single member does not hold is not,
        // and never will be: that member has promised.
        let same = |charter: &Arc<Charter>| charter.epoch.begins_era() && charter.members() == members;
        if let Some(held) = found.first().filter(|first| same(first))
            && reports.iter().all(|report| report.as_ref() == Some(held))
        {
            return Some((*held).clone());
        }
        let forced = || found.iter().filter(|charter| charter.epoch.begins_era());
        let force = self.membership.proposer.force.clone();
        if let Some(force) = &force {
            let known = |node: &NodeId| here.has(*node) || force.gone.contains(node);
            let unknown = found.iter().flat_map(|charter| charter.members()).find(|node| !known(node));
            if let Some(node) = unknown.copied() {
                let why = format!("{node} may have become a member meanwhile: power it off, and name it too");
                self.halt(Halt::Impossible(why), cx);
                return None;
            }
        }
        let held = forced().map(|charter| charter.floor).max().unwrap_or_default();
        let draw = force.as_ref().map(|force| force.draw);
        let (least, margin) = force.map_or((Term(0), 0), |force| (force.least, force.margin));
        let floor = Term(top.max(least).0.saturating_add(margin)).max(held);
        let next = match here.forced(body, &found, (floor, draw)) {
            Ok(next) => next,
            Err(error) => {
                self.halt(Halt::Impossible(error.to_string()), cx);
                return None;
            }
        };
        let rules = self.rules();
        if forced().any(|sealed| !rules.may_replace_seal(sealed, &next)) {
            self.halt(Halt::Conflict, cx);
            return None;
        }
        Some(next)
    }

    /// The objection of a member to a charter that begins an era, or to any other once it is
    /// sealed.
    pub(super) fn forced_objection(&self, charter: &Charter, top: Term) -> Option<Denial> {
        let sealed = self.sealed_for();
        if !charter.epoch.begins_era() {
            // No rule: safety does not need it. If all who are left have accepted the forced
            // charter, an ordinary ballot above it was promised by one of them after that, which
            // told of it, or by the gone alone; and then every quorum of its charter needs one of
            // the gone (ADJ). It is denied so that the seal stays, and is told to the next
            // proposer.
            return sealed.map(|sealed| Denial::Sealed(sealed.epoch));
        }
        let rules = self.rules();
        if sealed.is_some_and(|sealed| rules.accepts_again(sealed, charter)) {
            return None;
        }
        if let Some(sealed) = sealed.filter(|sealed| !rules.may_replace_seal(sealed, charter)) {
            return Some(Denial::Sealed(sealed.epoch));
        }
        let here = &self.membership.charter;
        // Among members of one epoch this cannot be: a proposer keeps some of the members that both
        // of them know. It is denied all the same, rather than asserted: nobody's message may stop
        // a node.
        if !charter.has(self.holder.node) || !here.keeps_all_of(charter.members()) {
            return Some(Denial::NotAdjacent);
        }
        (!rules.floor_covers(charter.floor, top)).then_some(Denial::Granted(top))
    }

    /// All who are left are sealed: now the wait begins.
    pub(super) fn await_effect(&mut self, charter: Arc<Charter>, cx: &mut Context<'_, Nerio<R>>) {
        let from = self.rules().takes_effect_from(&charter, cx.now());
        let Some(proposal) = &mut self.membership.proposer.ballot else { return };
        proposal.phase = Phase::Waits(charter);
        self.membership.timers.clear(Timer::Resend);
        self.membership.timers.set(Timer::Effect, from);
    }

    /// The same wait from `now` on, if it is under way.
    pub(super) fn await_effect_anew(&mut self, now: crate::LocalTime) {
        let Some(proposal) = &self.membership.proposer.ballot else { return };
        let Phase::Waits(charter) = &proposal.phase else { return };
        let from = self.rules().takes_effect_from(charter, now);
        self.membership.timers.set(Timer::Effect, from);
    }

    /// Whether what the operator asked for has come about.
    pub(super) fn on_adopted_forced(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let Some(force) = &self.membership.proposer.force else { return };
        if force.gone.iter().any(|node| self.membership.charter.has(*node)) {
            self.begin_force(cx);
        } else {
            self.arrived(cx);
        }
    }
}

#[allow(unused_imports, reason = "named in the documentation above")]
use Change as _;
