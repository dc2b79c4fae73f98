//! Linearizable reads: a read sees every write that was answered before it came.
//!
//! By a round: a leader that wants to answer asks whether anybody has promised more than its ballot
//! b. If f+1 have not, then no later ballot had its n-f promises when the round began, so nothing
//! was chosen, let alone answered, in a later one. This leader has applied every value that was
//! answered in b; its promises told of every value that was answered below b, by (P). So the state
//! is the answer once that much is applied (the read index). Reads that come while a round is open
//! share the next one (batching).
//!
//! By the strong lease: nothing is asked ([`Rules::may_read_locally`]), and the lease is looked at
//! once more after the state.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{Ballot, Event, Message, Slot};
use super::proposer::Role;
use super::rules::Rules;
use super::{Context, Paxos};
use crate::quorum::NodeSet;
use crate::{Incarnation, NodeId};

/// The reader: the process, its name for the read, its life.
type Reader = (NodeId, u64, Incarnation);

/// Reads on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reads {
    /// Numbers the rounds of this life.
    rounds: u64,
    open: Option<Round>,
    /// Those for the next round.
    gathering: Vec<Reader>,
    /// Reads of users here that a leader must be asked about.
    asking: BTreeSet<u64>,
    /// Reads of users here that wait for a slot to be applied. They are asked about again: a leader
    /// that is gone may have told of a slot that came to nothing, and what a later one says is an
    /// answer as well.
    due: BTreeMap<u64, Slot>,
    /// Local reads whose state is being looked at, and the ballot in which that began.
    looking: BTreeMap<u64, Ballot>,
}

/// One question to f+1 acceptors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    ballot: Ballot,
    number: u64,
    upto: Slot,
    confirmed: NodeSet,
    readers: Vec<Reader>,
}

impl Reads {
    pub(super) fn is_busy(&self) -> bool {
        self.open.is_some() || !self.asking.is_empty() || !self.due.is_empty()
    }
}

impl<R: Rules> Paxos<R> {
    pub(super) fn on_read(&mut self, id: u64, cx: &mut Context<'_, R>) {
        if let Some(read) = self.local_read()
            && self.rules().may_look(read, cx.now())
        {
            self.reads.looking.insert(id, read.ballot);
            return cx.publish(Event::ReadNow { id });
        }
        self.ask(id, cx);
    }

    /// The state was looked at: does it stand? The lease must be the same one, and held after the
    /// look.
    pub(super) fn on_read_done(&mut self, id: u64, cx: &mut Context<'_, R>) {
        let Some(then) = self.reads.looking.remove(&id) else { return };
        match self.local_read() {
            Some(read) if read.ballot == then && self.rules().read_stands(read, cx.now()) => {
                cx.publish(Event::ReadStands { id });
            }
            _ => self.ask(id, cx),
        }
    }

    /// Finds out, or asks the one who should lead, how far the log must be applied.
    fn ask(&mut self, id: u64, cx: &mut Context<'_, R>) {
        self.reads.asking.insert(id);
        if self.leads().is_some() {
            self.reads.gathering.push((self.me, id, self.life));
            self.open_round(cx);
        } else if let Some(leader) = self.proposer.ask(self.me) {
            cx.send(leader, Message::AskIndex { id, life: self.life }, None);
        }
    }

    pub(super) fn on_ask_index(
        &mut self,
        from: NodeId,
        (id, life): (u64, Incarnation),
        cx: &mut Context<'_, R>,
    ) {
        let reader = (from, id, life);
        let known = |readers: &[Reader]| readers.contains(&reader);
        let waits = self.reads.open.as_ref().is_some_and(|round| known(&round.readers));
        if self.leads().is_some() && !waits && !known(&self.reads.gathering) {
            self.reads.gathering.push(reader);
            self.open_round(cx);
        }
    }

    /// Begins a round for those who wait, unless one is under way.
    fn open_round(&mut self, cx: &mut Context<'_, R>) {
        let Role::Leading(leading) = &self.proposer.role else { return };
        if self.reads.open.is_some() || self.reads.gathering.is_empty() {
            return;
        }
        let (ballot, known) = (leading.ballot, leading.known);
        let upto = self.rules().read_index(self.learner.applied, known);
        self.reads.rounds += 1;
        let number = self.reads.rounds;
        let readers = std::mem::take(&mut self.reads.gathering);
        self.reads.open = Some(Round { ballot, number, upto, confirmed: NodeSet::EMPTY, readers });
        self.send_others(&Message::Confirm { ballot, round: number }, None, cx);
        if self.rules().may_confirm(self.promised, ballot)
            && let Some(position) = self.config.position(self.me)
        {
            self.on_confirmed(position, ballot, number, cx);
        }
    }

    pub(super) fn on_confirm(&mut self, from: NodeId, ballot: Ballot, round: u64, cx: &mut Context<'_, R>) {
        self.proposer.see(ballot);
        if self.amnesiac {
            return;
        }
        let message = match self.rules().may_confirm(self.promised, ballot) {
            true => Message::Confirmed { ballot, round },
            false => Message::Nack { promised: self.promised },
        };
        cx.send(from, message, None);
    }

    pub(super) fn on_confirmed(
        &mut self,
        position: usize,
        ballot: Ballot,
        number: u64,
        cx: &mut Context<'_, R>,
    ) {
        let (rules, (members, faults)) = (self.config.rules(), self.config.size());
        let Some(round) = &mut self.reads.open else { return };
        if round.ballot != ballot || !rules.confirms(round.number, number) {
            return;
        }
        round.confirmed.insert(position);
        if round.confirmed.len() < rules.read_quorum(members, faults) {
            return;
        }
        let Some(round) = self.reads.open.take() else { return };
        for (node, id, life) in round.readers {
            if node == self.me {
                self.on_index((id, life), round.upto, cx);
            } else {
                cx.send(node, Message::Index { id, life, upto: round.upto }, None);
            }
        }
        self.open_round(cx);
    }

    pub(super) fn on_index(&mut self, (id, life): (u64, Incarnation), upto: Slot, cx: &mut Context<'_, R>) {
        if life != self.life {
            return;
        }
        if self.reads.asking.remove(&id) || self.reads.due.contains_key(&id) {
            let due = self.reads.due.entry(id).or_insert(upto);
            *due = upto.min(*due);
            self.serve_reads(cx);
        }
    }

    /// Answers the reads whose slot is applied.
    pub(super) fn serve_reads(&mut self, cx: &mut Context<'_, R>) {
        let applied = self.learner.applied;
        let ready: Vec<u64> =
            self.reads.due.iter().filter(|(_, upto)| **upto <= applied).map(|(id, _)| *id).collect();
        for id in ready {
            self.reads.due.remove(&id);
            cx.publish(Event::Readable { id });
        }
    }

    /// This process leads no more: those who wait must ask somebody else. Users here are kept in
    /// `asking`.
    pub(super) fn drop_reads(&mut self, _cx: &mut Context<'_, R>) {
        self.reads.open = None;
        self.reads.gathering.clear();
    }

    pub(super) fn repeat_reads(&mut self, cx: &mut Context<'_, R>) {
        if let Some(round) = &self.reads.open {
            let message = Message::Confirm { ballot: round.ballot, round: round.number };
            let confirmed = round.confirmed;
            self.send_missing(confirmed, &message, None, cx);
        }
        self.ask_again(cx);
    }

    /// A user does not wait any longer.
    pub(super) fn forget_read(&mut self, id: u64) {
        self.reads.asking.remove(&id);
        self.reads.due.remove(&id);
        self.reads.looking.remove(&id);
    }

    /// Asks once more for the users here that wait.
    pub(super) fn ask_again(&mut self, cx: &mut Context<'_, R>) {
        let asking: Vec<u64> = self.reads.asking.iter().chain(self.reads.due.keys()).copied().collect();
        if self.leads().is_some() {
            let (me, life) = (self.me, self.life);
            for id in asking {
                self.on_ask_index(me, (id, life), cx);
            }
        } else if let Some(leader) = self.proposer.ask(self.me) {
            for id in asking {
                cx.send(leader, Message::AskIndex { id, life: self.life }, None);
            }
        }
    }
}
