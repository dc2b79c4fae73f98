//! Nodes that are told what no configuration can tell them: what the kernel says of the clock,
//! other versions of the protocol, and a candidate that does not keep to its own scope. Everything
//! else is tested from outside.

mod limits;
mod lives;
mod revoking;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, Once};

use tenure_proto::Incarnation;
use tenure_proto::strong::epoch::{Charter, EpochTalk, Lineage};
use tenure_proto::strong::{GrantRequest, Holder, InstanceId, Kind};
use tenure_proto::time::Span;
use tenure_testkit::ports::free_addresses;

use super::setup::{Ends, prepare};
use super::*;
use crate::config::{ClockBound, Config, Role};
use crate::error::{AskError, Stopped};
use crate::node::Launched;
use crate::operator_request::OperatorRequest;
use crate::seal::{ClusterKey, Peer, Rights, Scope, Versions};
use crate::sys::clock::{Synchronised, synchronised};
use crate::wire::{Ask, Item, Order, Origin};
use crate::{Node, peers};

const SOON: Duration = Duration::from_secs(10);

struct Founded {
    dir: tempfile::TempDir,
    id: ClusterId,
    key: ClusterKey,
    addresses: Vec<SocketAddr>,
    names: Vec<&'static str>,
    bound: ClockBound,
}

impl Founded {
    fn new(names: &[&'static str], bound: ClockBound) -> Self {
        let founded = Self {
            dir: tempfile::tempdir().unwrap(),
            id: ClusterId::draw(),
            key: ClusterKey::generate(),
            addresses: free_addresses(names.len()),
            names: names.to_vec(),
            bound,
        };
        for index in 0..names.len() {
            Node::found(&founded.member(index), founded.id, Term(1)).unwrap();
        }
        founded
    }

    fn config(&self, name: &str, key: Key) -> Config {
        let mut config = Config::new(name, key);
        let texts: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        config.members = peers(self.names.iter().copied().zip(texts.iter().map(String::as_str)));
        config.bound = self.bound;
        if matches!(self.bound, ClockBound::Skew { .. }) {
            config.time = Clock::real();
        }
        config.memory = Some(self.dir.path().to_owned());
        config.retry = Duration::from_millis(20);
        config
    }

    fn member(&self, index: usize) -> Config {
        let name = self.names[index];
        let mut config = self.config(name, Key::Cluster(self.key.clone()));
        config.listen = vec![self.addresses[index]];
        config.store = Some(self.dir.path().join(name));
        config
    }

    async fn launch(&self, index: usize, change: impl FnOnce(&mut Checked)) -> Launched {
        let mut checked = Checked::new(&self.member(index)).unwrap();
        change(&mut checked);
        launch(checked).unwrap().await.unwrap().unwrap()
    }
}

async fn within<T>(limit: Duration, wait: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, wait).await.ok()
}

async fn stopped(launched: &Launched, limit: Duration) -> Option<Stopped> {
    let mut stopped = launched.stopped.clone();
    within(limit, async move { stopped.wait_for(Option::is_some).await.unwrap().clone().unwrap() }).await
}

async fn status(launched: &Launched) -> Status {
    let (reply, answer) = oneshot::channel();
    launched.mailbox.send(Request::Status(reply));
    Arc::unwrap_or_clone(answer.await.unwrap())
}

fn skew() -> ClockBound {
    ClockBound::Skew { bound: Duration::from_millis(10) }
}

fn drift() -> ClockBound {
    ClockBound::Drift { ppm: 100_000 }
}

#[tokio::test]
async fn a_synchronised_clock_that_nobody_keeps_stops_the_node_at_once() {
    let founded = Founded::new(&["a"], skew());
    let node = founded.launch(0, |checked| checked.calendar = || Synchronised { is: false, error: 0 }).await;
    let Some(Stopped::Clock { reason }) = stopped(&node, SOON).await else { panic!("it goes on") };
    assert!(reason.contains("nobody keeps it synchronised"), "{reason}");
}

#[tokio::test]
async fn a_synchronised_clock_whose_error_grows_stops_the_node() {
    static ERROR: AtomicU64 = AtomicU64::new(5_000_000);
    let founded = Founded::new(&["a"], skew());
    let calendar = || Synchronised { is: true, error: ERROR.load(Relaxed) };
    let node = founded.launch(0, |checked| checked.calendar = calendar).await;
    assert_eq!(stopped(&node, Duration::from_millis(600)).await, None, "half of the bound is good enough");
    ERROR.store(5_000_001, Relaxed);
    let Some(Stopped::Clock { reason }) = stopped(&node, SOON).await else { panic!("it goes on") };
    assert!(reason.contains("more than half of the bound"), "{reason}");
}

#[tokio::test]
async fn who_asks_while_the_node_stops_is_told_why_it_did() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static KEPT: Mutex<bool> = Mutex::new(true);
    let calendar = || {
        ASKED.fetch_add(1, Relaxed);
        Synchronised { is: *KEPT.lock().unwrap(), error: 0 }
    };
    let founded = Founded::new(&["a"], skew());
    let node = founded.launch(0, |checked| checked.calendar = calendar).await;
    let (prize, won) = oneshot::channel();
    {
        let mut kept = KEPT.lock().unwrap();
        let before = ASKED.load(Relaxed);
        while ASKED.load(Relaxed) == before {
            std::thread::yield_now(); // Until the node waits for the word that will stop it.
        }
        *kept = false;
        let entry = Entry { group: GroupName::new("g").unwrap(), number: 0, health: None, prize };
        node.mailbox.send(Request::Campaign(entry, None));
    }
    let told = within(SOON, won).await.expect("it waits without end");
    assert!(told.is_err(), "a node that has stopped took a request: {told:?}");
    let why = node.stopped.borrow().clone();
    assert!(matches!(why, Some(Stopped::Clock { .. })), "{why:?}");
}

#[tokio::test]
async fn it_is_this_kernel_that_is_asked() {
    let founded = Founded::new(&["a"], skew());
    let node = founded.launch(0, |_| ()).await;
    let said = synchronised();
    let good = said.is && said.error <= 5_000_000;
    let stopped = stopped(&node, Duration::from_millis(600)).await;
    assert_eq!(stopped.is_none(), good, "{said:?}, {stopped:?}");
}

static LINES: AtomicU64 = AtomicU64::new(0);

/// Counts what is said of versions.
struct Lines;

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.name() == "tenure.version"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        LINES.fetch_add(1, Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn versions_without_overlap_are_counted_and_told_once() {
    static LOG: Once = Once::new();
    LOG.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
    let founded = Founded::new(&["a", "b"], drift());
    let old = founded.launch(0, |_| ()).await;
    let new = founded.launch(1, |checked| checked.versions = Versions { oldest: 2, newest: 3 }).await;
    let (prize, _won) = oneshot::channel();
    let group = GroupName::new("jobs").unwrap();
    old.mailbox.send(Request::Campaign(Entry { group, number: 1, health: None, prize }, None));
    for node in [&old, &new] {
        // More than once, so that what is told once could have been told again.
        let refused = async {
            loop {
                let counters = status(node).await.sessions;
                assert_eq!((counters.accepted, counters.begun), (0, 0));
                if counters.refused().any(|(name, count)| name == "versions" && count > 2) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(SOON, refused).await.expect("both refuse");
    }
    let lines = LINES.load(Relaxed);
    assert!((1..=2).contains(&lines), "each says it once: {lines}");
}

#[tokio::test]
async fn a_candidate_that_oversteps_its_scope_is_refused_by_the_grantors() {
    let founded = Founded::new(&["a"], drift());
    let grantor = founded.launch(0, |_| ()).await;
    let (name, scope) = (NodeName::new("app").unwrap(), Scope::new("app/*").unwrap());
    let own = Key::Scoped(founded.key.candidate(founded.id, name, scope));
    let mut config = founded.config("app", own);
    config.role = Role::Candidate;
    let (mut driver, ends, launched) = prepare(Checked::new(&config).unwrap()).unwrap();
    // It believes that it may do everything; its sessions are still those of its key.
    driver.config.key = Key::Cluster(founded.key.clone());
    let Ends { requests, notices, bulk } = ends;
    let campaign = |group: &str, number| {
        let (prize, won) = oneshot::channel();
        let group = GroupName::new(group).unwrap();
        launched.mailbox.send(Request::Campaign(Entry { group, number, health: None, prize }, None));
        won
    };
    let attack = async {
        let guard = within(SOON, campaign("app/main", 1)).await.unwrap().unwrap();
        assert!(guard.unwrap().is_leader(), "what is in its scope");
        assert!(within(Duration::from_millis(500), campaign("jobs", 2)).await.is_none(), "what is not");
    };
    tokio::select! {
        _ = driver.run(requests, notices, bulk) => panic!("it goes on"),
        () = attack => {}
    }
    assert!(status(&grantor).await.tally.out_of_scope > 0);
}

/// A process that says these things to a member as soon as it can, and goes on until `until` is
/// over.
async fn says<T>(founded: &Founded, name: &str, items: &[Item], until: impl Future<Output = T>) -> T {
    let mut config = founded.config(name, Key::Cluster(founded.key.clone()));
    (config.role, config.cluster) = (Role::Observer, Some(founded.id));
    speaks(&config, founded, |_| items.to_vec(), until).await
}

/// The same, by any configuration, of what the process would say in its life.
async fn speaks<T>(
    config: &Config,
    founded: &Founded,
    items: impl FnOnce(Holder) -> Vec<Item>,
    until: impl Future<Output = T>,
) -> T {
    let (mut driver, ends, _launched) = prepare(Checked::new(config).unwrap()).unwrap();
    let member = NodeName::new(founded.names[0]).unwrap().id();
    let life = Holder { node: driver.me, incarnation: Incarnation(driver.incarnation) };
    items(life).iter().for_each(|item| driver.net.send(member, item));
    let Ends { requests, notices, bulk } = ends;
    tokio::select! {
        _ = driver.run(requests, notices, bulk) => panic!("it goes on"),
        result = until => result,
    }
}

#[tokio::test]
async fn copies_of_a_request_are_done_once_and_those_for_another_term_never() {
    let founded = Founded::new(&["a"], drift());
    let leader = founded.launch(0, |_| ()).await;
    let (prize, won) = oneshot::channel();
    let group = GroupName::new("jobs").unwrap();
    leader
        .mailbox
        .send(Request::Campaign(Entry { group: group.clone(), number: 1, health: None, prize }, None));
    let guard = within(SOON, won).await.unwrap().unwrap().unwrap();
    let incarnation = Incarnation(status(&leader).await.incarnation);
    let holder = Holder { node: NodeName::new("a").unwrap().id(), incarnation };
    let copy = |id, leader, term| {
        let request = OperatorRequest::Proclaim { body: vec![1] };
        Item::Ask(Ask { id, group: group.clone(), order: Some(Order { leader, term, request }) })
    };
    let (ours, other_life) = (guard.term(), Holder { incarnation: Incarnation(0), ..holder });
    let (other_term, nobody) = (Term(ours.0 - 1), Duration::from_millis(300));
    let request = copy(7, holder, ours);
    let (first, second) = (vec![request.clone(), request.clone(), request.clone()], vec![request]);
    let done = says(&founded, "op1", &first, async {
        let asked = within(SOON, guard.asked()).await.unwrap();
        asked.fulfil_as(guard.proclaim(&[1]).unwrap());
        within(nobody, guard.asked()).await.is_none()
    });
    assert!(done.await, "its copies are not heard");
    let sent = status(&leader).await.traffic.datagrams_sent;
    let again = says(&founded, "op2", &second, within(nobody, guard.asked()));
    assert!(again.await.is_none(), "nor is one from elsewhere, after the answer");
    assert!(status(&leader).await.traffic.datagrams_sent > sent, "but it is answered");
    let late = [copy(8, holder, other_term), copy(9, other_life, ours)];
    assert!(says(&founded, "op3", &late, within(nobody, guard.asked())).await.is_none());
    assert_eq!(guard.edict().unwrap().number, 2, "one edict was made for all of them");
}

#[tokio::test]
async fn a_candidate_that_asks_of_leaders_what_it_may_not_is_refused_by_the_members() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let (name, scope) = (NodeName::new("app").unwrap(), Scope::new("*").unwrap());
    let mut config = founded.config("app", Key::Scoped(founded.key.candidate(founded.id, name, scope)));
    config.role = Role::Candidate;
    let (mut driver, ends, launched) = prepare(Checked::new(&config).unwrap()).unwrap();
    // It believes that it may do everything; its sessions are still those of its key.
    driver.config.key = Key::Cluster(founded.key.clone());
    let Ends { requests, notices, bulk } = ends;
    let (reply, answer) = oneshot::channel();
    let group = GroupName::new("jobs").unwrap();
    launched.mailbox.send(Request::Ask(AskOrder {
        group,
        request: OperatorRequest::Resign,
        within: SOON,
        reply,
    }));
    let refused = tokio::select! {
        _ = driver.run(requests, notices, bulk) => panic!("it goes on"),
        answer = within(SOON, answer) => answer.unwrap().unwrap(),
    };
    assert_eq!(refused, Err(AskError::NotAllowed));
    assert!(status(&member).await.tally.out_of_scope > 0);
}

fn candidate() -> Rights {
    Rights::Candidate(Scope::new("*").unwrap())
}

impl Driver {
    fn hears(&mut self, from: &Peer, items: &[Item]) {
        let bytes: Vec<u8> = items.iter().flat_map(|item| crate::wire::encode(item).unwrap()).collect();
        let now = self.clock.read();
        self.on_items(from, &bytes, now);
    }

    fn goes_by(&self) -> std::sync::Arc<Charter> {
        self.machine.as_ref().unwrap().charter().clone()
    }

    fn is_split(&self) -> bool {
        self.machine.as_ref().unwrap().split_brain().is_some()
    }
}

#[tokio::test]
async fn a_scoped_key_cannot_make_a_member_stop_for_a_foreign_charter() {
    let founded = Founded::new(&["a", "b", "c"], drift());
    let (mut driver, _ends, _) = prepare(Checked::new(&founded.member(0)).unwrap()).unwrap();
    let foreign = Charter::founded(Lineage::founding(7), driver.goes_by().body.clone());
    let decided = Message::Epoch(EpochTalk::Decided(foreign.clone()));
    let goes_by = Message::Epoch(EpochTalk::GoesBy(foreign.id()));
    let items = [
        Item::Origin(Origin { goes_by: Some(foreign.id()), store: None, start: 0, echo: None }),
        Item::Charter(foreign),
        Item::Machine { group: None, message: decided },
        Item::Machine { group: None, message: goes_by },
    ];
    for item in items {
        driver.hears(&Peer::proved("app", candidate(), 9), std::slice::from_ref(&item));
        assert!(!driver.is_split(), "{item:?}");
        let founded = Founded::new(&["a", "b", "c"], drift());
        let (mut other, _ends, _) = prepare(Checked::new(&founded.member(0)).unwrap()).unwrap();
        other.hears(&Peer::proved("c", Rights::Member, 9), std::slice::from_ref(&item));
        assert!(other.is_split(), "under the cluster's key it counts: {item:?}");
    }
}

#[tokio::test]
async fn nothing_that_a_member_says_counts_before_its_origin_is_known() {
    let founded = Founded::new(&["a", "b", "c"], drift());
    let (mut driver, _ends, _) = prepare(Checked::new(&founded.member(0)).unwrap()).unwrap();
    let (group, b) = (GroupName::new("jobs").unwrap(), Peer::proved("b", Rights::Member, 3));
    let holder = Holder { node: b.id, incarnation: Incarnation(3) };
    let request = GrantRequest {
        group: group.id(),
        epoch: driver.goes_by().epoch,
        id: InstanceId { holder, seq: 1 },
        start: LocalTime::ZERO,
        lease: Span::from_millis(1000),
        kind: Kind::Acquire,
        term: Term(1000),
    };
    let ask = Item::Machine { group: Some(group.clone()), message: Message::Request(request) };
    let granted = |driver: &Driver| driver.machine.as_ref().unwrap().grant(group.id()).is_some();
    driver.hears(&b, std::slice::from_ref(&ask));
    assert!(!granted(&driver));
    let origin =
        Item::Origin(Origin { goes_by: Some(driver.goes_by().id()), store: None, start: 0, echo: None });
    driver.hears(&Peer::proved("b", Rights::Member, 2), std::slice::from_ref(&origin));
    driver.hears(&b, std::slice::from_ref(&ask));
    assert!(!granted(&driver), "that was another life");
    driver.hears(&b, &[ask, origin]);
    assert!(granted(&driver), "wherever in the packet it is");
}
