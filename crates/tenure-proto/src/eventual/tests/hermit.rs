//! One process alone, told by hand what others say: what it keeps, and what it answers when.

use super::*;

/// A process, and what it has done so far.
struct Hermit {
    process: Stable,
    now: LocalTime,
    tickets: Ticket,
    effects: Vec<Effect<Stable>>,
}

impl Hermit {
    fn start(settings: Settings, boot: Boot<Record>) -> Self {
        let config = settings.validate().unwrap();
        let (now, mut tickets, mut effects, mut first) = (LocalTime::ZERO, Ticket(0), Vec::new(), First);
        let mut cx = Context::new(now, &mut first, &mut tickets, &mut effects);
        let process = Stable::start(&config, NodeId(0), boot, &mut cx);
        Self { process, now, tickets, effects }
    }

    fn founded(settings: Settings) -> Self {
        let boot = Boot { incarnation: Incarnation(1), durable: Vec::new(), kind: BootKind::Founding };
        Self::start(settings, boot)
    }

    fn without_memory(settings: Settings) -> Self {
        let boot = Boot { incarnation: Incarnation(2), durable: Vec::new(), kind: BootKind::Rebooted };
        Self::start(settings, boot)
    }

    fn step(&mut self, input: Input<Stable>) {
        let mut first = First;
        let mut cx = Context::new(self.now, &mut first, &mut self.tickets, &mut self.effects);
        self.process.handle(input, &mut cx);
    }

    /// The effects of a message from another process.
    fn hears(&mut self, from: u64, message: Message) -> Vec<Effect<Stable>> {
        self.effects.clear();
        self.step(Input::Message { from: NodeId(from), received: self.now, message });
        self.effects.clone()
    }

    /// Whom it asks what they know when it next wakes, and by which number.
    fn asks(&mut self) -> Vec<(u64, u64)> {
        self.effects.clear();
        self.now = self.process.next_deadline().unwrap();
        self.step(Input::Deadline);
        let collect = |effect: &Effect<Stable>| match effect {
            Effect::Send { to, message: Message::Collect { read }, .. } => Some((to.0, *read)),
            _ => None,
        };
        self.effects.iter().filter_map(collect).collect()
    }
}

fn state(serial: u64, process: u64, fresh: u64) -> State {
    State { epoch: Epoch::of(serial, NodeId(process)), fresh, ..State::NOTHING }
}

fn entry(of: u64, state: State) -> Record {
    Record::Entry { of: NodeId(of), state }
}

/// The write that must be durable before the acknowledgement leaves, if one leaves.
fn acknowledged(effects: &[Effect<Stable>]) -> Option<Option<Ticket>> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Ack { .. }, after, .. } => Some(*after),
        _ => None,
    })
}

/// The last write of a record.
fn written(effects: &[Effect<Stable>], wanted: &Record) -> Option<Ticket> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { ticket, record } if record == wanted => Some(*ticket),
        _ => None,
    })
}

#[test]
fn who_has_forgotten_everything_acknowledges_nothing() {
    let mut hermit = Hermit::without_memory(settings(3));
    for message in [Message::Refresh { state: state(4, 1, 1), round: 9 }, Message::GetEpoch { attempt: 3 }] {
        let effects = hermit.hears(1, message);
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send { .. })), "{effects:?}");
    }
}

#[test]
fn what_another_tells_of_a_third_one_is_kept_like_what_that_one_says() {
    let told = state(4, 2, 7);
    let status =
        || Message::Status { read: 1, registry: vec![State::NOTHING, State::NOTHING, told], recovers: false };
    let effects = Hermit::founded(settings(3)).hears(1, status());
    assert!(effects.contains(&Effect::Remember(entry(2, told))), "{effects:?}");

    let mut durable = Hermit::founded(Settings { durable: true, ..settings(3) });
    let write = written(&durable.hears(1, status()), &entry(2, told));
    assert!(write.is_some());
    let effects = durable.hears(2, Message::Refresh { state: told, round: 9 });
    assert_eq!(acknowledged(&effects), Some(write), "it is no news, and waits for the disk all the same");
}

#[test]
fn a_refresh_that_comes_twice_is_acknowledged_no_sooner_than_the_first_is_written() {
    let mut hermit = Hermit::founded(Settings { durable: true, ..settings(3) });
    let refresh = || Message::Refresh { state: state(4, 1, 1), round: 9 };
    let first = hermit.hears(1, refresh());
    let write = written(&first, &entry(1, state(4, 1, 1)));
    assert!(write.is_some());
    assert_eq!(acknowledged(&first), Some(write));
    assert_eq!(acknowledged(&hermit.hears(1, refresh())), Some(write));
}

#[test]
fn what_memory_has_and_the_disk_lacks_is_written_again_after_a_restart() {
    let of_another = state(4, 1, 1);
    let own = state(3, 0, 6);
    let remembered = vec![Record::Whole, entry(1, of_another), entry(0, own)];
    let boot = Boot {
        incarnation: Incarnation(2),
        durable: vec![Record::Whole],
        kind: BootKind::SameBoot { remembered },
    };
    let mut hermit = Hermit::start(Settings { durable: true, ..settings(3) }, boot);
    let started = hermit.effects.clone();
    let write = written(&started, &entry(1, of_another));
    assert!(write.is_some(), "{started:?}");
    let effects = hermit.hears(1, Message::Refresh { state: of_another, round: 9 });
    assert_eq!(acknowledged(&effects), Some(write));

    let write = written(&started, &entry(0, own));
    assert!(write.is_some(), "{started:?}");
    let told = hermit.hears(1, Message::Collect { read: 4 });
    assert!(matches!(told[..], [Effect::Send { after, .. }] if after == write), "{told:?}");
}

#[test]
fn one_that_recovers_asks_those_again_that_recovered_too_when_it_asked() {
    let mut hermit = Hermit::without_memory(settings(5));
    let asked = hermit.asks();
    assert_eq!(asked.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let read = asked[0].1;
    let status = |recovers| Message::Status { read, registry: vec![State::NOTHING; 5], recovers };
    // n2 has lost its memory too, n1 and n3 know, and n4 is slow.
    hermit.hears(2, status(true));
    hermit.hears(1, status(false));
    hermit.hears(3, status(false));
    assert_eq!(hermit.asks(), [(2, read), (4, read)]);
    // n4 crashes for good. n2 had an answer of it before, and knows by now.
    let effects = hermit.hears(2, status(false));
    assert!(effects.contains(&Effect::Publish(Event::Recovered)), "{effects:?}");
}

#[test]
fn an_answer_to_a_question_for_an_epoch_counts_for_as_long_as_one_to_a_refresh() {
    let late = LocalTime::from_nanos(10_000_002);
    for (now, counts) in [(LocalTime::from_nanos(10_000_001), true), (late, false)] {
        let mut hermit = Hermit::founded(settings(3));
        hermit.now = now;
        let effects = hermit.hears(1, Message::RetEpoch { attempt: (1 << 32) + 1, serial: 6 });
        let stands = Effect::Publish(Event::Stands { epoch: Epoch::of(7, NodeId(0)) });
        assert_eq!(effects.contains(&stands), counts, "{now:?}");
    }
}

#[test]
fn one_wrong_number_keeps_nobody_alive() {
    let mut hermit = Hermit::founded(settings(3));
    let silent = State { bound: Span::from_nanos(u64::MAX), ..state(4, 1, 1) };
    hermit.hears(1, Message::Refresh { state: silent, round: 9 });
    for read in 1..=3 {
        let asked = loop {
            let asked = hermit.asks();
            if let Some((_, number)) = asked.first() {
                break *number;
            }
        };
        let registry = vec![State::NOTHING, silent, State::NOTHING];
        hermit.hears(2, Message::Status { read: asked, registry, recovers: false });
        let followed = hermit.process.hint(hermit.now).leader;
        assert_eq!(followed, (read == 1).then_some(NodeId(1)), "in read {read}");
    }
}

#[test]
fn what_no_member_can_have_said_changes_nothing() {
    let told = |registry| Message::Status { read: 1, registry, recovers: false };
    let wrong = |state| told(vec![State::NOTHING, State::NOTHING, state]);
    let nobody = State { epoch: Epoch { serial: 7, process: None }, ..State::NOTHING };
    let mut hermit = Hermit::founded(settings(3));
    let before = hermit.process.clone();
    for message in [
        Message::Refresh { state: state(u64::MAX, 1, 1), round: 9 },
        Message::Refresh { state: state(1, 1, u64::MAX), round: 9 },
        Message::Refresh { state: state(1, 2, 1), round: 9 },
        wrong(state(u64::MAX, 2, 1)),
        wrong(state(1, 2, u64::MAX)),
        wrong(state(1, 1, 1)),
        wrong(nobody),
        told(vec![State::NOTHING; 2]),
        Message::Ack { round: 1 << 32, ahead: Some(u64::MAX) },
        Message::RetEpoch { attempt: (1 << 32) + 1, serial: u64::MAX },
    ] {
        let effects = hermit.hears(1, message.clone());
        assert_eq!((effects, &hermit.process), (Vec::new(), &before), "{message:?}");
    }
    let effects = hermit.hears(1, Message::RetEpoch { attempt: (1 << 32) + 1, serial: 6 });
    assert!(effects.contains(&Effect::Publish(Event::Stands { epoch: Epoch::of(7, NodeId(0)) })));
}
