//! The side of whoever wants a change, or finishes another's: phase 1 finds out what may have been decided already, phase
//! 2 decides it, or the proposer's own wish where nothing was.

use std::sync::Arc;

use super::acceptor::Ballot;
use super::change::{Change, ChangeError};
use super::member::say;
use super::{Body, Charter, Denial, Epoch, EpochTalk};
use crate::quorum::NodeSet;
use crate::strong::message::{Event, Term};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::{Context, LocalTime, NodeId};

/// What a change waits for.
#[derive(Clone, Copy)]
pub(in crate::strong) enum Timer {
    /// Begin a ballot.
    Propose,
    /// Say it again to those that did not answer.
    Resend,
    /// A charter that was accepted here is not decided: finish it.
    Finish,
}

impl Timer {
    pub(super) const COUNT: usize = Self::Finish as usize + 1;
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// Why a change stopped before it reached its goal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Halt {
    /// Another charter was decided in its place: look at it, and want again.
    Conflict,
    /// It cannot be reached, in words.
    Impossible(String),
    /// The members never change.
    Fixed,
}

/// What this process wants changed, and the ballot under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::strong) struct Proposer {
    /// Where the members shall be in the end.
    goal: Option<Body>,
    /// The step towards it that was proposed last.
    step: Option<Body>,
    /// The highest ballot number seen.
    highest: u64,
    ballot: Option<Proposal>,
    /// What the last phase 1 reported as the largest term.
    last_top: Term,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proposal {
    epoch: Epoch,
    ballot: Ballot,
    answered: NodeSet,
    /// When the first answer came.
    first_promise: Option<LocalTime>,
    /// How often it was said: the pause grows, up to eight times its length.
    said: u32,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Waiting for promises: the accepted charter of the highest ballot, and the largest term.
    Promises { best: Option<(Ballot, Arc<Charter>)>, top: Term },
    /// Waiting for acceptance.
    Accepts(Arc<Charter>),
}

impl<R: Rules> Process<R> {
    /// The user wants the members changed.
    pub(in crate::strong) fn change(&mut self, change: &Change, cx: &mut Context<'_, Nerio<R>>) {
        match change.applied(&self.membership.charter.body) {
            Ok(goal) if goal == self.membership.charter.body => self.arrived(cx),
            Ok(goal) => {
                self.membership.proposer.goal = Some(goal);
                self.membership.proposer.step = None;
                self.propose(cx);
            }
            Err(error) => self.halt(Halt::Impossible(error.to_string()), cx),
        }
    }

    fn arrived(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.goal = None;
        cx.publish(Event::Changed { epoch: self.membership.epoch() });
    }

    fn halt(&mut self, halt: Halt, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.goal = None;
        self.membership.proposer.ballot = None;
        self.membership.timers.clear(Timer::Resend);
        cx.publish(Event::ChangeHalted { halt });
    }

    /// Begins a ballot above all that were seen.
    fn propose(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let epoch = self.membership.epoch();
        let proposer = &mut self.membership.proposer;
        proposer.highest = proposer.highest.max(self.membership.acceptor.promised.number) + 1;
        let (node, incarnation) = (Some(self.holder.node), self.holder.incarnation);
        let ballot = Ballot { number: proposer.highest, node, incarnation };
        let phase = Phase::Promises { best: None, top: Term(0) };
        let (answered, first_promise) = (NodeSet::EMPTY, None);
        proposer.ballot = Some(Proposal { epoch, ballot, answered, first_promise, said: 0, phase });
        self.membership.timers.clear(Timer::Propose);
        self.resend(cx);
    }

    /// Says to all who have not answered what the present phase has to say.
    fn resend(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let Some(proposal) = &mut self.membership.proposer.ballot else { return };
        proposal.said += 1;
        let pause = 1 << (proposal.said / 4).min(3);
        let Proposal { epoch, ballot, answered, phase, .. } = proposal;
        let quorums = &self.membership.charter.body.quorums;
        let silent = quorums.names(quorums.everyone().difference(*answered));
        let talk = match phase {
            Phase::Promises { .. } => EpochTalk::Prepare { epoch: *epoch, ballot: *ballot },
            Phase::Accepts(charter) => {
                EpochTalk::Accept { epoch: *epoch, ballot: *ballot, charter: charter.clone() }
            }
        };
        for member in silent {
            self.ask(member, crate::strong::Message::Epoch(talk.clone()), cx);
        }
        let again = cx.now().after(self.config.settings().retry.nominal().times(pause));
        self.membership.timers.set(Timer::Resend, again);
    }

    /// The ballot under way, if an answer to `ballot` of `epoch` from a member is for it, and the member's position. The
    /// caller must look at the phase before it counts the answer: a late promise is no acceptance.
    fn answered(&mut self, from: NodeId, epoch: Epoch, ballot: Ballot) -> Option<(&mut Proposal, usize)> {
        let position = self.membership.charter.body.quorums.position(from)?;
        let proposal = self.membership.proposer.ballot.as_mut()?;
        ((proposal.epoch, proposal.ballot) == (epoch, ballot)).then_some((proposal, position))
    }

    pub(in crate::strong) fn on_promise(
        &mut self,
        from: NodeId,
        (epoch, ballot): (Epoch, Ballot),
        (accepted, reported): (Option<(Ballot, Arc<Charter>)>, Term),
        own_top: Term,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        if let Some((accepted, _)) = &accepted {
            self.membership.proposer.highest = self.membership.proposer.highest.max(accepted.number);
        }
        let Some((proposal, position)) = self.answered(from, epoch, ballot) else { return };
        let Phase::Promises { best, top } = &mut proposal.phase else { return };
        proposal.answered.insert(position);
        proposal.first_promise.get_or_insert(cx.now());
        *top = reported.max(*top);
        let higher = |known: &(Ballot, Arc<Charter>)| best.as_ref().is_none_or(|best| best.0 < known.0);
        if let Some(known) = accepted.filter(higher) {
            *best = Some(known);
        }
        let (best, top, answered) = (best.clone(), *top, proposal.answered);
        if self.membership.charter.body.quorums.is_quorum(answered) {
            self.choose(best, (top, own_top), cx);
        }
    }

    /// The end of phase 1: what may have been decided must be; only where nothing was is there a choice (T6).
    fn choose(
        &mut self,
        best: Option<(Ballot, Arc<Charter>)>,
        (top, own_top): (Term, Term),
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let rules = self.config.settings().rules.clone();
        let last_top = std::mem::replace(&mut self.membership.proposer.last_top, top);
        let found = best.filter(|_| rules.adopts_accepted_value()).map(|(_, charter)| charter);
        let charter = match found {
            Some(charter) => charter,
            None => match self.wish(&rules) {
                Some(Ok(step)) => {
                    self.membership.proposer.step = Some(step.clone());
                    let floor = rules.floor(top, own_top, last_top);
                    self.membership.charter.next(step, floor)
                }
                Some(Err(error)) => return self.halt(Halt::Impossible(error.to_string()), cx),
                None => return self.drop_ballot(), // Nothing to finish.
            },
        };
        let Some(proposal) = &mut self.membership.proposer.ballot else { return };
        proposal.phase = Phase::Accepts(charter);
        proposal.answered = NodeSet::EMPTY;
        proposal.said = 0;
        let promised = proposal.first_promise.unwrap_or(cx.now());
        let from = rules.may_propose_from(&self.membership.charter, self.membership.adopted_at, promised);
        if cx.now() < from {
            return self.membership.timers.set(Timer::Resend, from);
        }
        self.resend(cx);
    }

    fn wish(&self, rules: &R) -> Option<Result<Body, ChangeError>> {
        let goal = self.membership.proposer.goal.as_ref()?;
        let here = &self.membership.charter.body;
        Some(here.step_towards(goal, |one, other| rules.adjacent(one, other)))
    }

    fn drop_ballot(&mut self) {
        self.membership.proposer.ballot = None;
        self.membership.timers.clear(Timer::Resend);
    }

    /// Phase 2 is over when a quorum has accepted: returns what is decided.
    pub(in crate::strong) fn on_accepted(
        &mut self,
        from: NodeId,
        (epoch, ballot): (Epoch, Ballot),
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<Arc<Charter>> {
        let (proposal, position) = self.answered(from, epoch, ballot)?;
        let Phase::Accepts(charter) = &proposal.phase else { return None };
        proposal.answered.insert(position);
        let (charter, answered) = (charter.clone(), proposal.answered);
        if !self.membership.charter.body.quorums.is_quorum(answered) {
            return None;
        }
        self.drop_ballot();
        cx.publish(Event::Decided { charter: charter.clone() });
        for member in charter.members_and_former().filter(|member| *member != self.holder.node) {
            say(member, EpochTalk::Decided(charter.clone()), None, cx);
        }
        Some(charter)
    }

    pub(in crate::strong) fn on_denied(
        &mut self,
        from: NodeId,
        (epoch, ballot, denial): (Epoch, Ballot, Denial),
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let current = self.membership.proposer.ballot.as_ref();
        if current.is_none_or(|current| (current.epoch, current.ballot) != (epoch, ballot)) {
            return;
        }
        match denial {
            Denial::Outbid(higher) => {
                self.membership.proposer.highest = self.membership.proposer.highest.max(higher.number);
                self.drop_ballot();
                let pause = cx.jitter(self.config.settings().window.nominal());
                self.membership.timers.set(Timer::Propose, cx.now().after(pause));
            }
            // The same words later: the ballot stands.
            Denial::TooSoon { remaining } => {
                let at = cx.now().after(remaining);
                self.membership.timers.set(Timer::Resend, at);
            }
            Denial::NotAdjacent => {
                let why = format!("{from} finds that quorums before and after the step need not meet");
                self.halt(Halt::Impossible(why), cx);
            }
        }
    }

    /// A charter was adopted: the next step towards the goal, if this one was on the way.
    pub(in crate::strong) fn on_adopted(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        self.drop_ballot();
        let Some(goal) = self.membership.proposer.goal.clone() else { return };
        let here = &self.membership.charter.body;
        if *here == goal {
            self.arrived(cx);
        } else if self.membership.proposer.step.as_ref() == Some(here) {
            self.membership.timers.set(Timer::Propose, cx.now());
        } else {
            self.halt(Halt::Conflict, cx);
        }
    }

    pub(in crate::strong) fn on_epoch_deadline(&mut self, now: LocalTime, cx: &mut Context<'_, Nerio<R>>) {
        let timers = &mut self.membership.timers;
        let propose = timers.take_expired(Timer::Propose, now);
        let finish = timers.take_expired(Timer::Finish, now);
        let resend = timers.take_expired(Timer::Resend, now);
        let idle = self.membership.proposer.ballot.is_none();
        let wants = self.membership.proposer.goal.is_some() || self.membership.acceptor.accepted.is_some();
        if idle && (propose || finish) && wants {
            self.propose(cx);
        } else if resend {
            self.resend(cx);
        }
        if finish && self.membership.acceptor.accepted.is_some() {
            // Should this ballot fail too, there is another after it.
            let again = self.config.settings().retry.nominal().times(16);
            self.membership.timers.set(Timer::Finish, now.after(again));
        }
    }
}
