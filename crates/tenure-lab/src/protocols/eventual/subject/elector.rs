//! Any of the elections, as one machine: the laboratory's own worlds are made once for all of them.

use tenure_proto::eventual::baseline::{Accusation, LowestId};
use tenure_proto::eventual::{
    Command, Config, Epoch, Event, Hint, Hints, Lean, Message, Omega, Record, Stable,
};
use tenure_proto::{Boot, Context, Effect, Elects, GroupId, Input, LocalTime, NodeId, Protocol};

use crate::protocols::eventual::mutants::Printed;

/// Which election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// Fig. 1.
    Omega,
    /// With few links.
    Lean,
    /// Fig. 2.
    Stable,
    /// A baseline.
    LowestId,
    /// Another.
    Accusation,
}

/// A process of one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Elector {
    /// Fig. 1.
    Omega(Omega<Printed>),
    /// With few links.
    Lean(Lean<Printed>),
    /// Fig. 2.
    Stable(Stable<Printed>),
    /// A baseline.
    LowestId(LowestId<Printed>),
    /// Another.
    Accusation(Accusation<Printed>),
}

/// All speak, keep and tell the same: nothing is translated.
fn same<Q>(effect: Effect<Q>) -> Option<Effect<Elector>>
where
    Q: Protocol<Message = Message, Record = Record, Event = Event>,
{
    Some(match effect {
        Effect::Persist { ticket, record } => Effect::Persist { ticket, record },
        Effect::Remember(record) => Effect::Remember(record),
        Effect::Publish(event) => Effect::Publish(event),
        Effect::Send { to, message, after } => Effect::Send { to, message, after },
    })
}

fn input<Q: Protocol<Message = Message, Command = Command>>(input: Input<Elector>) -> Input<Q> {
    match input {
        Input::Message { from, received, message } => Input::Message { from, received, message },
        Input::Command(command) => Input::Command(command),
        Input::Deadline => Input::Deadline,
    }
}

impl Protocol for Elector {
    type Config = (Which, Config<Printed>);
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Self::Config, me: NodeId, boot: Boot<Record>, cx: &mut Context<'_, Self>) -> Self {
        let (which, config) = config;
        match which {
            Which::Omega => Self::Omega(cx.layer(same, |cx| Omega::start(config, me, boot, cx))),
            Which::Lean => Self::Lean(cx.layer(same, |cx| Lean::start(config, me, boot, cx))),
            Which::Stable => Self::Stable(cx.layer(same, |cx| Stable::start(config, me, boot, cx))),
            Which::LowestId => Self::LowestId(cx.layer(same, |cx| LowestId::start(config, me, boot, cx))),
            Which::Accusation => {
                Self::Accusation(cx.layer(same, |cx| Accusation::start(config, me, boot, cx)))
            }
        }
    }

    fn handle(&mut self, told: Input<Self>, cx: &mut Context<'_, Self>) {
        match self {
            Self::Omega(machine) => cx.layer(same, |cx| machine.handle(input(told), cx)),
            Self::Lean(machine) => cx.layer(same, |cx| machine.handle(input(told), cx)),
            Self::Stable(machine) => cx.layer(same, |cx| machine.handle(input(told), cx)),
            Self::LowestId(machine) => cx.layer(same, |cx| machine.handle(input(told), cx)),
            Self::Accusation(machine) => cx.layer(same, |cx| machine.handle(input(told), cx)),
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        match self {
            Self::Omega(machine) => machine.next_deadline(),
            Self::Lean(machine) => machine.next_deadline(),
            Self::Stable(machine) => machine.next_deadline(),
            Self::LowestId(machine) => machine.next_deadline(),
            Self::Accusation(machine) => machine.next_deadline(),
        }
    }
}

impl Elects for Elector {
    fn leadership(&self, group: GroupId, now: LocalTime) -> Option<LocalTime> {
        match self {
            Self::Omega(machine) => machine.leadership(group, now),
            Self::Lean(machine) => machine.leadership(group, now),
            Self::Stable(machine) => machine.leadership(group, now),
            Self::LowestId(machine) => machine.leadership(group, now),
            Self::Accusation(machine) => machine.leadership(group, now),
        }
    }
}

impl Hints for Elector {
    fn hint(&self, now: LocalTime) -> Hint {
        match self {
            Self::Omega(machine) => machine.hint(now),
            Self::Lean(machine) => machine.hint(now),
            Self::Stable(machine) => machine.hint(now),
            Self::LowestId(machine) => machine.hint(now),
            Self::Accusation(machine) => machine.hint(now),
        }
    }

    fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Omega(machine) => machine.epoch(),
            Self::Lean(machine) => machine.epoch(),
            Self::Stable(machine) => machine.epoch(),
            Self::LowestId(machine) => machine.epoch(),
            Self::Accusation(machine) => machine.epoch(),
        }
    }
}
