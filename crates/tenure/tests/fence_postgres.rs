//! The fence of PostgreSQL, on a real server.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Error, IsolationLevel, Transaction};
use tenure::fence::postgres::{INSTALL, NOT_A_TOKEN, OTHER_RULE, STALE};
use tenure::fence::{Rule, Term, Token};
use tenure_testkit::arrivals::judged;
use tenure_testkit::postgres_server::{Database, Server};

const ISOLATIONS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

/// A database with the fence in it, a price of 100, and a table that keeps who wrote.
fn database(name: &str) -> Database {
    let database = Server::shared().database(name);
    let mut client = database.connect();
    client.batch_execute(INSTALL).unwrap();
    let tables = "CREATE TABLE prices (id int PRIMARY KEY, amount bigint NOT NULL); INSERT INTO prices VALUES (1, 100);
                  CREATE TABLE log (at bigserial, resource text, term bigint, writer text)";
    client.batch_execute(tables).unwrap();
    database
}

fn packed(term: u64, number: u64) -> i64 {
    Token::new(Term(term), number).pack().unwrap().as_i64()
}

fn by_term(transaction: &mut Transaction<'_>, resource: &str, token: i64) -> Result<String, Error> {
    let row = transaction.query_one("SELECT tenure.admit_by_term($1, $2)", &[&resource, &token])?;
    Ok(row.get(0))
}

fn in_order(transaction: &mut Transaction<'_>, token: i64, writer: &str) -> Result<String, Error> {
    let row = transaction.query_one("SELECT tenure.admit_in_order('r', $1, $2)", &[&token, &writer])?;
    Ok(row.get(0))
}

fn code(error: &Error) -> &str {
    error.code().map_or("none", SqlState::code)
}

fn price(client: &mut Client) -> i64 {
    client.query_one("SELECT amount FROM prices WHERE id = 1", &[]).unwrap().get(0)
}

/// Waits until somebody waits for a lock in this database.
fn until_somebody_waits(client: &mut Client) {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..3000 {
        if client.query_one(WAITING, &[]).unwrap().get::<_, i64>(0) > 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10)); // Until the server says so; half a minute is too long.
    }
    panic!("nobody waits");
}

/// Runs a transaction until it is not asked to try again. Counts those attempts.
fn retrying<T>(
    client: &mut Client,
    isolation: IsolationLevel,
    retries: &AtomicU32,
    mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        let mut transaction = client.build_transaction().isolation_level(isolation).start()?;
        let outcome = match body(&mut transaction) {
            Ok(value) => transaction.commit().map(|()| value),
            Err(error) => Err(error),
        };
        match outcome {
            Err(error) if ["40001", "40P01"].contains(&code(&error)) => {
                retries.fetch_add(1, Ordering::Relaxed)
            }
            other => return other,
        };
    }
}

/// The program of two leaders. The first computes a new price from the one that it read, and is
/// paused before it writes; meanwhile the second is elected and sets the price. Returns what came
/// of the first one's write, and the price.
fn paused_leader(database: &Database, fenced: bool) -> (Result<(), Error>, i64) {
    let write = |client: &mut Client, term: u64, amount: i64| {
        let mut transaction = client.transaction()?;
        if fenced {
            by_term(&mut transaction, "prices", packed(term, 1))?;
        }
        transaction.execute("UPDATE prices SET amount = $1 WHERE id = 1", &[&amount])?;
        transaction.commit()
    };
    let (mut first, mut second) = (database.connect(), database.connect());
    let lowered = price(&mut first) - 30;
    // Here the first leader stands still, past the end of its lease.
    let raised = price(&mut second) + 50;
    write(&mut second, 2, raised).unwrap();
    // Here it wakes up.
    let late = write(&mut first, 1, lowered);
    (late, price(&mut first))
}

#[test]
fn with_the_fence_the_paused_leader_is_refused_and_the_new_leaders_write_stands() {
    let (late, price) = paused_leader(&database("paused_fenced"), true);
    assert_eq!(code(&late.unwrap_err()), STALE);
    assert_eq!(price, 150);
}

#[test]
fn the_same_program_without_the_fence_loses_the_new_leaders_write() {
    let (late, price) = paused_leader(&database("paused_unfenced"), false);
    late.unwrap();
    assert_eq!(price, 70, "100 - 30: the 50 of the new leader are gone, and nobody was told");
}

#[test]
fn a_refusal_undoes_the_whole_transaction_also_what_it_wrote_before() {
    for (name, isolation) in ["undone_rc", "undone_rr", "undone_s"].into_iter().zip(ISOLATIONS) {
        let database = database(name);
        let (mut old, mut new) = (database.connect(), database.connect());
        let mut transaction = new.transaction().unwrap();
        assert_eq!(by_term(&mut transaction, "prices", packed(2, 1)).unwrap(), "newer");
        transaction.commit().unwrap();
        let mut transaction = old.build_transaction().isolation_level(isolation).start().unwrap();
        transaction.execute("UPDATE prices SET amount = 70 WHERE id = 1", &[]).unwrap();
        let error = by_term(&mut transaction, "prices", packed(1, 9)).unwrap_err();
        assert_eq!(code(&error), STALE);
        let newest = error.as_db_error().unwrap().detail().map(str::parse);
        assert_eq!(newest, Some(Ok(Token::new(Term(2), 1))));
        transaction.commit().unwrap(); // Of a transaction that failed: PostgreSQL undoes it.
        assert_eq!(price(&mut new), 100);
    }
}

#[test]
fn a_token_that_is_not_committed_was_not_admitted() {
    let database = database("not_committed");
    let mut client = database.connect();
    let mut transaction = client.transaction().unwrap();
    by_term(&mut transaction, "prices", packed(9, 1)).unwrap();
    transaction.rollback().unwrap();
    let mut transaction = client.transaction().unwrap();
    assert_eq!(by_term(&mut transaction, "prices", packed(1, 1)).unwrap(), "newer");
}

/// Eight writers of one leader, 200 transactions each. Returns how many had to be tried again.
fn eight_writers(database: &Database, isolation: IsolationLevel) -> u32 {
    let retries = AtomicU32::new(0);
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for writer in 0..8_u64 {
            let (begin, retries) = (&begin, &retries);
            scope.spawn(move || {
                let mut client = database.connect();
                let name = writer.to_string();
                begin.wait();
                for number in 0..200 {
                    let token = packed(3, 1 + number * 8 + writer);
                    let write = |transaction: &mut Transaction<'_>| {
                        by_term(transaction, "log", token)?;
                        let sql = "INSERT INTO log (resource, term, writer) VALUES ('log', 3, $1)";
                        transaction.execute(sql, &[&name])
                    };
                    retrying(&mut client, isolation, retries, write).unwrap();
                }
            });
        }
    });
    let counts = "SELECT count(*), count(DISTINCT writer) FROM log";
    let row = database.connect().query_one(counts, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1600, 8));
    retries.into_inner()
}

#[test]
fn by_term_eight_concurrent_writers_of_one_leader_are_all_admitted() {
    assert_eq!(
        eight_writers(&database("eight_rc"), IsolationLevel::ReadCommitted),
        0,
        "not even tried again"
    );
    for (name, isolation) in [("eight_rr", ISOLATIONS[1]), ("eight_s", ISOLATIONS[2])] {
        let retries = eight_writers(&database(name), isolation);
        println!("{isolation:?}: {retries} of 1600 transactions were tried again");
    }
}

#[test]
fn by_term_writes_of_one_leader_go_on_side_by_side() {
    for (name, isolation) in ["side_rc", "side_rr", "side_s"].into_iter().zip(ISOLATIONS) {
        let database = database(name);
        let mut clients = [database.connect(), database.connect(), database.connect()];
        let mut first = clients[0].transaction().unwrap();
        by_term(&mut first, "r", packed(3, 1)).unwrap();
        first.commit().unwrap();
        let open = clients.each_mut().map(|client| {
            let mut transaction = client.build_transaction().isolation_level(isolation).start().unwrap();
            transaction.batch_execute("SET LOCAL lock_timeout = '20s'").unwrap();
            assert_eq!(by_term(&mut transaction, "r", packed(3, 2)).unwrap(), "same_term");
            transaction
        });
        // All three are admitted, and none has ended.
        open.into_iter().for_each(|transaction| transaction.commit().unwrap());
    }
}

#[test]
fn a_new_leader_waits_for_what_was_admitted_and_afterwards_nothing_old_is() {
    let database = database("takes_over");
    let mut watch = database.connect();
    let begin = Barrier::new(9);
    let seen: i64 = thread::scope(|scope| {
        for _ in 0..8 {
            let (begin, database) = (&begin, &database);
            scope.spawn(move || {
                let mut client = database.connect();
                begin.wait();
                for number in 1.. {
                    let mut transaction = client.transaction().unwrap();
                    match by_term(&mut transaction, "log", packed(1, number)) {
                        Ok(_) => {}
                        Err(error) => return assert_eq!(code(&error), STALE),
                    }
                    transaction.execute("INSERT INTO log (term) VALUES (1)", &[]).unwrap();
                    transaction.commit().unwrap();
                }
            });
        }
        let mut new = database.connect();
        begin.wait();
        while count(&mut watch, 1) < 100 {
            thread::yield_now();
        }
        let mut transaction = new.transaction().unwrap();
        by_term(&mut transaction, "log", packed(2, 1)).unwrap();
        let seen = transaction.query_one("SELECT count(*) FROM log WHERE term = 1", &[]).unwrap().get(0);
        transaction.execute("INSERT INTO log (term) VALUES (2)", &[]).unwrap();
        transaction.commit().unwrap();
        seen
    });
    assert!(seen >= 100);
    assert_eq!(count(&mut watch, 1), seen, "the new leader saw all that the old one ever wrote");
}

/// The values that a new leader reads in the transaction that shows its token, after it has waited
/// for a write of the old one.
fn read_while_taking_over(database: &Database, isolation: IsolationLevel) -> (i64, u32) {
    let (mut old, mut new, mut watch) = (database.connect(), database.connect(), database.connect());
    let admitted = old.batch_execute("SELECT tenure.admit_by_term('prices', 4294967297)");
    admitted.unwrap();
    let mut writing = old.build_transaction().isolation_level(isolation).start().unwrap();
    by_term(&mut writing, "prices", packed(1, 2)).unwrap();
    writing.execute("UPDATE prices SET amount = 70 WHERE id = 1", &[]).unwrap();
    let retries = AtomicU32::new(0);
    let read = thread::scope(|scope| {
        let taking_over = scope.spawn(|| {
            retrying(&mut new, isolation, &retries, |transaction| {
                by_term(transaction, "prices", packed(2, 1))?;
                let read = transaction.query_one("SELECT amount FROM prices WHERE id = 1", &[])?;
                transaction.execute("INSERT INTO log (term) VALUES (2)", &[])?;
                Ok(read.get(0))
            })
        });
        until_somebody_waits(&mut watch);
        writing.commit().unwrap();
        taking_over.join().unwrap().unwrap()
    });
    (read, retries.into_inner())
}

#[test]
fn a_new_leader_that_admits_first_reads_what_the_old_one_wrote() {
    assert_eq!(read_while_taking_over(&database("reads_rc"), IsolationLevel::ReadCommitted), (70, 0));
    assert_eq!(
        read_while_taking_over(&database("reads_s"), IsolationLevel::Serializable),
        (70, 1),
        "tried again"
    );
}

#[test]
fn under_repeatable_read_a_new_leader_reads_the_old_ones_writes_only_in_its_next_transaction() {
    let database = database("reads_rr");
    assert_eq!(read_while_taking_over(&database, IsolationLevel::RepeatableRead), (100, 0), "as documented");
    assert_eq!(price(&mut database.connect()), 70);
}

fn count(client: &mut Client, term: i64) -> i64 {
    client.query_one("SELECT count(*) FROM log WHERE term = $1", &[&term]).unwrap().get(0)
}

#[test]
fn in_order_an_overtaken_edict_is_refused_and_only_its_writer_may_repeat_the_newest() {
    let database = database("in_order");
    let mut client = database.connect();
    let mut admit = |number, writer| {
        let mut transaction = client.transaction().unwrap();
        let outcome = in_order(&mut transaction, packed(3, number), writer);
        transaction.commit().unwrap();
        outcome.map_err(|error| code(&error).to_owned())
    };
    assert_eq!(admit(4, "alpha"), Ok("newer".to_owned()));
    assert_eq!(admit(5, "alpha"), Ok("newer".to_owned()));
    assert_eq!(admit(4, "alpha"), Err(STALE.to_owned()), "overtaken");
    assert_eq!(admit(5, "alpha"), Ok("again".to_owned()), "a retry");
    assert_eq!(admit(5, "clone of alpha"), Err(STALE.to_owned()));
    assert_eq!(admit(6, "alpha"), Ok("newer".to_owned()));
}

#[test]
fn in_order_a_retry_that_meets_its_first_attempt_waits_for_it() {
    let database = database("meets_itself");
    for (number, commits, expected) in [(1, true, "again"), (2, false, "newer")] {
        let (mut first, mut second, mut watch) = (database.connect(), database.connect(), database.connect());
        let mut attempt = first.transaction().unwrap();
        in_order(&mut attempt, packed(1, number), "alpha").unwrap();
        thread::scope(|scope| {
            let retry = scope.spawn(|| {
                let mut transaction = second.transaction().unwrap();
                let outcome = in_order(&mut transaction, packed(1, number), "alpha").unwrap();
                transaction.commit().unwrap();
                outcome
            });
            until_somebody_waits(&mut watch);
            if commits { attempt.commit() } else { attempt.rollback() }.unwrap();
            assert_eq!(retry.join().unwrap(), expected);
        });
    }
}

/// Two that come first to a resource: one has been admitted but has not ended when the other comes.
fn two_first(
    database: &Database,
    resource: &str,
    first: u64,
    second: u64,
    commits: bool,
) -> Result<String, String> {
    let (mut one, mut two, mut watch) = (database.connect(), database.connect(), database.connect());
    let mut transaction = one.transaction().unwrap();
    assert_eq!(by_term(&mut transaction, resource, packed(first, 1)).unwrap(), "newer");
    thread::scope(|scope| {
        let other: ScopedJoinHandle<'_, _> = scope.spawn(|| {
            let mut transaction = two.transaction().unwrap();
            let outcome = by_term(&mut transaction, resource, packed(second, 1));
            transaction.commit().unwrap();
            outcome.map_err(|error| code(&error).to_owned())
        });
        until_somebody_waits(&mut watch);
        if commits { transaction.commit() } else { transaction.rollback() }.unwrap();
        other.join().unwrap()
    })
}

#[test]
fn of_two_first_writers_the_second_is_judged_by_what_the_first_has_committed() {
    let database = database("two_first");
    assert_eq!(two_first(&database, "older first", 1, 2, true), Ok("newer".to_owned()));
    assert_eq!(two_first(&database, "newer first", 2, 1, true), Err(STALE.to_owned()));
    assert_eq!(two_first(&database, "same leader", 2, 2, true), Ok("same_term".to_owned()));
    assert_eq!(two_first(&database, "undone", 2, 1, false), Ok("newer".to_owned()));
}

#[test]
fn leaders_that_race_for_new_resources_are_never_out_of_order() {
    for (name, isolation) in ["race_rc", "race_rr", "race_s"].into_iter().zip(ISOLATIONS) {
        let database = database(name);
        let (begin, retries) = (Barrier::new(8), AtomicU32::new(0));
        thread::scope(|scope| {
            for writer in 0..8_u64 {
                let (begin, retries, database) = (&begin, &retries, &database);
                scope.spawn(move || {
                    let mut client = database.connect();
                    for round in 0..25_u64 {
                        // Four leaders, each with two writers; who is first differs from round to
                        // round.
                        let term = 1 + (writer + round) % 4;
                        let resource = format!("r{round}");
                        let write = |transaction: &mut Transaction<'_>| {
                            by_term(transaction, &resource, packed(term, 1))?;
                            let sql = "INSERT INTO log (resource, term) VALUES ($1, $2)";
                            transaction.execute(sql, &[&resource, &i64::try_from(term).unwrap()])
                        };
                        begin.wait();
                        if let Err(error) = retrying(&mut client, isolation, retries, write) {
                            assert_eq!(code(&error), STALE);
                        }
                    }
                });
            }
        });
        let rows =
            database.connect().query("SELECT resource, term FROM log ORDER BY resource, at", &[]).unwrap();
        let rows: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert!(rows.is_sorted(), "{isolation:?}: {rows:?}");
        assert_eq!(rows.iter().filter(|(_, term)| *term == 4).count(), 50, "the newest is never refused");
        println!("{isolation:?}: {} of 200 admitted, {} tried again", rows.len(), retries.into_inner());
    }
}

#[test]
fn both_rules_and_both_forms_judge_as_the_pure_fence_does() {
    const BY_TERM: [&str; 2] = [
        "SELECT tenure.admit_by_term($1, $2::text::bigint)",
        "SELECT tenure.admit_by_term_wide($1, $2::text::numeric)",
    ];
    const IN_ORDER: [&str; 2] = [
        "SELECT tenure.admit_in_order($1, $2::text::bigint, $3)",
        "SELECT tenure.admit_in_order_wide($1, $2::text::numeric, $3)",
    ];
    let database = database("as_the_pure");
    let mut client = database.connect();
    for (seed, rule) in (0..20).flat_map(|seed| [(seed, Rule::ByTerm), (seed, Rule::InOrder)]) {
        let resource = format!("{rule:?} {seed}");
        for (index, arrival) in judged(rule, seed).into_iter().enumerate() {
            // The forms alternate: they are stored in the same way.
            let token =
                [arrival.token.pack().unwrap().to_string(), arrival.token.to_string()][index % 2].clone();
            let row = match rule {
                Rule::ByTerm => client.query_one(BY_TERM[index % 2], &[&resource, &token]),
                Rule::InOrder => client.query_one(IN_ORDER[index % 2], &[&resource, &token, &arrival.writer]),
            };
            let outcome = match row {
                Ok(row) => Some(row.get::<_, String>(0)),
                Err(error) => {
                    assert_eq!(code(&error), STALE, "seed {seed}: {error}");
                    None
                }
            };
            assert_eq!(outcome.as_deref(), arrival.expected, "seed {seed}, {rule:?}, {index}: {arrival:?}");
        }
    }
}

#[test]
fn the_largest_tokens_of_both_forms_are_stored_exactly() {
    let database = database("largest");
    let mut client = database.connect();
    let largest = Token::new(Term(u64::MAX), u64::MAX);
    client.batch_execute(&format!("SELECT tenure.admit_in_order_wide('r', {largest}, 'alpha')")).unwrap();
    client.batch_execute(&format!("SELECT tenure.admit_by_term('s', {})", i64::MAX)).unwrap();
    let rows =
        client.query("SELECT term::text, number::text FROM tenure.fence ORDER BY resource", &[]).unwrap();
    let rows: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let pair = |term: u64, number: u64| (term.to_string(), number.to_string());
    assert_eq!(rows, [pair(u64::MAX, u64::MAX), pair((1 << 31) - 1, (1 << 32) - 1)]);
}

#[test]
fn what_is_no_token_is_refused() {
    let database = database("no_token");
    let mut client = database.connect();
    let two_to_128 = "340282366920938463463374607431768211456";
    let bad = [
        "admit_by_term('r', NULL)",
        "admit_by_term(NULL, 4294967297)",
        "admit_by_term('r', 0)",
        "admit_by_term('r', -1)",
        "admit_by_term('r', 4294967295)",
        "admit_by_term_wide('r', NULL)",
        "admit_by_term_wide('r', 4294967297)",
        "admit_by_term_wide('r', 18446744073709551616.5)",
        "admit_by_term_wide('r', -18446744073709551616)",
        &format!("admit_by_term_wide('r', {two_to_128})"),
        "admit_by_term_wide('r', 'NaN')",
        "admit_by_term_wide('r', 'Infinity')",
        "admit_by_term_wide('r', '-Infinity')",
        "admit_in_order('r', 4294967297, NULL)",
        "admit('r', NULL, 1, 1, NULL)",
        "admit('r', 'by_term', 1, NULL, NULL)",
        "admit('r', 'by_term', 1.5, 1, NULL)",
    ];
    for call in bad {
        let error = client.batch_execute(&format!("SELECT tenure.{call}")).unwrap_err();
        assert_eq!(code(&error), NOT_A_TOKEN, "{call}: {error}");
    }
    let wide_to_packed =
        client.batch_execute("SELECT tenure.admit_by_term('r', 18446744073709551617)").unwrap_err();
    assert_eq!(code(&wide_to_packed), "42883", "there is no function for it");
    let rows: i64 = client.query_one("SELECT count(*) FROM tenure.fence", &[]).unwrap().get(0);
    assert_eq!(rows, 0);
}

#[test]
fn a_resource_keeps_its_rule() {
    let database = database("other_rule");
    let mut client = database.connect();
    client.batch_execute("SELECT tenure.admit_by_term('by term', 4294967297)").unwrap();
    client.batch_execute("SELECT tenure.admit_in_order('in order', 4294967297, 'alpha')").unwrap();
    for call in ["admit_in_order('by term', 8589934593, 'alpha')", "admit_by_term('in order', 8589934593)"] {
        let error = client.batch_execute(&format!("SELECT tenure.{call}")).unwrap_err();
        assert_eq!(code(&error), OTHER_RULE, "{call}");
    }
}

#[test]
fn eight_may_install_at_once_and_installing_again_loses_nothing() {
    let database = Server::shared().database("install");
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = database.connect();
                begin.wait();
                client.batch_execute(INSTALL).unwrap();
                client.batch_execute("SELECT tenure.admit_by_term('r', 8589934593)").unwrap();
                client.execute(INSTALL, &[]).unwrap(); // As a prepared statement: it is one.
            });
        }
    });
    let error = database.connect().batch_execute("SELECT tenure.admit_by_term('r', 4294967297)").unwrap_err();
    assert_eq!(code(&error), STALE);
}

#[test]
fn a_role_with_the_documented_grants_can_write_under_the_fence() {
    let database = database("grants");
    let mut client = database.connect();
    let grants: Vec<&str> = INSTALL
        .lines()
        .filter_map(|line| line.strip_prefix("--     "))
        .filter(|line| line.starts_with("GRANT"))
        .collect();
    assert_eq!(grants.len(), 2);
    client.batch_execute("CREATE ROLE writers").unwrap();
    client.batch_execute(&grants.concat()).unwrap();
    client.batch_execute("SET ROLE writers; SET search_path = ''").unwrap();
    for token in [packed(1, 1), packed(1, 2), packed(2, 1)] {
        client.query_one("SELECT tenure.admit_by_term('r', $1)", &[&token]).unwrap();
    }
    client.batch_execute("DELETE FROM tenure.fence").unwrap_err();
}
