//! Priorities: the process that should lead if all else is equal.
//!
//! ```text
//!   leader, priority 1   renews, and says its priority ──▶ everybody
//!   n0, priority 0       ◀── I would rather ──  with each renewal, as long as it lives
//!   leader               has heard that for `hold` without a break: hands over (see `transfer`)
//! ```
//!
//! A lease is never pre-empted: the preferred process asks, and the leader decides. Nothing is said
//! where all have the same priority, so that costs nothing. A process that comes and goes does not
//! make leadership come and go with it: it must have been heard for the whole hold time in one
//! life, and each hand-over to it, whatever came of it, doubles the time for the next one, until
//! long after.
//!
//! In an election a priority makes a candidate wait until those of a better one have had their
//! turns. The leader knows priorities of members alone: a process that is no member hears no
//! renewals.

use crate::LocalTime;
use crate::NodeId;
use crate::time::LocalSpan;

use super::candidate::{Around, Candidate};
use super::message::{Event, Holder, Talk};
use super::rules::Rules;

/// The hold time grows to eight times its length at most.
const MOST_DOUBLINGS: u32 = 3;

/// After this many of its hold times without a hand-over to it, a process is taken for steady
/// again.
const FORGIVEN: u32 = 8;

/// In an election priorities beyond this one wait no longer.
const MOST_TURNS: u8 = 8;

/// Somebody who would rather lead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Suitor {
    holder: Holder,
    priority: u8,
    /// Since when it is heard without a break.
    since: LocalTime,
    /// When it was last heard.
    heard: LocalTime,
    /// When leadership was last handed over to it, and how often lately.
    tried: Option<LocalTime>,
    tries: u32,
}

impl Suitor {
    /// How long it must be heard.
    fn hold(&self, hold: LocalSpan) -> LocalSpan {
        hold.times(1 << self.tries.min(MOST_DOUBLINGS))
    }

    /// It is heard in this life. A break, or another life, and time counts anew.
    fn hear(&mut self, holder: Holder, priority: u8, longest_break: LocalSpan, now: LocalTime) {
        if self.holder != holder || now > self.heard.after(longest_break) {
            self.since = now;
        }
        (self.holder, self.priority, self.heard) = (holder, priority, now);
    }

    fn is_ripe(&self, hold: LocalSpan, longest_break: LocalSpan, now: LocalTime) -> bool {
        let hold = self.hold(hold);
        let rested = self.tried.is_none_or(|tried| now >= tried.after(hold));
        rested && now >= self.since.after(hold) && now <= self.heard.after(longest_break)
    }

    /// Leadership is handed over to it.
    fn try_it(&mut self, hold: LocalSpan, now: LocalTime) {
        let steady = self.tried.is_some_and(|tried| now >= tried.after(self.hold(hold).times(FORGIVEN)));
        self.tries = if steady { 1 } else { self.tries.saturating_add(1) };
        self.tried = Some(now);
    }
}

/// A candidate's knowledge of priorities: zero is the first choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Preference {
    pub(super) own: u8,
    suitors: Vec<Suitor>,
}

impl Preference {
    /// How many steps a candidate leaves to those of better priority, of so many members.
    pub(super) fn steps(&self, members: usize) -> u32 {
        u32::from(self.own.min(MOST_TURNS)) * u32::try_from(members).unwrap_or(u32::MAX)
    }

    /// A process would rather lead. Says whether leadership should now be handed over to it.
    fn hear(
        &mut self,
        (holder, priority): (Holder, u8),
        (hold, longest_break): (LocalSpan, LocalSpan),
        now: LocalTime,
    ) -> bool {
        let node = holder.node;
        match self.suitors.iter_mut().find(|suitor| suitor.holder.node == node) {
            Some(suitor) => suitor.hear(holder, priority, longest_break, now),
            None => {
                self.suitors.push(Suitor { holder, priority, since: now, heard: now, tried: None, tries: 0 });
            }
        }
        let ripe = self.suitors.iter_mut().filter(|suitor| suitor.is_ripe(hold, longest_break, now));
        let best = ripe.min_by_key(|suitor| (suitor.priority, suitor.holder.node));
        let Some(best) = best.filter(|best| best.holder.node == node) else { return false };
        best.try_it(hold, now);
        true
    }
}

impl Candidate {
    /// A leader has renewed: a process that is preferred to it says so.
    pub(super) fn ask_for_preference<R: Rules>(
        &self,
        leader: Holder,
        priority: u8,
        around: &mut Around<'_, '_, R>,
    ) {
        if self.is_waiting() && self.preference.own < priority {
            let talk = Talk::Prefer { holder: around.process.holder, priority: self.preference.own };
            around.say(leader.node, talk);
        }
    }

    /// Another would rather lead: hands over once that one has proved steady.
    pub(super) fn on_prefer<R: Rules>(
        &mut self,
        from: NodeId,
        (holder, priority): (Holder, u8),
        around: &mut Around<'_, '_, R>,
    ) {
        let now = around.cx.now();
        let Some(hold) = around.process.config.settings().hold else { return };
        if self.leads_until(now).is_none() || holder.node != from || priority >= self.preference.own {
            return;
        }
        // It speaks with each renewal; one may be lost.
        let longest_break = around.process.charter().body.longest_lease.nominal();
        if self.preference.hear((holder, priority), (hold.nominal(), longest_break), now) {
            around.cx.publish(Event::Yields { group: around.group, to: from });
            self.transfer(from, around);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incarnation;

    const HOLD: LocalSpan = LocalSpan::from_nanos(1000);
    const BREAK: LocalSpan = LocalSpan::from_nanos(200);

    fn holder(node: u64, life: u128) -> Holder {
        Holder { node: NodeId(node), incarnation: Incarnation(life) }
    }

    /// Hears a node every 100 from `from` to `to`; when leadership is to go to it.
    fn hear(preference: &mut Preference, who: (Holder, u8), from: u64, to: u64) -> Vec<u64> {
        let times = (from..=to).step_by(100);
        times.filter(|now| preference.hear(who, (HOLD, BREAK), LocalTime::from_nanos(*now))).collect()
    }

    #[test]
    fn whoever_is_heard_for_the_hold_time_is_handed_the_leadership() {
        let mut preference = Preference::default();
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 0, 1500), [1000]);
    }

    #[test]
    fn a_break_or_another_life_begins_the_hold_time_anew() {
        let mut preference = Preference::default();
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 0, 900), []);
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 1200, 2100), [], "a break");
        assert_eq!(hear(&mut preference, (holder(0, 2), 0), 2200, 3100), [], "another life");
        assert_eq!(hear(&mut preference, (holder(0, 2), 0), 3200, 3300), [3200]);
    }

    #[test]
    fn each_hand_over_doubles_the_time_until_the_next_to_the_same() {
        let mut preference = Preference::default();
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 0, 20_000), [1000, 3000, 7000, 15_000]);
        assert_eq!(
            hear(&mut preference, (holder(0, 1), 0), 20_100, 31_000),
            [23_000, 31_000],
            "to eight times"
        );
    }

    #[test]
    fn long_after_a_hand_over_the_hold_time_is_as_at_first() {
        let mut preference = Preference::default();
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 0, 1000), [1000]);
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 20_000, 22_000), [22_000]);
        assert_eq!(hear(&mut preference, (holder(0, 1), 0), 22_100, 24_100), [24_000], "not four times");
    }

    #[test]
    fn of_several_that_are_steady_the_best_is_chosen_and_one_that_comes_and_goes_holds_up_nobody() {
        let mut preference = Preference::default();
        for now in (0..5000).step_by(100) {
            let at = LocalTime::from_nanos(now);
            let second = preference.hear((holder(1, 1), 1), (HOLD, BREAK), at);
            assert_eq!(second, now == 1000, "at {now}");
            if now > 1500 {
                return;
            }
            let flapping =
                now % 600 < 300 && preference.hear((holder(0, u128::from(now / 600)), 0), (HOLD, BREAK), at);
            assert!(!flapping, "at {now}");
        }
    }

    #[test]
    fn the_better_of_two_steady_ones_goes_first() {
        let mut preference = Preference::default();
        let mut chosen = Vec::new();
        for now in (0..=1500).step_by(100) {
            for (node, priority) in [(1, 1), (0, 0)] {
                let at = LocalTime::from_nanos(now);
                if preference.hear((holder(node, 1), priority), (HOLD, BREAK), at) {
                    chosen.push((now, node));
                }
            }
        }
        assert_eq!(chosen.first(), Some(&(1000, 0)), "though n1 speaks first");
    }
}
