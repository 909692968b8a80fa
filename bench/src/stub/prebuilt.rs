//! An answer in one buffer, into which the id is written in place: it is sent by one write and without
//! copying.

use crate::payload::{IdPlace, Kind, Payload};

/// Room in front of a payload for the head and the id.
const ROOM: usize = 128;

pub(crate) enum Prebuilt {
    /// The buffer has free room up to `after_start`, then everything after the id.
    IdFirst { before: Vec<u8>, buffer: Vec<u8>, after_start: usize },
    /// The buffer has everything before the id, up to `before_end`.
    IdLast { buffer: Vec<u8>, before_end: usize, after: Vec<u8> },
}

impl Prebuilt {
    pub(crate) fn new(kind: Kind, size: usize, id_place: IdPlace) -> Self {
        let Payload { before, mut after, .. } = Payload::new(kind, size, id_place);
        after.push(b'\n');
        match id_place {
            IdPlace::First => {
                Self::IdFirst { before, buffer: [vec![0; ROOM], after].concat(), after_start: ROOM }
            }
            IdPlace::Last => Self::IdLast { before_end: before.len(), buffer: before, after },
        }
    }

    /// The whole line with this id.
    pub(crate) fn with(&mut self, id: &str) -> &[u8] {
        match self {
            Self::IdFirst { before, buffer, after_start } => {
                let head = before.len() + id.len();
                if let Some(more) = head.checked_sub(*after_start) {
                    buffer.splice(0..0, std::iter::repeat_n(0, more));
                    *after_start = head;
                }
                let id_start = *after_start - id.len();
                let start = id_start - before.len();
                buffer[start..id_start].copy_from_slice(before);
                buffer[id_start..*after_start].copy_from_slice(id.as_bytes());
                &buffer[start..]
            }
            Self::IdLast { buffer, before_end, after } => {
                buffer.truncate(*before_end);
                buffer.extend_from_slice(id.as_bytes());
                buffer.extend_from_slice(after);
                buffer
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_payload_with_the_id_in_place() {
        for id_place in [IdPlace::First, IdPlace::Last] {
            let payload = Payload::new(Kind::Text, 300, id_place);
            let mut prebuilt = Prebuilt::new(Kind::Text, 300, id_place);
            let long = format!("\"{}\"", "x".repeat(2 * ROOM));
            for id in ["1", &long, "12345"] {
                let expected = [&payload.before, id.as_bytes(), &payload.after, b"\n"].concat();
                assert_eq!(prebuilt.with(id), expected);
            }
        }
    }
}
