//! Plays from text: every mistake is an error with its line, and nothing is guessed.

use tenure_proto::NodeId;

use super::{Check, Cue, Deed, MAGIC, Meddling, Play, What, words};
use crate::script::{self, Expect, ScriptError};
use crate::subject::{Assumption, Constants, Key, Role, Subject};
use crate::world::{Action, Clock, Interrupt, RealTime, Stretch, Which, clock::MILLI};

/// The start of clocks about which a play says nothing, and how far they are apart if they may be.
const CLOCK_START: u64 = 1_000_000 * MILLI;

/// A clock in a play: when it starts, if the play says so, and its rates.
type ClockSaid = (Option<u64>, Vec<Stretch>);

/// The facts about a protocol that a reader needs. They have no types of the protocol, so that
/// reading is compiled once and not for each.
struct Grammar<'s> {
    keys: &'static [Key],
    message_kinds: Vec<&'static str>,
    roles: fn(&Constants, usize) -> Result<Vec<Role>, String>,
    is_command: fn(&str) -> bool,
    assumption: &'s dyn Fn(&Constants) -> Assumption,
}

/// A play being read.
struct Reader<'s> {
    grammar: Grammar<'s>,
    play: Play,
    /// The role of each host, as far as the head has said.
    roles: Vec<Role>,
    clocks: Vec<Option<ClockSaid>>,
    /// Which constants were set.
    set: Vec<String>,
    ends: Option<RealTime>,
}

/// Reads a play.
pub fn parse<S: Subject>(subject: &S, text: &str) -> Result<Play, ScriptError> {
    let grammar = Grammar {
        keys: subject.keys(),
        message_kinds: subject.message_kinds(),
        roles: S::roles,
        is_command: |text| S::parse_command(text).is_some(),
        assumption: &|constants| subject.assumption(constants),
    };
    read(grammar, text)
}

fn read(grammar: Grammar<'_>, text: &str) -> Result<Play, ScriptError> {
    if !super::is_play(text) {
        let what = format!("this is no play: the first line must be '{MAGIC}'");
        return Err(ScriptError { line: 1, what });
    }
    let mut reader = Reader::new(grammar);
    for (i, raw) in text.lines().enumerate().skip(1) {
        reader.line(raw.trim(), i + 1).map_err(|what| ScriptError { line: i + 1, what })?;
    }
    reader.finish(text.lines().count())
}

impl<'s> Reader<'s> {
    fn new(grammar: Grammar<'s>) -> Self {
        let play = Play {
            remarks: Vec::new(),
            protocol: String::new(),
            mutant: None,
            seed: None,
            quorums: "majority".to_owned(),
            constants: Constants::new(grammar.keys),
            members: 0,
            clocks: Vec::new(),
            delay: 5 * MILLI,
            disk: MILLI / 10,
            expect: Expect::Holds,
            checks: Vec::new(),
            heals: None,
            ends: RealTime(0),
            cues: Vec::new(),
        };
        Self { grammar, play, roles: Vec::new(), clocks: Vec::new(), set: Vec::new(), ends: None }
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        if let Some(remark) = line.strip_prefix('#') {
            if self.play.cues.is_empty() {
                self.play.remarks.push(remark.trim_start().to_owned());
            }
            Ok(())
        } else if line.is_empty() {
            Ok(())
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            self.cue(line, number)
        } else {
            self.head(line, number)
        }
    }

    fn head(&mut self, line: &str, number: usize) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let play = &mut self.play;
        match word {
            "protocol" => play.protocol = rest.to_owned(),
            "mutant" => play.mutant = Some(rest.to_owned()),
            "seed" => play.seed = Some(rest.parse().map_err(|_| format!("'{rest}' is no seed"))?),
            "quorums" => play.quorums = rest.to_owned(),
            "nodes" => {
                play.members =
                    rest.parse().ok().filter(|n| (1..=64).contains(n)).ok_or("nodes must be 1 to 64")?;
                self.cast()?;
            }
            "set" => {
                let names = script::set(rest, &mut play.constants)?;
                self.set.extend(names);
                self.cast()?;
            }
            "delay" => play.delay = words::time(rest)?.0,
            "disk" => play.disk = words::time(rest)?.0,
            "clock" => self.clock(rest)?,
            "expect" if rest == "holds" => play.expect = Expect::Holds,
            "expect" => match rest.strip_prefix("broken ") {
                Some(property) => play.expect = Expect::Broken(property.to_owned()),
                None if self.roles.is_empty() => {
                    return Err("say 'nodes N' before what you expect".to_owned());
                }
                None => play.checks.push(Check::parse(rest, number, self.roles.len())?),
            },
            "heals" => play.heals = Some(words::time(rest.strip_prefix("at ").unwrap_or(rest))?),
            "ends" => self.ends = Some(words::time(rest.strip_prefix("at ").unwrap_or(rest))?),
            _ => return Err(format!("cannot read '{line}'")),
        }
        Ok(())
    }

    /// Fixes the hosts, once they are said. It cannot change after somebody was named.
    fn cast(&mut self) -> Result<(), String> {
        if self.play.members == 0 {
            return Ok(());
        }
        let roles = (self.grammar.roles)(&self.play.constants, self.play.members)?;
        let named = !self.play.checks.is_empty() || self.clocks.iter().any(Option::is_some);
        if roles != self.roles && (named || !self.play.cues.is_empty()) {
            return Err("say who is there before you name anybody".to_owned());
        }
        self.clocks.resize(roles.len(), None);
        self.roles = roles;
        Ok(())
    }

    /// `n0 shows 5s, +0ppm, from 200ms -1000ppm`; it need not say what it shows.
    fn clock(&mut self, text: &str) -> Result<(), String> {
        let (name, rest) = text.split_once(' ').ok_or("write 'clock n0 +0ppm'")?;
        let node = self.node(name)?;
        let (start, rates) = match rest.strip_prefix("shows ") {
            Some(rest) => {
                let (start, rates) = rest.split_once(", ").ok_or("write 'clock n0 shows 5s, +0ppm'")?;
                (Some(words::time(start)?.0), rates)
            }
            None => (None, rest),
        };
        let said = (start, script::rates(rates.split(", "))?);
        match self.clocks[node.index()].replace(said) {
            Some(_) => Err(format!("{name} has a clock already")),
            None => Ok(()),
        }
    }

    fn node(&self, name: &str) -> Result<NodeId, String> {
        match self.roles.len() {
            0 => Err("say 'nodes N' before you name one".to_owned()),
            nodes => script::node(name, nodes),
        }
    }

    /// `500ms  n2 crashes`
    fn cue(&mut self, line: &str, number: usize) -> Result<(), String> {
        let (at, words) = line.split_once(' ').ok_or("nothing happens here")?;
        let (at, words) = (words::time(at)?, words.trim());
        if self.roles.is_empty() {
            return Err("say 'nodes N' before anything happens".to_owned());
        }
        if self.play.cues.last().is_some_and(|last| last.at > at) {
            return Err(format!("{at} comes after a later line"));
        }
        let deeds = self.deeds(words, at)?;
        self.play.cues.push(Cue { at, line: number, words: words.to_owned(), deeds });
        Ok(())
    }

    fn deeds(&self, words: &str, at: RealTime) -> Result<Vec<Deed>, String> {
        if let Some(text) = words.strip_prefix("network: ") {
            return Ok(vec![Deed::Network(words::network(text.trim(), self.roles.len())?)]);
        }
        let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
        if let Some(name) = first.strip_suffix("'s") {
            return Ok(vec![possession(self.node(name)?, rest.trim())?]);
        }
        let what = match first {
            "hold" => What::Hold,
            "lose" => What::Lose,
            "repeat" => What::Repeat,
            "forge" => return Ok(vec![Deed::Meddle(self.forgery(rest, at)?)]),
            _ => return self.acts(words),
        };
        Ok(vec![Deed::Meddle(self.meddling(what, rest, at)?)])
    }

    /// `n0 -> n1 next release until 900ms`
    fn meddling(&self, what: What, text: &str, at: RealTime) -> Result<Meddling, String> {
        let (from, to, rest) = words::messages(text, self.roles.len())?;
        let (once, rest) = match rest.strip_prefix("next ") {
            Some(rest) => (true, rest),
            None => (false, rest.as_str()),
        };
        let (kind, when) = rest.split_once(' ').unwrap_or((rest, ""));
        let word = if matches!(what, What::Hold | What::Lose) { "until" } else { "at" };
        let until = when.strip_prefix(word).filter(|when| when.starts_with(' '));
        let until = words::time(until.ok_or_else(|| format!("say '{word} TIME' after '{kind}'"))?)?;
        if until <= at {
            return Err(format!("{until} is not after {at}"));
        }
        Ok(Meddling { what, from, to, kind: message_kind(&self.grammar.message_kinds, kind)?, once, until })
    }

    /// `n0 -> n1 next request by n4 as a release at 900ms`
    fn forgery(&self, text: &str, at: RealTime) -> Result<Meddling, String> {
        let parts =
            text.split_once(" by ").and_then(|(which, rest)| Some((which, rest.rsplit_once(" at ")?)));
        let (which, (said, when)) =
            parts.ok_or("write 'forge n0 -> n1 request by n2 as a release at 900ms'")?;
        let (by, guise) = script::said(said, self.roles.len())?;
        self.meddling(What::Forge { by, guise }, &format!("{which} at {when}"), at)
    }

    /// `n0 n1 restart and campaign`
    fn acts(&self, text: &str) -> Result<Vec<Deed>, String> {
        let is_name = |word: &&str| *word == "everyone" || words::is_node(word);
        let names: Vec<&str> = text.split(' ').take_while(is_name).collect();
        if names.is_empty() {
            let first = text.split(' ').next().unwrap_or_default();
            return Err(format!(
                "cannot read '{first}': write a node, everyone, network:, hold, lose, repeat or forge"
            ));
        }
        let nodes = words::nodes(&names.join(" "), self.roles.len())?;
        let rest: Vec<&str> = text.split(' ').skip(names.len()).collect();
        let mut deeds = Vec::new();
        for act in rest.join(" ").split(" and ") {
            for node in &nodes {
                let deed = deed(&self.grammar, *node, act.trim())?;
                let role = self.roles[node.index()];
                match (&deed, role.label()) {
                    (Deed::Campaign(_), Some(_)) if !role.campaigns() && names == ["everyone"] => {}
                    (Deed::Campaign(_), Some(label)) if !role.campaigns() => {
                        return Err(format!("{node}, as {label}, never campaigns"));
                    }
                    _ => deeds.push(deed),
                }
            }
        }
        Ok(deeds)
    }

    fn finish(self, lines: usize) -> Result<Play, ScriptError> {
        let Self { grammar, mut play, roles, clocks, set, ends } = self;
        let wrong = |what: String| Err(ScriptError { line: lines, what });
        if play.protocol.is_empty() {
            return wrong("no line says 'protocol NAME'".to_owned());
        }
        if roles.is_empty() {
            return wrong("no line says 'nodes N'".to_owned());
        }
        let unset = grammar.keys.iter().filter(|key| key.otherwise.is_none()).map(|key| key.name);
        let unset: Vec<&str> = unset.filter(|name| !set.iter().any(|set| set == name)).collect();
        if !unset.is_empty() {
            return wrong(format!("no line sets {}", unset.join(", ")));
        }
        let Some(ends) = ends else { return wrong("no line says 'ends at TIME'".to_owned()) };
        play.ends = ends;
        let cues = play.cues.iter().map(|cue| (cue.line, cue.at));
        let spoken = cues.chain(play.checks.iter().map(|check| (check.line, check.ends())));
        if let Some((line, at)) = spoken.into_iter().find(|(_, at)| *at > ends) {
            return Err(ScriptError { line, what: format!("it ends at {ends}, before {at}") });
        }
        let together = matches!((grammar.assumption)(&play.constants), Assumption::Skew { .. });
        let clock = |(node, said): (usize, Option<ClockSaid>)| {
            let (start, rates) = said.unwrap_or_else(|| (None, vec![Stretch { from: RealTime(0), ppm: 0 }]));
            let apart = if together { 0 } else { node as u64 };
            Clock::new(start.unwrap_or(CLOCK_START * (apart + 1)), &rates)
        };
        play.clocks = clocks.into_iter().enumerate().map(clock).collect();
        Ok(play)
    }
}

fn message_kind(known: &[&'static str], kind: &str) -> Result<Option<&'static str>, String> {
    match known.iter().find(|known| **known == kind) {
        Some(known) => Ok(Some(known)),
        None if kind == "message" => Ok(None),
        None => Err(format!("there is no kind of message '{kind}': write message, {}", known.join(", "))),
    }
}

/// An event of something that a process has: `clock steps back 80ms`, `thread 0 takes a step`.
fn possession(node: NodeId, text: &str) -> Result<Deed, String> {
    if let Some(rest) = text.strip_prefix("thread ") {
        let thread = rest.strip_suffix(" takes a step");
        let thread = thread.ok_or_else(|| format!("a thread 'takes a step', not '{rest}'"))?;
        return Ok(Deed::Work(node, script::thread(thread)?));
    }
    match script::step::<()>(node, text)? {
        Action::Step { node, dial, by } => Ok(Deed::Step(node, dial, by)),
        _ => Err(format!("cannot read '{text}'")),
    }
}

/// A deed of one process, in the words of scripts or in their plural.
fn deed(grammar: &Grammar<'_>, node: NodeId, text: &str) -> Result<Deed, String> {
    let one = match text {
        "campaigns" | "campaign" => return Ok(Deed::Campaign(node)),
        "crash" => "crashes",
        "restart" => "restarts",
        "restart elsewhere" => "restarts elsewhere",
        "reboot" => "reboots",
        "start without their disks" => "starts without its disk",
        "pause" => "pauses",
        "are suspended" => "is suspended",
        "go on" => "goes on",
        _ => text,
    };
    let told = one.strip_prefix("is told: ").or_else(|| one.strip_prefix("are told: "));
    if let Some(command) = told {
        if !(grammar.is_command)(command.trim()) {
            return Err(format!("there is no command '{command}'"));
        }
        return Ok(Deed::Tell(node, command.trim().to_owned()));
    }
    let killed =
        one.strip_prefix("crashes after effect ").or_else(|| one.strip_prefix("crash after effect "));
    if let Some(place) = killed {
        return Ok(Deed::Kill(node, interrupt(place)?));
    }
    Ok(match script::simple_action::<()>(node, one) {
        Some(Action::Crash(node)) => Deed::Crash(node),
        Some(Action::Start(node, how)) => Deed::Start(node, how),
        Some(Action::Freeze(node, freeze)) => Deed::Freeze(node, freeze),
        Some(Action::Thaw(node)) => Deed::Thaw(node),
        _ => return Err(format!("cannot read '{text}'")),
    })
}

/// `2 of its next step, 1 record durable`: in which step a process is killed, and where in it.
fn interrupt(text: &str) -> Result<Interrupt, String> {
    let (which, place) = [(" of its next step", Which::Any), (" of its next write", Which::Writes)]
        .into_iter()
        .find_map(|(of, which)| text.contains(of).then(|| (which, text.replacen(of, "", 1))))
        .ok_or_else(|| format!("write 'after effect 2 of its next step, 1 record durable', not '{text}'"))?;
    Ok(Interrupt::Next(script::kill(&place)?, which))
}
