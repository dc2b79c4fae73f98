//! The machine by itself: what it answers to one input. The laboratory tests many of them together.

mod wedge;

use super::epoch::Epoch;
use super::*;
use crate::boot::{BootId, Memory, Store};
use crate::detect::weak::{Choice, Watch};
use crate::quorum::{NodeSet, Quorums};
use crate::time::{Bound, Clockwork, Drift, Incarnation, LocalSpan, Span};
use crate::{Chooser, Effect, Ticket};

mod advice;
mod disturbed;
mod find;
mod forget;
mod free;
mod height;
mod resign;

pub(super) const GROUP: GroupId = GroupId(0);
pub(super) const HERE: BootId = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };

/// Always the first choice.
pub(super) struct First;
impl Chooser for First {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

/// One machine of three, with what it has wanted done so far.
pub(super) struct Bench {
    pub(super) node: Nerio,
    tickets: Ticket,
    now: u64,
    pub(super) effects: Vec<Effect<Nerio>>,
}

fn settings() -> Settings {
    Settings {
        quorums: Quorums::majority((0..3).map(NodeId).collect()).unwrap(),
        clocks: Clockwork {
            bound: Bound::Drift(Drift::from_ppm(100_000).unwrap()),
            tick: LocalSpan::from_nanos(1),
        },
        lease: Span::from_nanos(1000),
        reserve: Span::from_nanos(0),
        eager: false,
        longest_lease: Span::from_nanos(2000),
        window: Span::from_nanos(100),
        retry: Span::from_nanos(50),
        block: 4,
        succession: Succession::Adjacent,
        weak: Choice::Ring(Watch::Heartbeat),
        adapt: None,
        hold: None,
        rules: Sound,
    }
}

impl Bench {
    /// Node 0, started at reading 10,000 from what was found.
    pub(super) fn start(store: Store<Cell>, memory: Option<Memory<Cell>>) -> Self {
        Self::of(0, settings(), store, memory)
    }

    fn of(node: u64, settings: Settings, store: Store<Cell>, memory: Option<Memory<Cell>>) -> Self {
        let config = settings.validate().unwrap();
        let (mut tickets, mut effects) = (Ticket(0), Vec::new());
        let boot = Boot::judge(store, memory, HERE);
        let now = LocalTime::from_nanos(10_000);
        let chance = &mut First;
        let node = Nerio::start(
            &config,
            NodeId(node),
            boot,
            &mut Context::new(now, chance, &mut tickets, &mut effects),
        );
        Self { node, tickets, now: 10_000, effects }
    }

    pub(super) fn founded() -> Self {
        let mut bench = Self::start(Store::Founded(vec![]), None);
        bench.effects.clear();
        bench
    }

    pub(super) fn handle(&mut self, input: Input<Nerio>) -> Vec<Effect<Nerio>> {
        let now = LocalTime::from_nanos(self.now);
        let chance = &mut First;
        self.node.handle(input, &mut Context::new(now, chance, &mut self.tickets, &mut self.effects));
        std::mem::take(&mut self.effects)
    }

    pub(super) fn hear(&mut self, from: u64, message: Message) -> Vec<Effect<Nerio>> {
        let received = LocalTime::from_nanos(self.now);
        self.handle(Input::Message { from: NodeId(from), received, message })
    }

    pub(super) fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    /// Campaigns and begins a run at once; returns what it asked.
    pub(super) fn ask(&mut self) -> GrantRequest {
        self.handle(Input::Command(Command::Campaign(GROUP)));
        let effects = self.handle(Input::Deadline);
        let asked = effects.iter().find_map(|effect| match effect {
            Effect::Publish(Event::Asked(request)) => Some(*request),
            _ => None,
        });
        asked.expect("a free candidate asks when its time has come")
    }

    /// An Ok of `from` for a run.
    pub(super) fn ok(&mut self, from: u64, request: GrantRequest) -> Vec<Effect<Nerio>> {
        let at = crate::time::Stamp { incarnation: Incarnation(1), at: LocalTime::ZERO, count: 0 };
        self.hear(from, Message::Ok { group: GROUP, epoch: request.epoch, id: request.id, at })
    }

    pub(super) fn leads(&self) -> Option<u64> {
        self.node.leadership(GROUP, LocalTime::from_nanos(self.now)).map(LocalTime::as_nanos)
    }

    pub(super) fn grant(&self) -> Option<(u64, u64)> {
        self.node.grant(GROUP).map(|grant| (grant.holder.node.0, grant.until.as_nanos()))
    }
}

pub(super) fn request(node: u64, seq: u64, term: u64) -> GrantRequest {
    let holder = Holder { node: NodeId(node), incarnation: Incarnation(1) };
    let id = InstanceId { holder, seq };
    let start = LocalTime::ZERO;
    GrantRequest {
        epoch: Epoch(0),
        group: GROUP,
        id,
        start,
        lease: Span::from_nanos(1000),
        kind: Kind::Acquire,
        term: Term(term),
    }
}

pub(super) fn answers(effects: &[Effect<Nerio>]) -> Vec<(u64, &'static str, Option<u64>)> {
    let answer = |effect: &Effect<Nerio>| match effect {
        Effect::Send { to, message, after } => {
            let kind = match message {
                Message::Request(_) | Message::Extend { .. } => "request",
                Message::Here { .. } => "here",
                Message::Ok { .. } => "ok",
                Message::Nack { refusal: Refusal::Busy { .. }, .. } => "busy",
                Message::Nack { refusal: Refusal::StaleTerm, .. } => "stale",
                Message::Nack { refusal: Refusal::LeaseTooLong, .. } => "too long",
                Message::Nack { refusal: Refusal::Released, .. } => "released",
                Message::Nack { refusal: Refusal::FromTheFuture, .. } => "future",
                Message::Nack { refusal: Refusal::Young, .. } => "young",
                Message::Nack { refusal: Refusal::TooManyGroups, .. } => "too many groups",
                Message::Nack { refusal: Refusal::Barred, .. } => "barred",
                Message::Nack { refusal: Refusal::Wedged, .. } => "wedged",
                Message::Nack { refusal: Refusal::Draining, .. } => "draining",
                Message::Nack { refusal: Refusal::TooHigh { .. }, .. } => "too high",
                Message::Nack { refusal: Refusal::Implausible, .. } => "implausible",
                Message::Height(HeightTalk::Ask) => "ask top",
                Message::Height(HeightTalk::Top(_)) => "top",
                Message::Epoch(_) => "epoch",
                Message::Wedge(_) => "wedge",
                Message::Recovery(_) => "recovery",
                Message::Release { .. } => "release",
                Message::Talk { talk: Talk::TakeOver { .. }, .. } => "take over",
                Message::Talk { talk: Talk::Ready(_), .. } => "ready",
                Message::Talk { talk: Talk::Relay { .. }, .. } => "relay",
                Message::Talk { talk: Talk::Verify { .. }, .. } => "verify",
                Message::Talk { talk: Talk::Certain { .. }, .. } => "certain",
                Message::Talk { talk: Talk::Seek { .. }, .. } => "seek",
                Message::Talk { talk: Talk::Here { .. }, .. } => "here",
                Message::Talk { talk: Talk::There { .. }, .. } => "there",
                Message::Talk { talk: Talk::Nowhere { .. }, .. } => "nowhere",
                Message::Talk { talk: Talk::Free, .. } => "free",
                Message::Talk { talk: Talk::Prefer { .. }, .. } => "prefer",
            };
            Some((to.0, kind, after.map(|ticket| ticket.0)))
        }
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

#[test]
fn a_grantor_refuses_a_second_suitor_until_its_promise_has_run_out() {
    let mut bench = Bench::founded();
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 1)))), [(1, "ok", Some(1))]);
    assert_eq!(bench.grant(), Some((1, 10_000 + 1 + 1100)), "F = T + tick + (1+rho) delta");
    assert_eq!(answers(&bench.at(11_100).hear(2, Message::Request(request(2, 1, 2)))), [(2, "busy", None)]);
    assert_eq!(answers(&bench.at(11_101).hear(2, Message::Request(request(2, 1, 2)))), [(2, "ok", Some(1))]);
}

#[test]
fn a_shorter_request_of_the_holder_does_not_shorten_the_promise() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let shorter = GrantRequest { lease: Span::from_nanos(10), kind: Kind::Renew, ..request(1, 2, 1) };
    assert_eq!(answers(&bench.hear(1, Message::Request(shorter))), [(1, "ok", None)]);
    assert_eq!(bench.grant(), Some((1, 11_101)));
}

#[test]
fn a_restarted_holder_is_somebody_else() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let mut reborn = request(1, 1, 2);
    reborn.id.holder.incarnation = Incarnation(2);
    assert_eq!(answers(&bench.hear(1, Message::Request(reborn))), [(1, "busy", None)]);
}

#[test]
fn a_lease_longer_than_the_longest_is_refused() {
    let mut bench = Bench::founded();
    let long = GrantRequest { lease: Span::from_nanos(2001), ..request(1, 1, 1) };
    assert_eq!(answers(&bench.hear(1, Message::Request(long))), [(1, "too long", None)]);
}

#[test]
fn a_term_is_granted_once_and_its_very_request_again() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 1)))), [(1, "ok", Some(1))]);
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 2, 1)))), [(1, "stale", None)]);
}

#[test]
fn what_was_given_back_is_refused_for_two_longest_leases_and_then_forgotten() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 5, 1).id });
    assert_eq!(bench.node.latest_tomb(), Some(LocalTime::from_nanos(14_000)));
    assert_eq!(
        answers(&bench.at(13_999).hear(1, Message::Request(request(1, 5, 1)))),
        [(1, "released", None)]
    );
    assert_eq!(answers(&bench.at(14_000).hear(1, Message::Request(request(1, 5, 1)))), [(1, "ok", Some(1))]);
}

#[test]
fn nobody_asks_or_gives_back_in_anothers_name() {
    let mut bench = Bench::founded();
    assert_eq!(answers(&bench.hear(2, Message::Request(request(1, 1, 1)))), []);
    bench.hear(1, Message::Request(request(1, 1, 1)));
    bench.hear(2, Message::Release { group: GROUP, upto: request(1, 1, 1).id });
    assert_eq!(bench.grant(), Some((1, 11_101)));
}

#[test]
fn an_ok_waits_for_the_write_that_covers_its_term_and_a_renewal_for_none() {
    let mut bench = Bench::founded();
    // The first block (terms 1 to 4) was asked for at the start: ticket 1.
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 2)))), [(1, "ok", Some(1))]);
    let renewal = GrantRequest { kind: Kind::Renew, ..request(1, 2, 2) };
    assert_eq!(answers(&bench.hear(1, Message::Request(renewal))), [(1, "ok", None)]);
    // Half of the block is used: the next one is asked for, but this Ok does not wait for it.
    let effects = bench.hear(1, Message::Request(request(1, 3, 3)));
    assert!(effects.contains(&Effect::Persist { ticket: Ticket(2), record: Cell::Ceiling(Term(8)) }));
    assert_eq!(answers(&effects), [(1, "ok", Some(1))]);
    // A term far above the ceiling waits for its own write.
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 4, 100)))), [(1, "ok", Some(3))]);
}

#[test]
fn the_grant_is_remembered_before_the_ok_leaves() {
    let effects = Bench::founded().hear(1, Message::Request(request(1, 1, 1)));
    let remembered = effects.iter().position(|e| matches!(e, Effect::Remember(Cell::Grant(GROUP, Some(_)))));
    let sent = effects.iter().position(|e| matches!(e, Effect::Send { .. }));
    assert!(remembered.expect("remembered") < sent.expect("sent"));
}

#[test]
fn after_a_restart_every_term_up_to_the_ceiling_is_stale() {
    let store = Store::Used(Incarnation(1), vec![Cell::Ceiling(Term(8))]);
    let memory = Memory { boot: HERE, writer: Incarnation(1), records: vec![] };
    let mut bench = Bench::start(store, Some(memory));
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 8)))), [(1, "stale", None)]);
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 2, 9)))), [(1, "ok", Some(1))]);
}

#[test]
fn a_grantor_without_its_memory_is_silent_for_the_longest_lease() {
    let mut bench = Bench::start(Store::Used(Incarnation(1), vec![]), None);
    let until = 10_000 + 1 + 2200;
    assert!(bench.effects.contains(&Effect::Remember(Cell::Silence(LocalTime::from_nanos(until)))));
    bench.effects.clear();
    assert_eq!(answers(&bench.at(until - 1).hear(1, Message::Request(request(1, 1, 1)))), []);
    assert_eq!(answers(&bench.at(until).hear(1, Message::Request(request(1, 1, 1)))), [(1, "ok", Some(1))]);
}

#[test]
fn a_silent_grantor_hears_what_is_given_back() {
    let mut bench = Bench::start(Store::Used(Incarnation(1), vec![]), None);
    bench.effects.clear();
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 1, 1).id });
    let late = bench.at(10_000 + 1 + 2200).hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(answers(&late), [(1, "released", None)], "a late request does not bind it after its silence");
}

#[test]
fn within_one_boot_grants_and_a_running_silence_are_remembered() {
    let held = Grant {
        holder: request(1, 1, 1).id.holder,
        epoch: Epoch(0),
        newest: request(1, 1, 1).id,
        term: Term(1),
        until: LocalTime::from_nanos(10_500),
    };
    let silence = LocalTime::from_nanos(10_200);
    let records = vec![Cell::Grant(GROUP, Some(held)), Cell::Silence(silence)];
    let memory = Memory { boot: HERE, writer: Incarnation(1), records };
    let mut bench = Bench::start(Store::Used(Incarnation(1), vec![]), Some(memory));
    bench.effects.clear();
    assert_eq!(answers(&bench.at(10_199).hear(2, Message::Request(request(2, 1, 2)))), []);
    assert_eq!(answers(&bench.at(10_200).hear(2, Message::Request(request(2, 1, 2)))), [(2, "busy", None)]);
    assert_eq!(answers(&bench.at(10_500).hear(2, Message::Request(request(2, 1, 2)))), [(2, "ok", Some(1))]);
}

#[test]
fn a_process_without_its_disk_neither_grants_nor_asks() {
    let mut bench = Bench::start(Store::Missing, None);
    bench.effects.clear();
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 1)))), []);
    bench.handle(Input::Command(Command::Campaign(GROUP)));
    assert_eq!(bench.node.next_deadline(), None);
}

#[test]
fn a_quorum_of_oks_makes_a_leader_until_e_and_not_a_nanosecond_longer() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.at(10_400).ok(0, asked);
    assert_eq!(bench.leads(), None);
    bench.ok(0, asked);
    assert_eq!(bench.leads(), None, "one grantor counts once");
    bench.ok(2, asked);
    assert_eq!(bench.leads(), Some(10_900), "E = Start + (1-rho) delta, from the start");
    assert_eq!(bench.at(10_899).leads(), Some(10_900));
    assert_eq!(bench.at(10_900).leads(), None);
}

#[test]
fn oks_that_come_when_the_lease_would_be_over_make_no_leader() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.at(10_899).ok(0, asked);
    bench.at(10_900).ok(1, asked);
    assert_eq!(bench.leads(), None);
}

#[test]
fn oks_of_an_aborted_run_count_for_nothing() {
    let mut bench = Bench::founded();
    let aborted = bench.ask();
    bench.handle(Input::Command(Command::Attempt { group: GROUP, lease: Span::from_nanos(1000) }));
    bench.ok(0, aborted);
    bench.ok(1, aborted);
    assert_eq!(bench.leads(), None);
}

#[test]
fn a_leader_renews_in_the_same_term_without_a_gap() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let effects = bench.at(10_450).handle(Input::Deadline);
    let renewal = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(*request),
        _ => None,
    });
    let renewal = renewal.expect("half of the lease is over");
    assert_eq!((renewal.kind, renewal.term), (Kind::Renew, asked.term));
    bench.ok(1, renewal);
    bench.ok(2, renewal);
    assert_eq!(bench.leads(), Some(10_450 + 900));
}

#[test]
fn a_renewal_that_completes_after_the_lease_has_lapsed_ends_the_term() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    bench.at(10_800).handle(Input::Command(Command::Attempt { group: GROUP, lease: Span::from_nanos(2000) }));
    let InstanceId { holder, seq } = asked.id;
    let renewal = GrantRequest { id: InstanceId { holder, seq: seq + 1 }, ..asked };
    bench.at(10_900).ok(0, renewal);
    let effects = bench.ok(1, renewal);
    assert_eq!(bench.leads(), None, "rule U: somebody may have led in between");
    assert!(effects.iter().any(|e| matches!(e, Effect::Publish(Event::Lost { loss: Loss::Lapsed, .. }))));
}

#[test]
fn a_refusal_by_too_small_a_term_is_answered_at_once_with_a_larger_one() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    let nack = Message::Nack { group: GROUP, id: asked.id, refusal: Refusal::StaleTerm, max_term: Term(41) };
    bench.hear(1, nack.clone());
    let effects = bench.hear(2, nack);
    let again = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(request.term),
        _ => None,
    });
    assert_eq!(again, Some(Term(42)));
}

#[test]
fn a_candidate_that_cannot_win_gives_back_what_it_holds() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    let refusal = Refusal::Busy { holder: NodeId(1), remaining: LocalSpan::from_nanos(300) };
    let nack = Message::Nack { group: GROUP, id: asked.id, refusal, max_term: Term(1) };
    bench.hear(1, nack.clone());
    let effects = bench.hear(2, nack);
    assert_eq!(answers(&effects), [(0, "release", None), (1, "release", None), (2, "release", None)]);
    assert_eq!(
        bench.node.next_deadline().map(LocalTime::as_nanos),
        Some(10_300),
        "it waits for the one who leads"
    );
}

#[test]
fn a_clock_that_goes_back_ends_leadership_and_is_said_once() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let effects = bench.at(9_000).handle(Input::Deadline);
    let by = LocalSpan::from_nanos(1_000);
    assert!(effects.contains(&Effect::Publish(Event::ClockWentBack { by })));
    assert_eq!(bench.leads(), None);
    assert_eq!(
        answers(&bench.hear(1, Message::Request(request(1, 1, 9)))),
        [],
        "it grants nothing by such a clock"
    );
    assert!(
        bench.node.next_deadline() >= Some(LocalTime::from_nanos(10_000)),
        "and asks for no time gone by"
    );
}

#[test]
fn a_reading_below_one_already_seen_proves_no_leadership() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let (seen, until) = (bench.now, bench.leads().expect("a quorum has answered"));
    let leads = |at: u64| bench.node.leadership(GROUP, LocalTime::from_nanos(at)).map(LocalTime::as_nanos);
    assert_eq!(leads(seen), Some(until));
    assert_eq!(leads(seen - 1), None, "the clock went back, though the machine has not been told yet");
    assert_eq!(leads(seen + 1), Some(until));
}

#[test]
fn one_machine_carries_many_groups_and_wakes_for_the_earliest() {
    let mut bench = Bench::founded();
    for group in [GroupId(3), GroupId(6)] {
        bench.at(bench.now + 5).handle(Input::Command(Command::Campaign(group)));
    }
    assert_eq!(bench.node.next_deadline().map(LocalTime::as_nanos), Some(10_005));
    let asked = bench.handle(Input::Deadline);
    let groups = asked.iter().filter_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(request.group.0),
        _ => None,
    });
    assert_eq!(groups.collect::<Vec<_>>(), [3, 6]);
}

#[test]
fn settings_that_can_elect_nobody_are_refused_by_name() {
    let refused = |change: fn(&mut Settings), word: &str| {
        let mut settings = settings();
        change(&mut settings);
        let error = settings.validate().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(|s| s.lease = Span::from_nanos(3000), "longest-lease");
    refused(|s| s.lease = Span::from_nanos(1), "lengthen lease");
    refused(|s| s.window = Span::from_nanos(0), "window");
    refused(|s| s.retry = Span::from_nanos(0), "retry");
    refused(|s| s.block = 0, "block");
    refused(|s| s.clocks.tick = LocalSpan::ZERO, "tick");
}

#[test]
fn the_sound_rules_take_no_room_and_count_nobody_unasked() {
    assert_eq!(size_of::<Sound>(), 0);
    assert_eq!(Sound.counted_unasked(Some(0)), NodeSet::EMPTY);
}

/// Node 0, leading since 10,000.
fn leading() -> Bench {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    bench
}

#[test]
fn a_pledge_delays_the_release_but_not_the_end_of_leadership() {
    let mut bench = leading();
    let id = request(2, 1, 1).id;
    let talk = Talk::Verify { id, wanted: Span::from_nanos(200) };
    assert_eq!(
        answers(&bench.at(10_100).hear(2, Message::Talk { group: GROUP, talk })),
        [(2, "certain", None)]
    );
    let effects = bench.handle(Input::Command(Command::Resign(GROUP)));
    assert_eq!((answers(&effects), bench.leads()), (vec![], None));
    let until = 10_100 + 1 + 220;
    assert_eq!(bench.node.next_deadline().map(LocalTime::as_nanos), Some(until));
    let effects = bench.at(until).handle(Input::Deadline);
    assert_eq!(answers(&effects).len(), 3, "now it gives back");
}

#[test]
fn an_answer_is_certain_from_the_start_of_the_question_and_only_the_newest_counts() {
    let mut bench = Bench::founded();
    let verify = Command::Verify { group: GROUP, leader: NodeId(1), wanted: Span::from_nanos(500) };
    bench.handle(Input::Command(verify.clone()));
    bench.at(10_050).handle(Input::Command(verify));
    let leader = request(1, 1, 1).id.holder;
    let pledge = crate::time::Pledge { lasts: Span::from_nanos(500), until: LocalTime::ZERO };
    let mut answer = |seq, now| {
        let id = InstanceId { holder: Holder { node: NodeId(0), incarnation: Incarnation(1) }, seq };
        let talk = Talk::Certain { id, leader, term: Term(1), pledge };
        let effects = bench.at(now).hear(1, Message::Talk { group: GROUP, talk });
        effects.iter().find_map(|effect| match effect {
            Effect::Publish(Event::Verified { until, .. }) => Some(until.as_nanos()),
            _ => None,
        })
    };
    assert_eq!(answer(1, 10_060), None, "an old question");
    assert_eq!(answer(2, 10_060), Some(10_050 + 450));
    assert_eq!(answer(2, 10_070), None, "answered already");
}

#[test]
fn one_who_does_not_lead_answers_no_question() {
    let mut bench = Bench::founded();
    let talk = Talk::Verify { id: request(2, 1, 1).id, wanted: Span::from_nanos(200) };
    assert_eq!(answers(&bench.hear(2, Message::Talk { group: GROUP, talk })), []);
}

#[test]
fn a_candidate_waits_for_its_own_grantor_and_no_longer_once_that_is_freed() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    bench.handle(Input::Command(Command::Campaign(GROUP)));
    assert_eq!(bench.node.next_deadline().map(LocalTime::as_nanos), Some(11_101));
    bench.at(10_300).hear(1, Message::Release { group: GROUP, upto: request(1, 1, 1).id });
    assert_eq!(bench.node.next_deadline().map(LocalTime::as_nanos), Some(10_300));
}

#[test]
fn a_slow_acquisition_does_not_make_the_renewal_late() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.at(10_600).ok(0, asked);
    bench.ok(1, asked);
    let next = bench.node.next_deadline().map(LocalTime::as_nanos);
    assert_eq!(next, Some(10_600), "half of the lease is over already");
}

#[test]
fn a_leader_that_needs_time_to_stop_renews_at_half_of_what_lies_before() {
    let next = |reserve| {
        let settings = Settings { reserve: Span::from_nanos(reserve), ..settings() };
        let mut bench = Bench::of(0, settings, Store::Founded(vec![]), None);
        let asked = bench.ask();
        bench.ok(0, asked);
        bench.ok(1, asked);
        bench.node.next_deadline().map(LocalTime::as_nanos)
    };
    assert_eq!(next(0), Some(10_450), "of a lease of 1000, 900 can be counted on");
    assert_eq!(next(400), Some(10_250), "half of 900 - 400");
    assert_eq!(next(5000), Some(10_112), "never without a pause");
}

#[test]
fn one_that_is_no_member_asks_at_once_if_it_is_eager_and_then_takes_its_turn() {
    let begins = |eager| {
        let mut bench = Bench::of(7, Settings { eager, ..settings() }, Store::Founded(vec![]), None);
        let effects = bench.handle(Input::Command(Command::Campaign(GROUP)));
        let asks = |effect: &Effect<Nerio>| matches!(effect, Effect::Publish(Event::Asked(_)));
        (effects.iter().any(asks), bench)
    };
    assert!(!begins(false).0);
    let (asked, mut bench) = begins(true);
    assert!(asked);
    // It collides with others, gives up what it holds, and campaigns anew: not at once.
    bench.node.groups.get_mut(&GROUP).unwrap().candidate.patience.crowded = true;
    bench.handle(Input::Command(Command::Resign(GROUP)));
    let again = bench.handle(Input::Command(Command::Campaign(GROUP)));
    assert!(!again.iter().any(|effect| matches!(effect, Effect::Publish(Event::Asked(_)))));
}

#[test]
fn what_is_told_while_the_clock_is_behind_is_done_in_order_when_it_has_caught_up() {
    let mut bench = Bench::founded();
    bench.at(10_500).handle(Input::Deadline);
    let told = [Command::Campaign(GROUP), Command::StandDown(GROUP), Command::Campaign(GROUP)];
    for command in told {
        let effects = bench.at(10_440).handle(Input::Command(command));
        assert!(effects.iter().all(|effect| matches!(effect, Effect::Publish(Event::ClockWentBack { .. }))));
    }
    let caught_up = bench.node.next_deadline().expect("it wants to be woken");
    assert_eq!(caught_up.as_nanos(), 10_500);
    bench.at(10_500).handle(Input::Deadline);
    assert!(bench.node.groups[&GROUP].candidate.campaigns());
    assert!(bench.node.process.kept.is_empty(), "once is enough");
}
