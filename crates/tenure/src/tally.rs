//! The counters of a node: plain numbers that only rise.

use tenure_proto::strong::{Event, Kind, Refusal};

/// Counts since the node started. A daemon exports them; nothing is decided by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Terms that this process won.
    pub terms_won: u64,
    /// Terms that it lost, for whatever reason.
    pub terms_lost: u64,
    /// Renewals of its leases.
    pub renewals: u64,
    /// Runs of its own that failed.
    pub runs_failed: u64,
    /// Grants that it gave, renewals among them.
    pub granted: u64,
    /// Requests that it refused.
    pub refused: u64,
    /// Of these, requests for terms that are too high.
    pub refused_too_high: u64,
    /// Epochs that it has gone by.
    pub epochs: u64,
    /// How often its clock went back, or was found beyond the bound.
    pub clock_faults: u64,
    /// How often the clock of a peer was found beyond the bound.
    pub peer_clock_faults: u64,
    /// Messages that their sender was not entitled to.
    pub out_of_scope: u64,
    /// Requests and watches that were refused because their key already has as many as it may.
    pub over_limit: u64,
    /// Groups that were forgotten because nobody had to do with them.
    pub forgotten: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, event: &Event) {
        if let Event::Refused { refusal: Refusal::TooHigh { .. } | Refusal::Implausible, .. } = event {
            self.refused_too_high += 1;
        }
        let counter = match event {
            Event::Leads { kind: Kind::Acquire, .. } => &mut self.terms_won,
            Event::Leads { kind: Kind::Renew, .. } => &mut self.renewals,
            Event::Lost { .. } => &mut self.terms_lost,
            Event::Failed { .. } => &mut self.runs_failed,
            Event::Granted { .. } => &mut self.granted,
            Event::Refused { .. } => &mut self.refused,
            Event::Adopted { .. } => &mut self.epochs,
            Event::ClockWentBack { .. } => &mut self.clock_faults,
            _ => return,
        };
        *counter += 1;
    }
}
