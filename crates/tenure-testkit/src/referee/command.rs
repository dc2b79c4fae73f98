//! The command of a runner that a referee watches.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::{BEATS, SOCKET, clock};
use crate::beats::{Beat, Beats};

/// How often a command writes its reading of the clock.
const BEAT: Duration = Duration::from_millis(5);

/// Works until it is killed or the referee of this folder is gone. The environment is that of a
/// command of `tenure run`.
pub fn lead(folder: &Path) -> io::Result<()> {
    let first = clock();
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let term = said("TENURE_TERM");
    let beat = Beat {
        pid: u64::from(std::process::id()),
        owner: 0,
        term: term.parse().map_err(io::Error::other)?,
        first,
        last: first,
        main: 1,
    };
    let beats = Beats::open(&folder.join(BEATS))?;
    let slot = beats.enter(beat)?;
    let mut referee = UnixStream::connect(folder.join(SOCKET))?;
    let (group, node, token) = (said("TENURE_GROUP"), said("TENURE_NODE"), said("TENURE_TOKEN"));
    referee.write_all(format!("{slot} {first} {term} {token} {group} {node}\n").as_bytes())?;
    referee.set_nonblocking(true)?;
    loop {
        beats.beat(slot, clock())?;
        match referee.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(BEAT),
            _ => return Ok(()),
        }
    }
}
