//! Both framings: the messages do not depend on where reads end, and no message is longer than the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::wire::{Framer, Incoming};

/// More than the start that is kept of a message that is too long.
const LIMIT: usize = 2048;

// The first byte determines the length of reads.
fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    let whole = cut(stream, stream.len());
    assert_eq!(whole, cut(stream, usize::from(*size) % 64 + 1), "the messages depend on the reads");
    for item in &whole {
        match item {
            Incoming::Message(message) => {
                assert!(message.len() <= LIMIT && std::str::from_utf8(message).is_ok());
                assert!(!message.contains(&b'\n'), "a message is one line");
            }
            Incoming::TooLong { start, end } => assert!(start.len() <= 1024 && end.len() <= 128),
            Incoming::NotText(_) | Incoming::Noise(_) => {}
        }
    }
});

fn cut(stream: &[u8], size: usize) -> Vec<Incoming> {
    let mut framer = Framer::new(LIMIT);
    let mut items = Vec::new();
    for chunk in stream.chunks(size.max(1)) {
        framer.buffer().extend_from_slice(chunk);
        framer.filled(chunk.len());
        items.extend(std::iter::from_fn(|| framer.take()));
    }
    items
}
