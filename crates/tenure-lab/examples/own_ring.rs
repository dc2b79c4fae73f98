//! An election of one's own, in a page: written, counted, raced, and attacked.
//!
//! ```sh
//! cargo run -p tenure-lab --example own_ring
//! ```
//!
//! Every id walks both ways. A node that has heard one id from both sides knows that it has been
//! all round the ring, and nobody has swallowed it: it leads, half a lap earlier than with
//! `clockwise`. `docs/laboratory/tutorial.md` tells the story.

use std::fmt;

use tenure_lab::catalogue::Error;
use tenure_lab::protocols::ring::{self, Election, Order, Setup, outcome::Winner};
use tenure_proto::classic::{Id, LEFT, Message, Node, Port, RIGHT, Standing, Turn, bits};

/// A node. It takes an id that has come `ENOUGH` hops for the largest: a cheat, unless no ring is
/// that large.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Meet<const ENOUGH: u32> {
    id: u32,
    awake: bool,
    /// The largest id heard from the left, and from the right.
    heard: [u32; 2],
    leader: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Say {
    Walk { id: u32, hops: u32 },
    Leader(u32),
}

impl Message for Say {
    const KINDS: &'static [&'static str] = &["walk", "leader"];

    fn kind(&self) -> usize {
        usize::from(matches!(self, Self::Leader(_)))
    }

    fn bits(&self) -> u32 {
        match self {
            Self::Walk { id, hops } => 2 + bits(*id) + bits(*hops),
            Self::Leader(id) => 2 + bits(*id),
        }
    }
}

impl fmt::Display for Say {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walk { id, hops } => write!(f, "id {id} after {hops} hops"),
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}

impl<const ENOUGH: u32> Meet<ENOUGH> {
    fn tell(&mut self, leader: u32, turn: &mut Turn<'_, Say>) {
        if self.leader.replace(leader).is_none() {
            [LEFT, RIGHT].into_iter().for_each(|port| turn.send(port, Say::Leader(leader)));
        }
    }
}

impl<const ENOUGH: u32> Node for Meet<ENOUGH> {
    type Knows = Id;
    type Message = Say;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, awake: false, heard: [0; 2], leader: None }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Say>) {
        self.awake = true;
        [LEFT, RIGHT].into_iter().for_each(|port| turn.send(port, Say::Walk { id: self.id, hops: 1 }));
    }

    fn receive(&mut self, from: Port, say: Say, turn: &mut Turn<'_, Say>) {
        match say {
            Say::Leader(id) => self.tell(id, turn),
            Say::Walk { id, .. } if id < self.id && !self.awake => self.wake(turn),
            Say::Walk { id, .. } if id < self.id => {}
            Say::Walk { id, hops } => {
                self.awake = true;
                self.heard[from.0 as usize] = id;
                let met = self.heard[0] == self.heard[1] || id == self.id;
                if met || hops >= ENOUGH {
                    self.tell(id, turn);
                } else {
                    turn.send(from.opposite(), Say::Walk { id, hops: hops + 1 });
                }
            }
        }
    }

    fn standing(&self) -> Standing {
        match self.leader {
            Some(id) if id == self.id => Standing::Leader,
            Some(id) => Standing::Follower(Some(id)),
            None if !self.awake => Standing::Asleep,
            None if self.heard == [0; 2] => Standing::Candidate,
            None => Standing::Passive,
        }
    }
}

/// Runs one election, and says what it cost and whether it was one.
fn run(election: &dyn Election, nodes: u32) -> Result<String, Error> {
    let setup = Setup::new(nodes);
    let outcome = election.run(&election.ids(Order::Random, &setup)?, &setup, &mut |_| ())?;
    let verdict = outcome.broken().map_or("one leader, known to all", |broken| broken.says);
    let (name, messages, time) = (election.about().name, outcome.messages(), outcome.time);
    Ok(format!("{name}, {nodes} nodes: {messages} messages, time {time}; {verdict}\n"))
}

/// Lets the adversary have its way.
fn attack(election: &dyn Election, nodes: u32) -> Result<String, Error> {
    let siege = election.attack(&Order::Random.ids(nodes, 1, 1), None)?;
    let caught =
        siege.decided_open.map_or("nobody decided too soon".to_owned(), |what| format!("caught: {what}"));
    let (name, receptions, bound) = (election.about().name, siege.receptions, siege.bound);
    Ok(format!(
        "{name}, {nodes} nodes, attacked: {receptions} messages with an edge open, {bound} at least; {caught}\n"
    ))
}

/// All that this example shows.
pub(crate) fn report() -> Result<String, Error> {
    let meet = ring::own::<Meet<{ u32::MAX }>>("meet", Winner::Largest);
    let hasty = ring::own::<Meet<16>>("hasty", Winner::Largest);
    let steps = meet.lock_step(8, 100, 1)?;
    Ok([
        run(ring::find("clockwise")?, 1024)?,
        run(&meet, 1024)?,
        attack(&meet, 1024)?,
        run(&hasty, 16)?,
        attack(&hasty, 64)?,
        format!("meet, 8 nodes that do not differ: {} of them lead\n", steps.leaders()),
    ]
    .concat())
}

fn main() -> Result<(), Error> {
    print!("{}", report()?);
    Ok(())
}
