//! The laboratory: every protocol under every fault, judged, replayed, shrunk and drawn.
//!
//! A run is a list of actions in a [`world`] of drifting clocks, lossy links, slow disks and dying
//! processes. A [`simulate`] seed invents the actions, a [`play`] tells the few that matter, a
//! [`script`] repeats them all, a [`shrink`] leaves some out; all go over the same [`stage`], where
//! they are judged by the [`property`] list, counted and, if wanted, [`record`]ed and [`draw`]n.
//! Real time is known here alone, and no protocol ever sees it.
//!
//! | module | holds |
//! |---|---|
//! | [`catalogue`] | every protocol by name, behind one face: what the command line uses |
//! | [`protocols`] | a folder each: its subject, judge, mutants, entry and races |
//! | [`subject`] | what must be said of a protocol to run it here: a new one starts with this |
//! | [`property`] | what must hold, with ghost state that survives amnesia |
//! | [`world`] | clocks, machines, disks, messages in flight; decides nothing |
//! | [`simulate`] | what goes wrong, drawn from a seed: first it breaks, then it heals |
//! | [`play`] | what goes wrong, told by a person; all else happens by itself |
//! | [`sweep`] | many seeds on all cores |
//! | [`explore`] | every reachable state of a shipped machine, in a small scope |
//! | [`race`] | protocols and parts of them compared, in tables and plots |
//! | [`script`], [`shrink`] | traces and scenarios as text, replayed and made small |
//! | [`linear`] | whether what clients saw is explained by one store |
//! | [`draw`] | space-time diagrams as SVG and as a page |
//! | [`audit`] | traces of real nodes, judged by the same properties |
//!
//! ```
//! use tenure_lab::catalogue::{Trial, find};
//! use tenure_lab::simulate::{Faults, Setup};
//!
//! let setup =
//!     Setup { nodes: 3, quorums: "majority".into(), faults: Faults::all(), sets: vec![], horizon: None, world: None };
//! let trial = Trial { setup, mutant: None, property: None };
//! let report = find("nerio-drift")?.run(&trial, 7)?;
//! assert_eq!(report.violation, None);
//! assert!(report.leader.is_some(), "after the faults have healed somebody leads");
//! # Ok::<(), tenure_lab::catalogue::Error>(())
//! ```

pub mod audit;
pub mod catalogue;
pub mod count;
pub mod draw;
pub mod explore;
pub mod linear;
pub mod play;
pub mod property;
pub mod protocols;
pub mod race;
pub mod random;
pub mod record;
pub mod script;
pub mod shrink;
pub mod simulate;
pub mod stage;
pub mod subject;
pub mod sweep;
pub mod world;
