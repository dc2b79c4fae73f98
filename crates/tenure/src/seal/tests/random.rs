//! Any schedule: packets are lost, late, repeated and sent from elsewhere, processes restart,
//! sessions are evicted.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One of the nodes greets another.
    Greet(usize, usize),
    /// One of the nodes says something that was never said before.
    Say(usize, usize),
    /// A packet that was ever sent arrives, perhaps again; sometimes from an address that is not
    /// its sender's.
    Deliver(usize, bool),
    /// One of the last packets arrives.
    DeliverLate(usize),
    Restart(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..5usize, 0..5usize).prop_map(|(from, to)| Step::Greet(from, to)),
        6 => (0..5usize, 0..5usize).prop_map(|(from, to)| Step::Say(from, to)),
        4 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(which, elsewhere)| Step::Deliver(which, elsewhere)),
        12 => (0..4usize).prop_map(Step::DeliverLate),
        1 => (0..5usize).prop_map(Step::Restart),
        3 => (0..300u64).prop_map(Step::Wait),
    ]
}

struct Sent {
    to: usize,
    from: SocketAddr,
    packet: Vec<u8>,
}

/// Three members and two candidates. Members have room for three, the last for one: a candidate
/// never gets it.
struct World {
    nodes: Vec<Node>,
    sent: Vec<Sent>,
    now: u64,
    said: u64,
    /// Texts that each has taken: none is sent twice.
    taken: BTreeSet<(usize, Vec<u8>)>,
}

impl World {
    fn new() -> Self {
        let rooms = [3, 3, 1, 3, 3];
        let mut nodes: Vec<_> =
            ["a", "b", "c"].into_iter().zip(1..).map(|(n, last)| Node::member(n, last)).collect();
        nodes.extend([Node::candidate("app", "*", 4), Node::candidate("other", "*", 5)]);
        for (node, peers) in nodes.iter_mut().zip(rooms) {
            node.limits.peers = peers;
            node.sessions = Sessions::new(node.identity.clone(), node.limits, seed(&node.identity));
        }
        Self { nodes, sent: Vec::new(), now: 0, said: 0, taken: BTreeSet::new() }
    }

    fn send(&mut self, from: usize, to: usize, packet: Vec<u8>) {
        self.sent.push(Sent { to, from: self.nodes[from].address, packet });
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Greet(from, to) if from != to && to < 3 => self.greet(from, to),
            Step::Say(from, to) if from != to => self.say(from, to),
            Step::Deliver(which, elsewhere) if !self.sent.is_empty() => {
                self.deliver(which % self.sent.len(), elsewhere);
            }
            Step::DeliverLate(back) if back < self.sent.len() => {
                self.deliver(self.sent.len() - 1 - back, false);
            }
            Step::Restart(node) => self.nodes[node].restart(),
            Step::Wait(millis) => self.now += millis,
            _ => (),
        }
    }

    fn greet(&mut self, from: usize, to: usize) {
        let name = self.nodes[to].name.clone();
        if let Some(packet) = self.nodes[from].sessions.greet(&name, at(self.now)) {
            self.send(from, to, packet);
        }
    }

    fn say(&mut self, from: usize, to: usize) {
        let (id, text) = (self.nodes[to].name.id(), self.said.to_string());
        self.said += 1;
        let sealed = self.nodes[from].sessions.seal(id, text.as_bytes(), Expect::Answer, at(self.now));
        if let Some((packet, _)) = sealed {
            self.send(from, to, packet);
        }
    }

    fn deliver(&mut self, which: usize, elsewhere: bool) {
        let Sent { to, from, packet } = &self.sent[which];
        let (to, from) = (*to, if elsewhere { address(66) } else { *from });
        let packet = packet.clone();
        let got = self.nodes[to].get(&packet, from, at(self.now));
        assert!(self.nodes.iter().all(|node| node.sessions.peers() <= node.limits.peers));
        match got {
            Got::Data(_, text) => assert!(self.taken.insert((to, text)), "taken twice"),
            Got::Reply(reply) | Got::Ready(_, Some(reply)) => {
                if let Some(back) = self.nodes.iter().position(|node| node.address == from) {
                    self.send(to, back, reply);
                }
            }
            Got::Ready(_, None) | Got::Dropped(_) | Got::KeyRefused(..) => (),
        }
    }

    /// Everything works from now on: what a driver does brings a word from one to another.
    fn heals(&mut self, from: usize, to: usize) -> bool {
        let before = self.taken.len();
        for _ in 0..12 {
            self.now += 60;
            let begin = self.sent.len();
            let silent = self.nodes[from].unanswered(at(self.now)).contains(&self.nodes[to].name.id());
            if silent || !self.nodes[from].sessions.has_session(self.nodes[to].name.id()) {
                self.greet(from, to);
            }
            self.say(from, to);
            let mut next = begin;
            while next < self.sent.len() {
                self.deliver(next, false);
                next += 1;
            }
            if self.taken.len() > before {
                return true;
            }
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_taken_twice_and_in_the_end_everybody_is_heard(steps in prop::collection::vec(step(), 0..400)) {
        let mut world = World::new();
        for step in steps {
            world.act(step);
        }
        for (from, to) in [(0, 1), (1, 0), (1, 2), (3, 0), (4, 0), (3, 1), (2, 0), (0, 2)] {
            prop_assert!(world.heals(from, to), "{from} does not reach {to}");
        }
    }
}
