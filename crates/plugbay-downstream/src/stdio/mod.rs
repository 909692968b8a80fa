//! A host at the other end of our stdin and stdout.

mod streams;

use std::{collections::VecDeque, io, io::IoSlice, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use plugbay_core::wire::{Fault, Frame, Framer, Framing, Incoming, Malformed, ScanError};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

pub use streams::{Input, Output, standard};

use crate::{
    dispatch,
    gateway::Gateway,
    respond::{self, Refusal},
    session::Session,
};

/// How long calls in flight may go on after the host has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How many pieces one write takes at most.
const PIECES: usize = 128;

/// Serves one host until it closes its end or stops reading.
pub async fn serve<R, W>(gateway: Gateway, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let session = Session::new(gateway);
    let framing = std::sync::OnceLock::new();
    let reading = async {
        read(&session, input, &framing).await?;
        let _ = timeout(LAST_ANSWERS, session.calls_ended()).await;
        session.close();
        io::Result::Ok(())
    };
    let writing = write(&session, output, &framing);
    let watching = watch(&session);
    tokio::select! {
        done = async { tokio::try_join!(reading, writing) } => done.map(|_| ()),
        () = watching => Ok(()),
    }
}

async fn read<R: AsyncRead + Unpin>(
    session: &Arc<Session>,
    mut input: R,
    framing: &std::sync::OnceLock<Framing>,
) -> io::Result<()> {
    let mut framer = Framer::new(session.gateway().message_limit);
    loop {
        while let Some(item) = framer.take() {
            if let Some(seen) = framer.seen() {
                framing.get_or_init(|| seen); // the host is answered as it first spoke
            }
            match item {
                Incoming::Message(message) => dispatch::receive(session, message),
                Incoming::Noise(_) => refuse(session, Fault::Json(ScanError::Unexpected(0))),
                Incoming::TooLong { .. } => refuse(session, Fault::TooLong(session.gateway().message_limit)),
            }
        }
        session.outbox().room().await;
        match input.read_buf(framer.buffer()).await? {
            0 => return Ok(()),
            count => framer.filled(count),
        }
    }
}

/// For what is no message at all, and so has no id to answer to.
fn refuse(session: &Session, fault: Fault) {
    let refusal = Refusal::Malformed(Malformed { id: None, fault });
    session.send(respond::error(b"null", &refusal));
}

async fn write<W: AsyncWrite + Unpin>(
    session: &Session,
    mut output: W,
    framing: &std::sync::OnceLock<Framing>,
) -> io::Result<()> {
    while let Some(frames) = session.outbox().take().await {
        let framing = framing.get().copied().unwrap_or_default();
        let bytes = frames.iter().map(Frame::len).sum();
        let mut pieces: VecDeque<Bytes> = VecDeque::with_capacity(frames.len() * 2);
        for frame in &frames {
            if framing == Framing::ContentLength {
                pieces.push_back(Bytes::from(format!("Content-Length: {}\r\n\r\n", frame.len())));
            }
            pieces.extend(frame.pieces().iter().cloned());
            if framing == Framing::Newline {
                pieces.push_back(Bytes::from_static(b"\n"));
            }
        }
        drop(frames);
        write_all(&mut output, &mut pieces).await?;
        session.outbox().written(bytes);
    }
    output.flush().await
}

async fn write_all<W: AsyncWrite + Unpin>(output: &mut W, pieces: &mut VecDeque<Bytes>) -> io::Result<()> {
    while !pieces.is_empty() {
        let slices: Vec<IoSlice<'_>> = pieces.iter().take(PIECES).map(|piece| IoSlice::new(piece)).collect();
        let mut written = output.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(first) = pieces.front_mut() {
            if written < first.len() {
                first.advance(written);
                break;
            }
            written -= first.len();
            pieces.pop_front();
        }
    }
    output.flush().await
}

/// Passes changes of the catalogue on for as long as the session lives.
async fn watch(session: &Session) {
    let mut snapshots = session.gateway().snapshots.clone();
    while snapshots.changed().await.is_ok() {
        session.catalog_changed();
    }
    std::future::pending::<()>().await;
}
