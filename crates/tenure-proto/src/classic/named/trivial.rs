//! The trivial election: every process tells its id to every other.
//!
//! The caller sends `Start` to all. A process that hears of it for the first time sends its own id
//! to all. A process that has all ids knows the best. One caller: N - 1 calls and N(N - 1) ids,
//! together N² - 1 messages, in two message times.
//!
//! A crash would make all wait forever; so no id is awaited from a suspected process. Then the
//! detector's errors are the election's errors.
//!
//! Runs have a term. Callers who know of the same terms call the same one and are joined by it. A
//! process that was away and calls a term that is over is told of the open one, or makes another
//! process call the next.

use std::collections::BTreeMap;

use super::{Algorithm, Cell, Config, Desk, Event, Rank, Rules};
use crate::boot::Boot;
use crate::time::LocalSpan;
use crate::{LocalTime, NodeId};

/// A message between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// An election, in this term.
    Start {
        /// The term.
        term: u64,
    },
    /// The rank of the sender.
    Id {
        /// The term of the election.
        term: u64,
        /// Its attribute; its name is known.
        attr: u64,
    },
}

/// A process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trivial {
    term: u64,
    open: bool,
    ids: BTreeMap<NodeId, Rank>,
    deadline: Option<LocalTime>,
}

type D<'a, R> = Desk<'a, Message, R>;

impl Trivial {
    fn begin<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        let term = desk.rules().next_term(self.term);
        desk.send_all(desk.others(), &Message::Start { term });
        self.join(term, desk);
    }

    /// Takes part in a run: tells its id to all.
    fn join<R: Rules>(&mut self, term: u64, desk: &mut D<'_, R>) {
        (self.term, self.open) = (term, true);
        self.ids = BTreeMap::from([(desk.me, desk.rank())]);
        desk.send_all(desk.others(), &Message::Id { term, attr: desk.rank().attr });
        self.deadline = Some(desk.now.after(patience(desk.config)));
        self.conclude(desk);
    }

    fn join_if_newer<R: Rules>(&mut self, term: u64, desk: &mut D<'_, R>) {
        if term > self.term {
            if !self.open {
                desk.tell(Event::Opened);
            }
            self.join(term, desk);
        }
    }

    /// All ids are there that will come.
    fn conclude<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        // Counted first: most ids are not the last, and looking for one that is missing takes a
        // while among many.
        if self.ids.len() + desk.suspected.len() < desk.config.size() {
            return;
        }
        let awaited = |q: &NodeId| !self.ids.contains_key(q) && desk.rules().awaits(desk.suspects(*q));
        if !self.open || desk.others().any(|q| awaited(&q)) {
            return;
        }
        let living = self.ids.values().filter(|rank| !desk.suspects(rank.id)).copied();
        let best = living.reduce(|best, rank| if desk.rules().outranks(rank, best) { rank } else { best });
        (self.open, self.deadline) = (false, None);
        desk.tell(Event::Closed);
        if let Some(best) = best {
            desk.elect(best.id, None);
        }
    }
}

/// A call and an id take two D; and who crashed meanwhile is suspected by then.
fn patience<R>(config: &Config<R>) -> LocalSpan {
    config.detection().plus(config.delays(2))
}

impl<R: Rules> Algorithm<R> for Trivial {
    type Message = Message;

    fn new(_config: &Config<R>, _me: NodeId, _boot: &Boot<Cell>) -> Self {
        Self { term: 0, open: false, ids: BTreeMap::new(), deadline: None }
    }

    fn call(&mut self, desk: &mut D<'_, R>) {
        if desk.opens(self.open) {
            self.begin(desk);
        }
    }

    fn hear(&mut self, from: NodeId, message: Message, desk: &mut D<'_, R>) {
        match message {
            Message::Start { term } if term < self.term => {
                // The sender was away. It joins the run that is open, or else one that is called
                // for it.
                if self.open {
                    desk.send(from, Message::Start { term: self.term });
                } else {
                    self.call(desk);
                }
            }
            Message::Start { term } => self.join_if_newer(term, desk),
            Message::Id { term, attr } => {
                self.join_if_newer(term, desk);
                if term == self.term && self.open {
                    self.ids.insert(from, Rank { attr, id: from });
                    self.conclude(desk);
                }
            }
        }
    }

    fn suspect(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        self.conclude(desk);
        if desk.elected() == Some(whom) {
            self.call(desk);
        }
    }

    fn trust(&mut self, _whom: NodeId, desk: &mut D<'_, R>) {
        self.call(desk);
    }

    /// Somebody's id did not come, though it is not suspected: it heard of an earlier run and then
    /// crashed and came back.
    fn deadline(&mut self, desk: &mut D<'_, R>) {
        self.begin(desk);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        self.deadline
    }

    /// Detection, a run that waits in vain, and a whole one.
    fn settle(config: &Config<R>) -> LocalSpan {
        config.detection().plus(patience(config).times(2)).plus(config.delays(4))
    }
}
