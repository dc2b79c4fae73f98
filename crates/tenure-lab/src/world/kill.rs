//! Killing a process inside a step: between two of its effects.
//!
//! A driver carries the effects of a step out one after the other, and its disk is a thread of its
//! own. So a process that is killed leaves any first part of a step's effects behind, and of the
//! records that its disk was given, any first part is durable: also a record of this very step,
//! though the effect after it was never carried out. A machine must be safe with each of these
//! outcomes. Most steps have few effects, so few schedules of whole steps show what goes wrong.

use tenure_proto::{Effect, Protocol};

/// Where a process is killed inside a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kill {
    /// How many effects of the step are carried out.
    pub effects: u32,
    /// How many of the records that the disk was given and had not written become durable all the
    /// same, the oldest first.
    pub durable: u32,
}

/// When a process is to be killed, and where in the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// In the next step, whatever it does: a script says so of each step.
    Now(Kill),
    /// In the next step of this kind.
    Next(Kill, Which),
    /// In the next step of this kind, at a place that these bits choose.
    Drawn(u64, Which),
}

/// In which kind of step a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// One that has effects.
    Any,
    /// One by which something is kept, on disk or in memory.
    Keeps,
    /// One that gives the disk a record.
    Writes,
    /// One that does both: a restart may find either without the other.
    Both,
}

impl Which {
    fn fits<P: Protocol>(self, effects: &[Effect<P>]) -> bool {
        let (writes, remembers) = (effects.iter().any(persists), effects.iter().any(remembers));
        match self {
            Self::Any => !effects.is_empty(),
            Self::Keeps => writes || remembers,
            Self::Writes => writes,
            Self::Both => writes && remembers,
        }
    }
}

fn persists<P: Protocol>(effect: &Effect<P>) -> bool {
    matches!(effect, Effect::Persist { .. })
}

fn remembers<P: Protocol>(effect: &Effect<P>) -> bool {
    matches!(effect, Effect::Remember(_))
}

impl Interrupt {
    /// Where a step with these effects is interrupted, if it is. `queued` records wait for the disk
    /// already.
    pub(super) fn place<P: Protocol>(self, effects: &[Effect<P>], queued: usize) -> Option<Kill> {
        match self {
            Self::Now(kill) => Some(kill),
            Self::Next(kill, which) => which.fits(effects).then_some(kill),
            Self::Drawn(bits, which) => which.fits(effects).then(|| drawn(bits, effects, queued)),
        }
    }
}

/// A place in a step: three times of four right after something was kept, else anywhere. Of the
/// records half the time all are durable.
fn drawn<P: Protocol>(bits: u64, effects: &[Effect<P>], queued: usize) -> Kill {
    let draw = |shift: u32, bound: usize| usize::try_from((bits >> shift) & 0xFFFF).unwrap_or(0) % bound;
    let keeps = |upto: &usize| persists(&effects[upto - 1]) || remembers(&effects[upto - 1]);
    let kept: Vec<usize> = (1..=effects.len()).filter(keeps).collect();
    let anywhere = kept.is_empty() || draw(0, 4) == 0;
    let upto = if anywhere { draw(16, effects.len() + 1) } else { kept[draw(16, kept.len())] };
    let given = queued + effects[..upto].iter().filter(|effect| persists(effect)).count();
    let durable = if draw(32, 2) == 0 { given } else { draw(48, given + 1) };
    Kill { effects: count(upto), durable: count(durable) }
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}
