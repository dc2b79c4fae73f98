//! Recovery of a grantor that lost its disk, under its own name.
//!
//! It has forgotten which process it supports and which terms it granted. The first loss is waited
//! out, as after any reboot. The terms are read from the others:
//!
//! ```text
//!   q  silent for (1+ρ)δ_max        then ask all others for their largest term
//!   r  answers, unless it recovers itself
//!   q  a quorum *without q* has answered: its largest term is the largest of theirs; q is a grantor again
//! ```
//!
//! **Why a quorum without q.** Let term t have completed on a quorum Q with q in it. The quorum R
//! that answered shares some r with Q, and r is not q: it granted t, or (by induction over
//! recoveries) has read as much, so q reads at least t.
//!
//! **Why after the silence.** A run that counts on a grant which q has forgotten may still complete
//! while q is silent, and its other grantors may grant only then. A member that reads before has
//! read too early: its quorum may grant t afterwards, and q, with two that never heard of t, elects
//! another leader in t ([`Rules::reads_from`]). After the silence no such run is left.
//!
//! **Why only where members are fixed.** The same loss takes the epoch, and what was wedged and
//! accepted, and those cannot be read from others: a promise is q's alone. A member that lost it
//! may promise the opposite, and two configurations may follow one epoch. It must never have a say
//! in that epoch again. Nor does a newer epoch that names it help: q cannot know whether it has
//! been in that one already, before the loss. So where members change, a member that lost its disk
//! stays mute and is replaced, under another name; where they never change there is no such
//! promise, and the term is all that was lost. A group whose every quorum contains q cannot bring q
//! back, nor can one in which too many recover at once.
//!
//! **The loss for good** is the order of incarnations: a new one is drawn at random, for no record
//! of the old one is left. Names of runs stay unique. But stamps of q before and after do not
//! compare, so neither do edicts by the stamps of quorums that share q: only (term, counter) orders
//! them.

use super::message::{Event, InstanceId, Message, Term};
use super::rules::Rules;
use super::term::Ceiling;
use super::{Nerio, Process};
use crate::explore::View;
use crate::quorum::NodeSet;
use crate::time::LocalSpan;
use crate::{Context, LocalTime, NodeId};

/// The questions of a recovering grantor, and the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryTalk {
    /// What is the largest term that you may have granted?
    Read {
        /// Names the question.
        id: InstanceId,
    },
    /// This.
    Known {
        /// The question.
        id: InstanceId,
        /// The largest term, of any group.
        top: Term,
    },
}

/// A recovery under way: until it is done, this grantor is silent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recovery {
    id: InstanceId,
    answered: NodeSet,
    top: Term,
    /// How often it was asked: the pause grows, up to eight times its length.
    said: u32,
    /// When to ask, or to ask again.
    pub(super) asks_at: LocalTime,
}

impl<R: Rules> Process<R> {
    /// Begins the silence, and the recovery that follows it.
    pub(super) fn begin_recovery(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let now = cx.now();
        self.silent_until = self.silence_from(now);
        let id = self.next_instance();
        let asks_at = self.rules().reads_from(now, self.silent_until);
        self.recovery = Some(Recovery { id, answered: NodeSet::EMPTY, top: Term(0), said: 0, asks_at });
        cx.publish(Event::Recovering);
    }

    /// Asks those who have not answered.
    fn read_terms(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let retry = self.config.settings().retry.nominal();
        let quorums = &self.membership.charter.body.quorums;
        let Some(recovery) = &mut self.recovery else { return };
        recovery.said += 1;
        recovery.asks_at = cx.now().after(retry.times(1 << (recovery.said / 4).min(3)));
        let silent = quorums.names(quorums.everyone().difference(recovery.answered));
        for member in silent.into_iter().filter(|member| *member != self.holder.node) {
            cx.send(member, Message::Recovery(RecoveryTalk::Read { id: recovery.id }), None);
        }
    }

    /// Counts an answer. Says what a quorum without this process knows, once it is one.
    fn count_known(&mut self, from: NodeId, id: InstanceId, top: Term) -> Option<Term> {
        let quorums = &self.membership.charter.body.quorums;
        let recovery = self.recovery.as_mut().filter(|recovery| recovery.id == id)?;
        let voice = self.config.rules().voice_of(quorums, from, recovery.answered);
        let position = voice.filter(|_| from != self.holder.node)?;
        recovery.answered.insert(position);
        recovery.top = recovery.top.max(top);
        quorums.is_quorum(recovery.answered).then_some(recovery.top)
    }

    /// A grantor again. From here on its disk has a ceiling, so that it remembers what it now
    /// knows.
    fn end_recovery(&mut self, top: Term, cx: &mut Context<'_, Nerio<R>>) {
        self.recovery = None;
        self.largest_term = self.largest_term.max(top);
        self.note_granted(top);
        self.ceiling = Ceiling::start(top, self.config.settings().block, cx);
        cx.publish(Event::Recovered { top });
    }
}

impl<R: Rules> Nerio<R> {
    /// Whether this grantor has lost its disk and does not know yet what it may grant.
    pub fn is_recovering(&self) -> bool {
        self.process.recovery.is_some()
    }

    pub(super) fn on_recovery_deadline(&mut self, now: LocalTime, cx: &mut Context<'_, Self>) {
        if self.process.recovery.as_ref().is_none_or(|recovery| now < recovery.asks_at) {
            return;
        }
        if self.process.rules().reads_after_amnesia() {
            self.with_process(|process| process.read_terms(cx));
        } else {
            self.recovered(Term(0), cx);
        }
    }

    pub(super) fn on_recovery_talk(&mut self, from: NodeId, talk: RecoveryTalk, cx: &mut Context<'_, Self>) {
        match talk {
            // A process that recovers itself knows nothing, and a process that is no member granted
            // nothing.
            RecoveryTalk::Read { id }
                if self.process.recovery.is_none() && self.process.position.is_some() =>
            {
                let top = self.top();
                cx.send(from, Message::Recovery(RecoveryTalk::Known { id, top }), None);
            }
            RecoveryTalk::Read { .. } => {}
            RecoveryTalk::Known { id, top } => {
                if let Some(top) = self.with_process(|process| process.count_known(from, id, top)) {
                    self.recovered(top, cx);
                }
            }
        }
    }

    fn recovered(&mut self, top: Term, cx: &mut Context<'_, Self>) {
        for group in self.groups.values_mut() {
            group.grantor.max_term = group.grantor.max_term.max(top);
        }
        self.with_process(|process| process.end_recovery(top, cx));
    }
}

impl Recovery {
    /// See [`Explore`](crate::explore::Explore). `said` counts repetitions.
    pub(super) fn view(&self, v: &mut View<'_>) {
        self.id.view(v);
        v.set(self.answered);
        v.num(self.top.0);
        v.deadline(self.asks_at);
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        self.asks_at = self.asks_at.shifted(by);
    }
}
