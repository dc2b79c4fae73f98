//! Omega with O(n) links in the end: only the leader refreshes, and only a process that suspects it
//! reads.
//!
//! The paper sketches this in a paragraph; the points that it leaves open are decided here. A
//! process follows, leads, or is idle. A process that suspects its leader *probes*: two collects
//! with a gap in between; an epoch whose state changed from the first to the second is active. It
//! follows the lowest active epoch below its own, and leads if there is none. The leader that a
//! process reports does not change while it probes, else endless false suspicions would be endless
//! changes of mind.
//!
//! *Views accumulate.* Two collects may be answered by different processes, and the second may show
//! an older truth that the first missed: a process that is long inactive looks active. A state once
//! seen is therefore never unseen; each such mirage can then appear at most n-1 times.
//!
//! *Why it ends.* Take the least epoch e that its process keeps forever. Once the messages of
//! lower ones are gone nobody refreshes below e. Its process, if it follows something lower,
//! suspects that, probes, and revives e. Everybody else hears of it, probes, finds it active and
//! least, and follows; every later probe has the same outcome. If its refreshes reach all within
//! *some* bound, the time before suspicion grows beyond it, and from then on only the 2(n-1) links
//! from and to the leader are used.

use crate::quorum::NodeSet;
use crate::time::LocalSpan;
use crate::timers::Timers;
use crate::{Boot, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol};

use super::config::Config;
use super::part::{self, Part};
use super::register::{Register, first_number};
use super::rules::{Rules, Sound};
use super::state::{Epoch, Event, Hint, Message, Record, State, Status};
use super::{Command, Hints};

#[derive(Clone, Copy)]
enum Timer {
    Refresh,
    Round,
    /// Between the two collects of a probe.
    Gap,
    Suspect,
    /// Those who have not answered a collect are asked again.
    Again,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Knows of no leader: it probes.
    Idle,
    Follower,
    Leader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Probe {
    None,
    First,
    Gap,
    Second,
}

/// A process of the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lean<R: Rules = Sound> {
    register: Register<R>,
    timers: Timers<5>,
    role: Role,
    hint: Hint,
    probe: Probe,
    /// Whether the probe is due to suspicion of the leader.
    suspects: bool,
    read: u64,
    answered: NodeSet,
    /// All that collects have ever shown.
    views: Vec<State>,
    /// The same at the end of the first collect of this probe.
    before: Vec<State>,
    /// How long the leader may be silent.
    patience: LocalSpan,
    /// How long to wait before asking again those who have not answered.
    again: LocalSpan,
}

impl<R: Rules> Lean<R> {
    fn first_patience(&self) -> LocalSpan {
        self.register.pace.period.plus(self.register.pace.timeout.times(2))
    }

    fn begin_probe(&mut self, suspects: bool, cx: &mut Context<'_, Self>) {
        if self.probe != Probe::None {
            return;
        }
        self.timers.clear(Timer::Suspect);
        self.suspects = suspects;
        self.probe = Probe::First;
        self.collect(cx);
    }

    fn collect(&mut self, cx: &mut Context<'_, Self>) {
        self.read += 1;
        self.answered = NodeSet::EMPTY;
        self.again = self.register.config.asks_again_after();
        self.timers.set(Timer::Again, cx.now().after(self.again));
        self.register.to_others(Message::Collect { read: self.read }, cx);
        let registry = self.register.registry.clone();
        self.see(self.register.here, &registry, cx);
    }

    /// Links may lose, so those who have not answered are asked again, ever more rarely.
    fn ask_again(&mut self, cx: &mut Context<'_, Self>) {
        let most = self.register.config.asks_again_after().times(8);
        self.again = self.again.times(2).min(most);
        self.timers.set(Timer::Again, cx.now().after(self.again));
        for (position, other) in self.register.config.access().members().iter().enumerate() {
            if !self.answered.contains(position) {
                cx.send(*other, Message::Collect { read: self.read }, None);
            }
        }
    }

    fn see(&mut self, position: usize, registry: &[State], cx: &mut Context<'_, Self>) {
        for (view, told) in self.views.iter_mut().zip(registry) {
            view.merge(*told);
        }
        self.answered.insert(position);
        if !self.register.config.access().is_read(self.answered) {
            return;
        }
        self.timers.clear(Timer::Again);
        if self.probe == Probe::First {
            self.before.clone_from(&self.views);
            self.probe = Probe::Gap;
            self.timers.set(Timer::Gap, cx.now().after(self.gap()));
        } else {
            self.decide(cx);
        }
    }

    /// Long enough for every member that was seen: an active one has written something newer by the
    /// end of it.
    fn gap(&self) -> LocalSpan {
        let bounds = self.views.iter().map(|view| self.register.may_be_silent(view));
        let bound = bounds.max().unwrap_or(self.register.pace.bound).max(self.register.pace.bound);
        self.register.config.gap(bound)
    }

    fn decide(&mut self, cx: &mut Context<'_, Self>) {
        self.probe = Probe::None;
        let changed = |member: usize| self.views[member].is_newer(&self.before[member]);
        let others = (0..self.views.len()).filter(|member| *member != self.register.here && changed(*member));
        let active: Vec<Epoch> = others.map(|member| self.views[member].epoch).collect();
        let own = self.register.epoch();
        let low = self.register.config.rules().least(&active);
        if active.is_empty() || own < low {
            return self.lead(cx);
        }
        if self.role == Role::Leader {
            self.timers.clear(Timer::Refresh);
            self.timers.clear(Timer::Round);
            self.register.close();
        }
        self.role = Role::Follower;
        if self.hint.epoch == low {
            if self.suspects {
                self.patience = self.patience.plus(self.register.pace.period);
            }
        } else {
            self.patience = self.first_patience();
        }
        self.set_hint(Hint { leader: low.process, epoch: low }, cx);
        self.timers.set(Timer::Suspect, cx.now().after(self.patience));
    }

    /// Nobody lower is active: the epoch, even one that was long inactive, is revived.
    fn lead(&mut self, cx: &mut Context<'_, Self>) {
        let led = self.role == Role::Leader;
        self.role = Role::Leader;
        self.set_hint(Hint { leader: Some(self.register.me), epoch: self.register.epoch() }, cx);
        if !led {
            self.refresh(cx);
        }
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
    }

    fn refresh(&mut self, cx: &mut Context<'_, Self>) {
        let succeeded = self.register.refresh(cx);
        self.timers.set(Timer::Refresh, cx.now().after(self.register.pace.period));
        if let Some(ends) = self.register.round_ends() {
            self.timers.set(Timer::Round, ends.after(LocalSpan::from_nanos(1)));
        }
        if succeeded {
            self.succeed(cx);
        }
    }

    /// Too few answered the leader in time: a higher epoch, inactive at first.
    fn fail(&mut self, cx: &mut Context<'_, Self>) {
        self.register.slow_down(cx);
        self.give_up(cx);
    }
}

impl<R: Rules> Part for Lean<R> {
    type Rules = R;

    fn register(&self) -> &Register<R> {
        &self.register
    }

    fn register_mut(&mut self) -> &mut Register<R> {
        &mut self.register
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        let serial = self.register.serial;
        self.register.take_epoch(serial, cx);
        self.begin_probe(false, cx);
    }

    fn succeed(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Round);
        if let Some(until) = self.register.vouched_until().filter(|_| self.role == Role::Leader) {
            cx.publish(Event::Leads { epoch: self.hint.epoch, until });
        }
    }

    fn give_up(&mut self, cx: &mut Context<'_, Self>) {
        self.timers.clear(Timer::Round);
        // Above all that it knows of. Only who leads can fail here, so to pass the serial of one
        // that has failed often, one by one, takes as many leaderships that are lost.
        let serial = self.register.highest() + 1;
        self.register.take_epoch(serial, cx);
        self.timers.clear(Timer::Refresh);
        self.role = Role::Idle;
        if self.register.config.rules().stops_leading() {
            self.set_hint(Hint::default(), cx);
        }
        self.begin_probe(false, cx);
    }

    fn refreshed(&mut self, from: NodeId, (state, round): (State, u64), cx: &mut Context<'_, Self>) {
        let news = self.register.refreshed(from, (state, round), cx);
        if !news || self.register.is_silent() {
            return; // Old news are no reason for anything.
        }
        let leader = self.hint.leader == Some(from);
        match self.role {
            Role::Follower if leader && state.epoch == self.hint.epoch => {
                if self.probe == Probe::None {
                    self.timers.set(Timer::Suspect, cx.now().after(self.patience));
                }
            }
            // Lower than what is followed; or the leader has given up the epoch by which it is
            // followed.
            Role::Follower if state.epoch < self.hint.epoch || leader => self.begin_probe(false, cx),
            Role::Leader if state.epoch < self.register.epoch() => self.begin_probe(false, cx),
            Role::Follower | Role::Leader | Role::Idle => {}
        }
    }

    fn told(
        &mut self,
        from: NodeId,
        Status { read, registry, recovers }: Status<'_>,
        cx: &mut Context<'_, Self>,
    ) {
        let collects = matches!(self.probe, Probe::First | Probe::Second);
        let Some(position) = self.register.config.access().position(from) else { return };
        if collects && read == self.read && !recovers {
            self.see(position, registry, cx);
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
        if self.timers.take_expired(Timer::Gap, now) {
            self.probe = Probe::Second;
            self.collect(cx);
        }
        if self.timers.take_expired(Timer::Suspect, now) {
            self.begin_probe(true, cx);
        }
        if self.timers.take_expired(Timer::Again, now) {
            self.ask_again(cx);
        }
    }

    fn first_timer(&self) -> Option<LocalTime> {
        self.timers.next()
    }
}

impl<R: Rules> Protocol for Lean<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Record>, cx: &mut Context<'_, Self>) -> Self {
        let read = first_number(boot.incarnation);
        let register = Register::new(config, me, boot, cx);
        let views = vec![State::NOTHING; register.registry.len()];
        let mut lean = Self {
            timers: Timers::default(),
            role: Role::Idle,
            hint: Hint::default(),
            probe: Probe::None,
            suspects: false,
            read,
            answered: NodeSet::EMPTY,
            before: views.clone(),
            views,
            patience: LocalSpan::ZERO,
            again: LocalSpan::ZERO,
            register,
        };
        lean.patience = lean.first_patience();
        if !lean.register.is_silent() {
            lean.begin(cx);
        }
        lean
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        part::handle(self, input, cx);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        part::next_deadline(self)
    }
}

impl<R: Rules> Elects for Lean<R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let until = self.register.vouched_until().filter(|_| self.role == Role::Leader)?;
        (now < until).then_some(until)
    }
}

impl<R: Rules> Hints for Lean<R> {
    fn hint(&self, _now: LocalTime) -> Hint {
        self.hint
    }

    fn epoch(&self) -> Option<Epoch> {
        (!self.register.is_silent()).then(|| self.register.epoch())
    }
}
