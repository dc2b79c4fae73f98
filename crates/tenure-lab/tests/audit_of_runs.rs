//! The auditor against the simulator: a run is written down as real nodes would write it, and
//! judged from that alone.
//!
//! On runs of the sound protocol the auditor must be silent, whatever clocks, disks and networks do
//! within their bounds. On the saved schedules of mutants it must see, in the traces, what the
//! simulator's judge saw in the world.

mod written;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_lab::audit::Report;
use tenure_lab::catalogue::find;
use tenure_lab::protocols::strong::mutants;
use tenure_lab::protocols::strong::subject::{Model, Strong};
use tenure_lab::random::{Random, Scripted};
use tenure_lab::script::{self, Expect, Script, subject_of};
use tenure_lab::stage::{Cast, Command};
use tenure_lab::subject::leader_threads::THREADS;
use tenure_lab::subject::{Assumption, LeaderThreads, Made, Subject};
use tenure_lab::world::{Action, Flaws, Foundation, Freeze, How, Interrupt, RealTime, World};
use tenure_proto::strong::epoch::{Body, Charter, Epoch};
use tenure_proto::strong::{Event, Nerio, Rules};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::trace::{Common, EdictMade, HEADER, Life, Line, Start, What, write_event};
use tenure_proto::{GroupId, Incarnation, LocalTime, NodeId, Protocol};
use written::{assert_silent, assert_silent_on_parts, audited, saved, sees, stormy};

/// How a writer knows the common clock.
#[derive(Clone, Copy, PartialEq)]
enum Clocks {
    /// To the nanosecond.
    Exact,
    /// Only after its own, by up to so much.
    Late(u64),
    /// Not at all.
    None,
}

/// A run that is being written down.
struct Scribe<R: Rules> {
    world: World<Nerio<R>>,
    files: Vec<String>,
    threads: Vec<LeaderThreads>,
    /// When each thread began the edict that it is at.
    begun: Vec<[Option<(LocalTime, RealTime)>; THREADS as usize]>,
    /// How many lives each node has had; nothing once its disk is lost.
    lives: Vec<Option<u128>>,
    charters: BTreeMap<Epoch, Arc<Charter>>,
    flaws: Flaws,
    clocks: Clocks,
    chance: Random,
}

impl<R: Rules> Scribe<R> {
    fn common(&mut self, from: RealTime, to: RealTime) -> Option<Common> {
        match self.clocks {
            Clocks::Exact => Some(Common { from: from.0, to: to.0 }),
            Clocks::Late(most) => Some(Common { from: from.0, to: to.0 + self.chance.below(most) }),
            Clocks::None => None,
        }
    }

    fn start(&mut self, node: NodeId, lost: bool) {
        let at = node.index();
        self.lives[at] = match (self.flaws.missing_is_fresh, self.flaws.missing_is_reboot) {
            (true, _) if lost => Some(1),
            (_, false) if lost => None,
            _ => self.lives[at].map(|lives| lives + 1),
        };
        let Some(lives) = self.lives[at] else { return };
        let now = self.world.now;
        let host = &self.world.hosts[at];
        let (own, epoch) = (host.reading(now), host.process.as_ref().unwrap().epoch());
        let incarnation = Incarnation(if self.flaws.same_incarnation { 1 } else { lives });
        let charter = self.charters.get(&epoch).expect("somebody has told of it").clone();
        let life = Life { node, incarnation, cluster: 7 };
        let what = What::Start(Start { life, name: format!("host-{at}"), charter });
        let common = self.common(now, now);
        Line { own, common, what }.write(&mut self.files[at]);
    }

    /// At the end of the run every process that runs has ended in good order: there is no more to
    /// be known of it.
    fn stop(&mut self, node: NodeId) {
        let (at, now) = (node.index(), self.world.now);
        let own = self.world.hosts[at].reading(now);
        let common = self.common(now, now);
        // A process that is killed while its machine sleeps does not get to read its clock once
        // more.
        let asleep = matches!(self.world.hosts[at].frozen, Some((Freeze::Coarse(_), _)));
        if self.world.hosts[at].process.is_some() && !asleep && self.lives[at].is_some() {
            Line { own, common, what: What::Stop }.write(&mut self.files[at]);
        }
    }

    fn published(&mut self) {
        let now = self.world.now;
        for (node, own, event) in self.world.published.clone() {
            if let Event::Adopted { charter, .. } | Event::Decided { charter } = &event {
                self.charters.insert(charter.epoch, charter.clone());
            }
            let at = node.index();
            self.threads[at].hear(&event);
            if self.lives[at].is_some() {
                let common = self.common(now, now);
                write_event(&mut self.files[at], own, common, &event);
            }
        }
    }

    /// A process has ended: its threads make no more edicts.
    fn close(&mut self, node: NodeId) {
        self.threads[node.index()].close();
        self.begun[node.index()] = Default::default();
    }

    fn work(&mut self, node: NodeId, thread: u8) {
        let (at, now) = (node.index(), self.world.now);
        let host = &self.world.hosts[at];
        let reading = host.reading(now);
        self.threads[at].saw(host.last_seen());
        let slot = usize::from(thread) % usize::from(THREADS);
        let begun = *self.begun[at][slot].get_or_insert((reading, now));
        let made = self.threads[at].step(thread, reading, now, true);
        if let Some(made) = &made {
            self.edict(at, made, begun, (reading, now));
        }
        if made.is_some() || !self.threads[at].is_open() {
            self.begun[at][slot] = None;
        }
    }

    fn edict(
        &mut self,
        at: usize,
        made: &Made,
        (own, from): (LocalTime, RealTime),
        (after, to): (LocalTime, RealTime),
    ) {
        let tag = &made.by_first.tag;
        let (term, number) = (made.by_term.tag, made.by_term.number);
        let (group, epoch, first) = (GroupId(0), tag.epoch, Some(tag.first.clone()));
        let what = What::Edict(EdictMade { group, epoch, term, number, after: after.max(own), first });
        let common = self.common(from, to);
        if self.lives[at].is_some() {
            Line { own, common, what }.write(&mut self.files[at]);
        }
    }
}

fn body<S: Subject>(subject: &S, cast: &Cast) -> Body {
    let bound = match subject.assumption(&cast.constants) {
        Assumption::Drift { ppm } => Bound::Drift(Drift::from_ppm(u32::try_from(ppm).unwrap()).unwrap()),
        Assumption::Skew { nanos } => Bound::Skew(LocalSpan::from_nanos(nanos)),
    };
    let tick = LocalSpan::from_nanos(cast.constants.get("tick"));
    let longest_lease = Span::from_nanos(cast.constants.get("longest-lease"));
    let stores = tenure_proto::strong::epoch::Stores::default();
    let (clocks, barred) = (Clockwork { bound, tick }, Default::default());
    Body { quorums: cast.quorums.clone(), clocks, longest_lease, stores, barred }
}

/// Repeats a script and writes down what nodes would have written.
fn files<S, R>(subject: &S, script: &Script<Command<S>>, clocks: Clocks) -> Vec<String>
where
    R: Rules,
    S: Subject<Machine = Nerio<R>>,
{
    let (constants, hosts) = (script.constants.clone(), script.clocks.clone());
    let cast = Cast::new::<S>(&script.quorums, script.members, constants, hosts).unwrap();
    let founding = Charter::founding(body(subject, &cast));
    let foundation = Foundation {
        config: subject.config(&cast.quorums, &cast.constants).unwrap(),
        clocks: cast.clocks.clone(),
        tick: founding.body.clocks.tick,
        synchronised: matches!(founding.body.clocks.bound, Bound::Skew(_)),
        founding: Vec::new(),
        on_resume: S::on_resume(),
        forger: S::forged,
        flaws: subject.flaws(),
        keeps_flights: true,
    };
    let hosts = cast.clocks.len();
    let mut scribe = Scribe {
        world: World::new(foundation, &mut Scripted::new(&[])),
        files: vec![format!("{HEADER}\n"); hosts],
        threads: vec![LeaderThreads::new(subject.order()); hosts],
        begun: vec![[None; THREADS as usize]; hosts],
        lives: vec![Some(0); hosts],
        charters: BTreeMap::from([(Epoch(0), founding)]),
        flaws: subject.flaws(),
        clocks,
        chance: Random::stream(script.seed.unwrap_or(0), "common clock"),
    };
    for node in scribe.world.nodes() {
        scribe.start(node, false);
    }
    scribe.published();
    for line in &script.lines {
        let Some(action) = line.action.rename(|name| scribe.world.find(*name)) else { continue };
        scribe.world.interrupt = line.kill.map(Interrupt::Now);
        if scribe.world.act(line.at, &action, &mut Scripted::new(&line.draws)) {
            follow(&mut scribe, &action);
            if let Some((node, _)) = scribe.world.killed {
                scribe.world.finish_kill();
                scribe.close(node);
            }
        }
    }
    for node in scribe.world.nodes() {
        scribe.stop(node);
    }
    scribe.files
}

fn follow<R: Rules, F>(scribe: &mut Scribe<R>, action: &Action<<Nerio<R> as Protocol>::Command, F>) {
    if let Action::Start(node, how) = action {
        scribe.start(*node, *how == How::DiskLost);
    }
    scribe.published();
    match action {
        Action::Crash(node) => scribe.close(*node),
        Action::Work(node, thread) => scribe.work(*node, *thread),
        _ => {}
    }
}

/// The model of a protocol.
fn model(protocol: &str) -> Model {
    if protocol == "nerio-skew" { Model::Skew } else { Model::Drift }
}

/// A run of the sound protocol, written down.
fn sound(protocol: &str, seed: u64, clocks: Clocks) -> Vec<String> {
    let subject = Strong::sound(model(protocol));
    let report = find(protocol).unwrap().run(&stormy(), seed).unwrap();
    let script = script::parse(&subject, &report.trace).unwrap();
    files(&subject, &script, clocks)
}

/// On seeds of the sound protocol the auditor must have nothing to say. Says how many edicts were
/// compared.
fn sound_seeds(protocol: &str, seeds: std::ops::Range<u64>, clocks: Clocks) -> usize {
    let judge = |seed| {
        let report = audited(&sound(protocol, seed, clocks));
        assert_silent(&report, &format!("{protocol}, seed {seed}"));
        report.counts.edicts
    };
    seeds.map(judge).sum()
}

#[test]
fn nothing_is_called_broken_because_a_part_of_the_traces_is_missing() {
    for seed in 300..315 {
        let whole = sound("nerio-drift", seed, Clocks::Exact);
        assert_silent_on_parts(&whole, seed);
    }
}

#[test]
fn the_auditor_is_silent_on_sound_runs_with_every_fault() {
    let edicts = sound_seeds("nerio-drift", 0..30, Clocks::Exact);
    assert!(edicts > 100, "{edicts} edicts were compared");
}

#[test]
fn the_auditor_is_silent_where_common_time_is_known_only_roughly() {
    sound_seeds("nerio-drift", 100..120, Clocks::Late(3_000_000));
}

#[test]
fn the_auditor_is_silent_where_clocks_are_synchronised() {
    sound_seeds("nerio-skew", 0..20, Clocks::Exact);
}

#[test]
fn the_auditor_is_silent_without_a_common_clock() {
    sound_seeds("nerio-drift", 200..215, Clocks::None);
}

/// The auditor's verdict on the saved schedule of a mutant, and the simulator's.
fn of_mutant(text: &str, clocks: Clocks) -> (String, Report) {
    let (protocol, named) = subject_of(text).unwrap();
    let report = find(&protocol).unwrap().replay(text, None).unwrap().report;
    let named = named.unwrap();
    let mutant = mutants::strong().find(|mutant| mutant.name == named).unwrap();
    let subject = mutant.subject(model(&protocol));
    let script = script::parse(&subject, &report.trace).unwrap();
    let Expect::Broken(property) = &script.expect else { panic!("{named} breaks nothing") };
    (property.clone(), audited(&files(&subject, &script, clocks)))
}

/// Mutants that traces cannot show, and why.
const UNSEEN: [(&str, &str); 31] = [
    ("disturbed-leads-on", "it says that its clock was disturbed, and is not judged by that clock any more"),
    (
        "change-abandoned",
        "something is owed that does not come, and traces do not say from when on it is owed",
    ),
    ("commands-lost", "the same"),
    ("denies-own-seal", "the same"),
    ("liveness-former-leader-refused", "the same"),
    ("liveness-refresh-starves", "the same"),
    ("nack-no-record", "the same"),
    ("no-young", "the same"),
    ("partial-connectivity", "the same"),
    ("term-inflation", "the same"),
    ("check-then-act", "the lease ends between the two readings around the edict"),
    ("edict-sample-first", "the same"),
    ("edict-stale-e", "the same"),
    ("edict-non-atomic", "two edicts were made at the same time, as far as their readings tell"),
    ("count-card", "only (epoch, QT, EC) is wrong, which nodes do not use"),
    ("late-ok-merged", "the same"),
    ("e-not-floored", "wrong by less than a tick"),
    ("no-tick-pad", "wrong by less than a tick"),
    ("verify-printed", "wrong by less than clocks may drift"),
    ("restart-epoch", "what a grantor remembers over a restart is not in its trace"),
    ("forgets-grant", "what a process has in memory is not in its trace"),
    ("forgets-pledge", "the same"),
    ("forgets-release", "the same"),
    ("forgets-term", "the same"),
    ("absurd-believed", "traces do not say how high terms were before them"),
    ("height-free", "the same"),
    ("outsiders-vouch", "the same"),
    ("amnesia-same-id-silent", "a term is given away twice, in two lives, and nobody leads by it"),
    ("any-store", "the same"),
    ("covered-by-older", "the same"),
    ("acts-while-behind", "the auditor sees the lease outlast the grant instead"),
];

/// Of every saved schedule the auditor sees what the simulator saw, but for what traces cannot
/// show.
fn sees_mutants(protocol: &str) {
    let (mut seen, mut missed) = (0, Vec::new());
    for (name, text) in saved(protocol) {
        let (expected, report) = of_mutant(&text, Clocks::Exact);
        let excused = UNSEEN.iter().any(|(known, _)| *known == name);
        let sees = sees(&report, &expected);
        if !sees && !excused {
            missed.push(format!("{name}: the simulator saw {expected}, the auditor {:?}", report.violations));
        }
        seen += usize::from(sees);
    }
    assert!(missed.is_empty(), "{protocol}: {missed:#?}");
    assert!(seen > 50, "{protocol}: only {seen}");
}

#[test]
fn the_auditor_sees_in_traces_what_the_simulator_sees_in_the_world() {
    sees_mutants("nerio-drift");
}

#[test]
fn the_auditor_sees_it_where_clocks_are_synchronised_too() {
    sees_mutants("nerio-skew");
}

#[test]
fn the_auditor_is_silent_where_a_lost_quorum_was_given_up_soundly_and_sees_where_nobody_waited() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/force-remove.scenario");
    let play = fs::read_to_string(path).unwrap();
    let trace = find("nerio-drift").unwrap().replay(&play, None).unwrap().report.trace;
    let subject = Strong::sound(Model::Drift);
    let script = script::parse(&subject, &trace).unwrap();
    assert_silent(&audited(&files(&subject, &script, Clocks::Exact)), "force-remove");

    let (_, text) = saved("nerio-drift").into_iter().find(|(name, _)| name == "force-no-wait").unwrap();
    let (_, report) = of_mutant(&text, Clocks::None);
    assert!(sees(&report, "charters-wait"));
    let (_, text) = saved("nerio-drift").into_iter().find(|(name, _)| name == "force-no-seal").unwrap();
    let (_, report) = of_mutant(&text, Clocks::None);
    assert!(sees(&report, "charters-wait"));
}
