//! Writes one's own state to enough others and keeps theirs: every election here is made of these
//! registers.
//!
//! The assertions are about this process's own epochs. A number of a message is below `HIGHEST`
//! (`Message::can_be_from`), and a new epoch is taken above all that were heard of.

use crate::boot::{Boot, BootKind};
use crate::quorum::NodeSet;
use crate::time::{LocalTime, Span};
use crate::{Context, Incarnation, NodeId, Ticket};

use super::Election;
use super::config::{Config, Pace};
use super::rules::Rules;
use super::state::{Epoch, Event, Message, Record, State, Status};

/// The longest that anybody is taken to be silent and alive, where δ is learnt: an election that
/// takes longer is of no use.
const LONGEST_SILENCE: Span = Span::from_millis(3_600_000);

/// One process's own state, what it knows of the others, and the round in which it writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register<R: Rules> {
    pub(super) config: Config<R>,
    pub(super) me: NodeId,
    /// This process's place among the members.
    pub(super) here: usize,
    pub(super) pace: Pace,
    pub(super) serial: u64,
    fresh: u64,
    /// The newest state received of each member, by position. One's own is what was last *sent*
    /// (A3).
    pub(super) registry: Vec<State>,
    round: u64,
    acks: NodeSet,
    /// When the present round was sent, while it is open.
    sent: Option<LocalTime>,
    /// When the last round was sent that succeeded, of this epoch.
    vouched: Option<LocalTime>,
    /// The record that must be durable before this epoch is told to anybody.
    pub(super) ticket: Option<Ticket>,
    /// The last write of each member's state here, by position, if it must be durable before that
    /// member may count on it.
    written: Vec<Option<Ticket>>,
    recovery: Option<Recovery>,
}

/// The outcome of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acked {
    /// Nothing yet.
    Nothing,
    /// The round has just succeeded.
    Succeeded,
    /// An earlier life stood for a higher epoch, which others remember.
    Outrun,
}

/// The states that a process must read again before it answers (D5).
///
/// It acknowledged states that it does not know any more, and a read that meets a write in this
/// process alone would miss it. Once the time `T'` has passed since its start, every round that
/// counts one of its old answers has succeeded or failed. It then reads from enough others, who do
/// know: these states are at least as new as all that it had acknowledged. If *all* others answer,
/// even such as recover themselves, it knows all that anybody still stands for: a process that
/// stands for something knows that itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Recovery {
    /// From when on it reads.
    from: LocalTime,
    reads: bool,
    number: u64,
    /// Those that answered and know what they had acknowledged.
    sound: NodeSet,
    /// All that answered.
    all: NodeSet,
}

impl<R: Rules> Register<R> {
    /// The register after a start. A process that has kept nothing is silent at first.
    pub(super) fn new<P: Election>(
        config: &Config<R>,
        me: NodeId,
        boot: Boot<Record>,
        cx: &mut Context<'_, P>,
    ) -> Self {
        let here = config.access().position(me).unwrap_or(0);
        let members = config.access().members();
        let mut new = Self {
            config: config.clone(),
            me,
            here,
            pace: config.first_pace(),
            serial: 0,
            fresh: 0,
            registry: members.iter().map(|member| config.rules().unheard(*member)).collect(),
            round: first_number(boot.incarnation),
            acks: NodeSet::EMPTY,
            sent: None,
            vouched: None,
            ticket: None,
            written: vec![None; members.len()],
            recovery: None,
        };
        new.restore(&boot.durable);
        let number = new.round;
        match boot.kind {
            BootKind::Founding => {
                new.is_whole(cx);
                return new;
            }
            BootKind::SameBoot { remembered } if remembered.contains(&Record::Whole) => {
                new.restore(&remembered);
                new.keep_all(cx);
            }
            BootKind::Rebooted if config.is_durable() && boot.durable.contains(&Record::Whole) => {
                new.keep_all(cx);
            }
            _ => new.forget(number, cx),
        }
        new.serial = new.serial.max(new.registry[here].epoch.serial) + 1;
        new.fresh = new.registry[here].fresh;
        new
    }

    fn restore(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Whole => {}
                Record::Own { serial } => self.serial = self.serial.max(*serial),
                Record::Entry { of, state } => {
                    let position = self.config.access().position(*of).filter(|_| state.can_be_of(*of));
                    if let Some(position) = position {
                        self.registry[position].merge(*state);
                    }
                }
            }
        }
    }

    /// From now on nothing is missing that this process has acknowledged: a restart may rely on
    /// what it finds.
    fn is_whole<P: Election>(&self, cx: &mut Context<'_, P>) {
        if self.config.is_durable() {
            cx.persist(Record::Whole);
        }
        cx.remember(Record::Whole);
    }

    /// Writes all that is known down anew, one's own state too: memory is empty after a reboot, and
    /// after a restart the disk may lack what memory has, because the write was under way.
    fn keep_all<P: Election>(&mut self, cx: &mut Context<'_, P>) {
        for position in 0..self.registry.len() {
            self.keep(position, self.registry[position], cx);
        }
        self.ticket = self.written[self.here];
        self.is_whole(cx);
    }

    /// Takes a state for the newest of its process, and writes it down.
    fn keep<P: Election>(&mut self, position: usize, state: State, cx: &mut Context<'_, P>) {
        self.registry[position] = state;
        let entry = Record::Entry { of: self.config.access().members()[position], state };
        self.written[position] = self.config.is_durable().then(|| cx.persist(entry.clone()));
        cx.remember(entry);
    }

    fn forget<P: Election>(&mut self, number: u64, cx: &mut Context<'_, P>) {
        if !self.config.rules().keeps_silent() {
            return self.is_whole(cx);
        }
        cx.publish(Event::Recovers);
        let from = cx.now().after(self.config.silence(self.pace));
        self.recovery = Some(Recovery {
            from,
            reads: false,
            number,
            sound: NodeSet::EMPTY,
            all: NodeSet::from_iter([self.here]),
        });
    }

    /// Whether this process has nothing to say yet.
    pub(super) fn is_silent(&self) -> bool {
        self.recovery.is_some()
    }

    /// The epoch that this process would stand for.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch::of(self.serial, self.me)
    }

    /// Takes another epoch: told to nobody before it is kept.
    pub(super) fn take_epoch<P: Election>(&mut self, serial: u64, cx: &mut Context<'_, P>) {
        let (rules, own) = (self.config.rules(), self.registry[self.here].epoch);
        invariant!(rules, serial >= self.serial, "the epochs of a process rise");
        invariant!(rules, Epoch::of(serial, self.me) > own, "an epoch is above all that were told");
        self.serial = serial;
        self.close();
        let own = Record::Own { serial };
        self.ticket = self.config.is_durable().then(|| cx.persist(own.clone()));
        cx.remember(own);
        cx.publish(Event::Stands { epoch: self.epoch() });
    }

    /// Gives answers more time from now on, if δ is learnt. The pace belongs to the epoch, so the
    /// epoch must change.
    pub(super) fn slow_down<P: Election>(&mut self, cx: &mut Context<'_, P>) {
        if let Some(pace) = self.config.slower(self.pace) {
            self.pace = pace;
            cx.publish(Event::Allows { round: pace.round });
        }
    }

    /// No round is open, and none vouches.
    pub(super) fn close(&mut self) {
        (self.sent, self.vouched) = (None, None);
    }

    /// Sends one's state to everybody. Returns whether it suffices that one knows it oneself.
    pub(super) fn refresh<P: Election>(&mut self, cx: &mut Context<'_, P>) -> bool {
        if self.config.rules().is_fresh_at_send() || self.fresh == 0 {
            self.fresh += 1;
        }
        self.publish_own(cx);
        self.round += 1;
        self.sent = Some(cx.now());
        self.acks = NodeSet::EMPTY;
        if self.config.rules().counts_itself() {
            self.acks.insert(self.here);
        }
        let (state, round) = (self.registry[self.here], self.round);
        self.to_others(Message::Refresh { state, round }, cx);
        self.has_succeeded(cx)
    }

    fn publish_own<P: Election>(&mut self, cx: &mut Context<'_, P>) {
        let state = State { epoch: self.epoch(), fresh: self.fresh, bound: self.pace.bound };
        self.registry[self.here] = state;
        cx.remember(Record::Entry { of: self.me, state });
    }

    /// Says the same to all others.
    pub(super) fn to_others<P: Election>(&self, message: Message, cx: &mut Context<'_, P>) {
        let after = if matches!(message, Message::Refresh { .. }) { self.ticket } else { None };
        for other in self.config.access().members() {
            if *other != self.me {
                cx.send(*other, message.clone(), after);
            }
        }
    }

    /// Somebody has written a state of this process down.
    ///
    /// If it has a *newer* one than the last that was sent, that is of an earlier life which this
    /// one forgot. No reader would see the present state behind it, so such an answer does not
    /// count, and the present epoch is good for nothing.
    pub(super) fn acked<P: Election>(
        &mut self,
        from: NodeId,
        (round, ahead): (u64, Option<u64>),
        cx: &mut Context<'_, P>,
    ) -> Acked {
        // The clock decides, not the timer: an answer after T counts for nothing, however late the
        // timer is.
        let open = self.round_ends().is_some_and(|ends| cx.now() <= ends);
        let Some(position) = self.config.access().position(from) else { return Acked::Nothing };
        if round != self.round || self.is_silent() {
            return Acked::Nothing;
        }
        if ahead.is_some_and(|serial| self.is_outrun(serial, cx)) {
            return Acked::Outrun;
        }
        if !open {
            return Acked::Nothing;
        }
        let counted = self.config.rules().counts_senders() || !self.acks.contains(position);
        let free = (0..self.registry.len()).find(|place| !self.acks.contains(*place));
        self.acks.insert(if counted { position } else { free.unwrap_or(position) });
        if self.has_succeeded(cx) { Acked::Succeeded } else { Acked::Nothing }
    }

    /// Whether an earlier life stood for this serial, and so the present one must stand for a
    /// higher one.
    fn is_outrun<P: Election>(&mut self, serial: u64, cx: &mut Context<'_, P>) -> bool {
        let outrun = serial >= self.serial;
        if outrun {
            self.serial = serial;
            cx.publish(Event::Outrun { serial });
        }
        outrun
    }

    fn has_succeeded<P: Election>(&mut self, cx: &mut Context<'_, P>) -> bool {
        if self.sent.is_none() || !self.config.access().is_write(self.acks) {
            return false;
        }
        self.vouched = self.sent.take();
        if !self.config.rules().is_fresh_at_send() {
            self.fresh += 1;
            self.publish_own(cx);
        }
        true
    }

    /// For how long a process may say nothing new that says this of itself. Where δ is known that
    /// is the same for all, whatever one says; where it is learnt there is an end to it, or one
    /// wrong number would keep a dead process alive.
    pub(super) fn may_be_silent(&self, state: &State) -> Span {
        if self.config.learns() { state.bound.min(LONGEST_SILENCE) } else { self.pace.bound }
    }

    /// Until when answers to the open round count.
    pub(super) fn round_ends(&self) -> Option<LocalTime> {
        Some(self.sent?.after(self.pace.timeout))
    }

    /// Until when the last successful round vouches for this process, and the open one does not
    /// speak against it (D3): exclusive.
    pub(super) fn vouched_until(&self) -> Option<LocalTime> {
        let vouched = self.vouched?.after(self.pace.vouches);
        let until = self.round_ends().map_or(vouched, |ends| ends.min(vouched));
        Some(until.after(crate::time::LocalSpan::from_nanos(1)))
    }

    /// Writes down what another says of itself. Returns whether it was news.
    pub(super) fn refreshed<P: Election>(
        &mut self,
        from: NodeId,
        (state, round): (State, u64),
        cx: &mut Context<'_, P>,
    ) -> bool {
        let Some(position) = self.config.access().position(from) else { return false };
        let known = self.registry[position];
        let news = state.is_newer(&known);
        if news {
            self.keep(position, state, cx);
        }
        let after =
            self.written[position].filter(|_| news || self.config.rules().acknowledges_what_is_kept());
        if !self.is_silent() && self.config.rules().acknowledges(known, state) {
            let ahead = known.is_newer(&state).then_some(known.epoch.serial);
            cx.send(from, Message::Ack { round, ahead }, after);
        }
        news
    }

    /// Takes over what another knows of third ones, and writes it down. Not needed to follow a
    /// leader; but a process that forgot what it stood for learns it only from those who still know
    /// ([`Register::acked`]), and this process may be the last one.
    ///
    /// Returns whether this process itself is one that forgot. It might be the only one who hears
    /// of it, if the other forgets too, and it would wait for that state to get newer while
    /// everybody else goes by the present one.
    pub(super) fn learn<P: Election>(&mut self, registry: &[State], cx: &mut Context<'_, P>) -> bool {
        let here = self.here;
        for (position, told) in registry.iter().enumerate().filter(|(position, _)| *position != here) {
            if !told.is_newer(&self.registry[position]) {
                continue;
            }
            if self.config.rules().keeps_what_it_reads() {
                self.keep(position, *told, cx);
            } else {
                self.registry[position] = *told;
            }
        }
        registry[here].is_newer(&self.registry[here]) && self.is_outrun(registry[here].epoch.serial, cx)
    }

    /// Answers a read.
    pub(super) fn collected<P: Election>(&self, from: NodeId, read: u64, cx: &mut Context<'_, P>) {
        let (registry, recovers) = (self.registry.clone(), self.is_silent());
        cx.send(from, Message::Status { read, registry, recovers }, self.ticket);
    }

    /// The highest serial that this process knows of.
    pub(super) fn highest(&self) -> u64 {
        let known = self.registry.iter().map(|state| state.epoch.serial).max().unwrap_or(0);
        known.max(self.serial)
    }

    /// When a silent process wants to be woken.
    pub(super) fn recovery_deadline(&self) -> Option<LocalTime> {
        Some(self.recovery.as_ref()?.from)
    }

    /// Asks all who have not yet said what they know, again and again: also those who answered that
    /// they recover too. They may know it by now, and another who has not answered may never do so.
    pub(super) fn recover<P: Election>(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = &mut self.recovery else { return };
        if cx.now() < recovery.from {
            return;
        }
        recovery.reads = true;
        recovery.from = cx.now().after(self.pace.period);
        let (read, sound) = (recovery.number, recovery.sound);
        for (position, other) in self.config.access().members().iter().enumerate() {
            if position != self.here && !sound.contains(position) {
                cx.send(*other, Message::Collect { read }, None);
            }
        }
        self.check_recovery(cx);
    }

    /// Takes the states that another member knows, while this process recovers. Returns whether
    /// that was enough.
    pub(super) fn reads_again<P: Election>(
        &mut self,
        from: NodeId,
        Status { read, registry, recovers }: Status<'_>,
        cx: &mut Context<'_, P>,
    ) -> bool {
        let Some(position) = self.config.access().position(from) else { return false };
        let Some(recovery) = &mut self.recovery else { return false };
        if !recovery.reads || recovery.number != read {
            return false;
        }
        recovery.all.insert(position);
        if !recovers {
            recovery.sound.insert(position);
        }
        for (known, told) in self.registry.iter_mut().zip(registry) {
            known.merge(*told);
        }
        self.check_recovery(cx)
    }

    fn check_recovery<P: Election>(&mut self, cx: &mut Context<'_, P>) -> bool {
        let access = self.config.access();
        let enough = |recovery: &Recovery| {
            access.is_read(recovery.sound) || recovery.all.len() == access.members().len()
        };
        if !self.recovery.as_ref().is_some_and(enough) {
            return false;
        }
        self.recovery = None;
        self.serial = self.serial.max(self.registry[self.here].epoch.serial) + 1;
        self.fresh = self.registry[self.here].fresh;
        self.keep_all(cx);
        cx.publish(Event::Recovered);
        true
    }
}

/// Where the numbers of a life begin: answers to questions of an earlier one have others.
pub(super) fn first_number(incarnation: Incarnation) -> u64 {
    let low = u32::try_from(incarnation.0 & 0x7fff_ffff).unwrap_or(0);
    u64::from(low) << 32
}
