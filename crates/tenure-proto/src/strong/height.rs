//! Heights: bounds on the largest term that a member has granted, its *top*.
//!
//! One number stands for the largest term of every group after a restart (`term`), and the floor of
//! the next charter is the largest top of a quorum. So a term that is granted in one group raises
//! the terms of all of them, for good. Without a bound one request for the term 2^64 - 1, by a key
//! that may lead `evil/x` alone, would leave no term for anybody.
//!
//! ```text
//!                     known := max(top, what a member vouched for, what an operator confirmed)
//!   term <= known     free: nothing rises
//!   by an outsider    term - known is charged to a bucket of its key; what does not fit is refused, with the time to wait
//!                     the same for a term that it makes a member ask for, which it wants to take over
//!   by a member       at most 2^24 above known; beyond that an operator must confirm it
//! ```
//!
//! **Why an outsider cannot exhaust the terms.** Members together refill [`REFILL`] to one term a
//! pause: each member refills one term in as many pauses as there are members, so it makes no
//! difference that an outsider may climb at one member and then at the next, which hears of it.
//! 2^31 terms, the range of packed tokens, take 34 years that way. Processes that speak by one key
//! share a bucket ([`Command::KeyOf`]): a key that serves many names must not have as many buckets.
//! Where nobody says by which key a process speaks, its name stands for it. A bucket is forgotten
//! when it is full again, or with the process.
//!
//! **Why catching up is free.** Tops of members may be far apart: one was down, another started
//! again after a crash. An outsider that must ask for a term above the highest of them is no
//! attacker. A member that refuses for the height asks the others for their tops; they *vouch* for
//! them. Nothing is said about tops before somebody was refused. The word of an outsider never
//! counts.
//!
//! **Why members are bounded too.** Members are trusted, their disks and operators may be wrong. A
//! top that is 2^24 above all that is known is a mistake, or an attack that has succeeded
//! elsewhere. It is not taken over in silence, neither as a term nor as a floor: the member says so
//! ([`Event::Implausible`]) and waits for an operator ([`Command::Confirm`]).
//!
//! **If an absurd term was granted all the same** (a bug, a bad disk, a wrong confirmation), an
//! operator stops all members and repairs their stores: see
//! [`epoch::repair`](super::epoch::repair).

use std::collections::BTreeMap;

use super::message::{Event, GrantRequest, Message, Refusal, Term};
use super::rules::Rules;
use super::{Nerio, Process};
use crate::explore::View;
use crate::time::LocalSpan;
use crate::{Context, LocalTime, NodeId};

#[allow(unused_imports, reason = "named in the documentation above")]
use super::message::Command;

/// The number of terms that an outsider may add to the top of a member at once.
pub const BURST: u64 = 1024;

/// The pause after which all members together let an outsider add one term more.
pub const REFILL: LocalSpan = LocalSpan::from_nanos(500_000_000);

/// The distance by which a member's word may lie above all that is known.
pub const PLAUSIBLE: u64 = 1 << 24;

/// How many processes are known by their key. The driver tells them again before each request, so
/// all may be forgotten.
const MOST_KEYS: usize = 4096;

/// How many buckets are kept. Only those that are not full need a place.
const MOST_BUCKETS: usize = 1024;

/// Messages by which members tell each other their tops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeightTalk {
    /// Asks for the largest term that the receiver may have granted.
    Ask,
    /// Answers with it, for any group.
    Top(Term),
}

/// The terms that one key has added to this member's top, as far as they are not refilled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bucket {
    spent: u64,
    /// Up to here refills are counted.
    since: LocalTime,
}

impl Bucket {
    /// Counts whole refills only: rounded against the one who asks.
    fn refill(&mut self, now: LocalTime, refill: LocalSpan) {
        let pauses = now.remaining(self.since).as_nanos() / refill.as_nanos().max(1);
        self.spent = self.spent.saturating_sub(pauses);
        let counted = pauses.saturating_mul(refill.as_nanos());
        self.since = self.since.after(LocalSpan::from_nanos(counted));
    }
}

/// How high terms are, as this process knows, and who raised them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Heights {
    /// The largest term that was granted here in this life, or remembered of the life before.
    pub(super) granted: Term,
    /// The highest top that a member has vouched for.
    vouched: Term,
    /// The top that an operator has confirmed.
    confirmed: Term,
    /// The term that was too high to be believed, and the member that reported it.
    doubted: Option<(NodeId, Term)>,
    /// By which key a process speaks, if that is not a key of its own.
    keys: BTreeMap<NodeId, u64>,
    buckets: BTreeMap<u64, Bucket>,
    /// When the other members were last asked for their tops.
    asked: Option<LocalTime>,
}

impl Heights {
    pub(super) fn new(granted: Term) -> Self {
        Self { granted, ..Self::default() }
    }

    /// Charges a height to a key, or says how long to wait until it would fit. More than the burst
    /// never fits: then a member must vouch for it, and the wait is what it would take to refill as
    /// much.
    fn charge(&mut self, key: u64, height: u64, now: LocalTime, refill: LocalSpan) -> Result<(), LocalSpan> {
        if self.buckets.len() >= MOST_BUCKETS && !self.buckets.contains_key(&key) {
            self.buckets.retain(|_, bucket| {
                bucket.refill(now, refill);
                bucket.spent > 0
            });
            if self.buckets.len() >= MOST_BUCKETS {
                return Err(refill);
            }
        }
        let bucket = self.buckets.entry(key).or_insert(Bucket { spent: 0, since: now });
        bucket.refill(now, refill);
        if bucket.spent == 0 {
            bucket.since = now; // A full bucket does not refill: no pause counts before the first term is spent.
        }
        let missing = bucket.spent.saturating_add(height).saturating_sub(BURST);
        if missing > 0 {
            return Err(LocalSpan::from_nanos(refill.as_nanos().saturating_mul(missing)));
        }
        bucket.spent += height;
        Ok(())
    }
}

impl<R: Rules> Process<R> {
    /// The largest term that this member may have granted, in any group, and the floor of its
    /// epoch: what a floor must cover.
    pub(super) fn top(&self) -> Term {
        let granted = self.heights.granted.max(self.largest_term);
        self.rules().top(self.charter().floor, granted)
    }

    /// Up to here a term raises nothing that is not accounted for.
    pub(super) fn known(&self) -> Term {
        self.top().max(self.charter().floor).max(self.heights.vouched).max(self.heights.confirmed)
    }

    /// A term was granted.
    pub(super) fn note_granted(&mut self, term: Term) {
        self.heights.granted = self.heights.granted.max(term);
    }

    /// HEIGHT: why a request is refused for its term, which is otherwise granted. `by` has sent it,
    /// in its own name or as a leader that hands over. An outsider pays for what it sends, no
    /// matter which process is to lead by it.
    pub(super) fn too_high(
        &mut self,
        request: &GrantRequest,
        by: NodeId,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<Refusal> {
        let known = self.known();
        if request.term <= known {
            return None;
        }
        let payer = if self.charter().has(by) { request.id.holder.node } else { by };
        // The request of a member is its word that terms are as high as that.
        if self.rules().vouches(self.charter().has(payer)) {
            return self.doubts(payer, request.term, cx).then_some(Refusal::Implausible);
        }
        let wait = self.pay(payer, request.term, cx.now()).err()?;
        let soon = self.ask_tops(cx);
        Some(Refusal::TooHigh { wait: soon.map_or(wait, |soon| soon.min(wait)) })
    }

    /// Charges an outsider for a term above what is known, or says how long it must wait.
    fn pay(&mut self, payer: NodeId, term: Term, now: LocalTime) -> Result<(), LocalSpan> {
        let height = self.rules().charged(term, self.known());
        let members = u32::try_from(self.charter().members().len()).unwrap_or(u32::MAX);
        let key = self.heights.keys.get(&payer).copied().unwrap_or(payer.0);
        self.heights.charge(key, height, now, REFILL.times(members))
    }

    /// HEIGHT: whether the term of a leader that wants this process to take over is believed. The
    /// run that follows asks for one above it, in the name of this process: what a member asks for
    /// is free, so the process that made it ask pays here.
    pub(super) fn believes_leader(&mut self, leader: NodeId, term: Term, now: LocalTime) -> bool {
        let (known, rules) = (self.known(), self.rules());
        if term <= known {
            return true;
        }
        if rules.vouches(self.charter().has(leader)) {
            return rules.is_plausible(term, known);
        }
        let paid = self.pay(leader, term, now).is_ok();
        if paid {
            self.heights.vouched = self.heights.vouched.max(term); // It is accounted for, once.
        }
        paid
    }

    /// Asks the other members for their tops, not too often. Says how long the answers may take, if
    /// they were asked just now.
    fn ask_tops(&mut self, cx: &mut Context<'_, Nerio<R>>) -> Option<LocalSpan> {
        let (now, retry) = (cx.now(), self.config.settings().retry.nominal());
        let me = self.holder.node;
        let others: Vec<NodeId> =
            self.charter().members().iter().copied().filter(|member| *member != me).collect();
        if others.is_empty() {
            return None;
        }
        if self.heights.asked.is_none_or(|asked| now >= asked.after(retry.times(16))) {
            self.heights.asked = Some(now);
            for member in others {
                cx.send(member, Message::Height(HeightTalk::Ask), None);
            }
        }
        let fresh = self.heights.asked.is_some_and(|asked| now < asked.after(retry.times(2)));
        fresh.then(|| retry.times(2))
    }

    /// One member asks another, or tells it.
    pub(super) fn on_height_talk(&mut self, from: NodeId, talk: HeightTalk, cx: &mut Context<'_, Nerio<R>>) {
        let is_member = self.charter().has(from);
        match talk {
            HeightTalk::Ask if is_member && self.position.is_some() && self.recovery.is_none() => {
                cx.send(from, Message::Height(HeightTalk::Top(self.top())), None);
            }
            HeightTalk::Ask => {}
            HeightTalk::Top(top) => self.vouch(from, top, cx),
        }
    }

    /// Somebody says how high terms are where it is. Only members count.
    pub(super) fn vouch(&mut self, from: NodeId, top: Term, cx: &mut Context<'_, Nerio<R>>) {
        let counts = self.rules().vouches(self.charter().has(from));
        if counts && !self.doubts(from, top, cx) {
            self.heights.vouched = self.heights.vouched.max(top);
        }
    }

    /// Whether a member's word is too high to be believed, and says so. A process that is no member
    /// yet knows nothing to compare it with: a new member begins with what the charter says that
    /// makes it one.
    pub(super) fn doubts(&mut self, by: NodeId, term: Term, cx: &mut Context<'_, Nerio<R>>) -> bool {
        let known = self.known();
        if self.position.is_none() || self.rules().is_plausible(term, known) {
            return false;
        }
        if self.heights.doubted.replace((by, term)) != Some((by, term)) {
            cx.publish(Event::Implausible { by, term, known });
        }
        true
    }

    /// A process speaks by this key.
    pub(super) fn note_key(&mut self, node: NodeId, key: u64) {
        if self.heights.keys.len() >= MOST_KEYS {
            self.heights.keys.clear();
        }
        self.heights.keys.insert(node, key);
    }

    /// An operator says that terms may be as high as this.
    pub(super) fn confirm(&mut self, term: Term, cx: &mut Context<'_, Nerio<R>>) {
        cx.publish(Event::Confirmed { term });
        self.heights.confirmed = self.heights.confirmed.max(term);
        self.heights.doubted.take_if(|(_, doubted)| *doubted <= term);
    }
}

impl<R: Rules> Nerio<R> {
    /// The largest term that this member may have granted, in any group, and the floor of its
    /// epoch.
    pub fn top(&self) -> Term {
        self.process.top()
    }

    /// The key by which a process speaks, as far as this one was told.
    pub fn key_of(&self, node: NodeId) -> Option<u64> {
        self.process.heights.keys.get(&node).copied()
    }

    /// The term that was too high to be believed, and the member that reported it, until an
    /// operator confirms it.
    pub fn doubted(&self) -> Option<(NodeId, Term)> {
        self.process.heights.doubted
    }
}

impl Heights {
    /// See [`Explore`](crate::explore::Explore). How high terms are known to be, and who has paid
    /// for it, matters only where a term is far above all others. No exploration gets there, so it
    /// is left out, and that is checked.
    pub(super) fn view(&self, known: Term, v: &mut View<'_>) {
        let terms = known.max(self.granted).max(self.vouched).max(self.confirmed);
        let spent = self.buckets.values().map(|bucket| bucket.spent).max().unwrap_or(0);
        v.assume(terms.0.max(spent) < BURST / 4, "terms stay far below what a key may spend");
        v.assume(self.doubted.is_none() && self.asked.is_none(), "nobody doubts a term");
        v.assume(self.keys.is_empty(), "each process speaks by a key of its own");
        v.num(self.granted.0);
    }
}
