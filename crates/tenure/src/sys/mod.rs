//! System calls that the standard library does not offer: the only place in the project with
//! `unsafe`.
//!
//! | file | holds |
//! |---|---|
//! | `at` | files opened relative to a folder, and the user |
//! | `bus` | mapped files that may be cut |
//! | `clock` | readings of the system's clocks |
//! | `heap` | memory that is free and not returned yet |
//! | `map` | mapped parts of files |
//! | `page` | records that a forked child finds empty |
//! | `random` | random bytes from the kernel |

pub(crate) mod at;
pub(crate) mod bus;
pub(crate) mod clock;
pub(crate) mod heap;
pub(crate) mod map;
pub(crate) mod page;
pub(crate) mod random;
