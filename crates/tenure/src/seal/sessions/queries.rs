//! Questions about sessions. Nothing here changes any.

use std::net::SocketAddr;

use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};

use super::super::known::{Known, Peer};
use super::super::refusal::Counters;
use super::Sessions;

impl Sessions {
    pub(crate) fn has_session(&self, peer: NodeId) -> bool {
        self.known.contains_key(&peer)
    }

    /// The identity that a peer with a session has proved.
    pub(crate) fn peer(&self, peer: NodeId) -> Option<&Peer> {
        self.known.get(&peer).map(|known| known.peer.as_ref())
    }

    /// All peers with sessions.
    pub(crate) fn known(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.known.keys().copied()
    }

    /// When the last authentic packet of a peer came.
    pub(crate) fn heard_at(&self, peer: NodeId) -> Option<LocalTime> {
        self.known.get(&peer).map(|known| known.heard_at)
    }

    /// Where packets for a peer go.
    pub(crate) fn address(&self, peer: NodeId) -> Option<SocketAddr> {
        self.known.get(&peer).and_then(Known::address)
    }

    /// Whether a peer was asked something at `since` or before and has said nothing after that.
    pub(crate) fn is_awaited_since(&self, peer: NodeId, since: LocalTime) -> bool {
        self.known.get(&peer).is_some_and(|known| known.is_silent(since, LocalSpan::ZERO))
    }

    /// Whom to greet: peers that were asked something and have been silent since, for longer than
    /// `retry`, and those with whom the session is still one under a key that this process does not
    /// speak any more.
    pub(crate) fn unanswered(&self, now: LocalTime) -> impl Iterator<Item = NodeId> + '_ {
        let wanted =
            move |known: &Known| known.is_silent(now, self.limits.retry) || self.is_outdated(known, now);
        let members = self.known.iter().filter(|(_, known)| known.peer.rights.is_cluster());
        members.filter(move |(_, known)| wanted(known)).map(|(id, _)| *id)
    }

    /// With how many peers there are sessions.
    pub(crate) fn peers(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }
}
