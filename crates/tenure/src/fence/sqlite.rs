//! The fence of rows in SQLite: views into which a transaction inserts its token before it writes.
//!
//! As in [`postgres`](super::postgres), nothing here talks to a database: [`INSTALL`] is text for
//! any client. SQLite has no stored functions, but a trigger can end a transaction; so a token is
//! shown by an `INSERT`:
//!
//! ```sql
//! BEGIN IMMEDIATE;
//! INSERT INTO tenure_admit_by_term (resource, token) VALUES ('prices', 8589934597);
//! UPDATE prices SET amount = 20 WHERE id = 1;
//! COMMIT;
//! ```
//!
//! A stale token is an error, and SQLite has undone the transaction when it is seen. **Look at the
//! error and stop there.** After it there is no transaction any more: a program that goes on all
//! the same writes without one, and without a fence.
//!
//! | statement | token | rule |
//! |---|---|---|
//! | [`BY_TERM`] | [packed](super::PackedToken) | [by term](super::Fence::by_term) |
//! | [`BY_TERM_WIDE`] | [term and number](wide) | by term |
//! | [`IN_ORDER`] | packed | [in order](super::Fence::in_order) |
//! | [`IN_ORDER_WIDE`] | term and number | in order |
//!
//! Both forms are stored as term and number, and compare. [`ADMITTED`], within the same
//! transaction, says as what the token was admitted. After `again`, which only a fence in order
//! says, the edict has been committed before, and nothing since: do not write once more, but answer
//! as before.
//!
//! Errors are of the code `SQLITE_CONSTRAINT_TRIGGER`, and their text begins with [`TN001`](STALE),
//! [`TN002`](OTHER_RULE) or [`TN003`](NOT_A_TOKEN): the same as in PostgreSQL. `SQLITE_BUSY` is
//! SQLite's own, and means to try the transaction again.
//!
//! One transaction at a time writes to a database of SQLite, so that two first writers cannot meet,
//! and to begin by `BEGIN IMMEDIATE` and this insert is all there is to concurrency.

use super::Token;
pub use super::postgres::{NOT_A_TOKEN, OTHER_RULE, STALE};

/// Makes table, views and triggers where they are missing. Several statements; may be run again at
/// any time. Stored tokens stay.
pub const INSTALL: &str = include_str!("sqlite.sql");

/// Admits a packed token (2) to a resource (1) by its term.
pub const BY_TERM: &str = "INSERT INTO tenure_admit_by_term (resource, token) VALUES (?1, ?2)";

/// Admits term (2) and number (3) to a resource (1) by the term.
pub const BY_TERM_WIDE: &str =
    "INSERT INTO tenure_admit_by_term_wide (resource, term, number) VALUES (?1, ?2, ?3)";

/// Admits a packed token (2) of a writer (3) to a resource (1), in order.
pub const IN_ORDER: &str = "INSERT INTO tenure_admit_in_order (resource, token, writer) VALUES (?1, ?2, ?3)";

/// Admits term (2) and number (3) of a writer (4) to a resource (1), in order.
pub const IN_ORDER_WIDE: &str =
    "INSERT INTO tenure_admit_in_order_wide (resource, term, number, writer) VALUES (?1, ?2, ?3, ?4)";

/// As what the last token was admitted to a resource (1): `newer`, `same_term` or `again`. To be
/// asked in the transaction that admitted it.
pub const ADMITTED: &str = "SELECT admitted FROM tenure_fence WHERE resource = ?1";

/// Term and number for [`BY_TERM_WIDE`] and [`IN_ORDER_WIDE`]. SQLite counts to 2^63 - 1: `None`
/// above that, where no election comes that counts one by one.
pub fn wide(token: Token) -> Option<(i64, i64)> {
    Some((i64::try_from(token.term().0).ok()?, i64::try_from(token.number()).ok()?))
}
