//! A replicated log: multi-decree Paxos, driven by any election that says who should lead.
//!
//! # The idea
//!
//! The log is a row of **slots**, and each gets one **entry**, forever. An **acceptor** keeps the
//! highest **ballot** it has promised and, for each slot, the entry it has accepted last, and in
//! which ballot. An entry is **chosen** in a slot once f+1 acceptors have accepted it in one
//! ballot. A process that wants to lead first asks n-f acceptors to promise its ballot; any n-f
//! share a process with any f+1, so it hears of everything that is or may yet be chosen below it,
//! and proposes just that again. That is all of the safety; no clock and no election has a part in
//! it:
//!
//! ```text
//!   chosen(s, b, v) and b < c   ⇒   whatever is proposed in slot s and ballot c is v                    (P)
//! ```
//!
//! One prepare serves a whole leadership and all slots from the first one not known to be chosen.
//! After that a value costs one round trip to f others: an f-accessible leader commits every value
//! within δ, although no link may be timely twice running (Malkhi, Oprea, Zhou, section 6).
//!
//! # The protocol
//!
//! ```text
//!   p  told to lead   b := (own term, max(highest round seen + 1, epoch), p)
//!                     promise b oneself, durably; then Prepare(b, first slot not known) to all
//!   q  Prepare(b)     b >= promised: promised := b, durably; then Promise(b, votes from that slot on, base)
//!   p  n-f promises   each slot up to the highest reported: the entry of the highest ballot, a no-op where there is none;
//!                     p leads: entries of clients go to the slots after that, at most a window of them unchosen
//!      Accept(b, s, v) to all
//!   q  Accept(b,s,v)  b >= promised: promised := b, vote[s] := (b, v), durably; then Accepted(b, s)
//!   p  f+1 Accepted   v is chosen in s; Commit(b, upto) to all
//!   q  else           Nack(promised): p gives up this ballot, and tries a higher one after a pause if it is still told to lead
//! ```
//!
//! # Additions of a real log
//!
//! * **Pages.** A message carries only so many bytes of entries. A promise of many votes is told in
//!   several pages, each asked for, and counts with the last one.
//! * **Learning.** `Commit(b, upto)` says: what I proposed in b is chosen up to there. A process
//!   that accepted it in *that* ballot has it; one that did not fetches it (`learner`).
//! * **Snapshots.** The driver is asked for one now and then; entries far enough below it are
//!   forgotten. A process that is too far behind gets the snapshot instead of entries. Every
//!   process says up to where it has forgotten (`base`): all of that was chosen.
//! * **Sessions** (`session`). A client opens one and numbers its writes; a write that is in the
//!   log twice is carried out once, so retries are idempotent. The table of sessions is part of
//!   every snapshot, so a process that skips slots still knows which wishes were fulfilled in them.
//! * **Linearizable reads** (`reads`). One round to f+1 acceptors: nobody has promised more, so
//!   every acknowledged write is at most as far as the leader knows. Or none at all, under the
//!   strong lease of the same group.
//! * **Terms.** Where a strong group elects, a ballot begins with the leader's term, and a process
//!   proposes under its own term only: acceptors that have heard of a later leader refuse all
//!   ballots of earlier ones.
//! * **Lost disks.** An acceptor that lost its disk may have forgotten promises: it accepts nothing
//!   any more, and only learns. That fact is the first record on its new disk, so that a driver
//!   need not know it in later lives.
//!
//! # How a driver uses it
//!
//! 1. `start`, with the records on the disk. A restored state is published at once
//!    ([`Event::Restore`]).
//! 2. Whenever the election's opinion changes: [`Command::Hint`]. Any number of processes may be
//!    told to lead at once, wrongly and for as long as the election likes; that costs time, never a
//!    value. If a strong group elects: [`Command::Lease`] with each acquisition and renewal, and
//!    [`Command::LeaseOver`] *before* a lease is given back.
//! 3. [`Command::Open`] gives a session; [`Command::Write`] in it any number of writes, one after
//!    the other. Both may be told to any process, again and to several. They are passed on and
//!    retransmitted here until they are in the log.
//! 4. [`Event::Applied`] comes in order of slots, on every process. The driver carries fresh writes
//!    out on its state, keeps the answer of each session's last write beside the state (it is part
//!    of the snapshot), and answers the client that waits for it here, also on [`Event::Done`].
//! 5. [`Command::Read`]: after [`Event::Readable`] the state, as it is then, is the answer. After
//!    [`Event::ReadNow`]: look at the state, then say [`Command::ReadDone`] with a *fresh* reading
//!    of the clock; [`Event::ReadStands`] makes it the answer, and otherwise `Readable` will come.
//! 6. [`Event::SnapshotWanted`]: the driver makes a snapshot of the state at that slot (by copying,
//!    or before it handles anything else) and says [`Command::Snapshot`]; or, if it can make none
//!    now, [`Command::NoSnapshot`].
//! 7. Records are cells; a [`Record::Base`] makes cells worthless that a store may then delete
//!    ([`crate::Record::makes_worthless`]). Messages to oneself are delivered like all others,
//!    without a network. A failed write must stop the process. Where a disk has no room for a
//!    snapshot, the driver may take [`Record::Snapshot`] and the [`Record::Base`] after it for
//!    written without writing them: both of them, and as long as nothing is deleted that they would
//!    replace. A restart then finds what was there before, and learns once more what others know to
//!    be chosen.
//!
//! # From the paper to the code
//!
//! | | here | why it is safe |
//! |---|---|---|
//! | acceptor | `acceptor` | replies leave after every promise and vote given to the disk before them is durable |
//! | proposer | `proposer` | a ballot is one process's: its own promise is durable before anybody hears of it |
//! | learner | `learner` | an entry is taken for chosen only if it was accepted in the ballot of the process that says so |
//! | n-f, f+1 | [`Rules::prepare_quorum`], [`Rules::accept_quorum`] | any two share a process: n-f + f+1 > n |
//! | the rules | [`Rules`] | each with its argument, each with a mutant in the laboratory (but [`Rules::read_stands`]: where the lease was held before the look, nobody can tell) |

mod acceptor;
mod config;
mod learner;
mod message;
mod proposer;
mod reads;
mod rules;
mod session;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError, Settings};
pub use message::{
    Applied, Ballot, Bytes, Cell, Command, Entry, Event, Key, Message, Record, Session, Slot, Standing, Vote,
};
pub use rules::{LocalRead, Rules, Sound};
pub use session::{Seen, Sessions};

use std::collections::BTreeMap;

use self::learner::{Learner, Snapshot};
use self::proposer::{Page, Proposer, Role};
use self::reads::Reads;
use crate::quorum::NodeSet;
use crate::timers::Timers;
use crate::{Boot, BootKind, Incarnation, Input, LocalTime, NodeId, Protocol, Ticket};

/// The context of one step of this machine.
type Context<'a, R> = crate::Context<'a, Paxos<R>>;

/// One process of the log: acceptor and learner, and proposer while it is told to lead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Paxos<R: Rules = Sound> {
    config: Config<R>,
    me: NodeId,
    life: Incarnation,
    /// Whether promises may be forgotten that were made: then nothing is accepted here any more.
    amnesiac: bool,
    /// The highest ballot promised.
    promised: Ballot,
    /// Accepted or learnt entries, by slot, above `learner.base`.
    log: BTreeMap<Slot, Vote>,
    /// The last write given to the disk in this life: acceptors' replies leave after it.
    written: Option<Ticket>,
    learner: Learner,
    proposer: Proposer,
    reads: Reads,
    timers: Timers<TIMERS>,
}

/// The deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Say again what was not answered.
    Retry,
    /// Try a higher ballot.
    Again,
}

const TIMERS: usize = 2;

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

impl<R: Rules> Protocol for Paxos<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Record>, cx: &mut Context<'_, R>) -> Self {
        let marked = boot.durable.contains(&Record::Forgot) && config.rules().remembers_amnesia();
        let forgot = marked || boot.kind == BootKind::Amnesia;
        let mut paxos = Self {
            config: config.clone(),
            me,
            life: boot.incarnation,
            amnesiac: forgot && config.rules().abstains_after_amnesia(),
            promised: Ballot::NONE,
            log: BTreeMap::new(),
            written: None,
            learner: Learner::new(),
            proposer: Proposer::default(),
            reads: Reads::default(),
            timers: Timers::default(),
        };
        if forgot && !marked {
            paxos.persist(Record::Forgot, cx);
        }
        paxos.recover(boot.durable, cx);
        paxos
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, R>) {
        match input {
            Input::Message { from, message, .. } => self.on_message(from, message, cx),
            Input::Command(command) => self.on_command(command, cx),
            Input::Deadline => self.on_deadline(cx),
        }
        if self.is_busy() {
            if !self.timers.is_set(Timer::Retry) {
                self.timers.set(Timer::Retry, cx.now().after(self.config.settings().retry));
            }
        } else {
            self.timers.clear(Timer::Retry);
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        self.timers.next()
    }
}

impl<R: Rules> Paxos<R> {
    /// The last slot applied here: everything up to it is chosen.
    pub fn applied(&self) -> Slot {
        self.learner.applied
    }

    /// The slot up to which everything is forgotten here, except the snapshot.
    pub fn base(&self) -> Slot {
        self.learner.base
    }

    /// The ballot in which this process leads, if it does and is still told to.
    pub fn leads(&self) -> Option<Ballot> {
        match &self.proposer.role {
            Role::Leading(leading) if leading.active => Some(leading.ballot),
            _ => None,
        }
    }

    /// The highest slot that its promises reported, if this process leads: up to there it proposes
    /// what others began.
    pub fn known(&self) -> Option<Slot> {
        match &self.proposer.role {
            Role::Leading(leading) => Some(leading.known),
            _ => None,
        }
    }

    /// The number of votes that promises have reported so far, if this process asks for them.
    pub fn gathered(&self) -> usize {
        match &self.proposer.role {
            Role::Preparing(preparing) => preparing.gathered,
            _ => 0,
        }
    }

    /// Whether this process lost its disk, and so only learns.
    pub fn is_amnesiac(&self) -> bool {
        self.amnesiac
    }

    /// The highest ballot promised here.
    pub fn promised(&self) -> Ballot {
        self.promised
    }

    /// The process that should lead, as far as this process was told.
    pub fn hinted(&self) -> Option<NodeId> {
        self.proposer.leader
    }

    /// The sessions as far as they are applied here.
    pub fn sessions(&self) -> &Sessions {
        &self.learner.sessions
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, R>) {
        let Some(position) = self.config.position(from).filter(|_| message.highest_slot() <= Slot::LAST)
        else {
            return;
        };
        match message {
            Message::Prepare { ballot, from: slot } => self.on_prepare(from, ballot, slot, cx),
            // Only what was applied is forgotten.
            Message::Promise { base, applied, .. } if base > applied => {}
            Message::Promise { ballot, from: asked, votes, next, base, applied } => {
                self.hear_of(applied, from);
                let page = Page { asked, votes, next, base };
                self.on_promise((from, position), ballot, page, cx);
            }
            Message::Accept { ballot, entries, upto } => self.on_accept(from, ballot, entries, upto, cx),
            Message::Accepted { ballot, slots } => self.on_accepted(position, ballot, &slots, cx),
            Message::Nack { promised } => self.on_nack(promised, cx),
            Message::Commit { ballot, upto } => self.on_commit(from, ballot, upto, cx),
            Message::Fetch { from: slot } => self.on_fetch(from, slot, cx),
            Message::Learn { entries, upto } => self.on_learn(from, entries, upto, cx),
            Message::Install { upto, sessions, state } => {
                self.on_install(from, Snapshot { upto, sessions, state }, cx);
            }
            Message::Forward { entries } => self.on_forward(entries, cx),
            Message::Confirm { ballot, round } => self.on_confirm(from, ballot, round, cx),
            Message::Confirmed { ballot, round } => self.on_confirmed(position, ballot, round, cx),
            Message::AskIndex { id, life } => self.on_ask_index(from, (id, life), cx),
            Message::Index { id, life, upto } => self.on_index((id, life), upto, cx),
        }
    }

    fn on_command(&mut self, command: Command, cx: &mut Context<'_, R>) {
        match command {
            Command::Hint { leader, epoch } => self.on_hint(leader, epoch, cx),
            Command::Lease { term, until } => self.on_lease(term, until, cx),
            Command::LeaseOver => self.proposer.lease = None,
            Command::Open { nonce } => self.on_wish(Entry::Open { nonce }, cx),
            Command::Write { session, number, bytes } => {
                self.on_wish(Entry::Write { session, number, bytes }, cx);
            }
            Command::Read { id } => self.on_read(id, cx),
            Command::AbandonRead { id } => self.forget_read(id),
            Command::ReadDone { id } => self.on_read_done(id, cx),
            Command::Snapshot { upto, state } => self.on_snapshot(upto, state, cx),
            Command::NoSnapshot { upto } => self.learner.do_without(upto),
        }
    }

    fn on_deadline(&mut self, cx: &mut Context<'_, R>) {
        if self.timers.take_expired(Timer::Again, cx.now()) {
            self.stand(cx);
        }
        if self.timers.take_expired(Timer::Retry, cx.now()) {
            self.repeat_prepare(cx);
            self.repeat_accepts(cx);
            self.repeat_wishes(cx);
            self.repeat_reads(cx);
            self.fetch_if_behind(cx);
        }
    }

    /// Whether something waits for an answer, or a leader must be heard of.
    fn is_busy(&self) -> bool {
        self.proposer.is_busy() || self.reads.is_busy() || self.learner.is_behind()
    }

    /// Sends to every other member.
    fn send_others(&self, message: &Message, after: Option<Ticket>, cx: &mut Context<'_, R>) {
        for to in self.config.settings().members.iter().filter(|to| **to != self.me) {
            cx.send(*to, message.clone(), after);
        }
    }

    /// Sends to every other member that is not in `done`.
    fn send_missing(&self, done: NodeSet, message: &Message, after: Option<Ticket>, cx: &mut Context<'_, R>) {
        for (position, to) in self.config.settings().members.iter().enumerate() {
            if *to != self.me && !done.contains(position) {
                cx.send(*to, message.clone(), after);
            }
        }
    }

    fn persist(&mut self, record: Record, cx: &mut Context<'_, R>) {
        self.written = Some(cx.persist(record));
    }

    fn rules(&self) -> &R {
        self.config.rules()
    }
}

/// How many of these fit into a page, one after the other: the first in any case.
fn fitting(weights: impl Iterator<Item = usize>, page: usize) -> usize {
    let mut sum = 0_usize;
    let fits = |weight: &usize| {
        sum = sum.saturating_add(*weight);
        sum <= page
    };
    weights.take_while(fits).count().max(1)
}

/// Splits what is to be told into pages: all of it, or the first so many of them.
fn pages<T>(
    all: impl Iterator<Item = T>,
    (page, most): (usize, usize),
    weight: impl Fn(&T) -> usize,
) -> Vec<Vec<T>> {
    let (mut pages, mut sum) = (Vec::<Vec<T>>::new(), 0_usize);
    for one in all {
        let weight = weight(&one);
        sum = sum.saturating_add(weight);
        let enough = pages.len() == most;
        match pages.last_mut() {
            Some(last) if sum <= page => last.push(one),
            _ if enough => break,
            _ => {
                sum = weight;
                pages.push(vec![one]);
            }
        }
    }
    pages
}
