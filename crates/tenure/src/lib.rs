//! Leader election you can fence: what services embed.
//!
//! This crate will hold the running node: driver, sockets, clock, store and fences. What it runs is fixed here already,
//! for the laboratory judges the very same type: [`Machine`], the strong machine under its sound rules. The
//! laboratory's known-wrong variants are values of a type that this crate cannot name.

#[allow(dead_code, unreachable_pub, reason = "the wire uses the rest")]
mod codec;
mod contact;
mod lock;
#[allow(dead_code, unused_imports, reason = "the driver uses it")]
mod memory;
mod name;
#[allow(dead_code, unused_imports, reason = "the driver uses it")]
mod store;
mod sys;

pub use contact::{Contact, MAX_ADDRESS};
pub use memory::MemoryError;
pub use name::{ClusterId, GroupName, MAX_GROUP_NAME, MAX_NODE_NAME, NameError, NodeName};
pub use store::{Founding, Opened, Store, StoreError, StoreId};

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
