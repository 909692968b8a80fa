//! Replaces the short escapes of a JSON string, such as `\"` and `\n`, 64 bytes at a time.

#![expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the processor's own instructions"
)]

use fearless_simd::{Level, Simd, dispatch};

use super::masks::Block;

/// How many bytes of a text are read together: a block, and those after it that a copy of eight may include.
const WINDOW: usize = 72;
/// How many bytes a window may fill.
const ROOM: usize = 80;

/// A string that is being unescaped.
pub(crate) struct Unescaped<'a> {
    pub(crate) text: &'a [u8],
    /// How much of the text has been read.
    pub(crate) at: usize,
    /// The unescaped text. Bytes after `end` do not count.
    pub(crate) out: Vec<u8>,
    pub(crate) end: usize,
}

impl<'a> Unescaped<'a> {
    /// `text` is the string without its quotes. Nothing becomes longer than its escape.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, out: vec![0; text.len() + ROOM], end: 0 }
    }

    /// Goes on up to an escape that is not short, or to the last bytes of the text.
    pub(crate) fn pass_short_escapes(&mut self) {
        dispatch!(Level::new(), simd => self.pass_blocks(simd));
    }

    #[inline(always)]
    fn pass_blocks<S: Simd>(&mut self, simd: S) {
        while let Some(window) = self.text[self.at..].first_chunk::<WINDOW>()
            && let Some(room) = self.out[self.end..].first_chunk_mut::<ROOM>()
        {
            let (Some(block), Some(start)) = (window.first_chunk::<64>(), room.first_chunk_mut::<64>())
            else {
                return;
            };
            let mut marks = Block::of(simd, block).equal(b'\\');
            if marks == 0 {
                *start = *block;
                (self.at, self.end) = (self.at + 64, self.end + 64);
                continue;
            }
            let (mut from, mut to) = (0, 0);
            while marks != 0 {
                let mark = marks.trailing_zeros() as usize;
                to = copy(window, from..mark, room, to);
                let byte = SHORT_ESCAPES[usize::from(window[mark + 1])];
                if byte == 0 {
                    (self.at, self.end) = (self.at + mark, self.end + to);
                    return;
                }
                room[to & 63] = byte;
                (from, to) = (mark + 2, to + 1);
                // The escaped byte may be a backslash itself.
                let bit = marks & marks.wrapping_neg();
                marks &= !(bit | bit << 1);
            }
            to = copy(window, from..64, room, to);
            (self.at, self.end) = (self.at + from.max(64), self.end + to);
        }
    }
}

/// Copies bytes of a block, eight at a time: some after them are written too, and do not count.
#[inline(always)]
fn copy(window: &[u8; WINDOW], bytes: std::ops::Range<usize>, room: &mut [u8; ROOM], to: usize) -> usize {
    let (mut from, mut end) = (bytes.start, to);
    while from < bytes.end {
        let (source, target) =
            (window[from & 63..].first_chunk::<8>(), room[end & 63..].first_chunk_mut::<8>());
        if let (Some(source), Some(target)) = (source, target) {
            *target = *source;
        }
        (from, end) = (from + 8, end + 8);
    }
    to + bytes.end.saturating_sub(bytes.start)
}

/// The byte that a short escape stands for, by the letter after the backslash. The others are 0.
static SHORT_ESCAPES: [u8; 256] = {
    let mut bytes = [0; 256];
    let pairs = [b"\"\"", b"\\\\", b"//", b"n\n", b"t\t", b"r\r", b"b\x08", b"f\x0c"];
    let mut at = 0;
    while at < pairs.len() {
        bytes[pairs[at][0] as usize] = pairs[at][1];
        at += 1;
    }
    bytes
};
