//! Nerio, as the explorer walks it.

mod ghost;
mod scopes;

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::{Command, Event, Kind, Message, Talk};
use tenure_proto::time::Stamp;
use tenure_proto::{GroupId, LocalTime, Protocol};

use crate::explore::{
    Broken as Violation, Machine, Rename, Scope, Sight, Stepping, Walk, Witness, number_of,
};
use crate::protocols::strong::mutants::Broken;
use crate::protocols::strong::subject::Strong;
use crate::subject::Subject;
use crate::world::node_id;

pub use ghost::{Ghost, Note};
pub use scopes::scopes;

/// Nerio in one of its models, sound or with a broken rule.
#[derive(Clone, Debug)]
pub struct NerioWalk {
    /// The machine in the laboratory.
    pub subject: Strong<Broken>,
    /// How many members there are: their quorums are majorities.
    pub members: usize,
}

impl Walk for NerioWalk {
    type Subject = Strong<Broken>;
    type Ghost = Ghost;
    type Note = Note;

    fn subject(&self) -> &Strong<Broken> {
        &self.subject
    }

    fn witnesses(&self) -> &'static [Witness] {
        ghost::WITNESSES
    }

    fn ghost(&self) -> Ghost {
        Ghost::default()
    }

    fn note(&self, event: &Event, now: LocalTime, left: &dyn Fn(LocalTime) -> u8) -> Option<Note> {
        Some(match event {
            Event::Granted { request, until, .. } => {
                Note::Granted { run: request.id.into(), left: left(*until) }
            }
            Event::Refused { .. } => Note::Refused,
            Event::Freed { newest, .. } => Note::Freed((*newest).into()),
            Event::GaveBack { upto, .. } => Note::GaveBack((*upto).into()),
            Event::Leads { kind, term, until, stamps, .. } => {
                let mut numbers = [0; ghost::GRANTORS];
                for (node, stamp) in stamps.iter() {
                    if let Some(number) = numbers.get_mut(node.index()) {
                        *number = number_of(stamp);
                    }
                }
                let term = u8::try_from(term.0).unwrap_or(u8::MAX);
                Note::Leads { renews: *kind == Kind::Renew, term, numbers, in_time: *until > now }
            }
            Event::Lost { .. } => Note::Lost,
            _ => return None,
        })
    }

    fn take(&self, ghost: &mut Ghost, note: &Note, stepping: Stepping) -> (u32, Option<Violation>) {
        ghost.take(note, stepping)
    }

    fn check(&self, ghost: &Ghost, sight: &Sight) -> Option<Violation> {
        ghost.check(sight, self.members)
    }

    fn witness(&self, before: &Sight, after: &Sight) -> u32 {
        ghost::lapses(before, after)
    }

    fn pass(&self, ghost: &mut Ghost, host: usize, quanta: u8) {
        ghost.pass(host, quanta);
    }

    fn is_timed(&self, ghost: &Ghost, host: usize) -> bool {
        ghost.is_timed(host)
    }

    fn stamps(&self, ghost: &Ghost, tell: &mut dyn FnMut(usize, u8)) {
        ghost.stamps(tell);
    }

    fn hash(&self, ghost: &Ghost, rename: &Rename<'_>) -> u64 {
        ghost.hash(rename)
    }

    fn stamp(message: &mut Message) -> Option<&mut Stamp> {
        match message {
            Message::Ok { at, .. } => Some(at),
            _ => None,
        }
    }

    fn stamps_may_tie(&self) -> bool {
        self.subject.rules == Broken::NoComposite
    }

    /// Rules by which answers to a run that is over may count.
    fn keeps_dead(&self) -> bool {
        matches!(self.subject.rules, Broken::AbortedOk | Broken::ReconnectRace | Broken::LateOkMerged)
    }

    /// A release whose sender holds nothing here, and asks for nothing here: it frees nobody, now
    /// or later.
    fn is_moot<'m>(
        &self,
        message: &Message,
        receiver: Option<&Machine<Self>>,
        memory: &[<Machine<Self> as Protocol>::Record],
        now: LocalTime,
        mut others: impl Iterator<Item = &'m Message>,
    ) -> bool {
        use tenure_proto::strong::Cell;
        let (Message::Release { group, upto }, Some(receiver)) = (message, receiver) else { return false };
        let holder = upto.holder;
        let granted = receiver.grant(*group).is_some_and(|grant| grant.holder == holder);
        let keeps = |cell: &Cell| matches!(cell, Cell::Grant(_, Some(grant)) if grant.holder == holder);
        let silent = receiver.silent_until() > now;
        let asks = |message: &Message| match message {
            Message::Request(request) | Message::Extend { request, .. } => request.id.holder == holder,
            Message::Talk { talk: Talk::Relay { request, .. }, .. } => request.id.holder == holder,
            _ => false,
        };
        !granted && !silent && !memory.iter().any(keeps) && !others.any(asks)
    }

    fn config(&self, scope: &Scope<Command>) -> Result<<Machine<Self> as Protocol>::Config, String> {
        let members = (0..scope.members).map(node_id).collect();
        let quorums = Quorums::majority(members).map_err(|error| error.to_string())?;
        self.subject.config(&quorums, &scope.constants)
    }
}

/// The one group of all walks.
const GROUP: GroupId = GroupId(0);
