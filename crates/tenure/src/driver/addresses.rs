//! Other processes: their names, numbers and addresses.
//!
//! Addresses are no part of an epoch. They are hints: from the configuration, from the store, and
//! from what members tell each other. A name is looked up again when its bearer falls silent, for
//! it may have moved. A peer with an authentic session is answered at the address it speaks from;
//! this table is only for peers that must be greeted first.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tenure_proto::{LocalTime, NodeId};

use crate::contact::Contact;
use crate::name::NodeName;

/// The most that is known at once: members, candidates, observers. Processes known by name alone
/// are forgotten long before that ([`Addresses::forget_strangers`]): a key for many names brings up
/// as many as it likes.
const MOST_KNOWN: usize = 100_000;

/// All that is known about one process.
#[derive(Clone, Debug)]
struct Known {
    name: NodeName,
    /// `host:port`, as somebody wrote it.
    address: Option<String>,
    /// The addresses that the name resolves to, as far as is known.
    resolved: Vec<SocketAddr>,
    /// When it was last looked up.
    looked_up: Option<LocalTime>,
}

/// All that are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    known: BTreeMap<NodeId, Known>,
    /// How many of them have no address.
    strangers: usize,
}

impl Addresses {
    /// Somebody tells of a process. A new address replaces an older one; no address leaves it as it
    /// is.
    pub(crate) fn learn(&mut self, contact: &Contact) {
        let id = contact.name.id();
        if let Some(known) = self.known.get_mut(&id) {
            if contact.address.is_some() && known.address != contact.address && known.name == contact.name {
                self.strangers -= usize::from(known.address.is_none());
                known.address.clone_from(&contact.address);
                (known.resolved, known.looked_up) = literal(contact.address.as_deref());
            }
        } else if self.known.len() < MOST_KNOWN {
            let (resolved, looked_up) = literal(contact.address.as_deref());
            let address = contact.address.clone();
            self.strangers += usize::from(address.is_none());
            self.known.insert(id, Known { name: contact.name.clone(), address, resolved, looked_up });
        }
    }

    /// How many are known by name only.
    pub(crate) fn strangers(&self) -> usize {
        self.strangers
    }

    /// Forgets those that are known by name only, but for these.
    pub(crate) fn forget_strangers(&mut self, stays: impl Fn(NodeId) -> bool) {
        self.known.retain(|node, known| known.address.is_some() || stays(*node));
        self.strangers = self.known.values().filter(|known| known.address.is_none()).count();
    }

    pub(crate) fn name(&self, node: NodeId) -> Option<&NodeName> {
        self.known.get(&node).map(|known| &known.name)
    }

    pub(crate) fn of(&self, node: NodeId) -> &[SocketAddr] {
        self.known.get(&node).map_or(&[], |known| &known.resolved)
    }

    /// Where somebody has written that it is.
    pub(crate) fn written_address(&self, node: NodeId) -> Option<&str> {
        self.known.get(&node)?.address.as_deref()
    }

    /// The contacts of these nodes that can be told to others.
    pub(crate) fn contacts(&self, nodes: impl Iterator<Item = NodeId>) -> Vec<Contact> {
        let told = |node| {
            self.known.get(&node).map(|k| Contact { name: k.name.clone(), address: k.address.clone() })
        };
        nodes.filter_map(told).collect()
    }

    /// An address that must be looked up, if it was not lately.
    pub(crate) fn look_up(&mut self, node: NodeId, now: LocalTime, pause: u64) -> Option<String> {
        let known = self.known.get_mut(&node)?;
        let address = known.address.as_ref().filter(|address| address.parse::<SocketAddr>().is_err())?;
        if known.looked_up.is_some_and(|at| now.remaining(at).as_nanos() < pause) {
            return None;
        }
        known.looked_up = Some(now);
        Some(address.clone())
    }

    /// The answer to a look-up. An empty one changes nothing: better an old address than none.
    pub(crate) fn resolved(&mut self, node: NodeId, addresses: Vec<SocketAddr>) {
        if let Some(known) = self.known.get_mut(&node).filter(|_| !addresses.is_empty()) {
            known.resolved = addresses;
        }
    }
}

/// An address of digits needs no look-up.
fn literal(address: Option<&str>) -> (Vec<SocketAddr>, Option<LocalTime>) {
    let address = address.and_then(|text| text.parse().ok());
    (address.into_iter().collect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(name: &str, address: Option<&str>) -> Contact {
        Contact { name: NodeName::new(name).unwrap(), address: address.map(str::to_owned) }
    }

    #[test]
    fn names_that_nobody_wrote_down_are_forgotten_and_addresses_stay() {
        let mut addresses = Addresses::default();
        addresses.learn(&contact("member", Some("127.0.0.1:7")));
        for name in ["one", "two", "three"] {
            addresses.learn(&contact(name, None));
        }
        addresses.learn(&contact("three", Some("127.0.0.1:9")));
        assert_eq!(addresses.strangers(), 2);
        let one = NodeName::new("one").unwrap().id();
        addresses.forget_strangers(|node| node == one);
        assert_eq!((addresses.strangers(), addresses.known.len()), (1, 3));
        assert!(
            addresses.name(one).is_some() && addresses.name(NodeName::new("two").unwrap().id()).is_none()
        );
    }

    #[test]
    fn an_address_of_digits_is_known_at_once_and_a_name_is_looked_up_now_and_then() {
        let mut addresses = Addresses::default();
        addresses.learn(&contact("a", Some("127.0.0.1:7")));
        addresses.learn(&contact("b", Some("b.example:7")));
        let (a, b) = (NodeName::new("a").unwrap().id(), NodeName::new("b").unwrap().id());
        assert_eq!(addresses.of(a), ["127.0.0.1:7".parse().unwrap()]);
        let at = |nanos| LocalTime::from_nanos(nanos);
        assert_eq!(addresses.look_up(a, at(100), 50), None);
        assert_eq!(addresses.look_up(b, at(100), 50).as_deref(), Some("b.example:7"));
        assert_eq!(addresses.look_up(b, at(149), 50), None, "it was looked up just now");
        addresses.resolved(b, vec!["127.0.0.1:8".parse().unwrap()]);
        addresses.resolved(b, Vec::new());
        assert_eq!(addresses.of(b), ["127.0.0.1:8".parse().unwrap()]);
        assert!(addresses.look_up(b, at(150), 50).is_some(), "it may have moved");
    }

    #[test]
    fn who_has_moved_is_found_where_it_was_said_to_be_last() {
        let mut addresses = Addresses::default();
        addresses.learn(&contact("a", Some("127.0.0.1:7")));
        addresses.learn(&contact("a", None));
        addresses.learn(&contact("a", Some("[::1]:9")));
        assert_eq!(addresses.of(NodeName::new("a").unwrap().id()), ["[::1]:9".parse().unwrap()]);
    }
}
