//! The identity of this process, and its keys.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use tenure_proto::NodeId;

use super::keys::{CandidateKey, KeyId, Keyring, Pair, Root};
use super::packet::Sender;
use super::refusal::Versions;
use crate::name::{ClusterId, NodeName};

/// The identity of this process.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: NodeName,
    pub(crate) cluster: ClusterId,
    pub(crate) credentials: Credentials,
    /// Another number in each life of the process, its incarnation: peers see by it that it has
    /// begun anew.
    pub(crate) boot: u128,
    /// The versions of the protocol that it speaks.
    pub(crate) versions: Versions,
}

/// The credentials of this process.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// It holds the cluster's keys, and answers greetings.
    Member(Keyring),
    /// It was given a key of its own, and only greets.
    Outsider(CandidateKey),
}

impl Identity {
    pub(crate) fn member(
        name: NodeName,
        cluster: ClusterId,
        keyring: Keyring,
        boot: u128,
        versions: Versions,
    ) -> Self {
        Self { name, cluster, credentials: Credentials::Member(keyring), boot, versions }
    }

    /// The name must be one that the key allows, and the cluster is that of the key: it works under
    /// no others.
    pub(crate) fn outsider(name: NodeName, key: CandidateKey, boot: u128, versions: Versions) -> Self {
        let cluster = key.cluster();
        Self { name, cluster, credentials: Credentials::Outsider(key), boot, versions }
    }
}

/// The identity with everything that is derived once.
pub(super) struct Me {
    pub(super) name: NodeName,
    pub(super) id: NodeId,
    pub(super) versions: Versions,
    pub(super) boot: u128,
    /// Tells the packets of other clusters apart. Proves nothing.
    pub(super) cluster_tag: [u8; 4],
    /// The cluster's key that this process speaks, or that its own was made from.
    pub(super) spoken: KeyId,
    /// The beginning of its greetings and introductions.
    pub(super) sender: Box<[u8]>,
    pub(super) knock: hmac::Key,
    cluster: ClusterId,
    keys: Keys,
}

/// A key of the cluster, with what greetings under it knock with.
pub(super) struct Accepted {
    pub(super) root: Root,
    members: hmac::Key,
    outsiders: hmac::Key,
}

impl Accepted {
    fn new(root: Root) -> Self {
        Self { members: root.members_knock().key(), outsiders: root.knock.key(), root }
    }

    /// The knock of those who greet as members, or of the others.
    pub(super) fn knock(&self, of_member: bool) -> &hmac::Key {
        if of_member { &self.members } else { &self.outsiders }
    }
}

enum Keys {
    /// Never empty; the spoken one first.
    Member(Vec<Accepted>),
    Outsider(CandidateKey),
}

impl Me {
    pub(super) fn new(identity: Identity) -> Self {
        let Identity { name, cluster, credentials, boot, versions } = identity;
        let hash = digest(&SHA256, format!("tenure cluster {cluster}").as_bytes());
        let cluster_tag = *hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
        let (keys, spoken, sender, knock) = prepare(credentials, cluster, &name);
        Self { id: name.id(), name, versions, boot, cluster_tag, spoken, sender, knock, cluster, keys }
    }

    pub(super) fn set_credentials(&mut self, credentials: Credentials) {
        (self.keys, self.spoken, self.sender, self.knock) = prepare(credentials, self.cluster, &self.name);
    }

    /// The accepted key of this id. An outsider has none: it cannot be greeted.
    pub(super) fn accepted(&self, id: KeyId) -> Option<&Accepted> {
        let Keys::Member(keys) = &self.keys else { return None };
        keys.iter().find(|key| key.root.id == id)
    }

    /// The ids of all accepted keys.
    pub(super) fn accepted_ids(&self) -> Vec<KeyId> {
        match &self.keys {
            Keys::Member(keys) => keys.iter().map(|key| key.root.id).collect(),
            Keys::Outsider(_) => Vec::new(),
        }
    }

    /// Whether a session under this key may go on. An outsider leaves that to the members.
    pub(super) fn accepts(&self, id: KeyId) -> bool {
        matches!(self.keys, Keys::Outsider(_)) || self.accepted(id).is_some()
    }

    /// The key shared with one who says that it is `sender`: if it is, it has the same.
    pub(super) fn pair_of(&self, root: &Root, sender: &Sender<'_>) -> Pair {
        match &sender.claims {
            None => root.pair(sender.name, self.name.as_str()),
            Some(claims) => root.outsider_pair(claims.bytes, self.name.as_str()),
        }
    }

    /// The key shared with a member, of those that this process speaks.
    pub(super) fn pair_with(&self, member: &NodeName) -> Pair {
        match &self.keys {
            Keys::Member(keys) => keys[0].root.pair(self.name.as_str(), member.as_str()),
            Keys::Outsider(key) => key.pair(member.as_str()),
        }
    }
}

fn prepare(
    credentials: Credentials,
    cluster: ClusterId,
    name: &NodeName,
) -> (Keys, KeyId, Box<[u8]>, hmac::Key) {
    match credentials {
        Credentials::Member(keyring) => {
            let keys: Vec<_> = keyring.roots(cluster).into_iter().map(Accepted::new).collect();
            let (spoken, knock) = (keys[0].root.id, keys[0].knock(true).clone());
            (Keys::Member(keys), spoken, Sender::write(spoken, None, name.as_str()), knock)
        }
        Credentials::Outsider(key) => {
            let (spoken, knock) = (key.made_from(), key.knock().key());
            let sender = Sender::write(spoken, Some(key.claims()), name.as_str());
            (Keys::Outsider(key), spoken, sender, knock)
        }
    }
}
