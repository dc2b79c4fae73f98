//! Tokens, counters, quorum stamps and the creation of edicts, each by itself. Whole histories:
//! `histories.rs`.

use std::cmp::Ordering;

use super::*;
use crate::time::Stamp;
use crate::{Incarnation, LocalTime, NodeId};

/// A generator (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// A number of up to `bits` bits, of any magnitude as likely as of any other.
    fn of_any_size(&mut self, bits: u32) -> u64 {
        let size = self.bits() % u64::from(bits + 1);
        if size == 0 { 0 } else { self.bits() >> (64 - size) }
    }
}

/// Where something could go wrong: both ends of every part of both forms.
fn edges(last: u64) -> Vec<u64> {
    let mut edges = vec![0, 1, 2, last - 1, last];
    for bit in [31, 32, 63] {
        edges.extend([(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    }
    edges.retain(|edge| *edge <= last);
    edges
}

fn tokens(last_term: u64, last_number: u64) -> Vec<Token> {
    let numbers = edges(last_number);
    let pairs =
        edges(last_term).into_iter().flat_map(|term| numbers.iter().map(move |number| (term, *number)));
    pairs.map(|(term, number)| Token::new(Term(term), number)).collect()
}

fn check_same_order<F: Ord>(a: (Token, F), b: (Token, F)) {
    let by_parts = (a.0.term(), a.0.number()).cmp(&(b.0.term(), b.0.number()));
    assert_eq!(a.0.cmp(&b.0), by_parts, "{:?} {:?}", a.0, b.0);
    assert_eq!(a.1.cmp(&b.1), by_parts, "{:?} {:?}", a.0, b.0);
}

#[test]
fn wide_tokens_compare_as_term_and_number_at_every_edge() {
    let tokens = tokens(u64::MAX, u64::MAX);
    for a in &tokens {
        assert_eq!(Token::from_u128(a.as_u128()), *a);
        for b in &tokens {
            check_same_order((*a, a.as_u128()), (*b, b.as_u128()));
        }
    }
}

#[test]
fn packed_tokens_are_not_negative_and_compare_as_wide_ones_at_every_edge() {
    let tokens = tokens(PackedToken::LAST_TERM.0, PackedToken::LAST_NUMBER);
    for a in &tokens {
        let packed = a.pack().unwrap();
        assert!(packed.as_i64() >= 0);
        assert_eq!((packed.token(), PackedToken::from_i64(packed.as_i64())), (*a, Ok(packed)));
        for b in &tokens {
            check_same_order((*a, packed.as_i64()), (*b, b.pack().unwrap().as_i64()));
        }
    }
    let last = Token::new(PackedToken::LAST_TERM, PackedToken::LAST_NUMBER);
    assert_eq!(last.pack().unwrap().as_i64(), i64::MAX);
}

#[test]
fn both_forms_keep_the_order_of_random_tokens() {
    let mut random = Random(1);
    for _ in 0..100_000 {
        let wide = [(); 2].map(|()| Token::new(Term(random.of_any_size(64)), random.of_any_size(64)));
        check_same_order((wide[0], wide[0].as_u128()), (wide[1], wide[1].as_u128()));
        let narrow = [(); 2].map(|()| Token::new(Term(random.of_any_size(31)), random.of_any_size(32)));
        let packed = narrow.map(|token| token.pack().unwrap());
        check_same_order((narrow[0], packed[0].as_i64()), (narrow[1], packed[1].as_i64()));
        assert_eq!(packed.map(PackedToken::token), narrow);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_way_out() {
    let too_late = Token::new(Term(PackedToken::LAST_TERM.0 + 1), 1).pack().unwrap_err();
    let too_many = Token::new(Term(1), PackedToken::LAST_NUMBER + 1).pack().unwrap_err();
    assert_eq!((too_late.what, too_many.what), (Part::Term, Part::Counter));
    assert_eq!(Token::from_u128(u128::MAX).pack(), Err(Exhausted { what: Part::Term }));
    for refusal in [too_late, too_many] {
        assert!(refusal.to_string().contains("u128 form"), "{refusal}");
    }
    assert!(too_many.to_string().contains("new term"), "{too_many}");
    assert_eq!(PackedToken::from_i64(-1), Err(TokenError::Negative));
    assert_eq!(PackedToken::from_i64(i64::MIN), Err(TokenError::Negative));
}

#[test]
fn a_token_survives_being_written_and_read() {
    let mut random = Random(2);
    for _ in 0..10_000 {
        let token = Token::new(Term(random.of_any_size(64).max(1)), random.of_any_size(64));
        assert_eq!(token.to_string().parse(), Ok(token));
        let packed = Token::new(Term(random.of_any_size(31).max(1)), random.of_any_size(32)).pack().unwrap();
        assert_eq!(packed.to_string().parse(), Ok(packed));
    }
    let last = Token::from_u128(u128::MAX);
    assert_eq!(last.to_string(), "340282366920938463463374607431768211455");
    assert_eq!(last.to_string().parse(), Ok(last));
    assert_eq!("0004294967296".parse(), Token::of_term(Term(1)).pack().map_err(|_| TokenError::Empty));
}

#[test]
fn what_is_no_token_is_refused_with_a_reason() {
    let wide = |text: &str| text.parse::<Token>().unwrap_err();
    assert_eq!(wide(""), TokenError::Empty);
    assert_eq!(wide("-1"), TokenError::Negative);
    for (text, found) in [("+1", '+'), (" 1", ' '), ("1\n", '\n'), ("0x1f", 'x'), ("7.3", '.'), ("٣", '٣')]
    {
        assert_eq!(wide(text), TokenError::NotADigit { found });
    }
    assert_eq!(wide("340282366920938463463374607431768211456"), TokenError::TooLarge { form: Form::Full });
}

#[test]
fn one_form_is_not_taken_for_the_other() {
    let token = Token::new(Term(7), 1);
    let packed = token.pack().unwrap();
    assert_eq!(packed.to_string().parse::<Token>(), Err(TokenError::NoTerm { form: Form::Full }));
    assert_eq!(token.to_string().parse::<PackedToken>(), Err(TokenError::TooLarge { form: Form::Packed }));
    assert_eq!("7".parse::<PackedToken>(), Err(TokenError::NoTerm { form: Form::Packed }));
    assert_eq!("9223372036854775808".parse::<PackedToken>().unwrap_err().to_string(), {
        "too large for a packed token, which has 63 bits: is it the u128 form?"
    });
}

#[test]
fn a_counter_hands_out_rising_numbers_from_one_and_then_none() {
    let mut counter = Counter::packed();
    assert_eq!(counter.left(), PackedToken::LAST_NUMBER);
    assert_eq!([counter.take(), counter.take()], [Ok(1), Ok(2)]);
    assert_eq!(counter.left(), PackedToken::LAST_NUMBER - 2);
}

#[test]
fn a_used_up_counter_stays_used_up_and_does_not_wrap() {
    for last in [PackedToken::LAST_NUMBER, u64::MAX] {
        let mut counter = Counter::ending(last - 1, last);
        assert_eq!([counter.take(), counter.take()], [Ok(last - 1), Ok(last)]);
        assert_eq!(counter.left(), 0);
        for _ in 0..3 {
            assert_eq!(counter.take(), Err(Exhausted { what: Part::Counter }));
        }
    }
}

#[test]
fn every_number_of_a_packed_counter_packs() {
    let mut counter = Counter::ending(PackedToken::LAST_NUMBER, PackedToken::LAST_NUMBER);
    let edict = Edict { tag: Term(1), number: counter.take().unwrap() };
    assert!(edict.token().pack().is_ok());
}

#[test]
fn a_terms_own_token_lies_between_older_edicts_and_its_own() {
    let first = Edict { tag: Term(7), number: Counter::new().take().unwrap() };
    assert!(Token::of_term(Term(7)) < first.token());
    assert!(Token::of_term(Term(7)) > Token::new(Term(6), u64::MAX));
}

fn stamp(life: u128, nanos: u64, count: u32) -> Stamp {
    Stamp { incarnation: Incarnation(life), at: LocalTime::from_nanos(nanos), count }
}

fn quorum(stamps: &[(u64, u64)]) -> QuorumStamp {
    stamps.iter().map(|(node, nanos)| (NodeId(*node), stamp(1, *nanos, 0))).collect()
}

#[test]
fn quorum_stamps_compare_by_any_shared_grantor() {
    let first = quorum(&[(0, 900), (1, 20), (2, 7)]);
    let second = quorum(&[(1, 21), (2, 8), (3, 1)]);
    assert_eq!(first.order(&second), Ok(Ordering::Less));
    assert_eq!(second.order(&first), Ok(Ordering::Greater));
    assert_eq!(first.order(&first.clone()), Ok(Ordering::Equal));
}

#[test]
fn a_stamp_of_a_later_life_or_of_the_same_tick_is_later() {
    let granted = |stamp| QuorumStamp::from_iter([(NodeId(0), stamp)]);
    assert_eq!(granted(stamp(1, 500, 0)).order(&granted(stamp(1, 500, 1))), Ok(Ordering::Less));
    assert_eq!(granted(stamp(1, 500, 9)).order(&granted(stamp(2, 0, 0))), Ok(Ordering::Less));
}

#[test]
fn malformed_quorum_stamps_do_not_compare_and_say_why() {
    let ours = quorum(&[(0, 10), (1, 10)]);
    assert_eq!(ours.order(&quorum(&[(2, 10), (3, 10)])), Err(Incomparable::NothingShared));
    assert_eq!(ours.order(&quorum(&[])), Err(Incomparable::NothingShared));
    let (before, after) = (NodeId(0), NodeId(1));
    assert_eq!(ours.order(&quorum(&[(0, 11), (1, 9)])), Err(Incomparable::Contradiction { before, after }));
    let shared = Err(Incomparable::SharedStamp { grantor: NodeId(1) });
    assert_eq!(ours.order(&quorum(&[(0, 11), (1, 10)])), shared);
    // A late Ok was added: the same run, but no longer the same stamp.
    assert_eq!(ours.order(&quorum(&[(0, 10), (1, 10), (2, 10)])), shared);
}

#[test]
fn the_first_answer_of_a_grantor_counts() {
    let oks = [(NodeId(0), stamp(1, 5, 0)), (NodeId(0), stamp(1, 6, 0))];
    assert_eq!(QuorumStamp::from_iter(oks).get(NodeId(0)), Some(stamp(1, 5, 0)));
}

#[test]
fn the_epoch_decides_before_the_grantors_do() {
    let old = ByInstance { epoch: Epoch(1), quorum: quorum(&[(0, 900), (1, 900)]) };
    let new = ByInstance { epoch: Epoch(2), quorum: quorum(&[(0, 1), (5, 1)]) };
    assert_eq!(old.order(&new), Ok(Ordering::Less));
}

#[test]
fn a_term_keeps_the_epoch_of_its_first_run_or_loses_its_order() {
    // n0 led from epoch 1 on and renewed into 2; then a rival began a term in 3, whose grantors are
    // all others.
    let first = quorum(&[(0, 10), (1, 10)]);
    let rival = ByTerm { epoch: Epoch(3), first: quorum(&[(2, 5), (3, 5)]) };
    let kept = ByTerm { epoch: Epoch(1), first: first.clone() };
    assert_eq!(kept.order(&rival), Ok(Ordering::Less));
    let moved = ByTerm { epoch: Epoch(3), first };
    assert_eq!(moved.order(&rival), Err(Incomparable::NothingShared));
}

#[test]
fn a_leader_creates_and_others_do_not() {
    let at = LocalTime::from_nanos;
    let open = Authority { until: at(100), closed: false };
    assert_eq!(create(Term(3), 1, at(99), open), Ok(Edict { tag: Term(3), number: 1 }));
    assert_eq!(create(Term(3), 1, at(100), open), Err(NotLeader::Over { reading: at(100), until: at(100) }));
    assert_eq!(create(Term(3), 1, at(0), Authority { closed: true, ..open }), Err(NotLeader::Closed));
    let ended = Authority { until: LocalTime::ZERO, closed: false };
    let refusal = create(Term(3), 1, at(0), ended).unwrap_err();
    assert_eq!(refusal.to_string(), "not leader: the term has ended");
}

/// A process leads in term 1, a rival leads in term 2 and issues one edict, the process leads again
/// in term 3.
struct Story {
    /// E of term 1 as a thread would load it at each instant; the clock shows the instant.
    first: fn(u64) -> u64,
    /// From when on the process is not leader any more.
    ends: u64,
    /// When the rival issues.
    rival: u64,
    /// When term 3 begins; its E is beyond the story.
    again: u64,
}

const INSTANTS: u64 = 14;

const STORIES: [Story; 4] = [
    // The lease lapses, and the driver is too busy to say so.
    Story { first: |_| 5, ends: 5, rival: 6, again: 8 },
    // The lease is renewed, then lapses.
    Story { first: |at| if at < 3 { 4 } else { 7 }, ends: 7, rival: 8, again: 10 },
    // The process resigns.
    Story { first: |at| if at < 4 { 11 } else { 0 }, ends: 4, rival: 5, again: 8 },
    // The lease is renewed, then the process resigns.
    Story {
        first: |at| match at {
            0..3 => 5,
            3..6 => 12,
            _ => 0,
        },
        ends: 6,
        rival: 7,
        again: 9,
    },
];

/// When a thread did each step, and whether it loaded the E of its own term or that of the newest.
struct Thread {
    take: u64,
    sample: u64,
    load: u64,
    newest_term: bool,
}

/// Whether the thread's edict, if there is one, is valid and in order. `None`: there is none.
fn is_right(story: &Story, thread: &Thread) -> Option<bool> {
    let rules = thread.newest_term && thread.load >= story.again;
    let until = if rules { INSTANTS } else { (story.first)(thread.load) };
    let loaded = Authority { until: LocalTime::from_nanos(until), closed: false };
    let edict = create(Term(1), 1, LocalTime::from_nanos(thread.sample), loaded).ok()?;
    let rivals = Edict { tag: Term(2), number: 1 };
    let valid = thread.take < story.ends;
    let ordered = (edict < rivals) == (thread.take < story.rival);
    Some(valid && ordered)
}

/// All ways to lay three steps in this order over each story: how many edicts came out, and how
/// many of them wrong.
fn count(stories: &[Story], newest_term: bool, order: fn([u64; 3]) -> [u64; 3]) -> (u32, u32) {
    let (mut created, mut wrong) = (0, 0);
    for story in stories {
        for c in 0..INSTANTS {
            for (b, a) in (0..=c).flat_map(|b| (0..=b).map(move |a| (b, a))) {
                let [take, sample, load] = order([a, b, c]);
                let right = is_right(story, &Thread { take, sample, load, newest_term });
                created += u32::from(right.is_some());
                wrong += u32::from(right == Some(false));
            }
        }
    }
    (created, wrong)
}

#[test]
fn take_then_sample_then_load_is_right_wherever_the_thread_pauses() {
    let (created, wrong) = count(&STORIES, false, |[take, sample, load]| [take, sample, load]);
    assert!(created > 100, "{created}");
    assert_eq!(wrong, 0);
}

#[test]
fn to_load_before_the_sample_is_safe_but_misses_renewals_and_resignations() {
    let ours = |stories| count(stories, false, |[take, sample, load]| [take, sample, load]).0;
    let swapped = |stories| count(stories, false, |[take, load, sample]| [take, sample, load]);
    let [_, renewed, resigned, _] = &STORIES;
    assert_eq!(swapped(&STORIES).1, 0);
    assert!(swapped(std::slice::from_ref(renewed)).0 < ours(std::slice::from_ref(renewed)));
    assert!(swapped(std::slice::from_ref(resigned)).0 > ours(std::slice::from_ref(resigned)));
}

#[test]
fn every_order_that_does_not_take_the_number_first_breaks() {
    let orders: [fn([u64; 3]) -> [u64; 3]; 4] = [
        |[sample, take, load]| [take, sample, load],
        |[sample, load, take]| [take, sample, load],
        |[load, sample, take]| [take, sample, load],
        |[load, take, sample]| [take, sample, load],
    ];
    for order in orders {
        assert!(count(&STORIES, false, order).1 > 0);
    }
}

#[test]
fn an_edict_of_one_term_checked_against_another_breaks() {
    let (_, wrong) = count(&STORIES, true, |[take, sample, load]| [take, sample, load]);
    assert!(wrong > 0);
}
