//! One module for each command.

pub(crate) mod lab;
