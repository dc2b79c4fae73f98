//! Omega as the election of a log: the stable one, among the log's own members, over the log's own
//! streams.
//!
//! It needs no node, no lease and no timely link: in the end one leads that reaches some f others
//! in time, not always the same ones. The log needs only a hint of it; two processes that lead at
//! once cost rounds. So nothing of it is kept over a restart, although within the election a
//! process that forgot what it acknowledged could let two lead: each life begins like a founding,
//! asks n-f members for their highest epoch, and stands above all of them.

use std::sync::Arc;
use std::time::Duration;

use tenure_proto::eventual::{Access, Command, Config, Event, Message, Settings, Sound, Stable};
use tenure_proto::quorum::Quorums;
use tenure_proto::time::{Drift, LocalSpan, Span};
use tenure_proto::{Boot, BootKind, Incarnation, Input, NodeId};
use tokio::sync::{mpsc, watch};

use super::config::Checked;
use super::election::Opinion;
use super::error::OpenError;
use super::link::{Links, Talk};
use crate::clock::{Clock, nanos};
use crate::driver::{Hosted, Outcome};

/// Clocks that are worse than this make leaders change for nothing, and do no other harm.
const DRIFT: Option<Drift> = Drift::from_ppm(10_000);

/// The settings of the election. `round` is δ; a process may be late by as much, and tells the
/// others of itself every third.
pub(super) fn settings(config: &Checked, round: Duration) -> Result<Config, OpenError> {
    let refuse = |why: String| OpenError::Config { key: "election", why };
    let ids = config.machine.settings().members.clone();
    let quorums = Quorums::majority(ids).map_err(|error| refuse(error.to_string()))?;
    let access = Access::counted(quorums, config.faults());
    let round = Span::from_nanos(nanos(round));
    let settings = Settings {
        access: access.ok_or_else(|| refuse("too many faults for so few members".into()))?,
        period: Span::from_nanos(round.as_nanos().saturating_mul(3)),
        round,
        drift: DRIFT.ok_or_else(|| refuse("no such drift".into()))?,
        tick: LocalSpan::from_nanos(1),
        step: round,
        sticky: false,
        durable: false,
        learns: None,
        rules: Sound,
    };
    settings.validate().map_err(|error| refuse(error.to_string()))
}

/// One life of the election.
pub(super) struct Omega {
    pub(super) config: Config,
    pub(super) me: NodeId,
    pub(super) life: Incarnation,
    pub(super) clock: Clock,
    pub(super) links: Arc<Links>,
    pub(super) heard: mpsc::UnboundedReceiver<(NodeId, Message)>,
}

impl Omega {
    /// Takes part until it is dropped. While `may_lead` is false it stands behind the others.
    pub(super) async fn run(mut self, mut may_lead: watch::Receiver<bool>, tell: &impl Fn(Opinion)) {
        let boot = Boot { incarnation: self.life, durable: Vec::new(), kind: BootKind::Founding };
        let (mut machine, mut outcome) = Hosted::start(&self.config, self.me, boot, self.clock.read());
        loop {
            let input = if self.carry_out(outcome, *may_lead.borrow(), tell) {
                Input::Command(Command::Abdicate)
            } else {
                let Some(input) = self.next(&machine, &mut may_lead).await else { return };
                input
            };
            outcome = machine.step(input, self.clock.read());
        }
    }

    /// A message, a deadline, or that this process should not lead.
    async fn next(
        &mut self,
        machine: &Hosted<Stable>,
        may_lead: &mut watch::Receiver<bool>,
    ) -> Option<Input<Stable>> {
        loop {
            let nap = machine.next_deadline().map_or(self.clock.longest_nap(), |at| {
                Duration::from_nanos(at.remaining(self.clock.read()).as_nanos()).min(self.clock.longest_nap())
            });
            tokio::select! {
                heard = self.heard.recv() => {
                    let (from, message) = heard?;
                    return Some(Input::Message { from, received: self.clock.read(), message });
                }
                () = tokio::time::sleep(nap) => {
                    if machine.next_deadline().is_some_and(|at| self.clock.read() >= at) {
                        return Some(Input::Deadline);
                    }
                }
                changed = may_lead.changed() => {
                    changed.ok()?;
                    if !*may_lead.borrow_and_update() {
                        return Some(Input::Command(Command::Abdicate));
                    }
                }
            }
        }
    }

    /// Says and tells what came of a step. Returns whether this process is to give up its epoch:
    /// it seems to lead, and should not.
    fn carry_out(&self, outcome: Vec<Outcome<Stable>>, may_lead: bool, tell: &impl Fn(Opinion)) -> bool {
        let mut abdicates = false;
        for one in outcome {
            match one {
                Outcome::Say(to, message) => self.links.send(to, Talk::Election(message)),
                Outcome::Show(Event::Hint(hint)) if hint.leader == Some(self.me) && !may_lead => {
                    abdicates = true;
                }
                Outcome::Show(Event::Hint(hint)) => {
                    tell(Opinion::Seen { leader: hint.leader, epoch: hint.epoch.serial });
                }
                Outcome::Show(_) => {}
            }
        }
        abdicates
    }
}
