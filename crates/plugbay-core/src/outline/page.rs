//! Lines within a budget of tokens, with functions that write numbers and foreign text.

use crate::{text::stripped, tokens::estimate};

/// Lines that together cost at most a number of tokens.
pub(super) struct Page {
    text: String,
    left: usize,
}

impl Page {
    pub(super) fn new(tokens: usize) -> Self {
        Self { text: String::new(), left: tokens }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Adds a line, unless it does not fit.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let cost = cost(line);
        let fits = cost <= self.left;
        if fits {
            self.left -= cost;
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// Adds lines, or none of them.
    pub(super) fn lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a String> + Clone) -> bool {
        let fits = lines.clone().into_iter().map(|line| cost(line)).sum::<usize>() <= self.left;
        fits && lines.into_iter().all(|line| self.line(line))
    }

    /// The text without the last line break.
    pub(super) fn finish(mut self) -> String {
        self.text.pop();
        self.text
    }
}

/// The cost of a line with its line break: the costs of lines add up to at least the cost of all.
pub(super) fn cost(line: &str) -> usize {
    estimate(line) + 1
}

/// `1,204`.
pub(super) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 row`, `1,204 rows`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `4.8 MB, about 1,250,000 tokens`: two or three figures of the tokens, which are an estimate.
pub(super) fn size(bytes: usize, tokens: usize) -> String {
    let mut unit = 1;
    while tokens / unit >= 1000 {
        unit *= 10;
    }
    let bytes = match bytes {
        0..1000 => counted(bytes, "byte", "bytes"),
        1000..1_000_000 => format!("{} KB", tenths(bytes, 1000)),
        _ => format!("{} MB", tenths(bytes, 1_000_000)),
    };
    format!("{bytes}, about {} tokens", count(tokens / unit * unit))
}

fn tenths(number: usize, unit: usize) -> String {
    let tenths = number / (unit / 10);
    if tenths >= 100 { count(tenths / 10) } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// Foreign text for one line: no hidden characters, no line breaks, at most `limit` characters.
pub(super) fn foreign(text: &str, limit: usize) -> String {
    let text = text.trim_end();
    // There may be many hidden characters; the text after them is seldom worth reading.
    let start = &text[..text.floor_char_boundary(limit.saturating_mul(16))];
    let clean = stripped(start);
    let mut out: String =
        clean.chars().take(limit).map(|char| if char == '\n' { ' ' } else { char }).collect();
    if start.len() < text.len() || clean.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// The beginning of a text, with at most this many tokens and not many fewer.
pub(super) fn prefix(text: &str, tokens: usize) -> &str {
    let mut length = tokens.saturating_mul(6);
    loop {
        let start = &text[..text.floor_char_boundary(length)];
        let price = estimate(start);
        if price <= tokens {
            return start;
        }
        // As long as its price allows, but always shorter than before.
        length = (start.len() * tokens / price).min(start.len() * 63 / 64);
    }
}

/// The same for the end of a text.
pub(super) fn suffix(text: &str, tokens: usize) -> &str {
    let mut length = tokens.saturating_mul(6);
    loop {
        let end = &text[text.ceil_char_boundary(text.len().saturating_sub(length))..];
        let price = estimate(end);
        if price <= tokens {
            return end;
        }
        length = (end.len() * tokens / price).min(end.len() * 63 / 64);
    }
}
