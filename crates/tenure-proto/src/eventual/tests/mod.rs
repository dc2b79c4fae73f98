//! Machines driven by hand, over a network that keeps every message until it is asked for.

mod hermit;

use super::config::{ConfigError, Settings};
use super::*;
use crate::quorum::Quorums;
use crate::time::{Drift, LocalSpan, Span};
use crate::{Boot, BootKind, Chooser, Context, Effect, GroupId, Incarnation, Input, NodeId, Ticket};

struct First;

impl Chooser for First {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

fn settings(members: u64) -> Settings {
    let members = (0..members).map(NodeId).collect();
    Settings {
        access: Access::by(Quorums::majority(members).unwrap()),
        period: Span::from_millis(25),
        round: Span::from_millis(10),
        drift: Drift::from_ppm(0).unwrap(),
        tick: LocalSpan::from_nanos(1),
        step: Span::from_nanos(0),
        sticky: false,
        durable: false,
        learns: None,
        rules: Sound,
    }
}

/// Processes whose messages arrive at once, unless somebody is cut off.
struct Company<P: Hints> {
    processes: Vec<P>,
    now: LocalTime,
    cut: Vec<NodeId>,
    /// Those that do nothing, as if stopped.
    paused: Vec<usize>,
    kept: Vec<Vec<Record>>,
}

impl<P: Hints> Company<P> {
    fn new(config: &P::Config, members: usize) -> Self {
        let mut company = Self {
            processes: Vec::new(),
            now: LocalTime::from_nanos(1_000_000),
            cut: Vec::new(),
            paused: Vec::new(),
            kept: vec![Vec::new(); members],
        };
        let mut mail = Vec::new();
        for me in 0..members {
            let boot = Boot { incarnation: Incarnation(1), durable: Vec::new(), kind: BootKind::Founding };
            let mut effects = Vec::new();
            let mut ticket = Ticket(0);
            let mut first = First;
            let mut cx = Context::new(company.now, &mut first, &mut ticket, &mut effects);
            company.processes.push(P::start(config, NodeId(me as u64), boot, &mut cx));
            company.carry_out(me, effects, &mut mail);
        }
        company.deliver(mail);
        company
    }

    fn carry_out(&mut self, me: usize, effects: Vec<Effect<P>>, mail: &mut Vec<(NodeId, NodeId, Message)>) {
        let from = NodeId(me as u64);
        for effect in effects {
            match effect {
                Effect::Send { to, message, .. } if !self.cut.contains(&from) && !self.cut.contains(&to) => {
                    mail.push((from, to, message));
                }
                Effect::Remember(record) => crate::boot::overwrite(&mut self.kept[me], record),
                _ => {}
            }
        }
    }

    fn step(&mut self, me: usize, input: Input<P>, mail: &mut Vec<(NodeId, NodeId, Message)>) {
        let (mut effects, mut ticket) = (Vec::new(), Ticket(0));
        let mut first = First;
        let mut cx = Context::new(self.now, &mut first, &mut ticket, &mut effects);
        self.processes[me].handle(input, &mut cx);
        self.carry_out(me, effects, mail);
    }

    fn deliver(&mut self, mut mail: Vec<(NodeId, NodeId, Message)>) {
        while !mail.is_empty() {
            for (from, to, message) in std::mem::take(&mut mail) {
                let input = Input::Message { from, received: self.now, message };
                self.step(to.index(), input, &mut mail);
            }
        }
    }

    /// Lets time pass, from deadline to deadline.
    fn pass(&mut self, millis: u64) {
        let until = self.now.after(LocalSpan::from_nanos(millis * 1_000_000));
        loop {
            let due = (0..self.processes.len())
                .filter(|me| !self.paused.contains(me))
                .filter_map(|me| Some((self.processes[me].next_deadline()?, me)))
                .min();
            let Some((at, me)) = due.filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(at);
            let mut mail = Vec::new();
            self.step(me, Input::Deadline, &mut mail);
            self.deliver(mail);
        }
        self.now = until;
    }

    /// The number of a process's next read, when it asks for answers.
    fn next_read(&mut self, me: usize) -> u64 {
        let mut mail = Vec::new();
        loop {
            self.now = self.processes[me].next_deadline().unwrap();
            self.step(me, Input::Deadline, &mut mail);
            let asks = mail.drain(..).find_map(|(_, _, message)| match message {
                Message::Collect { read } => Some(read),
                _ => None,
            });
            if let Some(read) = asks {
                return read;
            }
        }
    }

    fn leaders(&self) -> Vec<Option<u64>> {
        self.processes.iter().map(|process| process.hint(self.now).leader.map(|leader| leader.0)).collect()
    }

    fn claims(&self) -> Vec<usize> {
        let claims = |me: &usize| self.processes[*me].leadership(GroupId(0), self.now).is_some();
        (0..self.processes.len()).filter(claims).collect()
    }
}

#[test]
fn on_a_quick_network_everybody_follows_the_lowest_epoch() {
    let config = settings(3).validate().unwrap();
    let mut omega = Company::<Omega>::new(&config, 3);
    omega.pass(200);
    assert_eq!((omega.leaders(), omega.claims()), (vec![Some(0); 3], vec![0]));
    let mut lean = Company::<Lean>::new(&config, 3);
    lean.pass(200);
    assert_eq!((lean.leaders(), lean.claims()), (vec![Some(0); 3], vec![0]));
}

/// The first leader is cut off for a while, after the others have given up many epochs. Whom they
/// follow before it comes back, and after.
fn returns<P: Hints>(config: &P::Config) -> [Vec<Option<u64>>; 2] {
    let mut company = Company::<P>::new(config, 3);
    company.pass(400);
    let first = NodeId(company.leaders()[0].unwrap()).index();
    let others = |company: &Company<P>| -> Vec<Option<u64>> {
        let leaders = company.leaders().into_iter().enumerate();
        leaders.filter(|(me, _)| *me != first).map(|(_, leader)| leader).collect()
    };
    for other in (0..40).map(|nth| nth % 3).filter(|other| *other != first) {
        let mut mail = Vec::new();
        company.step(other, Input::Command(Command::Abdicate), &mut mail);
        company.deliver(mail);
    }
    company.pass(400);
    assert_eq!(others(&company), [Some(first as u64); 2], "epochs that others give up are nothing to it");
    company.cut = vec![NodeId(first as u64)];
    // A few rounds fail, and its serial is still lower than theirs when it comes back, if it asks
    // nobody for one.
    company.pass(200);
    let between = others(&company);
    assert!(between.iter().all(|leader| leader.is_some_and(|leader| leader != first as u64)), "{between:?}");
    company.cut.clear();
    company.pass(2000);
    [between, others(&company)]
}

#[test]
fn one_that_was_cut_off_comes_back_and_demotes_a_good_leader_unless_the_election_is_stable() {
    let config = settings(3).validate().unwrap();
    let [between, after] = returns::<Stable>(&config);
    assert_eq!(between, after, "who led while the first was away leads on");
    let [between, after] = returns::<Omega>(&config);
    assert_eq!((between, after), (vec![Some(1); 2], vec![Some(0); 2]));
}

#[test]
fn a_pause_shuts_a_leader_out_for_good_only_where_expiry_is_sticky() {
    let after_a_pause = |sticky: bool| {
        let config = Settings { sticky, ..settings(3) }.validate().unwrap();
        let mut company = Company::<Omega>::new(&config, 3);
        company.pass(400);
        assert_eq!(company.leaders(), [Some(0); 3]);
        (company.cut, company.paused) = (vec![NodeId(0)], vec![0]);
        company.pass(200);
        assert_eq!(company.leaders()[1..], [Some(1); 2], "its state gets no newer");
        (company.cut, company.paused) = (Vec::new(), Vec::new());
        company.pass(2000);
        company.leaders()
    };
    assert_eq!(after_a_pause(false), [Some(0); 3]);
    assert_eq!(after_a_pause(true), [Some(0), Some(1), Some(1)]);
}

#[test]
fn a_stable_leader_that_is_cut_off_stops_before_another_begins() {
    let config = settings(3).validate().unwrap();
    let mut company = Company::<Stable>::new(&config, 3);
    company.pass(400);
    let [leader] = company.claims()[..] else { panic!("nobody leads") };
    company.cut = vec![NodeId(leader as u64)];
    let mut seen = Vec::new();
    for _ in 0..400 {
        company.pass(1);
        let claims = company.claims();
        assert!(claims.len() <= 1, "{claims:?}");
        seen.extend(claims);
    }
    assert!(seen.last().is_some_and(|last| *last != leader));
}

#[test]
fn a_stable_leader_that_was_stopped_for_a_while_does_not_go_on_by_its_old_epoch() {
    let config = settings(3).validate().unwrap();
    let mut company = Company::<Stable>::new(&config, 3);
    company.pass(400);
    let [leader] = company.claims()[..] else { panic!("nobody leads") };
    (company.cut, company.paused) = (vec![NodeId(leader as u64)], vec![leader]);
    company.pass(400);
    let [other] = company.claims()[..] else { panic!("nobody leads") };
    assert_ne!(other, leader);
    (company.cut, company.paused) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        company.pass(1);
        assert_eq!(company.claims(), [other]);
    }
}

#[test]
fn a_leadership_ends_by_the_clock_though_no_timer_has_run() {
    let config = settings(3).validate().unwrap();
    let mut company = Company::<Stable>::new(&config, 3);
    company.pass(400);
    let [leader] = company.claims()[..] else { panic!("nobody leads") };
    let until = company.processes[leader].leadership(GroupId(0), company.now).unwrap();
    assert_eq!(company.processes[leader].leadership(GroupId(0), until), None);
    assert!(until <= company.now.after(LocalSpan::from_nanos(36_000_000)));
    assert_ne!(company.processes[leader].hint(until).leader, Some(NodeId(leader as u64)));
}

/// n0 forgot that it stood for a high serial, and the last one who knew tells it in a read, and
/// forgets that too.
fn the_last_one_who_knew_tells<P: Hints<Command = Command, Message = Message>>(config: &P::Config) {
    let mut company = Company::<P>::new(config, 3);
    for other in [1, 2, 1, 2, 1, 2] {
        let mut mail = Vec::new();
        company.step(other, Input::Command(Command::Abdicate), &mut mail);
        company.deliver(mail);
    }
    company.pass(1_000);
    let read = company.next_read(0);
    let former = State { epoch: Epoch::of(40, NodeId(0)), fresh: 9, ..State::NOTHING };
    let registry = vec![former, State::NOTHING, State::NOTHING];
    let message = Message::Status { read, registry, recovers: false };
    company.step(0, Input::Message { from: NodeId(1), received: company.now, message }, &mut Vec::new());
    company.pass(5_000);
    let leaders = company.leaders();
    assert!(leaders[0].is_some() && leaders.iter().all(|leader| *leader == leaders[0]), "{leaders:?}");
}

#[test]
fn who_hears_in_a_read_that_it_stood_for_more_stands_for_more_again() {
    let config = settings(3).validate().unwrap();
    the_last_one_who_knew_tells::<Omega>(&config);
    the_last_one_who_knew_tells::<Lean>(&config);
    the_last_one_who_knew_tells::<Stable>(&config);
}

#[test]
fn a_leader_that_hears_of_a_higher_epoch_of_its_own_yields_the_one_it_led_by_and_shows_no_other() {
    let config = settings(3).validate().unwrap();
    let mut company = Company::<Stable>::new(&config, 3);
    company.pass(400);
    let [leader] = company.claims()[..] else { panic!("nobody leads") };
    let (me, led) = (NodeId(leader as u64), company.processes[leader].hint(company.now).epoch);
    let read = company.next_read(leader);
    let mut registry = vec![State::NOTHING; 3];
    registry[leader] = State { epoch: Epoch::of(40, me), fresh: 9, ..State::NOTHING };
    let message = Message::Status { read, registry, recovers: false };
    let (mut effects, mut ticket, mut first) = (Vec::new(), Ticket(0), First);
    let mut cx = Context::new(company.now, &mut first, &mut ticket, &mut effects);
    let from = NodeId((me.0 + 1) % 3);
    company.processes[leader].handle(Input::Message { from, received: company.now, message }, &mut cx);
    let shown: Vec<Event> = effects
        .into_iter()
        .filter_map(|effect| if let Effect::Publish(event) = effect { Some(event) } else { None })
        .filter(|event| matches!(event, Event::Hint(_) | Event::Leads { .. } | Event::Yields { .. }))
        .collect();
    assert_eq!(shown[..2], [Event::Yields { epoch: led }, Event::Hint(Hint::default())]);
    let others = |event: &Event| matches!(event, Event::Hint(hint) if hint.leader.is_some_and(|it| it != me));
    assert!(shown[2..].iter().all(others), "{shown:?}");
}

#[test]
fn a_period_within_which_no_round_can_fail_is_refused() {
    let settings = Settings { period: Span::from_millis(10), ..settings(3) };
    assert!(matches!(settings.validate(), Err(ConfigError::PeriodTooShort { .. })));
}
