//! Judges the traces: when terms began and ended, and whether all edicts were made in the order
//! of their tokens.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure::Token;
use tenure_proto::strong::{Event, InstanceId, Kind, Loss};
use tenure_proto::trace::{Common, Reader, What};

/// All that the members of a cluster wrote down.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) files: Vec<PathBuf>,
    /// When each edict was made.
    edicts: BTreeMap<Token, Common>,
    /// When each term began: its first edict.
    first: BTreeMap<u64, u64>,
    /// When the old leader's authority ended, of each term that was handed over.
    handed_over: BTreeMap<u64, u64>,
    /// How long renewals took: a round trip to a quorum, with all that a node does for it.
    pub(crate) trips: Vec<u64>,
    pub(crate) lapses: u64,
}

impl Record {
    /// Reads all traces in a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut record = Self::default();
        let paths =
            fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is there").path());
        record.files = paths.filter(|path| path.to_string_lossy().contains(".trace")).collect();
        record.files.sort();
        for path in record.files.clone() {
            let bytes = fs::read(&path).expect("a trace can be read");
            let mut asked: Option<(InstanceId, u64)> = None;
            for line in Reader::new(&bytes) {
                let (_, line) = line.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
                let own = line.own.as_nanos();
                match line.what {
                    What::Edict(edict) => {
                        let made = line.common.expect("all members are on one machine");
                        record.add(Token::new(edict.term, edict.number), made);
                    }
                    What::Event(Event::Asked(request)) if request.kind == Kind::Renew => {
                        asked = Some((request.id, own));
                    }
                    What::Event(Event::Leads { id, kind: Kind::Renew, .. }) => {
                        let trip = asked.filter(|(asked, _)| *asked == id).map(|(_, at)| own - at);
                        record.trips.extend(trip);
                    }
                    What::Event(Event::Lost { term, loss: Loss::HandedOver, .. }) => {
                        record.handed_over.insert(term.0, own);
                    }
                    What::Event(Event::Lost { loss: Loss::Lapsed, .. }) => record.lapses += 1,
                    _ => {}
                }
            }
        }
        record
    }

    fn add(&mut self, token: Token, made: Common) {
        let twice = self.edicts.insert(token, made);
        assert_eq!(twice, None, "{token:?} was made twice");
        let first = self.first.entry(token.term().0).or_insert(made.to);
        *first = made.to.min(*first);
    }

    pub(crate) fn edicts(&self) -> usize {
        self.edicts.len()
    }

    pub(crate) fn terms(&self) -> usize {
        self.first.len()
    }

    /// When the first edict of a term was made.
    pub(crate) fn began(&self, term: u64) -> u64 {
        *self.first.get(&term).unwrap_or_else(|| panic!("there is no edict of term {term}"))
    }

    /// When the authority of a term ended that was handed over.
    pub(crate) fn handed_over(&self, term: u64) -> u64 {
        *self.handed_over.get(&term).unwrap_or_else(|| panic!("term {term} was not handed over"))
    }

    /// No edict was made before another of a smaller token: else two would have led at once, or a
    /// thread gone back.
    pub(crate) fn must_be_in_order(&self) {
        let mut latest: Option<(Token, Common)> = None;
        for (token, made) in &self.edicts {
            if let Some((before, other)) = latest.filter(|(_, other)| other.from > made.to) {
                panic!("{token:?} was made {made:?}, before {before:?}, {other:?}");
            }
            if latest.is_none_or(|(_, other)| made.from > other.from) {
                latest = Some((*token, *made));
            }
        }
    }

    /// `tenure lab audit` finds nothing. Returns what it says.
    pub(crate) fn must_pass_audit(&self, tenure: &Path) -> String {
        let output = Command::new(tenure)
            .args(["lab", "audit"])
            .args(&self.files)
            .output()
            .expect("it can be started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }
}
