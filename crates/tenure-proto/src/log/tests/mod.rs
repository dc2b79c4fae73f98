//! The log, one behaviour at a time: a few machines, messages delivered as a test wants, disks that
//! write when told.

mod lies;
mod snapshots;
mod tails;

use std::collections::VecDeque;

use super::*;
use crate::boot::{BootId, Store, overwrite};
use crate::time::LocalSpan;
use crate::{Chooser, Effect};

struct First;

impl Chooser for First {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

/// A process with its disk.
struct Host {
    machine: Option<Paxos>,
    ticket: Ticket,
    store: Vec<Record>,
    unwritten: VecDeque<(Ticket, Record)>,
    durable: Ticket,
    waiting: Vec<(Ticket, NodeId, Message)>,
    events: Vec<Event>,
    life: u128,
}

/// Some processes, and the messages between them.
struct Cluster {
    hosts: Vec<Host>,
    config: Config,
    now: u64,
    mail: VecDeque<(NodeId, NodeId, Message)>,
    /// Links that lose everything.
    cut: Vec<(u64, u64)>,
    /// Whether disks write at once.
    quick: bool,
}

const RETRY: u64 = 10;

fn settings(members: u64, faults: usize) -> Settings {
    Settings {
        members: (0..members).map(NodeId).collect(),
        faults,
        retry: LocalSpan::from_nanos(RETRY),
        window: 4,
        snapshot_every: 8,
        snapshot_sooner: 0,
        keep: 2,
        sessions: 2,
        wishes: 16,
        page: usize::MAX,
        rules: Sound,
    }
}

impl Cluster {
    fn new(members: u64, faults: usize) -> Self {
        Self::with(settings(members, faults))
    }

    fn with(settings: Settings) -> Self {
        let members = settings.members.len() as u64;
        let config = settings.validate().unwrap();
        let host = || Host {
            machine: None,
            ticket: Ticket(0),
            store: Vec::new(),
            unwritten: VecDeque::new(),
            durable: Ticket(0),
            waiting: Vec::new(),
            events: Vec::new(),
            life: 0,
        };
        let hosts = (0..members).map(|_| host()).collect();
        let mut cluster = Self { hosts, config, now: 0, mail: VecDeque::new(), cut: Vec::new(), quick: true };
        (0..members).for_each(|node| cluster.start(node));
        cluster
    }

    fn start(&mut self, node: u64) {
        let (store, life) = (self.host(node).store.clone(), self.host(node).life);
        let store = if life == 0 { Store::Founded(store) } else { Store::Used(Incarnation(life), store) };
        self.boot(node, store);
    }

    fn boot(&mut self, node: u64, store: Store<Record>) {
        let boot = Boot::judge(store, None, BootId { boot: 0, clock_offset: 0, slept: 0, marker: 0 });
        let host = &mut self.hosts[NodeId(node).index()];
        (host.life, host.ticket, host.durable) = (boot.incarnation.0, Ticket(0), Ticket(0));
        let (mut effects, now) = (Vec::new(), LocalTime::from_nanos(self.now));
        let mut chance = First;
        let mut cx = Context::new(now, &mut chance, &mut host.ticket, &mut effects);
        host.machine = Some(Paxos::start(&self.config, NodeId(node), boot, &mut cx));
        self.carry_out(node, effects);
    }

    fn crash(&mut self, node: u64) {
        let host = self.host(node);
        host.machine = None;
        host.unwritten.clear();
        host.waiting.clear();
    }

    fn host(&mut self, node: u64) -> &mut Host {
        &mut self.hosts[NodeId(node).index()]
    }

    fn machine(&mut self, node: u64) -> &mut Paxos {
        self.host(node).machine.as_mut().unwrap()
    }

    fn input(&mut self, node: u64, input: Input<Paxos>) {
        let now = LocalTime::from_nanos(self.now);
        let host = self.host(node);
        let Some(machine) = &mut host.machine else { return };
        let mut effects = Vec::new();
        machine.handle(input, &mut Context::new(now, &mut First, &mut host.ticket, &mut effects));
        self.carry_out(node, effects);
    }

    fn carry_out(&mut self, node: u64, effects: Vec<Effect<Paxos>>) {
        for effect in effects {
            let host = self.host(node);
            match effect {
                Effect::Persist { ticket, record } => host.unwritten.push_back((ticket, record)),
                Effect::Remember(_) => unreachable!("the log remembers by its disk alone"),
                Effect::Publish(event) => host.events.push(event),
                Effect::Send { to, message, after } => match after.filter(|ticket| *ticket > host.durable) {
                    Some(ticket) => host.waiting.push((ticket, to, message)),
                    None => self.mail.push_back((NodeId(node), to, message)),
                },
            }
        }
        if self.quick {
            self.write(node);
        }
    }

    /// The disk of a process writes all that it was given.
    fn write(&mut self, node: u64) {
        let host = &mut self.hosts[NodeId(node).index()];
        for (ticket, record) in host.unwritten.drain(..) {
            overwrite(&mut host.store, record);
            host.durable = ticket;
        }
        for (_, to, message) in host.waiting.drain(..) {
            self.mail.push_back((NodeId(node), to, message));
        }
    }

    fn tell(&mut self, node: u64, command: Command) {
        self.input(node, Input::Command(command));
    }

    /// Delivers until nothing is on its way.
    fn settle(&mut self) {
        while !self.mail.is_empty() {
            self.deliver();
        }
    }

    /// Delivers until nothing is on its way; what is to be lost is.
    fn settle_but(&mut self, lost: impl Fn(NodeId, NodeId, &Message) -> bool) {
        while let Some((from, to, message)) = self.mail.front() {
            if lost(*from, *to, message) {
                self.mail.pop_front();
            } else {
                self.deliver();
            }
        }
    }

    /// Delivers the next message, unless it is lost.
    fn deliver(&mut self) {
        let Some((from, to, message)) = self.mail.pop_front() else { return };
        if !self.cut.contains(&(from.0, to.0)) {
            let received = LocalTime::from_nanos(self.now);
            self.input(to.0, Input::Message { from, received, message });
        }
    }

    /// The same; returns what was said between different processes.
    fn overhear(&mut self) -> Vec<Message> {
        let mut heard = Vec::new();
        while let Some((from, to, message)) = self.mail.pop_front() {
            heard.extend((from != to).then(|| message.clone()));
            let received = LocalTime::from_nanos(self.now);
            self.input(to.0, Input::Message { from, received, message });
        }
        heard
    }

    /// Time passes, with all that was due.
    fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        for node in 0..self.hosts.len() as u64 {
            self.input(node, Input::Deadline);
        }
        self.settle();
    }

    /// One process is told to lead, and everybody hears so.
    fn crown(&mut self, leader: u64, epoch: u64) {
        for node in 0..self.hosts.len() as u64 {
            self.tell(node, Command::Hint { leader: Some(NodeId(leader)), epoch });
        }
        self.settle();
    }

    fn isolate(&mut self, node: u64) {
        let others = (0..self.hosts.len() as u64).filter(|other| *other != node);
        self.cut.extend(others.flat_map(|other| [(node, other), (other, node)]));
    }

    fn open(&mut self, node: u64, nonce: u128) -> Session {
        self.tell(node, Command::Open { nonce });
        self.settle();
        let opened = |event: &Event| match event {
            Event::Applied { applied: Applied::Opened { nonce: n, session, .. }, .. } if *n == nonce => {
                Some(*session)
            }
            _ => None,
        };
        self.hosts.iter().flat_map(|host| &host.events).find_map(opened).unwrap()
    }

    fn write_to(&mut self, node: u64, session: Session, number: u64) {
        self.tell(node, Command::Write { session, number, bytes: number.to_be_bytes().into() });
        self.settle();
    }

    /// The writes carried out at a process, in order.
    fn carried_out(&self, node: u64) -> Vec<(Session, u64)> {
        let events = self.hosts[NodeId(node).index()].events.iter();
        let writes = events.filter_map(|event| match event {
            Event::Applied { applied: Applied::Write { session, number, .. }, .. } => {
                Some((*session, *number))
            }
            _ => None,
        });
        writes.collect()
    }

    fn seen(&self, node: u64, wanted: &Event) -> bool {
        self.hosts[NodeId(node).index()].events.contains(wanted)
    }

    fn prepares(&self) -> usize {
        let events = self.hosts.iter().flat_map(|host| &host.events);
        events.filter(|event| matches!(event, Event::Preparing(_))).count()
    }
}

#[test]
fn one_prepare_serves_a_whole_leadership_and_every_process_applies_the_same() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(1, 7);
    (1..=20).for_each(|number| cluster.write_to(number % 3, session, number));
    cluster.pass(RETRY);
    assert_eq!(cluster.prepares(), 1);
    for node in 0..3 {
        assert_eq!(cluster.carried_out(node), (1..=20).map(|number| (session, number)).collect::<Vec<_>>());
    }
}

#[test]
fn the_first_ballot_of_a_leadership_is_the_epoch_of_the_election() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(2, 40);
    assert_eq!(cluster.machine(2).leads(), Some(Ballot { term: 0, round: 40, node: NodeId(2) }));
}

#[test]
fn with_five_members_and_one_fault_two_accept_and_four_promise() {
    let mut cluster = Cluster::new(5, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    [2, 3, 4].into_iter().for_each(|node| cluster.isolate(node));
    cluster.write_to(0, session, 1);
    assert_eq!(cluster.carried_out(0), [(session, 1)], "f+1 = 2 of them suffice for a value");
    cluster.cut.clear();
    [3, 4].into_iter().for_each(|node| cluster.isolate(node));
    cluster.crown(2, 2);
    assert_eq!(cluster.machine(2).leads(), None, "three promises are not n-f = 4");
    cluster.cut.retain(|(from, to)| *from != 3 && *to != 3);
    cluster.pass(RETRY);
    assert!(cluster.machine(2).leads().is_some());
    assert_eq!(cluster.carried_out(2), [(session, 1)], "one of them had accepted the value");
}

#[test]
fn a_value_accepted_by_one_survives_its_leader_and_gaps_are_filled() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    // The first value gets to nobody, the second to n1 alone, without its answer.
    cluster.isolate(0);
    cluster.write_to(0, session, 1);
    cluster.cut = vec![(0, 2), (2, 0), (1, 0)];
    let bytes: Bytes = [2u8].as_slice().into();
    cluster.tell(0, Command::Write { session, number: 2, bytes });
    cluster.settle();
    cluster.crash(0);
    cluster.crown(1, 2);
    assert_eq!(cluster.carried_out(1), [(session, 2)]);
    let noop = Event::Applied { slot: Slot(session.0 + 1), applied: Applied::Noop };
    assert!(cluster.seen(1, &noop), "the slot of the lost value is filled");
}

#[test]
fn a_change_of_leader_costs_one_round_trip_and_one_for_what_was_left_unfinished() {
    let (mut cluster, others, unfinished) = (Cluster::new(5, 2), 4, 3);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.cut = (1..5).map(|node| (node, 0)).collect();
    for number in 1..=3 {
        cluster.write_to(0, session, number);
    }
    cluster.cut.clear();
    for node in 0..5 {
        cluster.tell(node, Command::Hint { leader: Some(NodeId(1)), epoch: 2 });
    }
    let heard = cluster.overhear();
    let prepared = heard.iter().filter(|m| matches!(m, Message::Prepare { .. } | Message::Promise { .. }));
    assert_eq!(prepared.count(), 2 * others);
    let slots = |message: &Message| match message {
        Message::Accept { entries, .. } => entries.len(),
        Message::Accepted { slots, .. } => slots.len(),
        _ => 0,
    };
    let taken_up: Vec<usize> = heard.iter().map(slots).filter(|slots| *slots > 0).collect();
    assert_eq!(taken_up.iter().sum::<usize>(), 2 * unfinished * others, "as the paper counts");
    assert_eq!(taken_up.len(), 2 * others, "which is one message for all slots");
    assert_eq!(cluster.carried_out(4), [(session, 1), (session, 2), (session, 3)]);
}

/// Three processes with seven slots, all of them restarted, and n1 told to lead; a message carries
/// one entry.
fn told_in_pages() -> Cluster {
    let mut cluster = Cluster::with(Settings { page: 1, ..settings(3, 1) });
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    (1..=6).for_each(|number| cluster.write_to(0, session, number));
    for node in 0..3 {
        cluster.crash(node);
        cluster.start(node);
    }
    cluster.tell(1, Command::Hint { leader: Some(NodeId(1)), epoch: 2 });
    cluster
}

/// How many entries a message carries.
fn carries(message: &Message) -> usize {
    match message {
        Message::Promise { votes, .. } => votes.len(),
        Message::Accept { entries, .. } | Message::Learn { entries, .. } => entries.len(),
        _ => 0,
    }
}

#[test]
fn no_message_carries_more_than_a_page_and_the_log_is_taken_up_whole() {
    let mut cluster = told_in_pages();
    let heard = cluster.overhear();
    assert_eq!(heard.iter().map(carries).max(), Some(1));
    assert_eq!(cluster.machine(1).applied(), Slot(7));
}

#[test]
fn a_promise_counts_with_its_last_page() {
    let mut cluster = told_in_pages();
    let later = |_, _, message: &Message| matches!(message, Message::Prepare { from, .. } if from.0 > 1);
    cluster.settle_but(later);
    assert_eq!(cluster.machine(1).leads(), None, "the others have told of one slot each");
    cluster.pass(RETRY);
    assert!(cluster.machine(1).leads().is_some());
    assert_eq!(cluster.machine(1).applied(), Slot(7));
}

#[test]
fn a_leader_in_whose_slots_another_chose_gives_way() {
    let mut cluster = Cluster::new(5, 2);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    // n0 and n1 alone accept the next value; n2 then chooses another one there with n3 and n4.
    let among = |node: NodeId| node.0 < 2;
    cluster.tell(0, Command::Write { session, number: 1, bytes: [1u8].as_slice().into() });
    cluster.settle_but(|from, to, _| among(from) != among(to));
    cluster.tell(2, Command::Hint { leader: Some(NodeId(2)), epoch: 2 });
    cluster.tell(2, Command::Write { session, number: 2, bytes: [2u8].as_slice().into() });
    cluster.settle_but(|from, to, _| among(from) != among(to));
    assert_eq!(cluster.carried_out(2), [(session, 2)]);
    // n0 hears of it only that it is so.
    let learns = |message: &Message| {
        matches!(message, Message::Commit { .. } | Message::Fetch { .. } | Message::Learn { .. })
    };
    cluster.now += RETRY;
    cluster.input(2, Input::Deadline);
    cluster.settle_but(|from, to, message| among(from) != among(to) && !(to.0 != 1 && learns(message)));
    assert_eq!(cluster.carried_out(0), [(session, 2)]);
    assert_eq!(cluster.machine(0).leads(), None, "a higher ballot chose in its slot");
    assert_eq!(cluster.carried_out(1), [], "and nobody is told that what it proposed is chosen");
}

#[test]
fn a_read_that_waits_for_a_slot_that_came_to_nothing_is_asked_about_again() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    // n0 alone holds a value of the next slot. Leading anew it knows of that slot, and tells n1 so;
    // the value gets to nobody.
    let accepts = |_, _, message: &Message| matches!(message, Message::Accept { .. });
    cluster.tell(0, Command::Write { session, number: 1, bytes: [1u8].as_slice().into() });
    cluster.settle_but(accepts);
    cluster.tell(0, Command::Hint { leader: None, epoch: 0 });
    cluster.tell(0, Command::Hint { leader: Some(NodeId(0)), epoch: 2 });
    cluster.settle_but(accepts);
    cluster.tell(1, Command::Read { id: 5 });
    cluster.settle_but(accepts);
    assert!(!cluster.seen(1, &Event::Readable { id: 5 }), "it waits for a slot that nobody here knows");
    cluster.crash(0);
    cluster.crown(1, 3);
    cluster.pass(RETRY);
    assert!(cluster.seen(1, &Event::Readable { id: 5 }));
}

#[test]
fn an_acceptor_refuses_what_is_below_its_promise_and_the_proposer_tries_higher() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 5);
    cluster.tell(1, Command::Hint { leader: Some(NodeId(1)), epoch: 9 });
    cluster.settle();
    assert!(cluster.machine(1).leads().is_some());
    assert_eq!(cluster.machine(0).leads(), None, "it has promised more itself");
    cluster.tell(1, Command::Hint { leader: Some(NodeId(0)), epoch: 5 });
    cluster.pass(3 * RETRY);
    assert_eq!(cluster.machine(0).leads().map(|ballot| ballot.round), Some(10));
}

#[test]
fn promise_and_vote_leave_when_they_are_durable_also_if_asked_for_again() {
    let mut cluster = Cluster::new(3, 1);
    cluster.quick = false;
    let ballot = Ballot { term: 0, round: 1, node: NodeId(0) };
    let accept = Message::Accept { ballot, entries: vec![(Slot(1), Entry::Noop)], upto: Slot(0) };
    let received = LocalTime::ZERO;
    for _ in 0..2 {
        let message = accept.clone();
        cluster.input(1, Input::Message { from: NodeId(0), received, message });
    }
    assert!(cluster.mail.is_empty());
    cluster.write(1);
    assert_eq!(cluster.mail.len(), 2);
    cluster.crash(1);
    cluster.start(1);
    assert_eq!(cluster.machine(1).promised(), ballot);
}

#[test]
fn a_ballot_is_heard_of_only_when_its_own_promise_is_durable() {
    let mut cluster = Cluster::new(3, 1);
    cluster.quick = false;
    cluster.tell(0, Command::Hint { leader: Some(NodeId(0)), epoch: 1 });
    assert!(cluster.mail.is_empty());
    cluster.write(0);
    let prepares = cluster.mail.iter().filter(|(.., message)| matches!(message, Message::Prepare { .. }));
    assert_eq!(prepares.count(), 2);
}

#[test]
fn a_write_that_is_asked_for_at_two_processes_is_carried_out_once() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(1, 1);
    cluster.write_to(1, session, 1);
    // The leader dies with the second write accepted; its client asks elsewhere, and the old one is
    // chosen as well.
    cluster.cut = vec![(1, 0), (2, 0)];
    cluster.write_to(0, session, 2);
    cluster.crash(0);
    cluster.cut.clear();
    cluster.write_to(2, session, 2);
    cluster.crown(2, 2);
    cluster.pass(RETRY);
    assert_eq!(cluster.carried_out(2), [(session, 1), (session, 2)]);
}

#[test]
fn a_session_that_made_room_is_refused() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let first = cluster.open(0, 1);
    (2..=3).for_each(|nonce| _ = cluster.open(0, nonce));
    cluster.write_to(0, first, 1);
    let expired = Applied::Expired { session: first, number: 1 };
    assert!(cluster.seen(0, &Event::Applied { slot: Slot(4), applied: expired }));
    assert_eq!(cluster.carried_out(0), []);
}

#[test]
fn who_lost_its_disk_promises_and_accepts_nothing_and_learns_all() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.crash(1);
    cluster.host(1).store.clear();
    cluster.boot(1, Store::Missing);
    assert!(cluster.machine(1).is_amnesiac());
    cluster.write_to(0, session, 1);
    cluster.pass(RETRY);
    assert_eq!(cluster.carried_out(1), [(session, 1)]);
    cluster.isolate(2);
    cluster.write_to(0, session, 2);
    cluster.pass(RETRY);
    assert_eq!(cluster.carried_out(0), [(session, 1)], "one that votes is not enough");
}

#[test]
fn who_lost_its_disk_knows_that_in_every_later_life() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    cluster.crash(1);
    cluster.host(1).store.clear();
    cluster.boot(1, Store::Missing);
    cluster.settle();
    for _ in 0..2 {
        cluster.crash(1);
        cluster.start(1);
        assert!(cluster.machine(1).is_amnesiac());
    }
}

#[test]
fn a_read_asks_f_others_and_a_leader_that_is_superseded_does_not_answer() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    cluster.tell(0, Command::Read { id: 1 });
    assert!(!cluster.seen(0, &Event::Readable { id: 1 }));
    cluster.settle();
    assert!(cluster.seen(0, &Event::Readable { id: 1 }));
    cluster.isolate(0);
    cluster.tell(1, Command::Hint { leader: Some(NodeId(1)), epoch: 2 });
    cluster.settle();
    cluster.cut.clear();
    cluster.tell(0, Command::Read { id: 2 });
    cluster.settle();
    assert!(!cluster.seen(0, &Event::Readable { id: 2 }));
    cluster.tell(0, Command::Hint { leader: Some(NodeId(1)), epoch: 2 });
    cluster.settle();
    assert!(cluster.seen(0, &Event::Readable { id: 2 }), "the one that leads tells how far to apply");
}

/// A cluster in which n0 leads in term 3, with a lease until 1000.
fn leased() -> (Cluster, Session) {
    let mut cluster = Cluster::new(3, 1);
    cluster.tell(0, Command::Lease { term: 3, until: LocalTime::from_nanos(1000) });
    cluster.crown(0, 0);
    let session = cluster.open(0, 1);
    (cluster, session)
}

#[test]
fn under_the_lease_nobody_is_asked_and_the_clock_is_looked_at_after_the_state() {
    let (mut cluster, _) = leased();
    cluster.tell(0, Command::Read { id: 1 });
    assert!(cluster.seen(0, &Event::ReadNow { id: 1 }) && cluster.mail.is_empty());
    cluster.tell(0, Command::ReadDone { id: 1 });
    assert!(cluster.seen(0, &Event::ReadStands { id: 1 }));
    cluster.tell(0, Command::Read { id: 2 });
    cluster.now = 1000;
    cluster.tell(0, Command::ReadDone { id: 2 });
    assert!(!cluster.seen(0, &Event::ReadStands { id: 2 }), "the lease ended in between");
    cluster.settle();
    assert!(cluster.seen(0, &Event::Readable { id: 2 }), "so others were asked");
}

#[test]
fn a_lease_of_another_term_than_the_ballot_serves_no_local_read() {
    let (mut cluster, _) = leased();
    cluster.tell(0, Command::LeaseOver);
    cluster.tell(0, Command::Read { id: 1 });
    assert!(!cluster.seen(0, &Event::ReadNow { id: 1 }));
    cluster.settle();
    cluster.tell(0, Command::Lease { term: 5, until: LocalTime::from_nanos(2000) });
    cluster.tell(0, Command::Read { id: 2 });
    assert!(!cluster.seen(0, &Event::ReadNow { id: 2 }), "the ballot of the new term is not promised yet");
    cluster.settle();
    assert_eq!(cluster.machine(0).leads().map(|ballot| ballot.term), Some(5));
    cluster.tell(0, Command::Read { id: 3 });
    assert!(cluster.seen(0, &Event::ReadNow { id: 3 }));
}

#[test]
fn an_earlier_leader_cannot_get_above_the_term_of_a_later_one() {
    let (mut cluster, session) = leased();
    cluster.tell(1, Command::Lease { term: 4, until: LocalTime::from_nanos(5000) });
    cluster.isolate(0);
    cluster.tell(1, Command::Hint { leader: Some(NodeId(1)), epoch: 0 });
    cluster.settle();
    cluster.cut.clear();
    let applied = cluster.machine(1).applied();
    cluster.write_to(0, session, 1);
    (0..5).for_each(|_| cluster.pass(3 * RETRY));
    assert_eq!(cluster.machine(0).leads(), None);
    assert!(cluster.machine(1).leads().is_some());
    assert_eq!(cluster.machine(1).applied(), applied, "n0 is told to lead, but chooses nothing");
}

#[test]
fn at_most_a_window_of_slots_is_on_its_way() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(0);
    for number in 1..=9 {
        cluster.tell(0, Command::Write { session, number, bytes: [0u8].as_slice().into() });
    }
    let accepts = cluster.mail.iter().filter(|(.., message)| matches!(message, Message::Accept { .. }));
    assert_eq!(accepts.count(), 2 * 4);
    cluster.settle();
    cluster.cut.clear();
    (0..3).for_each(|_| cluster.pass(RETRY));
    assert_eq!(cluster.carried_out(2).len(), 9);
}

#[test]
fn a_single_process_is_its_own_quorum() {
    let mut cluster = Cluster::new(1, 0);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.write_to(0, session, 1);
    cluster.tell(0, Command::Read { id: 1 });
    assert_eq!(cluster.carried_out(0), [(session, 1)]);
    assert!(cluster.seen(0, &Event::Readable { id: 1 }));
}

#[test]
fn settings_whose_quorums_would_not_meet_are_refused() {
    let error = settings(4, 2).validate().unwrap_err();
    assert_eq!(error, ConfigError::TooManyFaults { faults: 2, most: 1 });
}

#[test]
fn a_session_is_opened_once_however_often_it_is_asked_for() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 7);
    cluster.tell(1, Command::Open { nonce: 7 });
    cluster.settle();
    assert!(cluster.seen(1, &Event::Done(Key::Open(7))));
    assert_eq!(cluster.machine(1).sessions().opened_by(7), Some(session));
    assert_eq!(cluster.machine(0).applied(), Slot(1));
}

#[test]
fn who_is_told_of_no_leader_asks_the_one_it_heard_of_last() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.tell(2, Command::Hint { leader: None, epoch: 1 });
    cluster.write_to(2, session, 1);
    assert_eq!(cluster.carried_out(2), [(session, 1)]);
    cluster.tell(2, Command::Read { id: 7 });
    cluster.settle();
    assert!(cluster.seen(2, &Event::Readable { id: 7 }));
}
