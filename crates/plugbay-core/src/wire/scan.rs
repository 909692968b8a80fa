//! Checks a whole message and finds the members of its envelope, 64 bytes at a time.
//!
//! The grammar of JSON is nearly local: which token may follow which. So all tokens of a block are checked at once, as
//! bits ([`super::masks`]); only brackets, literals and exponents are looked at one by one. The scan says yes or no. If
//! it says no, [`super::cursor`] tells what is wrong, and where.

use super::{DEPTH_LIMIT, Span, masks::Block};

/// Whether these bytes are one JSON object and nothing else, nested at most [`DEPTH_LIMIT`] deep. `member` gets the key,
/// with its quotes, and the value of each member; what it got counts only if the answer is yes. That the bytes are UTF-8
/// has been seen to before.
pub(super) fn object(bytes: &[u8], mut member: impl FnMut(Span, Span)) -> bool {
    let start = bytes.len() - trimmed(bytes).len();
    let text = &bytes[start..];
    if text.first() != Some(&b'{') {
        return false;
    }
    let mut member = |key: Span, value: Span| {
        member(start + key.start..start + key.end, start + value.start..start + value.end);
    };
    // The object itself stands where a value may.
    let mut scan = Scan { after_colon: 1, member_start: 1, ..Scan::default() };
    let (blocks, tail) = text.as_chunks::<64>();
    for (number, block) in blocks.iter().enumerate() {
        if !scan.is_only_text(block) && !scan.block(text, number * 64, block, &mut member) {
            return false;
        }
    }
    let mut last = [b' '; 64];
    last[..tail.len()].copy_from_slice(tail);
    scan.block(text, blocks.len() * 64, &last, &mut member) && scan.done
}

/// Between two blocks: what has been read, and what must come next. Each `u64` but `objects` is one bit or all bits.
#[derive(Default)]
struct Scan {
    /// All bits if the next block begins inside of a string.
    in_string: u64,
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
    /// How many brackets are open, and for each, innermost first, whether it is an object.
    depth: u32,
    objects: u64,
    /// The object has ended.
    done: bool,
    /// The member of the envelope that is being read: where it starts, and where its colon is.
    member_start: usize,
    member_colon: Option<usize>,
}

/// Between two blocks: which part of a number the last byte is. Each is one bit.
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
    /// a digit behind it.
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

/// What the brackets of one block tell of its other tokens.
struct Nesting {
    /// Bytes behind one that stands directly in an object.
    in_object: u64,
    /// Some bytes stand directly in the envelope.
    in_envelope: bool,
}

impl Scan {
    /// Whether a block is the middle of a string and nothing in it needs a look. It is a question of its own, so that a
    /// long string is passed by a loop of a few instructions.
    fn is_only_text(&self, bytes: &[u8; 64]) -> bool {
        self.in_string != 0 && self.escape == 0 && Block::of(bytes).is_plain()
    }

    fn block(
        &mut self,
        text: &[u8],
        base: usize,
        bytes: &[u8; 64],
        member: &mut impl FnMut(Span, Span),
    ) -> bool {
        let block = Block::of(bytes);
        let (mut quotes, backslashes) = (block.equal(b'"'), block.equal(b'\\'));
        let has_controls = block.has_controls();
        if backslashes | self.escape != 0 {
            let escaped = escaped(backslashes, &mut self.escape);
            let usual = block.any_of(b"nt") | quotes | backslashes;
            if !bits(escaped & !usual).all(|at| is_escape(&text[(base + at).min(text.len())..])) {
                return false;
            }
            quotes &= !escaped;
        }
        if quotes == 0 && self.in_string != 0 {
            return !has_controls;
        }
        let within_strings = parity(quotes) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(within_strings >> 63);
        let is_wrong_control = || block.controls() & (within_strings | !block.any_of(b"\n\r\t")) != 0;
        if backslashes & !within_strings != 0 || has_controls && is_wrong_control() {
            return false;
        }
        let outside = !(within_strings | quotes);
        let blanks = block.up_to(b' ') & outside;
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
        if self.done {
            return blanks == u64::MAX;
        }
        let depth = self.depth;
        let Some(nesting) = self.nesting(bytes, &tokens) else { return false };
        if !self.follows_grammar(text, base, &tokens, &nesting) {
            return false;
        }
        if nesting.in_envelope {
            self.tell_members(text, base, &tokens, depth, member);
        }
        true
    }

    /// Follows the brackets. `None`: they do not match, or are too deep, or something stands behind the last.
    fn nesting(&mut self, bytes: &[u8; 64], tokens: &Tokens) -> Option<Nesting> {
        const { assert!(DEPTH_LIMIT <= 64, "the open levels are kept in the bits of one u64") }
        let (mut depth, mut objects) = (self.depth, self.objects);
        let mut in_object = 0u64.wrapping_sub(objects & 1);
        let mut in_envelope = depth <= 1;
        for at in bits(tokens.left | tokens.right) {
            let outer = objects & 1;
            // The bits by which the four brackets differ.
            let bracket = bytes[at];
            let (is_left, is_brace) = (bracket & 2 != 0, u64::from(bracket >> 5 & 1));
            if is_left {
                if depth == DEPTH_LIMIT {
                    return None;
                }
                depth += 1;
                objects = objects << 1 | is_brace;
            } else {
                if outer != is_brace {
                    return None;
                }
                depth -= 1;
                objects >>= 1;
                in_envelope |= depth <= 1;
                if depth == 0 {
                    self.done = true;
                    let behind = (u64::MAX << at) << 1;
                    if behind & !tokens.blanks != 0 {
                        return None;
                    }
                }
            }
            in_object ^= 0u64.wrapping_sub(outer ^ objects & 1) << at;
        }
        let in_object = in_object << 1 | self.objects & 1;
        (self.depth, self.objects) = (depth, objects);
        Some(Nesting { in_object, in_envelope })
    }

    /// Whether each token may follow the one before it, and each number and literal is one.
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

        // A key passes through its string by carrying: from the opening quote to the closing one.
        let key_ends = run_ends(opening_quotes & key_places, tokens.within_strings, &mut self.in_key);
        let behind_key = behind(key_ends, blanks, &mut self.after_key);

        // A value stands behind a colon, a comma or an opening bracket, and nothing else does, but for an empty pair.
        let values = opening_quotes | left | scalar_starts;
        let value_places = behind_colon | behind_comma | behind_open;
        let wrong = (value_places ^ values) & !(behind_open & right)
            | key_places & !(opening_quotes | right)
            | behind_key ^ colons;
        wrong == 0
    }

    /// Tells of the members of the envelope that end in this block, which begins this deep.
    fn tell_members(
        &mut self,
        text: &[u8],
        base: usize,
        tokens: &Tokens,
        mut depth: u32,
        member: &mut impl FnMut(Span, Span),
    ) {
        for at in bits(tokens.left | tokens.right | tokens.colons | tokens.commas) {
            let at = base + at;
            let byte = text[at];
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => self.member_colon = Some(at),
                _ => {}
            }
            if depth == 0 || depth == 1 && byte == b',' {
                if let Some(colon) = self.member_colon.take() {
                    member(trim(text, self.member_start..colon), trim(text, colon + 1..at));
                }
                self.member_start = at + 1;
            }
        }
    }
}

impl Number {
    /// Whether each number and each literal is one; `starts` are their first bytes.
    fn follows_grammar(&mut self, text: &[u8], base: usize, tokens: &Tokens, starts: u64) -> bool {
        let Tokens { scalars, digits, zeros, dots, .. } = *tokens;
        let mut minuses = 0;
        for at in bits(starts & !digits) {
            match &text[base + at..] {
                [b'-', ..] => minuses |= 1 << at,
                text if is_literal(text) => {}
                _ => return false,
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
        // An exponent is rare.
        let exponents = (integer_ends & !dots | fraction_ends) & scalars;
        wrong == 0 && bits(exponents).all(|at| is_exponent(&text[base + at..]))
    }
}

/// The bytes behind a backslash that is not itself behind one.
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

/// The places behind these.
fn shift(places: u64, carry: &mut u64) -> u64 {
    let shifted = places << 1 | *carry;
    *carry = places >> 63;
    shifted
}

/// The first places behind the runs that have these starts.
fn run_ends(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    // A start is carried through its run.
    let (through, over) = runs.overflowing_add(starts);
    let (through, again) = through.overflowing_add(*carry);
    *carry = u64::from(over | again);
    through & !runs
}

/// The first places that are not blank behind these tokens.
fn behind(tokens: u64, blanks: u64, carry: &mut u64) -> u64 {
    let places = tokens << 1 | *carry;
    // A place in a run of blanks is carried through to the end of the run.
    let (through, over) = blanks.overflowing_add(places & blanks);
    *carry = tokens >> 63 | u64::from(over);
    (places | through) & !blanks
}

/// For each bit, whether the count of bits up to and with it is odd.
pub(super) fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The places of the bits that are set.
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(at)
    })
}

/// Whether the text begins with what may stand behind a backslash.
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
fn is_literal(text: &[u8]) -> bool {
    match text {
        [b't', b'r', b'u', b'e', rest @ ..]
        | [b'n', b'u', b'l', b'l', rest @ ..]
        | [b'f', b'a', b'l', b's', b'e', rest @ ..] => ends_value(rest),
        _ => false,
    }
}

/// Whether the text begins with an exponent that ends there.
fn is_exponent(text: &[u8]) -> bool {
    let ([b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..]) = text else { return false };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    count > 0 && ends_value(&digits[count..])
}

/// Whether the text begins with a byte that may stand behind a value.
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
