//! Forged messages: processes speak in each other's names, as a seed draws it.
//!
//! From streams of their own: a seed that forges nothing keeps its run. Nothing is forged after the
//! healing.

use tenure_proto::NodeId;

use super::faults::Fault;
use super::plan::Setup;
use super::{Pending, Simulation};
use crate::random::Random;
use crate::subject::Subject;
use crate::world::{FlightId, Guise, RealTime, node_id};

/// How many messages are said again by others.
#[derive(Clone, Debug)]
pub(super) struct Forgeries {
    random: Random,
    percent: u64,
}

/// A message that a process will say in another's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forged {
    pub(super) flight: FlightId,
    pub(super) by: NodeId,
    pub(super) guise: Guise,
}

impl Forgeries {
    /// None at all, as in plays, which say what is forged.
    pub(super) fn none() -> Self {
        Self { random: Random::stream(0, "forgeries"), percent: 0 }
    }

    /// In one run of four, few or many.
    pub(super) fn draw(setup: &Setup, seed: u64) -> Self {
        let mut random = Random::stream(seed, "forgeries");
        let percent = random.pick(&[0, 0, 0, 0, 0, 0, 1, 10]);
        Self { random, percent: if setup.faults.has(Fault::Forgery) { percent } else { 0 } }
    }
}

impl<S: Subject> Simulation<'_, S> {
    /// Perhaps another process says in the sender's name what has just left, within a longest
    /// lease. Says whether it will try.
    pub(super) fn draw_forgery(&mut self, now: RealTime, flight: FlightId) -> bool {
        let (hosts, longest) = (self.desks.len(), self.plan.rhythm.longest);
        let Forgeries { random, percent } = &mut self.plan.forgeries;
        if *percent == 0 || !random.percent(*percent) {
            return false;
        }
        let (by, guise) = (node_id(random.index(hosts)), random.pick(&Guise::ALL));
        let at = now.after(random.below(longest) / random.pick(&[1, 10]));
        self.enter(at, Pending::Forge(Forged { flight, by, guise }));
        true
    }
}
