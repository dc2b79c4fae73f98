//! Writes down what the node's machine publishes and what edicts its users make, for `tenure lab audit`.
//!
//! Each line is handed to the operating system before its step is visible to anybody: a file that ends because its process
//! was killed lacks nothing that others know of. That costs a system call a line, so it is for tests and for finding faults.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_proto::LocalTime;
use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::trace::{self, Common, EdictMade, Line, Start, What};
use tenure_proto::strong::{Edict, Event};

use crate::name::GroupName;
use crate::sys::clock::{Which, read};

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
    /// Begins a file of its own for this life: `PATH` and then the incarnation, so that no life writes over another's.
    pub(crate) fn create(path: &Path, incarnation: u128) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{incarnation}"));
        let mut file = File::options().write(true).create_new(true).open(name)?;
        writeln!(file, "{}", trace::HEADER)?;
        Ok(Self(Arc::new(Mutex::new(Sheet { file, line: String::new(), torn: false }))))
    }

    pub(crate) fn start(&self, own: LocalTime, start: Start) {
        self.line(&Line { own, common: common(), what: What::Start(start) });
    }

    pub(crate) fn group(&self, own: LocalTime, name: &GroupName) {
        let what = What::Group { group: name.id(), name: name.to_string() };
        self.line(&Line { own, common: common(), what });
    }

    pub(crate) fn event(&self, own: LocalTime, event: &Event) {
        self.write(|line| trace::write_event(line, own, common(), event));
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
        self.line(&Line { own: before, common: Some(common), what: What::Edict(made) });
    }

    pub(crate) fn stop(&self, own: LocalTime) {
        self.line(&Line { own, common: common(), what: What::Stop });
    }

    fn line(&self, line: &Line) {
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

/// The clock that all processes of a machine share.
fn common() -> Option<Common> {
    Some(Common::exact(read(Which::Boot)))
}
