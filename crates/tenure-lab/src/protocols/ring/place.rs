//! A node at its place, and one step of it: what all drivers share.

use tenure_proto::classic::{Knows, Node, Standing, Turn};

use super::outcome::Tally;

/// A node and its count.
pub(super) struct Place<N> {
    pub(super) node: N,
    pub(super) steps: u32,
}

impl<N: Node> Place<N> {
    /// All nodes, asleep, each with so many ports. They are told their ids only if they have any;
    /// but there are as many as ids.
    pub(super) fn all(ids: &[u32], ports: impl Fn(u32) -> u32) -> Vec<Self> {
        let size = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let asleep = |(place, id): (u32, &u32)| Self {
            node: N::new(N::Knows::told(*id, size), ports(place)),
            steps: 0,
        };
        (0..size).zip(ids).map(asleep).collect()
    }

    /// One step at this time, counted. Gives the round for which the node asks, if it does.
    pub(super) fn step(
        &mut self,
        now: u64,
        tally: &mut Tally,
        mut turn: Turn<'_, N::Message>,
        act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>),
    ) -> Option<u64> {
        let led = self.node.standing() == Standing::Leader;
        act(&mut self.node, &mut turn);
        self.steps = self.steps.saturating_add(1);
        tally.events += 1;
        if !led && self.node.standing() == Standing::Leader {
            tally.leaders += 1;
            // Not every driver visits nodes in the order of time.
            tally.elected_at = Some(tally.elected_at.map_or(now, |first| first.min(now)));
        }
        turn.wanted()
    }
}
