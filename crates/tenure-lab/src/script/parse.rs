//! Scripts from text: every mistake is an error with its line, and nothing is guessed.

use std::fmt;

use tenure_proto::NodeId;

use super::write::KILLED;
use super::{Expect, Line, Script};
use crate::play;
use crate::stage::Command;
use crate::subject::constants::parse_time;
use crate::subject::leader_threads::THREADS;
use crate::subject::{Constants, Subject, company};
use crate::world::{
    Action, Clock, Dial, FlightRef, Freeze, Guise, How, Kill, RealTime, Stretch, clock::MILLI,
};

/// Why a script could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Which line, from one.
    pub line: usize,
    /// The flaw in it.
    pub what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ScriptError {}

/// The protocol and the mutant that a script or a [play](crate::play) names, without reading the
/// rest.
pub fn subject_of(text: &str) -> Result<(String, Option<String>), ScriptError> {
    if !play::is_play(text) {
        check_magic(text)?;
    }
    let find = |word: &str| {
        let mut lines = text.lines().enumerate();
        lines.find_map(|(i, line)| Some((i + 1, line.strip_prefix(word)?.trim().to_owned())))
    };
    let Some((_, protocol)) = find("protocol ") else {
        return Err(ScriptError { line: 1, what: "no line says 'protocol NAME'".to_owned() });
    };
    Ok((protocol, find("mutant ").map(|(_, name)| name)))
}

fn check_magic(text: &str) -> Result<(), ScriptError> {
    match text.lines().next() {
        Some("tenure scenario 1") => Ok(()),
        _ => Err(ScriptError {
            line: 1,
            what: format!(
                "this is no scenario or trace: the first line must be 'tenure scenario 1' or '{}'",
                play::MAGIC
            ),
        }),
    }
}

/// Reads a script.
pub fn parse<S: Subject>(subject: &S, text: &str) -> Result<Script<Command<S>>, ScriptError> {
    check_magic(text)?;
    let mut script = Script {
        remarks: Vec::new(),
        protocol: String::new(),
        mutant: None,
        seed: None,
        quorums: "majority".to_owned(),
        members: 0,
        constants: Constants::new(subject.keys()),
        clocks: Vec::new(),
        only: None,
        expect: Expect::Holds,
        heals: None,
        ends: RealTime(0),
        lines: Vec::new(),
    };
    // Written by the laboratory, so that a trace that was cut off is noticed; one written by hand
    // may leave it out.
    let mut said_lines = None;
    for (i, raw) in text.lines().enumerate().skip(1) {
        let line = raw.trim_end();
        let result = if let Some(remark) = line.strip_prefix('#') {
            script.remarks.push(remark.trim_start().to_owned());
            Ok(())
        } else if line.is_empty() || line.starts_with([' ', '\t']) {
            Ok(()) // An outcome: written for the reader.
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let hosts = script.members.max(script.clocks.len());
            entry::<S>(line, hosts, &mut script)
        } else {
            head(line, &mut said_lines, &mut script)
        };
        result.map_err(|what| ScriptError { line: i + 1, what })?;
    }
    finish::<S>(script, said_lines, text.lines().count())
}

fn finish<S: Subject>(
    script: Script<Command<S>>,
    said_lines: Option<usize>,
    lines: usize,
) -> Result<Script<Command<S>>, ScriptError> {
    let wrong = |what: String| Err(ScriptError { line: lines, what });
    if script.protocol.is_empty() {
        return wrong("no line says 'protocol NAME'".to_owned());
    }
    let roles =
        S::roles(&script.constants, script.members).map_err(|what| ScriptError { line: lines, what })?;
    if script.members == 0 || script.clocks.len() != roles.len() {
        return wrong(format!(
            "{}, but {} clocks: each of them needs a clock line",
            company(&roles),
            script.clocks.len()
        ));
    }
    if let Some(said) = said_lines.filter(|said| *said != script.lines.len()) {
        return wrong(format!(
            "its head says {said} lines, but it has {}: is it cut off?",
            script.lines.len()
        ));
    }
    let last = script.lines.last().map_or(RealTime(0), |line| line.at);
    if script.ends < last {
        return wrong(format!("it ends at {}, before its last line at {last}", script.ends));
    }
    Ok(script)
}

fn head<C>(line: &str, said_lines: &mut Option<usize>, script: &mut Script<C>) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "protocol" => script.protocol = rest.to_owned(),
        "mutant" => script.mutant = Some(rest.to_owned()),
        "seed" => script.seed = Some(rest.parse().map_err(|_| format!("'{rest}' is no seed"))?),
        "nodes" => {
            script.members =
                rest.parse().ok().filter(|n| (1..=64).contains(n)).ok_or("nodes must be 1 to 64")?;
        }
        "lines" => *said_lines = Some(rest.parse().map_err(|_| format!("'{rest}' is no number of lines"))?),
        "judge" => script.only = Some(rest.to_owned()),
        "quorums" => script.quorums = rest.to_owned(),
        "set" => _ = set(rest, &mut script.constants)?,
        "clock" => script.clocks.push(clock(rest, script.clocks.len())?),
        "expect" if rest == "holds" => script.expect = Expect::Holds,
        "expect" => {
            let property =
                rest.strip_prefix("broken ").ok_or("write 'expect holds' or 'expect broken PROPERTY'")?;
            script.expect = Expect::Broken(property.to_owned());
        }
        "heals" => script.heals = Some(time(rest.strip_prefix("at ").unwrap_or(rest))?),
        "ends" => script.ends = time(rest.strip_prefix("at ").unwrap_or(rest))?,
        _ => return Err(format!("cannot read '{line}'")),
    }
    Ok(())
}

/// `lease=200ms tick=1ms`: sets constants, and names them.
pub(crate) fn set(text: &str, constants: &mut Constants) -> Result<Vec<String>, String> {
    let set = text.split_whitespace().map(|pair| {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is not KEY=VALUE"))?;
        constants.set(name, value)?;
        Ok(name.to_owned())
    });
    set.collect()
}

/// `12.5ms`
pub(crate) fn time(text: &str) -> Result<RealTime, String> {
    parse_time(text).ok_or_else(|| format!("'{text}' is no time: write for example 12.5ms"))
}

/// `n0 shows 5000ms, +0ppm, from 200ms -1000ppm`
fn clock(text: &str, expected: usize) -> Result<Clock, String> {
    let mut parts = text.split(", ");
    let first = parts.next().unwrap_or_default();
    let (name, start) = first.split_once(" shows ").ok_or("write 'clock n0 shows 5s, +0ppm'")?;
    if name != format!("n{expected}") {
        return Err(format!("clocks come in order: expected n{expected}, found {name}"));
    }
    Ok(Clock::new(time(start)?.0, &rates(parts)?))
}

/// `+0ppm, from 200ms -1000ppm`
pub(crate) fn rates<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Vec<Stretch>, String> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for part in parts {
        let (from, ppm) = match part.strip_prefix("from ") {
            Some(rest) => rest.split_once(' ').ok_or_else(|| format!("cannot read '{part}'"))?,
            None => ("0ms", part),
        };
        let ppm = ppm.strip_suffix("ppm").and_then(|ppm| ppm.parse().ok());
        let ppm = ppm.filter(|ppm: &i32| (-999_999..=1_000_000).contains(ppm));
        let stretch = Stretch {
            from: time(from)?,
            ppm: ppm.ok_or_else(|| format!("cannot read the rate in '{part}'"))?,
        };
        let in_order = stretches.last().map_or(stretch.from.0 == 0, |last| last.from < stretch.from);
        if !in_order || !stretch.from.0.is_multiple_of(MILLI) {
            return Err(format!("rates begin at 0ms, in order, at whole milliseconds: '{part}'"));
        }
        stretches.push(stretch);
    }
    if stretches.is_empty() {
        return Err("a clock needs a rate, such as '+0ppm'".to_owned());
    }
    Ok(stretches)
}

/// `12.5ms  n0 wakes [17 3]`
fn entry<S: Subject>(line: &str, nodes: usize, script: &mut Script<Command<S>>) -> Result<(), String> {
    let (at, rest) = line.split_once(' ').ok_or("nothing happens here")?;
    let at = time(at)?;
    if script.lines.last().is_some_and(|last| last.at > at) {
        return Err(format!("{at} comes after a later line"));
    }
    let (words, draws) = split_draws(rest.trim_start())?;
    let (words, kill) = match words.split_once(KILLED) {
        Some((words, place)) => (words, Some(self::kill(place)?)),
        None => (words, None),
    };
    let action = action::<S>(words, at, nodes)?;
    let kind = words.split_once(" handles ").and_then(|(_, message)| message.split_once("'s "));
    let kind = kind.and_then(|(_, message)| message.split(' ').next()).unwrap_or_default();
    if kill.is_some() && !action.is_step() {
        return Err(
            "only in a step can a process be killed: where it handles something, wakes, is told or starts"
                .to_owned(),
        );
    }
    script.lines.push(Line { at, action, kill, kind: kind.to_owned(), draws, outcomes: Vec::new() });
    Ok(())
}

/// `2, 1 record durable`: where in a step a process is killed.
pub(crate) fn kill(text: &str) -> Result<Kill, String> {
    let read = || {
        let (effects, durable) = text.split_once(", ")?;
        let durable =
            durable.strip_suffix(" record durable").or_else(|| durable.strip_suffix(" records durable"))?;
        Some(Kill { effects: effects.parse().ok()?, durable: durable.parse().ok()? })
    };
    read().ok_or_else(|| format!("write 'after effect 2, 1 record durable', not '{text}'"))
}

fn split_draws(text: &str) -> Result<(&str, Vec<u32>), String> {
    let Some((words, draws)) = text.strip_suffix(']').and_then(|text| text.rsplit_once(" [")) else {
        return Ok((text, Vec::new()));
    };
    let numbers = draws.split(' ').map(|number| number.parse().map_err(|_| format!("'{number}' is no draw")));
    Ok((words, numbers.collect::<Result<_, _>>()?))
}

fn action<S: Subject>(
    words: &str,
    at: RealTime,
    nodes: usize,
) -> Result<Action<Command<S>, FlightRef>, String> {
    if let Some(text) = words.strip_prefix("network: ") {
        return Ok(Action::Network(text.to_owned()));
    }
    let (name, rest) = words.split_once(' ').ok_or_else(|| format!("cannot read '{words}'"))?;
    if let Some(name) = name.strip_suffix("'s") {
        return step(node(name, nodes)?, rest);
    }
    let node = node(name, nodes)?;
    match simple_action(node, rest) {
        Some(action) => Ok(action),
        None => longer_action::<S>(node, rest, at, nodes),
    }
}

/// The number of a thread.
pub(crate) fn thread(text: &str) -> Result<u8, String> {
    let thread = text.parse().ok().filter(|thread| *thread < THREADS);
    thread.ok_or_else(|| format!("a process has {THREADS} threads, from 0"))
}

/// `clock steps back 80ms`
pub(crate) fn step<C>(node: NodeId, words: &str) -> Result<Action<C, FlightRef>, String> {
    let (dial, rest) = [("clock ", Dial::Clock), ("time of day ", Dial::TimeOfDay)]
        .into_iter()
        .find_map(|(word, dial)| Some((dial, words.strip_prefix(word)?)))
        .ok_or_else(|| format!("cannot read '{words}'"))?;
    let (sign, by) = match rest.split_once(' ').and_then(|(steps, way)| Some((steps, way.split_once(' ')?))) {
        Some(("steps", ("back", by))) => (-1, by),
        Some(("steps", ("forward", by))) => (1, by),
        _ => return Err(format!("a clock 'steps back 80ms' or 'steps forward 80ms', not '{rest}'")),
    };
    let by = i64::try_from(time(by)?.0).ok().filter(|by| *by <= MOST_STEP);
    let by = by.ok_or_else(|| format!("a step is at most {}", RealTime(MOST_STEP.unsigned_abs())))?;
    Ok(Action::Step { node, dial, by: sign * by })
}

/// The most that a clock is set by: eleven days.
const MOST_STEP: i64 = 1_000_000_000_000_000;

/// An event of a process, where a few words say it.
pub(crate) fn simple_action<C>(node: NodeId, words: &str) -> Option<Action<C, FlightRef>> {
    Some(match words {
        "wakes" => Action::Wake(node),
        "crashes" => Action::Crash(node),
        "restarts" => Action::Start(node, How::Restart),
        "restarts elsewhere" => Action::Start(node, How::Elsewhere),
        "reboots" => Action::Start(node, How::Reboot),
        "starts without its disk" => Action::Start(node, How::DiskLost),
        "pauses" => Action::Freeze(node, Freeze::Pause),
        "is suspended" => Action::Freeze(node, Freeze::Suspend),
        "goes on" => Action::Thaw(node),
        _ => Action::Freeze(node, coarse(words)?),
    })
}

/// `is suspended, counted 950ms short`, or `long`
fn coarse(words: &str) -> Option<Freeze> {
    let (by, way) = words.strip_prefix("is suspended, counted ")?.split_once(' ')?;
    let by = i64::try_from(time(by).ok()?.0).ok().filter(|by| *by <= MOST_STEP)?;
    match way {
        "short" => Some(Freeze::Coarse(-by)),
        "long" => Some(Freeze::Coarse(by)),
        _ => None,
    }
}

fn longer_action<S: Subject>(
    node: NodeId,
    rest: &str,
    at: RealTime,
    nodes: usize,
) -> Result<Action<Command<S>, FlightRef>, String> {
    if let Some(command) = rest.strip_prefix("is told: ") {
        let command = S::parse_command(command).ok_or_else(|| format!("there is no command '{command}'"))?;
        return Ok(Action::Tell(node, command));
    }
    if let Some(thread) = rest.strip_prefix("works on thread ") {
        return Ok(Action::Work(node, self::thread(thread)?));
    }
    if let Some(given) = rest.strip_prefix("has written what its disk was given by ") {
        return Ok(Action::Written { node, given: time(given)? });
    }
    match rest.strip_prefix("handles ") {
        Some(message) => delivery(node, message, at, nodes),
        None => Err(format!("cannot read '{rest}'")),
    }
}

/// `n4 as a release`: the process that says something in another's name, and what it makes of it.
pub(crate) fn said(text: &str, nodes: usize) -> Result<(NodeId, Guise), String> {
    let guises = [Guise::Release, Guise::Relay, Guise::Own, Guise::Copy];
    let parsed = guises.into_iter().find_map(|guise| Some((text.strip_suffix(guise.text())?, guise)));
    let (by, guise) = parsed.ok_or_else(|| format!("cannot read '{text}'"))?;
    Ok((node(by, nodes)?, guise))
}

/// `n0's request of 12.5ms, number 2, arrived at 20ms`, or `..., said by n4 as a release`: what
/// kind of message it is says nothing that is needed.
fn delivery<C>(to: NodeId, text: &str, at: RealTime, nodes: usize) -> Result<Action<C, FlightRef>, String> {
    let mut parts = text.split(", ");
    let first = parts.next().unwrap_or_default();
    let (from, sent) = first
        .split_once("'s ")
        .and_then(|(from, rest)| Some((from, rest.split_once(" of ")?.1)))
        .ok_or_else(|| format!("write \"n0's message of 1ms\", not '{first}'"))?;
    let mut flight = FlightRef { from: self::node(from, nodes)?, to, sent: time(sent)?, nth: 0 };
    let (mut arrived, mut forged) = (at, None);
    for part in parts {
        if let Some(number) = part.strip_prefix("number ") {
            let number: u32 = number.parse().map_err(|_| format!("'{number}' is no number"))?;
            flight.nth = number.checked_sub(1).ok_or("messages are numbered from 1")?;
        } else if let Some(when) = part.strip_prefix("arrived at ") {
            arrived = time(when)?;
        } else if let Some(text) = part.strip_prefix("said by ") {
            forged = Some(said(text, nodes)?);
        } else {
            return Err(format!("cannot read '{part}'"));
        }
    }
    Ok(match forged {
        Some((by, guise)) => Action::Forge { flight, by, guise },
        None => Action::Deliver { flight, arrived },
    })
}

/// `n0`
pub(crate) fn node(name: &str, nodes: usize) -> Result<NodeId, String> {
    let number: Option<u64> = name.strip_prefix('n').and_then(|digits| digits.parse().ok());
    let number = number.ok_or_else(|| format!("'{name}' is no node: nodes are written n0, n1, ..."))?;
    if number >= nodes as u64 {
        return Err(format!("there is no node {name}: this scenario has n0 to n{}", nodes.saturating_sub(1)));
    }
    Ok(NodeId(number))
}
