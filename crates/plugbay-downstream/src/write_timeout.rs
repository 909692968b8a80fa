//! A stream whose writes time out if the peer reads nothing, so that half-open connections end.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::budget::BudgetOfConnection;

/// How long a host may go without reading what it is sent.
pub(crate) const TAKES_NOTHING: Duration = Duration::from_secs(30);
/// How often a stalled write is checked, and how long it may stall when memory is short.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    budget: BudgetOfConnection,
    /// Since when a write makes no progress, and the timer of the next check.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, limit: Duration, budget: BudgetOfConnection) -> Self {
        Self { stream, limit, budget, stalled: None }
    }

    fn limited<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let (since, look) = self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(LOOK))));
        loop {
            ready!(look.as_mut().poll(context));
            if self.budget.is_under_pressure() || since.elapsed() >= self.limit {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            look.as_mut().reset(Instant::now() + LOOK);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, shut)
    }
}
