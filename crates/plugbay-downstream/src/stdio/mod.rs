//! A host connected to plugbay's stdin and stdout.

mod streams;
#[cfg(test)]
mod tests;
mod window;

use std::{
    io::{self, IoSlice},
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use plugbay_core::wire::{Fault, Framer, Framing, Incoming, Malformed, Queue, ScanError};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

pub use streams::{Input, Output, standard};
pub use window::{UnreadLimit, Window, serve_window};

use crate::{
    dispatch, gateway::Gateway, message::Message, outbox::Outbox, refusal::Refusal, respond, session::Session,
};

/// How long calls in flight may go on after `stop`, or after the host has closed its end, unless the configuration says
/// otherwise.
pub const DRAIN: Duration = Duration::from_secs(2);
/// How long a host that has closed its end may leave its answers unread.
const LAST_READ: Duration = Duration::from_secs(30);

/// Serves one host until it closes its end or stops reading, or until `stop`. Then new requests are rejected,
/// and those in flight get their answers.
pub async fn serve<R, W>(
    gateway: Gateway,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let session = Session::new(gateway, Outbox::default());
    let stop = async {
        stop.await;
        session.drain();
    };
    converse(&session, input, output, stop, Session::close).await
}

/// Serves the host of a session until it closes its end or stops reading, or until `stop`.
async fn converse<R, W>(
    session: &Arc<Session>,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
    close: impl Fn(&Session),
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let framing = OnceLock::new();
    let reading = async {
        let mut reading = pin!(read(session, input, &framing));
        let closed = tokio::select! {
            outcome = &mut reading => {
                outcome?;
                true
            }
            () = stop => false,
        };
        let time = session.gateway().settings().drain.unwrap_or(DRAIN);
        let mut answered = pin!(timeout(time, session.calls_ended()));
        if closed || !session.is_draining() {
            let _ = answered.await;
        } else {
            // The host may still cancel a call, or answer a server request.
            tokio::select! {
                biased;
                _ = &mut answered => {}
                _ = reading => {
                    let _ = answered.await;
                }
            }
        }
        close(session);
        session.outbox().stuck(LAST_READ).await;
        io::Result::Err(io::ErrorKind::TimedOut.into())
    };
    let writing = write(session, output, &framing);
    let watching = watch(session);
    let done = tokio::select! {
        done = writing => done, // all that there was, or the host has stopped reading
        lost = reading => lost,
        () = watching => Ok(()),
    };
    close(session); // nobody waits for this host any more
    done
}

async fn read<R: AsyncRead + Unpin>(
    session: &Arc<Session>,
    mut input: R,
    framing: &OnceLock<Framing>,
) -> io::Result<()> {
    let mut framer = Framer::new(session.gateway().settings().message_limit);
    loop {
        // Waits before each message: many may have arrived together, each with a large answer.
        session.outbox().room().await;
        if let Some(item) = framer.take() {
            if let Some(seen) = framer.seen() {
                framing.get_or_init(|| seen); // the host is answered as it first spoke
            }
            match item {
                Incoming::Message(message) => {
                    let workers = &session.gateway().workers;
                    let read = Message::read_in_turn(workers, session.caller(), message).await;
                    dispatch::receive(session, session.outbox(), read);
                }
                Incoming::NotText(_) => refuse(session, Fault::Utf8),
                Incoming::Noise(_) => refuse(session, Fault::Json(ScanError::Unexpected(0))),
                Incoming::TooLong { .. } => {
                    refuse(session, Fault::TooLong(session.gateway().settings().message_limit));
                }
            }
            continue;
        }
        match input.read_buf(framer.buffer()).await? {
            0 => return Ok(()),
            count => {
                framer.set_limit(session.gateway().settings().message_limit);
                framer.filled(count);
            }
        }
    }
}

/// Answers input that is no message at all, and so has no id.
fn refuse(session: &Session, fault: Fault) {
    let refusal = Refusal::Malformed(Malformed::from(fault));
    session.outbox().answer(respond::error(b"null", &refusal));
}

async fn write<W: AsyncWrite + Unpin>(
    session: &Session,
    mut output: W,
    framing: &OnceLock<Framing>,
) -> io::Result<()> {
    let mut queue = Queue::default();
    while let Some(frames) = session.outbox().take().await {
        let framing = framing.get().copied().unwrap_or_default();
        let mut unwritten = 0;
        for frame in frames {
            unwritten += frame.len();
            queue.push(&frame, framing);
        }
        while !queue.is_empty() {
            let written = write_some(&mut output, &queue).await?;
            queue.advance(written);
            // The outbox counts messages, not the framing between them.
            let counted = written.min(unwritten);
            unwritten -= counted;
            session.outbox().written(counted);
        }
        output.flush().await?;
    }
    Ok(())
}

async fn write_some<W: AsyncWrite + Unpin>(output: &mut W, queue: &Queue) -> io::Result<usize> {
    match output.write_vectored(&queue.slices(IoSlice::new)).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        written => Ok(written),
    }
}

/// Reports changes of the catalog to the session, for as long as it lives.
async fn watch(session: &Session) {
    let mut snapshots = session.gateway().snapshots.clone();
    while snapshots.changed().await.is_ok() {
        session.catalog_changed();
    }
    std::future::pending::<()>().await;
}
