//! Campaigns that wait, and terms that have a guard, in this process.
//!
//! The machine goes on campaigning after a loss, for it knows nothing of guards. Here a campaign
//! ends with its first term: a caller that lost the term may campaign again. So each loss, and each
//! victory that nobody waits for any more, is followed by an order to withdraw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::{Command, Event, Kind, Loss as MachineLoss, Term};
use tenure_proto::{GroupId, LocalTime};
use tokio::sync::{oneshot, watch};

use super::Mailbox;
use crate::error::{CampaignError, Stopped};
use crate::guard::{Loss, SharedTerm, Tenure, overdue_at};
use crate::name::GroupName;
use crate::operator_request::{Desk, Note};
use crate::steady::Steady;
use crate::sys::page::Pages;
use crate::trace::Trace;

/// Where a campaign's guard goes when it is won.
pub(crate) type Prize = oneshot::Sender<Result<Tenure, CampaignError>>;

/// A campaign that a handle asked for.
pub(crate) struct Entry {
    pub(crate) group: GroupName,
    /// Tells this campaign from a later one of the same group.
    pub(crate) number: u64,
    pub(crate) health: Option<Duration>,
    pub(crate) prize: Prize,
}

/// A term that is led here.
struct Led {
    term: Arc<SharedTerm>,
    health: Option<Duration>,
}

/// All campaigns and terms of this process.
pub(crate) struct Campaigns {
    /// The clock conditions of the terms that begin from here on.
    pub(crate) steady: Steady,
    trace: Option<Trace>,
    mailbox: Mailbox,
    pages: Arc<Pages>,
    waiting: BTreeMap<GroupId, Entry>,
    led: BTreeMap<GroupId, Led>,
    /// Those whose work must give signs of life.
    watched: BTreeMap<GroupId, Duration>,
    /// Nobody is overdue before this. Signs of life only move it away, so that it need not be known
    /// exactly.
    check_at: Option<LocalTime>,
    /// Terms that are over but whose grants are given back only when the last handle is gone.
    held: BTreeMap<GroupId, Term>,
}

impl Campaigns {
    pub(crate) fn new(steady: Steady, trace: Option<Trace>, mailbox: Mailbox) -> Self {
        Self {
            steady,
            trace,
            mailbox,
            pages: Arc::default(),
            waiting: BTreeMap::new(),
            led: BTreeMap::new(),
            watched: BTreeMap::new(),
            check_at: None,
            held: BTreeMap::new(),
        }
    }

    /// A handle wants to lead. Says what to tell the machine.
    pub(crate) fn enter(&mut self, entry: Entry) -> Option<Command> {
        let group = entry.group.id();
        if self.waiting.contains_key(&group) || self.led.contains_key(&group) {
            let _ = entry.prize.send(Err(CampaignError::AlreadyCampaigning { group: entry.group }));
            return None;
        }
        self.held.remove(&group);
        self.waiting.insert(group, entry);
        Some(Command::Campaign(group))
    }

    /// A handle that waited is gone. It may have lost its place to another before it went.
    pub(crate) fn withdraw(&mut self, group: GroupId, number: u64) -> Option<Command> {
        self.waiting.get(&group).filter(|entry| entry.number == number)?;
        self.waiting.remove(&group).map(|_| Command::Resign(group))
    }

    /// A handle has resigned: authority is over, the grants stay until the last handle is gone.
    pub(crate) fn stand_down(&mut self, group: GroupId, term: Term) -> Option<Command> {
        self.led.get(&group).filter(|led| led.term.number == term)?;
        self.held.insert(group, term);
        Some(Command::StandDown(group))
    }

    /// The last handle of a term is gone.
    pub(crate) fn gone(&mut self, group: GroupId, term: Term) -> Option<Command> {
        let leads = self.led.get(&group).is_some_and(|led| led.term.number == term);
        let held = self.held.get(&group) == Some(&term);
        if held {
            self.held.remove(&group);
        }
        (leads || held).then_some(Command::Resign(group))
    }

    /// The term that is led here, if it is this one.
    pub(crate) fn leads(&self, group: GroupId, term: Term) -> bool {
        self.led.get(&group).is_some_and(|led| led.term.number == term)
    }

    /// Puts a request before the holder of a term's guard; refused if that term is not led here.
    pub(crate) fn put(&self, group: GroupId, term: Term, note: Note) -> bool {
        let led = self.led.get(&group).filter(|led| led.term.number == term);
        led.map(|led| led.term.desk.put(note)).is_some()
    }

    /// Whether a group is led here, as far as was told.
    pub(crate) fn is_led(&self, group: GroupId) -> bool {
        self.led.contains_key(&group)
    }

    /// The term that is led here, as far as was told.
    pub(crate) fn term_of(&self, group: GroupId) -> Option<Term> {
        self.led.get(&group).map(|led| led.term.number)
    }

    /// Whether somebody here waits to lead a group.
    pub(crate) fn campaigns_for(&self, group: GroupId) -> bool {
        self.waiting.contains_key(&group)
    }

    /// Whether a group is led, campaigned for, or yet to be given back here.
    pub(crate) fn has_to_do_with(&self, group: GroupId) -> bool {
        self.is_led(group) || self.campaigns_for(group) || self.held.contains_key(&group)
    }

    /// The members will not have this node lead a group, and why: the campaign ends.
    pub(crate) fn refuse(
        &mut self,
        group: GroupId,
        why: impl FnOnce(GroupName) -> CampaignError,
    ) -> Option<Command> {
        let entry = self.waiting.remove(&group)?;
        let _ = entry.prize.send(Err(why(entry.group)));
        Some(Command::Resign(group))
    }

    /// No campaign can succeed: all of them end with this.
    pub(crate) fn refuse_all(&mut self, why: &CampaignError) -> Vec<Command> {
        let waiting = std::mem::take(&mut self.waiting);
        let refused = |(group, entry): (GroupId, Entry)| {
            let _ = entry.prize.send(Err(why.clone()));
            Command::Resign(group)
        };
        waiting.into_iter().map(refused).collect()
    }

    /// How many groups are led here.
    pub(crate) fn led(&self) -> usize {
        self.led.len()
    }

    /// The node is to end. A caller that asked for it has ended the guarded work before, so the
    /// grants are released. If the node was only dropped, work that still holds a guard may be
    /// writing: authority ends, and the lease runs out.
    pub(crate) fn leave(&mut self, asked: bool) -> Vec<Command> {
        for (group, led) in &self.led {
            led.term.end(Loss::Stopped);
            if !asked {
                self.held.insert(*group, led.term.number);
            }
        }
        let give_up = if asked { Command::Resign } else { Command::StandDown };
        let waiting = self.waiting.keys().copied().map(Command::Resign);
        waiting.chain(self.led.keys().copied().map(give_up)).collect()
    }

    /// Handles an event of the machine about leadership. Says what to tell it in return.
    pub(crate) fn on_event(&mut self, event: &Event) -> Option<Command> {
        match event {
            Event::Leads { group, kind: Kind::Renew, term, until, .. } => {
                if let Some(led) = self.led.get(group).filter(|led| led.term.number == *term) {
                    led.term.record.extend(*until);
                }
                None
            }
            Event::Leads { group, kind: Kind::Acquire, epoch, term, until, stamps, .. } => {
                let tag = ByTerm { epoch: *epoch, first: stamps.clone() };
                self.begin(*group, *term, tag, *until)
            }
            Event::Lost { group, term, loss } => self.end(*group, *term, *loss),
            _ => None,
        }
    }

    /// A term begins: its guard goes to the waiting campaign, with E in it before anybody sees it.
    fn begin(&mut self, group: GroupId, number: Term, tag: ByTerm, until: LocalTime) -> Option<Command> {
        let Some(entry) = self.waiting.remove(&group) else { return Some(Command::Resign(group)) };
        let record = match self.pages.lend() {
            Ok(record) => record,
            Err(error) => {
                let _ = entry.prize.send(Err(CampaignError::Memory { reason: error.to_string() }));
                return Some(Command::Resign(group));
            }
        };
        let term = Arc::new(SharedTerm {
            record,
            steady: self.steady.clone(),
            group: entry.group,
            number,
            tag,
            trace: self.trace.clone(),
            loss: watch::Sender::new(None),
            desk: Desk::default(),
            cancel: watch::Sender::new(false),
        });
        let guard = Tenure::new(term.clone(), self.mailbox.clone());
        guard.heartbeat();
        term.record.extend(until);
        if let Some(health) = entry.health {
            self.watched.insert(group, health);
            let due = overdue_at(term.record.last_beat(), health);
            self.check_at = Some(self.check_at.map_or(due, |at| at.min(due)));
        }
        self.led.insert(group, Led { term, health: entry.health });
        // If nobody waits any more the guard comes back, is dropped, and says so: the campaign was
        // cancelled.
        let _ = entry.prize.send(Ok(guard));
        None
    }

    fn end(&mut self, group: GroupId, term: Term, loss: MachineLoss) -> Option<Command> {
        let led = self.led.remove(&group)?;
        debug_assert_eq!(led.term.number, term, "one term at a time");
        let unhealthy = self.watched.remove(&group).is_some() && self.is_overdue(&led);
        led.term.end(match loss {
            MachineLoss::Resigned if unhealthy => Loss::Unhealthy,
            MachineLoss::Resigned => Loss::Resigned,
            MachineLoss::HandedOver => Loss::HandedOver,
            MachineLoss::ClockWentBack => Loss::Clock,
            MachineLoss::SplitBrain => Loss::SplitBrain,
            MachineLoss::Disturbed => Loss::Disturbed,
            MachineLoss::Lapsed | MachineLoss::EndedEpoch | MachineLoss::NextEpoch => Loss::Lapsed,
        });
        // A term that stood down gives its grants back later; every other has nothing left to give,
        // and stops asking.
        (!self.held.contains_key(&group)).then_some(Command::Resign(group))
    }

    fn is_overdue(&self, led: &Led) -> bool {
        led.health.is_some_and(|health| {
            self.steady.clock().read() >= overdue_at(led.term.record.last_beat(), health)
        })
    }

    /// When the work of some group may have given no sign of life for too long.
    pub(crate) fn next_check(&self) -> Option<LocalTime> {
        self.check_at
    }

    /// Groups whose work seems to hang: authority ends, and the lease runs out, for the work may
    /// still be doing something. All are looked at only when one may be overdue: there may be
    /// thousands.
    pub(crate) fn unhealthy(&mut self) -> Vec<Command> {
        let now = self.steady.clock().read();
        if self.check_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let due = |(group, health): (&GroupId, &Duration)| {
            self.led
                .get(group)
                .map(|led| (*group, led.term.number, overdue_at(led.term.record.last_beat(), *health)))
        };
        let (overdue, alive): (Vec<_>, Vec<_>) =
            self.watched.iter().filter_map(due).partition(|(_, _, at)| *at <= now);
        self.check_at = alive.into_iter().map(|(_, _, at)| at).min();
        self.held.extend(overdue.iter().map(|(group, term, _)| (*group, *term)));
        overdue.into_iter().map(|(group, ..)| Command::StandDown(group)).collect()
    }

    /// Nobody leads by this node from here on. Nobody is told yet.
    pub(crate) fn disown(&self) {
        for led in self.led.values() {
            led.term.record.end();
        }
    }

    /// The node stops for good: nobody leads by it any more.
    pub(crate) fn close(&mut self, loss: Loss, error: &CampaignError) {
        for led in std::mem::take(&mut self.led).into_values() {
            led.term.end(loss);
        }
        for entry in std::mem::take(&mut self.waiting).into_values() {
            let _ = entry.prize.send(Err(error.clone()));
        }
        self.watched.clear();
    }
}

impl Drop for Campaigns {
    /// Where the driver has ended in good order there is nothing left to do. If it panicked, nobody
    /// renews any more, and nobody would tell: the leases would hold until E, for nothing that
    /// rests on them was sent, but a caller that waits for the loss would wait forever.
    fn drop(&mut self) {
        self.close(Loss::Stopped, &CampaignError::Stopped(Stopped::Crashed));
    }
}

#[cfg(test)]
mod tests {
    use tenure_proto::quorum::NodeSet;
    use tenure_proto::strong::epoch::Epoch;
    use tenure_proto::strong::{Holder, InstanceId};
    use tenure_proto::time::Span;
    use tenure_proto::{Incarnation, NodeId};
    use tokio::sync::mpsc;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    type Won = oneshot::Receiver<Result<Tenure, CampaignError>>;

    fn campaigns() -> Campaigns {
        Campaigns::new(Steady::begin(&crate::Clock::boot(), None), None, Mailbox(mpsc::unbounded_channel().0))
    }

    fn campaign(campaigns: &mut Campaigns, number: u64) -> (Option<Command>, Won) {
        let (prize, won) = oneshot::channel();
        let group = GroupName::new("jobs").unwrap();
        (campaigns.enter(Entry { group, number, health: None, prize }), won)
    }

    fn jobs() -> GroupId {
        GroupName::new("jobs").unwrap().id()
    }

    fn leads(kind: Kind, term: u64, until: LocalTime) -> Event {
        let holder = Holder { node: NodeId(1), incarnation: Incarnation(1) };
        Event::Leads {
            group: jobs(),
            epoch: Epoch(0),
            id: InstanceId { holder, seq: 1 },
            kind,
            term: Term(term),
            lease: Span::from_nanos(1),
            until,
            quorum: NodeSet::EMPTY,
            stamps: std::iter::empty().collect(),
        }
    }

    fn in_an_hour() -> LocalTime {
        overdue_at(crate::Clock::boot().read(), Duration::from_secs(3600))
    }

    #[test]
    fn a_second_campaign_that_is_dropped_takes_nothing_from_the_first() {
        let mut campaigns = campaigns();
        let (order, mut first) = campaign(&mut campaigns, 1);
        assert_eq!(order, Some(Command::Campaign(jobs())));
        let (order, mut second) = campaign(&mut campaigns, 2);
        assert_eq!(order, None);
        assert!(matches!(second.try_recv(), Ok(Err(CampaignError::AlreadyCampaigning { .. }))));
        assert_eq!(campaigns.withdraw(jobs(), 2), None);
        assert!(matches!(first.try_recv(), Err(TryRecvError::Empty)), "the first goes on waiting");
        assert_eq!(campaigns.withdraw(jobs(), 1), Some(Command::Resign(jobs())));
    }

    #[test]
    fn a_renewal_extends_its_own_term_only() {
        let mut campaigns = campaigns();
        let (_, mut won) = campaign(&mut campaigns, 1);
        campaigns.on_event(&leads(Kind::Acquire, 5, LocalTime::from_nanos(1)));
        let tenure = won.try_recv().expect("it is elected").expect("it is elected");
        assert!(!tenure.is_leader(), "that lease is long over");
        campaigns.on_event(&leads(Kind::Renew, 4, in_an_hour()));
        assert!(!tenure.is_leader(), "another term's");
        campaigns.on_event(&leads(Kind::Renew, 5, in_an_hour()));
        assert!(tenure.is_leader());
    }

    #[tokio::test]
    async fn a_driver_that_panics_ends_its_terms_and_says_so() {
        let mut campaigns = campaigns();
        let (_, mut won) = campaign(&mut campaigns, 1);
        campaigns.on_event(&leads(Kind::Acquire, 5, in_an_hour()));
        let tenure = won.try_recv().expect("it is elected").expect("it is elected");
        assert!(tenure.is_leader());
        let panicked = std::thread::spawn(move || {
            let _led_here = campaigns;
            panic!("as a driver might");
        });
        assert!(panicked.join().is_err());
        assert!(!tenure.is_leader());
        assert_eq!(tenure.lost().await, Loss::Stopped);
    }
}
