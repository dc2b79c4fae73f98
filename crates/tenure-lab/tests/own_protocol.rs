//! A protocol of one's own, in one file: machine, judge, mutant and entry. It is run, swept,
//! judged, shrunk and replayed through the same face as those of the catalogue.
//!
//! The rota: clocks agree to within Δ, and time is cut into turns. Process i leads in every turn
//! whose number is i modulo n, except in the last Δ and one tick of it. No message is needed. Of
//! two processes that led at once, one would read a time before the end of its turn less Δ, and
//! the other one after that end: their clocks would differ by more than Δ.

use tenure_lab::catalogue::{About, Entry, Experiment, MutantAbout, Seeds, Trial};
use tenure_lab::count::Counts;
use tenure_lab::draw::{BarKind, Words};
use tenure_lab::property::{Judge, Kind, Outside, Property, Status, Violation};
use tenure_lab::random::Random;
use tenure_lab::simulate::{Faults, Setup};
use tenure_lab::subject::{Assumption, Constants, Key, LeaderThreads, Rhythm, Role, Shape, Subject, Unit};
use tenure_lab::world::clock::MILLI;
use tenure_lab::world::{Flaws, RealTime, World};
use tenure_proto::quorum::Quorums;
use tenure_proto::{Boot, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol, Record};

/// The configuration, the same on every process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Config {
    processes: u64,
    turn: u64,
    /// How long before the end of its turn a process stops.
    margin: u64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rota {
    me: NodeId,
    config: Config,
    /// The beginning of its next turn.
    next: LocalTime,
}

/// The user of a process has nothing to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Nudge;

/// No message is ever sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Never {}

/// Nothing is ever written.
impl Record for Never {
    type Key = ();
    fn key(&self) {}
}

/// A turn of this process has begun.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leads {
    until: LocalTime,
}

impl Protocol for Rota {
    type Config = Config;
    type Command = Nudge;
    type Message = Never;
    type Record = Never;
    type Event = Leads;

    fn start(config: &Config, me: NodeId, _boot: Boot<Never>, cx: &mut Context<'_, Self>) -> Self {
        Self { me, config: config.clone(), next: cx.now() }
    }

    fn handle(&mut self, _input: Input<Self>, cx: &mut Context<'_, Self>) {
        if cx.now() < self.next {
            return;
        }
        if let Some(until) = self.leadership(GroupId(0), cx.now()) {
            cx.publish(Leads { until });
        }
        let Config { processes, turn, .. } = self.config;
        let (now, round) = (cx.now().as_nanos(), processes * turn);
        let mine = now / round * round + self.me.0 * turn;
        self.next = LocalTime::from_nanos(if mine > now { mine } else { mine + round });
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        Some(self.next)
    }
}

impl Elects for Rota {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let Config { processes, turn, margin } = self.config;
        let number = now.as_nanos() / turn;
        let end = LocalTime::from_nanos((number + 1) * turn - margin);
        (number % processes == self.me.0 && now < end).then_some(end)
    }
}

const ONE_LEADER: Property =
    Property { name: "one-leader", kind: Kind::Always, says: "at most one process leads at any instant" };
const ALL_TURNS: Property =
    Property { name: "a-turn", kind: Kind::Eventually, says: "in the end a process has had a turn" };
const PROPERTIES: [Property; 2] = [ONE_LEADER, ALL_TURNS];

/// Judges one run.
struct Watcher {
    turn: u64,
    violation: Vec<Violation>,
    owed: bool,
    led: bool,
    leader: Option<NodeId>,
}

impl Watcher {
    /// Looks at all processes, each by its own clock.
    fn look(&mut self, world: &World<Rota>, at: RealTime) {
        let leads = |node: &NodeId| {
            let host = world.host(*node);
            let process = host.process.as_ref().filter(|_| host.is_up());
            process.is_some_and(|process| process.leadership(GroupId(0), host.reading(at)).is_some())
        };
        let leaders: Vec<NodeId> = world.nodes().filter(leads).collect();
        self.leader = leaders.first().copied();
        if leaders.len() > 1 && self.violation.is_empty() {
            let text = format!("{} and {} lead", leaders[0], leaders[1]);
            self.violation.push(Violation { property: ONE_LEADER.name, at, text, before: None });
        }
    }
}

impl Judge<Rota> for Watcher {
    /// Two lead at once from the beginning of a turn of one of them on.
    fn pass(&mut self, world: &World<Rota>, to: RealTime) {
        for node in world.nodes().filter(|node| world.host(*node).is_up()) {
            let host = world.host(node);
            let mut start = (host.reading(world.now).as_nanos() / self.turn + 1) * self.turn;
            loop {
                let at = host.reading_reaches(LocalTime::from_nanos(start));
                if at >= to {
                    break;
                }
                self.look(world, at);
                start += self.turn;
            }
        }
    }

    fn observe(&mut self, world: &World<Rota>, _node: NodeId, _outside: Outside) {
        self.led |= self.owed && !world.published.is_empty();
        self.look(world, world.now);
    }

    fn healed(&mut self, _world: &World<Rota>) {
        self.owed = true;
    }

    fn end(&mut self, world: &World<Rota>) {
        if self.owed && !self.led {
            let (at, text) = (world.now, "nobody had a turn".to_owned());
            self.violation.push(Violation { property: ALL_TURNS.name, at, text, before: None });
        }
    }

    fn violations(&self) -> &[Violation] {
        &self.violation
    }

    fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let broken = |name| self.violation.iter().any(|violation| violation.property == name);
        PROPERTIES.map(|it| (it, if broken(it.name) { Status::Broken } else { Status::Holds })).to_vec()
    }
}

/// The rota in the laboratory, with its margin or without.
#[derive(Clone, Copy)]
struct Rotas {
    margin: bool,
}

const fn time(name: &'static str, says: &'static str) -> Key {
    Key { name, unit: Unit::Time, says, otherwise: None }
}

const KEYS: [Key; 3] = [
    time("turn", "how long a turn lasts"),
    time("skew", "the most that two clocks differ (Delta)"),
    time("tick", "the step in which clocks advance"),
];

impl Subject for Rotas {
    type Machine = Rota;
    type Judge = Watcher;

    const WORDS: Words = Words {
        leads: "has its turn",
        supports: "",
        silent: "",
        elected: "",
        zones: "partition",
        tracks: ["", ""],
        routine: "",
    };

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn properties(&self) -> &'static [Property] {
        &PROPERTIES
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        Assumption::Skew { nanos: constants.get("skew") }
    }

    fn flaws(&self) -> Flaws {
        Flaws::NONE
    }

    fn draw(&self, random: &mut Random, _members: usize) -> Constants {
        let turn = random.pick(&[50, 100]) * MILLI;
        Constants::new(&KEYS)
            .with("turn", turn)
            .with("skew", turn / random.pick(&[4, 10]))
            .with("tick", random.pick(&[1, MILLI]))
    }

    fn rhythm(constants: &Constants) -> Rhythm {
        let turn = constants.get("turn");
        Rhythm { round: turn / 10, longest: 8 * turn, act: turn, step: 0 }
    }

    fn config(&self, quorums: &Quorums, constants: &Constants) -> Result<Config, String> {
        let (turn, margin) = (constants.get("turn"), constants.get("skew") + constants.get("tick"));
        if turn <= margin {
            return Err("turn must be longer than skew and tick".to_owned());
        }
        let margin = if self.margin { margin } else { 0 };
        Ok(Config { processes: quorums.members().len() as u64, turn, margin })
    }

    fn tell_threads(_threads: &mut LeaderThreads, _event: &Leads) {}

    fn judge(&self, _quorums: &Quorums, constants: &Constants) -> Watcher {
        let turn = constants.get("turn");
        Watcher { turn, violation: Vec::new(), owed: false, led: false, leader: None }
    }

    fn opening(&self, _constants: &Constants, _role: Role) -> Vec<Nudge> {
        Vec::new()
    }

    fn whim(&self, _random: &mut Random, _constants: &Constants, _roles: &[Role], _node: NodeId) -> Nudge {
        Nudge
    }

    fn message_kind(message: &Never) -> &'static str {
        match *message {}
    }

    fn message_text(message: &Never) -> String {
        match *message {}
    }

    fn command_text(_command: &Nudge) -> String {
        "nudge".to_owned()
    }

    fn parse_command(text: &str) -> Option<Nudge> {
        (text == "nudge").then_some(Nudge)
    }

    fn event_text(node: NodeId, event: &Leads) -> String {
        format!("{node} leads until {:?}", event.until)
    }

    fn event_shape(node: NodeId, event: &Leads) -> Shape {
        Shape::Until { kind: BarKind::Lease, until: event.until, label: format!("{node} leads"), mark: None }
    }

    fn count(_event: &Leads, counts: &mut Counts) {
        counts.add("turns");
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        &["turns"]
    }
}

/// The entry: what stands in the catalogue.
struct OnARota;

impl Entry for OnARota {
    type Subject = Rotas;

    fn about(&self) -> About {
        About {
            name: "rota",
            model: "clocks synchronised to within a bound; no messages",
            promises: "at most one leader at any instant",
            source: "every duty roster",
        }
    }

    fn sound(&self) -> Rotas {
        Rotas { margin: true }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Rotas)> {
        let says = "a process leads to the very end of its turn";
        vec![(MutantAbout { name: "no-margin", says }, Rotas { margin: false })]
    }
}

const ROTA: &dyn Experiment = &OnARota;

fn trial(mutant: Option<&str>) -> Trial {
    let (quorums, faults) = ("majority".to_owned(), Faults::all());
    let setup = Setup { nodes: 3, quorums, faults, sets: Vec::new(), horizon: None, world: None };
    Trial { setup, mutant: mutant.map(str::to_owned), property: None }
}

const SEEDS: Seeds = Seeds { first: 0, count: 100, stop_at_first: false, threads: 2 };

#[test]
fn a_protocol_of_one_file_is_swept_and_judged_with_every_fault() {
    let swept = ROTA.sweep(&trial(None), SEEDS, &|_| {}).unwrap();
    assert_eq!(swept.violations, []);
    assert!(swept.counts.get("turns") > 1_000 && swept.counts.get("crashes") > 10);
}

#[test]
fn its_mutant_is_seen_shrunk_and_replayed() {
    let wrong = trial(Some("no-margin"));
    let swept = ROTA.sweep(&wrong, Seeds { stop_at_first: true, ..SEEDS }, &|_| {}).unwrap();
    let (seed, violation) = swept.violations.first().expect("a property notices");
    assert_eq!(violation.property, "one-leader");
    let small = ROTA.shrink(&wrong, *seed, "one-leader").unwrap();
    assert!(small.lines.0 <= small.lines.1);
    assert!(ROTA.replay(&small.script, None).unwrap().as_expected, "it shows the violation again");
    assert_eq!(
        ROTA.replay(&small.script, Some(None)).unwrap().report.violation,
        None,
        "the sound one bears it"
    );
}

#[test]
fn its_runs_are_recorded_drawn_and_repeated() {
    let report = ROTA.run(&trial(None), 7).unwrap();
    assert_eq!((report.protocol, report.violation.clone()), ("rota", None));
    assert!(report.picture.title.starts_with("rota"));
    assert!(ROTA.replay(&report.trace, None).unwrap().as_expected);
    let unknown = ROTA.run(&trial(Some("margin")), 7).map(|_| ()).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no mutant 'margin'; did you mean no-margin?");
}
