//! Requests of operators under way: those of this process, those that it passes on as a member, and
//! those that are for a leader here. See [`crate::operator_request`] for how they travel and why
//! each is done at most once.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::strong::{Holder, Term};
use tenure_proto::{Elects, GroupId, Incarnation, LocalTime, NodeId};
use tokio::sync::oneshot;

use super::Driver;
use super::questions::later;
use crate::chance;
use crate::config::Key;
use crate::error::AskError;
use crate::name::{GroupName, NodeName};
use crate::operator_request::{Claim, Fulfilled, Note, OperatorRequest, Reply};
use crate::seal::KeyKind;
use crate::wire::{Ask, Item, Order, Said, Told};

/// How long to look for a leader: several round trips, also where members are gone.
const FIND_WITHIN: Duration = Duration::from_secs(2);

/// How long a request waits for the holder of the guard to listen.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// The longest that an asker waits.
pub(crate) const LONGEST_ASK: Duration = Duration::from_secs(60);

/// How long requests and the ways of their answers are remembered: longer than anybody repeats
/// them.
const REMEMBERED: Duration = Duration::from_secs(120);

/// The most requests that are passed on, or are remembered here, at a time.
const MOST: usize = 1000;

/// A request of this process.
pub(crate) struct AskOrder {
    pub(crate) group: GroupName,
    pub(crate) request: OperatorRequest,
    pub(crate) within: Duration,
    pub(crate) reply: oneshot::Sender<Result<Fulfilled, AskError>>,
}

struct Asking {
    order: AskOrder,
    /// Whom it is for, once that is known.
    meant: Option<(Holder, Term)>,
    /// Which member is asked next.
    turn: usize,
    again: LocalTime,
    find_by: LocalTime,
    deadline: LocalTime,
}

/// A request that this member passes on.
struct Passed {
    asker: NodeId,
    leader: NodeId,
    until: LocalTime,
}

/// A request for a leader here.
struct Taken {
    /// Where the answer goes: from where the newest copy came.
    from: NodeId,
    group: GroupId,
    term: Term,
    claim: Claim,
    /// When it must have been heard; `None` once it was.
    heard_by: Option<LocalTime>,
    until: LocalTime,
    said: Option<Said>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct OperatorRequests {
    asking: BTreeMap<u128, Asking>,
    passed: BTreeMap<u128, Passed>,
    taken: BTreeMap<u128, Taken>,
    /// Those who wait for a while to pass.
    resting: Vec<(LocalTime, oneshot::Sender<()>)>,
}

impl OperatorRequests {
    pub(crate) fn next_wake(&self) -> Option<LocalTime> {
        let asking = self.asking.values().map(|asking| asking.again.min(asking.deadline));
        let unheard = self.taken.values().filter_map(|taken| taken.heard_by);
        asking.chain(unheard).chain(self.resting.iter().map(|(at, _)| *at)).min()
    }

    /// Forgets what nobody will ask for again. Says whether there is room for more.
    fn tidy(&mut self, now: LocalTime) -> bool {
        self.passed.retain(|_, passed| now < passed.until);
        self.taken.retain(|_, taken| now < taken.until);
        self.passed.len() < MOST && self.taken.len() < MOST
    }
}

impl Driver {
    /// Somebody here has a request.
    pub(super) fn on_ask_order(&mut self, order: AskOrder) {
        let may = match &self.config.key {
            Key::Cluster(_) => true,
            Key::Scoped(key) => key.kind() == KeyKind::Operator,
        };
        if !may {
            let _ = order.reply.send(Err(AskError::NotAllowed));
            return;
        }
        let now = self.now();
        let deadline = later(now, order.within.min(LONGEST_ASK));
        let find_by = later(now, FIND_WITHIN).min(deadline);
        let asking = Asking { order, meant: None, turn: 0, again: now, find_by, deadline };
        let id = chance::wide();
        self.operator_requests.asking.insert(id, asking);
        self.ask(id, now);
    }

    /// Somebody here wants to be woken after a while, whatever executor it runs under.
    pub(super) fn on_rest(&mut self, length: Duration, reply: oneshot::Sender<()>) {
        let at = later(self.now(), length);
        self.operator_requests.resting.push((at, reply));
    }

    /// Asks again, gives up what took too long, and tells that nobody listens.
    pub(super) fn on_request_time(&mut self, now: LocalTime) {
        let due = |at: LocalTime| at <= now;
        for (_, reply) in self.operator_requests.resting.extract_if(.., |(at, _)| due(*at)) {
            let _ = reply.send(());
        }
        let asking: Vec<u128> = self.operator_requests.asking.keys().copied().collect();
        for id in asking {
            let Some(asking) = self.operator_requests.asking.get(&id) else { continue };
            if due(asking.deadline) || asking.meant.is_none() && due(asking.find_by) {
                self.give_up(id);
            } else if due(asking.again) {
                self.ask(id, now);
            }
        }
        let unheard =
            self.operator_requests.taken.iter().filter(|(_, taken)| taken.heard_by.is_some_and(due));
        let unheard: Vec<u128> = unheard.map(|(id, _)| *id).collect();
        for id in unheard {
            let Some(taken) = self.operator_requests.taken.get_mut(&id) else { continue };
            taken.heard_by = None;
            if taken.claim.withdraw() {
                self.settle_request(id, Said::Of(Reply::NotListening));
            } // Else it was heard: its answer is the holder's.
        }
    }

    /// A term is over: a holder that has heard of a request still answers, and nobody else will
    /// hear of it.
    pub(super) fn on_term_over(&mut self, group: GroupId, term: Term) {
        let of_term = |taken: &Taken| taken.said.is_none() && (taken.group, taken.term) == (group, term);
        let unheard =
            self.operator_requests.taken.iter().filter(|(_, taken)| of_term(taken) && taken.claim.withdraw());
        let unheard: Vec<u128> = unheard.map(|(id, _)| *id).collect();
        for id in unheard {
            self.settle_request(id, Said::NotLeading { term, same_life: true });
        }
    }

    /// The holder of a guard has answered, or nobody will.
    pub(super) fn settle_request(&mut self, id: u128, said: Said) {
        let Some(taken) = self.operator_requests.taken.get_mut(&id).filter(|taken| taken.said.is_none())
        else {
            return;
        };
        (taken.said, taken.heard_by) = (Some(said.clone()), None);
        let to = taken.from;
        self.tell(to, id, said);
    }

    /// Asks who leads, or the one that is meant, by the way that is open.
    fn ask(&mut self, id: u128, now: LocalTime) {
        let (me, retry) = (self.me, self.config.retry() * 4);
        let others: Vec<NodeId> = self.members().into_iter().filter(|member| *member != me).collect();
        let Some(asking) = self.operator_requests.asking.get_mut(&id) else { return };
        asking.again = later(now, retry);
        let turn = asking.turn;
        asking.turn += 1;
        let request = &asking.order.request;
        let order = asking.meant.map(|(leader, term)| Order { leader, term, request: request.clone() });
        let meant = order.as_ref().map(|order| order.leader.node);
        let sessions = &self.net.sessions;
        let to = match meant {
            Some(leader) if leader == me || sessions.has_session(leader) => leader,
            // This process itself first: it may lead, or know who does.
            None if turn == 0 => me,
            _ => others.get(turn % others.len().max(1)).copied().unwrap_or(me),
        };
        let ask = Ask { id, group: asking.order.group.clone(), order };
        if to == me {
            self.on_ask(me, true, ask);
        } else {
            self.net.send(to, &Item::Ask(ask));
        }
    }

    /// Somebody asks who leads, or has a request.
    pub(super) fn on_ask(&mut self, from: NodeId, may: bool, ask: Ask) {
        let now = self.now();
        if !may {
            self.tally.out_of_scope += 1;
            return self.tell(from, ask.id, Said::Of(Reply::NotAllowed));
        }
        let room = self.operator_requests.tidy(now);
        let Some(order) = ask.order.clone() else {
            let said = self.locate(ask.group.id(), now);
            return self.tell(from, ask.id, said);
        };
        let leader = order.leader.node;
        if leader == self.me {
            return self.on_order(from, (ask.id, &ask.group), order, now);
        }
        if !self.config.role.grants() || !self.net.sessions.has_session(leader) || !room || from == self.me {
            return self.tell(from, ask.id, Said::Nowhere);
        }
        let until = later(now, REMEMBERED);
        self.operator_requests.passed.insert(ask.id, Passed { asker: from, leader, until });
        self.net.send(leader, &Item::Ask(ask));
    }

    /// The leader, as far as is known here: this process, or the one that it supports.
    fn locate(&self, group: GroupId, now: LocalTime) -> Said {
        let Some(machine) = &self.machine else { return Said::Nowhere };
        let own = machine.leadership(group, now).and_then(|_| self.campaigns.term_of(group));
        if let Some(term) = own {
            return Said::There { leader: self.holder(), term };
        }
        let grant = machine.grant(group).filter(|grant| now < grant.until);
        grant.map_or(Said::Nowhere, |grant| Said::There { leader: grant.holder, term: grant.term })
    }

    /// This life of this process.
    fn holder(&self) -> Holder {
        Holder { node: self.me, incarnation: Incarnation(self.incarnation) }
    }

    /// A request for this very process. A copy of one that it knows changes nothing.
    fn on_order(&mut self, from: NodeId, (id, group): (u128, &GroupName), order: Order, now: LocalTime) {
        if let Some(taken) = self.operator_requests.taken.get_mut(&id) {
            taken.from = from;
            if let Some(said) = taken.said.clone() {
                self.tell(from, id, said);
            }
            return;
        }
        let (group, term) = (group.id(), order.term);
        let same_life = order.leader == self.holder();
        let leads = self.machine.as_ref().is_some_and(|machine| machine.leadership(group, now).is_some());
        let claim = Claim::default();
        let note = Note { id, request: order.request, claim: claim.clone() };
        if !same_life
            || !leads
            || self.operator_requests.taken.len() >= MOST
            || !self.campaigns.put(group, term, note)
        {
            return self.tell(from, id, Said::NotLeading { term, same_life });
        }
        let (heard_by, until) = (Some(later(now, HEARD_WITHIN)), later(now, REMEMBERED));
        self.operator_requests
            .taken
            .insert(id, Taken { from, group, term, claim, heard_by, until, said: None });
    }

    /// Answers, this process too.
    fn tell(&mut self, to: NodeId, id: u128, said: Said) {
        let told = Told { id, said };
        if to == self.me {
            return self.on_told(to, true, told);
        }
        if let Said::There { leader, .. } = &told.said {
            let named = self.net.addresses.contacts(std::iter::once(leader.node));
            self.net.send(to, &Item::Contacts(named));
        }
        self.net.send(to, &Item::Told(told));
    }

    /// An answer: for a request of this process, or for one that it has passed on. Believed from
    /// the one that was meant, and from holders of the cluster's key.
    pub(super) fn on_told(&mut self, from: NodeId, trusted: bool, told: Told) {
        if let Some(passed) = self.operator_requests.passed.get(&told.id) {
            if passed.leader == from {
                let asker = passed.asker;
                self.tell(asker, told.id, told.said);
            }
            return;
        }
        let now = self.now();
        let retry = self.config.retry();
        let Some(asking) = self.operator_requests.asking.get_mut(&told.id) else { return };
        let meant = asking.meant;
        if !trusted && meant.is_none_or(|(leader, _)| leader.node != from) {
            return;
        }
        match told.said {
            Said::There { leader, term } if meant.is_none() => {
                asking.meant = Some((leader, term));
                self.ask(told.id, now);
            }
            Said::There { .. } => {}
            Said::Nowhere => asking.again = asking.again.min(later(now, retry / 4)),
            Said::NotLeading { term, same_life } if meant.is_some_and(|(_, meant)| meant == term) => {
                // The one that was meant has not done it and never will: the next leader may be
                // asked. One that was restarted does not know what it did before.
                if !same_life {
                    return self.finish(told.id, Err(AskError::Timeout));
                }
                asking.meant = None;
                asking.again = later(now, retry / 2);
            }
            Said::NotLeading { .. } => {}
            Said::Of(reply) => self.on_reply(told.id, reply),
        }
    }

    fn on_reply(&mut self, id: u128, reply: Reply) {
        let meant = self.operator_requests.asking.get(&id).and_then(|asking| asking.meant);
        let result = match (reply, meant) {
            (Reply::Fulfilled { token }, Some((leader, term))) => {
                let leader =
                    self.net.name(leader.node).or_else(|| NodeName::new(&leader.node.to_string()).ok());
                leader.map(|leader| Fulfilled { leader, term, token }).ok_or(AskError::Timeout)
            }
            (Reply::Fulfilled { .. }, None) => return, // Nobody was asked yet.
            (Reply::Declined { reason }, _) => Err(AskError::Declined { reason }),
            (Reply::NotListening, _) => Err(AskError::NotListening),
            (Reply::NotAllowed, _) => Err(AskError::NotAllowed),
        };
        self.finish(id, result);
    }

    /// No leader can be found any more: what has not reached one ends with this.
    pub(super) fn fail_asks(&mut self, why: &AskError) {
        let unheard = self.operator_requests.asking.iter().filter(|(_, asking)| asking.meant.is_none());
        let unheard: Vec<u128> = unheard.map(|(id, _)| *id).collect();
        unheard.into_iter().for_each(|id| self.finish(id, Err(why.clone())));
    }

    /// It took too long: nobody was found, or the one that was found did not answer.
    fn give_up(&mut self, id: u128) {
        let Some(asking) = self.operator_requests.asking.get(&id) else { return };
        let error = match asking.meant {
            None => AskError::NoLeader { group: asking.order.group.clone() },
            Some(_) => AskError::Timeout,
        };
        self.finish(id, Err(error));
    }

    fn finish(&mut self, id: u128, result: Result<Fulfilled, AskError>) {
        if let Some(asking) = self.operator_requests.asking.remove(&id) {
            let _ = asking.order.reply.send(result);
        }
    }
}
