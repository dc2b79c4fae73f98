//! Finding the leader (section 10.4): a process that wants something of the leader may ask any
//! process, member or not.
//!
//! ```text
//!   a  ── seek ──▶ b   b leads:            ◀── here, term t
//!                      b does not:         as a has chosen
//!                        redirect          ◀── there: the holder of b's unexpired grant
//!                        campaign, buffer  the same, or b waits until it leads or supports another, to a deadline
//!                        refuse            ◀── nowhere
//! ```
//!
//! *Here* is said by the leader itself: it led at some instant between the question and the answer.
//! *There* is a hint and no more: a grantor may support a candidate that never leads. So a hint is
//! followed by asking the one it names, as often as the asker's hops allow. The asker does not
//! forget a term that a leader told it: terms rise in the order in which leaders are elected, over
//! epochs too (T5). So a hint to a smaller term is outdated, and is not followed. Only *here*
//! counts for that: the larger term of a candidate that was refused is no leadership.
//!
//! Nobody keeps more questions than it has room for. Nothing here touches who leads: a lost, late,
//! repeated or wrong answer costs time.

use crate::time::{LocalSpan, Span};
use crate::{LocalTime, NodeId};

use super::candidate::{Around, Candidate, Timer};
use super::message::{Event, Holder, InstanceId, Talk, Term};
use super::rules::Rules;

/// How many questions of its own a process keeps in the air for one group.
pub const MOST_ASKED: usize = 8;

/// How many questions of others wait at one process for one group.
pub const MOST_WAITING: usize = 16;

/// How many times the retry interval an answer may take before the asker gives up.
const PATIENCE: u32 = 8;

/// The pause between two times that a question is put grows to eight times its length at most.
const MOST_DOUBLINGS: u32 = 3;

/// The way in which a process that does not lead treats a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Tells which process it supports, if it supports any.
    Redirect,
    /// The same; if it supports nobody, try to become leader, and answer when it leads or supports
    /// another. Only a process whose user has offered that tries; another waits as in `Buffer`:
    /// nobody makes a witness lead.
    Campaign {
        /// The longest time for which the question may wait.
        wait: Span,
    },
    /// The same, without trying.
    Buffer {
        /// The longest time for which the question may wait.
        wait: Span,
    },
    /// Refuses to answer.
    Refuse,
}

impl How {
    fn wait(self) -> LocalSpan {
        match self {
            Self::Campaign { wait } | Self::Buffer { wait } => wait.nominal(),
            Self::Redirect | Self::Refuse => LocalSpan::ZERO,
        }
    }
}

/// A hint where the leader may be, from a grantor that does not lead. Never part of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The process that the grantor supports.
    pub holder: NodeId,
    /// The term of that grant.
    pub term: Term,
    /// The time that is left of it, on the grantor's clock.
    pub remaining: LocalSpan,
}

/// Why the leader was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// The process that was asked does not lead, and was to say no more.
    NotLeader,
    /// The process that was asked supports nobody.
    Unknown,
    /// Too many questions are kept already.
    Full,
    /// The question waited for as long as it might.
    TimedOut,
    /// The answer is about an older term than one that a leader has told of.
    Outdated,
    /// There is a hint, but no hop is left to follow it.
    NoHopsLeft,
    /// The process that was asked did not answer.
    Unanswered,
}

/// Questions under way, asked here and by others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Finding {
    asked: Vec<Question>,
    waiting: Vec<Waiting>,
    /// The largest term that its leader itself has told.
    led: Term,
    /// This process's user lets it campaign for others.
    willing: bool,
    /// This process campaigns only for those who wait, and while it leads.
    obliging: bool,
}

/// A question of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    id: InstanceId,
    /// The process that is asked now.
    at: NodeId,
    how: How,
    /// How many hints may still be followed.
    left: u8,
    /// How many were.
    taken: u8,
    /// How often this hop was put: the pause doubles.
    said: u32,
    again: LocalTime,
    until: LocalTime,
}

/// A question of another process, or of this one to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    asker: NodeId,
    id: InstanceId,
    hops: u8,
    until: LocalTime,
}

impl Finding {
    /// Whether nobody asks or waits here, and nothing is offered.
    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.waiting.is_empty() && !self.willing && !self.obliging
    }

    /// The user lets this process campaign when somebody asks for a leader, or no more.
    pub(super) fn offer(&mut self, willing: bool) {
        self.willing = willing;
    }

    /// The user itself says whether this process campaigns: from here on it is not for others'
    /// sake.
    pub(super) fn oblige_no_more(&mut self) {
        self.obliging = false;
    }

    /// Whether anybody waits here for an answer.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn next(&self) -> Option<LocalTime> {
        let asked = self.asked.iter().map(|question| question.again.min(question.until));
        asked.chain(self.waiting.iter().map(|waiting| waiting.until)).min()
    }

    /// Takes out the question that an answer is for: to the newest hop of it, from the one who was
    /// asked.
    fn answered(&mut self, from: NodeId, id: InstanceId, hops: u8) -> Option<Question> {
        let right = |q: &Question| (q.at, q.id, q.left) == (from, id, hops);
        let place = self.asked.iter().position(right)?;
        Some(self.asked.remove(place))
    }
}

impl Candidate {
    /// Asks `ask` where the leader is, and follows up to `hops` hints.
    pub(super) fn find<R: Rules>(&mut self, ask: NodeId, how: How, hops: u8, around: &mut Around<'_, '_, R>) {
        let (id, group, now) = (around.process.next_instance(), around.group, around.cx.now());
        around.cx.publish(Event::Sought { group, id, ask, hops });
        if self.finding.asked.len() >= MOST_ASKED {
            return around.cx.publish(Event::NotFound { group, id, why: Miss::Full, hint: None });
        }
        let question = Question { id, at: ask, how, left: hops, taken: 0, said: 0, again: now, until: now };
        self.put(question, around);
    }

    /// Puts a question to the one it is for, and keeps it until that one has had time to answer.
    fn put<R: Rules>(&mut self, mut question: Question, around: &mut Around<'_, '_, R>) {
        let retry = around.process.config.settings().retry.nominal();
        let now = around.cx.now();
        question.said = 1;
        question.again = now.after(retry);
        question.until = now.after(retry.times(PATIENCE)).after(question.how.wait());
        self.finding.asked.push(question);
        let Question { id, at, how, left, .. } = question;
        around.say(at, Talk::Seek { id, how, hops: left });
        self.note_deadline();
    }

    /// The answer that can be given at once: this process leads, or supports another.
    fn answer<R: Rules>(&self, id: InstanceId, hops: u8, around: &Around<'_, '_, R>) -> Option<Talk> {
        let (now, me) = (around.cx.now(), around.process.holder);
        if let Some(lead) = self.lead.filter(|lead| now < lead.until) {
            return Some(Talk::Here { id, hops, leader: me, term: lead.term });
        }
        let grant = around.own.bound_to_another(me, now).filter(|grant| grant.holder.node != me.node)?;
        let (holder, term, remaining) = (grant.holder.node, grant.term, grant.until.remaining(now));
        Some(Talk::There { id, hops, hint: Hint { holder, term, remaining } })
    }

    /// Another asks. A question that is here already came twice.
    pub(super) fn on_seek<R: Rules>(
        &mut self,
        asker: NodeId,
        (id, how, hops): (InstanceId, How, u8),
        around: &mut Around<'_, '_, R>,
    ) {
        let known = |waiting: &Waiting| (waiting.asker, waiting.id, waiting.hops) == (asker, id, hops);
        if self.finding.waiting.iter().any(known) {
            return;
        }
        let answer = self.answer(id, hops, around);
        let why = match (answer, how) {
            (Some(here @ Talk::Here { .. }), _) => return around.say(asker, here),
            (_, How::Refuse) => Miss::NotLeader,
            (Some(there), _) => return around.say(asker, there),
            (None, How::Redirect) => Miss::Unknown,
            (None, _) if self.finding.waiting.len() >= MOST_WAITING => Miss::Full,
            (None, How::Buffer { .. } | How::Campaign { .. }) => {
                return self.keep(Waiting { asker, id, hops, until: LocalTime::ZERO }, how, around);
            }
        };
        around.say(asker, Talk::Nowhere { id, hops, why });
    }

    /// Keeps a question until it can be answered; nobody's for longer than ten longest leases.
    fn keep<R: Rules>(&mut self, mut waiting: Waiting, how: How, around: &mut Around<'_, '_, R>) {
        let most = around.process.charter().body.longest_lease.nominal().times(10);
        waiting.until = around.cx.now().after(how.wait().min(most));
        self.finding.waiting.push(waiting);
        if matches!(how, How::Campaign { .. }) && self.finding.willing && !self.campaigns() {
            self.campaign(around);
            self.finding.obliging = true;
        }
        self.note_deadline();
    }

    /// After anything happened to this group: answers those who wait and can be answered, or need
    /// wait no longer. A process that campaigned for their sake alone stops when nobody waits and
    /// it does not lead.
    pub(super) fn serve<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        if !self.finding.has_waiting() && !self.finding.obliging {
            return;
        }
        let now = around.cx.now();
        for waiting in std::mem::take(&mut self.finding.waiting) {
            let Waiting { asker, id, hops, until } = waiting;
            match self.answer(id, hops, around) {
                Some(answer) => around.say(asker, answer),
                None if now >= until => {
                    around.say(asker, Talk::Nowhere { id, hops, why: Miss::TimedOut });
                }
                None => self.finding.waiting.push(waiting),
            }
        }
        if self.finding.obliging && !self.finding.has_waiting() && self.leads_until(now).is_none() {
            self.resign(around);
        }
        self.note_deadline();
    }

    /// The leader itself answers.
    pub(super) fn on_here<R: Rules>(
        &mut self,
        from: NodeId,
        (id, hops): (InstanceId, u8),
        (leader, term): (Holder, Term),
        around: &mut Around<'_, '_, R>,
    ) {
        let outdated = term < self.finding.led;
        self.finding.led = self.finding.led.max(term);
        let Some(question) = self.finding.answered(from, id, hops) else { return };
        let group = around.group;
        around.cx.publish(if outdated {
            Event::NotFound { group, id, why: Miss::Outdated, hint: None }
        } else {
            Event::Found { group, id, leader, term, hops: question.taken }
        });
        self.note_deadline();
    }

    /// One who does not lead answers with a hint: the one it names is asked next.
    pub(super) fn on_there<R: Rules>(
        &mut self,
        from: NodeId,
        (id, hops): (InstanceId, u8),
        hint: Hint,
        around: &mut Around<'_, '_, R>,
    ) {
        let Some(question) = self.finding.answered(from, id, hops) else { return };
        let why = match question.left.checked_sub(1) {
            _ if hint.term < self.finding.led => Miss::Outdated,
            None => Miss::NoHopsLeft,
            Some(left) => {
                let next = Question { at: hint.holder, left, taken: question.taken + 1, ..question };
                return self.put(next, around);
            }
        };
        around.cx.publish(Event::NotFound { group: around.group, id, why, hint: Some(hint) });
        self.note_deadline();
    }

    /// One who does not lead has nothing to tell.
    pub(super) fn on_nowhere<R: Rules>(
        &mut self,
        from: NodeId,
        (id, hops): (InstanceId, u8),
        why: Miss,
        around: &mut Around<'_, '_, R>,
    ) {
        if self.finding.answered(from, id, hops).is_some() {
            around.cx.publish(Event::NotFound { group: around.group, id, why, hint: None });
            self.note_deadline();
        }
    }

    /// Puts questions again whose answer did not come, and gives up those that have had their time.
    pub(super) fn on_find_deadline<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let now = around.cx.now();
        let retry = around.process.config.settings().retry.nominal();
        let group = around.group;
        let (over, on): (Vec<Question>, Vec<Question>) =
            self.finding.asked.drain(..).partition(|question| question.until <= now);
        self.finding.asked = on;
        for Question { id, .. } in over {
            around.cx.publish(Event::NotFound { group, id, why: Miss::Unanswered, hint: None });
        }
        for question in self.finding.asked.iter_mut().filter(|question| question.again <= now) {
            question.again = now.after(retry.times(1 << question.said.min(MOST_DOUBLINGS)));
            question.said += 1;
            let Question { id, at, how, left, .. } = *question;
            around.say(at, Talk::Seek { id, how, hops: left });
        }
        self.note_deadline();
    }

    fn note_deadline(&mut self) {
        match self.finding.next() {
            Some(at) => self.timers.set(Timer::Find, at),
            None => self.timers.clear(Timer::Find),
        }
    }
}
