//! How ports are connected.

use tenure_proto::classic::Port;

/// A network: which port, at which node, hears a message said into a port.
pub trait Wiring: Copy {
    /// A node and one of its ports, as small as it can be.
    type End: Copy;
    /// The network of so many nodes.
    fn of(nodes: u32) -> Self;
    /// How many nodes there are.
    fn nodes(self) -> u32;
    /// How many ports a node has.
    fn ports(self, node: u32) -> u32;
    /// Where what `node` says into `port` is heard.
    fn far_end(self, node: u32, port: Port) -> Self::End;
    /// The node of an end.
    fn node(end: Self::End) -> u32;
    /// The port of an end.
    fn port(end: Self::End) -> Port;
}

/// A ring. Port 0 is counter-clockwise, port 1 clockwise; node 0 follows the last one. At most 2^31
/// nodes: an end is a number of 32 bits, the port in the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring(pub u32);

const HIGHEST: u32 = 1 << 31;

impl Wiring for Ring {
    type End = u32;

    fn of(nodes: u32) -> Self {
        Self(nodes)
    }

    fn nodes(self) -> u32 {
        self.0
    }

    fn ports(self, _node: u32) -> u32 {
        2
    }

    fn far_end(self, node: u32, port: Port) -> u32 {
        if port.0 == 1 {
            let next = node + 1;
            if next == self.0 { 0 } else { next }
        } else {
            (if node == 0 { self.0 - 1 } else { node - 1 }) | HIGHEST
        }
    }

    fn node(end: u32) -> u32 {
        end & !HIGHEST
    }

    fn port(end: u32) -> Port {
        Port(end >> 31)
    }
}

/// A star. Node 0 is the centre and has a port for each other node; the others have one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Star(pub u32);

impl Wiring for Star {
    type End = (u32, Port);

    fn of(nodes: u32) -> Self {
        Self(nodes)
    }

    fn nodes(self) -> u32 {
        self.0
    }

    fn ports(self, node: u32) -> u32 {
        if node == 0 { self.0 - 1 } else { 1 }
    }

    fn far_end(self, node: u32, port: Port) -> (u32, Port) {
        if node == 0 { (port.0 + 1, Port(0)) } else { (0, Port(node - 1)) }
    }

    fn node(end: (u32, Port)) -> u32 {
        end.0
    }

    fn port(end: (u32, Port)) -> Port {
        end.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::classic::{LEFT, RIGHT};

    #[test]
    fn what_is_said_to_the_right_is_heard_on_the_left_of_the_next() {
        let ring = Ring(5);
        for (node, port, heard_by, heard_on) in
            [(0, RIGHT, 1, LEFT), (4, RIGHT, 0, LEFT), (0, LEFT, 4, RIGHT)]
        {
            let end = ring.far_end(node, port);
            assert_eq!((Ring::node(end), Ring::port(end)), (heard_by, heard_on));
        }
    }

    #[test]
    fn a_ring_of_one_and_of_two_are_rings_too() {
        let end = Ring(1).far_end(0, RIGHT);
        assert_eq!((Ring::node(end), Ring::port(end)), (0, LEFT));
        let ends = [LEFT, RIGHT].map(|port| Ring(2).far_end(0, port));
        assert_eq!(ends.map(|end| (Ring::node(end), Ring::port(end))), [(1, RIGHT), (1, LEFT)]);
    }

    #[test]
    fn each_port_of_the_centre_leads_to_a_leaf_and_back() {
        let star = Star(4);
        for port in 0..star.ports(0) {
            let (leaf, at) = star.far_end(0, Port(port));
            assert_eq!(star.far_end(leaf, at), (0, Port(port)));
        }
    }
}
