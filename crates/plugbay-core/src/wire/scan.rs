//! Checks a whole message and finds the members of its envelope, 64 bytes at a time.
//!
//! The grammar of JSON is nearly local: which token may follow which. So all tokens of a block are checked at once, as
//! bits ([`super::masks`]); only brackets and numbers are looked at one by one. The scan says yes or no. If it says no,
//! [`super::cursor`] tells what is wrong, and where.

#![expect(
    clippy::inline_always,
    reason = "the parts of the loop share registers: measured, it is twice as fast"
)]

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
    let mut scan = Scan { member_start: 1, ..Scan::default() };
    let (blocks, tail) = text.as_chunks::<64>();
    for (number, block) in blocks.iter().enumerate() {
        if !scan.block(text, number * 64, block, &mut member) {
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
    /// The last token was a colon or a comma,
    after_separator: u64,
    /// a bracket that opens,
    after_open: u64,
    /// one behind which a key must come,
    before_key: u64,
    /// the end of a value,
    after_value: u64,
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

/// The tokens of one block outside of strings.
struct Tokens {
    opening_quotes: u64,
    closing_quotes: u64,
    within_strings: u64,
    left: u64,
    right: u64,
    colons: u64,
    commas: u64,
    blanks: u64,
    /// Bytes of numbers and literals.
    scalars: u64,
}

/// What the brackets of one block tell of its other tokens.
#[derive(Default)]
struct Nesting {
    /// Bytes that stand directly in an object.
    in_object: u64,
    /// Bytes that stand directly in the envelope.
    in_envelope: u64,
    /// Opening brackets of objects.
    left_braces: u64,
    /// Where the envelope ends.
    end: Option<u32>,
}

impl Scan {
    #[inline(always)]
    fn block(
        &mut self,
        text: &[u8],
        base: usize,
        bytes: &[u8; 64],
        member: &mut impl FnMut(Span, Span),
    ) -> bool {
        let block = Block::of(bytes);
        if self.in_string != 0 && self.escape == 0 && block.is_plain() {
            return true;
        }
        let (mut quotes, backslashes) = (block.equal(b'"'), block.equal(b'\\'));
        let controls = if block.has_controls() { block.controls() } else { 0 };
        if backslashes | self.escape != 0 {
            let escaped = self.escaped(backslashes);
            let usual = block.equal(b'n') | block.equal(b't') | quotes | backslashes;
            if !bits(escaped & !usual).all(|at| is_escape(&text[(base + at).min(text.len())..])) {
                return false;
            }
            quotes &= !escaped;
        }
        if quotes == 0 && self.in_string != 0 {
            return controls == 0;
        }
        let within_strings = parity(quotes) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(within_strings >> 63);
        if (controls & within_strings) | (backslashes & !within_strings) != 0 {
            return false;
        }
        let outside = !(within_strings | quotes);
        let mut blanks = block.equal(b' ') & outside;
        if controls != 0 {
            blanks |= outside & (block.equal(b'\n') | block.equal(b'\r') | block.equal(b'\t'));
        }
        let left = block.folded(b'{') & outside;
        let right = block.folded(b'}') & outside;
        let colons = block.equal(b':') & outside;
        let commas = block.equal(b',') & outside;
        let tokens = Tokens {
            opening_quotes: quotes & within_strings,
            closing_quotes: quotes & !within_strings,
            within_strings,
            left,
            right,
            colons,
            commas,
            blanks,
            scalars: outside & !(left | right | colons | commas | blanks),
        };
        if self.done {
            return blanks == u64::MAX;
        }
        let Some(nesting) = self.nesting(bytes, &tokens) else { return false };
        if !self.follows_grammar(text, base, &tokens, &nesting) {
            return false;
        }
        self.tell_members(text, base, &tokens, &nesting, member);
        true
    }

    /// The bytes behind a backslash that is not itself behind one.
    #[inline(always)]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        // In a run of backslashes every other one escapes. A subtraction finds the end of each run, and whether it
        // stands at an odd place.
        let first = backslashes & !self.escape;
        let ends = ((first << 1) | ODD).wrapping_sub(first) ^ ODD;
        let escaped = ends ^ (backslashes | self.escape);
        self.escape = (ends & backslashes) >> 63;
        escaped
    }

    /// Follows the brackets. `None`: they do not match, or are too deep, or something stands behind the last.
    #[inline(always)]
    fn nesting(&mut self, bytes: &[u8; 64], tokens: &Tokens) -> Option<Nesting> {
        const { assert!(DEPTH_LIMIT <= 64, "the open levels are kept in the bits of one u64") }
        let all = |yes: bool| 0u64.wrapping_sub(u64::from(yes));
        let mut nesting = Nesting {
            in_object: all(self.objects & 1 == 1),
            in_envelope: all(self.depth == 1),
            ..Nesting::default()
        };
        let (mut depth, mut objects) = (self.depth, self.objects);
        let mut brackets = tokens.left | tokens.right;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            let (in_object, in_envelope) = (objects & 1, depth == 1);
            // The bits by which the four brackets differ.
            let bracket = bytes[at as usize];
            let (is_left, is_brace) = (bracket & 2 != 0, u64::from(bracket >> 5 & 1));
            if is_left {
                if depth == DEPTH_LIMIT {
                    return None;
                }
                depth += 1;
                objects = objects << 1 | is_brace;
                nesting.left_braces |= is_brace << at;
            } else {
                if in_object != is_brace {
                    return None;
                }
                depth -= 1;
                objects >>= 1;
                if depth == 0 {
                    let behind = u64::MAX.checked_shl(at + 1).unwrap_or(0);
                    self.done = true;
                    nesting.end = Some(at);
                    return (behind & !tokens.blanks == 0).then_some(nesting);
                }
            }
            nesting.in_object ^= 0u64.wrapping_sub(in_object ^ objects & 1) << at;
            nesting.in_envelope ^= all(in_envelope != (depth == 1)) << at;
        }
        (self.depth, self.objects) = (depth, objects);
        Some(nesting)
    }

    /// Whether each token may follow the one before it, and each number and literal is one.
    #[inline(always)]
    fn follows_grammar(&mut self, text: &[u8], base: usize, tokens: &Tokens, nesting: &Nesting) -> bool {
        let Tokens { opening_quotes, closing_quotes, left, right, colons, commas, blanks, .. } = *tokens;
        let behind_scalar = tokens.scalars << 1 | self.scalar;
        self.scalar = tokens.scalars >> 63;
        let scalar_starts = tokens.scalars & !behind_scalar;
        if !bits(scalar_starts).all(|at| is_scalar(&text[base + at..])) {
            return false;
        }
        let values = opening_quotes | left | scalar_starts;

        let next = |tokens, carry: &mut u64| behind(tokens, 0, blanks, carry);
        let behind_separator = next(colons | commas, &mut self.after_separator);
        let behind_open = next(left, &mut self.after_open);
        let key_place = next(nesting.left_braces | commas & nesting.in_object, &mut self.before_key);
        let scalar_ends = behind_scalar & !tokens.scalars;
        let behind_value = behind(closing_quotes | right, scalar_ends, blanks, &mut self.after_value);

        // A key passes through its string by carrying: from the opening quote to the closing one.
        let (through, over) = tokens.within_strings.overflowing_add(opening_quotes & key_place);
        let (through, again) = through.overflowing_add(self.in_key);
        self.in_key = u64::from(over | again);
        let behind_key = next(through & closing_quotes, &mut self.after_key);

        let wrong = behind_separator & !values
            | behind_open & !(values | right)
            | key_place & !(opening_quotes | right)
            | behind_value & !(colons | commas | right)
            | behind_key ^ colons;
        wrong == 0
    }

    /// Tells of the members of the envelope that end in this block.
    #[inline(always)]
    fn tell_members(
        &mut self,
        text: &[u8],
        base: usize,
        tokens: &Tokens,
        nesting: &Nesting,
        member: &mut impl FnMut(Span, Span),
    ) {
        let separators = (tokens.colons | tokens.commas) & nesting.in_envelope;
        let end = nesting.end.map(|at| at as usize);
        for at in bits(separators).chain(end) {
            let at = base + at;
            if text[at] == b':' {
                self.member_colon = Some(at);
                continue;
            }
            if let Some(colon) = self.member_colon.take() {
                member(trim(text, self.member_start..colon), trim(text, colon + 1..at));
            }
            self.member_start = at + 1;
        }
    }
}

/// The first places that are not blank behind these tokens, and at these places; `carry` leads to the next block.
#[inline(always)]
fn behind(tokens: u64, places: u64, blanks: u64, carry: &mut u64) -> u64 {
    let places = places | tokens << 1 | *carry;
    // A place in a run of blanks is carried through to the end of the run.
    let (through, over) = blanks.overflowing_add(places & blanks);
    *carry = tokens >> 63 | u64::from(over);
    (places | through) & !blanks
}

/// For each bit, whether the count of bits up to and with it is odd.
#[inline(always)]
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The places of the bits that are set.
#[inline(always)]
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
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

/// Whether the text begins with a number or a literal, and ends or goes on with something else.
#[inline(always)]
fn is_scalar(text: &[u8]) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b' ');
    let end = match byte(0) {
        b't' if text.starts_with(b"true") => Some(4),
        b'n' if text.starts_with(b"null") => Some(4),
        b'f' if text.starts_with(b"false") => Some(5),
        _ => number_end(byte),
    };
    let is_delimiter = |byte: u8| {
        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b'"' | b':' | b'{' | b'[')
    };
    end.is_some_and(|end| is_delimiter(byte(end)))
}

#[inline(always)]
fn number_end(byte: impl Fn(usize) -> u8) -> Option<usize> {
    let digits = |start: usize| {
        let mut end = start;
        while byte(end).is_ascii_digit() {
            end += 1;
        }
        (end > start).then_some(end)
    };
    let start = usize::from(byte(0) == b'-');
    let mut end = if byte(start) == b'0' { start + 1 } else { digits(start)? };
    if byte(end) == b'.' {
        end = digits(end + 1)?;
    }
    if matches!(byte(end), b'e' | b'E') {
        let signed = usize::from(matches!(byte(end + 1), b'+' | b'-'));
        end = digits(end + 1 + signed)?;
    }
    Some(end)
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
