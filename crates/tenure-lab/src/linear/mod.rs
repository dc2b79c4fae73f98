//! Linearizability: did clients see one store, in which each of their operations took place at an
//! instant between its beginning and its end?
//!
//! A history is a list of operations on keys, each with the time at which it was invoked and, if it
//! was answered, the time of that and what the answer said. It is linearizable if there is an order
//! of the operations that respects real time (what had ended before another began comes before it)
//! and in which every answer is right. Keys are independent of each other, so each is judged alone
//! (Herlihy and Wing: linearizability is local). An operation that was never answered may have
//! taken place at any time after its beginning, or not at all.
//!
//! `search` looks for such an order as Wing and Gong do, and remembers, as Lowe does, what was
//! tried: the same operations done with the same value left are not tried twice. `text` is the form
//! in which real clients write their histories down (`tenure lab check-history`).

mod search;
mod text;

pub use text::{TextError, parse, write};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A value, named by a number: what it is does not matter, only whether it is the same.
pub type Value = u32;

/// The effect of an operation on its key, and its answer, if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Asks for the value.
    Get {
        /// The value; `None` if there was none.
        saw: Option<Value>,
    },
    /// Sets the value, or, with `None`, deletes it.
    Put {
        /// To what.
        to: Option<Value>,
    },
    /// Sets the value and tells the former one.
    Swap {
        /// To what.
        to: Value,
        /// The value.
        saw: Option<Value>,
    },
    /// Sets the value if it is as expected.
    Cas {
        /// The expected value.
        from: Option<Value>,
        /// To what.
        to: Option<Value>,
        /// Whether it was.
        done: bool,
    },
}

impl Call {
    /// The value afterwards if it is `value` before; `None` if the answer would be wrong then.
    /// Without an answer nothing is wrong.
    fn apply(self, value: Option<Value>, answered: bool) -> Option<Option<Value>> {
        match self {
            Self::Get { saw } => (!answered || saw == value).then_some(value),
            Self::Put { to } => Some(to),
            Self::Swap { to, saw } => (!answered || saw == value).then_some(Some(to)),
            Self::Cas { from, to, done } => {
                let fits = from == value;
                (!answered || fits == done).then_some(if fits { to } else { value })
            }
        }
    }

    /// The value that it may leave, if any.
    fn leaves(self) -> Option<Option<Value>> {
        match self {
            Self::Get { .. } => None,
            Self::Put { to } | Self::Cas { to, .. } => Some(to),
            Self::Swap { to, .. } => Some(Some(to)),
        }
    }

    /// The value that its answer, or its condition, tells of.
    fn sees(self, answered: bool) -> Option<Option<Value>> {
        match self {
            Self::Get { saw } | Self::Swap { saw, .. } => answered.then_some(saw),
            Self::Put { .. } => None,
            Self::Cas { from, .. } => Some(from),
        }
    }
}

/// One operation of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Whose.
    pub client: u64,
    /// On which key.
    pub key: u32,
    /// What.
    pub call: Call,
    /// When it began.
    pub invoked: u64,
    /// When it was answered, if it was.
    pub returned: Option<u64>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |value: Option<Value>| value.map_or("nothing".to_owned(), |value| value.to_string());
        let answered = self.returned.is_some();
        match self.call {
            Call::Get { saw } if answered => write!(f, "get of {}", name(saw)),
            Call::Get { .. } => write!(f, "get"),
            Call::Put { to } => write!(f, "put of {}", name(to)),
            Call::Swap { to, saw } if answered => write!(f, "swap of {} for {to}", name(saw)),
            Call::Swap { to, .. } => write!(f, "swap for {to}"),
            Call::Cas { from, to, done } => {
                let done = if !answered {
                    ""
                } else if done {
                    ", done"
                } else {
                    ", not done"
                };
                write!(f, "cas of {} to {}{done}", name(from), name(to))
            }
        }?;
        write!(f, " on key {} by client {} from {}", self.key, self.client, self.invoked)?;
        match self.returned {
            Some(at) => write!(f, " to {at}"),
            None => write!(f, ", never answered"),
        }
    }
}

/// The verdict on a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many operations there were.
    pub operations: usize,
    /// How many of them were never answered.
    pub unanswered: usize,
    /// How many keys.
    pub keys: usize,
    /// How many steps the search took.
    pub steps: u64,
    /// The keys for which there is no order, each with the first operation that fits nowhere.
    pub broken: Vec<(u32, Operation)>,
    /// The keys for which the search gave up: nothing is known of them.
    pub undecided: Vec<u32>,
}

impl Verdict {
    /// Whether an order was found for every key.
    pub fn is_linearizable(&self) -> bool {
        self.broken.is_empty() && self.undecided.is_empty()
    }
}

/// The most steps that a search may take for one key.
pub const MOST_STEPS: u64 = 20_000_000;

/// Judges a history, in any order, that began with no values.
pub fn check(history: &[Operation]) -> Verdict {
    let mut by_key: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        by_key.entry(operation.key).or_default().push(*operation);
    }
    let unanswered = history.iter().filter(|operation| operation.returned.is_none()).count();
    let mut verdict =
        Verdict { operations: history.len(), unanswered, keys: by_key.len(), ..Verdict::default() };
    for (key, operations) in by_key {
        let found = search::search(&relevant(operations), MOST_STEPS);
        verdict.steps += found.steps;
        match found.outcome {
            search::Outcome::Order => {}
            search::Outcome::Stuck(operation) => verdict.broken.push((key, operation)),
            search::Outcome::GaveUp => verdict.undecided.push(key),
        }
    }
    verdict
}

/// Leaves out operations that were never answered and whose effect nobody saw: an order with one of
/// them is one without it, too.
fn relevant(mut operations: Vec<Operation>) -> Vec<Operation> {
    let seen: BTreeSet<Option<Value>> =
        operations.iter().filter_map(|operation| operation.call.sees(operation.returned.is_some())).collect();
    // A condition that was not met may owe that to anything.
    let unmet = |operation: &Operation| {
        operation.returned.is_some() && matches!(operation.call, Call::Cas { done: false, .. })
    };
    let keep_all = operations.iter().any(unmet);
    operations.retain(|operation| {
        let leaves = operation.call.leaves();
        operation.returned.is_some() || leaves.is_some_and(|value| keep_all || seen.contains(&value))
    });
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn operation(client: u64, call: Call, invoked: u64, returned: u64) -> Operation {
        let returned = (returned > 0).then_some(returned);
        Operation { client, key: 0, call, invoked, returned }
    }

    fn put(client: u64, to: Value, invoked: u64, returned: u64) -> Operation {
        operation(client, Call::Put { to: Some(to) }, invoked, returned)
    }

    fn get(client: u64, saw: Option<Value>, invoked: u64, returned: u64) -> Operation {
        operation(client, Call::Get { saw }, invoked, returned)
    }

    fn holds(history: &[Operation]) -> bool {
        check(history).is_linearizable()
    }

    #[test]
    fn a_read_sees_the_last_write_that_was_answered_or_one_under_way() {
        assert!(holds(&[put(1, 5, 1, 2), get(2, Some(5), 3, 4)]));
        assert!(!holds(&[put(1, 5, 1, 2), get(2, None, 3, 4)]), "it was answered before");
        assert!(holds(&[put(1, 5, 1, 4), get(2, None, 2, 3)]), "it was under way");
        assert!(holds(&[put(1, 5, 1, 4), get(2, Some(5), 2, 3)]));
    }

    #[test]
    fn what_one_reader_saw_a_later_one_cannot_miss() {
        let write = put(1, 5, 1, 10);
        assert!(holds(&[write, get(2, None, 2, 3), get(3, Some(5), 4, 5)]));
        assert!(!holds(&[write, get(2, Some(5), 2, 3), get(3, None, 4, 5)]));
    }

    #[test]
    fn a_write_without_an_answer_may_come_late_or_never() {
        let lost = put(1, 5, 1, 0);
        assert!(holds(&[lost, get(2, None, 2, 3)]));
        assert!(holds(&[lost, get(2, None, 2, 3), get(2, Some(5), 4, 5)]));
        assert!(!holds(&[lost, get(2, Some(5), 2, 3), get(2, None, 4, 5)]));
    }

    #[test]
    fn a_write_that_was_carried_out_twice_is_seen() {
        let history = [put(1, 5, 1, 2), put(2, 6, 3, 4), get(3, Some(6), 5, 6), get(3, Some(5), 7, 8)];
        assert!(!holds(&history));
        let swaps = [
            operation(1, Call::Swap { to: 5, saw: None }, 1, 2),
            operation(2, Call::Swap { to: 6, saw: Some(5) }, 3, 4),
            operation(1, Call::Swap { to: 7, saw: Some(5) }, 5, 6),
        ];
        assert_eq!(check(&swaps).broken.first().map(|(_, stuck)| *stuck), Some(swaps[2]));
    }

    #[test]
    fn conditions_are_judged_with_their_answers() {
        let cas = |done, at| operation(1, Call::Cas { from: None, to: Some(1), done }, at, at + 1);
        assert!(holds(&[cas(true, 1), cas(false, 3), get(2, Some(1), 5, 6)]));
        assert!(!holds(&[cas(true, 1), cas(true, 3)]));
    }

    /// A store that answers at a random instant within each operation: linearizable by
    /// construction.
    fn honest(seed: u64, clients: u64, rounds: u64) -> Vec<Operation> {
        let mut random = Random::stream(seed, "history");
        let (mut value, mut history, mut busy) = (None, Vec::new(), BTreeMap::new());
        for at in 1..=rounds {
            let client = random.below(clients);
            match busy.remove(&client) {
                None => {
                    let call = match random.below(3) {
                        0 => Call::Get { saw: None },
                        1 => Call::Swap { to: u32::try_from(at).unwrap(), saw: None },
                        _ => Call::Put { to: Some(u32::try_from(at).unwrap()) },
                    };
                    busy.insert(client, (operation(client, call, at, 0), false));
                }
                Some((mut operation, done)) if done || random.percent(60) => {
                    if !done {
                        take_place(&mut operation, &mut value);
                    }
                    operation.returned = Some(at);
                    history.push(operation);
                }
                Some((mut operation, _)) => {
                    take_place(&mut operation, &mut value);
                    busy.insert(client, (operation, true));
                }
            }
        }
        history.extend(busy.into_values().map(|(operation, _)| operation));
        history
    }

    fn take_place(operation: &mut Operation, value: &mut Option<Value>) {
        match &mut operation.call {
            Call::Get { saw } => *saw = *value,
            Call::Swap { to, saw } => (*saw, *value) = (*value, Some(*to)),
            Call::Put { to } => *value = *to,
            Call::Cas { .. } => {}
        }
    }

    #[test]
    fn honest_histories_pass_quickly_and_forged_answers_do_not() {
        for seed in 0..200 {
            let mut history = honest(seed, 6, 400);
            let verdict = check(&history);
            assert!(verdict.is_linearizable(), "seed {seed}: {verdict:?}");
            assert!(verdict.steps < 4_000, "seed {seed}: {} steps", verdict.steps);
            // An answer from long ago.
            let answered =
                history.iter().rposition(|o| matches!(o.call, Call::Get { .. }) && o.returned.is_some());
            if let Some(position) = answered {
                history[position].call = Call::Get { saw: Some(0) };
                assert!(!holds(&history), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_long_history_of_one_key_is_judged_in_steps_that_grow_with_its_length() {
        let verdict = check(&honest(7, 8, 100_000));
        assert!(verdict.is_linearizable());
        assert!(verdict.steps < 1_000_000, "{} steps", verdict.steps);
    }
}
