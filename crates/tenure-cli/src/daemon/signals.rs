//! The signals of a daemon.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, messages};

/// The signals that mean something. Caught from the moment this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user: Signal,
}

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// To end.
    End(End),
    /// To read the settings again.
    Reload,
    /// To write the state to the log.
    Dump,
}

/// By which signal a process was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By a service manager, or `kill`.
    Term,
    /// By Ctrl-C.
    Int,
}

impl End {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
        }
    }

    /// The exit code of a process that was ended by force, as shells have it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Term => 128 + 15,
            Self::Int => 128 + 2,
        }
    }
}

impl Signals {
    /// Catches them.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| messages::system_refuses("signals", error));
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            hang_up: catch(SignalKind::hangup())?,
            user: catch(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one. May be dropped and called again: none is lost.
    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Told::End(End::Term),
            _ = self.interrupt.recv() => Told::End(End::Int),
            _ = self.hang_up.recv() => Told::Reload,
            _ = self.user.recv() => Told::Dump,
        }
    }

    /// Waits for the next one that asks to end.
    pub(crate) async fn end(&mut self) -> End {
        loop {
            if let Told::End(end) = self.next().await {
                return end;
            }
        }
    }
}
