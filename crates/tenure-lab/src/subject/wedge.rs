//! What is said of ended epochs and lost disks, and what is only wanted there.

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::RecoveryTalk;
use tenure_proto::strong::epoch::Change;
use tenure_proto::strong::wedge::{Hindrance, WedgeTalk};

use super::strong::charter_text;
use crate::random::Random;
use crate::world::node_id;

/// Any members whatever: none of them need be one now.
pub(super) fn any_members(random: &mut Random, nodes: usize) -> Option<Change> {
    let members: Vec<_> = (0..nodes).map(node_id).filter(|_| random.percent(50)).collect();
    let weights = members.iter().map(|_| random.between(1, 3)).collect();
    Quorums::weighted(members, weights).ok().map(Change::Quorums)
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

/// The kinds of messages of this protocol.
pub(super) const MESSAGES: [&str; 18] = [
    "request",
    "ok",
    "nack",
    "release",
    "take-over",
    "ready",
    "relay",
    "verify",
    "certain",
    "decided",
    "unknown-epoch",
    "wedge",
    "wedged",
    "accept",
    "accepted",
    "not-yet",
    "read",
    "known",
];

/// What happens in this protocol.
pub(super) const COUNTS: [&str; 32] = [
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
];
