//! Verification: another process asks whether this one leads, and for how long that is certain.
//!
//! ```text
//!   q  Start_q := C_q   do you lead? ──▶ p   H := C_p;  δ := what is left of the lease, in real time at least
//!   q                   ◀── certain(δ)       p will give nothing back for δ
//!   q  p is supported by a quorum while C_q < Start_q + (1-ρ)δ
//! ```
//!
//! p sampled after q did, so what is left from p's sample is left for longer from q's start. The
//! paper prints both signs the other way round (erratum E3), and forgets that p may release right
//! after its answer (erratum E4): an answer is a **pledge**. It delays the release, not the end of
//! E: p may stop leading at once, but nobody else can begin.

use crate::explore::View;
use crate::time::{LocalSpan, Pledge, Span};
use crate::{LocalTime, NodeId};

use super::candidate::{Around, Candidate, Timer};
use super::message::{Event, Holder, InstanceId, Talk, Term};
use super::rules::Rules;

/// Questions asked and pledges given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Verifying {
    /// The newest question asked here.
    asked: Option<Question>,
    /// Until when nothing is given back.
    pledged: Option<LocalTime>,
    /// The run to give back then.
    owed: Option<InstanceId>,
}

/// Do you lead?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    id: InstanceId,
    /// When it left, on this clock.
    start: LocalTime,
    /// The process that was asked.
    of: NodeId,
}

/// An answer: the contents of a [`Talk::Certain`].
pub(super) struct Certainty {
    /// The question.
    pub(super) id: InstanceId,
    /// The process that leads.
    pub(super) leader: Holder,
    pub(super) term: Term,
    pub(super) pledge: Pledge,
}

impl Verifying {
    /// Until when the last pledge binds, if one was given.
    pub(super) fn pledged(&self) -> Option<LocalTime> {
        self.pledged
    }

    /// Whether anything is to be given back later.
    pub(super) fn owes(&self) -> bool {
        self.owed.is_some()
    }

    /// Until when a pledge stands that binds at `now`.
    pub(super) fn pledged_at(&self, now: LocalTime) -> Option<LocalTime> {
        self.pledged.filter(|until| now < *until)
    }

    /// The clock was disturbed. A question asked before has a start that means nothing now; and a
    /// pledge given before may look over and not be, so it is kept until `silent`, when all that
    /// was promised before is over.
    pub(super) fn on_disturbed(&mut self, silent: LocalTime) {
        self.asked = None;
        self.pledged = self.pledged.map(|until| until.max(silent));
    }

    /// A release that is sent now covers the one that was owed.
    pub(super) fn release_is_sent(&mut self, upto: InstanceId) {
        self.owed = self.owed.filter(|owed| *owed > upto);
    }
}

impl Candidate {
    /// Asks `leader`. The start is sampled before the question leaves.
    pub(super) fn verify<R: Rules>(&mut self, leader: NodeId, wanted: Span, around: &mut Around<'_, '_, R>) {
        let id = around.process.next_instance();
        self.verifying.asked = Some(Question { id, start: around.cx.now(), of: leader });
        around.say(leader, Talk::Verify { id, wanted });
    }

    /// Answers, if this process leads, and keeps its grants for as long as it says.
    pub(super) fn on_verify<R: Rules>(
        &mut self,
        from: NodeId,
        id: InstanceId,
        wanted: Span,
        around: &mut Around<'_, '_, R>,
    ) {
        let now = around.cx.now();
        let Some(lead) = self.lead.filter(|lead| now < lead.until) else { return };
        let Some(pledge) = around.process.charter().body.clocks.pledge(now, lead.until, wanted) else {
            return;
        };
        let until = around.process.rules().pledged_until(pledge);
        self.verifying.pledged = self.verifying.pledged.max(Some(until));
        let (group, leader) = (around.group, around.process.holder);
        around.cx.publish(Event::Pledged { group, leader, until: pledge.until });
        around.say(from, Talk::Certain { id, leader, term: lead.term, pledge });
    }

    /// Takes an answer to the newest question, and to no other: the start must be this clock's, of
    /// this life. See [`Rules::answers_question`].
    pub(super) fn on_certain<R: Rules>(
        &mut self,
        from: NodeId,
        Certainty { id, leader, term, pledge }: Certainty,
        around: &mut Around<'_, '_, R>,
    ) {
        let rules = around.process.rules();
        let answers = |asked: &Question| rules.answers_question((asked.id, asked.of), (id, from));
        let Some(Question { start, .. }) = self.verifying.asked.take_if(|asked| answers(asked)) else {
            return;
        };
        let until = rules.certain_until(around.process.charter().body.clocks, start, pledge);
        if around.cx.now() < until {
            around.cx.publish(Event::Verified { group: around.group, leader, term, until });
        }
    }

    /// Gives back later what a pledge forbids to give back now.
    pub(super) fn owe_release(&mut self, upto: InstanceId, until: LocalTime) {
        self.verifying.owed = Some(upto);
        self.timers.set(Timer::Release, until);
    }

    /// The pledge is over. Runs begun since then are not given back: the release names the newest
    /// that it covers.
    pub(super) fn pay_release<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        match (self.verifying.pledged_at(around.cx.now()), self.verifying.owed) {
            (Some(until), Some(_)) => self.timers.set(Timer::Release, until),
            (None, Some(upto)) => self.send_release(upto, around),
            (_, None) => {}
        }
    }
}

impl Verifying {
    /// See [`Explore`](crate::explore::Explore). An answer to a question is worth nothing when the
    /// longest lease that began with it is over.
    pub(super) fn view(&self, longest_lease: Span, v: &mut View<'_>) {
        v.flag(self.asked.is_some());
        if let Some(asked) = &self.asked {
            asked.id.view(v);
            v.age(asked.start, longest_lease.nominal().times(2));
            v.node(asked.of);
        }
        v.deadline_opt(self.pledged);
        v.num(self.owed.map_or(0, |owed| owed.seq));
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        if let Some(asked) = &mut self.asked {
            asked.start = asked.start.shifted(by);
        }
        self.pledged = self.pledged.map(|until| until.shifted(by));
    }
}
