//! Growing silent blocks: what makes every learned timeout wrong in the end.
//!
//! Where delays are merely random, messages sent one after the other arrive one after the other, however late, and timeouts that learn
//! win. So here time comes in blocks, each longer than the one before by a part of it. For the length of a block one process
//! has the same partners, and everything else that anybody sends waits for its end. Each of the others is among the partners now and then, and
//! hears nothing for ever longer times in between.

use tenure_proto::NodeId;

use super::crashes::Crashes;
use super::moving_set::Losses;
use super::partners::Partners;
use super::{Adversary, Disaster, Fate, Letter, Programme, Site, accessible_text};
use crate::random::Random;
use crate::world::{RealTime, node_id};

#[derive(Debug)]
struct Blocks {
    hosts: usize,
    partners: Partners,
    chosen: NodeId,
    crashes: Crashes,
    ends: Ends,
    losses: Losses,
    round: u64,
}

impl Adversary for Blocks {
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        let block = self.ends.begin(now);
        if letter.answer {
            if let Some(delay) = self.partners.answer(now, letter) {
                return [Some(delay), None];
            }
        } else if letter.from == self.chosen {
            // One choice a block: it is as if all its messages left at its beginning.
            let there = self.crashes.there(self.hosts, now);
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
        self.0[self.0.partition_point(|end| *end <= now).saturating_sub(1)]
    }

    /// The end of the present block.
    pub(super) fn end(&self, now: RealTime) -> RealTime {
        self.0.get(self.0.partition_point(|end| *end <= now)).copied().unwrap_or(now)
    }
}

pub(super) fn make(site: &Site<'_>) -> Result<Programme, String> {
    let ends = site.ends(2500);
    let chosen = node_id(site.random("chosen").index(site.hosts));
    let early = RealTime(ends.0 / 20);
    let mut crashes = Crashes::draw(site, chosen, early);
    let lucky = accessible_text([chosen.index()].into_iter().collect());
    let mut disasters = vec![(RealTime(0), Disaster::News(lucky))];
    disasters.append(&mut crashes.disasters);
    let adversary = Blocks {
        hosts: site.hosts,
        partners: Partners::new(site),
        chosen,
        crashes,
        ends: Ends::draw(site, ends),
        losses: Losses::of(site),
        round: site.rhythm.round,
    };
    Ok(Programme { adversary: Box::new(adversary), disasters, owes: early, ends })
}
