//! Messages of a group besides asking and granting: hand-over, verification, and where the leader
//! is.
//!
//! The group has been said before. A request that is passed on is about the same group and does not
//! say it again: who may speak of one group cannot slip in a request for another.

use tenure_proto::strong::{GrantRequest, Hint, Holder, How, InstanceId, Miss, Talk, Term};
use tenure_proto::time::{LocalSpan, LocalTime, Pledge, Span};
use tenure_proto::{GroupId, NodeId};

use super::machine::{read_request, write_request};
use super::{EncodeError, unknown};
use crate::codec::{DecodeError, Reader, Wire, Writer};

/// The kind of a message. Numbers are never used again for something else.
mod kind {
    pub(super) const TAKE_OVER: u8 = 1;
    pub(super) const READY: u8 = 2;
    pub(super) const RELAY: u8 = 3;
    pub(super) const VERIFY: u8 = 4;
    pub(super) const PREFER: u8 = 5;
    pub(super) const CERTAIN: u8 = 6;
    pub(super) const SEEK: u8 = 7;
    pub(super) const HERE: u8 = 8;
    pub(super) const THERE: u8 = 9;
    pub(super) const NOWHERE: u8 = 10;
    pub(super) const FREE: u8 = 11;
}

pub(super) fn write(group: GroupId, talk: &Talk, to: &mut Writer) -> Result<(), EncodeError> {
    match talk {
        Talk::TakeOver { term } => {
            to.byte(kind::TAKE_OVER);
            term.write(to);
        }
        Talk::Ready(request) => {
            to.byte(kind::READY);
            same_group(group, request)?;
            write_request(request, to);
        }
        Talk::Relay { release, request } => {
            to.byte(kind::RELAY);
            release.write(to);
            same_group(group, request)?;
            write_request(request, to);
        }
        Talk::Verify { id, wanted } => {
            to.byte(kind::VERIFY);
            id.write(to);
            wanted.write(to);
        }
        Talk::Prefer { holder, priority } => {
            to.byte(kind::PREFER);
            holder.write(to);
            to.byte(*priority);
        }
        Talk::Certain { id, leader, term, pledge } => {
            to.byte(kind::CERTAIN);
            id.write(to);
            leader.write(to);
            term.write(to);
            pledge.write(to);
        }
        Talk::Seek { id, how, hops } => {
            write_search(kind::SEEK, id, *hops, to);
            how.write(to);
        }
        Talk::Here { id, hops, leader, term } => {
            write_search(kind::HERE, id, *hops, to);
            leader.write(to);
            term.write(to);
        }
        Talk::There { id, hops, hint } => {
            write_search(kind::THERE, id, *hops, to);
            hint.write(to);
        }
        Talk::Nowhere { id, hops, why } => {
            write_search(kind::NOWHERE, id, *hops, to);
            why.write(to);
        }
        Talk::Free => to.byte(kind::FREE),
    }
    Ok(())
}

/// Questions for the leader and their answers all begin with the question's name.
fn write_search(kind: u8, id: &InstanceId, hops: u8, to: &mut Writer) {
    to.byte(kind);
    id.write(to);
    to.byte(hops);
}

pub(super) fn read(group: GroupId, from: &mut Reader<'_>) -> Result<Talk, DecodeError> {
    match from.byte()? {
        kind::TAKE_OVER => Ok(Talk::TakeOver { term: Term::read(from)? }),
        kind::READY => Ok(Talk::Ready(read_request(group, from)?)),
        kind::RELAY => {
            Ok(Talk::Relay { release: InstanceId::read(from)?, request: read_request(group, from)? })
        }
        kind::VERIFY => Ok(Talk::Verify { id: InstanceId::read(from)?, wanted: Span::read(from)? }),
        kind::PREFER => Ok(Talk::Prefer { holder: Holder::read(from)?, priority: from.byte()? }),
        kind::CERTAIN => Ok(Talk::Certain {
            id: InstanceId::read(from)?,
            leader: Holder::read(from)?,
            term: Term::read(from)?,
            pledge: Pledge::read(from)?,
        }),
        search @ kind::SEEK..=kind::NOWHERE => read_search(search, from),
        kind::FREE => Ok(Talk::Free),
        other => unknown(other),
    }
}

fn read_search(search: u8, from: &mut Reader<'_>) -> Result<Talk, DecodeError> {
    let (id, hops) = (InstanceId::read(from)?, from.byte()?);
    match search {
        kind::SEEK => Ok(Talk::Seek { id, hops, how: How::read(from)? }),
        kind::HERE => Ok(Talk::Here { id, hops, leader: Holder::read(from)?, term: Term::read(from)? }),
        kind::THERE => Ok(Talk::There { id, hops, hint: Hint::read(from)? }),
        kind::NOWHERE => Ok(Talk::Nowhere { id, hops, why: Miss::read(from)? }),
        other => unknown(other),
    }
}

fn same_group(group: GroupId, request: &GrantRequest) -> Result<(), EncodeError> {
    if request.group == group { Ok(()) } else { Err(EncodeError::OtherGroup) }
}

impl Wire for Pledge {
    fn write(&self, to: &mut Writer) {
        self.lasts.write(to);
        self.until.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { lasts: Span::read(from)?, until: LocalTime::read(from)? })
    }
}

impl Wire for Hint {
    fn write(&self, to: &mut Writer) {
        self.holder.write(to);
        self.term.write(to);
        self.remaining.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { holder: NodeId::read(from)?, term: Term::read(from)?, remaining: LocalSpan::read(from)? })
    }
}

impl Wire for How {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Redirect => to.byte(0),
            Self::Campaign { wait } => {
                to.byte(1);
                wait.write(to);
            }
            Self::Buffer { wait } => {
                to.byte(2);
                wait.write(to);
            }
            Self::Refuse => to.byte(3),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::Redirect),
            1 => Ok(Self::Campaign { wait: Span::read(from)? }),
            2 => Ok(Self::Buffer { wait: Span::read(from)? }),
            3 => Ok(Self::Refuse),
            other => unknown(other),
        }
    }
}

impl Wire for Miss {
    fn write(&self, to: &mut Writer) {
        to.byte(match self {
            Self::NotLeader => 0,
            Self::Unknown => 1,
            Self::Full => 2,
            Self::TimedOut => 3,
            Self::Outdated => 4,
            Self::NoHopsLeft => 5,
            Self::Unanswered => 6,
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::NotLeader),
            1 => Ok(Self::Unknown),
            2 => Ok(Self::Full),
            3 => Ok(Self::TimedOut),
            4 => Ok(Self::Outdated),
            5 => Ok(Self::NoHopsLeft),
            6 => Ok(Self::Unanswered),
            other => unknown(other),
        }
    }
}
