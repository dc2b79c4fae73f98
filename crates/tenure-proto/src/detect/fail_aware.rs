//! Fail-aware datagrams: the receiver knows whether a datagram may have been long on its way.
//!
//! Clocks are not synchronised, so a send stamp alone says nothing. But a round trip can be timed
//! on one clock. Let a **helper** go from q to p, sent at A on q's clock and received at B on p's,
//! and then the message of interest from p to q, sent at C and received at D:
//!
//! ```text
//!        A                              D        q's clock
//!  q ----●------------------------------●---->
//!         \  helper            message /
//!  p ------●--------------------------●------>
//!          B                          C          p's clock
//! ```
//!
//! The real time from A to D is the helper's delay, the time from B to C, and the message's delay.
//! So
//!
//! ```text
//! delay(message) <= (D-A)/(1-ρ) - (C-B)/(1+ρ) - δmin          for EVERY choice of the helper
//! fast           := that bound <= Δ
//! ```
//!
//! The choice of the helper decides how tight the bound is, never whether it is true.
//! **Soundness**: fast implies a real delay of at most Δ. **Completeness**: between processes whose
//! messages all take at most δ everything is fast, if `Δ >= 2δ(1+ρ)/(1-ρ) - δmin + 4ρ·G/(1-ρ²)`
//! where G is the age of the helper. It is 4ρ, not 2ρ: clocks drift apart by 2ρ, and both
//! conversions add theirs.
//!
//! Two helpers are carried. The **newest**, by send stamp so that a straggler cannot displace a
//! timely one, gives the completeness above. The **best**, whose own delay was smallest with its
//! age charged to it, is often tighter, but alone it would need a larger Δ: it may hold on to an
//! old helper whose estimate looks better than it is.
//!
//! # Where there is no round trip yet
//!
//! Then the bound is infinite and the message slow. Two processes that only ever answer fast
//! messages would ignore each other forever. So every slow datagram, unless it is itself such a
//! helper, is answered at once with an empty **Helper** datagram ([`Receipt::wants_helper`]): one
//! for one, no rate limit, none in the steady state.
//!
//! # Lives
//!
//! A stamp of a former life of the receiver is of another clock's epoch: a helper that names
//! another life is ignored, or the bound would be arbitrary. Lives are only told apart, not
//! ordered: a process that lost its disk cannot count its lives. So a straggler of a former life
//! may come at any time, and must not displace the knowledge of the present one: neither its
//! stamps, nor which of its datagrams have come. Two lives of each peer are kept, and which of them
//! was last *fast*: that one is not forgotten for another that may be dead. From when an unknown
//! life is heard of until either of the two is fast, both are named.
//!
//! # Example
//!
//! ```
//! use tenure_proto::detect::fail_aware::{Exact, FailAware, Link};
//! use tenure_proto::time::{Drift, Incarnation, LocalSpan, Span};
//! use tenure_proto::LocalTime;
//!
//! let millis = |millis: u64| LocalTime::from_nanos(millis * 1_000_000);
//! let link = Link {
//!     drift: Drift::from_ppm(100).expect("a drift below one"),
//!     tick: LocalSpan::from_nanos(1),
//!     least_delay: Span::from_millis(1),
//!     fast: Span::from_millis(15),
//! };
//! let mut p = FailAware::new(link, (0, Incarnation(1)), 2);
//! let mut q = FailAware::new(link, (1, Incarnation(1)), 2);
//!
//! // The clock of q is 1000 ms ahead. Its first word takes 5 ms and is slow: p knows nothing yet.
//! let hello = q.stamp(0, millis(1000));
//! assert!(!p.receive(&Exact, 1, &hello, millis(5)).expect("no duplicate").fast);
//! // The answer, 5 ms on its way, is known to have taken at most 5 + 5 - 1 ms.
//! let answer = p.stamp(1, millis(6));
//! assert!(q.receive(&Exact, 0, &answer, millis(1011)).expect("no duplicate").fast);
//! ```

use crate::time::{Drift, Incarnation, LocalSpan, Span};
use crate::{Data, LocalTime};

/// All that is known about clocks and links, the same at every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// ρ: the bound on a clock's rate error.
    pub drift: Drift,
    /// g: readings are multiples of it.
    pub tick: LocalSpan,
    /// δmin: no message between different processes takes less. Zero is always true.
    pub least_delay: Span,
    /// Δ: a datagram that took no longer is fast.
    pub fast: Span,
}

/// The four readings of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamps {
    /// A: when the helper left, on the receiver's clock.
    pub helper_sent: LocalTime,
    /// B: when the helper arrived, on the sender's clock.
    pub helper_received: LocalTime,
    /// C: when the message left, on the sender's clock.
    pub sent: LocalTime,
    /// D: when the message arrived, on the receiver's clock.
    pub received: LocalTime,
}

/// The rules of the estimate, one function each. [`Exact`] takes them as they stand; the laboratory
/// breaks them.
pub trait Estimate: Data {
    /// The longest time that the message can have been on its way:
    /// `(D-A)/(1-ρ) - (C-B)/(1+ρ) - δmin`, rounded up. A clock may be almost a tick beyond its
    /// reading at D and at B.
    fn bound(&self, link: Link, stamps: Stamps) -> Span {
        let Stamps { helper_sent, helper_received, sent, received } = stamps;
        let round = link.drift.longest_real(received.remaining(helper_sent).plus(link.tick));
        let between = link.drift.least_real(sent.remaining(helper_received).minus(link.tick));
        round.minus(between).minus(link.least_delay)
    }

    /// Whether a helper was sent in this life of the receiver: else its A belongs to another epoch
    /// of the clock.
    fn is_of_this_life(&self, mine: Incarnation, named: Incarnation) -> bool {
        mine == named
    }
}

/// The rules as they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exact;

impl Estimate for Exact {}

/// An earlier datagram of the destination, named to it: with it the destination can bound the
/// delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HelperStamp {
    /// A: when it left, on the destination's clock.
    pub sent: LocalTime,
    /// B: when it came here.
    pub received: LocalTime,
    /// The life of the destination that sent it.
    pub incarnation: Incarnation,
}

/// The header of every datagram, different for every destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The life of the sender.
    pub incarnation: Incarnation,
    /// The sequence number of the datagram to this destination, in this life.
    pub number: u64,
    /// C: the sender's reading, taken before it left.
    pub sent: LocalTime,
    /// The newest helper, and the best, or the newest of another life.
    pub helpers: [Option<HelperStamp>; 2],
}

/// All that is known about a datagram that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// Whether it was certainly no longer than Δ on its way.
    pub fast: bool,
    /// The longest time that it can have been on its way; `None` if nothing is known.
    pub bound: Option<Span>,
    /// Whether no later one of the same life has come: only then is its report on its sender news.
    pub newest: bool,
}

impl Receipt {
    /// Whether the sender must be sent a Helper, because the datagram was not known to be fast. Not
    /// to be asked for Helpers themselves.
    pub fn wants_helper(self) -> bool {
        !self.fast
    }
}

/// The state kept for one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Peer {
    /// How many datagrams it was sent.
    sent: u64,
    /// Two of its lives at most, the one that was heard last first.
    lives: Vec<Life>,
    /// Whether no unknown life was heard of since one was fast: then that one is the present one.
    sure: bool,
}

impl Peer {
    /// The state of a life that is heard now; `None` if this datagram of it came before. Of three
    /// lives, one that was not the last to be fast is forgotten.
    fn hears(&mut self, life: Life, number: u64) -> Option<&mut Life> {
        match self.lives.iter().position(|known| known.incarnation == life.incarnation) {
            Some(place) if !self.lives[place].seen.note(number) => return None,
            Some(place) => self.lives[..=place].rotate_right(1),
            None => {
                self.lives.insert(0, life);
                self.lives[0].seen.note(number);
                self.sure = false;
            }
        }
        if self.lives.len() > 2 {
            self.lives.remove(if self.lives[2].fast { 1 } else { 2 });
        }
        self.lives.first_mut()
    }

    /// The life that was heard last is fast.
    fn is_sure(&mut self) {
        self.lives.iter_mut().enumerate().for_each(|(place, life)| life.fast = place == 0);
        self.sure = true;
    }
}

/// The state kept for one life of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Life {
    incarnation: Incarnation,
    /// Whether the last fast datagram came from this life.
    fast: bool,
    /// The helper with the largest send stamp.
    newest: (LocalTime, LocalTime),
    /// The helper whose own delay was smallest, and that bound.
    best: Option<(LocalTime, LocalTime, Span)>,
    seen: Window,
}

/// Which datagrams of one life have come: the largest number, and the 64 up to it as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Window {
    largest: u64,
    bits: u64,
}

impl Window {
    /// Notes a number; says whether it is new. A number too old to be told counts as a duplicate:
    /// it is late anyway.
    fn note(&mut self, number: u64) -> bool {
        if number > self.largest {
            let ahead = number - self.largest;
            self.bits = if ahead >= 64 { 0 } else { self.bits << ahead } | 1;
            self.largest = number;
            return true;
        }
        let bit = match self.largest - number {
            behind @ 0..64 => 1u64 << behind,
            _ => return false,
        };
        let new = self.bits & bit == 0;
        self.bits |= bit;
        new
    }
}

/// The datagram layer of one process: stamps datagrams that leave, judges those that come in. Plain
/// data; it sends nothing itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailAware {
    link: Link,
    me: usize,
    incarnation: Incarnation,
    peers: Vec<Peer>,
}

impl FailAware {
    /// Makes the layer of one life of the process at position `me` of `members`.
    pub fn new(link: Link, (me, incarnation): (usize, Incarnation), members: usize) -> Self {
        Self { link, me, incarnation, peers: vec![Peer::default(); members] }
    }

    /// The header of a datagram that leaves now for `to`. `now` must be read before it leaves.
    pub fn stamp(&mut self, to: usize, now: LocalTime) -> Header {
        let peer = &mut self.peers[to];
        peer.sent += 1;
        let named =
            |life: &Life, (sent, received)| HelperStamp { sent, received, incarnation: life.incarnation };
        let last = peer.lives.first();
        let newest = last.map(|life| named(life, life.newest));
        let best = last.and_then(|life| life.best.map(|(sent, received, _)| named(life, (sent, received))));
        let other = peer.lives.get(1).filter(|_| !peer.sure);
        let second = other.map(|other| named(other, other.newest)).or(best);
        Header {
            incarnation: self.incarnation,
            number: peer.sent,
            sent: now,
            helpers: [newest, second.filter(|second| Some(*second) != newest)],
        }
    }

    /// How old the newest stamps are that `to` would be sent; `None` if there are none.
    pub fn age(&self, to: usize, now: LocalTime) -> Option<LocalSpan> {
        let lives = &self.peers.get(to)?.lives;
        let present = lives.iter().find(|life| life.fast).or(lives.first())?;
        Some(now.remaining(present.newest.1))
    }

    /// Judges a datagram of `from` that came at `received`, and keeps its stamps. `None` if it came
    /// before.
    pub fn receive(
        &mut self,
        rules: &impl Estimate,
        from: usize,
        header: &Header,
        received: LocalTime,
    ) -> Option<Receipt> {
        let bound = self.bound(rules, from, header, received);
        let fast = bound.is_some_and(|bound| bound <= self.link.fast);
        let unknown = Life {
            incarnation: header.incarnation,
            fast: false,
            newest: (header.sent, received),
            best: None,
            seen: Window::default(),
        };
        let life = self.peers[from].hears(unknown, header.number)?;
        let newest = header.sent >= life.newest.0;
        if newest {
            life.newest = (header.sent, received);
        }
        let drift = self.link.drift;
        if let Some(bound) = bound {
            let stale = |(_, since, err): (LocalTime, LocalTime, Span)| {
                bound <= err.plus(drift.worsened(received.remaining(since)))
            };
            if life.best.is_none_or(stale) {
                life.best = Some((header.sent, received, bound));
            }
        }
        if fast {
            self.peers[from].is_sure();
        }
        Some(Receipt { fast, bound, newest })
    }

    /// The smallest bound that the carried helpers give. To oneself none is needed: both stamps are
    /// of one clock.
    fn bound(
        &self,
        rules: &impl Estimate,
        from: usize,
        header: &Header,
        received: LocalTime,
    ) -> Option<Span> {
        if from == self.me {
            let shown = received.remaining(header.sent).plus(self.link.tick);
            return (header.incarnation == self.incarnation).then(|| self.link.drift.longest_real(shown));
        }
        let usable = |helper: &&HelperStamp| {
            rules.is_of_this_life(self.incarnation, helper.incarnation) && helper.sent <= received
        };
        let bounds = header.helpers.iter().flatten().filter(usable).map(|helper| {
            let stamps = Stamps {
                helper_sent: helper.sent,
                helper_received: helper.received,
                sent: header.sent,
                received,
            };
            rules.bound(self.link, stamps)
        });
        bounds.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::tests::{Chance, at, span};

    const PPM: u64 = 40_000;

    fn link() -> Link {
        Link {
            drift: Drift::from_ppm(40_000).unwrap(),
            tick: span(1),
            least_delay: Span::from_nanos(1_000),
            fast: Span::from_nanos(20_000),
        }
    }

    /// A clock that shows `start` at zero and runs by `ppm` millionths of real time.
    #[derive(Clone, Copy)]
    struct Clock {
        start: u64,
        ppm: u64,
    }

    impl Clock {
        fn shows(self, real: u64) -> LocalTime {
            at(self.start + real * self.ppm / 1_000_000)
        }
    }

    fn clock(chance: &mut Chance) -> Clock {
        let ppm = [1_000_000 - PPM, 1_000_000 + PPM, 1_000_000][usize::try_from(chance.below(3)).unwrap()];
        Clock { start: chance.below(1_000_000), ppm }
    }

    /// Two processes exchange datagrams of random delays; every judgement is compared with the
    /// truth.
    fn exchange(seed: u64, longest: u64, lives: bool) -> (usize, usize) {
        let mut chance = Chance(seed);
        let mut clocks = [clock(&mut chance), clock(&mut chance)];
        let mut layers = [0, 1].map(|me| FailAware::new(link(), (me, Incarnation(1)), 2));
        let (mut now, mut fast, mut judged) = (0, 0, 0);
        for round in 0..200u64 {
            now += chance.below(3_000) + 1;
            // Connected processes answer each other; where lives end, anybody may speak.
            let from = usize::try_from(if lives { chance.below(2) } else { round % 2 }).unwrap();
            if lives && chance.below(20) == 0 {
                clocks[from].start = chance.below(1_000_000);
                layers[from] = FailAware::new(link(), (from, Incarnation(2 + u128::from(round))), 2);
            }
            let delay = 1_000 + chance.below(longest - 1_000 + 1);
            let header = layers[from].stamp(1 - from, clocks[from].shows(now));
            let received = clocks[1 - from].shows(now + delay);
            let receipt = layers[1 - from].receive(&Exact, from, &header, received).expect("no duplicate");
            if let Some(bound) = receipt.bound {
                assert!(bound.as_nanos() >= delay, "seed {seed}: {delay} bounded by {bound:?}");
            }
            judged += usize::from(receipt.bound.is_some());
            fast += usize::from(receipt.fast);
            now += delay;
        }
        (fast, judged)
    }

    #[test]
    fn no_datagram_is_called_fast_that_was_longer_on_its_way_whatever_clocks_and_lives_do() {
        let mut fast = 0;
        for seed in 0..500 {
            fast += exchange(seed, 60_000, true).0;
        }
        assert!(fast > 1_000, "fast ones were put to the test: {fast}");
    }

    #[test]
    fn between_connected_processes_everything_is_fast_after_the_first_round_trip() {
        // 2δ(1+ρ)/(1-ρ) - δmin + 4ρ·G/(1-ρ²) with δ = 8000, G = 3000 and four ticks is below Δ
        // = 20000.
        for seed in 0..500 {
            let (fast, judged) = exchange(seed, 8_000, false);
            assert!(judged >= 190 && fast == judged, "seed {seed}: {fast} of {judged}");
        }
    }

    #[test]
    fn a_straggler_does_not_displace_a_newer_helper() {
        let mut layer = FailAware::new(link(), (0, Incarnation(1)), 2);
        let header =
            |number, sent| Header { incarnation: Incarnation(9), number, sent: at(sent), helpers: [None; 2] };
        assert!(layer.receive(&Exact, 1, &header(2, 500), at(10)).unwrap().newest);
        assert!(!layer.receive(&Exact, 1, &header(1, 100), at(900)).unwrap().newest);
        let helper = layer.stamp(1, at(1000)).helpers[0].unwrap();
        assert_eq!((helper.sent, helper.received), (at(500), at(10)));
    }

    #[test]
    fn what_comes_twice_counts_once() {
        let mut layer = FailAware::new(link(), (0, Incarnation(1)), 2);
        let header =
            |number| Header { incarnation: Incarnation(9), number, sent: at(number), helpers: [None; 2] };
        for number in [5, 3, 70, 69] {
            assert!(layer.receive(&Exact, 1, &header(number), at(1000)).is_some(), "{number}");
        }
        for number in [70, 69, 5, 3] {
            assert_eq!(layer.receive(&Exact, 1, &header(number), at(1001)), None, "{number}");
        }
    }

    #[test]
    fn a_straggler_of_a_former_life_displaces_neither_stamps_nor_what_has_come_of_the_present_one() {
        let mut layer = FailAware::new(link(), (0, Incarnation(1)), 2);
        let header = |life, number, sent, helper: Option<LocalTime>| {
            let helper =
                helper.map(|sent| HelperStamp { sent, received: at(900), incarnation: Incarnation(1) });
            Header { incarnation: Incarnation(life), number, sent: at(sent), helpers: [helper, None] }
        };
        assert!(!layer.receive(&Exact, 1, &header(9, 1, 500, None), at(1_000)).unwrap().fast);
        assert!(layer.receive(&Exact, 1, &header(9, 2, 1_000, Some(at(1_000))), at(2_000)).unwrap().fast);
        assert!(!layer.receive(&Exact, 1, &header(8, 7, 70_000, None), at(90_000)).unwrap().fast);
        let lives = layer.stamp(1, at(91_000)).helpers.map(|helper| helper.unwrap().incarnation);
        assert_eq!(lives, [Incarnation(8), Incarnation(9)], "both are named: either may be the present one");
        assert!(!layer.receive(&Exact, 1, &header(7, 3, 80_000, None), at(92_000)).unwrap().fast);
        assert_eq!(
            layer.receive(&Exact, 1, &header(9, 2, 1_000, Some(at(1_000))), at(93_000)),
            None,
            "it came before"
        );
        let lives = |layer: &mut FailAware| {
            layer.stamp(1, at(95_000)).helpers.map(|helper| helper.unwrap().incarnation)
        };
        assert_eq!(lives(&mut layer), [Incarnation(7), Incarnation(9)]);
        assert!(!layer.receive(&Exact, 1, &header(9, 3, 3_000, None), at(94_000)).unwrap().fast);
        assert_eq!(lives(&mut layer), [Incarnation(9), Incarnation(7)], "it may be the other that is over");
        let helper = HelperStamp { sent: at(95_000), received: at(80_900), incarnation: Incarnation(1) };
        let answer = Header {
            incarnation: Incarnation(7),
            number: 4,
            sent: at(81_000),
            helpers: [Some(helper), None],
        };
        assert!(layer.receive(&Exact, 1, &answer, at(96_000)).unwrap().fast);
        let helpers = layer.stamp(1, at(97_000)).helpers;
        assert!(helpers.iter().flatten().all(|helper| helper.incarnation == Incarnation(7)), "{helpers:?}");
    }

    #[test]
    fn a_message_to_oneself_is_timed_on_one_clock() {
        let mut layer = FailAware::new(link(), (0, Incarnation(1)), 2);
        let header = layer.stamp(0, at(1000));
        assert!(layer.receive(&Exact, 0, &header, at(2000)).unwrap().fast);
        let header = layer.stamp(0, at(3000));
        assert!(!layer.receive(&Exact, 0, &header, at(30_000)).unwrap().fast);
    }
}
