//! The state machine of a user, at arm's length: a panic in it must not end the log.
//!
//! A write on which every member panics would otherwise stop them all, and again after each
//! restart. So a panic in `apply` is caught. The rest of the state is not trusted: the state is
//! built anew from the last snapshot and the writes since. Then the write is tried once more. If it
//! panics again, it is refused: it stays in the log and changes nothing. The second try tells a
//! write that no member can carry out from a passing fault of this process.
//!
//! Members decide alike only if `apply` is a function of state and write. One that panics twice on
//! a single member, because it also looks at the host, leaves that member with another state than
//! the others have; each refusal is logged and counted (`Status::panics`), so that this is seen.

use std::any::Any;
use std::fmt;
use std::io::{self, BufRead};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::snapshots::State;
use super::{StateError, StateMachine};

/// The state of a [`StateMachine`] as it was when this was made, to be written as bytes.
///
/// Bytes become one by `.into()`. They are in memory until they are written: for a state of many
/// megabytes use [`Snapshot::streamed`].
pub struct Snapshot(Content);

enum Content {
    Bytes(Vec<u8>),
    Writes(Box<Write>),
}

type Write = dyn FnOnce(&mut dyn io::Write) -> io::Result<()> + Send;

impl Snapshot {
    /// A state that `write` turns into bytes, later and on another thread. They go to a file as
    /// they are written.
    ///
    /// The closure holds a state that does not change any more: a clone of it, or a shared part
    /// that is copied before it is changed. If it returns an error or panics, the log goes on
    /// without this snapshot, keeps its writes, and asks for another one later.
    pub fn streamed(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()> + Send + 'static) -> Self {
        Self(Content::Writes(Box::new(write)))
    }

    /// Writes the state, or says why not.
    pub(super) fn write(self, to: &mut dyn io::Write) -> Result<(), String> {
        match self.0 {
            Content::Bytes(bytes) => to.write_all(&bytes).map_err(|error| error.to_string()),
            Content::Writes(write) => caught(|| write(to))?.map_err(|error| error.to_string()),
        }
    }
}

impl From<Vec<u8>> for Snapshot {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Content::Bytes(bytes))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// A state that the state machine can be built from.
struct Basis {
    upto: u64,
    state: Source,
}

enum Source {
    /// The state before anything was written. It becomes bytes when they are needed.
    Beginning(Option<Snapshot>),
    Bytes(Vec<u8>),
    File(State),
}

impl Source {
    fn restore(&mut self, into: &mut impl StateMachine) -> Result<(), String> {
        if let Self::Beginning(beginning) = self {
            let mut bytes = Vec::new();
            beginning.take().ok_or("its beginning could not be written")?.write(&mut bytes)?;
            *self = Self::Bytes(bytes);
        }
        let (mut file, mut bytes);
        let from: &mut dyn BufRead = match self {
            Self::Beginning(_) => return Err("it has no bytes".to_owned()),
            Self::Bytes(beginning) => {
                bytes = beginning.as_slice();
                &mut bytes
            }
            Self::File(state) => {
                file = state.reader();
                &mut file
            }
        };
        caught(|| into.restore(from))?.map_err(|error: StateError| error.to_string())
    }
}

/// A state machine, and what it can be built from again.
pub(super) struct Guarded<S> {
    state: S,
    basis: Option<Basis>,
    /// The writes that were carried out since, in order. The machine holds the same bytes.
    since: Vec<(u64, Arc<[u8]>)>,
}

impl<S: StateMachine> Guarded<S> {
    /// The state before anything was written.
    pub(super) fn new(state: S) -> Self {
        Self { state, basis: None, since: Vec::new() }
    }

    pub(super) fn get(&self) -> &S {
        &self.state
    }

    /// Keeps the state as it is for a later rebuild, if there is nothing to build it from yet.
    pub(super) fn keep_beginning(&mut self) {
        if self.basis.is_none()
            && let Ok(snapshot) = self.snapshot()
        {
            self.basis = Some(Basis { upto: 0, state: Source::Beginning(Some(snapshot)) });
        }
    }

    /// Carries out a write: its answer, or the message of the panic by which it is refused.
    ///
    /// # Errors
    /// If the state could not be built anew after a panic: it is not to be used any more.
    pub(super) fn apply(&mut self, index: u64, write: &Arc<[u8]>) -> Result<Result<Vec<u8>, String>, String> {
        let mut answer = caught(|| self.state.apply(index, write));
        if let Err(panic) = &answer {
            tracing::error!(name: "tenure.log_panic", index, panic, "the state machine panicked: its state is built anew, and the write tried once more");
            self.rebuild()?;
            answer = caught(|| self.state.apply(index, write));
        }
        match &answer {
            Ok(_) => self.since.push((index, write.clone())),
            Err(_) => self.rebuild()?,
        }
        Ok(answer)
    }

    /// Takes the state of a snapshot.
    pub(super) fn restore(&mut self, upto: u64, state: State) -> Result<(), String> {
        let mut state = Source::File(state);
        state.restore(&mut self.state)?;
        self.since.clear();
        self.basis = Some(Basis { upto, state });
        Ok(())
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot, String> {
        caught(|| self.state.snapshot())
    }

    /// From now on a rebuild begins with this snapshot of the state.
    pub(super) fn rest_on(&mut self, upto: u64, state: State) {
        if self.basis.as_ref().is_none_or(|basis| basis.upto < upto) {
            self.basis = Some(Basis { upto, state: Source::File(state) });
            self.since.retain(|(index, _)| *index > upto);
        }
    }

    fn rebuild(&mut self) -> Result<(), String> {
        let basis = self.basis.as_mut().ok_or("there is no snapshot of its state before the panic")?;
        let state = &mut self.state;
        basis.state.restore(state)?;
        for (index, write) in &self.since {
            caught(|| state.apply(*index, write))?;
        }
        Ok(())
    }
}

/// Calls the user's code; a panic becomes its message. The state is not used again before it is
/// built anew.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
