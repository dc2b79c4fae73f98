//! The state of one peer: up to three sessions, and which of them to speak on.
//!
//! Each side may begin a session at any time, both at once too. So there is a place for the session
//! that the peer began (`theirs`) and one for that which this side began (`mine`), and packets are
//! taken on both: neither has to give way. A session that this side has begun waits in a third
//! place (`pending`) until the peer has answered on it, and the one before it is kept until then:
//! answers may be on their way. Packets go out on the session on which the peer was heard last,
//! because that one it has for certain; and on a pending one for at most one interval of
//! retransmission.

use std::net::SocketAddr;
use std::sync::Arc;

use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};

use super::claims::Serial;
use super::floors::Holder;
use super::link::Link;
use super::refusal::Refusal;
use super::scope::Rights;
use crate::name::NodeName;

/// One that has proved who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) id: NodeId,
    pub(crate) name: NodeName,
    pub(crate) rights: Rights,
    /// Whose key it has: limits and floors are counted by that.
    pub(crate) holder: Holder,
    /// The id of its key, unless that is the cluster's.
    pub(crate) serial: Option<Serial>,
    /// The last second in which its key is good.
    pub(crate) not_after: Option<u64>,
    /// Its life: another number after a restart.
    pub(crate) boot: u128,
    /// The newest version that both sides speak.
    pub(crate) version: u8,
}

#[cfg(test)]
impl Peer {
    /// A peer as it would be after a handshake.
    pub(crate) fn proved(name: &str, rights: Rights, boot: u128) -> Self {
        let name = NodeName::new(name).expect("a name");
        let holder = match rights.is_cluster() {
            true => Holder::Member(name.id()),
            false => Holder::Outsider([7; 16]),
        };
        let (serial, not_after) = (None, None);
        Self { id: name.id(), name, rights, holder, serial, not_after, boot, version: 1 }
    }
}

/// The place of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Theirs,
    Mine,
    Pending,
}

/// For how long after it was heard the newest life of a name counts as alive.
const ALIVE: LocalSpan = LocalSpan::from_nanos(10_000_000_000);

/// The most former lives of a name that are remembered.
const MOST_LIVES: usize = 8;

/// The lives of one name that newer ones have replaced here.
///
/// A process that was restarted never speaks as a former life again. So a former life that begins a
/// session after the newer one did, while that is heard, proves that two processes use one name.
/// The newer one stays: it may be a restart, and must not wait to find out. The other is refused,
/// and told so, until the newer one has fallen silent. If each could replace the other, both would
/// lose their leases by turns, without end.
///
/// Safety does not rest on this: to grantors each life is a holder of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Lives(Vec<Former>);

#[derive(Clone, Copy, Debug)]
struct Former {
    boot: u128,
    /// It has come back.
    is_rival: bool,
}

impl Lives {
    /// A life was replaced by a newer one.
    fn replaced(&mut self, boot: u128) {
        self.0.retain(|former| former.boot != boot);
        if self.0.len() == MOST_LIVES {
            self.0.remove(0);
        }
        self.0.push(Former { boot, is_rival: false });
    }
}

pub(super) struct Known {
    pub(super) peer: Arc<Peer>,
    lives: Lives,
    theirs: Option<Box<Link>>,
    mine: Option<Box<Link>>,
    pending: Option<Box<Link>>,
    pending_since: LocalTime,
    speaking: Place,
    pub(super) heard_at: LocalTime,
    /// When something was sent after which nothing has been heard.
    waiting_since: Option<LocalTime>,
}

impl Known {
    pub(super) fn new(peer: Arc<Peer>, now: LocalTime) -> Self {
        Self {
            peer,
            lives: Lives::default(),
            theirs: None,
            mine: None,
            pending: None,
            pending_since: now,
            speaking: Place::Theirs,
            heard_at: now,
            waiting_since: None,
        }
    }

    /// Whether a session may begin to which this side gave its part at `born`: not one that is
    /// older than another of the peer's, and one of another life only if it is newer than all of
    /// this life.
    pub(super) fn admits(&self, peer: &Peer, place: Place, born: u64) -> Result<(), Refusal> {
        let newer = |link: Option<&Link>| link.is_none_or(|link| link.born < born);
        let fresh = if self.is_same_life(peer) {
            place != Place::Theirs || newer(self.theirs.as_deref())
        } else {
            self.links().all(|link| newer(Some(link)))
        };
        if fresh { Ok(()) } else { Err(Refusal::Superseded) }
    }

    /// Whether this is the process that is known, under the key that is known. Two keys of one name
    /// have two floors, so a session of one never silently replaces one of the other.
    pub(super) fn is_same_life(&self, peer: &Peer) -> bool {
        self.peer.boot == peer.boot && self.peer.holder == peer.holder
    }

    /// The former lives of this name when `peer` takes it; none that has this very boot.
    pub(super) fn lives_before(&self, peer: &Peer) -> Lives {
        let mut lives = self.lives.clone();
        lives.replaced(self.peer.boot);
        lives.0.retain(|former| former.boot != peer.boot);
        lives
    }

    /// Remembers which lives the name had before.
    pub(super) fn follows(&mut self, lives: Lives) {
        self.lives = lives;
    }

    /// A process has proved that it lives, now. Says whether it is a former life of this name while
    /// the newer one lives: two processes have one name.
    pub(super) fn is_rivalled_by(&mut self, peer: &Peer, now: LocalTime) -> bool {
        let other = peer.boot != self.peer.boot && now < self.heard_at.after(ALIVE);
        let former = self.lives.0.iter_mut().find(|former| other && former.boot == peer.boot);
        former.map(|former| former.is_rival = true).is_some()
    }

    /// Whether a greeting of this life is one of a rival, as was proved before.
    pub(super) fn refuses(&self, boot: u128, now: LocalTime) -> bool {
        let rival = |former: &Former| former.boot == boot && former.is_rival;
        boot != self.peer.boot && now < self.heard_at.after(ALIVE) && self.lives.0.iter().any(rival)
    }

    /// Puts a session in its place, speaks on it from now on, and gives back the one that it
    /// replaces.
    pub(super) fn begin(&mut self, place: Place, link: Link, now: LocalTime) -> Option<Box<Link>> {
        self.speaking = place;
        self.heard_at = now;
        self.waiting_since = None;
        if place == Place::Pending {
            self.pending_since = now;
        }
        self.place(place).replace(Box::new(link))
    }

    /// Takes out all sessions that are not wanted any more, with their places.
    pub(super) fn end(&mut self, unwanted: impl Fn(&Link) -> bool) -> Vec<(Place, Box<Link>)> {
        let mut ended = Vec::new();
        for place in [Place::Theirs, Place::Mine, Place::Pending] {
            ended.extend(self.place(place).take_if(|link| unwanted(link)).map(|link| (place, link)));
        }
        if self.place(self.speaking).is_none() {
            let left =
                [Place::Mine, Place::Theirs, Place::Pending].into_iter().find(|p| self.place(*p).is_some());
            self.speaking = left.unwrap_or(self.speaking);
        }
        ended
    }

    pub(super) fn find(&mut self, session: u64) -> Option<(Place, &mut Link)> {
        let places = [
            (Place::Theirs, &mut self.theirs),
            (Place::Mine, &mut self.mine),
            (Place::Pending, &mut self.pending),
        ];
        places.into_iter().find_map(|(place, link)| {
            link.as_deref_mut().filter(|link| link.id == session).map(|link| (place, link))
        })
    }

    /// The peer was heard on the session in `place`. Gives back the session that is not needed any
    /// more.
    pub(super) fn heard(&mut self, place: Place, now: LocalTime, retry: LocalSpan) -> Option<Box<Link>> {
        self.heard_at = now;
        self.waiting_since = None;
        if place == Place::Pending {
            self.speaking = Place::Mine;
            let mut link = self.pending.take()?;
            link.is_known();
            return self.mine.replace(link);
        }
        if self.pending.is_some() && now < self.pending_since.after(retry) {
            return None;
        }
        self.speaking = place;
        self.pending.take()
    }

    /// Something is sent that should be answered.
    pub(super) fn wait(&mut self, now: LocalTime) {
        self.waiting_since.get_or_insert(now);
    }

    /// The session to speak on.
    pub(super) fn speak(&mut self) -> Option<&mut Link> {
        self.place(self.speaking).as_deref_mut()
    }

    /// Where that session goes.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let link = match self.speaking {
            Place::Theirs => &self.theirs,
            Place::Mine => &self.mine,
            Place::Pending => &self.pending,
        };
        link.as_ref().map(|link| link.address)
    }

    /// Whether the peer has been silent for longer than `retry` after something was sent.
    pub(super) fn is_silent(&self, now: LocalTime, retry: LocalSpan) -> bool {
        self.waiting_since.is_some_and(|since| now > since.after(retry))
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        [&self.theirs, &self.mine, &self.pending].into_iter().filter_map(|link| link.as_deref())
    }

    fn place(&mut self, place: Place) -> &mut Option<Box<Link>> {
        match place {
            Place::Theirs => &mut self.theirs,
            Place::Mine => &mut self.mine,
            Place::Pending => &mut self.pending,
        }
    }
}
