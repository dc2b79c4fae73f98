//! The properties of strong leadership, named after the paper's equations.
//!
//! The judge keeps *ghosts*: for every grantor what it has promised and until which real instant,
//! whether or not the grantor remembers. Belief is asked of the machine itself, by its own clock;
//! all else follows from published events. It sees all else through a [`Sight`]: a simulated world,
//! or the traces of real processes.

mod bounds;
mod edicts;
mod epochs;
mod finding;
mod forgetting;
mod heights;
mod list;
mod run;
mod sight;
mod stability;
mod wedge;

pub use edicts::{Stamped, misordered, misordered_text};
pub use list::*;
pub use sight::{Moment, Sight};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::edict::QuorumStamp;
use tenure_proto::strong::epoch::{Body, Charter, Epoch};
use tenure_proto::strong::{Event, GrantRequest, Holder, InstanceId, Kind as Run, Nerio, Rules, Term};
use tenure_proto::time::{Span, Stamp};
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};

use crate::property::{Judge, Kind, Mark, Property, Status, Violation};
use crate::subject::Made;
use crate::world::{RealTime, World};
use bounds::Bounds;
use epochs::{Epochs, Stays};
use finding::Searches;
use forgetting::InMemory;
use stability::Stability;
use wedge::Wedges;

/// A grantor's promise, as the world remembers it.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    holder: Holder,
    /// c_q(F_q).
    until: Moment,
    mark: Option<Mark>,
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
    /// The same at the latest, where it is not known exactly.
    gone: RealTime,
    mark: Option<Mark>,
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
    mark: Option<Mark>,
}

/// The judge of strong leadership.
pub struct StrongJudge {
    epochs: Epochs,
    longest_lease: Span,
    /// By grantor and group, and by epoch where each begins anew.
    ghosts: BTreeMap<(NodeId, GroupId, Epoch), Ghost>,
    beliefs: Vec<Belief>,
    /// Those that believe nothing because their clocks went back, and from when on they will again,
    /// unless they notice.
    doubts: Vec<(Belief, RealTime)>,
    /// Those that may believe a little longer than is certain.
    lately: Vec<Belief>,
    claims: Vec<Claim>,
    searches: Searches,
    bounds: Bounds,
    in_memory: InMemory,
    last_term: BTreeMap<GroupId, (Term, Holder, Option<Mark>)>,
    /// The highest term that was granted, or that a charter or an operator has allowed.
    highest: Term,
    last_run: BTreeMap<Holder, u64>,
    last_stamp: BTreeMap<NodeId, Stamp>,
    /// Grants on which a process counts though the judge cannot know of them.
    trusted: BTreeSet<(GroupId, Holder, NodeId)>,
    /// Grantors that may remember a grant that they told nobody: they were killed in between.
    unseen: BTreeSet<NodeId>,
    stays: Stays,
    /// The last run that each process gave back.
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
    /// The judge of ended epochs and recovered disks, where there are any.
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
            lately: Vec::new(),
            claims: Vec::new(),
            searches: Searches::default(),
            bounds: Bounds::default(),
            in_memory: InMemory::new(),
            last_term: BTreeMap::new(),
            highest: Term(0),
            last_run: BTreeMap::new(),
            last_stamp: BTreeMap::new(),
            trusted: BTreeSet::new(),
            unseen: BTreeSet::new(),
            stays: Stays::default(),
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
        self.contradict(property, at, None, text);
    }

    /// A property is broken by what is seen now together with what was said before.
    fn contradict(
        &mut self,
        property: Property,
        at: RealTime,
        before: Option<Mark>,
        text: impl FnOnce() -> String,
    ) {
        if self.violations.iter().all(|known| known.property != property.name) {
            self.violations.push(Violation { property: property.name, at, text: text(), before });
        }
    }

    /// The members of an epoch that support a process at an instant, by their promises. Of whom
    /// that is not known counts too.
    fn supporters<S: Sight>(
        &self,
        sight: &S,
        epoch: Epoch,
        (group, holder): (GroupId, Holder),
        at: RealTime,
    ) -> NodeSet {
        let quorums = self.epochs.quorums(epoch);
        let supports = |position: &usize| {
            let member = quorums.members()[*position];
            let ghost = self.ghosts.get(&(member, group, self.age(epoch)));
            ghost.is_some_and(|ghost| ghost.holder == holder && at < ghost.until.latest)
                || !sight.knows(member, at)
                || self.trusted.contains(&(group, holder, member))
        };
        (0..quorums.members().len()).filter(supports).collect()
    }

    /// (14) for one believer at one instant, by the quorums of the epoch in which it was elected or
    /// last renewed.
    fn judge_support<S: Sight>(&mut self, sight: &S, belief: Belief, at: RealTime) {
        let Belief { holder, term, group, epoch, mark, .. } = belief;
        let quorums = self.epochs.quorums(epoch);
        let behind = self.supporters(sight, epoch, (group, holder), at);
        if !quorums.is_quorum(behind) {
            let names = quorums.names(behind);
            self.contradict(SUPPORT, at, mark, || {
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
            self.contradict(SPACED, at, mark, || {
                format!("{} leads {group} by a lease of epoch {epoch} when {decided} is decided", holder.node)
            });
        }
    }

    /// (12) for one who is certain, at one instant: by the quorums of one of the two epochs that
    /// can have leases.
    fn judge_claim<S: Sight>(&mut self, sight: &S, claim: Claim, at: RealTime) {
        let Claim { by, leader, group, mark, .. } = claim;
        let newest = self.epochs.decided();
        let epochs = [newest, Epoch(newest.0.saturating_sub(1))];
        let supported = epochs.iter().any(|epoch| {
            let quorums = self.epochs.quorums(*epoch);
            quorums.is_quorum(self.supporters(sight, *epoch, (group, leader), at))
        });
        if !supported {
            self.contradict(CERTAIN, at, mark, || {
                format!("{by} is certain that {} leads {group}, but no quorum supports it", leader.node)
            });
        }
    }

    fn judge_all_support<S: Sight>(&mut self, sight: &S, group: GroupId) {
        let at = sight.now();
        for i in 0..self.beliefs.len() {
            if self.beliefs[i].group == group {
                self.judge_support(sight, self.beliefs[i], at);
            }
        }
        for i in 0..self.claims.len() {
            if self.claims[i].group == group {
                self.judge_claim(sight, self.claims[i], at);
            }
        }
    }

    fn on_granted<S: Sight>(
        &mut self,
        sight: &S,
        grantor: NodeId,
        request: &GrantRequest,
        (at, until): (Stamp, LocalTime),
    ) {
        let GrantRequest { group, epoch, id: InstanceId { holder, .. }, .. } = *request;
        self.judge_wedged(sight.now(), grantor, epoch);
        self.judge_height(sight, grantor, request);
        self.judge_all_support(sight, group);
        self.judge_end(sight, grantor, request, (at, until));
        self.bounds.grants(grantor, request, at.incarnation);
        let new = Ghost { holder, until: sight.ends(grantor, until), mark: sight.mark() };
        let key = (grantor, group, self.age(epoch));
        if let Some(ghost) = self.ghosts.insert(key, new) {
            self.judge_kept(grantor, ghost, new, (sight.now(), sight.latest()));
        }
        self.judge_all_support(sight, group);
        if let Some(last) = self.last_stamp.insert(grantor, at) {
            if last.incarnation < at.incarnation {
                self.see(SECOND_LIFE);
            }
            if last >= at && !self.has_forgotten(grantor) {
                self.break_at(STAMPS, sight.now(), || format!("{grantor} stamped {at:?} after {last:?}"));
            }
        }
    }

    /// (16) at one grantor: what was promised, and what replaces it.
    fn judge_kept(&mut self, grantor: NodeId, old: Ghost, new: Ghost, (now, latest): (RealTime, RealTime)) {
        let stands = latest < old.until.earliest;
        if old.holder != new.holder {
            self.see(PASSES);
            if stands {
                self.contradict(KEPT, now, old.mark, || {
                    format!(
                        "{grantor} supports {}, though it promised {} its support until {}",
                        new.holder.node, old.holder.node, old.until.earliest
                    )
                });
            }
        } else if stands && new.until.is_before(old.until) {
            self.contradict(KEPT, now, old.mark, || {
                format!(
                    "{grantor} takes back support of {}: until {}, not {}",
                    new.holder.node, new.until.latest, old.until.earliest
                )
            });
        }
    }

    /// A promise ends before its time only if its holder gave it back, and (14) must hold without
    /// it.
    fn on_freed<S: Sight>(&mut self, sight: &S, grantor: NodeId, group: GroupId, newest: InstanceId) {
        self.judge_all_support(sight, group);
        let never = self.given_back.get(&(group, newest.holder)).is_none_or(|upto| *upto < newest);
        if never && sight.follows(newest.holder) {
            self.break_at(KEPT, sight.now(), || {
                format!("{grantor} drops its support of {} for a run never given back", newest.holder.node)
            });
        }
        let before = self.ghosts.len();
        let freed = |key: &(NodeId, GroupId, Epoch)| (key.0, key.1) == (grantor, group);
        self.ghosts.retain(|key, ghost| !(freed(key) && ghost.holder == newest.holder));
        if self.ghosts.len() < before {
            self.see(FREED);
        }
        self.judge_all_support(sight, group);
    }

    fn on_leads<S: Sight>(
        &mut self,
        sight: &S,
        node: NodeId,
        mut belief: Belief,
        run: Run,
        (quorum, stamps): (NodeSet, &QuorumStamp),
    ) {
        let now = sight.now();
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
                    if stamps.get(grantor).is_some_and(|stamp| !sight.has_stamped(grantor, stamp)) {
                        self.trusted.insert((belief.group, belief.holder, grantor));
                    } else {
                        let end = sight.stops(node, belief.lease);
                        self.judge_inside(grantor, Belief { until: end, ..belief }, now);
                    }
                }
            }
        }
        let rival = self.beliefs.iter().find(|b| b.group == belief.group && b.holder.node != node).copied();
        if self.epochs.quorums(belief.epoch).position(node).is_none() {
            self.see(OUTSIDE);
        }
        if let Some(rival) = rival {
            self.contradict(UNIQUENESS, now, rival.mark, || two_leaders(belief, rival));
        }
        let extends =
            |old: &Belief| (old.group, old.holder, old.term) == (belief.group, belief.holder, belief.term);
        let extended = self.beliefs.iter().any(extends);
        self.beliefs.retain(|b| b.group != belief.group || b.holder.node != node);
        self.beliefs.push(belief);
        self.searches.leads(belief.group, belief.holder, belief.term);
        self.judge_support(sight, belief, now);
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

    fn judge_inside(&mut self, grantor: NodeId, belief: Belief, now: RealTime) {
        let ghost = self.ghosts.get(&(grantor, belief.group, self.age(belief.epoch))).copied();
        let name = belief.holder.node;
        match ghost {
            Some(ghost) if ghost.holder == belief.holder && belief.until <= ghost.until.latest => {}
            Some(ghost) if ghost.holder == belief.holder => self.contradict(INSIDE, now, ghost.mark, || {
                format!(
                    "{name} leads until {}, but {grantor} supports it only until {}",
                    belief.until, ghost.until.latest
                )
            }),
            Some(ghost) => self.contradict(INSIDE, now, ghost.mark, || {
                format!("{name} leads counting on {grantor}, which supports {} instead", ghost.holder.node)
            }),
            None => {
                self.break_at(INSIDE, now, || {
                    format!("{name} leads counting on {grantor}, which promised nothing")
                });
            }
        }
    }

    fn judge_term(&mut self, now: RealTime, belief: Belief) {
        let Belief { group, term, holder, mark, .. } = belief;
        let Some((last, before, said)) = self.last_term.insert(group, (term, holder, mark)) else { return };
        self.see(SECOND_TERM);
        if before.node != holder.node {
            self.see(MOVES);
        }
        if term <= last {
            self.contradict(TERMS, now, said, || {
                format!(
                    "{} completes term {term} of {group} after {} completed term {last}",
                    holder.node, before.node
                )
            });
        }
    }

    /// A process has published something, by a reading of its clock.
    pub(crate) fn on_event<S: Sight>(&mut self, sight: &S, node: NodeId, reading: LocalTime, event: &Event) {
        let now = sight.now();
        match event {
            Event::Asked(request) => self.on_asked(now, node, *request),
            Event::Granted { request, at, until } => {
                self.on_granted(sight, node, request, (*at, *until));
            }
            Event::Pledged { group, leader, until } => self.bounds.pledges(*group, *leader, *until),
            Event::GaveBack { group, upto } => {
                self.judge_pledge(now, (*group, *upto), reading);
                let newest = self.given_back.entry((*group, upto.holder)).or_insert(*upto);
                *newest = (*newest).max(*upto);
            }
            Event::Verified { group, leader, until: lease, .. } => {
                self.on_verified(sight, node, (*group, *leader), *lease);
            }
            Event::Sought { .. } | Event::Found { .. } | Event::NotFound { .. } => {
                self.on_search(sight, node, event);
            }
            Event::Freed { group, newest } => self.on_freed(sight, node, *group, *newest),
            Event::Refused { refusal: tenure_proto::strong::Refusal::Busy { .. }, .. } => self.see(REFUSES),
            Event::Leads { group, epoch, id, kind, term, until, quorum, stamps, .. } => {
                let (group, epoch, term, mark) = (*group, *epoch, *term, sight.mark());
                let Some(lease) = sight.leadership(node, group, reading, *until) else {
                    return self.break_at(IN_TIME, now, || {
                        format!("{node} completed term {term} of {group} when its lease was over")
                    });
                };
                self.judge_counted(now, node, (group, *id, term), (epoch, lease));
                let (holder, until) = (id.holder, sight.stops(node, lease).min(sight.heard_until(node)));
                let gone = sight.ends(node, lease).latest.max(until);
                let belief = Belief { group, holder, term, epoch, lease, until, gone, mark };
                self.on_leads(sight, node, belief, *kind, (*quorum, stamps));
            }
            Event::Accepted { .. } if self.wedges.is_some() => {} // Counted when it is said.
            Event::Accepted { ballot, charter } => {
                self.judge_waited(sight, node, charter);
                self.bounds.accepts(node, now);
                self.epochs.accepts(node, *ballot, charter);
            }
            Event::Decided { charter } => self.on_decided(sight, node, charter),
            Event::Wedged { epoch, .. } => self.on_wedged(now, node, *epoch),
            Event::Recovering => self.on_forgotten(node),
            Event::Recovered { top } => {
                self.note_height(*top);
                self.see(RECOVERED);
            }
            Event::Confirmed { term } => self.note_height(*term),
            Event::Adopted { charter, .. } => self.on_adopted(sight, node, charter),
            Event::Yields { group, .. } => self.stability.gives(*group, node),
            Event::Lost { group, .. } => {
                self.leave_all(now, |b| b.group == *group && b.holder.node == node);
            }
            Event::Refused { .. }
            | Event::Changed { .. }
            | Event::ChangeHalted { .. }
            | Event::Failed { .. }
            | Event::WeakLeader { .. }
            | Event::Paced { .. }
            | Event::Strained { .. }
            | Event::Silent { .. }
            | Event::Implausible { .. }
            | Event::HeldBack { .. }
            | Event::Mute
            | Event::SplitBrain { .. }
            | Event::LineageAccepted
            | Event::ClockWentBack { .. } => {}
        }
    }

    fn on_verified<S: Sight>(
        &mut self,
        sight: &S,
        by: NodeId,
        (group, leader): (GroupId, Holder),
        lease: LocalTime,
    ) {
        let (until, mark) = (sight.stops(by, lease), sight.mark());
        let claim = Claim { group, leader, by, lease, until, mark };
        self.judge_claim(sight, claim, sight.now());
        self.claims.push(claim);
    }

    fn on_adopted<S: Sight>(&mut self, sight: &S, node: NodeId, charter: &Arc<Charter>) {
        let now = sight.now();
        self.note_height(charter.floor);
        self.bounds.settles(node);
        self.stays.adopts(node, charter.epoch, now);
        if !sight.sees_all() {
            self.epochs.decides(charter, |member| sight.knows(member, now)); // Nobody need have said so.
        }
        self.judge_charter((now, sight.mark()), node, charter);
    }

    /// Time is about to pass to `to`, without any event until then: what runs out meanwhile is
    /// judged at its last instant.
    pub(crate) fn run_out<S: Sight>(&mut self, sight: &S, to: RealTime) {
        while let Some(over) = self.beliefs.iter().position(|belief| belief.until <= to) {
            let belief = self.beliefs.swap_remove(over);
            self.see(LAPSES);
            self.judge_support(sight, belief, RealTime(belief.until.0.saturating_sub(1)).max(sight.now()));
            self.leave(belief, belief.until);
            self.lately.extend(Some(belief).filter(|belief| belief.gone > belief.until));
        }
        while let Some(over) = self.claims.iter().position(|claim| claim.until <= to) {
            let claim = self.claims.swap_remove(over);
            self.see(VERIFIES);
            self.judge_claim(sight, claim, RealTime(claim.until.0.saturating_sub(1)).max(sight.now()));
        }
    }

    /// A life begins, and goes by this charter. A grant of the life before may never have left it.
    pub(crate) fn on_started(
        &mut self,
        now: RealTime,
        node: NodeId,
        charter: &Arc<Charter>,
        mark: Option<Mark>,
    ) {
        self.on_ended(now, node);
        self.bounds.forgets(node);
        self.unseen.insert(node);
        self.epochs.begins_with(charter, mark);
    }

    /// A process has ended.
    pub(crate) fn on_ended(&mut self, now: RealTime, node: NodeId) {
        self.bounds.crashes(node);
        self.forget_memory(node);
        self.leave_all(now, |belief| belief.holder.node == node);
        self.claims.retain(|claim| claim.by != node);
    }

    /// The properties that were broken, each with the first time, in order.
    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Every property with what became of it.
    pub(crate) fn report(&self) -> Vec<(Property, Status)> {
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
}

fn two_leaders(belief: Belief, rival: Belief) -> String {
    format!(
        "{} leads {} in term {} while {} leads it in term {} until {}",
        belief.holder.node, belief.group, belief.term, rival.holder.node, rival.term, rival.until
    )
}
