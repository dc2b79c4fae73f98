//! The proposer's side, for its own change or to finish another's. Phase 1 finds out what may have
//! been decided already; phase 2 decides that, or the proposer's own wish where nothing was.

use std::sync::Arc;

use super::acceptor::Ballot;
use super::change::{Change, ChangeError};
use super::force::Force;
use super::member::say;
use super::{Body, Charter, Denial, Epoch, EpochTalk};
use crate::explore::View;
use crate::quorum::{NodeSet, Quorums};
use crate::strong::message::{Event, Term};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::time::LocalSpan;
use crate::{Context, LocalTime, NodeId};

/// A deadline of a change.
#[derive(Clone, Copy)]
pub(in crate::strong) enum Timer {
    /// Begin a ballot.
    Propose,
    /// Say it again to those that did not answer.
    Resend,
    /// A charter that was accepted here is not decided: finish it.
    Finish,
    /// A charter that an operator's word brought about takes effect.
    Effect,
}

impl Timer {
    pub(super) const COUNT: usize = Self::Effect as usize + 1;
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// How often the pause between ballots that are outbid doubles at most.
const MOST_DOUBLINGS: u32 = 16;

/// Why a change stopped before it reached its goal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Halt {
    /// Another charter was decided in its place: the operator looks at it, and asks again.
    Conflict,
    /// It cannot be reached, in words.
    Impossible(String),
    /// The members never change.
    Fixed,
}

/// The change that this process wants, and the ballot under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::strong) struct Proposer {
    /// Where the members shall be in the end.
    goal: Option<Body>,
    /// The step towards it that was proposed last.
    step: Option<Body>,
    /// The operator's word on members that are gone.
    pub(super) force: Option<Force>,
    /// The highest ballot number seen.
    highest: u64,
    pub(super) ballot: Option<Proposal>,
    /// How often in a row a higher ballot came between: the pause doubles with each.
    outbid: u32,
    /// The largest term that the last phase 1 reported.
    last_top: Term,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Proposal {
    epoch: Epoch,
    ballot: Ballot,
    /// Those who are left, where an operator's word is acted on: all of them must answer, and
    /// nobody else is asked.
    left: Option<Body>,
    answered: NodeSet,
    /// When the first answer came.
    first_promise: Option<LocalTime>,
    /// How often it was said: the pause grows, up to eight times its length.
    said: u32,
    /// Until when acceptors said that it was too soon.
    too_soon: Option<LocalTime>,
    pub(super) phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Waiting for promises: the accepted charter of the highest ballot, the largest term, and what
    /// each has accepted.
    Promises { best: Option<(Ballot, Arc<Charter>)>, top: Term, reports: Vec<Option<Arc<Charter>>> },
    /// Waiting for acceptance.
    Accepts(Arc<Charter>),
    /// All who are left are sealed; waiting until no lease of before can be in force.
    Waits(Arc<Charter>),
}

/// The stage of a change: the answer or the time that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waits for answers, of these among others: a quorum of them, or all where the change rests on
    /// an operator's word.
    Answers(Vec<NodeId>),
    /// Waits for leases to run out, until this reading.
    Leases(LocalTime),
}

impl Proposal {
    /// Those who are asked.
    fn electorate<'a>(&'a self, here: &'a Charter) -> &'a Quorums {
        self.left.as_ref().map_or(&here.body.quorums, |left| &left.quorums)
    }

    /// Whether those who have answered suffice.
    fn suffices(&self, here: &Charter) -> bool {
        let asked = self.electorate(here);
        match self.left {
            Some(_) => self.answered.is_superset(asked.everyone()),
            None => asked.is_quorum(self.answered),
        }
    }
}

impl<R: Rules> Process<R> {
    /// The user wants the members changed.
    pub(in crate::strong) fn change(&mut self, change: &Change, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.outbid = 0;
        if self.rules().ballot_ends_with_word() {
            self.drop_ballot();
        }
        self.membership.proposer.force = None;
        if let Change::ForceRemove { gone, least, margin, draw } = change {
            self.membership.proposer.goal = None;
            let force = Force { gone: gone.clone(), least: *least, margin: *margin, draw: *draw };
            return self.force(force, cx);
        }
        match change.applied(&self.membership.charter.body, self.rules()) {
            Ok(goal) if goal == self.membership.charter.body => self.arrived(cx),
            Ok(goal) => {
                self.membership.proposer.goal = Some(goal);
                self.membership.proposer.step = None;
                self.propose(cx);
            }
            Err(error) => self.halt(Halt::Impossible(error.to_string()), cx),
        }
    }

    pub(super) fn arrived(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.goal = None;
        self.membership.proposer.force = None;
        cx.publish(Event::Changed { epoch: self.membership.epoch() });
    }

    pub(super) fn halt(&mut self, halt: Halt, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.proposer.goal = None;
        self.membership.proposer.force = None;
        self.drop_ballot();
        cx.publish(Event::ChangeHalted { halt });
    }

    /// Begins a ballot above all that were seen.
    pub(super) fn propose(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let epoch = self.membership.epoch();
        let left = self.remainder();
        self.membership.timers.clear(Timer::Effect);
        let proposer = &mut self.membership.proposer;
        proposer.highest = proposer.highest.max(self.membership.acceptor.promised.number) + 1;
        let (node, incarnation) = (Some(self.holder.node), self.holder.incarnation);
        let ballot = Ballot { number: proposer.highest, node, incarnation };
        let phase = Phase::Promises { best: None, top: Term(0), reports: Vec::new() };
        let (answered, first_promise, too_soon) = (NodeSet::EMPTY, None, None);
        proposer.ballot =
            Some(Proposal { epoch, ballot, left, answered, first_promise, said: 0, too_soon, phase });
        self.membership.timers.clear(Timer::Propose);
        self.resend(cx);
    }

    /// Says to all who have not answered what the present phase has to say.
    fn resend(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let Some(proposal) = &mut self.membership.proposer.ballot else { return };
        proposal.said += 1;
        let pause = 1 << (proposal.said / 4).min(3);
        let quorums = proposal.electorate(&self.membership.charter);
        let silent = quorums.names(quorums.everyone().difference(proposal.answered));
        let Proposal { epoch, ballot, phase, .. } = proposal;
        let talk = match phase {
            Phase::Waits(_) => return,
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

    /// The ballot under way, if an answer to `ballot` of `epoch` from a member is for it, and the
    /// member's position. The caller must look at the phase before it counts the answer: a late
    /// promise is no acceptance.
    fn answered(&mut self, from: NodeId, epoch: Epoch, ballot: Ballot) -> Option<(&mut Proposal, usize)> {
        let rules = self.config.rules();
        let proposal = self.membership.proposer.ballot.as_mut()?;
        let asked = proposal.electorate(&self.membership.charter);
        let position = rules.voice_of(asked, from, proposal.answered)?;
        let current = (proposal.epoch, proposal.ballot);
        rules.answers_ballot(current, (epoch, ballot)).then_some((proposal, position))
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
        let here = self.membership.charter.clone();
        // Without its promise the floor need not cover what it reports: others must make up a
        // quorum.
        if here.has(from) && self.doubts(from, reported, cx) {
            return;
        }
        let Some((proposal, position)) = self.answered(from, epoch, ballot) else { return };
        let Phase::Promises { best, top, reports } = &mut proposal.phase else { return };
        if !proposal.answered.contains(position) {
            reports.push(accepted.as_ref().map(|(_, charter)| charter.clone()));
        }
        proposal.answered.insert(position);
        proposal.first_promise.get_or_insert(cx.now());
        *top = reported.max(*top);
        let higher = |known: &(Ballot, Arc<Charter>)| best.as_ref().is_none_or(|best| best.0 < known.0);
        if let Some(known) = accepted.filter(higher) {
            *best = Some(known);
        }
        let (best, top) = (best.clone(), *top);
        let left = proposal.left.clone().map(|left| (left, reports.clone()));
        if !proposal.suffices(&here) {
            return;
        }
        let Some((left, reports)) = left else { return self.choose(best, (top, own_top), cx) };
        if let Some(charter) = self.choose_forced(left, &reports, top, cx) {
            self.begin_accepts(charter, cx);
        }
    }

    /// The end of phase 1: what may have been decided must be; only where nothing was is there a
    /// choice (T6).
    fn choose(
        &mut self,
        best: Option<(Ballot, Arc<Charter>)>,
        (top, own_top): (Term, Term),
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let rules = self.rules().clone();
        let last_top = std::mem::replace(&mut self.membership.proposer.last_top, top);
        let found = best.filter(|_| rules.adopts_accepted_value()).map(|(_, charter)| charter);
        let charter = match found {
            // All that it keeps must be asked, and those who have accepted it will.
            Some(charter) if charter.epoch.begins_era() => return self.halt(Halt::Conflict, cx),
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
        self.begin_accepts(charter, cx);
    }

    /// Phase 2.
    fn begin_accepts(&mut self, charter: Arc<Charter>, cx: &mut Context<'_, Nerio<R>>) {
        let (rules, here) = (self.config.rules(), &self.membership.charter);
        let Some(proposal) = &mut self.membership.proposer.ballot else { return };
        invariant!(rules, proposal.suffices(here), "phase 2 begins when enough have promised (T6)");
        proposal.phase = Phase::Accepts(charter);
        proposal.answered = NodeSet::EMPTY;
        proposal.said = 0;
        let promised = proposal.first_promise.unwrap_or(cx.now());
        let rules = self.rules();
        let from = rules.may_propose_from(&self.membership.charter, self.membership.adopted_at, promised);
        if cx.now() < from {
            return self.membership.timers.set(Timer::Resend, from);
        }
        self.resend(cx);
    }

    fn wish(&self, rules: &R) -> Option<Result<Body, ChangeError>> {
        let goal = self.membership.proposer.goal.as_ref()?;
        let Charter { epoch, body: here, .. } = &*self.membership.charter;
        if epoch.next().begins_era() {
            return Some(Err(ChangeError::LastOfEra));
        }
        Some(here.step_towards(goal, rules))
    }

    pub(super) fn drop_ballot(&mut self) {
        self.membership.proposer.ballot = None;
        self.membership.timers.clear(Timer::Resend);
        self.membership.timers.clear(Timer::Effect);
    }

    /// Phase 2 is over when a quorum has accepted: returns what is decided.
    pub(in crate::strong) fn on_accepted(
        &mut self,
        from: NodeId,
        (epoch, ballot): (Epoch, Ballot),
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<Arc<Charter>> {
        let here = self.membership.charter.clone();
        let (proposal, position) = self.answered(from, epoch, ballot)?;
        let Phase::Accepts(charter) = &proposal.phase else { return None };
        proposal.answered.insert(position);
        let (charter, forced) = (charter.clone(), proposal.left.is_some());
        if !proposal.suffices(&here) {
            return None;
        }
        if forced {
            self.await_effect(charter, cx);
            return None;
        }
        Some(self.decided(charter, cx))
    }

    /// A charter is decided: everybody who has to do with it is told.
    fn decided(&mut self, charter: Arc<Charter>, cx: &mut Context<'_, Nerio<R>>) -> Arc<Charter> {
        self.drop_ballot();
        cx.publish(Event::Decided { charter: charter.clone() });
        for member in charter.members_and_former().filter(|member| *member != self.holder.node) {
            say(member, EpochTalk::Decided(charter.clone()), None, cx);
        }
        charter
    }

    /// The stage of the change under way, if one is.
    pub(in crate::strong) fn stage(&self) -> Option<Stage> {
        let proposal = self.membership.proposer.ballot.as_ref()?;
        if let Some(until) = self.membership.timers.at(Timer::Effect).or(proposal.too_soon) {
            return Some(Stage::Leases(until));
        }
        let asked = proposal.electorate(&self.membership.charter);
        Some(Stage::Answers(asked.names(asked.everyone().difference(proposal.answered))))
    }

    pub(in crate::strong) fn on_denied(
        &mut self,
        from: NodeId,
        (epoch, ballot, denial): (Epoch, Ballot, Denial),
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let Some(current) = &self.membership.proposer.ballot else { return };
        let was_asked = current.electorate(&self.membership.charter).position(from).is_some();
        if !was_asked || (current.epoch, current.ballot) != (epoch, ballot) {
            return; // A stranger, or a former ballot.
        }
        match denial {
            Denial::Outbid(higher) => {
                self.membership.proposer.highest = self.membership.proposer.highest.max(higher.number);
                self.drop_ballot();
                let pause = cx.jitter(self.pause_when_outbid());
                self.membership.timers.set(Timer::Propose, cx.now().after(pause));
            }
            // The same words later: the ballot stands.
            Denial::TooSoon { remaining } => {
                let at = cx.now().after(remaining);
                self.membership.timers.set(Timer::Resend, at);
                if let Some(proposal) = &mut self.membership.proposer.ballot {
                    proposal.too_soon = Some(at);
                }
            }
            Denial::Sealed(_) => self.halt(Halt::Conflict, cx),
            // Its next promise says so.
            Denial::Granted(_) => {
                self.drop_ballot();
                let soon = self.config.settings().retry.nominal();
                self.membership.timers.set(Timer::Propose, cx.now().after(soon));
            }
            Denial::Implausible(floor) => {
                let why = format!(
                    "{from} has never heard of terms as high as {floor}: confirm the term there, or find out who granted it"
                );
                self.halt(Halt::Impossible(why), cx);
            }
            Denial::NotAdjacent => {
                let why = format!("{from} finds that quorums before and after the step need not meet");
                self.halt(Halt::Impossible(why), cx);
            }
        }
    }

    /// The longest pause before the next ballot. Two proposers that outbid each other must once be
    /// further apart than a ballot takes, two round trips, however slow the links are. So it
    /// doubles, up to a longest lease: a cluster whose messages take longer elects nobody either.
    pub(super) fn pause_when_outbid(&mut self) -> LocalSpan {
        let longest = self.membership.charter.body.longest_lease.nominal();
        let window = self.config.settings().window.nominal();
        let pause = window.times(1 << self.membership.proposer.outbid.min(MOST_DOUBLINGS));
        self.membership.proposer.outbid = self.membership.proposer.outbid.saturating_add(1);
        pause.min(longest.max(window))
    }

    /// A charter was adopted: the next step towards the goal, if this one was on the way.
    pub(in crate::strong) fn on_adopted(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        self.drop_ballot();
        self.membership.proposer.outbid = 0;
        let Some(goal) = self.membership.proposer.goal.clone() else { return self.on_adopted_forced(cx) };
        let here = &self.membership.charter.body;
        if *here == goal {
            self.arrived(cx);
        } else if self.membership.proposer.step.as_ref() == Some(here) {
            self.membership.timers.set(Timer::Propose, cx.now());
        } else {
            self.halt(Halt::Conflict, cx);
        }
    }

    /// Returns what is decided by it, if anything.
    pub(in crate::strong) fn on_epoch_deadline(
        &mut self,
        now: LocalTime,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<Arc<Charter>> {
        let timers = &mut self.membership.timers;
        let propose = timers.take_expired(Timer::Propose, now);
        let finish = timers.take_expired(Timer::Finish, now);
        let resend = timers.take_expired(Timer::Resend, now);
        let effect = timers.take_expired(Timer::Effect, now);
        if let Some(Proposal { phase: Phase::Waits(charter), .. }) =
            self.membership.proposer.ballot.as_ref().filter(|_| effect)
        {
            let charter = charter.clone();
            return Some(self.decided(charter, cx));
        }
        let Proposer { ballot, goal, force, .. } = &self.membership.proposer;
        let idle = ballot.is_none();
        let wants = goal.is_some() || force.is_some() || self.membership.acceptor.accepted.is_some();
        // A proposer that was outbid pauses; the timer to finish must not cut that short.
        let paused = self.membership.timers.is_set(Timer::Propose);
        if idle && (propose || finish && !paused) && wants {
            self.propose(cx);
        } else if resend {
            self.resend(cx);
        }
        if finish && self.membership.acceptor.accepted.is_some() {
            // Should this ballot fail too, there is another after it.
            let again = self.config.settings().retry.nominal().times(16);
            self.membership.timers.set(Timer::Finish, now.after(again));
        }
        None
    }
}

impl Proposer {
    /// See [`Explore`](crate::explore::Explore). How often it was outbid decides how long it
    /// pauses.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.opaque(&(&self.goal, &self.step, &self.force, self.highest, self.last_top));
        v.flag(self.ballot.is_some());
        self.ballot.iter().for_each(|proposal| proposal.view(v));
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        if let Some(proposal) = &mut self.ballot {
            proposal.first_promise = proposal.first_promise.map(|at| at.shifted(by));
            proposal.too_soon = proposal.too_soon.map(|at| at.shifted(by));
        }
    }
}

impl Proposal {
    /// How often it was said decides how long it pauses. The time of the first promise is one that
    /// no sound proposer looks at.
    fn view(&self, v: &mut View<'_>) {
        v.opaque(&(self.epoch, self.ballot, &self.left, self.answered, &self.phase));
        v.deadline_opt(self.too_soon);
        v.flag(self.first_promise.is_some());
    }
}
