//! The errors of a node, each with what to do about it.

use std::io;
use std::path::PathBuf;

use tenure_proto::strong::edict::NotLeader;
use thiserror::Error;

use crate::config::ConfigError;
use crate::guard::MAX_PROCLAIM;
use crate::name::{GroupName, NodeName};
use crate::seal::KeyRefusal;
use crate::store::StoreError;

/// The reason why a node did not start. It has granted nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}; change `listen`, or stop the program that has this port")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The trace cannot be written.
    #[error("cannot write the trace to {}: {error}; change `trace`", path.display())]
    Trace {
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The system gave no thread or no timer.
    #[error("the system refuses what a node needs: {0}")]
    System(#[from] io::Error),
}

/// The reason why a key was not revoked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// This node is no member: only members refuse keys.
    #[error("this node is no member, or does not know the members yet: ask a member")]
    NotAMember,
    /// The key expired so long ago that nobody needs to remember it.
    #[error("the key has expired more than 90 days ago: members refuse it anyhow")]
    Expired,
    /// The list has as many keys as it can have.
    #[error(
        "the list of revoked keys is full: change the cluster's key (`tenure key rotate`), which ends all keys made from it"
    )]
    Full,
    /// The node has stopped.
    #[error(transparent)]
    Stopped(Stopped),
}

/// The reason why a node has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Stopped {
    /// [`Node::shutdown`](crate::Node::shutdown) was called, or the node was dropped.
    #[error("the node was shut down")]
    ShutDown,
    /// The store failed: the promises of this node may not be on the disk.
    #[error(
        "the store failed ({reason}): the node has stopped, for it may no longer promise anything; mend the disk and restart"
    )]
    Store {
        /// The error of the disk.
        reason: String,
    },
    /// The clock was found beyond its bound.
    #[error("the clock cannot be trusted ({reason}): the node has stopped leading and granting")]
    Clock {
        /// The observation.
        reason: String,
    },
    /// The cluster goes by bounds that this node's configuration does not fit.
    #[error("{reason}")]
    Config {
        /// The setting that does not fit, and what to do.
        reason: String,
    },
    /// A process that is no member has a member's name, or a new store has that of an old one.
    #[error(
        "the cluster has a member called '{name}' already, with another store: choose another name; one that lost its disk comes back under a new name, by `members replace`"
    )]
    NameTaken {
        /// Which.
        name: NodeName,
    },
    /// Members have heard a later life of this store, or another process with it: it is a copy, or
    /// was put back from a backup.
    #[error(
        "the store of '{name}' is in life {life}, but members have heard life {highest}: it is a copy, or was put back from a \
         backup, and has forgotten promises; delete it and bring the host back under a new name with `tenure members replace`"
    )]
    RolledBack {
        /// Whose.
        name: NodeName,
        /// The life of this start.
        life: u128,
        /// The highest that members have heard.
        highest: u128,
    },
    /// The node's thread died.
    #[error("the node's thread has ended unexpectedly: this is a bug")]
    Crashed,
}

/// The reason why a campaign ended without a leadership.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// This node already campaigns for the group or leads it.
    #[error("this node already campaigns for or leads '{group}': clone the guard that you have")]
    AlreadyCampaigning {
        /// Which.
        group: GroupName,
    },
    /// A witness or an observer never leads.
    #[error("this node is a {role}, which never leads: set `role` to \"member\" or \"candidate\"")]
    NotACandidate {
        /// The role of this node.
        role: &'static str,
    },
    /// The list of groups is closed and this one is not on it, or this node's key does not allow
    /// it.
    #[error(
        "the group '{group}' is not among those that this node may lead: add it to `groups`, or ask for a key whose scope has it"
    )]
    OutOfScope {
        /// Which.
        group: GroupName,
    },
    /// Too many members have reached the limit of groups for this node's key: no quorum is left.
    #[error(
        "the members know too many groups of this key to know '{group}' as well: lead fewer at once, wait until they forget some (`limits.forget_after`), use another key, or raise `limits.groups_per_key` at the members"
    )]
    TooManyGroups {
        /// Which.
        group: GroupName,
    },
    /// A repair of absurd terms has barred the group: nobody leads it.
    #[error(
        "the group '{group}' is barred since terms were repaired, because it holds a higher term: reset the fences of its resources, then `tenure members repair-terms lift {group}`; or use a group of another name"
    )]
    Barred {
        /// Which.
        group: GroupName,
    },
    /// The members refuse the key of this process.
    #[error("the members refuse this key: it {why}; ask for a new one (`tenure key derive`)")]
    KeyRefused {
        /// Why.
        why: KeyRefusal,
    },
    /// There are too many bytes to publish.
    #[error("{length} bytes cannot be published: at most {MAX_PROCLAIM}")]
    TooLong {
        /// How many were given.
        length: usize,
    },
    /// Another process speaks under the name of this one. The members serve the one that began
    /// last.
    #[error(
        "another process speaks under the name '{name}', and began later: give each a name of its own, or one key for many names (`tenure key derive`)"
    )]
    NameInUse {
        /// The name.
        name: NodeName,
    },
    /// The name is none.
    #[error(transparent)]
    Name(#[from] crate::name::NameError),
    /// No memory that a forked child finds empty.
    #[error("the system gives no page that is wiped on fork ({reason}): Linux 4.14 or later is needed")]
    Memory {
        /// The message.
        reason: String,
    },
    /// The node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why this process takes no part in an eventual or a local group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KindError {
    /// Only members take part.
    #[error(
        "this node is a {role} and no member of the cluster, or there are too many such groups: only members take part in eventual and local groups"
    )]
    NotAMember {
        /// The role of this node.
        role: &'static str,
    },
    /// The assumptions about a local group contradict each other.
    #[error("{reason}")]
    Refused {
        /// The inequality that does not hold, and values for which it would.
        reason: String,
    },
    /// The name is none.
    #[error(transparent)]
    Name(#[from] crate::name::NameError),
    /// The node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why a leadership was not handed over. Unless it is lost, this process still leads.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// This process does not lead, so there is nothing to hand over.
    #[error("this process does not lead any more")]
    NotLeader,
    /// The other process did not answer, or does not campaign for the group.
    #[error("'{to}' did not take over: it must run, be reachable and campaign for the same group")]
    Declined {
        /// Who.
        to: NodeName,
    },
    /// The other process did not say that it stands by. Nothing has changed.
    #[error("'{to}' does not stand by: it must run, be reachable and campaign for the same group")]
    NotStandingBy {
        /// Who.
        to: NodeName,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// The reason why an edict was not proclaimed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProclaimError {
    /// This process does not lead.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// Too many bytes.
    #[error("{length} bytes cannot be proclaimed: at most {MAX_PROCLAIM}")]
    TooLong {
        /// How many were given.
        length: usize,
    },
}

/// The reason why the leader could not be verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// No leader answered in time.
    #[error("no leader of '{group}' answered in time")]
    NoLeader {
        /// The group.
        group: GroupName,
    },
    /// The members refuse the key of this process.
    #[error("the members refuse this key: it {why}; ask for a new one (`tenure key derive`)")]
    KeyRefused {
        /// Why.
        why: KeyRefusal,
    },
    /// The name is none.
    #[error(transparent)]
    Name(#[from] crate::name::NameError),
    /// The node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why a leader did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// No leader was found. Nothing was done.
    #[error(
        "no leader of '{group}' was found: somebody must campaign for it, and a quorum of members must run"
    )]
    NoLeader {
        /// The group.
        group: GroupName,
    },
    /// The leader refused. Nothing was done.
    #[error("the leader declined: {reason}")]
    Declined {
        /// Why.
        reason: String,
    },
    /// The program that leads does not listen for requests. Nothing was done.
    #[error(
        "the program that leads takes no requests: it must call `Tenure::asked`, or lead by `Node::lead` or `tenure run`; to move the leadership, stop it"
    )]
    NotListening,
    /// The key of this process may not ask anything of leaders.
    #[error(
        "this key may not ask anything of leaders: use the cluster's key or an operator's (`tenure key derive`)"
    )]
    NotAllowed,
    /// The leader did not answer in time, and may still do it.
    #[error("the leader did not answer in time, and may still do it: look who leads before you ask again")]
    Timeout,
    /// Too many bytes to proclaim.
    #[error("{length} bytes cannot be proclaimed: at most {MAX_PROCLAIM}")]
    TooLong {
        /// How many were given.
        length: usize,
    },
    /// The members refuse the key of this process.
    #[error("the members refuse this key: it {why}; ask for a new one (`tenure key derive`)")]
    KeyRefused {
        /// Why.
        why: KeyRefusal,
    },
    /// The name is none.
    #[error(transparent)]
    Name(#[from] crate::name::NameError),
    /// The node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why the members did not change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// This node is no member: only a member can propose a change.
    #[error("this node is no member: ask a member to change the members")]
    NotAMember,
    /// The process to be added is a member already.
    #[error("'{name}' is a member already: see `tenure members list`")]
    AlreadyMember {
        /// Who.
        name: NodeName,
    },
    /// The process to be removed is no member.
    #[error("'{name}' is no member: see `tenure members list`")]
    NoSuchMember {
        /// Who.
        name: NodeName,
    },
    /// The group is not barred, so no bar can be lifted.
    #[error("the group '{group}' is not barred: see `tenure status`")]
    NotBarred {
        /// Which.
        group: String,
    },
    /// The last member cannot be removed.
    #[error("'{name}' is the last member and cannot be removed: add another first, or stop the cluster")]
    LastMember {
        /// Who.
        name: NodeName,
    },
    /// The new member does not answer: it must run before it is added.
    #[error(
        "'{name}' does not answer: it must have joined and run, under that name and address and with this cluster's key, before it is added"
    )]
    Unreachable {
        /// Who.
        name: NodeName,
    },
    /// The members that answer would be no quorum afterwards.
    #[error(
        "of the {members} members afterwards only {live} answer, which is no quorum: bring more of them back first, or force it"
    )]
    NoQuorumLeft {
        /// How many would answer.
        live: usize,
        /// Of how many.
        members: usize,
    },
    /// The members that answer are no quorum, and only a quorum changes the members.
    #[error(
        "of the {members} members only {live} answer, which is no quorum, and only a quorum changes the members: bring \
         more of them back first; if they are lost for good, see `tenure members force-remove`"
    )]
    NoQuorumNow {
        /// How many answer.
        live: usize,
        /// Of how many.
        members: usize,
    },
    /// The change cannot be made, or another change overtook it.
    #[error("{reason}")]
    Halted {
        /// Why.
        reason: String,
    },
    /// The node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
