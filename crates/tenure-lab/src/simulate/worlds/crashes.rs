//! The processes that fail in a named world, and when: never more than the protocol can tolerate,
//! and not the one that everybody shall follow.

use tenure_proto::NodeId;
use tenure_proto::quorum::NodeSet;

use super::partners::everyone;
use super::{Disaster, Site};
use crate::random::Random;
use crate::simulate::Fault;
use crate::world::{Freeze, How, RealTime, node_id};

/// Messages of these kinds must find enough answers among those that are left.
const KINDS: [&str; 2] = ["refresh", "get-epoch"];

/// Those that fail.
#[derive(Clone, Debug, Default)]
pub(super) struct Crashes {
    /// Nobody counts on this process between these times.
    absent: Vec<(usize, RealTime, RealTime)>,
    pub(super) disasters: Vec<(RealTime, Disaster)>,
}

impl Crashes {
    /// Draws who fails before `until`. With the constant `restarts`, processes come back, again and
    /// again: with what they kept (1) or with nothing (2); else they are gone for good, and with
    /// the constant `gone` some of them all the same.
    pub(super) fn draw(site: &Site<'_>, spared: NodeId, until: RealTime) -> Self {
        let mut crashes = Self::default();
        let (crash, pause) = (site.faults.has(Fault::Crash), site.faults.has(Fault::Pause));
        if !crash && !pause {
            return crashes;
        }
        let mut random = site.random("crashes");
        let mut left = everyone(site.hosts);
        let gone = site.constants.find("gone").unwrap_or(0);
        let victims = random.below(site.hosts as u64);
        for _ in 0..victims {
            let victim = random.index(site.hosts);
            let without = left.difference(NodeSet::from_iter([victim]));
            if node_id(victim) == spared || !KINDS.iter().all(|kind| site.suffices(without, kind)) {
                continue;
            }
            left = without;
            match site.constants.find("restarts").unwrap_or(0) {
                _ if !crash || pause && random.percent(50) => {
                    crashes.pauses(site, victim, until, &mut random);
                }
                0 => crashes.for_good(victim, until, &mut random),
                _ if gone > 0 && random.percent(gone) => crashes.for_good(victim, until, &mut random),
                kept => crashes.again_and_again(site, victim, (until, kept == 1), &mut random),
            }
        }
        crashes
    }

    fn for_good(&mut self, victim: usize, until: RealTime, random: &mut Random) {
        let at = RealTime(random.below(until.0.max(1)));
        self.absent.push((victim, RealTime(0), RealTime(u64::MAX)));
        self.disasters.push((at, Disaster::Crash(node_id(victim), How::Restart, u64::MAX / 2)));
    }

    fn pauses(&mut self, site: &Site<'_>, victim: usize, until: RealTime, random: &mut Random) {
        let longest = site.rhythm.longest;
        let mut at = random.below(longest * 8);
        while at < until.0 {
            let long = random.below(longest * 4) / random.pick(&[1, 10]);
            self.disasters.push((RealTime(at), Disaster::Freeze(node_id(victim), Freeze::Pause, long)));
            at += long + longest * random.between(2, 40);
        }
        self.absent.push((victim, RealTime(0), until.after(longest * 8)));
    }

    fn again_and_again(
        &mut self,
        site: &Site<'_>,
        victim: usize,
        (until, kept): (RealTime, bool),
        random: &mut Random,
    ) {
        let longest = site.rhythm.longest;
        let mut at = random.below(until.0 / 2 + 1);
        while at < until.0 {
            let down = random.below(longest * 4);
            let how = match (kept, random.below(3)) {
                (true, 0) => How::Reboot,
                (true, _) => How::Restart,
                (false, _) => How::DiskLost,
            };
            self.disasters.push((RealTime(at), Disaster::Crash(node_id(victim), how, down)));
            // A process that has lost everything must read before it answers again: nobody counts
            // on it for a while.
            let before = RealTime(at.saturating_sub(2 * site.rhythm.round));
            self.absent.push((victim, before, RealTime(at).after(down + longest * 30)));
            at += down + longest * random.between(4, 90);
        }
    }

    /// On whom one may count at this instant.
    pub(super) fn there(&self, hosts: usize, now: RealTime) -> NodeSet {
        let gone = self.absent.iter().filter(|(_, from, until)| (*from..*until).contains(&now));
        everyone(hosts).difference(gone.map(|(node, ..)| *node).collect())
    }
}
