//! Answers along a tree: for groups so large that the asker cannot hear everybody one by one.
//!
//! The target set of a request, the asker first and the others in order, is a tree by position: the
//! parent of i is `(i-1)/a`. A leaf answers its parent; an inner node binds itself first, waits for
//! its children, and passes on one answer for all. A vote is a lock, so the way by which it travels
//! does not matter for SO. A tree can break T and BI; these rules prevent it:
//!
//! 1. A probe is answered directly. A process that is not in the target set of a request answers it
//!    directly too.
//! 2. An inner node at depth k of a tree of depth h waits for `((h-k+1)Δ - δmin)(1+ρ)` from the
//!    receipt, no longer: then all who can answer in time have. Later answers are dropped.
//! 3. **Children need not be fast to support, but to be alive.** Parent and child may never have
//!    spoken before, and their stamps age; asking for fast answers here makes rounds fail for
//!    nothing. A vote is a lock, however slow it is. But a slow answer is no sign of life: else an
//!    outsider that is beyond Δ for everybody would be passed on as alive by a parent that waits
//!    long enough, and be waited for by the asker (T).
//! 4. **An answer may come before its request.** The child may have heard the request sooner than
//!    its parent. It is kept.
//! 5. A collated round that fails is followed by direct ones for `expires`, twice as long after
//!    each failure in a row; and a direct one comes at least every half `expires` anyway, so that
//!    nobody drops out because its parent is bad.
//! 6. **Stamps of all targets must be fresh enough for the next request, too.** The asker hears
//!    grandchildren only in direct rounds; a request with stamps that are too old is slow where it
//!    arrives, and answered by nobody. When they would get too old, a direct round comes.
//! 7. **A collated request dates the asker's own entry only when it has succeeded, and by the
//!    oldest sign of life of its targets.** Otherwise the own entry may outlive that of a member
//!    whose parent is bad, or hears it slowly: the asker, held up by a third process, could come
//!    back, find itself in its target set and that member not, and lead without it although the two
//!    are connected (BI; the same flaw as F2).
//! 8. **Signs of life are under way for longer.** A sign of life that an inner node heard before a
//!    partition became stable may reach the asker `(h+1)Δ + σ + δ` later: the node waits for its
//!    children, and may be woken late. κ_T has `(h+1)Δ` more for that, and a whole pace, which is
//!    at least `σ + 2δ`.

use crate::quorum::NodeSet;
use crate::{Context, LocalTime};

use super::message::{Body, RequestId};
use super::rules::Rules;
use super::supporter::Asked;
use super::{Local, Timer};

/// The depth of a tree of so many nodes: that of its last.
pub(super) fn depth(nodes: usize, arity: usize) -> u32 {
    depth_of(nodes.saturating_sub(1), arity)
}

fn depth_of(mut index: usize, arity: usize) -> u32 {
    let mut depth = 0;
    while index > 0 {
        index = (index - 1) / arity.max(1);
        depth += 1;
    }
    depth
}

/// Where a process stands in the tree of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) parent: usize,
    pub(super) children: NodeSet,
    /// h-k: how many levels are below.
    pub(super) below: u32,
}

impl Place {
    /// The place of `me` in the tree of `root`'s request to `targets`; `None` if it has none.
    pub(super) fn find(root: usize, targets: NodeSet, arity: usize, me: usize) -> Option<Self> {
        let others = targets.positions().filter(|who| *who != root);
        let order: Vec<usize> = std::iter::once(root).chain(others).collect();
        let index = order.iter().position(|who| *who == me).filter(|index| *index > 0)?;
        let children = order.iter().skip(arity * index + 1).take(arity).copied().collect();
        let below = depth(order.len(), arity) - depth_of(index, arity);
        Some(Self { parent: order[(index - 1) / arity], children, below })
    }
}

/// Answers to a request: of one process, or of its part of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    /// The process that asked.
    pub(super) root: usize,
    pub(super) request: RequestId,
    /// Those who have answered.
    pub(super) answered: NodeSet,
    /// Those of them who support it.
    pub(super) support: NodeSet,
}

/// Answers that wait at an inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Collation {
    pub(super) request: RequestId,
    /// The children that have reported.
    reported: NodeSet,
    answered: NodeSet,
    support: NodeSet,
    /// Where this process stands, and until when it waits; `None` while the request itself has not
    /// come.
    wait: Option<(Place, LocalTime)>,
}

impl<R: Rules> Local<R> {
    /// Whether the next request should be answered along the tree (rules 1, 5 and 6).
    pub(super) fn collates(&self, targets: NodeSet, now: LocalTime) -> bool {
        let (settings, constants) = (self.config.settings(), self.config.constants());
        let due = self.last_direct.after(constants.expires.fraction(1, 2));
        let me = self.me;
        let fresh = |who: usize| {
            let age = self.datagrams.age(who, now);
            age.is_some_and(|age| age.plus(settings.timing.pace) <= constants.stamps)
        };
        settings.tree.is_some()
            && targets.contains(me)
            && now >= self.direct_until
            && now.after(settings.timing.pace) <= due
            && targets.positions().all(|who| who == me || fresh(who))
    }

    /// This process's own answer goes to `root`, or up the tree.
    pub(super) fn answer(
        &mut self,
        asked: &Asked,
        targets: Option<NodeSet>,
        supports: bool,
        cx: &mut Context<'_, Self>,
    ) {
        let Asked { asker: root, request, received, .. } = *asked;
        let answered: NodeSet = [self.me].into_iter().collect();
        let support = if supports { answered } else { NodeSet::EMPTY };
        if root == self.me {
            return self.count_replies(request, support, cx);
        }
        let reply = Reply { root, request, answered, support };
        let tree = self.config.settings().tree;
        let place = tree.zip(targets).and_then(|(arity, targets)| Place::find(root, targets, arity, self.me));
        let Some(place) = place else { return self.reply(root, reply, cx) };
        if place.children.is_empty() {
            return self.reply(place.parent, reply, cx);
        }
        let timing = self.config.settings().timing;
        let longest = timing.fast.times(place.below + 1).minus(timing.least_delay);
        let until = received.after(timing.tick).after(timing.drift.longest(longest));
        let collation = self.collation(root, request);
        collation.wait = Some((place, until));
        collation.answered = collation.answered.union(answered);
        collation.support = collation.support.union(support);
        self.pass_on(root, cx.now(), cx);
    }

    /// The answer of a child, or of its part of the tree (rules 3 and 4). An answer to an older
    /// request is dropped.
    pub(super) fn collect(&mut self, child: usize, reply: Reply, cx: &mut Context<'_, Self>) {
        let Reply { root, request, answered, support } = reply;
        let known = self.collations[root].map(|collation| collation.request);
        let older = known.is_some_and(|known| known.incarnation == request.incarnation && known > request);
        if older || self.config.settings().tree.is_none() {
            return;
        }
        let collation = self.collation(root, request);
        collation.reported.insert(child);
        collation.answered = collation.answered.union(answered);
        collation.support = collation.support.union(support);
        self.pass_on(root, cx.now(), cx);
    }

    fn collation(&mut self, root: usize, request: RequestId) -> &mut Collation {
        let fresh = Collation {
            request,
            reported: NodeSet::EMPTY,
            answered: NodeSet::EMPTY,
            support: NodeSet::EMPTY,
            wait: None,
        };
        let collation = self.collations[root].get_or_insert(fresh);
        if collation.request != request {
            *collation = fresh;
        }
        collation
    }

    /// Passes on what was collected for `root` if all children have reported or time is up.
    fn pass_on(&mut self, root: usize, now: LocalTime, cx: &mut Context<'_, Self>) {
        if let Some(collation) = self.collations[root]
            && let Some((place, until)) = collation.wait
            && (collation.reported.is_superset(place.children) || now >= until)
        {
            self.collations[root] = None;
            let Collation { request, answered, support, .. } = collation;
            self.reply(place.parent, Reply { root, request, answered, support }, cx);
        }
        let waits = self.collations.iter().flatten().filter_map(|collation| collation.wait);
        match waits.map(|(_, until)| until).min() {
            Some(until) => self.timers.set(Timer::PassOn, until),
            None => self.timers.clear(Timer::PassOn),
        }
    }

    /// Time may be up for some answers.
    pub(super) fn pass_on_all(&mut self, cx: &mut Context<'_, Self>) {
        for root in 0..self.collations.len() {
            self.pass_on(root, cx.now(), cx);
        }
    }

    fn reply(&mut self, to: usize, reply: Reply, cx: &mut Context<'_, Self>) {
        let Reply { root, request, answered, support } = reply;
        let root = self.config.settings().members[root];
        self.send(to, Body::Reply { root, request, answered, support }, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_but_the_root_has_one_parent_and_the_root_hears_of_all() {
        for arity in 2..5 {
            for nodes in 1..40 {
                let targets: NodeSet = (0..nodes).collect();
                let root = nodes / 3;
                let place = |who| Place::find(root, targets, arity, who);
                let mut heard: NodeSet = [root].into_iter().collect();
                for who in (0..nodes).filter(|who| *who != root) {
                    let mut at = who;
                    let mut hops = 0;
                    while at != root {
                        let parent = place(at).expect("in the tree").parent;
                        if parent != root {
                            let of_parent = place(parent).expect("in the tree");
                            assert!(of_parent.children.contains(at), "{at} is a child of {parent}");
                            assert!(of_parent.below > place(at).expect("in the tree").below);
                        }
                        (at, hops) = (parent, hops + 1);
                    }
                    assert!(hops <= depth(nodes, arity));
                    heard.insert(who);
                }
                assert_eq!(heard, targets);
            }
        }
    }
}
