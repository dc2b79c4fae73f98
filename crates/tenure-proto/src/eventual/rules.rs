//! The rules of Omega that the figures of the paper get wrong, one function each.
//!
//! The machines ask these functions and decide nothing of the kind by themselves. [`Sound`] takes
//! them as they stand here. The laboratory has a type of its own that answers as the printed
//! figures do, one line at a time, to show the consequences. The numbers A1 to C8 are those of
//! `docs/explanation/errata.md`.

use crate::Data;
use crate::time::{Drift, LocalSpan};

use super::{Epoch, State};
use crate::NodeId;

/// The rules of the three elections.
pub trait Rules: Data {
    /// Whether the invariants that follow from these rules are asserted. A mutant is judged by
    /// properties, not by a stop.
    fn asserts(&self) -> bool {
        true
    }

    /// A1. Nobody leads only if no epoch is alive: the figure takes the least of all epochs *and*
    /// (0, nobody), which is always that.
    fn least(&self, alive: &[Epoch]) -> Epoch {
        alive.iter().min().copied().unwrap_or(Epoch::NOBODY)
    }

    /// A2. A process counts among those that acknowledge its own state: f others are all that is
    /// promised.
    fn counts_itself(&self) -> bool {
        true
    }

    /// A3, C3. A state is new when it is sent. Made new when a round succeeds, it is seen at its
    /// own process before it is anywhere else, and the next read finds nothing newer.
    fn is_fresh_at_send(&self) -> bool {
        true
    }

    /// A4. The state assumed of a process never heard of is older than anything that it can say.
    fn unheard(&self, _process: NodeId) -> State {
        State::NOTHING
    }

    /// A5. Every refresh is acknowledged: an Ack says that the state here is at least as new, which
    /// is true of an old refresh as well.
    fn acknowledges(&self, _known: State, _told: State) -> bool {
        true
    }

    /// A6. A round counts the processes that acknowledge, not acknowledgements.
    fn counts_senders(&self) -> bool {
        true
    }

    /// A7. A read that is complete is closed: a later answer would be seen before the time from
    /// which the next read is judged.
    fn closes_reads(&self) -> bool {
        true
    }

    /// A8. The time between the end of a read and the beginning of the next: a live process has
    /// written a newer state by then.
    fn gap(&self, needed: LocalSpan) -> LocalSpan {
        needed
    }

    /// A10. A process that gives its epoch up does not lead by it until the next read is complete.
    fn stops_leading(&self) -> bool {
        true
    }

    /// C1. A process that has an epoch stops asking for one.
    fn stops_asking(&self) -> bool {
        true
    }

    /// C2. Once enough answers to a question for an epoch have come, later ones change nothing.
    fn closes_attempts(&self) -> bool {
        true
    }

    /// C.1. An answer to a question for an epoch counts for T, as an Ack does: the epoch that was
    /// highest when it left may long not be any more.
    fn attempts_end(&self) -> bool {
        true
    }

    /// C4. A leader is made by the outcome of the read that was just completed, not of the one
    /// before.
    fn judges_this_read(&self) -> bool {
        true
    }

    /// C5. No read makes a leader step down: an old message about an epoch that is long gone may
    /// surface in any of them.
    fn outlives_reads(&self) -> bool {
        true
    }

    /// C6. From taking an epoch to the beginning of the read that makes a leader: all lower epochs
    /// are visible or gone by then.
    fn wait(&self, needed: LocalSpan) -> LocalSpan {
        needed
    }

    /// C7. A process that got no epoch so often, one question right after the other, asks once a
    /// period from then on (back-off): without end it would only be a burden on those whom it does
    /// reach.
    fn rests_after(&self) -> u32 {
        3
    }

    /// C8. Only a process that stands for an epoch can lead: an epoch that was given up is still
    /// the lowest in the last read.
    fn needs_epoch(&self) -> bool {
        true
    }

    /// D3. Every wait is lengthened by the most that a clock may have shown wrongly.
    fn allows_for(&self, drift: Drift) -> Drift {
        drift
    }

    /// D3. Leadership ends with the time for which the last successful round vouches, whether or
    /// not a timer has said so yet.
    fn ends_by_the_clock(&self) -> bool {
        true
    }

    /// D3. A process that sends a refresh too late gives its epoch up first: readers may have taken
    /// it for dead, and another leads.
    fn gives_up_when_late(&self) -> bool {
        true
    }

    /// D5. A process that has lost the states it acknowledged answers nothing before it has read
    /// them anew.
    fn keeps_silent(&self) -> bool {
        true
    }

    /// D5. An Ack leaves when the state that it acknowledges is kept, whichever message brought
    /// that. The first copy of a repeated message may still be on its way to the disk: acknowledged
    /// for the second one and lost with the machine, the state is missing where the mark says that
    /// nothing is.
    fn acknowledges_what_is_kept(&self) -> bool {
        true
    }

    /// D5. States of others that a read shows are written down like those that come from the others
    /// themselves. Otherwise, when they do come, they are no news, and are acknowledged although
    /// nothing keeps them; and the last process that remembers another's epoch may be a reader.
    fn keeps_what_it_reads(&self) -> bool {
        true
    }
}

/// The rules of every running node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Rules for Sound {}
