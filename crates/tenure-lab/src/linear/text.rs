//! Histories as text, one operation a line, in any order:
//!
//! ```text
//! # client  call                     invoked  returned
//! c1        put x 17               @ 1000     1500
//! c2        get x -> 17            @ 1600     1700
//! c2        get y -> -             @ 1800     1850      there was no value
//! c1        swap x 18 -> 17        @ 1900     1950
//! c3        cas x 18 19 -> yes     @ 2000     2100
//! c3        delete x               @ 2200     ?         never answered
//! ```
//!
//! Times are whole numbers of one clock. Keys and values are words without blanks; `-` is no value.
//! Words after the times are ignored. An operation that certainly did not take place is left out.

use std::collections::BTreeMap;
use std::fmt;

use super::{Call, Operation, Value};

/// Why a text is no history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, counted from 1.
    pub line: usize,
    /// The flaw in it.
    pub what: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TextError {}

/// Numbers words in the order in which they come.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    fn number(&mut self, word: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(word.to_owned()).or_insert(next)
    }

    fn value(&mut self, word: &str) -> Option<Value> {
        (word != "-").then(|| self.number(word))
    }
}

/// Reads a history. Several texts of one clock may be joined before.
pub fn parse(text: &str) -> Result<Vec<Operation>, TextError> {
    let (mut keys, mut values, mut clients) = (Names::default(), Names::default(), Names::default());
    let mut history = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |what: &str| TextError { line: number + 1, what: what.to_owned() };
        let (call, times) = line.split_once('@').ok_or_else(|| fail("there is no @ before the times"))?;
        let mut words = call.split_whitespace();
        let client = words.next().ok_or_else(|| fail("there is no client"))?;
        let words: Vec<&str> = words.collect();
        let mut times = times.split_whitespace();
        let invoked = times.next().and_then(|time| time.parse().ok());
        let invoked = invoked.ok_or_else(|| fail("the time of the invocation is no number"))?;
        let returned = match times.next() {
            Some("?") | None => None,
            Some(time) => Some(time.parse().map_err(|_| fail("the time of the answer is no number"))?),
        };
        if returned.is_some_and(|returned| returned < invoked) {
            return Err(fail("it was answered before it was invoked"));
        }
        let (key, call) = call_of(&words, returned.is_some(), &mut values).ok_or_else(|| {
            fail("write put K V, get K -> V, swap K V -> V, cas K V V -> yes|no, or delete K")
        })?;
        let (client, key) = (u64::from(clients.number(client)), keys.number(key));
        history.push(Operation { client, key, call, invoked, returned });
    }
    Ok(history)
}

fn call_of<'a>(words: &[&'a str], answered: bool, values: &mut Names) -> Option<(&'a str, Call)> {
    Some(match *words {
        ["put", key, to] => (key, Call::Put { to: values.value(to) }),
        ["delete", key] => (key, Call::Put { to: None }),
        ["get", key, "->", saw] => (key, Call::Get { saw: values.value(saw) }),
        ["get", key] if !answered => (key, Call::Get { saw: None }),
        ["swap", key, to, "->", saw] => (key, Call::Swap { to: values.value(to)?, saw: values.value(saw) }),
        ["swap", key, to] if !answered => (key, Call::Swap { to: values.value(to)?, saw: None }),
        ["cas", key, from, to, "->", done @ ("yes" | "no")] => {
            (key, Call::Cas { from: values.value(from), to: values.value(to), done: done == "yes" })
        }
        ["cas", key, from, to] if !answered => {
            (key, Call::Cas { from: values.value(from), to: values.value(to), done: false })
        }
        _ => return None,
    })
}

/// Writes a history as [`parse`] reads it.
pub fn write(history: &[Operation]) -> String {
    let value = |value: Option<Value>| value.map_or("-".to_owned(), |value| format!("v{value}"));
    let mut text = String::new();
    for Operation { client, key, call, invoked, returned } in history {
        let answered = returned.is_some();
        let answer = |answer: String| if answered { format!(" -> {answer}") } else { String::new() };
        let call = match *call {
            Call::Put { to } => format!("put k{key} {}", value(to)),
            Call::Get { saw } => format!("get k{key}{}", answer(value(saw))),
            Call::Swap { to, saw } => format!("swap k{key} v{to}{}", answer(value(saw))),
            Call::Cas { from, to, done } => {
                let done = if done { "yes" } else { "no" };
                format!("cas k{key} {} {}{}", value(from), value(to), answer(done.to_owned()))
            }
        };
        let returned = returned.map_or("?".to_owned(), |returned| returned.to_string());
        text += &format!("c{client} {call} @ {invoked} {returned}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const TEXT: &str = "
# client  call                     invoked  returned
c1        put x 17               @ 1000     1500
c2        get x -> 17            @ 1600     1700
c2        get y -> -             @ 1800     1850      there was no value
c1        swap x 18 -> 17        @ 1900     1950
c3        cas x 18 19 -> yes     @ 2000     2100
c3        delete x               @ 2200     ?         never answered
c2        get x -> -             @ 2300     2400
";

    #[test]
    fn a_history_is_read_judged_and_written_again() {
        let history = parse(TEXT).unwrap();
        assert_eq!((history.len(), history[4].returned, history[5].returned), (7, Some(2100), None));
        assert!(check(&history).is_linearizable());
        let again = parse(&write(&history)).unwrap();
        assert_eq!(check(&again), check(&history));
    }

    #[test]
    fn a_line_that_is_no_operation_is_named() {
        let error = parse("c1 put x 1 @ 1 2\nc1 push x 1 @ 3 4\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2: write put"), "{error}");
        assert!(parse("c1 put x 1 @ 5 4").is_err());
        assert!(parse("c1 get x @ 1 2").is_err(), "answered, but with what?");
    }
}
