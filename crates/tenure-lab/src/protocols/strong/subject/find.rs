//! Questions where the leader is: how files write them, and what the minutes say.

use tenure_proto::strong::{Command, Event, Hint, How, Miss, Talk};
use tenure_proto::time::Span;
use tenure_proto::{GroupId, NodeId};

use crate::random::Random;
use crate::subject::constants::parse_time;
use crate::world::{RealTime, node_id};

/// `find g0 at n1 buffer 200ms hops 3`
pub(super) fn command_text(group: GroupId, ask: NodeId, how: How, hops: u8) -> String {
    let how = match how {
        How::Redirect => "redirect".to_owned(),
        How::Refuse => "refuse".to_owned(),
        How::Campaign { wait } => format!("campaign {}", RealTime(wait.as_nanos())),
        How::Buffer { wait } => format!("buffer {}", RealTime(wait.as_nanos())),
    };
    format!("find {group} at {ask} {how} hops {hops}")
}

/// Parses the words between `at n1` and `hops 3`.
pub(super) fn parse_how(words: &[&str]) -> Option<How> {
    let wait = |text: &str| parse_time(text).map(|time| Span::from_nanos(time.0));
    match words {
        ["redirect"] => Some(How::Redirect),
        ["refuse"] => Some(How::Refuse),
        ["campaign", time] => Some(How::Campaign { wait: wait(time)? }),
        ["buffer", time] => Some(How::Buffer { wait: wait(time)? }),
        _ => None,
    }
}

/// A restless user wants to know who leads, now and then without having patience or hops enough.
pub(super) fn whim(random: &mut Random, group: GroupId, hosts: usize, longest: u64) -> Command {
    let ask = node_id(random.index(hosts));
    let wait = Span::from_nanos(random.between(1, 2 * longest));
    let how = random.pick(&[How::Redirect, How::Refuse, How::Campaign { wait }, How::Buffer { wait }]);
    Command::Find { group, ask, how, hops: random.pick(&[0, 1, 3, 3]) }
}

pub(super) fn talk_text(group: GroupId, talk: &Talk) -> Option<String> {
    Some(match talk {
        Talk::Seek { how, hops, .. } => {
            let else_do = match how {
                How::Redirect => "if not you, whom do you support?".to_owned(),
                How::Refuse => "if not you, say no".to_owned(),
                How::Campaign { wait } => format!("if not you, try to, for {wait}"),
                How::Buffer { wait } => format!("if not you, wait for {wait}"),
            };
            format!("who leads {group}? {else_do} ({hops} hops left)")
        }
        Talk::Here { term, .. } => format!("I lead {group} in term {term}"),
        Talk::There { hint, .. } => format!("I do not lead {group}; {}", hint_text(hint)),
        Talk::Nowhere { why, .. } => format!("I do not lead {group}: {}", miss_text(*why)),
        Talk::Free => format!("I am free in {group}"),
        _ => return None,
    })
}

pub(super) fn event_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::Sought { group, ask, hops, .. } => {
            format!("{node} asks {ask} who leads {group}, to follow {hops} hints at most")
        }
        Event::Found { group, leader, term, hops, .. } => {
            let leader = leader.node;
            format!(
                "{node} finds {leader}, leader of {group} in term {term} by its own word, after {hops} hints"
            )
        }
        Event::NotFound { group, why, hint, .. } => {
            let hint = hint.map(|hint| format!("; {}", hint_text(&hint))).unwrap_or_default();
            format!("{node} has not found who leads {group}: {}{hint}", miss_text(*why))
        }
        _ => String::new(),
    }
}

fn hint_text(hint: &Hint) -> String {
    let Hint { holder, term, remaining } = hint;
    format!("perhaps {holder}, supported in term {term} for another {remaining}")
}

fn miss_text(miss: Miss) -> &'static str {
    match miss {
        Miss::NotLeader => "the one asked does not lead",
        Miss::Unknown => "the one asked supports nobody",
        Miss::Full => "there are too many questions",
        Miss::TimedOut => "nobody led in time",
        Miss::Outdated => "the answer is older than what is known",
        Miss::NoHopsLeft => "there are no hops left",
        Miss::Unanswered => "the one asked did not answer",
    }
}
