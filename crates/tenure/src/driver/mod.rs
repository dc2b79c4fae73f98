//! The driver: one thread that connects the machine to sockets, clock, disk and users. It decides
//! nothing.
//!
//! ```text
//!   wait for  a datagram · a request of a handle · a deadline · a durable record
//!   read the clock       after the input was taken from its queue: a cached reading would date a promise too early
//!   one step             the machine answers with effects, in order
//!   carry them out       persist: to the writer's thread   remember: to the mapped page   publish: E, handles, trace
//!                        send: to the outbox, or wait for the record it rests on
//!   flush                what may leave, leaves
//! ```
//!
//! It is a thread of the operating system with a runtime of its own: a blocking call in a user's
//! task cannot starve renewals. Nothing here waits for a disk, a name server or a user.
//!
//! | file | holds |
//! |---|---|
//! | `step` | the machine, its effects, and what is published |
//! | `inbound` | who may say what |
//! | `campaigns` | campaigns and the terms that are led here |
//! | `observers`, `watches` | observers: what they are told, and how many there may be |
//! | `registry` | the groups that are known, what a key may cost, what is forgotten |
//! | `questions` | verifications and hand-overs under way |
//! | `operator_requests` | what others ask of leaders |
//! | `standbys` | the candidates that wait |
//! | `revoking`, `refused` | keys that are revoked or expire: by this node, and its own |
//! | `kin` | whether a peer is of this very cluster |
//! | `change` | changes of members under way |
//! | `chronicle` | which process leads elsewhere, for the log |
//! | `hosted`, `eventual`, `local` | machines beside the strong one: eventual and local groups |
//! | `status` | how this node is, for those who ask |
//! | `terms` | how high terms are, and what an operator should know of it in time |
//! | `measuring` | what leaders that are no members have counted |
//! | `net`, `addresses`, `outbox` | sessions, addresses, pacing |
//! | `persistence` | store and memory |

mod addresses;
mod campaigns;
mod change;
mod chronicle;
mod eventual;
mod hosted;
mod inbound;
mod kin;
mod local;
mod measuring;
mod net;
mod observers;
mod operator_requests;
mod outbox;
mod persistence;
mod questions;
mod refused;
mod registry;
mod revoking;
mod setup;
mod standbys;
mod status;
mod step;
mod terms;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::strong::{Command, Message, Term, Token};
use tenure_proto::{Effect, GroupId, Input, LocalTime, NodeId, Protocol, Ticket};
use tokio::sync::{mpsc, oneshot, watch};

use crate::Machine;
use crate::board::Board;
use crate::clock::Clock;
use crate::config::{Checked, Key};
use crate::error::{CampaignError, Stopped, TransferError};
use crate::guard::Loss;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::node::RevokedKey;
use crate::observe::{Answer, Scene};
use crate::operator_request::Reply;
use crate::seal::Credentials;
use crate::socket::Bulk;
use crate::status::Status;
use crate::steady::{SharedSteady, Steady};
use crate::store::Durable;
use crate::tally::Tally;
use crate::timing::Stopwatch;
use crate::trace::Trace;
use crate::watchdog::Watchdog;
use crate::wire::Said;
use campaigns::Campaigns;
pub(crate) use campaigns::Entry;
pub(crate) use change::ChangeOrder;
use chronicle::Chronicle;
use eventual::EventualGroups;
pub(crate) use eventual::EventualOrder;
pub(crate) use hosted::{Hosted, Outcome};
use kin::Kin;
use local::LocalGroups;
pub(crate) use local::LocalOrder;
use measuring::Measuring;
pub use net::Traffic;
use net::{Net, Opened};
use observers::Observers;
use operator_requests::OperatorRequests;
pub(crate) use operator_requests::{AskOrder, LONGEST_ASK};
use persistence::Persistence;
use questions::Questions;
pub(crate) use questions::VerifyOrder;
use refused::Refused;
use registry::{By, For, Registry};
pub(crate) use revoking::RevokeOrder;
use revoking::Revoking;
#[cfg(any(test, feature = "test-util"))]
pub(crate) use setup::launch_here;
pub(crate) use setup::{credentials, launch};
use step::Chance;
pub(crate) use step::Os;
use terms::Terms;

/// How many datagrams are taken before deadlines and users are looked at again.
const BATCH: usize = 256;

/// For how long they are taken, in nanoseconds: some are more work than others.
const ENOUGH: u64 = 2_000_000;

/// When to write down again what could not be written, for somebody was reading, in nanoseconds.
const SHOW_AGAIN: u64 = 5_000_000;

/// How long a node that shuts down tries to get its releases out.
const FAREWELL: Duration = Duration::from_millis(500);

/// A request of a handle to the driver.
pub(crate) enum Request {
    /// Lead this group.
    Campaign(Entry, Option<u8>),
    /// Ask for terms above this.
    Raise { group: GroupName, above: Term },
    /// An operator confirms that terms may be as high as this.
    Confirm(Term),
    /// A campaign's future was dropped.
    Withdraw { group: GroupId, number: u64 },
    /// A guard has resigned; other clones may be left.
    StandDown { group: GroupId, term: Term },
    /// The last clone of a guard is gone.
    Gone { group: GroupId, term: Term },
    /// Hand over.
    Transfer { group: GroupId, term: Term, to: NodeName, reply: oneshot::Sender<Result<(), TransferError>> },
    /// Ask whether a process is ready to take over.
    StandBy { group: GroupId, term: Term, to: NodeName, reply: oneshot::Sender<Result<(), TransferError>> },
    /// The processes that stand by for a group.
    Candidates { group: GroupId, reply: oneshot::Sender<Vec<NodeName>> },
    /// Tell observers.
    Proclaim { group: GroupId, token: Token, body: Vec<u8> },
    /// Watch a group.
    Observe { group: GroupName, reply: oneshot::Sender<watch::Receiver<Scene>> },
    /// Ask the members who leads a group that is watched.
    Look { group: GroupId, reply: oneshot::Sender<Answer> },
    /// Watch it no more.
    Unobserve { group: GroupId },
    /// Take part in an eventual group, and show the opinion.
    Eventual(EventualOrder),
    /// Take part in a local group.
    Local(LocalOrder),
    /// Lead a local group no more.
    ResignLocal { group: GroupId },
    /// Ask the leader.
    Verify(VerifyOrder),
    /// Have a leader do something.
    Ask(AskOrder),
    /// The answer to a request that a leader here was asked for.
    Answer { id: u128, reply: Reply },
    /// Answer after a lease has passed.
    Rest(oneshot::Sender<()>),
    /// Change the members.
    Change(ChangeOrder),
    /// Go on after a split brain: says whether there was one.
    AcceptLineage(oneshot::Sender<bool>),
    /// How is this node?
    Status(oneshot::Sender<Arc<Status>>),
    /// Speak and accept other keys.
    Keys(Box<Credentials>),
    /// Revoke a key.
    Revoke(RevokeOrder),
    /// Which keys are revoked?
    RevokedKeys(oneshot::Sender<Vec<RevokedKey>>),
    /// Give everything back and end.
    Shutdown(oneshot::Sender<()>),
    /// The last handle of the node is gone: end.
    Dropped,
}

impl Request {
    /// The group that a later report may be about.
    fn group(&self) -> Option<GroupId> {
        match self {
            Self::Campaign(entry, _) => Some(entry.group.id()),
            Self::Withdraw { group, .. }
            | Self::StandDown { group, .. }
            | Self::Gone { group, .. }
            | Self::Proclaim { group, .. }
            | Self::Unobserve { group } => Some(*group),
            _ => None,
        }
    }
}

/// The way to the driver, from any thread and any executor. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox(pub(crate) mpsc::UnboundedSender<Request>);

impl Mailbox {
    /// If the driver has ended nobody will answer: a caller that waits for an answer finds out.
    pub(crate) fn send(&self, request: Request) {
        let _ = self.0.send(request);
    }
}

/// A message from a helper of the driver.
pub(crate) enum Notice {
    /// The writer's thread has written, or has failed.
    Durable(Durable),
    /// A name was looked up.
    Resolved(NodeId, Vec<SocketAddr>),
    /// The file of revoked keys is written, with this date in it, or could not be.
    RevokedKept(Result<Option<u64>, String>),
}

/// The running node.
pub(crate) struct Driver {
    me: NodeId,
    name: NodeName,
    cluster: ClusterId,
    /// This life of the process.
    incarnation: u128,
    config: Checked,
    clock: Clock,
    /// The conditions under which readings of the clock belong together.
    steady: Steady,
    /// The same, for handles that have no term.
    shared: SharedSteady,
    /// The reading of the last turn.
    turned: LocalTime,
    machine: Option<Machine>,
    chance: Chance,
    tickets: Ticket,
    effects: Vec<Effect<Machine>>,
    /// Messages of this process to itself.
    loopback: VecDeque<Message>,
    /// Commands that follow from published events.
    orders: VecDeque<Command>,
    /// Sends that wait for a record.
    waiting: BTreeMap<Ticket, Vec<(NodeId, Message)>>,
    registry: Registry,
    /// The board of groups, and the groups to write there anew or to remove.
    board: Arc<Board>,
    dirty: BTreeSet<GroupId>,
    erased: Vec<GroupName>,
    /// Callers that ask how this node is, and when to look.
    askers: Vec<oneshot::Sender<Arc<Status>>>,
    status_at: LocalTime,
    /// Which members know too many groups of this node's key to know one that it campaigns for.
    over_limit: BTreeMap<GroupId, BTreeSet<NodeId>>,
    net: Net,
    persistence: Persistence,
    campaigns: Campaigns,
    observers: Observers,
    questions: Questions,
    kin: Kin,
    eventual: EventualGroups,
    local: LocalGroups,
    operator_requests: OperatorRequests,
    standbys: standbys::Standbys,
    refused: Refused,
    revoking: Revoking,
    /// How many messages went by a detour.
    detours: usize,
    trace: Option<Trace>,
    tally: Tally,
    measuring: Measuring,
    chronicle: Chronicle,
    terms: Terms,
    stopwatch: Stopwatch,
    watchdog: Watchdog,
    /// The inputs for the next start of a machine, until it has started.
    setup: Option<setup::Pending>,
    ready: watch::Sender<bool>,
    stopped: watch::Sender<Option<Stopped>>,
    farewell: Option<Farewell>,
}

/// Why a node ends that could go on.
enum Farewell {
    /// Somebody asked for it, and waits.
    Asked(oneshot::Sender<()>),
    /// Nobody has a handle of it any more.
    Dropped,
}

impl Driver {
    /// Runs until the node is shut down or must stop. Says whom to tell when everything is given
    /// back.
    pub(crate) async fn run(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        mut notices: mpsc::UnboundedReceiver<Notice>,
        mut bulk: Bulk,
    ) -> Option<oneshot::Sender<()>> {
        let mut buffer = vec![0; 1 << 16];
        self.begin();
        while self.goes_on() {
            self.turn();
            if !self.goes_on() {
                break;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                Some(notice) = notices.recv() => self.on_notice(notice),
                request = requests.recv() => match request {
                    Some(request) => self.on_request(request),
                    None => break,
                },
                () = self.net.sockets.readable() => self.receive(&mut buffer),
                Some(packet) = bulk.recv() => self.on_bulk(packet),
                () = pause(nap) => self.net.has_heard_all(self.clock.read()),
            }
            // A flood of datagrams, which come first, does not keep the others waiting.
            if let Ok(packet) = bulk.try_recv() {
                self.on_bulk(packet);
            }
            while self.goes_on()
                && let Ok(request) = requests.try_recv()
            {
                self.on_request(request);
            }
        }
        self.end().await;
        match self.farewell.take() {
            Some(Farewell::Asked(reply)) => Some(reply),
            Some(Farewell::Dropped) | None => None,
        }
    }

    /// Whether there is a next turn. A node that has stopped takes no request any more: the handle
    /// tells a caller that waits for an answer why.
    fn goes_on(&self) -> bool {
        self.farewell.is_none() && self.stopped.borrow().is_none()
    }

    /// Everything that time brings, then all that may leave, leaves.
    fn turn(&mut self) {
        self.notice_disturbance();
        let now = self.clock.read();
        self.on_time(now);
        self.settle();
        if self.stopped.borrow().is_some() {
            return; // It must not say any more what it would say now.
        }
        let now = self.clock.read();
        if let (Some(machine), true) = (&self.machine, self.observers.has_news()) {
            let net = &self.net;
            let quorums = &machine.charter().body.quorums;
            self.observers.show(quorums, now, |node| net.name(node), |node| net.sessions.address(node));
        }
        self.net.flush(now);
        self.tell_ready(now);
        self.show_groups();
        self.tell_status(now);
    }

    /// How long nothing needs to be done, as far as is known. A hint: the driver looks at the clock
    /// when it wakes.
    fn nap(&self) -> Duration {
        let now = self.clock.read();
        let deadlines = [
            self.machine.as_ref().and_then(Protocol::next_deadline),
            // Looks for members and for leaders that lapsed ride on this one: four times a second.
            self.machine.as_ref().map(|_| self.watchdog.next_wake()),
            self.campaigns.next_check(),
            self.observers.next_wake(),
            self.questions.next_wake(),
            self.eventual.next_wake(),
            self.local.next_wake(),
            self.operator_requests.next_wake(),
            self.revoking.next_wake(),
            self.net.next_wake(now),
            self.machine.as_ref().map(|_| self.kin.tell_at),
            self.setup.as_ref().map(|pending| pending.ask_at),
            self.registry.next_wake(),
            (!self.dirty.is_empty()).then(|| LocalTime::from_nanos(now.as_nanos() + SHOW_AGAIN)),
            (!self.askers.is_empty()).then_some(self.status_at),
        ];
        let next = deadlines.into_iter().flatten().min();
        let left = next.map_or(Duration::MAX, |at| Duration::from_nanos(at.remaining(now).as_nanos()));
        left.min(self.clock.longest_nap())
    }

    /// Takes what has come, but not so much that deadlines are missed.
    fn receive(&mut self, buffer: &mut [u8]) {
        let enough = LocalTime::from_nanos(self.clock.read().as_nanos().saturating_add(ENOUGH));
        for _ in 0..BATCH {
            let Some((length, from)) = self.net.sockets.receive(buffer) else {
                return self.net.has_heard_all(self.clock.read());
            };
            self.on_packet(&mut buffer[..length], from);
            if self.clock.read() >= enough {
                return;
            }
        }
    }

    fn on_packet(&mut self, packet: &mut [u8], from: SocketAddr) {
        self.notice_disturbance();
        let received = self.clock.read();
        match self.net.open(packet, from, received) {
            Opened::Items(peer, bytes) => self.on_items(&peer, bytes, received),
            Opened::Session(peer) => {
                self.refused.is_taken_by(peer.id);
                if peer.rights.is_cluster() {
                    self.observers.on_session(peer.id, peer.boot, received);
                }
                self.introduce_self(&peer);
            }
            Opened::KeyRefused(by, why) => self.on_key_refused(by, why),
            Opened::Nothing => {}
        }
    }

    fn on_bulk(&mut self, mut packet: Vec<u8>) {
        self.notice_disturbance();
        let received = self.clock.read();
        if let Opened::Items(peer, bytes) = self.net.open_bulk(&mut packet, received) {
            self.on_items(&peer, bytes, received);
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Durable(Durable::Upto(ticket)) => {
                self.persistence.durable = Some(ticket);
                let later = self.waiting.split_off(&Ticket(ticket.0 + 1));
                for (to, message) in std::mem::replace(&mut self.waiting, later).into_values().flatten() {
                    self.send(to, message);
                }
            }
            Notice::Durable(Durable::Failed(error)) => {
                self.stop(Stopped::Store { reason: error.to_string() });
            }
            Notice::Resolved(node, addresses) => self.net.addresses.resolved(node, addresses),
            Notice::RevokedKept(done) => self.on_revoked_written(done),
        }
    }

    fn on_request(&mut self, request: Request) {
        self.notice_disturbance();
        self.dirty.extend(request.group());
        match request {
            Request::Campaign(entry, priority) => self.on_campaign(entry, priority),
            Request::Raise { group, above } => self.order(Command::Raise { group: group.id(), above }),
            Request::Confirm(term) => self.order(Command::Confirm(term)),
            Request::Withdraw { group, number } => {
                let order = self.campaigns.withdraw(group, number);
                self.orders.extend(order);
            }
            Request::StandDown { group, term } => {
                let order = self.campaigns.stand_down(group, term);
                self.orders.extend(order);
            }
            Request::Gone { group, term } => {
                let order = self.campaigns.gone(group, term);
                self.orders.extend(order);
            }
            Request::Transfer { group, term, to, reply } => self.on_transfer(group, term, to, reply),
            Request::Candidates { group, reply } => drop(reply.send(self.candidates(group))),
            Request::StandBy { group, term, to, reply } => self.on_stand_by(group, term, to, reply),
            Request::Proclaim { group, token, body } => self.proclaim(group, token, Some(body)),
            Request::Observe { group, reply } => {
                let now = self.clock.read();
                let _ = self.learn_group(group.clone(), (By::Cluster, For::Question));
                let _ = reply.send(self.observers.observe(group, now));
            }
            Request::Look { group, reply } => {
                // Without a charter there are no members to ask: the answer is that nobody knows.
                if self.machine.is_some() {
                    let now = self.clock.read();
                    self.observers.ask(group, reply, now);
                }
            }
            Request::Unobserve { group } => {
                let members = self.members();
                let post = self.observers.unobserve(group, &members);
                self.post(post);
            }
            Request::Eventual(order) => self.on_eventual_order(order),
            Request::Local(order) => self.on_local_order(order),
            Request::ResignLocal { group } => self.on_resign_local(group),
            Request::Verify(order) => self.on_verify_order(order),
            Request::Ask(order) => self.on_ask_order(order),
            Request::Answer { id, reply } => self.settle_request(id, Said::Of(reply)),
            Request::Rest(reply) => self.on_rest(self.config.lease(), reply),
            Request::Change(order) => self.on_change_order(order),
            Request::AcceptLineage(reply) => self.on_accept_lineage(reply),
            Request::Status(reply) => self.askers.push(reply),
            Request::Keys(credentials) => {
                self.net.sessions.set_keyring(*credentials);
                self.refused.forget();
                self.confirm_date();
            }
            Request::Revoke(order) => self.on_revoke_order(order),
            Request::RevokedKeys(reply) => {
                let _ = reply.send(self.revoking.keys());
            }
            Request::Shutdown(reply) => self.farewell = Some(Farewell::Asked(reply)),
            Request::Dropped => self.farewell = Some(Farewell::Dropped),
        }
        self.settle();
    }

    fn on_campaign(&mut self, entry: Entry, priority: Option<u8>) {
        let (group, id) = (entry.group.clone(), entry.group.id());
        let refused = if !self.config.role.leads() {
            Some(CampaignError::NotACandidate { role: self.config.role.name() })
        } else if !self.may_lead(&group) {
            Some(CampaignError::OutOfScope { group: group.clone() })
        } else if self.is_barred(id) {
            Some(CampaignError::Barred { group: group.clone() })
        } else {
            None
        };
        if let Some(error) = refused {
            let _ = entry.prize.send(Err(error));
            return;
        }
        let _ = self.learn_group(group, (By::Cluster, For::Election));
        self.registry.note_election(id);
        self.over_limit.remove(&id);
        // A caller that saw by the clock that its lease is over may campaign again at once, before
        // any timer has told us.
        if self.campaigns.is_led(id) {
            let now = self.now();
            self.on_time(now);
        }
        if let Some(priority) = priority {
            self.orders.push_back(Command::Rank { group: id, priority });
        }
        let order = self.campaigns.enter(entry);
        self.orders.extend(order);
    }

    /// Whether the list of groups and the key of this node allow it to lead a group.
    fn may_lead(&self, group: &GroupName) -> bool {
        let listed = self.config.groups.as_ref().is_none_or(|groups| groups.contains(&group.id()));
        let scope = match &self.config.key {
            Key::Cluster(_) => true,
            Key::Scoped(key) => key.scope().is_some_and(|scope| scope.has(group)),
        };
        listed && scope
    }

    /// Those who grant, as far as is known.
    fn members(&self) -> Vec<NodeId> {
        match &self.machine {
            Some(machine) => machine.charter().members().to_vec(),
            None => self.config.contacts.iter().map(|contact| contact.name.id()).collect(),
        }
    }

    /// The node can promise nothing more: nobody leads by it from here on, and it says why.
    fn stop(&mut self, why: Stopped) {
        tracing::error!(name: "tenure.stopped", node = %self.name, reason = %why, "the node stops");
        let loss = if matches!(why, Stopped::Clock { .. }) { Loss::Clock } else { Loss::Stopped };
        // Authority ends before the node says that it has stopped, and a caller that is told of the
        // loss may ask at once why.
        self.disown();
        self.stopped.send_replace(Some(why.clone()));
        self.campaigns.close(loss, &CampaignError::Stopped(why));
    }

    /// From here on nobody leads anything by this node, of whatever kind.
    fn disown(&mut self) {
        self.campaigns.disown();
        self.eventual.disown();
        self.local.disown();
    }

    /// Gives up what is led here, and gives it back if the node may still speak.
    async fn end(&mut self) {
        if self.stopped.borrow().is_none() {
            let asked = matches!(self.farewell, Some(Farewell::Asked(_)));
            self.orders.extend(self.campaigns.leave(asked));
            self.settle();
            // The machine's last word: the exact largest term that it granted. It takes no step
            // after that.
            self.step(Input::Command(Command::Close));
            self.disown();
            self.stopped.send_replace(Some(Stopped::ShutDown));
            self.campaigns.close(Loss::Stopped, &CampaignError::Stopped(Stopped::ShutDown));
            self.tell_measures_now(self.clock.read());
            let slots = FAREWELL.as_millis();
            for _ in 0..slots {
                let now = self.clock.read();
                self.net.flush(now);
                if self.net.next_wake(now).is_none() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if let Some(trace) = &self.trace {
            trace.stop(self.clock.reading());
        }
        self.persistence.close();
    }

    /// A reading for what happens now.
    fn now(&self) -> LocalTime {
        self.clock.read()
    }
}

/// Waits, and lets the runtime look in any case whether something has come in: a driver without
/// time to wait would otherwise never hear of it.
async fn pause(nap: Duration) {
    match nap.is_zero() {
        true => tokio::task::yield_now().await,
        false => tokio::time::sleep(nap).await,
    }
}
