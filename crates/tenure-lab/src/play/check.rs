//! The checks of a play besides its verdict: who believes to lead, and how often things happened.

use tenure_proto::NodeId;

use super::words;
use crate::count::Counts;
use crate::world::RealTime;

/// Something that must be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// As it was written, after `expect`.
    pub words: String,
    /// Its line in the file, from one.
    pub(super) line: usize,
    what: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// From the one time to the other, both included.
    Leader(Who, RealTime, RealTime),
    Count {
        name: String,
        least: u64,
        most: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    Among(Vec<NodeId>),
    /// All of these, at once.
    These(Vec<NodeId>),
    Same,
}

impl Check {
    /// Reads what follows `expect`.
    pub(super) fn parse(text: &str, line: usize, nodes: usize) -> Result<Self, String> {
        let what = match text.split(' ').next().unwrap_or_default() {
            "leader" | "leaders" | "a" | "same" | "nobody" => leader(text, nodes)?,
            _ => count(text)?,
        };
        Ok(Self { words: text.to_owned(), line, what })
    }

    /// The last time that it speaks of.
    pub(super) fn ends(&self) -> RealTime {
        match &self.what {
            Wanted::Leader(_, _, to) => *to,
            Wanted::Count { .. } => RealTime(0),
        }
    }

    /// The outcome that came instead, if the expected one did not.
    pub(crate) fn failure(&self, beliefs: &Beliefs, counts: &Counts) -> Option<String> {
        match &self.what {
            Wanted::Leader(who, from, to) => wrong_leader(who, *from, *to, beliefs),
            Wanted::Count { name, least, most } => {
                if !counts.sorted().iter().any(|(known, _)| known == name) {
                    return Some(format!("nothing of the name '{name}' is counted"));
                }
                let many = counts.get(name);
                (!(*least..=*most).contains(&many)).then(|| format!("{many} {name} were counted"))
            }
        }
    }
}

fn leader(text: &str, nodes: usize) -> Result<Wanted, String> {
    let (who, from, to) = if let Some((who, at)) = text.rsplit_once(" at ") {
        (who, words::time(at)?, words::time(at)?)
    } else {
        let (who, span) = text.rsplit_once(" from ").ok_or("say when: 'at 1s', or 'from 1s to 2s'")?;
        let (from, to) = span.split_once(" to ").ok_or_else(|| format!("'from {span}' to when?"))?;
        (who, words::time(from)?, words::time(to)?)
    };
    if to < from {
        return Err(format!("{to} is before {from}"));
    }
    let everyone = || words::nodes("everyone", nodes);
    let who = match who {
        "nobody" => Who::Nobody,
        "same leader" if from < to => Who::Same,
        "same leader" => return Err("the same as when? say 'from 1s to 2s'".to_owned()),
        "a leader" => Who::Among(everyone()?),
        _ if who.starts_with("leaders ") => Who::These(words::nodes(&who["leaders ".len()..], nodes)?),
        _ => {
            let names = who.strip_prefix("leader ").ok_or_else(|| format!("cannot read '{who}'"))?;
            if let Some(others) = names.strip_prefix("other than ") {
                let others = words::nodes(others, nodes)?;
                Who::Among(everyone()?.into_iter().filter(|node| !others.contains(node)).collect())
            } else {
                Who::Among(words::nodes(names.strip_prefix("among ").unwrap_or(names), nodes)?)
            }
        }
    };
    Ok(Wanted::Leader(who, from, to))
}

/// `3 elections`, `at least 1 renewals`
fn count(text: &str) -> Result<Wanted, String> {
    let (text, least, most) = match (text.strip_prefix("at least "), text.strip_prefix("at most ")) {
        (Some(rest), _) => (rest, true, false),
        (_, Some(rest)) => (rest, false, true),
        _ => (text, true, true),
    };
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.parse().map_err(|_| {
        format!("cannot read '{text}': expect holds, broken PROPERTY, a leader at a time, or a count")
    })?;
    let (least, most) = (if least { number } else { 0 }, if most { number } else { u64::MAX });
    Ok(Wanted::Count { name: name.to_owned(), least, most })
}

fn wrong_leader(who: &Who, from: RealTime, to: RealTime, beliefs: &Beliefs) -> Option<String> {
    let first = beliefs.at(from);
    let wrong = |at: &RealTime| {
        let leaders = beliefs.at(*at);
        match who {
            Who::Nobody => !leaders.is_empty(),
            Who::These(nodes) => leaders != *nodes,
            Who::Same => leaders.len() != 1 || leaders != first,
            Who::Among(nodes) => leaders.len() != 1 || !nodes.contains(&leaders[0]),
        }
    };
    let at = beliefs.changes(from, to).into_iter().find(wrong)?;
    let names: Vec<String> = beliefs.at(at).iter().map(NodeId::to_string).collect();
    Some(match names.as_slice() {
        [] => format!("at {at} nobody leads"),
        [one] => format!("at {at} {one} leads"),
        _ => format!("at {at} {} lead", names.join(" and ")),
    })
}

/// The processes that believed to lead, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beliefs(Vec<(RealTime, Vec<(NodeId, RealTime)>)>);

impl Beliefs {
    /// From now on these believe, each until its lease is over, if nothing else is noted before.
    pub(crate) fn note(&mut self, now: RealTime, believers: Vec<(NodeId, RealTime)>) {
        if let Some((at, last)) = self.0.last_mut() {
            if *last == believers {
                return;
            }
            if *at == now {
                *last = believers;
                return;
            }
        }
        self.0.push((now, believers));
    }

    /// The processes that believed to lead at an instant.
    fn at(&self, at: RealTime) -> Vec<NodeId> {
        let noted = self.0.iter().rev().find(|(from, _)| *from <= at);
        let believers = noted.map(|(_, believers)| believers.as_slice()).unwrap_or_default();
        believers.iter().filter(|(_, until)| at < *until).map(|(node, _)| *node).collect()
    }

    /// Every instant between two at which that may have changed, and both ends.
    fn changes(&self, from: RealTime, to: RealTime) -> Vec<RealTime> {
        let untils = self.0.iter().flat_map(|(_, believers)| believers.iter().map(|(_, until)| *until));
        let inside = self.0.iter().map(|(at, _)| *at).chain(untils).filter(|at| (from..=to).contains(at));
        let mut all: Vec<RealTime> = inside.chain([from, to]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n0 leads from 1ms to 5ms, n1 from 7ms to 9ms; n2 wrongly from 8ms on.
    fn beliefs() -> Beliefs {
        let (n0, n1, n2) = (NodeId(0), NodeId(1), NodeId(2));
        let ms = |ms: u64| RealTime(ms * 1_000_000);
        let mut beliefs = Beliefs::default();
        beliefs.note(ms(1), vec![(n0, ms(4))]);
        beliefs.note(ms(3), vec![(n0, ms(5))]);
        beliefs.note(ms(7), vec![(n1, ms(9))]);
        beliefs.note(ms(8), vec![(n1, ms(9)), (n2, ms(12))]);
        beliefs
    }

    fn failure(words: &str) -> Option<String> {
        Check::parse(words, 1, 3).unwrap().failure(&beliefs(), &Counts::default())
    }

    #[test]
    fn what_is_expected_of_leaders_is_compared_with_what_they_believed() {
        for right in [
            "nobody at 0ms",
            "leader n0 at 1ms",
            "same leader from 1ms to 4.9ms",
            "nobody from 5ms to 6ms",
            "leader among n1 n2 at 7ms",
            "leader other than n0 n1 from 9ms to 11ms",
        ] {
            assert_eq!(failure(right), None, "{right}");
        }
    }

    #[test]
    fn a_gap_and_a_second_leader_are_seen_wherever_they_lie() {
        assert_eq!(failure("same leader from 1ms to 7ms").unwrap(), "at 5ms nobody leads");
        assert_eq!(failure("a leader from 7ms to 10ms").unwrap(), "at 8ms n1 and n2 lead");
        assert_eq!(failure("leader n1 at 2ms").unwrap(), "at 2ms n0 leads");
        assert_eq!(failure("nobody from 4ms to 6ms").unwrap(), "at 4ms n0 leads");
    }

    #[test]
    fn counts_are_compared_and_must_exist() {
        let mut counts = Counts::default();
        counts.add_many("elections", 2);
        let failure = |words| Check::parse(words, 1, 3).unwrap().failure(&Beliefs::default(), &counts);
        assert_eq!([failure("2 elections"), failure("at most 3 elections")], [None, None]);
        assert_eq!(failure("at least 3 elections").unwrap(), "2 elections were counted");
        assert_eq!(failure("0 rains").unwrap(), "nothing of the name 'rains' is counted");
    }

    #[test]
    fn nonsense_is_no_expectation() {
        for wrong in
            ["leader n1", "leader n7 at 1ms", "same leader at 1ms", "a leader from 2ms to 1ms", "rain", "a"]
        {
            assert!(Check::parse(wrong, 1, 3).is_err(), "{wrong}");
        }
    }
}
