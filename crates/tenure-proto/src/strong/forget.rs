//! Forgets a group when nothing in it counts any more.
//!
//! Anybody with a key can make a member learn of a group, and a group costs memory. So a group that
//! nobody uses is forgotten when its process's driver asks for it. The loss must not matter:
//!
//! * **A, F.** The grant is over: C_q >= F, so it is in no quorum that anybody counts on (14), and
//!   step 5 treats it as if there were none.
//! * **The largest term.** It moves to the process: [`Process::largest_term`] is what every group
//!   begins with that is not in memory, and becomes at least the forgotten one. So no term up to
//!   that is granted again in this life. In the next life every group begins at the durable
//!   ceiling, which covers all that was granted. A larger maximum is always safe; it costs a
//!   candidate that knows a smaller one a round trip.
//! * **Tombstones** are over, or a late request would be granted that its sender has given back.
//! * **A pledge** is over, or this process could give back before then what it pledged to keep.
//! * **The candidate** neither leads nor asks, nor owes anything, and no timer is set. Its other
//!   state (hints, back-off, who renewed last) is advice.
//!
//! A grantor that is silent forgets nothing more: it does not know what it has promised.

use crate::{Context, GroupId, LocalTime};

use super::message::Cell;
use super::rules::Rules;
use super::{Group, Nerio, Process};

impl Group {
    /// Whether nothing of this group counts any more at `now`.
    fn may_be_forgotten<R: Rules>(&self, process: &Process<R>, now: LocalTime) -> bool {
        let promised = (self.grantor.grant.as_ref(), self.grantor.latest_tomb());
        let pledged = self.candidate.verifying.pledged();
        let rules = process.rules();
        !process.is_silent(now) && self.candidate.is_idle() && rules.may_forget(promised, pledged, now)
    }
}

impl<R: Rules> Nerio<R> {
    /// Whether anything of this group is in memory.
    pub fn knows(&self, group: GroupId) -> bool {
        self.groups.contains_key(&group)
    }

    /// The groups that have anything in memory.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.keys().copied()
    }

    /// Whether [`Command::Forget`](super::Command::Forget) would drop this group at `now`; `true`
    /// also for one that is not in memory.
    pub fn may_forget(&self, group: GroupId, now: LocalTime) -> bool {
        self.groups.get(&group).is_none_or(|known| known.may_be_forgotten(&self.process, now))
    }

    /// When the last tombstone of a group ends.
    pub fn latest_tomb_of(&self, group: GroupId) -> Option<LocalTime> {
        self.groups.get(&group)?.grantor.latest_tomb()
    }

    pub(super) fn on_forget(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        if !self.may_forget(group, cx.now()) {
            return;
        }
        let Some(known) = self.groups.remove(&group) else { return };
        self.agenda.update(Some(group), known.candidate.next_deadline(), None);
        let process = &mut self.process;
        let rules = process.rules();
        process.largest_term = rules.largest_term_after(process.largest_term, known.grantor.max_term);
        if known.grantor.grant.is_some() {
            cx.remember(Cell::Grant(group, None)); // It is over: its place in memory is free.
        }
    }
}
