//! Growing silent blocks: what makes every learned timeout wrong in the end.
//!
//! Where delays are merely random, messages sent one after the other arrive one after the other,
//! however late, and timeouts that learn win. So here time comes in blocks, each longer than the
//! one before by a part of it. For the length of a block one process has the same partners, and
//! everything else that anybody sends waits for its end. Each of the others is among the partners
//! now and then, and hears nothing forever longer times in between.
//!
//! The other processes are in luck for some blocks, all their messages and the answers to them
//! being quick, and out of it for some. Without that, the one with partners would at least be
//! missed least often of all, and counting would find it.

use tenure_proto::NodeId;
use tenure_proto::quorum::NodeSet;

use super::crashes::Crashes;
use super::moving_set::Losses;
use super::partners::Partners;
use super::{Adversary, Disaster, Fate, Letter, Programme, Site, accessible_text};
use crate::random::Random;
use crate::world::{RealTime, node_id};

#[derive(Debug)]
struct Blocks {
    members: usize,
    partners: Partners,
    chosen: NodeId,
    /// The lucky processes in each block.
    lucky: Vec<NodeSet>,
    crashes: Crashes,
    ends: Ends,
    losses: Losses,
    round: u64,
}

impl Adversary for Blocks {
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        let block = self.ends.begin(now);
        let lucky = self.lucky.get(self.ends.number(now)).copied().unwrap_or_default();
        let quick = if letter.answers.is_some() { letter.to } else { letter.from };
        if quick != self.chosen && lucky.contains(quick.index()) {
            return [Some(random.between(1, self.round / 4)), None];
        }
        if letter.answers.is_some() {
            if let Some(delay) = self.partners.answer(now, letter) {
                return [Some(delay), None];
            }
        } else if letter.from == self.chosen {
            // One choice a block: it is as if all its messages left at its beginning.
            let there = self.crashes.there(self.members, now);
            let partners = self.partners.at(block, (letter.from, letter.kind), there, random);
            if partners.contains(letter.to.index()) {
                return [Some(self.partners.request(now, letter, random)), None];
            }
        }
        let until = self.ends.end(now).0 - now.0;
        self.losses.fate(|random| until + 1 + random.below(self.round), random)
    }
}

/// Where blocks end: each is longer than the one before by a twentieth to a fifth.
#[derive(Clone, Debug)]
pub(super) struct Ends(Vec<RealTime>);

impl Ends {
    pub(super) fn draw(site: &Site<'_>, until: RealTime) -> Self {
        let mut random = site.random("blocks");
        let (mut ends, mut at, mut length) = (vec![RealTime(0)], 0, site.rhythm.longest);
        while at < until.0 {
            at += length;
            ends.push(RealTime(at));
            length += length * random.between(5, 20) / 100;
        }
        Self(ends)
    }

    fn begin(&self, now: RealTime) -> RealTime {
        self.0[self.number(now)]
    }

    /// The number of the present block.
    fn number(&self, now: RealTime) -> usize {
        self.0.partition_point(|end| *end <= now).saturating_sub(1)
    }

    /// The lucky processes besides `chosen` in each block: for one to four blocks in a row, and out
    /// of luck for as many.
    fn luck(&self, site: &Site<'_>, chosen: NodeId) -> Vec<NodeSet> {
        let mut random = site.random("luck");
        let mut lucky = vec![NodeSet::EMPTY; self.0.len()];
        for host in (0..site.members()).filter(|host| node_id(*host) != chosen) {
            let (mut luck, mut left) = (random.percent(50), random.below(4) + 1);
            for set in &mut lucky {
                if luck {
                    set.insert(host);
                }
                left -= 1;
                if left == 0 {
                    (luck, left) = (!luck, random.below(4) + 1);
                }
            }
        }
        lucky
    }

    /// The end of the present block.
    pub(super) fn end(&self, now: RealTime) -> RealTime {
        self.0.get(self.0.partition_point(|end| *end <= now)).copied().unwrap_or(now)
    }
}

pub(super) fn make(site: &Site<'_>) -> Result<Programme, String> {
    let ends = site.ends(2500);
    let chosen = node_id(site.random("chosen").index(site.members()));
    let early = RealTime(ends.0 / 20);
    let mut crashes = Crashes::draw(site, chosen, early);
    let blocks = Ends::draw(site, ends);
    let lucky = blocks.luck(site, chosen);
    let news = blocks.0.iter().zip(&lucky).map(|(begin, lucky)| {
        let accessible = lucky.union([chosen.index()].into_iter().collect());
        (*begin, Disaster::News(accessible_text(accessible)))
    });
    let mut disasters: Vec<_> = news.filter(|(begin, _)| *begin < ends).collect();
    disasters.append(&mut crashes.disasters);
    let adversary = Blocks {
        members: site.members(),
        partners: Partners::new(site),
        chosen,
        lucky,
        crashes,
        ends: blocks,
        losses: Losses::of(site),
        round: site.rhythm.round,
    };
    Ok(Programme { adversary: Box::new(adversary), disasters, owes: early, ends })
}
