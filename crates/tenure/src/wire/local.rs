//! The messages of the members of a local group. They carry the group's name, so that a node that
//! does not take part can tell.

use tenure_proto::NodeId;
use tenure_proto::detect::fail_aware::{Header, HelperStamp};
use tenure_proto::local::{Body, Datagram, RequestId};
use tenure_proto::quorum::NodeSet;
use tenure_proto::time::{Incarnation, LocalTime};

use super::unknown;
use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::name::GroupName;

/// A datagram of a local group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalTalk {
    /// Which group.
    pub group: GroupName,
    /// The datagram of the protocol.
    pub datagram: Datagram,
}

/// The kind of a message. Numbers are never reused for something else.
mod kind {
    pub(super) const ELECTION: u8 = 1;
    pub(super) const REPLY: u8 = 2;
    pub(super) const RELEASE: u8 = 3;
    pub(super) const HELPER: u8 = 4;
}

impl Wire for LocalTalk {
    fn write(&self, to: &mut Writer) {
        let Datagram { header, fingerprint, turn, body } = &self.datagram;
        self.group.write(to);
        header.write(to);
        to.number(*fingerprint);
        to.number(*turn);
        body.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let group = GroupName::read(from)?;
        let header = Header::read(from)?;
        let (fingerprint, turn) = (from.number()?, from.number()?);
        Ok(Self { group, datagram: Datagram { header, fingerprint, turn, body: Body::read(from)? } })
    }
}

impl Wire for Header {
    fn write(&self, to: &mut Writer) {
        self.incarnation.write(to);
        to.number(self.number);
        self.sent.write(to);
        for helper in &self.helpers {
            to.option(helper.as_ref(), |to, helper| helper.write(to));
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            incarnation: Incarnation::read(from)?,
            number: from.number()?,
            sent: LocalTime::read(from)?,
            helpers: [from.option(HelperStamp::read)?, from.option(HelperStamp::read)?],
        })
    }
}

impl Wire for HelperStamp {
    fn write(&self, to: &mut Writer) {
        self.sent.write(to);
        self.received.write(to);
        self.incarnation.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            sent: LocalTime::read(from)?,
            received: LocalTime::read(from)?,
            incarnation: Incarnation::read(from)?,
        })
    }
}

impl Wire for RequestId {
    fn write(&self, to: &mut Writer) {
        self.incarnation.write(to);
        to.number(self.number);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { incarnation: Incarnation::read(from)?, number: from.number()? })
    }
}

impl Wire for Body {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Election { request, alive, collate, members } => {
                to.byte(kind::ELECTION);
                request.write(to);
                alive.write(to);
                to.byte(u8::from(*collate));
                members.write(to);
            }
            Self::Reply { root, request, answered, support } => {
                to.byte(kind::REPLY);
                root.write(to);
                request.write(to);
                answered.write(to);
                support.write(to);
            }
            Self::Release { request } => {
                to.byte(kind::RELEASE);
                request.write(to);
            }
            Self::Helper => to.byte(kind::HELPER),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.byte()? {
            kind::ELECTION => Self::Election {
                request: RequestId::read(from)?,
                alive: NodeSet::read(from)?,
                collate: from.byte()? != 0,
                members: NodeSet::read(from)?,
            },
            kind::REPLY => Self::Reply {
                root: NodeId::read(from)?,
                request: RequestId::read(from)?,
                answered: NodeSet::read(from)?,
                support: NodeSet::read(from)?,
            },
            kind::RELEASE => Self::Release { request: RequestId::read(from)? },
            kind::HELPER => Self::Helper,
            other => return unknown(other),
        })
    }
}
