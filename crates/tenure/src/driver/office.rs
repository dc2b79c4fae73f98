//! Who campaigns and who leads here: campaigns that wait, and terms that have a guard.
//!
//! The machine goes on campaigning after a loss, for it knows nothing of guards. Here a campaign ends with its first term:
//! whoever lost it may campaign again. So each loss, and each victory that nobody waits for any more, is followed by an order
//! to withdraw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::{Command, Event, Kind, Loss as MachineLoss, Term};
use tenure_proto::{GroupId, LocalTime};
use tokio::sync::{oneshot, watch};

use super::Mailbox;
use crate::clock::Clock;
use crate::error::CampaignError;
use crate::guard::{Loss, SharedTerm, Tenure, overdue_at};
use crate::name::GroupName;
use crate::sys::page::Pages;
use crate::trace::Trace;

/// Where a campaign's guard goes when it is won.
pub(crate) type Prize = oneshot::Sender<Result<Tenure, CampaignError>>;

/// What a handle asked for.
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
pub(crate) struct Office {
    clock: Clock,
    trace: Option<Trace>,
    mailbox: Mailbox,
    pages: Arc<Pages>,
    waiting: BTreeMap<GroupId, Entry>,
    led: BTreeMap<GroupId, Led>,
    /// Those whose work must give signs of life.
    watched: BTreeMap<GroupId, Duration>,
    /// Terms that are over but whose grants are given back only when the last handle is gone.
    held: BTreeMap<GroupId, Term>,
}

impl Office {
    pub(crate) fn new(clock: Clock, trace: Option<Trace>, mailbox: Mailbox) -> Self {
        Self {
            clock,
            trace,
            mailbox,
            pages: Arc::default(),
            waiting: BTreeMap::new(),
            led: BTreeMap::new(),
            watched: BTreeMap::new(),
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

    /// A handle that waited is gone.
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

    /// Whether somebody here waits to lead a group.
    pub(crate) fn campaigns_for(&self, group: GroupId) -> bool {
        self.waiting.contains_key(&group)
    }

    /// How many groups are led here.
    pub(crate) fn led(&self) -> usize {
        self.led.len()
    }

    /// All groups that are campaigned for or led here.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.waiting.keys().chain(self.led.keys()).copied().collect()
    }

    /// What the machine tells of who leads. Says what to tell it in return.
    pub(crate) fn on_event(&mut self, event: &Event) -> Option<Command> {
        match event {
            Event::Leads { group, kind: Kind::Renew, until, .. } => {
                if let Some(led) = self.led.get(group) {
                    led.term.extend(*until);
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

    /// A term begins: its guard goes to whoever waits for it, with E in it before anybody sees it.
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
            clock: self.clock.clone(),
            group: entry.group,
            number,
            tag,
            trace: self.trace.clone(),
            loss: watch::Sender::new(None),
        });
        let guard = Tenure::new(term.clone(), self.mailbox.clone());
        guard.heartbeat();
        term.extend(until);
        if let Some(health) = entry.health {
            self.watched.insert(group, health);
        }
        self.led.insert(group, Led { term, health: entry.health });
        // If nobody waits any more the guard comes back, is dropped, and says so: the campaign was cancelled.
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
            MachineLoss::Lapsed | MachineLoss::EndedEpoch | MachineLoss::NextEpoch => Loss::Lapsed,
        });
        // Who stood down gives back later; everybody else has nothing left to give, and stops asking.
        (!self.held.contains_key(&group)).then_some(Command::Resign(group))
    }

    fn is_overdue(&self, led: &Led) -> bool {
        led.health.is_some_and(|health| self.clock.read() >= overdue_at(led.term.last_beat(), health))
    }

    /// When the work of some group must have given a sign of life.
    pub(crate) fn next_check(&self) -> Option<LocalTime> {
        let due = |(group, health): (&GroupId, &Duration)| {
            self.led.get(group).map(|led| overdue_at(led.term.last_beat(), *health))
        };
        self.watched.iter().filter_map(due).min()
    }

    /// Groups whose work seems to hang: authority ends, and the lease runs out, for the work may still be doing something.
    pub(crate) fn unhealthy(&mut self) -> Vec<Command> {
        let overdue = |group: &&GroupId| self.led.get(group).is_some_and(|led| self.is_overdue(led));
        let groups: Vec<GroupId> = self.watched.keys().filter(overdue).copied().collect();
        for group in &groups {
            if let Some(led) = self.led.get(group) {
                self.held.insert(*group, led.term.number);
            }
        }
        groups.into_iter().map(Command::StandDown).collect()
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
