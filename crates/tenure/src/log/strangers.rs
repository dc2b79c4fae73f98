//! Callers that have not proved yet that they hold the key: few, and the oldest go first, so that
//! strangers cannot keep members away by calling and saying nothing.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use tokio::task::AbortHandle;

/// How many there may be.
const STRANGERS: usize = 32;

/// Callers that have proved nothing yet, the oldest first.
#[derive(Default)]
pub(super) struct Strangers(VecDeque<(IpAddr, AbortHandle)>);

impl Strangers {
    /// One more. If there are too many another one goes.
    pub(super) fn admit(&mut self, from: IpAddr, caller: AbortHandle) {
        self.0.retain(|(_, caller)| !caller.is_finished());
        if self.0.len() >= STRANGERS {
            let networks: Vec<IpAddr> = self.0.iter().map(|(network, _)| *network).collect();
            if let Some((_, oldest)) = self.0.remove(who_goes(&networks)) {
                oldest.abort();
            }
        }
        self.0.push_back((network(from), caller));
    }
}

/// The first one of the network that has most of them.
fn who_goes(networks: &[IpAddr]) -> usize {
    let count = |network| networks.iter().filter(|other| *other == network).count();
    let most = networks.iter().map(count).max();
    networks.iter().position(|network| Some(count(network)) == most).unwrap_or(0)
}

/// Whose address this is: of IPv6 everybody has a whole network, for the asking.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_places_are_taken_the_oldest_caller_of_the_busiest_network_goes() {
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(who_goes(&[a, b, c]), 0);
        assert_eq!(who_goes(&[a, b, c, b]), 1);
        assert_eq!(who_goes(&[a, b, c, c, a, c]), 2);
    }

    #[test]
    fn a_whole_network_of_ipv6_is_one_caller() {
        let [one, other, far] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"]
            .map(|text| network(text.parse::<IpAddr>().unwrap()));
        assert!(one == other && one != far);
        assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1".parse::<IpAddr>().unwrap());
    }
}
