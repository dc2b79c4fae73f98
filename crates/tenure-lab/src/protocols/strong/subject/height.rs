//! How high terms rise, in the words of plays and traces.

use tenure_proto::strong::{Command, Event, HeightTalk, Term};
use tenure_proto::{GroupId, NodeId};

pub(super) fn message_kind(talk: HeightTalk) -> &'static str {
    match talk {
        HeightTalk::Ask => "ask-top",
        HeightTalk::Top(_) => "top",
    }
}

pub(super) fn message_text(talk: HeightTalk) -> String {
    match talk {
        HeightTalk::Ask => "how high are your terms?".to_owned(),
        HeightTalk::Top(top) => format!("my terms go up to {top}"),
    }
}

pub(super) fn command_text(command: &Command) -> String {
    match command {
        Command::Raise { group, above } => format!("raise {group} above {above}"),
        Command::KeyOf { node, key } => format!("key {node} {key}"),
        Command::Confirm(term) => format!("confirm {term}"),
        Command::Close => "close".to_owned(),
        _ => String::new(),
    }
}

pub(super) fn parse_command(words: &[&str]) -> Option<Command> {
    match words {
        ["raise", group, "above", above] => {
            let group = GroupId(group.strip_prefix('g')?.parse().ok()?);
            Some(Command::Raise { group, above: Term(above.parse().ok()?) })
        }
        ["key", node, key] => {
            let node = NodeId(node.strip_prefix('n')?.parse().ok()?);
            Some(Command::KeyOf { node, key: key.parse().ok()? })
        }
        ["confirm", term] => Some(Command::Confirm(Term(term.parse().ok()?))),
        ["close"] => Some(Command::Close),
        _ => None,
    }
}

pub(super) fn event_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::Implausible { by, term, known } => {
            format!("{node} doubts term {term} of {by}: it knows of {known}")
        }
        Event::Confirmed { term } => format!("{node} is told that terms may be as high as {term}"),
        Event::HeldBack { group, term, wait } => {
            format!("{node} may not have term {term} of {group}, and waits {wait}")
        }
        _ => String::new(),
    }
}
