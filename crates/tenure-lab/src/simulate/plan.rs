//! The things that a seed has in store: constants, clocks, and everything that will go wrong.

use tenure_proto::NodeId;
use tenure_proto::quorum::Quorums;

use super::faults::{Fault, Faults};
use super::forge::Forgeries;
use super::network::{LONGEST_DELAY, Links, Shape};
use super::pace::LEAST_WRITE;
use super::worlds::{Adversary, Named, Site};
use crate::random::Random;
use crate::stage::Cast;
use crate::subject::{Assumption, Constants, Rhythm, Subject};
use crate::world::{Clock, Freeze, How, Interrupt, RealTime, Stretch, Which, clock::MILLI, node_id};

/// The request.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many founding members; other hosts are constants of the protocol.
    pub nodes: usize,
    /// The quorum system as text.
    pub quorums: String,
    /// Which kinds of faults.
    pub faults: Faults,
    /// Constants set by hand, instead of drawn.
    pub sets: Vec<(String, String)>,
    /// How long the run lasts, if not as long as it needs.
    pub horizon: Option<RealTime>,
    /// The adversary that decides the fate of messages: a named one, or the storm that the seed
    /// draws.
    pub world: Option<&'static Named>,
}

impl Setup {
    /// The quorum system, or why there is none.
    pub fn parse_quorums(&self) -> Result<Quorums, String> {
        let members: Vec<NodeId> = (0..self.nodes).map(node_id).collect();
        Quorums::parse(&self.quorums, members).map_err(|error| error.to_string())
    }
}

/// Something that will happen at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disaster {
    /// A process crashes and comes back later.
    Crash(NodeId, How, u64),
    /// A process is killed inside one of its next steps, and comes back later.
    Kill {
        /// Who.
        node: NodeId,
        /// In which step, and where in it.
        interrupt: Interrupt,
        /// How it comes back.
        how: How,
        /// After how long, in nanoseconds.
        down: u64,
        /// And not before this.
        until: RealTime,
    },
    /// A process or machine stands still for a while.
    Freeze(NodeId, Freeze, u64),
    /// The network falls apart.
    Cut(Shape),
    /// It is whole again.
    Join,
    /// A user does as it likes.
    Whim(NodeId),
    /// The network changed, in words: what it does is the adversary's business.
    News(String),
    /// An operator wants other members.
    Reform(NodeId),
    /// Somebody sets the time of day.
    SetTime(NodeId, i64),
}

/// How often constants are drawn until they go with those that were set.
const DRAWS: u32 = 100;

/// The constants of a run: those that were set, and what the seed draws to go with them.
fn draw_constants<S: Subject>(subject: &S, setup: &Setup, seed: u64) -> Result<Constants, String> {
    let quorums = setup.parse_quorums()?;
    let mut random = Random::stream(seed, "constants");
    let mut draw = || {
        let mut constants = subject.draw(&mut random, setup.nodes);
        for (name, value) in &setup.sets {
            constants.set(name, value)?;
        }
        subject.config(&quorums, &constants).map(|_| constants)
    };
    let first = draw();
    if first.is_ok() || setup.sets.is_empty() {
        return first;
    }
    (1..DRAWS).find_map(|_| draw().ok()).map_or(first, Ok)
}

/// Everything that a seed decides beforehand.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cast: Cast,
    /// Once for the run: some protocols search for it.
    pub(super) rhythm: Rhythm,
    /// The adversary that decides the fate of messages, if not `links`.
    pub(super) adversary: Option<Box<dyn Adversary>>,
    pub(super) links: Links,
    pub(super) forgeries: Forgeries,
    /// How much longer than the least a disk takes at most, in nanoseconds.
    pub(super) slowest_write: u64,
    /// How late a process may be woken, in nanoseconds.
    pub(super) latest_wake: u64,
    pub(super) disasters: Vec<(RealTime, Disaster)>,
    /// When the faults end.
    pub(super) heals: RealTime,
    /// When the last message of the storm has arrived.
    pub(super) owes: RealTime,
    pub(super) ends: RealTime,
}

impl Plan {
    /// Draws a plan. An error says what is wrong with the setup.
    pub(super) fn draw<S: Subject>(subject: &S, setup: &Setup, seed: u64) -> Result<Self, String> {
        let constants = draw_constants(subject, setup, seed)?;
        if let Some(world) = setup.world {
            return Self::of_world(subject, (setup, world), constants, seed);
        }
        let mut random = Random::stream(seed, "plan");
        let rhythm = S::rhythm(&constants);
        let longest = rhythm.longest;
        let chaos = if setup.faults == Faults::NONE { 0 } else { longest * random.between(8, 24) };
        let heals = RealTime(chaos);
        let owes = if chaos == 0 { heals } else { heals.after(LONGEST_DELAY) };
        let ends = setup.horizon.unwrap_or_else(|| owes.after(longest * 20));
        let assumption = subject.assumption(&constants);
        let hosts = S::roles(&constants, setup.nodes)?.len();
        let clocks = draw_clocks((setup, hosts), assumption, ends, &mut Random::stream(seed, "clocks"));
        let mut disasters = draw_all((setup, hosts), longest, (heals, owes), seed);
        if subject.flaws().reads_time_of_day && setup.faults.has(Fault::Clock) {
            set_times(hosts, longest, heals, &mut Random::stream(seed, "time-of-day"), &mut disasters);
        }
        if S::on_resume().is_some() && matches!(assumption, Assumption::Drift { .. }) {
            count_coarsely(&mut Random::stream(seed, "coarse sleep"), &mut disasters);
        }
        let links = Links::draw(setup, rhythm.round, &mut random).at_least(constants.find("least-delay"));
        let slow = setup.faults.has(Fault::Disk) && random.percent(60);
        if setup.faults.has(Fault::Amnesia) && subject.forgets_often(&constants) {
            disasters.extend(draw_losses(
                setup.nodes,
                longest,
                heals,
                &mut Random::stream(seed, "lost disks"),
            ));
            sort(&mut disasters);
        }
        if setup.faults.has(Fault::Crash) && S::loses_one(&constants) {
            let mut random = Random::stream(seed, "departure");
            let (at, node) = (heals.after(random.below(longest * 4)), node_id(random.index(setup.nodes)));
            disasters.push((at, Disaster::Crash(node, How::Restart, ends.0)));
            sort(&mut disasters);
        }
        if setup.faults.has(Fault::Crash) {
            let random = &mut Random::stream(seed, "kills");
            draw_kills((hosts, subject.interruptible(&constants)), longest, heals, random, &mut disasters);
        }
        Ok(Self {
            cast: Cast::new::<S>(&setup.quorums, setup.nodes, constants, clocks)?,
            rhythm,
            adversary: None,
            links,
            forgeries: Forgeries::draw(setup, seed),
            slowest_write: if slow { random.pick(&[20, 200, 1000]) * MILLI } else { MILLI },
            latest_wake: if setup.faults.has(Fault::Delay) { random.pick(&[0, 3, 50]) * MILLI } else { 0 },
            disasters,
            heals,
            owes,
            ends,
        })
    }

    /// A plan in which an adversary rules from beginning to end: nothing heals.
    fn of_world<S: Subject>(
        subject: &S,
        (setup, world): (&Setup, &Named),
        constants: Constants,
        seed: u64,
    ) -> Result<Self, String> {
        let rhythm = S::rhythm(&constants);
        let site = Site {
            hosts: S::roles(&constants, setup.nodes)?.len(),
            quorums: setup.parse_quorums()?,
            faults: setup.faults,
            rhythm,
            constants: &constants,
            suffices: S::suffices,
            horizon: setup.horizon,
            seed,
        };
        let programme = world.programme(&site)?;
        let mut disasters = programme.disasters;
        let random = &mut Random::stream(seed, "kills in a world");
        let within = S::interrupted_within(&constants);
        sharpen_crashes((within, subject.interruptible(&constants)), random, &mut disasters);
        sort(&mut disasters);
        let ends = setup.horizon.unwrap_or(programme.ends);
        let assumption = subject.assumption(&constants);
        let clocks = draw_clocks((setup, site.hosts), assumption, ends, &mut Random::stream(seed, "clocks"));
        Ok(Self {
            cast: Cast::new::<S>(&setup.quorums, setup.nodes, constants, clocks)?,
            rhythm,
            adversary: Some(programme.adversary),
            links: Links::steady(rhythm.round / 2),
            forgeries: Forgeries::none(),
            // Two writes, one after the other, leave time for an answer that is granted in time,
            // the least that each takes included.
            slowest_write: MILLI.min((rhythm.round / 8).saturating_sub(LEAST_WRITE)).max(1),
            latest_wake: if setup.faults.has(Fault::Delay) { rhythm.step } else { 0 },
            disasters,
            heals: ends,
            owes: programme.owes,
            ends,
        })
    }
}

/// Puts disasters in the order of their times. The one place that sorts them: each call of a sort
/// with a closure of its own would be compiled anew, for every protocol.
fn sort(disasters: &mut [(RealTime, Disaster)]) {
    disasters.sort_by_key(|(at, _)| *at);
}

/// Clocks that keep to the assumption, often at its very edge, and one that breaks it if that is
/// asked for.
fn draw_clocks(
    (setup, hosts): (&Setup, usize),
    assumption: Assumption,
    ends: RealTime,
    random: &mut Random,
) -> Vec<Clock> {
    let beyond = setup.faults.has(Fault::ClockBeyondRho).then(|| random.index(hosts));
    let moves = setup.faults.has(Fault::Clock);
    let clock = |node: usize| match assumption {
        Assumption::Drift { ppm } => drifting(ppm, moves, beyond == Some(node), ends, random),
        Assumption::Skew { nanos } => skewed(nanos, moves, beyond == Some(node), ends, random),
    };
    (0..hosts).map(clock).collect()
}

/// A clock at any legal rate: often at an extreme all the time, else switching.
fn drifting(ppm: u64, moves: bool, beyond: bool, ends: RealTime, random: &mut Random) -> Clock {
    let bound = i32::try_from(ppm).unwrap_or(0);
    let start = random.below(100_000) * MILLI + MILLI;
    let one = |ppm| Clock::new(start, &[Stretch { from: RealTime(0), ppm }]);
    if beyond {
        return one(random.pick(&[-500_000, -300_000, 400_000]));
    }
    if !moves {
        return one(0);
    }
    if random.percent(40) {
        return one(random.pick(&[bound, -bound]));
    }
    let mut stretches = Vec::new();
    let mut from = 0;
    while from < ends.0 && stretches.len() < MOST_STRETCHES {
        let any = i32::try_from(random.below(2 * ppm + 1)).unwrap_or(0) - bound;
        let ppm = random.pick(&[bound, -bound, 0, any]);
        stretches.push(Stretch { from: RealTime(from), ppm });
        from += random.between(50, 2000) * MILLI;
    }
    Clock::new(start, &stretches)
}

/// The most changes of rate that a clock is given; after the last it keeps its rate.
const MOST_STRETCHES: usize = 40;

/// The reading of synchronised clocks at the beginning, except for their skew.
pub(super) const EPOCH: u64 = 1_000_000 * MILLI;

/// A synchronised clock: never more than half of Δ from real time, and often just that.
fn skewed(skew: u64, moves: bool, beyond: bool, ends: RealTime, random: &mut Random) -> Clock {
    let edge = i64::try_from(skew / 2).unwrap_or(0) * if beyond { 6 } else { 1 };
    let wanted = |random: &mut Random| {
        let any = i64::try_from(random.below(2 * edge.unsigned_abs() + 1)).unwrap_or(0) - edge;
        if beyond { random.pick(&[edge, -edge]) } else { random.pick(&[edge, -edge, 0, any]) }
    };
    let mut offset = if moves { wanted(random) } else { 0 };
    let start = EPOCH.saturating_add_signed(offset);
    let mut stretches = Vec::new();
    let mut from = 0;
    while moves && from < ends.0 && stretches.len() < MOST_STRETCHES {
        let millis = random.between(50, 2000);
        // Towards the next offset, and no further: whole parts per million round towards the old
        // one.
        let steps = i64::try_from(millis).unwrap_or(1);
        let ppm = ((wanted(random) - offset) / steps).clamp(-300_000, 300_000);
        stretches.push(Stretch { from: RealTime(from), ppm: i32::try_from(ppm).unwrap_or(0) });
        offset += ppm * steps;
        from += millis * MILLI;
    }
    stretches.push(Stretch { from: RealTime(from), ppm: 0 });
    Clock::new(start, &stretches)
}

fn draw_all(
    (setup, hosts): (&Setup, usize),
    longest: u64,
    (heals, owes): (RealTime, RealTime),
    seed: u64,
) -> Vec<(RealTime, Disaster)> {
    let mut disasters =
        draw_disasters((setup, hosts), longest, heals, &mut Random::stream(seed, "disasters"));
    if setup.faults.has(Fault::Members) && heals.0 > 0 {
        let mut random = Random::stream(seed, "members");
        draw_reforms((setup.faults, hosts), longest, heals, &mut random, &mut disasters);
        // With all members alive a leader must not notice a change.
        let gone =
            |(_, disaster): &(RealTime, Disaster)| matches!(disaster, Disaster::Crash(_, How::DiskLost, _));
        if !disasters.iter().any(gone) {
            let settled = owes.after(longest * 11);
            for _ in 0..random.pick(&[0, 2, 4]) {
                let at = settled.after(random.below(longest * 7));
                disasters.push((at, Disaster::Reform(node_id(random.index(hosts)))));
            }
        }
    }
    sort(&mut disasters);
    disasters
}

/// Lost disks, for those who can bear it: over the whole time, or all within a lease or two, so
/// that several recover at once.
fn draw_losses(
    members: usize,
    longest: u64,
    heals: RealTime,
    random: &mut Random,
) -> Vec<(RealTime, Disaster)> {
    let lost = random.pick(&[1, 2, 3, 6]);
    let within = random.pick(&[heals.0, heals.0, 2 * longest, longest / 2]).clamp(1, heals.0.max(1));
    let from = random.below(heals.0.saturating_sub(within) + 1);
    let loss = |_| {
        let (node, down) = (node_id(random.index(members)), random.below(longest));
        (RealTime(from + random.below(within)), Disaster::Crash(node, How::DiskLost, down))
    };
    (0..lost).map(loss).collect()
}

fn draw_disasters(
    (setup, hosts): (&Setup, usize),
    longest: u64,
    heals: RealTime,
    random: &mut Random,
) -> Vec<(RealTime, Disaster)> {
    let mut disasters = Vec::new();
    if heals.0 == 0 {
        return disasters;
    }
    let faults = setup.faults;
    let node = |random: &mut Random| node_id(random.index(hosts));
    let when = |random: &mut Random| RealTime(random.below(heals.0));
    let restless = random.pick(&[0, 5, 30, 60]);
    for _ in 0..restless {
        disasters.push((when(random), Disaster::Whim(node(random))));
    }
    if faults.has(Fault::Crash) {
        for _ in 0..random.pick(&[0, 2, 6, 15]) {
            let how = random.pick(&[How::Restart, How::Restart, How::Elsewhere, How::Reboot, How::Reboot]);
            let down = random.below(longest * 2) / random.pick(&[1, 10]);
            disasters.push((when(random), Disaster::Crash(node(random), how, down)));
        }
    }
    if faults.has(Fault::Amnesia) && random.percent(25) {
        for _ in 0..random.between(1, (setup.nodes as u64 - 1) / 2 + 1) {
            let down = random.below(longest);
            disasters.push((when(random), Disaster::Crash(node(random), How::DiskLost, down)));
        }
    }
    if faults.has(Fault::Pause) {
        for _ in 0..random.pick(&[0, 2, 8]) {
            let freeze = random.pick(&[Freeze::Pause, Freeze::Pause, Freeze::Suspend]);
            disasters.push((when(random), Disaster::Freeze(node(random), freeze, random.below(longest * 2))));
        }
    }
    if faults.has(Fault::Partition) && hosts > 1 {
        draw_cuts(hosts, longest, heals, random, &mut disasters);
    }
    disasters
}

/// Half of the machines that sleep count that by a coarse clock: up to all of it too little, or as
/// much too much.
fn count_coarsely(random: &mut Random, disasters: &mut [(RealTime, Disaster)]) {
    for (_, disaster) in disasters {
        if let Disaster::Freeze(_, freeze @ Freeze::Suspend, long) = disaster
            && random.percent(50)
        {
            let off = i64::try_from(random.below(*long)).unwrap_or(i64::MAX);
            *freeze = Freeze::Coarse(if random.percent(50) { off } else { -off });
        }
    }
}

/// Operators, often two at once; and processes that crash just then, while promises are half kept.
fn draw_reforms(
    (faults, hosts): (Faults, usize),
    longest: u64,
    heals: RealTime,
    random: &mut Random,
    disasters: &mut Vec<(RealTime, Disaster)>,
) {
    let node = |random: &mut Random| node_id(random.index(hosts));
    for _ in 0..random.pick(&[0, 2, 8, 24]) {
        let at = RealTime(random.below(heals.0));
        disasters.push((at, Disaster::Reform(node(random))));
        let soon = |random: &mut Random| at.after(random.below(longest / 4));
        if random.percent(40) {
            disasters.push((soon(random), Disaster::Reform(node(random))));
        }
        if faults.has(Fault::Crash) && random.percent(40) {
            let how = random.pick(&[How::Restart, How::Reboot]);
            let part = random.pick(&[1, 20]);
            let down = random.below(longest / part);
            disasters.push((soon(random), Disaster::Crash(node(random), how, down)));
        }
    }
}

/// Kills inside a step, in half of all runs; where members change, many of them soon after somebody
/// wanted that. From a stream of its own: what else a seed has in store stays the same.
fn draw_kills(
    (hosts, kinds): (usize, &[Which]),
    longest: u64,
    heals: RealTime,
    random: &mut Random,
    disasters: &mut Vec<(RealTime, Disaster)>,
) {
    if heals.0 == 0 || random.percent(50) {
        return;
    }
    let kill = |random: &mut Random, node: NodeId, which: Which| {
        let interrupt = Interrupt::Drawn(random.bits(), which);
        let how = random.pick(&[How::Restart, How::Restart, How::Restart, How::Elsewhere, How::Reboot]);
        let down = random.below(longest) / random.pick(&[1, 10, 100]);
        Disaster::Kill { node, interrupt, how, down, until: RealTime(0) }
    };
    let node = |random: &mut Random| node_id(random.index(hosts));
    for _ in 0..random.pick(&[1, 3, 8]) {
        let (at, node) = (RealTime(random.below(heals.0)), node(random));
        let which = random.pick(kinds);
        disasters.push((at, kill(random, node, which)));
    }
    // A charter is written together with what is remembered of it, by machines that do both.
    let charters: &[Which] =
        if kinds.contains(&Which::Both) { &[Which::Writes, Which::Both, Which::Both] } else { kinds };
    let reforms = disasters.iter().filter(|(_, disaster)| matches!(disaster, Disaster::Reform(_)));
    let reforms: Vec<RealTime> = reforms.map(|(at, _)| *at).filter(|at| *at < heals).collect();
    for at in reforms {
        for _ in 0..random.below(3) {
            let (at, node) = (at.after(random.below(longest / 4)), node(random));
            let which = random.pick(charters);
            disasters.push((at, kill(random, node, which)));
        }
    }
    sort(disasters);
}

/// Where an adversary counts on who is there, nobody else may fail. But who fails may do so inside
/// the next step: in half of all runs most crashes do.
fn sharpen_crashes(
    (soon, kinds): (u64, &[Which]),
    random: &mut Random,
    disasters: &mut Vec<(RealTime, Disaster)>,
) {
    if random.percent(50) {
        return;
    }
    let kinds = if kinds.contains(&Which::Both) { &[Which::Keeps, Which::Both] } else { kinds };
    let mut kills = Vec::new();
    for (at, disaster) in disasters.iter_mut() {
        let Disaster::Crash(node, how, down) = disaster else { continue };
        let (within, bits) = ((soon + random.below(soon)).min(*down / 2), random.bits());
        let which = random.pick(kinds);
        if random.percent(75) && within > 0 {
            // It is back when it would have been. If no such step comes in time, the crash does; if
            // it came, nobody is left to end.
            let (interrupt, until) = (Interrupt::Drawn(bits, which), at.after(*down));
            kills.push((*at, Disaster::Kill { node: *node, interrupt, how: *how, down: 0, until }));
            *at = at.after(within);
            *down -= within;
        }
    }
    disasters.extend(kills);
}

/// The time of day is set now and then, back or forward, by up to a longest lease. Only a driver
/// that reads it can tell, so for others nothing is drawn.
fn set_times(
    hosts: usize,
    longest: u64,
    heals: RealTime,
    random: &mut Random,
    disasters: &mut Vec<(RealTime, Disaster)>,
) {
    if heals.0 == 0 {
        return;
    }
    for _ in 0..random.pick(&[1, 3, 6]) {
        let (at, node) = (RealTime(random.below(heals.0)), node_id(random.index(hosts)));
        let by = i64::try_from(random.between(1, longest)).unwrap_or(i64::MAX);
        disasters.push((at, Disaster::SetTime(node, random.pick(&[by, -by]))));
    }
    sort(disasters);
}

/// Partitions one after the other, with the network whole in between.
fn draw_cuts(
    hosts: usize,
    longest: u64,
    heals: RealTime,
    random: &mut Random,
    disasters: &mut Vec<(RealTime, Disaster)>,
) {
    let mut from = random.below(longest * 4);
    let cuts = random.pick(&[0, 1, 3, 6]);
    for _ in 0..cuts {
        if from >= heals.0 {
            return;
        }
        let until = from + longest / 4 + random.below(longest * 3);
        disasters.push((RealTime(from), Disaster::Cut(Shape::draw(hosts, random))));
        if until < heals.0 {
            disasters.push((RealTime(until), Disaster::Join));
        }
        from = until + random.below(longest * 2);
    }
}
