//! Ground to stand on: after a storm some links are in time forever, and others never are.
//!
//! In the world `partition` some processes exchange every message in time and nobody outside
//! reaches them in time; what they say to the outside, and what those outside do among themselves,
//! goes on as the weather likes. In the world `graph` each two processes exchange every message in
//! time, or none: and that need not be transitive.

use tenure_proto::quorum::NodeSet;

use super::weather::{Bounds, Weather, suffering};
use super::{Adversary, Disaster, Fate, Letter, Programme, Site};
use crate::random::Random;
use crate::simulate::Fault;
use crate::world::RealTime;

#[derive(Debug)]
struct Ground {
    bounds: Bounds,
    weather: Weather,
    /// From when on it is firm.
    from: RealTime,
    /// The processes that stand on it.
    stable: NodeSet,
    /// For each the others with which it exchanges every message in time.
    links: Vec<NodeSet>,
    dup: bool,
}

impl Adversary for Ground {
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate {
        let (from, to) = (letter.from.index(), letter.to.index());
        if now < self.from || !self.stable.contains(to) {
            return self.weather.fate(now, letter, random);
        }
        let again = self.dup && random.percent(10);
        if self.links[to].contains(from) {
            // A second copy may come at any time.
            let copy = again.then(|| random.between(self.bounds.least.max(1), 5 * self.bounds.fast));
            return [Some(self.bounds.in_time(random)), copy];
        }
        let late = random.percent(50).then(|| self.bounds.beyond(random));
        [late, late.filter(|_| again).map(|_| self.bounds.beyond(random))]
    }

    /// Loopback is a link like others.
    fn to_oneself(&mut self, random: &mut Random) -> Option<u64> {
        Some(if random.percent(50) { random.between(1, self.bounds.delay) } else { 1_000 })
    }

    fn processing(&mut self, delay: u64, random: &mut Random) -> u64 {
        self.bounds.processing(delay, random)
    }
}

/// The programme of a ground that is firm after a storm; `kappas` long.
fn programme(
    site: &Site<'_>,
    stable: NodeSet,
    links: Vec<NodeSet>,
    kappas: u64,
) -> Result<Programme, String> {
    let bounds = Bounds::of(site)?;
    let mut random = site.random("ground");
    let from = RealTime(site.rhythm.longest * random.between(2, 8));
    // A message that a process now out of reach sent before, in time, has arrived by then.
    let owes = from.after(bounds.fast + 1);
    let ends = site.horizon.unwrap_or_else(|| owes.after(bounds.kappa * kappas));
    let outside: NodeSet = (0..site.hosts).filter(|host| !stable.contains(*host)).collect();
    let mut disasters = suffering(site, from, (outside, ends));
    disasters.push((owes, Disaster::News(stable_text(stable, &links))));
    let weather = Weather::new(site, bounds);
    let dup = site.faults.has(Fault::Dup);
    let adversary = Box::new(Ground { bounds, weather, from, stable, links, dup });
    Ok(Programme { adversary, disasters, owes, ends })
}

pub(super) fn partition(site: &Site<'_>) -> Result<Programme, String> {
    let mut random = site.random("stable");
    let percent = random.pick(&[30, 60, 100]);
    let mut stable: NodeSet = (0..site.hosts).filter(|_| random.percent(percent)).collect();
    stable.insert(random.index(site.hosts));
    let links = (0..site.hosts).map(|host| if stable.contains(host) { stable } else { NodeSet::EMPTY });
    programme(site, stable, links.collect(), 4)
}

pub(super) fn graph(site: &Site<'_>) -> Result<Programme, String> {
    let mut random = site.random("graph");
    let hosts = site.hosts;
    let mut order: Vec<usize> = (0..hosts).collect();
    (1..hosts).for_each(|i| order.swap(i, random.index(i + 1)));
    let chain = random.percent(30);
    let percent = random.pick(&[20, 40, 70]);
    let mut links: Vec<NodeSet> = (0..hosts).map(|host| NodeSet::from_iter([host])).collect();
    for one in 0..hosts {
        for other in one + 1..hosts {
            if if chain { other == one + 1 } else { random.percent(percent) } {
                let (one, other) = (order[one], order[other]);
                links[one].insert(other);
                links[other].insert(one);
            }
        }
    }
    programme(site, (0..hosts).collect(), links, 8)
}

/// The processes on firm ground, for the minutes: `stable: n0 n1 n2` where all reach each other,
/// and else the pairs that do: `stable: n0 n1 n2 (n0-n1 n1-n2)`.
fn stable_text(stable: NodeSet, links: &[NodeSet]) -> String {
    let names: Vec<String> = stable.positions().map(|node| format!("n{node}")).collect();
    let text = format!("stable: {}", names.join(" "));
    if stable.positions().all(|node| links[node] == stable) {
        return text;
    }
    let pairs = stable.positions().flat_map(|one| {
        let others = links[one].positions().filter(move |other| *other > one);
        others.map(move |other| format!("n{one}-n{other}"))
    });
    format!("{text} ({})", pairs.collect::<Vec<_>>().join(" "))
}

/// Reads what was written of firm ground, here or in a play (`stable: n0 n1 | n2`, parts without
/// links): who stands on it, and for each with whom it is connected, itself included.
pub(crate) fn parse_stable(text: &str, hosts: usize) -> Option<(NodeSet, Vec<NodeSet>)> {
    let node = |name: &str| name.strip_prefix('n')?.parse().ok().filter(|node| *node < hosts);
    let text = text.strip_prefix("stable: ")?;
    if text.contains('|') {
        let parts =
            text.split('|').map(|part| part.split_whitespace().map(node).collect::<Option<NodeSet>>());
        let parts = parts.collect::<Option<Vec<NodeSet>>>()?;
        let part = |host: usize| parts.iter().copied().find(|part| part.contains(host)).unwrap_or_default();
        let stable = parts.iter().fold(NodeSet::EMPTY, |all, part| all.union(*part));
        return Some((stable, (0..hosts).map(part).collect()));
    }
    let (names, pairs) = match text.split_once(" (") {
        Some((names, pairs)) => (names, Some(pairs.strip_suffix(')')?)),
        None => (text, None),
    };
    let stable: NodeSet = names.split(' ').map(node).collect::<Option<_>>()?;
    let Some(pairs) = pairs else {
        let links = (0..hosts).map(|host| if stable.contains(host) { stable } else { NodeSet::EMPTY });
        return Some((stable, links.collect()));
    };
    let mut links: Vec<NodeSet> = (0..hosts).map(|host| NodeSet::from_iter([host])).collect();
    for pair in pairs.split(' ').filter(|pair| !pair.is_empty()) {
        let (one, other) = pair.split_once('-')?;
        let (one, other) = (node(one)?, node(other)?);
        links[one].insert(other);
        links[other].insert(one);
    }
    Some((stable, links))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_ground_is_read_back() {
        let set = |nodes: &[usize]| nodes.iter().copied().collect::<NodeSet>();
        let clique = vec![set(&[0, 2]), NodeSet::EMPTY, set(&[0, 2])];
        let path = vec![set(&[0, 1]), set(&[0, 1, 2]), set(&[1, 2])];
        let apart = vec![set(&[0]), set(&[1]), set(&[2])];
        for (stable, links) in [(set(&[0, 2]), clique), (set(&[0, 1, 2]), path), (set(&[0, 1, 2]), apart)] {
            let text = stable_text(stable, &links);
            assert_eq!(parse_stable(&text, 3), Some((stable, links)), "{text}");
        }
        let parts = vec![set(&[0, 1]), set(&[0, 1]), set(&[2])];
        assert_eq!(parse_stable("stable: n0 n1 | n2", 3), Some((set(&[0, 1, 2]), parts)));
        assert_eq!(parse_stable("split: n0 | n1", 3), None);
    }
}
