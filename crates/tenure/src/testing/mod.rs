//! Leaders for the tests of programs that embed this library: without sockets, disks or other
//! processes.
//!
//! | to test | use |
//! |---|---|
//! | code that takes a [`Tenure`](crate::Tenure) | [`Group`]: the test itself elects and deposes |
//! | code that takes a [`Node`](crate::Node), and failover | [`Cluster`]: real nodes in memory and in virtual time, with faults |
//!
//! Enable the feature `test-util` in `[dev-dependencies]`; it brings tokio's `test-util`, for
//! `#[tokio::test(start_paused = true)]`. The guide is `docs/guides/test.md`.

mod cluster;
mod dice;
mod disk;
mod group;
mod host;
mod network;
mod process;

pub use cluster::Cluster;
pub use group::Group;

pub(crate) use dice::Dice;
pub(crate) use disk::{Kept, KeptLife};
pub(crate) use host::{Host, HostClock};
pub(crate) use network::{Network, Port};
