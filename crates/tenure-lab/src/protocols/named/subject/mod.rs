//! Elections among named processes in the laboratory.
//!
//! **The synchronous model** is a run whose only faults are crashes (and lost disks, and drifting
//! clocks): a message then takes at most nine tenths of D, and a process is woken in time. **The
//! asynchronous model** is any other run.
//!
//! All of them are one machine here ([`Any`]), so that the simulator is compiled once for them.

mod any;

pub use any::{Any, Lecture, Which, Word};

use tenure_proto::classic::named::{
    Algorithm, Bully, ByConsensus, ByElection, Command, Config, Event, Message, Named, Repair, Ring, Sight,
    Trivial, bully, by_consensus, ring, trivial,
};
use tenure_proto::quorum::Quorums;
use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId, Protocol};

use crate::count::Counts;
use crate::draw::{BarKind, MarkKind, Words};
use crate::property::{Kind, Property};
use crate::protocols::named::judge::{BY_CONSENSUS, BY_ELECTION, ELECTION, NamedJudge, REST};
use crate::random::Random;
use crate::subject::{Assumption, Constants, Key, LeaderThreads, Rhythm, Role, Shape, Subject, Unit};
use crate::world::{Flaws, clock::MILLI};

/// The laboratory's knowledge of such an election besides how it works.
pub trait Lesson: Algorithm<Lecture> {
    /// Its name among them.
    const WHICH: Which;
    /// The properties of it.
    const PROPERTIES: &'static [Property];
    /// The kinds of its messages.
    const KINDS: &'static [&'static str];
    /// Those that tell the outcome of an election that is over: counted apart.
    const ANNOUNCEMENTS: &'static [&'static str];
    /// The kind of a message.
    fn kind(message: &Self::Message) -> &'static str;
    /// All that it says.
    fn text(message: &Self::Message) -> String;
    /// How long it is: two bits for the kind, and each number in it in binary.
    fn bits(message: &Self::Message) -> u64;
}

fn bits(numbers: &[u64]) -> u64 {
    let length = |number: &u64| u64::from(u64::BITS - number.leading_zeros()).max(1);
    2 + numbers.iter().map(length).sum::<u64>()
}

impl Lesson for Trivial {
    const WHICH: Which = Which::Trivial;
    const PROPERTIES: &'static [Property] = &ELECTION;
    const KINDS: &'static [&'static str] = &["start", "id"];
    const ANNOUNCEMENTS: &'static [&'static str] = &[];

    fn kind(message: &trivial::Message) -> &'static str {
        match message {
            trivial::Message::Start { .. } => "start",
            trivial::Message::Id { .. } => "id",
        }
    }

    fn text(message: &trivial::Message) -> String {
        match message {
            trivial::Message::Start { term } => format!("an election, term {term}"),
            trivial::Message::Id { term, attr } => format!("my attribute is {attr}, term {term}"),
        }
    }

    fn bits(message: &trivial::Message) -> u64 {
        match message {
            trivial::Message::Start { term } => bits(&[*term]),
            trivial::Message::Id { term, attr } => bits(&[*term, *attr]),
        }
    }
}

impl Lesson for Ring {
    const WHICH: Which = Which::Ring;
    const PROPERTIES: &'static [Property] = &ELECTION;
    const KINDS: &'static [&'static str] = &["election", "elected"];
    const ANNOUNCEMENTS: &'static [&'static str] = &["elected"];

    fn kind(message: &ring::Message) -> &'static str {
        match message {
            ring::Message::Election { .. } => "election",
            ring::Message::Elected { .. } => "elected",
        }
    }

    fn text(message: &ring::Message) -> String {
        let (what, tag, rank) = match message {
            ring::Message::Election { tag, best } => ("election", tag, best),
            ring::Message::Elected { tag, winner } => ("elected", tag, winner),
        };
        let caller = NodeId(tag.caller);
        format!("{what} {}:{}, run {} of {caller}", rank.id, rank.attr, tag.term)
    }

    fn bits(message: &ring::Message) -> u64 {
        match message {
            ring::Message::Election { tag, best: rank } | ring::Message::Elected { tag, winner: rank } => {
                bits(&[tag.term, tag.caller, rank.attr, rank.id.0])
            }
        }
    }
}

impl Lesson for Bully {
    const WHICH: Which = Which::Bully;
    const PROPERTIES: &'static [Property] = &ELECTION;
    const KINDS: &'static [&'static str] = &["election", "ok", "coordinator"];
    const ANNOUNCEMENTS: &'static [&'static str] = &["coordinator"];

    fn kind(message: &bully::Message) -> &'static str {
        match message {
            bully::Message::Election => "election",
            bully::Message::Ok => "ok",
            bully::Message::Coordinator => "coordinator",
        }
    }

    fn text(message: &bully::Message) -> String {
        match message {
            bully::Message::Election => "election: is anybody there who is higher?".to_owned(),
            bully::Message::Ok => "ok: I am".to_owned(),
            bully::Message::Coordinator => "coordinator: I am".to_owned(),
        }
    }

    fn bits(_message: &bully::Message) -> u64 {
        bits(&[])
    }
}

impl Lesson for ByElection {
    const WHICH: Which = Which::ByElection;
    const PROPERTIES: &'static [Property] = &BY_ELECTION;
    const KINDS: &'static [&'static str] = <Bully as Lesson>::KINDS;
    const ANNOUNCEMENTS: &'static [&'static str] = <Bully as Lesson>::ANNOUNCEMENTS;

    fn kind(message: &bully::Message) -> &'static str {
        <Bully as Lesson>::kind(message)
    }

    fn text(message: &bully::Message) -> String {
        <Bully as Lesson>::text(message)
    }

    fn bits(message: &bully::Message) -> u64 {
        <Bully as Lesson>::bits(message)
    }
}

impl Lesson for ByConsensus {
    const WHICH: Which = Which::ByConsensus;
    const PROPERTIES: &'static [Property] = &BY_CONSENSUS;
    const KINDS: &'static [&'static str] =
        &["want", "prepare", "promise", "accept", "accepted", "nack", "decided"];
    const ANNOUNCEMENTS: &'static [&'static str] = &["decided"];

    fn kind(message: &by_consensus::Message) -> &'static str {
        match message {
            by_consensus::Message::Want => "want",
            by_consensus::Message::Prepare { .. } => "prepare",
            by_consensus::Message::Promise { .. } => "promise",
            by_consensus::Message::Accept { .. } => "accept",
            by_consensus::Message::Accepted { .. } => "accepted",
            by_consensus::Message::Nack { .. } => "nack",
            by_consensus::Message::Decided { .. } => "decided",
        }
    }

    fn text(message: &by_consensus::Message) -> String {
        use by_consensus::Message::{Accept, Accepted, Decided, Nack, Prepare, Promise, Want};
        match message {
            Want => "who leads?".to_owned(),
            Prepare { term, ballot } => format!("prepare term {term}, round {}", ballot.round),
            Promise { term, ballot, accepted: None } => {
                format!("promise term {term}, round {}; no vote yet", ballot.round)
            }
            Promise { term, ballot, accepted: Some((last, value)) } => {
                format!(
                    "promise term {term}, round {}; my vote in round {} was {value}",
                    ballot.round, last.round
                )
            }
            Accept { term, ballot, value } => {
                format!("accept {value} in term {term}, round {}", ballot.round)
            }
            Accepted { term, ballot } => format!("accepted in term {term}, round {}", ballot.round),
            Nack { term, round } => format!("no: in term {term} I have promised round {round}"),
            Decided { term, leader } => format!("decided: {leader} in term {term}"),
        }
    }

    fn bits(message: &by_consensus::Message) -> u64 {
        use by_consensus::Message::{Accept, Accepted, Decided, Nack, Prepare, Promise, Want};
        match message {
            Want => bits(&[]),
            Prepare { term, ballot } | Accepted { term, ballot } => bits(&[*term, ballot.round, ballot.node]),
            Promise { term, ballot, accepted } => {
                let last = accepted.map_or(1, |(last, value)| bits(&[last.round, last.node, value.0]) - 1);
                bits(&[*term, ballot.round, ballot.node]) + last
            }
            Accept { term, ballot, value } => bits(&[*term, ballot.round, ballot.node, value.0]),
            Nack { term, round } => bits(&[*term, *round]),
            Decided { term, leader } => bits(&[*term, leader.0]),
        }
    }
}

const fn key(name: &'static str, unit: Unit, says: &'static str, otherwise: u64) -> Key {
    Key { name, unit, says, otherwise: Some(otherwise) }
}

const KEYS: [Key; 9] = [
    Key {
        name: "bound",
        unit: Unit::Time,
        says: "the most that a message takes, as processes believe (D)",
        otherwise: None,
    },
    Key {
        name: "period",
        unit: Unit::Time,
        says: "how often a process sends a heartbeat (T)",
        otherwise: None,
    },
    key(
        "by",
        Unit::Word(&["id", "load", "disk", "version"]),
        "what the best is judged by: id, load (the least), disk (the most), version (the newest; few differ)",
        0,
    ),
    key("draw", Unit::Count, "the number from which loads, disks and versions are drawn", 0),
    key(
        "detector",
        Unit::Word(&["heartbeat", "incomplete", "inaccurate"]),
        "heartbeat (silence for T+D), incomplete (misses crashes), inaccurate (silence for T)",
        0,
    ),
    key(
        "repair",
        Unit::Word(&["detector", "neighbour"]),
        "who starts anew when the winner of a ring crashes: each that suspects it, or its predecessors alone",
        0,
    ),
    key("watchers", Unit::Count, "how many predecessors do, with repair=neighbour", 1),
    key("drift", Unit::Ppm, "the bound on a clock's rate error", 1000),
    key("tick", Unit::Time, "the step in which clocks advance", 1),
];

/// The attribute of a process: the more the better.
fn attribute(constants: &Constants, node: usize) -> u64 {
    let draw = constants.get("draw");
    let mut random = Random::stream(draw, &format!("attribute of n{node}"));
    match constants.get("by") {
        1 => 100 - random.below(100), // A load, in per cent: what is left.
        2 => random.below(4096),      // A disk, in gigabytes: what is free.
        3 => 1 + random.below(3),     // A version: ties are the rule.
        _ => 0,
    }
}

fn config(rules: Lecture, members: usize, constants: &Constants) -> Config<Lecture> {
    let span = |name| LocalSpan::from_nanos(constants.get(name));
    Config {
        attrs: (0..members).map(|node| attribute(constants, node)).collect(),
        delay: span("bound"),
        period: span("period"),
        sight: match constants.get("detector") {
            1 => Sight::Blind,
            2 => Sight::Nervous,
            _ => Sight::Sharp,
        },
        repair: match constants.get("repair") {
            0 => Repair::Detector,
            _ => Repair::Neighbours(constants.get("watchers")),
        },
        rules,
    }
}

impl Subject for Lecture {
    type Machine = Named<Any, Self>;
    type Judge = NamedJudge;

    const WORDS: Words = Words {
        leads: "has elected itself",
        supports: "has elected another",
        silent: "silent",
        elected: "elects itself",
        zones: "partition",
        tracks: ["", ""],
        routine: "heartbeat",
    };
    const PROMISES: bool = false;

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn properties(&self) -> &'static [Property] {
        self.which.facts().properties
    }

    /// That elections never end takes messages, and not their loss.
    fn rests_on_network(property: &Property) -> bool {
        property.kind == Kind::Eventually && *property != REST
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        Assumption::Drift { ppm: constants.get("drift") }
    }

    fn flaws(&self) -> Flaws {
        Flaws::NONE
    }

    fn draw(&self, random: &mut Random, _members: usize) -> Constants {
        let bound = random.pick(&[5, 10, 20]) * MILLI;
        Constants::new(&KEYS)
            .with("bound", bound)
            .with("period", bound * random.pick(&[4, 8, 12]))
            .with("by", random.pick(&[0, 0, 1, 2, 3]))
            .with("draw", random.below(1000))
    }

    /// A message that is in time takes nine tenths of D at most: the rest is for handling it.
    fn rhythm(constants: &Constants) -> Rhythm {
        let (bound, period) = (constants.get("bound"), constants.get("period"));
        let longest = 4 * period + 50 * bound;
        Rhythm { round: bound / 10 * 9, longest, act: longest, step: 0 }
    }

    fn config(
        &self,
        quorums: &Quorums,
        constants: &Constants,
    ) -> Result<<Self::Machine as Protocol>::Config, String> {
        if constants.get("bound") < 1000 || constants.get("period") == 0 {
            return Err("bound must be a microsecond at least, and period more than nothing".to_owned());
        }
        Ok(config(*self, quorums.members().len(), constants))
    }

    fn tell_threads(_threads: &mut LeaderThreads, _event: &Event) {}

    fn judge(&self, quorums: &Quorums, constants: &Constants) -> NamedJudge {
        let config = config(*self, quorums.members().len(), constants);
        // Clocks may be slow by a thousandth, and wake-ups late by a little.
        let settle = <Any as Algorithm<Self>>::settle(&config).as_nanos();
        NamedJudge::new(self.properties(), config, settle + settle / 20)
    }

    fn opening(&self, _constants: &Constants, _role: Role) -> Vec<Command> {
        vec![Command::Call]
    }

    /// Anybody may call an election at any time.
    fn whim(&self, _random: &mut Random, _constants: &Constants, _roles: &[Role], _node: NodeId) -> Command {
        Command::Call
    }

    fn message_kind(message: &Message<Word>) -> &'static str {
        match message {
            Message::Beat => "heartbeat",
            Message::Word(word) => word.kind(),
        }
    }

    fn message_kinds(&self) -> Vec<&'static str> {
        self.which.facts().kinds.iter().copied().chain(["heartbeat"]).collect()
    }

    fn message_text(message: &Message<Word>) -> String {
        match message {
            Message::Beat => "I live".to_owned(),
            Message::Word(word) => word.text(),
        }
    }

    fn command_text(command: &Command) -> String {
        match command {
            Command::Call => "call".to_owned(),
            Command::Suspect(whom) => format!("suspect {whom}"),
            Command::Trust(whom) => format!("trust {whom}"),
        }
    }

    fn parse_command(text: &str) -> Option<Command> {
        let node = |text: &str| text.strip_prefix('n')?.parse().ok().map(NodeId);
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["call"] => Some(Command::Call),
            ["suspect", whom] => node(whom).map(Command::Suspect),
            ["trust", whom] => node(whom).map(Command::Trust),
            _ => None,
        }
    }

    fn event_text(node: NodeId, event: &Event) -> String {
        match event {
            Event::Opened => format!("{node} takes part in an election"),
            Event::Closed => format!("{node} is done with the election"),
            Event::Elected { who, term: None } => format!("{node} elects {who}"),
            Event::Elected { who, term: Some(term) } => format!("{node} elects {who} in term {term}"),
            Event::Suspects(whom) => format!("{node} suspects {whom}"),
            Event::Trusts(whom) => format!("{node} trusts {whom} again"),
            Event::Decided { value } => format!("{node} decides {}", u8::from(*value)),
            Event::Gone => format!("{node} was away, and takes no part any more"),
            Event::Mute => format!("{node} lost its disk, and votes no more"),
        }
    }

    /// Whom a process has elected is drawn in that one's colour, until it elects another; who has
    /// elected itself leads.
    fn event_shape(node: NodeId, event: &Event) -> Shape {
        let Event::Elected { who, .. } = event else { return Shape::Nothing };
        Shape::Until {
            kind: if node == *who { BarKind::Lease } else { BarKind::Grant { to: who.index() } },
            until: LocalTime::from_nanos(u64::MAX / 4),
            label: if node == *who { format!("{node} leads") } else { format!("{node} has elected {who}") },
            mark: (node == *who).then_some(MarkKind::Elected),
        }
    }

    fn count(event: &Event, counts: &mut Counts) {
        counts.add(match event {
            Event::Opened => "elections-opened",
            Event::Closed => "elections-closed",
            Event::Elected { .. } => "elected",
            Event::Suspects(_) => "suspicions",
            Event::Trusts(_) => "suspicions-ended",
            Event::Decided { .. } => "decisions",
            Event::Gone => "gone-for-good",
            Event::Mute => "mutes",
        });
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        &["elections-opened", "elections-closed", "elected", "suspicions"]
    }
}
