//! Groups of kind `eventual`: each has a machine of its own on every member, and shows this
//! member's opinion.
//!
//! A member takes part from the first time on that it is asked, by a user here or by another member
//! that names the group. The bounds follow from the cluster's longest lease, which all members have
//! agreed on: δ, the longest round trip that is in time, is a fortieth of it (125 ms by default),
//! and Δ, from one refresh to the next, two and a half times δ.
//!
//! **Nothing is kept over a restart.** A machine that is started does not know what it has
//! acknowledged before, so it is silent until it has read that from the others. Where too few
//! members are left that know it (after a power cut, for example, with one member gone for good)
//! the silence would never end: so after the longest lease, many times what any earlier round can
//! have taken, it begins anew. A hint is no authority, and one that never comes is worth less than
//! one that may be early.
//!
//! # Other members
//!
//! A charter's machines know nothing of those before it, and hear only each other. Still no leader
//! of one leads beside a leader of the next. Leaders are written down by quorums and get their
//! epochs from quorums, where for a single charter less would do
//! ([`access`](tenure_proto::eventual::access)). Say A leads by charter e, and B by e+1. One of
//! those who gave B its epoch, q, is in every quorum of e with which A could have had its way
//! since, because neighbours' quorums meet. But q goes by e+1. So A had its last good round before,
//! which vouches for P'+T' at most ([`config`](tenure_proto::eventual::config)), and B leads
//! 2P'+3T' after it got its epoch at the earliest. Where the bounds change too, A's P' and T' may
//! be larger than B's: then machines of e+1 are quiet at first, for e's longest lease. Charters
//! further apart share no time, as in strong groups. The charter's number comes first in the epoch
//! that is shown, so those rise.

use std::collections::BTreeMap;

use tenure_proto::eventual::{
    Access, Config, Epoch as Leadership, Event, Hint, Message, Record, Settings, Sound, Stable,
};
use tenure_proto::quorum::{Quorums, Rule};
use tenure_proto::strong::epoch::{Body, Charter, Epoch};
use tenure_proto::time::{Bound, Drift, LocalSpan, Span};
use tenure_proto::{Boot, BootKind, GroupId, Incarnation, Input, LocalTime, NodeId};
use tokio::sync::{oneshot, watch};

use super::hosted::{Hosted, Outcome};
use super::{By, Driver, For};
use crate::chance;
use crate::clock::nanos;
use crate::error::KindError;
use crate::eventual::{self, Opinion};
use crate::name::GroupName;
use crate::wire::{EventualTalk, Item};

/// The most eventual groups of one cluster. A member that names more is not heard.
const MOST: usize = 1_000;

/// How many of δ the longest lease has.
const ROUNDS: u64 = 40;

/// A user who wants to know.
pub(crate) struct EventualOrder {
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
    /// Before that it neither hears nor says anything.
    quiet_until: LocalTime,
    opinion: watch::Sender<Opinion>,
}

impl Group {
    fn next_deadline(&self) -> Option<LocalTime> {
        self.machine.next_deadline().map(|at| at.max(self.quiet_until))
    }
}

/// All eventual groups here.
#[derive(Default)]
pub(super) struct EventualGroups {
    groups: BTreeMap<GroupId, Group>,
    /// Until when a member that goes by another charter is left alone: it was told of ours, or
    /// asked for its own.
    strays: BTreeMap<NodeId, LocalTime>,
}

impl EventualGroups {
    pub(super) fn next_wake(&self) -> Option<LocalTime> {
        let wakes = |group: &Group| [group.next_deadline(), group.patience];
        self.groups.values().flat_map(wakes).flatten().min()
    }

    /// The node stops: nobody leads by it any more, and it has no opinion.
    pub(super) fn disown(&self) {
        self.groups.values().for_each(|group| _ = group.opinion.send_replace(Opinion::default()));
    }

    fn which(&self, wanted: impl Fn(&Group) -> bool) -> Vec<GroupId> {
        self.groups.iter().filter(|(_, group)| wanted(group)).map(|(id, _)| *id).collect()
    }
}

/// Quorums for writes and for reads, although for writes less would do: see above. Of a majority
/// and of a grid an election makes the least that meets, unless it is told what the quorums are.
fn access(quorums: &Quorums) -> Option<Access> {
    let members = quorums.members().to_vec();
    let quorums = match quorums.rule() {
        Rule::Majority => Quorums::weighted(members.clone(), vec![1; members.len()]).ok()?,
        Rule::Grid { rows, columns } => {
            let places = (0..*rows).flat_map(|row| (0..*columns).map(move |column| (row, column)));
            let crosses = |place: usize, (row, column)| place / columns == row || place % columns == column;
            let cross = |at| {
                (0..members.len()).filter(|place| crosses(*place, at)).map(|place| members[place]).collect()
            };
            Quorums::list(members.clone(), places.map(cross).collect()).ok()?
        }
        Rule::Weighted(_) | Rule::List(_) => quorums.clone(),
    };
    Some(Access::by(quorums))
}

/// The number that is shown: rising from leader to leader, over changes of members too.
fn shown_epoch(charter: Epoch, epoch: Leadership) -> u128 {
    // Charters change once in a longest lease, and skip a million when an operator's word makes
    // one; serials rise by a few a second while nobody leads: neither has so many in any life.
    let half = |number: u64| u128::from(u32::try_from(number).unwrap_or(u32::MAX));
    let process = epoch.process.map_or(0, |process| process.0);
    half(charter.0) << 96 | half(epoch.serial) << 64 | u128::from(process)
}

/// The settings of an election that follow from the members' charter. Where clocks are
/// synchronised, their rates are taken to be off by a thousandth.
fn settings(body: &Body) -> Option<Config> {
    let drift = match body.clocks.bound {
        Bound::Drift(drift) => drift,
        Bound::Skew(_) => Drift::from_ppm(1_000)?,
    };
    let round = body.longest_lease.as_nanos() / ROUNDS;
    let settings = Settings {
        access: access(&body.quorums)?,
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

/// The start conditions of a machine: by which charter, from when it speaks, and until when it may
/// be silent.
struct Terms {
    charter: Epoch,
    config: Config,
    quiet_until: LocalTime,
    patience: LocalTime,
}

/// How long machines of a charter are quiet at first, because leaders of the one before it go by
/// other bounds: no round vouches for half as long.
fn quiet(charter: &Charter) -> LocalSpan {
    let bounds = |body: &Body| (body.longest_lease, body.clocks);
    let other = charter.before.as_ref().filter(|before| bounds(before) != bounds(&charter.body));
    other.map_or(LocalSpan::ZERO, |before| before.longest_lease.nominal())
}

impl Driver {
    pub(super) fn on_eventual_order(&mut self, order: EventualOrder) {
        let joined = self.join_eventual(&order.group);
        let opinion = self.eventual.groups.get(&order.group.id()).map(|group| group.opinion.subscribe());
        let no_room = KindError::NotAMember { role: self.config.role.name() };
        let _ = order.reply.send(joined.and_then(|()| opinion.ok_or(no_room)));
    }

    /// The charter and times that members go by now, if this is one of them.
    fn eventual_terms(&self) -> Result<Terms, KindError> {
        let charter = self.machine.as_ref().map(|machine| machine.charter());
        let charter = charter.filter(|charter| charter.members().contains(&self.me));
        let charter = charter.ok_or(KindError::NotAMember { role: self.config.role.name() })?;
        let config = settings(&charter.body).ok_or_else(|| KindError::Refused {
            reason: "where clocks may be off by so much no answer is sure to come within a period: eventual groups need a drift_ppm \
                     below 600000"
                .to_owned(),
        })?;
        let quiet_until = self.now().after(quiet(charter));
        let patience = quiet_until.after(charter.body.longest_lease.nominal());
        Ok(Terms { charter: charter.epoch, config, quiet_until, patience })
    }

    /// Starts a machine, in a life of its own: answers to one before it must not count.
    fn start_eventual(
        &self,
        config: &Config,
        kind: BootKind<Record>,
    ) -> (Hosted<Stable>, Vec<Outcome<Stable>>) {
        let boot = Boot { incarnation: Incarnation(chance::wide()), durable: Vec::new(), kind };
        Hosted::start(config, self.me, boot, self.now())
    }

    /// Takes part in an eventual group from now on, if it may.
    fn join_eventual(&mut self, name: &GroupName) -> Result<(), KindError> {
        if self.eventual.groups.contains_key(&name.id()) || self.eventual.groups.len() >= MOST {
            return Ok(());
        }
        let Terms { charter, config, quiet_until, patience } = self.eventual_terms()?;
        let _ = self.learn_group(name.clone(), (By::Cluster, For::Question));
        let (machine, outcome) = self.start_eventual(&config, BootKind::Amnesia);
        let (opinion, _) = watch::channel(Opinion::default());
        let (named, patience) = (name.clone(), Some(patience));
        let group = Group { name: named, charter, machine, patience, quiet_until, opinion };
        self.eventual.groups.insert(name.id(), group);
        self.show_eventual(name.id(), outcome);
        Ok(())
    }

    pub(super) fn on_eventual_talk(&mut self, from: NodeId, said: EventualTalk, received: LocalTime) {
        let EventualTalk { group, charter, message } = said;
        if self.is_astray(from, charter) {
            return;
        }
        let _ = self.join_eventual(&group); // A node that cannot take part does not hear it.
        let now = self.now();
        let Some(here) = self.eventual.groups.get_mut(&group.id()) else { return };
        if here.charter == charter && here.name == group && here.quiet_until <= now {
            let outcome = here.machine.step(Input::Message { from, received, message }, now);
            self.show_eventual(group.id(), outcome);
        }
    }

    /// Whether a member goes by another charter. Then the member with the older one is told of the
    /// newer: a change is said once, and where no strong group is at work nothing else would bring
    /// it to a member that was down.
    fn is_astray(&mut self, from: NodeId, charter: Epoch) -> bool {
        let Some(ours) = self.machine.as_ref().map(|machine| machine.epoch()) else { return true };
        let now = self.now();
        if charter == ours || self.eventual.strays.get(&from).is_some_and(|until| now < *until) {
            return charter != ours;
        }
        self.eventual.strays.retain(|_, until| now < *until);
        self.eventual.strays.insert(from, now.after(LocalSpan::from_nanos(nanos(self.config.retry()))));
        if charter < ours {
            self.tell_charter(from);
        } else {
            self.net.send(from, &Item::AskCharter);
        }
        true
    }

    pub(super) fn on_eventual_time(&mut self, now: LocalTime) {
        for id in self.eventual.which(|group| group.patience.is_some_and(|at| at <= now)) {
            self.restart_eventual(id, BootKind::Founding);
        }
        for id in self.eventual.which(|group| group.next_deadline().is_some_and(|at| at <= now)) {
            let now = self.now();
            let Some(group) = self.eventual.groups.get_mut(&id) else { continue };
            let outcome = group.machine.step(Input::Deadline, now);
            self.show_eventual(id, outcome);
        }
    }

    /// Other members, other machines.
    pub(super) fn renew_eventual(&mut self) {
        let Some(epoch) = self.machine.as_ref().map(|machine| machine.epoch()) else { return };
        for id in self.eventual.which(|group| group.charter != epoch) {
            self.restart_eventual(id, BootKind::Amnesia);
        }
    }

    /// The clock went back: what machines have concluded from later readings counts for nothing,
    /// and nor does what was shown of it. To clear only that would leave it cleared, because a
    /// machine tells what has changed, and for it nothing has.
    pub(super) fn forget_eventual(&mut self) {
        for id in self.eventual.which(|_| true) {
            self.restart_eventual(id, BootKind::Amnesia);
        }
    }

    /// Begins anew by the charter that is in force. A process that is no longer a member has no
    /// opinion.
    fn restart_eventual(&mut self, id: GroupId, kind: BootKind<Record>) {
        let Ok(Terms { charter, config, quiet_until, patience }) = self.eventual_terms() else {
            if let Some(group) = self.eventual.groups.remove(&id) {
                group.opinion.send_replace(Opinion::default());
            }
            return;
        };
        let patience = (kind == BootKind::Amnesia).then_some(patience);
        let (machine, outcome) = self.start_eventual(&config, kind);
        if let Some(group) = self.eventual.groups.get_mut(&id) {
            (group.machine, group.charter, group.patience) = (machine, charter, patience);
            group.quiet_until = if group.patience.is_some() { quiet_until } else { LocalTime::ZERO };
            group.opinion.send_replace(Opinion::default());
        }
        self.show_eventual(id, outcome);
    }

    fn show_eventual(&mut self, id: GroupId, outcome: Vec<Outcome<Stable>>) {
        for outcome in outcome {
            let Some(group) = self.eventual.groups.get_mut(&id) else { return };
            match outcome {
                Outcome::Say(to, message) => {
                    let (name, charter) = (group.name.clone(), group.charter);
                    let item = Item::Eventual(EventualTalk { group: name, charter, message });
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
        let Some(group) = self.eventual.groups.get(&id) else { return };
        let leader = hint.leader.and_then(|leader| self.net.name(leader));
        let epoch = hint.leader.map_or(0, |_| shown_epoch(group.charter, hint.epoch));
        tracing::info!(name: "tenure.hint", node = %self.name, group = %group.name, leader = leader.as_ref().map(tracing::field::display), epoch = %epoch, "has another opinion of who leads");
        group.opinion.send_modify(|opinion| opinion.hint = eventual::Hint { leader, epoch });
    }
}

/// Whether the receiver of this message answers at once.
pub(super) fn expects_answer(message: &Message) -> bool {
    matches!(message, Message::Refresh { .. })
}

#[cfg(test)]
mod tests {
    use tenure_proto::quorum::NodeSet;
    use tenure_proto::strong::Term;
    use tenure_proto::time::Clockwork;

    use super::*;

    #[test]
    fn the_bounds_of_a_charter_fit_together_up_to_a_drift_of_six_tenths() {
        for (ppm, millis, count) in
            [(0, 100, 1), (1_000, 1_000, 3), (100_000, 5_000, 5), (300_000, 60_000, 7), (599_999, 2_000, 3)]
        {
            let bound = Bound::Drift(Drift::from_ppm(ppm).unwrap());
            let body = Body {
                quorums: Quorums::majority((0..count).map(NodeId).collect()).unwrap(),
                clocks: Clockwork { bound, tick: LocalSpan::from_nanos(1) },
                longest_lease: Span::from_millis(millis),
                stores: Default::default(),
                barred: Default::default(),
            };
            assert!(settings(&body).is_some(), "{ppm} ppm, {millis} ms, {count} members");
        }
    }

    #[test]
    fn leaders_write_to_quorums_and_ask_quorums_whatever_the_rule() {
        let members = |count| (0..count).map(NodeId).collect::<Vec<_>>();
        for (count, rule) in
            [(1, "majority"), (4, "majority"), (5, "majority"), (6, "grid:2x3"), (9, "grid:3x3")]
                .into_iter()
                .chain([(3, "weights:3,1,1"), (3, "list:01,12,02")])
        {
            let quorums = Quorums::parse(rule, members(count)).unwrap();
            let access = access(&quorums).unwrap();
            for set in (0..1 << count).map(NodeSet::from_bits) {
                let suffices = quorums.is_quorum(set);
                assert_eq!(
                    (access.is_write(set), access.is_read(set)),
                    (suffices, suffices),
                    "{rule}: {set:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_shown_rises_with_the_charter_then_with_the_serial_and_differs_by_process() {
        let shown =
            |charter, serial, process| shown_epoch(Epoch(charter), Leadership::of(serial, NodeId(process)));
        let rising = [
            shown(0, 1, u64::MAX),
            shown(0, 2, 0),
            shown(0, 2, 1),
            shown(0, u64::MAX, 7),
            shown(1, 1, 0),
            shown(Epoch(1).next_era().0, 0, 0),
        ];
        assert!(rising.is_sorted_by(|one, next| one < next), "{rising:?}");
    }

    #[test]
    fn machines_of_a_charter_with_other_bounds_are_quiet_for_as_long_as_a_leader_before_may_lead() {
        let body = |millis| Body {
            quorums: Quorums::majority((0..3).map(NodeId).collect()).unwrap(),
            clocks: Clockwork {
                bound: Bound::Drift(Drift::from_ppm(1_000).unwrap()),
                tick: LocalSpan::from_nanos(1),
            },
            longest_lease: Span::from_millis(millis),
            stores: Default::default(),
            barred: Default::default(),
        };
        let quiet = |before: Option<Body>| {
            let (epoch, lineage) = (Epoch(1), tenure_proto::strong::epoch::Lineage::founding(0));
            quiet(&Charter { epoch, lineage, body: body(100), before, floor: Term(0) })
        };
        assert_eq!([quiet(None), quiet(Some(body(100)))], [LocalSpan::ZERO; 2]);
        assert_eq!(quiet(Some(body(5_000))), Span::from_millis(5_000).nominal());
    }
}
