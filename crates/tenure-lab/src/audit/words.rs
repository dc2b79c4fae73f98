//! Lines of a trace in words, and people's names in place of numbers.

use std::collections::BTreeMap;

use tenure_proto::trace::{Decision, EdictMade, HEADER, Line, Reader, What};
use tenure_proto::{GroupId, NodeId};

use super::locals::{Told, placed, told};
use super::record::Record;
use crate::property::Mark;
use crate::protocols::local::mutants::Wrong;
use crate::protocols::local::subject::Locals;
use crate::protocols::strong::mutants::Broken;
use crate::protocols::strong::subject::Strong;
use crate::subject::Subject;
use crate::world::node_id;

/// The names of nodes and groups, as people call them.
pub(super) struct Names {
    nodes: BTreeMap<NodeId, String>,
    groups: BTreeMap<GroupId, String>,
}

impl Names {
    pub(super) fn new(record: &Record) -> Self {
        let nodes = record.lives.iter().map(|life| (life.holder.node, life.name.clone())).collect();
        Self { nodes, groups: record.groups.clone() }
    }

    /// The name of a node, or its number.
    pub(super) fn node(&self, node: NodeId) -> String {
        self.nodes.get(&node).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| node.to_string())
    }

    /// Text in which `n1` and `g1` are called by name, where they have one.
    pub(super) fn told(&self, text: &str) -> String {
        retold(text, |word| self.name(word).filter(|name| !name.is_empty()).map(str::to_owned))
    }

    fn name(&self, word: &str) -> Option<&str> {
        let number = |letter: char| word.strip_prefix(letter)?.parse().ok();
        let node = || self.nodes.get(&NodeId(number('n')?));
        let group = || self.groups.get(&GroupId(number('g')?));
        node().or_else(group).map(String::as_str)
    }
}

/// Text with some of its words replaced.
pub(super) fn retold(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let mut told = String::with_capacity(text.len());
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_part(first) {
            true => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            false => rest.find(is_part).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        told.push_str(&other(word).unwrap_or_else(|| word.to_owned()));
        rest = after;
    }
    told
}

/// A line of a local group in words.
fn local_words(mark: Mark, node: NodeId, record: &Record) -> Option<String> {
    let life = record.lives.iter().find(|life| life.locals.iter().any(|step| step.mark == mark))?;
    let upto = life.locals.iter().take_while(|step| step.mark <= mark);
    let step = upto.clone().last()?;
    let members = upto.filter(|other| other.group == step.group).filter_map(|step| match &step.told {
        Told::Start(start) => Some(&start.members),
        Told::Event(_) | Told::End => None,
    });
    let members = members.last()?;
    Some(match &step.told {
        Told::Start(_) => format!("{node} takes part in {}", step.group),
        Told::End => format!("{node} takes no part in {} any more", step.group),
        Told::Event(event) => {
            let place = node_id(members.iter().position(|member| *member == node)?);
            let text = <Locals<Wrong> as Subject>::event_text(place, &placed(event, members)?);
            format!("{}, in {}", told(&text, members), step.group)
        }
    })
}

/// A line of a file in words.
pub(super) fn line_words(bytes: &[u8], mark: Mark, record: &Record) -> String {
    let line = bytes.split(|byte| *byte == b'\n').nth(mark.line as usize - 1).unwrap_or_default();
    let alone = [HEADER.as_bytes(), b"\n", line, b"\n"].concat();
    let Some(Ok((_, Line { own, what, .. }))) = Reader::new(&alone).next() else { return String::new() };
    let node = record.writer(mark).map(|life| life.node);
    let who = node.map(|node| node.to_string()).unwrap_or_default();
    match what {
        What::Start(start) => {
            let (life, epoch) = (start.life.incarnation.0, start.charter.epoch);
            format!("{who} begins its life {life} in epoch {epoch}")
        }
        What::Event(event) => {
            node.map(|node| <Strong<Broken> as Subject>::event_text(node, &event)).unwrap_or_default()
        }
        What::LocalStart(_) | What::Local { .. } | What::LocalEnd { .. } => {
            node.and_then(|node| local_words(mark, node, record)).unwrap_or_default()
        }
        What::Edict(EdictMade { group, term, number, after, .. }) => {
            format!("{who} makes edict {term}.{number} of {group} between {own} and {after} on its clock")
        }
        What::Admitted(Decision { resource, token, at, .. }) => {
            format!("{resource} admits {token:?} as number {at}")
        }
        What::Refused(Decision { resource, token, at, .. }) => {
            format!("{resource} refuses {token:?} after number {at}")
        }
        What::Part(_) | What::Group { .. } | What::Stop => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nodes_and_groups_are_told_by_name_and_nothing_else_is() {
        let nodes = BTreeMap::from([(NodeId(1), "alpha".to_owned()), (NodeId(12), String::new())]);
        let names = Names { nodes, groups: BTreeMap::from([(GroupId(7), "jobs".to_owned())]) };
        let text = "n1 leads g7 in term 1; [n1, n12], g1, n1x, n1.5, 7ms";
        assert_eq!(names.told(text), "alpha leads jobs in term 1; [alpha, n12], g1, n1x, n1.5, 7ms");
    }
}
