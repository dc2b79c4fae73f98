//! Writes down what the node's machines publish, those of its local groups among them, and what
//! edicts its users make, for `tenure lab audit`.
//!
//! Each line is handed to the operating system before its step is visible to anybody: a file that
//! ends because its process was killed lacks nothing that others know of. That costs a system call
//! a line, so it is for tests and for finding faults.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_proto::local;
use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::{Edict, Event};
use tenure_proto::trace::{self, Common, EdictMade, Line, LocalStart, Start, What};
use tenure_proto::{GroupId, LocalTime};

use crate::clock::Reading;
use crate::name::GroupName;

/// A trace that is being written. Cheap to copy; all copies write to one file.
#[derive(Clone, Debug)]
pub(crate) struct Trace(Arc<Mutex<Sheet>>);

#[derive(Debug)]
struct Sheet {
    file: File,
    line: String,
    /// A line could not be written. The trace ends there: a gap would look like innocence.
    torn: bool,
}

impl Trace {
    /// Begins a file of its own for this life: `PATH` and then the incarnation, so that no life
    /// writes over another's.
    pub(crate) fn create(path: &Path, incarnation: u128) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{incarnation}"));
        let mut file = File::options().write(true).create_new(true).open(name)?;
        writeln!(file, "{}", trace::HEADER)?;
        Ok(Self(Arc::new(Mutex::new(Sheet { file, line: String::new(), torn: false }))))
    }

    pub(crate) fn start(&self, at: Reading, start: Start) {
        self.tell(at, What::Start(start));
    }

    pub(crate) fn group(&self, at: Reading, name: &GroupName) {
        self.tell(at, What::Group { group: name.id(), name: name.to_string() });
    }

    pub(crate) fn event(&self, at: Reading, event: &Event) {
        self.write(|line| trace::write_event(line, at.own, Some(at.common), event));
    }

    /// An edict made between two readings.
    pub(crate) fn edict(
        &self,
        group: &GroupName,
        tag: &ByTerm,
        edict: Edict,
        (before, after): (LocalTime, LocalTime),
        common: Common,
    ) {
        let made = EdictMade {
            group: group.id(),
            epoch: tag.epoch,
            term: edict.tag,
            number: edict.number,
            after,
            first: Some(tag.first.clone()),
        };
        self.tell(Reading { own: before, common }, What::Edict(made));
    }

    /// The machine of a local group begins.
    pub(crate) fn local_start(&self, at: Reading, start: LocalStart) {
        self.tell(at, What::LocalStart(start));
    }

    /// Writes an event of the machine of a local group. Datagrams that came are left out: there are
    /// too many.
    pub(crate) fn local(&self, at: Reading, group: GroupId, event: &local::Event) {
        if !matches!(event, local::Event::Heard { .. }) {
            self.tell(at, What::Local { group, event: *event });
        }
    }

    /// The machine of a local group has ended.
    pub(crate) fn local_end(&self, at: Reading, group: GroupId) {
        self.tell(at, What::LocalEnd { group });
    }

    pub(crate) fn stop(&self, at: Reading) {
        self.tell(at, What::Stop);
    }

    fn tell(&self, at: Reading, what: What) {
        let line = Line { own: at.own, common: Some(at.common), what };
        self.write(|out| line.write(out));
    }

    fn write(&self, fill: impl FnOnce(&mut String)) {
        let mut sheet = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Sheet { file, line, torn } = &mut *sheet;
        line.clear();
        fill(line);
        if !*torn && file.write_all(line.as_bytes()).is_err() {
            *torn = true;
            tracing::error!(name: "tenure.trace", "the trace cannot be written and ends here");
        }
    }
}
