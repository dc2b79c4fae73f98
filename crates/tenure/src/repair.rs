//! Repairing terms that are absurd already, while every member is stopped.
//!
//! One ceiling stands for the terms of all groups, and it never falls. An absurd term (a bug, a bad
//! disk, a wrong confirmation) raises the terms of every group for good. With all members stopped,
//! their stores can be replaced by ones that go on above a lower floor:
//!
//! 1. [`Report::read`] reads the store of one member, on its host. It changes nothing.
//! 2. [`Plan::new`] makes a plan of the reports of all members, or says why it cannot.
//! 3. [`Plan::apply`] replaces the store of one member, on its host, in one step. It refuses a
//!    store that is not as reported.
//!
//! Then the members start, and each is silent for a longest lease. A member that was not repaired
//! and those that were are foreign to each other: both stop. Groups that hold an absurd term are
//! barred until [`MemberChange::LiftBar`](crate::MemberChange::LiftBar): nobody leads them.
//! `tenure_proto::strong::epoch::repair` says why no two processes lead at once meanwhile.
//!
//! Reports and plans are text, whose last line is a checksum.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use tenure_proto::strong::epoch::repair::{self, Stopped, Wish};
use tenure_proto::strong::epoch::{Charter, Epoch};
use tenure_proto::strong::{Cell, Term};
use tenure_proto::{GroupId, NodeId};
use thiserror::Error;

use crate::chance;
use crate::codec::{Reader, Wire, Writer};
use crate::config::{Checked, Config, ConfigError};
use crate::members::MARGIN;
use crate::memory::{Memory, MemoryError};
use crate::name::{ClusterId, GroupName, NameError, NodeName};
use crate::node::term_floor;
use crate::store::{Image, Repaired, Store, StoreError, digest_of};

const REPORT: &str = "tenure-terms-report 1";
const PLAN: &str = "tenure-terms-plan 1";

/// Why terms were not repaired. Nothing has changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The configuration is refused, or is not a member's.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store is refused: for example because the member runs.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A text is not a report, or not a plan, or was changed.
    #[error("{what} {why}: make it again")]
    Text {
        /// Which kind of text was expected.
        what: &'static str,
        /// The flaw.
        why: &'static str,
    },
    /// The reports do not allow a plan.
    #[error("{0}")]
    Reports(String),
    /// A group has no such name.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// The number of a group by its name, or by `id=NUMBER` where the name is not known.
pub(crate) fn group_id(text: &str) -> Result<GroupId, NameError> {
    match text.strip_prefix("id=").map(u64::from_str) {
        Some(Ok(number)) => Ok(GroupId(number)),
        _ => GroupName::new(text).map(|name| name.id()),
    }
}

/// A group whose name is not known.
pub(crate) fn group_text(group: GroupId) -> String {
    format!("id={}", group.0)
}

/// All that the store of one stopped member says, and the grants that it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    image: Image,
    grants: Vec<(GroupId, Term)>,
    /// Why grants were not read.
    memory: Option<String>,
    /// The time of day where it was read, as a term.
    time: Term,
}

impl Report {
    /// Reads the store of the member that `config` is for. The member must not run.
    /// # Errors
    /// If the configuration is refused or not a member's, if the member runs, or if its store is
    /// refused.
    pub fn read(config: &Config) -> Result<Self, RepairError> {
        let checked = Checked::new(config)?;
        let missing = ConfigError::Missing { key: "store", why: "only a member's store is repaired" };
        let dir = checked.store.as_deref().filter(|_| checked.role.grants()).ok_or(missing)?;
        let image = Store::examine(dir, &checked.name, checked.cluster)?;
        let path = Memory::path(checked.memory.as_deref(), image.cluster, &checked.name);
        let (cells, memory) = match Memory::look(&path, image.id) {
            Ok(Some(cells)) => (cells, None),
            Ok(None) => (Vec::new(), Some(format!("there is no {}", path.display()))),
            Err(MemoryError::InUse { path }) => return Err(StoreError::Twin { memory: path }.into()),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let grants = cells.iter().filter_map(|cell| match cell {
            Cell::Grant(group, Some(grant)) => Some((*group, grant.term)),
            _ => None,
        });
        Ok(Self { grants: grants.collect(), image, memory, time: term_floor() })
    }

    /// The member.
    pub fn name(&self) -> &NodeName {
        &self.image.me
    }

    /// The largest term that it may have granted.
    pub fn ceiling(&self) -> Term {
        self.stopped().ceiling()
    }

    /// The charter by which it goes: its number.
    pub fn epoch(&self) -> Option<Epoch> {
        self.image.charter().map(|charter| charter.epoch)
    }

    /// The groups for which it remembers a grant of a term above this, as `id=NUMBER`.
    pub fn groups_above(&self, term: Term) -> Vec<(String, Term)> {
        let above = self.grants.iter().filter(|(_, granted)| *granted > term);
        above.map(|(group, granted)| (group_text(*group), *granted)).collect()
    }

    /// Why the grants that it remembers could not be read, if so: then only the operator knows
    /// which groups hold an absurd term.
    pub fn memory_trouble(&self) -> Option<&str> {
        self.memory.as_deref()
    }

    /// The report as text.
    pub fn to_text(&self) -> String {
        let Image { cluster, me, id, incarnation, cells, .. } = &self.image;
        let mut text = format!("{REPORT}\nmember {me}\ncluster {cluster}\nstore {id}\n");
        let life = incarnation.map_or(0, |life| life.0);
        let _ = writeln!(text, "life {life}\nceiling {}\ntime {}", self.ceiling(), self.time);
        cells.iter().for_each(|cell| describe(cell, &mut text));
        if let Some(trouble) = &self.memory {
            let _ = writeln!(text, "memory not read: {}", trouble.replace('\n', " "));
        }
        for (group, term) in &self.grants {
            let _ = writeln!(text, "grant {} {term}", group_text(*group));
        }
        let _ = writeln!(text, "content {}", hex(&self.content()));
        sealed(text)
    }

    /// Reads a report.
    /// # Errors
    /// If the text is no report, or was changed.
    pub fn parse(text: &str) -> Result<Self, RepairError> {
        let lines = Lines::unsealed(text, REPORT, "the report")?;
        let content = lines.bytes("content")?;
        let image = Image::from_bytes(&content).map_err(|_| lines.wrong("is not understood"))?;
        let grant = |line: &str| {
            let (group, term) = line.split_once(' ')?;
            Some((group_id(group).ok()?, Term(term.parse().ok()?)))
        };
        let grants = lines.all("grant").map(|line| grant(line).ok_or(lines.wrong("is not understood")));
        let grants = grants.collect::<Result<_, _>>()?;
        let memory = lines.all("memory").next().map(|line| line.replacen("not read: ", "", 1));
        let time = lines.all("time").next().and_then(|time| time.parse().ok());
        let time = Term(time.ok_or(lines.wrong("is not whole"))?);
        Ok(Self { image, grants, memory, time })
    }

    fn content(&self) -> Vec<u8> {
        self.image.to_bytes().unwrap_or_default() // It was read from bytes.
    }

    fn stopped(&self) -> Stopped {
        let Image { me, id, incarnation, cells, .. } = &self.image;
        Stopped {
            node: me.id(),
            store: *id,
            life: *incarnation,
            cells: cells.clone(),
            grants: self.grants.clone(),
        }
    }
}

/// One cell of a store, for people.
fn describe(cell: &Cell, text: &mut String) {
    let _ = match cell {
        Cell::Charter(charter) => {
            let Charter { epoch, lineage, floor, .. } = &**charter;
            let digest = charter.digest();
            writeln!(text, "charter epoch={epoch} lineage={lineage} digest={digest:032x} floor={floor}")
        }
        Cell::Ballot { epoch, promised, accepted } => {
            let accepted = accepted.as_ref().map_or_else(|| "none".to_owned(), |(_, c)| c.epoch.to_string());
            writeln!(text, "ballot epoch={epoch} promised={} accepted={accepted}", promised.number)
        }
        Cell::SplitBrain(Some(other)) => writeln!(text, "split-brain lineage={}", other.lineage),
        Cell::Life { store, highest, condemned: true, .. } => {
            writeln!(text, "condemned store={store} highest={}", highest.0)
        }
        _ => Ok(()),
    };
}

/// A charter with lower terms, for the stores of all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    charter: Arc<Charter>,
    /// Each member, and the digest of its store as reported.
    members: Vec<(NodeName, Vec<u8>)>,
    cluster: ClusterId,
}

/// The outcome of applying a plan to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The store was replaced, durably.
    Now,
    /// It had been replaced by this plan before.
    Before,
}

impl Plan {
    /// The lowest floor that a plan may have: no cluster that elects once a second gets there. A
    /// plan needs more if the clock of a host that reported is ahead.
    pub fn lowest_floor() -> Term {
        Term(term_floor().0.saturating_add(MARGIN))
    }

    /// The same, by the latest clock of all hosts that reported and of this one. With a clock that
    /// is late by more than what is plausible, every term of the cluster would seem absurd, and
    /// terms of groups that nobody bars would fall.
    fn lowest_after(reports: &[Report]) -> Term {
        let times = reports.iter().map(|report| report.time.0.saturating_add(MARGIN));
        times.map(Term).fold(Self::lowest_floor(), Term::max)
    }

    /// Makes a plan of the reports of all members. Terms go on above `floor`, or above the
    /// [lowest](Self::lowest_floor) that the clocks of all hosts allow. Barred are the groups
    /// `bar`, by name or as `id=NUMBER`, and those for which a member remembers a grant above the
    /// floor.
    /// # Errors
    /// If the reports do not allow it: the error says what to do.
    pub fn new(reports: &[Report], floor: Option<Term>, bar: &[String]) -> Result<Self, RepairError> {
        let lowest = Self::lowest_after(reports);
        let stopped: Vec<Stopped> = reports.iter().map(Report::stopped).collect();
        // After an earlier repair terms have gone on above its floor, which may be minutes old.
        let known = stopped.iter().filter_map(Stopped::plausible).max().unwrap_or_default();
        let floor = floor.unwrap_or_else(|| lowest.max(Term(known.0.saturating_add(MARGIN))));
        if floor < lowest {
            return Err(RepairError::Reports(format!(
                "the floor must be at least {lowest}, by the latest clock of the hosts: terms below it may have been granted"
            )));
        }
        let first = reports.first().map(|report| report.image.cluster);
        if let Some(other) = reports.iter().find(|report| Some(report.image.cluster) != first) {
            let name = other.name();
            return Err(RepairError::Reports(format!("{name} is of another cluster: leave its report out")));
        }
        let barred = bar.iter().map(|group| group_id(group)).collect::<Result<Vec<_>, _>>()?;
        let draw = u64::try_from(chance::wide() >> 64).unwrap_or_default();
        let charter = repair::plan(&stopped, &Wish { floor, barred, draw })
            .map_err(|error| RepairError::Reports(error.describe(|node| called(reports, node))))?;
        let member = |report: &Report| (report.name().clone(), digest_of(&report.content()));
        let members = reports.iter().map(member).collect();
        Ok(Self { charter, members, cluster: first.unwrap_or(ClusterId(0)) })
    }

    /// Replaces the store of the member that `config` is for. The member must not run. To apply it
    /// twice is fine, and so is a process that is killed meanwhile: the store is as before or as
    /// after.
    /// # Errors
    /// If the member is not one of the plan, if it runs, or if its store is not as reported.
    pub fn apply(&self, config: &Config) -> Result<Applied, RepairError> {
        let checked = Checked::new(config)?;
        let missing = ConfigError::Missing { key: "store", why: "only a member's store is repaired" };
        let dir = checked.store.as_deref().filter(|_| checked.role.grants()).ok_or(missing)?;
        let found = self.members.iter().find(|(name, _)| *name == checked.name);
        let (_, digest) = found.ok_or_else(|| {
            let name = &checked.name;
            RepairError::Reports(format!(
                "{name} is none of the members of this plan: if it is a standby, remove its store and let it join anew"
            ))
        })?;
        match Store::repair(dir, &checked.name, digest, &self.charter)? {
            Repaired::Now => Ok(Applied::Now),
            Repaired::Before => Ok(Applied::Before),
        }
    }

    /// Terms go on above this.
    pub fn floor(&self) -> Term {
        self.charter.floor
    }

    /// The epoch with which the members go on.
    pub fn epoch(&self) -> Epoch {
        self.charter.epoch
    }

    /// The members whose stores are to be replaced.
    pub fn members(&self) -> impl Iterator<Item = &NodeName> {
        self.members.iter().map(|(name, _)| name)
    }

    /// The barred groups, as `id=NUMBER`.
    pub fn barred(&self) -> Vec<String> {
        self.charter.body.barred.groups().iter().map(|group| group_text(*group)).collect()
    }

    /// The plan as text.
    pub fn to_text(&self) -> String {
        let Charter { epoch, lineage, floor, .. } = &*self.charter;
        let cluster = self.cluster;
        let mut text =
            format!("{PLAN}\ncluster {cluster}\nepoch {epoch}\nlineage {lineage}\nfloor {floor}\n");
        for group in self.barred() {
            let _ = writeln!(text, "barred {group}");
        }
        for (name, digest) in &self.members {
            let _ = writeln!(text, "member {name} {}", hex(digest));
        }
        let mut to = Writer::new();
        self.charter.write(&mut to);
        let _ = writeln!(text, "charter {}", hex(&to.into_bytes()));
        sealed(text)
    }

    /// Reads a plan.
    /// # Errors
    /// If the text is no plan, or was changed.
    pub fn parse(text: &str) -> Result<Self, RepairError> {
        let lines = Lines::unsealed(text, PLAN, "the plan")?;
        let bytes = lines.bytes("charter")?;
        let charter = Arc::<Charter>::read(&mut Reader::new(&bytes));
        let charter = charter.map_err(|_| lines.wrong("is not understood"))?;
        let member = |line: &str| {
            let (name, digest) = line.split_once(' ')?;
            Some((NodeName::new(name).ok()?, unhex(digest)?))
        };
        let members = lines.all("member").map(|line| member(line).ok_or(lines.wrong("is not understood")));
        let members = members.collect::<Result<_, _>>()?;
        let cluster = lines.all("cluster").next().and_then(|id| id.parse().ok());
        Ok(Self { charter, members, cluster: cluster.ok_or(lines.wrong("names no cluster"))? })
    }
}

/// A member by its name, as far as the reports have it.
fn called(reports: &[Report], node: NodeId) -> String {
    let contacts = reports.iter().flat_map(|report| &report.image.contacts).map(|contact| &contact.name);
    let mut names = reports.iter().map(Report::name).chain(contacts);
    names.find(|name| name.id() == node).map_or_else(|| node.to_string(), ToString::to_string)
}

/// The lines of a text whose last one is a checksum that holds.
struct Lines<'a> {
    body: &'a str,
    what: &'static str,
}

impl<'a> Lines<'a> {
    fn unsealed(text: &'a str, kind: &str, what: &'static str) -> Result<Self, RepairError> {
        let wrong = |why| RepairError::Text { what, why };
        let text = text.trim_end_matches('\n');
        let (body, last) = text.rsplit_once('\n').ok_or(wrong("is not whole"))?;
        if body.lines().next() != Some(kind) {
            return Err(wrong("is of another kind, or of another version"));
        }
        let lines = Self { body, what };
        let sum = last.strip_prefix("sum ").ok_or(wrong("is not whole"))?;
        if sum == sum_of(body) { Ok(lines) } else { Err(wrong("was changed since it was made")) }
    }

    fn wrong(&self, why: &'static str) -> RepairError {
        RepairError::Text { what: self.what, why }
    }

    /// The rest of each line that begins with a key.
    fn all(&self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let body = self.body;
        body.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    fn bytes(&self, key: &'static str) -> Result<Vec<u8>, RepairError> {
        self.all(key).last().and_then(unhex).ok_or(self.wrong("is not whole"))
    }
}

fn sealed(text: String) -> String {
    let body = text.trim_end_matches('\n');
    format!("{body}\nsum {}\n", sum_of(body))
}

fn sum_of(body: &str) -> String {
    hex(&digest_of(body.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let plain = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    plain.then(|| (0..text.len()).step_by(2).map(byte).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterKey, Key, Node, peers};

    /// A report as it would be on a host whose clock says `time`.
    fn at(report: &Report, time: u64) -> Report {
        let text = report.to_text();
        let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
        let lines = body.lines().map(|line| match line.starts_with("time ") {
            true => format!("time {time}"),
            false => line.to_owned(),
        });
        Report::parse(&sealed(lines.collect::<Vec<_>>().join("\n"))).unwrap()
    }

    /// The plan is made on a host whose clock is late by a year: all terms are absurd by it.
    #[test]
    fn a_plan_goes_by_the_latest_clock_so_a_late_one_makes_no_term_absurd() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new("a", Key::Cluster(ClusterKey::generate()));
        config.members = peers([("a", "127.0.0.1:7401")]);
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.store = Some(dir.path().join("a"));
        let today = term_floor().0 + (1 << 25);
        Node::found(&config, ClusterId::draw(), Term(today)).unwrap();
        let report = Report::read(&config).unwrap();
        assert!(
            Plan::new(std::slice::from_ref(&report), None, &[]).is_ok(),
            "both clocks are late: nobody can tell"
        );
        let report = at(&report, today);
        let refused = Plan::new(std::slice::from_ref(&report), None, &[]).unwrap_err().to_string();
        assert!(refused.contains("there is nothing to repair"), "{refused}");
        let refused = Plan::new(&[report], Some(Plan::lowest_floor()), &[]).unwrap_err().to_string();
        assert!(refused.contains("by the latest clock"), "{refused}");
    }

    #[test]
    fn a_report_without_a_time_of_day_is_refused() {
        let text = sealed(format!("{REPORT}\nmember a\ncontent 00"));
        assert!(matches!(Report::parse(&text), Err(RepairError::Text { .. })));
    }
}
