//! Questions about 64 bytes at once, each answered by one number with a bit for each byte.
//!
//! A comparison whose result is used in two branches can make the compiler take vectors apart byte by byte: measured,
//! the scan of small objects is then a third slower. [`Block::any_of`] and [`Block::is_plain`] are each one question for
//! that reason.

use wide::u8x16;

/// 64 bytes in four vectors.
#[derive(Clone, Copy)]
pub(super) struct Block([u8x16; 4]);

impl Block {
    pub(super) fn of(bytes: &[u8; 64]) -> Self {
        let (parts, _) = bytes.as_chunks::<16>();
        Self(std::array::from_fn(|at| u8x16::new(parts[at])))
    }

    /// The bytes that are this one.
    pub(super) fn equal(self, byte: u8) -> u64 {
        let wanted = u8x16::splat(byte);
        pack(self.0.map(|part| part.simd_eq(wanted)))
    }

    /// The bytes that are this one when bit 5 is set: a bracket is then a brace.
    pub(super) fn folded(self, byte: u8) -> u64 {
        let (wanted, bit) = (u8x16::splat(byte), u8x16::splat(0x20));
        pack(self.0.map(|part| (part | bit).simd_eq(wanted)))
    }

    /// The bytes that are one of these.
    pub(super) fn any_of<const N: usize>(self, bytes: &[u8; N]) -> u64 {
        let wanted = bytes.map(u8x16::splat);
        pack(self.0.map(|part| wanted.iter().fold(u8x16::splat(0), |any, one| any | part.simd_eq(*one))))
    }

    /// The bytes that are this one or less.
    pub(super) fn up_to(self, byte: u8) -> u64 {
        pack(self.0.map(|part| up_to(part, byte)))
    }

    pub(super) fn digits(self) -> u64 {
        pack(self.0.map(|part| up_to(part - u8x16::splat(b'0'), 9)))
    }

    /// The control characters.
    pub(super) fn controls(self) -> u64 {
        self.up_to(LAST_CONTROL)
    }

    /// Whether there is any control character.
    pub(super) fn has_controls(self) -> bool {
        up_to(least(self.0), LAST_CONTROL).to_bitmask() != 0
    }

    /// Whether all bytes mean only themselves in a string: no quote, backslash or control character.
    pub(super) fn is_plain(self) -> bool {
        let (quote, backslash) = (u8x16::splat(b'"'), u8x16::splat(b'\\'));
        let marks = up_to(least(self.0.map(|part| (part ^ quote).min(part ^ backslash))), 0);
        (marks | up_to(least(self.0), LAST_CONTROL)).to_bitmask() == 0
    }
}

const LAST_CONTROL: u8 = 0x1f;

fn up_to(part: u8x16, byte: u8) -> u8x16 {
    part.min(u8x16::splat(byte)).simd_eq(part)
}

fn least([a, b, c, d]: [u8x16; 4]) -> u8x16 {
    a.min(b).min(c.min(d))
}

/// The highest bit of each byte.
fn pack(parts: [u8x16; 4]) -> u64 {
    let [a, b, c, d] = parts.map(|part| u64::from(part.to_bitmask()));
    a | b << 16 | (c | d << 16) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(bytes: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
        bytes.iter().enumerate().fold(0, |mask, (at, byte)| mask | u64::from(is(*byte)) << at)
    }

    proptest! {
        #[test]
        fn masks_say_of_each_byte_whether_it_fits(
            any in prop::array::uniform32(any::<u8>()),
            near in prop::array::uniform32(prop::sample::select(b"\"\\{}[]/09;:,. \t\x1f\x20\x7f\x80\xa2\xdc".to_vec())),
        ) {
            let bytes: &[u8; 64] = &[any, near].concat().try_into().unwrap();
            let block = Block::of(bytes);
            for byte in [b'"', b'\\', b':', b' ', b'\t', 0x7f] {
                prop_assert_eq!(block.equal(byte), expected(bytes, |other| other == byte));
            }
            for byte in [b'{', b'}'] {
                prop_assert_eq!(block.folded(byte), expected(bytes, |other| other | 0x20 == byte));
            }
            prop_assert_eq!(block.any_of(b"\"{ "), expected(bytes, |other| b"\"{ ".contains(&other)));
            prop_assert_eq!(block.up_to(b' '), expected(bytes, |other| other <= b' '));
            prop_assert_eq!(block.digits(), expected(bytes, |other| other.is_ascii_digit()));
            prop_assert_eq!(block.controls(), expected(bytes, |other| other < 0x20));
            prop_assert_eq!(block.has_controls(), block.controls() != 0);
            let marks = block.equal(b'"') | block.equal(b'\\') | block.controls();
            prop_assert_eq!(block.is_plain(), marks == 0);
        }
    }
}
