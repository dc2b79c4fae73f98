//! Franklin: in each round, only local maxima among the candidates go on.
//!
//! W. R. Franklin (CACM 25, 1982).
//!
//! A candidate sends its id both ways. The passive nodes between candidates only relay, so each
//! hears its two nearest candidates. If both are smaller it goes on to the next round; if one is
//! larger it becomes passive; if it hears itself it is alone, and leads. Of two neighbours at most
//! one survives a round, so there are at most ⌊log2 n⌋+1 rounds of 2n messages: 2n(⌊log2 n⌋+1),
//! reached for n = 2, 3, 5.
//!
//! A neighbour may be one round ahead, never two, since it needs this node's answer for the next:
//! so each side has room for two messages. A node that becomes passive relays the messages that it
//! had put aside.

use super::ids::Message;
use super::{Id, LEFT, Node, Port, RIGHT, Standing, Turn};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Franklin {
    id: u32,
    /// Messages received from each side, the message of this round first.
    heard: [[Option<u32>; 2]; 2],
    standing: Standing,
}

impl Node for Franklin {
    type Knows = Id;
    type Message = Message;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, heard: [[None; 2]; 2], standing: Standing::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.standing = Standing::Candidate;
        self.compete(turn);
    }

    fn receive(&mut self, from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        if self.standing == Standing::Asleep {
            self.wake(turn);
        }
        match message {
            Message::Leader(id) => {
                if self.standing != Standing::Leader {
                    self.standing = Standing::Follower(Some(id));
                    turn.send(RIGHT, message);
                }
            }
            Message::Id(id) if self.standing == Standing::Candidate => {
                let side = &mut self.heard[from.0 as usize];
                let room = usize::from(side[0].is_some());
                assert_eq!(side[room], None, "a neighbour is at most one round ahead");
                side[room] = Some(id);
                self.judge(turn);
            }
            Message::Id(_) => turn.send(from.opposite(), message),
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }
}

impl Franklin {
    fn compete(&self, turn: &mut Turn<'_, Message>) {
        turn.send(LEFT, Message::Id(self.id));
        turn.send(RIGHT, Message::Id(self.id));
    }

    /// Ends every round whose messages from both sides are known.
    fn judge(&mut self, turn: &mut Turn<'_, Message>) {
        while let [[Some(left), _], [Some(right), _]] = self.heard {
            self.heard = self.heard.map(|[_, next]| [next, None]);
            if left == self.id || right == self.id {
                self.standing = Standing::Leader;
                return turn.send(RIGHT, Message::Leader(self.id));
            }
            if left.max(right) > self.id {
                return self.give_up(turn);
            }
            self.compete(turn);
        }
    }

    fn give_up(&mut self, turn: &mut Turn<'_, Message>) {
        self.standing = Standing::Passive;
        for (port, side) in [LEFT, RIGHT].into_iter().zip(self.heard) {
            side.into_iter().flatten().for_each(|id| turn.send(port.opposite(), Message::Id(id)));
        }
        self.heard = [[None; 2]; 2];
    }
}
