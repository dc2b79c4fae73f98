//! The one check of a configuration, and what comes out of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
#[cfg(any(test, feature = "test-util"))]
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::detect::phi::{self, Phi};
use tenure_proto::detect::weak::{Choice, Watch};
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::{Barred, Body, Charter, Stores};
use tenure_proto::strong::{Adapt, Settings, Sound, Succession};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::{GroupId, NodeId};

use super::{ClockBound, Config, ConfigError, Key, Limits, Peer, Role, Watching, WeakElection};
use crate::MachineConfig;
use crate::clock::{Clock, nanos};
use crate::contact::Contact;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::seal::{ClusterKey, KeyKind, Versions};
use crate::sys::clock::{Synchronised, synchronised};
#[cfg(any(test, feature = "test-util"))]
use crate::testing::Host;

/// How many terms the durable ceiling is raised by at a time.
const BLOCK: u64 = 256;

/// The versions of the protocol that this node speaks.
const VERSIONS: Versions = Versions { oldest: 1, newest: 1 };

/// A clock that is not synchronised cannot serve where clocks must be, and one that is set serves
/// nowhere else.
pub(crate) const UNSUITED: &str = "a bound on skew is for Clock::real(), a bound on drift for Clock::boot(): `time` must fit the cluster's bound; from a file, `clock` sets both";

/// The flaw in a bound of a million parts per million or more.
const STANDS_STILL: &str =
    "a clock that is off by 1,000,000 ppm (100 %) may stand still: 100000 is a safe guess";

/// Settings that hold together.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) name: NodeName,
    pub(crate) role: Role,
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) advertise: Option<String>,
    pub(crate) contacts: Vec<Contact>,
    pub(crate) groups: Option<BTreeSet<GroupId>>,
    pub(crate) key: Key,
    pub(crate) old_keys: Vec<ClusterKey>,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) lineage: Option<u128>,
    pub(crate) store: Option<PathBuf>,
    pub(crate) memory: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) longest_pledge: Span,
    pub(crate) limits: Limits,
    pub(crate) time: Clock,
    pub(crate) vmclock: Option<PathBuf>,
    /// Reads the state of the synchronised clock; tests replace it.
    pub(crate) calendar: fn() -> Synchronised,
    /// Tests speak others.
    pub(crate) versions: Versions,
    /// The host of `testing` on which it runs, in place of sockets and a disk.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) host: Option<Arc<Host>>,
    /// The file's settings of the cluster, if it has any.
    body: Option<Body>,
    machine: Box<Config>,
}

fn check_limits(limits: Limits) -> Result<Limits, ConfigError> {
    let zero = [
        ("limits.groups_per_key", limits.groups_per_key == 0),
        ("limits.watches_per_key", limits.watches_per_key == 0),
        ("limits.forget_after", limits.forget_after.is_zero()),
    ];
    match zero.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => Err(ConfigError::Invalid { key, why: "it must be more than zero".to_owned() }),
        None => Ok(limits),
    }
}

impl Checked {
    /// Checks everything that can be checked without the store.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let name = node_name("name", &config.name)?;
        let contacts = contacts(&config.members)?;
        check_role(config, &name, &contacts)?;
        if let Some(address) = &config.advertise {
            check_address("advertise", address)?;
        }
        let groups = config.groups.as_ref().map(|groups| group_ids(groups)).transpose()?;
        let body = if config.role.grants() && !contacts.is_empty() { Some(body(config)?) } else { None };
        Ok(Self {
            name,
            role: config.role,
            listen: config.listen.clone(),
            advertise: config.advertise.clone(),
            contacts,
            groups,
            key: config.key.clone(),
            old_keys: config.old_keys.clone(),
            cluster: config.cluster,
            lineage: config.lineage.or_else(|| config.key.lineage()),
            store: config.store.clone(),
            memory: config.memory.clone(),
            trace: config.trace.clone(),
            longest_pledge: span(config.longest_pledge),
            limits: check_limits(config.limits)?,
            time: config.time.clone(),
            vmclock: config.vmclock.clone(),
            calendar: synchronised,
            versions: VERSIONS,
            #[cfg(any(test, feature = "test-util"))]
            host: None,
            body,
            machine: Box::new(config.clone()),
        })
    }

    /// The machine's settings, in a cluster that goes by `charter`. A member's file must agree with
    /// it.
    pub(crate) fn machine(&self, charter: &Charter) -> Result<MachineConfig, ConfigError> {
        if let Some(body) = &self.body {
            agree(body, charter, self.name.id(), &self.contacts)?;
        }
        if !self.time.suits(charter.body.clocks.bound) {
            return Err(ConfigError::Invalid { key: "time", why: UNSUITED.to_owned() });
        }
        let config = &self.machine;
        let settings = Settings {
            quorums: charter.body.quorums.clone(),
            clocks: charter.body.clocks,
            lease: span(config.lease),
            reserve: span(config.reserve),
            eager: true,
            longest_lease: charter.body.longest_lease,
            window: span(config.window),
            retry: span(config.retry),
            block: BLOCK,
            succession: Succession::Adjacent,
            weak: weak(config)?,
            adapt: config.adapt.map(|adapt| Adapt {
                shortest: span(adapt.shortest),
                interval: span(adapt.interval),
                retries: adapt.retries,
            }),
            hold: config.hold.map(span),
            rules: Sound,
        };
        settings.validate().map_err(|error| ConfigError::Invalid { key: "lease", why: error.to_string() })
    }

    /// Whether the machine would take these settings in a cluster that is just what the file says.
    /// A process without a list of members will be told one, with bounds that are not known yet.
    pub(super) fn check_machine(&self) -> Result<(), ConfigError> {
        if self.contacts.is_empty() {
            return Ok(());
        }
        let body = body(&self.machine)?;
        self.machine(&Charter::founding(body)).map(drop)
    }

    /// Whether leases follow the round trips that are measured.
    pub(crate) fn adapts(&self) -> bool {
        self.machine.adapt.is_some()
    }

    /// δ, in real time.
    pub(crate) fn lease(&self) -> Duration {
        self.machine.lease
    }

    /// How long to wait for an answer.
    pub(crate) fn retry(&self) -> Duration {
        self.machine.retry
    }
}

fn weak(config: &Config) -> Result<Choice, ConfigError> {
    let retry = LocalSpan::from_nanos(nanos(config.retry));
    let watch = match config.weak {
        WeakElection::Random => return Ok(Choice::Random),
        WeakElection::Omega => return Ok(Choice::Omega),
        WeakElection::Ring(Watching::Heartbeat) => Watch::Heartbeat,
        WeakElection::Ring(Watching::Phi { threshold }) => {
            let settings = phi::Settings {
                threshold: Phi::from_thousandths(threshold.saturating_mul(1000)),
                window: 64,
                first_estimate: LocalSpan::from_nanos(nanos(config.lease)),
                least_deviation: retry,
                acceptable_pause: retry,
            };
            let (key, checked) = ("election.detector", settings.validate());
            Watch::Phi(checked.map_err(|error| ConfigError::Invalid { key, why: error.to_string() })?)
        }
    };
    Ok(Choice::Ring(watch))
}

/// The cluster that a configuration would found.
pub(super) fn body(config: &Config) -> Result<Body, ConfigError> {
    let contacts = contacts(&config.members)?;
    let twice = |(at, one): (usize, &Contact)| {
        let name = contacts[..at].iter().any(|other| other.name == one.name).then_some(&one.name)?;
        let why = format!("two members are called '{name}': give each a name of its own");
        Some(ConfigError::Invalid { key: "cluster.members", why })
    };
    if let Some(error) = contacts.iter().enumerate().find_map(twice) {
        return Err(error);
    }
    let ids: Vec<NodeId> = contacts.iter().map(|contact| contact.name.id()).collect();
    let quorums = Quorums::parse(&config.quorums, ids).map_err(|error| ConfigError::Invalid {
        key: "cluster.quorums",
        why: in_names(error.to_string(), &contacts),
    })?;
    let bound = match config.bound {
        ClockBound::Drift { ppm } => {
            let (key, why) = ("cluster.drift_ppm", STANDS_STILL.to_owned());
            Bound::Drift(Drift::from_ppm(ppm).ok_or(ConfigError::Invalid { key, why })?)
        }
        ClockBound::Skew { bound } => Bound::Skew(LocalSpan::from_nanos(nanos(bound))),
    };
    let clocks = Clockwork { bound, tick: LocalSpan::from_nanos(1) };
    // Stores are named when they are made.
    let stores = Stores::default();
    let (longest_lease, barred) = (span(config.longest_lease), Barred::default());
    let body = Body { quorums, clocks, longest_lease, stores, barred };
    if body.longest_lease.as_nanos() == 0 {
        return Err(ConfigError::Invalid {
            key: "cluster.longest_lease",
            why: "it must be more than zero".into(),
        });
    }
    Ok(body)
}

fn check_role(config: &Config, name: &NodeName, contacts: &[Contact]) -> Result<(), ConfigError> {
    let role = config.role;
    let listed = contacts.iter().any(|contact| contact.name == *name);
    if role.grants() && config.store.is_none() {
        let why =
            "a member keeps what it promised on a disk; write the folder, and found it with `tenure init`";
        return Err(ConfigError::Missing { key: "store", why });
    }
    if role.grants() && config.listen.is_empty() {
        return Err(ConfigError::Missing {
            key: "listen",
            why: "others must reach a member; write an address",
        });
    }
    if role.grants() && matches!(config.key, Key::Scoped(_)) {
        let why = "a member needs the cluster's key; this is a candidate's".to_owned();
        return Err(ConfigError::Invalid { key: "key", why });
    }
    if let Key::Scoped(key) = &config.key {
        if !key.names().has(name) {
            let why = format!(
                "the key is for '{}' and works under no other name; use that, or ask for a key",
                key.names()
            );
            return Err(ConfigError::Invalid { key: "name", why });
        }
        if role.leads() && key.kind() != KeyKind::Candidate {
            let why = format!("this is no candidate's key, but the role is {}; ask for one", role.name());
            return Err(ConfigError::Invalid { key: "key", why });
        }
    }
    if !role.grants() && contacts.is_empty() {
        let why = "somebody must be asked first; write the members with their addresses";
        return Err(ConfigError::Missing { key: "cluster.members", why });
    }
    if !role.grants() && listed {
        let why = format!("'{name}' is a member's name, but the role is {}; choose another", role.name());
        return Err(ConfigError::Invalid { key: "name", why });
    }
    if !role.grants() && matches!(config.key, Key::Cluster(_)) && config.cluster.is_none() {
        let why = "a key of the cluster does not say which cluster; write the id that `tenure init` printed";
        return Err(ConfigError::Missing { key: "cluster_id", why });
    }
    Ok(())
}

/// Whether a charter comes from the founding that is expected, by a configuration or a key. Without
/// an expectation any does.
pub(crate) fn comes_from(charter: &Charter, expected: Option<u128>) -> Result<(), ConfigError> {
    let there = charter.lineage.founder();
    match expected.filter(|here| *here != there) {
        Some(here) => Err(ConfigError::Lineage { here, there }),
        None => Ok(()),
    }
}

/// A file must say what the epoch says, or nothing.
fn agree(here: &Body, charter: &Charter, me: NodeId, contacts: &[Contact]) -> Result<(), ConfigError> {
    let there = &charter.body;
    let differs = |key, here: String, there: String| {
        Err(ConfigError::Differs { key, here, there, epoch: charter.epoch.0 })
    };
    if here.longest_lease != there.longest_lease {
        let (here, there) = (here.longest_lease, there.longest_lease);
        return differs("cluster.longest_lease", here.to_string(), there.to_string());
    }
    if here.clocks.bound != there.clocks.bound {
        let (here, there) = (here.clocks.bound, there.clocks.bound);
        return differs("the bound on clocks", bound_in_words(here), bound_in_words(there));
    }
    // Once the members have changed, and for who is to become one, those of the file are only
    // addresses.
    if charter.before.is_none() && charter.has(me) && here.quorums != there.quorums {
        let quorums = |body: &Body| quorums_in_words(&body.quorums, contacts);
        return differs("cluster.quorums", quorums(here), quorums(there));
    }
    Ok(())
}

/// A bound as the file has it.
fn bound_in_words(bound: Bound) -> String {
    match bound {
        Bound::Drift(drift) => format!("drift_ppm = {}", drift.as_ppm()),
        Bound::Skew(skew) => format!("skew = \"{skew}\""),
    }
}

/// A quorum system as the file has it, with its members.
fn quorums_in_words(quorums: &Quorums, contacts: &[Contact]) -> String {
    let name = |node: &NodeId| {
        let contact = contacts.iter().find(|contact| contact.name.id() == *node);
        contact.map_or("one that the file does not name".to_owned(), |contact| format!("'{}'", contact.name))
    };
    let members: Vec<String> = quorums.members().iter().map(name).collect();
    format!("{quorums} of {}", members.join(", "))
}

/// The machine knows numbers; people know names.
fn in_names(text: String, contacts: &[Contact]) -> String {
    let name = |text: String, contact: &Contact| {
        text.replace(&contact.name.id().to_string(), &format!("'{}'", contact.name))
    };
    contacts.iter().fold(text, name)
}

pub(super) fn contacts(members: &[Peer]) -> Result<Vec<Contact>, ConfigError> {
    let contact = |peer: &Peer| {
        check_address("members", &peer.address)?;
        Ok(Contact { name: node_name("members", &peer.name)?, address: Some(peer.address.clone()) })
    };
    members.iter().map(contact).collect()
}

/// `host:port`, whatever the host is.
fn check_address(key: &'static str, address: &str) -> Result<(), ConfigError> {
    let port = address.rsplit_once(':').and_then(|(host, port)| {
        let whole = !host.is_empty() && (!host.contains(':') || host.starts_with('['));
        port.parse::<u16>().ok().filter(|port| whole && *port != 0)
    });
    if port.is_none() || address.len() > 255 || !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why =
            format!("'{address}' is no address: write host:port, as in 10.0.0.1:7400 or [2001:db8::1]:7400");
        return Err(ConfigError::Invalid { key, why });
    }
    Ok(())
}

fn node_name(key: &'static str, text: &str) -> Result<NodeName, ConfigError> {
    NodeName::new(text).map_err(|error| ConfigError::Name { key, error })
}

fn group_ids(groups: &[String]) -> Result<BTreeSet<GroupId>, ConfigError> {
    let id = |text: &String| GroupName::new(text).map(|name| name.id());
    groups
        .iter()
        .map(id)
        .collect::<Result<_, _>>()
        .map_err(|error| ConfigError::Name { key: "groups", error })
}

fn span(length: Duration) -> Span {
    Span::from_nanos(nanos(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_goes_by_the_weak_election_that_was_chosen() {
        let mut config = Config::new("a", Key::Cluster(ClusterKey::generate()));
        let mut chosen = |election| {
            config.weak = election;
            weak(&config).expect("its bounds fit")
        };
        assert_eq!(chosen(WeakElection::Omega), Choice::Omega);
        assert_eq!(chosen(WeakElection::Random), Choice::Random);
        assert_eq!(chosen(WeakElection::Ring(Watching::Heartbeat)), Choice::Ring(Watch::Heartbeat));
        assert!(matches!(
            chosen(WeakElection::Ring(Watching::Phi { threshold: 8 })),
            Choice::Ring(Watch::Phi(_))
        ));
    }
}
