//! The role of a host: to grant, to campaign, both, or neither.

use crate::world::node_id;
use tenure_proto::NodeId;

/// The role of a host (section 3 of the paper: grantors and candidates need not be the same
/// processes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Grants and campaigns.
    Member,
    /// A member that grants and never campaigns.
    Witness,
    /// Campaigns from outside: it was no grantor at the founding.
    Outsider,
    /// Was no grantor at the founding, and never campaigns: it only asks.
    Observer,
    /// Uses what the members keep.
    Client,
}

impl Role {
    /// Whether its user wants to lead.
    pub fn campaigns(self) -> bool {
        matches!(self, Self::Member | Self::Outsider)
    }

    /// Its name, where it is worth one.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::Member => None,
            Self::Witness => Some("witness"),
            Self::Outsider => Some("outsider"),
            Self::Observer => Some("observer"),
            Self::Client => Some("client"),
        }
    }
}

/// Those that campaign.
pub(crate) fn candidates(roles: &[Role]) -> Vec<NodeId> {
    let candidates = roles.iter().enumerate().filter(|(_, role)| role.campaigns());
    candidates.map(|(node, _)| node_id(node)).collect()
}

/// The hosts in words: `5 nodes, 1 of them a witness, and 2 outsiders`.
pub fn company(roles: &[Role]) -> String {
    let many = |wanted: Role| roles.iter().filter(|role| **role == wanted).count();
    let named = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    let mut text = named(many(Role::Member) + many(Role::Witness), "node");
    match many(Role::Witness) {
        0 => {}
        1 => text += ", 1 of them a witness",
        witnesses => text += &format!(", {witnesses} of them witnesses"),
    }
    for role in [Role::Outsider, Role::Observer, Role::Client] {
        if let (count @ 1.., Some(name)) = (many(role), role.label()) {
            text += &format!(", {}", named(count, name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_there_is_said_in_words_and_members_alone_as_ever() {
        use Role::{Member, Observer, Outsider, Witness};
        assert_eq!(company(&[Member]), "1 node");
        assert_eq!(
            company(&[Member, Member, Witness, Outsider, Outsider, Observer]),
            "3 nodes, 1 of them a witness, 2 outsiders, 1 observer"
        );
        assert_eq!(candidates(&[Member, Witness, Outsider, Observer]), [NodeId(0), NodeId(2)]);
    }
}
