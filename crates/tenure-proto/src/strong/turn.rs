//! Whose turn it is to try: the weak election (section 9) at work.
//!
//! ```text
//!   own grantor      bound to the leader ───────────┤ F                      the leader is gone
//!   weak leader                                     ├ asks at once
//!   the next one                                    ├── step ──┤ would ask, but its grantor is bound again by then
//!   the one after                                   ├──────── 2 steps ──────┤
//!   who is no member                                ├──── a step for each member ────┼── window ──┤
//! ```
//!
//! A process that is no member may ask at once when its campaign begins (`eager`), for it cannot
//! know whether anybody leads; after that it takes its turn, too.
//!
//! A candidate waits until its own grantor is free or supports itself (erratum E1: the paper prints
//! the condition the wrong way round), then as many steps as there are living members before it,
//! then it asks. A step is about as long as a run takes. So the first member wins before the next
//! one tries; and if it does not campaign, or cannot win, the others have waited for a step.
//!
//! Once runs have met, the turns were of no use: from then on candidates spread out at random, in a
//! window that doubles after three collisions, until a leader renews.
//!
//! While it waits a candidate looks around now and then: it tells its neighbours that it lives, and
//! starts sooner if those before it have fallen silent. With a leader nothing of this is sent.
//!
//! All of it serves liveness alone. Whatever it decides, a run that begins is judged by the same
//! rules.

use crate::detect::weak::{Beat, Turn, Weak};
use crate::{Context, LocalTime, NodeId};

use super::candidate::{Around, Candidate, Timer};
use super::epoch::Epoch;
use super::message::{Event, Message};
use super::rules::Rules;
use super::run::Run;
use super::{Nerio, Process};

/// How many collisions are borne before the window grows.
pub(super) const PATIENCE: u32 = 3;

/// The window grows to eight times its length at most: after a long partition an election must not
/// wait forever.
const MOST_DOUBLINGS: u32 = 3;

/// A candidate's experience from runs that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Patience {
    /// How often others were in the way, or too few within reach, since this process last led.
    pub(super) collisions: u32,
    /// How often in a row a run was followed by another at once, for only its term was too small.
    pub(super) hasty: usize,
    /// A run failed and no leader was in the way, or one that this process never hears: turns are
    /// of no use until it does.
    pub(super) crowded: bool,
    /// The process that was taken for the leader because it held so much.
    pub(super) awaited: Option<NodeId>,
}

impl Candidate {
    /// Another gives back its grants: a candidate that waited for it need not wait any longer. One
    /// that was taken for the leader, and was none, was a rival: runs have met.
    pub(super) fn on_given_back<R: Rules>(
        &mut self,
        by: NodeId,
        freed: bool,
        around: &mut Around<'_, '_, R>,
    ) {
        let awaited = self.patience.awaited.take_if(|awaited| *awaited == by).is_some();
        self.patience.crowded |= awaited;
        if (freed || awaited) && by != around.process.holder.node && self.is_waiting() {
            self.await_turn(around.cx.now(), around);
        }
    }

    /// Whether a campaign that begins here asks at once, before its turn. A process that is no
    /// member hears nothing of the others: only an answer tells it whether anybody leads. Mostly
    /// nobody does, or one does and says so; if runs meet, this one failed and waits for its turn.
    /// One that has met others before, or prefers them, waits in any case.
    pub(super) fn asks_unheard<R: Rules>(&self, around: &Around<'_, '_, R>) -> bool {
        let members = around.process.charter().members();
        let outside = !members.contains(&around.process.holder.node);
        let eager = around.process.config.settings().eager;
        eager && outside && !self.patience.crowded && self.preference.steps(members.len()) == 0
    }

    /// Waits for its turn, which comes no sooner than `earliest`, nor before this node's own
    /// grantor is free.
    pub(super) fn await_turn<R: Rules>(&mut self, earliest: LocalTime, around: &mut Around<'_, '_, R>) {
        let now = around.cx.now();
        let own = around.own.bound_to_another(around.process.holder, now);
        let free = own.map_or(earliest, |grant| grant.until.max(earliest));
        match around.process.weak.turn(around.group, now) {
            Turn::Window { after: 0 } => {
                let steps = self.preference.steps(around.process.charter().members().len());
                let step = around.process.config.settings().retry.nominal();
                self.draw_start(free.after(step.times(steps)), around);
            }
            _ if self.patience.crowded => {
                self.draw_start(free, around);
                self.timers.set(Timer::Look, free);
            }
            _ => {
                self.timers.clear(Timer::Start);
                self.timers.set(Timer::Look, free);
            }
        }
    }

    /// Draws a start in the window W, which doubles after three collisions so that a crowd spreads
    /// out.
    fn draw_start<R: Rules>(&mut self, free: LocalTime, around: &mut Around<'_, '_, R>) {
        let doubled = 1 << self.patience.collisions.saturating_sub(PATIENCE).min(MOST_DOUBLINGS);
        let window = around.process.config.settings().window.nominal().times(doubled);
        let at = free.after(around.cx.jitter(window));
        self.timers.set(Timer::Start, at);
    }

    /// Its turn: after the members before it, and after all of better priority.
    fn turn<R: Rules>(&self, around: &Around<'_, '_, R>) -> Turn {
        let steps = self.preference.steps(around.process.charter().members().len());
        match around.process.weak.turn(around.group, around.cx.now()) {
            Turn::Rank(rank) => Turn::Rank(rank.saturating_add(steps)),
            Turn::Window { after } => Turn::Window { after: after.saturating_add(steps) },
        }
    }

    /// Nobody may lead: finds out whose turn it is, and lets others know that this process lives.
    pub(super) fn look<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        if !self.is_waiting() {
            return;
        }
        let now = around.cx.now();
        if around.own.bound_to_another(around.process.holder, now).is_some() {
            return self.await_turn(now, around);
        }
        if let Some(grant) = around.own.grant.filter(|grant| grant.holder != around.process.holder) {
            around.process.weak.lapsed(grant.holder.node, grant.until);
        }
        self.look_for_weak_leader(around);
        let interval = around.process.config.settings().retry.nominal();
        let turn = self.turn(around);
        match (self.timers.at(Timer::Start), turn) {
            (None, Turn::Window { after }) => self.draw_start(now.after(interval.times(after)), around),
            (None, Turn::Rank(0)) => return self.timers.set(Timer::Start, now),
            (None, Turn::Rank(rank)) => {
                let late = interval.times(rank).plus(around.cx.jitter(interval.fraction(1, 2)));
                self.timers.set(Timer::Start, now.after(late));
                // Mostly somebody leads before the next look: nothing need be said yet.
                return self.timers.set(Timer::Look, now.after(interval));
            }
            // Those before it have fallen silent meanwhile.
            (Some(at), Turn::Rank(rank)) if !self.patience.crowded => {
                self.timers.set(Timer::Start, at.min(now.after(interval.times(rank))));
            }
            (Some(_), _) => {}
        }
        around.process.say_here(now, around.cx);
        self.timers.set(Timer::Look, now.after(interval));
    }

    /// Whether only the term was too small, and a larger one is known now: then there is no need to
    /// wait. Not forever: each round should reach the top of one grantor more.
    pub(super) fn hastens<R: Rules>(&mut self, run: &Run, around: &Around<'_, '_, R>) -> bool {
        let members = around.process.charter().members().len();
        let next = around.own.largest_term(around.process).max(self.hint).next();
        let hastens = run.all_stale && next > run.request.term && self.patience.hasty < members;
        self.patience.hasty = if hastens { self.patience.hasty + 1 } else { 0 };
        hastens
    }

    /// When a run that failed for its term may be followed by another: a term that cannot be had is
    /// not asked for without a pause, whatever chance says.
    pub(super) fn pause<R: Rules>(&mut self, run: &Run, around: &mut Around<'_, '_, R>) -> LocalTime {
        let now = around.cx.now();
        let retry = around.process.config.settings().retry.nominal();
        if let Some(wait) = run.held_back {
            let wait = wait.max(retry);
            let (group, term) = (around.group, run.request.term);
            around.cx.publish(Event::HeldBack { group, term, wait });
            // Whatever made it ask for so much, the grantors have said what is enough.
            self.hint = run.told;
            return now.after(wait);
        }
        if run.all_stale && !run.nacks.is_empty() { now.after(retry.times(4)) } else { now }
    }
}

impl<R: Rules> Process<R> {
    /// Lets the neighbours on the ring know that this process lives, unless it has spoken just now.
    fn say_here(&mut self, now: LocalTime, cx: &mut Context<'_, Nerio<R>>) {
        let interval = self.config.settings().retry.nominal();
        if self.spoke.is_some_and(|spoke| now < spoke.after(interval)) {
            return;
        }
        self.spoke = Some(now);
        let neighbours = self.weak.neighbours(now);
        if neighbours.is_empty() {
            return;
        }
        let (epoch, beats) = (self.membership.epoch(), self.weak.beats(now));
        for to in neighbours {
            cx.send(to, Message::Here { epoch, beats: beats.clone() }, None);
        }
    }

    /// Another lives, and knows of others who do. That it was heard is known already.
    pub(super) fn on_here(&mut self, epoch: Epoch, beats: &[Option<Beat>], now: LocalTime) {
        if epoch == self.membership.epoch() {
            self.weak.passed_on(beats, now);
        }
    }
}
