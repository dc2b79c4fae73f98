//! The bully: a process asks all that are higher; if none answers, it announces itself to all that
//! are lower.
//!
//! Every process knows the rank of every other. Three states: nothing is open (`Normal`), answers
//! are awaited (`Electing`), the winner is awaited (`Waiting`). All time-outs come from D:
//!
//! ```text
//!   p ──Election──→ higher          T1 = 2D: the question, and the answer
//!     ←─────OK─────                 T2 = 5D: from an answer to the winner's announcement, at most; measured need 2D
//!     ←─Coordinator─ the highest
//! ```
//!
//! N counts the crashed highest. The lowest notices first and alone: Elections N(N-1)/2, answers
//! (N-1)(N-2)/2, announcements N - 2: **N² - N - 1 messages**, in 4D: D to the second highest, 2D
//! until it has waited in vain for the dead one, D to announce. (The slides say five message times;
//! an answer and the next question overlap.) The second highest notices and knows: **N - 2
//! messages, time 1**.
//!
//! Safe only if D is a true bound: if an answer takes longer than T1, two announce themselves.
//!
//! **A process that comes back** must not announce itself at once, even if nobody is higher
//! ([`Rules::may_announce`], mutant `comes-back-at-once`). For up to D another still takes it for
//! dead and may announce itself; that is heard up to D later, and by then the better announcement
//! may have come and gone. After T1 = 2D nothing of the kind is under way.

use super::{Algorithm, Cell, Config, Desk, Event, Rules};
use crate::boot::{Boot, BootKind};
use crate::time::LocalSpan;
use crate::{LocalTime, NodeId};

/// A message between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Asks whether a higher process lives.
    Election,
    /// Answers that the sender lives and is higher.
    Ok,
    /// Announces that the sender leads.
    Coordinator,
}

/// The phase of an election that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// No election is open.
    Normal,
    /// Answers of higher ones are awaited until T1.
    Electing(LocalTime),
    /// A higher one lives: its announcement is awaited until T2.
    Waiting(LocalTime),
}

/// A process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bully {
    state: State,
    /// Whether it has come back and has not waited yet.
    back: bool,
}

type D<'a, R> = Desk<'a, Message, R>;

impl Bully {
    /// A process in which nothing is open; it has been there from the beginning, or has come back.
    pub fn normal(back: bool) -> Self {
        Self { state: State::Normal, back }
    }

    fn is_open(&self) -> bool {
        self.state != State::Normal
    }

    /// Asks all that are higher. A process that knows that they are all dead need not.
    fn begin<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        let alone = higher(desk).iter().all(|q| desk.suspects(*q));
        if alone && desk.rules().may_announce(self.back) {
            return self.win(desk);
        }
        desk.send_all(higher(desk), &Message::Election);
        let wait = desk.rules().answer_time(desk.config.delay);
        self.state = State::Electing(desk.now.after(wait));
    }

    fn win<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        self.close(desk);
        self.back = false;
        desk.elect(desk.me, None);
        desk.send_all(lower(desk), &Message::Coordinator);
    }

    fn close<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if self.is_open() {
            desk.tell(Event::Closed);
        }
        self.state = State::Normal;
    }

    /// Opens an election. One that is won at once was open for no time.
    pub(super) fn call<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if !desk.opens(self.is_open()) {
            return;
        }
        self.begin(desk);
        if !self.is_open() {
            desk.tell(Event::Closed);
        }
    }

    pub(super) fn hear<R: Rules>(&mut self, from: NodeId, message: Message, desk: &mut D<'_, R>) {
        match message {
            Message::Election => {
                desk.send(from, Message::Ok);
                self.call(desk);
            }
            Message::Ok => {
                if matches!(self.state, State::Electing(_)) {
                    self.state = State::Waiting(desk.now.after(desk.config.delays(5)));
                }
            }
            Message::Coordinator if desk.rules().outranks(desk.config.rank(from), desk.rank()) => {
                self.close(desk);
                desk.elect(from, None);
            }
            // Somebody worse. It announces itself to those who are lower alone, so here nobody
            // comes; but one never knows.
            Message::Coordinator => self.call(desk),
        }
    }

    pub(super) fn suspect<R: Rules>(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        if desk.elected() == Some(whom) {
            self.call(desk);
        }
    }

    /// A process that comes back may be better than the elected one: this process asks it. Or it
    /// missed that this process leads: it is told.
    pub(super) fn trust<R: Rules>(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        let Some(elected) = desk.elected() else { return };
        let rank = |id| desk.config.rank(id);
        if desk.rules().outranks(rank(whom), rank(elected)) {
            self.call(desk);
        } else if elected == desk.me {
            desk.send(whom, Message::Coordinator);
        }
    }

    /// No answer: won. No winner: once more.
    pub(super) fn deadline<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        match self.state {
            State::Electing(_) => self.win(desk),
            State::Waiting(_) => {
                self.begin(desk);
            }
            State::Normal => {}
        }
    }

    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        match self.state {
            State::Normal => None,
            State::Electing(at) | State::Waiting(at) => Some(at),
        }
    }
}

fn higher<R: Rules>(desk: &D<'_, R>) -> Vec<NodeId> {
    let own = desk.rank();
    desk.others().filter(|q| desk.rules().outranks(desk.config.rank(*q), own)).collect()
}

fn lower<R: Rules>(desk: &D<'_, R>) -> Vec<NodeId> {
    let own = desk.rank();
    desk.others().filter(|q| !desk.rules().outranks(desk.config.rank(*q), own)).collect()
}

/// Detection; an announcement awaited in vain, of one that crashed after its answer; the same once
/// more, by the highest, which may have just begun to wait for that one; and then an election.
pub(super) fn settle<R>(config: &Config<R>) -> LocalSpan {
    config.detection().plus(config.delays(5 + 2 + 5 + 2 + 4))
}

impl<R: Rules> Algorithm<R> for Bully {
    type Message = Message;

    fn new(_config: &Config<R>, _me: NodeId, boot: &Boot<Cell>) -> Self {
        Self::normal(boot.kind != BootKind::Founding)
    }

    fn call(&mut self, desk: &mut D<'_, R>) {
        Self::call(self, desk);
    }

    fn hear(&mut self, from: NodeId, message: Message, desk: &mut D<'_, R>) {
        Self::hear(self, from, message, desk);
    }

    fn suspect(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        Self::suspect(self, whom, desk);
    }

    fn trust(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        Self::trust(self, whom, desk);
    }

    fn deadline(&mut self, desk: &mut D<'_, R>) {
        Self::deadline(self, desk);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        Self::next_deadline(self)
    }

    fn settle(config: &Config<R>) -> LocalSpan {
        settle(config)
    }
}
