//! A stream that gives up on a reader that does not read.
//!
//! A client can pipeline requests and read no answer: then the kernel takes no more bytes for it,
//! and a writer without a time-out waits forever. Any byte that the kernel takes is progress and
//! starts the time anew.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Writes fail with [`io::ErrorKind::TimedOut`] if nothing was taken for so long.
pub(super) struct Unstalled<S> {
    inner: S,
    within: Duration,
    /// Runs while a write waits.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    pub(super) fn new(inner: S, within: Duration) -> Self {
        Self { inner, within, limit: None }
    }

    /// Passes on what a write came to, unless it has waited for too long.
    fn bounded<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.limit = None;
            return outcome;
        }
        let within = self.within;
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(limit.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.bounded(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.bounded(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        self.bounded(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(context);
        self.bounded(context, outcome)
    }
}
