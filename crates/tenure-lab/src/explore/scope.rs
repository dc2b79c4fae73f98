//! The bounds of a walk: processes, requests, faults, and how time passes.

use tenure_proto::LocalTime;

use crate::subject::Constants;

/// A kind of thing that happens so often in a walk, and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Requests of a process that does not lead.
    Acquisitions,
    /// Requests of a leader.
    Renewals,
    /// Leaderships or requests given up.
    Releases,
    /// Restarts within one boot.
    Restarts,
    /// Restarts with the disk alone.
    Reboots,
    /// Kills between two effects of a step.
    Cuts,
    /// Messages that are delivered and stay on their way.
    Duplicates,
    /// Changes of the members.
    Changes,
}

impl Budget {
    /// How many kinds there are.
    pub const COUNT: usize = Self::Changes as usize + 1;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Acquisitions,
        Self::Renewals,
        Self::Releases,
        Self::Restarts,
        Self::Reboots,
        Self::Cuts,
        Self::Duplicates,
        Self::Changes,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acquisitions => "acquisitions",
            Self::Renewals => "renewals",
            Self::Releases => "releases",
            Self::Restarts => "restarts",
            Self::Reboots => "reboots",
            Self::Cuts => "cuts",
            Self::Duplicates => "duplicates",
            Self::Changes => "changes",
        }
    }
}

/// Which rates clocks may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// In each step each clock shows the least or the most.
    Free,
    /// Members' clocks always show the most, all others the least. Fewer states, and less is seen.
    Worst,
}

impl Clocks {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Worst => "worst",
        }
    }
}

/// How time passes: in steps, in which a clock shows `slow` or `fast` quanta. As many `quanta` are
/// one step of its reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// By how much the reading moves, in nanoseconds.
    pub reading: u64,
    /// How many quanta that is.
    pub quanta: u8,
    /// The quanta that members' clocks are ahead of their readings at the beginning.
    pub ahead: u8,
    /// The quanta that the slowest clock shows of a step, in quanta.
    pub slow: u8,
    /// The quanta that the fastest clock shows of it.
    pub fast: u8,
    /// How long a step is in real time, in milliseconds.
    pub real: u64,
    /// The rate of the slowest and of the fastest clock, in parts per million beyond real time.
    pub rates: [i32; 2],
}

impl Grain {
    /// Rates of 2/3 and 4/3. Deadlines fall on steps; readings are exact.
    pub const COARSE: Self = Self {
        reading: 2_000_000,
        quanta: 1,
        ahead: 0,
        slow: 1,
        fast: 2,
        real: 3,
        rates: [-333_333, 333_334],
    };

    /// Rates of 1/2 and 3/2. A reading lags behind its clock by up to three quarters of the tick in
    /// which it moves.
    pub const FINE: Self = Self {
        reading: 4_000_000,
        quanta: 4,
        ahead: 3,
        slow: 1,
        fast: 3,
        real: 2,
        rates: [-500_000, 500_000],
    };

    /// A quantum of a clock, in nanoseconds.
    pub fn quantum(&self) -> u64 {
        self.reading / u64::from(self.quanta)
    }
}

/// Something that the user of a process may ask for, at any instant.
#[derive(Clone, Debug)]
pub struct Wish<C> {
    /// Which process.
    pub host: usize,
    /// Whether it must lead, or must not.
    pub leads: Option<bool>,
    /// The command.
    pub command: C,
    /// The budget that it is paid from.
    pub budget: Budget,
}

/// The bounds of a walk.
#[derive(Clone, Debug)]
pub struct Scope<C> {
    /// Its name.
    pub name: &'static str,
    /// The things that happen in it, in a few words.
    pub says: &'static str,
    /// How many members there are: the first hosts.
    pub members: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// The constants of the machine.
    pub constants: Constants,
    /// How time passes.
    pub grain: Grain,
    /// Which rates clocks may have.
    pub clocks: Clocks,
    /// How often each thing may happen.
    pub budget: [u8; Budget::COUNT],
    /// The wishes of users.
    pub wishes: Vec<Wish<C>>,
    /// Their commands before the walk begins.
    pub before: Vec<(usize, C)>,
    /// Hosts that play the same part may be swapped.
    pub symmetry: bool,
    /// Disks write at any later instant, not at once.
    pub late_disks: bool,
    /// Whether state that serves liveness alone is kept.
    pub keeps_all: bool,
    /// The witnesses that must be seen.
    pub witnesses: &'static [&'static str],
}

impl<C> Scope<C> {
    /// How much there is of something.
    #[must_use]
    pub fn with(mut self, budget: Budget, many: u8) -> Self {
        self.budget[budget as usize] = many;
        self
    }

    /// Whether any process may end.
    pub fn ends_lives(&self) -> bool {
        let ends = [Budget::Restarts, Budget::Reboots, Budget::Cuts];
        ends.into_iter().any(|budget| self.budget[budget as usize] > 0)
    }
}

/// The reading at which every machine is called: whole ticks of any grain, and far from zero.
pub(super) const BASE: LocalTime = LocalTime::from_nanos(4_000_000_000_000);
