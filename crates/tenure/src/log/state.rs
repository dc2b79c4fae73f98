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
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{StateError, StateMachine};

/// A captured state, to be written as bytes on another thread: see [`StateMachine::capture`].
pub struct Capture(Captured);

enum Captured {
    Bytes(Vec<u8>),
    Writes(Box<Write>),
}

type Write = dyn FnOnce(&mut dyn io::Write) -> io::Result<()> + Send;

impl Capture {
    /// A state that `write` turns into bytes, later and on another thread.
    ///
    /// The closure holds a state that does not change any more: a clone of it, or a shared part
    /// that is copied before it is changed.
    pub fn new(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()> + Send + 'static) -> Self {
        Self(Captured::Writes(Box::new(write)))
    }

    /// A state that is bytes already.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self(Captured::Bytes(bytes))
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.0, Captured::Bytes(_))
    }

    /// The bytes, or why there are none.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, String> {
        match self.0 {
            Captured::Bytes(bytes) => Ok(bytes),
            Captured::Writes(write) => {
                let mut bytes = Vec::new();
                caught(|| write(&mut bytes))?.map_err(|error| error.to_string())?;
                Ok(bytes)
            }
        }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

/// A snapshot that the state can be built from.
struct Basis {
    upto: u64,
    snapshot: Arc<[u8]>,
    /// Where in the snapshot the state is.
    state: Range<usize>,
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
            && let Ok(state) = caught(|| self.state.snapshot())
        {
            self.basis = Some(Basis { upto: 0, state: 0..state.len(), snapshot: state.into() });
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
    pub(super) fn restore(
        &mut self,
        upto: u64,
        snapshot: Arc<[u8]>,
        state: Range<usize>,
    ) -> Result<(), String> {
        taken(caught(|| self.state.restore(&snapshot[state.clone()])))?;
        self.since.clear();
        self.basis = Some(Basis { upto, snapshot, state });
        Ok(())
    }

    pub(super) fn capture(&self) -> Result<Capture, String> {
        caught(|| self.state.capture())
    }

    /// From now on a rebuild begins with this snapshot of the state.
    pub(super) fn rest_on(&mut self, upto: u64, snapshot: Arc<[u8]>, state: Range<usize>) {
        if self.basis.as_ref().is_none_or(|basis| basis.upto < upto) {
            self.basis = Some(Basis { upto, snapshot, state });
            self.since.retain(|(index, _)| *index > upto);
        }
    }

    fn rebuild(&mut self) -> Result<(), String> {
        let basis = self.basis.as_ref().ok_or("there is no snapshot of its state before the panic")?;
        let (state, from) = (&mut self.state, &basis.snapshot[basis.state.clone()]);
        taken(caught(|| state.restore(from)))?;
        for (index, write) in &self.since {
            caught(|| state.apply(*index, write))?;
        }
        Ok(())
    }
}

fn taken(restored: Result<Result<(), StateError>, String>) -> Result<(), String> {
    restored?.map_err(|error| error.to_string())
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
