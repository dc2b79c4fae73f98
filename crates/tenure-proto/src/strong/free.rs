//! "Free now": a grantor tells a refused candidate when the grant in its way is given back.
//!
//! A refused candidate waits for as long as the refusal says (`candidate`). If the holder gives its
//! grants back sooner, a candidate that is a grantor itself mostly hears the release; one that is
//! not, or that did not support the holder, would wait in vain. So a grantor remembers the last few
//! whom it refused for its grant's sake, no longer than the grant can last, and tells them. A hint:
//! who hears it draws a new start, and asks like anybody else.

use crate::time::LocalSpan;
use crate::{Context, GroupId, LocalTime, NodeId};

use super::candidate::{Around, Candidate, Timer};
use super::message::{Message, Talk};
use super::rules::Rules;
use super::{Nerio, Process};

/// How many of those who were refused a grantor remembers, of each group.
pub(super) const MOST_REFUSED: usize = 8;

/// Whom a grantor refused, the newest last, and until when that matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Refused(Vec<(NodeId, LocalTime)>);

impl Refused {
    /// Somebody was refused because of a grant that lasts until `until`.
    pub(super) fn note(&mut self, node: NodeId, until: LocalTime, now: LocalTime) {
        self.0.retain(|(known, until)| *known != node && now < *until);
        if self.0.len() == MOST_REFUSED {
            self.0.remove(0);
        }
        self.0.push((node, until));
    }

    /// The grant is gone before its time, and nobody else has it: tells those who waited for it.
    /// This process needs no message to itself.
    pub(super) fn tell<R: Rules>(
        &mut self,
        group: GroupId,
        process: &Process<R>,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let now = cx.now();
        for (node, until) in self.0.drain(..) {
            if now < until && node != process.holder.node {
                cx.send(node, Message::Talk { group, talk: Talk::Free }, None);
            }
        }
    }
}

impl Candidate {
    /// A grantor that refused this process is free: no need to wait for the end that it told. A
    /// candidate that means to start within its window anyway does so: hints of many grantors must
    /// not put a start off.
    pub(super) fn on_free<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let window = around.process.config.settings().window.nominal();
        let soon = around.cx.now().after(window);
        let looks = [Timer::Start, Timer::Look].into_iter().filter_map(|timer| self.timers.at(timer)).min();
        if self.is_waiting() && looks.is_some_and(|at| at > soon) {
            self.await_turn(around.cx.now(), around);
        }
    }
}

impl Refused {
    /// Forgets all of them: a hint may be lost.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        for (_, until) in &mut self.0 {
            *until = until.shifted(by);
        }
    }
}
