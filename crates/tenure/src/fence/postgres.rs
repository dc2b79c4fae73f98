//! The fence of rows in PostgreSQL: functions that a transaction calls before it writes.
//!
//! Nothing here talks to a database. [`INSTALL`] is text that makes a table and functions in a
//! schema `tenure`; run it with any client, at every start if you like. Then a leader's transaction
//! begins by showing its token:
//!
//! ```sql
//! BEGIN;
//! SELECT tenure.admit_by_term('prices', 8589934597);   -- packed token of this edict or term
//! UPDATE prices SET amount = 20 WHERE id = 1;
//! COMMIT;
//! ```
//!
//! If the token is stale the function raises an error, and PostgreSQL undoes the whole transaction:
//! what it wrote before as well, and what it would write after. If it is admitted, the token is
//! stored when the transaction commits, and only then. Fence and rows must be in the same database,
//! for that is what makes it one step.
//!
//! | function | token | rule |
//! |---|---|---|
//! | `tenure.admit_by_term(resource text, token bigint)` | [packed](super::PackedToken) | [by term](super::Fence::by_term) |
//! | `tenure.admit_by_term_wide(resource text, token numeric)` | [wide](super::Token) | by term |
//! | `tenure.admit_in_order(resource text, token bigint, writer text)` | packed | [in order](super::Fence::in_order) |
//! | `tenure.admit_in_order_wide(resource text, token numeric, writer text)` | wide | in order |
//!
//! `resource` is any name, and one fence; it keeps the rule that it began with. Both forms of a
//! token are stored as term and number, so that they compare, and an application can move from one
//! to the other. A client without a type for `numeric` passes text:
//! `tenure.admit_by_term_wide($1, $2::text::numeric)`.
//!
//! They return `newer`, `same_term` or `again`, as [`Admitted`](super::Admitted). `again` comes
//! from a fence in order only, and says that this very edict has been committed, and nothing since:
//! the answer was lost on its way. Then do not write once more, but answer as before.
//!
//! # Errors
//!
//! They have SQLSTATEs of a class of their own, `TN`. The SQL standard leaves classes that begin
//! with a letter from I to Z to implementations, and PostgreSQL uses none with a T.
//!
//! | SQLSTATE | means | do |
//! |---|---|---|
//! | [`TN001`](STALE) | stale; DETAIL is the newest token, in the wide form | stop: to try again is useless |
//! | [`TN002`](OTHER_RULE) | the resource has the other rule | call the other function |
//! | [`TN003`](NOT_A_TOKEN) | the argument is no token, or NULL | mend the program |
//! | `40001` | PostgreSQL's own, see below | try the transaction again |
//! | `40P01` | PostgreSQL's own: a deadlock | try the transaction again; admit first, and it is rare |
//!
//! A program that catches the error inside the transaction, by a savepoint or an `EXCEPTION` block,
//! and goes on to write, writes without a fence.
//!
//! # Concurrency
//!
//! By term, writes of one leader take a shared lock on the fence's row: they go on side by side,
//! and none is refused. The first write of a newer leader waits until those that were admitted have
//! committed or are undone; from then on the old leader's are refused. In order, writes to one
//! resource wait for each other. Where no token was stored yet, two that come first wait for each
//! other as well; the second is judged by what the first has committed.
//!
//! A leader that is paused inside its transaction therefore holds up its successor, as it would by
//! any row that it has written. Bound that by `idle_in_transaction_session_timeout` and
//! `tcp_user_timeout`, which end such a transaction.
//!
//! The reads of a leader in the transaction that shows its token depend on the isolation:
//!
//! * `READ COMMITTED`: admit first, by a statement of its own. The statements after it see all that
//!   older leaders wrote.
//! * `REPEATABLE READ`: the snapshot is from before the wait, and may lack what an old leader wrote
//!   last. So a new leader first commits a transaction that only admits; those that begin later see
//!   everything. PostgreSQL says `40001` when leaders change, and between concurrent writes in
//!   order.
//! * `SERIALIZABLE`, if all use it: nothing to mind but `40001`, as before.

/// Makes or completes the schema, table and functions: one statement, which may be run again at any
/// time, also by several clients at once. Stored tokens stay.
pub const INSTALL: &str = include_str!("postgres.sql");

/// SQLSTATE of a refusal: something newer was admitted.
pub const STALE: &str = "TN001";

/// SQLSTATE of a call by the wrong rule: a resource is fenced either by term or in order.
pub const OTHER_RULE: &str = "TN002";

/// SQLSTATE of an argument that is no token, or is missing.
pub const NOT_A_TOKEN: &str = "TN003";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_the_functions_raise() {
        let mut raised: Vec<&str> =
            INSTALL.split("ERRCODE = '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
        raised.sort_unstable();
        raised.dedup();
        assert_eq!(raised, [STALE, OTHER_RULE, NOT_A_TOKEN]);
    }

    #[test]
    fn no_function_is_strict() {
        let text = INSTALL.to_uppercase();
        assert!(
            !text.contains("STRICT") && !text.contains("RETURNS NULL ON"),
            "a NULL would be admitted in silence"
        );
    }
}
