//! Requests that take a while: verifications and hand-overs; for changes of the members
//! see `change`.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::strong::{Command, Event, Holder, How, Loss, Message, Talk, Term};
use tenure_proto::time::Span;
use tenure_proto::{GroupId, LocalTime, NodeId};
use tokio::sync::oneshot;

use super::change::Underway;
use super::{By, Driver, For};
use crate::clock::nanos;
use crate::error::{TransferError, VerifyError};
use crate::name::{GroupName, NodeName};
use crate::node::Certain;

/// How long a verification may take: several round trips, also where members are gone.
const VERIFY_WITHIN: Duration = Duration::from_secs(1);

/// How long a process may take to say that it stands by: several round trips by way of a member.
const STAND_BY_WITHIN: Duration = Duration::from_secs(1);

/// How many hints are followed.
const HOPS: u8 = 4;

/// A verification that was asked for.
pub(crate) struct VerifyOrder {
    pub(crate) group: GroupName,
    pub(crate) wanted: Span,
    pub(crate) reply: oneshot::Sender<Result<Certain, VerifyError>>,
}

struct Verification {
    order: VerifyOrder,
    deadline: LocalTime,
    again: LocalTime,
    /// Which member was asked first last time.
    asked: usize,
}

struct Handover {
    term: Term,
    to: NodeName,
    reply: oneshot::Sender<Result<(), TransferError>>,
    deadline: LocalTime,
    again: LocalTime,
}

/// All that is under way.
#[derive(Default)]
pub(crate) struct Questions {
    verifications: BTreeMap<GroupId, Vec<Verification>>,
    handovers: BTreeMap<GroupId, Handover>,
    /// Leaders that ask whether a successor stands by. The same words as for a hand-over.
    standbys: BTreeMap<GroupId, Handover>,
    pub(super) change: Option<Underway>,
}

impl Questions {
    pub(crate) fn next_wake(&self) -> Option<LocalTime> {
        let verifications =
            self.verifications.values().flatten().map(|asked| asked.again.min(asked.deadline));
        let handovers = self.handovers.values().chain(self.standbys.values());
        let handovers = handovers.map(|handover| handover.again.min(handover.deadline));
        let change = self.change.iter().map(|change| change.look_at);
        verifications.chain(handovers).chain(change).min()
    }

    /// Whether somebody here waits for a change of the members.
    /// No verification can succeed: all of them end with this.
    pub(super) fn fail_all(&mut self, why: &VerifyError) {
        for asked in std::mem::take(&mut self.verifications).into_values().flatten() {
            let _ = asked.order.reply.send(Err(why.clone()));
        }
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.change.is_some()
    }
}

pub(super) fn later(now: LocalTime, by: Duration) -> LocalTime {
    LocalTime::from_nanos(now.as_nanos().saturating_add(nanos(by)))
}

impl Driver {
    pub(super) fn on_verify_order(&mut self, order: VerifyOrder) {
        let now = self.now();
        let group = order.group.id();
        let _ = self.learn_group(order.group.clone(), (By::Cluster, For::Question));
        let deadline = later(now, VERIFY_WITHIN);
        let asked = Verification { order, deadline, again: now, asked: 0 };
        self.questions.verifications.entry(group).or_default().push(asked);
        self.on_question_time(now);
    }

    pub(super) fn on_transfer(
        &mut self,
        group: GroupId,
        term: Term,
        to: NodeName,
        reply: oneshot::Sender<Result<(), TransferError>>,
    ) {
        if !self.campaigns.leads(group, term) {
            let _ = reply.send(Err(TransferError::NotLeader));
            return;
        }
        let now = self.now();
        let deadline = later(now, self.config.lease());
        self.questions.handovers.insert(group, Handover { term, to, reply, deadline, again: now });
        self.on_question_time(now);
    }

    /// The leader asks whether `to` stands by, and goes on leading whatever it answers.
    pub(super) fn on_stand_by(
        &mut self,
        group: GroupId,
        term: Term,
        to: NodeName,
        reply: oneshot::Sender<Result<(), TransferError>>,
    ) {
        let refusal = if !self.campaigns.leads(group, term) {
            Some(TransferError::NotLeader)
        } else if to.id() == self.me {
            Some(TransferError::NotStandingBy { to: to.clone() })
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let _ = reply.send(Err(refusal));
            return;
        }
        let now = self.now();
        let deadline = later(now, STAND_BY_WITHIN);
        let asked = Handover { term, to, reply, deadline, again: now };
        if let Some(before) = self.questions.standbys.insert(group, asked) {
            let _ = before.reply.send(Err(TransferError::NotStandingBy { to: before.to }));
        }
        self.on_question_time(now);
    }

    /// Asks again whom nobody answered, and gives up what took too long.
    pub(super) fn on_question_time(&mut self, now: LocalTime) {
        self.ask_again(now);
        self.hand_over_again(now);
        self.stand_by_again(now);
        self.on_request_time(now);
        self.on_change_time(now);
        self.settle();
    }

    fn ask_again(&mut self, now: LocalTime) {
        let (retry, members, me) = (self.config.retry() * 2, self.members(), self.me);
        let mut orders = Vec::new();
        for (group, list) in &mut self.questions.verifications {
            for asked in list.iter_mut().filter(|asked| asked.again <= now) {
                asked.again = later(now, retry);
                // This process itself first, if it grants: it may lead, or know who does.
                let own = members.contains(&me) && asked.asked == 0;
                let ask = if own { me } else { members[asked.asked % members.len().max(1)] };
                asked.asked += 1;
                orders.push(Command::Find { group: *group, ask, how: How::Redirect, hops: HOPS });
            }
            for late in list.extract_if(.., |asked| asked.deadline <= now) {
                let group = late.order.group;
                let _ = late.order.reply.send(Err(VerifyError::NoLeader { group }));
            }
        }
        self.questions.verifications.retain(|_, list| !list.is_empty());
        self.orders.extend(orders);
    }

    fn hand_over_again(&mut self, now: LocalTime) {
        let retry = self.config.retry();
        let mut over = Vec::new();
        for (group, handover) in &mut self.questions.handovers {
            if handover.deadline <= now {
                over.push(*group);
            } else if handover.again <= now {
                handover.again = later(now, retry);
                self.orders.push_back(Command::Transfer { group: *group, to: handover.to.id() });
            }
        }
        for group in over {
            if let Some(handover) = self.questions.handovers.remove(&group) {
                let _ = handover.reply.send(Err(TransferError::Declined { to: handover.to }));
            }
        }
    }

    /// Asks those again that have not said whether they stand by. They are asked to take over, as
    /// for a hand-over, but the machine here knows nothing of it: it ignores a successor that it
    /// has not asked for, and leads on. The other has prepared a run like any other.
    fn stand_by_again(&mut self, now: LocalTime) {
        let retry = self.config.retry();
        let asked: Vec<GroupId> = self.questions.standbys.keys().copied().collect();
        for group in asked {
            let Some(asked) = self.questions.standbys.get_mut(&group) else { continue };
            let (to, term) = (asked.to.id(), asked.term);
            if asked.deadline <= now {
                self.end_stand_by(group, |to| Err(TransferError::NotStandingBy { to }));
            } else if asked.again <= now {
                asked.again = later(now, retry);
                self.send(to, Message::Talk { group, talk: Talk::TakeOver { term } });
            }
        }
    }

    /// A process says that it is ready to take over a group.
    pub(super) fn on_stands_by(&mut self, group: GroupId, from: NodeId) {
        if self.questions.standbys.get(&group).is_some_and(|asked| asked.to.id() == from) {
            self.end_stand_by(group, |_| Ok(()));
        }
    }

    fn end_stand_by(&mut self, group: GroupId, result: impl FnOnce(NodeName) -> Result<(), TransferError>) {
        if let Some(asked) = self.questions.standbys.remove(&group) {
            let _ = asked.reply.send(result(asked.to));
        }
    }

    /// Handles an event of the machine that may answer a question.
    pub(super) fn on_answer(&mut self, event: &Event, now: LocalTime) {
        match event {
            Event::Found { group, leader, .. } => self.on_found(*group, *leader),
            Event::Verified { group, leader, term, until } => {
                self.on_verified(*group, *leader, *term, *until);
            }
            Event::NotFound { group, .. } => {
                for asked in self.questions.verifications.get_mut(group).into_iter().flatten() {
                    asked.again = asked.again.min(later(now, self.config.retry() / 4));
                }
            }
            Event::Lost { group, term, loss } => {
                self.on_handed_over(*group, *term, *loss);
                self.on_term_over(*group, *term);
            }
            _ => self.on_change_event(event),
        }
    }

    fn on_found(&mut self, group: GroupId, leader: Holder) {
        let wanted = self
            .questions
            .verifications
            .get(&group)
            .and_then(|list| list.iter().map(|a| a.order.wanted).max());
        if let Some(wanted) = wanted {
            self.order(Command::Verify { group, leader: leader.node, wanted });
        }
    }

    fn on_verified(&mut self, group: GroupId, leader: Holder, term: Term, until: LocalTime) {
        let steady = self.steady.clone();
        let leader = self.net.name(leader.node).unwrap_or_else(|| self.name.clone());
        for asked in self.questions.verifications.remove(&group).into_iter().flatten() {
            let certain = Certain { leader: leader.clone(), term, until, steady: steady.clone() };
            let _ = asked.order.reply.send(Ok(certain));
        }
    }

    fn on_handed_over(&mut self, group: GroupId, term: Term, loss: Loss) {
        self.end_stand_by(group, |_| Err(TransferError::NotLeader));
        if let Some(handover) = self.questions.handovers.remove(&group) {
            debug_assert_eq!(handover.term, term, "one term at a time");
            let result = if loss == Loss::HandedOver { Ok(()) } else { Err(TransferError::NotLeader) };
            let _ = handover.reply.send(result);
        }
    }
}
