//! Makes a violation small: the fewest lines that still break the same property.
//!
//! Every candidate is replayed in a real world and kept only if the property still breaks, so that
//! what is left is true by construction. Lines that a replay cannot carry out any more drop out by
//! themselves.

use crate::script::{Script, replay};
use crate::stage::{Command, Watch};
use crate::subject::Subject;
use crate::world::{Action, Clock, FlightRef, RealTime, Stretch, clock::MILLI, node_id};

/// A script made small.
pub struct Shrunk<C> {
    /// The shrunk script.
    pub script: Script<C>,
    /// How many replays it took.
    pub replays: u64,
}

struct Shrinker<'a, S: Subject> {
    subject: &'a S,
    property: &'a str,
    replays: u64,
    most_replays: u64,
    /// Whether lines are left out from the end towards the beginning, or the other way.
    from_the_end: bool,
    /// Whether leaving out lines may leave out their time too: it moves everything else. If not at
    /// first, then once nothing else helps.
    cuts_time: bool,
}

/// Shrinks a script that breaks `property`, within a bounded number of replays. The first lines
/// left out decide which can be left out later; so where much is left, other ways are tried too,
/// and the smallest result is taken.
pub fn shrink<S: Subject>(
    subject: &S,
    script: Script<Command<S>>,
    property: &str,
    most_replays: u64,
) -> Shrunk<Command<S>> {
    let mut best: Option<Shrunk<Command<S>>> = None;
    let mut replays = 0;
    for (from_the_end, cuts_time) in [(true, false), (true, true), (false, false), (false, true)] {
        let shrinker = Shrinker { subject, property, replays: 0, most_replays, from_the_end, cuts_time };
        let shrunk = shrinker.run(script.clone());
        replays += shrunk.replays;
        if best.as_ref().is_none_or(|best| size(&shrunk.script) < size(&best.script)) {
            best = Some(shrunk);
        }
        if best.as_ref().is_some_and(|best| best.script.lines.len() <= SHORT) || replays >= most_replays {
            break;
        }
    }
    Shrunk { replays, ..best.unwrap_or(Shrunk { script, replays }) }
}

/// A script of so few lines is not worth another way.
const SHORT: usize = 20;

/// The sizes to reduce: lines first, then nodes, changes of clock rates, and time.
fn size<C>(script: &Script<C>) -> (usize, usize, usize, RealTime) {
    let stretches = script.clocks.iter().map(|clock| clock.parts().1.count()).sum();
    (script.lines.len(), script.clocks.len(), stretches, script.ends)
}

impl<S: Subject> Shrinker<'_, S> {
    fn run(mut self, script: Script<Command<S>>) -> Shrunk<Command<S>> {
        let Some(mut script) = self.keeps(script.clone()) else { return Shrunk { script, replays: 1 } };
        loop {
            let before = size(&script);
            script = self.drop_lines(script);
            script = self.drop_nodes(script);
            script = self.calm_clocks(script);
            script = self.drop_time(script);
            let stuck = size(&script) >= before;
            if (stuck && self.cuts_time) || self.spent() {
                return Shrunk { script, replays: self.replays };
            }
            self.cuts_time |= stuck;
        }
    }

    fn spent(&self) -> bool {
        self.replays >= self.most_replays
    }

    /// The script without what a replay does not use, if the property still breaks.
    fn keeps(&mut self, mut script: Script<Command<S>>) -> Option<Script<Command<S>>> {
        self.replays += 1;
        let watch = Watch { properties: true, only: Some(self.property), ..Watch::default() };
        let replayed = replay(self.subject, &script, watch).ok()?;
        replayed.outcome.violation?;
        script.lines.truncate(replayed.used);
        for skipped in replayed.skipped.into_iter().rev().filter(|line| *line < replayed.used) {
            script.lines.remove(skipped);
        }
        script.ends = script.lines.last().map_or(RealTime(0), |line| line.at).max(replayed.outcome.time);
        script.heals = script.heals.filter(|heals| *heals <= script.ends);
        Some(script)
    }

    /// Leaves out lines: large pieces first, single lines last.
    fn drop_lines(&mut self, mut script: Script<Command<S>>) -> Script<Command<S>> {
        let mut piece = script.lines.len().div_ceil(2).max(1);
        loop {
            script = if self.from_the_end {
                self.drop_backwards(script, piece)
            } else {
                self.drop_forwards(script, piece)
            };
            if piece == 1 || self.spent() {
                return script;
            }
            piece = (piece / 2).max(1);
        }
    }

    fn drop_backwards(&mut self, mut script: Script<Command<S>>, piece: usize) -> Script<Command<S>> {
        let mut at = script.lines.len();
        while at > 0 && !self.spent() {
            let from = at.saturating_sub(piece);
            if let Some(smaller) = self.without_lines(&script, from..at.min(script.lines.len())) {
                script = smaller;
            }
            at = from.min(script.lines.len());
        }
        script
    }

    fn drop_forwards(&mut self, mut script: Script<Command<S>>, piece: usize) -> Script<Command<S>> {
        let mut from = 0;
        while from < script.lines.len() && !self.spent() {
            let until = (from + piece).min(script.lines.len());
            match self.without_lines(&script, from..until) {
                Some(smaller) => script = smaller,
                None => from = until,
            }
        }
        script
    }

    /// Leaves out some lines: as if they had not been, or as if their time had not been either.
    fn without_lines(
        &mut self,
        script: &Script<Command<S>>,
        lines: std::ops::Range<usize>,
    ) -> Option<Script<Command<S>>> {
        let before = lines.start.checked_sub(1).map_or(RealTime(0), |line| script.lines[line].at);
        let took = script.lines[lines.end - 1].at.0 - before.0;
        let mut candidate = script.clone();
        candidate.lines.drain(lines);
        let sooner = self.cuts_time.then(|| without_time(&candidate, before, took));
        self.keeps(candidate).or_else(|| self.keeps(sooner?))
    }

    /// Leaves out the last host, where nothing happens at it and the quorums can do without it.
    fn drop_nodes(&mut self, mut script: Script<Command<S>>) -> Script<Command<S>> {
        while script.clocks.len() > 1 && !self.spent() {
            let mut candidate = script.clone();
            candidate.clocks.pop();
            let last = node_id(candidate.clocks.len());
            let concerns = |action: &Action<_, FlightRef>| senders(action).contains(&Some(last));
            candidate.lines.retain(|line| line.node() != Some(last) && !concerns(&line.action));
            (candidate.constants, candidate.members) = S::without_last(&script.constants, script.members);
            match self.keeps(candidate) {
                Some(smaller) => script = smaller,
                None => break,
            }
        }
        script
    }

    /// Makes clocks constant, or drops changes of rate that come after the end and after the leases
    /// that last beyond it. Clocks that keep to the assumption go on keeping to it: what is found
    /// must be the protocol's fault.
    fn calm_clocks(&mut self, mut script: Script<Command<S>>) -> Script<Command<S>> {
        let assumption = self.subject.assumption(&script.constants);
        let beyond = 2 * S::rhythm(&script.constants).longest;
        for node in 0..script.clocks.len() {
            let (start, stretches) = script.clocks[node].parts();
            let stretches: Vec<Stretch> = stretches.collect();
            let needed: Vec<Stretch> =
                stretches.iter().filter(|s| s.from <= script.ends.after(beyond)).copied().collect();
            let constant = |ppm| vec![Stretch { from: RealTime(0), ppm }];
            let mut choices = vec![constant(0), constant(stretches[0].ppm), needed];
            choices.retain(|choice| *choice != stretches);
            for choice in choices {
                let mut candidate = script.clone();
                candidate.clocks[node] = Clock::new(start, &choice);
                let until = script.ends.after(beyond);
                if assumption.holds_until(&script.clocks, until)
                    && !assumption.holds_until(&candidate.clocks, until)
                {
                    continue;
                }
                if let Some(smaller) = self.keeps(candidate) {
                    script = smaller;
                    break;
                }
            }
        }
        script
    }

    /// Takes out stretches of time in which nothing happens: whole milliseconds, for every clock at
    /// once.
    fn drop_time(&mut self, mut script: Script<Command<S>>) -> Script<Command<S>> {
        for i in 0..script.lines.len() {
            let mut before = if i == 0 { RealTime(0) } else { script.lines[i - 1].at };
            for divisor in [1, 2, 4] {
                let Some(line) = script.lines.get(i) else { return script };
                let gap = (line.at.0 - before.0) / divisor / MILLI * MILLI;
                if gap == 0 || self.spent() {
                    continue;
                }
                let shorter = self.keeps(without_time(&script, before, gap));
                if let Some(shorter) = shorter.filter(|shorter| shorter.lines.len() == script.lines.len()) {
                    script = shorter;
                    before = if i == 0 { RealTime(0) } else { script.lines[i - 1].at };
                }
            }
        }
        script
    }
}

/// The process that sent what is handled, and one that says it in its name.
fn senders<C>(action: &Action<C, FlightRef>) -> [Option<tenure_proto::NodeId>; 2] {
    match action {
        Action::Deliver { flight, .. } => [Some(flight.from), None],
        Action::Forge { flight, by, .. } => [Some(flight.from), Some(*by)],
        _ => [None, None],
    }
}

/// The script with everything after `from` happening `gap` earlier.
fn without_time<C: Clone>(script: &Script<C>, from: RealTime, gap: u64) -> Script<C> {
    let moved = |at: RealTime| if at > from { RealTime(at.0.saturating_sub(gap).max(from.0)) } else { at };
    let mut script = script.clone();
    for line in &mut script.lines {
        line.at = moved(line.at);
        match &mut line.action {
            Action::Deliver { flight, arrived } => {
                flight.sent = moved(flight.sent);
                *arrived = moved(*arrived);
            }
            Action::Forge { flight, .. } => flight.sent = moved(flight.sent),
            Action::Written { given, .. } => *given = moved(*given),
            _ => {}
        }
    }
    script.heals = script.heals.map(moved);
    script.ends = moved(script.ends);
    script
}
