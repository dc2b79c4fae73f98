//! Omega (Fig. 1 of the paper, corrected): every process refreshes, every process reads.
//!
//! All n(n-1) links are used forever. In return a leader is found within about ten periods of the
//! crash of the last one.

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
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// A process of the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Omega<R: Rules = Sound> {
    register: Register<R>,
    reader: Reader,
    timers: Timers<3>,
    hint: Hint,
}

impl<R: Rules> Omega<R> {
    fn refresh(&mut self, cx: &mut Context<'_, Self>) {
        let succeeded = self.register.refresh(cx);
        let now = cx.now();
        self.timers.set(Timer::Refresh, now.after(self.register.pace.period));
        self.watch_round();
        if succeeded {
            self.succeed(cx);
        }
    }

    /// The timer of the round, a moment after the last instant at which an answer counts.
    fn watch_round(&mut self) {
        match self.register.round_ends() {
            Some(ends) => self.timers.set(Timer::Round, ends.after(crate::time::LocalSpan::from_nanos(1))),
            None => self.timers.clear(Timer::Round),
        }
    }

    fn tell_leadership(&self, cx: &mut Context<'_, Self>) {
        if let (true, Some(until)) =
            (self.hint.leader == Some(self.register.me), self.register.vouched_until())
        {
            cx.publish(Event::Leads { epoch: self.hint.epoch, until });
        }
    }

    /// Too few answered in time.
    fn fail(&mut self, cx: &mut Context<'_, Self>) {
        self.register.slow_down(cx);
        self.give_up(cx);
    }

    fn read_done(&mut self, cx: &mut Context<'_, Self>) {
        let epoch = self.reader.leader(&self.register);
        let next = cx.now().after(self.register.config.reads_after());
        self.timers.set(Timer::Read, next);
        self.set_hint(Hint { leader: epoch.process, epoch }, cx);
    }

    fn set_hint(&mut self, hint: Hint, cx: &mut Context<'_, Self>) {
        let me = Some(self.register.me);
        if hint == self.hint {
            return;
        }
        if self.hint.leader == me && hint.leader != me {
            cx.publish(Event::Yields { epoch: self.hint.epoch });
        }
        self.hint = hint;
        cx.publish(Event::Hint(hint));
        self.tell_leadership(cx);
    }
}

impl<R: Rules> Part for Omega<R> {
    type Rules = R;

    fn register(&self) -> &Register<R> {
        &self.register
    }

    fn register_mut(&mut self) -> &mut Register<R> {
        &mut self.register
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        let serial = self.register.serial;
        self.register.take_epoch(serial, cx);
        self.timers.set(Timer::Refresh, now.after(self.register.pace.period));
        self.timers.set(Timer::Read, now.after(self.register.config.reads_after()));
    }

    fn succeed(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Round);
        self.tell_leadership(cx);
    }

    fn give_up(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Round);
        // A process that has come to allow itself much time fails rarely. One by one its serial
        // would take forever to pass those of processes that do not fail, and it would lead again
        // after every failure: where δ is learnt, one is enough to stand behind all that it knows
        // of.
        let before =
            if self.register.config.learns() { self.register.highest() } else { self.register.serial };
        self.register.take_epoch(before + 1, cx);
        self.reader.expire(self.register.here);
        if self.hint.leader == Some(self.register.me) && self.register.config.rules().stops_leading() {
            self.set_hint(Hint::default(), cx);
        }
    }

    fn told(&mut self, from: NodeId, status: Status<'_>, cx: &mut Context<'_, Self>) {
        if self.reader.told(from, status, &self.register, cx.now()) {
            self.read_done(cx);
        }
    }

    fn look_at_timers(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        if self.timers.take_expired(Timer::Round, now) {
            self.fail(cx);
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
}

impl<R: Rules> Protocol for Omega<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Record>, cx: &mut Context<'_, Self>) -> Self {
        let number = first_number(boot.incarnation);
        let register = Register::new(config, me, boot, cx);
        let reader = Reader::new(&register, number, cx.now());
        let mut omega = Self { register, reader, timers: Timers::default(), hint: Hint::default() };
        if !omega.register.is_silent() {
            omega.begin(cx);
        }
        omega
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        part::handle(self, input, cx);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        part::next_deadline(self)
    }
}

impl<R: Rules> Elects for Omega<R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let until = self.register.vouched_until().filter(|_| self.hint.leader == Some(self.register.me))?;
        (now < until).then_some(until)
    }
}

impl<R: Rules> Hints for Omega<R> {
    fn hint(&self, _now: LocalTime) -> Hint {
        self.hint
    }

    fn epoch(&self) -> Option<Epoch> {
        (!self.register.is_silent()).then(|| self.register.epoch())
    }
}
