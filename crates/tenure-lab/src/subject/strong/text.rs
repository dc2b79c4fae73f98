//! What processes say, and why something came to an end, in words.

use tenure_proto::GroupId;
use tenure_proto::strong::{Failure, Loss, Refusal, Talk};

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
        Refusal::Implausible => "the term is so high that an operator must confirm it".to_owned(),
    }
}
