//! From a configuration to a running node: store, memory, sockets, machine, thread.

use std::sync::Arc;
use std::thread;

use tenure_proto::boot::BootId;
use tenure_proto::strong::epoch::{Charter, EpochTalk};
use tenure_proto::strong::{Cell, Message};
use tenure_proto::time::LocalSpan;
use tenure_proto::trace::{Life, Start};
use tenure_proto::{Boot, BootKind, Context, Incarnation, Input, LocalTime, NodeId, Protocol, Ticket};
use tokio::sync::{mpsc, oneshot, watch};

use super::addresses::Addresses;
use super::campaigns::Campaigns;
use super::chronicle::Chronicle;
use super::eventual::EventualGroups;
use super::kin::Kin;
use super::local::LocalGroups;
use super::measuring::Measuring;
use super::net::Net;
use super::observers::Observers;
use super::operator_requests::OperatorRequests;
use super::persistence::Persistence;
use super::questions::Questions;
use super::refused::Refused;
use super::registry::{By, For, Registry};
use super::revoking::Revoking;
use super::standbys::Standbys;
use super::step::Chance;
use super::terms::Terms;
use super::{Driver, Mailbox, Notice, Request};
use crate::board::Board;
use crate::clock::nanos;
use crate::config::{Checked, Key, comes_from};
use crate::contact::Contact;
use crate::error::{StartError, Stopped};
use crate::memory::{self, Memory};
use crate::name::ClusterId;
use crate::node::Launched;
use crate::seal::{ClusterKey, Credentials, Identity, Keyring, Limits, Sessions};
use crate::socket::{ANY, ANY_V4, Bulk, Sockets};
use crate::steady::{SharedSteady, Steady};
use crate::store::{Opened, RevokedFile, Store};
use crate::tally::Tally;
#[cfg(any(test, feature = "test-util"))]
use crate::testing::Kept;
use crate::timing::Stopwatch;
use crate::trace::Trace;
use crate::vmclock::VmClock;
use crate::watchdog::Watchdog;
use crate::wire::Item;
use crate::{Machine, MachineConfig, chance};

/// The inputs of a machine that starts as soon as some member has told the charter of the cluster.
pub(super) struct Pending {
    boot: Boot<Cell>,
    pub(super) ask_at: LocalTime,
}

/// Starts the thread of a node. The answer comes when it runs, or cannot.
pub(crate) fn launch(config: Checked) -> Result<oneshot::Receiver<Result<Launched, StartError>>, StartError> {
    let (started, answer) = oneshot::channel();
    thread::Builder::new().name(format!("tenure-{}", config.name)).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error.into()))),
        };
        let farewell = runtime.block_on(async {
            match prepare(config) {
                Ok((driver, ends, launched)) => {
                    started.send(Ok(launched)).ok()?;
                    driver.run(ends.requests, ends.notices, ends.bulk).await
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                    None
                }
            }
        });
        drop(runtime); // And with it the sockets: a caller that is told of the end can listen there.
        if let Some(farewell) = farewell {
            let _ = farewell.send(());
        }
    })?;
    Ok(answer)
}

/// Runs a node of a cluster of `testing` as a task of the test's runtime, by whose time it goes.
/// Returns its life, to be polled there.
#[cfg(any(test, feature = "test-util"))]
pub(crate) fn launch_here(
    config: Checked,
) -> Result<(Launched, impl Future<Output = ()> + Send + 'static), StartError> {
    let (driver, ends, launched) = prepare(config)?;
    let life = async move {
        if let Some(farewell) = driver.run(ends.requests, ends.notices, ends.bulk).await {
            let _ = farewell.send(());
        }
    };
    Ok((launched, life))
}

/// Where the driver's inputs come in.
pub(super) struct Ends {
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
    pub(super) notices: mpsc::UnboundedReceiver<Notice>,
    pub(super) bulk: Bulk,
}

/// The remains of this process's former lives.
struct Past {
    cluster: ClusterId,
    persistence: Persistence,
    boot: Boot<Cell>,
    charter: Option<Arc<Charter>>,
    contacts: Vec<Contact>,
    revoking: Revoking,
}

pub(super) fn prepare(config: Checked) -> Result<(Driver, Ends, Launched), StartError> {
    let ((notice, notices), (request, requests)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let mailbox = Mailbox(request);
    // First of all: whatever disturbs the clock from here on is noticed in the first turn.
    let steady = watch_clock(&config);
    let mut past = recall(&config, &steady, &notice)?;
    let equipment = equip(&config, &past).inspect_err(|_| past.end_unused())?;
    let Equipment { machine, sockets, bulk, trace } = equipment;
    let addresses = sockets.addresses();
    let net = network(&config, &past, sockets, notice);
    let ((ready, is_ready), (stopped, why)) = (watch::channel(false), watch::channel(None));
    let board = Arc::new(Board::new(config.name.clone(), config.time.clone()));
    let shared = SharedSteady::new(steady.clone());
    let launched = Launched {
        mailbox: mailbox.clone(),
        addresses,
        ready: is_ready,
        stopped: why,
        board: board.clone(),
        steady: shared.clone(),
    };
    let mut driver = Driver {
        me: config.name.id(),
        name: config.name.clone(),
        cluster: past.cluster,
        incarnation: past.boot.incarnation.0,
        clock: config.time.clone(),
        steady: steady.clone(),
        shared,
        turned: LocalTime::ZERO,
        machine: None,
        chance: Chance::of(&config),
        tickets: Ticket(0),
        effects: Vec::new(),
        loopback: std::collections::VecDeque::new(),
        orders: std::collections::VecDeque::new(),
        waiting: std::collections::BTreeMap::new(),
        registry: Registry::new(config.limits),
        board,
        dirty: std::collections::BTreeSet::new(),
        erased: Vec::new(),
        askers: Vec::new(),
        status_at: LocalTime::ZERO,
        over_limit: std::collections::BTreeMap::new(),
        net,
        persistence: past.persistence,
        campaigns: Campaigns::new(steady, trace.clone(), mailbox),
        observers: Observers::new(config.limits.watches_per_key),
        questions: Questions::default(),
        kin: Kin::default(),
        eventual: EventualGroups::default(),
        local: LocalGroups::default(),
        operator_requests: OperatorRequests::default(),
        standbys: Standbys::default(),
        refused: Refused::default(),
        revoking: past.revoking,
        detours: 0,
        trace,
        tally: Tally::default(),
        measuring: Measuring::default(),
        chronicle: Chronicle::default(),
        terms: Terms::default(),
        stopwatch: Stopwatch::default(),
        watchdog: Watchdog::default(),
        setup: Some(Pending { boot: past.boot, ask_at: config.time.read() }),
        ready,
        stopped,
        farewell: None,
        config,
    };
    driver.begin_life(past.charter, machine);
    Ok((driver, Ends { requests, notices, bulk }, launched))
}

/// All that a start needs and may be refused.
struct Equipment {
    machine: Option<MachineConfig>,
    sockets: Sockets,
    bulk: Bulk,
    trace: Option<Trace>,
}

/// Checks the file against the cluster before anything is said to anybody, and takes the ports.
fn equip(config: &Checked, past: &Past) -> Result<Equipment, StartError> {
    past.charter.as_ref().map_or(Ok(()), |charter| comes_from(charter, config.lineage))?;
    let machine = past.charter.as_ref().map(|charter| config.machine(charter)).transpose()?;
    let (sockets, bulk) = open_sockets(config)?;
    let trace = open_trace(config, past.boot.incarnation)?;
    Ok(Equipment { machine, sockets, bulk, trace })
}

impl Past {
    /// The remains of former lives of a member in a cluster of `testing`. It has no folder, so it
    /// keeps no list of revoked keys.
    #[cfg(any(test, feature = "test-util"))]
    fn in_memory(kept: &Kept, steady: &Steady) -> Self {
        let (opened, life, boot) = kept.open(steady);
        let (cluster, charter, contacts) = (opened.cluster, opened.charter, opened.contacts);
        let persistence = Persistence::in_memory(opened.id, life);
        Self { cluster, persistence, boot, charter, contacts, revoking: Revoking::default() }
    }

    /// A start was refused: this life ends before it has promised anything. The memory that it
    /// found is still the last word, so it is handed on as it is to the next life, which then owes
    /// no silence. If the memory was not believed, a silence stays owed.
    fn end_unused(&mut self) {
        if matches!(self.boot.kind, BootKind::SameBoot { .. } | BootKind::Founding) {
            self.persistence.claim();
        }
        self.persistence.close();
    }
}

/// The peers that this node knows, and its sessions with them.
fn network(config: &Checked, past: &Past, sockets: Sockets, notice: mpsc::UnboundedSender<Notice>) -> Net {
    let mut addresses = Addresses::default();
    past.contacts.iter().chain(&config.contacts).for_each(|contact| addresses.learn(contact));
    addresses.learn(&Contact { name: config.name.clone(), address: config.advertise.clone() });
    let identity = identity(config, past.cluster, past.boot.incarnation.0);
    let limits = Limits { retry: LocalSpan::from_nanos(nanos(config.retry())), ..Limits::default() };
    let sessions = past.revoking.applied(Sessions::new(identity, limits, chance::bytes()));
    Net::new(config.name.id(), addresses, sessions, sockets, notice, (limits.retry, config.adapts()))
}

/// Looks at the clock, at how long the machine has slept, and at what the host of a virtual machine
/// tells.
fn watch_clock(config: &Checked) -> Steady {
    let page = config.vmclock.as_deref().and_then(|path| match VmClock::open(path) {
        Ok(page) => page.map(Arc::new),
        Err(error) => {
            tracing::warn!(name: "tenure.vmclock", node = %config.name, path = %path.display(), reason = %error, "what the host of this virtual machine tells of its clocks cannot be read");
            None
        }
    });
    Steady::begin(&config.time, page)
}

/// A member has a store and perhaps a memory; everybody else begins anew each time, under a name of
/// its own.
fn recall(
    config: &Checked,
    steady: &Steady,
    notices: &mpsc::UnboundedSender<Notice>,
) -> Result<Past, StartError> {
    let Some(dir) = config.store.as_ref().filter(|_| config.role.grants()) else {
        let cluster = match &config.key {
            Key::Scoped(key) => key.cluster(),
            Key::Cluster(_) => config.cluster.unwrap_or(ClusterId(0)),
        };
        let boot = Boot {
            incarnation: Incarnation(chance::wide()),
            durable: Vec::new(),
            kind: BootKind::Founding, // It grants nothing, ever: there is nothing to forget.
        };
        return Ok(Past {
            cluster,
            persistence: Persistence::default(),
            boot,
            charter: None,
            contacts: Vec::new(),
            revoking: Revoking::default(),
        });
    };
    #[cfg(any(test, feature = "test-util"))]
    if let Some(host) = &config.host {
        return Ok(Past::in_memory(&host.kept, steady));
    }
    let (store, opened) = Store::open(dir, &config.name, config.cluster)?;
    let revoking = Revoking::new(dir.clone(), RevokedFile::read(dir)?);
    let (memory, boot) = remember(config, steady, &opened)?;
    let persistence = Persistence::new((store, opened.id), memory, notices.clone())?;
    let (cluster, charter, contacts) = (opened.cluster, opened.charter, opened.contacts);
    Ok(Past { cluster, persistence, boot, charter, contacts, revoking })
}

/// Opens the memory, and judges by store and memory what this start may believe.
fn remember(config: &Checked, steady: &Steady, opened: &Opened) -> Result<(Memory, Boot<Cell>), StartError> {
    let path = Memory::path(config.memory.as_deref(), opened.cluster, &config.name);
    let store = opened.boot_store.clone();
    match memory::here() {
        Ok(here) => {
            let here = steady.in_boot(here);
            let (memory, found) = Memory::open(&path, opened.id, here, opened.incarnation)?;
            let removed = memory::sweep(&path, here, config.time.read());
            if removed > 0 {
                tracing::info!(name: "tenure.memories_removed", node = %config.name, removed, "removed what members that are gone had remembered");
            }
            Ok((memory, Boot::judge(store, found, here)))
        }
        Err(why) => {
            let nowhere = BootId { boot: 0, clock_offset: 0, slept: 0, marker: 0 };
            Ok((Memory::lost(why), Boot::judge(store, None, nowhere)))
        }
    }
}

/// The identity of this process in this life: its name and key.
fn identity(config: &Checked, cluster: ClusterId, boot: u128) -> Identity {
    let name = config.name.clone();
    match credentials(&config.key, &config.old_keys) {
        Credentials::Member(keys) => Identity::member(name, cluster, keys, boot, config.versions),
        Credentials::Outsider(key) => Identity::outsider(name, key, boot, config.versions),
    }
}

/// The credentials of a node, by its keys.
pub(crate) fn credentials(key: &Key, old: &[ClusterKey]) -> Credentials {
    match key {
        Key::Cluster(key) => Credentials::Member(Keyring { speak: key.clone(), accept: old.to_vec() }),
        Key::Scoped(key) => Credentials::Outsider(key.clone()),
    }
}

fn open_sockets(config: &Checked) -> Result<(Sockets, Bulk), StartError> {
    #[cfg(any(test, feature = "test-util"))]
    if let Some(host) = &config.host {
        return Ok(Sockets::in_memory(&host.network, host.address));
    }
    let open = |listen: &[_]| Sockets::open(listen, true);
    let opened = match config.listen.as_slice() {
        [] => open(&[ANY]).or_else(|_| open(&[ANY_V4])),
        listen => open(listen),
    };
    opened.map_err(|(address, error)| StartError::Listen { address, error })
}

fn open_trace(config: &Checked, incarnation: Incarnation) -> Result<Option<Trace>, StartError> {
    let Some(path) = &config.trace else { return Ok(None) };
    let trace = Trace::create(path, incarnation.0);
    trace.map(Some).map_err(|error| StartError::Trace { path: path.clone(), error })
}

impl Driver {
    /// Says good day to everybody who may have to do with this node.
    pub(super) fn begin(&mut self) {
        let now = self.now();
        let me = self.net.addresses.contacts(std::iter::once(self.me));
        for member in self.members().into_iter().filter(|member| *member != self.me) {
            self.net.greet(member, now);
            if self.config.advertise.is_some() {
                self.net.send(member, &Item::Contacts(me.clone()));
            }
        }
        self.settle();
    }

    /// Recalls what is known of other stores, and starts the machine if the charter is known.
    fn begin_life(&mut self, charter: Option<Arc<Charter>>, machine: Option<MachineConfig>) {
        if let Some(pending) = &self.setup {
            self.kin.recall(&pending.boot.durable);
        }
        if let (Some(charter), Some(machine)) = (charter, machine) {
            self.start_machine(&machine, &charter);
        }
    }

    /// Starts the machine: from here on this process takes part.
    fn start_machine(&mut self, config: &MachineConfig, charter: &Arc<Charter>) {
        let Some(Pending { boot, .. }) = self.setup.take() else { return };
        let at = self.clock.reading();
        if let Some(trace) = &self.trace {
            let life = Life { node: self.me, incarnation: boot.incarnation, cluster: self.cluster.0 };
            trace.start(at, Start { life, name: self.name.to_string(), charter: charter.clone() });
        }
        let mut effects = Vec::new();
        let mut context = Context::new(at.own, &mut self.chance, &mut self.tickets, &mut effects);
        let machine = Machine::start(config, self.me, boot, &mut context);
        for group in machine.groups() {
            let _ = self.registry.learn(group, None, (By::Cluster, For::Election), at.own);
        }
        self.machine = Some(machine);
        self.perform(&mut effects, at);
        self.persistence.claim();
        self.kin.begin(at.own);
        self.ask_origins(at.own);
        if let Some(other) = self.machine.as_ref().and_then(|machine| machine.split_brain()) {
            self.log_split_brain(other);
        }
        self.log_barred();
        if let Some(trouble) = self.persistence.trouble() {
            tracing::warn!(name: "tenure.memory", node = %self.name, "{trouble}");
        }
    }

    /// A node without a charter asks every process that it knows for one.
    pub(super) fn await_charter(&mut self, now: LocalTime) {
        let Some(pending) = self.setup.as_mut().filter(|pending| pending.ask_at <= now) else { return };
        pending.ask_at = LocalTime::from_nanos(now.as_nanos() + nanos(self.config.retry()) * 4);
        for member in self.members().into_iter().filter(|member| *member != self.me) {
            self.net.send(member, &Item::AskCharter);
        }
    }

    /// Somebody asks which charter the cluster goes by: told with the names of its members.
    pub(super) fn tell_charter(&mut self, to: NodeId) {
        let Some(machine) = &self.machine else { return };
        let charter = machine.charter().clone();
        let contacts = self.net.addresses.contacts(charter.members_and_former());
        self.net.send(to, &Item::Contacts(contacts));
        self.net.send(to, &Item::Charter(charter));
    }

    /// A member has told the charter: it is decided, or it founded the cluster. An old one is as
    /// good as a new one: a member that is asked under it tells of the newer.
    pub(super) fn on_charter(&mut self, from: NodeId, charter: &Arc<Charter>) {
        if self.machine.is_some() {
            if self.refuses_name(charter) {
                return;
            }
            let message = Message::Epoch(EpochTalk::Decided(charter.clone()));
            let received = self.now();
            return self.step(Input::Message { from, received, message });
        }
        if let Err(error) = comes_from(charter, self.config.lineage) {
            return self.refuse_lineage(from, &error);
        }
        let config = match self.config.machine(charter) {
            Ok(config) => config,
            Err(error) => return self.stop(Stopped::Config { reason: error.to_string() }),
        };
        if self.is_named_for_another(charter) {
            let name = self.name.clone();
            return self.stop(Stopped::NameTaken { name });
        }
        self.tickets.0 += 1;
        let addresses = &self.net.addresses;
        let cell = Cell::Charter(charter.clone());
        if let Some(pending) = &mut self.setup {
            tenure_proto::boot::overwrite(&mut pending.boot.durable, cell.clone());
        }
        self.persistence.persist(self.tickets, cell, |nodes| addresses.contacts(nodes.into_iter()));
        self.start_machine(&config, charter);
    }

    /// Tells the receiver of a charter the names and addresses of its members.
    pub(super) fn introduce(&mut self, to: NodeId, message: &Message) {
        let charter = match message {
            Message::Epoch(EpochTalk::Decided(charter) | EpochTalk::Accept { charter, .. }) => charter,
            Message::Epoch(EpochTalk::Promise { accepted: Some((_, charter)), .. }) => charter,
            _ => return,
        };
        let contacts = self.net.addresses.contacts(charter.members_and_former());
        self.net.send(to, &Item::Contacts(contacts));
    }
}
