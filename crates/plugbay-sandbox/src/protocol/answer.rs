//! The answers that a script gets.

use std::io::{self, Read};

use bytes::Bytes;

use super::{number, sized, text};
use crate::code::{Answer, Reading};

/// An answer with the number of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub number: u32,
    pub answer: Answer,
}

const RESULT: u64 = 1;
const VALUE: u64 = 2;
const ERROR: u64 = 3;
const ERROR_WITH_RESULT: u64 = 4;
const UNKNOWN: u64 = 5;

const READINGS: [Reading; 5] =
    [Reading::Structured, Reading::Json, Reading::Text, Reading::Content, Reading::JsonEach];

impl Answered {
    /// The answer as bytes, in pieces: a large result is not copied.
    pub fn encode(self) -> [Bytes; 2] {
        let mut head = u64::from(self.number).to_le_bytes().to_vec();
        let body = match self.answer {
            Answer::Result { raw, read } => {
                head.extend(RESULT.to_le_bytes());
                head.extend((read as u64).to_le_bytes());
                raw
            }
            Answer::Value(value) => {
                head.extend(VALUE.to_le_bytes());
                value
            }
            Answer::Error { message, code, result } => {
                let kind = if result.is_some() { ERROR_WITH_RESULT } else { ERROR };
                head.extend(kind.to_le_bytes());
                for text in [message, code] {
                    head.extend((text.len() as u64).to_le_bytes());
                    head.extend(text.as_bytes());
                }
                result.unwrap_or_default()
            }
            Answer::Unknown => {
                head.extend(UNKNOWN.to_le_bytes());
                Bytes::new()
            }
        };
        head.extend((body.len() as u64).to_le_bytes());
        [head.into(), body]
    }

    /// Reads one answer.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let [call, kind] = [number(from)?, number(from)?];
        let answer = match kind {
            RESULT => {
                let read = usize::try_from(number(from)?).ok().and_then(|read| READINGS.get(read).copied());
                Answer::Result { read: read.ok_or_else(invalid)?, raw: sized(from)?.into() }
            }
            VALUE => Answer::Value(sized(from)?.into()),
            ERROR | ERROR_WITH_RESULT => {
                let [message, code] = [text(from)?, text(from)?];
                let result = Bytes::from(sized(from)?);
                let has_result = kind == ERROR_WITH_RESULT;
                if !has_result && !result.is_empty() {
                    return Err(invalid());
                }
                Answer::Error { message, code, result: has_result.then_some(result) }
            }
            UNKNOWN if sized(from)?.is_empty() => Answer::Unknown,
            _ => return Err(invalid()),
        };
        Ok(Self { number: u32::try_from(call).map_err(|_| invalid())?, answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let raw = Bytes::from_static(b"{}");
        let error = |result| Answer::Error { message: "ä".to_owned(), code: "x".to_owned(), result };
        let results = READINGS.map(|read| Answer::Result { raw: raw.clone(), read });
        let others = [
            Answer::Value(raw.clone()),
            error(None),
            error(Some(raw)),
            error(Some(Bytes::new())),
            Answer::Unknown,
        ];
        for answer in results.into_iter().chain(others) {
            let answered = Answered { number: 7, answer };
            let bytes = answered.clone().encode().concat();
            assert_eq!(Answered::read(&mut bytes.as_slice()).unwrap(), answered);
            for length in 0..bytes.len() {
                assert!(Answered::read(&mut &bytes[..length]).is_err(), "{length} bytes of {answered:?}");
            }
        }
    }

    #[test]
    fn an_answer_without_a_result_has_no_bytes_of_one() {
        let error = Answer::Error { message: String::new(), code: String::new(), result: None };
        for answer in [error, Answer::Unknown] {
            let mut bytes = Answered { number: 7, answer }.encode().concat();
            let length = bytes.len() - 8;
            bytes[length] = 2;
            bytes.extend(b"{}");
            assert_eq!(Answered::read(&mut bytes.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
