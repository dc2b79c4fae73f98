//! Stable Omega (Fig. 2 of the paper, corrected): a good leader stays, and no other process
//! believes to lead meanwhile.
//!
//! Under Fig. 1 a process that was cut off comes back with an old, low epoch and demotes a leader
//! that did nothing wrong. Here an epoch that was given up is replaced by one above all that n-f
//! processes know of, so a process that comes back stands behind the leader.
//!
//! # At most one process takes itself for leader (C.1)
//!
//! This holds whatever links do; it rests on clocks alone. P', T' are the longest real times
//! between two refreshes and for an answer that counts ([`config`](super::config)). Let p take its
//! epoch e at time t. By t+P' it has sent it and by t+P'+T' f+1 have it, or p has dropped it. A
//! question for an epoch that begins later meets it (f+1 and n-f share a process) and is answered
//! with something higher. So a lower epoch e' of some q was taken by t+P'+2T', and was on f+1 by
//! t+2P'+3T', or was dropped. Let the read that makes p leader begin at S, not before that. If q
//! still stood for e' at S, its refresh of (S-P'-T', S-T'] succeeded by S, and was sent after the
//! read before had ended: p would see it get newer, and not claim. So at S every lower epoch is
//! dropped, and none is taken later. Nobody claims by a lower epoch at or after S; and q claims by
//! a higher one only if p had dropped e before q's read began. Therefore successive leaders have
//! rising epochs.
//!
//! Time is checked where it is used: an answer after T counts for nothing, a refresh that is sent
//! too late counts as a round that failed, and leadership ends at the reading up to which the last
//! round vouches, whether or not a timer has said so.
//!
//! n = 2f+1 is needed only to get an epoch from f timely answers; with more processes a process
//! needs n-f timely answers once, and f thereafter.

use crate::quorum::NodeSet;
use crate::timers::Timers;
use crate::{Boot, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol};

use super::config::Config;
use super::part::{self, Part};
use super::reader::Reader;
use super::register::{Register, first_number};
use super::rules::{Rules, Sound};
use super::state::{Epoch, Event, Hint, Message, Record, Status};
use super::{Command, Hints};

#[derive(Clone, Copy)]
enum Timer {
    Refresh,
    Round,
    Read,
    Attempt,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// A question for an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    number: u64,
    began: LocalTime,
    answered: NodeSet,
    highest: u64,
    open: bool,
    /// How many were not answered in time, one after the other.
    failed: u32,
}

/// A process of the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stable<R: Rules = Sound> {
    register: Register<R>,
    reader: Reader,
    timers: Timers<4>,
    attempt: Attempt,
    /// The lowest epoch that is alive, by the last read.
    lowest: Epoch,
    /// By which epoch this process leads, if it does and the clock has not ended it.
    leads: Option<Epoch>,
    /// Since when this process stands for its epoch, if it does.
    since: Option<LocalTime>,
    /// The hint that was told last.
    told: Hint,
}

impl<R: Rules> Stable<R> {
    fn step_down(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(epoch) = self.leads.take() {
            cx.publish(Event::Yields { epoch });
        }
    }

    fn ask(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        self.attempt.number += 1;
        self.attempt.began = now;
        self.attempt.answered = NodeSet::from_iter([self.register.here]);
        self.attempt.highest = self.register.highest();
        self.attempt.open = true;
        self.register.to_others(Message::GetEpoch { attempt: self.attempt.number }, cx);
        let after = if self.attempt.failed < self.register.config.rules().rests_after() {
            self.register.pace.timeout.plus(crate::time::LocalSpan::from_nanos(1))
        } else {
            self.register.pace.period
        };
        self.timers.set(Timer::Attempt, now.after(after));
        self.check_attempt(cx);
    }

    fn answered(&mut self, from: NodeId, (attempt, serial): (u64, u64), cx: &mut Context<'_, Self>) {
        let Some(position) = self.register.config.access().position(from) else { return };
        let rules = self.register.config.rules();
        let late = cx.now() > self.attempt.began.after(self.register.pace.timeout);
        let closed = !self.attempt.open && rules.closes_attempts();
        if attempt != self.attempt.number || closed || late && rules.attempts_end() {
            return;
        }
        self.attempt.highest = self.attempt.highest.max(serial);
        self.attempt.answered.insert(position);
        self.check_attempt(cx);
    }

    fn check_attempt(&mut self, cx: &mut Context<'_, Self>) {
        if !self.register.config.access().is_read(self.attempt.answered) {
            return;
        }
        self.attempt.open = false;
        if self.register.config.rules().stops_asking() {
            self.timers.clear(Timer::Attempt);
        }
        let serial = self.attempt.highest.max(self.register.serial) + 1;
        self.register.take_epoch(serial, cx);
        self.since = Some(cx.now());
        self.timers.clear(Timer::Round);
        self.timers.set(Timer::Refresh, cx.now().after(self.register.pace.period));
    }

    fn refresh(&mut self, cx: &mut Context<'_, Self>) {
        let succeeded = self.register.refresh(cx);
        let now = cx.now();
        self.timers.set(Timer::Refresh, now.after(self.register.pace.period));
        if let Some(ends) = self.register.round_ends() {
            self.timers.set(Timer::Round, ends.after(crate::time::LocalSpan::from_nanos(1)));
        }
        if succeeded {
            self.succeed(cx);
        }
    }

    fn tell_leadership(&self, cx: &mut Context<'_, Self>) {
        if let Some((epoch, until)) = self.leads.zip(self.leads_until()) {
            cx.publish(Event::Leads { epoch, until });
        }
    }

    /// C.1: alone at the bottom, by a read that began late enough.
    fn read_done(&mut self, cx: &mut Context<'_, Self>) {
        let rules = self.register.config.rules();
        let before = self.lowest;
        self.lowest = self.reader.leader(&self.register);
        let lowest = if rules.judges_this_read() { self.lowest } else { before };
        let wait = self.register.config.wait(self.register.pace);
        let since = self.since.or(if rules.needs_epoch() { None } else { Some(LocalTime::ZERO) });
        let late_enough =
            since.zip(self.reader.completed).is_some_and(|(since, began)| began >= since.after(wait));
        let next = cx.now().after(self.register.config.gap(self.register.pace.bound));
        if lowest == self.register.epoch() && late_enough && self.leads.is_none() {
            self.leads = Some(lowest);
            // Two fields of this process: no read says anything of them.
            invariant!(rules, self.since.is_some(), "who leads stands for an epoch (C.1)");
            self.tell(cx);
            self.tell_leadership(cx);
        } else if lowest != self.register.epoch() && !rules.outlives_reads() {
            self.step_down(cx);
        }
        self.timers.set(Timer::Read, next);
        self.tell(cx);
    }

    /// Until when this process leads, if it does.
    fn leads_until(&self) -> Option<LocalTime> {
        let until = self.register.vouched_until();
        let clock = self.register.config.rules().ends_by_the_clock();
        let until =
            if clock { until } else { until.map(|until| until.after(self.register.pace.period.times(1000))) };
        until.filter(|_| self.leads.is_some())
    }

    fn hint_at(&self, now: LocalTime) -> Hint {
        let me = self.register.me;
        let leads = self.leads_until().filter(|until| now < *until).and(self.leads);
        if let Some(epoch) = leads {
            return Hint { leader: Some(me), epoch };
        }
        let other = self.lowest.process.filter(|process| *process != me);
        other.map_or(Hint::default(), |_| Hint { leader: other, epoch: self.lowest })
    }

    fn tell(&mut self, cx: &mut Context<'_, Self>) {
        let hint = self.hint_at(cx.now());
        if hint != self.told {
            self.told = hint;
            cx.publish(Event::Hint(hint));
        }
    }
}

impl<R: Rules> Part for Stable<R> {
    type Rules = R;

    fn register(&self) -> &Register<R> {
        &self.register
    }

    fn register_mut(&mut self) -> &mut Register<R> {
        &mut self.register
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        let read = cx.now().after(self.register.config.gap(self.register.pace.bound));
        self.timers.set(Timer::Read, read);
        self.give_up(cx);
    }

    fn succeed(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Round);
        self.tell_leadership(cx);
    }

    /// Drops its epoch, and leadership with it; asks for a higher one.
    fn give_up(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Refresh);
        self.timers.clear(Timer::Round);
        self.register.close();
        self.since = None;
        self.step_down(cx);
        self.reader.expire(self.register.here);
        self.attempt.failed = 0;
        cx.publish(Event::Adrift);
        self.ask(cx);
        self.tell(cx);
    }

    fn told(&mut self, from: NodeId, status: Status<'_>, cx: &mut Context<'_, Self>) {
        if self.reader.told(from, status, &self.register, cx.now()) {
            self.read_done(cx);
        }
    }

    fn asked(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::GetEpoch { attempt } => {
                let serial = self.register.highest();
                cx.send(from, Message::RetEpoch { attempt, serial }, self.register.ticket);
            }
            Message::RetEpoch { attempt, serial } => self.answered(from, (attempt, serial), cx),
            _ => {}
        }
    }

    fn look_at_timers(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        // A timer that comes later than a process may be late counts as a round that failed, before
        // anything else (D3).
        let late =
            self.timers.at(Timer::Refresh).is_some_and(|due| now > due.after(self.register.config.step()));
        let late = late && self.register.config.rules().gives_up_when_late();
        if self.timers.take_expired(Timer::Round, now) || late {
            self.give_up(cx);
        }
        if self.timers.take_expired(Timer::Attempt, now) {
            self.attempt.failed += 1;
            self.ask(cx);
        }
        if self.timers.take_expired(Timer::Refresh, now) {
            self.refresh(cx);
        }
        if self.timers.take_expired(Timer::Read, now) && self.reader.begin(&self.register, cx) {
            self.read_done(cx);
        }
        self.reader.ask_again(&self.register, cx);
    }

    fn first_timer(&self) -> Option<LocalTime> {
        [self.timers.next(), self.reader.deadline()].into_iter().flatten().min()
    }

    fn done(&mut self, cx: &mut Context<'_, Self>) {
        self.tell(cx);
    }
}

impl<R: Rules> Protocol for Stable<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Record>, cx: &mut Context<'_, Self>) -> Self {
        let number = first_number(boot.incarnation);
        let register = Register::new(config, me, boot, cx);
        let reader = Reader::new(&register, number, cx.now());
        let attempt =
            Attempt { number, began: cx.now(), answered: NodeSet::EMPTY, highest: 0, open: false, failed: 0 };
        let mut stable = Self {
            register,
            reader,
            timers: Timers::default(),
            attempt,
            lowest: Epoch::NOBODY,
            leads: None,
            since: None,
            told: Hint::default(),
        };
        if !stable.register.is_silent() {
            stable.begin(cx);
        }
        stable
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        part::handle(self, input, cx);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        part::next_deadline(self)
    }
}

impl<R: Rules> Elects for Stable<R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        self.leads_until().filter(|until| now < *until)
    }
}

impl<R: Rules> Hints for Stable<R> {
    fn hint(&self, now: LocalTime) -> Hint {
        self.hint_at(now)
    }

    fn epoch(&self) -> Option<Epoch> {
        self.since.map(|_| self.register.epoch())
    }
}
