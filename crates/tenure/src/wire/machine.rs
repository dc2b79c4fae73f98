//! The messages of the strong machine: asking, granting, refusing, giving back, and signs of life.
//!
//! A message about a group begins with the group: its number, or its name where the receiver may
//! not know the number. The name's number is computed, not sent, so a name never comes with the
//! number of another group.

use tenure_proto::GroupId;
use tenure_proto::detect::weak::Beat;
use tenure_proto::quorum::{MAX_MEMBERS, NodeSet};
use tenure_proto::strong::epoch::{Epoch, EpochTalk};
use tenure_proto::strong::{GrantRequest, HeightTalk, InstanceId, Kind, Message, Refusal, Term};
use tenure_proto::time::{Incarnation, LocalSpan, LocalTime, Span, Stamp};

use super::{EncodeError, Item, limit, tag, talk, unknown};
use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};
use crate::name::GroupName;

/// Writes the fields and says what they are.
pub(super) fn write(
    name: Option<&GroupName>,
    message: &Message,
    to: &mut Writer,
) -> Result<u64, EncodeError> {
    match message {
        Message::Request(request) => {
            write_group(name, request.group, to)?;
            write_request(request, to);
            Ok(tag::REQUEST)
        }
        Message::Extend { request, alive, priority } => {
            write_group(name, request.group, to)?;
            write_request(request, to);
            alive.write(to);
            to.byte(*priority);
            Ok(tag::EXTEND)
        }
        Message::Here { epoch, beats } => {
            no_group(name)?;
            limit(beats.len(), MAX_MEMBERS)?;
            epoch.write(to);
            write_list(to, beats);
            Ok(tag::HERE)
        }
        Message::Ok { group, epoch, id, at } => {
            write_group(name, *group, to)?;
            epoch.write(to);
            id.write(to);
            at.write(to);
            Ok(tag::OK)
        }
        Message::Nack { group, id, refusal, max_term } => {
            write_group(name, *group, to)?;
            id.write(to);
            refusal.write(to);
            max_term.write(to);
            Ok(tag::NACK)
        }
        Message::Release { group, upto } => {
            write_group(name, *group, to)?;
            upto.write(to);
            Ok(tag::RELEASE)
        }
        Message::Talk { group, talk } => {
            write_group(name, *group, to)?;
            talk::write(*group, talk, to)?;
            Ok(tag::TALK)
        }
        Message::Epoch(talk) => {
            no_group(name)?;
            talk.write(to);
            Ok(tag::EPOCH)
        }
        Message::Height(talk) => {
            no_group(name)?;
            let top = match talk {
                HeightTalk::Ask => None,
                HeightTalk::Top(top) => Some(top),
            };
            to.option(top, |to, top| top.write(to));
            Ok(tag::HEIGHT)
        }
        Message::Wedge(_) => Err(EncodeError::Unspoken("wedged epochs")),
        Message::Recovery(_) => Err(EncodeError::Unspoken("recovery from a lost disk")),
    }
}

/// Reads the fields that belong to a tag; `None` if nobody here knows it.
pub(super) fn read(tag: u64, from: &mut Reader<'_>) -> Result<Option<Item>, DecodeError> {
    let (group, message) = match tag {
        tag::HERE => (None, read_here(from)?),
        tag::EPOCH => (None, Message::Epoch(EpochTalk::read(from)?)),
        tag::HEIGHT => {
            let top = from.option(Term::read)?;
            (None, Message::Height(top.map_or(HeightTalk::Ask, HeightTalk::Top)))
        }
        tag::REQUEST | tag::EXTEND | tag::OK | tag::NACK | tag::RELEASE | tag::TALK => {
            let (name, group) = read_group(from)?;
            (name, read_of_group(tag, group, from)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(Item::Machine { group, message }))
}

fn read_of_group(tag: u64, group: GroupId, from: &mut Reader<'_>) -> Result<Message, DecodeError> {
    match tag {
        tag::REQUEST => Ok(Message::Request(read_request(group, from)?)),
        tag::EXTEND => Ok(Message::Extend {
            request: read_request(group, from)?,
            alive: NodeSet::read(from)?,
            priority: from.byte()?,
        }),
        tag::OK => Ok(Message::Ok {
            group,
            epoch: Epoch::read(from)?,
            id: InstanceId::read(from)?,
            at: Stamp::read(from)?,
        }),
        tag::NACK => Ok(Message::Nack {
            group,
            id: InstanceId::read(from)?,
            refusal: Refusal::read(from)?,
            max_term: Term::read(from)?,
        }),
        tag::RELEASE => Ok(Message::Release { group, upto: InstanceId::read(from)? }),
        tag::TALK => Ok(Message::Talk { group, talk: talk::read(group, from)? }),
        other => Err(DecodeError::Kind(other)),
    }
}

/// One sign of life a member, and there are no more members than that.
fn read_here(from: &mut Reader<'_>) -> Result<Message, DecodeError> {
    Ok(Message::Here { epoch: Epoch::read(from)?, beats: read_list(from, MAX_MEMBERS)? })
}

const BY_NUMBER: u8 = 0;
const BY_NAME: u8 = 1;

fn write_group(name: Option<&GroupName>, group: GroupId, to: &mut Writer) -> Result<(), EncodeError> {
    match name {
        None => {
            to.byte(BY_NUMBER);
            group.write(to);
        }
        Some(name) if name.id() == group => {
            to.byte(BY_NAME);
            name.write(to);
        }
        Some(_) => return Err(EncodeError::OtherGroup),
    }
    Ok(())
}

fn read_group(from: &mut Reader<'_>) -> Result<(Option<GroupName>, GroupId), DecodeError> {
    match from.byte()? {
        BY_NUMBER => Ok((None, GroupId::read(from)?)),
        BY_NAME => {
            let name = GroupName::read(from)?;
            let group = name.id();
            Ok((Some(name), group))
        }
        other => unknown(other),
    }
}

/// A message about all groups at once has no name.
fn no_group(name: Option<&GroupName>) -> Result<(), EncodeError> {
    if name.is_some() { Err(EncodeError::OtherGroup) } else { Ok(()) }
}

/// All of a request but its group, which has been said.
pub(super) fn write_request(request: &GrantRequest, to: &mut Writer) {
    request.epoch.write(to);
    request.id.write(to);
    request.start.write(to);
    request.lease.write(to);
    to.byte(match request.kind {
        Kind::Acquire => 0,
        Kind::Renew => 1,
    });
    request.term.write(to);
}

pub(super) fn read_request(group: GroupId, from: &mut Reader<'_>) -> Result<GrantRequest, DecodeError> {
    Ok(GrantRequest {
        group,
        epoch: Epoch::read(from)?,
        id: InstanceId::read(from)?,
        start: LocalTime::read(from)?,
        lease: Span::read(from)?,
        kind: match from.byte()? {
            0 => Kind::Acquire,
            1 => Kind::Renew,
            other => return unknown(other),
        },
        term: Term::read(from)?,
    })
}

impl Wire for Option<Beat> {
    fn write(&self, to: &mut Writer) {
        to.option(self.as_ref(), |to, beat| {
            beat.incarnation.write(to);
            to.number(beat.count);
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.option(|from| Ok(Beat { incarnation: Incarnation::read(from)?, count: from.number()? }))
    }
}

impl Wire for Refusal {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Busy { holder, remaining } => {
                to.byte(0);
                holder.write(to);
                remaining.write(to);
            }
            Self::StaleTerm => to.byte(1),
            Self::LeaseTooLong => to.byte(2),
            Self::Released => to.byte(3),
            Self::FromTheFuture => to.byte(4),
            Self::Young => to.byte(5),
            Self::Wedged => to.byte(6),
            Self::Draining => to.byte(7),
            Self::TooHigh { wait } => {
                to.byte(8);
                wait.write(to);
            }
            Self::Implausible => to.byte(9),
            Self::TooManyGroups => to.byte(16),
            Self::Barred => to.byte(17),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::Busy { holder: Wire::read(from)?, remaining: LocalSpan::read(from)? }),
            1 => Ok(Self::StaleTerm),
            2 => Ok(Self::LeaseTooLong),
            3 => Ok(Self::Released),
            4 => Ok(Self::FromTheFuture),
            5 => Ok(Self::Young),
            6 => Ok(Self::Wedged),
            7 => Ok(Self::Draining),
            8 => Ok(Self::TooHigh { wait: LocalSpan::read(from)? }),
            9 => Ok(Self::Implausible),
            16 => Ok(Self::TooManyGroups),
            17 => Ok(Self::Barred),
            other => unknown(other),
        }
    }
}
