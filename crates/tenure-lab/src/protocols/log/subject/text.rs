//! The log in words and numbers.

use tenure_proto::log::{Applied, Event, Message};
use tenure_proto::time::LocalSpan;
use tenure_proto::{NodeId, eventual, strong};

use super::{Broken, Command, Deed, Eventual, Happening, Reply, Strong, Subject, Talk, Wish};
use crate::count::Counts;
use crate::subject::constants::parse_time;
use crate::world::RealTime;

type Elected = Strong<Broken>;

/// The kinds of messages that are the log's own.
pub(super) const KINDS: &[&str] = &[
    "prepare",
    "promise",
    "accept",
    "accepted",
    "nack",
    "commit",
    "fetch",
    "learn",
    "install",
    "forward",
    "confirm",
    "confirmed",
    "ask-index",
    "index",
    "ask",
    "answer",
];

pub(super) fn message_kind(message: &Talk) -> &'static str {
    match message {
        Talk::Strong(message) => Elected::message_kind(message),
        Talk::Omega(message) => Eventual::message_kind(message),
        Talk::Tempt(_) => "tempt",
        Talk::Ask(_) => "ask",
        Talk::Answer { .. } => "answer",
        Talk::Log(message) => match message {
            Message::Prepare { .. } => "prepare",
            Message::Promise { .. } => "promise",
            Message::Accept { .. } => "accept",
            Message::Accepted { .. } => "accepted",
            Message::Nack { .. } => "nack",
            Message::Commit { .. } => "commit",
            Message::Fetch { .. } => "fetch",
            Message::Learn { .. } => "learn",
            Message::Install { .. } => "install",
            Message::Forward { .. } => "forward",
            Message::Confirm { .. } => "confirm",
            Message::Confirmed { .. } => "confirmed",
            Message::AskIndex { .. } => "ask-index",
            Message::Index { .. } => "index",
        },
    }
}

pub(super) fn message_text(message: &Talk) -> String {
    match message {
        Talk::Strong(message) => Elected::message_text(message),
        Talk::Omega(message) => Eventual::message_text(message),
        Talk::Tempt(lasts) => format!("you should lead, for {lasts}"),
        Talk::Ask(ask) => format!("asks: {}", wish_text(&ask.wish)),
        Talk::Answer { reply, .. } => match reply {
            Reply::Opened(session) => format!("session {} is open", session.0),
            Reply::Expired => "the session is closed".to_owned(),
            Reply::Saw(saw) => format!("answers {}", value_text(*saw)),
        },
        Talk::Log(message) => format!("{message:?}"),
    }
}

fn value_text(value: Option<u64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| format!("{value:x}"))
}

fn wish_text(wish: &Wish) -> String {
    match wish {
        Wish::Open { .. } => "a session".to_owned(),
        Wish::Write { session, number, write } => {
            format!("write {number} of session {}: k{} = {:x}", session.0, write.key, write.value)
        }
        Wish::Read { key } => format!("read k{key}"),
    }
}

pub(super) fn command_text(command: &Command) -> String {
    match command {
        Command::Go => "go".to_owned(),
        Command::Lie { leader, lasts } => {
            let leader = leader.map_or_else(|| "nobody".to_owned(), |leader| leader.to_string());
            format!("believe {leader} for {}", RealTime(lasts.as_nanos()))
        }
        Command::Estrange { rival, cut, lasts } => {
            let (cut, lasts) = (RealTime(cut.as_nanos()), RealTime(lasts.as_nanos()));
            format!("estranged from {rival} for {cut} of {lasts}")
        }
        Command::Do { what, at } => match what {
            Deed::Open => format!("open a session at {at}"),
            Deed::Put(key) => format!("put k{key} at {at}"),
            Deed::Get(key) => format!("get k{key} at {at}"),
        },
        Command::Strong(command) => Elected::command_text(command),
        Command::Omega(command) => Eventual::command_text(command),
    }
}

fn node(text: &str) -> Option<NodeId> {
    text.strip_prefix('n')?.parse().ok().map(NodeId)
}

fn key_name(text: &str) -> Option<u8> {
    text.strip_prefix('k')?.parse().ok()
}

/// The kind of message that this one answers, if it answers one.
pub(super) fn answers(message: &Talk) -> Option<&'static str> {
    match message {
        Talk::Log(Message::Promise { .. }) => Some("prepare"),
        Talk::Log(Message::Accepted { .. }) => Some("accept"),
        Talk::Log(Message::Confirmed { .. }) => Some("confirm"),
        Talk::Strong(message) => Elected::answers(message),
        Talk::Omega(message) => Eventual::answers(message),
        _ => None,
    }
}

/// The number of a question, and of the answer to it.
pub(super) fn number(message: &Talk) -> u64 {
    match message {
        Talk::Log(Message::Prepare { ballot, .. } | Message::Promise { ballot, .. }) => ballot.round,
        Talk::Log(Message::Accept { entries, .. }) => entries.first().map_or(0, |(slot, _)| slot.0),
        Talk::Log(Message::Accepted { slots, .. }) => slots.first().map_or(0, |slot| slot.0),
        Talk::Log(Message::Confirm { round, .. } | Message::Confirmed { round, .. }) => *round,
        Talk::Strong(message) => Elected::number(message),
        Talk::Omega(message) => Eventual::number(message),
        _ => 0,
    }
}

pub(super) fn parse_command(text: &str) -> Option<Command> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["go"] => Some(Command::Go),
        ["believe", leader, "for", lasts] => {
            let leader = match *leader {
                "nobody" => None,
                text => Some(node(text)?),
            };
            Some(Command::Lie { leader, lasts: LocalSpan::from_nanos(parse_time(lasts)?.0) })
        }
        ["estranged", "from", rival, "for", cut, "of", lasts] => {
            let span = |text: &str| parse_time(text).map(|time| LocalSpan::from_nanos(time.0));
            Some(Command::Estrange { rival: node(rival)?, cut: span(cut)?, lasts: span(lasts)? })
        }
        ["open", "a", "session", "at", at] => Some(Command::Do { what: Deed::Open, at: node(at)? }),
        ["put", key, "at", at] => Some(Command::Do { what: Deed::Put(key_name(key)?), at: node(at)? }),
        ["get", key, "at", at] => Some(Command::Do { what: Deed::Get(key_name(key)?), at: node(at)? }),
        _ => Eventual::parse_command(text)
            .map(Command::Omega)
            .or_else(|| Elected::parse_command(text).map(Command::Strong)),
    }
}

pub(super) fn event_text(node: NodeId, event: &Happening) -> String {
    match event {
        Happening::Strong(event) => Elected::event_text(node, event),
        Happening::Omega(event) => Eventual::event_text(node, event),
        Happening::Hinted(Some(leader)) => format!("{node} is told that {leader} should lead"),
        Happening::Hinted(None) => format!("{node} is told that nobody leads"),
        Happening::Asked(_) => format!("{node} wants a session"),
        Happening::Invoked { id, wish } => {
            format!("{node} begins operation {}: {}", id.number, wish_text(wish))
        }
        Happening::Returned { id, saw } => {
            format!("{node} has the answer of operation {}: {}", id.number, value_text(*saw))
        }
        Happening::Log(event) => log_text(node, event),
    }
}

fn log_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::Restore { upto, .. } => format!("{node} takes up the state after slot {upto}"),
        Event::Applied { slot, applied } => {
            let what = match applied {
                Applied::Noop => "a no-op".to_owned(),
                Applied::Opened { session, .. } => format!("session {} opened", session.0),
                Applied::Write { session, number, .. } => format!("write {number} of session {}", session.0),
                Applied::Again { session, number } => {
                    format!("write {number} of session {}, once more: not carried out", session.0)
                }
                Applied::Expired { session, number } => {
                    format!("write {number} of closed session {}: refused", session.0)
                }
            };
            format!("{node} applies slot {slot}: {what}")
        }
        Event::Done(key) => format!("{node} has applied {key:?} already"),
        Event::Refused(key) => format!("{node} refuses {key:?}"),
        Event::Readable { id } => format!("{node} answers read {id}"),
        Event::ReadNow { id } => format!("{node} looks at the state for read {id} under its lease"),
        Event::ReadStands { id } => format!("{node} answers read {id} under its lease"),
        Event::SnapshotWanted { upto } => format!("{node} makes a snapshot at slot {upto}"),
        Event::Preparing(ballot) => format!("{node} prepares ballot {ballot}"),
        Event::Leading(ballot) => format!("{node} leads in ballot {ballot}"),
        Event::Passive(ballot) => format!("{node} gives up ballot {ballot}"),
        Event::Proposed { slot, ballot } => format!("{node} proposes for slot {slot} in ballot {ballot}"),
        Event::Chosen { slot, ballot } => format!("slot {slot} is chosen in ballot {ballot}"),
        Event::Stale(ballot) => format!("{node} refuses ballot {ballot}"),
    }
}

/// The names that [`count`] knows.
pub(super) const COUNTS: &[&str] = &[
    "hints",
    "operations",
    "answers",
    "applied",
    "no-ops",
    "sessions",
    "duplicates",
    "expired",
    "reads-by-round",
    "reads-by-lease",
    "prepares",
    "leaderships",
    "chosen",
    "snapshots",
    "restores",
    "refusals",
];

pub(super) fn count(event: &Happening, counts: &mut Counts) {
    let kind = match event {
        Happening::Strong(event) => {
            if let strong::Event::Leads { .. } = **event {
                counts.add("leases");
            }
            return;
        }
        Happening::Omega(eventual::Event::Stands { .. }) => "epochs",
        Happening::Omega(_) => return,
        Happening::Hinted(_) => "hints",
        Happening::Asked(_) => return,
        Happening::Invoked { .. } => "operations",
        Happening::Returned { .. } => "answers",
        Happening::Log(event) => match event {
            Event::Applied { applied, .. } => match applied {
                Applied::Noop => "no-ops",
                Applied::Opened { .. } => "sessions",
                Applied::Write { .. } => "applied",
                Applied::Again { .. } => "duplicates",
                Applied::Expired { .. } => "expired",
            },
            Event::Readable { .. } => "reads-by-round",
            Event::ReadStands { .. } => "reads-by-lease",
            Event::Preparing(_) => "prepares",
            Event::Leading(_) => "leaderships",
            Event::Chosen { .. } => "chosen",
            Event::SnapshotWanted { .. } => "snapshots",
            Event::Restore { .. } => "restores",
            Event::Stale(_) => "refusals",
            _ => return,
        },
    };
    counts.add(kind);
}
