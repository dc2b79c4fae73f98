//! The elections of eventual leaders in the laboratory.

mod elector;

pub use elector::{Elector, Which};

use tenure_proto::eventual::{Access, Command, Config, Event, Message, Settings};
use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::time::{Drift, LocalSpan, Span};
use tenure_proto::{LocalTime, NodeId};

use crate::count::Counts;
use crate::draw::{BarKind, MarkKind, Words};
use crate::property::{Kind, Property};
use crate::protocols::eventual::judge::{ALL, EventualJudge, GRANTED, Promises};
use crate::protocols::eventual::mutants::Printed;
use crate::random::Random;
use crate::subject::{Assumption, Constants, Key, LeaderThreads, Rhythm, Role, Shape, Subject, Unit};
use crate::world::{Flaws, Which as Kill, clock::MILLI};

/// An election, with its rules as they should be or as they are printed.
#[derive(Clone, Copy, Debug)]
pub struct Eventual {
    /// Which election.
    pub which: Which,
    /// Which line is taken from the printed figure.
    pub printed: Printed,
}

const fn key(name: &'static str, unit: Unit, says: &'static str) -> Key {
    Key { name, unit, says, otherwise: None }
}

const fn extra(name: &'static str, says: &'static str) -> Key {
    Key { name, unit: Unit::Count, says, otherwise: Some(0) }
}

const KEYS: [Key; 11] = [
    key("drift", Unit::Ppm, "the bound on a clock's rate error (rho)"),
    key("tick", Unit::Time, "the step in which clocks advance"),
    key("period", Unit::Time, "the time between two refreshes (Delta)"),
    key("round", Unit::Time, "the longest round trip that is in time (delta)"),
    key("step", Unit::Time, "how late a process is at most (sigma)"),
    extra("f", "how many may fail, with --quorums majority (0: as many as can)"),
    extra("sticky", "1: whose state was once not new stays out until it takes a higher epoch"),
    extra("durable", "1: what is acknowledged is on the disk first"),
    extra("learn", "begin with a round that is so many times too short, and learn it (0: it is known)"),
    extra(
        "restarts",
        "in a named world: 0 who crashes is gone, 1 comes back with what it kept, 2 comes back with nothing",
    ),
    extra("gone", "with restarts: so many in a hundred of those that crash are gone all the same"),
];

/// The settings of a run.
pub(crate) fn settings(
    printed: Printed,
    quorums: &Quorums,
    constants: &Constants,
) -> Result<Settings<Printed>, String> {
    let span = |name| Span::from_nanos(constants.get(name));
    let local = |name| LocalSpan::from_nanos(constants.get(name));
    let drift = u32::try_from(constants.get("drift")).ok().and_then(Drift::from_ppm);
    let learn = constants.get("learn");
    let round = match learn {
        0 => span("round"),
        times => Span::from_nanos((constants.get("round") / times).max(1)),
    };
    Ok(Settings {
        access: access(quorums, constants)?,
        period: span("period"),
        round,
        drift: drift.ok_or("drift must be below 1000000ppm")?,
        tick: local("tick"),
        step: span("step"),
        sticky: constants.get("sticky") > 0,
        durable: constants.get("durable") > 0,
        learns: (learn > 0).then_some(round),
        rules: printed,
    })
}

fn access(quorums: &Quorums, constants: &Constants) -> Result<Access, String> {
    match usize::try_from(constants.get("f")).unwrap_or(usize::MAX) {
        0 => Ok(Access::by(quorums.clone())),
        f => Access::counted(quorums.clone(), f).ok_or_else(|| format!("f={f}: fewer than half may fail")),
    }
}

impl Subject for Eventual {
    type Machine = Elector;
    type Judge = EventualJudge;

    const WORDS: Words = Words {
        leads: "leads, as it believes",
        supports: "follows, as it believes",
        silent: "reads anew what it lost",
        elected: "believes that it leads",
        zones: "what the network does",
        tracks: ["", ""],
        routine: "",
    };
    const PROMISES: bool = false;

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn properties(&self) -> &'static [Property] {
        &ALL
    }

    fn rests_on_network(property: &Property) -> bool {
        property.kind == Kind::Eventually || GRANTED.contains(property)
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        Assumption::Drift { ppm: constants.get("drift") }
    }

    fn flaws(&self) -> Flaws {
        Flaws::NONE
    }

    fn draw(&self, random: &mut Random, _members: usize) -> Constants {
        Constants::new(&KEYS)
            .with("drift", random.pick(&[1_000, 1_000, 50_000, 200_000]))
            .with("tick", random.pick(&[1, 1, MILLI / 10, MILLI]))
            .with("period", 25 * MILLI)
            .with("round", 10 * MILLI)
            .with("step", random.pick(&[MILLI / 10, MILLI / 10, MILLI]))
            .with("durable", random.pick(&[0, 0, 1]))
            .with("restarts", random.pick(&[0, 0, 0, 1, 2]))
    }

    fn rhythm(constants: &Constants) -> Rhythm {
        let period = constants.get("period");
        Rhythm {
            round: constants.get("round"),
            longest: 4 * period,
            act: period,
            step: constants.get("step"),
        }
    }

    fn config(&self, quorums: &Quorums, constants: &Constants) -> Result<(Which, Config<Printed>), String> {
        if self.which == Which::Stable && constants.get("learn") > 0 {
            return Err("omega-stable needs a round that is known: learn must be 0".to_owned());
        }
        let settings = settings(self.printed, quorums, constants)?;
        Ok((self.which, settings.validate().map_err(|error| error.to_string())?))
    }

    /// With durable states each is written and remembered in one step. Else nothing is written, and
    /// where no state is kept at all a process is killed between two messages.
    fn interruptible(&self, constants: &Constants) -> &'static [Kill] {
        match self.which {
            Which::Omega | Which::Lean | Which::Stable if constants.get("durable") > 0 => {
                &[Kill::Keeps, Kill::Writes, Kill::Both]
            }
            Which::Omega | Which::Lean | Which::Stable => &[Kill::Keeps, Kill::Keeps, Kill::Any],
            Which::LowestId | Which::Accusation => &[Kill::Any],
        }
    }

    /// States are kept once a period.
    fn interrupted_within(constants: &Constants) -> u64 {
        constants.get("period")
    }

    fn tell_threads(_threads: &mut LeaderThreads, _event: &Event) {}

    fn judge(&self, quorums: &Quorums, constants: &Constants) -> EventualJudge {
        let promises = match self.which {
            Which::Omega | Which::Lean => Promises::Omega,
            Which::Stable => Promises::Stable,
            Which::LowestId | Which::Accusation => Promises::Agreement,
        };
        EventualJudge::new(promises, quorums.members().len(), constants)
    }

    fn opening(&self, _constants: &Constants, _role: Role) -> Vec<Command> {
        Vec::new()
    }

    fn whim(&self, _: &mut Random, _: &Constants, _: &[Role], _: NodeId) -> Command {
        Command::Abdicate
    }

    fn message_kind(message: &Message) -> &'static str {
        match message {
            Message::Refresh { .. } => "refresh",
            Message::Ack { .. } => "ack",
            Message::Collect { .. } => "collect",
            Message::Status { .. } => "status",
            Message::GetEpoch { .. } => "get-epoch",
            Message::RetEpoch { .. } => "ret-epoch",
            Message::Alive { .. } => "alive",
            Message::Accuse { .. } => "accuse",
        }
    }

    fn message_kinds(&self) -> Vec<&'static str> {
        vec!["refresh", "ack", "collect", "status", "get-epoch", "ret-epoch", "alive", "accuse"]
    }

    /// A collect needs no timely answers; but like every message of a process with access it has
    /// some.
    fn suffices(quorums: &Quorums, constants: &Constants, members: NodeSet, kind: &str) -> bool {
        let Ok(access) = access(quorums, constants) else { return true };
        if kind == "get-epoch" { access.is_read(members) } else { access.is_write(members) }
    }

    fn number(message: &Message) -> u64 {
        match message {
            Message::Refresh { round, .. } | Message::Ack { round, .. } => *round,
            Message::Collect { read } | Message::Status { read, .. } => *read,
            Message::GetEpoch { attempt } | Message::RetEpoch { attempt, .. } => *attempt,
            Message::Alive { .. } | Message::Accuse { .. } => 0,
        }
    }

    fn answers(message: &Message) -> Option<&'static str> {
        match message {
            Message::Ack { .. } => Some("refresh"),
            Message::Status { .. } => Some("collect"),
            Message::RetEpoch { .. } => Some("get-epoch"),
            _ => None,
        }
    }

    fn message_text(message: &Message) -> String {
        match message {
            Message::Refresh { state, round } => {
                format!("round {round}: I stand for {}, {}", state.epoch, state.fresh)
            }
            Message::Ack { round, ahead: None } => format!("round {round}: written down"),
            Message::Ack { round, ahead: Some(serial) } => {
                format!("round {round}: I have a later state of yours, of serial {serial}")
            }
            Message::Collect { read } => format!("read {read}: what do you know?"),
            Message::Status { read, registry, recovers } => {
                let states: Vec<String> =
                    registry.iter().map(|state| format!("{} {}", state.epoch, state.fresh)).collect();
                let recovers = if *recovers { " (not all that I knew)" } else { "" };
                format!("read {read}: {}{recovers}", states.join(", "))
            }
            Message::GetEpoch { attempt } => format!("attempt {attempt}: which serial is the highest?"),
            Message::RetEpoch { attempt, serial } => format!("attempt {attempt}: {serial}"),
            Message::Alive { counts } => format!("I live; accused: {counts:?}"),
            Message::Accuse { of, count } => format!("I miss n{of}, accused {count} times"),
        }
    }

    fn command_text(command: &Command) -> String {
        match command {
            Command::Abdicate => "abdicate".to_owned(),
        }
    }

    fn parse_command(text: &str) -> Option<Command> {
        (text == "abdicate").then_some(Command::Abdicate)
    }

    fn event_text(node: NodeId, event: &Event) -> String {
        match event {
            Event::Hint(hint) => match hint.leader {
                Some(leader) if leader == node => {
                    format!("{node} takes itself for leader, by {}", hint.epoch)
                }
                Some(leader) => format!("{node} takes {leader} for leader, by {}", hint.epoch),
                None => format!("{node} takes nobody for leader"),
            },
            Event::Leads { epoch, .. } => format!("{node} goes on to lead by {epoch}"),
            Event::Yields { epoch } => format!("{node} leads no more by {epoch}"),
            Event::Stands { epoch } => format!("{node} stands for {epoch}"),
            Event::Adrift => format!("{node} stands for no epoch"),
            Event::Outrun { serial } => format!("{node} hears that it stood for serial {serial} before"),
            Event::Allows { round } => format!("{node} allows {round} for an answer"),
            Event::Recovers => format!("{node} has lost what it knew, and reads it anew"),
            Event::Recovered => format!("{node} knows what it must"),
        }
    }

    fn event_shape(node: NodeId, event: &Event) -> Shape {
        match event {
            Event::Hint(hint) => match hint.leader {
                Some(leader) if leader == node => {
                    Shape::Ends { kind: BarKind::Lease, mark: Some(MarkKind::Elected) }
                }
                Some(leader) => Shape::Until {
                    kind: BarKind::Grant { to: leader.index() },
                    until: FAR,
                    label: format!("follows {leader}"),
                    mark: None,
                },
                None => Shape::Until {
                    kind: BarKind::Grant { to: node.index() },
                    until: LocalTime::ZERO,
                    label: String::new(),
                    mark: None,
                },
            },
            Event::Leads { epoch, until } => Shape::Until {
                kind: BarKind::Lease,
                until: *until,
                label: format!("leads by {epoch}"),
                mark: None,
            },
            Event::Yields { .. } => Shape::Ends { kind: BarKind::Lease, mark: Some(MarkKind::Lost) },
            Event::Recovers => {
                Shape::Until { kind: BarKind::Silent, until: FAR, label: "reads anew".to_owned(), mark: None }
            }
            Event::Recovered => Shape::Ends { kind: BarKind::Silent, mark: None },
            Event::Stands { .. } | Event::Adrift | Event::Outrun { .. } | Event::Allows { .. } => {
                Shape::Nothing
            }
        }
    }

    fn count(event: &Event, counts: &mut Counts) {
        match event {
            Event::Hint(_) => counts.add("hints"),
            Event::Leads { .. } => counts.add("renewals"),
            Event::Yields { .. } => counts.add("leaders-lost"),
            Event::Stands { .. } => counts.add("epochs"),
            Event::Adrift => counts.add("epochs-dropped"),
            Event::Outrun { .. } => counts.add("epochs-outrun"),
            Event::Allows { .. } => counts.add("rounds-lengthened"),
            Event::Recovers => counts.add("recoveries"),
            Event::Recovered => counts.add("recovered"),
        }
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        &[
            "hints",
            "renewals",
            "leaders-lost",
            "epochs",
            "epochs-dropped",
            "epochs-outrun",
            "recoveries",
            "recovered",
        ]
    }
}

/// Later than any run.
const FAR: LocalTime = LocalTime::from_nanos(1 << 60);
