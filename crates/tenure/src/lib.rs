//! Leader election with fencing, as a library that services embed.
//!
//! A [`Node`] is a process of a cluster. Three to seven of them grant leases to one another's
//! leaders; a quorum of grants makes a leader, at most one at any instant, for as long as clocks
//! keep to a stated bound. No database, no log, no disk on the way. Every act of the leader carries
//! a [`Token`] that the receiver can order. So the receiver refuses the writes of a leader that was
//! paused for too long: a split brain does no harm there.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # struct Database; impl Database { async fn write(&self, _: tenure::Token) -> Result<(), std::io::Error> { Ok(()) } }
//! # let database = &Database;
//! let node = tenure::Node::start(tenure::Config::from_path("tenure.toml")?).await?;
//!
//! node.lead("scheduler", async |tenure| {                 // runs while this process leads
//!     while let Ok(edict) = tenure.edict() {              // Err(NotLeader) the instant the lease is over
//!         database.write(edict.token()).await?;           // the database refuses older tokens
//!     }
//!     Ok::<(), std::io::Error>(())
//! }).await??;                                             // has resigned
//! # Ok(()) }
//! ```
//!
//! # Guarantees
//!
//! * [`Tenure::is_leader`] and [`Tenure::edict`] compare this host's clock with the end of the
//!   lease, each time. No timer and no callback is believed. While one process is told yes, no
//!   other is.
//! * Edicts of one group compare in the order in which they were made, over leaders, restarts and
//!   changes of members.
//! * A process that is paused, killed, restarted, or cut off breaks nothing of this. Messages may
//!   be lost, repeated, delayed and forged by outsiders.
//!
//! # Assumptions
//!
//! * Clocks' rates are off by less than ρ (a tenth, unless [`Config::bound`] says otherwise). A
//!   watchdog measures them and stops the node when it sees the bound broken. Until then two
//!   processes may lead (split brain), and only a [`fence`] protects.
//! * A *machine* is not paused together with all its clocks (a snapshot of a virtual machine, a
//!   live migration). Only a marker of the hypervisor shows that (`/dev/vmclock0`), and only
//!   afterwards. Where it can happen, fence.
//! * Members do not lie, and the store's disk keeps what it has synced.
//!
//! # Systems
//!
//! Linux alone, 4.14 or later. It needs `CLOCK_BOOTTIME`, a clock that runs on in a suspend;
//! `MADV_WIPEONFORK`, so that a forked child does not lead; `flock`, epoll, and a boot id in
//! `/proc/sys/kernel/random/boot_id`, by which memory that outlives a process is trusted within one
//! boot only. Where `/dev/vmclock0` is there, it tells of pauses of a virtual
//! machine. The protocols themselves (`tenure-proto`) run anywhere.
//!
//! # Events
//!
//! A node says what happens by `tracing` events with stable names (`tenure.elected`,
//! `tenure.lost`, …) and fields: `docs/reference/events.md` lists them all. [`Node::metrics`] and
//! [`log::Log::metrics`] return counters and latencies as Prometheus text.
//!
//! # Where to look
//!
//! | | |
//! |---|---|
//! | start a process | [`Config`], [`Node::start`]; once for a cluster [`Node::found`] or [`Cluster::plan`]; later members [`Node::join`] |
//! | lead | [`Node::lead`], [`Node::campaign`], [`Tenure`]; for tasks under it [`Authority`] |
//! | stop leading | [`Tenure::resign`], [`Tenure::transfer`], [`Node::shutdown`] |
//! | learn who leads | [`Node::observe`], [`Watch::leader`] with its address, [`Node::verify`] |
//! | a hint of who leads, for something behind it that decides | [`Node::eventual`] |
//! | a leader for every partition | [`Node::local`] |
//! | refuse old leaders | [`fence`] |
//! | change the members | [`Node::change_members`] |
//! | keep a state on several hosts | [`log`] |
//! | test code that leads | `testing`, with the feature `test-util` |
//!
//! # The whole of it in one process
//!
//! A cluster of one, which is its own quorum:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", tenure::ClusterId::draw()));
//! use tenure::{ClusterId, ClusterKey, Config, Key, Node, Term};
//!
//! let mut config = Config::new("alone", Key::Cluster(ClusterKey::generate()));
//! config.listen = vec!["127.0.0.1:0".parse()?];
//! config.members = tenure::peers([("alone", "127.0.0.1:7400")]);
//! config.store = Some(folder.join("alone"));
//! Node::found(&config, ClusterId::draw(), Term(0))?;       // once, ever
//!
//! let node = Node::start(config).await?;
//! let tenure = node.campaign("jobs").await?;
//! let (one, two) = (tenure.edict()?, tenure.edict()?);
//! assert!(one.token() < two.token());
//!
//! tenure.resign();
//! node.shutdown().await;
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(()) }
//! ```
//!
//! The laboratory judges the very code that runs here: [`Machine`] is the strong machine of
//! `tenure-proto` under its sound rules, and the laboratory's known-wrong variants are values of a
//! type that this crate cannot name.

mod authority;
mod board;
mod campaign;
mod chance;
mod clock;
mod codec;
mod config;
mod contact;
mod driver;
mod error;
mod eventual;
pub mod fence;
#[cfg(test)]
mod formats;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod lead;
mod leader;
mod local;
mod lock;
pub mod log;
mod measures;
mod members;
mod memory;
mod metrics;
mod name;
mod node;
mod observe;
mod operator_request;
mod plan;
pub mod repair;
mod seal;
mod socket;
mod status;
mod steady;
mod store;
mod sys;
mod tally;
mod term_record;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod timing;
mod trace;
mod vmclock;
mod wall_clock;
mod watchdog;
mod wire;

/// The atomics of a term's record. The model checker of `term_record` puts its own in this place.
mod atomics {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
}

pub use authority::Authority;
pub use campaign::Campaign;
pub use clock::{Clock, Discipline, Hand};
pub use config::{
    AdaptiveLease, ClockBound, Config, ConfigError, Key, Limits, Peer, Role, Watching, WeakElection, peers,
};
#[cfg(feature = "config")]
pub use config::{explain_toml, explain_toml_at, parse_length};
pub use contact::{Contact, MAX_ADDRESS};
pub use driver::Traffic;
pub use error::{
    AskError, CampaignError, KindError, MembersError, ProclaimError, RevokeError, StartError, Stopped,
    TransferError, VerifyError,
};
pub use eventual::{Eventual, Hint};
pub use guard::{Loss, MAX_PROCLAIM, Tenure};
pub use leader::Leader;
pub use local::{Local, LocalOver, Locality, Partition};
pub use measures::Measures;
pub use members::{Changing, MemberChange, Progress};
pub use memory::{MemoryError, memory_folder};
pub use name::{ClusterId, GroupName, MAX_GROUP_NAME, MAX_NODE_NAME, NameError, NodeName};
pub use node::{Certain, Node, Revoked, RevokedKey, term_floor};
pub use observe::{Answer, Leadership, Proclaimed, Scene, Sight, Watch};
pub use operator_request::{Asked, Fulfilled, MAX_REASON, OperatorRequest};
pub use plan::{Cluster, Plan};
pub use seal::Counters as SessionCounters;
pub use seal::{
    CandidateKey, Claims, ClusterKey, KeyError, KeyId, KeyKind, KeyRefusal, Keyring, MAX_SCOPE, Names, Scope,
    ScopeError, Serial,
};
pub use status::{CharterStatus, GroupStatus, NotReady, PackedTerms, PeerStatus, Status, TermStatus};
pub use steady::{Disturbance, Disturbances, Suspends};
pub use store::{StoreError, StoreId};
pub use tally::Tally;
pub use tenure_proto::strong::edict::{ByTerm, NotLeader, PackedToken, QuorumStamp};
pub use tenure_proto::strong::epoch::Epoch;
pub use tenure_proto::strong::{Edict, Term, Token};
pub use tenure_proto::{GroupId, LocalTime, NodeId};
pub use timing::{Timing, Timings};
/// The reader of TOML, for [`Config::from_table`].
#[cfg(feature = "config")]
pub use toml;
pub use vmclock::{VMCLOCK, tells_disruptions};

/// The strong machine that every node runs: the protocol under its sound rules.
///
/// ```
/// use std::any::TypeId;
/// use tenure_proto::strong::{Nerio, Sound};
///
/// assert_eq!(TypeId::of::<tenure::Machine>(), TypeId::of::<Nerio<Sound>>());
/// ```
pub type Machine = tenure_proto::strong::Nerio<tenure_proto::strong::Sound>;

/// The settings that a node's machine is given once, when it starts.
pub type MachineConfig = <Machine as tenure_proto::Protocol>::Config;

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use tenure_proto::strong::{Config, Nerio, Sound};

    use super::*;

    #[test]
    fn the_node_runs_the_sound_rules_and_no_others() {
        assert_eq!(TypeId::of::<Machine>(), TypeId::of::<Nerio<Sound>>());
        assert_eq!(TypeId::of::<MachineConfig>(), TypeId::of::<Config<Sound>>());
        assert_eq!(size_of::<Sound>(), 0, "there is nothing in them that could be switched");
    }

    #[test]
    fn the_library_does_not_know_the_laboratory() {
        let manifest = include_str!("../Cargo.toml");
        assert!(!manifest.contains("tenure-lab"), "mutants must stay out of what ships");
    }
}
