//! What needs `unsafe`, and nothing else: calls that the standard library does not have, each behind a small safe
//! function.

pub(crate) mod map;
