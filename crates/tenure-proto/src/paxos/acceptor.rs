//! The acceptor: promises, votes, and what it tells of them. All of it durable before it is told.

use super::message::{Ballot, Entry, Event, Message, Record, Slot, Standing, Vote};
use super::rules::Rules;
use super::{Context, Paxos};
use crate::NodeId;

impl<R: Rules> Paxos<R> {
    pub(super) fn on_prepare(&mut self, from: NodeId, ballot: Ballot, slot: Slot, cx: &mut Context<'_, R>) {
        self.office.see(ballot);
        if self.amnesiac {
            return;
        }
        if !self.rules().may_promise(self.promised, ballot) {
            return self.refuse(from, ballot, cx);
        }
        self.promise(ballot, cx);
        self.on_nack(ballot, cx);
        let promise = self.told(ballot, slot);
        cx.send(from, promise, self.rules().reply_after(self.written));
    }

    /// Promises a ballot, if that is new.
    pub(super) fn promise(&mut self, ballot: Ballot, cx: &mut Context<'_, R>) {
        if self.promised != ballot {
            self.promised = ballot;
            self.persist(Record::Promised(ballot), cx);
        }
    }

    /// All that is held from `slot` on.
    pub(super) fn told(&self, ballot: Ballot, slot: Slot) -> Message {
        let votes = self.log.range(slot..).map(|(slot, vote)| (*slot, vote.clone())).collect();
        Message::Promise { ballot, votes, base: self.learner.base, applied: self.learner.applied }
    }

    pub(super) fn on_accept(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        entries: Vec<(Slot, Entry)>,
        upto: Slot,
        cx: &mut Context<'_, R>,
    ) {
        self.office.see(ballot);
        if !self.amnesiac {
            if !self.rules().may_accept(self.promised, ballot) {
                return self.refuse(from, ballot, cx);
            }
            self.accept(from, ballot, entries, cx);
            self.on_nack(ballot, cx);
        }
        self.on_commit(from, ballot, upto, cx);
    }

    /// Accepts, and says so to `to` when it is durable. What was forgotten here was chosen, and a snapshot of it is on its way to the
    /// disk before this answer.
    pub(super) fn accept(
        &mut self,
        to: NodeId,
        ballot: Ballot,
        entries: Vec<(Slot, Entry)>,
        cx: &mut Context<'_, R>,
    ) {
        self.promise(self.rules().promised_by_accepting(self.promised, ballot), cx);
        let slots = entries.iter().map(|(slot, _)| *slot).collect();
        let base = self.learner.base;
        for (slot, entry) in entries.into_iter().filter(|(slot, _)| *slot > base) {
            let held = self.log.get(&slot).map(|vote| vote.standing);
            if held == Some(Standing::Accepted(ballot)) {
                continue; // Once more: it is on its way to the disk, and the answer waits for that.
            }
            self.persist(Record::Accepted { slot, ballot, entry: entry.clone() }, cx);
            if held != Some(Standing::Chosen) {
                self.log.insert(slot, Vote { standing: Standing::Accepted(ballot), entry });
            }
        }
        cx.send(to, Message::Accepted { ballot, slots }, self.rules().reply_after(self.written));
    }

    /// Refuses a ballot below the promise, and tells which one that is.
    fn refuse(&mut self, to: NodeId, ballot: Ballot, cx: &mut Context<'_, R>) {
        cx.publish(Event::Stale(ballot));
        cx.send(to, Message::Nack { promised: self.promised }, None);
    }
}
