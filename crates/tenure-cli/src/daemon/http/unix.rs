//! The unix socket: the door for the commands of this machine.
//!
//! Nobody can pretend to be another user on it: the system says which user is at the other end
//! (`SO_PEERCRED`). The daemon's own user, root, and the members of `daemon.socket_group` may do
//! everything; anybody else who gets this far may read. The file is `0660`, so that others do not
//! get this far.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::failure::{Failure, messages};
use crate::settings::Settings;
use crate::sockets::Near;

use super::entry::Caller;
use super::listen::{GRACE, Served, exchange, told};
use super::places::For;
use super::stalls::Unstalled;

/// The most connections at a time; more wait.
const MOST_CONNECTIONS: usize = 128;

/// How many connections the system keeps for us before they are accepted.
const BACKLOG: i32 = 64;

/// The group that may do everything, besides the daemon's user and root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Friends {
    group: Option<u32>,
}

/// The socket, open.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    friends: Friends,
    path: PathBuf,
}

impl Socket {
    /// Opens the socket that the settings name, if they do. A socket that an earlier daemon left
    /// there is replaced: the store is locked, so that no two daemons have one file.
    pub(super) fn open(settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(path) = settings.daemon.socket.as_ref().map(|path| settings.resolve(path)) else {
            return Ok(None);
        };
        let group = settings.daemon.socket_group.as_deref().map(group_id).transpose()?;
        let listener = bind(&path, group)
            .and_then(UnixListener::from_std)
            .map_err(|error| messages::socket_refused(path.display(), error))?;
        Ok(Some(Self { listener, friends: Friends { group }, path }))
    }

    /// Refuses what [`Socket::open`] would refuse for the settings' sake.
    pub(super) fn check(settings: &Settings) -> Result<(), Failure> {
        settings.daemon.socket_group.as_deref().map(group_id).transpose().map(drop)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts connections and serves them, until `stopping` turns true.
    ///
    /// The file stays when the daemon ends: a command that finds it and nobody behind it knows that
    /// the daemon is down, and does not show its token to a program that has taken the port
    /// meanwhile.
    pub(super) async fn run(self, service: Served, mut stopping: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        let until = stopping.clone();
        loop {
            let has_room = connections.len() < MOST_CONNECTIONS;
            tokio::select! {
                () = told(&mut stopping) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => {
                        let caller = self.friends.caller(&stream);
                        let stream = Unstalled::new(stream, service.limits.write);
                        let served = exchange(For::Anything, stream, caller, service.clone(), until.clone());
                        connections.spawn(served);
                    }
                    Err(_) => sleep(Duration::from_millis(100)).await, // No file descriptors left, say.
                }
            }
        }
        drop(self.listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(GRACE, ended).await;
        connections.abort_all();
    }
}

impl Friends {
    fn caller(self, stream: &UnixStream) -> Caller {
        // A peer that the system cannot name is nobody's friend.
        let peer = stream.peer_cred().ok();
        let is_friend = peer.as_ref().is_some_and(|peer| self.know(peer, geteuid().as_raw(), in_group));
        Caller::Local { uid: peer.map(|peer| peer.uid()), is_friend }
    }

    /// Whether this peer may do everything. `lookup` says whether a user is in a group.
    fn know(self, peer: &UCred, own: u32, lookup: impl Fn(u32, u32) -> bool) -> bool {
        knows(self.group, (peer.uid(), peer.gid()), own, lookup)
    }
}

fn knows(group: Option<u32>, (uid, gid): (u32, u32), own: u32, lookup: impl Fn(u32, u32) -> bool) -> bool {
    uid == own || uid == 0 || group.is_some_and(|group| gid == group || lookup(uid, group))
}

/// A socket at `path`, in one step, with its mode from the first moment on.
fn bind(path: &Path, group: Option<u32>) -> std::io::Result<StdListener> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    let _ = fs::remove_file(&draft); // Of a daemon that was killed just then.
    let near = Near::new(&draft)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode that the socket has when it is bound, less the umask: never more than
    // this.
    fchmod(&socket, Mode::from_raw_mode(0o660))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(near.path())?)?;
    if let Some(group) = group {
        std::os::unix::fs::chown(&draft, None, Some(group))?;
    }
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&socket, BACKLOG)?;
    fs::rename(&draft, path)?;
    Ok(StdListener::from(socket))
}

/// A group by its name or number, as `/etc/group` has it.
fn group_id(text: &str) -> Result<u32, Failure> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let found = groups.lines().map(Line::of).find(|line| line.name == text);
    found.and_then(|line| line.id).ok_or_else(|| messages::socket_group_unknown(text))
}

/// Whether `/etc/passwd` and `/etc/group` have a user in a group.
fn in_group(uid: u32, group: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    listed(&read("/etc/passwd"), &read("/etc/group"), uid, group)
}

fn listed(passwd: &str, groups: &str, uid: u32, group: u32) -> bool {
    let names: Vec<&str> =
        passwd.lines().map(Line::of).filter(|line| line.id == Some(uid)).map(|line| line.name).collect();
    let mut groups = groups.lines().map(Line::of).filter(|line| line.id == Some(group));
    groups.any(|line| line.last.split(',').any(|member| names.contains(&member)))
}

/// A line of `/etc/passwd` or `/etc/group`: the name first, the number third, the members of a
/// group last.
struct Line<'a> {
    name: &'a str,
    id: Option<u32>,
    last: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let mut parts = line.split(':');
        let name = parts.next().unwrap_or_default();
        let id = parts.nth(1).and_then(|id| id.parse().ok());
        Self { name, id, last: line.rsplit(':').next().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_daemons_user_root_and_the_group_may_do_everything_and_nobody_else() {
        let none = |_, _| false;
        assert!(knows(None, (1000, 1000), 1000, none) && knows(None, (0, 0), 1000, none));
        assert!(!knows(None, (1001, 1000), 1000, |_, _| true), "its group is no friend unless it is named");
        assert!(knows(Some(7), (1001, 7), 1000, none));
        assert!(knows(Some(7), (1001, 1001), 1000, |uid, gid| (uid, gid) == (1001, 7)));
        assert!(!knows(Some(7), (1002, 1002), 1000, |uid, gid| (uid, gid) == (1001, 7)));
    }

    #[test]
    fn members_of_a_group_are_found_by_their_names() {
        let passwd = "root:x:0:0::/root:/bin/sh\nalice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n";
        let groups = "ops:x:7:alice,carol\nothers:x:8:bob\nempty:x:9:\n";
        assert!(listed(passwd, groups, 1001, 7) && !listed(passwd, groups, 1002, 7));
        assert!(listed(passwd, groups, 1002, 8) && !listed(passwd, groups, 4711, 9));
    }

    #[tokio::test]
    async fn the_file_is_for_owner_and_group_and_replaces_an_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("http.sock");
        for _ in 0..2 {
            drop(bind(&path, None).unwrap());
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o660);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(group_id("no such group").is_err() && group_id("4711").is_ok());
    }
}
