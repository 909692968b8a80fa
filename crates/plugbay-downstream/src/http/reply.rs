//! The form of an answer: one JSON body if it comes first and soon, otherwise a stream of events.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    body::{Frame as BodyFrame, SizeHint},
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue},
};
use plugbay_core::wire::Frame;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::negotiate::Wants;
use crate::outbox::Outbox;

/// An answer that takes longer is sent as a stream, so that proxies on the way see activity.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Interval between keep-alive comments on a silent stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Limit of pieces between a stream and its connection.
const PIECES: usize = 4;

/// The body of a response. Large pieces are the very buffers in which servers' answers were read.
pub(super) enum Body {
    Whole { pieces: VecDeque<Bytes>, left: usize },
    Stream(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole { pieces, left } => {
                let piece = pieces.pop_front();
                *left -= piece.as_ref().map_or(0, Bytes::len);
                Poll::Ready(piece)
            }
            Self::Stream(pieces) => pieces.poll_recv(context),
        };
        piece.map(|piece| piece.map(|piece| Ok(BodyFrame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole { pieces, .. } if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole { left, .. } => SizeHint::with_exact(*left as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole { pieces: VecDeque::new(), left: 0 });
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, message: &Frame) -> Response<Body> {
    let pieces = message.pieces().iter().cloned().collect();
    let mut response = Response::new(Body::Whole { pieces, left: message.len() });
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An event stream, with the sender for its events.
pub(super) fn events() -> (mpsc::Sender<Bytes>, Response<Body>) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let mut response = Response::new(Body::Stream(receiver));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Proxies that know this header pass events on at once.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    (sender, response)
}

/// The response to a cancelled request: an empty stream.
pub(super) fn nothing() -> Response<Body> {
    events().1
}

/// The messages of a request's first moments.
pub(super) enum Start {
    /// The answer, and nothing before it.
    Whole(Frame),
    /// These messages so far; more may come.
    Stream(VecDeque<Frame>),
    /// The request was cancelled.
    Cancelled,
}

/// Waits for the answer, or for a reason to open a stream.
pub(super) async fn start(sink: &Outbox, wants: Wants) -> Start {
    loop {
        let frames = if !wants.stream {
            take(sink).await
        } else if wants.json {
            let Ok(frames) = timeout(AT_ONCE, take(sink)).await else {
                return Start::Stream(VecDeque::new());
            };
            frames
        } else {
            return Start::Stream(VecDeque::new());
        };
        let Some(mut frames) = frames else { return Start::Cancelled };
        // A host that takes no stream gets the answer alone.
        let alone = wants.json && sink.is_done() && (frames.len() == 1 || !wants.stream);
        match frames.pop_back() {
            Some(answer) if alone => return Start::Whole(answer),
            last if wants.stream => {
                frames.extend(last);
                return Start::Stream(frames);
            }
            _ => {}
        }
    }
}

/// Takes the waiting messages; `None` when there will be no more.
pub(super) async fn take(sink: &Outbox) -> Option<VecDeque<Frame>> {
    let frames = sink.take().await?;
    // From here on only the budget counts them, until they are dropped.
    sink.written(frames.iter().map(Frame::len).sum());
    Some(frames)
}

/// The host has closed its connection.
pub(super) struct Disconnected;

/// Sends one event. With `id`, a legacy host can resume after it.
pub(super) async fn send(
    out: &mpsc::Sender<Bytes>,
    id: Option<&str>,
    message: &Frame,
) -> Result<(), Disconnected> {
    let head = match id {
        Some(id) => Bytes::from(format!("id: {id}\ndata: ")),
        None => Bytes::from_static(b"data: "),
    };
    let pieces = message.pieces().iter().cloned();
    for piece in [head].into_iter().chain(pieces).chain([Bytes::from_static(b"\n\n")]) {
        out.send(piece).await.map_err(|_| Disconnected)?;
    }
    Ok(())
}

/// Sends a comment, which every reader skips.
pub(super) async fn keep_alive(out: &mpsc::Sender<Bytes>) -> Result<(), Disconnected> {
    out.send(Bytes::from_static(b":\n\n")).await.map_err(|_| Disconnected)
}

/// Sends messages from `sink` as they come, until its answer has been sent or the host has disconnected.
pub(super) async fn pump(
    sink: &Outbox,
    mut frames: VecDeque<Frame>,
    out: mpsc::Sender<Bytes>,
) -> Result<(), Disconnected> {
    loop {
        for frame in frames {
            send(&out, None, &frame).await?;
        }
        frames = tokio::select! {
            biased;
            () = out.closed() => return Err(Disconnected),
            more = take(sink) => match more {
                Some(more) => more,
                None => return Ok(()),
            },
            () = sleep(KEEP_ALIVE) => {
                keep_alive(&out).await?;
                VecDeque::new()
            }
        };
    }
}
