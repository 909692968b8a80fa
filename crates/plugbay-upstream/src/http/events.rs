//! A response that is a stream of events, read one by one.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::wire::{Incoming, SseDecoder, SseItem};
use reqwest::Response;

use super::peer::Trouble;

pub(super) struct Events {
    response: Response,
    decoder: SseDecoder,
    /// How long the server wants to be left alone before the stream is asked for again.
    retry: Option<Duration>,
}

/// Where a stream broke off: all that is needed to ask for the rest of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Bookmark {
    pub(super) last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// How often it has been asked for since it last brought anything.
    attempts: u32,
}

pub(super) struct Event {
    pub(super) name: Bytes,
    pub(super) data: Incoming,
}

impl Events {
    /// `bookmark`: the stream goes on from there.
    pub(super) fn new(response: Response, limit: usize, bookmark: &Bookmark) -> Self {
        let decoder = SseDecoder::resumed(limit, bookmark.last_id.clone());
        Self { response, decoder, retry: bookmark.retry }
    }

    /// The next event with something in it; why the stream has ended otherwise.
    pub(super) async fn next(&mut self) -> Result<Event, Trouble> {
        loop {
            match self.decoder.take() {
                Some(SseItem::Retry(pause)) => self.retry = Some(pause),
                // Sent only for its id.
                Some(SseItem::Event { data: Incoming::Message(data), .. }) if data.is_empty() => {}
                Some(SseItem::Event { name, data }) => return Ok(Event { name, data }),
                None => match self.response.chunk().await {
                    Ok(Some(chunk)) => self.decoder.push(&chunk),
                    Ok(None) => return Err(Trouble::Broken("its stream ended".to_owned())),
                    Err(error) => return Err(Trouble::Broken(Trouble::words(&error))),
                },
            }
        }
    }

    pub(super) fn bookmark(&self, attempts: u32) -> Bookmark {
        Bookmark { last_id: self.decoder.last_id().cloned(), retry: self.retry, attempts }
    }
}

impl Bookmark {
    /// How long to wait before the stream is asked for again, and how often that has been so.
    pub(super) fn next_attempt(&mut self) -> (Duration, u32) {
        const FIRST: Duration = Duration::from_millis(500);
        const LONGEST: Duration = Duration::from_secs(30);
        let pause =
            self.retry.unwrap_or(FIRST).saturating_mul(2u32.saturating_pow(self.attempts)).min(LONGEST);
        self.attempts = (self.attempts + 1).min(16);
        (pause, self.attempts)
    }
}
