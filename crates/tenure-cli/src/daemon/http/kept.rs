//! Groups that were asked about lately.
//!
//! A group stays for a while after it was last asked about, so that the node goes on observing it.
//! Anybody may ask, for any name: so there are [`MOST`] at most, the
//! one that was not asked about for longest makes room, and all of them go by themselves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure::GroupName;

/// For how long a group stays after it was last asked about.
const STAYS: Duration = Duration::from_secs(60);

/// For how long a group that somebody asked about is listed although nobody leads it.
const WANTED: Duration = Duration::from_secs(3600);

/// How often to look whether any may go.
pub(super) const SWEEP: Duration = Duration::from_secs(10);

/// The most groups that are kept.
pub(super) const MOST: usize = 1_000;

/// See the module. `W` keeps what the node was told of a group from being forgotten.
#[derive(Debug)]
pub(super) struct KeptGroups<W> {
    groups: BTreeMap<GroupName, (Instant, W)>,
    /// Those that somebody has asked about by name, and when. At most [`MOST`].
    questions: BTreeMap<GroupName, Instant>,
    /// Somebody sweeps, until nothing is left.
    swept: bool,
}

impl<W> Default for KeptGroups<W> {
    fn default() -> Self {
        Self { groups: BTreeMap::new(), questions: BTreeMap::new(), swept: false }
    }
}

impl<W> KeptGroups<W> {
    /// A group is asked about. Says whether it is here.
    pub(super) fn asked(&mut self, group: &GroupName, now: Instant) -> bool {
        self.groups.get_mut(group).map(|(asked, _)| *asked = now).is_some()
    }

    /// Keeps a group. Says whether a sweeper must be started.
    pub(super) fn keep(&mut self, group: GroupName, watch: W, now: Instant) -> bool {
        if self.groups.len() >= MOST {
            let oldest = self.groups.iter().min_by_key(|(_, (asked, _))| *asked);
            if let Some(oldest) = oldest.map(|(group, _)| group.clone()) {
                self.groups.remove(&oldest);
            }
        }
        self.groups.insert(group, (now, watch));
        !std::mem::replace(&mut self.swept, true)
    }

    /// Lets go of a group at once.
    pub(super) fn let_go(&mut self, group: &GroupName) {
        self.groups.remove(group);
    }

    /// Somebody asks about this very group, not for a list.
    pub(super) fn note_question(&mut self, group: &GroupName, now: Instant) {
        if self.questions.len() >= MOST && !self.questions.contains_key(group) {
            self.questions.retain(|_, asked| now.duration_since(*asked) < WANTED);
            let oldest = self.questions.iter().min_by_key(|(_, asked)| **asked).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest.filter(|_| self.questions.len() >= MOST) {
                self.questions.remove(&oldest);
            }
        }
        self.questions.insert(group.clone(), now);
    }

    /// Whether somebody has done so lately.
    pub(super) fn was_asked_about(&self, group: &GroupName, now: Instant) -> bool {
        self.questions.get(group).is_some_and(|asked| now.duration_since(*asked) < WANTED)
    }

    /// Lets go of those that were not asked about for a while. Says whether nothing is left: the
    /// sweeper ends then.
    pub(super) fn sweep(&mut self, now: Instant) -> bool {
        self.groups.retain(|_, (asked, _)| now.duration_since(*asked) < STAYS);
        self.swept = !self.groups.is_empty();
        !self.swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::clock;

    fn group(number: usize) -> GroupName {
        GroupName::new(&format!("g{number}")).unwrap()
    }

    #[test]
    fn a_group_goes_by_itself_and_the_sweeper_with_the_last() {
        let (mut kept, start) = (KeptGroups::default(), clock());
        assert!(kept.keep(group(1), (), start), "a sweeper is needed");
        assert!(!kept.keep(group(2), (), start), "there is one");
        assert!(kept.asked(&group(1), start + STAYS / 2) && !kept.asked(&group(3), start));
        assert!(!kept.sweep(start + STAYS));
        assert!(kept.asked(&group(1), start + STAYS / 2) && !kept.asked(&group(2), start));
        assert!(kept.sweep(start + STAYS * 2), "nothing is left");
        assert!(kept.keep(group(1), (), start), "the next needs a sweeper again");
    }

    #[test]
    fn a_group_that_was_asked_about_is_wanted_for_an_hour() {
        let (mut kept, start) = (KeptGroups::<()>::default(), clock());
        kept.note_question(&group(1), start);
        assert!(
            kept.was_asked_about(&group(1), start + WANTED / 2) && !kept.was_asked_about(&group(2), start)
        );
        assert!(!kept.was_asked_about(&group(1), start + WANTED));
        for number in 0..2 * MOST {
            kept.note_question(&group(number), start + Duration::from_millis(1));
        }
        assert_eq!(kept.questions.len(), MOST);
    }

    #[test]
    fn one_that_is_asked_about_all_the_time_stays_however_many_others_are_asked_about() {
        let (mut kept, start) = (KeptGroups::default(), clock());
        kept.keep(group(0), (), start);
        for number in 1..3 * MOST {
            let now = start + Duration::from_millis(u64::try_from(number).unwrap());
            assert!(number % 500 != 0 || kept.asked(&group(0), now), "{number}");
            kept.keep(group(number), (), now);
        }
        assert_eq!(kept.groups.len(), MOST);
    }
}
