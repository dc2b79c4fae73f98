//! A machine that keeps nothing on a disk: eventual and local groups have one each beside the
//! strong machine, and a log one for its election.
//!
//! Promises of an earlier life are forgotten, and how the machine deals with that is up to how it
//! is started.

use std::collections::VecDeque;

use tenure_proto::{Boot, Context, Effect, Input, LocalTime, NodeId, Protocol, Ticket};

use super::step::Os;

/// A machine, and what a driver needs for it.
pub(crate) struct Hosted<P: Protocol> {
    me: NodeId,
    machine: P,
    tickets: Ticket,
    effects: Vec<Effect<P>>,
}

/// The outcome of a step, in order.
pub(crate) enum Outcome<P: Protocol> {
    /// To be sent.
    Say(NodeId, P::Message),
    /// To be shown.
    Show(P::Event),
}

impl<P: Protocol> Hosted<P> {
    /// Starts it, as one that may have promised anything, or as one that has not.
    pub(crate) fn start(
        config: &P::Config,
        me: NodeId,
        boot: Boot<P::Record>,
        now: LocalTime,
    ) -> (Self, Vec<Outcome<P>>) {
        let (mut tickets, mut effects) = (Ticket(0), Vec::new());
        let machine = P::start(config, me, boot, &mut Context::new(now, &mut Os, &mut tickets, &mut effects));
        let mut hosted = Self { me, machine, tickets, effects };
        let outcome = hosted.drain(now);
        (hosted, outcome)
    }

    /// One input, and what it says to itself about it.
    pub(crate) fn step(&mut self, input: Input<P>, now: LocalTime) -> Vec<Outcome<P>> {
        self.handle(input, now);
        self.drain(now)
    }

    /// When it wants to look at the clock.
    pub(crate) fn next_deadline(&self) -> Option<LocalTime> {
        self.machine.next_deadline()
    }

    /// The machine itself, to be asked.
    pub(super) fn machine(&self) -> &P {
        &self.machine
    }

    fn handle(&mut self, input: Input<P>, now: LocalTime) {
        let mut os = Os;
        self.machine.handle(input, &mut Context::new(now, &mut os, &mut self.tickets, &mut self.effects));
    }

    fn drain(&mut self, now: LocalTime) -> Vec<Outcome<P>> {
        let (mut outcome, mut own) = (Vec::new(), VecDeque::new());
        loop {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Persist { .. } | Effect::Remember(_) => {} // Nothing rests on it: see above.
                    Effect::Publish(event) => outcome.push(Outcome::Show(event)),
                    Effect::Send { to, message, .. } if to == self.me => own.push_back(message),
                    Effect::Send { to, message, .. } => outcome.push(Outcome::Say(to, message)),
                }
            }
            let Some(message) = own.pop_front() else { return outcome };
            self.handle(Input::Message { from: self.me, received: now, message }, now);
        }
    }
}
