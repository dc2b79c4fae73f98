//! A global state: a few numbers, cheap to copy.

use super::scope::Budget;

/// The most hosts that a walk can have.
pub const MOST_HOSTS: usize = 6;

/// The most different messages that can be on their way at once.
pub(super) const MOST_FLIGHTS: usize = 48;

/// All hosts, messages and ghosts, and what may still happen.
#[derive(Clone, Copy, Debug)]
pub struct State<G> {
    /// The number of each host's local state.
    pub(super) hosts: [u32; MOST_HOSTS],
    flights: [u16; MOST_FLIGHTS],
    len: u8,
    /// The rest of each budget.
    pub(super) budget: [u8; Budget::COUNT],
    /// The memory of the judge.
    pub(super) ghost: G,
}

impl<G> State<G> {
    pub(super) fn new(budget: [u8; Budget::COUNT], ghost: G) -> Self {
        Self { hosts: [0; MOST_HOSTS], flights: [0; MOST_FLIGHTS], len: 0, budget, ghost }
    }

    /// The messages on their way: a set, for the order in which they left means nothing.
    pub(super) fn flights(&self) -> &[u16] {
        &self.flights[..usize::from(self.len)]
    }

    /// Adds a message; false if there is no room.
    pub(super) fn send(&mut self, flight: u16) -> bool {
        let Err(at) = self.flights().binary_search(&flight) else { return true };
        let len = usize::from(self.len);
        if len == MOST_FLIGHTS {
            return false;
        }
        self.flights.copy_within(at..len, at + 1);
        self.flights[at] = flight;
        self.len += 1;
        true
    }

    pub(super) fn remove(&mut self, flight: u16) {
        if let Ok(at) = self.flights().binary_search(&flight) {
            self.flights.copy_within(at + 1..usize::from(self.len), at);
            self.len -= 1;
        }
    }

    /// Whether there is something left, and takes one of it.
    pub(super) fn pay(&mut self, budget: Budget) -> bool {
        let left = &mut self.budget[budget as usize];
        let can = *left > 0;
        *left -= u8::from(can);
        can
    }

    pub(super) fn left(&self, budget: Budget) -> u8 {
        self.budget[budget as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_on_their_way_are_a_sorted_set() {
        let mut state = State::new([0; Budget::COUNT], ());
        for flight in [5, 1, 3, 5, 1] {
            assert!(state.send(flight));
        }
        assert_eq!(state.flights(), [1, 3, 5]);
        state.remove(3);
        state.remove(4);
        assert_eq!(state.flights(), [1, 5]);
    }

    #[test]
    fn a_budget_is_paid_until_nothing_is_left() {
        let mut state = State::new([0; Budget::COUNT], ());
        state.budget[Budget::Cuts as usize] = 1;
        assert!(state.pay(Budget::Cuts) && !state.pay(Budget::Cuts));
    }
}
