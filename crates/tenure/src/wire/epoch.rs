//! Messages about the members: who decides the next charter, and which is decided.
//!
//! A charter that comes in is checked like one that an operator types: quorums that need not meet
//! are refused, so no process can be talked into a system that elects two leaders.

use std::sync::Arc;

use tenure_proto::strong::Term;
use tenure_proto::strong::epoch::{Ballot, Charter, Denial, Epoch, EpochTalk};
use tenure_proto::time::LocalSpan;

use super::unknown;
use crate::codec::{DecodeError, Reader, Wire, Writer};

/// The kind of a message. Numbers are never used again for something else.
mod kind {
    pub(super) const DECIDED: u8 = 1;
    pub(super) const UNKNOWN: u8 = 2;
    pub(super) const PREPARE: u8 = 3;
    pub(super) const PROMISE: u8 = 4;
    pub(super) const ACCEPT: u8 = 5;
    pub(super) const ACCEPTED: u8 = 6;
    pub(super) const DENIED: u8 = 7;
    pub(super) const GOES_BY: u8 = 8;
}

impl Wire for EpochTalk {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Decided(charter) => {
                to.byte(kind::DECIDED);
                charter.write(to);
            }
            Self::GoesBy(charter) => {
                to.byte(kind::GOES_BY);
                charter.write(to);
            }
            Self::Unknown { newest } => {
                to.byte(kind::UNKNOWN);
                newest.write(to);
            }
            Self::Prepare { epoch, ballot } => write_head(kind::PREPARE, *epoch, ballot, to),
            Self::Promise { epoch, ballot, accepted, top } => {
                write_head(kind::PROMISE, *epoch, ballot, to);
                to.option(accepted.as_ref(), |to, (under, charter)| {
                    under.write(to);
                    charter.write(to);
                });
                top.write(to);
            }
            Self::Accept { epoch, ballot, charter } => {
                write_head(kind::ACCEPT, *epoch, ballot, to);
                charter.write(to);
            }
            Self::Accepted { epoch, ballot } => write_head(kind::ACCEPTED, *epoch, ballot, to),
            Self::Denied { epoch, ballot, denial } => {
                write_head(kind::DENIED, *epoch, ballot, to);
                denial.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            kind::DECIDED => Ok(Self::Decided(Wire::read(from)?)),
            kind::UNKNOWN => Ok(Self::Unknown { newest: Epoch::read(from)? }),
            kind::GOES_BY => Ok(Self::GoesBy(Wire::read(from)?)),
            ballot @ kind::PREPARE..=kind::DENIED => read_ballot(ballot, from),
            other => unknown(other),
        }
    }
}

/// All that is said in a ballot begins with the epoch whose members decide, and the ballot.
fn write_head(kind: u8, epoch: Epoch, ballot: &Ballot, to: &mut Writer) {
    to.byte(kind);
    epoch.write(to);
    ballot.write(to);
}

fn read_ballot(kind: u8, from: &mut Reader<'_>) -> Result<EpochTalk, DecodeError> {
    let (epoch, ballot) = (Epoch::read(from)?, Ballot::read(from)?);
    match kind {
        kind::PREPARE => Ok(EpochTalk::Prepare { epoch, ballot }),
        kind::PROMISE => Ok(EpochTalk::Promise {
            epoch,
            ballot,
            accepted: from.option(read_accepted)?,
            top: Term::read(from)?,
        }),
        kind::ACCEPT => Ok(EpochTalk::Accept { epoch, ballot, charter: Wire::read(from)? }),
        kind::ACCEPTED => Ok(EpochTalk::Accepted { epoch, ballot }),
        kind::DENIED => Ok(EpochTalk::Denied { epoch, ballot, denial: Denial::read(from)? }),
        other => unknown(other),
    }
}

fn read_accepted(from: &mut Reader<'_>) -> Result<(Ballot, Arc<Charter>), DecodeError> {
    Ok((Ballot::read(from)?, Wire::read(from)?))
}

impl Wire for Denial {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Outbid(ballot) => {
                to.byte(0);
                ballot.write(to);
            }
            Self::TooSoon { remaining } => {
                to.byte(1);
                remaining.write(to);
            }
            Self::NotAdjacent => to.byte(2),
            Self::Sealed(epoch) => {
                to.byte(3);
                epoch.write(to);
            }
            Self::Granted(term) => {
                to.byte(4);
                term.write(to);
            }
            Self::Implausible(term) => {
                to.byte(5);
                term.write(to);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::Outbid(Ballot::read(from)?)),
            1 => Ok(Self::TooSoon { remaining: LocalSpan::read(from)? }),
            2 => Ok(Self::NotAdjacent),
            3 => Ok(Self::Sealed(Epoch::read(from)?)),
            4 => Ok(Self::Granted(Term::read(from)?)),
            5 => Ok(Self::Implausible(Term::read(from)?)),
            other => unknown(other),
        }
    }
}
