//! Requests and what becomes of them, and what members pass on for a hand-over, as bytes.

use tenure_proto::NodeId;
use tenure_proto::strong::{Holder, Talk, Term, Token};

use super::{EncodeError, MAX_PROCLAIM, limit, talk, unknown};
use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::name::{GroupName, NodeName};
use crate::operator_request::{MAX_REASON, OperatorRequest, Reply};

/// Something is asked of a leader, or first: who leads?
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Names the question: random, the same in every copy.
    pub(crate) id: u128,
    /// The group.
    pub(crate) group: GroupName,
    /// The request, its addressee and its term; `None` asks who leads.
    pub(crate) order: Option<Order>,
}

/// A request with the one that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) leader: Holder,
    pub(crate) term: Term,
    pub(crate) request: OperatorRequest,
}

/// The answer to an [`Ask`] of this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) id: u128,
    pub(crate) said: Said,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// This process is supported here. It may lead.
    There { leader: Holder, term: Term },
    /// Nobody is supported here, or there is no way to the one that is meant.
    Nowhere,
    /// The one that was meant does not lead in that term, and has not done what was requested. It
    /// cannot answer for an earlier life.
    NotLeading { term: Term, same_life: bool },
    /// The outcome of the request.
    Of(Reply),
}

/// A word for a hand-over on its way by a member: only these are passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) group: GroupName,
    /// [`Talk::TakeOver`] or [`Talk::Ready`].
    pub(crate) talk: Talk,
}

impl Pass {
    pub(super) fn write(&self, to: &mut Writer) -> Result<(), EncodeError> {
        if !is_passed_on(&self.talk) {
            return Err(EncodeError::Unspoken("this by a detour"));
        }
        self.from.write(to);
        self.to.write(to);
        self.group.write(to);
        talk::write(self.group.id(), &self.talk, to)
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (sender, to, group) = (NodeId::read(from)?, NodeId::read(from)?, GroupName::read(from)?);
        let talk = talk::read(group.id(), from)?;
        if !is_passed_on(&talk) {
            return Err(DecodeError::Invalid);
        }
        Ok(Self { from: sender, to, group, talk })
    }
}

fn is_passed_on(talk: &Talk) -> bool {
    matches!(talk, Talk::TakeOver { .. } | Talk::Ready(_))
}

/// The kind of a message. Numbers are never used again for something else.
mod kind {
    pub(super) const RESIGN: u8 = 1;
    pub(super) const TRANSFER: u8 = 2;
    pub(super) const PROCLAIM: u8 = 3;

    pub(super) const THERE: u8 = 1;
    pub(super) const NOWHERE: u8 = 2;
    pub(super) const NOT_LEADING: u8 = 3;
    pub(super) const GRANTED: u8 = 4;
    pub(super) const DECLINED: u8 = 5;
    pub(super) const NOT_LISTENING: u8 = 6;
    pub(super) const NOT_ALLOWED: u8 = 7;
}

impl Ask {
    /// Whether receivers take it.
    pub(super) fn check(&self) -> Result<(), EncodeError> {
        match &self.order {
            Some(Order { request: OperatorRequest::Proclaim { body }, .. }) => {
                limit(body.len(), MAX_PROCLAIM)
            }
            _ => Ok(()),
        }
    }
}

impl Told {
    /// Whether receivers take it.
    pub(super) fn check(&self) -> Result<(), EncodeError> {
        match &self.said {
            Said::Of(Reply::Declined { reason }) if !is_reason(reason) => Err(EncodeError::TooLong),
            _ => Ok(()),
        }
    }
}

/// Reasons are shown to people: nothing that a terminal would act on.
fn is_reason(text: &str) -> bool {
    text.len() <= MAX_REASON && !text.chars().any(char::is_control)
}

impl Wire for Ask {
    fn write(&self, to: &mut Writer) {
        to.wide(self.id);
        self.group.write(to);
        to.option(self.order.as_ref(), |to, order| {
            order.leader.write(to);
            order.term.write(to);
            order.request.write(to);
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (id, group) = (from.wide()?, GroupName::read(from)?);
        let order = from.option(|from| {
            Ok(Order {
                leader: Holder::read(from)?,
                term: Term::read(from)?,
                request: OperatorRequest::read(from)?,
            })
        })?;
        Ok(Self { id, group, order })
    }
}

impl Wire for OperatorRequest {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Resign => to.byte(kind::RESIGN),
            Self::Transfer { to: successor } => {
                to.byte(kind::TRANSFER);
                successor.write(to);
            }
            Self::Proclaim { body } => {
                to.byte(kind::PROCLAIM);
                to.bytes(body);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            kind::RESIGN => Ok(Self::Resign),
            kind::TRANSFER => Ok(Self::Transfer { to: NodeName::read(from)? }),
            kind::PROCLAIM => Ok(Self::Proclaim { body: from.bytes(MAX_PROCLAIM)?.to_vec() }),
            other => unknown(other),
        }
    }
}

impl Wire for Told {
    fn write(&self, to: &mut Writer) {
        to.wide(self.id);
        match &self.said {
            Said::There { leader, term } => {
                to.byte(kind::THERE);
                leader.write(to);
                term.write(to);
            }
            Said::Nowhere => to.byte(kind::NOWHERE),
            Said::NotLeading { term, same_life } => {
                to.byte(kind::NOT_LEADING);
                term.write(to);
                to.byte(u8::from(*same_life));
            }
            Said::Of(Reply::Fulfilled { token }) => {
                to.byte(kind::GRANTED);
                to.option(token.as_ref(), |to, token| token.write(to));
            }
            Said::Of(Reply::Declined { reason }) => {
                to.byte(kind::DECLINED);
                to.text(reason);
            }
            Said::Of(Reply::NotListening) => to.byte(kind::NOT_LISTENING),
            Said::Of(Reply::NotAllowed) => to.byte(kind::NOT_ALLOWED),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = from.wide()?;
        let said = match from.byte()? {
            kind::THERE => Said::There { leader: Holder::read(from)?, term: Term::read(from)? },
            kind::NOWHERE => Said::Nowhere,
            kind::NOT_LEADING => Said::NotLeading {
                term: Term::read(from)?,
                same_life: match from.byte()? {
                    0 => false,
                    1 => true,
                    other => return unknown(other),
                },
            },
            kind::GRANTED => Said::Of(Reply::Fulfilled { token: from.option(Token::read)? }),
            kind::DECLINED => match from.text(MAX_REASON)? {
                reason if is_reason(reason) => Said::Of(Reply::Declined { reason: reason.to_owned() }),
                _ => return Err(DecodeError::Invalid),
            },
            kind::NOT_LISTENING => Said::Of(Reply::NotListening),
            kind::NOT_ALLOWED => Said::Of(Reply::NotAllowed),
            other => return unknown(other),
        };
        Ok(Self { id, said })
    }
}
