//! Weather: what links and processes do as they like, before a world settles and outside of what it
//! settles for.

use tenure_proto::quorum::NodeSet;

use super::{Disaster, Fate, Letter, Site};
use crate::protocols::local::subject as local;
use crate::random::Random;
use crate::simulate::Fault;
use crate::world::{Freeze, How, RealTime, node_id};

/// The bounds that a world keeps to where it promises something, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// δ: what is in time takes no longer.
    pub(super) delay: u64,
    /// δmin: nothing takes less.
    pub(super) least: u64,
    /// Δ: what is out of reach takes longer.
    pub(super) fast: u64,
    /// The time after which something is owed.
    pub(super) kappa: u64,
}

impl Bounds {
    /// Those of the protocol. One that counts on no bounds is given what suits its rhythm.
    pub(super) fn of(site: &Site<'_>) -> Result<Self, String> {
        let round = site.rhythm.round.max(8);
        if site.constants.find("hole").is_none() {
            let (delay, kappa) = (round / 2, 4 * site.rhythm.longest);
            return Ok(Self { delay, least: 0, fast: round, kappa });
        }
        let config = local::resolve(site.constants, site.hosts)?;
        let (timing, constants) = (config.settings().timing, config.constants());
        Ok(Self {
            delay: timing.delay.as_nanos(),
            least: timing.least_delay.as_nanos(),
            fast: timing.fast.as_nanos(),
            kappa: constants.kappa_leader.max(constants.kappa_support).as_nanos(),
        })
    }

    /// The delay of a message in time: any, and often the least or the most.
    pub(super) fn in_time(self, random: &mut Random) -> u64 {
        let least = self.least.max(1);
        match random.below(10) {
            0 | 1 => self.delay,
            2 | 3 => least,
            _ => random.between(least, self.delay),
        }
    }

    /// The delay of a message that comes too late: often only just.
    pub(super) fn beyond(self, random: &mut Random) -> u64 {
        let most = if random.percent(30) { 10 } else { 4 * self.fast };
        self.fast + 1 + random.below(most)
    }

    /// Up to a quarter of its delay a message that is in time may wait at its receiver: that is
    /// charged to its delay.
    pub(super) fn processing(self, delay: u64, random: &mut Random) -> u64 {
        let most = delay.saturating_sub(self.least.max(1)) / 4;
        if most == 0 || delay > self.delay || random.percent(70) { 0 } else { random.below(most) }
    }
}

/// How a link behaves for a while, one way.
#[derive(Clone, Copy, Debug)]
enum Manner {
    InTime,
    /// Some messages are lost, others late.
    Mixed,
    Beyond,
    Silent,
}

/// Links that behave now so, now so, each way for itself.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    bounds: Bounds,
    hosts: usize,
    longest: u64,
    links: Vec<(RealTime, Manner)>,
    dup: bool,
}

impl Weather {
    pub(super) fn new(site: &Site<'_>, bounds: Bounds) -> Self {
        let links = vec![(RealTime(0), Manner::Silent); site.hosts * site.hosts];
        let (hosts, longest) = (site.hosts, site.rhythm.longest);
        Self { bounds, hosts, longest, links, dup: site.faults.has(Fault::Dup) }
    }

    pub(super) fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        let link = &mut self.links[letter.from.index() * self.hosts + letter.to.index()];
        if now >= link.0 {
            let manners = [Manner::InTime, Manner::InTime, Manner::Mixed, Manner::Beyond, Manner::Silent];
            *link = (now.after(1 + random.below(2 * self.longest)), random.pick(&manners));
        }
        let bounds = self.bounds;
        let delay = |random: &mut Random| match link.1 {
            Manner::InTime => Some(bounds.in_time(random)),
            Manner::Mixed if random.percent(30) => None,
            Manner::Mixed => Some(random.between(bounds.least.max(1), 3 * bounds.fast)),
            Manner::Beyond => Some(bounds.beyond(random)),
            Manner::Silent => None,
        };
        let first = delay(random);
        let again = self.dup && random.percent(10);
        [first, if again { delay(random) } else { None }]
    }
}

/// Faults of the processes until `until`, and of some of them (`restless`) until `ends`. A process
/// that falls before is back by then.
pub(super) fn suffering(
    site: &Site<'_>,
    until: RealTime,
    (restless, ends): (NodeSet, RealTime),
) -> Vec<(RealTime, Disaster)> {
    let mut random = site.random("suffering");
    let longest = site.rhythm.longest;
    let mut disasters = Vec::new();
    let lasts = random.pick(&[0, 2, 6, 12]) * site.hosts as u64;
    for _ in 0..lasts {
        let host = random.index(site.hosts);
        let last = if restless.contains(host) { ends.0 } else { until.0 };
        let at = random.below(last.max(1));
        let short = random.pick(&[1, 10, 1000]);
        let long = (random.below(longest * 2) / short).min(last - at).saturating_sub(1);
        let crash = |how| Disaster::Crash(node_id(host), how, long);
        let disaster = match random.below(8) {
            0 | 1 if site.faults.has(Fault::Crash) => crash(How::Restart),
            2 | 3 if site.faults.has(Fault::Crash) => crash(How::Reboot),
            4 if site.faults.has(Fault::Amnesia) => crash(How::DiskLost),
            5 if site.faults.has(Fault::Pause) => Disaster::Freeze(node_id(host), Freeze::Pause, long),
            6 if site.faults.has(Fault::Pause) => Disaster::Freeze(node_id(host), Freeze::Suspend, long),
            7 => Disaster::Whim(node_id(host)),
            _ => continue,
        };
        disasters.push((RealTime(at), disaster));
    }
    disasters
}
