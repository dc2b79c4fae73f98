//! What the standard library does not offer: the only place in the project with `unsafe`.
//!
//! | file | holds |
//! |---|---|
//! | `clock` | readings of the system's clocks |
//! | `page` | records that a forked child finds empty |

pub(crate) mod clock;
pub(crate) mod map;
pub(crate) mod page;
