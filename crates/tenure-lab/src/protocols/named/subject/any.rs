//! The five elections as one machine: which of them it is, is a value.

use tenure_proto::boot::Boot;
use tenure_proto::classic::named::{
    Algorithm, Bully, ByConsensus, ByElection, Cell, Config, Desk, Rank, Ring, Rules, Trivial, bully,
    by_consensus, ring, trivial,
};
use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};

use crate::property::Property;
use crate::protocols::named::mutants::Wrong;
use crate::protocols::named::subject::Lesson;

/// Which election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// Everybody tells everybody.
    Trivial,
    /// The ring.
    Ring,
    /// The bully.
    Bully,
    /// Election by consensus.
    ByConsensus,
    /// Consensus by election.
    ByElection,
}

/// An election, under some rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lecture {
    /// The election.
    pub which: Which,
    /// Its rules.
    pub rules: Wrong,
}

impl Rules for Lecture {
    fn outranks(&self, one: Rank, other: Rank) -> bool {
        self.rules.outranks(one, other)
    }

    fn may_open(&self, open: bool) -> bool {
        self.rules.may_open(open)
    }

    fn next_term(&self, known: u64) -> u64 {
        self.rules.next_term(known)
    }

    fn awaits(&self, suspected: bool) -> bool {
        self.rules.awaits(suspected)
    }

    fn answer_time(&self, delay: LocalSpan) -> LocalSpan {
        self.rules.answer_time(delay)
    }

    fn may_announce(&self, back: bool) -> bool {
        self.rules.may_announce(back)
    }

    fn quorum(&self, voters: usize) -> usize {
        self.rules.quorum(voters)
    }

    fn proposal(&self, own: NodeId, accepted: Option<NodeId>) -> NodeId {
        self.rules.proposal(own, accepted)
    }
}

/// The facts that the laboratory needs of an election.
pub(super) struct Facts {
    pub(super) properties: &'static [Property],
    pub(super) kinds: &'static [&'static str],
}

fn facts<A: Lesson>() -> Facts {
    Facts { properties: A::PROPERTIES, kinds: A::KINDS }
}

impl Which {
    pub(super) fn facts(self) -> Facts {
        match self {
            Self::Trivial => facts::<Trivial>(),
            Self::Ring => facts::<Ring>(),
            Self::Bully => facts::<Bully>(),
            Self::ByConsensus => facts::<ByConsensus>(),
            Self::ByElection => facts::<ByElection>(),
        }
    }
}

/// A message of any election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Of the trivial one.
    Trivial(trivial::Message),
    /// Of the ring.
    Ring(ring::Message),
    /// Of the bully, and of consensus by its election.
    Bully(bully::Message),
    /// Of the one by consensus.
    ByConsensus(by_consensus::Message),
}

impl Word {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Trivial(message) => <Trivial as Lesson>::kind(message),
            Self::Ring(message) => <Ring as Lesson>::kind(message),
            Self::Bully(message) => <Bully as Lesson>::kind(message),
            Self::ByConsensus(message) => <ByConsensus as Lesson>::kind(message),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Trivial(message) => <Trivial as Lesson>::text(message),
            Self::Ring(message) => <Ring as Lesson>::text(message),
            Self::Bully(message) => <Bully as Lesson>::text(message),
            Self::ByConsensus(message) => <ByConsensus as Lesson>::text(message),
        }
    }
}

/// One process's part in any election.
#[allow(clippy::large_enum_variant, reason = "a run has a few, and boxes would cost each event")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Any {
    /// In the trivial one.
    Trivial(Trivial),
    /// In the ring.
    Ring(Ring),
    /// In the bully.
    Bully(Bully),
    /// In the one by consensus.
    ByConsensus(Box<ByConsensus>),
    /// In consensus by election.
    ByElection(ByElection),
}

type D<'a> = Desk<'a, Word, Lecture>;

/// A step of an election.
enum Step<M> {
    Call,
    Hear(NodeId, M),
    Suspect(NodeId),
    Trust(NodeId),
    Deadline,
}

/// Lets an election take a step at a desk of its own. A word of another election than its own
/// cannot come: all processes have one configuration.
fn take<A: Algorithm<Lecture>>(
    election: &mut A,
    step: Step<Word>,
    desk: &mut D<'_>,
    wrap: fn(A::Message) -> Word,
    unwrap: fn(Word) -> Option<A::Message>,
) {
    desk.lend(wrap, |desk| match step {
        Step::Call => election.call(desk),
        Step::Hear(from, word) => {
            if let Some(message) = unwrap(word) {
                election.hear(from, message, desk);
            }
        }
        Step::Suspect(whom) => election.suspect(whom, desk),
        Step::Trust(whom) => election.trust(whom, desk),
        Step::Deadline => election.deadline(desk),
    });
}

impl Any {
    fn step(&mut self, step: Step<Word>, desk: &mut D<'_>) {
        let of_bully = |word| if let Word::Bully(message) = word { Some(message) } else { None };
        match self {
            Self::Trivial(election) => take(election, step, desk, Word::Trivial, |word| match word {
                Word::Trivial(message) => Some(message),
                _ => None,
            }),
            Self::Ring(election) => take(election, step, desk, Word::Ring, |word| match word {
                Word::Ring(message) => Some(message),
                _ => None,
            }),
            Self::ByConsensus(election) => {
                take(&mut **election, step, desk, Word::ByConsensus, |word| match word {
                    Word::ByConsensus(message) => Some(message),
                    _ => None,
                });
            }
            Self::Bully(election) => take(election, step, desk, Word::Bully, of_bully),
            Self::ByElection(election) => take(election, step, desk, Word::Bully, of_bully),
        }
    }
}

impl Algorithm<Lecture> for Any {
    type Message = Word;

    fn new(config: &Config<Lecture>, me: NodeId, boot: &Boot<Cell>) -> Self {
        match config.rules.which {
            Which::Trivial => Self::Trivial(Trivial::new(config, me, boot)),
            Which::Ring => Self::Ring(Ring::new(config, me, boot)),
            Which::Bully => Self::Bully(Bully::new(config, me, boot)),
            Which::ByConsensus => Self::ByConsensus(Box::new(ByConsensus::new(config, me, boot))),
            Which::ByElection => Self::ByElection(ByElection::new(config, me, boot)),
        }
    }

    fn call(&mut self, desk: &mut D<'_>) {
        self.step(Step::Call, desk);
    }

    fn hear(&mut self, from: NodeId, message: Word, desk: &mut D<'_>) {
        self.step(Step::Hear(from, message), desk);
    }

    fn suspect(&mut self, whom: NodeId, desk: &mut D<'_>) {
        self.step(Step::Suspect(whom), desk);
    }

    fn trust(&mut self, whom: NodeId, desk: &mut D<'_>) {
        self.step(Step::Trust(whom), desk);
    }

    fn deadline(&mut self, desk: &mut D<'_>) {
        self.step(Step::Deadline, desk);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        match self {
            Self::Trivial(election) => Algorithm::<Lecture>::next_deadline(election),
            Self::Ring(election) => Algorithm::<Lecture>::next_deadline(election),
            Self::Bully(election) => Algorithm::<Lecture>::next_deadline(election),
            Self::ByConsensus(election) => Algorithm::<Lecture>::next_deadline(&**election),
            Self::ByElection(election) => Algorithm::<Lecture>::next_deadline(election),
        }
    }

    fn takes_part(&self) -> bool {
        match self {
            Self::ByElection(election) => Algorithm::<Lecture>::takes_part(election),
            _ => true,
        }
    }

    fn votes(&self) -> bool {
        match self {
            Self::ByConsensus(election) => Algorithm::<Lecture>::votes(&**election),
            _ => true,
        }
    }

    fn settle(config: &Config<Lecture>) -> LocalSpan {
        match config.rules.which {
            Which::Trivial => <Trivial as Algorithm<_>>::settle(config),
            Which::Ring => <Ring as Algorithm<_>>::settle(config),
            Which::Bully => <Bully as Algorithm<_>>::settle(config),
            Which::ByConsensus => <ByConsensus as Algorithm<_>>::settle(config),
            Which::ByElection => <ByElection as Algorithm<_>>::settle(config),
        }
    }
}
