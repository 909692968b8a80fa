//! The format of strings, if all of them have the same.

use serde::{Deserialize, Serialize};

/// The format of a string, as it appears without parsing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    #[serde(rename = "s")]
    Text,
    #[serde(rename = "u")]
    Url,
    #[serde(rename = "t")]
    DateTime,
    #[serde(rename = "d")]
    Date,
    #[serde(rename = "i")]
    Uuid,
    #[serde(rename = "e")]
    Email,
}

impl Format {
    /// The format of a string as JSON writes it, without its quotes.
    pub(crate) fn of(text: &[u8]) -> Self {
        match text {
            [b'h', b't', b't', b'p', ..] if is_url(text) => Self::Url,
            [b'0'..=b'9', ..] if is_date(text) => match text.len() {
                10 => Self::Date,
                16..=35 if matches!(text[10], b'T' | b' ') && text[13] == b':' => Self::DateTime,
                _ => Self::Text,
            },
            _ if text.len() == 36 && is_uuid(text) => Self::Uuid,
            _ if text.len() <= 254 && is_email(text) => Self::Email,
            _ => Self::Text,
        }
    }

    /// The format that strings of both formats have in common.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        if self == other { self } else { Self::Text }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Url => "url",
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Uuid => "uuid",
            Self::Email => "email",
        }
    }

    pub(crate) fn is_date(self) -> bool {
        matches!(self, Self::Date | Self::DateTime)
    }
}

fn is_url(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"https://").or_else(|| text.strip_prefix(b"http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(&b' '))
}

fn is_date(text: &[u8]) -> bool {
    let Some(date) = text.first_chunk::<10>() else { return false };
    let digits = |from: usize, to: usize| date[from..to].iter().all(u8::is_ascii_digit);
    date[4] == b'-' && date[7] == b'-' && digits(0, 4) && digits(5, 7) && digits(8, 10)
}

fn is_uuid(text: &[u8]) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.iter()
        .enumerate()
        .all(|(at, byte)| if is_dash(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

fn is_email(text: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'@', text) else { return false };
    let (name, domain) = (&text[..at], &text[at + 1..]);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
    !name.is_empty() && domain.contains(&b'.') && name.iter().chain(domain).all(is_part)
}
