//! What must hold of finding the leader (section 10.4): *here* is true, and hints are followed only so often.

use std::collections::BTreeMap;

use tenure_proto::GroupId;
use tenure_proto::strong::{Holder, InstanceId, Term};

/// The questions under way, as the judge sees them.
#[derive(Default)]
pub(super) struct Searches(BTreeMap<InstanceId, Search>);

struct Search {
    group: GroupId,
    /// How many hints may be followed.
    hops: u8,
    /// Who has led since the question was asked, and in which terms.
    led: Vec<(Holder, Term)>,
}

/// What is wrong with an answer.
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
