//! The fence of SQLite, on a real database: its text alone makes it, and any client can use it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, Error, ErrorCode, TransactionBehavior, params, params_from_iter};
use tenure::fence::sqlite::{
    ADMITTED, BY_TERM, BY_TERM_WIDE, IN_ORDER, IN_ORDER_WIDE, INSTALL, NOT_A_TOKEN, OTHER_RULE, STALE, wide,
};
use tenure::fence::{Rule, Term, Token};
use tenure_testkit::arrivals::judged;

fn database() -> Connection {
    let database = Connection::open_in_memory().unwrap();
    install(&database);
    database
}

fn install(database: &Connection) {
    database.execute_batch(INSTALL).unwrap();
    database
        .execute_batch("CREATE TABLE IF NOT EXISTS prices (id INTEGER PRIMARY KEY, amount INTEGER)")
        .unwrap();
    database.execute("INSERT OR IGNORE INTO prices VALUES (1, 10)", []).unwrap();
}

fn packed(term: u64, number: u64) -> i64 {
    Token::new(Term(term), number).pack().unwrap().as_i64()
}

fn amount(database: &Connection) -> i64 {
    database.query_row("SELECT amount FROM prices WHERE id = 1", [], |row| row.get(0)).unwrap()
}

/// The code with which an error of the fence begins.
fn code(error: &Error) -> &str {
    match error {
        Error::SqliteFailure(failure, Some(text)) if failure.code == ErrorCode::ConstraintViolation => {
            &text[..5]
        }
        other => panic!("not an error of the fence: {other}"),
    }
}

/// A leader's transaction: show the token, set the price.
fn set(database: &mut Connection, token: i64, amount: i64) -> Result<(), Error> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(BY_TERM, params!["prices", token])?;
    transaction.execute("UPDATE prices SET amount = ?1 WHERE id = 1", [amount])?;
    transaction.commit()
}

#[test]
fn a_stale_term_is_refused_and_its_transaction_is_undone() {
    let mut database = database();
    set(&mut database, packed(2, 1), 20).unwrap();
    let transaction = database.transaction().unwrap();
    transaction.execute("UPDATE prices SET amount = 15 WHERE id = 1", []).unwrap();
    let error = transaction.execute(BY_TERM, params!["prices", packed(1, 9)]).unwrap_err();
    assert_eq!(code(&error), STALE);
    assert!(transaction.is_autocommit(), "the transaction is over");
    drop(transaction);
    assert_eq!(amount(&database), 20);
}

#[test]
fn a_token_that_is_not_committed_was_not_admitted() {
    let mut database = database();
    let transaction = database.transaction().unwrap();
    transaction.execute(BY_TERM, params!["prices", packed(9, 1)]).unwrap();
    transaction.rollback().unwrap();
    set(&mut database, packed(1, 1), 11).unwrap();
    assert_eq!(amount(&database), 11);
}

#[test]
fn both_rules_and_both_forms_judge_as_the_pure_fence_does() {
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        for (rule, both) in
            [(Rule::ByTerm, [BY_TERM, BY_TERM_WIDE]), (Rule::InOrder, [IN_ORDER, IN_ORDER_WIDE])]
        {
            let database = database();
            for (index, arrival) in judged(rule, seed).into_iter().enumerate() {
                let (term, number) = wide(arrival.token).unwrap();
                // The forms alternate: they are stored in the same way.
                let mut values: Vec<Value> = vec!["r".to_owned().into()];
                match index % 2 {
                    0 => values.push(arrival.token.pack().unwrap().as_i64().into()),
                    _ => values.extend([term.into(), number.into()]),
                }
                if rule == Rule::InOrder {
                    values.push(arrival.writer.clone().into());
                }
                seen.insert(arrival.expected);
                let outcome = match database.execute(both[index % 2], params_from_iter(values)) {
                    Ok(_) => {
                        Some(database.query_row(ADMITTED, ["r"], |row| row.get::<_, String>(0)).unwrap())
                    }
                    Err(error) => {
                        assert_eq!(code(&error), STALE, "seed {seed}");
                        None
                    }
                };
                assert_eq!(
                    outcome.as_deref(),
                    arrival.expected,
                    "seed {seed}, {rule:?}, {index}: {arrival:?}"
                );
            }
        }
    }
    assert_eq!(seen.len(), 4, "there was one of each: {seen:?}");
}

#[test]
fn a_statement_that_asks_to_overlook_conflicts_is_refused_all_the_same_and_stored() {
    let database = database();
    for or in ["OR IGNORE", "OR REPLACE", "OR FAIL", "OR ABORT", "OR ROLLBACK"] {
        let resource = format!("r {or}");
        let sql = BY_TERM.replace("INSERT", &format!("INSERT {or}"));
        for term in [3, 4, 4] {
            database.execute(&sql, params![resource, packed(term, 1)]).unwrap();
        }
        let error = database.execute(&sql, params![resource, packed(3, 1)]).unwrap_err();
        assert_eq!(code(&error), STALE, "{or}");
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let database = database();
    let null = Value::Null;
    let bad: [(&str, Vec<Value>); 12] = [
        (BY_TERM, vec!["r".to_owned().into(), null.clone()]),
        (BY_TERM, vec!["r".to_owned().into(), 0.into()]),
        (BY_TERM, vec!["r".to_owned().into(), (-1).into()]),
        (BY_TERM, vec!["r".to_owned().into(), 4_294_967_295_i64.into()]),
        (BY_TERM, vec!["r".to_owned().into(), "8589934593".to_owned().into()]),
        (BY_TERM, vec!["r".to_owned().into(), 8_589_934_593.5.into()]),
        (BY_TERM, vec![null.clone(), packed(1, 1).into()]),
        (BY_TERM, vec![7.into(), packed(1, 1).into()]),
        (BY_TERM_WIDE, vec!["r".to_owned().into(), 1.into(), null.clone()]),
        (BY_TERM_WIDE, vec!["r".to_owned().into(), 1.into(), (-1).into()]),
        (IN_ORDER, vec!["r".to_owned().into(), packed(1, 1).into(), null]),
        (IN_ORDER_WIDE, vec!["r".to_owned().into(), 0.into(), 1.into(), "alpha".to_owned().into()]),
    ];
    for (sql, values) in bad {
        let error = database.execute(sql, params_from_iter(values.clone())).unwrap_err();
        assert_eq!(code(&error), NOT_A_TOKEN, "{sql} {values:?}");
    }
    let rows: i64 = database.query_row("SELECT count(*) FROM tenure_fence", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_resource_keeps_its_rule() {
    let database = database();
    database.execute(BY_TERM, params!["by term", packed(1, 1)]).unwrap();
    database.execute(IN_ORDER, params!["in order", packed(1, 1), "alpha"]).unwrap();
    let wrong = database.execute(IN_ORDER, params!["by term", packed(2, 1), "alpha"]).unwrap_err();
    assert_eq!(code(&wrong), OTHER_RULE);
    let wrong = database.execute(BY_TERM, params!["in order", packed(2, 1)]).unwrap_err();
    assert_eq!(code(&wrong), OTHER_RULE);
}

#[test]
fn tokens_beyond_what_sqlite_counts_to_are_not_cut_off() {
    let largest = i64::MAX.unsigned_abs();
    assert_eq!(wide(Token::new(Term(largest), largest)), Some((i64::MAX, i64::MAX)));
    assert_eq!(wide(Token::new(Term(largest + 1), 0)), None);
    assert_eq!(wide(Token::new(Term(1), u64::MAX)), None);
    let database = database();
    database.execute(BY_TERM_WIDE, params!["r", i64::MAX, i64::MAX]).unwrap();
}

/// A connection to a database that is a file, shared with others.
fn connect(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
}

#[test]
fn installing_again_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = &folder.path().join("prices.db");
    let mut database = connect(file);
    install(&database);
    set(&mut database, packed(5, 1), 50).unwrap();
    drop(database);
    let mut database = connect(file);
    install(&database);
    let error = set(&mut database, packed(4, 1), 40).unwrap_err();
    assert_eq!(code(&error), STALE);
    assert_eq!(amount(&database), 50);
}

#[test]
fn four_leaders_that_race_leave_the_newest_ones_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = &folder.path().join("prices.db");
    install(&connect(file));
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for term in 1..=4 {
            let begin = &begin;
            scope.spawn(move || {
                let mut database = connect(file);
                begin.wait();
                for number in 1..=20 {
                    match set(&mut database, packed(term, number), i64::try_from(term).unwrap()) {
                        Ok(()) => {}
                        Err(error) => assert_eq!(code(&error), STALE),
                    }
                }
            });
        }
    });
    assert_eq!(amount(&connect(file)), 4);
}
