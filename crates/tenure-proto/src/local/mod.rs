//! Local leadership after Fetzer and Cristian: a leader for every partition.
//!
//! A strong leader needs a quorum; a process that is cut off has none. A **local** leader is chosen
//! by the processes that can talk to each other in time, however few they are. Several may lead at
//! once, in different partitions, and each knows the members of its own: its supporters. With
//! `majority` set more than half of all members must support a leader, and there is at most one in
//! the whole system: no split brain.
//!
//! # Guarantees
//!
//! `supports(q, p)` means that p leads now, by its own clock, and q is in its support set. The
//! classes of the closure of that relation are the **logical partitions**.
//!
//! | | | needs |
//! |---|---|---|
//! | SO | nobody supports two leaders at any instant | clocks within ρ |
//! | LS | a leader supports itself | clocks within ρ |
//! | T | a partition that has been stable for κ has had a leader in that time | δ, σ |
//! | BI | a process that has been connected to a leader for κ supports it | δ, σ |
//!
//! SO and LS give at most one leader a logical partition. **Stable** means: all inside are
//! connected (every message takes at most δ, every alarm at most σ), and all outside are beyond Δ
//! or silent. Slowness is enough to be outside: that is what [fail-aware
//! datagrams](crate::detect::fail_aware) are for.
//!
//! # The algorithm
//!
//! 1. Each process keeps the set of members that it heard of by a *fast* message within `expires`:
//!    its [alive set](crate::detect::alive). The first of its own alive set asks every member to
//!    support it, with an **Election** every EP; all other processes are silent.
//! 2. A process that receives a fast Election supports it if it is not bound to another and the
//!    asker is the first of *its* alive set. Supporting **binds** it to the asker for `lockTime` on
//!    its own clock. It answers in any case.
//! 3. The asker leads if everybody in its alive set supports it, itself included, and it was in its
//!    own target set, which means that it had asked less than `expires` before. The lease ends
//!    `lockTime·(1-2ρ)` after the Election was **sent**.
//! 4. If not all have answered after the time that fast answers take, it has failed, and sets its
//!    supporters free with a **Release**: but never while an older lease of its own stands.
//!
//! # Why it is safe
//!
//! Let p send its request at T on its clock and q bind itself at R on q's. p leads for at most
//! `lockTime(1-2ρ)/(1-ρ)` of real time after T, and R is later than T. In that time q's clock shows
//! at most `lockTime(1-2ρ)(1+ρ)/(1-ρ) <= lockTime`. So the time in which q supports p lies within
//! q's lock. Locks of q to different processes do not overlap: a new one begins when the old one is
//! over, or after a Release of the very request by which q is bound, and p sends that only when the
//! request has not succeeded and no older lease stands. No message delay is assumed anywhere in
//! this.
//!
//! A clock that goes back breaks ρ. Until it has caught up the process is silent, and a lease that
//! it held is over for good: it would last longer than the locks behind it. A clock that is soon
//! set right again, or a stray reading, then breaks nothing.
//!
//! A process that has forgotten its lock supports nobody, itself included, for `lockTime` after its
//! start. A restart within one boot remembers. It asks no earlier than Δ+δ after its start: then
//! every fast Election of its former life has been handled, and cannot take the place of a newer
//! one in somebody's lock.
//!
//! # How a driver uses it
//!
//! Settings are checked by [`Settings::validate`], which names the inequality that does not hold.
//! The driver calls [`Protocol::start`], hands over each datagram with the reading at which it left
//! the network, and calls again at [`Protocol::next_deadline`]; a wake-up more than σ late is a
//! performance failure, which costs liveness alone. Effects are `Remember` (memory that outlives
//! the process but not the boot), `Publish` and `Send`, also to itself. Nothing goes to disk.
//! [`Elects::leadership`] and [`Local::view`] compare the clock at the moment of use.
//!
//! | module | holds |
//! |---|---|
//! | `config` | every inequality of the constants |
//! | `rules` | every safety rule, one function each |
//! | `asker` | steps 1, 3 and 4 |
//! | `supporter` | step 2 |
//! | `collate` | answers along a tree |
//! | `message` | the vocabulary |

mod asker;
mod collate;
mod config;
mod message;
mod rules;
mod supporter;
#[cfg(test)]
mod tests;

pub use config::{Config, Constants, Inequality, Refused, Settings, Timing};
pub use message::{Body, Command, Datagram, Event, Lease, Lock, Promise, RequestId, View};
pub use rules::{Rules, Sound};

use crate::detect::fail_aware::Receipt;
use crate::detect::{AliveSet, FailAware};
use crate::quorum::NodeSet;
use crate::timers::Timers;
use crate::{Boot, BootKind, Context, Elects, GroupId, Incarnation, Input, LocalTime, NodeId, Protocol};

use asker::Round;
use collate::{Collation, Reply};
use supporter::Asked;

/// An alarm that the machine waits for.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// To ask, or to see whether it may.
    Ask,
    /// For answers to its request.
    Decide,
    /// For answers that it passes on.
    PassOn,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// One process of one local group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local<R: Rules = Sound> {
    config: Config<R>,
    me: usize,
    incarnation: Incarnation,
    /// The largest reading seen: one below it proves nothing.
    latest: LocalTime,
    /// Whether the clock was behind it when it was read last.
    behind: bool,
    datagrams: FailAware,
    alive: AliveSet,
    /// How often each has let others have their turn, as far as is known here: with its position
    /// the order of all.
    turns: Vec<u64>,
    /// To whom this process is bound.
    lock: Option<Lock>,
    /// Until when it supports nobody.
    silent_until: LocalTime,
    /// The request that is not decided yet.
    round: Option<Round>,
    /// How many requests it has made, and when it made the last one.
    asked: u64,
    last_sent: LocalTime,
    /// The lease by which it leads, until that ends.
    lease: Option<Lease>,
    led_since: LocalTime,
    /// Its view of its logical partition.
    view: Option<View>,
    /// Answers that wait for others on the tree, by asker.
    collations: Vec<Option<Collation>>,
    /// Until when requests are answered directly, after how many failures, and when one was last.
    direct_until: LocalTime,
    failures: u32,
    last_direct: LocalTime,
    timers: Timers<3>,
}

impl<R: Rules> Protocol for Local<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Datagram;
    type Record = Promise;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Promise>, cx: &mut Context<'_, Self>) -> Self {
        let (settings, constants) = (config.settings(), config.constants());
        let (now, members) = (cx.now(), settings.members.len());
        let timing = settings.timing;
        let me = settings.members.iter().position(|member| *member == me).unwrap_or(0);
        let free = Promise { lock: None, silent_until: LocalTime::ZERO };
        let wait = now.after(timing.tick).after(constants.lock);
        let promise = match &boot.kind {
            BootKind::Founding => free,
            BootKind::SameBoot { remembered } => remembered.last().copied().unwrap_or(free),
            BootKind::Rebooted | BootKind::Amnesia => Promise { silent_until: wait, ..free },
        };
        let mut timers = Timers::default();
        let former = timing.drift.longest(timing.fast.plus(timing.delay)).plus(timing.tick);
        let first = if boot.kind == BootKind::Founding { now } else { now.after(former) };
        timers.set(Timer::Ask, first);
        let local = Self {
            config: config.clone(),
            me,
            incarnation: boot.incarnation,
            latest: now,
            behind: false,
            datagrams: FailAware::new(config.link(), (me, boot.incarnation), members),
            alive: AliveSet::new(members, constants.expires),
            turns: vec![0; members],
            lock: promise.lock,
            silent_until: promise.silent_until,
            round: None,
            asked: 0,
            last_sent: first,
            lease: None,
            led_since: now,
            view: None,
            collations: vec![None; members],
            direct_until: LocalTime::ZERO,
            failures: 0,
            last_direct: LocalTime::ZERO,
            timers,
        };
        local.remember(cx);
        if promise.silent_until > now {
            cx.publish(Event::Silent { until: promise.silent_until });
        }
        local
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        self.behind = cx.now() < self.latest;
        if self.behind {
            self.distrust_clock(cx);
            if !self.config.settings().rules.acts_while_behind() {
                return; // A message may be lost, deadlines wait, and a leader that resigns leads no more.
            }
        }
        self.latest = self.latest.max(cx.now());
        match input {
            Input::Message { from, received, message } => self.receive(from, received, &message, cx),
            Input::Command(Command::Resign) => self.step_down(cx),
            Input::Deadline => {
                if self.timers.take_expired(Timer::Decide, cx.now()) {
                    self.decide(cx);
                }
                if self.timers.take_expired(Timer::PassOn, cx.now()) {
                    self.pass_on_all(cx);
                }
                if self.timers.take_expired(Timer::Ask, cx.now()) {
                    self.wake(cx);
                }
            }
        }
    }

    /// A clock that went back is not asked for anything until it has caught up.
    fn next_deadline(&self) -> Option<LocalTime> {
        let waits = if self.behind { self.latest } else { LocalTime::ZERO };
        self.timers.next().map(|next| next.max(waits))
    }
}

impl<R: Rules> Elects for Local<R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        self.lease(now).map(|lease| lease.until)
    }
}

impl<R: Rules> Local<R> {
    /// The lease by which this process leads at `now`, if it leads.
    pub fn lease(&self, now: LocalTime) -> Option<Lease> {
        self.lease.filter(|lease| now >= self.latest && now < lease.until)
    }

    /// The reading until which this process is bound, or supports nobody: a process that takes its
    /// place must not support anybody else before that.
    pub fn bound_until(&self) -> LocalTime {
        self.lock.map_or(self.silent_until, |lock| lock.until.max(self.silent_until))
    }

    /// Its view of its logical partition at `now`: as its leader, or by the leader's word.
    pub fn view(&self, now: LocalTime) -> Option<View> {
        let leads = |lease: Lease| View {
            leader: self.config.settings().members[self.me],
            members: lease.supporters,
            until: lease.until,
        };
        self.lease(now).map(leads).or(self.view.filter(|view| now < view.until))
    }

    /// The members at these positions.
    pub fn names(&self, set: NodeSet) -> Vec<NodeId> {
        let members = &self.config.settings().members;
        set.positions().filter_map(|position| members.get(position).copied()).collect()
    }

    /// The members that it holds for alive, as of its last look.
    pub fn alive(&self) -> NodeSet {
        self.alive.members()
    }

    /// The clock went back: no length that it has measured is certain. The lease and the request
    /// under way are over for good, and nobody is set free. Locks only last longer, which is safe.
    fn distrust_clock(&mut self, cx: &mut Context<'_, Self>) {
        if self.config.settings().rules.leads_after_step_back() {
            return;
        }
        self.round = None;
        self.view = None;
        self.timers.clear(Timer::Decide);
        if self.lease.take_if(|lease| self.latest < lease.until).is_some() {
            cx.publish(Event::Stepped { turn: self.turns[self.me] });
        }
    }

    fn leads(&self, now: LocalTime) -> bool {
        self.lease(now).is_some()
    }

    /// Its support set if it leads.
    fn supporters(&self, now: LocalTime) -> NodeSet {
        self.lease(now).map_or(NodeSet::EMPTY, |lease| lease.supporters)
    }

    /// Whether `one` is preferred to `other`: by turns, then by name.
    fn goes_before(&self, one: usize, other: usize) -> bool {
        (self.turns[one], one) < (self.turns[other], other)
    }

    fn send(&mut self, to: usize, body: Body, cx: &mut Context<'_, Self>) {
        let header = self.datagrams.stamp(to, cx.now());
        let fingerprint = self.config.constants().fingerprint;
        let datagram = Datagram { header, fingerprint, turn: self.turns[self.me], body };
        cx.send(self.config.settings().members[to], datagram, None);
    }

    /// A datagram: its stamps are kept whatever it says, and what is slow is answered with stamps.
    fn receive(&mut self, from: NodeId, received: LocalTime, message: &Datagram, cx: &mut Context<'_, Self>) {
        let Datagram { header, fingerprint, turn, body } = message;
        let Some(sender) = self.position(from) else { return };
        if *fingerprint != self.config.constants().fingerprint {
            return;
        }
        let rules = self.config.settings().rules.clone();
        let Some(receipt) = self.datagrams.receive(&rules, sender, header, received) else { return };
        let name = (header.incarnation, header.number);
        let Receipt { fast, bound, newest } = receipt;
        cx.publish(Event::Heard { from, name, received, bound, fast });
        if sender != self.me {
            self.note_turn(sender, *turn, newest, cx.now());
            if receipt.wants_helper() && *body != Body::Helper {
                self.send(sender, Body::Helper, cx);
            }
        }
        let counts = rules.counts(fast);
        if counts && sender != self.me {
            self.alive.heard(sender, received);
        }
        match *body {
            Body::Election { request, alive, collate, members } if counts => {
                let asked = Asked { asker: sender, request, alive, collate, members, received };
                self.consider(&asked, cx);
            }
            Body::Reply { root, request, answered, support } => {
                let Some(root) = self.position(root) else { return };
                let reply = Reply { root, request, answered, support };
                self.hear_reply(reply, sender, counts.then_some(received), cx);
            }
            Body::Release { request } => self.set_free(sender, request, cx),
            Body::Election { .. } | Body::Helper => {}
        }
    }

    fn position(&self, member: NodeId) -> Option<usize> {
        self.config.settings().members.iter().position(|known| *known == member)
    }

    /// An answer to this process's own request, or one to pass on; and when it came, if it counts.
    fn hear_reply(
        &mut self,
        reply: Reply,
        sender: usize,
        counted: Option<LocalTime>,
        cx: &mut Context<'_, Self>,
    ) {
        let Reply { root, request, answered, support } = reply;
        if root != self.me {
            let vouches = self.config.settings().rules.vouches(counted.is_some()); // Rule 3 of the tree.
            let answered = if vouches { answered } else { NodeSet::EMPTY };
            return self.collect(sender, Reply { answered, ..reply }, cx);
        }
        let Some(received) = counted else { return };
        for who in answered.positions().filter(|who| *who != self.me) {
            self.alive.heard(who, received);
        }
        self.count_replies(request, support, cx);
    }

    /// Takes the turn that a process reports, if it is news. A process that may now be the first
    /// looks again.
    fn note_turn(&mut self, who: usize, turn: u64, newest: bool, now: LocalTime) {
        if !newest || self.turns[who] == turn {
            return;
        }
        self.turns[who] = turn;
        let earliest = self.last_sent.after(self.config.constants().alarm).max(now);
        if self.timers.at(Timer::Ask).is_some_and(|at| at > earliest) {
            self.timers.set(Timer::Ask, earliest);
        }
    }
}
