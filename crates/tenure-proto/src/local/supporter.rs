//! Supporting: whom a process binds itself to, and when it is free again.
//!
//! The assertions are about this process's own lock and readings. A request that would break it is
//! declined before, by [`Rules::is_free`]; of the other contents nothing is assumed.

use crate::quorum::NodeSet;
use crate::{Context, LocalTime};

use super::Local;
use super::message::{Event, Lock, Promise, RequestId, View};
use super::rules::Rules;

/// A request as it came in.
pub(super) struct Asked {
    pub(super) asker: usize,
    pub(super) request: RequestId,
    pub(super) alive: NodeSet,
    pub(super) collate: bool,
    pub(super) members: NodeSet,
    pub(super) received: LocalTime,
}

impl<R: Rules> Local<R> {
    /// A fast request. It is answered in any case: a connected process must stay in the asker's
    /// alive set (BI).
    pub(super) fn consider(&mut self, asked: &Asked, cx: &mut Context<'_, Self>) {
        let Asked { asker, request, received, .. } = *asked;
        self.date_own_entry(asked);
        self.alive.purge(cx.now());
        let rules = &self.config.settings().rules;
        let mut rivals = self.alive.members();
        rivals.insert(self.me);
        let first = !rivals.positions().any(|who| self.goes_before(who, asker));
        let support = rules.is_free(self.lock.as_ref(), asker, received)
            && rules.may_support(received, self.silent_until)
            && rules.is_first(first);
        if support && rules.binds(asker == self.me) {
            self.bind(asker, request, received, cx);
        }
        if !support {
            cx.publish(Event::Declined { asker: self.config.settings().members[asker] });
        }
        self.learn_members(asked, support, cx);
        let along_tree = asked.collate && asked.alive.contains(asker);
        self.answer(asked, along_tree.then_some(asked.alive), support, cx);
    }

    /// The own entry in the alive set, where the answers to this request come to the asker itself.
    fn date_own_entry(&mut self, asked: &Asked) {
        let round = self.round.filter(|round| asked.asker == self.me && round.id == asked.request);
        if let Some(round) = round.filter(|round| !round.collate) {
            let at = self.config.settings().rules.own_entry(round.sent, asked.received);
            self.alive.heard(self.me, at);
        }
    }

    /// Binds this process before its reply leaves. For the same holder neither the end nor the
    /// request goes back: an older request may come late, or be handled late, and the Release that
    /// followed it must not free who supports the newer one. Lives are not ordered by their names,
    /// but requests of a former one that are fast came before those of the next.
    fn bind(&mut self, to: usize, request: RequestId, received: LocalTime, cx: &mut Context<'_, Self>) {
        let tick = self.config.settings().timing.tick;
        let until = received.after(tick).after(self.config.constants().lock);
        let lock = match self.lock {
            Some(held) if held.to == to => {
                let same_life = held.request.incarnation == request.incarnation;
                let older = if same_life { held.request > request } else { held.until > until };
                let request = if older { held.request } else { request };
                Lock { to, request, until: until.max(held.until) }
            }
            _ => Lock { to, request, until },
        };
        let rules = &self.config.settings().rules;
        let free = self.lock.is_none_or(|held| held.to == to || received >= held.until);
        let kept = self.lock.is_none_or(|held| held.to != to || held.until <= lock.until);
        invariant!(rules, free, "a bound process supports no other before its lock ends (SO)");
        invariant!(rules, kept, "a lock never ends sooner than it was promised (SO)");
        invariant!(rules, received >= self.silent_until, "who may have forgotten a lock supports nobody");
        invariant!(rules, cx.now() >= self.latest, "nobody is bound by a clock that is behind (SO)");
        self.lock = Some(lock);
        self.remember(cx);
        cx.publish(Event::Locked { lock, received });
    }

    /// The members of the logical partition, as its leader says; for no longer than this process is
    /// bound to it. A set that the leader sent before its last supported request is not true any
    /// more.
    fn learn_members(&mut self, asked: &Asked, support: bool, cx: &mut Context<'_, Self>) {
        let newest = self.lock.is_some_and(|lock| lock.request == asked.request);
        if support && !self.config.settings().rules.learns_members(newest) {
            return;
        }
        let known = support && asked.asker != self.me && asked.members.contains(self.me);
        let lock = self.lock.filter(|lock| lock.to == asked.asker);
        // A process that handles a request so late that its lock is over by then learns nothing
        // from it.
        let view = lock.filter(|lock| known && cx.now() < lock.until).map(|lock| View {
            leader: self.config.settings().members[asked.asker],
            members: asked.members,
            until: lock.until,
        });
        let said = |view: Option<View>| view.map(|view| (view.leader, view.members));
        if let Some(view) = view.filter(|view| said(Some(*view)) != said(self.view)) {
            cx.publish(Event::Members(view));
        }
        if view.is_some() || lock.is_some() {
            self.view = view;
        }
    }

    /// A Release came, or this process has sent one: fast or slow alike.
    pub(super) fn set_free(&mut self, from: usize, request: RequestId, cx: &mut Context<'_, Self>) {
        let frees = |lock: &Lock| self.config.settings().rules.frees(lock, from, request);
        if let Some(lock) = self.lock.filter(frees) {
            self.lock = None;
            self.view = None;
            // Said first: who is killed in between stays bound, which is safe, and nobody saw it
            // break a promise.
            cx.publish(Event::Freed { to: self.config.settings().members[lock.to] });
            self.remember(cx);
        }
    }

    /// Keeps what was promised for a restart within this boot.
    pub(super) fn remember(&self, cx: &mut Context<'_, Self>) {
        cx.remember(Promise { lock: self.lock, silent_until: self.silent_until });
    }
}
