//! The election beside the log: Nerio, for its lease or for hints alone, or one of the Omegas.
//!
//! An Omega gives hints, and that is all the log needs. So, as in the library, nothing of it is
//! kept over a restart: each life begins like a founding. Within the election a process that forgot
//! what it acknowledged could let two lead; to the log that is one more wrong hint.

use tenure_proto::eventual::{self, Access, Hints};
use tenure_proto::log::Rules;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::{self, Standing};
use tenure_proto::time::{Drift, LocalSpan, Span};
use tenure_proto::{
    Boot, BootKind, Effect, Elects, GroupId, Incarnation, Input, LocalTime, NodeId, Protocol,
};

use super::{Broken, Context, Happening, Host, Kept, Nerio, Talk, strong_config};
use crate::protocols::eventual::mutants::Printed;
use crate::protocols::eventual::subject::{Elector, Which};
use crate::subject::Constants;
use crate::world::clock::MILLI;

pub(super) const GROUP: GroupId = GroupId(0);

/// The names of elections, as `--set election=` takes them.
pub(super) const ELECTIONS: &[&str] = &["lease", "hints", "omega", "lean", "stable"];

/// Which Omega drives the log, if one does.
pub(super) fn omega(constants: &Constants) -> Option<Which> {
    match constants.get("election") {
        2 => Some(Which::Omega),
        3 => Some(Which::Lean),
        4 => Some(Which::Stable),
        _ => None,
    }
}

/// How the election is set up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Setting {
    /// By Nerio. With the lease: its holder proposes, under its term, and reads without asking.
    Strong { config: strong::Config<Broken>, lease: bool },
    /// By an Omega.
    Omega(Which, eventual::Config<Printed>),
}

impl Setting {
    /// As the constants say; an error says which one to change.
    pub(super) fn of(quorums: &Quorums, constants: &Constants) -> Result<Self, String> {
        Ok(match omega(constants) {
            None => Self::Strong {
                config: strong_config(quorums, constants)?,
                lease: constants.get("election") == 0,
            },
            Some(which) => Self::Omega(which, omega_config(quorums, constants)?),
        })
    }
}

/// σ: how late a process is at most.
pub(super) fn step(constants: &Constants) -> u64 {
    match constants.get("step") {
        0 => MILLI / 10,
        step => step,
    }
}

/// Δ: the time between two refreshes.
pub(super) fn period(constants: &Constants) -> u64 {
    match constants.get("period") {
        0 => constants.get("retry") * 5 / 2 + 2 * step(constants) + 4 * constants.get("tick"),
        period => period,
    }
}

fn omega_config(quorums: &Quorums, constants: &Constants) -> Result<eventual::Config<Printed>, String> {
    let drift = u32::try_from(constants.get("drift")).ok().and_then(Drift::from_ppm);
    let faults = usize::try_from(constants.get("faults")).unwrap_or(usize::MAX);
    let access = Access::counted(quorums.clone(), faults);
    let settings = eventual::Settings {
        access: access.ok_or_else(|| format!("faults={faults}: fewer than half may fail"))?,
        period: Span::from_nanos(period(constants)),
        round: Span::from_nanos(constants.get("retry")),
        drift: drift.ok_or("drift must be below 1000000ppm")?,
        tick: LocalSpan::from_nanos(constants.get("tick")),
        step: Span::from_nanos(step(constants)),
        sticky: false,
        durable: false,
        learns: None,
        rules: Printed::Nothing,
    };
    settings.validate().map_err(|error| error.to_string())
}

/// One life of the election at a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Electing {
    Strong { nerio: Box<Nerio>, lease: bool },
    Omega(Box<Elector>),
}

impl Electing {
    pub(super) fn start<R: Rules>(
        setting: &Setting,
        me: NodeId,
        boot: Boot<<Nerio as Protocol>::Record>,
        cx: &mut Context<'_, R>,
    ) -> Self {
        match setting {
            Setting::Strong { config, lease } => {
                let nerio = cx.layer(
                    |effect| strong_effect(effect, &mut Vec::new()),
                    |cx| Nerio::start(config, me, boot, cx),
                );
                Self::Strong { nerio: Box::new(nerio), lease: *lease }
            }
            Setting::Omega(which, config) => {
                let (config, boot) = ((*which, config.clone()), founding(boot.incarnation));
                let elector = cx.layer(omega_effect, |cx| Elector::start(&config, me, boot, cx));
                Self::Omega(Box::new(elector))
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        match self {
            Self::Strong { nerio, .. } => nerio.next_deadline(),
            Self::Omega(elector) => elector.next_deadline(),
        }
    }

    /// The process that should lead, and its epoch.
    pub(super) fn opinion(&self, me: NodeId, now: LocalTime) -> (Option<NodeId>, u64) {
        match self {
            Self::Strong { nerio, .. } => {
                let leader = match nerio.standing(GROUP, now) {
                    Standing::Leads { .. } => Some(me),
                    Standing::Follows { holder, .. } => Some(holder),
                    _ => None,
                };
                (leader, nerio.largest_term(GROUP).0)
            }
            Self::Omega(elector) => {
                let hint = elector.hint(now);
                (hint.leader, hint.epoch.serial)
            }
        }
    }

    pub(super) fn leadership(&self, now: LocalTime) -> Option<LocalTime> {
        match self {
            Self::Strong { nerio, .. } => nerio.leadership(GROUP, now),
            Self::Omega(elector) => elector.leadership(GROUP, now),
        }
    }

    /// Messages to the other kind of election are not heard.
    pub(super) fn handle<R: Rules>(
        &mut self,
        input: Said,
        reach: impl Fn(Option<Effect<Host<R>>>) -> Option<Effect<Host<R>>>,
        cx: &mut Context<'_, R>,
    ) -> Vec<strong::Event> {
        let mut events = Vec::new();
        match (self, input) {
            (Self::Strong { nerio, .. }, Said::Strong(input)) => {
                cx.layer(|effect| reach(strong_effect(effect, &mut events)), |cx| nerio.handle(input, cx));
            }
            (Self::Omega(elector), Said::Omega(input)) => {
                cx.layer(|effect| reach(omega_effect(effect)), |cx| elector.handle(input, cx));
            }
            _ => {}
        }
        events
    }

    /// Its deadline has come.
    pub(super) fn deadline(&self) -> Said {
        match self {
            Self::Strong { .. } => Said::Strong(Input::Deadline),
            Self::Omega(_) => Said::Omega(Input::Deadline),
        }
    }
}

/// An input of an election.
pub(super) enum Said {
    Strong(Input<Nerio>),
    Omega(Input<Elector>),
}

fn founding(incarnation: Incarnation) -> Boot<eventual::Record> {
    Boot { incarnation, durable: Vec::new(), kind: BootKind::Founding }
}

fn strong_effect<R: Rules>(
    effect: Effect<Nerio>,
    events: &mut Vec<strong::Event>,
) -> Option<Effect<Host<R>>> {
    Some(match effect {
        Effect::Persist { ticket, record } => Effect::Persist { ticket, record: Kept::Strong(record) },
        Effect::Remember(record) => Effect::Remember(Kept::Strong(record)),
        Effect::Publish(event) => {
            events.push(event.clone());
            Effect::Publish(Happening::Strong(Box::new(event)))
        }
        Effect::Send { to, message, after } => Effect::Send { to, message: Talk::Strong(message), after },
    })
}

/// Nothing is kept, and so nothing waits for a disk.
fn omega_effect<R: Rules>(effect: Effect<Elector>) -> Option<Effect<Host<R>>> {
    match effect {
        Effect::Persist { .. } | Effect::Remember(_) => None,
        Effect::Publish(event) => Some(Effect::Publish(Happening::Omega(event))),
        Effect::Send { to, message, .. } => {
            Some(Effect::Send { to, message: Talk::Omega(message), after: None })
        }
    }
}
