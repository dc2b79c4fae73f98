//! Reads entries back. Total: any bytes give entries or an error that names the line.

use std::fmt;
use std::sync::Arc;

use super::local;
use super::value::Value;
use super::{Common, Decision, EdictMade, HEADER, Life, Line, Start, What};
use crate::quorum::{QuorumError, Quorums, Rule};
use crate::strong::epoch::{Body, Charter, CharterId, Halt, Lineage};
use crate::strong::find::Hint;
use crate::strong::{Event, GrantRequest, Refusal};
use crate::time::{Bound, Clockwork, LocalSpan};
use crate::{Incarnation, LocalTime, NodeId};

/// Reads a trace entry by entry, with the numbers of their lines. Nothing follows an error.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    line: usize,
    begun: bool,
    unknown: usize,
    cut: usize,
}

impl<'a> Reader<'a> {
    /// The trace that a file holds.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, line: 0, begun: false, unknown: 0, cut: 0 }
    }

    /// How many lines so far are of a kind that this version does not know. They were skipped.
    pub const fn unknown(&self) -> usize {
        self.unknown
    }

    /// How many lines so far were cut off: the last one of a process that was killed, usually. They
    /// were skipped.
    pub const fn cut(&self) -> usize {
        self.cut
    }

    /// The next line that holds an entry, if there is one.
    fn entry(&mut self) -> Result<Option<(usize, Line)>, TraceError> {
        while !self.rest.is_empty() {
            self.line += 1;
            let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') else {
                return self.last().map(|()| None);
            };
            let (line, rest) = self.rest.split_at(end);
            self.rest = &rest[1..];
            if let Some(entry) = self.read(line)? {
                return Ok(Some((self.line, entry)));
            }
        }
        Ok(None)
    }

    /// A last line without an end was cut off. It is not read: half of a number is a number.
    fn last(&mut self) -> Result<(), TraceError> {
        let rest = std::mem::take(&mut self.rest);
        if !self.begun && !HEADER.as_bytes().starts_with(rest) {
            return Err(self.error(Problem::NotATrace));
        }
        self.cut += 1;
        Ok(())
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Line>, TraceError> {
        if line.ends_with(b"~") {
            self.cut += 1;
            return Ok(None);
        }
        let text = std::str::from_utf8(line).map_err(|_| self.error(Problem::NotText))?;
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        if Some((kind, words.clone().next().unwrap_or_default())) == HEADER.split_once(' ') {
            self.begun = true;
            return Ok(None);
        }
        if HEADER.split_once(' ').is_some_and(|(name, _)| name == kind) {
            let found = words.next().unwrap_or_default().to_owned();
            return Err(self.error(Problem::Version { found }));
        }
        if !self.begun {
            return Err(self.error(Problem::NotATrace));
        }
        let entry = Fields::of(kind, words).and_then(|fields| entry(&fields));
        let entry = entry.map_err(|problem| self.error(problem))?;
        self.unknown += usize::from(entry.is_none());
        Ok(entry)
    }

    fn error(&self, what: Problem) -> TraceError {
        TraceError { line: self.line, what }
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<(usize, Line), TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.entry().transpose();
        if let Some(Err(_)) = &next {
            self.rest = &[];
        }
        next
    }
}

/// The pairs of one line.
pub(super) struct Fields<'a> {
    pub(super) kind: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    fn of(kind: &'a str, words: impl Iterator<Item = &'a str>) -> Result<Self, Problem> {
        let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(16);
        for word in words {
            let pair = word.split_once('=').ok_or_else(|| Problem::NoValue { word: word.to_owned() })?;
            if pairs.iter().any(|(key, _)| *key == pair.0) {
                return Err(Problem::Twice { key: pair.0.to_owned() });
            }
            pairs.push(pair);
        }
        Ok(Self { kind, pairs })
    }

    fn word(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(known, _)| *known == key).map(|(_, word)| *word)
    }

    /// A value that must be there.
    pub(super) fn get<T: Value>(&self, key: &str) -> Result<T, Problem> {
        self.maybe(key)?.ok_or_else(|| self.missing(key))
    }

    /// A value that may be left out.
    fn maybe<T: Value>(&self, key: &str) -> Result<Option<T>, Problem> {
        self.word(key).map(|word| T::get(word).ok_or_else(|| malformed(key, word, T::WANTED))).transpose()
    }

    /// One of some words, which `known` tells apart.
    fn choose<T>(
        &self,
        key: &str,
        wanted: &'static str,
        known: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        let word = self.word(key).ok_or_else(|| self.missing(key))?;
        known(word).ok_or_else(|| malformed(key, word, wanted))
    }

    fn missing(&self, key: &str) -> Problem {
        Problem::Missing { kind: self.kind.to_owned(), key: key.to_owned() }
    }
}

fn malformed(key: &str, word: &str, wanted: &'static str) -> Problem {
    Problem::Malformed { key: key.to_owned(), word: word.to_owned(), wanted }
}

/// One line; `None` if its kind is not known.
fn entry(fields: &Fields<'_>) -> Result<Option<Line>, Problem> {
    let what = match fields.kind {
        "start" => What::Start(start(fields)?),
        "part" => What::Part(life(fields)?),
        "group" => What::Group { group: fields.get("group")?, name: fields.get("name")? },
        "local-start" => What::LocalStart(local::start(fields)?),
        "local-end" => What::LocalEnd { group: fields.get("group")? },
        kind if kind.starts_with("local-") => match local::event(fields)? {
            Some(event) => What::Local { group: fields.get("group")?, event },
            None => return Ok(None),
        },
        "edict" => What::Edict(edict(fields)?),
        "fence-admitted" => What::Admitted(decision(fields)?),
        "fence-refused" => What::Refused(decision(fields)?),
        "stop" => What::Stop,
        _ => match event(fields)? {
            Some(event) => What::Event(event),
            None => return Ok(None),
        },
    };
    let (own, common): (LocalTime, Option<Common>) = (fields.get("own")?, fields.maybe("common")?);
    Ok(Some(Line { own, common, what }))
}

fn life(fields: &Fields<'_>) -> Result<Life, Problem> {
    let cluster = fields.choose("cluster", "32 hexadecimal digits", |word| {
        let plain = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(word, 16).ok().filter(|_| plain)
    })?;
    Ok(Life { node: fields.get("node")?, incarnation: fields.get("incarnation")?, cluster })
}

fn start(fields: &Fields<'_>) -> Result<Start, Problem> {
    Ok(Start { life: life(fields)?, name: fields.get("name")?, charter: charter(fields)? })
}

fn edict(fields: &Fields<'_>) -> Result<EdictMade, Problem> {
    Ok(EdictMade {
        group: fields.get("group")?,
        epoch: fields.get("epoch")?,
        term: fields.get("term")?,
        number: fields.get("number")?,
        after: fields.get("after")?,
        first: fields.maybe("first")?,
    })
}

fn decision(fields: &Fields<'_>) -> Result<Decision, Problem> {
    Ok(Decision {
        resource: fields.get("resource")?,
        rule: fields.get("rule")?,
        token: fields.get("token")?,
        at: fields.get("at")?,
    })
}

fn charter(fields: &Fields<'_>) -> Result<Arc<Charter>, Problem> {
    let before = match fields.word("before-members") {
        Some(_) => Some(body(fields, "before-")?),
        None => None,
    };
    let (epoch, floor) = (fields.get("epoch")?, fields.get("floor")?);
    let lineage = fields.maybe("lineage")?.unwrap_or_else(|| Lineage::founding(0));
    Ok(Arc::new(Charter { epoch, lineage, body: body(fields, "")?, before, floor }))
}

fn body(fields: &Fields<'_>, before: &str) -> Result<Body, Problem> {
    let key = |key: &str| format!("{before}{key}");
    let members: Vec<NodeId> = fields.get(&key("members"))?;
    let rule: Rule = fields.get(&key("quorums"))?;
    let skew: Option<LocalSpan> = fields.maybe(&key("skew"))?;
    let bound = match skew {
        Some(skew) => Bound::Skew(skew),
        None => Bound::Drift(fields.get(&key("drift"))?),
    };
    Ok(Body {
        quorums: Quorums::new(members, rule).map_err(Problem::Quorums)?,
        clocks: Clockwork { bound, tick: fields.get(&key("tick"))? },
        longest_lease: fields.get(&key("longest-lease"))?,
        stores: fields.maybe(&key("stores"))?.unwrap_or_default(),
        barred: fields.maybe(&key("barred"))?.unwrap_or_default(),
    })
}

fn request(fields: &Fields<'_>) -> Result<GrantRequest, Problem> {
    Ok(GrantRequest {
        group: fields.get("group")?,
        epoch: fields.get("epoch")?,
        id: fields.get("run")?,
        start: fields.get("start")?,
        lease: fields.get("lease")?,
        kind: fields.get("kind")?,
        term: fields.get("term")?,
    })
}

fn refusal(fields: &Fields<'_>) -> Result<Refusal, Problem> {
    let busy = fields.word("refusal") == Some("busy");
    if busy {
        return Ok(Refusal::Busy { holder: fields.get("holder")?, remaining: fields.get("remaining")? });
    }
    if fields.word("refusal") == Some("too-high") {
        return Ok(Refusal::TooHigh { wait: fields.get("wait")? });
    }
    let wanted = "busy, stale-term, lease-too-long, released, from-the-future, young, wedged, draining, \
                  too-high or implausible";
    fields.choose("refusal", wanted, |word| {
        Some(match word {
            "stale-term" => Refusal::StaleTerm,
            "lease-too-long" => Refusal::LeaseTooLong,
            "released" => Refusal::Released,
            "from-the-future" => Refusal::FromTheFuture,
            "young" => Refusal::Young,
            "too-many-groups" => Refusal::TooManyGroups,
            "barred" => Refusal::Barred,
            "wedged" => Refusal::Wedged,
            "draining" => Refusal::Draining,
            "implausible" => Refusal::Implausible,
            _ => return None,
        })
    })
}

/// An event that a machine has published; `None` if the kind is not known.
fn event(fields: &Fields<'_>) -> Result<Option<Event>, Problem> {
    Ok(Some(match fields.kind {
        "asked" => Event::Asked(request(fields)?),
        "granted" => Event::Granted {
            request: request(fields)?,
            at: fields.get("stamp")?,
            until: fields.get("until")?,
        },
        "implausible" => Event::Implausible {
            by: fields.get("by")?,
            term: fields.get("term")?,
            known: fields.get("known")?,
        },
        "confirmed" => Event::Confirmed { term: fields.get("term")? },
        "held-back" => Event::HeldBack {
            group: fields.get("group")?,
            term: fields.get("term")?,
            wait: fields.get("wait")?,
        },
        "refused" => Event::Refused { request: request(fields)?, refusal: refusal(fields)? },
        "leads" => Event::Leads {
            group: fields.get("group")?,
            epoch: fields.get("epoch")?,
            id: fields.get("run")?,
            kind: fields.get("kind")?,
            term: fields.get("term")?,
            lease: fields.get("lease")?,
            until: fields.get("until")?,
            quorum: fields.get("quorum")?,
            stamps: fields.get("stamps")?,
        },
        "gave-back" => Event::GaveBack { group: fields.get("group")?, upto: fields.get("upto")? },
        "freed" => Event::Freed { group: fields.get("group")?, newest: fields.get("newest")? },
        "failed" => Event::Failed {
            group: fields.get("group")?,
            id: fields.get("run")?,
            failure: fields.get("failure")?,
        },
        "lost" => {
            Event::Lost { group: fields.get("group")?, term: fields.get("term")?, loss: fields.get("loss")? }
        }
        "silent" => Event::Silent { until: fields.get("until")? },
        "mute" => Event::Mute,
        "split-brain" => {
            let digest: Incarnation = fields.get("digest")?;
            let (lineage, epoch) = (fields.get("lineage")?, fields.get("epoch")?);
            Event::SplitBrain { other: CharterId { lineage, epoch, digest: digest.0 } }
        }
        "lineage-accepted" => Event::LineageAccepted,
        "clock-went-back" => Event::ClockWentBack { by: fields.get("by")? },
        "recovering" => Event::Recovering,
        "recovered" => Event::Recovered { top: fields.get("top")? },
        _ => match epoch_event(fields)? {
            Some(event) => event,
            None => return talk_event(fields),
        },
    }))
}

fn epoch_event(fields: &Fields<'_>) -> Result<Option<Event>, Problem> {
    Ok(Some(match fields.kind {
        "adopted" => Event::Adopted { charter: charter(fields)?, joined: fields.get("joined")? },
        "accepted" => Event::Accepted { ballot: fields.get("ballot")?, charter: charter(fields)? },
        "decided" => Event::Decided { charter: charter(fields)? },
        "changed" => Event::Changed { epoch: fields.get("epoch")? },
        "change-halted" => {
            let why: Option<String> = fields.maybe("why")?;
            let halt = fields.choose("halt", "conflict, impossible or fixed", |word| {
                Some(match word {
                    "conflict" => Halt::Conflict,
                    "impossible" => Halt::Impossible(why.unwrap_or_default()),
                    "fixed" => Halt::Fixed,
                    _ => return None,
                })
            })?;
            Event::ChangeHalted { halt }
        }
        "wedged" => Event::Wedged { epoch: fields.get("epoch")?, ballot: fields.get("ballot")? },
        _ => return Ok(None),
    }))
}

fn talk_event(fields: &Fields<'_>) -> Result<Option<Event>, Problem> {
    Ok(Some(match fields.kind {
        "pledged" => Event::Pledged {
            group: fields.get("group")?,
            leader: fields.get("leader")?,
            until: fields.get("until")?,
        },
        "verified" => Event::Verified {
            group: fields.get("group")?,
            leader: fields.get("leader")?,
            term: fields.get("term")?,
            until: fields.get("until")?,
        },
        "sought" => Event::Sought {
            group: fields.get("group")?,
            id: fields.get("question")?,
            ask: fields.get("ask")?,
            hops: fields.get("hops")?,
        },
        "found" => Event::Found {
            group: fields.get("group")?,
            id: fields.get("question")?,
            leader: fields.get("leader")?,
            term: fields.get("term")?,
            hops: fields.get("hops")?,
        },
        "not-found" => Event::NotFound {
            group: fields.get("group")?,
            id: fields.get("question")?,
            why: fields.get("why")?,
            hint: hint(fields)?,
        },
        "weak-leader" => Event::WeakLeader { group: fields.get("group")?, leader: fields.maybe("leader")? },
        "paced" => Event::Paced { group: fields.get("group")?, lease: fields.get("lease")? },
        "strained" => Event::Strained {
            group: fields.get("group")?,
            needed: fields.get("needed")?,
            longest: fields.get("longest")?,
        },
        "yields" => Event::Yields { group: fields.get("group")?, to: fields.get("to")? },
        _ => return Ok(None),
    }))
}

fn hint(fields: &Fields<'_>) -> Result<Option<Hint>, Problem> {
    let Some(holder) = fields.maybe("hint")? else { return Ok(None) };
    Ok(Some(Hint { holder, term: fields.get("hint-term")?, remaining: fields.get("hint-remaining")? }))
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Which, counted from 1.
    pub line: usize,
    /// The flaw in it.
    pub what: Problem,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not begin as a trace does. Usual cause: another kind of file.
    NotATrace,
    /// The format is of another version.
    Version {
        /// Which.
        found: String,
    },
    /// It is no text. Usual cause: a damaged file.
    NotText,
    /// A word that is no pair.
    NoValue {
        /// Which.
        word: String,
    },
    /// A key stands there twice. Usual cause: two processes that write into one file.
    Twice {
        /// Which.
        key: String,
    },
    /// A key is missing.
    Missing {
        /// The kind of line.
        kind: String,
        /// The key that it needs.
        key: String,
    },
    /// A value cannot be read.
    Malformed {
        /// The key.
        key: String,
        /// The word that stands there.
        word: String,
        /// The kind of word that should.
        wanted: &'static str,
    },
    /// The members and the rule of their quorums do not fit.
    Quorums(QuorumError),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => write!(f, "a trace of a node begins with '{HEADER}', and this does not"),
            Self::Version { found } => {
                write!(f, "version '{found:.60}' of the format is not known here: use a newer tenure")
            }
            Self::NotText => f.write_str("this is no text: the file is damaged"),
            Self::NoValue { word } => write!(f, "'{word:.60}' is no key=value"),
            Self::Twice { key } => {
                write!(f, "'{key}' stands here twice: do two processes write into this file?")
            }
            Self::Missing { kind, key } => write!(f, "'{kind}' needs '{key}='"),
            Self::Malformed { key, word, wanted } => write!(f, "'{key}={word:.60}': should be {wanted}"),
            Self::Quorums(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TraceError {}
