//! The search for an order: depth first, with a memory of what was tried.
//!
//! At each point some operations have taken place and a value is left. The next can be any that
//! began before the first end among those that are still to come: whatever began later must come
//! after that one. Those that were answered are kept in the order in which they began, so what has
//! taken place is nearly always a beginning of that list and a few more: that is how the memory
//! names it, and it stays small however long the history is. Operations that were never answered
//! are kept apart.

use std::collections::BTreeSet;

use super::{Operation, Value};

/// The outcome of a search.
pub(super) struct Found {
    pub(super) outcome: Outcome,
    pub(super) steps: u64,
}

/// How it ended.
pub(super) enum Outcome {
    /// There is an order.
    Order,
    /// There is none: where it got furthest, this answer could not be right.
    Stuck(Operation),
    /// It took too long.
    GaveUp,
}

/// The operations that have taken place, and the value that is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Done {
    /// All answered operations before this one have taken place.
    low: usize,
    /// And these.
    beyond: Vec<u32>,
    /// And of the unanswered ones these.
    unanswered: Vec<u32>,
    value: Option<Value>,
}

/// One operation that may be next.
#[derive(Clone, Copy)]
enum Next {
    Answered(usize),
    Unanswered(usize),
}

struct History {
    answered: Vec<Operation>,
    unanswered: Vec<Operation>,
}

/// Looks for an order in at most so many steps.
pub(super) fn search(operations: &[Operation], most: u64) -> Found {
    let (mut answered, mut unanswered): (Vec<Operation>, Vec<Operation>) =
        operations.iter().partition(|operation| operation.returned.is_some());
    answered.sort_by_key(|operation| operation.invoked);
    unanswered.sort_by_key(|operation| operation.invoked);
    let history = History { answered, unanswered };
    let mut tried = BTreeSet::new();
    let (mut steps, mut furthest) = (0, (0, 0));
    let start = Done::default();
    let mut path = vec![(start.clone(), history.nexts(&start))];
    while let Some((done, nexts)) = path.last_mut() {
        if done.low == history.answered.len() {
            return Found { outcome: Outcome::Order, steps };
        }
        furthest = furthest.max((done.low + done.beyond.len(), done.low));
        let Some(next) = nexts.pop() else {
            path.pop();
            continue;
        };
        steps += 1;
        if steps > most {
            return Found { outcome: Outcome::GaveUp, steps };
        }
        if let Some(after) = history.after(done, next)
            && tried.insert(after.clone())
        {
            let nexts = history.nexts(&after);
            path.push((after, nexts));
        }
    }
    let stuck = history.answered.get(furthest.1).or(history.answered.last()).copied();
    Found { outcome: stuck.map_or(Outcome::Order, Outcome::Stuck), steps }
}

impl History {
    /// The operations that may be next, the best guess last: the one answered first most likely
    /// took place first, and one never answered did not.
    fn nexts(&self, done: &Done) -> Vec<Next> {
        let mut end = u64::MAX;
        let mut found: Vec<(u64, usize)> = Vec::new();
        for (i, operation) in self.answered.iter().enumerate().skip(done.low) {
            if operation.invoked > end {
                break;
            }
            if !taken(&done.beyond, i) {
                let returned = operation.returned.unwrap_or(u64::MAX);
                end = end.min(returned);
                found.push((returned, i));
            }
        }
        found.retain(|(_, i)| self.answered[*i].invoked <= end);
        found.sort_unstable_by(|one, other| other.cmp(one));
        let open = self.unanswered.iter().enumerate();
        let open = open.take_while(|(_, operation)| operation.invoked <= end);
        let mut nexts: Vec<Next> =
            open.filter(|(i, _)| !taken(&done.unanswered, *i)).map(|(i, _)| Next::Unanswered(i)).collect();
        nexts.extend(found.into_iter().map(|(_, i)| Next::Answered(i)));
        nexts
    }

    /// The state if that one takes place now; `None` if its answer would be wrong.
    fn after(&self, done: &Done, next: Next) -> Option<Done> {
        let operation = match next {
            Next::Answered(i) => &self.answered[i],
            Next::Unanswered(i) => &self.unanswered[i],
        };
        let value = operation.call.apply(done.value, operation.returned.is_some())?;
        let mut after = Done { value, ..done.clone() };
        match next {
            Next::Unanswered(i) => add(&mut after.unanswered, i),
            Next::Answered(i) if i > after.low => add(&mut after.beyond, i),
            Next::Answered(_) => {
                after.low += 1;
                while after.beyond.first().is_some_and(|first| *first as usize == after.low) {
                    after.beyond.remove(0);
                    after.low += 1;
                }
            }
        }
        Some(after)
    }
}

fn taken(set: &[u32], i: usize) -> bool {
    u32::try_from(i).is_ok_and(|i| set.binary_search(&i).is_ok())
}

fn add(set: &mut Vec<u32>, i: usize) {
    if let Ok(i) = u32::try_from(i)
        && let Err(place) = set.binary_search(&i)
    {
        set.insert(place, i);
    }
}
