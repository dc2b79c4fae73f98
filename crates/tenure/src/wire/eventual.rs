//! The messages of the members of an eventual group. The messages themselves are written as those
//! of a log's own election are.
//!
//! The group is said by name, always: a member that hears of it for the first time takes part from
//! then on. The epoch of the cluster is said too, for states are told by the members' places, and
//! another epoch has other members.

use tenure_proto::eventual::Message;
use tenure_proto::quorum::MAX_MEMBERS;
use tenure_proto::strong::epoch::Epoch;

use super::{EncodeError, limit};
use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::name::GroupName;

/// A message of an eventual group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventualTalk {
    /// Which group.
    pub group: GroupName,
    /// The epoch of the cluster.
    pub charter: Epoch,
    /// The message of the election.
    pub message: Message,
}

impl EventualTalk {
    pub(super) fn write(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match &self.message {
            Message::Alive { .. } | Message::Accuse { .. } => {
                return Err(EncodeError::Unspoken("the elections that only the laboratory has"));
            }
            Message::Status { registry, .. } => limit(registry.len(), MAX_MEMBERS)?,
            _ => {}
        }
        self.group.write(to);
        self.charter.write(to);
        self.message.write(to);
        Ok(())
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { group: GroupName::read(from)?, charter: Epoch::read(from)?, message: Message::read(from)? })
    }
}
