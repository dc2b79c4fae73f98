//! Messages that a process may say in another's name without breaking a promise of the machine.

use tenure_proto::NodeId;
use tenure_proto::strong::epoch::EpochTalk;
use tenure_proto::strong::wedge::WedgeTalk;
use tenure_proto::strong::{GrantRequest, Holder, Message, Nerio, RecoveryTalk, Rules, Talk};

use crate::world::Guise;

/// The message that `by` forges from another. Anybody may speak for somebody else: the machine
/// believes nobody but the process that is named. Only a process that the receiver does not take
/// for a member may answer as one does: a member that says what is not so is outside of every
/// promise.
pub(super) fn forged<R: Rules>(
    message: &Message,
    by: NodeId,
    guise: Guise,
    receiver: &Nerio<R>,
) -> Option<Message> {
    match (guise, asked(message)) {
        (Guise::Own, _) => answers_for(message, by),
        (Guise::Copy, _) => {
            let another = speaks_for_its_sender(message) && speaker(message) != Some(by);
            let stranger = answers_as_member(message) && !receiver.charter().has(by);
            (another || stranger).then(|| message.clone())
        }
        (_, Some(request)) if request.id.holder.node == by => None,
        (Guise::Release, Some(request)) => Some(Message::Release { group: request.group, upto: request.id }),
        (Guise::Relay, Some(request)) => {
            let talk = Talk::Relay { release: request.id, request };
            Some(Message::Talk { group: request.group, talk })
        }
        (Guise::Release | Guise::Relay, None) => None,
    }
}

/// The answer that `by` leads itself, in the place of the process that was asked. The receiver
/// has not asked it.
fn answers_for(message: &Message, by: NodeId) -> Option<Message> {
    let Message::Talk { group, talk: Talk::Certain { id, leader, term, pledge } } = *message else {
        return None;
    };
    let leader = Holder { node: by, ..leader };
    Some(Message::Talk { group, talk: Talk::Certain { id, leader, term, pledge } })
}

/// The request to grantors in a message, if it has one.
fn asked(message: &Message) -> Option<GrantRequest> {
    match message {
        Message::Request(request) | Message::Extend { request, .. } => Some(*request),
        _ => None,
    }
}

/// The process in whose name something is said.
fn speaker(message: &Message) -> Option<NodeId> {
    match message {
        Message::Wedge(WedgeTalk::Wedge(bid) | WedgeTalk::Accept { bid, .. }) => Some(bid.id.holder.node),
        _ => message.speaker().map(|holder| holder.node),
    }
}

fn speaks_for_its_sender(message: &Message) -> bool {
    match message {
        Message::Request(_) | Message::Extend { .. } | Message::Release { .. } => true,
        Message::Talk { talk, .. } => {
            matches!(talk, Talk::Relay { .. } | Talk::Ready(_) | Talk::Prefer { .. })
        }
        Message::Wedge(talk) => matches!(talk, WedgeTalk::Wedge(_) | WedgeTalk::Accept { .. }),
        _ => false,
    }
}

fn answers_as_member(message: &Message) -> bool {
    match message {
        Message::Ok { .. } => true,
        Message::Epoch(talk) => matches!(talk, EpochTalk::Promise { .. } | EpochTalk::Accepted { .. }),
        Message::Wedge(talk) => matches!(talk, WedgeTalk::Wedged { .. } | WedgeTalk::Accepted(_)),
        Message::Recovery(talk) => matches!(talk, RecoveryTalk::Known { .. }),
        _ => false,
    }
}
