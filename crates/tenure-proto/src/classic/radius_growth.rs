//! Radius growth: who is the largest within 1, 2, 4, 8, … steps on both sides?
//!
//! Hirschberg and Sinclair (CACM 23, 1980); "Radius Growth" of the lecture.
//!
//! In phase p a candidate sends a probe 2^p steps far in both directions, and each comes back as a
//! reply. A node with a larger id that a probe passes takes away its leader bit; a node with a
//! smaller one becomes passive. A candidate that gets both replies with the bit goes on with twice
//! the radius. A candidate whose probe comes all the way round leads.
//!
//! Two candidates of phase p ≥ 1 are more than 2^(p-1) steps apart, so there are at most
//! ⌊n/(2^(p-1)+1)⌋ of them, and each costs 4·2^p messages: at most
//! `4n + Σ 4·2^p·⌊n/(2^(p-1)+1)⌋ + 2n`, p from 1 below P = ⌈log2 n⌉, which is at most 8n(1+⌈log2
//! n⌉). The winner's time is a geometric series: exactly 2(2^P-1)+n if it wakes first.
//!
//! Two variants. On the slides a probe without its bit travels on to the end and back ([`Slide`]);
//! in the textbooks the larger node swallows it, and its sender waits in vain until it hears of the
//! leader ([`Swallow`]). The second sends fewer messages and elects the same node at the same time.

use std::fmt;

use super::{Id, LEFT, Node, Port, RIGHT, Standing, State, Turn, bits};

/// As on the slides: hopeless probes come back.
pub type Slide = RadiusGrowth<false>;
/// As in the textbooks: hopeless probes are swallowed.
pub type Swallow = RadiusGrowth<true>;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RadiusGrowth<const SWALLOW: bool> {
    id: u32,
    leader: u32,
    phase: u8,
    /// Replies of this phase that are still out.
    awaited: u8,
    /// Whether all replies of this phase so far had their bit.
    unbeaten: bool,
    state: State,
}

/// A message between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Asks whether the sender is the largest within this radius.
    Probe {
        /// The candidate that sent it.
        id: u32,
        /// Steps that are left.
        ttl: u32,
        /// The phase in which it was sent.
        phase: u8,
        /// Whether nobody larger was met.
        bit: bool,
    },
    /// The outcome of a probe, on its way back.
    Reply {
        /// The candidate that sent the probe.
        id: u32,
        /// The phase in which it asked.
        phase: u8,
        /// Whether nobody larger was met.
        bit: bool,
    },
    /// The leader's id.
    Leader(u32),
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["probe", "reply", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::Probe { .. } => 0,
            Self::Reply { .. } => 1,
            Self::Leader(_) => 2,
        }
    }

    fn bits(&self) -> u32 {
        match self {
            Self::Probe { id, ttl, phase, .. } => 3 + bits(*id) + bits(*ttl) + bits(u32::from(*phase)),
            Self::Reply { id, phase, .. } => 3 + bits(*id) + bits(u32::from(*phase)),
            Self::Leader(id) => 2 + bits(*id),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beaten = |bit: &bool| if *bit { "" } else { ", beaten" };
        match self {
            Self::Probe { id, ttl, bit, .. } => write!(f, "probe {id}, {ttl} to go{}", beaten(bit)),
            Self::Reply { id, phase, bit } => write!(f, "reply {id}, phase {phase}{}", beaten(bit)),
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}

impl<const SWALLOW: bool> Node for RadiusGrowth<SWALLOW> {
    type Knows = Id;
    type Message = Message;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, leader: 0, phase: 0, awaited: 0, unbeaten: true, state: State::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.state = State::Candidate;
        self.probe(turn);
    }

    fn receive(&mut self, from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        match message {
            Message::Probe { id, ttl, phase, bit } => self.on_probe(from, (id, ttl, phase, bit), turn),
            Message::Reply { id, phase, bit } if id == self.id => self.on_reply(phase, bit, turn),
            Message::Reply { .. } => turn.send(from.opposite(), message),
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

impl<const SWALLOW: bool> RadiusGrowth<SWALLOW> {
    fn probe(&mut self, turn: &mut Turn<'_, Message>) {
        (self.awaited, self.unbeaten) = (2, true);
        let ttl = 1_u32.checked_shl(u32::from(self.phase)).unwrap_or(u32::MAX);
        let probe = Message::Probe { id: self.id, ttl, phase: self.phase, bit: true };
        turn.send(LEFT, probe);
        turn.send(RIGHT, probe);
    }

    fn on_probe(&mut self, from: Port, probe: (u32, u32, u8, bool), turn: &mut Turn<'_, Message>) {
        let (id, ttl, phase, mut bit) = probe;
        if id == self.id {
            // The other direction comes round too: one announcement is enough.
            if bit && self.state == State::Candidate {
                self.state = State::Leader;
                turn.send(RIGHT, Message::Leader(id));
            }
            return;
        }
        if id > self.id {
            if matches!(self.state, State::Asleep | State::Candidate) {
                self.state = State::Passive;
            }
        } else {
            if self.state == State::Asleep {
                self.wake(turn);
            }
            if SWALLOW {
                return;
            }
            bit = false;
        }
        if ttl > 1 {
            turn.send(from.opposite(), Message::Probe { id, ttl: ttl - 1, phase, bit });
        } else {
            turn.send(from, Message::Reply { id, phase, bit });
        }
    }

    fn on_reply(&mut self, phase: u8, bit: bool, turn: &mut Turn<'_, Message>) {
        if self.state != State::Candidate || phase != self.phase {
            return;
        }
        self.awaited -= 1;
        self.unbeaten &= bit;
        if self.awaited > 0 {
            return;
        }
        if self.unbeaten {
            self.phase += 1;
            self.probe(turn);
        } else {
            self.state = State::Passive;
        }
    }
}
