//! One module for each command.

mod act;
pub(crate) mod asked;
pub(crate) mod calc;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod edict;
pub(crate) mod fence;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod leader;
pub(crate) mod man;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod proclaim;
pub(crate) mod resign;
pub(crate) mod run;
pub(crate) mod sentinel;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod transfer;
pub(crate) mod up;
pub(crate) mod verify;
