//! A response that is a stream of events, read one by one.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::wire::{Incoming, SseDecoder, SseItem};
use reqwest::Response;
use tokio::time::Instant;

use super::peer::TransportError;

pub(super) struct Events {
    response: Response,
    decoder: SseDecoder,
    /// How long the server wants to be left alone before the stream is asked for again.
    retry: Option<Duration>,
    opened: Instant,
    /// Whether an event has come.
    received_any: bool,
}

/// Where a stream broke off: all that is needed to ask for the rest of it.
#[derive(Debug, Clone, Default)]
pub(super) struct ResumePoint {
    pub(super) last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// How often it has been asked for since it last was of use.
    pub(super) attempts: u32,
}

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

    /// The next event with something in it; why the stream has ended otherwise.
    pub(super) async fn next(&mut self) -> Result<Event, TransportError> {
        loop {
            match self.decoder.take() {
                Some(SseItem::Retry(pause)) => self.retry = Some(pause),
                Some(SseItem::Event { name, data }) => {
                    self.received_any = true;
                    // An empty one was sent only for its id.
                    if !matches!(&data, Incoming::Message(data) if data.is_empty()) {
                        return Ok(Event { name, data });
                    }
                }
                None => match self.response.chunk().await {
                    Ok(Some(chunk)) => self.decoder.push(&chunk),
                    Ok(None) => return Err(TransportError::Broken("its stream ended".to_owned())),
                    Err(error) => return Err(TransportError::Broken(TransportError::words(error))),
                },
            }
        }
    }

    pub(super) fn into_response(self) -> Response {
        self.response
    }

    /// `before` is where it began. A stream that brought nothing and was soon over counts as one more
    /// attempt: otherwise a server that ends each at once would be asked without end.
    pub(super) fn resume_point(&self, before: &ResumePoint) -> ResumePoint {
        let of_use = self.received_any || self.opened.elapsed() >= LONGEST;
        let attempts = if of_use { 0 } else { before.attempts };
        ResumePoint { last_id: self.decoder.last_id().cloned(), retry: self.retry, attempts }
    }
}

/// The pause before a stream is asked for again, unless the server has told another.
const FIRST: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(30);

impl ResumePoint {
    /// How long to wait before the stream is asked for again.
    pub(super) fn next_attempt(&mut self) -> Duration {
        let first = self.retry.unwrap_or(FIRST).max(SHORTEST);
        let pause = first.saturating_mul(2u32.saturating_pow(self.attempts)).min(LONGEST.max(first));
        self.attempts = (self.attempts + 1).min(16);
        pause
    }
}
