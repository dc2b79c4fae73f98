//! The driver of a log: one thread that connects the machine to users, state, disk, streams and
//! election. It decides nothing.
//!
//! The state is on this thread and nowhere else. So a snapshot is of the slot that was asked for, a
//! read sees no write half done, and nothing is locked. The price: what a state machine does takes
//! time from the log. Leases are not at risk: the node has a thread of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tenure_proto::log::{Applied, Command, Event, Key, Message, Paxos, Record, Slot};
use tenure_proto::time::LocalSpan;
use tenure_proto::{Boot, Context, Effect, Input, LocalTime, NodeId, Protocol, Ticket};
use tokio::sync::{OwnedSemaphorePermit, broadcast, oneshot, watch};

use super::config::Checked;
use super::disk::{Durable, Writer};
use super::election::{Opinion, REST};
use super::error::{ProposeError, Stopped};
use super::link::{Links, Talk};
use super::progress::{Progress, Work, patience};
use super::snapshots::{Held, State};
use super::state::Guarded;
use super::users::{Proposal, Users};
use super::{News, StateMachine, Status};
use crate::clock::nanos;
use crate::codec::{Reader, Writer as Bytes};
use crate::driver::Os;
use crate::guard::Tenure;

/// How many items are taken before deadlines are looked at again.
const BATCH: usize = 256;

/// A read of a user: may look several times, answers once.
pub(super) trait Look<S>: Send {
    fn look(&mut self, state: &S);
    fn answer(self: Box<Self>);
    fn is_wanted(&self) -> bool;
}

/// An input of the driver.
pub(super) enum Item<S> {
    Propose(Proposal),
    Read(Box<dyn Look<S>>),
    /// Shows the state as it is here.
    Peek(Box<dyn Look<S>>),
    Status(oneshot::Sender<Status>),
    Message {
        from: NodeId,
        message: Message,
        /// Its share of the room for messages that wait.
        _room: OwnedSemaphorePermit,
    },
    Durable(Durable),
    Opinion(Opinion),
    /// The snapshot of a slot, made on another thread, or why there is none.
    Captured(Slot, Result<Held, String>),
    Shutdown(Option<oneshot::Sender<()>>),
}

/// The parts of a driver.
pub(super) struct Parts<S> {
    pub(super) config: Checked,
    pub(super) state: S,
    pub(super) writer: Writer,
    pub(super) links: Arc<Links>,
    pub(super) may_lead: watch::Sender<bool>,
    pub(super) news: broadcast::Sender<News>,
    /// Where snapshots come back that were made on another thread.
    pub(super) captured: Sender<Item<S>>,
}

pub(super) struct Driver<S> {
    config: Checked,
    me: NodeId,
    machine: Paxos,
    tickets: Ticket,
    effects: Vec<Effect<Paxos>>,
    /// The next inputs of the machine, before anything else.
    inputs: VecDeque<Input<Paxos>>,
    state: Guarded<S>,
    users: Users,
    reads: BTreeMap<u64, Box<dyn Look<S>>>,
    next_read: u64,
    /// At how many reads those are looked for whose users have gone.
    sweep_at: usize,
    writer: Writer,
    /// The messages that wait for the disk, in order.
    waiting: VecDeque<(Ticket, NodeId, Message)>,
    /// All records up to this one are on the disk.
    durable: Ticket,
    full: bool,
    links: Arc<Links>,
    /// The leader, as others see it, and the epoch of that.
    seen: (Option<NodeId>, u64),
    tenure: Option<Tenure>,
    /// The longest that the lease was seen to last.
    lease: LocalSpan,
    /// The last slot that was proposed since this process leads.
    proposed: Slot,
    progress: Progress,
    /// Until when others are let try, because nothing got done here.
    rests_until: Option<LocalTime>,
    may_lead: watch::Sender<bool>,
    news: broadcast::Sender<News>,
    captured: Sender<Item<S>>,
    panics: u64,
    stopped: Option<Stopped>,
    farewell: Option<oneshot::Sender<()>>,
}

impl<S: StateMachine> Driver<S> {
    /// Starts the machine with what the disk holds, and restores the state.
    pub(super) fn new(parts: Parts<S>, boot: Boot<Record>) -> Result<Self, Stopped> {
        let Parts { config, state, writer, links, may_lead, news, captured } = parts;
        let me = config.me.id();
        let (mut tickets, mut effects) = (Ticket(0), Vec::new());
        let now = config.time.read();
        let machine = Paxos::start(
            &config.machine,
            me,
            boot,
            &mut Context::new(now, &mut Os, &mut tickets, &mut effects),
        );
        let mut driver = Self {
            config,
            me,
            machine,
            tickets,
            effects: Vec::new(),
            inputs: VecDeque::new(),
            state: Guarded::new(state),
            users: Users::default(),
            reads: BTreeMap::new(),
            next_read: 0,
            sweep_at: 64,
            writer,
            waiting: VecDeque::new(),
            durable: Ticket(0),
            full: false,
            links,
            seen: (None, 0),
            tenure: None,
            lease: LocalSpan::from_nanos(0),
            proposed: Slot(0),
            progress: Progress::default(),
            rests_until: None,
            may_lead,
            news,
            captured,
            panics: 0,
            stopped: None,
            farewell: None,
        };
        effects.into_iter().for_each(|effect| driver.carry_out(effect));
        driver.state.keep_beginning();
        driver.say_whether_it_may_lead();
        match driver.stopped.take() {
            None => Ok(driver),
            Some(stopped) => Err(stopped),
        }
    }

    /// Runs until it is told to stop or must. Says why before anybody who waits here is let down,
    /// and returns whom to tell of the end.
    pub(super) fn run(
        mut self,
        inbox: &Receiver<Item<S>>,
        why: &OnceLock<Stopped>,
    ) -> Option<oneshot::Sender<()>> {
        loop {
            match inbox.recv_timeout(self.nap()) {
                Ok(item) => {
                    self.take(item);
                    self.take_more(inbox);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.stop(Stopped::ShutDown),
            }
            if self.machine.next_deadline().is_some_and(|at| self.config.time.read() >= at) {
                self.step(Input::Deadline);
            }
            self.look_at_progress();
            if let Some(stopped) = self.stopped.take() {
                if stopped != Stopped::ShutDown {
                    tracing::error!(name: "tenure.log_stopped", reason = %stopped, "the log stops on this member");
                }
                let _ = why.set(stopped);
                self.resign();
                self.writer.finish();
                return self.farewell;
            }
        }
    }

    /// Takes what waits behind an item. Items after a reason to stop are not handled any more:
    /// their senders are told the reason.
    fn take_more(&mut self, inbox: &Receiver<Item<S>>) {
        let mut left = BATCH;
        while left > 0
            && self.stopped.is_none()
            && let Ok(item) = inbox.try_recv()
        {
            self.take(item);
            left -= 1;
        }
    }

    fn nap(&self) -> Duration {
        let longest = self.config.time.longest_nap();
        let deadlines = [self.machine.next_deadline(), self.progress.ends(self.patience()), self.rests_until];
        let Some(at) = deadlines.into_iter().flatten().min() else { return longest };
        Duration::from_nanos(at.remaining(self.config.time.read()).as_nanos()).min(longest)
    }

    fn patience(&self) -> LocalSpan {
        patience(self.config.machine.settings().retry, self.lease)
    }

    /// Gives up the lease under which nothing gets done, and lets others try for a while.
    fn look_at_progress(&mut self) {
        if self.tenure.is_none() && self.rests_until.is_none() {
            self.progress = Progress::default(); // Nothing is to be done under a lease that is over.
            return;
        }
        let now = self.config.time.read();
        if self.rests_until.is_some_and(|until| now >= until) {
            self.rests_until = None;
            self.say_whether_it_may_lead();
        }
        self.progress.note(now, self.work());
        if self.progress.ends(self.patience()).is_some_and(|end| now >= end) {
            let (log, node) = (&self.config.log, &self.config.me);
            tracing::warn!(name: "tenure.log_gives_up", log = %log, node = %node, reached = self.links.reached(), "leads the log by its lease and gets nothing done: gives up the lease, so that another may try");
            self.rests_until = Some(now.after(LocalSpan::from_nanos(nanos(REST))));
            self.say_whether_it_may_lead();
            self.resign();
            self.hint();
            self.progress.note(now, None);
        }
    }

    /// The work that is open under the lease, if it is held: to get promises, to have proposals
    /// chosen, to learn what others know. And to reach f others: what their users wish for may not
    /// get here.
    fn work(&self) -> Option<Work> {
        let (leads, applied) = (self.machine.leads().is_some(), self.machine.applied());
        let begun = self.machine.known().is_some_and(|known| known.max(self.proposed) > applied);
        let alone = self.links.reached() < self.config.faults();
        let work = Work { leads, gathered: self.machine.gathered(), applied };
        (self.tenure.is_some() && (!leads || begun || alone)).then_some(work)
    }

    fn stop(&mut self, why: Stopped) {
        self.stopped.get_or_insert(why);
    }

    fn take(&mut self, item: Item<S>) {
        match item {
            Item::Propose(proposal) if self.full => {
                let _ = proposal.reply.send(Err(ProposeError::DiskFull));
            }
            Item::Propose(proposal) => {
                self.users.propose(proposal);
                self.tell_machine();
            }
            Item::Read(look) => self.on_read(look),
            Item::Peek(mut look) => {
                look.look(self.state.get());
                look.answer();
            }
            Item::Status(reply) => _ = reply.send(self.status()),
            Item::Message { from, message, .. } => self.on_message(from, message),
            Item::Durable(durable) => self.on_durable(durable),
            Item::Opinion(opinion) => self.on_opinion(opinion),
            Item::Captured(upto, made) => {
                self.on_captured(upto, made);
                self.run_inputs();
            }
            Item::Shutdown(reply) => {
                self.farewell = reply;
                self.stop(Stopped::ShutDown);
            }
        }
    }

    /// Without room on the disk nothing is promised or accepted here: it would pile up in memory.
    fn on_message(&mut self, from: NodeId, message: Message) {
        let writes =
            matches!(message, Message::Prepare { .. } | Message::Accept { .. } | Message::Install { .. });
        let received = self.config.time.read();
        let input = Input::Message { from, received, message };
        if !(self.full && writes) {
            self.step(input);
        } else if let Some(held) = snapshot_in(&input) {
            self.config.snapshots.drop_unused(held);
        }
    }

    fn on_durable(&mut self, durable: Durable) {
        match durable {
            Durable::Upto(ticket) => {
                self.set_full(false);
                self.durable = ticket;
                while self.waiting.front().is_some_and(|(after, ..)| *after <= ticket) {
                    let Some((_, to, message)) = self.waiting.pop_front() else { break };
                    self.send(to, message);
                }
                self.run_inputs();
            }
            Durable::Full => self.set_full(true),
            Durable::Failed(error) => self.stop(Stopped::Disk { reason: error.to_string() }),
        }
    }

    /// A process without room for its promises does not lead.
    fn set_full(&mut self, full: bool) {
        if std::mem::replace(&mut self.full, full) == full {
            return;
        }
        let (log, node) = (&self.config.log, &self.config.me);
        if full {
            tracing::error!(name: "tenure.log_full", log = %log, node = %node, "the disk of the log is full: it refuses writes until there is room, and loses nothing");
            self.resign();
        } else {
            tracing::info!(name: "tenure.log_room", log = %log, node = %node, "the disk of the log has room again");
        }
        self.say_whether_it_may_lead();
        self.hint();
    }

    /// A member that cannot write, got nothing done, or has forgotten its promises would block
    /// everybody else as a leader.
    fn say_whether_it_may_lead(&self) {
        let able = !self.full && !self.machine.is_amnesiac();
        self.may_lead.send_replace(able && self.rests_until.is_none());
    }

    fn on_opinion(&mut self, opinion: Opinion) {
        match opinion {
            Opinion::Seen { leader, epoch } => {
                self.seen = (leader, epoch);
                self.hint();
            }
            Opinion::Elected(tenure) if self.full || self.rests_until.is_some() => tenure.resign(),
            Opinion::Elected(tenure) => {
                self.tenure = Some(tenure);
                self.renew();
                self.hint();
            }
            Opinion::Lost => {
                drop(self.give_up());
                self.hint();
            }
            Opinion::GiveUp(done) => {
                drop(self.give_up());
                self.hint();
                let _ = done.send(());
            }
            Opinion::Over(reason) => self.stop(Stopped::Election { reason }),
        }
    }

    /// Tells the machine who should lead. By the strong lease it is this process while it holds
    /// that, and not otherwise.
    fn hint(&mut self) {
        let (leader, epoch) = match (&self.tenure, self.seen) {
            (Some(_), _) => (Some(self.me), 0),
            (None, (leader, epoch)) => (leader, epoch),
        };
        let leader = leader.filter(|leader| *leader != self.me || !self.full);
        self.step(Input::Command(Command::Hint { leader, epoch }));
    }

    /// Tells the machine how long the lease lasts by now.
    fn renew(&mut self) {
        let Some(tenure) = &self.tenure else { return };
        let command = match tenure.until() {
            Some(until) => {
                self.lease = self.lease.max(until.remaining(self.config.time.read()));
                Command::Lease { term: tenure.term().0, until }
            }
            None => Command::LeaseOver,
        };
        self.step(Input::Command(command));
    }

    /// Reads nothing under the lease any more.
    fn give_up(&mut self) -> Option<Tenure> {
        let tenure = self.tenure.take()?;
        self.step(Input::Command(Command::LeaseOver));
        Some(tenure)
    }

    /// The same, and then gives the lease back.
    fn resign(&mut self) {
        if let Some(tenure) = self.give_up() {
            tenure.resign();
        }
    }

    fn on_read(&mut self, look: Box<dyn Look<S>>) {
        if self.reads.len() >= self.sweep_at {
            self.sweep();
        }
        self.renew();
        let id = self.next_read;
        self.next_read += 1;
        self.reads.insert(id, look);
        self.step(Input::Command(Command::Read { id }));
    }

    /// Forgets the reads whose users have gone.
    fn sweep(&mut self) {
        let gone: Vec<u64> =
            self.reads.iter().filter(|(_, look)| !look.is_wanted()).map(|(id, _)| *id).collect();
        for id in gone {
            self.reads.remove(&id);
            self.step(Input::Command(Command::AbandonRead { id }));
        }
        self.sweep_at = (2 * self.reads.len()).max(64);
    }

    /// Says to the machine what users want of it.
    fn tell_machine(&mut self) {
        self.inputs.extend(self.users.commands().into_iter().map(Input::Command));
        self.run_inputs();
    }

    fn step(&mut self, input: Input<Paxos>) {
        self.inputs.push_back(input);
        self.run_inputs();
    }

    /// One step after the other, until nothing follows from the last one. The clock is read for
    /// each.
    fn run_inputs(&mut self) {
        while self.stopped.is_none()
            && let Some(input) = self.inputs.pop_front()
        {
            let mut effects = std::mem::take(&mut self.effects);
            let now = self.config.time.read();
            let offered = snapshot_in(&input);
            self.machine.handle(input, &mut Context::new(now, &mut Os, &mut self.tickets, &mut effects));
            if let Some(unused) = offered.filter(|_| !effects.iter().any(keeps_snapshot)) {
                self.config.snapshots.drop_unused(unused);
            }
            effects.drain(..).for_each(|effect| self.carry_out(effect));
            self.effects = effects;
            self.inputs.extend(self.users.commands().into_iter().map(Input::Command));
        }
    }

    /// Once there is a reason to stop nothing more is done, of the same step neither: what follows
    /// may rest on a state that is not there.
    fn carry_out(&mut self, effect: Effect<Paxos>) {
        if self.stopped.is_some() {
            return;
        }
        match effect {
            Effect::Persist { ticket, record } => self.writer.persist(ticket, record),
            Effect::Remember(_) => {}
            Effect::Publish(event) => self.on_event(event),
            Effect::Send { to, message, after: Some(ticket) } if ticket > self.durable => {
                self.waiting.push_back((ticket, to, message));
            }
            Effect::Send { to, message, .. } => self.send(to, message),
        }
    }

    fn send(&mut self, to: NodeId, message: Message) {
        if to == self.me {
            let received = self.config.time.read();
            self.inputs.push_back(Input::Message { from: self.me, received, message });
        } else {
            self.links.send(to, Talk::Log(message));
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Restore { upto, state } => self.restore(upto, &state),
            Event::Applied { slot, applied } => self.apply(slot, applied),
            Event::Done(Key::Write(session, number)) => self.users.on_done(session, number),
            Event::Done(Key::Open(nonce)) => {
                if let Some(session) = self.machine.sessions().opened_by(nonce) {
                    self.users.on_opened(nonce, session, None);
                }
            }
            Event::Refused(key) => self.users.on_refused(key),
            Event::Readable { id } => {
                if let Some(mut look) = self.reads.remove(&id) {
                    look.look(self.state.get());
                    look.answer();
                }
            }
            Event::ReadNow { id } => {
                if let Some(look) = self.reads.get_mut(&id) {
                    look.look(self.state.get());
                    self.inputs.push_back(Input::Command(Command::ReadDone { id }));
                }
            }
            Event::ReadStands { id } => {
                if let Some(look) = self.reads.remove(&id) {
                    look.answer();
                }
            }
            Event::SnapshotWanted { upto } => self.on_snapshot_wanted(upto),
            Event::Proposed { slot, .. } => self.proposed = self.proposed.max(slot),
            Event::Leading(ballot) => {
                self.proposed = Slot(0);
                let (log, node) = (&self.config.log, &self.config.me);
                tracing::info!(name: "tenure.log_leads", log = %log, node = %node, ballot = %ballot, "leads the log");
            }
            _ => {}
        }
    }

    fn apply(&mut self, slot: Slot, applied: Applied) {
        match applied {
            Applied::Noop => {}
            Applied::Opened { nonce, session, closed } => self.users.on_opened(nonce, session, closed),
            Applied::Write { session, number, bytes } => {
                let answer = match self.state.apply(slot.0, &bytes) {
                    Ok(answer) => answer,
                    Err(reason) => return self.stop(Stopped::Panicked { reason }),
                };
                let refused = answer.as_ref().err().cloned();
                self.users.on_written(session, number, slot, answer);
                match refused {
                    None => drop(self.news.send(News::Applied { index: slot.0, bytes })),
                    Some(panic) => self.say_refused(slot, &panic),
                }
            }
            Applied::Again { session, number } => self.users.on_done(session, number),
            Applied::Expired { session, number } => self.users.on_expired(session, number),
        }
    }

    fn say_refused(&mut self, slot: Slot, panic: &str) {
        self.panics += 1;
        let (log, node, index) = (&self.config.log, &self.config.me, slot.0);
        tracing::error!(name: "tenure.log_write_refused", log = %log, node = %node, index, panic, "the state machine panicked on a write, twice: the write is refused on every member and changes nothing");
    }

    /// Takes the state at this slot. Another thread writes it to a file.
    fn on_snapshot_wanted(&mut self, upto: Slot) {
        let (mut answers, mut panics) = (Bytes::new(), Bytes::new());
        self.users.write(&mut answers);
        self.users.write_panics(&mut panics);
        let state = match self.state.snapshot() {
            Ok(state) => state,
            Err(panic) => return self.on_captured(upto, Err(panic)),
        };
        let (captured, snapshots) = (self.captured.clone(), self.config.snapshots.clone());
        let (answers, panics) = (answers.into_bytes(), panics.into_bytes());
        let make = move || snapshots.make(&answers, state, &panics);
        let thread = thread::Builder::new().name("tenure-log-snap".into());
        let spawned = thread.spawn(move || drop(captured.send(Item::Captured(upto, make()))));
        if let Err(error) = spawned {
            self.on_captured(upto, Err(error.to_string()));
        }
    }

    /// Without a snapshot the log goes on, and forgets nothing until there is a later one.
    fn on_captured(&mut self, upto: Slot, made: Result<Held, String>) {
        let opened = made.and_then(|held| {
            let parts = self.config.snapshots.open(held).and_then(|file| file.parts(Users::skip));
            Ok((held, parts.map_err(|error| error.to_string())?.state))
        });
        let command = match opened {
            Ok((held, state)) => {
                self.state.rest_on(upto.0, state);
                Command::Snapshot { upto, state: held.to_state() }
            }
            Err(reason) => {
                let (log, node) = (&self.config.log, &self.config.me);
                tracing::error!(name: "tenure.log_no_snapshot", log = %log, node = %node, reason, "no snapshot was made: the log keeps every write, and asks again later");
                Command::NoSnapshot { upto }
            }
        };
        self.inputs.push_back(Input::Command(command));
    }

    /// Takes the state of a snapshot, and the kept answers.
    fn restore(&mut self, upto: Slot, snapshot: &[u8]) {
        let read = self.read_answers(snapshot).map_err(|error| error.to_string());
        match read.and_then(|state| self.state.restore(upto.0, state)) {
            Ok(()) => {
                self.users.on_restored(self.machine.sessions());
                let _ = self.news.send(News::Restored { upto: upto.0 });
            }
            Err(reason) => self.stop(Stopped::State { reason }),
        }
    }

    fn read_answers(&mut self, snapshot: &[u8]) -> io::Result<State> {
        let held = Held::of_state(snapshot).ok_or_else(|| io::Error::other("it is not in a file"))?;
        let parts = self.config.snapshots.open(held)?.parts(|from| self.users.read(from))?;
        self.users
            .read_panics(&mut Reader::new(&parts.panics))
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(parts.state)
    }

    fn status(&self) -> Status {
        let leader = self.machine.hinted().and_then(|id| self.config.name_of(id)).cloned();
        let written = self.writer.written();
        Status {
            name: self.config.me.clone(),
            leader,
            leads: self.machine.leads().is_some(),
            applied: self.machine.applied().0,
            forgotten: self.machine.base().0,
            reached: self.links.up(),
            disk_full: self.full,
            only_learns: self.machine.is_amnesiac(),
            panics: self.panics,
            records: written.records,
            syncs: written.syncs,
        }
    }
}

/// The file that the machine is given with this input.
fn snapshot_in(input: &Input<Paxos>) -> Option<Held> {
    match input {
        Input::Message { message: Message::Install { state, .. }, .. }
        | Input::Command(Command::Snapshot { state, .. }) => Held::of_state(state),
        _ => None,
    }
}

fn keeps_snapshot(effect: &Effect<Paxos>) -> bool {
    matches!(effect, Effect::Persist { record: Record::Snapshot { .. }, .. })
}
