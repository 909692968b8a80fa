//! Questions about 64 bytes at once, each answered by one number with a bit for each byte.

#![expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the processor's own instructions"
)]

#[cfg(test)]
use fearless_simd::Level;
use fearless_simd::{Simd, i8x64, mask8x64, prelude::*, u8x64};

/// 64 bytes in as many vectors as the processor needs for them.
#[derive(Clone, Copy)]
pub(super) struct Block<S: Simd>(u8x64<S>);

impl<S: Simd> Block<S> {
    #[inline(always)]
    pub(super) fn of(simd: S, bytes: &[u8; 64]) -> Self {
        Self(u8x64::from_slice(simd, bytes))
    }

    /// The bytes that equal this one.
    #[inline(always)]
    pub(super) fn equal(self, byte: u8) -> u64 {
        self.0.simd_eq(byte).to_bitmask()
    }

    /// The bytes that equal this one once their bit 5 is set: it makes a bracket a brace.
    #[inline(always)]
    pub(super) fn folded(self, byte: u8) -> u64 {
        (self.0 | 0x20).simd_eq(byte).to_bitmask()
    }

    /// The bytes whose bit 5 is set: of the brackets, the braces.
    #[inline(always)]
    pub(super) fn with_bit_5(self) -> u64 {
        (self.0 & 0x20).simd_eq(0x20).to_bitmask()
    }

    /// The bytes that are one of these.
    #[inline(always)]
    pub(super) fn any_of<const N: usize>(self, bytes: &[u8; N]) -> u64 {
        let mut any = mask8x64::splat(self.0.simd, false);
        for byte in bytes {
            any |= self.0.simd_eq(*byte); // a closure would not be inlined
        }
        any.to_bitmask()
    }

    #[inline(always)]
    pub(super) fn digits(self) -> u64 {
        (self.0 - b'0').simd_le(9).to_bitmask()
    }

    /// The control characters.
    #[inline(always)]
    pub(super) fn controls(self) -> u64 {
        self.0.simd_le(LAST_CONTROL).to_bitmask()
    }

    /// Whether there is a backslash or a control character.
    #[inline(always)]
    pub(super) fn has_marks(self) -> bool {
        (self.0.simd_eq(b'\\') | self.0.simd_le(LAST_CONTROL)).any_true()
    }

    /// Whether all bytes mean only themselves in a string: no quote, backslash or control character.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        let marks = self.0.simd_eq(b'"') | self.0.simd_eq(b'\\') | self.0.simd_le(LAST_CONTROL);
        !marks.any_true()
    }

    /// Whether all bytes are ASCII and none is a control character but DEL.
    #[inline(always)]
    pub(super) fn is_printable(self) -> bool {
        // Read as a signed number, every other byte is below the blank.
        !self.0.bitcast::<i8x64<S>>().simd_lt(0x20).any_true()
    }
}

const LAST_CONTROL: u8 = 0x1f;

/// Every set of vector instructions that this processor has, and the one without any.
#[cfg(test)]
pub(super) fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let others = [
        best.as_avx512().map(Level::Avx512),
        best.as_avx2().map(Level::Avx2),
        best.as_sse4_2().map(Level::Sse4_2),
        best.as_sse2().map(Level::Sse2),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let others = [None];
    [best, Level::fallback()].into_iter().chain(others.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use fearless_simd::dispatch;
    use proptest::prelude::*;

    use super::*;

    fn expected(bytes: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
        bytes.iter().enumerate().fold(0, |mask, (at, byte)| mask | u64::from(is(*byte)) << at)
    }

    fn check<S: Simd>(simd: S, bytes: &[u8; 64]) -> Result<(), TestCaseError> {
        let block = Block::of(simd, bytes);
        for byte in [b'"', b'\\', b':', b' ', b'\t', 0x7f] {
            prop_assert_eq!(block.equal(byte), expected(bytes, |other| other == byte));
        }
        for byte in [b'{', b'}'] {
            prop_assert_eq!(block.folded(byte), expected(bytes, |other| other | 0x20 == byte));
        }
        prop_assert_eq!(block.with_bit_5(), expected(bytes, |other| other & 0x20 != 0));
        prop_assert_eq!(block.any_of(b"\"{ "), expected(bytes, |other| b"\"{ ".contains(&other)));
        prop_assert_eq!(block.digits(), expected(bytes, |other| other.is_ascii_digit()));
        prop_assert_eq!(block.controls(), expected(bytes, |other| other < 0x20));
        let marks = block.equal(b'\\') | block.controls();
        prop_assert_eq!(block.has_marks(), marks != 0);
        prop_assert_eq!(block.is_plain(), block.equal(b'"') | marks == 0);
        prop_assert_eq!(block.is_printable(), bytes.iter().all(|byte| matches!(byte, b' '..=0x7f)));
        Ok(())
    }

    proptest! {
        #[test]
        fn masks_say_of_each_byte_whether_it_fits(
            any in prop::array::uniform32(any::<u8>()),
            near in prop::array::uniform32(prop::sample::select(b"\"\\{}[]/09;:,. \t\x1f\x20\x7f\x80\xa2\xdc".to_vec())),
            // Blocks with at most one byte that matters: often all others are plain.
            odd in prop::sample::select(b"a \x7f\x80\xff\x20\x1f\0\"\\".to_vec()),
            place in 0usize..64,
        ) {
            let mixed: [u8; 64] = [any, near].concat().try_into().unwrap();
            let mut plain = [b'x'; 64];
            plain[place] = odd;
            for level in levels() {
                dispatch!(level, simd => check(simd, &mixed))?;
                dispatch!(level, simd => check(simd, &plain))?;
            }
        }
    }
}
