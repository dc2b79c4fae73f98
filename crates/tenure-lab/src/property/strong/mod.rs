//! The properties of strong leadership, named after the paper's equations.
//!
//! The judge keeps *ghosts*: for every grantor what it has promised and until which real instant, whether or not the
//! grantor remembers. Belief is asked of the machine itself, by its own clock; all else follows from published events.

mod bounds;
mod epochs;
mod finding;
mod list;
mod stability;
mod wedge;

pub use list::*;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::epoch::{Body, Epoch};
use tenure_proto::strong::{Event, GrantRequest, Holder, InstanceId, Kind as Run, Nerio, Rules, Term};
use tenure_proto::time::{Span, Stamp};
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};

use super::{Judge, Kind, Outside, Property, Status, Tenure, Violation};
use crate::subject::Made;
use crate::world::{RealTime, World};
use bounds::Bounds;
use epochs::Epochs;
use finding::Searches;
use stability::Stability;
use wedge::Wedges;

/// What a grantor has promised, as the world remembers it.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    holder: Holder,
    /// c_q(F_q).
    until: RealTime,
}

/// A process that believes it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belief {
    group: GroupId,
    holder: Holder,
    term: Term,
    /// The epoch of the run that set E_p: its quorums are behind it.
    epoch: Epoch,
    /// E_p.
    lease: LocalTime,
    /// The first instant at which it no longer believes: c_p(E_p).
    until: RealTime,
}

/// Somebody's certainty that a process is supported by a quorum.
#[derive(Clone, Copy, Debug)]
struct Claim {
    group: GroupId,
    leader: Holder,
    by: NodeId,
    /// Until when, on the clock of the one who is certain, and in real time.
    lease: LocalTime,
    until: RealTime,
}

/// The judge of strong leadership.
pub struct StrongJudge {
    epochs: Epochs,
    longest_lease: Span,
    /// By grantor and group, and by epoch where each begins anew.
    ghosts: BTreeMap<(NodeId, GroupId, Epoch), Ghost>,
    beliefs: Vec<Belief>,
    /// Those that believe nothing because their clocks went back, and from when on they will again, unless they notice.
    doubts: Vec<(Belief, RealTime)>,
    claims: Vec<Claim>,
    searches: Searches,
    bounds: Bounds,
    last_term: BTreeMap<GroupId, (Term, Holder)>,
    last_run: BTreeMap<Holder, u64>,
    last_stamp: BTreeMap<NodeId, Stamp>,
    /// What each process gave back.
    given_back: BTreeMap<(GroupId, Holder), InstanceId>,
    /// Valid edicts of the first group, in the order of their creation.
    edicts: Vec<(NodeId, Made)>,
    seen: Vec<&'static str>,
    /// The first violation of each property.
    violations: Vec<Violation>,
    stability: Stability,
    /// From when on changes of members must end.
    owed: Option<RealTime>,
    groups: u64,
    /// Those that campaign: without one of them nobody is owed.
    candidates: Vec<NodeId>,
    liveness: [Status; 3],
    /// What is judged besides, where epochs are ended and disks recover.
    wedges: Option<Wedges>,
}

impl StrongJudge {
    /// A judge for `groups` groups, numbered from zero, which `candidates` want to lead.
    pub fn new(founding: Body, groups: u64, candidates: Vec<NodeId>) -> Self {
        Self {
            longest_lease: founding.longest_lease,
            epochs: Epochs::new(founding),
            ghosts: BTreeMap::new(),
            beliefs: Vec::new(),
            doubts: Vec::new(),
            claims: Vec::new(),
            searches: Searches::default(),
            bounds: Bounds::default(),
            last_term: BTreeMap::new(),
            last_run: BTreeMap::new(),
            last_stamp: BTreeMap::new(),
            given_back: BTreeMap::new(),
            edicts: Vec::new(),
            seen: Vec::new(),
            violations: Vec::new(),
            stability: Stability::default(),
            owed: None,
            groups,
            candidates,
            liveness: [Status::Exempt; 3],
            wedges: None,
        }
    }

    fn see(&mut self, property: Property) {
        if !self.seen.contains(&property.name) {
            self.seen.push(property.name);
        }
    }

    fn break_at(&mut self, property: Property, at: RealTime, text: impl FnOnce() -> String) {
        if self.violations.iter().all(|known| known.property != property.name) {
            self.violations.push(Violation { property: property.name, at, text: text() });
        }
    }

    /// Who of an epoch's members supports a process at an instant, by what was promised.
    fn supporters(&self, epoch: Epoch, group: GroupId, holder: Holder, at: RealTime) -> NodeSet {
        let quorums = self.epochs.quorums(epoch);
        let supports = |position: &usize| {
            let ghost = self.ghosts.get(&(quorums.members()[*position], group, self.age(epoch)));
            ghost.is_some_and(|ghost| ghost.holder == holder && at < ghost.until)
        };
        (0..quorums.members().len()).filter(supports).collect()
    }

    /// (14) for one believer at one instant, by the quorums of the epoch in which it was elected or last renewed.
    fn judge_support(&mut self, belief: Belief, at: RealTime) {
        let Belief { holder, term, group, epoch, .. } = belief;
        let quorums = self.epochs.quorums(epoch);
        let behind = self.supporters(epoch, group, holder, at);
        if !quorums.is_quorum(behind) {
            let names = quorums.names(behind);
            self.break_at(SUPPORT, at, || {
                format!(
                    "{} believes to lead {group} in term {term}, but only {names:?} still support it",
                    holder.node
                )
            });
        }
        let decided = self.epochs.decided();
        if self.wedges.is_some() {
            self.judge_ended(belief, at);
        } else if decided.0 > epoch.0 + 1 {
            self.break_at(SPACED, at, || {
                format!("{} leads {group} by a lease of epoch {epoch} when {decided} is decided", holder.node)
            });
        }
    }

    /// (12) for one who is certain, at one instant: by the quorums of one of the two epochs that can have leases.
    fn judge_claim(&mut self, claim: Claim, at: RealTime) {
        let Claim { by, leader, group, .. } = claim;
        let newest = self.epochs.decided();
        let epochs = [newest, Epoch(newest.0.saturating_sub(1))];
        let supported = epochs.iter().any(|epoch| {
            let quorums = self.epochs.quorums(*epoch);
            quorums.is_quorum(self.supporters(*epoch, group, leader, at))
        });
        if !supported {
            self.break_at(CERTAIN, at, || {
                format!("{by} is certain that {} leads {group}, but no quorum supports it", leader.node)
            });
        }
    }

    fn judge_all_support(&mut self, group: GroupId, at: RealTime) {
        for i in 0..self.beliefs.len() {
            if self.beliefs[i].group == group {
                self.judge_support(self.beliefs[i], at);
            }
        }
        for i in 0..self.claims.len() {
            if self.claims[i].group == group {
                self.judge_claim(self.claims[i], at);
            }
        }
    }

    fn on_granted<R: Rules>(
        &mut self,
        world: &World<Nerio<R>>,
        grantor: NodeId,
        request: &GrantRequest,
        (at, until): (Stamp, LocalTime),
    ) {
        let GrantRequest { group, epoch, id: InstanceId { holder, .. }, .. } = *request;
        self.judge_wedged(world.now, grantor, epoch);
        self.judge_all_support(group, world.now);
        self.judge_end(world, grantor, request, (at, until));
        self.bounds.grants(grantor, request, at.incarnation);
        let until = world.host(grantor).instant(until);
        let key = (grantor, group, self.age(epoch));
        if let Some(ghost) = self.ghosts.insert(key, Ghost { holder, until }) {
            self.judge_kept(grantor, ghost, Ghost { holder, until }, world.now);
        }
        self.judge_all_support(group, world.now);
        if let Some(last) = self.last_stamp.insert(grantor, at) {
            if last.incarnation < at.incarnation {
                self.see(SECOND_LIFE);
            }
            if last >= at && !self.has_forgotten(grantor) {
                self.break_at(STAMPS, world.now, || format!("{grantor} stamped {at:?} after {last:?}"));
            }
        }
    }

    /// (16) at one grantor: what was promised, and what replaces it.
    fn judge_kept(&mut self, grantor: NodeId, old: Ghost, new: Ghost, now: RealTime) {
        if old.holder != new.holder {
            self.see(PASSES);
            if now < old.until {
                self.break_at(KEPT, now, || {
                    format!(
                        "{grantor} supports {}, though it promised {} its support until {}",
                        new.holder.node, old.holder.node, old.until
                    )
                });
            }
        } else if now < old.until && new.until < old.until {
            self.break_at(KEPT, now, || {
                format!(
                    "{grantor} takes back support of {}: until {}, not {}",
                    new.holder.node, new.until, old.until
                )
            });
        }
    }

    /// A promise ends before its time only if its holder gave it back, and (14) must hold without it.
    fn on_freed(&mut self, now: RealTime, grantor: NodeId, group: GroupId, newest: InstanceId) {
        self.judge_all_support(group, now);
        if self.given_back.get(&(group, newest.holder)).is_none_or(|upto| *upto < newest) {
            self.break_at(KEPT, now, || {
                format!("{grantor} drops its support of {} for a run never given back", newest.holder.node)
            });
        }
        let before = self.ghosts.len();
        let freed = |key: &(NodeId, GroupId, Epoch)| (key.0, key.1) == (grantor, group);
        self.ghosts.retain(|key, ghost| !(freed(key) && ghost.holder == newest.holder));
        if self.ghosts.len() < before {
            self.see(FREED);
        }
        self.judge_all_support(group, now);
    }

    fn on_leads(&mut self, now: RealTime, node: NodeId, mut belief: Belief, run: Run, quorum: NodeSet) {
        self.judge_epoch(now, belief, run);
        let longer =
            |old: &&Belief| (old.group, old.holder, old.lease) == (belief.group, belief.holder, belief.lease);
        match self.beliefs.iter().find(longer) {
            // E was kept from a run before that asked for longer: its quorum is behind it.
            Some(old) => {
                belief.epoch = old.epoch;
                self.see(LEASE_KEPT);
            }
            None => {
                for grantor in self.epochs.quorums(belief.epoch).names(quorum) {
                    self.judge_inside(grantor, belief, now);
                }
            }
        }
        let rival = self.beliefs.iter().find(|b| b.group == belief.group && b.holder.node != node).copied();
        if self.epochs.quorums(belief.epoch).position(node).is_none() {
            self.see(OUTSIDE);
        }
        if let Some(rival) = rival {
            self.break_at(UNIQUENESS, now, || two_leaders(belief, rival));
        }
        let extends =
            |old: &Belief| (old.group, old.holder, old.term) == (belief.group, belief.holder, belief.term);
        let extended = self.beliefs.iter().any(extends);
        self.beliefs.retain(|b| b.group != belief.group || b.holder.node != node);
        self.beliefs.push(belief);
        self.searches.leads(belief.group, belief.holder, belief.term);
        self.judge_support(belief, now);
        match run {
            Run::Acquire => self.judge_term(now, belief),
            Run::Renew if extended => self.see(RENEWS),
            Run::Renew => self.break_at(UNBROKEN, now, || {
                format!("{node} leads {} on in term {}, which had lapsed", belief.group, belief.term)
            }),
        }
        if self.stability.leads(belief, now) {
            self.break_at(STABLE, now, || {
                format!("{node} leads {} in term {}, where another had to stay", belief.group, belief.term)
            });
        }
    }

    /// What was reckoned from a clock is reckoned anew. A process whose clock went back believes nothing by readings below
    /// one that it has seen; but if it sees none of them, it will believe again.
    fn on_clock_disturbed<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId) {
        let host = world.host(node);
        for claim in self.claims.iter_mut().filter(|claim| claim.by == node) {
            claim.until = host.reading_reaches(claim.lease);
        }
        let doubted = self.doubts.extract_if(.., |(belief, _)| belief.holder.node == node);
        self.beliefs.extend(doubted.map(|(belief, _)| belief));
        let reading = host.reading(world.now);
        let believes = |belief: &Belief| {
            host.process.as_ref().is_some_and(|process| process.leadership(belief.group, reading).is_some())
        };
        for belief in self.beliefs.iter_mut().filter(|belief| belief.holder.node == node) {
            belief.until = host.reading_reaches(belief.lease);
            self.stability.leads(*belief, world.now);
        }
        let again = host.reading_reaches(host.last_seen());
        let doubts = self.beliefs.extract_if(.., |belief| {
            belief.holder.node == node && reading < belief.lease && !believes(belief)
        });
        self.doubts.extend(doubts.map(|belief| (belief, again)));
    }

    /// A clock that went back has caught up without being noticed: who believed before believes again.
    fn resume(&mut self, to: RealTime) {
        let resumed: Vec<_> = self.doubts.extract_if(.., |(_, again)| *again < to).collect();
        for (belief, again) in resumed {
            let rival = self.beliefs.iter().find(|b| b.group == belief.group && b.until > again).copied();
            if let Some(rival) = rival {
                self.break_at(UNIQUENESS, again, || two_leaders(belief, rival));
            }
            self.judge_support(belief, again);
            self.beliefs.push(belief);
        }
    }

    fn judge_inside(&mut self, grantor: NodeId, belief: Belief, now: RealTime) {
        let ghost = self.ghosts.get(&(grantor, belief.group, self.age(belief.epoch))).copied();
        let name = belief.holder.node;
        match ghost {
            Some(ghost) if ghost.holder == belief.holder && belief.until <= ghost.until => {}
            Some(ghost) if ghost.holder == belief.holder => self.break_at(INSIDE, now, || {
                format!(
                    "{name} leads until {}, but {grantor} supports it only until {}",
                    belief.until, ghost.until
                )
            }),
            Some(ghost) => self.break_at(INSIDE, now, || {
                format!("{name} leads counting on {grantor}, which supports {} instead", ghost.holder.node)
            }),
            None => {
                self.break_at(INSIDE, now, || {
                    format!("{name} leads counting on {grantor}, which promised nothing")
                });
            }
        }
    }

    /// (2) and (3): an edict may be found valid long after its creation, so it is put where it belongs in time and compared
    /// with those around it.
    fn judge_edict(&mut self, now: RealTime, node: NodeId, edict: Made) {
        let name = format!("{}.{}", edict.by_term.tag, edict.by_term.number);
        if !edict.led {
            let at = edict.created;
            self.break_at(VALID, now, || {
                format!("{node} created edict {name} at {at}, when it did not lead")
            });
        }
        let place = self.edicts.partition_point(|(_, other)| other.created <= edict.created);
        let around = place.saturating_sub(COMPARED)..(place + COMPARED).min(self.edicts.len());
        let wrong = self.edicts[around].iter().find_map(|(other, earlier)| {
            let (first, second) =
                if earlier.created <= edict.created { (earlier, &edict) } else { (&edict, earlier) };
            let by_quorums = self.stamps_compare(first, second);
            misordered(first, second, by_quorums).map(|form| (*other, first.by_term, second.by_term, form))
        });
        if let Some((other, first, second, form)) = wrong {
            self.break_at(ORDERED, now, || {
                format!(
                    "of {node} and {other}, edict {}.{} came before {}.{}, but {form} does not say so",
                    first.tag, first.number, second.tag, second.number
                )
            });
        }
        if self.edicts.last().is_some_and(|(other, _)| *other != node) {
            self.see(EDICTS);
        }
        self.edicts.insert(place, (node, edict));
    }

    fn judge_term(&mut self, now: RealTime, belief: Belief) {
        let Belief { group, term, holder, .. } = belief;
        let Some((last, before)) = self.last_term.insert(group, (term, holder)) else { return };
        self.see(SECOND_TERM);
        if before.node != holder.node {
            self.see(MOVES);
        }
        if term <= last {
            self.break_at(TERMS, now, || {
                format!(
                    "{} completes term {term} of {group} after {} completed term {last}",
                    holder.node, before.node
                )
            });
        }
    }

    fn on_event<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId, now: LocalTime, event: &Event) {
        match event {
            Event::Asked(request) => self.on_asked(world.now, node, *request),
            Event::Granted { request, at, until } => {
                self.on_granted(world, node, request, (*at, *until));
            }
            Event::Pledged { group, leader, until } => self.bounds.pledges(*group, *leader, *until),
            Event::GaveBack { group, upto } => {
                self.judge_pledge(world.now, (*group, *upto), now);
                let newest = self.given_back.entry((*group, upto.holder)).or_insert(*upto);
                *newest = (*newest).max(*upto);
            }
            Event::Verified { group, leader, until, .. } => {
                let (lease, until) = (*until, world.host(node).reading_reaches(*until));
                let claim = Claim { group: *group, leader: *leader, by: node, lease, until };
                self.judge_claim(claim, world.now);
                self.claims.push(claim);
            }
            Event::Sought { .. } | Event::Found { .. } | Event::NotFound { .. } => {
                self.on_search(world.now, node, event);
            }
            Event::Freed { group, newest } => self.on_freed(world.now, node, *group, *newest),
            Event::Refused { refusal: tenure_proto::strong::Refusal::Busy { .. }, .. } => self.see(REFUSES),
            Event::Leads { group, epoch, id, kind, term, quorum, .. } => {
                let host = world.host(node);
                // The machine itself is asked, by the clock it would ask: an event is not authority.
                let Some(lease) = host.process.as_ref().and_then(|p| p.leadership(*group, now)) else {
                    return self.break_at(IN_TIME, world.now, || {
                        format!("{node} completed term {term} of {group} when its lease was over")
                    });
                };
                let until = host.reading_reaches(lease);
                self.judge_counted(world.now, node, (*group, *id, *term), (*epoch, lease));
                let belief =
                    Belief { group: *group, holder: id.holder, term: *term, epoch: *epoch, lease, until };
                self.on_leads(world.now, node, belief, *kind, *quorum);
            }
            Event::Accepted { .. } if self.wedges.is_some() => {} // Counted when it is said.
            Event::Accepted { ballot, charter } => {
                self.bounds.accepts(node, world.now);
                self.epochs.accepts(node, *ballot, charter);
            }
            Event::Decided { charter } => {
                self.on_decided(world.now, node, charter);
                self.forgive_if_gone(world);
            }
            Event::Wedged { epoch, .. } => self.on_wedged(world.now, node, *epoch),
            Event::Recovering => self.on_forgotten(node),
            Event::Recovered { .. } => self.see(RECOVERED),
            Event::Adopted { charter, .. } => {
                self.bounds.settles(node);
                self.judge_charter(world.now, node, charter);
            }
            Event::Yields { group, .. } => self.stability.gives(*group, node),
            Event::Lost { group, .. } => {
                self.leave_all(world.now, |b| b.group == *group && b.holder.node == node);
            }
            Event::Refused { .. }
            | Event::Changed { .. }
            | Event::ChangeHalted { .. }
            | Event::Failed { .. }
            | Event::WeakLeader { .. }
            | Event::Paced { .. }
            | Event::Strained { .. }
            | Event::Silent { .. }
            | Event::Mute
            | Event::ClockWentBack { .. } => {}
        }
    }

    /// Whether processes that can grant form a quorum, and one that campaigns runs: without them nothing is owed. Nor if
    /// no candidate that is left knows the newest epoch, and too few are left of the one before to tell or decide it again.
    fn can_elect<R: Rules>(&self, world: &World<Nerio<R>>) -> bool {
        let newest = self.epochs.decided();
        let up = |node: &NodeId| is_up(world, *node);
        let epoch_at = |node: &NodeId| world.host(*node).process.as_ref().map(Nerio::epoch);
        let knows = |node: &NodeId| up(node) && epoch_at(node).is_some_and(|epoch| epoch >= newest);
        let learnt = match self.wedges {
            Some(_) => self.can_be_learnt(world),
            None => self.candidates.iter().any(knows) || self.runs(world, Epoch(newest.0.saturating_sub(1))),
        };
        learnt && self.runs(world, newest) && self.candidates.iter().any(up)
    }

    /// Whether a quorum of an epoch can grant.
    fn runs<R: Rules>(&self, world: &World<Nerio<R>>, epoch: Epoch) -> bool {
        let quorums = self.epochs.quorums(epoch);
        let up = |position: &usize| is_up(world, quorums.members()[*position]);
        quorums.is_quorum((0..quorums.members().len()).filter(up).collect())
    }

    /// A cluster may be left to members that are gone: then nothing is owed any more.
    fn forgive_if_gone<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        if !self.can_elect(world) {
            self.stability.forgive();
            self.owed = None;
        }
    }

    /// (4): a leader has left, though from some instant on it must stay.
    fn leave(&mut self, belief: Belief, at: RealTime) {
        if self.stability.left(belief, at) {
            let Belief { group, holder, term, .. } = belief;
            self.break_at(STABLE, at, || format!("{} leads {group} in term {term} no more", holder.node));
        }
    }

    fn leave_all(&mut self, at: RealTime, which: impl Fn(&Belief) -> bool) {
        self.doubts.retain(|(belief, _)| !which(belief));
        let (left, stay): (Vec<_>, Vec<_>) = self.beliefs.drain(..).partition(which);
        self.beliefs = stay;
        left.into_iter().for_each(|belief| self.leave(belief, at));
    }

    fn judge_liveness(&mut self, at: RealTime) {
        let Some(led) = self.stability.led() else { return };
        let elected = u64::try_from(led).unwrap_or(u64::MAX) >= self.groups;
        let same = self.stability.changes() == 0;
        let status = |holds| if holds { Status::Holds } else { Status::Broken };
        (self.liveness[0], self.liveness[1]) = (status(elected), status(same));
        if !elected {
            let groups = self.groups;
            self.break_at(ELECTED, at, || format!("of {groups} groups only {led} have a leader"));
        }
    }
}

impl<R: Rules> Judge<Nerio<R>> for StrongJudge {
    fn pass(&mut self, world: &World<Nerio<R>>, to: RealTime) {
        self.resume(to);
        if let Some(settled) = self.stability.due(to) {
            let leading = self.beliefs.iter().filter(|belief| belief.until > settled);
            self.stability.settle(leading.copied());
        }
        while let Some(over) = self.beliefs.iter().position(|belief| belief.until <= to) {
            let belief = self.beliefs.swap_remove(over);
            self.see(LAPSES);
            self.judge_support(belief, RealTime(belief.until.0.saturating_sub(1)).max(world.now));
            self.leave(belief, belief.until);
        }
        while let Some(over) = self.claims.iter().position(|claim| claim.until <= to) {
            let claim = self.claims.swap_remove(over);
            self.see(VERIFIES);
            self.judge_claim(claim, RealTime(claim.until.0.saturating_sub(1)).max(world.now));
        }
    }

    fn observe(&mut self, world: &World<Nerio<R>>, node: NodeId, outside: Outside) {
        match outside {
            Outside::Step => {}
            Outside::Started => self.judge_start(world, node),
            Outside::Crashed => {
                self.bounds.crashes(node);
                self.leave_all(world.now, |belief| belief.holder.node == node);
                self.claims.retain(|claim| claim.by != node);
            }
            Outside::ClockDisturbed => self.on_clock_disturbed(world, node),
        }
        for (node, now, event) in &world.published {
            self.on_event(world, *node, *now, event);
        }
        self.judge_passed(world);
        if self.wedges.is_some() {
            self.observe_sent(world);
        }
    }

    fn edict(&mut self, world: &World<Nerio<R>>, node: NodeId, edict: Made) {
        self.judge_edict(world.now, node, edict);
    }

    fn healed(&mut self, world: &World<Nerio<R>>) {
        let pending = |node: NodeId| {
            let process = world.host(node).process.as_ref();
            process.is_some_and(|process| process.pending_change().is_some() || process.is_wedged())
        };
        if world.nodes().any(pending) {
            self.see(INTERRUPTED);
        }
        if self.can_elect(world) {
            self.owed = Some(world.now);
            self.stability.owed_from(world.now.after(self.longest_lease.as_nanos().saturating_mul(10)));
        }
    }

    fn end(&mut self, world: &World<Nerio<R>>) {
        for node in world.nodes() {
            self.judge_kept_ends(world, node);
        }
        self.judge_change_ended(world);
        self.judge_liveness(world.now);
        self.judge_changes(world);
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        let mut leaders = self.beliefs.iter().filter(|belief| belief.group == GroupId(0));
        let first = leaders.next()?.holder.node;
        leaders.next().is_none().then_some(first)
    }

    fn tenures(&self) -> &[Tenure] {
        self.stability.tenures()
    }

    fn settled(&self) -> Option<RealTime> {
        self.stability.since()
    }

    fn changes(&self) -> u64 {
        self.stability.changes()
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let broken =
            |property: &Property| self.violations.iter().any(|known| known.property == property.name);
        let status = |property: &Property| match property.kind {
            _ if broken(property) => Status::Broken,
            Kind::Always => Status::Holds,
            Kind::Sometimes if self.seen.contains(&property.name) => Status::Seen,
            Kind::Sometimes => Status::Unseen,
            Kind::Eventually if property.name == CHANGE_ENDS.name => self.liveness[2],
            Kind::Eventually => self.liveness[usize::from(property.name == STABLE.name)],
        };
        self.properties().iter().map(|property| (*property, status(property))).collect()
    }
}

/// Whether a process runs and can grant. A member may be a name that no host of this world has.
fn is_up<R: Rules>(world: &World<Nerio<R>>, node: NodeId) -> bool {
    let process = world.hosts.get(node.0 as usize).and_then(|host| host.process.as_ref());
    process.is_some_and(|process| !process.is_mute() && !process.is_recovering())
}

fn two_leaders(belief: Belief, rival: Belief) -> String {
    format!(
        "{} leads {} in term {} while {} leads it in term {} until {}",
        belief.holder.node, belief.group, belief.term, rival.holder.node, rival.term, rival.until
    )
}

/// With how many edicts on either side an edict is compared. Those further away follow: the orders are transitive.
const COMPARED: usize = 12;

/// The form of timestamp that does not put two edicts in the order in which they were created.
fn misordered(first: &Made, second: &Made, by_quorums: bool) -> Option<&'static str> {
    if first.created >= second.created {
        return None; // Of two threads at one instant either may be first.
    }
    if first.by_term.order(&second.by_term) != Ok(Ordering::Less) {
        return Some("(term, counter)");
    }
    if !by_quorums {
        return None;
    }
    if first.by_first.order(&second.by_first) != Ok(Ordering::Less) {
        return Some("(epoch, QT0, counter)");
    }
    let (Some(one), Some(other)) = (&first.by_instance, &second.by_instance) else { return None };
    (one.order(other) != Ok(Ordering::Less)).then_some("(epoch, QT, EC)")
}
