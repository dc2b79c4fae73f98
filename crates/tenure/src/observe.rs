//! The watch of a group: its leader, the lack of one, and the edicts that leaders proclaim. It
//! never goes back.
//!
//! Members report what they know, and pass on what leaders say. Messages overtake each other,
//! members restart and forget, and an observer hears of one thing from several. So it goes by
//! numbers, not by arrival: terms rise with each leader, and the sequence numbers of edicts with
//! each act. The observer drops every report that is not larger than the newest it has seen, from
//! any sender.
//!
//! **All of it is about the past.** Between a leader's last word and its arrival anything may have
//! happened. To be certain of a leader for a while, [verify](crate::Node::verify).
//!
//! **Nobody** means: so many members have said, since the last leader was heard of, that they
//! support nobody, that no quorum could have been left at that time. **Weak** means that too few
//! members can hear each other to elect anybody.

use std::collections::BTreeMap;

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::{Term, Token};
use tenure_proto::{LocalTime, NodeId};
use tokio::sync::watch;

use crate::driver::{Mailbox, Request};
use crate::name::{GroupName, NodeName};
use crate::wire::{GroupState, Proclaim};

/// The leadership of a group, as far as an observer knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Leadership {
    /// No member has reported yet.
    #[default]
    Unknown,
    /// This process led when it was last heard of.
    Leader {
        /// Its name; `None` if nobody has told it yet.
        name: Option<NodeName>,
        /// The leader's term.
        term: Term,
    },
    /// Nobody led any more, at some time after this term.
    Nobody {
        /// The last term that was heard of.
        after: Term,
    },
    /// Too few members hear each other to elect anybody. This one speaks for those that do, without
    /// any authority.
    Weak {
        /// Its name, if known.
        name: Option<NodeName>,
    },
}

/// An edict that a leader has proclaimed, with its body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proclaimed {
    /// The token, which orders it among all edicts of the group.
    pub token: Token,
    /// The bytes that were given to [`Tenure::proclaim`](crate::Tenure::proclaim).
    pub body: Vec<u8>,
}

/// One piece of news of a [`Watch`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    /// The leadership has changed.
    Leadership(Leadership),
    /// A leader has proclaimed an edict.
    Edict(Proclaimed),
}

/// The newest state of a group that an observer knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scene {
    /// The leadership.
    pub leadership: Leadership,
    /// The newest edict that was proclaimed.
    pub edict: Option<Proclaimed>,
}

/// A watch of a group: see [`Node::observe`](crate::Node::observe).
///
/// It keeps nothing but the newest state: a slow caller misses the states in between. Dropping it
/// ends the watch.
#[derive(Debug)]
pub struct Watch {
    pub(crate) group: GroupName,
    pub(crate) scene: watch::Receiver<Scene>,
    pub(crate) told: Scene,
    pub(crate) mailbox: Mailbox,
}

impl Watch {
    /// Waits for the next news of the group; returns `None` when the node has stopped.
    ///
    /// The future may be dropped and the call repeated: no news is lost.
    pub async fn next(&mut self) -> Option<Sight> {
        loop {
            if let Some(sight) = self.news() {
                return Some(sight);
            }
            self.scene.changed().await.ok()?;
        }
    }

    /// Returns the newest state of the group without waiting.
    pub fn now(&self) -> Scene {
        self.scene.borrow().clone()
    }

    /// News of the leadership come first, then those of edicts.
    fn news(&mut self) -> Option<Sight> {
        let scene = self.scene.borrow_and_update().clone();
        if scene.leadership != self.told.leadership {
            self.told.leadership = scene.leadership.clone();
            return Some(Sight::Leadership(scene.leadership));
        }
        let edict = scene.edict.filter(|edict| Some(edict) != self.told.edict.as_ref())?;
        self.told.edict = Some(edict.clone());
        Some(Sight::Edict(edict))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.mailbox.send(Request::Unobserve { group: self.group.id() });
    }
}

/// How long a report counts, in nanoseconds. Members repeat theirs each second.
const FRESH: u64 = 3_000_000_000;

/// The view that an observer forms from reports. Pure: it neither waits nor sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The newest leader that was heard of.
    leader: Option<(Term, NodeId)>,
    /// A blocking set has said, since then, that it supports nobody.
    over: bool,
    /// The newest word of each member, and when it came.
    reports: BTreeMap<NodeId, (GroupState, LocalTime)>,
    edict: Option<Proclaimed>,
}

impl View {
    /// A member tells how it stands to the group.
    pub(crate) fn on_report(&mut self, member: NodeId, state: GroupState, now: LocalTime) {
        if let GroupState::Bound { holder, term, leads: true } = state {
            self.on_leader(term, holder);
        }
        self.reports.insert(member, (state, now));
    }

    /// A leader speaks. Older words than the newest are dropped.
    pub(crate) fn on_proclaim(&mut self, proclaim: &Proclaim) {
        self.on_leader(proclaim.token.term(), proclaim.leader);
        let newer = self.edict.as_ref().is_none_or(|newest| newest.token < proclaim.token);
        if let Some(body) = proclaim.body.as_ref().filter(|_| newer) {
            self.edict = Some(Proclaimed { token: proclaim.token, body: body.clone() });
        }
    }

    /// Drops older reports of free members: they may have been free before this leader was elected,
    /// so they no longer count against it.
    fn on_leader(&mut self, term: Term, leader: NodeId) {
        if self.leader.is_none_or(|(newest, _)| newest < term) {
            self.leader = Some((term, leader));
            self.over = false;
            self.reports.retain(|_, (state, _)| !matches!(state, GroupState::Free { .. }));
        }
    }

    /// The newest leader that was heard of, unless its term is known to be over.
    pub(crate) fn leader(&self) -> Option<(Term, NodeId)> {
        self.leader.filter(|_| !self.over)
    }

    /// The newest edict.
    pub(crate) fn edict(&self) -> Option<&Proclaimed> {
        self.edict.as_ref()
    }

    /// The scene that follows from all reports.
    pub(crate) fn scene(
        &mut self,
        quorums: &Quorums,
        now: LocalTime,
        name: impl Fn(NodeId) -> Option<NodeName>,
    ) -> Scene {
        self.reports.retain(|_, (_, at)| now.remaining(*at).as_nanos() < FRESH);
        let those = |wanted: fn(&GroupState) -> bool| -> NodeSet {
            let said = self.reports.iter().filter(|(_, (state, _))| wanted(state));
            said.filter_map(|(member, _)| quorums.position(*member)).collect()
        };
        let free = those(|state| matches!(state, GroupState::Free { .. }));
        self.over |= quorums.is_blocking(free);
        let weak = self.reports.values().find_map(|(state, _)| match state {
            GroupState::Weak { leader } => Some(*leader),
            _ => None,
        });
        let cut_off = !quorums.is_quorum(those(|_| true));
        let leadership = match (self.leader, weak) {
            (_, Some(weak)) if cut_off => Leadership::Weak { name: name(weak) },
            (leader, _) if self.over => {
                let seen = self.reports.values().filter_map(|(state, _)| match state {
                    GroupState::Free { after } => Some(*after),
                    _ => None,
                });
                let after = leader.map(|(term, _)| term).or(seen.max()).unwrap_or_default();
                Leadership::Nobody { after }
            }
            (Some((term, leader)), _) => Leadership::Leader { name: name(leader), term },
            (None, _) => Leadership::Unknown,
        };
        Scene { leadership, edict: self.edict.clone() }
    }
}

#[cfg(test)]
mod tests {
    use tenure_proto::strong::epoch::Epoch;

    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);
    const C: NodeId = NodeId(2);

    fn scene_at(view: &mut View, seconds: u64) -> Leadership {
        let quorums = Quorums::majority(vec![A, B, C]).unwrap();
        view.scene(&quorums, at(seconds), |_| None).leadership
    }

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    fn bound(term: u64, leads: bool) -> GroupState {
        GroupState::Bound { holder: A, term: Term(term), leads }
    }

    fn free(after: u64) -> GroupState {
        GroupState::Free { after: Term(after) }
    }

    fn leader(term: u64) -> Leadership {
        Leadership::Leader { name: None, term: Term(term) }
    }

    fn word(term: u64, number: u64, body: &str) -> Proclaim {
        let token = Token::new(Term(term), number);
        let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        Proclaim { group: tenure_proto::GroupId(1), epoch: Epoch(0), leader: A, token, body }
    }

    #[test]
    fn who_only_asks_is_no_leader() {
        let mut view = View::default();
        view.on_report(A, bound(5, false), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Unknown);
        view.on_report(A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn an_older_leader_never_comes_back() {
        let mut view = View::default();
        view.on_report(A, bound(5, true), at(1));
        view.on_report(B, bound(4, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
        view.on_proclaim(&word(3, 9, "late"));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn nobody_leads_when_a_blocking_set_is_free() {
        let mut view = View::default();
        view.on_report(A, bound(5, true), at(1));
        view.on_report(B, free(5), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5), "one of three is not enough");
        view.on_report(A, free(5), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(5) });
        view.on_report(A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(5) }, "a late word of that term");
        view.on_report(A, bound(6, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(6));
    }

    #[test]
    fn those_who_were_free_before_a_leader_was_heard_of_say_nothing_about_it() {
        let mut view = View::default();
        view.on_report(A, free(4), at(1));
        view.on_report(B, free(4), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(4) });
        view.on_proclaim(&word(5, 0, ""));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn an_old_report_counts_no_more() {
        let mut view = View::default();
        view.on_report(A, bound(5, true), at(1));
        view.on_report(B, free(5), at(1));
        view.on_report(C, free(5), at(9));
        assert_eq!(scene_at(&mut view, 9), leader(5), "one of the two spoke long ago");
    }

    #[test]
    fn edicts_come_in_order_and_the_newest_stays() {
        let mut view = View::default();
        let quorums = Quorums::majority(vec![A, B, C]).unwrap();
        for (proclaim, newest) in [
            (word(5, 1, "one"), "one"),
            (word(5, 3, "three"), "three"),
            (word(5, 2, "two"), "three"),
            (word(6, 0, ""), "three"),
            (word(6, 1, "new"), "new"),
            (word(5, 9, "old leader"), "new"),
        ] {
            view.on_proclaim(&proclaim);
            let edict = view.scene(&quorums, at(1), |_| None).edict.expect("something was said");
            assert_eq!(edict.body, newest.as_bytes());
        }
    }

    #[test]
    fn a_weak_leader_is_told_only_where_no_quorum_is_heard() {
        let mut view = View::default();
        view.on_report(C, GroupState::Weak { leader: C }, at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Weak { name: None });
        view.on_report(A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5), "two of three were heard");
    }
}
