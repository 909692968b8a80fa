//! Checks a whole message and finds the members of its envelope, 64 bytes at a time.
//!
//! The grammar of JSON is nearly local: which token may follow which. So all tokens of a block are checked at once, as
//! bits ([`super::masks`]); only brackets, literals and exponents are looked at one by one. The scan says yes or no. If
//! it says no, [`super::cursor`] tells what is wrong, and where.
//!
//! The scan is compiled once for each set of vector instructions, and the best one that the processor has is taken.
//! Everything that works on each block must be inlined for that: a function of its own is compiled for the
//! oldest processor.

#![expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the processor's own instructions"
)]

use fearless_simd::{Level, Simd, dispatch};

use super::{DEPTH_LIMIT, Span, masks::Block};

/// A member of the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// With its quotes.
    pub(super) key: Span,
    pub(super) value: Span,
    /// How many commas stand directly in the value: one less than it has members.
    pub(super) commas: usize,
}

/// Whether these bytes are one JSON object and nothing else, nested at most [`DEPTH_LIMIT`] deep. `member`
/// gets each member; what it got counts only if the answer is yes. The caller has checked that the bytes are
/// UTF-8.
pub(super) fn object(bytes: &[u8], member: impl FnMut(Found)) -> bool {
    object_with(Level::new(), bytes, member)
}

/// The same with these vector instructions.
fn object_with(level: Level, bytes: &[u8], mut member: impl FnMut(Found)) -> bool {
    let start = bytes.len() - trimmed(bytes).len();
    let text = &bytes[start..];
    let behind = |span: Span| start + span.start..start + span.end;
    let mut member =
        |found: Found| member(Found { key: behind(found.key), value: behind(found.value), ..found });
    text.first() == Some(&b'{') && dispatch!(level, simd => all_blocks(simd, text, &mut member))
}

#[inline(always)]
fn all_blocks<S: Simd>(simd: S, text: &[u8], member: &mut impl FnMut(Found)) -> bool {
    // The object itself stands where a value may.
    let mut scan = Scan { after_colon: 1, ..Scan::default() };
    let mut envelope = Envelope { start: 1, ..Envelope::default() };
    let (blocks, tail) = text.as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..tail.len()].copy_from_slice(tail);
    let mut number = 0;
    while number < blocks.len() {
        if scan.in_text {
            number += text_of_string(simd, &blocks[number..], &mut scan.escape);
        }
        for block in blocks[number..].iter().take(STRIDE) {
            if !scan.block(simd, text, number * 64, block, &mut envelope, member) {
                return false;
            }
            number += 1;
        }
    }
    scan.block(simd, text, number * 64, &last, &mut envelope, member) && envelope.done
}

/// How many blocks of a string are passed at once.
const STRIDE: usize = 4;

/// How many of these blocks have nothing but text of the open string, with the most usual escapes. Most text
/// is skipped here, by a few instructions, and without a branch that depends on where its escapes are.
#[inline(always)]
fn text_of_string<S: Simd>(simd: S, blocks: &[[u8; 64]], escape: &mut u64) -> usize {
    let (strides, _) = blocks.as_chunks::<STRIDE>();
    for (passed, stride) in strides.iter().enumerate() {
        if *escape == 0 && stride.iter().all(|block| Block::of(simd, block).is_plain()) {
            continue;
        }
        let (mut carry, mut wrong) = (*escape, 0);
        for block in stride {
            let block = Block::of(simd, block);
            let escaped = escaped(block.equal(b'\\'), &mut carry);
            wrong |= block.equal(b'"') & !escaped | escaped & !block.any_of(b"nt\"\\") | block.controls();
        }
        if wrong != 0 {
            return passed * STRIDE;
        }
        *escape = carry;
    }
    strides.len() * STRIDE
}

/// The state between two blocks: what has been read, and what must come next. A `u64` holds one bit, unless
/// its comment says otherwise.
#[derive(Default)]
struct Scan {
    /// All bits if the next block begins inside of a string.
    in_string: u64,
    /// The last block had nothing but text of a string.
    in_text: bool,
    /// The next byte is escaped.
    escape: u64,
    /// The string that is open is a key.
    in_key: u64,
    /// The last byte belongs to a number or a literal.
    scalar: u64,
    number: Number,
    /// The last token was a colon,
    after_colon: u64,
    /// a comma,
    after_comma: u64,
    /// a bracket that opens,
    after_open: u64,
    /// the end of a key.
    after_key: u64,
    /// For each open bracket, innermost first, whether it is a brace. The outermost is one, so its bit tells the depth.
    stack: u64,
}

/// The state of a number between two blocks: the part of it that the last byte is. Each field holds one bit.
#[derive(Default)]
struct Number {
    /// The minus,
    minus: u64,
    /// a zero at the start,
    zero: u64,
    /// any digit before the dot,
    integer: u64,
    /// the dot,
    dot: u64,
    /// a digit after it.
    fraction: u64,
}

/// The tokens of one block outside of strings.
struct Tokens {
    opening_quotes: u64,
    within_strings: u64,
    left: u64,
    right: u64,
    colons: u64,
    commas: u64,
    blanks: u64,
    /// Bytes of numbers and literals,
    scalars: u64,
    /// and among them these.
    digits: u64,
    zeros: u64,
    dots: u64,
}

/// The stack of brackets when all are open that an envelope has around the members of a value.
const DEEPEST_OF_ENVELOPE: u64 = 0b11;

/// The nesting of a block's other tokens, as its brackets tell it.
struct Nesting {
    /// Bytes after one that stands directly in an object.
    in_object: u64,
    /// Some bytes stand directly in the envelope or in one of its values, or after it.
    in_envelope: bool,
}

impl Scan {
    #[inline(always)]
    fn block<S: Simd>(
        &mut self,
        simd: S,
        text: &[u8],
        base: usize,
        bytes: &[u8; 64],
        envelope: &mut Envelope,
        member: &mut impl FnMut(Found),
    ) -> bool {
        let block = Block::of(simd, bytes);
        let (mut quotes, mut backslashes, mut controls) = (block.equal(b'"'), 0, 0);
        if self.escape != 0 || block.has_marks() {
            (backslashes, controls) = (block.equal(b'\\'), block.controls());
            let escaped = escaped(backslashes, &mut self.escape);
            let unusual = escaped & !(block.any_of(b"nt") | quotes | backslashes);
            if unusual != 0 && !are_escapes(text, base, unusual) {
                return false;
            }
            quotes &= !escaped;
            if controls != 0 && controls & !block.any_of(b"\t\n\r") != 0 {
                return false;
            }
        }
        self.in_text = quotes == 0 && self.in_string != 0;
        if self.in_text {
            return controls == 0;
        }
        let within_strings = parity(quotes) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(within_strings >> 63);
        if backslashes & !within_strings | controls & within_strings != 0 {
            return false;
        }
        let outside = !(within_strings | quotes);
        let blanks = (block.equal(b' ') | controls) & outside;
        let left = block.folded(b'{') & outside;
        let right = block.folded(b'}') & outside;
        let colons = block.equal(b':') & outside;
        let commas = block.equal(b',') & outside;
        let tokens = Tokens {
            opening_quotes: quotes & within_strings,
            within_strings,
            left,
            right,
            colons,
            commas,
            blanks,
            scalars: outside & !(left | right | colons | commas | blanks),
            digits: block.digits() & outside,
            zeros: block.equal(b'0') & outside,
            dots: block.equal(b'.') & outside,
        };
        let depth = self.depth();
        if self.is_too_deep(&tokens) {
            return false;
        }
        let nesting = self.nesting(bytes, &tokens);
        let mismatched = (nesting.in_object ^ block.with_bit_5()) & right;
        mismatched == 0
            && self.follows_grammar(text, base, &tokens, &nesting)
            && (!nesting.in_envelope || envelope.read(text, base, &tokens, depth, member))
    }

    #[inline(always)]
    fn depth(&self) -> u32 {
        u64::BITS - self.stack.leading_zeros()
    }

    /// Whether the brackets of a block are nested too deep. Counting those that open is nearly always enough.
    #[inline(always)]
    fn is_too_deep(&self, tokens: &Tokens) -> bool {
        const { assert!(DEPTH_LIMIT == u64::BITS, "the open levels are the bits of one u64") }
        let mut depth = self.depth();
        depth + tokens.left.count_ones() > DEPTH_LIMIT
            && bits(tokens.left | tokens.right).any(|at| {
                depth = if tokens.left >> at & 1 == 1 { depth + 1 } else { depth.saturating_sub(1) };
                depth > DEPTH_LIMIT
            })
    }

    /// Follows the brackets, without a branch that depends on them: which come next is hard to predict.
    #[inline(always)]
    fn nesting(&mut self, bytes: &[u8; 64], tokens: &Tokens) -> Nesting {
        let (mut stack, mut lowest) = (self.stack, self.stack);
        let mut in_object = 0u64.wrapping_sub(stack & 1);
        for at in bits(tokens.left | tokens.right) {
            // The bits by which the four brackets differ.
            let bracket = bytes[at];
            let (is_left, is_brace) = (bracket & 2 != 0, u64::from(bracket >> 5 & 1));
            let outer = stack;
            stack = if is_left { outer << 1 | is_brace } else { outer >> 1 };
            lowest = lowest.min(stack);
            in_object ^= 0u64.wrapping_sub((outer ^ stack) & 1) << at;
        }
        let in_object = in_object << 1 | self.stack & 1;
        self.stack = stack;
        Nesting { in_object, in_envelope: lowest <= DEEPEST_OF_ENVELOPE }
    }

    /// Whether each token may follow the one before it, and each number and literal is valid.
    #[inline(always)]
    fn follows_grammar(&mut self, text: &[u8], base: usize, tokens: &Tokens, nesting: &Nesting) -> bool {
        let Tokens { opening_quotes, left, right, colons, commas, blanks, .. } = *tokens;
        let scalar_starts = tokens.scalars & !shift(tokens.scalars, &mut self.scalar);
        if !self.number.follows_grammar(text, base, tokens, scalar_starts) {
            return false;
        }
        let behind_colon = behind(colons, blanks, &mut self.after_colon);
        let behind_comma = behind(commas, blanks, &mut self.after_comma);
        let behind_open = behind(left, blanks, &mut self.after_open);
        let key_places = (behind_comma | behind_open) & nesting.in_object;

        // The addition carries a key through its string, from the opening quote to the closing one.
        let key_ends = run_ends(opening_quotes & key_places, tokens.within_strings, &mut self.in_key);
        let behind_key = behind(key_ends, blanks, &mut self.after_key);

        // A value follows a colon, a comma or an opening bracket; nothing else does, except in an empty pair.
        let values = opening_quotes | left | scalar_starts;
        let value_places = behind_colon | behind_comma | behind_open;
        let wrong = (value_places ^ values) & !(behind_open & right)
            | key_places & !(opening_quotes | right)
            | behind_key ^ colons;
        wrong == 0
    }
}

/// The envelope as far as it has been read.
#[derive(Default)]
struct Envelope {
    /// Where the member that is being read starts, and where its colon is.
    start: usize,
    colon: Option<usize>,
    /// How many commas stand directly in its value.
    commas: usize,
    /// The envelope has ended.
    done: bool,
}

impl Envelope {
    /// Reports the members that end in this block, which begins this deep. False: more follows the envelope.
    fn read(
        &mut self,
        text: &[u8],
        base: usize,
        tokens: &Tokens,
        mut depth: u32,
        member: &mut impl FnMut(Found),
    ) -> bool {
        if self.done {
            return tokens.blanks == u64::MAX;
        }
        for place in bits(tokens.left | tokens.right | tokens.colons | tokens.commas) {
            let at = base + place;
            let byte = text[at];
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => self.colon = Some(at),
                b',' if depth == 2 => self.commas += 1,
                _ => {}
            }
            if depth == 0 || depth == 1 && byte == b',' {
                let commas = std::mem::take(&mut self.commas);
                if let Some(colon) = self.colon.take() {
                    let (key, value) = (trim(text, self.start..colon), trim(text, colon + 1..at));
                    member(Found { key, value, commas });
                }
                self.start = at + 1;
            }
            if depth == 0 {
                self.done = true;
                let behind = (u64::MAX << place) << 1;
                return behind & !tokens.blanks == 0;
            }
        }
        true
    }
}

impl Number {
    /// Whether each number and each literal is valid; `starts` are their first bytes.
    #[inline(always)]
    fn follows_grammar(&mut self, text: &[u8], base: usize, tokens: &Tokens, starts: u64) -> bool {
        let Tokens { scalars, digits, zeros, dots, .. } = *tokens;
        let mut minuses = 0;
        for at in bits(starts & !digits) {
            let text = &text[base + at..];
            if text[0] == b'-' {
                minuses |= 1 << at;
            } else if !is_literal(text) {
                return false;
            }
        }
        let behind_minus = shift(minuses, &mut self.minus);
        let first_digits = (starts | behind_minus) & digits;
        let behind_zero = shift(first_digits & zeros, &mut self.zero);
        let integer_ends = run_ends(first_digits, digits, &mut self.integer);
        let dots = dots & integer_ends;
        let behind_dot = shift(dots, &mut self.dot);
        let fraction_ends = run_ends(behind_dot & digits, digits, &mut self.fraction);
        let wrong = (behind_minus | behind_dot) & !digits | behind_zero & digits;
        let exponents = (integer_ends & !dots | fraction_ends) & scalars;
        wrong == 0 && (exponents == 0 || are_exponents(text, base, exponents))
    }
}

/// The bytes that are escaped: each follows a backslash that is not escaped itself.
#[inline(always)]
pub(super) fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    // In a run of backslashes every other one escapes. A subtraction finds the end of each run, and whether it
    // stands at an odd place.
    let first = backslashes & !*carry;
    let ends = ((first << 1) | ODD).wrapping_sub(first) ^ ODD;
    let escaped = ends ^ (backslashes | *carry);
    *carry = (ends & backslashes) >> 63;
    escaped
}

/// The places directly after these.
#[inline(always)]
fn shift(places: u64, carry: &mut u64) -> u64 {
    let shifted = places << 1 | *carry;
    *carry = places >> 63;
    shifted
}

/// The first places after the runs that have these starts. A run that continues from the last block has no
/// start here.
#[inline(always)]
fn run_ends(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    // The addition carries a start through its run.
    let (through, over) = runs.overflowing_add(starts | *carry);
    *carry = u64::from(over);
    through & !runs
}

/// The first places after these tokens that are not blank.
#[inline(always)]
fn behind(tokens: u64, blanks: u64, carry: &mut u64) -> u64 {
    let places = shift(tokens, carry);
    if blanks == 0 {
        return places;
    }
    // The addition carries a place in a run of blanks to the end of the run.
    let (through, over) = blanks.overflowing_add(places & blanks);
    *carry |= u64::from(over);
    (places | through) & !blanks
}

/// For each bit, whether the count of bits up to and with it is odd.
#[inline(always)]
pub(super) fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The places of the bits that are set.
#[inline(always)]
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(
        #[inline(always)]
        move || {
            let at = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
            mask &= mask - 1;
            Some(at)
        },
    )
}

/// Whether the text at each of these places may follow a backslash.
#[inline(never)]
fn are_escapes(text: &[u8], base: usize, places: u64) -> bool {
    bits(places).all(|at| is_escape(&text[(base + at).min(text.len())..]))
}

/// Whether each of these places begins an exponent that ends its number.
#[inline(never)]
fn are_exponents(text: &[u8], base: usize, places: u64) -> bool {
    bits(places).all(|at| is_exponent(&text[base + at..]))
}

/// Whether the text begins with something that may follow a backslash.
fn is_escape(text: &[u8]) -> bool {
    match text {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'u', digits @ ..] => {
            digits.first_chunk::<4>().is_some_and(|four| four.iter().all(u8::is_ascii_hexdigit))
        }
        _ => false,
    }
}

/// Whether the text begins with a literal that ends there.
#[inline(always)]
fn is_literal(text: &[u8]) -> bool {
    match text.split_first_chunk() {
        Some((b"true" | b"null", rest) | (b"fals", [b'e', rest @ ..])) => ends_value(rest),
        _ => false,
    }
}

/// Whether the text begins with an exponent that ends there.
fn is_exponent(text: &[u8]) -> bool {
    let ([b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..]) = text else { return false };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    count > 0 && ends_value(&digits[count..])
}

/// Whether the text begins with a byte that may follow a value.
#[inline(always)]
fn ends_value(text: &[u8]) -> bool {
    matches!(text, [b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t', ..])
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    &bytes[bytes.iter().take_while(blank).count()..]
}

/// The span without the blanks at its ends; they have been checked.
fn trim(text: &[u8], span: Span) -> Span {
    let start = span.end - text[span.clone()].trim_ascii_start().len();
    start..start + text[start..span.end].trim_ascii_end().len()
}

#[cfg(test)]
mod tests;
