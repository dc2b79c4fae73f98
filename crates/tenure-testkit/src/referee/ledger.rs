//! The knowledge of a referee: the lives of commands, and the processes of runners.

use std::collections::{BTreeMap, BTreeSet};

/// One command, in one term of its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The group that it works for.
    pub group: String,
    /// The name of its runner.
    pub runner: String,
    /// The term, as the command was told.
    pub term: u64,
    /// The token, as the command was told.
    pub token: u128,
    /// Its own first reading.
    pub first: u64,
    /// The last instant at which it was alive for sure.
    pub last: u64,
    /// When it was seen to be dead; `None` while it may live.
    pub ended: Option<u64>,
}

/// A process that runs a command while it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its group.
    pub group: String,
    /// The host that it runs on.
    pub host: u8,
    /// A reading before it was started.
    pub began: u64,
    /// A reading after its death was known; `None` while it may live.
    pub ended: Option<u64>,
}

/// Two commands of one group that were alive at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The one that began first.
    pub earlier: Life,
    /// The one that began while that was alive.
    pub later: Life,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// All commands, in the order in which they registered.
    pub lives: Vec<Life>,
    /// All runners, by name.
    pub runners: BTreeMap<String, Process>,
}

impl Life {
    /// A life by the words of a command, and its slot.
    pub(super) fn parse(line: &str) -> Option<(Self, u64)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [slot, first, term, token, group, runner] = words.as_slice() else { return None };
        let first = first.parse().ok()?;
        let life = Self {
            group: (*group).to_owned(),
            runner: (*runner).to_owned(),
            term: term.parse().ok()?,
            token: token.parse().ok()?,
            first,
            last: first,
            ended: None,
        };
        Some((life, slot.parse().ok()?))
    }

    /// Whether it was alive during all of this time, for sure.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        self.first <= from && to <= self.last
    }
}

impl Ledger {
    pub(super) fn begin(&mut self, life: Life) -> usize {
        self.lives.push(life);
        self.lives.len() - 1
    }

    /// A command was alive at this instant.
    pub(super) fn saw(&mut self, life: usize, at: u64) {
        let life = &mut self.lives[life];
        life.last = life.last.max(at);
    }

    pub(super) fn end(&mut self, life: usize, last: u64, seen: u64) {
        self.saw(life, last);
        self.lives[life].ended = Some(seen);
    }

    /// A runner is about to be started.
    pub fn runner_begins(&mut self, name: &str, group: &str, host: u8, now: u64) {
        let process = Process { group: group.to_owned(), host, began: now, ended: None };
        self.runners.insert(name.to_owned(), process);
    }

    /// A runner is known to be dead.
    pub fn runner_ended(&mut self, name: &str, now: u64) {
        if let Some(process) = self.runners.get_mut(name) {
            process.ended.get_or_insert(now);
        }
    }

    /// The lives of each group, by their beginning.
    pub fn by_group(&self) -> BTreeMap<&str, Vec<&Life>> {
        let mut groups: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        for life in &self.lives {
            groups.entry(&life.group).or_default().push(life);
        }
        groups.values_mut().for_each(|lives| lives.sort_by_key(|life| life.first));
        groups
    }

    /// All pairs of commands of one group that were alive at once.
    pub fn overlaps(&self) -> Vec<Overlap> {
        let mut found = Vec::new();
        for lives in self.by_group().values() {
            for (place, later) in lives.iter().enumerate() {
                let alive = lives[..place].iter().filter(|earlier| later.first <= earlier.last);
                found.extend(alive.map(|one| Overlap { earlier: (*one).clone(), later: (*later).clone() }));
            }
        }
        found
    }

    /// Commands that began later than another and have no larger term and token. A runner may start
    /// its command again in one term.
    pub fn out_of_order(&self) -> Vec<Overlap> {
        let same = |one: &Life, other: &Life| (one.term, &one.runner) == (other.term, &other.runner);
        let risen = |one: &Life, other: &Life| one.term < other.term && one.token < other.token;
        let mut found = Vec::new();
        for lives in self.by_group().values() {
            let pairs = lives.windows(2);
            let wrong = pairs.filter(|pair| !same(pair[0], pair[1]) && !risen(pair[0], pair[1]));
            found.extend(wrong.map(|pair| Overlap { earlier: pair[0].clone(), later: pair[1].clone() }));
        }
        found
    }

    /// The times without a command, of each group: the last that was surely alive, until the next
    /// began.
    pub fn gaps(&self) -> Vec<(&str, u64, u64)> {
        let mut gaps = Vec::new();
        for (group, lives) in self.by_group() {
            gaps.extend(lives.windows(2).map(|pair| (group, pair[0].last, pair[1].first)));
        }
        gaps
    }

    /// The command that works for a group now, as far as is known.
    pub fn working(&self, group: &str) -> Option<&Life> {
        self.lives.iter().rev().find(|life| life.group == group && life.ended.is_none())
    }

    /// All groups that have a runner.
    pub fn groups(&self) -> BTreeSet<&str> {
        self.runners.values().map(|process| process.group.as_str()).collect()
    }
}
