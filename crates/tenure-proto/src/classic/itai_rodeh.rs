//! Itai and Rodeh: without ids, coins break the symmetry.
//!
//! A. Itai and M. Rodeh: Symmetry breaking in distributed networks (FOCS 1981; Information and
//! Computation 88, 1990). The form with round numbers on links that keep the order; Fokkink and
//! Pang (2006) show what can be left out.
//!
//! Anonymous nodes that know n. A candidate draws a number from 1 to n and sends it round; each
//! message counts its steps, so that a node recognises its own after n of them. A larger (round,
//! number) makes a candidate passive, a smaller one is dropped, an equal one is passed on with the
//! mark that it is not alone. If a node's own message comes back without the mark, it leads; with
//! the mark, it and its equals draw again in the next round.
//!
//! There is always exactly one leader when it ends, and it ends with probability 1, though no
//! number of rounds is sure to suffice: no algorithm without coins can do it at all. O(n log n)
//! messages expected.

use std::fmt;

use super::{Node, Port, RIGHT, Size, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItaiRodeh {
    size: u32,
    round: u32,
    number: u32,
    standing: Standing,
}

/// A message between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// A candidate's draw.
    Draw {
        /// Its round.
        round: u32,
        /// The number.
        number: u32,
        /// Steps so far.
        hop: u32,
        /// Whether an equal was met.
        shared: bool,
    },
    /// There is a leader: nobody can say who.
    Leader,
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["draw", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::Draw { .. } => 0,
            Self::Leader => 1,
        }
    }

    fn bits(&self) -> u32 {
        match self {
            Self::Draw { round, number, hop, .. } => 3 + bits(*round) + bits(*number) + bits(*hop),
            Self::Leader => 2,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Draw { round, number, hop, shared } => {
                let shared = if *shared { ", shared" } else { "" };
                write!(f, "draw {number}, round {round}, hop {hop}{shared}")
            }
            Self::Leader => f.write_str("leader"),
        }
    }
}

impl Node for ItaiRodeh {
    type Knows = Size;
    type Message = Message;

    fn new(Size(size): Size, _ports: u32) -> Self {
        Self { size, round: 0, number: 0, standing: Standing::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.standing = Standing::Candidate;
        self.draw(turn);
    }

    fn receive(&mut self, _from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        if self.standing == Standing::Asleep {
            self.wake(turn);
        }
        let Message::Draw { round, number, hop, shared } = message else {
            if self.standing != Standing::Leader {
                self.standing = Standing::Follower(None);
                turn.send(RIGHT, message);
            }
            return;
        };
        let passed = |shared| Message::Draw { round, number, hop: hop + 1, shared };
        if self.standing != Standing::Candidate {
            return turn.send(RIGHT, passed(shared));
        }
        match (round, number).cmp(&(self.round, self.number)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Greater => {
                self.standing = Standing::Passive;
                turn.send(RIGHT, passed(shared));
            }
            std::cmp::Ordering::Equal if hop < self.size => turn.send(RIGHT, passed(true)),
            std::cmp::Ordering::Equal if shared => self.draw(turn),
            std::cmp::Ordering::Equal => {
                self.standing = Standing::Leader;
                turn.send(RIGHT, Message::Leader);
            }
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }
}

impl ItaiRodeh {
    fn draw(&mut self, turn: &mut Turn<'_, Message>) {
        self.round += 1;
        self.number = 1 + turn.choose(self.size);
        turn.send(RIGHT, Message::Draw { round: self.round, number: self.number, hop: 1, shared: false });
    }
}
