//! Deadlines as plain data: setting replaces, crashing forgets, and a checker sees every timer.

use std::collections::BTreeSet;

use crate::LocalTime;
use crate::time::LocalSpan;

/// A table of `N` timers, named by an enum that converts to its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timers<const N: usize>([Option<LocalTime>; N]);

impl<const N: usize> Default for Timers<N> {
    fn default() -> Self {
        Self([None; N])
    }
}

impl<const N: usize> Timers<N> {
    /// Sets a timer, instead of what it was set to.
    pub fn set(&mut self, timer: impl Into<usize>, at: LocalTime) {
        self.0[timer.into()] = Some(at);
    }

    /// Forgets a timer.
    pub fn clear(&mut self, timer: impl Into<usize>) {
        self.0[timer.into()] = None;
    }

    /// Whether a timer is set.
    pub fn is_set(&self, timer: impl Into<usize>) -> bool {
        self.0[timer.into()].is_some()
    }

    /// When a timer runs out, if it is set.
    pub fn at(&self, timer: impl Into<usize>) -> Option<LocalTime> {
        self.0[timer.into()]
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<LocalTime> {
        self.0.iter().flatten().min().copied()
    }

    /// See [`LocalTime::shifted`].
    pub(crate) fn shift(&mut self, by: LocalSpan) {
        for at in self.0.iter_mut().flatten() {
            *at = at.shifted(by);
        }
    }

    /// Whether a timer has run out; if so it is cleared.
    pub fn take_expired(&mut self, timer: impl Into<usize>, now: LocalTime) -> bool {
        self.0[timer.into()].take_if(|at| *at <= now).is_some()
    }
}

/// The earliest deadlines of many owners, the first of all at hand: 10^5 groups cost a wake-up no
/// more than one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agenda<K: Ord>(BTreeSet<(LocalTime, K)>);

impl<K: Ord + Copy> Default for Agenda<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord + Copy> Agenda<K> {
    /// The earliest deadline of all.
    pub fn next(&self) -> Option<LocalTime> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The owner of the earliest deadline, if that has come.
    pub fn due(&self, now: LocalTime) -> Option<K> {
        self.0.first().filter(|(at, _)| *at <= now).map(|(_, owner)| *owner)
    }

    /// See [`LocalTime::shifted`].
    pub(crate) fn shift(&mut self, by: LocalSpan) {
        self.0 = self.0.iter().map(|(at, owner)| (at.shifted(by), *owner)).collect();
    }

    /// Moves an owner's entry from one deadline to another.
    pub fn update(&mut self, owner: K, old: Option<LocalTime>, new: Option<LocalTime>) {
        if old == new {
            return;
        }
        if let Some(at) = old {
            self.0.remove(&(at, owner));
        }
        if let Some(at) = new {
            self.0.insert((at, owner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    #[test]
    fn setting_a_timer_replaces_it_and_taking_clears_it() {
        let mut timers = Timers::<2>::default();
        timers.set(1usize, at(10));
        timers.set(1usize, at(20));
        assert!(!timers.take_expired(1usize, at(19)));
        assert!(timers.take_expired(1usize, at(20)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn the_agenda_names_the_earliest_owner() {
        let mut agenda = Agenda::default();
        agenda.update('a', None, Some(at(30)));
        agenda.update('b', None, Some(at(20)));
        agenda.update('a', Some(at(30)), Some(at(10)));
        assert_eq!((agenda.next(), agenda.due(at(9)), agenda.due(at(10))), (Some(at(10)), None, Some('a')));
        agenda.update('a', Some(at(10)), None);
        assert_eq!(agenda.due(at(100)), Some('b'));
    }
}
