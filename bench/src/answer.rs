//! Checks whether a line is the awaited answer, and whether it is complete.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::Outcome;
use crate::payload::Payload;

/// A gateway that rewrites the message may drop blanks or escapes, but not a twentieth of the payload.
const LEAST_TWENTIETHS: usize = 19;

/// Number of bytes that are compared at each end of the payload, if a full comparison would cost the driver
/// time.
const SPOT: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The answer to a call; `exact` if its result is byte for byte the stub's.
    Answer { id: u64, exact: bool },
    /// A request or notification of the server.
    Other,
}

/// Checks a line. With `full` every byte of the result is compared; otherwise its length and both ends.
pub(crate) fn check(line: &[u8], expected: &Payload, full: bool) -> Outcome<Message> {
    if let Some(id) = exact_id(line, expected, full) {
        return Ok(Message::Answer { id, exact: true });
    }
    let fields = envelope(line)?;
    if fields.contains_key("method") {
        return Ok(Message::Other);
    }
    let Some(result) = fields.get("result") else {
        return Err(format!("not a result: {}", beginning(line)).into());
    };
    let id = fields.get("id").and_then(|id| id.get().parse().ok());
    let id = id.ok_or_else(|| format!("no id of ours: {}", beginning(line)))?;
    if result.get().len() * 20 < expected.len() * LEAST_TWENTIETHS {
        let (got, wanted) = (result.get().len(), expected.len());
        return Err(format!("answer {id} is too short: {got} bytes of about {wanted}").into());
    }
    Ok(Message::Answer { id, exact: false })
}

/// The members of a message, with their raw values.
pub(crate) fn envelope(line: &[u8]) -> Outcome<BTreeMap<&str, &RawValue>> {
    serde_json::from_slice(line)
        .map_err(|error| format!("not a message ({error}): {}", beginning(line)).into())
}

/// The id of an answer whose result is the stub's, in whatever order the other members are.
fn exact_id(line: &[u8], expected: &Payload, full: bool) -> Option<u64> {
    const KEY: &[u8] = b"\"result\":";
    let start = line[..line.len().min(SPOT)].windows(KEY.len()).position(|window| window == KEY)?;
    let (before, rest) = line.split_at(start + KEY.len());
    let (result, after) = rest.split_at_checked(expected.result.len())?;
    let same = if full {
        result == expected.result
    } else {
        let ends = |bytes: &[u8]| (bytes.first_chunk::<SPOT>().copied(), bytes.last_chunk::<SPOT>().copied());
        ends(result) == ends(&expected.result)
    };
    let around = [before, b"{}", after].concat();
    let fields = same.then(|| envelope(&around).ok())??;
    fields.get("id")?.get().parse().ok()
}

fn beginning(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{IdPlace, Kind};

    fn line(payload: &Payload, id: &str) -> Vec<u8> {
        [&payload.before, id.as_bytes(), &payload.after].concat()
    }

    #[test]
    fn an_untouched_answer_is_exact() {
        for id_place in [IdPlace::First, IdPlace::Last] {
            let payload = Payload::new(Kind::Text, 1000, id_place);
            for full in [true, false] {
                let message = check(&line(&payload, "42"), &payload, full).unwrap();
                assert_eq!(message, Message::Answer { id: 42, exact: true });
            }
        }
    }

    #[test]
    fn the_order_of_the_envelope_does_not_matter() {
        let payload = Payload::new(Kind::Objects, 1000, IdPlace::First);
        let moved = Payload::new(Kind::Objects, 1000, IdPlace::Last);
        let message = check(&line(&moved, "42"), &payload, true).unwrap();
        assert_eq!(message, Message::Answer { id: 42, exact: true });
    }

    #[test]
    fn an_answer_written_anew_is_accepted_and_marked() {
        let payload = Payload::new(Kind::Objects, 1000, IdPlace::Last);
        let value: serde_json::Value = serde_json::from_slice(&line(&payload, "42")).unwrap();
        let message = check(value.to_string().as_bytes(), &payload, true).unwrap();
        assert_eq!(message, Message::Answer { id: 42, exact: false });
    }

    #[test]
    fn a_changed_byte_is_not_exact() {
        let payload = Payload::new(Kind::Text, 1000, IdPlace::First);
        let mut changed = line(&payload, "42");
        changed[500] = b'#';
        assert_eq!(check(&changed, &payload, true).unwrap(), Message::Answer { id: 42, exact: false });
    }

    #[test]
    fn short_and_failed_answers_are_refused() {
        let payload = Payload::new(Kind::Text, 1000, IdPlace::First);
        let short = line(&Payload::new(Kind::Text, 800, IdPlace::First), "42");
        assert!(check(&short, &payload, false).is_err());
        let failed = br#"{"jsonrpc":"2.0","id":42,"error":{"code":-32603,"message":"no"}}"#;
        assert!(check(failed, &payload, false).is_err());
        assert!(check(b"{", &payload, false).is_err());
    }

    #[test]
    fn what_the_server_says_by_itself_is_no_answer() {
        let payload = Payload::new(Kind::Text, 1000, IdPlace::First);
        let note = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert_eq!(check(note, &payload, false).unwrap(), Message::Other);
    }
}
