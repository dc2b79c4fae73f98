//! The kinds of faults, one for each round.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tenure_testkit::beats::Beat;
use tenure_testkit::namespaces::Cut;

use crate::now;
use crate::stage::{LEASE, SIZE, Stage, Whose, pid, send};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    KillRunner,
    StopRunner,
    StopChild,
    KillChild,
    KillSentinel,
    StopSentinel,
    CutOff,
    CutIn,
    CutOut,
    KillNode,
    /// A child that ignores TERM, cut off.
    Stubborn,
    /// A child that forks in every way, its runner killed.
    Forking,
    /// Runner and sentinel both stopped: what the documents name.
    StopBoth,
}

impl Kind {
    /// Those in which no two may work at once.
    pub(crate) const COVERED: [Self; 12] = [
        Self::KillRunner,
        Self::StopRunner,
        Self::StopChild,
        Self::KillChild,
        Self::KillSentinel,
        Self::StopSentinel,
        Self::CutOff,
        Self::CutIn,
        Self::CutOut,
        Self::KillNode,
        Self::Stubborn,
        Self::Forking,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillRunner => "kill -9 runner",
            Self::StopRunner => "SIGSTOP runner",
            Self::StopChild => "SIGSTOP child, then cut off",
            Self::KillChild => "kill child",
            Self::KillSentinel => "kill -9 sentinel",
            Self::StopSentinel => "SIGSTOP sentinel",
            Self::CutOff => "cut the runner off",
            Self::CutIn => "cut one way: runner hears nothing",
            Self::CutOut => "cut one way: runner is not heard",
            Self::KillNode => "kill -9 a node",
            Self::Stubborn => "child ignores TERM, cut off",
            Self::Forking => "child forks, kill -9 runner",
            Self::StopBoth => "SIGSTOP runner and sentinel (documented)",
        }
    }

    /// Whether it can be done to `etcdctl lock`, which has no sentinel.
    pub(crate) fn suits(self, whose: Whose) -> bool {
        whose == Whose::Tenure || !matches!(self, Self::KillSentinel | Self::StopSentinel | Self::StopBoth)
    }

    /// The mode that the child of this round must have, if not any.
    pub(crate) fn mode(self) -> Option<&'static str> {
        match self {
            Self::Stubborn => Some("stubborn"),
            Self::Forking => Some("forking"),
            Self::StopBoth => Some("plain"),
            _ => None,
        }
    }

    /// Whether another leadership must follow.
    fn deposes(self) -> bool {
        self != Self::KillNode
    }

    /// Does it to the leader, waits until somebody leads after it, and mends what was broken. Says
    /// how long nobody worked.
    pub(crate) fn carry_out(self, stage: &mut Stage, leader: &Beat, node: u8) -> Option<u64> {
        let (runner, at) = (stage.runner(leader.owner), now());
        let host = SIZE + 1 + u8::try_from(leader.owner).expect("a place");
        let sentinel = stage.sentinel(leader.owner);
        match self {
            Self::KillRunner | Self::Forking => send(runner, Signal::KILL),
            Self::StopRunner => send(runner, Signal::STOP),
            Self::StopChild => {
                send(pid(leader.pid), Signal::STOP);
                stage.net.cut(host, Cut::Both).expect("nft");
            }
            Self::KillChild => send(pid(leader.pid), Signal::KILL),
            Self::KillSentinel => sentinel.into_iter().for_each(|sentinel| send(sentinel, Signal::KILL)),
            Self::StopSentinel => sentinel.into_iter().for_each(|sentinel| send(sentinel, Signal::STOP)),
            Self::CutOff | Self::Stubborn => stage.net.cut(host, Cut::Both).expect("nft"),
            Self::CutIn => stage.net.cut(host, Cut::In).expect("nft"),
            Self::CutOut => stage.net.cut(host, Cut::Out).expect("nft"),
            Self::KillNode => stage.kill_node(node),
            Self::StopBoth => {
                sentinel.into_iter().for_each(|sentinel| send(sentinel, Signal::STOP));
                send(runner, Signal::STOP);
            }
        }
        if !self.deposes() {
            sleep(2 * LEASE);
            stage.start_node(node);
            stage.leader(0);
            return None;
        }
        let next = stage.leader(at);
        if stage.whose == Whose::Etcd || self == Self::StopBoth {
            sleep(Duration::from_millis(100)); // Long enough to be seen, if both work.
            stage.sweep(&next);
        }
        stage.net.heal(host);
        send(runner, Signal::CONT);
        sentinel.into_iter().for_each(|sentinel| send(sentinel, Signal::CONT));
        Some(next.first.saturating_sub(at))
    }
}
