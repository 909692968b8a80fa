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
    /// The pause that the server wants before the stream is requested again.
    retry: Option<Duration>,
    opened: Instant,
    /// Whether an event has come.
    received_any: bool,
}

/// Where a stream broke, with everything that is needed to request the rest.
#[derive(Debug, Clone, Default)]
pub(super) struct ResumePoint {
    pub(super) last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// Requests since the stream last delivered something.
    pub(super) attempts: u32,
    /// Whether the last stream ended soon after it was opened.
    ended_soon: bool,
    /// Whether it has been requested again before.
    resumed: bool,
}

/// One event of a stream.
pub(super) struct Event {
    pub(super) name: Bytes,
    pub(super) data: Incoming,
}

impl Events {
    /// The events of a response, which continues the stream at `resume_point`.
    pub(super) fn new(response: Response, limit: usize, resume_point: &ResumePoint) -> Self {
        let decoder = SseDecoder::resumed(limit, resume_point.last_id.clone());
        Self { response, decoder, retry: resume_point.retry, opened: Instant::now(), received_any: false }
    }

    /// The next non-empty event, or the reason why the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Event, TransportError> {
        loop {
            match self.decoder.take() {
                Some(SseItem::Retry(pause)) => self.retry = Some(pause),
                Some(SseItem::Event { name, data }) => {
                    self.received_any = true;
                    // The server sends an empty event only for its id.
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

    /// Where to resume this stream; `before` is where it was resumed last.
    pub(super) fn resume_point(&self, before: &ResumePoint) -> ResumePoint {
        let resumed = ResumePoint { last_id: self.decoder.last_id().cloned(), retry: self.retry, ..*before };
        resumed.after(self.received_any, self.opened.elapsed())
    }
}

/// The pause before a stream is requested again, unless the server wants another.
const FIRST: Duration = Duration::from_millis(500);
/// The shortest pause, whatever the server wants.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause that plugbay chooses by itself.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest pause that a server can choose.
const LONGEST_RETRY: Duration = Duration::from_secs(5 * 60);

impl ResumePoint {
    /// The state after a stream has ended. A short stream without events counts as a failed attempt:
    /// otherwise a server that ends every stream at once would get requests without pause.
    fn after(self, received_any: bool, lasted: Duration) -> Self {
        let attempts = if received_any || lasted >= LONGEST { 0 } else { self.attempts };
        Self { attempts, ended_soon: lasted < FIRST, ..self }
    }

    /// The pause before the next request for the stream.
    pub(super) fn next_attempt(&mut self) -> Duration {
        let shortest = if self.ended_soon && self.resumed { FIRST } else { SHORTEST };
        let first = self.retry.unwrap_or(FIRST).clamp(shortest, LONGEST_RETRY);
        let pause = first.saturating_mul(2u32.saturating_pow(self.attempts)).min(LONGEST.max(first));
        self.attempts = (self.attempts + 1).min(16);
        self.resumed = true;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::from_millis(5);

    /// The pauses before a server's stream is requested again, if each stream ends like this.
    fn pauses(retry: Option<u64>, received_any: bool, lasted: Duration) -> Vec<u128> {
        let mut point = ResumePoint { retry: retry.map(Duration::from_millis), ..ResumePoint::default() };
        let mut pauses = Vec::new();
        for _ in 0..9 {
            point = point.after(received_any, lasted);
            pauses.push(point.next_attempt().as_millis());
        }
        pauses
    }

    #[test]
    fn reconnects_back_off_whatever_retry_a_server_sends() {
        let doubled = [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000];
        assert_eq!(pauses(None, false, AT_ONCE), doubled);
        assert_eq!(
            pauses(Some(0), false, AT_ONCE),
            [50, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
        );
        assert_eq!(pauses(Some(1_000_000_000_000), false, AT_ONCE), [300_000; 9]);
        assert_eq!(pauses(Some(u64::MAX), true, LONGEST), [300_000; 9]);
    }

    #[test]
    fn reconnects_after_events_keep_to_retry_but_not_without_pause() {
        assert_eq!(pauses(Some(0), true, AT_ONCE), [50, 500, 500, 500, 500, 500, 500, 500, 500]);
        assert_eq!(pauses(Some(2000), true, AT_ONCE), [2000; 9]);
        assert_eq!(pauses(Some(100), true, LONGEST), [100; 9]);
    }
}
