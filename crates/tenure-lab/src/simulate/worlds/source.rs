//! An f-source: one process whose messages to the same few others are always in time, one way.
//!
//! This is what algorithms with accusations need, and it is not what Omega of the moving set needs:
//! nobody answers the source in time. The two models do not compare, and this world shows the other
//! half of it.

use tenure_proto::NodeId;
use tenure_proto::quorum::NodeSet;

use super::blocks::Ends;
use super::crashes::Crashes;
use super::moving_set::Losses;
use super::partners::Partners;
use super::{Adversary, Disaster, Fate, Letter, Programme, Site, accessible_text};
use crate::random::Random;
use crate::world::{RealTime, node_id};

#[derive(Debug)]
struct Source {
    source: NodeId,
    /// Whom it reaches in time.
    reached: NodeSet,
    ends: Ends,
    losses: Losses,
    round: u64,
}

impl Adversary for Source {
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        if letter.from == self.source && self.reached.contains(letter.to.index()) {
            return [Some(random.between(1, self.round / 2)), None];
        }
        let until = self.ends.end(now).0 - now.0;
        self.losses.fate(|random| until + self.round + random.below(self.round), random)
    }
}

pub(super) fn make(site: &Site<'_>) -> Result<Programme, String> {
    let ends = site.ends(2500);
    let mut random = site.random("chosen");
    let source = node_id(random.index(site.members()));
    let early = RealTime(ends.0 / 20);
    let mut crashes = Crashes::draw(site, source, early);
    let there = crashes.there(site.members(), early);
    let reached = Partners::new(site).at(early, (source, "refresh"), there, &mut random);
    let mut disasters = vec![(RealTime(0), Disaster::News(accessible_text(NodeSet::EMPTY)))];
    disasters.append(&mut crashes.disasters);
    let adversary = Source {
        source,
        reached,
        ends: Ends::draw(site, ends),
        losses: Losses::of(site),
        round: site.rhythm.round,
    };
    Ok(Programme { adversary: Box::new(adversary), disasters, owes: early, ends })
}
