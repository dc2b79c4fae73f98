//! An election by consensus: the leader of term k is the value that instance k decides.
//!
//! A process wants another term when the elected one is not the best that it trusts. The best that
//! a process trusts (its Omega) proposes itself for the next term, in one instance of Paxos of its
//! own: `Prepare`, `Promise`, `Accept`, `Accepted`, and then `Decided` to all. With nobody crashing
//! that is 5(N - 1) messages in five message times.
//!
//! **Safety is that of consensus**, and needs neither D nor the detector: no two processes ever
//! elect different leaders of one term. A value that is decided was accepted by a majority; the
//! majority that promises a later ballot has one of those in it, and the later ballot proposes the
//! value of the highest ballot that it hears of ([`Rules::proposal`], [`Rules::quorum`]). Votes
//! survive a crash because they are durable before they are said; who lost its disk votes no more.
//! Ballots carry the life of their proposer: none is ever used twice.
//!
//! **Liveness is that of Omega**: while detectors err, proposers may hinder each other, and terms
//! may follow each other. That the winner is the best is owed only when detectors are right.

use std::collections::BTreeSet;

use super::{Algorithm, Cell, Config, Desk, Event, Rules};
use crate::boot::{Boot, BootKind};
use crate::time::{Incarnation, LocalSpan};
use crate::{LocalTime, NodeId};

/// Names one attempt of one proposer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Larger than any that the proposer knew of.
    pub round: u64,
    /// The proposer.
    pub node: u64,
    /// The life of the proposer.
    pub life: u128,
}

/// The promise and the vote of an acceptor, for the newest term that it knows. In older ones it
/// votes no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Acceptor {
    term: u64,
    promised: Ballot,
    accepted: Option<(Ballot, NodeId)>,
}

/// A message between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Asks the best process that the sender trusts: who leads?
    Want,
    /// Asks to vote in no ballot lower than this one.
    Prepare {
        /// The term.
        term: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// Promises that, and reports the sender's last vote.
    Promise {
        /// The term.
        term: u64,
        /// The ballot that was prepared.
        ballot: Ballot,
        /// The last vote.
        accepted: Option<(Ballot, NodeId)>,
    },
    /// Asks to vote for a value.
    Accept {
        /// The term.
        term: u64,
        /// The ballot.
        ballot: Ballot,
        /// The proposed leader.
        value: NodeId,
    },
    /// Reports the sender's vote.
    Accepted {
        /// The term.
        term: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// Refuses: the sender has promised a higher ballot, or knows a later term.
    Nack {
        /// The newest term that the sender has voted in.
        term: u64,
        /// The round that was promised there.
        round: u64,
    },
    /// Announces the decided leader.
    Decided {
        /// The term.
        term: u64,
        /// The leader.
        leader: NodeId,
    },
}

/// A ballot under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    term: u64,
    ballot: Ballot,
    promised: BTreeSet<NodeId>,
    /// The vote of the highest ballot that was told with a promise.
    last: Option<(Ballot, NodeId)>,
    /// The proposed leader, once a quorum has promised.
    value: Option<NodeId>,
    accepted: BTreeSet<NodeId>,
}

/// A process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByConsensus {
    life: Incarnation,
    votes: bool,
    acceptor: Acceptor,
    decided: Option<(u64, NodeId)>,
    attempt: Option<Attempt>,
    /// The highest round and the newest term that refusals told of.
    round: u64,
    term: u64,
    /// While another term is wanted.
    deadline: Option<LocalTime>,
}

type D<'a, R> = Desk<'a, Message, R>;

impl ByConsensus {
    fn is_content<R: Rules>(&self, desk: &D<'_, R>) -> bool {
        self.decided.is_some_and(|(_, leader)| leader == omega(desk))
    }

    fn call<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if !self.is_content(desk) && desk.opens(self.deadline.is_some()) {
            self.pursue(desk);
        }
    }

    fn pursue<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        self.deadline = Some(desk.now.after(patience(desk.config)));
        let omega = omega(desk);
        if omega == desk.me {
            self.propose(desk);
        } else {
            desk.send(omega, Message::Want);
        }
    }

    fn propose<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        let next = self.decided.map_or(1, |(term, _)| term + 1);
        let term = next.max(self.acceptor.term).max(self.term);
        let round = self.acceptor.promised.round.max(self.round) + 1;
        self.round = round;
        let ballot = Ballot { round, node: desk.me.0, life: self.life.0 };
        self.attempt = Some(Attempt {
            term,
            ballot,
            promised: BTreeSet::new(),
            last: None,
            value: None,
            accepted: BTreeSet::new(),
        });
        desk.send_all(desk.config.names(), &Message::Prepare { term, ballot });
    }

    /// Whether a proposer may be answered in this term. One that is behind is told.
    fn may_vote<R: Rules>(&mut self, from: NodeId, term: u64, desk: &mut D<'_, R>) -> bool {
        if let Some((decided, leader)) = self.decided.filter(|(decided, _)| *decided >= term) {
            desk.send(from, Message::Decided { term: decided, leader });
            return false;
        }
        if term > self.acceptor.term {
            self.acceptor = Acceptor { term, ..Acceptor::default() };
        }
        if term < self.acceptor.term {
            self.refuse(from, desk);
        }
        self.votes && term == self.acceptor.term
    }

    /// Tells a proposer what it did not know, so that its next ballot is not in vain too.
    fn refuse<R: Rules>(&self, from: NodeId, desk: &mut D<'_, R>) {
        desk.send(from, Message::Nack { term: self.acceptor.term, round: self.acceptor.promised.round });
    }

    fn on_prepare<R: Rules>(&mut self, from: NodeId, term: u64, ballot: Ballot, desk: &mut D<'_, R>) {
        if !self.may_vote(from, term, desk) {
            return;
        }
        if ballot < self.acceptor.promised {
            return self.refuse(from, desk);
        }
        self.acceptor.promised = ballot;
        desk.keep(Cell(self.acceptor));
        desk.send(from, Message::Promise { term, ballot, accepted: self.acceptor.accepted });
    }

    fn on_promise<R: Rules>(
        &mut self,
        from: NodeId,
        (term, ballot): (u64, Ballot),
        accepted: Option<(Ballot, NodeId)>,
        desk: &mut D<'_, R>,
    ) {
        let Some(attempt) = self.attempt.as_mut().filter(|a| (a.term, a.ballot) == (term, ballot)) else {
            return;
        };
        attempt.promised.insert(from);
        attempt.last = attempt.last.max(accepted);
        let enough = attempt.promised.len() >= desk.rules().quorum(desk.config.size());
        if attempt.value.is_none() && enough {
            let value = desk.rules().proposal(desk.me, attempt.last.map(|(_, value)| value));
            attempt.value = Some(value);
            desk.send_all(desk.config.names(), &Message::Accept { term, ballot, value });
        }
    }

    fn on_accept<R: Rules>(
        &mut self,
        from: NodeId,
        (term, ballot): (u64, Ballot),
        value: NodeId,
        desk: &mut D<'_, R>,
    ) {
        if !self.may_vote(from, term, desk) {
            return;
        }
        if ballot < self.acceptor.promised {
            return self.refuse(from, desk);
        }
        self.acceptor.promised = ballot;
        self.acceptor.accepted = Some((ballot, value));
        desk.keep(Cell(self.acceptor));
        desk.send(from, Message::Accepted { term, ballot });
    }

    fn on_accepted<R: Rules>(&mut self, from: NodeId, term: u64, ballot: Ballot, desk: &mut D<'_, R>) {
        let Some(attempt) = self.attempt.as_mut().filter(|a| (a.term, a.ballot) == (term, ballot)) else {
            return;
        };
        attempt.accepted.insert(from);
        let enough = attempt.accepted.len() >= desk.rules().quorum(desk.config.size());
        if let (Some(leader), true) = (attempt.value, enough) {
            desk.send_all(desk.others(), &Message::Decided { term, leader });
            self.learn(term, leader, desk);
        }
    }

    fn learn<R: Rules>(&mut self, term: u64, leader: NodeId, desk: &mut D<'_, R>) {
        if self.decided.is_none_or(|(known, _)| known < term) {
            self.decided = Some((term, leader));
            self.attempt = self.attempt.take().filter(|attempt| attempt.term > term);
            desk.elect(leader, Some(term));
        }
        if self.is_content(desk) {
            self.close(desk);
        } else {
            self.call(desk);
        }
    }

    fn close<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if self.deadline.take().is_some() {
            desk.tell(Event::Closed);
        }
    }
}

/// The best of those that a process trusts, itself among them.
fn omega<R: Rules>(desk: &D<'_, R>) -> NodeId {
    let trusted = desk.config.names().filter(|q| !desk.suspects(*q)).map(|q| desk.config.rank(q));
    let best = trusted.reduce(|best, rank| if desk.rules().outranks(rank, best) { rank } else { best });
    best.map_or(desk.me, |best| best.id)
}

/// Five message times, and two writes.
fn patience<R>(config: &Config<R>) -> LocalSpan {
    config.delays(7)
}

impl<R: Rules> Algorithm<R> for ByConsensus {
    type Message = Message;

    fn new(_config: &Config<R>, _me: NodeId, boot: &Boot<Cell>) -> Self {
        let acceptor = boot.durable.first().map_or_else(Acceptor::default, |cell| cell.0);
        Self {
            life: boot.incarnation,
            votes: boot.kind != BootKind::Amnesia,
            acceptor,
            decided: None,
            attempt: None,
            round: 0,
            term: 0,
            deadline: None,
        }
    }

    fn call(&mut self, desk: &mut D<'_, R>) {
        Self::call(self, desk);
    }

    fn hear(&mut self, from: NodeId, message: Message, desk: &mut D<'_, R>) {
        match message {
            Message::Want => match self.decided {
                Some((term, leader)) if self.is_content(desk) => {
                    desk.send(from, Message::Decided { term, leader });
                }
                _ => self.call(desk),
            },
            Message::Prepare { term, ballot } => self.on_prepare(from, term, ballot, desk),
            Message::Promise { term, ballot, accepted } => {
                self.on_promise(from, (term, ballot), accepted, desk);
            }
            Message::Accept { term, ballot, value } => self.on_accept(from, (term, ballot), value, desk),
            Message::Accepted { term, ballot } => self.on_accepted(from, term, ballot, desk),
            Message::Nack { term, round } => {
                (self.term, self.round) = (self.term.max(term), self.round.max(round));
            }
            Message::Decided { term, leader } => self.learn(term, leader, desk),
        }
    }

    fn suspect(&mut self, _whom: NodeId, desk: &mut D<'_, R>) {
        self.call(desk);
    }

    /// A process that comes back may be better, or must be told who leads.
    fn trust(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        if let Some((term, leader)) = self.decided.filter(|(_, leader)| *leader == desk.me) {
            desk.send(whom, Message::Decided { term, leader });
        }
        if self.is_content(desk) { self.close(desk) } else { self.call(desk) }
    }

    fn deadline(&mut self, desk: &mut D<'_, R>) {
        if self.is_content(desk) { self.close(desk) } else { self.pursue(desk) }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        self.deadline
    }

    fn votes(&self) -> bool {
        self.votes
    }

    /// Detection, three ballots in vain (one cut short by the crash, one refused, one behind by a
    /// term), and one that decides.
    fn settle(config: &Config<R>) -> LocalSpan {
        config.detection().plus(patience(config).times(5))
    }
}
