//! Messages, and the reasons for an end, in words.

use tenure_proto::GroupId;
use tenure_proto::strong::{Event, Failure, Kind, Loss, Refusal, Talk};

pub(super) fn talk_text(group: GroupId, talk: &Talk) -> String {
    match talk {
        Talk::TakeOver { term } => format!("take over {group} after term {term}"),
        Talk::Ready(request) => {
            format!("ready for {group} with run {} in term {}", request.id.seq, request.term)
        }
        Talk::Relay { release, request } => {
            let (to, run) = (request.id.holder.node, request.id.seq);
            format!("give back {group} up to run {}, and support {to}'s run {run}", release.seq)
        }
        Talk::Prefer { priority, .. } => format!("I would rather lead {group}: my priority is {priority}"),
        Talk::Verify { wanted, .. } => format!("do you lead {group} for {wanted}?"),
        Talk::Certain { term, pledge, .. } => format!("I lead {group} in term {term} for {}", pledge.lasts),
        _ => super::find::talk_text(group, talk).unwrap_or_default(),
    }
}

pub(super) fn loss_text(loss: Loss) -> &'static str {
    match loss {
        Loss::Lapsed => "its lease is over",
        Loss::Resigned => "it resigns",
        Loss::HandedOver => "it hands over",
        Loss::EndedEpoch => "it ends its epoch",
        Loss::NextEpoch => "its epoch has ended",
        Loss::ClockWentBack => "its clock went back",
        Loss::SplitBrain => "there is another cluster of its name",
        Loss::Disturbed => "its machine was suspended or moved",
    }
}

pub(super) fn failure_text(failure: Failure) -> &'static str {
    match failure {
        Failure::TimedOut => "too few answered in time",
        Failure::Blocked => "too many refused",
        Failure::Aborted => "it begins another",
        Failure::TooLate => "the lease was over before",
    }
}

pub(super) fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Busy { holder, remaining } => format!("it supports {holder} for another {remaining}"),
        Refusal::StaleTerm => "the term is too small".to_owned(),
        Refusal::LeaseTooLong => "the lease is too long".to_owned(),
        Refusal::Released => "the run was given back".to_owned(),
        Refusal::FromTheFuture => "it begins later than any legal clock shows".to_owned(),
        Refusal::TooManyGroups => "it knows too many groups of this key".to_owned(),
        Refusal::Young => "it has just joined".to_owned(),
        Refusal::Wedged => "it is wedged".to_owned(),
        Refusal::Draining => "it is about to be wedged".to_owned(),
        Refusal::TooHigh { wait } => format!("the term is too high: wait {wait}"),
        Refusal::Barred => "the group is barred since terms were repaired".to_owned(),
        Refusal::Implausible => "the term is so high that an operator must confirm it".to_owned(),
    }
}

/// As what an event is counted.
pub(super) fn count_kind(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Asked(_) => "runs",
        Event::Granted { .. } => "grants",
        Event::Refused { refusal: Refusal::Busy { .. }, .. } => "refusals-busy",
        Event::Refused { refusal: Refusal::StaleTerm, .. } => "refusals-stale-term",
        Event::Refused { refusal: Refusal::LeaseTooLong, .. } => "refusals-too-long",
        Event::Refused { refusal: Refusal::Released, .. } => "refusals-released",
        Event::Refused { refusal: Refusal::FromTheFuture, .. } => "refusals-from-the-future",
        Event::Refused { refusal: Refusal::Young, .. } => "refusals-young",
        Event::Refused { refusal: Refusal::Wedged, .. } => "refusals-wedged",
        Event::Refused { refusal: Refusal::Draining, .. } => "refusals-draining",
        Event::Refused { refusal: Refusal::TooHigh { .. }, .. } => "refusals-too-high",
        Event::Refused { refusal: Refusal::Implausible, .. } => "refusals-implausible",
        Event::Refused { refusal: Refusal::Barred, .. } => "refusals-barred",
        // A driver's refusal: the machines of the laboratory never give it.
        Event::Refused { refusal: Refusal::TooManyGroups, .. } => return None,
        Event::Implausible { .. } => "terms-doubted",
        Event::Confirmed { .. } => "terms-confirmed",
        Event::HeldBack { .. } => "candidates-held-back",
        Event::GaveBack { .. } => "releases",
        Event::Freed { .. } => "grants-given-back",
        Event::Lost { loss: Loss::Resigned, .. } => "resignations",
        Event::Lost { loss: Loss::HandedOver, .. } => "transfers",
        Event::Lost { loss: Loss::EndedEpoch, .. } => "epochs-ended-by-leader",
        Event::Verified { .. } => "verifications",
        Event::Pledged { .. } => "pledges",
        Event::Sought { .. } => "searches",
        Event::Found { .. } => "leaders-found",
        Event::NotFound { .. } => "leaders-not-found",
        Event::Leads { kind: Kind::Acquire, .. } => "elections",
        Event::Leads { kind: Kind::Renew, .. } => "renewals",
        Event::Failed { failure: Failure::Aborted, .. } => "runs-aborted",
        Event::Failed { failure: Failure::TooLate, .. } => "runs-too-late",
        Event::Failed { .. } => "runs-failed",
        Event::Lost { .. } => "leases-lapsed",
        Event::Silent { .. } => "silences",
        Event::WeakLeader { leader: Some(_), .. } => "weak-leaders",
        Event::WeakLeader { leader: None, .. } => "weak-leaders-ended",
        Event::Paced { .. } => "lease-changes",
        Event::Strained { .. } => "lease-alarms",
        Event::Yields { .. } => "preferred-handed-over",
        Event::Mute => "mutes",
        Event::Recovering => "recoveries-begun",
        Event::Recovered { .. } => "recoveries",
        Event::Wedged { .. } => "wedges",
        Event::Adopted { joined: true, .. } => "members-joined",
        Event::Adopted { .. } => "epochs-adopted",
        Event::Accepted { .. } => "charters-accepted",
        Event::Decided { .. } => "epochs-decided",
        Event::Changed { .. } => "changes-done",
        Event::ChangeHalted { .. } => "changes-halted",
        Event::SplitBrain { .. } => "split-brains",
        Event::LineageAccepted => "lineages-accepted",
        Event::ClockWentBack { .. } => "clocks-went-back",
    })
}
