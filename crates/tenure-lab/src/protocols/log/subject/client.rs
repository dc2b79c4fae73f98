//! A client: opens a session, then reads and writes, one operation after the other. If a process
//! does not answer, the client asks it again, or another.

use tenure_proto::log::{Rules, Session};
use tenure_proto::time::LocalSpan;
use tenure_proto::timers::Timers;
use tenure_proto::{Incarnation, LocalTime, NodeId};

use super::kv::{KeyName, Write};
use super::{Ask, AskId, Context, Deed, Happening, Reply, Talk, Wish};

/// How a client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Manner {
    /// How many members there are to ask.
    pub(super) members: u64,
    /// How many keys there are.
    pub(super) keys: u32,
    /// How long it waits for an answer before it asks another member.
    pub(super) patience: LocalSpan,
    /// How long it rests between two operations, at most.
    pub(super) rest: LocalSpan,
    /// How many of a hundred operations read.
    pub(super) reads: u32,
}

/// One life of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    manner: Manner,
    me: NodeId,
    life: Incarnation,
    /// Asks this member and no other, if it is one itself.
    only: Option<NodeId>,
    /// Whom it asks next: who answered last, or the next one after who did not.
    next: Option<NodeId>,
    /// Whether it does only what it is told.
    told: bool,
    session: Option<Session>,
    /// The number of the last write in the session.
    number: u64,
    asked: u64,
    current: Option<Ask>,
    timers: Timers<2>,
}

const REST: usize = 0;
const AGAIN: usize = 1;

impl Client {
    pub(super) fn new(manner: Manner, me: NodeId, life: Incarnation, only: Option<NodeId>) -> Self {
        Self {
            manner,
            me,
            life,
            only,
            next: None,
            told: false,
            session: None,
            number: 0,
            asked: 0,
            current: None,
            timers: Timers::default(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        self.timers.next()
    }

    /// Begins, unless it has.
    pub(super) fn go<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if self.current.is_none() && !self.timers.is_set(REST) {
            self.rest(cx);
        }
    }

    fn rest<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        let rest = cx.jitter(self.manner.rest);
        self.timers.set(REST, cx.now().after(rest));
    }

    pub(super) fn on_deadline<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if self.timers.take_expired(REST, cx.now()) {
            let wish = self.choose(cx);
            self.wish(wish, cx);
        }
        if self.timers.take_expired(AGAIN, cx.now()) {
            self.next = self.next.map(|silent| NodeId((silent.0 + 1) % self.manner.members));
            self.ask(cx);
        }
    }

    fn choose<R: Rules>(&mut self, cx: &mut Context<'_, R>) -> Wish {
        let Some(session) = self.session else {
            return self.open();
        };
        let key = KeyName::try_from(cx.choose(self.manner.keys)).unwrap_or(0);
        if cx.choose(100) < self.manner.reads {
            return Wish::Read { key };
        }
        self.write(session, key)
    }

    fn write(&mut self, session: Session, key: KeyName) -> Wish {
        self.number += 1;
        let life = u64::try_from(self.life.0 & 0xffff).unwrap_or(0);
        let value = self.me.0 << 48 | life << 32 | self.asked;
        Wish::Write { session, number: self.number, write: Write { key, value } }
    }

    fn open(&self) -> Wish {
        let name = u128::from(self.me.0) << 112 | (self.life.0 & 0xffff_ffff_ffff) << 64;
        Wish::Open { nonce: name | u128::from(self.asked) }
    }

    /// Does one thing, as it is told. A write needs a session.
    pub(super) fn begin<R: Rules>(&mut self, what: Deed, at: NodeId, cx: &mut Context<'_, R>) {
        let wish = match (what, self.session) {
            (Deed::Open, _) => self.open(),
            (Deed::Get(key), _) => Wish::Read { key },
            (Deed::Put(key), Some(session)) => self.write(session, key),
            (Deed::Put(_), None) => return,
        };
        self.told = true;
        self.next = Some(at);
        self.wish(wish, cx);
    }

    fn wish<R: Rules>(&mut self, wish: Wish, cx: &mut Context<'_, R>) {
        self.asked += 1;
        let id = AskId { client: self.me, life: self.life, number: self.asked };
        cx.publish(match wish {
            Wish::Open { nonce } => Happening::Asked(nonce),
            _ => Happening::Invoked { id, wish: wish.clone() },
        });
        self.current = Some(Ask { id, wish });
        self.ask(cx);
    }

    fn ask<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        let Some(ask) = self.current.clone() else { return };
        let members = u32::try_from(self.manner.members).unwrap_or(1);
        let known = self.only.or(self.next);
        let to = known.unwrap_or_else(|| NodeId(u64::from(cx.choose(members))));
        self.next = Some(to);
        cx.send(to, Talk::Ask(ask), None);
        self.timers.set(AGAIN, cx.now().after(self.manner.patience));
    }

    pub(super) fn on_answer<R: Rules>(
        &mut self,
        from: NodeId,
        id: AskId,
        reply: Reply,
        cx: &mut Context<'_, R>,
    ) {
        if self.current.as_ref().is_none_or(|ask| ask.id != id) {
            return; // Of an operation that was answered, or of a former life.
        }
        self.next = Some(from);
        match reply {
            Reply::Opened(session) => (self.session, self.number) = (Some(session), 0),
            Reply::Expired => self.session = None,
            Reply::Saw(saw) => cx.publish(Happening::Returned { id, saw }),
        }
        self.current = None;
        self.timers.clear(AGAIN);
        if !self.told {
            self.rest(cx);
        }
    }
}
