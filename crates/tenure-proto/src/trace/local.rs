//! Events of the machines of local groups, written and read back.
//!
//! ```text
//! local-start own=5s common=5s group=g7 members=n1,n2,n3 majority=no drift=1000ppm lock=90ms kappa-leader=… kappa-support=… constants=1745…
//! local-locked own=5.2s common=5.2s group=g7 to=0 request=1/8 until=5.29s received=5.2s
//! local-leads own=5.201s common=5.201s group=g7 request=1/8 supporters=0,1 until=5.289s renewed=no
//! local-stepped own=5.25s common=5.25s group=g7 turn=0
//! local-end own=6s common=6s group=g7
//! ```
//!
//! Positions are those of `members` in the last `local-start` of the group: machines begin anew
//! with every epoch. Events of single datagrams are not written: there are too many, and without
//! the sender's clock nobody could judge them.

use super::read::{Fields, Problem};
use super::value::Value;
use super::write::Entry;
use crate::local::{Config, Event, Lease, Lock, RequestId, Rules, View};
use crate::time::{Drift, LocalSpan, Span};
use crate::{GroupId, NodeId};

/// How a machine of a local group begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalStart {
    /// The group.
    pub group: GroupId,
    /// Its members: sets are of positions in here.
    pub members: Vec<NodeId>,
    /// Whether more than half of them must support a leader.
    pub majority: bool,
    /// The assumed bound on clocks.
    pub drift: Drift,
    /// For how long a supporter is bound.
    pub lock: LocalSpan,
    /// How long a stable partition may be without a leader.
    pub kappa_leader: Span,
    /// The time after which a process that is connected to a leader supports it.
    pub kappa_support: Span,
    /// All constants, mixed into one number: machines that differ in it do not hear each other.
    pub constants: u64,
}

impl LocalStart {
    /// The entry for a checked configuration.
    pub fn new<R: Rules>(group: GroupId, config: &Config<R>) -> Self {
        let (settings, constants) = (config.settings(), config.constants());
        Self {
            group,
            members: settings.members.clone(),
            majority: settings.majority,
            drift: settings.timing.drift,
            lock: constants.lock,
            kappa_leader: constants.kappa_leader,
            kappa_support: constants.kappa_support,
            constants: constants.fingerprint,
        }
    }
}

impl Entry<'_> {
    pub(super) fn local_start(&mut self, start: &LocalStart) {
        let LocalStart { group, members, majority, drift, lock, kappa_leader, kappa_support, constants } =
            start;
        self.begin("local-start").put("group", group).put("members", members).put("majority", majority);
        self.put("drift", drift).put("lock", lock).put("kappa-leader", kappa_leader);
        self.put("kappa-support", kappa_support).put("constants", constants);
    }

    /// Writes an event that a machine has published. Of a datagram that came nothing is written but
    /// the kind.
    pub(super) fn local_event(&mut self, group: GroupId, event: &Event) {
        self.begin(kind(event)).put("group", &group);
        match event {
            Event::Heard { from, .. } => _ = self.put("from", from),
            Event::Asked { request, alive, collate } => {
                self.put("request", request).put("alive", alive).put("collate", collate);
            }
            Event::Locked { lock, received } => {
                let Lock { to, request, until } = lock;
                self.put("to", to).put("request", request).put("until", until);
                self.put("received", received);
            }
            Event::Declined { asker } => _ = self.put("asker", asker),
            Event::Leads { lease, renewed } => {
                let Lease { request, supporters, until } = lease;
                self.put("request", request).put("supporters", supporters).put("until", until);
                self.put("renewed", renewed);
            }
            Event::Failed { request } | Event::Released { request } => _ = self.put("request", request),
            Event::Freed { to } => _ = self.put("to", to),
            Event::Stepped { turn } => _ = self.put("turn", turn),
            Event::Members(View { leader, members, until }) => {
                self.put("leader", leader).put("members", members).put("until", until);
            }
            Event::Silent { until } => _ = self.put("until", until),
        }
    }
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Heard { .. } => "local-heard",
        Event::Asked { .. } => "local-asked",
        Event::Locked { .. } => "local-locked",
        Event::Declined { .. } => "local-declined",
        Event::Leads { .. } => "local-leads",
        Event::Failed { .. } => "local-failed",
        Event::Released { .. } => "local-released",
        Event::Freed { .. } => "local-freed",
        Event::Stepped { .. } => "local-stepped",
        Event::Members(_) => "local-members",
        Event::Silent { .. } => "local-silent",
    }
}

pub(super) fn start(fields: &Fields<'_>) -> Result<LocalStart, Problem> {
    Ok(LocalStart {
        group: fields.get("group")?,
        members: fields.get("members")?,
        majority: fields.get("majority")?,
        drift: fields.get("drift")?,
        lock: fields.get("lock")?,
        kappa_leader: fields.get("kappa-leader")?,
        kappa_support: fields.get("kappa-support")?,
        constants: fields.get("constants")?,
    })
}

/// An event that a machine has published; `None` if the kind is not known.
pub(super) fn event(fields: &Fields<'_>) -> Result<Option<Event>, Problem> {
    Ok(Some(match fields.kind {
        "local-asked" => Event::Asked {
            request: fields.get("request")?,
            alive: fields.get("alive")?,
            collate: fields.get("collate")?,
        },
        "local-locked" => Event::Locked {
            lock: Lock {
                to: fields.get("to")?,
                request: fields.get("request")?,
                until: fields.get("until")?,
            },
            received: fields.get("received")?,
        },
        "local-declined" => Event::Declined { asker: fields.get("asker")? },
        "local-leads" => Event::Leads {
            lease: Lease {
                request: fields.get("request")?,
                supporters: fields.get("supporters")?,
                until: fields.get("until")?,
            },
            renewed: fields.get("renewed")?,
        },
        "local-failed" => Event::Failed { request: fields.get("request")? },
        "local-released" => Event::Released { request: fields.get("request")? },
        "local-freed" => Event::Freed { to: fields.get("to")? },
        "local-stepped" => Event::Stepped { turn: fields.get("turn")? },
        "local-members" => Event::Members(View {
            leader: fields.get("leader")?,
            members: fields.get("members")?,
            until: fields.get("until")?,
        }),
        "local-silent" => Event::Silent { until: fields.get("until")? },
        _ => return Ok(None),
    }))
}

impl Value for RequestId {
    const WANTED: &'static str = "a request such as 3/8: life, number";
    fn put(&self, out: &mut String) {
        self.incarnation.put(out);
        out.push('/');
        self.number.put(out);
    }
    fn get(word: &str) -> Option<Self> {
        let (incarnation, number) = word.split_once('/')?;
        Some(Self { incarnation: Value::get(incarnation)?, number: Value::get(number)? })
    }
}
