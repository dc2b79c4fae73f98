//! Scripts as text.

use std::fmt::Write;

use tenure_proto::NodeId;

use super::{Expect, Line, Script};
use crate::stage::Command;
use crate::subject::Subject;
use crate::world::{Action, Clock, Dial, FlightRef, Freeze, How, Kill, RealTime};

impl<C> Script<C> {
    /// The script as a file. Reading it gives the same script, but for the words in which outcomes
    /// are told.
    pub fn write<S>(&self) -> String
    where
        S: Subject,
        S::Machine: tenure_proto::Protocol<Command = C>,
    {
        let mut text = String::from("tenure scenario 1\n");
        for remark in &self.remarks {
            line(&mut text, &format!("# {remark}"));
        }
        line(&mut text, &format!("protocol {}", self.protocol));
        if let Some(mutant) = &self.mutant {
            line(&mut text, &format!("mutant {mutant}"));
        }
        if let Some(seed) = self.seed {
            line(&mut text, &format!("seed {seed}"));
        }
        line(&mut text, &format!("nodes {}", self.members));
        line(&mut text, &format!("quorums {}", self.quorums));
        line(&mut text, &format!("set {}", self.constants));
        for (node, clock) in self.clocks.iter().enumerate() {
            line(&mut text, &clock_text(node, clock));
        }
        if let Some(property) = &self.only {
            line(&mut text, &format!("judge {property}"));
        }
        line(
            &mut text,
            &match &self.expect {
                Expect::Holds => "expect holds".to_owned(),
                Expect::Broken(property) => format!("expect broken {property}"),
            },
        );
        if let Some(heals) = self.heals {
            line(&mut text, &format!("heals at {heals}"));
        }
        line(&mut text, &format!("ends at {}", self.ends));
        line(&mut text, &format!("lines {}", self.lines.len()));
        text.push('\n');
        for entry in &self.lines {
            line(&mut text, &format!("{}  {}{}", entry.at, entry.words::<S>(), draws_text(&entry.draws)));
            for outcome in &entry.outcomes {
                line(&mut text, &format!("    {outcome}"));
            }
        }
        text
    }
}

fn line(text: &mut String, words: &str) {
    text.push_str(words.trim_end());
    text.push('\n');
}

impl<C> Line<C> {
    /// The action in words, without the time.
    pub fn words<S>(&self) -> String
    where
        S: Subject,
        S::Machine: tenure_proto::Protocol<Command = C>,
    {
        let mut words = self.action_words::<S>();
        if let Some(kill) = self.kill {
            words.push_str(KILLED);
            words.push_str(&kill_text(kill));
        }
        words
    }

    /// `n1 handles n0's request of 12.5ms, number 2`
    fn message_words(&self, flight: &FlightRef) -> String {
        let FlightRef { from, to, sent, nth } = flight;
        let mut words = format!("{to} handles {from}'s {} of {sent}", self.kind);
        if *nth > 0 {
            let _ = write!(words, ", number {}", nth + 1);
        }
        words
    }

    fn action_words<S>(&self) -> String
    where
        S: Subject,
        S::Machine: tenure_proto::Protocol<Command = C>,
    {
        match &self.action {
            Action::Forge { flight, by, guise } => {
                format!("{}, said by {by}{}", self.message_words(flight), guise.text())
            }
            Action::Deliver { flight, arrived } => {
                let mut words = self.message_words(flight);
                if *arrived != self.at {
                    let _ = write!(words, ", arrived at {arrived}");
                }
                words
            }
            Action::Wake(node) => format!("{node} wakes"),
            Action::Tell(node, command) => told::<S>(*node, command),
            Action::Written { node, given } => {
                format!("{node} has written what its disk was given by {given}")
            }
            Action::Crash(node) => format!("{node} crashes"),
            Action::Start(node, how) => format!("{node} {}", how_text(*how)),
            Action::Freeze(node, Freeze::Pause) => format!("{node} pauses"),
            Action::Freeze(node, Freeze::Suspend) => format!("{node} is suspended"),
            Action::Freeze(node, Freeze::Coarse(off)) => {
                let way = if *off < 0 { "short" } else { "long" };
                format!("{node} is suspended, counted {} {way}", RealTime(off.unsigned_abs()))
            }
            Action::Thaw(node) => format!("{node} goes on"),
            Action::Step { node, dial, by } => {
                let which = match dial {
                    Dial::Clock => "clock",
                    Dial::TimeOfDay => "time of day",
                };
                let way = if *by < 0 { "back" } else { "forward" };
                format!("{node}'s {which} steps {way} {}", RealTime(by.unsigned_abs()))
            }
            Action::Work(node, thread) => format!("{node} works on thread {thread}"),
            Action::Network(text) => format!("network: {text}"),
        }
    }
}

fn told<S: Subject>(node: NodeId, command: &Command<S>) -> String {
    format!("{node} is told: {}", S::command_text(command))
}

/// The words between a step and the place in it where its process is killed.
pub(super) const KILLED: &str = ", and is killed after effect ";

/// `2, 1 record durable`
fn kill_text(Kill { effects, durable }: Kill) -> String {
    let records = if durable == 1 { "record" } else { "records" };
    format!("{effects}, {durable} {records} durable")
}

/// How a start reads.
pub fn how_text(how: How) -> &'static str {
    match how {
        How::Restart => "restarts",
        How::Elsewhere => "restarts elsewhere",
        How::Reboot => "reboots",
        How::DiskLost => "starts without its disk",
    }
}

fn clock_text(node: usize, clock: &Clock) -> String {
    let (start, stretches) = clock.parts();
    let mut text = format!("clock n{node} shows {}", RealTime(start));
    for stretch in stretches {
        match stretch.from.0 {
            0 => _ = write!(text, ", {:+}ppm", stretch.ppm),
            _ => _ = write!(text, ", from {} {:+}ppm", stretch.from, stretch.ppm),
        }
    }
    text
}

fn draws_text(draws: &[u32]) -> String {
    if draws.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = draws.iter().map(u32::to_string).collect();
    format!(" [{}]", numbers.join(" "))
}
