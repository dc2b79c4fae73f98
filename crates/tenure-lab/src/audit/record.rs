//! Sorts the lines of the files by writer: lives of nodes, edicts, decisions of fences.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tenure_proto::strong::edict::{ByTerm, QuorumStamp};
use tenure_proto::strong::epoch::{Body, Charter, Epoch};
use tenure_proto::strong::{Event, Holder, InstanceId, Kind, Loss, Term};
use tenure_proto::time::{Bound, Clockwork, LocalSpan, Stamp};
use tenure_proto::trace::{Common, Decision, EdictMade, Line, LocalStart, Reader, Start, TraceError, What};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::File;
use super::clock::Clock;
use super::locals::{LocalStep, Told};
use crate::property::Mark;

/// One step of a node: something that its machine has published, and when.
pub(super) struct Step {
    pub(super) mark: Mark,
    pub(super) own: LocalTime,
    pub(super) common: Option<Common>,
    /// The position of its readings on the life's clock.
    pub(super) pair: usize,
    pub(super) event: Event,
}

/// One life of a node.
pub(super) struct Life {
    pub(super) mark: Mark,
    pub(super) holder: Holder,
    pub(super) name: String,
    pub(super) charter: Arc<Charter>,
    own: LocalTime,
    pub(super) common: Option<Common>,
    pub(super) steps: Vec<Step>,
    /// Events that the machines of its local groups have published.
    pub(super) locals: Vec<LocalStep>,
    /// All that the node itself has read, in order: at its start, at each step, at its end.
    readings: Vec<(LocalTime, Option<Common>)>,
    stopped: bool,
    /// Whether all that the node wrote has a place on the common clock.
    pub(super) timed: bool,
    /// How its own clock lies on the common one; on itself, where there is none.
    pub(super) clock: Clock,
}

impl Life {
    fn begin(mark: Mark, own: LocalTime, common: Option<Common>, start: Start) -> Self {
        let Start { life, name, charter } = start;
        let holder = Holder { node: life.node, incarnation: life.incarnation };
        let clock = Clock::new(std::iter::empty(), charter.body.clocks);
        let (steps, locals, readings) = (Vec::new(), Vec::new(), vec![(own, common)]);
        let (timed, stopped) = (false, false);
        Self { mark, holder, name, charter, own, common, steps, locals, readings, stopped, timed, clock }
    }

    /// The node has read its clock once more; gives the position of that reading.
    fn read(&mut self, own: LocalTime, common: Option<Common>) -> Result<usize, Misplaced> {
        if self.stopped {
            return Err(Misplaced::AfterStop);
        }
        let last = self.readings.last().and_then(|(_, common)| *common);
        match (last, common) {
            (Some(last), Some(common)) if common.from < last.from => return Err(Misplaced::CommonWentBack),
            _ => {}
        }
        self.readings.push((own, common));
        Ok(self.readings.len() - 1)
    }

    /// Puts what was read on the common clock, or on the own one where there is none.
    fn place(&mut self, legal: Clockwork) {
        let timed = self.readings.iter().all(|(_, common)| common.is_some());
        self.timed = timed;
        let placed = self.readings.iter().map(|(own, common)| (*own, self.at(*own, *common)));
        // A grantor that falls silent in the middle of its life, and a leader that says so, had its
        // clock disturbed.
        let disturbed = |step: &&Step| match step.event {
            Event::Silent { .. } => step.own > self.own,
            Event::Lost { loss, .. } => loss == Loss::Disturbed,
            _ => false,
        };
        let jumps = self.steps.iter().filter(disturbed).map(|step| step.pair).collect();
        self.clock = Clock::new(placed, legal).disturbed_at(jumps);
    }

    /// When it began, on the clock of its timeline.
    pub(super) fn began(&self) -> Common {
        self.at(self.own, self.common)
    }

    /// When one of its steps was, on the clock of its timeline.
    pub(super) fn at(&self, own: LocalTime, common: Option<Common>) -> Common {
        common.filter(|_| self.timed).unwrap_or(Common::exact(own.as_nanos()))
    }

    /// Whether it has ended in good order: nothing came after its last line.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// The last that is known of it, on its own clock and on that of its timeline.
    pub(super) fn last(&self) -> (LocalTime, Common) {
        let (own, common) = self.readings.last().copied().unwrap_or((self.own, self.common));
        (own, self.at(own, common))
    }

    /// The last stamp that it gave.
    pub(super) fn last_stamp(&self) -> Option<Stamp> {
        self.steps.iter().rev().find_map(|step| match step.event {
            Event::Granted { at, .. } => Some(at),
            _ => None,
        })
    }
}

/// An edict, as its maker wrote it down.
pub(super) struct Written {
    pub(super) mark: Mark,
    pub(super) by: Holder,
    pub(super) group: GroupId,
    pub(super) epoch: Epoch,
    pub(super) term: Term,
    pub(super) number: u64,
    pub(super) before: LocalTime,
    pub(super) after: LocalTime,
    pub(super) common: Option<Common>,
    /// (epoch, QT0), if it carries them.
    pub(super) first: Option<Box<ByTerm>>,
}

/// A run that began a term.
pub(super) struct Acquired<'a> {
    pub(super) group: GroupId,
    pub(super) term: Term,
    pub(super) epoch: Epoch,
    pub(super) id: InstanceId,
    pub(super) stamps: &'a QuorumStamp,
    pub(super) mark: Mark,
}

/// All that the files hold.
#[derive(Default)]
pub(super) struct Record {
    /// In the order in which they were found.
    pub(super) lives: Vec<Life>,
    pub(super) edicts: Vec<Written>,
    pub(super) admitted: Vec<(Mark, Decision)>,
    pub(super) refused: Vec<(Mark, Decision)>,
    pub(super) groups: BTreeMap<GroupId, String>,
    /// Lines of kinds that this version does not know, and lines that were cut off.
    pub(super) unknown: usize,
    pub(super) cut: usize,
}

/// Whose lines follow in a file.
#[derive(Clone, Copy)]
enum Writer {
    Nobody,
    /// A node: the position of its life.
    Node(usize),
    /// A part of a life.
    Part(Holder),
}

impl Record {
    /// Reads all files. An error names the file, the line, and what to do.
    pub(super) fn read(files: &[File<'_>]) -> Result<Self, AuditError> {
        let mut record = Self::default();
        let mut cluster = None;
        for (number, file) in files.iter().enumerate() {
            let same = |other: &&File<'_>| other.bytes == file.bytes && !file.bytes.is_empty();
            if let Some(other) = files[..number].iter().find(same) {
                return Err(AuditError::Twice { file: file.name.to_owned(), other: other.name.to_owned() });
            }
            record.read_file(file, u32::try_from(number).unwrap_or(u32::MAX), &mut cluster)?;
        }
        if record.lives.is_empty() && record.edicts.is_empty() && record.admitted.is_empty() {
            return Err(AuditError::Nothing);
        }
        let legal = record.legal();
        record.lives.iter_mut().for_each(|life| life.place(legal));
        Ok(record)
    }

    fn read_file(
        &mut self,
        file: &File<'_>,
        number: u32,
        cluster: &mut Option<(u128, String)>,
    ) -> Result<(), AuditError> {
        let name = || file.name.to_owned();
        let mut reader = Reader::new(file.bytes);
        let mut writer = Writer::Nobody;
        for entry in reader.by_ref() {
            let (line, entry) = entry.map_err(|error| AuditError::Unreadable { file: name(), error })?;
            let mark = Mark { file: number, line: u32::try_from(line).unwrap_or(u32::MAX) };
            if let What::Start(Start { life, .. }) | What::Part(life) = &entry.what {
                let (known, first) = cluster.get_or_insert_with(|| (life.cluster, name()));
                if *known != life.cluster {
                    let (clusters, other) = ((life.cluster, *known), first.clone());
                    return Err(AuditError::OtherCluster { file: name(), line, other, clusters });
                }
            }
            let added = self.add(entry, mark, &mut writer);
            added.map_err(|what| AuditError::Misplaced { file: name(), line, what })?;
        }
        self.unknown += reader.unknown();
        self.cut += reader.cut();
        Ok(())
    }

    fn add(&mut self, line: Line, mark: Mark, writer: &mut Writer) -> Result<(), Misplaced> {
        let Line { own, common, what } = line;
        match what {
            What::Start(start) => {
                *writer = Writer::Node(self.lives.len());
                self.lives.push(Life::begin(mark, own, common, start));
            }
            What::Part(life) => {
                *writer = Writer::Part(Holder { node: life.node, incarnation: life.incarnation });
            }
            What::Group { group, name } => _ = self.groups.insert(group, name),
            What::Event(event) => {
                if matches!(event, Event::Wedged { .. } | Event::Recovering | Event::Recovered { .. }) {
                    return Err(Misplaced::NotGapless);
                }
                let life = self.writing(*writer)?;
                let pair = life.read(own, common)?;
                life.steps.push(Step { mark, own, common, pair, event });
            }
            What::Stop => {
                let life = self.writing(*writer)?;
                life.read(own, common)?;
                life.stopped = true;
            }
            What::LocalStart(start) => {
                self.add_local(mark, *writer, (own, common), start.group, Told::Start(start))?;
            }
            What::Local { group, event } => {
                self.add_local(mark, *writer, (own, common), group, Told::Event(event))?;
            }
            What::LocalEnd { group } => {
                self.add_local(mark, *writer, (own, common), group, Told::End)?;
            }
            What::Edict(edict) => self.add_edict(mark, *writer, (own, common), edict)?,
            What::Admitted(decision) => self.admitted.push((mark, decision)),
            What::Refused(decision) => self.refused.push((mark, decision)),
        }
        Ok(())
    }

    /// The life whose node writes here.
    fn writing(&mut self, writer: Writer) -> Result<&mut Life, Misplaced> {
        match writer {
            Writer::Node(life) => Ok(&mut self.lives[life]),
            Writer::Nobody => Err(Misplaced::BeforeStart),
            Writer::Part(_) => Err(Misplaced::InPart),
        }
    }

    fn add_local(
        &mut self,
        mark: Mark,
        writer: Writer,
        (own, common): (LocalTime, Option<Common>),
        group: GroupId,
        told: Told,
    ) -> Result<(), Misplaced> {
        let life = self.writing(writer)?;
        let pair = life.read(own, common)?;
        life.locals.push(LocalStep { mark, own, common, pair, group, told });
        Ok(())
    }

    fn add_edict(
        &mut self,
        mark: Mark,
        writer: Writer,
        (before, common): (LocalTime, Option<Common>),
        edict: EdictMade,
    ) -> Result<(), Misplaced> {
        let EdictMade { group, epoch, term, number, after, first } = edict;
        let by = match writer {
            Writer::Node(life) => self.lives[life].holder,
            Writer::Part(holder) => holder,
            Writer::Nobody => return Err(Misplaced::BeforeStart),
        };
        if after < before {
            return Err(Misplaced::EdictBackwards);
        }
        let first = first.map(|first| Box::new(ByTerm { epoch, first }));
        self.edicts.push(Written { mark, by, group, epoch, term, number, before, after, common, first });
        Ok(())
    }

    /// All charters that somebody went by, with the lines that tell of them.
    pub(super) fn charters(&self) -> impl Iterator<Item = (NodeId, &Arc<Charter>, Mark)> {
        self.lives.iter().flat_map(|life| {
            let node = life.holder.node;
            let told = life.steps.iter().filter_map(move |step| match &step.event {
                Event::Adopted { charter, .. } | Event::Decided { charter } => {
                    Some((node, charter, step.mark))
                }
                _ => None,
            });
            [(node, &life.charter, life.mark)].into_iter().chain(told)
        })
    }

    /// The local groups: how their machines began, each once.
    pub(super) fn local_starts(&self) -> Vec<&LocalStart> {
        let steps = self.lives.iter().flat_map(|life| &life.locals);
        let mut starts: Vec<&LocalStart> = Vec::new();
        for step in steps {
            if let Told::Start(start) = &step.told
                && !starts.contains(&start)
            {
                starts.push(start);
            }
        }
        starts
    }

    /// The members and bounds of the oldest epoch that any of this can be about.
    pub(super) fn founding(&self) -> Option<Body> {
        let (_, oldest, _) = self.charters().min_by_key(|(_, charter, _)| charter.epoch)?;
        Some(oldest.before.as_ref().unwrap_or(&oldest.body).clone())
    }

    /// The protocol's assumption about clocks: the widest bound and the coarsest tick of any epoch.
    fn legal(&self) -> Clockwork {
        let clocks = || self.charters().map(|(_, charter, _)| charter.body.clocks);
        let width = |bound: &Bound| match bound {
            Bound::Drift(drift) => (0, u64::from(drift.as_ppm())),
            Bound::Skew(skew) => (1, skew.as_nanos()),
        };
        let local = self.lives.iter().flat_map(|life| &life.locals).filter_map(|step| match &step.told {
            Told::Start(start) => Some(Bound::Drift(start.drift)),
            Told::Event(_) | Told::End => None,
        });
        let bound = clocks().map(|clocks| clocks.bound).chain(local).max_by_key(width);
        let tick = clocks().map(|clocks| clocks.tick).max().filter(|tick| *tick > LocalSpan::ZERO);
        Clockwork {
            bound: bound.unwrap_or(Bound::Skew(LocalSpan::ZERO)),
            tick: tick.unwrap_or(LocalSpan::from_nanos(1)),
        }
    }

    /// Every run that began a term, in the order of the files.
    pub(super) fn acquisitions(&self) -> impl Iterator<Item = Acquired<'_>> {
        self.lives.iter().flat_map(|life| {
            life.steps.iter().filter_map(|step| match &step.event {
                Event::Leads { group, term, epoch, id, stamps, kind: Kind::Acquire, .. } => Some(Acquired {
                    group: *group,
                    term: *term,
                    epoch: *epoch,
                    id: *id,
                    stamps,
                    mark: step.mark,
                }),
                _ => None,
            })
        })
    }

    /// Which life a line belongs to.
    pub(super) fn writer(&self, mark: Mark) -> Option<Holder> {
        let edict = self.edicts.iter().find(|edict| edict.mark == mark).map(|edict| edict.by);
        let lives = self.lives.iter().filter(|life| life.mark.file == mark.file && life.mark <= mark);
        edict.or_else(|| lives.max_by_key(|life| life.mark).map(|life| life.holder))
    }
}

/// The flaw in where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Nobody has said whose file this is.
    BeforeStart,
    /// A part of a node tells what only the node itself can know.
    InPart,
    /// The node had ended.
    AfterStop,
    /// The clock that all share went back.
    CommonWentBack,
    /// The reading after an edict is smaller than the one before.
    EdictBackwards,
    /// Epochs are ended before the next begins, or a lost disk recovers: that is not judged here.
    NotGapless,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeStart => "stands before any 'start' or 'part': the beginning of the file is missing",
            Self::InPart => {
                "stands after a 'part', where only edicts may: events belong into the node's own file"
            }
            Self::AfterStop => "stands after 'stop', when the node had ended: begin with 'start' again",
            Self::CommonWentBack => {
                "is earlier on the common clock than the line before: use a clock that nobody sets, or none"
            }
            Self::EdictBackwards => {
                "has 'after' smaller than 'own': the clock went back, or the readings are swapped"
            }
            Self::NotGapless => {
                "is of a cluster whose members do not change gaplessly: such traces are not judged"
            }
        })
    }
}

/// Why traces were not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditError {
    /// A line cannot be read.
    Unreadable {
        /// In which file.
        file: String,
        /// Which line, and why.
        error: TraceError,
    },
    /// A line stands where it cannot.
    Misplaced {
        /// In which file.
        file: String,
        /// Which line.
        line: usize,
        /// Why.
        what: Misplaced,
    },
    /// Two files are of two clusters.
    OtherCluster {
        /// The one.
        file: String,
        /// Where it says so.
        line: usize,
        /// The other.
        other: String,
        /// The cluster of the one, and that of the other.
        clusters: (u128, u128),
    },
    /// One file was given twice.
    Twice {
        /// As this.
        file: String,
        /// And as this.
        other: String,
    },
    /// No file holds anything.
    Nothing,
    /// A drawing was asked for, and nothing has a place in time that others share.
    NothingToDraw,
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, error } => write!(f, "{file}: {error}"),
            Self::Misplaced { file, line, what } => write!(f, "{file}: line {line}: {what}"),
            Self::OtherCluster { file, line, other, clusters: (cluster, first) } => write!(
                f,
                "{file}: line {line}: of cluster {cluster:032x}, but {other} is of cluster {first:032x}; \
                 audit one cluster at a time"
            ),
            Self::Twice { file, other } => {
                write!(f, "{file}: holds the same as {other}; name each file once")
            }
            Self::Nothing => {
                f.write_str("there is nothing to judge: no file holds a life, an edict or an admission")
            }
            Self::NothingToDraw => f.write_str(
                "nothing can be drawn: no life has a common clock; without a drawing it is judged all the same",
            ),
        }
    }
}

impl std::error::Error for AuditError {}
