//! The outcome of an election: counts, and whether it was one.

use tenure_proto::classic::{Knows, Message, Node, Standing};

use super::place::Place;

/// The promise of an algorithm about its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winner {
    /// The largest id.
    Largest,
    /// The smallest id.
    Smallest,
    /// Anybody.
    Any,
}

/// Something that must hold, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its name.
    pub name: &'static str,
    /// `always` or `finally`.
    pub kind: &'static str,
    /// Its statement.
    pub says: &'static str,
    /// The violation in words; nothing if it holds.
    pub broken: Option<String>,
}

/// The counts of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Messages by kind, in the order of the algorithm's kinds.
    pub kinds: [u64; 4],
    /// The length of all messages.
    pub bits: u64,
    /// Messages received, wake-ups and alarms.
    pub events: u64,
    /// When a node became leader first.
    pub elected_at: Option<u64>,
    /// When the last message was received.
    pub time: u64,
    /// How many nodes lead now: it never becomes fewer.
    pub leaders: u64,
    /// Whether the run was cut off because it had gone on for too long.
    pub cut_off: bool,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { kinds: [0; 4], bits: 0, events: 0, elected_at: None, time: 0, leaders: 0, cut_off: false }
    }

    /// One more message.
    pub fn sent<M: Message>(&mut self, message: &M) {
        self.kinds[message.kind() & 3] += 1;
        self.bits += u64::from(message.bits());
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How many nodes there were.
    pub nodes: u32,
    /// The place of the leader, clockwise from 0.
    pub leader: Option<u32>,
    /// Its id, where nodes have ids.
    pub leader_id: Option<u32>,
    /// Messages by kind.
    pub kinds: Vec<(&'static str, u64)>,
    /// Messages until somebody leads.
    pub election: u64,
    /// Messages that tell the others.
    pub announcement: u64,
    /// The length of all messages.
    pub bits: u64,
    /// When somebody led, in units.
    pub elected_at: Option<u64>,
    /// When the last message was received.
    pub time: u64,
    /// How many of those make one unit of time: 1 except with random delays.
    pub unit: u64,
    /// Messages received, wake-ups and alarms.
    pub events: u64,
    /// The most steps that one node made.
    pub most_steps: u32,
    /// How many steps all nodes made.
    pub steps: u64,
    /// Bytes of the nodes and of the queue at their largest.
    pub memory: u64,
    /// The verdicts on all properties that must hold.
    pub verdicts: Vec<Verdict>,
}

impl Outcome {
    /// All messages.
    pub fn messages(&self) -> u64 {
        self.election + self.announcement
    }

    /// The first thing that does not hold.
    pub fn broken(&self) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.broken.is_some())
    }

    /// Judges a run that is over.
    pub(super) fn judge<N: Node>(tally: &Tally, ids: &[u32], places: &[Place<N>], winner: Winner) -> Self {
        let mut ends = Ends::default();
        for (number, place) in places.iter().enumerate() {
            ends.add(number, place.node.standing(), place.steps);
        }
        let kinds = N::Message::KINDS;
        let counted = kinds.iter().copied().zip(tally.kinds);
        let is_announcement = |kind: &str| kind == N::Message::ANNOUNCEMENT;
        let sum = |announced: bool| {
            counted
                .clone()
                .filter(|(kind, _)| is_announcement(kind) == announced)
                .map(|(_, count)| count)
                .sum()
        };
        let has_ids = <N::Knows as Knows>::ID;
        let leader = ends.first.filter(|_| ends.leaders == 1);
        let id_of = |place: usize| has_ids.then(|| ids.get(place).copied()).flatten();
        let leader_id = leader.and_then(id_of);
        Self {
            nodes: u32::try_from(ids.len()).unwrap_or(u32::MAX),
            leader: leader.and_then(|place| u32::try_from(place).ok()),
            leader_id,
            kinds: counted.clone().collect(),
            election: sum(false),
            announcement: sum(true),
            bits: tally.bits,
            elected_at: tally.elected_at,
            time: tally.time,
            unit: 1,
            events: tally.events,
            most_steps: ends.most_steps,
            steps: ends.steps,
            memory: 0,
            verdicts: verdicts(tally, &ends, ids, leader_id, if has_ids { winner } else { Winner::Any }),
        }
    }
}

/// Where the nodes stood in the end.
#[derive(Default)]
struct Ends {
    first: Option<usize>,
    leaders: u64,
    /// A node that does not know, and what it believes.
    ignorant: Option<(usize, Standing)>,
    /// Whom the followers name, if they do; and one that names another.
    named: Option<u32>,
    dissenter: Option<(usize, u32)>,
    most_steps: u32,
    steps: u64,
}

impl Ends {
    fn add(&mut self, place: usize, standing: Standing, steps: u32) {
        self.most_steps = self.most_steps.max(steps);
        self.steps += u64::from(steps);
        match standing {
            Standing::Leader => {
                self.leaders += 1;
                self.first.get_or_insert(place);
            }
            Standing::Follower(Some(id)) => {
                if *self.named.get_or_insert(id) != id {
                    self.dissenter.get_or_insert((place, id));
                }
            }
            Standing::Follower(None) => {}
            other => {
                self.ignorant.get_or_insert((place, other));
            }
        }
    }
}

fn verdicts(tally: &Tally, ends: &Ends, ids: &[u32], leader: Option<u32>, winner: Winner) -> Vec<Verdict> {
    let verdict = |name, kind, says, broken| Verdict { name, kind, says, broken };
    let (named, dissenter) = (ends.named, ends.dissenter);
    let unknown = match (ends.ignorant, dissenter, leader, named) {
        (Some((place, standing)), ..) => Some(format!("n{place} ends as {standing:?}")),
        (_, Some((place, id)), ..) => Some(format!("n{place} believes in {id}, others do not")),
        (_, _, Some(leader), Some(named)) if leader != named => {
            Some(format!("{named} is believed to lead, and {leader} does"))
        }
        _ => None,
    };
    let mut all = vec![
        verdict(
            "one-leader",
            "always",
            "at no time two nodes lead",
            (tally.leaders > 1).then(|| format!("{} nodes lead", tally.leaders)),
        ),
        verdict(
            "elected",
            "finally",
            "when all is quiet, somebody leads",
            (ends.leaders == 0).then(|| match tally.cut_off {
                true => "it went on for too long and was cut off".to_owned(),
                false => "all is quiet and nobody leads".to_owned(),
            }),
        ),
        verdict("known", "finally", "everybody knows that it is over, and the leader's id", unknown),
    ];
    let best = match winner {
        Winner::Largest => ids.iter().max().map(|best| ("largest", "the largest id leads", *best)),
        Winner::Smallest => ids.iter().min().map(|best| ("smallest", "the smallest id leads", *best)),
        Winner::Any => None,
    };
    all.extend(best.map(|(name, says, best)| {
        let wrong = leader.filter(|leader| *leader != best);
        verdict(name, "finally", says, wrong.map(|leader| format!("{leader} leads, not {best}")))
    }));
    all
}
