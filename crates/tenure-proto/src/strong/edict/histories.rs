//! Random legal histories: whatever the grantors and candidates do within the rules, all edicts of
//! a history compare, in all three forms, and as they were created.
//!
//! Time is left out: a grantor is bound until it is given back, which is what an expired lease
//! amounts to. The rest is kept, all that the orders rest on: quorums that meet, one holder at a
//! time, stamps and terms that rise, rule U, and epochs whose members change by one at a time.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::tests::Random;
use super::*;
use crate::time::{Stamp, StampClock};
use crate::{Incarnation, LocalTime, NodeId};

const CANDIDATES: usize = 3;

struct Grantor {
    life: u128,
    reading: u64,
    clock: StampClock,
    bound_to: Option<usize>,
    max_term: Term,
    /// The run that `max_term` was granted to.
    max_run: u64,
}

impl Grantor {
    fn new(max_term: Term) -> Self {
        let clock = StampClock::new(Incarnation(1), LocalTime::ZERO);
        Self { life: 1, reading: 0, clock, bound_to: None, max_term, max_run: 0 }
    }

    /// A reboot: the reading starts again, only the life is larger. Here, after every promise has
    /// run out.
    fn restart(&mut self) {
        self.life += 1;
        self.reading = 0;
        self.clock = StampClock::new(Incarnation(self.life), LocalTime::ZERO);
    }

    fn grants(&mut self, candidate: usize, run: &Run) -> Option<Stamp> {
        let fresh = run.renews || run.term > self.max_term || run.id == self.max_run;
        if self.bound_to.is_some_and(|bound| bound != candidate) || !fresh {
            return None;
        }
        if !run.renews {
            (self.max_term, self.max_run) = (run.term, run.id);
        }
        self.bound_to = Some(candidate);
        Some(self.clock.stamp())
    }
}

#[derive(Clone)]
struct Run {
    id: u64,
    epoch: Epoch,
    renews: bool,
    term: Term,
    oks: Vec<(NodeId, Stamp)>,
}

struct Lead {
    newest: ByInstance,
    first: ByTerm,
    term: Term,
    counter: Counter,
}

#[derive(Default)]
struct Candidate {
    run: Option<Run>,
    lead: Option<Lead>,
    /// The paper's EC: one for the life of the process.
    edicts: u64,
}

/// One edict, stamped in every form.
struct Issued {
    instance: Edict<ByInstance>,
    by_term: Edict<ByTerm>,
    scalar: Edict,
}

struct History {
    random: Random,
    epoch: Epoch,
    grantors: BTreeMap<NodeId, Grantor>,
    joined: u64,
    candidates: [Candidate; CANDIDATES],
    runs: u64,
    issued: Vec<Issued>,
}

impl History {
    fn of_seed(seed: u64) -> Self {
        let mut random = Random(seed);
        let joined = 3 + u64::try_from(random.below(4)).unwrap();
        let grantors = (0..joined).map(|node| (NodeId(node), Grantor::new(Term(0)))).collect();
        let candidates = Default::default();
        let mut history =
            Self { random, epoch: Epoch(0), grantors, joined, candidates, runs: 0, issued: Vec::new() };
        for _ in 0..2000 {
            history.step();
        }
        history
    }

    fn step(&mut self) {
        let candidate = self.random.below(CANDIDATES);
        let grantor = *self.grantors.keys().nth(self.random.below(self.grantors.len())).unwrap();
        match self.random.below(100) {
            0..6 => self.begin(candidate),
            6..78 => self.ask(candidate, grantor),
            78..86 => self.issue(candidate),
            86..92 => self.give_back(candidate),
            92..95 => self.grantors.get_mut(&grantor).unwrap().reading += 10,
            95..99 => self.restart(grantor),
            _ => self.change_members(grantor),
        }
        if let Some(grantor) = self.grantors.get_mut(&grantor) {
            grantor.clock.observe(LocalTime::from_nanos(grantor.reading)).unwrap();
        }
    }

    fn begin(&mut self, candidate: usize) {
        self.runs += 1;
        let known = self.grantors.values().map(|grantor| grantor.max_term.0);
        // A candidate's knowledge of terms may be old: a term too small is refused.
        let guess = known.max().unwrap_or(0).saturating_sub(self.random.bits() % 3) + 1;
        let lead = self.candidates[candidate].lead.as_ref();
        let (renews, term) = lead.map_or((false, Term(guess)), |lead| (true, lead.term));
        let run = Run { id: self.runs, epoch: self.epoch, renews, term, oks: Vec::new() };
        self.candidates[candidate].run = Some(run);
    }

    fn ask(&mut self, candidate: usize, name: NodeId) {
        let majority = self.grantors.len() / 2 + 1;
        let Some(run) = &mut self.candidates[candidate].run else { return };
        let grantor = self.grantors.get_mut(&name).unwrap();
        if run.epoch != self.epoch || run.oks.iter().any(|(granted, _)| *granted == name) {
            return;
        }
        let Some(stamp) = grantor.grants(candidate, run) else { return };
        run.oks.push((name, stamp));
        if run.oks.len() == majority {
            self.complete(candidate);
        }
    }

    fn complete(&mut self, candidate: usize) {
        let others = self.candidates.iter().enumerate().filter(|(other, _)| *other != candidate);
        assert!(
            others.into_iter().all(|(_, other)| other.lead.is_none()),
            "two leaders: not a legal history"
        );
        let Candidate { run, lead, .. } = &mut self.candidates[candidate];
        let run = run.take().unwrap();
        let quorum = QuorumStamp::from_iter(run.oks);
        let newest = ByInstance { epoch: run.epoch, quorum: quorum.clone() };
        match lead {
            Some(lead) => lead.newest = newest,
            None => {
                let first = ByTerm { epoch: run.epoch, first: quorum };
                *lead = Some(Lead { newest, first, term: run.term, counter: Counter::new() });
            }
        }
    }

    fn issue(&mut self, candidate: usize) {
        let Candidate { lead: Some(lead), edicts, .. } = &mut self.candidates[candidate] else { return };
        *edicts += 1;
        let number = lead.counter.take().unwrap();
        self.issued.push(Issued {
            instance: Edict { tag: lead.newest.clone(), number: *edicts },
            by_term: Edict { tag: lead.first.clone(), number },
            scalar: Edict { tag: lead.term, number },
        });
    }

    /// A leader resigns or lapses, another candidate gives up: first the belief ends, then the
    /// grants.
    fn give_back(&mut self, candidate: usize) {
        self.candidates[candidate].run = None;
        self.candidates[candidate].lead = None;
        for grantor in self.grantors.values_mut().filter(|grantor| grantor.bound_to == Some(candidate)) {
            grantor.bound_to = None;
        }
    }

    fn restart(&mut self, name: NodeId) {
        let grantor = self.grantors.get_mut(&name).unwrap();
        if grantor.bound_to.is_none() {
            grantor.restart();
        }
    }

    /// The next epoch: one member more or one less, so that old and new majorities meet. Not before
    /// every lease of the epoch before this one is over, and with a floor above every term.
    fn change_members(&mut self, leaving: NodeId) {
        let spaced = self.candidates.iter().filter_map(|candidate| candidate.lead.as_ref());
        if spaced.into_iter().any(|lead| lead.newest.epoch != self.epoch) {
            return;
        }
        self.epoch.0 += 1;
        let floor = self.grantors.values().map(|grantor| grantor.max_term).max().unwrap();
        if self.grantors.len() > 3 && self.random.below(2) == 0 {
            self.grantors.remove(&leaving);
        } else if self.grantors.len() < 7 {
            self.grantors.insert(NodeId(self.joined), Grantor::new(floor));
            self.joined += 1;
        }
        for grantor in self.grantors.values_mut().filter(|grantor| grantor.max_term < floor) {
            (grantor.max_term, grantor.max_run) = (floor, 0);
        }
    }
}

/// Creation order is index order; so this is totality, antisymmetry and transitivity at once.
fn check_order<T: Tag>(edicts: &[Edict<T>], seed: u64) {
    for (i, a) in edicts.iter().enumerate() {
        for (j, b) in edicts.iter().enumerate() {
            assert_eq!(a.order(b), Ok(i.cmp(&j)), "seed {seed}: {a:?} (created as {i}) and {b:?} (as {j})");
        }
    }
}

#[test]
fn all_edicts_of_a_legal_history_compare_as_they_were_created_in_all_three_forms() {
    let (mut edicts, mut terms, mut epochs) = (0, 0, 0);
    for seed in 0..300 {
        let issued = History::of_seed(seed).issued;
        check_order(&issued.iter().map(|issued| issued.instance.clone()).collect::<Vec<_>>(), seed);
        check_order(&issued.iter().map(|issued| issued.by_term.clone()).collect::<Vec<_>>(), seed);
        check_order(&issued.iter().map(|issued| issued.scalar).collect::<Vec<_>>(), seed);
        edicts += issued.len();
        let mut led: Vec<Term> = issued.iter().map(|issued| issued.scalar.tag).collect();
        led.dedup();
        terms += led.len();
        epochs += issued.last().map_or(0, |issued| issued.instance.tag.epoch.0);
    }
    // A history in which nothing happens proves nothing.
    assert!(
        edicts > 3000 && terms > 1000 && epochs > 1000,
        "{edicts} edicts, {terms} terms, {epochs} epochs"
    );
}

#[test]
fn tokens_of_a_legal_history_rise_in_both_forms() {
    for seed in 0..300 {
        let tokens: Vec<Token> =
            History::of_seed(seed).issued.iter().map(|issued| issued.scalar.token()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "seed {seed}");
        assert!(tokens.is_sorted_by(|a, b| a.as_u128() < b.as_u128()), "seed {seed}");
        assert!(tokens.is_sorted_by(|a, b| a.pack().unwrap() < b.pack().unwrap()), "seed {seed}");
    }
}

#[test]
fn any_three_edicts_that_compare_are_transitive() {
    let mut random = Random(9);
    for seed in 0..100 {
        let issued = History::of_seed(seed).issued;
        if issued.is_empty() {
            continue;
        }
        for _ in 0..200 {
            let [a, b, c] = [(); 3].map(|()| &issued[random.below(issued.len())].instance);
            let below = |a: &Edict<ByInstance>, b| a.order(b).unwrap() != Ordering::Greater;
            assert!(!(below(a, b) && below(b, c)) || below(a, c), "seed {seed}: {a:?} {b:?} {c:?}");
            assert!(!(below(a, b) && below(b, a)) || a == b, "seed {seed}: {a:?} {b:?}");
        }
    }
}

#[test]
fn histories_exercise_more_than_one_run_a_term() {
    let renewed = |issued: &Issued| issued.instance.tag.quorum != issued.by_term.tag.first;
    let into_next = |issued: &Issued| issued.instance.tag.epoch > issued.by_term.tag.epoch;
    let all: Vec<Issued> = (0..100).flat_map(|seed| History::of_seed(seed).issued).collect();
    assert!(all.iter().any(renewed) && all.iter().any(into_next));
}
