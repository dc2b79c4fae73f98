//! The open-schedule adversary: no uniform asynchronous algorithm does with fewer than n/4·(log2
//! n + 1) messages.
//!
//! "Lower Bound" of the lecture, executable. An edge is open while nothing that was said over it
//! has been heard. The nodes at its ends cannot know whether it is an edge or the rest of a larger
//! ring, so nobody may decide yet. The adversary keeps an edge open for as long as it can, and
//! makes the algorithm talk meanwhile:
//!
//! ```text
//! line of 1:   a node that is awake; what it says waits at its two ends
//! line of n:   two lines A and B of n/2.   P: join A's right end to B's left end, deliver until all is quiet
//!                                          Q: join B's right end to A's left end instead
//!              keep the one in which more was heard: at least n/4
//! ```
//!
//! Why n/4: a wave from the joined edge reaches a contiguous stretch of each half. If the two waves
//! of P and Q overlapped in neither half, both could happen at once, and they would be a complete
//! election in which some node of the half without the leader hears nothing of the other half: it
//! could not know who leads. So in one half they cover n/2 nodes together, and one of them is heard
//! at least n/4 times. Therefore M(n) ≥ 2M(n/2) + n/4, which is n/4·(log2 n + 1).
//!
//! That the halves behave in the joined line as they did alone is not taken on trust: each join is
//! repeated from the very beginning on a closed ring of that size, with the schedules of the two
//! halves one after the other, and what every node hears is compared with what it heard in its
//! half.

use std::collections::VecDeque;

use tenure_proto::Chooser;
use tenure_proto::classic::{Knows, LEFT, Node, Port, RIGHT, Standing, Turn};

use super::outcome::Winner;
use crate::catalogue::Error;

/// One joining of two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// How many nodes the joined line has.
    pub size: usize,
    /// The place in the given order at which the joined nodes begin: they are `size` contiguous
    /// ones of it.
    pub from: usize,
    /// Messages heard after joining the first half's right end to the second's left.
    pub inner: u64,
    /// Messages heard after joining the second half's right end to the first's left instead.
    pub outer: u64,
    /// Whether the outer edge was chosen.
    pub chose_outer: bool,
}

impl Join {
    /// Messages heard in the schedule that was kept.
    pub fn heard(&self) -> u64 {
        self.inner.max(self.outer)
    }
}

/// The outcome of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Siege {
    /// How many nodes.
    pub nodes: usize,
    /// Messages received while an edge was open.
    pub receptions: u64,
    /// n/4·(log2 n + 1).
    pub bound: u64,
    /// A node that decided with an edge open: the algorithm is not uniform, or wrong.
    pub decided_open: Option<String>,
    /// A join in which too little was heard.
    pub too_quiet: Option<String>,
    /// All joins, small ones first.
    pub joins: Vec<Join>,
    /// Messages received in all, after the last edge was closed too.
    pub total: u64,
    /// The flaw in the election in the closed ring.
    pub wrong: Option<String>,
    /// How many histories of nodes were compared.
    pub histories: u64,
}

impl Siege {
    /// Small joins first. Outside of what is generic over nodes, so that it is compiled once.
    fn sort_joins(&mut self) {
        self.joins.sort_by_key(|join| (join.size, join.from));
    }
}

/// The messages that a node heard, in order.
type History<M> = Vec<(Port, M)>;

/// A line of nodes with an open edge between its ends, quiet except for what waits there.
#[derive(Clone)]
struct Line<N: Node> {
    ids: Vec<u32>,
    nodes: Vec<N>,
    /// Said to the left by the first node, and to the right by the last one: nobody has heard it.
    ends: [VecDeque<N::Message>; 2],
    histories: Vec<History<N::Message>>,
    /// The nodes and ports that heard something, in order.
    schedule: Vec<(u32, Port)>,
}

/// An adversary needs no chance, and its victim must not either: a different draw would be a
/// different history.
struct NoChance;

impl Chooser for NoChance {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

fn step<N: Node>(
    node: &mut N,
    sent: &mut Vec<(Port, N::Message)>,
    act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>),
) {
    act(node, &mut Turn::new(None, &mut NoChance, sent));
}

fn decided<N: Node>(line: &Line<N>) -> Option<String> {
    let decides = |node: &N| matches!(node.standing(), Standing::Leader | Standing::Follower(_));
    let at = line.nodes.iter().position(decides)?;
    let (id, size, standing) = (line.ids[at], line.ids.len(), line.nodes[at].standing());
    Some(format!("id {id} decides ({standing:?}) in a line of {size} nodes, with an edge open"))
}

/// Attacks a uniform algorithm on a ring of 2^k nodes with these ids.
pub fn attack<N: Node>(ids: &[u32], winner: Winner) -> Result<Siege, Error> {
    if N::ROUNDS {
        return Err(Error::new(
            "the adversary delays messages as it likes; an algorithm in rounds does not allow that",
        ));
    }
    if <N::Knows as Knows>::SIZE || !<N::Knows as Knows>::ID {
        return Err(Error::new(
            "the adversary is for uniform algorithms with ids: this one knows n, or has none",
        ));
    }
    if !ids.len().is_power_of_two() || ids.len() < 2 {
        return Err(Error::new(format!(
            "the adversary halves the ring again and again: --nodes 2, 4, 8, …, not {}",
            ids.len()
        )));
    }
    let n = ids.len() as u64;
    let mut siege = Siege {
        nodes: ids.len(),
        receptions: 0,
        bound: (n * (u64::from(n.ilog2()) + 1)).div_ceil(4),
        decided_open: None,
        too_quiet: None,
        joins: Vec::new(),
        total: 0,
        wrong: None,
        histories: 0,
    };
    let line = build::<N>(ids, 0, &mut siege)?;
    siege.receptions = line.schedule.len() as u64;
    siege.sort_joins();
    finish(line, &mut siege, winner);
    Ok(siege)
}

/// The loudest open schedule for these nodes.
fn build<N: Node>(ids: &[u32], from: usize, siege: &mut Siege) -> Result<Line<N>, Error> {
    if let [id] = ids {
        return Ok(awake(*id));
    }
    let (left, right) = ids.split_at(ids.len() / 2);
    let a = build::<N>(left, from, siege)?;
    let b = build::<N>(right, from + left.len(), siege)?;
    let (before, inner, outer) = (a.schedule.len() + b.schedule.len(), join(&a, &b), join(&b, &a));
    let heard = |line: &Line<N>| (line.schedule.len() - before) as u64;
    let join = Join {
        size: ids.len(),
        from,
        inner: heard(&inner),
        outer: heard(&outer),
        chose_outer: heard(&outer) > heard(&inner),
    };
    // The proof of n/4 holds if nobody decides; who decides with an edge open is caught by that
    // alone.
    let (line, halves) = if join.chose_outer { (outer, (b, a)) } else { (inner, (a, b)) };
    siege.histories += repeat(&line, (&halves.0, &halves.1)).map_err(Error::new)?;
    if let Some(decided) = decided(&line) {
        siege.decided_open.get_or_insert(decided);
    } else if 4 * join.heard() < join.size as u64 {
        let words = format!("joining {} nodes, only {} messages are heard", join.size, join.heard());
        siege.too_quiet.get_or_insert(words);
    }
    siege.joins.push(join);
    Ok(line)
}

fn awake<N: Node>(id: u32) -> Line<N> {
    let mut node = N::new(N::Knows::told(id, 0), 2);
    let mut sent = Vec::new();
    step(&mut node, &mut sent, N::wake);
    let mut ends = [VecDeque::new(), VecDeque::new()];
    sent.into_iter().for_each(|(port, message)| ends[port.0 as usize].push_back(message));
    Line { ids: vec![id], nodes: vec![node], ends, histories: vec![Vec::new()], schedule: Vec::new() }
}

/// Joins the right end of `a` to the left end of `b` and delivers in the order of sending until all
/// is quiet.
fn join<N: Node>(a: &Line<N>, b: &Line<N>) -> Line<N> {
    let middle = u32::try_from(a.nodes.len()).unwrap_or(u32::MAX);
    let mut line = Line {
        ids: [&a.ids[..], &b.ids].concat(),
        nodes: [&a.nodes[..], &b.nodes].concat(),
        ends: [a.ends[0].clone(), b.ends[1].clone()],
        histories: [&a.histories[..], &b.histories].concat(),
        schedule: a
            .schedule
            .iter()
            .copied()
            .chain(b.schedule.iter().map(|(at, port)| (at + middle, *port)))
            .collect(),
    };
    let to_b = a.ends[1].iter().map(|message| (middle, LEFT, *message));
    let to_a = b.ends[0].iter().map(|message| (middle - 1, RIGHT, *message));
    let mut queue: VecDeque<(u32, Port, N::Message)> = to_b.chain(to_a).collect();
    while let Some((at, port, message)) = queue.pop_front() {
        line.hear(at, port, message, &mut queue);
    }
    line
}

impl<N: Node> Line<N> {
    fn hear(
        &mut self,
        at: u32,
        port: Port,
        message: N::Message,
        queue: &mut VecDeque<(u32, Port, N::Message)>,
    ) {
        let place = at as usize;
        self.schedule.push((at, port));
        self.histories[place].push((port, message));
        let mut sent = Vec::new();
        step(&mut self.nodes[place], &mut sent, |node, turn| node.receive(port, message, turn));
        for (port, message) in sent {
            match (port, place) {
                (LEFT, 0) => self.ends[0].push_back(message),
                (LEFT, _) => queue.push_back((at - 1, RIGHT, message)),
                (_, place) if place + 1 == self.nodes.len() => self.ends[1].push_back(message),
                _ => queue.push_back((at + 1, LEFT, message)),
            }
        }
    }
}

/// Repeats a schedule from the very beginning on a closed ring, and compares each node's history at
/// the join with the one in its half, and in the end with the one in the line. Returns how many
/// were compared.
fn repeat<N: Node>(line: &Line<N>, (a, b): (&Line<N>, &Line<N>)) -> Result<u64, String> {
    let size = line.ids.len();
    let mut nodes: Vec<N> = line.ids.iter().map(|id| N::new(N::Knows::told(*id, 0), 2)).collect();
    let mut links: Vec<[VecDeque<N::Message>; 2]> =
        (0..size).map(|_| [VecDeque::new(), VecDeque::new()]).collect();
    let mut histories: Vec<History<N::Message>> = vec![Vec::new(); size];
    let say = |links: &mut Vec<[VecDeque<N::Message>; 2]>, at: usize, sent: &mut Vec<(Port, N::Message)>| {
        for (port, message) in sent.drain(..) {
            let to = if port == LEFT { (at + size - 1) % size } else { (at + 1) % size };
            links[to][port.opposite().0 as usize].push_back(message);
        }
    };
    let mut sent = Vec::new();
    for (at, node) in nodes.iter_mut().enumerate() {
        step(node, &mut sent, N::wake);
        say(&mut links, at, &mut sent);
    }
    let halves = a.schedule.len() + b.schedule.len();
    for (number, (at, port)) in line.schedule.iter().enumerate() {
        if number == halves && !a.histories.iter().chain(&b.histories).eq(histories.iter()) {
            return Err("in the joined ring a node's history differs from that in its half before the join"
                .to_owned());
        }
        let place = *at as usize;
        let Some(message) = links[place][port.0 as usize].pop_front() else {
            return Err("in the joined ring a message that was heard in a half was never sent".to_owned());
        };
        histories[place].push((*port, message));
        step(&mut nodes[place], &mut sent, |node, turn| node.receive(*port, message, turn));
        say(&mut links, place, &mut sent);
    }
    if histories != line.histories || nodes != line.nodes {
        return Err("the repeated schedule ends otherwise: the algorithm is not deterministic".to_owned());
    }
    Ok(2 * size as u64)
}

/// Closes the last edge, runs out and judges.
fn finish<N: Node>(mut line: Line<N>, siege: &mut Siege, winner: Winner) {
    let last = u32::try_from(line.nodes.len() - 1).unwrap_or(u32::MAX);
    let mut queue = VecDeque::new();
    loop {
        // Messages that reach an end go over the last edge now.
        let [left, right] = std::mem::take(&mut line.ends);
        queue.extend(left.into_iter().map(|message| (last, RIGHT, message)));
        queue.extend(right.into_iter().map(|message| (0, LEFT, message)));
        let Some((at, port, message)) = queue.pop_front() else { break };
        line.hear(at, port, message, &mut queue);
        if line.schedule.len() as u64 > 1000 * siege.receptions.max(1000) {
            siege.wrong = Some("it does not end when all edges are closed".to_owned());
            return;
        }
    }
    siege.total = line.schedule.len() as u64;
    let leads = |node: &&N| node.standing() == Standing::Leader;
    let leaders: Vec<u32> =
        line.ids.iter().zip(&line.nodes).filter(|(_, node)| leads(node)).map(|(id, _)| *id).collect();
    let best = match winner {
        Winner::Largest => line.ids.iter().max(),
        Winner::Smallest => line.ids.iter().min(),
        Winner::Any => leaders.first(),
    };
    let knows = |node: &N| {
        let standing = node.standing();
        standing == Standing::Leader || standing == Standing::Follower(leaders.first().copied())
    };
    if leaders.len() != 1 || leaders.first() != best {
        siege.wrong = Some(format!("with all edges closed {leaders:?} lead, not {best:?}"));
    } else if let Some(at) = line.nodes.iter().position(|node| !knows(node)) {
        siege.wrong = Some(format!("with all edges closed id {} does not know who leads", line.ids[at]));
    }
}
