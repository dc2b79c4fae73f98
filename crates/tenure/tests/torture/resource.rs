//! The resource that leaders write to, with three fences side by side: by term and in order, by the
//! number that a database would compare, and in order by the paper's timestamp. Their decisions are
//! written down for the audit.
//!
//! It keeps no data: its fences are what is tried. All three judge every write, under one lock, and
//! must agree.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use tenure::{Clock, Edict, Term, Token};
use tenure_proto::fence::{Fence, Rule};
use tenure_proto::strong::edict::{ByTerm, Epoch, QuorumStamp, Tag};
use tenure_proto::time::Stamp;
use tenure_proto::trace::{Common, Decision, HEADER, Line, What};
use tenure_proto::{Incarnation, LocalTime, NodeId};

/// The resource, which serves until the test ends.
pub(crate) struct Resource(Arc<Mutex<Desk>>);

/// Decides on one write after the other.
struct Desk {
    by_term: Fence<()>,
    in_order: Fence<()>,
    by_paper: ByPaper,
    at: u64,
    trace: File,
    admitted: u64,
    refused: u64,
    faults: Vec<String>,
}

/// The write that it saw.
#[derive(Debug)]
#[allow(dead_code, reason = "told when a run fails")]
pub(crate) struct Seen {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) terms: usize,
    /// Where the fences did not agree, or what nobody should have sent.
    pub(crate) faults: Vec<String>,
}

impl Resource {
    /// Listens at `socket` and writes its decisions into `trace`.
    pub(crate) fn open(socket: &Path, trace: &Path) -> Self {
        let mut trace = File::create_new(trace).expect("the trace can be made");
        writeln!(trace, "{HEADER}").expect("the trace can be written");
        let desk = Desk {
            by_term: Fence::by_term(),
            in_order: Fence::in_order(),
            by_paper: ByPaper::default(),
            at: 0,
            trace,
            admitted: 0,
            refused: 0,
            faults: Vec::new(),
        };
        let desk = Arc::new(Mutex::new(desk));
        let listener = UnixListener::bind(socket).expect("the socket can be made");
        let shared = Arc::clone(&desk);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let desk = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &desk));
            }
        });
        Self(desk)
    }

    pub(crate) fn seen(&self) -> Seen {
        let desk = lock(&self.0);
        let Desk { admitted, refused, .. } = *desk;
        Seen { admitted, refused, terms: desk.by_paper.terms.len(), faults: desk.faults.clone() }
    }
}

/// One writer, until it goes.
fn serve(mut stream: &UnixStream, desk: &Mutex<Desk>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let answer = match parse(&line) {
            Some((token, edict)) => lock(desk).decide(token, edict),
            None => {
                lock(desk).faults.push(format!("not a write: '{line}'"));
                return;
            }
        };
        if writeln!(stream, "{answer}").is_err() {
            return;
        }
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().expect("nobody panics at the desk")
}

impl Desk {
    fn decide(&mut self, token: Token, edict: Edict<ByTerm>) -> String {
        self.at += 1;
        let by_term = self.by_term.admit(token, ()).is_ok();
        let newest = self.in_order.newest.as_ref().map(|newest| newest.token);
        let in_order = self.in_order.admit(token, ()).is_ok();
        let by_paper = self.by_paper.admit(token.term(), edict);
        self.write("by-term", Rule::ByTerm, token, by_term);
        self.write("in-order", Rule::InOrder, token, in_order);
        // A leader has one thread here that writes: what is refused in order is an old leader's, as
        // by term.
        if by_term != in_order || by_paper != Ok(in_order) {
            self.faults.push(format!(
                "{token:?} after {newest:?}: by term {by_term}, in order {in_order}, by the paper's timestamp {by_paper:?}"
            ));
        }
        match newest.filter(|_| !in_order) {
            None => {
                self.admitted += 1;
                "admitted".to_owned()
            }
            Some(newest) => {
                self.refused += 1;
                format!("refused {newest}")
            }
        }
    }

    fn write(&mut self, resource: &str, rule: Rule, token: Token, admitted: bool) {
        let decision = Decision { resource: resource.to_owned(), rule, token, at: self.at };
        let what = if admitted { What::Admitted(decision) } else { What::Refused(decision) };
        let own = Clock::boot().read();
        let mut line = String::new();
        Line { own, common: Some(Common::exact(own.as_nanos())), what }.write(&mut line);
        self.trace.write_all(line.as_bytes()).expect("the trace can be written");
    }
}

/// A fence in order by the paper's timestamp (epoch, QT0, counter). Every new leadership is
/// compared with all before.
#[derive(Default)]
struct ByPaper {
    terms: BTreeMap<Term, ByTerm>,
    newest: Option<Edict<ByTerm>>,
}

impl ByPaper {
    /// Whether the write passes; an error if its timestamp does not say the same as its term.
    fn admit(&mut self, term: Term, edict: Edict<ByTerm>) -> Result<bool, String> {
        let known = self.terms.entry(term).or_insert_with(|| edict.tag.clone());
        if *known != edict.tag {
            return Err(format!("term {term} has two timestamps: {known:?} and {:?}", edict.tag));
        }
        for (other, tag) in &self.terms {
            if edict.tag.order(tag) != Ok(term.cmp(other)) {
                let mut text = format!("terms {term} and {other}: ");
                let _ = write!(text, "{:?} by {:?} and {tag:?}", edict.tag.order(tag), edict.tag);
                return Err(text);
            }
        }
        let newer = match &self.newest {
            None => true,
            Some(newest) => edict.order(newest) == Ok(Ordering::Greater),
        };
        if newer {
            self.newest = Some(edict);
        }
        Ok(newer)
    }
}

/// `TOKEN EPOCH/GRANTOR:INCARNATION:READING:COUNT,…/NUMBER JOB`.
fn parse(line: &str) -> Option<(Token, Edict<ByTerm>)> {
    let mut words = line.split(' ');
    let token: Token = words.next()?.parse().ok()?;
    let mut parts = words.next()?.split('/');
    let epoch = Epoch(parts.next()?.parse().ok()?);
    let stamps: Option<Vec<(NodeId, Stamp)>> = parts.next()?.split(',').map(stamp).collect();
    let number = parts.next()?.parse().ok()?;
    let tag = ByTerm { epoch, first: QuorumStamp::from_iter(stamps?) };
    (number == token.number()).then_some((token, Edict { tag, number }))
}

fn stamp(text: &str) -> Option<(NodeId, Stamp)> {
    let mut parts = text.split(':');
    let node = NodeId(parts.next()?.parse().ok()?);
    let incarnation = Incarnation(parts.next()?.parse().ok()?);
    let at = LocalTime::from_nanos(parts.next()?.parse().ok()?);
    Some((node, Stamp { incarnation, at, count: parts.next()?.parse().ok()? }))
}
