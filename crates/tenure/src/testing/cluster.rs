//! [`Cluster`]: real nodes in memory and in virtual time.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::strong::Term;

use super::dice::Dice;
use super::disk::Kept;
use super::host::{Host, HostClock};
use super::network::Network;
use super::process::Process;
use crate::clock::Clock;
use crate::config::{Checked, ClockBound, Config, Key, Peer, Role};
use crate::driver;
use crate::name::{ClusterId, NodeName};
use crate::node::Node;
use crate::seal::ClusterKey;
use crate::store::Founding;
use crate::sys::clock::Synchronised;

/// A cluster in memory, for tests of programs that take a [`Node`].
///
/// The nodes are real: driver, protocol, wire format and sessions are those of production. Only
/// their surroundings are not: a network, disks and clocks in memory, and chance from a seed. A
/// node runs as a task of the test's runtime and goes by tokio's time. If that is paused
/// (`start_paused = true`), it jumps to the next thing that happens whenever all tasks wait. So a
/// lease of ten seconds is over in no time, and the same test with the same seed has the same
/// leaders in the same terms.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure::testing::Cluster;
///
/// let cluster = Cluster::of(3);
/// let old = cluster.node(0).campaign("jobs").await?;       // the code under test takes a `Node`
/// assert!(old.is_leader());
///
/// cluster.partition(&[&[0], &[1, 2]]);                     // the leader is in the minority
/// let new = cluster.node(1).campaign("jobs").await?;       // returns when its lease is over
/// assert!(new.is_leader() && !old.is_leader());
/// assert!(new.token() > old.token());
///
/// cluster.heal();
/// # Ok(()) }
/// ```
///
/// # Differences from production
///
/// * The test's own tasks are not part of any process: they run on while a node is
///   [paused](Self::pause), [suspended](Self::suspend) or [killed](Self::kill). A guard in their
///   hands then shows what the clock of its host says.
/// * A record is durable at once. Computing takes no time: a packet takes a millisecond or two.
/// * Each host's clock runs at a rate of its own, within half of the cluster's
///   [bound](Config::bound).
/// * [Revoking](Node::revoke) keys is refused, and [`log`](crate::log) does not run here.
///
/// While time is paused, do not wait for anything outside the runtime (a real socket, a thread):
/// hours pass meanwhile. A thread that tokio knows of
/// ([`spawn_blocking`](tokio::task::spawn_blocking)) holds the time.
pub struct Cluster {
    network: Network,
    members: Vec<Member>,
}

struct Member {
    config: Config,
    address: SocketAddr,
    clock: HostClock,
    kept: Kept,
    dice: Dice,
    node: Node,
    process: Process,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Founds and starts a cluster of so many members, `n0`, `n1` and so on, with default settings
    /// and seed 0. Each grants and may lead.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if there are no members.
    pub fn of(members: usize) -> Self {
        Self::seeded(members, 0)
    }

    /// The same with a seed of chance: of delays, back-off, and the rates of clocks.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub fn seeded(members: usize, seed: u64) -> Self {
        Self::with(members, seed, |_| {})
    }

    /// The same with other settings, for example `|config| config.lease = …`. Name, role,
    /// addresses, members, key, store and clock are set by the cluster.
    ///
    /// # Panics
    /// As [`of`](Self::of), or if the settings are refused.
    pub fn with(members: usize, seed: u64, change: impl Fn(&mut Config)) -> Self {
        assert!(members > 0, "a cluster has one member at least");
        let mut dice = Dice::new(seed);
        let place = |member: usize| {
            let host = u8::try_from(member + 1).expect("a cluster has at most 64 members");
            (format!("n{member}"), SocketAddr::from(([10, 0, 0, host], 7400)))
        };
        let places: Vec<(String, SocketAddr)> = (0..members).map(place).collect();
        let network = Network::new(places.iter().map(|(_, address)| *address).collect(), dice.fork());
        let peers: Vec<Peer> = places.iter().map(|(name, address)| peer(name, *address)).collect();
        let (id, key) = (ClusterId(u128::from(dice.draw())), ClusterKey::generate());
        let start = |(name, address): (String, SocketAddr)| {
            let mut config = Config::new("", Key::Cluster(key.clone()));
            change(&mut config);
            (config.name, config.role, config.listen) = (name, Role::Member, vec![address]);
            (config.members, config.store) = (peers.clone(), Some("in memory".into()));
            (config.key, config.old_keys) = (Key::Cluster(key.clone()), Vec::new());
            (config.cluster, config.lineage, config.advertise) = (Some(id), None, None);
            (config.trace, config.memory, config.vmclock) = (None, None, None);
            let clock = host_clock(&mut dice, config.bound);
            let kept = Kept::new(founding(&config, id).image().expect("its members are those of the body"));
            let (node, process) = launch(&config, address, &clock, &kept, &network, dice.fork());
            Member { config, address, clock, kept, dice: dice.fork(), node, process }
        };
        let members = places.into_iter().map(start).collect();
        Self { network, members }
    }

    /// Returns the node of a member: the same type as in production. After a
    /// [restart](Self::restart) there is another one.
    pub fn node(&self, member: usize) -> Node {
        self.members[member].node.clone()
    }

    /// Returns the member that leads a group at this instant, by its own clock.
    pub fn leader(&self, group: &str) -> Option<usize> {
        self.members.iter().position(|member| member.node.leads(group))
    }

    /// Waits until every member is [ready](Node::ready), except those that were killed. Not needed
    /// before a campaign, which waits for a quorum by itself.
    ///
    /// While a member cannot be ready, because it is cut off or paused, this waits.
    pub async fn ready(&self) {
        for member in &self.members {
            let _ = member.node.ready().await; // An error: it was killed.
        }
    }

    /// Lets so much time pass, and the nodes work meanwhile.
    ///
    /// Where tokio's time is paused this takes no time. [`tokio::time::advance`] instead jumps at
    /// once, as if all processes had been stopped for so long: leases end.
    pub async fn advance(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }

    /// Splits the network: from now on members reach each other only within a part. A member in no
    /// part reaches nobody. Packets on their way between parts are lost.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// # let cluster = tenure::testing::Cluster::of(3);
    /// cluster.partition(&[&[0], &[1, 2]]);
    /// # }
    /// ```
    pub fn partition(&self, parts: &[&[usize]]) {
        self.network.set_parts(Some(parts.iter().map(|part| part.to_vec()).collect()));
    }

    /// Ends the [partition](Self::partition): all members reach each other again.
    pub fn heal(&self) {
        self.network.set_parts(None);
    }

    /// Stops a process, as SIGSTOP does: its clock runs on, and datagrams wait for it.
    pub fn pause(&self, member: usize) {
        self.members[member].process.pause();
    }

    /// Suspends the host of a member: its process stops, datagrams to it are lost, and its clock
    /// shows afterwards that the host was asleep. Nobody leads by a node whose host was suspended.
    pub fn suspend(&self, member: usize) {
        let Member { clock, process, .. } = &self.members[member];
        self.network.cut(member);
        process.pause();
        clock.suspend();
    }

    /// Ends a [pause](Self::pause) or a [suspend](Self::suspend).
    pub fn resume(&self, member: usize) {
        let Member { clock, process, .. } = &self.members[member];
        clock.wake();
        self.network.join(member);
        process.resume();
    }

    /// Kills a process, as SIGKILL does: it releases nothing. Its guards are over at once, as they
    /// are gone with the process elsewhere. Store and memory stay.
    pub fn kill(&self, member: usize) {
        self.members[member].process.kill();
    }

    /// Starts the process of a member anew, with the store and the memory of its former life. If it
    /// still runs, it is killed before. Returns the new node.
    pub fn restart(&mut self, member: usize) -> Node {
        self.kill(member);
        self.resume(member);
        let Self { network, members } = self;
        let Member { config, address, clock, kept, dice, node, process } = &mut members[member];
        (*node, *process) = launch(config, *address, clock, kept, network, dice.fork());
        node.clone()
    }

    /// Makes the present leader of a group lose its lease, and returns which member that was;
    /// `None` if nobody leads.
    ///
    /// Its process is [paused](Self::pause) until the lease is over by its own clock, so the guard
    /// is lost by [`Loss::Lapsed`](crate::Loss::Lapsed), and so is whatever else that member leads.
    /// Afterwards anybody may lead.
    pub async fn depose(&self, group: &str) -> Option<usize> {
        let leader = self.leader(group)?;
        let Member { node, process, clock, .. } = &self.members[leader];
        let authority = node.authority(group)?;
        let ran = process.pause();
        while let Some(left) = authority.remaining() {
            clock.sleep(left).await;
        }
        if ran {
            process.resume();
        }
        Some(leader)
    }
}

fn peer(name: &str, address: SocketAddr) -> Peer {
    Peer { name: name.to_owned(), address: address.to_string() }
}

/// A clock that keeps to the bound of the cluster, and is no better than it must be: hosts have
/// run for different times, at different rates.
fn host_clock(dice: &mut Dice, bound: ClockBound) -> HostClock {
    match bound {
        ClockBound::Drift { ppm } => {
            let offset = u64::from(dice.below(1_000_000)) * 1_000_000_000;
            HostClock::new(offset, 1_000_000 - ppm / 2 + dice.below(ppm + 1))
        }
        ClockBound::Skew { .. } => HostClock::new(0, 1_000_000),
    }
}

fn founding(config: &Config, cluster: ClusterId) -> Founding {
    let checked = Checked::new(config).expect("the settings of the cluster");
    let body = config.body().expect("the settings of the cluster");
    Founding { cluster, me: checked.name, members: checked.contacts, body, floor: Term(0) }
}

fn launch(
    config: &Config,
    address: SocketAddr,
    clock: &HostClock,
    kept: &Kept,
    network: &Network,
    dice: Dice,
) -> (Node, Process) {
    let name = NodeName::new(&config.name).expect("a node's name");
    let mut checked = Checked::new(config).expect("the settings of the cluster");
    checked.time = Clock::of_host(clock.clone());
    checked.calendar = || Synchronised { is: true, error: 0 };
    checked.host = Some(Arc::new(Host { network: network.clone(), address, kept: kept.clone(), dice }));
    let (launched, life) = driver::launch_here(checked).expect("the settings of the cluster");
    (Node::launched(name, launched), Process::spawn(life))
}
