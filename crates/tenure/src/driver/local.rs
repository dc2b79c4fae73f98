//! Groups of kind `local`: each has a machine of its own on every member that takes part, for as
//! long as somebody there holds a handle of it.
//!
//! Nothing is kept over a restart: a machine that is started supports nobody for the length of its
//! lock, and so breaks no promise of an earlier life, as long as that went by the same constants. A
//! promise of an earlier machine of this process, by whatever constants, is remembered. The members
//! are those of the cluster's charter; where the charter changes, machines begin anew.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::local::{Command, Config, Event, Local, Promise, Settings, Sound, Timing, View};
use tenure_proto::strong::epoch::{Charter, Epoch};
use tenure_proto::time::{Drift, LocalSpan, Span};
use tenure_proto::trace::LocalStart;
use tenure_proto::{Boot, BootKind, GroupId, Incarnation, Input, LocalTime, NodeId};
use tokio::sync::{mpsc, oneshot, watch};

use super::hosted::{Hosted, Outcome};
use super::{By, Driver, For};
use crate::chance;
use crate::clock::{Reading, nanos};
use crate::error::KindError;
use crate::local::{Locality, Partition, Surroundings};
use crate::name::GroupName;
use crate::wire::{Item, LocalTalk};

/// How often it is looked whether anybody still holds a handle.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A user who wants to take part.
pub(crate) struct LocalOrder {
    pub(crate) group: GroupName,
    pub(crate) how: Locality,
    pub(crate) reply: oneshot::Sender<Result<Joined, KindError>>,
}

/// The handles that a user gets.
pub(crate) struct Joined {
    pub(crate) surroundings: watch::Receiver<Surroundings>,
    pub(crate) held: mpsc::Sender<()>,
}

struct Group {
    name: GroupName,
    how: Locality,
    /// The epoch of the cluster whose members these are.
    charter: Epoch,
    machine: Hosted<Local>,
    shown: watch::Sender<Surroundings>,
    /// When the request was made that is under way.
    asked: LocalTime,
    /// Handles hold the other ends.
    held: mpsc::WeakSender<()>,
    look_at: LocalTime,
}

/// All local groups here.
#[derive(Default)]
pub(super) struct LocalGroups {
    groups: BTreeMap<GroupId, Group>,
    /// Until when machines that are gone had bound this process: the next one of the group supports
    /// nobody before that.
    owed: BTreeMap<GroupId, LocalTime>,
}

impl LocalGroups {
    pub(super) fn next_wake(&self) -> Option<LocalTime> {
        let wakes = |group: &Group| {
            let known = group.shown.borrow().partition.as_ref().map(|(_, until)| *until);
            [group.machine.next_deadline(), known, Some(group.look_at)]
        };
        self.groups.values().flat_map(wakes).flatten().min()
    }

    /// Nobody leads by this node any more: handles must not go by what was shown last.
    pub(super) fn disown(&self) {
        self.groups.values().for_each(|group| _ = group.shown.send_replace(Surroundings::default()));
    }

    /// How a group's next machine begins: in a life of its own, so that nobody takes its first
    /// datagrams for repeated ones of the machine before it, and bound for as long as that one was.
    fn boot(&mut self, id: GroupId, config: &Config, now: LocalTime) -> Boot<Promise> {
        self.remember(id);
        self.owed.retain(|_, until| *until > now);
        let (tick, lock) = (config.settings().timing.tick, config.constants().lock);
        let owed = self.owed.get(&id).copied().unwrap_or(LocalTime::ZERO);
        let promise = Promise { lock: None, silent_until: now.after(tick).after(lock).max(owed) };
        let kind = BootKind::SameBoot { remembered: vec![promise] };
        Boot { incarnation: Incarnation(chance::wide()), durable: Vec::new(), kind }
    }

    /// The rest of a machine that is gone, or is about to be.
    fn remember(&mut self, id: GroupId) {
        if let Some(group) = self.groups.get(&id) {
            let owed = self.owed.entry(id).or_insert(LocalTime::ZERO);
            *owed = group.machine.machine().bound_until().max(*owed);
        }
    }

    fn which(&self, wanted: impl Fn(&Group) -> bool) -> Vec<GroupId> {
        self.groups.iter().filter(|(_, group)| wanted(group)).map(|(id, _)| *id).collect()
    }
}

/// The machine's constants. A setting that is left open becomes the least that the rest allows.
fn settings(how: &Locality, charter: &Charter) -> Result<Config, KindError> {
    let refuse = |reason: String| KindError::Refused { reason };
    let drift = Drift::from_ppm(how.drift_ppm).ok_or_else(|| refuse("rho < 1 does not hold".to_owned()))?;
    let span = |length: Duration| Span::from_nanos(nanos(length));
    let timing = Timing {
        drift,
        tick: charter.body.clocks.tick,
        delay: span(how.delay),
        least_delay: span(how.least_delay),
        fast: how.fast.map_or(span(how.delay), span),
        hole: span(how.hole),
        pace: how.pace.map_or(LocalSpan::from_nanos(1_000_000), |pace| span(pace).nominal()),
    };
    let settings = |timing: Timing| Settings {
        members: charter.members().to_vec(),
        timing,
        expires: None,
        lock: None,
        majority: how.majority,
        turn: how.turn.map(span),
        tree: how.tree,
        rules: Sound,
    };
    match settings(timing).validate() {
        Ok(config) => Ok(config),
        // The nearest set that holds has a longer EP, and the Δ that it needs.
        Err(refused) => match refused.slower.as_deref() {
            Some(slower)
                if (how.pace.is_none() || slower.pace == timing.pace)
                    && (how.fast.is_none() || slower.fast == timing.fast) =>
            {
                settings(*slower).validate().map_err(|refused| refuse(refused.to_string()))
            }
            _ => Err(refuse(refused.to_string())),
        },
    }
}

impl Driver {
    pub(super) fn on_local_order(&mut self, order: LocalOrder) {
        let LocalOrder { group, how, reply } = order;
        let _ = reply.send(self.join_local(group, how));
    }

    fn join_local(&mut self, name: GroupName, how: Locality) -> Result<Joined, KindError> {
        let charter = self.machine.as_ref().map(|machine| machine.charter().clone());
        let role = self.config.role.name();
        let charter = charter.filter(|charter| charter.members().contains(&self.me));
        let charter = charter.ok_or(KindError::NotAMember { role })?;
        if let Some(group) = self.local.groups.get(&name.id())
            && let Some(held) = group.held.upgrade()
        {
            return match group.how == how && group.name == name {
                true => Ok(Joined { surroundings: group.shown.subscribe(), held }),
                false => Err(KindError::Refused {
                    reason: "this process already takes part, with other assumptions".to_owned(),
                }),
            };
        }
        let (id, config) = (name.id(), settings(&how, &charter)?);
        let _ = self.learn_group(name.clone(), (By::Cluster, For::Question));
        let at = self.clock.reading();
        let (machine, outcome) = self.start_local(id, &config, at);
        let (shown, surroundings) = watch::channel(Surroundings::default());
        let (held, other_end) = mpsc::channel(1);
        drop(other_end);
        let (held_by, look_at) = (held.downgrade(), self.now().after(span(LOOK_EVERY)));
        let charter = charter.epoch;
        self.local.groups.insert(
            id,
            Group { name, how, charter, machine, shown, asked: LocalTime::ZERO, held: held_by, look_at },
        );
        self.show_local(id, outcome, at);
        Ok(Joined { surroundings, held })
    }

    fn start_local(
        &mut self,
        id: GroupId,
        config: &Config,
        at: Reading,
    ) -> (Hosted<Local>, Vec<Outcome<Local>>) {
        if let Some(trace) = &self.trace {
            trace.local_start(at, LocalStart::new(id, config));
        }
        Hosted::start(config, self.me, self.local.boot(id, config, at.own), at.own)
    }

    /// Takes no part any more.
    fn end_local(&mut self, id: GroupId, at: Reading) {
        self.local.remember(id);
        let Some(group) = self.local.groups.remove(&id) else { return };
        group.shown.send_replace(Surroundings::default());
        if let Some(trace) = &self.trace {
            trace.local_end(at, id);
        }
    }

    pub(super) fn on_local_talk(&mut self, from: NodeId, said: LocalTalk, received: LocalTime) {
        let at = self.clock.reading();
        let Some(group) =
            self.local.groups.get_mut(&said.group.id()).filter(|group| group.name == said.group)
        else {
            return;
        };
        let message = said.datagram;
        let outcome = group.machine.step(Input::Message { from, received, message }, at.own);
        self.show_local(said.group.id(), outcome, at);
    }

    pub(super) fn on_resign_local(&mut self, id: GroupId) {
        let at = self.clock.reading();
        let Some(group) = self.local.groups.get_mut(&id) else { return };
        let outcome = group.machine.step(Input::Command(Command::Resign), at.own);
        self.show_local(id, outcome, at);
    }

    pub(super) fn on_local_time(&mut self, now: LocalTime) {
        for id in self.local.which(|group| group.look_at <= now) {
            let Some(group) = self.local.groups.get_mut(&id) else { continue };
            group.look_at = now.after(span(LOOK_EVERY));
            if group.held.upgrade().is_none() {
                self.on_resign_local(id);
                self.end_local(id, self.clock.reading());
            }
        }
        for id in self.local.which(|group| group.machine.next_deadline().is_some_and(|at| at <= now)) {
            let at = self.clock.reading();
            let Some(group) = self.local.groups.get_mut(&id) else { continue };
            let outcome = group.machine.step(Input::Deadline, at.own);
            self.show_local(id, outcome, at);
        }
        for group in self.local.groups.values() {
            let is_over =
                |shown: &Surroundings| shown.partition.as_ref().is_some_and(|(_, until)| *until <= now);
            group.shown.send_if_modified(|shown| {
                let over = is_over(shown);
                if over {
                    *shown = Surroundings::default();
                }
                over
            });
        }
    }

    /// Other members, other machines. A process that is no longer a member takes no part. `at` is
    /// when the charter was adopted: lines of a trace stand in the order of their readings.
    pub(super) fn renew_local(&mut self, at: Reading) {
        let Some(charter) = self.machine.as_ref().map(|machine| machine.charter().clone()) else { return };
        for id in self.local.which(|group| group.charter != charter.epoch) {
            self.restart_local(id, &charter, at);
        }
    }

    /// The clock went back: a lease would last longer by that than those believe who support it.
    /// Promises to others are kept.
    pub(super) fn forget_local(&mut self) {
        let Some(charter) = self.machine.as_ref().map(|machine| machine.charter().clone()) else { return };
        for id in self.local.which(|_| true) {
            self.restart_local(id, &charter, self.clock.reading());
        }
    }

    fn restart_local(&mut self, id: GroupId, charter: &Charter, at: Reading) {
        let Some(group) = self.local.groups.get(&id) else { return };
        let config = settings(&group.how, charter).ok();
        let Some(config) = config.filter(|_| charter.members().contains(&self.me)) else {
            return self.end_local(id, at);
        };
        let (machine, outcome) = self.start_local(id, &config, at);
        if let Some(group) = self.local.groups.get_mut(&id) {
            (group.machine, group.charter) = (machine, charter.epoch);
            group.shown.send_replace(Surroundings::default());
        }
        self.show_local(id, outcome, at);
    }

    /// The outcome of a step: first on paper, then to others.
    fn show_local(&mut self, id: GroupId, outcome: Vec<Outcome<Local>>, at: Reading) {
        if let Some(trace) = &self.trace {
            for outcome in &outcome {
                if let Outcome::Show(event) = outcome {
                    trace.local(at, id, event);
                }
            }
        }
        for outcome in outcome {
            let Some(group) = self.local.groups.get(&id) else { return };
            match outcome {
                Outcome::Say(to, datagram) => {
                    let item = Item::Local(LocalTalk { group: group.name.clone(), datagram });
                    self.net.send(to, &item);
                }
                Outcome::Show(Event::Heard { .. }) => {} // Too many, and nobody waits for them.
                Outcome::Show(event) => {
                    self.note_round(id, &event);
                    self.look_around(id);
                }
            }
        }
    }

    /// How long rounds take, for those who measure.
    fn note_round(&mut self, id: GroupId, event: &Event) {
        let now = self.now();
        let Some(group) = self.local.groups.get_mut(&id) else { return };
        match event {
            Event::Asked { alive, collate, .. } => {
                group.asked = now;
                tracing::debug!(name: "tenure.local_asks", node = %self.name, group = %group.name, alive = alive.len(), collated = *collate, "asks for support");
            }
            Event::Leads { lease, .. } => {
                let took_ns = now.remaining(group.asked).as_nanos();
                tracing::debug!(name: "tenure.local_leads", node = %self.name, group = %group.name, took_ns, supporters = lease.supporters.len(), "leads its partition");
            }
            _ => {}
        }
    }

    /// Shows what the machine knows now.
    fn look_around(&mut self, id: GroupId) {
        let now = self.now();
        let Some(group) = self.local.groups.get(&id) else { return };
        let machine = group.machine.machine();
        let known = machine.view(now).and_then(|view| self.partition(machine, view));
        let leads = machine.lease(now).map(|lease| lease.until);
        let before = group.shown.borrow().partition.as_ref().map(|(partition, _)| partition.clone());
        if let Some((partition, _)) = known.as_ref().filter(|(now, _)| Some(now) != before.as_ref()) {
            tracing::info!(name: "tenure.partition", node = %self.name, group = %group.name, leader = %partition.leader, members = partition.members.len(), "is in another partition");
        }
        group.shown.send_replace(Surroundings { partition: known, leads });
    }

    fn partition(&self, machine: &Local, view: View) -> Option<(Partition, LocalTime)> {
        let leader = self.net.name(view.leader)?;
        let names = machine.names(view.members).into_iter().map(|node| self.net.name(node));
        let mut members = names.collect::<Option<Vec<_>>>()?;
        members.sort();
        Some((Partition { leader, members }, view.until))
    }
}

fn span(length: Duration) -> LocalSpan {
    LocalSpan::from_nanos(nanos(length))
}

#[cfg(test)]
mod tests {
    use tenure_proto::quorum::Quorums;
    use tenure_proto::strong::epoch::Body;
    use tenure_proto::time::{Bound, Clockwork};

    use super::*;

    fn at(millis: u64) -> LocalTime {
        LocalTime::from_nanos(millis * 1_000_000)
    }

    fn charter() -> std::sync::Arc<Charter> {
        let bound = Bound::Drift(Drift::from_ppm(1_000).unwrap());
        let body = Body {
            quorums: Quorums::majority(vec![NodeId(1)]).unwrap(),
            clocks: Clockwork { bound, tick: LocalSpan::from_nanos(1) },
            longest_lease: Span::from_millis(1_000),
            stores: Default::default(),
            barred: Default::default(),
        };
        Charter::founding(body)
    }

    /// A group whose machine is bound until then.
    fn bound_until(until: LocalTime, config: &Config) -> Group {
        let kind = BootKind::SameBoot { remembered: vec![Promise { lock: None, silent_until: until }] };
        let boot = Boot { incarnation: Incarnation(1), durable: Vec::new(), kind };
        let (machine, _) = Hosted::start(config, NodeId(1), boot, at(0));
        Group {
            name: GroupName::new("lights").unwrap(),
            how: Locality::default(),
            charter: charter().epoch,
            machine,
            shown: watch::channel(Surroundings::default()).0,
            asked: LocalTime::ZERO,
            held: mpsc::channel(1).0.downgrade(),
            look_at: LocalTime::ZERO,
        }
    }

    fn silent_until(boot: &BootKind<Promise>) -> LocalTime {
        let BootKind::SameBoot { remembered } = boot else { panic!("it has forgotten") };
        remembered[0].silent_until
    }

    #[test]
    fn a_machine_supports_nobody_while_the_one_before_it_was_bound_though_its_own_lock_is_shorter() {
        let (id, config) = (GroupId(7), settings(&Locality::default(), &charter()).unwrap());
        let mut local = LocalGroups::default();
        local.groups.insert(id, bound_until(at(9_000), &config));
        let first = local.boot(id, &config, at(1_000));
        assert_eq!(silent_until(&first.kind), at(9_000));
        local.groups.remove(&id);
        let second = local.boot(id, &config, at(2_000));
        assert_eq!(silent_until(&second.kind), at(9_000), "it is remembered though the group is gone");
        assert_ne!(first.incarnation, second.incarnation);
        let own = at(9_500).after(LocalSpan::from_nanos(1)).after(config.constants().lock);
        assert_eq!(silent_until(&local.boot(id, &config, at(9_500)).kind), own);
        assert!(local.owed.is_empty(), "what is over is forgotten");
    }
}
