//! Whatever is written is read back, and whatever else is read gives an error that says where.

use std::sync::Arc;

use super::*;
use crate::quorum::{NodeSet, Quorums, Rule as Quorate};
use crate::strong::epoch::{Ballot, Barred, Body, CharterId, Halt, Lineage, StoreId};
use crate::strong::find::{Hint, Miss};
use crate::strong::{Failure, GrantRequest, Holder, InstanceId, Kind, Loss, Refusal};
use crate::time::{Bound, Clockwork, Drift, LocalSpan, Span, Stamp};

/// Draws values. A small generator of its own: this crate has no dependencies.
struct Draw(u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// Numbers of all sizes, the largest and smallest among them.
    fn number(&mut self) -> u64 {
        let bits = self.bits();
        match bits % 8 {
            0 => 0,
            1 => u64::MAX,
            size => bits >> (8 * size),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() % bound as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.bits().to_le_bytes()[0]
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn time(&mut self) -> LocalTime {
        LocalTime::from_nanos(self.number())
    }

    fn span(&mut self) -> Span {
        Span::from_nanos(self.number())
    }

    fn local(&mut self) -> LocalSpan {
        LocalSpan::from_nanos(self.number())
    }

    fn node(&mut self) -> NodeId {
        NodeId(self.number())
    }

    fn group(&mut self) -> GroupId {
        GroupId(self.number())
    }

    fn term(&mut self) -> Term {
        Term(self.number())
    }

    fn epoch(&mut self) -> Epoch {
        Epoch(self.number())
    }

    fn incarnation(&mut self) -> Incarnation {
        Incarnation(u128::from(self.number()) << 64 | u128::from(self.number()))
    }

    fn holder(&mut self) -> Holder {
        Holder { node: self.node(), incarnation: self.incarnation() }
    }

    fn run(&mut self) -> InstanceId {
        InstanceId { holder: self.holder(), seq: self.number() }
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { incarnation: self.incarnation(), at: self.time(), count: u32::from(self.byte()) << 24 }
    }

    fn stamps(&mut self) -> QuorumStamp {
        (0..self.below(5)).map(|_| (self.node(), self.stamp())).collect()
    }

    fn kind(&mut self) -> Kind {
        self.pick(&[Kind::Acquire, Kind::Renew])
    }

    fn text(&mut self) -> String {
        let letters =
            ["a", "Z", "0", " ", "\n", "\r", "\t", "%", "%20", "~", "=", "#", "é", "\u{2028}", "😀"];
        (0..self.below(9)).map(|_| self.pick(&letters)).collect()
    }

    fn request(&mut self) -> GrantRequest {
        let (group, epoch, id, start) = (self.group(), self.epoch(), self.run(), self.time());
        GrantRequest { group, epoch, id, start, lease: self.span(), kind: self.kind(), term: self.term() }
    }

    fn body(&mut self) -> Body {
        let members: Vec<NodeId> = (0..6).map(|i| NodeId(self.number() / 8 * 8 + i)).collect();
        let set = |positions: &[usize]| positions.iter().copied().collect::<NodeSet>();
        let rule = match self.below(4) {
            0 => Quorate::Majority,
            1 => Quorate::Weighted(vec![0, 3, 1, 1, self.number() / 2, 7]),
            2 => Quorate::Grid { rows: 2, columns: 3 },
            _ => Quorate::List(vec![set(&[0, 1, 2]), set(&[2, 3]), set(&[0, 2, 5])]),
        };
        let skew = Bound::Skew(self.local());
        let drift = Bound::Drift(Drift::from_ppm(u32::from(self.byte()) * 3_906).unwrap());
        let clocks = Clockwork { bound: self.pick(&[skew, drift]), tick: self.local() };
        let named = members.iter().filter(|_| self.below(2) == 0).copied().collect::<Vec<_>>();
        let stores = named.into_iter().map(|member| (member, StoreId(self.incarnation().0))).collect();
        let (quorums, longest_lease) = (Quorums::new(members, rule).unwrap(), self.span());
        let barred = Barred::new((0..self.below(3)).map(|_| self.group()).collect()).unwrap();
        Body { quorums, clocks, longest_lease, stores, barred }
    }

    fn charter(&mut self) -> Arc<Charter> {
        let before = (self.below(2) == 0).then(|| self.body());
        let lineage = self.lineage();
        Arc::new(Charter { epoch: self.epoch(), lineage, body: self.body(), before, floor: self.term() })
    }

    fn lineage(&mut self) -> Lineage {
        Lineage::new((0..=self.below(3)).map(|_| self.incarnation().0).collect()).unwrap()
    }

    fn refusal(&mut self) -> Refusal {
        let busy = Refusal::Busy { holder: self.node(), remaining: self.local() };
        let others = [Refusal::StaleTerm, Refusal::LeaseTooLong, Refusal::Released, Refusal::FromTheFuture];
        let high = Refusal::TooHigh { wait: self.local() };
        let more = [
            Refusal::Young,
            Refusal::Wedged,
            Refusal::Draining,
            high,
            Refusal::Implausible,
            Refusal::TooManyGroups,
            Refusal::Barred,
        ];
        self.pick(&[&[busy][..], &others, &more].concat())
    }

    fn hint(&mut self) -> Option<Hint> {
        let hint = Hint { holder: self.node(), term: self.term(), remaining: self.local() };
        self.pick(&[None, Some(hint)])
    }

    /// The event of a number: each below [`EVENTS`] is another variant.
    fn event(&mut self, which: usize) -> Event {
        let (group, epoch, id, term) = (self.group(), self.epoch(), self.run(), self.term());
        let (until, leader, charter) = (self.time(), self.holder(), self.charter());
        match which {
            0 => Event::Asked(self.request()),
            1 => Event::Granted { request: self.request(), at: self.stamp(), until },
            2 => Event::Refused { request: self.request(), refusal: self.refusal() },
            3 => {
                let (kind, lease, stamps) = (self.kind(), self.span(), self.stamps());
                let quorum = NodeSet::from_bits(self.number());
                Event::Leads { group, epoch, id, kind, term, lease, until, quorum, stamps }
            }
            4 => Event::GaveBack { group, upto: id },
            5 => Event::Freed { group, newest: id },
            6 => Event::Pledged { group, leader, until },
            7 => Event::Verified { group, leader, term, until },
            8 => Event::Sought { group, id, ask: self.node(), hops: self.byte() },
            9 => Event::Found { group, id, leader, term, hops: self.byte() },
            10 => {
                let misses = [Miss::NotLeader, Miss::Unknown, Miss::Full, Miss::TimedOut, Miss::Outdated];
                let why = self.pick(&[&misses[..], &[Miss::NoHopsLeft, Miss::Unanswered]].concat());
                Event::NotFound { group, id, why, hint: self.hint() }
            }
            11 => {
                let leader = Some(self.node());
                Event::WeakLeader { group, leader: self.pick(&[None, leader]) }
            }
            12 => Event::Paced { group, lease: self.span() },
            13 => Event::Strained { group, needed: self.span(), longest: self.span() },
            14 => Event::Yields { group, to: self.node() },
            15 => {
                let all = [Failure::TimedOut, Failure::Blocked, Failure::Aborted, Failure::TooLate];
                Event::Failed { group, id, failure: self.pick(&all) }
            }
            16 => {
                let all = [Loss::Lapsed, Loss::Resigned, Loss::HandedOver, Loss::EndedEpoch];
                let more = [Loss::NextEpoch, Loss::ClockWentBack, Loss::SplitBrain, Loss::Disturbed];
                let loss = self.pick(&[&all[..], &more].concat());
                Event::Lost { group, term, loss }
            }
            17 => Event::Silent { until },
            18 => Event::Mute,
            19 => Event::Recovering,
            20 => Event::Recovered { top: term },
            21 => Event::Wedged { epoch, ballot: term },
            22 => Event::Adopted { charter, joined: self.below(2) == 0 },
            23 => {
                let node = Some(self.node());
                let (number, incarnation) = (self.number(), self.incarnation());
                let ballot = Ballot { number, node: self.pick(&[None, node]), incarnation };
                Event::Accepted { ballot, charter }
            }
            24 => Event::Decided { charter },
            25 => Event::Changed { epoch },
            26 => {
                let impossible = Halt::Impossible(self.text());
                Event::ChangeHalted { halt: self.pick(&[Halt::Conflict, Halt::Fixed, impossible]) }
            }
            27 => {
                let (lineage, digest) = (self.lineage(), self.incarnation().0);
                Event::SplitBrain { other: CharterId { lineage, epoch, digest } }
            }
            28 => Event::LineageAccepted,
            29 => Event::Implausible { by: self.node(), term, known: self.term() },
            30 => Event::HeldBack { group, term, wait: self.local() },
            31 => Event::Confirmed { term },
            _ => Event::ClockWentBack { by: self.local() },
        }
    }

    fn what(&mut self, which: usize) -> What {
        let (node, incarnation, group) = (self.node(), self.incarnation(), self.group());
        let life = Life { node, incarnation, cluster: self.incarnation().0 };
        let rule = self.pick(&[Rule::ByTerm, Rule::InOrder]);
        let (resource, token) = (self.text(), Token::new(self.term(), self.number()));
        let decision = Decision { resource, rule, token, at: self.number() };
        match which {
            0 => What::Start(Start { life, name: self.text(), charter: self.charter() }),
            1 => What::Part(life),
            2 => What::Group { group, name: self.text() },
            3 => {
                let (epoch, term, number, after) = (self.epoch(), self.term(), self.number(), self.time());
                let stamps = Some(self.stamps());
                let first = self.pick(&[None, stamps]);
                What::Edict(EdictMade { group, epoch, term, number, after, first })
            }
            4 => What::Admitted(decision),
            5 => What::Refused(decision),
            6 => What::Stop,
            7 => What::LocalStart(LocalStart {
                group,
                members: (0..self.below(6)).map(|_| self.node()).collect(),
                majority: self.below(2) == 0,
                drift: Drift::from_ppm(u32::from(self.byte())).unwrap(),
                lock: self.local(),
                kappa_leader: self.span(),
                kappa_support: self.span(),
                constants: self.number(),
            }),
            8 => What::LocalEnd { group },
            9..OTHERS => What::Local { group, event: self.local_event(which - 9) },
            event => What::Event(self.event(event - OTHERS)),
        }
    }

    /// An event that a local group's machine publishes, except datagrams that came: each number is
    /// another variant.
    fn local_event(&mut self, which: usize) -> local_group::Event {
        use local_group::{Event, Lease, Lock, RequestId, View};
        let request = RequestId { incarnation: self.incarnation(), number: self.number() };
        let (set, until, node) = (NodeSet::from_bits(self.number()), self.time(), self.node());
        match which {
            0 => Event::Asked { request, alive: set, collate: self.below(2) == 0 },
            1 => {
                let lock = Lock { to: self.below(64), request, until };
                Event::Locked { lock, received: self.time() }
            }
            2 => Event::Declined { asker: node },
            3 => {
                let lease = Lease { request, supporters: set, until };
                Event::Leads { lease, renewed: self.below(2) == 0 }
            }
            4 => Event::Failed { request },
            5 => Event::Released { request },
            6 => Event::Freed { to: node },
            7 => Event::Stepped { turn: self.number() },
            8 => Event::Members(View { leader: node, members: set, until }),
            _ => Event::Silent { until },
        }
    }

    fn line(&mut self, which: usize) -> Line {
        let (one, other) = (self.number(), self.number());
        let common = [None, Some(Common::exact(one)), Some(Common::between(one, other))];
        Line { own: self.time(), common: self.pick(&common), what: self.what(which) }
    }
}

/// How many kinds of event there are, and how many kinds of line besides.
const EVENTS: usize = 33;
const OTHERS: usize = 19;

/// The number of an event's variant. A developer who adds a variant must say here, and above, what
/// it is.
fn number(event: &Event) -> usize {
    match event {
        Event::Asked(_) => 0,
        Event::Granted { .. } => 1,
        Event::Refused { .. } => 2,
        Event::Leads { .. } => 3,
        Event::GaveBack { .. } => 4,
        Event::Freed { .. } => 5,
        Event::Pledged { .. } => 6,
        Event::Verified { .. } => 7,
        Event::Sought { .. } => 8,
        Event::Found { .. } => 9,
        Event::NotFound { .. } => 10,
        Event::WeakLeader { .. } => 11,
        Event::Paced { .. } => 12,
        Event::Strained { .. } => 13,
        Event::Yields { .. } => 14,
        Event::Failed { .. } => 15,
        Event::Lost { .. } => 16,
        Event::Silent { .. } => 17,
        Event::Mute => 18,
        Event::Recovering => 19,
        Event::Recovered { .. } => 20,
        Event::Wedged { .. } => 21,
        Event::Adopted { .. } => 22,
        Event::Accepted { .. } => 23,
        Event::Decided { .. } => 24,
        Event::Changed { .. } => 25,
        Event::ChangeHalted { .. } => 26,
        Event::SplitBrain { .. } => 27,
        Event::LineageAccepted => 28,
        Event::Implausible { .. } => 29,
        Event::HeldBack { .. } => 30,
        Event::Confirmed { .. } => 31,
        Event::ClockWentBack { .. } => EVENTS - 1,
    }
}

fn file(lines: &[Line]) -> String {
    let mut text = format!("{HEADER}\n");
    lines.iter().for_each(|line| line.write(&mut text));
    text
}

fn read(text: &str) -> Result<Vec<Line>, TraceError> {
    Reader::new(text.as_bytes()).map(|entry| entry.map(|(_, line)| line)).collect()
}

fn refused(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn every_line_is_read_back_as_it_was_written() {
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let lines: Vec<Line> = (0..OTHERS + EVENTS).map(|which| draw.line(which)).collect();
        let text = file(&lines);
        assert_eq!(text.lines().count(), lines.len() + 1, "seed {seed}: one line an entry\n{text}");
        assert_eq!(read(&text).as_ref(), Ok(&lines), "seed {seed}\n{text}");
    }
}

#[test]
fn the_generator_draws_every_event() {
    for which in 0..EVENTS {
        assert_eq!(number(&Draw(1).event(which)), which);
    }
}

#[test]
fn an_event_is_written_alike_with_and_without_a_copy() {
    for which in 0..EVENTS {
        let mut draw = Draw(which as u64);
        let (own, common, event) = (draw.time(), Some(Common::exact(7)), draw.event(which));
        let (mut one, mut other) = (String::new(), String::new());
        write_event(&mut one, own, common, &event);
        Line { own, common, what: What::Event(event) }.write(&mut other);
        assert_eq!(one, other);
    }
}

#[test]
fn names_are_stable_and_can_be_read_by_people() {
    let holder = Holder { node: NodeId(1), incarnation: Incarnation(3) };
    let id = InstanceId { holder, seq: 8 };
    let stamp = Stamp { incarnation: Incarnation(2), at: LocalTime::from_nanos(1_500_000_000), count: 0 };
    let event = Event::Leads {
        group: GroupId(7),
        epoch: Epoch(0),
        id,
        kind: Kind::Acquire,
        term: Term(5),
        lease: Span::from_millis(2000),
        until: LocalTime::from_nanos(6_999_000_001),
        quorum: [0, 2].into_iter().collect(),
        stamps: [(NodeId(1), stamp)].into_iter().collect(),
    };
    let mut text = String::new();
    write_event(&mut text, LocalTime::from_nanos(5_000_000_000), Some(Common { from: 4, to: 5 }), &event);
    assert_eq!(
        text,
        "leads own=5s common=0.000004ms..0.000005ms group=g7 epoch=0 run=n1/3/8 kind=acquire term=5 lease=2s \
         until=6.999000001s quorum=0,2 stamps=n1@2/1.5s/0\n"
    );
}

#[test]
fn lines_of_local_groups_can_be_read_by_people_too() {
    use local_group::{Event, Lease, RequestId};
    let request = RequestId { incarnation: Incarnation(3), number: 8 };
    let supporters = [0, 2].into_iter().collect();
    let lease = Lease { request, supporters, until: LocalTime::from_nanos(5_090_000_000) };
    let what = What::Local { group: GroupId(7), event: Event::Leads { lease, renewed: false } };
    let mut text = String::new();
    Line { own: LocalTime::from_nanos(5_000_000_000), common: None, what }.write(&mut text);
    assert_eq!(text, "local-leads own=5s group=g7 request=3/8 supporters=0,2 until=5.09s renewed=no\n");
}

#[test]
fn unknown_keys_are_skipped_and_unknown_kinds_counted() {
    let text = "tenure-trace 1\n# a remark\n\nstop colour=red own=1s\nsang own=1s song=x\nsang what=ever\n";
    let mut reader = Reader::new(text.as_bytes());
    let stop = Line { own: LocalTime::from_nanos(1_000_000_000), common: None, what: What::Stop };
    assert_eq!(reader.next(), Some(Ok((4, stop))));
    assert_eq!(reader.next(), None);
    assert_eq!((reader.unknown(), reader.cut()), (2, 0));
}

#[test]
fn a_last_line_without_an_end_does_not_count_however_much_of_it_is_left() {
    let whole = "tenure-trace 1\nstop own=1s\nstop own=1234s\n";
    for length in 0..whole.len() {
        let mut reader = Reader::new(&whole.as_bytes()[..length]);
        let lines: Vec<_> = reader.by_ref().map(|entry| entry.unwrap().0).collect();
        let ends = whole[..length].matches('\n').count();
        assert_eq!(lines.len(), ends.saturating_sub(1), "{:?}", &whole[..length]);
        assert_eq!(reader.cut() == 0, length == 0 || whole[..length].ends_with('\n'), "{length}");
    }
}

#[test]
fn who_adds_to_a_line_that_was_cut_off_says_so() {
    let text = format!("{HEADER}\nstop own=1{CUT}{HEADER}\nstop own=2s\n");
    let mut reader = Reader::new(text.as_bytes());
    let lines: Vec<usize> = reader.by_ref().map(|entry| entry.unwrap().0).collect();
    assert_eq!((lines, reader.cut()), (vec![4], 1));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line_and_a_reason() {
    let start =
        "start own=1s node=n1 name=a incarnation=1 cluster=0000000000000000000000000000007f epoch=0 floor=0";
    let body = "drift=1000ppm tick=1ms longest-lease=5s";
    for (line, reason) in [
        ("stop", "line 2: 'stop' needs 'own='"),
        ("stop own", "line 2: 'own' is no key=value"),
        ("stop own=1s own=1s", "'own' stands here twice"),
        ("stop own=1", "'own=1': should be a time"),
        ("stop own=1.0000000001s", "should be a time"),
        ("stop own=99999999999999999999s", "should be a time"),
        ("stop own=+1s", "should be a time"),
        ("stop own=1s common=2s..1s", "should be a time, or two"),
        ("silent own=1s until=x", "'until=x'"),
        ("lost own=1s group=g1 term=1 loss=mislaid", "should be lapsed, resigned"),
        ("freed own=1s group=1 newest=n1/1/1", "should be a group such as g1"),
        ("freed own=1s group=g1 newest=n1/1", "should be a run such as n1/3/8"),
        ("fence-admitted own=1s resource=%zz rule=by-term token=1.1 at=1", "should be text"),
        ("fence-admitted own=1s resource=%ff rule=by-term token=1.1 at=1", "should be text"),
        (
            "local-leads own=1s group=g1 request=3 supporters=0 until=2s renewed=no",
            "should be a request such as",
        ),
        ("local-locked own=1s group=g1 to=64 request=3/1 until=2s received=1s", "should be the position"),
        ("local-start own=1s group=g1 members=n1 majority=perhaps", "should be yes or no"),
        ("tenure-trace 2", "version '2' of the format is not known"),
    ] {
        let said = refused(&format!("{HEADER}\n{line}\n"));
        assert!(said.contains(reason), "{line}: {said}");
    }
    for (members, quorums, reason) in [
        ("n1,n2,n1", "majority", "n1 is named twice"),
        ("n1,n2", "weights:1", "1 weights for 2 members"),
        ("n1,n2", "list:0,1", "share no member"),
        ("n1,n2", "list:9", "members"),
        ("n1,n2", "list:99", "should be majority"),
        ("n1,n2", "grid:9999999999x9999999999", "does not hold 2 members"),
        ("", "majority", "not 0"),
    ] {
        let said = refused(&format!("{HEADER}\n{start} members={members} quorums={quorums} {body}\n"));
        assert!(said.contains(reason), "{members} {quorums}: {said}");
    }
}

#[test]
fn another_kind_of_file_is_no_trace() {
    for text in ["hello", "hello\n", "# a remark\nstop own=1s\n", "tenure scenario 1\n", "tenure-trace\n"] {
        let said = refused(text);
        assert!(
            said.contains("begins with 'tenure-trace 1'") || said.contains("version ''"),
            "{text}: {said}"
        );
    }
    let error = Reader::new(b"tenure-trace 1\n\xff\n").next().unwrap().unwrap_err();
    assert_eq!(error, TraceError { line: 2, what: Problem::NotText });
}

#[test]
fn any_damage_gives_entries_or_an_error_and_never_a_panic() {
    let mut draw = Draw(11);
    let lines: Vec<Line> = (0..OTHERS + EVENTS).map(|which| draw.line(which)).collect();
    let whole = file(&lines).into_bytes();
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + draw.below(3) {
            let at = draw.below(bytes.len());
            match draw.below(3) {
                0 => bytes[at] = draw.byte(),
                1 => bytes.insert(at, bytes[at]),
                _ => bytes.truncate(at + 1),
            }
        }
        let read: Vec<_> = Reader::new(&bytes).collect();
        let errors = read.iter().filter(|entry| entry.is_err()).count();
        assert!(errors <= 1, "nothing follows an error");
    }
}
