//! The scopes in which Nerio is walked.

use tenure_proto::strong::{Command, Rules, Term};
use tenure_proto::time::Span;

use crate::explore::{Budget, Clocks, Grain, Scope, Wish};
use crate::protocols::strong::subject::{Model, Strong};
use crate::subject::{Constants, Subject};

use super::GROUP;

/// Retransmissions are duplicates in a walk: no process makes them by itself.
const NEVER: u64 = 1_000_000_000_000;

/// A lease of so many units of the coarse grain, a little less, so that its two ends fall on steps.
fn coarse(units: u64) -> u64 {
    units * (Grain::COARSE.reading - 3_000)
}

/// A lease of so many quanta of the fine grain.
fn fine(quanta: u64) -> u64 {
    quanta * Grain::FINE.quantum()
}

/// All scopes, the smallest first. Clocks with bounded skew, and members that end their epochs,
/// are not walked yet.
pub fn scopes<R: Rules>(subject: &Strong<R>) -> Vec<Scope<Command>> {
    if subject.model != Model::Drift {
        return Vec::new();
    }
    let three = [coarse(3)];
    let base = |name, says, leases: &[u64]| coarse_scope(subject, name, says, leases);
    let worst = |scope: Scope<Command>| Scope { clocks: Clocks::Worst, ..scope };
    let two = |name, says| worst(base(name, says, &three)).with(Budget::Acquisitions, 2);
    let led: &[&str] = &["led", "lapsed"];
    let twice: &[&str] = &["led", "lapsed", "second-leader", "refused"];
    vec![
        see(base("one", "one acquisition", &three).with(Budget::Acquisitions, 1), led),
        see(
            worst(base("renewal", "an acquisition and a renewal, of two lengths", &[coarse(3), coarse(6)]))
                .with(Budget::Acquisitions, 1)
                .with(Budget::Renewals, 1),
            &["led", "lapsed", "renewed"],
        ),
        see(fine_scope(subject, "ticks", "one acquisition, by clocks that advance in ticks"), led),
        see(two("two", "two acquisitions"), twice),
        see(
            two("release", "two acquisitions and a release").with(Budget::Releases, 1),
            &["led", "lapsed", "second-leader", "refused", "freed", "resigned"],
        ),
        see(base("two-free", "two acquisitions", &three).with(Budget::Acquisitions, 2), twice),
        see(
            hinted(two("restart", "two acquisitions and a restart").with(Budget::Restarts, 1), 24),
            &["led", "lapsed", "second-leader", "refused", "restarted-grants"],
        ),
        see(two("cut", "two acquisitions and a kill between two effects").with(Budget::Cuts, 1), twice),
        see(
            hinted(two("reboot", "two acquisitions and a reboot").with(Budget::Reboots, 1), 24),
            &["led", "lapsed", "second-leader", "refused", "restarted-grants"],
        ),
    ]
}

fn see(scope: Scope<Command>, witnesses: &'static [&'static str]) -> Scope<Command> {
    Scope { witnesses, ..scope }
}

/// The last candidate knows of a term this high: above the durable ceiling of grantors that are
/// restarted, or none of them would grant.
fn hinted(scope: Scope<Command>, above: u64) -> Scope<Command> {
    let last = scope.hosts - 1;
    Scope { before: vec![(last, Command::Raise { group: GROUP, above: Term(above) })], ..scope }
}

/// Three members and two candidates that are none, by clocks whose readings are exact.
fn coarse_scope<R: Rules>(
    subject: &Strong<R>,
    name: &'static str,
    says: &'static str,
    leases: &[u64],
) -> Scope<Command> {
    let longest = leases.iter().copied().max().unwrap_or(0);
    let constants = Constants::new(subject.keys())
        .with("drift", 333_334)
        .with("tick", 1)
        .with("lease", leases[0])
        .with("longest-lease", longest);
    let scope = Scope {
        name,
        says,
        members: 3,
        hosts: 5,
        constants: common(constants).with("outsiders", 2),
        grain: Grain::COARSE,
        clocks: Clocks::Free,
        budget: [0; Budget::COUNT],
        wishes: Vec::new(),
        before: Vec::new(),
        symmetry: true,
        late_disks: false,
        keeps_all: false,
        witnesses: &[],
    };
    hinted(Scope { wishes: wishes(&scope, leases), ..scope }, 1)
}

/// Two candidates, one after the other, by clocks whose readings lag behind.
fn fine_scope<R: Rules>(subject: &Strong<R>, name: &'static str, says: &'static str) -> Scope<Command> {
    let leases = [fine(16), fine(18)];
    let scope = coarse_scope(subject, name, says, &leases);
    let constants = scope.constants.clone().with("drift", 500_000).with("tick", Grain::FINE.reading);
    let scope = Scope { constants, grain: Grain::FINE, clocks: Clocks::Worst, ..scope };
    scope.with(Budget::Acquisitions, 1)
}

/// No process asks by itself, and nothing is said again.
fn common(constants: Constants) -> Constants {
    constants.with("window", 1).with("retry", NEVER).with("block", 8).with("groups", 1)
}

/// Each candidate may ask for each length at any instant, as a leader and else; and give up.
fn wishes(scope: &Scope<Command>, leases: &[u64]) -> Vec<Wish<Command>> {
    let mut wishes = Vec::new();
    for host in scope.members..scope.hosts {
        for lease in leases {
            let attempt = Command::Attempt { group: GROUP, lease: Span::from_nanos(*lease) };
            for (leads, budget) in [(false, Budget::Acquisitions), (true, Budget::Renewals)] {
                wishes.push(Wish { host, leads: Some(leads), command: attempt.clone(), budget });
            }
        }
        let command = Command::Resign(GROUP);
        wishes.push(Wish { host, leads: None, command, budget: Budget::Releases });
    }
    wishes
}
