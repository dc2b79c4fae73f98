//! One host: its machine, disk, memory, and what has not left yet.

use tenure_proto::boot::{Boot, BootId, Memory, Store, overwrite};
use tenure_proto::explore::{Explore, View};
use tenure_proto::time::{Incarnation, LocalSpan, Stamp};
use tenure_proto::{NodeId, Record, Ticket};

use super::scope::BASE;

/// The boot of every life: a reboot leaves no memory behind.
const HERE: BootId = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };

/// A host in one of its states.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Host<P: Explore> {
    /// The process; `None` while it is down.
    pub(super) machine: Option<P>,
    pub(super) tickets: Ticket,
    written: Ticket,
    pub(super) life: Incarnation,
    durable: Vec<P::Record>,
    pending: Vec<(Ticket, P::Record)>,
    /// Messages that wait for a record.
    pub(super) waiting: Vec<(Ticket, u16)>,
    pub(super) memory: Vec<P::Record>,
    /// Whether the memory speaks for this life: the effects of its start were all carried out.
    claimed: bool,
    /// How many quanta the clock is ahead of its reading.
    ahead: u8,
    /// The steps in which its reading moves.
    step: LocalSpan,
    /// How many different stamps it has given, and the last one.
    pub(super) stamps: u8,
    pub(super) last_stamp: Option<Stamp>,
}

impl<P: Explore> Host<P> {
    /// A host of a cluster that has just been founded, before its process starts.
    pub(super) fn founded(ahead: u8, step: LocalSpan) -> Self {
        Self {
            machine: None,
            tickets: Ticket(0),
            written: Ticket(0),
            life: Incarnation(0),
            durable: Vec::new(),
            pending: Vec::new(),
            waiting: Vec::new(),
            memory: Vec::new(),
            claimed: true,
            ahead,
            step,
            stamps: 0,
            last_stamp: None,
        }
    }

    /// Ends the process if it runs, lets the first `durable` of the records that the disk was given
    /// be written, and judges what a new life may believe.
    pub(super) fn begin_life(&mut self, reboot: bool, durable: usize) -> Boot<P::Record> {
        for _ in 0..durable.min(self.pending.len()) {
            let (_, record) = self.pending.remove(0);
            overwrite(&mut self.durable, record);
        }
        self.end_life();
        self.pending.clear();
        (self.tickets, self.written) = (Ticket(0), Ticket(0));
        if reboot {
            self.ahead = 0;
        }
        if reboot || !self.claimed {
            self.memory.clear();
        }
        let memory = Memory { boot: HERE, writer: self.life, records: self.memory.clone() };
        let memory = Some(memory).filter(|_| !reboot && self.claimed);
        let store = match self.life {
            Incarnation(0) => Store::Founded(Vec::new()),
            life => Store::Used(life, self.durable.clone()),
        };
        let boot = Boot::judge(store, memory, HERE);
        self.life = boot.incarnation;
        self.claimed = false;
        boot
    }

    /// The effects of the start are carried out.
    pub(super) fn claim(&mut self) {
        self.claimed = true;
    }

    /// The process is gone, and with it what waited. The disk may still write what it was given.
    pub(super) fn end_life(&mut self) {
        self.machine = None;
        self.waiting.clear();
    }

    pub(super) fn persist(&mut self, ticket: Ticket, record: P::Record) {
        self.pending.push((ticket, record));
    }

    pub(super) fn remember(&mut self, record: P::Record) {
        overwrite(&mut self.memory, record);
    }

    pub(super) fn is_durable(&self, ticket: Ticket) -> bool {
        ticket <= self.written
    }

    /// The last record that is durable, of this life.
    pub(super) fn durable_upto(&self) -> Ticket {
        self.written
    }

    /// How many records the disk has not written.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes the oldest of them; the messages that it lets go.
    pub(super) fn write(&mut self) -> Vec<u16> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let (ticket, record) = self.pending.remove(0);
        overwrite(&mut self.durable, record);
        self.written = ticket;
        let (ready, waiting) = self.waiting.drain(..).partition(|(after, _)| *after <= ticket);
        self.waiting = waiting;
        let ready: Vec<(Ticket, u16)> = ready;
        ready.into_iter().map(|(_, flight)| flight).collect()
    }

    /// The clock advances by so many quanta; `quanta` of them move the reading by a step.
    pub(super) fn pass(&mut self, by: u8, quanta: u8) {
        let ahead = self.ahead + by;
        self.ahead = ahead % quanta;
        let by = self.step.times(u32::from(ahead / quanta));
        if by == LocalSpan::ZERO {
            return;
        }
        if let Some(machine) = &mut self.machine {
            machine.shift(by);
        }
        self.memory.iter_mut().for_each(|record| P::shift_record(record, by));
        if let Some(stamp) = &mut self.last_stamp {
            stamp.at = stamp.at.shifted(by);
        }
    }

    /// How many quanta are left until a reading, on the true clock.
    pub(super) fn left(&self, nanos: u64, quantum: u64) -> u8 {
        let left = nanos.div_ceil(quantum).saturating_sub(u64::from(self.ahead));
        u8::try_from(left).unwrap_or(u8::MAX)
    }

    /// The number of a stamp: larger stamps have larger numbers, equal ones the same.
    pub(super) fn number(&mut self, stamp: Stamp) -> u8 {
        if self.last_stamp.is_none_or(|last| stamp > last) {
            self.stamps = self.stamps.saturating_add(1);
        }
        self.last_stamp = Some(stamp);
        self.stamps
    }

    /// Whether the next stamp may be the last one again, if stamps are not counted.
    pub(super) fn may_tie(&self) -> bool {
        self.last_stamp.is_some_and(|stamp| stamp.at == BASE)
    }

    /// All that decides the future of this host. State that only a restart finds is left out where
    /// none can come.
    pub(super) fn view<'a>(&self, index: u8, names: &'a [u8], restarts: bool) -> View<'a> {
        let mut v = View::new((BASE, self.step), self.written, names);
        v.node(NodeId(u64::from(index)));
        v.wide(self.life.0);
        v.num(u64::from(self.ahead));
        v.flag(self.machine.is_some());
        self.machine.iter().for_each(|machine| machine.view(&mut v));
        v.num(self.pending.len() as u64);
        for (ticket, record) in &self.pending {
            v.ticket(Some(*ticket));
            P::view_record(record, &mut v);
        }
        if restarts {
            v.flag(self.claimed);
            for records in [&self.durable, &self.memory] {
                let mut records: Vec<&P::Record> = records.iter().collect();
                records.sort_unstable_by_key(|record| record.key());
                v.num(records.len() as u64);
                records.into_iter().for_each(|record| P::view_record(record, &mut v));
            }
        }
        v
    }
}
