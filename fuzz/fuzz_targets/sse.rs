//! Server-sent events: the events do not depend on where reads end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::wire::{SseDecoder, SseItem};

// The first byte determines the length of reads.
fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    let whole = cut(stream, stream.len());
    assert_eq!(whole, cut(stream, usize::from(*size) % 32 + 1));
    for item in &whole.0 {
        if let SseItem::Event { data: plugbay_core::wire::Incoming::Message(message), .. } = item {
            assert!(!message.contains(&b'\n') && std::str::from_utf8(message).is_ok());
        }
    }
});

/// More than the start that is kept of a message that is too long.
const LIMIT: usize = 2048;

fn cut(stream: &[u8], size: usize) -> (Vec<SseItem>, Option<Vec<u8>>) {
    let mut decoder = SseDecoder::new(LIMIT);
    let mut items = Vec::new();
    for chunk in stream.chunks(size.max(1)) {
        decoder.push(chunk);
        items.extend(std::iter::from_fn(|| decoder.take()));
    }
    (items, decoder.last_id().map(|id| id.to_vec()))
}
