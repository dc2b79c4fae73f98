//! Reads which states are getting newer: the lowest of their epochs leads.

use crate::quorum::NodeSet;
use crate::time::{LocalSpan, LocalTime};
use crate::{Context, NodeId};

use super::Election;
use super::register::Register;
use super::rules::Rules;
use super::state::{Epoch, Message, State, Status};

/// Reads, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    /// The newest state that any read has shown of each member.
    views: Vec<State>,
    /// The same before the present read.
    old: Vec<State>,
    /// Whose state does not get newer any more.
    expired: Vec<bool>,
    /// When the read ended that last showed something newer.
    grown: Vec<LocalTime>,
    answered: NodeSet,
    number: u64,
    open: bool,
    began: LocalTime,
    /// The beginning of the last read that is complete.
    pub(super) completed: Option<LocalTime>,
    /// When those who have not answered are asked again, and how long to wait thereafter.
    again: Option<(LocalTime, LocalSpan)>,
}

impl Reader {
    pub(super) fn new<R: Rules>(register: &Register<R>, number: u64, now: LocalTime) -> Self {
        let members = register.registry.len();
        Self {
            views: vec![State::NOTHING; members],
            old: vec![State::NOTHING; members],
            expired: vec![true; members],
            grown: vec![now; members],
            answered: NodeSet::EMPTY,
            number,
            open: false,
            began: now,
            completed: None,
            again: None,
        }
    }

    /// Begins a read. Returns whether one's own answer is enough.
    pub(super) fn begin<R: Rules, P: Election>(
        &mut self,
        register: &Register<R>,
        cx: &mut Context<'_, P>,
    ) -> bool {
        self.number += 1;
        self.answered = NodeSet::EMPTY;
        self.open = true;
        self.began = cx.now();
        self.old.clone_from(&self.views);
        let first = register.config.asks_again_after();
        self.again = Some((cx.now().after(first), first));
        register.to_others(Message::Collect { read: self.number }, cx);
        let registry = register.registry.clone();
        self.merge(register.here, &registry, register, cx.now())
    }

    /// Asks those again that have not answered: links may lose (D2). Ever more rarely, because they
    /// may also be slow.
    pub(super) fn ask_again<R: Rules, P: Election>(
        &mut self,
        register: &Register<R>,
        cx: &mut Context<'_, P>,
    ) {
        let Some((at, wait)) = self.again.filter(|(at, _)| self.open && *at <= cx.now()) else { return };
        let wait = wait.times(2).min(register.config.asks_again_after().times(8));
        self.again = Some((at.max(cx.now()).after(wait), wait));
        for (position, other) in register.config.access().members().iter().enumerate() {
            if !self.answered.contains(position) {
                cx.send(*other, Message::Collect { read: self.number }, None);
            }
        }
    }

    /// When somebody must be asked again.
    pub(super) fn deadline(&self) -> Option<LocalTime> {
        self.again.filter(|_| self.open).map(|(at, _)| at)
    }

    /// Takes the states that another member knows. Returns whether the read has just become
    /// complete.
    pub(super) fn told<R: Rules>(
        &mut self,
        from: NodeId,
        Status { read, registry, recovers }: Status<'_>,
        register: &Register<R>,
        now: LocalTime,
    ) -> bool {
        let Some(position) = register.config.access().position(from) else { return false };
        if recovers || read != self.number {
            return false;
        }
        if !self.open {
            if !register.config.rules().closes_reads() {
                self.see(registry);
            }
            return false;
        }
        self.merge(position, registry, register, now)
    }

    fn see(&mut self, registry: &[State]) {
        for (view, told) in self.views.iter_mut().zip(registry) {
            view.merge(*told);
        }
    }

    fn merge<R: Rules>(
        &mut self,
        position: usize,
        registry: &[State],
        register: &Register<R>,
        now: LocalTime,
    ) -> bool {
        self.see(registry);
        self.answered.insert(position);
        if !register.config.access().is_read(self.answered) {
            return false;
        }
        self.open = false;
        self.completed = Some(self.began);
        for member in 0..self.views.len() {
            self.judge(member, register, now);
        }
        true
    }

    /// Whether a member's state got newer since the read before. If not, and a live process would
    /// have made it newer, its epoch is dead. A member that is not judged yet stays as it was:
    /// another process may allow itself more time than this one.
    fn judge<R: Rules>(&mut self, member: usize, register: &Register<R>, now: LocalTime) {
        let (view, old) = (self.views[member], self.old[member]);
        let newer = view.is_newer(&old);
        let due = self.grown[member].after(register.config.gap(register.may_be_silent(&view)));
        if newer {
            self.grown[member] = now;
        }
        if newer && (view.epoch > old.epoch || !register.config.is_sticky()) {
            self.expired[member] = false;
        } else if !newer && self.began >= due {
            self.expired[member] = true;
        }
    }

    /// One's own epoch is not alive any more.
    pub(super) fn expire(&mut self, member: usize) {
        self.expired[member] = true;
    }

    /// The lowest epoch that is alive.
    pub(super) fn leader<R: Rules>(&self, register: &Register<R>) -> Epoch {
        let own = register.epoch();
        // A read that began before this process gave its epoch up may show that one as alive.
        let gone = |view: &State| {
            view.epoch.process == own.process && view.epoch != own && register.config.rules().stops_leading()
        };
        let alive = self.views.iter().zip(&self.expired).filter(|(view, expired)| !**expired && !gone(view));
        let alive: Vec<Epoch> = alive.map(|(view, _)| view.epoch).collect();
        register.config.rules().least(&alive)
    }
}
