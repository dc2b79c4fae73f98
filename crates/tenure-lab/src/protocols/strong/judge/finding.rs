//! The properties of finding the leader (section 10.4): *here* is true, and hints are followed only
//! so often.

use std::collections::BTreeMap;

use tenure_proto::strong::{Event, Holder, InstanceId, Term};
use tenure_proto::{GroupId, NodeId};

use super::{FINDS, FOUND, HOPS, Sight, StrongJudge};

/// The questions under way, as the judge sees them.
#[derive(Default)]
pub(super) struct Searches(BTreeMap<InstanceId, Search>);

struct Search {
    group: GroupId,
    /// How many hints may be followed.
    hops: u8,
    /// The processes that have led since the question was asked, and their terms.
    led: Vec<(Holder, Term)>,
}

/// The flaw in an answer.
pub(super) struct Answer {
    /// The one found has not led since the question.
    pub(super) never_led: bool,
    /// How many hints might have been followed, if more were.
    pub(super) allowed: Option<u8>,
}

impl Searches {
    /// A question is asked while some lead.
    pub(super) fn asked(
        &mut self,
        id: InstanceId,
        group: GroupId,
        hops: u8,
        leading: impl Iterator<Item = (Holder, Term)>,
    ) {
        self.0.insert(id, Search { group, hops, led: leading.collect() });
    }

    /// Somebody begins to lead: from then on any question may be answered with it.
    pub(super) fn leads(&mut self, group: GroupId, holder: Holder, term: Term) {
        for search in self.0.values_mut().filter(|search| search.group == group) {
            search.led.push((holder, term));
        }
    }

    /// A question is answered by a leader.
    pub(super) fn found(&mut self, id: InstanceId, leader: Holder, term: Term, hops: u8) -> Answer {
        let Some(search) = self.0.remove(&id) else { return Answer { never_led: true, allowed: None } };
        let never_led = !search.led.contains(&(leader, term));
        Answer { never_led, allowed: (hops > search.hops).then_some(search.hops) }
    }

    /// A question has ended without a leader.
    pub(super) fn missed(&mut self, id: InstanceId) {
        self.0.remove(&id);
    }
}

impl StrongJudge {
    /// A question is asked, or has come to its end.
    pub(super) fn on_search<S: Sight>(&mut self, sight: &S, node: NodeId, event: &Event) {
        match event {
            Event::Sought { group, id, hops, .. } => {
                self.lately.retain(|belief| belief.gone >= sight.now());
                let leading = self.beliefs.iter().chain(&self.lately).filter(|belief| belief.group == *group);
                let leading = leading.map(|belief| (belief.holder, belief.term));
                self.searches.asked(*id, *group, *hops, leading);
            }
            Event::Found { id, leader, term, hops, .. } => {
                self.judge_found(sight, node, *id, (*leader, *term, *hops));
            }
            Event::NotFound { id, .. } => self.searches.missed(*id),
            _ => {}
        }
    }

    /// Section 10.4: who says that it leads has led since it was asked.
    fn judge_found<S: Sight>(
        &mut self,
        sight: &S,
        node: NodeId,
        id: InstanceId,
        (leader, term, hops): (Holder, Term, u8),
    ) {
        let now = sight.now();
        let answer = self.searches.found(id, leader, term, hops);
        if hops > 0 {
            self.see(FINDS);
        }
        if answer.never_led && sight.follows(leader) {
            self.break_at(FOUND, now, || {
                format!("{node} finds {} in term {term}, which has not led since the question", leader.node)
            });
        }
        if let Some(allowed) = answer.allowed {
            self.break_at(HOPS, now, || format!("{node} has followed {hops} hints, not {allowed} at most"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::Incarnation;

    const GROUP: GroupId = GroupId(0);

    fn holder(node: u64) -> Holder {
        Holder { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn question() -> InstanceId {
        InstanceId { holder: holder(9), seq: 1 }
    }

    fn searches() -> Searches {
        let mut searches = Searches::default();
        searches.asked(question(), GROUP, 2, [(holder(0), Term(3))].into_iter());
        searches.leads(GroupId(1), holder(2), Term(4));
        searches.leads(GROUP, holder(1), Term(4));
        searches
    }

    #[test]
    fn who_led_at_the_question_or_since_may_be_found() {
        for (node, term, never_led) in [(0, 3, false), (1, 4, false), (0, 4, true), (2, 4, true)] {
            let answer = searches().found(question(), holder(node), Term(term), 0);
            assert_eq!(answer.never_led, never_led, "n{node} in term {term}");
        }
    }

    #[test]
    fn more_hops_than_allowed_are_noticed() {
        assert_eq!(searches().found(question(), holder(1), Term(4), 2).allowed, None);
        assert_eq!(searches().found(question(), holder(1), Term(4), 3).allowed, Some(2));
    }
}
