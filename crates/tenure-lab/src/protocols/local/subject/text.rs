//! Local leadership in words.

use tenure_proto::NodeId;
use tenure_proto::local::{Body, Datagram, Event};
use tenure_proto::quorum::NodeSet;

pub(crate) fn names(set: NodeSet) -> String {
    let names: Vec<String> = set.positions().map(|position| format!("n{position}")).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(" ") }
}

pub(super) fn message(message: &Datagram) -> String {
    match message.body {
        Body::Election { request, alive, collate, members } => {
            let how = if collate { ", along the tree" } else { "" };
            let leads =
                if members.is_empty() { String::new() } else { format!(", leading {}", names(members)) };
            format!("request {}{how}: alive are {}{leads}", request.number, names(alive))
        }
        Body::Reply { root, request, answered, support } => format!(
            "to request {} of {root}: {} answer, {} support it",
            request.number,
            names(answered),
            names(support)
        ),
        Body::Release { request } => format!("all bound by request {} are free", request.number),
        Body::Helper => "stamps alone".to_owned(),
    }
}

pub(super) fn event(node: NodeId, event: &Event) -> String {
    match event {
        Event::Heard { from, bound, fast, .. } => {
            let bound = bound.map_or("anything".to_owned(), |bound| format!("at most {bound}"));
            format!("{node} hears {from}, {}: {bound} on its way", if *fast { "fast" } else { "slow" })
        }
        Event::Asked { request, alive, collate } => {
            let how = if *collate { ", along the tree" } else { "" };
            format!("{node} asks all with request {}{how}; alive are {}", request.number, names(*alive))
        }
        Event::Locked { lock, .. } => format!(
            "{node} is bound to n{} by request {} until {} on its clock",
            lock.to, lock.request.number, lock.until
        ),
        Event::Declined { asker } => format!("{node} does not support {asker}"),
        Event::Leads { lease, renewed } => {
            let verb = if *renewed { "leads on" } else { "leads" };
            format!("{node} {verb} {} until {} on its clock", names(lease.supporters), lease.until)
        }
        Event::Failed { request } => format!("{node} has failed with request {}", request.number),
        Event::Released { request } => format!("{node} frees whom request {} has bound", request.number),
        Event::Freed { to } => format!("{node} is free of {to}"),
        Event::Stepped { turn } => format!("{node} leads no more, turn {turn}"),
        Event::Members(view) => {
            format!("{node} knows that {} leads {}", view.leader, names(view.members))
        }
        Event::Silent { until } => format!("{node} supports nobody until {until} on its clock"),
    }
}
