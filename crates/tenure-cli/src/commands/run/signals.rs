//! Signals: which ones go to the command, and how the sentinel outlives them.
//!
//! A signal that the parent had ignored (`nohup`) stays ignored, here and in the command.

use std::fs;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The signals that a runner forwards: TERM, INT, HUP, QUIT, USR1, USR2 and WINCH.
const FORWARDED: [SignalKind; 7] = [
    SignalKind::terminate(),
    SignalKind::interrupt(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
    SignalKind::window_change(),
];

/// Whether a signal asks a process to end.
pub(crate) fn ends(number: i32) -> bool {
    number == SignalKind::terminate().as_raw_value() || number == SignalKind::interrupt().as_raw_value()
}

/// The signals that come from now on.
pub(crate) fn listen() -> io::Result<UnboundedReceiver<i32>> {
    let (sender, receiver) = unbounded_channel();
    for kind in FORWARDED.into_iter().filter(|kind| !is_ignored(*kind)) {
        let (mut came, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while came.recv().await.is_some() && sender.send(kind.as_raw_value()).is_ok() {}
        });
    }
    Ok(receiver)
}

/// From now on none of them ends this process. A handler that nobody reads does that, and unlike an
/// ignored signal it is not inherited. systemd sends TERM to everybody in a service: the sentinel
/// must not be the first to go.
pub(crate) fn survive() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _context = runtime.enter();
    for kind in FORWARDED.into_iter().filter(|kind| !is_ignored(*kind)) {
        drop(signal(kind)?); // The handler stays.
    }
    Ok(())
}

fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}
