//! Messages to the service manager: the protocol of `sd_notify(3)`, which is one datagram a
//! message.
//!
//! Written here because the name of the socket may be abstract (`@…`), as containers and
//! `tenure up` have it.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The message of a node that is no member any more, or not yet.
pub(crate) const NO_MEMBER: &str = "X_TENURE_MEMBER=0";

/// The service manager, if there is one.
#[derive(Debug)]
pub(super) struct Manager {
    socket: Option<UnixDatagram>,
    /// How often it must hear of this process.
    watchdog: Option<Duration>,
    /// The last status that it was told.
    told: String,
}

impl Manager {
    /// As the environment says. That it cannot be reached is said once; a daemon works without.
    pub(super) fn from_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|name| match connect(name.as_bytes()) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(name: "tenure.notify", %error, "the service manager's socket cannot be reached");
                None
            }
        });
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let mine = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| mine && *usec > 0).map(Duration::from_micros);
        Self { socket, watchdog, told: String::new() }
    }

    /// How often to give a sign of life; twice as often as the manager asks for.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.socket.as_ref().and(self.watchdog).map(|within| within / 2)
    }

    /// The node can do its part.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// A sign of life.
    pub(super) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// Settings are being read again; [`ready`](Self::ready) says that it is done.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let usec = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={usec}"));
    }

    /// It ends.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// It is no member of the cluster, for `tenure up`: systemd passes over what begins with `X_`.
    pub(super) fn no_member(&self) {
        self.tell(NO_MEMBER);
    }

    /// How it is, in words; told when it changes.
    pub(super) fn status(&mut self, text: String) {
        if text != self.told {
            self.tell(&format!("STATUS={text}"));
            self.told = text;
        }
    }

    /// A manager that does not listen is its own problem.
    fn tell(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(message.as_bytes());
        }
    }
}

fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let address = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
