//! Members that refuse the key of this process: revoked, expired, or used by another process under
//! the same name.
//!
//! One member may be wrong about it: its wall clock jumped, or it has not heard of a newer date. So
//! a refusal counts once the members that refuse are a blocking set: without them there is no
//! quorum. Then every campaign and question that waits for an answer ends with the reason, and so
//! does each new one when the next greeting is refused. Whatever changes that, another key or a
//! session with a member, takes its refusal away.

use std::collections::BTreeMap;

use tenure_proto::NodeId;
use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::Command;

use super::Driver;
use crate::error::{AskError, CampaignError, VerifyError};
use crate::seal::KeyRefusal;

/// The members' refusals of this node's key.
#[derive(Debug, Default)]
pub(super) struct Refused {
    by: BTreeMap<NodeId, KeyRefusal>,
    /// It was logged.
    said: bool,
}

impl Refused {
    /// A member has taken the key.
    pub(super) fn is_taken_by(&mut self, member: NodeId) {
        self.by.remove(&member);
    }

    /// There is another key now.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Whether those that refuse are enough where it is not known yet how members form quorums: the
/// others are no majority of those whom the configuration names.
fn leave_no_majority(refusing: usize, named: usize) -> bool {
    refusing > 0 && (named - refusing.min(named)) * 2 <= named
}

impl Driver {
    pub(super) fn on_key_refused(&mut self, by: NodeId, why: KeyRefusal) {
        self.refused.by.insert(by, why);
        let Some(why) = self.key_refusal() else { return };
        let name_in_use = why == KeyRefusal::NameInUse;
        if !name_in_use && !std::mem::replace(&mut self.refused.said, true) {
            tracing::error!(name: "tenure.key_refused", node = %self.name, why = %why, "the members refuse the key of this process: ask for a new one (`tenure key derive`)");
        }
        let error = match name_in_use {
            true => CampaignError::NameInUse { name: self.name.clone() },
            false => CampaignError::KeyRefused { why },
        };
        for order in self.campaigns.refuse_all(&error) {
            if let Command::Resign(group) = &order {
                self.touch(*group);
            }
            self.orders.push_back(order);
        }
        self.questions.fail_all(&VerifyError::KeyRefused { why });
        self.fail_asks(&AskError::KeyRefused { why });
        self.settle();
    }

    /// Why the key of this process is worth nothing, if so many members say so that no quorum is
    /// left.
    pub(super) fn key_refusal(&self) -> Option<KeyRefusal> {
        let why = *self.refused.by.values().next()?;
        let blocked = match &self.machine {
            Some(machine) => {
                let quorums = &machine.charter().body.quorums;
                let refusing = self.refused.by.keys().filter_map(|member| quorums.position(*member));
                quorums.is_blocking(refusing.collect::<NodeSet>())
            }
            None => {
                let named = self.config.contacts.iter().map(|contact| contact.name.id());
                let refusing = named.filter(|member| self.refused.by.contains_key(member)).count();
                leave_no_majority(refusing, self.config.contacts.len())
            }
        };
        blocked.then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_three_is_not_enough_and_half_of_two_is() {
        let counts = |refusing, named| leave_no_majority(refusing, named);
        assert!(!counts(0, 1) && counts(1, 1));
        assert!(!counts(0, 2) && counts(1, 2));
        assert!(!counts(1, 3) && counts(2, 3) && counts(3, 3));
        assert!(!counts(1, 4) && counts(2, 4));
        assert!(!counts(2, 5) && counts(3, 5));
        assert!(!counts(0, 0));
    }
}
