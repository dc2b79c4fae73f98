//! The name of a process, and where it is reached.

use tenure_proto::NodeId;

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::name::NodeName;

/// The longest address, in bytes: room for the name of a host, 249 bytes, and a port.
pub const MAX_ADDRESS: usize = 255;

/// A node and its address.
///
/// The epoch knows ids only: names and addresses are kept and sent beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Its name.
    pub name: NodeName,
    /// `host:port`, if known: visible ASCII, at most [`MAX_ADDRESS`] bytes. Only a use shows
    /// whether it is an address.
    pub address: Option<String>,
}

impl Contact {
    /// The number by which the protocol knows it.
    pub fn id(&self) -> NodeId {
        self.name.id()
    }
}

/// Addresses are shown to people and given to resolvers: nothing that a terminal or a log would act
/// on.
pub(crate) fn is_address(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Wire for Contact {
    /// A box within the list: a later version may say more of each.
    fn write(&self, to: &mut Writer) {
        to.boxed(|to| {
            self.name.write(to);
            to.option(self.address.as_ref(), |to, address| to.text(address));
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.boxed(|from| {
            let name = NodeName::read(from)?;
            let address = from.option(|from| match from.text(MAX_ADDRESS)? {
                text if is_address(text) => Ok(text.to_owned()),
                _ => Err(DecodeError::Invalid),
            })?;
            Ok(Self { name, address })
        })
    }
}
