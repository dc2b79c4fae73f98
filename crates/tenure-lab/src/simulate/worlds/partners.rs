//! Partners that answer in time: chosen anew, those first that were not chosen for the longest
//! time, and their answers kept in time.

use std::collections::BTreeMap;

use tenure_proto::NodeId;
use tenure_proto::quorum::{NodeSet, Quorums};

use super::{Letter, Site};
use crate::random::Random;
use crate::subject::Constants;
use crate::world::{RealTime, node_id};

/// How often a round trip in time takes exactly as long as it may, in a hundred.
const AT_THE_EDGE: u64 = 30;

/// How often nearly all of it is the way there, in a hundred: then what is asked is written down as
/// late as may be.
const LATE_THERE: u64 = 30;

/// Whom each process reaches in time, and which answers are still owed.
#[derive(Clone, Debug)]
pub(super) struct Partners {
    /// The longest round trip that is in time (delta).
    round: u64,
    quorums: Quorums,
    constants: Constants,
    suffices: fn(&Quorums, &Constants, NodeSet, &str) -> bool,
    /// Its answers so far.
    known: BTreeMap<(&'static str, NodeSet), bool>,
    /// For each process and each other: the number of the last choice that took it.
    used: Vec<Vec<u64>>,
    choices: u64,
    /// For each process the last choice: when, for which kind, and whom.
    chosen: Vec<Option<(RealTime, &'static str, NodeSet)>>,
    /// Answers that will arrive in time.
    owed: Vec<Owed>,
}

impl Partners {
    pub(super) fn new(site: &Site<'_>) -> Self {
        Self {
            round: site.rhythm.round,
            quorums: site.quorums.clone(),
            constants: site.constants.clone(),
            suffices: site.suffices,
            known: BTreeMap::new(),
            used: vec![vec![0; site.hosts]; site.hosts],
            choices: 0,
            chosen: vec![None; site.hosts],
            owed: Vec::new(),
        }
    }

    /// The partners of `from` at this instant, for this kind of message: as few as suffice together
    /// with itself, of those that are `there`, and those first that were not taken for the longest
    /// time.
    pub(super) fn at(
        &mut self,
        now: RealTime,
        (from, kind): (NodeId, &'static str),
        there: NodeSet,
        random: &mut Random,
    ) -> NodeSet {
        let me = from.index();
        match self.chosen[me] {
            Some((at, of, set)) if at == now && of == kind => return set,
            _ => {}
        }
        let mut others: Vec<(u64, u64, usize)> = there
            .positions()
            .filter(|other| *other != me)
            .map(|other| (self.used[me][other], random.bits(), other))
            .collect();
        others.sort_unstable();
        let mut enough = |set: NodeSet| {
            let asks = || (self.suffices)(&self.quorums, &self.constants, set, kind);
            *self.known.entry((kind, set)).or_insert_with(asks)
        };
        let mut set = NodeSet::from_iter([me]);
        for (.., other) in &others {
            if enough(set) {
                break;
            }
            set.insert(*other);
        }
        // Of those taken only because another was missing still, the latest go first.
        for (.., other) in others.iter().rev() {
            let without = set.difference(NodeSet::from_iter([*other]));
            if set.contains(*other) && enough(without) {
                set = without;
            }
        }
        self.choices += 1;
        set.positions().for_each(|other| self.used[me][other] = self.choices);
        self.chosen[me] = Some((now, kind, set));
        set
    }

    /// How long a request takes whose answer will be in time.
    pub(super) fn request(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> u64 {
        let round = self.round;
        let whole = if random.percent(AT_THE_EDGE) { round } else { random.between(round / 2, round) };
        // Usually soon; now and then there is just time left for a disk and the way back.
        let there = match random.percent(LATE_THERE) {
            true => (whole - round / 4).max(1),
            false => random.between(1, (whole / 4).max(1)),
        };
        let Letter { from: to, to: from, kind, number, .. } = letter;
        self.owed.push(Owed { from, to, kind, number, due: now.after(whole) });
        there
    }

    /// How long an answer takes that is owed, if it is.
    pub(super) fn answer(&mut self, now: RealTime, letter: Letter) -> Option<u64> {
        self.owed.retain(|owed| owed.due >= now);
        let asked = (letter.from, letter.to, letter.answers, letter.number);
        let this = |owed: &Owed| (owed.from, owed.to, Some(owed.kind), owed.number) == asked;
        let owed = self.owed.iter().position(this)?;
        Some(self.owed.remove(owed).due.0 - now.0)
    }
}

/// An answer that will arrive in time.
#[derive(Clone, Copy, Debug)]
struct Owed {
    from: NodeId,
    to: NodeId,
    /// The kind of the question.
    kind: &'static str,
    number: u64,
    due: RealTime,
}

/// Everybody.
pub(super) fn everyone(hosts: usize) -> NodeSet {
    (0..hosts).map(|host| node_id(host).index()).collect()
}
