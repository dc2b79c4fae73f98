//! Dispatches talk about epochs, and applies a decided charter to the whole process.

use std::sync::Arc;

use super::{Ballot, Charter, Epoch, EpochTalk};
use crate::detect::weak::Weak;
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Succession};
use crate::{Context, GroupId, NodeId};

impl<R: Rules> Nerio<R> {
    pub(in crate::strong) fn on_epoch_talk(
        &mut self,
        from: NodeId,
        talk: EpochTalk,
        cx: &mut Context<'_, Self>,
    ) {
        match talk {
            EpochTalk::Decided(charter) => self.on_decided(from, &charter, cx),
            EpochTalk::GoesBy(other) => self.on_goes_by(from, other, cx),
            EpochTalk::Unknown { newest } => self.process.on_unknown(from, newest, cx),
            EpochTalk::Prepare { epoch, ballot } => {
                let top = self.top();
                self.with_process(|process| process.on_prepare(from, (epoch, ballot), top, cx));
            }
            EpochTalk::Promise { epoch, ballot, accepted, top } => {
                let own = self.top();
                let told = (accepted, top);
                self.with_process(|process| process.on_promise(from, (epoch, ballot), told, own, cx));
                if self.process.rules().promise_accepts() {
                    self.on_accepted(from, (epoch, ballot), cx); // No sound proposer does.
                }
            }
            EpochTalk::Accept { epoch, ballot, charter } => {
                let top = self.top();
                let act =
                    self.with_process(|process| process.on_accept(from, (epoch, ballot, &charter), top, cx));
                if act {
                    self.adopt(&charter, cx);
                }
            }
            EpochTalk::Accepted { epoch, ballot } => self.on_accepted(from, (epoch, ballot), cx),
            EpochTalk::Denied { epoch, ballot, denial } => {
                self.with_process(|process| process.on_denied(from, (epoch, ballot, denial), cx));
            }
        }
    }

    fn on_accepted(&mut self, from: NodeId, answered: (Epoch, Ballot), cx: &mut Context<'_, Self>) {
        let decided = self.with_process(|process| process.on_accepted(from, answered, cx));
        if let Some(charter) = decided {
            self.adopt(&charter, cx);
        }
    }

    /// A charter is decided: the process goes by it, its grants stay (KEEP), and its candidates go
    /// on in the new epoch.
    pub(in crate::strong) fn adopt(&mut self, charter: &Arc<Charter>, cx: &mut Context<'_, Self>) {
        if !self.with_process(|process| process.adopt(charter, cx)) {
            return;
        }
        self.process.weak.members(charter.members(), cx.now());
        self.process.trips.keep(charter.members());
        let wedged = self.process.config.settings().succession == Succession::Wedge;
        if wedged {
            self.on_wedge_over(cx);
            self.process.note_granted(charter.floor);
        }
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in groups {
            let rules = self.process.rules();
            match self.groups.get_mut(&id) {
                Some(group) if wedged => group.grantor.begin_epoch(charter, rules),
                Some(group) => group.grantor.on_adopted(charter.floor, rules),
                None => {}
            }
            self.with_group(id, cx, |candidate, around| match wedged {
                true => candidate.on_next_epoch(around),
                false => candidate.on_new_epoch(around),
            });
        }
        self.with_process(|process| process.on_adopted(cx));
    }
}
