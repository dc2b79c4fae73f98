//! Judges what real nodes have written down, by the properties of the laboratory.
//!
//! The [traces](tenure_proto::trace) of a cluster are read, put in order by the clock that
//! their writers shared, and shown to the same judge that looks at simulated worlds. The judge sees
//! all else through a [`Sight`](crate::protocols::strong::judge::Sight): instants between two
//! readings, and the edge of what is known.
//!
//! ```text
//!   files ──▶ record: lives, edicts, admissions ──▶ timelines ──▶ a judge for each group     who led when, who supported it
//!                                               ├─▶ locals: a judge for each local group     who led whom, who was bound to it
//!                                               ├─▶ lasting: terms, charters, epochs        what needs no common clock
//!                                               ├─▶ edicts: by leaders, in order
//!                                               └─▶ fences: what was admitted
//! ```
//!
//! **Nothing is called broken that might be right.** Where an instant is known only to within some
//! time, the bound is taken that speaks for the nodes; of a node whose trace is missing or has
//! ended, the judge believes what others say. So a verdict `broken` is certain, and `holds` is as
//! good as what was written down: the report says what could not be judged, and why.
//!
//! A life without a common clock has a timeline of its own, by its own clock. All that one process
//! can break alone is judged there, and so is what is written in terms, charters and stamps, which
//! compare without any clock.

mod clock;
mod edicts;
mod fences;
mod lasting;
mod locals;
mod picture;
mod record;
mod report;
mod timeline;
mod words;

pub use picture::picture;
pub use record::AuditError;
pub use report::{Broken, Counted, NodeAbout, Place, Report, Unjudged};

use crate::property::{Kind, Mark, Property};
use crate::world::RealTime;
use record::Record;

const fn always(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Always, says }
}

/// Lives of one node, which a restart must keep apart.
pub const LIVES: Property =
    always("lives-apart", "no two lives of a node have one name, and none begins before the last has ended");
/// MONO.
pub const NODE_EPOCHS: Property = always(
    "epochs-of-a-node-rise",
    "within a life a node adopts rising epochs, and grants in none that is older than its own (MONO)",
);
/// ADJ.
pub const NEIGHBOURS: Property =
    always("neighbours-meet", "every quorum of an epoch meets every quorum of the one before (ADJ)");
/// W.
pub const WAITED: Property = always(
    "charters-wait",
    "a member accepts a charter only when it has been in the epoch before for longer than any lease (W)",
);
/// The guarantee that fences exist for.
pub const ADMITTED: Property = always(
    "admissions-ordered",
    "what a fenced resource admits never goes back: in terms, or in tokens where it asks for order; and it refuses nothing else",
);

/// Properties judged of traces alone; simulated worlds have no need of them.
pub const OWN: [Property; 5] = [LIVES, NODE_EPOCHS, NEIGHBOURS, WAITED, ADMITTED];

/// A file that a node, a user's thread or a fenced resource has written.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name in the report.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Judges the traces of one cluster. An error says why they could not be judged at all.
pub fn audit(files: &[File<'_>]) -> Result<Report, AuditError> {
    let record = Record::read(files)?;
    let mut findings = Findings::default();
    lasting::judge(&record, &mut findings);
    timeline::judge(&record, &mut findings);
    edicts::judge(&record, &mut findings);
    fences::judge(&record, &mut findings);
    Ok(report::report(files, &record, findings))
}

/// The findings so far: the first violation of each property, and which `sometimes` were seen.
#[derive(Default)]
struct Findings {
    broken: Vec<Found>,
    seen: Vec<&'static str>,
}

/// A broken property.
struct Found {
    property: Property,
    at: Option<RealTime>,
    text: String,
    /// The lines that show it, the later one first.
    marks: Vec<Mark>,
}

impl Findings {
    fn see(&mut self, name: &'static str) {
        if !self.seen.contains(&name) {
            self.seen.push(name);
        }
    }

    /// A property is broken, as these lines show.
    fn add(
        &mut self,
        property: Property,
        marks: impl IntoIterator<Item = Mark>,
        text: impl FnOnce() -> String,
    ) {
        self.add_at(property, None, marks, text);
    }

    fn add_at(
        &mut self,
        property: Property,
        at: Option<RealTime>,
        marks: impl IntoIterator<Item = Mark>,
        text: impl FnOnce() -> String,
    ) {
        if self.broken.iter().all(|known| known.property.name != property.name) {
            self.broken.push(Found { property, at, text: text(), marks: marks.into_iter().collect() });
        }
    }
}
