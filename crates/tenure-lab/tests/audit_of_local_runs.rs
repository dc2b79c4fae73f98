//! The auditor against the simulator, for local groups: a run is written down as real nodes would
//! write it, and judged from that alone.
//!
//! On runs of the sound protocol the auditor must be silent, whatever clocks and networks do within
//! their bounds. On the saved schedules of mutants it must see, in the traces, what the simulator's
//! judge saw in the world.

mod written;

use std::sync::Arc;

use tenure_lab::audit::Report;
use tenure_lab::catalogue::find;
use tenure_lab::protocols::local::mutants::ALL;
use tenure_lab::protocols::local::subject::Locals;
use tenure_lab::random::{Random, Scripted};
use tenure_lab::script::{self, Expect, Script, subject_of};
use tenure_lab::stage::{Cast, Command};
use tenure_lab::subject::Subject;
use tenure_lab::world::{Action, Foundation, Interrupt, World};
use tenure_proto::local::{Config, Event, Local, Rules, Sound};
use tenure_proto::quorum::{Quorums, Rule};
use tenure_proto::strong::epoch::{Body, Charter};
use tenure_proto::time::{Bound, Clockwork, LocalSpan, Span};
use tenure_proto::trace::{Common, HEADER, Life, Line, LocalStart, Start, What};
use tenure_proto::{GroupId, Incarnation, NodeId};
use written::{assert_silent, assert_silent_on_parts, audited, saved, sees, stormy};

const GROUP: GroupId = GroupId(0);

/// For how long nothing happens after the last line of a script: longer than any lease.
const PAUSE: u64 = 10_000_000_000;

/// A run that is being written down.
struct Scribe<R: Rules> {
    world: World<Local<R>>,
    config: Config<R>,
    charter: Arc<Charter>,
    files: Vec<String>,
    lives: Vec<u128>,
    /// By how much common time is known too late.
    late: u64,
    chance: Random,
}

impl<R: Rules> Scribe<R> {
    fn write(&mut self, node: NodeId, what: What) {
        let now = self.world.now;
        let own = self.world.host(node).reading(now);
        let common = Common { from: now.0, to: now.0 + self.chance.below(self.late) };
        Line { own, common: Some(common), what }.write(&mut self.files[node.index()]);
    }

    fn start(&mut self, node: NodeId) {
        self.lives[node.index()] += 1;
        let life = Life { node, incarnation: Incarnation(self.lives[node.index()]), cluster: 7 };
        let start = Start { life, name: format!("host-{}", node.0), charter: self.charter.clone() };
        self.write(node, What::Start(start));
        let start = LocalStart::new(GROUP, &self.config);
        self.write(node, What::LocalStart(start));
    }

    fn published(&mut self) {
        for (node, _, event) in self.world.published.clone() {
            if !matches!(event, Event::Heard { .. }) {
                self.write(node, What::Local { group: GROUP, event });
            }
        }
    }
}

/// Repeats a script and writes down what nodes would have written.
fn files<R: Rules>(subject: &Locals<R>, script: &Script<Command<Locals<R>>>, late: u64) -> Vec<String> {
    let (constants, hosts) = (script.constants.clone(), script.clocks.clone());
    let cast = Cast::new::<Locals<R>>(&script.quorums, script.members, constants, hosts).unwrap();
    let config = subject.config(&cast.quorums, &cast.constants).unwrap();
    let (members, timing) = (config.settings().members.clone(), config.settings().timing);
    let body = Body {
        quorums: Quorums::new(members, Rule::Majority).unwrap(),
        clocks: Clockwork { bound: Bound::Drift(timing.drift), tick: timing.tick },
        longest_lease: Span::from_millis(1000),
        stores: tenure_proto::strong::epoch::Stores::default(),
        barred: tenure_proto::strong::epoch::Barred::default(),
    };
    let foundation = Foundation {
        config: config.clone(),
        clocks: cast.clocks.clone(),
        tick: LocalSpan::from_nanos(timing.tick.as_nanos()),
        synchronised: false,
        founding: Vec::new(),
        on_resume: None,
        forger: |_, _, _, _| None,
        flaws: subject.flaws(),
        keeps_flights: true,
    };
    let hosts = cast.clocks.len();
    let mut scribe = Scribe {
        world: World::new(foundation, &mut Scripted::new(&[])),
        config,
        charter: Charter::founding(body),
        files: vec![format!("{HEADER}\n"); hosts],
        lives: vec![0; hosts],
        late,
        chance: Random::stream(script.seed.unwrap_or(0), "common clock"),
    };
    let nodes: Vec<NodeId> = scribe.world.nodes().collect();
    nodes.iter().for_each(|node| scribe.start(*node));
    scribe.published();
    for line in &script.lines {
        let Some(action) = line.action.rename(|name| scribe.world.find(*name)) else { continue };
        scribe.world.interrupt = line.kill.map(Interrupt::Now);
        if scribe.world.act(line.at, &action, &mut Scripted::new(&line.draws)) {
            if let Action::Start(node, _) = action {
                scribe.start(node);
            }
            scribe.published();
            scribe.world.finish_kill();
        }
    }
    // A running process ends in good order, but not at once: until then leases go on.
    scribe.world.now = scribe.world.now.after(PAUSE);
    for node in nodes {
        if scribe.world.host(node).process.is_some() {
            scribe.write(node, What::Stop);
        }
    }
    scribe.files
}

/// A run of the sound protocol, written down.
fn sound(majority: bool, seed: u64, late: u64) -> Vec<String> {
    let protocol = if majority { "local-majority" } else { "local" };
    let report = find(protocol).unwrap().run(&stormy(), seed).unwrap();
    let subject = Locals { rules: Sound, majority };
    let script = script::parse(&subject, &report.trace).unwrap();
    files(&subject, &script, late)
}

/// On seeds of the sound protocol the auditor must have nothing to say. Says how many elections
/// were judged.
fn sound_seeds(majority: bool, seeds: std::ops::Range<u64>, late: u64) -> usize {
    let judge = |seed| {
        let report = audited(&sound(majority, seed, late));
        assert_silent(&report, &format!("majority {majority}, seed {seed}"));
        report.counts.local_elections
    };
    seeds.map(judge).sum()
}

#[test]
fn the_auditor_is_silent_on_sound_runs_of_local_groups_with_every_fault() {
    let elections = sound_seeds(false, 0..30, 1);
    assert!(elections > 100, "{elections} elections were judged");
}

#[test]
fn the_auditor_is_silent_where_majorities_lead() {
    let elections = sound_seeds(true, 0..30, 1);
    assert!(elections > 50, "{elections} elections were judged");
}

#[test]
fn the_auditor_is_silent_where_common_time_is_known_only_roughly() {
    sound_seeds(false, 100..115, 3_000_000);
    sound_seeds(true, 100..115, 3_000_000);
}

#[test]
fn no_local_leader_is_accused_because_a_part_of_the_traces_is_missing() {
    for seed in 300..310 {
        assert_silent_on_parts(&sound(false, seed, 1), seed);
        assert_silent_on_parts(&sound(true, seed, 1), seed);
    }
}

/// The auditor's verdict on the saved schedule of a mutant, and the simulator's.
fn of_mutant(majority: bool, text: &str) -> (String, Report) {
    let (protocol, named) = subject_of(text).unwrap();
    let report = find(&protocol).unwrap().replay(text, None).unwrap().report;
    let named = named.unwrap();
    let rules = ALL.iter().find(|mutant| mutant.name == named).unwrap().wrong;
    let subject = Locals { rules, majority };
    let script = script::parse(&subject, &report.trace).unwrap();
    let Expect::Broken(property) = &script.expect else { panic!("{named} breaks nothing") };
    (property.clone(), audited(&files(&subject, &script, 1)))
}

/// Properties that traces cannot show, and why.
const UNSEEN: [(&str, &str, &str); 3] = [
    ("local-majority", "drop-drift-factor", "wrong by less than clocks may drift"),
    ("local", "leads-after-step-back", STEPS),
    ("local-majority", "leads-after-step-back", STEPS),
];

const STEPS: &str = "a trace has readings of the leader's own clock: by it the lease is as long as it was";

/// Of every saved schedule the auditor sees what the simulator saw, but for what traces cannot
/// show, such as how long datagrams took.
fn sees_mutants(protocol: &str) {
    let majority = protocol == "local-majority";
    let mut seen = 0;
    for (name, text) in saved(protocol) {
        let (expected, report) = of_mutant(majority, &text);
        let excused = expected == "fast-is-fast"
            || UNSEEN.iter().any(|(of, known, _)| *of == protocol && *known == name);
        let (sees, found) = (sees(&report, &expected), &report.violations);
        assert!(sees || excused, "{protocol}, {name}: the simulator saw {expected}, the auditor {found:?}");
        seen += usize::from(sees);
    }
    assert!(seen >= 8, "{protocol}: only {seen}");
}

#[test]
fn the_auditor_sees_in_traces_what_the_simulator_sees_in_the_world() {
    sees_mutants("local");
}

#[test]
fn the_auditor_sees_it_where_majorities_lead_too() {
    sees_mutants("local-majority");
}
