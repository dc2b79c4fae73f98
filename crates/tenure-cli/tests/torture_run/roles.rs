//! The other processes of the torture: this same program, told by its first word what to be.

use std::env;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use tenure_testkit::beats::{Beat, Beats};

use crate::now;

/// How often a child beats.
const BEAT: Duration = Duration::from_micros(250);

/// How often it writes to the resource, in beats.
const WRITES: u64 = 20;

/// The work of a leader: beats, and writes with its token to a resource that fences. `child OWNER`,
/// in the torture's folder.
pub(crate) fn child(owner: &str, main: bool) {
    let beats = Beats::open(Path::new("beats")).expect("the heartbeats");
    let variable = |name: &str| env::var(name).ok();
    // etcd's nearest thing to a term is the revision at which the lock was taken.
    let term = variable("TENURE_TERM").or_else(|| variable("ETCD_LOCK_REV")).unwrap_or_default();
    let token = variable("TENURE_TOKEN").unwrap_or_default();
    let first = now();
    let beat = Beat {
        pid: u64::from(std::process::id()),
        owner: owner.parse().expect("a number"),
        term: term.parse().unwrap_or(first),
        first,
        last: first,
        main: u64::from(main),
    };
    let slot = beats.enter(beat).expect("a slot");
    let resource = UnixDatagram::unbound().expect("a socket");
    for count in 0u64.. {
        beats.beat(slot, now()).expect("a beat");
        if count % WRITES == 0 && !token.is_empty() {
            let _ = resource.send_to(format!("{slot} {token}").as_bytes(), "resource"); // Full: the next one counts as well.
        }
        thread::sleep(BEAT);
    }
}

/// Somebody whose death is waited for.
struct Watched {
    file: Option<OwnedFd>,
    /// The last instant at which the kernel said that it lives.
    alive: u64,
}

/// Looks at everybody's life through files of the kernel, as often as it can without taking a
/// processor for itself; when its input ends, prints for each slot the last instant at which it was
/// certainly alive, and how blind it was.
pub(crate) fn witness() {
    let beats = Beats::open(Path::new("beats")).expect("the heartbeats");
    let over = thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
    });
    let (mut all, mut gaps, mut last): (Vec<Watched>, Vec<u64>, u64) = (Vec::new(), Vec::new(), now());
    while !over.is_finished() {
        for index in all.len() as u64..beats.count() {
            let beat = beats.slot(index);
            let pid = i32::try_from(beat.pid).ok().and_then(Pid::from_raw);
            let file = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            all.push(Watched { file, alive: beat.first });
        }
        look(&mut all);
        thread::sleep(Duration::from_micros(100));
        let here = now();
        gaps.push(here - last);
        last = here;
    }
    gaps.sort_unstable();
    let part = |part: usize| gaps.get(gaps.len() * part / 1000).copied().unwrap_or(0);
    println!("gaps {} {} {}", part(500), part(999), gaps.last().copied().unwrap_or(0));
    all.iter().enumerate().for_each(|(slot, watched)| println!("alive {slot} {}", watched.alive));
}

fn look(all: &mut [Watched]) {
    let living: Vec<usize> = (0..all.len()).filter(|index| all[*index].file.is_some()).collect();
    // Read before the kernel is asked: who lives then lived at that instant.
    let before = now();
    let mut dead = Vec::new();
    {
        let file = |index: &usize| all[*index].file.as_ref().map(AsFd::as_fd);
        let mut files: Vec<PollFd<'_>> = living
            .iter()
            .filter_map(file)
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
            .collect();
        if poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
            return;
        }
        dead.extend(files.iter().map(|file| !file.revents().is_empty()));
    }
    for (index, dead) in living.into_iter().zip(dead) {
        if dead {
            all[index].file = None;
        } else {
            all[index].alive = before;
        }
    }
}
