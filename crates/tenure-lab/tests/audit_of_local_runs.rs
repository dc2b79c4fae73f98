//! The auditor against the simulator, for local groups: a run is written down as real nodes would write it, and judged from that alone.
//!
//! On runs of the sound protocol the auditor must be silent, whatever clocks and networks do within their bounds.

use std::sync::Arc;

use tenure_lab::audit::{self, File, Report};
use tenure_lab::catalogue::{Trial, find};
use tenure_lab::random::{Random, Scripted};
use tenure_lab::script;
use tenure_lab::simulate::{Faults, Setup};
use tenure_lab::stage::Cast;
use tenure_lab::subject::Subject;
use tenure_lab::subject::local::Locals;
use tenure_lab::world::{Action, Foundation, World};
use tenure_proto::local::{Config, Event, Local, Sound};
use tenure_proto::quorum::{Quorums, Rule};
use tenure_proto::strong::epoch::{Body, Charter};
use tenure_proto::strong::trace::{Common, HEADER, Life, Line, LocalStart, Start, What};
use tenure_proto::time::{Bound, Clockwork, LocalSpan, Span};
use tenure_proto::{GroupId, Incarnation, NodeId};

const GROUP: GroupId = GroupId(0);

type Subjected = Locals<Sound, false>;

/// A run that is being written down.
struct Scribe {
    world: World<Local>,
    config: Config,
    charter: Arc<Charter>,
    files: Vec<String>,
    lives: Vec<u128>,
    /// By how much common time is known too late.
    late: u64,
    chance: Random,
}

impl Scribe {
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

/// A run of the sound protocol, written down.
fn sound(seed: u64, late: u64) -> Vec<String> {
    let setup = Setup {
        nodes: 5,
        quorums: "majority".into(),
        faults: Faults::all(),
        sets: vec![],
        horizon: None,
        world: None,
    };
    let trial = Trial { setup, mutant: None, property: None };
    let report = find("local").unwrap().run(&trial, seed).unwrap();
    let script = script::parse::<Subjected>(&report.trace).unwrap();
    let subject = Subjected { rules: Sound };
    let (constants, hosts) = (script.constants.clone(), script.clocks.clone());
    let cast = Cast::new::<Subjected>(&script.quorums, script.members, constants, hosts).unwrap();
    let config = subject.config(&cast.quorums, &cast.constants).unwrap();
    let (members, timing) = (config.settings().members.clone(), config.settings().timing);
    let body = Body {
        quorums: Quorums::new(members, Rule::Majority).unwrap(),
        clocks: Clockwork { bound: Bound::Drift(timing.drift), tick: timing.tick },
        longest_lease: Span::from_millis(1000),
    };
    let foundation = Foundation {
        config: config.clone(),
        clocks: cast.clocks.clone(),
        tick: LocalSpan::from_nanos(timing.tick.as_nanos()),
        synchronised: false,
        founding: Vec::new(),
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
        chance: Random::stream(seed, "common clock"),
    };
    let nodes: Vec<NodeId> = scribe.world.nodes().collect();
    nodes.iter().for_each(|node| scribe.start(*node));
    scribe.published();
    for line in &script.lines {
        let Some(action) = line.action.rename(|name| scribe.world.find(*name)) else { continue };
        if scribe.world.act(line.at, &action, &mut Scripted::new(&line.draws)) {
            if let Action::Start(node, _) = action {
                scribe.start(node);
            }
            scribe.published();
        }
    }
    let runs = |scribe: &Scribe, node: NodeId| scribe.world.host(node).process.is_some();
    for node in nodes {
        if runs(&scribe, node) {
            scribe.write(node, What::Stop);
        }
    }
    scribe.files
}

fn audited(files: &[String]) -> Report {
    let names: Vec<String> = (0..files.len()).map(|i| format!("n{i}.trace")).collect();
    let given = files.iter().zip(&names);
    let given: Vec<File<'_>> = given.map(|(text, name)| File { name, bytes: text.as_bytes() }).collect();
    audit::audit(&given).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_silent(report: &Report, what: &str) {
    if let Some(broken) = report.violations.first() {
        let places: Vec<&str> = broken.places.iter().map(|place| place.text.as_str()).collect();
        panic!("{what}: {} at {:?}: {}\n{}", broken.property.name, broken.at, broken.text, places.join("\n"));
    }
}

#[test]
fn the_auditor_is_silent_on_sound_runs_of_local_groups_with_every_fault() {
    let mut elections = 0;
    for seed in 0..30 {
        let report = audited(&sound(seed, 1));
        assert_silent(&report, &format!("seed {seed}"));
        elections += report.counts.local_elections;
    }
    assert!(elections > 100, "{elections} elections were judged");
}

#[test]
fn the_auditor_is_silent_where_common_time_is_known_only_roughly() {
    for seed in 100..115 {
        assert_silent(&audited(&sound(seed, 3_000_000)), &format!("seed {seed}"));
    }
}

#[test]
fn no_local_leader_is_accused_because_a_part_of_the_traces_is_missing() {
    for seed in 300..310 {
        let whole = sound(seed, 1);
        let mut chance = Random::stream(seed, "what is missing");
        for round in 0..6 {
            let mut part = |text: &String| match chance.below(10) {
                0..=2 => String::new(),
                3..=5 => text[..chance.index(text.len())].to_owned(),
                _ => text.clone(),
            };
            let kept = whole.iter().map(&mut part);
            let kept: Vec<String> = kept.filter(|text| text.lines().count() > 2).collect();
            if !kept.is_empty() {
                assert_silent(&audited(&kept), &format!("seed {seed}, round {round}"));
            }
        }
    }
}
