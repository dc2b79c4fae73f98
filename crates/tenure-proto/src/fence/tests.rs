use super::*;
use crate::strong::Term;

/// A generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

type Write = (Token, u64);

fn token(term: u64, number: u64) -> Token {
    Token::new(Term(term), number)
}

/// The writes of a few leaders as a resource sees them: late, twice, in any order. A term is led by
/// one writer.
fn arrivals(random: &mut Random) -> Vec<Write> {
    let mut arrivals = Vec::new();
    for _ in 0..30 {
        let term = 1 + random.below(4);
        let write = (token(term, 1 + random.below(6)), term % 3);
        for _ in 0..1 + random.below(2) {
            arrivals.push(write);
        }
    }
    arrivals
}

fn fed(rule: Rule, writes: &[Write]) -> Fence<u64> {
    let mut fence = Fence { rule, newest: None };
    for (token, writer) in writes {
        let _ = fence.admit(*token, *writer); // Refusals are part of it.
    }
    fence
}

#[test]
fn the_paused_leaders_write_is_refused_by_both_fences() {
    for mut fence in [Fence::by_term(), Fence::in_order()] {
        fence.admit(token(1, 1), "alpha").unwrap();
        fence.admit(token(2, 1), "beta").unwrap();
        assert_eq!(fence.admit(token(1, 2), "alpha"), Err(Stale { newest: token(2, 1) }));
        assert_eq!(fence.admit(token(1, u64::MAX), "alpha"), Err(Stale { newest: token(2, 1) }));
    }
}

#[test]
fn by_term_one_leaders_writes_may_overtake_each_other() {
    let mut fence = Fence::by_term();
    assert_eq!(fence.admit(token(3, 5), "alpha"), Ok(Admitted::Newer));
    assert_eq!(fence.admit(token(3, 2), "alpha"), Ok(Admitted::SameTerm));
    assert_eq!(fence.newest.as_ref().map(|newest| newest.token), Some(token(3, 5)));
}

#[test]
fn by_term_a_leader_may_share_its_token_with_helpers() {
    let mut fence = Fence::by_term();
    let shared = Token::of_term(Term(3));
    assert_eq!(fence.admit(shared, "alpha"), Ok(Admitted::Newer));
    assert_eq!(fence.admit(shared, "alpha"), Ok(Admitted::SameTerm));
    assert_eq!(fence.admit(shared, "helper"), Ok(Admitted::SameTerm));
}

#[test]
fn in_order_an_overtaken_write_is_refused_even_if_it_was_admitted_before() {
    let mut fence = Fence::in_order();
    assert_eq!(fence.admit(token(3, 4), "alpha"), Ok(Admitted::Newer));
    assert_eq!(fence.admit(token(3, 5), "alpha"), Ok(Admitted::Newer));
    assert_eq!(fence.admit(token(3, 4), "alpha"), Err(Stale { newest: token(3, 5) }));
}

#[test]
fn in_order_the_same_write_again_is_a_retry_and_only_its_writer_may() {
    let mut fence = Fence::in_order();
    fence.admit(token(3, 4), "alpha").unwrap();
    assert_eq!(fence.admit(token(3, 4), "alpha"), Ok(Admitted::Again));
    assert_eq!(fence.admit(token(3, 4), "clone of alpha"), Err(Stale { newest: token(3, 4) }));
    assert_eq!(fence.admit(token(3, 4), "alpha"), Ok(Admitted::Again));
}

#[test]
fn by_term_never_admits_a_smaller_term_after_a_larger_and_refuses_nothing_else() {
    for seed in 0..500 {
        let mut fence = Fence::by_term();
        let mut largest = Term(0);
        for (token, writer) in arrivals(&mut Random(seed)) {
            let expected = match token.term().cmp(&largest) {
                Ordering::Greater => Some(Admitted::Newer),
                Ordering::Equal => Some(Admitted::SameTerm),
                Ordering::Less => None,
            };
            assert_eq!(fence.admit(token, writer).ok(), expected, "seed {seed}");
            largest = largest.max(token.term());
        }
    }
}

#[test]
fn in_order_admits_exactly_the_increasing_subsequence_and_retries_of_its_end() {
    for seed in 0..500 {
        let mut fence = Fence::in_order();
        let mut rising: Vec<Write> = Vec::new();
        for write in arrivals(&mut Random(seed)) {
            let expected = match rising.last() {
                Some(last) if *last == write => Ok(Admitted::Again),
                Some(last) if last.0 >= write.0 => Err(Stale { newest: last.0 }),
                _ => Ok(Admitted::Newer),
            };
            assert_eq!(fence.admit(write.0, write.1), expected, "seed {seed}");
            if expected == Ok(Admitted::Newer) {
                rising.push(write);
            }
        }
        assert!(rising.is_sorted_by(|a, b| a.0 < b.0), "seed {seed}");
    }
}

#[test]
fn a_refusal_changes_nothing_and_no_write_moves_a_fence_back() {
    for (seed, rule) in (0..300).flat_map(|seed| [(seed, Rule::ByTerm), (seed, Rule::InOrder)]) {
        let mut fence = fed(rule, &[]);
        for (token, writer) in arrivals(&mut Random(seed)) {
            let before = fence.clone();
            let refused = fence.admit(token, writer).is_err();
            assert!(!refused || fence == before, "seed {seed} {rule:?}");
            let reached = |fence: &Fence<u64>| fence.newest.map(|newest| newest.token);
            assert!(reached(&fence) >= reached(&before), "seed {seed} {rule:?}");
        }
    }
}

#[test]
fn a_fence_restored_from_an_old_copy_and_merged_with_a_newer_has_forgotten_nothing() {
    for (seed, rule) in (0..300).flat_map(|seed| [(seed, Rule::ByTerm), (seed, Rule::InOrder)]) {
        let mut random = Random(seed);
        let writes = arrivals(&mut random);
        let cut = usize::try_from(random.below(30)).unwrap();
        let (old, new) = (fed(rule, &writes[..cut]), fed(rule, &writes));
        for (mut restored, other) in [(old.clone(), new.clone()), (new.clone(), old)] {
            restored.merge(other);
            assert_eq!(restored, new, "seed {seed} {rule:?}");
        }
    }
}

#[test]
fn copies_may_be_merged_in_any_order_and_any_number_of_times() {
    let merged = |a: &Fence<u64>, b: &Fence<u64>| {
        let mut merged = a.clone();
        merged.merge(b.clone());
        merged
    };
    for (seed, rule) in (0..300).flat_map(|seed| [(seed, Rule::ByTerm), (seed, Rule::InOrder)]) {
        let mut random = Random(seed);
        // Copies that went separate ways, and writers that broke the rule of one writer a term.
        let [a, b, c] = [(); 3].map(|()| {
            let len = random.below(3);
            let writes: Vec<Write> =
                (0..len).map(|_| (token(1, 1 + random.below(3)), random.below(3))).collect();
            fed(rule, &writes)
        });
        assert_eq!(merged(&a, &b), merged(&b, &a), "seed {seed}");
        assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)), "seed {seed}");
        assert_eq!(merged(&a, &a), a, "seed {seed}");
        assert_eq!(merged(&merged(&a, &b), &b), merged(&a, &b), "seed {seed}");
    }
}

#[test]
fn a_merged_fence_refuses_what_either_copy_refused() {
    for (seed, rule) in (0..300).flat_map(|seed| [(seed, Rule::ByTerm), (seed, Rule::InOrder)]) {
        let mut random = Random(seed);
        let [ours, theirs] = [(); 2].map(|()| fed(rule, &arrivals(&mut random)[..4]));
        let mut merged = ours.clone();
        merged.merge(theirs.clone());
        for (token, writer) in arrivals(&mut random) {
            let refuses = |fence: &Fence<u64>| fence.clone().admit(token, writer).is_err();
            assert!(!(refuses(&ours) || refuses(&theirs)) || refuses(&merged), "seed {seed} {rule:?}");
        }
    }
}

#[test]
fn copies_that_disagree_on_the_writer_let_neither_repeat() {
    let mut ours = Fence::in_order();
    ours.admit(token(1, 1), "alpha").unwrap();
    let mut theirs = Fence::in_order();
    theirs.admit(token(1, 1), "clone of alpha").unwrap();
    ours.merge(theirs);
    assert_eq!(ours.admit(token(1, 1), "alpha"), Err(Stale { newest: token(1, 1) }));
    assert_eq!(ours.admit(token(1, 2), "alpha"), Ok(Admitted::Newer));
}

#[test]
fn a_refusal_says_what_was_admitted() {
    assert_eq!(
        Stale { newest: token(1, 2) }.to_string(),
        "refused: edict 2 of term 1 was admitted here already (token 18446744073709551618)"
    );
}
