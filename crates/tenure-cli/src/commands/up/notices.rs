//! Where a node that `up` started says how it is: the protocol of `sd_notify(3)`.
//!
//! The name of the socket is abstract, and every user of the machine can send to it. So the kernel
//! is asked who sent each message (`SCM_CREDENTIALS`), and only the node's own count.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};

use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Pid;
use tenure::ClusterId;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// The longest message that is read; more of it is lost.
const LONGEST: usize = 4_096;

/// A socket for the messages of one process.
#[derive(Debug)]
pub(super) struct Notices {
    socket: UnixDatagram,
    /// The value for `NOTIFY_SOCKET`.
    pub(super) address: String,
}

impl Notices {
    /// Opens one, under a name that nobody else can have taken.
    pub(super) fn open() -> io::Result<Self> {
        let name = format!("tenure-up-{}", ClusterId::draw());
        let socket = StdDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        set_socket_passcred(&socket, true)?;
        Ok(Self { socket: UnixDatagram::from_std(socket)?, address: format!("@{name}") })
    }

    /// The next message of process `from`. Those of others are passed over.
    pub(super) async fn next(&self, from: Pid) -> io::Result<String> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_io(Interest::READABLE, || receive(&self.socket)) {
                Ok((Some(sender), text)) if sender == from => return Ok(text),
                Ok(_) => {} // Somebody else's.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// One message, and who sent it as the kernel says.
fn receive(socket: &UnixDatagram) -> io::Result<(Option<Pid>, String)> {
    let mut buffer = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let read = recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut beside, flags)?;
    let sender = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
        _ => None,
    });
    Ok((sender, String::from_utf8_lossy(&buffer[..read.bytes]).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::getpid;
    use tokio::time::timeout;

    use super::*;

    fn send(notices: &Notices, text: &str) {
        let name = notices.address.strip_prefix('@').unwrap();
        let socket = StdDatagram::unbound().unwrap();
        socket.send_to_addr(text.as_bytes(), &SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    }

    #[tokio::test]
    async fn only_the_word_of_the_process_that_was_started_counts() {
        let notices = Notices::open().unwrap();
        send(&notices, "READY=1");
        let heard = timeout(Duration::from_secs(10), notices.next(getpid())).await.expect("a message comes");
        assert_eq!(heard.unwrap(), "READY=1");
        // Another process, this one, claims to be the node, whose number is that of the first
        // process of all.
        send(&notices, "READY=1");
        let forged = timeout(Duration::from_millis(200), notices.next(Pid::INIT)).await;
        assert!(forged.is_err(), "{forged:?}");
    }

    #[tokio::test]
    async fn each_socket_has_a_name_of_its_own() {
        assert_ne!(Notices::open().unwrap().address, Notices::open().unwrap().address);
    }
}
