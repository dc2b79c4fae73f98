//! Leader election you can fence: what services embed.
//!
//! This crate will hold the running node: driver, sockets, clock, store and fences. What it runs is fixed here already,
//! for the laboratory judges the very same type: [`Machine`], the strong machine under its sound rules. The
//! laboratory's known-wrong variants are values of a type that this crate cannot name.

mod chance;
mod clock;
mod codec;
mod config;
mod contact;
mod driver;
mod error;
pub mod fence;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod members;
mod memory;
mod name;
mod node;
mod observe;
mod seal;
mod socket;
mod store;
mod sys;
mod tally;
mod trace;
mod watchdog;
mod wire;

pub use clock::{Clock, Hand};
pub use config::{
    AdaptiveLease, ClockBound, Config, ConfigError, Key, Peer, Role, Watching, WeakElection, peers,
};
pub use contact::{Contact, MAX_ADDRESS};
pub use driver::Traffic;
pub use error::{
    CampaignError, MembersError, ProclaimError, StartError, Stopped, TransferError, VerifyError,
};
pub use guard::{Loss, MAX_PROCLAIM, Tenure};
pub use members::{Changing, MemberChange, Progress};
pub use memory::MemoryError;
pub use name::{ClusterId, GroupName, MAX_GROUP_NAME, MAX_NODE_NAME, NameError, NodeName};
pub use node::{Campaign, Certain, Node, Status};
pub use observe::{Leadership, Proclaimed, Scene, Sight, Watch};
pub use seal::{CandidateKey, ClusterKey, KeyError, KeyId, KeyKind, Keyring, MAX_SCOPE, Scope, ScopeError};
pub use store::{StoreError, StoreId};
pub use tally::Tally;
pub use tenure_proto::strong::edict::{NotLeader, PackedToken};
pub use tenure_proto::strong::{Edict, Term, Token};

/// The strong machine of every node.
///
/// ```
/// use std::any::TypeId;
/// use tenure_proto::strong::{Nerio, Sound};
///
/// assert_eq!(TypeId::of::<tenure::Machine>(), TypeId::of::<Nerio<Sound>>());
/// ```
pub type Machine = tenure_proto::strong::Nerio<tenure_proto::strong::Sound>;

/// What a node's machine is told once.
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
