//! The star: an adversary for promises that are kept by those in the middle.
//!
//! A hub, or as many as a majority needs besides one, is reached by everybody; the others do not
//! know of each other, and each of them asks the hub as if it were alone. Now everything depends on
//! the hub's lock, to the nanosecond: requests come in time or are lost, answers likewise, Releases
//! come much later, and the hub restarts at once, with or without its memory. Clocks run at the
//! edge of what they may. Some of the time two of the outer processes hear of each other, just when
//! one asks: a renewal that fails early, with the older lease still standing, is where a Release
//! does harm.

use tenure_proto::quorum::NodeSet;

use super::weather::{Bounds, suffering};
use super::{Adversary, Disaster, Fate, Letter, Programme, Site};
use crate::random::Random;
use crate::simulate::Fault;
use crate::world::{Freeze, How, RealTime, node_id};

#[derive(Debug)]
struct Star {
    bounds: Bounds,
    hubs: NodeSet,
    /// How much of what is asked is lost, in a hundred.
    loss: u64,
    /// How often an outer process is heard by another, in a hundred.
    overheard: u64,
    /// The most by which a Release is held up.
    held: u64,
    dup: bool,
}

impl Adversary for Star {
    fn fate(&mut self, _now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        let by_hub = self.hubs.contains(letter.from.index()) || self.hubs.contains(letter.to.index());
        if !by_hub && !random.percent(self.overheard) {
            return [None, None];
        }
        let delay = |star: &Self, random: &mut Random| match letter.kind {
            "release" if random.percent(50) => star.bounds.least.max(1) + random.below(star.held),
            _ if random.percent(10) => random.between(star.bounds.least.max(1), star.bounds.fast),
            _ => star.bounds.in_time(random),
        };
        if letter.kind == "election" && random.percent(self.loss) {
            return [None, None];
        }
        let again = self.dup && random.percent(10);
        [Some(delay(self, random)), again.then(|| delay(self, random))]
    }

    fn processing(&mut self, delay: u64, random: &mut Random) -> u64 {
        self.bounds.processing(delay, random)
    }
}

/// The hub falls and is back at once, or stands still and finds everything at once.
fn falls(site: &Site<'_>, hubs: NodeSet, ends: RealTime) -> Vec<(RealTime, Disaster)> {
    let mut random = site.random("falls");
    let mut disasters = Vec::new();
    let hubs: Vec<usize> = hubs.positions().collect();
    for _ in 0..random.pick(&[0, 4, 12, 40]) {
        let (hub, at) = (node_id(random.pick(&hubs)), RealTime(random.below(ends.0)));
        let down = random.pick(&[50_000, 500_000, 5_000_000]);
        let long = random.below(site.rhythm.longest);
        disasters.push((
            at,
            match random.below(6) {
                0 | 1 if site.faults.has(Fault::Crash) => Disaster::Crash(hub, How::Reboot, down),
                2 if site.faults.has(Fault::Crash) => Disaster::Crash(hub, How::Restart, down),
                3 if site.faults.has(Fault::Amnesia) => Disaster::Crash(hub, How::DiskLost, down),
                4 if site.faults.has(Fault::Pause) => Disaster::Freeze(hub, Freeze::Pause, long),
                _ => continue,
            },
        ));
    }
    disasters
}

pub(super) fn make(site: &Site<'_>) -> Result<Programme, String> {
    let bounds = Bounds::of(site)?;
    let mut random = site.random("star");
    let ends = site.ends(40);
    let majority = site.constants.find("majority").is_none_or(|majority| majority > 0);
    let many = if majority { site.hosts / 2 } else { 1 }.min(site.hosts.saturating_sub(1)).max(1);
    // Those in the middle come last, so that they support the others; now and then they do not.
    let first = if random.percent(80) { site.hosts - many } else { random.index(site.hosts) };
    let hubs: NodeSet = (first..first + many).map(|hub| hub % site.hosts).collect();
    let mut disasters = falls(site, hubs, ends);
    let nobody = (NodeSet::EMPTY, ends);
    disasters.extend(suffering(site, RealTime(if random.percent(50) { ends.0 } else { 1 }), nobody));
    let adversary = Star {
        bounds,
        hubs,
        loss: random.pick(&[0, 20, 50]),
        overheard: random.pick(&[0, 5, 30]),
        held: site.rhythm.longest * random.pick(&[1, 4]),
        dup: site.faults.has(Fault::Dup),
    };
    Ok(Programme { adversary: Box::new(adversary), disasters, owes: ends, ends })
}
