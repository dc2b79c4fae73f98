//! The rules by which a referee judges what somebody says of a group's leader.
//!
//! A question was put at `asked` and answered at `told`; both are readings of the asker itself, one
//! before the question was sent and one after the answer had come. An answer is true if it was so
//! at some instant between the two. A rule finds an answer wrong only where the ledger leaves no
//! such instant. An application's runner is known from outside: its lease begins some
//! time before its command, and may last on after the command's death.
//!
//! An answer **"X leads in term T"** is wrong
//!
//! * L1 if X is no runner of this group, or was started after `told`;
//! * L2 if X's process had been dead for longer than a lease when the question was put: nobody
//!   could renew;
//! * L3 if a command with a larger term began before `asked`: its runner led by then, so T was
//!   over;
//! * L4 if another command (another runner, or another term) was alive during the whole of `[asked,
//!   told]`: its runner held the lease throughout;
//! * L5 if X's command in term T had been dead for longer than [`Rules::after_death`] when the
//!   question was put, and no command of X began in T after it: a runner gives its lease back when
//!   its command is dead, or lets it run out;
//! * L6 if the question was put to a quorum, and another such question, *answered before this one
//!   was put*, was told that T is over (of a larger term, or that nobody leads after T): what
//!   `/leader/GROUP` promises in docs/reference/http.md;
//! * L7 if the answer says that X is on the host that answers, and it is not; or that it is not,
//!   and it is, while all was well (as in U1): a daemon knows it by X's datagrams, and may have
//!   heard none since it began.
//!
//! An answer **"nobody leads"** is wrong
//!
//! * N1 if one command was alive during the whole of `[asked, told]`: its runner held the lease
//!   throughout, so at each instant a quorum supported it.
//!
//! An answer **"not known"**, or none at all, claims nothing. It is counted, and wrong only
//!
//! * U1 if all was well: during `[asked - 5 s, told]` one command of the group was alive
//!   throughout, nothing was done to the cluster, and the machine ran everybody.
//!
//! A list (`tenure status`) rests on what members have reported lately, and says so in its
//! document: L3, L4 and N1 are asked of it with `asked` earlier by [`Rules::list_age`], and L6 not
//! at all.

use std::collections::BTreeMap;

use super::ledger::{Ledger, Life};

/// An answer to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// This process leads.
    Leader {
        /// Its name.
        name: String,
        /// Its term.
        term: u64,
    },
    /// Nobody leads, after this term.
    Nobody {
        /// The last term that is over.
        after: Option<u64>,
    },
    /// It is not known who leads, or nobody can be elected.
    Unknown,
    /// No answer.
    Silence,
    /// An answer that contradicts itself.
    Nonsense(String),
}

/// One answer about one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How it was asked.
    pub kind: &'static str,
    /// The host whose daemon was asked.
    pub host: u8,
    /// The group.
    pub group: String,
    /// A reading before the question was put.
    pub asked: u64,
    /// A reading after the answer had come.
    pub told: u64,
    /// The answer.
    pub says: Says,
    /// Whether the leader runs on the host that was asked, where the answer says.
    pub here: Option<bool>,
    /// It was part of a list, for which nobody was asked.
    pub listed: bool,
}

/// The lengths that the rules go by, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The longest lease of a runner.
    pub lease: u64,
    /// See L5.
    pub after_death: u64,
    /// See lists.
    pub list_age: u64,
    /// How long all must have been well before a question, for U1.
    pub calm: u64,
}

impl Rules {
    /// The rules for runners with this lease. L5: a hand-over may take a lease, in which the runner
    /// still renews, and then the lease runs out. Lists: reports count for three seconds.
    pub fn with_lease(lease: u64) -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self { lease, after_death: 2 * lease + SECOND, list_age: 3 * SECOND, calm: 5 * SECOND }
    }
}

/// An answer that was not true, and the rule that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The name of the rule.
    pub rule: &'static str,
    /// The answer.
    pub claim: Claim,
    /// The case as it was.
    pub why: String,
}

/// Judges answers by a closed ledger. `trouble` are the times in which something was done to the
/// cluster or the machine did not run everybody.
pub fn judge(ledger: &Ledger, claims: &[Claim], trouble: &[(u64, u64)], rules: Rules) -> Vec<Wrong> {
    let judge = Judge { ledger, lives: ledger.by_group(), over: terms_that_are_over(claims), trouble, rules };
    let found = claims.iter().filter_map(|claim| {
        let (rule, why) = judge.fault(claim)?;
        Some(Wrong { rule, claim: claim.clone(), why })
    });
    let mut wrong: Vec<Wrong> = found.collect();
    wrong.sort_by_key(|wrong| wrong.claim.told);
    wrong
}

struct Judge<'a> {
    ledger: &'a Ledger,
    lives: BTreeMap<&'a str, Vec<&'a Life>>,
    /// For each group: at which instant somebody knew that which terms are over. Both rise.
    over: BTreeMap<&'a str, Vec<(u64, u64)>>,
    trouble: &'a [(u64, u64)],
    rules: Rules,
}

/// The terms of each group that answers of quorums have said to be over, by when they came.
fn terms_that_are_over(claims: &[Claim]) -> BTreeMap<&str, Vec<(u64, u64)>> {
    let mut over: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| !claim.listed) {
        let term = match claim.says {
            Says::Leader { term, .. } => term.checked_sub(1),
            Says::Nobody { after } => after,
            _ => None,
        };
        over.entry(&claim.group).or_default().extend(term.map(|term| (claim.told, term)));
    }
    for told in over.values_mut() {
        told.sort_unstable();
        let mut largest = 0;
        for (_, term) in told {
            largest = largest.max(*term);
            *term = largest;
        }
    }
    over
}

type Fault = Option<(&'static str, String)>;

impl Judge<'_> {
    fn fault(&self, claim: &Claim) -> Fault {
        match &claim.says {
            Says::Leader { name, term } => self.leader(claim, name, *term),
            Says::Nobody { .. } => {
                let from = self.since(claim);
                let alive = self.lives(claim).find(|life| life.covers(from, claim.told))?;
                Some(("N1", format!("{} was alive all the time", tell(alive))))
            }
            Says::Unknown | Says::Silence => self.unknown(claim),
            Says::Nonsense(what) => Some(("nonsense", what.clone())),
        }
    }

    /// The instant from which an answer must have been true at some time.
    fn since(&self, claim: &Claim) -> u64 {
        claim.asked.saturating_sub(if claim.listed { self.rules.list_age } else { 0 })
    }

    fn lives(&self, claim: &Claim) -> impl Iterator<Item = &Life> {
        self.lives.get(claim.group.as_str()).into_iter().flatten().copied()
    }

    fn leader(&self, claim: &Claim, name: &str, term: u64) -> Fault {
        let Some(runner) = self.ledger.runners.get(name).filter(|runner| runner.group == claim.group) else {
            return Some(("L1", format!("{name} is no runner of {}", claim.group)));
        };
        if claim.told < runner.began {
            return Some(("L1", format!("{name} was started at {} only", runner.began)));
        }
        if let Some(ended) = runner.ended.filter(|ended| claim.asked > ended + self.rules.lease) {
            return Some(("L2", format!("{name} was dead at {ended}, longer ago than a lease")));
        }
        let is_wrong = |is_here: &bool| match (*is_here, runner.host == claim.host) {
            (true, false) => true,
            (false, true) => self.all_was_well(claim).is_some_and(|life| life.runner == name),
            _ => false,
        };
        if let Some(is_here) = claim.here.filter(is_wrong) {
            return Some(("L7", format!("it says here: {is_here}; {name} runs on host {}", runner.host)));
        }
        self.term(claim, name, term).or_else(|| self.order(claim, term))
    }

    /// L3, L4 and L5.
    fn term(&self, claim: &Claim, name: &str, term: u64) -> Fault {
        let since = self.since(claim);
        let is_its = |life: &&Life| (life.runner.as_str(), life.term) == (name, term);
        if let Some(next) = self.lives(claim).find(|life| life.term > term && life.first < since) {
            return Some(("L3", format!("{} had begun", tell(next))));
        }
        let mut others = self.lives(claim).filter(|life| !is_its(life));
        if let Some(other) = others.find(|life| life.covers(since, claim.told)) {
            return Some(("L4", format!("{} was alive all the time", tell(other))));
        }
        let ends: Option<Vec<u64>> = self.lives(claim).filter(is_its).map(|life| life.ended).collect();
        let ended = ends?.into_iter().max()?;
        let late = claim.asked > ended + self.rules.after_death;
        late.then(|| ("L5", format!("its command was dead at {ended}")))
    }

    /// L6.
    fn order(&self, claim: &Claim, term: u64) -> Fault {
        let told = self.over.get(claim.group.as_str()).filter(|_| !claim.listed)?;
        let before = told.partition_point(|(told, _)| *told < claim.asked);
        let (at, over) = *told[..before].last()?;
        (over >= term).then(|| ("L6", format!("term {over} was said to be over before {at}")))
    }

    fn unknown(&self, claim: &Claim) -> Fault {
        let alive = self.all_was_well(claim)?;
        Some(("U1", format!("all was well, and {} was alive", tell(alive))))
    }

    /// The command that was alive throughout, if nothing was done for a while before a question and
    /// during it.
    fn all_was_well(&self, claim: &Claim) -> Option<&Life> {
        let from = claim.asked.saturating_sub(self.rules.calm);
        let is_then = |(began, ended): &(u64, u64)| *began <= claim.told && from <= *ended;
        let alive = || self.lives(claim).find(|life| life.covers(from, claim.told));
        if self.trouble.iter().any(is_then) { None } else { alive() }
    }
}

fn tell(life: &Life) -> String {
    let Life { runner, term, first, last, .. } = life;
    format!("the command of {runner} in term {term} ({first}..{last})")
}

#[cfg(test)]
mod tests;
