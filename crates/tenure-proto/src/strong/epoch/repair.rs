//! A repair of terms that are absurd already, with every member stopped.
//!
//! One ceiling stands for the terms of all groups (`term`), and it never falls. So one absurd term
//! (a bug, a bad disk, an older version without bounds, a wrong confirmation) raises the terms of
//! every group for good: packed tokens end at 2^31, all terms at 2^64. Only a new beginning lowers
//! them again.
//!
//! ```text
//!   1  stop      the operator stops every member
//!   2  report    each store is read, not written: all of its content (Stopped)
//!   3  plan      from the reports of all: a charter N with a lower floor, or a refusal
//!   4  apply     each store that still is as reported is replaced, in one step (applied)
//!   5  start     as after a reboot: silent for a longest lease, rule W begins anew
//! ```
//!
//! N has the members, quorums and bounds of the newest charter e, the number of an era that nothing
//! else reaches (`beyond_forced`), a new floor, and the barred groups. Its lineage has a draw of
//! its own, marked as a repair: N and the charters of before are foreign to each other
//! ([`Lineage::repaired`]). So a member goes by N, or by what follows it, only because its own
//! store was replaced. A member whose store was not stops when it hears of N, and so do those that
//! tell it.
//!
//! # Why no two lead
//!
//! Let X be a lease of the lineage of before, and Y one of N, both in force. S supports X and T
//! supports Y. Members of T were repaired. N has the quorums of e, and S is a quorum of e or of its
//! neighbour, so S and T share a member q (ADJ). What if S is of an older epoch, or of a newer one
//! that nobody reported? Older ones had ended when e was decided (T1). A newer one was accepted by
//! a quorum of e, durably: all members of e report, and a report of an accepted charter that nobody
//! goes by is refused.
//!
//! q granted X before its report: every start of a member changes its store, and only a store that
//! is as reported is replaced; afterwards q refuses requests of older epochs (MONO). It granted Y
//! after the start that followed, and after a silence of a longest lease. So X was over.
//!
//! **Some are repaired and some are not.** {a} was repaired, and {b, c} run on as before: {a} is no
//! quorum of N. If b has run since its report it can no longer be repaired by this plan. So of N
//! and of what it replaces at most one finds a quorum: every quorum of the one meets every quorum
//! of the other, and the member that they share goes by one of them. The operator makes a new plan
//! from new reports. Reports on both sides of a repair are accepted if both sides have the same
//! members and quorums: the argument above holds for each side.
//!
//! **Later epochs.** N+1 is accepted when its acceptors have been in N for a longest lease (W): the
//! time of adoption is in the memory of grants, which a repaired store does not match, so it counts
//! from the start. Then N takes the place of e+1 in T1 and T2.
//!
//! # Terms
//!
//! A term is granted only below the durable ceiling of its grantor, and all members report theirs.
//! Each ceiling is at most the floor, or *absurd*: more than [`PLAUSIBLE`] above it. Anything
//! between is refused, for nobody can say what it is. So every term that was granted and is above
//! the floor was granted below an absurd ceiling. Such a group is barred if a member remembers the
//! grant, or if the operator names it (`barred`). Only fences and the operator know of grants that
//! no member remembers: after a restart every group that elects goes above the absurd ceiling.
//!
//! # Assumptions that rest on the operator's word
//!
//! That the barred groups are all that hold an absurd term, or that the fences of the others were
//! reset; and that no store is put back from a backup of before the repair.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Barred, Body, ChangeError, Charter, CharterId, Epoch, Lineage, StoreId};
use crate::strong::edict::PackedToken;
use crate::strong::height::PLAUSIBLE;
use crate::strong::message::{Cell, Term};
use crate::{GroupId, Incarnation, LocalTime, NodeId};

/// A member that is stopped: all that its store says, and the grants that it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The member.
    pub node: NodeId,
    /// Its store.
    pub store: StoreId,
    /// The last life that used the store.
    pub life: Option<Incarnation>,
    /// The content of the store.
    pub cells: Vec<Cell>,
    /// The terms of grants that are remembered within this boot.
    pub grants: Vec<(GroupId, Term)>,
}

impl Stopped {
    /// The charter that this member goes by.
    pub fn charter(&self) -> Option<&Arc<Charter>> {
        let charters = self.cells.iter().filter_map(|cell| match cell {
            Cell::Charter(charter) => Some(charter),
            _ => None,
        });
        charters.max_by_key(|charter| charter.epoch)
    }

    /// No term above this was granted.
    pub fn ceiling(&self) -> Term {
        let ceilings = self.cells.iter().filter_map(|cell| match cell {
            Cell::Ceiling(term) => Some(*term),
            _ => None,
        });
        ceilings.max().unwrap_or_default()
    }

    /// The ceiling, if it is known to be plausible: an earlier repair has set the floor from which
    /// it has risen, and by no more than one may rise.
    pub fn plausible(&self) -> Option<Term> {
        let charter = self.charter().filter(|charter| charter.lineage.is_repaired())?;
        let ceiling = self.ceiling();
        (ceiling.0 <= charter.floor.0.saturating_add(PLAUSIBLE)).then_some(ceiling)
    }

    fn accepted(&self) -> impl Iterator<Item = &Arc<Charter>> {
        self.cells.iter().filter_map(|cell| match cell {
            Cell::Ballot { accepted: Some((_, charter)), .. } => Some(charter),
            _ => None,
        })
    }

    /// The other cluster for which this member has stopped.
    fn split(&self) -> Option<&CharterId> {
        self.cells.iter().find_map(|cell| match cell {
            Cell::SplitBrain(other) => other.as_ref(),
            _ => None,
        })
    }
}

/// The operator's part of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Terms go on above this. No group that is not barred holds a higher one.
    pub floor: Term,
    /// Groups that hold an absurd term, beside those that members remember.
    pub barred: Vec<GroupId>,
    /// Drawn at random, once for this plan.
    pub draw: u64,
}

/// Why terms cannot be repaired from these reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairError {
    /// There is no report.
    NoReports,
    /// Two reports are of one member.
    Twice(NodeId),
    /// A node has never heard of a charter.
    NoCharter(NodeId),
    /// A member of the newest charter has not reported.
    Missing(NodeId),
    /// A node has reported that is no member of the newest charter.
    NotAMember(NodeId),
    /// The newest charter names another store under this name.
    OtherStore(NodeId),
    /// Two reports come from different clusters.
    Foreign(NodeId),
    /// A half-finished repair, and members that have changed since on one side of it.
    OtherMembers(NodeId),
    /// A charter was accepted, and no report shows that it was decided.
    Undecided(NodeId, Epoch),
    /// A member has stopped for another cluster that has not reported.
    SplitBrain(NodeId),
    /// A member has found that the store of another is an old copy.
    OldCopy(NodeId),
    /// A member ends epochs before the next begins.
    Wedged(NodeId),
    /// A term of a member is above the floor, and not absurd.
    Ambiguous(NodeId, Term),
    /// No term is absurd.
    NothingAbsurd,
    /// No packed token would be left.
    FloorTooHigh,
    /// The charter cannot be made.
    Change(ChangeError),
}

impl RepairError {
    /// The reason and the way out, with members as `name` calls them.
    pub fn describe(&self, name: impl Fn(NodeId) -> String) -> String {
        let first = match self {
            Self::Twice(node)
            | Self::NoCharter(node)
            | Self::Missing(node)
            | Self::NotAMember(node)
            | Self::OtherStore(node)
            | Self::Foreign(node)
            | Self::OtherMembers(node)
            | Self::Undecided(node, _)
            | Self::SplitBrain(node)
            | Self::OldCopy(node)
            | Self::Wedged(node)
            | Self::Ambiguous(node, _) => name(*node),
            _ => String::new(),
        };
        match self {
            Self::NoReports => "there is no report".to_owned(),
            Self::Twice(_) => format!("two reports are of {first}: give the newer one only"),
            Self::NoCharter(_) => format!("{first} has never been a member: leave its report out"),
            Self::Missing(_) => format!(
                "{first} is a member, and its report is missing: if it is lost, start the others, remove or replace it (`members replace`, `members force-remove`), and begin again"
            ),
            Self::NotAMember(_) => {
                format!("{first} is no member of the newest charter: leave its report out")
            }
            Self::OtherStore(_) => {
                format!(
                    "the store of {first} is not the one that the newest charter names: report from that one"
                )
            }
            Self::Foreign(_) => {
                format!(
                    "{first} comes from another cluster of this id: decide first which side goes on (`members accept-lineage`)"
                )
            }
            Self::OtherMembers(_) => format!(
                "an earlier repair was applied to some members only, and the members have changed since: leave the report of {first} out if it is of the side that is given up, or start and change the members back"
            ),
            Self::Undecided(_, epoch) => format!(
                "{first} has accepted a change of the members (epoch {epoch}) that may or may not be decided: start all members, wait until `tenure members list` shows no change under way, and begin again"
            ),
            Self::SplitBrain(_) => format!(
                "{first} has stopped for another cluster of this id and key: decide first which side goes on (`members accept-lineage`)"
            ),
            Self::OldCopy(_) => format!(
                "the store of {first} is an old copy, or was put back from a backup: start the others and replace it (`members replace`), and begin again"
            ),
            Self::Wedged(_) => format!("{first} has ended its epoch: such a cluster cannot be repaired"),
            Self::Ambiguous(_, term) => format!(
                "{first} may have granted the term {term}, which is above the floor and not absurd: give a --floor of at least that"
            ),
            Self::NothingAbsurd => {
                format!("no term is more than {PLAUSIBLE} above the floor: there is nothing to repair")
            }
            Self::FloorTooHigh => {
                format!("the floor must be below {}, the last term of packed tokens", PackedToken::LAST_TERM)
            }
            Self::Change(error) => error.to_string(),
        }
    }
}

impl From<ChangeError> for RepairError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|node| node.to_string()))
    }
}

impl std::error::Error for RepairError {}

/// The charter by which the members of these reports go on, with terms above a floor.
pub fn plan(reports: &[Stopped], wish: &Wish) -> Result<Arc<Charter>, RepairError> {
    let charters = charters(reports)?;
    let newest = newest(&charters)?;
    check_members(reports, newest)?;
    check_changes(reports, &charters)?;
    check_stores(reports)?;
    check_terms(reports, wish.floor)?;
    let lineages = charters.iter().map(|(_, charter)| &charter.lineage);
    let longest = lineages.max_by_key(|lineage| lineage.draws().len()).unwrap_or(&newest.lineage);
    let held = charters.iter().flat_map(|(_, charter)| charter.body.barred.groups());
    let remembered = reports.iter().flat_map(|report| &report.grants);
    let absurd = remembered.filter(|(_, term)| *term > wish.floor).map(|(group, _)| group);
    let barred = Barred::new(held.chain(absurd).chain(&wish.barred).copied().collect())?;
    let epoch = charters.iter().map(|(_, charter)| charter.epoch).fold(newest.epoch, Epoch::max);
    Ok(Arc::new(Charter {
        epoch: beyond_forced(epoch),
        lineage: longest.repaired(wish.draw)?,
        body: Body { barred, ..newest.body.clone() },
        before: Some(longest_before(&charters, newest)),
        floor: wish.floor,
    }))
}

/// The number of a repair: beyond all that force-removes on the other side can reach. Each of them
/// begins the next era and adds a draw to a lineage of at most [`Lineage::MOST`].
///
/// Requests say the number of an epoch and no lineage (MONO, ONE). Say {a, b, c} of six were
/// repaired, and {d, e, f} were forced to go on without them: if both charters had one number, a
/// candidate that goes by the repair would count the Ok of d beside those of {a, b, c}, while
/// another leads by {e, f}. Members that have the cluster's key compare lineages first, and stop;
/// candidates with a key of their own do not.
fn beyond_forced(epoch: Epoch) -> Epoch {
    (0..Lineage::MOST).fold(epoch, |epoch, _| epoch.next_era())
}

/// The cells of a repaired member, in the place of `cells`. Knowledge of other stores stays; all
/// that was promised and accepted was so in epochs that are over.
pub fn applied(cells: &[Cell], charter: &Arc<Charter>) -> Vec<Cell> {
    let others = cells.iter().filter(|cell| matches!(cell, Cell::Life { .. })).cloned();
    [Cell::Ceiling(charter.floor), Cell::Charter(charter.clone())].into_iter().chain(others).collect()
}

type Charters<'a> = Vec<(NodeId, &'a Arc<Charter>)>;

/// The charter of each member; all of them must come from one founding.
fn charters(reports: &[Stopped]) -> Result<Charters<'_>, RepairError> {
    let mut all: Charters<'_> = Vec::new();
    for report in reports {
        if all.iter().any(|(node, _)| *node == report.node) {
            return Err(RepairError::Twice(report.node));
        }
        if report.cells.iter().any(|cell| matches!(cell, Cell::Wedge { .. })) {
            return Err(RepairError::Wedged(report.node));
        }
        all.push((report.node, report.charter().ok_or(RepairError::NoCharter(report.node))?));
    }
    let related = |one: &Lineage, other: &Lineage| one.begins(other) || other.begins(one);
    for (node, charter) in &all {
        let apart = |other: &Charter| {
            let same = other.lineage == charter.lineage && other.epoch == charter.epoch;
            !related(&other.lineage, &charter.lineage) || same && other.id() != charter.id()
        };
        if all.iter().any(|(_, other)| apart(other)) {
            return Err(RepairError::Foreign(*node));
        }
    }
    Ok(all)
}

/// The newest charter. Where an earlier repair was applied to some members only, each side has one,
/// and they must name the same members and quorums.
fn newest<'a>(charters: &Charters<'a>) -> Result<&'a Arc<Charter>, RepairError> {
    let mut sides: BTreeMap<Vec<u128>, (NodeId, &Arc<Charter>)> = BTreeMap::new();
    for (node, charter) in charters {
        let side = sides.entry(charter.lineage.repairs().collect()).or_insert((*node, charter));
        if side.1.epoch < charter.epoch {
            *side = (*node, charter);
        }
    }
    let (_, newest) =
        sides.values().max_by_key(|(_, charter)| charter.epoch).ok_or(RepairError::NoReports)?;
    let same = |body: &Body| body.quorums == newest.body.quorums && body.stores == newest.body.stores;
    match sides.values().find(|(_, charter)| !same(&charter.body)) {
        Some((node, _)) => Err(RepairError::OtherMembers(*node)),
        None => Ok(newest),
    }
}

/// Exactly the members of the newest charter have reported, each from its store.
fn check_members(reports: &[Stopped], newest: &Charter) -> Result<(), RepairError> {
    let reported = |node: &NodeId| reports.iter().any(|report| report.node == *node);
    if let Some(missing) = newest.members().iter().find(|node| !reported(node)) {
        return Err(RepairError::Missing(*missing));
    }
    for report in reports {
        if !newest.has(report.node) {
            return Err(RepairError::NotAMember(report.node));
        }
        if newest.body.stores.get(report.node).is_some_and(|named| named != report.store) {
            return Err(RepairError::OtherStore(report.node));
        }
    }
    Ok(())
}

/// Nothing was accepted that may be decided while nobody goes by it, and nobody has stopped for a
/// cluster that is not here.
fn check_changes(reports: &[Stopped], charters: &Charters<'_>) -> Result<(), RepairError> {
    for report in reports {
        let passed = |accepted: &Charter| {
            let later =
                |charter: &Charter| charter.lineage == accepted.lineage && charter.epoch >= accepted.epoch;
            charters.iter().any(|(_, charter)| later(charter))
        };
        if let Some(accepted) = report.accepted().find(|accepted| !passed(accepted)) {
            return Err(RepairError::Undecided(report.node, accepted.epoch));
        }
        let here = |other: &CharterId| charters.iter().any(|(_, charter)| charter.lineage == other.lineage);
        if report.split().is_some_and(|other| !here(other)) {
            return Err(RepairError::SplitBrain(report.node));
        }
    }
    Ok(())
}

/// No member has heard a later life of a store than the store itself reports.
fn check_stores(reports: &[Stopped]) -> Result<(), RepairError> {
    let lives = reports.iter().flat_map(|report| &report.cells).filter_map(|cell| match cell {
        Cell::Life { store, highest, condemned, .. } => Some((*store, *highest, *condemned)),
        _ => None,
    });
    for (store, highest, condemned) in lives {
        let Some(report) = reports.iter().find(|report| report.store == store) else { continue };
        if condemned || report.life.is_none_or(|life| life < highest) {
            return Err(RepairError::OldCopy(report.node));
        }
    }
    Ok(())
}

/// Each term is at most the floor, or absurd; and one of them is.
fn check_terms(reports: &[Stopped], floor: Term) -> Result<(), RepairError> {
    if floor >= PackedToken::LAST_TERM {
        return Err(RepairError::FloorTooHigh);
    }
    let absurd = |term: Term| term.0 - floor.0 > PLAUSIBLE;
    let mut found = false;
    for report in reports {
        let granted = report.grants.iter().map(|(_, term)| *term);
        let floors = report.charter().map(|charter| charter.floor);
        for term in granted.chain(floors).chain([report.ceiling()]).filter(|term| *term > floor) {
            if !absurd(term) {
                return Err(RepairError::Ambiguous(report.node, term));
            }
            found = true;
        }
    }
    if found { Ok(()) } else { Err(RepairError::NothingAbsurd) }
}

/// The body before: its leases may be as long as the longest of any that is known.
fn longest_before(charters: &Charters<'_>, newest: &Charter) -> Body {
    let bodies = charters.iter().flat_map(|(_, charter)| [Some(&charter.body), charter.before.as_ref()]);
    let start = LocalTime::ZERO;
    let longest = bodies.flatten().fold(&newest.body, |longest, body| {
        if body.spacing(start) > longest.spacing(start) { body } else { longest }
    });
    let (clocks, longest_lease) = (longest.clocks, longest.longest_lease);
    Body { clocks, longest_lease, barred: Barred::default(), ..newest.body.clone() }
}
