//! The part that the three elections have in common.
//!
//! All of them write down the states of others, answer reads, and count the processes that have
//! written down their own. All are silent while they recover, and begin when they know what they
//! must. That is here. Rounds, reads and timers differ from one election to the next: they are its
//! [`Part`].

use crate::{Context, Input, LocalTime, NodeId, Protocol};

use super::Command;
use super::register::{Acked, Register};
use super::rules::Rules;
use super::state::{Event, Message, Record, State, Status};

/// The part of an election that is its own. It is asked only when it may speak, but for
/// [`Part::refreshed`].
pub(super) trait Part:
    Protocol<Command = Command, Message = Message, Record = Record, Event = Event>
{
    /// The rules by which it goes.
    type Rules: Rules;

    /// The states that it has written, and those that others have.
    fn register(&self) -> &Register<Self::Rules>;

    /// The same, to change it.
    fn register_mut(&mut self) -> &mut Register<Self::Rules>;

    /// It knows what it must know, and may speak.
    fn begin(&mut self, cx: &mut Context<'_, Self>);

    /// Enough others have written its state down.
    fn succeed(&mut self, cx: &mut Context<'_, Self>);

    /// Its epoch is good for nothing, or its user wants another to lead: it takes a higher one, and
    /// does not lead by the old one (A10).
    fn give_up(&mut self, cx: &mut Context<'_, Self>);

    /// Another says of itself how it stands.
    fn refreshed(&mut self, from: NodeId, refresh: (State, u64), cx: &mut Context<'_, Self>) {
        self.register_mut().refreshed(from, refresh, cx);
    }

    /// Another says what it knows of everybody.
    fn told(&mut self, from: NodeId, status: Status<'_>, cx: &mut Context<'_, Self>);

    /// Another asks for an epoch, or answers such a question.
    fn asked(&mut self, _from: NodeId, _message: Message, _cx: &mut Context<'_, Self>) {}

    /// A timer may have run out.
    fn look_at_timers(&mut self, cx: &mut Context<'_, Self>);

    /// When the first of them does.
    fn first_timer(&self) -> Option<LocalTime>;

    /// A step is done: what has changed is told.
    fn done(&mut self, _cx: &mut Context<'_, Self>) {}
}

/// One step of an election.
pub(super) fn handle<P: Part>(part: &mut P, input: Input<P>, cx: &mut Context<'_, P>) {
    let silent = part.register().is_silent();
    match input {
        Input::Message { from, message, .. } => self::message(part, from, message, cx),
        Input::Deadline if silent => {
            part.register_mut().recover(cx);
            if !part.register().is_silent() {
                part.begin(cx);
            }
        }
        Input::Deadline => part.look_at_timers(cx),
        Input::Command(Command::Abdicate) if silent => {}
        Input::Command(Command::Abdicate) => part.give_up(cx),
    }
    if !silent {
        part.done(cx);
    }
}

fn message<P: Part>(part: &mut P, from: NodeId, message: Message, cx: &mut Context<'_, P>) {
    if !message.can_be_from(from, part.register().config.access().members()) {
        return;
    }
    let silent = part.register().is_silent();
    match message {
        Message::Refresh { state, round } => part.refreshed(from, (state, round), cx),
        Message::Ack { round, ahead } => match part.register_mut().acked(from, (round, ahead), cx) {
            Acked::Succeeded => part.succeed(cx),
            Acked::Outrun => part.give_up(cx),
            Acked::Nothing => {}
        },
        Message::Collect { read } => part.register().collected(from, read, cx),
        Message::Status { read, registry, recovers } if silent => {
            let status = Status { read, registry: &registry, recovers };
            if part.register_mut().reads_again(from, status, cx) {
                part.begin(cx);
            }
        }
        Message::Status { read, registry, recovers } => {
            // First: a read must not be judged by an epoch that was given up in another life.
            if part.register_mut().learn(&registry, cx) {
                part.give_up(cx);
            }
            part.told(from, Status { read, registry: &registry, recovers }, cx);
        }
        Message::GetEpoch { .. } | Message::RetEpoch { .. } if !silent => part.asked(from, message, cx),
        Message::GetEpoch { .. } | Message::RetEpoch { .. } => {}
        Message::Alive { .. } | Message::Accuse { .. } => {}
    }
}

/// When an election wants to be woken.
pub(super) fn next_deadline<P: Part>(part: &P) -> Option<LocalTime> {
    let register = part.register();
    if register.is_silent() { register.recovery_deadline() } else { part.first_timer() }
}
