//! A member: the log, the election that drives it, and the state that it keeps. This is what a
//! driver of the log looks like.

use std::collections::BTreeMap;

use tenure_proto::log::{self, Applied, Command, Event, Key, Paxos, Rules};
use tenure_proto::strong;
use tenure_proto::time::LocalSpan;
use tenure_proto::{Boot, Effect, Input, LocalTime, NodeId, Protocol, eventual};

use super::client::Client;
use super::electing::{Electing, GROUP, Said};
use super::kv::{KeyName, Kv, Write};
use super::{Ask, AskId, Config, Context, Happening, Host, Kept, Nerio, Reply, Talk, Wish};

/// One life of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member<R: Rules> {
    me: NodeId,
    look: LocalSpan,
    pub(super) log: Paxos<R>,
    election: Electing,
    kv: Kv,
    /// The question that waits for each wish.
    waits: BTreeMap<Key, AskId>,
    reads: BTreeMap<u64, Reading>,
    /// Threads that are about to look at the state, or have done so, and when they are.
    looks: BTreeMap<u64, (Thread, LocalTime)>,
    /// Until when this member neither hears nor reaches the others.
    cut: Option<LocalTime>,
    read: u64,
    /// Somebody pretends that this one should lead, until then.
    lie: Option<(Option<NodeId>, LocalTime)>,
    told: Option<(Option<NodeId>, u64)>,
    client: Option<Client>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reading {
    reader: AskId,
    key: KeyName,
    /// The state when it was looked at under the lease.
    saw: Option<u64>,
}

/// The next step of a thread that reads under the lease. Anything may happen in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Looks,
    Looked,
}

impl<R: Rules> Member<R> {
    pub(super) fn start(config: &Config<R>, me: NodeId, boot: Boot<Kept>, cx: &mut Context<'_, R>) -> Self {
        let life = boot.incarnation;
        let (for_log, for_strong) = split(boot);
        let mut events = Vec::new();
        let log = cx
            .layer(|effect| log_effect(effect, &mut events), |cx| Paxos::start(&config.log, me, for_log, cx));
        let election = Electing::start(&config.election, me, for_strong, cx);
        let client = config.own_clients.then(|| Client::new(config.manner, me, life, Some(me)));
        let mut member = Self {
            me,
            look: config.look,
            log,
            election,
            kv: Kv::default(),
            waits: BTreeMap::new(),
            reads: BTreeMap::new(),
            looks: BTreeMap::new(),
            cut: None,
            read: 0,
            lie: None,
            told: None,
            client,
        };
        member.heed(events, cx);
        member
    }

    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        let own = [self.log.next_deadline(), self.election.next_deadline(), self.lie.map(|(_, until)| until)];
        let client = self.client.as_ref().and_then(Client::next_deadline);
        own.into_iter().flatten().chain(client).chain(self.looks.values().map(|(_, at)| *at)).min()
    }

    pub(super) fn handle(&mut self, input: Input<Host<R>>, cx: &mut Context<'_, R>) {
        match input {
            Input::Message { from, received, message } => self.on_message(from, received, message, cx),
            Input::Command(super::Command::Go) => {
                self.stand(strong::Command::Campaign(GROUP), cx);
                if let Some(client) = &mut self.client {
                    client.go(cx);
                }
            }
            Input::Command(super::Command::Lie { leader, lasts }) => {
                self.lie = Some((leader, cx.now().after(lasts)));
                self.tell_hint(cx);
            }
            Input::Command(super::Command::Estrange { rival, cut, lasts }) => {
                if self.log.leads().is_some() {
                    self.cut = Some(cx.now().after(cut));
                    self.lie = Some((Some(self.me), cx.now().after(lasts)));
                    cx.send(rival, Talk::Tempt(lasts), None);
                }
            }
            Input::Command(super::Command::Do { .. }) => {}
            Input::Command(super::Command::Strong(command)) => self.stand(command, cx),
            Input::Command(super::Command::Omega(command)) => {
                self.election_step(Said::Omega(Input::Command(command)), cx);
            }
            Input::Deadline => self.on_deadline(cx),
        }
    }

    fn on_message(&mut self, from: NodeId, received: LocalTime, message: Talk, cx: &mut Context<'_, R>) {
        if from != self.me && self.is_cut(cx.now()) && !gets_through(&message) {
            return;
        }
        match message {
            Talk::Log(message) => self.log_step(Input::Message { from, received, message }, cx),
            Talk::Strong(message) => {
                self.election_step(Said::Strong(Input::Message { from, received, message }), cx);
            }
            Talk::Omega(message) => {
                self.election_step(Said::Omega(Input::Message { from, received, message }), cx);
            }
            Talk::Tempt(lasts) => {
                self.lie = Some((Some(self.me), cx.now().after(lasts)));
                self.tell_hint(cx);
            }
            Talk::Ask(ask) => self.on_ask(ask, cx),
            Talk::Answer { id, reply } => {
                if let Some(client) = &mut self.client {
                    client.on_answer(from, id, reply, cx);
                }
            }
        }
    }

    fn on_deadline(&mut self, cx: &mut Context<'_, R>) {
        let now = cx.now();
        if self.lie.take_if(|(_, until)| *until <= now).is_some() {
            self.tell_hint(cx);
        }
        let due: Vec<u64> = self.looks.iter().filter(|(_, (_, at))| *at <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.look(id, cx);
        }
        if self.election.next_deadline().is_some_and(|at| at <= now) {
            self.election_step(self.election.deadline(), cx);
        }
        if self.log.next_deadline().is_some_and(|at| at <= now) {
            self.log_step(Input::Deadline, cx);
        }
        if let Some(client) = &mut self.client {
            client.on_deadline(cx);
        }
    }

    fn is_cut(&self, now: LocalTime) -> bool {
        self.cut.is_some_and(|until| now < until)
    }

    /// A thread takes its next step: it looks at the state, or says that it has.
    fn look(&mut self, id: u64, cx: &mut Context<'_, R>) {
        match (self.looks.remove(&id), self.reads.get_mut(&id)) {
            (Some((Thread::Looks, _)), Some(reading)) => {
                reading.saw = self.kv.get(reading.key);
                let long = cx.jitter(self.look.fraction(1, 4));
                self.looks.insert(id, (Thread::Looked, cx.now().after(long)));
            }
            (Some((Thread::Looked, _)), _) => self.log_step(Input::Command(Command::ReadDone { id }), cx),
            _ => {}
        }
    }

    fn on_ask(&mut self, Ask { id, wish }: Ask, cx: &mut Context<'_, R>) {
        let command = match wish {
            Wish::Open { nonce } => {
                self.waits.insert(Key::Open(nonce), id);
                Command::Open { nonce }
            }
            Wish::Write { session, number, write } => {
                self.waits.insert(Key::Write(session, number), id);
                Command::Write { session, number, bytes: write.encode() }
            }
            Wish::Read { key } => {
                self.read += 1;
                self.reads.insert(self.read, Reading { reader: id, key, saw: None });
                Command::Read { id: self.read }
            }
        };
        self.log_step(Input::Command(command), cx);
    }

    fn log_step(&mut self, input: Input<Paxos<R>>, cx: &mut Context<'_, R>) {
        let mut events = Vec::new();
        let reach = Reach { me: self.me, cut: self.is_cut(cx.now()) };
        let log = &mut self.log;
        cx.layer(|effect| reach.filter(log_effect(effect, &mut events)), |cx| log.handle(input, cx));
        self.heed(events, cx);
    }

    /// Carries out the events of the log, in order.
    fn heed(&mut self, events: Vec<Event>, cx: &mut Context<'_, R>) {
        for event in events {
            match event {
                Event::Restore { state, .. } => self.kv = Kv::decode(&state),
                Event::Applied { applied, .. } => self.apply(applied, cx),
                Event::Done(key) => self.answer_wish(key, cx),
                Event::Readable { id } => self.answer_read(id, |kv, reading| kv.get(reading.key), cx),
                Event::ReadStands { id } => self.answer_read(id, |_, reading| reading.saw, cx),
                Event::ReadNow { id } => {
                    let long = cx.jitter(self.look);
                    self.looks.insert(id, (Thread::Looks, cx.now().after(long)));
                }
                Event::SnapshotWanted { upto } => {
                    let state = self.kv.encode();
                    self.log_step(Input::Command(Command::Snapshot { upto, state }), cx);
                }
                _ => {}
            }
        }
    }

    fn apply(&mut self, applied: Applied, cx: &mut Context<'_, R>) {
        match applied {
            Applied::Noop => {}
            Applied::Opened { nonce, session, closed } => {
                if let Some(closed) = closed {
                    self.kv.close(closed);
                }
                self.answer(Key::Open(nonce), Reply::Opened(session), cx);
            }
            Applied::Write { session, number, bytes } => {
                let Some(write) = Write::decode(&bytes) else { return };
                self.kv.write(session, number, write);
                self.answer_wish(Key::Write(session, number), cx);
            }
            Applied::Again { session, number } => self.answer_wish(Key::Write(session, number), cx),
            Applied::Expired { session, number } => {
                self.answer(Key::Write(session, number), Reply::Expired, cx);
            }
        }
    }

    fn answer_wish(&mut self, key: Key, cx: &mut Context<'_, R>) {
        let reply = match key {
            Key::Open(nonce) => self.log.sessions().opened_by(nonce).map(Reply::Opened),
            Key::Write(session, number) => self.kv.answer(session, number).map(Reply::Saw),
        };
        if let Some(reply) = reply {
            self.answer(key, reply, cx);
        }
    }

    fn answer(&mut self, key: Key, reply: Reply, cx: &mut Context<'_, R>) {
        if let Some(id) = self.waits.remove(&key) {
            cx.send(id.client, Talk::Answer { id, reply }, None);
        }
    }

    fn answer_read(
        &mut self,
        id: u64,
        saw: impl FnOnce(&Kv, &Reading) -> Option<u64>,
        cx: &mut Context<'_, R>,
    ) {
        if let Some(reading) = self.reads.remove(&id) {
            let saw = saw(&self.kv, &reading);
            let id = reading.reader;
            cx.send(id.client, Talk::Answer { id, reply: Reply::Saw(saw) }, None);
        }
    }

    /// One step of the election, and what follows for the log: first that a lease is over, then
    /// everything else.
    fn election_step(&mut self, input: Said, cx: &mut Context<'_, R>) {
        let reach = Reach { me: self.me, cut: self.is_cut(cx.now()) };
        let events = self.election.handle(input, |effect| reach.filter(effect), cx);
        if matches!(self.election, Electing::Strong { lease: true, .. }) {
            for event in events {
                let command = match event {
                    strong::Event::Leads { term, until, .. } => Command::Lease { term: term.0, until },
                    strong::Event::Lost { .. } => Command::LeaseOver,
                    _ => continue,
                };
                self.log_step(Input::Command(command), cx);
            }
        }
        self.decline(cx);
        self.tell_hint(cx);
    }

    /// Has the strong election do something. As a real member, one that lost its disk does not
    /// campaign for the lead of the log.
    fn stand(&mut self, command: strong::Command, cx: &mut Context<'_, R>) {
        if !(self.log.is_amnesiac() && matches!(command, strong::Command::Campaign(_))) {
            self.election_step(Said::Strong(Input::Command(command)), cx);
        }
    }

    /// A member that lost its disk cannot lead the log, even if an Omega names it: it stands behind
    /// the others, as often as it comes to the front.
    fn decline(&mut self, cx: &mut Context<'_, R>) {
        let elected = self.election.opinion(self.me, cx.now()).0 == Some(self.me);
        if elected && self.log.is_amnesiac() {
            let reach = Reach { me: self.me, cut: self.is_cut(cx.now()) };
            let abdicate = Said::Omega(Input::Command(eventual::Command::Abdicate));
            self.election.handle(abdicate, |effect| reach.filter(effect), cx);
        }
    }

    /// Tells the log who should lead, if that is another than before.
    fn tell_hint(&mut self, cx: &mut Context<'_, R>) {
        let (elected, epoch) = self.election.opinion(self.me, cx.now());
        let leader = self.lie.map_or(elected, |(leader, _)| leader);
        if self.told != Some((leader, epoch)) {
            self.told = Some((leader, epoch));
            cx.publish(Happening::Hinted(leader));
            self.log_step(Input::Command(Command::Hint { leader, epoch }), cx);
        }
    }

    pub(super) fn leadership(&self, now: LocalTime) -> Option<LocalTime> {
        self.election.leadership(now)
    }
}

/// Whether a message gets to a member that is cut off: what clients say, and answers to what it
/// said before.
fn gets_through(message: &Talk) -> bool {
    use eventual::Message::{Ack, RetEpoch, Status};
    use log::Message::{Accepted, Confirmed, Promise};
    match message {
        Talk::Log(message) => matches!(message, Promise { .. } | Accepted { .. } | Confirmed { .. }),
        Talk::Strong(message) => matches!(message, strong::Message::Ok { .. }),
        Talk::Omega(message) => matches!(message, Ack { .. } | Status { .. } | RetEpoch { .. }),
        Talk::Tempt(_) | Talk::Ask(_) | Talk::Answer { .. } => true,
    }
}

/// Whom a member reaches.
#[derive(Clone, Copy)]
struct Reach {
    me: NodeId,
    cut: bool,
}

impl Reach {
    fn filter<R: Rules>(self, effect: Option<Effect<Host<R>>>) -> Option<Effect<Host<R>>> {
        effect.filter(|effect| !self.cut || !matches!(effect, Effect::Send { to, .. } if *to != self.me))
    }
}

fn log_effect<R: Rules>(effect: Effect<Paxos<R>>, events: &mut Vec<Event>) -> Option<Effect<Host<R>>> {
    Some(match effect {
        Effect::Persist { ticket, record } => Effect::Persist { ticket, record: Kept::Log(record) },
        Effect::Remember(record) => Effect::Remember(Kept::Log(record)),
        Effect::Publish(event) => {
            events.push(event.clone());
            Effect::Publish(Happening::Log(event))
        }
        Effect::Send { to, message, after } => Effect::Send { to, message: Talk::Log(message), after },
    })
}

/// The surviving records, for each of the two.
fn split(boot: Boot<Kept>) -> (Boot<log::Record>, Boot<<Nerio as Protocol>::Record>) {
    use tenure_proto::BootKind;
    let (log, strong) = sorted(boot.durable);
    let (log_kind, strong_kind) = match boot.kind {
        BootKind::Founding => (BootKind::Founding, BootKind::Founding),
        BootKind::Rebooted => (BootKind::Rebooted, BootKind::Rebooted),
        BootKind::Amnesia => (BootKind::Amnesia, BootKind::Amnesia),
        BootKind::SameBoot { remembered } => {
            let (log, strong) = sorted(remembered);
            (BootKind::SameBoot { remembered: log }, BootKind::SameBoot { remembered: strong })
        }
    };
    let incarnation = boot.incarnation;
    (
        Boot { incarnation, durable: log, kind: log_kind },
        Boot { incarnation, durable: strong, kind: strong_kind },
    )
}

fn sorted(kept: Vec<Kept>) -> (Vec<log::Record>, Vec<<Nerio as Protocol>::Record>) {
    let (mut log, mut strong) = (Vec::new(), Vec::new());
    for record in kept {
        match record {
            Kept::Log(record) => log.push(record),
            Kept::Strong(record) => strong.push(record),
        }
    }
    (log, strong)
}
