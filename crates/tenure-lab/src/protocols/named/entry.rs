//! Elections among named processes in the catalogue.

use crate::catalogue::{About, Entry, MutantAbout};
use crate::protocols::named::mutants::{NAMED, Wrong};
use crate::protocols::named::subject::{Lecture, Which};
use crate::simulate::{Fault, Faults};

const MODEL: &str =
    "processes that know each other's names, links that lose nothing and take at most D, crashes";

/// Everybody tells everybody.
pub(crate) const TRIVIAL: Course = Course {
    which: Which::Trivial,
    about: About {
        name: "trivial",
        model: MODEL,
        promises: "the best by (attribute, id) of those that live is elected by all of them; N²-1 messages, time 2",
        source: "ECEN 757, Elections: the trivial solution",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::WaitsForTheDead],
};

/// The ring.
pub(crate) const RING: Course = Course {
    which: Which::Ring,
    about: About {
        name: "ring",
        model: MODEL,
        promises: "as trivial; j+2N messages and time, called j hops before the best: 2N to 3N-1",
        source: "ECEN 757, Elections: the ring election, with several initiators and both repairs",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::BareCallers],
};

/// The bully.
pub(crate) const BULLY: Course = Course {
    which: Which::Bully,
    about: About {
        name: "bully",
        model: "as trivial; everybody knows how good everybody is",
        promises: "as trivial; N²-N-1 messages in 4D at most, N-2 in one at least, N counting the crashed one",
        source: "Garcia-Molina (1982); ECEN 757, Elections: the bully algorithm",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::AnswersInOneD, Wrong::ComesBackAtOnce],
};

/// Election by consensus.
pub(crate) const BY_CONSENSUS: Course = Course {
    which: Which::ByConsensus,
    about: About {
        name: "by-consensus",
        model: "as trivial, with disks; agreement on each term's winner needs no bound on delays",
        promises: "never two winners of one term; the best of those that live in the end; 5(N-1) messages, time 5",
        source: "ECEN 757, Elections: consensus to solve election; Lamport, The Part-Time Parliament (1998)",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::HalfSuffices, Wrong::OwnValue],
};

/// Consensus by election.
pub(crate) const BY_ELECTION: Course = Course {
    which: Which::ByElection,
    about: About {
        name: "consensus-by-election",
        model: "as bully; who crashed stays away",
        promises: "agreement, validity and termination: the last bit of the elected id decides",
        source: "ECEN 757, Elections: if we could solve election, we could solve consensus",
    },
    mutants: &[Wrong::AnswersInOneD],
};

/// The faults that elections of the synchronous model must tolerate.
pub(crate) fn synchronous() -> Faults {
    Faults::NONE.with(Fault::Crash).with(Fault::Amnesia).with(Fault::Clock)
}

/// An election and what is known of it.
pub(crate) struct Course {
    about: About,
    which: Which,
    mutants: &'static [Wrong],
}

impl Entry for Course {
    type Subject = Lecture;

    fn about(&self) -> About {
        self.about
    }

    fn sound(&self) -> Lecture {
        Lecture { which: self.which, rules: Wrong::Nothing }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Lecture)> {
        let all = NAMED.iter().filter(|(wrong, ..)| self.mutants.contains(wrong));
        all.map(|(wrong, name, says)| {
            (MutantAbout { name, says }, Lecture { which: self.which, rules: *wrong })
        })
        .collect()
    }

    fn bears(&self) -> Faults {
        synchronous()
    }
}
