//! A response body that is an event stream, read event by event.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::wire::{Incoming, SseDecoder, SseItem};
use reqwest::Response;
use tokio::time::Instant;

use super::error::TransportError;

/// The events of one response.
pub(super) struct Events {
    response: Response,
    decoder: SseDecoder,
    /// The pause that the server asks for before the stream is requested again.
    retry: Option<Duration>,
    opened: Instant,
    /// Whether an event has come.
    received_any: bool,
}

/// Where a stream broke: what is needed to request the rest of it.
#[derive(Debug, Clone, Default)]
pub(super) struct ResumePoint {
    pub(super) last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// Requests since the stream last brought something.
    pub(super) attempts: u32,
}

/// One event of a stream.
pub(super) struct Event {
    pub(super) name: Bytes,
    pub(super) data: Incoming,
}

impl Events {
    /// `resume_point`: the stream goes on from there.
    pub(super) fn new(response: Response, limit: usize, resume_point: &ResumePoint) -> Self {
        let decoder = SseDecoder::resumed(limit, resume_point.last_id.clone());
        Self { response, decoder, retry: resume_point.retry, opened: Instant::now(), received_any: false }
    }

    /// The next event that is not empty, or why the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Event, TransportError> {
        loop {
            match self.decoder.take() {
                Some(SseItem::Retry(pause)) => self.retry = Some(pause),
                Some(SseItem::Event { name, data }) => {
                    self.received_any = true;
                    // An empty event was sent only for its id.
                    if !matches!(&data, Incoming::Message(data) if data.is_empty()) {
                        return Ok(Event { name, data });
                    }
                }
                None => match self.response.chunk().await {
                    Ok(Some(chunk)) => self.decoder.push(&chunk),
                    Ok(None) => return Err(TransportError::Broken("its stream ended".to_owned())),
                    Err(error) => return Err(TransportError::Broken(TransportError::cause(error))),
                },
            }
        }
    }

    pub(super) fn into_response(self) -> Response {
        self.response
    }

    /// Where to resume; `before` is where this stream began. A short stream without events counts as a failed
    /// attempt: otherwise a server that ends every stream at once would get requests without pause.
    pub(super) fn resume_point(&self, before: &ResumePoint) -> ResumePoint {
        let useful = self.received_any || self.opened.elapsed() >= LONGEST;
        let attempts = if useful { 0 } else { before.attempts };
        ResumePoint { last_id: self.decoder.last_id().cloned(), retry: self.retry, attempts }
    }
}

/// The pause before a stream is requested again, unless the server asks for another.
const FIRST: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(30);

impl ResumePoint {
    /// The pause before the next request for the stream.
    pub(super) fn next_attempt(&mut self) -> Duration {
        let first = self.retry.unwrap_or(FIRST).max(SHORTEST);
        let pause = first.saturating_mul(2u32.saturating_pow(self.attempts)).min(LONGEST.max(first));
        self.attempts = (self.attempts + 1).min(16);
        pause
    }
}
