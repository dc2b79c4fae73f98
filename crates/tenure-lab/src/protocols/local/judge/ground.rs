//! Properties owed on firm ground: T, BI, and the envelope of leaders.

use tenure_proto::quorum::NodeSet;

use super::list::{CONNECTED_IS_FAST, CONNECTED_SUPPORT, IN_TIME, KEPT, NOBODY_ELSE, STOOD};
use super::oracle::{Envelope, envelope};
use super::{LocalJudge, Reign};
use crate::property::Property;
use crate::protocols::local::subject::names;
use crate::world::RealTime;

/// The firm ground, since when it stands, and what is owed there.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    since: RealTime,
    stable: NodeSet,
    links: Vec<NodeSet>,
    /// Sets whose members are all connected to each other, and to nobody else: stable partitions,
    /// each with when it last had a leader.
    partitions: Vec<(NodeSet, RealTime)>,
    envelope: Envelope,
    /// Those that must lead and have led since then.
    has_led: NodeSet,
    /// Whether all partitions are cliques.
    clean: bool,
    /// From when on leaders are in time, supported by all, kept, kept in the end, and alone.
    kappa_leader: u64,
    supported: RealTime,
    kept: RealTime,
    kept_in_the_end: RealTime,
    alone: RealTime,
    /// Until when it was judged.
    judged: RealTime,
    /// Whether leaders stay: not where turns are taken.
    turns: bool,
    tree: bool,
}

impl Ground {
    /// Whether two have been connected since an instant.
    pub(super) fn connects(&self, one: usize, other: usize, since: RealTime) -> bool {
        since >= self.since && self.stable.contains(one) && self.links[one].contains(other)
    }

    /// Whether leaders stay. Where turns are taken they do not; along a tree a renewal may fail
    /// where not all reach each other.
    fn keeps(&self) -> bool {
        !self.turns && (self.clean || !self.tree)
    }

    /// The processes that must lead at an instant, without a gap.
    fn owed(&self, at: RealTime) -> NodeSet {
        if !self.keeps() {
            return NodeSet::EMPTY;
        }
        let from = |owed: NodeSet, start: RealTime| if at >= start { owed } else { NodeSet::EMPTY };
        from(self.envelope.must, self.kept).union(from(self.envelope.perm, self.kept_in_the_end))
    }

    /// After when a property is owed here; never, where there is nobody to whom it could be.
    fn owed_from(&self, property: &Property) -> Option<RealTime> {
        match property.name {
            name if name == CONNECTED_IS_FAST.name => (!self.tree).then_some(self.since),
            name if name == IN_TIME.name => {
                (!self.partitions.is_empty()).then(|| self.since.after(self.kappa_leader))
            }
            name if name == CONNECTED_SUPPORT.name => Some(self.supported),
            name if name == NOBODY_ELSE.name => (!self.turns).then_some(self.alone),
            _ if !self.keeps() => None,
            _ if !self.envelope.must.is_empty() => Some(self.kept),
            _ => (!self.envelope.perm.is_empty()).then_some(self.kept_in_the_end),
        }
    }
}

impl LocalJudge {
    /// From then on these stand on firm ground.
    pub(super) fn stand(&mut self, stable: NodeSet, links: Vec<NodeSet>, since: RealTime) {
        let Some(config) = &self.config else { return };
        let (constants, needed) = (*config.constants(), self.needed());
        let enough = |set: NodeSet| set.len() >= needed;
        let Envelope { must, perm, may } = envelope(stable, &links);
        let of = |set: NodeSet| set.positions().filter(|l| enough(links[*l])).collect();
        let is_clique = |l: usize| links[l].positions().all(|other| links[other] == links[l]);
        let firsts = stable.positions().filter(|l| links[*l].positions().next() == Some(*l) && is_clique(*l));
        let partitions =
            firsts.map(|l| links[l]).filter(|set| enough(*set)).map(|set| (set, since)).collect();
        let [leader, support] =
            [constants.kappa_leader, constants.kappa_support].map(|kappa| kappa.as_nanos());
        let kappa = leader.max(support);
        self.ground = Some(Ground {
            since,
            stable,
            partitions,
            envelope: Envelope { must: of(must), perm: of(perm), may: of(may) },
            has_led: NodeSet::EMPTY,
            clean: stable.positions().all(is_clique),
            links,
            kappa_leader: leader,
            supported: since.after(support),
            kept: since.after(kappa),
            kept_in_the_end: since.after(3 * kappa),
            alone: since.after(leader + support),
            judged: since,
            turns: config.settings().turn.is_some(),
            tree: config.settings().tree.is_some(),
        });
        for node in 0..self.nodes.len() {
            self.note_led(node);
        }
    }

    /// Whether a property was owed for some time, to anybody.
    pub(super) fn was_owed(&self, property: &Property) -> bool {
        let ground = self.ground.as_ref().filter(|ground| !ground.stable.is_empty());
        ground.is_some_and(|ground| ground.owed_from(property).is_some_and(|from| ground.judged > from))
    }

    /// Time passes from now to `to`, and nothing happens: leases run out, and what is owed falls
    /// due.
    pub(super) fn pass_on_ground(&mut self, to: RealTime) {
        let now = self.now;
        let Some(mut ground) = self.ground.take() else { return };
        ground.judged = to;
        for (set, led) in &mut ground.partitions {
            let reigns = set.positions().filter_map(|node| self.nodes[node].reigns(now));
            if let Some(until) = reigns.map(|reign| reign.until).max() {
                *led = until.min(to);
            }
            if to.0 > led.0 + ground.kappa_leader {
                let text = format!("{} are without a leader since {led}, longer than kappa", names(*set));
                self.breaks(IN_TIME, text);
            } else if to.0 > ground.since.0 + ground.kappa_leader {
                self.see(STOOD);
            }
        }
        let due = ground.since.after(ground.kappa_leader);
        if now <= due && due < to && ground.keeps() {
            let missing = ground.envelope.must.difference(ground.has_led);
            if !missing.is_empty() {
                self.breaks(KEPT, format!("{} should have led within kappa", names(missing)));
            }
        }
        let lasts = |node: &usize| self.nodes[*node].reign.is_some_and(|reign| reign.until >= to);
        let gap = ground.owed(now).positions().find(|node| !lasts(node));
        if let Some(node) = gap.filter(|_| to > now) {
            self.breaks(KEPT, format!("n{node} should lead without a gap, and does not after {now}"));
        }
        let crossed = |instant: RealTime| now <= instant && instant < to;
        let crossed = [ground.supported, ground.alone].into_iter().any(crossed);
        self.ground = Some(ground);
        if crossed {
            for node in 0..self.nodes.len() {
                if let Some(reign) = self.nodes[node].reign.filter(|reign| reign.until >= to) {
                    self.judge_at(node, reign, to);
                }
            }
        }
    }

    /// A reign that begins now.
    pub(super) fn judge_reign(&mut self, node: usize, reign: Reign) {
        self.note_led(node);
        self.judge_at(node, reign, self.now);
    }

    fn judge_at(&mut self, node: usize, reign: Reign, at: RealTime) {
        let Some(ground) = self.ground.as_ref().filter(|ground| ground.stable.contains(node)) else { return };
        let missing = ground.links[node].difference(reign.set);
        let (unsupported, alone) = (at > ground.supported && !missing.is_empty(), at > ground.alone);
        let stranger = alone && !ground.turns && !ground.envelope.may.contains(node);
        if unsupported {
            let text =
                format!("n{node} leads {}, although {} are connected", names(reign.set), names(missing));
            self.breaks(CONNECTED_SUPPORT, text);
        }
        if stranger {
            self.breaks(NOBODY_ELSE, format!("n{node} leads {}, and may not", names(reign.set)));
        }
    }

    /// A process that must lead does so for the first time: how long did that take?
    fn note_led(&mut self, node: usize) {
        let now = self.now;
        let leads = self.nodes[node].reigns(now).is_some();
        let Some(ground) = self.ground.as_mut().filter(|_| leads) else { return };
        if ground.envelope.must.contains(node) && !ground.has_led.contains(node) {
            ground.has_led.insert(node);
            if !ground.keeps() {
                return; // Where turns are taken, nobody in particular leads first.
            }
            let took = now.0.saturating_sub(ground.since.0) * 20 / ground.kappa_leader.max(1);
            self.firsts[usize::try_from(took).unwrap_or(19).min(19)] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::Status;
    use crate::protocols::local::judge::{LOCAL, MAJORITY};
    use crate::protocols::local::subject::{Locals, resolve};
    use crate::subject::Subject;
    use crate::world::clock::MILLI;
    use tenure_proto::local::Sound;

    /// The properties left out where links last for a very long time and some constants are set.
    fn exempt(sets: &[(&str, u64)], pairs: &[(usize, usize)]) -> Vec<&'static str> {
        let mut constants = crate::subject::Constants::new(Locals { rules: Sound, majority: false }.keys())
            .with("drift", 100)
            .with("tick", 1)
            .with("delay", 4 * MILLI)
            .with("least-delay", 0)
            .with("hole", MILLI);
        for (name, value) in sets {
            constants = constants.with(name, *value);
        }
        let config = resolve(&constants, 4).expect("it can be resolved");
        let properties = if config.settings().majority { &MAJORITY } else { &LOCAL };
        let mut judge = LocalJudge::new(Some(config), properties);
        judge.nodes.resize(4, crate::protocols::local::judge::Node::default());
        let mut links: Vec<NodeSet> = (0..4).map(|node| NodeSet::from_iter([node])).collect();
        for (one, other) in pairs {
            links[*one].insert(*other);
            links[*other].insert(*one);
        }
        judge.stand((0..4).collect(), links, RealTime(0));
        judge.pass_on_ground(RealTime(1_000_000 * MILLI));
        let statuses = judge.statuses().into_iter();
        statuses.filter(|(_, status)| *status == Status::Exempt).map(|(property, _)| property.name).collect()
    }

    const ALL: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    const CHAIN: [(usize, usize); 3] = [(0, 1), (1, 2), (2, 3)];

    #[test]
    fn what_is_owed_to_nobody_does_not_hold_but_is_left_out() {
        assert_eq!(exempt(&[], &ALL), [] as [&str; 0]);
        assert_eq!(exempt(&[], &CHAIN), ["leader-in-time"], "no two of it reach the same");
        assert_eq!(exempt(&[("turn", 1)], &ALL), ["kept", "nobody-else"], "everybody has its turn");
        assert_eq!(exempt(&[("tree", 2)], &ALL), ["connected-is-fast"], "what goes round is not timed");
        assert_eq!(exempt(&[("tree", 2)], &CHAIN), ["connected-is-fast", "leader-in-time", "kept"]);
        let few = [("majority", 1)];
        assert_eq!(exempt(&few, &[(0, 1), (2, 3)]), ["leader-in-time", "kept"], "no side has a majority");
    }
}
