//! One machine with one process on it: clock, disk, memory, and what has not left yet.

use std::collections::VecDeque;

use tenure_proto::boot::{Boot, BootId, Memory, Store, overwrite};
use tenure_proto::time::{Incarnation, LocalSpan};
use tenure_proto::{BootKind, LocalTime, NodeId, Protocol, Ticket};

use crate::random::Random;

use super::clock::{Clock, RealTime, floor};
use super::{Dial, Flaws, Freeze, How};

/// A machine, its disk, and the process if it runs.
#[derive(Clone, Debug)]
pub struct Host<P: Protocol> {
    /// The process; `None` while it is down.
    pub process: Option<P>,
    /// The part that stands still here, and since when.
    pub frozen: Option<(Freeze, RealTime)>,
    /// When the present life began, or the last one.
    pub started: RealTime,
    /// The state that the life before left for it.
    pub found: Found,
    pub(super) clock: Clock,
    pub(super) tick: LocalSpan,
    synchronised: bool,
    /// The reading of the last input handled: what a careless loop would still take for the time.
    pub(super) cached: LocalTime,
    pub(super) tickets: Ticket,
    pub(super) disk: Disk<P::Record>,
    /// Messages that wait for a record to become durable.
    pub(super) waiting: Vec<(Ticket, NodeId, P::Message)>,
    flaws: Flaws,
    boot: BootId,
    /// The present life, or the last one.
    life: Incarnation,
    /// The crystal's value when this boot's clock showed `boot_reading`.
    boot_value: u64,
    boot_reading: u64,
    /// How much of the crystal's time a clock that stops in suspend has missed.
    slept: u64,
    /// By how much the clock that the driver reads was set, in this boot.
    stepped: i64,
    /// While the machine sleeps: what its clock showed before. It does not go back.
    least: u64,
    /// The memory of each place in which the process has run: the host's, and a container's own.
    memories: [Option<Memory<P::Record>>; 2],
    place: usize,
    /// Whether the memory here speaks for the present life: the effects of its start are carried
    /// out.
    claimed: bool,
    /// Whether its clock has ever counted a sleep coarsely.
    slept_coarsely: bool,
}

/// The state of its former life that a process finds when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There was none.
    Founding,
    /// Memory and disk.
    Memory,
    /// The disk alone.
    Disk,
    /// Nothing.
    Nothing,
}

/// A disk: what is durable, and what it was given but has not written yet.
#[derive(Clone, Debug)]
pub(super) struct Disk<R> {
    store: Store<R>,
    pub(super) queue: VecDeque<(Ticket, R, RealTime)>,
    pub(super) durable: Ticket,
}

impl<P: Protocol> Host<P> {
    pub(super) fn new(
        clock: Clock,
        tick: LocalSpan,
        synchronised: bool,
        founding: Vec<P::Record>,
        flaws: Flaws,
    ) -> Self {
        let boot_value = clock.value(RealTime(0));
        Self {
            process: None,
            frozen: None,
            started: RealTime(0),
            found: Found::Founding,
            clock,
            tick,
            synchronised,
            cached: LocalTime::ZERO,
            tickets: Ticket(0),
            disk: Disk { store: Store::Founded(founding), queue: VecDeque::new(), durable: Ticket(0) },
            waiting: Vec::new(),
            flaws,
            boot: BootId { boot: 0, clock_offset: 0, slept: 0, marker: 0 },
            life: Incarnation(0),
            boot_value,
            boot_reading: boot_value,
            slept: 0,
            stepped: 0,
            least: 0,
            memories: [None, None],
            place: 0,
            claimed: false,
            slept_coarsely: false,
        }
    }

    /// The reading of the host's clock: whole ticks since its boot.
    pub fn reading(&self, at: RealTime) -> LocalTime {
        LocalTime::from_nanos(floor(self.exact(at), self.tick))
    }

    /// The true clock C; the reading is its last tick.
    fn exact(&self, at: RealTime) -> u64 {
        let at = self.stands_since().unwrap_or(at);
        let since_boot = self.clock.value(at) - self.boot_value + self.boot_reading;
        since_boot.saturating_sub(self.slept).saturating_add_signed(self.stepped).max(self.least)
    }

    /// Since when the clock stands still, if a flaw makes it.
    fn stands_since(&self) -> Option<RealTime> {
        let (freeze, since) = self.frozen?;
        let stands = match freeze {
            Freeze::Suspend | Freeze::Coarse(_) => self.flaws.clock_stops_in_suspend,
            Freeze::Pause => self.flaws.clock_stops_in_pause,
        };
        stands.then_some(since)
    }

    /// Whether its machine sleeps, and its clock counts that coarsely.
    pub fn sleeps_coarsely(&self) -> bool {
        matches!(self.frozen, Some((Freeze::Coarse(_), _)))
    }

    /// Whether its clock has ever counted a sleep coarsely.
    pub fn has_slept_coarsely(&self) -> bool {
        self.slept_coarsely
    }

    /// The first instant at which the true clock of this boot reaches `time`, if nobody sets it:
    /// the paper's c_p.
    pub fn instant(&self, time: LocalTime) -> RealTime {
        let value = i128::from(time.as_nanos()) + i128::from(self.slept) + i128::from(self.boot_value);
        let value = value - i128::from(self.boot_reading) - i128::from(self.stepped);
        self.clock.reaches(u64::try_from(value.max(0)).unwrap_or(u64::MAX))
    }

    /// The first instant at which a *reading* is no longer below `time`.
    pub fn reading_reaches(&self, time: LocalTime) -> RealTime {
        self.instant(time.ceil_to(self.tick))
    }

    /// The reading at which the process last handled something: the largest that it has seen,
    /// unless its clock went back.
    pub fn last_seen(&self) -> LocalTime {
        self.cached
    }

    /// A clock is set. The driver's reading moves with it, if it is that one.
    pub(super) fn step(&mut self, dial: Dial, by: i64) {
        if dial == Dial::Clock || self.flaws.reads_time_of_day {
            self.stepped = self.stepped.saturating_add(by);
        }
    }

    /// Whether anything can be handled here.
    pub fn is_up(&self) -> bool {
        self.process.is_some() && self.frozen.is_none()
    }

    /// When the disk was given the oldest record that it has not written.
    pub fn oldest_unwritten(&self) -> Option<RealTime> {
        self.disk.queue.front().map(|(_, _, given)| *given)
    }

    /// Loses the process, and with it what waited and what was not written. Returns how many
    /// records that were.
    pub(super) fn crash(&mut self) -> usize {
        self.process = None;
        self.frozen = None;
        self.waiting.clear();
        if !self.claimed {
            self.memories[self.place] = None; // It is still that of the life before the last: worth nothing.
        }
        let lost = self.disk.queue.len();
        self.disk.queue.clear();
        lost
    }

    /// Prepares a start: what survives it, judged as a real node would, unless a flaw says
    /// otherwise.
    pub(super) fn prepare_start(&mut self, how: How, node: NodeId, at: RealTime) -> Boot<P::Record> {
        self.started = at;
        match how {
            How::Restart => {}
            How::Elsewhere => self.place = 1 - self.place,
            How::Reboot => self.reboot(at),
            How::DiskLost => self.lose_disk(),
        }
        if self.flaws.missing_is_fresh && self.disk.store == Store::Missing {
            self.disk.store = Store::Founded(Vec::new());
        }
        let mut memory = self.memories[self.place].take();
        if let (true, Some(memory), Store::Used(former, _)) =
            (self.flaws.stale_memory, &mut memory, &self.disk.store)
        {
            memory.writer = *former;
        }
        let mut boot = Boot::judge(self.disk.store.clone(), memory, self.boot);
        if boot.kind == BootKind::Amnesia {
            boot.incarnation = drawn(node, at);
        }
        self.found = match boot.kind {
            BootKind::Founding => Found::Founding,
            BootKind::SameBoot { .. } => Found::Memory,
            BootKind::Rebooted => Found::Disk,
            BootKind::Amnesia => Found::Nothing,
        };
        self.begin_life(&boot);
        Boot {
            incarnation: if self.flaws.same_incarnation { Incarnation(1) } else { boot.incarnation },
            ..boot
        }
    }

    /// The driver's work before the process runs: the new incarnation is durable, and the memory is
    /// kept or wiped. It is this life's only when the effects of the start are carried out
    /// ([`Host::claim`]).
    fn begin_life(&mut self, boot: &Boot<P::Record>) {
        if boot.kind != BootKind::Amnesia {
            self.disk.store = Store::Used(boot.incarnation, boot.durable.clone());
        }
        let records = match &boot.kind {
            BootKind::SameBoot { remembered } => remembered.clone(),
            BootKind::Founding | BootKind::Rebooted | BootKind::Amnesia => Vec::new(),
        };
        self.life = boot.incarnation;
        self.claimed = self.flaws.claims_early;
        self.memories[self.place] = Some(Memory { boot: self.boot, writer: boot.incarnation, records });
        self.tickets = Ticket(0);
        self.disk.durable = Ticket(0);
    }

    /// The disk is gone; a flaw may put an empty one in its place, with a life's number that nobody
    /// had.
    fn lose_disk(&mut self) {
        self.disk.store = match &self.disk.store {
            Store::Used(former, _) if self.flaws.missing_is_reboot => Store::Used(*former, Vec::new()),
            _ => Store::Missing,
        };
        if self.flaws.missing_is_reboot {
            self.memories = [None, None];
        }
    }

    /// A reboot: the clock begins anew and all memory is gone.
    fn reboot(&mut self, at: RealTime) {
        self.boot.boot += 1;
        if !self.synchronised {
            self.boot_value = self.clock.value(at);
            self.boot_reading = 0;
            self.stepped = 0;
        }
        self.slept = 0;
        self.place = 0;
        if self.flaws.memory_of_any_boot {
            self.memories.iter_mut().flatten().for_each(|memory| memory.boot = self.boot);
        } else {
            self.memories = [None, None];
        }
    }

    pub(super) fn remember(&mut self, record: P::Record) {
        if let Some(memory) = &mut self.memories[self.place] {
            overwrite(&mut memory.records, record);
        }
    }

    /// From here on the memory speaks for this life.
    pub(super) fn claim(&mut self) {
        self.claimed = true;
    }

    /// Writes all that the disk was given by `given`.
    pub(super) fn write(&mut self, given: RealTime) -> bool {
        let mut wrote = false;
        while self.disk.queue.front().is_some_and(|(_, _, at)| *at <= given) {
            self.write_one();
            wrote = true;
        }
        wrote
    }

    /// Writes the oldest records, as many as these: nobody hears of it any more.
    pub(super) fn write_first(&mut self, many: u32) {
        for _ in 0..self.disk.queue.len().min(many as usize) {
            self.write_one();
        }
    }

    fn write_one(&mut self) {
        let Some((ticket, record, _)) = self.disk.queue.pop_front() else { return };
        match (&mut self.disk.store, self.flaws.disk_forgets) {
            (_, true) => {}
            (Store::Used(_, records) | Store::Founded(records), _) => overwrite(records, record),
            // A new disk, in place of the lost one: from now on there is something to be
            // remembered.
            (store @ Store::Missing, _) => *store = Store::Used(self.life, vec![record]),
        }
        self.disk.durable = ticket;
    }

    pub(super) fn thaw(&mut self, at: RealTime) {
        if let Some(since) = self.stands_since() {
            self.slept += self.clock.value(at) - self.clock.value(since);
        }
        // If it slept for less than is not counted, nothing was counted, and no more is taken away.
        let shown = self.exact(at);
        let least = std::mem::take(&mut self.least);
        let behind = i64::try_from(shown.saturating_sub(self.exact(at))).unwrap_or(i64::MAX);
        self.stepped = self.stepped.saturating_add(if shown == least { behind } else { 0 });
        self.frozen = None;
    }

    /// Stands still. A clock that counts sleep coarsely is off from here on, though it never goes
    /// back.
    pub(super) fn freeze(&mut self, freeze: Freeze, at: RealTime) {
        if let (Freeze::Coarse(off), false) = (freeze, self.flaws.clock_stops_in_suspend) {
            self.least = self.exact(at);
            self.slept_coarsely = true;
            self.stepped = self.stepped.saturating_add(off);
        }
        self.frozen = Some((freeze, at));
    }

    /// The machine has slept: what was remembered before is not believed by a life that begins
    /// after it.
    pub(super) fn sleep_counts(&mut self) {
        self.boot.slept = self.boot.slept.saturating_add(2 * BootId::SLACK);
    }

    /// The process knows that the machine has slept: what is remembered is of the time after it.
    pub(super) fn sleep_is_known(&mut self) {
        if let Some(memory) = &mut self.memories[self.place] {
            memory.boot = self.boot;
        }
    }
}

/// The incarnation of a process that has nothing left to count lives by: in no order to any other,
/// and nobody else's. The same in a replay.
fn drawn(node: NodeId, at: RealTime) -> Incarnation {
    let mut random = Random::stream(at.0, &format!("lost disk of {node}"));
    Incarnation(u128::from(random.bits()) << 64 | u128::from(random.bits()))
}
