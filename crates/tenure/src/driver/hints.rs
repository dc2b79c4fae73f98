//! Groups of kind `eventual`: each has a machine of its own on every member, and shows this member's opinion.
//!
//! A member takes part from the first time on that it is asked, by a user here or by another member that names the group. The
//! bounds follow from the cluster's longest lease, which all members have agreed on: δ, the longest round trip that is in time, is a
//! fortieth of it (125 ms by default), and Δ, from one refresh to the next, two and a half times δ.
//!
//! **Nothing is kept over a restart.** A machine that is started does not know what it has acknowledged before, so it is silent until it
//! has read that from the others. Where too few are left that know it (after a power cut, say, with one member gone for good) that would
//! be for ever: so after the longest lease, many times what any round of before can have taken, it begins anew. A hint is no
//! authority, and one that never comes is worth less than one that may be early.

use std::collections::BTreeMap;

use tenure_proto::eventual::{Access, Config, Event, Hint, Message, Record, Settings, Sound, Stable};
use tenure_proto::strong::epoch::{Body, Epoch};
use tenure_proto::time::{Bound, Drift, Span};
use tenure_proto::{BootKind, GroupId, Incarnation, Input, LocalTime, NodeId};
use tokio::sync::{oneshot, watch};

use super::Driver;
use super::hosted::{Hosted, Outcome};
use crate::chance;
use crate::error::KindError;
use crate::eventual::{self, Opinion};
use crate::name::GroupName;
use crate::wire::{Hinting, Item};

/// The most eventual groups of one cluster. Whoever names more is not heard.
const MOST: usize = 1_000;

/// How many of δ the longest lease has.
const ROUNDS: u64 = 40;

/// A user who wants to know.
pub(crate) struct HintOrder {
    pub(crate) group: GroupName,
    pub(crate) reply: oneshot::Sender<Result<watch::Receiver<Opinion>, KindError>>,
}

struct Group {
    name: GroupName,
    /// The epoch of the cluster whose members take part.
    charter: Epoch,
    machine: Hosted<Stable>,
    /// When it begins anew, if it has not read by then what it has forgotten.
    patience: Option<LocalTime>,
    opinion: watch::Sender<Opinion>,
}

/// All eventual groups here.
#[derive(Default)]
pub(super) struct Hints(BTreeMap<GroupId, Group>);

impl Hints {
    pub(super) fn next_wake(&self) -> Option<LocalTime> {
        let wakes = |group: &Group| [group.machine.next_deadline(), group.patience];
        self.0.values().flat_map(wakes).flatten().min()
    }

    /// Nobody leads by this node any more, and it has no opinion: handles must not go by what was shown last.
    pub(super) fn disown(&self) {
        self.0.values().for_each(|group| _ = group.opinion.send_replace(Opinion::default()));
    }

    fn which(&self, wanted: impl Fn(&Group) -> bool) -> Vec<GroupId> {
        self.0.iter().filter(|(_, group)| wanted(group)).map(|(id, _)| *id).collect()
    }
}

/// What the members' charter makes of an election. Where clocks are synchronised, their rates are taken to be off by a thousandth.
fn settings(body: &Body) -> Option<Config> {
    let drift = match body.clocks.bound {
        Bound::Drift(drift) => drift,
        Bound::Skew(_) => Drift::from_ppm(1_000)?,
    };
    let round = body.longest_lease.as_nanos() / ROUNDS;
    let settings = Settings {
        access: Access::by(body.quorums.clone()),
        period: Span::from_nanos(round * 5 / 2),
        round: Span::from_nanos(round),
        drift,
        tick: body.clocks.tick,
        step: Span::from_nanos(round / 2),
        sticky: false,
        durable: false,
        learns: None,
        rules: Sound,
    };
    settings.validate().ok()
}

/// What a machine is started with: by which charter, and until when it may be silent.
struct Terms {
    charter: Epoch,
    config: Config,
    patience: LocalTime,
}

impl Driver {
    pub(super) fn on_hint_order(&mut self, order: HintOrder) {
        self.join_hints(&order.group);
        let opinion = self.hints.0.get(&order.group.id()).map(|group| group.opinion.subscribe());
        let role = self.config.role.name();
        let _ = order.reply.send(opinion.ok_or(KindError::NotAMember { role }));
    }

    /// What members go by now, if this is one of them.
    fn hint_terms(&self) -> Option<Terms> {
        let charter = self.machine.as_ref()?.charter();
        let config = settings(&charter.body).filter(|_| charter.members().contains(&self.me))?;
        let patience = self.now().after(charter.body.longest_lease.nominal());
        Some(Terms { charter: charter.epoch, config, patience })
    }

    /// Starts a machine, in a life of its own: answers to one before it must not count.
    fn start_hints(&self, config: &Config, kind: BootKind<Record>) -> (Hosted<Stable>, Vec<Outcome<Stable>>) {
        Hosted::start(config, self.me, (Incarnation(chance::wide()), kind), self.now())
    }

    /// Takes part in an eventual group from now on, if it may.
    fn join_hints(&mut self, name: &GroupName) {
        if self.hints.0.contains_key(&name.id()) || self.hints.0.len() >= MOST {
            return;
        }
        let Some(Terms { charter, config, patience }) = self.hint_terms() else { return };
        self.learn_group(name.clone());
        let (machine, outcome) = self.start_hints(&config, BootKind::Amnesia);
        let (opinion, _) = watch::channel(Opinion::default());
        let group = Group { name: name.clone(), charter, machine, patience: Some(patience), opinion };
        self.hints.0.insert(name.id(), group);
        self.show_hints(name.id(), outcome);
    }

    pub(super) fn on_hinting(&mut self, from: NodeId, said: Hinting, received: LocalTime) {
        let Hinting { group, charter, message } = said;
        self.join_hints(&group);
        let now = self.now();
        let Some(here) = self.hints.0.get_mut(&group.id()) else { return };
        if here.charter == charter && here.name == group {
            let outcome = here.machine.step(Input::Message { from, received, message }, now);
            self.show_hints(group.id(), outcome);
        }
    }

    pub(super) fn on_hint_time(&mut self, now: LocalTime) {
        for id in self.hints.which(|group| group.patience.is_some_and(|at| at <= now)) {
            self.restart_hints(id, BootKind::Founding);
        }
        for id in self.hints.which(|group| group.machine.next_deadline().is_some_and(|at| at <= now)) {
            let now = self.now();
            let Some(group) = self.hints.0.get_mut(&id) else { continue };
            let outcome = group.machine.step(Input::Deadline, now);
            self.show_hints(id, outcome);
        }
    }

    /// Other members, other machines.
    pub(super) fn renew_hints(&mut self) {
        let Some(epoch) = self.machine.as_ref().map(|machine| machine.epoch()) else { return };
        for id in self.hints.which(|group| group.charter != epoch) {
            self.restart_hints(id, BootKind::Amnesia);
        }
    }

    /// Begins anew by the charter that is in force. Whoever is no member any more has no opinion.
    fn restart_hints(&mut self, id: GroupId, kind: BootKind<Record>) {
        let Some(Terms { charter, config, patience }) = self.hint_terms() else {
            if let Some(group) = self.hints.0.remove(&id) {
                group.opinion.send_replace(Opinion::default());
            }
            return;
        };
        let patience = (kind == BootKind::Amnesia).then_some(patience);
        let (machine, outcome) = self.start_hints(&config, kind);
        if let Some(group) = self.hints.0.get_mut(&id) {
            (group.machine, group.charter, group.patience) = (machine, charter, patience);
            group.opinion.send_replace(Opinion::default());
        }
        self.show_hints(id, outcome);
    }

    fn show_hints(&mut self, id: GroupId, outcome: Vec<Outcome<Stable>>) {
        for outcome in outcome {
            let Some(group) = self.hints.0.get_mut(&id) else { return };
            match outcome {
                Outcome::Say(to, message) => {
                    let (name, charter) = (group.name.clone(), group.charter);
                    let item = Item::Hinting(Hinting { group: name, charter, message });
                    self.net.send(to, &item);
                }
                Outcome::Show(Event::Hint(hint)) => self.tell_hint(id, hint),
                Outcome::Show(Event::Recovered) => group.patience = None,
                Outcome::Show(Event::Leads { until, .. }) => {
                    group.opinion.send_modify(|opinion| opinion.until = Some(until));
                }
                Outcome::Show(Event::Yields { .. }) => {
                    group.opinion.send_modify(|opinion| opinion.until = None);
                }
                Outcome::Show(_) => {}
            }
        }
    }

    fn tell_hint(&self, id: GroupId, hint: Hint) {
        let Some(group) = self.hints.0.get(&id) else { return };
        let leader = hint.leader.and_then(|leader| self.net.name(leader));
        let process = hint.epoch.process.map_or(0, |process| process.0);
        let epoch = u128::from(hint.epoch.serial) << 64 | u128::from(process);
        tracing::info!(name: "tenure.hint", node = %self.name, group = %group.name, leader = leader.as_ref().map(tracing::field::display), epoch = hint.epoch.serial, "has another opinion of who leads");
        group.opinion.send_modify(|opinion| opinion.hint = eventual::Hint { leader, epoch });
    }
}

/// Whether whoever hears this answers at once.
pub(super) fn expects_answer(message: &Message) -> bool {
    matches!(message, Message::Refresh { .. })
}

#[cfg(test)]
mod tests {
    use tenure_proto::quorum::Quorums;
    use tenure_proto::time::{Clockwork, LocalSpan};

    use super::*;

    #[test]
    fn every_charter_that_is_allowed_has_bounds_that_fit_together() {
        for (ppm, millis, count) in
            [(0, 100, 1), (1_000, 1_000, 3), (100_000, 5_000, 5), (300_000, 60_000, 7)]
        {
            let bound = Bound::Drift(Drift::from_ppm(ppm).unwrap());
            let body = Body {
                quorums: Quorums::majority((0..count).map(NodeId).collect()).unwrap(),
                clocks: Clockwork { bound, tick: LocalSpan::from_nanos(1) },
                longest_lease: Span::from_millis(millis),
            };
            assert!(settings(&body).is_some(), "{ppm} ppm, {millis} ms, {count} members");
        }
    }
}
