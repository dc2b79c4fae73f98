//! Studies of Nerio: how long elections take, and how long late requests block others.

pub mod blocking;
pub mod election;
