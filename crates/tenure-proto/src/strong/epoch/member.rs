//! Where a process stands: the newest charter it knows, and since when.

use std::sync::Arc;

use super::acceptor::Acceptor;
use super::proposer::{Proposer, Timer};
use super::{Charter, Epoch, EpochTalk};
use crate::explore::View;
use crate::quorum::NodeSet;
use crate::strong::config::Succession;
use crate::strong::message::{Cell, Event, Message, Refusal};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::time::LocalSpan;
use crate::timers::Timers;
use crate::{BootKind, Context, LocalTime, NodeId, Ticket};

/// A process's knowledge of epochs. Members and candidates alike; only members answer by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::strong) struct Membership {
    /// cur: the newest charter that is known to be decided.
    pub(in crate::strong) charter: Arc<Charter>,
    /// The write that makes it durable: no answer of this epoch leaves before that (MONO).
    pub(super) saved: Option<Ticket>,
    /// When this process adopted it, or started if that is later.
    pub(super) adopted_at: LocalTime,
    /// Until when a member that has just joined refuses acquisitions (Y).
    pub(in crate::strong) young_until: LocalTime,
    /// The members that have been told of the charter, by position, so that nobody is told with
    /// every request.
    told: NodeSet,
    pub(super) acceptor: Acceptor,
    pub(super) proposer: Proposer,
    pub(super) timers: Timers<{ Timer::COUNT }>,
}

impl Membership {
    /// The membership by the records of the disk and, within one boot, of the memory. Otherwise the
    /// wait of rule W begins anew with this start: nobody knows how long ago the charter was
    /// adopted.
    pub(in crate::strong) fn start<R: Rules>(
        founding: Arc<Charter>,
        durable: &[Cell],
        kind: &BootKind<Cell>,
        rules: &R,
        now: LocalTime,
    ) -> Self {
        let charters = durable.iter().filter_map(|cell| match cell {
            Cell::Charter(charter) => Some(charter.clone()),
            _ => None,
        });
        let known = charters.filter(|_| rules.keeps_charter()).max_by_key(|charter| charter.epoch);
        let charter = known.unwrap_or(founding);
        let remembered = match kind {
            BootKind::SameBoot { remembered } => remembered.iter().find_map(|cell| match cell {
                Cell::Adopted { epoch, at, young_until } => Some((*epoch, *at, *young_until)),
                _ => None,
            }),
            BootKind::Founding | BootKind::Rebooted | BootKind::Amnesia => None,
        };
        let counts = |epoch: Epoch| epoch == charter.epoch || !rules.ties_adoption_to_epoch();
        let adopted_at = remembered.filter(|(epoch, ..)| counts(*epoch)).map(|(_, at, _)| at);
        let adopted_at = rules.adopted_before(adopted_at, now);
        // An end that was counted on this clock, for whichever epoch: Y is there for availability
        // alone.
        let young_until = remembered.map_or(LocalTime::ZERO, |(_, _, until)| until);
        let acceptor = Acceptor::start(charter.epoch, durable, rules);
        Self {
            charter,
            saved: None,
            adopted_at,
            young_until,
            told: NodeSet::EMPTY,
            acceptor,
            proposer: Proposer::default(),
            timers: Timers::default(),
        }
    }

    /// The present epoch.
    pub(in crate::strong) fn epoch(&self) -> Epoch {
        self.charter.epoch
    }

    /// The charter accepted here for the next epoch, which may or may not be decided.
    pub(in crate::strong) fn pending(&self) -> Option<&Charter> {
        self.acceptor.accepted.as_ref().map(|(_, charter)| &**charter)
    }

    /// The write that an answer of this epoch must wait for.
    pub(in crate::strong) fn saved(&self) -> Option<Ticket> {
        self.saved
    }

    /// When something is to be done for a change, if anything.
    pub(in crate::strong) fn next_deadline(&self) -> Option<LocalTime> {
        self.timers.next()
    }
}

impl<R: Rules> Process<R> {
    /// The newest charter known here.
    pub(in crate::strong) fn charter(&self) -> &Charter {
        &self.membership.charter
    }

    /// Takes over a decided charter. Grants, tombs and terms stay as they are (KEEP); what was
    /// promised and accepted for this very charter is done with. Says whether it was news.
    pub(in crate::strong) fn adopt(
        &mut self,
        charter: &Arc<Charter>,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        let former = self.membership.epoch();
        if charter.epoch <= former {
            return false;
        }
        let (me, now) = (self.holder.node, cx.now());
        let joined = charter.has(me) && !self.membership.charter.has(me);
        let rules = self.config.rules();
        let member = &mut self.membership;
        if joined && self.config.settings().succession == Succession::Adjacent {
            member.young_until = rules.young_until(charter, now);
        }
        let previous = std::mem::replace(&mut member.adopted_at, now);
        member.adopted_at = rules.counted_from(previous, now);
        member.charter = charter.clone();
        member.told = NodeSet::EMPTY;
        let sealed = member.acceptor.is_beyond(charter.epoch);
        if !sealed {
            member.acceptor = Acceptor::default();
            member.timers.clear(Timer::Finish);
        }
        let (at, young_until) = (member.adopted_at, member.young_until);
        let adopted = Cell::Adopted { epoch: charter.epoch, at, young_until };
        // Remembered first: once the charter is durable, a restart must not find the adoption
        // before this one (W).
        let remembers_first = rules.ties_adoption_to_epoch();
        if remembers_first {
            cx.remember(adopted.clone());
        }
        member.saved = rules.answer_waits_for(cx.persist(Cell::Charter(charter.clone())));
        if !remembers_first {
            cx.remember(adopted);
        }
        if sealed {
            self.membership.saved = self.save_ballot(charter.epoch, cx);
            self.watch_for_decision(cx);
        }
        self.position = charter.body.quorums.position(me);
        self.assert_adopted(former);
        cx.publish(Event::Adopted { charter: charter.clone(), joined });
        true
    }

    /// W and the wait of a forced charter, counted from `now`: how long ago they began is not known
    /// any more.
    pub(in crate::strong) fn adopted_anew(&mut self, now: LocalTime, cx: &mut Context<'_, Nerio<R>>) {
        self.membership.adopted_at = self.membership.adopted_at.max(now);
        let Membership { adopted_at: at, young_until, .. } = self.membership;
        cx.remember(Cell::Adopted { epoch: self.membership.epoch(), at, young_until });
        self.await_effect_anew(now);
    }

    /// MONO, for a request or a ballot of `epoch`: whether it may be answered at all. A sender that
    /// is behind is told; an epoch that this process does not know yet it asks for.
    pub(in crate::strong) fn admits(
        &self,
        from: NodeId,
        epoch: Epoch,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        let newest = self.membership.epoch();
        let rules = self.rules();
        if epoch > newest {
            say(from, EpochTalk::Unknown { newest }, None, cx);
            return false;
        }
        if epoch < newest {
            if rules.refusal_tells_charter() {
                self.tell(from, cx);
            }
            return false;
        }
        true
    }

    /// Tells another of the newest charter. It is decided, whether or not it is durable here.
    pub(in crate::strong) fn tell(&self, to: NodeId, cx: &mut Context<'_, Nerio<R>>) {
        say(to, EpochTalk::Decided(self.membership.charter.clone()), None, cx);
    }

    /// Sends a request to a member; before the first one of an epoch it is told of the epoch.
    pub(in crate::strong) fn ask(
        &mut self,
        member: NodeId,
        request: Message,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        self.tell_once(member, cx);
        cx.send(member, request, None);
    }

    pub(in crate::strong) fn tell_once(&mut self, member: NodeId, cx: &mut Context<'_, Nerio<R>>) {
        let charter = &self.membership.charter;
        let Some(position) = charter.body.quorums.position(member) else { return };
        let known = charter.epoch == Epoch(0) || member == self.holder.node;
        if !known && !self.membership.told.contains(position) {
            self.membership.told.insert(position);
            self.tell(member, cx);
        }
    }

    /// Somebody does not know the present epoch: what it was told was lost, or came after the
    /// request.
    pub(in crate::strong) fn on_unknown(
        &mut self,
        from: NodeId,
        newest: Epoch,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        if newest < self.membership.epoch() {
            self.tell(from, cx);
        }
    }

    /// Y: whether this member has joined so lately that it leaves acquisitions to the others.
    pub(in crate::strong) fn is_young(&self, now: LocalTime) -> Option<Refusal> {
        (now < self.membership.young_until).then_some(Refusal::Young)
    }
}

/// Says something about epochs.
pub(super) fn say<R: Rules>(
    to: NodeId,
    talk: EpochTalk,
    after: Option<Ticket>,
    cx: &mut Context<'_, Nerio<R>>,
) {
    cx.send(to, Message::Epoch(talk), after);
}

impl Membership {
    /// See [`Explore`](crate::explore::Explore). The time of adoption matters as the end of the
    /// wait that counts from it, which ends at once in the founding epoch.
    pub(in crate::strong) fn view(&self, v: &mut View<'_>) {
        self.charter.view(v);
        v.ticket(self.saved);
        if self.charter.epoch > Epoch(0) {
            v.deadline(self.charter.spacing(self.adopted_at));
            v.deadline(self.young_until);
            v.num(self.told.bits());
        }
        self.acceptor.view(v);
        self.proposer.view(v);
        for timer in [Timer::Propose, Timer::Resend, Timer::Finish, Timer::Effect] {
            v.far(self.timers.at(timer));
        }
    }

    /// See [`LocalTime::shifted`].
    pub(in crate::strong) fn shift(&mut self, by: LocalSpan) {
        self.adopted_at = self.adopted_at.shifted(by);
        self.young_until = self.young_until.shifted(by);
        self.proposer.shift(by);
        self.timers.shift(by);
    }
}
