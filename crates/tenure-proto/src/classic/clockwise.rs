//! Clockwise: every id runs round the ring until it meets a larger one.
//!
//! Chang and Roberts (CACM 22, 1979), after Le Lann; "Algorithm Clockwise" of the lecture.
//!
//! A node sends its id to the right, unless it has heard a larger one. It passes on ids larger than
//! its own and swallows smaller ones. Nobody can swallow the largest, which comes back to its
//! owner: the leader.
//!
//! If all wake at once, id v takes as many steps as it is far from the next larger id, clockwise.
//! So the messages are the sum of those distances (and n for the largest): n(n+1)/2 if the ids
//! descend clockwise, 2n-1 if they ascend, and exactly n·H_n on average over all orders, with a
//! standard deviation of n·√(2-π²/6) = 0.596 n. Time n, and n more to tell everybody; up to 2n-1 if
//! the largest is woken last.

use super::ids::Message;
use super::{Id, Node, Port, RIGHT, Standing, State, Turn};

/// A node. Twelve bytes, because a ring may have a hundred million of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clockwise {
    id: u32,
    /// The leader's id, once it is a follower.
    leader: u32,
    state: State,
}

impl Node for Clockwise {
    type Knows = Id;
    type Message = Message;
    const ONE_WAY: bool = true;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, leader: 0, state: State::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.state = State::Candidate;
        turn.send(RIGHT, Message::Id(self.id));
    }

    fn receive(&mut self, _from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        match message {
            Message::Id(id) if id > self.id => {
                if matches!(self.state, State::Asleep | State::Candidate) {
                    self.state = State::Passive;
                }
                turn.send(RIGHT, message);
            }
            Message::Id(id) if id == self.id => {
                self.state = State::Leader;
                turn.send(RIGHT, Message::Leader(id));
            }
            Message::Id(_) => {
                if self.state == State::Asleep {
                    self.wake(turn);
                }
            }
            Message::Leader(id) => {
                if self.state != State::Leader {
                    (self.state, self.leader) = (State::Follower, id);
                    turn.send(RIGHT, message);
                }
            }
        }
    }

    fn standing(&self) -> Standing {
        self.state.standing(self.leader)
    }
}
