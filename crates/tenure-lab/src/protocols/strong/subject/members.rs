//! Commands and texts on members: how they change, and what becomes of those that lost their disks.

use tenure_proto::NodeId;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::{Change, Charter, Denial, EpochTalk, Halt};
use tenure_proto::strong::wedge::{Hindrance, WedgeTalk};
use tenure_proto::strong::{Event, RecoveryTalk};

use crate::random::Random;
use crate::world::{RealTime, node_id};

/// Any members whatever: none of them need be one now.
pub(super) fn any_members(random: &mut Random, nodes: usize) -> Option<Change> {
    let members: Vec<_> = (0..nodes).map(node_id).filter(|_| random.percent(50)).collect();
    let weights = members.iter().map(|_| random.between(1, 3)).collect();
    Quorums::weighted(members, weights).ok().map(Change::Quorums)
}

/// The fate of a disk, in words.
pub(super) fn disk_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::Mute => format!("{node} has lost its disk and takes no part"),
        Event::Recovering => format!("{node} has lost its disk and will ask the others for its terms"),
        Event::Recovered { top } => format!("{node} recovers: it grants terms above {top}"),
        _ => String::new(),
    }
}

/// A change of the members, in words.
pub(super) fn members_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::Wedged { epoch, ballot } => {
            format!("{node} is wedged in epoch {epoch}, in ballot {ballot}")
        }
        Event::Adopted { charter, joined } => {
            let what = if *joined { "joins in" } else { "goes by" };
            format!("{node} {what} {}", charter_text(charter))
        }
        Event::Accepted { charter, .. } => format!("{node} accepts {}", charter_text(charter)),
        Event::Decided { charter } => format!("{node} sees decided: {}", charter_text(charter)),
        Event::SplitBrain { other } => format!(
            "{node} hears of another epoch {} of another lineage: it grants and leads nothing",
            other.epoch
        ),
        Event::LineageAccepted => format!("{node} goes on: the other lineage was ended"),
        Event::Changed { epoch } => format!("{node} has the members it wanted, since epoch {epoch}"),
        Event::ChangeHalted { halt: Halt::Conflict } => {
            format!("{node} gives up its change: another was decided")
        }
        Event::ChangeHalted { halt: Halt::Fixed } => {
            format!("{node} gives up its change: members are fixed")
        }
        Event::ChangeHalted { halt: Halt::Impossible(why) } => {
            format!("{node} gives up its change: {why}")
        }
        _ => String::new(),
    }
}

fn charter_text(charter: &Charter) -> String {
    format!("epoch {} of {:?}, terms above {}", charter.epoch, charter.members(), charter.floor)
}

pub(super) fn epoch_text(talk: &EpochTalk) -> String {
    match talk {
        EpochTalk::Decided(charter) => format!("decided: {}", charter_text(charter)),
        EpochTalk::GoesBy(charter) => {
            format!("I go by epoch {}, of lineage {}", charter.epoch, charter.lineage)
        }
        EpochTalk::Unknown { newest } => format!("I know epochs up to {newest} only"),
        EpochTalk::Prepare { epoch, ballot } => {
            format!("prepare ballot {} after epoch {epoch}", ballot.number)
        }
        EpochTalk::Promise { ballot, accepted, top, .. } => {
            let held = accepted.as_ref().map(|(_, charter)| format!(", holding {}", charter_text(charter)));
            format!("promise to ballot {}, terms up to {top}{}", ballot.number, held.unwrap_or_default())
        }
        EpochTalk::Accept { ballot, charter, .. } => {
            format!("accept in ballot {}: {}", ballot.number, charter_text(charter))
        }
        EpochTalk::Accepted { ballot, .. } => format!("accepted in ballot {}", ballot.number),
        EpochTalk::Denied { ballot, denial, .. } => {
            let why = match denial {
                Denial::Outbid(higher) => format!("ballot {} is promised", higher.number),
                Denial::TooSoon { remaining } => format!("too soon, wait {remaining}"),
                Denial::NotAdjacent => "its quorums need not meet the present ones".to_owned(),
                Denial::Sealed(epoch) => format!("epoch {epoch} was accepted by an operator's word"),
                Denial::Granted(top) => format!("term {top} was granted"),
                Denial::Implausible(floor) => format!("an operator must confirm a floor of {floor}"),
            };
            format!("ballot {} is denied: {why}", ballot.number)
        }
    }
}

/// The number that a force-remove draws: of two operators each gives up others, so that each has a
/// number of its own.
pub(super) fn draw_for(gone: &[NodeId]) -> u128 {
    gone.iter().fold(1, |draw, node| draw << 8 ^ u128::from(node.0 + 1))
}

pub(super) fn change_text(change: &Change) -> String {
    match change {
        Change::Add(node) => format!("members add {node}"),
        Change::Remove(node) => format!("members remove {node}"),
        Change::Replace { old, new } => format!("members replace {old} by {new}"),
        Change::Quorums(quorums) => {
            let weights = quorums.weights().unwrap_or_default();
            let weighed: Vec<String> = weights.iter().map(|(node, w)| format!("{node}={w}")).collect();
            format!("members weigh {}", weighed.join(" "))
        }
        Change::Clocks(clocks) => format!("clocks {clocks:?}"),
        Change::LongestLease(span) => format!("longest-lease {}", RealTime(span.as_nanos())),
        Change::LiftBar(group) => format!("members lift-bar {group}"),
        Change::Set { .. } | Change::Named(..) => format!("{change:?}"),
        Change::ForceRemove { gone, least, margin, .. } => {
            let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
            format!("members force-remove {} above {least} by {margin}", gone.join(" "))
        }
    }
}

pub(super) fn wedge_text(talk: &WedgeTalk) -> String {
    match talk {
        WedgeTalk::Wedge(bid) => {
            format!("grant nothing in epoch {} any more, ballot {}", bid.epoch, bid.ballot)
        }
        WedgeTalk::Wedged { bid, accepted } => {
            let held = accepted
                .as_ref()
                .map(|(ballot, charter)| format!(", holding {} of ballot {ballot}", charter_text(charter)));
            format!("wedged in epoch {}, ballot {}{}", bid.epoch, bid.ballot, held.unwrap_or_default())
        }
        WedgeTalk::Accept { bid, charter, release } => {
            let gives = release.map(|(group, upto)| format!(", give back {group} up to run {}", upto.seq));
            let (ballot, charter) = (bid.ballot, charter_text(charter));
            format!("accept in ballot {ballot}: {charter}{}", gives.unwrap_or_default())
        }
        WedgeTalk::Accepted(bid) => format!("accepted in ballot {}", bid.ballot),
        WedgeTalk::NotYet { bid, hindrance: Hindrance::Outbid(term) } => {
            format!("ballot {} is outbid by {term}", bid.ballot)
        }
        WedgeTalk::NotYet { bid, hindrance: Hindrance::Bound { remaining } } => {
            format!("ballot {} must wait: a grant stands for another {remaining}", bid.ballot)
        }
    }
}

pub(super) fn recovery_text(talk: &RecoveryTalk) -> String {
    match talk {
        RecoveryTalk::Read { .. } => "what is your largest term?".to_owned(),
        RecoveryTalk::Known { top, .. } => format!("terms up to {top}"),
    }
}

/// The names of events in this protocol.
pub(super) const COUNTS: [&str; 33] = [
    "runs",
    "grants",
    "refusals-busy",
    "refusals-stale-term",
    "refusals-too-long",
    "refusals-released",
    "refusals-wedged",
    "refusals-draining",
    "releases",
    "grants-given-back",
    "resignations",
    "transfers",
    "verifications",
    "edicts",
    "elections",
    "renewals",
    "runs-aborted",
    "runs-too-late",
    "runs-failed",
    "leases-lapsed",
    "silences",
    "mutes",
    "recoveries-begun",
    "recoveries",
    "wedges",
    "epochs-ended-by-leader",
    "members-joined",
    "epochs-adopted",
    "charters-accepted",
    "epochs-decided",
    "changes-done",
    "changes-halted",
    "messages-forged",
];
