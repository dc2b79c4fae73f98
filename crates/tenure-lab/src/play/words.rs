//! Times, names of nodes, links and networks, as plays write them.

use tenure_proto::NodeId;

use crate::script;
use crate::simulate::Shape;
use crate::world::{RealTime, node_id};

pub(super) fn time(text: &str) -> Result<RealTime, String> {
    script::time(text.trim())
}

/// `n0 n2` or `everyone`
pub(super) fn nodes(text: &str, nodes: usize) -> Result<Vec<NodeId>, String> {
    if text.trim() == "everyone" {
        return Ok((0..nodes).map(node_id).collect());
    }
    let mut found = Vec::new();
    for name in text.split_whitespace() {
        let node = script::node(name, nodes)?;
        if found.contains(&node) {
            return Err(format!("{name} is named twice"));
        }
        found.push(node);
    }
    if found.is_empty() {
        return Err("name a node here, such as n0".to_owned());
    }
    Ok(found)
}

/// A link or several: senders and receivers, and whether the way back is meant too.
struct Links {
    from: Vec<NodeId>,
    to: Vec<NodeId>,
    both: bool,
}

/// `n0 -> n1 n2`, or `n0 - n1` for both ways
fn links(text: &str, nodes: usize) -> Result<Links, String> {
    let one_way = text.split_once(" -> ").map(|sides| (sides, false));
    let ((from, to), both) = one_way
        .or_else(|| text.split_once(" - ").map(|sides| (sides, true)))
        .ok_or_else(|| format!("write 'n0 -> n1' for one way or 'n0 - n1' for both, not '{text}'"))?;
    Ok(Links { from: self::nodes(from, nodes)?, to: self::nodes(to, nodes)?, both })
}

/// Parses the words after `network: `.
pub(super) fn network(text: &str, nodes: usize) -> Result<Shape, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let named =
        |kind, blocked: &dyn Fn(usize, usize) -> bool| Ok(Shape::of(nodes, kind, text.to_owned(), blocked));
    match word {
        "whole" if rest.is_empty() => Ok(Shape::whole(nodes)),
        "split" => {
            let parts = parts(rest, nodes, None)?;
            named("partitions-split", &|from, to| parts[from] != parts[to])
        }
        "stable" => {
            let parts = parts(rest, nodes, None)?;
            let text = format!("stable: {rest}");
            Ok(Shape::of(nodes, "partitions-split", text, |from, to| parts[from] != parts[to]))
        }
        "bridge" => {
            let parts = parts(rest, nodes, Some(3))?;
            named("partitions-bridge", &|from, to| parts[from].abs_diff(parts[to]) > 1)
        }
        "chain" => {
            let places = parts(&rest.split_whitespace().collect::<Vec<_>>().join(" | "), nodes, None)?;
            named("partitions-chain", &|from, to| places[from].abs_diff(places[to]) > 1)
        }
        "isolated" => {
            let alone = self::nodes(rest, nodes)?;
            let is_alone = |node| alone.contains(&node_id(node));
            named("partitions-isolated", &|from, to| from != to && (is_alone(from) || is_alone(to)))
        }
        "cut" => {
            let cuts = rest.split(", ").map(|link| links(link, nodes)).collect::<Result<Vec<_>, _>>()?;
            let kind =
                if cuts.iter().all(|cut| cut.both) { "partitions-split" } else { "partitions-one-way" };
            let (has, id) = (|side: &[NodeId], node| side.contains(&node), node_id);
            named(kind, &|from, to| {
                let (from, to) = (id(from), id(to));
                let cut = |cut: &Links| {
                    has(&cut.from, from) && has(&cut.to, to)
                        || cut.both && has(&cut.from, to) && has(&cut.to, from)
                };
                from != to && cuts.iter().any(cut)
            })
        }
        _ => {
            Err(format!("'{text}' is no network: write split, stable, bridge, chain, isolated, cut or whole"))
        }
    }
}

/// In which part each node is: `n0 n1 | n2 | n3 n4`. Every node is in one.
fn parts(text: &str, nodes: usize, wanted: Option<usize>) -> Result<Vec<usize>, String> {
    let mut places = vec![None; nodes];
    let parts: Vec<&str> = text.split('|').collect();
    if wanted.is_some_and(|wanted| wanted != parts.len()) || parts.len() < 2 {
        let wanted = wanted.map_or("two parts or more".to_owned(), |wanted| format!("{wanted} parts"));
        return Err(format!("this needs {wanted}, with '|' between them"));
    }
    for (place, part) in parts.iter().enumerate() {
        for node in self::nodes(part, nodes)? {
            let known = places[node.index()].replace(place);
            if known.is_some() {
                return Err(format!("{node} is named twice"));
            }
        }
    }
    let all =
        places.iter().enumerate().map(|(node, place)| place.ok_or_else(|| format!("where is n{node}?")));
    all.collect()
}

/// `n0 -> n1 next release until 900ms`: senders, receivers, and what follows them.
pub(super) fn messages(text: &str, nodes: usize) -> Result<(Vec<NodeId>, Vec<NodeId>, String), String> {
    let (from, rest) =
        text.split_once(" -> ").ok_or_else(|| format!("write 'n0 -> n1 KIND', not '{text}'"))?;
    let is_name = |word: &&str| *word == "everyone" || is_node(word);
    let names: Vec<&str> = rest.split_whitespace().take_while(is_name).collect();
    let kind: Vec<&str> = rest.split_whitespace().skip(names.len()).collect();
    Ok((self::nodes(from, nodes)?, self::nodes(&names.join(" "), nodes)?, kind.join(" ")))
}

/// Whether a word looks like the name of a node.
pub(super) fn is_node(word: &str) -> bool {
    word.strip_prefix('n').is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of a network that let nothing through, as text.
    fn cut(text: &str, nodes: usize) -> String {
        let shape = network(text, nodes).unwrap();
        let mut cut = Vec::new();
        for from in (0..nodes).map(node_id) {
            for to in (0..nodes).map(node_id) {
                if !shape.lets_through(from, to, RealTime(0)) {
                    cut.push(format!("{}{}", from.0, to.0));
                }
            }
        }
        cut.join(" ")
    }

    #[test]
    fn every_shape_cuts_what_its_name_says() {
        assert_eq!(cut("whole", 3), "");
        assert_eq!(cut("split n0 n1 | n2", 3), "02 12 20 21");
        assert_eq!(cut("bridge n0 | n1 | n2 n3", 4), "02 03 20 30");
        assert_eq!(cut("chain n1 n0 n2", 3), "12 21");
        assert_eq!(cut("isolated n1", 3), "01 10 12 21");
        assert_eq!(cut("cut n0 -> n1 n2", 3), "01 02");
        assert_eq!(cut("cut n0 - n1, n2 -> everyone", 3), "01 10 20 21");
    }

    #[test]
    fn a_network_that_leaves_questions_is_an_error() {
        let wrong = |text: &str| network(text, 3).unwrap_err();
        assert_eq!(wrong("split n0 | n1"), "where is n2?");
        assert_eq!(wrong("split n0 n1 | n1 n2"), "n1 is named twice");
        assert!(wrong("split n0 n1 n2").contains("'|'"));
        assert!(wrong("bridge n0 | n1 n2").contains("3 parts"));
        assert!(wrong("cut n0 n1").contains("'n0 -> n1'"));
        assert!(wrong("isolated n3").contains("there is no node n3"));
        assert!(wrong("broken").contains("write split"));
    }
}
