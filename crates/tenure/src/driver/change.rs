//! A change of the members under way: new members must answer before it is begun, and the caller
//! hears how it goes.

use std::time::Duration;

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::epoch::{Change, Epoch, Halt, Stage, Stores};
use tenure_proto::strong::{Command, Event, Sound};
use tenure_proto::{LocalTime, NodeId};
use tokio::sync::mpsc;

use super::Driver;
use super::questions::later;
use crate::config::UNSUITED;
use crate::error::MembersError;
use crate::members::{Progress, Wanted};
use crate::wire::Item;

/// How long a newcomer has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How often is looked how a change goes on.
const LOOK: Duration = Duration::from_millis(100);

/// How long answers may be out before the caller is told whose, and how often it is told what is
/// waited for.
const TELL: Duration = Duration::from_secs(1);

/// A change of members that was asked for.
pub(crate) struct ChangeOrder {
    pub(crate) wanted: Wanted,
    /// Also if those that answer will be no quorum afterwards.
    pub(crate) anyway: bool,
    pub(crate) progress: mpsc::UnboundedSender<Progress>,
}

/// A change that is under way.
pub(crate) struct Underway {
    progress: mpsc::UnboundedSender<Progress>,
    anyway: bool,
    /// The change that begins when the new members answer.
    held: Option<Change>,
    newcomers: Vec<NodeId>,
    deadline: LocalTime,
    /// The stage that the caller was last told, or would have been.
    stage: Option<Stage>,
    tell_at: LocalTime,
    pub(super) look_at: LocalTime,
}

impl Driver {
    pub(super) fn on_change_order(&mut self, order: ChangeOrder) {
        let ChangeOrder { wanted, anyway, progress } = order;
        let change = match self.checked(&wanted) {
            Ok(change) => change,
            Err(error) => return drop(progress.send(Progress::Failed(error))),
        };
        let instead = "another change was asked for here instead: look at the members, and ask again";
        self.tell_change(&Progress::Failed(MembersError::Halted { reason: instead.to_owned() }), true);
        let members = self.members();
        let newcomers: Vec<NodeId> = wanted.contacts.iter().map(|contact| contact.name.id()).collect();
        let newcomers = newcomers.into_iter().filter(|new| !members.contains(new)).collect();
        for contact in &wanted.contacts {
            self.net.addresses.learn(contact);
        }
        // Everybody must be able to greet the newcomers before they are told to.
        if !wanted.contacts.is_empty() {
            let item = Item::Contacts(wanted.contacts);
            let post = members.into_iter().filter(|to| *to != self.me).map(|to| (to, item.clone()));
            let post = post.collect();
            self.post(post);
        }
        let now = self.now();
        self.questions.change = Some(Underway {
            progress,
            anyway,
            held: Some(change),
            newcomers,
            deadline: later(now, ANSWER_WITHIN),
            stage: None,
            tell_at: later(now, TELL),
            look_at: now,
        });
        self.on_change_time(now);
    }

    /// The flaw in a change before anybody is asked.
    fn checked(&self, wanted: &Wanted) -> Result<Change, MembersError> {
        let machine = self.machine.as_ref().filter(|machine| machine.charter().has(self.me));
        let charter = machine.ok_or(MembersError::NotAMember)?.charter();
        let halted = |reason: String| MembersError::Halted { reason };
        let mut change = wanted.change.clone();
        if let (Change::Set { quorums, .. }, Some(text)) = (&mut change, &wanted.quorums) {
            let parsed = Quorums::parse(text, charter.members().to_vec());
            *quorums = Some(parsed.map_err(|error| halted(self.named(&error.to_string())))?);
        }
        let suits = |change: &Change| match change {
            Change::Clocks(clocks) | Change::Set { clocks: Some(clocks), .. } => {
                self.clock.suits(clocks.bound)
            }
            _ => true,
        };
        if !suits(&change) {
            return Err(halted(format!("{UNSUITED}, and no node changes its clock while it runs")));
        }
        if let Change::LiftBar(group) = &change
            && !charter.body.barred.has(*group)
        {
            return Err(MembersError::NotBarred { group: self.group_called(*group) });
        }
        let (comes, goes): (&[NodeId], &[NodeId]) = match &change {
            Change::Add(new) => (&[*new], &[]),
            Change::Remove(old) => (&[], &[*old]),
            Change::Replace { old, new } => (&[*new], &[*old]),
            _ => (&[], &[]),
        };
        let name = |node: &NodeId| wanted.name(*node).or_else(|| self.net.name(*node));
        if let Some(new) = comes.iter().find(|node| charter.has(**node)) {
            return Err(MembersError::AlreadyMember { name: name(new).unwrap_or_else(|| self.name.clone()) });
        }
        if let Some(old) = goes.iter().find(|node| !charter.has(**node)) {
            return Err(MembersError::NoSuchMember { name: name(old).unwrap_or_else(|| self.name.clone()) });
        }
        if comes.is_empty() && !goes.is_empty() && charter.members().len() == 1 {
            return Err(MembersError::LastMember { name: self.name.clone() });
        }
        Ok(change)
    }

    /// Begins what was held back for those who are new, and tells what is waited for.
    pub(super) fn on_change_time(&mut self, now: LocalTime) {
        let Some(underway) = self.questions.change.as_mut().filter(|change| change.look_at <= now) else {
            return;
        };
        underway.look_at = later(now, LOOK);
        let (late, newcomers) = (underway.deadline <= now, underway.newcomers.clone());
        if underway.held.is_none() {
            return self.tell_stage(now);
        }
        // A node that has not said which store it has is not joining, or has not been heard yet.
        match newcomers.iter().find(|new| self.announced_store(**new).is_none()) {
            None => self.begin_change(),
            Some(silent) if late => {
                let name = self.net.name(*silent).unwrap_or_else(|| self.name.clone());
                self.tell_change(&Progress::Failed(MembersError::Unreachable { name }), true);
            }
            Some(_) => newcomers.iter().for_each(|new| self.net.greet(*new, now)),
        }
    }

    fn begin_change(&mut self) {
        let Some(underway) = &mut self.questions.change else { return };
        let (anyway, Some(change)) = (underway.anyway, underway.held.take()) else { return };
        let newcomers = underway.newcomers.clone();
        let stores: Stores =
            newcomers.iter().filter_map(|new| Some((*new, self.announced_store(*new)?))).collect();
        let change = match stores.is_empty() {
            true => change,
            false => Change::Named(Box::new(change), stores),
        };
        match self.quorum_is_left(&change).filter(|_| !anyway) {
            Some(error) => self.tell_change(&Progress::Failed(error), true),
            None => self.order(Command::Change(change)),
        }
    }

    /// Whether those that answer will be too few after a change, or are too few to decide it.
    fn quorum_is_left(&self, change: &Change) -> Option<MembersError> {
        if matches!(change, Change::ForceRemove { .. }) {
            return None; // All who are left must answer, or nothing comes of it.
        }
        let present = &self.machine.as_ref()?.charter().body;
        let after = change.applied(present, &Sound).ok()?;
        let lost = |quorums: &Quorums| {
            let members = quorums.members();
            let answers = |node: &NodeId| *node == self.me || self.net.answers(*node);
            let live: NodeSet = (0..members.len()).filter(|position| answers(&members[*position])).collect();
            (!quorums.is_quorum(live)).then_some((live.len(), members.len()))
        };
        let left = lost(&after.quorums).map(|(live, members)| MembersError::NoQuorumLeft { live, members });
        // The present members decide: without a quorum of them nothing would come of it.
        left.or_else(|| {
            lost(&present.quorums).map(|(live, members)| MembersError::NoQuorumNow { live, members })
        })
    }

    /// Tells the caller what the change waits for, if that takes a while.
    fn tell_stage(&mut self, now: LocalTime) {
        let stage = self.machine.as_ref().and_then(|machine| machine.change_stage());
        let Some(underway) = &mut self.questions.change else { return };
        let news = underway.stage != stage;
        let waits = matches!(&stage, Some(Stage::Leases(until)) if now < *until);
        if news {
            underway.stage.clone_from(&stage);
            underway.tell_at = if waits { now } else { later(now, TELL) };
        }
        if now < underway.tell_at {
            return;
        }
        underway.tell_at = later(now, TELL);
        let progress = match stage {
            Some(Stage::Leases(until)) => {
                Progress::Waiting { left: Duration::from_nanos(until.remaining(now).as_nanos()) }
            }
            Some(Stage::Answers(silent)) => {
                let names = silent.into_iter().filter_map(|node| self.net.name(node)).collect();
                Progress::Unheard { members: names }
            }
            None => return,
        };
        let empty = matches!(&progress, Progress::Waiting { left } if left.is_zero());
        if !empty {
            self.tell_change(&progress, false);
        }
    }

    /// Handles an event of the machine that may be about a change.
    pub(super) fn on_change_event(&mut self, event: &Event) {
        match event {
            Event::Adopted { charter, .. } => self.tell_change(&Progress::Epoch(charter.epoch), false),
            Event::Changed { epoch } => self.on_changed(*epoch),
            Event::ChangeHalted { halt } => {
                let reason = match halt {
                    Halt::Conflict => {
                        "another change was decided in its place, or is under way: look at the members, and ask again"
                            .to_owned()
                    }
                    Halt::Impossible(why) => self.named(why),
                    Halt::Fixed => "the members of this cluster never change".to_owned(),
                };
                self.tell_change(&Progress::Failed(MembersError::Halted { reason }), true);
            }
            _ => {}
        }
    }

    fn on_changed(&mut self, epoch: Epoch) {
        self.tell_change(&Progress::Done(epoch), true);
    }

    /// The machine knows numbers; people know names.
    fn named(&self, text: &str) -> String {
        let members = self.members().into_iter().filter_map(|node| {
            let name = self.net.name(node)?;
            Some((node.to_string(), name.to_string()))
        });
        members.fold(text.to_owned(), |text, (number, name)| text.replace(&number, &format!("'{name}'")))
    }

    fn tell_change(&mut self, progress: &Progress, last: bool) {
        if let Some(underway) = &self.questions.change {
            let _ = underway.progress.send(progress.clone());
        }
        if last {
            self.questions.change = None;
        }
    }
}
