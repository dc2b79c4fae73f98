//! Local leadership in the laboratory.

mod text;

pub(crate) use text::names;

use tenure_proto::local::{
    Body, Command, Config, Datagram, Event, Inequality, Local, Rules, Settings, Sound, Timing,
};
use tenure_proto::quorum::Quorums;
use tenure_proto::time::{Drift, LocalSpan, Span};
use tenure_proto::{NodeId, Protocol};

use crate::count::Counts;
use crate::draw::{BarKind, MarkKind, Words};
use crate::property::Property;
use crate::protocols::local::judge::{LOCAL, LocalJudge, MAJORITY};
use crate::random::Random;
use crate::subject::{Assumption, Constants, Key, LeaderThreads, Rhythm, Role, Shape, Subject, Unit};
use crate::world::{Flaws, Which, clock::MILLI, node_id};

/// Local leadership under some rules: sound, or a mutant. With a majority, or without.
#[derive(Clone, Debug)]
pub struct Locals<R: Rules> {
    /// The rules of the machine.
    pub rules: R,
    /// Whether more than half of all members must support a leader.
    pub majority: bool,
}

const fn key(name: &'static str, unit: Unit, says: &'static str, otherwise: Option<u64>) -> Key {
    Key { name, unit, says, otherwise }
}

/// Some constants say how much of another they are, so that any can be set by hand and the others
/// still fit.
const KEYS: [Key; 12] = [
    key("drift", Unit::Ppm, "the bound on a clock's rate error (rho)", None),
    key("tick", Unit::Time, "the step in which clocks advance", None),
    key("delay", Unit::Time, "the most that a timely message takes (delta)", None),
    key("least-delay", Unit::Time, "the least that a message takes (delta_min)", None),
    key("hole", Unit::Time, "how late a timely process may be woken (sigma)", None),
    key("fast", Unit::Time, "what took longer is slow (Delta); 0: the least that will do", Some(0)),
    key("pace", Unit::Time, "the most that two requests are apart (EP); 0: the least that will do", Some(0)),
    key(
        "expires",
        Unit::Count,
        "how long a sign of life counts, in quarters of the least that will do",
        Some(12),
    ),
    key(
        "lock",
        Unit::Count,
        "how long a supporter is bound: 0 the longest that slows nobody down, 1 the shortest, else in paces",
        Some(0),
    ),
    key("majority", Unit::Count, "1: more than half of all must support a leader; 0: not so", Some(0)),
    key("turn", Unit::Count, "after how many kappas a leader lets the next have its turn; 0: never", Some(0)),
    key("tree", Unit::Count, "how many children a node has along which answers come; 0: no tree", Some(0)),
];

/// The settings that constants stand for. An error names the inequality that does not hold, and
/// what would.
pub(crate) fn settings<R: Rules>(
    constants: &Constants,
    members: usize,
    rules: R,
) -> Result<Settings<R>, String> {
    let (span, local) =
        (|name| Span::from_nanos(constants.get(name)), |name| LocalSpan::from_nanos(constants.get(name)));
    let drift = u32::try_from(constants.get("drift")).ok().and_then(Drift::from_ppm);
    let drift = drift.filter(|drift| drift.as_ppm() < 250_000).ok_or("drift must be below 250000ppm")?;
    let many = |name| usize::try_from(constants.get(name)).unwrap_or(usize::MAX);
    let mut settings = Settings {
        members: (0..members).map(node_id).collect(),
        timing: Timing {
            drift,
            tick: local("tick"),
            delay: span("delay"),
            least_delay: span("least-delay"),
            fast: span("fast"),
            hole: span("hole"),
            pace: local("pace"),
        },
        expires: None,
        lock: None,
        majority: constants.get("majority") > 0,
        turn: None,
        tree: Some(many("tree")).filter(|arity| *arity > 0),
        rules,
    };
    if settings.timing.pace == LocalSpan::ZERO {
        // One that is too short: what is suggested is the least that will do.
        settings.timing.pace = LocalSpan::from_nanos(MILLI);
        if let Err(refused) = settings.clone().validate() {
            settings.timing = *refused.slower.clone().ok_or_else(|| refused.to_string())?;
        }
    } else if settings.timing.fast == Span::from_nanos(0) {
        settings.timing.fast = settings.least_fast();
    }
    if settings.tree.is_none() && settings.check().is_err() {
        settings.clone().validate().map_err(|refused| refused.to_string())?;
    }
    settings.expires = Some(expires(&settings, constants.get("expires")));
    settings.lock = lock(&settings, constants.get("lock"));
    if let (turns @ 1.., Ok(derived)) = (constants.get("turn"), settings.check()) {
        let kappa = derived.kappa_leader.max(derived.kappa_support);
        settings.turn = Some(kappa.times(u32::try_from(turns).unwrap_or(u32::MAX)));
    }
    Ok(settings)
}

/// The least that will do, so many quarters of it: the check says what that is.
fn expires<R: Rules>(settings: &Settings<R>, quarters: u64) -> LocalSpan {
    let none = Settings { expires: Some(LocalSpan::ZERO), ..settings.clone() };
    match none.check() {
        Err((Inequality::Expires, _, least)) => {
            LocalSpan::from_nanos(least.saturating_mul(quarters.max(4)) / 4)
        }
        _ => settings.timing.pace.times(4),
    }
}

fn lock<R: Rules>(settings: &Settings<R>, choice: u64) -> Option<LocalSpan> {
    if choice == 0 {
        return None;
    }
    let none = Settings { lock: Some(LocalSpan::ZERO), ..settings.clone() };
    let Err((Inequality::ShortLock, _, lead)) = none.check() else { return None };
    let millionths = u64::from(1_000_000 - 2 * settings.timing.drift.as_ppm());
    let shortest = lead.saturating_mul(1_000_000) / millionths + 4;
    let paces = settings.timing.pace.as_nanos().saturating_mul(choice);
    Some(LocalSpan::from_nanos(if choice == 1 { shortest } else { paces.max(shortest) }))
}

/// The configuration that constants stand for, under sound rules.
pub(crate) fn resolve(constants: &Constants, members: usize) -> Result<Config, String> {
    settings(constants, members, Sound)?.validate().map_err(|refused| refused.to_string())
}

impl<R: Rules> Subject for Locals<R> {
    type Machine = Local<R>;
    type Judge = LocalJudge;

    const WORDS: Words = Words {
        leads: "leads its logical partition",
        supports: "is bound to one leader",
        silent: "supports nobody",
        elected: "elected",
        zones: "partition",
        tracks: ["", ""],
        routine: "",
    };

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn properties(&self) -> &'static [Property] {
        if self.majority { &MAJORITY } else { &LOCAL }
    }

    /// A promise is remembered, and nothing is ever written.
    fn interruptible(&self, _constants: &Constants) -> &'static [Which] {
        &[Which::Keeps, Which::Keeps, Which::Any]
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        Assumption::Drift { ppm: constants.get("drift") }
    }

    fn flaws(&self) -> Flaws {
        Flaws::NONE
    }

    /// Exaggerated drift and constants at the edge of what they may be make mistakes visible.
    fn draw(&self, random: &mut Random, members: usize) -> Constants {
        let delay = random.pick(&[2, 4, 10]) * MILLI;
        let constants = Constants::new(&KEYS)
            .with("drift", random.pick(&[100, 1_000, 10_000, 40_000]))
            .with("tick", random.pick(&[1, 1, 1_000, 100_000]))
            .with("delay", delay)
            .with("least-delay", random.pick(&[0, delay / 12]))
            .with("hole", random.pick(&[delay / 4, delay, 3 * delay]))
            .with("expires", random.pick(&[4, 6, 8, 12]))
            .with("lock", random.pick(&[0, 0, 1, 3, 6]))
            .with("majority", u64::from(self.majority))
            .with("turn", random.pick(&[0, 0, 0, 0, 0, 1]));
        // Along a tree stamps get old: with much drift no constants would fit.
        let tree = if constants.get("drift") > 10_000 { 0 } else { random.pick(&[0, 0, 0, 2, 3]) };
        constants.with("tree", if members >= 4 { tree } else { 0 })
    }

    fn rhythm(constants: &Constants) -> Rhythm {
        let delay = constants.get("delay");
        let longest = match resolve(constants, 16) {
            Ok(config) => config.constants().expires.max(config.constants().lock).as_nanos(),
            Err(_) => 20 * delay, // It cannot be run, as its configuration will say.
        };
        Rhythm { round: 2 * delay, longest, act: longest, step: constants.get("hole") }
    }

    fn config(
        &self,
        quorums: &Quorums,
        constants: &Constants,
    ) -> Result<<Local<R> as Protocol>::Config, String> {
        let settings = settings(constants, quorums.members().len(), self.rules.clone())?;
        settings.validate().map_err(|refused| refused.to_string())
    }

    fn tell_threads(_threads: &mut LeaderThreads, _event: &Event) {}

    fn judge(&self, quorums: &Quorums, constants: &Constants) -> LocalJudge {
        LocalJudge::new(resolve(constants, quorums.members().len()).ok(), self.properties())
    }

    fn opening(&self, _constants: &Constants, _role: Role) -> Vec<Command> {
        Vec::new()
    }

    fn whim(&self, _random: &mut Random, _constants: &Constants, _roles: &[Role], _node: NodeId) -> Command {
        Command::Resign
    }

    fn message_kind(message: &Datagram) -> &'static str {
        match message.body {
            Body::Election { .. } => "election",
            Body::Reply { .. } => "reply",
            Body::Release { .. } => "release",
            Body::Helper => "helper",
        }
    }

    fn message_kinds(&self) -> Vec<&'static str> {
        vec!["election", "reply", "release", "helper"]
    }

    fn message_text(message: &Datagram) -> String {
        text::message(message)
    }

    fn command_text(_command: &Command) -> String {
        "resign".to_owned()
    }

    fn parse_command(text: &str) -> Option<Command> {
        (text == "resign").then_some(Command::Resign)
    }

    fn event_text(node: NodeId, event: &Event) -> String {
        text::event(node, event)
    }

    fn event_shape(node: NodeId, event: &Event) -> Shape {
        match event {
            Event::Locked { lock, .. } => Shape::Until {
                kind: BarKind::Grant { to: lock.to },
                until: lock.until,
                label: format!("{node} is bound to n{}", lock.to),
                mark: None,
            },
            Event::Freed { to } => Shape::Ends { kind: BarKind::Grant { to: to.index() }, mark: None },
            Event::Leads { lease, renewed } => Shape::Partition {
                until: lease.until,
                members: lease.supporters.positions().collect(),
                label: format!("{node} leads {}", text::names(lease.supporters)),
                mark: (!renewed).then_some(MarkKind::Elected),
            },
            Event::Stepped { .. } => Shape::Ends { kind: BarKind::Lease, mark: Some(MarkKind::Lost) },
            Event::Silent { until } => Shape::Until {
                kind: BarKind::Silent,
                until: *until,
                label: format!("{node} supports nobody"),
                mark: None,
            },
            _ => Shape::Nothing,
        }
    }

    fn count(event: &Event, counts: &mut Counts) {
        counts.add(match event {
            Event::Heard { fast: true, .. } => "datagrams-fast",
            Event::Heard { fast: false, .. } => "datagrams-slow",
            Event::Asked { collate: true, .. } => "requests-collated",
            Event::Asked { .. } => "requests",
            Event::Locked { .. } => "locks",
            Event::Declined { .. } => "requests-declined",
            Event::Leads { renewed: false, .. } => "elections",
            Event::Leads { .. } => "renewals",
            Event::Failed { .. } => "requests-failed",
            Event::Released { .. } => "releases",
            Event::Freed { .. } => "locks-freed",
            Event::Stepped { .. } => "leaders-stepped-down",
            Event::Members(_) => "memberships-learnt",
            Event::Silent { .. } => "silences",
        });
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        &[
            "datagrams-fast",
            "datagrams-slow",
            "requests",
            "requests-collated",
            "locks",
            "requests-declined",
            "elections",
            "renewals",
            "requests-failed",
            "releases",
            "locks-freed",
            "leaders-stepped-down",
            "memberships-learnt",
            "silences",
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_that_is_drawn_or_set_beside_others_gives_a_machine() {
        let subject = Locals { rules: Sound, majority: false };
        for seed in 0..2_000 {
            let mut random = Random::stream(seed, "constants");
            let drawn = subject.draw(&mut random, 8);
            for (name, value) in [("tree", 3), ("turn", 1), ("lock", 1), ("expires", 4), ("majority", 1)] {
                let steady = if name == "tree" { 10_000 } else { 40_000 };
                let constants = drawn.clone().with(name, value);
                let constants = constants.clone().with("drift", constants.get("drift").min(steady));
                let settings = settings(&constants, 16, Sound).expect("it can be resolved");
                assert!(settings.validate().is_ok(), "seed {seed}: {constants}");
            }
        }
    }

    #[test]
    fn the_constants_of_the_paper_are_refused_by_name() {
        let constants = Constants::new(&KEYS)
            .with("drift", 100)
            .with("tick", 1)
            .with("delay", 7_500_000)
            .with("least-delay", MILLI)
            .with("hole", 30 * MILLI)
            .with("fast", 15 * MILLI)
            .with("pace", 50 * MILLI);
        let error = resolve(&constants, 8).expect_err("no lock time fits");
        assert!(error.contains("does not hold") && error.contains("EP=97ms"), "{error}");
    }
}
