//! The memory of the judge of a walk of Nerio, and its verdicts: the properties of the laboratory
//! by the same names, on ghosts that are small enough to be part of a state.

use tenure_proto::strong::InstanceId;

use crate::explore::{Broken, MOST_HOSTS, Rename, Sight, Stepping, Witness, mix};
use crate::property::Property;
use crate::protocols::strong::judge::{IN_TIME, KEPT, ORDERED, SUPPORT, TERMS, UNBROKEN, UNIQUENESS};

/// The most grantors.
pub(super) const GRANTORS: usize = 4;

/// The most lives of a process that are told apart.
const LIVES: usize = 4;

/// All witnesses: an `always` that was never put to the test says nothing.
pub(super) const WITNESSES: &[Witness] = &[
    witness("led", "a run completes"),
    witness("second-leader", "another process leads after the first"),
    witness("lapsed", "a lease runs out"),
    witness("refused", "a grantor refuses"),
    witness("freed", "a grant is given back before it has run out"),
    witness("renewed", "a leader renews"),
    witness("resigned", "a leader or a request is given up"),
    witness("restarted-grants", "a grantor that was restarted grants"),
    witness("restarted-leads", "a candidate that was restarted leads"),
];

const fn witness(name: &'static str, says: &'static str) -> Witness {
    Witness { name, says }
}

const LED: u32 = 1 << 0;
const SECOND: u32 = 1 << 1;
const LAPSED: u32 = 1 << 2;
const REFUSED: u32 = 1 << 3;
const FREED: u32 = 1 << 4;
const RENEWED: u32 = 1 << 5;
const RESIGNED: u32 = 1 << 6;
const GRANTS_AGAIN: u32 = 1 << 7;
const LEADS_AGAIN: u32 = 1 << 8;

/// A run, by process, life and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    node: u8,
    life: u8,
    seq: u8,
}

impl From<InstanceId> for Run {
    fn from(id: InstanceId) -> Self {
        let small = |number: u128| u8::try_from(number).unwrap_or(u8::MAX);
        let life = small(id.holder.incarnation.0);
        Self { node: small(u128::from(id.holder.node.0)), life, seq: small(u128::from(id.seq)) }
    }
}

impl Run {
    fn is_of(self, other: Self) -> bool {
        (self.node, self.life) == (other.node, other.life)
    }

    fn life_index(self) -> usize {
        usize::from(self.life).saturating_sub(1).min(LIVES - 1)
    }
}

/// The meaning of an event to the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A grantor promises a run its support, for so many quanta of its clock.
    Granted {
        /// The run.
        run: Run,
        /// How long.
        left: u8,
    },
    /// A grantor refuses.
    Refused,
    /// A grantor is free of a promise whose newest run this was.
    Freed(Run),
    /// A candidate counts on no run up to this one any more.
    GaveBack(Run),
    /// A run completes.
    Leads {
        /// A term goes on.
        renews: bool,
        /// The term.
        term: u8,
        /// The number of each grantor's stamp; zero if it did not grant.
        numbers: [u8; GRANTORS],
        /// By the reading of its clock, the lease has not run out yet.
        in_time: bool,
    },
    /// A leadership ends.
    Lost,
}

/// A promise that stands: a grant is bound to it whatever its process remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Promise {
    newest: Run,
    left: u8,
}

/// The memory of the judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ghost {
    promises: [Option<Promise>; GRANTORS],
    /// By process and life: up to which run it gave back. Of every life, or a late release of an
    /// earlier one would look wrong.
    given: [[u8; LIVES]; MOST_HOSTS],
    /// The last term, and who led in it.
    last: Option<(u8, u8)>,
    /// The stamps of the run that completed last.
    numbers: [u8; GRANTORS],
}

fn broken(property: Property, text: String) -> Option<Broken> {
    Some(Broken { property: property.name, text })
}

impl Ghost {
    fn gave_back(&self, run: Run) -> u8 {
        self.given.get(usize::from(run.node)).map_or(0, |lives| lives[run.life_index()])
    }

    /// Whether a promise still binds: one that its holder gave back does not, though the grantor
    /// may not know that yet.
    fn binds(&self, promise: Promise) -> bool {
        promise.left > 0 && self.gave_back(promise.newest) < promise.newest.seq
    }

    pub(super) fn take(&mut self, note: &Note, stepping: Stepping) -> (u32, Option<Broken>) {
        match *note {
            Note::Granted { run, left } => self.granted(run, left, stepping),
            Note::Refused => (REFUSED, None),
            Note::Freed(newest) => self.freed(newest, stepping.host),
            Note::GaveBack(run) => {
                if let Some(lives) = self.given.get_mut(usize::from(run.node)) {
                    let upto = &mut lives[run.life_index()];
                    *upto = (*upto).max(run.seq);
                }
                (RESIGNED, None)
            }
            Note::Leads { .. } => self.leads(note, stepping),
            Note::Lost => (0, None),
        }
    }

    fn granted(&mut self, run: Run, left: u8, stepping: Stepping) -> (u32, Option<Broken>) {
        let grantor = stepping.host;
        let seen = if stepping.life > 1 { GRANTS_AGAIN } else { 0 };
        let Some(place) = self.promises.get(grantor).copied() else { return (seen, None) };
        let held = place.filter(|held| held.newest.is_of(run));
        let newest = held.map_or(run, |held| Run { seq: held.newest.seq.max(run.seq), ..run });
        let most = held.map_or(left, |held| held.left.max(left));
        self.promises[grantor] = Some(Promise { newest, left: most });
        let Some(former) = place.filter(|former| self.binds(*former)) else { return (seen, None) };
        let wrong = if held.is_none() {
            let (to, other) = (former.newest.node, run.node);
            broken(KEPT, format!("n{grantor} is bound to n{to} and grants n{other}"))
        } else if left < former.left {
            broken(KEPT, format!("n{grantor} takes back a part of what it promised n{}", run.node))
        } else {
            None
        };
        (seen, wrong)
    }

    fn freed(&mut self, newest: Run, grantor: usize) -> (u32, Option<Broken>) {
        let Some(place) = self.promises.get_mut(grantor) else { return (FREED, None) };
        let Some(freed) = place.take_if(|held| held.newest.is_of(newest)) else { return (FREED, None) };
        let wrong = self.binds(freed).then(|| {
            let node = freed.newest.node;
            let text = format!("n{grantor} frees itself of what n{node} has not given back");
            Broken { property: KEPT.name, text }
        });
        (FREED, wrong)
    }

    fn leads(&mut self, note: &Note, stepping: Stepping) -> (u32, Option<Broken>) {
        let &Note::Leads { renews, term, numbers, in_time } = note else { return (0, None) };
        let host = stepping.host;
        let name = u8::try_from(host).unwrap_or(u8::MAX);
        let (former, before) = (self.last, self.numbers);
        self.numbers = numbers;
        let follows = former.is_some_and(|(_, leader)| leader != name);
        let mut seen = if renews { RENEWED } else { LED };
        seen |= if follows { SECOND } else { 0 };
        seen |= if stepping.life > 1 { LEADS_AGAIN } else { 0 };
        let old = former.map_or(0, |(term, _)| term);
        self.last = Some((if renews { old } else { term }, name));
        let turned = before.iter().zip(&numbers).any(|(old, new)| *old > 0 && *new > 0 && new <= old);
        let wrong = if !in_time {
            broken(IN_TIME, format!("a run of n{host} completes when its lease is over"))
        } else if !renews && term <= old {
            broken(TERMS, format!("n{host} leads in term {term} after term {old}"))
        } else if renews && !stepping.led {
            broken(UNBROKEN, format!("n{host} renews term {term}, which has lapsed"))
        } else if renews && term < old {
            broken(ORDERED, format!("n{host} renews term {term} after term {old} has begun"))
        } else if turned {
            broken(ORDERED, format!("grantors stamped {numbers:?} for n{host} after {before:?}"))
        } else {
            None
        };
        (seen, wrong)
    }

    pub(super) fn check(&self, sight: &Sight, members: usize) -> Option<Broken> {
        let mut leaders = (0..sight.hosts).filter(|host| sight.leads[*host]);
        let leader = leaders.next()?;
        if let Some(other) = leaders.next() {
            return broken(UNIQUENESS, format!("n{leader} and n{other} lead at once"));
        }
        let supports = |promise: &Promise| {
            let Run { node, life, .. } = promise.newest;
            promise.left > 0 && usize::from(node) == leader && life == sight.lives[leader]
        };
        let behind = self.promises.iter().flatten().filter(|promise| supports(promise)).count();
        if 2 * behind > members {
            return None;
        }
        broken(SUPPORT, format!("of {members} grantors {behind} support n{leader}, which leads"))
    }

    /// A clock shows so much more.
    pub(super) fn pass(&mut self, host: usize, quanta: u8) {
        if let Some(place) = self.promises.get_mut(host) {
            if let Some(promise) = place {
                promise.left = promise.left.saturating_sub(quanta);
            }
            place.take_if(|promise| promise.left == 0);
        }
    }

    pub(super) fn is_timed(&self, host: usize) -> bool {
        self.promises.get(host).is_some_and(Option::is_some)
    }

    pub(super) fn stamps(&self, tell: &mut dyn FnMut(usize, u8)) {
        let given = self.numbers.iter().enumerate().filter(|(_, number)| **number > 0);
        given.for_each(|(grantor, number)| tell(grantor, *number));
    }

    /// A sum over processes, so that renaming them changes nothing else.
    pub(super) fn hash(&self, rename: &Rename<'_>) -> u64 {
        let mut sum = 0u64;
        let mut add = |kind: u64, name: u64, what: u64| {
            sum = sum.wrapping_add(mix(mix(kind << 8 | name) ^ what));
        };
        for (grantor, promise) in self.promises.iter().enumerate() {
            let Some(Promise { newest: Run { node, life, seq }, left }) = *promise else { continue };
            let numbers = [life, seq, left].into_iter().fold(0, |all, n| all << 8 | u64::from(n));
            add(1, rename.name(grantor), rename.name(usize::from(node)) << 24 | numbers);
        }
        for (host, lives) in self.given.iter().enumerate() {
            let given = u64::from(u32::from_le_bytes(*lives));
            if given > 0 {
                add(2, rename.name(host), given);
            }
        }
        self.stamps(&mut |grantor, number| {
            let name = rename.name(grantor);
            add(3, name, rename.rank(name, number));
        });
        if let Some((term, leader)) = self.last {
            add(4, rename.name(usize::from(leader)), u64::from(term));
        }
        sum
    }
}

/// The lease of a leader runs out between two instants.
pub(super) fn lapses(before: &Sight, after: &Sight) -> u32 {
    let lapsed = (0..before.hosts).any(|host| before.leads[host] && !after.leads[host]);
    if lapsed { LAPSED } else { 0 }
}
