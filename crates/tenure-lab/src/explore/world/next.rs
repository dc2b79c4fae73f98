//! All that can happen next: hosts that take steps, messages that arrive, time that passes.

use tenure_proto::explore::Explore;

use super::super::scope::{BASE, Budget, Clocks};
use super::super::state::{MOST_HOSTS, State};
use super::super::{Machine, Sight, Stepping, Walk};
use super::{Act, Flight, Input, Known, Successor, World};

impl<W: Walk> World<W>
where
    Machine<W>: Explore,
{
    /// All that can happen next.
    pub fn successors(&mut self, state: &State<W::Ghost>, out: &mut Vec<Successor<W::Ghost>>) {
        out.clear();
        for at in 0..state.flights().len() {
            let flight = state.flights()[at];
            let to = self.flights[usize::from(flight)].to;
            if !self.is_up(state, to) {
                continue;
            }
            self.take(state, to, Input::Deliver(flight), false, out);
            let mut paid = *state;
            if paid.pay(Budget::Duplicates) {
                self.take(&paid, to, Input::Deliver(flight), true, out);
            }
        }
        for host in 0..u8::try_from(self.scope.hosts).unwrap_or(u8::MAX) {
            self.act_alone(state, host, out);
            self.start_again(state, host, out);
        }
        self.pass(state, out);
    }

    fn at(&self, state: &State<W::Ghost>, host: u8) -> &Known<W> {
        &self.known[state.hosts[usize::from(host)] as usize]
    }

    fn is_up(&self, state: &State<W::Ghost>, host: u8) -> bool {
        self.at(state, host).up
    }

    /// The steps of a host without a message.
    fn act_alone(&mut self, state: &State<W::Ghost>, host: u8, out: &mut Vec<Successor<W::Ghost>>) {
        let &Known { up, due, leads, pending, .. } = self.at(state, host);
        if !up {
            return;
        }
        if due {
            self.take(state, host, Input::Wake, false, out);
        }
        if pending > 0 {
            self.take(state, host, Input::Write, false, out);
        }
        for at in 0..self.scope.wishes.len() {
            let wish = &self.scope.wishes[at];
            let wants = wish.host == usize::from(host) && wish.leads.is_none_or(|wants| wants == leads);
            let mut paid = *state;
            if wants && paid.pay(wish.budget) {
                let wish = u8::try_from(at).unwrap_or(u8::MAX);
                self.take(&paid, host, Input::Tell(wish), false, out);
            }
        }
    }

    /// A host ends and starts again. One that was killed has paid for its restart already.
    fn start_again(&mut self, state: &State<W::Ghost>, host: u8, out: &mut Vec<Successor<W::Ghost>>) {
        let &Known { up, pending, .. } = self.at(state, host);
        for (budget, reboot) in [(Budget::Restarts, false), (Budget::Reboots, true)] {
            let mut paid = *state;
            if (up || reboot) && !paid.pay(budget) {
                continue;
            }
            for durable in 0..=pending {
                self.take(&paid, host, Input::Start { reboot, durable }, false, out);
            }
        }
    }

    /// Time passes. Each clock on which anything depends is slow or fast.
    fn pass(&mut self, state: &State<W::Ghost>, out: &mut Vec<Successor<W::Ghost>>) {
        let hosts = self.scope.hosts;
        let is_timed = |host: usize| {
            self.known[state.hosts[host] as usize].timed || self.walk.is_timed(&state.ghost, host)
        };
        let timed = (0..hosts).filter(|host| is_timed(*host)).fold(0u8, |bits, host| bits | 1 << host);
        if timed == 0 {
            return; // Time goes on, and nothing depends on it.
        }
        let worst = (1u8 << self.scope.members) - 1;
        let mut fast = 0u8;
        loop {
            if self.scope.clocks == Clocks::Free || fast == worst & timed {
                self.pass_with(state, timed, fast, out);
            }
            fast = fast.wrapping_sub(timed) & timed; // The next subset.
            if fast == 0 {
                break;
            }
        }
    }

    fn pass_with(
        &mut self,
        state: &State<W::Ghost>,
        timed: u8,
        fast: u8,
        out: &mut Vec<Successor<W::Ghost>>,
    ) {
        let mut next = *state;
        for host in (0..self.scope.hosts).filter(|host| timed >> host & 1 == 1) {
            let by = if fast >> host & 1 == 1 { self.scope.grain.fast } else { self.scope.grain.slow };
            let outcome = self.step(state.hosts[host], Input::Pass(by), 0);
            next.hosts[host] = self.outcomes[outcome as usize].host;
            self.walk.pass(&mut next.ghost, host, by);
        }
        let (before, after) = (self.sight(state), self.sight(&next));
        let broken = self.walk.check(&next.ghost, &after).map(Box::new);
        let seen = self.walk.witness(&before, &after);
        out.push(Successor { act: Act::Pass(fast), state: next, broken, seen });
    }

    fn take(
        &mut self,
        state: &State<W::Ghost>,
        host: u8,
        input: Input,
        again: bool,
        out: &mut Vec<Successor<W::Ghost>>,
    ) {
        let before = state.hosts[usize::from(host)];
        let whole = self.step(before, input, 0);
        self.land(state, (host, input, again, 0), whole, out);
        let effects = self.outcomes[whole as usize].effects;
        let mut paid = *state;
        if again || effects < 2 || !paid.pay(Budget::Cuts) {
            return;
        }
        for cut in 1..effects {
            let part = self.step(before, input, cut);
            self.land(&paid, (host, input, again, cut), part, out);
        }
    }

    /// The state after a step, as the judge sees it.
    fn land(
        &mut self,
        state: &State<W::Ghost>,
        (host, input, again, cut): (u8, Input, bool, u8),
        outcome: u32,
        out: &mut Vec<Successor<W::Ghost>>,
    ) {
        let mut next = *state;
        if let (Input::Deliver(flight), false) = (input, again) {
            next.remove(flight);
        }
        let led = self.at(state, host).leads;
        let index = usize::from(host);
        let mut room = true;
        let outcome = &self.outcomes[outcome as usize];
        next.hosts[index] = outcome.host;
        for flight in &outcome.sends {
            room &= next.send(*flight);
        }
        let stepping = Stepping { host: index, led, life: self.known[outcome.host as usize].life };
        let (mut seen, mut broken) = (0, None);
        for note in &outcome.notes {
            let (bits, wrong) = self.walk.take(&mut next.ghost, note, stepping);
            seen |= bits;
            broken = broken.or(wrong);
        }
        if !room {
            self.fails("there are too many messages on their way at once");
        }
        self.drop_dead(&mut next);
        let (before, after) = (self.sight(state), self.sight(&next));
        seen |= self.walk.witness(&before, &after);
        let broken = broken.or_else(|| self.walk.check(&next.ghost, &after)).map(Box::new);
        out.push(Successor { act: Act::Step { host, input, again, cut }, state: next, broken, seen });
    }

    fn sight(&self, state: &State<W::Ghost>) -> Sight {
        let mut sight = Sight { hosts: self.scope.hosts, leads: [false; MOST_HOSTS], lives: [0; MOST_HOSTS] };
        for host in 0..self.scope.hosts {
            let known = &self.known[state.hosts[host] as usize];
            (sight.leads[host], sight.lives[host]) = (known.leads, known.life);
        }
        sight
    }

    /// Forgets messages that have no effect any more: to deliver them or not is the same.
    fn drop_dead(&self, state: &mut State<W::Ghost>) {
        if self.walk.keeps_dead() {
            return;
        }
        let mut at = 0;
        while let Some(flight) = state.flights().get(at).copied() {
            if self.is_dead(flight, state) {
                state.remove(flight);
            } else {
                at += 1;
            }
        }
    }

    fn is_dead(&self, flight: u16, state: &State<W::Ghost>) -> bool {
        let Flight { to, message, .. } = &self.flights[usize::from(flight)];
        let receiver = &self.at(state, *to).host;
        if receiver.machine.as_ref().is_some_and(|machine| machine.is_dead(message)) {
            return true;
        }
        if self.scope.keeps_all || state.left(Budget::Duplicates) > 0 {
            return false;
        }
        let others = state.flights().iter().map(|other| &self.flights[usize::from(*other)]);
        let others = others.filter(|other| other.to == *to);
        let others = others.map(|other| &other.message);
        let (machine, memory) = (receiver.machine.as_ref(), &receiver.memory);
        self.walk.is_moot(message, machine, memory, BASE, others)
    }
}
