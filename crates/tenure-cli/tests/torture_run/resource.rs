//! The resource that the children write to: it admits by term, and counts.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use tenure::Token;
use tenure::fence::{MemoryFence, Rule};

use crate::now;

/// The writes so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    /// When something was refused.
    pub(crate) refused: Vec<u64>,
    /// Writes that were made after one of a later leader: there must be none.
    pub(crate) late: u64,
}

/// A resource that everybody can write to.
pub(crate) struct Resource(Arc<Mutex<Tally>>);

impl Resource {
    pub(crate) fn open(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        let tally = Arc::new(Mutex::new(Tally::default()));
        let shared = Arc::clone(&tally);
        thread::spawn(move || serve(&socket, &shared));
        Self(tally)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.0.lock().expect("nobody panics").clone()
    }
}

fn serve(socket: &UnixDatagram, tally: &Mutex<Tally>) {
    let fence = MemoryFence::new(Rule::ByTerm);
    let (mut bytes, mut newest) = ([0; 256], 0);
    while let Ok(length) = socket.recv(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..length]);
        let Some((slot, token)) = text.split_once(' ') else { continue };
        let Ok(token) = token.parse::<Token>() else { continue };
        let mut tally = tally.lock().expect("nobody panics");
        // Compares each admitted write with those before it, without asking the fence.
        match fence.admit(&"resource", token, slot.to_owned()) {
            Ok(_) => {
                tally.admitted += 1;
                tally.late += u64::from(token.as_u128() < newest);
                newest = newest.max(token.as_u128());
            }
            Err(_) => tally.refused.push(now()),
        }
    }
}
