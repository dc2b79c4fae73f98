//! Values of a trace: each type as one word without blanks, and back.

use std::fmt::{self, Write};

use super::Common;
use crate::fence::Rule as Fenced;
use crate::quorum::{MAX_MEMBERS, NodeSet, Rule};
use crate::strong::edict::{QuorumStamp, Token};
use crate::strong::epoch::{Ballot, Barred, Epoch, Lineage, StoreId, Stores};
use crate::strong::find::Miss;
use crate::strong::{Failure, Holder, InstanceId, Kind, Loss, Term};
use crate::time::{Drift, LocalSpan, Span, Stamp};
use crate::{GroupId, Incarnation, LocalTime, NodeId};

/// A value as one word.
pub(super) trait Value: Sized {
    /// The kind of word that should have been found, for the reader who must correct it.
    const WANTED: &'static str;
    /// Adds the word.
    fn put(&self, out: &mut String);
    /// Reads the word; `None` if it is none.
    fn get(word: &str) -> Option<Self>;
}

/// Adds what can be displayed.
pub(super) fn show(out: &mut String, what: fmt::Arguments<'_>) {
    let _ = out.write_fmt(what); // A string takes everything.
}

/// Digits and nothing else, in the range of the type.
fn digits<N: std::str::FromStr>(word: &str) -> Option<N> {
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| plain)
}

/// `1.5s` or `250ms`: nanoseconds, exactly.
fn nanos(word: &str) -> Option<u64> {
    let (number, unit, places) = match word.strip_suffix("ms") {
        Some(number) => (number, 1_000_000, 6u32),
        None => (word.strip_suffix('s')?, 1_000_000_000, 9),
    };
    let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
    let missing = places.checked_sub(u32::try_from(rest.len()).ok()?)?;
    let rest = digits::<u64>(rest)?.checked_mul(10u64.pow(missing))?;
    digits::<u64>(whole)?.checked_mul(unit)?.checked_add(rest)
}

/// Words with `between` between them; none of them in an empty word.
fn list<T>(word: &str, between: char, get: impl FnMut(&str) -> Option<T>) -> Option<Vec<T>> {
    if word.is_empty() { Some(Vec::new()) } else { word.split(between).map(get).collect() }
}

fn put_list<T: Value>(out: &mut String, between: char, values: impl IntoIterator<Item = T>) {
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            out.push(between);
        }
        value.put(out);
    }
}

impl Value for u8 {
    const WANTED: &'static str = "a whole number";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word)
    }
}

impl Value for u64 {
    const WANTED: &'static str = "a whole number";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word)
    }
}

impl Value for u128 {
    const WANTED: &'static str = "a whole number";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word)
    }
}

impl Value for LocalTime {
    const WANTED: &'static str = "a time such as 1.5s or 250ms";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        nanos(word).map(Self::from_nanos)
    }
}

impl Value for LocalSpan {
    const WANTED: &'static str = "a time such as 1.5s or 250ms";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        nanos(word).map(Self::from_nanos)
    }
}

impl Value for Span {
    const WANTED: &'static str = "a time such as 1.5s or 250ms";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        nanos(word).map(Self::from_nanos)
    }
}

impl Value for Term {
    const WANTED: &'static str = "a term";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word).map(Self)
    }
}

impl Value for Epoch {
    const WANTED: &'static str = "the number of an epoch";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word).map(Self)
    }
}

impl Value for Incarnation {
    const WANTED: &'static str = "the number of a life";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}", self.0));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word).map(Self)
    }
}

impl Value for NodeId {
    const WANTED: &'static str = "a node such as n1";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word.strip_prefix('n')?).map(Self)
    }
}

impl Value for GroupId {
    const WANTED: &'static str = "a group such as g1";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word.strip_prefix('g')?).map(Self)
    }
}

impl Value for bool {
    const WANTED: &'static str = "yes or no";
    fn put(&self, out: &mut String) {
        out.push_str(if *self { "yes" } else { "no" });
    }
    fn get(word: &str) -> Option<Self> {
        match word {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }
}

impl Value for Common {
    const WANTED: &'static str = "a time, or two such as 1.5s..1.501s";
    fn put(&self, out: &mut String) {
        LocalTime::from_nanos(self.from).put(out);
        if self.to > self.from {
            out.push_str("..");
            LocalTime::from_nanos(self.to).put(out);
        }
    }
    fn get(word: &str) -> Option<Self> {
        let (from, to) = word.split_once("..").unwrap_or((word, word));
        let (from, to) = (nanos(from)?, nanos(to)?);
        (from <= to).then_some(Self { from, to })
    }
}

impl Value for Holder {
    const WANTED: &'static str = "a life such as n1/3";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}/{}", self.node, self.incarnation.0));
    }
    fn get(word: &str) -> Option<Self> {
        let (node, incarnation) = word.split_once('/')?;
        Some(Self { node: Value::get(node)?, incarnation: Value::get(incarnation)? })
    }
}

impl Value for InstanceId {
    const WANTED: &'static str = "a run such as n1/3/8";
    fn put(&self, out: &mut String) {
        self.holder.put(out);
        show(out, format_args!("/{}", self.seq));
    }
    fn get(word: &str) -> Option<Self> {
        let (holder, seq) = word.rsplit_once('/')?;
        Some(Self { holder: Value::get(holder)?, seq: digits(seq)? })
    }
}

impl Value for Stamp {
    const WANTED: &'static str = "a stamp such as 3/1.5s/0";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}/{}/{}", self.incarnation.0, self.at, self.count));
    }
    fn get(word: &str) -> Option<Self> {
        let (incarnation, rest) = word.split_once('/')?;
        let (at, count) = rest.split_once('/')?;
        Some(Self { incarnation: Value::get(incarnation)?, at: Value::get(at)?, count: digits(count)? })
    }
}

impl Value for (NodeId, Stamp) {
    const WANTED: &'static str = "a node's stamp such as n1@3/1.5s/0";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}@", self.0));
        self.1.put(out);
    }
    fn get(word: &str) -> Option<Self> {
        let (node, stamp) = word.split_once('@')?;
        Some((Value::get(node)?, Value::get(stamp)?))
    }
}

impl Value for QuorumStamp {
    const WANTED: &'static str = "stamps such as n1@3/1.5s/0,n2@1/9s/0, each node once";
    fn put(&self, out: &mut String) {
        put_list(out, ',', self.iter());
    }
    fn get(word: &str) -> Option<Self> {
        let stamps = list(word, ',', Value::get)?;
        let known: Self = stamps.iter().copied().collect();
        (known.iter().count() == stamps.len()).then_some(known)
    }
}

impl Value for Vec<NodeId> {
    const WANTED: &'static str = "nodes such as n1,n2,n3";
    fn put(&self, out: &mut String) {
        put_list(out, ',', self.iter().copied());
    }
    fn get(word: &str) -> Option<Self> {
        list(word, ',', Value::get)
    }
}

impl Value for Stores {
    const WANTED: &'static str = "stores such as n1:0123456789abcdef0123456789abcdef";
    fn put(&self, out: &mut String) {
        for (i, (member, store)) in self.iter().enumerate() {
            show(out, format_args!("{}{member}:{store}", if i > 0 { "," } else { "" }));
        }
    }
    fn get(word: &str) -> Option<Self> {
        let one = |word: &str| {
            let (member, store) = word.split_once(':')?;
            Some((NodeId::get(member)?, StoreId(wide(store)?)))
        };
        word.split(',').map(one).collect()
    }
}

impl Value for Barred {
    const WANTED: &'static str = "barred groups such as g7,g9";
    fn put(&self, out: &mut String) {
        for (i, group) in self.groups().iter().enumerate() {
            show(out, format_args!("{}{group}", if i > 0 { "," } else { "" }));
        }
    }
    fn get(word: &str) -> Option<Self> {
        let groups = word.split(',').map(GroupId::get).collect::<Option<Vec<_>>>()?;
        Self::new(groups).ok()
    }
}

/// 32 hexadecimal digits.
fn wide(word: &str) -> Option<u128> {
    let plain = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(word, 16).ok().filter(|_| plain)
}

impl Value for Lineage {
    const WANTED: &'static str = "draws of 32 hexadecimal digits, the founding's first";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        word.split(',').map(wide).collect::<Option<Vec<u128>>>().and_then(Self::new)
    }
}

/// A position in a list of members.
impl Value for usize {
    const WANTED: &'static str = "the position of a member";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self}"));
    }
    fn get(word: &str) -> Option<Self> {
        digits(word).filter(|position| *position < MAX_MEMBERS)
    }
}

impl Value for Drift {
    const WANTED: &'static str = "less than a million, such as 1000ppm";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}ppm", self.as_ppm()));
    }
    fn get(word: &str) -> Option<Self> {
        Self::from_ppm(u32::try_from(digits::<u64>(word.strip_suffix("ppm")?)?).ok()?)
    }
}

/// The positions of a set, with `between` between them.
fn put_set(out: &mut String, between: char, set: NodeSet) {
    put_list(out, between, set.positions().map(|position| position as u64));
}

fn set(word: &str, between: char) -> Option<NodeSet> {
    Some(list(word, between, usize::get)?.into_iter().collect())
}

impl Value for NodeSet {
    const WANTED: &'static str = "positions such as 0,2";
    fn put(&self, out: &mut String) {
        put_set(out, ',', *self);
    }
    fn get(word: &str) -> Option<Self> {
        set(word, ',')
    }
}

impl Value for Rule {
    const WANTED: &'static str = "majority, weights:3,1,1, grid:2x3 or list:0+1,1+2,0+2";
    fn put(&self, out: &mut String) {
        match self {
            Self::Majority => out.push_str("majority"),
            Self::Weighted(weights) => {
                out.push_str("weights:");
                put_list(out, ',', weights.iter().copied());
            }
            Self::Grid { rows, columns } => show(out, format_args!("grid:{rows}x{columns}")),
            Self::List(sets) => {
                out.push_str("list:");
                for (i, set) in sets.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    put_set(out, '+', *set);
                }
            }
        }
    }
    fn get(word: &str) -> Option<Self> {
        match word.split_once(':').unwrap_or((word, "")) {
            ("majority", "") => Some(Self::Majority),
            ("weights", weights) => list(weights, ',', digits).map(Self::Weighted),
            ("grid", size) => {
                let (rows, columns) = size.split_once('x')?;
                Some(Self::Grid { rows: digits(rows)?, columns: digits(columns)? })
            }
            ("list", sets) => list(sets, ',', |word| set(word, '+')).map(Self::List),
            _ => None,
        }
    }
}

impl Value for Ballot {
    const WANTED: &'static str = "a ballot such as 2/n1/3";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{}/", self.number));
        match self.node {
            Some(node) => node.put(out),
            None => out.push('-'),
        }
        show(out, format_args!("/{}", self.incarnation.0));
    }
    fn get(word: &str) -> Option<Self> {
        let (number, rest) = word.split_once('/')?;
        let (node, incarnation) = rest.split_once('/')?;
        let node = if node == "-" { None } else { Some(Value::get(node)?) };
        Some(Self { number: digits(number)?, node, incarnation: Value::get(incarnation)? })
    }
}

impl Value for Token {
    const WANTED: &'static str = "a token such as 7.1: term, number";
    fn put(&self, out: &mut String) {
        show(out, format_args!("{self:?}"));
    }
    fn get(word: &str) -> Option<Self> {
        let (term, number) = word.split_once('.')?;
        Some(Self::new(Value::get(term)?, digits(number)?))
    }
}

/// Text of people: whatever would end a word or a line, and the two signs that mean something here,
/// as `%` and two digits.
impl Value for String {
    const WANTED: &'static str = "text, in which %20 stands for a blank";
    fn put(&self, out: &mut String) {
        for letter in self.chars() {
            if letter.is_control() || letter.is_whitespace() || letter == '%' || letter == '~' {
                let mut bytes = [0; 4];
                letter
                    .encode_utf8(&mut bytes)
                    .bytes()
                    .for_each(|byte| show(out, format_args!("%{byte:02x}")));
            } else {
                out.push(letter);
            }
        }
    }
    fn get(word: &str) -> Option<Self> {
        let mut parts = word.split('%');
        let mut bytes = parts.next()?.as_bytes().to_vec();
        for part in parts {
            let (code, rest) = part.split_at_checked(2)?;
            let plain = code.bytes().all(|byte| byte.is_ascii_hexdigit());
            bytes.push(u8::from_str_radix(code, 16).ok().filter(|_| plain)?);
            bytes.extend_from_slice(rest.as_bytes());
        }
        Self::from_utf8(bytes).ok()
    }
}

impl Value for Kind {
    const WANTED: &'static str = "acquire or renew";
    fn put(&self, out: &mut String) {
        out.push_str(match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
        });
    }
    fn get(word: &str) -> Option<Self> {
        Some(match word {
            "acquire" => Self::Acquire,
            "renew" => Self::Renew,
            _ => return None,
        })
    }
}

impl Value for Failure {
    const WANTED: &'static str = "timed-out, blocked, aborted or too-late";
    fn put(&self, out: &mut String) {
        out.push_str(match self {
            Self::TimedOut => "timed-out",
            Self::Blocked => "blocked",
            Self::Aborted => "aborted",
            Self::TooLate => "too-late",
        });
    }
    fn get(word: &str) -> Option<Self> {
        Some(match word {
            "timed-out" => Self::TimedOut,
            "blocked" => Self::Blocked,
            "aborted" => Self::Aborted,
            "too-late" => Self::TooLate,
            _ => return None,
        })
    }
}

impl Value for Loss {
    const WANTED: &'static str =
        "lapsed, resigned, handed-over, ended-epoch, next-epoch, clock-went-back, split-brain or disturbed";
    fn put(&self, out: &mut String) {
        out.push_str(match self {
            Self::Lapsed => "lapsed",
            Self::Resigned => "resigned",
            Self::HandedOver => "handed-over",
            Self::EndedEpoch => "ended-epoch",
            Self::NextEpoch => "next-epoch",
            Self::ClockWentBack => "clock-went-back",
            Self::SplitBrain => "split-brain",
            Self::Disturbed => "disturbed",
        });
    }
    fn get(word: &str) -> Option<Self> {
        Some(match word {
            "lapsed" => Self::Lapsed,
            "resigned" => Self::Resigned,
            "handed-over" => Self::HandedOver,
            "ended-epoch" => Self::EndedEpoch,
            "next-epoch" => Self::NextEpoch,
            "clock-went-back" => Self::ClockWentBack,
            "split-brain" => Self::SplitBrain,
            "disturbed" => Self::Disturbed,
            _ => return None,
        })
    }
}

impl Value for Miss {
    const WANTED: &'static str = "not-leader, unknown, full, timed-out, outdated, no-hops-left or unanswered";
    fn put(&self, out: &mut String) {
        out.push_str(match self {
            Self::NotLeader => "not-leader",
            Self::Unknown => "unknown",
            Self::Full => "full",
            Self::TimedOut => "timed-out",
            Self::Outdated => "outdated",
            Self::NoHopsLeft => "no-hops-left",
            Self::Unanswered => "unanswered",
        });
    }
    fn get(word: &str) -> Option<Self> {
        Some(match word {
            "not-leader" => Self::NotLeader,
            "unknown" => Self::Unknown,
            "full" => Self::Full,
            "timed-out" => Self::TimedOut,
            "outdated" => Self::Outdated,
            "no-hops-left" => Self::NoHopsLeft,
            "unanswered" => Self::Unanswered,
            _ => return None,
        })
    }
}

impl Value for Fenced {
    const WANTED: &'static str = "by-term or in-order";
    fn put(&self, out: &mut String) {
        out.push_str(match self {
            Self::ByTerm => "by-term",
            Self::InOrder => "in-order",
        });
    }
    fn get(word: &str) -> Option<Self> {
        Some(match word {
            "by-term" => Self::ByTerm,
            "in-order" => Self::InOrder,
            _ => return None,
        })
    }
}
