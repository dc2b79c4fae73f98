//! The acceptor: promises, votes, and reports of them. All of it is durable before it is told.
//!
//! A ballot below the promise is refused before the assertions, from any sender, so they are about
//! this process's own promises and votes. The entries of a message are asserted nowhere.

use super::message::{Ballot, Entry, Event, Message, Record, Slot, Standing, Vote};
use super::rules::Rules;
use super::{Context, Paxos, fitting};
use crate::NodeId;

impl<R: Rules> Paxos<R> {
    pub(super) fn on_prepare(&mut self, from: NodeId, ballot: Ballot, slot: Slot, cx: &mut Context<'_, R>) {
        self.proposer.see(ballot);
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
            invariant!(self.rules(), self.promised < ballot, "a promised ballot never falls");
            self.promised = ballot;
            self.persist(Record::Promised(ballot), cx);
        }
    }

    /// The votes held from a slot on, as far as they fit into a page.
    ///
    /// Between two pages nothing is accepted below the ballot that is promised in both, so together
    /// they tell what one message would; what was forgotten in between is below the base of the
    /// later one.
    fn told(&self, ballot: Ballot, from: Slot) -> Message {
        let page = self.config.settings().page;
        let fit = fitting(self.log.range(from..).map(|(_, vote)| vote.entry.weight()), page);
        let mut held = self.log.range(from..);
        let votes = held.by_ref().take(fit).map(|(slot, vote)| (*slot, vote.clone())).collect();
        let next = held.next().map(|(slot, _)| *slot);
        let (base, applied) = (self.learner.base, self.learner.applied);
        Message::Promise { ballot, from, votes, next, base, applied }
    }

    pub(super) fn on_accept(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        entries: Vec<(Slot, Entry)>,
        upto: Slot,
        cx: &mut Context<'_, R>,
    ) {
        self.proposer.see(ballot);
        if !self.amnesiac {
            if !self.rules().may_accept(self.promised, ballot) {
                return self.refuse(from, ballot, cx);
            }
            self.accept(from, ballot, entries, cx);
            self.on_nack(ballot, cx);
        }
        self.on_commit(from, ballot, upto, cx);
    }

    /// Accepts, and says so to `to` when it is durable. An entry that was forgotten here was
    /// chosen: by (P) it is the same entry, and it stays chosen by the votes of others, whether or
    /// not the snapshot that has it gets to this disk.
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
            let lower = |held| !matches!(held, Standing::Accepted(of) if of > ballot);
            invariant!(self.rules(), held.is_none_or(lower), "a vote is replaced by a higher ballot's alone");
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
