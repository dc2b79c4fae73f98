//! Wrong rules for elections among named processes.

use tenure_proto::NodeId;
use tenure_proto::classic::named::{Rank, Rules};
use tenure_proto::time::LocalSpan;

/// Which rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// None.
    Nothing,
    /// Attributes are not looked at.
    ByNameAlone,
    /// A process opens an election while one is open.
    OpensAgain,
    /// Runs have no term: the caller's name alone tells them apart.
    BareCallers,
    /// Answers of those who crashed are awaited.
    WaitsForTheDead,
    /// A bully waits for an answer as long as a message takes, one way.
    AnswersInOneD,
    /// A bully that has come back announces itself at once.
    ComesBackAtOnce,
    /// Half of the voters decide.
    HalfSuffices,
    /// A ballot proposes its own value, whatever was accepted before.
    OwnValue,
}

/// All mutants, with their names and what they do wrong.
pub const NAMED: [(Wrong, &str, &str); 8] = [
    (Wrong::ByNameAlone, "by-name-alone", "the best is judged by its name, not by its attribute"),
    (Wrong::OpensAgain, "opens-again", "an election is opened while another is open"),
    (
        Wrong::BareCallers,
        "bare-callers",
        "runs are told apart by the caller's name alone, as on the slides: a dead caller's run suppresses all lesser ones and never ends",
    ),
    (Wrong::WaitsForTheDead, "waits-for-the-dead", "the ids of those who are suspected are awaited"),
    (
        Wrong::AnswersInOneD,
        "answers-in-one-d",
        "an answer is awaited for D: the question alone may take that",
    ),
    (
        Wrong::ComesBackAtOnce,
        "comes-back-at-once",
        "who has come back announces itself at once, while another that takes it for dead does so too",
    ),
    (Wrong::HalfSuffices, "half-suffices", "half of the votes decide, and two halves need not meet"),
    (Wrong::OwnValue, "own-value", "a ballot proposes its own value, whatever may have been decided before"),
];

impl Rules for Wrong {
    fn outranks(&self, one: Rank, other: Rank) -> bool {
        if *self == Self::ByNameAlone { one.id > other.id } else { one > other }
    }

    fn may_open(&self, open: bool) -> bool {
        *self == Self::OpensAgain || !open
    }

    fn next_term(&self, known: u64) -> u64 {
        if *self == Self::BareCallers { 1 } else { known.saturating_add(1) }
    }

    fn awaits(&self, suspected: bool) -> bool {
        *self == Self::WaitsForTheDead || !suspected
    }

    fn answer_time(&self, delay: LocalSpan) -> LocalSpan {
        if *self == Self::AnswersInOneD { delay } else { delay.times(2) }
    }

    fn may_announce(&self, back: bool) -> bool {
        *self == Self::ComesBackAtOnce || !back
    }

    fn quorum(&self, voters: usize) -> usize {
        if *self == Self::HalfSuffices { voters.div_ceil(2).max(1) } else { voters / 2 + 1 }
    }

    fn proposal(&self, own: NodeId, accepted: Option<NodeId>) -> NodeId {
        accepted.filter(|_| *self != Self::OwnValue).unwrap_or(own)
    }
}
