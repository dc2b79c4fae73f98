//! The ring: a call goes round and carries the best so far; the best process wins when its own rank
//! comes back.
//!
//! `Election` carries (attribute, name). A process that receives a greater one passes it on. A
//! process that receives a smaller one, and has not passed one on in this run, sends its own
//! instead. A process that receives its own has won and sends `Elected` round. One caller j hops
//! before the best: j hops to it, N round, N to tell: **j + 2N messages**, one after the other, so
//! the time is the same. Best j = 0: 2N. Worst j = N - 1, called by the best's successor: 3N - 1.
//!
//! **Several callers.** Each run has a [`Tag`] (term, caller); a process drops a message with a
//! lower tag than it has seen. The slides remember the caller's name alone, "all the time". That is
//! not live: when caller 80 has run once and died, every later run of a lesser caller is suppressed
//! forever. A term larger than all known ones cures it (mutant `bare-callers`). A process that
//! drops a call of an earlier term calls itself: the caller was away, and does not know which term
//! it is.
//!
//! **Crashes.** A message to a dead successor is lost: so the next member that is not suspected is
//! the successor. A run that does not end in time is called anew. If the winner, or the process
//! whose name goes round, is suspected, then by [`Repair::Detector`] every process that suspects it
//! calls anew. By [`Repair::Neighbours`] only its k predecessors do, and when they crash with it
//! nobody does: a dead coordinator stays elected.

use super::{Algorithm, Cell, Config, Desk, Event, Rank, Repair, Rules, Tag};
use crate::boot::Boot;
use crate::time::LocalSpan;
use crate::{LocalTime, NodeId};

/// A message between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The best so far.
    Election {
        /// The run.
        tag: Tag,
        /// The best process so far, and its rank.
        best: Rank,
    },
    /// The winner.
    Elected {
        /// The run that ended.
        tag: Tag,
        /// The winner, and its rank.
        winner: Rank,
    },
}

/// A process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The newest run that it knows of.
    tag: Tag,
    /// Whether it has passed a call on in that run.
    participant: bool,
    /// The best that it has passed on in that run.
    best: Option<NodeId>,
    /// When it stops waiting for the end of the run.
    deadline: Option<LocalTime>,
}

type D<'a, R> = Desk<'a, Message, R>;

impl Ring {
    /// Calls a new run, instead of the one that may be open.
    fn begin<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        self.tag = Tag { term: desk.rules().next_term(self.tag.term), caller: desk.me.0 };
        self.participant = false;
        self.pass_on(desk.rank(), desk);
    }

    fn pass_on<R: Rules>(&mut self, best: Rank, desk: &mut D<'_, R>) {
        (self.participant, self.best) = (true, Some(best.id));
        self.deadline = Some(desk.now.after(patience(desk.config)));
        let to = successor(desk);
        desk.send(to, Message::Election { tag: self.tag, best });
    }

    /// A message of this run: a newer one puts an end to what this process knew of older ones.
    /// False: it is of an older one.
    fn heeds(&mut self, tag: Tag) -> bool {
        if tag < self.tag {
            return false;
        }
        if tag != self.tag {
            (self.tag, self.participant, self.best) = (tag, false, None);
        }
        true
    }

    fn on_election<R: Rules>(&mut self, tag: Tag, best: Rank, desk: &mut D<'_, R>) {
        if !self.heeds(tag) {
            if tag.term < self.tag.term {
                self.call(desk);
            }
            return;
        }
        let own = desk.rank();
        if best.id == desk.me {
            self.on_victory(desk);
        } else if desk.rules().outranks(best, own) {
            self.open(desk);
            self.pass_on(best, desk);
        } else if !self.participant {
            self.open(desk);
            self.pass_on(own, desk);
        }
    }

    fn on_victory<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        self.close(desk);
        desk.elect(desk.me, None);
        let (to, winner) = (successor(desk), desk.rank());
        desk.send(to, Message::Elected { tag: self.tag, winner });
    }

    fn on_elected<R: Rules>(&mut self, tag: Tag, winner: Rank, desk: &mut D<'_, R>) {
        // Once round is enough: if the winner is gone, nobody else takes the message out.
        let told = tag == self.tag && self.deadline.is_none() && desk.elected() == Some(winner.id);
        if told || !self.heeds(tag) {
            return;
        }
        if winner.id == desk.me {
            return self.on_victory(desk);
        }
        self.close(desk);
        desk.elect(winner.id, None);
        let to = successor(desk);
        desk.send(to, Message::Elected { tag, winner });
        if desk.rules().outranks(desk.rank(), winner) || desk.suspects(winner.id) {
            self.call(desk);
        }
    }

    fn open<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if self.deadline.is_none() {
            desk.tell(Event::Opened);
        }
    }

    fn close<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        self.participant = false;
        if self.deadline.take().is_some() {
            desk.tell(Event::Closed);
        }
    }

    fn call<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if desk.opens(self.deadline.is_some()) {
            self.begin(desk);
        }
    }
}

/// The next on the ring that is not suspected; the process itself, if all others are.
fn successor<R: Rules>(desk: &D<'_, R>) -> NodeId {
    let size = desk.config.size() as u64;
    let mut after = (1..size).map(|hops| NodeId((desk.me.0 + hops) % size));
    after.find(|next| !desk.suspects(*next)).unwrap_or(desk.me)
}

/// How many hops before `whom` this process stands.
fn hops_before<R: Rules>(desk: &D<'_, R>, whom: NodeId) -> u64 {
    let size = desk.config.size() as u64;
    (whom.0 + size - desk.me.0) % size
}

/// The longest run, 3N - 1 messages, and the detection of a successor that has crashed.
fn patience<R>(config: &Config<R>) -> LocalSpan {
    config.delays(3 * config.size()).plus(config.detection())
}

impl<R: Rules> Algorithm<R> for Ring {
    type Message = Message;

    fn new(_config: &Config<R>, _me: NodeId, _boot: &Boot<Cell>) -> Self {
        Self { tag: Tag::default(), participant: false, best: None, deadline: None }
    }

    fn call(&mut self, desk: &mut D<'_, R>) {
        Self::call(self, desk);
    }

    fn hear(&mut self, _from: NodeId, message: Message, desk: &mut D<'_, R>) {
        match message {
            Message::Election { tag, best } => self.on_election(tag, best, desk),
            Message::Elected { tag, winner } => self.on_elected(tag, winner, desk),
        }
    }

    fn suspect(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        let open = self.deadline.is_some();
        let mattered = if open { self.best == Some(whom) } else { desk.elected() == Some(whom) };
        let ours = match desk.config.repair {
            Repair::Detector => true,
            Repair::Neighbours(watchers) => hops_before(desk, whom) <= watchers,
        };
        match (mattered && ours, open) {
            (true, true) => self.begin(desk),
            (true, false) => self.call(desk),
            (false, _) => {}
        }
    }

    /// A process that comes back must be told who won, and may be better.
    fn trust(&mut self, _whom: NodeId, desk: &mut D<'_, R>) {
        self.call(desk);
    }

    fn deadline(&mut self, desk: &mut D<'_, R>) {
        self.begin(desk);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        self.deadline
    }

    /// Detection, a run that goes round in vain, and a whole one; and once more, for one that was
    /// called while the dead were not yet suspected.
    fn settle(config: &Config<R>) -> LocalSpan {
        config.detection().plus(patience(config).times(3))
    }
}
