//! How this node is, for those who ask.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::strong::epoch::Charter;
use tenure_proto::strong::{Event, GrantRequest, Kind};
use tenure_proto::time::{Bound, Span};
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};

use super::Driver;
use super::observers::is_known_to_lead;
use crate::board::{Facts, GrantFacts, Heard};
use crate::config::ClockBound;
use crate::status::{CharterStatus, NotReady, PeerStatus, Status};
use crate::timing::Timings;

/// The most processes besides the members that are told of.
const MOST_OTHERS: usize = 100;

/// How often at most the driver looks how it is, however many ask, in nanoseconds.
const STATUS_EVERY: u64 = 5_000_000;

/// A look is followed by at least so many times its own length in which there is none.
const STATUS_SHARE: u64 = 19;

/// When to look again, after a look between these two readings.
///
/// A status has parts that only the driver has, so the driver copies them: a constant number of
/// fields, the members (64 at most) and [`MOST_OTHERS`] processes, each found in a tree. Groups are
/// not among them ([`Board`](crate::board::Board)), nor is anything else that outsiders can make
/// many of. That takes tens of microseconds. On a machine so slow, or so busy, that it takes
/// longer, looks become rarer: those who ask can never take more than a twentieth of the driver's
/// time.
fn next_status(began: LocalTime, ended: LocalTime) -> LocalTime {
    let pause = ended.remaining(began).as_nanos().saturating_mul(STATUS_SHARE).max(STATUS_EVERY);
    LocalTime::from_nanos(ended.as_nanos().saturating_add(pause))
}

impl Driver {
    /// How this node is.
    pub(super) fn status(&self) -> Status {
        let now = self.now();
        let charter = self.machine.as_ref().map(|machine| machine.charter());
        let not_ready = self.not_ready(now);
        let silent_for = not_ready.iter().find_map(|why| match why {
            NotReady::Silent { left } => Some(*left),
            _ => None,
        });
        Status {
            name: self.name.clone(),
            cluster: self.cluster,
            role: self.config.role,
            incarnation: self.incarnation,
            epoch: charter.map(|charter| charter.epoch),
            charter: charter.map(|charter| self.charter_status(charter)),
            members: self.members().into_iter().filter_map(|member| self.net.name(member)).collect(),
            is_member: charter.is_some_and(|charter| charter.has(self.me)),
            ready: not_ready.is_empty(),
            not_ready,
            silent_for,
            lease: self.config.lease(),
            led: self.campaigns.led(),
            tally: self.tally,
            leaders: self.measuring.heard,
            timings: Timings { store_writes: self.persistence.timing(), ..self.stopwatch.timings },
            traffic: self.net.traffic(),
            sessions: self.net.sessions.counters(),
            peers: self.net.sessions.peers(),
            peers_known: self.peers_known(now),
            persisted: self.persistence.persisted,
            terms: self.term_status(now),
        }
    }

    fn charter_status(&self, charter: &Charter) -> CharterStatus {
        let pending = self.machine.as_ref().is_some_and(|machine| machine.pending_change().is_some());
        CharterStatus {
            lineage: charter.lineage.to_string(),
            quorums: charter.body.quorums.to_string(),
            bound: match charter.body.clocks.bound {
                Bound::Drift(drift) => ClockBound::Drift { ppm: drift.as_ppm() },
                Bound::Skew(bound) => ClockBound::Skew { bound: Duration::from_nanos(bound.as_nanos()) },
            },
            longest_lease: Duration::from_nanos(charter.body.longest_lease.as_nanos()),
            changing: pending || self.questions.is_changing(),
        }
    }

    /// Members first, then others, each by name.
    fn peers_known(&self, now: LocalTime) -> Vec<PeerStatus> {
        let members: BTreeSet<NodeId> = self.members().into_iter().collect();
        let others = self.net.sessions.known().filter(|peer| !members.contains(peer));
        let others = others.take(MOST_OTHERS).map(|peer| (peer, false));
        let all = members.iter().map(|member| (*member, true)).chain(others);
        let mut known: Vec<PeerStatus> =
            all.filter_map(|(peer, is_member)| self.peer_status(peer, is_member, now)).collect();
        known.sort_by(|one, other| (!one.is_member, &one.name).cmp(&(!other.is_member, &other.name)));
        known
    }

    fn peer_status(&self, peer: NodeId, is_member: bool, now: LocalTime) -> Option<PeerStatus> {
        let (is_me, sessions) = (peer == self.me, &self.net.sessions);
        let past = |at: LocalTime| Duration::from_nanos(now.remaining(at).as_nanos());
        let heard_from = || sessions.address(peer).map(|address| address.to_string());
        Some(PeerStatus {
            name: self.net.name(peer)?,
            address: self.net.addresses.written_address(peer).map(str::to_owned).or_else(heard_from),
            store: self.store_of(peer),
            condemned: self.store_of(peer).is_some_and(|store| self.kin.is_condemned(store)),
            is_member,
            is_me,
            has_session: sessions.has_session(peer),
            answers: is_me || self.net.answers(peer),
            heard: sessions.heard_at(peer).map(past),
            round_trip: self.watchdog.round_trip(peer).map(Duration::from_nanos),
            clock_trusted: self.watchdog.trusts(peer),
        })
    }

    /// Something about a group is to be written on the board.
    pub(super) fn touch(&mut self, group: GroupId) {
        self.dirty.insert(group);
    }

    /// Writes down what changed about groups in this turn. Nobody is waited for: if somebody reads
    /// the board at this moment, a later turn does it. A name that was only asked about is not yet
    /// a group.
    pub(super) fn show_groups(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let board = self.board.clone();
        let Some(mut pen) = board.try_write() else { return };
        let now = self.now();
        for name in self.erased.drain(..) {
            pen.erase(&name);
        }
        for group in std::mem::take(&mut self.dirty) {
            let Some((name, row)) = self.registry.shown(group) else { continue };
            let facts = self.facts(group, now);
            if let Some(row) = row {
                pen.rewrite(name, row, facts, now);
                continue;
            }
            let heard_of = |heard: &Heard| heard.proclaimed.is_some() || heard.tells_of_a_leader();
            let is_told =
                facts.led.is_some() || facts.grant.is_some() || facts.heard.as_deref().is_some_and(heard_of);
            if is_told || self.registry.is_election(group) {
                let row = pen.add(name, Facts { used: now, ..facts });
                self.registry.set_row(group, row);
            }
        }
    }

    fn facts(&self, id: GroupId, now: LocalTime) -> Facts {
        let machine = self.machine.as_ref();
        let until = machine.and_then(|machine| machine.leadership(id, now));
        let grant = machine.and_then(|machine| Some((machine, machine.grant(id)?)));
        Facts {
            led: until.and_then(|until| Some((self.campaigns.term_of(id)?, until))),
            grant: grant.map(|(machine, grant)| GrantFacts {
                holder: self.net.name(grant.holder.node),
                term: grant.term,
                until: grant.until,
                leads: is_known_to_lead(machine, id, self.observers.word(id), grant, now),
            }),
            is_campaigning: self.campaigns.campaigns_for(id),
            used: LocalTime::ZERO,
            heard: self.heard(id, now).map(Box::new),
        }
    }

    fn heard(&self, id: GroupId, now: LocalTime) -> Option<Heard> {
        let quorums = self.machine.as_ref().map(|machine| &machine.charter().body.quorums);
        let told = quorums.and_then(|quorums| self.observers.judged(id, quorums, now));
        let told = told.map(|judged| (judged.state.named(|node| self.net.name(node)), judged.until));
        let proclaimed = self.observers.newest_edict(id);
        (told.is_some() || proclaimed.is_some()).then_some(Heard { told, proclaimed })
    }

    /// Shows an event. A renewal moves the end of a lease, where the group is shown already;
    /// everything else is written down at the end of the turn.
    pub(super) fn show(&mut self, event: &Event, now: LocalTime) {
        let (group, is_noted) = match event {
            Event::Granted {
                request: GrantRequest { group, kind, term, start, lease, .. }, until, ..
            } => {
                self.note_led_until(*group, (*start, *lease), now);
                let row = self.registry.row(*group).filter(|_| *kind == Kind::Renew);
                (group, row.is_some_and(|row| row.grants_on(*term, *until)))
            }
            Event::Leads { group, kind, term, until, .. } => {
                let row = self.registry.row(*group).filter(|_| *kind == Kind::Renew);
                (group, row.is_some_and(|row| row.leads_on(*term, *until)))
            }
            Event::Freed { group, .. } | Event::Lost { group, .. } => (group, false),
            _ => return,
        };
        if !is_noted {
            self.touch(*group);
        }
    }

    /// Notes until when the holder of a new grant leads at least, for those who watch. An eighth is
    /// left for the way of the request, and of the report.
    fn note_led_until(&mut self, group: GroupId, (start, lease): (LocalTime, Span), now: LocalTime) {
        let Some(machine) = &self.machine else { return };
        let end = machine.charter().body.clocks.led_at_least(start, now, lease);
        self.registry.note_led_until(group, now.after(end.remaining(now).fraction(7, 8)));
    }

    /// Answers all who ask how this node is, by one look: see [`next_status`].
    pub(super) fn tell_status(&mut self, now: LocalTime) {
        if self.askers.is_empty() || now < self.status_at {
            return;
        }
        let status = Arc::new(self.status());
        for asker in self.askers.drain(..) {
            let _ = asker.send(status.clone());
        }
        self.status_at = next_status(now, self.now());
    }

    /// Ready: knows the members, is not silent, and has reached a quorum. A restart of the next
    /// node is safe then.
    pub(super) fn tell_ready(&mut self, now: LocalTime) {
        let why = self.not_ready(now);
        let ready = why.is_empty();
        self.observers.reaches(!why.iter().any(|why| matches!(why, NotReady::NoQuorum { .. })), now);
        self.ready.send_if_modified(|known| std::mem::replace(known, ready) != ready);
    }

    /// The reasons why it is not.
    fn not_ready(&self, now: LocalTime) -> Vec<NotReady> {
        let Some(machine) = &self.machine else {
            let refused = self.kin.refused.map(|lineage| NotReady::OtherLineage { lineage });
            let key = self.key_refusal().map(|why| NotReady::KeyRefused { why });
            return vec![refused.or(key).unwrap_or(NotReady::NoCharter)];
        };
        let (charter, mut why) = (machine.charter(), Vec::new());
        why.extend(self.key_refusal().map(|why| NotReady::KeyRefused { why }));
        if self.config.role.grants() && !charter.has(self.me) {
            why.push(NotReady::NotAMember);
        }
        if let Some(other) = machine.split_brain() {
            why.push(NotReady::SplitBrain { lineage: other.lineage.to_string(), epoch: other.epoch });
        }
        if machine.is_mute() {
            why.push(NotReady::Mute);
        }
        let left = machine.silent_until().remaining(now).as_nanos();
        if left > 0 {
            why.push(NotReady::Silent { left: Duration::from_nanos(left) });
        }
        if let Some(epoch) = self.newest_told_epoch().filter(|told| *told > charter.epoch) {
            why.push(NotReady::Outdated { epoch });
        }
        let members = charter.members();
        // A member that was removed while it was down must not take the old members for a quorum:
        // each must have told what it goes by.
        let grants = self.config.role.grants();
        let answers = |member| self.net.answers(member) && (!grants || self.has_told_origin(member));
        let reached = |(_, member): &(usize, &NodeId)| **member == self.me || answers(**member);
        let reached: tenure_proto::quorum::NodeSet =
            members.iter().enumerate().filter(reached).map(|(position, _)| position).collect();
        if !charter.body.quorums.is_quorum(reached) {
            why.push(NotReady::NoQuorum { reached: reached.len(), members: members.len() });
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> LocalTime {
        LocalTime::from_nanos(micros * 1000)
    }

    #[test]
    fn looks_take_a_twentieth_of_the_time_at_most() {
        assert_eq!(next_status(micros(1_000), micros(1_050)), micros(1_050 + 5_000), "a short look");
        let (began, ended) = (micros(1_000), micros(3_000));
        let next = next_status(began, ended);
        assert_eq!(next, micros(3_000 + 19 * 2_000), "a long one");
        let all = next.remaining(began).as_nanos();
        assert!(ended.remaining(began).as_nanos() * 20 <= all);
        assert_eq!(next_status(micros(9), micros(5)), micros(5 + 5_000), "a clock that went back");
    }
}
