//! A node's thread as a task that can be stopped and killed.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The process of a node.
#[derive(Clone)]
pub(super) struct Process(Arc<Mutex<State>>);

struct State {
    /// `None` once it has ended.
    life: Option<Life>,
    paused: bool,
    waker: Option<Waker>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

impl Process {
    /// Runs it in the present runtime.
    pub(super) fn spawn(life: impl Future<Output = ()> + Send + 'static) -> Self {
        let state = State { life: Some(Box::pin(life)), paused: false, waker: None };
        let process = Self(Arc::new(Mutex::new(state)));
        tokio::spawn(process.clone());
        process
    }

    /// It takes no step before it is resumed, as after SIGSTOP. Returns whether it ran.
    pub(super) fn pause(&self) -> bool {
        !std::mem::replace(&mut self.state().paused, true)
    }

    pub(super) fn resume(&self) {
        let mut state = self.state();
        state.paused = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// It ends at once, as after SIGKILL: it says nothing more to anybody.
    pub(super) fn kill(&self) {
        let life = self.state().life.take();
        drop(life); // Without the lock: what it drops may wake others.
        self.resume();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Process {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        state.waker = Some(cx.waker().clone());
        let is_paused = state.paused;
        let Some(life) = &mut state.life else { return Poll::Ready(()) };
        if is_paused {
            return Poll::Pending; // Whatever wakes it meanwhile is looked at when it is resumed.
        }
        let polled = life.as_mut().poll(cx);
        if polled.is_ready() {
            state.life = None;
        }
        polled
    }
}
