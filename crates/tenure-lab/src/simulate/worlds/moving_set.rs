//! The moving set: some process reaches, with every single message, just enough others in time, and
//! always others.
//!
//! Malkhi, Oprea and Zhou call a process f-accessible at an instant if a message that it sends then
//! is answered by f others within delta. Until some time processes come into this luck and fall out
//! of it as the seed likes; from then on one of them keeps it forever. The adversary takes those
//! partners that it has not taken for the longest time, answers three round trips in ten at the
//! very last moment, and makes every other message late.

use tenure_proto::NodeId;
use tenure_proto::quorum::NodeSet;

use super::crashes::Crashes;
use super::partners::Partners;
use super::{Adversary, Disaster, Fate, Letter, Programme, Site, accessible_text};
use crate::random::Random;
use crate::simulate::Fault;
use crate::world::{RealTime, node_id};

/// How much of what is slow is lost, in a hundred, if loss is asked for.
pub(super) const LOSS: u64 = 60;
/// How much of what is slow comes twice, in a hundred, if that is asked for.
pub(super) const DUP: u64 = 20;

#[derive(Debug)]
struct MovingSet {
    partners: Partners,
    fortune: Fortune,
    crashes: Crashes,
    slow: Slow,
}

impl Adversary for MovingSet {
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        if letter.answers.is_some() {
            if let Some(delay) = self.partners.answer(now, letter) {
                return self.slow.losses.twice(delay, random);
            }
        } else if self.fortune.at(now).contains(letter.from.index()) {
            let there = self.crashes.there(self.slow.members, now);
            let partners = self.partners.at(now, (letter.from, letter.kind), there, random);
            if partners.contains(letter.to.index()) {
                return [Some(self.partners.request(now, letter, random)), None];
            }
        } else if self.fortune.nearly.contains(letter.from.index()) {
            // One partner too few: enough for a process that counts wrongly.
            let there = self.crashes.there(self.slow.members, now);
            let partners = self.partners.at(now, (letter.from, letter.kind), there, random);
            let last = partners.positions().filter(|node| *node != letter.from.index()).last();
            if partners.contains(letter.to.index()) && last != Some(letter.to.index()) {
                return [Some(self.partners.request(now, letter, random)), None];
            }
        }
        self.slow.fate(now, random)
    }
}

/// The processes that are accessible, and when.
#[derive(Clone, Debug)]
pub(super) struct Fortune {
    /// Rising; each holds until the next.
    pub(super) changes: Vec<(RealTime, NodeSet)>,
    /// The one that is accessible forever.
    pub(super) chosen: NodeId,
    /// Those that lack only one partner when they are not accessible.
    pub(super) nearly: NodeSet,
}

impl Fortune {
    /// Fortune that changes until `settles`, and thereafter spares one process; others come and go.
    pub(super) fn draw(site: &Site<'_>, settles: RealTime, ends: RealTime) -> Self {
        let mut random = site.random("fortune");
        let members = site.members();
        let chosen = random.index(members);
        let longest = site.rhythm.longest;
        let pace = random.pick(&[2, 6, 20]);
        let favour = random.pick(&[20, 50, 80]);
        // After that time the others are mostly unlucky, in some runs always: nobody else could
        // lead.
        let later = random.pick(&[0, 0, 30]);
        // In some runs several keep their luck: then any of them may lead.
        let share = random.pick(&[0, 0, 30]);
        let lasting: NodeSet = (0..members).filter(|host| *host == chosen || random.percent(share)).collect();
        let nearly = (0..members).filter(|_| random.percent(30)).collect();
        let (mut changes, mut at) = (Vec::new(), 0);
        while at < ends.0 {
            let settled = at >= settles.0;
            let percent = if settled { later } else { favour };
            let mut set: NodeSet = (0..members).filter(|_| random.percent(percent)).collect();
            if settled {
                set = set.union(lasting);
            }
            if changes.last().is_none_or(|(_, last)| *last != set) {
                changes.push((RealTime(at), set));
            }
            let next = at + longest / 4 + random.below(longest * pace);
            at = if settled { next } else { next.min(settles.0) };
        }
        Self { changes, chosen: node_id(chosen), nearly }
    }

    /// The processes that are accessible at an instant.
    pub(super) fn at(&self, now: RealTime) -> NodeSet {
        let next = self.changes.partition_point(|(at, _)| *at <= now);
        next.checked_sub(1).map_or(NodeSet::EMPTY, |last| self.changes[last].1)
    }

    /// The same for the minutes.
    pub(super) fn news(&self) -> impl Iterator<Item = (RealTime, Disaster)> + '_ {
        self.changes.iter().map(|(at, set)| (*at, Disaster::News(accessible_text(*set))))
    }
}

/// Messages that are too late for a round trip in time.
#[derive(Clone, Debug)]
struct Slow {
    members: usize,
    round: u64,
    /// At most so much later.
    most: u64,
    /// And that much more, as a part of the time that has passed; zero if delays do not grow.
    grows: u64,
    losses: Losses,
}

impl Slow {
    fn draw(site: &Site<'_>) -> Self {
        let mut random = site.random("slow");
        Self {
            members: site.members(),
            round: site.rhythm.round,
            most: site.rhythm.longest * random.pick(&[1, 4, 8]) / 4,
            grows: random.pick(&[0, 0, 100]),
            losses: Losses::of(site),
        }
    }

    fn fate(&self, now: RealTime, random: &mut Random) -> Fate {
        let grown = now.0.checked_div(self.grows).unwrap_or(0);
        let late = |random: &mut Random| self.round + 1 + random.below(self.most + grown);
        self.losses.fate(late, random)
    }
}

/// The messages that are lost, and those that come twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    loss: u64,
    dup: u64,
}

impl Losses {
    pub(super) fn of(site: &Site<'_>) -> Self {
        let percent = |fault, percent| if site.faults.has(fault) { percent } else { 0 };
        Self { loss: percent(Fault::Loss, LOSS), dup: percent(Fault::Dup, DUP) }
    }

    /// The fate of an answer in time: never lost, but it may come twice.
    pub(super) fn twice(self, delay: u64, random: &mut Random) -> Fate {
        [Some(delay), random.percent(self.dup).then_some(delay)]
    }

    /// The fate of a message that would take so long.
    pub(super) fn fate(self, mut late: impl FnMut(&mut Random) -> u64, random: &mut Random) -> Fate {
        if random.percent(self.loss) {
            return [None, None];
        }
        let again = random.percent(self.dup);
        [Some(late(random)), again.then(|| late(random))]
    }
}

/// When fortune settles: somewhere between a twentieth and a sixth of the run.
pub(super) fn settles(site: &Site<'_>, ends: RealTime) -> RealTime {
    let mut random = site.random("settles");
    RealTime(random.between(ends.0 / 20, ends.0 / 6))
}

pub(super) fn make(site: &Site<'_>) -> Result<Programme, String> {
    let ends = site.ends(250);
    let settles = settles(site, ends);
    let fortune = Fortune::draw(site, settles, ends);
    let mut crashes = Crashes::draw(site, fortune.chosen, settles);
    let mut disasters: Vec<_> = fortune.news().collect();
    disasters.append(&mut crashes.disasters);
    let adversary = MovingSet { partners: Partners::new(site), fortune, crashes, slow: Slow::draw(site) };
    Ok(Programme { adversary: Box::new(adversary), disasters, owes: settles, ends })
}
